/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/tree.h"

#include <ftw.h>
#include <sys/stat.h>

#include "base/mask.h"
#include "support/test.h"

#define MAX_PATH 512

void tree_make(struct tree *t)
{
    /* Trees have thousands of files, which cost a tenth in memory. */
    snprintf(t->path, sizeof t->path, "%s/asym-tree-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(t->path));
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    return remove(path);
}

void tree_remove(struct tree *t)
{
    assert_int_equal(nftw(t->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    t->path[0] = '\0';
}

static void make_path(const struct tree *t, const char *file, char *ret)
{
    assert_true((size_t)snprintf(ret, MAX_PATH, "%s/%s", t->path, file) < MAX_PATH);
    for (char *slash = ret + strlen(t->path) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(ret, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

void tree_write_bytes(const struct tree *t, const char *file, const void *bytes, size_t len)
{
    char path[MAX_PATH];
    make_path(t, file, path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const struct tree *t, const char *file, const char *format, va_list args)
{
    char text[16384];
    int n = vsnprintf(text, sizeof text, format, args);
    assert_true(n >= 0 && (size_t)n < sizeof text);
    tree_write_bytes(t, file, text, (size_t)n);
}

void tree_write(const struct tree *t, const char *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_text(t, file, format, args);
    va_end(args);
}

void tree_write_cpu(const struct tree *t, unsigned cpu, const char *file, const char *format, ...)
{
    char path[MAX_PATH];
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/%s", cpu, file);
    va_list args;
    va_start(args, format);
    write_text(t, path, format, args);
    va_end(args);
}

void tree_mkdir(const struct tree *t, const char *directory)
{
    char path[MAX_PATH];
    make_path(t, directory, path);
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

void tree_link(const struct tree *t, const char *link, const char *target)
{
    char path[MAX_PATH];
    make_path(t, link, path);
    assert_int_equal(symlink(target, path), 0);
}

void tree_unlink(const struct tree *t, const char *file)
{
    char path[MAX_PATH];
    make_path(t, file, path);
    assert_int_equal(unlink(path), 0);
}

void tree_machine(const struct tree *t, const char *present, const char *online)
{
    tree_mkdir(t, "proc");
    tree_write(t, "sys/devices/system/cpu/possible", "%s\n", present);
    tree_write(t, "sys/devices/system/cpu/present", "%s\n", present);
    tree_write(t, "sys/devices/system/cpu/online", "%s\n", online);
}

static void parse(const char *list, struct asym_mask *ret)
{
    assert_int_equal(asym_mask_parse_list(list, strlen(list), ret), 0);
}

/* Returns the mask in the kernel's hex format, from which hwloc reads shared caches. */
static const char *hex(const char *list, char buf[ASYM_MAX_CPUS / 32 * 9 + 1])
{
    struct asym_mask m;
    parse(list, &m);
    char *p = buf;
    for (int i = ASYM_MAX_CPUS / 32 - 1; i >= 0; i--)
        p += sprintf(p, "%08x%s", (unsigned)(m.w[i / 2] >> (i % 2 * 32) & UINT32_MAX), i ? "," : "");
    return buf;
}

void tree_cpu(const struct tree *t, unsigned cpu, unsigned core, unsigned package_id, const char *siblings,
              const char *package)
{
    char buf[ASYM_MAX_CPUS / 32 * 9 + 1];
    tree_write_cpu(t, cpu, "topology/core_id", "%u\n", core);
    tree_write_cpu(t, cpu, "topology/physical_package_id", "%u\n", package_id);
    tree_write_cpu(t, cpu, "topology/thread_siblings", "%s\n", hex(siblings, buf));
    tree_write_cpu(t, cpu, "topology/core_siblings", "%s\n", hex(package, buf));
}

void tree_cache(const struct tree *t, unsigned level, const char *cpus)
{
    char buf[ASYM_MAX_CPUS / 32 * 9 + 1], file[64];
    struct asym_mask m;
    parse(cpus, &m);
    ASYM_MASK_FOREACH (cpu, &m) {
        static const char *const rows[][2] = {{"type", "Unified"}, {"size", "2048K"}, {"coherency_line_size", "64"}};
        for (size_t i = 0; i < 3; i++) {
            snprintf(file, sizeof file, "cache/index%u/%s", level, rows[i][0]);
            tree_write_cpu(t, (unsigned)cpu, file, "%s\n", rows[i][1]);
        }
        snprintf(file, sizeof file, "cache/index%u/level", level);
        tree_write_cpu(t, (unsigned)cpu, file, "%u\n", level);
        snprintf(file, sizeof file, "cache/index%u/shared_cpu_map", level);
        tree_write_cpu(t, (unsigned)cpu, file, "%s\n", hex(cpus, buf));
    }
}

void tree_plain(const struct tree *t, unsigned n)
{
    char all[32], own[16];
    snprintf(all, sizeof all, "0-%u", n - 1);
    tree_machine(t, all, all);
    for (unsigned c = 0; c < n; c++) {
        snprintf(own, sizeof own, "%u", c);
        tree_cpu(t, c, c, 0, own, all);
    }
}

struct tree the_tree;

int the_tree_make(void **state)
{
    tree_make(&the_tree);
    return 0;
}

int the_tree_remove(void **state)
{
    tree_remove(&the_tree);
    return 0;
}

const char *the_tree_path(const char *file)
{
    static char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", the_tree.path, file);
    return path;
}

void tree_root_make(struct tree_root *f)
{
    tree_make(&f->tree);
    tree_write(&f->tree, "proc/stat", "cpu 1 2 3\n");
    tree_mkdir(&f->tree, "sys");
    assert_int_equal(asym_root_open(f->tree.path, &f->root, NULL), 0);
}

void tree_root_remove(struct tree_root *f)
{
    asym_root_done(&f->root);
    tree_remove(&f->tree);
}
