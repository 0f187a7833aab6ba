/* api: calls to the server's HTTP API (docs/openapi.json) by whichever way leads to it.
 *
 * Which server: --dir; else --server or $DROVER_SERVER (https://host:port, or a domain, srv.h; with
 * $DROVER_TOKEN); else $DROVER_DIR; else
 * the default folder if a server was started there; else the lines of ~/.config/drover/server and …/token. In
 * a folder only server.json is read: it tells where the socket is. Of several servers that stand in for each
 * other the leader is asked; if none leads, one that stands by, which answers reads, and a note on standard
 * error says how old they are.
 */
#pragma once
#include "cli/terminal/cli.h"

/* Errors of a call; all are positive, and err has a sentence. */
enum api_error {
        API_NO_SERVER = 1, /* no server answers at the address; nothing was sent */
        API_LOST,          /* no answer came: the server may or may not have acted */
        API_REFUSED,       /* the server answered with an error: answer.status, answer.code */
        API_BROKEN,        /* the answer cannot be read, or could not be stored */
};

struct api_request {
        const char *method; /* NULL: GET */
        const char *path;   /* path with its query, escaped */
        struct str body;
        const char *type; /* NULL: application/json */
        int timeout_ms;   /* 0: 60 s */
        bool to_file;     /* the body of a 2xx answer is written to fd */
        int fd;
};
struct api_answer {
        int status;
        int64_t standby_ms; /* age of what a server that stands by has answered; -1: the leader has */
        char code[64];      /* code of an error */
        struct buf body;
        struct view root; /* root of the body's JSON */
        uint64_t written; /* bytes written to fd */
};
void api_answer_deinit(struct api_answer *a);
#define API_ANSWER_CLEANUP __attribute__((cleanup(api_answer_deinit)))

/* Makes the call. Returns 0 for a 2xx answer; else an api_error with err. *ret is overwritten, and is the
 * caller's to deinit in any case. If all of several servers stand by, it waits until one leads, half a minute
 * at most. */
int api_call(struct cli *cli, const struct api_request *r, struct api_answer *ret, struct err *err);
void api_close(struct cli *cli);
/* Returns the HTTP status of the answer to the last call; 0: there was none. */
int api_status(const struct cli *cli);
/* Returns the exit code for a call that returned rc: CLI_USAGE if the object does not exist or the request
 * is wrong. */
int api_exit(int rc, const struct api_answer *a);

/* Calls GET on the path, and prints errors. Returns an exit code. */
int api_get(struct cli *cli, const char *path, struct api_answer *ret);
/* Returns whether --json was given, after printing the answer's body unchanged; false: nothing was printed.
 */
bool api_print_json(struct cli *cli, struct api_answer *a);
int api_post(struct cli *cli, const char *path, struct str body, struct api_answer *ret);

/* Appends a parameter to a path: api_query(&path, "owner", v) appends ?owner=v or &owner=v, and nothing if v
 * is empty. */
void api_query(struct buf *path, const char *name, struct str value);
/* Returns 0, or CLI_USAGE after printing that the path is too long for the server. */
int api_path_check(struct buf *path);

/* Lists the elements of a paged address: calls `each` for every element of `array` of every page. The path
 * must not have `after` yet; `cursor` is the name of the parameter ("after", "before"), NULL for an address
 * with one page only. `limit` 0: all. With --json prints one document {"array": […], "next": …} of the
 * elements as the server wrote them instead, and never calls `each`. Returns an exit code; a result of
 * each() other than 0 ends the listing and is returned. */
struct api_list {
        struct buf *path;
        const char *array, *cursor;
        int64_t limit;
        bool whole; /* the server gives all elements in one answer if no limit is asked for */
        int (*each)(void *arg, struct view item);
        void *arg;
};
int api_list(struct cli *cli, const struct api_list *l);

/* Prints the elements of one address as a table: row() fills one row for every element of `array`; `none` is
 * printed if there are no rows. With --json prints the answer unchanged. Returns an exit code. */
struct api_table {
        const char *path, *array, *none;
        const struct table_column *columns;
        unsigned column_count;
        void (*row)(struct cli *cli, struct table *t, struct view item);
        void (*below)(struct cli *cli, struct buf *out,
                      struct view list); /* appends text below the table; may be NULL */
};
int api_table(struct cli *cli, const struct api_table *a);
