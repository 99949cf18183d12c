/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The kernel for phases.bpf.c as plain C: maps are arrays, helpers are functions, the clock is a variable. Only test-phases-bpf.c
 * includes it, before the programs; it defines what is declared here behind them.
 */
#ifndef ASYM_TESTS_PHASES_PLAIN_H
#define ASYM_TESTS_PHASES_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KERNEL_STRUCT
#define SEC(name)
#define __TARGET_ARCH_x86
#define __noinline          __attribute__((noinline))
#define __uint(name, value) int(*name)[value]
#define __type(name, type)  __typeof__(type) *name
#define barrier()           at_barrier()
#define barrier_var(x)
#define BPF_PROG(name, ...)                                                                                            \
    name(__VA_ARGS__);                                                                                                 \
    int name(__VA_ARGS__)

struct task_struct;
struct bpf_iter__task;
struct tag;

/* The programs, which the kernel calls by their sections. */
int iter_follow(struct bpf_iter__task *ctx);
int iter_reconcile(struct bpf_iter__task *ctx);
int run_settings(void *ctx);

static uint64_t clock_ns;
static uint32_t current_cpu;
static struct task_struct *current;
/* Called once in place of another CPU: a program makes storage, begins to change a slot, tells an event, reads the clock. */
static void (*interrupt)(struct task_struct *p);
static void (*interrupt_change)(void), (*interrupt_emit)(void), (*interrupt_clock)(void);

static void *map_at(const void *map, const uint32_t *key);
static int pop(uint32_t *ret);
static void push(uint32_t slot);
static struct tag *storage_of(struct task_struct *p, const struct tag *tag, int flags);
static void forget_storage(struct task_struct *p);
static void repeat(uint32_t n, long (*fn)(uint32_t i, void *ctx));
static void *reserve(void);
static void submit(uint64_t flags);
static int timer_start(void *timer, uint64_t ns);
static void at_barrier(void);
static uint64_t read_ns(void);

#define bpf_get_smp_processor_id()                 current_cpu
#define bpf_ktime_get_ns()                         read_ns()
#define bpf_get_current_task_btf()                 current
#define bpf_map_lookup_elem(map, key)              map_at(map, key)
#define bpf_map_pop_elem(map, value)               pop(value)
#define bpf_map_push_elem(map, value, flags)       push(*(value))
#define bpf_task_storage_get(map, task, tag, flag) storage_of(task, tag, flag)
#define bpf_task_storage_delete(map, task)         forget_storage(task)
#define bpf_loop(n, fn, ctx, flags)                repeat(n, fn)
#define bpf_ringbuf_reserve(map, size, flags)      reserve()
#define bpf_ringbuf_submit(record, flags)          submit(flags)
#define bpf_timer_init(timer, map, clock)          0
#define bpf_timer_set_callback(timer, fn)          (void)(fn)
#define bpf_timer_start(timer, ns, flags)          timer_start(timer, ns)
#define bpf_core_field_exists(field)               1
#define bpf_core_field_offset(type, field)         offsetof(type, field)
#define bpf_core_type_size(type)                   sizeof(type)
#define bpf_core_read(to, size, from)              (memcpy(to, from, size), 0)
#define bpf_probe_read_kernel(to, size, from)      memcpy(to, from, size)

#endif
