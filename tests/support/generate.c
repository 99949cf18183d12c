/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/generate.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "config/config.h"

/* splitmix64 (Vigna) has one word of state and accepts any seed. */
uint64_t gen_next(struct gen *g)
{
    uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

unsigned gen_below(struct gen *g, unsigned n)
{
    return (unsigned)(gen_next(g) % n);
}

unsigned gen_size(struct gen *g, unsigned most)
{
    unsigned bits = 0;
    while (most >> bits > 1)
        bits++;
    unsigned top = 1U << (gen_below(g, bits + 1) + 1);
    return 1 + gen_below(g, top - 1 < most ? top - 1 : most);
}

struct layout {
    unsigned n, siblings, stride, offset, n_types, per_llc, per_node, per_domain;
    bool far_siblings;
    double speeds[8];
};

static void choose_layout(struct gen *g, struct layout *l)
{
    static const unsigned sizes[] = {1, 2, 4, 8, 16, 64};
    l->siblings = 1U << gen_below(g, 3);
    unsigned cores = gen_size(g, ASYM_MAX_CPUS / l->siblings);
    l->n = cores * l->siblings;
    l->far_siblings = gen_below(g, 2);
    l->stride = gen_below(g, 4) == 0 ? 1 + gen_below(g, ASYM_MAX_CPUS / l->n) : 1;
    l->offset = gen_below(g, 4) == 0 ? gen_below(g, ASYM_MAX_CPUS - l->n * l->stride + 1) : 0;
    l->n_types = 1 + gen_below(g, 8);
    l->per_llc = sizes[gen_below(g, 6)];
    l->per_node = l->per_llc * (1 + gen_below(g, 4));
    l->per_domain = sizes[gen_below(g, 3)];
    for (unsigned t = 0; t < 8; t++)
        l->speeds[t] = 1000.0 + 300.0 * gen_below(g, 12);
}

static void place_cpu(const struct layout *l, unsigned i, struct asym_machine *m)
{
    unsigned cores = l->n / l->siblings;
    unsigned core = l->far_siblings ? i % cores : i / l->siblings;
    unsigned type = core * l->n_types / cores;
    unsigned c = l->offset + i * l->stride;
    asym_mask_set(&m->online, c);
    m->n_cpus = c + 1;
    m->cpus[c] = (struct asym_cpu){
        .speed = l->speeds[type],
        .kind = (int16_t)type,
        .core = (int16_t)core,
        .llc = (int16_t)(core / l->per_llc),
        .node = (int16_t)(core / l->per_node),
        .freq_domain = (int16_t)(core / l->per_domain),
        .origin = l->n % 4 == 1 ? ASYM_ORIGIN_CAPACITY : ASYM_ORIGIN_CPUFREQ,
        /* two machines of three have no favoured core */
        .favour = l->n % 3 == 0 ? 100 + core * 7 % 5 : 0,
    };
}

static void thin_out(struct gen *g, struct asym_mask *m, unsigned keep_of_8)
{
    struct asym_mask kept = {0};
    ASYM_MASK_FOREACH (c, m)
        if (gen_below(g, 8) < keep_of_8)
            asym_mask_set(&kept, (unsigned)c);
    if (!asym_mask_empty(&kept))
        *m = kept;
}

void gen_machine(struct gen *g, struct asym_machine *m)
{
    struct layout l;
    choose_layout(g, &l);
    *m = (struct asym_machine){.generation = 1, .smt_gain = 0.25};
    for (unsigned i = 0; i < l.n; i++)
        place_cpu(&l, i, m);
    if (gen_below(g, 4) == 0)
        thin_out(g, &m->online, 7);
    m->usable = m->online;
    if (gen_below(g, 4) == 0)
        thin_out(g, &m->usable, 1 + gen_below(g, 7));
    if (asym_machine_finish(m) < 0)
        abort();
}

void gen_plain_machine(struct asym_machine *m, unsigned n, unsigned n_fast)
{
    *m = (struct asym_machine){.generation = 1, .n_cpus = n};
    for (unsigned c = 0; c < n; c++) {
        asym_mask_set(&m->online, c);
        m->cpus[c] = (struct asym_cpu){
            .speed = c < n_fast ? 2000 : 1000,
            .core = (int16_t)c,
            .freq_domain = (int16_t)c,
            .origin = ASYM_ORIGIN_CPUFREQ,
        };
    }
    m->usable = m->online;
    if (asym_machine_finish(m) < 0)
        abort();
}

void gen_params(const struct asym_policy *policy, void *params)
{
    for (const struct asym_option *o = policy->options; o && o->key; o++)
        if (asym_option_parse(o, policy->name, params, o->def, NULL) < 0)
            abort();
}

struct gen_params_room gen_params_with(const struct asym_policy *policy, const char *key, const char *value)
{
    struct gen_params_room params = {{0}};
    bool found = !key;
    if (policy->params_size > sizeof params)
        abort();
    gen_params(policy, &params);
    for (const struct asym_option *o = policy->options; o && o->key && !found; o++) {
        found = strcmp(o->key, key) == 0;
        if (found && asym_option_parse(o, policy->name, &params, value, NULL) < 0)
            abort();
    }
    if (!found)
        abort();
    return params;
}

void gen_load_free(struct gen_load *load)
{
    if (!load)
        return;
    free(load->apps);
    free(load->procs);
    free(load->tasks);
    free(load->masks);
    free(load->cpusets);
    free(load->slots);
    free(load);
}

static struct gen_load *allocate(size_t n_apps, size_t n_tasks)
{
    struct gen_load *load = calloc(1, sizeof *load);
    if (!load)
        return NULL;
    for (load->n_slots = 64; load->n_slots < 4 * n_tasks;)
        load->n_slots *= 2;
    load->apps = calloc(n_apps + 1, sizeof *load->apps);
    load->procs = calloc(n_apps + 1, sizeof *load->procs);
    load->tasks = calloc(n_tasks + 1, sizeof *load->tasks);
    load->masks = calloc(n_tasks + 1, sizeof *load->masks);
    load->cpusets = calloc(n_tasks + 1, sizeof *load->cpusets);
    load->slots = calloc(load->n_slots, sizeof *load->slots);
    if (!load->apps || !load->procs || !load->tasks || !load->masks || !load->cpusets || !load->slots) {
        gen_load_free(load);
        return NULL;
    }
    return load;
}

static void fill_app(struct gen_load *load, uint32_t a, uint32_t first, uint32_t n)
{
    const struct asym_mask *usable = &load->s.machine->usable;
    int32_t tgid = (int32_t)(100 + first);
    struct asym_taskid id = {.tid = tgid, .tgid = tgid, .start = 7};
    load->apps[a] = (struct asym_app){.id = id, .first_task = first, .n_tasks = n, .n_threads = n};
    load->procs[a] = (struct asym_proc){.id = id, .ppid = 1, .app = a, .born = ASYM_SEC};
    for (uint32_t i = first; i < first + n; i++) {
        id.tid = (int32_t)(100 + i);
        load->tasks[i] = (struct asym_task){
            .id = id,
            .proc = a,
            .cpu = asym_mask_next(usable, 0),
            .sched = SCHED_OTHER,
            .state = 'R',
            .running = 0.5,
        };
        snprintf(load->tasks[i].comm, sizeof load->tasks[i].comm, "t%u", (unsigned)i);
        load->masks[i] = load->cpusets[i] = *usable;
    }
    gen_load_share(load, a, 1);
}

struct gen_load *gen_load_new(const struct asym_machine *m, const unsigned *sizes, size_t n_apps)
{
    size_t n = 0;
    for (size_t a = 0; a < n_apps; a++)
        n += sizes[a];
    struct gen_load *load = allocate(n_apps, n);
    if (!load)
        return NULL;
    load->s = (struct asym_snapshot){
        .now = 1000 * ASYM_SEC,
        .interval = 100 * ASYM_MSEC,
        .machine = m,
        .apps = load->apps,
        .procs = load->procs,
        .tasks = load->tasks,
        .n_apps = n_apps,
        .n_procs = n_apps,
        .n_tasks = n,
    };
    uint32_t first = 0;
    for (uint32_t a = 0; a < n_apps; first += sizes[a++])
        fill_app(load, a, first, sizes[a]);
    gen_load_share_masks(load);
    return load;
}

static void make_odd(struct gen *g, struct gen_load *load, size_t i)
{
    const struct asym_machine *m = load->s.machine;
    unsigned how = gen_below(g, 16);
    if (how == 0) {
        thin_out(g, &load->masks[i], 4); /* an own mask: asymd does not steer the thread */
    } else if (how == 1) {
        thin_out(g, &load->cpusets[i], 1 + gen_below(g, 7));
        load->masks[i] = load->cpusets[i];
    } else if (how == 2) {
        load->cpusets[i] = m->types[gen_below(g, m->n_types)].cpus;
    } else if (how == 3) {
        load->cpusets[i] = load->masks[i] = m->online;
    } else if (how == 4) {
        load->tasks[i].flags = gen_below(g, 3) == 0 ? ASYM_TASK_MASTER : ASYM_TASK_SPINNING;
    }
}

struct gen_load *gen_load_random(struct gen *g, const struct asym_machine *m, unsigned n, bool uniform)
{
    unsigned *sizes = calloc(n + 1, sizeof *sizes);
    size_t n_apps = 0;
    for (unsigned left = n; sizes && left > 0; left -= sizes[n_apps++])
        sizes[n_apps] = gen_size(g, left < 1000 ? left : 1000);
    struct gen_load *load = sizes ? gen_load_new(m, sizes, n_apps) : NULL;
    free(sizes);
    if (!load)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        int cpu = asym_mask_next(&m->online, (int)gen_below(g, m->n_cpus));
        load->tasks[i].cpu = cpu < 0 ? asym_mask_next(&m->online, 0) : cpu;
        load->tasks[i].nice = (int8_t)(gen_below(g, 8) == 0 ? (int)gen_below(g, 40) - 20 : 0);
        if (!uniform)
            make_odd(g, load, i);
    }
    for (size_t a = 0; a < n_apps; a++)
        gen_load_share(load, a, 1);
    gen_load_share_masks(load);
    return load;
}

static void count_runnable(struct gen_load *load, size_t a)
{
    struct asym_app *app = &load->apps[a];
    double sum = 0;
    uint32_t n = 0;
    for (size_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        if (load->tasks[i].flags & ASYM_TASK_SPINNING)
            continue;
        sum += load->tasks[i].runnable;
        n += load->tasks[i].state == 'R';
    }
    app->runnable_mean = sum;
    app->runnable_instant = n;
}

static void set_share(struct asym_task *task, double share)
{
    task->runnable = share;
    task->running = share / 2;
    task->state = share > 0 ? 'R' : 'S';
}

void gen_load_share(struct gen_load *load, size_t app, double share)
{
    for (size_t i = 0; i < load->apps[app].n_tasks; i++)
        set_share(&load->tasks[load->apps[app].first_task + i], share);
    count_runnable(load, app);
}

void gen_load_count(struct gen_load *load)
{
    for (size_t a = 0; a < load->s.n_apps; a++)
        count_runnable(load, a);
}

void gen_load_share_one(struct gen_load *load, size_t task, double share)
{
    set_share(&load->tasks[task], share);
    count_runnable(load, load->procs[load->tasks[task].proc].app);
}

void gen_load_calm(struct gen *g, struct gen_load *load)
{
    for (size_t a = 0; a < load->s.n_apps; a++) {
        unsigned how = gen_below(g, 30);
        if (how < 13)
            gen_load_share(load, a, 0);
        if (how < 10)
            gen_load_share_one(load, load->apps[a].first_task + gen_below(g, load->apps[a].n_tasks), 1);
    }
}

void gen_load_pass(struct gen_load *load, asym_usec time)
{
    load->s.now += time;
    load->s.interval = time;
}

static uint32_t hash_id(const struct gen_load *load, int32_t tid)
{
    return (uint32_t)tid * UINT32_C(2654435761) & (load->n_slots - 1);
}

static int64_t find_task(const struct gen_load *load, const struct asym_taskid *id)
{
    for (uint32_t h = hash_id(load, id->tid); load->slots[h] != 0; h = (h + 1) & (load->n_slots - 1)) {
        const struct asym_taskid *other = &load->tasks[load->slots[h] - 1].id;
        if (other->tid == id->tid && other->tgid == id->tgid && other->start == id->start)
            return load->slots[h] - 1;
    }
    return -1;
}

void gen_load_apply(struct gen_load *load, const struct asym_action *actions, size_t n)
{
    memset(load->slots, 0, load->n_slots * sizeof *load->slots);
    for (uint32_t i = 0; i < load->s.n_tasks; i++) {
        uint32_t h = hash_id(load, load->tasks[i].id.tid);
        while (load->slots[h] != 0)
            h = (h + 1) & (load->n_slots - 1);
        load->slots[h] = i + 1;
    }
    for (size_t k = 0; k < n; k++) {
        int64_t i = find_task(load, &actions[k].id);
        if (i < 0)
            continue;
        load->masks[i] = actions[k].full_cpuset ? load->cpusets[i] : actions[k].mask;
        load->tasks[i].nice = actions[k].nice;
    }
    gen_load_share_masks(load);
}

void gen_load_move(struct gen_load *load, const struct asym_plan *plan)
{
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (plan->tasks[i].target >= 0)
            load->tasks[i].cpu = plan->tasks[i].target;
}

static const struct asym_mask *add_to_table(struct gen_load *load, const struct asym_mask *pool, uint32_t i)
{
    uint64_t h = 0;
    for (size_t w = 0; w < ASYM_MASK_WORDS; w++)
        h = (h ^ pool[i].w[w]) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
    uint32_t slot = (uint32_t)(h >> 32) & (load->n_slots - 1);
    for (; load->slots[slot] != 0; slot = (slot + 1) & (load->n_slots - 1))
        if (asym_mask_equal(&pool[load->slots[slot] - 1], &pool[i]))
            return &pool[load->slots[slot] - 1];
    load->slots[slot] = i + 1;
    return &pool[i];
}

void gen_load_share_masks(struct gen_load *load)
{
    memset(load->slots, 0, load->n_slots * sizeof *load->slots);
    for (uint32_t i = 0; i < load->s.n_tasks; i++)
        load->tasks[i].mask = add_to_table(load, load->masks, i);
    memset(load->slots, 0, load->n_slots * sizeof *load->slots);
    for (uint32_t i = 0; i < load->s.n_tasks; i++)
        load->tasks[i].cpuset = add_to_table(load, load->cpusets, i);
}
