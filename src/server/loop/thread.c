#include "server/loop/thread.h"

#include <pthread.h>

struct thread {
        struct server *server;
        struct loop *loop;
        struct mailbox *mail;
        pthread_t id;
        bool runs;
};
struct last { /* posted after all other tasks; ends the thread */
        struct task task;
        struct thread *thread;
};

static void receive(void *arg, struct mail *m)
{
        struct thread *t = arg;
        struct task *task = (struct task *)m;

        task->run(t->server, task);
}

struct thread *thread_new(struct server *s)
{
        struct thread *t = mem_new(struct thread);

        t->server = s;
        t->loop = loop_new();
        t->mail = mailbox_new(t->loop, receive, NULL, t);
        return t;
}

struct loop *thread_loop(struct thread *t)
{
        return t->loop;
}

struct mailbox *thread_mail(struct thread *t)
{
        return t->mail;
}

static void *run_thread(void *arg)
{
        loop_run(((struct thread *)arg)->loop);
        return NULL;
}

int thread_start(struct thread *t, struct err *err)
{
        int r = pthread_create(&t->id, NULL, run_thread, t);

        if (r != 0)
                return err_set(err, -r, "cannot start a thread");
        t->runs = true;
        return 0;
}

static void join(struct thread *t)
{
        pthread_join(t->id, NULL);
        t->runs = false;
}

void thread_stop(struct thread *t)
{
        if (!t || !t->runs)
                return;
        loop_stop(t->loop);
        join(t);
}

static void end_thread(struct server *s, struct task *task)
{
        (void)s;
        loop_stop(((struct last *)task)->thread->loop);
        free(task);
}

void thread_finish(struct thread *t)
{
        struct last *l;

        if (!t || !t->runs)
                return;
        l = mem_new(struct last);
        l->task.run = end_thread;
        l->thread = t;
        mailbox_post(t->mail, &l->task.mail);
        join(t);
}

static void drop_mail(struct mail *m)
{
        task_drop((struct task *)m);
}

void thread_drop_tasks(struct thread *t)
{
        if (t->mail)
                mailbox_free(t->mail, drop_mail);
        t->mail = NULL;
}

void thread_free(struct thread *t)
{
        if (!t)
                return;
        thread_drop_tasks(t);
        loop_free(t->loop);
        free(t);
}
