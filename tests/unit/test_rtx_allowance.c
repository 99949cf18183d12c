/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What answers may take: never more than its share, however many ask for it, and for each of them as much as for the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macro.h"
#include "linux/rtx-server-internal.h"

enum { MOST = 65, ANSWER = 200, LOOK = 15, STEP = 2 * ASYM_MSEC };

#define BUDGET 1.0 /* percent */
#define RATE   (BUDGET / 100 * ASYM_RTX_SHARE)

struct world {
    struct asym_rtx_server *server;
    struct asym_rtx_client clients[MOST];
    unsigned answers[MOST];
    asym_usec now;
    double charged;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    w->server = calloc(1, sizeof *w->server);
    w->server->config.cpu_budget = BUDGET;
    w->server->pot = ASYM_RTX_SAVED_MAX;
    w->now = w->server->settled = ASYM_SEC;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    free(w->server);
    free(w);
    return 0;
}

static struct asym_rtx_client *come(struct world *w, pid_t pid, uid_t uid)
{
    struct asym_rtx_server *s = w->server;
    struct asym_rtx_client *c = s->clients[s->n] = &w->clients[s->n];
    s->n++;
    c->pid = pid;
    c->uid = uid;
    return c;
}

static void charge(struct world *w, asym_usec cpu)
{
    asym_rtx_server_charge(w->server, cpu);
    w->charged += (double)cpu;
}

/* Client k tells of a phase, is answered if it may be, and is looked at once more. */
static void ask(struct world *w, size_t k)
{
    struct asym_rtx_client *c = w->server->clients[k];
    asym_rtx_settle(w->server, w->now);
    const bool may = asym_rtx_is_solvent(w->server, c) && asym_rtx_may_answer(w->server, c, w->now);
    c->put_off = !may;
    c->told = c->looked = may;
    if (may) {
        w->answers[k]++;
        charge(w, ANSWER);
        c->told = false;
        charge(w, LOOK);
    }
    c->looked = false;
}

/* One after another, in steps, for so long. */
static void saturate(struct world *w, size_t n, asym_usec how_long)
{
    for (const asym_usec end = w->now + how_long; w->now < end; w->now += STEP)
        ask(w, w->now / STEP % n);
}

static double sum(const struct world *w)
{
    double all = w->server->pot;
    for (size_t i = 0; i < w->server->n; i++)
        all += w->server->clients[i]->saved;
    return all;
}

static void no_number_of_programs_gets_more_than_the_share(void **state)
{
    struct world *w = *state;
    static const size_t numbers[] = {1, 10, 64};
    for (size_t i = 0; i < ASYM_LENGTH(numbers); i++) {
        const asym_usec begun = w->now;
        const double had = sum(w), charged = w->charged;
        while (w->server->n < numbers[i])
            come(w, 100 + (pid_t)w->server->n, 1000);
        saturate(w, numbers[i], 100 * ASYM_SEC);
        const double share = (double)(w->now - begun) * RATE, took = w->charged - charged;
        assert_true(took <= share + had + (double)numbers[i] * (ANSWER + LOOK));
        assert_true(took >= 0.9 * share);
        /* Nothing is made or lost. */
        assert_true(sum(w) - (had + share - took) < 1e-3 * share && sum(w) - (had + share - took) > -0.05 * share);
    }
}

static void each_process_gets_as_much_as_the_next(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < 6; i++)
        come(w, i < 4 ? 100 : 100 + (pid_t)i, 1000); /* four connections of one, and two others */
    saturate(w, 6, 200 * ASYM_SEC);
    const unsigned of_one = w->answers[0] + w->answers[1] + w->answers[2] + w->answers[3];
    assert_true(of_one < 1.2 * w->answers[4] && of_one > 0.8 * w->answers[4]);
    assert_true(w->answers[5] < 1.1 * w->answers[4] && w->answers[5] > 0.9 * w->answers[4]);
}

/* Of two users, one of whom has 64 of them. */
static void a_user_with_many_programs_leaves_another_half(void **state)
{
    struct world *w = *state;
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
    assert_true(w->answers[64] > 0.9 * half / (ANSWER + LOOK));
}

/* Strangers' debts are paid, and do not keep out who comes after them. */
static void what_those_who_have_gone_owe_is_bounded(void **state)
{
    struct world *w = *state;
    w->server->gone = true;
    for (int i = 0; i < 1000; i++)
        charge(w, 10 * ASYM_MSEC);
    w->server->gone = false;
    assert_true(w->server->pot >= -ASYM_RTX_SAVED_MAX);
    w->now += 10 * ASYM_SEC;
    asym_rtx_settle(w->server, w->now);
    assert_true(w->server->pot >= 0);
    come(w, 100, 1000);
    ask(w, 0);
    assert_int_equal(w->answers[0], 1);
}

static void who_was_looked_at_in_vain_pays_for_that(void **state)
{
    struct world *w = *state;
    struct asym_rtx_client *c = come(w, 100, 1000);
    come(w, 101, 1000);
    ask(w, 0);
    ask(w, 1);
    const double others = w->clients[1].saved, had = c->saved;
    c->looked = true;
    charge(w, 1000);
    assert_true(c->saved < had - 999);
    assert_true(w->clients[1].saved == others);
    /* And when it goes what it has is there for all. */
    const double before = sum(w);
    asym_rtx_retire(w->server, c);
    assert_true(sum(w) > before - 1 && sum(w) < before + 1);
    assert_true(c->saved == 0 && !c->active);
}

static bool is_about(double a, double b)
{
    return a - b < 1e-6 && b - a < 1e-6;
}

/* Its part of what is there, be it a debt; and of what answering all of them has taken. */
static void a_newcomer_gets_its_part_and_pays_its_part(void **state)
{
    struct world *w = *state;
    struct asym_rtx_server *s = w->server;
    static const double pots[] = {9000, 0, -9000};
    come(w, 100, 1000);
    come(w, 101, 1000);
    saturate(w, 2, 10 * ASYM_SEC);
    for (size_t i = 0; i < ASYM_LENGTH(pots); i++) {
        struct asym_rtx_client *c = come(w, 102, 1000);
        asym_rtx_settle(s, w->now);
        const double had[] = {w->clients[0].saved, w->clients[1].saved};
        s->pot = pots[i];
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(asym_rtx_may_answer(s, &w->clients[k], w->now), had[k] >= 0 || s->pot > 0);
        const double pot = s->pot, before[] = {w->clients[0].saved, w->clients[1].saved};
        assert_int_equal(asym_rtx_may_answer(s, c, w->now), pots[i] >= 0);
        assert_true(is_about(c->part, 1.0 / 3) && is_about(w->clients[0].part, 1.0 / 3));
        assert_true(is_about(c->saved, pot / 3) && is_about(s->pot, pot * 2 / 3));
        for (size_t k = 0; k < 3; k++)
            w->clients[k].told = true;
        charge(w, 300);
        assert_true(is_about(c->saved, pot / 3 - 100) && is_about(s->pot, pot * 2 / 3));
        for (size_t k = 0; k < 2; k++)
            assert_true(is_about(w->clients[k].saved, before[k] - 100));
        /* And alone for what it alone has asked for. */
        w->clients[0].told = w->clients[1].told = false;
        charge(w, 60);
        assert_true(is_about(c->saved, pot / 3 - 160) && is_about(w->clients[0].saved, before[0] - 100));
        asym_rtx_retire(s, c);
        *c = (struct asym_rtx_client){0};
        s->n--;
    }
}

/* Of one that is put off it is when it has paid, whatever else was to be done for it. */
static void what_is_due_first_is_due(void **state)
{
    struct world *w = *state;
    struct asym_rtx_server *s = w->server;
    for (int i = 0; i < 3; i++)
        come(w, 100 + i, 1000);
    assert_int_equal(asym_rtx_server_due(s), 0);
    s->clients[1]->again_at = w->now + 20000;
    assert_int_equal(asym_rtx_server_due(s), w->now + 20000);
    s->clients[2]->again_at = w->now + 5000;
    assert_int_equal(asym_rtx_server_due(s), w->now + 5000);
    s->clients[2]->put_off = true;
    s->clients[2]->part = 1;
    s->clients[2]->saved = -RATE * 50000;
    assert_int_equal(asym_rtx_server_due(s), w->now + 20000);
    s->clients[2]->saved = -RATE * 10000;
    const asym_usec due = asym_rtx_server_due(s);
    assert_true(due >= w->now + 10000 && due <= w->now + 10002);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(no_number_of_programs_gets_more_than_the_share), T(each_process_gets_as_much_as_the_next),
        T(a_user_with_many_programs_leaves_another_half),  T(what_those_who_have_gone_owe_is_bounded),
        T(who_was_looked_at_in_vain_pays_for_that),        T(what_is_due_first_is_due),
        T(a_newcomer_gets_its_part_and_pays_its_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
