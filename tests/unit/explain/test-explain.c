/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sentences for a user who asks why a program runs where it runs. */

#include <glob.h>

#include "core/overrides.h"
#include "support/monitor-fixture.h"
#include "support/reason-text.h"
#include "support/shell.h"
#include "support/test.h"

/* A program whose threads all run, on the given CPUs in turn. */
static void program(struct monitor_fixture *f, const char *comm, int32_t pid, int32_t n, int32_t first, int32_t n_cpus)
{
    const unsigned p = engine_fixture_proc(&f->w, pid);
    for (int32_t i = 0; i < n; i++) {
        struct engine_fixture_thread *t = engine_fixture_thread(&f->w, p, pid + i, first + i % n_cpus);
        t->task.cpu = first + i % n_cpus;
        snprintf(t->task.comm, sizeof t->task.comm, "%s", comm);
    }
}

/* The fixture calls every application "app"; the monitor takes the name of the snapshot: here that of its first thread. */
static void run_named(struct monitor_fixture *f)
{
    engine_fixture_run(&f->w, TICK);
    for (size_t i = f->w.n_threads; i-- > 0;)
        memcpy(f->w.s_apps[f->w.threads[i].task.proc].comm, f->w.threads[i].task.comm, ASYM_COMM_LEN);
    record(f);
}

/* Another program changes the mask of a thread, and asymd leaves the thread alone. */
static void change_mask(struct monitor_fixture *f, size_t thread, const char *mask)
{
    f->w.threads[thread].mask = engine_fixture_cpus(mask);
    for (int i = 0; i < 4; i++)
        run(f, TICK);
}

static void set_rule(struct monitor_fixture *f, enum asym_rule_action action, const char *name)
{
    f->w.procs[0].rule = action;
    f->w.procs[0].rule_name = name;
}

static void set_hp_threshold(struct monitor_fixture *f, unsigned threshold)
{
    f->w.config.classify.hp_threshold = threshold;
    assert_int_equal(asym_engine_configure(f->w.engine, &f->w.config), 0);
}

static void add_sentence(void *ctx, const char *sentence)
{
    struct monitor_fixture *f = ctx;
    const size_t used = strlen(f->text);
    assert_true(sentence[0] && sentence[strlen(sentence) - 1] == '.');
    snprintf(f->text + used, sizeof f->text - used, "%s%s", used ? "\n" : "", sentence);
}

static void add_row(void *ctx, const char *name, const char *value)
{
    struct monitor_fixture *f = ctx;
    const size_t used = strlen(f->text);
    snprintf(f->text + used, sizeof f->text - used, "%s=%s\n", name, value);
}

/* The process of a thread, as the service would find it. */
static const struct asym_proc *proc_of(const struct monitor_fixture *f, int32_t tid)
{
    int32_t tgid = tid;
    for (unsigned i = 0; i < f->w.n_threads; i++)
        tgid = f->w.threads[i].task.id.tid == tid ? f->w.threads[i].task.id.tgid : tgid;
    for (unsigned i = 0; i < f->w.n_procs; i++)
        if (f->w.procs[i].id.tgid == tgid)
            return &f->w.procs[i];
    return NULL;
}

/* context: what the service knows beyond the machine, the configuration and the process. */
static const char *explain(struct monitor_fixture *f, int32_t id, struct asym_explain_context context)
{
    context.machine = &f->w.machine;
    context.config = &f->w.config;
    context.proc = proc_of(f, id);
    *f->text = '\0';
    assert_int_equal(asym_explain(f->m, &context, id, &f->e), 0);
    asym_explain_sentences(&f->e, add_sentence, f);
    return f->text;
}

/* The evidence of the last explanation. */
static const char *evidence(struct monitor_fixture *f)
{
    *f->text = '\0';
    asym_explain_evidence(&f->e, add_row, f);
    return f->text;
}

static const char *why(struct monitor_fixture *f, int32_t id)
{
    return explain(f, id, (struct asym_explain_context){.paused = f->w.paused});
}

TEST_F(a_job_of_several_processes_says_how_many)
{
    program(f, "cc1", 100, 3, 0, 4);
    engine_fixture_run(&f->w, TICK);
    snprintf(f->w.s_apps[0].comm, ASYM_COMM_LEN, "make");
    f->w.s_apps[0].n_procs = 9;
    record(f);
    assert_has(why(f, 100), "make (100, 9 processes) is ");
    assert_has(evidence(f), "program=make (100, 9 processes)\n");
    assert_has(f->text, " in 9 processes\n");
}

/* The number of a job is that of its leader, which has ended here. */
TEST_F(a_job_of_one_process_has_the_number_of_that_process)
{
    program(f, "cc1", 120, 3, 0, 4);
    engine_fixture_run(&f->w, TICK);
    f->w.s_apps[0].id = (struct asym_taskid){100, 100, 1};
    f->w.s_apps[0].n_procs = 1;
    record(f);
    assert_has(why(f, 100), "app (120) is ");
    assert_null(strstr(f->text, "(100)"));
    assert_has(evidence(f), "program=app (120)\n");
}

/* The kernel or the ledger says so in the outcome of an action. */
TEST_F(a_changed_nice_value_is_not_called_an_affinity)
{
    program(f, "game", 300, 1, 5, 1);
    engine_fixture_step(&f->w, TICK);
    engine_fixture_answer(&f->w, ASYM_OUTCOME_HANDS_OFF, -ESTALE);
    record(f);
    run(f, TICK);
    assert_has(why(f, 300), "game (300) is left alone, because its nice value was changed after asymd had set it.\n");
    assert_has(f->text, "changed the nice value: asymd cannot know which. "
                        "To have the thread steered again: asymctl adopt 300.");
}

TEST_F(a_program_with_high_nice_values_is_in_the_background)
{
    f->w.config.classify.background_nice = 10;
    assert_int_equal(asym_engine_configure(f->w.engine, &f->w.config), 0);
    program(f, "updatedb", 300, 1, 0, 1);
    f->w.threads[0].task.nice = 19;
    run_named(f);
    assert_has(why(f, 300),
               "updatedb (300) is in the background: all its runnable threads have nice value 10 or more.\n");
}

/* The journal has the summary; it gives the figures of the class once. */
TEST_F(a_class_has_one_name_and_a_summary)
{
    static const struct {
        enum asym_phase phase;
        enum asym_class class;
        enum asym_class_source by;
        bool has_sp;
        double runnable;
        const char *name;
    } rows[] = {
        {ASYM_PHASE_SERIAL, ASYM_CLASS_MP, ASYM_CLASS_BY_COUNT, false, 1, "serial"},
        {ASYM_PHASE_SERIAL, ASYM_CLASS_NONE, ASYM_CLASS_BY_COUNT, false, 1, "serial"},
        {ASYM_PHASE_PARALLEL, ASYM_CLASS_MP, ASYM_CLASS_BY_COUNT, false, 3, "mildly parallel"},
        {ASYM_PHASE_PARALLEL, ASYM_CLASS_NONE, ASYM_CLASS_BY_COUNT, false, 3, "parallel"},
        {ASYM_PHASE_PARALLEL, ASYM_CLASS_HP, ASYM_CLASS_BY_COUNT, false, 9, "highly parallel"},
        {ASYM_PHASE_SERIAL, ASYM_CLASS_HP, ASYM_CLASS_BY_NICE, false, 1, "background"},
        {ASYM_PHASE_SERIAL, ASYM_CLASS_HP, ASYM_CLASS_BY_NICE, true, 1, "serial phase"},
        {ASYM_PHASE_SERIAL, ASYM_CLASS_HP, ASYM_CLASS_BY_COUNT, false, 0.2, "idle"},
        {ASYM_PHASE_IDLE, ASYM_CLASS_MP, ASYM_CLASS_BY_COUNT, false, 1, "idle"},
    };
    char text[512];
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_monitor_app app = {.phase = rows[i].phase,
                                             .class = rows[i].class,
                                             .class_by = rows[i].by,
                                             .has_sp = rows[i].has_sp,
                                             .runnable = rows[i].runnable};
        assert_string_equal(asym_explain_class_name(&app), rows[i].name);
    }
    set_hp_threshold(f, 5);
    program(f, "stockfish", 300, 8, 0, 4);
    run_named(f);
    why(f, 300);
    assert_string_equal(asym_explain_summary(&f->e, text, sizeof text),
                        "stockfish (300) is highly parallel: it has 8 runnable threads, more than the limit of 5. "
                        "stockfish (300): ordered.");
}

TEST_F(a_parallel_program_is_explained_which_threads_have_the_fast_cpus)
{
    set_hp_threshold(f, 5);
    program(f, "stockfish", 300, 8, 0, 4);
    program(f, "gzip", 200, 4, 4, 4);
    run_named(f);
    assert_has(why(f, 300), "stockfish (300) is highly parallel: it has 8 runnable threads, more than the limit of 5.\n"
                            "The 4 fast CPUs belong to gzip (200), which has 4 runnable threads.\n"
                            "If gzip (200) stopped, 4 threads of stockfish (300) could use fast CPUs.\n"
                            "No rule matches.\n");
    assert_has(f->text, "asymd has given the thread stockfish (300) CPU 0, a slow CPU.");
    assert_has(f->text,
               "In the last minute the program spent 0 % of its running time on fast CPUs, and asymd moved none of "
               "its threads.");
    assert_int_equal(f->e.standing, ASYM_STANDING_STEERED_SLOW);
    assert_true(f->e.of_program);
    assert_has(why(f, 200), "gzip (200) is mildly parallel: it has 4 runnable threads.\nNo rule matches.\n");
    assert_int_equal(f->e.standing, ASYM_STANDING_STEERED_FAST);
    why(f, 303);
    assert_false(f->e.of_program);
    assert_has(f->text, "stockfish (303): ordered.");
}

TEST_F(an_only_fast_cpu_and_a_lonely_holder)
{
    engine_fixture_machine(&f->w.machine, 3, 1, 4);
    program(f, "a", 300, 2, 0, 2);
    program(f, "b", 200, 1, 3, 1);
    run_named(f);
    assert_has(why(f, 300), "a (300) is serial: it has 2 runnable threads.\n"
                            "The only fast CPU belongs to b (200).\n"
                            "If b (200) stopped, 1 thread of a (300) could use a fast CPU.\n");
}

/* Once asymctl said that all fast CPUs belonged to the one other program, while this one had all but one of them. */
/* A program of eight threads on the first CPUs, and one of a thread on the last one. */
static void build_and_spin(struct monitor_fixture *f, int32_t n_cpus)
{
    set_hp_threshold(f, 5);
    program(f, "build", 300, 8, 0, n_cpus);
    program(f, "spin", 200, 1, 7, 1);
    run_named(f);
}

static void assert_a_slow_thread_is_told(struct monitor_fixture *f, int32_t first, int32_t n, const char *words)
{
    for (int32_t tid = first; tid < first + n; tid++) {
        why(f, tid);
        if (f->e.standing == ASYM_STANDING_STEERED_SLOW)
            break;
    }
    assert_int_equal(f->e.standing, ASYM_STANDING_STEERED_SLOW);
    assert_has(f->text, words);
}

TEST_F(a_program_with_fast_cpus_of_its_own_is_told_how_many)
{
    build_and_spin(f, 7);
    assert_a_slow_thread_is_told(f, 300, 8,
                                 "\nThreads of this program have 3 of the 4 fast CPUs.\n"
                                 "1 of the 4 fast CPUs belongs to spin (200).\n"
                                 "If spin (200) stopped, 1 more thread of build (300) could use a fast CPU.\n");
}

TEST_F(a_fast_cpu_that_two_programs_share_belongs_to_neither)
{
    build_and_spin(f, 8);
    assert_a_slow_thread_is_told(f, 300, 8,
                                 "\nThreads of this program have 4 of the 4 fast CPUs.\n"
                                 "1 of the 4 fast CPUs has threads of spin (200).\nNo rule");
}

/* The monitor remembers threads that have ended or sleep, with the CPUs that they had. */
TEST_F(a_program_that_has_ended_holds_no_fast_cpu)
{
    program(f, "me", 300, 2, 0, 2);
    program(f, "spin", 200, 1, 7, 1);
    program(f, "old", 400, 3, 4, 3);
    run_named(f);
    assert_has(why(f, 300),
               "\nThe 4 fast CPUs belong to old (400), which has 3 runnable threads, and to spin (200).\nNo rule");
    for (size_t i = 3; i < f->w.n_threads; i++)
        f->w.threads[i].listed = false;
    run(f, TICK);
    assert_has(why(f, 300), "\n1 of the 4 fast CPUs belongs to app (200).\nNo rule");
}

/* hidepid: the bus takes the programs out that the user may not see. */
TEST_F(programs_that_are_hidden_are_others)
{
    program(f, "me", 300, 8, 0, 4);
    program(f, "spin", 200, 1, 7, 1);
    program(f, "hidden", 400, 3, 4, 3);
    run_named(f);
    why(f, 300);
    assert_int_equal(f->e.n_holders, 2);
    f->e.holders[0] = asym_monitor_app_of(f->m, 200);
    f->e.n_holders = 1;
    f->e.hides_holders = true;
    *f->text = '\0';
    asym_explain_sentences(&f->e, add_sentence, f);
    assert_has(f->text, "\nThe 4 fast CPUs belong to spin (200) and to others.\nNo rule");
}

TEST_F(of_many_holders_those_with_most_fast_cpus_are_named)
{
    engine_fixture_machine(&f->w.machine, 4, 8, 12);
    program(f, "me", 300, 1, 0, 1);
    program(f, "one", 410, 1, 4, 1);
    program(f, "two", 420, 2, 5, 2);
    program(f, "three", 430, 3, 7, 3);
    program(f, "four", 440, 1, 10, 1);
    run_named(f);
    assert_has(why(f, 300), "\n7 of the 8 fast CPUs belong to three (430), which has 3 runnable threads, to two (420), "
                            "which has 2 runnable threads, to one (410), and to 1 more program.\nNo rule");
    assert_null(strstr(f->text, " stopped"));
}

TEST_F(a_thread_that_is_left_alone_is_explained_since_when_and_how_to_end_it)
{
    program(f, "game", 300, 1, 5, 1);
    run(f, TICK);
    change_mask(f, 0, "3");
    why(f, 300);
    assert_int_equal(f->e.standing, ASYM_STANDING_LEFT_ALONE);
    assert_has(f->text, "\nasymd has left the thread alone for less than a second.\n");
    run(f, 12 * 60 * ASYM_SEC);
    assert_has(why(f, 300), "game (300) is left alone, because its affinity was changed after asymd had set it.\n"
                            "asymd has left the thread alone for 12 min.\n"
                            "The thread itself or another program changed the affinity: asymd cannot know which. "
                            "To have the thread steered again: asymctl adopt 300.");
    assert_int_equal(f->e.standing, ASYM_STANDING_LEFT_ALONE);
    f->w.paused = true;
    f->w.threads[0].mask = engine_fixture_cpus("0-7");
    f->w.procs[0].adopted = f->w.now + 1;
    run(f, TICK);
    assert_has(why(f, 300), "\nasymd is paused: it has restored all masks and nice values, and steers nothing. To end "
                            "the pause: asymctl resume.");
    assert_null(strstr(f->text, "because asymd is paused"));
    assert_null(strstr(f->text, "asymd has left"));
}

TEST_F(each_lasting_exclusion_says_so_and_some_what_to_do)
{
    static const struct {
        uint32_t flags;
        enum asym_rule_action rule;
        const char *mask, *says;
        enum asym_standing standing;
    } rows[] = {
        {ASYM_PROC_KERNEL, 0, "0-7", "is a kernel thread", ASYM_STANDING_LEFT_ALONE},
        {0, ASYM_RULE_IGNORE, "0-7", "asymctl set 300 steer.", ASYM_STANDING_LEFT_ALONE},
        {0, 0, "2-3", "asymctl adopt 300.", ASYM_STANDING_LEFT_ALONE},
        {ASYM_PROC_OUTSIDE, 0, "0-7", "--pid", ASYM_STANDING_LEFT_ALONE},
        {ASYM_PROC_COUNTS_LATE, 0, "0-7", "thread pool", ASYM_STANDING_WAITS},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        program(f, "x", 300, 1, 5, 1);
        f->w.procs[0].flags = rows[i].flags;
        set_rule(f, rows[i].rule, rows[i].rule ? "mine" : NULL);
        f->w.threads[0].mask = engine_fixture_cpus(rows[i].mask);
        run(f, TICK);
        assert_has(why(f, 300), rows[i].says);
        assert_has(f->text, rows[i].rule ? "The rule \"mine\" matches.\n" : "No rule matches.\n");
        assert_int_equal(f->e.standing, rows[i].standing);
        teardown(f);
        *f = (struct monitor_fixture){0};
        setup(f);
    }
}

/* "No rule matches" would be wrong while asymd does not know. */
/* Without its process, as of one that has ended, nothing is said about its rule. */
TEST_F(a_rule_that_was_not_compared_yet_or_is_not_known_is_no_rule)
{
    program(f, "x", 300, 1, 5, 1);
    run(f, TICK);
    assert_has(why(f, 300), "No rule matches.\n");
    assert_has(explain(f, 300, (struct asym_explain_context){.rule_pending = true}),
               "asymd has not compared the program with its rules yet.\n");
    assert_has(evidence(f), "\nrule=not compared yet\n");
    f->e.context.proc = NULL;
    evidence(f);
    asym_explain_sentences(&f->e, add_sentence, f);
    assert_has(f->text, "\nrule=not known\n");
    assert_null(strstr(f->text, "rules"));
}

/* The rules may have changed since it ran. The end of an exclusion does not make a running thread idle. */
TEST_F(a_process_that_sleeps_has_the_reason_of_the_rules_of_today)
{
    static const struct {
        enum asym_exclusion before;
        enum asym_rule_action rule;
        bool is_current;
        enum asym_exclusion now;
    } rows[] = {
        {ASYM_WHY_IDLE, ASYM_RULE_IGNORE, false, ASYM_WHY_RULE_IGNORE},
        {ASYM_WHY_IDLE, ASYM_RULE_UNLISTED, false, ASYM_WHY_UNLISTED},
        {ASYM_WHY_RULE_IGNORE, ASYM_RULE_FAST, false, ASYM_WHY_IDLE},
        {ASYM_WHY_FOREIGN, ASYM_RULE_FAST, false, ASYM_WHY_FOREIGN},
        {ASYM_WHY_RULE_IGNORE, ASYM_RULE_STEER, true, ASYM_WHY_RULE_IGNORE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_proc proc = {.rule = rows[i].rule};
        assert_ptr_equal(asym_explain_reason_now(asym_why(rows[i].before), rows[i].is_current, &proc),
                         asym_why(rows[i].now));
        assert_ptr_equal(asym_explain_reason_now(asym_why(rows[i].before), false, NULL), asym_why(rows[i].before));
    }
    program(f, "x", 300, 1, 5, 1);
    run(f, TICK);
    f->w.threads[0].listed = false;
    run(f, TICK);
    set_rule(f, ASYM_RULE_IGNORE, "games");
    assert_has(why(f, 300), "To have the program steered until the program ends: asymctl set 300 steer.");
    assert_int_equal(f->e.standing, ASYM_STANDING_LEFT_ALONE);
    assert_null(strstr(f->text, "has left the thread alone for"));
}

static const char *why_with(struct monitor_fixture *f, const struct asym_override *order, const char *own)
{
    const struct asym_mask own_mask = engine_fixture_cpus(own);
    return explain(f, 300, (struct asym_explain_context){.order = order, .own_mask = &own_mask});
}

TEST_F(a_rule_of_a_user_says_what_it_does_who_set_it_and_how_to_undo_it)
{
    static const struct {
        enum asym_rule_action rule;
        const char *own;
        int32_t cpu; /* where the policy puts the thread */
        const char *word, *does;
    } rows[] = {
        {ASYM_RULE_SLOW, "0-7", 2, "slow", "keeps the program on slow CPUs 0-3"},
        {ASYM_RULE_FAST, "0-7", 6, "fast", "keeps the program on fast CPUs 4-7"},
        {ASYM_RULE_SLOW, "3-7", 2, "slow", "keeps the program on slow CPU 3"},
        {ASYM_RULE_SLOW, "4-5", 2, "slow", "has no effect, because the program may use no slow CPU"},
        {ASYM_RULE_SLOW, "8-9", 2, "slow", "has no effect, because no CPU that the program may use is online"},
        {ASYM_RULE_STEER, "0-7", 6, "steer", "comes before the rules of the configuration"},
        {ASYM_RULE_IGNORE, "0-7", 6, "ignore", "makes asymd leave the program alone until the program ends"},
    };
    char says[256];
    program(f, "x", 300, 1, 5, 1);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_override order = {.id = {300, 300, 1}, .ruled = true, .rule = rows[i].rule, .ruled_by = 1000};
        set_rule(f, rows[i].rule, asym_overrides_rule_name);
        engine_fixture_order(&f->w, 300, rows[i].cpu, false);
        run(f, TICK);
        snprintf(says, sizeof says,
                 "\nA rule that uid 1000 has set (asymctl set 300 %s) %s. To undo the rule: asymctl set 300 auto.%s",
                 rows[i].word, rows[i].does, rows[i].rule == ASYM_RULE_IGNORE ? "" : "\n");
        assert_has(why_with(f, &order, rows[i].own), says);
        assert_null(strstr(f->text, "a rule says ignore"));
        assert_null(strstr(f->text, "asymctl set 300 steer."));
    }
    /* A thread that is left alone for another reason. */
    f->w.procs[0].rule = ASYM_RULE_SLOW;
    change_mask(f, 0, "6");
    assert_has(why_with(f, NULL, "0-7"),
               "\nA rule that a user has set (asymctl set 300 slow) would keep the program on slow CPUs 0-3.");
    assert_int_equal(f->e.standing, ASYM_STANDING_LEFT_ALONE);
    f->w.procs[0].adopted = f->w.now + 1;
    /* The order is not known any more: the process ended meanwhile. */
    f->w.procs[0].rule = ASYM_RULE_SLOW;
    run(f, TICK);
    assert_has(why_with(f, NULL, "0-7"),
               "\nA rule that a user has set (asymctl set 300 slow) keeps the program on slow CPUs 0-3.");
}

TEST_F(a_rule_of_the_configuration_says_which_cpus_it_leaves_and_how_to_undo_that)
{
    static const struct {
        enum asym_rule_action rule;
        const char *cpus, *own;
        int32_t cpu;
        const char *says;
    } rows[] = {
        {ASYM_RULE_SLOW, "", "0-7", 2, "keeps the program on slow CPUs 0-3"},
        {ASYM_RULE_STEER, "2,6-7", "0-7", 2, "keeps the program on CPUs 2,6-7"},
        {ASYM_RULE_FAST, "2,6-7", "0-7", 6, "keeps the program on fast CPUs 6-7"},
        {ASYM_RULE_FAST, "2", "0-7", 2, "keeps the program on CPU 2"},
        {ASYM_RULE_STEER, "2", "4-7", 6, "has no effect, because the program may use no CPU of the rule"},
        {ASYM_RULE_STEER, "8-9", "0-7", 6, "has no effect, because no CPU of the rule is online"},
        {ASYM_RULE_SLOW, "8-9", "0-7", 2, "keeps the program on slow CPUs 0-3; no CPU of the rule's list is online"},
        {ASYM_RULE_SLOW, "8-9", "4-7", 2, "has no effect, because no CPU of the rule is online"},
        {ASYM_RULE_STEER, "2", "8-9", 2, "has no effect, because no CPU that the program may use is online"},
        {ASYM_RULE_SLOW, "", "8-9", 2, "has no effect, because no CPU that the program may use is online"},
        {ASYM_RULE_STEER, "", "8-9", 6, "matches"},
        {ASYM_RULE_STEER, "", "0-7", 6, "matches"},
    };
    char says[256];
    program(f, "x", 300, 1, 5, 1);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus(rows[i].cpus)};
        set_rule(f, rows[i].rule, "backup");
        f->w.procs[0].rule_facts = &facts;
        engine_fixture_order(&f->w, 300, rows[i].cpu, false);
        run(f, TICK);
        snprintf(says, sizeof says, "\nThe rule \"backup\" %s.%s\n", rows[i].says,
                 strncmp(rows[i].says, "keeps ", 6) == 0
                     ? " To undo that until the program ends: asymctl set 300 steer."
                     : "");
        assert_has(why_with(f, NULL, rows[i].own), says);
    }
}

/* The other program's fast CPUs are not what keeps a thread off them that may use slow ones only. */
TEST_F(a_rule_that_allows_slow_cpus_only_is_the_reason_for_a_slow_cpu)
{
    program(f, "me", 300, 2, 0, 2);
    program(f, "spin", 200, 4, 4, 4);
    run_named(f);
    assert_has(why_with(f, NULL, "0-7"), "\nThe 4 fast CPUs belong to spin (200)");
    assert_null(strstr(why_with(f, NULL, "0-3"), "belong to spin"));
    assert_has(f->text, "\nThe program's own affinity leaves out all fast CPUs.\nNo rule");
    set_rule(f, ASYM_RULE_SLOW, "backup");
    run_named(f);
    assert_has(why_with(f, NULL, "0-7"), "me (300) is serial: it has 2 runnable threads.\nThe rule \"backup\" "
                                         "keeps the program on slow CPUs 0-3.");
    assert_int_equal(f->e.standing, ASYM_STANDING_STEERED_SLOW);
}

/* asymd narrows the mask of a new process later: once why said that the rule kept it on CPUs that it had not yet. */
TEST_F(a_rule_for_a_program_that_is_too_new_will_have_its_effect)
{
    program(f, "x", 300, 1, 5, 1);
    f->w.procs[0].born = f->w.now;
    engine_fixture_order(&f->w, 300, 2, false);
    set_rule(f, ASYM_RULE_SLOW, "backup");
    run(f, TICK);
    assert_has(why_with(f, NULL, "0-7"),
               "\nThe rule \"backup\" will keep the program on slow CPUs 0-3. To undo that until the program ends: "
               "asymctl set 300 steer.\nx (300) belongs to a process that is too new");
    assert_int_equal(f->e.standing, ASYM_STANDING_WAITS);
    engine_fixture_assert_mask(&f->w.threads[0].mask, "0-7");
    run(f, 10 * ASYM_SEC);
    assert_has(why_with(f, NULL, "0-7"), "\nThe rule \"backup\" keeps the program on slow CPUs 0-3.");
    assert_int_equal(f->e.standing, ASYM_STANDING_STEERED_SLOW);
}

static const char *why_thread_with(struct monitor_fixture *f, int32_t tid, const char *own)
{
    const struct asym_mask own_mask = engine_fixture_cpus(own);
    return explain(f, tid, (struct asym_explain_context){.own_mask = &own_mask});
}

/* The affinity of the thread decides where the service knows it. An affinity may name CPUs that are offline. */
TEST_F(a_rule_keeps_a_thread_on_cpus_that_the_thread_has)
{
    static const struct {
        const char *mask, *says;
    } rows[] = {{"0-7", " will keep the program on slow CPUs 0-3."},
                {"4", " will keep the program on slow CPUs 0-3."},
                {"0-3", " keeps the program on slow CPUs 0-3."},
                {"1,8-9", " keeps the program on slow CPUs 0-3."}};
    program(f, "x", 300, 1, 5, 1);
    engine_fixture_order(&f->w, 300, 2, false);
    set_rule(f, ASYM_RULE_SLOW, "backup");
    for (unsigned new = 0; new < 2; new ++) {
        f->w.procs[0].born = new ? f->w.now : f->w.procs[0].born;
        run(f, TICK);
        for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
            const struct asym_mask mask = engine_fixture_cpus(rows[i].mask);
            assert_has(explain(f, 300, (struct asym_explain_context){.mask = &mask}), rows[i].says);
            assert_int_equal(f->e.standing, new ? ASYM_STANDING_WAITS : ASYM_STANDING_STEERED_SLOW);
        }
    }
}

/* A rule is one of a program; the CPUs that it leaves are those of the thread. */
TEST_F(a_question_about_a_thread_is_answered_with_its_cpus)
{
    program(f, "x", 300, 2, 4, 2);
    engine_fixture_order(&f->w, 300, 2, false);
    engine_fixture_order(&f->w, 301, 2, false);
    set_rule(f, ASYM_RULE_SLOW, "backup");
    run(f, TICK);
    assert_has(why_thread_with(f, 301, "3-7"), "\nThe rule \"backup\" keeps the thread on slow CPU 3.");
    assert_has(why_thread_with(f, 301, "0-3"), "\nThe thread's own affinity leaves out all fast CPUs.");
}

TEST_F(where_all_cpus_are_alike_a_rule_for_fast_ones_has_no_effect)
{
    engine_fixture_machine(&f->w.machine, 0, 4, 4);
    program(f, "x", 300, 1, 1, 1);
    set_rule(f, ASYM_RULE_FAST, "backup");
    run(f, TICK);
    assert_has(why(f, 300), "\nThe rule \"backup\" has no effect, because no CPU is slow.\n");
    const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus("1-2")};
    f->w.procs[0].rule_facts = &facts;
    run(f, TICK);
    assert_has(why(f, 300), "\nThe rule \"backup\" keeps the program on CPUs 1-2.");
}

TEST_F(names_with_hostile_bytes_are_escaped)
{
    program(f, "t\r\n\x7f", 300, 1, 5, 1);
    engine_fixture_run(&f->w, TICK);
    snprintf(f->w.s_apps[0].comm, ASYM_COMM_LEN, "a\n\033[31mb\\");
    record(f);
    why(f, 300);
    assert_has(f->text, "a\\x0a\\x1b[31mb\\\\ (300) ");
    assert_has(f->text, "t\\x0d\\x0a\\x7f (300)");
    for (const char *p = f->text; *p; p++)
        assert_true(*p == '\n' || (unsigned char)*p >= ' ');
}

TEST_F(evidence_has_the_figures_and_thresholds)
{
    f->w.config.classify.hp_threshold = 5;
    program(f, "x", 300, 3, 4, 3);
    run(f, TICK);
    why(f, 301);
    struct asym_mask mask = engine_fixture_cpus("4-7"), own = engine_fixture_cpus("0-7");
    f->e.context.mask = &mask;
    f->e.context.own_mask = &own;
    evidence(f);
    static const char *const lines[] = {"runnable threads=3.00 of 3\n",
                                        "class=mildly parallel, for ",
                                        "reason=ordered (for ",
                                        "threads steered=3, 3 of them to fast CPUs\n",
                                        "sequential part=about 0 % of its active time",
                                        "thread=x (301)\n",
                                        "given CPU=5\n",
                                        "affinity=4-7\n",
                                        "affinity of its own=0-7\n",
                                        "rule=none\n",
                                        "policy=orders-type\n",
                                        "serial=up to 2 runnable",
                                        "more than 5",
                                        "threads are counted=as the mean over the interval\n",
                                        "fast CPUs=4-7; without a thread: 1 of 4\n"};
    for (size_t i = 0; i < ASYM_LENGTH(lines); i++)
        assert_has(f->text, lines[i]);
}

/* The monitor remembers a program that no snapshot lists as it was before. */
TEST_F(evidence_on_a_program_that_sleeps_has_its_age)
{
    program(f, "x", 300, 1, 5, 1);
    program(f, "y", 400, 1, 6, 1);
    run(f, TICK);
    why(f, 400);
    assert_null(strstr(evidence(f), "age of the figures"));
    engine_fixture_run(&f->w, 3 * ASYM_SEC);
    f->w.snapshot.n_apps = 1;
    record(f);
    assert_string_equal(why(f, 400), "app (400) is idle: it has not needed a CPU for 3 s.\nNo rule matches.");
    assert_has(evidence(f),
               "program=app (400)\nage of the figures=3 s: the program has been idle since\nrunnable threads=1.00 of ");
}

TEST_F(a_thread_that_is_not_known)
{
    const struct asym_explain_context context = {.machine = &f->w.machine, .config = &f->w.config};
    program(f, "x", 300, 1, 5, 1);
    run(f, TICK);
    assert_int_equal(asym_explain(f->m, &context, 299, &f->e), -ESRCH);
    assert_int_equal(asym_explain(f->m, &context, 0, &f->e), -ESRCH);
    assert_int_equal(asym_explain(f->m, &context, -1, &f->e), -ESRCH);
    why(f, 300);
}

/* Once the answer was "is serial: it has 1 runnable thread", "did not need a CPU" and "has not needed a CPU for 3 s". */
TEST_F(a_program_that_sleeps_is_said_to_be_idle_once)
{
    static const char *const says[] = {"app (300) is idle: it has not needed a CPU for 3 s.\nNo rule matches.",
                                       "app (300) is idle: it has not needed a CPU for 6 s.\nNo rule matches."};
    program(f, "x", 300, 2, 5, 2);
    run(f, TICK);
    f->w.threads[0].listed = f->w.threads[1].listed = false;
    for (int i = 0; i < 2; i++) {
        run(f, 3 * ASYM_SEC);
        assert_string_equal(why(f, 300), says[i]);
        assert_int_equal(f->e.standing, ASYM_STANDING_IDLE);
    }
}

TEST_F(a_thread_that_sleeps_in_a_busy_program_is_said_so_once)
{
    program(f, "x", 300, 4, 4, 4);
    run(f, TICK);
    f->w.threads[3].listed = false;
    run(f, 3 * ASYM_SEC);
    assert_string_equal(why(f, 303), "app (300) is mildly parallel: it has 3 runnable threads.\nNo rule matches.\n"
                                     "x (303) has not needed a CPU for 3 s.");
    for (size_t i = 0; i < 3; i++)
        f->w.threads[i].listed = false;
    run(f, 3 * ASYM_SEC);
    assert_string_equal(why(f, 303), "app (300) is idle.\nNo rule matches.\nx (303) has not needed a CPU for 6 s.");
}

/* It needed a CPU in the last interval, for less than half of it. */
TEST_F(a_program_that_hardly_runs_is_said_to_be_idle_once)
{
    program(f, "x", 300, 1, 5, 1);
    f->w.threads[0].task.runnable = f->w.threads[0].task.running = 0.1;
    run(f, TICK);
    assert_string_equal(why(f, 300), "app (300) is idle.\nNo rule matches.");
}

/* Once why said nothing of them: it explains the thread that runs most. */
TEST_F(a_program_names_its_threads_that_are_left_alone)
{
    program(f, "game", 300, 4, 4, 4);
    f->w.threads[0].task.running = 1;
    run(f, TICK);
    assert_null(strstr(why(f, 300), "of this program alone"));
    change_mask(f, 2, "3");
    assert_has(why(f, 300), "\nasymd leaves 1 thread of this program alone: asymctl why 302 says why.\n");
    assert_null(strstr(why(f, 302), "of this program alone"));
    for (size_t i = 0; i < 4; i++)
        f->w.threads[i].mask = engine_fixture_cpus("3");
    for (int i = 0; i < 4; i++)
        run(f, TICK);
    assert_has(why(f, 300), "asymctl adopt 300.\n"
                            "asymd leaves 3 more threads of this program alone, too: asymctl why 301 says why.");
}

/* Its number is the program's: a question about it is one about the thread that runs most. */
TEST_F(a_main_thread_that_is_left_alone_is_explained_with_the_program)
{
    program(f, "game", 300, 4, 4, 4);
    f->w.threads[0].task.running = 0.5;
    run(f, TICK);
    change_mask(f, 0, "3");
    assert_has(why(f, 300),
               "\nasymd leaves the main thread of this program alone (its affinity changed after asymd had "
               "set it). To have that thread steered again: asymctl adopt 300.");
    change_mask(f, 2, "3");
    assert_has(why(f, 300), "\nasymd leaves 2 threads of this program alone: asymctl why 302 says why.\n");
}

TEST_F(a_sleeping_thread_that_is_left_alone_says_so_and_how_to_end_it)
{
    program(f, "game", 300, 1, 5, 1);
    run(f, TICK);
    change_mask(f, 0, "3");
    f->w.threads[0].listed = false;
    run(f, 3 * ASYM_SEC);
    assert_string_equal(why(f, 300),
                        "app (300) is idle: it has not needed a CPU for 3 s.\nNo rule matches.\n"
                        "game (300) is left alone, because its affinity was changed after asymd had set it.\n"
                        "asymd has left the thread alone for 3 s.\n"
                        "The thread itself or another program changed the affinity: asymd cannot know which. "
                        "To have the thread steered again: asymctl adopt 300.");
}

/* Sentences */

TEST(every_exclusion_has_a_sentence_of_its_own)
{
    char sentence[ASYM_N_EXCLUSIONS][512];
    for (int i = ASYM_WHY_NONE + 1; i < ASYM_N_EXCLUSIONS; i++) {
        const struct asym_reason *reason = asym_why((enum asym_exclusion)i);
        assert_non_null(reason->sentence);
        assert_true(why_is_well_formed(reason));
        asym_explain_reason(reason, (const double[2]){1, 2}, "x (1)", sentence[i], sizeof sentence[i]);
        assert_memory_equal(sentence[i], "x (1) ", 6);
        assert_int_equal(sentence[i][strlen(sentence[i]) - 1], '.');
        for (int k = ASYM_WHY_NONE + 1; k < i; k++)
            assert_string_not_equal(sentence[i], sentence[k]);
    }
}

/* A reason is private to its policy, so this test reads the sources. Returns the number of reasons. */
static size_t read_reasons(const char *path, char sentences[][512], size_t n)
{
    char text[65536];
    assert_in_range(file_read(path, text, sizeof text), 1, sizeof text - 2);
    for (const char *p = text; (p = strstr(p, "struct asym_reason ")); p++) {
        const char *begin = strstr(p, "= {"), *end = strstr(p, "};"), *line = strchr(p, '\n');
        if (!begin || begin > line)
            continue;
        const char *sentence = strstr(begin, ".sentence =");
        if (!sentence || sentence > end)
            fail_msg("%s: a reason has no sentence: %.80s", path, p);
        sentence = strchr(sentence, '"') + 1;
        snprintf(sentences[n++], 512, "%.*s", (int)(strchr(sentence, '"') - sentence), sentence);
    }
    return n;
}

TEST(every_reason_of_a_policy_has_a_sentence_of_its_own)
{
    static char sentences[256][512];
    size_t n = 0;
    glob_t found = {0};
    assert_int_equal(glob(ASYM_TEST_SOURCE "/lib/policy/*.c", 0, NULL, &found), 0);
    assert_int_equal(glob(ASYM_TEST_SOURCE "/lib/policy/*/*.c", GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        n = read_reasons(found.gl_pathv[i], sentences, n);
    globfree(&found);
    assert_in_range(n, 45, ASYM_LENGTH(sentences));
    for (size_t i = 0; i < n; i++) {
        assert_true(why_is_well_formed(&(const struct asym_reason){.text = "x", .sentence = sentences[i]}));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(sentences[i], sentences[k]);
    }
}

TEST_MAIN
