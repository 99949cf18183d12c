/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Small trees of files in a temporary directory: machines that are not there. All calls assert that they succeed. */
#ifndef ASYM_TESTS_SUPPORT_TREE_H
#define ASYM_TESTS_SUPPORT_TREE_H

#include <stddef.h>

#include <asym/types.h>

struct tree {
    char path[64];
};

void tree_make(struct tree *t);
/** Remove it with all that is in it; follows no links. */
void tree_remove(struct tree *t);

/** Write a file, making the directories it needs. */
void tree_write(const struct tree *t, const char *file, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tree_write_bytes(const struct tree *t, const char *file, const void *bytes, size_t len);
void tree_mkdir(const struct tree *t, const char *directory);
void tree_link(const struct tree *t, const char *link, const char *target);
void tree_unlink(const struct tree *t, const char *file);

/** sys/devices/system/cpu/cpuN/FILE. */
void tree_write_cpu(const struct tree *t, unsigned cpu, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** A machine's skeleton: proc and sys, with possible, present and online as given (kernel's list format). */
void tree_machine(const struct tree *t, const char *present, const char *online);

/** The topology directory of one CPU. siblings: the hardware threads of its core; package: the CPUs of its package. */
void tree_cpu(const struct tree *t, unsigned cpu, unsigned core, unsigned package_id, const char *siblings,
              const char *package);

/** A cache of that level shared by these CPUs, written for each of them. */
void tree_cache(const struct tree *t, unsigned level, const char *cpus);

/** n CPUs, one thread a core, one package, without caches. */
void tree_plain(const struct tree *t, unsigned n);

#endif
