/* state: a batch queue: what it was opened with, and its parts, each of which has its own header. */
#pragma once
#include "run/batch/archive.h"
#include "run/batch/batch.h"
#include "run/batch/journal.h"
#include "run/batch/poll.h"
#include "run/batch/tasks.h"
#include "run/process/user_command.h"
#include "run/task/event_queue.h"

struct acts;
struct calls;
struct nodes;
struct poll;
struct quotes;
struct submit_user;
struct submitter;
struct throttle;

struct batch {
        struct runner base;
        /* as it was opened */
        const struct batch_system *system;
        struct batch_settings settings;
        struct loop *loop;
        char *queue, *dir, *prefix, *user;   /* prefix: of our submissions' names */
        bool named;                          /* our user has a name, which is `user` */
        int fd;                              /* of dir */
        struct user_commands *user_commands; /* NULL: all is ours */
        unsigned array_max, watch_s, poll_ms, verbs;
        /* its parts, each in the file of that name */
        struct event_queue *events;
        struct calls *calls;
        struct submit_user *submit_users;
        struct archive *archive;
        struct throttle *throttles;
        struct table table;
        struct acts *acts;
        struct journal journal;
        struct submitter *submitter;
        struct quotes *quotes;
        struct nodes *nodes; /* capacity.c */
        struct poll *poll;
        struct query query;
        struct timer *tick;
        bool listed;      /* all tasks were told */
        int64_t ended_ms; /* boot clock, when a task ended last */
        uint64_t lease_serial, order_serial;
};

#define BATCH_LEASE_END "lease.end" /* in the folder of the queue */
