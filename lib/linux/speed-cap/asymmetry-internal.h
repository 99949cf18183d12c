/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The state of asymmetry. Only asymmetry*.c include this. */
#ifndef ASYM_LINUX_SPEED_CAP_ASYMMETRY_INTERNAL_H
#define ASYM_LINUX_SPEED_CAP_ASYMMETRY_INTERNAL_H

#include "linux/speed-cap/asymmetry.h"

/** Says whose limits a unit has. */
enum asym_unit_state {
    ASYM_UNIT_PENDING, /**< asymd is changing them: any state found there is asymd's */
    ASYM_UNIT_REFUSED, /**< pending, and the write of the cap failed */
    ASYM_UNIT_SET,     /**< asymd has set them */
    ASYM_UNIT_FOREIGN, /**< another program changed them: asymd only reads them */
};

/** A capped unit: CPUs that change together, a frequency domain or a core. */
struct asym_capped_unit {
    const struct asym_cap_method *method; /* borrowed */
    int cpu;                              /* the CPU by which asymd reads and writes the unit */
    struct asym_mask cpus;
    struct asym_cap_state original, set;
    enum asym_unit_state state;
    bool missing; /* it was offline at the last check */
    bool leaving; /* it was offline when asymd had to restore it; the check restores it when it is back */
    /* The last write. settling: the file may still show from. */
    struct asym_cap_state from, to;
    bool settling;
    int error; /* of the last write; 0, -errno */
};

struct asym_asymmetry {
    char *dir;
    int dir_fd;
    const struct asym_cap_method *const *methods;
    struct asym_capped_unit *held;
    size_t n;
    struct asym_caps caps;
};

/** Replaces the file atomically by the states to restore; removes it when there are none. Returns 0; -errno. */
int asym_asymmetry_save(const struct asym_asymmetry *a);

/** Writes the file again if it, or its directory, was removed. */
void asym_asymmetry_save_again(struct asym_asymmetry *a);

/** Reads the file. Returns 0; -EBADMSG: some records are invalid, the others are loaded; -ENOMEM; -errno. */
int asym_asymmetry_load(struct asym_asymmetry *a);

/** Renames the file to cpus.bad, so that the user can read it. */
void asym_asymmetry_rename_bad_file(const struct asym_asymmetry *a);

#endif
