/* What environments.c and environments_make.c share. Private to them. */
#pragma once
#include "agent/environment/environments.h"
#include "place/lru.h"
#include "run/call/command.h"

struct environment {
        struct lru_node use; /* in the list once it is ready */
        struct agent *a;
        struct environment *next;
        enum environment_kind kind;
        unsigned char sha256[32];
        char *maker; /* what it depends on here: the Python */
        char *user;  /* whose it is; "" without `users` */
        uint64_t number;
        bool ready;
        char *file; /* as the first attempt calls it */
        struct command *command;
        int64_t began_ms; /* Unix: the making */
        struct name_list waiting;
        size_t wanted; /* of those that wait: how many still do */
        bool unwanted; /* none: the making is being ended, and a new one does not wait for it */
};
struct environments {
        struct environment *first;
        struct lru by_use;
        bool dirty;
        uint64_t last_number;
        struct timer *timer; /* of the probe; NULL: none are made */
        struct command *probe;
        bool probed;
        struct name_list waiting;      /* for it, or for the shepherd */
        char *python, *python_version; /* "cpython-311", "3.11.2"; NULL: none are made */
        char *conda;                   /* the program; NULL: none are made */
        bool micro;                    /* it is micromamba */
};

/* ---- environments.c */

#define ENVIRONMENT_FOLDER "env."
void environment_folder(uint64_t number, char room[32]);                        /* its name */
const char *environment_user(const struct attempt *at);                         /* struct environment's */
void environment_told(struct agent *a, const struct environment *e, bool here); /* to the server */
void environment_drop(struct agent *a, struct environment *e);                  /* it goes, with its folder */
int environments_write(struct agent *a, bool durable); /* which there are. 0, -errno */
void environments_trim(struct agent *a);               /* to the size that they may have */

/* ---- environments_make.c */

extern const char *const environment_words[]; /* by kind, as people call it */
void environment_unwanted(struct environment *e);
/* Who makes that kind here, as far as it makes a difference; NULL: nobody. */
const char *environments_maker(const struct environments *all, enum environment_kind kind);
void environments_probe(struct agent *a); /* looks what can be made here, for those that wait */
/* Begins to make what the attempt wants of the file. 0, or -EINVAL with err. */
int environment_make(struct attempt *at, enum environment_kind kind, const Drover__SpoolRef *file,
                     struct environment **ret, struct err *err);
