/* inputs: the files that the members of a part read; for the files of core/ only.
 *
 * Files common to all members (elements of TransferInput without macros, the image, the environment) are
 * kept once, as are all files of a part with one member. Other files are a row for each member, about 25
 * bytes a file, with a chain from each file to the members that want it. The rows of a large part are filled
 * in slices (inputs_fill_slice), so that submitting a million files does not block other work; until then
 * its members appear to read no files of their own.
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

#define INPUTS_OWN_MAX          16u       /* most own files of a member; further ones are not counted */
#define INPUTS_MAX              10000u    /* most common files of a part */
#define INPUT_MADE              UINT8_MAX /* no store: made at the place, with the cost of an unmeasured link */
#define INPUT_ENVIRONMENT_BYTES (256ull << 20) /* assumed size of one that no agent has made yet */
#define MEMBER_ANY              UINT32_MAX     /* in place of a member: only the files common to all */

struct input {
        uint64_t id;
        uint64_t bytes; /* 0: not known */
        uint8_t store;  /* number of its store; sites.store_count: the server's spool, or an unknown place */
        bool image;
        bool environment; /* an environment that an agent makes from a file; `store` is INPUT_MADE */
};

/* Returns the inputs of a part of r, which must stay in place; NULL: its members read nothing. */
struct inputs *inputs_new(struct core *c, const struct request *r, const struct part *p);
void inputs_free(struct core *c, struct inputs *in); /* NULL is fine; large ones are freed in slices */
/* Returns the number of the store that outputs go to (of several, the first), or sites.store_count. */
size_t inputs_output_store(struct core *c, const struct request *r, const struct part *p);
/* Fills or removes some rows. Returns true if there are more, of any part. */
bool inputs_fill_slice(struct core *c);

/* Returns the most files that a member has; `in` may be NULL. */
size_t inputs_count(const struct inputs *in);
/* Calls fn for each file of a member until it returns false: the common files, then its own. Sizes that the
 * job does not give are those reported by agents. `in` may be NULL. The work counts as steps (core_steps). */
void inputs_each(struct core *c, const struct inputs *in, uint32_t member,
                 bool (*fn)(void *arg, const struct input *file), void *arg);
/* Returns the size of the member's inputs that the agent holds, in bytes. */
uint64_t inputs_held(struct core *c, const struct inputs *in, uint32_t member, const struct core_agent *a);
/* Removes members that read a file of their own from a store that the agent cannot reach, whether or not it
 * holds the file. `in` may be NULL. */
void inputs_leave_out_down(const struct inputs *in, const struct core_agent *a, struct set *members);
struct store_draws {        /* stores with a limit on concurrent jobs: a bit for each of the first 64 */
        uint64_t read;      /* stores that the members read */
        uint64_t read_into; /* of these, stores with a limit for data copied from there to `into` */
        unsigned written;   /* number plus 1 of the store that they write to, if it has a limit; else 0 */
        unsigned into;      /* number plus 1 of the store that they write to; 0: none */
};
struct store_draws inputs_store_draws(const struct core *c, const struct part *p);
size_t inputs_bytes(const struct inputs *in);
/* Determines the inputs and output store of a part; for request_load. */
void part_data_load(struct core *c, struct request *r, struct part *p);
/* Determines inputs and output stores of all parts again. */
void request_data_load(struct core *c, struct request *r);
/* Does so for some parts, from number *part on, which it advances. Returns whether there are more. */
bool request_data_load_some(struct core *c, struct request *r, uint32_t *part);
/* The request's files are not needed any more. */
void request_inputs_free(struct core *c, struct request *r);
/* Frees all that part_data_load has made, when the request is freed. */
void request_data_free(struct core *c, struct request *r);
