/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a running thread goes whose new mask takes it from its CPU. The kernel sends it to any CPU of that mask, whatever
 * runs there, and leaves it to later ticks to part the two (cpumask_any_and_distribute in __set_cpus_allowed_ptr): seen in
 * a trace, a thread that made room for the serial one of its program was put beside a third, while the CPU that the serial
 * one had left was idle, and stayed there for 320 ms of a slow guest's clock, with a barrier waiting for it.
 *
 * One that sleeps needs no help: when it wakes, the kernel looks for an idle CPU.
 */
#include "core/engine-internal.h"

#include "base/mask.h"

struct ways {
    const struct asym_machine *machine;
    struct asym_mask busy, busy_cores;
    struct asym_mask own; /* asymd's CPUs: it runs at every look, and at no other time */
};

static void occupy(struct ways *w, int32_t cpu)
{
    if (!asym_mask_has(&w->machine->usable, cpu))
        return; /* of an offline one the core is not known */
    asym_mask_set(&w->busy, (unsigned)cpu);
    asym_mask_set(&w->busy_cores, (unsigned)w->machine->cpus[cpu].core);
}

/* Where there is no choice the thread is where it is put. */
static bool has_choice(const struct asym_step *st, const struct asym_task_ref *ref)
{
    return asym_mask_count(asym_masks_at(&st->e->masks, ref->plan_mask)) > 1;
}

/*
 * Will it be sent away from its CPU? In a look in a hurry that CPU is the one of the look before, and may be one that the mask
 * which it has by now leaves out.
 */
static bool goes(const struct asym_step *st, size_t i)
{
    return st->tasks[i].moves && st->refs[i].plan_mask != st->refs[i].seen.mask;
}

/* Who runs and stays, and who is put where there is no choice. */
static void note_busy(const struct asym_step *st, struct ways *w, size_t i)
{
    const struct asym_task *task = &st->s->tasks[i];
    const bool self = (st->s->procs[task->proc].flags & ASYM_PROC_SELF) != 0;
    if (self && asym_mask_has(&w->machine->usable, task->cpu))
        asym_mask_set(&w->own, (unsigned)task->cpu);
    if (self)
        return;
    if (!goes(st, i) && task->state == 'R')
        occupy(w, asym_mask_has(task->mask, task->cpu) ? task->cpu : st->tasks[i].target);
    else if (goes(st, i) && !has_choice(st, &st->refs[i]))
        occupy(w, st->tasks[i].target);
}

/* Less is better: an idle core, then a CPU without asymd, then the one that was planned, then near, then favoured. */
static unsigned price(const struct ways *w, int32_t cpu, int32_t target, int32_t from)
{
    const struct asym_cpu *to = &w->machine->cpus[cpu];
    const bool far = !asym_mask_has(&w->machine->usable, from) || to->llc != w->machine->cpus[from].llc;
    const unsigned first = asym_mask_has(&w->busy_cores, to->core) * 8u + asym_mask_has(&w->own, cpu) * 4u +
                           (cpu != target) * 2u + far;
    return first << 8 | to->rank;
}

static uint32_t choose(const struct ways *w, const struct asym_mask *mask, int32_t target, int32_t from)
{
    const struct asym_mask idle = asym_mask_minus(mask, &w->busy);
    unsigned least = UINT32_MAX;
    uint32_t best = 0;
    ASYM_MASK_FOREACH (c, &idle) {
        const unsigned p = price(w, c, target, from);
        if (p < least) {
            least = p;
            best = (uint32_t)c + 1;
        }
    }
    return best;
}

void asym_step_ways(struct asym_step *st)
{
    struct ways w = {.machine = st->s->machine};
    if (st->e->result.n_moves == 0)
        return;
    for (size_t i = 0; i < st->s->n_tasks; i++)
        note_busy(st, &w, i);
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        const struct asym_task *task = &st->s->tasks[i];
        struct asym_task_ref *ref = &st->refs[i];
        if (!goes(st, i) || task->state != 'R' || !has_choice(st, ref))
            continue;
        ref->via = choose(&w, asym_masks_at(&st->e->masks, ref->plan_mask), st->tasks[i].target, task->cpu);
        occupy(&w, (int32_t)ref->via - 1);
    }
}
