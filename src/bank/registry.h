/* registry: a register of the bank's: of machines, or of users.
 *
 * A machine is an agent, "colony", or one queue of it, "colony/long"; a user is a principal, "ann@lab". Each
 * is active or not. An empty register of machines knows every place; users need not be registered. One thread
 * at a time.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

#define REGISTRY_MAX 10000u /* entries of one register */

enum registry_kind { REGISTRY_MACHINES, REGISTRY_USERS };

struct registry_entry {
        char *name;                /* owned, as the texts are */
        char *text, *arch, *opsys; /* NULL: not given; they may be replaced. arch, opsys: of machines */
        bool inactive;
        struct registry_entry *next; /* sorted by name */
};

struct registry;
struct registry *registry_new(enum registry_kind kind);
void registry_free(struct registry *r); /* NULL is fine */

const char *registry_word(const struct registry *r); /* "machine", "user" */
/* Returns what a name in this register must be, for messages: "AGENT or AGENT/QUEUE". */
const char *registry_name_form(const struct registry *r);
/* Returns whether the name has this form, without blanks, commas and *. */
bool registry_name_ok(const struct registry *r, struct str name);
size_t registry_count(const struct registry *r);
const struct registry_entry *registry_first(const struct registry *r);          /* NULL: it is empty */
struct registry_entry *registry_get(const struct registry *r, struct str name); /* NULL: not registered */
bool registry_is_inactive(const struct registry *r, struct str name); /* it is registered, and inactive */

enum registry_answer {
        REGISTRY_ACTIVE,   /* the place is registered and active, or nothing is registered */
        REGISTRY_UNKNOWN,  /* neither the place nor its agent is registered */
        REGISTRY_INACTIVE, /* the place or its agent is registered as inactive */
};
/* Looks up a place, AGENT or AGENT/QUEUE, in a register of machines. */
enum registry_answer registry_ask_place(const struct registry *r, struct str place);

/* Adds an active entry, whose name is valid and not registered. */
struct registry_entry *registry_add(struct registry *r, struct str name);
void registry_remove(struct registry *r, struct registry_entry *x); /* x is freed */

/* ---- snapshots: the same register makes the same bytes */
void registry_pack(const struct registry *r, struct buf *out);
struct unpack;
/* Reads a snapshot into an empty register of the same kind. Damaged input sets in->bad. */
void registry_unpack(struct registry *r, struct unpack *in);
