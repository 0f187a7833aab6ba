/* Reads the sections. presets_apply.c applies presets to a request. */
#include "server/config/presets.h"

#include <errno.h>

#include "base/buf.h"
#include "base/format/doc.h"
#include "base/job/args.h"
#include "catalog/query.h"
#include "classad/expr.h"
#include "classad/print.h"
#include "core/accounts/share.h"
#include "core/core.h"
#include "jdl/condor/keywords.h"
#include "jdl/sums/sums.h"

#define PRESETS_MAX    1000u /* of one kind */
#define NAME_MAX_BYTES 64u
#define TEXT_MAX       65536u

static const struct kind {
        const char *name, *attribute;
} kinds[PRESET_KINDS] = {
        [PRESET_INITIALIZER] = {"initializer", "JobInitializer"},
        [PRESET_APPLICATION] = {"application", "JobApplication"},
        [PRESET_DISPATCHER] = {"dispatcher", "JobDispatcher"},
        [PRESET_QUEUE] = {"virtual_queue", "JobVirtualQueue"},
        [PRESET_POLICY] = {"policy", "JobPolicy"},
};

const char *preset_kind_name(enum preset_kind kind)
{
        return kinds[kind].name;
}

const char *preset_kind_attribute(enum preset_kind kind)
{
        return kinds[kind].attribute;
}

bool preset_is_attribute(struct str name)
{
        for (int k = 0; k < PRESET_KINDS; k++)
                if (str_ieqz(name, kinds[k].attribute))
                        return true;
        return false;
}

static void presets_list_deinit(struct preset_list *l)
{
        for (size_t i = 0; i < l->count; i++) {
                free(l->v[i]->users);
                free(l->v[i]->attributes);
                free(l->v[i]->members);
                free(l->v[i]);
        }
        free(l->v);
}

void config_presets_deinit(struct config_presets *p)
{
        for (int k = 0; k < PRESET_KINDS; k++)
                presets_list_deinit(&p->kinds[k]);
        presets_list_deinit(&p->catalogs);
        presets_list_deinit(&p->recorders);
        arena_deinit(&p->arena);
        *p = (struct config_presets){.defaults_line = 0};
}

static const struct preset *list_find(const struct preset_list *l, struct str name)
{
        for (size_t i = 0; i < l->count; i++)
                if (str_ieq(l->v[i]->name, name))
                        return l->v[i];
        return NULL;
}

const struct preset *preset_find(const struct config_presets *p, enum preset_kind kind, struct str name)
{
        return list_find(&p->kinds[kind], name);
}

static bool has_user(const struct preset *x, struct str who)
{
        for (size_t i = 0; i < x->user_count; i++)
                if (share_is_user(x->users[i], who))
                        return true;
        return x->user_count == 0;
}

bool preset_allows(const struct preset *x, const char *who)
{
        return has_user(x, str_of(who));
}

int presets_catalog_query(const struct config_presets *p, const char *who, struct str name, struct str query,
                          struct buf *ret, struct err *err)
{
        const struct preset *catalog = list_find(&p->catalogs, name);

        if (name.n && !catalog)
                return err_set(err, -ENOENT, "there is no catalog \"" STR_FMT "\" in the server's settings",
                               STR_ARG(str_head(name, 100)));
        if (name.n && !preset_allows(catalog, who))
                return err_set(err, -EACCES, "you may not use the catalog \"" STR_FMT "\"",
                               STR_ARG(str_head(name, 100)));
        if (name.n)
                buf_str(ret, catalog->condition);
        if (ret->n && query.n)
                buf_char(ret, ',');
        buf_str(ret, query);
        return 0;
}

static bool has_keyword(const struct preset *recorder, const char *keyword)
{
        for (size_t i = 0; i < recorder->attribute_count; i++)
                if (str_ieqz(recorder->attributes[i].name, keyword))
                        return true;
        return recorder->attribute_count == 0;
}

bool presets_record(const struct config_presets *p, struct str who, const char *keyword)
{
        for (size_t i = 0; i < p->recorders.count; i++)
                if (has_user(p->recorders.v[i], who) && has_keyword(p->recorders.v[i], keyword))
                        return true;
        return !p->has_recorders;
}

/* ---- reading */

static bool presets_name_ok(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!((s.p[i] >= '0' && s.p[i] <= '9') || ((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'z') ||
                      s.p[i] == '_' || s.p[i] == '-' || s.p[i] == '.'))
                        return false;
        return s.n > 0 && s.n <= NAME_MAX_BYTES && !str_ieqz(s, PRESET_NONE);
}

struct reading {
        struct config_presets *presets;
        struct preset *preset;
};

static int presets_add_user(void *arg, struct str word, struct err *err)
{
        struct reading *r = arg;
        struct preset *x = r->preset;

        if (str_find(word, '@') < 0 && !str_eqz(word, "*"))
                return err_set(err, -EINVAL, "'" STR_FMT "' is not a user: write name@domain, *@domain or *",
                               STR_ARG(word));
        MEM_GROW(x->users, x->user_cap, x->user_count + 1);
        x->users[x->user_count++] = arena_str(&r->presets->arena, word).p;
        return 0;
}

static void add_attribute(struct reading *r, struct str name, struct str text)
{
        struct preset *x = r->preset;

        MEM_GROW(x->attributes, x->attribute_cap, x->attribute_count + 1);
        x->attributes[x->attribute_count++] = (struct preset_attribute){arena_str(&r->presets->arena, name),
                                                                        arena_str(&r->presets->arena, text)};
}

/* Adds `text` as a string expression. */
static void presets_add_string(struct reading *r, const char *name, struct str text)
{
        BUF_CLEANUP struct buf literal = {0};

        print_string(&literal, text);
        add_attribute(r, str_of(name), buf_view(&literal));
}

/* Checks that the text is an expression without macros, which would be expanded in a job that has macros. */
static int check_expression(const struct doc *d, struct str text, struct err *err)
{
        struct symbols *symbols = symbols_new();
        struct expr *x = NULL;
        struct err why = {0};
        int r = text.n > TEXT_MAX ? err_set(&why, -E2BIG, "is longer than %u bytes", TEXT_MAX)
                : str_search(text, STR("$(")) >= 0
                        ? err_set(&why, -EINVAL, "has \"$(\", which is a macro of submit files")
                        : expr_parse(symbols, text, &x, &why);

        expr_free(x);
        symbols_free(symbols);
        return r == 0 ? 0 : doc_refuse(d, err, why.text);
}

static int presets_read_attributes(struct reading *r, const struct doc *map, struct err *err)
{
        int rc = !map || map->kind == DOC_MAP ? 0 : doc_refuse(map, err, "must be a map of attributes");

        for (const struct doc *d = rc == 0 && map ? map->first : NULL; d && rc == 0; d = d->next) {
                struct str text = STR_NONE;

                if (!presets_name_ok(d->key) || str_find(d->key, '-') >= 0 || str_find(d->key, '.') >= 0)
                        return doc_refuse(d, err, "is not the name of an attribute");
                rc = doc_text(d, &text, err);
                if (rc == 0)
                        rc = check_expression(d, text, err);
                if (rc == 0)
                        add_attribute(r, d->key, text);
        }
        return rc;
}

/* Reads the variables in the form that the attribute Environment has within its quotes. */
static int read_environment(struct reading *r, const struct doc *map, struct err *err)
{
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf raw = {0}, literal = {0};
        int rc = !map || map->kind == DOC_MAP ? 0 : doc_refuse(map, err, "must be a map of variables");

        for (const struct doc *d = rc == 0 && map ? map->first : NULL; d && rc == 0; d = d->next) {
                BUF_CLEANUP struct buf word = {0};
                struct str value = STR_NONE;

                rc = d->empty ? 0 : doc_text(d, &value, err);
                if (rc == 0 && (d->key.n == 0 || str_find(d->key, '=') >= 0))
                        rc = doc_refuse(d, err, "is not the name of a variable");
                if (rc == 0 &&
                    (str_search(value, STR("$(")) >= 0 || memchr(value.p ? value.p : "", '\n', value.n)))
                        rc = doc_refuse(d, err,
                                        "has \"$(\" or a line break, which a variable here cannot have");
                buf_printf(&word, STR_FMT "=" STR_FMT, STR_ARG(d->key), STR_ARG(value));
                args_add(&words, buf_view(&word));
        }
        if (rc != 0 || words.n == 0)
                return rc;
        args_join_v2(&raw, &words);
        print_string(&literal, buf_view(&raw));
        r->preset->environment =
                arena_str(&r->presets->arena, str_make(literal.p + 1, literal.n - 2)); /* without quotes */
        return 0;
}

/* Adds a clause to the preset's condition. */
static void presets_add_condition(struct reading *r, struct str text)
{
        BUF_CLEANUP struct buf all = {0};

        if (r->preset->condition.n)
                buf_printf(&all, STR_FMT " && ", STR_ARG(r->preset->condition));
        buf_str(&all, text);
        r->preset->condition = arena_str(&r->presets->arena, buf_view(&all));
}

/* Reads a key whose value is a condition on places. */
static int read_condition(struct reading *r, const struct doc *d, struct err *err)
{
        BUF_CLEANUP struct buf clause = {0};
        struct str text = STR_NONE;
        int rc = d ? doc_text(d, &text, err) : 0;

        if (rc != 0 || !d)
                return rc;
        rc = check_expression(d, text, err);
        buf_printf(&clause, "(" STR_FMT ")", STR_ARG(text));
        if (rc == 0)
                presets_add_condition(r, buf_view(&clause));
        return rc;
}

/* Reads a key whose value is the name of another preset, which becomes an attribute. */
static int presets_read_name(struct reading *r, const struct doc *map, enum preset_kind kind, struct err *err)
{
        const struct doc *d = doc_get(map, kinds[kind].name);
        struct str text = STR_NONE;
        int rc = d ? doc_text(d, &text, err) : 0;

        if (rc == 0 && d && !presets_name_ok(text) && !str_ieqz(text, PRESET_NONE))
                rc = doc_refuse(d, err, "must be a name: letters, digits, '_', '-' and '.'");
        if (rc == 0 && d)
                presets_add_string(r, kinds[kind].attribute, text);
        return rc;
}

static int read_initializer(struct reading *r, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users",      "attributes",    "environment", "application",
                                           "dispatcher", "virtual_queue", "policy",      NULL};
        int rc = doc_only(d, keys, err);

        if (rc == 0)
                rc = presets_read_attributes(r, doc_get(d, "attributes"), err);
        if (rc == 0)
                rc = read_environment(r, doc_get(d, "environment"), err);
        for (int k = PRESET_APPLICATION; rc == 0 && k < PRESET_KINDS; k++)
                rc = presets_read_name(r, d, (enum preset_kind)k, err);
        return rc;
}

static int read_application(struct reading *r, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users",      "command",      "arguments", "environment",
                                           "attributes", "requirements", NULL};
        const struct doc *command = doc_get(d, "command"), *arguments = doc_get(d, "arguments");
        struct str text = STR_NONE;
        int rc = doc_only(d, keys, err);

        if (rc == 0 && command)
                rc = doc_text(command, &text, err);
        if (rc == 0 && (!command || !str_starts(text, STR("/"))))
                rc = doc_refuse(command ? command : d, err,
                                command ? "must be an absolute path: the program as the places have it"
                                        : "needs 'command', the absolute path of a program");
        if (rc != 0)
                return rc;
        presets_add_string(r, "Cmd", text);
        add_attribute(r, STR("TransferExecutable"), STR("false"));
        if (arguments)
                rc = doc_text(arguments, &text, err);
        if (rc == 0 && arguments)
                presets_add_string(r, "Arguments", text);
        if (rc == 0)
                rc = read_environment(r, doc_get(d, "environment"), err);
        if (rc == 0)
                rc = presets_read_attributes(r, doc_get(d, "attributes"), err);
        return rc ? rc : read_condition(r, doc_get(d, "requirements"), err);
}

static int read_dispatcher(struct reading *r, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users", "places", NULL};
        int rc = doc_only(d, keys, err);

        if (rc == 0 && !doc_get(d, "places"))
                rc = doc_refuse(d, err, "needs 'places', a condition over places");
        return rc ? rc : read_condition(r, doc_get(d, "places"), err);
}

/* Limits a job's requested amount; a job without a request is allowed. */
static void add_bound(struct reading *r, const char *attribute, uint64_t most)
{
        BUF_CLEANUP struct buf clause = {0};

        buf_printf(&clause, "(MY.%s =?= undefined || MY.%s <= %llu)", attribute, attribute,
                   (unsigned long long)most);
        presets_add_condition(r, buf_view(&clause));
}

static int read_queue(struct reading *r, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users",      "places",       "dispatcher", "time_limit",
                                           "max_memory", "search_order", NULL};
        const struct doc *time = doc_get(d, "time_limit"), *memory = doc_get(d, "max_memory"),
                         *order = doc_get(d, "search_order"), *dispatcher = doc_get(d, "dispatcher");
        BUF_CLEANUP struct buf text = {0};
        struct str name = STR_NONE;
        uint64_t ms = 0, bytes = 0;
        int rc = doc_only(d, keys, err);

        r->preset->order = UINT64_MAX;
        if (rc == 0 && !doc_get(d, "places") && !dispatcher)
                rc = doc_refuse(d, err, "needs 'places', a condition over places, or 'dispatcher'");
        if (rc == 0)
                rc = read_condition(r, doc_get(d, "places"), err);
        if (rc == 0 && dispatcher)
                rc = doc_text(dispatcher, &name, err);
        r->preset->dispatcher = arena_str(&r->presets->arena, name);
        if (rc == 0 && time)
                rc = doc_duration(time, &ms, err);
        if (rc == 0 && memory)
                rc = doc_size(memory, &bytes, err);
        if (rc == 0 && order)
                rc = doc_count(order, &r->preset->order, err);
        if (rc == 0 && ((time && ms < 1000) || (memory && bytes < 1 << 20)))
                rc = doc_refuse(time && ms < 1000 ? time : memory, err,
                                "must be a second, or 1 MiB, or more");
        if (rc != 0)
                return rc;
        buf_printf(&text, "%llu", (unsigned long long)(ms / 1000));
        if (memory)
                add_bound(r, "RequestMemory", bytes >> 20);
        if (time)
                add_bound(r, "AllowedExecuteDuration", ms / 1000);
        if (time)
                add_attribute(r, STR("AllowedExecuteDuration"), buf_view(&text));
        return 0;
}

static int add_member(void *arg, struct str word, struct err *err)
{
        struct reading *r = arg;
        struct preset *x = r->preset;

        if (x->member_count == PRESETS_MAX)
                return err_set(err, -E2BIG, "more than %u virtual queues", PRESETS_MAX);
        MEM_GROW(x->members, x->member_cap, x->member_count + 1);
        x->members[x->member_count] =
                (struct preset_member){.name = arena_str(&r->presets->arena, word), .order = x->member_count};
        x->member_count++;
        return 0;
}

static int read_policy(struct reading *r, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users", "placement", "queues", "attributes", NULL};
        const struct doc *placement = doc_get(d, "placement"), *queues = doc_get(d, "queues");
        enum core_placement parsed;
        struct str text = STR_NONE;
        int rc = doc_only(d, keys, err);

        if (rc == 0 && placement)
                rc = doc_text(placement, &text, err);
        if (rc == 0 && placement && core_placement_of_job(text, &parsed) != 0)
                rc = doc_refuse(placement, err, "must be " CORE_PLACEMENTS_OF_JOBS);
        if (rc == 0 && queues)
                rc = doc_words(queues, add_member, r, err);
        if (rc == 0)
                rc = presets_read_attributes(r, doc_get(d, "attributes"), err);
        if (rc == 0 && placement)
                presets_add_string(r, "PlacementPolicy", text);
        return rc;
}

/* The conditions of a user's query are put behind those of the catalog. */
static int read_catalog(struct reading *r, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users", "query", NULL};
        const struct doc *query = doc_get(d, "query");
        struct catalog_query *q = NULL;
        struct str text = STR_NONE;
        struct err why = {0};
        int rc = doc_only(d, keys, err);

        if (rc == 0 && query)
                rc = doc_text(query, &text, err);
        if (rc != 0 || !text.n)
                return rc;
        if (catalog_query_parse(text, &q, &why) != 0)
                return doc_refuse(query, err, why.text);
        if (q->where.n || q->limit)
                rc = doc_refuse(query, err, "must have no where and no limit: a user's query follows");
        catalog_query_free(q);
        r->preset->condition = arena_str(&r->presets->arena, text);
        return rc;
}

/* Several keywords may set one attribute: they are counted as the first of the table. */
static const struct keyword *counted_as(const struct keyword *k)
{
        for (size_t i = 0; k->attribute && i < keyword_count; i++)
                if (keywords[i].attribute && keywords[i].effect == KEYWORD_ACTS &&
                    str_ieqz(str_of(keywords[i].attribute), k->attribute))
                        return &keywords[i];
        return k;
}

static int add_keyword(void *arg, struct str word, struct err *err)
{
        const struct str sums = STR(SUMS_KEYWORD_PREFIX);
        const struct keyword *k = keyword_find(word);
        struct reading *r = arg;

        if (str_starts(word, sums)) {
                if (!sums_is_keyword(str_skip(word, sums.n)))
                        return err_set(err, -EINVAL,
                                       "'" STR_FMT
                                       "' is no part of SUMS's descriptions: write " SUMS_KEYWORD_PREFIX
                                       "filesPerHour for an attribute of job, " SUMS_KEYWORD_PREFIX
                                       "SandBox or " SUMS_KEYWORD_PREFIX "input.nFiles for others",
                                       STR_ARG(word));
                add_attribute(r, word, STR("true"));
                return 0;
        }
        if (!k)
                return err_set(err, -EINVAL, "'" STR_FMT "' is no keyword of submit files", STR_ARG(word));
        if (k->effect != KEYWORD_ACTS)
                return err_set(err, -EINVAL, "'" STR_FMT "' has no effect on requests, and is not counted",
                               STR_ARG(word));
        if (counted_as(k) != k)
                return err_set(err, -EINVAL, "'" STR_FMT "' is counted as %s: write that", STR_ARG(word),
                               counted_as(k)->name);
        add_attribute(r, str_of(k->name), STR("true"));
        return 0;
}

static int read_recorder(struct reading *r, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users", "keywords", NULL};
        const struct doc *words = doc_get(d, "keywords");
        int rc = doc_only(d, keys, err);

        return rc == 0 && words ? doc_words(words, add_keyword, r, err) : rc;
}

static int read_section(struct config_presets *p, struct preset_list *list, const struct doc *d,
                        int (*read)(struct reading *r, const struct doc *d, struct err *err), struct err *err)
{
        int rc = d->kind == DOC_MAP || d->empty ? doc_no_twins(d, err)
                                                : doc_refuse(d, err, "must be a map of names");

        if (rc == 0 && d->count > PRESETS_MAX)
                rc = doc_refuse(d, err, "has more than 1000 names");
        for (const struct doc *one = d->first; one && rc == 0; one = one->next) {
                struct reading r = {.presets = p};
                const struct doc *users = doc_get(one, "users");

                if (!presets_name_ok(one->key))
                        return doc_refuse(one, err,
                                          "is no name: letters, digits, '_', '-' and '.', and not \"none\"");
                if (one->kind != DOC_MAP)
                        return doc_refuse(one, err, "must be a map");
                MEM_GROW(list->v, list->cap, list->count + 1);
                list->v[list->count++] = r.preset = mem_new(struct preset);
                *r.preset = (struct preset){.name = arena_str(&p->arena, one->key),
                                            .file = arena_str(&p->arena, str_of(one->file)),
                                            .line = one->line};
                if (users)
                        rc = doc_words(users, presets_add_user, &r, err);
                if (rc == 0)
                        rc = read(&r, one, err);
        }
        return rc;
}

int config_presets_read_initializers(void *at, const struct doc *d, struct err *err)
{
        struct config_presets *p = at;

        return read_section(p, &p->kinds[PRESET_INITIALIZER], d, read_initializer, err);
}

int config_presets_read_applications(void *at, const struct doc *d, struct err *err)
{
        struct config_presets *p = at;

        return read_section(p, &p->kinds[PRESET_APPLICATION], d, read_application, err);
}

int config_presets_read_dispatchers(void *at, const struct doc *d, struct err *err)
{
        struct config_presets *p = at;

        return read_section(p, &p->kinds[PRESET_DISPATCHER], d, read_dispatcher, err);
}

int config_presets_read_queues(void *at, const struct doc *d, struct err *err)
{
        struct config_presets *p = at;

        return read_section(p, &p->kinds[PRESET_QUEUE], d, read_queue, err);
}

int config_presets_read_policies(void *at, const struct doc *d, struct err *err)
{
        struct config_presets *p = at;

        return read_section(p, &p->kinds[PRESET_POLICY], d, read_policy, err);
}

int config_presets_read_catalogs(void *at, const struct doc *d, struct err *err)
{
        struct config_presets *p = at;

        return read_section(p, &p->catalogs, d, read_catalog, err);
}

int config_presets_read_recorders(void *at, const struct doc *d, struct err *err)
{
        struct config_presets *p = at;

        p->has_recorders = true;
        return read_section(p, &p->recorders, d, read_recorder, err);
}

int config_presets_read_defaults(void *at, const struct doc *d, struct err *err)
{
        const char *keys[PRESET_KINDS + 1] = {NULL};
        struct config_presets *p = at;
        int rc;

        for (int k = 0; k < PRESET_KINDS; k++)
                keys[k] = kinds[k].name;
        rc = doc_only(d, keys, err);
        for (int k = 0; rc == 0 && k < PRESET_KINDS; k++) {
                const struct doc *one = doc_get(d, kinds[k].name);
                struct str text = STR_NONE;

                rc = one ? doc_text(one, &text, err) : 0;
                p->defaults[k] = rc == 0 ? arena_str(&p->arena, text) : STR_NONE;
        }
        p->defaults_file = arena_str(&p->arena, str_of(d->file));
        p->defaults_line = d->line;
        return rc;
}

/* ---- references */

static int missing(struct str file, unsigned line, enum preset_kind kind, struct str name, struct err *err)
{
        return err_set(err, -EINVAL, STR_FMT ":%u: there is no %s '" STR_FMT "'", STR_ARG(file), line,
                       kinds[kind].name, STR_ARG(name));
}

/* Returns the name in an attribute that read_name has made. */
static struct str named(const struct preset *x, enum preset_kind kind)
{
        for (size_t i = 0; i < x->attribute_count; i++)
                if (str_ieqz(x->attributes[i].name, kinds[kind].attribute))
                        return str_make(x->attributes[i].text.p + 1, x->attributes[i].text.n - 2);
        return STR_NONE;
}

static bool exists(const struct config_presets *p, enum preset_kind kind, struct str name)
{
        enum core_placement parsed;

        return name.n == 0 || str_ieqz(name, PRESET_NONE) || preset_find(p, kind, name) ||
               (kind == PRESET_POLICY && core_placement_of_job(name, &parsed) == 0);
}

static void sort_members(struct preset *x)
{
        for (size_t i = 1; i < x->member_count; i++)
                for (size_t k = i; k > 0 && x->members[k].order < x->members[k - 1].order; k--) {
                        struct preset_member m = x->members[k];

                        x->members[k] = x->members[k - 1];
                        x->members[k - 1] = m;
                }
}

static int link_members(struct config_presets *p, struct preset *x, struct err *err)
{
        for (size_t i = 0; i < x->member_count; i++) {
                struct preset_member *m = &x->members[i];

                m->queue = preset_find(p, PRESET_QUEUE, m->name);
                if (!m->queue)
                        return missing(x->file, x->line, PRESET_QUEUE, m->name, err);
                if (m->queue->order != UINT64_MAX)
                        m->order = m->queue->order;
        }
        sort_members(x);
        return 0;
}

/* Adds the dispatcher's condition to a virtual queue that has a dispatcher. */
static int link_dispatcher(struct config_presets *p, struct preset *x, struct err *err)
{
        struct reading r = {p, x};
        const struct preset *d = preset_find(p, PRESET_DISPATCHER, x->dispatcher);

        if (x->dispatcher.n && !d)
                return missing(x->file, x->line, PRESET_DISPATCHER, x->dispatcher, err);
        if (d)
                presets_add_condition(&r, d->condition);
        return 0;
}

int config_presets_link(struct config_presets *p, struct err *err)
{
        int rc = 0;

        for (size_t i = 0; i < p->kinds[PRESET_QUEUE].count && rc == 0; i++)
                rc = link_dispatcher(p, p->kinds[PRESET_QUEUE].v[i], err);
        for (size_t i = 0; i < p->kinds[PRESET_POLICY].count && rc == 0; i++)
                rc = link_members(p, p->kinds[PRESET_POLICY].v[i], err);
        for (size_t i = 0; i < p->kinds[PRESET_INITIALIZER].count && rc == 0; i++) {
                const struct preset *x = p->kinds[PRESET_INITIALIZER].v[i];

                for (int k = PRESET_APPLICATION; k < PRESET_KINDS && rc == 0; k++)
                        if (!exists(p, (enum preset_kind)k, named(x, (enum preset_kind)k)))
                                rc = missing(x->file, x->line, (enum preset_kind)k,
                                             named(x, (enum preset_kind)k), err);
        }
        for (int k = 0; k < PRESET_KINDS && rc == 0; k++)
                if (!exists(p, (enum preset_kind)k, p->defaults[k]))
                        rc = missing(p->defaults_file, p->defaults_line, (enum preset_kind)k, p->defaults[k],
                                     err);
        return rc;
}
