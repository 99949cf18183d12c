/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The printed configuration reads back as the same settings; the sample configuration matches the table of options. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <asym/settings.h>

#include "base/macro.h"
#include "config/config-internal.h"
#include "support/tree.h"
#include "support/test.h"

static char *print(const struct asym_settings *s)
{
    return PRINTED(asym_settings_print(s, out));
}

/* Cuts the text behind " ;": origins differ from file to file. */
static void cut_origins(char *text)
{
    char *to = text;
    for (char *line = text, *next; *line; line = next) {
        char *end = strchrnul(line, '\n');
        next = *end ? end + 1 : end;
        char *comment = strstr(line, " ;");
        size_t n = (size_t)((comment && comment < end ? comment : end) - line);
        memmove(to, line, n);
        to += n;
        *to++ = '\n';
    }
    *to = '\0';
}

static void free_settings(struct asym_settings **s)
{
    asym_settings_free(*s);
}

#define AUTO_SETTINGS ASYM_CLEANUP(free_settings) struct asym_settings *

static struct asym_settings *defaults(void)
{
    struct asym_settings *s;
    assert_int_equal(asym_settings_new(&s), 0);
    return s;
}

static void assert_comes_back(const struct asym_settings *s)
{
    struct tree tree;
    struct asym_error err = {""};
    char file[128];
    AUTO_SETTINGS back = defaults(), *same = defaults();
    ASYM_AUTO_FREE char *text = print(s);
    tree_make(&tree);
    snprintf(file, sizeof file, "%s/f", tree.path);
    tree_write_bytes(&tree, "f", text, strlen(text));
    if (asym_settings_load(back, file, true, &err) < 0)
        fail_msg("%s\n%s", err.text, text);
    if (asym_settings_read_printed(same, text, strlen(text), &err) < 0)
        fail_msg("%s\n%s", err.text, text);
    ASYM_AUTO_FREE char *again = print(back), *with_origins = print(same);
    assert_string_equal(text, with_origins);
    cut_origins(text);
    cut_origins(again);
    assert_string_equal(text, again);
    tree_remove(&tree);
}

TEST(the_defaults_are_printed_with_where_they_came_from)
{
    AUTO_SETTINGS s = defaults();
    ASYM_AUTO_FREE char *text = print(s);
    assert_non_null(strstr(text, "[asymd]\npolicy = auto ; default\n"));
    assert_non_null(strstr(text, "hp_threshold = auto ; default\n"));
    assert_non_null(strstr(text, "slow = ; default\n"));
    assert_non_null(strstr(text, "[policy.pa]\nsp_boost = -5 ; default\n"));
    assert_int_equal(asym_settings_set(s, "enforce.settle=1500us", "--set", NULL), 0);
    ASYM_AUTO_FREE char *after = print(s);
    assert_non_null(strstr(after, "settle = 1500us ; --set\n"));
}

TEST(every_value_is_read_back_as_it_was)
{
    static const char *const assignments[] = {
        "asymd.cpu_budget=0.0123456789",
        "asymd.cpu_budget=99.999999999",
        "asymd.interval=1234567us",
        "asymd.interval=60s",
        "asymd.interval=1001us",
        "asymd.state_dir=/a;b # c = d [e]",
        "asymd.group=cgroup",
        "classify.hp_threshold=100000",
        "classify.hp_threshold=auto",
        "enforce.pin=cpu",
        "enforce.pin=auto",
        "enforce.settle=0s",
        "asymmetry.slow=1,3",
        "asymmetry.slow=",
        "policy.pa.sp_boost=-20",
        "asymd.state_dir=/\xc3\xbc",
        "asymd.policy=rr",
    };
    AUTO_SETTINGS s = defaults();
    assert_comes_back(s);
    for (size_t i = 0; i < ASYM_LENGTH(assignments); i++) {
        assert_int_equal(asym_settings_set(s, assignments[i], "--set", NULL), 0);
        assert_comes_back(s);
    }
}

TEST(a_number_is_printed_without_loss)
{
    AUTO_SETTINGS s = defaults();
    assert_int_equal(asym_settings_set(s, "asymd.cpu_budget=0.0123456789", "--set", NULL), 0);
    ASYM_AUTO_FREE char *text = print(s);
    assert_non_null(strstr(text, "cpu_budget = 0.0123456789 ;"));
}

TEST(rules_are_read_back_as_they_were)
{
    struct tree tree;
    char file[128], name[ASYM_RULE_NAME_MAX + 1], value[ASYM_VALUE_MAX + 1];
    memset(name, 'n', sizeof name - 1);
    memset(value, 'v', sizeof value - 1);
    name[sizeof name - 1] = value[sizeof value - 1] = '\0';
    AUTO_SETTINGS s = defaults();
    tree_make(&tree);
    snprintf(file, sizeof file, "%s/f", tree.path);
    tree_write(&tree, "f",
               "[rule plain]\nmatch_comm=a* b?\nmatch_uid=0 1000\naction=slow\n"
               "[rule \" odd = ; name\"]\nmatch_cgroup=/user.slice/*;x /# \"/ y\"\naction=ignore\n"
               "[rule %s]\nmatch_cmdline=%s\naction=fast\n",
               name, value);
    /* " ;" also begins a comment in a name */
    assert_int_equal(asym_settings_load(s, file, true, NULL), -EINVAL);
    asym_settings_free(s);
    s = defaults();
    tree_write(&tree, "f",
               "[rule plain]\nmatch_comm=a* b?\nmatch_uid=0 1000\naction=slow\n"
               "[rule \" odd = name\"]\nmatch_cgroup=/user.slice/*;x /# \"/ y\"\naction=ignore\n"
               "[rule %s]\nmatch_cmdline=%s\naction=fast\n",
               name, value);
    assert_int_equal(asym_settings_load(s, file, true, NULL), 0);
    assert_comes_back(s);
    tree_remove(&tree);
}

static int count_row(void *ctx, const char *section, const struct asym_option *row, const char *value,
                     const char *origin)
{
    char again[256] = "";
    AUTO_SETTINGS s = defaults();
    assert_true(row->help && strlen(row->help) > 10 && row->help[strlen(row->help) - 1] == '.');
    assert_string_equal(origin, "default");
    assert_string_equal(value, row->def);
    snprintf(again, sizeof again, "%s.%s=%s", section, row->key, value);
    assert_int_equal(asym_settings_set(s, again, "--set", NULL), 0);
    ++*(size_t *)ctx;
    return 0;
}

TEST(every_row_has_help_and_a_default_that_it_accepts)
{
    size_t n = 0, want = 0;
    AUTO_SETTINGS s = defaults();
    assert_int_equal(asym_settings_each(s, count_row, &n), 0);
    while (asym_options[want].section)
        want++;
    for (size_t i = 0; asym_policy_at(i); i++)
        for (const struct asym_option *o = asym_policy_at(i)->options; o && o->key; o++)
            want++;
    assert_int_equal(n, want);
}

static int stop(void *ctx, const char *section, const struct asym_option *row, const char *value, const char *origin)
{
    return ++*(int *)ctx == 3 ? -ECANCELED : 0;
}

TEST(each_ends_at_its_limit)
{
    int n = 0;
    AUTO_SETTINGS s = defaults();
    assert_int_equal(asym_settings_each(s, stop, &n), -ECANCELED);
    assert_int_equal(n, 3);
}

TEST(a_full_disk_is_noticed)
{
    AUTO_SETTINGS s = defaults();
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(asym_settings_print(s, full), -EIO);
    assert_int_equal(asym_settings_print_sample(full), -EIO);
    fclose(full);
}

static char *sample(void)
{
    return PRINTED(asym_settings_print_sample(out));
}

TEST(the_installed_configuration_is_the_tables)
{
    char file[65536];
    FILE *in = fopen(ASYM_TEST_BIN "/conf/asymd.conf", "r");
    assert_non_null(in);
    size_t n = fread(file, 1, sizeof file - 1, in);
    fclose(in);
    file[n] = '\0';
    ASYM_AUTO_FREE char *text = sample();
    assert_string_equal(file, text);
}

TEST(the_installed_configuration_changes_nothing)
{
    AUTO_SETTINGS s = defaults(), *plain = defaults();
    assert_int_equal(asym_settings_load(s, ASYM_TEST_BIN "/conf/asymd.conf", true, NULL), 0);
    assert_int_equal(asym_settings_check(s, NULL), 0);
    ASYM_AUTO_FREE char *text = print(s), *want = print(plain);
    assert_string_equal(text, want);
}

TEST(uncommented_it_is_accepted_and_says_the_defaults)
{
    struct tree tree;
    char file[128];
    struct asym_error err = {""};
    AUTO_SETTINGS s = defaults(), *plain = defaults();
    ASYM_AUTO_FREE char *text = sample();
    for (char *c = text; (c = strstr(c, "\n;")); c++)
        c[1] = ' ';
    tree_make(&tree);
    snprintf(file, sizeof file, "%s/f", tree.path);
    tree_write_bytes(&tree, "f", text, strlen(text));
    if (asym_settings_load(s, file, true, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_rules_need(s->rules), ASYM_RULE_NEEDS_COMM);
    ASYM_AUTO_FREE char *got = print(s), *want = print(plain);
    assert_null(strstr(got, "; default"));
    cut_origins(got);
    cut_origins(want);
    assert_int_equal(strncmp(got, want, strlen(want)), 0);
    assert_non_null(strstr(got + strlen(want), "[rule \"compilers\"]"));
    tree_remove(&tree);
}

TEST_MAIN
