/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl rules: the list, and which rule matches a process or a program that does not run. */
#include <sys/prctl.h>

#include <jansson.h>

#include "support/tree.h"
#include "support/json.h"
#include "support/shell.h"
#include "support/test.h"

struct fixture {
    struct tree tree;
    char said[16384];
};

static void setup(struct fixture *f)
{
    tree_make(&f->tree);
    tree_write(&f->tree, "asymd.conf",
               "[asymd]\ninclude = builds\n"
               "[rule \"backup\"]\nmatch_exe = /usr/bin/borg /usr/bin/restic\nmatch_uid = 0\naction = slow\n"
               "[rule \"mine\"]\nmatch_comm = unit-rules*\ncpus = 0-3\nnice = 5\npolicy_class = parallel\n"
               "[rule \"all\"]\nmatch_comm = *\naction = fast\n");
}

static void teardown(struct fixture *f)
{
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, setup, teardown)

/* A captured machine with CPUs 0-3, and a configuration of its own. */
TEST_F(settings_that_have_no_effect_here_are_noted)
{
    char want[1024];
    ASYM_CLEANUP(tree_remove) struct tree machine;
    tree_make(&machine);
    tree_plain(&machine, 4);
    tree_write(&f->tree, "asymd.conf",
               "[rule \"all\"]\nmatch_comm = a\ncpus = 1-3\n[rule \"some\"]\nmatch_comm = b\ncpus = 2-5\n"
               "[rule \"none\"]\nmatch_comm = c\ncpus = 8-9\n[machine]\nspeeds = 0-6:2\n"
               "[asymmetry]\nslow_speed = 50%%\n");
    shell_run(f->said, sizeof f->said, "'%s/daemon/asymd' --check --root=%s --config=%s/asymd.conf 2>&1 >/dev/null",
              ASYM_TEST_BIN, machine.path, f->tree.path);
    snprintf(
        want, sizeof want,
        "asymd: %s/asymd.conf:4: the rule \"some\" names CPUs 2-5, and asymd can use CPUs 0-3 only: it leaves the "
        "others out\n"
        "asymd: %s/asymd.conf:7: the rule \"none\" names CPUs 8-9, and asymd can use CPUs 0-3 only: it ignores the "
        "cpus of this rule\n"
        "asymd: %s/asymd.conf:11: machine.speeds names CPUs 4-6, which this machine does not have\n"
        "asymd: %s/asymd.conf:13: asymmetry.slow_speed has no effect: asymmetry.slow names no CPU\n",
        f->tree.path, f->tree.path, f->tree.path, f->tree.path);
    assert_string_equal(f->said, want);
}

/*
 * Returns the exit status of asymctl rules with these arguments and the configuration above. environment: arguments of env(1).
 */
static int run_in(struct fixture *f, const char *environment, const char *arguments)
{
    return shell_run(f->said, sizeof f->said, "env %s '%s/daemon/asymctl' rules %s --config=%s/asymd.conf 2>&1",
                     environment, ASYM_TEST_BIN, arguments, f->tree.path);
}

/* In lines so wide that none is broken. */
static int run(struct fixture *f, const char *arguments)
{
    return run_in(f, "COLUMNS=500", arguments);
}

TEST_F(the_list_has_each_rule_with_its_place)
{
    char line[256];
    assert_int_equal(run(f, ""), 0);
    assert_has(f->said, "backup                      slow\n    match_exe = /usr/bin/borg /usr/bin/restic\n"
                        "    match_uid = 0\n");
    assert_has(f->said, "mine                        steer, on CPUs 0-3, nice 5, counts as parallel\n");
    snprintf(line, sizeof line, "    %s/asymd.conf:7\n", f->tree.path);
    assert_has(f->said, line);
    assert_has(f->said, "builds: linkers             steer, counts as serial\n");
    assert_has(f->said, "/conf/library/builds.conf:");
    assert_has(f->said, "(library)\n");
    assert_has(f->said, "asymd uses the first that matches a program, and steers a program that none matches.\n");
    assert_true(strstr(f->said, "mine") < strstr(f->said, "builds: linkers"));
}

TEST_F(a_process_is_tested_as_it_runs)
{
    char arguments[64];
    for (int i = 0; i < 2; i++) {
        snprintf(arguments, sizeof arguments, i == 0 ? "test %d" : "%d", (int)getpid());
        assert_int_equal(run(f, arguments), 0);
        assert_has(f->said, "name           unit-rules-verb\n");
        assert_has(f->said, "/unit-rules-verb\n");
        assert_has(f->said, "no    backup                      match_exe: \"");
        assert_has(f->said, "is none of /usr/bin/borg /usr/bin/restic\n");
        assert_has(f->said, "yes   mine                        steer, on CPUs 0-3, nice 5, counts as parallel\n");
        assert_has(f->said, "later all                         matches, but \"mine\" comes first\n");
        assert_has(f->said, "\nRule \"mine\" applies: steer, on CPUs 0-3, nice 5, counts as parallel; ");
    }
}

TEST_F(a_process_is_tested_by_its_name_as_it_runs)
{
    char name[16], before[16], arguments[64];
    snprintf(name, sizeof name, "rules-%d", (int)getpid());
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    assert_int_equal(prctl(PR_SET_NAME, name), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(arguments, sizeof arguments, i == 0 ? "test %s" : "%s", name);
        assert_int_equal(run(f, arguments), 0);
        assert_has(f->said, "/unit-rules-verb\n");
        assert_has(f->said, name);
    }
    assert_int_equal(prctl(PR_SET_NAME, before), 0);
    assert_int_equal(run(f, "test no-such-program-at-all"), 2);
    assert_int_equal(run(f, "test no-such-prog"), 0);
    assert_has(f->said, "executable     not known\n");
}

TEST_F(a_program_that_does_not_run_is_tested_by_its_name)
{
    assert_int_equal(run(f, "test ld.mold"), 0);
    assert_has(f->said, "executable     not known\n");
    assert_has(
        f->said,
        "no    backup                      match_exe: not known (it does not run, or this user may not read it)\n");
    assert_has(f->said, "Rule \"all\" applies: fast; ");
    assert_has(f->said, "later builds: linkers             matches, but \"all\" comes first\n");
    /* A key that matches is no reason: the user is not known. */
    tree_write(&f->tree, "asymd.conf", "[rule \"backup\"]\nmatch_comm = no-such-*\nmatch_uid = 0\naction = slow\n");
    assert_int_equal(run(f, "test no-such-prog"), 0);
    assert_has(f->said, "no    backup                      match_uid: not known");
    assert_has(f->said, "No rule matches: asymd steers the program (asymd.default = steer)\n");
}

TEST_F(both_as_json)
{
    assert_int_equal(run(f, "test unit-rules --json"), 0);
    json_t *root = json_of(f->said);
    assert_json(root, "{'schema': 'asymctl.rules/1', 'rule': 'mine', 'action': 'steer'}");
    assert_json(json_at(root, "rules.1"), "{'cpus': '0-3', 'nice': 5, 'policy_class': 'parallel', 'matches': true}");
    assert_json(json_at(root, "rules.0"), "{'matches': false, 'nice': null, 'misses': [{}, {}]}");
    json_decref(root);
    assert_int_equal(run(f, "--json"), 0);
    root = json_of(f->said);
    assert_null(json_object_get(root, "rule"));
    json_decref(root);
    assert_int_equal(run(f, "mine --json"), 0);
    root = json_of(f->said);
    assert_json(root, "{'rules': [{}]}");
    json_decref(root);
}

TEST_F(wrong_words_are_refused)
{
    static const struct {
        const char *arguments;
        int status;
        const char *said;
    } rows[] = {
        {"tst 1", 2, "accepted are nothing, the NAME of a rule, or test and then, as without test, PID"},
        {"test", 2, "rules: accepted are nothing"},
        {"test --comm=x", 2, "--comm"},
        {"test averyverylongprogramname", 2, "names have 15 bytes at most. Test its first 15: averyverylongpr\n"},
        {"test 0", 2, "rules: accepted are nothing"},
        {"0", 2, "rules: accepted are nothing"},
        {"test 1 2", 2, "stray argument '2'"},
        {"test 2147483647", 1, "there is no process 2147483647"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(run(f, rows[i].arguments), rows[i].status);
        assert_has(f->said, rows[i].said);
    }
}

/* The names, the globs, the origin and the command line are as long as users make them. */
TEST_F(no_line_is_wider_than_the_terminal)
{
    static const char *const arguments[] = {"", "test no-such-prog", "test 1"};
    static const struct {
        const char *environment;
        size_t columns;
    } widths[] = {{"-u COLUMNS", 80}, {"COLUMNS=70", 70}};
    tree_write(&f->tree, "asymd.conf",
               "[asymd]\ninclude = builds games\n[rule \"a name of forty bytes, the most it has..\"]\n"
               "match_exe = /usr/bin/borg /usr/bin/restic /usr/bin/rsnapshot /usr/bin/duplicity /usr/bin/kopia\n"
               "cpus = 0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30\naction = slow\n");
    for (size_t i = 0; i < ASYM_LENGTH(arguments) * ASYM_LENGTH(widths); i++) {
        const size_t w = i % ASYM_LENGTH(widths);
        assert_int_equal(run_in(f, widths[w].environment, arguments[i / ASYM_LENGTH(widths)]), 0);
        for (const char *line = f->said; *line; line += strcspn(line, "\n") + 1)
            if (strcspn(line, "\n") > widths[w].columns)
                fail_msg("wider than %zu columns: %.*s", widths[w].columns, (int)strcspn(line, "\n"), line);
    }
}

TEST_F(an_allow_list_says_so)
{
    tree_write(&f->tree, "asymd.conf", "[asymd]\ndefault = ignore\n");
    assert_int_equal(run(f, "test no-such-prog"), 0);
    assert_has(f->said, "No rule matches: asymd ignores the program (asymd.default = ignore)\n");
    assert_int_equal(run(f, ""), 0);
    assert_has(f->said,
               "0 rules. asymd uses the first that matches a program, and ignores a program that none matches.\n");
}

TEST_MAIN
