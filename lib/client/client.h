/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The client's side of org.asymd.Manager, the bus object of a running asymd: a function for each order and
 * report. The reports become plain structs.
 *
 * Strings are never NULL. They are valid UTF-8, but may hold control characters, because programs name themselves: escape them
 * before you print them (asym_text_escape). Keys of an answer that this version does not know are ignored; a missing key leaves
 * 0, false or "".
 *
 * Each call waits at most 5 s for the answer. Functions that change something wait 60 s. On the system bus
 * they wait 180 s, because polkit may ask the user for a password (asym/manager.h). Errors are one sentence in err, and one of:
 *     -ENOTCONN   no asymd runs; the sentence says how to start it
 *     -EACCES     not permitted; the sentence says how to get the permission
 *     -ESRCH      asymd does not know the process
 *     -ENOTSUP    not possible here; the sentence says why
 *     -ENODATA    this machine lacks a signal that the policy needs
 *     -EBUSY      too many calls wait for an answer of the bus daemon or of polkit
 *     -EINVAL     wrong argument
 *     -ETIMEDOUT  no answer
 *     -EBADMSG    an answer of another version of asymd
 *     -errno      the connection was lost, and the like
 */
#ifndef ASYM_CLIENT_CLIENT_H
#define ASYM_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <asym/error.h>
#include <asym/types.h>

/** The socket of the direct connection, which root can use without a bus daemon. */
#define ASYM_CLIENT_SOCKET "/run/asymd/bus"

/** The environment variable that names another socket; then the system bus is not tried. */
#define ASYM_CLIENT_SOCKET_VARIABLE "ASYMD_BUS"

struct asym_client;

/** Connect to the socket if the user may, else to the system bus. Does not start asymd. Returns 0; see above. */
int asym_client_open(struct asym_client **ret, struct asym_error *err);

/** client: may be NULL. */
void asym_client_close(struct asym_client *client);

/**
 * Let polkit ask the user for a password, and call before and after with each call on the system bus that changes something.
 * after gets what before has returned. Without this, polkit refuses at once where it would ask, and a change waits for asymd as
 * long as a question does: 5 s.
 */
void asym_client_around_changes(struct asym_client *client, void *(*before)(void), void (*after)(void *ctx));

static inline void asym_client_close_p(struct asym_client **client)
{
    asym_client_close(*client);
}

struct asym_client_cpu {
    uint32_t cpu, type; /**< type: 0 is the fastest */
    uint32_t smt_rank;  /**< place among the hardware threads of its core: 0 is the first */
    char *type_name;
    double speed; /**< relative */
    bool fast;
    double busy;      /**< share of the last interval, 0 to 1 */
    uint32_t threads; /**< that asymd steers to it */
    uint32_t tid;     /**< of the thread of interest that was seen there last; 0: none */
    char *comm;       /**< its name; "": none */
};

struct asym_client_app {
    uint32_t pid; /**< of a job the number of its process group; 0: a cgroup */
    uint32_t processes;
    char *cgroup, *comm;
    uint32_t uid;
    char *phase;      /**< "idle", "serial", "parallel" */
    char *class;      /**< "MP", "HP", "SP" if a thread has it, "" */
    char *class_name; /**< phase and class as people read them: "serial", "background" (asym_explain_class_name) */
    double runnable;  /**< runnable threads, on average */
    double running;   /**< CPUs that its threads used on average in the last interval */
    uint32_t threads, steered;
    double fast_share; /**< share of its running time on fast CPUs, of the last minute at most */
    uint32_t moves_per_minute;
    char *reason;
};

/** The state of the service. Times in microseconds; times of day are CLOCK_REALTIME. */
struct asym_client_status {
    char *version;
    asym_usec start; /**< time of day */
    char *policy, *policy_reason;
    char *fast_cpus, *slow_cpus; /**< "0-3,8"; slow "": all CPUs are alike */
    uint32_t threads_steered;
    uint64_t changes; /**< to threads, since the start */
    uint32_t changes_last_minute;
    asym_usec interval; /**< between two samples now */
    double cpu_usage;   /**< share of one CPU */
    uint64_t memory;    /**< resident bytes */
    bool paused;
    asym_usec paused_until; /**< time of day; 0: until asymctl resume, or not paused */
    uint32_t orders;        /**< processes that a user has given a rule */
    char *observer;         /**< "schedstat, process events" */
    char *profile;          /**< path of the file of profiles; "": none */
    char **lacks;           /**< sentences: what asymd cannot do here */
    struct asym_client_cpu *cpus;
    struct asym_client_app *apps;
    size_t n_lacks, n_cpus, n_apps;
};

int asym_client_get_status(struct asym_client *client, struct asym_client_status *ret, struct asym_error *err);
void asym_client_status_done(struct asym_client_status *status);
int asym_client_get_application(struct asym_client *client, uint32_t pid, struct asym_client_app *ret,
                                struct asym_error *err);
void asym_client_app_done(struct asym_client_app *app);

/** A change of a thread. */
struct asym_client_decision {
    asym_usec time; /**< time of day */
    uint32_t pid, tid;
    char *comm;
    int32_t from, to, nice; /**< CPUs; -1: none */
    char *class;            /**< "MP", "HP", "SP", "" */
    char *what;             /**< "steer", "release", "repair", "leave alone" */
    char *reason;
};

struct asym_client_evidence {
    char *name, *value;
};

struct asym_client_explanation {
    char **sentences;
    struct asym_client_evidence *evidence;
    struct asym_client_decision *decisions; /**< the last ones, the newest first */
    size_t n_sentences, n_evidence, n_decisions;
};

/** id: of a process or a thread. */
int asym_client_explain(struct asym_client *client, uint32_t id, struct asym_client_explanation *ret,
                        struct asym_error *err);
void asym_client_explanation_done(struct asym_client_explanation *explanation);

struct asym_client_counter {
    char *name; /**< the OpenMetrics name without "asymd_"; labels may follow: "actions_total{kind=\"steer\"}" */
    char *kind; /**< "counter", "gauge" */
    double value;
};

struct asym_client_counters {
    struct asym_client_counter *counters;
    size_t n_counters;
};

int asym_client_get_counters(struct asym_client *client, struct asym_client_counters *ret, struct asym_error *err);
void asym_client_counters_done(struct asym_client_counters *counters);

/** Ask for a report (org.asymd.Manager(5), GetReport). *ret: a new reference to an object; texts as asymd has sent them. */
int asym_client_get_report(struct asym_client *client, const char *topic, uint64_t argument, json_t **ret,
                           struct asym_error *err);

/** *ret: the effective configuration as INI, for asym_settings_read_printed, with a NUL behind it; free it. */
int asym_client_get_configuration(struct asym_client *client, char **ret, size_t *ret_len, struct asym_error *err);

int asym_client_set_policy(struct asym_client *client, const char *name, bool permanent, struct asym_error *err);

/** seconds: 0: until asym_client_resume. */
int asym_client_pause(struct asym_client *client, uint64_t seconds, struct asym_error *err);
int asym_client_resume(struct asym_client *client, struct asym_error *err);
int asym_client_reload(struct asym_client *client, struct asym_error *err);

/**
 * Write a lasting rule for the program of the process. action: as below; "auto" removes it. *ret_file: the path of the file;
 * *ret_before: the name of the rule that matches the program, too, and comes first, or "". Free both.
 */
int asym_client_set_rule(struct asym_client *client, uint32_t pid, const char *action, char **ret_file,
                         char **ret_before, struct asym_error *err);

/** action: "fast", "slow", "ignore", "steer"; "auto" ends each of them, and takes back threads that asymd leaves alone. */
int asym_client_set_program(struct asym_client *client, uint32_t pid, const char *action, struct asym_error *err);

/** The place of a client in the decisions of asymd. All zero: their end, which the first answer says. */
struct asym_client_since {
    uint64_t number; /**< of the last decision */
    asym_usec start; /**< of the asymd that has numbered it, time of day; 0: none has answered yet */
    uint64_t lost;   /**< how many of those that the last call asked for asymd does not remember */
};

/**
 * Call on_decision for each decision that asymd has made since the last call with this since. asymd remembers ten decisions of a
 * thread: ask several times a second. Waits for at most the time `wait`: the next call takes an answer that comes later, and asks
 * again if asymd has refused. Returns 0; an error as above, but -EBUSY. -ENOTCONN: asymd has ended, or was started again.
 */
int asym_client_get_decisions(struct asym_client *client, struct asym_client_since *since, asym_usec wait,
                              void (*on_decision)(void *ctx, const struct asym_client_decision *decision), void *ctx,
                              struct asym_error *err);

#endif
