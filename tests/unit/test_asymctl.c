/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verbs of asymctl, the columns and check lines they and asymd print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/macro.h"
#include "base/mask.h"
#include "daemon/check.h"
#include "daemon/columns.h"
#include "daemon/json.h"
#include "daemon/policies.h"
#include "support/scene.h"

/* What asymctl with these arguments writes to both streams, and its exit status. */
static int run(const char *arguments, char *ret, size_t size)
{
    char command[512];
    snprintf(command, sizeof command, "'%s/daemon/asymctl' %s 2>&1", ASYM_TEST_BIN, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(ret, 1, size - 1, pipe);
    ret[n] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in:\n%s", part, text);
}

static void assert_fits(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);
        if (asym_columns_of(line) > ASYM_COLUMNS)
            fail_msg("%zu columns: %s", asym_columns_of(line), line);
        free(line);
        text += n + (text[n] == '\n');
    }
}

static void policies_lists_every_policy_of_the_table(void **state)
{
    (void)state;
    char text[16384];
    assert_int_equal(run("policies", text, sizeof text), 0);
    assert_fits(text);
    for (size_t i = 0; asym_policy_at(i); i++)
        assert_has(text, asym_policy_at(i)->name);
    assert_has(text, "Saez 2010, 2.1");
    assert_has(text, "can run here");
}

static void policies_as_json_has_every_policy_with_its_source_and_needs(void **state)
{
    (void)state;
    char text[65536];
    assert_int_equal(run("policies --json", text, sizeof text), 0);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "asymd.policies/1");
    json_t *list = json_object_get(root, "policies");
    size_t n = 0;
    for (; asym_policy_at(n); n++) {
        json_t *p = json_array_get(list, n);
        assert_string_equal(json_string_value(json_object_get(p, "name")), asym_policy_at(n)->name);
        assert_string_equal(json_string_value(json_object_get(p, "summary")), asym_policy_at(n)->summary);
        assert_string_equal(json_string_value(json_object_get(p, "source")), asym_policy_at(n)->source);
        assert_true(json_is_array(json_object_get(p, "needs")));
        assert_true(json_is_boolean(json_object_get(p, "can_run")));
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

static const char *const missing[ASYM_N_SIGNALS] = {
    [ASYM_SIGNAL_IPC] = "this version reads no hardware counters",
    [ASYM_SIGNAL_STALL] = "this version reads no hardware counters",
};

static void a_policy_whose_signals_are_missing_says_which_and_why(void **state)
{
    (void)state;
    const struct asym_policy *policies[] = {&demanding, &modest};
    ASYM_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(asym_policies_text(policies, 2, missing, out), 0);
    fclose(out);
    assert_fits(text);
    assert_has(text, "needs runnable, ipc, stall, smt");
    assert_has(text, "cannot run here: ipc:");
    assert_has(strstr(text, "modest"), "; can run here");
}

static void a_policy_whose_signals_are_missing_cannot_run_in_json_either(void **state)
{
    (void)state;
    const struct asym_policy *policies[] = {&demanding, &modest};
    ASYM_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(asym_policies_json(policies, 2, missing, out), 0);
    fclose(out);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    json_t *list = json_object_get(root, "policies"), *first = json_array_get(list, 0),
           *second = json_array_get(list, 1);
    assert_true(json_is_false(json_object_get(first, "can_run")));
    assert_int_equal(json_array_size(json_object_get(first, "needs")), 3);
    assert_int_equal(json_array_size(json_object_get(first, "missing")), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(first, "missing"), 0), "why")),
                        missing[ASYM_SIGNAL_IPC]);
    assert_true(json_is_true(json_object_get(second, "can_run")));
}

static const struct asym_policy simulated = {
    .name = "simulated",
    .summary = "needs what no machine has",
    .source = "nowhere, 3",
    .needs = 1u << ASYM_SIGNAL_IPC,
    .refuses = "no kernel has it",
};

static void a_policy_that_refuses_every_machine_says_why_and_not_what_is_missing(void **state)
{
    (void)state;
    const struct asym_policy *policies[] = {&simulated, &modest};
    char text[4096], json[4096];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_int_equal(asym_policies_text(policies, 2, missing, out), 0);
    fclose(out);
    assert_fits(text);
    assert_has(text, "cannot run here: no kernel has it");
    out = fmemopen(json, sizeof json, "w");
    assert_int_equal(asym_policies_json(policies, 2, missing, out), 0);
    fclose(out);
    ASYM_AUTO_JSON json_t *root = json_loads(json, 0, NULL);
    json_t *list = json_object_get(root, "policies"), *first = json_array_get(list, 0),
           *second = json_array_get(list, 1);
    assert_true(json_is_false(json_object_get(first, "can_run")));
    assert_string_equal(json_string_value(json_object_get(first, "refuses")), "no kernel has it");
    assert_true(json_is_true(json_object_get(second, "can_run")));
    assert_true(json_is_null(json_object_get(second, "refuses")));
    const char *const nothing[ASYM_N_SIGNALS] = {NULL};
    assert_false(asym_policies_can_run(&simulated, nothing));
    assert_true(asym_policies_can_run(&demanding, nothing));
    assert_false(asym_policies_can_run(&demanding, missing));
}

static void an_unknown_verb_ends_in_2_and_names_the_nearest(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(run("polices", text, sizeof text), 2);
    assert_has(text, "did you mean 'policies'");
    assert_int_equal(run("hepl", text, sizeof text), 2);
    assert_has(text, "did you mean 'help'");
    assert_int_equal(run("\"$(printf '\\033[2J\\377')\"", text, sizeof text), 2);
    assert_null(strchr(text, '\033'));
    assert_has(text, "\\x1b[2J\\xff");
    assert_int_equal(run("help polices", text, sizeof text), 2);
    assert_has(text, "did you mean 'policies'");
}

static void wrong_arguments_end_in_2_and_say_what_is_accepted(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(run("", text, sizeof text), 2);
    assert_has(text, "usage");
    assert_int_equal(run("policies --jsn", text, sizeof text), 2);
    assert_has(text, "asymctl policies [--json]");
    assert_int_equal(run("help policies help", text, sizeof text), 2);
}

static void help_lists_the_verbs_and_explains_each(void **state)
{
    (void)state;
    char all[4096], alias[4096], one[4096];
    assert_int_equal(run("help", all, sizeof all), 0);
    assert_fits(all);
    assert_has(all, "policies");
    assert_int_equal(run("--help", alias, sizeof alias), 0);
    assert_string_equal(all, alias);
    assert_int_equal(run("help policies", one, sizeof one), 0);
    assert_fits(one);
    assert_has(one, "usage: asymctl policies [--json]");
    assert_int_equal(run("--version", one, sizeof one), 0);
    assert_has(one, "asymctl ");
}

static void a_full_disk_ends_in_1(void **state)
{
    (void)state;
    char text[4096];
    static const char *const commands[] = {"policies", "policies --json", "help"};
    for (size_t i = 0; i < ASYM_LENGTH(commands); i++) {
        char command[64];
        snprintf(command, sizeof command, "%s >/dev/full", commands[i]);
        assert_int_equal(run(command, text, sizeof text), 1);
    }
}

static void check_lines_stand_under_each_other_and_wrap(void **state)
{
    (void)state;
    ASYM_CLEANUP(asym_check_done)
    struct asym_check check = {.can_run = true, .verdict = "It is so.", .situation = "alike"};
    char words[190];
    for (size_t i = 0; i < sizeof words - 1; i++)
        words[i] = i % 7 == 6 ? ' ' : 'w';
    words[sizeof words - 1] = '\0';
    assert_int_equal(asym_check_add(&check, "short", ASYM_FACT_GOOD, "", "all is well"), 0);
    assert_int_equal(asym_check_add(&check, "a longer name", ASYM_FACT_LACK, words, "%s", words), 0);
    assert_int_equal(asym_check_add(&check, "x", ASYM_FACT_NOTE, "", "one word %0180d and \033[2J", 7), 0);
    ASYM_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(asym_check_text(&check, out, false), 0);
    fclose(out);
    assert_fits(text);
    assert_null(strchr(text, '\033'));
    assert_int_equal(strncmp(text, "It is so.\n\n", 11), 0); /* the verdict first */
    assert_has(text, "good  short          all is well\n");
    assert_has(text, "lack  a longer name  wwwwww ");
    assert_has(text, "\n                     -> wwwwww ");
    assert_has(text, "The configured policy can run here.");
}

static void check_as_json_has_every_line(void **state)
{
    (void)state;
    ASYM_CLEANUP(asym_check_done)
    struct asym_check check = {.can_run = false, .verdict = "It is \"so\".", .situation = "alike"};
    for (int i = 0; i < 100; i++)
        assert_int_equal(asym_check_add(&check, "bpf", ASYM_FACT_LACK, "do \xff this", "line %d", i), 0);
    ASYM_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(asym_check_json(&check, out), 0);
    fclose(out);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "asymd.check/1");
    assert_true(json_is_false(json_object_get(root, "can_run")));
    assert_string_equal(json_string_value(json_object_get(root, "verdict")), "It is \"so\".");
    assert_string_equal(json_string_value(json_object_get(root, "situation")), "alike");
    json_t *lines = json_object_get(root, "lines"), *last = json_array_get(lines, 99);
    assert_int_equal(json_array_size(lines), 100);
    assert_string_equal(json_string_value(json_object_get(last, "level")), "lack");
    assert_string_equal(json_string_value(json_object_get(last, "name")), "bpf");
    assert_string_equal(json_string_value(json_object_get(last, "text")), "line 99");
    assert_string_equal(json_string_value(json_object_get(last, "remedy")), "do \\xff this");
}

static void check_tells_all_that_the_facts_know(void **state)
{
    (void)state;
    ASYM_CLEANUP(asym_check_done) struct asym_check check = {.can_run = true};
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    struct asym_error err;
    assert_int_equal(asym_root_open(NULL, &root, &err), 0);
    assert_int_equal(asym_check_add_facts(&check, &root), 0);
    assert_true(check.n >= 3);
    bool kernel = false;
    for (size_t i = 0; i < check.n; i++)
        kernel = kernel || strcmp(check.lines[i].name, "kernel") == 0;
    assert_true(kernel);
}

static void columns_are_counted_as_terminals_do(void **state)
{
    (void)state;
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

static void cutting_never_splits_a_character_nor_exceeds_columns_or_bytes(void **state)
{
    (void)state;
    const char *text = "ab\xe6\xbc\xa2\xf0\x9f\x98\x80"
                       "e\xcc\x81z\xe5\xad\x97";
    for (size_t columns = 0; columns < 14; columns++) {
        for (size_t size = 1; size < 32; size++) {
            char buf[32];
            memset(buf, '#', sizeof buf);
            asym_columns_cut(text, columns, buf, size);
            assert_true(strnlen(buf, size) < size);
            assert_true(asym_columns_of(buf) <= columns);
            json_t *valid = json_string(buf); /* refuses what is not UTF-8 */
            assert_non_null(valid);
            json_decref(valid);
        }
    }
    char buf[32];
    assert_string_equal(asym_columns_cut(text, 10, buf, sizeof buf), text);
    assert_string_equal(asym_columns_cut(text, 9, buf, sizeof buf), "ab\xe6\xbc\xa2\xf0\x9f\x98\x80...");
}

static void cpu_lists_that_do_not_fit_end_in_their_count(void **state)
{
    (void)state;
    struct asym_mask odd = {0};
    const struct asym_mask none = {0}, few = scene_cpus("0-3,8");
    char buf[64];
    for (unsigned c = 1; c < ASYM_MAX_CPUS; c += 2)
        asym_mask_set(&odd, c);
    assert_string_equal(asym_columns_cpus(&few, 12, buf, sizeof buf), "0-3,8");
    assert_string_equal(asym_columns_cpus(&none, 12, buf, sizeof buf), "-");
    for (size_t columns = 12; columns < 40; columns++)
        assert_true(strlen(asym_columns_cpus(&odd, columns, buf, sizeof buf)) <= columns);
    assert_string_equal(asym_columns_cpus(&odd, 14, buf, sizeof buf), "1,3,5,...(512)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_lists_every_policy_of_the_table),
        cmocka_unit_test(policies_as_json_has_every_policy_with_its_source_and_needs),
        cmocka_unit_test(a_policy_whose_signals_are_missing_says_which_and_why),
        cmocka_unit_test(a_policy_whose_signals_are_missing_cannot_run_in_json_either),
        cmocka_unit_test(a_policy_that_refuses_every_machine_says_why_and_not_what_is_missing),
        cmocka_unit_test(an_unknown_verb_ends_in_2_and_names_the_nearest),
        cmocka_unit_test(wrong_arguments_end_in_2_and_say_what_is_accepted),
        cmocka_unit_test(help_lists_the_verbs_and_explains_each),
        cmocka_unit_test(a_full_disk_ends_in_1),
        cmocka_unit_test(check_lines_stand_under_each_other_and_wrap),
        cmocka_unit_test(check_as_json_has_every_line),
        cmocka_unit_test(check_tells_all_that_the_facts_know),
        cmocka_unit_test(columns_are_counted_as_terminals_do),
        cmocka_unit_test(cutting_never_splits_a_character_nor_exceeds_columns_or_bytes),
        cmocka_unit_test(cpu_lists_that_do_not_fit_end_in_their_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
