/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl run: executes a program on the CPUs asked for, or so that it reports to asymd what its threads do. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <asym/rtx.h>
#include <asym/types.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/verb.h"
#include "linux/sys/elf.h"
#include "linux/sys/thread.h"
#include "report/report.h"

enum asym_run_place { ASYM_RUN_ANYWHERE, ASYM_RUN_FAST, ASYM_RUN_SLOW };

/* A program that starts a thread for each CPU should not fill the second hardware threads of fast cores: slow cores add more. */
static struct asym_mask fast_cores(const struct asym_machine *m)
{
    struct asym_mask fast = m->fast, mine;
    if (asym_thread_get_mask(0, &mine) >= 0 && asym_mask_meets(&fast, &mine))
        fast = asym_mask_and(&fast, &mine);
    return asym_machine_cores(m, &fast);
}

/*
 * Return in *ret the CPUs of the machine that the place means, as asymd sees the machine under that configuration (NULL: the
 * installed one): for ASYM_RUN_FAST one CPU of each fast core.
 * Returns 0; -ENODATA: all CPUs are alike; -errno, with err: the configuration or the machine cannot be read.
 */
static int find_place_cpus(enum asym_run_place place, const char *config, struct asym_mask *ret, struct asym_error *err)
{
    const struct asym_invocation cli = {.config = config};
    ASYM_CLEANUP(asym_run_done) struct asym_run run;
    const int r = asym_machine_run_begin(&run, &cli, ASYM_MACHINE_SAYS, err);
    if (r < 0)
        return r;
    const struct asym_alike *alike = asym_describe_alike(run.machine, &run.notes);
    if (!asym_machine_is_asymmetric(run.machine))
        return asym_fail(err, -ENODATA, "%s", alike ? alike->why : ASYM_NO_SLOW_CPU);
    *ret = place == ASYM_RUN_FAST ? fast_cores(run.machine) : run.machine->slow;
    return 0;
}

/*
 * Set the affinity of this process to those of the CPUs that it may use now, so that a program that it executes sizes its thread
 * pool by them. Returns 0; -ENODATA with err: its affinity has none of them; -errno with err. On an error the affinity stays as it
 * is.
 */
static int place_here(const struct asym_mask *cpus, struct asym_error *err)
{
    struct asym_mask mask;
    char list[128];
    int r = asym_thread_get_mask(0, &mask);
    if (r >= 0) {
        mask = asym_mask_and(&mask, cpus);
        if (asym_mask_empty(&mask))
            return asym_fail(err, -ENODATA, "its affinity has none of the CPUs %s",
                             asym_mask_format_list(cpus, list, sizeof list));
        r = asym_thread_set_mask(0, &mask, false);
    }
    return r < 0 ? asym_fail(err, r, "the kernel refuses its affinity: %s", strerror(-r)) : 0;
}

/* LLVM's runtime also provides the functions of GCC's. */
#define RUNTIME "libomp.so.5"

/* env(1), timeout(1) and shells use the same exit statuses. */
enum { CANNOT_EXECUTE = 126, NOT_FOUND = 127 };

struct launch {
    enum asym_run_place place;
    const char *config;
    const char *tool;      /* path of libasym-ompt.so; NULL: the program does not report */
    const char *tool_hint; /* where the tool comes from */
    bool gcc;              /* preload LLVM's runtime, which takes the place of GCC's */
    char **argv;           /* of the program; asymctl searches PATH for argv[0] */
};

/* Puts value before the present value of the variable. */
static int put_before(const char *name, const char *value)
{
    const char *old = getenv(name);
    ASYM_AUTO_FREE char *both = NULL;
    if (old && *old && asprintf(&both, "%s:%s", value, old) < 0)
        return -ENOMEM;
    return setenv(name, both ? both : value, 1) < 0 ? -errno : 0;
}

/* Warns if the program cannot load the tool; it runs nevertheless. */
static void warn(const char *path, const struct launch *l)
{
    char name[256];
    struct asym_elf elf;
    const char *why = NULL, *remedy = "";
    if (asym_elf_read(path, &elf) < 0)
        return;
    if (elf.privileged)
        why = "is set-user-ID, set-group-ID or has capabilities: nothing can be loaded into it from outside";
    else if (elf.is_elf && elf.is_static)
        why = "is statically linked: nothing can be loaded into it";
    else if (elf.has_gomp && !elf.has_omp && !l->gcc) {
        why = "uses GCC's OpenMP runtime, which cannot report to asymd";
        remedy = " (--gcc puts LLVM's in its place)";
    }
    if (why)
        fprintf(stderr, "asymctl: %s %s; it runs without reports to asymd%s\n", asym_text_show(path, name, sizeof name),
                why, remedy);
}

/* Checks that the tool and the runtime are installed, and prints what is missing. */
static bool can_report(const struct launch *l)
{
    char text[256];
    if (access(l->tool, R_OK) < 0) {
        fprintf(stderr, "asymctl: %s: %s%s; the program runs without reports to asymd\n",
                asym_text_show(l->tool, text, sizeof text), strerror(errno), l->tool_hint);
        return false;
    }
    /* Without this check the loader would warn once for each process that the program starts. */
    void *runtime = l->gcc ? dlopen(RUNTIME, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (l->gcc && !runtime) {
        fputs("asymctl: --gcc needs LLVM's OpenMP runtime, " RUNTIME
              ", which is not installed (libomp5); the program runs without reports to asymd\n",
              stderr);
        return false;
    }
    if (runtime)
        dlclose(runtime);
    return true;
}

/* Returns whether asymd has no table of directories for pages. It lends one to a new user within a sample. */
static bool is_unheard(void)
{
    char path[4096];
    const char *given = getenv(ASYM_RTX_DIR_ENV);
    snprintf(path, sizeof path, "%s/" ASYM_RTX_USERS, given && *given ? given : ASYM_RTX_DIR);
    return access(path, R_OK) < 0;
}

/* Prints why the program runs where it would run anyhow; it runs nevertheless. */
static void place(const struct launch *l)
{
    struct asym_mask cpus;
    struct asym_error err = {""};
    if (l->place == ASYM_RUN_ANYWHERE)
        return;
    int r = find_place_cpus(l->place, l->config, &cpus, &err);
    if (r >= 0)
        r = place_here(&cpus, &err);
    if (r < 0)
        fprintf(stderr, "asymctl: %s; the program runs with the affinity that it would have anyhow\n", err.text);
}

/*
 * Executes the program in this process. If the CPUs, the tool or the runtime are missing, it prints that on standard error and
 * executes the program without them. Returns only if the program cannot be executed, with the exit status that env(1) would use.
 */
static int launch(const struct launch *l)
{
    char path[4096], text[256];
    const bool is_found = asym_path_find_program(l->argv[0], path, sizeof path) >= 0;
    place(l);
    if (is_found && l->tool && can_report(l)) {
        warn(path, l);
        /* A program that lives for long also finds an asymd that is started later. */
        if (isatty(STDERR_FILENO) && is_unheard())
            fputs("asymctl: asymd is not running: nothing reads the reports until it is started\n", stderr);
        if (put_before("OMP_TOOL_LIBRARIES", l->tool) < 0 || setenv("OMP_TOOL", "enabled", 1) < 0 ||
            (l->gcc && put_before("LD_PRELOAD", RUNTIME) < 0))
            fputs("asymctl: no memory for the environment; the program runs without reports to asymd\n", stderr);
    }
    /* execvp searches PATH itself, and runs scripts without a first line. */
    execvp(l->argv[0], l->argv);
    const int error = errno;
    fprintf(stderr, "asymctl: %s: %s\n", asym_text_show(is_found ? path : l->argv[0], text, sizeof text),
            error != ENOENT ? strerror(error)
            : is_found      ? "the interpreter that it names is missing"
                            : "no such program");
    return error == ENOENT ? NOT_FOUND : CANNOT_EXECUTE;
}

struct arguments {
    bool fast, slow, openmp, gcc;
    const char *tool, *config; /* NULL: the installed one */
};

static const struct asym_arg args[] = {
    ASYM_ARG_OR("--fast", BOOL, NULL, fast, .help = "start it on the fast CPUs, and leave it there"),
    ASYM_ARG("--slow", BOOL, NULL, slow, .help = "start it on the slow CPUs, and leave it there"),
    ASYM_ARG("--openmp", BOOL, NULL, openmp,
             .help = "let it report what its OpenMP threads do; the default without --fast and --slow"),
    ASYM_ARG("--gcc", BOOL, NULL, gcc,
             .help = "--openmp for programs built with GCC: preload LLVM's runtime, which takes the place of GCC's"),
    ASYM_ARG("--tool", STRING, "PATH", tool, .help = "the tool that --openmp loads"),
    ASYM_ARG("--config", STRING, "FILE", config,
             .help = "for --fast and --slow: asymd's configuration, which may name slow CPUs"),
    {.option = {.key = NULL}},
};

static int run(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    char tool[ASYM_PATH_SIZE];
    const bool reports = a->openmp || a->gcc || a->tool || !(a->fast || a->slow);
    if (a->fast && a->slow)
        return asym_verb_fail(ASYM_EXIT_USAGE, "run: --fast and --slow are given; asymctl accepts one of them");
    const struct launch l = {
        .place = a->fast   ? ASYM_RUN_FAST
                 : a->slow ? ASYM_RUN_SLOW
                           : ASYM_RUN_ANYWHERE,
        .config = a->config,
        .tool = !reports  ? NULL
                : a->tool ? a->tool
                          : asym_path(ASYM_PATH_OMPT, tool),
        .tool_hint = a->tool ? "" : " (it comes with a build that has omp-tools.h, libomp-dev)",
        .gcc = a->gcc,
        .argv = operands,
    };
    return launch(&l);
}

const struct asym_verb asym_verb_run_program = {
    .name = "run",
    .args = args,
    .operands = ASYM_OPERANDS_RUN,
    .usage = "[--] PROGRAM [ARGUMENT...]",
    .needs = "a program",
    .summary = "run a program on the fast or slow CPUs, or let it report its OpenMP threads",
    .help = "With --fast or --slow, PROGRAM starts with an affinity of the fast or slow CPUs. So its thread pool\n"
            "gets the right size from the start. asymd leaves it there, as it leaves every program that has an\n"
            "affinity of its own.\n"
            "\n"
            "With --openmp, the default, PROGRAM runs with the OMPT tool of asymd. An OpenMP program on LLVM's\n"
            "runtime then reports which of its threads work, which spin, and when it is in a serial phase.\n"
            "Nothing else of it changes.\n"
            "\n"
            "PROGRAM always runs: what is missing here is said, and left out. The exit status is PROGRAM's, or\n"
            "126: PROGRAM cannot be executed; 127: PROGRAM was not found.\n",
    .file_option = "--tool",
    .file = ASYM_PATH_OMPT,
    .run = run,
};
