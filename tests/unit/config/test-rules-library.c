/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library of rules, and asymd.default for programs that no rule names. */
#include <dirent.h>

#include "config/settings.h"
#include "support/tree.h"
#include "support/test.h"

struct fixture {
    struct tree tree;
    struct asym_settings *s;
    char file[128], library[128];
    struct asym_error err;
};

static void setup(struct fixture *f)
{
    tree_make(&f->tree);
    snprintf(f->file, sizeof f->file, "%s/asymd.conf", f->tree.path);
    snprintf(f->library, sizeof f->library, "%s/library", f->tree.path);
    tree_write(&f->tree, "library/games.conf", "[rule steam]\nmatch_comm = steam\naction = fast\n");
    tree_write(&f->tree, "library/builds.conf", "[rule cc]\nmatch_comm = cc1\nnice = 3\npolicy_class = parallel\n");
    tree_write(&f->tree, "library/README", "no group");
    assert_int_equal(asym_settings_new(&f->s), 0);
}

static void teardown(struct fixture *f)
{
    asym_settings_free(f->s);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, setup, teardown)

static int load(struct fixture *f, const char *text)
{
    tree_write(&f->tree, "asymd.conf", "%s", text);
    int r = asym_settings_load(f->s, f->file, true, &f->err);
    if (r >= 0)
        r = asym_settings_finish(f->s, f->library, &f->err);
    return r < 0 ? r : asym_settings_check(f->s, &f->err);
}

static struct asym_rule_match match(const struct fixture *f, const char *comm)
{
    return asym_rules_match(f->s->rules, &(struct asym_rule_subject){.comm = comm});
}

TEST_F(the_library_is_off_by_default)
{
    assert_int_equal(load(f, ""), 0);
    assert_null(match(f, "steam").name);
    assert_int_equal(asym_rules_need(f->s->rules), 0);
}

TEST_F(include_turns_on_the_named_groups_only)
{
    assert_int_equal(load(f, "[asymd]\ninclude =  builds\n"), 0);
    assert_null(match(f, "steam").name);
    const struct asym_rule_match found = match(f, "cc1");
    assert_string_equal(found.name, "cc");
    assert_int_equal(found.action, ASYM_RULE_STEER);
    assert_true(found.facts->library && found.facts->has_nice && found.facts->nice == 3);
    assert_int_equal(found.facts->policy_class, ASYM_RULE_CLASS_PARALLEL);
}

TEST_F(a_group_named_twice_is_read_once)
{
    assert_int_equal(load(f, "[asymd]\ninclude = games builds games\n"), 0);
    struct asym_rule_view rule;
    assert_true(asym_rules_at(f->s->rules, 1, NULL, &rule));
    assert_false(asym_rules_at(f->s->rules, 2, NULL, &rule));
}

TEST_F(rules_of_the_user_come_first)
{
    assert_int_equal(load(f, "[asymd]\ninclude = games\n[rule mine]\nmatch_comm = st*\naction = slow\n"), 0);
    const struct asym_rule_match found = match(f, "steam");
    assert_string_equal(found.name, "mine");
    assert_int_equal(found.action, ASYM_RULE_SLOW);
    assert_false(found.facts->library);
}

TEST_F(a_rule_of_the_user_replaces_the_one_of_its_name)
{
    assert_int_equal(load(f, "[asymd]\ninclude = games\n[rule steam]\nmatch_comm = other\naction = slow\n"), 0);
    assert_null(match(f, "steam").name);
    assert_int_equal(match(f, "other").action, ASYM_RULE_SLOW);
}

TEST_F(an_unknown_group_names_the_known_ones)
{
    char want[512];
    assert_int_equal(load(f, "\n[asymd]\ninclude = games game\n"), -EINVAL);
    snprintf(want, sizeof want,
             "%s:3: asymd.include: %s has no group of rules 'game' (did you mean 'games'?); accepted are builds, games",
             f->file, f->library);
    assert_string_equal(f->err.text, want);
    /* A name is no path. */
    assert_int_equal(load(f, "[asymd]\ninclude = ../library/games\n"), -EINVAL);
}

TEST_F(a_missing_library_is_an_error_only_if_it_is_needed)
{
    snprintf(f->library, sizeof f->library, "%s/none", f->tree.path);
    assert_int_equal(load(f, ""), 0);
    assert_int_equal(load(f, "[asymd]\ninclude = games\n"), -EINVAL);
    assert_non_null(strstr(f->err.text, f->library));
    assert_non_null(strstr(f->err.text, ":2: asymd.include needs"));
}

TEST_F(a_file_of_the_library_has_rules_only)
{
    char want[512];
    tree_write(&f->tree, "library/games.conf", "[asymd]\npolicy = none\n");
    assert_int_equal(load(f, "[asymd]\ninclude = games\n"), -EINVAL);
    snprintf(want, sizeof want, "%s/games.conf:1: [asymd] is no rule; a file of the library has rules only",
             f->library);
    assert_string_equal(f->err.text, want);
}

TEST_F(default_is_for_programs_without_a_rule)
{
    assert_int_equal(load(f, "[asymd]\ndefault = ignore\n[rule a]\nmatch_comm = a\naction = steer\n"), 0);
    assert_int_equal(match(f, "a").action, ASYM_RULE_STEER);
    assert_int_equal(match(f, "b").action, ASYM_RULE_UNLISTED);
    assert_null(match(f, "b").name);
    assert_int_equal(asym_settings_set(f->s, "asymd.default=steer", "--set", NULL), 0);
    assert_int_equal(asym_settings_finish(f->s, f->library, NULL), 0);
    assert_int_equal(match(f, "b").action, ASYM_RULE_STEER);
}

/* Every group that asymd installs can be used, alone and with all others, and says why in a comment before each rule. */
TEST_F(the_installed_groups_are_valid)
{
    struct dirent *e;
    char all[160] = "asymd.include=", text[sizeof e->d_name + 2];
    DIR *dir = opendir(ASYM_TEST_BIN "/conf/library");
    assert_non_null(dir);
    while ((e = readdir(dir))) {
        if (e->d_name[0] == '.')
            continue;
        e->d_name[strlen(e->d_name) - strlen(".conf")] = '\0';
        snprintf(text, sizeof text, " %s", e->d_name);
        assert_true(strlen(all) + strlen(text) < sizeof all);
        strcat(all, text);
    }
    closedir(dir);
    assert_int_equal(asym_settings_set(f->s, all, "--set", NULL), 0);
    if (asym_settings_finish(f->s, ASYM_TEST_BIN "/conf/library", &f->err) < 0)
        fail_msg("%s", f->err.text);
    assert_int_equal(asym_settings_check(f->s, NULL), 0);
    static const struct {
        const char *comm, *exe, *rule;
    } rows[] = {
        {"hl2_linux", "/home/u/.local/share/Steam/steamapps/common/Half-Life 2/hl2_linux", "games: Steam"},
        {"game.exe", "/opt/wine/bin/wine64-preloader", "games: Wine"},
        {"firefox-esr", "/usr/lib/firefox-esr/firefox-esr", "browsers: Firefox"},
        {"cc1plus", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "builds: compilers"},
        {"ld", "/usr/bin/x86_64-linux-gnu-ld.bfd", "builds: linkers"},
        {"rustc", "/usr/bin/rustc", "builds: Rust and Go"},
        {"restic", "/usr/bin/restic", "background: backups"},
        {"tracker-miner-f", "/usr/libexec/tracker-miner-fs-3", "background: indexers"},
        {"FahCore_a8", "/var/lib/fah-client/cores/FahCore_a8", "volunteer: Folding@home"},
        {"bash", "/usr/bin/bash", NULL},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_rule_subject subject = {.comm = rows[i].comm, .exe = rows[i].exe};
        const char *name = asym_rules_match(f->s->rules, &subject).name;
        if (!rows[i].rule)
            assert_null(name);
        else
            assert_string_equal(name, rows[i].rule);
    }
}

TEST_MAIN
