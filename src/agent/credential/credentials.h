/* credentials: credentials that jobs' owners have given to their jobs.
 *
 * The server sends them by name for a part of a request (never with a template, so that they are in no
 * journal), and they are kept in memory while an attempt of that part exists. Each attempt has them as
 * private files (0600) of its user in a folder of its sandbox, which is removed with the sandbox; its
 * environment names the files:
 *
 *      X509_USER_PROXY                the first proxy
 *      BEARER_TOKEN_FILE              the first token (WLCG's bearer token discovery)
 *      AWS_SHARED_CREDENTIALS_FILE    the first S3 key
 *      _CONDOR_CREDS                  the folder; a token NAME is the file NAME.use there, as HTCondor has it
 *
 * When the owner replaces a credential the server sends the new one, and the files are replaced, each in one
 * step.
 *
 * Transfers for the job use them too: a URL is requested with the credential whose owner allowed it for that
 * URL or a URL above it (the longest wins; of equals, the first that the job names), and s3:// also with the
 * job's first S3 key that is allowed for no special URL. Any other URL is requested as the agent.
 */
#pragma once
#include "base/job/args.h"
#include "base/job/file_key.h"

struct agent;
struct attempt;
struct move_task;

/* Requests the attempt's credentials. Returns 0 if it has all or needs none; 1 if some are on their way:
 * news->credential is called when they are here; -EINVAL with err if one cannot be had. */
int credentials_want(struct attempt *at, struct err *err);
/* Writes the files in the sandbox. Returns 0 or -errno; 1: a child of the job's user must write them
 * (stage_credentials). */
int credentials_place(struct attempt *at);
/* Writes new contents for an attempt that already has files. Returns 0 or 1, like credentials_place. */
int credentials_renew(struct attempt *at);
/* Removes the files when no step follows. With `users` the child of the job's user does that. */
void credentials_drop(struct attempt *at);
/* Appends arguments for a mover that runs as the job's program (drover-mover(8)): which file to use for
 * which URLs. */
void credentials_words(const struct attempt *at, struct args *argv);
void credentials_env(const struct attempt *at, const char *sandbox, struct args *env);
/* Calls fn with the file name and contents of each credential. */
void credentials_each(const struct attempt *at, void (*fn)(void *arg, const char *file, struct str data),
                      void *arg);
/* Returns the URLs that each of at->credential_count credentials is used for; none for one that has not
 * arrived. The caller frees the array; its contents are borrowed. */
struct file_credential *credentials_list(const struct attempt *at);
/* Puts the credential for the task's URL, if there is one, into the task. *ret_version changes when its
 * owner replaces it; 0: there is none. Returns 0; 1: it has not arrived, news->credential is called then;
 * -EACCES with err: it has expired or cannot be had. */
int credentials_show(struct attempt *at, struct move_task *t, uint64_t *ret_version, struct err *err);
/* Appends advice for an error message when a store has denied a transfer that used this version. Returns
 * true if there is a newer version to try again with. */
bool credentials_denied(struct attempt *at, const char *url, uint64_t version, struct buf *words);
/* For a runner that delegates jobs: the names, comma-separated, and the contents of all credentials that
 * have arrived. The job has no files and no environment for them at this place then. */
void credentials_names(const struct attempt *at, struct buf *out);
void credentials_hand_on(struct attempt *at);
void credentials_release(struct attempt *at); /* called when the attempt is over */
struct credential_given {                     /* a credential from the server */
        uint64_t request;
        uint32_t part;
        const char *name, *type; /* type: proxy, token, s3, file */
        const char *error;       /* why it cannot be had: missing or expired; empty: no error */
        struct str data;
        int64_t expires_ms; /* 0: not known */
        char *const *urls;  /* canonical prefixes of the URLs for which transfers of the job use it */
        size_t url_count;
};
void credentials_given(struct agent *a, const struct credential_given *m); /* borrowed for the call */
void credentials_greeted(
        struct agent *a); /* called for a new session: requests all again, since they may have changed */
