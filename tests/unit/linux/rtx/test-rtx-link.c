/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The link shows whether its helper process is runnable, and undoes its set-up. Shell scripts replace the helper. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux/rtx/rtx-link.h"
#include "support/test.h"

static char dir[64], path[96];

static void write_script(const char *text)
{
    snprintf(dir, sizeof dir, "/tmp/asym-link-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/helper", dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", text);
    fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
}

/* The state must be the same in many consecutive reads: the shell is runnable while it starts. */
static bool settles(const char *script, bool runnable)
{
    struct asym_error err = {""};
    int same = 0;
    write_script(script);
    struct asym_rtxd_link *link = asym_rtxd_link_new(path);
    assert_non_null(link);
    assert_false(link->is_runnable(link));
    assert_int_equal(link->start(link, &err), 0);
    for (int i = 0; i < 5000 && same < 100; i++) {
        usleep(1000);
        same = link->is_runnable(link) == runnable ? same + 1 : 0;
    }
    link->kill(link);
    assert_false(link->is_runnable(link));
    link->close(link);
    unlink(path);
    rmdir(dir);
    return same == 100;
}

TEST(a_helper_that_computes_is_runnable)
{
    assert_true(settles("while :; do :; done", true));
}

TEST(a_helper_that_sleeps_is_not_runnable)
{
    assert_true(settles("exec sleep 1000", false));
}

static int is_subreaper(void)
{
    int is_one = -1;
    assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &is_one), 0);
    return is_one;
}

/* An orphan that the caller never reaps would stay a zombie. */
TEST(the_caller_is_a_subreaper_only_while_the_link_is_open)
{
    struct asym_error err = {""};
    write_script("exec sleep 1000");
    for (int before = 0; before < 2; before++) {
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, before), 0);
        struct asym_rtxd_link *link = asym_rtxd_link_new(path);
        assert_non_null(link);
        assert_int_equal(is_subreaper(), before);
        for (int starts = 0; starts < 2; starts++) {
            assert_int_equal(link->start(link, &err), 0);
            assert_int_equal(is_subreaper(), 1);
            link->kill(link);
            assert_int_equal(is_subreaper(), 1);
        }
        link->close(link);
        assert_int_equal(is_subreaper(), before);
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    unlink(path);
    rmdir(dir);
}

TEST_MAIN
