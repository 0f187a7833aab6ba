/* job_group: members of one part of a request that the server assigns together: what they have in common, and
 * the item of each member that has one. A Group of wire/drover.proto, which is also the form in the journal.
 */
#pragma once
#include "agent/message/job_template.h"
#include "base/arena.h"

struct member_range {
        uint32_t first, count;
};

struct job_item {
        uint32_t member;
        uint32_t row, step; /* $(ItemIndex), $(Step) */
        char **values;      /* in the order of the template's variables */
        size_t value_count;
        struct spool_ref *checkpoint; /* files of the checkpoint that the member starts from */
        size_t checkpoint_count;
};

struct job_group {
        uint64_t request;
        uint32_t part, fence;
        struct member_range *ranges;
        size_t range_count;
        struct job_item *items; /* in ascending order of their members, if job_group_is_sorted */
        size_t item_count;
        uint64_t lease_ms;   /* 0: no lease */
        bool wait_for_go;    /* the members start when the server says Go */
        uint64_t gang;       /* number of the gang's first member */
        uint32_t gang_size;  /* 0: no gang */
        char *gang_machines; /* machines of the gang's members, in order, comma-separated; may be empty */
        char **filled;       /* pairs: the inside of a $$() reference, and the place's value for it */
        size_t filled_count; /* number of pairs */
};

/* Returns false if the server sent the items in no order: job_group_item would not find them. */
bool job_group_is_sorted(const struct job_group *g);
/* Returns the member's item, or NULL if it has none. */
const struct job_item *job_group_item(const struct job_group *g, uint32_t member);

/* Appends the packed form. */
void job_group_pack(const struct job_group *g, struct buf *out);
/* Returns 0 and a group that lives in the arena, or -EINVAL if the bytes are malformed. */
int job_group_unpack(const void *p, size_t n, struct arena *room, struct job_group *ret);
