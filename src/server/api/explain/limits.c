/* GET /v1/limits: pools of units that running jobs draw on: units in use, by whom, and the jobs that wait;
 * and the bytes that the caller has uploaded. */
#include "server/api/explain/limits.h"

#include "core/query.h"
#include "server/api/routes.h"
#include "server/files/holdings.h"
#include "server/files/objects.h"

struct listing {
        struct json j;
        struct core *core;
};

static void on_user(void *arg, const struct core_limit_user *u)
{
        struct json *j = arg;

        json_open(j, '{');
        json_kstrz(j, "owner", u->owner);
        json_kint(j, "jobs", (int64_t)u->jobs);
        json_kint(j, "units", u->units);
        json_close(j, '}');
}

/* Writes members into an open object. */
static void limit_write(struct json *j, struct core *core, const struct core_limit *l)
{
        json_kstrz(j, "name", l->name);
        json_key(j, "max");
        if (l->max < 0)
                json_null(j);
        else
                json_int(j, l->max);
        json_kint(j, "used", l->used);
        json_kint(j, "waiting", (int64_t)l->waiting);
        json_key(j, "users");
        json_open(j, '[');
        core_limit_users(core, l->name, on_user, j);
        json_close(j, ']');
}

static void on_limit(void *arg, const struct core_limit *l)
{
        struct listing *x = arg;

        json_open(&x->j, '{');
        limit_write(&x->j, x->core, l);
        json_close(&x->j, '}');
}

static void read_limits(struct server *s, struct call *c)
{
        struct listing x = {{.out = &c->out}, s->core};

        json_open(&x.j, '{');
        json_key(&x.j, "limits");
        json_open(&x.j, '[');
        core_limits(s->core, on_limit, &x);
        json_close(&x.j, ']');
        json_key(&x.j, "spool");
        holdings_write(objects_holdings(s), &x.j, c->who, call_may(c, STR_NONE));
        json_close(&x.j, '}');
        call_reply(c);
}

void api_limits(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, read_limits);
}

/* ---- as a sentence */

struct words {
        struct buf *out;
        unsigned said;
};

static void say_user(void *arg, const struct core_limit_user *u)
{
        struct words *w = arg;

        if (w->said < 3)
                buf_printf(w->out, "%s%s %lld", w->said ? ", " : "", u->owner, (long long)u->units);
        else if (w->said == 3)
                buf_addz(w->out, ", …");
        w->said++;
}

void limit_say(struct buf *out, struct core *core, const struct core_limit *l, int64_t units)
{
        struct words w = {out, 0};

        buf_printf(out, "It waits for limit %s: %lld of %lld in use", l->name, (long long)l->used,
                   (long long)l->max);
        if (l->used) {
                buf_addz(out, " (");
                core_limit_users(core, l->name, say_user, &w);
                buf_char(out, ')');
        }
        if (units > l->max)
                buf_printf(out, "; it draws %lld, which is more than there are", (long long)units);
        else if (units > 1)
                buf_printf(out, "; it draws %lld", (long long)units);
        buf_char(out, '.');
}
