/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client library without memory: resource limits replace a machine that refuses it (vm.overcommit_memory = 2). The program
 * goes on as if asymd did not run. Each test runs in its own process.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include <asym/rtx.h>

#include "support/process.h"
#include "support/listener.h"
#include "support/must.h"
#include "support/test.h"

static struct asym_listener listener;

static void listen_or_not(bool on)
{
    char away[128];
    snprintf(away, sizeof away, "%s.away", listener.path);
    MUST(rename(on ? away : listener.path, on ? listener.path : away) == 0);
}

/* The library creates a file at most once a second. */
static void join_in_time(void)
{
    for (int i = 0; i < 2000 && !asym_rtx_is_joined(); i++) {
        MUST(asym_rtx_join(NULL) == 0);
        usleep(5000);
    }
    MUST(asym_rtx_is_joined());
}

static void limit(__rlimit_resource_t what, rlim_t to)
{
    struct rlimit l;
    MUST(getrlimit(what, &l) == 0);
    l.rlim_cur = to;
    MUST(setrlimit(what, &l) == 0);
}

static void call_everything(struct asym_rtx_slot *slot)
{
    asym_rtx_set(slot, ASYM_RTX_SPINNING);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    asym_rtx_serial_end();
    asym_rtx_set(slot, ASYM_RTX_WORKING);
    asym_rtx_thread_leave();
    asym_rtx_leave();
}

static void has_no_memory(void)
{
    limit(RLIMIT_AS, 0);
    MUST(asym_rtx_join(NULL) == -ENOMEM);
    MUST(!asym_rtx_thread());
    call_everything(NULL);
    limit(RLIMIT_AS, RLIM_INFINITY);
    join_in_time();
    MUST(asym_rtx_thread());
}

TEST(without_memory_nothing_is_reported_until_there_is_some)
{
    asym_listener_run(&listener, has_no_memory);
}

/* A file longer than the limit would raise SIGXFSZ. */
static void may_write_no_file(void)
{
    limit(RLIMIT_FSIZE, 0);
    MUST(asym_rtx_join(NULL) == 0);
    MUST(!asym_rtx_is_joined());
    call_everything(asym_rtx_thread());
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
    join_in_time();
    limit(RLIMIT_FSIZE, 0);
    call_everything(asym_rtx_thread());
}

TEST(under_a_limit_on_files_nothing_is_reported)
{
    asym_listener_run(&listener, may_write_no_file);
}

/* The program has its own page, and gets no memory for asymd's page. */
static void can_map_no_more(void)
{
    listen_or_not(false);
    MUST(asym_rtx_join(NULL) == 0);
    MUST(!asym_rtx_is_joined());
    struct asym_rtx_slot *slot = asym_rtx_thread();
    MUST(slot);
    listen_or_not(true);
    limit(RLIMIT_AS, 0);
    sleep(2);
    MUST(asym_rtx_join(NULL) == 0 && !asym_rtx_is_joined() && asym_rtx_thread() == slot);
    asym_rtx_set(slot, ASYM_RTX_SPINNING);
    limit(RLIMIT_AS, RLIM_INFINITY);
    join_in_time();
    MUST(asym_rtx_thread() == slot && (slot->word & ASYM_RTX_STATE) == ASYM_RTX_SPINNING);
}

TEST(a_page_that_cannot_be_mapped_is_left_alone)
{
    asym_listener_run(&listener, can_map_no_more);
}

/* A slot's address from the parent stays valid in the child, with or without a page. */
static void forks_without_memory(void)
{
    int status;
    join_in_time();
    struct asym_rtx_slot *slot = asym_rtx_thread();
    MUST(slot);
    limit(RLIMIT_AS, 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        MUST(!asym_rtx_thread());
        call_everything(slot);
        MUST(!asym_rtx_is_joined());
        _exit(0);
    }
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    MUST(asym_rtx_is_joined() && asym_rtx_thread() == slot);
}

TEST(a_child_without_memory_reports_nothing)
{
    asym_listener_run(&listener, forks_without_memory);
}

TEST_MAIN
