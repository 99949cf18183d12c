/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server against programs that break every rule. The test creates the files, calls the server directly and sets the time.
 * It plays several users: what the linker puts in the place of other functions (--wrap, tests/CMakeLists.txt) makes their files
 * and processes theirs. attack.rtx has real ones.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <asym/rtx.h>

#include "linux/rtx/rtx-server-internal.h"
#include "linux/rtx/rtx-server.h"
#include "linux/sys/thread.h"
#include "support/limit-files.h"
#include "support/process.h"
#include "support/rtx-raw.h"
#include "support/test.h"

static char dir[64], path[96];
static struct asym_rtxd_server *server;
static size_t refused[ASYM_RTXD_N_REFUSALS];

/* Content of the next page. */
static uint32_t notify_min;

static void on_refused(void *ctx, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    assert_true(pid > 0);
    ((size_t *)ctx)[refusal]++;
}

enum { PAGES = 1024, MAPPED = 4096, ELSEWHERE = 5000000 /* no process has such a number */ };

static struct page {
    int fd; /* -1: gone */
    char name[64], *map;
    uid_t uid;
    uint64_t *word;
} pages[PAGES];
static int n_pages;

/* Those of the other users that the test plays are beside those that the server makes. */
static const char *home_of(uid_t uid, char ret[160])
{
    if (uid == geteuid())
        asym_raw_home(path, uid, ret, 160);
    else
        snprintf(ret, 160, "%s/%u", path, (unsigned)uid + 1000);
    return ret;
}

static const char *path_of(const struct page *p, char ret[256])
{
    char home[160];
    snprintf(ret, 256, "%s/%s", home_of(p->uid, home), p->name);
    return ret;
}

/* The linker's functions. */

static bool is_honest; /* processes and files have the users that they have */
static pid_t has_ended, acts_for_root;

WRAPPED(int, asym_rtxd_open_page, const struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    char name[64];
    if (c->uid == geteuid())
        return __real_asym_rtxd_open_page(s, c);
    snprintf(name, sizeof name, ASYM_RTX_FILE "%d.%" PRIu64, (int)c->pid, c->number);
    const int fd = openat(c->dir, name, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

WRAPPED(int, asym_rtxd_open_process, pid_t pid)
{
    return __real_asym_rtxd_open_process(pid < ELSEWHERE ? pid : getpid());
}

WRAPPED(bool, asym_rtxd_is_of_user, const struct asym_rtxd_client *c)
{
    return c->pid != acts_for_root && (!is_honest || __real_asym_rtxd_is_of_user(c));
}

WRAPPED(int, kill, pid_t pid, int sig)
{
    if (pid >= ELSEWHERE && pid != has_ended)
        return 0;
    return __real_kill(pid, sig);
}

WRAPPED(int, asym_thread_get_stat, int32_t tgid, int32_t tid, struct asym_stat *ret)
{
    if (tgid < ELSEWHERE)
        return __real_asym_thread_get_stat(tgid, tid, ret);
    *ret = (struct asym_stat){.start = 1};
    return 0;
}

/* Bytes that the server has asked pread(2) for. */
static size_t bytes_requested;

WRAPPED(ssize_t, pread, int fd, void *buf, size_t size, off_t offset)
{
    bytes_requested += size;
    return __real_pread(fd, buf, size, offset);
}

/* This process has both ends of each connection, which are more than the usual 1,024. asymd raises its limit, too. */
static int set_up(void **state)
{
    limit_descriptors(RLIM_INFINITY);
    memset(refused, 0, sizeof refused);
    for (size_t i = 0; i < PAGES; i++)
        pages[i].fd = -1;
    n_pages = 0;
    notify_min = 0;
    is_honest = false;
    has_ended = acts_for_root = 0;
    snprintf(dir, sizeof dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/rtx", dir);
    const struct asym_rtxd_server_config config = {
        .dir = dir, .spin_notify = 20, .refused = on_refused, .ctx = refused};
    return asym_rtxd_server_open(&config, &server, NULL);
}

/* The program of a page ends. */
static void go(int i)
{
    struct page *p = &pages[i];
    char name[256];
    if (p->fd < 0)
        return;
    munmap(p->map, MAPPED);
    close(p->fd);
    p->fd = -1;
    unlink(path_of(p, name));
}

static int tear_down(void **state)
{
    for (int i = 0; i < PAGES; i++)
        go(i);
    asym_rtxd_server_close(server);
    assert_int_equal(access(path, F_OK), -1);
    return rmdir(dir);
}

static bool serve_once(asym_usec now)
{
    asym_rtxd_server_receive(server, now);
    return asym_rtxd_server_serve(server, now);
}

static int serve(asym_usec now)
{
    int program_reports = 0;
    for (int i = 0; i < 10; i++)
        program_reports += serve_once(now);
    return program_reports;
}

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

/* The server makes no directory for another user in this file system. */
static void make_user(uid_t uid)
{
    char name[160];
    for (size_t i = 0; i < server->n_users; i++)
        if (server->users[i].uid == uid)
            return;
    struct asym_rtxd_user *user = &server->users[server->n_users++];
    assert_int_equal(mkdir(home_of(uid, name), 0700), 0);
    *user = (struct asym_rtxd_user){.uid = uid, .dir = open(name, O_PATH | O_CLOEXEC)};
    user->watch = asym_rtxd_watch(server, user->dir, IN_ATTRIB);
    assert_true(user->dir >= 0 && user->watch >= 0);
}

/* Create a page of this process and user, without an announcement. Returns its number. */
static int make_page(pid_t pid, uid_t uid, struct asym_rtx_header header, off_t size)
{
    const int i = n_pages++ % PAGES;
    const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING | ASYM_RTX_MASTER, .tid = pid};
    struct page *p = &pages[i];
    char name[256];
    go(i);
    make_user(uid);
    p->uid = uid;
    snprintf(p->name, sizeof p->name, ASYM_RTX_FILE "%d.%d", (int)pid, n_pages);
    p->fd = open(path_of(p, name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(p->fd >= 0);
    assert_int_equal(ftruncate(p->fd, size), 0);
    assert_int_equal(pwrite(p->fd, &slot, sizeof slot, sizeof header), sizeof slot);
    assert_int_equal(pwrite(p->fd, &header, sizeof header, 0), sizeof header);
    p->map = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    assert_true(p->map != MAP_FAILED);
    p->word = (uint64_t *)(void *)(p->map + sizeof header);
    return i;
}

static void announce(int i)
{
    assert_int_equal(fchmod(pages[i].fd, 0644), 0);
}

static int come_as(pid_t pid, uid_t uid)
{
    const int i = make_page(pid, uid, good_header(), MAPPED);
    announce(i);
    return i;
}

static int come(void)
{
    return come_as(getpid(), geteuid());
}

static bool is_in(int i)
{
    char name[64];
    for (size_t k = 0; k < server->n; k++) {
        const struct asym_rtxd_client *c = server->clients[k];
        snprintf(name, sizeof name, ASYM_RTX_FILE "%d.%" PRIu64, (int)c->pid, c->number);
        if (!c->ended && c->uid == pages[i].uid && strcmp(name, pages[i].name) == 0)
            return true;
    }
    return false;
}

static void wake(int i)
{
    static const uint32_t any = 1;
    const off_t at = offsetof(struct asym_rtx_header, rung);
    assert_int_equal(pwrite(pages[i].fd, &any, sizeof any, at), sizeof any);
}

static void set_phase(int i, bool serial)
{
    const uint64_t w = ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | (serial ? ASYM_RTX_SERIAL : 0);
    __atomic_store_n(pages[i].word, w, __ATOMIC_RELAXED);
}

static void tell(int i, bool serial)
{
    set_phase(i, serial);
    wake(i);
}

/* Take all reports into a snapshot, as a cycle does. */
static void take_sample(void)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports);
}

/* A client in a serial phase, which the server has seen. */
static int client_at(pid_t pid, asym_usec now)
{
    const int i = come_as(pid, geteuid());
    wake(i);
    assert_true(serve(now) > 0);
    return i;
}

static int good_client(void)
{
    return client_at(getpid(), 1);
}

static int client_elsewhere(void)
{
    return client_at(ELSEWHERE, 1);
}

static bool is_readable(void)
{
    struct pollfd p = {.fd = asym_rtxd_server_fd(server), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* The client wakes asymd as often as it may. asymd hears it each time, and nothing has changed. */
static void wake_in_vain(int i, asym_usec now)
{
    for (int k = 0; k < ASYM_RTXD_MAX_VAIN_WAKEUPS; k++) {
        wake(i);
        assert_true(is_readable());
        assert_false(serve_once(now));
    }
}

/* The server looks at the announced file. */
static void announce_and_serve(int i, asym_usec now)
{
    announce(i);
    serve(now);
}

/* A name of a page of this process. */
static const char *name_of(unsigned number)
{
    static char name[64];
    snprintf(name, sizeof name, ASYM_RTX_FILE "%d.%u", (int)getpid(), number);
    return name;
}

static void rename_page(const char *old, const char *new)
{
    char home[160], from[256], to[256];
    home_of(geteuid(), home);
    snprintf(from, sizeof from, "%s/%s", home, old);
    snprintf(to, sizeof to, "%s/%s", home, new);
    assert_int_equal(rename(from, to), 0);
}

TEST_WITH(a_good_client_is_served_until_it_ends, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_stat stat;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    int before = asym_process_descriptors(getpid()), i = good_client();
    assert_int_equal(asym_rtxd_server_count(server), 1);
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
    assert_int_equal(asym_thread_get_stat(getpid(), getpid(), &stat), 0);
    assert_int_equal(program_reports->pid, getpid());
    assert_int_equal(program_reports->start, stat.start);
    assert_int_equal(program_reports->n, 1);
    assert_int_equal(program_reports->threads[0].tid, getpid());
    assert_true(program_reports->threads[0].master);
    for (int k = 0; k < 3; k++) {
        set_phase(i, k % 2);
        assert_int_equal(serve(1), 0);
        wake(i);
        assert_true(serve_once(1));
        take_sample();
        assert_int_equal(serve(1), 0);
    }
    /* A change soon after does not wake, but the second sample sees it; once. */
    tell(i, true);
    assert_true(serve_once(1));
    take_sample();
    set_phase(i, false);
    assert_int_equal(serve(ASYM_RTX_NOTIFY_MIN_DEFAULT), 0);
    assert_true(serve_once(1 + ASYM_RTX_NOTIFY_MIN_DEFAULT));
    take_sample();
    set_phase(i, true);
    assert_false(serve_once(ASYM_SEC));
    take_sample();
    /* A program that ends in a serial phase ends the phase. */
    go(i);
    assert_int_equal(serve(ASYM_SEC), 1);
    assert_int_equal(asym_rtxd_server_count(server), 0);
    assert_int_equal(serve(ASYM_SEC), 0);
    assert_int_equal(asym_process_descriptors(getpid()), before);
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
        const int p = client_at(getpid(), at);
        take_sample();
        assert_int_equal(asym_rtxd_server_due(server), again);
        set_phase(p, false);
        assert_int_equal(serve(again - 1), 0);
        assert_true(serve_once(again));
        take_sample();
        /* Once, however short notify_min is; the server ignores later changes of the header. */
        assert_int_equal(asym_rtxd_server_due(server), 0);
        ((struct asym_rtx_header *)(void *)pages[p].map)->notify_min_usec = 7;
        set_phase(p, true);
        assert_int_equal(serve(again + 2 * ASYM_SEC), 0);
        wake(p);
        assert_true(serve_once(again + 2 * ASYM_SEC));
        assert_int_equal(asym_rtxd_server_due(server), again + 2 * ASYM_SEC + rows[i].after);
        take_sample();
        go(p);
        serve(again + 2 * ASYM_SEC);
    }
}

TEST_WITH(each_client_is_served_again_in_its_own_time, set_up, tear_down)
{
    int of[2];
    for (int i = 0; i < 2; i++) {
        notify_min = i == 0 ? 20000 : 5000;
        of[i] = client_at(getpid(), ASYM_SEC);
    }
    take_sample();
    serve(2 * ASYM_SEC);
    assert_int_equal(asym_rtxd_server_due(server), 0);
    for (int i = 0; i < 2; i++)
        tell(of[i], false);
    assert_int_equal(serve(3 * ASYM_SEC), 1);
    take_sample();
    /* Neither program wakes the server. */
    for (int i = 0; i < 2; i++)
        set_phase(of[i], true);
    assert_int_equal(serve(3 * ASYM_SEC + 4999), 0);
    assert_int_equal(asym_rtxd_server_due(server), 3 * ASYM_SEC + 5000);
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    assert_true(serve_once(3 * ASYM_SEC + 5000));
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL | ASYM_ASK_REFRESH, &program_reports), 2);
    /* For the other program the provider repeats its last report. */
    assert_int_equal(program_reports[0].threads[0].master + program_reports[1].threads[0].master, 1);
    /* A wakeup by another client does not change the time. */
    wake(of[1]);
    assert_int_equal(serve(3 * ASYM_SEC + 18000), 0);
    assert_int_equal(asym_rtxd_server_due(server), 3 * ASYM_SEC + 20000);
    assert_true(serve_once(3 * ASYM_SEC + 20000));
    assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL | ASYM_ASK_REFRESH, &program_reports), 2);
    assert_int_equal(program_reports[0].threads[0].master + program_reports[1].threads[0].master, 2);
    assert_int_equal(asym_rtxd_server_due(server), 3 * ASYM_SEC + 23000);
    assert_int_equal(serve(3 * ASYM_SEC + 23000), 0);
    assert_int_equal(asym_rtxd_server_due(server), 0);
}

TEST_WITH(headers_that_make_no_sense_are_refused_and_nothing_is_kept, set_up, tear_down)
{
    static const struct {
        size_t offset;
        uint32_t value;
        enum asym_rtxd_refusal refusal;
    } rows[] = {
        {offsetof(struct asym_rtx_header, magic), 0, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, magic), 1, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, version), 99, ASYM_RTXD_REFUSED_VERSION},
        {offsetof(struct asym_rtx_header, n_slots), 5000, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, n_slots), 0, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, slot_size), 32, ASYM_RTXD_REFUSED_GARBAGE},
        {offsetof(struct asym_rtx_header, header_size), UINT32_MAX - 63, ASYM_RTXD_REFUSED_GARBAGE},
    };
    good_client();
    const int before = asym_process_descriptors(getpid());
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const size_t had = refused[rows[i].refusal];
        struct asym_rtx_header h = good_header();
        memcpy((char *)&h + rows[i].offset, &rows[i].value, sizeof rows[i].value);
        const int bad = make_page(getpid(), geteuid(), h, MAPPED);
        announce_and_serve(bad, 1);
        assert_int_equal(refused[rows[i].refusal], had + 1);
        assert_false(is_in(bad));
        go(bad);
        serve(1);
        assert_int_equal(asym_process_descriptors(getpid()), before);
    }
    assert_int_equal(asym_rtxd_server_count(server), 1);
}

/* All of these have the name of a page, and are none. */
TEST_WITH(a_file_counts_only_if_it_is_the_users_own, set_up, tear_down)
{
    char at[160];
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "asym-rtx.1.4"};
    is_honest = true;
    home_of(geteuid(), at);
    const int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), good = come();
    assert_int_equal(chdir(at), 0);
    assert_int_equal(symlink(pages[good].name, name_of(9001)), 0);
    assert_int_equal(mkfifo(name_of(9002), 0600), 0);
    assert_int_equal(mkdir(name_of(9003), 0700), 0);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(rename(address.sun_path, name_of(9004)), 0);
    /* This announces each of them. */
    for (unsigned k = 9001; k <= 9004; k++)
        assert_int_equal(chmod(name_of(k), 0644), 0);
    /* A second name. */
    const int linked = make_page(getpid(), geteuid(), good_header(), MAPPED);
    assert_int_equal(link(pages[linked].name, name_of(9005)), 0);
    announce(linked);
    /* A file that is longer than a page, and one that has another name by now. */
    const int longer = make_page(getpid(), geteuid(), good_header(), (off_t)ASYM_RTXD_PAGE_SIZE + 1);
    announce_and_serve(longer, 1);
    /* The symbolic link has announced the file to which it leads. */
    assert_int_equal(asym_rtxd_server_count(server), 1);
    assert_true(is_in(good));
    assert_int_equal(refused[ASYM_RTXD_REFUSED_FILE], 5);
    for (unsigned k = 9001; k <= 9005; k++)
        assert_int_equal(remove(name_of(k)), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    close(fd);
}

/* The file is the user's, the process is not; or there is none. */
TEST_WITH(a_name_that_lies_is_refused, set_up, tear_down)
{
    static const char *const others[] = {"asym-rtx.",     "asym-rtx.1",    "asym-rtx.x.1", "asym-rtx.-1.1",
                                         "asym-rtx.1.1x", "asym-rtx.01.1", "page"};
    char name[256], home[160];
    is_honest = true;
    const int init = come_as(1, geteuid() == 0 ? 12345 : geteuid());
    serve(1);
    assert_false(is_in(init));
    assert_int_equal(refused[ASYM_RTXD_REFUSED_OTHER], 1);
    const int none = come_as(4194304 + 1, geteuid());
    serve(1);
    assert_false(is_in(none));
    for (size_t i = 0; i < ASYM_LENGTH(others); i++) {
        snprintf(name, sizeof name, "%s/%s", home_of(geteuid(), home), others[i]);
        close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        assert_int_equal(chmod(name, 0644), 0);
        serve(1);
        assert_int_equal(unlink(name), 0);
    }
    assert_int_equal(asym_rtxd_server_count(server), 0);
    for (size_t i = 0; i < ASYM_RTXD_N_REFUSALS; i++)
        assert_int_equal(refused[i], i == ASYM_RTXD_REFUSED_OTHER);
}

/* It is announced again and again, and under another name: one page has one place. */
TEST_WITH(a_page_that_is_announced_again_has_one_place, set_up, tear_down)
{
    const int i = good_client(), before = asym_process_descriptors(getpid());
    for (int k = 0; k < 20; k++)
        announce_and_serve(i, 1);
    assert_int_equal(asym_process_descriptors(getpid()), before);
    for (size_t k = 0; k < ASYM_RTXD_N_REFUSALS; k++)
        assert_int_equal(refused[k], 0);
    rename_page(pages[i].name, name_of(7777));
    announce_and_serve(i, 1);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    assert_int_equal(asym_process_descriptors(getpid()), before);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_FILE], 1);
    /* Its old name has gone: after a few readings asymd believes that, and takes the new one. */
    for (int k = 0; k < 8; k++)
        take_sample();
    assert_int_equal(asym_rtxd_server_count(server), 0);
    announce_and_serve(i, 1);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    rename_page(name_of(7777), pages[i].name);
}

TEST_WITH(a_client_that_wakes_in_vain_is_not_read_for_a_while, set_up, tear_down)
{
    const int i = good_client();
    take_sample();
    wake_in_vain(i, 1);
    wake(i);
    assert_false(is_readable());
    /* asymd still hears the other clients. */
    const int other = good_client();
    take_sample();
    tell(other, false);
    assert_true(serve_once(1));
    take_sample();
    serve(1);
    /* One vain wakeup mutes it again, not counting its earlier write. */
    asym_rtxd_server_housekeeping(server, 2);
    assert_int_equal(serve(2), 0);
    wake(i);
    assert_true(is_readable());
    assert_int_equal(serve(2), 0);
    wake(i);
    assert_false(is_readable());
    /* Its end is heard in any case. */
    go(i);
    assert_true(is_readable());
    serve(2);
    assert_int_equal(asym_rtxd_server_count(server), 1);
}

/* The watch of a file is one: another name for it must not change what asymd hears. */
TEST_WITH(a_throttled_client_is_not_heard_by_another_name, set_up, tear_down)
{
    const int i = good_client();
    take_sample();
    wake_in_vain(i, 1);
    rename_page(pages[i].name, name_of(7777));
    announce_and_serve(i, 1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_FILE], 1);
    wake(i);
    assert_false(is_readable());
    rename_page(name_of(7777), pages[i].name);
}

/* asymd cannot change the watch of a file that it does not find. */
TEST_WITH(a_renamed_page_that_wakes_in_vain_ends, set_up, tear_down)
{
    const int i = good_client();
    take_sample();
    rename_page(pages[i].name, "x");
    for (int k = 0; k < 2 * ASYM_RTXD_MAX_VAIN_WAKEUPS; k++) {
        wake(i);
        serve_once(1);
    }
    wake(i);
    assert_false(is_readable());
    assert_int_equal(asym_rtxd_server_count(server), 0);
    rename_page("x", pages[i].name);
}

TEST_WITH(a_throttled_client_without_cpu_time_stays_throttled, set_up, tear_down)
{
    const asym_usec paid = 600 * ASYM_SEC;
    const int i = good_client();
    asym_rtxd_server_set(server, 20, 1);
    take_sample();
    tell(i, false);
    assert_true(serve_once(10));
    take_sample();
    wake_in_vain(i, 11);
    asym_rtxd_server_charge(server, 60 * ASYM_MSEC);
    /* Its second sample is due. */
    const asym_usec again = asym_rtxd_server_due(server);
    assert_true(again > 11);
    assert_false(serve_once(again));
    assert_int_equal(asym_rtxd_server_due(server), 0);
    wake(i);
    assert_false(is_readable());
    /* Housekeeping has caused the next sample, and asymd defers the answer. So the program has not woken it in vain. */
    asym_rtxd_server_housekeeping(server, again + 1);
    set_phase(i, true);
    assert_false(serve_once(again + 1));
    assert_true(asym_rtxd_server_due(server) > again + 1);
    set_phase(i, false);
    assert_false(serve_once(paid));
    assert_false(serve_once(paid));
    wake(i);
    assert_true(is_readable());
}

TEST_WITH(a_client_with_real_phases_is_answered_as_often_as_before, set_up, tear_down)
{
    const int i = good_client();
    take_sample();
    wake_in_vain(i, 1);
    asym_rtxd_server_housekeeping(server, 2);
    set_phase(i, false);
    assert_true(serve_once(2));
    take_sample();
    wake_in_vain(i, 2);
}

/* A user whose files are announced all the time is not heard until the next housekeeping. Others are. */
TEST_WITH(a_flood_of_announcements_is_not_heard_for_a_while, set_up, tear_down)
{
    const int i = good_client();
    for (int k = 0; k < ASYM_RTXD_MAX_ANNOUNCED; k++)
        announce_and_serve(i, 1);
    announce(i);
    assert_false(is_readable());
    const int other = come_as(ELSEWHERE, 12345), late = come();
    serve(1);
    assert_true(is_in(other));
    assert_false(is_in(late));
    asym_rtxd_server_housekeeping(server, 2);
    announce_and_serve(late, 2);
    assert_true(is_in(late));
}

/* Programs pay for what serve costs, and not for the announcements of others. */
TEST_WITH(what_comes_is_taken_before_the_programs_are_served, set_up, tear_down)
{
    const int i = come();
    assert_false(asym_rtxd_server_serve(server, 1));
    assert_true(is_readable());
    assert_false(is_in(i));
    asym_rtxd_server_receive(server, 1);
    assert_true(is_in(i));
}

/* The server counts the files of a second: some of each user, and the first one of each in any case. */
TEST_WITH(a_flood_of_files_keeps_no_other_user_out, set_up, tear_down)
{
    for (int i = 0; i < ASYM_RTXD_MAX_TAKEN; i++) {
        if (i == ASYM_RTXD_MAX_TAKEN_OF_USER) {
            assert_int_equal(come_as(getpid(), 3000), i);
            serve_once(1);
            assert_false(is_in(i));
        }
        const int k = come_as(getpid(), 3000 + (uid_t)i / ASYM_RTXD_MAX_TAKEN_OF_USER);
        serve_once(1);
        assert_true(is_in(k));
        go(k);
        serve_once(1);
    }
    const int flood = come_as(getpid(), 3000), first = come_as(getpid(), 12345), second = come_as(getpid(), 12345);
    serve(1);
    assert_false(is_in(flood));
    assert_true(is_in(first));
    assert_false(is_in(second));
    assert_int_equal(refused[ASYM_RTXD_REFUSED_BUSY], 3);
    asym_rtxd_server_housekeeping(server, 2);
    announce(flood);
    announce(second);
    serve(2);
    assert_true(is_in(flood));
    assert_true(is_in(second));
}

/* A user without a place takes none of the others' looks at files. */
TEST_WITH(a_user_with_all_places_is_refused_at_once, set_up, tear_down)
{
    for (int i = 0; i < ASYM_RTXD_MAX_OF_USER; i++) {
        come_as(ELSEWHERE + i, 3000);
        serve_once(1);
        if (i % ASYM_RTXD_MAX_TAKEN_OF_USER == ASYM_RTXD_MAX_TAKEN_OF_USER - 1)
            asym_rtxd_server_housekeeping(server, 1);
    }
    assert_int_equal(asym_rtxd_server_count(server), ASYM_RTXD_MAX_OF_USER);
    come_as(ELSEWHERE + 100, 3000);
    serve_once(1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_FULL], 1);
    assert_int_equal(server->taken, 0);
}

/* So many wakeups between two samples are no program's. */
TEST_WITH(a_flood_of_wakeups_is_not_heard_for_a_while, set_up, tear_down)
{
    const int i = good_client(), other = client_elsewhere();
    take_sample();
    for (int k = 0; k < 2 * ASYM_RTXD_MAX_WAKEUPS; k++) {
        wake(i);
        wake(other);
    }
    assert_int_equal(serve(1), 0);
    wake(i);
    assert_false(is_readable());
    asym_rtxd_server_housekeeping(server, 2);
    tell(i, false);
    assert_true(is_readable());
    assert_true(serve_once(2));
}

/* The kernel has dropped events: asymd reads each page once, and finds the change. */
TEST_WITH(after_an_overflow_each_page_is_read, set_up, tear_down)
{
    const struct inotify_event overflow = {.wd = -1, .mask = IN_Q_OVERFLOW};
    int fds[2], queue = server->inotify;
    const int i = good_client();
    take_sample();
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    set_phase(i, false);
    assert_int_equal(serve(1), 0);
    assert_int_equal(write(fds[1], &overflow, sizeof overflow), sizeof overflow);
    server->inotify = fds[0];
    assert_true(serve_once(1));
    server->inotify = queue;
    close(fds[0]);
    close(fds[1]);
}

/* Without a wakeup or a close: another process has the file, too. */
TEST_WITH(a_client_whose_process_has_ended_goes, set_up, tear_down)
{
    client_elsewhere();
    take_sample();
    asym_rtxd_server_housekeeping(server, 2);
    assert_int_equal(asym_rtxd_server_count(server), 1);
    has_ended = ELSEWHERE;
    asym_rtxd_server_housekeeping(server, 3);
    assert_int_equal(asym_rtxd_server_count(server), 0);
    assert_true(serve_once(3));
}

/* After an execve(2) of a set-user-ID program, say. */
TEST_WITH(a_process_that_acts_for_another_user_is_read_no_more, set_up, tear_down)
{
    client_elsewhere();
    take_sample();
    acts_for_root = ELSEWHERE;
    take_sample();
    assert_int_equal(asym_rtxd_server_count(server), 0);
    assert_true(serve_once(3));
}

/* The last close of a file frees its memory. */
TEST_WITH(no_page_is_open_between_two_readings, set_up, tear_down)
{
    char name[64], at[256];
    good_client();
    take_sample();
    for (int fd = 0; fd < 4096; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        const ssize_t n = fd == pages[0].fd ? -1 : readlink(name, at, sizeof at - 1);
        at[n < 0 ? 0 : n] = '\0';
        assert_null(strstr(at, ASYM_RTX_FILE));
    }
}

/* The page is of a mode that asymd can read, is not longer than a page, and has no more memory. Otherwise it ends. */
TEST_WITH(a_page_that_grows_or_is_hidden_is_read_no_more, set_up, tear_down)
{
    for (int how = 0; how < 3; how++) {
        const int i = good_client(), fd = pages[i].fd;
        take_sample();
        if (how == 0)
            assert_int_equal(fchmod(fd, 0), 0);
        else
            assert_int_equal(fallocate(fd, how == 1 ? FALLOC_FL_KEEP_SIZE : 0, 0, 2 << 20), 0);
        wake(i);
        assert_true(serve_once(1));
        assert_int_equal(asym_rtxd_server_count(server), 0);
        go(i);
        serve_once(1);
    }
}

/* Only root can list the names, and the table has all that are lent. */
TEST_WITH(the_table_has_each_user_that_has_a_directory, set_up, tear_down)
{
    char home[160];
    struct stat st;
    assert_true(asym_raw_home(path, geteuid(), home, sizeof home));
    assert_int_equal(stat(home, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0777);
    *strrchr(home, '/') = '\0';
    assert_int_equal(stat(home, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    assert_false(asym_raw_home(path, geteuid() + 1, home, sizeof home));
}

/* The library clears magic when the program leaves, and the mapping keeps the file open. */
TEST_WITH(a_page_without_magic_is_read_no_more, set_up, tear_down)
{
    for (int cut = 0; cut < 2; cut++) {
        const int i = good_client();
        take_sample();
        if (cut)
            assert_int_equal(ftruncate(pages[i].fd, 0), 0);
        else
            *(uint32_t *)(void *)pages[i].map = 0;
        if (!cut)
            wake(i);
        assert_true(serve_once(1));
        assert_int_equal(asym_rtxd_server_count(server), 0);
        assert_int_equal(asym_rtxd_server_due(server), 0);
    }
}

/* It has overspent, but asks for nothing: there is nothing to defer, and asymd hears it. */
TEST_WITH(a_client_in_debt_that_does_not_wake_asymd_is_not_deferred, set_up, tear_down)
{
    asym_rtxd_server_set(server, 20, 1);
    const int i = good_client();
    take_sample();
    tell(i, false);
    assert_true(serve_once(10));
    const asym_usec again = asym_rtxd_server_due(server);
    asym_rtxd_server_charge(server, 60 * ASYM_MSEC);
    take_sample();
    assert_true(again > 11);
    assert_false(serve_once(11));
    assert_int_equal(asym_rtxd_server_due(server), again);
    wake(i);
    assert_true(is_readable());
}

/* A full snapshot has its phase, and the client is deferred: its end is still reported, and nothing is due for it. */
TEST_WITH(a_client_that_ends_while_deferred_has_ended_its_serial_phase, set_up, tear_down)
{
    asym_rtxd_server_set(server, 20, 1);
    const int i = good_client();
    take_sample();
    tell(i, false);
    assert_true(serve_once(1));
    asym_rtxd_server_charge(server, 60 * ASYM_MSEC);
    take_sample();
    tell(i, true);
    assert_false(serve_once(2));
    assert_true(asym_rtxd_server_due(server) > 2);
    take_sample();
    wake(i);
    assert_false(is_readable());
    go(i);
    assert_true(is_readable());
    assert_true(serve_once(3));
    assert_int_equal(asym_rtxd_server_count(server), 0);
    assert_int_equal(asym_rtxd_server_due(server), 0);
}

/* A user other than root is admitted while a place is free. */
TEST_WITH(every_user_is_let_in, set_up, tear_down)
{
    static const uid_t users[] = {1000, 0, 65534, 1001};
    for (size_t i = 0; i < ASYM_LENGTH(users); i++) {
        wake(come_as(getpid(), users[i]));
        assert_int_equal(serve(1), 1);
        assert_int_equal(asym_rtxd_server_count(server), i + 1);
    }
    for (size_t i = 0; i < ASYM_RTXD_N_REFUSALS; i++)
        assert_int_equal(refused[i], 0);
}

/* One process has a few places; the server refuses its other files, and admits other processes. */
TEST_WITH(a_process_has_few_places, set_up, tear_down)
{
    int taken = 0;
    for (int i = 0; i < ASYM_RTXD_MAX_TAKEN_OF_USER; i++) {
        const int k = come();
        serve_once(1);
        taken += is_in(k);
    }
    assert_int_equal(taken, ASYM_RTXD_MAX_OF_PID);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_FULL], ASYM_RTXD_MAX_TAKEN_OF_USER - ASYM_RTXD_MAX_OF_PID);
    asym_rtxd_server_housekeeping(server, 2);
    const int other = come_as(ELSEWHERE, 1);
    serve(2);
    assert_true(is_in(other));
}

/* Where the directory is none of its own, users could fill the file system: asymd serves its own user alone. */
TEST_WITH(another_user_has_no_directory_in_a_common_file_system, set_up, tear_down)
{
    assert_false(asym_rtxd_server_is_for_all(server));
    assert_int_equal(asym_rtxd_add_user(server, geteuid()), 0);
    assert_int_equal(asym_rtxd_add_user(server, geteuid() + 1), -EPERM);
    assert_int_equal(server->n_users, 1);
}

TEST_WITH(without_descriptors_a_program_is_refused, set_up, tear_down)
{
    const int i = come(), next = dup(STDOUT_FILENO);
    close(next);
    const int before = asym_process_descriptors(getpid());
    for (int room = 0; room < 2; room++) {
        announce(i);
        const rlim_t limit = limit_descriptors((rlim_t)next + (rlim_t)room);
        serve(1);
        limit_descriptors(limit);
        assert_int_equal(refused[ASYM_RTXD_REFUSED_NO_FD] + refused[ASYM_RTXD_REFUSED_FILE], room + 1);
        assert_false(is_in(i));
        assert_int_equal(asym_process_descriptors(getpid()), before);
    }
    announce_and_serve(i, 1);
    assert_true(is_in(i));
}

/* A library of the time when asymd had a socket there. */
TEST_WITH(an_old_library_is_refused_at_once, set_up, tear_down)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
}

/* Another user could have put it there, or it is what an older asymd has left. */
TEST_WITH(only_a_directory_of_its_own_is_used, set_up, tear_down)
{
    char at[64] = "/tmp/asym-rtx-XXXXXX", name[96];
    struct asym_rtxd_server *s = NULL;
    struct asym_error err = {""};
    const struct asym_rtxd_server_config config = {.dir = at};
    assert_non_null(mkdtemp(at));
    snprintf(name, sizeof name, "%s/rtx", at);
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(chmod(name, 0777), 0);
    assert_int_equal(asym_rtxd_server_open(&config, &s, &err), -EPERM);
    assert_non_null(strstr(err.text, name));
    assert_int_equal(rmdir(name), 0);
    assert_int_equal(mknod(name, S_IFSOCK | 0666, 0), 0);
    assert_int_equal(asym_rtxd_server_open(&config, &s, &err), 0);
    asym_rtxd_server_close(s);
    assert_int_equal(rmdir(at), 0);
}

TEST_WITH(only_a_client_that_has_spent_its_part_is_deferred, set_up, tear_down)
{
    asym_rtxd_server_set(server, 20, 1);
    const int its = client_elsewhere(), mine = good_client();
    take_sample();
    tell(its, false);
    assert_true(serve_once(10));
    asym_rtxd_server_charge(server, 30 * ASYM_MSEC);
    /* Only second samples are due, the first for the earlier client. */
    assert_int_equal(asym_rtxd_server_due(server), 1 + ASYM_RTX_NOTIFY_MIN_DEFAULT);
    take_sample();
    tell(its, true);
    assert_false(serve_once(2 * ASYM_MSEC));
    assert_true(asym_rtxd_server_due(server) > ASYM_SEC / 2);
    /* It does not wake the server now. The server answers another client, which alone pays for that. */
    tell(its, true);
    assert_false(is_readable());
    tell(mine, false);
    assert_true(serve_once(3 * ASYM_MSEC));
    asym_rtxd_server_charge(server, ASYM_MSEC);
    take_sample();
    /* A phase that a full snapshot has contained needs no answer. */
    tell(its, false);
    const double rate = 0.01 * ASYM_RTXD_SHARE;
    const asym_usec then = (asym_usec)(60 * (double)ASYM_MSEC / rate);
    assert_true(serve_once(then));
    asym_rtxd_server_charge(server, ASYM_MSEC);
    take_sample();
    /* The server samples it as before, though it reports nothing for a while. */
    for (asym_usec i = 0; i < (asym_usec)2 * ASYM_RTXD_MAX_VAIN_WAKEUPS; i++) {
        assert_false(serve_once(then + (i + 1) * 2 * ASYM_MSEC));
        asym_rtxd_server_charge(server, 20);
        assert_int_equal(asym_rtxd_server_due(server), 0);
    }
    assert_false(is_readable());
    tell(its, true);
    assert_true(is_readable());
    assert_true(serve_once(then + ASYM_SEC / 2));
}

/* A reserve in debt gets half of what is earned, and the client that reports gets the other half: no more in all. */
TEST_WITH(a_debt_is_paid_from_what_is_earned, set_up, tear_down)
{
    asym_rtxd_server_set(server, 20, 1);
    good_client();
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
}

/* No present client pays for that answer: a client sampled in vain with it can still be answered. */
TEST_WITH(the_end_of_another_client_is_not_charged_to_a_served_one, set_up, tear_down)
{
    asym_rtxd_server_set(server, 20, 1);
    const int its = client_elsewhere(), mine = good_client();
    take_sample();
    tell(mine, false);
    assert_true(serve_once(10));
    take_sample();
    for (int serial = 0; serial < 2; serial++) {
        tell(its, serial);
        assert_true(serve_once(11));
        take_sample();
    }
    go(its);
    tell(mine, false); /* no change */
    assert_true(serve_once(12));
    asym_rtxd_server_charge(server, 10 * ASYM_SEC);
    take_sample();
    tell(mine, true);
    assert_true(serve_once(13));
    /* It pays for its own answer. */
    asym_rtxd_server_charge(server, 10 * ASYM_SEC);
    take_sample();
    tell(mine, false);
    assert_false(serve_once(14));
}

TEST_WITH(several_pages_give_a_process_no_larger_part, set_up, tear_down)
{
    enum { MINE = 3 };
    int mine[MINE];
    asym_rtxd_server_set(server, 20, 1);
    const int its = client_elsewhere();
    for (int i = 0; i < MINE; i++)
        mine[i] = good_client();
    take_sample();
    /* All have spent the same. It alone gets half of the CPU time for answers; each page of the others gets a sixth. */
    asym_usec now = 10;
    tell(its, false);
    for (int i = 0; i < MINE; i++)
        tell(mine[i], false);
    assert_true(serve_once(now));
    asym_rtxd_server_charge(server, (MINE + 1) * 30 * ASYM_MSEC);
    take_sample();
    for (; now < 100 * ASYM_SEC; now += 500 * ASYM_MSEC) {
        for (int i = 0; i < MINE; i++)
            tell(mine[i], true);
        tell(its, true);
        if (serve_once(now))
            break;
    }
    /* It came first and drew all saved time. Half of the earned time pays the debt in 4 s; a quarter would take 8 s. */
    assert_true(now > 3 * ASYM_SEC && now < 5 * ASYM_SEC);
}

/* The debt of ended clients remains: after some more ends the server reports no ends, but it admits new clients. */
TEST_WITH(a_program_that_comes_anew_in_serial_phases_is_answered_no_more, set_up, tear_down)
{
    int p, program_reports = 0;
    asym_rtxd_server_set(server, 20, 1);
    /* Another user than root has no more files looked at between two calls of housekeeping. */
    const int n = geteuid() == 0 ? 30 : ASYM_RTXD_MAX_TAKEN_OF_USER;
    for (int i = 0; i < n; i++) {
        p = come();
        wake(p);
        serve(1);
        asym_rtxd_server_charge(server, 8 * ASYM_MSEC);
        assert_int_equal(asym_rtxd_server_count(server), 1);
        take_sample();
        go(p);
        program_reports += serve_once(1);
        asym_rtxd_server_charge(server, 8 * ASYM_MSEC);
    }
    assert_in_range(program_reports, ASYM_RTXD_MAX_ENDS, ASYM_RTXD_MAX_ENDS + 2);
    asym_rtxd_server_housekeeping(server, 20 * ASYM_SEC);
    p = client_at(getpid(), 20 * ASYM_SEC);
    take_sample();
    go(p);
    assert_int_equal(serve(20 * ASYM_SEC), 1);
}

TEST_WITH(a_refresh_reads_only_programs_that_have_reported, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    const int mine = good_client(), other = good_client();
    take_sample();
    set_phase(mine, false);
    tell(other, false);
    assert_true(serve_once(1));
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
}

/* Returns how many of the n pages from first have a place. */
static int count_in(int first, int n)
{
    int in = 0;
    for (int i = first; i < first + n; i++)
        in += is_in(i % PAGES);
    return in;
}

/* Each user comes once, so that the server considers all. */
static int come_once(uid_t first_user, int n)
{
    const int begun = n_pages;
    for (int i = 0; i < n; i++) {
        come_as(ELSEWHERE + i / ASYM_RTXD_MAX_OF_PID, first_user + (uid_t)i);
        serve_once(1);
    }
    asym_rtxd_server_housekeeping(server, 1);
    return begun;
}

TEST_WITH(four_users_that_take_all_they_can_keep_no_user_out, set_up, tear_down)
{
    enum { USERS = 4, EACH = ASYM_RTXD_MAX_OF_USER };
    int first[USERS];
    for (int u = 0; u < USERS; u++) {
        first[u] = n_pages;
        for (int i = 0; i < EACH; i++) {
            come_as(ELSEWHERE + u * EACH / ASYM_RTXD_MAX_OF_PID + i / ASYM_RTXD_MAX_OF_PID, 3001 + (uid_t)u);
            serve_once(1);
            if (i % ASYM_RTXD_MAX_TAKEN_OF_USER == 0)
                asym_rtxd_server_housekeeping(server, 1);
        }
        asym_rtxd_server_housekeeping(server, 1);
    }
    for (int u = 0; u < USERS; u++)
        assert_in_range(count_in(first[u], EACH), (ASYM_RTXD_MAX_OF_USERS - 16) / USERS, EACH);
    /* A new user gets a place of the user with the most; so does root; so does another new user. */
    const pid_t mine = ELSEWHERE + 900 + 1;
    for (uid_t uid = 5000; uid < 5020; uid++) {
        const int newcomer = come_as(uid % 2 ? mine : ELSEWHERE + 900 + 2 + (int)(uid - 5000) / 8, uid);
        serve_once(1);
        if (uid < 5006)
            assert_true(is_in(newcomer));
    }
    const int root = come_as(ELSEWHERE + 900 + 5, 0);
    serve_once(1);
    assert_true(is_in(root));
    assert_true(refused[ASYM_RTXD_REFUSED_YIELDS] > 0);
}

/* With as many users as places for users, the server refuses a new user, but not root. */
TEST_WITH(only_as_many_users_keep_one_out_and_none_keeps_out_root, set_up, tear_down)
{
    const int begun = come_once(10000, ASYM_RTXD_MAX_OF_USERS);
    assert_int_equal(count_in(begun, ASYM_RTXD_MAX_OF_USERS), ASYM_RTXD_MAX_OF_USERS);
    const int newcomer = come_as(ELSEWHERE + 900 + 1, 20000);
    serve_once(1);
    assert_false(is_in(newcomer));
    for (int i = 0; i < ASYM_RTXD_MAX_CLIENTS - ASYM_RTXD_MAX_OF_USERS + 4; i++) {
        const int root = come_as(ELSEWHERE + 900 + 2 + i / ASYM_RTXD_MAX_OF_PID, 0);
        serve_once(1);
        assert_true(is_in(root));
    }
    assert_int_equal(refused[ASYM_RTXD_REFUSED_YIELDS], 4);
}

/* The reports of the end and of the new connection come together. */
TEST_WITH(a_place_that_is_free_again_is_taken_from_no_client, set_up, tear_down)
{
    enum { OF_ROOT = ASYM_RTXD_MAX_CLIENTS - ASYM_RTXD_MAX_OF_USERS };
    int of_root = -1;
    come_once(10000, ASYM_RTXD_MAX_OF_USERS);
    for (int i = 0; i < OF_ROOT; i++) {
        of_root = come_as(ELSEWHERE + 900 + 1 + i / ASYM_RTXD_MAX_OF_PID, 0);
        serve_once(1);
    }
    go(of_root);
    const int next = come_as(ELSEWHERE + 900 + 1 + OF_ROOT / ASYM_RTXD_MAX_OF_PID, 0);
    serve_once(1);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_YIELDS], 0);
    assert_true(is_in(next));
}

/* More slots than the first pread(2) covers. */
TEST_WITH(a_page_of_many_slots_is_read_to_its_end, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    struct asym_rtx_header h = good_header();
    h.n_slots = ASYM_RTXD_MAX_SLOTS;
    h.n_used = 1;
    const int i = make_page(getpid(), geteuid(), h, ASYM_RTXD_PAGE_SIZE);
    announce_and_serve(i, 1);
    static const size_t used[] = {1, 63, 64, 65, 500, ASYM_RTXD_MAX_SLOTS, 100};
    for (size_t k = 0; k < ASYM_LENGTH(used); k++) {
        for (size_t n = 0; n < used[k]; n++) {
            const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING, .tid = (int32_t)n + 1};
            assert_int_equal(pwrite(pages[i].fd, &slot, sizeof slot, (off_t)(64 + 64 * n)), sizeof slot);
        }
        ((struct asym_rtx_header *)(void *)pages[i].map)->n_used = (uint32_t)used[k];
        assert_int_equal(provider->ask(provider, 1, ASYM_ASK_FINAL, &program_reports), 1);
        assert_int_equal(program_reports->n, used[k]);
        assert_int_equal(program_reports->threads[used[k] - 1].tid, used[k]);
    }
}

/* A page may have its slots at any offset. The server does not read what is between the header and a far slot. */
TEST_WITH(a_page_with_a_far_slot_costs_no_more, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    static const uint32_t offsets[] = {64, 128, 4096, 4160, 65536, ASYM_RTXD_MAX_SLOTS * 64};
    for (size_t k = 0; k < ASYM_LENGTH(offsets); k++) {
        const struct asym_rtx_slot slot = {.word = ASYM_RTX_WORKING, .tid = (int32_t)k + 1};
        struct asym_rtx_header h = good_header();
        h.header_size = offsets[k];
        h.n_slots = h.n_used = 1;
        const int i = make_page(getpid(), geteuid(), h, ASYM_RTXD_PAGE_SIZE);
        assert_int_equal(pwrite(pages[i].fd, &slot, sizeof slot, offsets[k]), sizeof slot);
        announce_and_serve(i, 1);
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
    const struct asym_rtxd_server_config config = {.dir = deep};
    assert_int_equal(asym_rtxd_server_open(&config, &none, &err), -ENAMETOOLONG);
    assert_non_null(strstr(err.text, "too long"));
    assert_null(none);
}

int main(void)
{
    return test_run(NULL, NULL);
}
