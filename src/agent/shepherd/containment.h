/* containment: isolates the processes of a job.
 *
 * Five parts, each with a flag of shepherd_protocol.h:
 *
 *   SHEPHERD_HIDE          folders with Drover's own state look empty: keys, sockets, the server's store.
 *                          The sandboxes are still visible. A mount namespace, made once and entered by each
 *                          job. Without root's rights a user namespace owns it, in which processes outside
 *                          cannot be traced, and no set-user-ID program gets rights. As root, a job loses
 *                          the capabilities that could undo it.
 *   SHEPHERD_OWN_TMP       /tmp and /var/tmp are a folder in the sandbox (SANDBOX_TMP)
 *   SHEPHERD_NO_PRIVILEGES no program that is executed gets new rights (PR_SET_NO_NEW_PRIVS)
 *   SHEPHERD_FILTER        system calls that no job needs fail (seccomp)
 *   SHEPHERD_NO_NETWORK    a network namespace that has the loopback device only
 *
 * A part that the machine does not support is left out, unless the request has SHEPHERD_CONTAIN_ALL. One
 * thread. containment_enter and containment_seal run in the child.
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
 * stays visible beneath them. Parts that the machine refuses are missing in containment_parts; *ret_why is
 * the errno with which the mount view failed (0: there is one). */
struct containment *containment_new(const char *const *hidden, size_t count, const char *jobs, int *ret_why);
void containment_free(struct containment *c); /* NULL is allowed */
/* Returns the flags of the available parts. */
uint32_t containment_parts(const struct containment *c);

struct containment_job {
        uint32_t flags;
        bool tmp, var_tmp; /* with SHEPHERD_OWN_TMP: which of the two folders; see containment_plan */
        uid_t uid;         /* user of the program */
        gid_t gid;
        const char *sandbox; /* absolute; "": none */
        /* set by containment_plan; its next call may close the descriptors */
        bool root;
        int view, user_space;
};
/* Called in the shepherd before each start: decides which of the requested parts the child gets. The view is
 * made anew when mounts have changed. A /tmp above one of `paths` (NULL behind the last) is not replaced.
 * Returns 0; with SHEPHERD_CONTAIN_ALL the errno of a missing part. */
int containment_plan(struct containment *c, uint32_t asked, const char *const *paths,
                     struct containment_job *job);
/* Called in the child before it changes its user. Returns 0 or an errno. Clears the death signal (prctl(2));
 * root and current folder are those of the view afterwards. */
int containment_enter(const struct containment_job *job);
/* Called in the child after that, right before it executes the program. Returns 0 or an errno. */
int containment_seal(const struct containment_job *job);
