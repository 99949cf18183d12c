/* SPDX-License-Identifier: MIT */
/*
 * The page and its slots. The library allocates the page once and never moves it, so that threads may keep the address of their
 * slot. To exchange the memory behind the address, it maps other memory over it. The owners of the slots are kept outside the
 * page: so an exchange during which threads begin and end gives no slot to two threads.
 */
#include "rtx-client-internal.h"

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

/* Fill in the header, except magic. */
static void fill_header(const struct asym_rtx_process *p, struct asym_rtx_header *h)
{
    const uint32_t magic = h->magic;
    *h = (struct asym_rtx_header){
        .magic = magic,
        .version = ASYM_RTX_VERSION,
        .header_size = sizeof *h,
        .slot_size = sizeof(struct asym_rtx_slot),
        .n_slots = p->n_slots,
        .n_used = __atomic_load_n(&p->n_used, __ATOMIC_RELAXED),
        .notify_min_usec = (uint32_t)(p->notify_min / 1000),
    };
}

static void *map_anonymous(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A file longer than RLIMIT_FSIZE would raise SIGXFSZ, which ends the program. */
static bool may_be_as_long(size_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size;
}

/* Map memory of the program. If possible, it has the name by which asymd --check detects programs that use RTX. */
static void *map_own(size_t size)
{
    int fd = -1;
    void *page = MAP_FAILED;
    errno = 0;
    if (may_be_as_long(size))
        fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("asym-rtx", MFD_CLOEXEC);
    if (fd >= 0 && fallocate(fd, 0, 0, (off_t)size) == 0)
        page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return page == MAP_FAILED ? map_anonymous(size) : page;
}

int asym_rtx_page_make(struct asym_rtx_process *p, uint32_t n_slots)
{
    const size_t line = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = sizeof(struct asym_rtx_header) + n_slots * sizeof(struct asym_rtx_slot);
    p->size = (size + line - 1) / line * line;
    p->n_slots = n_slots;
    void *page = map_own(p->size), *owners = map_anonymous(n_slots * sizeof *p->owners);
    if (page == MAP_FAILED || owners == MAP_FAILED) {
        if (page != MAP_FAILED)
            munmap(page, p->size);
        if (owners != MAP_FAILED)
            munmap(owners, n_slots * sizeof *p->owners);
        return -ENOMEM;
    }
    p->owners = owners;
    fill_header(p, page);
    __atomic_store_n(&p->page, page, __ATOMIC_RELEASE);
    return 0;
}

static void note_used(struct asym_rtx_process *p, struct asym_rtx_header *h, uint32_t n)
{
    uint32_t *const where[] = {&p->n_used, &h->n_used};
    for (size_t i = 0; i < 2; i++) {
        uint32_t had = __atomic_load_n(where[i], __ATOMIC_RELAXED);
        while (had < n && !__atomic_compare_exchange_n(where[i], &had, n, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
}

/* Copy the owners to the page. Repeat while a thread takes or frees the slot meanwhile. */
static void repeat_owners(struct asym_rtx_process *p)
{
    struct asym_rtx_slot *slots = slots_of(p->page);
    for (uint32_t i = 0; i < p->n_slots; i++) {
        int32_t tid;
        do {
            tid = __atomic_load_n(&p->owners[i], __ATOMIC_SEQ_CST);
            __atomic_store_n(&slots[i].tid, tid, __ATOMIC_SEQ_CST);
        } while (__atomic_load_n(&p->owners[i], __ATOMIC_SEQ_CST) != tid);
    }
    note_used(p, p->page, __atomic_load_n(&p->n_used, __ATOMIC_SEQ_CST));
}

/*
 * fallocate(2) comes first: without it, a store to memory that the kernel cannot allocate raises SIGBUS. A word that another
 * thread stores between the copy and the exchange is lost; the thread's next store replaces it.
 */
int asym_rtx_page_move(struct asym_rtx_process *p, int file)
{
    if (!may_be_as_long(p->size))
        return -EFBIG;
    if (fallocate(file, 0, 0, (off_t)p->size) < 0)
        return -errno;
    struct asym_rtx_header *fresh = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (fresh == MAP_FAILED)
        return -ENOMEM;
    fill_header(p, fresh);
    memcpy(slots_of(fresh), slots_of(p->page), p->n_slots * sizeof(struct asym_rtx_slot));
    if (mremap(fresh, p->size, p->size, MREMAP_MAYMOVE | MREMAP_FIXED, p->page) != (void *)p->page) {
        munmap(fresh, p->size);
        return -ENOMEM;
    }
    repeat_owners(p);
    __atomic_store_n(&p->page->magic, ASYM_RTX_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

/*
 * Replace the page by memory of this process. Map the new memory elsewhere first: when memory is short
 * (vm.overcommit_memory = 2), kernels before 6.12 unmap the old memory before they fail, and threads still store to it.
 */
static bool map_over(void *page, size_t size)
{
    void *fresh = map_own(size);
    if (fresh == MAP_FAILED)
        return false;
    if (mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page)
        return true;
    munmap(fresh, size);
    return false;
}

void asym_rtx_page_part(struct asym_rtx_process *p, const struct asym_rtx_slot *keep)
{
    const uint64_t word = keep ? __atomic_load_n(&keep->word, __ATOMIC_RELAXED) : 0;
    struct asym_rtx_header *page = p->page;
    /*
     * Without new memory the page stays the parent's, and no thread gets a slot. The only thread may still write to the slot
     * that it holds, which belongs to the parent's thread that forked. That thread's next store replaces the word.
     */
    if (!map_over(page, p->size)) {
        __atomic_store_n(&p->page, NULL, __ATOMIC_RELEASE);
        return;
    }
    memset(p->owners, 0, p->n_slots * sizeof *p->owners);
    p->n_used = 0;
    fill_header(p, page);
    if (!keep)
        return;
    struct asym_rtx_slot *slot = slots_of(page) + (keep - slots_of(page));
    slot->word = word;
    slot->tid = p->owners[slot - slots_of(page)] = (int32_t)syscall(SYS_gettid);
    note_used(p, page, (uint32_t)(slot - slots_of(page)) + 1);
}

static struct asym_rtx_slot *take_free(struct asym_rtx_process *p, struct asym_rtx_header *h, int32_t tid)
{
    struct asym_rtx_slot *slots = slots_of(h);
    for (uint32_t i = 0; i < p->n_slots; i++) {
        int32_t none = 0;
        if (__atomic_load_n(&p->owners[i], __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&p->owners[i], &none, tid, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            __atomic_store_n(&slots[i].tid, tid, __ATOMIC_SEQ_CST);
            note_used(p, h, i + 1);
            return &slots[i];
        }
    }
    return NULL;
}

/* Clear the page before the owner, so that this does not overwrite the next owner's stores. */
static void free_slot(struct asym_rtx_process *p, struct asym_rtx_header *h, uint32_t i, int32_t tid)
{
    struct asym_rtx_slot *slot = &slots_of(h)[i];
    __atomic_store_n(&slot->word, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->tid, 0, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(&p->owners[i], &tid, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Free the slots of threads that ended without pthread_exit(3) and its destructors. */
static void reclaim(struct asym_rtx_process *p, struct asym_rtx_header *h)
{
    for (uint32_t i = 0; i < p->n_slots; i++) {
        const int32_t tid = __atomic_load_n(&p->owners[i], __ATOMIC_RELAXED);
        if (tid != 0 && syscall(SYS_tgkill, p->pid, tid, 0) < 0 && errno == ESRCH)
            free_slot(p, h, i, tid);
    }
}

struct asym_rtx_slot *asym_rtx_page_take(struct asym_rtx_process *p, int32_t tid)
{
    struct asym_rtx_header *h = __atomic_load_n(&p->page, __ATOMIC_ACQUIRE);
    if (!h)
        return NULL;
    struct asym_rtx_slot *slot = take_free(p, h, tid);
    if (!slot) {
        reclaim(p, h);
        slot = take_free(p, h, tid);
    }
    return slot;
}

void asym_rtx_page_give(struct asym_rtx_process *p, struct asym_rtx_slot *slot)
{
    struct asym_rtx_header *h = __atomic_load_n(&p->page, __ATOMIC_ACQUIRE);
    const uint32_t i = (uint32_t)(slot - slots_of(h));
    free_slot(p, h, i, __atomic_load_n(&p->owners[i], __ATOMIC_RELAXED));
}
