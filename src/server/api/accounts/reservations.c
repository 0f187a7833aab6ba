/* /v1/reservations: reservations of capacity at places for a time (core/lifecycle/reservations.h).
 *
 * Admins and operators make and end them; users may do that for themselves, within the limits of the
 * settings, and without evicting others. Everybody sees when places are reserved; those who may use a
 * reservation see all of it. */
#include "core/lifecycle/reservations.h"
#include "bank/bank.h"
#include "base/system/clock.h"
#include "core/accounts/share.h"
#include "server/api/routes.h"
#include "server/loop/expressions.h"

#define DAY_MS     86400000ll
#define PLACES_MAX 1000u
#define WHERE_MAX  65536u
#define NUMBER_MAX 4000000000000ll

static void reservations_state_free(void *arg)
{
        json_decref(arg);
}

/* ---- reading */

static bool may_see(const struct call *c, const struct advance *a)
{
        return c->role != ROLE_USER || str_eqz(str_of(a->owner), c->who) ||
               advance_admits(a, str_of(c->who), STR_NONE);
}

static void write_places(struct json *j, const struct advance *a)
{
        json_key(j, "places");
        json_open(j, '[');
        for (size_t i = 0; i < a->place_count; i++) {
                struct core_reserved_place p;

                core_reserved_place(a, i, &p);
                json_open(j, '{');
                json_kstrz(j, "agent", p.agent);
                json_kstrz(j, "queue", p.queue);
                json_kint(j, "cpus", p.cpus);
                json_kint(j, "memory_mib", p.memory_mib);
                json_kint(j, "used_cpus", p.used_cpus);
                json_kint(j, "attempts", p.attempts);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void write_text(struct json *j, const char *key, const char *text)
{
        if (text)
                json_kstrz(j, key, text);
}

static void write_reservation(struct json *j, const struct call *c, const struct advance *a)
{
        json_open(j, '{');
        json_kint(j, "id", (int64_t)a->id);
        json_kstrz(j, "owner", a->owner);
        json_kstrz(j, "state", a->begun ? "active" : "planned");
        json_kbool(j, "maintenance", a->maintenance);
        json_kbool(j, "evict", a->evict);
        json_kint(j, "start_ms", a->start_ms);
        json_kint(j, "end_ms", a->end_ms);
        if (a->every_ms)
                json_kint(j, "every_ms", a->every_ms);
        if (a->until_ms)
                json_kint(j, "until_ms", a->until_ms);
        json_kint(j, "used_ms", a->used_ms);
        if (a->request && may_see(c, a)) {
                BUF_CLEANUP struct buf job = {0};

                buf_printf(&job, "%llu.%u", (unsigned long long)a->request, a->member);
                json_kstr(j, "job", buf_view(&job));
        }
        if (may_see(c, a)) {
                write_text(j, "users", a->users);
                write_text(j, "groups", a->groups);
                write_text(j, "account", a->account);
                write_text(j, "reason", a->reason);
                if (a->lien)
                        json_kint(j, "lien", (int64_t)a->lien);
        }
        write_places(j, a);
        json_close(j, '}');
}

static void list_reservations(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_key(&j, "reservations");
        json_open(&j, '[');
        for (const struct advance *a = core_reserved_first(s->core); a; a = a->next)
                write_reservation(&j, c, a);
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

void api_reservations(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, list_reservations);
}

/* NULL: the call has failed. */
static const struct advance *reservation_of(struct server *s, struct call *c)
{
        const struct advance *a = NULL;
        uint64_t id;

        if (str_to_u64(c->param[0], &id) == 0)
                a = core_reserved(s->core, id);
        if (!a)
                call_fail(c, 404, "not_found", "there is no reservation " STR_FMT ", or it is over",
                          STR_ARG(str_head(c->param[0], 32)));
        return a;
}

static void show_reservation(struct server *s, struct call *c)
{
        const struct advance *a = reservation_of(s, c);
        struct json j = {.out = &c->out};

        if (!a)
                return;
        write_reservation(&j, c, a);
        call_reply(c);
}

void api_reservation(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, show_reservation);
}

/* ---- creation */

static void reservations_answer(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void reservation_fail(struct call *c, int code, const struct err *err)
{
        call_fail_err(c,
                      code == CORE_UNKNOWN   ? 404
                      : code == CORE_INVALID ? 400
                                             : 409,
                      code == CORE_UNKNOWN    ? "not_found"
                      : code == CORE_INVALID  ? "bad_request"
                      : code == CORE_TOO_MANY ? "too_many"
                                              : "conflict",
                      err);
}

static bool read_number(struct call *c, const char *key, int64_t *ret)
{
        const json_t *v = json_object_get(c->state, key);

        *ret = v ? json_integer_value(v) : 0;
        if (!v || (json_is_integer(v) && *ret >= 0 && *ret <= NUMBER_MAX))
                return true;
        call_fail(c, 400, "bad_request", "%s must be a whole number from 0 to %lld", key, NUMBER_MAX);
        return false;
}

/* Checks names of users and groups, which are stored in lists: none may contain a separator. */
static bool names_ok(struct call *c, const char *key, struct str names, bool users)
{
        struct str rest = names, one;
        unsigned n = 0;

        for (size_t i = 0; i < names.n; i++)
                if ((unsigned char)names.p[i] <= ' ' || names.p[i] == 0x7f)
                        n = ADVANCE_USERS_MAX;
        while (rest.n && str_cut(&rest, ',', &one))
                if (++n > ADVANCE_USERS_MAX || !one.n ||
                    (users && !str_eqz(one, "*") && str_find(one, '@') < 0)) {
                        call_fail(c, 400, "bad_request", "%s: write up to %u %s, separated by commas", key,
                                  ADVANCE_USERS_MAX, users ? "of ann@lab, *@lab and *" : "accounting groups");
                        return false;
                }
        return true;
}

static bool read_reserve(struct call *c, struct core_reserve *r, struct str *places)
{
        const json_t *doc = c->state, *list = json_object_get(doc, "places"), *one;
        int64_t nodes;
        size_t i;

        *r = (struct core_reserve){.who = str_of(c->who),
                                   .users = call_json_text(doc, "users"),
                                   .groups = call_json_text(doc, "groups"),
                                   .account = call_json_text(doc, "account"),
                                   .reason = call_json_text(doc, "reason"),
                                   .maintenance = json_is_true(json_object_get(doc, "maintenance")),
                                   .evict = json_is_true(json_object_get(doc, "evict")),
                                   .places = places};
        if (!read_number(c, "nodes", &nodes) || !read_number(c, "cpus", &r->cpus) ||
            !read_number(c, "memory_mib", &r->memory_mib) || !read_number(c, "start_ms", &r->start_ms) ||
            !read_number(c, "duration_ms", &r->duration_ms) || !read_number(c, "every_ms", &r->every_ms) ||
            !read_number(c, "until_ms", &r->until_ms) || !names_ok(c, "users", r->users, true) ||
            !names_ok(c, "groups", r->groups, false))
                return false;
        if (nodes > PLACES_MAX || json_array_size(list) > PLACES_MAX || r->reason.n > ADVANCE_TEXT_MAX ||
            r->account.n > BANK_NAME_MAX || call_json_text(doc, "where").n > WHERE_MAX) {
                call_fail(c, 400, "bad_request",
                          "a reservation has at most %u places, a reason of %u bytes, and a condition of %u "
                          "bytes",
                          PLACES_MAX, ADVANCE_TEXT_MAX, WHERE_MAX);
                return false;
        }
        r->nodes = (uint32_t)nodes;
        json_array_foreach (list, i, one)
                places[r->place_count++] = str_make(json_string_value(one), json_string_length(one));
        return true;
}

/* Checks the limits that the settings set for users. */
static bool users_may(struct server *s, struct call *c, const struct core_reserve *r)
{
        const struct config_reservations *may = &server_settings(s)->reservations;
        int64_t duration_ms = may->duration_ms ? may->duration_ms : DAY_MS,
                ahead_ms = may->ahead_ms ? may->ahead_ms : 30 * DAY_MS, now_ms = clock_wall_ms(),
                last_ms = r->every_ms ? r->until_ms : r->start_ms;
        uint32_t own = 0, most = may->count ? may->count : 10;
        struct str rest = str_of(may->users), one;
        bool named = false;

        for (const struct advance *a = core_reserved_first(s->core); a; a = a->next)
                own += !a->request && str_eqz(str_of(a->owner), c->who);
        while (rest.n && str_cut(&rest, ',', &one)) {
                MEM_CLEANUP char *pattern = str_dupz(one);

                named |= share_is_user(pattern, str_of(c->who));
        }
        if (!named || r->maintenance || r->evict)
                call_fail(c, 403, "forbidden",
                          named ? "maintenance and eviction are for admins and operators"
                                : "only admins and operators make reservations: the settings do not let you "
                                  "make any");
        else if (r->duration_ms > duration_ms)
                call_fail(c, 403, "forbidden", "a reservation of a user lasts at most %lld s here",
                          (long long)(duration_ms / 1000));
        else if ((r->every_ms && !r->until_ms) || last_ms > now_ms + ahead_ms)
                call_fail(c, 403, "forbidden", "a user reserves at most %lld s ahead here",
                          (long long)(ahead_ms / 1000));
        else if (may->cpus && (r->cpus == 0 || r->cpus * (r->nodes ? r->nodes : 1) > may->cpus))
                call_fail(c, 403, "forbidden",
                          "a user reserves at most %lld processors here, and says how many",
                          (long long)may->cpus);
        else if (own >= most)
                call_fail(c, 403, "forbidden", "you have %u reservations, which is the limit here", own);
        else
                return true;
        return false;
}

/* Checks that the caller is a member of the account that pays. */
static bool may_spend(struct server *s, struct call *c, struct str account)
{
        const struct bank_account *a = bank_account(core_bank(s->core), account);

        if (!account.n || (a && (c->role != ROLE_USER || bank_role_of(a, str_of(c->who)) != BANK_ROLE_NONE)))
                return true;
        call_fail(c, 404, "not_found", "the bank has no account " STR_FMT " of which you are a member",
                  STR_ARG(str_head(account, BANK_NAME_MAX)));
        return false;
}

static void make_reservation(struct server *s, struct call *c)
{
        bool check_only = json_is_true(json_object_get(c->state, "check_only"));
        MEM_CLEANUP struct str *places = mem_array(NULL, PLACES_MAX, sizeof(*places));
        struct json j = {.out = &c->out};
        struct constraint where = {0};
        struct core_reserve r;
        struct err err = {""};
        uint64_t id = 0;
        int e;

        if (turn_full(s->turn)) {
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        if (!read_reserve(c, &r, places) || (c->role == ROLE_USER && !users_may(s, c, &r)) ||
            !may_spend(s, c, r.account))
                return;
        e = constraint_begin(&where, core_symbols(s->core), call_json_text(c->state, "where"), &err);
        if (e != 0) {
                err_prefix(&err, 0, "where");
                call_fail_err(c, 400, "bad_request", &err);
        } else {
                r.where = where.expr;
                e = core_reserve(s->core, &r, check_only, &id, &err);
                if (e)
                        reservation_fail(c, e, &err);
        }
        constraint_end(&where);
        constraint_deinit(&where);
        if (e)
                return;
        json_open(&j, '{');
        json_kbool(&j, "possible", true);
        if (!check_only) {
                json_key(&j, "reservation");
                write_reservation(&j, c, core_reserved(s->core, id));
        }
        json_close(&j, '}');
        c->when = TURN_DURABLE;
        call_io(c, reservations_answer);
}

void api_reservation_new(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);

        (void)s;
        if (!doc)
                return;
        c->state = doc;
        c->state_free = reservations_state_free;
        call_core(c, make_reservation);
}

/* ---- end */

static void end_reservation(struct server *s, struct call *c)
{
        const struct advance *a = reservation_of(s, c);
        struct json j = {.out = &c->out};
        struct err err = {""};

        if (!a)
                return;
        if (c->role == ROLE_USER && !str_eqz(str_of(a->owner), c->who)) {
                call_fail(c, 403, "forbidden", "the reservation is of another user");
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "id", (int64_t)a->id);
        json_close(&j, '}');
        core_reserve_end(s->core, a->id, str_of(c->who), STR_NONE, &err);
        c->when = TURN_DURABLE;
        call_io(c, reservations_answer);
}

void api_reservation_end(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, end_reservation);
}
