#include "server/files/registrations.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/format/hex.h"
#include "base/job/file_id.h"
#include "base/job/macro.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "catalog/catalog.h"
#include "catalog/query.h"
#include "core/model/attributes.h"
#include "core/model/submission.h"
#include "core/query.h"
#include "server/files/catalog_log.h"
#include "server/loop/expressions.h"
#include "server/loop/turn.h"

#define VERSION    1
#define ATTRIBUTE  "RegisterOutputs"
#define PREFIX     "register/"
#define AGAIN_MS   30000
#define TASK_FILES 5000 /* approximate limit for one task, and so for one commit of the catalog */
#define PAIRS_MAX  64
/* Of one attempt, on the core's thread: places to which its outputs go, and comparisons with them of what was
 * sent; and lines in the log. */
#define PLACES_MAX   100000
#define COMPARED_MAX 10000000u
#define TOLD_MAX     10

struct entry { /* the files of one attempt */
        struct entry *next;
        char *name; /* name of the blob */
        struct buf record;
};
struct registration { /* entries on their way through the threads */
        struct task task;
        struct entry *entries;
        size_t files;
        bool again; /* the catalog could not take them now */
        struct registration *next;
};
struct registrations {
        struct registration *open;    /* collects the entries of this turn */
        struct registration *waiting; /* for the next try */
        int64_t due_ms;               /* boot clock */
};

static void registration_free(struct registration *g)
{
        for (struct entry *e; g && (e = g->entries);) {
                g->entries = e->next;
                free(e->name);
                buf_deinit(&e->record);
                free(e);
        }
        free(g);
}

static void registration_drop(struct task *t)
{
        registration_free((struct registration *)t);
}

static struct registrations *state(struct server *s)
{
        if (!s->registrations)
                s->registrations = mem_new(struct registrations);
        return s->registrations;
}

void registrations_free(struct registrations *r)
{
        if (!r)
                return;
        registration_free(r->open);
        for (struct registration *g; (g = r->waiting);) {
                r->waiting = g->next;
                registration_free(g);
        }
        free(r);
}

/* ---- the value of RegisterOutputs */

struct pairs {
        struct catalog_meta v[PAIRS_MAX + 2]; /* plus `owner` and `request` */
        size_t count;
};

static struct catalog_value value_of(struct str s)
{
        struct catalog_value v = {.type = CATALOG_TEXT, .text = s};

        if (s.n >= 2 && s.p[0] == '\'' && s.p[s.n - 1] == '\'')
                v.text = str_make(s.p + 1, s.n - 2);
        else if (str_to_i64(s, &v.integer) == 0)
                v.type = CATALOG_INTEGER;
        else if (s.n && !isalpha((unsigned char)s.p[0]) && str_to_double(s, &v.real) == 0)
                v.type = CATALOG_REAL;
        else if (str_ieqz(s, "true") || str_ieqz(s, "false"))
                v = (struct catalog_value){.type = CATALOG_BOOLEAN, .boolean = str_ieqz(s, "true")};
        else
                v.text = s;
        return v;
}

static bool is_off(struct str text)
{
        return text.n == 0 || str_ieqz(text, "false");
}

/* Returns 0, or -EINVAL with err. *ret points into the text. */
static int read_pairs(struct str text, struct pairs *ret, struct err *err)
{
        struct str rest = text, one;

        ret->count = 0;
        if (str_ieqz(text, "true"))
                return 0;
        while (macro_cut(&rest, ',', &one)) {
                ptrdiff_t eq = str_find(one, '=');
                struct str key = str_trim(str_head(one, eq < 0 ? 0 : (size_t)eq));

                if (str_trim(one).n == 0)
                        continue;
                if (ret->count == PAIRS_MAX)
                        return err_set(err, -EINVAL, "register_outputs names more than %u keys", PAIRS_MAX);
                if (eq < 1 || !catalog_key_is_valid(key))
                        return err_set(
                                err, -EINVAL,
                                "register_outputs: '" STR_FMT
                                "' is no metadata; write true, or KEY=VALUE,KEY=VALUE with names of keys "
                                "that mean nothing else in queries",
                                STR_ARG(str_head(str_trim(one), 100)));
                if (str_ieqz(key, "owner") || str_ieqz(key, "request"))
                        return err_set(err, -EINVAL,
                                       "register_outputs: the key " STR_FMT " is set by the server",
                                       STR_ARG(key));
                ret->v[ret->count++] =
                        (struct catalog_meta){key, value_of(str_trim(str_skip(one, (size_t)eq + 1)))};
        }
        return 0;
}

/* Writes the text of an expression that is one literal. Returns false for any other expression, whose
 * value is not known yet. */
static bool literal(struct server *s, struct str expression, struct buf *to)
{
        struct symbols *y = core_symbols(s->core);
        symbol name = symbols_intern(y, STR(ATTRIBUTE));
        struct ad *ad = ad_new(y);
        struct value v;
        bool ok = ad_set_text(ad, name, expression, NULL) == 0 && ad_literal(ad, name, &v) &&
                  v.type == VALUE_STRING;

        if (ok)
                buf_str(to, v.string);
        ad_free(ad);
        return ok;
}

int registrations_check(struct server *s, const struct call *c, const struct submission *sub, struct err *err)
{
        enum role least = server_settings(s)->catalog_write;
        struct pairs pairs;

        for (size_t i = 0; i < sub->part_count; i++)
                for (size_t k = 0; k < sub->parts[i].attribute_count; k++) {
                        const struct submission_attribute *a = &sub->parts[i].attributes[k];
                        BUF_CLEANUP struct buf text = {0};
                        int r;

                        if (!str_ieqz(a->name, ATTRIBUTE))
                                continue;
                        if (!literal(s, a->text, &text))
                                return err_set(err, -EINVAL, ATTRIBUTE " is no text");
                        if (is_off(str_trim(buf_view(&text))))
                                continue;
                        r = read_pairs(str_trim(buf_view(&text)), &pairs, err);
                        if (r != 0)
                                return r;
                        if (c->role < least)
                                return err_set(err, -EACCES,
                                               "register_outputs: the catalog is written by those who have "
                                               "the role %s "
                                               "here (catalog_write in droverd.yaml)",
                                               role_name(least));
                }
        return 0;
}

/* ---- registration of a result */

struct place {                  /* to which the job's description sends outputs */
        struct str url, folder; /* canonical; folder: with a slash at its end */
        bool itself;            /* an output may be at the URL, too, not only below it */
};
struct places {
        struct arena texts;
        struct place *v;
        size_t count, cap, compared;
};

static void add_place(struct places *p, struct str url, const struct store_urls *stores, size_t count,
                      bool itself)
{
        BUF_CLEANUP struct buf there = {0};
        struct place one = {.itself = itself};

        if (p->count == PLACES_MAX || !file_url(url, stores, count, &there, NULL))
                return;
        one.url = arena_str(&p->texts, buf_view(&there));
        if (there.n && there.p[there.n - 1] != '/')
                buf_char(&there, '/');
        one.folder = arena_str(&p->texts, buf_view(&there));
        MEM_GROW(p->v, p->cap, p->count + 1);
        p->v[p->count++] = one;
}

/* Reads once, for all files, where the job's description sends outputs. */
static void read_places(struct server *s, const struct core_result *r, const struct store_urls *stores,
                        size_t count, struct places *ret)
{
        BUF_CLEANUP struct buf text = {0}, type = {0};
        struct attributes names;
        struct str rest, one;

        attributes_intern(&names, core_symbols(s->core));
        if (core_member_text(s->core, r->request, r->member, names.OutputDestination, &text) == 0)
                add_place(ret, buf_view(&text), stores, count,
                          core_member_text(s->core, r->request, r->member, names.DapType, &type) ==
                                  0); /* a transfer's destination is the file itself */
        buf_reset(&text);
        if (core_member_text(s->core, r->request, r->member, names.TransferOutputRemaps, &text) != 0)
                return;
        for (rest = buf_view(&text); macro_cut(&rest, ';', &one);) {
                ptrdiff_t eq = str_find(one, '=');

                if (eq > 0)
                        add_place(ret, str_trim(str_skip(one, (size_t)eq + 1)), stores, count, true);
        }
}

static bool goes_there(struct places *p, struct str canonical)
{
        for (size_t i = 0; i < p->count && p->compared < COMPARED_MAX; i++, p->compared++)
                if ((p->v[i].itself && str_eq(p->v[i].url, canonical)) ||
                    file_is_below(canonical, p->v[i].folder))
                        return true;
        return false;
}

static void add_entry(struct registration *g, struct str name, struct buf *record, size_t files)
{
        struct entry *e = mem_new(struct entry);

        e->name = str_dupz(name);
        e->record = *record;
        *record = (struct buf){0};
        e->next = g->entries;
        g->entries = e;
        g->files += files;
}

static size_t pack_files(struct server *s, const struct core_result *r, const struct command_sent *sent,
                         struct buf *to)
{
        const struct config_stores *c = &s->config.stores;
        struct store_urls *stores = mem_array(NULL, c->store_count + 1, sizeof(*stores));
        struct places places = {0};
        size_t n = 0, refused = 0;

        for (size_t i = 0; i < c->store_count; i++)
                stores[i] = c->stores[i].urls;
        read_places(s, r, stores, c->store_count, &places);
        for (size_t i = 0; i < sent->count; i++) {
                const struct command_sent_file *f = &sent->files[i];
                BUF_CLEANUP struct buf url = {.max = CATALOG_URL_MAX};
                size_t store = FILE_STORE_NONE;

                if (!file_url(f->url, stores, c->store_count, &url, &store) ||
                    !goes_there(&places, buf_view(&url))) {
                        if (refused++ < TOLD_MAX)
                                log_warn("msg=\"an output is not registered: its URL is not where the job's "
                                         "description says "
                                         "that outputs go\" job=%" PRIu64 ".%u url=\"%s\"",
                                         r->request, r->member, LOG_TEXT(f->url));
                        continue;
                }
                pack_str(to, buf_view(&url));
                pack_str(to, store == FILE_STORE_NONE ? STR_NONE : stores[store].name);
                pack_u64(to, f->size);
                buf_add(to, f->sha256, 32);
                n++;
        }
        free(places.v);
        arena_deinit(&places.texts);
        free(stores);
        return n;
}

void registrations_take(struct server *s, const struct core_result *r, const struct command_sent *sent)
{
        symbol attribute = symbols_intern(core_symbols(s->core), STR(ATTRIBUTE));
        BUF_CLEANUP struct buf text = {0}, record = {0}, files = {0}, name = {0};
        struct registrations *all = state(s);
        struct core_request request;
        size_t n;

        if (sent->count == 0 || r->outcome != CORE_EXITED || r->signaled || r->exit_code != 0 ||
            core_member_text(s->core, r->request, r->member, attribute, &text) != 0 ||
            is_off(str_trim(buf_view(&text))) || core_request_get(s->core, r->request, &request) != 0)
                return;
        n = pack_files(s, r, sent, &files);
        if (n == 0)
                return;
        pack_u64(&record, VERSION);
        pack_u64(&record, r->request);
        pack_str(&record, request.owner);
        pack_str(&record, str_trim(buf_view(&text)));
        pack_u64(&record, n);
        buf_str(&record, buf_view(&files));
        buf_printf(&name, PREFIX "%" PRIu64 ".%u.%u", r->request, r->member, r->fence);
        store_batch_blob_put(turn_batch(s->turn), buf_view(&name), buf_view(&record));
        if (!all->open)
                all->open = mem_new(struct registration);
        add_entry(all->open, buf_view(&name), &record, n);
        if (all->open->files >= TASK_FILES)
                registrations_flush(s);
}

/* ---- into the catalog: on its thread */

/* Returns the path of a URL, without leading slashes. */
static struct str path_of(struct str url)
{
        ptrdiff_t scheme = str_search(url, STR("://"));
        struct str rest = scheme < 0 ? url : str_skip(url, (size_t)scheme + 3);
        ptrdiff_t slash = str_find(rest, '/');

        rest = slash < 0 ? STR_NONE : str_skip(rest, (size_t)slash);
        while (rest.n && rest.p[0] == '/')
                rest = str_skip(rest, 1);
        return rest.n && rest.n <= CATALOG_NAME_MAX ? rest : str_head(url, CATALOG_NAME_MAX);
}

struct only {
        struct str url;
        bool is;
};

static int on_known(void *arg, const struct catalog_file *f)
{
        struct only *o = arg;

        o->is = f->replica_count == 1 && str_eq(f->replicas[0].url, o->url);
        return 0;
}

/* Adds one file whose name is in use. If the existing entry has the same URL, a job has overwritten that
 * file, so the entry is replaced. If it is another file, the URL becomes the name. */
static int put_one(struct server *s, struct catalog_file *f, struct catalog_counts *counts, struct err *err)
{
        struct catalog_put how = {0};
        struct only o = {.url = f->replicas[0].url};
        int r = catalog_put(s->catalog, f, 1, &how, counts, err);

        for (int i = 0; r == CATALOG_CONFLICT && i < 2; i++) {
                o.is = false;
                r = catalog_get(s->catalog, f->name, on_known, &o, err);
                if (r != 0)
                        return r;
                how.replace = o.is;
                if (!o.is)
                        f->name = str_head(o.url, CATALOG_NAME_MAX);
                r = catalog_put(s->catalog, f, 1, &how, counts, err);
        }
        return r;
}

struct files {
        struct catalog_file *v;
        size_t count, cap;
        struct arena texts;
};

/* Adds the files of an entry. Returns false if the record is malformed. */
static bool read_entry(const struct entry *e, struct files *to)
{
        struct unpack u = unpack_from(buf_view(&e->record));
        struct pairs *pairs = arena_alloc(&to->texts, sizeof(*pairs));
        uint64_t n, version = unpack_u64(&u), request = unpack_u64(&u);
        struct str owner = unpack_str(&u);
        struct err err = {0};

        if (read_pairs(unpack_str(&u), pairs, &err) != 0) {
                log_warn("msg=\"outputs are registered without metadata\" entry=%s error=\"%s\"", e->name,
                         LOG_TEXT(str_of(err.text)));
                pairs->count = 0;
        }
        pairs->v[pairs->count++] = (struct catalog_meta){STR("owner"), {.type = CATALOG_TEXT, .text = owner}};
        pairs->v[pairs->count++] =
                (struct catalog_meta){STR("request"), {.type = CATALOG_INTEGER, .integer = (int64_t)request}};
        for (n = unpack_u64(&u); version == VERSION && n > 0 && !u.bad; n--) {
                struct catalog_replica *r = arena_alloc(&to->texts, sizeof(*r));
                char *sum = arena_alloc(&to->texts, sizeof("sha256:") + 64);
                uint64_t size;

                *r = (struct catalog_replica){.url = unpack_str(&u)};
                r->store = unpack_str(&u);
                size = unpack_u64(&u);
                if (u.bad || u.end - u.p < 32)
                        return false;
                memcpy(sum, "sha256:", 7);
                hex_print(sum + 7, u.p, 32);
                u.p += 32;
                MEM_GROW(to->v, to->cap, to->count + 1);
                to->v[to->count++] = (struct catalog_file){.name = path_of(r->url),
                                                           .has_size = true,
                                                           .size = size,
                                                           .checksum = str_of(sum),
                                                           .meta = pairs->v,
                                                           .meta_count = pairs->count,
                                                           .replicas = r,
                                                           .replica_count = 1};
        }
        return version == VERSION && unpack_done(&u);
}

/* Adds the files of a batch one by one, after the batch as a whole has failed. Returns 0; or an error for
 * which another try may succeed. */
static int put_each(struct server *s, struct catalog_file *files, size_t count, struct err *err)
{
        struct catalog_counts counts = {0};

        for (size_t i = 0; i < count; i++) {
                int r = put_one(s, &files[i], &counts, err);

                if (r == CATALOG_CONFLICT || r == CATALOG_INVALID || r == CATALOG_NOT_FOUND)
                        log_warn("msg=\"an output is not registered\" file=\"%s\" why=\"%s\"",
                                 LOG_TEXT(files[i].name), LOG_TEXT(str_of(err->text)));
                else if (r != 0)
                        return r;
        }
        return 0;
}

/* Returns 0; or an error for which another try may succeed. */
static int put_files(struct server *s, struct files *files, struct err *err)
{
        struct catalog_counts counts = {0};
        int r = catalog_log_open(s, err);

        if (r == 0 && !catalog_log_has_room(s))
                r = err_set(err, CATALOG_FULL, "the disk is nearly full");
        for (size_t at = 0, n; r == 0 && at < files->count; at += n) {
                n = files->count - at < CATALOG_BATCH_MAX ? files->count - at : CATALOG_BATCH_MAX;
                r = catalog_put(s->catalog, files->v + at, n, &(struct catalog_put){0}, &counts, err);
                if (r == CATALOG_CONFLICT || r == CATALOG_INVALID)
                        r = put_each(s, files->v + at, n, err);
        }
        return r;
}

static void registration_done(struct server *s, struct task *t);

static void into_catalog(struct server *s, struct task *t)
{
        struct registration *g = (struct registration *)t;
        struct files files = {0};
        struct err err = {0};
        int r;

        for (const struct entry *e = g->entries; e; e = e->next) {
                size_t before = files.count;

                if (!read_entry(e, &files)) {
                        files.count = before;
                        log_warn("msg=\"outputs are not registered: their record is damaged\" entry=%s",
                                 e->name);
                }
        }
        r = put_files(s, &files, &err);
        g->again = r != 0;
        if (r == CATALOG_CORRUPT)
                catalog_log_distrust(s);
        if (g->again)
                log_warn("msg=\"outputs are not in the catalog yet\" files=%zu why=\"%s\"", files.count,
                         LOG_TEXT(str_of(err.text)));
        free(files.v);
        arena_deinit(&files.texts);
        g->task.run = registration_done;
        server_to_core(s, &g->task);
}

/* Core thread. */
static void registration_done(struct server *s, struct task *t)
{
        struct registration *g = (struct registration *)t;
        struct registrations *all = state(s);

        if (g->again) {
                g->next = all->waiting;
                all->waiting = g;
                all->due_ms = clock_boot_ms() + AGAIN_MS;
                return;
        }
        for (const struct entry *e = g->entries; e; e = e->next)
                store_batch_blob_delete(turn_batch(s->turn), str_of(e->name));
        registration_free(g);
}

static void registration_send(struct server *s, struct task *t)
{
        t->run = into_catalog;
        server_to_catalog(s, t);
}

static void prepare(struct registration *g, void (*run)(struct server *s, struct task *t))
{
        g->next = NULL;
        g->task.run = run;
        g->task.drop = registration_drop;
}

void registrations_flush(struct server *s)
{
        struct registrations *all = s->registrations;
        struct registration *g = all ? all->open : NULL;

        if (!g)
                return;
        all->open = NULL;
        prepare(g, registration_send);
        turn_send(s->turn, &g->task, TURN_DURABLE);
}

void registrations_tick(struct server *s)
{
        struct registrations *all = s->registrations;

        if (!all || !all->waiting || clock_boot_ms() < all->due_ms)
                return;
        for (struct registration *g; (g = all->waiting);) {
                all->waiting = g->next;
                prepare(g, into_catalog);
                server_to_catalog(s, &g->task);
        }
}

/* ---- after a restart */

struct loading {
        struct server *server;
        struct registration *open;
};

static void load_flush(struct loading *l)
{
        if (!l->open)
                return;
        prepare(l->open, into_catalog);
        server_to_catalog(l->server, &l->open->task);
        l->open = NULL;
}

static int on_blob(void *arg, struct str name)
{
        struct loading *l = arg;
        struct buf record = {0};

        if (store_blob_get(l->server->store, name, &record, NULL) != 0) {
                buf_deinit(&record);
                return 0;
        }
        if (!l->open)
                l->open = mem_new(struct registration);
        add_entry(l->open, name, &record, 1);
        if (l->open->files >= TASK_FILES)
                load_flush(l);
        return 0;
}

int registrations_open(struct server *s, struct err *err)
{
        struct loading l = {.server = s};
        int r = store_blob_list(s->store, STR(PREFIX), on_blob, &l, err);

        load_flush(&l);
        return r;
}
