/* session_file: a file that identifies a submitted request: NAME.session.xml.
 *
 * The file has the request's number and uuid, its server's uuid, folder and address, and the folder of the
 * submit; requests made by resubmits are added. A command that is given such a file needs nothing else, even
 * on another machine of the user and after the server was rebuilt from a backup. Nothing in the file is
 * trusted: the server is asked whether its request has the uuid. The server's address is taken from the file
 * only if the caller or root owns it: with another user's file a command uses the caller's own server, so
 * that no token is sent to a server that the file names.
 */
#pragma once
#include "base/system/uuid.h"
#include "cli/client/api.h"

#define SESSION_FILE_MAX     (1u << 20) /* maximum bytes */
#define SESSION_REQUESTS_MAX 1000u
#define SESSION_JOBS_MAX     5000u
#define SESSION_SCRIPTS_MAX  (256u << 10) /* bytes of all scripts */

struct session_request {
        uint64_t id, jobs;
        char uuid[UUID_TEXT];
};
struct session_job { /* a job in a batch system (session_batch.h) */
        char id[32], runner[16], native[80];
};
struct session_script {              /* as it was submitted, once for the jobs of one array */
        char runner[16], native[80]; /* native: the id without a number within an array */
        char *text;
};
struct session_file {
        struct buf server_uuid, dir, address; /* the server; dir or address may be empty */
        struct buf file, folder, report;      /* the submit: its description, folder and report */
        struct session_request *requests;     /* in order of submission */
        size_t count, cap;
        struct session_job *jobs;
        size_t job_count, job_cap;
        struct session_script *scripts;
        size_t script_count, script_cap, script_bytes;
        bool own; /* the file belongs to the caller or root */
};

void session_file_deinit(struct session_file *s);
#define SESSION_FILE_CLEANUP __attribute__((cleanup(session_file_deinit)))
/* Reads the file. Returns 0, or an exit code after an error was printed. */
int session_file_read(const char *path, struct session_file *ret);
/* Writes the file, completely or not at all. */
int session_file_write(const char *path, const struct session_file *s);
/* Writes a session file at `path` for a request that was submitted from `file`; report: path of its report,
 * or NULL. An error is only printed, since the request has been made. */
void session_file_leave(struct cli *cli, const char *path, const struct api_answer *submitted,
                        const char *file, const char *report);
/* Begins a session from the server's answer to a submit. */
int session_file_begin(struct cli *cli, const struct api_answer *submitted, struct session_file *ret);
void session_file_add(struct session_file *s, const struct api_answer *submitted);
/* Adds a job; it is left out if a name is too long, has other characters than names of batch jobs have, or
 * there are SESSION_JOBS_MAX. */
void session_file_add_job(struct session_file *s, struct str id, struct str runner, struct str native);
/* Appends the part of a batch system's id that all jobs of an array share. */
void session_file_native_base(struct str native, struct buf *out);
/* Returns whether the script of this job's array is there, or there is no room for it. */
bool session_file_has_script(const struct session_file *s, struct str runner, struct str native);
/* Adds the script of a job's array; it is left out as a job is, or if there is no room for it. */
void session_file_add_script(struct session_file *s, struct str runner, struct str native, struct str text);
/* Selects the session's server, unless the call or the environment names one or the file is another user's,
 * and checks that its requests are the session's. *ret gets their ids, "7,9"; with `last`, the id of the
 * last one only. *ret_gone: no server answers. */
int session_file_use(struct cli *cli, const struct session_file *s, bool last, struct buf *ret,
                     bool *ret_gone);
