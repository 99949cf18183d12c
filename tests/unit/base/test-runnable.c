/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The runnable time of threads by their lines of schedstat and their states. */

#include "linux/sys/proc-parse.h"
#include "support/test.h"

#define MS       1000000ull
#define INTERVAL 100 /* ms */

/* The ms that the kernel credits in an interval, the turns that began in it, and the state at its end. */
struct interval {
    unsigned run, wait, turns;
    char state;
    unsigned counts; /* ms */
};

struct row {
    const char *name;
    char state; /* before the first interval */
    struct interval intervals[12];
};

static const struct row rows[] = {
    {"a thread that sleeps", 'S', {{0, 0, 0, 'S', 0}, {0, 0, 0, 'S', 0}}},
    {"one that spins alone: the counters lag by up to one tick",
     'R',
     {{96, 0, 0, 'R', 100}, {104, 0, 0, 'R', 100}, {100, 0, 0, 'R', 100}, {97, 0, 0, 'R', 100}, {103, 0, 0, 'R', 100}}},
    /* docs/known-limits.md */
    {"one that spins: the time that a host steals is neither run nor wait",
     'R',
     {{40, 0, 1, 'R', 40}, {40, 0, 1, 'R', 40}, {40, 0, 1, 'R', 40}}},
    {"one that waits for its turn: no credit for three samples, then all at once",
     'R',
     {{0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {32, 300, 1, 'R', 100},
      {0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {32, 368, 1, 'R', 100}}},
    {"one of eight that share a CPU: 4 ms each, and the wait under way is up to 28 ms",
     'R',
     {{16, 64, 3, 'R', 100},
      {12, 92, 3, 'R', 100},
      {12, 80, 3, 'R', 100},
      {12, 84, 3, 'R', 100},
      {12, 96, 3, 'R', 100}}},
    {"a frame loop of 8.7 of 10 ms, in state R at most samples",
     'R',
     {{87, 0, 10, 'R', 87}, {86, 0, 10, 'R', 86}, {88, 0, 10, 'S', 88}, {86, 0, 10, 'R', 86}, {89, 0, 10, 'R', 89}}},
    {"the same beside a hog: the waits under way come and go, and the sum stays",
     'R',
     {{60, 20, 10, 'R', 84}, {60, 20, 10, 'R', 80}, {60, 20, 10, 'S', 76}, {60, 20, 10, 'S', 80}}},
    {"one in state R at each sample by chance", 'R', {{10, 0, 1, 'R', 10}, {10, 0, 1, 'R', 10}, {10, 0, 1, 'R', 10}}},
    {"one never in state R at a sample", 'S', {{10, 5, 1, 'S', 15}, {10, 5, 1, 'S', 15}}},
    {"one that woke in the interval and waits: its wait counts when it ends",
     'S',
     {{2, 0, 0, 'R', 2}, {10, 40, 1, 'S', 50}, {0, 0, 0, 'S', 0}}},
    {"credit that was counted ahead does not count again",
     'R',
     {{0, 0, 0, 'R', 100}, {0, 0, 0, 'R', 100}, {10, 210, 1, 'S', 20}, {0, 0, 0, 'S', 0}}},
    {"time counted ahead that no credit follows is not taken back: a thread that ran was runnable",
     'R',
     {{0, 0, 0, 'R', 100}, {40, 5, 1, 'S', 40}, {40, 5, 1, 'S', 45}}},
    {"a credit of several intervals counts for at most two",
     'S',
     {{10, 500, 1, 'R', 100}, {10, 0, 1, 'R', 100}, {10, 0, 1, 'R', 20}, {10, 0, 1, 'R', 10}}},
    {"of one that sleeps no credit is left over", 'S', {{80, 500, 1, 'S', 100}, {10, 0, 1, 'S', 10}}},
    {"one that ran for longer than the interval: the clocks differ", 'S', {{104, 0, 1, 'S', 100}, {96, 0, 1, 'S', 96}}},
};

static void read_line(struct asym_schedstat *s, const struct interval *n)
{
    char line[96];
    snprintf(line, sizeof line, "%llu %llu %llu\n", (unsigned long long)(s->run_ns + n->run * MS),
             (unsigned long long)(s->wait_ns + n->wait * MS), (unsigned long long)s->slices + n->turns);
    assert_int_equal(asym_parse_schedstat(line, strlen(line), s), 0);
}

TEST(a_thread_counts_for_what_it_ran_and_waited)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_schedstat before = {0}, now = {0};
        int64_t balance = 0;
        char was = rows[i].state;
        for (const struct interval *n = rows[i].intervals; n->state; n++) {
            read_line(&now, n);
            const uint64_t count = asym_runnable_credited(&before, &now, was, n->state, INTERVAL * MS, &balance);
            if (count != n->counts * MS)
                fail_msg("%s, interval %d: %.1f ms, not %u", rows[i].name, (int)(n - rows[i].intervals) + 1,
                         (double)count / (double)MS, n->counts);
            assert_true(count >= ASYM_MIN(n->run, INTERVAL) * MS);
            before = now;
            was = n->state;
        }
    }
}

TEST_MAIN
