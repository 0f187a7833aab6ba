/* session_file: a file by which a request is found again: NAME.session.xml.
 *
 * It has the request's number and uuid, its server's uuid, folder and address, and where it was submitted;
 * what was made of it by resubmits is added. A command that is given such a file needs nothing else, also on
 * another machine of the user and after the server was built again from a backup. The file is the user's, and
 * is believed in nothing: the server is asked whether its request has the uuid.
 */
#pragma once
#include "base/uuid.h"
#include "cli/client/api.h"

#define SESSION_FILE_MAX     (1u << 20) /* bytes */
#define SESSION_REQUESTS_MAX 1000u

struct session_request {
        uint64_t id, jobs;
        char uuid[UUID_TEXT];
};
struct session_file {
        struct buf server_uuid, dir, address; /* of the server; dir or address may be empty */
        struct buf file, folder, report;      /* of the submit; the description, and where it was */
        struct session_request *requests;     /* in the order in which they were made */
        size_t count, cap;
};

void session_file_deinit(struct session_file *s);
#define SESSION_FILE_CLEANUP __attribute__((cleanup(session_file_deinit)))
/* 0; or an exit code, after an error was printed. */
int session_file_read(const char *path, struct session_file *ret);
/* Written whole or not at all. */
int session_file_write(const char *path, const struct session_file *s);
/* Leaves one at `path` of a request that was submitted from `file`; report: its report, or NULL. What goes
 * wrong is printed: the request is there. */
void session_file_leave(struct cli *cli, const char *path, const struct api_answer *submitted,
                        const char *file, const char *report);
/* A new one of a request: what the server answered to its submit. */
int session_file_begin(struct cli *cli, const struct api_answer *submitted, struct session_file *ret);
void session_file_add(struct session_file *s, const struct api_answer *submitted);
/* Uses the session's server, unless the call or the environment names one, and asks whether its requests are
 * the session's. *ret is their ids, "7,9"; `last`: of the last one only. */
int session_file_use(struct cli *cli, const struct session_file *s, bool last, struct buf *ret);
