/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server against clients that break every rule, with the test in the place of its helper process. It is called by hand,
 * with a time that the test says.
 */
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
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "linux/rtx-page.h"
#include "linux/rtx-server.h"
#include "linux/thread.h"
#include "support/process.h"
#include "support/fake-acceptor.h"
#include "support/live.h"

static char dir[64], path[96];
static struct asym_rtx_server *server;
static size_t refused[ASYM_RTX_N_REFUSALS];

/* What the next page says. */
static uint32_t notify_min;

static unsigned lost;

static void on_lost(void *ctx, const char *why)
{
    (void)ctx;
    assert_true(strlen(why) > 0);
    lost++;
}

static void on_refused(void *ctx, enum asym_rtx_refusal refusal, pid_t pid, uid_t uid)
{
    (void)pid;
    (void)uid;
    ((size_t *)ctx)[refusal]++;
}

enum { CONNECTIONS = 1024 };

static struct fake_connection connections[CONNECTIONS];
static int n_connections;

static int set_up(void **state)
{
    (void)state;
    memset(refused, 0, sizeof refused);
    for (size_t i = 0; i < CONNECTIONS; i++)
        connections[i].memfd = connections[i].event = -1;
    notify_min = 0;
    snprintf(dir, sizeof dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/rtx", dir);
    lost = 0;
    const struct asym_rtx_server_config config = {.dir = dir,
                                                  .link = fake_acceptor_new(),
                                                  .spin_notify = 20,
                                                  .refused = on_refused,
                                                  .lost = on_lost,
                                                  .ctx = refused};
    return asym_rtx_server_open(&config, &server, NULL);
}

static int serve(asym_usec now)
{
    int told = 0;
    for (int i = 0; i < 10; i++)
        told += asym_rtx_server_serve(server, now);
    return told;
}

/* The last page that was filled, and the word of its thread. */
static char *mapped;
static uint64_t *word;

static struct asym_rtx_header good_header(void)
{
    return (struct asym_rtx_header){.magic = ASYM_RTX_MAGIC,
                                    .version = ASYM_RTX_VERSION,
                                    .header_size = sizeof(struct asym_rtx_header),
                                    .slot_size = sizeof(struct asym_rtx_slot),
                                    .n_slots = 2,
                                    .n_used = 2,
                                    .notify_min_usec = notify_min};
}

static void fill(int memfd, struct asym_rtx_header header, pid_t tid)
{
    const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING | ASYM_RTX_MASTER, .tid = tid};
    assert_int_equal(pwrite(memfd, &slot, sizeof slot, sizeof header), sizeof slot);
    assert_int_equal(pwrite(memfd, &header, sizeof header, 0), sizeof header);
    if (mapped)
        munmap(mapped, 4096);
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    assert_true(mapped != MAP_FAILED);
    word = (uint64_t *)(void *)(mapped + sizeof header);
}

/* Its number. */
static int come_as(pid_t pid, uid_t uid)
{
    const int i = n_connections++ % CONNECTIONS;
    fake_connection_done(&connections[i]);
    fake_acceptor_come(&connections[i], pid, uid, true);
    return i;
}

static int come(void)
{
    return come_as(getpid(), getuid());
}

static void go(int i)
{
    fake_acceptor_go(&connections[i]);
    fake_connection_done(&connections[i]);
}

static int tear_down(void **state)
{
    (void)state;
    asym_rtx_server_close(server);
    for (size_t i = 0; i < CONNECTIONS; i++)
        fake_connection_done(&connections[i]);
    n_connections = 0;
    assert_int_equal(access(path, F_OK), -1);
    return rmdir(dir);
}

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

/* A client, as it should be, that is there, but was not looked at yet. Returns its number; *event is its eventfd. */
static int come_and_fill(pid_t pid, uid_t uid, int *event, asym_usec now)
{
    const int i = come_as(pid, uid);
    asym_rtx_server_serve(server, now);
    assert_true(connections[i].memfd >= 0);
    fill(connections[i].memfd, good_header(), pid);
    *event = connections[i].event;
    connections[i].event = -1;
    assert_int_equal(eventfd_write(*event, 1), 0);
    return i;
}

/* A client of this very process. */
static int good_client_at(int *event, asym_usec now)
{
    const int i = come_and_fill(getpid(), getuid(), event, now);
    assert_true(serve(now) > 0);
    return i;
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
    go(fd);
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
        go(fd);
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
        go(fds[i]);
        close(events[i]);
    }
}

static void headers_that_make_no_sense_are_refused_and_nothing_is_kept(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        uint32_t value;
        enum asym_rtx_refusal refusal;
    } rows[] = {
        {offsetof(struct asym_rtx_header, magic), 1, ASYM_RTX_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, version), 99, ASYM_RTX_REFUSED_VERSION},
        {offsetof(struct asym_rtx_header, n_slots), 5000, ASYM_RTX_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, n_slots), 0, ASYM_RTX_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, slot_size), 32, ASYM_RTX_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, header_size), UINT32_MAX - 63, ASYM_RTX_REFUSED_GARBAGE},
    };
    int before = count_fds(), event, good = good_client(&event);
    int with_good = count_fds();
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const size_t had = refused[rows[i].refusal];
        struct asym_rtx_header h = good_header();
        int bad = come();
        serve(1);
        memcpy((char *)&h + rows[i].offset, &rows[i].value, sizeof rows[i].value);
        fill(connections[bad].memfd, h, getpid());
        serve(1);
        assert_int_equal(refused[rows[i].refusal], had);
        assert_int_equal(eventfd_write(connections[bad].event, 1), 0);
        serve(1);
        assert_int_equal(refused[rows[i].refusal], had + 1);
        assert_true(connections[bad].closed);
        go(bad);
        serve(1);
        assert_int_equal(count_fds(), with_good);
    }
    assert_int_equal(asym_rtx_server_count(server), 1);
    /* A program has nothing to send, one that is heard neither. */
    fake_acceptor_breach(&connections[good]);
    serve(1);
    assert_int_equal(asym_rtx_server_count(server), 0);
    assert_true(connections[good].closed);
    go(good);
    close(event);
    serve(1);
    assert_int_equal(count_fds(), before);
    /* Each eventfd has gone back to the helper, and none was closed here. */
    assert_int_equal(fake_acceptor_given(), ASYM_LENGTH(rows) + 1);
}

/* It may write the header when it wants to, and wake when it has not. */
static void who_writes_no_header_in_time_is_dropped(void **state)
{
    (void)state;
    const int silent = come(), late = come();
    serve(ASYM_SEC);
    assert_int_equal(eventfd_write(connections[late].event, 1), 0);
    assert_int_equal(serve(ASYM_SEC), 0);
    asym_rtx_server_tend(server, ASYM_SEC + ASYM_RTX_FILL_WITHIN - 1);
    assert_int_equal(refused[ASYM_RTX_REFUSED_SILENT], 0);
    fill(connections[late].memfd, good_header(), getpid());
    assert_int_equal(eventfd_write(connections[late].event, 1), 0);
    serve(ASYM_SEC);
    asym_rtx_server_tend(server, ASYM_SEC + ASYM_RTX_FILL_WITHIN);
    assert_int_equal(refused[ASYM_RTX_REFUSED_SILENT], 1);
    assert_true(connections[silent].closed);
    assert_false(connections[late].closed);
    assert_int_equal(asym_rtx_server_count(server), 1);
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
    go(fd);
    close(event);
    serve(2);
    assert_int_equal(asym_rtx_server_count(server), 1);
    go(other_fd);
    close(other);
}

static void who_wakes_without_a_header_is_not_heard_for_a_while(void **state)
{
    (void)state;
    const int i = come();
    serve(1);
    for (int k = 0; k < ASYM_RTX_MAX_IN_VAIN; k++) {
        assert_int_equal(eventfd_write(connections[i].event, 1), 0);
        assert_true(is_readable());
        assert_int_equal(serve(1), 0);
    }
    assert_int_equal(eventfd_write(connections[i].event, 1), 0);
    assert_false(is_readable());
    /* Its header is read at the next tend at the latest. */
    fill(connections[i].memfd, good_header(), getpid());
    asym_rtx_server_tend(server, 2);
    serve(2);
    assert_int_equal(asym_rtx_server_count(server), 1);
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
    go(fd);
    close(event);
}

/* One user's connections of a second are counted; the first one of another user is considered all the same. */
static void who_floods_with_connections_keeps_nobody_out(void **state)
{
    (void)state;
    for (int i = 0; i < ASYM_RTX_MAX_TAKEN; i++) {
        const int k = come();
        asym_rtx_server_serve(server, 1);
        assert_false(connections[k].closed);
        go(k);
        asym_rtx_server_serve(server, 1);
    }
    const int mine = come(), first = come_as(getpid(), 12345), second = come_as(getpid(), 12345);
    serve(1);
    assert_true(connections[mine].closed && connections[mine].memfd < 0);
    assert_false(connections[first].closed);
    assert_true(connections[second].closed);
    assert_int_equal(refused[ASYM_RTX_REFUSED_BUSY], 2);
    asym_rtx_server_tend(server, 2);
    int event, good = good_client(&event);
    assert_int_equal(asym_rtx_server_count(server), 1);
    go(good);
    close(event);
}

/* One of another process, which is here until it is killed; its eventfd and its word are ours, too. */
static pid_t process_elsewhere(void)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60);
        pause();
        _exit(0);
    }
    return pid;
}

/* *connection: its number. */
static pid_t client_elsewhere(int *event, uint64_t **ret_word, int *connection)
{
    const pid_t pid = process_elsewhere();
    *connection = come_and_fill(pid, getuid(), event, 1);
    assert_int_equal(serve(1), 1);
    /* What is made next takes its place. */
    *ret_word = word;
    mapped = NULL;
    assert_int_equal(asym_rtx_server_count(server), 1);
    return pid;
}

static void who_has_spent_its_part_is_put_off_and_nobody_else(void **state)
{
    (void)state;
    uint64_t *its_word, *my_word;
    int its, mine, fd, status, connection;
    asym_rtx_server_set(server, 20, 1);
    const pid_t pid = client_elsewhere(&its, &its_word, &connection);
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
    go(fd);
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
        int event, fd = -1, status, connection;
        pid_t pid = -1;
        uint64_t *its_word;
        asym_rtx_server_tend(server, at);
        if (killed) {
            pid = client_elsewhere(&event, &its_word, &connection);
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
            go(connection);
        } else {
            go(fd);
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
    int its, events[MINE], fds[MINE], status, connection;
    asym_rtx_server_set(server, 20, 1);
    const pid_t pid = client_elsewhere(&its, &its_word, &connection);
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
        go(fds[i]);
        close(events[i]);
    }
    close(its);
}

/* What they owe as they go stays owed: after some more their ends are answered no more, but who comes is let in. */
static void who_comes_and_goes_in_serial_phases_is_answered_no_more(void **state)
{
    (void)state;
    int event, fd, told = 0;
    asym_rtx_server_set(server, 20, 1);
    for (int i = 0; i < 30; i++) {
        fd = come_and_fill(getpid(), getuid(), &event, 1);
        serve(1);
        asym_rtx_server_charge(server, 8 * ASYM_MSEC);
        assert_int_equal(asym_rtx_server_count(server), 1);
        look();
        go(fd);
        close(event);
        told += asym_rtx_server_serve(server, 1);
        asym_rtx_server_charge(server, 8 * ASYM_MSEC);
    }
    assert_in_range(told, ASYM_RTX_MAX_ENDS, ASYM_RTX_MAX_ENDS + 2);
    asym_rtx_server_tend(server, 20 * ASYM_SEC);
    fd = good_client_at(&event, 20 * ASYM_SEC);
    look();
    go(fd);
    close(event);
    assert_int_equal(serve(20 * ASYM_SEC), 1);
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
    go(fd);
    close(mine);
    go(other_fd);
    close(other);
}

/* Of one process a few are heard; the rest is turned away, and others are heard all the same. */
static void a_process_has_few_places(void **state)
{
    (void)state;
    int taken = 0;
    for (int i = 0; i < ASYM_RTX_MAX_TAKEN; i++) {
        const int k = come();
        asym_rtx_server_serve(server, 1);
        taken += !connections[k].closed;
        assert_int_equal(connections[k].memfd >= 0, !connections[k].closed);
    }
    assert_int_equal(taken, ASYM_RTX_MAX_OF_PID);
    assert_int_equal(refused[ASYM_RTX_REFUSED_FULL], ASYM_RTX_MAX_TAKEN - ASYM_RTX_MAX_OF_PID);
    const pid_t pid = process_elsewhere();
    asym_rtx_server_tend(server, 2);
    const int other = come_as(pid, 1);
    serve(2);
    assert_false(connections[other].closed);
    asym_process_signal(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

enum { PROCESSES = ASYM_RTX_MAX_CLIENTS / ASYM_RTX_MAX_OF_PID + 8 };

static void start_processes(pid_t pids[PROCESSES])
{
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = process_elsewhere();
}

static void end_processes(const pid_t pids[PROCESSES])
{
    for (int i = 0; i < PROCESSES; i++) {
        asym_process_signal(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
}

/* How many of them have a place now, of n connections from the first. */
static int count_in(int first, int n)
{
    int in = 0;
    for (int i = first; i < first + n; i++)
        in += !connections[i % CONNECTIONS].closed;
    return in;
}

/* Each user once a second, so that all are considered. */
static int come_once(const pid_t pids[PROCESSES], uid_t first_user, int n)
{
    const int begun = n_connections;
    for (int i = 0; i < n; i++) {
        come_as(pids[i / ASYM_RTX_MAX_OF_PID], first_user + (uid_t)i);
        asym_rtx_server_serve(server, 1);
    }
    asym_rtx_server_tend(server, 1);
    return begun;
}

static void four_users_that_take_all_they_can_keep_nobody_out(void **state)
{
    (void)state;
    enum { USERS = 4, EACH = ASYM_RTX_MAX_OF_USER };
    pid_t pids[PROCESSES];
    int first[USERS];
    start_processes(pids);
    for (int u = 0; u < USERS; u++) {
        first[u] = n_connections;
        for (int i = 0; i < EACH; i++) {
            come_as(pids[u * EACH / ASYM_RTX_MAX_OF_PID + i / ASYM_RTX_MAX_OF_PID], 3001 + (uid_t)u);
            asym_rtx_server_serve(server, 1);
        }
        asym_rtx_server_tend(server, 1);
    }
    for (int u = 0; u < USERS; u++)
        assert_in_range(count_in(first[u], EACH), (ASYM_RTX_MAX_OF_USERS - 16) / USERS, EACH);
    /* A newcomer gets a place, from the user that has the most; so does root; so does another one again. */
    const pid_t mine = pids[PROCESSES - 1];
    for (uid_t uid = 5000; uid < 5020; uid++) {
        const int newcomer = come_as(uid % 2 ? mine : pids[PROCESSES - 2 - (int)(uid - 5000) / 8], uid);
        asym_rtx_server_serve(server, 1);
        if (uid < 5006)
            assert_false(connections[newcomer].closed);
    }
    const int root = come_as(pids[PROCESSES - 5], 0);
    asym_rtx_server_serve(server, 1);
    assert_false(connections[root].closed);
    assert_true(refused[ASYM_RTX_REFUSED_YIELDS] > 0);
    end_processes(pids);
}

/* As many users as there are places for users: a newcomer is kept out, and root is not. */
static void only_as_many_users_keep_one_out_and_none_keeps_out_root(void **state)
{
    (void)state;
    pid_t pids[PROCESSES];
    start_processes(pids);
    const int begun = come_once(pids, 10000, ASYM_RTX_MAX_OF_USERS);
    assert_int_equal(count_in(begun, ASYM_RTX_MAX_OF_USERS), ASYM_RTX_MAX_OF_USERS);
    const int newcomer = come_as(pids[PROCESSES - 1], 20000);
    asym_rtx_server_serve(server, 1);
    assert_true(connections[newcomer].closed);
    for (int i = 0; i < ASYM_RTX_MAX_CLIENTS - ASYM_RTX_MAX_OF_USERS + 4; i++) {
        const int root = come_as(pids[PROCESSES - 2 - i / ASYM_RTX_MAX_OF_PID], 0);
        asym_rtx_server_serve(server, 1);
        assert_false(connections[root].closed);
    }
    assert_int_equal(refused[ASYM_RTX_REFUSED_YIELDS], 4);
    end_processes(pids);
}

/* Without SO_PEERPIDFD the process of that number has to be of the user that has connected. */
static void a_number_that_is_another_users_by_now_is_refused(void **state)
{
    (void)state;
    struct fake_connection c[3];
    fake_acceptor_come(&c[0], getpid(), geteuid() + 1, false);
    fake_acceptor_come(&c[1], getpid(), geteuid(), false);
    fake_acceptor_come(&c[2], getpid(), geteuid() + 1, true);
    serve(1);
    assert_true(c[0].closed && c[0].memfd < 0);
    assert_false(c[1].closed || c[2].closed);
    assert_int_equal(refused[ASYM_RTX_REFUSED_OTHER], 1);
    for (size_t i = 0; i < ASYM_LENGTH(c); i++)
        fake_connection_done(&c[i]);
}

static void without_descriptors_a_program_is_refused(void **state)
{
    (void)state;
    struct rlimit limit, none;
    const int next = dup(STDOUT_FILENO);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    const int before = count_fds();
    for (int room = 0; room < 2; room++) {
        none.rlim_cur = (rlim_t)(next + room);
        const int k = come();
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        serve(1);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(refused[ASYM_RTX_REFUSED_NO_FD], room + 1);
        assert_true(connections[k].closed);
        assert_int_equal(count_fds(), before);
    }
    int event, good = good_client(&event);
    assert_int_equal(asym_rtx_server_count(server), 1);
    go(good);
    close(event);
}

/* It is asked at each tend; what it does not answer it is killed for, and all connections have ended with it. */
static void a_helper_that_hangs_is_replaced(void **state)
{
    (void)state;
    asym_usec now = ASYM_SEC;
    int event, fd = good_client_at(&event, now);
    look();
    for (int i = 0; i < 10; i++)
        asym_rtx_server_tend(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 0);
    assert_int_equal(asym_rtx_server_helper_use(server).cpu, 7);
    fake_acceptor_hang();
    for (int i = 0; i < ASYM_RTX_MAX_UNHEARD; i++)
        asym_rtx_server_tend(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 0);
    asym_rtx_server_tend(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 1);
    assert_int_equal(fake_acceptor_started(), 2);
    assert_int_equal(lost, 1);
    assert_int_equal(asym_rtx_server_count(server), 0);
    /* Its eventfd is the successor's to close. */
    assert_int_equal(fake_acceptor_given(), 1);
    assert_true(asym_rtx_server_serve(server, now));
    go(fd);
    close(event);
    fd = good_client_at(&event, now);
    assert_int_equal(asym_rtx_server_count(server), 1);
    go(fd);
    close(event);
}

static void a_helper_that_ends_is_replaced_ever_more_slowly(void **state)
{
    (void)state;
    asym_usec now = 100 * ASYM_SEC;
    unsigned started = 1;
    asym_usec waited = 0, at = now;
    asym_rtx_server_tend(server, now);
    asym_rtx_server_tend(server, now += ASYM_SEC);
    for (int i = 0; i < 8; i++) {
        fake_acceptor_end();
        asym_rtx_server_serve(server, now);
        at = now;
        while (fake_acceptor_started() == started)
            asym_rtx_server_tend(server, now += ASYM_SEC);
        started++;
        if (i > 1)
            assert_true(now - at >= waited && now - at <= ASYM_RTX_RETRY_MAX);
        waited = now - at;
    }
    assert_int_equal(waited, ASYM_RTX_RETRY_MAX);
    assert_int_equal(lost, 8);
    /* Nor is one that cannot be started asked for all the time. */
    fake_acceptor_end();
    fake_acceptor_fail(-EBUSY);
    for (int i = 0; i < 600; i++)
        asym_rtx_server_tend(server, now += ASYM_SEC);
    assert_in_range(lost, 8 + 1 + 9, 8 + 1 + 11);
    fake_acceptor_fail(0);
    for (int i = 0; i < 61; i++)
        asym_rtx_server_tend(server, now += ASYM_SEC);
    int event, fd = good_client_at(&event, now);
    go(fd);
    close(event);
}

/* It takes no order: the eventfd stays here until one does. */
static void a_helper_that_takes_no_orders_is_replaced(void **state)
{
    (void)state;
    asym_usec now = 10 * ASYM_SEC;
    int event, fd = good_client_at(&event, now);
    asym_rtx_server_tend(server, now);
    fake_acceptor_clog();
    go(fd);
    serve(now);
    close(event);
    assert_int_equal(fake_acceptor_given(), 0);
    asym_rtx_server_tend(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 1);
    assert_int_equal(fake_acceptor_started(), 2);
    assert_int_equal(fake_acceptor_given(), 1);
}

/* Whatever it reports harms nobody but its own connections. */
static void reports_that_make_no_sense_end_the_helper(void **state)
{
    (void)state;
    int event, fd = good_client(&event);
    const struct asym_rtx_report rows[] = {
        {.kind = 0},
        {.kind = 99},
        {.kind = ASYM_RTX_REPORT_CAME, .id = 0, .pid = getpid()},
        {.kind = ASYM_RTX_REPORT_CAME, .id = 77, .pid = 0},
        {.kind = ASYM_RTX_REPORT_CAME, .id = 77, .pid = -1},
    };
    asym_usec now = 1000 * ASYM_SEC;
    look();
    for (size_t i = 0; i < ASYM_LENGTH(rows) + 3; i++) {
        asym_rtx_server_tend(server, now += 100 * ASYM_SEC);
        asym_rtx_server_tend(server, now += 100 * ASYM_SEC);
        struct asym_rtx_report again = {.kind = ASYM_RTX_REPORT_CAME, .id = connections[fd].id, .pid = getpid()};
        if (i < ASYM_LENGTH(rows)) {
            fake_acceptor_report(&rows[i], sizeof rows[i]);
        } else if (i == ASYM_LENGTH(rows)) {
            fake_acceptor_report("short", 5);
        } else if (i == ASYM_LENGTH(rows) + 1) {
            char longer[sizeof(struct asym_rtx_report) + 1] = {ASYM_RTX_REPORT_GONE};
            fake_acceptor_report(longer, sizeof longer);
        } else {
            /* One that is there already. */
            go(fd);
            close(event);
            fd = good_client_at(&event, now);
            again.id = connections[fd].id;
            fake_acceptor_report(&again, sizeof again);
        }
        serve(now);
        assert_int_equal(fake_acceptor_killed(), i + 1);
        assert_int_equal(asym_rtx_server_count(server), 0);
    }
    close(event);
    /* Numbers that are nobody's change nothing. */
    asym_rtx_server_tend(server, now += 100 * ASYM_SEC);
    for (uint32_t kind = ASYM_RTX_REPORT_GONE; kind <= ASYM_RTX_REPORT_ALIVE; kind++) {
        const struct asym_rtx_report none = {.kind = kind, .id = 4000000000, .pid = 1, .uid = 5};
        fake_acceptor_report(&none, sizeof none);
    }
    serve(now);
    assert_int_equal(fake_acceptor_killed(), ASYM_LENGTH(rows) + 3);
    assert_int_equal(refused[ASYM_RTX_REFUSED_HUNG], 1);
    assert_int_equal(refused[ASYM_RTX_REFUSED_NAMESPACE], 1);
}

/* The page goes on changing under the reader; the memory cannot go away, and a hole says nothing. */
static void a_page_cannot_be_taken_away(void **state)
{
    (void)state;
    const struct asym_told *told;
    struct asym_teller *teller = asym_rtx_server_teller(server);
    int event, i = good_client(&event);
    const int page = connections[i].memfd;
    assert_int_equal(ftruncate(page, 0), -1);
    assert_int_equal(ftruncate(page, 1 << 24), -1);
    assert_int_equal(fcntl(page, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
    assert_int_equal(told->n, 1);
    assert_int_equal(fallocate(page, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 18), 0);
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
    assert_int_equal(told->n, 0);
    /* More slots than the header said once are not read, whatever it says now. */
    ((struct asym_rtx_header *)(void *)mapped)->n_used = UINT32_MAX;
    ((struct asym_rtx_header *)(void *)mapped)->n_slots = UINT32_MAX;
    for (int k = 0; k < 3; k++)
        ((struct asym_rtx_slot *)(void *)(mapped + 64))[k] = (struct asym_rtx_slot){.word = 1, .tid = 10 + k};
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
    assert_int_equal(told->n, 2);
    memset(mapped, 0, 4096);
    assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
    assert_int_equal(told->n, 0);
    go(i);
    close(event);
}

/* More than what is read at once by itself. */
static void a_page_of_many_slots_is_read_to_its_end(void **state)
{
    (void)state;
    const struct asym_told *told;
    struct asym_teller *teller = asym_rtx_server_teller(server);
    const int i = come();
    serve(1);
    struct asym_rtx_header h = good_header();
    h.n_slots = ASYM_RTX_MAX_SLOTS;
    h.n_used = 1;
    fill(connections[i].memfd, h, getpid());
    assert_int_equal(eventfd_write(connections[i].event, 1), 0);
    serve(1);
    static const size_t used[] = {1, 63, 64, 65, 500, ASYM_RTX_MAX_SLOTS, 100};
    for (size_t k = 0; k < ASYM_LENGTH(used); k++) {
        for (size_t n = 0; n < used[k]; n++) {
            const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING, .tid = (int32_t)n + 1};
            assert_int_equal(pwrite(connections[i].memfd, &slot, sizeof slot, (off_t)(64 + 64 * n)), sizeof slot);
        }
        ((struct asym_rtx_header *)(void *)mapped)->n_used = (uint32_t)used[k];
        assert_int_equal(teller->ask(teller, 1, ASYM_ASK_FINAL, &told), 1);
        assert_int_equal(told->n, used[k]);
        assert_int_equal(told->threads[used[k] - 1].tid, used[k]);
    }
    go(i);
}

static void a_path_that_is_too_long_is_said(void **state)
{
    (void)state;
    char deep[300];
    struct asym_error err = {""};
    struct asym_rtx_server *none = NULL;
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    const struct asym_rtx_server_config config = {.dir = deep, .link = fake_acceptor_new()};
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
        T(headers_that_make_no_sense_are_refused_and_nothing_is_kept),
        T(who_writes_no_header_in_time_is_dropped),
        T(who_wakes_in_vain_is_not_heard_for_a_while),
        T(who_wakes_without_a_header_is_not_heard_for_a_while),
        T(who_means_it_is_heard_as_often_as_before),
        T(who_floods_with_connections_keeps_nobody_out),
        T(who_has_spent_its_part_is_put_off_and_nobody_else),
        T(who_ends_in_a_serial_phase_while_put_off_has_ended_it),
        T(several_connections_give_a_process_no_larger_part),
        T(who_comes_and_goes_in_serial_phases_is_answered_no_more),
        T(in_a_hurry_only_those_are_read_who_have_told),
        T(a_process_has_few_places),
        T(four_users_that_take_all_they_can_keep_nobody_out),
        T(only_as_many_users_keep_one_out_and_none_keeps_out_root),
        T(a_number_that_is_another_users_by_now_is_refused),
        T(without_descriptors_a_program_is_refused),
        T(a_helper_that_hangs_is_replaced),
        T(a_helper_that_ends_is_replaced_ever_more_slowly),
        T(a_helper_that_takes_no_orders_is_replaced),
        T(reports_that_make_no_sense_end_the_helper),
        T(a_page_cannot_be_taken_away),
        T(a_page_of_many_slots_is_read_to_its_end),
        T(a_path_that_is_too_long_is_said),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
