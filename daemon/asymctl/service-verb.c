/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/service-verb.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/crash-recovery.h"
#include "app/machine-setup.h"
#include "app/settings-setup.h"
#include "base/macro.h"
#include "base/text.h"

/* Without an answer, the masks of an asymd that died would go unnoticed: nothing else says so. */
static void say_left_over(void)
{
    const struct asym_invocation cli = {.config = NULL};
    struct asym_settings *settings;
    char left[160];
    if (asym_run_settings(&cli, true, &settings, NULL) < 0)
        return;
    if (asym_crash_recovery_left(settings->daemon.state_dir, true, left, sizeof left))
        asym_verb_fail(ASYM_EXIT_DONE, "%s: " ASYM_RESTORE_COMMAND, left);
    asym_settings_free(settings);
}

int asym_verb_no_service(const char *message)
{
    const int status = asym_verb_fail(ASYM_EXIT_NO_SERVICE, "%s", message);
    say_left_over();
    return status;
}

int asym_verb_call_failed(int r, const struct asym_error *err)
{
    const enum asym_exit status = asym_exit_status(r);
    return status == ASYM_EXIT_NO_SERVICE ? asym_verb_no_service(err->text) : asym_verb_fail(status, "%s", err->text);
}

int asym_verb_connect(struct asym_client **ret)
{
    struct asym_error err = {""};
    const int r = asym_client_open(ret, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    asym_client_let_polkit_ask(*ret);
    return ASYM_EXIT_DONE;
}

bool asym_verb_is_pid(const char *text, uint32_t *ret)
{
    uint64_t n;
    if (asym_parse_u64(text, strlen(text), &n) < 0 || n == 0 || n > INT_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}

/* Returns 0; -EREMOTEIO: no asymd answers; -errno with err. */
static int ask_settings(struct asym_settings **ret, struct asym_error *err)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_AUTO_FREE char *text = NULL;
    struct asym_error unanswered = {""};
    struct asym_settings *s;
    size_t len;
    if (asym_client_open(&client, &unanswered) < 0 ||
        asym_client_get_configuration(client, &text, &len, &unanswered) < 0)
        return -EREMOTEIO;
    int r = asym_settings_new(&s);
    if (r < 0)
        return asym_fail(err, r, "no memory");
    r = asym_settings_read_printed(s, text, len, err);
    if (r < 0)
        asym_settings_free(s);
    else
        *ret = s;
    return r;
}

int asym_machine_settings(const struct asym_invocation *cli, enum asym_machine_from from,
                          struct asym_settings **ret_settings, struct asym_error *err)
{
    struct asym_settings *s = NULL;
    char path[ASYM_PATH_SIZE];
    if (from == ASYM_MACHINE_INSTALLED)
        return asym_run_settings(cli, true, ret_settings, err);
    int r = cli->config ? -EREMOTEIO : ask_settings(&s, err);
    if (r == -EREMOTEIO) {
        r = asym_run_settings(cli, false, ret_settings, err);
        const char *config = asym_run_config_path(cli, path);
        if (r >= 0 && !cli->config && from == ASYM_MACHINE_SAYS)
            fprintf(stderr, "asymctl: no asymd answers: asymctl uses the configuration in %s%s\n", config,
                    access(config, F_OK) < 0 ? ", which does not exist: the defaults" : "");
        return r;
    }
    for (size_t i = 0; r >= 0 && i < cli->n_assignments; i++)
        r = asym_settings_set(s, cli->assignments[i].text, cli->assignments[i].origin, err);
    if (r >= 0)
        r = asym_settings_check(s, err);
    if (r < 0)
        asym_settings_free(s);
    else
        *ret_settings = s;
    return r;
}

int asym_machine_run_begin(struct asym_run *run, const struct asym_invocation *cli, enum asym_machine_from from,
                           struct asym_error *err)
{
    *run = (struct asym_run){.cli = cli, .root = {.fd = -1}};
    asym_log_init(&run->log);
    int r = asym_machine_settings(cli, from, &run->settings, err);
    if (r >= 0)
        r = asym_root_open(NULL, &run->root, err);
    return r < 0 ? r : asym_run_machine(run, true, err);
}

int asym_machine_run_failed(const struct asym_run *run, int r, const struct asym_error *err)
{
    /* A file that cannot be read is a configuration error, whatever the errno. */
    return asym_verb_fail(run->settings ? asym_exit_status(r) : ASYM_EXIT_USAGE, "%s", err->text);
}
