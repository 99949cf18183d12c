/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The names and time limits that asymd and the clients of its bus object share. org.asymd.Manager(5) has the interface. */
#ifndef ASYM_MANAGER_H
#define ASYM_MANAGER_H

#include <asym/types.h>

#define ASYM_BUS_NAME                  "org.asymd"
#define ASYM_BUS_PATH                  "/org/asymd/Manager"
#define ASYM_BUS_INTERFACE             "org.asymd.Manager"
#define ASYM_BUS_POLKIT                "org.asymd.manage"

#define ASYM_BUS_ERROR_NO_SUCH_PROCESS "org.asymd.Error.NoSuchProcess"
#define ASYM_BUS_ERROR_NOT_POSSIBLE    "org.asymd.Error.NotPossible"
#define ASYM_BUS_ERROR_NO_SIGNAL       "org.asymd.Error.NoSignal"
#define ASYM_BUS_ERROR_REFUSED         "org.asymd.Error.Refused"

/**
 * polkit has this many microseconds to answer. Meanwhile it may ask the user for a password. A client has to wait longer: the agent
 * that asks for the password ends with the call of asymctl, and the user would type the rest of the password into the shell.
 */
#define ASYM_BUS_POLKIT_WITHIN (120 * ASYM_SEC)

#endif
