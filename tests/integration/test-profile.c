/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measured runs of programs on some CPUs: software events of this machine, and rows of counts where the values matter. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <jansson.h>

#include "base/mask.h"
#include "linux/perf/counters.h"
#include "profile/profiles.h"
#include "report/columns.h"
#include "report/json.h"
#include "daemon/asymctl/profile.h"
#include "linux/perf/measured-run.h"
#include "linux/sys/elf.h"
#include "support/generate.h"
#include "support/json.h"
#include "support/live.h"
#include "support/stranger.h"
#include "support/tree.h"
#include "support/counted.h"
#include "support/process.h"
#include "support/test.h"

#define ARGV(...) ((char *const[]){__VA_ARGS__, NULL})

struct fixture {
    struct tree tree;
    char out[128]; /* a file for the output of programs */
    struct asym_counters *software;
    struct asym_mask mine; /* the CPUs that the test may use */
};

static void set_up(struct fixture *f)
{
    const struct asym_counters_config config = {.set = ASYM_COUNTERS_SOFTWARE, .max_fds = 3, .tree = true};
    tree_make(&f->tree);
    snprintf(f->out, sizeof f->out, "%s/out", f->tree.path);
    assert_int_equal(asym_counters_new(&config, &f->software, NULL), 0);
    assert_true(sched_getaffinity(0, sizeof f->mine, (cpu_set_t *)&f->mine) == 0);
}

static void tear_down(struct fixture *f)
{
    f->software->close(f->software);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

static const char *said(const struct fixture *f)
{
    static char text[4096];
    int fd = open(f->out, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* A script for sh -c; $OUT is the file. */
static char *script(const struct fixture *f, const char *what)
{
    static char text[1024];
    snprintf(text, sizeof text, "OUT=%s; %s", f->out, what);
    return text;
}

static int run_measured(const struct fixture *f, char *const *argv, asym_usec time,
                        struct asym_measured_run_result *ret, struct asym_error *err)
{
    const struct asym_measured_run_config t = {.argv = argv, .cpus = &f->mine, .time = time, .counters = f->software};
    struct asym_error why = {""};
    int r = asym_measured_run(&t, ret, err ? err : &why);
    if (r < 0 && !err && r != -EINTR)
        print_error("%s\n", why.text);
    return r;
}

static const char busy[] = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";

/* -- one measured run -- */

TEST_F(a_program_is_counted_with_its_children_and_known_by_its_file)
{
    struct asym_measured_run_result r;
    struct asym_error err = {""};
    char text[1024], sh[PATH_MAX];
    const int before = asym_process_descriptors(getpid());
    snprintf(text, sizeof text, "(%s) & (%s) & wait; echo out; echo err >&2", busy, busy);
    assert_int_equal(run_measured(f, ARGV("sh", "-c", text), 0, &r, &err), 0);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0 && !r.ended);
    assert_true(r.counts.on_cpu_ns > 5000000 && r.counts.value[ASYM_COUNTER_FAULTS] > 10);
    assert_non_null(realpath("/bin/sh", sh));
    assert_string_equal(r.exe, sh);
    assert_true(r.exe_fd >= 0);
    asym_measured_run_done(&r);
    /* The same counters work for the next run. */
    assert_int_equal(run_measured(f, ARGV("sh", "-c", "exit 3"), 0, &r, &err), 0);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 3);
    asym_measured_run_done(&r);
    assert_int_equal(asym_process_descriptors(getpid()), before);
}

TEST_F(it_runs_on_the_cpus_that_are_named)
{
    struct asym_measured_run_result r;
    char list[ASYM_MASK_LIST_MAX], wanted[ASYM_MASK_LIST_MAX + 32];
    ASYM_MASK_FOREACH (c, &f->mine) {
        struct asym_mask one = {0};
        asym_mask_set(&one, (unsigned)c);
        const struct asym_measured_run_config t = {
            .argv = ARGV("sh", "-c", script(f, "grep Cpus_allowed_list /proc/self/status >$OUT")),
            .cpus = &one,
            .counters = f->software};
        assert_int_equal(asym_measured_run(&t, &r, NULL), 0);
        asym_measured_run_done(&r);
        snprintf(wanted, sizeof wanted, "Cpus_allowed_list:\t%s\n", asym_mask_format_list(&one, list, sizeof list));
        assert_string_equal(said(f), wanted);
    }
    struct asym_mask mine;
    assert_true(sched_getaffinity(0, sizeof mine, (cpu_set_t *)&mine) == 0);
    assert_true(asym_mask_equal(&mine, &f->mine));
    struct asym_mask none = {0}; /* the kernel refuses it */
    const struct asym_measured_run_config t = {.argv = ARGV("true"), .cpus = &none, .counters = f->software};
    struct asym_error err = {""};
    assert_int_equal(asym_measured_run(&t, &r, &err), -EINVAL);
    assert_true(*err.text);
}

static bool exists(long pid)
{
    const char state = asym_process_state((pid_t)pid);
    return state && state != 'Z';
}

static void assert_gone(long pid)
{
    assert_true(pid > 1);
    ASYM_LIVE_AWAIT(!exists(pid));
    assert_false(exists(pid));
}

/* Runs the script for 200 ms; on a machine on which it writes nothing in that time, for longer. */
static void run_until_said(const struct fixture *f, const char *what, struct asym_measured_run_result *ret)
{
    for (asym_usec time = 200000;; time *= 2) {
        assert_int_equal(run_measured(f, ARGV("sh", "-c", script(f, what)), time, ret, NULL), 0);
        if (*said(f) || time > 10000000)
            return;
        asym_measured_run_done(ret);
    }
}

TEST_F(when_its_time_is_over_it_is_ended_with_all_that_it_started)
{
    struct asym_measured_run_result r;
    const double from = asym_live_now();
    run_until_said(f, "sleep 1000 & echo $! >$OUT; while :; do :; done", &r);
    assert_true(r.ended && WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGTERM);
    assert_true(asym_live_now() - from > 0.19);
    assert_true(r.counts.on_cpu_ns > 1000000);
    asym_measured_run_done(&r);
    assert_gone(atol(said(f)));
    assert_int_equal(unlink(f->out), 0);
    /* A program that ignores SIGTERM. */
    run_until_said(f, "trap '' TERM; echo set >$OUT; while :; do :; done", &r);
    assert_true(r.ended && WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGKILL);
    asym_measured_run_done(&r);
}

TEST_F(what_it_leaves_running_is_ended)
{
    struct asym_measured_run_result r;
    assert_int_equal(run_measured(f, ARGV("sh", "-c", script(f, "sleep 1000 & echo $! >$OUT")), 0, &r, NULL), 0);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0 && !r.ended);
    asym_measured_run_done(&r);
    assert_gone(atol(said(f)));
}

TEST_F(a_file_is_read_from_the_same_place_each_time_and_output_is_thrown_away)
{
    struct asym_measured_run_result r;
    char in[160];
    tree_write(&f->tree, "in", "skipped\nread\n");
    snprintf(in, sizeof in, "%s/in", f->tree.path);
    int saved = dup(STDIN_FILENO), fd = open(in, O_RDONLY | O_CLOEXEC);
    assert_true(saved >= 0 && fd >= 0);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(lseek(STDIN_FILENO, 8, SEEK_SET), 8);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            run_measured(
                f, ARGV("sh", "-c", script(f, "cat >>$OUT; echo lost; x=$(readlink /proc/$$/fd/1); echo $x >>$OUT")), 0,
                &r, NULL),
            0);
        asym_measured_run_done(&r);
    }
    assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_CUR), 8);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(dup2(pipes[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(run_measured(f, ARGV("sh", "-c", script(f, "cat >>$OUT")), 0, &r, NULL), 0); /* it does not wait */
    asym_measured_run_done(&r);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
    close(pipes[0]);
    close(pipes[1]);
    assert_string_equal(said(f), "read\n/dev/null\nread\n/dev/null\n");
}

TEST_F(a_program_that_cannot_be_run_is_reported)
{
    struct asym_measured_run_result r;
    struct asym_error err = {""};
    const int before = asym_process_descriptors(getpid());
    char plain[160];
    assert_int_equal(run_measured(f, ARGV("/nonexistent/program"), 0, &r, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/program: No such file"));
    assert_int_equal(run_measured(f, ARGV("no-such-program-at-all"), 0, &r, &err), -ENOENT);
    tree_write(&f->tree, "plain", "echo\n");
    snprintf(plain, sizeof plain, "%s/plain", f->tree.path);
    assert_int_equal(run_measured(f, ARGV(plain), 0, &r, &err), -EACCES);
    assert_int_equal(asym_process_descriptors(getpid()), before);
    /* The counters refuse: the program never runs. */
    const struct asym_counters_config config = {.set = ASYM_COUNTERS_SOFTWARE, .max_fds = 0, .tree = true};
    struct asym_counters *none;
    assert_int_equal(asym_counters_new(&config, &none, NULL), 0);
    const struct asym_measured_run_config t = {
        .argv = ARGV("sh", "-c", script(f, "echo ran >$OUT")), .cpus = &f->mine, .counters = none};
    assert_int_equal(asym_measured_run(&t, &r, &err), -EDQUOT);
    none->close(none);
    assert_string_equal(said(f), "");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_int_equal(errno, ECHILD);
}

TEST_F(asked_to_stop_it_ends_the_program_first)
{
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        struct asym_measured_run_result r;
        sigset_t blocked;
        int n = run_measured(f, ARGV("sh", "-c", script(f, "sleep 1000 & echo $! $$ >$OUT; wait")), 0, &r, NULL);
        sigprocmask(SIG_BLOCK, NULL, &blocked);
        _exit(n == -EINTR && !sigismember(&blocked, SIGINT) && waitpid(-1, NULL, WNOHANG) < 0 ? 0 : 1);
    }
    long child = 0, leader = 0;
    for (int i = 0; i < 1000 && sscanf(said(f), "%ld %ld\n", &child, &leader) != 2; i++)
        asym_live_sleep(0.01);
    asym_live_signal(pid, SIGINT);
    assert_int_equal(asym_live_wait(pid), 0);
    assert_gone(child);
    assert_gone(leader);
}

/* -- a profile, from rows of counts -- */

/* The nth watched thread is thread n of the rows; its reads are at n seconds. */
struct stand_in {
    struct asym_counters port;
    struct counted counted;
    int32_t n;
    unsigned dying; /* number of reads that fail, as when a child is about to end */
};

static int stand_in_watch(struct asym_counters *c, const struct asym_taskid *id)
{
    struct stand_in *s = (struct stand_in *)c;
    const struct asym_taskid recorded = {.tid = ++s->n};
    assert_true(id->tid > 1);
    return s->counted.port.watch(&s->counted.port, &recorded);
}

static int stand_in_unwatch(struct asym_counters *c, const struct asym_taskid *id)
{
    struct stand_in *s = (struct stand_in *)c;
    const struct asym_taskid recorded = {.tid = s->n};
    return s->counted.port.unwatch(&s->counted.port, &recorded);
}

static int stand_in_read(struct asym_counters *c, const struct asym_taskid *id, struct asym_counts *ret)
{
    struct stand_in *s = (struct stand_in *)c;
    const struct asym_taskid recorded = {.tid = s->n};
    if (s->dying > 0) {
        s->dying--;
        return -ECHILD;
    }
    s->counted.now = (asym_usec)s->n * ASYM_SEC;
    return s->counted.port.read(&s->counted.port, &recorded, ret);
}

static struct stand_in stand_in_of(const struct counted_row *rows, size_t n)
{
    return (struct stand_in){.port = {.watch = stand_in_watch, .unwatch = stand_in_unwatch, .read = stand_in_read},
                             .counted = counted_of(rows, n, 100)};
}

/* Two CPU types with a usable CPU each; with one usable CPU, it belongs to both. */
static struct asym_machine *machine_of(const struct fixture *f)
{
    static struct asym_machine m;
    const unsigned first = (unsigned)asym_mask_next(&f->mine, 0);
    const int next = asym_mask_next(&f->mine, (int)first + 1);
    gen_plain_machine(&m, 2, 1);
    assert_int_equal(m.n_types, 2);
    m.types[0].cpus = m.types[1].cpus = (struct asym_mask){0};
    asym_mask_set(&m.types[0].cpus, first);
    asym_mask_set(&m.types[1].cpus, next >= 0 ? (unsigned)next : first);
    return &m;
}

/* The row comments give instructions a second, and misses per 1,000 instructions. */
static const struct counted_row measured[] = {
    {0, 1, {1000, 0, 0}, 1000},
    {1 * ASYM_SEC, 1, {8000001000, 0, 4000000}, 2000001000}, /* 4e9 a second, 0.5 misses */
    {1 * ASYM_SEC, 2, {0, 0, COUNTED_NONE}, 0},
    {2 * ASYM_SEC, 2, {3000000000, 0, COUNTED_NONE}, 3000000000}, /* 1e9 a second, misses unknown */
};

static bool near(double a, double b)
{
    return a > b * (1 - 1e-9) - 1e-9 && a < b * (1 + 1e-9) + 1e-9;
}

TEST_F(figures_of_each_type_come_from_its_own_run)
{
    struct stand_in s = stand_in_of(measured, ASYM_LENGTH(measured));
    s.dying = 5;
    static struct asym_profile_result result;
    struct asym_error err = {""};
    char list[2][ASYM_MASK_LIST_MAX], wanted[128], sh[PATH_MAX], id[ASYM_BUILD_ID_MAX] = "";
    const struct asym_profile_job job = {
        .argv = ARGV("sh", "-c", script(f, "grep Cpus_allowed_list /proc/self/status >>$OUT")),
        .machine = machine_of(f),
        .counters = &s.port};
    if (asym_profile_measure(&job, &result, &err) < 0)
        fail_msg("%s", err.text);
    for (int t = 0; t < 2; t++)
        asym_mask_format_list(&job.machine->types[t].cpus, list[t], sizeof list[t]);
    snprintf(wanted, sizeof wanted, "Cpus_allowed_list:\t%.20s\nCpus_allowed_list:\t%.20s\n", list[0], list[1]);
    assert_string_equal(said(f), wanted);
    const struct asym_profile_entry *p = &result.profile;
    assert_int_equal(p->n_types, 2);
    assert_string_equal(p->types[0].name, job.machine->types[0].name);
    assert_true(near(p->types[0].ips, 4e9) && near(p->types[0].mpki, 0.5) && near(result.on_cpu[0], 2));
    assert_true(near(p->types[1].ips, 1e9) && p->types[1].mpki < 0 && near(result.on_cpu[1], 3));
    assert_non_null(realpath("/bin/sh", sh));
    assert_string_equal(p->path, sh);
    int fd = open(sh, O_RDONLY | O_CLOEXEC);
    asym_elf_build_id(fd, id);
    close(fd);
    assert_string_equal(p->build_id, id);
    /* The profile is the same after a write and a read. */
    struct asym_profiles *all;
    assert_int_equal(asym_profiles_save(f->out, p, &err), -EINVAL); /* the file has other content */
    assert_int_equal(unlink(f->out), 0);
    assert_int_equal(asym_profiles_save(f->out, p, &err), 0);
    assert_int_equal(asym_profiles_load(f->out, &all, &err), 0);
    assert_true(near(asym_profile_on(asym_profiles_find(all, sh, id), p->types[1].name)->ips, 1e9));
    asym_profiles_free(all);
}

/* A thread's rows: the first n of these. */
static const struct counted_row counts[] = {{0, 1, {0, 0, 0}, 0}, {ASYM_SEC, 1, {5, 5, 5}, 5}};
static const struct counted_row no_instructions[] = {{0, 1, {COUNTED_NONE, 0, 0}, 0},
                                                     {ASYM_SEC, 1, {COUNTED_NONE, 5, 5}, 5}};

TEST_F(a_program_that_fails_or_is_too_short_gives_no_profile)
{
    static const struct {
        const struct counted_row *counted;
        size_t n;
        const char *script, *message;
        int error;
    } rows[] = {
        {counts, 2, "exit 7", "ended with status 7", -ECANCELED},
        {counts, 2, "kill -SEGV $$", "ended by signal 11", -ECANCELED},
        {counts, 1, "true", "did not run long enough", -ENODATA},
        {no_instructions, 2, "true", "did not run long enough", -ENODATA},
        {NULL, 0, "true", "no such thread", -ESRCH},
        {counts, 2, "exec /nonexistent", "ended with status 127", -ECANCELED},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct stand_in s = stand_in_of(rows[i].counted, rows[i].n);
        static struct asym_profile_result result;
        struct asym_error err = {""};
        const struct asym_profile_job job = {
            .argv = ARGV("sh", "-c", script(f, rows[i].script)), .machine = machine_of(f), .counters = &s.port};
        assert_int_equal(asym_profile_measure(&job, &result, &err), rows[i].error);
        if (!strstr(err.text, rows[i].message))
            fail_msg("'%s' is not in '%s'", rows[i].message, err.text);
    }
}

static char *print(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *path,
                   bool user_only)
{
    const size_t columns = ASYM_COLUMNS_DEFAULT;
    return PRINTED(
        asym_profile_text(job, result, path, user_only, &(struct asym_terminal){.out = out, .columns = columns}));
}

TEST_F(a_profile_is_printed_as_text_and_as_json)
{
    static struct asym_profile_result result = {
        .path = "/opt/a\x1b[2J/program",
        .profile = {.build_id = "00ff",
                    .n_types = 2,
                    .types = {{.name = "fast", .ips = 4e9, .mpki = 0.5}, {.name = "slow", .ips = 1e9, .mpki = -1}}},
        .on_cpu = {2, 3},
        .share = {1, 0.5},
        .hz = {2e9, 1e9}};
    result.profile.path = result.path;
    const struct asym_profile_job job = {.machine = machine_of(f), .max_ipc = {4, 4}};
    ASYM_AUTO_FREE char *text = print(&job, &result, "/tmp/\x1bout", true);
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, "4e+09 instructions/s, 0.50 LLC misses per 1000;"));
    assert_non_null(strstr(text, "LLC misses could not be counted"));
    assert_non_null(strstr(text, "50%"));
    /* 0.125 ns of stall time; an instruction takes 0.125 ns on the fast type, and 0.25 ns on the slow one */
    assert_non_null(strstr(text, "4.00 times as fast on fast as on slow; 1.50 times by its stall time on"));
    assert_non_null(strstr(text, "user space only"));
    assert_non_null(strstr(text, "Written to /tmp/\\x1bout\n"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= ASYM_COLUMNS_DEFAULT);
    ASYM_AUTO_FREE char *json = PRINTED(asym_profile_json(&job, &result, "/tmp/out", true, out));
    ASYM_AUTO_JSON json_t *root = json_of(json);
    assert_json(
        root, "{'schema': 'asymd.profile/1', 'build_id': '00ff', 'output': '/tmp/out', 'user_only': true,"
              " 'types': [{}, {'mpki': null, 'ips': 1.0e9, 'counted': 0.5}], 'speedup': 4.0, 'speedup_by_stall': 1.5}");
}

/* After Ctrl-C on the second type of core: one type is measured, and no file is written. */
TEST_F(a_part_of_a_profile_is_told_without_a_file)
{
    static struct asym_profile_result result = {
        .path = "/opt/program",
        .profile = {.n_types = 1, .types = {{.name = "fast", .ips = 4e9, .mpki = 0.5}}},
        .on_cpu = {2},
        .share = {1}};
    result.profile.path = result.path;
    const struct asym_profile_job job = {.machine = machine_of(f)};
    ASYM_AUTO_FREE char *text = print(&job, &result, NULL, false), *json = NULL;
    assert_non_null(strstr(text, "  fast on CPUs "));
    assert_null(strstr(text, "Written"));
    json = PRINTED(asym_profile_json(&job, &result, NULL, false, out));
    ASYM_AUTO_JSON json_t *root = json_of(json);
    assert_null(strstr(text, "times as fast"));
    assert_json(root, "{'output': null, 'types': [{}], 'speedup': null}");
}

/* -- the file of profiles -- */

/* A page that the test shares with a process of an ordinary user. */
struct answer {
    const char *output;
    int error;
    struct asym_error err;
};

static void check_output(void *arg)
{
    struct answer *a = arg;
    a->error = asym_profile_check_output(a->output, &a->err);
}

static struct answer checked_by_ordinary_user(const char *output)
{
    struct answer *shared = asym_live_share(sizeof *shared);
    shared->output = output;
    shared->error = 1;
    assert_int_equal(asym_live_wait(asym_stranger_start(check_output, shared)), 0);
    const struct answer result = *shared;
    return result;
}

TEST_F(without_the_right_to_write_the_message_names_root_and_output)
{
    char missing[256];
    snprintf(missing, sizeof missing, "%s/missing/profiles", f->tree.path);
    assert_int_equal(chmod(f->tree.path, 0755), 0);
    assert_int_equal(checked_by_ordinary_user("/tmp/profiles-of-a-test").error, 0);
    struct answer a = checked_by_ordinary_user("/var/lib/asymd/profiles");
    assert_int_equal(a.error, -EACCES);
    assert_string_equal(a.err.text,
                        "/var/lib/asymd: Permission denied (run as root; --output=FILE names another file)");
    a = checked_by_ordinary_user(missing);
    assert_int_equal(a.error, -ENOENT);
    assert_null(strstr(a.err.text, "root"));
    assert_non_null(strstr(a.err.text, "--output=FILE"));
}

/* -- the verb -- */

static int asymctl(const char *arguments, char *text, size_t size)
{
    char command[1024];
    snprintf(command, sizeof command, "exec '%s/daemon/asymctl' %s 2>&1", ASYM_TEST_BIN, arguments);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    return asym_live_run(argv, text, size);
}

TEST_F(the_verb_measures_or_says_why_it_cannot)
{
    struct asym_root root;
    struct asym_counters_coverage coverage;
    char arguments[512], text[4096];
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    asym_counters_probe(&root, NULL, &coverage);
    asym_root_done(&root);
    snprintf(arguments, sizeof arguments, "profile --config=/dev/null --output=%s --time=2s --json -- sh -c '%s'",
             f->out, busy);
    int status = asymctl(arguments, text, sizeof text);
    if (coverage.error < 0) {
        assert_int_equal(status, coverage.error == -EACCES || coverage.error == -EPERM ? 4 : 3);
        const char *why, *remedy;
        asym_counters_why(coverage.error, &why, &remedy);
        assert_non_null(strstr(text, why));
        assert_non_null(strstr(text, "cannot count instructions"));
        assert_string_equal(said(f), "");
        return;
    }
    assert_int_equal(status, 0);
    ASYM_AUTO_JSON json_t *parsed = json_loads(text, 0, NULL);
    assert_non_null(parsed);
    assert_non_null(strstr(said(f), "ips."));
}

TEST_MAIN
