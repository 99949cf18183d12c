/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Counts what a test program allocates. Defines malloc and its kin, so one file of a program includes it. Nothing is
 * counted under a sanitizer, which has its own.
 */
#ifndef ASYM_TESTS_COUNT_H
#define ASYM_TESTS_COUNT_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

static size_t count_allocations;

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define COUNT_SANITIZED 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define COUNT_SANITIZED 1
#endif

#ifndef COUNT_SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    count_allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count_allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    count_allocations++;
    return __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t n, size_t size)
{
    size_t bytes;
    count_allocations++;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, bytes);
}
#endif

#endif
