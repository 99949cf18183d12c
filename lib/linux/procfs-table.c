/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes by pid. */
#include <errno.h>
#include <stdlib.h>

#include "linux/procfs-internal.h"

/* Numbers are handed out one after another, so that they spread well by themselves; the factor parts those that do not. */
static size_t home_of(int32_t pid, size_t n_slots)
{
    return (size_t)((uint32_t)pid * UINT32_C(2654435761)) & (n_slots - 1);
}

static size_t slot_of(const struct asym_pid_table *t, int32_t pid)
{
    size_t i = home_of(pid, t->n_slots);
    while (t->slots[i] && t->slots[i]->pid != pid)
        i = (i + 1) & (t->n_slots - 1);
    return i;
}

struct asym_process *asym_pid_table_find(const struct asym_pid_table *t, int32_t pid)
{
    return t->n_slots ? t->slots[slot_of(t, pid)] : NULL;
}

static int grow(struct asym_pid_table *t)
{
    struct asym_pid_table larger = {.n = t->n, .n_slots = t->n_slots ? t->n_slots * 2 : 256};
    larger.slots = calloc(larger.n_slots, sizeof(struct asym_process *));
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i])
            larger.slots[slot_of(&larger, t->slots[i]->pid)] = t->slots[i];
    free(t->slots);
    *t = larger;
    return 0;
}

int asym_pid_table_add(struct asym_pid_table *t, struct asym_process *proc)
{
    if (2 * (t->n + 1) > t->n_slots && grow(t) < 0)
        return -ENOMEM;
    t->slots[slot_of(t, proc->pid)] = proc;
    t->n++;
    return 0;
}

/* What follows moves up where it may, so that no search ends too early. */
void asym_pid_table_remove(struct asym_pid_table *t, int32_t pid)
{
    if (!asym_pid_table_find(t, pid))
        return;
    const size_t last = t->n_slots - 1;
    size_t hole = slot_of(t, pid);
    for (size_t i = (hole + 1) & last; t->slots[i]; i = (i + 1) & last) {
        size_t home = home_of(t->slots[i]->pid, t->n_slots);
        if (((i - home) & last) >= ((i - hole) & last)) {
            t->slots[hole] = t->slots[i];
            hole = i;
        }
    }
    t->slots[hole] = NULL;
    t->n--;
}

void asym_pid_table_done(struct asym_pid_table *t)
{
    free(t->slots);
    *t = (struct asym_pid_table){0};
}
