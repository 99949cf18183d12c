/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/machine-setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "linux/topology/topology.h"

/* Indexed by the setting asymmetry.method without NONE, which slows no CPU. */
const struct asym_cap_method *const asym_speed_methods[] = {
#define METHOD_ROW(constant, symbol) [ASYM_METHOD_##constant - 1] = &asym_cap_##symbol,
    ASYM_CAP_METHODS(METHOD_ROW) NULL,
};

const struct asym_cap_method *asym_speed_method(const struct asym_settings *s)
{
    return s->asymmetry.method == ASYM_METHOD_NONE ? NULL : asym_speed_methods[s->asymmetry.method - 1];
}

/* Reads the limits that the CPU has now, and computes those that asymd would set. Returns 0; -errno. */
static int predict(const struct asym_run *run, int cpu, struct asym_cap_state *ret_now, struct asym_cap_state *ret_then)
{
    const struct asym_cap_method *method = asym_speed_method(run->settings);
    struct asym_slow_speeds speeds;
    int r = method ? asym_slow_speeds_parse(run->settings->asymmetry.slow_speed, &speeds) : -EOPNOTSUPP;
    const struct asym_slow_speed *speed = r < 0 ? NULL : asym_slow_speed_of(&speeds, cpu);
    if (r >= 0 && !speed)
        r = -EINVAL;
    if (r >= 0)
        r = method->read(method->ctx, cpu, ret_now);
    return r < 0 ? r : method->choose(method->ctx, cpu, speed, ret_now, ret_then);
}

bool asym_speeds_are_in_force(const struct asym_run *run, const struct asym_mask *slow)
{
    struct asym_cap_state now, then;
    ASYM_MASK_FOREACH (c, slow)
        if (predict(run, c, &now, &then) < 0 || now.low != then.low || now.high != then.high)
            return false;
    return true;
}

/* Compute the shares of their speed that the CPUs would get. Returns 0; -errno: no method is configured, or it fails here. */
static int predict_shares(const struct asym_run *run, const struct asym_mask *slow, struct asym_caps *ret_caps)
{
    const struct asym_cap_method *method = asym_speed_method(run->settings);
    struct asym_caps caps = {.cpus = *slow};
    if (!method)
        return -EOPNOTSUPP;
    ASYM_MASK_FOREACH (c, slow) {
        struct asym_cap_state now, then;
        int r = predict(run, c, &now, &then);
        if (r < 0)
            return r;
        caps.share[c] = method->share(method->ctx, c, &then);
    }
    *ret_caps = caps;
    return 0;
}

/* "4" is a number of CPUs, which asymd chooses; a text with a comma or a dash is a CPU list. */
static int slow_cpus(const struct asym_machine *m, const char *text, struct asym_mask *ret_slow, struct asym_error *err)
{
    uint64_t n;
    char list[256];
    if (asym_parse_u64(text, strlen(text), &n) < 0)
        return asym_mask_parse_list(text, strlen(text), ret_slow) < 0
                   ? asym_fail(err, -EINVAL, "'%s' is neither a number nor a CPU list such as 0-3,8", text)
                   : 0;
    unsigned usable = asym_mask_count(&m->usable);
    if (usable < 2)
        return asym_fail(err, -EINVAL, "%s: there is only one usable CPU, and so no other that it could be slower than",
                         text);
    if (n > ASYM_MAX_CPUS || asym_machine_choose_slow(m, (unsigned)n, ret_slow) < 0)
        return asym_fail(err, -EINVAL,
                         "%s of %u usable CPUs (%s) cannot be made slow: accepted %s%u, in whole frequency domains "
                         "and SMT cores, or a list of these CPUs such as 4-7",
                         text, usable, asym_mask_format_list(&m->usable, list, sizeof list),
                         usable == 2 ? "is " : "are 1 to ", usable - 1);
    return 0;
}

/* A list of speeds with CPUs names the slow CPUs, too. */
static int add_named(const struct asym_run *run, struct asym_mask *slow, struct asym_error *err)
{
    const struct asym_settings *s = run->settings;
    const char *origin = asym_settings_origin(s, "asymmetry", "slow_speed");
    struct asym_slow_speeds speeds;
    char list[256];
    if (asym_slow_speeds_parse(s->asymmetry.slow_speed, &speeds) < 0 || asym_mask_empty(&speeds.cpus))
        return 0;
    if (!*s->asymmetry.slow)
        *slow = speeds.cpus;
    const struct asym_mask more = asym_mask_minus(&speeds.cpus, slow), left = asym_mask_minus(slow, &speeds.cpus);
    if (!asym_mask_empty(&more))
        return asym_fail(err, -EINVAL, "%s: asymmetry.slow_speed: CPUs %s are none of asymmetry.slow = %.300s", origin,
                         asym_mask_format_list(&more, list, sizeof list), s->asymmetry.slow);
    if (!asym_mask_empty(&left) && !asym_slow_speed_of(&speeds, asym_mask_next(&left, 0)))
        return asym_fail(err, -EINVAL, "%s: asymmetry.slow_speed: %.600s leaves out CPUs %s of asymmetry.slow", origin,
                         s->asymmetry.slow_speed, asym_mask_format_list(&left, list, sizeof list));
    return 0;
}

/* Resolves asymmetry.slow to CPUs of this machine; an empty setting gives none. */
static int resolve_slow(const struct asym_run *run, const struct asym_machine *m, struct asym_mask *ret_slow,
                        struct asym_error *err)
{
    const char *text = run->settings->asymmetry.slow;
    struct asym_mask slow = {0};
    struct asym_error why = {""};
    char list[256];
    int r = text && *text ? slow_cpus(m, text, &slow, &why) : 0;
    if (r >= 0 && add_named(run, &slow, err) < 0)
        return -EINVAL;
    /* A CPU that is offline now will be slow when it is online again. */
    struct asym_mask gone = asym_mask_minus(&slow, &m->usable);
    gone = asym_mask_minus(&gone, &m->online);
    ASYM_MASK_FOREACH (c, &gone)
        if ((unsigned)c >= m->n_cpus)
            gone = (struct asym_mask){0};
    const struct asym_mask here = asym_mask_minus(&slow, &gone);
    if (r >= 0 && !asym_mask_within(&here, &m->usable))
        r = asym_fail(&why, -EINVAL, "%s names a CPU that is not usable here: usable are %s", text,
                      asym_mask_format_list(&m->usable, list, sizeof list));
    if (r < 0)
        return asym_fail(err, r, "%s: asymmetry.slow: %.900s", asym_settings_origin(run->settings, "asymmetry", "slow"),
                         why.text);
    *ret_slow = slow;
    return 0;
}

/* The CPUs of each speed, one speed after the other. */
static int assume_speeds(struct asym_machine *m, const struct asym_mask *slow, const struct asym_slow_speeds *speeds)
{
    struct asym_mask left = *slow;
    int r = 0;
    while (r >= 0 && !asym_mask_empty(&left)) {
        const double share = asym_slow_speed_of(speeds, asym_mask_next(&left, 0))->share;
        struct asym_mask alike = {0};
        ASYM_MASK_FOREACH (c, &left)
            if (!(asym_slow_speed_of(speeds, c)->share < share) && !(asym_slow_speed_of(speeds, c)->share > share))
                asym_mask_set(&alike, (unsigned)c);
        r = asym_machine_assume_slow(m, &alike, share);
        left = asym_mask_minus(&left, &alike);
    }
    return r;
}

static bool are_shares(const struct asym_mask *slow, const struct asym_slow_speeds *speeds)
{
    ASYM_MASK_FOREACH (c, slow) {
        const struct asym_slow_speed *speed = asym_slow_speed_of(speeds, c);
        if (!speed || !(speed->share > 0))
            return false;
    }
    return true;
}

/* Uses the speeds obtained; else those that the method would give, if asymd can predict them; else the configured share. */
static int make_slow(const struct asym_run *run, struct asym_machine *m, const struct asym_mask *slow,
                     struct asym_error *err)
{
    const char *text = run->settings->asymmetry.slow_speed;
    struct asym_slow_speeds speeds;
    struct asym_caps caps;
    if (asym_mask_empty(slow))
        return 0;
    if (run->caps || (run->root.live && predict_shares(run, slow, &caps) >= 0))
        return asym_machine_cap(m, run->caps ? run->caps : &caps);
    if (asym_slow_speeds_parse(text, &speeds) < 0 || !are_shares(slow, &speeds))
        return asym_fail(
            err, -EINVAL,
            "asymmetry.slow_speed: asymd cannot tell what share of their speed %s is on this machine: give "
            "a share, such as 50%%",
            text);
    return assume_speeds(m, slow, &speeds);
}

/* Copies in place: the source and the engine keep the address of the machine, and see the new generation. */
static void adopt_machine(struct asym_run *run, struct asym_machine **fresh, const struct asym_mask *slow)
{
    run->slow = *slow;
    run->assumed_slow = !run->caps && asym_mask_meets(slow, &(*fresh)->usable);
    if (run->machine)
        *run->machine = **fresh;
    else
        run->machine = ASYM_TAKE(*fresh);
}

/* The configured speeds win over those that the machine reports. */
static int configure_machine(struct asym_run *run, struct asym_machine *m, struct asym_error *err)
{
    double speed[ASYM_MAX_CPUS];
    struct asym_mask cpus;
    char list[256];
    m->fast_from = run->settings->machine.fast_from;
    m->smt_gain = run->settings->machine.smt_gain;
    if (!*run->settings->machine.speeds)
        return asym_machine_finish(m);
    int r = asym_speeds_parse(run->settings->machine.speeds, speed, &cpus);
    const struct asym_mask left = asym_mask_minus(&m->usable, &cpus);
    if (r < 0 || !asym_mask_empty(&left))
        return asym_fail(err, -EINVAL, "%s: machine.speeds: %.600s leaves out CPUs %s: it has to name every usable CPU",
                         asym_settings_origin(run->settings, "machine", "speeds"), run->settings->machine.speeds,
                         asym_mask_format_list(&left, list, sizeof list));
    ASYM_MASK_FOREACH (c, &m->usable) {
        m->cpus[c].speed = speed[c];
        m->cpus[c].origin = ASYM_ORIGIN_CONFIG;
    }
    run->notes.unordered = run->notes.unknown = run->notes.hidden = false;
    for (size_t i = 0; i < run->notes.n; i++)
        run->notes.note[i].used = false;
    struct asym_speed_note *note = &run->notes.note[run->notes.n++];
    *note = (struct asym_speed_note){.origin = ASYM_ORIGIN_CONFIG, .there = true, .used = true};
    snprintf(note->text, sizeof note->text, "machine.speeds: %.140s", run->settings->machine.speeds);
    return asym_machine_finish(m);
}

static int read_machine(struct asym_run *run, struct asym_machine **ret_fresh, struct asym_error *err)
{
    struct asym_machine *fresh = malloc(sizeof *fresh);
    if (!fresh)
        return asym_fail(err, -ENOMEM, "no memory for the machine");
    *fresh = run->machine ? *run->machine : (struct asym_machine){0};
    int r = asym_topology_read(&run->root, run->cli->topology, fresh, &run->notes, err);
    if (r >= 0)
        r = configure_machine(run, fresh, err);
    if (r < 0) {
        free(fresh);
        return r;
    }
    *ret_fresh = fresh;
    return 0;
}

int asym_run_machine(struct asym_run *run, bool chooses, struct asym_error *err)
{
    ASYM_AUTO_FREE struct asym_machine *fresh = NULL;
    struct asym_mask slow = run->slow;
    int r = read_machine(run, &fresh, err);
    if (r >= 0 && chooses)
        r = resolve_slow(run, fresh, &slow, err);
    if (r < 0)
        return r;
    const struct asym_mask here = asym_mask_and(&slow, &fresh->usable);
    r = make_slow(run, fresh, &here, err);
    if (r < 0)
        return r;
    adopt_machine(run, &fresh, &slow);
    asym_capabilities_resolve(&run->capabilities, run->machine);
    return 0;
}

bool asym_watch_changed(const struct asym_root *root, const struct asym_machine *m)
{
    struct asym_mask online, usable;
    return asym_topology_cpus(root, &online, &usable) >= 0 &&
           (!asym_mask_equal(&online, &m->online) || !asym_mask_equal(&usable, &m->usable));
}

/* FNV-1a over n files of a directory; the number of a file keeps one that is missing apart from the next one. */
static uint64_t hash_files(const struct asym_root *root, const char *dir, const char *const *files, size_t n_files)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n_files; i++) {
        char full[96], text[64];
        snprintf(full, sizeof full, "sys/devices/system/cpu/%s%s", dir, files[i]);
        const ssize_t n = asym_root_read(root, full, text, sizeof text);
        for (ssize_t k = 0; k < n; k++)
            h = (h ^ (unsigned char)text[k]) * UINT64_C(0x100000001b3);
        h = (h ^ i) * UINT64_C(0x100000001b3);
    }
    return h;
}

uint64_t asym_watch_abilities(const struct asym_root *root)
{
    static const char *const files[] = {
        "cpufreq/boost", "intel_pstate/no_turbo", "intel_pstate/status", "amd_pstate/status", "isolated", "nohz_full"};
    return hash_files(root, "", files, ASYM_LENGTH(files));
}

static uint64_t hash_cpu(const struct asym_root *root, int cpu)
{
    static const char *const files[] = {"cpu_capacity", "acpi_cppc/highest_perf", "cpufreq/amd_pstate_prefcore_ranking",
                                        "cpufreq/cpuinfo_max_freq", "cpufreq/scaling_driver"};
    char dir[16];
    snprintf(dir, sizeof dir, "cpu%d/", cpu);
    return hash_files(root, dir, files, ASYM_LENGTH(files));
}

#define CPUS_AT_ONCE    16
#define CHANGES_AT_ONCE 2.0 /* one more is a debt */
#define CHANGE_EVERY    (10 * ASYM_SEC)

static void hash_cpus(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus)
{
    ASYM_MASK_FOREACH (cpu, cpus)
        facts->of[cpu] = hash_cpu(root, cpu);
}

void asym_watch_read_facts(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus,
                           asym_usec now)
{
    hash_cpus(facts, root, cpus);
    facts->changes = asym_token_bucket_full(1.0 / (double)CHANGE_EVERY, CHANGES_AT_ONCE, now);
}

bool asym_watch_facts_changed(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus,
                              asym_usec now)
{
    bool changed = false;
    int cpu = asym_mask_next(cpus, facts->next);
    for (int i = 0; i < CPUS_AT_ONCE && cpu >= 0; i++, cpu = asym_mask_next(cpus, cpu + 1))
        changed = changed || hash_cpu(root, cpu) != facts->of[cpu];
    facts->next = cpu >= 0 ? cpu : 0;
    /* A change that the caller must not act on yet is seen again at a later look. */
    if (!changed || !asym_token_bucket_has(&facts->changes, now))
        return false;
    asym_token_bucket_charge(&facts->changes, 1, now);
    hash_cpus(facts, root, cpus);
    return true;
}
