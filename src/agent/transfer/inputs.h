/* inputs: brings files that attempts need from other places into the cache, and pins them there while they
 * are staged. */
#pragma once
#include "agent/model/attempt.h"
#include "agent/transfer/cache.h"

void inputs_open(struct agent *a);
void inputs_close(struct agent *a);
/* Starts fetching the attempt's inputs. Returns 0 when all are in the cache, pinned; 1 when some are on
 * their way: news->stage is called when all have arrived, or news->staged with the error; -EINVAL with err.
 */
int inputs_want(struct attempt *at, struct err *err);
struct cached *inputs_find(const struct attempt *at, const char *key);
struct cached *inputs_find_shipped(const struct attempt *at, const struct spool_ref *ref);
void inputs_forget(struct attempt *at); /* ends its waiting and releases its pins */
/* Updates the progress (`fetching`) of all attempts that wait. The values are valid until the loop
 * continues. */
void inputs_look(struct agent *a);
