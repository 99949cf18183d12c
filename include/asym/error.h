/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A message for the user that goes with a negative errno. It says what to do where the errno alone does not. */
#ifndef ASYM_ERROR_H
#define ASYM_ERROR_H

struct asym_error {
    char text[1024]; /**< one line without a newline; "" when the errno says enough */
};

/** Writes the message and returns code, so that a function that fails can end in one statement. err may be NULL. */
int asym_fail(struct asym_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
