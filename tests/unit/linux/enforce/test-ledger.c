/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the file of the ledger: records survive, and other content of the file does no harm. */
#include <signal.h>
#include <sys/stat.h>

#include "base/mask.h"
#include "linux/enforce/ledger-internal.h"
#include "linux/enforce/enforce.h"
#include "support/limit-files.h"
#include "support/test.h"
#include "support/tree.h"

/* No real process has this number: kernel.pid_max is at most 4194304. */
#define NOBODY 2000000000

static struct asym_ledger *ledger; /* that of the test; NULL: it is not open */
static struct asym_error err;      /* what its opening has said */

static void close_it(void)
{
    asym_ledger_close(ledger);
    ledger = NULL;
}

static int tear_down(void **state)
{
    close_it();
    return the_tree_remove(state);
}

/* Opens the ledger; if it is open, again. */
static void open_it(void)
{
    close_it();
    err.text[0] = '\0';
    assert_int_equal(asym_ledger_open(the_tree.path, &ledger, &err), 0);
}

/* Writes a ledger file of this boot with these lines. */
static void put_file(const char *lines)
{
    char boot[64];
    assert_true(file_read("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0);
    file_write(the_tree_path("ledger"), "asymd-ledger 1 %s%s", boot, lines);
}

static off_t size_of(const char *name)
{
    struct stat st;
    return stat(the_tree_path(name), &st) < 0 ? -1 : st.st_size;
}

static struct asym_ledger_entry sample(int32_t tid)
{
    struct asym_ledger_entry e = {
        .id = {tid, NOBODY, UINT64_C(12345678901234)},
        .since = UINT64_C(12345678909999),
        .session = 4194303,
        .original_nice = 5,
        .set_nice = -20,
        .before_nice = 19,
        .original_reset = true,
        .boosted = true,
        .full_cpuset = true,
    };
    asym_mask_set(&e.original, 0);
    asym_mask_set(&e.original, ASYM_MAX_CPUS - 1);
    asym_mask_set(&e.set, 1);
    asym_mask_set(&e.before, 77);
    e.under_way = tid % 4 == 0;
    e.transit_cpu = e.under_way ? 2 : 0;
    return e;
}

static void add(struct asym_ledger *l, int32_t tid)
{
    const struct asym_ledger_entry e = sample(tid);
    pthread_mutex_lock(&l->lock);
    struct asym_ledger_entry *to = asym_ledger_add(l, &e.id);
    assert_non_null(to);
    *to = e;
    assert_int_equal(asym_ledger_note(l, to), 0);
    pthread_mutex_unlock(&l->lock);
}

static int flush(struct asym_ledger *l)
{
    pthread_mutex_lock(&l->lock);
    int r = asym_ledger_flush(l);
    pthread_mutex_unlock(&l->lock);
    return r;
}

/* Adds a thread to the file. */
static void record(int32_t tid)
{
    add(ledger, tid);
    assert_int_equal(flush(ledger), 0);
}

static void drop(struct asym_ledger *l, int32_t tid)
{
    pthread_mutex_lock(&l->lock);
    struct asym_ledger_entry *e = asym_ledger_find(l, tid);
    assert_non_null(e);
    assert_int_equal(asym_ledger_note_gone(l, &e->id), 0);
    asym_ledger_remove(l, e);
    pthread_mutex_unlock(&l->lock);
}

static void assert_same(const struct asym_ledger_entry *a, const struct asym_ledger_entry *b)
{
    assert_int_equal(a->id.tid, b->id.tid);
    assert_int_equal(a->id.tgid, b->id.tgid);
    assert_true(a->id.start == b->id.start && a->since == b->since && a->session == b->session);
    assert_true(asym_mask_equal(&a->original, &b->original));
    assert_true(asym_mask_equal(&a->set, &b->set) && asym_mask_equal(&a->before, &b->before));
    assert_true(a->transit_cpu == b->transit_cpu && a->under_way == b->under_way);
    assert_int_equal(a->original_nice, b->original_nice);
    assert_int_equal(a->set_nice, b->set_nice);
    assert_int_equal(a->before_nice, b->before_nice);
    assert_true(a->original_reset == b->original_reset && a->boosted == b->boosted && a->full_cpuset == b->full_cpuset);
}

TEST_WITH(every_field_survives, the_tree_make, tear_down)
{
    open_it();
    for (int32_t tid = 1; tid <= 1000; tid++)
        add(ledger, tid);
    assert_int_equal(flush(ledger), 0);
    for (int32_t tid = 1; tid <= 1000; tid += 2)
        drop(ledger, tid);
    assert_int_equal(flush(ledger), 0);
    open_it();
    assert_string_equal(err.text, "");
    assert_int_equal(asym_ledger_count(ledger), 500);
    for (int32_t tid = 1; tid <= 1000; tid++) {
        const struct asym_ledger_entry *e = asym_ledger_find(ledger, tid), want = sample(tid);
        assert_true((e != NULL) == (tid % 2 == 0));
        if (e)
            assert_same(e, &want);
    }
}

TEST_WITH(no_transit_cpu_is_no_mask, the_tree_make, tear_down)
{
    open_it();
    struct asym_ledger_entry e = {.under_way = true};
    struct asym_mask found = {0};
    ledger->online = (struct asym_mask){0};
    for (unsigned c = 0; c < 2; c++)
        asym_mask_set(&ledger->online, c);
    asym_mask_set(&e.original, 0);
    asym_mask_set(&e.set, 0);
    asym_mask_set(&e.before, 1);
    /* the CPU came online after asymd read the list, or went offline: no online CPU is left to compare */
    asym_mask_set(&found, 5);
    assert_false(asym_ledger_is_set(ledger, &e, &found));
    e.transit_cpu = 7;
    assert_false(asym_ledger_is_set(ledger, &e, &found));
    assert_false(asym_ledger_looks_inherited(ledger, &e, &found, 0, 0));
}

TEST_WITH(what_is_not_flushed_is_not_on_record, the_tree_make, tear_down)
{
    open_it();
    off_t before = size_of("ledger");
    add(ledger, 1);
    assert_int_equal(size_of("ledger"), before);
    assert_int_equal(flush(ledger), 0);
    assert_true(size_of("ledger") > before);
}

#define GOOD(tid) "T " #tid " 2000000000 7 9 5 0 0 1 0 0 0 0-1 0 0-1\n"

/* Opens a ledger with this content. Checks the number of entries, and that a bad file is reported and kept as ledger.bad. */
static void expect(const char *what, size_t count, bool bad)
{
    open_it();
    if (asym_ledger_count(ledger) != count || (*err.text != '\0') != bad || (size_of("ledger.bad") >= 0) != bad)
        fail_msg("%s: %zu entries, said: '%s'", what, asym_ledger_count(ledger), err.text);
    close_it();
    unlink(the_tree_path("ledger"));
    unlink(the_tree_path("ledger.bad"));
}

TEST_WITH(bad_lines_cost_only_themselves, the_tree_make, tear_down)
{
    static const struct {
        const char *what, *lines;
        size_t count;
        bool bad;
    } cases[] = {
        {"nothing", "", 0, false},
        {"two threads", GOOD(1) GOOD(2), 2, false},
        {"torn last line", GOOD(1) "T 2 2000000000 7 9 5 0 0 1 0 0 0 0-1 0 0-", 1, false},
        {"torn last line that is whole but for its end", GOOD(1) "G 1 2000000000 7", 1, false},
        {"junk in the middle", GOOD(1) "\x01\xff\xfe junk\n" GOOD(2), 2, true},
        {"empty line", GOOD(1) "\n" GOOD(2), 2, true},
        {"torn line that was written on to", GOOD(1) "T 2 2000000" GOOD(3) GOOD(4), 2, true},
        {"too few fields", "T 1 1 7 9 5 0 0 1 0 0 0 0-1 0\n" GOOD(2), 1, true},
        {"with a CPU on the way", GOOD(1) "T 2 2000000000 7 9 5 0 0 1 0 0 0 0-1 0 0-1 1\n", 2, false},
        {"with two of them", GOOD(1) "T 2 2000000000 7 9 5 0 0 1 0 0 0 0-1 0 0-1 0-1\n", 1, true},
        {"with one that is none", GOOD(1) "T 2 2000000000 7 9 5 0 0 1 0 0 0 0-1 0 0-1 x\n", 1, true},
        {"too many fields", "T 1 1 7 9 5 0 0 1 0 0 0 0-1 0 0-1 0 0\n" GOOD(2), 1, true},
        {"hundreds of fields", "T 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", 0,
         true},
        {"thread 0", "T 0 1 7 9 5 0 0 1 0 0 0 0-1 0 0-1\n", 0, true},
        {"negative thread", "T -1 1 7 9 5 0 0 1 0 0 0 0-1 0 0-1\n", 0, true},
        {"thread beyond 32 bits", "T 4294967297 1 7 9 5 0 0 1 0 0 0 0-1 0 0-1\n", 0, true},
        {"nice out of range", "T 1 1 7 9 5 20 0 1 0 0 0 0-1 0 0-1\n", 0, true},
        {"CPU out of range", "T 1 1 7 9 5 0 0 1 0 0 0 0-1024 0 0-1\n", 0, true},
        {"mask that is no list", "T 1 1 7 9 5 0 0 1 0 0 0 0,x 0 0-1\n", 0, true},
        {"nothing to give back", "T 1 1 7 9 5 0 0 1 0 0 0 - 0 0-1\n", 0, true},
        {"gone", GOOD(1) GOOD(2) "G 1 2000000000 7\n", 1, false},
        {"gone, but an earlier thread of that number", GOOD(1) "G 1 2000000000 6\n", 1, false},
        {"gone without having been there", "G 1 2000000000 7\n", 0, false},
        {"the same thread again", GOOD(1) GOOD(1) GOOD(1), 1, false},
        {"its number used again", GOOD(1) "T 1 2000000000 8 9 5 0 0 1 0 0 0 0-1 0 0-1\n", 1, false},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        put_file(cases[i].lines);
        expect(cases[i].what, cases[i].count, cases[i].bad);
    }
}

TEST_WITH(files_that_are_no_ledgers_are_renamed, the_tree_make, tear_down)
{
    static const char zeros[4096] = {0};
    tree_write_bytes(&the_tree, "ledger", "", 0);
    expect("empty file", 0, false);
    tree_write_bytes(&the_tree, "ledger", zeros, sizeof zeros);
    expect("zeros", 0, true);
    tree_write_bytes(&the_tree, "ledger", "asymd-ledger 1 ", 15);
    expect("torn header", 0, true);
    tree_write_bytes(&the_tree, "ledger", "asymd-ledger 9 x\n" GOOD(1), sizeof "asymd-ledger 9 x\n" GOOD(1) - 1);
    expect("a later version", 0, true);
    assert_int_equal(mkdir(the_tree_path("ledger"), 0755), 0);
    open_it();
    assert_true(*err.text != '\0' && asym_ledger_count(ledger) == 0);
}

TEST_WITH(another_boot_s_file_is_stale_as_a_whole, the_tree_make, tear_down)
{
    static const char text[] = "asymd-ledger 1 00000000-0000-0000-0000-000000000000\n" GOOD(1) "junk\n";
    tree_write_bytes(&the_tree, "ledger", text, sizeof text - 1);
    expect("another boot", 0, false);
}

TEST_WITH(a_line_of_10_megabytes_is_one_bad_line, the_tree_make, tear_down)
{
    const size_t n = 10u << 20;
    char *lines = malloc(n + 256);
    assert_non_null(lines);
    size_t used = (size_t)sprintf(lines, "%s", GOOD(1));
    memset(lines + used, '1', n);
    memcpy(lines + used + n, "\n" GOOD(2), sizeof "\n" GOOD(2));
    put_file(lines);
    expect("digits", 2, true);
    memcpy(lines + used, "T 3 1 7 9 5 0 0 1 0 0 0 0-1 0 ", 28);
    put_file(lines);
    expect("a mask of digits", 2, true);
    for (size_t i = used; i < used + n; i++)
        lines[i] = ' ';
    put_file(lines);
    expect("blanks", 2, true);
    free(lines);
}

TEST_WITH(a_second_opener_gets_the_name_of_the_holder, the_tree_make, tear_down)
{
    struct asym_ledger *second = NULL;
    open_it();
    char pid[32];
    record(1);
    off_t size = size_of("ledger");
    assert_int_equal(asym_ledger_open(the_tree.path, &second, &err), -EBUSY);
    assert_null(second);
    snprintf(pid, sizeof pid, "PID %d", (int)getpid());
    assert_non_null(strstr(err.text, pid));
    assert_int_equal(size_of("ledger"), size);
    open_it();
    assert_int_equal(asym_ledger_count(ledger), 1);
}

/* A user who lists it into memory that another process of the user serves (FUSE) holds its lock. */
TEST_WITH(other_users_cannot_list_the_directory, the_tree_make, tear_down)
{
    struct stat found;
    const mode_t before = umask(0);
    assert_int_equal(asym_ledger_open(the_tree_path("new"), &ledger, NULL), 0);
    umask(before);
    close_it();
    assert_int_equal(stat(the_tree_path("new"), &found), 0);
    assert_int_equal(found.st_mode & 0777, 0711);
}

TEST_WITH(a_directory_that_cannot_be_made_is_reported, the_tree_make, tear_down)
{
    assert_int_equal(asym_ledger_open("/nonexistent-asymd/run", &ledger, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent-asymd/run"));
    assert_int_equal(asym_ledger_open("/proc/self/status", &ledger, &err), -ENOTDIR);
    assert_null(ledger);
}

TEST_WITH(the_file_is_removed_only_when_it_holds_nothing, the_tree_make, tear_down)
{
    open_it();
    record(1);
    close_it();
    assert_true(size_of("ledger") > 0);
    open_it();
    drop(ledger, 1);
    assert_int_equal(flush(ledger), 0);
    close_it();
    assert_int_equal(size_of("ledger"), -1);
    asym_ledger_close(NULL);
}

static ino_t inode_of(const char *name)
{
    struct stat st;
    return stat(the_tree_path(name), &st) < 0 ? 0 : st.st_ino;
}

TEST_WITH(records_of_capped_cpus_stay_beside_threads, the_tree_make, tear_down)
{
    static const char caps[] = "C cpufreq 4 4-5 1 2 3 4 set\nC the ledger keeps any text\n";
    open_it();
    assert_string_equal(asym_ledger_caps(ledger), "");
    record(4);
    assert_int_equal(asym_ledger_set_caps(ledger, caps), 0);
    for (int32_t tid = 5; tid < 400; tid++) { /* the file is rewritten meanwhile */
        record(tid);
        drop(ledger, tid);
    }
    assert_int_equal(flush(ledger), 0);
    open_it();
    assert_string_equal(err.text, "");
    assert_string_equal(asym_ledger_caps(ledger), caps);
    assert_int_equal(asym_ledger_count(ledger), 1);
    drop(ledger, 4);
    assert_int_equal(flush(ledger), 0);
    open_it();
    assert_string_equal(asym_ledger_caps(ledger), caps);
    assert_int_equal(asym_ledger_set_caps(ledger, ""), 0);
    close_it();
    assert_int_equal(size_of("ledger"), -1);
}

/* 10 valid records, and 64 + 3 * 10 in all: with one more record asymd rewrites the file. */
TEST_WITH(the_file_is_rewritten_when_most_of_it_is_stale, the_tree_make, tear_down)
{
    open_it();
    off_t largest = 0;
    for (int32_t tid = 1; tid <= 10; tid++)
        add(ledger, tid);
    assert_int_equal(flush(ledger), 0);
    ino_t inode = inode_of("ledger");
    int rewritten = 0, records = 10;
    for (int i = 0; i < 10000; i++) {
        pthread_mutex_lock(&ledger->lock);
        assert_int_equal(asym_ledger_note(ledger, asym_ledger_find(ledger, 1 + i % 10)), 0);
        pthread_mutex_unlock(&ledger->lock);
        assert_int_equal(flush(ledger), 0);
        largest = size_of("ledger") > largest ? size_of("ledger") : largest;
        assert_int_equal(inode_of("ledger") != inode, ++records > 3 * 10 + 64);
        if (inode_of("ledger") == inode)
            continue;
        inode = inode_of("ledger");
        records = 10;
        rewritten++;
    }
    assert_int_equal(rewritten, 10000 / (3 * 10 + 64 + 1 - 10));
    /* at most 3 * 10 + 64 records, each below 120 bytes */
    assert_true(largest < 100 * 120 + 64);
    open_it();
    assert_int_equal(asym_ledger_count(ledger), 10);
}

TEST_WITH(a_batch_written_in_part_spoils_nothing_after_it, the_tree_make, tear_down)
{
    open_it();
    signal(SIGXFSZ, SIG_IGN);
    record(1);
    const size_t whole = (size_t)size_of("ledger");
    limit_files(whole + 20);
    add(ledger, 2);
    assert_int_equal(flush(ledger), -EFBIG);
    assert_int_equal(size_of("ledger"), whole);
    add(ledger, 3);
    assert_int_equal(flush(ledger), -EFBIG);
    limit_files(RLIM_INFINITY);
    record(4);
    open_it();
    assert_string_equal(err.text, "");
    assert_int_equal(asym_ledger_count(ledger), 4);
}

/* The ledger opens with the recorded entries. A later write must create the new file. */
TEST_WITH(a_file_that_cannot_be_written_anew_is_read_all_the_same, the_tree_make, tear_down)
{
    struct asym_restore_report report;
    put_file(GOOD(1) GOOD(2));
    signal(SIGXFSZ, SIG_IGN);
    limit_files(10);
    open_it();
    assert_non_null(strstr(err.text, "cannot write"));
    assert_int_equal(asym_ledger_count(ledger), 2);
    assert_int_equal(asym_ledger_housekeeping(ledger), -EFBIG);
    add(ledger, 3);
    assert_int_equal(flush(ledger), -EFBIG);
    limit_files(RLIM_INFINITY);
    assert_int_equal(asym_ledger_housekeeping(ledger), 0); /* open has reported the missing file already */
    open_it();
    assert_int_equal(asym_ledger_count(ledger), 3);
    limit_files(10);
    asym_ledger_restore(ledger, &report);
    assert_int_equal(report.gone, 3);
    close_it();
    limit_files(RLIM_INFINITY);
    assert_int_equal(size_of("ledger"), -1); /* files can be removed on a full disk */
}

TEST_WITH(what_has_the_names_of_its_files_is_not_written_through, the_tree_make, tear_down)
{
    char text[16];
    put_file(GOOD(1) "junk\n");
    tree_write(&the_tree, "precious", "as it was");
    assert_int_equal(mkdir(the_tree_path("ledger.new"), 0700), 0);
    assert_int_equal(symlink("precious", the_tree_path("ledger.new.1")), 0);
    assert_int_equal(mkdir(the_tree_path("ledger.bad"), 0700), 0);
    open_it();
    assert_int_equal(asym_ledger_count(ledger), 1);
    assert_non_null(strstr(err.text, "kept as ledger.bad.1"));
    assert_true(size_of("ledger.bad.1") > 0);
    close_it();
    /* The file itself was written anew. */
    open_it();
    assert_string_equal(err.text, "");
    close_it();
    assert_true(file_read(the_tree_path("precious"), text, sizeof text) > 0);
    assert_string_equal(text, "as it was");
}

static void remove_it(void)
{
    assert_int_equal(unlink(the_tree_path("ledger")), 0);
}

static void cut_it(void)
{
    assert_int_equal(truncate(the_tree_path("ledger"), 3), 0);
}

static void write_to_it(void)
{
    FILE *f = fopen(the_tree_path("ledger"), "a");
    assert_true(f && fputs("junk\n", f) > 0 && fclose(f) == 0);
}

static void replace_it(void)
{
    char from[128];
    tree_write_bytes(&the_tree, "other", "", 0);
    snprintf(from, sizeof from, "%s", the_tree_path("other"));
    assert_int_equal(rename(from, the_tree_path("ledger")), 0);
}

static void remove_lock(void)
{
    assert_int_equal(unlink(the_tree_path("lock")), 0);
}

static void remove_all(void)
{
    remove_it();
    remove_lock();
    assert_int_equal(rmdir(the_tree.path), 0);
}

/* The next write notices it, or asym_ledger_housekeeping without a write. Both report it once. */
TEST_WITH(what_others_do_to_the_file_is_noticed_and_undone, the_tree_make, tear_down)
{
    static void (*const deeds[])(void) = {remove_it, cut_it, write_to_it, replace_it, remove_lock, remove_all};
    for (size_t i = 0; i < 2 * ASYM_LENGTH(deeds); i++) {
        struct asym_ledger *second = NULL;
        open_it();
        record(1);
        assert_int_equal(asym_ledger_housekeeping(ledger), 0);
        deeds[i / 2]();
        add(ledger, 2);
        if (i % 2)
            assert_int_equal(flush(ledger), 0);
        assert_int_equal(asym_ledger_housekeeping(ledger), 1);
        assert_int_equal(asym_ledger_housekeeping(ledger), 0);
        assert_int_equal(asym_ledger_open(the_tree.path, &second, NULL), -EBUSY);
        open_it();
        assert_int_equal(asym_ledger_count(ledger), 2);
        drop(ledger, 1);
        drop(ledger, 2);
        close_it();
    }
}

TEST_WITH(a_second_one_that_came_meanwhile_is_not_written_over, the_tree_make, tear_down)
{
    open_it();
    record(1);
    remove_all();
    struct asym_ledger *second;
    assert_int_equal(asym_ledger_open(the_tree.path, &second, NULL), 0);
    add(second, 2);
    add(second, 3);
    assert_int_equal(flush(second), 0);
    assert_int_equal(asym_ledger_housekeeping(ledger), -EBUSY);
    add(ledger, 4);
    assert_int_equal(flush(ledger), -EBUSY);
    for (int32_t tid = 1; tid <= 4; tid += 3)
        drop(ledger, tid);
    close_it();
    assert_int_equal(asym_ledger_housekeeping(second), 0);
    asym_ledger_close(second);
    open_it();
    assert_int_equal(asym_ledger_count(ledger), 2);
}

TEST_WITH(threads_that_are_gone_need_nothing, the_tree_make, tear_down)
{
    struct asym_restore_report report;
    open_it();
    for (int32_t tid = NOBODY; tid < NOBODY + 100; tid++)
        add(ledger, tid);
    assert_int_equal(flush(ledger), 0);
    asym_ledger_restore(ledger, &report);
    assert_int_equal(report.gone, 100);
    assert_int_equal(report.restored + report.inherited + report.foreign + report.failed, 0);
    assert_int_equal(asym_ledger_count(ledger), 0);
}

/* The hash table closes gaps by moving entries. Compares it with a plain array at every size, with colliding numbers. */
TEST_WITH(the_table_finds_what_is_in_it, the_tree_make, tear_down)
{
    static bool in[4096];
    open_it();
    uint32_t seed = 2010;
    size_t n = 0;
    memset(in, 0, sizeof in);
    for (int i = 0; i < 60000; i++) {
        seed = seed * 1664525u + 1013904223u;
        const size_t k = seed >> 20;
        const struct asym_taskid id = {.tid = (int32_t)(k * 64 + 1), .tgid = 1, .start = 1};
        pthread_mutex_lock(&ledger->lock);
        struct asym_ledger_entry *e = asym_ledger_find(ledger, id.tid);
        assert_true((e != NULL) == in[k]);
        if (e)
            asym_ledger_remove(ledger, e);
        else
            assert_non_null(asym_ledger_add(ledger, &id));
        pthread_mutex_unlock(&ledger->lock);
        n += in[k] ? (size_t)-1 : 1;
        in[k] = !in[k];
        assert_int_equal(asym_ledger_count(ledger), n);
    }
}

TEST_WITH(a_release_is_not_pushed_out_by_a_fork_storm, the_tree_make, tear_down)
{
    open_it();
    asym_ledger_note_release(ledger, 4242, 1000);
    for (int i = 0; i < 100000; i++)
        asym_ledger_note_release(ledger, 5000 + i % 3000, 1001 + (asym_usec)i);
    assert_true(asym_ledger_was_released(ledger, 4242, 1000));
    assert_false(asym_ledger_was_released(ledger, 4242, 1001));
    assert_false(asym_ledger_was_released(ledger, 4243, 0));
}

TEST_MAIN
