/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Only machine-facts*.c include this. */
#ifndef ASYM_LINUX_CHECK_MACHINE_FACTS_INTERNAL_H
#define ASYM_LINUX_CHECK_MACHINE_FACTS_INTERNAL_H

#include "linux/check/machine-facts.h"

/** Reads the first line of a file and escapes it for print. Returns 0; -ENODATA: the line is empty; -errno. */
int asym_facts_line(const struct asym_root *root, const char *path, char *buf, size_t size);

/** Reads a file that holds one number and nothing else. Returns false for any other. */
bool asym_facts_number(const struct asym_root *root, const char *path, long long *ret);

void asym_facts_say(struct asym_fact *f, enum asym_fact_level level, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

int asym_facts_read_cgroups(const struct asym_root *root, struct asym_fact *ret);

#endif
