/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/process-name.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "app/command-line.h"
#include "base/grow.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/wording.h"
#include "linux/observe/proc-owner.h"
#include "linux/sys/proc-parse.h"
#include "report/columns.h"

/* The most processes of a list. */
#define MOST_LISTED 10

/* The processes that started a process, from the process itself on: of a longer row the oldest count as strangers. */
#define MOST_ANCESTORS 64

/* Returns the file name of a path, of Windows, too: Wine keeps the path of the program as it is. */
static const char *file_name(const char *path)
{
    const char *last = NULL;
    if (path[0] == '/' || path[0] == '.')
        last = strrchr(path, '/');
    else if (isalpha((unsigned char)path[0]) && path[1] == ':')
        last = strrchr(path, '\\');
    return last && last[1] ? last + 1 : path;
}

int asym_command_of(const struct asym_root *root, uint32_t pid, char buf[ASYM_COMMAND_SIZE])
{
    char path[64], words[4096];
    snprintf(path, sizeof path, "proc/%" PRIu32 "/cmdline", pid);
    ssize_t n = asym_root_read(root, path, words, sizeof words);
    if (n < 0)
        return (int)n;
    while (n > 0 && words[n - 1] == '\0')
        n--;
    words[n] = '\0';
    const char *begin = file_name(words);
    for (ssize_t i = 0; i < n; i++)
        words[i] = words[i] == '\0' ? ' ' : words[i];
    return (int)ASYM_MIN((size_t)snprintf(buf, ASYM_COMMAND_SIZE, "%s", begin), (size_t)ASYM_COMMAND_SIZE - 1);
}

const char *asym_user_of(uint32_t uid, char buf[ASYM_USER_SIZE])
{
    const struct passwd *user = getpwuid((uid_t)uid);
    if (user)
        snprintf(buf, ASYM_USER_SIZE, "%s", user->pw_name);
    else
        snprintf(buf, ASYM_USER_SIZE, "%" PRIu32, uid);
    return buf;
}

void asym_named_processes_done(struct asym_named_processes *processes)
{
    free(processes->process);
    *processes = (struct asym_named_processes){.process = NULL};
}

/* The name that the user looks for. */
struct search {
    const struct asym_root *root;
    const char *name;
    uint32_t ancestors[MOST_ANCESTORS]; /* of asymctl, which is the first */
    size_t n_ancestors;
};

static void find_ancestors(struct search *s, int32_t self)
{
    struct asym_stat stat;
    for (int32_t pid = self; pid > 1 && s->n_ancestors < MOST_ANCESTORS; pid = stat.ppid) {
        s->ancestors[s->n_ancestors++] = (uint32_t)pid;
        if (asym_read_stat(s->root, (int32_t)pid, 0, &stat) < 0)
            return;
    }
}

static bool is_ancestor(const struct search *s, uint32_t pid)
{
    for (size_t i = 0; i < s->n_ancestors; i++)
        if (s->ancestors[i] == pid)
            return true;
    return false;
}

static bool has_name(const char *comm, const char *command, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(comm, name, ASYM_COMM_LEN - 1) == 0 ||
           (strncmp(command, name, n) == 0 && (command[n] == ' ' || command[n] == '\0'));
}

/* Returns 1: its program has the name. 2: only its command line has it. 0: it has not, or has ended. -ENOMEM. */
static int match_process(const struct search *s, uint32_t pid, struct asym_named_processes *ret)
{
    struct asym_stat stat;
    char command[ASYM_COMMAND_SIZE] = "";
    if (asym_read_stat(s->root, (int32_t)pid, 0, &stat) < 0 || stat.state == 'Z' ||
        asym_command_of(s->root, pid, command) < 0)
        return 0;
    const bool named = has_name(stat.comm, command, s->name);
    if (!named && (is_ancestor(s, pid) || !strstr(command, s->name)))
        return 0;
    if (asym_grow(&ret->process, ret->n, &ret->capacity, sizeof *ret->process) < 0)
        return -ENOMEM;
    struct asym_named_process *p = &ret->process[ret->n++];
    p->pid = pid;
    if (asym_proc_owner(s->root, (int32_t)pid, &p->uid) < 0)
        p->uid = UINT32_MAX;
    p->cpu_time = stat.ran * ASYM_SEC / (asym_usec)sysconf(_SC_CLK_TCK);
    snprintf(p->command, sizeof p->command, "%s", *command ? command : stat.comm);
    return named ? 1 : 2;
}

/* Looks at each process. A process whose program has the name drives out those that have it only in their command lines. */
static int search_processes(const struct search *s, DIR *dir, struct asym_named_processes *ret)
{
    const struct dirent *e;
    ret->by_command_line = true;
    while ((e = readdir(dir))) {
        uint32_t pid;
        const size_t before = ret->n;
        const int r = asym_verb_is_pid(e->d_name, &pid) ? match_process(s, pid, ret) : 0;
        if (r < 0)
            return r;
        if (r == 1 && ret->by_command_line) {
            ret->process[0] = ret->process[before];
            ret->n = 1;
            ret->by_command_line = false;
        } else if (r == 2 && !ret->by_command_line) {
            ret->n = before;
        }
    }
    return 0;
}

static int by_cpu_time(const void *a, const void *b)
{
    const struct asym_named_process *x = a, *y = b;
    if (x->cpu_time != y->cpu_time)
        return x->cpu_time < y->cpu_time ? 1 : -1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

int asym_named_processes_find(const struct asym_root *root, const char *name, int32_t self,
                              struct asym_named_processes *ret)
{
    struct asym_named_processes found = {.process = NULL};
    struct search s = {.root = root, .name = name};
    const int fd = asym_root_openat(root, "proc", O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return fd < 0 ? fd : -errno;
    find_ancestors(&s, self);
    const int r = search_processes(&s, dir, &found);
    closedir(dir);
    if (r < 0) {
        asym_named_processes_done(&found);
        return r;
    }
    if (found.n > 0)
        qsort(found.process, found.n, sizeof *found.process, by_cpu_time);
    *ret = found;
    return 0;
}

static void add_row(struct asym_report_table *table, const struct asym_named_process *p)
{
    char pid[16], time[ASYM_UNITS_SIZE], user[ASYM_USER_SIZE], text[4 * ASYM_COMMAND_SIZE];
    snprintf(pid, sizeof pid, "%" PRIu32, p->pid);
    const char *const cells[] = {pid, asym_user_of(p->uid, user), asym_units_duration(p->cpu_time, time),
                                 asym_text_show(p->command, text, sizeof text)};
    asym_report_table_row(table, cells);
}

int asym_named_processes_list(const struct asym_named_processes *processes, const char *name, const char *verb,
                              FILE *out)
{
    static const struct asym_report_table_column columns[] = {{.heading = "PID", .right = true},
                                                              {.heading = "USER", .drop = 1},
                                                              {.heading = "CPU TIME", .right = true, .drop = 2},
                                                              {.heading = "COMMAND", .cut = 12}};
    const struct asym_terminal terminal = asym_terminal_of(out);
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = columns, .n_columns = ASYM_LENGTH(columns)};
    char text[256];
    asym_text_show(name, text, sizeof text);
    for (size_t i = 0; i < ASYM_MIN(processes->n, (size_t)MOST_LISTED); i++)
        add_row(&table, &processes->process[i]);
    if (table.error < 0)
        return table.error;
    fprintf(out, "%zu process%s %s%s:\n", processes->n, processes->n == 1 ? " has" : "es have",
            processes->by_command_line ? "in the command line, but not as a name: " : "the name ", text);
    const int r = asym_report_table_print(&table, &terminal, 0, 0, true);
    if (processes->n > MOST_LISTED)
        fprintf(out, "and %zu more, which have used less CPU time\n", processes->n - MOST_LISTED);
    fprintf(out, "Give the PID of one: asymctl %s %" PRIu32 "\n", verb, processes->process[0].pid);
    return r;
}

int asym_verb_named_processes(const char *verb, const char *name, struct asym_named_processes *ret)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    struct asym_error err = {""};
    char text[256];
    if (name[strspn(name, "0123456789")] == '\0')
        return asym_verb_fail(ASYM_EXIT_USAGE, "%s: %s is no PID; asymctl top shows the programs with their PIDs", verb,
                              asym_text_show(name, text, sizeof text));
    int r = asym_root_open(NULL, &root, &err);
    if (r >= 0)
        r = asym_named_processes_find(&root, name, (int32_t)getpid(), ret);
    if (r < 0)
        return asym_verb_fail(ASYM_EXIT_FAILED, "%s", strerror(-r));
    if (ret->n > 0)
        return ASYM_EXIT_DONE;
    return asym_verb_fail(ASYM_EXIT_FAILED, "%s: no process has the name %s, and none has it in its command line", verb,
                          asym_text_show(name, text, sizeof text));
}

/* The operand is a name. Any user can put any text into the rest of a command line: that alone chooses no process. */
static int find_one(const char *verb, const char *name, struct asym_process_operand *ret)
{
    ASYM_CLEANUP(asym_named_processes_done) struct asym_named_processes found = {.process = NULL};
    char text[256], cut[100];
    const int status = asym_verb_named_processes(verb, name, &found);
    if (status != ASYM_EXIT_DONE)
        return status;
    if (found.n > 1 || found.by_command_line) {
        fprintf(stderr, "asymctl: %s: ", verb);
        const int r = asym_named_processes_list(&found, name, verb, stderr);
        return r < 0 ? asym_verb_fail(ASYM_EXIT_FAILED, "%s", strerror(-r)) : ASYM_EXIT_USAGE;
    }
    const struct asym_named_process *p = &found.process[0];
    asym_text_show(p->command, text, sizeof text);
    ret->pid = p->pid;
    snprintf(ret->text, sizeof ret->text, "%" PRIu32 " (%s)", p->pid, asym_columns_cut(text, 40, cut, sizeof cut));
    return ASYM_EXIT_DONE;
}

int asym_verb_process_and_connect(const char *verb, const char *operand, struct asym_process_operand *ret_process,
                                  struct asym_client **ret_client)
{
    int status = ASYM_EXIT_DONE;
    if (asym_verb_is_pid(operand, &ret_process->pid))
        snprintf(ret_process->text, sizeof ret_process->text, "%" PRIu32, ret_process->pid);
    else
        status = find_one(verb, operand, ret_process);
    return status == ASYM_EXIT_DONE ? asym_verb_connect(ret_client) : status;
}
