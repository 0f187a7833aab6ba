/* provisioner: starts and stops machines for the queue: a cloud through a site's program (exec), or
 * processes of this machine (process).
 *
 * Every machine carries a tag, which is given at its start and returned by list: a machine whose start was
 * never answered is recognized by its tag. Calls are answered from the loop, each once, never from within
 * the call, and may be under way at the same time. The caller bounds their number and rate and must not rely
 * on answers: a started machine may be missing in a list, and a stopped one may still be in it. One thread.
 */
#pragma once
#include "base/buf.h"
#include "base/job/args.h"
#include "ev/loop.h"

#define PROVISIONER_INSTANCES_MAX 10000u /* machines in a list */
#define PROVISIONER_TEXT_MAX      256u   /* bytes of an id, a tag, a reason */

enum provisioner_result {
        PROVISIONER_DONE,
        PROVISIONER_FAILED,      /* `why` is the reason */
        PROVISIONER_NO_CAPACITY, /* no machine of that shape is available now */
        PROVISIONER_THROTTLED,   /* too many requests: try again later */
};
struct provisioner_instance {
        struct str id, tag;
};
/* A shape of the settings, about which describe asks. */
struct provisioner_shape {
        struct str name;
        struct str with; /* as in provisioner_launch */
        int64_t cpus, memory_mib, disk_kib;
        int64_t price_micro; /* as in the settings */
        uint32_t machines;   /* of this shape, as far as the server knows */
};
/* A provider's answer about a shape. */
struct provisioner_offer {
        struct str shape;
        int64_t price_micro; /* price of an hour; -1: unknown */
        int64_t most;        /* largest number of instances; -1: unknown */
        struct str closed;   /* reason why no instance is available now; empty: available */
};
/* Texts and arrays are borrowed for the call. */
struct provisioner_answer {
        enum provisioner_result result;
        struct str why;
        struct str id;                                /* id of the started machine */
        const struct provisioner_instance *instances; /* for list: all machines */
        size_t instance_count;
        const struct provisioner_offer *offers; /* for describe */
        size_t offer_count;
};
typedef void provisioner_done_fn(void *arg, const struct provisioner_answer *a);

struct provisioner_launch {
        struct str tag, name, shape;
        struct str token;      /* token with which the machine's agent joins, once */
        struct str addresses;  /* addresses of the server, comma-separated */
        struct str with;       /* the shape's settings for the provider: a JSON object */
        struct str attributes; /* attributes for the ads of its agent: "Name = expression; ..." */
        int64_t cpus, memory_mib, disk_kib;
        int64_t price_micro; /* price of an hour that budgets count, in millionths */
};
struct provisioner_settings {
        const char *name;
        struct args command; /* exec: the program and its first arguments; borrowed */
        const char *folder;  /* process: folder for the state of its machines */
        const char
                *private;   /* process: absolute path of the server's own folder, which is hidden from jobs */
        int64_t timeout_ms; /* longest time of one call */
};

struct provisioner;
struct provisioner_kind {
        const char *name;
        /* Returns 0; -EINVAL or -errno with err. Settings are borrowed until close. */
        int (*open)(struct loop *l, const struct provisioner_settings *s, struct provisioner **ret,
                    struct err *err);
        void (*close)(struct provisioner *p); /* calls under way are answered as failed */
        /* Lists the machines whose tag begins with prefix, in every state in which they cost something. */
        void (*list)(struct provisioner *p, struct str prefix, provisioner_done_fn *done, void *arg);
        void (*start)(struct provisioner *p, const struct provisioner_launch *x, provisioner_done_fn *done,
                      void *arg);
        /* PROVISIONER_DONE: the machine is stopping or gone. */
        void (*stop)(struct provisioner *p, struct str id, struct str tag, provisioner_done_fn *done,
                     void *arg);
        /* Asks for the present price, quota and capacity of these shapes. */
        void (*describe)(struct provisioner *p, const struct provisioner_shape *shapes, size_t count,
                         provisioner_done_fn *done, void *arg);
};
struct provisioner { /* first member of every provisioner */
        const struct provisioner_kind *kind;
};
extern const struct provisioner_kind provisioner_exec, provisioner_process;
const struct provisioner_kind *provisioner_kind_find(struct str name); /* returns NULL if there is none */
