/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl recommend. */
#include <string.h>

#include "app/command-line.h"
#include "app/machine-check.h"
#include "core/policy-select.h"
#include "daemon/asymctl/machine-run.h"
#include "daemon/asymctl/verb.h"
#include "report/cpu-description.h"
#include "report/json.h"

static int print_json(const struct asym_policy_choice *choice, const struct asym_run *run, const char *verdict)
{
    return asym_json_print(json_pack("{s:s, s:o, s:s, s:s, s:s, s:s}", "schema", "asymctl.recommend/1", "verdict",
                                     asym_json_bytes(verdict, strlen(verdict)), "policy", choice->policy->name, "why",
                                     choice->why, "summary", choice->policy->summary, "configured", run->policy->name),
                           stdout);
}

static void print_switch(const struct asym_terminal *terminal, const struct asym_policy_choice *choice,
                         const struct asym_run *run)
{
    char text[1024], buf[ASYM_PATH_SIZE];
    const char *config = run->cli->config ? run->cli->config : asym_path(ASYM_PATH_CONFIG, buf);
    snprintf(text, sizeof text,
             "%.300s names %s. To switch, if asymd runs: sudo asymctl policy %s --permanent; else: policy = %s below "
             "[asymd] in %.300s",
             asym_settings_origin(run->settings, "asymd", "policy"), run->policy->name, choice->policy->name,
             choice->policy->name, config);
    asym_columns_wrap(terminal, text, 0, 0);
    putchar('\n');
}

static void print_text(const struct asym_policy_choice *choice, const struct asym_run *run, const char *verdict)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    char text[1024];
    asym_columns_wrap(&terminal, verdict, 0, 0);
    fputs("\n\n", stdout);
    snprintf(text, sizeof text, "Recommended: %s, which auto chooses here: %s.", choice->policy->name, choice->why);
    asym_columns_wrap(&terminal, text, 0, 0);
    putchar('\n');
    snprintf(text, sizeof text, "%s: %s.", choice->policy->name, choice->policy->summary);
    asym_columns_wrap(&terminal, text, 0, 0);
    putchar('\n');
    if (run->policy != choice->policy)
        print_switch(&terminal, choice, run);
}

static int report(struct asym_run *run, bool json)
{
    const struct asym_alike *alike = asym_describe_alike(run->machine, &run->notes);
    const struct asym_policy_facts facts = {
        .alike = alike ? alike->why : NULL,
        .missing = run->capabilities.missing,
    };
    const struct asym_policy_choice choice = asym_policy_select("auto", &facts);
    char verdict[400];
    asym_assess(run, verdict, sizeof verdict);
    if (json)
        return asym_verb_reported(print_json(&choice, run, verdict));
    print_text(&choice, run, verdict);
    return ASYM_EXIT_DONE;
}

static int recommend(const void *args, char **operands)
{
    (void)operands;
    return asym_machine_verb(args, ASYM_MACHINE_SAYS, report);
}

const struct asym_verb asym_verb_recommend = {
    .name = "recommend",
    .args = asym_machine_args,
    .args_size = sizeof(struct asym_machine_arguments),
    .usage = "",
    .summary = "name the policy that suits this machine, and say why",
    .help = "Prints what asymd can do for this machine, and the policy that policy = auto chooses here, with the\n"
            "reason. The configuration is that of the running asymd, or without one the installed configuration.\n",
    .run = recommend,
};
