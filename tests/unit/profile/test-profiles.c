/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles of executables: the file, its mistakes, writing one section, and build ids from ELF notes, junk among them. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "linux/sys/elf.h"
#include "profile/profiles.h"
#include "support/generate.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

struct fixture {
    struct tree tree;
    char file[128];
};

static void set_up(struct fixture *f)
{
    tree_make(&f->tree);
    snprintf(f->file, sizeof f->file, "%s/profiles", f->tree.path);
}

static void tear_down(struct fixture *f)
{
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

static char *read_text(const char *file)
{
    static char text[262144];
    assert_true(file_read(file, text, sizeof text) >= 0);
    return text;
}

static struct asym_profiles *load(const struct fixture *f)
{
    struct asym_profiles *p;
    struct asym_error err = {""};
    if (asym_profiles_load(f->file, &p, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}

static void save(const struct fixture *f, const struct asym_profile_entry *profile)
{
    struct asym_error err = {""};
    if (asym_profiles_save(f->file, profile, &err) < 0)
        fail_msg("%s", err.text);
}

static bool near(double a, double b)
{
    return a > b - 1e-6 && a < b + 1e-6;
}

/* -- reading -- */

TEST_F(a_file_of_profiles_is_read)
{
    tree_write(&f->tree, "profiles", "%s",
               "; measured by hand\n"
               "[/usr/bin/gzip]\n"
               "  build_id = 00ff\r\n"
               "ips.P-core = 9123000000.5 ; fast\n"
               "mpki.P-core=0.41\n"
               "\n"
               "ips.LP E-core 2 = 4711\n"
               "[/a b;c]d\\x0a\\\\]\n"
               "# nothing is known of it\n"
               "[/bin/x]\n"
               "mpki.slow: 0\n");
    struct asym_profiles *p = load(f);
    const struct asym_profile_entry *gzip = asym_profiles_find(p, "/usr/bin/gzip", "00ff");
    assert_non_null(gzip);
    assert_int_equal(gzip->n_types, 2);
    const struct asym_profile_type *fast = asym_profile_on(gzip, "P-core"),
                                   *slow = asym_profile_on(gzip, "LP E-core 2");
    assert_true(near(fast->ips, 9123000000.5) && near(fast->mpki, 0.41));
    assert_true(near(slow->ips, 4711) && slow->mpki < 0);
    assert_null(asym_profile_on(gzip, "E-core"));
    assert_non_null(asym_profiles_find(p, "/a b;c]d\n\\", NULL));
    const struct asym_profile_entry *x = asym_profiles_find(p, "/bin/x", NULL);
    assert_true(asym_profile_on(x, "slow")->ips < 1e-9 && near(asym_profile_on(x, "slow")->mpki, 0));
    assert_null(asym_profiles_find(p, "/usr/bin/gzi", NULL));
    assert_string_equal(asym_profiles_at(p, 1)->path, "/bin/x");
    assert_null(asym_profiles_at(p, 3));
    asym_profiles_free(p);
}

TEST(a_profile_is_put_in_the_order_of_the_machines_types)
{
    static struct asym_machine m;
    const struct asym_profile_entry entry = {.path = "/a",
                                             .n_types = 3,
                                             .types = {{.name = "slow", .ips = 1, .mpki = 0},
                                                       {.name = "other", .ips = 5, .mpki = 5},
                                                       {.name = "fast", .ips = 2, .mpki = -1}}};
    gen_plain_machine(&m, 4, 2);
    assert_string_equal(m.types[0].name, "fast");
    struct asym_profile p = asym_profile_of(&entry, &m);
    assert_true(near(p.ips[0], 2) && p.mpki[0] < 0 && near(p.ips[1], 1) && near(p.mpki[1], 0));
    assert_true(near(p.ips[2], 0) && p.mpki[2] < 0);
    gen_plain_machine(&m, 4, 0);
    p = asym_profile_of(&entry, &m);
    assert_true(near(p.ips[0], 0) && p.mpki[0] < 0 && near(p.ips[ASYM_MAX_TYPES - 1], 0));
}

TEST_F(the_profile_of_another_build_is_not_found)
{
    tree_write(&f->tree, "profiles", "[/a]\nbuild_id = 00ff\n[/b]\n");
    struct asym_profiles *p = load(f);
    assert_non_null(asym_profiles_find(p, "/a", "00ff"));
    assert_null(asym_profiles_find(p, "/a", "00fe"));
    assert_non_null(asym_profiles_find(p, "/a", "")); /* it has no build id: the path decides */
    assert_non_null(asym_profiles_find(p, "/a", NULL));
    assert_non_null(asym_profiles_find(p, "/b", "00ff"));
    asym_profiles_free(p);
    tree_write(&f->tree, "profiles", "%s", "");
    p = load(f);
    assert_null(asym_profiles_find(p, "/a", NULL));
    assert_null(asym_profiles_at(p, 0));
    asym_profiles_free(p);
    asym_profiles_free(NULL);
}

TEST_F(mistakes_are_reported_with_file_and_line)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[/a]\nbuild_id = 0g\n", ":2: build_id: accepted are"},
        {"[/a]\nbuild_id = 123\n", ":2: build_id: accepted are"},
        {"[/a]\nbuild_id =\n", ":2: build_id: accepted are"},
        {"[/a]\nbuild_id = 00\nbuild_id = 00\n", ":3: build_id is given twice"},
        {"[/a]\n\n# x\nbuild = 00\n", ":4: unknown key; accepted are build_id, ips.TYPE and mpki.TYPE"},
        {"ips.a = 1\n", ":1: a key before the first [PATH]"},
        {"[/a]\nips.a = 0\n", ":2: ips: accepted is a number above 0"},
        {"[/a]\nips.a = -1\n", ":2: ips:"},
        {"[/a]\nips.a = nan\n", ":2: ips:"},
        {"[/a]\nips.a = 1e9\n", ":2: ips:"},
        {"[/a]\nmpki.a = -0.5\n", ":2: mpki: accepted is a number from 0"},
        {"[/a]\nmpki.a = 1\nips.a = 1\nmpki.a = 1\n", ":4: the key is given twice"},
        {"[/a]\nips. = 1\n", ":2: this is not the name of a core type"},
        {"[/a]\nips.a[b = 1\n", ":2: this is not the name of a core type"},
        {"[/a]\nips.abcdefghijabcdefghijabcdefghijab = 1\n", ":2: this is not the name of a core type"},
        {"[/a]\nips.a\n", ":2: neither [PATH] nor KEY = VALUE"},
        {"[/a]\nips.a = \x01\n", ":2: binary data"},
        {"[/a\n", ":1: accepted is [PATH]"},
        {"[a]\n", ":1: accepted is [PATH]"},
        {"[]\n", ":1: accepted is [PATH]"},
        {"[/a\\]\n", ":1: accepted is [PATH]"},
        {"[/a\\x0]\n", ":1: accepted is [PATH]"},
        {"[/a\\x00]\n", ":1: accepted is [PATH]"},
        {"[/a]\nips.x = 1\n[/b]\n[/c]\n[/a]\n", ":5: the same executable as in line 1"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_profiles *p = NULL;
        struct asym_error err = {""};
        char wanted[256];
        tree_write(&f->tree, "profiles", "%s", rows[i].text);
        snprintf(wanted, sizeof wanted, "%s%s", f->file, rows[i].message);
        assert_int_equal(asym_profiles_load(f->file, &p, &err), -EINVAL);
        assert_null(p);
        if (strncmp(err.text, wanted, strlen(wanted)) != 0)
            fail_msg("'%s' does not begin with '%s'", err.text, wanted);
        /* asymd does not overwrite a file that it cannot read. */
        const struct asym_profile_entry a = {.path = "/a"};
        assert_int_equal(asym_profiles_save(f->file, &a, &err), -EINVAL);
        assert_string_equal(read_text(f->file), rows[i].text);
    }
}

TEST_F(files_that_are_no_profiles_are_reported)
{
    struct asym_profiles *p = NULL;
    struct asym_error err = {""};
    char line[400];
    assert_int_equal(asym_profiles_load(f->file, &p, &err), -ENOENT);
    assert_non_null(strstr(err.text, f->file));
    assert_int_equal(asym_profiles_load(f->tree.path, &p, &err), -EINVAL);
    memset(line, 'a', sizeof line);
    line[0] = '[';
    line[sizeof line - 1] = '\0';
    line[1] = '/';
    line[sizeof line - 2] = ']';
    tree_write(&f->tree, "profiles", "%s\nips.a = 1\n%s = 1\n", line, line + 2);
    assert_int_equal(asym_profiles_load(f->file, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, ":3: the line is too long"));
    tree_write(&f->tree, "profiles", "%s\nips.a = 1\n", line);
    p = load(f);
    assert_int_equal(strlen(asym_profiles_at(p, 0)->path), sizeof line - 3); /* paths may be long */
    asym_profiles_free(p);
    tree_write_bytes(&f->tree, "profiles", "[/a]\nips.a = 1\0\n", 16);
    assert_int_equal(asym_profiles_load(f->file, &p, &err), -EINVAL);
}

/* -- writing -- */

static const struct asym_profile_entry gzip = {
    .path = "/usr/bin/gzip",
    .build_id = "00ff",
    .n_types = 2,
    .types = {{.name = "P-core", .ips = 9e9, .mpki = 0.25}, {.name = "E-core 2", .ips = 4.5e9, .mpki = -1}}};

TEST_F(a_profile_that_is_written_is_read_back)
{
    struct stat st;
    save(f, &gzip);
    assert_string_equal(read_text(f->file), "[/usr/bin/gzip]\nbuild_id = 00ff\nips.P-core = 9000000000.000\n"
                                            "mpki.P-core = 0.2500\nips.E-core 2 = 4500000000.000\n");
    assert_int_equal(stat(f->file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    struct asym_profiles *p = load(f);
    const struct asym_profile_entry *back = asym_profiles_find(p, gzip.path, gzip.build_id);
    assert_true(near(asym_profile_on(back, "P-core")->ips, 9e9) && near(asym_profile_on(back, "P-core")->mpki, 0.25));
    assert_true(near(asym_profile_on(back, "E-core 2")->ips, 4.5e9) && asym_profile_on(back, "E-core 2")->mpki < 0);
    asym_profiles_free(p);
}

TEST_F(one_section_is_replaced_and_the_rest_stays_byte_by_byte)
{
    static const struct {
        const char *before, *after;
    } rows[] = {
        {"", "%s"},
        {"; only a comment", "; only a comment\n\n%s"},
        {"[/a]\nips.x = 1\n", "[/a]\nips.x = 1\n\n%s"},
        {"[/usr/bin/gzip]\nips.x = 1\n", "%s"},
        {"# first\n[/a]\n  ips.x=1\t;c\n\n# old\n[/usr/bin/gzip]\n; of it\nips.x = 1\n\n# of b\n[/b]\nips.x = 2",
         "# first\n[/a]\n  ips.x=1\t;c\n\n# old\n%s\n# of b\n[/b]\nips.x = 2"},
        {" [/usr/bin/gzip] \r\nips.x = 1\r\n; the end\n", "%s; the end\n"},
        {"[/usr/bin/gzip]\n[/usr/bin/gzip2]\n", "%s[/usr/bin/gzip2]\n"},
    };
    char after[1024];
    save(f, &gzip);
    ASYM_AUTO_FREE char *section = strdup(read_text(f->file));
    assert_non_null(section);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const char *hole = strstr(rows[i].after, "%s");
        snprintf(after, sizeof after, "%.*s%s%s", (int)(hole - rows[i].after), rows[i].after, section, hole + 2);
        tree_write(&f->tree, "profiles", "%s", rows[i].before);
        assert_int_equal(chmod(f->file, 0600), 0);
        save(f, &gzip);
        assert_string_equal(read_text(f->file), after);
        save(f, &gzip); /* and again changes nothing */
        assert_string_equal(read_text(f->file), after);
        struct stat st;
        assert_int_equal(stat(f->file, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

TEST_F(hostile_paths_are_written_and_found_again)
{
    static const char *const paths[] = {
        "/a]b",   "/[",  "/ ",        "/a ;b",     "/a#",      "/=", "/\n[/x]\nips.a = 1",
        "/\\x41", "/\\", "/\xff\xfe", "/\xc3\xa9", "/\x1b[2J", "/A"};
    struct asym_profile_entry profile = gzip;
    for (size_t i = 0; i < ASYM_LENGTH(paths); i++) {
        profile.path = paths[i];
        profile.types[0].ips = (double)i + 1;
        save(f, &profile);
    }
    struct asym_profiles *p = load(f);
    for (size_t i = 0; i < ASYM_LENGTH(paths); i++) {
        const struct asym_profile_entry *found = asym_profiles_find(p, paths[i], NULL);
        assert_non_null(found);
        assert_true(near(found->types[0].ips, (double)i + 1));
    }
    assert_null(asym_profiles_at(p, ASYM_LENGTH(paths)));
    asym_profiles_free(p);
}

TEST_F(what_cannot_be_read_back_is_not_written)
{
    static const char *const names[] = {"", "a=b", "a:b", "a ;b", " a", "a ", "a\nb", "[x]", "\xc3\xa9"};
    struct asym_profile_entry profile = gzip;
    save(f, &gzip);
    ASYM_AUTO_FREE char *before = strdup(read_text(f->file));
    for (size_t i = 0; i < ASYM_LENGTH(names); i++) {
        snprintf(profile.types[0].name, sizeof profile.types[0].name, "%s", names[i]);
        assert_int_equal(asym_profiles_save(f->file, &profile, NULL), -EINVAL);
    }
    profile = gzip;
    profile.types[0].ips = 1e-9;
    profile.types[0].mpki = -1;
    assert_int_equal(asym_profiles_save(f->file, &profile, NULL), -EINVAL);
    profile.types[0].ips = 1e300;
    assert_int_equal(asym_profiles_save(f->file, &profile, NULL), -EINVAL);
    profile = gzip;
    profile.path = "relative";
    assert_int_equal(asym_profiles_save(f->file, &profile, NULL), -EINVAL);
    memcpy(profile.types[1].name, "P-core", 7); /* twice the same type */
    profile.path = gzip.path;
    assert_int_equal(asym_profiles_save(f->file, &profile, NULL), -EINVAL);
    assert_string_equal(read_text(f->file), before);
}

static int count_files(const struct tree *t)
{
    char command[128], text[16] = "";
    snprintf(command, sizeof command, "ls -A %s | wc -l", t->path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    pclose(f);
    return atoi(text);
}

TEST_F(a_failed_write_leaves_the_file_and_nothing_beside_it)
{
    struct asym_error err = {""};
    char path[300];
    save(f, &gzip);
    ASYM_AUTO_FREE char *before = strdup(read_text(f->file));
    snprintf(path, sizeof path, "%s/none/profiles", f->tree.path);
    assert_int_equal(asym_profiles_save(path, &gzip, &err), -ENOENT);
    assert_non_null(strstr(err.text, "none"));
    /* As on a full disk, no file may grow. */
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        const struct rlimit none = {.rlim_cur = 20, .rlim_max = 20};
        struct asym_profile_entry other = gzip;
        other.path = "/b";
        _exit(setrlimit(RLIMIT_FSIZE, &none) == 0 && asym_profiles_save(f->file, &other, &err) == -EFBIG ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(read_text(f->file), before);
    assert_int_equal(count_files(&f->tree), 1);
}

TEST_F(a_link_stays_one)
{
    struct stat st;
    tree_write(&f->tree, "real/file", "[/a]\n");
    tree_link(&f->tree, "profiles", "real/file");
    save(f, &gzip);
    assert_int_equal(lstat(f->file, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_non_null(strstr(read_text(f->file), "[/a]\n"));
}

TEST_F(writers_at_once_lose_nothing)
{
    enum { WRITERS = 4, EACH = 10 };
    pid_t pids[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        pids[w] = asym_process_fork();
        if (pids[w] == 0) {
            struct asym_profile_entry profile = gzip;
            int failed = 0;
            for (int i = 0; i < EACH; i++) {
                char path[32];
                snprintf(path, sizeof path, "/%d/%d", w, i);
                profile.path = path;
                failed |= asym_profiles_save(f->file, &profile, NULL) < 0;
            }
            _exit(failed);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
        assert_int_equal(status, 0);
    }
    struct asym_profiles *p = load(f);
    size_t n = 0;
    while (asym_profiles_at(p, n))
        n++;
    assert_int_equal(n, WRITERS * EACH);
    asym_profiles_free(p);
}

/* -- build ids -- */

static int build_id(const void *bytes, size_t len, char *ret)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, 0), (ssize_t)len);
    int r = asym_elf_build_id(fd, ret);
    close(fd);
    return r;
}

/* A program of this machine's word size and byte order. */
struct made {
    unsigned char bytes[512];
};

static void put(struct made *m, size_t at, uint32_t value)
{
    memcpy(m->bytes + at, &value, sizeof value);
}

enum { MADE_NOTES = 256, MADE_LEN = 320 };

/* Two program headers, the second of notes: a property note first, then the build id 0123456789. */
static void make_elf(struct made *m, unsigned char class, unsigned char data)
{
    ElfW(Ehdr) head = {.e_phoff = sizeof head, .e_phentsize = sizeof(ElfW(Phdr)), .e_phnum = 2};
    const ElfW(Phdr) parts[] = {
        {.p_type = PT_LOAD},
        {.p_type = PT_NOTE, .p_offset = MADE_NOTES, .p_filesz = MADE_LEN - MADE_NOTES, .p_align = 4},
    };
    *m = (struct made){.bytes = {0}};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = class;
    head.e_ident[EI_DATA] = data;
    memcpy(m->bytes, &head, sizeof head);
    memcpy(m->bytes + sizeof head, parts, sizeof parts);
    put(m, MADE_NOTES, 4);
    put(m, MADE_NOTES + 4, 6); /* six bytes, padded to eight */
    put(m, MADE_NOTES + 8, 1);
    memcpy(m->bytes + MADE_NOTES + 12, "GNU", 4);
    put(m, MADE_NOTES + 24, 4);
    put(m, MADE_NOTES + 28, 5);
    put(m, MADE_NOTES + 32, NT_GNU_BUILD_ID);
    memcpy(m->bytes + MADE_NOTES + 36, "GNU\0\x01\x23\x45\x67\x89", 9);
}

static const unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
static const unsigned char own_data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

static void make_own(struct made *m)
{
    make_elf(m, own_class, own_data);
}

TEST(the_build_id_is_read_of_programs_of_this_word_size_and_byte_order)
{
    for (int k = 0; k < 4; k++) {
        struct made m;
        char id[ASYM_BUILD_ID_MAX] = "untouched";
        make_elf(&m, own_class ^ (k & 1 ? 3 : 0), own_data ^ (k & 2 ? 3 : 0));
        assert_int_equal(build_id(m.bytes, MADE_LEN, id), k ? -ENOEXEC : 0);
        assert_string_equal(id, k ? "untouched" : "0123456789");
    }
}

TEST(files_without_a_build_id_are_distinguished_from_files_that_are_no_programs)
{
    struct made m;
    char id[ASYM_BUILD_ID_MAX] = "untouched";
    assert_int_equal(build_id("", 0, id), -ENOEXEC);
    assert_int_equal(build_id("#!/bin/sh\n", 10, id), -ENOEXEC);
    make_own(&m);
    for (size_t len = 0; len < sizeof(ElfW(Ehdr)) + 2 * sizeof(ElfW(Phdr)); len++)
        assert_int_equal(build_id(m.bytes, len, id), -ENOEXEC);
    for (size_t len = MADE_NOTES; len < MADE_NOTES + 24 + 12 + 4 + 5; len++)
        assert_int_equal(build_id(m.bytes, len, id), -ENODATA);
    put(&m, MADE_NOTES + 32, 1);
    assert_int_equal(build_id(m.bytes, MADE_LEN, id), -ENODATA);
    make_own(&m);
    put(&m, MADE_NOTES + 28, 0); /* an empty id */
    assert_int_equal(build_id(m.bytes, MADE_LEN, id), -ENODATA);
    make_own(&m);
    memset(m.bytes + offsetof(ElfW(Ehdr), e_phnum), 0xff, 2);
    assert_int_equal(build_id(m.bytes, MADE_LEN, id), -ENOEXEC);
    assert_string_equal(id, "untouched");
    assert_int_equal(asym_elf_build_id(-1, id), -EBADF);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(asym_elf_build_id(pipes[0], id), -ESPIPE);
    close(pipes[0]);
    close(pipes[1]);
}

TEST(the_build_id_is_the_one_that_readelf_reads)
{
    char line[512], theirs[ASYM_BUILD_ID_MAX] = "", ours[ASYM_BUILD_ID_MAX] = "";
    FILE *f = popen("readelf -n /bin/sh 2>/dev/null", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, " Build ID: %128[0-9a-f]", theirs) == 1)
            break;
    pclose(f);
    int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    int r = asym_elf_build_id(fd, ours);
    close(fd);
    assert_int_equal(r, *theirs ? 0 : -ENODATA);
    assert_string_equal(ours, theirs);
}

/* With any content: no crash, no read out of bounds, and the result is an id or an error. */
TEST(mutated_files_end_in_an_id_or_a_refusal)
{
    static unsigned char shell[65536];
    struct gen g = {.state = 42};
    unsigned ids = 0, none = 0, junk = 0;
    int sh = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    ssize_t shell_len = read(sh, shell, sizeof shell);
    close(sh);
    assert_true(shell_len > 4096);
    for (int round = 0; round < 20000; round++) {
        struct made m;
        unsigned char copy[2048];
        char id[ASYM_BUILD_ID_MAX];
        size_t len = MADE_LEN;
        make_own(&m);
        memcpy(copy, m.bytes, MADE_LEN);
        if (gen_below(&g, 4) == 0) { /* the real file, with notes and headers at its beginning */
            len = sizeof copy;
            memcpy(copy, shell, len);
        }
        for (unsigned n = gen_below(&g, 8); n > 0; n--) {
            size_t at = gen_below(&g, gen_below(&g, 2) ? 128 : (unsigned)len);
            static const unsigned char extreme[] = {0, 1, 0x7f, 0x80, 0xff, 4, 8};
            copy[at] = gen_below(&g, 2) ? extreme[gen_below(&g, sizeof extreme)] : (unsigned char)gen_next(&g);
        }
        if (gen_below(&g, 8) == 0)
            len = gen_below(&g, (unsigned)len);
        memset(id, 'x', sizeof id);
        int r = build_id(copy, len, id);
        if (r == 0) {
            size_t n = strnlen(id, sizeof id);
            assert_true(n > 0 && n < sizeof id && n % 2 == 0 && strspn(id, "0123456789abcdef") == n);
        } else {
            assert_true(r == -ENODATA || r == -ENOEXEC);
        }
        ids += r == 0;
        none += r == -ENODATA;
        junk += r == -ENOEXEC;
    }
    assert_true(ids > 100 && none > 100 && junk > 100);
}

TEST_MAIN
