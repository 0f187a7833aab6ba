/* GET /v1/stores: the configured stores, and each agent's distance to them. */
#include "server/api/routes.h"

static void write_words(struct json *j, const char *key, const struct str *v, size_t count)
{
        json_key(j, key);
        json_open(j, '[');
        for (size_t i = 0; i < count; i++)
                json_str(j, v[i]);
        json_close(j, ']');
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
