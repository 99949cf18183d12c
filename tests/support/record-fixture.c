/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/settings.h"
#include "support/record-fixture.h"

#include "base/mask.h"
#include "record/record.h"
#include "support/test.h"

static void show_mask(FILE *out, const struct asym_mask *m)
{
    for (size_t i = 0; i < ASYM_LENGTH(m->w); i++)
        if (m->w[i] != 0)
            fprintf(out, " %zu:%llx", i, (unsigned long long)m->w[i]);
}

/* Most threads have the mask of the thread before them. */
static void show_other_mask(FILE *out, const struct asym_mask *m, const struct asym_mask *before)
{
    if (before && asym_mask_equal(m, before))
        fputs(" =", out);
    else
        show_mask(out, m);
}

static void show_id(FILE *out, const struct asym_taskid *id)
{
    fprintf(out, " %d/%d/%llu", id->tid, id->tgid, (unsigned long long)id->start);
}

static void show_text(FILE *out, const char *text)
{
    fprintf(out, " %s", text ? text : "-");
}

static void show_rule(FILE *out, const struct asym_rule_facts *facts)
{
    fputs(facts ? " rule" : "", out);
    if (facts) {
        show_mask(out, &facts->cpus);
        fprintf(out, " %d %d %d %d", facts->has_nice, facts->nice, facts->library, facts->policy_class);
    }
    fputc('\n', out);
}

static void show_lists(FILE *out, const struct asym_snapshot *s)
{
    for (size_t i = 0; i < s->n_apps; i++) {
        const struct asym_app *a = &s->apps[i];
        fputs("app", out);
        show_id(out, &a->id);
        show_text(out, a->cgroup);
        fprintf(out, " %s %u+%u %u %u %a %d\n", a->comm, a->first_task, a->n_tasks, a->n_threads, a->runnable_instant,
                a->runnable_mean, a->uses_rtx);
    }
    for (size_t i = 0; i < s->n_procs; i++) {
        const struct asym_proc *p = &s->procs[i];
        fputs("proc", out);
        show_id(out, &p->id);
        show_text(out, p->rule_name);
        fprintf(out, " %d %u %x %d %llu %llu %llu %llu %d %a", p->ppid, p->app, p->flags, p->nice_group,
                (unsigned long long)p->born, (unsigned long long)p->last_fork, (unsigned long long)p->last_exec,
                (unsigned long long)p->adopted, p->rule, p->profile ? p->profile->ips[0] : -1.0);
        show_rule(out, p->rule_facts);
    }
    for (size_t i = 0; i < s->n_tasks; i++) {
        const struct asym_task *t = &s->tasks[i];
        fputs("task", out);
        show_id(out, &t->id);
        fprintf(out, " %s %u %x %d %d %u %c %a %a", t->comm, t->proc, t->flags, t->cpu, t->nice, t->sched, t->state,
                t->runnable, t->running);
        show_other_mask(out, t->mask, i > 0 ? t[-1].mask : NULL);
        fputc(';', out);
        show_other_mask(out, t->cpuset, t->mask);
        fputc('\n', out);
    }
    for (size_t i = 0; i < s->n_samples; i++)
        fprintf(out, "sample %u %a %a %a %a\n", s->samples[i].task, s->samples[i].seconds, s->samples[i].instructions,
                s->samples[i].cycles, s->samples[i].llc_misses);
}

char *record_fixture_show(const struct asym_snapshot *s)
{
    const struct asym_coverage *v = &s->coverage;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    fprintf(out, "%llu %llu %d %d; %u %u %u %u %u %u %llu %u %u %d %d %d", (unsigned long long)s->now,
            (unsigned long long)s->interval, s->urgent, s->refreshed, v->n_procs, v->n_threads, v->n_denied,
            v->n_foreign, v->n_unkept, v->n_reporting, (unsigned long long)v->n_lost_events, v->n_unread,
            v->n_uncounted, v->sampled, v->hidepid, v->process_events);
    show_text(out, v->uncounted_why);
    show_text(out, v->process_events_why);
    for (size_t i = 0; i < ASYM_N_SIGNALS; i++)
        show_text(out, s->missing[i]);
    fputc('\n', out);
    fprintf(out, "machine %llu: %u cpus, %u types, %u cores;", (unsigned long long)s->machine->generation,
            s->machine->n_cpus, s->machine->n_types, s->machine->n_cores);
    show_mask(out, &s->machine->fast);
    fputc(';', out);
    show_mask(out, &s->machine->slow);
    fputc('\n', out);
    show_lists(out, s);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Gives fields values that a generated load leaves at zero. */
static void make_varied(struct gen *g, struct gen_load *load, unsigned i)
{
    static const char *const whys[] = {NULL, "no PMU", "no permission"};
    static const struct asym_profile profiles[2] = {{.ips = {1e9, 5e8}}, {.ips = {2e9}, .mpki = {0.5, -1}}};
    static struct asym_sample samples[2];
    static const struct asym_rule_facts facts[2] = {
        {.cpus = {.w = {0x6}}, .nice = -3, .has_nice = true},
        {.library = true, .policy_class = ASYM_RULE_CLASS_PARALLEL},
    };
    struct asym_snapshot *s = &load->s;
    s->coverage.n_threads = i;
    s->coverage.process_events = i % 2 == 0;
    s->coverage.uncounted_why = whys[i % 3];
    s->missing[ASYM_SIGNAL_IPC] = whys[(i + 1) % 3];
    s->urgent = i % 7 < 3 ? (enum asym_urgency)(i % 7) : ASYM_URGENT_NOT;
    for (size_t p = 0; p < s->n_procs; p++) {
        struct asym_proc *proc = &load->procs[p];
        proc->rule_name = gen_below(g, 4) == 0 ? "games" : gen_below(g, 2) == 0 ? "builds" : NULL;
        proc->profile = p % 3 == 0 ? &profiles[p % 2] : NULL;
        load->apps[p].cgroup = p % 5 == 1 ? "/user.slice" : NULL;
        proc->rule = (enum asym_rule_action)gen_below(g, ASYM_RULE_UNLISTED + 1);
        proc->rule_facts = p % 3 == 1 ? &facts[gen_below(g, 2)] : NULL;
        proc->flags = gen_below(g, 4) == 0 ? ASYM_PROC_UNKNOWN : 0;
        proc->ppid = (int32_t)gen_below(g, 1000);
        proc->nice_group = (int32_t)gen_below(g, 3);
        if (gen_below(g, 10) == 0)
            proc->last_fork = s->now;
        if (gen_below(g, 10) == 0)
            proc->adopted = s->now;
        if (gen_below(g, 10) == 0)
            proc->last_exec = s->now;
        load->apps[p].uses_rtx = gen_below(g, 8) == 0;
        load->apps[p].n_threads = load->apps[p].n_tasks + gen_below(g, 5);
    }
    samples[0] = (struct asym_sample){.task = 0, .seconds = 0.1, .instructions = 1e8 + i, .cycles = 3e8};
    samples[1] = (struct asym_sample){.task = (uint32_t)s->n_tasks - 1, .instructions = -1, .llc_misses = 1 / 3.0};
    s->samples = samples;
    s->n_samples = i % 3 == 0 && s->n_tasks > 1 ? 2 : 0;
    for (size_t k = 0; k < s->n_tasks; k++) {
        char *comm = load->tasks[k].comm;
        comm[0] = (char)('a' + k % 26);
        comm[1] = (char)('0' + i / 8 % 10);
        comm[2] = '\0';
        load->tasks[k].sched = (uint8_t)(gen_below(g, 6) == 0 ? 3 : 0); /* SCHED_BATCH */
    }
}

/* Every thread runs and waits for another share of the interval, on another CPU. */
static void make_noise(struct gen *g, struct gen_load *load, const struct asym_machine *m)
{
    for (size_t k = 0; k < load->s.n_tasks; k++) {
        load->tasks[k].runnable = (double)gen_below(g, 1 << 24) / (1 << 24);
        load->tasks[k].running = load->tasks[k].runnable * gen_below(g, 1 << 24) / (1 << 24);
        load->tasks[k].state = load->tasks[k].runnable > 0 ? 'R' : 'S';
        load->tasks[k].cpu = (int32_t)gen_below(g, m->n_cpus);
    }
    gen_load_count(load);
}

static int refuse(struct asym_outcome *outcomes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        outcomes[i] = (struct asym_outcome){.kind = ASYM_OUTCOME_RETRY, .error = -125};
    return 0;
}

struct maker {
    const struct record_fixture_plan *plan;
    struct record_fixture *f;
    struct gen g;
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_record_writer *writer;
    struct asym_engine *engine;
    struct asym_outcome *outcomes;
};

static void add_snapshot(struct maker *m, unsigned i)
{
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n;
    if (m->plan->noisy)
        make_noise(&m->g, m->load, &m->machine);
    else
        make_varied(&m->g, m->load, i);
    if (i > 0)
        gen_load_pass(m->load, m->plan->interval);
    struct asym_snapshot s = m->load->s;
    assert_int_equal(asym_record_writer_add(m->writer, &s), 0);
    if (m->plan->keep)
        m->f->shown[i] = record_fixture_show(&s);
    assert_int_equal(asym_engine_step(m->engine, &s, &plan, &actions, &n), 0);
    if (m->plan->planned)
        m->plan->planned(m->plan->ctx, i + 1, &s, plan, actions, n);
    m->outcomes = realloc(m->outcomes, (n + 1) * sizeof *m->outcomes);
    assert_non_null(m->outcomes);
    memset(m->outcomes, 0, (n + 1) * sizeof *m->outcomes);
    if (m->plan->enforced)
        gen_load_apply(m->load, actions, n);
    else
        refuse(m->outcomes, n);
    asym_engine_outcomes(m->engine, m->outcomes, n);
    const struct asym_feedback feedback = {
        .snapshot = &s, .plan = plan, .actions = actions, .outcomes = m->outcomes, .n_actions = n};
    assert_int_equal(asym_record_writer_feedback(m->writer, &feedback), 0);
    if (m->plan->enforced)
        gen_load_move(m->load, plan);
    gen_load_share_masks(m->load);
}

void record_fixture_make(struct record_fixture *f, const struct record_fixture_plan *plan)
{
    ASYM_AUTO_FREE struct maker *m = calloc(1, sizeof *m);
    struct asym_settings *settings;
    assert_non_null(m);
    assert_int_equal(asym_settings_new(&settings), 0);
    const struct asym_policy *policy = asym_policy_find(plan->policy);
    assert_non_null(policy);
    *f = (struct record_fixture){.n = plan->snapshots, .shown = calloc(plan->snapshots, sizeof *f->shown)};
    *m = (struct maker){.plan = plan, .f = f, .g = {plan->seed}};
    if (plan->plain)
        gen_plain_machine(&m->machine, 4, 2);
    else
        gen_machine(&m->g, &m->machine);
    m->load = gen_load_random(&m->g, &m->machine, plan->threads, plan->noisy);
    assert_non_null(m->load);
    const struct asym_engine_config config = asym_settings_engine_config(settings, policy);
    assert_int_equal(asym_engine_new(&config, &m->engine), 0);
    const struct asym_record_setting setting = {"classify.amp_boost", "1s"};
    const char *const note = "made by a test in C:\\tests";
    const struct asym_record_head head = {.version = "0.1",
                                          .policy = plan->policy,
                                          .began = 1700000000,
                                          .interval = plan->interval,
                                          .settings = &setting,
                                          .n_settings = 1,
                                          .notes = &note,
                                          .n_notes = 1};
    FILE *out = open_memstream(&f->bytes, &f->len);
    assert_non_null(out);
    assert_int_equal(asym_record_writer_new(out, &head, &m->writer), 0);
    for (unsigned i = 0; i < plan->snapshots; i++)
        add_snapshot(m, i);
    assert_int_equal(asym_record_writer_finish(m->writer), 0);
    assert_int_equal(asym_record_writer_count(m->writer), plan->snapshots);
    assert_int_equal(fclose(out), 0);
    asym_record_writer_free(m->writer);
    asym_engine_free(m->engine);
    asym_settings_free(settings);
    gen_load_free(m->load);
    free(m->outcomes);
}

void record_fixture_done(struct record_fixture *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->shown[i]);
    free(f->shown);
    free(f->bytes);
}
