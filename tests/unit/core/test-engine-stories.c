/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stories of one steered thread and its relatives: what happens to it, step by step, and what the engine makes of that. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "base/macro.h"
#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)
/* The default of [enforce] settle. */
#define SETTLE (500 * ASYM_MSEC)

/* One row of a story. What a row leaves out does not change, and is not asserted. */
struct row {
    int32_t tid; /* the thread of which this row and the next ones speak; the first row speaks of thread 100 */

    /* Before the step. */
    int32_t thread, child;      /* it comes, a newborn with the mask 4-7: a thread of process 100, or a child process */
    asym_usec born, fork, exec; /* of its process, after now */
    const char *online, *cpuset, *mask, *nice;
    int32_t order; /* the policy gives it this CPU; -1: none */
    int8_t boost;
    uint32_t flags, proc_flags;
    int sched;
    double share; /* runnable and running for so much of the time */
    enum asym_rule_action rule;
    const char *rule_name;
    bool no_flags, wakes, sleeps, is_another, pause, adopted;
    bool hides, shows_up; /* hides: snapshots do not list it until it shows up */

    /* The step, so many times, once if times is 0. After a run its actions are done; after a step the answer is as given. */
    asym_usec run, step;
    unsigned times;
    enum asym_outcome_kind answer;
    int error;

    /* These must hold after each step. */
    size_t asks; /* number of actions */
    bool quiet;  /* there is none */
    enum asym_exclusion why;
    const struct asym_reason *reason;
    bool not_foreign, is_released, is_repaired, is_steered; /* is_released: the reason is that of the action */
    int32_t target;
    double figure;
    const char *allowed, *plans, *has, *has_nice; /* plans: the planned mask; has: the mask in force */
};

struct story {
    const char *name;
    bool fresh;   /* thread 100 is not steered yet */
    int8_t boost; /* it is steered with this change of its nice value */
    struct row rows[7];
};

static const struct story stories[] = {
    {"an unchanged snapshot gives no second action", .rows = {{.run = TICK, .times = 5, .quiet = true, .target = 5}}},
    /* asymd has set nothing, so it restores nothing */
    {"a retry is asked again and steers nothing", true,
     .rows = {{.step = TICK, .times = 3, .asks = 1, .answer = ASYM_OUTCOME_RETRY, .error = -ECANCELED},
              {.hides = true, .step = 20 * ASYM_SEC, .quiet = true}}},
    {"a thread that is gone is forgotten",
     .rows = {{.order = 1, .step = TICK, .asks = 1, .answer = ASYM_OUTCOME_GONE, .error = -ESRCH},
              {.hides = true, .step = 20 * ASYM_SEC, .quiet = true}}},
    /* the same after a day of sleep */
    {"hands off is for good", true,
     .rows = {{.step = TICK, .answer = ASYM_OUTCOME_HANDS_OFF, .error = -EPERM},
              {.step = TICK, .quiet = true, .why = ASYM_WHY_DENIED, .figure = EPERM},
              {.hides = true, .step = 24 * 3600 * ASYM_SEC, .times = 3},
              {.shows_up = true, .step = TICK},
              {.step = TICK, .quiet = true, .why = ASYM_WHY_DENIED}}},
    /* A refresh lists the tasks of the last sample: a thread that has ended since may show its old mask. */
    {"a thread that has ended is not foreign",
     .rows = {{.mask = "0-7", .flags = ASYM_TASK_ENDED, .step = TICK, .times = 3, .why = ASYM_WHY_IDLE}}},
    /* Three samples are not enough when they follow each other at once. */
    {"refreshes do not make a mask foreign",
     .rows = {{.mask = "0-3", .step = ASYM_MSEC, .times = 10, .not_foreign = true},
              {.step = TICK, .why = ASYM_WHY_FOREIGN}}},
    {"a new thread with an old tid is another thread", true,
     .rows = {{.step = TICK, .answer = ASYM_OUTCOME_HANDS_OFF, .error = -EPERM},
              {.hides = true, .step = 3600 * ASYM_SEC},
              {.shows_up = true, .is_another = true, .step = TICK, .target = 5}}},
    /* it is not foreign and not released */
    {"a reused tid does not inherit that it was steered",
     .rows = {{.is_another = true, .mask = "0-7", .order = -1},
              {.step = TICK, .quiet = true, .reason = &engine_fixture_unsteered}}},
    {"a release by the fork guard is not foreign",
     .rows = {{.fork = TICK / 2, .mask = "0-7", .step = TICK, .quiet = true, .why = ASYM_WHY_FORKED},
              {.run = 10 * ASYM_SEC, .asks = 1, .has = "4-7"}}},
    /* The fork guard restores the mask that the thread had. It leaves out no online CPU, so asymd steers it as a full one. */
    {"a mask of its own restored by the fork guard is not foreign", true,
     .rows = {{.online = "0-5", .mask = "0-5", .run = TICK, .has = "4-5"},
              {.fork = TICK / 2, .mask = "0-5", .step = TICK, .times = 3, .quiet = true, .why = ASYM_WHY_FORKED},
              {.run = 10 * ASYM_SEC, .has = "4-5"}}},
    /* ... and the full cpuset only to a thread that had it. */
    {"another mask than its own after a fork is foreign", true,
     .rows = {{.online = "0-5", .mask = "0-5", .run = TICK, .has = "4-5"},
              {.fork = TICK / 2, .mask = "0-6", .step = TICK, .times = 2},
              {.step = TICK, .why = ASYM_WHY_FOREIGN}}},
    {"fork_holdoff releases at once and lasts",
     .rows = {{.fork = TICK / 2, .step = TICK, .is_released = true, .why = ASYM_WHY_FORKED},
              {.run = 9900 * ASYM_MSEC, .quiet = true, .figure = 0.05},
              {.run = 50 * ASYM_MSEC, .asks = 1}}},
    {"fork_holdoff releases sleeping threads too",
     .rows = {{.hides = true, .fork = 1, .step = TICK, .is_released = true, .why = ASYM_WHY_FORKED}}},
    {"a fork stamped after the snapshot counts",
     .rows = {{.fork = TICK + 10, .step = TICK, .is_released = true, .why = ASYM_WHY_FORKED}}},
    /* The fork guard has restored its mask, as at a fork. After exec the wait is as long as for a new process. */
    {"an exec releases for as long as a new process settles",
     .rows = {{.exec = TICK / 2, .mask = "0-7", .step = TICK, .quiet = true, .why = ASYM_WHY_SETTLING},
              {.run = SETTLE, .not_foreign = true, .has = "4-7"}}},
    {"without a fork guard an exec is released at once",
     .rows = {{.exec = TICK / 2, .step = TICK, .is_released = true, .why = ASYM_WHY_SETTLING}}},
    {"a rule that comes to ignore releases at once",
     .rows = {{.rule = ASYM_RULE_IGNORE, .step = TICK, .is_released = true, .why = ASYM_WHY_RULE_IGNORE}}},
    /* It has loaded the runtime while it ran. */
    {"a program that counts late is released unless a rule names it",
     .rows = {{.proc_flags = ASYM_PROC_COUNTS_LATE, .step = TICK, .is_released = true, .why = ASYM_WHY_COUNTS_LATE},
              {.rule_name = "rule one", .step = TICK, .asks = 1, .is_steered = true}}},
    /* LLVM's OpenMP does this: a new thread sets the original mask of its process as soon as it gets a CPU. */
    {"a thread that sets its mask first is not lost",
     .rows = {{.thread = 101, .mask = "0-7", .flags = ASYM_TASK_NEWBORN | ASYM_TASK_HARDLY_RAN},
              {.run = TICK, .has = "0-7", .why = ASYM_WHY_HARDLY_RAN},
              {.flags = ASYM_TASK_HARDLY_RAN, .run = TICK},
              {.mask = "0-7", .no_flags = true, .run = TICK, .times = 4},
              {.run = TICK, .has = "4-7", .target = 6}}},
    /* For one sample its counters may be those of another thread: for example when a thread calls exec. */
    {"a steered thread stays steered however little it has run",
     .rows = {{.flags = ASYM_TASK_HARDLY_RAN, .run = TICK, .quiet = true, .target = 5}}},
    {"a policy that no longer steers it releases at once",
     .rows = {{.order = -1, .step = TICK, .is_released = true, .reason = &engine_fixture_unsteered}}},
    {"a thread that turned realtime is released",
     .rows = {{.sched = SCHED_FIFO, .step = TICK, .is_released = true, .why = ASYM_WHY_REALTIME}}},
    {"a sleeping thread is released after release",
     .rows = {{.hides = true, .run = 4999 * ASYM_MSEC, .quiet = true},
              {.step = 1 * ASYM_MSEC, .is_released = true, .why = ASYM_WHY_IDLE},
              {.step = TICK, .quiet = true}}},
    /* The phase of the application has lasted longer than release, but the thread has not slept that long. */
    {"a thread that has just fallen asleep stays steered",
     .rows = {{.thread = 101, .mask = "0-7", .no_flags = true, .run = TICK, .times = 60},
              {.tid = 100, .sleeps = true, .run = TICK, .why = ASYM_WHY_IDLE, .has = "4-7"}}},
    {"a barely active application is released after release",
     .rows = {{.share = 0.1, .run = TICK, .times = 50, .quiet = true, .why = ASYM_WHY_IDLE, .plans = "4-7"},
              {.step = TICK, .is_released = true, .why = ASYM_WHY_IDLE}}},
    {"a release not done is asked again",
     .rows = {{.hides = true, .step = 5 * ASYM_SEC, .asks = 1, .answer = ASYM_OUTCOME_RETRY, .error = -EAGAIN},
              {.step = TICK, .is_released = true, .why = ASYM_WHY_IDLE}}},
    {"a released thread can be steered again",
     .rows = {{.hides = true, .run = 5 * ASYM_SEC}, {.shows_up = true, .run = TICK, .has = "4-7"}}},

    /* Cpusets and CPUs that change. */
    {"a cpuset change that resets masks, as kernels before 6.2 do, is planned anew",
     .rows = {{.mask = "0-5", .cpuset = "0-5", .run = TICK, .asks = 1, .has = "4-5"},
              {.order = -1, .run = TICK, .has = "0-5"}}},
    /* The cpuset grows back, and the allowed CPUs of the thread with it. */
    {"a cpuset change that cuts a mask is not foreign",
     .rows = {{.cpuset = "0-5", .mask = "4-5", .run = TICK, .quiet = true, .target = 5},
              {.cpuset = "0-7", .mask = "4-7", .step = TICK, .allowed = "0-7", .target = 5},
              {.rule = ASYM_RULE_IGNORE, .step = TICK, .is_released = true, .why = ASYM_WHY_RULE_IGNORE}}},
    {"a boost does not outlast a mask that another process has set", .boost = -5,
     .rows = {{.mask = "0-3", .run = TICK, .times = 2},
              {.run = TICK, .has = "0-3", .has_nice = "0"},
              {.step = TICK, .quiet = true}}},
    /* The cpuset changes between the reads of the two files: the sample has the new cpuset and the old mask. */
    {"a cpuset seen before the mask follows is not foreign",
     .rows = {{.cpuset = "0-3", .order = 2, .step = TICK}, {.mask = "0-3", .step = TICK, .target = 2}}},
    /* The reverse: the sample read the cpuset for another thread before it changed. */
    {"a mask seen before its cpuset follows is not foreign",
     .rows = {{.mask = "0-3", .order = 2, .step = TICK, .quiet = true}, {.cpuset = "0-3", .step = TICK, .target = 2}}},
    /* The cpuset changes in each sample: no sample needs to hold the cpuset that belongs to the mask. */
    {"a suspicion begins anew when the cpuset changes",
     .rows = {{.mask = "3", .cpuset = "0-3", .step = TICK},
              {.cpuset = "0-5", .step = TICK, .times = 2, .not_foreign = true},
              {.step = TICK, .why = ASYM_WHY_FOREIGN}}},
    /* ... but a mask that the kernel would not have set is an external change. */
    {"the last of its CPUs going offline is not foreign",
     .rows = {{.online = "0-3", .mask = "0-7", .order = 2, .step = TICK, .target = 2},
              {.mask = "1", .step = TICK, .times = 2},
              {.step = TICK, .why = ASYM_WHY_FOREIGN}}},
    /*
     * sched_getaffinity hides a CPU that went offline. The cpuset lacks it too, so one sample looks as if the kernel had cut the
     * mask. The next sample reads the full mask from status.
     */
    {"a mask that hid an offline CPU once is not foreign",
     .rows = {{.mask = "4,6-7", .cpuset = "0-4,6-7", .step = TICK},
              {.mask = "4-7", .step = TICK, .times = 4, .not_foreign = true}}},

    {"a cpuset bounds the plan", true,
     .rows = {{.mask = "2-5", .cpuset = "2-5", .run = TICK, .allowed = "2-5", .has = "4-5"}}},
    {"a cpuset without usable CPUs is not planned for", true,
     .rows = {{.mask = "100-101", .cpuset = "100-101", .step = TICK, .quiet = true, .why = ASYM_WHY_NOTHING_FREE}}},
    /* Its original mask leaves out 6-7, so asymd does not give them to it. */
    {"offline CPUs do not make a mask narrow", true,
     .rows = {{.online = "0-5", .mask = "0-5", .run = TICK, .asks = 1, .has = "4-5"},
              {.order = -1, .run = TICK, .asks = 1, .has = "0-5"}}},

    /* Newborns with the mask that asymd has set on their creator. */
    {"a new thread is repaired between two swaps, and steered itself then",
     .rows = {{.thread = 101, .step = 10 * ASYM_MSEC, .is_repaired = true},
              {.no_flags = true, .run = TICK},
              {.run = TICK, .has = "4-7"},
              {.order = -1, .run = TICK, .has = "0-7"}}},
    /* The creator gets another mask after it created the thread, and before a snapshot lists the thread. */
    {"a new thread with the mask that its creator had before is repaired",
     .rows = {{.order = 1, .run = TICK, .has = "0-3"}, {.thread = 101, .step = 10 * ASYM_MSEC, .is_repaired = true}}},
    /* A repair is no steering: it does not wait until the thread has run. */
    {"a new thread that has hardly run is repaired at once",
     .rows = {{.thread = 101, .flags = ASYM_TASK_NEWBORN | ASYM_TASK_HARDLY_RAN, .sleeps = true},
              {.step = 10 * ASYM_MSEC, .is_repaired = true},
              {.flags = ASYM_TASK_HARDLY_RAN, .share = 1, .run = TICK, .has = "0-7"},
              {.no_flags = true, .run = TICK, .has = "4-7"}}},
    /* Its age shows that it is new. */
    {"a child process is repaired",
     .rows =
         {{.child = 200, .born = 5, .no_flags = true, .step = TICK, .why = ASYM_WHY_SETTLING, .is_repaired = true}}},
    {"a child is repaired also after its parent was released",
     .rows = {{.fork = 5, .mask = "0-7", .run = TICK}, {.child = 200, .step = TICK, .is_repaired = true}}},
    {"a child gets its nice value back too", .boost = -5,
     .rows = {{.thread = 101, .nice = "-5", .step = TICK, .is_repaired = true}}},
    {"a child gets its nice value back also after its parent was released", .boost = -5,
     .rows = {{.fork = 5, .mask = "0-7", .nice = "0", .run = TICK},
              {.child = 200, .nice = "-5", .step = TICK, .is_repaired = true}}},
    {"a repair not done is asked again",
     .rows = {{.thread = 101, .step = TICK, .answer = ASYM_OUTCOME_RETRY, .error = -EAGAIN},
              {.no_flags = true, .step = TICK, .is_repaired = true}}},
    {"a child that was repaired meanwhile is left alone",
     .rows = {{.thread = 101, .step = 10 * ASYM_MSEC, .answer = ASYM_OUTCOME_RETRY, .error = -EAGAIN},
              {.mask = "0-7", .step = 10 * ASYM_MSEC, .quiet = true}}},
    {"a child that pins itself is left alone while it is pinned",
     .rows = {{.thread = 101, .step = TICK, .answer = ASYM_OUTCOME_RETRY, .error = -EAGAIN},
              {.no_flags = true, .mask = "5", .run = TICK, .times = 5, .why = ASYM_WHY_OWN_MASK, .has = "5"},
              {.mask = "0-7", .run = TICK},
              {.run = TICK, .has = "4-7"}}},
    {"an old thread with the same mask chose it",
     .rows = {{.thread = 101, .no_flags = true, .step = TICK, .quiet = true, .why = ASYM_WHY_OWN_MASK}}},
    /* asymd has seen it with another mask first, so it has not inherited this one. */
    {"a child that was seen with another mask chose it",
     .rows = {{.child = 200, .born = 5, .mask = "0-7", .no_flags = true, .run = TICK, .times = 2},
              {.mask = "4-7", .step = TICK, .quiet = true, .why = ASYM_WHY_OWN_MASK}}},
    /* The process settles before. The only reason not to steer the thread is then that it sleeps. */
    {"a child that slept since it was seen with another mask chose it",
     .rows = {{.child = 200, .born = 5, .mask = "0-7", .no_flags = true, .hides = true, .run = ASYM_SEC},
              {.shows_up = true, .sleeps = true, .run = TICK},
              {.hides = true, .run = TICK},
              {.shows_up = true, .wakes = true, .mask = "4-7"},
              {.step = TICK, .quiet = true, .why = ASYM_WHY_OWN_MASK}}},

    /* exec */
    /* The number of a leader that has ended belongs to another thread of its process, if that one calls exec. */
    {"a thread that has ended gets no action in a pause either",
     .rows = {{.flags = ASYM_TASK_ENDED, .pause = true, .run = TICK, .quiet = true},
              {.no_flags = true, .run = TICK, .asks = 1, .has = "0-7"}}},
    /* The kernel has cut its mask to the new cpuset in the same interval. */
    {"a cpuset that changes with an exec is followed",
     .rows = {{.cpuset = "0-5", .mask = "4-5", .flags = ASYM_TASK_EXECUTED, .exec = 1, .run = TICK, .has = "0-5"},
              {.no_flags = true, .run = SETTLE},
              {.run = TICK, .has = "4-5"}}},
    /* The user's change of the old program does not bind the new one, which has what asymd set. */
    {"a thread left alone that gets a worker's mask is repaired", true,
     .rows = {{.order = 1, .step = TICK, .answer = ASYM_OUTCOME_HANDS_OFF, .error = -EBUSY},
              {.thread = 101, .mask = "0-7", .no_flags = true, .order = 5, .run = TICK, .has = "4-7"},
              {.hides = true},
              {.tid = 100, .mask = "4-7", .flags = ASYM_TASK_EXECUTED, .run = TICK, .has = "0-7"},
              {.no_flags = true, .run = TICK},
              {.run = TICK, .has = "0-3"}}},

    /* It has pinned itself, to the CPUs to which asymd has steered its worker. */
    {"a leader that calls exec keeps its own mask", true,
     .rows = {{.mask = "4-7", .order = 1},
              {.thread = 101, .mask = "0-7", .no_flags = true, .run = TICK, .has = "4-7"},
              {.hides = true},
              {.tid = 100, .flags = ASYM_TASK_EXECUTED, .exec = 1},
              {.run = TICK, .why = ASYM_WHY_OWN_MASK, .has = "4-7"}}},
    /* The same with a boosted worker, which does not explain the leader's nice value. */
    {"a leader that calls exec and changes its nice value keeps its own mask", true,
     .rows = {{.mask = "4-7", .order = 1},
              {.thread = 101, .boost = -5, .mask = "0-7", .no_flags = true, .run = TICK, .has = "4-7"},
              {.hides = true},
              {.tid = 100, .flags = ASYM_TASK_EXECUTED, .exec = 1, .nice = "3"},
              {.run = TICK, .has = "4-7", .has_nice = "3"}}},

    /* Orders of the user. */
    {"a release that fails is tried again during the pause",
     .rows = {{.pause = true, .step = TICK, .times = 3, .asks = 1, .answer = ASYM_OUTCOME_RETRY, .error = -EAGAIN},
              {.step = TICK, .is_released = true, .why = ASYM_WHY_PAUSED}}},
    {"a pause takes back what a child inherited",
     .rows = {{.thread = 101, .pause = true, .step = TICK, .is_repaired = true}}},
    /* It gets the fast CPUs of its own mask, and no other. */
    {"an adopted thread keeps its present mask as its own", .rows = {{.mask = "3-5", .run = TICK, .times = 3},
                                                                     {.run = TICK, .why = ASYM_WHY_FOREIGN},
                                                                     {.adopted = true, .run = TICK, .has = "4-5"},
                                                                     {.run = TICK, .times = 10, .target = 5},
                                                                     {.pause = true, .run = TICK, .has = "3-5"}}},
    {"a change after the adoption counts again", .rows = {{.mask = "3-5", .run = TICK, .times = 4},
                                                          {.adopted = true, .run = TICK},
                                                          {.mask = "1", .run = TICK, .times = 3},
                                                          {.run = TICK, .why = ASYM_WHY_FOREIGN, .has = "1"},
                                                          {.order = 1, .adopted = true, .run = TICK},
                                                          {.run = TICK, .reason = &engine_fixture_placed}}},
    {"a refusal by the kernel is tried again after an adoption", true,
     .rows = {{.step = TICK, .answer = ASYM_OUTCOME_HANDS_OFF, .error = -EPERM},
              {.run = TICK, .quiet = true},
              {.adopted = true, .run = TICK, .asks = 1, .is_steered = true}}},
    {"a mask of its own does not exclude an adopted thread", true,
     .rows = {{.mask = "2-5", .run = TICK, .why = ASYM_WHY_OWN_MASK},
              {.adopted = true, .run = TICK, .times = 4},
              {.run = TICK, .has = "4-5"},
              {.rule = ASYM_RULE_IGNORE, .run = TICK, .has = "2-5"}}},
    /* The engine drops the state of a thread that sleeps, and keeps only why it leaves it alone. */
    {"a thread is adopted also while it sleeps", .rows = {{.mask = "3-5", .run = TICK, .times = 3},
                                                          {.run = TICK, .why = ASYM_WHY_FOREIGN},
                                                          {.hides = true, .run = 60 * ASYM_SEC},
                                                          {.adopted = true, .run = 60 * ASYM_SEC},
                                                          {.shows_up = true, .run = TICK},
                                                          {.run = TICK, .has = "4-5"}}},

    /* Nice values. */
    {"a nice value set by another process stays but the mask goes on", .boost = -5,
     .rows = {{.nice = "7", .order = 1, .run = TICK, .has_nice = "7", .has = "0-3"},
              {.rule = ASYM_RULE_IGNORE, .run = TICK, .has_nice = "7", .has = "0-7"}}},
    {"a nice value below the boost stays", .boost = -5,
     .rows = {{.nice = "-6", .run = TICK, .has_nice = "-6"},
              {.rule = ASYM_RULE_IGNORE, .run = TICK, .has_nice = "-6"}}},
    {"without a boost a new nice value is its own", .rows = {{.nice = "7", .run = TICK, .quiet = true},
                                                             {.boost = -2, .run = TICK, .has_nice = "5"},
                                                             {.rule = ASYM_RULE_IGNORE, .run = TICK, .has_nice = "7"}}},
};

static struct engine_fixture_thread *find_thread(struct engine_fixture *w, int32_t tid)
{
    for (size_t i = 0; i < w->n_threads; i++)
        if (w->threads[i].task.id.tid == tid)
            return &w->threads[i];
    return NULL;
}

/* Returns the thread of which the row speaks; t: that of the row before. */
static struct engine_fixture_thread *come(struct engine_fixture *w, struct engine_fixture_thread *t,
                                          const struct row *r)
{
    if (r->tid)
        return find_thread(w, r->tid);
    if (!r->thread && !r->child)
        return t;
    const unsigned proc = r->child ? engine_fixture_proc(w, r->child) : 0;
    if (r->child) {
        w->procs[proc].ppid = 100;
        w->procs[proc].born = w->now;
    }
    t = engine_fixture_thread(w, proc, r->child ? r->child : r->thread, 6);
    t->mask = engine_fixture_cpus("4-7");
    t->task.flags = ASYM_TASK_NEWBORN;
    return t;
}

static void change_proc(struct engine_fixture *w, struct asym_proc *p, const struct row *r)
{
    p->born = r->born ? w->now + r->born : p->born;
    p->last_fork = r->fork ? w->now + r->fork : p->last_fork;
    p->last_exec = r->exec ? w->now + r->exec : p->last_exec;
    p->flags = r->proc_flags ? r->proc_flags : p->flags;
    p->rule = r->rule ? r->rule : p->rule;
    p->rule_name = r->rule_name ? r->rule_name : p->rule_name;
    p->adopted = r->adopted ? w->now + 1 : p->adopted;
    w->paused = w->paused || r->pause;
    if (r->online) {
        w->machine.online = w->machine.usable = engine_fixture_cpus(r->online);
        w->machine.generation++;
        assert_int_equal(asym_machine_finish(&w->machine), 0);
    }
}

static void change_thread(struct engine_fixture *w, struct engine_fixture_thread *t, const struct row *r)
{
    t->cpuset = r->cpuset ? engine_fixture_cpus(r->cpuset) : t->cpuset;
    t->mask = r->mask ? engine_fixture_cpus(r->mask) : t->mask;
    t->task.nice = r->nice ? (int8_t)atoi(r->nice) : t->task.nice;
    t->task.flags = r->flags || r->no_flags ? r->flags : t->task.flags;
    t->task.sched = r->sched ? (uint8_t)r->sched : t->task.sched;
    t->task.id.start += r->is_another;
    t->listed = r->shows_up || (t->listed && !r->hides);
    if (r->sleeps || r->wakes)
        t->task.state = r->sleeps ? 'S' : 'R';
    if (r->sleeps || r->wakes || r->share > 0)
        t->task.runnable = t->task.running = r->sleeps ? 0 : r->wakes ? 1 : r->share;
    if (r->order)
        engine_fixture_order(w, t->task.id.tid, r->order, false);
    if (r->boost)
        w->orders.of[t->task.id.tid].delta = r->boost;
}

static void check_plan(struct engine_fixture *w, int32_t tid, const struct row *r)
{
    const struct asym_reason *reason = r->why ? asym_why(r->why) : r->reason;
    if (r->asks || r->quiet)
        assert_int_equal(w->n, r->asks);
    if (reason && !r->is_released)
        engine_fixture_assert_why(w, tid, reason);
    if (r->not_foreign)
        assert_ptr_not_equal(engine_fixture_planned(w, tid)->reason, asym_why(ASYM_WHY_FOREIGN));
    if (r->target)
        assert_int_equal(engine_fixture_planned(w, tid)->target, r->target);
    if (r->figure > 0)
        assert_float_equal(engine_fixture_planned(w, tid)->figure[0], r->figure, 1e-9);
    if (r->plans)
        engine_fixture_assert_mask(engine_fixture_planned(w, tid)->mask, r->plans);
    if (r->allowed)
        engine_fixture_assert_mask(w->orders.threads[0].allowed, r->allowed);
    if (r->is_steered)
        assert_int_equal(engine_fixture_action(w, tid)->kind, ASYM_ACTION_STEER);
}

/* A release and a repair give back what the thread had. */
static void check_given_back(struct engine_fixture *w, struct engine_fixture_thread *t, const struct row *r)
{
    const struct asym_action *a = engine_fixture_action(w, t->task.id.tid);
    assert_non_null(a);
    assert_int_equal(a->kind, r->is_released ? ASYM_ACTION_RELEASE : ASYM_ACTION_REPAIR);
    if (r->is_released)
        assert_ptr_equal(a->reason, r->why ? asym_why(r->why) : r->reason);
    else
        assert_int_equal(engine_fixture_planned(w, t->task.id.tid)->target, -1);
    assert_true(a->full_cpuset);
    engine_fixture_assert_mask(&a->mask, "0-7");
    engine_fixture_apply(w);
    engine_fixture_assert_mask(&t->mask, "0-7");
    assert_int_equal(t->task.nice, 0);
}

static void step(struct engine_fixture *w, struct engine_fixture_thread *t, const struct row *r)
{
    engine_fixture_step(w, r->run ? r->run : r->step);
    check_plan(w, t->task.id.tid, r);
    if (r->run)
        engine_fixture_apply(w);
    if (r->is_released || r->is_repaired)
        check_given_back(w, t, r);
    if (r->error)
        engine_fixture_answer(w, r->answer, r->error);
    if (r->has)
        engine_fixture_assert_mask(&t->mask, r->has);
    if (r->has_nice)
        assert_int_equal(t->task.nice, atoi(r->has_nice));
}

static void tell(void **state)
{
    const struct story *story = *state;
    ENGINE_FIXTURE(w);
    struct engine_fixture_thread *t = engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
    w.orders.of[100].delta = story->boost;
    if (!story->fresh)
        step(&w, t, &(struct row){.run = TICK, .asks = 1, .has = "4-7"});
    assert_int_equal(t->task.nice, story->boost);
    for (const struct row *r = story->rows; r < story->rows + ASYM_LENGTH(story->rows); r++) {
        t = come(&w, t, r);
        change_proc(&w, &w.procs[t->task.proc], r);
        change_thread(&w, t, r);
        for (unsigned i = 0; (r->run || r->step) && i < ASYM_MAX(r->times, 1U); i++)
            step(&w, t, r);
    }
}

TEST_ROWS(tell, stories)

TEST_MAIN
