/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sample, optimise, symbios (Snavely 2002, 5.4, SOS). This policy is smt-symb, but its sample phase tries several ways to
 * pair threads on cores one after the other, and keeps the pairing with the highest weighted speedup:
 *
 *     WS = the sum over threads of IPC achieved / IPC alone (4.1)
 *
 * The source has one core and more jobs than contexts, and chooses the jobs that run on it next. asymd has many cores and
 * sets affinity only, so it chooses the core on which each thread sits. A pairing rotates the seats under one LLC and of
 * one core type against each other: threads on first siblings stay; threads on second siblings move by one core for the
 * second pairing, by two for the third, and so on. So no thread moves across memory domains. The policy chooses the best
 * pairing for each LLC separately. The current pairing stays unless another is better by more than 1 % (an addition to the
 * source). The next sample phase rotates from the pairing that was chosen. If a core is the only one under its LLC, a
 * pairing only changes which of its threads take turns on which of its CPUs.
 *
 * WS sums over the threads whose IPC is known alone and in every pairing, or a thread that slept would decide.
 *
 * smt-icount-sos (5.4, Icount-SOS) leaves the shares to the fetch unit of the core, and chooses pairings only. It runs on
 * a simulated core only.
 */
#include <asym/policy.h>

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/smt/smt.h"

/* A pairing must be better than the current one by this factor: measurements vary, and a move has a cost. */
#define WORTH_IT 1.01

struct state {
    struct asym_smt_measure measure;
    uint64_t chosen; /* number of the sample phase after which a pairing was last chosen */
};

/* CPUs by LLC, core type and sibling rank. The CPUs of a row agree in all three, the CPUs of a block in the first two. */
struct table {
    uint32_t *order, *scratch;
    uint32_t *place, *row, *row_length, *block, *block_length; /* per CPU: its index in order, start of its row ... */
    uint32_t n, siblings;
};

struct pairing {
    struct table table;
    uint32_t *depth;        /* per CPU: threads seen on it so far */
    int32_t *preferred_cpu; /* per thread: its seat before */
    uint32_t *of_llc;       /* per LLC: the pairing */
    double *speedup;        /* per LLC: ASYM_SMT_PAIRINGS weighted speedups */
};

static void take_memory(const struct asym_policy_input *in, struct pairing *p)
{
    const struct asym_machine *m = in->machine;
    uint32_t **per_cpu[] = {
        &p->table.order, &p->table.scratch,    &p->table.place, &p->table.row,
        &p->depth,       &p->table.row_length, &p->table.block, &p->table.block_length,
    };
    for (size_t i = 0; i < ASYM_LENGTH(per_cpu); i++)
        *per_cpu[i] = asym_arena_take(in->arena, m->n_cpus + 1, sizeof(uint32_t));
    p->preferred_cpu = asym_arena_take(in->arena, in->n_threads + 1, sizeof *p->preferred_cpu);
    p->of_llc = asym_arena_take(in->arena, m->n_llcs + 1, sizeof *p->of_llc);
    p->speedup = asym_arena_take(in->arena, m->n_llcs + 1, ASYM_SMT_PAIRINGS * sizeof *p->speedup);
}

static int by_row(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_machine *m = ctx;
    const struct asym_cpu *x = &m->cpus[a], *y = &m->cpus[b];
    if (x->llc != y->llc)
        return x->llc - y->llc;
    return x->type != y->type ? x->type - y->type : x->smt_rank - y->smt_rank;
}

static void fill_table(const struct asym_machine *m, struct table *t)
{
    ASYM_MASK_FOREACH (c, &m->usable) {
        t->order[t->n++] = (uint32_t)c;
        t->siblings = ASYM_MAX(t->siblings, m->cpus[c].smt_rank + 1u);
    }
    asym_sort_index(t->order, t->n, t->scratch, by_row, m);
    for (uint32_t i = 0, row = 0, block = 0; i < t->n; i++) {
        const struct asym_cpu *cpu = &m->cpus[t->order[i]], *before = i > 0 ? &m->cpus[t->order[i - 1]] : NULL;
        if (before && (before->llc != cpu->llc || before->type != cpu->type))
            block = i;
        if (before && (block == i || before->smt_rank != cpu->smt_rank))
            row = i;
        t->place[t->order[i]] = i;
        t->row[t->order[i]] = row;
        t->block[t->order[i]] = block;
        t->row_length[t->order[row]] = i + 1 - row;
        t->block_length[t->order[block]] = i + 1 - block;
    }
}

/* Returns the CPU on which the depth-th thread of a CPU sits in pairing r. */
static uint32_t rotated(const struct table *t, const struct asym_machine *m, uint32_t cpu, uint32_t depth, uint32_t r)
{
    const uint32_t row = t->row[cpu], n = t->row_length[t->order[row]],
                   layer = m->cpus[cpu].smt_rank + t->siblings * depth;
    if (n > 1)
        return t->order[row + (t->place[cpu] - row + layer * r) % n];
    const uint32_t block = t->block[cpu];
    return t->order[block + (t->place[cpu] - block + depth * r) % t->block_length[t->order[block]]];
}

/* Seat all threads in the pairings of of_llc. A thread that may not use its new seat stays; the spread evens out the rest. */
static void rotate_seats(struct asym_smt *s, struct pairing *p)
{
    const struct asym_machine *m = s->in->machine;
    fill_table(m, &p->table);
    for (size_t t = 0; t < s->in->n_threads; t++) {
        const uint32_t cpu = (uint32_t)s->seat[t], r = p->of_llc[m->cpus[cpu].llc];
        const uint32_t to = rotated(&p->table, m, cpu, p->depth[cpu]++, r);
        s->threads[t].preferred_cpu = asym_mask_has(s->threads[t].allowed, (int)to) ? (int32_t)to : s->seat[t];
    }
    asym_smt_seat_all(s);
}

/* Add up the weighted speedup of each pairing under each LLC. */
static void add_up(const struct asym_smt *s, struct pairing *p)
{
    for (size_t t = 0; t < s->in->n_threads; t++) {
        const struct asym_smt_record *r = asym_smt_record_of(s, t);
        double *speedup = &p->speedup[(size_t)s->in->machine->cpus[s->seat[t]].llc * ASYM_SMT_PAIRINGS];
        const double alone = asym_smt_ipc(&r->alone);
        bool known = r->cycle == s->stage.cycle && alone > 0;
        double achieved[ASYM_SMT_PAIRINGS];
        for (unsigned k = 0; k < ASYM_SMT_PAIRINGS; k++) {
            achieved[k] = asym_smt_ipc(&r->together[k]);
            known = known && achieved[k] > 0;
        }
        for (unsigned k = 0; known && k < ASYM_SMT_PAIRINGS; k++)
            speedup[k] += achieved[k] / alone;
    }
}

static uint32_t best_of(const double *speedup)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < ASYM_SMT_PAIRINGS; k++)
        if (speedup[k] > speedup[best] && speedup[k] > speedup[0] * WORTH_IT)
            best = k;
    return best;
}

/* Seat the threads in the best pairing. Its IPC becomes the IPC together of a thread; it is unknown if the thread now has
 * a core to itself. */
static void choose(struct asym_smt *s, struct pairing *p)
{
    add_up(s, p);
    for (size_t llc = 0; llc < s->in->machine->n_llcs; llc++)
        p->of_llc[llc] = best_of(&p->speedup[llc * ASYM_SMT_PAIRINGS]);
    rotate_seats(s, p);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_record *r = asym_smt_record_of(s, t);
        const uint32_t best = p->of_llc[s->in->machine->cpus[p->preferred_cpu[t]].llc];
        r->together[0] = asym_smt_core_of(s, t)->n > 1 ? r->together[best] : (struct asym_smt_count){0};
        p->preferred_cpu[t] = s->seat[t];
    }
}

static const struct asym_reason pairing_tried = {
    .text = "measured in pairing %.0f of %.0f with others on its core",
    .sentence = "is measured in pairing %.0f of %.0f with other threads on its core"};

static void explain_pairing(struct asym_smt *s)
{
    for (size_t t = 0; t < s->in->n_threads; t++) {
        struct asym_assignment *a = &s->sp.ret[t];
        if (a->reason != &asym_smt_measured)
            continue;
        a->reason = &pairing_tried;
        a->figure[0] = s->stage.pairing + 1;
        a->figure[1] = ASYM_SMT_PAIRINGS;
    }
}

static int plan_pairings(const struct asym_policy_input *in, struct asym_assignment *ret, bool no_windows)
{
    struct state *state = in->state;
    struct asym_smt s = {.no_windows = no_windows};
    struct pairing p = {0};
    take_memory(in, &p);
    int r = asym_smt_measure_begin(&s, ASYM_SMT_PAIRINGS, in, ret);
    if (r < 0)
        return r;
    memcpy(p.preferred_cpu, s.seat, in->n_threads * sizeof *p.preferred_cpu);
    if (s.stage.kind == ASYM_SMT_TOGETHER && s.stage.pairing > 0) {
        for (size_t llc = 0; llc < in->machine->n_llcs; llc++)
            p.of_llc[llc] = s.stage.pairing;
        rotate_seats(&s, &p);
    } else if (s.stage.kind == ASYM_SMT_RUN && state->chosen != s.stage.cycle) {
        choose(&s, &p);
        state->chosen = s.stage.cycle;
    }
    asym_smt_measure_finish(&s, p.preferred_cpu);
    explain_pairing(&s);
    return 0;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    return plan_pairings(in, ret, false);
}

static int plan_fetch(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    return plan_pairings(in, ret, true);
}

const struct asym_policy asym_policy_smt_sos = {
    .name = "smt-sos",
    .summary = "as smt-symb, but threads are paired on cores in several ways, and the best pairing is kept",
    .source = "Snavely 2002, 5.4",
    ASYM_SMT_MEASURING,
    .state_size = sizeof(struct state),
    .plan = plan,
};

const struct asym_policy asym_policy_smt_icount_sos = {
    .name = "smt-icount-sos",
    .summary = "as smt-sos, but the fetch unit of a simulated core divides the core",
    .source = "Snavely 2002, 5.4",
    .refuses = ASYM_SMT_NO_FETCH,
    ASYM_SMT_MEASURING,
    .state_size = sizeof(struct state),
    .plan = plan_fetch,
};
