/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/mode.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/settings-setup.h"
#include "base/macro.h"
#include "base/text.h"
#include "config/settings.h"

/* The modes of asymd, and its command line. */

const struct asym_mode_entry *const asym_modes[] = {
#define ASYM_MODE(NAME, name) &asym_mode_##name,
#include "daemon/asymd/modes.def"
#undef ASYM_MODE
};

enum asym_exit asym_mode_fail(const struct asym_run *run, int error, const struct asym_error *err)
{
    asym_log_say(&run->log, LOG_ERR, "%s", err->text);
    return asym_exit_status(error);
}

enum asym_exit asym_mode_reported(const struct asym_run *run, int r)
{
    if (r >= 0 || ferror(stdout))
        return ASYM_EXIT_DONE;
    asym_log_say(&run->log, LOG_ERR, "cannot report: %s", strerror(-r));
    return ASYM_EXIT_FAILED;
}

/* Modes as bits of asym_arg.modes. */
enum {
    SERVICE = 1 << ASYM_MODE_SERVICE,
    DRY_RUN = 1 << ASYM_MODE_DRY_RUN,
    ONCE = 1 << ASYM_MODE_ONCE,
    CHECK = 1 << ASYM_MODE_CHECK,
    PRINT = 1 << ASYM_MODE_PRINT_CONFIG,
    /* Without a mode asymd explains what the service would do, so it takes what the service takes. */
    EXPLAIN = 1 << ASYM_MODE_OVERVIEW,
    STEER = SERVICE | EXPLAIN | ONCE,
    /*
     * Each mode that reads the configuration. --restore uses few settings but accepts all: an option of the service must not keep
     * it from restoring.
     */
    READ_SETTINGS = 1 << ASYM_N_MODES,
};

static int assign(struct asym_invocation *cli, const char *key, const char *value, const char *origin)
{
    struct asym_invocation_setting *grown = reallocarray(cli->assignments, cli->n_assignments + 1, sizeof *grown);
    char *text = NULL;
    if (!grown)
        return -ENOMEM;
    cli->assignments = grown;
    if (asprintf(&text, "%s%s%s", key, *key ? "=" : "", value) < 0)
        return -ENOMEM;
    cli->assignments[cli->n_assignments++] = (struct asym_invocation_setting){.text = text, .origin = origin};
    return 0;
}

static int parse_set(const struct asym_option *row, void *base, const char *value)
{
    return assign(base, "", value, row->key);
}

/* --slow-speed sets the key slow_speed of its section. */
static int parse_setting(const struct asym_option *row, void *base, const char *value)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", row->section, row->key + strlen("--"));
    for (char *dash = strchr(key, '-'); dash; dash = strchr(dash, '-'))
        *dash = '_';
    return assign(base, key, value, row->key);
}

static int parse_pid(const struct asym_option *row, void *base, const char *value)
{
    return asym_run_add_pid(base, value);
}

static int parse_mode(const struct asym_option *row, void *base, const char *value)
{
    struct asym_invocation *cli = base;
    size_t mode = 0;
    while (!asym_modes[mode]->name || strcmp(asym_modes[mode]->name, row->key) != 0)
        mode++;
    /* A second mode stays in cli->given, where check_together finds it. */
    if (!asym_modes[cli->mode]->name)
        cli->mode = (unsigned)mode;
    return 0;
}

/* The last arguments of a row: the field that it sets, or the function that takes it, as does that of a setting. */
#define STRING(field)    .type = ASYM_OPTION_STRING, .offset = offsetof(struct asym_invocation, field)
#define BOOL(field)      .type = ASYM_OPTION_BOOL, .offset = offsetof(struct asym_invocation, field)
#define CUSTOM(function) .type = ASYM_OPTION_CUSTOM, .parse = function
#define SETTING(of)      .type = ASYM_OPTION_CUSTOM, .parse = parse_setting, .section = of
#define ROW(key_, argument_, modes_, help_, ...)                                                                       \
    {                                                                                                                  \
        .option = {.key = key_, .help = help_, __VA_ARGS__}, .argument = argument_, .modes = modes_                    \
    }

static const struct asym_arg options[] = {
    ROW("--config", "FILE", READ_SETTINGS, "configuration to read, and then rules.d/*.conf beside it", STRING(config)),
    ROW("--policy", "NAME", READ_SETTINGS, "policy to use, see asymctl policies", SETTING("asymd")),
    ROW("--interval", "TIME", READ_SETTINGS, "time between two samples, such as 100ms", SETTING("asymd")),
    ROW("--duration", "TIME", DRY_RUN | ONCE | PRINT, "how long asymd observes, such as 500ms", SETTING("asymd")),
    ROW("--json", NULL, DRY_RUN | CHECK, "print JSON", BOOL(json)),
    ROW("--pid", "PID", STEER | DRY_RUN | CHECK, "only this process and its descendants; may be repeated",
        CUSTOM(parse_pid), .accepted = "the number of a process"),
    ROW("--slow", "N|LIST", READ_SETTINGS, "count N CPUs, or those of a list (4-7; 4-4 for one), as slow",
        SETTING("asymmetry")),
    ROW("--slow-speed", "SHARE", READ_SETTINGS, "how fast the slow CPUs then are, such as 50%", SETTING("asymmetry")),
    ROW("--root", "DIR", DRY_RUN | CHECK, "read /proc and /sys of a captured machine below DIR", STRING(root)),
    ROW("--topology", "FILE", DRY_RUN | CHECK, "read the machine from a file of hwloc XML", STRING(topology)),
    ROW("--set", "SECTION.KEY=VALUE", READ_SETTINGS, "set any option of the configuration; may be repeated",
        CUSTOM(parse_set)),
};

static_assert(ASYM_N_MODES + ASYM_LENGTH(options) < ASYM_CLI_MAX_ROWS, "asym_invocation.given has a bit for each row");

static unsigned modes_that_read_settings(void)
{
    unsigned modes = 0;
    for (size_t i = 0; i < ASYM_N_MODES; i++)
        if (asym_modes[i]->needs != ASYM_NEEDS_NOTHING)
            modes |= 1u << i;
    return modes;
}

size_t asym_cli_rows(struct asym_arg ret[ASYM_CLI_MAX_ROWS])
{
    size_t n = 0;
    for (size_t i = 0; i < ASYM_N_MODES; i++)
        if (asym_modes[i]->name)
            ret[n++] = (struct asym_arg){.option = {.key = asym_modes[i]->name,
                                                    .type = ASYM_OPTION_CUSTOM,
                                                    .parse = parse_mode,
                                                    .help = asym_modes[i]->help}};
    for (size_t i = 0; i < ASYM_LENGTH(options); i++) {
        ret[n] = options[i];
        if (options[i].modes == READ_SETTINGS)
            ret[n].modes = modes_that_read_settings();
        n++;
    }
    ret[n] = (struct asym_arg){.option = {.key = NULL}};
    return n;
}

/* "--dry-run, --once or --print-config". */
static const char *modes_text(unsigned modes, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    for (size_t i = 0; i < ASYM_N_MODES; i++) {
        if (!(modes >> i & 1) || !asym_modes[i]->name)
            continue;
        const unsigned behind = modes >> i >> 1;
        const char *separator = !behind ? "" : behind & (behind - 1) ? ", " : " or ";
        asym_text_add(&text, "%s%s", asym_modes[i]->name, separator);
    }
    return buf;
}

const char *asym_cli_row_modes(const struct asym_arg *row, char *buf, size_t size)
{
    return modes_text(row->modes & SERVICE ? 0 : row->modes, buf, size);
}

void asym_cli_done(struct asym_invocation *cli)
{
    for (size_t i = 0; i < cli->n_assignments; i++)
        free(cli->assignments[i].text);
    free(cli->assignments);
    free(cli->pids);
    *cli = (struct asym_invocation){0};
}

static int help_option(void *ctx, const char *section, const struct asym_option *row, const char *value,
                       const char *origin)
{
    char option[128];
    snprintf(option, sizeof option, "%s.%s=%s", section, row->key, value);
    asym_args_line(ctx, 30, option, row->help);
    return 0;
}

int asym_cli_help(const struct asym_terminal *terminal)
{
    struct asym_arg rows[ASYM_CLI_MAX_ROWS];
    fputs("usage: asymd [OPTION...]\n\n", terminal->out);
    asym_columns_text(
        terminal, "Steers threads on CPUs that differ in speed. Only --service steers until it is stopped; without a "
                  "mode asymd says what the service would do, and changes nothing.\n\n");
    asym_cli_rows(rows);
    for (const struct asym_arg *row = rows; row->option.key; row++) {
        char name[64], modes[128], help[256];
        asym_cli_row_modes(row, modes, sizeof modes);
        snprintf(help, sizeof help, "%s%s%s%s", row->option.help, *modes ? " (with " : "", modes, *modes ? ")" : "");
        asym_args_line(terminal, 26, asym_args_name(row, name, sizeof name), help);
    }
    asym_columns_text(terminal,
                      "\nasymd --help-config prints the options of the configuration and of each policy, for --set.\n"
                      "\nExit status: 0 done; 1 failed; 2 wrong usage or configuration; 3 this machine lacks a signal "
                      "(a measurement) that the policy needs; 4 not permitted.\n");
    return ferror(terminal->out) ? -EIO : 0;
}

int asym_cli_help_config(const struct asym_terminal *terminal)
{
    struct asym_settings *defaults;
    int r = asym_settings_new(&defaults);
    if (r < 0)
        return r;
    asym_columns_text(terminal, "Options of the configuration with their defaults, for --set and asymd.conf(5):\n\n");
    asym_settings_each(defaults, help_option, (void *)(uintptr_t)terminal);
    asym_settings_free(defaults);
    asym_columns_text(terminal, "\nA highly parallel program has more than hp_threshold runnable threads, a mildly "
                                "parallel one has fewer. Serial "
                                "phase: a parallel program has one runnable thread, for which the others wait.\n");
    return ferror(terminal->out) ? -EIO : 0;
}

static int take_argument(struct asym_invocation *cli, const struct asym_arg *rows, int argc, char **argv, int *at,
                         struct asym_error *err)
{
    size_t row;
    char text[128];
    if (strcmp(argv[*at], "-h") == 0)
        argv[*at] = (char *)(uintptr_t)asym_mode_help.name;
    int r = asym_args_take(rows, argc, argv, at, cli, &row, err);
    if (r > 0)
        cli->given |= UINT32_C(1) << row;
    if (r != 0)
        return r;
    if (argv[*at][0] == '-')
        return asym_args_unknown(rows, argv[*at], "; asymd --help lists them", err);
    return asym_fail(err, -EINVAL, "stray argument '%s'; asymd takes options only, asymd --help lists them",
                     asym_text_show(argv[*at], text, sizeof text));
}

static bool is_mode(const struct asym_arg *row)
{
    return row->modes == 0;
}

/* Refuses a second mode, and an option that the mode does not use: the user meant another mode. */
static int check_together(const struct asym_invocation *cli, const struct asym_arg *rows, struct asym_error *err)
{
    const struct asym_mode_entry *mode = asym_modes[cli->mode];
    char accepted[128];
    for (size_t i = 0; rows[i].option.key; i++) {
        const struct asym_arg *row = &rows[i];
        if (!(cli->given >> i & 1))
            continue;
        if (is_mode(row) && strcmp(row->option.key, mode->name) != 0)
            return asym_fail(err, -EINVAL, "%s and %s are given; asymd accepts one of them", mode->name,
                             row->option.key);
        if (is_mode(row) || mode->needs == ASYM_NEEDS_NOTHING || row->modes >> cli->mode & 1)
            continue;
        return asym_fail(err, -EINVAL, "%s does not take %s; accepted with %s",
                         mode->name ? mode->name : "without a mode asymd", row->option.key,
                         modes_text(row->modes, accepted, sizeof accepted));
    }
    return 0;
}

int asym_cli_parse(int argc, char **argv, struct asym_invocation *ret_cli, struct asym_error *err)
{
    struct asym_arg rows[ASYM_CLI_MAX_ROWS];
    struct asym_invocation cli = {.mode = ASYM_MODE_OVERVIEW};
    int r = 0;
    asym_cli_rows(rows);
    for (int i = 1; r >= 0 && i < argc; i++)
        r = take_argument(&cli, rows, argc, argv, &i, err);
    if (r >= 0)
        r = check_together(&cli, rows, err);
    if (r < 0) {
        asym_cli_done(&cli);
        return r;
    }
    *ret_cli = cli;
    return 0;
}

/* The modes that only print a text, behind the table that --help prints. */

static enum asym_exit help(struct asym_run *run)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    return asym_mode_reported(run, asym_cli_help(&terminal));
}

const struct asym_mode_entry asym_mode_help = {
    .name = "--help", .help = "print this text", .run = help, .needs = ASYM_NEEDS_NOTHING};

static enum asym_exit help_config(struct asym_run *run)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    return asym_mode_reported(run, asym_cli_help_config(&terminal));
}

const struct asym_mode_entry asym_mode_help_config = {
    .name = "--help-config",
    .help = "print the options of the configuration, with defaults",
    .run = help_config,
    .needs = ASYM_NEEDS_NOTHING,
};

static enum asym_exit print_config(struct asym_run *run)
{
    return asym_mode_reported(run, asym_settings_print(run->settings, stdout));
}

const struct asym_mode_entry asym_mode_print_config = {
    .name = "--print-config",
    .help = "print the effective configuration, and the origin of each line",
    .run = print_config,
    .needs = ASYM_NEEDS_CONFIGURATION,
};

static enum asym_exit version(struct asym_run *run)
{
    puts("asymd " ASYM_VERSION);
    return ASYM_EXIT_DONE;
}

const struct asym_mode_entry asym_mode_version = {
    .name = "--version", .help = "print the version", .run = version, .needs = ASYM_NEEDS_NOTHING};
