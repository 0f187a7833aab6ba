#include "server/config/backends.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/format/address_list.h"
#include "base/format/json.h"
#include "base/job/args.h"
#include "base/job/owners.h"
#include "base/mem.h"
#include "server/config/expressions.h"

#define NAME_MAX_  40u
#define JOBS_MAX   1000000u
#define PRICE_MAX  1e6
#define ORDER_MAX_ 1000000u

void config_backends_deinit(struct config_backends *c)
{
        for (size_t i = 0; i < c->count; i++) {
                free(c->items[i].name);
                free(c->items[i].server);
                free(c->items[i].owners);
                free(c->items[i].queue);
        }
        *c = (struct config_backends){0};
}

bool config_backend_name_valid(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && (i == 0 || (s.p[i] != '_' && s.p[i] != '-')))
                        return false;
        return s.n > 0 && s.n <= NAME_MAX_;
}

const struct config_backend *config_backends_find(const struct config_backends *c, struct str name)
{
        for (size_t i = 0; i < c->count; i++)
                if (str_eqz(name, c->items[i].name))
                        return &c->items[i];
        return NULL;
}

/* ---- the members that are the queue's: each is checked here, so that a mistake is found with its line */

static int check_upto(const struct doc *d, uint64_t max, const char *range, struct err *err)
{
        uint64_t n = 0;
        int r = doc_count(d, &n, err);

        return r == 0 && n > max ? doc_refuse(d, err, range) : r;
}

static int check_jobs(const struct doc *d, struct err *err)
{
        return check_upto(d, JOBS_MAX, "must be from 0 to 1000000", err);
}

static int check_jobs_most(const struct doc *d, struct err *err)
{
        return d->kind == DOC_WORD && str_eqz(d->text, "0") ? doc_refuse(d, err, "must be from 1 to 1000000")
                                                            : check_jobs(d, err);
}

static int check_order(const struct doc *d, struct err *err)
{
        return check_upto(d, ORDER_MAX_, "must be from 0 to 1000000", err);
}

static int check_price(const struct doc *d, struct err *err)
{
        double v = 0;
        int r = doc_number(d, &v, err);

        return r == 0 && !(v >= 0 && v <= PRICE_MAX) ? doc_refuse(d, err, "must be from 0 to 1000000") : r;
}

static int check_words(const struct doc *d, struct err *err)
{
        ARGS_CLEANUP struct args words = {0};

        return doc_words(d, args_add_word, &words, err);
}

static const struct {
        const char *key;
        int (*check)(const struct doc *d, struct err *err);
} queue_keys[] = {{"queued_max", check_jobs},
                  {"jobs_max", check_jobs_most},
                  {"price", check_price},
                  {"search_order", check_order},
                  {"tags", check_words},
                  {"attributes", config_attributes_check},
                  {"requirements", config_expression_check}};
#define QUEUE_KEYS (sizeof(queue_keys) / sizeof(queue_keys[0]))

static void write_value(struct json *j, const struct doc *d)
{
        if (d->kind == DOC_WORD) {
                json_str(j, d->text);
                return;
        }
        json_open(j, '[');
        for (const struct doc *x = d->first; x; x = x->next)
                json_str(j, x->text);
        json_close(j, ']');
}

/* ---- a back end */

static int add_address(void *list, struct str word, struct err *err)
{
        struct buf *b = list;

        (void)err;
        buf_printf(b, "%s" STR_FMT, b->n ? " " : "", STR_ARG(word));
        return 0;
}

static int read_server(const struct doc *map, struct buf *ret, struct err *err)
{
        const struct doc *d = doc_get(map, "server"), *token = doc_get(map, "token_file");
        int r = d ? doc_words(d, add_address, ret, err)
                  : doc_refuse(map, err, "needs server: https://HOST:PORT or unix:PATH, of its API");
        struct err why = {""};
        bool https;

        if (r != 0)
                return r;
        if (address_list_check(buf_view(ret), &https, &why) != 0)
                return doc_refuse(d, err, why.text);
        if (!https)
                return token ? doc_refuse(token, err, "goes with https only: a socket tells who is there")
                             : 0;
        if (!token)
                return doc_refuse(map, err,
                                  "needs token_file: FILE, with what `drover token user` prints there");
        return 0;
}

static int read_token_file(const struct doc *map, struct str *ret, struct err *err)
{
        const struct doc *d = doc_get(map, "token_file");
        int r = d ? doc_text(d, ret, err) : 0;

        if (r == 0 && d && !str_starts(*ret, STR("/")))
                r = doc_refuse(d, err, "must be an absolute path");
        return r;
}

static int read_files(const struct doc *map, struct str *ret, struct err *err)
{
        const struct doc *d = doc_get(map, "files");
        int r = d ? doc_text(d, ret, err) : 0;

        if (!d || r != 0)
                return r;
        if (!str_eqz(*ret, "copied") && !str_eqz(*ret, "shared"))
                return doc_refuse(d, err, "must be copied or shared");
        if (str_eqz(*ret, "shared") && doc_get(map, "owners"))
                return doc_refuse(
                        d, err,
                        "may be shared only without owners: the server reads no files of other users");
        return 0;
}

static int backend_read_owners(const struct doc *map, struct config_backend *c, struct err *err)
{
        const struct doc *d = doc_get(map, "owners");
        ARGS_CLEANUP struct args words = {0};
        struct owners owners = {0};
        struct buf text = {0};
        int r = d ? doc_words(d, args_add_word, &words, err) : 0;

        if (!d || r != 0)
                return r;
        for (size_t i = 0; i < words.n; i++)
                buf_printf(&text, "%s%s", i ? "," : "", words.v[i]);
        c->owners = buf_take(&text);
        if (words.n == 0 || !owners_parse(str_of(c->owners), &owners))
                r = doc_refuse(d, err, "must be any, or a list of NAME@DOMAIN and *@DOMAIN");
        owners_deinit(&owners);
        return r;
}

static int read_queue_settings(const struct doc *map, struct config_backend *c, struct str server,
                               struct err *err)
{
        struct str token = STR_NONE, files = STR_NONE;
        struct buf text = {0};
        struct json j = {.out = &text};
        int r = read_token_file(map, &token, err);

        if (r == 0)
                r = read_files(map, &files, err);
        json_open(&j, '{');
        json_kstrz(&j, "name", c->name);
        json_kstrz(&j, "runner", "drover");
        json_key(&j, "drover");
        json_open(&j, '{');
        json_kstr(&j, "server", server);
        if (token.n)
                json_kstr(&j, "token_file", token);
        if (files.n)
                json_kstr(&j, "files", files);
        json_close(&j, '}');
        for (size_t i = 0; i < QUEUE_KEYS && r == 0; i++) {
                const struct doc *d = doc_get(map, queue_keys[i].key);

                if (!d)
                        continue;
                r = queue_keys[i].check(d, err);
                if (r == 0) {
                        json_key(&j, queue_keys[i].key);
                        write_value(&j, d);
                }
        }
        json_close(&j, '}');
        c->queue = buf_take(&text);
        return r;
}

static int read_backend(struct config_backends *all, const struct doc *d, struct err *err)
{
        const char *keys[QUEUE_KEYS + 6] = {"server", "token_file", "files", "owners", "drain"};
        struct config_backend *c = &all->items[all->count];
        BUF_CLEANUP struct buf server = {0};
        int r = 0;

        for (size_t i = 0; i < QUEUE_KEYS; i++)
                keys[5 + i] = queue_keys[i].key;
        if (!config_backend_name_valid(d->key))
                r = doc_refuse(
                        d, err,
                        "is not a name here: up to 40 letters, digits, - and _, beginning with a letter "
                        "or a digit");
        else if (d->kind != DOC_MAP)
                r = doc_refuse(d, err, "must be a map");
        else if (all->count == CONFIG_BACKENDS_MAX)
                r = doc_refuse(d, err, "is one back end too many: there may be 128");
        if (r == 0)
                r = doc_only(d, keys, err);
        if (r != 0)
                return r;
        all->count++;
        c->name = str_dupz(d->key);
        r = read_server(d, &server, err);
        if (r == 0)
                r = backend_read_owners(d, c, err);
        if (r == 0 && doc_get(d, "drain"))
                r = doc_bool(doc_get(d, "drain"), &c->drain, err);
        if (r == 0) {
                c->server = str_dupz(buf_view(&server));
                r = read_queue_settings(d, c, buf_view(&server), err);
        }
        return r;
}

int config_backends_read(void *place, const struct doc *d, struct err *err)
{
        int r = d->kind == DOC_MAP ? doc_no_twins(d, err)
                                   : doc_refuse(d, err, "must be a map: NAME: {server: ADDRESS, ...}");

        for (const struct doc *x = d->first; x && r == 0; x = x->next)
                r = read_backend(place, x, err);
        return r;
}
