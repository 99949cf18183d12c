/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Choose a transit CPU for a running thread whose new mask excludes the CPU it runs on. The kernel sends it to any CPU of
 * that mask, busy or not, and later ticks have to part the two threads (cpumask_any_and_distribute in
 * __set_cpus_allowed_ptr).
 * A trace shows the cost: a thread made room for the serial thread of its program, and the kernel put it beside a third
 * thread. The CPU that the serial thread had left stayed idle. The two shared a CPU for 320 ms of a slow guest's clock
 * while a barrier waited for them.
 *
 * A thread that sleeps needs no help: when it wakes, the kernel looks for an idle CPU.
 */
#include "core/engine-internal.h"

#include "base/mask.h"

struct occupancy {
    const struct asym_machine *machine;
    struct asym_mask busy, busy_cores;
    struct asym_mask own; /* CPUs of asymd, which runs at every sample and at no other time */
};

static void occupy(struct occupancy *w, int32_t cpu)
{
    if (!asym_mask_has(&w->machine->usable, cpu))
        return; /* the core of an offline CPU is not known */
    asym_mask_set(&w->busy, (unsigned)cpu);
    asym_mask_set(&w->busy_cores, (unsigned)w->machine->cpus[cpu].core);
}

/* With one CPU in its mask the thread needs no transit CPU. */
static bool has_choice(const struct asym_step *st, const struct asym_task_ref *ref)
{
    return asym_mask_count(asym_mask_table_at(&st->e->masks, ref->plan_mask)) > 1;
}

/*
 * True when the new mask sends the thread away from its CPU. A refresh does not read the CPU again, so the CPU may be one
 * that the thread's present mask already leaves out.
 */
static bool must_move(const struct asym_step *st, size_t i)
{
    return st->tasks[i].moves && st->refs[i].plan_mask != st->refs[i].seen.mask;
}

/* Mark the CPUs of threads that run and stay, and of threads that have only one CPU to go to. */
static void note_busy(const struct asym_step *st, struct occupancy *w, size_t i)
{
    const struct asym_task *task = &st->s->tasks[i];
    const bool self = (st->s->procs[task->proc].flags & ASYM_PROC_SELF) != 0;
    if (self && asym_mask_has(&w->machine->usable, task->cpu))
        asym_mask_set(&w->own, (unsigned)task->cpu);
    if (self)
        return;
    if (!must_move(st, i) && task->state == 'R')
        occupy(w, asym_mask_has(task->mask, task->cpu) ? task->cpu : st->tasks[i].target);
    else if (must_move(st, i) && !has_choice(st, &st->refs[i]))
        occupy(w, st->tasks[i].target);
}

/* Lower is better. Prefers, in this order: an idle core, a CPU without asymd, the target, the same LLC, a favoured CPU. */
static unsigned cost_of(const struct occupancy *w, int32_t cpu, int32_t target, int32_t from)
{
    const struct asym_cpu *to = &w->machine->cpus[cpu];
    const bool far = !asym_mask_has(&w->machine->usable, from) || to->llc != w->machine->cpus[from].llc;
    const unsigned first = asym_mask_has(&w->busy_cores, to->core) * 8u + asym_mask_has(&w->own, cpu) * 4u +
                           (cpu != target) * 2u + far;
    return first << 8 | to->rank;
}

/* Returns the idle CPU of the mask with the lowest cost, plus 1; 0: no CPU of the mask is idle. */
static uint32_t choose(const struct occupancy *w, const struct asym_mask *mask, int32_t target, int32_t from)
{
    const struct asym_mask idle = asym_mask_minus(mask, &w->busy);
    unsigned least = UINT32_MAX;
    uint32_t best = 0;
    ASYM_MASK_FOREACH (c, &idle) {
        const unsigned cost = cost_of(w, c, target, from);
        if (cost < least) {
            least = cost;
            best = (uint32_t)c + 1;
        }
    }
    return best;
}

void asym_step_idle_placement(struct asym_step *st)
{
    struct occupancy w = {.machine = st->s->machine};
    if (st->e->result.n_moves == 0)
        return;
    for (size_t i = 0; i < st->s->n_tasks; i++)
        note_busy(st, &w, i);
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        const struct asym_task *task = &st->s->tasks[i];
        struct asym_task_ref *ref = &st->refs[i];
        if (!must_move(st, i) || task->state != 'R' || !has_choice(st, ref))
            continue;
        ref->transit_cpu = choose(&w, asym_mask_table_at(&st->e->masks, ref->plan_mask), st->tasks[i].target,
                                  task->cpu);
        occupy(&w, (int32_t)ref->transit_cpu - 1);
    }
}
