/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/speed-cap/speed-cap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

/* The kernel's worker needs microseconds, on an overloaded machine some tenths of a second. */
#define SETTLE_STEP  2000000 /* ns */
#define SETTLE_STEPS 500

/** Says whose limits a unit has. */
enum asym_unit_state {
    ASYM_UNIT_PENDING, /**< asymd is changing them: any state found there is asymd's */
    ASYM_UNIT_REFUSED, /**< pending, and the write of the cap failed */
    ASYM_UNIT_SET,     /**< asymd has set them */
    ASYM_UNIT_FOREIGN, /**< another program changed them: asymd only reads them */
};

/** A capped unit: CPUs that change together, a frequency domain or a core. */
struct asym_capped_unit {
    const struct asym_cap_method *method; /* borrowed */
    int cpu;                              /* the CPU by which asymd reads and writes the unit */
    struct asym_mask cpus;
    struct asym_cap_state original, set;
    enum asym_unit_state state;
    bool missing; /* it was offline at the last check */
    bool leaving; /* it was offline when asymd had to restore it; the check restores it when it is back */
    /* The last write. settling: the file may still show from. */
    struct asym_cap_state from, to;
    bool settling;
    int error; /* of the last write; 0, -errno */
};

struct asym_speed_cap {
    struct asym_ledger *ledger; /* borrowed */
    const struct asym_cap_method *const *methods;
    struct asym_capped_unit *held;
    size_t n;
    char *unread; /* records that asymd does not understand, a line each; NULL: none. They stay in the ledger */
    size_t n_unread;
    struct asym_caps caps;
};

/* The record of a unit in the ledger: METHOD CPU CPUS LOW HIGH SET_LOW SET_HIGH pending|set. */
enum { METHOD, CPU, CPUS, LOW, HIGH, SET_LOW, SET_HIGH, STATE, N_FIELDS };

/* Replaces the records by those of the units to restore. Returns 0; -errno. */
static int save(const struct asym_speed_cap *a)
{
    ASYM_AUTO_FREE char *text = NULL;
    char cpus[ASYM_MASK_LIST_MAX];
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (f && a->unread)
        fputs(a->unread, f);
    for (size_t i = 0; f && i < a->n; i++) {
        const struct asym_capped_unit *h = &a->held[i];
        if (h->state != ASYM_UNIT_FOREIGN)
            fprintf(f, ASYM_LEDGER_CAP "%s %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", h->method->name,
                    h->cpu, asym_mask_format_list(&h->cpus, cpus, sizeof cpus), h->original.low, h->original.high,
                    h->set.low, h->set.high, h->state == ASYM_UNIT_SET ? "set" : "pending");
    }
    return !f || asym_close_text(f, &text) < 0 ? -ENOMEM : asym_ledger_set_caps(a->ledger, text);
}

static bool take_numbers(char *const *field, struct asym_capped_unit *ret)
{
    uint64_t cpu, *const numbers[N_FIELDS] = {[CPU] = &cpu,
                                              [LOW] = &ret->original.low,
                                              [HIGH] = &ret->original.high,
                                              [SET_LOW] = &ret->set.low,
                                              [SET_HIGH] = &ret->set.high};
    for (size_t i = 0; i < N_FIELDS; i++)
        if (numbers[i] && asym_parse_u64(field[i], strlen(field[i]), numbers[i]) < 0)
            return false;
    ret->cpu = (int)ASYM_MIN(cpu, (uint64_t)ASYM_MAX_CPUS);
    return asym_mask_parse_list(field[CPUS], strlen(field[CPUS]), &ret->cpus) == 0 &&
           asym_mask_has(&ret->cpus, ret->cpu);
}

static int take_record(struct asym_speed_cap *a, char *record)
{
    char *field[N_FIELDS];
    struct asym_capped_unit h = {.method = NULL};
    size_t n = 0;
    while (n < N_FIELDS && record)
        field[n++] = strsep(&record, " ");
    if (n < N_FIELDS || record)
        return -EBADMSG;
    for (size_t i = 0; a->methods[i]; i++)
        if (strcmp(a->methods[i]->name, field[METHOD]) == 0)
            h.method = a->methods[i];
    if (!h.method || !take_numbers(field, &h))
        return -EBADMSG;
    h.state = strcmp(field[STATE], "pending") == 0 ? ASYM_UNIT_PENDING : ASYM_UNIT_SET;
    struct asym_capped_unit *grown = reallocarray(a->held, a->n + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    a->held = grown;
    a->held[a->n++] = h;
    return 0;
}

/* Keep the record. The first one is told. */
static int leave_record(struct asym_speed_cap *a, const char *line, struct asym_error *err)
{
    char shown[256];
    char *both = NULL;
    if (asprintf(&both, "%s%s\n", a->unread ? a->unread : "", line) < 0)
        return -ENOMEM;
    free(a->unread);
    a->unread = both;
    asym_text_show(line, shown, sizeof shown);
    if (a->n_unread++ == 0)
        asym_fail(err, 0, "asymd cannot restore the speed of CPUs by this record of the ledger, where it stays: %s",
                  shown);
    return 0;
}

static int load(struct asym_speed_cap *a, struct asym_error *err)
{
    const char *rest = asym_ledger_caps(a->ledger);
    int r = 0;
    for (const char *end; r == 0 && (end = strchr(rest, '\n')); rest = end + 1) {
        ASYM_AUTO_FREE char *line = strndup(rest, (size_t)(end - rest)), *fields = line ? strdup(line) : NULL;
        r = fields ? take_record(a, fields + strlen(ASYM_LEDGER_CAP)) : -ENOMEM;
        if (r == -EBADMSG)
            r = leave_record(a, line, err);
    }
    return r;
}

int asym_speed_cap_open(struct asym_ledger *ledger, const struct asym_cap_method *const *methods,
                        struct asym_speed_cap **ret, struct asym_error *err)
{
    struct asym_speed_cap *a = calloc(1, sizeof *a);
    if (!a)
        return asym_fail(err, -ENOMEM, "no memory for frequency caps");
    *a = (struct asym_speed_cap){.ledger = ledger, .methods = methods};
    if (load(a, err) < 0) {
        asym_speed_cap_close(a);
        return asym_fail(err, -ENOMEM, "no memory for frequency caps");
    }
    *ret = a;
    return 0;
}

void asym_speed_cap_close(struct asym_speed_cap *a)
{
    if (!a)
        return;
    free(a->unread);
    free(a->held);
    free(a);
}

const struct asym_caps *asym_speed_cap_speeds(const struct asym_speed_cap *a)
{
    return &a->caps;
}

static bool same(const struct asym_cap_state *a, const struct asym_cap_state *b)
{
    return a->low == b->low && a->high == b->high;
}

/* Reads by any CPU of the domain: an offline CPU has no files, while the caps of the others are still in force. */
static int read_state(struct asym_capped_unit *h, struct asym_cap_state *ret)
{
    int r = h->method->read(h->method->ctx, h->cpu, ret);
    for (int c = -1; r == -ENODEV && (c = asym_mask_next(&h->cpus, c + 1)) >= 0;) {
        r = h->method->read(h->method->ctx, c, ret);
        h->cpu = r < 0 ? h->cpu : c;
    }
    return r;
}

/* An unknown share counts as 1, so that the machine is as without asymd. */
static void note_share(struct asym_speed_cap *a, const struct asym_capped_unit *h, const struct asym_cap_state *state)
{
    double share = h->method->share(h->method->ctx, h->cpu, state);
    ASYM_MASK_FOREACH (c, &h->cpus) {
        asym_mask_set(&a->caps.cpus, (unsigned)c);
        a->caps.share[c] = share > 0 && share <= 1 ? share : 1;
    }
}

static int write_state(struct asym_capped_unit *h, const struct asym_cap_state *from, const struct asym_cap_state *to)
{
    h->from = *from;
    h->to = *to;
    h->error = h->method->write(h->method->ctx, h->cpu, from, to);
    h->settling = h->error >= 0;
    return h->error;
}

static bool has_arrived(const struct asym_capped_unit *h, const struct asym_cap_state *now)
{
    return (h->to.low == h->from.low || now->low != h->from.low) &&
           (h->to.high == h->from.high || now->high != h->from.high);
}

/*
 * Since Linux 5.3 a kernel worker applies a written limit to the policy, so the file may still show the old limit right after
 * the write. asymd would take that for a driver that ignores the limit, or record it as the original when it caps the CPUs
 * again. So a start, an order and an end wait, at most 1 s for all domains together: a driver that does ignore the limit takes
 * the whole time. The check, which runs between samples, looks again at its next call instead.
 */
static void settle(struct asym_speed_cap *a)
{
    const struct timespec pause = {.tv_nsec = SETTLE_STEP};
    bool waiting = true;
    for (unsigned step = 0; waiting && step < SETTLE_STEPS; step++) {
        waiting = false;
        for (size_t i = 0; i < a->n; i++) {
            struct asym_cap_state now;
            struct asym_capped_unit *h = &a->held[i];
            h->settling = h->settling && read_state(h, &now) >= 0 && !has_arrived(h, &now);
            waiting = waiting || h->settling;
        }
        if (waiting)
            nanosleep(&pause, NULL);
    }
    for (size_t i = 0; i < a->n; i++)
        a->held[i].settling = false;
}

/*
 * Restores a unit. A limit that another program has changed meanwhile stays, each limit by itself. A change that was pending
 * when asymd was killed may have left any state, and the kernel may still apply it, so then asymd always writes the original.
 */
static int restore_unit(struct asym_capped_unit *h, bool *ret_foreign)
{
    struct asym_cap_state now, to = h->original;
    int r = read_state(h, &now);
    if (r < 0)
        return r;
    if (h->state == ASYM_UNIT_PENDING || h->state == ASYM_UNIT_REFUSED) {
        r = write_state(h, &h->set, &to);
        /* The write of the cap failed, too: the original is in force. */
        return r < 0 && h->state == ASYM_UNIT_REFUSED && same(&now, &to) ? 0 : r;
    }
    to.low = now.low == h->set.low ? h->original.low : now.low;
    to.high = now.high == h->set.high ? h->original.high : now.high;
    *ret_foreign = !same(&to, &h->original);
    return same(&now, &to) ? 0 : write_state(h, &now, &to);
}

void asym_speed_cap_restore(struct asym_speed_cap *a, struct asym_speed_restore_report *ret_report)
{
    struct asym_speed_restore_report report = {.failed = a->n_unread, .error = a->n_unread > 0 ? -EBADMSG : 0};
    size_t left = 0;
    settle(a);
    for (size_t i = 0; i < a->n; i++) {
        struct asym_capped_unit *h = &a->held[i];
        bool foreign = h->state == ASYM_UNIT_FOREIGN;
        h->error = foreign ? 0 : restore_unit(h, &foreign);
        report.restored += h->error >= 0 && !foreign;
        report.foreign += h->error >= 0 && foreign;
        h->missing = h->leaving = h->error == -ENODEV;
        report.offline += h->missing;
        report.failed += h->error < 0 && !h->missing;
        report.error = report.error || h->missing ? report.error : ASYM_MIN(h->error, 0);
    }
    settle(a);
    for (size_t i = 0; i < a->n; i++)
        if (a->held[i].error < 0)
            a->held[left++] = a->held[i];
    a->n = left;
    a->caps.cpus = (struct asym_mask){0};
    save(a);
    *ret_report = report;
}

/* Returns the CPUs that change together with cpu: those of its core if the method works on cores, else of its domain. */
static struct asym_mask unit_of(const struct asym_machine *m, const struct asym_cap_method *method, int cpu)
{
    struct asym_mask unit = {0};
    ASYM_MASK_FOREACH (c, &m->usable) {
        const struct asym_cpu *x = &m->cpus[c], *y = &m->cpus[cpu];
        if (c == cpu || (method->whole_core ? x->core == y->core : x->freq_domain == y->freq_domain))
            asym_mask_set(&unit, (unsigned)c);
    }
    return unit;
}

struct plan {
    const struct asym_cap_method *method;
    const struct asym_machine *machine;
    const struct asym_slow_speeds *speeds;
    struct asym_capped_unit *held;
    size_t n, n_waiting;
};

/* Returns the speed that all CPUs of the unit get; NULL: they have none, or different ones. */
static const struct asym_slow_speed *speed_of(const struct plan *p, const struct asym_mask *unit, int cpu)
{
    const struct asym_slow_speed *speed = asym_slow_speed_of(p->speeds, cpu);
    ASYM_MASK_FOREACH (c, unit) {
        const struct asym_slow_speed *other = asym_slow_speed_of(p->speeds, c);
        if (!speed || !other || speed->khz != other->khz || speed->share < other->share || speed->share > other->share)
            return NULL;
    }
    return speed;
}

/* With a whole_core method each CPU of a core has its own register, and the fastest value is in force. */
static int plan_unit(struct plan *p, const struct asym_mask *slow, int cpu, struct asym_error *err)
{
    char why[160], outside[128];
    const struct asym_mask unit = unit_of(p->machine, p->method, cpu), rest = asym_mask_minus(&unit, slow);
    struct asym_capped_unit h = {.method = p->method, .cpu = cpu, .cpus = unit, .state = ASYM_UNIT_PENDING};
    if (p->method->whole_core) {
        h.cpus = (struct asym_mask){0};
        asym_mask_set(&h.cpus, (unsigned)cpu);
    }
    if (!asym_mask_empty(&rest))
        return asym_fail(err, -EINVAL, "asymmetry.slow: CPU %d shares its %s with CPUs %s: name all of them, or none",
                         cpu, p->method->whole_core ? "core" : "frequency",
                         asym_mask_format_list(&rest, outside, sizeof outside));
    const struct asym_slow_speed *speed = speed_of(p, &unit, cpu);
    if (!speed)
        return asym_fail(err, -EINVAL, "asymmetry.slow_speed: CPUs %s share their %s: give them one speed",
                         asym_mask_format_list(&unit, outside, sizeof outside),
                         p->method->whole_core ? "core" : "frequency");
    int r = p->method->probe(p->method->ctx, cpu, why, sizeof why);
    if (r < 0)
        return asym_fail(err, r, "asymmetry.method %s cannot be used: %s", p->method->name, why);
    r = read_state(&h, &h.original);
    if (r >= 0)
        r = p->method->choose(p->method->ctx, cpu, speed, &h.original, &h.set);
    if (r < 0)
        return asym_fail(err, r, "asymmetry: CPU %d: %s", cpu, strerror(-r));
    p->held[p->n++] = h;
    return 0;
}

static int make_plan(struct plan *p, const struct asym_mask *slow, struct asym_error *err)
{
    struct asym_mask left = asym_mask_and(slow, &p->machine->usable);
    /* With room for the units that wait to be restored. */
    p->held = calloc(asym_mask_count(&left) + p->n_waiting + 1, sizeof *p->held);
    if (!p->held)
        return asym_fail(err, -ENOMEM, "no memory for frequency caps");
    while (!asym_mask_empty(&left)) {
        int r = plan_unit(p, slow, asym_mask_next(&left, 0), err);
        if (r < 0) {
            free(p->held);
            return r;
        }
        left = asym_mask_minus(&left, &p->held[p->n - 1].cpus);
    }
    return 0;
}

static bool is_held_so(const struct asym_capped_unit *h, const struct asym_capped_unit *wanted)
{
    return h->method == wanted->method && h->state != ASYM_UNIT_FOREIGN && !h->missing &&
           asym_mask_equal(&h->cpus, &wanted->cpus) && same(&h->set, &wanted->set) && same(&wanted->original, &h->set);
}

/* Returns whether the caps in force are those of the plan. Offline units do not count. */
static bool is_held(const struct asym_speed_cap *a, const struct plan *p)
{
    size_t n = 0, matched = 0;
    for (size_t i = 0; i < a->n; i++) {
        n += !a->held[i].missing;
        for (size_t k = 0; k < p->n; k++)
            matched += is_held_so(&a->held[i], &p->held[k]);
    }
    return n == p->n && matched == n;
}

static int cannot_hold(const struct asym_capped_unit *h, int error, struct asym_error *err)
{
    return asym_fail(err, error, "asymmetry: CPU %d cannot be capped by %s: %s", h->cpu, h->method->name,
                     strerror(-error));
}

/* Reads the result of the write and records it. */
static int confirm(struct asym_speed_cap *a, struct asym_capped_unit *h, struct asym_error *err)
{
    struct asym_cap_state now;
    int r = read_state(h, &now);
    if (r < 0)
        return cannot_hold(h, r, err);
    if (same(&now, &h->original) && !same(&h->set, &h->original))
        return asym_fail(err, -ENOTSUP, "asymmetry: the driver of CPU %d accepts a cap and ignores it", h->cpu);
    h->set = now;
    h->state = ASYM_UNIT_SET;
    note_share(a, h, &now);
    return 0;
}

/* Applies the plan, whose units a then owns. It saves the file first. On failure it restores all CPUs. */
static int carry_out(struct asym_speed_cap *a, const struct plan *p, struct asym_error *err)
{
    struct asym_speed_restore_report report;
    for (size_t i = 0; i < p->n_waiting; i++)
        p->held[p->n + i] = a->held[i];
    free(a->held);
    a->held = p->held;
    a->n = p->n + p->n_waiting;
    int r = save(a);
    if (r < 0) {
        /* asymd did not cap the other units, so a later write of the ledger must not record them. */
        memmove(a->held, a->held + p->n, p->n_waiting * sizeof *a->held);
        a->n = p->n_waiting;
        save(a);
        return asym_fail(err, r, "cannot record the limits to restore: %s", strerror(-r));
    }
    for (size_t i = 0; r >= 0 && i < p->n; i++)
        if (write_state(&a->held[i], &a->held[i].original, &a->held[i].set) < 0) {
            a->held[i].state = ASYM_UNIT_REFUSED;
            r = cannot_hold(&a->held[i], a->held[i].error, err);
        }
    if (r >= 0)
        settle(a);
    for (size_t i = 0; r >= 0 && i < p->n; i++)
        r = confirm(a, &a->held[i], err);
    if (r >= 0)
        r = save(a);
    if (r < 0)
        asym_speed_cap_restore(a, &report);
    return r;
}

int asym_speed_cap_set(struct asym_speed_cap *a, const struct asym_cap_method *method, const struct asym_machine *m,
                       const struct asym_mask *slow, const struct asym_slow_speeds *speeds, struct asym_error *err)
{
    struct plan p = {.method = method, .machine = m, .speeds = speeds};
    struct asym_speed_restore_report report;
    /* It would take a limit that an earlier asymd has set for the original. */
    if (a->n_unread > 0)
        return asym_fail(err, -EBADMSG,
                         "asymd caps no CPU, because the ledger has a record of caps that it cannot read");
    settle(a);
    int r = make_plan(&p, slow, err);
    if (r < 0)
        return r;
    const bool already = is_held(a, &p);
    free(p.held);
    if (already)
        return 0;
    asym_speed_cap_restore(a, &report);
    if (report.failed > 0)
        return asym_fail(err, report.error, "cannot restore the previous limits of the CPUs: %s",
                         strerror(-report.error));
    p.n = 0;
    p.n_waiting = a->n;
    r = make_plan(&p, slow, err); /* again: the limits before the plan are the restored ones now */
    return r < 0 ? r : carry_out(a, &p, err);
}

/* A domain whose CPUs were offline may have lost its limits: caps it again, or restores it if asymd had to. */
static void welcome_back(struct asym_capped_unit *h)
{
    struct asym_cap_state now;
    bool foreign;
    const bool was_missing = h->missing, was_settling = h->settling;
    h->error = 0;
    h->settling = false;
    h->missing = read_state(h, &now) < 0;
    if (h->missing || h->state == ASYM_UNIT_FOREIGN)
        return;
    if (h->leaving && was_settling && has_arrived(h, &now))
        return; /* the last check has restored it */
    if (h->leaving)
        h->error = restore_unit(h, &foreign);
    else if (was_missing && same(&now, &h->original))
        write_state(h, &now, &h->set);
}

/* Releases a unit with a limit that another program has changed, and restores the other limit. */
static void let_go(struct asym_capped_unit *h, struct asym_mask *ret_cpus)
{
    bool foreign;
    restore_unit(h, &foreign);
    h->state = ASYM_UNIT_FOREIGN;
    *ret_cpus = asym_mask_or(ret_cpus, &h->cpus);
}

/* Updates a unit's share. Returns whether its speed has changed. */
static bool update_unit(struct asym_speed_cap *a, struct asym_capped_unit *h, struct asym_mask *ret_let_go)
{
    struct asym_cap_state now;
    const double before = a->caps.share[h->cpu];
    if (h->missing || read_state(h, &now) < 0) {
        h->missing = true;
        return false;
    }
    if (h->state != ASYM_UNIT_FOREIGN && !same(&now, &h->set))
        let_go(h, ret_let_go);
    note_share(a, h, &now);
    return a->caps.share[h->cpu] < before || a->caps.share[h->cpu] > before;
}

int asym_speed_cap_check(struct asym_speed_cap *a, struct asym_mask *ret_let_go)
{
    bool changed = false;
    struct asym_mask let_go = {0};
    size_t left = 0;
    for (size_t i = 0; i < a->n; i++)
        welcome_back(&a->held[i]);
    for (size_t i = 0; i < a->n; i++) {
        struct asym_capped_unit *h = &a->held[i];
        if (h->leaving && !h->missing && !h->settling && h->error >= 0)
            continue; /* it is restored */
        changed = (!h->leaving && !h->settling && update_unit(a, h, &let_go)) || changed;
        a->held[left++] = *h;
    }
    if (left != a->n || !asym_mask_empty(&let_go)) {
        a->n = left;
        save(a);
    }
    *ret_let_go = let_go;
    return changed;
}
