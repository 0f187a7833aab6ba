/* request: makes HTTP requests with the interface of commands (command.h).
 *
 * A service with a JSON API over HTTP takes the place of a command-line tool. Answers may be large: only
 * those rows are kept that the service's description selects, as lines like those that a tool prints. An
 * answer of more than 1 GiB or 1,000,000 rows, or of which more than COMMAND_OUTPUT_MAX would be kept, ends
 * its request with -1. All calls are made on the loop's thread.
 */
#pragma once
#include "base/err.h"
#include "base/format/json_skim.h"
#include "base/job/args.h"
#include "run/call/command.h"

#define REQUEST_VERSION "{version}" /* stands for the API's version in a path */

struct request_service { /* constant */
        const char *name;
        /* Versions of the API that are supported, the newest first; NULL behind the last. The server's
         * version is found by trying them in this order until one is not answered with 404. NULL: paths have
         * no version. */
        const char *const *versions;
        const char *user_field;            /* header field for the user; NULL: none */
        const char *token_field;           /* header field for the token, up to the token itself: "NAME: " */
        bool any_token;                    /* the token need not be a JSON Web Token */
        const struct json_skim_rows *rows; /* rows to keep of its answers */
        /* Appends what is kept of a row to `out`, and an error that it reports to `errors`. arg: that of
         * request_server. */
        void (*take)(const void *arg, const struct json_skim_rows *rows, const struct str *values,
                     struct buf *out, struct buf *errors);
        /* Returns whether errors in an answer with a good status make it a failure. NULL: never. */
        bool (*fault)(struct str errors);
        bool (*doubt)(struct str errors); /* the errors may be due to the token. NULL: never */
        const char *fields; /* more header fields of each request, each with its CR LF; NULL: none */
        bool empty_is_none; /* an empty body is an answer without rows */
};

struct requests;
struct request_server {
        const struct request_service *service;
        const char *address;    /* "unix:PATH", "http://HOST:PORT", or with ca_file "https://HOST:PORT" */
        const char *ca_file;    /* file with the authorities that may sign for the server, PEM; or NULL */
        const char *token_file; /* file with a JSON Web Token (RFC 7519); NULL: the server needs none */
        /* Files with the client's certificate (PEM, with the chain of a proxy) and its key, which may be in
         * the same file; NULL: none. */
        const char *certificate_file, *key_file;
        const char *user; /* user that the token is for */
        const void *arg;
};
/* Checks the form of an address; tls: it may be https. Returns 0, or -EINVAL with err. */
int request_check(const char *address, bool tls, struct err *err);
/* Copies the struct and the address, and borrows the rest. The token file is read for each request, since
 * the token may be renewed. */
struct requests *requests_new(struct loop *l, const struct request_server *s);
void requests_free(struct requests *r); /* no request may be in progress; NULL is fine */
/* Returns the API version of the last answer, one of the service's; NULL: no answer yet. */
const char *requests_version(const struct requests *r);

/* Makes the body of the next path, which is requested by POST, from the lines of the answers so far. false:
 * no more paths are requested. */
typedef bool request_next_fn(const void *arg, struct str lines, struct buf *ret_body);

enum request_kind {
        REQUEST_ROWS,     /* the answer is JSON, of which rows are kept */
        REQUEST_TEXT,     /* the answer's body is kept as it is, at most REQUEST_TEXT_MAX of it */
        REQUEST_DOWNLOAD, /* the answer's body is written to fd, at most `size` bytes */
        REQUEST_UPLOAD,   /* the body are `size` bytes of fd; the answer is kept as for REQUEST_TEXT */
};
#define REQUEST_TEXT_MAX 4096
#define REQUEST_ABSENT   (2 << 8) /* status of a request for text or a file: the server does not have it */

struct request_spec { /* borrowed for the call */
        const char *method;
        const struct args *paths; /* requested one after the other */
        struct str body;          /* body of each request */
        const char *type;         /* of the body; NULL: application/json */
        const char *user;         /* user to ask for; NULL: the server's user */
        bool once;                /* not idempotent: never sent again */
        const char *version;      /* API version that it was made for; NULL: any */
        int64_t timeout_ms;       /* for each request */
        request_next_fn *next;    /* NULL: all paths have the same body */
        const void *next_arg;     /* borrowed until the end of the call */
        enum request_kind kind;
        int fd; /* of a file, borrowed until the end of the call */
        uint64_t size;
        /* The first document of an answer ends the request, and what follows is not waited for. An answer
         * without any is a good one. For a service that answers when something happens. */
        bool first;
};
/* Makes the calls; the result comes as that of command_run. `out` has the lines of all answers, `errors` what
 * failed ones reported. The status is 0; that of exit code 1 if one was answered with an error; -1 if there
 * was no answer, or more than COMMAND_OUTPUT_MAX of lines. Ended by command_cancel. */
struct command *request_run(struct requests *r, const struct request_spec *s, command_done_fn *done,
                            void *arg);
/* Makes the requests and waits for them, timeout_ms in all. For use while the agent shuts down. */
void request_now(const struct request_server *server, const struct request_spec *s);
