/* /v1/stores: the configured stores, each agent's distance to them, and what of their space is reserved and
 * used. POST /v1/stores/{name}: a lot is released, or what an owner has there is set.
 */
#include "core/lifecycle/lots.h"
#include "server/api/routes.h"
#include "server/loop/turn.h"

static void write_words(struct json *j, const char *key, const struct str *v, size_t count)
{
        json_key(j, key);
        json_open(j, '[');
        for (size_t i = 0; i < count; i++)
                json_str(j, v[i]);
        json_close(j, ']');
}

static void write_lots(struct json *j, const struct core_store_view *v)
{
        json_key(j, "lots");
        json_open(j, '[');
        for (size_t i = 0; i < v->lot_count; i++) {
                const struct lot *x = v->lots[i];

                json_open(j, '{');
                if (*x->name) {
                        json_kstrz(j, "name", x->name);
                        json_kint(j, "size_bytes", (int64_t)x->size_bytes);
                        json_kint(j, "claimed_bytes", (int64_t)lot_claimed(x));
                        json_kint(j, "expires_ms", x->expires_ms);
                }
                json_kstrz(j, "owner", x->owner);
                json_kint(j, "used_bytes", (int64_t)x->used_bytes);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void write_space(struct json *j, const struct core_store_view *v)
{
        json_key(j, "space");
        json_open(j, '{');
        json_kint(j, "reserved_bytes", (int64_t)v->space->reserved);
        json_kint(j, "files_bytes", (int64_t)v->space->files);
        json_kint(j, "claimed_bytes", (int64_t)v->space->claimed);
        json_kint(j, "left_bytes", (int64_t)v->space->left);
        if (v->space->measured_free <= INT64_MAX)
                json_kint(j, "free_bytes", (int64_t)v->space->measured_free);
        write_lots(j, v);
        json_close(j, '}');
}

static void on_store(void *arg, const struct core_store_view *v)
{
        const struct core_store *s = v->store;
        struct json *j = arg;

        json_open(j, '{');
        json_kstr(j, "name", s->urls.name);
        write_words(j, "urls", s->urls.prefixes, s->urls.prefix_count);
        write_words(j, "labels", s->labels, s->label_count);
        json_kint(j, "concurrency", s->concurrency);
        json_kint(j, "concurrency_in", s->concurrency_in);
        json_key(j, "concurrency_from");
        json_open(j, '{');
        for (size_t i = 0; i < s->from_count; i++) {
                BUF_CLEANUP struct buf name = {0};

                buf_str(&name, s->from[i].name);
                json_kint(j, buf_z(&name), s->from[i].concurrency);
        }
        json_close(j, '}');
        json_kint(j, "capacity_bytes", (int64_t)s->capacity_bytes);
        if (v->space)
                write_space(j, v);
        json_key(j, "links");
        json_open(j, '[');
        for (size_t i = 0; i < v->link_count; i++) {
                json_open(j, '{');
                json_kstrz(j, "agent", v->links[i].agent);
                json_kint(j, "latency_us", (int64_t)v->links[i].latency_us);
                json_kint(j, "bytes_per_s", (int64_t)v->links[i].bytes_per_s);
                json_kint(j, "measured_ms", v->links[i].measured_ms);
                if (v->links[i].down_ms) {
                        json_kint(j, "down_ms", v->links[i].down_ms);
                        json_kstrz(j, "down_why", v->links[i].down_why);
                }
                json_close(j, '}');
        }
        json_close(j, ']');
        json_close(j, '}');
}

static void read_stores(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_key(&j, "stores");
        json_open(&j, '[');
        core_stores(s->core, on_store, &j);
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

void api_stores(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, read_stores);
}

/* ---- changes */

static void stores_state_free(void *p)
{
        json_decref(p);
}

static void stores_answer(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static int set(struct server *s, struct call *c, const json_t *doc, struct err *err)
{
        struct str owner = call_json_text(doc, "owner"), lot = call_json_text(doc, "release");
        const json_t *used = json_object_get(doc, "used_bytes");
        BUF_CLEANUP struct buf copy = {0}; /* the record is freed with its names */

        if (!owner.n)
                owner = str_of(c->who);
        if (c->role == ROLE_USER && (used || !str_eqz(owner, c->who)))
                return err_set(err, CORE_FORBIDDEN,
                               used ? "only an administrator knows what is in a store"
                                    : "the lot is of another user");
        buf_str(&copy, owner);
        if (used)
                return core_space_set(s->core, c->param[0], buf_view(&copy),
                                      (uint64_t)json_integer_value(used), err);
        return core_lot_release(s->core, c->param[0], buf_view(&copy), lot, err);
}

static void set_store(struct server *s, struct call *c)
{
        struct err err = {""};
        int r;

        if (turn_full(s->turn)) { /* a restart would forget it */
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        r = set(s, c, c->state, &err);
        if (r == CORE_FORBIDDEN)
                call_fail(c, 403, "forbidden", "%s", err.text);
        else if (r == CORE_UNKNOWN)
                call_fail(c, 404, "not_found", "%s", err.text);
        else if (r != 0)
                call_fail(c, 400, "bad_request", "%s", err.text);
        if (r != 0)
                return;
        buf_addz(&c->out, "{}");
        c->when = TURN_DURABLE;
        call_io(c, stores_answer);
}

void api_store_set(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);
        const json_t *used = json_object_get(doc, "used_bytes");

        (void)s;
        if (!doc)
                return;
        c->state = doc;
        c->state_free = stores_state_free;
        if ((used == NULL) == (json_object_get(doc, "release") == NULL) ||
            (used && (!json_is_integer(used) || json_integer_value(used) < 0)))
                call_fail(c, 400, "bad_request", "one of release, a lot's name, and used_bytes, a number");
        else
                call_core(c, set_store);
}
