/* SPDX-License-Identifier: GPL-2.0-or-later */
/** For facts*.c alone. */
#ifndef ASYM_LINUX_FACTS_INTERNAL_H
#define ASYM_LINUX_FACTS_INTERNAL_H

#include "linux/facts.h"

/** The first line of a file made printable; -errno, -ENODATA when it is empty. */
int asym_facts_line(const struct asym_root *root, const char *path, char *buf, size_t size);

/** True and the number, when the file holds one and nothing else. */
bool asym_facts_number(const struct asym_root *root, const char *path, long long *ret);

void asym_facts_say(struct asym_fact *f, enum asym_fact_level level, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

int asym_facts_read_cgroups(const struct asym_root *root, struct asym_fact *ret);

#endif
