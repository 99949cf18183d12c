/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/namespace.h"
#include "support/test.h"

#include <sched.h>
#include <sys/mount.h>

int asym_namespace_enter(void)
{
    if (unshare(CLONE_NEWNS) < 0) {
        print_error("unshare(CLONE_NEWNS): %s: this test needs root\n", strerror(errno));
        return -1;
    }
    /* A shared mount would propagate the test's mounts to the original namespace. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        print_error(
            "mount(/, MS_PRIVATE): %s: this test needs a root that is a mount point, as a plain chroot is not\n",
            strerror(errno));
        return -1;
    }
    return 0;
}

int asym_namespace_cover(const char *source, const char *target)
{
    if (mount(source, target, NULL, MS_BIND, NULL) < 0) {
        print_error("mount(%s, %s, MS_BIND): %s\n", source, target, strerror(errno));
        return -1;
    }
    return 0;
}
