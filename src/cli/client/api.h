/* api: calls to the server's HTTP API (docs/openapi.json) by whichever way leads to it.
 *
 * Which server: --dir; else $DROVER_SERVER (https://host:port, with $DROVER_TOKEN); else $DROVER_DIR; else
 * the default folder if a server was started there; else the lines of ~/.config/drover/server and …/token. In
 * a folder only server.json is read: it tells where the socket is.
 */
#pragma once
#include "cli/terminal/cli.h"

/* What a call can return; all are positive, and err has a sentence. */
enum api_error {
        API_NO_SERVER = 1, /* nobody answers there; nothing was sent */
        API_LOST,          /* no answer came: the server may or may not have acted */
        API_REFUSED,       /* the server answered with an error: answer.status, answer.code */
        API_BROKEN,        /* what came is no answer, or couldn't be kept */
};

struct api_request {
        const char *method; /* NULL: GET */
        const char *path;   /* with its query, escaped */
        struct str body;
        const char *type; /* NULL: application/json */
        int timeout_ms;   /* 0: 60 s */
        bool to_file;     /* a good answer's body goes to fd */
        int fd;
};
struct api_answer {
        int status;
        char code[64]; /* of an error */
        struct buf body;
        struct view root; /* of the body */
        uint64_t written; /* to fd */
};
void api_answer_deinit(struct api_answer *a);
#define API_ANSWER_CLEANUP __attribute__((cleanup(api_answer_deinit)))

/* 0: a 2xx answer. The answer is overwritten, and the caller's to deinit in any case. */
int api_call(struct cli *cli, const struct api_request *r, struct api_answer *ret, struct err *err);
void api_close(struct cli *cli);
/* The exit code for a call that returned rc: CLI_USAGE for what doesn't exist and for a wrong request. */
int api_exit(int rc, const struct api_answer *a);

/* The everyday call: prints what goes wrong. Returns an exit code. */
int api_get(struct cli *cli, const char *path, struct api_answer *ret);
/* With --json: prints the answer as it came, and true. */
bool api_print_json(struct cli *cli, struct api_answer *a);
int api_post(struct cli *cli, const char *path, struct str body, struct api_answer *ret);

/* Building a path: api_query(&path, "owner", v) appends ?owner=v or &owner=v, and nothing when v is empty. */
void api_query(struct buf *path, const char *name, struct str value);
/* The path is too long for the server: prints it, and returns CLI_USAGE. Else 0. */
int api_path_check(struct buf *path);

/* Lists what a paged address gives: calls `each` for every element of `array` of every page. The path has no
 * `after` yet; `cursor` is the name of the parameter ("after", "before"), NULL for what has one page only.
 * `limit` 0: all. With --json prints one document {"array": […], "next": …} of the elements as the server
 * wrote them instead, and never calls `each`. Returns an exit code; what each() returns, when not 0, ends it.
 */
struct api_list {
        struct buf *path;
        const char *array, *cursor;
        int64_t limit;
        bool whole; /* asked without a limit, the server gives all in one answer */
        int (*each)(void *arg, struct view item);
        void *arg;
};
int api_list(struct cli *cli, const struct api_list *l);

/* Prints what one address gives as a table: row() fills it for every element of `array`; `none` is printed
 * when there are no rows. With --json the answer as it came. Returns an exit code. */
struct api_table {
        const char *path, *array, *none;
        const struct table_column *columns;
        unsigned column_count;
        void (*row)(struct cli *cli, struct table *t, struct view item);
        void (*below)(struct buf *out, struct view list); /* what stands below it; may be NULL */
};
int api_table(struct cli *cli, const struct api_table *a);
