/* PUT /v1/requests/7/lease, POST /v1/requests/7/taken: calls of a submitter that keeps its request under a
 * lease, such as another server. */
#include "core/query.h"
#include "server/access/origin.h"
#include "server/api/routes.h"

struct touch {
        json_t *doc;
        uint64_t request, lease_ms, left;
        struct set members;
        struct core_delegation hop;
};

static void hop_state_free(void *arg)
{
        struct touch *t = arg;

        set_deinit(&t->members);
        json_decref(t->doc);
        free(t);
}

static struct touch *start_touch(struct call *c)
{
        json_t *doc = call_json(c);
        struct touch *t;

        if (!doc)
                return NULL;
        t = call_state(c, sizeof(*t), hop_state_free);
        t->doc = doc;
        if (str_to_u64(c->param[0], &t->request) == 0)
                return t;
        call_fail(c, 404, "not_found", "there is no request " STR_FMT, STR_ARG(c->param[0]));
        return NULL;
}

static void fail_call(struct call *c, int r, const struct err *err)
{
        if (r == CORE_INVALID)
                call_fail_err(c, 409, "no_lease", err);
        else
                call_fail(c, 404, "not_found", "there is no request " STR_FMT, STR_ARG(c->param[0]));
}

static struct str only_mine(const struct call *c)
{
        return c->role == ROLE_USER ? str_of(c->who) : STR_NONE;
}

/* ---- lease */

static void write_lease(struct server *s, struct call *c)
{
        struct touch *t = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kint(&j, "lease_ms", (int64_t)t->hop.lease_ms);
        json_kint(&j, "left_ms", t->hop.left_ms);
        json_close(&j, '}');
        call_reply(c);
}

static void renew(struct server *s, struct call *c)
{
        struct touch *t = c->state;
        struct err err = {0};
        int r = core_request_renew(s->core, t->request, only_mine(c), t->lease_ms, &err);

        if (r == 0)
                r = core_request_delegation(s->core, t->request, &t->hop);
        if (r != 0)
                fail_call(c, r, &err);
        else
                call_io(c, write_lease);
}

void api_request_lease(struct server *s, struct call *c)
{
        struct touch *t = start_touch(c);
        struct submission asked = {0};
        struct err err = {0};

        (void)s;
        if (!t)
                return;
        if (origin_read(t->doc, &asked, &err) != 0) {
                call_fail_err(c, 400, "bad_request", &err);
                return;
        }
        t->lease_ms = asked.lease_ms;
        call_core(c, renew);
}

/* ---- results */

static void write_left(struct server *s, struct call *c)
{
        struct touch *t = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kint(&j, "left", (int64_t)t->left);
        json_close(&j, '}');
        call_reply(c);
}

static void take_touch(struct server *s, struct call *c)
{
        struct touch *t = c->state;
        struct err err = {0};
        int r = core_results_taken(s->core, t->request, only_mine(c), &t->members, &t->left, &err);

        c->when = TURN_DURABLE;
        if (r != 0)
                fail_call(c, r, &err);
        else
                call_io(c, write_left);
}

void api_request_taken(struct server *s, struct call *c)
{
        struct touch *t = start_touch(c);

        (void)s;
        if (!t)
                return;
        if (set_parse(&t->members, call_json_text(t->doc, "members"), SUBMISSION_MEMBERS_MAX) != 0)
                call_fail(c, 400, "bad_request", "\"members\" must name jobs of the request: \"0-5,7\"");
        else
                call_core(c, take_touch);
}
