/* submission: what a submit hands to the core, and the record that keeps it.
 *
 * A submission is a request before it has a number: who, when, and its parts, each a template (attributes as
 * expression text) with a table of items. Its packed form is kept as the blob "request/ID" in the same commit
 * as the event that accepts it, and is all that is ever stored of a template or of items: events and
 * snapshots name the request only.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/set.h"

#define SUBMISSION_PARTS_MAX      10000u
#define SUBMISSION_ATTRIBUTES_MAX 1000u /* a part */
#define SUBMISSION_VARIABLES_MAX  64u
#define SUBMISSION_MEMBERS_MAX    10000000u
#define SUBMISSION_TEXT_MAX       (1u << 20) /* one attribute */
#define SUBMISSION_PAST_MAX       1000u

struct submission_attribute {
        struct str name, text; /* text: a ClassAd expression */
        bool late;             /* holds macros that are expanded for each member */
};
struct submission_part {
        struct submission_attribute *attributes;
        size_t attribute_count;
        struct str *variables;
        size_t variable_count;
        struct str items; /* rows of values parted by \x1f, each row ended by \n; empty without variables */
        uint64_t rows;    /* 1 without items */
        uint64_t steps;   /* members a row */
};
struct submission_file {
        struct str name;
        unsigned char sha256[32];
        uint64_t size;
        bool executable;
};
/* Of a request that another server hands on; all empty: a user's own. */
struct submission_origin {
        struct str servers; /* uuids of those that it has passed, the first one first, parted by blanks */
        struct str owner;   /* there: name@domain */
        struct str label;   /* of its data: "a,b" */
        struct str path; /* what of the way ahead is fixed: "agent/queue agent", see server/access/origin.h */
        struct str job;  /* there: "7.42" */
        uint32_t hops_left; /* it may be handed on so many times more */
};
#define SUBMISSION_HOPS_MAX 64u

/* A request that its jobs wait for, and that is in history only. */
struct submission_past {
        uint64_t request;
        uint32_t jobs;
        struct set ok; /* those that have succeeded; owned */
};

struct submission {
        unsigned char uuid[16];
        struct str owner; /* name@domain */
        int64_t at_ms;
        bool hold;       /* every job starts held */
        uint64_t digest; /* submission_digest of what the client sent; 0: not known, as in older records */
        /* of a submitter that must stay in touch (delegation.h) */
        uint64_t lease_ms; /* 0: none */
        bool hold_results;
        struct submission_origin origin;
        struct submission_part *parts;
        size_t part_count;
        struct submission_file *spooled;
        size_t spooled_count;
        struct str edges; /* which of its jobs wait for which others of it, see dependency.h */
        struct submission_past *past;
        size_t past_count;
};

/* Arrays are owned, what a str looks at is borrowed. */
void submission_deinit(struct submission *s);
struct submission_part *submission_add_part(struct submission *s);
void submission_add_attribute(struct submission_part *p, struct str name, struct str text, bool late);
void submission_add_variable(struct submission_part *p, struct str name);
struct submission_file *submission_add_file(struct submission *s);
struct submission_past *submission_add_past(struct submission *s);
uint64_t submission_members(const struct submission *s);
/* What the request takes in the server, in KiB and rounded up: its text, what that is compiled to, the input
 * files that each member has for itself, and a fixed sum for each request, part and file. The same before and
 * after submission_pack. */
uint32_t submission_kib(const struct submission *s);

/* A digest of the jobs that are asked for, never 0: parts, files and `hold`, but not how the submitter stays
 * in touch. The order of attributes and of files does not count. */
uint64_t submission_digest(const struct submission *s);

/* Limits and shape: counts, row counts that agree with the items. 0, or -EINVAL, -E2BIG with err. */
int submission_check(const struct submission *s, struct err *err);

void submission_pack(struct buf *out, const struct submission *s);
/* Borrows from `record`. 0, or -EBADMSG. */
int submission_unpack(struct submission *s, struct str record, struct err *err);
