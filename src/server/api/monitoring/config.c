/* GET /v1/config: the presets of the settings that hold now, and which of them the caller may use; and
 * /v1/config/time_limit: the time that they give to jobs. */
#include <errno.h>

#include "server/api/routes.h"
#include "server/config/config.h"
#include "server/loop/server.h"

static void write_users(struct json *j, const struct preset *x)
{
        json_key(j, "users");
        json_open(j, '[');
        for (size_t i = 0; i < x->user_count; i++)
                json_strz(j, x->users[i]);
        json_close(j, ']');
}

static void write_preset(struct json *j, const char *kind, struct str default_name, const struct preset *x,
                         const char *who)
{
        json_open(j, '{');
        json_kstrz(j, "kind", kind);
        json_kstr(j, "name", x->name);
        json_kbool(j, "may_use", preset_allows(x, who));
        json_kbool(j, "default", str_ieq(default_name, x->name));
        write_users(j, x);
        if (x->condition.n)
                json_kstr(j, "condition", x->condition);
        if (x->environment.n)
                json_kstr(j, "environment", x->environment);
        if (x->member_count) {
                json_key(j, "queues");
                json_open(j, '[');
                for (size_t i = 0; i < x->member_count; i++)
                        json_str(j, x->members[i].queue->name);
                json_close(j, ']');
        }
        json_key(j, "attributes");
        json_open(j, '{');
        for (size_t i = 0; i < x->attribute_count; i++) {
                json_keys(j, x->attributes[i].name);
                json_str(j, x->attributes[i].text);
        }
        json_close(j, '}');
        json_close(j, '}');
}

void api_config(struct server *s, struct call *c)
{
        const struct config *settings = server_settings(s);
        const struct config_presets *p = &settings->presets;
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_kstrz(&j, "placement", core_placement_name(s->config.placement));
        json_key(&j, "presets");
        json_open(&j, '[');
        for (int k = 0; k < PRESET_KINDS; k++)
                for (size_t i = 0; i < p->kinds[k].count; i++)
                        write_preset(&j, preset_kind_name((enum preset_kind)k), p->defaults[k],
                                     p->kinds[k].v[i], c->who);
        for (size_t i = 0; i < p->catalogs.count; i++)
                write_preset(&j, "catalog", STR_NONE, p->catalogs.v[i], c->who);
        for (size_t i = 0; i < p->recorders.count; i++)
                write_preset(&j, "recorder", STR_NONE, p->recorders.v[i], c->who);
        json_close(&j, ']');
        json_key(&j, "defaults");
        json_open(&j, '{');
        for (int k = 0; k < PRESET_KINDS; k++)
                if (p->defaults[k].n)
                        json_kstr(&j, preset_kind_name((enum preset_kind)k), p->defaults[k]);
        json_close(&j, '}');
        json_close(&j, '}');
        call_reply(c);
}

void api_time_limit(struct server *s, struct call *c)
{
        struct str named[PRESET_KINDS];
        struct json j = {.out = &c->out};
        struct preset_time limit;
        struct err err = {0};
        int r;

        for (int k = 0; k < PRESET_KINDS; k++)
                named[k] = call_query(c, preset_kind_name((enum preset_kind)k));
        r = presets_time_limit(&server_settings(s)->presets, c->who, named, &limit, &err);
        if (r != 0) {
                call_fail_err(c, r == -EACCES ? 403 : 400, r == -EACCES ? "forbidden" : "bad_parameter",
                              &err);
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "seconds", (int64_t)limit.seconds);
        if (limit.seconds)
                json_kstrz(&j, "of", limit.of);
        json_close(&j, '}');
        call_reply(c);
}
