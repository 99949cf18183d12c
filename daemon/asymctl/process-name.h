/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Processes as users name them: by a PID, by the name of the program, or by a part of the command line. */
#ifndef ASYM_DAEMON_ASYMCTL_PROCESS_NAME_H
#define ASYM_DAEMON_ASYMCTL_PROCESS_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <asym/types.h>

#include "daemon/asymctl/service-verb.h"
#include "linux/sys/root.h"

enum {
    ASYM_COMMAND_SIZE = 512, /**< bytes of a command line, after which it is cut */
    ASYM_USER_SIZE = 32,     /**< bytes of the name of a user, after which it is cut */
};

/**
 * Write the command line of a process: its words, with the first one without its directory, so that the name of the program
 * comes first. The words hold any bytes. Returns its length; 0: it has none, as a kernel thread has none; -errno: the process
 * has ended.
 */
int asym_command_of(const struct asym_root *root, uint32_t pid, char buf[ASYM_COMMAND_SIZE]);

/** Write the name of the user, or the number where this machine knows no name. Returns buf. */
const char *asym_user_of(uint32_t uid, char buf[ASYM_USER_SIZE]);

struct asym_named_process {
    uint32_t pid, uid;
    asym_usec cpu_time;
    char command[ASYM_COMMAND_SIZE]; /**< of a process without a command line: its name */
};

struct asym_named_processes {
    struct asym_named_process *process; /**< owned; what has used the most CPU time comes first */
    size_t n, capacity;
    bool by_command_line; /**< no process has the name; these have it in their command lines */
};

/**
 * Find the processes whose program has that name: as the first word of the command line names it, or as the kernel does, which cuts
 * the name to 15 bytes. If there are none, find those with the name anywhere in their command lines, but not the process self and
 * those that started it: the shell and sudo have it, too. Returns 0, with none or more of them; -errno.
 */
int asym_named_processes_find(const struct asym_root *root, const char *name, int32_t self,
                              struct asym_named_processes *ret);

void asym_named_processes_done(struct asym_named_processes *processes);

/** Print a heading, the first of them as a table, and the verb with a PID, for the user to type. Returns 0; -errno. */
int asym_named_processes_list(const struct asym_named_processes *processes, const char *name, const char *verb,
                              FILE *out);

/** Find them on this machine, for a verb. If there are none, or the name is a number, prints that. Returns the exit status. */
int asym_verb_named_processes(const char *verb, const char *name, struct asym_named_processes *ret);

/** The process that a verb is about. */
struct asym_process_operand {
    uint32_t pid;   /**< for some verbs it can be a TID, too */
    char text[128]; /**< for the sentence to the user: "4711", or "4711 (gzip -9 file)" if the user gave a name */
};

/**
 * Find the process that the operand of that verb means, by its PID or the name of its program, and connect. If there is none, or
 * more than one, or only command lines have the name, prints that, and which ones. Returns the exit status.
 */
int asym_verb_process_and_connect(const char *verb, const char *operand, struct asym_process_operand *ret_process,
                                  struct asym_client **ret_client);

#endif
