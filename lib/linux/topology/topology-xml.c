/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks a file of hwloc XML before hwloc loads it. hwloc returns EINVAL for every fault, and crashes on some files that were
 * changed by hand (2.9: on 12 of 500 mutated files).
 */
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/parse.h"
#include "linux/topology/topology-internal.h"

/* The XML of 1024 CPUs with every cache and device is about 2 MB. */
#define MAX_XML ((size_t)32 << 20)

static int read_whole(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int error = -errno;
        return asym_fail(err, error, "%s: %s", path, strerror(-error));
    }
    if (!S_ISREG(st.st_mode))
        return asym_fail(err, -EINVAL, "%s: not a file of hwloc XML: no regular file", path);
    if (st.st_size > (off_t)MAX_XML)
        return asym_fail(err, -EINVAL, "%s: not a file of hwloc XML: larger than %zu MiB", path, MAX_XML >> 20);
    const size_t size = (size_t)st.st_size;
    ASYM_AUTO_FREE char *text = malloc(size + 1);
    if (!text)
        return asym_fail(err, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
    const ssize_t len = asym_read_all(fd, text, size);
    if (len < 0)
        return asym_fail(err, (int)len, "%s: %s", path, strerror((int)-len));
    text[len] = '\0';
    *ret_text = ASYM_TAKE(text);
    *ret_len = (size_t)len;
    return 0;
}

/* Returns the major number of version="2.0" in the topology element; 1 without the attribute, which hwloc 1 did not write. */
static uint64_t major_of(const char *element)
{
    const char *end = element + strcspn(element, ">");
    const char *at = strstr(element, "version=\"");
    if (!at || at > end)
        return 1;
    at += strlen("version=\"");
    uint64_t major;
    return asym_parse_u64(at, strspn(at, "0123456789"), &major) < 0 ? 0 : major;
}

int asym_topology_read_xml(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t len = 0;
    int r = read_whole(path, &text, &len, err);
    if (r < 0)
        return r;
    if (len == 0)
        return asym_fail(err, -EINVAL, "%s: not hwloc XML: the file is empty", path);
    /* strlen: XML contains no NUL, and the parser would not see the bytes after one. */
    const char *element = strlen(text) == len ? strstr(text, "<topology") : NULL;
    if (!element || !strchr(" \t\r\n>", element[strlen("<topology")]))
        return asym_fail(err, -EINVAL,
                         "%s: not hwloc XML: the file has no topology element (lstopo FILE.xml writes one)", path);
    uint64_t major = major_of(element);
    if (major != 1 && major != 2)
        return asym_fail(err, -EINVAL,
                         "%s: a newer hwloc wrote this; hwloc %s of this machine reads XML of version 2: export it "
                         "there with lstopo --export-xml-flags v2 FILE.xml",
                         path, HWLOC_VERSION);
    if (!strstr(element, "</topology>"))
        return asym_fail(err, -EINVAL, "%s: incomplete hwloc XML: the end is missing", path);
    *ret_text = ASYM_TAKE(text);
    *ret_len = len;
    return 0;
}
