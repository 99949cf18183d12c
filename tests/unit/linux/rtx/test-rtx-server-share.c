/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPU time for answers never exceeds its share, whatever the number of clients, and is divided evenly. */

#include "linux/rtx/rtx-server-internal.h"
#include "support/test.h"

enum { MOST = 65, ANSWER = 200, SAMPLE = 15, STEP = 2 * ASYM_MSEC };

#define BUDGET 1.0 /* percent */
#define RATE   (BUDGET / 100 * ASYM_RTXD_SHARE)

struct fair_share_fixture {
    struct asym_rtxd_server *server;
    struct asym_rtxd_client clients[MOST];
    unsigned answers[MOST];
    asym_usec now;
    double charged;
};

static int set_up(void **state)
{
    struct fair_share_fixture *w = calloc(1, sizeof *w);
    w->server = calloc(1, sizeof *w->server);
    w->server->config.cpu_budget = BUDGET;
    w->server->reserve = ASYM_RTXD_SAVED_MAX;
    w->now = w->server->settled = ASYM_SEC;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct fair_share_fixture *w = *state;
    free(w->server);
    free(w);
    return 0;
}

static struct asym_rtxd_client *come(struct fair_share_fixture *w, pid_t pid, uid_t uid)
{
    struct asym_rtxd_server *s = w->server;
    struct asym_rtxd_client *c = s->clients[s->n] = &w->clients[s->n];
    s->n++;
    c->pid = pid;
    c->uid = uid;
    return c;
}

static void charge(struct fair_share_fixture *w, asym_usec cpu)
{
    asym_rtxd_server_charge(w->server, cpu);
    w->charged += (double)cpu;
}

/* Client k reports a phase, is answered if it has CPU time, and is sampled once more. */
static void ask(struct fair_share_fixture *w, size_t k)
{
    struct asym_rtxd_client *c = w->server->clients[k];
    asym_rtxd_settle(w->server, w->now);
    const bool may = asym_rtxd_has_cpu_time(w->server, c) && asym_rtxd_may_answer(w->server, c, w->now);
    c->hearing = may ? ASYM_RTXD_HEARD : ASYM_RTXD_DEFERRED;
    c->sample = may ? ASYM_RTXD_PHASE_CHANGED : ASYM_RTXD_NOT_SAMPLED;
    if (may) {
        w->answers[k]++;
        charge(w, ANSWER);
        c->sample = ASYM_RTXD_NO_REPORT;
        charge(w, SAMPLE);
    }
    c->sample = ASYM_RTXD_NOT_SAMPLED;
}

/* The clients report phases in turn for the given time. */
static void saturate(struct fair_share_fixture *w, size_t n, asym_usec how_long)
{
    for (const asym_usec end = w->now + how_long; w->now < end; w->now += STEP)
        ask(w, w->now / STEP % n);
}

static double sum(const struct fair_share_fixture *w)
{
    double all = w->server->reserve;
    for (size_t i = 0; i < w->server->n; i++)
        all += w->server->clients[i]->saved;
    return all;
}

TEST_WITH(no_number_of_programs_gets_more_than_the_share, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    static const size_t numbers[] = {1, 10, 64};
    for (size_t i = 0; i < ASYM_LENGTH(numbers); i++) {
        const asym_usec begun = w->now;
        const double had = sum(w), charged = w->charged;
        while (w->server->n < numbers[i])
            come(w, 100 + (pid_t)w->server->n, 1000);
        saturate(w, numbers[i], 100 * ASYM_SEC);
        const double share = (double)(w->now - begun) * RATE, took = w->charged - charged;
        assert_true(took <= share + had + (double)numbers[i] * (ANSWER + SAMPLE));
        assert_true(took >= 0.9 * share);
        /* No CPU time is created or lost. */
        assert_true(sum(w) - (had + share - took) < 1e-3 * share && sum(w) - (had + share - took) > -0.05 * share);
    }
}

TEST_WITH(each_process_gets_as_much_as_the_next, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    for (size_t i = 0; i < 6; i++)
        come(w, i < 4 ? 100 : 100 + (pid_t)i, 1000); /* four connections of one process, and two other processes */
    saturate(w, 6, 200 * ASYM_SEC);
    const unsigned of_one = w->answers[0] + w->answers[1] + w->answers[2] + w->answers[3];
    assert_true(of_one < 1.2 * w->answers[4] && of_one > 0.8 * w->answers[4]);
    assert_true(w->answers[5] < 1.1 * w->answers[4] && w->answers[5] > 0.9 * w->answers[4]);
}

/* Two users: one of them has 64 processes. */
TEST_WITH(a_user_with_many_programs_leaves_another_half, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    for (size_t i = 0; i < 64; i++)
        come(w, 100 + (pid_t)i, 1000);
    saturate(w, 64, 10 * ASYM_SEC);
    come(w, 200, 1001);
    const asym_usec begun = w->now;
    for (const asym_usec end = begun + 100 * ASYM_SEC; w->now < end; w->now += STEP) {
        ask(w, w->now / STEP % 64);
        ask(w, 64);
    }
    const double half = 100e6 * RATE / 2;
    assert_true(w->answers[64] > 0.9 * half / (ANSWER + SAMPLE));
}

/* The debt of ended clients is paid off, and does not keep out new clients. */
TEST_WITH(the_debt_of_clients_that_have_gone_is_bounded, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    w->server->gone = true;
    for (int i = 0; i < 1000; i++)
        charge(w, 10 * ASYM_MSEC);
    w->server->gone = false;
    assert_true(w->server->reserve >= -ASYM_RTXD_SAVED_MAX);
    w->now += 10 * ASYM_SEC;
    asym_rtxd_settle(w->server, w->now);
    assert_true(w->server->reserve >= 0);
    come(w, 100, 1000);
    ask(w, 0);
    assert_int_equal(w->answers[0], 1);
}

static bool is_about(double a, double b)
{
    return a - b < 1e-6 && b - a < 1e-6;
}

/* Half of the earned time pays a debt while one exists; the sum is the same. */
TEST_WITH(a_debt_is_paid_out_of_what_is_earned, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    struct asym_rtxd_server *s = w->server;
    static const struct {
        double debt, pays; /* as parts of the earned time */
    } rows[] = {{10, 0.5}, {0.5, 0.5}, {0.25, 0.25}, {0, 0}};
    struct asym_rtxd_client *c = come(w, 100, 1000);
    ask(w, 0);
    assert_true(c->active);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const double earned = 100 * (double)ASYM_MSEC * RATE;
        c->reported_at = w->now;
        c->saved = 0;
        s->reserve = -rows[i].debt * earned;
        w->now += 100 * ASYM_MSEC;
        asym_rtxd_settle(s, w->now);
        assert_true(is_about(s->reserve, (rows[i].pays - rows[i].debt) * earned));
        assert_true(is_about(c->saved, (1 - rows[i].pays) * earned));
    }
}

TEST_WITH(a_client_that_was_read_in_vain_pays_for_that, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    struct asym_rtxd_client *c = come(w, 100, 1000);
    come(w, 101, 1000);
    ask(w, 0);
    ask(w, 1);
    const double others = w->clients[1].saved, had = c->saved;
    c->sample = ASYM_RTXD_NO_REPORT;
    charge(w, 1000);
    assert_true(c->saved < had - 999);
    assert_true(w->clients[1].saved == others);
    /* When the client retires, its time goes to the reserve. */
    const double before = sum(w);
    asym_rtxd_retire(w->server, c);
    assert_true(sum(w) > before - 1 && sum(w) < before + 1);
    assert_true(c->saved == 0 && !c->active);
}

/* A new client draws its part of the reserve, also of a debt, and pays its part of a common answer. */
TEST_WITH(a_newcomer_gets_its_part_and_pays_its_part, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    struct asym_rtxd_server *s = w->server;
    static const double reserves[] = {9000, 0, -9000};
    come(w, 100, 1000);
    come(w, 101, 1000);
    saturate(w, 2, 10 * ASYM_SEC);
    for (size_t i = 0; i < ASYM_LENGTH(reserves); i++) {
        struct asym_rtxd_client *c = come(w, 102, 1000);
        asym_rtxd_settle(s, w->now);
        const double had[] = {w->clients[0].saved, w->clients[1].saved};
        s->reserve = reserves[i];
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(asym_rtxd_may_answer(s, &w->clients[k], w->now), had[k] >= 0 || s->reserve > 0);
        const double reserve = s->reserve, before[] = {w->clients[0].saved, w->clients[1].saved};
        assert_int_equal(asym_rtxd_may_answer(s, c, w->now), reserves[i] >= 0);
        assert_true(is_about(c->part, 1.0 / 3) && is_about(w->clients[0].part, 1.0 / 3));
        assert_true(is_about(c->saved, reserve / 3) && is_about(s->reserve, reserve * 2 / 3));
        for (size_t k = 0; k < 3; k++)
            w->clients[k].sample = ASYM_RTXD_PHASE_CHANGED;
        charge(w, 300);
        assert_true(is_about(c->saved, reserve / 3 - 100) && is_about(s->reserve, reserve * 2 / 3));
        for (size_t k = 0; k < 2; k++)
            assert_true(is_about(w->clients[k].saved, before[k] - 100));
        /* It alone pays for an answer to it alone. */
        w->clients[0].sample = w->clients[1].sample = ASYM_RTXD_NOT_SAMPLED;
        charge(w, 60);
        assert_true(is_about(c->saved, reserve / 3 - 160) && is_about(w->clients[0].saved, before[0] - 100));
        asym_rtxd_retire(s, c);
        *c = (struct asym_rtxd_client){0};
        s->n--;
    }
}

/* A deferred client is due when it has paid its debt, even if a second sample is due before. */
TEST_WITH(what_is_due_first_is_due, set_up, tear_down)
{
    struct fair_share_fixture *w = *state;
    struct asym_rtxd_server *s = w->server;
    for (int i = 0; i < 3; i++)
        come(w, 100 + i, 1000);
    assert_int_equal(asym_rtxd_server_due(s), 0);
    s->clients[1]->again_at = w->now + 20000;
    assert_int_equal(asym_rtxd_server_due(s), w->now + 20000);
    s->clients[2]->again_at = w->now + 5000;
    assert_int_equal(asym_rtxd_server_due(s), w->now + 5000);
    s->clients[2]->hearing = ASYM_RTXD_DEFERRED;
    s->clients[2]->part = 1;
    s->clients[2]->saved = -RATE * 50000;
    assert_int_equal(asym_rtxd_server_due(s), w->now + 20000);
    s->clients[2]->saved = -RATE * 10000;
    const asym_usec due = asym_rtxd_server_due(s);
    assert_true(due >= w->now + 10000 && due <= w->now + 10002);
}

TEST_MAIN
