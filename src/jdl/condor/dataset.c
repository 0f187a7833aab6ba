/* dataset = …: the files of a request, from the server's catalog, a list, or patterns.
 *
 * The queue statement names no items then: its rows are pieces of the dataset. A row has no names of files
 * but says where its piece is in the list (a segment, the first line, how many), and what a place must be to
 * process it. The list goes to the server as a few files beside the request; at the place the agent takes the
 * job's lines out of its segment. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "jdl/condor/reader.h"
#include "jdl/form/dataset.h"

#define FILES_MAX   10000000u
#define SEGMENT_MAX (512u << 10) /* bytes of a segment, if no piece is larger */
#define GROUPS_MAX  1000u        /* sets of hosts; with more, each file counts as being on one */
#define STORES_MAX  32u
#define SHOWN_MAX   40u /* groups in the table of a dry run */

struct hosts {           /* a group: the same hosts have all its files; none: any place */
        struct str key;  /* names with commas between */
        uint32_t number; /* number by first appearance */
        uint64_t bytes;
};
struct found {
        struct str path;
        struct str hosts; /* key of a group */
        struct str order; /* the value that files are ordered by */
        uint64_t bytes, events;
        uint64_t tag;           /* of struct condor_source; 0: none */
        bool has_size, fetched; /* fetched: path is a URL that the agent fetches */
};
struct dataset {
        struct reader *r;
        struct place at;
        struct str spec;
        const struct condor_dataset *from;  /* NULL: the keyword */
        const struct condor_source *source; /* source being read; NULL: the keyword */
        size_t taken;                       /* files of the source */
        uint64_t taken_events;
        uint64_t tag; /* of the line being read; 0: it has none */
        struct arena arena;
        struct found *files;
        size_t count, cap;
        struct str stores[STORES_MAX]; /* prefer_storage */
        size_t store_count;
        bool fetches;     /* files by URL become inputs of their jobs; */
        bool any_fetched; /* and there is one */
        bool bad_name;
        struct str group; /* the last file's, which is most often the next one's */
        struct map *groups;
        struct hosts **order;
        size_t group_count, group_cap;
        struct dataset_limits limits;
        double files_per_hour;
        struct form_time_limit time; /* of a job, if files or events per hour are given */
        size_t dropped;              /* files that have no replica */
        size_t elsewhere;            /* files without a replica in a preferred store */
};

/* ---- finding */

/* Returns whether agents fetch the URL themselves. */
static bool is_fetched(struct str path)
{
        static const char *const schemes[] = {"https://", "http://", "ftp://", "ftps://", "sftp://", "s3://"};

        for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
                if (str_istarts(path, str_of(schemes[i])))
                        return true;
        return false;
}

/* Returns whether the source has given all files that are wanted of it. */
static bool is_full(const struct dataset *d)
{
        const struct condor_source *s = d->source;

        return s && ((s->files_max && d->taken >= s->files_max) ||
                     (s->events_max && d->taken_events >= s->events_max));
}

/* How the list has a path on hosts' own disks: as a URL of the first of them, where that is wanted. */
static struct str listed(struct dataset *d, struct str path, struct str *hosts)
{
        BUF_CLEANUP struct buf url = {0};
        struct str rest = *hosts, host = STR_NONE;

        if (!d->from || d->from->syntax == CONDOR_LIST_PATHS || hosts->n == 0 || str_eq(*hosts, STR(".")) ||
            path.n == 0 || path.p[0] != '/')
                return path;
        str_cut(&rest, ',', &host);
        buf_printf(&url, "root://" STR_FMT "/", STR_ARG(host));
        buf_str(&url, path);
        if (d->from->syntax == CONDOR_LIST_XROOTD)
                *hosts = STR_NONE;
        return arena_str(&d->arena, buf_view(&url));
}

static void add_file(struct dataset *d, struct str path, struct str hosts, const struct form_found *f)
{
        struct found *file;

        if (is_full(d))
                return;
        path = listed(d, path, &hosts);
        for (size_t i = 0; i < path.n; i++)
                if ((unsigned char)path.p[i] < ' ')
                        d->bad_name = true;
        if (d->count == FILES_MAX)
                return;
        MEM_GROW(d->files, d->cap, d->count + 1);
        file = &d->files[d->count++];
        *file = (struct found){.path = arena_str(&d->arena, path),
                               .bytes = f ? f->bytes : 0,
                               .events = f ? f->events : 0,
                               .tag = d->tag,
                               .order = f ? arena_str(&d->arena, f->order) : STR_NONE,
                               .has_size = f && f->has_size};
        d->taken++;
        d->taken_events += file->events;
        file->fetched = d->fetches && is_fetched(path);
        d->any_fetched |= file->fetched;
        if (!str_eq(hosts, d->group))
                d->group = arena_str(&d->arena, hosts);
        file->hosts = d->group;
}

static int from_hex(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* The path of a file: URL, or any other URL as it is. */
static void path_of(struct str url, struct buf *out, struct str *ret_host)
{
        *ret_host = STR_NONE;
        buf_reset(out);
        if (!str_istarts(url, STR("file:"))) {
                buf_str(out, url);
                return;
        }
        url = str_skip(url, 5);
        if (str_starts(url, STR("//"))) {
                struct str rest = str_skip(url, 2);
                ptrdiff_t slash = str_find(rest, '/');

                *ret_host = str_head(rest, slash < 0 ? rest.n : (size_t)slash);
                url = str_skip(rest, ret_host->n);
                if (str_ieqz(*ret_host, "localhost"))
                        *ret_host = STR_NONE;
        }
        for (size_t i = 0; i < url.n; i++) {
                if (url.p[i] == '%' && i + 2 < url.n && from_hex(url.p[i + 1]) >= 0 &&
                    from_hex(url.p[i + 2]) >= 0) {
                        buf_char(out, (char)(from_hex(url.p[i + 1]) * 16 + from_hex(url.p[i + 2])));
                        i += 2;
                } else {
                        buf_char(out, url.p[i]);
                }
        }
}

static size_t rank(const struct dataset *d, const struct form_replica *p)
{
        size_t i = 0;

        while (i < d->store_count && !str_ieq(d->stores[i], p->store))
                i++;
        return i;
}

/* Names of hosts, sorted, each once. */
static void add_host(struct buf *out, struct str host)
{
        BUF_CLEANUP struct buf all = {0};
        struct str rest = buf_view(out), one;
        bool done = false;

        while (rest.n && str_cut(&rest, ',', &one)) {
                if (!done && str_icmp(host, one) <= 0) {
                        done = true;
                        if (!str_ieq(host, one))
                                buf_printf(&all, "%s" STR_FMT, all.n ? "," : "", STR_ARG(host));
                }
                buf_printf(&all, "%s" STR_FMT, all.n ? "," : "", STR_ARG(one));
        }
        if (!done)
                buf_printf(&all, "%s" STR_FMT, all.n ? "," : "", STR_ARG(host));
        buf_reset(out);
        buf_str(out, buf_view(&all));
}

/* Of the replicas in the preferred store one that can be read anywhere; else the first one's path, at all
 * hosts that have the file there. */
static void on_found(void *arg, const struct form_found *f)
{
        struct dataset *d = arg;
        BUF_CLEANUP struct buf path = {0}, other = {0}, hosts = {0};
        size_t best = SIZE_MAX;
        struct str host;
        bool any = false;

        for (size_t i = 0; d->source && d->source->every_copy && i < f->replica_count; i++) {
                path_of(f->replicas[i].url, &other, &host);
                add_file(d, buf_view(&other), f->replicas[i].host.n ? f->replicas[i].host : host, f);
                any = true;
        }
        if (any)
                return;
        for (size_t i = 0; i < f->replica_count; i++)
                if (rank(d, &f->replicas[i]) < best)
                        best = rank(d, &f->replicas[i]);
        d->elsewhere += f->replica_count > 0 && d->store_count > 0 && best == d->store_count && !is_full(d);
        for (size_t i = 0; i < f->replica_count; i++) {
                const struct form_replica *p = &f->replicas[i];

                if (rank(d, p) != best)
                        continue;
                path_of(p->url, &other, &host);
                if (p->host.n)
                        host = p->host;
                if (host.n == 0) {
                        add_file(d, buf_view(&other), STR_NONE, f);
                        return;
                }
                if (!any)
                        buf_str(&path, buf_view(&other));
                any = true;
                if (str_eq(buf_view(&path), buf_view(&other)))
                        add_host(&hosts, host);
        }
        if (any)
                add_file(d, buf_view(&path), buf_view(&hosts), f);
        else
                d->dropped++;
}

static int fail_dataset(struct dataset *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail_dataset(struct dataset *d, const char *fmt, ...)
{
        struct err what = {{0}};
        va_list ap;

        va_start(ap, fmt);
        err_vset(&what, 0, fmt, ap);
        va_end(ap);
        return reader_fail(d->r, d->at, "%s: %s", d->source ? "<input> URL" : "dataset", what.text);
}

/* catalog:QUERY and catalog:?QUERY are the server's, catalog:NAME?QUERY is another one. */
static int from_catalog(struct dataset *d, struct str query)
{
        const struct form_world *w = d->r->world;
        ptrdiff_t mark = str_find(query, '?'), sign = -1;
        BUF_CLEANUP struct buf limited = {0};
        struct str name = STR_NONE;
        struct err err = {{0}};
        int rc;

        for (size_t i = 0; i < query.n && sign < 0; i++)
                if (strchr("=<>!~[,", query.p[i]))
                        sign = (ptrdiff_t)i;
        if (mark >= 0 && (sign < 0 || mark < sign)) {
                name = str_trim(str_head(query, (size_t)mark));
                query = str_skip(query, (size_t)mark + 1);
        }
        if (!w->catalog)
                return fail_dataset(d, "no catalog can be asked here");
        /* No more is asked for than is taken, where that is known before. */
        if (name.n == 0 && d->source && d->source->files_max && !d->source->events_max &&
            str_search(query, STR("limit")) < 0) {
                buf_printf(&limited, "limit=%llu%s", (unsigned long long)d->source->files_max,
                           query.n ? "," : "");
                buf_str(&limited, query);
                query = buf_view(&limited);
        }
        rc = w->catalog(w->arg, name, query, d->limits.events_max > 0 || (d->source && d->source->events_max),
                        d->from ? d->from->order : NULL, on_found, d, &err);
        return rc ? fail_dataset(d, "%s", err.text) : 0;
}

static void add_here(struct dataset *d, struct str path)
{
        BUF_CLEANUP struct buf whole = {0};
        struct form_found f = {.replica_count = 0};

        if (path.n && path.p[0] != '/')
                buf_printf(&whole, "%s/", d->r->world->cwd ? d->r->world->cwd : "");
        buf_str(&whole, path);
        if (d->limits.bytes_max && d->r->world->size)
                f.has_size = d->r->world->size(d->r->world->arg, buf_z(&whole), &f.bytes) == 0;
        add_file(d, buf_view(&whole), STR("."), &f);
}

static void on_path(void *to, struct str path)
{
        add_here(to, path);
}

/* Adds the paths and URLs of a list, one a line; # begins a comment. */
static void add_lines(struct dataset *d, struct str rest)
{
        BUF_CLEANUP struct buf path = {0};
        struct str line, host;

        while (str_cut(&rest, '\n', &line)) {
                line = str_trim(line);
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                if (str_find(line, ':') > 0 &&
                    (str_search(line, STR("://")) > 0 || str_istarts(line, STR("file:/")))) {
                        path_of(line, &path, &host);
                        add_file(d, buf_view(&path), host, NULL);
                } else {
                        add_here(d, line);
                }
                d->tag += d->tag != 0;
        }
        d->tag = 0;
}

static int from_list(struct dataset *d, struct str name)
{
        BUF_CLEANUP struct buf text = {.max = FORM_TEXT_MAX};
        MEM_CLEANUP char *z = str_dupz(name);
        int rc = d->r->world->read_file(d->r->world->arg, z, &text);

        if (rc || buf_check(&text))
                return fail_dataset(d, "the list '%s' can't be read: %s", z,
                                    rc ? reader_reason(rc) : "it is too large");
        add_lines(d, buf_view(&text));
        return 0;
}

/* Reads such a list from the output of a command of the submitter. */
static int from_command(struct dataset *d, struct str command)
{
        BUF_CLEANUP struct buf text = {.max = FORM_TEXT_MAX};
        MEM_CLEANUP char *z = str_dupz(command);
        int rc = d->r->world->run(d->r->world->arg, z, &text);

        if (rc || buf_check(&text))
                return fail_dataset(d, "the command '%.200s' has failed: %s", z,
                                    rc ? reader_reason(rc) : "it printed too much");
        add_lines(d, buf_view(&text));
        return 0;
}

static void on_shared(void *to, struct str path)
{
        add_file(to, path, STR_NONE, NULL);
}

/* file:PATH is seen by all machines, file://HOST/PATH by one. */
static int from_file(struct dataset *d, struct str url)
{
        BUF_CLEANUP struct buf path = {0}, whole = {0};
        size_t before = d->count;
        struct str host;
        int rc;

        path_of(url, &path, &host);
        if (path.n == 0)
                return fail_dataset(d, "'" STR_FMT "' names no file", STR_ARG(str_head(url, 200)));
        if (str_find(buf_view(&path), '*') < 0 && str_find(buf_view(&path), '?') < 0 &&
            str_find(buf_view(&path), '[') < 0) {
                if (path.p[0] != '/')
                        buf_printf(&whole, "%s/", d->r->world->cwd ? d->r->world->cwd : "");
                buf_str(&whole, buf_view(&path));
                add_file(d, buf_view(&whole), host, NULL);
                return 0;
        }
        if (host.n && !str_ieqz(host, d->r->options->submit_host ? d->r->options->submit_host : ""))
                return fail_dataset(d,
                                    "files of the machine " STR_FMT
                                    " can't be looked for from here; name each, or "
                                    "use the catalog",
                                    STR_ARG(str_head(host, 100)));
        if (path.p[0] != '/')
                buf_printf(&whole, "%s/", d->r->world->cwd ? d->r->world->cwd : "");
        buf_str(&whole, buf_view(&path));
        rc = d->r->world->glob(d->r->world->arg, buf_z(&whole), 'f', on_shared, d);
        if (rc)
                return fail_dataset(d, "'%.200s' can't be looked for: %s", buf_z(&whole), reader_reason(rc));
        if (d->count == before)
                return fail_dataset(d, "'%.200s' matches no file", buf_z(&whole));
        for (size_t i = before; host.n && i < d->count; i++)
                d->files[i].hosts = arena_str(&d->arena, host);
        return 0;
}

static int from_patterns(struct dataset *d, struct str patterns)
{
        struct str one;

        while (queue_word(&patterns, &one)) {
                MEM_CLEANUP char *z = str_dupz(one);
                size_t before = d->count;
                int rc = d->r->world->glob(d->r->world->arg, z, 'f', on_path, d);

                if (rc)
                        return fail_dataset(d, "'%s' can't be looked for: %s", z, reader_reason(rc));
                if (d->count == before)
                        return fail_dataset(d, "'%s' matches no file", z);
        }
        return 0;
}

static int find_source(struct dataset *d)
{
        if (d->source && d->source->lines.p) {
                d->tag = d->source->tag;
                add_lines(d, d->source->lines);
                return 0;
        }
        if (d->source && str_istarts(d->spec, STR("command:")))
                return from_command(d, str_trim(str_skip(d->spec, 8)));
        if (d->source && str_istarts(d->spec, STR("file:")))
                return from_file(d, d->spec);
        if (str_istarts(d->spec, STR("catalog:")))
                return from_catalog(d, str_trim(str_skip(d->spec, 8)));
        if (str_istarts(d->spec, STR("filelist:")) || str_istarts(d->spec, STR("list:")))
                return from_list(d, str_trim(str_skip(d->spec, (size_t)str_find(d->spec, ':') + 1)));
        return from_patterns(d, d->spec);
}

static int by_order(const void *a, const void *b)
{
        const struct found *const *x = a, *const *y = b;
        double p, q;
        int order = 0;

        if (str_to_double((*x)->order, &p) == 0 && str_to_double((*y)->order, &q) == 0)
                order = p < q ? -1 : p > q;
        if (order == 0)
                order = str_cmp((*x)->order, (*y)->order);
        return order ? order : *x < *y ? -1 : *x > *y;
}

/* By the value of the key, those that have it first; others stay as they were found. */
static void sort(struct dataset *d)
{
        struct found **order = mem_array(NULL, d->count + 1, sizeof(*order)),
                     *sorted = mem_array(NULL, d->count + 1, sizeof(*sorted));
        size_t none = 0;

        for (size_t i = 0; i < d->count; i++)
                none += d->files[i].order.n == 0;
        if (none)
                reader_warn(d->r, d->at, "%zu files have no value of %s, and come first", none,
                            d->from->order);
        for (size_t i = 0; i < d->count; i++)
                order[i] = &d->files[i];
        qsort(order, d->count, sizeof(*order), by_order); /* NOLINT(bugprone-sizeof-expression) */
        for (size_t i = 0; i < d->count; i++)
                sorted[i] = *order[i];
        free(order);
        free(d->files);
        d->files = sorted;
}

/* Warns of what a source asked for and its files do not allow. */
static void warn_of_source(struct dataset *d, size_t before)
{
        const struct condor_source *s = d->source;
        size_t unknown = 0;

        for (size_t i = before; s && s->events_max && i < d->count; i++)
                unknown += d->files[i].events == 0;
        if (unknown)
                reader_warn(
                        d->r, d->at,
                        "%zu of %zu files have no number under the key events, which counts as 0: the limit "
                        "of %llu events may let in more than are wanted",
                        unknown, d->count - before, (unsigned long long)s->events_max);
        if (d->store_count && !str_istarts(d->spec, STR("catalog:")))
                reader_warn(
                        d->r, d->at,
                        "the preferred store has no effect: only files of a catalog have replicas to choose "
                        "from");
        else if (d->elsewhere)
                reader_warn(d->r, d->at,
                            "%zu files have no replica in the preferred store%s " STR_FMT
                            ", and are read where they are",
                            d->elsewhere, d->store_count > 1 ? "s, the first of which is" : "",
                            STR_ARG(str_head(d->stores[0], 100)));
        d->elsewhere = 0;
}

static int find_files(struct dataset *d)
{
        int rc = 0;

        if (!d->from)
                rc = find_source(d);
        if (!d->from && rc == 0)
                warn_of_source(d, 0);
        for (size_t i = 0; d->from && i < d->from->source_count && rc == 0; i++) {
                size_t before = d->count, dropped = d->dropped;

                d->source = &d->from->sources[i];
                d->taken = 0;
                d->taken_events = 0;
                d->at.line = d->source->line;
                d->spec = str_of(d->source->url);
                d->store_count = 0;
                if (d->source->store)
                        d->stores[d->store_count++] = str_of(d->source->store);
                rc = find_source(d);
                if (rc == 0 && d->count == before && d->dropped == dropped)
                        rc = fail_dataset(d, "'" STR_FMT "' has no files", STR_ARG(str_head(d->spec, 200)));
                if (rc == 0)
                        warn_of_source(d, before);
        }
        if (rc == 0 && d->from && d->from->order)
                sort(d);
        if (rc)
                return rc;
        if (d->bad_name)
                return fail_dataset(d, "the name of a file has a control character in it");
        if (d->count == FILES_MAX)
                return fail_dataset(d,
                                    "it has %u files or more, and a submit takes fewer: narrow the query, or "
                                    "give it a limit",
                                    FILES_MAX);
        if (d->count == 0 && d->dropped)
                return fail_dataset(d, "none of the %zu files of '" STR_FMT "' has a replica", d->dropped,
                                    STR_ARG(str_head(d->spec, 200)));
        if (d->count == 0)
                return fail_dataset(d, "'" STR_FMT "' has no files", STR_ARG(str_head(d->spec, 200)));
        if (d->dropped)
                reader_warn(d->r, d->at, "%zu files of the dataset have no replica, and are left out",
                            d->dropped);
        return 0;
}

/* ---- grouping */

static struct hosts *group_of(struct dataset *d, struct str key)
{
        BUF_CLEANUP struct buf name = {0};
        struct hosts *g;

        buf_char(&name, '/'); /* a map's key may not be empty */
        buf_str(&name, key);
        g = map_get(d->groups, buf_view(&name));
        if (g)
                return g;
        g = mem_new(struct hosts);
        *g = (struct hosts){.key = key, .number = (uint32_t)d->group_count};
        map_put(d->groups, buf_view(&name), g);
        MEM_GROW(d->order, d->group_cap, d->group_count + 1);
        d->order[d->group_count++] = g;
        return g;
}

static void groups_clear(struct dataset *d)
{
        if (d->groups)
                map_free_values(d->groups);
        d->groups = map_new();
        d->group_count = 0;
}

/* Assigns each file to the host with the least work so far among its hosts; the first one of equals. */
static void choose_hosts(struct dataset *d)
{
        groups_clear(d);
        for (size_t i = 0; i < d->count; i++) {
                struct str rest = d->files[i].hosts, one;
                struct hosts *best = NULL;

                while (rest.n && str_cut(&rest, ',', &one)) {
                        struct hosts *g = group_of(d, one);

                        if (!best || g->bytes < best->bytes)
                                best = g;
                }
                if (!best)
                        best = group_of(d, STR_NONE);
                best->bytes += d->files[i].bytes + 1;
                d->files[i].hosts = best->key;
        }
}

/* Puts the files in the order of their groups, which have the order of their first files; *ret has a row
 * each. */
static struct dataset_file *group(struct dataset *d)
{
        struct dataset_file *rows = mem_array(NULL, d->count, sizeof(*rows));
        struct found *sorted = mem_array(NULL, d->count, sizeof(*sorted));
        uint32_t *numbers = mem_array(NULL, d->count, sizeof(*numbers));
        size_t *next;

        groups_clear(d);
        for (size_t i = 0; i < d->count && d->group_count <= GROUPS_MAX; i++)
                group_of(d, d->files[i].hosts);
        if (d->group_count > GROUPS_MAX)
                choose_hosts(d);
        next = mem_zalloc((d->group_count + 1) * sizeof(*next));
        for (size_t i = 0; i < d->count; i++) {
                numbers[i] = i && str_eq(d->files[i].hosts, d->files[i - 1].hosts)
                                     ? numbers[i - 1]
                                     : group_of(d, d->files[i].hosts)->number;
                next[numbers[i] + 1]++;
        }
        for (size_t g = 0; g < d->group_count; g++)
                next[g + 1] += next[g];
        for (size_t i = 0; i < d->count; i++) {
                size_t to = next[numbers[i]]++;

                sorted[to] = d->files[i];
                rows[to] = (struct dataset_file){d->files[i].bytes, d->files[i].events, numbers[i]};
        }
        free(d->files);
        free(next);
        free(numbers);
        d->files = sorted;
        return rows;
}

/* ---- rows */

/* The requirement on a place that processes files of these hosts. */
static void write_clause(const struct dataset *d, struct str hosts, struct buf *out)
{
        struct str one;
        size_t start = out->n;

        if (hosts.n == 0) {
                buf_addz(out, "true");
        } else if (str_eq(hosts, STR("."))) {
                buf_addz(out, d->r->options->filesystem_domain ? "TARGET.FileSystemDomain == " : "true");
                if (d->r->options->filesystem_domain)
                        print_string(out, str_of(d->r->options->filesystem_domain));
        }
        while (hosts.n && !str_eq(hosts, STR(".")) && str_cut(&hosts, ',', &one)) {
                if (out->n > start)
                        buf_addz(out, " || ");
                buf_addz(out, "TARGET.Machine == ");
                print_string(out, one);
                buf_addz(out, " || TARGET.AgentName == ");
                print_string(out, one);
        }
}

/* A URL as an element of a list of inputs in an item: no comma, and nothing that is a macro. */
static void write_url(struct str url, struct buf *out)
{
        for (size_t i = 0; i < url.n; i++)
                if (strchr(",$ ;", url.p[i]))
                        buf_printf(out, "%%%02X", (unsigned)url.p[i]);
                else
                        buf_char(out, url.p[i]);
}

/* Returns the name of a fetched file in the job's folder, the same as the agent's: the last part of the
 * URL's path. */
static struct str name_of(struct str url)
{
        struct str rest = url;

        str_cut(&rest, '#', &url);
        rest = url;
        str_cut(&rest, '?', &url);
        return str_skip(url, (size_t)(str_rfind(url, '/') + 1));
}

/* The inputs of a piece, with their sizes, and its lines of the list. */
static int write_fetched(struct dataset *d, const struct dataset_piece *piece, struct buf *list)
{
        struct buf *items = &d->r->part->items;
        BUF_CLEANUP struct buf sizes = {0}, url = {0};
        struct map *seen = map_new();
        unsigned n = 0;
        int rc = 0;

        buf_char(items, '\x1f');
        for (size_t k = piece->first; rc == 0 && k < piece->first + piece->count; k++) {
                const struct found *f = &d->files[k];
                struct str name = f->path;

                if (f->fetched) {
                        buf_reset(&url);
                        write_url(f->path, &url);
                        name = name_of(buf_view(&url));
                        if (name.n == 0)
                                rc = fail_dataset(d, STR_FMT " has no name of its own",
                                                  STR_ARG(str_head(f->path, 200)));
                        else if (map_put(seen, name, d))
                                rc = fail_dataset(d,
                                                  "two files of one job would be called " STR_FMT
                                                  "; write files_per_job = 1, or fetch_dataset = false",
                                                  STR_ARG(str_head(name, 200)));
                        buf_printf(items, "%s", n ? "," : "");
                        buf_str(items, buf_view(&url));
                        buf_printf(&sizes, "%s", n ? "," : "");
                        if (f->has_size)
                                buf_printf(&sizes, "%llu", (unsigned long long)f->bytes);
                        n++;
                }
                buf_str(list, name);
                buf_char(list, '\n');
        }
        buf_char(items, '\x1f');
        buf_str(items, buf_view(&sizes));
        map_free(seen);
        return rc;
}

/* Writes the name up to its first dot, restricted to plain characters. */
static void write_base(struct str path, struct buf *items)
{
        struct str name = str_skip(path, (size_t)(str_rfind(path, '/') + 1));
        ptrdiff_t dot = str_find(name, '.');

        name = dot > 0 ? str_head(name, (size_t)dot) : name;
        buf_char(items, '\x1f');
        for (size_t i = 0; i < name.n; i++)
                buf_char(items,
                         isalnum((unsigned char)name.p[i]) || strchr("_-+=@%", name.p[i]) ? name.p[i] : '_');
}

static int write_rows(struct dataset *d, const struct dataset_piece *pieces, size_t count)
{
        struct form_part *p = d->r->part;
        struct form_list *list = NULL;
        uint64_t lines = 0;
        int rc = 0;

        p->rows = count;
        for (size_t i = 0; rc == 0 && i < count; i++) {
                const struct dataset_piece *piece = &pieces[i];

                if (!list || list->text.n >= SEGMENT_MAX) {
                        list = form_add_list(d->r->form);
                        lines = 0;
                }
                write_clause(d, d->order[piece->group]->key, &p->items);
                buf_printf(&p->items, "\x1f%zu\x1f%llu\x1f%zu", d->r->form->list_count - 1,
                           (unsigned long long)lines + 1, piece->count);
                for (size_t k = piece->first; !d->any_fetched && k < piece->first + piece->count; k++) {
                        buf_str(&list->text, d->files[k].path);
                        buf_char(&list->text, '\n');
                }
                if (d->any_fetched)
                        rc = write_fetched(d, piece, &list->text);
                for (size_t k = piece->first; d->from && d->from->on_file && k < piece->first + piece->count;
                     k++)
                        if (d->files[k].tag)
                                d->from->on_file(d->from->arg, i, d->files[k].tag);
                if (d->from && d->from->base_name)
                        write_base(d->files[piece->first].path, &p->items);
                buf_char(&p->items, '\n');
                lines += piece->count;
        }
        return rc;
}

/* The table of a dry run. */
static void write_table(struct dataset *d, const struct dataset_piece *pieces, size_t count)
{
        struct buf *out = &d->r->form->notes;
        size_t shown = 0;

        buf_printf(out, "dataset " STR_FMT ": %zu files, %zu jobs\n", STR_ARG(str_head(d->spec, 200)),
                   d->count, count);
        if (d->time.seconds)
                buf_printf(out, "  a job has %llu seconds, a limit of %s\n",
                           (unsigned long long)d->time.seconds, d->time.of);
        buf_printf(out, "  %8s %10s %16s %12s %s\n", "JOBS", "FILES", "BYTES", "FILES A JOB", "WHERE");
        for (size_t i = 0, end; i < count; i = end, shown++) {
                uint64_t files = 0, bytes = 0, least = UINT64_MAX, most = 0;
                struct str key = d->order[pieces[i].group]->key;

                for (end = i; end < count && pieces[end].group == pieces[i].group; end++) {
                        files += pieces[end].count;
                        bytes += pieces[end].bytes;
                        least = pieces[end].count < least ? pieces[end].count : least;
                        most = pieces[end].count > most ? pieces[end].count : most;
                }
                if (shown >= SHOWN_MAX)
                        continue;
                buf_printf(out, "  %8zu %10llu ", end - i, (unsigned long long)files);
                if (d->files[pieces[i].first].has_size)
                        buf_printf(out, "%16llu", (unsigned long long)bytes);
                else
                        buf_printf(out, "%16s", "-");
                buf_printf(out, " %5llu..%-5llu ", (unsigned long long)least, (unsigned long long)most);
                if (key.n == 0)
                        buf_addz(out, "anywhere\n");
                else if (str_eq(key, STR(".")))
                        buf_addz(out, "places that see this file system\n");
                else
                        buf_printf(out, STR_FMT "\n", STR_ARG(str_head(key, 200)));
        }
        if (shown > SHOWN_MAX)
                buf_printf(out, "  and %zu more groups\n", shown - SHOWN_MAX);
}

/* ---- what is asked for */

static int read_number(struct reader *r, const char *keyword, bool sizes, uint64_t *ret)
{
        static const char units[] = "KMGT";
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, keyword, &e);
        struct str text = entry_unquoted(&e);
        uint64_t factor = 1;

        if (rc <= 0)
                return rc;
        if (sizes && text.n && (text.p[text.n - 1] == 'B' || text.p[text.n - 1] == 'b'))
                text.n--;
        if (sizes && text.n)
                for (unsigned i = 0; i < 4; i++)
                        if (str_ieq(str_make(&units[i], 1), str_skip(text, text.n - 1))) {
                                factor = 1ull << (10 * (i + 1));
                                text.n--;
                                break;
                        }
        if (e.late || str_to_u64(str_trim(text), ret) || *ret == 0 || *ret > UINT64_MAX / 2 / factor)
                return entry_fail(r, &e, "'" STR_FMT "' is no whole number of at least 1%s",
                                  STR_ARG(str_head(buf_view(&e.text), 60)),
                                  sizes ? ", as in 500M or 2G" : "");
        *ret *= factor;
        return 0;
}

/* A decimal fraction: a file may take more than an hour. */
static int read_rate(struct dataset *d)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(d->r, "files_per_hour", &e);

        if (rc <= 0)
                return rc;
        if (e.late || str_to_double(str_trim(entry_unquoted(&e)), &d->files_per_hour) ||
            !(d->files_per_hour >= 1e-6 && d->files_per_hour <= 1e12))
                return entry_fail(d->r, &e, "'" STR_FMT "' is no number above 0",
                                  STR_ARG(str_head(buf_view(&e.text), 60)));
        return 0;
}

static int read_stores(struct dataset *d, struct entry *e)
{
        struct str rest, one;
        int rc = entry_get(d->r, "prefer_storage", e);

        if (rc <= 0)
                return rc;
        for (rest = entry_unquoted(e); queue_word(&rest, &one);) {
                if (d->store_count == STORES_MAX)
                        return entry_fail(d->r, e, "there are more than %u stores", STORES_MAX);
                d->stores[d->store_count++] = one;
        }
        return 0;
}

static int read_fetch(struct dataset *d)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(d->r, "fetch_dataset", &e);

        d->fetches = true;
        return rc > 0 ? entry_boolean(d->r, &e, &d->fetches) : rc;
}

/* Asks for the time that the presets of the request leave a job. */
static int ask_time_limit(struct dataset *d, struct form_time_limit *ret, struct err *err)
{
        static const struct {
                const char *keyword, *attribute;
        } kinds[FORM_PRESET_KINDS] = {
                [FORM_PRESET_INITIALIZER] = {"job_initializer", "MY.JobInitializer"},
                [FORM_PRESET_APPLICATION] = {"job_application", "MY.JobApplication"},
                [FORM_PRESET_DISPATCHER] = {"job_dispatcher", "MY.JobDispatcher"},
                [FORM_PRESET_QUEUE] = {"job_virtual_queue", "MY.JobVirtualQueue"},
                [FORM_PRESET_POLICY] = {"job_policy", "MY.JobPolicy"},
        };
        const struct form_world *w = d->r->world;
        struct entry entries[FORM_PRESET_KINDS] = {{.keyword = NULL}};
        struct str named[FORM_PRESET_KINDS];
        int rc = 0;

        for (int k = 0; k < FORM_PRESET_KINDS && rc >= 0; k++) {
                rc = entry_get(d->r, kinds[k].keyword, &entries[k]);
                if (rc == 0) {
                        entry_deinit(&entries[k]);
                        rc = entry_get(d->r, kinds[k].attribute, &entries[k]);
                }
                named[k] = entry_unquoted(&entries[k]);
        }
        if (rc >= 0)
                rc = w->time_limit ? w->time_limit(w->arg, named, ret, err)
                                   : err_set(err, -ENOSYS, "no server is asked here");
        for (int k = 0; k < FORM_PRESET_KINDS; k++)
                entry_deinit(&entries[k]);
        return rc;
}

/* Finds the time of a job: the request's own, or that of the server's settings. *ret has 0 seconds, after a
 * warning, if neither is known. */
static int find_time_limit(struct dataset *d, struct form_time_limit *ret)
{
        ENTRY_CLEANUP struct entry time = {0};
        int rc = entry_get(d->r, "allowed_execute_duration", &time);
        uint64_t own = d->from ? d->from->time_s : 0;
        struct err err = {{0}};

        *ret = (struct form_time_limit){.seconds = 0};
        if (rc < 0)
                return rc;
        if (rc > 0) { /* the virtual queues of a shorter time take no such job */
                if (own == 0 && (time.late || str_to_u64(buf_view(&time.text), &own)))
                        reader_warn(d->r, time.at,
                                    "allowed_execute_duration is an expression: it does not limit the files "
                                    "of a job");
                ret->seconds = own;
                snprintf(ret->of, sizeof(ret->of), "its description");
                return 0;
        }
        rc = ask_time_limit(d, ret, &err);
        if (own && (rc != 0 || ret->seconds == 0 || own < ret->seconds)) {
                ret->seconds = own;
                snprintf(ret->of, sizeof(ret->of), "its description");
        } else if (rc != 0) {
                ret->seconds = 0;
                reader_warn(d->r, d->at,
                            "the time limit of the jobs is not known, so a job may have more files than it "
                            "has time for: %s",
                            err.text);
        } else if (ret->seconds == 0 && !d->limits.files_max && !d->limits.bytes_max &&
                   !d->limits.events_max) {
                reader_warn(d->r, d->at,
                            "nothing limits the time of a job, so the files or events per hour do not limit "
                            "its files: name a virtual queue that has a time_limit, or set "
                            "allowed_execute_duration (maxWallTime)");
        }
        return 0;
}

/* The number of things, of which a job does so many an hour, that it can do in its time. */
static int fit(struct dataset *d, const char *things, double rate, uint64_t *most)
{
        const struct form_time_limit *t = &d->time;
        double fits = rate * (double)t->seconds / 3600;

        if (rate == 0 || t->seconds == 0 || t->seconds > UINT32_MAX || fits >= 1e15)
                return 0;
        if (fits < 1)
                return fail_dataset(
                        d, "in %llu seconds a job does not do one %s, at %.15g %ss an hour (a limit of %s)",
                        (unsigned long long)t->seconds, things, rate, things, t->of);
        if (*most == 0 || (uint64_t)fits < *most)
                *most = (uint64_t)fits;
        return 0;
}

static int limit_by_time(struct dataset *d)
{
        double events = d->from ? d->from->events_per_hour : 0;
        int rc = 0;

        if (d->files_per_hour > 0 || events > 0)
                rc = find_time_limit(d, &d->time);
        if (rc == 0)
                rc = fit(d, "file", d->files_per_hour, &d->limits.files_max);
        return rc ? rc : fit(d, "event", events, &d->limits.events_max);
}

static int read_limits(struct dataset *d)
{
        struct dataset_limits *l = &d->limits;
        int rc = read_number(d->r, "files_per_job", false, &l->files_max);

        if (!rc)
                rc = read_number(d->r, "min_files_per_job", false, &l->files_min);
        if (!rc)
                rc = read_number(d->r, "bytes_per_job", true, &l->bytes_max);
        if (!rc)
                rc = read_number(d->r, "events_per_job", false, &l->events_max);
        if (!rc)
                rc = read_rate(d);
        if (!rc)
                rc = limit_by_time(d);
        if (rc)
                return rc;
        if (l->files_max && l->files_min > l->files_max)
                return fail_dataset(d, "min_files_per_job is more than files_per_job");
        if (!l->files_max && !l->bytes_max && !l->events_max)
                l->files_max = d->from ? FILES_MAX : l->files_min ? l->files_min : 1;
        return 0;
}

static void warn_of_unknown(struct dataset *d)
{
        size_t sizes = 0, events = 0;

        for (size_t i = 0; i < d->count; i++) {
                sizes += !d->files[i].has_size;
                events += d->files[i].events == 0;
        }
        if (d->limits.bytes_max && sizes)
                reader_warn(d->r, d->at, "the size of %zu files is not known, and counts as 0", sizes);
        if (d->limits.events_max && events)
                reader_warn(d->r, d->at, "%zu files have no number under the key events, which counts as 0",
                            events);
}

static void warn_of_small(struct dataset *d, const struct dataset_piece *pieces, size_t count)
{
        size_t small = 0;

        for (size_t i = 0; i < count; i++)
                small += pieces[i].count < d->limits.files_min;
        if (small)
                reader_warn(d->r, d->at,
                            "%zu jobs have fewer than %llu files, since no others can be processed where "
                            "these are",
                            small, (unsigned long long)d->limits.files_min);
}

static int split(struct dataset *d)
{
        struct form_part *p = d->r->part;
        struct dataset_piece *pieces;
        struct dataset_file *rows = group(d);
        size_t count = dataset_split(rows, d->count, &d->limits, &pieces);
        int rc = 0;

        if (count > FORM_MEMBERS_MAX - d->r->first_member) {
                rc = fail_dataset(d, "a request can't have more than %u jobs", FORM_MEMBERS_MAX);
        } else {
                form_add_variable(p, STR("DatasetWhere"));
                form_add_variable(p, STR("DatasetSegment"));
                form_add_variable(p, STR("DatasetFirst"));
                form_add_variable(p, STR("DatasetCount"));
                if (d->any_fetched) {
                        form_add_variable(p, STR("DatasetInputs"));
                        form_add_variable(p, STR("DatasetSizes"));
                }
                if (d->from && d->from->base_name)
                        form_add_variable(p, STR("DatasetBase"));
                warn_of_small(d, pieces, count);
                rc = write_rows(d, pieces, count);
                write_table(d, pieces, count);
                if (rc == 0 && buf_check(&p->items))
                        rc = fail_dataset(d, "its jobs take more than %u MiB", FORM_TEXT_MAX >> 20);
        }
        free(pieces);
        free(rows);
        return rc;
}

/* Keywords that go with `dataset` say nothing without it. */
static void warn_without(struct reader *r)
{
        static const char *const others[] = {"files_per_job",  "min_files_per_job", "bytes_per_job",
                                             "events_per_job", "files_per_hour",    "fetch_dataset",
                                             "prefer_storage"};

        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                struct setting *s = settings_get(r, str_of(others[i]));

                if (s)
                        reader_warn(r, s->at, "%s is for the files of a dataset, and there is none", s->name);
        }
}

int dataset_read(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0}, stores = {0};
        struct dataset d = {.r = r};
        int rc;

        d.from = r->options->dataset;
        rc = d.from ? d.from->source_count > 0 : entry_get(r, "dataset", &e);
        if (rc == 0)
                warn_without(r);
        if (rc <= 0)
                return rc;
        d.at = d.from ? (struct place){r->files[0], d.from->sources[0].line} : e.at;
        d.spec = entry_unquoted(&e);
        if (e.late)
                rc = fail_dataset(&d, "it can't differ from job to job");
        else if (r->part->variable_count || r->part->steps != 1)
                rc = fail_dataset(&d, "its files make the jobs: write 'queue' and nothing behind it");
        else
                rc = read_limits(&d);
        if (!rc)
                rc = read_fetch(&d);
        if (!rc)
                rc = read_stores(&d, &stores);
        if (!rc)
                rc = find_files(&d);
        if (!rc) {
                warn_of_unknown(&d);
                rc = split(&d);
        }
        if (!rc && d.files_per_hour) {
                BUF_CLEANUP struct buf text = {0};

                buf_printf(&text, "$(DatasetCount) * 3600.0 / %.15g", d.files_per_hour);
                form_set(r->part, STR("ExpectedRunTime"), buf_view(&text), d.at.line);
                form_set_late(r->part, STR("ExpectedRunTime"), true);
        }
        r->dataset = !rc;
        r->dataset_inputs = !rc && d.any_fetched;
        if (d.groups)
                map_free_values(d.groups);
        free(d.order);
        free(d.files);
        arena_deinit(&d.arena);
        return rc;
}

/* ---- attributes */

/* The list's segment is one of the inputs; where its lines are is told to the agent. */
int dataset_make(struct reader *r)
{
        static const char segment[] = FORM_LIST_PREFIX "$(DatasetSegment)";
        const struct form_attribute *input = form_get(r->part, STR("TransferInput")),
                                    *should = form_get(r->part, STR("ShouldTransferFiles")),
                                    *cmd = form_get(r->part, STR("Cmd"));
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX};
        struct place at = {r->files[0], r->part->line};

        if (!r->dataset)
                return 0;
        if (should && (strcmp(should->text, "\"NO\"") == 0 || strcmp(should->text, "\"IN_PLACE\"") == 0))
                return reader_fail(
                        r, at,
                        "a job of a dataset is sent its list of files: leave should_transfer_files out");
        if ((form_get(r->part, STR("ContainerImage")) || form_get(r->part, STR("DockerImage"))) &&
            !(cmd && strlen(cmd->text) > 2))
                return reader_fail(r, at,
                                   "a job of a dataset in a container needs an executable: the image's own "
                                   "program would start before its list of files is there");
        /* Fetched files come first, as their sizes do. */
        buf_printf(&text, "\"%s%s", r->dataset_inputs ? "$(DatasetInputs)," : "", segment);
        if (input && strlen(input->text) > 2)
                buf_printf(&text, ",%s", input->text + 1);
        else
                buf_char(&text, '"');
        if (r->dataset_inputs && !form_get(r->part, STR("TransferInputSizes"))) {
                form_set(r->part, STR("TransferInputSizes"), STR("\"$(DatasetSizes)\""), r->part->line);
                form_set_late(r->part, STR("TransferInputSizes"), true);
        }
        form_set(r->part, STR("TransferInput"), buf_view(&text), r->part->line);
        form_set_late(r->part, STR("TransferInput"), true);
        buf_reset(&text);
        buf_printf(&text, "\"%s $(DatasetFirst) $(DatasetCount)\"", segment);
        form_set(r->part, STR("DatasetList"), buf_view(&text), r->part->line);
        form_set_late(r->part, STR("DatasetList"), true);
        return 0;
}

bool dataset_clauses(struct reader *r, struct buf *out)
{
        if (r->dataset)
                clause_add(out, "($(DatasetWhere))");
        return r->dataset;
}
