/* request: HTTP requests that are made for what is answered, as commands are run (command.h).
 *
 * A service with an API of JSON over HTTP in the place of a tool. Its answers may be large: of each only the
 * rows are kept that the service's description takes, as lines like those that a tool prints. One thread, the
 * loop's.
 */
#pragma once
#include "base/args.h"
#include "base/err.h"
#include "base/json_skim.h"
#include "run/call/command.h"

#define REQUEST_VERSION "{version}" /* in a path, where the API's version stands */

struct request_service { /* constant */
        const char *name;
        /* The API's that are spoken, the newest first; NULL behind the last. Which of them the server has is
         * found out, by asking for what has a path: where there is none the next one is tried. NULL: paths
         * have no version. */
        const char *const *versions;
        const char *user_field, *token_field; /* of a request's head: who asks, and what shows it */
        const struct json_skim_rows *rows;    /* of its answers */
        /* What is to be kept of a row goes to out, what it tells of a fault to errors. arg: request_server's.
         */
        void (*take)(const void *arg, const struct json_skim_rows *rows, const struct str *values,
                     struct buf *out, struct buf *errors);
        /* Whether what an answer with a good status told as errors is one all the same. NULL: never. */
        bool (*fault)(struct str errors);
        bool (*doubt)(struct str errors); /* these may come of the token. NULL: never */
};

struct requests;
struct request_server {
        const struct request_service *service;
        const char *address;    /* "unix:PATH" or "http://HOST:PORT" */
        const char *token_file; /* with a JSON Web Token (RFC 7519); NULL: the server knows us without */
        const char *user;       /* the token's */
        const void *arg;
};
/* Whether the address has that form. 0, or -EINVAL with err. */
int request_check(const char *address, struct err *err);
/* Borrows all but the address and the struct itself. The token is read for each request, for it may be
 * renewed. */
struct requests *requests_new(struct loop *l, const struct request_server *s);
void requests_free(struct requests *r); /* none of its requests is under way; NULL is fine */
/* That of the last answer, one of the service's; NULL: there was none yet. */
const char *requests_version(const struct requests *r);

struct request_spec { /* borrowed for the call */
        const char *method;
        const struct args *paths; /* each is asked for, one after the other */
        struct str body;          /* JSON; of each */
        const char *user;         /* for whom; NULL: the server's user */
        bool once;                /* twice is not as once: it is never sent again */
        const char *version;      /* of the API, that it was made for; NULL: it is as well with any */
        int64_t timeout_ms;       /* of each */
};
/* As command_run: `out` are the lines of all answers, `errors` what the failed ones told. The status is 0,
 * that of an exit with code 1 when one was answered with an error, and -1 when there was no answer, or
 * more than COMMAND_OUTPUT_MAX of lines. Ended by
 * command_cancel. */
struct command *request_run(struct requests *r, const struct request_spec *s, command_done_fn *done,
                            void *arg);
/* The same at once, and waits for it, timeout_ms for all. For when we end. */
void request_now(const struct request_server *server, const struct request_spec *s);
