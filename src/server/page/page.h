/* page: the web page, which a browser loads from the API's TLS port when the settings say `page: yes`.
 *
 * Its files are built in (web/), and found by their exact names: no path of a request is ever opened. The
 * page speaks the API like everybody else. Its credential is a cookie: POST /page/session exchanges a user
 * token for one (auth/session.h). I/O thread.
 */
#pragma once
#include "server/calls/route.h"

/* Finds a route of the page: see route_find. */
const struct route *page_find(enum http_method method, struct str path, struct str param[2],
                              bool *ret_path_known);
/* The value of the session's cookie, borrowed from the request; empty when there is none. */
struct str page_cookie(const struct http_request *r);
/* Adds the headers that a reply needs which a browser may open as a page of this origin: what jobs have
 * written is never run, shown in a frame or kept. Before the reply. */
void page_guard(struct http_request *r);

/* Written by embed.py of the files of web/. */
struct page_file {
        const char *name, *content_type;
        const char *tag; /* changes with the content: an ETag with its quotes */
        const char *text;
        size_t size;
};
extern const struct page_file page_files[];
extern const size_t page_file_count;
