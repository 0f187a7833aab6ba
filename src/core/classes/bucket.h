/* bucket: the buckets of a request: its idle members by class and priority. */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

void request_idle_add(struct core *c, struct request *r, const struct set *members);
void request_idle_remove(struct core *c, struct request *r, const struct set *members);
void request_buckets_free(struct core *c, struct request *r); /* its members are in no class any more */
/* In place of those that it has; they are copied from the array. */
void request_buckets_set(struct core *c, struct request *r, struct bucket **buckets, uint32_t count);
/* These members are in no bucket any more; what was idle of them is not counted. */
void request_buckets_leave(struct core *c, struct request *r, const struct set *members);
/* Beside those that it has, all of which have sets of members. */
void request_buckets_add(struct request *r, struct bucket **buckets, uint32_t count);
struct bucket *bucket_new(struct core *c, struct request *r, struct job_class *k, uint32_t part,
                          int64_t priority); /* of all members, and in no list; takes the reference */
void bucket_free(struct core *c, struct bucket *b);
void request_set_priority(struct core *c, struct request *r, const struct set *members, int64_t priority);
/* A job of the request has ended: there is room for another (JobMaterializeLimit). */
void request_room_made(struct core *c, struct request *r);
