/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The insides of asymmetry; for asymmetry*.c alone. */
#ifndef ASYM_LINUX_ASYMMETRY_INTERNAL_H
#define ASYM_LINUX_ASYMMETRY_INTERNAL_H

#include "linux/asymmetry.h"

/** CPUs that change together: a frequency domain, or a core. */
struct asym_held {
    const struct asym_cap_method *method; /* borrowed */
    int cpu;                              /* the one it is read and written by */
    struct asym_mask cpus;
    struct asym_cap_state original, set;
    bool pending; /* being changed: whatever is found there is asymd's doing */
    bool loose;   /* somebody else's now: only looked at */
    bool missing; /* was offline when last looked at */
    bool leaving; /* offline when it was to be put back: that is done when it is seen again */
    /* A write under way: what there was, until it no longer reads so. */
    struct asym_cap_state from, to;
    bool settling;
    bool refused; /* the write that was to hold it */
    int error;    /* of the write */
};

struct asym_asymmetry {
    char *dir;
    int dir_fd;
    const struct asym_cap_method *const *methods;
    struct asym_held *held;
    size_t n;
    struct asym_caps caps;
};

/** Write what there is to put back, in the old file's place at once; no file when there is nothing. 0; -errno. */
int asym_asymmetry_save(const struct asym_asymmetry *a);

/** Write it anew where the file, or its directory, was removed. */
void asym_asymmetry_save_again(struct asym_asymmetry *a);

/** 0; -EBADMSG: some of it cannot be read, the rest is there; -ENOMEM; -errno. */
int asym_asymmetry_load(struct asym_asymmetry *a);

/** cpus.bad, for a person to look at. */
void asym_asymmetry_keep_aside(const struct asym_asymmetry *a);

#endif
