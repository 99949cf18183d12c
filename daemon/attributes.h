/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What is worth knowing of CPUs besides their speed, in words. */
#ifndef ASYM_DAEMON_ATTRIBUTES_H
#define ASYM_DAEMON_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/machine.h>

/** "L3: 96 MiB on 0-7, 32 MiB on 8-15"; false, and nothing written, where all CPUs have the same. */
bool asym_describe_l3(const struct asym_machine *m, char *buf, size_t size);

/** "8-11": the favoured CPUs of a core type; false, and nothing written, where all its CPUs are equal. */
bool asym_describe_favoured(const struct asym_machine *m, unsigned type, char *buf, size_t size);

#endif
