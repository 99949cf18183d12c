/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ASYM_CONFIG_INI_FILE_H
#define ASYM_CONFIG_INI_FILE_H

#include <stddef.h>

#include <asym/error.h>

/** Read a whole file of at most 1 MiB. The caller frees *ret_text. Returns 0; -EINVAL, -errno with err. */
int asym_ini_file(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err);

#endif
