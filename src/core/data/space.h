/* space: accounting of the capacity of stores: lots, files outside of lots, and the bytes that running jobs
 * may still write.
 *
 * A *lot* is space of a store that is reserved for its owner's jobs until a set time. Files that jobs write
 * into a lot (ReserveId) count in it; other files count for their owner in a record without a name. Space is
 * counted only in stores with a capacity, and only for files that Drover's jobs write and remove. A running
 * job *claims* the maximum that it may write: units of 1 MiB of a limit (accounts/limit.h), `space/STORE` or
 * `lot/STORE/OWNER/NAME`. The size of the limit is the capacity less lots and files, so a job that does not
 * fit waits for it as for any limit. When the job ends, an order in the same turn adds the bytes that it
 * wrote to a record; when a job of type reserve ends, its claim becomes a lot. At all times
 *
 *     lots + files outside of lots + claims <= capacity.
 *
 * A store's free space as measured by agents only lowers `space/STORE`, to the maximum of the reports of all
 * connected agents. It is not an event, and unknown after a restart until it is measured again.
 *
 * All changes are orders, recorded in events; the same orders make the same records. lifecycle/lots.c decides
 * about them.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/model/names.h"

#define SPACE_UNIT_SHIFT 20u          /* a unit of the limits is 1 MiB */
#define SPACE_LOTS_MAX   1000u        /* lots of one store */
#define SPACE_LOT_MS     86400000     /* duration of a lot whose author says none */
#define SPACE_NAME_MAX   32u          /* name of a lot */
#define SPACE_FILE_BYTES (1ull << 30) /* claim of a job that does not say what it writes */

struct core_agent;
struct draws;
struct limit;
struct lot {
        char *store, *owner, *name; /* name "": the owner's files outside of lots */
        uint64_t size_bytes;        /* 0 for files outside of lots */
        uint64_t used_bytes;
        int64_t expires_ms;  /* Unix milliseconds; INT64_MAX: never */
        struct limit *limit; /* NULL for files outside of lots */
        bool closed;         /* its time is over: it ends with the last claim, and no job starts in it */
};

/* ---- orders; the values are stored and never reused */
enum space_op {
        SPACE_RESERVE = 1, /* a lot is made, or grows by `bytes` and lasts until `until_ms` at least */
        SPACE_WRITE,       /* `bytes` were written */
        SPACE_REMOVE,      /* `bytes` were removed; no more than the record has count */
        SPACE_RELEASE,     /* the lot's time ends at `until_ms` */
        SPACE_END,         /* the lot is forgotten; its files count for their owner outside of lots */
        SPACE_SET,         /* the owner's files outside of lots have `bytes` */
        SPACE_OPS
};
struct space_order {
        enum space_op op;
        struct str store, owner, name; /* as in struct lot */
        uint64_t bytes;
        int64_t until_ms;
};
void space_order_pack(struct buf *out, const struct space_order *o);
/* Applies a packed order. Returns 0, or -EBADMSG with err. */
int space_apply(struct core *c, struct str record, struct err *err);

/* ---- looking */
struct lot *space_find(const struct core *c, struct str store, struct str owner, struct str name);
/* Iterates over all records, in no order: size_t at = 0; while ((x = space_next(...))). */
struct lot *space_next(const struct core *c, size_t *at);
/* Returns all records by store, owner and name, in an array that the caller frees. */
struct lot **space_sorted(const struct core *c, size_t *ret_count);
bool space_name_ok(struct str name);              /* letters, digits, - and _; at most SPACE_NAME_MAX */
int64_t space_first_end_ms(const struct core *c); /* when the first lot ends; INT64_MAX: there is none */
/* The space of a store that has a capacity, in bytes. */
struct space_view {
        uint64_t capacity, reserved; /* reserved: size of the lots */
        uint64_t files;              /* outside of lots */
        uint64_t claimed;            /* by running jobs, outside of lots */
        uint64_t left;               /* may still be claimed */
        uint64_t measured_free;      /* as agents have measured it; UINT64_MAX: not known */
};
/* Returns false if the store has no capacity. */
bool space_look(const struct core *c, size_t store, struct space_view *ret);
/* Returns the bytes that running jobs may still write in the lot. */
uint64_t lot_claimed(const struct lot *x);

/* ---- claims */
/* Returns what each member of the part may write to a store with a capacity, in units; 0: it writes to none.
 */
uint32_t space_claim(struct core *c, const struct part *p);
/* Appends the limits that members with this claim draw on, each followed by a comma. Members of a job of type
 * reserve claim a new lot `name`; others claim space in that lot, or outside of lots if `name` is empty. */
struct space_draw {
        size_t store;
        struct str owner, name;
        uint32_t units;
        bool reserves;
};
void space_draws(const struct core *c, const struct space_draw *d, struct buf *out);
/* Returns whether the limit of such a lot has a name that is short enough. */
bool space_draws_ok(const struct core *c, size_t store, struct str owner, struct str name);
/* Returns the units that the draws claim in any store or lot; 0: none. */
int64_t space_drawn(const struct draws *d);

/* ---- for the files of core/ only */
void space_init(struct core *c);
void space_deinit(struct core *c);
void space_settings(struct core *c); /* the configuration of stores has changed */
/* An agent has measured the store's free space. */
void space_measured(struct core *c, size_t store, const struct core_agent *agent, uint64_t free_bytes);
void space_agent_away(struct core *c, const struct core_agent *agent); /* what it measured is forgotten */
/* Closes the lot: no job starts in it any more. To be called again as its claims end. */
void space_close(struct core *c, struct lot *x);
struct unpack;
void space_pack(const struct core *c, struct buf *out);
void space_unpack(struct core *c, struct unpack *in); /* damage sets in->bad */
const char *space_invariant(struct core *c);          /* NULL, or a sentence */
