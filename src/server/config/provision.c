#include "server/config/provision.h"

#include <ctype.h>
#include <errno.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "server/config/expressions.h"

#define MONEY_MAX 1e9
#define NODES_MAX 100000u
#define NAME_MAX_ 20u /* of a provisioner or a shape; both become part of agents' names */

void config_provision_default(struct config_provision *c)
{
        *c = (struct config_provision){
                .horizon_ms = 600000, .wait_ms = 30000, .hour_micro = -1, .month_micro = -1};
}

void config_provision_deinit(struct config_provision *c)
{
        for (size_t i = 0; i < c->provisioner_count; i++) {
                struct config_provisioner *p = &c->provisioners[i];

                free(p->name);
                free(p->kind);
                free(p->addresses);
                free(p->owners);
                free(p->tags);
                free(p->labels);
                args_deinit(&p->command);
        }
        for (size_t i = 0; i < c->shape_count; i++) {
                free(c->shapes[i].name);
                free(c->shapes[i].attributes);
                free(c->shapes[i].with);
        }
        for (size_t i = 0; i < c->account_count; i++)
                free(c->accounts[i].name);
        *c = (struct config_provision){0};
}

/* ---- values; a missing key leaves the value unchanged */

static int read_money(const struct doc *map, const char *key, int64_t *ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        double v = 0;
        int r = d ? doc_number(d, &v, err) : 0;

        if (d && r == 0 && !(v >= 0 && v <= MONEY_MAX))
                r = doc_refuse(d, err, "must be from 0 to 1000000000");
        if (d && r == 0)
                *ret = (int64_t)(v * 1e6 + 0.5);
        return r;
}

static int read_nodes(const struct doc *map, const char *key, uint32_t *ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        uint64_t n = 0;
        int r = d ? doc_count(d, &n, err) : 0;

        if (d && r == 0 && n > NODES_MAX)
                r = doc_refuse(d, err, "must be at most 100000");
        if (d && r == 0)
                *ret = (uint32_t)n;
        return r;
}

static int provision_read_time(const struct doc *map, const char *key, int64_t least_ms, int64_t *ret,
                               struct err *err)
{
        const struct doc *d = doc_get(map, key);
        uint64_t ms = 0;
        int r = d ? doc_duration(d, &ms, err) : 0;

        if (d && r == 0 && (int64_t)ms < least_ms)
                r = doc_refuse(d, err, "must be at least a second");
        if (d && r == 0)
                *ret = (int64_t)ms;
        return r;
}

static bool provision_name_valid(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!islower((unsigned char)s.p[i]) && !isdigit((unsigned char)s.p[i]))
                        return false;
        return s.n > 0 && s.n <= NAME_MAX_;
}

static int need_name(const struct doc *d, struct err *err)
{
        return provision_name_valid(d->key)
                       ? 0
                       : doc_refuse(d, err, "is not a name here: up to 20 small letters and digits");
}

static int provision_need_map(const struct doc *d, struct err *err)
{
        return d->kind == DOC_MAP ? 0 : doc_refuse(d, err, "must be a map");
}

/* Reads words and joins them with commas. */
static int provision_read_words(const struct doc *map, const char *key, char **ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        ARGS_CLEANUP struct args words = {0};
        struct buf text = {0};
        int r = d ? doc_words(d, args_add_word, &words, err) : 0;

        if (!d || r != 0)
                return r;
        for (size_t i = 0; i < words.n; i++)
                buf_printf(&text, "%s%s", i ? "," : "", words.v[i]);
        *ret = buf_take(&text);
        return 0;
}

/* Writes settings for the provider as JSON: true and false without quotes as such, other words as texts. */
static void write_json(struct json *j, const struct doc *d)
{
        bool logical = !d->quoted && (str_eqz(d->text, "true") || str_eqz(d->text, "false"));

        if (d->kind == DOC_WORD && logical) {
                json_raw(j, d->text);
                return;
        }
        if (d->kind == DOC_WORD) {
                json_str(j, d->text);
                return;
        }
        json_open(j, d->kind == DOC_MAP ? '{' : '[');
        for (const struct doc *x = d->first; x; x = x->next) {
                if (d->kind == DOC_MAP)
                        json_keys(j, x->key);
                write_json(j, x);
        }
        json_close(j, d->kind == DOC_MAP ? '}' : ']');
}

/* ---- shapes */

static int provision_read_attributes(const struct doc *map, char **ret, struct err *err)
{
        const struct doc *d = doc_get(map, "attributes");
        struct str said;
        int r = d ? config_attributes_check(d, err) : 0;

        if (d && r == 0)
                r = doc_text(d, &said, err);
        if (d && r == 0)
                *ret = str_dupz(said);
        return r;
}

static int read_room(const struct doc *map, struct config_shape *s, struct err *err)
{
        const struct doc *cpus = doc_get(map, "cpus"), *memory = doc_get(map, "memory"),
                         *disk = doc_get(map, "disk");
        uint64_t n = 0, bytes = 0, room = 0;
        int r = cpus ? doc_count(cpus, &n, err) : doc_refuse(map, err, "needs cpus: how many it has");

        if (r == 0 && (n == 0 || n > 1u << 20))
                r = doc_refuse(cpus, err, "must be from 1 to 1048576");
        if (r == 0)
                r = memory ? doc_size(memory, &bytes, err)
                           : doc_refuse(map, err, "needs memory: how much it has");
        if (r == 0 && disk)
                r = doc_size(disk, &room, err);
        s->cpus = (int64_t)n;
        s->memory_mib = (int64_t)(bytes >> 20);
        s->disk_kib = (int64_t)(room >> 10);
        return r;
}

static int read_shape(struct config_provision *c, size_t provisioner, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"cpus", "memory",     "disk", "price", "min",
                                           "max",  "attributes", "with", NULL};
        const struct doc *with = doc_get(d, "with");
        struct buf text = {0};
        struct json j = {.out = &text};
        struct config_shape *s;
        int r = need_name(d, err);

        if (r == 0)
                r = provision_need_map(d, err);
        if (r == 0)
                r = doc_only(d, keys, err);
        if (r == 0 && c->shape_count == CONFIG_SHAPES_MAX)
                r = doc_refuse(d, err, "is one shape too many: there may be 64");
        if (r != 0)
                return r;
        s = &c->shapes[c->shape_count++];
        *s = (struct config_shape){.provisioner = provisioner, .name = str_dupz(d->key), .max = NODES_MAX};
        r = read_room(d, s, err);
        if (r == 0)
                r = read_money(d, "price", &s->price_micro, err);
        if (r == 0)
                r = read_nodes(d, "min", &s->min, err);
        if (r == 0)
                r = read_nodes(d, "max", &s->max, err);
        if (r == 0 && s->min > s->max)
                r = doc_refuse(doc_get(d, "min"), err, "must not be more than max");
        if (r == 0)
                r = provision_read_attributes(d, &s->attributes, err);
        if (r == 0 && with)
                r = provision_need_map(with, err);
        if (r == 0 && with) {
                write_json(&j, with);
                s->with = buf_take(&text);
        }
        return r;
}

/* ---- provisioners */

static int read_times(const struct doc *d, struct config_provisioner *p, struct err *err)
{
        int r = provision_read_time(d, "poll", 1000, &p->poll_ms, err);

        if (r == 0)
                r = provision_read_time(d, "timeout", 1000, &p->timeout_ms, err);
        if (r == 0)
                r = provision_read_time(d, "boot_limit", 1000, &p->boot_limit_ms, err);
        if (r == 0)
                r = provision_read_time(d, "period", 1000, &p->period_ms, err);
        if (r == 0)
                r = provision_read_time(d, "retry", 1000, &p->retry_ms, err);
        if (r == 0)
                r = provision_read_time(d, "idle_after", 0, &p->idle_ms, err);
        p->stop_ms = 2 * p->poll_ms < p->period_ms ? 2 * p->poll_ms : p->period_ms;
        if (r == 0)
                r = provision_read_time(d, "stop_before", 0, &p->stop_ms, err);
        return r;
}

static int read_kind(const struct doc *d, struct config_provisioner *p, struct err *err)
{
        const struct doc *kind = doc_get(d, "kind"), *command = doc_get(d, "command");
        struct str text;
        int r = kind ? doc_text(kind, &text, err) : doc_refuse(d, err, "needs kind: exec or process");

        if (r != 0)
                return r;
        if (!str_eqz(text, "exec") && !str_eqz(text, "process"))
                return doc_refuse(kind, err, "must be exec or process");
        p->kind = str_dupz(text);
        if (command)
                r = doc_words(command, args_add_word, &p->command, err);
        if (r == 0 && str_eqz(text, "exec") && p->command.n == 0)
                r = doc_refuse(d, err, "needs command: the program that starts and stops its machines");
        if (r == 0 && str_eqz(text, "process") && command)
                r = doc_refuse(command, err, "goes with kind exec only");
        if (r == 0)
                r = provision_read_words(d, "server", &p->addresses, err);
        if (r == 0 && str_eqz(text, "exec") && !p->addresses)
                r = doc_refuse(d, err, "needs server: HOST:PORT, where its agents reach this server");
        return r;
}

static int read_provisioner(struct config_provision *c, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"kind",        "command",    "server", "max_nodes",
                                           "poll",        "timeout",    "period", "idle_after",
                                           "stop_before", "boot_limit", "owners", "tags",
                                           "labels",      "shapes",     "retry",  NULL};
        const struct doc *shapes = doc_get(d, "shapes");
        size_t at = c->provisioner_count;
        struct config_provisioner *p = &c->provisioners[at];
        int r = need_name(d, err);

        if (r == 0)
                r = provision_need_map(d, err);
        if (r == 0)
                r = doc_only(d, keys, err);
        if (r == 0 && at == CONFIG_PROVISIONERS_MAX)
                r = doc_refuse(d, err, "is one provisioner too many: there may be 16");
        if (r == 0 && !shapes)
                r = doc_refuse(d, err, "needs shapes: what machines it can start");
        if (r == 0)
                r = provision_need_map(shapes, err);
        if (r != 0)
                return r;
        c->provisioner_count++;
        *p = (struct config_provisioner){.name = str_dupz(d->key),
                                         .max = 10,
                                         .poll_ms = 10000,
                                         .timeout_ms = 120000,
                                         .boot_limit_ms = 600000,
                                         .period_ms = 60000,
                                         .idle_ms = 300000,
                                         .retry_ms = 60000};
        r = read_kind(d, p, err);
        if (r == 0)
                r = read_nodes(d, "max_nodes", &p->max, err);
        if (r == 0)
                r = read_times(d, p, err);
        if (r == 0)
                r = provision_read_words(d, "owners", &p->owners, err);
        if (r == 0)
                r = provision_read_words(d, "tags", &p->tags, err);
        if (r == 0)
                r = provision_read_words(d, "labels", &p->labels, err);
        for (const struct doc *x = shapes->first; x && r == 0; x = x->next)
                r = read_shape(c, at, x, err);
        return r;
}

int config_provisioners_read(void *place, const struct doc *d, struct err *err)
{
        int r = provision_need_map(d, err);

        for (const struct doc *x = d->first; x && r == 0; x = x->next)
                r = read_provisioner(place, x, err);
        return r;
}

/* ---- limits for all provisioners */

static int read_accounts(struct config_provision *c, const struct doc *d, struct err *err)
{
        int r = provision_need_map(d, err);

        for (const struct doc *x = d->first; x && r == 0; x = x->next) {
                uint64_t n = 0;

                if (c->account_count == CONFIG_PLAN_ACCOUNTS)
                        return doc_refuse(x, err, "is one account too many: there may be 64");
                r = doc_count(x, &n, err);
                if (r == 0 && n > NODES_MAX)
                        r = doc_refuse(x, err, "must be at most 100000");
                if (r != 0)
                        return r;
                c->accounts[c->account_count].name = str_dupz(x->key);
                c->accounts[c->account_count++].max = (uint32_t)n;
        }
        return r;
}

int config_provision_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"horizon",      "wait",     "max_nodes", "budget_hour",
                                           "budget_month", "accounts", NULL};
        struct config_provision *c = place;
        const struct doc *accounts = doc_get(d, "accounts");
        int r = doc_only(d, keys, err);

        if (r == 0)
                r = provision_read_time(d, "horizon", 1000, &c->horizon_ms, err);
        if (r == 0)
                r = provision_read_time(d, "wait", 0, &c->wait_ms, err);
        if (r == 0)
                r = read_nodes(d, "max_nodes", &c->max, err);
        if (r == 0)
                r = read_money(d, "budget_hour", &c->hour_micro, err);
        if (r == 0)
                r = read_money(d, "budget_month", &c->month_micro, err);
        return r == 0 && accounts ? read_accounts(c, accounts, err) : r;
}
