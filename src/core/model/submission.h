/* submission: the contents of a submit, and the record that keeps them.
 *
 * A submission is a request before it has a number: its owner, the time, and its parts, each a template
 * (attributes as expression text) with a table of items. The packed form is stored as the blob "request/ID"
 * in the same commit as the event that accepts the request. Templates and items are stored nowhere else:
 * events and snapshots refer to the request only.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/set.h"

#define SUBMISSION_PARTS_MAX         10000u
#define SUBMISSION_ATTRIBUTES_MAX    1000u /* in one part */
#define SUBMISSION_VARIABLES_MAX     64u
#define SUBMISSION_MEMBERS_MAX       10000000u
#define SUBMISSION_TEXT_MAX          (1u << 20) /* size of one attribute's text */
#define SUBMISSION_ENDED_PARENTS_MAX 1000u

struct submission_attribute {
        struct str name, text; /* text: a ClassAd expression */
        bool late;             /* the text has macros that are expanded for each member */
};
struct job_template;
struct submission_part {
        struct submission_attribute *attributes;
        size_t attribute_count;
        struct str *variables;
        size_t variable_count;
        /* Rows of values separated by \x1f, each row ended by \n; empty without variables. */
        struct str items;
        uint64_t rows;             /* 1 without items */
        uint64_t steps;            /* members of each row */
        struct job_template *made; /* its template, if it was made before; borrowed; NULL: not known */
};
struct submission_file {
        struct str name;
        unsigned char sha256[32];
        uint64_t size;
        bool executable;
};
/* Origin of a request that another server hands on; all empty: a user submitted it here. */
struct submission_origin {
        struct str servers; /* uuids of the servers passed, the first server first, separated by blanks */
        struct str owner;   /* owner at the first server: name@domain */
        struct str label;   /* labels of its data: "a,b" */
        /* The fixed part of the path ahead: "agent/queue agent", see server/access/origin.h. */
        struct str path;
        struct str job;     /* id at the first server: "7.42" */
        uint32_t hops_left; /* number of further hops allowed */
};
#define SUBMISSION_HOPS_MAX 64u

/* A request that jobs of the submission wait for, and that exists only in history. */
struct ended_parent {
        uint64_t request;
        uint32_t jobs;
        struct set ok; /* jobs that succeeded; owned */
};

struct submission {
        unsigned char uuid[16];
        struct str owner; /* name@domain */
        int64_t at_ms;
        bool hold;       /* every job starts held */
        uint64_t digest; /* submission_digest of the client's submit; 0: not known, in older records */
        /* for a submitter that must stay in touch (delegation.h): */
        uint64_t lease_ms; /* 0: none */
        bool hold_results;
        struct submission_origin origin;
        struct submission_part *parts;
        size_t part_count;
        struct submission_file *spooled;
        size_t spooled_count;
        struct str edges; /* dependencies between its own jobs, see dependency.h */
        struct ended_parent *ended_parents;
        size_t ended_parent_count;
};

/* Frees the arrays, which are owned; texts are borrowed. */
void submission_deinit(struct submission *s);
struct submission_part *submission_add_part(struct submission *s);
void submission_add_attribute(struct submission_part *p, struct str name, struct str text, bool late);
void submission_add_variable(struct submission_part *p, struct str name);
struct submission_file *submission_add_file(struct submission *s);
struct ended_parent *submission_add_ended_parent(struct submission *s);
/* Returns the number of jobs of all parts. */
uint64_t submission_members(const struct submission *s);
/* Returns the KiB, rounded up, that the request takes in the server: its text and the compiled form, input
 * files of single members, and a fixed sum for each request, part and file. The value is the same before and
 * after submission_pack. */
uint32_t submission_kib(const struct submission *s);

/* Returns a digest of the requested jobs, never 0: of parts, files and `hold`, but not of the terms of a
 * delegation. The order of attributes and of files does not matter. */
uint64_t submission_digest(const struct submission *s);
/* The same for a submit whose client sent a text, which the server has read: of the text. */
uint64_t submission_digest_text(struct str text);

/* Checks limits, counts, and that row counts agree with the items. Returns 0; -EINVAL or -E2BIG with err. */
int submission_check(const struct submission *s, struct err *err);

/* Appends the record of the submission. */
void submission_pack(struct buf *out, const struct submission *s);
/* Reads a record; *s borrows from it. Returns 0, or -EBADMSG with err. */
int submission_unpack(struct submission *s, struct str record, struct err *err);
/* Makes s, which was unpacked from the record `before`, that of `record`, if both are the same except for the
 * uuid, the owner and the time. Returns whether they are; if not, s is unchanged. */
bool submission_unpack_alike(struct submission *s, struct str before, struct str record);
