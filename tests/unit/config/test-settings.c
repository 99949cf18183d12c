/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which files asymd reads, and which value takes precedence; the printed configuration reads back as the same settings; the sample
 * configuration matches the table of options. test-settings-errors.c has the bad files.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "config/config.h"
#include "support/tree.h"
#include "support/test.h"

struct fixture {
    struct tree tree;
    struct asym_settings *s;
    char file[128];
};

static void set_up(struct fixture *f)
{
    tree_make(&f->tree);
    snprintf(f->file, sizeof f->file, "%s/asymd.conf", f->tree.path);
    assert_int_equal(asym_settings_new(&f->s), 0);
}

static void tear_down(struct fixture *f)
{
    asym_settings_free(f->s);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

static void load(struct fixture *f, const char *text)
{
    struct asym_error err = {""};
    tree_write(&f->tree, "asymd.conf", "%s", text);
    if (asym_settings_load(f->s, f->file, true, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_defaults(struct fixture *f)
{
    const struct asym_settings *s = f->s;
    assert_string_equal(s->daemon.policy, "auto");
    assert_int_equal(s->daemon.interval, 100 * ASYM_MSEC);
    assert_int_equal(s->daemon.duration, 500 * ASYM_MSEC);
    assert_true(s->daemon.cpu_budget >= 1 && s->daemon.cpu_budget <= 1);
    assert_int_equal(s->daemon.group, ASYM_GROUP_JOB);
    assert_string_equal(s->daemon.state_dir, "/run/asymd");
    assert_int_equal(s->classify.estimator, ASYM_ESTIMATOR_MEAN);
    assert_int_equal(s->classify.serial_max_threads, 2);
    assert_int_equal(s->classify.hp_threshold, UINT_MAX);
    assert_int_equal(s->classify.amp_boost, ASYM_SEC);
    assert_int_equal(s->classify.hysteresis, 1);
    assert_int_equal(s->enforce.pin, -1);
    assert_int_equal(s->enforce.swap_period, 100 * ASYM_MSEC);
    assert_int_equal(s->enforce.settle, 500 * ASYM_MSEC);
    assert_int_equal(s->enforce.fork_holdoff, 10 * ASYM_SEC);
    assert_int_equal(s->enforce.release, 5 * ASYM_SEC);
    assert_int_equal(s->asymmetry.method, ASYM_METHOD_NONE);
    assert_string_equal(s->asymmetry.slow, "");
    assert_string_equal(s->asymmetry.slow_speed, "50%");
    assert_int_equal(asym_rules_need(s->rules), 0);
    assert_int_equal(asym_settings_check(s, NULL), 0);
}

TEST_F(the_defaults_are_those_of_the_sources)
{
    assert_defaults(f);
}

TEST_F(a_file_sets_what_it_names_and_nothing_else)
{
    load(f, "[asymd]\npolicy = mintlp\ninterval=1.5ms\ncpu_budget: 0.25\ngroup = cgroup\n"
            "[classify]\nhp_threshold = 7\namp_boost = 250 ms\n[enforce]\npin = llc\n"
            "[asymmetry]\nslow = 2-3\nslow_speed = 12.5%\n");
    assert_string_equal(f->s->daemon.policy, "mintlp");
    assert_int_equal(f->s->daemon.interval, 1500);
    assert_true(f->s->daemon.cpu_budget >= 0.25 && f->s->daemon.cpu_budget <= 0.25);
    assert_int_equal(f->s->daemon.group, ASYM_GROUP_CGROUP);
    assert_int_equal(f->s->classify.hp_threshold, 7);
    assert_int_equal(f->s->classify.amp_boost, 250 * ASYM_MSEC);
    assert_int_equal(f->s->enforce.pin, ASYM_PIN_LLC);
    assert_string_equal(f->s->asymmetry.slow, "2-3");
    assert_string_equal(f->s->asymmetry.slow_speed, "12.5%");
    assert_int_equal(f->s->daemon.duration, 500 * ASYM_MSEC);
    assert_int_equal(f->s->enforce.release, 5 * ASYM_SEC);
    assert_int_equal(asym_settings_check(f->s, NULL), 0);
}

TEST_F(a_policys_own_options_are_in_its_section)
{
    const struct asym_policy *pa = asym_policy_find("pa");
    load(f, "[policy.pa]\nsp_boost = -5\n");
    assert_int_equal(*(const int *)asym_settings_params(f->s, pa), -5);
    assert_int_equal(asym_settings_set(f->s, "policy.pa.sp_boost=-7", "--set", NULL), 0);
    assert_int_equal(*(const int *)asym_settings_params(f->s, pa), -7);
    assert_null(asym_settings_params(f->s, asym_policy_find("none")));
}

TEST_F(harmless_forms_are_read)
{
    static const char *const texts[] = {
        "[asymd]\r\ninterval = 7ms\r\n",             /* CRLF */
        "\xef\xbb\xbf[asymd]\ninterval = 7ms\n",     /* UTF-8 BOM */
        "[asymd]\ninterval = 7ms",                   /* no newline at the end */
        "  [asymd]  ; why\n\t interval\t=  7ms  \n", /* indented, commented */
        "[asymd] ; a\n; b\n# c\n\ninterval = 7ms ; d\n",
        "[ asymd ]\ninterval:7ms\n",
        "[asymd]\n[classify]\n[asymd]\ninterval = 7ms\n", /* a section may occur twice */
    };
    for (size_t i = 0; i < ASYM_LENGTH(texts); i++) {
        assert_int_equal(asym_settings_set(f->s, "asymd.interval=9ms", "--set", NULL), 0);
        load(f, texts[i]);
        assert_int_equal(f->s->daemon.interval, 7 * ASYM_MSEC);
    }
    load(f, "");
    load(f, "\xef\xbb\xbf");
    assert_int_equal(f->s->daemon.interval, 7 * ASYM_MSEC);
}

TEST_F(a_comment_may_be_of_any_length)
{
    char text[4096] = "[asymd]\ninterval = 7ms ;";
    size_t n = strlen(text);
    memset(text + n, 'x', 3000);
    load(f, text);
    memset(text, ';', 1000);
    text[1000] = '\0';
    load(f, text);
    assert_int_equal(f->s->daemon.interval, 7 * ASYM_MSEC);
}

TEST_F(the_character_device_null_is_an_empty_configuration)
{
    assert_int_equal(asym_settings_load(f->s, "/dev/null", true, NULL), 0);
    assert_string_equal(f->s->daemon.policy, "auto");
    assert_int_equal(f->s->daemon.interval, 100 * ASYM_MSEC);
}

static int find_origin(void *ctx, const char *section, const struct asym_option *row, const char *value,
                       const char *origin)
{
    const char **wanted = ctx;
    if (strcmp(section, wanted[0]) != 0 || strcmp(row->key, wanted[1]) != 0)
        return 0;
    wanted[2] = origin;
    return 1;
}

static const char *origin_of(const struct asym_settings *s, const char *section, const char *key)
{
    const char *wanted[3] = {section, key, NULL};
    assert_int_equal(asym_settings_each(s, find_origin, wanted), 1);
    return wanted[2];
}

TEST_F(rules_d_comes_after_the_file_by_name)
{
    char want[160];
    tree_write(&f->tree, "asymd.conf", "[asymd]\ninterval = 10ms\nduration = 1s\n");
    tree_write(&f->tree, "rules.d/20-b.conf", "[asymd]\ninterval = 30ms\n[rule b]\nmatch_comm=x\naction=slow\n");
    tree_write(&f->tree, "rules.d/10-a.conf", "\n[asymd]\ninterval = 20ms\n[rule a]\nmatch_comm=x\naction=fast\n");
    tree_write(&f->tree, "rules.d/.hidden.conf", "junk");
    tree_write(&f->tree, "rules.d/30-c.conf.bak", "junk");
    assert_int_equal(asym_settings_load(f->s, f->file, true, NULL), 0);
    assert_int_equal(f->s->daemon.interval, 30 * ASYM_MSEC);
    assert_int_equal(f->s->daemon.duration, ASYM_SEC);
    snprintf(want, sizeof want, "%s/rules.d/20-b.conf:2", f->tree.path);
    assert_string_equal(origin_of(f->s, "asymd", "interval"), want);
    snprintf(want, sizeof want, "%s:3", f->file);
    assert_string_equal(origin_of(f->s, "asymd", "duration"), want);
    assert_string_equal(origin_of(f->s, "enforce", "pin"), "default");
    const struct asym_rule_subject subject = {.comm = "x"};
    const struct asym_rule_match found = asym_rules_match(f->s->rules, &subject);
    assert_int_equal(found.action, ASYM_RULE_FAST);
    assert_string_equal(found.name, "a");
}

TEST_F(a_missing_file_is_an_error_only_when_it_was_asked_for)
{
    struct asym_error err = {""};
    tree_write(&f->tree, "rules.d/a.conf", "[asymd]\ninterval = 20ms\n");
    assert_int_equal(asym_settings_load(f->s, f->file, true, &err), -ENOENT);
    assert_non_null(strstr(err.text, f->file));
    assert_int_equal(asym_settings_load(f->s, f->file, true, &err), -ENOENT);
    assert_int_equal(f->s->daemon.interval, 100 * ASYM_MSEC);
    err.text[0] = '\0';
    assert_int_equal(asym_settings_load(f->s, f->file, false, &err), 0);
    assert_string_equal(err.text, "");
    assert_int_equal(f->s->daemon.interval, 20 * ASYM_MSEC);
}

TEST_F(a_bad_file_in_rules_d_is_named)
{
    struct asym_error err = {""};
    tree_write(&f->tree, "asymd.conf", "[asymd]\ninterval = 10ms\n[rule a]\nmatch_comm=x\naction=fast\n");
    tree_write(&f->tree, "rules.d/1.conf", "[enforce]\nsettle = 1s\n");
    tree_write(&f->tree, "rules.d/2.conf", "[enforce]\nsettle = soon\n");
    assert_int_equal(asym_settings_load(f->s, f->file, true, &err), -EINVAL);
    assert_non_null(strstr(err.text, "rules.d/2.conf:2: enforce.settle: 'soon'"));
}

TEST_F(what_is_set_by_hand_wins_and_says_so)
{
    load(f, "[asymd]\ninterval = 10ms\n");
    assert_int_equal(asym_settings_set(f->s, "asymd.interval=20ms", "--interval", NULL), 0);
    assert_int_equal(asym_settings_set(f->s, " enforce . settle = 2 s ", "--set", NULL), 0);
    assert_int_equal(f->s->daemon.interval, 20 * ASYM_MSEC);
    assert_int_equal(f->s->enforce.settle, 2 * ASYM_SEC);
    assert_string_equal(origin_of(f->s, "asymd", "interval"), "--interval");
    assert_string_equal(origin_of(f->s, "enforce", "settle"), "--set");
}

TEST_F(bad_assignments_are_refused_and_change_nothing)
{
    static const struct {
        const char *assignment, *words;
    } rows[] = {
        {"", "SECTION.KEY=VALUE"},
        {"=", "SECTION.KEY=VALUE"},
        {"interval=1ms", "SECTION.KEY=VALUE"},
        {".interval=1ms", "SECTION.KEY=VALUE"},
        {"asymd.=1ms", "SECTION.KEY=VALUE"},
        {"asymd.interval", "SECTION.KEY=VALUE"},
        {"asymd.intervall=1ms", "did you mean 'interval'"},
        {"asymd.interval=1", "from 1ms to 60s"},
        {"asymd.interval=0ms", "from 1ms to 60s"},
        {"asymd.interval=61s", "from 1ms to 60s"},
        {"asymd.interval=1h", "from 1ms to 60s"},
        {"asymd.interval=-1s", "from 1ms to 60s"},
        {"asymd.cpu_budget=nan", "from 0.01 to 100"},
        {"asymd.cpu_budget=101", "from 0.01 to 100"},
        {"classify.serial_max_threads=auto", "a whole number from 1 to 1024"},
        {"classify.hp_threshold=0", "from 1 to 100000 or auto"},
        {"classify.hp_threshold=99999999999999999999", "from 1 to 100000 or auto"},
        {"classify.hp_threshold=1.5", "a whole number"},
        {"classify.estimator=Instnat", "did you mean 'instant'"},
        {"enforce.pin=socket", "cpu, llc, type or auto"},
        {"policy.pa.sp_boost=20", "from -20 to 19"},
        {"policy.pa.sp_bost=1", "did you mean 'sp_boost'"},
        {"policy.pq.x=1", "did you mean 'policy.pa'"},
        {"counters.x=1", "accepted here are profiles, max_fds"},
        {"rule a.action=fast", "unknown section"},
        {"asymd.state_dir=/a ;b", "begins a comment"},
        {"asymd.state_dir=;b", "begins a comment"},
        {"asymd.state_dir=/a\nb", "control character"},
        {"asymd.policy=\x1b[2J", "control character"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_error err = {""};
        if (asym_settings_set(f->s, rows[i].assignment, "--set", &err) != -EINVAL)
            fail_msg("'%s' is accepted", rows[i].assignment);
        if (strncmp(err.text, "--set: ", 7) != 0 || !strstr(err.text, rows[i].words))
            fail_msg("'%s': %s", rows[i].assignment, err.text);
        assert_null(strpbrk(err.text, "\n\x1b"));
    }
    assert_defaults(f);
}

TEST_F(a_text_too_long_for_a_line_is_refused)
{
    char text[512] = "asymd.state_dir=/";
    struct asym_error err = {""};
    memset(text + strlen(text), 'x', ASYM_VALUE_MAX - 1);
    assert_int_equal(asym_settings_set(f->s, text, "--set", NULL), 0);
    text[strlen(text)] = 'x';
    assert_int_equal(asym_settings_set(f->s, text, "--set", &err), -EINVAL);
    assert_non_null(strstr(err.text, "at most 160 bytes"));
}

TEST_F(slow_speeds_are_shares_or_frequencies)
{
    static const struct {
        const char *text;
        double share;
        uint64_t khz;
    } rows[] = {{"50%", 0.5, 0},          {"12.5 %", 0.125, 0},  {"100%", 1, 0}, {"1400000kHz", 0, 1400000},
                {"1400 MHz", 0, 1400000}, {"1.4GHz", 0, 1400000}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_slow_speeds speeds;
        assert_int_equal(asym_slow_speeds_parse(rows[i].text, &speeds), 0);
        const struct asym_slow_speed speed = speeds.rest;
        assert_true(speed.share > rows[i].share - 1e-9 && speed.share < rows[i].share + 1e-9);
        assert_int_equal(speed.khz, rows[i].khz);
    }
}

TEST_F(slow_speeds_may_name_cpus)
{
    static const char *const bad[] = {
        "2-3:75% 3:50%", "75% 50%", "2-3:75%,4:50%", "2-3:", ":50%", "2-3:75 4:50%", "a:50%", ""};
    struct asym_slow_speeds speeds;
    assert_int_equal(asym_slow_speeds_parse(" 2-3,6:75% 4-5:1400MHz\t25% ", &speeds), 0);
    assert_true(asym_slow_speed_of(&speeds, 6)->share > 0.749 && asym_slow_speed_of(&speeds, 6)->share < 0.751);
    assert_int_equal(asym_slow_speed_of(&speeds, 4)->khz, 1400000);
    assert_true(asym_slow_speed_of(&speeds, 1)->share > 0.249 && asym_slow_speed_of(&speeds, 1)->share < 0.251);
    assert_int_equal(asym_slow_speeds_parse("2-3:75% 4-5:50%", &speeds), 0);
    assert_null(asym_slow_speed_of(&speeds, 1));
    for (size_t i = 0; i < ASYM_LENGTH(bad); i++)
        if (asym_slow_speeds_parse(bad[i], &speeds) != -EINVAL)
            fail_msg("accepted: %s", bad[i]);
}

TEST_F(speeds_of_cpus_are_read)
{
    double speed[ASYM_MAX_CPUS];
    struct asym_mask cpus;
    assert_int_equal(asym_speeds_parse("  0-1,4:1.5\t2-3:1 ", speed, &cpus), 0);
    assert_int_equal(cpus.w[0], 0x1f);
    assert_true(speed[4] > 1.49 && speed[4] < 1.51 && speed[2] > 0.99 && speed[2] < 1.01);
    assert_int_equal(asym_speeds_parse("", speed, &cpus), 0);
    assert_true(asym_mask_empty(&cpus));
}

TEST_F(a_share_is_a_percentage_and_printed_as_it_was_given)
{
    static const struct {
        const char *text;
        double share; /* 0: refused */
    } rows[] = {
        {"80%", 0.8},  {"100%", 1}, {"1%", 0.01}, {"66.7%", 0.667}, {"80", 0},   {"0.8", 0},
        {"100.5%", 0}, {"0%", 0},   {"-5%", 0},   {"%", 0},         {"8 0%", 0}, {"", 0},
    };
    assert_true(f->s->machine.fast_from > 0.799 && f->s->machine.fast_from < 0.801);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char assignment[64];
        struct asym_error err = {""};
        snprintf(assignment, sizeof assignment, "machine.fast_from=%s", rows[i].text);
        const int r = asym_settings_set(f->s, assignment, "--set", &err);
        assert_int_equal(r, rows[i].share > 0 ? 0 : -EINVAL);
        if (r < 0) {
            assert_non_null(strstr(err.text, "accepted is a share from 1% to 100%"));
            continue;
        }
        assert_true(f->s->machine.fast_from >= rows[i].share && f->s->machine.fast_from <= rows[i].share);
        for (const struct asym_option *o = asym_options; o->section; o++) {
            char text[64];
            if (strcmp(o->key, "fast_from") == 0)
                assert_string_equal(asym_option_format(o, f->s, text, sizeof text), rows[i].text);
        }
    }
}

TEST_F(an_error_of_the_combination_says_where_the_value_came_from)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"[asymd]\npolicy = mintpl\n", ":2: asymd.policy: there is no policy 'mintpl' (did you mean 'mintlp'?)"},
        {"[asymd]\npolicy = autp\n", "(did you mean 'auto'?)"},
        {"[asymd]\npolicy = stock\n",
         "(the stock scheduler alone is 'none'); accepted are auto, none, pa, mintlp, busyfcs, rr"},
        {"[asymd]\n\npolicy =\n", ":3: asymd.policy: there is no policy ''"},
        {"[asymmetry]\nslow = 0\n", ":2: asymmetry.slow: '0'"},
        {"[asymmetry]\nslow = 1024\n", ":2: asymmetry.slow: '1024'"},
        {"[asymmetry]\nslow = 0-1024\n", ":2: asymmetry.slow: '0-1024'"},
        {"[asymmetry]\nslow = fast\n", ":2: asymmetry.slow: 'fast'"},
        {"[asymmetry]\nslow = -1\n", ":2: asymmetry.slow: '-1'"},
        {"[machine]\nspeeds = 0-3\n", ":2: machine.speeds: '0-3'"},
        {"[machine]\nspeeds = 0-3:2 3:1\n", "each CPU once"},
        {"[machine]\nspeeds = 0-3:-2\n", "above 0"},
        {"[machine]\nspeeds = 0-9999:1\n", "such as 0-7:1.6"},
        {"[asymmetry]\nslow_speed = 50\n", "a share such as 50%"},
        {"[asymmetry]\nslow_speed = 0%\n", "above 0%"},
        {"[asymmetry]\nslow_speed = 100.1%\n", "up to 100%"},
        {"[asymmetry]\nslow_speed = %\n", "a share such as 50%"},
        {"[asymmetry]\nslow_speed = 0MHz\n", "or a frequency such as 1400MHz"},
        {"[asymmetry]\nslow_speed = 1400 m\n", "or a frequency such as 1400MHz"},
        {"[asymmetry]\nslow_speed = 1400MHz\n", "a frequency needs asymmetry.method = cpufreq"},
        {"[asymmetry]\nmethod = clockmod\nslow_speed = 1400MHz\n", "a frequency needs asymmetry.method = cpufreq"},
        {"[asymd]\nstate_dir = run\n", "an absolute path"},
        {"[asymd]\nstate_dir =\n", "an absolute path"},
        {"[counters]\nprofiles = ~/profiles\n",
         "counters.profiles: '~/profiles' is not accepted; accepted is an absolute"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_error err = {""};
        asym_settings_free(f->s);
        assert_int_equal(asym_settings_new(&f->s), 0);
        load(f, rows[i].text);
        assert_int_equal(asym_settings_check(f->s, &err), -EINVAL);
        assert_int_equal(strncmp(err.text, f->file, strlen(f->file)), 0);
        if (!strstr(err.text, rows[i].words))
            fail_msg("%s does not hold %s", err.text, rows[i].words);
    }
}

TEST_F(every_policy_of_the_table_is_accepted)
{
    char assignment[128];
    for (size_t i = 0; asym_policy_at(i); i++) {
        snprintf(assignment, sizeof assignment, "asymd.policy=%s", asym_policy_at(i)->name);
        assert_int_equal(asym_settings_set(f->s, assignment, "--policy", NULL), 0);
        assert_int_equal(asym_settings_check(f->s, NULL), 0);
        assert_string_equal(f->s->daemon.policy, asym_policy_at(i)->name);
    }
    assert_non_null(asym_policy_at(0));
}

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
    ASYM_CLEANUP(tree_remove) struct tree tree;
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
    ASYM_CLEANUP(tree_remove) struct tree tree;
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
    ASYM_AUTO_FCLOSE FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(asym_settings_print(s, full), -EIO);
    assert_int_equal(asym_settings_print_sample(full), -EIO);
}

static char *sample(void)
{
    return PRINTED(asym_settings_print_sample(out));
}

TEST(the_installed_configuration_is_the_tables)
{
    char file[65536];
    assert_true(file_read(ASYM_TEST_BIN "/conf/asymd.conf", file, sizeof file) > 0);
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
    ASYM_CLEANUP(tree_remove) struct tree tree;
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
}

TEST_MAIN
