/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The procfs source on trees of files: who there is, what is said of them, and junk. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/maps.h"
#include "linux/procfs-internal.h"
#include "support/tree.h"

#define KTHREAD        "2097152"
#define NO_SETAFFINITY "67108864"
#define UPTIME_SECONDS 1000

struct fixture {
    struct tree tree;
    struct asym_root root;
    struct asym_machine machine;
    struct asym_source *source;
    struct asym_snapshot s;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    tree_make(&f->tree);
    tree_machine(&f->tree, "0-7", "0-7");
    tree_write(&f->tree, "proc/uptime", "%d.00 1.00\n", UPTIME_SECONDS);
    tree_write(&f->tree, "proc/meminfo", "MemTotal: 1 kB\n");
    if (asym_root_open(f->tree.path, &f->root, NULL) < 0)
        return -1;
    f->machine.n_cpus = 8;
    for (unsigned c = 0; c < 8; c++)
        asym_mask_set(&f->machine.online, c);
    f->machine.usable = f->machine.online;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->source)
        f->source->close(f->source);
    asym_root_done(&f->root);
    tree_remove(&f->tree);
    free(f);
    return 0;
}

struct thread {
    int pid, tid;
    const char *comm;
    char state;
    int ppid;
    const char *flags;
    unsigned start;
    const char *mask;
    unsigned vsize;
    const char *ticks; /* of CPU time: its user's and its system's */
};

static void write_stat(const struct fixture *f, const char *file, const struct thread *t)
{
    tree_write(&f->tree, file,
               "%d (%s) %c %d 1 1 0 -1 %s 0 0 0 0 %s 0 0 20 0 1 0 %u %u 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0\n",
               t->tid, t->comm, t->state, t->ppid, t->flags ? t->flags : "0", t->ticks ? t->ticks : "1 2", t->start,
               t->vsize);
}

/* Everything a kernel shows of a thread; of the leader's the process's stat too. */
static void put(const struct fixture *f, struct thread t)
{
    char file[128];
    snprintf(file, sizeof file, "proc/%d/task/%d/stat", t.pid, t.tid);
    write_stat(f, file, &t);
    if (t.tid == t.pid) {
        snprintf(file, sizeof file, "proc/%d/stat", t.pid);
        write_stat(f, file, &t);
        snprintf(file, sizeof file, "proc/%d/cgroup", t.pid);
        tree_write(&f->tree, file, "0::/\n");
    }
    snprintf(file, sizeof file, "proc/%d/task/%d/schedstat", t.pid, t.tid);
    tree_write(&f->tree, file, "1000000 0 1\n");
    snprintf(file, sizeof file, "proc/%d/task/%d/status", t.pid, t.tid);
    tree_write(&f->tree, file, "Name:\tx\nUid:\t0\t0\t0\t0\nCpus_allowed:\t%s\nCpus_allowed_list:\t0\n",
               t.mask ? t.mask : "ff");
}

static void take_away(const struct fixture *f, const char *directory)
{
    struct tree sub;
    assert_in_range(snprintf(sub.path, sizeof sub.path, "%s/%s", f->tree.path, directory), 1, sizeof sub.path - 1);
    tree_remove(&sub);
}

static void open_source(struct fixture *f, enum asym_grouping group, const int32_t *pids, size_t n_pids)
{
    struct asym_error err = {""};
    const struct asym_procfs_config config = {
        .root = &f->root, .machine = &f->machine, .group = group, .pids = pids, .n_pids = n_pids};
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
}

static void look(struct fixture *f)
{
    if (!f->source)
        open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    assert_int_equal(f->source->next(f->source, &f->s), 1);
    assert_int_equal(f->s.interval, 0);
    /* What the contract says of the order. */
    size_t n = 0;
    for (size_t i = 0; i < f->s.n_apps; i++) {
        assert_int_equal(f->s.apps[i].first_task, n);
        for (uint32_t k = 0; k < f->s.apps[i].n_tasks; k++)
            assert_int_equal(f->s.procs[f->s.tasks[n + k].proc].app, i);
        n += f->s.apps[i].n_tasks;
    }
    assert_int_equal(n, f->s.n_tasks);
}

static const struct asym_task *task_of(const struct fixture *f, int32_t tid)
{
    const struct asym_task *found = NULL;
    for (size_t i = 0; i < f->s.n_tasks; i++)
        if (f->s.tasks[i].id.tid == tid) {
            assert_null(found);
            found = &f->s.tasks[i];
        }
    return found;
}

static const struct asym_proc *proc_of(const struct fixture *f, int32_t tid)
{
    const struct asym_task *t = task_of(f, tid);
    assert_non_null(t);
    return &f->s.procs[t->proc];
}

static void running_threads_are_listed_with_their_facts(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "build", .state = 'S', .start = 90000});
    put(f, (struct thread){.pid = 10, .tid = 12, .comm = "worker", .state = 'R', .start = 90010, .mask = "f0"});
    put(f,
        (struct thread){.pid = 10, .tid = 11, .comm = "bound", .state = 'R', .start = 90005, .flags = NO_SETAFFINITY});
    look(f);
    assert_int_equal(f->s.n_apps, 1);
    assert_int_equal(f->s.n_tasks, 2);
    assert_int_equal(f->s.apps[0].n_threads, 3);
    assert_int_equal(f->s.apps[0].runnable_instant, 2);
    assert_true(f->s.apps[0].runnable_mean == 0);
    assert_string_equal(f->s.apps[0].comm, "build");
    const struct asym_task *t = task_of(f, 12);
    assert_string_equal(t->comm, "worker");
    assert_true(t->id.tgid == 10 && t->id.start == 90010 && t->cpu == 3 && t->state == 'R' && t->flags == 0);
    assert_int_equal(t->mask->w[0], 0xf0);
    assert_int_equal(t->cpuset->w[0], 0xff);
    assert_int_equal(task_of(f, 11)->flags, ASYM_TASK_NO_SETAFFINITY);
    const struct asym_proc *proc = proc_of(f, 12);
    assert_true(proc->id.tid == 10 && proc->id.start == 90000 && proc->rule == ASYM_RULE_STEER);
    /* Started 900 s after boot, which was 1000 s ago. */
    assert_int_equal(f->s.now - proc->born, 100 * ASYM_SEC);
}

static void equal_masks_have_equal_addresses(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .mask = "0f"});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "b", .state = 'R', .mask = "ff"});
    put(f, (struct thread){.pid = 30, .tid = 30, .comm = "c", .state = 'R', .mask = "ffffffff,ffffffff,0000000f"});
    put(f, (struct thread){.pid = 40, .tid = 40, .comm = "d", .state = 'R', .mask = "ffffffff,ffffffff"});
    look(f);
    /* Bits of CPUs that cannot be are cut off: whole is whole. */
    assert_ptr_equal(task_of(f, 10)->mask, task_of(f, 30)->mask);
    assert_ptr_equal(task_of(f, 20)->mask, task_of(f, 40)->mask);
    assert_ptr_equal(task_of(f, 20)->mask, task_of(f, 20)->cpuset);
    assert_ptr_not_equal(task_of(f, 10)->mask, task_of(f, 20)->mask);
}

static void kernel_threads_are_left_out(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 2, .tid = 2, .comm = "kthreadd", .state = 'R', .flags = KTHREAD});
    put(f, (struct thread){.pid = 3, .tid = 3, .comm = "program", .state = 'R'});
    look(f);
    assert_int_equal(f->s.n_tasks, 1);
    assert_non_null(task_of(f, 3));
    assert_int_equal(f->s.sight.n_procs, 2);
    assert_int_equal(f->s.sight.n_threads, 1);
}

static void zombies_are_not_listed(void **state)
{
    struct fixture *f = *state;
    look(f);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "dead", .state = 'Z', .start = 5});
    put(f, (struct thread){.pid = 11, .tid = 11, .comm = "leader", .state = 'Z', .start = 5});
    put(f, (struct thread){.pid = 11, .tid = 12, .comm = "alive", .state = 'R', .start = 6});
    for (int i = 0; i < 2; i++) {
        look(f);
        assert_int_equal(f->s.n_tasks, 1);
        assert_non_null(task_of(f, 12));
    }
}

static void hostile_names_are_kept_as_they_are(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"a) R 1 1", ")\n)", "\xff\xfe\x80", "((((", "x) Z 0 (y", "", ")"};
    for (size_t i = 0; i < ASYM_LENGTH(names); i++)
        put(f, (struct thread){.pid = 10 + (int)i, .tid = 10 + (int)i, .comm = names[i], .state = 'R'});
    look(f);
    for (size_t i = 0; i < ASYM_LENGTH(names); i++)
        assert_string_equal(task_of(f, 10 + (int)i)->comm, names[i]);
}

static void junk_files_cost_only_their_thread(void **state)
{
    struct fixture *f = *state;
    for (int pid = 10; pid < 18; pid++) {
        put(f, (struct thread){.pid = pid, .tid = pid, .comm = "ok", .state = 'R'});
        put(f, (struct thread){.pid = pid, .tid = pid + 100, .comm = "ok", .state = 'R'});
    }
    tree_write(&f->tree, "proc/10/task/110/stat", "rubbish");
    tree_write(&f->tree, "proc/11/task/111/stat", "%s", "");
    tree_write(&f->tree, "proc/12/task/112/status", "Name:\tno mask\n");
    tree_write(&f->tree, "proc/13/task/113/status", "Cpus_allowed:\txyz\n");
    tree_unlink(&f->tree, "proc/14/task/114/stat");
    tree_write(&f->tree, "proc/15/stat", "15 (whole process is junk");
    tree_write(&f->tree, "proc/16/cgroup", "rubbish");
    tree_write(&f->tree, "proc/17x/stat", "not a process");
    tree_write(&f->tree, "proc/99999999999/stat", "no number");
    tree_write(&f->tree, "proc/18", "a file");
    tree_mkdir(&f->tree, "proc/19/task");
    look(f);
    for (int pid = 10; pid < 18; pid++)
        if (pid != 15)
            assert_non_null(task_of(f, pid));
    for (int tid = 110; tid < 116; tid++)
        assert_null(task_of(f, tid));
    assert_int_equal(task_of(f, 16)->cpuset->w[0], 0xff);
    assert_int_equal(f->s.n_apps, 7);
}

static void a_tree_without_schedstat_still_shows_states(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    tree_unlink(&f->tree, "proc/10/task/10/schedstat");
    look(f);
    assert_non_null(task_of(f, 10));
    assert_int_equal(f->s.apps[0].runnable_instant, 1);
}

static bool said_to_have_hardly_run(struct fixture *f, int32_t tid)
{
    look(f);
    assert_non_null(task_of(f, tid));
    return task_of(f, tid)->flags & ASYM_TASK_HARDLY_RAN;
}

static void who_has_run_for_less_than_a_millisecond_is_told(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    tree_write(&f->tree, "proc/10/task/10/schedstat", "999999 5000000000 9\n");
    assert_true(said_to_have_hardly_run(f, 10));
    assert_true(said_to_have_hardly_run(f, 10)); /* since its birth, not since the last look */
    tree_write(&f->tree, "proc/10/task/10/schedstat", "1000000 5000000000 9\n");
    assert_false(said_to_have_hardly_run(f, 10));
    assert_false(said_to_have_hardly_run(f, 10));
}

static void who_has_run_for_a_time_that_is_not_known_is_not(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .ticks = "0 0"});
    tree_unlink(&f->tree, "proc/10/task/10/schedstat");
    assert_false(said_to_have_hardly_run(f, 10));
}

static void ticks_tell_where_the_kernel_has_no_schedstat(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *ticks;
        bool hardly;
    } rows[] = {{"0 0", true}, {"1 0", false}, {"0 1", false}};
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    ((struct asym_procfs *)f->source)->no_schedstat = true;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .ticks = rows[i].ticks});
        assert_int_equal(said_to_have_hardly_run(f, 10), rows[i].hardly);
    }
}

static void a_process_that_vanishes_between_two_looks_is_forgotten(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "b", .state = 'R'});
    look(f);
    assert_int_equal(f->s.n_tasks, 3);
    take_away(f, "proc/10/task/11");
    take_away(f, "proc/20");
    look(f);
    assert_int_equal(f->s.n_tasks, 1);
    assert_int_equal(f->s.sight.n_procs, 1);
    assert_int_equal(f->s.sight.n_threads, 1);
    /* Half gone: the directory is still there, its files are not. */
    tree_unlink(&f->tree, "proc/10/task/10/stat");
    tree_unlink(&f->tree, "proc/10/task/10/schedstat");
    look(f);
    assert_int_equal(f->s.n_tasks, 0);
    take_away(f, "proc/10");
    look(f);
    assert_int_equal(f->s.sight.n_procs, 0);
}

static void newborn_threads_are_listed_once_though_idle(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'S', .start = 1});
    look(f);
    assert_int_equal(f->s.n_tasks, 0);
    put(f, (struct thread){.pid = 10, .tid = 9, .comm = "new", .state = 'S', .start = 50, .mask = "3"});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "child", .state = 'S', .start = 50, .ppid = 10});
    look(f);
    /* A captured tree has no link counts: its threads are listed once. */
    assert_non_null(task_of(f, 20));
    assert_int_equal(task_of(f, 20)->flags, ASYM_TASK_NEWBORN);
    look(f);
    assert_null(task_of(f, 20));
}

static void a_number_that_another_thread_has_now_is_told_by_its_start(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "leader", .state = 'S', .start = 1});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "old", .state = 'R', .start = 2, .mask = "0f"});
    look(f);
    assert_int_equal(task_of(f, 11)->mask->w[0], 0x0f);
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "new", .state = 'R', .start = 77, .mask = "f0"});
    look(f);
    const struct asym_task *t = task_of(f, 11);
    assert_int_equal(t->id.start, 77);
    assert_string_equal(t->comm, "new");
    assert_int_equal(t->flags, ASYM_TASK_NEWBORN);
    assert_int_equal(t->mask->w[0], 0xf0);
}

static void a_number_that_another_process_has_now_is_another_application(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "old", .state = 'R', .start = 1, .ppid = 1});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "parent", .state = 'R', .start = 5});
    look(f);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "new", .state = 'R', .start = 88, .ppid = 20});
    look(f);
    assert_int_equal(f->s.n_apps, 2);
    const struct asym_proc *proc = proc_of(f, 10);
    assert_int_equal(proc->id.start, 88);
    assert_int_equal(proc->ppid, 20);
    assert_string_equal(f->s.apps[proc->app].comm, "new");
    assert_int_equal(f->s.apps[proc->app].id.start, 88);
    assert_int_equal(task_of(f, 10)->flags, ASYM_TASK_NEWBORN);
    assert_true(proc_of(f, 20)->last_fork != 0);
}

static void a_program_that_renames_itself_has_its_new_name(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "sh", .state = 'R', .start = 1});
    look(f);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "make", .state = 'R', .start = 1});
    look(f);
    assert_string_equal(f->s.apps[0].comm, "make");
}

static void only_what_was_asked_for_and_its_descendants_are_seen(void **state)
{
    struct fixture *f = *state;
    static const int32_t pids[] = {50};
    put(f, (struct thread){.pid = 1, .tid = 1, .comm = "init", .state = 'R', .start = 1});
    put(f, (struct thread){.pid = 50, .tid = 50, .comm = "wanted", .state = 'R', .start = 10, .ppid = 1});
    /* Numbers have gone round: the child's is below its parent's. */
    put(f, (struct thread){.pid = 7, .tid = 7, .comm = "grandchild", .state = 'R', .start = 30, .ppid = 60});
    put(f, (struct thread){.pid = 60, .tid = 60, .comm = "child", .state = 'R', .start = 20, .ppid = 50});
    put(f, (struct thread){.pid = 70, .tid = 70, .comm = "other", .state = 'R', .start = 20, .ppid = 1});
    /* Its parent's number was another's when it was born. */
    put(f, (struct thread){.pid = 80, .tid = 80, .comm = "elder", .state = 'R', .start = 5, .ppid = 50});
    open_source(f, ASYM_GROUP_PROCESS, pids, 1);
    look(f);
    assert_int_equal(f->s.n_tasks, 3);
    assert_true(task_of(f, 50) && task_of(f, 60) && task_of(f, 7));
    /* That a parent ends, and init takes its children over, changes nothing. */
    take_away(f, "proc/60");
    put(f, (struct thread){.pid = 7, .tid = 7, .comm = "grandchild", .state = 'R', .start = 30, .ppid = 1});
    put(f, (struct thread){.pid = 90, .tid = 90, .comm = "late", .state = 'R', .start = 40, .ppid = 7});
    look(f);
    assert_int_equal(f->s.n_tasks, 3);
    assert_true(task_of(f, 50) && task_of(f, 7) && task_of(f, 90));
    /* Who gets the number later was not asked for. */
    put(f, (struct thread){.pid = 50, .tid = 50, .comm = "stranger", .state = 'R', .start = 99, .ppid = 1});
    look(f);
    assert_null(task_of(f, 50));
    assert_non_null(task_of(f, 7));
}

static void put_maps(const struct fixture *f, const char *library)
{
    tree_write(&f->tree, "proc/10/maps",
               "5500-5600 r-xp 00000000 08:01 99 /bin/x\n5600-5700 r-xp 00000000 08:01 99 %s\n", library);
}

/* Its maps as if they had been read so long ago that they may be read again. */
static void let_maps_age(struct fixture *f)
{
    struct asym_procfs *p = (struct asym_procfs *)f->source;
    asym_pid_table_find(&p->by_pid, 10)->maps_read_at = 1;
}

static void one_thread_with_a_runtime_that_counts_late_is_told(void **state)
{
    struct fixture *f = *state;
    struct thread t = {.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000};
    put(f, t);
    put_maps(f, "/usr/lib/libomp.so.5");
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90001});
    asym_pid_table_find(&((struct asym_procfs *)f->source)->by_pid, 10)->stale_threads = true;
    /* Who has made them may set its mask once more: not before it has run for a while is it past that. */
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    tree_write(&f->tree, "proc/10/task/10/schedstat", "1999999 0 1\n");
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    tree_write(&f->tree, "proc/10/task/10/schedstat", "2000000 0 1\n");
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
}

/* However old the process is: what is loaded while a program settles is found before that has ended. */
static void a_library_that_an_old_process_loads_after_an_exec_is_found(void **state)
{
    struct fixture *f = *state;
    struct thread t = {.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 1, .vsize = 1000};
    put(f, t);
    put_maps(f, "/usr/lib/libc.so.6");
    look(f);
    struct asym_procfs *p = (struct asym_procfs *)f->source;
    struct asym_process *proc = asym_pid_table_find(&p->by_pid, 10);
    proc->maps_read_at = p->now - 100 * ASYM_MSEC;
    t.vsize = 2000;
    put(f, t);
    put_maps(f, "/usr/lib/libomp.so.5");
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    proc->last_exec = p->now - 400 * ASYM_MSEC;
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
}

/* One that leaves the work to others is not waited for. */
static void who_waits_for_its_threads_is_past_it_in_time(void **state)
{
    struct fixture *f = *state;
    struct thread t = {.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000};
    put(f, t);
    put_maps(f, "/usr/lib/libomp.so.5");
    look(f);
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90001});
    struct asym_procfs *p = (struct asym_procfs *)f->source;
    asym_pid_table_find(&p->by_pid, 10)->stale_threads = true;
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    asym_pid_table_find(&p->by_pid, 10)->threads_at -= ASYM_SEC;
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
}

static void a_library_that_is_loaded_later_is_found(void **state)
{
    struct fixture *f = *state;
    struct thread t = {.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000};
    put(f, t);
    put_maps(f, "/usr/lib/libc.so.6");
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    put_maps(f, "/usr/lib/libtbb.so.12");
    let_maps_age(f);
    look(f);
    /* Nothing has been mapped, as far as its size says. */
    assert_int_equal(proc_of(f, 10)->flags, 0);
    t.vsize = 2000;
    put(f, t);
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
}

/* Whose memory may be locked for as long as a file system hangs. */
static void maps_of_a_program_that_waits_for_a_disk_are_left_unread(void **state)
{
    struct fixture *f = *state;
    struct thread t = {.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000};
    put(f, t);
    put_maps(f, "/usr/lib/libc.so.6");
    look(f);
    put_maps(f, "/usr/lib/libomp.so.5");
    let_maps_age(f);
    struct asym_procfs *p = (struct asym_procfs *)f->source;
    struct asym_process *proc = asym_pid_table_find(&p->by_pid, 10);
    proc->vsize = 2000;
    proc->threads[0].state = 'D';
    asym_procfs_read_maps(p, proc);
    assert_int_equal(proc->flags, 0);
    proc->threads[0].state = 'S';
    asym_procfs_read_maps(p, proc);
    assert_int_equal(proc->flags, ASYM_PROC_COUNTS_LATE);
}

/* A reader that answers when it is told to. */
struct fake_reader {
    struct asym_proc_reader port;
    struct asym_read_request asked;
    struct asym_read_answer answer;
    int n_asked, refuses;
    bool answers;
};

static struct fake_reader *fake_of(struct asym_proc_reader *r)
{
    return (struct fake_reader *)(void *)r;
}

static int fake_ask(struct asym_proc_reader *r, const struct asym_read_request *request)
{
    struct fake_reader *fake = fake_of(r);
    fake->n_asked++;
    if (fake->refuses < 0)
        return fake->refuses;
    fake->asked = *request;
    return 0;
}

static int fake_take(struct asym_proc_reader *r, struct asym_read_answer *ret)
{
    struct fake_reader *fake = fake_of(r);
    if (!fake->answers)
        return 0;
    *ret = fake->answer;
    ret->pid = fake->asked.pid;
    ret->start = fake->asked.start;
    ret->tag = fake->asked.tag;
    ret->what = fake->asked.what;
    fake->answers = false;
    return 1;
}

static void open_with_reader(struct fixture *f, struct fake_reader *fake, const struct asym_rules *rules)
{
    struct asym_error err = {""};
    *fake = (struct fake_reader){.port = {.ask = fake_ask, .take = fake_take}};
    const struct asym_procfs_config config = {
        .root = &f->root, .machine = &f->machine, .reader = &fake->port, .rules = rules};
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
}

static void what_is_mapped_is_not_known_until_the_answer_comes(void **state)
{
    struct fixture *f = *state;
    struct fake_reader fake;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000});
    open_with_reader(f, &fake, NULL);
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    assert_int_equal(fake.asked.what, ASYM_READ_MAPS);
    assert_int_equal(fake.asked.pid, 10);
    look(f);
    assert_int_equal(fake.n_asked, 1);
    /* Not read, and asked for again. */
    fake.answer.error = -EAGAIN;
    fake.answers = true;
    look(f);
    assert_int_equal(fake.n_asked, 2);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    /* Cut: more of it is read, until it is known. */
    fake.answer = (struct asym_read_answer){.maps_cut = 1};
    fake.answers = true;
    look(f);
    assert_int_equal(fake.asked.maps_most, 4 * ASYM_READ_MAPS_FIRST);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    fake.answer = (struct asym_read_answer){.maps = ASYM_MAPS_COUNTS_LATE};
    fake.answers = true;
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    assert_int_equal(f->s.sight.n_unread, 0);
}

static void one_that_cannot_be_read_is_left_alone_until_it_has_threads(void **state)
{
    struct fixture *f = *state;
    struct fake_reader fake;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000});
    open_with_reader(f, &fake, NULL);
    look(f);
    fake.answer = (struct asym_read_answer){.error = -ETIME};
    fake.answers = true;
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    assert_int_equal(f->s.sight.n_unread, 1);
    assert_int_equal(fake.n_asked, 1);
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90001});
    asym_pid_table_find(&((struct asym_procfs *)f->source)->by_pid, 10)->stale_threads = true;
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    /* So is one whose user is refused. */
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000});
    fake.refuses = -EPERM;
    look(f);
    assert_int_equal(proc_of(f, 20)->flags, ASYM_PROC_UNKNOWN);
}

static void a_rule_for_command_lines_waits_for_the_answer(void **state)
{
    struct fixture *f = *state;
    struct fake_reader fake;
    struct asym_settings *settings;
    struct asym_error err = {""};
    tree_write(&f->tree, "conf", "[rule \"x\"]\nmatch_cmdline = *secret*\naction = ignore\n");
    char path[512];
    assert_in_range(snprintf(path, sizeof path, "%s/conf", f->tree.path), 1, sizeof path - 1);
    assert_int_equal(asym_settings_new(&settings), 0);
    assert_int_equal(asym_settings_load(settings, path, &err), 0);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90000});
    open_with_reader(f, &fake, settings->rules);
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    assert_int_equal(fake.asked.what, ASYM_READ_CMDLINE);
    strcpy(fake.answer.cmdline, "job --secret");
    fake.answers = true;
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_IGNORE);
    /* Asked again, as rules were read again: until the answer the old one holds; unreadable, it does not match. */
    asym_procfs_set_rules(f->source, settings->rules);
    look(f);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_IGNORE);
    fake.answer.error = -ETIME;
    fake.answers = true;
    look(f);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_STEER);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    asym_settings_free(settings);
}

/* Each call ends after one process; what comes in the end is whole, and nothing is in it twice. */
static void a_look_in_pieces_comes_to_the_same(void **state)
{
    enum { N = 30 };
    struct fixture *f = *state;
    struct asym_error err = {""};
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .piece = 1};
    for (int i = 0; i < N; i++)
        put(f, (struct thread){.pid = 10 + i, .tid = 10 + i, .comm = "job", .state = 'R', .start = 90000});
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
    for (int looks = 0; looks < 3; looks++) {
        int pieces = 1, r;
        while ((r = f->source->next(f->source, &f->s)) == -EINPROGRESS)
            pieces++;
        assert_int_equal(r, 1);
        assert_true(pieces > 2 && pieces <= N + 10);
        assert_int_equal(f->s.n_procs, N - looks);
        assert_int_equal(f->s.n_tasks, N - looks);
        for (int i = looks; i < N; i++)
            assert_non_null(task_of(f, 10 + i));
        /* One ends between two pieces of the next look. */
        assert_int_equal(f->source->next(f->source, &f->s), -EINPROGRESS);
        char path[64];
        snprintf(path, sizeof path, "proc/%d", 10 + looks);
        take_away(f, path);
    }
}

static struct asym_settings *load_rules(struct fixture *f, const char *text)
{
    struct asym_settings *settings;
    struct asym_error err = {""};
    char path[512];
    tree_write(&f->tree, "conf", "%s", text);
    assert_in_range(snprintf(path, sizeof path, "%s/conf", f->tree.path), 1, sizeof path - 1);
    assert_int_equal(asym_settings_new(&settings), 0);
    assert_int_equal(asym_settings_load(settings, path, &err), 0);
    return settings;
}

/* The rules before are freed while processes are listed with their names. */
static void rules_that_change_between_two_pieces_hold_for_the_whole_look(void **state)
{
    enum { N = 30 };
    struct fixture *f = *state;
    struct asym_error err = {""};
    struct asym_settings *before = load_rules(f, "[rule \"old\"]\nmatch_comm = job\naction = ignore\n"),
                         *after = load_rules(f, "[rule \"new\"]\nmatch_comm = job\naction = steer\n");
    const struct asym_procfs_config config = {
        .root = &f->root, .machine = &f->machine, .rules = before->rules, .piece = 1, .group = ASYM_GROUP_CGROUP};
    for (int i = 0; i < N; i++)
        put(f, (struct thread){.pid = 10 + i, .tid = 10 + i, .comm = "job", .state = 'R', .start = 90000});
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
    for (int i = 0; i < N / 2; i++)
        assert_int_equal(f->source->next(f->source, &f->s), -EINPROGRESS);
    asym_procfs_set_rules(f->source, after->rules);
    asym_procfs_set_group(f->source, ASYM_GROUP_PROCESS);
    asym_settings_free(before);
    int r;
    while ((r = f->source->next(f->source, &f->s)) == -EINPROGRESS)
        ;
    assert_int_equal(r, 1);
    assert_int_equal(f->s.n_apps, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(proc_of(f, 10 + i)->rule, ASYM_RULE_STEER);
        assert_string_equal(proc_of(f, 10 + i)->rule_name, "new");
        assert_int_equal(f->s.apps[i].n_tasks, 1);
    }
    asym_settings_free(after);
}

static void a_program_of_that_moment_has_its_maps_left_unread(void **state)
{
    struct fixture *f = *state;
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "cc", .state = 'R', .start = UPTIME_SECONDS * 100});
    put_maps(f, "/usr/lib/libomp.so.5");
    look(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
}

static void parents_in_a_ring_end(void **state)
{
    struct fixture *f = *state;
    static const int32_t pids[] = {50};
    put(f, (struct thread){.pid = 50, .tid = 50, .comm = "wanted", .state = 'R'});
    put(f, (struct thread){.pid = 60, .tid = 60, .comm = "a", .state = 'R', .ppid = 70});
    put(f, (struct thread){.pid = 70, .tid = 70, .comm = "b", .state = 'R', .ppid = 60});
    put(f, (struct thread){.pid = 80, .tid = 80, .comm = "own", .state = 'R', .ppid = 80});
    open_source(f, ASYM_GROUP_PROCESS, pids, 1);
    look(f);
    assert_int_equal(f->s.n_tasks, 1);
}

static void a_pid_that_is_not_there_is_said(void **state)
{
    struct fixture *f = *state;
    static const int32_t pids[] = {51};
    struct asym_error err = {""};
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .pids = pids, .n_pids = 1};
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), -ESRCH);
    assert_non_null(strstr(err.text, "51"));
    assert_null(f->source);
}

static void a_root_without_proc_is_said(void **state)
{
    struct fixture *f = *state;
    struct asym_error err = {""};
    take_away(f, "proc");
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine};
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), -ENOENT);
    assert_non_null(strstr(err.text, "proc"));
}

static void put_in_cgroup(const struct fixture *f, int pid, const char *text)
{
    char file[64];
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "x", .state = 'R', .mask = "ff"});
    snprintf(file, sizeof file, "proc/%d/cgroup", pid);
    tree_write(&f->tree, file, "%s", text);
}

static void a_cpuset_is_that_of_the_nearest_cgroup_that_has_one(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    tree_write(&f->tree, "sys/fs/cgroup/batch/cpuset.cpus.effective", "0-3\n");
    tree_mkdir(&f->tree, "sys/fs/cgroup/batch/a/b");
    tree_write(&f->tree, "sys/fs/cgroup/cpuset/old/cpuset.effective_cpus", "4-5\n");
    tree_write(&f->tree, "sys/fs/cgroup/junk/cpuset.cpus.effective", "9-1,x\n");
    put_in_cgroup(f, 10, "0::/batch\n");
    put_in_cgroup(f, 11, "0::/batch/a/b\n");
    put_in_cgroup(f, 12, "0::/\n");
    put_in_cgroup(f, 13, "3:cpuset:/old\n0::/batch\n");
    put_in_cgroup(f, 14, "0::/junk\n");
    put_in_cgroup(f, 15, "0::/../outside\n");
    put_in_cgroup(f, 16, "0::/batch/gone\n");
    look(f);
    static const unsigned want[] = {0x0f, 0x0f, 0xff, 0x30, 0xff, 0xff, 0x0f};
    for (size_t i = 0; i < ASYM_LENGTH(want); i++)
        assert_int_equal(task_of(f, 10 + (int)i)->cpuset->w[0], want[i]);
    assert_ptr_equal(task_of(f, 10)->cpuset, task_of(f, 16)->cpuset);
}

/* isolcpus=6,7: nobody who has not asked for them is narrowed by being kept off. */
static void isolated_cpus_are_left_out_where_the_mask_leaves_them_out(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "sys/devices/system/cpu/isolated", "6-7\n");
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "default", .state = 'R', .mask = "3f"});
    put(f, (struct thread){.pid = 11, .tid = 11, .comm = "asked", .state = 'R', .mask = "c0"});
    put(f, (struct thread){.pid = 12, .tid = 12, .comm = "everywhere", .state = 'R', .mask = "ff"});
    look(f);
    assert_int_equal(task_of(f, 10)->cpuset->w[0], 0x3f);
    assert_int_equal(task_of(f, 11)->cpuset->w[0], 0xff);
    assert_int_equal(task_of(f, 12)->cpuset->w[0], 0xff);
}

static void processes_of_one_cgroup_are_one_application(void **state)
{
    struct fixture *f = *state;
    put_in_cgroup(f, 10, "0::/a\n");
    put_in_cgroup(f, 11, "0::/b\n");
    put_in_cgroup(f, 12, "0::/a\n");
    put(f, (struct thread){.pid = 12, .tid = 112, .comm = "t", .state = 'R'});
    put_in_cgroup(f, 13, "0::/a\n");
    put(f, (struct thread){.pid = 13, .tid = 13, .comm = "idle", .state = 'S'});
    tree_write(&f->tree, "proc/13/cgroup", "0::/a\n");
    open_source(f, ASYM_GROUP_CGROUP, NULL, 0);
    for (int i = 0; i < 3; i++) {
        look(f);
        assert_int_equal(f->s.n_apps, 2);
        assert_int_equal(f->s.n_procs, 3);
        const struct asym_app *a = &f->s.apps[proc_of(f, 10)->app];
        assert_true(proc_of(f, 10)->app == proc_of(f, 12)->app && proc_of(f, 11)->app != proc_of(f, 12)->app);
        assert_string_equal(a->cgroup, "/a");
        assert_true(a->id.tid == 0 && a->id.tgid == 0 && a->id.start != 0);
        assert_int_equal(a->n_tasks, 3);
        assert_int_equal(a->n_threads, 4);
        assert_int_equal(a->runnable_instant, 3);
    }
    asym_procfs_set_group(f->source, ASYM_GROUP_PROCESS);
    look(f);
    assert_int_equal(f->s.n_apps, 3);
    assert_null(f->s.apps[0].cgroup);
    asym_procfs_set_group(f->source, ASYM_GROUP_CGROUP);
    look(f);
    assert_int_equal(f->s.n_apps, 2);
}

static void processes_are_found_by_number_whatever_comes_and_goes(void **state)
{
    (void)state;
    struct asym_pid_table t = {0};
    static struct asym_process procs[3000];
    unsigned seed = 1;
    for (int i = 0; i < 3000; i++)
        procs[i].pid = i * 1024 + 1;
    bool there[3000] = {false};
    for (int i = 0; i < 100000; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned k = (seed >> 8) % 3000;
        assert_ptr_equal(asym_pid_table_find(&t, procs[k].pid), there[k] ? &procs[k] : NULL);
        if (there[k])
            asym_pid_table_remove(&t, procs[k].pid);
        else
            assert_int_equal(asym_pid_table_add(&t, &procs[k]), 0);
        there[k] = !there[k];
    }
    for (int k = 0; k < 3000; k++)
        assert_ptr_equal(asym_pid_table_find(&t, procs[k].pid), there[k] ? &procs[k] : NULL);
    asym_pid_table_done(&t);
}

static void ten_thousand_masks_are_each_kept_once(void **state)
{
    (void)state;
    struct asym_mask_pool pool = {0};
    static const struct asym_mask *first[10000];
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < 10000; i++) {
            struct asym_mask m = {.w = {[15] = i}};
            m.w[i % 15] = 1;
            const struct asym_mask *got = asym_mask_pool_get(&pool, &m);
            assert_true(got && asym_mask_equal(got, &m));
            assert_true(round == 0 || got == first[i]);
            first[i] = got;
        }
    assert_int_equal(pool.n, 10000);
    asym_mask_pool_done(&pool);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(running_threads_are_listed_with_their_facts),
        TEST(equal_masks_have_equal_addresses),
        TEST(kernel_threads_are_left_out),
        TEST(zombies_are_not_listed),
        TEST(hostile_names_are_kept_as_they_are),
        TEST(junk_files_cost_only_their_thread),
        TEST(a_tree_without_schedstat_still_shows_states),
        TEST(who_has_run_for_less_than_a_millisecond_is_told),
        TEST(who_has_run_for_a_time_that_is_not_known_is_not),
        TEST(ticks_tell_where_the_kernel_has_no_schedstat),
        TEST(a_process_that_vanishes_between_two_looks_is_forgotten),
        TEST(newborn_threads_are_listed_once_though_idle),
        TEST(a_number_that_another_thread_has_now_is_told_by_its_start),
        TEST(a_number_that_another_process_has_now_is_another_application),
        TEST(a_program_that_renames_itself_has_its_new_name),
        TEST(only_what_was_asked_for_and_its_descendants_are_seen),
        TEST(one_thread_with_a_runtime_that_counts_late_is_told),
        TEST(a_library_that_an_old_process_loads_after_an_exec_is_found),
        TEST(who_waits_for_its_threads_is_past_it_in_time),
        TEST(a_library_that_is_loaded_later_is_found),
        TEST(maps_of_a_program_that_waits_for_a_disk_are_left_unread),
        TEST(a_program_of_that_moment_has_its_maps_left_unread),
        TEST(what_is_mapped_is_not_known_until_the_answer_comes),
        TEST(one_that_cannot_be_read_is_left_alone_until_it_has_threads),
        TEST(a_look_in_pieces_comes_to_the_same),
        TEST(rules_that_change_between_two_pieces_hold_for_the_whole_look),
        TEST(a_rule_for_command_lines_waits_for_the_answer),
        TEST(parents_in_a_ring_end),
        TEST(a_pid_that_is_not_there_is_said),
        TEST(a_root_without_proc_is_said),
        TEST(a_cpuset_is_that_of_the_nearest_cgroup_that_has_one),
        TEST(isolated_cpus_are_left_out_where_the_mask_leaves_them_out),
        TEST(processes_of_one_cgroup_are_one_application),
        cmocka_unit_test(processes_are_found_by_number_whatever_comes_and_goes),
        cmocka_unit_test(ten_thousand_masks_are_each_kept_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
