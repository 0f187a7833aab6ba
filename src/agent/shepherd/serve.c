/* The agent's messages, the children by name, and telling what has changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shepherd/containment.h"
#include "agent/shepherd/shepherd.h"

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

struct child *child_by_pid(struct shepherd *s, pid_t pid)
{
        struct child *c = s->by_pid[(unsigned)pid % BUCKETS];
        while (c && c->tell.pid != pid)
                c = c->pid_next;
        return c;
}

void serve_dirty(struct shepherd *s, struct child *c)
{
        if (c->dirty || s->agent < 0 || !s->greeted)
                return;
        c->dirty = true;
        c->dirty_next = NULL;
        *s->dirty_last = c;
        s->dirty_last = &c->dirty_next;
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
                while (*d != c)
                        d = &(*d)->dirty_next;
                *d = c->dirty_next;
                if (s->dirty_last == &c->dirty_next)
                        s->dirty_last = d;
        }
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
}

/* It cannot be told any more; what it sent before its end is still read. */
static void stop_telling(struct shepherd *s)
{
        s->greeted = false;
        clear_dirty(s);
}

static void drop_agent(struct shepherd *s)
{
        if (s->agent >= 0)
                close(s->agent);
        s->agent = -1;
        s->greeted = false;
        clear_dirty(s);
}

void serve_flush(struct shepherd *s)
{
        while (s->agent >= 0 && s->dirty_first) {
                size_t n = 0;
                struct child *c = s->dirty_first;
                char room[32768];
                for (; c && n + sizeof(c->tell) <= sizeof(room); c = c->dirty_next) {
                        memcpy(room + n, &c->tell, sizeof(c->tell));
                        n += sizeof(c->tell);
                }
                ssize_t done = send(s->agent, room, n, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (done < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (done < 0) {
                        stop_telling(s);
                        return;
                }
                while (s->dirty_first != c) {
                        struct child *d = s->dirty_first;
                        s->dirty_first = d->dirty_next;
                        d->dirty = false;
                }
                if (!s->dirty_first)
                        s->dirty_last = &s->dirty_first;
        }
}

/* A small answer that must not be lost: the agent reads, so waiting for room is short. */
static void say(struct shepherd *s, const void *p, size_t n)
{
        int flags = fcntl(s->agent, F_GETFL);
        fcntl(s->agent, F_SETFL, flags & ~O_NONBLOCK);
        struct timeval limit = {.tv_sec = 5};
        setsockopt(s->agent, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        ssize_t done = send(s->agent, p, n, MSG_NOSIGNAL);
        fcntl(s->agent, F_SETFL, flags);
        if (done < 0)
                stop_telling(s);
}

static void on_hello(struct shepherd *s)
{
        s->greeted = true;
        struct shepherd_hello w = {{sizeof(w), SHEPHERD_WELCOME},
                                   SHEPHERD_VERSION,
                                   (int32_t)getpid(),
                                   containment_parts(s->containment),
                                   s->no_view};
        say(s, &w, sizeof(w));
        for (unsigned b = 0; b < BUCKETS; b++)
                for (struct child *c = s->by_id[b]; c && s->greeted; c = c->id_next)
                        say(s, &c->tell, sizeof(c->tell));
        struct shepherd_name end = {.record = {sizeof(end), SHEPHERD_LISTED}};
        if (s->greeted)
                say(s, &end, sizeof(end));
}

static void handle(struct shepherd *s, const struct shepherd_record *r)
{
        const struct shepherd_name *name = (const void *)r;
        const struct shepherd_kill *k = (const void *)r;
        const struct shepherd_start *start = (const void *)r;
        const struct shepherd_signal *sig = (const void *)r;
        struct child *c = r->size >= sizeof(*name) ? child_by_id(s, &name->id) : NULL;
        switch (r->kind) {
        case SHEPHERD_HELLO: on_hello(s); break;
        case SHEPHERD_START:
                if (r->size >= sizeof(*start))
                        start_child(s, start, (const char *)(start + 1), r->size - sizeof(*start));
                break;
        case SHEPHERD_KILL:
                if (c && r->size >= sizeof(*k))
                        tree_kill(s, c, SHEPHERD_KILLED,
                                  (int64_t)(k->grace_ms < 86400000 ? k->grace_ms : 86400000));
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
                                (int64_t)((const struct shepherd_lease *)(const void *)r)->until_boot_ms;
                break;
        case SHEPHERD_QUIT: s->quit = true; break;
        case SHEPHERD_SIGNAL:
                if (c && r->size >= sizeof(*sig))
                        tree_signal(c, sig->signal);
                break;
        default: break;
        }
}

/* Walks a batch. False: it is malformed. */
static bool walk(struct shepherd *s, const char *p, size_t n)
{
        while (n >= sizeof(struct shepherd_record)) {
                const struct shepherd_record *r = (const void *)p;
                if (r->size < sizeof(*r) || r->size > n || r->size % 8)
                        return false;
                handle(s, r);
                p += r->size;
                n -= r->size;
        }
        return n == 0;
}

static bool walk_memory(struct shepherd *s, int fd)
{
        struct stat st;
        const int seals = F_SEAL_SHRINK | F_SEAL_WRITE;
        if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > SHEPHERD_BATCH_MAX ||
            (fcntl(fd, F_GET_SEALS) & seals) != seals)
                return false;
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
                return false;
        bool ok = walk(s, p, (size_t)st.st_size);
        munmap(p, (size_t)st.st_size);
        return ok;
}

/* One message; false when there is none, or no agent any more. */
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
        /* an agent that ends with messages of ours unread resets the connection; what it sent before still
         * counts */
        if (n < 0 && errno == ECONNRESET)
                n = recvmsg(s->agent, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                drop_agent(s);
                return false;
        }
        const struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        bool ok;
        if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
                int fd;
                memcpy(&fd, CMSG_DATA(h), sizeof(fd));
                const struct shepherd_record *first = (const void *)s->message;
                if (n >= (ssize_t)sizeof(*first) && first->kind == SHEPHERD_MEMORY) {
                        ok = walk_memory(s, fd);
                } else {
                        s->passed = fd;
                        ok = walk(s, s->message, (size_t)n);
                        s->passed = -1;
                }
                close(fd);
        } else {
                ok = walk(s, s->message, (size_t)n);
        }
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

void serve_accept(struct shepherd *s)
{
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return;
        struct ucred peer;
        socklen_t n = sizeof(peer);
        /* ours, or that of an agent which was root and has its own user now */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 ||
            (peer.uid != s->uid && peer.uid != s->agent_uid)) {
                complain("msg=\"refused a connection\" uid=%d", (int)peer.uid);
                close(fd);
                return;
        }
        int size = 1 << 20;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        while (s->agent >= 0 && serve_one(s))
                continue;
        drop_agent(s);
        s->agent = fd;
}
