/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/listener.h"
#include "support/live.h"
#include "support/process.h"
#include "support/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const struct asym_rtx_user another = {.pool = 2, .number = 2, .is_used = 1, .uid = 123456};

void asym_listener_reopen(struct asym_listener *l)
{
    char path[160];
    for (size_t n = strlen(l->path); n <= strlen(l->user); n++) {
        snprintf(path, sizeof path, "%.*s", (int)n, l->user);
        if (l->user[n] == '/' || l->user[n] == '\0')
            assert_int_equal(mkdir(path, 0711), 0);
    }
    const struct asym_rtx_user own = {.pool = 1, .number = 1, .is_used = 1, .uid = geteuid()};
    char name[160];
    snprintf(name, sizeof name, "%s/" ASYM_RTX_USERS, l->path);
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, &another, sizeof another), sizeof another);
    assert_int_equal(write(fd, &own, sizeof own), sizeof own);
    assert_int_equal(ftruncate(fd, ASYM_RTX_MAX_USERS * sizeof own), 0);
    close(fd);
    l->events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(l->events, l->user, IN_ATTRIB) >= 0);
}

void asym_listener_open(struct asym_listener *l)
{
    *l = (struct asym_listener){.dir = "/tmp/asym-rtx-XXXXXX"};
    assert_non_null(mkdtemp(l->dir));
    snprintf(l->path, sizeof l->path, "%s/rtx", l->dir);
    snprintf(l->user, sizeof l->user, "%s/" ASYM_RTX_HOME, l->path, UINT64_C(1), UINT64_C(1));
    assert_int_equal(setenv(ASYM_RTX_DIR_ENV, l->path, 1), 0);
    asym_listener_reopen(l);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

/* A program may put a new file there meanwhile. */
void asym_listener_close(struct asym_listener *l)
{
    close(l->events);
    l->events = -1;
    while (nftw(l->path, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        assert_int_equal(errno, ENOTEMPTY);
}

void asym_listener_done(struct asym_listener *l)
{
    if (l->events >= 0)
        asym_listener_close(l);
    rmdir(l->dir);
}

void asym_listener_run(struct asym_listener *l, void (*program)(void))
{
    asym_listener_open(l);
    fflush(NULL);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        alarm(60);
        program();
        _exit(0);
    }
    assert_int_equal(asym_live_wait(pid), 0);
    asym_listener_done(l);
}

static bool is_known(const struct asym_listener *l, const char *name)
{
    for (size_t i = 0; i < sizeof l->known / sizeof l->known[0]; i++)
        if (strcmp(l->known[i], name) == 0)
            return true;
    return false;
}

/* A file that has gone meanwhile is of a client that has ended. */
static bool map_page(struct asym_listener *l, const char *name, struct asym_handed *ret)
{
    char path[256];
    struct stat st;
    snprintf(l->known[l->n_known++ % (sizeof l->known / sizeof l->known[0])], sizeof l->known[0], "%s", name);
    snprintf(path, sizeof path, "%s/%s", l->user, name);
    *ret = (struct asym_handed){.file = open(path, O_RDONLY | O_CLOEXEC)};
    if (ret->file < 0)
        return false;
    assert_int_equal(sscanf(name, ASYM_RTX_FILE "%d.", &ret->pid), 1);
    assert_int_equal(fstat(ret->file, &st), 0);
    ret->size = (size_t)st.st_size;
    void *page = mmap(NULL, ret->size, PROT_READ, MAP_SHARED, ret->file, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    ret->page = page;
    return true;
}

/* One event at a time: the next one is the next client's. */
bool asym_listener_take(struct asym_listener *l, double seconds, struct asym_handed *ret)
{
    _Alignas(struct inotify_event) char text[sizeof(struct inotify_event) + 64];
    const struct inotify_event *event = (const void *)text;
    for (const double end = asym_live_now() + seconds;;) {
        struct pollfd fd = {.fd = l->events, .events = POLLIN};
        const double left = end - asym_live_now();
        if (poll(&fd, 1, left > 0 ? (int)(left * 1000) : 0) <= 0)
            return false;
        if (read(l->events, text, sizeof text) > 0 && event->len > 0 && !is_known(l, event->name) &&
            map_page(l, event->name, ret))
            return true;
    }
}

void asym_handed_done(struct asym_handed *h)
{
    munmap((void *)(uintptr_t)h->page, h->size);
    close(h->file);
}

static const struct asym_rtx_slot *slot_at(const struct asym_handed *h, uint32_t i)
{
    return (const void *)((const char *)h->page + h->page->header_size + (size_t)i * h->page->slot_size);
}

const struct asym_rtx_slot *asym_handed_slot(const struct asym_handed *h, pid_t tid)
{
    for (uint32_t i = 0; i < h->page->n_slots; i++)
        if (__atomic_load_n(&slot_at(h, i)->tid, __ATOMIC_ACQUIRE) == tid)
            return slot_at(h, i);
    return NULL;
}

unsigned asym_handed_used(const struct asym_handed *h)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < h->page->n_slots; i++)
        n += __atomic_load_n(&slot_at(h, i)->tid, __ATOMIC_ACQUIRE) != 0;
    return n;
}

unsigned long asym_handed_woken(struct asym_handed *h)
{
    const uint32_t before = h->woken;
    h->woken = __atomic_load_n(&h->page->rung, __ATOMIC_RELAXED);
    return h->woken - before;
}
