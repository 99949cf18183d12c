/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the ledger overlay: it reads the ledger of a running asymd, and shows threads as they would be without asymd. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/mask.h"
#include "linux/enforce/ledger-internal.h"
#include "linux/enforce/enforce.h"
#include "support/engine-fixture.h"
#include "support/test.h"
#include "support/tree.h"

/* No real thread has these numbers: kernel.pid_max is at most 4194304. */
enum { PID = 2000000000, START = 7 };

/* Thread PID + 1 originally had nice 3 and CPUs 0-1, its full cpuset. asymd set CPU 0 and nice -4, then CPU 1 and -5. */
#define RECORD "T 2000000001 2000000000 7 9 5 3 0 1 1 -5 -4 0-1 1 0\n"
#define GONE   "G 2000000001 2000000000 7\n"

static void put_text(const char *header, const char *boot, const char *lines)
{
    tree_write(&the_tree, "ledger", "%s%s\n%s", header, boot, lines);
}

static void put_lines(const char *lines)
{
    char boot[64];
    assert_true(file_read("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0);
    boot[strcspn(boot, "\n")] = '\0';
    put_text("asymd-ledger 1 ", boot, lines);
}

static int files(void)
{
    int n = 0;
    DIR *d = opendir(the_tree.path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* Peeks at this content. Checks the number of entries and the message, and that no file has changed. */
static void expect(const char *what, size_t count, const char *said)
{
    struct asym_error err = {""};
    struct asym_ledger *l = NULL;
    struct stat before, after;
    assert_int_equal(stat(the_tree_path("ledger"), &before), 0);
    assert_int_equal(asym_ledger_peek(the_tree.path, &l, &err), 0);
    if (asym_ledger_count(l) != count || !strstr(err.text, said) || (*said == '\0' && *err.text != '\0'))
        fail_msg("%s: %zu entries, said: '%s'", what, asym_ledger_count(l), err.text);
    asym_ledger_close(l);
    assert_int_equal(stat(the_tree_path("ledger"), &after), 0);
    assert_int_equal(files(), 1);
    assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
}

TEST_WITH(what_is_on_record_is_read_and_left_as_it_is, the_tree_make, the_tree_remove)
{
    static const struct {
        const char *what, *lines, *said;
        size_t count;
    } cases[] = {
        {"nothing", "", "", 0},
        {"one thread", RECORD, "", 1},
        {"gone", RECORD GONE, "", 0},
        {"torn last record", RECORD "T 2000000002 2000000000 7 9 5 3 0", "", 1},
        {"torn end of the only record", "T 2000000001 2000000000 7 9 5 3 0 1 1 -5 -4 0-1 1 0", "", 0},
        {"junk beside a record", "\x01\xff junk\n" RECORD, "/ledger: asymd cannot parse 1 line", 1},
        {"more junk", "a\n\nb\n" RECORD, "/ledger: asymd cannot parse 3 lines", 1},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        put_lines(cases[i].lines);
        expect(cases[i].what, cases[i].count, cases[i].said);
    }
    put_text("asymd-ledger 1 ", "00000000-0000-0000-0000-000000000000", RECORD);
    expect("another boot", 0, "");
    put_text("asymd-ledger 2 ", "x", RECORD);
    expect("another version", 0, "cannot parse");
    put_text("", "junk", RECORD);
    expect("junk", 0, "cannot parse");
}

TEST_WITH(a_missing_file_is_an_empty_one_and_one_that_cannot_be_read_is_reported, the_tree_make, the_tree_remove)
{
    struct asym_error err = {""};
    struct asym_ledger *l = NULL;
    const char *const none[] = {the_tree.path, "/nonexistent-asymd/run"};
    for (size_t i = 0; i < ASYM_LENGTH(none); i++) {
        assert_int_equal(asym_ledger_peek(none[i], &l, &err), 0);
        assert_string_equal(err.text, "");
        assert_int_equal(asym_ledger_count(l), 0);
        asym_ledger_close(l);
    }
    assert_int_equal(files(), 0);
    l = NULL;
    assert_int_equal(asym_ledger_peek("/proc/self/status", &l, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, "/proc/self/status"));
    assert_null(l);
}

/* Another ledger holds the lock meanwhile. Neither disturbs the other. */
TEST_WITH(it_takes_no_lock, the_tree_make, the_tree_remove)
{
    struct asym_ledger *holder = NULL, *l = NULL, *second = NULL;
    put_lines(RECORD);
    assert_int_equal(asym_ledger_open(the_tree.path, &holder, NULL), 0);
    assert_int_equal(asym_ledger_peek(the_tree.path, &l, NULL), 0);
    assert_int_equal(asym_ledger_count(l), 1);
    assert_int_equal(asym_ledger_open(the_tree.path, &second, NULL), -EBUSY);
    asym_ledger_close(holder);
    assert_int_equal(asym_ledger_open(the_tree.path, &second, NULL), 0);
    asym_ledger_close(second);
    asym_ledger_close(l);
    assert_int_equal(access(the_tree_path("ledger"), F_OK), 0);
}

TEST_WITH(the_overlay_undoes_only_what_asymd_has_set, the_tree_make, the_tree_remove)
{
    static const struct {
        const char *what;
        struct asym_taskid id;
        const char *found;
        int8_t nice, own_nice;
        bool ours;
    } cases[] = {
        {"as it was set last", {PID + 1, PID, START}, "1", -5, 3, true},
        {"not changed yet", {PID + 1, PID, START}, "0", -4, 3, true},
        {"the mask, not yet the nice value", {PID + 1, PID, START}, "1", -4, 3, true},
        {"reniced by another process", {PID + 1, PID, START}, "1", 11, 11, true},
        {"another mask since", {PID + 1, PID, START}, "0-1", -5, 0, false},
        {"another thread of that number", {PID + 1, PID, START + 1}, "1", -5, 0, false},
        {"another process of that thread number", {PID + 1, PID + 1, START}, "1", -5, 0, false},
        {"not on record", {PID + 2, PID, START}, "1", -5, 0, false},
    };
    struct asym_ledger *l = NULL;
    const struct asym_mask all = engine_fixture_cpus("0-1");
    put_lines(RECORD);
    assert_int_equal(asym_ledger_peek(the_tree.path, &l, NULL), 0);
    /* The test machine may have any number of CPUs. */
    l->online = l->possible = engine_fixture_cpus("0-7");
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        const struct asym_mask found = engine_fixture_cpus(cases[i].found);
        struct asym_ledger_own own;
        if (asym_ledger_own(l, &cases[i].id, &found, cases[i].nice, &own) != cases[i].ours)
            fail_msg("%s: %s", cases[i].what, cases[i].ours ? "not restored" : "restored");
        if (!cases[i].ours)
            continue;
        assert_true(asym_mask_equal(&own.mask, &all));
        assert_int_equal(own.nice, cases[i].own_nice);
        assert_true(own.full_cpuset);
    }
    asym_ledger_close(l);
}

/* On a machine with one CPU, masks have no other CPU. */
static struct asym_mask possible(struct asym_mask m)
{
    struct asym_ledger *l;
    assert_int_equal(asym_ledger_peek("/nonexistent-asymd", &l, NULL), 0);
    m = asym_mask_and(&m, &l->possible);
    asym_ledger_close(l);
    return m;
}

/* A process with two threads, and the change that the ledger gets during a snapshot. */
static struct {
    struct asym_source inner;
    struct asym_task tasks[2];
    struct asym_mask all, set, larger;
    const char *ledger_after; /* NULL: unchanged */
    int r;
} w;

static int next(struct asym_source *source, struct asym_snapshot *ret)
{
    if (w.ledger_after)
        put_lines(w.ledger_after);
    *ret = (struct asym_snapshot){.now = 1, .tasks = w.tasks, .n_tasks = 2};
    return w.r;
}

static struct asym_source *begin(const char *lines)
{
    struct asym_source *source;
    struct asym_error err = {""};
    memset(&w, 0, sizeof w);
    w.inner.next = next;
    w.r = 1;
    w.all = possible(engine_fixture_cpus("0-1"));
    w.set = engine_fixture_cpus("1");
    w.larger = engine_fixture_cpus("0-2");
    w.tasks[0] = (struct asym_task){.id = {PID, PID, START}, .mask = &w.all, .cpuset = &w.all};
    w.tasks[1] = (struct asym_task){.id = {PID + 1, PID, START}, .nice = -5, .mask = &w.set, .cpuset = &w.all};
    if (lines)
        put_lines(lines);
    assert_int_equal(asym_ledger_overlay_new(&w.inner, the_tree.path, &source, &err), 0);
    assert_string_equal(err.text, "");
    return source;
}

static struct asym_snapshot take_sample(struct asym_source *source)
{
    struct asym_snapshot s;
    assert_int_equal(source->next(source, &s), 1);
    assert_int_equal(s.now, 1);
    assert_int_equal(s.n_tasks, 2);
    assert_int_equal(s.tasks[1].id.tid, PID + 1);
    return s;
}

static void assert_restored(const struct asym_snapshot *s, bool restored)
{
    assert_true(asym_mask_equal(s->tasks[1].mask, restored ? &w.all : &w.set));
    assert_int_equal(s->tasks[1].nice, restored ? 3 : -5);
    /* Equal masks have equal addresses, also if the overlay did not change them. */
    assert_true((s->tasks[1].mask == s->tasks[0].mask) == restored);
    assert_true(s->tasks[1].cpuset == s->tasks[0].cpuset && s->tasks[0].mask == s->tasks[0].cpuset);
    assert_true(asym_mask_equal(s->tasks[0].mask, &w.all));
    assert_int_equal(s->tasks[0].nice, 0);
}

TEST_WITH(a_snapshot_is_as_if_nothing_had_been_set, the_tree_make, the_tree_remove)
{
    struct asym_source *source = begin(RECORD);
    for (int i = 0; i < 3; i++) {
        const struct asym_snapshot s = take_sample(source);
        assert_restored(&s, true);
    }
    /* The overlay must not change the data of the inner source. */
    assert_ptr_equal(w.tasks[1].mask, &w.set);
    w.r = 0;
    struct asym_snapshot s;
    assert_int_equal(source->next(source, &s), 0);
    w.r = -EMFILE;
    assert_int_equal(source->next(source, &s), -EMFILE);
    source->close(source);
}

TEST_WITH(without_a_record_a_snapshot_is_what_it_is, the_tree_make, the_tree_remove)
{
    struct asym_source *source = begin(NULL);
    struct asym_snapshot s = take_sample(source);
    assert_restored(&s, false);
    put_lines("T 2000000001 2000000000 8 9 5 3 0 1 1 -5 -4 0-1 1 0\n");
    s = take_sample(source);
    assert_restored(&s, false);
    source->close(source);
}

TEST_WITH(changes_during_the_sample_are_known, the_tree_make, the_tree_remove)
{
    struct asym_source *source = begin("");
    w.ledger_after = RECORD;
    struct asym_snapshot s = take_sample(source);
    assert_restored(&s, true);
    /* asymd releases the thread right after the inner snapshot. Only the earlier read of the ledger still has it. */
    w.ledger_after = RECORD GONE;
    s = take_sample(source);
    assert_restored(&s, true);
    /* Now the mask counts as the thread's own choice. */
    s = take_sample(source);
    assert_restored(&s, false);
    source->close(source);
}

TEST_WITH(a_thread_with_the_full_cpuset_has_all_of_it_when_it_has_grown, the_tree_make, the_tree_remove)
{
    struct asym_source *source = begin(RECORD);
    w.tasks[1].cpuset = &w.larger;
    struct asym_snapshot s = take_sample(source);
    assert_ptr_equal(s.tasks[1].mask, s.tasks[1].cpuset);
    assert_true(asym_mask_equal(s.tasks[1].mask, &w.larger));
    /* A thread that had set its own mask keeps it. */
    put_lines("T 2000000001 2000000000 7 9 5 3 0 0 1 -5 -4 0-1 1 0\n");
    take_sample(source);
    s = take_sample(source);
    assert_true(asym_mask_equal(s.tasks[1].mask, &w.all));
    source->close(source);
}

TEST_WITH(a_ledger_that_cannot_be_read_is_reported_and_read_again_later, the_tree_make, the_tree_remove)
{
    struct asym_error err = {""};
    struct asym_source *source = begin(NULL), *second;
    assert_int_equal(mkdir(the_tree_path("ledger"), 0755), 0);
    assert_int_equal(asym_ledger_overlay_new(&w.inner, the_tree.path, &second, &err), 0);
    assert_non_null(strstr(err.text, "/ledger"));
    struct asym_snapshot s = take_sample(second);
    assert_restored(&s, false);
    assert_int_equal(rmdir(the_tree_path("ledger")), 0);
    put_lines(RECORD);
    s = take_sample(second);
    assert_restored(&s, true);
    second->close(second);
    source->close(source);
}

TEST_MAIN
