/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of asymd. */

#include "config/settings.h"
#include "daemon/asymd/mode.h"
#include "support/generate.h"
#include "support/test.h"

static int parse(char **argv, struct asym_invocation *ret_cli, struct asym_error *err)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    return asym_cli_parse(argc, argv, ret_cli, err);
}

TEST(without_arguments_it_explains_itself)
{
    ASYM_CLEANUP(asym_cli_done) struct asym_invocation cli;
    char *argv[] = {(char *)"asymd", NULL};
    assert_int_equal(parse(argv, &cli, NULL), 0);
    assert_int_equal(cli.mode, ASYM_MODE_OVERVIEW);
    assert_false(cli.json);
    assert_null(cli.config);
    assert_null(cli.root);
    assert_null(cli.topology);
    assert_int_equal(cli.n_pids + cli.n_assignments, 0);
}

TEST(each_mode_has_its_option)
{
    static const struct {
        const char *option;
        enum asym_mode mode;
    } modes[] = {
        {"--service", ASYM_MODE_SERVICE},
        {"--dry-run", ASYM_MODE_DRY_RUN},
        {"--once", ASYM_MODE_ONCE},
        {"--restore", ASYM_MODE_RESTORE},
        {"--check", ASYM_MODE_CHECK},
        {"--help", ASYM_MODE_HELP},
        {"--help-config", ASYM_MODE_HELP_CONFIG},
        {"-h", ASYM_MODE_HELP},
        {"--print-config", ASYM_MODE_PRINT_CONFIG},
        {"--version", ASYM_MODE_VERSION},
    };
    for (size_t i = 0; i < ASYM_LENGTH(modes); i++) {
        ASYM_CLEANUP(asym_cli_done) struct asym_invocation cli;
        char option[32];
        snprintf(option, sizeof option, "%s", modes[i].option);
        char *argv[] = {(char *)"asymd", option, option, NULL};
        assert_int_equal(parse(argv, &cli, NULL), 0);
        assert_int_equal(cli.mode, modes[i].mode);
    }
}

TEST(everything_at_once)
{
    ASYM_CLEANUP(asym_cli_done) struct asym_invocation cli;
    char *argv[] = {(char *)"asymd",         (char *)"--dry-run",      (char *)"--json",
                    (char *)"--config=/c",   (char *)"--policy=rr",    (char *)"--pid=17",
                    (char *)"--interval",    (char *)"20ms",           (char *)"--pid",
                    (char *)"2147483647",    (char *)"--slow=4-7",     (char *)"--slow-speed=25%",
                    (char *)"--root=/r",     (char *)"--topology=t.x", (char *)"--set=policy.pa.sp_boost=-5",
                    (char *)"--duration=1s", (char *)"--policy=pa",    NULL};
    static const struct asym_invocation_setting want[] = {
        {(char *)"asymd.policy=rr", "--policy"},    {(char *)"asymd.interval=20ms", "--interval"},
        {(char *)"asymmetry.slow=4-7", "--slow"},   {(char *)"asymmetry.slow_speed=25%", "--slow-speed"},
        {(char *)"policy.pa.sp_boost=-5", "--set"}, {(char *)"asymd.duration=1s", "--duration"},
        {(char *)"asymd.policy=pa", "--policy"},
    };
    assert_int_equal(parse(argv, &cli, NULL), 0);
    assert_int_equal(cli.mode, ASYM_MODE_DRY_RUN);
    assert_true(cli.json);
    assert_string_equal(cli.config, "/c");
    assert_string_equal(cli.root, "/r");
    assert_string_equal(cli.topology, "t.x");
    assert_int_equal(cli.n_pids, 2);
    assert_int_equal(cli.pids[0], 17);
    assert_int_equal(cli.pids[1], INT32_MAX);
    assert_int_equal(cli.n_assignments, ASYM_LENGTH(want));
    for (size_t i = 0; i < ASYM_LENGTH(want); i++) {
        assert_string_equal(cli.assignments[i].text, want[i].text);
        assert_string_equal(cli.assignments[i].origin, want[i].origin);
    }
}

TEST(an_empty_value_is_one_where_it_means_something)
{
    ASYM_CLEANUP(asym_cli_done) struct asym_invocation cli;
    char *argv[] = {(char *)"asymd", (char *)"--slow=", NULL};
    assert_int_equal(parse(argv, &cli, NULL), 0);
    assert_string_equal(cli.assignments[0].text, "asymmetry.slow=");
}

TEST(wrong_usage_is_refused_in_words)
{
    static const struct {
        const char *args[3];
        const char *words;
    } wrong[] = {
        {{"--dry"}, "did you mean '--dry-run'?"}, /* asymd accepts no abbreviations: a later option would break them */
        {{"--polcy=pa"}, "unknown option --polcy (did you mean '--policy'?"},
        {{"--slow_speed=1%"}, "did you mean '--slow-speed'?"},
        {{"--foo"}, "unknown option --foo; asymd --help lists them"}, /* not '--root' */
        {{"--"}, "unknown option --"},
        {{"-"}, "unknown option -"},
        {{"--=x"}, "unknown option --"},
        {{"--\x1b[2J"}, "unknown option --\\x1b[2J"},
        {{"status"}, "stray argument 'status'"},
        {{""}, "stray argument ''"},
        {{"--check", "now"}, "stray argument 'now'"},
        {{"--dry-run", "--once"}, "--dry-run and --once are given; asymd accepts one of them"},
        {{"--check", "--dry-run"}, "--check and --dry-run are given"},
        {{"--service", "--json"}, "--service does not take --json; accepted with --dry-run or --check"},
        {{"--json=yes"}, "--json takes no argument"},
        {{"--dry-run="}, "--dry-run takes no argument"},
        {{"--policy"}, "--policy needs an argument; accepted is --policy=NAME"},
        {{"--policy", "--json"}, "--policy needs an argument"},
        {{"--config="}, "--config needs an argument; accepted is --config=FILE"},
        {{"--set"}, "--set needs an argument; accepted is --set=SECTION.KEY=VALUE"},
        {{"--pid=x"}, "--pid: 'x' is not accepted; accepted is the number of a process"},
        {{"--pid=0"}, "--pid: '0'"},
        {{"--pid=-1"}, "--pid: '-1'"},
        {{"--pid=1,2"}, "--pid: '1,2'"},
        {{"--pid=2147483648"}, "--pid: '2147483648'"},
        {{"--pid", "1x"}, "--pid: '1x'"},
        {{"--json"}, "without a mode asymd does not take --json; accepted with --dry-run or --check"},
        {{"--duration=1s"}, "asymd does not take --duration; accepted with --dry-run, --once or --print-config"},
        {{"--policy=pa", "--duration=1s", "--json"}, "asymd does not take --duration"},
        {{"--root=/x"}, "asymd does not take --root; accepted with --dry-run or --check"},
        {{"--restore", "--pid=17"}, "accepted with --service, --dry-run, --once or --check"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(wrong); i++) {
        struct asym_invocation cli = {.n_pids = 77};
        struct asym_error err = {""};
        char *argv[5] = {(char *)"asymd"};
        for (size_t k = 0; k < 3 && wrong[i].args[k]; k++)
            argv[k + 1] = (char *)(uintptr_t)wrong[i].args[k];
        assert_int_equal(parse(argv, &cli, &err), -EINVAL);
        assert_int_equal(cli.n_pids, 77);
        if (!strstr(err.text, wrong[i].words))
            fail_msg("'%s' does not hold '%s'", err.text, wrong[i].words);
    }
}

/* A row for each option, with the modes that accept it. */
TEST(an_option_goes_with_the_modes_of_its_row)
{
    static const char *const modes[] = {NULL,      "--service",      "--dry-run", "--once",        "--restore",
                                        "--check", "--print-config", "--help",    "--help-config", "--version"};
    static const struct {
        const char *option, *taken; /* x: the mode accepts the option; the columns are in the order of the modes */
    } options[] = {
        {"--config=/c", "xxxxxxxxxx"}, {"--policy=pa", "xxxxxxxxxx"},      {"--interval=1s", "xxxxxxxxxx"},
        {"--slow=2", "xxxxxxxxxx"},    {"--slow-speed=50%", "xxxxxxxxxx"}, {"--set=asymd.policy=pa", "xxxxxxxxxx"},
        {"--pid=1", "xxxx-x-xxx"},     {"--duration=1s", "--xx--xxxx"},    {"--json", "--x--x-xxx"},
        {"--root=/r", "--x--x-xxx"},   {"--topology=t", "--x--x-xxx"},
    };
    struct asym_arg rows[ASYM_CLI_MAX_ROWS];
    size_t n_modes = 0;
    const size_t n_rows = asym_cli_rows(rows);
    for (size_t i = 0; i < n_rows; i++)
        n_modes += rows[i].modes == 0;
    if (ASYM_LENGTH(modes) - 1 != n_modes)
        fail_msg("asymd has %zu modes, the list modes above %zu: add the mode, and a column to each row of options",
                 n_modes, ASYM_LENGTH(modes) - 1);
    if (ASYM_LENGTH(options) != n_rows - n_modes)
        fail_msg("asymd has %zu other options, the table above %zu: add a row with the modes that take the option",
                 n_rows - n_modes, ASYM_LENGTH(options));
    for (size_t o = 0; o < ASYM_LENGTH(options); o++)
        for (size_t m = 0; m < ASYM_LENGTH(modes); m++) {
            struct asym_invocation cli;
            struct asym_error err = {""};
            char *option = (char *)(uintptr_t)options[o].option, *mode = (char *)(uintptr_t)modes[m];
            char *before[] = {(char *)"asymd", option, mode, NULL};
            char *behind[] = {(char *)"asymd", mode ? mode : option, option, NULL};
            char **const orders[] = {before, behind};
            for (size_t k = 0; k < ASYM_LENGTH(orders); k++) {
                const int r = parse(orders[k], &cli, &err);
                if (r == 0)
                    asym_cli_done(&cli);
                if (r != (options[o].taken[m] == 'x' ? 0 : -EINVAL))
                    fail_msg("%s %s: %d, but the table says '%c'", mode ? mode : "no mode", option, r,
                             options[o].taken[m]);
            }
            if (options[o].taken[m] != 'x')
                assert_non_null(strstr(err.text, "--dry-run"));
        }
}

typedef int print_fn(const struct asym_terminal *terminal);

static char *printed_by(print_fn *print, size_t columns)
{
    return PRINTED(print(&(struct asym_terminal){.out = out, .columns = columns}));
}

static int is_in_help(void *ctx, const char *section, const struct asym_option *row, const char *value,
                      const char *origin)
{
    char want[128];
    snprintf(want, sizeof want, "\n  %s.%s=%s", section, row->key, value);
    const char *found = strstr(ctx, want);
    assert_non_null(found);
    assert_non_null(strchr(" \n", found[strlen(want)]));
    return 0;
}

TEST(help_holds_every_row_and_names_the_page_of_the_options)
{
    struct asym_arg rows[ASYM_CLI_MAX_ROWS];
    ASYM_AUTO_FREE char *text = printed_by(asym_cli_help, 200);
    asym_cli_rows(rows);
    for (const struct asym_arg *row = rows; row->option.key; row++) {
        char want[64];
        snprintf(want, sizeof want, "\n  %s%s%s ", row->option.key, row->argument ? "=" : "",
                 row->argument ? row->argument : "");
        assert_non_null(strstr(text, want));
        assert_non_null(strstr(text, row->option.help));
    }
    assert_non_null(strstr(text, "\nasymd --help-config prints the options"));
}

TEST(help_config_holds_every_option)
{
    struct asym_settings *s;
    ASYM_AUTO_FREE char *text = printed_by(asym_cli_help_config, ASYM_COLUMNS_DEFAULT);
    assert_int_equal(asym_settings_new(&s), 0);
    assert_int_equal(asym_settings_each(s, is_in_help, text), 0);
    asym_settings_free(s);
}

/* A terminal of 60 lines shows all of --help. */
TEST(help_fits_terminals_of_60_lines_and_any_width)
{
    print_fn *const pages[] = {asym_cli_help, asym_cli_help_config};
    for (size_t columns = ASYM_COLUMNS_LEAST; columns <= 120; columns += 20) {
        for (size_t i = 0; i < ASYM_LENGTH(pages); i++) {
            ASYM_AUTO_FREE char *text = printed_by(pages[i], columns);
            unsigned lines = 0;
            for (char *line = text; *line; line = strchrnul(line, '\n') + 1, lines++)
                assert_true(strchrnul(line, '\n') - line <= (ptrdiff_t)columns);
            assert_true(i > 0 || lines < 60);
        }
    }
}

TEST(any_arguments_end_in_a_result_or_a_message)
{
    struct asym_arg rows[ASYM_CLI_MAX_ROWS];
    const size_t n_rows = asym_cli_rows(rows);
    struct gen seed = {.state = 4711};
    for (unsigned run = 0; run < 20000; run++) {
        char words[6][24];
        char *argv[7] = {words[0]};
        struct asym_invocation cli;
        struct asym_error err = {""};
        int argc = 1 + (int)(gen_next(&seed) % 5);
        for (int i = 0; i < argc; i++) {
            const struct asym_arg *row = &rows[gen_next(&seed) % n_rows];
            snprintf(words[i], sizeof words[i], "%s%s", row->option.key, gen_next(&seed) % 2 ? "=1" : "");
            if (gen_next(&seed) % 3 == 0)
                words[i][gen_next(&seed) % strlen(words[i])] = (char)(1 + gen_next(&seed) % 255);
            argv[i] = words[i];
        }
        int r = asym_cli_parse(argc, argv, &cli, &err);
        if (r == 0) {
            asym_cli_done(&cli);
            continue;
        }
        assert_int_equal(r, -EINVAL);
        assert_true(*err.text);
        for (const char *c = err.text; *c; c++)
            assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
    }
}

TEST_MAIN
