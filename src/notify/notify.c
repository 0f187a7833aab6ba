#include "notify/notify.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

#define THREADS 4

struct notify_stop {
        atomic_bool now;
};
struct notify {
        const struct notify_config *config;
        notify_done_fn *done;
        void *arg;
        struct notify_stop stop;
        pthread_mutex_t mutex;
        pthread_cond_t more;
        struct notify_message *first, **last; /* guarded by the mutex */
        pthread_t threads[THREADS];
        unsigned running;
};

struct notify_message *notify_message_new(void)
{
        struct notify_message *m = mem_new(struct notify_message);

        m->body.max = NOTIFY_BODY_MAX;
        return m;
}

void notify_message_free(struct notify_message *m)
{
        if (!m)
                return;
        free(m->to);
        free(m->subject);
        buf_deinit(&m->body);
        free(m);
}

bool notify_stopping(const struct notify_stop *s)
{
        return atomic_load(&s->now);
}

int notify_hook_allowed(const struct notify_config *config, const struct address_url *url, struct err *err)
{
        for (size_t i = 0; i < config->hook_count; i++)
                if (address_entry_permits(&config->hooks[i], url))
                        return 0;
        return err_set(err, -EACCES,
                       "this server may not call %s://%s:%u; its admin names such hosts under notify: hooks:",
                       url->tls ? "https" : "http", url->host, url->port);
}

static struct notify_message *take_message(struct notify *n)
{
        struct notify_message *m;

        pthread_mutex_lock(&n->mutex);
        while (!n->first && !notify_stopping(&n->stop))
                pthread_cond_wait(&n->more, &n->mutex);
        m = notify_stopping(&n->stop) ? NULL : n->first;
        if (m) {
                n->first = m->next;
                if (!n->first)
                        n->last = &n->first;
        }
        pthread_mutex_unlock(&n->mutex);
        return m;
}

static void *run_sender(void *arg)
{
        struct notify *n = arg;
        struct notify_message *m;

        while ((m = take_message(n))) {
                struct err why = {""};
                enum notify_result r = m->kind == NOTIFY_MAIL ? mail_send(n->config, m, &n->stop, &why)
                                                              : hook_send(n->config, m, &n->stop, &why);

                if (!notify_stopping(&n->stop) || r == NOTIFY_SENT)
                        n->done(n->arg, m->id, r, why.text);
                notify_message_free(m);
        }
        return NULL;
}

int notify_new(const struct notify_config *config, notify_done_fn *done, void *arg, struct notify **ret,
               struct err *err)
{
        struct notify *n = mem_new(struct notify);
        int e = 0;

        curl_global_init(CURL_GLOBAL_DEFAULT); /* before the threads start; may be called more than once */
        n->config = config;
        n->done = done;
        n->arg = arg;
        n->last = &n->first;
        pthread_mutex_init(&n->mutex, NULL);
        pthread_cond_init(&n->more, NULL);
        while (n->running < THREADS &&
               (e = pthread_create(&n->threads[n->running], NULL, run_sender, n)) == 0)
                n->running++;
        if (n->running == 0) {
                notify_free(n);
                return err_set(err, -e, "cannot start a thread");
        }
        *ret = n;
        return 0;
}

void notify_send(struct notify *n, struct notify_message *m)
{
        pthread_mutex_lock(&n->mutex);
        m->next = NULL;
        *n->last = m;
        n->last = &m->next;
        pthread_cond_signal(&n->more);
        pthread_mutex_unlock(&n->mutex);
}

void notify_free(struct notify *n)
{
        if (!n)
                return;
        pthread_mutex_lock(&n->mutex);
        atomic_store(&n->stop.now, true);
        pthread_cond_broadcast(&n->more);
        pthread_mutex_unlock(&n->mutex);
        for (unsigned i = 0; i < n->running; i++)
                pthread_join(n->threads[i], NULL);
        while (n->first) {
                struct notify_message *m = n->first;

                n->first = m->next;
                notify_message_free(m);
        }
        pthread_cond_destroy(&n->more);
        pthread_mutex_destroy(&n->mutex);
        free(n);
}
