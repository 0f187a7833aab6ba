/* curl_exchange: one request that the curl back end makes, and what became of it.
 *
 * There is one handle of libcurl for all requests of the process, so that connections are used again; an
 * exchange therefore has to be over (exchange_perform) before the next is begun, and nothing here is for
 * threads. Outcomes are those of move/mover.h.
 */
#pragma once
#include "move/curl_credential.h"

#define CURL_PROTOCOLS "http,https,ftp,ftps,sftp,file"
#define CURL_SCHEMES   CURL_PROTOCOLS ",s3"
#define CURL_OF_HTTP   "http,https,s3"
#define EXCHANGE_SAID  1024 /* bytes kept of an error that a store explains */

struct exchange {
        struct transfer *t;
        CURL *h;
        char why[CURL_ERROR_SIZE];
        bool http, body, begun; /* body: what comes is the file */
        uint64_t asked, sent;   /* GET: from this byte on; PUT: so many */
        long code;
        int error;  /* -errno of ours: why we stopped it */
        int result; /* CURLcode */
        int64_t began_ns;
        struct curl_slist *lines; /* of the request's head */
        char said[EXCHANGE_SAID]; /* the beginning of an answer that is not the file */
        size_t said_n;
};

/* Is a scheme in the list? Of names, with commas; in any case of letters. */
bool curl_scheme_in(const char *list, struct str scheme);
/* Is that of the task's URL? */
bool exchange_scheme(const struct transfer *t, const char *list);
/* Does it go to an S3 store? By its URL's scheme, or by its credential's type. */
bool exchange_s3(const struct transfer *t);

/* A request about `url`, with the credential of the task (t->shown) and nothing asked for yet; t and url are
 * borrowed until exchange_perform(), which has to follow. */
void exchange_init(struct exchange *x, struct transfer *t, const char *url);
/* The body of the answer goes into the task's file. */
void exchange_download(struct exchange *x);
/* The task's part of the file is what is sent. */
void exchange_upload(struct exchange *x);
/* Appends the line NAMEvalue to those of a list; returned, as curl has it. NULL: a new list. */
struct curl_slist *exchange_line(struct curl_slist *list, const char *name, const char *value);
/* Makes the request and waits for its end. 0: there was an answer (of HTTP its code is in x->code, which may
 * be a refusal); MOVER_AGAIN, MOVER_REFUSED or MOVER_DENIED with err; -errno: we stopped it. */
int exchange_perform(struct exchange *x, struct err *err);
/* The first bytes of an answer, or its end if it has none: are they the file's, and from where on? Notes what
 * the file is in t->found and t->piece. 0 or -errno. */
int exchange_begin_body(struct exchange *x);
/* What an answer of HTTP that is not 2xx comes to: MOVER_AGAIN, MOVER_REFUSED or MOVER_DENIED, with err. */
int exchange_refused(const struct exchange *x, struct err *err);

/* After fork(): connections of before are the other process's. */
void exchange_forget(void);

/* curl_put.c: as put() of struct mover_kind. */
int curl_put(struct transfer *t, struct err *err);
/* The path of a URL as it is meant; the caller's. NULL: it has none. */
char *curl_url_path(const char *url);
char *curl_unescape_path(struct str escaped); /* the caller's; NULL: it is none */
char *curl_url_host(const char *url);         /* HOST:PORT, the caller's; NULL: it has none */
char *curl_url_root(const char *url);         /* the URL of its store's topmost folder; the caller's */
/* The name under which the task's file is written before it has its own: a URL, the caller's. Servers of
 * WebDAV with the method MOVE rename it. */
char *curl_temporary(const struct transfer *t);
bool curl_can_move(struct transfer *t, const char *temporary);
int curl_move(struct transfer *t, const char *temporary, struct err *err); /* as put() */
void curl_drop(struct transfer *t, const char *temporary); /* it is removed, if that is possible */
void curl_quote_sftp(struct buf *b, const char *path);
/* WebDAV: makes the folders of a URL that ends with '/', outermost first; what is there already is fine. 0,
 * or an outcome of move/mover.h with err. */
int curl_make_folders(struct transfer *t, const char *url, struct err *err);

/* curl_edit.c: as the functions of struct mover_kind. */
int curl_look(struct transfer *t, struct err *err);
int curl_remove(struct transfer *t, struct err *err);
int curl_make_folder(struct transfer *t, struct err *err);
int curl_list(struct transfer *t, mover_listed_fn *fn, void *arg, struct err *err);
int curl_pull(struct transfer *t, const struct mover_pull *p, struct err *err);
