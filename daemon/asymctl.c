/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl: a table of verbs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "daemon/launch.h"
#include "daemon/paths.h"
#include "daemon/policies.h"
#include "daemon/profile.h"
#include "daemon/run.h"
#include "daemon/sim_verb.h"
#include "linux/procfs.h"

struct verb {
    const char *name, *usage, *summary, *help;
    int (*run)(int argc, char **argv); /* argv[0] is the verb */
    /* An option whose default is a file of the installation; NULL: none. */
    const char *file_option;
    enum asym_path file;
};

static int verb_policies(int argc, char **argv);
static int verb_run(int argc, char **argv);
static int verb_help(int argc, char **argv);

static const struct verb verbs[] = {
    {"policies", "asymctl policies [--json]", "every policy, what it needs, and whether it can run here",
     "For each policy: its name and what it does in one line; the paper and section it comes from;\n"
     "the signals it needs; how wide a mask it prefers; and whether this machine gives what it needs.\n"
     "\n"
     "  --json   print JSON\n",
     verb_policies, NULL, 0},
    {"sim",
     "asymctl sim SCENARIO.ini [--policy=NAME,...] [--repeat=N] [--seed=N] [--json] [--cost]\n"
     "                   [--trace=FILE] [--workers=N]",
     "run a simulated machine under policies, side by side",
     "Runs the scenario under the stock scheduler (none) and each policy given, with several seeds, and each\n"
     "program alone; the code that steers a live machine steers the simulated one. Scenarios: asymctl(1).\n"
     "\n"
     "  --policy=NAME,...  policies to run; without it, the one that the scenario's [asymd] section names\n"
     "  --repeat=N         seeds to run with: 5\n"
     "  --seed=N           the first of them: 1\n"
     "  --json             print JSON\n"
     "  --trace=FILE       write a Chrome trace of the first policy given, with the first seed\n"
     "  --cost             what planning costs, with the CPU time of a plan, which differs from run to run\n"
     "  --workers=N        trials at a time: as many as CPUs; never more than memory has room for; what is\n"
     "                     printed does not depend on it\n",
     asym_sim_verb, NULL, 0},
    {"profile", "asymctl profile [--output=FILE] [--time=TIME] [--config=FILE] [--json] -- COMMAND...",
     "measure a program on each type of core, for policies that need profiles",
     "Runs COMMAND on the CPUs of each type of core in turn, counts instructions and misses of the\n"
     "last-level cache, its children's too, and writes them to a file of profiles, in place of what it\n"
     "had for that executable. COMMAND's standard output is thrown away; a file as standard input is\n"
     "read from the same place each time, anything else is not. A COMMAND that fails is not written.\n"
     "\n"
     "  --output=FILE  the file of profiles (" ASYM_PROFILES ")\n"
     "  --time=TIME    end it after that long on each type, such as 10s; without, it ends by itself\n"
     "  --config=FILE  asymd's configuration, which may name slow CPUs\n"
     "  --json         print JSON\n"
     "\n"
     "Without hardware counters it ends with status 3, and says why.\n",
     asym_profile_verb, "--config", ASYM_PATH_CONFIG},
    {"run", "asymctl run [--gcc] [--tool=PATH] [--] PROGRAM [ARGUMENT...]",
     "a program so that asymd is told what its OpenMP threads do",
     "Runs PROGRAM with the OMPT tool of asymd: an OpenMP program on LLVM's runtime then says which of its\n"
     "threads work, which spin and when it is in a serial phase. Nothing else of it changes.\n"
     "\n"
     "  --gcc         for programs built with GCC: preloads LLVM's runtime, which takes the place of GCC's\n"
     "  --tool=PATH   the tool to load\n"
     "\n"
     "Where the tool is missing the program runs without it. The exit status is the program's; 126: it cannot\n"
     "be executed; 127: it was not found.\n",
     verb_run, "--tool", ASYM_PATH_OMPT},
    {"help", "asymctl help [VERB]", "this text, or a verb's", "Without a verb, lists them.\n", verb_help, NULL, 0},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int unknown_verb(const char *given)
{
    const char *best = verbs[0].name;
    for (size_t i = 1; i < ASYM_LENGTH(verbs); i++)
        if (asym_text_distance(given, verbs[i].name) < asym_text_distance(given, best))
            best = verbs[i].name;
    char text[128];
    asym_text_escape(given, strlen(given), text, sizeof text);
    fprintf(stderr, "asymctl: unknown verb '%s'; did you mean '%s'? asymctl help lists them\n", text, best);
    return ASYM_EXIT_USAGE;
}

static int wrong_argument(const char *verb, const char *given)
{
    char text[128];
    asym_text_escape(given, strlen(given), text, sizeof text);
    fprintf(stderr, "asymctl: %s does not take '%s'; accepted: %s\n", verb, text, find_verb(verb)->usage);
    return ASYM_EXIT_USAGE;
}

static int written(int r)
{
    if (r >= 0 && fflush(stdout) == 0)
        return ASYM_EXIT_DONE;
    fprintf(stderr, "asymctl: cannot write: %s\n", strerror(r < 0 ? -r : errno));
    return ASYM_EXIT_FAILED;
}

static int verb_help(int argc, char **argv)
{
    if (argc > 2)
        return wrong_argument("help", argv[2]);
    if (argc == 2) {
        const struct verb *v = find_verb(argv[1]);
        if (!v)
            return unknown_verb(argv[1]);
        char path[ASYM_PATH_SIZE];
        printf("usage: %s\n\n%s\n", v->usage, v->help);
        if (v->file_option)
            printf("Default of %s: %s\n", v->file_option, asym_path(v->file, path));
        return written(0);
    }
    puts("usage: asymctl VERB [ARGUMENT...]\n");
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        printf("  %-10s %s\n", verbs[i].name, verbs[i].summary);
    puts("\nExit status: 0 done; 1 failed; 2 wrong usage; 3 no counters; 4 not permitted.");
    return written(0);
}

/* By the installed configuration, which says where profiles are; where it has a mistake by what can be read of it. */
static int read_missing(const char *missing[ASYM_N_SIGNALS])
{
    const struct asym_cli cli = {.config = NULL};
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    ASYM_CLEANUP(asym_signals_done) struct asym_signals signals = {.root = NULL};
    ASYM_AUTO_FREE struct asym_machine *m = calloc(1, sizeof *m);
    struct asym_settings *settings = NULL;
    struct asym_error err = {""};
    int r = m ? asym_run_salvage(&cli, &settings, &err) : -ENOMEM;
    if (r >= 0)
        r = asym_root_open(NULL, &root, &err);
    if (r >= 0)
        r = asym_topology_read(&root, NULL, m, NULL, &err);
    if (r >= 0)
        r = asym_signals_read(&signals, &root, m, settings, &err);
    if (r < 0)
        fprintf(stderr, "asymctl: %s\n", *err.text ? err.text : strerror(-r));
    else
        memcpy(missing, signals.missing, sizeof signals.missing);
    asym_settings_free(settings);
    return r;
}

static int verb_policies(int argc, char **argv)
{
    const struct asym_policy *policies[64];
    const char *missing[ASYM_N_SIGNALS];
    size_t n = 0;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") != 0)
            return wrong_argument("policies", argv[i]);
        json = true;
    }
    int r = read_missing(missing);
    if (r < 0)
        return (int)asym_run_exit(r);
    for (; n < ASYM_LENGTH(policies) && asym_policy_at(n); n++)
        policies[n] = asym_policy_at(n);
    return written(json ? asym_policies_json(policies, n, missing, stdout)
                        : asym_policies_text(policies, n, missing, stdout));
}

static int verb_run(int argc, char **argv)
{
    char tool[ASYM_PATH_SIZE];
    struct asym_launch launch = {.tool = asym_path(ASYM_PATH_OMPT, tool)};
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--gcc") == 0)
            launch.gcc = true;
        else if (strncmp(argv[i], "--tool=", 7) == 0 && argv[i][7])
            launch.tool = argv[i] + 7;
        else
            return wrong_argument("run", argv[i]);
    }
    if (i == argc) {
        fprintf(stderr, "asymctl: run needs a program; accepted: %s\n", find_verb("run")->usage);
        return ASYM_EXIT_USAGE;
    }
    launch.argv = argv + i;
    return asym_launch(&launch);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *option, *verb;
    } aliases[] = {{"--help", "help"}, {"-h", "help"}};
    if (argc < 2) {
        fputs("usage: asymctl VERB [ARGUMENT...]; asymctl help lists the verbs\n", stderr);
        return ASYM_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("asymctl " ASYM_VERSION);
        return written(0);
    }
    const char *name = argv[1];
    for (size_t i = 0; i < ASYM_LENGTH(aliases); i++)
        if (strcmp(name, aliases[i].option) == 0)
            name = aliases[i].verb;
    const struct verb *v = find_verb(name);
    return v ? v->run(argc - 1, argv + 1) : unknown_verb(name);
}
