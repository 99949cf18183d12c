/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target: the bytes are what programs do to the socket and what asymd does meanwhile: connect, send messages with
 * descriptors of all kinds, write to eventfds and pages, end; serve, tend, ask. Nobody else is there: whatever they did, when
 * the last one has gone nothing is kept of them, and the next one is heard. Each input begins with a server of its own, so
 * that it shows alone what it shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx-page.h"
#include "linux/rtx-server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENTS = 8, FDS_MOST = 12, FD_NUMBERS = 128, PAGE = 4096, BEGUN = 1000000 };

/* Two of what is right, so that each input can get far; the rest is not. */
enum kind { PAGE_A, PAGE_B, EVENT_A, EVENT_B, NOT_SEALED, HOLLOW, HUGE, NO_PAGE, PIPE, EPOLL, SOCKET, A_FILE, N_KINDS };

static struct {
    char dir[64];
    struct sockaddr_un address;
    struct asym_rtx_server *server;
    int kinds[N_KINDS];
    uint8_t *pages[2]; /* of PAGE_A and PAGE_B */
    int fds;           /* in use before there was a client */
} w;

struct input {
    const uint8_t *data;
    size_t size;
};

struct run {
    struct input in;
    int clients[CLIENTS]; /* -1: none */
    asym_usec now;
};

#define MUST(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno));                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint8_t next(struct input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < FD_NUMBERS; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int make_memfd(off_t size, bool fill, int seals, uint8_t **ret)
{
    const struct asym_rtx_header h = {.magic = ASYM_RTX_MAGIC,
                                      .version = ASYM_RTX_VERSION,
                                      .header_size = sizeof h,
                                      .slot_size = sizeof(struct asym_rtx_slot),
                                      .n_slots = (PAGE - sizeof h) / sizeof(struct asym_rtx_slot)};
    static const char zeroes[PAGE];
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    MUST(fd >= 0 && ftruncate(fd, size) == 0);
    if (fill)
        MUST(pwrite(fd, zeroes, PAGE, 0) == PAGE && pwrite(fd, &h, sizeof h, 0) == sizeof h);
    if (ret)
        MUST((*ret = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) != MAP_FAILED);
    MUST(fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static void make_kinds(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
    int ends[2];
    w.kinds[PAGE_A] = make_memfd(PAGE, true, seals, &w.pages[0]);
    w.kinds[PAGE_B] = make_memfd(PAGE, true, seals, &w.pages[1]);
    w.kinds[EVENT_A] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w.kinds[EVENT_B] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    w.kinds[NOT_SEALED] = make_memfd(PAGE, true, F_SEAL_GROW, NULL);
    w.kinds[HOLLOW] = make_memfd((off_t)4 * PAGE, true, seals, NULL);
    w.kinds[HUGE] = make_memfd((off_t)ASYM_RTX_MAX_PAGE + PAGE, true, seals, NULL);
    w.kinds[NO_PAGE] = make_memfd(PAGE, false, seals, NULL);
    MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    w.kinds[PIPE] = ends[0];
    w.kinds[EPOLL] = epoll_create1(EPOLL_CLOEXEC);
    w.kinds[SOCKET] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    w.kinds[A_FILE] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < N_KINDS; i++)
        MUST(w.kinds[i] >= 0);
}

static void leave(void)
{
    asym_rtx_server_close(w.server);
    rmdir(w.dir);
}

static void begin(void)
{
    signal(SIGPIPE, SIG_IGN);
    snprintf(w.dir, sizeof w.dir, "/tmp/asym-fuzz-XXXXXX");
    MUST(mkdtemp(w.dir));
    w.address.sun_family = AF_UNIX;
    snprintf(w.address.sun_path, sizeof w.address.sun_path, "%s/rtx", w.dir);
    atexit(leave);
    make_kinds();
}

/* What was written to them is never read. */
static void restore_events(void)
{
    static const struct {
        enum kind kind;
        int flags;
    } rows[] = {{EVENT_A, 0}, {EVENT_B, EFD_SEMAPHORE}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | rows[i].flags);
        MUST(fd >= 0 && dup3(fd, w.kinds[rows[i].kind], O_CLOEXEC) >= 0);
        close(fd);
    }
}

static void open_server(void)
{
    struct asym_error err = {""};
    const struct asym_rtx_server_config config = {.dir = w.dir, .spin_notify = 20, .now = BEGUN};
    MUST(asym_rtx_server_open(&config, &w.server, &err) == 0);
}

static void do_connect(struct run *r, int *client)
{
    (void)r;
    if (*client >= 0)
        return;
    *client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    MUST(*client >= 0);
    /* A queue that is full refuses: then what is sent goes nowhere. */
    (void)!connect(*client, (const struct sockaddr *)&w.address, sizeof w.address);
}

static void do_close(struct run *r, int *client)
{
    (void)r;
    if (*client >= 0)
        close(*client);
    *client = -1;
}

static void do_shut(struct run *r, int *client)
{
    if (*client >= 0)
        shutdown(*client, next(&r->in) % 3);
}

static void send_message(int fd, void *message, size_t size, const int *fds, size_t n)
{
    struct iovec part = {message, size};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FDS_MOST * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    (void)!sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* As it should be, unless a byte says otherwise. */
static void do_send(struct run *r, int *client)
{
    struct asym_rtx_hello hello = {.magic = ASYM_RTX_MAGIC, .version = ASYM_RTX_VERSION, .size = sizeof hello};
    uint8_t message[512] = {0};
    int fds[FDS_MOST] = {w.kinds[PAGE_A], w.kinds[EVENT_A]};
    size_t size = sizeof hello, n = 2;
    const uint8_t how = next(&r->in);
    memcpy(message, &hello, sizeof hello);
    if (how & 1)
        message[next(&r->in) % sizeof hello] ^= next(&r->in);
    if (how & 2)
        size = next(&r->in) * 2U;
    if (how & 4)
        n = next(&r->in) % (FDS_MOST + 1);
    for (size_t i = 0; how & 8 && i < n; i++)
        fds[i] = w.kinds[next(&r->in) % N_KINDS];
    for (size_t i = 0; i < n; i++)
        fds[i] = fds[i] ? fds[i] : w.kinds[i % N_KINDS];
    if (*client >= 0)
        send_message(*client, message, size, fds, n);
}

static void do_wake(struct run *r, int *client)
{
    (void)client;
    (void)!eventfd_write(w.kinds[next(&r->in) & 1 ? EVENT_B : EVENT_A], next(&r->in));
}

/* A slot as it should be, or any byte of the page. */
static void do_write(struct run *r, int *client)
{
    const uint8_t how = next(&r->in), at = next(&r->in);
    uint8_t *page = w.pages[how & 1];
    struct asym_rtx_header *h = (void *)page;
    struct asym_rtx_slot *slot = (struct asym_rtx_slot *)(void *)(page + sizeof *h) + at % 63;
    (void)client;
    if (how & 2) {
        page[(at << 4 | how >> 4) % PAGE] = next(&r->in);
        return;
    }
    h->n_used = 63;
    slot->tid = how & 4 ? next(&r->in) : getpid();
    slot->word = next(&r->in);
}

static void do_serve(struct run *r, int *client)
{
    (void)client;
    asym_rtx_server_serve(w.server, r->now);
}

static void do_tend(struct run *r, int *client)
{
    (void)client;
    r->now += next(&r->in) * (asym_usec)10000;
    asym_rtx_server_tend(w.server, r->now);
}

static void do_ask(struct run *r, int *client)
{
    struct asym_teller *teller = asym_rtx_server_teller(w.server);
    const struct asym_told *told;
    (void)client;
    const size_t n = teller->ask(teller, r->now++, next(&r->in) & 3, &told);
    MUST(n == asym_rtx_server_count(w.server) && n <= ASYM_RTX_MAX_OF_PID);
    for (size_t i = 0; i < n; i++) {
        MUST(told[i].pid == getpid());
        for (size_t k = 0; k < told[i].n; k++) {
            const struct asym_told_thread *t = &told[i].threads[k];
            MUST(t->tid > 0 && (k == 0 || t[-1].tid < t->tid) && !(t->spins && t->works));
        }
    }
}

static void do_charge(struct run *r, int *client)
{
    (void)client;
    asym_rtx_server_charge(w.server, next(&r->in) * (asym_usec)160);
}

static void do_set(struct run *r, int *client)
{
    (void)client;
    asym_rtx_server_set(w.server, 20, next(&r->in) / 2.56);
}

static void do_wait(struct run *r, int *client)
{
    (void)client;
    const asym_usec due = asym_rtx_server_due(w.server);
    MUST(due <= r->now + 2 * ASYM_SEC);
    r->now = ASYM_MAX(r->now, due);
}

static void (*const steps[])(struct run *r, int *client) = {do_connect, do_send, do_serve, do_wake, do_write,
                                                            do_ask,     do_tend, do_close, do_shut, do_serve,
                                                            do_charge,  do_set,  do_wait};

/* All have gone: so has what was kept of them, and who comes now is heard. */
static void end(struct run *r)
{
    for (size_t i = 0; i < CLIENTS; i++)
        do_close(r, &r->clients[i]);
    /* And so is, in time, what they owed. */
    asym_rtx_server_set(w.server, 20, 100);
    r->now += 1000 * ASYM_SEC;
    for (int i = 0; i < 4; i++) {
        r->now += ASYM_RTX_HELLO_WITHIN;
        asym_rtx_server_tend(w.server, r->now);
        asym_rtx_server_serve(w.server, r->now);
    }
    MUST(asym_rtx_server_count(w.server) == 0);
    MUST(count_fds() == w.fds);
}

static void restore_pages(void)
{
    const struct asym_rtx_header h = {.magic = ASYM_RTX_MAGIC,
                                      .version = ASYM_RTX_VERSION,
                                      .header_size = sizeof h,
                                      .slot_size = sizeof(struct asym_rtx_slot),
                                      .n_slots = (PAGE - sizeof h) / sizeof(struct asym_rtx_slot)};
    for (size_t i = 0; i < ASYM_LENGTH(w.pages); i++) {
        memset(w.pages[i], 0, PAGE);
        memcpy(w.pages[i], &h, sizeof h);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t good[] = {0};
    struct run r = {.in = {data, size}, .now = BEGUN};
    if (!w.dir[0])
        begin();
    restore_pages();
    restore_events();
    open_server();
    /* The fuzzer opens some between two inputs. */
    w.fds = count_fds();
    for (size_t i = 0; i < CLIENTS; i++)
        r.clients[i] = -1;
    while (r.in.size > 0) {
        const uint8_t byte = next(&r.in);
        steps[byte % ASYM_LENGTH(steps)](&r, &r.clients[byte / ASYM_LENGTH(steps) % CLIENTS]);
    }
    end(&r);
    r.in = (struct input){good, sizeof good};
    restore_pages();
    do_connect(&r, &r.clients[0]);
    do_send(&r, &r.clients[0]);
    for (int i = 0; i < 2; i++)
        asym_rtx_server_serve(w.server, r.now);
    MUST(asym_rtx_server_count(w.server) == 1);
    end(&r);
    asym_rtx_server_close(w.server);
    w.server = NULL;
    return 0;
}
