/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd without a mode: says what the service would do, and how to start it. It changes nothing. */
#include <stdio.h>

#include "app/machine-check.h"
#include "base/macro.h"
#include "base/text.h"
#include "core/machine-situation.h"
#include "daemon/asymd/mode.h"

static const struct {
    const char *command, *does;
} commands[] = {
    {"asymd --dry-run", "print the plan for the programs that run now; change nothing"},
    {"asymd --check", "print what this machine offers and lacks"},
    {"sudo asymd --service", "steer from this terminal until Ctrl-C, then restore everything"},
    {"sudo systemctl start asymd", "start the service in the background, if it is installed"},
};

static void print_paragraph(const struct asym_terminal *terminal, const char *text)
{
    asym_columns_wrap(terminal, text, 0, 0);
    puts("\n");
}

static void describe_service(const struct asym_run *run, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    asym_text_add(&text, "asymd did not start. ");
    if (!asym_policy_can_run(run->policy, run->capabilities.missing)) {
        asym_text_add(&text, "With --service it would end at once and say what it lacks; asymd --check says it, too.");
        return;
    }
    asym_text_add(&text, "With --service it would use the policy %s (%s)", run->policy->name, run->policy->summary);
    if (run->policy_why)
        asym_text_add(&text, ", which auto chose: %s,", run->policy_why);
    asym_text_add(&text, " on %s, and restore every thread when it stops.",
                  run->cli->n_pids > 0 ? "the programs that --pid names" : "all programs");
}

/* Returns ASYM_EXIT_USAGE, so that a script whose author expected the service sees that asymd did not start it. */
static enum asym_exit mode_overview(struct asym_run *run)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    char text[512];
    asym_assess(run, text, sizeof text);
    print_paragraph(&terminal, text);
    describe_service(run, text, sizeof text);
    print_paragraph(&terminal, text);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        asym_args_line(&terminal, 30, commands[i].command, commands[i].does);
    return ASYM_EXIT_USAGE;
}

const struct asym_mode_entry asym_mode_overview = {.run = mode_overview, .needs = ASYM_NEEDS_MACHINE};

/* asymd --check. */

static enum asym_exit mode_check(struct asym_run *run)
{
    ASYM_CLEANUP(asym_check_done) struct asym_check check = {.lines = NULL};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    int r = asym_run_check(run, &check);
    if (r >= 0)
        r = run->cli->json ? asym_check_json(&check, stdout) : asym_check_text(&check, &terminal);
    const enum asym_exit status = asym_mode_reported(run, r);
    return status == ASYM_EXIT_DONE && !check.can_run ? ASYM_EXIT_NO_SIGNAL : status;
}

const struct asym_mode_entry asym_mode_check = {
    .name = "--check",
    .help = "print what this machine offers and lacks, with remedies",
    .run = mode_check,
    .needs = ASYM_NEEDS_MACHINE,
};
