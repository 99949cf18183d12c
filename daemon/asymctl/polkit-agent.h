/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Lets polkit ask for a password on this terminal. Where no desktop does that, polkit refuses, unless the user has registered an
 * agent. The program pkttyagent is one: asymctl runs it during a call that changes something, as systemctl does.
 */
#ifndef ASYM_DAEMON_ASYMCTL_POLKIT_AGENT_H
#define ASYM_DAEMON_ASYMCTL_POLKIT_AGENT_H

/**
 * Start pkttyagent, and wait up to 5 s until it has registered. Does nothing for root, if standard input or output is no terminal,
 * or if PATH has no pkttyagent: then polkit asks a desktop's agent, or refuses. In a session with an agent of its own, polkit asks
 * that one. Returns the agent, for asym_polkit_agent_stop; NULL: none.
 */
void *asym_polkit_agent_start(void);

/**
 * End the agent, and free it; NULL is accepted. Kills it if it has not ended after a second. Restores the terminal if the
 * agent has left it without echo.
 */
void asym_polkit_agent_stop(void *agent);

#endif
