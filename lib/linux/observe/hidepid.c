/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/hidepid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/sys/helper-process.h"

/* "22 27 0:21 / /proc rw,relatime - proc proc rw,hidepid=2". The kernel escapes spaces, so " - " ends the optional fields. */
static const char *options_of(const char *line, dev_t dev)
{
    unsigned major, minor;
    if (sscanf(line, "%*u %*u %u:%u ", &major, &minor) != 2 || makedev(major, minor) != dev)
        return NULL;
    const char *at = strstr(line, " - proc ");
    at = at ? strchr(at + strlen(" - proc "), ' ') : NULL;
    return at ? at + 1 : NULL;
}

/* Options of the file system, by commas. Kernels before 5.8 write numbers, later ones words: "invisible", "off". */
static bool hides(const char *options)
{
    static const char key[] = "hidepid=";
    for (const char *at = options; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        if (strncmp(at, key, strlen(key)) != 0)
            continue;
        const char *value = at + strlen(key);
        const size_t len = strcspn(value, ",\n");
        return !(len == 1 && *value == '0') && !(len == 3 && strncmp(value, "off", 3) == 0);
    }
    return false;
}

/* All mounts of one file system show the same options of it, so the first line counts. */
static int find(FILE *f, dev_t dev)
{
    ASYM_AUTO_FREE char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, f) >= 0) {
        const char *options = options_of(line, dev);
        if (options)
            return hides(options);
    }
    return ferror(f) ? -EIO : -ENOENT;
}

int asym_hidepid_read(const struct asym_root *root)
{
    struct stat st;
    if (fstatat(root->fd, "proc", &st, 0) < 0)
        return -errno;
    const int fd = asym_root_openat(root, "proc/self/mountinfo", O_RDONLY);
    if (fd < 0)
        return fd;
    ASYM_AUTO_FCLOSE FILE *f = fdopen(fd, "r");
    if (f)
        return find(f, st.st_dev);
    close(fd);
    return -ENOMEM;
}

void asym_hidepid_watch_init(struct asym_hidepid_watch *w, const char *program, asym_usec now)
{
    *w = (struct asym_hidepid_watch){.helper = ASYM_HELPER_INIT(program, "hidepid"), .answered_at = now, .hides = true};
}

/* Returns the answer; -EAGAIN: there is none. */
static int take_answer(struct asym_hidepid_watch *w)
{
    char packet[ASYM_HELPER_PACKET];
    int32_t answer = -EIO;
    const ssize_t n = asym_helper_report(&w->helper, packet, sizeof packet);
    if (n == -EAGAIN)
        return -EAGAIN;
    w->asked = false;
    if (n == sizeof answer)
        memcpy(&answer, packet, sizeof answer);
    if (n < 0)
        asym_helper_kill(&w->helper); /* it has ended by itself */
    /* asymd trusts no helper with a number that has no meaning. */
    return answer == 0 || answer == 1 ? answer : -EIO;
}

static int request(struct asym_hidepid_watch *w, asym_usec now)
{
    static const char order = 'h';
    int r = w->helper.pid > 0 ? 0 : asym_helper_start(&w->helper, NULL);
    if (r >= 0)
        r = asym_helper_order(&w->helper, &order, sizeof order);
    if (r == -ENOTCONN)
        asym_helper_kill(&w->helper);
    w->asked = r >= 0;
    w->asked_at = now;
    return r;
}

/* The last answer holds for the same time whatever keeps asymd from a new one: a user can cause most of these errors. */
int asym_hidepid_watch_update(struct asym_hidepid_watch *w, asym_usec now)
{
    asym_helper_reap(&w->helper);
    const int answer = w->asked ? take_answer(w) : -EAGAIN;
    if (answer >= 0) {
        w->hides = answer;
        w->answered_at = now;
    }
    const bool is_late = now - w->answered_at > ASYM_HIDEPID_WITHIN;
    w->hides |= is_late;
    if (w->asked && now - w->asked_at > ASYM_HIDEPID_WITHIN) {
        asym_helper_kill(&w->helper);
        w->asked = false;
    }
    const int r = w->asked ? 0 : request(w, now);
    if (answer >= 0)
        return 0;
    if (answer != -EAGAIN)
        return answer;
    return r < 0 && r != -EAGAIN ? r : is_late ? -ETIMEDOUT : -EAGAIN;
}

void asym_hidepid_watch_done(struct asym_hidepid_watch *w)
{
    if (!w->helper.program)
        return;
    asym_helper_kill(&w->helper);
    asym_helper_reap(&w->helper);
    *w = (struct asym_hidepid_watch){.asked = false};
}

int asym_hidepid_run(int orders, int reports)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    char order;
    if (asym_root_open(NULL, &root, NULL) < 0)
        return 1;
    while (asym_helper_next_order(orders, &order, sizeof order) > 0) {
        const int32_t answer = asym_hidepid_read(&root);
        if (asym_helper_say(reports, &answer, sizeof answer) < 0)
            return 1;
    }
    return 0;
}
