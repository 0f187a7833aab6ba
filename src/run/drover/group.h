/* group: puts tasks that are alike into one request and writes its document. */
#pragma once
#include <stddef.h>

struct buf;
struct json;
struct remote;
struct remote_task;

/* Puts all READY tasks into requests, and saves them. */
void remote_group(struct remote *f);
/* Writes the member "parts" for these tasks, which are alike, into an open object. */
void remote_parts(struct json *j, struct remote_task *const *tasks, size_t count);
/* Appends the request's document for these tasks, which are alike; its object is left open. */
void remote_document(struct buf *out, const char *uuid, struct remote_task *const *tasks, size_t count);
