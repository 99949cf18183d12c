/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/cli.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"

enum what { MODE, JSON, CONFIG, ROOT, TOPOLOGY, PID, SET, SETTING };

static const struct {
    struct asym_cli_row row;
    enum what what;
    int mode;        /* of MODE */
    const char *key; /* of SETTING: SECTION.KEY */
} rows[] = {
    {{"dry-run", NULL, "observe, print one planned mapping, change nothing"}, MODE, ASYM_MODE_DRY_RUN, NULL},
    {{"once", NULL, "observe, enforce one plan, leave the ledger for --restore"}, MODE, ASYM_MODE_ONCE, NULL},
    {{"restore", NULL, "put back everything the ledger holds"}, MODE, ASYM_MODE_RESTORE, NULL},
    {{"check", NULL, "what this machine offers and lacks, with remedies"}, MODE, ASYM_MODE_CHECK, NULL},
    {{"print-config", NULL, "the effective configuration, and where each line came from"},
     MODE,
     ASYM_MODE_PRINT_CONFIG,
     NULL},
    {{"help", NULL, "this text"}, MODE, ASYM_MODE_HELP, NULL},
    {{"version", NULL, "the version"}, MODE, ASYM_MODE_VERSION, NULL},
    {{"config", "FILE", "configuration to read, then rules.d/*.conf beside it"}, CONFIG, 0, NULL},
    {{"policy", "NAME", "policy to use, see asymctl policies"}, SETTING, 0, "asymd.policy"},
    {{"interval", "TIME", "time between two looks, such as 100ms"}, SETTING, 0, "asymd.interval"},
    {{"duration", "TIME", "how long a dry run observes, such as 500ms"}, SETTING, 0, "asymd.duration"},
    {{"json", NULL, "print JSON"}, JSON, 0, NULL},
    {{"pid", "PID", "only this process and its descendants; may be repeated"}, PID, 0, NULL},
    {{"slow", "N|LIST", "take N CPUs, or those of a list (4-7; 4-4 for one), for slower"},
     SETTING,
     0,
     "asymmetry.slow"},
    {{"slow-speed", "SHARE", "how slow these are, such as 50%"}, SETTING, 0, "asymmetry.slow_speed"},
    {{"root", "DIR", "read /proc and /sys of a captured machine"}, ROOT, 0, NULL},
    {{"topology", "FILE", "take the machine from hwloc XML"}, TOPOLOGY, 0, NULL},
    {{"set", "SECTION.KEY=VALUE", "set any option; may be repeated"}, SET, 0, NULL},
};

const struct asym_cli_row *asym_cli_row_at(size_t i)
{
    return i < ASYM_LENGTH(rows) ? &rows[i].row : NULL;
}

void asym_cli_done(struct asym_cli *cli)
{
    for (size_t i = 0; i < cli->n_assignments; i++)
        free(cli->assignments[i].text);
    free(cli->assignments);
    free(cli->pids);
    *cli = (struct asym_cli){0};
}

void asym_cli_help(FILE *out)
{
    fputs("usage: asymd [OPTION...]\n\nSteers threads on CPUs that differ in speed. Without a mode it runs as the "
          "service.\n\n",
          out);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char option[64];
        const struct asym_cli_row *row = &rows[i].row;
        snprintf(option, sizeof option, "--%s%s%s", row->name, row->argument ? "=" : "",
                 row->argument ? row->argument : "");
        fprintf(out, "  %-26s %s\n", option, row->help);
    }
    fputs("\nExit status: 0 done; 1 failed; 2 wrong usage or configuration; 3 a signal is missing; 4 not permitted.\n",
          out);
}

static int add_assignment(struct asym_cli *cli, const char *key, const char *value, const char *origin)
{
    struct asym_cli_assignment *grown = reallocarray(cli->assignments, cli->n_assignments + 1,
                                                     sizeof *cli->assignments);
    char *text = NULL;
    if (!grown)
        return -ENOMEM;
    cli->assignments = grown;
    if (asprintf(&text, "%s%s%s", key, *key ? "=" : "", value) < 0)
        return -ENOMEM;
    cli->assignments[cli->n_assignments++] = (struct asym_cli_assignment){.text = text, .origin = origin};
    return 0;
}

static int add_pid(struct asym_cli *cli, const char *value, struct asym_error *err)
{
    uint64_t pid;
    if (asym_parse_u64(value, strlen(value), &pid) < 0 || pid == 0 || pid > INT32_MAX)
        return asym_fail(err, -EINVAL, "--pid: '%.64s' is not a process number", value);
    int32_t *grown = reallocarray(cli->pids, cli->n_pids + 1, sizeof *grown);
    if (!grown)
        return asym_fail(err, -ENOMEM, "no memory");
    cli->pids = grown;
    cli->pids[cli->n_pids++] = (int32_t)pid;
    return 0;
}

static int take(struct asym_cli *cli, size_t i, const char *value, struct asym_error *err)
{
    static const char *const origins[] = {"--policy", "--interval", "--duration", "--slow", "--slow-speed", "--set"};
    const char *origin = "--set";
    for (size_t k = 0; k < ASYM_LENGTH(origins); k++)
        if (strcmp(origins[k] + 2, rows[i].row.name) == 0)
            origin = origins[k];
    switch (rows[i].what) {
    case MODE:
        if (cli->mode != ASYM_MODE_SERVICE && (int)cli->mode != rows[i].mode)
            return asym_fail(err, -EINVAL, "--%s: another mode was given already; one at a time", rows[i].row.name);
        cli->mode = (enum asym_mode)rows[i].mode;
        return 0;
    case JSON:
        cli->json = true;
        return 0;
    case CONFIG:
        cli->config = value;
        cli->config_given = true;
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
        return add_assignment(cli, "", value, origin);
    case SETTING:
        return add_assignment(cli, rows[i].key, value, origin);
    }
    return -EINVAL;
}

static int unknown(const char *name, size_t len, struct asym_error *err)
{
    char given[64];
    const char *best = NULL;
    unsigned least = UINT32_MAX;
    snprintf(given, sizeof given, "%.*s", (int)ASYM_MIN(len, sizeof given - 1), name);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        unsigned d = asym_text_distance(given, rows[i].row.name);
        if (d < least) {
            least = d;
            best = rows[i].row.name;
        }
    }
    if (least <= 3)
        return asym_fail(err, -EINVAL, "unknown option --%s; did you mean --%s?", given, best);
    return asym_fail(err, -EINVAL, "unknown option --%s; asymd --help lists them", given);
}

/* By hand rather than getopt_long: that prints by itself, keeps globals, and accepts abbreviations, which break later. */
static int take_argument(struct asym_cli *cli, int argc, char **argv, int *at, struct asym_error *err)
{
    const char *arg = argv[*at];
    if (strncmp(arg, "--", 2) != 0 || !arg[2])
        return asym_fail(err, -EINVAL, "'%.64s' is not an option; asymd --help lists them", arg);
    const char *name = arg + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        if (strlen(rows[i].row.name) != len || memcmp(rows[i].row.name, name, len) != 0)
            continue;
        const char *value = equals ? equals + 1 : NULL;
        if (!rows[i].row.argument && value)
            return asym_fail(err, -EINVAL, "--%s takes no argument", rows[i].row.name);
        if (rows[i].row.argument && !value && *at + 1 < argc)
            value = argv[++*at];
        if (rows[i].row.argument && !value)
            return asym_fail(err, -EINVAL, "--%s needs an argument: --%s=%s", rows[i].row.name, rows[i].row.name,
                             rows[i].row.argument);
        return take(cli, i, value, err);
    }
    return unknown(name, len, err);
}

int asym_cli_parse(int argc, char **argv, struct asym_cli *ret_cli, struct asym_error *err)
{
    struct asym_cli cli = {.mode = ASYM_MODE_SERVICE, .config = ASYM_CONFIG};
    for (int i = 1; i < argc; i++) {
        int r = take_argument(&cli, argc, argv, &i, err);
        if (r < 0) {
            asym_cli_done(&cli);
            return r;
        }
    }
    *ret_cli = cli;
    return 0;
}
