/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Room in an array that malloc has made, or that is NULL. */
#ifndef ASYM_BASE_GROW_H
#define ASYM_BASE_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/** Makes room for one more item in *array, which has n. *capacity doubles from 4 on. Returns 0; -ENOMEM: nothing has changed. */
static inline int asym_grow(void *array, size_t n, size_t *capacity, size_t size)
{
    void *items;
    if (n < *capacity)
        return 0;
    const size_t larger = ASYM_MAX(*capacity * 2, (size_t)4);
    memcpy(&items, array, sizeof items); /* *array has a type of its own */
    items = reallocarray(items, larger, size);
    if (!items)
        return -ENOMEM;
    memcpy(array, &items, sizeof items);
    *capacity = larger;
    return 0;
}

#endif
