/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Cleanup attributes and small macros. */
#ifndef ASYM_BASE_MACRO_H
#define ASYM_BASE_MACRO_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ASYM_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ASYM_MIN(a, b)     ((a) < (b) ? (a) : (b))
#define ASYM_MAX(a, b)     ((a) > (b) ? (a) : (b))

/** Call fn with the variable's address when the variable goes out of scope. */
#define ASYM_CLEANUP(fn) __attribute__((cleanup(fn)))

/** Returns the pointer and sets its variable to NULL, so that the variable's cleanup does nothing. */
#define ASYM_TAKE(p)                                                                                                   \
    __extension__({                                                                                                    \
        __typeof__(p) take_ = (p);                                                                                     \
        (p) = NULL;                                                                                                    \
        take_;                                                                                                         \
    })

static inline void asym_free_p(void *p)
{
    free(*(void **)p);
}

static inline void asym_close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void asym_fclose_p(FILE **f)
{
    if (*f)
        fclose(*f);
}

static inline void asym_closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

#define ASYM_AUTO_FREE     ASYM_CLEANUP(asym_free_p)
#define ASYM_AUTO_CLOSE    ASYM_CLEANUP(asym_close_p)
#define ASYM_AUTO_FCLOSE   ASYM_CLEANUP(asym_fclose_p)
#define ASYM_AUTO_CLOSEDIR ASYM_CLEANUP(asym_closedir_p)

#endif
