/* page: the web page, which a browser loads from the API's TLS port when the settings say `page: yes`.
 *
 * The page's files (web/) are built into the server and found by their exact names, so no path of a
 * request is ever opened. The page uses the API like any other client. Its credential is a cookie: POST
 * /page/session exchanges a user token for one (auth/session.h), and so does a sign-in by OpenID Connect
 * (openid.h). I/O thread, where nothing else is said. */
#pragma once
#include "auth/session.h"
#include "server/calls/route.h"

/* Finds a route of the page: see route_find. */
const struct route *page_find(enum http_method method, struct str path, struct str param[2],
                              bool *ret_path_known);
/* The value of the session's cookie, borrowed from the request; empty when there is none. */
struct str page_cookie(const struct http_request *r);
struct str page_cookie_named(const struct http_request *r, const char *name); /* that of another one */
/* Core thread: begins a session with a token that is valid, and writes the header Set-Cookie for it. The
 * session is borrowed until the table changes. */
const struct session *page_open_session(struct server *s, struct str token_id, char *ret_set, size_t size);
/* Adds the headers for a reply that a browser might open as a page of this origin, so that content from
 * jobs is never executed, framed or cached. To be called before the reply. */
void page_guard(struct http_request *r);

/* A file of web/; embed.py writes the table. */
struct page_file {
        const char *name, *content_type;
        const char *tag; /* an ETag with its quotes, derived from the content */
        const char *text;
        size_t size;
};
extern const struct page_file page_files[];
extern const size_t page_file_count;
