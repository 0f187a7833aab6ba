/* drover catalog scan and verify: compare the catalog with files on this machine. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/sha256.h"
#include "cli/command/data/catalog.h"
#include "cli/terminal/human.h"

#define DEPTH_MAX 64

/* ---- scan */

struct scan {
        const struct options *o;
        struct catalog_batch batch;
        const char *host, *pattern, *prefix;
        bool sum;
        struct buf path; /* absolute */
        size_t root;     /* length of the prefix of `path` that is not part of names, with its slash */
        struct buf file;
        uint64_t skipped; /* not a regular file, or a name that cannot be stored */
};

static int checksum(const char *path, struct buf *out)
{
        char hex[SHA256_HEX];
        struct err err = {""};
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

        if (fd < 0)
                return cli_error(CLI_FAILED, "cannot read %s: %s", path, strerror(errno));
        r = sha256_fd(fd, hex, &err);
        close(fd);
        if (r != 0)
                return cli_error(CLI_FAILED, "%s: %s", path, err.text);
        buf_printf(out, "sha256:%s", hex);
        return 0;
}

static bool is_text(struct str s)
{
        for (size_t i = 0, n; i < s.n; i += n) {
                n = str_utf8(str_skip(s, i));
                if (n == 0 || (unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
                        return false;
        }
        return true;
}

static int scan_file(struct scan *s, const struct stat *st)
{
        struct buf name BUF_CLEANUP = {0}, sum BUF_CLEANUP = {0};
        struct json j = {.out = &s->file};
        int code = 0;

        buf_addz(&name, s->prefix ? s->prefix : "");
        buf_str(&name, str_skip(buf_view(&s->path), s->root));
        if (!is_text(buf_view(&name))) {
                s->skipped++;
                return 0;
        }
        if (s->sum)
                code = checksum(buf_z(&s->path), &sum);
        if (code != 0)
                return code;
        buf_reset(&s->file);
        json_open(&j, '{');
        json_kstr(&j, "name", buf_view(&name));
        json_kint(&j, "size", st->st_size);
        if (sum.n)
                json_kstr(&j, "checksum", buf_view(&sum));
        code = catalog_write_meta(&j, s->o);
        json_key(&j, "replicas");
        json_open(&j, '[');
        json_open(&j, '{');
        catalog_write_replica(&j, s->o, s->host, buf_view(&s->path));
        json_close(&j, '}');
        json_close(&j, ']');
        json_close(&j, '}');
        return code == 0 ? catalog_batch_add(&s->batch, buf_view(&s->file)) : code;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int scan_folder(struct scan *s, int depth);
static int scan_entry(struct scan *s, const char *name, int depth)
{
        size_t before = s->path.n;
        struct stat st;
        int code = 0;

        buf_addz(&s->path, name);
        if (lstat(buf_z(&s->path), &st) != 0) {
                s->skipped++; /* removed meanwhile */
        } else if (S_ISDIR(st.st_mode)) {
                buf_char(&s->path, '/');
                code = scan_folder(s, depth + 1);
        } else if (!S_ISREG(st.st_mode)) {
                s->skipped++;
        } else if (!s->pattern || fnmatch(s->pattern, name, 0) == 0) {
                code = scan_file(s, &st);
        }
        buf_truncate(&s->path, before);
        return code;
}

/* Reads entries sorted by name, so that the order does not depend on the filesystem. */
static int scan_folder(struct scan *s, int depth)
{
        struct dirent **list = NULL;
        int n = depth > DEPTH_MAX ? -1 : scandir(buf_z(&s->path), &list, NULL, by_name), code = 0;

        if (depth > DEPTH_MAX)
                return cli_error(CLI_FAILED, "%s: folders are more than %d deep", buf_z(&s->path), DEPTH_MAX);
        if (n < 0)
                return cli_error(CLI_FAILED, "cannot read %s: %s", buf_z(&s->path), strerror(errno));
        for (int i = 0; i < n; i++) {
                if (code == 0 && strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
                        code = scan_entry(s, list[i]->d_name, depth);
                free(list[i]);
        }
        free(list);
        return code;
}

int catalog_scan(struct cli *cli, const struct options *o)
{
        struct scan s = {.o = o, .batch = {.cli = cli, .replace = options_flag(o, "replace")}};
        char here[256], *real;
        int code;

        if (o->word_count != 2)
                return cli_error(CLI_USAGE, "which folder? drover catalog scan DIR");
        if (options_flag(o, "shared") && options_text(o, "host"))
                return cli_error(CLI_USAGE, "--shared and --host contradict each other");
        real = realpath(o->words[1], NULL);
        if (!real)
                return cli_error(CLI_FAILED, "cannot read %s: %s", o->words[1], strerror(errno));
        catalog_host(here, sizeof(here));
        s.host = options_flag(o, "shared") ? NULL : options_text(o, "host") ? options_text(o, "host") : here;
        s.pattern = options_text(o, "pattern");
        s.prefix = options_text(o, "prefix");
        s.sum = options_flag(o, "checksum");
        buf_addz(&s.path, real);
        if (strcmp(real, "/") != 0)
                buf_char(&s.path, '/');
        free(real);
        s.root = s.path.n;
        code = scan_folder(&s, 0);
        if (code == 0)
                code = catalog_batch_end(&s.batch);
        if (code == 0 && s.skipped)
                cli_note("%llu entries were skipped: links, files that are not regular, or names that are "
                         "not UTF-8",
                         (unsigned long long)s.skipped);
        buf_deinit(&s.path);
        buf_deinit(&s.file);
        catalog_batch_deinit(&s.batch);
        return code;
}

/* ---- verify */

struct verify {
        struct cli *cli;
        char here[256];
        bool sum, as_json;
        struct buf out;
        struct json json;
        uint64_t files, good, bad, elsewhere, nowhere;
};

static void tell_replica(struct verify *v, struct view file, struct view url, const char *what)
{
        struct buf text BUF_CLEANUP = {0};

        v->bad++;
        if (v->as_json) {
                json_open(&v->json, '{');
                json_key(&v->json, "name");
                json_raw(&v->json, view_get(file, "name").text);
                json_key(&v->json, "url");
                json_raw(&v->json, url.text);
                json_kstrz(&v->json, "problem", what);
                json_close(&v->json, '}');
                return;
        }
        view_text(url, &text);
        human_safe(&v->out, buf_view(&text));
        buf_printf(&v->out, ": %s\n", what);
        cli_print(&v->out);
}

static void check_sum(struct verify *v, struct view file, struct view url, const char *path)
{
        struct buf sum BUF_CLEANUP = {0}, known BUF_CLEANUP = {0};

        view_text(view_get(file, "checksum"), &known);
        if (!v->sum || !str_starts(buf_view(&known), STR("sha256:")))
                v->good++;
        else if (checksum(path, &sum) != 0)
                tell_replica(v, file, url, "cannot be read");
        else if (!str_ieq(buf_view(&sum), buf_view(&known)))
                tell_replica(v, file, url, "has another checksum");
        else
                v->good++;
}

static void check_replica(struct verify *v, struct view file, struct view replica)
{
        struct view url = view_get(replica, "url"), size = view_get(file, "size");
        struct buf text BUF_CLEANUP = {0}, path BUF_CLEANUP = {0}, host BUF_CLEANUP = {0};
        struct str url_host;
        struct stat st;
        char what[128];

        view_text(url, &text);
        view_text(view_get(replica, "host"), &host);
        if (!catalog_read_url(buf_view(&text), &path, &url_host) ||
            (host.n && !str_ieqz(buf_view(&host), v->here))) {
                v->elsewhere++;
        } else if (stat(buf_z(&path), &st) != 0) {
                snprintf(what, sizeof(what), "%s", errno == ENOENT ? "is not there" : strerror(errno));
                tell_replica(v, file, url, what);
        } else if (!S_ISREG(st.st_mode)) {
                tell_replica(v, file, url, "is no regular file");
        } else if (view_there(size) && view_integer(size, -1) != st.st_size) {
                snprintf(what, sizeof(what), "has %lld bytes, and the catalog says %lld",
                         (long long)st.st_size, (long long)view_integer(size, -1));
                tell_replica(v, file, url, what);
        } else {
                check_sum(v, file, url, buf_z(&path));
        }
}

static int verify_file(void *arg, struct view file)
{
        struct verify *v = arg;
        struct view replicas = view_get(file, "replicas"), one;
        size_t at = 0;
        bool any = false;

        v->files++;
        while (view_next(replicas, &at, &one)) {
                any = true;
                check_replica(v, file, one);
        }
        v->nowhere += !any;
        return 0;
}

int catalog_verify(struct cli *cli, const struct options *o)
{
        struct verify v = {.cli = cli, .sum = options_flag(o, "checksum")};
        struct buf path BUF_CLEANUP = {0};
        struct api_list all = {
                .path = &path, .array = "files", .cursor = "after", .each = verify_file, .arg = &v};
        bool json = cli->json;
        int code;

        if (o->word_count > 2)
                return cli_error(CLI_USAGE, "unexpected argument \"%s\": drover catalog verify [QUERY]",
                                 o->words[2]);
        catalog_host(v.here, sizeof(v.here));
        if (options_text(o, "host"))
                snprintf(v.here, sizeof(v.here), "%s", options_text(o, "host"));
        v.json.out = &v.out;
        if (json) {
                json_open(&v.json, '{');
                json_key(&v.json, "bad");
                json_open(&v.json, '[');
        }
        buf_addz(&path, "/v1/catalog/files");
        api_query(&path, "query", str_of(o->word_count > 1 ? o->words[1] : NULL));
        cli->json = false; /* the listing is read here, not printed */
        v.as_json = json;
        code = api_list(cli, &all);
        cli->json = json;
        if (json) {
                json_close(&v.json, ']');
                json_kint(&v.json, "files", (int64_t)v.files);
                json_kint(&v.json, "good", (int64_t)v.good);
                json_kint(&v.json, "elsewhere", (int64_t)v.elsewhere);
                json_kint(&v.json, "without_replicas", (int64_t)v.nowhere);
                json_close(&v.json, '}');
                buf_char(&v.out, '\n');
        } else {
                human_count(&v.out, (int64_t)v.files, "file", "files");
                buf_printf(&v.out,
                           ": %llu replicas are as the catalog says, %llu are not, %llu cannot be seen from "
                           "here",
                           (unsigned long long)v.good, (unsigned long long)v.bad,
                           (unsigned long long)v.elsewhere);
                if (v.nowhere)
                        buf_printf(&v.out, "; %llu files have none", (unsigned long long)v.nowhere);
                buf_char(&v.out, '\n');
        }
        if (code == 0)
                cli_print(&v.out);
        buf_deinit(&v.out);
        return code ? code : v.bad ? CLI_FAILED : CLI_OK;
}
