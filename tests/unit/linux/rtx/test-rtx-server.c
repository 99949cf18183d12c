/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server against clients that break every rule. The test replaces the helper process, calls the server directly and sets
 * the time.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "linux/rtx/rtx-channel.h"
#include "linux/rtx/rtx-fair-share.h"
#include "linux/rtx/rtx-page.h"
#include "linux/rtx/rtx-server.h"
#include "linux/rtx/rtx-server-internal.h"
#include "linux/sys/thread.h"
#include "support/process.h"
#include "support/fake-acceptor.h"
#include "support/live.h"
#include "support/rtx-raw.h"
#include "support/test.h"

static char dir[64], path[96];
static struct asym_rtxd_server *server;
static size_t refused[ASYM_RTXD_N_REFUSALS];

/* Content of the next page. */
static uint32_t notify_min;

static unsigned lost;
static char lost_why[256];

static void on_lost(void *ctx, const char *why)
{
    (void)ctx;
    assert_true(strlen(why) > 0);
    snprintf(lost_why, sizeof lost_why, "%s", why);
    lost++;
}

static void on_refused(void *ctx, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    (void)pid;
    (void)uid;
    ((size_t *)ctx)[refusal]++;
}

enum { CONNECTIONS = 1024 };

static struct fake_connection connections[CONNECTIONS];
static int n_connections;

/* This process has both ends of each connection, which are more than the usual 1,024. asymd raises its limit, too. */
static void raise_limit(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int set_up(void **state)
{
    (void)state;
    raise_limit();
    memset(refused, 0, sizeof refused);
    for (size_t i = 0; i < CONNECTIONS; i++)
        connections[i].memfd = connections[i].event = -1;
    notify_min = 0;
    snprintf(dir, sizeof dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/rtx", dir);
    lost = 0;
    const struct asym_rtxd_server_config config = {.dir = dir,
                                                   .link = fake_acceptor_new(),
                                                   .spin_notify = 20,
                                                   .refused = on_refused,
                                                   .lost = on_lost,
                                                   .ctx = refused};
    return asym_rtxd_server_open(&config, &server, NULL);
}

static int serve(asym_usec now)
{
    int program_reports = 0;
    for (int i = 0; i < 10; i++)
        program_reports += asym_rtxd_server_serve(server, now);
    return program_reports;
}

/* The page filled last, and the word of its thread. */
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

/* Returns the id of the connection. */
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
    asym_rtxd_server_close(server);
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

/* Take all reports into a snapshot, as a cycle does. */
static void take_sample(void)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports);
}

/* Connect a correct client that the server has not sampled yet. Returns its id; *event is its eventfd. */
static int come_and_fill(pid_t pid, uid_t uid, int *event, asym_usec now)
{
    const int i = come_as(pid, uid);
    asym_rtxd_server_serve(server, now);
    assert_true(connections[i].memfd >= 0);
    fill(connections[i].memfd, good_header(), pid);
    *event = connections[i].event;
    connections[i].event = -1;
    assert_int_equal(eventfd_write(*event, 1), 0);
    return i;
}

/* A client of this process. */
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

TEST_WITH(a_good_client_is_served_until_it_ends, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_stat stat;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    int before = count_fds(), event, fd = good_client(&event);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
    assert_int_equal(asym_thread_get_stat(getpid(), getpid(), &stat), 0);
    assert_int_equal(program_reports->pid, getpid());
    assert_int_equal(program_reports->start, stat.start);
    assert_int_equal(program_reports->n, 1);
    assert_int_equal(program_reports->threads[0].tid, getpid());
    assert_true(program_reports->threads[0].master);
    /* Each write wakes, though the server never reads the eventfd. */
    for (int i = 0; i < 3; i++) {
        set_phase(i % 2);
        assert_int_equal(serve(1), 0);
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(asym_rtxd_server_serve(server, 1));
        take_sample();
        assert_int_equal(serve(1), 0);
    }
    /* A change soon after does not wake, but the second sample sees it; once. */
    set_phase(true);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_true(asym_rtxd_server_serve(server, 1));
    take_sample();
    set_phase(false);
    assert_int_equal(serve(ASYM_RTX_NOTIFY_MIN_DEFAULT), 0);
    assert_true(asym_rtxd_server_serve(server, 1 + ASYM_RTX_NOTIFY_MIN_DEFAULT));
    take_sample();
    set_phase(true);
    assert_false(asym_rtxd_server_serve(server, ASYM_SEC));
    take_sample();
    /* A program that ends in a serial phase ends the phase. */
    go(fd);
    assert_int_equal(serve(ASYM_SEC), 1);
    assert_int_equal(asym_rtxd_server_count(server), 0);
    /* The server ignores an ended client, though the program still has its eventfd. */
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_int_equal(serve(ASYM_SEC), 0);
    close(event);
    assert_int_equal(count_fds(), before);
}

TEST_WITH(each_page_is_read_again_within_a_second, set_up, tear_down)
{
    static const struct {
        uint32_t said;
        asym_usec after;
    } rows[] = {{0, 1000}, {1, 1}, {20000, 20000}, {1000000, ASYM_SEC}, {1000001, ASYM_SEC}, {UINT32_MAX, ASYM_SEC}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const asym_usec at = (i + 1) * 10 * ASYM_SEC, again = at + rows[i].after;
        notify_min = rows[i].said;
        int event, fd = good_client_at(&event, at);
        take_sample();
        assert_int_equal(asym_rtxd_server_due(server), again);
        set_phase(false);
        assert_int_equal(serve(again - 1), 0);
        assert_true(asym_rtxd_server_serve(server, again));
        take_sample();
        /* Once, however short notify_min is; the server ignores later changes of the header. */
        assert_int_equal(asym_rtxd_server_due(server), 0);
        ((struct asym_rtx_header *)(void *)mapped)->notify_min_usec = 7;
        set_phase(true);
        assert_int_equal(serve(again + 2 * ASYM_SEC), 0);
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(asym_rtxd_server_serve(server, again + 2 * ASYM_SEC));
        assert_int_equal(asym_rtxd_server_due(server), again + 2 * ASYM_SEC + rows[i].after);
        take_sample();
        go(fd);
        close(event);
        serve(again + 2 * ASYM_SEC);
    }
}

TEST_WITH(each_client_is_served_again_in_its_own_time, set_up, tear_down)
{
    int events[2], fds[2];
    uint64_t *words[2];
    for (int i = 0; i < 2; i++) {
        notify_min = i == 0 ? 20000 : 5000;
        fds[i] = good_client_at(&events[i], ASYM_SEC);
        words[i] = word;
        mapped = NULL;
    }
    take_sample();
    serve(2 * ASYM_SEC);
    assert_int_equal(asym_rtxd_server_due(server), 0);
    for (int i = 0; i < 2; i++)
        tell(events[i], words[i], false);
    assert_int_equal(serve(3 * ASYM_SEC), 1);
    take_sample();
    /* Neither program wakes the server. */
    for (int i = 0; i < 2; i++) {
        word = words[i];
        set_phase(true);
    }
    assert_int_equal(serve(3 * ASYM_SEC + 4999), 0);
    assert_int_equal(asym_rtxd_server_due(server), 3 * ASYM_SEC + 5000);
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    assert_true(asym_rtxd_server_serve(server, 3 * ASYM_SEC + 5000));
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL | ASYM_ASK_REFRESH, &program_reports), 2);
    /* For the other program the provider repeats its last report. */
    assert_int_equal(program_reports[0].threads[0].master + program_reports[1].threads[0].master, 1);
    /* A wakeup by another client does not change the time. */
    assert_int_equal(eventfd_write(events[1], 1), 0);
    assert_int_equal(serve(3 * ASYM_SEC + 18000), 0);
    assert_int_equal(asym_rtxd_server_due(server), 3 * ASYM_SEC + 20000);
    assert_true(asym_rtxd_server_serve(server, 3 * ASYM_SEC + 20000));
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL | ASYM_ASK_REFRESH, &program_reports), 2);
    assert_int_equal(program_reports[0].threads[0].master + program_reports[1].threads[0].master, 2);
    assert_int_equal(asym_rtxd_server_due(server), 3 * ASYM_SEC + 23000);
    assert_int_equal(serve(3 * ASYM_SEC + 23000), 0);
    assert_int_equal(asym_rtxd_server_due(server), 0);
    for (int i = 0; i < 2; i++) {
        go(fds[i]);
        close(events[i]);
    }
}

TEST_WITH(headers_that_make_no_sense_are_refused_and_nothing_is_kept, set_up, tear_down)
{
    static const struct {
        size_t offset;
        uint32_t value;
        enum asym_rtxd_refusal refusal;
    } rows[] = {
        {offsetof(struct asym_rtx_header, magic), 1, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, version), 99, ASYM_RTXD_REFUSED_VERSION},
        {offsetof(struct asym_rtx_header, n_slots), 5000, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, n_slots), 0, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, slot_size), 32, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, header_size), UINT32_MAX - 63, ASYM_RTXD_REFUSED_GARBAGE},
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
    assert_int_equal(asym_rtxd_server_count(server), 1);
    /* No program may send data, also not after its header was read. */
    fake_acceptor_breach(&connections[good]);
    serve(1);
    assert_int_equal(asym_rtxd_server_count(server), 0);
    assert_true(connections[good].closed);
    go(good);
    close(event);
    serve(1);
    assert_int_equal(count_fds(), before);
    /* The helper has got each eventfd back, and the server has closed none itself. */
    assert_int_equal(fake_acceptor_given(), ASYM_LENGTH(rows) + 1);
}

/* A program may write the header late, and wake the server before. */
TEST_WITH(a_client_that_writes_no_header_in_time_is_dropped, set_up, tear_down)
{
    const int silent = come(), late = come();
    serve(ASYM_SEC);
    assert_int_equal(eventfd_write(connections[late].event, 1), 0);
    assert_int_equal(serve(ASYM_SEC), 0);
    asym_rtxd_server_housekeeping(server, ASYM_SEC + ASYM_RTXD_FILL_WITHIN - 1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_SILENT], 0);
    fill(connections[late].memfd, good_header(), getpid());
    assert_int_equal(eventfd_write(connections[late].event, 1), 0);
    serve(ASYM_SEC);
    asym_rtxd_server_housekeeping(server, ASYM_SEC + ASYM_RTXD_FILL_WITHIN);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_SILENT], 1);
    assert_true(connections[silent].closed);
    assert_false(connections[late].closed);
    assert_int_equal(asym_rtxd_server_count(server), 1);
}

static bool is_readable(void)
{
    struct pollfd p = {.fd = asym_rtxd_server_fd(server), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

TEST_WITH(a_client_that_wakes_in_vain_is_not_read_for_a_while, set_up, tear_down)
{
    int event, fd = good_client(&event), other, other_fd;
    take_sample();
    for (int i = 0; i < ASYM_RTXD_MAX_VAIN_WAKEUPS; i++) {
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(is_readable());
        assert_false(asym_rtxd_server_serve(server, 1));
    }
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_false(is_readable());
    /* asymd still polls the other clients. */
    other_fd = good_client(&other);
    take_sample();
    set_phase(false);
    assert_int_equal(eventfd_write(other, 1), 0);
    assert_true(asym_rtxd_server_serve(server, 1));
    take_sample();
    serve(1);
    /* One vain wakeup mutes it again, not counting its earlier write. */
    asym_rtxd_server_housekeeping(server, 2);
    assert_int_equal(serve(2), 0);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_true(is_readable());
    assert_int_equal(serve(2), 0);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_false(is_readable());
    go(fd);
    close(event);
    serve(2);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    go(other_fd);
    close(other);
}

static void post(int event)
{
    assert_int_equal(asym_raw_post(event), 0);
}

static void overfill(int event)
{
    struct pollfd p = {.fd = event, .events = 0};
    assert_int_equal(asym_raw_overfill(event), 0);
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_int_equal(p.revents, POLLERR);
}

/* The kernel reports EPOLLERR of a descriptor that asymd does not want to poll, too. */
TEST_WITH(an_overfilled_count_does_not_wake_asymd_while_it_is_throttled, set_up, tear_down)
{
    int event, fd = good_client(&event);
    take_sample();
    overfill(event);
    for (int i = 0; i < ASYM_RTXD_MAX_VAIN_WAKEUPS; i++) {
        assert_true(is_readable());
        assert_false(asym_rtxd_server_serve(server, 1));
        post(event);
    }
    asym_rtxd_server_serve(server, 1);
    for (int i = 0; i < 3; i++) {
        post(event);
        assert_false(is_readable());
    }
    go(fd);
    close(event);
}

TEST_WITH(an_overfilled_count_does_not_wake_asymd_while_it_is_deferred, set_up, tear_down)
{
    int event, fd = good_client(&event);
    asym_rtxd_server_set(server, 20, 1);
    take_sample();
    set_phase(false);
    overfill(event);
    assert_true(asym_rtxd_server_serve(server, 10));
    asym_rtxd_server_charge(server, 60 * ASYM_MSEC);
    take_sample();
    set_phase(true);
    post(event);
    assert_false(asym_rtxd_server_serve(server, 11));
    assert_true(asym_rtxd_server_due(server) > 11);
    asym_rtxd_server_serve(server, 12);
    for (int i = 0; i < 3; i++) {
        post(event);
        assert_false(is_readable());
    }
    go(fd);
    close(event);
}

TEST_WITH(a_throttled_client_without_cpu_time_stays_throttled, set_up, tear_down)
{
    const asym_usec paid = 600 * ASYM_SEC;
    int event, fd = good_client(&event);
    asym_rtxd_server_set(server, 20, 1);
    take_sample();
    set_phase(false);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_true(asym_rtxd_server_serve(server, 10));
    take_sample();
    for (int i = 0; i < ASYM_RTXD_MAX_VAIN_WAKEUPS; i++) {
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_false(asym_rtxd_server_serve(server, 11));
    }
    asym_rtxd_server_charge(server, 60 * ASYM_MSEC);
    /* Its second sample is due. */
    const asym_usec again = asym_rtxd_server_due(server);
    assert_true(again > 11);
    assert_false(asym_rtxd_server_serve(server, again));
    assert_int_equal(asym_rtxd_server_due(server), 0);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_false(is_readable());
    /* asymd has caused the next wakeup, and defers the answer. So the program has not woken it in vain. */
    asym_rtxd_server_housekeeping(server, again + 1);
    assert_true(is_readable());
    set_phase(true);
    assert_false(asym_rtxd_server_serve(server, again + 1));
    assert_true(asym_rtxd_server_due(server) > again + 1);
    set_phase(false);
    assert_false(asym_rtxd_server_serve(server, paid));
    assert_false(asym_rtxd_server_serve(server, paid));
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_true(is_readable());
    go(fd);
    close(event);
}

TEST_WITH(a_client_that_wakes_without_a_header_is_not_read_for_a_while, set_up, tear_down)
{
    const int i = come();
    serve(1);
    for (int k = 0; k < ASYM_RTXD_MAX_VAIN_WAKEUPS; k++) {
        assert_int_equal(eventfd_write(connections[i].event, 1), 0);
        assert_true(is_readable());
        assert_int_equal(serve(1), 0);
    }
    assert_int_equal(eventfd_write(connections[i].event, 1), 0);
    assert_false(is_readable());
    /* The server reads its header after the next housekeeping at the latest. */
    fill(connections[i].memfd, good_header(), getpid());
    asym_rtxd_server_housekeeping(server, 2);
    serve(2);
    assert_int_equal(asym_rtxd_server_count(server), 1);
}

TEST_WITH(a_client_with_real_phases_is_answered_as_often_as_before, set_up, tear_down)
{
    int event, fd = good_client(&event);
    take_sample();
    for (int i = 0; i < ASYM_RTXD_MAX_VAIN_WAKEUPS; i++) {
        assert_int_equal(eventfd_write(event, 1), 0);
        asym_rtxd_server_serve(server, 1);
    }
    asym_rtxd_server_housekeeping(server, 2);
    set_phase(false);
    assert_true(asym_rtxd_server_serve(server, 2));
    take_sample();
    for (int i = 0; i < ASYM_RTXD_MAX_VAIN_WAKEUPS; i++) {
        assert_int_equal(eventfd_write(event, 1), 0);
        assert_true(is_readable());
        asym_rtxd_server_serve(server, 2);
    }
    go(fd);
    close(event);
}

/* The server counts one user's connections of a second, and still considers another user's first connection. */
TEST_WITH(a_flood_of_connections_keeps_no_other_user_out, set_up, tear_down)
{
    for (int i = 0; i < ASYM_RTXD_MAX_TAKEN; i++) {
        const int k = come();
        asym_rtxd_server_serve(server, 1);
        assert_false(connections[k].closed);
        go(k);
        asym_rtxd_server_serve(server, 1);
    }
    const int mine = come(), first = come_as(getpid(), 12345), second = come_as(getpid(), 12345);
    serve(1);
    assert_true(connections[mine].closed && connections[mine].memfd < 0);
    assert_false(connections[first].closed);
    assert_true(connections[second].closed);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_BUSY], 2);
    asym_rtxd_server_housekeeping(server, 2);
    int event, good = good_client(&event);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    go(good);
    close(event);
}

/* A client of another process, which the test kills; the test shares its eventfd and its word. */
static pid_t process_elsewhere(void)
{
    fflush(NULL);
    pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        pause();
        _exit(0);
    }
    return pid;
}

/* *connection: its id. */
static pid_t client_elsewhere(int *event, uint64_t **ret_word, int *connection)
{
    const pid_t pid = process_elsewhere();
    *connection = come_and_fill(pid, getuid(), event, 1);
    assert_int_equal(serve(1), 1);
    /* The next descriptor takes its number. */
    *ret_word = word;
    mapped = NULL;
    assert_int_equal(asym_rtxd_server_count(server), 1);
    return pid;
}

TEST_WITH(only_a_client_that_has_spent_its_part_is_deferred, set_up, tear_down)
{
    uint64_t *its_word, *my_word;
    int its, mine, fd, status, connection;
    asym_rtxd_server_set(server, 20, 1);
    const pid_t pid = client_elsewhere(&its, &its_word, &connection);
    fd = good_client(&mine);
    my_word = word;
    take_sample();
    tell(its, its_word, false);
    assert_true(asym_rtxd_server_serve(server, 10));
    asym_rtxd_server_charge(server, 30 * ASYM_MSEC);
    /* Only second samples are due, the first for the earlier client. */
    assert_int_equal(asym_rtxd_server_due(server), 1 + ASYM_RTX_NOTIFY_MIN_DEFAULT);
    take_sample();
    tell(its, its_word, true);
    assert_false(asym_rtxd_server_serve(server, 2 * ASYM_MSEC));
    assert_true(asym_rtxd_server_due(server) > ASYM_SEC / 2);
    /* It does not wake the server now. The server answers another client, which alone pays for that. */
    tell(its, its_word, true);
    assert_false(is_readable());
    tell(mine, my_word, false);
    assert_true(asym_rtxd_server_serve(server, 3 * ASYM_MSEC));
    asym_rtxd_server_charge(server, ASYM_MSEC);
    take_sample();
    /* A phase that a full snapshot has contained needs no answer. */
    tell(its, its_word, false);
    const double rate = 0.01 * ASYM_RTXD_SHARE;
    const asym_usec then = (asym_usec)(60 * (double)ASYM_MSEC / rate);
    assert_true(asym_rtxd_server_serve(server, then));
    asym_rtxd_server_charge(server, ASYM_MSEC);
    take_sample();
    /* The server samples it as before, though it reports nothing for a while. */
    for (asym_usec i = 0; i < (asym_usec)2 * ASYM_RTXD_MAX_VAIN_WAKEUPS; i++) {
        assert_false(asym_rtxd_server_serve(server, then + (i + 1) * 2 * ASYM_MSEC));
        asym_rtxd_server_charge(server, 20);
        /* EPOLL_CTL_MOD wakes once. */
        if (i > 0)
            assert_int_equal(asym_rtxd_server_due(server), 0);
    }
    assert_false(is_readable());
    tell(its, its_word, true);
    assert_true(is_readable());
    assert_true(asym_rtxd_server_serve(server, then + ASYM_SEC / 2));
    asym_live_signal(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    go(fd);
    close(mine);
    close(its);
}

/* A reserve in debt gets half of what is earned, and the client that reports gets the other half: no more in all. */
TEST_WITH(a_debt_is_paid_from_what_is_earned, set_up, tear_down)
{
    int event;
    asym_rtxd_server_set(server, 20, 1);
    const int fd = good_client(&event);
    struct asym_rtxd_client *c = server->clients[0];
    const asym_usec from = 1000 * ASYM_SEC, to = from + ASYM_MSEC;
    const double earned = (double)ASYM_MSEC * server->config.cpu_budget / 100 * ASYM_RTXD_SHARE;
    server->settled = from;
    server->reserve = -earned;
    c->active = true;
    c->saved = 0;
    c->reported_at = from;
    asym_rtxd_settle(server, to);
    assert_true(server->reserve > -0.51 * earned && server->reserve < -0.49 * earned);
    assert_true(c->saved > 0.49 * earned && c->saved < 0.51 * earned);
    go(fd);
    close(event);
}

/* A full snapshot has its phase, and the client is deferred: its end is still reported, and nothing is due for it. */
TEST_WITH(a_client_that_ends_while_deferred_has_ended_its_serial_phase, set_up, tear_down)
{
    asym_rtxd_server_set(server, 20, 1);
    for (int killed = 0; killed < 2; killed++) {
        const asym_usec at = (asym_usec)(1 + killed * 100) * ASYM_SEC;
        int event, fd = -1, status, connection;
        pid_t pid = -1;
        uint64_t *its_word;
        asym_rtxd_server_housekeeping(server, at);
        if (killed) {
            pid = client_elsewhere(&event, &its_word, &connection);
        } else {
            fd = good_client_at(&event, at);
            its_word = word;
        }
        take_sample();
        tell(event, its_word, false);
        assert_true(asym_rtxd_server_serve(server, at));
        asym_rtxd_server_charge(server, 60 * ASYM_MSEC);
        take_sample();
        tell(event, its_word, true);
        assert_false(asym_rtxd_server_serve(server, at + 1));
        assert_true(asym_rtxd_server_due(server) > at + 1);
        take_sample();
        assert_false(is_readable());
        if (killed) {
            asym_live_signal(pid, SIGKILL);
            assert_int_equal(waitpid(pid, &status, 0), pid);
            go(connection);
        } else {
            go(fd);
        }
        assert_true(is_readable());
        assert_true(asym_rtxd_server_serve(server, at + 2));
        assert_int_equal(asym_rtxd_server_count(server), 0);
        assert_int_equal(asym_rtxd_server_due(server), 0);
        assert_false(is_readable());
        close(event);
    }
}

/* No present client pays for that answer: a client sampled in vain with it can still be answered. */
TEST_WITH(the_end_of_another_client_is_not_charged_to_a_served_one, set_up, tear_down)
{
    uint64_t *its_word, *my_word;
    int its, mine, status, its_connection;
    asym_rtxd_server_set(server, 20, 1);
    const pid_t pid = client_elsewhere(&its, &its_word, &its_connection);
    const int connection = good_client(&mine);
    my_word = word;
    take_sample();
    tell(mine, my_word, false);
    assert_true(asym_rtxd_server_serve(server, 10));
    take_sample();
    for (int serial = 0; serial < 2; serial++) {
        tell(its, its_word, serial);
        assert_true(asym_rtxd_server_serve(server, 11));
        take_sample();
    }
    asym_live_signal(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    go(its_connection);
    tell(mine, my_word, false); /* no change */
    assert_true(asym_rtxd_server_serve(server, 12));
    asym_rtxd_server_charge(server, 10 * ASYM_SEC);
    take_sample();
    tell(mine, my_word, true);
    assert_true(asym_rtxd_server_serve(server, 13));
    /* It pays for its own answer. */
    asym_rtxd_server_charge(server, 10 * ASYM_SEC);
    take_sample();
    tell(mine, my_word, false);
    assert_false(asym_rtxd_server_serve(server, 14));
    go(connection);
    close(mine);
    close(its);
}

/* A user other than root is admitted while a place is free. */
TEST_WITH(every_user_is_let_in, set_up, tear_down)
{
    static const uid_t users[] = {1000, 0, 65534, 1001};
    for (size_t i = 0; i < ASYM_LENGTH(users); i++) {
        int event;
        come_and_fill(getpid(), users[i], &event, 1);
        assert_int_equal(serve(1), 1);
        assert_int_equal(asym_rtxd_server_count(server), i + 1);
        close(event);
    }
    for (size_t i = 0; i < ASYM_RTXD_N_REFUSALS; i++)
        assert_int_equal(refused[i], 0);
}

TEST_WITH(several_connections_give_a_process_no_larger_part, set_up, tear_down)
{
    enum { MINE = 3 };
    uint64_t *its_word, *words[MINE];
    int its, events[MINE], fds[MINE], status, connection;
    asym_rtxd_server_set(server, 20, 1);
    const pid_t pid = client_elsewhere(&its, &its_word, &connection);
    for (int i = 0; i < MINE; i++) {
        fds[i] = good_client(&events[i]);
        words[i] = word;
        mapped = NULL;
    }
    take_sample();
    /* All have spent the same. It alone gets half of the CPU time for answers; each page of the others gets a sixth. */
    asym_usec now = 10;
    tell(its, its_word, false);
    for (int i = 0; i < MINE; i++)
        tell(events[i], words[i], false);
    assert_true(asym_rtxd_server_serve(server, now));
    asym_rtxd_server_charge(server, (MINE + 1) * 30 * ASYM_MSEC);
    take_sample();
    for (; now < 100 * ASYM_SEC; now += 500 * ASYM_MSEC) {
        for (int i = 0; i < MINE; i++)
            tell(events[i], words[i], true);
        tell(its, its_word, true);
        if (asym_rtxd_server_serve(server, now))
            break;
    }
    /* It came first and drew all saved time. Half of the earned time pays the debt in 4 s; a quarter would take 8 s. */
    assert_true(now > 3 * ASYM_SEC && now < 5 * ASYM_SEC);
    asym_live_signal(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < MINE; i++) {
        go(fds[i]);
        close(events[i]);
    }
    close(its);
}

/* The debt of ended clients remains: after some more ends the server reports no ends, but it admits new clients. */
TEST_WITH(a_program_that_connects_anew_in_serial_phases_is_answered_no_more, set_up, tear_down)
{
    int event, fd, program_reports = 0;
    asym_rtxd_server_set(server, 20, 1);
    for (int i = 0; i < 30; i++) {
        fd = come_and_fill(getpid(), getuid(), &event, 1);
        serve(1);
        asym_rtxd_server_charge(server, 8 * ASYM_MSEC);
        assert_int_equal(asym_rtxd_server_count(server), 1);
        take_sample();
        go(fd);
        close(event);
        program_reports += asym_rtxd_server_serve(server, 1);
        asym_rtxd_server_charge(server, 8 * ASYM_MSEC);
    }
    assert_in_range(program_reports, ASYM_RTXD_MAX_ENDS, ASYM_RTXD_MAX_ENDS + 2);
    asym_rtxd_server_housekeeping(server, 20 * ASYM_SEC);
    fd = good_client_at(&event, 20 * ASYM_SEC);
    take_sample();
    go(fd);
    close(event);
    assert_int_equal(serve(20 * ASYM_SEC), 1);
}

TEST_WITH(a_refresh_reads_only_programs_that_have_reported, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    int mine, other, fd = good_client(&mine);
    uint64_t *my_word = word;
    mapped = NULL;
    int other_fd = good_client(&other);
    uint64_t *other_word = word;
    take_sample();
    word = my_word;
    set_phase(false);
    tell(other, other_word, false);
    assert_true(asym_rtxd_server_serve(server, 1));
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL | ASYM_ASK_REFRESH, &program_reports), 2);
    /* Both belong to one process, in any order: one has a new report, the provider repeats the other's. */
    assert_int_equal(program_reports[0].threads[0].changed + program_reports[1].threads[0].changed, 1);
    assert_int_equal(program_reports[0].threads[0].master + program_reports[1].threads[0].master, 1);
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 2);
    assert_int_equal(program_reports[0].threads[0].master + program_reports[1].threads[0].master, 0);
    /* `changed` is relative to the last full snapshot, like the rest of a refreshed one. */
    assert_int_equal(program_reports[0].threads[0].changed + program_reports[1].threads[0].changed, 2);
    assert_int_equal(provider->ask(provider, 2, ASYM_ASK_FINAL | ASYM_ASK_REFRESH, &program_reports), 2);
    assert_int_equal(program_reports[0].threads[0].changed + program_reports[1].threads[0].changed, 0);
    assert_int_equal(program_reports[0].at, 1);
    go(fd);
    close(mine);
    go(other_fd);
    close(other);
}

/* One process has a few places; the server refuses its other connections, and admits other processes. */
TEST_WITH(a_process_has_few_places, set_up, tear_down)
{
    int taken = 0;
    for (int i = 0; i < ASYM_RTXD_MAX_TAKEN; i++) {
        const int k = come();
        asym_rtxd_server_serve(server, 1);
        taken += !connections[k].closed;
        assert_int_equal(connections[k].memfd >= 0, !connections[k].closed);
    }
    assert_int_equal(taken, ASYM_RTXD_MAX_OF_PID);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_FULL], ASYM_RTXD_MAX_TAKEN - ASYM_RTXD_MAX_OF_PID);
    const pid_t pid = process_elsewhere();
    asym_rtxd_server_housekeeping(server, 2);
    const int other = come_as(pid, 1);
    serve(2);
    assert_false(connections[other].closed);
    asym_process_signal(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

enum { PROCESSES = ASYM_RTXD_MAX_CLIENTS / ASYM_RTXD_MAX_OF_PID + 8 };

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

/* Returns how many of the n connections from first have a place. */
static int count_in(int first, int n)
{
    int in = 0;
    for (int i = first; i < first + n; i++)
        in += !connections[i % CONNECTIONS].closed;
    return in;
}

/* Each user connects once a second, so that the server considers all. */
static int come_once(const pid_t pids[PROCESSES], uid_t first_user, int n)
{
    const int begun = n_connections;
    for (int i = 0; i < n; i++) {
        come_as(pids[i / ASYM_RTXD_MAX_OF_PID], first_user + (uid_t)i);
        asym_rtxd_server_serve(server, 1);
    }
    asym_rtxd_server_housekeeping(server, 1);
    return begun;
}

TEST_WITH(four_users_that_take_all_they_can_keep_no_user_out, set_up, tear_down)
{
    enum { USERS = 4, EACH = ASYM_RTXD_MAX_OF_USER };
    pid_t pids[PROCESSES];
    int first[USERS];
    start_processes(pids);
    for (int u = 0; u < USERS; u++) {
        first[u] = n_connections;
        for (int i = 0; i < EACH; i++) {
            come_as(pids[u * EACH / ASYM_RTXD_MAX_OF_PID + i / ASYM_RTXD_MAX_OF_PID], 3001 + (uid_t)u);
            asym_rtxd_server_serve(server, 1);
        }
        asym_rtxd_server_housekeeping(server, 1);
    }
    for (int u = 0; u < USERS; u++)
        assert_in_range(count_in(first[u], EACH), (ASYM_RTXD_MAX_OF_USERS - 16) / USERS, EACH);
    /* A new user gets a place of the user with the most; so does root; so does another new user. */
    const pid_t mine = pids[PROCESSES - 1];
    for (uid_t uid = 5000; uid < 5020; uid++) {
        const int newcomer = come_as(uid % 2 ? mine : pids[PROCESSES - 2 - (int)(uid - 5000) / 8], uid);
        asym_rtxd_server_serve(server, 1);
        if (uid < 5006)
            assert_false(connections[newcomer].closed);
    }
    const int root = come_as(pids[PROCESSES - 5], 0);
    asym_rtxd_server_serve(server, 1);
    assert_false(connections[root].closed);
    assert_true(refused[ASYM_RTXD_REFUSED_YIELDS] > 0);
    end_processes(pids);
}

/* With as many users as places for users, the server refuses a new user, but not root. */
TEST_WITH(only_as_many_users_keep_one_out_and_none_keeps_out_root, set_up, tear_down)
{
    pid_t pids[PROCESSES];
    start_processes(pids);
    const int begun = come_once(pids, 10000, ASYM_RTXD_MAX_OF_USERS);
    assert_int_equal(count_in(begun, ASYM_RTXD_MAX_OF_USERS), ASYM_RTXD_MAX_OF_USERS);
    const int newcomer = come_as(pids[PROCESSES - 1], 20000);
    asym_rtxd_server_serve(server, 1);
    assert_true(connections[newcomer].closed);
    for (int i = 0; i < ASYM_RTXD_MAX_CLIENTS - ASYM_RTXD_MAX_OF_USERS + 4; i++) {
        const int root = come_as(pids[PROCESSES - 2 - i / ASYM_RTXD_MAX_OF_PID], 0);
        asym_rtxd_server_serve(server, 1);
        assert_false(connections[root].closed);
    }
    assert_int_equal(refused[ASYM_RTXD_REFUSED_YIELDS], 4);
    end_processes(pids);
}

/* The reports of the end and of the new connection come together. */
TEST_WITH(a_place_that_is_free_again_is_taken_from_no_client, set_up, tear_down)
{
    enum { OF_ROOT = ASYM_RTXD_MAX_CLIENTS - ASYM_RTXD_MAX_OF_USERS };
    pid_t pids[PROCESSES];
    int of_root = -1;
    start_processes(pids);
    come_once(pids, 10000, ASYM_RTXD_MAX_OF_USERS);
    for (int i = 0; i < OF_ROOT; i++) {
        of_root = come_as(pids[PROCESSES - 1 - i / ASYM_RTXD_MAX_OF_PID], 0);
        asym_rtxd_server_serve(server, 1);
    }
    go(of_root);
    const int next = come_as(pids[PROCESSES - 1 - OF_ROOT / ASYM_RTXD_MAX_OF_PID], 0);
    asym_rtxd_server_serve(server, 1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_YIELDS], 0);
    assert_false(connections[next].closed);
    end_processes(pids);
}

/* Without SO_PEERPIDFD the process with that pid must belong to the user that has connected. */
TEST_WITH(a_number_that_is_another_users_by_now_is_refused, set_up, tear_down)
{
    struct fake_connection c[3];
    fake_acceptor_come(&c[0], getpid(), geteuid() + 1, false);
    fake_acceptor_come(&c[1], getpid(), geteuid(), false);
    fake_acceptor_come(&c[2], getpid(), geteuid() + 1, true);
    serve(1);
    assert_true(c[0].closed && c[0].memfd < 0);
    assert_false(c[1].closed || c[2].closed);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_OTHER], 1);
    for (size_t i = 0; i < ASYM_LENGTH(c); i++)
        fake_connection_done(&c[i]);
}

static pid_t start_not_dumpable(uid_t uid)
{
    const pid_t parent = getpid();
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if ((uid != geteuid() && setresuid(uid, uid, uid) < 0) || prctl(PR_SET_DUMPABLE, 0) < 0)
            _exit(1);
        asym_process_end_with(parent);
        close(ready[1]);
        pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    return pid;
}

/* Most files in /proc/PID of such a process belong to root. */
TEST_WITH(a_process_that_is_not_dumpable_is_its_users, set_up, tear_down)
{
    const uid_t uid = geteuid() == 0 ? 2001 : geteuid();
    const pid_t pid = start_not_dumpable(uid);
    struct fake_connection c[2];
    fake_acceptor_come(&c[0], pid, uid, false);
    fake_acceptor_come(&c[1], pid, 0, false);
    serve(1);
    assert_false(c[0].closed);
    assert_true(c[1].closed);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_OTHER], 1);
    for (size_t i = 0; i < ASYM_LENGTH(c); i++)
        fake_connection_done(&c[i]);
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
    waitpid(pid, NULL, 0);
}

TEST_WITH(without_descriptors_a_program_is_refused, set_up, tear_down)
{
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
        assert_int_equal(refused[ASYM_RTXD_REFUSED_NO_FD], room + 1);
        assert_true(connections[k].closed);
        assert_int_equal(count_fds(), before);
    }
    int event, good = good_client(&event);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    go(good);
    close(event);
}

/* asymd has all descriptors for the program, and cannot pass them on. */
TEST_WITH(a_program_is_refused_as_the_helper_fails_the_order, set_up, tear_down)
{
    const int before = count_fds();
    fake_acceptor_clog_files(true);
    const int k = come();
    serve(1);
    fake_acceptor_clog_files(false);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_BUSY], 1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_NO_FD], 0);
    assert_true(connections[k].closed);
    assert_int_equal(count_fds(), before);
    /* The end of the helper is not the program's fault. */
    come();
    fake_acceptor_end();
    serve(1);
    assert_int_equal(lost, 1);
    for (size_t i = 0; i < ASYM_RTXD_N_REFUSALS; i++)
        assert_int_equal(refused[i], i == ASYM_RTXD_REFUSED_BUSY);
}

/* Housekeeping pings the helper. Without answers it kills the helper, which ends all connections. */
TEST_WITH(a_helper_that_hangs_is_replaced, set_up, tear_down)
{
    asym_usec now = ASYM_SEC;
    int event, fd = good_client_at(&event, now);
    take_sample();
    for (int i = 0; i < 10; i++)
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 0);
    assert_int_equal(asym_rtxd_server_helper_use(server).cpu, 7);
    fake_acceptor_hang(false);
    for (int i = 0; i < ASYM_RTXD_MAX_SILENT; i++)
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 0);
    asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 1);
    assert_int_equal(fake_acceptor_started(), 2);
    assert_int_equal(lost, 1);
    assert_int_equal(asym_rtxd_server_count(server), 0);
    /* The next helper closes its eventfd. */
    assert_int_equal(fake_acceptor_given(), 1);
    assert_true(asym_rtxd_server_serve(server, now));
    go(fd);
    close(event);
    fd = good_client_at(&event, now);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    go(fd);
    close(event);
}

/* A helper that waits for a CPU keeps its connections for longer. */
TEST_WITH(a_late_helper_that_is_runnable_is_not_replaced_at_once, set_up, tear_down)
{
    asym_usec now = ASYM_SEC;
    int event, fd = good_client_at(&event, now);
    take_sample();
    fake_acceptor_hang(true);
    for (int i = 0; i < ASYM_RTXD_MAX_SILENT_RUNNABLE; i++)
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 0);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 1);
    assert_int_equal(asym_rtxd_server_count(server), 0);
    go(fd);
    close(event);
}

/* An answer to another ping does not show that the helper still reads its orders. */
TEST_WITH(only_an_answer_to_the_last_ping_keeps_the_helper, set_up, tear_down)
{
    asym_usec now = ASYM_SEC;
    fake_acceptor_hang(false);
    for (int i = 0; i < ASYM_RTXD_MAX_SILENT; i++)
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    /* The answer to the last ping is as late as the limit allows. */
    fake_acceptor_answer(fake_acceptor_ping());
    asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 0);
    for (int i = 1; i <= ASYM_RTXD_MAX_SILENT; i++) {
        fake_acceptor_answer(fake_acceptor_ping() - 1);
        fake_acceptor_answer(fake_acceptor_ping() + 1);
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
        assert_int_equal(fake_acceptor_killed(), i == ASYM_RTXD_MAX_SILENT);
    }
}

/* Returns the number of entries for this user in the socket's ACL; none may let it connect. */
static size_t count_entries(uid_t uid)
{
    struct {
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entries[64];
    } acl;
    size_t n = 0;
    const ssize_t size = getxattr(path, "system.posix_acl_access", &acl, sizeof acl);
    for (size_t i = 0; sizeof acl.header + (i + 1) * sizeof acl.entries[0] <= (size_t)ASYM_MAX(size, 0); i++) {
        if (le16toh(acl.entries[i].e_tag) != ACL_USER || le32toh(acl.entries[i].e_id) != uid)
            continue;
        assert_int_equal(acl.entries[i].e_perm, 0);
        n++;
    }
    return n;
}

static void report_standing(enum asym_rtxd_report_kind kind, uid_t uid)
{
    const struct asym_rtxd_report report = {.kind = kind, .uid = uid};
    fake_acceptor_report(&report, sizeof report);
    serve(ASYM_SEC);
}

/* The kernel refuses the user's connections until the helper reports FREED, or the server binds a new socket. */
TEST_WITH(a_user_whose_closes_hang_may_not_connect, set_up, tear_down)
{
    report_standing(ASYM_RTXD_REPORT_HUNG, 4321);
    report_standing(ASYM_RTXD_REPORT_HUNG, 4321);
    report_standing(ASYM_RTXD_REPORT_HUNG, 4322);
    report_standing(ASYM_RTXD_REPORT_HUNG, 0);
    assert_int_equal(count_entries(4321), 1);
    assert_int_equal(count_entries(4322), 1);
    assert_int_equal(count_entries(0), 0);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_HUNG], 4);
    report_standing(ASYM_RTXD_REPORT_FREED, 4321);
    assert_int_equal(count_entries(4321), 0);
    assert_int_equal(count_entries(4322), 1);
    fake_acceptor_end();
    serve(ASYM_SEC);
    asym_rtxd_server_housekeeping(server, 100 * ASYM_SEC);
    assert_int_equal(fake_acceptor_started(), 2);
    assert_int_equal(count_entries(4322), 0);
    report_standing(ASYM_RTXD_REPORT_HUNG, 4323);
    assert_int_equal(count_entries(4322), 0);
    assert_int_equal(count_entries(4323), 1);
}

/* The later ACLs do not name that user. */
TEST_WITH(a_user_that_the_acl_cannot_name_spoils_no_later_acl, set_up, tear_down)
{
    char away[112];
    snprintf(away, sizeof away, "%s-away", path);
    assert_int_equal(rename(path, away), 0);
    report_standing(ASYM_RTXD_REPORT_HUNG, 4321);
    assert_int_equal(rename(away, path), 0);
    /* One report is one refusal. */
    assert_int_equal(refused[ASYM_RTXD_REFUSED_HUNG], 0);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_NO_ACL], 1);
    report_standing(ASYM_RTXD_REPORT_HUNG, 4322);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_HUNG], 1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_NO_ACL], 1);
    assert_int_equal(count_entries(4321), 0);
    assert_int_equal(count_entries(4322), 1);
    report_standing(ASYM_RTXD_REPORT_FREED, 4321);
    assert_int_equal(count_entries(4322), 1);
}

TEST_WITH(a_refused_program_without_a_pid_is_named_by_its_user, set_up, tear_down)
{
    char name[ASYM_RTXD_REFUSED_NAME];
    assert_string_equal(asym_rtxd_refused_name(12, 1000, name), "process 12 of user 1000");
    assert_string_equal(asym_rtxd_refused_name(0, 1000, name), "a program of user 1000");
    assert_string_equal(asym_rtxd_refused_name(INT32_MAX, UINT32_MAX - 1, name),
                        "process 2147483647 of user 4294967294");
}

TEST_WITH(a_helper_that_ends_is_replaced_ever_more_slowly, set_up, tear_down)
{
    asym_usec now = 100 * ASYM_SEC;
    unsigned started = 1;
    asym_usec waited = 0, at = now;
    asym_rtxd_server_housekeeping(server, now);
    asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    for (int i = 0; i < 8; i++) {
        fake_acceptor_end();
        asym_rtxd_server_serve(server, now);
        at = now;
        while (fake_acceptor_started() == started)
            asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
        started++;
        if (i > 1)
            assert_true(now - at >= waited && now - at <= ASYM_RTXD_RETRY_MAX);
        waited = now - at;
    }
    assert_int_equal(waited, ASYM_RTXD_RETRY_MAX);
    assert_int_equal(lost, 8);
    /* The server does not try all the time to start a helper that does not start. */
    fake_acceptor_end();
    fake_acceptor_fail(-EBUSY);
    for (int i = 0; i < 600; i++)
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_in_range(lost, 8 + 1 + 9, 8 + 1 + 11);
    fake_acceptor_fail(0);
    for (int i = 0; i < 61; i++)
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    int event, fd = good_client_at(&event, now);
    go(fd);
    close(event);
}

/* The helper accepts no order: the eventfd stays here until a helper does. The ping that is not answered ends the helper. */
TEST_WITH(a_helper_that_takes_no_orders_is_replaced, set_up, tear_down)
{
    asym_usec now = 10 * ASYM_SEC;
    int event, fd = good_client_at(&event, now);
    asym_rtxd_server_housekeeping(server, now);
    serve(now);
    fake_acceptor_clog(true);
    go(fd);
    serve(now);
    close(event);
    for (int i = 0; i < ASYM_RTXD_MAX_SILENT; i++)
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 0);
    assert_int_equal(fake_acceptor_given(), 0);
    asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_int_equal(fake_acceptor_killed(), 1);
    assert_int_equal(fake_acceptor_started(), 2);
    assert_int_equal(fake_acceptor_given(), 1);
}

/* asymd has to close more connections than the channel holds orders. The helper gets the rest of the orders a little later. */
TEST_WITH(a_helper_that_catches_up_on_its_orders_stays, set_up, tear_down)
{
    asym_usec now = 10 * ASYM_SEC;
    int event, other_event, fd = good_client_at(&event, now), silent = come(),
                            other = good_client_at(&other_event, now);
    asym_rtxd_server_housekeeping(server, now);
    serve(now);
    fake_acceptor_clog(true);
    fake_acceptor_breach(&connections[fd]);
    serve(now);
    asym_rtxd_server_housekeeping(server, now += ASYM_RTXD_FILL_WITHIN);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_SILENT], 1);
    assert_false(connections[fd].closed || connections[silent].closed);
    fake_acceptor_clog(false);
    for (int i = 0; i < 2 * ASYM_RTXD_MAX_SILENT; i++) {
        asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
        serve(now);
    }
    assert_true(connections[fd].closed && connections[silent].closed);
    assert_false(connections[other].closed);
    assert_int_equal(fake_acceptor_given(), 2);
    assert_int_equal(fake_acceptor_killed(), 0);
    go(fd);
    go(silent);
    go(other);
    close(event);
    close(other_event);
}

TEST_WITH(a_helper_that_does_not_get_the_socket_is_lost_for_that_reason, set_up, tear_down)
{
    char expected[256];
    fake_acceptor_end();
    serve(ASYM_SEC);
    fake_acceptor_clog_files(true);
    asym_rtxd_server_housekeeping(server, 100 * ASYM_SEC);
    assert_int_equal(fake_acceptor_started(), 2);
    snprintf(expected, sizeof expected, "%s: %s", path, strerror(EAGAIN));
    assert_string_equal(lost_why, expected);
    fake_acceptor_clog_files(false);
    asym_rtxd_server_housekeeping(server, 200 * ASYM_SEC);
    int event, fd = good_client_at(&event, 200 * ASYM_SEC);
    go(fd);
    close(event);
}

/* The helper knows the user of an eventfd by the connection, so it must get the eventfd before the order to close. */
TEST_WITH(an_eventfd_goes_to_the_helper_before_its_connection_ends, set_up, tear_down)
{
    asym_usec now = 10 * ASYM_SEC;
    int events[2], first = good_client_at(&events[0], now), second = good_client_at(&events[1], now);
    fake_acceptor_clog_files(true);
    fake_acceptor_breach(&connections[first]);
    fake_acceptor_breach(&connections[second]);
    serve(now);
    asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_false(connections[first].closed || connections[second].closed);
    fake_acceptor_clog_files(false);
    asym_rtxd_server_housekeeping(server, now += ASYM_SEC);
    assert_true(connections[first].closed && connections[second].closed);
    assert_int_equal(connections[first].held, 1);
    assert_int_equal(connections[second].held, 1);
    assert_int_equal(fake_acceptor_given(), 2);
    close(events[0]);
    close(events[1]);
}

/* The ids of a helper mean other connections to the next one. */
TEST_WITH(an_eventfd_of_an_earlier_helper_has_no_connection, set_up, tear_down)
{
    asym_usec now = 10 * ASYM_SEC;
    int event, fd = good_client_at(&event, now);
    fake_acceptor_clog(true);
    fake_acceptor_breach(&connections[fd]);
    serve(now);
    fake_acceptor_end();
    serve(now);
    asym_rtxd_server_housekeeping(server, now += ASYM_RTXD_RETRY_MAX);
    assert_int_equal(fake_acceptor_started(), 2);
    assert_int_equal(fake_acceptor_given(), 1);
    assert_int_equal(connections[fd].held, 0);
    assert_false(connections[fd].closed);
    close(event);
}

/* A wrong report harms only the helper's own connections. */
TEST_WITH(reports_that_make_no_sense_end_the_helper, set_up, tear_down)
{
    int event, fd = good_client(&event);
    const struct asym_rtxd_report rows[] = {
        {.kind = 0},
        {.kind = 99},
        {.kind = ASYM_RTXD_REPORT_CAME, .id = 0, .pid = getpid()},
        {.kind = ASYM_RTXD_REPORT_CAME, .id = 77, .pid = 0},
        {.kind = ASYM_RTXD_REPORT_CAME, .id = 77, .pid = -1},
    };
    asym_usec now = 1000 * ASYM_SEC;
    take_sample();
    for (size_t i = 0; i < ASYM_LENGTH(rows) + 3; i++) {
        asym_rtxd_server_housekeeping(server, now += 100 * ASYM_SEC);
        asym_rtxd_server_housekeeping(server, now += 100 * ASYM_SEC);
        struct asym_rtxd_report again = {.kind = ASYM_RTXD_REPORT_CAME, .id = connections[fd].id, .pid = getpid()};
        if (i < ASYM_LENGTH(rows)) {
            fake_acceptor_report(&rows[i], sizeof rows[i]);
        } else if (i == ASYM_LENGTH(rows)) {
            fake_acceptor_report("short", 5);
        } else if (i == ASYM_LENGTH(rows) + 1) {
            char longer[sizeof(struct asym_rtxd_report) + 1] = {ASYM_RTXD_REPORT_GONE};
            fake_acceptor_report(longer, sizeof longer);
        } else {
            /* An id that exists already. */
            go(fd);
            close(event);
            fd = good_client_at(&event, now);
            again.id = connections[fd].id;
            fake_acceptor_report(&again, sizeof again);
        }
        serve(now);
        assert_int_equal(fake_acceptor_killed(), i + 1);
        assert_int_equal(asym_rtxd_server_count(server), 0);
    }
    close(event);
    /* Unknown ids change nothing. */
    asym_rtxd_server_housekeeping(server, now += 100 * ASYM_SEC);
    for (uint32_t kind = ASYM_RTXD_REPORT_GONE; kind <= ASYM_RTXD_REPORT_ALIVE; kind++) {
        const struct asym_rtxd_report none = {.kind = kind, .id = 4000000000, .pid = 1, .uid = 5};
        fake_acceptor_report(&none, sizeof none);
    }
    serve(now);
    assert_int_equal(fake_acceptor_killed(), ASYM_LENGTH(rows) + 3);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_HUNG], 1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_NAMESPACE], 1);
}

/* The page changes during the read. Its memory cannot shrink, and a hole reads as silent slots. */
TEST_WITH(a_page_cannot_be_taken_away, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    int event, i = good_client(&event);
    const int page = connections[i].memfd;
    assert_int_equal(ftruncate(page, 0), -1);
    assert_int_equal(ftruncate(page, 1 << 24), -1);
    assert_int_equal(fcntl(page, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
    assert_int_equal(program_reports->n, 1);
    assert_int_equal(fallocate(page, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 18), 0);
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
    assert_int_equal(program_reports->n, 0);
    /* The server reads no more slots than the first header had, whatever the header says now. */
    ((struct asym_rtx_header *)(void *)mapped)->n_used = UINT32_MAX;
    ((struct asym_rtx_header *)(void *)mapped)->n_slots = UINT32_MAX;
    for (int k = 0; k < 3; k++)
        ((struct asym_rtx_slot *)(void *)(mapped + 64))[k] = (struct asym_rtx_slot){.word = 1, .tid = 10 + k};
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
    assert_int_equal(program_reports->n, 2);
    memset(mapped, 0, 4096);
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
    assert_int_equal(program_reports->n, 0);
    go(i);
    close(event);
}

/* More slots than the first pread(2) covers. */
TEST_WITH(a_page_of_many_slots_is_read_to_its_end, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    const int i = come();
    serve(1);
    struct asym_rtx_header h = good_header();
    h.n_slots = ASYM_RTXD_MAX_SLOTS;
    h.n_used = 1;
    fill(connections[i].memfd, h, getpid());
    assert_int_equal(eventfd_write(connections[i].event, 1), 0);
    serve(1);
    static const size_t used[] = {1, 63, 64, 65, 500, ASYM_RTXD_MAX_SLOTS, 100};
    for (size_t k = 0; k < ASYM_LENGTH(used); k++) {
        for (size_t n = 0; n < used[k]; n++) {
            const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING, .tid = (int32_t)n + 1};
            assert_int_equal(pwrite(connections[i].memfd, &slot, sizeof slot, (off_t)(64 + 64 * n)), sizeof slot);
        }
        ((struct asym_rtx_header *)(void *)mapped)->n_used = (uint32_t)used[k];
        assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
        assert_int_equal(program_reports->n, used[k]);
        assert_int_equal(program_reports->threads[used[k] - 1].tid, used[k]);
    }
    go(i);
}

/* Bytes that the server has asked pread(2) for: the linker puts this function in its place (--wrap, tests/CMakeLists.txt). */
static size_t bytes_requested;

ssize_t __real_pread(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t offset)
{
    bytes_requested += size;
    return __real_pread(fd, buf, size, offset);
}

/* A page may have its slots at any offset. The server does not read what is between the header and a far slot. */
TEST_WITH(a_page_with_a_far_slot_costs_no_more, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    static const uint32_t offsets[] = {64, 128, 4096, 4160, 65536, ASYM_RTXD_MAX_SLOTS * 64};
    for (size_t k = 0; k < ASYM_LENGTH(offsets); k++) {
        const int i = come();
        const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING, .tid = (int32_t)k + 1};
        struct asym_rtx_header h = good_header();
        serve(1);
        h.header_size = offsets[k];
        h.n_slots = h.n_used = 1;
        assert_int_equal(pwrite(connections[i].memfd, &h, sizeof h, 0), sizeof h);
        assert_int_equal(pwrite(connections[i].memfd, &slot, sizeof slot, offsets[k]), sizeof slot);
        assert_int_equal(eventfd_write(connections[i].event, 1), 0);
        serve(1);
        bytes_requested = 0;
        assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
        assert_int_equal(program_reports->n, 1);
        assert_int_equal(program_reports->threads[0].tid, slot.tid);
        assert_in_range(bytes_requested, sizeof h + sizeof slot, 4096 + sizeof slot);
        go(i);
        serve(1);
    }
}

TEST_WITH(a_path_that_is_too_long_is_reported, set_up, tear_down)
{
    char deep[300];
    struct asym_error err = {""};
    struct asym_rtxd_server *none = NULL;
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    const struct asym_rtxd_server_config config = {.dir = deep, .link = fake_acceptor_new()};
    assert_int_equal(asym_rtxd_server_open(&config, &none, &err), -ENAMETOOLONG);
    assert_non_null(strstr(err.text, "too long"));
    assert_null(none);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return test_run(NULL, NULL);
}
