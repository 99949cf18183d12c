/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/hear.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/macro.h"

#define PATIENCE ASYM_SEC
#define BETWEEN  (5 * ASYM_MSEC)

enum { TO_ASK, ASKED, DONE };

struct hearing {
    struct asym_proc_reader *reader;
    const struct asym_snapshot *s;
    enum asym_speech *speech;
    unsigned char *stages; /* of each application */
    size_t n_left;
};

static uint32_t owner_of(int32_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 ? st.st_uid : 0;
}

/* What cannot be asked now is asked again. */
static void ask(struct hearing *h)
{
    for (size_t a = 0; a < h->s->n_apps; a++) {
        const struct asym_app *app = &h->s->apps[a];
        if (h->stages[a] != TO_ASK)
            continue;
        const struct asym_read_request request = {.pid = app->id.tgid,
                                                  .what = ASYM_READ_MAPS,
                                                  .start = app->id.start,
                                                  .uid = owner_of(app->id.tgid),
                                                  .tag = (uint32_t)a,
                                                  .maps_most = ASYM_READ_MAPS_FIRST};
        if (h->reader->ask(h->reader, &request) == 0)
            h->stages[a] = ASKED;
    }
}

static void take(struct hearing *h)
{
    struct asym_read_answer answer;
    while (h->reader->take(h->reader, &answer) > 0) {
        const size_t a = answer.tag;
        /* Answers to what was asked for a look come, too. */
        if (a >= h->s->n_apps || answer.what != ASYM_READ_MAPS || h->s->apps[a].id.tgid != answer.pid ||
            h->stages[a] != ASKED)
            continue;
        h->stages[a] = answer.error == -EAGAIN ? TO_ASK : DONE;
        h->n_left -= h->stages[a] == DONE && answer.error != -ETIME;
        h->speech[a] = asym_speech_of(answer.maps, h->s, &h->s->apps[a]);
    }
}

static void hear_all(struct hearing *h)
{
    const struct timespec between = {.tv_nsec = (long)BETWEEN * 1000};
    const asym_usec end = asym_run_now() + PATIENCE;
    for (size_t a = 0; a < h->s->n_apps; a++) {
        h->speech[a] = asym_speech_of(0, h->s, &h->s->apps[a]);
        h->stages[a] = asym_speech_needs_maps(&h->s->apps[a]) ? TO_ASK : DONE;
        h->n_left += h->stages[a] == TO_ASK;
    }
    while (h->n_left > 0 && asym_run_now() < end) {
        ask(h);
        take(h);
        if (h->n_left > 0)
            nanosleep(&between, NULL);
    }
}

enum asym_speech *asym_hear(const struct asym_lookout *lookout, const struct asym_snapshot *s, uint32_t *ret_unread)
{
    struct hearing h = {.reader = lookout->reader, .s = s, .speech = calloc(s->n_apps + 1, sizeof *h.speech)};
    ASYM_AUTO_FREE unsigned char *stages = calloc(s->n_apps + 1, 1);
    if (!h.speech || !stages) {
        free(h.speech);
        return NULL;
    }
    h.stages = stages;
    if (h.reader)
        hear_all(&h);
    *ret_unread = (uint32_t)h.n_left;
    return h.speech;
}
