/* What an agent of another user says to a shepherd that is root: batches of requests, as far as the fork of a
 * child. What acts on processes is replaced (child.c, tree.c, containment.c); requests, users, sandboxes and
 * the table are the shepherd's own, on a folder that is made for it. As root, so that users are looked up and
 * sandboxes made; as anybody else no user is found, and the rest is tried.
 *
 * An input that begins with 'f' or 'g' is a row of records "kind, two bytes of length, contents", so that
 * changes to one leave the others whole; any other first byte is followed by a batch as it would come from
 * the socket. An odd first byte has a descriptor come with it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define AGENT_UID 4711
#define MIN_UID   1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct shepherd shepherd;
static char folder[64], users_path[96];
static int other = -1; /* the agent's end */
static pid_t next_pid;

#define check(x)                                                                                             \
        do {                                                                                                 \
                if (!(x)) {                                                                                  \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                      \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

/* ---- in the place of child.c, containment.c, tree.c */

static size_t text_size(const char *z)
{
        check(z);
        return strlen(z); /* a read past the request is the sanitizer's to see */
}

pid_t child_start(const struct plan *p)
{
        size_t n = text_size(p->sandbox) + text_size(p->cwd) + text_size(p->in) + text_size(p->out) +
                   text_size(p->err) + text_size(p->path);

        for (uint32_t i = 0; i < p->r->argc; i++)
                n += text_size(p->argv[i]);
        for (uint32_t i = 0; i < p->r->envc; i++)
                n += text_size(p->envp[i]);
        check(!p->argv[p->r->argc] && !p->envp[p->r->envc]);
        check(p->r->rlimit_count <= SHEPHERD_RLIMITS_MAX && p->group_count == 0 && p->entry);
        check(p->user && p->user->uid >= MIN_UID && p->user->uid != AGENT_UID && p->user->gid != 0);
        for (int i = 0; i < p->user->group_count; i++)
                check(p->user->groups[i] != 0);
        check(p->contained.uid == p->user->uid && p->contained.gid == p->user->gid);
        if (n % 16 == 1) {
                errno = EAGAIN;
                return -1;
        }
        return ++next_pid;
}

struct containment *containment_new(const char *const *hidden, size_t count, const char *jobs, int *ret_why)
{
        (void)hidden, (void)count, (void)jobs;
        *ret_why = ENOSYS;
        return NULL;
}

void containment_free(struct containment *c)
{
        (void)c;
}

uint32_t containment_parts(const struct containment *c)
{
        (void)c;
        return SHEPHERD_OWN_TMP | SHEPHERD_NO_PRIVILEGES;
}

int containment_plan(struct containment *c, uint32_t asked, const char *const *paths,
                     struct containment_job *job)
{
        (void)c;
        for (; *paths; paths++)
                text_size(*paths);
        text_size(job->sandbox);
        job->flags = asked & containment_parts(c);
        return (asked & SHEPHERD_CONTAIN_ALL) && job->flags != (asked & SHEPHERD_CONTAINMENT) ? ENOSYS : 0;
}

/* A child that is killed ends at once, but for those with a grace: they are ENDING until the input is over.
 */
void tree_kill(struct shepherd *s, struct child *c, enum shepherd_why why, int64_t grace_ms)
{
        check(grace_ms >= 0 && grace_ms <= 86400000);
        if (c->state != CHILD_RUNNING)
                return;
        check(c->tell.pid > 1);
        c->tell.why = why;
        c->state = CHILD_ENDING;
        if (grace_ms == 0)
                child_done(s, c);
}

void tree_suspend(struct shepherd *s, struct child *c, bool on)
{
        (void)s;
        c->suspended = on;
}

void tree_signal(const struct child *c, int signal)
{
        (void)signal; /* tree.c bounds it */
        check(c->state == CHILD_DONE || c->tell.pid > 1);
}

void tree_kill_strays(const char *marker, size_t length)
{
        (void)marker, (void)length;
}

/* ---- a shepherd */

static void clean(void)
{
        unlinkat(AT_FDCWD, users_path, 0);
        unlinkat(shepherd.dir, "shepherd.table", 0);
        unlinkat(shepherd.dir, SHEPHERD_BEGUN, 0);
        unlinkat(shepherd.dir, "jobs", AT_REMOVEDIR);
        rmdir(folder);
}

static void begin(void)
{
        static const char map[] = "# owner user\nann@here nobody\n*@site *\nroot@here root\n*@all nobody\n";
        struct shepherd *s = &shepherd;
        int pair[2];

        snprintf(folder, sizeof(folder), "/tmp/fuzz-shepherd-%d", (int)getpid());
        check(mkdir(folder, 0755) == 0);
        s->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check(s->dir >= 0 && mkdirat(s->dir, "jobs", 0751) == 0);
        snprintf(users_path, sizeof(users_path), "%s/users", folder);
        int fd = open(users_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        check(fd >= 0 && write(fd, map, sizeof(map) - 1) == (ssize_t)sizeof(map) - 1);
        close(fd);
        atexit(clean);
        s->listener = s->signals = s->passed = s->jobs = s->groups = -1;
        s->uid = getuid();
        s->agent_uid = AGENT_UID;
        s->users_path = users_path;
        s->instance = "0123";
        s->min_uid = MIN_UID;
        s->start_max_ms = START_MAX_MS;
        s->dirty_last = &s->dirty_first;
        check(sandbox_open(s) == 0);
        check(table_open(s) == 0);
        check(begun_open(s) == 0);
        check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        s->agent = pair[0];
        other = pair[1];
}

/* What is told are whole records of the kinds that the agent knows. */
static void hear(void)
{
        _Alignas(8) char room[SHEPHERD_DIRECT_MAX];
        for (ssize_t n; (n = recv(other, room, sizeof(room), MSG_DONTWAIT)) > 0;)
                for (char *p = room; n > 0;) {
                        const struct shepherd_record *r = (const void *)p;

                        check(n >= (ssize_t)sizeof(*r) && r->size <= n && r->size >= sizeof(*r));
                        check(r->kind == SHEPHERD_WELCOME || r->kind == SHEPHERD_CHILD ||
                              r->kind == SHEPHERD_LISTED || r->kind == SHEPHERD_PONG);
                        p += r->size;
                        n -= r->size;
                }
}

static void flush(void)
{
        shepherd.tell_at = 0;
        for (int i = 0; i < 64 && serve_waits(&shepherd); i++) {
                serve_flush(&shepherd);
                hear();
        }
        check(!serve_waits(&shepherd));
}

/* Nothing but sandboxes was made: folders of users that may be, closed to others. */
static void check_folder(void)
{
        int fd = openat(shepherd.dir, "jobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = fdopendir(fd);
        const struct dirent *e;
        struct stat st;

        check(dir && fstat(fd, &st) == 0 && st.st_uid == getuid() && (st.st_mode & 07777) == 0751);
        while ((e = readdir(dir))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                check(fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode));
                check(st.st_uid >= MIN_UID && st.st_uid != AGENT_UID && (st.st_mode & 07007) == 0);
                check(unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0);
        }
        closedir(dir);
        check((dir = opendir(folder)));
        while ((e = readdir(dir)))
                check(e->d_name[0] == '.' || !strcmp(e->d_name, "jobs") || !strcmp(e->d_name, "users") ||
                      !strcmp(e->d_name, "shepherd.table") || !strcmp(e->d_name, SHEPHERD_BEGUN));
        closedir(dir);
}

/* Ends all that was begun, and has it forgotten. */
static void end(void)
{
        struct shepherd *s = &shepherd;

        while (s->running)
                child_done(s, s->running);
        for (unsigned b = 0; b < BUCKETS && s->child_count; b++)
                while (s->by_id[b]) {
                        struct shepherd_name n = {{sizeof(n), SHEPHERD_FORGET}, s->by_id[b]->tell.id};

                        check(serve_batch(s, (const char *)&n, sizeof(n)));
                }
        check(s->child_count == 0 && s->running_count == 0);
        for (unsigned i = 0; i < BUCKETS; i++)
                check(!s->by_pid[i]);
        flush();
        check(!s->dirty_first && s->dirty_last == &s->dirty_first);
        s->greeted = s->quit = false;
        s->lease_until = s->start_by = 0;
        for (unsigned i = 0; i < s->begun->used; i++)
                check(!s->begun->ids[i].request && !s->begun->ids[i].step);
}

/* ---- an input */

static size_t put_record(char *to, uint8_t kind, const uint8_t *contents, size_t n)
{
        struct shepherd_record r = {(uint32_t)(sizeof(r) + (n + 7) / 8 * 8), kind};

        memcpy(to, &r, sizeof(r));
        memcpy(to + sizeof(r), contents, n);
        memset(to + sizeof(r) + n, 0, r.size - sizeof(r) - n);
        return r.size;
}

static size_t put_records(char *to, const uint8_t *data, size_t size)
{
        size_t all = 0;

        while (size >= 3) {
                size_t n = data[1] + (size_t)data[2] * 256;

                n = n < size - 3 ? n : size - 3;
                all += put_record(to + all, data[0], data + 3, n);
                data += 3 + n;
                size -= 3 + n;
        }
        return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct shepherd *s = &shepherd;

        if (!*folder)
                begin();
        if (size == 0)
                return 0;
        bool framed = (data[0] & ~1) == 'f';
        char *room = malloc(framed ? size * 6 + 16 : size); /* a record of three bytes has sixteen */
        size_t n = framed ? put_records(room, data + 1, size - 1) : size - 1;
        if (!framed)
                memcpy(room, data + 1, n);
        room = realloc(room, n ? n : 1); /* a read past its end is seen */
        next_pid = 1000;
        s->passed = data[0] & 1 ? other : -1;
        serve_batch(s, room, n);
        s->passed = -1;
        free(room);
        check(s->lease_until >= 0);
        flush();
        end();
        check_folder();
        return 0;
}
