/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verbs of asymctl, and the columns and check lines that asymctl and asymd print. */
#include <ctype.h>
#include <sys/stat.h>

#include <jansson.h>

#include "app/command-line.h"
#include "base/mask.h"
#include "core/machine-situation.h"
#include "daemon/asymctl/verb.h"
#include "report/check.h"
#include "report/columns.h"
#include "report/json.h"
#include "report/report.h"
#include "support/json.h"
#include "support/report-fixture.h"
#include "support/tree.h"
#include "support/shell.h"
#include "support/test.h"

/* Both output streams of the last asymctl. */
static char output[65536];

/* Returns the exit status of asymctl with these arguments. */
static int run(const char *arguments)
{
    return shell_run(output, sizeof output, "'%s/daemon/asymctl' %s 2>&1", ASYM_TEST_BIN, arguments);
}

/* Returns the text with one space in place of each run of white space; to be freed. */
static char *squeezed(const char *text)
{
    char *out = calloc(1, strlen(text) + 1), *at = out;
    assert_non_null(out);
    for (; *text; text++)
        if (!isspace((unsigned char)*text))
            *at++ = *text;
        else if (at > out && at[-1] != ' ')
            *at++ = ' ';
    return out;
}

/* The text has these words, however it breaks its lines. */
static void assert_has_words(const char *text, const char *words)
{
    ASYM_AUTO_FREE char *all = squeezed(text), *part = squeezed(words);
    assert_has(all, part);
}

TEST(policies_lists_every_policy_of_the_table)
{
    assert_int_equal(run("policies"), 0);
    assert_fits_in(output, ASYM_COLUMNS_DEFAULT);
    for (size_t i = 0; asym_policy_at(i); i++)
        assert_has(output, asym_policy_at(i)->name);
    assert_has(output, "Saez 2010, 2.1");
    assert_has(output, "can run here");
}

TEST(policies_as_json_has_every_policy_with_its_source_and_needs)
{
    assert_int_equal(run("policies --json"), 0);
    ASYM_AUTO_JSON json_t *root = json_of(output);
    assert_json(root, "{'schema': 'asymd.policies/1'}");
    json_t *list = json_at(root, "policies");
    const struct asym_policy *p;
    size_t n = 0;
    for (; (p = asym_policy_at(n)); n++) {
        json_t *said = json_array_get(list, n);
        assert_json(said, "{'name': '%s', 'summary': '%s', 'source': '%s'}", p->name, p->summary, p->source);
        assert_true(json_is_array(json_at(said, "needs")) && json_is_boolean(json_at(said, "can_run")));
    }
    assert_int_equal(json_array_size(list), n);
}

static const struct asym_policy demanding = {
    .name = "demanding",
    .summary = "needs more than any machine gives",
    .source = "nowhere, 1",
    .needs = 1u << ASYM_SIGNAL_IPC | 1u << ASYM_SIGNAL_SMT | 1u << ASYM_SIGNAL_STALL,
    .pin = ASYM_PIN_CPU,
};

static const struct asym_policy modest = {
    .name = "modest", .summary = "needs siblings", .source = "nowhere, 2", .needs = 1u << ASYM_SIGNAL_SMT};

static const struct asym_policy simulated = {
    .name = "simulated",
    .summary = "needs what no machine has",
    .source = "nowhere, 3",
    .needs = 1u << ASYM_SIGNAL_IPC,
    .refuses = "no kernel has it",
};

static const char *const missing[ASYM_N_SIGNALS] = {
    [ASYM_SIGNAL_IPC] = "this version reads no hardware counters",
    [ASYM_SIGNAL_STALL] = "this version reads no hardware counters",
};

/* It has all three: one that lacks signals, one that can run, and one that refuses every machine. */
TEST(a_policy_that_cannot_run_says_why)
{
    const struct asym_policy *policies[] = {&demanding, &modest, &simulated};
    char text[4096], json[4096];
    FILE *out = fmemopen(text, sizeof text, "w");
    const struct asym_terminal terminal = {.out = out, .columns = ASYM_COLUMNS_DEFAULT};
    assert_int_equal(asym_policies_text(policies, 3, missing, &terminal), 0);
    fclose(out);
    assert_fits_in(text, ASYM_COLUMNS_DEFAULT);
    assert_has(text, "needs runnable, ipc, stall, smt");
    assert_has_words(text, "cannot run here: ipc:");
    assert_has(strstr(text, "modest"), "; can run here");
    assert_has_words(text, "cannot run here: no kernel has it");
    out = fmemopen(json, sizeof json, "w");
    assert_int_equal(asym_policies_json(policies, 3, missing, out), 0);
    fclose(out);
    ASYM_AUTO_JSON json_t *root = json_of(json);
    assert_json(json_at(root, "policies"),
                "[{'can_run': false, 'needs': [{}, {}, {}], 'missing': [{'why': '%s'}, {}]},"
                " {'can_run': true, 'refuses': null}, {'can_run': false, 'refuses': 'no kernel has it'}]",
                missing[ASYM_SIGNAL_IPC]);
    const char *const nothing[ASYM_N_SIGNALS] = {NULL};
    assert_false(asym_policy_can_run(&simulated, nothing));
    assert_true(asym_policy_can_run(&demanding, nothing));
    assert_false(asym_policy_can_run(&demanding, missing));
}

/* Each help has two spellings. */
TEST(help_lists_the_verbs_and_explains_each)
{
    static const struct {
        const char *arguments, *alias, *has;
    } rows[] = {{"help", "--help", "policies"},
                {"help policies", "policies --help", "usage: asymctl policies [--json]"}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        assert_int_equal(run(rows[i].arguments), 0);
        assert_fits_in(output, ASYM_COLUMNS_DEFAULT);
        assert_has(output, rows[i].has);
        ASYM_AUTO_FREE char *first = strdup(output);
        assert_int_equal(run(rows[i].alias), 0);
        assert_string_equal(first, output);
    }
    assert_int_equal(run(""), 2);
    assert_has(output, "usage");
    assert_int_equal(run("--version"), 0);
    assert_has(output, "asymctl ");
}

TEST(each_verb_explains_its_options_and_refuses_others)
{
    const struct asym_verb *v;
    for (size_t i = 0; (v = asym_verb_at(i)); i++) {
        char command[128], name[64];
        snprintf(command, sizeof command, "help %s", v->name);
        assert_int_equal(run(command), 0);
        assert_fits_in(output, ASYM_COLUMNS_DEFAULT);
        assert_has(output, v->usage ? v->usage : "");
        assert_has_words(output, v->help);
        for (const struct asym_arg *row = v->args; row && row->option.key; row++) {
            assert_true(row->option.help && *row->option.help);
            assert_has(output, asym_args_name(row, name, sizeof name));
        }
        snprintf(command, sizeof command, "%s --no-such-option", v->name);
        assert_int_equal(run(command), 2);
        assert_has(output, "unknown option --no-such-option");
        snprintf(command, sizeof command, "usage: asymctl %s", v->name);
        assert_has(output, command);
    }
}

TEST(the_defaults_of_verbs_are_accepted)
{
    const struct asym_verb *v;
    for (size_t i = 0; (v = asym_verb_at(i)); i++) {
        if (!v->args)
            continue;
        ASYM_AUTO_FREE void *args = calloc(1, ASYM_ARGS_MAX);
        assert_int_equal(asym_args_default(v->args, args), 0);
    }
}

TEST(check_lines_stand_under_each_other_and_wrap)
{
    ASYM_CLEANUP(asym_check_done)
    struct asym_check check = {.can_run = true, .verdict = "It is so.", .situation = "alike"};
    char words[190];
    for (size_t i = 0; i < sizeof words - 1; i++)
        words[i] = i % 7 == 6 ? ' ' : 'w';
    words[sizeof words - 1] = '\0';
    asym_check_add(&check, "short", ASYM_FACT_GOOD, "", "all is well");
    asym_check_add(&check, "a longer name", ASYM_FACT_LACK, words, "%s", words);
    asym_check_add(&check, "x", ASYM_FACT_NOTE, "", "one word %0180d and \033[2J", 7);
    ASYM_AUTO_FREE char *text = PRINTED(
        asym_check_text(&check, &(struct asym_terminal){.out = out, .columns = ASYM_COLUMNS_DEFAULT}));
    assert_fits_in(text, ASYM_COLUMNS_DEFAULT);
    assert_null(strchr(text, '\033'));
    assert_int_equal(strncmp(text, "It is so.\n\n", 11), 0); /* the verdict comes first */
    assert_has(text, "good  short          all is well\n");
    assert_has(text, "lack  a longer name  wwwwww ");
    assert_has(text, "\n                     -> wwwwww ");
}

TEST(check_as_json_has_every_line)
{
    ASYM_CLEANUP(asym_check_done)
    struct asym_check check = {.can_run = false, .verdict = "It is \"so\".", .situation = "alike"};
    for (int i = 0; i < 100; i++)
        asym_check_add(&check, "bpf", ASYM_FACT_LACK, "do \xff this", "line %d", i);
    ASYM_AUTO_FREE char *text = PRINTED(asym_check_json(&check, out));
    ASYM_AUTO_JSON json_t *root = json_of(text);
    assert_json(root, "{'schema': 'asymd.check/1', 'can_run': false, 'situation': 'alike'}");
    assert_string_equal(json_string_value(json_at(root, "verdict")), "It is \"so\".");
    assert_int_equal(json_array_size(json_at(root, "lines")), 100);
    assert_json(json_at(root, "lines.99"),
                "{'level': 'lack', 'name': 'bpf', 'text': 'line 99', 'remedy': 'do \\\\xff this'}");
}

TEST(check_prints_every_fact)
{
    ASYM_CLEANUP(asym_check_done) struct asym_check check = {.can_run = true};
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    assert_int_equal(asym_facts_each(&root, asym_check_add_fact, &check), 0);
    assert_true(check.n >= 3);
    bool kernel = false;
    for (size_t i = 0; i < check.n; i++)
        kernel = kernel || strcmp(check.lines[i].name, "kernel") == 0;
    assert_true(kernel);
}

TEST(columns_are_counted_as_terminals_do)
{
    assert_int_equal(asym_columns_of(""), 0);
    assert_int_equal(asym_columns_of("abc"), 3);
    assert_int_equal(asym_columns_of("\xc3\xa9"), 1);                 /* e acute */
    assert_int_equal(asym_columns_of("e\xcc\x81"), 1);                /* e and a combining acute */
    assert_int_equal(asym_columns_of("\xe6\xbc\xa2"), 2);             /* a Chinese character */
    assert_int_equal(asym_columns_of("\xf0\x9f\x98\x80"), 2);         /* an emoji */
    assert_int_equal(asym_columns_of("\xef\xbc\xa1\xea\xb0\x80"), 4); /* full width A, a Hangul syllable */
    assert_int_equal(asym_columns_of("a\xe2\x80\x8b"
                                     "b"),
                     2); /* zero width space */
}

TEST(cutting_never_splits_a_character_nor_exceeds_columns_or_bytes)
{
    const char *text = "ab\xe6\xbc\xa2\xf0\x9f\x98\x80"
                       "e\xcc\x81z\xe5\xad\x97";
    for (size_t columns = 0; columns < 14; columns++) {
        for (size_t size = 1; size < 32; size++) {
            char buf[32];
            memset(buf, '#', sizeof buf);
            asym_columns_cut(text, columns, buf, size);
            assert_true(strnlen(buf, size) < size);
            assert_true(asym_columns_of(buf) <= columns);
            json_auto_t *valid = json_string(buf); /* refuses what is not UTF-8 */
            assert_non_null(valid);
        }
    }
    char buf[32];
    assert_string_equal(asym_columns_cut(text, 10, buf, sizeof buf), text);
    assert_string_equal(asym_columns_cut(text, 9, buf, sizeof buf), "ab\xe6\xbc\xa2\xf0\x9f\x98\x80...");
}

TEST(cpu_lists_that_do_not_fit_end_in_their_count)
{
    struct asym_mask odd = {0};
    const struct asym_mask none = {0}, few = report_fixture_cpus("0-3,8");
    char buf[64];
    for (unsigned c = 1; c < ASYM_MAX_CPUS; c += 2)
        asym_mask_set(&odd, c);
    assert_string_equal(asym_columns_cpus(&few, 12, buf, sizeof buf), "0-3,8");
    assert_string_equal(asym_columns_cpus(&none, 12, buf, sizeof buf), "-");
    for (size_t columns = 12; columns < 40; columns++)
        assert_true(strlen(asym_columns_cpus(&odd, columns, buf, sizeof buf)) <= columns);
    assert_string_equal(asym_columns_cpus(&odd, 14, buf, sizeof buf), "1,3,5,...(512)");
}

TEST(texts_wrap_by_paragraph_and_keep_their_tables)
{
    static const char text[] =
        "One two three four five six seven eight nine ten\neleven, twelve, thirteen.\n\nOther\n"
        "  key   its value stays where it is, however long its line is, which is too long\nend\n";
    ASYM_AUTO_FREE char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);
    const struct asym_terminal terminal = {.out = out, .columns = ASYM_COLUMNS_LEAST};
    asym_columns_text(&terminal, text);
    fclose(out);
    assert_string_equal(printed,
                        "One two three four five six seven eight nine ten eleven, twelve,\nthirteen.\n\nOther\n"
                        "  key   its value stays where it is, however long its line is, which is too long\n"
                        "end\n");
}

TEST(the_width_is_that_of_the_user_then_of_the_terminal_then_80)
{
    assert_int_equal(asym_terminal_columns(NULL, 0), 80);
    assert_int_equal(asym_terminal_columns(NULL, 132), 132);
    assert_int_equal(asym_terminal_columns("120", 132), 120);
    assert_int_equal(asym_terminal_columns("120", 0), 120);
    static const char *const wrong[] = {"", "0", "-3", "wide", "99999999999999999999"};
    for (size_t i = 0; i < ASYM_LENGTH(wrong); i++) {
        assert_int_equal(asym_terminal_columns(wrong[i], 132), 132);
        assert_int_equal(asym_terminal_columns(wrong[i], 0), 80);
    }
    assert_int_equal(asym_terminal_columns(NULL, 7), ASYM_COLUMNS_LEAST);
    assert_int_equal(asym_terminal_columns("1000000", 0), 1000);
}

TEST(what_is_no_terminal_has_80_columns_and_no_colour)
{
    ASYM_AUTO_FCLOSE FILE *out = tmpfile();
    assert_non_null(out);
    unsetenv("COLUMNS");
    const struct asym_terminal terminal = asym_terminal_of(out);
    assert_ptr_equal(terminal.out, out);
    assert_int_equal(terminal.columns, 80);
    assert_false(terminal.colour);
}

/* Wrong arguments; the first line that asymctl prints, after its name; and what to type, there or in the next line. */
static const struct {
    const char *arguments;
    int status;
    const char *first, *next;
} wrong[] = {
    {"hepl", 2, "unknown verb 'hepl' (did you mean 'help'?)", ""},
    {"nope", 2, "unknown verb 'nope'; accepted are ", ""},
    {"\"$(printf '\\033[2J\\377')\"", 2, "unknown verb '\\x1b[2J\\xff'", ""},
    {"help policies help", 2, "", ""},
    {"policies --jsn", 2, "policies: unknown option --jsn (did you mean '--json'?)", "asymctl policies [--json]"},
    {"policies json", 2, "policies: stray argument 'json'", ""},
    {"status x", 2, "status: stray argument 'x'", "usage: asymctl status [--json]"},
    {"top --interval=abc", 2, "top: --interval: 'abc' is not accepted; accepted is a time with unit", "usage: "},
    {"why", 2, "why: needs a PID or the name of a program", "usage: asymctl why PID|NAME"},
    {"why ''", 2, "why: needs a PID or the name of a program", "usage: asymctl why PID|NAME"},
    {"policy a b", 2, "policy: stray argument 'b'", "usage: asymctl policy [NAME]"},
    {"pause 5", 2, "pause: '5' has no unit; accepted are times such as 90s, 1h30min or 2days", ""},
    {"pause soon", 2, "pause: 'soon' cannot be read as a time; accepted are times such as 90s, 1h30min or 2days", ""},
    {"pause 0s", 2, "pause: '0s' cannot be read as a time", ""},
    {"pause -1s", 2, "pause: unknown option -1s", ""},
    {"adopt 99999999999", 2, "adopt: 99999999999 is no PID", ""},
    {"watch 0", 2, "watch: 0 is no PID", ""},
    {"why 0", 2, "why: 0 is no PID", ""},
    {"release", 2, "release: needs a PID or the name of a program", "usage: asymctl release PID|NAME"},
    {"release 0", 2, "release: 0 is no PID; asymctl top shows the programs with their PIDs", ""},
    {"set 5 quick", 2, "set: 'quick' is no action; accepted are fast, slow, ignore, steer, auto", ""},
    {"set 5", 2, "set: needs a PID or the name of a program, and an action", ""},
    {"set 5 fast slow", 2, "set: stray argument 'slow'", ""},
    {"set '' fast", 2, "set: needs a PID or the name of a program, and an action",
     "usage: asymctl set PID|NAME fast|slow|ignore|steer"},
    {"metrics --text", 2, "metrics: unknown option --text", "usage: asymctl metrics [--table | --json]"},
    {"check --config", 2, "check: --config needs an argument; accepted is --config=FILE", "usage: "},
    {"sim", 2, "sim: needs a scenario or a record: asymctl sim SCENARIO.ini, or asymctl sim --from=RECORD",
     "\nusage: asymctl sim "},
    {"sim a.ini --from=b", 2, "sim: SCENARIO.ini and --from are given; asymctl accepts one of them", ""},
    {"sim a.ini --machine=b", 2, "sim: --machine goes with --from; a scenario names its own machine", ""},
    {"sim /nonexistent.ini", 2, "/nonexistent.ini: No such file", ""},
    {"sim a.ini b.ini", 2, "sim: stray argument 'b.ini'", ""},
    {"sim a.ini --repeat=0", 2, "sim: --repeat: ", "from 1 to 1000"},
    {"sim a.ini --polcy=pa", 2, "sim: unknown option --polcy (did you mean '--policy'?)", ""},
    {"sim a.ini --trace=", 2, "sim: --trace needs an argument; accepted is --trace=FILE", ""},
    {"sim a.ini --seed=18446744073709551615", 2, "sim: --seed: '18446744073709551615' is not accepted", ""},
    {"sim a.ini --json=yes", 2, "sim: --json takes no argument", ""},
    {"sim " ASYM_TEST_SOURCE "/scenarios/memory.ini --policy=paa", 2, "", "did you mean 'pa'?"},
    {"record", 2, "record: needs a file to write", "usage: asymctl record FILE"},
    {"record /nonexistent/r --config=/dev/null", 1, "cannot create /nonexistent/r.part: No such file", ""},
    {"record --json /nonexistent/r --config=/dev/null", 1, "cannot create /nonexistent/r.part: No such file", ""},
    {"record /tmp/r --pid=gzip", 2, "--pid=gzip: accepted are process ids, separated by commas", ""},
    {"replay", 2, "replay: needs a record", "usage: asymctl replay FILE"},
    {"replay /dev/null", 2, "/dev/null: byte 0: this is not a record of asymctl record", ""},
    {"replay /tmp", 2, "/tmp: cannot be read: Is a directory", ""},
    {"record --trace /tmp --config=/dev/null", 2, "/tmp: exists, and is not a regular file", ""},
    {"record --json /tmp --config=/dev/null", 2, "/tmp: exists, and is not a regular file", ""},
    {"profile true", 2, "profile: stray argument 'true'; the command stands after --", "usage: "},
    {"profile", 2, "profile: needs a program", ""},
    {"profile --", 2, "profile: needs a program", ""},
    {"profile --time=5 -- true", 2, "profile: --time: ", "accepted is a time with unit"},
    {"profile --time=0s -- true", 2, "profile: --time: ", "accepted is a time with unit"},
    {"profile --time -- true", 2, "profile: --time needs an argument; accepted is --time=TIME", ""},
    {"profile --config=/nonexistent -- true", 2, "/nonexistent", ""},
    {"run", 2, "run: needs a program", "usage: asymctl run "},
    {"rules test", 2, "rules: accepted are nothing, the NAME of a rule", "usage: asymctl rules"},
    {"stats", 2, "unknown verb 'stats' (did you mean 'status'?); accepted are status, top, ", ""},
    {"help nosuch", 2, "unknown verb 'nosuch'; accepted are status, top, ", ""},
};

TEST(wrong_arguments_are_named_in_the_first_line_and_reach_no_service)
{
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    for (size_t i = 0; i < ASYM_LENGTH(wrong); i++) {
        char first[512];
        snprintf(first, sizeof first, "asymctl: %s", wrong[i].first);
        const int status = run(wrong[i].arguments);
        if (status != wrong[i].status || strncmp(output, first, strlen(first)) != 0 || !strstr(output, wrong[i].next))
            fail_msg("asymctl %s ended in %d and said: %s", wrong[i].arguments, status, output);
    }
    unsetenv("ASYMD_BUS");
}

TEST(a_configuration_that_cannot_be_read_ends_each_verb_in_2)
{
    static const char *const verbs[] = {"check", "check --json", "rules", "record /nonexistent/r",
                                        "record --trace /nonexistent/t"};
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "%s --config=/nonexistent/asymd.conf", verbs[i]);
        const int status = run(arguments);
        if (status != 2 || !strstr(output, "/nonexistent/asymd.conf: No such file"))
            fail_msg("asymctl %s ended in %d and said: %s", arguments, status, output);
    }
}

static const char *text_of(const json_t *root, const char *key)
{
    return json_string_value(json_at(root, key));
}

/* Writes a configuration with that policy. Returns the lines of asymctl check --json. */
static json_t *check_lines(const char *path, const char *policy)
{
    char arguments[128];
    tree_write(&the_tree, "asymd.conf", "[asymd]\npolicy = %s\n", policy);
    snprintf(arguments, sizeof arguments, "check --json --config=%s", path);
    assert_int_equal(run(arguments), 0);
    ASYM_AUTO_JSON json_t *root = json_loads(output, 0, NULL);
    assert_non_null(root);
    return json_incref(json_object_get(root, "lines"));
}

/* Returns the line of that name; NULL: there is none. */
static const json_t *find_line(const json_t *lines, const char *name)
{
    const json_t *line;
    size_t i;
    json_array_foreach(lines, i, line) if (strcmp(text_of(line, "name"), name) == 0) return line;
    return NULL;
}

/* The policy depends on this machine: the test takes its name from the line that recommends it. */
TEST_WITH(check_recommends_what_auto_would_choose_instead, the_tree_make, the_tree_remove)
{
    char path[sizeof the_tree.path + 16], best[32], part[256];
    snprintf(path, sizeof path, "%s/asymd.conf", the_tree.path);
    ASYM_AUTO_JSON json_t *of_auto = check_lines(path, "auto"), *of_rr = check_lines(path, "rr");
    assert_null(find_line(of_auto, "recommended"));
    const json_t *line = find_line(of_rr, "recommended");
    assert_non_null(line);
    assert_int_equal(sscanf(text_of(line, "text"), "%31[a-z-], which auto chooses here: ", best), 1);
    snprintf(part, sizeof part, "sudo asymctl policy %s --permanent, if asymd runs; else policy = %s below [asymd]",
             best, best);
    assert_string_equal(text_of(line, "remedy"), part);
    snprintf(part, sizeof part, "%s: this machine gives every signal that it needs; chosen by auto: ", best);
    assert_int_equal(strncmp(text_of(find_line(of_auto, "policy"), "text"), part, strlen(part)), 0);
    ASYM_AUTO_JSON json_t *of_best = check_lines(path, best);
    assert_null(find_line(of_best, "recommended"));
}

/* A record of one process is smaller than a megabyte, which once was "0.00 MB". */
TEST_WITH(record_gives_a_size_that_is_not_0, the_tree_make, the_tree_remove)
{
    char arguments[256];
    snprintf(arguments, sizeof arguments, "record %s/r.rec --time=300ms --config=/dev/null --pid=%d", the_tree.path,
             (int)getpid());
    assert_int_equal(run(arguments), 0);
    double size = 0;
    char unit[8] = "";
    assert_has(output, " threads, ");
    assert_int_equal(sscanf(strstr(output, " threads, "), " threads, %lf %7s in ", &size, unit), 2);
    assert_true(size > 0);
    if (strcmp(unit, "B") != 0 && strcmp(unit, "KiB") != 0)
        fail_msg("%f %s", size, unit);
}

/* Records this process, without a service. */
static void observe(const char *file, const char *options)
{
    char arguments[384];
    snprintf(arguments, sizeof arguments, "record '%s' --time=300ms --pid=%d %s", file, (int)getpid(), options);
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    assert_int_equal(run(arguments), 0);
    unsetenv("ASYMD_BUS");
}

static json_t *observe_as_json(const char *file, const char *options)
{
    char all[256];
    snprintf(all, sizeof all, "--json %s", options);
    observe(file, all);
    json_t *root = json_of(output);
    assert_string_equal(text_of(root, "file"), file);
    assert_true(json_integer_value(json_object_get(root, "duration_us")) >= 300000);
    return root;
}

/* The name of the file is as the user wrote it: a script opens it. */
TEST_WITH(record_as_json_has_its_members, the_tree_make, the_tree_remove)
{
    char file[sizeof the_tree.path + 16], old[sizeof file + 8];
    struct stat st;
    snprintf(file, sizeof file, "%s/j\\n.rec", the_tree.path);
    snprintf(old, sizeof old, "%s.old", file);
    ASYM_AUTO_JSON json_t *first = observe_as_json(file, "--config=/dev/null");
    ASYM_AUTO_JSON json_t *second = observe_as_json(file, "--config=/dev/null");
    assert_int_equal(stat(file, &st), 0);
    assert_json(first, "{'earlier_file': null}");
    assert_json(second, "{'schema': 'asymctl.record/1', 'size_bytes': %d, 'notes': []}", (int)st.st_size);
    assert_string_equal(text_of(second, "earlier_file"), old);
    assert_in_range(json_integer_value(json_at(second, "snapshots")), 1, 4);
    assert_int_equal(json_object_size(second), 8);
}

/* Two records of the same processes. A CPU that only counts as slow is a note. */
TEST_WITH(record_as_json_has_what_the_text_says, the_tree_make, the_tree_remove)
{
    char file[sizeof the_tree.path + 16], conf[sizeof the_tree.path + 16], option[sizeof conf + 16];
    unsigned long long snapshots;
    size_t threads;
    double seconds;
    snprintf(file, sizeof file, "%s/j.rec", the_tree.path);
    snprintf(conf, sizeof conf, "%s/asymd.conf", the_tree.path);
    snprintf(option, sizeof option, "--config=%s", conf);
    tree_write(&the_tree, "asymd.conf", "[asymmetry]\nslow = 1\n");
    observe(file, option);
    ASYM_AUTO_FREE char *text = strdup(output);
    ASYM_AUTO_JSON json_t *root = observe_as_json(file, option);
    json_t *notes = json_object_get(root, "notes");
    assert_int_equal(
        sscanf(text, "recorded %lf s: %llu snapshots of up to %zu threads", &seconds, &snapshots, &threads), 3);
    assert_true(seconds >= 0.3);
    assert_in_range(snapshots, 1, 4);
    assert_in_range(json_integer_value(json_object_get(root, "snapshots")), 1, 4);
    assert_true(threads > 0);
    /* Another record: a load of the machine can give it another thread. */
    assert_true(json_integer_value(json_object_get(root, "most_threads")) > 0);
    assert_int_equal(json_array_size(notes), 1);
    assert_has(text, json_string_value(json_array_get(notes, 0)));
    assert_has(text, "asymmetry.slow");
}

/* Returns how many events of the trace have that phase: "X", a slice, or "i", a decision. */
static size_t count_events(const json_t *trace, const char *phase)
{
    const json_t *event;
    size_t i, n = 0;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) n += strcmp(text_of(event, "ph"), phase) == 0;
    return n;
}

TEST_WITH(trace_as_json_counts_what_the_file_has, the_tree_make, the_tree_remove)
{
    char file[sizeof the_tree.path + 16];
    snprintf(file, sizeof file, "%s/j.json", the_tree.path);
    ASYM_AUTO_JSON json_t *root = observe_as_json(file, "--trace --config=/dev/null");
    ASYM_AUTO_JSON json_t *trace = json_load_file(file, 0, NULL);
    assert_json(
        root, "{'schema': 'asymctl.trace/1', 'slices': %zu, 'decisions': %zu, 'decisions_of': 'asymctl', 'notes': []}",
        count_events(trace, "X"), count_events(trace, "i"));
    assert_int_equal(json_object_size(root), 8);
}

TEST(each_verb_has_json_but_for_three)
{
    /* top --once prints a screen, and status --json has its values; run prints what the program prints. */
    static const char *const without[] = {"top", "run", "help"};
    const struct asym_verb *v;
    for (size_t i = 0; (v = asym_verb_at(i)); i++) {
        bool has = false, exempt = false;
        for (const struct asym_arg *row = v->args; row && row->option.key; row++)
            has |= strcmp(row->option.key, "--json") == 0;
        for (size_t k = 0; k < ASYM_LENGTH(without); k++)
            exempt |= strcmp(v->name, without[k]) == 0;
        if (has == exempt)
            fail_msg("%s", v->name);
    }
}

TEST_MAIN
