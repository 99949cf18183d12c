/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The time limits that asymd and the clients of its bus object have to agree on. org.asymd.Manager(5) has the interface. */
#ifndef ASYM_MANAGER_H
#define ASYM_MANAGER_H

#include <asym/types.h>

/**
 * polkit has this many microseconds to answer. Meanwhile it may ask the user for a password. A client has to wait longer: the agent
 * that asks for the password ends with the call of asymctl, and the user would type the rest of the password into the shell.
 */
#define ASYM_BUS_POLKIT_WITHIN (120 * ASYM_SEC)

#endif
