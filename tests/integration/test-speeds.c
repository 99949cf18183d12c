/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * [asymmetry] method = cpufreq at every start and end of asymd. The cpufreq files are plain files, mounted over
 * /sys/devices/system/cpu in a mount namespace of the test, which its children share.
 */
#include <signal.h>
#include <sys/mount.h>

#include "support/live.h"
#include "support/rounds.h"
#include "support/namespace.h"
#include "support/service.h"
#include "support/tree.h"
#include "support/test.h"

#define SYS "/sys/devices/system/cpu"

/* All values have seven digits: a shorter number would leave old digits in a plain file, unlike in sysfs. */
#define MIN  1000000
#define HALF 1400000
#define MAX  2800000

static struct tree tree;
static bool mounted;
static int slow_cpu;
static pid_t load; /* 0: none yet */

static void write_cpufreq(int cpu, const char *file, const char *value)
{
    char path[64];
    snprintf(path, sizeof path, "cpufreq/%s", file);
    tree_write_cpu(&tree, (unsigned)cpu, path, "%s\n", value);
}

static void make_cpufreq(void)
{
    for (int c = 0; c < asym_live_cpus(); c++) {
        write_cpufreq(c, "cpuinfo_min_freq", "1000000");
        write_cpufreq(c, "cpuinfo_max_freq", "2800000");
        write_cpufreq(c, "scaling_min_freq", "1000000");
        write_cpufreq(c, "scaling_max_freq", "2800000");
        write_cpufreq(c, "scaling_governor", "schedutil");
        write_cpufreq(c, "scaling_available_frequencies", "2800000 2100000 1400000 1000000");
    }
}

static int mount_tree(void **state)
{
    char cpu[128];
    tree_make(&tree);
    tree_plain(&tree, (unsigned)asym_live_cpus());
    make_cpufreq();
    slow_cpu = asym_live_cpus() - 1;
    snprintf(cpu, sizeof cpu, "%s" SYS, tree.path);
    if (asym_namespace_enter() < 0 || asym_namespace_cover(cpu, SYS) < 0)
        return -1;
    mounted = true;
    load = asym_service_spin("1");
    return 0;
}

static int unmount_tree(void **state)
{
    if (load > 0)
        asym_live_end(load, SIGKILL);
    if (mounted)
        umount2(SYS, MNT_DETACH);
    tree_remove(&tree);
    return 0;
}

static int set_up(void **state)
{
    make_cpufreq();
    return asym_service_set_up(state);
}

static long value_of(int cpu, const char *file)
{
    char path[128], text[64];
    snprintf(path, sizeof path, SYS "/cpu%d/cpufreq/%s", cpu, file);
    file_read(path, text, sizeof text);
    return atol(text);
}

static int is_held(pid_t pid, int cpus)
{
    return value_of(slow_cpu, "scaling_max_freq") == HALF && value_of(slow_cpu, "scaling_min_freq") == HALF;
}

static int is_free(pid_t pid, int cpus)
{
    bool all = true;
    for (int c = 0; c < cpus; c++)
        all = all && value_of(c, "scaling_max_freq") == MAX && value_of(c, "scaling_min_freq") == MIN;
    return all;
}

static pid_t start_asymd(void)
{
    const char *const more[] = {"--set=asymmetry.method=cpufreq", NULL};
    return asym_service_start(load, more);
}

static bool await(int (*condition)(pid_t pid, int cpus))
{
    return asym_live_await(condition, load, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE);
}

TEST_WITH(held_while_it_runs_and_given_back_on_sigterm, set_up, asym_service_tear_down)
{
    pid_t asymd = start_asymd();
    assert_true(await(is_held));
    assert_int_equal(value_of(0, "scaling_max_freq"), MAX);
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_true(is_free(load, asym_live_cpus()));
}

TEST_WITH(restore_and_the_next_start_give_back_what_a_killed_one_held, set_up, asym_service_tear_down)
{
    char text[1024];
    pid_t asymd = start_asymd();
    assert_true(await(is_held));
    asym_live_end(asymd, SIGKILL);
    assert_true(is_held(load, 0));
    assert_int_equal(asym_service_restore(text, sizeof text), 0);
    assert_true(is_free(load, asym_live_cpus()));
    asymd = start_asymd();
    assert_true(await(is_held));
    asym_live_end(asymd, SIGKILL);
    asymd = asym_service_start(load, NULL); /* this configuration caps no CPU */
    assert_true(await(is_free));
}

TEST_WITH(a_reload_changes_what_is_held, set_up, asym_service_tear_down)
{
    char path[128], option[160], list[128], slow[64];
    snprintf(path, sizeof path, "%s/asymd.conf", asym_service_dir());
    snprintf(option, sizeof option, "--config=%s", path);
    snprintf(list, sizeof list, "[asymmetry]\nmethod = cpufreq\nslow_speed = 0:75%% %d:50%%\n", slow_cpu);
    snprintf(slow, sizeof slow, "--set=asymmetry.slow=0,%d", slow_cpu);
    const struct {
        const char *text;
        long khz, khz_0; /* of the slow CPU, and of CPU 0 */
    } rows[] = {
        {"[asymmetry]\nmethod = cpufreq\nslow_speed = 75%\n", 2100000, 2100000},
        {"[asymmetry]\nmethod = cpufreq\nslow_speed = 1400MHz\n", HALF, HALF},
        {list, HALF, 2100000},
        {"[asymmetry]\nmethod = magic\n", HALF, 2100000}, /* refused, as the next: the previous one stays */
        {"[asymmetry]\nmethod = clockmod\nslow_speed = 50%\n", HALF, 2100000},
        {"", MAX, MAX},
    };
    pid_t asymd = -1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file_write(path, "%s", rows[i].text);
        const char *const more[] = {option, slow, NULL};
        if (asymd < 0)
            asymd = asym_service_start(load, more);
        else
            asym_live_signal(asymd, SIGHUP);
        asym_live_sleep(0.3);
        ASYM_LIVE_AWAIT(value_of(slow_cpu, "scaling_max_freq") == rows[i].khz &&
                        value_of(0, "scaling_max_freq") == rows[i].khz_0);
        assert_int_equal(value_of(slow_cpu, "scaling_max_freq"), rows[i].khz);
        assert_int_equal(value_of(0, "scaling_max_freq"), rows[i].khz_0);
    }
    assert_true(is_free(load, asym_live_cpus()));
}

/* Reads until the text occurs. */
static void read_until(int fd, const char *text, char *ret, size_t size)
{
    size_t used = 0;
    for (ret[0] = '\0'; !strstr(ret, text);) {
        const ssize_t n = read(fd, ret + used, size - 1 - used);
        assert_true(n > 0);
        used += (size_t)n;
        ret[used] = '\0';
    }
}

/* Reloads, hotplug and changes of the policy set the same caps again. What another program sets stays until the next reload. */
TEST_WITH(caps_are_logged_when_they_change, set_up, asym_service_tear_down)
{
    static const char changed[] = "another program or a user has changed the speed of CPUs";
    const char *const more[] = {"--set=asymmetry.method=cpufreq", NULL};
    char said[4096];
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t asymd = asym_service_start_to(load, more, fds[1]);
    close(fds[1]);
    /* asymd prints this when it has read its caps back. A different value before that would mean that the driver refuses them. */
    read_until(fds[0], "are held to", said, sizeof said);
    assert_true(is_held(load, 0));
    asym_live_signal(asymd, SIGHUP);
    read_until(fds[0], "has read the configuration again", said, sizeof said);
    assert_null(strstr(said, "are held to"));
    assert_true(is_held(load, 0));
    write_cpufreq(slow_cpu, "scaling_max_freq", "2100000");
    read_until(fds[0], changed, said, sizeof said);
    asym_live_sleep(1.2); /* asymd checks the caps every second, and prints this once */
    assert_int_equal(value_of(slow_cpu, "scaling_max_freq"), 2100000);
    asym_live_signal(asymd, SIGHUP);
    read_until(fds[0], "are held to", said, sizeof said);
    assert_null(strstr(said, changed));
    assert_true(is_held(load, 0));
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    close(fds[0]);
}

/* Returns the longest time of five starts until the caps are set: some 20 ms on an idle machine. */
static double time_to_hold(void)
{
    char text[1024];
    double longest = 0;
    for (int i = 0; i < 5; i++) {
        const double begin = asym_live_now();
        pid_t asymd = start_asymd();
        assert_true(await(is_held));
        longest = ASYM_MAX(longest, asym_live_now() - begin);
        asym_live_end(asymd, SIGKILL);
        assert_int_equal(asym_service_restore(text, sizeof text), 0);
    }
    return longest;
}

TEST_WITH(kill_9_at_any_moment_leaves_no_cpu_slow, set_up, asym_service_tear_down)
{
    char text[1024];
    int held = 0;
    const int rounds = (int)asym_rounds(100);
    const double longest = time_to_hold();
    for (int round = 0; round < rounds; round++) {
        pid_t asymd = start_asymd();
        asym_live_sleep(2 * longest * round / rounds);
        asym_live_end(asymd, SIGKILL);
        held += is_held(load, 0);
        assert_int_equal(asym_service_restore(text, sizeof text), 0);
        if (!is_free(load, asym_live_cpus()))
            fail_msg("round %d: %ld to %ld", round, value_of(slow_cpu, "scaling_min_freq"),
                     value_of(slow_cpu, "scaling_max_freq"));
    }
    print_message("%d kills, %d of them while CPUs were held; none was left so\n", rounds, held);
    assert_true(held > 0 && held < rounds);
}

TEST_MAIN_WITH(mount_tree, unmount_tree)
