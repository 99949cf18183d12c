/* SPDX-License-Identifier: MIT */
/* The functions of asym_rtx(3). */
#include "rtx-client-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread that found no free slot tries again after this many calls. */
#define TRY_AGAIN 1024

/* One bit for each of the last eight serial phases: it lasted at least notify_min. */
#define HISTORY_UNKNOWN 0x01

struct asym_rtx_process asym_rtx_process = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = {.fd = -1}};

/* State of a thread. initial-exec costs a plain load, and a few bytes of libc's reserve for libraries loaded at run time. */
static _Thread_local struct {
    struct asym_rtx_slot *slot;
    uint64_t serial_since;
    unsigned skip;
    unsigned char history;
    bool tells; /* serial_end() wakes asymd, as serial_begin() may have woken it */
} self __attribute__((tls_model("initial-exec"))) = {.history = HISTORY_UNKNOWN};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;
static bool has_key;

static void thread_ends(void *slot)
{
    self.slot = NULL;
    /* In a child without memory for a page, no slots exist. */
    if (__atomic_load_n(&asym_rtx_process.page, __ATOMIC_ACQUIRE))
        asym_rtx_page_give(&asym_rtx_process, slot);
}

static void before_fork(void)
{
    pthread_mutex_lock(&asym_rtx_process.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&asym_rtx_process.lock);
}

/* Only the thread that forked exists in the child. The page and the file of the parent stay the parent's. */
static void become_child(struct asym_rtx_process *p)
{
    p->pid = getpid();
    if (p->page) {
        asym_rtx_page_part(p, self.slot);
        if (!p->page)
            self.slot = NULL;
    }
    asym_rtx_forget(p);
    p->join_at = p->update_at = p->notified = 0;
}

static void in_child(void)
{
    become_child(&asym_rtx_process);
    pthread_mutex_unlock(&asym_rtx_process.lock);
}

static void set_up_once(void)
{
    has_key = pthread_key_create(&at_end, thread_ends) == 0;
    pthread_atfork(before_fork, in_parent, in_child);
}

/* A file that is left does no harm: the next program of the user removes it. */
__attribute__((destructor)) static void at_exit(void)
{
    if (asym_rtx_process.pid == getpid() && pthread_mutex_trylock(&asym_rtx_process.lock) == 0) {
        asym_rtx_process.left = true;
        asym_rtx_disconnect(&asym_rtx_process);
        pthread_mutex_unlock(&asym_rtx_process.lock);
    }
}

/* For programs that do not set it, such as OpenMP programs: the user sets the environment variable. */
static uint32_t notify_min_of_environment(void)
{
    const char *text = secure_getenv(ASYM_RTX_NOTIFY_MIN_ENV);
    char *end;
    const unsigned long usec = text ? strtoul(text, &end, 10) : 0;
    return text && *text && *end == '\0' && usec > 0 && usec <= ASYM_RTX_NOTIFY_MIN_MAX ? (uint32_t)usec
                                                                                        : ASYM_RTX_NOTIFY_MIN_DEFAULT;
}

/* An older program passes a shorter structure: the options that it lacks take their defaults. */
static struct asym_rtx_options read_options(const struct asym_rtx_options *given)
{
    struct asym_rtx_options o = {0};
    if (given)
        memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    return o;
}

static int make(struct asym_rtx_process *p, const struct asym_rtx_options *options)
{
    const struct asym_rtx_options o = read_options(options);
    const char *dir = o.dir ? o.dir : secure_getenv(ASYM_RTX_DIR_ENV);
    const uint32_t n = o.n_slots ? o.n_slots : ASYM_RTX_SLOTS_DEFAULT;
    if (!dir || !*dir || strlen(dir) >= sizeof p->dir)
        dir = ASYM_RTX_DIR;
    memcpy(p->dir, dir, strlen(dir) + 1);
    const uint32_t usec = o.notify_min_usec ? o.notify_min_usec : notify_min_of_environment();
    p->notify_min = (usec < ASYM_RTX_NOTIFY_MIN_MAX ? usec : ASYM_RTX_NOTIFY_MIN_MAX) * UINT64_C(1000);
    p->pid = getpid();
    return asym_rtx_page_make(p, n < ASYM_RTX_SLOTS_MAX ? n : ASYM_RTX_SLOTS_MAX);
}

ASYM_RTX_API int asym_rtx_join(const struct asym_rtx_options *options)
{
    struct asym_rtx_process *p = &asym_rtx_process;
    int r = 0;
    const int error = errno;
    pthread_once(&once, set_up_once);
    pthread_mutex_lock(&p->lock);
    if (!p->page)
        r = make(p, options);
    p->left = false;
    /* After a fork that ran no handlers, the page is still the parent's. */
    if (r == 0 && p->pid != getpid())
        become_child(p);
    if (r == 0)
        asym_rtx_check(p);
    pthread_mutex_unlock(&p->lock);
    errno = error;
    return r;
}

ASYM_RTX_API void asym_rtx_leave(void)
{
    struct asym_rtx_process *p = &asym_rtx_process;
    const int error = errno;
    pthread_mutex_lock(&p->lock);
    p->left = true;
    p->join_at = 0;
    asym_rtx_disconnect(p);
    pthread_mutex_unlock(&p->lock);
    errno = error;
}

ASYM_RTX_API int asym_rtx_is_joined(void)
{
    return __atomic_load_n(&asym_rtx_process.file.fd, __ATOMIC_RELAXED) >= 0;
}

ASYM_RTX_API struct asym_rtx_slot *asym_rtx_thread(void)
{
    struct asym_rtx_process *p = &asym_rtx_process;
    if (self.slot)
        return self.slot;
    if (!__atomic_load_n(&p->page, __ATOMIC_ACQUIRE) || self.skip > 0) {
        self.skip -= self.skip > 0;
        return NULL;
    }
    const int error = errno;
    struct asym_rtx_slot *slot = asym_rtx_page_take(p, (int32_t)syscall(SYS_gettid));
    if (slot && has_key && pthread_setspecific(at_end, slot) == 0) {
        self.slot = slot;
        asym_rtx_set(slot, ASYM_RTX_WORKING);
    } else if (slot) {
        asym_rtx_page_give(p, slot);
    }
    if (!self.slot)
        self.skip = TRY_AGAIN;
    errno = error;
    return self.slot;
}

ASYM_RTX_API void asym_rtx_thread_leave(void)
{
    if (!self.slot)
        return;
    pthread_setspecific(at_end, NULL);
    thread_ends(self.slot);
    self.history = HISTORY_UNKNOWN;
    self.tells = false;
}

/* Clear and set marks in the calling thread's word. The thread works. */
static void mark(struct asym_rtx_slot *slot, uint64_t off, uint64_t on)
{
    const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_RELAXED) & ~(off | ASYM_RTX_STATE);
    __atomic_store_n(&slot->word, (word | on | ASYM_RTX_WORKING) + ASYM_RTX_CHANGE, __ATOMIC_RELAXED);
}

ASYM_RTX_API void asym_rtx_master(int is_master)
{
    struct asym_rtx_slot *slot = asym_rtx_thread();
    if (slot)
        mark(slot, ASYM_RTX_MARKS, is_master ? ASYM_RTX_MASTER : 0);
}

static void update_if_due(struct asym_rtx_process *p, uint64_t now)
{
    const int error = errno;
    if (now < __atomic_load_n(&p->update_at, __ATOMIC_RELAXED))
        return;
    /* After a fork that ran no handlers, the page is still the parent's. */
    if (p->pid != getpid())
        become_child(p);
    asym_rtx_update(p, now);
    errno = error;
}

ASYM_RTX_API void asym_rtx_serial_begin(void)
{
    struct asym_rtx_process *p = &asym_rtx_process;
    struct asym_rtx_slot *slot = asym_rtx_thread();
    if (!slot)
        return;
    mark(slot, 0, ASYM_RTX_PHASES | ASYM_RTX_SERIAL);
    const uint64_t now = self.serial_since = asym_rtx_now();
    self.tells = self.history != 0;
    if (self.tells)
        asym_rtx_notify(p, now);
    update_if_due(p, now);
}

ASYM_RTX_API void asym_rtx_serial_end(void)
{
    struct asym_rtx_process *p = &asym_rtx_process;
    struct asym_rtx_slot *slot = asym_rtx_thread();
    if (!slot)
        return;
    mark(slot, ASYM_RTX_SERIAL, ASYM_RTX_PHASES);
    const uint64_t now = asym_rtx_now();
    const bool was_long = now - self.serial_since >= p->notify_min;
    self.history = (unsigned char)(self.history << 1 | was_long);
    if (self.tells || was_long)
        asym_rtx_notify(p, now);
    self.tells = false;
}
