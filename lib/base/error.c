/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <asym/error.h>

#include <stdarg.h>
#include <stdio.h>

int asym_fail(struct asym_error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return code;
}
