/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of the reports. org.asymd.Manager(5) says what each key means. */
#include "client/client-internal.h"

/* clang-format off */
#define FIELD(struct_, key_, type_, field_) {.key = key_, .type = type_, .offset = offsetof(struct struct_, field_)}
#define LIST(struct_, key_, field_, record_)                                                                           \
    {.key = key_, .type = 'a', .offset = offsetof(struct struct_, field_), .count = offsetof(struct struct_, n_##field_), \
     .record = record_}

static const struct client_record cpu = {sizeof(struct asym_client_cpu), (const struct client_field[]){
    FIELD(asym_client_cpu, "cpu", 'u', cpu),
    FIELD(asym_client_cpu, "type", 'u', type),
    FIELD(asym_client_cpu, "smt_rank", 'u', smt_rank),
    FIELD(asym_client_cpu, "type_name", 's', type_name),
    FIELD(asym_client_cpu, "speed", 'd', speed),
    FIELD(asym_client_cpu, "fast", 'b', fast),
    FIELD(asym_client_cpu, "busy", 'd', busy),
    FIELD(asym_client_cpu, "threads", 'u', threads),
    FIELD(asym_client_cpu, "tid", 'u', tid),
    FIELD(asym_client_cpu, "comm", 's', comm),
    {.type = 0}}};

const struct client_record client_record_app = {sizeof(struct asym_client_app), (const struct client_field[]){
    FIELD(asym_client_app, "pid", 'u', pid),
    FIELD(asym_client_app, "processes", 'u', processes),
    FIELD(asym_client_app, "cgroup", 's', cgroup),
    FIELD(asym_client_app, "comm", 's', comm),
    FIELD(asym_client_app, "uid", 'u', uid),
    FIELD(asym_client_app, "phase", 's', phase),
    FIELD(asym_client_app, "class", 's', class),
    FIELD(asym_client_app, "class_name", 's', class_name),
    FIELD(asym_client_app, "runnable", 'd', runnable),
    FIELD(asym_client_app, "running", 'd', running),
    FIELD(asym_client_app, "threads", 'u', threads),
    FIELD(asym_client_app, "steered", 'u', steered),
    FIELD(asym_client_app, "fast_share", 'd', fast_share),
    FIELD(asym_client_app, "moves_per_minute", 'u', moves_per_minute),
    FIELD(asym_client_app, "reason", 's', reason),
    {.type = 0}}};

const struct client_record client_record_status = {sizeof(struct asym_client_status), (const struct client_field[]){
    FIELD(asym_client_status, "version", 's', version),
    FIELD(asym_client_status, "start_us", 't', start),
    FIELD(asym_client_status, "policy", 's', policy),
    FIELD(asym_client_status, "policy_reason", 's', policy_reason),
    FIELD(asym_client_status, "fast_cpus", 's', fast_cpus),
    FIELD(asym_client_status, "slow_cpus", 's', slow_cpus),
    FIELD(asym_client_status, "threads_steered", 'u', threads_steered),
    FIELD(asym_client_status, "changes", 't', changes),
    FIELD(asym_client_status, "changes_last_minute", 'u', changes_last_minute),
    FIELD(asym_client_status, "interval_us", 't', interval),
    FIELD(asym_client_status, "cpu_usage", 'd', cpu_usage),
    FIELD(asym_client_status, "memory_bytes", 't', memory),
    FIELD(asym_client_status, "paused", 'b', paused),
    FIELD(asym_client_status, "paused_until_us", 't', paused_until),
    FIELD(asym_client_status, "orders", 'u', orders),
    FIELD(asym_client_status, "observer", 's', observer),
    FIELD(asym_client_status, "profile", 's', profile),
    LIST(asym_client_status, "lacks", lacks, NULL),
    LIST(asym_client_status, "cpus", cpus, &cpu),
    LIST(asym_client_status, "applications", apps, &client_record_app),
    {.type = 0}}};

static const struct client_record evidence = {sizeof(struct asym_client_evidence), (const struct client_field[]){
    FIELD(asym_client_evidence, "name", 's', name),
    FIELD(asym_client_evidence, "value", 's', value),
    {.type = 0}}};

static const struct client_record decision = {sizeof(struct asym_client_decision), (const struct client_field[]){
    FIELD(asym_client_decision, "time_us", 't', time),
    FIELD(asym_client_decision, "pid", 'u', pid),
    FIELD(asym_client_decision, "tid", 'u', tid),
    FIELD(asym_client_decision, "comm", 's', comm),
    FIELD(asym_client_decision, "from", 'i', from),
    FIELD(asym_client_decision, "to", 'i', to),
    FIELD(asym_client_decision, "nice", 'i', nice),
    FIELD(asym_client_decision, "class", 's', class),
    FIELD(asym_client_decision, "what", 's', what),
    FIELD(asym_client_decision, "reason", 's', reason),
    {.type = 0}}};

const struct client_record client_record_explanation = {sizeof(struct asym_client_explanation),
                                                         (const struct client_field[]){
    LIST(asym_client_explanation, "sentences", sentences, NULL),
    LIST(asym_client_explanation, "evidence", evidence, &evidence),
    LIST(asym_client_explanation, "decisions", decisions, &decision),
    {.type = 0}}};

static const struct client_record counter = {sizeof(struct asym_client_counter), (const struct client_field[]){
    FIELD(asym_client_counter, "name", 's', name),
    FIELD(asym_client_counter, "kind", 's', kind),
    FIELD(asym_client_counter, "value", 'd', value),
    {.type = 0}}};

const struct client_record client_record_counters = {sizeof(struct asym_client_counters), (const struct client_field[]){
    LIST(asym_client_counters, "counters", counters, &counter),
    {.type = 0}}};

const struct client_record client_record_decisions = {sizeof(struct asym_client_decisions), (const struct client_field[]){
    FIELD(asym_client_decisions, "start_us", 't', start),
    FIELD(asym_client_decisions, "next", 't', next),
    FIELD(asym_client_decisions, "lost", 't', lost),
    FIELD(asym_client_decisions, "left", 't', left),
    LIST(asym_client_decisions, "decisions", decisions, &decision),
    {.type = 0}}};
