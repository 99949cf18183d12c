/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the counters that work on this machine. It opens them to find out. */
#include "linux/perf/counters-probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/perf/counters-internal.h"

static void list_pmus(const struct asym_pmu *pmus, int n, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int i = 0; i < n; i++) {
        size_t more = strlen(pmus[i].name) + (at ? 2 : 0);
        if (more >= size - at)
            return;
        at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", pmus[i].name);
    }
}

static void list_counters(unsigned counters, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (unsigned k = 0; k < ASYM_N_COUNTERS; k++)
        if (counters >> k & 1 && at < size)
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
                                   asym_counter_name((enum asym_counter)k));
}

/*
 * Watches the calling thread for a moment. A successful open shows that a counter exists. The probe does not wait until
 * the counters run.
 */
static int try_self(const struct asym_root *root, const struct asym_counters_calls *calls,
                    struct asym_counters_coverage *s)
{
    const struct asym_counters_config config = {
        .root = root, .set = ASYM_COUNTERS_HARDWARE, .max_fds = ASYM_COUNTERS_PMUS * ASYM_COUNTERS_GROUP};
    const struct asym_taskid self = {.tid = (int32_t)syscall(SYS_gettid), .tgid = getpid()};
    struct asym_counters *c;
    struct asym_counts counts;
    int r = asym_counters_new_with(&config, calls, &c, NULL);
    if (r < 0)
        return r;
    r = c->watch(c, &self);
    if (r >= 0)
        r = c->read(c, &self, &counts);
    if (r >= 0) {
        s->counters = counts.valid;
        s->user_only = asym_counters_is_user_only(c);
    }
    c->close(c);
    return r;
}

void asym_counters_probe_with(const struct asym_root *root, const struct asym_counters_calls *calls,
                              struct asym_counters_coverage *ret)
{
    struct asym_pmu pmus[ASYM_COUNTERS_PMUS];
    struct asym_counters_coverage s = {.remedy = ""};
    const char *why;
    char counters[80];
    int n = asym_counters_pmus(root, pmus);
    list_pmus(pmus, n, s.pmus, sizeof s.pmus);
    s.error = n < 0 ? n : root->live ? try_self(root, calls, &s) : 0;
    list_counters(s.counters, counters, sizeof counters);
    if (s.error < 0) {
        asym_counters_why(s.error, &why, &s.remedy);
        snprintf(s.text, sizeof s.text,
                 "cannot count instructions and cycles: %s; policies that need ipc or stall cannot run", why);
    } else if (!root->live) {
        snprintf(s.text, sizeof s.text, "counters of instructions and cycles: %s", s.pmus);
    } else if (s.counters == 0) {
        snprintf(s.text, sizeof s.text, "%s: the counters open, but do not count; other programs may use all of them",
                 s.pmus);
        s.remedy = "end other profilers; sysctl kernel.nmi_watchdog=0 frees one counter";
    } else {
        snprintf(s.text, sizeof s.text, "%s: %s%s", s.pmus, counters, s.user_only ? ", in user space only" : "");
        s.remedy = s.user_only ? "run as root or with CAP_PERFMON to count kernel mode too" : "";
    }
    *ret = s;
}

void asym_counters_probe(const struct asym_root *root, struct asym_counters_coverage *ret)
{
    asym_counters_probe_with(root, &asym_counters_kernel, ret);
}
