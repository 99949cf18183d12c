/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Crash recovery: what asymd logs and returns when it restores the threads on record. The kernel's threads are fake. */

#include "app/crash-recovery.h"
#include "base/mask.h"
#include "linux/enforce/ledger-internal.h"
#include "support/captured-log.h"
#include "support/fake-kernel.h"
#include "support/tree.h"
#include "support/test.h"

/* No real process has this number: kernel.pid_max is at most 4194304. */
#define TID 2000000000

struct recovery_fixture {
    struct tree tree;
    struct asym_run run;
    struct asym_ledger *ledger;
    char text[4096];
};

static void set_up(struct recovery_fixture *f)
{
    char option[128];
    fake_kernel_reset();
    tree_make(&f->tree);
    snprintf(option, sizeof option, "asymd.state_dir=%s", f->tree.path);
    f->run = (struct asym_run){.root = {.fd = -1}, .log = {.level = LOG_DEBUG}};
    assert_int_equal(asym_settings_new(&f->run.settings), 0);
    assert_int_equal(asym_settings_set(f->run.settings, option, "test", NULL), 0);
    assert_int_equal(asym_crash_recovery_open(&f->run, &f->ledger, NULL), 0);
    fake_kernel_cpus(f->ledger, "0-7", "0-7", "");
}

static void tear_down(struct recovery_fixture *f)
{
    asym_ledger_close(f->ledger);
    asym_settings_free(f->run.settings);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct recovery_fixture, f, set_up, tear_down)

/* asymd steered a thread with CPUs 0-5 to CPUs 4-7, and found now. */
static struct fake_thread *steered(struct recovery_fixture *f, int32_t tid, uint64_t now)
{
    const struct asym_taskid id = {tid, tid, 1000};
    struct fake_thread *t = fake_kernel_thread(tid, tid, fake_mask(now));
    struct asym_ledger_entry *e = asym_ledger_add(f->ledger, &id);
    assert_non_null(e);
    t->start = id.start;
    e->original = e->before = fake_mask(0x3f);
    e->set = fake_mask(0xf0);
    e->since = 50000;
    assert_int_equal(asym_ledger_note(f->ledger, e), 0);
    return t;
}

static int put_back(struct recovery_fixture *f)
{
    captured_log_begin();
    const int r = asym_crash_recovery_restore(&f->run, f->ledger, "at the end");
    captured_log_end(f->text, sizeof f->text);
    return r;
}

TEST_F(without_a_record_nothing_is_logged)
{
    assert_int_equal(put_back(f), 0);
    assert_string_equal(f->text, "");
}

TEST_F(threads_are_restored_and_counted)
{
    const struct fake_thread *a = steered(f, TID, 0xf0), *b = steered(f, TID + 1, 0xf0),
                             *other = steered(f, TID + 2, 0x81);
    assert_int_equal(put_back(f), 0);
    assert_int_equal(a->mask.w[0], 0x3f);
    assert_int_equal(b->mask.w[0], 0x3f);
    assert_int_equal(other->mask.w[0], 0x81);
    assert_non_null(
        strstr(f->text, "at the end: restored 2 threads; skipped 1: another program has changed its affinity"));
    assert_int_equal(asym_ledger_count(f->ledger), 0);
    assert_int_equal(put_back(f), 0);
    assert_string_equal(f->text, "");
}

TEST_F(a_thread_that_cannot_be_restored_is_an_error_with_its_reason)
{
    struct fake_thread *t = steered(f, TID, 0xf0);
    fake_kernel_fail(t, FAKE_SET_MASK, -EPERM, 0);
    assert_int_equal(put_back(f), -EPERM);
    assert_non_null(strstr(f->text, "1 failed: Operation not permitted"));
    assert_int_equal(t->mask.w[0], 0xf0);
    /* It stays on record. */
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    fake_kernel_fail(t, FAKE_SET_MASK, 0, 0);
    assert_int_equal(put_back(f), 0);
    assert_int_equal(t->mask.w[0], 0x3f);
}

/* A start that fails gives back what an earlier asymd left, and closes what it opened. */
TEST_F(a_start_that_fails_restores_nothing_twice)
{
    asym_ledger_close(f->ledger);
    f->ledger = NULL;
    captured_log_begin();
    asym_crash_recovery_abandon(&f->run);
    asym_crash_recovery_abandon(&f->run);
    captured_log_end(f->text, sizeof f->text);
    assert_string_equal(f->text, "");
}

TEST_F(a_file_that_is_no_ledger_is_logged_and_a_missing_directory_is_an_error)
{
    struct asym_error err = {""};
    asym_ledger_close(f->ledger);
    f->ledger = NULL;
    tree_write(&f->tree, "ledger", "no ledger\n");
    captured_log_begin();
    assert_int_equal(asym_crash_recovery_open(&f->run, &f->ledger, &err), 0);
    captured_log_end(f->text, sizeof f->text);
    assert_non_null(strstr(f->text, "ledger"));
    assert_int_equal(captured_log_count(f->text, "\n"), 1);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
    tree_write(&f->tree, "file", "x");
    char option[128];
    snprintf(option, sizeof option, "asymd.state_dir=%s/file", f->tree.path);
    assert_int_equal(asym_settings_set(f->run.settings, option, "test", NULL), 0);
    struct asym_ledger *none = NULL;
    assert_int_equal(asym_crash_recovery_open(&f->run, &none, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, "/file"));
    assert_null(none);
}

TEST_MAIN
