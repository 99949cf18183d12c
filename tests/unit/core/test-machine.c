/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The core types derived from the speeds of CPUs, and the choice of CPUs to slow. */

#include <asym/machine.h>

#include <math.h>

#include "base/mask.h"
#include "support/engine-fixture.h"
#include "support/test.h"

/* n CPUs of these speeds. Each has its own core and frequency domain; llc of them share a cache. */
static struct asym_machine machine(const double *speeds, unsigned n, unsigned llc)
{
    struct asym_machine m = {.generation = 7, .n_cpus = n};
    for (unsigned c = 0; c < n; c++) {
        asym_mask_set(&m.online, c);
        asym_mask_set(&m.usable, c);
        m.cpus[c] = (struct asym_cpu){.speed = speeds ? speeds[c] : 1,
                                      .core = (int16_t)c,
                                      .llc = (int16_t)(c / llc),
                                      .freq_domain = (int16_t)c,
                                      .origin = ASYM_ORIGIN_CPUFREQ};
    }
    return m;
}

TEST(cpus_that_are_alike_are_one_type)
{
    const double zero[4] = {0, 0, 0, 0};
    const double *speeds[] = {NULL, zero};
    for (size_t i = 0; i < ASYM_LENGTH(speeds); i++) {
        struct asym_machine m = machine(speeds[i], 4, 4);
        assert_int_equal(asym_machine_finish(&m), 0);
        assert_int_equal(m.n_types, 1);
        assert_false(asym_machine_is_asymmetric(&m));
        engine_fixture_assert_mask(&m.fast, "0-3");
        engine_fixture_assert_mask(&m.slow, "");
        assert_float_equal(m.cpus[2].speed, 1, 0);
        assert_int_equal(m.generation, 7);
    }
}

TEST(types_are_sorted_fastest_first_with_speeds_relative_to_the_slowest)
{
    const double speeds[] = {1400, 2800, 700, 2800};
    struct asym_machine m = machine(speeds, 4, 4);
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_int_equal(m.n_types, 3);
    assert_float_equal(m.types[0].speed, 4, 1e-12);
    assert_float_equal(m.types[1].speed, 2, 1e-12);
    assert_float_equal(m.types[2].speed, 1, 1e-12);
    engine_fixture_assert_mask(&m.types[0].cpus, "1,3");
    engine_fixture_assert_mask(&m.fast, "1,3");
    engine_fixture_assert_mask(&m.slow, "0,2");
    assert_int_equal(m.cpus[0].type, 1);
    assert_int_equal(m.types[0].origin, ASYM_ORIGIN_CPUFREQ);
    assert_true(asym_machine_is_asymmetric(&m));
    assert_true(strlen(m.types[2].name) > 0);
}

TEST(the_kernel_knows_speeds_that_it_gives_itself)
{
    const double speeds[] = {512, 512, 1024, 1024};
    struct asym_caps caps = {.share[3] = 0.5};
    struct asym_machine m = machine(speeds, 4, 4);
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_false(asym_machine_kernel_knows(&m)); /* from cpufreq: the scheduler does not read it */
    for (unsigned c = 0; c < 4; c++)
        m.cpus[c].origin = ASYM_ORIGIN_CAPACITY;
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_true(asym_machine_kernel_knows(&m));
    /* A cap of asymd changes the speed of a CPU, and not its capacity. */
    asym_mask_set(&caps.cpus, 3);
    assert_int_equal(asym_machine_cap(&m, &caps), 0);
    assert_false(asym_machine_kernel_knows(&m));
}

TEST(types_are_kinds_and_within_them_speeds_within_5_percent_of_the_fastest)
{
    static const struct {
        double speeds[5];
        int16_t kinds[5];
        unsigned n;
        const char *types[2];
        double first; /* speed of the first type */
    } rows[] = {
        /* the type of 100 holds 95 but not 94; the next type begins at 94 and holds 90 */
        {{100, 97, 95, 94, 90}, {0}, 5, {"0-2", "3-4"}, 100.0 / 90},
        {{1, 1, 1, 1}, {0, 0, 1, 1}, 4, {"0-1", "2-3"}, 1},
        {{100, 99, 98, 97}, {0, 1, 0, 1}, 4, {"0,2", "1,3"}, 100.0 / 97}, /* they interleave */
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_machine m = machine(rows[i].speeds, rows[i].n, rows[i].n);
        for (unsigned c = 0; c < rows[i].n; c++)
            m.cpus[c].kind = rows[i].kinds[c];
        assert_int_equal(asym_machine_finish(&m), 0);
        assert_int_equal(m.n_types, 2);
        for (unsigned k = 0; k < 2; k++)
            engine_fixture_assert_mask(&m.types[k].cpus, rows[i].types[k]);
        assert_float_equal(m.types[0].speed, rows[i].first, 1e-12);
    }
}

TEST(more_than_32_types_are_merged_nearest_first)
{
    double speeds[40];
    for (unsigned c = 0; c < 40; c++)
        speeds[c] = pow(1.2, c);    /* equal ratios, */
    speeds[20] = speeds[19] * 1.06; /* except for these two */
    struct asym_machine m = machine(speeds, 40, 40);
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_int_equal(m.n_types, ASYM_MAX_TYPES);
    assert_int_equal(m.cpus[19].type, m.cpus[20].type);
    unsigned covered = 0;
    for (unsigned t = 0; t < m.n_types; t++) {
        covered += asym_mask_count(&m.types[t].cpus);
        assert_true(t == 0 || m.types[t].speed < m.types[t - 1].speed);
        assert_in_range(asym_mask_count(&m.types[t].cpus), 1, 3);
        ASYM_MASK_FOREACH (c, &m.types[t].cpus) {
            assert_int_equal(m.cpus[c].type, (int)t);
            assert_true(m.cpus[c].speed <= m.types[t].speed);
        }
    }
    assert_int_equal(covered, 40);
}

TEST(a_machine_of_1024_cpus_of_as_many_speeds_is_finished)
{
    static double speeds[ASYM_MAX_CPUS];
    for (unsigned c = 0; c < ASYM_MAX_CPUS; c++)
        speeds[c] = exp(c * 0.1);
    static struct asym_machine m;
    m = machine(speeds, ASYM_MAX_CPUS, 8);
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_int_equal(m.n_types, ASYM_MAX_TYPES);
    assert_int_equal(m.n_llcs, ASYM_MAX_CPUS / 8);
    struct asym_mask slow;
    assert_int_equal(asym_machine_choose_slow(&m, 512, &slow), 0);
    assert_int_equal(asym_mask_count(&slow), 512);
}

TEST(only_usable_cpus_count)
{
    const double speeds[] = {NAN, 1, 2, 8, -1};
    struct asym_machine m = machine(speeds, 5, 5);
    asym_mask_clear(&m.usable, 0);
    asym_mask_clear(&m.usable, 3);
    asym_mask_clear(&m.usable, 4);
    assert_int_equal(asym_machine_finish(&m), 0);
    engine_fixture_assert_mask(&m.fast, "2");
    engine_fixture_assert_mask(&m.slow, "1");
    assert_float_equal(m.cpus[2].speed, 2, 0);
    assert_int_equal(m.cpus[3].type, -1);
    assert_int_equal(m.cpus[3].core, -1);
    assert_int_equal(m.cpus[3].llc, -1);
    assert_int_equal(m.n_cores, 2);
}

TEST(group_numbers_become_dense)
{
    struct asym_machine m = machine(NULL, 4, 4);
    const int16_t raw[] = {40, 7, 40, 9}, dense[] = {0, 1, 0, 2};
    for (unsigned c = 0; c < 4; c++)
        m.cpus[c].core = m.cpus[c].llc = m.cpus[c].node = m.cpus[c].freq_domain = raw[c];
    assert_int_equal(asym_machine_finish(&m), 0);
    for (unsigned c = 0; c < 4; c++) {
        assert_int_equal(m.cpus[c].core, dense[c]);
        assert_int_equal(m.cpus[c].llc, dense[c]);
        assert_int_equal(m.cpus[c].node, dense[c]);
        assert_int_equal(m.cpus[c].freq_domain, dense[c]);
    }
    assert_int_equal(m.n_cores, 3);
    assert_int_equal(m.n_llcs, 3);
    assert_int_equal(m.n_nodes, 3);
    assert_int_equal(m.cpus[0].smt_rank, 0);
    assert_int_equal(m.cpus[2].smt_rank, 1);
    assert_int_equal(m.cpus[3].smt_rank, 0);
}

TEST(smt_rank_counts_usable_siblings_only)
{
    struct asym_machine m = machine(NULL, 2, 2);
    m.cpus[1].core = 0;
    asym_mask_clear(&m.usable, 0);
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_int_equal(m.cpus[1].smt_rank, 0);
}

/* P cores (speed 1.6) with SMT, E cores (1.0), and low-power cores (0.7), in this order; far siblings: all first threads first. */
static struct asym_machine hybrid(unsigned n_p, unsigned n_e, unsigned n_low, double smt_gain)
{
    struct asym_machine m = machine(NULL, 2 * n_p + n_e + n_low, ASYM_MAX_CPUS);
    for (unsigned c = 0; c < m.n_cpus; c++) {
        m.cpus[c].core = (int16_t)(c < 2 * n_p ? c % n_p : c);
        m.cpus[c].speed = c < 2 * n_p ? 1.6 : c < 2 * n_p + n_e ? 1.0 : 0.7;
    }
    m.smt_gain = smt_gain;
    assert_int_equal(asym_machine_finish(&m), 0);
    return m;
}

TEST(seats_are_in_the_order_of_what_they_add)
{
    static const struct {
        unsigned n_p, n_e, n_low;
        double smt_gain;
        const char *order; /* core type, and + for a seat beside a busy sibling, each with its speed */
    } rows[] = {
        {8, 16, 0, 0.25, "0 1.60, 1 1.00, 0+ 0.40"},
        {6, 8, 2, 0.25, "0 2.29, 1 1.43, 2 1.00, 0+ 0.57"},
        {6, 8, 2, 0.5, "0 2.29, 1 1.43, 0+ 1.14, 2 1.00"},
        {8, 16, 0, 0.625, "0 1.60, 1 1.00, 0+ 1.00"}, /* a tie: the idle core first */
        {8, 16, 0, 0, "0 1.60, 1 1.00, 0+ 0.00"},
        {8, 0, 0, 0.25, "0 1.00, 0+ 0.25"},
        {0, 4, 4, 0.25, "0 1.43, 1 1.00"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_machine m = hybrid(rows[i].n_p, rows[i].n_e, rows[i].n_low, rows[i].smt_gain);
        char order[256] = "";
        for (unsigned k = 0; k < m.n_rows; k++) {
            const struct asym_seat_row *row = &m.rows[k];
            snprintf(order + strlen(order), sizeof order - strlen(order), "%s%d%s %.2f", k ? ", " : "", row->type,
                     row->is_beside ? "+" : "", row->speed);
            assert_int_equal(asym_machine_row(&m, asym_mask_next(&m.types[row->type].cpus, 0), row->is_beside), k);
        }
        assert_string_equal(order, rows[i].order);
    }
}

TEST(a_core_counts_once_and_its_cpus_form_a_ring)
{
    struct asym_machine m = hybrid(3, 2, 0, 0.25);
    struct asym_mask cores = asym_machine_cores(&m, &m.fast);
    engine_fixture_assert_mask(&m.fast, "0-5");
    engine_fixture_assert_mask(&cores, "0-2");
    assert_int_equal(m.types[0].siblings, 2);
    assert_int_equal(m.types[1].siblings, 1);
    assert_int_equal(m.cpus[1].sibling, 4);
    assert_int_equal(m.cpus[4].sibling, 1);
    assert_int_equal(m.cpus[6].sibling, 6);
    asym_mask_clear(&m.usable, 1);
    assert_int_equal(asym_machine_finish(&m), 0);
    cores = asym_machine_cores(&m, &m.fast);
    engine_fixture_assert_mask(&cores, "0,2,4");
    assert_int_equal(m.cpus[4].sibling, 4);
}

TEST(finishing_twice_changes_nothing)
{
    const double speeds[] = {1400, 2800, 700, 2800};
    struct asym_machine m = machine(speeds, 4, 2), once;
    assert_int_equal(asym_machine_finish(&m), 0);
    once = m;
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_memory_equal(&m, &once, sizeof m);
}

TEST(bad_figures_are_refused_and_change_nothing)
{
    const double bad[] = {-1, NAN, INFINITY};
    for (size_t i = 0; i < ASYM_LENGTH(bad); i++) {
        struct asym_machine m = machine(NULL, 4, 4), before;
        m.cpus[2].speed = bad[i];
        before = m;
        assert_int_equal(asym_machine_finish(&m), -EINVAL);
        assert_memory_equal(&m, &before, sizeof m);
    }
    struct asym_machine m = machine(NULL, 4, 4);
    m.usable = (struct asym_mask){0};
    assert_int_equal(asym_machine_finish(&m), -EINVAL);
    m.usable = engine_fixture_cpus("4"); /* after the last CPU */
    assert_int_equal(asym_machine_finish(&m), -EINVAL);
}

TEST(assumed_slow_cpus_are_slower_by_the_factor)
{
    struct asym_machine m = machine(NULL, 4, 4);
    assert_int_equal(asym_machine_finish(&m), 0);
    struct asym_mask slow = engine_fixture_cpus("2-3");
    assert_int_equal(asym_machine_assume_slow(&m, &slow, 0.5), 0);
    engine_fixture_assert_mask(&m.fast, "0-1");
    engine_fixture_assert_mask(&m.slow, "2-3");
    assert_float_equal(m.types[0].speed, 2, 1e-12);
    assert_int_equal(m.cpus[2].origin, ASYM_ORIGIN_CONFIG);
    assert_int_equal(m.cpus[0].origin, ASYM_ORIGIN_CPUFREQ);
}

TEST(assume_slow_refuses_what_makes_no_sense)
{
    struct asym_machine m = machine(NULL, 4, 4);
    assert_int_equal(asym_machine_finish(&m), 0);
    const struct asym_machine before = m;
    struct asym_mask slow = engine_fixture_cpus("2-3"), outside = engine_fixture_cpus("3-4");
    const double bad[] = {0, -0.5, 1.01, NAN, INFINITY};
    for (size_t i = 0; i < ASYM_LENGTH(bad); i++)
        assert_int_equal(asym_machine_assume_slow(&m, &slow, bad[i]), -EINVAL);
    assert_int_equal(asym_machine_assume_slow(&m, &outside, 0.5), -ENXIO);
    assert_memory_equal(&m, &before, sizeof m);
    assert_int_equal(asym_machine_assume_slow(&m, &slow, 1), 0);
}

static void assert_chosen(struct asym_machine *m, unsigned n)
{
    struct asym_mask slow;
    assert_int_equal(asym_machine_finish(m), 0);
    assert_int_equal(asym_machine_choose_slow(m, n, &slow), 0);
    assert_int_equal(asym_mask_count(&slow), n);
    ASYM_MASK_FOREACH (a, &m->usable) {
        ASYM_MASK_FOREACH (b, &m->usable) {
            if (m->cpus[a].core == m->cpus[b].core || m->cpus[a].freq_domain == m->cpus[b].freq_domain)
                assert_int_equal(asym_mask_has(&slow, a), asym_mask_has(&slow, b));
        }
    }
}

static unsigned mixed_llcs(const struct asym_machine *m, unsigned n)
{
    struct asym_mask slow;
    unsigned mixed = 0;
    assert_int_equal(asym_machine_choose_slow(m, n, &slow), 0);
    for (int l = 0; l < (int)m->n_llcs; l++) {
        bool has[2] = {false, false};
        ASYM_MASK_FOREACH (c, &m->usable) {
            if (m->cpus[c].llc == l)
                has[asym_mask_has(&slow, c)] = true;
        }
        mixed += has[0] && has[1];
    }
    return mixed;
}

TEST(every_llc_gets_fast_and_slow_cpus)
{
    struct asym_machine m = machine(NULL, 16, 4);
    for (unsigned n = 4; n <= 12; n++) {
        assert_chosen(&m, n);
        assert_int_equal(mixed_llcs(&m, n), 4);
    }
    assert_chosen(&m, 3);
    assert_int_equal(mixed_llcs(&m, 3), 3);
}

TEST(a_small_llc_is_not_used_up_while_a_large_one_can_spare)
{
    struct asym_machine m = machine(NULL, 8, 8);
    for (unsigned c = 4; c < 8; c++)
        m.cpus[c].llc = (int16_t)(c < 6 ? 1 : 2); /* 4, 2 and 2 CPUs */
    assert_chosen(&m, 5);
    assert_int_equal(mixed_llcs(&m, 5), 3);
}

TEST(cores_and_frequency_domains_are_not_split)
{
    struct asym_machine m = machine(NULL, 8, 4);
    for (unsigned c = 0; c < 8; c++)
        m.cpus[c].core = (int16_t)(c / 2);
    m.cpus[2].freq_domain = m.cpus[1].freq_domain; /* joins the first two cores */
    assert_chosen(&m, 2);
    assert_chosen(&m, 4);
    assert_chosen(&m, 6);
    struct asym_mask slow;
    assert_int_equal(asym_machine_choose_slow(&m, 3, &slow), -ERANGE);
}

TEST(an_exact_sum_of_unequal_domains_is_found)
{
    /* domains of 3, 2 and 2 CPUs: 4 is 2 + 2 in any order of search */
    static const int16_t domains[][7] = {{0, 0, 0, 1, 1, 2, 2}, {0, 0, 1, 1, 2, 2, 2}};
    for (size_t i = 0; i < ASYM_LENGTH(domains); i++) {
        struct asym_machine m = machine(NULL, 7, 7);
        for (unsigned c = 0; c < 7; c++)
            m.cpus[c].freq_domain = domains[i][c];
        static const unsigned possible[] = {2, 3, 4, 5};
        for (size_t k = 0; k < ASYM_LENGTH(possible); k++)
            assert_chosen(&m, possible[k]);
        struct asym_mask slow;
        assert_int_equal(asym_machine_choose_slow(&m, 1, &slow), -ERANGE);
        assert_int_equal(asym_machine_choose_slow(&m, 6, &slow), -ERANGE);
    }
}

TEST(none_and_all_cannot_be_slow)
{
    struct asym_machine m = machine(NULL, 4, 4);
    struct asym_mask slow = engine_fixture_cpus("9");
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_int_equal(asym_machine_choose_slow(&m, 0, &slow), -ERANGE);
    assert_int_equal(asym_machine_choose_slow(&m, 4, &slow), -ERANGE);
    assert_int_equal(asym_machine_choose_slow(&m, 5000, &slow), -ERANGE);
    struct asym_machine one = machine(NULL, 1, 1);
    assert_int_equal(asym_machine_finish(&one), 0);
    assert_int_equal(asym_machine_choose_slow(&one, 1, &slow), -ERANGE);
    engine_fixture_assert_mask(&slow, "9"); /* written on success only */
}

/* A share of the fastest type's speed decides what is fast, not the order: two of three speeds can be fast. */
TEST(core_types_from_a_share_of_the_fastest_are_fast)
{
    const double speeds[] = {58, 55, 43, 46.4};
    static const struct {
        double from;
        const char *fast, *slow;
    } rows[] = {
        {0, "0-1,3", "2"}, /* the default: 46.4 is 80 % exactly, 43 is 74 % */
        {0.8, "0-1,3", "2"}, {0.81, "0-1", "2-3"}, {1, "0", "1-3"}, {0.74, "0-3", ""},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_machine m = machine(speeds, 4, 4);
        m.fast_from = rows[i].from;
        assert_int_equal(asym_machine_finish(&m), 0);
        engine_fixture_assert_mask(&m.fast, rows[i].fast);
        engine_fixture_assert_mask(&m.slow, rows[i].slow);
        assert_int_equal(m.n_types, 4);
    }
}

TEST(a_share_out_of_range_is_refused)
{
    const double bad[] = {-0.1, 1.01, NAN, INFINITY};
    for (size_t i = 0; i < 2 * ASYM_LENGTH(bad); i++) {
        struct asym_machine m = machine(NULL, 4, 4), before;
        *(i % 2 ? &m.smt_gain : &m.fast_from) = bad[i / 2];
        before = m;
        assert_int_equal(asym_machine_finish(&m), -EINVAL);
        assert_memory_equal(&m, &before, sizeof m);
    }
}

/* The configuration calls them slow: they stay slow even with nearly full speed. */
TEST(cpus_that_are_held_are_slow_however_little_slower)
{
    const struct asym_mask slow = engine_fixture_cpus("2-3");
    struct asym_machine m = machine(NULL, 4, 4);
    assert_int_equal(asym_machine_finish(&m), 0);
    assert_int_equal(asym_machine_assume_slow(&m, &slow, 0.9), 0);
    engine_fixture_assert_mask(&m.fast, "0-1");
    engine_fixture_assert_mask(&m.slow, "2-3");
    static struct asym_caps caps;
    caps = (struct asym_caps){.cpus = slow, .share = {[2] = 0.9, [3] = 0.9}};
    struct asym_machine capped = machine(NULL, 4, 4);
    assert_int_equal(asym_machine_finish(&capped), 0);
    assert_int_equal(asym_machine_cap(&capped, &caps), 0);
    engine_fixture_assert_mask(&capped.slow, "2-3");
    /* no CPU is slow if no CPU is faster */
    struct asym_machine same = machine(NULL, 4, 4);
    assert_int_equal(asym_machine_finish(&same), 0);
    assert_int_equal(asym_machine_assume_slow(&same, &slow, 1), 0);
    engine_fixture_assert_mask(&same.slow, "");
}

TEST(favour_ranks_the_cpus_of_each_type)
{
    const double speeds[] = {1, 2, 2, 2, 2, 1};
    const uint32_t favour[] = {7, 100, 300, 300, 0, 9};
    const unsigned rank[] = {1, 1, 0, 0, 2, 0};
    struct asym_machine m = machine(speeds, 6, 6);
    struct asym_mask favoured;
    for (unsigned c = 0; c < 6; c++)
        m.cpus[c].favour = favour[c];
    assert_int_equal(asym_machine_finish(&m), 0);
    for (unsigned c = 0; c < 6; c++)
        assert_int_equal(m.cpus[c].rank, rank[c]);
    assert_int_equal(m.n_types, 2); /* favour does not make a core type */
    assert_true(asym_machine_favoured(&m, 0, &favoured));
    engine_fixture_assert_mask(&favoured, "2-3");
    assert_true(asym_machine_favoured(&m, 1, &favoured));
    engine_fixture_assert_mask(&favoured, "5");
    struct asym_machine plain = machine(speeds, 6, 6);
    assert_int_equal(asym_machine_finish(&plain), 0);
    assert_false(asym_machine_favoured(&plain, 0, &favoured));
    engine_fixture_assert_mask(&favoured, "1-4");
}

TEST(more_ranks_than_fit_are_the_last_one)
{
    static struct asym_machine m;
    m = machine(NULL, ASYM_MAX_CPUS, 8);
    for (unsigned c = 0; c < ASYM_MAX_CPUS; c++)
        m.cpus[c].favour = ASYM_MAX_CPUS - c;
    assert_int_equal(asym_machine_finish(&m), 0);
    for (unsigned c = 0; c < ASYM_MAX_CPUS; c++)
        assert_int_equal(m.cpus[c].rank, ASYM_MIN(c, UINT8_MAX));
}

TEST(every_origin_has_a_name)
{
    for (int o = 0; o < ASYM_N_ORIGINS; o++) {
        assert_non_null(asym_origin_name((enum asym_origin)o));
        for (int p = 0; p < o; p++)
            assert_string_not_equal(asym_origin_name((enum asym_origin)o), asym_origin_name((enum asym_origin)p));
    }
    assert_string_equal(asym_origin_name(ASYM_ORIGIN_CPUFREQ), "cpufreq");
    assert_string_equal(asym_origin_name(ASYM_ORIGIN_CAPACITY), "cpu_capacity");
    assert_non_null(asym_origin_name((enum asym_origin)99));
}

TEST_MAIN
