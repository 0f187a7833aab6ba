/* machines: the bank's register of machines.
 *
 * A machine is an agent, "colony", or one queue of it, "colony/long", and is active or not. An empty register
 * knows every place. One thread at a time.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

#define MACHINES_MAX 10000u

struct machine {
        char *name;                /* owned, as the texts are */
        char *text, *arch, *opsys; /* NULL: not given; they may be replaced */
        bool inactive;
        struct machine *next; /* sorted by name */
};

struct machines;
struct machines *machines_new(void);
void machines_free(struct machines *m); /* NULL is fine */

/* Returns whether the name can be a machine's: AGENT or AGENT/QUEUE, without blanks, commas and *. */
bool machines_name_ok(struct str name);
size_t machines_count(const struct machines *m);
const struct machine *machines_first(const struct machines *m);          /* NULL: the register is empty */
struct machine *machines_get(const struct machines *m, struct str name); /* NULL: not registered */

enum machines_answer {
        MACHINES_ACTIVE,   /* the place is registered and active, or nothing is registered */
        MACHINES_UNKNOWN,  /* neither the place nor its agent is registered */
        MACHINES_INACTIVE, /* the place or its agent is registered as inactive */
};
/* Looks up a place, AGENT or AGENT/QUEUE. */
enum machines_answer machines_ask(const struct machines *m, struct str place);

/* Adds an active machine, whose name is valid and not registered. */
struct machine *machines_add(struct machines *m, struct str name);
void machines_remove(struct machines *m, struct machine *x); /* x is freed */

/* ---- snapshots: the same register makes the same bytes */
void machines_pack(const struct machines *m, struct buf *out);
struct unpack;
/* Reads a snapshot into an empty register. Damaged input sets in->bad. */
void machines_unpack(struct machines *m, struct unpack *in);
