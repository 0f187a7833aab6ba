#include "ev/resolve.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/str.h"
#include "ev/mailbox.h"
#include "ev/private.h"

/* A question for the thread; the thread frees it, or the loop when the answer has come. */
struct question {
        struct mail mail;
        struct mailbox *box;
        pthread_mutex_t lock;
        bool cancelled; /* by the loop, under the lock: the thread posts nothing and frees */
        bool posted;
        char *host, *port;
        int error; /* getaddrinfo's */
        int saved_errno;
        struct addrinfo *list;
};

struct resolve {
        struct loop *loop;
        struct mailbox *box;
        struct question *question;
        void (*fn)(void *arg, int error, struct addrinfo *list, const struct err *why);
        void *arg;
};

static void question_free(struct question *q)
{
        if (q->list)
                freeaddrinfo(q->list);
        pthread_mutex_destroy(&q->lock);
        free(q->host);
        free(q->port);
        free(q);
}

static void question_ask(struct question *q, int flags)
{
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};

        q->error = getaddrinfo(q->host, q->port, &hints, &q->list);
        q->saved_errno = errno;
}

static void question_answer(struct question *q)
{
        bool cancelled;

        pthread_mutex_lock(&q->lock);
        cancelled = q->cancelled;
        q->posted = true;
        if (!cancelled)
                mailbox_post(q->box, &q->mail); /* under the lock: the mailbox is still there */
        pthread_mutex_unlock(&q->lock);
        if (cancelled)
                question_free(q);
}

static void *question_thread(void *arg)
{
        question_ask(arg, AI_NUMERICSERV | AI_ADDRCONFIG);
        question_answer(arg);
        return NULL;
}

static void resolve_tell(struct resolve *r)
{
        struct question *q = r->question;
        struct addrinfo *list = q->list;
        struct err why = {""};
        int error = 0;

        q->list = NULL;
        if (q->error == EAI_SYSTEM)
                error = err_set(&why, -q->saved_errno, "cannot find host %s: %s", q->host,
                                strerror(q->saved_errno));
        else if (q->error)
                error = err_set(&why, -EHOSTUNREACH, "cannot find host %s: %s", q->host,
                                gai_strerror(q->error));
        mailbox_free(r->box, NULL);
        question_free(q);
        r->fn(r->arg, error, list, &why);
        free(r);
}

static void resolve_answered(void *arg, struct mail *m)
{
        struct question *q = container_of(m, struct question, mail);

        /* the poster may still hold the lock */
        pthread_mutex_lock(&q->lock);
        pthread_mutex_unlock(&q->lock);
        resolve_tell(arg);
}

/* There was no descriptor left for a mailbox. */
static void resolve_failed(void *arg)
{
        resolve_tell(arg);
}

struct resolve *resolve_start(struct loop *l, const char *host, const char *port,
                              void (*fn)(void *arg, int error, struct addrinfo *list, const struct err *why),
                              void *arg)
{
        struct resolve *r = mem_new(struct resolve);
        struct question *q = mem_new(struct question);
        pthread_t thread;
        sigset_t all, before;
        int error;

        r->fn = fn;
        r->arg = arg;
        r->question = q;
        r->loop = l;
        r->box = mailbox_try_new(l, resolve_answered, NULL, r);
        pthread_mutex_init(&q->lock, NULL);
        q->box = r->box;
        q->host = mem_dupz(host);
        q->port = mem_dupz(port);
        if (!r->box) {
                q->error = EAI_SYSTEM;
                q->saved_errno = errno;
                q->posted = true;
                loop_defer(l, resolve_failed, r);
                return r;
        }
        question_ask(q, AI_NUMERICHOST | AI_NUMERICSERV);
        if (q->error != EAI_NONAME) {
                question_answer(q);
                return r;
        }
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&thread, NULL, question_thread, q);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (error) {
                q->error = EAI_SYSTEM;
                q->saved_errno = error;
                question_answer(q);
        } else {
                pthread_detach(thread);
        }
        return r;
}

void resolve_cancel(struct resolve *r)
{
        struct question *q;
        bool posted;

        if (!r)
                return;
        q = r->question;
        loop_defer_cancel(r->loop, resolve_failed, r);
        pthread_mutex_lock(&q->lock);
        q->cancelled = true;
        posted = q->posted;
        pthread_mutex_unlock(&q->lock);
        mailbox_free(r->box, NULL);
        if (posted)
                question_free(q);
        free(r);
}

int resolve_split(const char *address, char **ret_host, char **ret_port, struct err *err)
{
        struct str host, port, text = str_of(address);
        ptrdiff_t colon = str_rfind(text, ':');
        uint64_t number;

        if (colon < 0)
                return err_set(err, -EINVAL, "%s: an address is unix:/path, host:port or [v6]:port", address);
        host = str_head(text, colon);
        port = str_skip(text, colon + 1);
        if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
                host = str_make(host.p + 1, host.n - 2);
        else if (str_find(host, ':') >= 0)
                return err_set(err, -EINVAL, "%s: write an IPv6 address in brackets", address);
        if (!host.n || str_to_u64(port, &number) < 0 || number > 65535)
                return err_set(err, -EINVAL, "%s: an address is unix:/path, host:port or [v6]:port", address);
        *ret_host = str_dupz(host);
        *ret_port = str_dupz(port);
        return 0;
}
