/* containment: what is put around the processes of a job.
 *
 * Five parts, each with a flag of shepherd_protocol.h:
 *
 *   SHEPHERD_HIDE          the folders of Drover's own state are empty: keys, sockets, the server's store.
 *                          The sandboxes are still where they were. A mount namespace, made once
 *                          and entered by each job. Without root's rights a user namespace owns it, in which
 *                          processes outside cannot be traced, and no set-user-ID program gets rights. As
 *                          root, a job loses the capabilities that could undo it.
 *   SHEPHERD_OWN_TMP       /tmp and /var/tmp are a folder in the sandbox (SANDBOX_TMP)
 *   SHEPHERD_NO_PRIVILEGES no program that is executed gets new rights (PR_SET_NO_NEW_PRIVS)
 *   SHEPHERD_FILTER        system calls that no job needs fail (seccomp)
 *   SHEPHERD_NO_NETWORK    a network of its own, which has the loopback device only
 *
 * A part that the machine does not have is left out, unless the request has SHEPHERD_CONTAIN_ALL.
 * One thread. containment_enter and containment_seal run in the child.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/process/shepherd_protocol.h"

#define CONTAINMENT_HIDDEN_MAX 8

struct containment;

/* hidden: absolute paths of folders, borrowed until containment_free; jobs: the folder of sandboxes, which
 * stays visible beneath them. What the machine refuses is told by containment_parts; ret_why has an errno of
 * the view (0: there is one). */
struct containment *containment_new(const char *const *hidden, size_t count, const char *jobs, int *ret_why);
void containment_free(struct containment *c); /* NULL is fine */
/* Flags of the parts that can be had. */
uint32_t containment_parts(const struct containment *c);

struct containment_job {
        uint32_t flags;
        bool tmp, var_tmp; /* with SHEPHERD_OWN_TMP: which of the two; see containment_plan */
        uid_t uid;         /* the user that it will be */
        gid_t gid;
        const char *sandbox; /* absolute; "": none */
        /* set by containment_plan, which may close the descriptors the next time that it is called */
        bool root;
        int view, user_space;
};
/* In the shepherd, before each start: which parts the child gets, of those that the request asks for. The
 * view is made anew when mounts have changed. A /tmp that one of `paths` is beneath (NULL behind the last)
 * stays as it is. 0; or the errno of the part that is missing, with SHEPHERD_CONTAIN_ALL. */
int containment_plan(struct containment *c, uint32_t asked, const char *const *paths,
                     struct containment_job *job);
/* In the child, before it changes its user: 0 or an errno. The death signal is cleared (prctl(2)), and root
 * and current folder are those of the view. */
int containment_enter(const struct containment_job *job);
/* In the child, after it: the last thing before its program. 0 or an errno. */
int containment_seal(const struct containment_job *job);
