/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The match of a rule. test-settings-errors.c tests which rules are valid. */
#include <string.h>

#include "base/macro.h"
#include "config/config.h"
#include "support/tree.h"
#include "support/test.h"

static struct asym_settings *read_rules(const char *text)
{
    ASYM_CLEANUP(tree_remove) struct tree tree;
    struct asym_settings *s;
    struct asym_error err = {""};
    char file[128];
    tree_make(&tree);
    snprintf(file, sizeof file, "%s/f", tree.path);
    tree_write_bytes(&tree, "f", text, strlen(text));
    assert_int_equal(asym_settings_new(&s), 0);
    if (asym_settings_load(s, file, true, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static void free_rules(struct asym_settings **s)
{
    asym_settings_free(*s);
}

#define AUTO_RULES ASYM_CLEANUP(free_rules) struct asym_settings *

static enum asym_rule_action match(const struct asym_settings *s, struct asym_rule_subject subject)
{
    return asym_rules_match(s->rules, &subject).action;
}

static void assert_match(const struct asym_settings *s, struct asym_rule_subject subject, enum asym_rule_action action,
                         const char *name)
{
    const struct asym_rule_match found = asym_rules_match(s->rules, &subject);
    assert_int_equal(found.action, action);
    assert_string_equal(found.name, name);
}

TEST(without_rules_everything_is_steered)
{
    const struct asym_rule_subject subject = {.comm = "a"};
    AUTO_RULES s = read_rules("");
    const struct asym_rule_match found = asym_rules_match(s->rules, &subject);
    assert_int_equal(found.action, ASYM_RULE_STEER);
    assert_true(!found.name && !found.facts);
    assert_int_equal(asym_rules_need(s->rules), 0);
}

TEST(a_rule_that_any_user_can_meet_says_so)
{
    static const struct {
        const char *rule;
        bool open;
    } rows[] = {
        {"match_comm = game\naction = fast\n", true},
        {"match_cmdline = *game*\nnice = -5\n", true},
        {"match_exe = */steamapps/common/*\naction = fast\n", true},
        {"match_exe = /home/u/game /usr/bin/game\naction = fast\n", true},
        {"match_exe = /u*\npolicy_class = serial\n", true},
        {"match_cgroup = /user.slice/*\naction = fast\n", true},
        {"match_exe = /usr/bin/game\naction = fast\n", false},
        {"match_exe = /opt/*/game\naction = fast\n", false},
        {"match_comm = game\nmatch_exe = /usr/bin/*\naction = fast\n", false},
        {"match_comm = game\nmatch_uid = 1000\naction = fast\n", false},
        {"match_cgroup = /system.slice/db.service\naction = fast\n", false},
        {"match_comm = game\ncpus = big-cache\n", true},
        {"match_comm = game\ncpus = high-clock\n", true},
        {"match_comm = game\ncpus = 3-4\n", true},
        {"match_comm = game\ncpus = 4-5\n", false},
        {"match_exe = /usr/bin/game\ncpus = 3-4\n", false},
        {"match_comm = game\naction = slow\n", false},
        {"match_comm = game\nnice = 5\n", false},
    };
    const struct asym_mask none = {{0}}, slow = {{0xf0}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[256];
        struct asym_rule_view rule;
        snprintf(text, sizeof text, "[rule a]\n%s", rows[i].rule);
        AUTO_RULES s = read_rules(text);
        asym_rules_name_cpus(s->rules, &none, &none, &slow);
        assert_true(asym_rules_at(s->rules, 0, NULL, &rule));
        if (rule.lends_to_anyone != rows[i].open)
            fail_msg("%s: %d", rows[i].rule, rule.lends_to_anyone);
    }
}

TEST(each_key_looks_at_its_own_text)
{
    static const struct {
        const char *key;
        struct asym_rule_subject hit, miss;
        unsigned need;
    } rows[] = {
        {"match_comm", {.comm = "/it"}, {.exe = "/it", .cgroup = "/it", .cmdline = "/it"}, ASYM_RULE_NEEDS_COMM},
        {"match_exe", {.exe = "/it"}, {.comm = "/it", .cgroup = "/it", .cmdline = "/it"}, ASYM_RULE_NEEDS_EXE},
        {"match_cgroup", {.cgroup = "/it"}, {.comm = "/it", .exe = "/it", .cmdline = "/it"}, ASYM_RULE_NEEDS_CGROUP},
        {"match_cmdline", {.cmdline = "/it"}, {.comm = "/it", .exe = "/it", .cgroup = "/it"}, ASYM_RULE_NEEDS_CMDLINE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[128];
        snprintf(text, sizeof text, "[rule r]\n%s = /it\naction = slow\n", rows[i].key);
        AUTO_RULES s = read_rules(text);
        assert_int_equal(match(s, rows[i].hit), ASYM_RULE_SLOW);
        assert_int_equal(match(s, rows[i].miss), ASYM_RULE_STEER);
        assert_int_equal(asym_rules_need(s->rules), rows[i].need);
    }
}

TEST(a_uid_is_compared_as_a_number)
{
    AUTO_RULES s = read_rules("[rule r]\nmatch_uid = 01000\t7  4294967294\naction = ignore\n");
    assert_int_equal(match(s, (struct asym_rule_subject){.uid = 1000}), ASYM_RULE_IGNORE);
    assert_int_equal(match(s, (struct asym_rule_subject){.uid = 7}), ASYM_RULE_IGNORE);
    assert_int_equal(match(s, (struct asym_rule_subject){.uid = 4294967294}), ASYM_RULE_IGNORE);
    assert_int_equal(match(s, (struct asym_rule_subject){.uid = 0}), ASYM_RULE_STEER);
    assert_int_equal(match(s, (struct asym_rule_subject){.uid = 100}), ASYM_RULE_STEER);
    assert_int_equal(asym_rules_need(s->rules), ASYM_RULE_NEEDS_UID);
}

TEST(any_of_the_globs_is_enough)
{
    AUTO_RULES s = read_rules("[rule r]\nmatch_comm = cc1  cc1plus\trust* [xy]z a?c\naction = fast\n");
    static const char *const hits[] = {"cc1", "cc1plus", "rustc", "rust", "xz", "yz", "abc"};
    static const char *const misses[] = {"cc", "cc11", "trust", "zz", "ac", "abbc", "", "CC1"};
    for (size_t i = 0; i < ASYM_LENGTH(hits); i++)
        assert_int_equal(match(s, (struct asym_rule_subject){.comm = hits[i]}), ASYM_RULE_FAST);
    for (size_t i = 0; i < ASYM_LENGTH(misses); i++)
        assert_int_equal(match(s, (struct asym_rule_subject){.comm = misses[i]}), ASYM_RULE_STEER);
}

/* systemd writes "-" in the name of a unit as "\x2d". */
TEST(a_word_in_quotes_has_spaces_and_a_backslash_is_one)
{
    AUTO_RULES s = read_rules("[rule r]\nmatch_comm = x \"Pianoteq STAGE\" \"a b*\"\naction = \"fast\"\n"
                              "[rule q]\nmatch_cgroup = */my\\x2dgame.scope\naction = slow\n");
    static const char *const hits[] = {"x", "Pianoteq STAGE", "a bc"}, *const misses[] = {"Pianoteq", "STAGE", "\"a",
                                                                                          "a"};
    for (size_t i = 0; i < ASYM_LENGTH(hits); i++)
        assert_int_equal(match(s, (struct asym_rule_subject){.comm = hits[i]}), ASYM_RULE_FAST);
    for (size_t i = 0; i < ASYM_LENGTH(misses); i++)
        assert_int_equal(match(s, (struct asym_rule_subject){.comm = misses[i]}), ASYM_RULE_STEER);
    assert_int_equal(match(s, (struct asym_rule_subject){.cgroup = "/user.slice/my\\x2dgame.scope"}), ASYM_RULE_SLOW);
}

TEST(a_star_passes_slashes_and_spaces)
{
    AUTO_RULES s = read_rules("[rule r]\nmatch_exe = /usr/*/cc1\naction = fast\n"
                              "[rule q]\nmatch_cmdline = *--jobs*\naction = slow\n");
    assert_int_equal(match(s, (struct asym_rule_subject){.exe = "/usr/lib/gcc/12/cc1"}), ASYM_RULE_FAST);
    assert_int_equal(match(s, (struct asym_rule_subject){.exe = "/opt/usr/lib/cc1"}), ASYM_RULE_STEER);
    assert_int_equal(match(s, (struct asym_rule_subject){.cmdline = "make -k --jobs 8"}), ASYM_RULE_SLOW);
}

TEST(all_keys_of_a_rule_have_to_match)
{
    AUTO_RULES s = read_rules("[rule r]\nmatch_comm = a\nmatch_uid = 5\nmatch_exe = /x\naction = slow\n");
    assert_int_equal(match(s, (struct asym_rule_subject){.comm = "a", .uid = 5, .exe = "/x"}), ASYM_RULE_SLOW);
    assert_int_equal(match(s, (struct asym_rule_subject){.comm = "b", .uid = 5, .exe = "/x"}), ASYM_RULE_STEER);
    assert_int_equal(match(s, (struct asym_rule_subject){.comm = "a", .uid = 6, .exe = "/x"}), ASYM_RULE_STEER);
    assert_int_equal(match(s, (struct asym_rule_subject){.comm = "a", .uid = 5}), ASYM_RULE_STEER);
    assert_int_equal(asym_rules_need(s->rules), ASYM_RULE_NEEDS_COMM | ASYM_RULE_NEEDS_UID | ASYM_RULE_NEEDS_EXE);
}

TEST(the_first_rule_that_matches_counts)
{
    AUTO_RULES s = read_rules("[rule one]\nmatch_comm = ab*\naction = steer\n"
                              "[rule \"the two\"]\nmatch_comm = a*\naction = slow\n"
                              "[rule three]\nmatch_comm = *\naction = fast\n");
    assert_match(s, (struct asym_rule_subject){.comm = "abc"}, ASYM_RULE_STEER, "one");
    assert_match(s, (struct asym_rule_subject){.comm = "a"}, ASYM_RULE_SLOW, "the two");
    assert_match(s, (struct asym_rule_subject){.comm = "x"}, ASYM_RULE_FAST, "three");
}

TEST(hostile_names_match_as_bytes)
{
    AUTO_RULES s = read_rules("[rule r]\nmatch_comm = ?*)\naction = slow\n");
    assert_int_equal(match(s, (struct asym_rule_subject){.comm = "a\n)"}), ASYM_RULE_SLOW);
    assert_int_equal(match(s, (struct asym_rule_subject){.comm = "\xff\xfe)"}), ASYM_RULE_SLOW);
    assert_int_equal(match(s, (struct asym_rule_subject){.comm = ")"}), ASYM_RULE_STEER);
}

TEST(a_thousand_rules_keep_their_order)
{
    static char text[65536];
    size_t n = 0;
    char comm[16], want[16];
    for (unsigned i = 0; i < 1000; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "[rule r%u]\nmatch_comm = c%u\naction = fast\n", i, i);
    AUTO_RULES s = read_rules(text);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(comm, sizeof comm, "c%u", i);
        snprintf(want, sizeof want, "r%u", i);
        assert_match(s, (struct asym_rule_subject){.comm = comm}, ASYM_RULE_FAST, want);
    }
}

TEST(cpus_of_a_cache_are_those_of_the_machine)
{
    AUTO_RULES s = read_rules("[rule one]\nmatch_comm = a\ncpus = big-cache\n"
                              "[rule two]\nmatch_comm = b\ncpus = high-clock\n"
                              "[rule three]\nmatch_comm = c\ncpus = 2\n");
    const struct asym_mask big = {{0x0f}}, others = {{0xf0}}, none = {{0}};
    struct asym_rule_view rules[3];
    assert_int_equal(asym_rules_name_cpus(s->rules, &big, &others, &none), 0);
    for (size_t i = 0; i < 3; i++)
        assert_true(asym_rules_at(s->rules, i, NULL, &rules[i]));
    assert_int_equal(rules[0].facts->cpus.w[0], 0x0f);
    assert_int_equal(rules[1].facts->cpus.w[0], 0xf0);
    assert_int_equal(rules[2].facts->cpus.w[0], 0x04);
    /* CPUs that went offline, or another machine: the rules name none. */
    assert_int_equal(asym_rules_name_cpus(s->rules, &none, &none, &none), 2);
    assert_int_equal(rules[0].facts->cpus.w[0], 0);
    assert_int_equal(rules[2].facts->cpus.w[0], 0x04);
}

TEST(cpus_nice_and_class_are_facts_of_a_rule_that_steers)
{
    AUTO_RULES s = read_rules("[rule one]\nmatch_comm = a\ncpus = 0-1,3\nnice = -4\npolicy_class = serial\n"
                              "[rule two]\nmatch_comm = b\naction = slow\nnice = 0\n");
    const struct asym_rule_match one = asym_rules_match(s->rules, &(struct asym_rule_subject){.comm = "a"});
    assert_int_equal(one.action, ASYM_RULE_STEER);
    assert_int_equal(one.facts->cpus.w[0], 0xb);
    assert_true(one.facts->has_nice && one.facts->nice == -4 && !one.facts->library);
    assert_int_equal(one.facts->policy_class, ASYM_RULE_CLASS_SERIAL);
    const struct asym_rule_match two = asym_rules_match(s->rules, &(struct asym_rule_subject){.comm = "b"});
    assert_int_equal(two.action, ASYM_RULE_SLOW);
    assert_int_equal(two.facts->cpus.w[0], 0);
    assert_true(two.facts->has_nice && two.facts->nice == 0);
}

TEST(a_view_says_which_keys_miss)
{
    struct asym_rule_view v;
    AUTO_RULES s = read_rules("[rule one]\nmatch_comm = a\nmatch_uid = 5\nmatch_exe = /x\naction = slow\n");
    assert_true(asym_rules_at(s->rules, 0, &(struct asym_rule_subject){.comm = "a", .uid = 6, .exe = "/y"}, &v));
    assert_int_equal(v.n_keys, 3);
    assert_string_equal(v.key[0], "match_comm");
    assert_string_equal(v.key[1], "match_exe");
    assert_string_equal(v.globs[1], "/x");
    assert_string_equal(v.key[2], "match_uid");
    assert_true(!v.misses[0] && v.misses[1] && v.misses[2]);
    assert_int_equal(v.action, ASYM_RULE_SLOW);
    assert_true(asym_rules_at(s->rules, 0, NULL, &v) && !v.misses[0] && !v.misses[1]);
    assert_false(asym_rules_at(s->rules, 1, NULL, &v));
}

TEST_MAIN
