/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The detection of RTX in a dry run: which programs count as unread, and that it waits for no answer that cannot come. */

#include "app/machine-check.h"
#include "linux/sys/proc-parse.h"
#include "support/tree.h"
#include "support/test.h"

#define PID 10

enum { NEVER = 1 }; /* no answer comes */

/* Refuses `refusals` requests, then answers each with the error. */
struct fake_reader {
    struct asym_proc_reader port;
    int refusal, error;
    unsigned refusals, n_requests, n_taken;
    struct asym_read_request last_request;
    bool has_request;
};

static int ask(struct asym_proc_reader *port, const struct asym_read_request *request)
{
    struct fake_reader *r = (struct fake_reader *)(void *)port;
    r->n_requests++;
    if (r->refusals > 0) {
        r->refusals--;
        return r->refusal;
    }
    r->last_request = *request;
    r->has_request = true;
    return 0;
}

static int take(struct asym_proc_reader *port, struct asym_read_answer *ret)
{
    struct fake_reader *r = (struct fake_reader *)(void *)port;
    r->n_taken++;
    if (!r->has_request || r->error == NEVER)
        return 0;
    r->has_request = false;
    *ret = (struct asym_read_answer){.pid = r->last_request.pid,
                                     .what = r->last_request.what,
                                     .start = r->last_request.start,
                                     .tag = r->last_request.tag,
                                     .error = r->error,
                                     .maps = r->error == 0 ? ASYM_MAPS_PAGE : 0};
    if (r->error == -EAGAIN)
        r->error = 0;
    return 1;
}

#define UID "Uid:\t2002\t2002\t2002\t2002\n"

static const struct {
    const char *status; /* of the process; NULL: it has ended */
    int refusal;
    unsigned refusals;
    int error; /* of the answer */
    unsigned n_requests, unread;
    enum asym_rtxd_detection detection;
} cases[] = {
    {.status = UID, .n_requests = 1, .detection = ASYM_RTXD_DETECTION_REPORTS},
    /* A process that has ended is not unread, whether asymd or the helper finds that out. */
    {.status = NULL, .n_requests = 0},
    {.status = UID, .error = -ESRCH, .n_requests = 1},
    /* Its user is unknown. */
    {.status = "Name:\tx\n", .n_requests = 0, .unread = 1},
    /* The reader puts it off, refuses it, or has no helper. */
    {.status = UID, .refusal = -EAGAIN, .refusals = 3, .n_requests = 4, .detection = ASYM_RTXD_DETECTION_REPORTS},
    {.status = UID, .error = -EAGAIN, .n_requests = 2, .detection = ASYM_RTXD_DETECTION_REPORTS},
    {.status = UID, .refusal = -EPERM, .refusals = 1, .n_requests = 1, .unread = 1},
    {.status = UID, .refusal = -ENOENT, .refusals = 1, .n_requests = 1, .unread = 1},
    /* The helper hangs, or ends. */
    {.status = UID, .error = -ETIME, .n_requests = 1, .unread = 1},
    {.status = UID, .error = -EPIPE, .n_requests = 1, .unread = 1},
    {.status = UID, .error = -EACCES, .n_requests = 1, .unread = 1},
};

static void detect(const struct tree *tree, struct fake_reader *reader, uint32_t *ret_unread,
                   enum asym_rtxd_detection *ret)
{
    struct asym_root root;
    const struct asym_app app = {.id = {.tid = PID, .tgid = PID, .start = 5}};
    const struct asym_snapshot s = {.apps = &app, .n_apps = 1};
    reader->port = (struct asym_proc_reader){.ask = ask, .take = take};
    assert_int_equal(asym_root_open(tree->path, &root, NULL), 0);
    ASYM_AUTO_FREE enum asym_rtxd_detection *detection = asym_rtxd_programs_detect(&root, &reader->port, &s,
                                                                                   ret_unread);
    assert_non_null(detection);
    *ret = detection[0];
    asym_root_done(&root);
}

TEST(only_a_process_that_has_ended_is_not_reported)
{
    struct tree tree;
    tree_make(&tree);
    tree_machine(&tree, "0", "0");
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct fake_reader reader = {
            .refusal = cases[i].refusal, .refusals = cases[i].refusals, .error = cases[i].error};
        uint32_t unread;
        enum asym_rtxd_detection detection;
        if (cases[i].status)
            tree_write(&tree, "proc/10/status", "%s", cases[i].status);
        else
            tree_unlink(&tree, "proc/10/status");
        detect(&tree, &reader, &unread, &detection);
        assert_int_equal(reader.n_requests, cases[i].n_requests);
        /* While it waits, it looks for answers 200 times in its second. */
        assert_true(reader.n_taken <= 2 * cases[i].n_requests + 1);
        assert_int_equal(unread, cases[i].unread);
        assert_int_equal(detection, cases[i].detection);
    }
    tree_remove(&tree);
}

TEST(one_without_an_answer_is_unread_in_the_end)
{
    struct tree tree;
    struct fake_reader reader = {.error = NEVER};
    uint32_t unread;
    enum asym_rtxd_detection detection;
    tree_make(&tree);
    tree_machine(&tree, "0", "0");
    tree_write(&tree, "proc/10/status", "%s", UID);
    detect(&tree, &reader, &unread, &detection);
    assert_int_equal(unread, 1);
    assert_int_equal(detection, ASYM_RTXD_DETECTION_NONE);
    tree_remove(&tree);
}

TEST_MAIN
