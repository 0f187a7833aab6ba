/* Handles the agent's messages, finds children by id, and reports changes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define BEGUN_TOLD_MS 5

static unsigned bucket_of(const struct shepherd_id *id)
{
        return (unsigned)((id->request * 31 + id->member) * 31 + id->fence) % BUCKETS;
}

struct child *child_by_id(struct shepherd *s, const struct shepherd_id *id)
{
        struct child *c = s->by_id[bucket_of(id)];

        while (c && memcmp(&c->tell.id, id, sizeof(*id)) != 0)
                c = c->id_next;
        return c;
}

bool child_is_beside(const struct child *c, const struct shepherd_id *id)
{
        return c->tell.id.request == id->request && c->tell.id.member == id->member &&
               c->tell.id.fence == id->fence;
}

struct child *child_by_pid(struct shepherd *s, pid_t pid)
{
        struct child *c = s->by_pid[(unsigned)pid % BUCKETS];

        while (c && c->tell.pid != pid)
                c = c->pid_next;
        return c;
}

static void add_dirty(struct shepherd *s, struct child *c)
{
        if (c->dirty || s->agent < 0 || !s->greeted)
                return;
        c->dirty = true;
        c->dirty_next = NULL;
        *s->dirty_last = c;
        s->dirty_last = &c->dirty_next;
}

void serve_dirty(struct shepherd *s, struct child *c)
{
        add_dirty(s, c);
        s->tell_at = 0;
}

void serve_begun(struct shepherd *s, struct child *c)
{
        if (!s->dirty_first)
                s->tell_at = boot_ms() + BEGUN_TOLD_MS;
        add_dirty(s, c);
}

void child_done(struct shepherd *s, struct child *c)
{
        if (c->run_link) {
                *c->run_link = c->run_next;
                if (c->run_next)
                        c->run_next->run_link = c->run_link;
                c->run_link = NULL;
                s->running_count--;
        }
        if (c->tell.pid) {
                struct child **at = &s->by_pid[(unsigned)c->tell.pid % BUCKETS];

                while (*at && *at != c)
                        at = &(*at)->pid_next;
                if (*at)
                        *at = c->pid_next;
        }
        table_give(s, c->entry);
        if (c->group)
                groups_give(s, c->group);
        c->group = NULL;
        if (c->remove)
                sandbox_remove(s, c->remove);
        if (c->secrets && c->tell.why == SHEPHERD_LEASE_ENDED)
                sandbox_drop_credentials(s, c->secrets);
        c->entry = TABLE_MAX;
        c->state = CHILD_DONE;
        c->tell.state = c->failed ? SHEPHERD_FAILED : SHEPHERD_EXITED;
        if (!c->tell.ended_ms)
                c->tell.ended_ms = (uint64_t)wall_ms();
        serve_dirty(s, c);
}

static void child_forget(struct shepherd *s, struct child *c)
{
        if (c->state != CHILD_DONE)
                return;
        struct child **at = &s->by_id[bucket_of(&c->tell.id)];
        while (*at != c)
                at = &(*at)->id_next;
        *at = c->id_next;
        if (c->dirty) {
                struct child **d = &s->dirty_first;
                size_t before = 0;

                for (; *d != c; before++)
                        d = &(*d)->dirty_next;
                if (before < s->list_left)
                        s->list_left--;
                *d = c->dirty_next;
                if (s->dirty_last == &c->dirty_next)
                        s->dirty_last = d;
        }
        begun_remove(s, c->begun);
        free(c->marker);
        free(c->remove);
        free(c->secrets);
        free(c);
        s->child_count--;
}

static void clear_dirty(struct shepherd *s)
{
        for (struct child *c = s->dirty_first; c; c = c->dirty_next)
                c->dirty = false;
        s->dirty_first = NULL;
        s->dirty_last = &s->dirty_first;
        s->listing = false;
        s->list_left = 0;
}

/* Stops sending to the agent, whose socket is closed; what it sent before its end is still read. */
static void stop_telling(struct shepherd *s)
{
        s->greeted = s->asked = s->pinged = false;
        clear_dirty(s);
}

static void drop_agent(struct shepherd *s)
{
        if (s->agent >= 0)
                close(s->agent);
        s->agent = -1;
        s->start_by = 0;
        s->greeted = s->asked = s->pinged = false;
        clear_dirty(s);
}

bool serve_waits(const struct shepherd *s)
{
        return s->asked || s->pinged || s->listing ||
               (s->dirty_first && (!s->tell_at || boot_ms() >= s->tell_at));
}

int64_t serve_time(const struct shepherd *s)
{
        return s->dirty_first && s->tell_at ? s->tell_at : INT64_MAX;
}

/* Sends one message. Returns false if the socket takes no more now, or no agent is connected. */
static bool send_some(struct shepherd *s, const void *p, size_t n)
{
        if (send(s->agent, p, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                return true;
        if (errno != EAGAIN && errno != EINTR)
                stop_telling(s);
        return false;
}

/* HELLO is answered: from now on all children are told, and then LISTED, before anything that happens later.
 */
static void begin_list(struct shepherd *s)
{
        const struct shepherd_hello w = {{sizeof(w), SHEPHERD_WELCOME},
                                         SHEPHERD_VERSION,
                                         (int32_t)getpid(),
                                         containment_parts(s->containment),
                                         s->no_view};

        if (!send_some(s, &w, sizeof(w)))
                return;
        s->asked = false;
        s->greeted = true;
        clear_dirty(s);
        for (unsigned b = 0; b < BUCKETS; b++)
                for (struct child *c = s->by_id[b]; c; c = c->id_next)
                        serve_dirty(s, c);
        s->listing = true;
        s->list_left = s->child_count;
}

static void end_list(struct shepherd *s)
{
        const struct shepherd_name end = {.record = {sizeof(end), SHEPHERD_LISTED}};

        if (send_some(s, &end, sizeof(end)))
                s->listing = false;
}

static void send_pong(struct shepherd *s)
{
        const struct shepherd_name pong = {.record = {sizeof(pong), SHEPHERD_PONG}};

        if (send_some(s, &pong, sizeof(pong)))
                s->pinged = false;
}

/* Sends one message about dirty children; returns false like send_some. */
static bool send_dirty(struct shepherd *s)
{
        size_t n = 0, count = 0;
        struct child *c = s->dirty_first;
        static char room[32768]; /* static, because fork would copy pages on the stack for each job */

        for (; c && n + sizeof(c->tell) <= sizeof(room) && (!s->listing || count < s->list_left);
             c = c->dirty_next, count++) {
                memcpy(room + n, &c->tell, sizeof(c->tell));
                n += sizeof(c->tell);
        }
        if (!send_some(s, room, n))
                return false;
        while (s->dirty_first != c) {
                struct child *d = s->dirty_first;

                s->dirty_first = d->dirty_next;
                d->dirty = false;
        }
        if (!s->dirty_first)
                s->dirty_last = &s->dirty_first;
        s->list_left -= s->listing ? count : 0;
        return true;
}

void serve_flush(struct shepherd *s)
{
        bool more = true;

        while (more && s->agent >= 0 && serve_waits(s)) {
                if (s->asked) {
                        begin_list(s);
                        more = !s->asked;
                } else if (s->pinged) {
                        send_pong(s);
                        more = !s->pinged;
                } else if (s->listing && s->list_left == 0) {
                        end_list(s);
                        more = !s->listing;
                } else {
                        more = send_dirty(s);
                }
        }
}

/* Returns a time sent by the agent, limited to a range without overflow. */
static int64_t bounded(uint64_t ms, int64_t most)
{
        return ms < (uint64_t)most ? (int64_t)ms : most;
}

static void record_handle(struct shepherd *s, const struct shepherd_record *r)
{
        const struct shepherd_name *name = (const void *)r;
        const struct shepherd_kill *k = (const void *)r;
        const struct shepherd_start *start = (const void *)r;
        const struct shepherd_signal *sig = (const void *)r;
        struct child *c = r->size >= sizeof(*name) ? child_by_id(s, &name->id) : NULL;

        switch (r->kind) {
        case SHEPHERD_HELLO: s->asked = true; break;
        case SHEPHERD_PING: s->pinged = true; break;
        case SHEPHERD_START:
                if (r->size >= sizeof(*start))
                        start_child(s, start, (const char *)(start + 1), r->size - sizeof(*start));
                s->start_by = 0;
                break;
        case SHEPHERD_START_BY:
                if (r->size >= sizeof(struct shepherd_start_by))
                        s->start_by = bounded(((const struct shepherd_start_by *)(const void *)r)->boot_ms,
                                              INT64_MAX / 2);
                break;
        case SHEPHERD_KILL:
                if (c && r->size >= sizeof(*k))
                        tree_kill(s, c, SHEPHERD_KILLED, bounded(k->grace_ms, 86400000));
                break;
        case SHEPHERD_SUSPEND:
        case SHEPHERD_RESUME:
                if (c)
                        tree_suspend(s, c, r->kind == SHEPHERD_SUSPEND);
                break;
        case SHEPHERD_FORGET:
                if (c)
                        child_forget(s, c);
                break;
        case SHEPHERD_LEASE:
                if (r->size >= sizeof(struct shepherd_lease))
                        s->lease_until =
                                bounded(((const struct shepherd_lease *)(const void *)r)->until_boot_ms,
                                        INT64_MAX / 2);
                break;
        case SHEPHERD_QUIT: s->quit = true; break;
        case SHEPHERD_SIGNAL:
                if (c && r->size >= sizeof(*sig))
                        tree_signal(c, sig->signal);
                break;
        default: break;
        }
}

bool serve_batch(struct shepherd *s, const char *p, size_t n)
{
        while (n >= sizeof(struct shepherd_record)) {
                const struct shepherd_record *r = (const void *)p;

                if (r->size < sizeof(*r) || r->size > n || r->size % 8)
                        return false;
                record_handle(s, r);
                p += r->size;
                n -= r->size;
        }
        return n == 0;
}

static bool walk_memory(struct shepherd *s, int fd)
{
        struct stat st;
        const int seals = F_SEAL_SHRINK | F_SEAL_WRITE;
        int has;

        if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > SHEPHERD_BATCH_MAX ||
            (has = fcntl(fd, F_GET_SEALS)) < 0 || (has & seals) != seals) /* sealed: it cannot change */
                return false;
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
                return false;
        bool ok = serve_batch(s, p, (size_t)st.st_size);
        munmap(p, (size_t)st.st_size);
        return ok;
}

/* The descriptor that came with a message, or -1. There is room for two where we want one, and the kernel
 * fills it. False: more than one came, and they are closed. */
static bool take_passed(struct msghdr *m, int *ret)
{
        unsigned count = 0;

        for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
                if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t at = 0; at + sizeof(int) <= h->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(h) + at, sizeof(fd));
                        if (count++ == 0)
                                *ret = fd;
                        else
                                close(fd);
                }
        }
        return count <= 1;
}

/* Handles one message; false: there is none, or no agent any more. */
static bool serve_one(struct shepherd *s)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec io = {s->message, SHEPHERD_BATCH_MAX};
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(s->agent, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        /* an agent that ends with unread messages resets the connection; what it sent before still counts */
        if (n < 0 && errno == ECONNRESET)
                n = recvmsg(s->agent, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                drop_agent(s);
                return false;
        }
        int fd = -1;
        bool ok = take_passed(&m, &fd) && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
        const struct shepherd_record *first = (const void *)s->message;
        if (ok && fd >= 0 && n >= (ssize_t)sizeof(*first) && first->kind == SHEPHERD_MEMORY) {
                ok = walk_memory(s, fd);
        } else if (ok) {
                s->passed = fd;
                ok = serve_batch(s, s->message, (size_t)n);
                s->passed = -1;
        }
        if (fd >= 0)
                close(fd);
        if (!ok) {
                complain("msg=\"a malformed message; dropping the agent\"");
                drop_agent(s);
        }
        return s->agent >= 0;
}

void serve_agent(struct shepherd *s)
{
        for (int i = 0; i < 16 && serve_one(s); i++)
                continue;
}

void serve_renewals(struct shepherd *s)
{
        for (int i = 0; i < 4096 && s->agent >= 0 && s->lease_until && boot_ms() >= s->lease_until; i++)
                if (!serve_one(s))
                        return;
}

void serve_accept(struct shepherd *s)
{
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        struct ucred peer;
        socklen_t n = sizeof(peer);
        /* our own user, or that of an agent which was root and has its own user now */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 ||
            (peer.uid != s->uid && peer.uid != s->agent_uid)) {
                complain("msg=\"refused a connection\" uid=%d", (int)peer.uid);
                close(fd);
                return;
        }
        int size = 1 << 20;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        /* handles what the last agent has sent, but not endlessly */
        for (int i = 0; i < 64 && s->agent >= 0 && serve_one(s); i++)
                continue;
        drop_agent(s);
        s->agent = fd;
}
