#include "server/agents/leases.h"

#include <pthread.h>

#include "base/map.h"
#include "base/mem.h"

struct lease {
        int64_t heard_ms;
};
struct leases {
        pthread_mutex_t lock;
        struct idmap *open; /* session → struct lease */
};

struct leases *leases_new(void)
{
        struct leases *l = mem_new(struct leases);

        pthread_mutex_init(&l->lock, NULL);
        l->open = idmap_new();
        return l;
}

void leases_free(struct leases *l)
{
        size_t at = 0;
        void *v;

        if (!l)
                return;
        while (idmap_next(l->open, &at, NULL, &v))
                free(v);
        idmap_free(l->open);
        pthread_mutex_destroy(&l->lock);
        free(l);
}

void leases_open(struct leases *l, uint64_t session, int64_t now_ms)
{
        struct lease *one = mem_new(struct lease);

        one->heard_ms = now_ms;
        pthread_mutex_lock(&l->lock);
        free(idmap_take(l->open, session));
        idmap_put(l->open, session, one);
        pthread_mutex_unlock(&l->lock);
}

int64_t leases_close(struct leases *l, uint64_t session)
{
        struct lease *one;
        int64_t heard_ms;

        pthread_mutex_lock(&l->lock);
        one = idmap_take(l->open, session);
        pthread_mutex_unlock(&l->lock);
        heard_ms = one ? one->heard_ms : 0;
        free(one);
        return heard_ms;
}

bool leases_renew(struct leases *l, uint64_t session, int64_t now_ms)
{
        struct lease *one;

        pthread_mutex_lock(&l->lock);
        one = idmap_get(l->open, session);
        if (one)
                one->heard_ms = now_ms;
        pthread_mutex_unlock(&l->lock);
        return one != NULL;
}

int64_t leases_take(struct leases *l, uint64_t session, int64_t known_ms)
{
        struct lease *one;
        int64_t heard_ms = known_ms;

        pthread_mutex_lock(&l->lock);
        one = idmap_get(l->open, session);
        if (one && one->heard_ms > known_ms)
                heard_ms = one->heard_ms;
        else
                free(idmap_take(l->open, session));
        pthread_mutex_unlock(&l->lock);
        return heard_ms;
}
