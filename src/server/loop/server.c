#include "server/loop/server.h"

#include "base/system/log.h"

const struct config *server_settings(const struct server *s)
{
        const struct config *c = atomic_load(&s->settings);

        return c ? c : &s->config;
}

void task_drop(struct task *t)
{
        if (t->drop)
                t->drop(t);
        else
                free(t);
}

void server_to_core(struct server *s, struct task *t)
{
        mailbox_post(s->core_mail, &t->mail);
}

void server_to_io(struct server *s, struct task *t)
{
        if (s->io_mail)
                mailbox_post(s->io_mail, &t->mail);
        else
                task_drop(t);
}

void server_to_core_priority(struct server *s, struct task *t)
{
        mailbox_post_priority(s->core_mail, &t->mail);
}

void server_to_io_priority(struct server *s, struct task *t)
{
        if (s->io_mail)
                mailbox_post_priority(s->io_mail, &t->mail);
        else
                task_drop(t);
}

void server_to_reader(struct server *s, struct task *t)
{
        mailbox_post(s->reader_mail, &t->mail);
}

void server_to_catalog(struct server *s, struct task *t)
{
        mailbox_post(s->catalog_mail, &t->mail);
}

void server_fatal(struct server *s, const char *fmt, ...)
{
        BUF_CLEANUP struct buf b = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        log_error("%s", buf_z(&b));
        s->exit_code = 1;
        atomic_store(&s->stopping, true);
        loop_stop(s->loop);
}
