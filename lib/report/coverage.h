/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Sentences on what asymd could not see or steer. The dry run, --once and the service use the same ones. */
#ifndef ASYM_REPORT_COVERAGE_H
#define ASYM_REPORT_COVERAGE_H

#include <stdbool.h>

#include <asym/snapshot.h>

/** Call fn for each sentence. missed: asymd left some processes out for this reason; else it only costs time. */
void asym_coverage_each(const struct asym_coverage *s, void (*fn)(void *ctx, bool missed, const char *text), void *ctx);

#endif
