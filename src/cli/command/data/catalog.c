/* drover catalog: the catalog of files. (catalog_import.c imports; catalog_scan.c reads files of this
 * machine.) */
#include "cli/command/data/catalog.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/url.h"
#include "base/system/fs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

#define BATCH_FILES 5000u
#define BATCH_BYTES (3u << 20)
#define LIST_FILES  20000u /* files of a dataset that are listed */

static const struct table_column file_columns[] = {
        {"NAME", false, true}, {"SIZE", true, false}, {"REPLICAS", true, false}, {"WHERE", false, true}};
static const struct table_column dataset_columns[] = {
        {"DATASET", false, true}, {"OWNER", false, true}, {"FILES", true, false}, {"QUERY", false, true}};

/* ---- shared functions */

void catalog_batch_deinit(struct catalog_batch *b)
{
        buf_deinit(&b->files);
}

static int send_batch(struct catalog_batch *b)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0};
        struct err err = {""};
        int rc;

        if (b->count == 0)
                return CLI_OK;
        buf_printf(&body, "{\"replace\":%s,\"files\":[", b->replace ? "true" : "false");
        buf_str(&body, buf_view(&b->files));
        buf_addz(&body, "]}");
        rc = api_call(
                b->cli,
                &(struct api_request){.method = "POST", .path = "/v1/catalog/files", .body = buf_view(&body)},
                &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer),
                                 "%s; of these %u files none was taken, and %llu before them are in",
                                 err.text, b->count, (unsigned long long)(b->added + b->changed));
        b->added += (uint64_t)view_integer(view_get(answer.root, "added"), 0);
        b->changed += (uint64_t)view_integer(view_get(answer.root, "changed"), 0);
        b->count = 0;
        buf_reset(&b->files);
        return CLI_OK;
}

int catalog_batch_add(struct catalog_batch *b, struct str file)
{
        int code = 0;

        if (b->count == BATCH_FILES || b->files.n + file.n > BATCH_BYTES)
                code = send_batch(b);
        if (b->count++)
                buf_char(&b->files, ',');
        buf_str(&b->files, file);
        return code;
}

int catalog_batch_end(struct catalog_batch *b)
{
        struct buf out BUF_CLEANUP = {0};
        int code = send_batch(b);

        if (code != 0)
                return code;
        if (b->cli->json)
                buf_printf(&out, "{\"added\":%llu,\"changed\":%llu}\n", (unsigned long long)b->added,
                           (unsigned long long)b->changed);
        else
                buf_printf(&out, "%llu added, %llu changed\n", (unsigned long long)b->added,
                           (unsigned long long)b->changed);
        cli_print(&out);
        return CLI_OK;
}

/* Returns whether the text is a JSON number; 007 and 1_000 are texts. */
static bool is_number(struct str s)
{
        size_t i = s.n && s.p[0] == '-';
        double d;

        if (i == s.n || !isdigit((unsigned char)s.p[i]) ||
            (s.p[i] == '0' && i + 1 < s.n && isdigit((unsigned char)s.p[i + 1])))
                return false;
        for (; i < s.n; i++)
                if (!isdigit((unsigned char)s.p[i]) && !memchr("+-.eE", s.p[i], 5))
                        return false;
        return isdigit((unsigned char)s.p[s.n - 1]) && str_to_double(s, &d) == 0 && isfinite(d);
}

void catalog_write_value(struct json *j, struct str key, struct str value)
{
        int64_t whole;

        if (str_ends(key, STR(":text")))
                json_str(j, value);
        else if (is_number(value) && str_to_i64(value, &whole) == 0)
                json_int(j, whole);
        else if (is_number(value))
                json_raw(j, value);
        else if (str_ieqz(value, "true") || str_ieqz(value, "false"))
                json_bool(j, str_ieqz(value, "true"));
        else
                json_str(j, value);
}

int catalog_write_pair(struct json *j, struct str pair)
{
        ptrdiff_t at = str_find(pair, '=');
        struct str key = str_trim(str_head(pair, at < 0 ? 0 : (size_t)at));

        if (at < 1 || key.n == 0)
                return cli_error(CLI_USAGE, "\"" STR_FMT "\" is not KEY=VALUE", STR_ARG(pair));
        json_keys(j, str_ends(key, STR(":text")) ? str_head(key, key.n - 5) : key);
        catalog_write_value(j, key, str_trim(str_skip(pair, (size_t)at + 1)));
        return 0;
}

int catalog_write_meta(struct json *j, const struct options *o)
{
        const char *pair;
        size_t at = 0;
        int code = 0;

        json_key(j, "metadata");
        json_open(j, '{');
        while (code == 0 && (pair = options_list(o, "meta", &at)))
                code = catalog_write_pair(j, str_of(pair));
        json_close(j, '}');
        return code;
}

void catalog_write_url(struct buf *out, struct str host, struct str path)
{
        buf_addz(out, host.n ? "file://" : "file:");
        buf_str(out, host);
        for (size_t i = 0; i < path.n; i++) {
                unsigned char c = (unsigned char)path.p[i];

                if (url_unreserved(c) || memchr("/+=,:@!$&'()*;", c, 14))
                        buf_char(out, (char)c);
                else
                        buf_printf(out, "%%%02X", c);
        }
}

bool catalog_read_url(struct str url, struct buf *ret_path, struct str *ret_host)
{
        struct str rest;
        ptrdiff_t slash;

        if (!str_istarts(url, STR("file:")))
                return false;
        rest = str_skip(url, 5);
        *ret_host = STR_NONE;
        if (str_starts(rest, STR("//"))) {
                rest = str_skip(rest, 2);
                slash = str_find(rest, '/');
                *ret_host = str_head(rest, slash < 0 ? rest.n : (size_t)slash);
                rest = str_skip(rest, ret_host->n);
        }
        if (rest.n == 0 || rest.p[0] != '/')
                return false;
        for (size_t i = 0; i < rest.n; i++) {
                char hex[3] = "";

                if (rest.p[i] == '%' && i + 2 < rest.n && isxdigit((unsigned char)rest.p[i + 1]) &&
                    isxdigit((unsigned char)rest.p[i + 2])) {
                        memcpy(hex, rest.p + i + 1, 2);
                        buf_char(ret_path, (char)strtoul(hex, NULL, 16));
                        i += 2;
                } else {
                        buf_char(ret_path, rest.p[i]);
                }
        }
        return true;
}

void catalog_host(char *room, size_t size)
{
        memset(room, 0, size);
        gethostname(room, size - 1);
}

void catalog_write_replica(struct json *j, const struct options *o, const char *host, struct str path)
{
        struct buf url BUF_CLEANUP = {0};

        catalog_write_url(&url, str_of(host), path);
        json_kstr(j, "url", buf_view(&url));
        if (host)
                json_kstrz(j, "host", host);
        if (options_text(o, "store"))
                json_kstrz(j, "store", options_text(o, "store"));
}

/* ---- add */

/* Adds one file from its name and the options. */
static int catalog_add_file(struct cli *cli, const struct options *o)
{
        struct catalog_batch batch CATALOG_BATCH_CLEANUP = {.cli = cli,
                                                            .replace = options_flag(o, "replace")};
        struct buf file BUF_CLEANUP = {0};
        struct json j = {.out = &file};
        const char *url;
        size_t at = 0;
        int code;

        if (o->word_count != 2)
                return cli_error(CLI_USAGE, "which file? drover catalog add NAME --url URL...");
        json_open(&j, '{');
        json_kstrz(&j, "name", o->words[1]);
        if (options_text(o, "size"))
                json_kint(&j, "size", options_number(o, "size", 0));
        if (options_text(o, "sum"))
                json_kstrz(&j, "checksum", options_text(o, "sum"));
        code = catalog_write_meta(&j, o);
        json_key(&j, "replicas");
        json_open(&j, '[');
        while ((url = options_list(o, "url", &at))) {
                json_open(&j, '{');
                json_kstrz(&j, "url", url);
                if (options_text(o, "host"))
                        json_kstrz(&j, "host", options_text(o, "host"));
                if (options_text(o, "store"))
                        json_kstrz(&j, "store", options_text(o, "store"));
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        if (code == 0)
                code = catalog_batch_add(&batch, buf_view(&file));
        return code == 0 ? catalog_batch_end(&batch) : code;
}

/* ---- query */

static int count_files(struct cli *cli, struct str query)
{
        struct buf out BUF_CLEANUP = {0}, next BUF_CLEANUP = {0};
        int64_t files = 0, bytes = 0;

        do {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct buf path BUF_CLEANUP = {0};
                int code;

                buf_addz(&path, "/v1/catalog/files?count=1");
                api_query(&path, "query", query);
                api_query(&path, "after", buf_view(&next));
                code = api_get(cli, buf_z(&path), &answer);
                if (code != 0)
                        return code;
                files += view_integer(view_get(answer.root, "count"), 0);
                bytes += view_integer(view_get(answer.root, "bytes"), 0);
                buf_reset(&next);
                view_text(view_get(answer.root, "next"), &next);
        } while (next.n);
        if (cli->json) {
                buf_printf(&out, "{\"count\":%lld,\"bytes\":%lld}\n", (long long)files, (long long)bytes);
        } else {
                human_count(&out, files, "file", "files");
                buf_addz(&out, ", ");
                human_bytes(&out, bytes);
                buf_char(&out, '\n');
        }
        cli_print(&out);
        return CLI_OK;
}

struct listing {
        struct cli *cli;
        struct table table;
        bool urls, meta;
        struct buf out;
};

/* Adds the hosts and stores of the replicas, each once. */
static void add_where(struct table *t, struct view replicas)
{
        struct buf text BUF_CLEANUP = {0}, one BUF_CLEANUP = {0};
        struct view r;
        size_t at = 0;

        while (view_next(replicas, &at, &r)) {
                struct view host = view_get(r, "host");

                buf_reset(&one);
                if (text.n)
                        buf_char(&one, ',');
                view_text(view_there(host) ? host : view_get(r, "store"), &one);
                if (!view_there(host) && !view_there(view_get(r, "store")))
                        buf_addz(&one, "anywhere");
                if (str_search(buf_view(&text), buf_view(&one)) < 0)
                        buf_str(&text, buf_view(&one));
        }
        table_text(t, buf_view(&text));
}

static int on_file(void *arg, struct view file)
{
        struct listing *l = arg;
        struct view replicas = view_get(file, "replicas"), r;
        struct buf text BUF_CLEANUP = {0};
        size_t at = 0, n = 0;

        if (l->urls) {
                while (view_next(replicas, &at, &r)) {
                        buf_reset(&text);
                        view_text(view_get(r, "url"), &text);
                        buf_str(&l->out, buf_view(&text));
                        buf_char(&l->out, '\n');
                }
                if (l->out.n > 65536)
                        cli_print(&l->out);
                return 0;
        }
        while (view_next(replicas, &at, &r))
                n++;
        table_view(&l->table, view_get(file, "name"));
        if (view_there(view_get(file, "size")))
                human_bytes(&text, view_integer(view_get(file, "size"), 0));
        table_text(&l->table, buf_view(&text));
        table_format(&l->table, "%zu", n);
        add_where(&l->table, replicas);
        table_end_row(&l->table);
        return 0;
}

static int query(struct cli *cli, const struct options *o)
{
        struct str text = str_of(o->word_count > 1 ? o->words[1] : NULL);
        struct listing l = {.cli = cli, .urls = options_flag(o, "urls")};
        struct buf path BUF_CLEANUP = {0};
        int code;

        if (o->word_count > 2)
                return cli_error(CLI_USAGE,
                                 "unexpected argument \"%s\": a query is one word; put it in quotes",
                                 o->words[2]);
        if (options_flag(o, "count"))
                return count_files(cli, text);
        buf_addz(&path, "/v1/catalog/files");
        api_query(&path, "query", text);
        if (cli->json)
                api_query(&path, "metadata", STR("1"));
        code = cli_table(cli, &l.table, file_columns, sizeof(file_columns) / sizeof(file_columns[0]));
        if (code == 0)
                code = api_list(cli, &(struct api_list){.path = &path,
                                                        .array = "files",
                                                        .cursor = "after",
                                                        .limit = options_number(o, "limit", 0),
                                                        .each = on_file,
                                                        .arg = &l});
        if (code == 0 && !cli->json && !l.urls && table_rows(&l.table) == 0)
                buf_addz(&l.out, "no files\n");
        else if (code == 0 && !cli->json && !l.urls)
                cli_print_table(cli, &l.table);
        if (code == 0)
                cli_print(&l.out);
        table_deinit(&l.table);
        buf_deinit(&l.out);
        return code;
}

/* ---- show */

static void show_member(struct buf *out, const char *title, struct view v)
{
        struct buf text BUF_CLEANUP = {0};

        if (!view_there(v))
                return;
        view_text(v, &text);
        buf_printf(out, "%-10s ", title);
        human_safe(out, buf_view(&text));
        buf_char(out, '\n');
}

static void show_file(struct buf *out, struct view file)
{
        struct view v, meta = view_get(file, "metadata"), replicas = view_get(file, "replicas");
        struct str key;

        show_member(out, "name", view_get(file, "name"));
        show_member(out, "size", view_get(file, "size"));
        show_member(out, "checksum", view_get(file, "checksum"));
        for (size_t at = 0; view_member(meta, &at, &key, &v);) {
                struct buf text BUF_CLEANUP = {0};

                view_text(v, &text);
                buf_printf(out, "  " STR_FMT " = ", STR_ARG(key));
                human_safe(out, buf_view(&text));
                buf_char(out, '\n');
        }
        for (size_t at = 0; view_next(replicas, &at, &v);) {
                show_member(out, "replica", view_get(v, "url"));
                show_member(out, "  host", view_get(v, "host"));
                show_member(out, "  store", view_get(v, "store"));
        }
}

static int show_files(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        int code;

        if (o->word_count > 2)
                return cli_error(CLI_USAGE, "one file at a time: drover catalog show [NAME]");
        buf_addz(&path, "/v1/catalog");
        if (o->word_count == 2) {
                buf_addz(&path, "/files/");
                url_escape(&path, str_of(o->words[1]));
        }
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        if (o->word_count == 2) {
                show_file(&out, answer.root);
        } else {
                show_member(&out, "files", view_get(answer.root, "files"));
                show_member(&out, "keys", view_get(answer.root, "keys"));
                show_member(&out, "datasets", view_get(answer.root, "datasets"));
                buf_printf(&out, "%-10s ", "writing");
                view_text(view_get(answer.root, "write"), &out);
                buf_addz(&out,
                         view_true(view_get(answer.root, "may_write")) ? ": you may\n" : ": you may not\n");
        }
        cli_print(&out);
        return CLI_OK;
}

/* ---- rm */

struct removing {
        struct cli *cli;
        const char *url;
        struct buf names;
        unsigned count;
        int64_t removed;
};

static int send_names(struct removing *r)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        int code;

        if (r->count == 0)
                return 0;
        json_open(&j, '{');
        if (r->url)
                json_kstrz(&j, "url", r->url);
        json_key(&j, "names");
        json_open(&j, '[');
        json_raw(&j, buf_view(&r->names));
        json_close(&j, ']');
        json_close(&j, '}');
        code = api_post(r->cli, "/v1/catalog/remove", buf_view(&body), &answer);
        r->removed += view_integer(view_get(answer.root, "removed"), 0);
        r->count = 0;
        buf_reset(&r->names);
        return code;
}

static int remove_name(struct removing *r, struct str name)
{
        struct json j = {.out = &r->names, .comma = r->count > 0};

        json_str(&j, name);
        return ++r->count == BATCH_FILES ? send_names(r) : 0;
}

static int remove_found(void *arg, struct view file)
{
        struct buf name BUF_CLEANUP = {0};

        view_text(view_get(file, "name"), &name);
        return remove_name(arg, buf_view(&name));
}

/* Removes files while they are listed, which is safe because pages are by numbers that are never used
 * again. */
static int remove_query(struct removing *r, const char *query)
{
        struct buf path BUF_CLEANUP = {0};
        bool json = r->cli->json;
        int code;

        buf_addz(&path, "/v1/catalog/files");
        api_query(&path, "query", str_of(query));
        r->cli->json = false;
        code = api_list(
                r->cli,
                &(struct api_list){
                        .path = &path, .array = "files", .cursor = "after", .each = remove_found, .arg = r});
        r->cli->json = json;
        return code;
}

static int rm(struct cli *cli, const struct options *o)
{
        struct removing r = {.cli = cli, .url = options_text(o, "url")};
        struct buf out BUF_CLEANUP = {0};
        const char *query = options_text(o, "query");
        int code = 0;

        if ((o->word_count > 1) == (query != NULL))
                return cli_error(CLI_USAGE, "which files? drover catalog rm NAME..., or rm --query QUERY");
        if (query)
                code = remove_query(&r, query);
        for (size_t i = 1; code == 0 && i < o->word_count; i++)
                code = remove_name(&r, str_of(o->words[i]));
        if (code == 0)
                code = send_names(&r);
        buf_deinit(&r.names);
        if (code != 0)
                return code;
        if (cli->json)
                buf_printf(&out, "{\"removed\":%lld}\n", (long long)r.removed);
        else
                buf_printf(&out, "%lld %s removed from the catalog\n", (long long)r.removed,
                           r.url ? "replicas" : "files");
        cli_print(&out);
        return r.removed == 0 && !query ? CLI_USAGE : CLI_OK;
}

/* ---- datasets */

static int write_list(struct json *j, const char *file)
{
        struct buf text BUF_CLEANUP = {0};
        struct err err = {""};
        struct str rest, line;
        unsigned count = 0;

        if (fs_read(AT_FDCWD, file, 64u << 20, &text, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        json_key(j, "files");
        json_open(j, '[');
        rest = buf_view(&text);
        while (str_cut(&rest, '\n', &line))
                if (str_trim(line).n) {
                        json_str(j, str_trim(line));
                        count++;
                }
        json_close(j, ']');
        if (count == 0 || count > LIST_FILES)
                return cli_error(
                        CLI_USAGE,
                        "%s names %u files, and a list has from 1 to %u; for more give the files a key, "
                        "and save a query",
                        file, count, LIST_FILES);
        return 0;
}

static int catalog_save(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        const char *list = options_text(o, "files");
        struct err err = {""};
        int rc, code = 0;

        if (o->word_count != (list ? 2 : 3))
                return cli_error(CLI_USAGE,
                                 "drover catalog save DATASET QUERY, or save DATASET --files LIST");
        buf_addz(&path, "/v1/catalog/datasets/");
        url_escape(&path, str_of(o->words[1]));
        json_open(&j, '{');
        if (list)
                code = write_list(&j, list);
        else
                json_kstrz(&j, "query", o->words[2]);
        json_close(&j, '}');
        if (code != 0)
                return code;
        rc = api_call(cli,
                      &(struct api_request){.method = "PUT", .path = buf_z(&path), .body = buf_view(&body)},
                      &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        api_print_json(cli, &answer);
        return CLI_OK;
}

static int forget(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct err err = {""};
        int rc;

        if (o->word_count != 2)
                return cli_error(CLI_USAGE, "which dataset? drover catalog forget DATASET");
        buf_addz(&path, "/v1/catalog/datasets/");
        url_escape(&path, str_of(o->words[1]));
        rc = api_call(cli, &(struct api_request){.method = "DELETE", .path = buf_z(&path)}, &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        api_print_json(cli, &answer);
        return CLI_OK;
}

static int on_dataset(void *arg, struct view d)
{
        struct table *t = arg;

        table_view(t, view_get(d, "name"));
        table_view(t, view_get(d, "owner"));
        table_view(t, view_get(d, "files"));
        table_view(t, view_get(d, "query"));
        table_end_row(t);
        return 0;
}

static int datasets(struct cli *cli, const struct options *o)
{
        struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        int code = cli_table(cli, &t, dataset_columns, sizeof(dataset_columns) / sizeof(dataset_columns[0]));

        if (code == 0 && o->word_count > 1)
                code = cli_error(CLI_USAGE, "unexpected argument \"%s\": drover catalog datasets",
                                 o->words[1]);
        buf_addz(&path, "/v1/catalog/datasets");
        if (code == 0)
                code = api_list(cli, &(struct api_list){.path = &path,
                                                        .array = "datasets",
                                                        .cursor = "after",
                                                        .whole = true,
                                                        .each = on_dataset,
                                                        .arg = &t});
        if (code == 0 && !cli->json && table_rows(&t) == 0)
                buf_addz(&out, "no datasets\n");
        else if (code == 0 && !cli->json)
                cli_print_table(cli, &t);
        cli_print(&out);
        return code;
}

int cmd_catalog(struct cli *cli, const struct options *o)
{
        static const struct {
                const char *word;
                int (*run)(struct cli *cli, const struct options *o);
        } actions[] = {{"add", catalog_add_file},  {"scan", catalog_scan}, {"import", catalog_import},
                       {"query", query},           {"show", show_files},   {"rm", rm},
                       {"verify", catalog_verify}, {"save", catalog_save}, {"datasets", datasets},
                       {"forget", forget}};

        for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
                if (strcmp(actions[i].word, o->words[0]) == 0)
                        return actions[i].run(cli, o);
        return cli_error(CLI_USAGE, "drover catalog %s: not \"%s\"", o->command->usage, o->words[0]);
}
