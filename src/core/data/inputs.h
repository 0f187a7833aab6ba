/* inputs: the files that the members of a part read, as the core keeps them; for the files of core/ only.
 *
 * What is the same for all members (elements of TransferInput without macros, the image, the environment) is
 * kept once, as is all of a part with a single member. What differs is a row of files for each member, about
 * 25 bytes a file, with a chain from each file to the members that want it. Of a large part the rows are
 * filled in slices (inputs_fill_slice), so that a submit of a million files holds nobody up; until then its
 * members are as if they read nothing of their own.
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

#define INPUTS_OWN_MAX          16u    /* files of one member's own; what is more is not counted */
#define INPUTS_MAX              10000u /* files in one part's list that are the same for all */
#define INPUT_MADE              UINT8_MAX /* no store has it: it is made, at the pace of a link that nobody measured */
#define INPUT_ENVIRONMENT_BYTES (256ull << 20) /* of one that no agent has made yet */
#define MEMBER_ANY              UINT32_MAX     /* what is the same for all members only */

struct input {
        uint64_t id;
        uint64_t bytes; /* 0: not known */
        uint8_t store;  /* its number; sites.store_count: the server's spool, or nowhere that is known */
        bool image;
        bool environment; /* that an agent makes of a file; `store` is INPUT_MADE */
};

/* NULL when they read nothing. The part is of r, and stays where it is. */
struct inputs *inputs_new(struct core *c, const struct request *r, const struct part *p);
void inputs_free(struct core *c, struct inputs *in); /* NULL is fine; large ones go in slices */
/* Where its outputs go: a store's number, or sites.store_count. */
size_t inputs_output_store(struct core *c, const struct request *r, const struct part *p);
/* Fills some rows, or forgets some; true: there are more, of this part or another one. */
bool inputs_fill_slice(struct core *c);

/* Files of a member: those of all, then its own. Sizes that the job does not tell are those that an agent has
 * told. Calls fn for each until it returns false. `in` may be NULL. */
void inputs_each(struct core *c, const struct inputs *in, uint32_t member,
                 bool (*fn)(void *arg, const struct input *file), void *arg);
/* Bytes of the member's inputs that the agent holds. */
uint64_t inputs_held(struct core *c, const struct inputs *in, uint32_t member, const struct core_agent *a);
/* Takes members out of *members that read a file of their own from a store that does not answer the agent,
 * held there or not. `in` may be NULL. */
void inputs_leave_out_down(const struct inputs *in, const struct core_agent *a, struct set *members);
struct store_draws {        /* stores that bear only so many jobs at once: a bit for each of the first 64 */
        uint64_t read;      /* that the members are read from */
        uint64_t read_into; /* the same, as far as there is a limit for what goes from there to `into` */
        unsigned written; /* the number of the one they write into, and one, where that has a limit; else 0 */
        unsigned into;    /* the number of the one they write into, and one; 0: none */
};
struct store_draws inputs_store_draws(const struct core *c, const struct part *p);
size_t inputs_bytes(const struct inputs *in);
/* What a part's members read and write, as far as it is known; for request_load. */
void part_data_load(struct core *c, struct request *r, struct part *p);
void request_data_load(struct core *c, struct request *r);   /* what its parts read and write, anew */
void request_inputs_free(struct core *c, struct request *r); /* nobody asks for its files any more */
