/* inflow: counts the bytes of one session's pending commands, so that an agent that sends more than the
 * server can process delays only itself.
 *
 * The I/O thread counts each command of a session when it passes it to the core, and stops reading the
 * session while more than INFLOW_MAX bytes are pending. Commands are counted down when they are freed, on
 * whatever thread that is; at half of the limit the I/O thread is told to read again. An honest agent does
 * not reach the limit, because it waits for answers before it sends more large messages. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INFLOW_MAX (32u << 20) /* pending bytes of one session */

struct server;
struct inflow;

/* Returns a new count with one reference, which belongs to the session. I/O thread. */
struct inflow *inflow_new(struct server *s, uint64_t session);
void inflow_unref(struct inflow *f); /* accepts NULL. Any thread */

/* Counts one command of this many bytes, which holds a reference until inflow_give. Returns true if the
 * session must not be read until agent_sessions_read_on is called for it. I/O thread. */
bool inflow_take(struct inflow *f, size_t bytes);
/* The command that was counted with this many bytes was freed. Any thread. */
void inflow_give(struct inflow *f, size_t bytes);
