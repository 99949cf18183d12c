/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Counts the allocations of a test program, and makes one fail. This file defines malloc, calloc, realloc and reallocarray, so only
 * one file of a program may include it. A sanitizer has its own malloc: there a hook counts, and none fails.
 */
#ifndef ASYM_TESTS_SUPPORT_COUNT_H
#define ASYM_TESTS_SUPPORT_COUNT_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

static volatile size_t count_allocations; /* volatile, because compilers assume that malloc changes no variable */
__attribute__((unused)) static volatile size_t count_fails_at; /* the allocation of that number fails; 0: none */

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define COUNT_SANITIZED 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define COUNT_SANITIZED 1
#endif

#ifdef COUNT_SANITIZED
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *p, size_t size),
                                              void (*on_free)(const volatile void *p));

static void count_malloc(const volatile void *p, size_t size)
{
    count_allocations++;
}

static void count_free(const volatile void *p)
{
}

/** Call this once before you read the count. */
static inline void count_begin(void)
{
    __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static inline void count_begin(void)
{
}

static int count_one_that_fails(void)
{
    if (++count_allocations != count_fails_at)
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    if (count_one_that_fails())
        return NULL;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    if (count_one_that_fails())
        return NULL;
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    if (count_one_that_fails())
        return NULL;
    return __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (count_one_that_fails())
        return NULL;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, bytes);
}
#endif

#endif
