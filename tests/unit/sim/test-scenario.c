/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing of scenario files, and the messages for bad ones. */
#include <glob.h>
#include <math.h>

#include "config/config.h"
#include "sim/scenario.h"
#include "support/test.h"

#define MACHINE "[machine]\ncounts=7,1\nspeeds=1,2\n"
#define PROGRAM "[program a]\nstep=serial 1M\n"

TEST(everything_is_read)
{
    static const char text[] =
        "; a comment\n[machine]\ncounts = 12, 4\nspeeds = 1, 2.5\nsmt = 2\nllc = 4\nnode = 2\norder = interleaved\n"
        "max_ipc = 4\nmiss = 80ns\n"
        "[scheduler]\ntick = 10ms\nplacement = random\ncapacity = active\nhousekeeping = 0,2-3\n"
        "[run]\nduration = 30s\nuntil = runs\nruns = 5\nalone = no\n"
        "[memory hot]\nmpki = 12\nipc = 9\n"
        "[program \"two words\"]\nthreads = 3\ncount = 2\nnice = 0..19\naffinity = 0-3\npasses = 7\nrestart = yes\n"
        "spin = 2ms\nstart = 1s\nrate = 2.5\n"
        "step = parallel 1.5G uniform chunk=200k lock=1k io=3ms memory=hot\nstep = loop 3\nstep = io 4ms exponential\n"
        "step = end\nstep = label 2:1 3M\n"
        "[enforce]\nsettle = 0ms\n[asymd]\ninterval = 10ms\n";
    struct asym_scenario *s;
    struct asym_error err = {""};
    assert_int_equal(asym_scenario_parse(text, strlen(text), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_cpus(s), 32);
    assert_int_equal(s->scheduler.capacity, ASYM_SIM_CAPACITY_ACTIVE);
    assert_int_equal(s->scheduler.housekeeping.w[0], 0xd);
    asym_scenario_free(s);
    /* smt is a number for all cores, or one for each count. */
    const char *const smt = "[machine]\ncounts=8,16,2\nspeeds=1.6,1,0.7\nsmt=2,1,1\n" PROGRAM;
    assert_int_equal(asym_scenario_parse(smt, strlen(smt), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_cpus(s), 34);
    asym_scenario_free(s);
    /* A second line replaces all of the first, not only its beginning. */
    const char *const twice = "[machine]\ncounts=2,2,2\nspeeds=1,2,3\n[machine]\ncounts=1,1\nspeeds=1,2\n" PROGRAM;
    assert_int_equal(asym_scenario_parse(twice, strlen(twice), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_cpus(s), 2);
    asym_scenario_free(s);
    assert_int_equal(asym_scenario_parse(text, strlen(text), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_threads(s), 6);
    assert_true(s->machine.speeds[1] > 2.49 && s->machine.speeds[1] < 2.51);
    assert_int_equal(s->machine.order, ASYM_SIM_INTERLEAVED);
    assert_int_equal(s->machine.miss_ns, 80);
    assert_int_equal(s->scheduler.tick, 10000000);
    assert_int_equal(s->run.until, ASYM_SIM_UNTIL_RUNS);
    assert_false(s->run.alone);
    assert_true(s->memories[1].ipc <= 4 && s->memories[1].apki >= 12);
    const struct asym_sim_program *p = &s->programs[0];
    assert_string_equal(p->name, "two words");
    assert_int_equal(p->nice_high, 19);
    assert_int_equal(p->passes, 7);
    assert_int_equal(p->spin, 2000000);
    assert_int_equal(p->n_steps, 6);
    assert_int_equal(p->steps[0].memory, 1);
    assert_int_equal(p->steps[0].draw, ASYM_SIM_UNIFORM);
    assert_true(p->steps[0].chunk > 199e3 && p->steps[0].critical > 999 && p->steps[0].pause > 2.9e6);
    assert_int_equal(p->steps[3].partner, 1);
    /* A label counts parallel work per CPU. */
    assert_true(fabs(p->steps[5].follow - 0.5 / 32) < 1e-12);
    assert_int_equal(s->settings->enforce.settle, 0);
    assert_int_equal(s->settings->daemon.interval, 10 * ASYM_MSEC);
    asym_scenario_free(s);
}

TEST(fast_from_and_smt_gain_are_of_the_machine)
{
    static const char text[] = "[machine]\ncounts=1,1,1\nspeeds=5.8,5.5,4.3\nfast_from = 96%\nsmt_gain = 18%\n" PROGRAM;
    struct asym_scenario *s;
    struct asym_error err;
    assert_int_equal(asym_scenario_parse(text, strlen(text), "f", &s, &err), 0);
    assert_true(fabs(s->settings->machine.fast_from - 0.96) < 1e-9);
    assert_true(fabs(s->settings->machine.smt_gain - 0.18) < 1e-9);
    asym_scenario_free(s);
}

TEST(each_bad_line_is_named_with_what_is_accepted)
{
    static const struct {
        const char *text, *where, *what;
    } rows[] = {
        {MACHINE "fast_from=80\n" PROGRAM, "f:4: ", "a share from 1% to 100%"},
        {MACHINE "cuonts=1\n" PROGRAM, "f:4: ", "did you mean 'counts'?"},
        {"[machien]\n", "f:1: ", "machine, scheduler"},
        {MACHINE "order=blokced\n" PROGRAM,
         "f:4: ", "machine.order: 'blokced' is not accepted (did you mean 'blocked'?)"},
        {MACHINE "[program a]\npasses=forver\n", "f:5: ", "(did you mean 'forever'?)"},
        {MACHINE "[program a]\nspin=2\n", "f:5: ", "a time with unit (ns, us, ms, s) from 0ns to 86400s or forever"},
        {MACHINE "[scheduler]\ntick=99us\n", "f:5: ", "from 100us to 1s"},
        {MACHINE "[program a]\nstap=1\n", "f:5: ", "did you mean 'step'?"},
        {"[machine]\ncounts=1\nspeeds=0\n" PROGRAM, "f:3: ", "above 0"},
        {"[machine]\ncounts=1,2\nspeeds=1\n" PROGRAM, "f:1: ", "as many speeds as counts"},
        {"[machine]\ncounts=1.5\nspeeds=1\n" PROGRAM, "f:2: ", "numbers of cores"},
        {"[machine]\ncounts=1000,25\nspeeds=1,2\n" PROGRAM, "f:1: ", "1025 CPUs; accepted are 1024"},
        {PROGRAM, "f: ", "no machine"},
        {MACHINE, "f: ", "no program"},
        {MACHINE "smt=9\n" PROGRAM, "f:4: ", "from 1 to 8: a number for all cores, or one for each count"},
        {MACHINE "smt=1.5\n" PROGRAM, "f:4: ", "from 1 to 8"},
        {MACHINE "smt=2,1,1\n" PROGRAM, "f:1: ", "one number, or as many as counts"},
        {MACHINE "smt=2\nsmt=2\n" PROGRAM, "f:5: ", "given twice, first in line 4"},
        {MACHINE "[run]\nduration=5\n" PROGRAM, "f:5: ", "a time with unit"},
        {MACHINE "[run]\nuntil=done\n" PROGRAM, "f:6: ", "never ends"},
        {MACHINE "[run]\nuntil=done\n[program a]\npasses=1\nrestart=yes\nstep=serial 1M\n",
         "f:6: ", "restarts without end"},
        {MACHINE "[run]\nuntil=done\n[program a]\npasses=1\nrate=2\nstep=serial 1M\n", "f:6: ", "restarts without end"},
        {MACHINE "[program a]\n", "f:4: ", "no step that takes time"},
        {MACHINE "[program a]\nstep=loop 3\nstep=end\n", "f:5: ", "would never end"},
        {MACHINE "[program a]\nstep=serial 1M\nstep=loop 3\nstep=end\n", "f:6: ", "would never end"},
        {MACHINE "[program a]\nstep=loop 3\nstep=serial 1M\n", "f:5: ", "without an end"},
        {MACHINE "[program a]\nstep=serial 1M\nstep=end\n", "f:6: ", "end without a loop"},
        {MACHINE "[program a]\nstep=serial 0\n", "f:5: ", "above 0"},
        {MACHINE "[program a]\nstep=serial 999\n", "f:5: ", "at least 1k"},
        {MACHINE "[program a]\nstep=parallel 1G chunk=1\n", "f:5: ", "at least 1k"},
        {MACHINE "[program a]\nstep=serial 1M\nstep=io 999ns\n", "f:6: ", "at least 1us"},
        {MACHINE "[program a]\nstep=serial 1M chunk=2\n", "f:5: ", "'chunk=2' is not accepted here"},
        {MACHINE "[program a]\nstep=serial 1M memory=m\n", "f:5: ", "no such memory"},
        {MACHINE "[program a]\nstep=label inf:inf 1M\n", "f:5: ", "label P:S WORK"},
        {MACHINE "[program a]\nthreads=1000001\nstep=serial 1\n", "f:5: ", "from 1 to 1000000"},
        {MACHINE "[program a]\nthreads=1000\ncount=1001\nstep=serial 1M\n", "f:4: ", "1001000 threads"},
        {MACHINE "[program a]\naffinity=8\nstep=serial 1M\n", "f:4: ", "it has 8"},
        {MACHINE "[scheduler]\nhousekeeping=7-8\n" PROGRAM, "f: ", "housekeeping names CPUs"},
        {MACHINE "[scheduler]\nhousekeeping=zero\n" PROGRAM, "f:5: ", "a CPU list"},
        {MACHINE "[program a]\nnice=3..1\nstep=serial 1M\n", "f:5: ", "0..19"},
        {MACHINE "[program]\nstep=serial 1M\n", "f:4: ", "needs a name"},
        {MACHINE PROGRAM PROGRAM, "f:6: ", "already"},
        {MACHINE PROGRAM "[enforce]\nsettle=x\n", "f:7: ", "enforce.settle"},
        {MACHINE PROGRAM "[enforce]\nsetle=0ms\n", "f:7: ", "did you mean 'settle'?"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_scenario *s = NULL;
        struct asym_error err = {""};
        if (asym_scenario_parse(rows[i].text, strlen(rows[i].text), "f", &s, &err) != -EINVAL)
            fail_msg("accepted: %s", rows[i].text);
        assert_null(s);
        if (strncmp(err.text, rows[i].where, strlen(rows[i].where)) != 0 || !strstr(err.text, rows[i].what))
            fail_msg("'%s' says neither %s nor %s of:\n%s", err.text, rows[i].where, rows[i].what, rows[i].text);
    }
}

TEST(the_scenarios_that_come_with_it_are_read)
{
    glob_t found;
    assert_int_equal(glob(ASYM_TEST_SOURCE "/scenarios/*.ini", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 6);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct asym_scenario *s;
        struct asym_error err = {""};
        char *text;
        size_t len;
        assert_int_equal(asym_ini_file(found.gl_pathv[i], &text, &len, &err), 0);
        if (asym_scenario_parse(text, len, found.gl_pathv[i], &s, &err) < 0)
            fail_msg("%s", err.text);
        asym_scenario_free(s);
        free(text);
    }
    globfree(&found);
}

TEST_MAIN
