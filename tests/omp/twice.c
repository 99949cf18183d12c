/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Regions alternate between the runtime that the program is linked with and a second copy of LLVM's, in a name space of its
 * own. A second runtime refuses to start unless KMP_DUPLICATE_LIB_OK is set. Each copy loads its own copy of a tool. The
 * program prints the number of these copies in the process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <omp.h>

/* These match the compiler's calls of the runtime: ident_t, and the outlined body of a region. */
struct place {
    int reserved_1, flags, reserved_2, reserved_3;
    const char *source;
};
typedef void body(int *global, int *bound, ...);
typedef void fork_call(struct place *where, int n_arguments, body *what, ...);

static atomic_int bodies;

static void other_body(int *global, int *bound, ...)
{
    (void)global;
    (void)bound;
    atomic_fetch_add(&bodies, 1);
    usleep(1000);
}

static int count_tools(void)
{
    char line[4096];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        n += strstr(line, "libasym-ompt.so") && strstr(line, " r-xp ");
    if (maps)
        fclose(maps);
    return n;
}

int main(void)
{
    struct place where = {.flags = 2, .source = ";twice;twice;0;0;;"};
    fork_call *other;
    void *copy = dlmopen(LM_ID_NEWLM, "libomp.so.5", RTLD_NOW);
    *(void **)&other = copy ? dlsym(copy, "__kmpc_fork_call") : NULL;
    if (!other)
        return 1;
    for (int i = 0; i < 50; i++) {
#pragma omp parallel num_threads(3)
        usleep(1000);
        other(&where, 0, other_body);
    }
    printf("tools=%d\n", count_tools());
    return atomic_load(&bodies) < 50;
}
