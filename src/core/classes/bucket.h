/* bucket: the buckets of a request, which hold its idle members by class and priority. */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

/* Makes members idle: in their buckets, or in cold->waiting if they are blocked or delayed. */
void request_idle_add(struct core *c, struct request *r, const struct set *members);
/* Takes members out of the buckets' idle sets, and ends their waits for better places. */
void request_idle_remove(struct core *c, struct request *r, const struct set *members);
/* Removes all buckets: members are in no class afterwards. */
void request_buckets_free(struct core *c, struct request *r);
/* Replaces the request's buckets by those of the array, which is copied. */
void request_buckets_set(struct core *c, struct request *r, struct bucket **buckets, uint32_t count);
/* Takes the members out of all buckets; idle ones are not counted as idle any more. */
void request_buckets_leave(struct core *c, struct request *r, const struct set *members);
/* Adds buckets to the request's, all of which have sets of members. */
void request_buckets_add(struct request *r, struct bucket **buckets, uint32_t count);
/* Creates a bucket for all members, in no list; takes over the reference to k. */
struct bucket *bucket_new(struct core *c, struct request *r, struct job_class *k, uint32_t part,
                          int64_t priority);
/* Drains and frees a bucket, and drops its reference to the class. */
void bucket_free(struct core *c, struct bucket *b);
/* Gives the members a priority, in buckets of their own where others keep theirs. */
void request_set_priority(struct core *c, struct request *r, const struct set *members, int64_t priority);
/* Looks again at classes limited by JobMaterializeLimit, after a job of the request has ended. */
void request_room_made(struct core *c, struct request *r);
