/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of pages: made by asymd, and read without ever being mapped (rtx-server.h). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx-server-internal.h"

/* Since Linux 6.3; older ones refuse the flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Slots that fit a page of memory: fewer are no cheaper to read. */
#define FEW 63

_Static_assert(ASYM_RTX_PAGE_SIZE <= ASYM_RTX_MAX_PAGE, "it is read");

int asym_rtx_make_memfd(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, ASYM_RTX_PAGE_SIZE) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
        const int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/* What cannot be read says nothing. */
static void copy(const struct asym_rtx_client *c, char *to, size_t from, size_t end)
{
    const ssize_t n = pread(c->memfd, to + from, end - from, (off_t)from);
    const size_t got = n > 0 ? (size_t)n : 0;
    memset(to + from + got, 0, end - from - got);
}

int asym_rtx_read_header(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    struct asym_rtx_header h;
    copy(c, s->copy, 0, sizeof h);
    memcpy(&h, s->copy, sizeof h);
    if (h.magic == 0)
        return -EAGAIN;
    return asym_rtx_check_page(s->copy, ASYM_RTX_PAGE_SIZE, &c->layout);
}

/* Mostly in one call, as what is in use only grows. */
size_t asym_rtx_copy_page(struct asym_rtx_server *s, struct asym_rtx_client *c, size_t most)
{
    const struct asym_rtx_layout *l = &c->layout;
    struct asym_rtx_header h;
    most = ASYM_MIN(most, (size_t)l->n_slots);
    const size_t guess = ASYM_MIN(ASYM_MAX(c->n_known, (size_t)FEW * 64 / l->slot_size), most);
    const size_t first = l->header_size + guess * l->slot_size;
    copy(c, s->copy, 0, first);
    memcpy(&h, s->copy, sizeof h);
    const size_t used = ASYM_MIN((size_t)h.n_used, most);
    if (used > guess)
        copy(c, s->copy, first, l->header_size + used * l->slot_size);
    c->n_known = used;
    return used;
}
