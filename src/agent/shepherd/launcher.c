/* Launchers make children that share the shepherd's memory until they execute their programs (CLONE_VM |
 * CLONE_VFORK). Neither page tables nor pages written to afterwards are copied; a fork costs a short job a
 * tenth of its processor time.
 *
 * The kernel suspends the maker of such a child until the child executes its program, and before that the
 * child opens files and may be frozen. A launcher is therefore a thread of its own: it is suspended with its
 * child, and the shepherd's loop continues as soon as the child has a pid. Each launcher has a copy of the
 * plan, because the request and what was made from it are gone when the child reads them. The child also
 * writes to the thread's errno.
 *
 * A child that enters a user namespace gets the dumpable state of fs.suid_dumpable, and so does the
 * shepherd, for a moment, through the shared memory. If that is 1 (proc(5): for debugging) such a child is
 * forked.
 *
 * CLONE_VFORK also keeps the kernel from killing the child, and with it all processes that share its memory,
 * when a job's group is out of memory.
 *
 * If all launchers are suspended, or a request is large, the caller forks. Launchers live as long as the
 * shepherd: a child's death signal is sent when the thread that has made it ends (prctl(2)).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define LAUNCHERS_MAX 8
#define RECORD_MAX    16384 /* bytes of a request */
#define WORDS_MAX     1024  /* arguments, environment, and the NULL behind either */
#define CHILD_STACK   65536
#define THREAD_STACK  (CHILD_STACK + 65536)

enum { NOT_BORN, BORN, NO_CHILD };

struct launcher {
        _Atomic uint32_t busy; /* set by the loop, cleared by the launcher when the child is in its program */
        _Atomic uint32_t answer; /* NOT_BORN until there is a child, or `error` is set */
        int error;
        struct plan plan;
        void (*child)(const struct plan *p);
        char *words[WORDS_MAX];
        _Alignas(8) char record[RECORD_MAX];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
        while (atomic_load_explicit(word, memory_order_acquire) == value)
                syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

static void futex_set(_Atomic uint32_t *word, uint32_t value)
{
        atomic_store_explicit(word, value, memory_order_release);
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

static int begin_launcher(void *arg)
{
        struct launcher *l = arg;

        futex_set(&l->answer, BORN);
        l->child(&l->plan);
        _exit(127);
}

static void *run_launcher(void *arg)
{
        struct launcher *l = arg;

        _Alignas(16) char stack[CHILD_STACK];
        for (;;) {
                futex_wait(&l->busy, 0);
                /* the child's number is in the table before the child runs */
                if (clone(begin_launcher, stack + sizeof(stack),
                          CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, l,
                          &l->plan.entry->pid) < 0) {
                        l->error = errno;
                        futex_set(&l->answer, NO_CHILD);
                }
                atomic_store_explicit(&l->busy, 0, memory_order_release);
        }
        return NULL;
}

static struct launcher *launcher_new(void)
{
        struct launcher *l = must(calloc(1, sizeof(*l)));
        pthread_attr_t attributes;
        pthread_t thread;

        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, THREAD_STACK);
        if (pthread_create(&thread, &attributes, run_launcher, l) != 0) {
                free(l);
                l = NULL;
        }
        pthread_attr_destroy(&attributes);
        return l;
}

/* Returns an idle launcher, or a new one; NULL: none can be made. */
static struct launcher *launcher_find(void)
{
        static struct launcher *launchers[LAUNCHERS_MAX];
        static unsigned count;

        for (unsigned i = 0; i < count; i++)
                if (!atomic_load_explicit(&launchers[i]->busy, memory_order_acquire))
                        return launchers[i];
        if (count == LAUNCHERS_MAX || !(launchers[count] = launcher_new()))
                return NULL;
        return launchers[count++];
}

/* The plan, with all that it points to in the request. */
static void take_plan(struct launcher *l, const struct plan *p)
{
        const struct shepherd_start *r = p->r;
        const char *record = (const char *)r;
        char **words = l->words;

        memcpy(l->record, record, r->record.size);
        l->plan = *p;
        l->plan.r = (const void *)l->record;
        const char **const texts[] = {&l->plan.sandbox, &l->plan.cwd, &l->plan.in,
                                      &l->plan.out,     &l->plan.err, &l->plan.path};
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
                *texts[i] = l->record + (*texts[i] - record);
        l->plan.contained.sandbox = l->plan.sandbox;
        l->plan.argv = words;
        for (char *const *w = p->argv; *w; w++)
                *words++ = l->record + (*w - record);
        *words++ = NULL;
        l->plan.envp = words;
        for (char *const *w = p->envp; *w; w++)
                *words++ = l->record + (*w - record);
        *words = NULL;
}

/* Returns whether a change of its rights opens a process's memory to other processes of its user. */
static bool rights_open_memory(void)
{
        static int known = -1;
        char value = '1';
        int fd = known < 0 ? open("/proc/sys/fs/suid_dumpable", O_RDONLY | O_CLOEXEC) : -1;

        if (fd >= 0) {
                (void)!read(fd, &value, 1);
                close(fd);
        }
        if (known < 0)
                known = value == '1';
        return known;
}

pid_t launcher_start(const struct plan *p, void (*child)(const struct plan *p))
{
        if (p->r->record.size > RECORD_MAX || (uint64_t)p->r->argc + p->r->envc + 2 > WORDS_MAX ||
            ((p->contained.flags & SHEPHERD_HIDE) && p->contained.user_space >= 0 && rights_open_memory()))
                return 0;
        struct launcher *l = launcher_find();
        if (!l)
                return 0;
        take_plan(l, p);
        l->child = child;
        atomic_store_explicit(&l->answer, NOT_BORN, memory_order_relaxed);
        futex_set(&l->busy, 1);
        futex_wait(&l->answer, NOT_BORN);
        if (atomic_load_explicit(&l->answer, memory_order_relaxed) == BORN)
                return p->entry->pid;
        errno = l->error;
        return -1;
}
