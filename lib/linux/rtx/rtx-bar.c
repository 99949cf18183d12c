/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps users that the helper refuses from connecting, by an ACL of the socket. The helper must accept each connection, and
 * cannot close one with files in it while a close of that user hangs. So the kernel must refuse the user at connect(2).
 */
#include "linux/rtx/rtx-bar.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/xattr.h>

#include "linux/rtx/rtx-server-internal.h"

#define ATTRIBUTE   "system.posix_acl_access"
#define NO_ID       ((uid_t)ACL_UNDEFINED_ID)
#define MAY_CONNECT (ACL_READ | ACL_WRITE)

struct acl {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entries[ASYM_RTXD_MAX_BARRED + 4];
};

static struct posix_acl_xattr_entry entry(unsigned tag, unsigned perm, uid_t id)
{
    return (struct posix_acl_xattr_entry){
        .e_tag = htole16((uint16_t)tag), .e_perm = htole16((uint16_t)perm), .e_id = htole32(id)};
}

static int apply(const struct asym_rtxd_server *s)
{
    struct acl acl = {.header.a_version = htole32(POSIX_ACL_XATTR_VERSION)};
    size_t n = 0;
    acl.entries[n++] = entry(ACL_USER_OBJ, MAY_CONNECT, NO_ID);
    for (size_t i = 0; i < s->n_barred; i++)
        acl.entries[n++] = entry(ACL_USER, 0, s->barred[i]);
    acl.entries[n++] = entry(ACL_GROUP_OBJ, MAY_CONNECT, NO_ID);
    acl.entries[n++] = entry(ACL_MASK, MAY_CONNECT, NO_ID);
    acl.entries[n++] = entry(ACL_OTHER, MAY_CONNECT, NO_ID);
    const size_t size = sizeof acl.header + n * sizeof acl.entries[0];
    return setxattr(s->path, ATTRIBUTE, &acl, size, 0) < 0 ? -errno : 0;
}

static size_t find(const struct asym_rtxd_server *s, uid_t uid)
{
    size_t i = 0;
    while (i < s->n_barred && s->barred[i] != uid)
        i++;
    return i;
}

/*
 * An ACL cannot keep root out. A user that the kernel refuses to put into the ACL stays out of the list, or each later ACL
 * would fail, too. In a user namespace this is the overflow user (65534), which stands for all users that are not mapped.
 */
int asym_rtxd_bar(struct asym_rtxd_server *s, uid_t uid)
{
    if (uid == 0 || uid == (uid_t)-1 || find(s, uid) < s->n_barred)
        return 0;
    if (s->n_barred == ASYM_RTXD_MAX_BARRED)
        return -ENOSPC;
    s->barred[s->n_barred++] = uid;
    int r = apply(s);
    s->n_barred -= r < 0;
    return r;
}

void asym_rtxd_unbar(struct asym_rtxd_server *s, uid_t uid)
{
    const size_t i = find(s, uid);
    if (i == s->n_barred)
        return;
    s->barred[i] = s->barred[--s->n_barred];
    apply(s);
}
