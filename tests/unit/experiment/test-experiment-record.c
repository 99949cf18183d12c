/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A scenario made out of a record has its machine, its programs and their phases. */
#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "experiment/experiment.h"
#include "record/record.h"
#include "sim/scenario.h"
#include "support/generate.h"
#include "support/test.h"

/* A record of 0.1 s samples that a test writes by hand. */
struct script {
    char *bytes;
    size_t len;
    FILE *out, *in;
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_record_writer *writer;
    struct asym_record_reader *reader;
    struct asym_record_scenario made;
    struct asym_scenario *scenario;
};

static void nothing(struct script *s)
{
}

static void done(struct script *s)
{
    asym_scenario_free(s->scenario);
    asym_record_scenario_done(&s->made);
    asym_record_reader_free(s->reader);
    asym_record_writer_free(s->writer);
    if (s->in)
        fclose(s->in);
    gen_load_free(s->load);
    free(s->bytes);
    *s = (struct script){0};
}

#define TEST_F(name) TEST_IN(name, struct script, s, nothing, done)

static void begin_here(struct script *s, const unsigned *sizes, size_t n)
{
    const struct asym_record_setting setting = {"classify.amp_boost", "2s"};
    const struct asym_record_head head = {
        .version = "0.1", .policy = "serial-first", .settings = &setting, .n_settings = 1};
    s->load = gen_load_new(&s->machine, sizes, n);
    assert_non_null(s->load);
    gen_load_share_masks(s->load);
    s->out = open_memstream(&s->bytes, &s->len);
    assert_non_null(s->out);
    assert_int_equal(asym_record_writer_new(s->out, &head, &s->writer), 0);
}

static void begin(struct script *s, const unsigned *sizes, size_t n)
{
    gen_plain_machine(&s->machine, 4, 1);
    begin_here(s, sizes, n);
}

/* Two fast cores, of two CPUs each until one goes offline, and two slow cores of one. */
static void begin_with_smt(struct script *s, bool is_whole, const unsigned *sizes, size_t n)
{
    static const int16_t core[] = {0, 0, 1, 1, 2, 3};
    gen_plain_machine(&s->machine, ASYM_LENGTH(core), 4);
    for (size_t c = 0; c < ASYM_LENGTH(core); c++)
        s->machine.cpus[c].core = core[c];
    s->machine.smt_gain = 0.25;
    if (!is_whole)
        asym_mask_clear(&s->machine.usable, 3);
    assert_int_equal(asym_machine_finish(&s->machine), 0);
    begin_here(s, sizes, n);
}

/* Adds n samples: the first running threads of application app run all the time on cpu, the others sleep. */
static void add(struct script *s, size_t app, uint32_t running, int32_t cpu, unsigned n)
{
    const struct asym_app *a = &s->load->apps[app];
    for (uint32_t i = 0; i < a->n_tasks; i++) {
        struct asym_task *task = &s->load->tasks[a->first_task + i];
        gen_load_share_one(s->load, a->first_task + i, i < running ? 1 : 0);
        task->running = task->runnable;
        task->cpu = cpu;
    }
    for (unsigned k = 0; k < n; k++) {
        gen_load_pass(s->load, 100 * ASYM_MSEC);
        struct asym_snapshot copy = s->load->s;
        assert_int_equal(asym_record_writer_add(s->writer, &copy), 0);
    }
}

static void end(struct script *s)
{
    assert_int_equal(asym_record_writer_finish(s->writer), 0);
    fclose(s->out);
    s->in = fmemopen(s->bytes, s->len, "rb");
    assert_non_null(s->in);
    assert_int_equal(asym_record_reader_new(s->in, "f", &s->reader, NULL), 0);
}

/* Ends the record, and makes a scenario of it. */
static const struct asym_scenario *make(struct script *s, const char *machine)
{
    struct asym_error err = {""};
    end(s);
    assert_int_equal(asym_record_scenario(s->reader, machine, &s->made, &err), 0);
    if (asym_scenario_parse(s->made.text, s->made.len, "made", &s->scenario, &err) < 0)
        fail_msg("%s in:\n%s", err.text, s->made.text);
    return s->scenario;
}

static void assert_step(const struct asym_sim_step *step, enum asym_sim_step_kind kind, double work)
{
    assert_int_equal(step->kind, kind);
    if (!(step->work > work * 0.99 && step->work < work * 1.01))
        fail_msg("%g instead of %g", step->work, work);
}

TEST_F(phases_become_steps_with_the_work_that_was_seen)
{
    const unsigned sizes[] = {4};
    begin(s, sizes, 1);
    add(s, 0, 0, 3, 5);  /* idle */
    add(s, 0, 1, 0, 10); /* one thread for a second on the fast CPU */
    add(s, 0, 4, 3, 20); /* four threads for two seconds on a slow one */
    add(s, 0, 0, 3, 10); /* it sleeps for a second */
    add(s, 0, 1, 3, 5);
    const struct asym_scenario *scenario = make(s, NULL);
    assert_int_equal(scenario->machine.n_types, 2);
    assert_int_equal(scenario->machine.counts[0], 1);
    assert_int_equal(scenario->machine.counts[1], 3);
    assert_true(scenario->machine.speeds[0] > 1.99 && scenario->machine.speeds[0] < 2.01);
    assert_int_equal(scenario->n_programs, 1);
    const struct asym_sim_program *p = &scenario->programs[0];
    assert_int_equal(p->threads, 4);
    assert_int_equal(p->n_steps, 4);
    assert_step(&p->steps[0], ASYM_SIM_SERIAL, 2e9);
    assert_step(&p->steps[1], ASYM_SIM_PARALLEL, 8e9);
    assert_step(&p->steps[2], ASYM_SIM_IO, 1e9);
    assert_step(&p->steps[3], ASYM_SIM_SERIAL, 0.5e9);
    assert_true(p->start >= 499000000 && p->start <= 601000000);
    assert_string_equal(scenario->settings->daemon.policy, "serial-first");
    assert_int_equal(scenario->settings->classify.amp_boost, 2 * ASYM_SEC);
    assert_non_null(strstr(s->made.notes, "1 of 1 applications, and 100 % of their CPU time"));
}

TEST_F(a_hyperthread_is_no_core)
{
    static const struct {
        int32_t other; /* the CPU of the second program; the first one has CPU 0 */
        bool is_whole;
        double work;
    } rows[] = {{1, true, 1.25e9}, {2, true, 2e9}, {1, false, 1.25e9}};
    const unsigned sizes[] = {1, 1};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin_with_smt(s, rows[i].is_whole, sizes, 2);
        add(s, 0, 1, 0, 0);
        add(s, 1, 1, rows[i].other, 10);
        const struct asym_scenario *scenario = make(s, NULL);
        const struct asym_sim_machine *m = &scenario->machine;
        assert_int_equal(m->n_types, 2);
        assert_true(m->counts[0] == 2 && m->smt[0] == 2 && m->counts[1] == 2 && m->smt[1] == 1);
        assert_true(m->max_ipc > 1.249 && m->max_ipc < 1.251);
        assert_true((strstr(s->made.notes, "fewer CPUs than others") == NULL) == rows[i].is_whole);
        const struct asym_sim_step *step = &scenario->programs[0].steps[0];
        assert_step(step, ASYM_SIM_SERIAL, rows[i].work);
        const double ipc = scenario->memories[step->memory].ipc;
        assert_true(ipc > 0.999 && ipc < 1.001);
        done(s);
    }
}

TEST_F(many_phases_become_a_loop_on_another_machine)
{
    const unsigned sizes[] = {3};
    begin(s, sizes, 1);
    for (unsigned i = 0; i < 50; i++) {
        add(s, 0, 1, 3, 2);
        add(s, 0, 3, 3, 2);
    }
    const struct asym_scenario *scenario = make(s, "[machine]\ncounts = 8,8\nspeeds = 1,4\n");
    assert_int_equal(scenario->machine.counts[1], 8);
    const struct asym_sim_program *p = &scenario->programs[0];
    assert_int_equal(p->n_steps, 4);
    assert_step(&p->steps[0], ASYM_SIM_LOOP, 50);
    assert_step(&p->steps[1], ASYM_SIM_PARALLEL, 0.6e9);
    assert_step(&p->steps[2], ASYM_SIM_SERIAL, 0.2e9);
}

TEST_F(the_busiest_programs_are_taken_and_the_rest_is_counted)
{
    unsigned sizes[40];
    for (size_t i = 0; i < ASYM_LENGTH(sizes); i++)
        sizes[i] = 1;
    begin(s, sizes, ASYM_LENGTH(sizes));
    add(s, 0, 1, 3, 20);
    const struct asym_scenario *scenario = make(s, NULL);
    assert_int_equal(scenario->n_programs, ASYM_RECORD_SCENARIO_PROGRAMS);
    assert_non_null(strstr(s->made.notes, "32 of 40 applications"));
}

TEST_F(programs_of_one_name_and_number_get_an_index)
{
    static const struct {
        const char *comm;
        int32_t tgid;
    } programs[] = {{"cc", 7}, {"cc", 7}, {"cc", 7}, {"cc-7", 2}, {"c:", 9}, {"c/", 9}};
    const unsigned sizes[ASYM_LENGTH(programs)] = {1, 1, 1, 1, 1, 1};
    begin(s, sizes, ASYM_LENGTH(sizes));
    for (size_t i = 0; i < ASYM_LENGTH(sizes); i++) {
        const struct asym_taskid id = {.tid = programs[i].tgid, .tgid = programs[i].tgid, .start = 100 + i};
        s->load->apps[i].id = s->load->procs[i].id = s->load->tasks[i].id = id;
        snprintf(s->load->apps[i].comm, ASYM_COMM_LEN, "%s", programs[i].comm);
    }
    for (size_t i = 0; i < ASYM_LENGTH(sizes); i++)
        add(s, i, 1, 3, i + 1 < ASYM_LENGTH(sizes) ? 0 : 5);
    const struct asym_scenario *scenario = make(s, NULL);
    assert_int_equal(scenario->n_programs, ASYM_LENGTH(programs));
    assert_non_null(strstr(s->made.text, "\"cc-7\""));
    assert_non_null(strstr(s->made.text, "\"cc-7-2\""));
    assert_non_null(strstr(s->made.text, "\"cc-7-3\""));
    assert_non_null(strstr(s->made.text, "\"cc-7-4\""));
    assert_non_null(strstr(s->made.text, "\"c_-9-2\""));
}

/* Records n snapshots of so many applications of a thread each, with a gap before each: n serial phases and n - 1 idle ones. */
static void add_many_threads(struct script *s, unsigned apps, unsigned n, bool renamed)
{
    ASYM_AUTO_FREE unsigned *sizes = calloc(apps, sizeof *sizes);
    assert_non_null(sizes);
    for (unsigned i = 0; i < apps; i++)
        sizes[i] = 1;
    begin(s, sizes, apps);
    for (unsigned k = 0; k < n; k++) {
        for (unsigned i = 0; i < apps && renamed; i++)
            s->load->apps[i].id.start++;
        gen_load_pass(s->load, ASYM_SEC);
        struct asym_snapshot copy = s->load->s;
        copy.interval /= 2;
        /* One more application than the bound is enough. */
        if (renamed && k + 1 == n)
            copy.n_apps = copy.n_procs = copy.n_tasks = 1;
        assert_int_equal(asym_record_writer_add(s->writer, &copy), 0);
    }
    end(s);
}

/* Applications of a snapshot: so few that they stay in the caches. */
enum { AT_ONCE = 1024 };

TEST_F(too_many_applications_and_phases_are_refused_with_the_place)
{
    static const struct {
        unsigned apps, snapshots;
        bool renamed;
        int result;
    } rows[] = {
        {AT_ONCE, ASYM_RECORD_MAX_APPLICATIONS / AT_ONCE + 1, true, -EBADMSG},
        {AT_ONCE, ASYM_RECORD_MAX_PHASES / 2 / AT_ONCE - 1, false, 0},
        {AT_ONCE, ASYM_RECORD_MAX_PHASES / 2 / AT_ONCE, false, -EBADMSG},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_error err = {""};
        add_many_threads(s, rows[i].apps, rows[i].snapshots, rows[i].renamed);
        const int r = asym_record_scenario(s->reader, NULL, &s->made, &err);
        if (r != rows[i].result || (r < 0 && (strncmp(err.text, "f: byte ", 8) != 0 || !strstr(err.text, "phases"))))
            fail_msg("row %zu: %d, %s", i, r, err.text);
        done(s);
    }
}

TEST_F(a_record_in_which_nothing_ran_is_refused)
{
    const unsigned sizes[] = {2};
    struct asym_error err = {""};
    begin(s, sizes, 1);
    add(s, 0, 0, 3, 5);
    end(s);
    assert_int_equal(asym_record_scenario(s->reader, NULL, &s->made, &err), -EINVAL);
    assert_string_equal(err.text, "no application of the record ran");
}

TEST_MAIN
