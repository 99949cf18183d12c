/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/report-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/mask.h"

struct asym_mask report_fixture_cpus(const char *list)
{
    struct asym_mask m;
    if (asym_mask_parse_list(list, strlen(list), &m) < 0)
        abort();
    return m;
}

static void *room_for(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p)
        abort();
    return p;
}

static void build_machine(struct asym_machine *m, unsigned n_cpus, unsigned n_fast)
{
    m->n_cpus = n_cpus;
    for (unsigned c = 0; c < n_cpus; c++) {
        asym_mask_set(&m->usable, c);
        m->cpus[c] = (struct asym_cpu){
            .speed = c >= n_cpus - n_fast ? 2 : 1,
            .core = (int16_t)(c / 2),
            .llc = (int16_t)(c / 4),
            .freq_domain = (int16_t)c,
            .origin = n_fast > 0 && n_fast < n_cpus ? ASYM_ORIGIN_CPUFREQ : ASYM_ORIGIN_NONE,
        };
    }
    m->online = m->usable;
    if (asym_machine_finish(m) < 0)
        abort();
}

struct report_fixture *report_fixture_new(unsigned n_cpus, unsigned n_fast, size_t room)
{
    struct report_fixture *s = room_for(0, sizeof *s);
    build_machine(&s->machine, n_cpus, n_fast);
    s->all = s->machine.usable;
    s->apps = room_for(room, sizeof *s->apps);
    s->procs = room_for(room, sizeof *s->procs);
    s->tasks = room_for(room, sizeof *s->tasks);
    s->plan_apps = room_for(room, sizeof *s->plan_apps);
    s->plan_tasks = room_for(room, sizeof *s->plan_tasks);
    s->masks = room_for(room, sizeof *s->masks);
    s->snapshot = (struct asym_snapshot){
        .now = 10 * ASYM_SEC,
        .interval = 100 * ASYM_MSEC,
        .machine = &s->machine,
        .apps = s->apps,
        .procs = s->procs,
        .tasks = s->tasks,
        .missing = {[ASYM_SIGNAL_IPC] = "no counters", [ASYM_SIGNAL_STALL] = "no counters"},
        .coverage = {.n_procs = 74, .n_threads = 210, .process_events = true},
    };
    s->plan = (struct asym_plan){.apps = s->plan_apps, .tasks = s->plan_tasks};
    if (asym_settings_new(&s->settings) < 0)
        abort();
    return s;
}

void report_fixture_free(struct report_fixture *s)
{
    asym_settings_free(s->settings);
    free(s->apps);
    free(s->procs);
    free(s->tasks);
    free(s->plan_apps);
    free(s->plan_tasks);
    free(s->masks);
    free(s);
}

/* Set a raw name. Like the kernel, cut it to ASYM_COMM_LEN. */
static void name(char ret[ASYM_COMM_LEN], const char *comm)
{
    size_t n = strnlen(comm, ASYM_COMM_LEN - 1);
    memset(ret, 0, ASYM_COMM_LEN);
    memcpy(ret, comm, n);
}

struct asym_plan_app *report_fixture_app(struct report_fixture *s, const char *comm, int32_t pid, enum asym_phase phase,
                                         enum asym_class class, double runnable)
{
    size_t a = s->snapshot.n_apps++;
    s->snapshot.n_procs = s->plan.n_apps = s->snapshot.n_apps;
    s->apps[a] = (struct asym_app){
        .id = {.tid = pid, .tgid = pid, .start = 1},
        .first_task = (uint32_t)s->snapshot.n_tasks,
        .runnable_mean = runnable,
    };
    name(s->apps[a].comm, comm);
    s->procs[a] = (struct asym_proc){.id = s->apps[a].id, .app = (uint32_t)a};
    s->plan_apps[a] = (struct asym_plan_app){.phase = phase, .class = class, .runnable = runnable};
    return &s->plan_apps[a];
}

const struct asym_reason report_fixture_own = {.text = "a fast CPU each"};
const struct asym_reason report_fixture_spare = {.text = "a spare fast CPU"};
const struct asym_reason report_fixture_many = {.text = "%.1f runnable threads, more than %.0f"};
const struct asym_reason report_fixture_turn = {.text = "had its turn: %.2f s on fast CPUs, the mean is %.2f s"};
const struct asym_reason report_fixture_unsteered = {.text = "nothing is steered", .kind = ASYM_REASON_UNSTEERED};

struct asym_plan_task *report_fixture_thread(struct report_fixture *s, const char *comm, int32_t tid, int32_t cpu)
{
    size_t i = s->snapshot.n_tasks++, a = s->snapshot.n_apps - 1;
    s->plan.n_tasks = s->snapshot.n_tasks;
    s->apps[a].n_tasks++;
    s->apps[a].n_threads++;
    s->tasks[i] = (struct asym_task){
        .id = {.tid = tid, .tgid = s->apps[a].id.tgid, .start = 1},
        .proc = (uint32_t)a,
        .cpu = cpu,
        .state = 'R',
        .runnable = 1,
        .running = 1,
        .mask = &s->all,
        .cpuset = &s->machine.usable,
    };
    name(s->tasks[i].comm, comm);
    s->plan_tasks[i] = (struct asym_plan_task){
        .target = cpu, .class = s->plan_apps[a].class, .reason = &report_fixture_spare, .mask = &s->all};
    return &s->plan_tasks[i];
}

void report_fixture_steer(struct report_fixture *s, struct asym_plan_task *task, int32_t target, const char *cpus,
                          const struct asym_reason *reason)
{
    task->moves = target != s->tasks[task - s->plan_tasks].cpu;
    s->plan.n_moves += task->moves;
    task->target = target;
    s->masks[task - s->plan_tasks] = report_fixture_cpus(cpus);
    task->mask = &s->masks[task - s->plan_tasks];
    task->reason = reason;
}

struct asym_report report_fixture_report(const struct report_fixture *s)
{
    return (struct asym_report){
        .snapshot = &s->snapshot,
        .plan = &s->plan,
        .policy = asym_policy_find("pa"),
        .settings = s->settings,
        .observed_ms = 500.24,
        .scan_cpu_us = 812.34,
    };
}
