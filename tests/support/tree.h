/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Small file trees in a temporary directory that describe fake machines. A call that fails ends in an assertion. */
#ifndef ASYM_TESTS_SUPPORT_TREE_H
#define ASYM_TESTS_SUPPORT_TREE_H

#include <stddef.h>

#include <asym/types.h>

#include "linux/sys/root.h"

struct tree {
    char path[64];
};

void tree_make(struct tree *t);
/** Remove the tree and all its files. It follows no links. */
void tree_remove(struct tree *t);

/** The tree of a test program that has only one: set-up and teardown for TEST_WITH and TEST_MAIN_WITH. */
extern struct tree the_tree;
int the_tree_make(void **state);
int the_tree_remove(void **state);
/** The path of a file in it. Static, until the next call. */
const char *the_tree_path(const char *file);

/** A tree with proc/stat and an empty sys, and its root: set-up and teardown for TEST_IN. */
struct tree_root {
    struct tree tree;
    struct asym_root root;
};
void tree_root_make(struct tree_root *f);
void tree_root_remove(struct tree_root *f);

/** Write a file, and make the directories that it needs. */
void tree_write(const struct tree *t, const char *file, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tree_write_bytes(const struct tree *t, const char *file, const void *bytes, size_t len);
void tree_mkdir(const struct tree *t, const char *directory);
void tree_link(const struct tree *t, const char *link, const char *target);
void tree_unlink(const struct tree *t, const char *file);

/** Write sys/devices/system/cpu/cpuN/FILE. */
void tree_write_cpu(const struct tree *t, unsigned cpu, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Make the skeleton of a machine: proc and sys, with the CPU lists present and online in the kernel's list format. */
void tree_machine(const struct tree *t, const char *present, const char *online);

/** Make the topology directory of one CPU. siblings has the hardware threads of its core, package the CPUs of its package. */
void tree_cpu(const struct tree *t, unsigned cpu, unsigned core, unsigned package_id, const char *siblings,
              const char *package);

/** Make a cache of this level that these CPUs share. The files are written for each CPU. */
void tree_cache(const struct tree *t, unsigned level, const char *cpus);

/** Make a machine of n CPUs: one thread per core, one package, no caches. */
void tree_plain(const struct tree *t, unsigned n);

#endif
