#include "server/daemon/reader.h"

#include <pthread.h>

#include "server/history/past.h"

struct reader {
        struct server *server;
        struct loop *loop;
        struct mailbox *mail;
        struct past *past;
        pthread_t thread;
        bool runs;
};
struct last { /* the task that ends the thread, behind all others */
        struct task task;
        struct reader *reader;
};

static void receive(void *arg, struct mail *m)
{
        struct reader *r = arg;
        struct task *t = (struct task *)m;

        t->run(r->server, t);
}

static void *run(void *arg)
{
        loop_run(((struct reader *)arg)->loop);
        return NULL;
}

int reader_start(struct server *s, struct reader **ret, struct err *err)
{
        struct reader *r = mem_new(struct reader);
        int e;

        r->server = s;
        r->loop = loop_new();
        r->past = past_new(s);
        r->mail = mailbox_new(r->loop, receive, NULL, r);
        *ret = r;
        e = pthread_create(&r->thread, NULL, run, r);
        if (e != 0)
                return err_set(err, -e, "cannot start a thread");
        r->runs = true;
        return 0;
}

void reader_post(struct reader *r, struct task *t)
{
        mailbox_post(r->mail, &t->mail);
}

struct past *reader_past(struct reader *r)
{
        return r->past;
}

static void end(struct server *s, struct task *t)
{
        (void)s;
        loop_stop(((struct last *)t)->reader->loop);
        free(t);
}

void reader_stop(struct reader *r)
{
        struct last *l;

        if (!r || !r->runs)
                return;
        l = mem_new(struct last);
        l->task.run = end;
        l->reader = r;
        reader_post(r, &l->task);
        pthread_join(r->thread, NULL);
        r->runs = false;
}

static void drop(struct mail *m)
{
        task_drop((struct task *)m);
}

void reader_free(struct reader *r)
{
        if (!r)
                return;
        mailbox_free(r->mail, drop);
        loop_free(r->loop);
        past_free(r->past);
        free(r);
}
