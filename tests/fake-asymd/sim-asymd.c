/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sim-asymd SCENARIO DIR SECONDS: the service of asymd, its bus object included, on a simulated machine. It steers for so many
 * simulated seconds, prints a line, and then answers on DIR/bus, as the service does between two samples. So asymctl shows what it
 * would show on that machine, but for what only the kernel knows: users, command lines, and asymd's own CPU time and memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cycle.h"
#include "config/config.h"
#include "core/machine-situation.h"
#include "daemon/asymd/service-internal.h"
#include "linux/enforce/ledger-internal.h"
#include "sim/sim.h"

struct simulated {
    struct asym_invocation cli;
    struct asym_run run;
    struct asym_machine machine;
    struct asym_service s;
    struct asym_scenario *scenario;
    struct asym_sim *sim;
};

static void check(int r, const char *what, const struct asym_error *err)
{
    if (r >= 0)
        return;
    fprintf(stderr, "sim-asymd: %s: %s\n", what, err && *err->text ? err->text : strerror(-r));
    exit(1);
}

static void load(struct simulated *a, const char *path, const char *dir)
{
    struct asym_error err = {""};
    char *text = NULL, option[256];
    size_t len;
    check(asym_ini_file(path, &text, &len, &err), path, &err);
    check(asym_scenario_parse(text, len, path, &a->scenario, &err), path, &err);
    free(text);
    snprintf(option, sizeof option, "asymd.state_dir=%s", dir);
    check(asym_settings_set(a->scenario->settings, option, "sim-asymd", &err), dir, &err);
    check(asym_sim_new(a->scenario, -1, 1, &a->sim), "simulation", NULL);
}

/* The modes of asymd do the same. No signal is missing in the simulator. */
static void select_policy(struct simulated *a)
{
    static const char *const missing[ASYM_N_SIGNALS];
    const struct asym_policy_facts facts = {.missing = missing};
    const struct asym_policy_choice choice = asym_policy_select(a->scenario->settings->daemon.policy, &facts);
    a->run = (struct asym_run){.cli = &a->cli,
                               .settings = a->scenario->settings,
                               .machine = &a->machine,
                               .policy = choice.policy,
                               .policy_why = choice.why};
    struct asym_error err = {""};
    check(asym_root_open(NULL, &a->run.root, &err), "/", &err);
}

static void open_service(struct simulated *a, const char *dir)
{
    struct asym_service *s = &a->s;
    struct asym_error err = {""};
    const struct asym_engine_config config = asym_settings_engine_config(a->run.settings, a->run.policy);
    s->run = &a->run;
    s->observer.source = asym_sim_source(a->sim, a->run.settings->daemon.interval);
    check(asym_service_control_open(s), "service", NULL);
    check(asym_ledger_open(dir, &s->ledger, &err), dir, &err);
    check(sd_event_default(&s->event), "event loop", NULL);
    check(asym_cycle_init(&s->cycle, &config, s->observer.source, asym_sim_actuator(a->sim)), "engine", NULL);
}

static void steer(struct simulated *a, unsigned seconds)
{
    struct asym_cycle *c = &a->s.cycle;
    while (asym_sim_now(a->sim) < seconds * UINT64_C(1000000000)) {
        check(asym_cycle_plan(c), "plan", NULL);
        check(asym_cycle_apply(c), "changes", NULL);
        const struct asym_feedback result = asym_cycle_result(c);
        asym_monitor_record(a->s.control.monitor, &result);
        asym_cycle_feedback(c);
        asym_sim_source(a->sim, asym_cycle_wait(c, a->run.settings->daemon.interval));
    }
    a->machine = *c->snapshot.machine;
    for (size_t i = 0; i < c->plan->n_tasks; i++)
        if (c->plan->tasks[i].target >= 0 && !asym_ledger_add(a->s.ledger, &c->snapshot.tasks[i].id))
            check(-ENOMEM, "ledger", NULL);
}

int main(int argc, char **argv)
{
    static struct simulated a;
    if (argc != 4) {
        fprintf(stderr, "usage: sim-asymd SCENARIO DIR SECONDS\n");
        return 2;
    }
    load(&a, argv[1], argv[2]);
    select_policy(&a);
    open_service(&a, argv[2]);
    steer(&a, (unsigned)atoi(argv[3]));
    asym_service_bus_open(&a.s);
    if (!a.s.bus)
        return 1;
    puts("ready");
    fflush(stdout);
    return sd_event_loop(a.s.event) < 0;
}
