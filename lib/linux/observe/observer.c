/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/observer.h"

#include <errno.h>

const struct asym_observer_entry *const asym_observers[ASYM_N_OBSERVERS] = {
#define ASYM_OBSERVER(NAME, name) &asym_observer_entry_##name,
#include <asym/observers.def>
#undef ASYM_OBSERVER
};

int asym_observers_open(const struct asym_observer_entry *const *entries, size_t n,
                        const struct asym_observer_context *context,
                        void (*absent)(void *ctx, const char *name, const char *why), void *ctx,
                        struct asym_observers *ret, struct asym_error *err)
{
    struct asym_observers o = {.source = NULL};
    for (size_t i = 0; i < n && i < ASYM_OBSERVERS_MAX; i++) {
        struct asym_error why = {""};
        const int r = entries[i]->open(context, o.source, &o.links[i], i == 0 ? err : &why);
        if (r < 0 && i == 0)
            return r;
        if (r < 0 && r != -ECANCELED)
            absent(ctx, entries[i]->name, why.text);
        if (r < 0)
            continue;
        o.links[i]->inner = o.source;
        o.source = o.links[i];
    }
    *ret = o;
    return 0;
}

void asym_observers_close(struct asym_observers *o)
{
    for (size_t i = ASYM_OBSERVERS_MAX; i-- > 0;)
        if (o->links[i])
            o->links[i]->close(o->links[i]);
    *o = (struct asym_observers){.source = NULL};
}
