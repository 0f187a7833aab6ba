/* PUT /v1/credentials/NAME, GET /v1/credentials, DELETE /v1/credentials/NAME; PUT
 * /v1/requests/7/credentials/NAME, for a request that another server hands on. No call returns a
 * credential's content. */
#include "auth/credentials.h"

#include "base/system/clock.h"
#include "core/query.h"
#include "server/access/access.h"
#include "server/agents/grants.h"
#include "server/api/routes.h"

#define SLICE_NS 4000000

struct put {
        json_t *doc;
        struct str type, data;
        struct grants_release release;
        int64_t expires_ms;
        struct str urls[CREDENTIAL_URLS_MAX + 1];
        size_t url_count;
        bool says_urls;
        uint64_t request; /* 0: a credential of the caller */
};

static void credentials_state_free(void *arg)
{
        struct put *p = arg;

        if (p->data.n)
                explicit_bzero((char *)(uintptr_t)p->data.p, p->data.n);
        json_decref(p->doc);
        free(p);
}

static void write_put(struct server *s, struct call *c)
{
        const struct put *p = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kstr(&j, "name", c->param[p->request ? 1 : 0]);
        json_key(&j, "expires_ms");
        if (p->expires_ms)
                json_int(&j, p->expires_ms);
        else
                json_null(&j);
        json_kint(&j, "released", (int64_t)p->release.released);
        json_close(&j, '}');
        call_reply(c);
}

static void release(struct server *s, struct call *c)
{
        struct put *p = c->state;

        if (grants_release_slice(s, &p->release, clock_mono_ns() + SLICE_NS))
                call_io(c, write_put);
        else
                call_yield(c, release);
}

/* Finds the owner name of the request's own credentials. Only a request that came from another server and
 * has not ended has any. */
static bool find_request(struct server *s, struct call *c, struct str *ret_owner)
{
        const struct put *p = c->state;
        BUF_CLEANUP struct buf owner = {0};
        struct core_request r;
        struct core_delegation hop;

        if (core_request_get(s->core, p->request, &r) != 0 || !call_may(c, r.owner) || r.finished_ms ||
            core_request_delegation(s->core, p->request, &hop) != 0) {
                call_fail(c, 404, "not_found", "there is no request " STR_FMT " under way",
                          STR_ARG(c->param[0]));
                return false;
        }
        if (!hop.origin) {
                call_fail(c, 409, "no_origin",
                          "request " STR_FMT
                          " is not another server's: its jobs have the credentials of their owner",
                          STR_ARG(c->param[0]));
                return false;
        }
        grants_owner(s, p->request, &owner);
        *ret_owner = arena_str(&c->arena, buf_view(&owner));
        return true;
}

static void tell_core(struct server *s, struct call *c)
{
        struct put *p = c->state;

        if (core_request_credentials(s->core, p->request, &p->release.part))
                call_yield(c, tell_core);
        else
                call_io(c, write_put);
}

/* Appends the purpose of the credential as one text; "" when it has none. */
static void what_for(const struct server *s, struct str owner, struct str name, struct buf *out)
{
        const struct credential *k = credentials_find(s->access->credentials, owner, name);

        if (k)
                buf_printf(out, "%s %s", credential_type_name(k->type), k->urls);
}

static void put_credential(struct server *s, struct call *c)
{
        struct put *p = c->state;
        struct str owner = str_of(c->who), name = c->param[p->request ? 1 : 0];
        BUF_CLEANUP struct buf was_for = {0}, is_for = {0};
        enum credential_type type;
        struct err err = {0};

        if (turn_full(s->turn)) {
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        if (credential_type_parse(p->type, &type) != 0) {
                call_fail(c, 400, "bad_credential", "\"type\" must be proxy, token, s3 or file");
                return;
        }
        if (p->request && !find_request(s, c, &owner))
                return;
        what_for(s, owner, name, &was_for);
        struct credential_new what = {type, p->data, p->urls, p->url_count, !p->says_urls};
        if (credentials_put(s->access->credentials, owner, name, &what, clock_wall_ms(), turn_batch(s->turn),
                            &err) != 0) {
                call_fail_err(c, 400, "bad_credential", &err);
                return;
        }
        p->expires_ms = credentials_find(s->access->credentials, owner, name)->expires_ms;
        what_for(s, owner, name, &is_for);
        p->release =
                (struct grants_release){.owner = owner,
                                        .name = name,
                                        .shown_elsewhere = !str_eq(buf_view(&was_for), buf_view(&is_for))};
        grants_replaced(s, owner, name);
        c->when = TURN_DURABLE;
        if (!p->request) {
                release(s, c);
                return;
        }
        if (p->release.shown_elsewhere)
                tell_core(s, c);
        else
                call_io(c, write_put); /* its jobs were waiting for it, and were not held */
}

/* Keeps one URL too many, so that the list is then refused. */
static void read_urls(struct put *p, const json_t *list)
{
        p->says_urls = json_is_array(list);
        for (size_t i = 0; i < json_array_size(list) && i <= CREDENTIAL_URLS_MAX; i++)
                p->urls[p->url_count++] = str_of(json_string_value(json_array_get(list, i)));
}

static void write_urls(struct json *j, const struct credential *k)
{
        struct str rest = str_of(k->urls), one;

        json_key(j, "urls");
        json_open(j, '[');
        while (rest.n && str_cut(&rest, ' ', &one))
                json_str(j, one);
        json_close(j, ']');
}

static void start_put(struct call *c, uint64_t request)
{
        json_t *doc = call_json(c); /* after a failure the call and its state are freed */
        struct put *p;

        if (!doc)
                return;
        p = call_state(c, sizeof(*p), credentials_state_free);
        p->doc = doc;
        p->type = call_json_text(doc, "type");
        p->data = call_json_text(doc, "data");
        p->request = request;
        read_urls(p, json_object_get(doc, "urls"));
        call_core(c, put_credential);
}

void api_credential_put(struct server *s, struct call *c)
{
        (void)s;
        start_put(c, 0);
}

void api_request_credential(struct server *s, struct call *c)
{
        uint64_t request;

        (void)s;
        if (str_to_u64(c->param[0], &request) == 0 && request > 0)
                start_put(c, request);
        else
                call_fail(c, 404, "not_found", "there is no request " STR_FMT, STR_ARG(c->param[0]));
}

static void list_credentials(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        const struct credential *k;

        json_open(&j, '{');
        json_key(&j, "credentials");
        json_open(&j, '[');
        for (size_t at = 0; credentials_next(s->access->credentials, &at, &k);) {
                if (k->owner[0] == '#' || (c->role != ROLE_ADMIN && strcmp(k->owner, c->who) != 0))
                        continue;
                json_open(&j, '{');
                json_kstrz(&j, "name", k->name);
                json_kstrz(&j, "owner", k->owner);
                json_kstrz(&j, "type", credential_type_name(k->type));
                json_kint(&j, "updated_ms", k->updated_ms);
                json_key(&j, "expires_ms");
                if (k->expires_ms)
                        json_int(&j, k->expires_ms);
                else
                        json_null(&j);
                write_urls(&j, k);
                json_kbool(&j, "expired", k->expires_ms && k->expires_ms <= clock_wall_ms());
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

void api_credentials(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, list_credentials);
}

static void send_credential(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void drop_credential(struct server *s, struct call *c)
{
        if (!credentials_remove(s->access->credentials, str_of(c->who), c->param[0], turn_batch(s->turn))) {
                call_fail(c, 404, "not_found", "you have no credential " STR_FMT, STR_ARG(c->param[0]));
                return;
        }
        buf_addz(&c->out, "{}");
        c->when = TURN_DURABLE;
        call_io(c, send_credential);
}

void api_credential_delete(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, drop_credential);
}
