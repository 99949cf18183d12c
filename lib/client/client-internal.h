/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ASYM_CLIENT_CLIENT_INTERNAL_H
#define ASYM_CLIENT_CLIENT_INTERNAL_H

#include "client/client.h"

/** As asym_client_open, with another socket, for the test. then_system: try the system bus if the socket cannot be used. */
int client_open(const char *path, bool then_system, struct asym_client **ret, struct asym_error *err);

#endif
