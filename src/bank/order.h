/* order: one thing that the bank is told to do, and its packed form in events.
 *
 * The numbers of enum bank_op and enum bank_role are stored: none is used again.
 */
#pragma once
#include "base/err.h"
#include "base/set.h"

enum bank_op {
        BANK_OPEN = 1, /* the account is made, or opened again, or has another text */
        BANK_MEMBER,   /* `user` has `role` in the account; none: he is no member any more */
        BANK_DEPOSIT, /* into allocation `id`; 0: into a new one with these dates, credit, places and users */
        BANK_WITHDRAW, /* amount that is neither reserved nor credit, from allocation `id`, or from any */
        BANK_TRANSFER, /* the same, into the account `to` */
        BANK_SET, /* the dates and the credit limit of allocation `id`; with `activity` inactive it ends now,
                     and the rest is as before */
        BANK_QUOTE,   /* a promise until end_ms: `amount` for duration_ms with cpus, memory_mib and gpus */
        BANK_LIEN,    /* `amount` until end_ms, for each of the members' attempts or for another system */
        BANK_EXTEND,  /* `amount` more, until end_ms, for each of the members' liens or for lien `id` */
        BANK_RELEASE, /* the members' liens, or lien `id`, hold nothing any more */
        BANK_CHARGE, /* what was used: of the members' liens each `amount`, of lien `id`, or of the account */
        BANK_REFUND, /* of what the account was charged, into allocation `id`, or the first one that `user`
                        can spend at `place` */
        BANK_REGISTER,   /* the machine `place` is added to the register; without it the user `user` */
        BANK_MACHINE,    /* the registered machine `place` is changed */
        BANK_UNREGISTER, /* the machine `place`, or the user `user`, is removed from the register */
        BANK_CLOSE,      /* the account takes part in nothing more; opening it again undoes that */
        BANK_USER,       /* the registered user `user` is changed */
        BANK_REQUOTE,    /* the end (0: as before) and the description (empty: as before) of quote `quote` */
        BANK_CANCEL,     /* quote `quote`, which no lien holds, is withdrawn */
        BANK_ACCOUNT, /* the account has another text, or is opened again or closed, by `activity`, or both */
        BANK_OPS
};

enum bank_role { BANK_ROLE_NONE, BANK_ROLE_USER, BANK_ROLE_MANAGER, BANK_ROLE_OWNER, BANK_ROLES };

enum bank_activity { BANK_AS_BEFORE, BANK_ACTIVE, BANK_INACTIVE, BANK_ACTIVITIES };

/* Texts that an order removes: one that is merely empty stays as it was. */
enum bank_clears {
        BANK_CLEARS_WHY = 1 << 0, /* the description of an account, machine, user or quote */
        BANK_CLEARS_ARCH = 1 << 1,
        BANK_CLEARS_OPSYS = 1 << 2,
        BANK_CLEARS_ALL = (1 << 3) - 1,
};

struct bank_order {
        enum bank_op op;
        struct str account, to;   /* names */
        struct str user, place;   /* user, and place: AGENT/QUEUE */
        struct str places, users; /* of a new allocation */
        struct str who, why;      /* user who gave the order, and reason */
        struct str job;           /* of a lien, charge or refund: a job's name in another system */
        struct str qos;           /* of a quote: the quality of service that it is for */
        struct str arch, opsys;   /* of a machine; `why` is its, or a user's, description. Empty: as before */
        unsigned clears;          /* set of enum bank_clears */
        enum bank_activity activity;
        enum bank_role role;
        uint64_t id; /* an allocation or a lien, as the operation says */
        uint64_t quote;
        int64_t amount, credit;
        int64_t start_ms, end_ms, duration_ms;
        int64_t memory_mib;
        uint32_t cpus, gpus;
        /* The attempts that it is about: members of a request under one fence. request 0: none. */
        uint64_t request;
        uint32_t fence;
        struct set members; /* owned: bank_order_deinit */
};

void bank_order_deinit(struct bank_order *o);
void bank_order_pack(struct buf *out, const struct bank_order *o);
/* Strings are borrowed from the record. 0, -EBADMSG with err. */
int bank_order_unpack(struct bank_order *o, struct str record, struct err *err);
const char *bank_op_name(enum bank_op op);                   /* "deposit"; "?" when unknown */
const char *bank_role_name(enum bank_role role);             /* "manager"; "none" */
const char *bank_activity_name(enum bank_activity activity); /* "active"; "" for BANK_AS_BEFORE */
bool bank_op_parse(struct str text, enum bank_op *ret);
bool bank_role_parse(struct str text, enum bank_role *ret);
bool bank_activity_parse(struct str text, enum bank_activity *ret);
