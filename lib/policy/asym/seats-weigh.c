/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps 2 to 4 of asym: critical shares, densities, programs whose threads wait for each other, threads that lead their process.
 *
 * The critical share of a thread is the integral of 1 / k over the time for which it is runnable, by the time; k is the number of
 * runnable threads of its program. All shares of a program add up to the share of the time in which it is active. The duties give
 * it, as if activity were nested: the thread of the least duty runs only while all others run. Where a source measures it, the mean
 * of both counts: the measured share alone names whichever worker has the worst seat. On a kernel workers of a frame loop then took
 * seats in turn, with 9 to 17 changes a second, and the loop lost a fifth of its frames.
 */
#include "policy/asym/seats-internal.h"

#include <math.h>

#include "base/mask.h"
#include "base/nice.h"
#include "base/sort.h"

/* A ratio by a duty below this says nothing. */
#define DUTY_LEAST 1e-3

/* A thread that spins (RTX) is waited for by no other. */
#define SPINS 1e-6

/* Critical shares that add up to less are not measured ones. */
#define MEASURED_FROM 0.01

/* Threads that are runnable less do not take part in the work that couples a program. */
#define USUAL_FROM 0.1

/* A program is coupled if the paces of its threads vary less than this although their duties differ by UNLIKE; until they vary by
 * twice as much. */
#define COUPLED_BELOW 0.15
#define UNLIKE        0.95

/*
 * Threads that take turns have equal duties, even if they wait for each other. Those woke at the same time, to this share of an
 * interval, in more than IN_STEP of the intervals.
 */
#define TOGETHER 0.1
#define IN_STEP  0.5

/* Each such interval counts for so much of the mean: fourteen in a row are enough, and chance is not. */
#define IN_STEP_GAIN 0.05

/*
 * A program that needs less of a CPU than this has no seats: a daemon that wakes now and then would change those of others each
 * time, and outrank them by its density while it needs none of the time for which they wait.
 */
#define COUNTS_FROM 0.15

/* The threads of a process have rounds shorter than an interval if they sleep in so many of the intervals. */
#define SHORT_ROUNDS 0.75

/* Those that sleep in fewer of them sleep at no barrier. */
#define SLEEPS_FROM 0.05

/* Threads that meet at a barrier overlap for more of their time. Those that wait for a lock run one after the other. */
#define AT_ONCE 0.5

/* Seconds of progress before the pace of a thread counts. */
#define WORK_FROM 1

/* A thread leads its process if it does this many times the work of each other one, and has this many times its density. */
#define LEADS_FROM 1.1

static int by_key(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_seats *q = ctx;
    return q->key[a] > q->key[b] ? -1 : q->key[a] < q->key[b];
}

void asym_seats_sort(struct asym_seats *q, uint32_t *list, size_t n, size_t k)
{
    if (k < n)
        asym_sort_least(list, n, k, by_key, q);
    asym_sort_index(list, ASYM_MIN(k, n), q->scratch, by_key, q);
}

static void set_weight(struct asym_seats *q, uint32_t t, double share)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const double duty = ASYM_MAX(asym_seats_of(q, t)->duty, DUTY_LEAST);
    const double weight = ASYM_MAX(share, 1e-4 * duty) * asym_nice_weight(thread->nice) / 1024.0;
    q->weight[t] = thread->spinning ? SPINS : weight;
    q->density[t] = thread->spinning ? SPINS : weight / duty;
}

/* Returns whether the application counts. */
static bool weigh_app(struct asym_seats *q, size_t a)
{
    const struct asym_policy_app *app = &q->in->apps[a];
    double share = 0, criticals = 0, needed = 0, squares = 0, runnable = 0, needs = app->unsteered;
    bool did = false;
    for (uint32_t i = 0; i < app->n_threads; i++) {
        const uint32_t t = app->first_thread + i;
        const struct asym_seats_thread *s = asym_seats_of(q, t);
        q->list[i] = t;
        q->key[t] = s->duty;
        criticals += s->critical;
        needed += s->needed;
        squares += s->needed * s->needed;
        runnable += s->needed * ASYM_MIN(s->needed / ASYM_MAX(s->critical, DUTY_LEAST), app->n_threads);
        needs += q->in->threads[t].duty;
        did |= s->counts;
    }
    /* (k - 1) / (n - 1): k of its n threads run at once, k = runnable / needed, n = needed^2 / squares. Not measured: all. */
    const double beside = ASYM_MAX(runnable - needed, 0) * squares, mates = (needed * needed - squares) * needed;
    q->overlap[a] = beside < mates ? beside / mates : 1;
    const bool is_measured = criticals > MEASURED_FROM;
    asym_seats_sort(q, q->list, app->n_threads, app->n_threads);
    q->active[a] = app->n_threads > 0 ? q->key[q->list[0]] : 0;
    for (uint32_t i = app->n_threads; i-- > 0;) {
        const uint32_t t = q->list[i];
        const double below = i + 1 < app->n_threads ? q->key[q->list[i + 1]] : 0;
        share += (q->key[t] - below) / (i + 1 + app->unsteered);
        const double critical = asym_seats_of(q, t)->critical;
        set_weight(q, t, is_measured && critical > 0 ? (critical + share) / 2 : share);
    }
    return asym_seats_passes(needs, did, COUNTS_FROM);
}

/* A round needs this many plans for its turns. Early plans pay where those of the engine are fewer than PLANS_FROM. */
#define PLANS_A_ROUND 3
#define PLANS_FROM    2.1

/* However long a pause was, it counts as a round of so many times the usual length. */
#define PAUSE_FROM 4

/*
 * Where a round is shorter than an interval, it looks as long as an interval. So the policy tries quick turns, and rests where a
 * round has less than so many of the shortest intervals: there turns gain nothing, and a thread that keeps to one CPU makes all
 * others wait when anything else runs there.
 */
#define QUICK_SHORT 1.8
#define QUICK_TRIAL (3 * ASYM_SEC / 2)
#define QUICK_RESTS (60 * ASYM_SEC)

/* While a program rests, a trial without turns counts its rounds this often. They last up to so many times as long there. */
#define QUICK_LOOKS (10 * ASYM_SEC)
#define LOOK_LONGER 1.5

/* Sums over the threads of a program that take part in its work. */
struct team {
    double pace, squares, least, most, weight, duty, rate;
    struct asym_seats_rounds rounds;
    asym_usec known_at;  /* the last plan that any of them was in */
    double round, since; /* of those awake; the longest time since a thread woke in the interval, 0: none did */
    double first, last;  /* of those that woke once, the least and the longest time since */
    size_t awake, woke;
    double slow, fast; /* the least and the largest speed of a seat of theirs */
    double partial;
    size_t n, coupled;
    size_t usual, known; /* of all threads: those that are runnable for long enough; of these those of known pace */
};

/* Threads of one process: those of a job, such as the compilers of a build, seldom wait for each other at barriers. */
struct span {
    uint32_t first, end;
};

static bool takes_part(const struct asym_seats_thread *s)
{
    return s->usual >= USUAL_FROM && s->work > WORK_FROM && (!s->roams || s->rests);
}

/* Returns whether its pace is known. Where other programs take most of the CPUs, it is known before it has done much. */
static bool is_known(const struct asym_seats *q, const struct asym_seats_thread *s)
{
    return s->usual >= USUAL_FROM && s->seen >= q->p->tau_couple && !s->roams;
}

static double speed_of_seat(const struct asym_seats *q, const struct asym_seats_thread *s)
{
    return s->last > 0 && asym_mask_has(&q->in->machine->usable, s->given) ? q->speed[s->given] * s->smt : 1;
}

/*
 * Threads that wait for each other wake together. A thread that slept at the last plan woke once since then, or often: in that
 * case the time for which it was runnable is about what it always needs, and says nothing.
 */
static void note_wake(const struct asym_seats_thread *s, double seconds, struct team *sum)
{
    sum->since = ASYM_MAX(sum->since, s->since);
    if (!s->woke || fabs(s->since - s->usual * seconds) < TOGETHER * seconds)
        return;
    sum->woke++;
    sum->first = ASYM_MIN(sum->first, s->since);
    sum->last = ASYM_MAX(sum->last, s->since);
}

static void sum_up(const struct asym_seats *q, struct span proc, struct team *sum)
{
    const double seconds = (double)q->in->interval / (double)ASYM_SEC;
    *sum = (struct team){.least = 1, .slow = 1, .first = seconds};
    for (uint32_t t = proc.first; t < proc.end; t++) {
        const struct asym_seats_thread *s = asym_seats_of(q, t);
        sum->usual += s->usual >= USUAL_FROM;
        sum->known += is_known(q, s);
        if (!takes_part(s))
            continue;
        const double speed = speed_of_seat(q, s);
        if (sum->n++ == 0 || s->last > sum->known_at) {
            sum->known_at = s->last;
            sum->rounds = s->rounds;
        }
        sum->pace += s->pace;
        sum->squares += s->pace * s->pace;
        sum->least = ASYM_MIN(sum->least, s->usual);
        sum->most = ASYM_MAX(sum->most, s->usual);
        sum->coupled += s->coupled;
        sum->slow = ASYM_MIN(sum->slow, speed);
        sum->fast = ASYM_MAX(sum->fast, speed);
        sum->weight += q->weight[t];
        sum->duty += s->duty;
        sum->rate += s->rate;
        sum->partial += s->partial;
        note_wake(s, seconds, sum);
    }
    if (sum->woke >= 2)
        sum->rounds.in_step += IN_STEP_GAIN * ((sum->last - sum->first < TOGETHER * seconds) - sum->rounds.in_step);
}

static bool is_coupled(const struct team *sum)
{
    const double n = (double)sum->n, mean = sum->pace / n;
    const double variation = sqrt(ASYM_MAX(sum->squares / n - mean * mean, 0)) / mean;
    if (sum->coupled * 2 > sum->n)
        return variation < 2 * COUPLED_BELOW;
    return variation < COUPLED_BELOW &&
           (sum->least < UNLIKE * sum->most || (sum->rounds.in_step > IN_STEP && sum->least < UNLIKE));
}

/* Returns whether the engine makes too few plans for the turns of a round. One that is open for longer needs no more. */
static bool are_quick(const struct asym_seats *q, const struct asym_seats_rounds *r)
{
    const double limit = PLANS_FROM * (double)q->in->swap_period / (double)ASYM_SEC;
    return r->period > 0 && r->period < limit && (double)(q->in->now - r->began) / (double)ASYM_SEC < limit;
}

/*
 * Counts the rounds while it plans for them. Where they turn out to be far shorter than they looked, it plans sooner from now on.
 * Returns their mean length in seconds when it has counted for long enough, else 0.
 */
static double count_rounds(struct asym_seats_rounds *r, asym_usec interval, bool has_begun)
{
    r->tried += interval;
    r->tried_rounds += has_begun;
    if (r->tried < QUICK_TRIAL || r->tried_rounds == 0)
        return 0;
    const double round = (double)r->tried / (double)ASYM_SEC / r->tried_rounds;
    r->period = ASYM_MIN(r->period, 2 * round);
    r->tried = r->tried_rounds = 0;
    return round;
}

/* Asks for the plans that its turns need, if the engine makes fewer. On equal seats there is nothing to take turns for. */
static void ask_for_plans(const struct asym_seats *q, struct team *sum)
{
    struct asym_seats_rounds *r = &sum->rounds;
    if (!are_quick(q, r) || sum->slow >= sum->fast)
        return;
    const bool rests = q->in->now < r->rests_until;
    const double round = count_rounds(r, q->in->interval, sum->since > 0) * (double)ASYM_SEC;
    if (round > 0 && round < QUICK_SHORT * (double)q->p->quick * (rests ? LOOK_LONGER : 1)) {
        r->rests_until = rests ? r->rests_until : q->in->now + QUICK_RESTS;
        return;
    }
    if (round > 0)
        r->rests_until = 0;
    const asym_usec wanted = ASYM_MAX((asym_usec)(r->period / PLANS_A_ROUND * (double)ASYM_SEC), q->p->quick);
    *q->in->again = *q->in->again == 0 ? wanted : ASYM_MIN(*q->in->again, wanted);
}

static void begin_round(const struct asym_seats *q, struct asym_seats_rounds *r, asym_usec at)
{
    if (r->began != 0 && at > r->began) {
        const double passed = (double)(at - r->began) / (double)ASYM_SEC;
        const double last = r->period > 0 ? ASYM_MIN(passed, PAUSE_FROM * r->period) : passed;
        const double share = r->period > 0 ? asym_seats_gain(last, q->p->tau_couple) : 1;
        if (r->period > 0 || at - r->began < q->p->tau_couple)
            r->period += share * (last - r->period);
    }
    r->began = ASYM_MAX(at, r->began);
}

/*
 * A thread of a coupled program sleeps when its part of the round is done, until the last one has done its own. So a new round
 * began when one woke.
 */
static void count_round(const struct asym_seats *q, struct span proc, struct team *sum)
{
    const double interval = (double)q->in->interval / (double)ASYM_SEC;
    if (sum->since > 0)
        begin_round(q, &sum->rounds, q->in->now - (asym_usec)(sum->since * (double)ASYM_SEC));
    for (uint32_t t = proc.first; t < proc.end; t++) {
        struct asym_seats_thread *s = asym_seats_of(q, t);
        if (!takes_part(s))
            continue;
        const double needed = ASYM_MAX(q->in->threads[t].runnable * interval, 1e-3);
        s->round = sum->since > 0 ? s->step * ASYM_MIN(1, sum->since / needed) : s->round + s->step;
        sum->round += s->awake ? s->round : 0;
        sum->awake += s->awake;
    }
}

/*
 * Returns how much earlier than the mean its turn is. Those who have done least in this round come first. Those who sleep have done
 * their part, and come last. Who has a fast seat keeps it until it is ahead by what a quick turn gains.
 */
static double turn_of(const struct asym_seats *q, const struct asym_seats_thread *s, const struct team *sum)
{
    if (!s->awake)
        return -1;
    const double range = ASYM_MAX(1 - q->slowest / q->fastest, DUTY_LEAST);
    const double quick = (double)q->p->quick / (double)ASYM_SEC;
    const double ahead = s->round - sum->round / (double)sum->awake;
    const double keeps = speed_of_seat(q, s) > sum->slow ? quick : 0;
    return ASYM_MAX(-0.9, ASYM_MIN(0.9, 0.1 * (keeps - ahead / range) / quick));
}

/*
 * Threads that do equal work on unequal seats wait for each other at barriers. They share one density and one rate, and take turns.
 */
static void couple(struct asym_seats *q, struct span proc, struct team *sum)
{
    struct asym_seats_rounds *r = &sum->rounds;
    if (sum->n > 0)
        count_round(q, proc, sum);
    if (!are_quick(q, r))
        r->rests_until = 0;
    /* Its paces are not known while its threads may run anywhere: it is coupled until the rest is over. */
    const bool at_once = q->overlap[q->in->threads[proc.first].app] >= AT_ONCE;
    const bool is = sum->n >= 2 && at_once && (q->in->now < r->rests_until || is_coupled(sum));
    /* At rest it is looked at in the last part of each QUICK_LOOKS, of which QUICK_RESTS is a multiple. Else always. */
    if (is && (ASYM_MAX(r->rests_until, q->in->now) - q->in->now) % QUICK_LOOKS < QUICK_TRIAL)
        ask_for_plans(q, sum);
    r->are_short = asym_seats_passes(sum->partial, r->are_short, SHORT_ROUNDS * (double)sum->n);
    r->sleeps = asym_seats_passes(sum->partial, r->sleeps, SLEEPS_FROM * (double)sum->n);
    for (uint32_t t = proc.first; t < proc.end; t++) {
        struct asym_seats_thread *s = asym_seats_of(q, t);
        /* One that may use all CPUs has no pace. It has that of its mates, if most of them are coupled, and it needs as much. */
        if (is && sum->n * 2 > sum->usual && s->roams && !s->rests && s->needed >= sum->least / 2) {
            s->roams = false;
            s->pace = sum->pace / (double)sum->n;
            s->work = ASYM_MAX(s->work, 2 * WORK_FROM);
        }
        s->coupled = is && takes_part(s);
        s->rests = s->coupled && q->in->now < r->rests_until;
        /* No turn comes within a round that is so short: none of them is behind. */
        if (s->coupled || (s->rounds.are_short && sum->n > 0))
            s->rate = sum->rate / (double)sum->n;
        if (sum->n > 0)
            s->rounds = *r;
        if (!s->coupled)
            continue;
        q->density[t] = sum->weight / ASYM_MAX(sum->duty, DUTY_LEAST);
        q->behind[t] = s->rests ? 0 : turn_of(q, s, sum);
    }
}

/*
 * The time of a program is the sum of what it waits for. So within a process the best seat belongs to the thread that is waited for
 * most, however much progress it has had. A thread may be waited for only because its seat is slow: the work that threads do is the
 * same on all seats, so the one that leads does more. The one that has led is the best until another does so much more.
 */
static uint32_t best_of(const struct asym_seats *q, struct span proc)
{
    uint32_t best = proc.first;
    double most = 0;
    for (uint32_t t = proc.first; t < proc.end; t++) {
        const struct asym_seats_thread *s = asym_seats_of(q, t);
        const double pace = s->leads ? s->pace / (LEADS_FROM * ASYM_SEATS_STAYS) : s->pace;
        if (pace <= most)
            continue;
        most = pace;
        best = t;
    }
    return best;
}

static void find_leader(struct asym_seats *q, struct span proc)
{
    const uint32_t best = best_of(q, proc);
    double pace = 0, density = 0;
    for (uint32_t t = proc.first; t < proc.end; t++) {
        const struct asym_seats_thread *s = asym_seats_of(q, t);
        if (t == best || !is_known(q, s))
            continue;
        pace = ASYM_MAX(pace, s->pace);
        density = ASYM_MAX(density, q->density[t]);
    }
    /* Where the others sleep for the whole interval, nothing is new. */
    for (uint32_t t = proc.first; t < proc.end && pace > 0; t++) {
        struct asym_seats_thread *s = asym_seats_of(q, t);
        s->leads = t == best && s->rounds.sleeps && is_known(q, s) && !s->coupled &&
                   asym_seats_passes(s->pace, s->leads, LEADS_FROM * pace) &&
                   (s->leads || q->density[t] >= LEADS_FROM * density);
    }
}

/* Returns how many of its processes have threads that take part. */
static size_t couple_app(struct asym_seats *q, const struct asym_policy_app *app)
{
    size_t n = 0;
    struct span proc = {app->first_thread, app->first_thread};
    for (const uint32_t end = app->first_thread + app->n_threads; proc.first < end; proc.first = proc.end) {
        while (proc.end < end && q->in->threads[proc.end].proc == q->in->threads[proc.first].proc)
            proc.end++;
        struct team sum;
        sum_up(q, proc, &sum);
        couple(q, proc, &sum);
        if (sum.known > 0)
            find_leader(q, proc);
        n += sum.usual > 0;
    }
    return n;
}

static void note_brief(struct asym_seats *q, size_t t, bool counts)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    const struct asym_machine *m = q->in->machine;
    const bool has_last = s->last > 0 && asym_mask_has(&m->usable, s->given);
    q->needed += s->duty;
    q->of[t] = (struct asym_seats_brief){
        .allowed = thread->allowed,
        .duty = (float)s->duty,
        .rate = (float)s->rate,
        .slow = (float)thread->duty,
        .app = thread->app,
        .home = (int16_t)thread->preferred_cpu,
        .cpu = -1,
        .last_type = (int8_t)(has_last ? m->cpus[s->given].type : -1),
        .kind = s->kind,
        .coupled = s->coupled,
        .plain = s->exec <= 0,
        .above = s->above,
        .busy = s->busy,
        .pins = s->pins,
        .slowness = (uint8_t)asym_seats_slowness(q, t),
        .leads = s->leads,
        .counts = counts,
        .rests = s->rests,
        .settled = s->seen > q->p->trial,
        .width = s->roams ? ASYM_PIN_ALL : ASYM_PIN_CPU,
    };
}

void asym_seats_weigh(struct asym_seats *q)
{
    q->needed = q->in->unsteered;
    for (size_t a = 0; a < q->in->n_apps; a++) {
        const struct asym_policy_app *app = &q->in->apps[a];
        const bool counts = weigh_app(q, a);
        const size_t procs = couple_app(q, app);
        q->n_counting += counts ? ASYM_MAX(procs, 1u) : 0;
        for (uint32_t t = app->first_thread; t < app->first_thread + app->n_threads; t++)
            note_brief(q, t, counts);
    }
}
