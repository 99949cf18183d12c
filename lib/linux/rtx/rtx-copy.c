/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the memory of pages and copies it. asymd never maps it (rtx-server.h). */
#include "linux/rtx/rtx-copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"

/* Since Linux 6.3; older ones refuse the flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Slots that fit into one page of memory with the header. Reading fewer is no cheaper. */
#define FEW 63
/* A first slot up to this offset is read together with the header, bytes. */
#define NEAR 4096

_Static_assert(ASYM_RTXD_PAGE_SIZE <= ASYM_RTXD_MAX_PAGE, "it is read");

int asym_rtxd_make_memfd(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, ASYM_RTXD_PAGE_SIZE) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
        const int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/* Bytes that pread(2) does not return count as zero. */
static void copy(const struct asym_rtxd_client *c, char *to, size_t from, size_t end)
{
    const ssize_t n = pread(c->memfd, to + from, end - from, (off_t)from);
    const size_t got = n > 0 ? (size_t)n : 0;
    memset(to + from + got, 0, end - from - got);
}

/*
 * Copy the header and what is between the first slot and end. One pread(2) copies the gap before the first slot, too, if that
 * is cheaper than a second call. A program can make the gap as large as the page.
 */
static void copy_header_and_slots(const struct asym_rtxd_client *c, char *to, size_t end)
{
    const size_t slots = c->layout.header_size > NEAR ? c->layout.header_size : 0;
    if (slots > 0)
        copy(c, to, 0, sizeof(struct asym_rtx_header));
    copy(c, to, slots, end);
}

int asym_rtxd_read_header(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    struct asym_rtx_header h;
    copy(c, s->copy, 0, sizeof h);
    memcpy(&h, s->copy, sizeof h);
    if (h.magic == 0)
        return -EAGAIN;
    return asym_rtxd_check_page(s->copy, ASYM_RTXD_PAGE_SIZE, &c->layout);
}

/* One pread(2) suffices for pages of the library in most cases, because the number of used slots only grows. */
size_t asym_rtxd_copy_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most)
{
    const struct asym_rtxd_layout *l = &c->layout;
    struct asym_rtx_header h;
    most = ASYM_MIN(most, (size_t)l->n_slots);
    const size_t guess = ASYM_MIN(ASYM_MAX(c->n_known, (size_t)FEW * 64 / l->slot_size), most);
    const size_t first = l->header_size + guess * l->slot_size;
    copy_header_and_slots(c, s->copy, first);
    memcpy(&h, s->copy, sizeof h);
    const size_t used = ASYM_MIN((size_t)h.n_used, most);
    if (used > guess)
        copy(c, s->copy, first, l->header_size + used * l->slot_size);
    c->n_known = used;
    return used;
}
