/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The end of what a program prints on standard output. */
#ifndef ASYM_APP_OUTPUT_H
#define ASYM_APP_OUTPUT_H

/**
 * Flush standard output. Returns 0; -errno of the write that failed; -EIO if an earlier write failed and the C library no
 * longer has its errno. A second call returns an error again.
 */
int asym_output_end(void);

#endif
