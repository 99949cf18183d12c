/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/rtx-programs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/observe/proc-owner.h"

#define PATIENCE ASYM_SEC
#define BETWEEN  (5 * ASYM_MSEC)

enum { TO_ASK, ASKED, DONE };

struct detector {
    const struct asym_root *root;
    struct asym_proc_reader *reader;
    const struct asym_snapshot *s;
    enum asym_rtxd_detection *detection;
    unsigned char *stages; /* of each application: TO_ASK, ASKED or DONE */
    size_t n_left;         /* applications that are not DONE */
    size_t n_failed;       /* applications that are DONE, but could not be read */
};

static void finish(struct detector *d, size_t a, bool has_failed)
{
    d->stages[a] = DONE;
    d->n_left--;
    d->n_failed += has_failed;
}

static void ask_about(struct detector *d, size_t a)
{
    const struct asym_app *app = &d->s->apps[a];
    struct asym_read_request request = {.pid = app->id.tgid,
                                        .what = ASYM_READ_MAPS,
                                        .start = app->id.start,
                                        .tag = (uint32_t)a,
                                        .maps_most = ASYM_READ_MAPS_FIRST};
    const int unknown = asym_proc_payer(d->root, request.pid, &request.uid, NULL);
    if (unknown < 0) {
        /* ESRCH: it ended after the kernel had opened the file. */
        finish(d, a, unknown != -ENOENT && unknown != -ESRCH);
        return;
    }
    const int r = d->reader->ask(d->reader, &request);
    if (r == 0)
        d->stages[a] = ASKED;
    else if (r != -EAGAIN)
        finish(d, a, true);
}

/* Sends the requests that are left. A request that the reader puts off is sent again later. */
static void ask(struct detector *d)
{
    for (size_t a = 0; a < d->s->n_apps; a++)
        if (d->stages[a] == TO_ASK)
            ask_about(d, a);
}

static void take(struct detector *d)
{
    struct asym_read_answer answer;
    while (d->reader->take(d->reader, &answer) > 0) {
        const size_t a = answer.tag;
        /* The reader also returns answers to requests of the sample. */
        if (a >= d->s->n_apps || answer.what != ASYM_READ_MAPS || d->s->apps[a].id.tgid != answer.pid ||
            d->stages[a] != ASKED)
            continue;
        if (answer.error == -EAGAIN) {
            d->stages[a] = TO_ASK;
            continue;
        }
        finish(d, a, answer.error < 0 && answer.error != -ESRCH);
        d->detection[a] = asym_rtxd_detect(answer.maps, d->s, &d->s->apps[a]);
    }
}

static void detect_all(struct detector *d)
{
    const struct timespec between = {.tv_nsec = (long)BETWEEN * 1000};
    const asym_usec end = asym_clock_now() + PATIENCE;
    for (size_t a = 0; a < d->s->n_apps; a++) {
        d->detection[a] = asym_rtxd_detect(0, d->s, &d->s->apps[a]);
        d->stages[a] = asym_rtxd_detection_needs_maps(&d->s->apps[a]) ? TO_ASK : DONE;
        d->n_left += d->stages[a] == TO_ASK;
    }
    while (d->n_left > 0 && asym_clock_now() < end) {
        ask(d);
        take(d);
        if (d->n_left > 0)
            nanosleep(&between, NULL);
    }
}

enum asym_rtxd_detection *asym_rtxd_programs_detect(const struct asym_root *root, struct asym_proc_reader *reader,
                                                    const struct asym_snapshot *s, uint32_t *ret_unread)
{
    struct detector d = {
        .root = root, .reader = reader, .s = s, .detection = calloc(s->n_apps + 1, sizeof *d.detection)};
    ASYM_AUTO_FREE unsigned char *stages = calloc(s->n_apps + 1, 1);
    if (!d.detection || !stages) {
        free(d.detection);
        return NULL;
    }
    d.stages = stages;
    if (d.reader)
        detect_all(&d);
    *ret_unread = (uint32_t)(d.n_left + d.n_failed);
    return d.detection;
}
