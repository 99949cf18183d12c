/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/speech.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

/* Less than this share of an interval is a pause. */
#define ALL_OF_IT 0.99

/* Maps of some programs are of megabytes; libraries and the page stand in the first of them or not at all. */
#define MAPS_MOST (4 << 20)

static bool has(const char *text, size_t len, const char *part)
{
    return memmem(text, len, part, strlen(part)) != NULL;
}

unsigned asym_speech_scan(const char *text, size_t len)
{
    static const struct {
        const char *part;
        unsigned bit;
    } rows[] = {
        {"/memfd:asym-rtx", ASYM_MAPS_PAGE}, {"/libomp.so", ASYM_MAPS_OPENMP},   {"/libomp-", ASYM_MAPS_OPENMP},
        {"/libomp5.so", ASYM_MAPS_OPENMP},   {"/libiomp5.so", ASYM_MAPS_OPENMP}, {"/libgomp.so", ASYM_MAPS_OPENMP},
    };
    unsigned bits = 0;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        bits |= has(text, len, rows[i].part) ? rows[i].bit : 0;
    return bits;
}

/* The part behind the last newline is kept for the next reading. */
unsigned asym_speech_read(const struct asym_root *root, pid_t pid)
{
    char path[64], text[16384];
    size_t kept = 0, total = 0;
    unsigned bits = 0;
    snprintf(path, sizeof path, "proc/%d/maps", (int)pid);
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_RDONLY | O_NONBLOCK);
    while (fd >= 0 && total < MAPS_MOST) {
        ssize_t n = read(fd, text + kept, sizeof text - kept);
        if (n <= 0)
            break;
        const size_t len = kept + (size_t)n;
        const char *end = memrchr(text, '\n', len);
        const size_t whole = end ? (size_t)(end - text) + 1 : len;
        bits |= asym_speech_scan(text, whole);
        kept = len - whole;
        memmove(text, text + whole, kept);
        total += (size_t)n;
    }
    return bits;
}

bool asym_speech_never_pauses(const struct asym_snapshot *s, const struct asym_app *app)
{
    size_t n = 0;
    for (uint32_t i = 0; i < app->n_tasks; i++)
        n += s->tasks[app->first_task + i].runnable >= ALL_OF_IT;
    return n >= 2;
}

enum asym_speech asym_speech_of(const struct asym_root *root, const struct asym_snapshot *s, const struct asym_app *app)
{
    if (app->speaks)
        return ASYM_SPEECH_SPEAKS;
    if (app->cgroup)
        return ASYM_SPEECH_NONE;
    const unsigned bits = asym_speech_read(root, app->id.tgid);
    if (bits & ASYM_MAPS_PAGE)
        return ASYM_SPEECH_SPEAKS;
    return bits & ASYM_MAPS_OPENMP && asym_speech_never_pauses(s, app) ? ASYM_SPEECH_SUSPECT : ASYM_SPEECH_NONE;
}
