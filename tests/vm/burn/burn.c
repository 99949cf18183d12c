// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's device /dev/burn: ioctl(fd, 0, NS) keeps the calling thread running for the work of NS nanoseconds, as the scheduler
 * sees it, and returns the work that it did; that is less if the thread has to yield the CPU. The emulated CPU halts meanwhile, so
 * it costs its host nearly nothing, and each interrupt comes in time. insmod burn.ko speed=500,1000: CPU 0 does 0.5 ns of work in
 * 1 ns. ioctl(fd, 1, NS) sleeps until that time of CLOCK_MONOTONIC as clock_nanosleep does, and returns the nanoseconds from the
 * interrupt until the thread runs: an emulated timer comes late where its host is busy, whatever the guest's scheduler does.
 */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
/* A newer kernel has this function. */
static void hrtimer_setup_on_stack(struct hrtimer *hr, enum hrtimer_restart (*fire)(struct hrtimer *), clockid_t clock,
                                   enum hrtimer_mode mode)
{
    hrtimer_init_on_stack(hr, clock, mode);
    hr->function = fire;
}
#endif
#ifndef TIF_NEED_RESCHED_LAZY
#define TIF_NEED_RESCHED_LAZY TIF_NEED_RESCHED
#endif

static int speed[NR_CPUS] = {[0 ... NR_CPUS - 1] = 1000};
module_param_array(speed, int, NULL, 0444);

struct timer {
    struct hrtimer hr;
    bool fired;
};

static enum hrtimer_restart fire(struct hrtimer *hr)
{
    container_of(hr, struct timer, hr)->fired = true;
    return HRTIMER_NORESTART;
}

/* Is called with interrupts disabled, so that none comes between a check and the wait. */
static void wait_for_interrupt(void)
{
#ifdef CONFIG_X86
    native_safe_halt(); /* enables interrupts in the same moment */
#else
    wfi(); /* a disabled interrupt ends the wait, too */
    local_irq_enable();
#endif
    local_irq_disable();
}

/* A lazy request comes true where an interrupt returns to a program, so it does here. */
static bool is_done(const struct timer *timer)
{
    return READ_ONCE(timer->fired) || need_resched() || test_thread_flag(TIF_NEED_RESCHED_LAZY) ||
           signal_pending(current);
}

static long burn(unsigned long ns)
{
    struct timer timer = {.fired = false};
    u64 begun, per_mille;
    preempt_disable();
    per_mille = speed[smp_processor_id()];
    ns = div_u64((u64)ns * 1000 + per_mille - 1, per_mille);
    begun = ktime_get_ns();
    hrtimer_setup_on_stack(&timer.hr, fire, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
    hrtimer_start(&timer.hr, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
    local_irq_disable();
    while (!is_done(&timer)) {
        wait_for_interrupt();
    }
    local_irq_enable();
    hrtimer_cancel(&timer.hr);
    destroy_hrtimer_on_stack(&timer.hr);
    begun = ktime_get_ns() - begun;
    preempt_enable();
    return div_u64(begun * per_mille, 1000);
}

struct sleeper {
    struct hrtimer hr;
    struct task_struct *task;
    u64 woken_at; /* 0: the timer has not fired */
};

static enum hrtimer_restart wake(struct hrtimer *hr)
{
    struct sleeper *sleeper = container_of(hr, struct sleeper, hr);
    WRITE_ONCE(sleeper->woken_at, ktime_get_ns());
    wake_up_process(sleeper->task);
    return HRTIMER_NORESTART;
}

static long sleep_until(unsigned long ns)
{
    struct sleeper sleeper = {.task = current};
    u64 now;
    hrtimer_setup_on_stack(&sleeper.hr, wake, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
    set_current_state(TASK_INTERRUPTIBLE);
    hrtimer_start_range_ns(&sleeper.hr, ns_to_ktime(ns), current->timer_slack_ns, HRTIMER_MODE_ABS);
    if (!READ_ONCE(sleeper.woken_at))
        schedule();
    now = ktime_get_ns();
    __set_current_state(TASK_RUNNING);
    hrtimer_cancel(&sleeper.hr);
    destroy_hrtimer_on_stack(&sleeper.hr);
    return sleeper.woken_at ? now - sleeper.woken_at : -EINTR;
}

static long operate(struct file *file, unsigned int command, unsigned long ns)
{
    return command == 0 ? burn(ns) : sleep_until(ns);
}

static const struct file_operations operations = {.owner = THIS_MODULE, .unlocked_ioctl = operate};
static struct miscdevice device = {.minor = MISC_DYNAMIC_MINOR, .name = "burn", .fops = &operations, .mode = 0666};
module_misc_device(device);
MODULE_LICENSE("GPL");
