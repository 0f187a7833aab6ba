/* Starts one child: its request is checked here before anything is made from it.
 *
 * The shepherd does not wait until the child executes its program (child.c): before that the child opens
 * files and enters control groups, and a file server that does not answer or a frozen group would delay
 * every other job and every lease. The child shares the table of pids: it writes its present step there, and
 * the error before execve, with the exit code 127. A child that has not executed its program after
 * start_max_ms is killed and reported as failed at that step (tree.c).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

/* Returns the next string of the request, or NULL if it is incomplete. */
static const char *next_text(const char **at, size_t *left)
{
        const char *p = *at, *end = *left ? memchr(p, 0, *left) : NULL;

        if (!end)
                return NULL;
        *left -= (size_t)(end - p) + 1;
        *at = end + 1;
        return p;
}

static bool take_words(char **to, uint32_t count, const char **at, size_t *left)
{
        for (uint32_t i = 0; i < count; i++)
                if (!(to[i] = (char *)next_text(at, left)))
                        return false;
        to[count] = NULL;
        return true;
}

static struct child *child_new(struct shepherd *s, const struct shepherd_start *r)
{
        struct child *c = must(calloc(1, sizeof(*c)));

        c->tell = (struct shepherd_child){
                .record = {sizeof(c->tell), SHEPHERD_CHILD}, .id = r->id, .slot = r->slot};
        c->tell.started_ms = (uint64_t)wall_ms();
        c->entry = TABLE_MAX;
        c->begun = SHEPHERD_BEGUN_MAX;
        unsigned b = (unsigned)((r->id.request * 31 + r->id.member) * 31 + r->id.fence) % BUCKETS;
        c->id_next = s->by_id[b];
        s->by_id[b] = c;
        s->child_count++;
        c->run_link = &s->running;
        if ((c->run_next = s->running))
                c->run_next->run_link = &c->run_next;
        s->running = c;
        s->running_count++;
        return c;
}

/* Returns the marker of this attempt, if it is in the child's environment: processes with another marker are
 * not the child's. */
static char *find_marker(const struct shepherd *s, const struct plan *p)
{
        char want[256];
        const struct shepherd_id *id = &p->r->id;

        if (p->r->flags & SHEPHERD_GUEST)
                snprintf(want, sizeof(want), SHEPHERD_GUEST_MARKER "%s/%llu.%u.%u.%x", s->instance,
                         (unsigned long long)id->request, id->member, id->fence, id->step);
        else
                snprintf(want, sizeof(want), SHEPHERD_MARKER "%s/%llu.%u.%u", s->instance,
                         (unsigned long long)id->request, id->member, id->fence);
        for (uint32_t i = 0; i < p->r->envc; i++)
                if (!strcmp(p->envp[i], want))
                        return must(strdup(want));
        return NULL;
}

static void refuse_child(struct shepherd *s, struct child *c, enum shepherd_where where, int error)
{
        c->failed = true;
        c->tell.where = where;
        c->tell.error = (uint32_t)error;
        child_done(s, c);
}

static bool is_late(const struct shepherd *s)
{
        return s->start_by && boot_ms() > s->start_by;
}

static bool agent_is_gone(const struct shepherd *s)
{
        struct pollfd agent = {.fd = s->agent};

        return poll(&agent, 1, 0) > 0 && (agent.revents & (POLLHUP | POLLERR));
}

/* Records the task as begun and returns whether the child may start. Returns false if its deadline is over:
 * its attempt may be started somewhere else. The record is written first, so that an agent that does not
 * find it after the deadline may rely on that, even if the shepherd was stopped meanwhile. */
static bool may_begin(struct shepherd *s, struct child *c)
{
        c->begun = begun_add(s, &c->tell.id);
        if (!is_late(s) && !agent_is_gone(s))
                return true;
        begun_remove(s, c->begun);
        c->begun = SHEPHERD_BEGUN_MAX;
        return false;
}

/* Strings that follow a request, in this order; the plan borrows the rest. */
struct texts {
        const char *owner, *user;
        const char *dirs; /* paths of control groups */
        size_t dirs_size;
        const char *words; /* arguments, then the environment */
        size_t words_size;
};

static bool read_texts(struct plan *p, const char *strings, size_t size, struct texts *t)
{
        const struct shepherd_start *r = p->r;
        const char *at = strings;

        if (r->cgroup_count > SHEPHERD_CGROUPS_MAX || r->rlimit_count > SHEPHERD_RLIMITS_MAX ||
            r->argc == 0 || r->argc > SHEPHERD_WORDS_MAX || r->envc > SHEPHERD_WORDS_MAX)
                return false;
        if (!(t->owner = next_text(&at, &size)) || !(t->user = next_text(&at, &size)) ||
            !(p->sandbox = next_text(&at, &size)) || !(p->cwd = next_text(&at, &size)) ||
            !(p->in = next_text(&at, &size)) || !(p->out = next_text(&at, &size)) ||
            !(p->err = next_text(&at, &size)) || !(p->path = next_text(&at, &size)))
                return false;
        t->dirs = at;
        for (uint32_t i = 0; i < r->cgroup_count; i++)
                if (!next_text(&at, &size))
                        return false;
        t->dirs_size = (size_t)(at - t->dirs);
        t->words = at;
        t->words_size = size;
        return true;
}

/* The child that the guest runs beside; NULL: none of its attempt runs. */
static struct child *host_of(const struct shepherd *s, const struct shepherd_id *id)
{
        for (struct child *c = s->running; c; c = c->run_next)
                if (!c->guest && c->state == CHILD_RUNNING && c->tell.pid && child_is_beside(c, id) &&
                    !(c->tell.id.step & SHEPHERD_NO_JOBS))
                        return c;
        return NULL;
}

/* Prepares everything that the child needs; `user` is storage for the plan's user. Returns 0, or an errno
 * with its subject. */
static int prepare_child(struct shepherd *s, struct plan *p, struct child *c, const struct texts *t,
                         char **words, struct user *user, enum shepherd_where *ret_where)
{
        const struct shepherd_start *r = p->r;
        const char *at = t->words;
        size_t left = t->words_size;
        struct slot *slot;
        int error;

        *ret_where = SHEPHERD_AT_REQUEST;
        if (!take_words(words, r->argc, &at, &left) || !take_words(words + r->argc + 1, r->envc, &at, &left))
                return EINVAL;
        p->argv = words;
        p->envp = words + r->argc + 1;
        *ret_where = SHEPHERD_AT_USER;
        if (s->users_path || *t->user) {
                if (!users_find(s, t->owner, t->user, user))
                        return EPERM;
                p->user = user;
        }
        *ret_where = SHEPHERD_AT_STDIN;
        if (r->flags & SHEPHERD_STDIN_FD ? s->passed < 0 : (r->flags & SHEPHERD_TERMINAL) != 0)
                return EINVAL;
        *ret_where = SHEPHERD_AT_SANDBOX;
        if ((r->flags & SHEPHERD_MAKE_SANDBOX) && p->user &&
            (error = sandbox_make(s, p->sandbox, p->user, r->flags & SHEPHERD_SHARE_SANDBOX)))
                return error;
        if (r->flags & SHEPHERD_REMOVE_SANDBOX)
                c->remove = sandbox_name_of(p->sandbox);
        if (r->flags & SHEPHERD_CREDENTIALS)
                c->secrets = must(strdup(p->sandbox));
        *ret_where = SHEPHERD_AT_CGROUP;
        if ((error = slot_find(s, r, t->dirs, t->dirs_size, &slot)))
                return error;
        if (r->flags & SHEPHERD_GUEST) {
                const struct child *host = host_of(s, &r->id);

                if (!host)
                        return ESRCH;
                c->guest = true;
                if (host->group)
                        slot = host->group;
        } else if (!slot && p->user) {
                slot = c->group = groups_take(s);
        }
        p->group_count = slot ? slot->count : 0;
        for (unsigned i = 0; i < p->group_count; i++)
                p->groups[i] = slot->procs[i];
        *ret_where = SHEPHERD_AT_FORK;
        if ((c->entry = table_take(s)) == TABLE_MAX)
                return EAGAIN;
        p->entry = &s->table->entries[c->entry];
        p->entry->start_boot_ms = boot_ms();
        *ret_where = SHEPHERD_AT_CONTAINMENT;
        p->contained = (struct containment_job){.uid = p->user ? p->user->uid : s->uid,
                                                .gid = p->user ? p->user->gid : s->gid,
                                                .sandbox = p->sandbox};
        const char *const paths[] = {p->sandbox, p->cwd, p->in, p->out, p->err, p->path, NULL};
        if ((error = containment_plan(s->containment, r->flags, paths, &p->contained)))
                return error;
        return 0;
}

void start_child(struct shepherd *s, const struct shepherd_start *r, const char *strings, size_t size)
{
        if (child_by_id(s, &r->id))
                return; /* sent twice: it is running or reported already */
        if (s->child_count >= CHILDREN_MAX) {
                complain("msg=\"the agent forgets none of its children; no more are started\" children=%zu",
                         s->child_count);
                return;
        }
        struct child *c = child_new(s, r);
        struct plan p = {.r = r, .parent = getpid(), .passed = s->passed};
        struct texts t;
        if (!read_texts(&p, strings, size, &t)) {
                refuse_child(s, c, SHEPHERD_AT_REQUEST, EINVAL);
                return;
        }
        if (is_late(s)) { /* before anything is made for the child */
                refuse_child(s, c, SHEPHERD_AT_DEADLINE, ETIMEDOUT);
                return;
        }
        c->container = r->flags & SHEPHERD_CONTAINER;
        char **words = must(malloc((r->argc + r->envc + 2) * sizeof(*words)));
        struct user user;
        enum shepherd_where where;
        int error = prepare_child(s, &p, c, &t, words, &user, &where);
        if (!error && !may_begin(s, c)) {
                where = SHEPHERD_AT_DEADLINE;
                error = ETIMEDOUT;
        }
        if (error) {
                free(words);
                refuse_child(s, c, where, error);
                return;
        }
        /* a guest also has its attempt's marker, which is the other child's */
        c->marker = find_marker(s, &p);
        pid_t pid = child_start(&p);
        error = errno;
        free(words);
        if (pid < 0) {
                refuse_child(s, c, SHEPHERD_AT_FORK, error);
                return;
        }
        p.entry->pid = pid;
        c->tell.pid = pid;
        c->start_by = boot_ms() + s->start_max_ms;
        c->pid_next = s->by_pid[(unsigned)pid % BUCKETS];
        s->by_pid[(unsigned)pid % BUCKETS] = c;
        if (r->walltime_ms)
                c->walltime_at = boot_ms() +
                                 (int64_t)(r->walltime_ms < INT64_MAX / 2 ? r->walltime_ms : INT64_MAX / 2);
        serve_begun(s, c);
}
