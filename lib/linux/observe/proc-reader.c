/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/proc-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/token-bucket.h"
#include "linux/sys/elf.h"
#include "linux/sys/helper-process.h"
#include "linux/sys/proc-parse.h"
#include "linux/sys/thread.h"

/* Reads the facts: in a helper, or at once where reading cannot block. */

_Static_assert(sizeof(struct asym_read_answer) <= ASYM_HELPER_PACKET, "an answer is one packet");

static uint64_t start_of(const struct asym_root *root, int32_t pid)
{
    struct asym_stat stat;
    return asym_read_stat(root, pid, 0, &stat) == 0 ? stat.start : 0;
}

/* The kernel separates arguments by NULs; rules expect spaces. */
static void read_cmdline(const struct asym_root *root, int32_t pid, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/cmdline", (int)pid);
    ssize_t n = asym_root_read(root, path, ret, size);
    n = ASYM_MAX(n, 0);
    while (n > 0 && ret[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (ret[i] == '\0')
            ret[i] = ' ';
    ret[n] = '\0';
}

static void read_build_id(const struct asym_root *root, int32_t pid, char *ret)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/exe", (int)pid);
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || asym_elf_build_id(fd, ret) < 0)
        ret[0] = '\0';
}

void asym_proc_read(const struct asym_root *root, const struct asym_read_request *request, struct asym_read_answer *ret)
{
    *ret = (struct asym_read_answer){
        .pid = request->pid, .what = request->what, .start = request->start, .tag = request->tag};
    bool cut = false;
    if (request->what & ASYM_READ_MAPS)
        ret->maps = asym_maps_read(root, request->pid, request->maps_most, &cut);
    ret->maps_cut = cut;
    if (request->what & ASYM_READ_CMDLINE)
        read_cmdline(root, request->pid, ret->cmdline, sizeof ret->cmdline);
    if (request->what & ASYM_READ_BUILD_ID)
        read_build_id(root, request->pid, ret->build_id);
    /* This check comes last: the start time proves that one process had the PID during all readings. */
    if (root->live && start_of(root, request->pid) != request->start)
        ret->error = -ESRCH;
}

int asym_proc_reader_run(int orders, int reports)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    struct asym_read_request request;
    struct asym_read_answer answer;
    ssize_t n;
    if (asym_root_open(NULL, &root, NULL) < 0)
        return 1;
    while ((n = asym_helper_next_order(orders, &request, sizeof request)) > 0) {
        if (n != (ssize_t)sizeof request)
            return 1;
        asym_proc_read(&root, &request, &answer);
        if (asym_helper_say(reports, &answer, offsetof(struct asym_read_answer, cmdline) + strlen(answer.cmdline) + 1) <
            0)
            return 1;
    }
    return 0;
}

/* asymd's side: sends requests to one helper, and replaces the helper when it hangs. */

/* The most requests without an answer. The helper's answers have to fit in the pipe until the next sample. */
#define ASKED_MOST 128
#define PIPE_SIZE  (2 * ASKED_MOST * ASYM_HELPER_PACKET)

/*
 * A helper that has not answered after DEADLINE hangs if it sleeps. If it is runnable, it hangs after LONGEST, unless it has
 * run for less than HARDLY_RAN since its last answer: then it is only waiting for a CPU.
 */
#define DEADLINE   (200 * ASYM_MSEC)
#define LONGEST    (2 * ASYM_SEC)
#define HARDLY_RAN (10 * ASYM_MSEC)

/* Estimated cost of a reading, in us: each, and for each byte of maps (65,000 mappings are 4 MiB and take some 30 ms). */
#define COST          100.0
#define COST_PER_BYTE 0.01

/* When a helper cannot be started, asymd tries again after this time. */
#define RETRY ASYM_SEC

/* The most that the budget saves, and the cost of another helper, both in us of CPU time. A helper takes 2 ms to start. */
#define BURST       200000.0
#define COST_OF_END 5000.0

struct asked {
    struct asym_read_request request;
    asym_usec at;
    double charged;
};

/* A user whose process made a helper hang or end: nothing of that user is read until then, nor while that helper sleeps on. */
struct waiting {
    uint32_t uid;
    asym_usec until; /* 0: free */
    pid_t helper;
};

/* If there are more, the one that waits for the shortest time waits no longer. */
#define WAITING_MOST 64

struct reader {
    struct asym_proc_reader port;
    struct asym_helper helper;
    struct asym_token_bucket budget; /* us of CPU time */
    char *program;
    asym_usec (*now)(void);
    struct asked asked[ASKED_MOST]; /* the helper is working on the first */
    size_t n_asked;
    asym_usec answered_at, retry_at;
    asym_usec spent, spent_at_answer; /* CPU time: of ended helpers; of this one at its last answer */
    size_t n_hangs;
    struct waiting waiting[WAITING_MOST];
};

static struct reader *reader_of(struct asym_proc_reader *port)
{
    return (struct reader *)(void *)port;
}

static asym_usec helper_cpu(const struct reader *r)
{
    clockid_t clock;
    return r->helper.pid > 1 && clock_getcpuclockid(r->helper.pid, &clock) == 0 ? asym_clock_read(clock) : 0;
}

static void end_helper(struct reader *r)
{
    r->spent += helper_cpu(r);
    r->spent_at_answer = 0;
    asym_helper_kill(&r->helper);
}

static int start_helper(struct reader *r, asym_usec now)
{
    if (!r->program)
        return -ENOENT;
    if (now < r->retry_at)
        return -EAGAIN;
    int error = asym_helper_start(&r->helper);
    if (error < 0) {
        r->retry_at = now + RETRY;
        return error == -ENOENT || error == -EACCES ? error : -EAGAIN;
    }
    /* The kernel may permit less. Then the helper waits, when the pipe is full, until the next sample. */
    fcntl(r->helper.reports, F_SETPIPE_SZ, PIPE_SIZE);
    return 0;
}

static void forget_first(struct reader *r)
{
    memmove(r->asked, r->asked + 1, --r->n_asked * sizeof *r->asked);
}

static bool is_dying(const struct reader *r, pid_t pid)
{
    for (size_t i = 0; i < r->helper.n_dying; i++)
        if (r->helper.dying[i] == pid)
            return true;
    return false;
}

static bool waits(const struct reader *r, const struct waiting *w, asym_usec now)
{
    return now < w->until || (w->until > 0 && is_dying(r, w->helper));
}

static bool user_waits(const struct reader *r, uint32_t uid, asym_usec now)
{
    for (size_t i = 0; i < WAITING_MOST; i++)
        if (r->waiting[i].uid == uid && waits(r, &r->waiting[i], now))
            return true;
    return false;
}

/* A process of the user made the helper hang or end. */
static void let_wait(struct reader *r, uint32_t uid, asym_usec now)
{
    struct waiting *place = r->waiting;
    for (size_t i = 0; i < WAITING_MOST; i++)
        if (r->waiting[i].until < place->until)
            place = &r->waiting[i];
    *place = (struct waiting){.uid = uid, .until = now + ASYM_READ_WAIT, .helper = r->helper.pid};
    asym_token_bucket_charge(&r->budget, COST_OF_END, now);
}

static int reader_ask(struct asym_proc_reader *port, const struct asym_read_request *request)
{
    struct reader *r = reader_of(port);
    const asym_usec now = r->now();
    const double cost = COST + (request->what & ASYM_READ_MAPS ? request->maps_most * COST_PER_BYTE : 0);
    if (r->n_asked == ASKED_MOST || !asym_token_bucket_has(&r->budget, now) || user_waits(r, request->uid, now) ||
        (r->n_asked > 0 && r->helper.pid == 0))
        return -EAGAIN;
    int error = r->helper.pid > 0 ? 0 : start_helper(r, now);
    if (error < 0)
        return error;
    error = asym_helper_order(&r->helper, request, sizeof *request);
    if (error < 0) {
        /*
         * The helper has ended by itself. With no request under way, the next request starts another. Otherwise reader_take()
         * answers the request over which it ended.
         */
        if (error == -ENOTCONN && r->n_asked == 0)
            end_helper(r);
        return -EAGAIN;
    }
    asym_token_bucket_charge(&r->budget, cost, now);
    r->asked[r->n_asked++] = (struct asked){.request = *request, .at = now, .charged = cost};
    return 0;
}

static struct asym_read_answer no_answer(const struct asked *a, int error)
{
    return (struct asym_read_answer){.pid = a->request.pid,
                                     .what = a->request.what,
                                     .start = a->request.start,
                                     .tag = a->request.tag,
                                     .error = error};
}

/* asymd trusts no helper that answers another request than the first: a process may have taken the helper over. */
static bool is_answer_to(const struct asym_read_answer *a, size_t size, const struct asked *asked)
{
    const size_t head = offsetof(struct asym_read_answer, cmdline);
    return size > head && size <= sizeof *a && a->pid == asked->request.pid && a->what == asked->request.what &&
           a->start == asked->request.start && a->tag == asked->request.tag && a->error <= 0 &&
           memchr(a->build_id, '\0', sizeof a->build_id) && ((const char *)a)[size - 1] == '\0';
}

/* The reading costs the time that the helper has used since its last answer, in place of the estimate. */
static void charge_real_cost(struct reader *r, const struct asked *a)
{
    const asym_usec spent = helper_cpu(r);
    if (spent > r->spent_at_answer)
        asym_token_bucket_add(&r->budget, -(double)(spent - r->spent_at_answer));
    asym_token_bucket_add(&r->budget, a->charged);
    r->spent_at_answer = spent;
}

/*
 * The helper hangs over the first request, or has ended. Returns the answer to that one. reader_take() answers the others, which
 * no helper reads, and then the next request starts another one.
 */
static struct asym_read_answer give_up_first(struct reader *r, bool has_ended, asym_usec now)
{
    const struct asked first = r->asked[0];
    charge_real_cost(r, &first);
    r->n_hangs += !has_ended;
    let_wait(r, first.request.uid, now);
    end_helper(r);
    forget_first(r);
    return no_answer(&first, has_ended ? -EPIPE : -ETIME);
}

/* This reads the stat of asymd's own child, which no other process can block. */
static char helper_state(const struct reader *r)
{
    struct asym_stat stat;
    return asym_thread_get_stat(r->helper.pid, r->helper.pid, &stat) < 0 ? 'X' : stat.state;
}

static bool hangs(const struct reader *r, asym_usec now)
{
    const asym_usec since = ASYM_MAX(r->asked[0].at, r->answered_at);
    if (now < since + DEADLINE)
        return false;
    const bool runs = helper_state(r) == 'R';
    if (runs && helper_cpu(r) < r->spent_at_answer + HARDLY_RAN)
        return false;
    return !runs || now > since + LONGEST;
}

static int reader_take(struct asym_proc_reader *port, struct asym_read_answer *ret)
{
    struct reader *r = reader_of(port);
    char packet[ASYM_HELPER_PACKET];
    const asym_usec now = r->now();
    asym_helper_reap(&r->helper);
    if (r->n_asked == 0)
        return 0;
    if (r->helper.pid == 0) {
        *ret = no_answer(&r->asked[0], -EAGAIN);
        asym_token_bucket_add(&r->budget, r->asked[0].charged);
        forget_first(r);
        return 1;
    }
    const ssize_t n = asym_helper_report(&r->helper, packet, sizeof packet);
    if (n == -EAGAIN && !hangs(r, now))
        return 0;
    struct asym_read_answer answer = {0};
    if (n > 0)
        memcpy(&answer, packet, ASYM_MIN((size_t)n, sizeof answer));
    if (n <= 0 || !is_answer_to(&answer, (size_t)n, &r->asked[0])) {
        *ret = give_up_first(r, n <= 0 && n != -EAGAIN, now);
        return 1;
    }
    charge_real_cost(r, &r->asked[0]);
    forget_first(r);
    r->answered_at = now;
    *ret = answer;
    return 1;
}

static void reader_close(struct asym_proc_reader *port)
{
    struct reader *r = reader_of(port);
    asym_helper_kill(&r->helper);
    asym_helper_reap(&r->helper);
    free(r->program);
    free(r);
}

int asym_proc_reader_new(const char *program, asym_usec (*now)(void), struct asym_proc_reader **ret)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->port = (struct asym_proc_reader){.ask = reader_ask, .take = reader_take, .close = reader_close};
    r->program = program ? strdup(program) : NULL;
    if (program && !r->program) {
        free(r);
        return -ENOMEM;
    }
    r->helper = (struct asym_helper)ASYM_HELPER_INIT(r->program, NULL);
    r->now = now;
    r->budget = asym_token_bucket_full(0.0025, BURST, now());
    *ret = &r->port;
    return 0;
}

void asym_proc_reader_set(struct asym_proc_reader *port, double percent)
{
    reader_of(port)->budget.rate = percent / 100;
}

asym_usec asym_proc_reader_spent(const struct asym_proc_reader *port)
{
    const struct reader *r = (const struct reader *)(const void *)port;
    return r->spent + helper_cpu(r);
}

size_t asym_proc_reader_hangs(const struct asym_proc_reader *port)
{
    return ((const struct reader *)(const void *)port)->n_hangs;
}
