/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of org.asymd.Manager. The keys, types and units are those of its introspection data. */
#include "client/client-internal.h"

#define END                                                                                                            \
    {                                                                                                                  \
        .type = NULL                                                                                                   \
    }
#define FIELD(record, key_, type_, field_)                                                                             \
    {                                                                                                                  \
        .key = key_, .type = type_, .offset = offsetof(struct record, field_)                                          \
    }
#define LIST(struct_, key_, type_, field_, count_, record_)                                                            \
    {                                                                                                                  \
        .key = key_, .type = type_, .offset = offsetof(struct struct_, field_),                                        \
        .count = offsetof(struct struct_, count_), .record = record_                                                   \
    }

static const struct client_field state[] = {
    FIELD(asym_client_state, "Version", "s", version),
    FIELD(asym_client_state, "StartTimestamp", "t", start),
    FIELD(asym_client_state, "Policy", "s", policy),
    FIELD(asym_client_state, "PolicyReason", "s", policy_reason),
    FIELD(asym_client_state, "FastCPUs", "s", fast_cpus),
    FIELD(asym_client_state, "SlowCPUs", "s", slow_cpus),
    FIELD(asym_client_state, "ThreadsSteered", "u", threads_steered),
    FIELD(asym_client_state, "Changes", "t", changes),
    FIELD(asym_client_state, "ChangesLastMinute", "u", changes_last_minute),
    FIELD(asym_client_state, "Interval", "t", interval),
    FIELD(asym_client_state, "CPUUsage", "d", cpu_usage),
    FIELD(asym_client_state, "Memory", "t", memory),
    FIELD(asym_client_state, "Paused", "b", paused),
    FIELD(asym_client_state, "PausedUntil", "t", paused_until),
    FIELD(asym_client_state, "Orders", "u", orders),
    FIELD(asym_client_state, "Observer", "s", observer),
    FIELD(asym_client_state, "Profile", "s", profile),
    LIST(asym_client_state, "Lacks", "as", lacks, n_lacks, NULL),
    END,
};

static const struct client_field cpu[] = {
    FIELD(asym_client_cpu, "cpu", "u", cpu),
    FIELD(asym_client_cpu, "type", "u", type),
    FIELD(asym_client_cpu, "smt_rank", "u", smt_rank),
    FIELD(asym_client_cpu, "type_name", "s", type_name),
    FIELD(asym_client_cpu, "speed", "d", speed),
    FIELD(asym_client_cpu, "fast", "b", fast),
    FIELD(asym_client_cpu, "busy", "d", busy),
    FIELD(asym_client_cpu, "threads", "u", threads),
    FIELD(asym_client_cpu, "tid", "u", tid),
    FIELD(asym_client_cpu, "comm", "s", comm),
    END,
};

static const struct client_field decision[] = {
    FIELD(asym_client_decision, NULL, "t", time),
    FIELD(asym_client_decision, NULL, "i", from),
    FIELD(asym_client_decision, NULL, "i", to),
    FIELD(asym_client_decision, NULL, "s", what),
    FIELD(asym_client_decision, NULL, "s", class),
    FIELD(asym_client_decision, NULL, "s", reason),
    END,
};

static const struct client_record decisions = {"(tiisss)", sizeof(struct asym_client_decision), decision};

static const struct client_field thread[] = {
    FIELD(asym_client_thread, "tid", "u", tid),
    FIELD(asym_client_thread, "pid", "u", pid),
    FIELD(asym_client_thread, "comm", "s", comm),
    FIELD(asym_client_thread, "cpu", "i", cpu),
    FIELD(asym_client_thread, "target", "i", target),
    FIELD(asym_client_thread, "class", "s", class),
    FIELD(asym_client_thread, "runnable", "d", runnable),
    FIELD(asym_client_thread, "running", "d", running),
    FIELD(asym_client_thread, "nice", "i", nice),
    FIELD(asym_client_thread, "own_nice", "i", own_nice),
    FIELD(asym_client_thread, "mask", "s", mask),
    FIELD(asym_client_thread, "own_mask", "s", own_mask),
    FIELD(asym_client_thread, "reason", "s", reason),
    LIST(asym_client_thread, "decisions", "a(tiisss)", decisions, n_decisions, &decisions),
    END,
};

static const struct client_field app[] = {
    FIELD(asym_client_app, "pid", "u", pid),
    FIELD(asym_client_app, "processes", "u", processes),
    FIELD(asym_client_app, "cgroup", "s", cgroup),
    FIELD(asym_client_app, "comm", "s", comm),
    FIELD(asym_client_app, "uid", "u", uid),
    FIELD(asym_client_app, "phase", "s", phase),
    FIELD(asym_client_app, "class", "s", class),
    FIELD(asym_client_app, "class_name", "s", class_name),
    FIELD(asym_client_app, "runnable", "d", runnable),
    FIELD(asym_client_app, "running", "d", running),
    FIELD(asym_client_app, "threads", "u", threads),
    FIELD(asym_client_app, "steered", "u", steered),
    FIELD(asym_client_app, "fast_share", "d", fast_share),
    FIELD(asym_client_app, "moves_per_minute", "u", moves_per_minute),
    FIELD(asym_client_app, "reason", "s", reason),
    FIELD(asym_client_app, "rule", "s", rule),
    LIST(asym_client_app, "own_threads", "aa{sv}", own_threads, n_own_threads, &client_record_thread),
    END,
};

static const struct client_field evidence[] = {
    FIELD(asym_client_evidence, NULL, "s", name),
    FIELD(asym_client_evidence, NULL, "s", value),
    END,
};

static const struct client_field counter[] = {
    FIELD(asym_client_counter, NULL, "s", name),
    FIELD(asym_client_counter, NULL, "s", kind),
    FIELD(asym_client_counter, NULL, "t", whole),
    FIELD(asym_client_counter, NULL, "d", fraction),
    END,
};

const struct client_record client_record_state = {"a{sv}", sizeof(struct asym_client_state), state};
const struct client_record client_record_cpu = {"a{sv}", sizeof(struct asym_client_cpu), cpu};
const struct client_record client_record_thread = {"a{sv}", sizeof(struct asym_client_thread), thread};
const struct client_record client_record_app = {"a{sv}", sizeof(struct asym_client_app), app};
const struct client_record client_record_evidence = {"(ss)", sizeof(struct asym_client_evidence), evidence};
const struct client_record client_record_counter = {"(sstd)", sizeof(struct asym_client_counter), counter};
