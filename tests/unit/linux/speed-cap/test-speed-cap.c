/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Caps CPUs and restores them, with a method that obeys, refuses or ignores, or whose limits another program changes. */
#include <sys/stat.h>

#include "base/mask.h"
#include "linux/speed-cap/speed-cap.h"
#include "support/tree.h"
#include "support/test.h"

#define CPUS 8
#define MIN  700000
#define MAX  2800000

/* Frequencies in steps of 100 MHz. */
static struct fake {
    struct asym_cap_state state[CPUS];
    int refuse[CPUS]; /* -errno of a write */
    /* The kernel's worker applies a limit late: this many reads still show the old limit. */
    struct asym_cap_state coming[CPUS];
    int lag, stale[CPUS];
    bool offline[CPUS], ignores;
    int writes_left; /* after these, as if asymd had been killed */
    int n_writes, n_reads;
} fake;

static int fake_probe(const void *ctx, int cpu, char *why, size_t size)
{
    snprintf(why, size, "never");
    return 0;
}

static int fake_read(const void *ctx, int cpu, struct asym_cap_state *ret)
{
    fake.n_reads++;
    if (fake.offline[cpu])
        return -ENODEV;
    if (fake.stale[cpu] > 0 && --fake.stale[cpu] == 0)
        fake.state[cpu] = fake.coming[cpu];
    *ret = fake.state[cpu];
    return 0;
}

static int fake_write(const void *ctx, int cpu, const struct asym_cap_state *from, const struct asym_cap_state *to)
{
    if (fake.refuse[cpu] < 0 || fake.offline[cpu])
        return fake.offline[cpu] ? -ENODEV : fake.refuse[cpu];
    if (fake.writes_left-- <= 0)
        return -EINTR;
    fake.n_writes++;
    if (fake.ignores)
        return 0;
    fake.coming[cpu] = *to;
    fake.coming[cpu].low = to->low / 100000 * 100000;
    fake.coming[cpu].high = to->high / 100000 * 100000;
    fake.stale[cpu] = fake.lag;
    if (fake.lag == 0)
        fake.state[cpu] = fake.coming[cpu];
    return 0;
}

static int fake_choose(const void *ctx, int cpu, const struct asym_slow_speed *speed, const struct asym_cap_state *now,
                       struct asym_cap_state *ret)
{
    *ret = *now;
    ret->low = ret->high = speed->khz ? speed->khz : (uint64_t)(speed->share * MAX);
    return 0;
}

static double fake_share(const void *ctx, int cpu, const struct asym_cap_state *state)
{
    return (double)state->high / MAX;
}

static const struct asym_cap_method method = {
    .name = "fake",
    .probe = fake_probe,
    .read = fake_read,
    .write = fake_write,
    .choose = fake_choose,
    .share = fake_share,
};
static const struct asym_cap_method *const methods[] = {&method, NULL};

struct fixture {
    struct tree dir;
    struct asym_machine machine;
    struct asym_ledger *ledger;
    struct asym_speed_cap *a;
    struct asym_error err;
};

static void open_it(struct fixture *f)
{
    assert_int_equal(asym_ledger_open(f->dir.path, &f->ledger, &f->err), 0);
    assert_int_equal(asym_speed_cap_open(f->ledger, methods, &f->a, &f->err), 0);
}

static void close_it(struct fixture *f)
{
    asym_speed_cap_close(f->a);
    asym_ledger_close(f->ledger);
}

/* The C library had no memory for the text at the end of the stream, where its fclose returns 0. */
static bool no_text;
FILE *__real_open_memstream(char **ret_text, size_t *ret_size);
FILE *__wrap_open_memstream(char **ret_text, size_t *ret_size);
FILE *__wrap_open_memstream(char **ret_text, size_t *ret_size)
{
    return no_text ? fopen("/dev/null", "w") : __real_open_memstream(ret_text, ret_size);
}

/* Eight CPUs, two to a frequency domain. */
static void set_up(struct fixture *f)
{
    tree_make(&f->dir);
    f->machine.n_cpus = CPUS;
    fake = (struct fake){.writes_left = 1000};
    for (unsigned c = 0; c < CPUS; c++) {
        asym_mask_set(&f->machine.online, c);
        f->machine.cpus[c] = (struct asym_cpu){.core = (int16_t)c, .freq_domain = (int16_t)(c / 2)};
        fake.state[c] = (struct asym_cap_state){.low = MIN + 100000 * c, .high = MAX};
    }
    f->machine.usable = f->machine.online;
    assert_int_equal(asym_machine_finish(&f->machine), 0);
    open_it(f);
}

static void tear_down(struct fixture *f)
{
    close_it(f);
    tree_remove(&f->dir);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

/* Drops the state in memory, as a kill does. */
static void reopen(struct fixture *f)
{
    close_it(f);
    open_it(f);
}

static int set(struct fixture *f, const char *list, double share)
{
    struct asym_mask slow;
    const struct asym_slow_speeds speed = {.rest = {.share = share}};
    assert_int_equal(asym_mask_parse_list(list, strlen(list), &slow), 0);
    return asym_speed_cap_set(f->a, &method, &f->machine, &slow, &speed, &f->err);
}

static bool as_before(void)
{
    for (unsigned c = 0; c < CPUS; c += 2)
        if (fake.state[c].low != MIN + 100000 * c || fake.state[c].high != MAX)
            return false;
    return true;
}

/* Does the file record a capped CPU? */
static bool is_recorded(const struct fixture *f)
{
    struct asym_ledger *l;
    struct asym_error err = {""};
    assert_int_equal(asym_ledger_peek(f->dir.path, &l, &err), 0);
    assert_string_equal(err.text, "");
    const bool is = *asym_ledger_caps(l) != '\0';
    asym_ledger_close(l);
    return is;
}

TEST_F(slow_cpus_are_held_and_given_back)
{
    struct asym_speed_restore_report report;
    assert_int_equal(set(f, "4-7", 0.5), 0);
    assert_true(fake.state[4].low == MAX / 2 && fake.state[4].high == MAX / 2 && fake.state[6].high == MAX / 2);
    assert_true(fake.state[0].high == MAX);
    assert_true(is_recorded(f));
    struct asym_machine m = f->machine;
    assert_int_equal(asym_machine_cap(&m, asym_speed_cap_speeds(f->a)), 0);
    assert_true(m.cpus[0].speed > 1.999 && m.cpus[0].speed < 2.001 && m.cpus[7].speed < 1.001);
    assert_int_equal(m.types[1].origin, ASYM_ORIGIN_CAP);
    no_text = true; /* asymd crashed here: ./dev faults, the third allocation of its stop */
    asym_speed_cap_restore(f->a, &report);
    no_text = false;
    assert_int_equal(report.restored, 2);
    assert_true(as_before() && is_recorded(f));
    asym_speed_cap_restore(f->a, &report);
    assert_false(is_recorded(f));
    assert_true(asym_mask_empty(&asym_speed_cap_speeds(f->a)->cpus));
}

TEST_F(a_killed_one_is_put_back_by_the_next)
{
    for (int writes = 0; writes <= 4; writes++) {
        struct asym_speed_restore_report report;
        fake.writes_left = writes;
        /* Without a write left, asymd cannot restore either. */
        assert_int_equal(set(f, "0-7", 0.25), writes < 4 ? -EINTR : 0);
        fake.writes_left = 1000;
        reopen(f);
        asym_speed_cap_restore(f->a, &report);
        assert_int_equal(report.failed + report.foreign, 0);
        assert_true(as_before());
        assert_false(is_recorded(f));
    }
}

TEST_F(what_the_driver_rounds_is_reported_and_given_back)
{
    struct asym_speed_restore_report report;
    assert_int_equal(set(f, "2-3", 0.55), 0); /* 1,540,000 kHz */
    assert_int_equal(fake.state[2].high, 1500000);
    assert_true(asym_speed_cap_speeds(f->a)->share[3] < 0.536);
    reopen(f);
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.restored, 1);
    assert_true(as_before());
}

TEST_F(what_is_held_already_is_not_written_again)
{
    assert_int_equal(set(f, "4-7", 0.5), 0);
    int writes = fake.n_writes;
    assert_int_equal(set(f, "4-7", 0.5), 0);
    assert_int_equal(fake.n_writes, writes);
    assert_int_equal(set(f, "2-3,6-7", 0.25), 0);
    assert_true(fake.state[4].high == MAX && fake.state[4].low == MIN + 400000);
    assert_true(fake.state[2].high == 700000 && fake.state[6].high == 700000);
}

TEST_F(part_of_a_domain_is_refused_in_words)
{
    assert_int_equal(set(f, "4,6-7", 0.5), -EINVAL);
    assert_non_null(strstr(f->err.text, "CPU 4 shares its frequency with CPUs 5"));
    assert_true(as_before());
    assert_false(is_recorded(f));
}

TEST_F(a_refusal_puts_everything_back)
{
    static const int errors[] = {-EBUSY, -EIO, -EINVAL, -EACCES};
    for (size_t i = 0; i < ASYM_LENGTH(errors); i++) {
        fake.refuse[6] = errors[i];
        assert_int_equal(set(f, "4-7", 0.5), errors[i]);
        assert_non_null(strstr(f->err.text, "CPU 6 cannot be capped by fake: "));
        fake.refuse[6] = 0;
        assert_true(as_before());
        assert_false(is_recorded(f));
    }
}

TEST_F(a_driver_that_accepts_and_ignores_a_write_is_reported)
{
    fake.ignores = true;
    assert_int_equal(set(f, "4-7", 0.5), -ENOTSUP);
    assert_non_null(strstr(f->err.text, "ignores it"));
    assert_false(is_recorded(f));
}

/* The kernel finishes pending writes whether asymd lives or not. */
static void let_workers_finish(void)
{
    for (int c = 0; c < CPUS; c++) {
        if (fake.stale[c] > 0)
            fake.state[c] = fake.coming[c];
        fake.stale[c] = 0;
    }
}

/* Seen in the virtual machine on a busy host: asymd took its limits for ignored, and never restored them. */
TEST_F(limits_that_take_a_while_are_waited_for)
{
    struct asym_speed_restore_report report;
    fake.lag = 5;
    assert_int_equal(set(f, "4-7", 0.5), 0);
    assert_int_equal(fake.state[6].high, MAX / 2);
    /* Other CPUs: asymd records their original limits, not their caps. */
    assert_int_equal(set(f, "6-7", 0.25), 0);
    let_workers_finish();
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.restored, 1);
    let_workers_finish();
    assert_true(as_before());
}

TEST_F(changes_in_progress_when_asymd_is_killed_are_undone)
{
    struct asym_speed_restore_report report;
    fake.lag = 1000;
    fake.writes_left = 1;
    assert_true(set(f, "4-7", 0.5) < 0); /* and asymd cannot restore either */
    fake.writes_left = 1000;
    fake.lag = 3;
    reopen(f);
    /* The file still shows the old limit, which is no reason to leave the CPU. */
    assert_true(as_before());
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.failed, 0);
    let_workers_finish();
    assert_true(as_before());
}

TEST_F(what_another_program_changed_is_let_go)
{
    struct asym_mask gone;
    struct asym_speed_restore_report report;
    assert_int_equal(set(f, "4-7", 0.5), 0);
    assert_int_equal(asym_speed_cap_check(f->a, &gone), 0);
    assert_true(asym_mask_empty(&gone));
    fake.state[4].high = 2100000;
    assert_int_equal(asym_speed_cap_check(f->a, &gone), 1);
    assert_true(asym_mask_count(&gone) == 2 && asym_mask_has(&gone, 4) && asym_mask_has(&gone, 5));
    assert_true(asym_speed_cap_speeds(f->a)->share[5] > 0.749 && asym_speed_cap_speeds(f->a)->share[5] < 0.751);
    /* asymd leaves the limit that the other program changed, and restores the other one. */
    assert_true(fake.state[4].high == 2100000 && fake.state[4].low == MIN + 400000);
    assert_int_equal(asym_speed_cap_check(f->a, &gone), 0); /* reported once */
    assert_true(asym_mask_empty(&gone));
    asym_speed_cap_restore(f->a, &report);
    assert_true(report.restored == 1 && report.foreign == 1);
    assert_true(fake.state[6].high == MAX);
}

TEST_F(a_field_that_another_program_changed_stays_at_the_next_start)
{
    struct asym_speed_restore_report report;
    assert_int_equal(set(f, "4-5", 0.5), 0);
    fake.state[4].high = 2100000;
    reopen(f);
    asym_speed_cap_restore(f->a, &report);
    assert_true(report.restored == 0 && report.foreign == 1);
    assert_true(fake.state[4].high == 2100000 && fake.state[4].low == MIN + 400000);
}

TEST_F(an_offline_cpu_is_held_again_when_it_comes_back)
{
    struct asym_mask gone;
    assert_int_equal(set(f, "4-7", 0.5), 0);
    fake.offline[4] = fake.offline[5] = true;
    assert_int_equal(asym_speed_cap_check(f->a, &gone), 0);
    assert_true(asym_mask_empty(&gone));
    fake.offline[4] = fake.offline[5] = false;
    fake.state[4] = (struct asym_cap_state){.low = MIN + 400000, .high = MAX};
    asym_speed_cap_check(f->a, &gone);
    assert_true(asym_mask_empty(&gone));
    assert_int_equal(fake.state[4].high, MAX / 2);
}

static void offline(int first, int last, bool is)
{
    for (int c = first; c <= last; c++)
        fake.offline[c] = is;
}

/* The check runs in the loop that steers: what a driver ignores, or a worker applies late, is looked at by the next check. */
TEST_F(a_check_does_not_wait_for_a_limit)
{
    static const struct {
        int lag;      /* reads */
        bool ignores; /* the driver accepts the limit and does nothing */
        unsigned let_go;
    } rows[] = {{3, false, 0}, {0, true, 2}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_speed_restore_report report;
        struct asym_mask gone;
        assert_int_equal(set(f, "4-5", 0.5), 0);
        offline(4, 5, true);
        asym_speed_cap_check(f->a, &gone);
        offline(4, 5, false);
        fake.state[4] = (struct asym_cap_state){.low = MIN + 400000, .high = MAX};
        fake.lag = rows[i].lag;
        fake.ignores = rows[i].ignores;
        fake.n_reads = 0;
        assert_int_equal(asym_speed_cap_check(f->a, &gone), 0);
        assert_true(asym_mask_empty(&gone) && fake.n_reads <= 2);
        let_workers_finish();
        asym_speed_cap_check(f->a, &gone);
        assert_int_equal(asym_mask_count(&gone), rows[i].let_go);
        assert_true(fake.n_reads <= 5);
        fake.lag = 0;
        fake.ignores = false;
        asym_speed_cap_restore(f->a, &report);
        assert_true(as_before());
    }
}

/* A reload, or a start after a kill, while a capped CPU is offline: the others stay capped, and asymd restores it later. */
TEST_F(what_is_offline_neither_stops_others_nor_is_forgotten)
{
    struct asym_speed_restore_report report;
    struct asym_mask gone;
    for (int killed = 0; killed < 2; killed++) {
        assert_int_equal(set(f, "4-7", 0.5), 0);
        offline(6, 7, true);
        asym_mask_clear(&f->machine.usable, 6);
        asym_mask_clear(&f->machine.usable, 7);
        if (killed)
            reopen(f);
        assert_int_equal(set(f, "2-5", 0.5), 0);
        assert_true(fake.state[2].high == MAX / 2 && fake.state[4].high == MAX / 2);
        asym_speed_cap_restore(f->a, &report);
        assert_true(report.restored == 2 && report.failed == 0 && report.offline == 1);
        assert_true(is_recorded(f));
        assert_true(fake.state[2].high == MAX && fake.state[4].high == MAX);
        offline(6, 7, false);
        f->machine.usable = f->machine.online;
        for (int checks = 0; checks < 2; checks++) { /* the second sees that the limits have arrived */
            assert_true(checks == 0 || as_before());
            assert_int_equal(asym_speed_cap_check(f->a, &gone), 0);
        }
        assert_true(as_before());
        assert_false(is_recorded(f));
    }
}

/* A write that was lost is made again: asymd forgets no CPU that is still slow. */
TEST_F(a_restore_after_hotplug_is_looked_at)
{
    struct asym_speed_restore_report report;
    struct asym_mask gone;
    assert_int_equal(set(f, "6-7", 0.5), 0);
    offline(6, 7, true);
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.offline, 1);
    offline(6, 7, false);
    for (int checks = 0; checks < 4; checks++) {
        fake.ignores = checks < 2;
        asym_speed_cap_check(f->a, &gone);
        assert_int_equal(as_before(), checks >= 2);
        assert_int_equal(is_recorded(f), checks < 3);
    }
}

TEST_F(a_list_holds_those_of_it_that_are_there)
{
    struct asym_speed_restore_report report;
    offline(6, 7, true);
    asym_mask_clear(&f->machine.usable, 6);
    asym_mask_clear(&f->machine.usable, 7);
    assert_int_equal(set(f, "4-7", 0.5), 0);
    const int writes = fake.n_writes;
    assert_int_equal(set(f, "4-7", 0.5), 0); /* it is capped already */
    assert_int_equal(fake.n_writes, writes);
    offline(6, 7, false);
    f->machine.usable = f->machine.online;
    assert_int_equal(set(f, "4-7", 0.5), 0);
    assert_true(fake.state[4].high == MAX / 2 && fake.state[6].high == MAX / 2);
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.restored, 2);
    assert_true(as_before());
}

/* The machines of the papers have three, four and eight speeds. */
TEST_F(cpus_get_a_speed_each_and_are_restored_after_a_kill)
{
    struct asym_speed_restore_report report;
    struct asym_slow_speeds speeds;
    struct asym_mask slow;
    assert_int_equal(asym_slow_speeds_parse("2-3:75% 4-5:50% 25%", &speeds), 0);
    assert_int_equal(asym_mask_parse_list("2-7", 3, &slow), 0);
    assert_int_equal(asym_speed_cap_set(f->a, &method, &f->machine, &slow, &speeds, &f->err), 0);
    assert_int_equal(fake.state[0].high, MAX);
    assert_int_equal(fake.state[2].high, MAX * 3 / 4);
    assert_int_equal(fake.state[4].high, MAX / 2);
    assert_int_equal(fake.state[6].high, MAX / 4);
    assert_true(asym_speed_cap_speeds(f->a)->share[3] > 0.74 && asym_speed_cap_speeds(f->a)->share[6] < 0.26);
    reopen(f);
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.restored, 3);
    assert_true(as_before());
    /* CPUs 2 and 3 have one frequency. */
    assert_int_equal(asym_slow_speeds_parse("2:75% 3:50%", &speeds), 0);
    assert_int_equal(asym_mask_parse_list("2-3", 3, &slow), 0);
    assert_int_equal(asym_speed_cap_set(f->a, &method, &f->machine, &slow, &speeds, &f->err), -EINVAL);
    assert_non_null(strstr(f->err.text, "CPUs 2-3 share their frequency: give them one speed"));
    assert_true(as_before());
}

/* Each sibling has its own duty cycle, and the larger one is in force. */
TEST_F(every_cpu_of_a_full_core_is_capped)
{
    static struct asym_cap_method of_cores;
    struct asym_speed_restore_report report;
    const struct asym_slow_speeds speed = {.rest = {.share = 0.5}};
    struct asym_mask slow = {0};
    of_cores = method;
    of_cores.whole_core = true;
    for (unsigned c = 0; c < CPUS; c++)
        f->machine.cpus[c].core = (int16_t)(c / 2);
    asym_mask_set(&slow, 6);
    assert_int_equal(asym_speed_cap_set(f->a, &of_cores, &f->machine, &slow, &speed, &f->err), -EINVAL);
    asym_mask_set(&slow, 7);
    assert_int_equal(asym_speed_cap_set(f->a, &of_cores, &f->machine, &slow, &speed, &f->err), 0);
    assert_true(fake.state[6].high == MAX / 2 && fake.state[7].high == MAX / 2);
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.restored, 2);
    assert_true(as_before() && fake.state[7].high == MAX);
}

/* The files of CPU 5 also show its domain. */
TEST_F(a_domain_is_reached_by_any_cpu_that_is_online)
{
    struct asym_mask gone;
    struct asym_speed_restore_report report;
    assert_int_equal(set(f, "4-5", 0.5), 0);
    fake.state[5] = fake.state[4];
    fake.offline[4] = true;
    assert_int_equal(asym_speed_cap_check(f->a, &gone), 0);
    assert_true(asym_mask_empty(&gone));
    asym_speed_cap_restore(f->a, &report);
    assert_true(report.restored == 1 && report.failed == 0);
    assert_true(fake.state[5].high == MAX && fake.state[5].low == MIN + 400000);
}

TEST_F(what_cannot_be_put_back_stays_in_the_file)
{
    struct asym_speed_restore_report report;
    assert_int_equal(set(f, "4-7", 0.5), 0);
    fake.offline[4] = fake.offline[5] = true;
    asym_speed_cap_restore(f->a, &report);
    assert_true(report.restored == 1 && report.offline == 1 && report.failed == 0);
    fake.offline[4] = fake.offline[5] = false;
    reopen(f);
    asym_speed_cap_restore(f->a, &report);
    assert_true(report.restored == 1 && report.failed == 0);
    assert_true(as_before());
}

TEST_F(a_bad_record_is_told_and_loses_no_other)
{
    struct asym_speed_restore_report report;
    char path[128], told[160];
    static const char *const junk[] = {"C fake 4 4-5 1 2 3 set",     "C fake x 4-5 1 2 3 4 set",
                                       "C none 4 4-5 1 2 3 4 set",   "C fake 3 4-5 1 2 3 4 set",
                                       "C fake 4 4-5 1 2 3 4 set 5", "C x"};
    snprintf(path, sizeof path, "%s/ledger", f->dir.path);
    for (size_t i = 0; i < ASYM_LENGTH(junk); i++) {
        assert_int_equal(set(f, "4-7", 0.5), 0);
        FILE *file = fopen(path, "a");
        assert_non_null(file);
        fprintf(file, "%s\n", junk[i]);
        fclose(file);
        f->err.text[0] = '\0';
        reopen(f);
        snprintf(told, sizeof told, "by this record of the ledger, where it stays: %s", junk[i]);
        assert_non_null(strstr(f->err.text, told));
        asym_speed_cap_restore(f->a, &report);
        assert_true(report.restored == 2 && report.failed == 1 && report.error == -EBADMSG);
        assert_true(as_before());
        /* It stays, and no other cap is made on top of it. */
        assert_int_equal(set(f, "4-7", 0.5), -EBADMSG);
        assert_true(as_before());
        assert_true(is_recorded(f));
        close_it(f);
        assert_int_equal(unlink(path), 0);
        open_it(f);
    }
    close_it(f);
    tree_write(&f->dir, "ledger", "asymd-ledger 1 another-boot\nC fake 4 4-5 1 2 3 4 set\n");
    open_it(f);
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.restored + report.foreign + report.failed, 0);
}

/* The file has the limits before a CPU has others. */
TEST_F(without_a_record_no_cpu_is_capped)
{
    char path[128];
    assert_int_equal(asym_ledger_housekeeping(f->ledger), 0);
    for (int k = 0; k <= 9; k++) {
        snprintf(path, sizeof path, k ? "%s/ledger.new.%d" : "%s/ledger.new", f->dir.path, k);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_true(set(f, "4-7", 0.5) < 0);
    assert_non_null(strstr(f->err.text, "cannot record the limits to restore"));
    assert_int_equal(fake.n_writes, 0);
    for (int k = 0; k <= 9; k++) {
        snprintf(path, sizeof path, k ? "%s/ledger.new.%d" : "%s/ledger.new", f->dir.path, k);
        assert_int_equal(rmdir(path), 0);
    }
    /* No later file records a cap that asymd has not made. */
    assert_true(asym_ledger_housekeeping(f->ledger) >= 0);
    assert_false(is_recorded(f));
}

TEST_F(what_is_removed_is_written_again)
{
    struct asym_speed_restore_report report;
    char path[128];
    snprintf(path, sizeof path, "%s/ledger", f->dir.path);
    assert_int_equal(set(f, "4-7", 0.5), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(asym_ledger_housekeeping(f->ledger), 1);
    assert_true(is_recorded(f));
    reopen(f);
    asym_speed_cap_restore(f->a, &report);
    assert_int_equal(report.restored, 2);
    assert_true(as_before());
    close_it(f);
    assert_true(access(path, F_OK) < 0); /* nothing is left to restore */
    open_it(f);
}

TEST_MAIN
