#include "server/calls/fair.h"

#include <pthread.h>

#include "base/map.h"

struct fair {
        struct server *server;
        void (*post)(struct server *s, struct task *t);
        pthread_mutex_t lock;
        struct map *users; /* user who has a step on the thread → struct fair_user */
};
struct fair_user {
        struct fair *fair;
        char *name;
        struct call *first, *last; /* calls that wait for their turn, linked by next_turn */
};

struct fair *fair_new(struct server *s, void (*post)(struct server *s, struct task *t))
{
        struct fair *f = mem_new(struct fair);

        f->server = s;
        f->post = post;
        f->users = map_new();
        pthread_mutex_init(&f->lock, NULL);
        return f;
}

static struct call *take_first(struct fair_user *u)
{
        struct call *c = u->first;

        if (c)
                u->first = c->next_turn;
        return c;
}

static void user_free(struct fair_user *u)
{
        free(u->name);
        free(u);
}

void fair_free(struct fair *f)
{
        struct call *c;
        size_t at = 0;
        void *v;

        if (!f)
                return;
        while (map_next(f->users, &at, NULL, &v)) {
                while ((c = take_first(v)))
                        task_drop(&c->task);
                user_free(v);
        }
        map_free(f->users);
        pthread_mutex_destroy(&f->lock);
        free(f);
}

void fair_post(struct fair *f, struct call *c)
{
        struct str who = str_of(c->who);
        struct fair_user *u;

        pthread_mutex_lock(&f->lock);
        u = map_get(f->users, who);
        c->next_turn = NULL;
        if (u) { /* another thread may run and free c once the lock is released */
                c->turn_of = u;
                *(u->first ? &u->last->next_turn : &u->first) = c;
                u->last = c;
                c = NULL;
        } else {
                c->turn_of = u = mem_new(struct fair_user);
                u->fair = f;
                u->name = str_dupz(who);
                map_put(f->users, who, u);
        }
        pthread_mutex_unlock(&f->lock);
        if (c)
                f->post(f->server, &c->task);
}

void fair_done(struct fair_user *u)
{
        struct fair *f = u->fair;
        struct call *next;

        pthread_mutex_lock(&f->lock);
        next = take_first(u);
        if (!next) {
                map_take(f->users, str_of(u->name));
                user_free(u);
        }
        pthread_mutex_unlock(&f->lock);
        if (next)
                f->post(f->server, &next->task);
}
