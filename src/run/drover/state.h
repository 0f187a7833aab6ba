/* state: the state of a queue that is another Drover server: what it was opened with, and its parts, each
 * with a header of its own. */
#pragma once
#include "base/job/args.h"
#include "ev/http_client.h"
#include "run/drover/feed.h"
#include "run/drover/link.h"
#include "run/drover/tasks.h"
#include "run/runner.h"
#include "run/task/event_queue.h"

struct remote_acts;
struct remote_lease;
struct remote_login;
struct remote_output;
struct remote_quote;
struct remote_user;

struct remote {
        struct runner base;
        /* fixed when the queue is opened */
        /* User whose jobs these are, with a map of users; NULL: the agent's own user. */
        struct remote_user *user;
        struct loop *loop;
        char *queue, *dir, *token_file, *domain;
        char *address;               /* of the server, or of several of which one leads, for messages */
        struct args addresses;       /* as http_client has them; link.at is the one that is asked */
        const struct hidden *closed; /* folders that no path of a job may lead into */
        bool shared;                 /* places of the other server share this machine's file system */
        int fd;                      /* file descriptor of dir */
        struct http_client *client;
        struct tls_context *tls;
        /* parts, each in the file of that name */
        struct event_queue *events;
        struct remote_table table;
        struct remote_link link;
        struct remote_login *login; /* hello.c */
        struct remote_feed *feed;
        /* Calls of the feed; cancelled when the server is unreachable. */
        struct http_call *polls[REMOTE_POLLS];
        struct remote_lease *lease;
        struct remote_acts *acts;
        struct {
                struct remote_quote *first;
                unsigned count;
        } quotes; /* calls in progress */
        struct {
                struct remote_output *first;
                unsigned count;
        } outputs;                           /* calls of output.c in progress */
        struct timer *later, *tick, *gather; /* work.c */
        bool gathering;                      /* tasks were submitted or forgotten since the last flush */
};
