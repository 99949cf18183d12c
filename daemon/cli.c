/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <asym/settings.h>

#include "base/macro.h"
#include "base/parse.h"
#include "settings/nearest.h"

enum what { MODE, JSON, CONFIG, ROOT, TOPOLOGY, PID, SET, SETTING };

/* Modes, as bits. */
enum {
    SERVICE = 1 << ASYM_MODE_SERVICE,
    DRY_RUN = 1 << ASYM_MODE_DRY_RUN,
    ONCE = 1 << ASYM_MODE_ONCE,
    RESTORE = 1 << ASYM_MODE_RESTORE,
    CHECK = 1 << ASYM_MODE_CHECK,
    PRINT = 1 << ASYM_MODE_PRINT_CONFIG,
    STEER = SERVICE | ONCE,
    /* --restore takes every setting, though it heeds few: a setting of the service must not keep it from putting back. */
    READ_SETTINGS = STEER | RESTORE | DRY_RUN | CHECK | PRINT,
};

static const struct {
    struct asym_cli_row row;
    enum what what;
    enum asym_mode mode; /* of MODE */
    const char *key;     /* of SETTING: SECTION.KEY */
} rows[] = {
    {{"--dry-run", NULL, "observe, print one planned mapping, change nothing", 0}, MODE, ASYM_MODE_DRY_RUN, NULL},
    {{"--once", NULL, "observe, enforce one plan, leave the ledger for --restore", 0}, MODE, ASYM_MODE_ONCE, NULL},
    {{"--restore", NULL, "put back everything the ledger holds", 0}, MODE, ASYM_MODE_RESTORE, NULL},
    {{"--check", NULL, "what this machine offers and lacks, with remedies", 0}, MODE, ASYM_MODE_CHECK, NULL},
    {{"--print-config", NULL, "the effective configuration, and where each line came from", 0},
     MODE,
     ASYM_MODE_PRINT_CONFIG,
     NULL},
    {{"--help", NULL, "this text", 0}, MODE, ASYM_MODE_HELP, NULL},
    {{"--version", NULL, "the version", 0}, MODE, ASYM_MODE_VERSION, NULL},
    {{"--config", "FILE", "configuration to read, then rules.d/*.conf beside it", READ_SETTINGS}, CONFIG, 0, NULL},
    {{"--policy", "NAME", "policy to use, see asymctl policies", READ_SETTINGS}, SETTING, 0, "asymd.policy"},
    {{"--interval", "TIME", "time between two looks, such as 100ms", READ_SETTINGS}, SETTING, 0, "asymd.interval"},
    {{"--duration", "TIME", "how long it observes, such as 500ms", DRY_RUN | ONCE | PRINT},
     SETTING,
     0,
     "asymd.duration"},
    {{"--json", NULL, "print JSON", DRY_RUN | CHECK}, JSON, 0, NULL},
    {{"--pid", "PID", "only this process and its descendants; may be repeated", STEER | DRY_RUN | CHECK}, PID, 0, NULL},
    {{"--slow", "N|LIST", "take N CPUs, or those of a list (4-7; 4-4 for one), for slower", READ_SETTINGS},
     SETTING,
     0,
     "asymmetry.slow"},
    {{"--slow-speed", "SHARE", "how fast these then are, such as 50%", READ_SETTINGS},
     SETTING,
     0,
     "asymmetry.slow_speed"},
    {{"--root", "DIR", "read /proc and /sys of a captured machine", DRY_RUN | CHECK}, ROOT, 0, NULL},
    {{"--topology", "FILE", "take the machine from hwloc XML", DRY_RUN | CHECK}, TOPOLOGY, 0, NULL},
    {{"--set", "SECTION.KEY=VALUE", "set any option; may be repeated", READ_SETTINGS}, SET, 0, NULL},
};

static_assert(ASYM_LENGTH(rows) <= 32, "asym_cli.given has a bit for each row");

const struct asym_cli_row *asym_cli_row_at(size_t i)
{
    return i < ASYM_LENGTH(rows) ? &rows[i].row : NULL;
}

static bool is_mode_in(size_t i, unsigned modes)
{
    return rows[i].what == MODE && modes >> rows[i].mode & 1;
}

/* "--dry-run, --once or --print-config". */
static const char *modes_text(unsigned modes, char *buf, size_t size)
{
    size_t left = 0, len = 0;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        left += is_mode_in(i, modes);
    *buf = '\0';
    for (size_t i = 0; i < ASYM_LENGTH(rows) && len < size; i++) {
        if (!is_mode_in(i, modes))
            continue;
        left--;
        len += (size_t)snprintf(buf + len, size - len, "%s%s", rows[i].row.name,
                                left > 1 ? ", " : (left == 1 ? " or " : ""));
    }
    return buf;
}

const char *asym_cli_row_modes(const struct asym_cli_row *row, char *buf, size_t size)
{
    return modes_text(row->modes & SERVICE ? 0 : row->modes, buf, size);
}

void asym_cli_done(struct asym_cli *cli)
{
    for (size_t i = 0; i < cli->n_assignments; i++)
        free(cli->assignments[i].text);
    free(cli->assignments);
    free(cli->pids);
    *cli = (struct asym_cli){0};
}

/* what in a column of that width, or on a line of its own when it is wider, then text wrapped at 100. */
static void help_line(FILE *out, int width, const char *what, const char *text)
{
    int room = 100 - width - 3, n = (int)strlen(text);
    /* What is too long for its column has a line to itself. */
    if (strlen(what) > (size_t)width)
        fprintf(out, "  %s\n%*s", what, width + 3, "");
    else
        fprintf(out, "  %-*s ", width, what);
    while (n > room) {
        int cut = room;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        cut = cut > 0 ? cut : room;
        fprintf(out, "%.*s\n%*s", cut, text, width + 3, "");
        text += cut + (text[cut] == ' ');
        n = (int)strlen(text);
        room = 100 - width - 3;
    }
    fprintf(out, "%s\n", text);
}

static int help_option(void *ctx, const char *section, const struct asym_option *row, const char *value,
                       const char *origin)
{
    char option[128];
    (void)origin;
    snprintf(option, sizeof option, "%s.%s=%s", section, row->key, value);
    help_line(ctx, 30, option, row->help);
    return 0;
}

int asym_cli_help(FILE *out)
{
    struct asym_settings *defaults;
    int r = asym_settings_new(&defaults);
    if (r < 0)
        return r;
    fputs("usage: asymd [OPTION...]\n\nSteers threads on CPUs that differ in speed. Without a mode it runs as the "
          "service.\n\n",
          out);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char option[64], modes[128], help[256];
        const struct asym_cli_row *row = &rows[i].row;
        snprintf(option, sizeof option, "%s%s%s", row->name, row->argument ? "=" : "",
                 row->argument ? row->argument : "");
        asym_cli_row_modes(row, modes, sizeof modes);
        snprintf(help, sizeof help, "%s%s%s%s", row->help, *modes ? " (with " : "", modes, *modes ? ")" : "");
        help_line(out, 26, option, help);
    }
    fputs("\nOptions of the configuration with their defaults, for --set and asymd.conf(5):\n\n", out);
    asym_settings_each(defaults, help_option, out);
    asym_settings_free(defaults);
    fputs("\nExit status: 0 done; 1 failed; 2 wrong usage or configuration; 3 a signal is missing;\n"
          "4 not permitted.\n",
          out);
    return ferror(out) ? -EIO : 0;
}

static int add_assignment(struct asym_cli *cli, const char *key, const char *value, const char *origin,
                          struct asym_error *err)
{
    struct asym_cli_assignment *grown = reallocarray(cli->assignments, cli->n_assignments + 1, sizeof *grown);
    char *text = NULL;
    if (!grown)
        return asym_fail(err, -ENOMEM, "no memory");
    cli->assignments = grown;
    if (asprintf(&text, "%s%s%s", key, *key ? "=" : "", value) < 0)
        return asym_fail(err, -ENOMEM, "no memory");
    cli->assignments[cli->n_assignments++] = (struct asym_cli_assignment){.text = text, .origin = origin};
    return 0;
}

static const char *shown(const char *text, char *buf, size_t size)
{
    return asym_text_escape(text, strlen(text), buf, size);
}

static int add_pid(struct asym_cli *cli, const char *value, struct asym_error *err)
{
    uint64_t pid;
    char text[128];
    if (asym_parse_u64(value, strlen(value), &pid) < 0 || pid == 0 || pid > INT32_MAX)
        return asym_fail(err, -EINVAL, "--pid: '%s' is not accepted; accepted is the number of a process",
                         shown(value, text, sizeof text));
    int32_t *grown = reallocarray(cli->pids, cli->n_pids + 1, sizeof *grown);
    if (!grown)
        return asym_fail(err, -ENOMEM, "no memory");
    cli->pids = grown;
    cli->pids[cli->n_pids++] = (int32_t)pid;
    return 0;
}

static const char *mode_name(enum asym_mode mode)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].what == MODE && rows[i].mode == mode)
            return rows[i].row.name;
    return "the service";
}

static int take(struct asym_cli *cli, size_t i, const char *value, struct asym_error *err)
{
    const char *name = rows[i].row.name;
    cli->given |= UINT32_C(1) << i;
    switch (rows[i].what) {
    case MODE:
        if (cli->mode != ASYM_MODE_SERVICE && cli->mode != rows[i].mode)
            return asym_fail(err, -EINVAL, "%s and %s are given; accepted is one of them", mode_name(cli->mode), name);
        cli->mode = rows[i].mode;
        return 0;
    case JSON:
        cli->json = true;
        return 0;
    case CONFIG:
        cli->config = value;
        return 0;
    case ROOT:
        cli->root = value;
        return 0;
    case TOPOLOGY:
        cli->topology = value;
        return 0;
    case PID:
        return add_pid(cli, value, err);
    case SET:
        return add_assignment(cli, "", value, name, err);
    case SETTING:
        return add_assignment(cli, rows[i].key, value, name, err);
    }
    return -EINVAL;
}

static int unknown(const char *arg, size_t len, struct asym_error *err)
{
    char given[64], text[256], hint[64];
    snprintf(given, sizeof given, "%.*s", (int)ASYM_MIN(len, sizeof given - 1), arg);
    struct asym_nearest n = {.wanted = given};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        asym_nearest_consider(&n, rows[i].row.name);
    asym_nearest_hint(&n, hint, sizeof hint);
    return asym_fail(err, -EINVAL, "unknown option %s%s", shown(given, text, sizeof text),
                     *hint ? hint : "; asymd --help lists them");
}

/* The value in the argument itself or in the next one; an option in its place means that it was forgotten. */
static int take_value(struct asym_cli *cli, size_t row, const char *value, int argc, char **argv, int *at,
                      struct asym_error *err)
{
    const char *name = rows[row].row.name, *argument = rows[row].row.argument;
    if (!argument)
        return value ? asym_fail(err, -EINVAL, "%s takes no argument", name) : take(cli, row, NULL, err);
    if (!value && *at + 1 < argc && strncmp(argv[*at + 1], "--", 2) != 0)
        value = argv[++*at];
    if (!value || (!*value && rows[row].what != SETTING))
        return asym_fail(err, -EINVAL, "%s needs an argument; accepted is %s=%s", name, name, argument);
    return take(cli, row, value, err);
}

/*
 * By hand rather than by getopt_long: that prints by itself, keeps globals, and accepts abbreviations, which a later
 * option breaks.
 */
static int take_argument(struct asym_cli *cli, int argc, char **argv, int *at, struct asym_error *err)
{
    const char *arg = argv[*at], *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    char text[128];
    if (strcmp(arg, "-h") == 0) {
        arg = "--help";
        len = strlen(arg);
    }
    if (arg[0] != '-')
        return asym_fail(err, -EINVAL, "stray argument '%s'; asymd takes options only, asymd --help lists them",
                         shown(arg, text, sizeof text));
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (strlen(rows[i].row.name) == len && memcmp(rows[i].row.name, arg, len) == 0)
            return take_value(cli, i, equals ? equals + 1 : NULL, argc, argv, at, err);
    return unknown(arg, len, err);
}

/*
 * An option that the mode has no use for is refused: the user meant another mode. Above all without one, where asymd would
 * begin to steer the whole machine for a user who asked for a page of JSON.
 */
static int check_together(const struct asym_cli *cli, struct asym_error *err)
{
    char accepted[128];
    if (cli->mode == ASYM_MODE_HELP || cli->mode == ASYM_MODE_VERSION)
        return 0;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_cli_row *row = &rows[i].row;
        if (rows[i].what == MODE || !(cli->given >> i & 1) || row->modes >> cli->mode & 1)
            continue;
        modes_text(row->modes, accepted, sizeof accepted);
        if (cli->mode == ASYM_MODE_SERVICE)
            return asym_fail(err, -EINVAL,
                             "without a mode asymd runs as the service, which does not take %s; accepted with %s",
                             row->name, accepted);
        return asym_fail(err, -EINVAL, "%s does not take %s; accepted %s%s", mode_name(cli->mode), row->name,
                         row->modes & SERVICE ? "without a mode, or with " : "with ", accepted);
    }
    return 0;
}

int asym_cli_parse(int argc, char **argv, struct asym_cli *ret_cli, struct asym_error *err)
{
    struct asym_cli cli = {.mode = ASYM_MODE_SERVICE};
    int r = 0;
    for (int i = 1; r >= 0 && i < argc; i++)
        r = take_argument(&cli, argc, argv, &i, err);
    if (r >= 0)
        r = check_together(&cli, err);
    if (r < 0) {
        asym_cli_done(&cli);
        return r;
    }
    *ret_cli = cli;
    return 0;
}
