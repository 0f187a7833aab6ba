/* feed: follows the other server's log by one long poll, and asks at intervals for its room, the paths of
 * jobs, and why they wait. */
#pragma once
#include "run/runner.h"

struct remote;
struct remote_feed;

enum remote_poll { REMOTE_FEED, REMOTE_ROOM, REMOTE_PATHS, REMOTE_WHY, REMOTE_POLLS };

struct remote_feed *remote_feed_new(void);
void remote_feed_free(struct remote_feed *feed); /* NULL is fine */

void remote_feed_start(struct remote *f, uint64_t cursor); /* cursor: position in the other server's log */
uint64_t remote_feed_cursor(const struct remote *f);
void remote_feed_look(struct remote *f, int64_t now); /* now: boot clock; asks for whatever is due */
/* The answer borrows the server's uuid from f. */
struct run_capacity remote_capacity(const struct remote *f);
