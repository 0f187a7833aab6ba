/* provisioner: what starts and stops machines for the queue: a cloud behind a program of the admin's (exec),
 * or processes of this machine (process).
 *
 * Every machine carries a tag, which is given at its start and which list shows again: by its tag a machine
 * is known whose start was never answered. Calls are answered from the loop, each once, never from within the
 * call, and may be under way at the same time. Whoever calls bounds their number and their pace, and believes
 * nothing that is answered: a machine that was started may be missing in a list, and one that was stopped be
 * there. One thread.
 */
#pragma once
#include "base/args.h"
#include "base/buf.h"
#include "ev/loop.h"

#define PROVISIONER_INSTANCES_MAX 10000u /* in a list */
#define PROVISIONER_TEXT_MAX      256u   /* bytes of an id, of a tag, of a reason */

enum provisioner_result {
        PROVISIONER_DONE,
        PROVISIONER_FAILED,      /* `why` says how */
        PROVISIONER_NO_CAPACITY, /* of that shape there is none now */
        PROVISIONER_THROTTLED,   /* it was asked too often: ask later */
};
struct provisioner_instance {
        struct str id, tag;
};
/* A provider's answer about a shape. */
struct provisioner_offer {
        struct str shape;
        int64_t price_micro; /* of an hour; -1: not said */
        int64_t most;        /* instances that there may be of it; -1: not said */
        struct str closed;   /* none can be had now: why; empty: they can */
};
/* Texts and arrays are borrowed for the call. */
struct provisioner_answer {
        enum provisioner_result result;
        struct str why;
        struct str id;                                /* of start */
        const struct provisioner_instance *instances; /* of list: all of them */
        size_t instance_count;
        const struct provisioner_offer *offers; /* of describe */
        size_t offer_count;
};
typedef void provisioner_done_fn(void *arg, const struct provisioner_answer *a);

struct provisioner_launch {
        struct str tag, name, shape;
        struct str token;      /* with which the machine's agent joins, once, under this name */
        struct str addresses;  /* of the server, commas between */
        struct str with;       /* the shape's settings for the provider: a JSON object */
        struct str attributes; /* that its agent shall offer: "Name = expression; ..." */
        int64_t cpus, memory_mib, disk_kib;
};
struct provisioner_settings {
        const char *name;
        struct args command; /* exec: the program and its first arguments; borrowed */
        const char *folder;  /* process: where its machines have their state */
        int64_t timeout_ms;  /* of one call */
};

struct provisioner;
struct provisioner_kind {
        const char *name;
        /* 0; -EINVAL, -errno with err. Settings are borrowed for as long as it is open. */
        int (*open)(struct loop *l, const struct provisioner_settings *s, struct provisioner **ret,
                    struct err *err);
        void (*close)(struct provisioner *p); /* calls under way are given up, and answered as failed */
        /* The machines whose tag begins with prefix, in whatever state as long as they cost something. */
        void (*list)(struct provisioner *p, struct str prefix, provisioner_done_fn *done, void *arg);
        void (*start)(struct provisioner *p, const struct provisioner_launch *x, provisioner_done_fn *done,
                      void *arg);
        /* Done: it is going, or is gone. */
        void (*stop)(struct provisioner *p, struct str id, struct str tag, provisioner_done_fn *done,
                     void *arg);
        void (*describe)(struct provisioner *p, provisioner_done_fn *done, void *arg);
};
struct provisioner { /* begins every provisioner */
        const struct provisioner_kind *kind;
};
extern const struct provisioner_kind provisioner_exec, provisioner_process;
const struct provisioner_kind *provisioner_kind_find(struct str name); /* NULL: there is none */
