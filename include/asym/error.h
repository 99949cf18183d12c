/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A message for a person that goes with a negative errno, where the errno alone does not say what to do. */
#ifndef ASYM_ERROR_H
#define ASYM_ERROR_H

struct asym_error {
    char text[1024]; /**< one line without a newline; "" when there is nothing to add */
};

/** Write the message and return code, so that a failing function can end in one statement. err may be NULL. */
int asym_fail(struct asym_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
