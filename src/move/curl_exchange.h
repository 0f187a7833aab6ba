/* curl_exchange: one request of the curl back end and its result.
 *
 * The process has one handle of libcurl for all requests, so that connections are reused; an exchange
 * therefore has to be over (exchange_perform) before the next is begun. Not for threads. Outcomes are those
 * of move/mover.h.
 */
#pragma once
#include "move/curl_credential.h"

#define CURL_PROTOCOLS "http,https,ftp,ftps,sftp,file"
#define CURL_SCHEMES   CURL_PROTOCOLS ",s3"
#define CURL_OF_HTTP   "http,https,s3"
#define EXCHANGE_SAID  1024 /* bytes kept of a store's explanation of an error */

struct exchange {
        struct transfer *t;
        CURL *h;
        char why[CURL_ERROR_SIZE];
        bool http, body, begun; /* body: the body of the answer is the file */
        bool other;             /* what is asked for from some byte on has come of another version */
        uint64_t asked, sent;   /* asked: GET: first byte requested; sent: PUT: bytes sent */
        long code;
        int error;  /* -errno with which a callback stopped the request */
        int result; /* CURLcode */
        int64_t began_ns;
        struct curl_slist *lines; /* header lines of the request */
        char said[EXCHANGE_SAID]; /* first bytes of an answer that is not the file */
        size_t said_n;
};

/* Returns whether a scheme is in the comma-separated list; case does not matter. */
bool curl_scheme_in(const char *list, struct str scheme);
/* Returns whether the scheme of the task's URL is in the list. */
bool exchange_scheme(const struct transfer *t, const char *list);
/* Returns whether the task is for an S3 store, by its URL's scheme or its credential's type. */
bool exchange_s3(const struct transfer *t);

/* Prepares a request to `url`, with the credential of the task (t->shown). t and url are borrowed until
 * exchange_perform(), which must follow. */
void exchange_init(struct exchange *x, struct transfer *t, const char *url);
/* The same with another handle than the process's, which the caller has made or reset, and for which the
 * caller does what exchange_perform() does. */
void exchange_setup(struct exchange *x, struct transfer *t, const char *url, CURL *h);
/* Appends the condition that the file is still of this version. */
struct curl_slist *exchange_if_same(struct curl_slist *list, const struct move_facts *f);
/* Returns whether the answer to such a request is of the same version, and begins at byte `from`, as far as
 * it says: some servers ignore the condition. */
bool exchange_is_same(CURL *h, const struct move_facts *f, uint64_t from);
/* Returns the outcome of a request that libcurl has not finished (x->result), with err. */
int exchange_failed(const struct exchange *x, struct err *err);
/* Writes the body of the answer into the task's file. */
void exchange_download(struct exchange *x);
/* Sends the task's part of the file. */
void exchange_upload(struct exchange *x);
/* Appends the line NAMEvalue to a list of libcurl, and returns the list. NULL: a new list. */
struct curl_slist *exchange_line(struct curl_slist *list, const char *name, const char *value);
/* Makes the request and waits for its end. Returns 0 if there was an answer (its HTTP status is in x->code,
 * and may be an error); MOVER_AGAIN, MOVER_REFUSED or MOVER_DENIED with err; -errno if a callback stopped
 * the request. */
int exchange_perform(struct exchange *x, struct err *err);
/* Called at the first bytes of an answer, or at its end if it has none: finds out whether the body is the
 * file's, and from which byte on. Sets t->found and t->piece. Returns 0 or -errno. */
int exchange_begin_body(struct exchange *x);
/* Returns the outcome of an HTTP answer that is not 2xx: MOVER_AGAIN, MOVER_REFUSED or MOVER_DENIED, with
 * err. */
int exchange_refused(const struct exchange *x, struct err *err);

/* Called after fork(): drops the connections, which belong to the parent. */
void exchange_forget(void);
void exchange_close(void); /* ends the connections */

/* curl_put.c: put() of struct mover_kind. */
int curl_put(struct transfer *t, struct err *err);
/* Returns the unescaped path of a URL, which the caller frees. NULL: it has none. */
char *curl_url_path(const char *url);
char *curl_unescape_path(struct str escaped); /* the caller frees it; NULL: invalid */
char *curl_url_host(const char *url);         /* HOST:PORT, which the caller frees; NULL: none */
char *curl_url_root(const char *url);         /* URL of the store's topmost folder; the caller frees it */
/* Returns the URL under which the task's file is written before it is renamed; the caller frees it. Servers
 * of WebDAV rename it by the method MOVE. */
char *curl_temporary(const struct transfer *t);
bool curl_can_move(struct transfer *t, const char *temporary);
int curl_move(struct transfer *t, const char *temporary, struct err *err); /* as put() */
void curl_drop(struct transfer *t, const char *temporary);                 /* removes it if possible */
/* Waits until the names of the files in a folder of this machine are on its disk. Returns 0 or -errno. */
int curl_sync_folder(int dirfd, const char *path);
void curl_quote_sftp(struct buf *b, const char *path);
/* WebDAV: makes the folders of a URL that ends with '/', outermost first; existing ones are accepted.
 * Returns 0, or an outcome of move/mover.h with err. */
int curl_make_folders(struct transfer *t, const char *url, struct err *err);

/* curl_streams.c. wanted: returns how many connections are to be used for the file; 0 or 1: one. get: gets it
 * with so many; as get() of struct mover_kind, or CURL_ONE_STREAM: it is too small, or its server knows no
 * ranges. */
#define CURL_ONE_STREAM 1000
unsigned curl_streams_wanted(const struct transfer *t);
int curl_get_streams(struct transfer *t, unsigned count, struct err *err);

/* curl_edit.c: functions of struct mover_kind. */
int curl_look(struct transfer *t, struct err *err);
int curl_remove(struct transfer *t, struct err *err);
int curl_make_folder(struct transfer *t, struct err *err);
int curl_list(struct transfer *t, mover_listed_fn *fn, void *arg, struct err *err);
int curl_pull(struct transfer *t, const struct mover_pull *p, struct err *err);
int curl_space(struct transfer *t, uint64_t *ret_free, struct err *err);
