/* inputs: what attempts need from elsewhere, in the cache and pinned there while they are staged. */
#pragma once
#include "agent/model/attempt.h"
#include "agent/transfer/cache.h"

void inputs_open(struct agent *a);
void inputs_close(struct agent *a);
/* 0: all that is to be fetched is in the cache, pinned. 1: news->stage is called when it is, or
 * news->staged with what is wrong. -EINVAL with err. */
int inputs_want(struct attempt *at, struct err *err);
struct cached *inputs_find(const struct attempt *at, const char *key);
struct cached *inputs_find_shipped(const struct attempt *at, const struct spool_ref *ref);
void inputs_forget(struct attempt *at); /* neither waits nor pins any more */
/* How far are they? Sets `fetching` of all attempts that wait. It says something until the loop goes on. */
void inputs_look(struct agent *a);
