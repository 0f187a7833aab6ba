/* inflow: how much of what one session has said is not done yet, so that an agent that says more than the
 * server can do makes itself wait, and nobody else.
 *
 * The I/O thread counts each command of a session when it hands it to the core, and reads no more of that
 * session while more than INFLOW_MAX bytes are under way. Commands are given back when they are freed, on
 * whatever thread that is; at half of the limit the I/O thread is told to read on. An honest agent does not
 * come near the limit: it waits for answers before it sends more of what is large.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INFLOW_MAX (32u << 20) /* bytes of one session */

struct server;
struct inflow;

/* Returns a new count with one reference, the session's own. I/O thread. */
struct inflow *inflow_new(struct server *s, uint64_t session);
void inflow_unref(struct inflow *f); /* NULL is fine. Any thread */

/* Counts one command of so many bytes, which holds a reference until inflow_give. True: the session must not
 * be read until agent_sessions_read_on is called for it. I/O thread. */
bool inflow_take(struct inflow *f, size_t bytes);
/* The command that was counted with so many bytes is gone. Any thread. */
void inflow_give(struct inflow *f, size_t bytes);
