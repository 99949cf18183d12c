/* SPDX-License-Identifier: MIT */
/*
 * The page and its slots. The page is made once and never moves, so that threads may keep the address of their slot: what
 * is behind the address is exchanged, by mapping over it.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since Linux 6.3; older ones refuse the flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

_Static_assert(sizeof(struct asym_rtx_header) == ASYM_RTX_LINE, "as the contract has it");
_Static_assert(sizeof(struct asym_rtx_slot) == ASYM_RTX_LINE, "one cache line each");

static struct asym_rtx_slot *slots_of(struct asym_rtx_header *h)
{
    return (struct asym_rtx_slot *)(void *)((char *)h + sizeof *h);
}

static void fill_header(const struct asym_rtx_process *p, struct asym_rtx_header *h, uint32_t n_slots)
{
    *h = (struct asym_rtx_header){
        .magic = ASYM_RTX_MAGIC,
        .version = ASYM_RTX_VERSION,
        .header_size = sizeof *h,
        .slot_size = sizeof(struct asym_rtx_slot),
        .n_slots = n_slots,
        .notify_min_usec = (uint32_t)(p->notify_min / 1000),
    };
}

int asym_rtx_page_make(struct asym_rtx_process *p, uint32_t n_slots)
{
    const size_t line = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = sizeof(struct asym_rtx_header) + n_slots * sizeof(struct asym_rtx_slot);
    p->size = (size + line - 1) / line * line;
    void *page = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return -ENOMEM;
    fill_header(p, page, n_slots);
    __atomic_store_n(&p->page, page, __ATOMIC_RELEASE);
    return 0;
}

/*
 * Nobody maps it for writing any more, nor takes memory out of it, but what is mapped stays so. Kernels before 5.1 do not know
 * of that, and asymd does not take the page there.
 */
static bool seal(int fd)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    return fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0;
}

/* A file that is longer than it may be is not only refused: SIGXFSZ would end the program. */
static bool may_be_as_long(size_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size;
}

static int make_memfd(size_t size)
{
    if (!may_be_as_long(size))
        return -EFBIG;
    int fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)size) < 0) {
        const int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/*
 * A change that another thread makes between the copy and the mapping is lost, and made good by its next one. That is rare:
 * mostly the page is published when it is made.
 */
int asym_rtx_page_publish(struct asym_rtx_process *p)
{
    if (p->published)
        return 0;
    int fd = make_memfd(p->size);
    if (fd < 0)
        return fd;
    /* Where only the sealing fails the page is there all the same, and is exchanged the next time. */
    if (pwrite(fd, p->page, p->size, 0) != (ssize_t)p->size ||
        mmap(p->page, p->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED || !seal(fd)) {
        close(fd);
        return -ENOMEM;
    }
    p->memfd = asym_rtx_fd_own(fd);
    p->published = true;
    return 0;
}

/*
 * Memory of our own in the page's place. Elsewhere first: where there is none to be had (vm.overcommit_memory = 2), kernels
 * before 6.12 have taken away what was there by the time they find out, and threads still store to it.
 */
static bool map_over(void *page, size_t size)
{
    void *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return false;
    if (mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page)
        return true;
    munmap(fresh, size);
    return false;
}

void asym_rtx_page_part(struct asym_rtx_process *p, const struct asym_rtx_slot *keep)
{
    const uint32_t n_slots = p->page->n_slots;
    const uint64_t word = keep ? __atomic_load_n(&keep->word, __ATOMIC_RELAXED) : 0;
    p->published = false;
    struct asym_rtx_header *page = p->page;
    /*
     * The page stays the parent's then, and who asks for a slot gets none. The one thread that there is may still write to the
     * slot it holds, which is that of the parent's thread that forked, until that one says something itself.
     */
    if (!map_over(page, p->size)) {
        __atomic_store_n(&p->page, NULL, __ATOMIC_RELEASE);
        return;
    }
    fill_header(p, page, n_slots);
    if (!keep)
        return;
    struct asym_rtx_slot *slot = slots_of(page) + (keep - slots_of(page));
    slot->word = word;
    slot->tid = (int32_t)syscall(SYS_gettid);
    p->page->n_used = (uint32_t)(slot - slots_of(page)) + 1;
}

static void note_used(struct asym_rtx_header *h, uint32_t n)
{
    uint32_t had = __atomic_load_n(&h->n_used, __ATOMIC_RELAXED);
    while (had < n && !__atomic_compare_exchange_n(&h->n_used, &had, n, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static struct asym_rtx_slot *take_free(struct asym_rtx_header *h, int32_t tid)
{
    struct asym_rtx_slot *slots = slots_of(h);
    for (uint32_t i = 0; i < h->n_slots; i++) {
        int32_t nobody = 0;
        if (__atomic_load_n(&slots[i].tid, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&slots[i].tid, &nobody, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            note_used(h, i + 1);
            return &slots[i];
        }
    }
    return NULL;
}

/* Threads that ended past pthread_exit have left their slots behind. */
static void reclaim(struct asym_rtx_process *p, struct asym_rtx_header *h)
{
    struct asym_rtx_slot *slots = slots_of(h);
    for (uint32_t i = 0; i < h->n_slots; i++) {
        int32_t tid = __atomic_load_n(&slots[i].tid, __ATOMIC_RELAXED);
        if (tid == 0 || syscall(SYS_tgkill, p->pid, tid, 0) == 0 || errno != ESRCH)
            continue;
        __atomic_store_n(&slots[i].word, 0, __ATOMIC_RELAXED);
        __atomic_compare_exchange_n(&slots[i].tid, &tid, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

struct asym_rtx_slot *asym_rtx_page_take(struct asym_rtx_process *p, int32_t tid)
{
    struct asym_rtx_header *h = __atomic_load_n(&p->page, __ATOMIC_ACQUIRE);
    if (!h)
        return NULL;
    struct asym_rtx_slot *slot = take_free(h, tid);
    if (!slot) {
        reclaim(p, h);
        slot = take_free(h, tid);
    }
    return slot;
}

void asym_rtx_page_give(struct asym_rtx_slot *slot)
{
    __atomic_store_n(&slot->word, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->tid, 0, __ATOMIC_RELEASE);
}
