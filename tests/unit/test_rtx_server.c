/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server against clients that break every rule. It is called by hand, with a time that the test says. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "linux/rtx-page.h"
#include "linux/rtx-server.h"
#include "linux/thread.h"
#include "support/live.h"

static char dir[64], path[96];
static struct asym_rtx_server *server;
static size_t refused[ASYM_RTX_N_REFUSALS];

/* What the next page says. */
static uint32_t notify_min;

static void on_refused(void *ctx, enum asym_rtx_refusal refusal, pid_t pid)
{
    (void)pid;
    ((size_t *)ctx)[refusal]++;
}

static int set_up(void **state)
{
    (void)state;
    memset(refused, 0, sizeof refused);
    notify_min = 0;
    snprintf(dir, sizeof dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/rtx", dir);
    const struct asym_rtx_server_config config = {.dir = dir, .spin_notify = 20, .refused = on_refused, .ctx = refused};
    return asym_rtx_server_open(&config, &server, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    asym_rtx_server_close(server);
    assert_int_equal(access(path, F_OK), -1);
    return rmdir(dir);
}

static int try_connect(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int serve(asym_usec now)
{
    int told = 0;
    for (int i = 0; i < 10; i++)
        told += asym_rtx_server_serve(server, now);
    return told;
}

/* The last page that was made, and the word of its thread. */
static char *mapped;
static uint64_t *word;

/* Of that many bytes, the rest of which is a hole. */
static int make_page_of(off_t size, const void *header, int seals)
{
    const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING | ASYM_RTX_MASTER, .tid = getpid()};
    int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(pwrite(fd, header, sizeof(struct asym_rtx_header), 0), sizeof(struct asym_rtx_header));
    assert_int_equal(pwrite(fd, &slot, sizeof slot, sizeof(struct asym_rtx_header)), sizeof slot);
    if (mapped)
        munmap(mapped, 4096);
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mapped != MAP_FAILED);
    word = (uint64_t *)(void *)(mapped + sizeof(struct asym_rtx_header));
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static int make_page(int seals)
{
    const struct asym_rtx_header h = {.magic = ASYM_RTX_MAGIC,
                                      .version = ASYM_RTX_VERSION,
                                      .header_size = sizeof h,
                                      .slot_size = sizeof(struct asym_rtx_slot),
                                      .n_slots = 2,
                                      .n_used = 2,
                                      .notify_min_usec = notify_min};
    return make_page_of(4096, &h, seals);
}

static void send_fds(int fd, const void *message, size_t size, const int *fds, size_t n)
{
    struct iovec part = {(void *)(uintptr_t)message, size};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(64 * sizeof(int))];
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
    assert_int_equal(sendmsg(fd, &m, MSG_NOSIGNAL), size);
}

static const struct asym_rtx_hello hello = {
    .magic = ASYM_RTX_MAGIC, .version = ASYM_RTX_VERSION, .size = sizeof(struct asym_rtx_hello)};

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE };

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void set_phase(bool serial)
{
    const uint64_t w = ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | (serial ? ASYM_RTX_SERIAL : 0);
    __atomic_store_n(word, w, __ATOMIC_RELAXED);
}

static void tell(int event, uint64_t *of, bool serial)
{
    word = of;
    set_phase(serial);
    assert_int_equal(eventfd_write(event, 1), 0);
}

/* As before a turn: what has been told of is in a snapshot. */
static void look(void)
{
    const struct asym_told *told;
    struct asym_teller *teller = asym_rtx_server_teller(server);
    teller->ask(teller, 1, ASYM_ASK_FINAL, &told);
}

/* A client of this very process, as it should be. Returns its socket; *event is its eventfd. */
static int good_client_at(int *event, asym_usec now)
{
    int fd = try_connect();
    assert_true(fd >= 0);
    *event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int fds[] = {make_page(SEALS), *event};
    send_fds(fd, &hello, sizeof hello, fds, 2);
    close(fds[0]);
    assert_true(serve(now) > 0);
    return fd;
}

static int good_client(int *event)
{
    return good_client_at(event, 1);
}

static void a_good_client_is_heard_until_it_ends(void **state)
{
    (void)state;
    const struct asym_told *told;
    struct asym_stat stat;
    struct asym_teller *teller = asym_rtx_server_teller(server);
    int before = count_fds(), event, fd = good_client(&event);
    assert_int_equal(asym_rtx_server_count(server), 1);
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
    assert_int_equal(asym_thread_get_stat(getpid(), getpid(), &stat), 0);
    assert_int_equal(told->pid, getpid());
    assert_int_equal(told->start, stat.start);
    assert_int_equal(told->n, 1);
    assert_int_equal(told->threads[0].tid, getpid());
    assert_true(told->threads[0].master);
    /* Each write wakes, though nobody ever reads. */
    for (int i = 0; i < 3; i++) {
        set_phase(i % 2);
        assert_int_equal(serve(1), 0);
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(asym_rtx_server_serve(server, 1));
        look();
        assert_int_equal(serve(1), 0);
    }
    /* What came soon after is not told of, and seen all the same; once. */
    set_phase(true);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_true(asym_rtx_server_serve(server, 1));
    look();
    set_phase(false);
    assert_int_equal(serve(ASYM_RTX_NOTIFY_MIN_DEFAULT), 0);
    assert_true(asym_rtx_server_serve(server, 1 + ASYM_RTX_NOTIFY_MIN_DEFAULT));
    look();
    set_phase(true);
    assert_false(asym_rtx_server_serve(server, ASYM_SEC));
    look();
    /* Who goes in a serial phase has ended it. */
    close(fd);
    assert_int_equal(serve(ASYM_SEC), 1);
    assert_int_equal(asym_rtx_server_count(server), 0);
    /* Of one that has gone nothing is heard, though it still has its end. */
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_int_equal(serve(ASYM_SEC), 0);
    close(event);
    assert_int_equal(count_fds(), before);
}

static void whatever_a_page_says_it_is_looked_at_again_within_a_second(void **state)
{
    (void)state;
    static const struct {
        uint32_t said;
        asym_usec after;
    } rows[] = {{0, 1000}, {1, 1}, {20000, 20000}, {1000000, ASYM_SEC}, {1000001, ASYM_SEC}, {UINT32_MAX, ASYM_SEC}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const asym_usec at = (i + 1) * 10 * ASYM_SEC, again = at + rows[i].after;
        notify_min = rows[i].said;
        int event, fd = good_client_at(&event, at);
        look();
        assert_int_equal(asym_rtx_server_due(server), again);
        set_phase(false);
        assert_int_equal(serve(again - 1), 0);
        assert_true(asym_rtx_server_serve(server, again));
        look();
        /* Once, however soon that was; what a page says later is not heeded. */
        assert_int_equal(asym_rtx_server_due(server), 0);
        ((struct asym_rtx_header *)(void *)mapped)->notify_min_usec = 7;
        set_phase(true);
        assert_int_equal(serve(again + 2 * ASYM_SEC), 0);
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(asym_rtx_server_serve(server, again + 2 * ASYM_SEC));
        assert_int_equal(asym_rtx_server_due(server), again + 2 * ASYM_SEC + rows[i].after);
        look();
        close(fd);
        close(event);
        serve(again + 2 * ASYM_SEC);
    }
}

static void each_is_looked_at_again_in_its_own_time(void **state)
{
    (void)state;
    int events[2], fds[2];
    uint64_t *words[2];
    for (int i = 0; i < 2; i++) {
        notify_min = i == 0 ? 20000 : 5000;
        fds[i] = good_client_at(&events[i], ASYM_SEC);
        words[i] = word;
        mapped = NULL;
    }
    look();
    serve(2 * ASYM_SEC);
    assert_int_equal(asym_rtx_server_due(server), 0);
    for (int i = 0; i < 2; i++)
        tell(events[i], words[i], false);
    assert_int_equal(serve(3 * ASYM_SEC), 1);
    look();
    /* Neither tells. */
    for (int i = 0; i < 2; i++) {
        word = words[i];
        set_phase(true);
    }
    assert_int_equal(serve(3 * ASYM_SEC + 4999), 0);
    assert_int_equal(asym_rtx_server_due(server), 3 * ASYM_SEC + 5000);
    const struct asym_told *told;
    struct asym_teller *teller = asym_rtx_server_teller(server);
    assert_true(asym_rtx_server_serve(server, 3 * ASYM_SEC + 5000));
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL | ASYM_ASK_HURRIED, &told), 2);
    /* Of the other what is known is what it has told. */
    assert_int_equal(told[0].threads[0].master + told[1].threads[0].master, 1);
    /* One that wakes us meanwhile does not change when. */
    assert_int_equal(eventfd_write(events[1], 1), 0);
    assert_int_equal(serve(3 * ASYM_SEC + 18000), 0);
    assert_int_equal(asym_rtx_server_due(server), 3 * ASYM_SEC + 20000);
    assert_true(asym_rtx_server_serve(server, 3 * ASYM_SEC + 20000));
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL | ASYM_ASK_HURRIED, &told), 2);
    assert_int_equal(told[0].threads[0].master + told[1].threads[0].master, 2);
    assert_int_equal(asym_rtx_server_due(server), 3 * ASYM_SEC + 23000);
    assert_int_equal(serve(3 * ASYM_SEC + 23000), 0);
    assert_int_equal(asym_rtx_server_due(server), 0);
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(events[i]);
    }
}

/* What is handed over, and what becomes of it. */
enum what {
    NOT_SEALED,
    TO_BE_WRITTEN, /* and so a hole may come in it */
    HOLLOW,
    EMPTY,
    ONE_FD,
    NO_FD,
    THREE_FDS,
    MANY_FDS,
    SWAPPED,
    PIPE,
    EPOLL,
    A_FILE,
    SHORT,
    LONG,
    VERSION
};

static int make_page_for(enum what what)
{
    static const struct asym_rtx_header none;
    struct asym_rtx_header h = {.magic = ASYM_RTX_MAGIC,
                                .version = ASYM_RTX_VERSION,
                                .header_size = sizeof h,
                                .slot_size = sizeof(struct asym_rtx_slot),
                                .n_slots = 2};
    switch (what) {
    case NOT_SEALED:
        return make_page(0);
    case TO_BE_WRITTEN:
        return make_page(F_SEAL_SHRINK | F_SEAL_GROW);
    case HOLLOW:
        return make_page_of(8192, &h, SEALS);
    case EMPTY:
        return make_page_of(4096, &none, SEALS);
    default:
        return make_page(SEALS);
    }
}

static void hand_over(int fd, enum what what)
{
    struct asym_rtx_hello h = hello;
    char more[512] = {0};
    int pipes[2], page = make_page_for(what), event = eventfd(0, EFD_CLOEXEC), fds[64], n = 2;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), poll = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    for (size_t i = 0; i < ASYM_LENGTH(fds); i++)
        fds[i] = event;
    fds[0] = page;
    size_t size = sizeof h;
    switch (what) {
    case ONE_FD:
        n = 1;
        break;
    case NO_FD:
        n = 0;
        break;
    case THREE_FDS:
        n = 3;
        break;
    case MANY_FDS:
        n = ASYM_LENGTH(fds);
        break;
    case SWAPPED:
        fds[0] = event;
        fds[1] = page;
        break;
    case PIPE:
        fds[1] = pipes[0];
        break;
    case EPOLL:
        fds[1] = poll;
        break;
    case A_FILE:
        fds[0] = file;
        break;
    case SHORT:
        size = 3;
        break;
    case LONG:
        size = sizeof more;
        break;
    case VERSION:
        h.version = 99;
        break;
    default:
        break;
    }
    memcpy(more, &h, sizeof h);
    send_fds(fd, more, size, fds, (size_t)n);
    const int mine[] = {page, event, file, poll, pipes[0], pipes[1]};
    for (size_t i = 0; i < ASYM_LENGTH(mine); i++)
        close(mine[i]);
}

static void garbage_is_refused_and_nothing_is_kept_of_it(void **state)
{
    (void)state;
    int before = count_fds(), event, good = good_client(&event);
    int with_good = count_fds();
    for (enum what what = NOT_SEALED; what <= VERSION; what++) {
        const size_t had = refused[ASYM_RTX_REFUSED_GARBAGE] + refused[ASYM_RTX_REFUSED_VERSION];
        int fd = try_connect();
        assert_true(fd >= 0);
        hand_over(fd, what);
        serve(1);
        assert_int_equal(refused[ASYM_RTX_REFUSED_GARBAGE] + refused[ASYM_RTX_REFUSED_VERSION], had + 1);
        close(fd);
        assert_int_equal(count_fds(), with_good);
    }
    assert_int_equal(refused[ASYM_RTX_REFUSED_VERSION], 1);
    assert_int_equal(asym_rtx_server_count(server), 1);
    /* One message is all there is to say, for one that was heard, too. */
    send_fds(good, &hello, sizeof hello, NULL, 0);
    serve(1);
    assert_int_equal(asym_rtx_server_count(server), 0);
    close(good);
    close(event);
    assert_int_equal(count_fds(), before);
}

static void who_connects_and_says_nothing_is_dropped(void **state)
{
    (void)state;
    int fd = try_connect();
    serve(ASYM_SEC);
    asym_rtx_server_tend(server, ASYM_SEC + ASYM_RTX_HELLO_WITHIN - 1);
    assert_int_equal(refused[ASYM_RTX_REFUSED_SILENT], 0);
    asym_rtx_server_tend(server, ASYM_SEC + ASYM_RTX_HELLO_WITHIN);
    assert_int_equal(refused[ASYM_RTX_REFUSED_SILENT], 1);
    char c;
    assert_int_equal(recv(fd, &c, 1, MSG_DONTWAIT), 0);
    close(fd);
}

static bool is_readable(void)
{
    struct pollfd p = {.fd = asym_rtx_server_fd(server), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void who_wakes_in_vain_is_not_heard_for_a_while(void **state)
{
    (void)state;
    int event, fd = good_client(&event), other, other_fd;
    look();
    for (int i = 0; i < ASYM_RTX_MAX_IN_VAIN; i++) {
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(is_readable());
        assert_false(asym_rtx_server_serve(server, 1));
    }
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_false(is_readable());
    /* Others are. */
    other_fd = good_client(&other);
    look();
    set_phase(false);
    assert_int_equal(eventfd_write(other, 1), 0);
    assert_true(asym_rtx_server_serve(server, 1));
    look();
    serve(1);
    /* Again: once is enough, but for what it wrote before. */
    asym_rtx_server_tend(server, 2);
    assert_int_equal(serve(2), 0);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_true(is_readable());
    assert_int_equal(serve(2), 0);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_false(is_readable());
    close(fd);
    close(event);
    serve(2);
    assert_int_equal(asym_rtx_server_count(server), 1);
    close(other_fd);
    close(other);
}

static void who_means_it_is_heard_as_often_as_before(void **state)
{
    (void)state;
    int event, fd = good_client(&event);
    look();
    for (int i = 0; i < ASYM_RTX_MAX_IN_VAIN; i++) {
        assert_int_equal(eventfd_write(event, 1), 0);
        asym_rtx_server_serve(server, 1);
    }
    asym_rtx_server_tend(server, 2);
    set_phase(false);
    assert_true(asym_rtx_server_serve(server, 2));
    look();
    for (int i = 0; i < ASYM_RTX_MAX_IN_VAIN; i++) {
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(is_readable());
        asym_rtx_server_serve(server, 2);
    }
    close(fd);
    close(event);
}

/* Connections of a second are counted; who comes after them waits in the queue, and wakes nobody. */
static void who_floods_with_connections_is_not_heard_for_a_while(void **state)
{
    (void)state;
    for (int i = 0; i < ASYM_RTX_MAX_TAKEN; i++) {
        int fd = try_connect();
        assert_true(fd >= 0);
        asym_rtx_server_serve(server, 1);
        close(fd);
        asym_rtx_server_serve(server, 1);
    }
    int fd = try_connect();
    assert_true(fd >= 0);
    assert_false(is_readable());
    close(fd);
    asym_rtx_server_tend(server, 2);
    int event, good = good_client(&event);
    assert_int_equal(asym_rtx_server_count(server), 1);
    close(good);
    close(event);
}

/* One of another process, which is here until it is killed; its eventfd and its word are ours, too. */
static pid_t client_elsewhere(int *event, uint64_t **ret_word)
{
    *event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int fds[] = {make_page(SEALS), *event};
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        send_fds(try_connect(), &hello, sizeof hello, fds, 2);
        pause();
        _exit(0);
    }
    close(fds[0]);
    /* What is made next takes its place. */
    *ret_word = word;
    mapped = NULL;
    for (int i = 0; i < 1000 && asym_rtx_server_count(server) == 0; i++) {
        poll(&(struct pollfd){.fd = asym_rtx_server_fd(server), .events = POLLIN}, 1, 1000);
        serve(1);
    }
    assert_int_equal(asym_rtx_server_count(server), 1);
    return pid;
}

static void who_has_spent_its_part_is_put_off_and_nobody_else(void **state)
{
    (void)state;
    uint64_t *its_word, *my_word;
    int its, mine, fd, status;
    asym_rtx_server_set(server, 20, 1);
    const pid_t pid = client_elsewhere(&its, &its_word);
    fd = good_client(&mine);
    my_word = word;
    look();
    tell(its, its_word, false);
    assert_true(asym_rtx_server_serve(server, 10));
    asym_rtx_server_charge(server, 30 * ASYM_MSEC);
    /* All that is due is to look once more, first at the one that came before this. */
    assert_int_equal(asym_rtx_server_due(server), 1 + ASYM_RTX_NOTIFY_MIN_DEFAULT);
    look();
    tell(its, its_word, true);
    assert_false(asym_rtx_server_serve(server, 2 * ASYM_MSEC));
    assert_true(asym_rtx_server_due(server) > ASYM_SEC / 2);
    /* It wakes nobody now; and another one that tells is answered, and pays for that alone. */
    tell(its, its_word, true);
    assert_false(is_readable());
    tell(mine, my_word, false);
    assert_true(asym_rtx_server_serve(server, 3 * ASYM_MSEC));
    asym_rtx_server_charge(server, ASYM_MSEC);
    look();
    /* What a whole look has seen needs no answer. */
    tell(its, its_word, false);
    const double rate = 0.01 * ASYM_RTX_SHARE;
    const asym_usec then = (asym_usec)(60 * (double)ASYM_MSEC / rate);
    assert_true(asym_rtx_server_serve(server, then));
    asym_rtx_server_charge(server, ASYM_MSEC);
    look();
    /* And is heard as ever, though it has nothing to say for a while. */
    for (asym_usec i = 0; i < (asym_usec)2 * ASYM_RTX_MAX_IN_VAIN; i++) {
        assert_false(asym_rtx_server_serve(server, then + (i + 1) * 2 * ASYM_MSEC));
        asym_rtx_server_charge(server, 20);
        /* Being watched again wakes once. */
        if (i > 0)
            assert_int_equal(asym_rtx_server_due(server), 0);
    }
    assert_false(is_readable());
    tell(its, its_word, true);
    assert_true(is_readable());
    assert_true(asym_rtx_server_serve(server, then + ASYM_SEC / 2));
    asym_live_signal(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fd);
    close(mine);
    close(its);
}

/* A look at all has seen its phase, and it is not watched: its end is heard all the same, and nothing is due for it. */
static void who_ends_in_a_serial_phase_while_put_off_has_ended_it(void **state)
{
    (void)state;
    asym_rtx_server_set(server, 20, 1);
    for (int killed = 0; killed < 2; killed++) {
        const asym_usec at = (asym_usec)(1 + killed * 100) * ASYM_SEC;
        int event, fd = -1, status;
        pid_t pid = -1;
        uint64_t *its_word;
        asym_rtx_server_tend(server, at);
        if (killed) {
            pid = client_elsewhere(&event, &its_word);
        } else {
            fd = good_client_at(&event, at);
            its_word = word;
        }
        look();
        tell(event, its_word, false);
        assert_true(asym_rtx_server_serve(server, at));
        asym_rtx_server_charge(server, 60 * ASYM_MSEC);
        look();
        tell(event, its_word, true);
        assert_false(asym_rtx_server_serve(server, at + 1));
        assert_true(asym_rtx_server_due(server) > at + 1);
        look();
        assert_false(is_readable());
        if (killed) {
            asym_live_signal(pid, SIGKILL);
            assert_int_equal(waitpid(pid, &status, 0), pid);
        } else {
            close(fd);
        }
        assert_true(is_readable());
        assert_true(asym_rtx_server_serve(server, at + 2));
        assert_int_equal(asym_rtx_server_count(server), 0);
        assert_int_equal(asym_rtx_server_due(server), 0);
        assert_false(is_readable());
        close(event);
    }
}

static void several_connections_give_a_process_no_larger_part(void **state)
{
    (void)state;
    enum { MINE = 3 };
    uint64_t *its_word, *words[MINE];
    int its, events[MINE], fds[MINE], status;
    asym_rtx_server_set(server, 20, 1);
    const pid_t pid = client_elsewhere(&its, &its_word);
    for (int i = 0; i < MINE; i++) {
        fds[i] = good_client(&events[i]);
        words[i] = word;
        mapped = NULL;
    }
    look();
    /* All have spent as much; half of what answers may take is its alone, a sixth each page's of the others. */
    asym_usec now = 10;
    tell(its, its_word, false);
    for (int i = 0; i < MINE; i++)
        tell(events[i], words[i], false);
    assert_true(asym_rtx_server_serve(server, now));
    asym_rtx_server_charge(server, (MINE + 1) * 30 * ASYM_MSEC);
    look();
    for (; now < 100 * ASYM_SEC; now += 500 * ASYM_MSEC) {
        for (int i = 0; i < MINE; i++)
            tell(events[i], words[i], true);
        tell(its, its_word, true);
        if (asym_rtx_server_serve(server, now))
            break;
    }
    /* It came first and had all that was saved up. With half of what is earned the rest takes 4 s; with a quarter it were 8. */
    assert_true(now > 3 * ASYM_SEC && now < 5 * ASYM_SEC);
    asym_live_signal(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < MINE; i++) {
        close(fds[i]);
        close(events[i]);
    }
    close(its);
}

/* What they owe as they go stays owed. */
static void who_comes_and_goes_in_serial_phases_is_let_in_no_more(void **state)
{
    (void)state;
    asym_rtx_server_set(server, 20, 1);
    for (int i = 0; i < 2; i++) {
        int event, fd = good_client(&event);
        asym_rtx_server_charge(server, 8 * ASYM_MSEC);
        look();
        close(fd);
        close(event);
        assert_true(asym_rtx_server_serve(server, 1));
        asym_rtx_server_charge(server, 8 * ASYM_MSEC);
    }
    int fd = try_connect();
    assert_true(fd >= 0);
    serve(1);
    assert_false(is_readable());
    close(fd);
    asym_rtx_server_tend(server, 10 * ASYM_SEC);
    int event, good = good_client_at(&event, 10 * ASYM_SEC);
    close(good);
    close(event);
}

static void in_a_hurry_only_those_are_read_who_have_told(void **state)
{
    (void)state;
    const struct asym_told *told;
    struct asym_teller *teller = asym_rtx_server_teller(server);
    int mine, other, fd = good_client(&mine);
    uint64_t *my_word = word;
    mapped = NULL;
    int other_fd = good_client(&other);
    uint64_t *other_word = word;
    look();
    word = my_word;
    set_phase(false);
    tell(other, other_word, false);
    assert_true(asym_rtx_server_serve(server, 1));
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL | ASYM_ASK_HURRIED, &told), 2);
    /* Both are of one process, in no order: one has told, the other says what it said. */
    assert_int_equal(told[0].threads[0].news + told[1].threads[0].news, 1);
    assert_int_equal(told[0].threads[0].master + told[1].threads[0].master, 1);
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 2);
    assert_int_equal(told[0].threads[0].master + told[1].threads[0].master, 0);
    /* News are since the last whole look, as whatever else is in a hurried one is of then. */
    assert_int_equal(told[0].threads[0].news + told[1].threads[0].news, 2);
    assert_int_equal(teller->ask(teller, 2, ASYM_ASK_FINAL | ASYM_ASK_HURRIED, &told), 2);
    assert_int_equal(told[0].threads[0].news + told[1].threads[0].news, 0);
    assert_int_equal(told[0].at, 1);
    close(fd);
    close(mine);
    close(other_fd);
    close(other);
}

/* Of one process a few are heard; the rest is turned away, and others are heard all the same. */
static void ten_thousand_connections_keep_nobody_out(void **state)
{
    (void)state;
    fflush(NULL);
    int go[2], before = count_fds(), status;
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        const struct rlimit many = {20000, 20000};
        setrlimit(RLIMIT_NOFILE, &many);
        close(go[1]);
        for (int i = 0; i < 10000; i++)
            if (try_connect() < 0)
                usleep(100);
        char c;
        _exit(read(go[0], &c, 1) < 0);
    }
    close(go[0]);
    for (asym_usec now = 1; refused[ASYM_RTX_REFUSED_FULL] < 3000; now++) {
        asym_rtx_server_serve(server, now);
        asym_rtx_server_tend(server, now);
    }
    assert_true(count_fds() <= before + 1 + ASYM_RTX_MAX_OF_PID);
    asym_live_signal(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(go[1]);
    for (int i = 0; i < 10; i++) {
        asym_rtx_server_tend(server, 1);
        serve(1);
    }
    int event, fd = good_client(&event);
    assert_int_equal(asym_rtx_server_count(server), 1);
    close(fd);
    close(event);
}

static void a_client_killed_at_any_moment_is_gone(void **state)
{
    (void)state;
    int before = count_fds(), status;
    for (int round = 0; round < 100; round++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            const struct asym_rtx_options options = {.size = sizeof options, .socket = path};
            asym_rtx_join(&options);
            for (;;) {
                asym_rtx_serial_begin();
                asym_rtx_serial_end();
                asym_rtx_leave();
                asym_rtx_join(NULL);
            }
        }
        for (int i = 0; i < 50 + 37 * round; i++) {
            asym_rtx_server_serve(server, 1);
            asym_rtx_server_tend(server, 1);
        }
        asym_live_signal(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        for (int i = 0; i < 100; i++) {
            asym_rtx_server_tend(server, 1);
            asym_rtx_server_serve(server, 1);
        }
        assert_int_equal(asym_rtx_server_count(server), 0);
    }
    assert_int_equal(refused[ASYM_RTX_REFUSED_GARBAGE], 0);
    assert_int_equal(count_fds(), before);
}

static void without_descriptors_it_listens_again_later(void **state)
{
    (void)state;
    struct rlimit limit, none;
    int fd = try_connect();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    serve(1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    /* Once, not at each call: what waits in the queue wakes nobody. */
    assert_int_equal(refused[ASYM_RTX_REFUSED_NO_FD], 1);
    close(fd);
    asym_rtx_server_tend(server, 2);
    int event, good = good_client(&event);
    assert_int_equal(asym_rtx_server_count(server), 1);
    close(good);
    close(event);
}

/* The page goes on changing under the reader; the memory cannot go away. */
static void a_page_cannot_be_taken_away(void **state)
{
    (void)state;
    const struct asym_told *told;
    struct asym_teller *teller = asym_rtx_server_teller(server);
    int page = make_page(SEALS), event = eventfd(0, EFD_CLOEXEC), fd = try_connect();
    const int fds[] = {page, event};
    send_fds(fd, &hello, sizeof hello, fds, 2);
    serve(1);
    assert_int_equal(asym_rtx_server_count(server), 1);
    assert_int_equal(ftruncate(page, 0), -1);
    assert_int_equal(fallocate(page, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    assert_int_equal(madvise(mapped, 4096, MADV_REMOVE), -1);
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
    assert_int_equal(told->n, 1);
    memset(mapped, 0, 4096);
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
    assert_int_equal(told->n, 0);
    close(fd);
    close(page);
    close(event);
}

static void a_path_that_is_too_long_is_said(void **state)
{
    (void)state;
    char deep[300];
    struct asym_error err = {""};
    struct asym_rtx_server *none = NULL;
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    const struct asym_rtx_server_config config = {.dir = deep};
    assert_int_equal(asym_rtx_server_open(&config, &none, &err), -ENAMETOOLONG);
    assert_non_null(strstr(err.text, "too long"));
    assert_null(none);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_good_client_is_heard_until_it_ends),
        T(whatever_a_page_says_it_is_looked_at_again_within_a_second),
        T(each_is_looked_at_again_in_its_own_time),
        T(garbage_is_refused_and_nothing_is_kept_of_it),
        T(who_connects_and_says_nothing_is_dropped),
        T(who_wakes_in_vain_is_not_heard_for_a_while),
        T(who_means_it_is_heard_as_often_as_before),
        T(who_floods_with_connections_is_not_heard_for_a_while),
        T(who_has_spent_its_part_is_put_off_and_nobody_else),
        T(who_ends_in_a_serial_phase_while_put_off_has_ended_it),
        T(several_connections_give_a_process_no_larger_part),
        T(who_comes_and_goes_in_serial_phases_is_let_in_no_more),
        T(in_a_hurry_only_those_are_read_who_have_told),
        T(ten_thousand_connections_keep_nobody_out),
        T(a_client_killed_at_any_moment_is_gone),
        T(without_descriptors_it_listens_again_later),
        T(a_page_cannot_be_taken_away),
        T(a_path_that_is_too_long_is_said),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
