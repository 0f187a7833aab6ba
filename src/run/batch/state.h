/* state: the state of a batch queue: what it was opened with, and its parts, each with a header of its own.
 */
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
struct reservations;
struct remote_files;
struct submit_user;
struct submitter;
struct throttle;

struct batch {
        struct runner base;
        /* fixed when the queue is opened */
        const struct batch_system *system;
        struct batch_settings settings;
        struct loop *loop;
        char *queue, *dir, *prefix, *user;   /* prefix: of the names of this queue's submissions */
        bool named;                          /* the agent's user has a name, which is `user` */
        int fd;                              /* descriptor of dir */
        struct user_commands *user_commands; /* NULL: all commands run as the agent's user */
        unsigned array_max, watch_s, poll_ms, verbs;
        /* parts, each in the file of that name */
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
        struct reservations *reservations;
        struct query query;
        struct remote_files *remote; /* the system's commands run on this machine */
        struct timer *tick;
        bool listed;      /* all known tasks have been reported */
        int64_t ended_ms; /* boot clock; end of the last task that ended */
        uint64_t lease_serial, order_serial;
};

#define BATCH_LEASE_END "lease.end" /* file in the queue's folder */
