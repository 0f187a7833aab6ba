#include "server/agents/grants.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "auth/credentials.h"
#include "base/map.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/system/secret.h"
#include "classad/eval.h"
#include "core/query.h"
#include "server/access/access.h"
#include "server/agents/message.h"
#include "server/loop/words.h"

#define TICK_MS   1000
#define ASKED_MAX 100000 /* credentials that an agent may be given in one session */

struct asked {
        uint64_t request;
        uint32_t part;
        char *name;
};

/* ---- which credentials a job names */

static bool names_it(const struct server *s, const struct ad *ad, struct str name)
{
        BUF_CLEANUP struct buf all = {0};
        struct str rest, one;

        core_credential_names(s->core, ad, &all);
        for (rest = buf_view(&all); rest.n && str_cut(&rest, ',', &one);)
                if (str_eq(one, name))
                        return true;
        return false;
}

static void add_owner(uint64_t request, struct str owner, bool handed_on, struct buf *out)
{
        if (handed_on)
                buf_printf(out, "#%" PRIu64, request);
        else
                buf_str(out, owner);
}

void grants_owner(const struct server *s, uint64_t request, struct buf *out)
{
        struct core_request r;
        struct core_delegation hop;

        if (core_request_get(s->core, request, &r) != 0 ||
            core_request_delegation(s->core, request, &hop) != 0)
                return;
        add_owner(request, r.owner, hop.origin != NULL, out);
}

void grants_credential(const struct server *s, uint64_t request, struct str owner, bool handed_on,
                       struct file_credential *ret)
{
        BUF_CLEANUP struct buf whose = {0};
        const struct credential *c;

        add_owner(request, owner, handed_on, &whose);
        c = s->access ? credentials_find(s->access->credentials, buf_view(&whose), ret->name) : NULL;
        if (!c)
                return;
        ret->urls = str_of(c->urls);
        ret->s3 = c->type == CREDENTIAL_S3;
}

void grants_open(struct server *s)
{
        for (uint64_t id = 0; (id = core_request_next(s->core, id)) != 0;) {
                uint32_t part = 0;

                while (core_request_credentials(s->core, id, &part))
                        ;
        }
}

/* ---- answers to agents */

static Drover__Credential *grant_answer(struct message *m, uint64_t request, uint32_t part, struct str name)
{
        Drover__Credential *a = message_alloc(m, sizeof(*a));

        drover__credential__init(a);
        a->request = request;
        a->part = part;
        a->name = message_text(m, name);
        m->to_agent.credential = a;
        return a;
}

/* Appends the credential to *data, or the reason why it cannot be given to *why. */
static void credential_check(struct server *s, struct str owner, struct str name, const struct credential *c,
                             struct buf *data, struct buf *why)
{
        if (!c) {
                buf_printf(why, STR_FMT " has no credential " STR_FMT ": drover credential add " STR_FMT,
                           STR_ARG(owner), STR_ARG(name), STR_ARG(name));
        } else if (c->expires_ms && c->expires_ms <= clock_wall_ms()) {
                buf_printf(why, "the credential " STR_FMT " has expired, at ", STR_ARG(name));
                words_time(why, c->expires_ms);
                buf_printf(why, ": drover credential add " STR_FMT, STR_ARG(name));
        } else if (credentials_read(s->access->credentials, c, data) != 0) {
                buf_printf(why,
                           "the credential " STR_FMT
                           " cannot be read, because the server's key has changed: add it again",
                           STR_ARG(name));
        }
}

static void say_urls(struct message *m, const struct credential *c, Drover__Credential *to)
{
        struct str rest = str_of(c->urls), one;

        to->urls = message_alloc(m, CREDENTIAL_URLS_MAX * sizeof(*to->urls));
        while (rest.n && to->n_urls < CREDENTIAL_URLS_MAX && str_cut(&rest, ' ', &one))
                to->urls[to->n_urls++] = message_text(m, one);
}

static void give_credential(struct server *s, struct agent *a, uint64_t request, uint32_t part,
                            struct str owner, struct str name, enum turn_when when)
{
        const struct credential *c = credentials_find(s->access->credentials, owner, name);
        SECRET_CLEANUP struct buf data = {0};
        BUF_CLEANUP struct buf why = {0};
        struct message *m = message_new(a->session, DROVER__TO_AGENT__KIND_CREDENTIAL);
        Drover__Credential *to = grant_answer(m, request, part, name);

        credential_check(s, owner, name, c, &data, &why);
        to->error = message_text(m, buf_view(&why));
        if (c)
                say_urls(m, c, to);
        if (!why.n) {
                to->type = message_text(m, str_of(credential_type_name(c->type)));
                to->data.data = (uint8_t *)arena_dup(&m->arena, data.p, data.n);
                to->data.len = data.n;
                to->expires_ms = (uint64_t)c->expires_ms;
                log_info("msg=\"a credential is given\" agent=%s request=%" PRIu64 " name=%s",
                         LOG_TEXT(str_of(a->name)), request, LOG_TEXT(name));
        }
        message_send(s, m, when);
}

static void remember(struct agent *a, uint64_t request, uint32_t part, struct str name)
{
        BUF_CLEANUP struct buf key = {0};
        struct asked *x;

        if (!a->asked)
                a->asked = map_new();
        buf_printf(&key, "%" PRIu64 ".%u/" STR_FMT, request, part, STR_ARG(name));
        if (map_get(a->asked, buf_view(&key)) || map_count(a->asked) >= ASKED_MAX)
                return;
        x = mem_new(struct asked);
        *x = (struct asked){request, part, str_dupz(name)};
        map_put(a->asked, buf_view(&key), x);
}

void grants_forget(struct agent *a)
{
        void *v;

        if (!a->asked)
                return;
        for (size_t at = 0; map_next(a->asked, &at, NULL, &v);) {
                free(((struct asked *)v)->name);
                free(v);
        }
        map_free(a->asked);
        a->asked = NULL;
}

void grants_get(struct server *s, struct command *c, struct agent *a)
{
        uint64_t request = c->credential_get.request;
        uint32_t part = c->credential_get.part;
        struct str name = c->credential_get.name;
        const struct ad *ad = core_request_ad(s->core, request, part);
        struct core_request r;

        if (ad && core_request_get(s->core, request, &r) == 0 && owners_allow(&a->owners, r.owner) &&
            core_has_part(s->core, a->name, request, part) && names_it(s, ad, name)) {
                BUF_CLEANUP struct buf owner = {0};

                grants_owner(s, request, &owner);
                remember(a, request, part, name);
                if (str_eq(buf_view(&owner), r.owner) ||
                    credentials_find(s->access->credentials, buf_view(&owner), name))
                        give_credential(s, a, request, part, buf_view(&owner), name, TURN_DURABLE);
                return; /* otherwise the credential follows its request, and is given then */
        }
        struct message *m = message_new(a->session, DROVER__TO_AGENT__KIND_CREDENTIAL);
        grant_answer(m, request, part, name)->error = message_text(m, STR("no job of yours asks for it"));
        message_send(s, m, TURN_DURABLE);
}

void grants_replaced(struct server *s, struct str owner, struct str name)
{
        struct agent *a;

        for (size_t at = 0; agents_next(s, &at, &a);) {
                void *v;

                if (!a->session || !a->asked)
                        continue;
                for (size_t i = 0; map_next(a->asked, &i, NULL, &v);) {
                        struct asked *x = v;
                        BUF_CLEANUP struct buf whose = {0};

                        if (!str_eqz(name, x->name))
                                continue;
                        grants_owner(s, x->request, &whose);
                        if (str_eq(buf_view(&whose), owner) &&
                            core_has_part(s->core, a->name, x->request, x->part))
                                give_credential(s, a, x->request, x->part, owner, name, TURN_DURABLE);
                }
        }
}

/* ---- end of a request */

static bool has_ended(struct server *s, const char *owner)
{
        struct core_request r;
        uint64_t request;

        return str_to_u64(str_of(owner + 1), &request) == 0 &&
               (core_request_get(s->core, request, &r) != 0 || r.finished_ms != 0);
}

void grants_tick(struct server *s)
{
        const struct credential *c;
        int64_t now = clock_boot_ms();
        char *owner = NULL, *name = NULL;

        if (turn_full(s->turn) || now < s->grants_due_ms)
                return;
        s->grants_due_ms = now + TICK_MS;
        for (size_t at = 0; !owner && credentials_next(s->access->credentials, &at, &c);) {
                if (c->owner[0] != '#' || !has_ended(s, c->owner))
                        continue;
                owner = mem_dupz(c->owner);
                name = mem_dupz(c->name);
        }
        if (owner) {
                credentials_remove(s->access->credentials, str_of(owner), str_of(name), turn_batch(s->turn));
                s->grants_due_ms = 0; /* there may be more to remove */
        }
        free(owner);
        free(name);
}

/* ---- release of held jobs */

static void release(struct server *s, struct grants_release *x)
{
        struct set held = {0}, mine = {0};
        struct core_command cmd = {.action = CORE_ACT_RELEASE,
                                   .request = x->request,
                                   .members = &mine,
                                   .reason = STR("its credential was renewed")};
        uint64_t affected = 0;

        core_members(s->core, x->request, 1u << JOB_HELD, &held);
        SET_FOREACH (&held, m) {
                struct core_job j;
                const struct ad *ad;

                if (core_job_get(s->core, x->request, (uint32_t)m, &j) == 0 &&
                    j.hold_code == CORE_HOLD_CREDENTIAL &&
                    (ad = core_request_ad(s->core, x->request, j.part)) != NULL && names_it(s, ad, x->name))
                        set_add(&mine, (uint32_t)m);
        }
        if (set_count(&mine) && core_act(s->core, &cmd, &affected, NULL) == 0)
                x->released += affected;
        set_deinit(&held);
        set_deinit(&mine);
}

/* Tells the core, and releases the jobs of the present request. Returns false if the core has more to do for
 * it. */
static bool release_request(struct server *s, struct grants_release *x)
{
        struct core_request r;
        struct core_delegation hop;

        if (core_request_get(s->core, x->request, &r) != 0 || !str_eq(r.owner, x->owner) ||
            core_request_delegation(s->core, x->request, &hop) != 0 || hop.origin)
                return true;
        if (x->shown_elsewhere && core_request_credentials(s->core, x->request, &x->part))
                return false;
        if (r.counts.held)
                release(s, x);
        return true;
}

bool grants_release_slice(struct server *s, struct grants_release *x, int64_t end_ns)
{
        while (x->part || (x->request = core_request_next(s->core, x->request)) != 0) {
                if (release_request(s, x))
                        x->part = 0;
                if (clock_mono_ns() > end_ns)
                        return false;
        }
        return true;
}
