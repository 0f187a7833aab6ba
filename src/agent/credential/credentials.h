/* credentials: what jobs' owners have given them to speak for them elsewhere.
 *
 * They come from the server by name for a part of a request (never with a template, so they are in no
 * journal), and are kept in memory while an attempt of that part is held. Each attempt has them as private
 * files (0600) of its user in a folder of its sandbox, which goes with the sandbox; its environment names the
 * files:
 *
 *      X509_USER_PROXY                the first proxy
 *      BEARER_TOKEN_FILE              the first token (WLCG's bearer token discovery)
 *      AWS_SHARED_CREDENTIALS_FILE    the first S3 key
 *      _CONDOR_CREDS                  the folder; a token NAME is the file NAME.use there, as HTCondor has it
 *
 * When the owner replaces one the server tells it, and the files are replaced, each in one step.
 *
 * Transfers for the job use them too: a URL is asked for with the one whose owner has said that it is for
 * that URL or one above it (the longest wins; of equals, the first the job names), and s3:// also with the
 * job's first S3 key that is for nothing special. Any other URL is asked for as the agent.
 */
#pragma once
#include "base/args.h"
#include "base/file_key.h"

struct agent;
struct attempt;
struct move_task;

/* 0: it has all, or needs none. 1: news->credential is called when they are here. -EINVAL with err: one
 * that cannot be had, and why. */
int credentials_want(struct attempt *at, struct err *err);
/* Writes the files, in the sandbox. 0, -errno; 1: a child of the job's user has to (stage_credentials). */
int credentials_place(struct attempt *at);
/* The same for one that has them already, with new contents. 0 or 1. */
int credentials_renew(struct attempt *at);
/* No step follows: its files go. With `users` its user's child sees to that. */
void credentials_drop(struct attempt *at);
/* Words for a mover that does its job by itself (drover-mover(8)): which file to show to which URLs. */
void credentials_words(const struct attempt *at, struct args *argv);
void credentials_env(const struct attempt *at, const char *sandbox, struct args *env);
/* Calls fn with each one's file name and contents. */
void credentials_each(const struct attempt *at, void (*fn)(void *arg, const char *file, struct str data),
                      void *arg);
/* What each of at->credential_count is shown to; one that is not here yet, to nothing. The caller frees it;
 * what it looks at is borrowed. */
struct file_credential *credentials_list(const struct attempt *at);
/* Puts it, if there is one, into the task, for its URL. *ret_version: another one when its owner has replaced
 * it, 0: there is none. 0. 1: it is not here yet; news->credential is called then. -EACCES with err: it has
 * expired, or is not to be had. */
int credentials_show(struct attempt *at, struct move_task *t, uint64_t *ret_version, struct err *err);
/* What more is to be said when a store has denied a transfer that showed this version: what to do. True:
 * there is a newer one, with which it may be tried again. */
bool credentials_denied(struct attempt *at, const char *url, uint64_t version, struct buf *words);
/* To a runner that hands jobs on: their names, with commas, and the contents of all that are here. A job has
 * neither files nor environment of them at this place then. */
void credentials_names(const struct attempt *at, struct buf *out);
void credentials_hand_on(struct attempt *at);
void credentials_release(struct attempt *at); /* it is over */
struct credential_given {                     /* by the server */
        uint64_t request;
        uint32_t part;
        const char *name, *type; /* type: proxy, token, s3, file */
        const char *error;       /* it is not there, or has expired; empty: it is */
        struct str data;
        int64_t expires_ms; /* 0: it does not say */
        char *const *urls;  /* canonical prefixes of what transfers for the job show it to */
        size_t url_count;
};
void credentials_given(struct agent *a, const struct credential_given *m); /* borrowed for the call */
void credentials_greeted(
        struct agent *a); /* a new session: all is asked for again, for it may have changed */
