/* drover catalog import: reads JSON (a list, {"files": [...]}, or one object a line, as `drover catalog
 * query --json` writes) and CSV (RFC 4180). JSON objects are sent unchanged; the server checks them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/json_read.h"
#include "base/system/fs.h"
#include "cli/command/data/catalog.h"

#define LINE_MAX_BYTES (1u << 20)
#define COLUMNS_MAX    120u

struct source {
        const char *name;
        FILE *file;
        struct buf line;
        unsigned number; /* of the current line */
};

static int fail_line(const struct source *s, const char *what)
{
        return cli_error(CLI_FAILED, "%s: line %u: %s", s->name, s->number, what);
}

/* Reads the next line with its line end. Returns 1; 0 at the end of the file; or an exit code of 2 or
 * more. */
static int next_line(struct source *s, bool append)
{
        int c;

        if (!append)
                buf_reset(&s->line);
        while ((c = getc_unlocked(s->file)) != EOF) {
                if (s->line.n == LINE_MAX_BYTES)
                        return fail_line(s, "the line has more than 1 MiB") + 1;
                buf_char(&s->line, (char)c);
                if (c == '\n')
                        break;
        }
        if (ferror(s->file))
                return cli_error(CLI_FAILED, "cannot read %s: %s", s->name, strerror(errno)) + 1;
        s->number++;
        return s->line.n > 0 && !(append && c == EOF);
}

/* ---- JSON */

/* Returns whether the text is one JSON object, so that a malformed one is reported alone and not as an
 * error of the whole batch. */
static bool is_object(struct str text)
{
        json_t *doc = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
        bool is = json_is_object(doc);

        json_decref(doc);
        return is;
}

static int import_lines(struct source *s, struct catalog_batch *b)
{
        int code, r;

        while ((r = next_line(s, false)) == 1) {
                struct str line = str_trim(buf_view(&s->line));

                if (line.n == 0)
                        continue;
                if (!is_object(line))
                        return fail_line(s, "this is not a JSON object");
                code = catalog_batch_add(b, line);
                if (code != 0)
                        return code;
        }
        return r == 0 ? 0 : CLI_FAILED;
}

/* Reads one document, and sends its elements unchanged. */
static int import_document(struct source *s, struct catalog_batch *b, struct buf *text)
{
        struct view root, list, one;
        json_error_t e;
        json_t *doc;
        size_t at = 0;
        int code = 0;

        doc = json_loadb(text->p ? text->p : "", text->n, JSON_REJECT_DUPLICATES, &e);
        if (!doc)
                return cli_error(CLI_FAILED, "%s: line %d: %s", s->name, e.line, e.text);
        json_decref(doc);
        root = view_of(buf_view(text));
        list = view_type(root) == VIEW_ARRAY ? root : view_get(root, "files");
        if (view_type(root) == VIEW_OBJECT && view_type(view_get(root, "name")) == VIEW_STRING)
                return catalog_batch_add(b, root.text); /* one file */
        if (view_type(list) != VIEW_ARRAY)
                return cli_error(CLI_FAILED,
                                 "%s: a list of files is expected, or an object with a list \"files\"",
                                 s->name);
        while (code == 0 && view_next(list, &at, &one)) {
                if (view_type(one) != VIEW_OBJECT)
                        return cli_error(CLI_FAILED, "%s: an element of the list is not an object", s->name);
                code = catalog_batch_add(b, one.text);
        }
        return code;
}

static int import_json(struct source *s, struct catalog_batch *b, bool lines)
{
        struct buf text BUF_CLEANUP = {.max = 1u << 30};
        size_t n;

        if (lines)
                return import_lines(s, b);
        do {
                char *room = buf_room(&text, 1u << 20);

                if (!room)
                        return cli_error(CLI_FAILED,
                                         "%s has more than 1 GiB: write an object a line (--format jsonl)",
                                         s->name);
                n = fread(room, 1, 1u << 20, s->file);
                text.n += n;
        } while (n);
        if (ferror(s->file))
                return cli_error(CLI_FAILED, "cannot read %s: %s", s->name, strerror(errno));
        return import_document(s, b, &text);
}

/* ---- CSV */

struct csv {
        struct buf fields[COLUMNS_MAX];
        size_t count;
};

static void csv_deinit(struct csv *c)
{
        for (size_t i = 0; i < COLUMNS_MAX; i++)
                buf_deinit(&c->fields[i]);
}

/* Reads the next record; a quoted field may have commas, doubled quotes and line ends. Returns as
 * next_line. */
static int next_record(struct source *s, struct csv *c)
{
        bool quoted = false;
        size_t i = 0;
        int r = next_line(s, false);

        if (r != 1)
                return r;
        c->count = 1;
        buf_reset(&c->fields[0]);
        for (;; i++) {
                struct str line = buf_view(&s->line);
                struct buf *field = &c->fields[c->count - 1];

                if (i == line.n && quoted) {
                        r = next_line(s, true);
                        if (r == 0)
                                r = fail_line(s, "a quote is not closed") + 1;
                        if (r != 1)
                                return r;
                        line = buf_view(&s->line);
                }
                if (i == line.n || (!quoted && line.p[i] == '\n'))
                        return 1;
                if (line.p[i] == '"' && quoted && i + 1 < line.n && line.p[i + 1] == '"') {
                        buf_char(field, '"');
                        i++;
                } else if (line.p[i] == '"' && (quoted || field->n == 0)) {
                        quoted = !quoted;
                } else if (line.p[i] == ',' && !quoted) {
                        if (c->count == COLUMNS_MAX)
                                return fail_line(s, "there are too many columns") + 1;
                        buf_reset(&c->fields[c->count++]);
                } else if (quoted || line.p[i] != '\r') {
                        buf_char(field, line.p[i]);
                }
        }
}

static struct str field(const struct csv *titles, const struct csv *row, const char *name)
{
        for (size_t i = 0; i < titles->count && i < row->count; i++)
                if (str_ieqz(str_trim(buf_view(&titles->fields[i])), name))
                        return str_trim(buf_view(&row->fields[i]));
        return STR_NONE;
}

static bool is_own_column(struct str title)
{
        static const char *const own[] = {"name", "size", "checksum", "url", "host", "store"};

        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
                if (str_ieqz(title, own[i]))
                        return true;
        return false;
}

static int write_row(const struct source *s, const struct csv *titles, const struct csv *row, struct buf *out)
{
        struct json j = {.out = out};
        struct str name = field(titles, row, "name"), size = field(titles, row, "size"), text;
        uint64_t bytes;

        if (row->count > titles->count)
                return fail_line(s, "the row has more fields than there are titles");
        if (name.n == 0)
                return fail_line(s, "the file has no name");
        if (size.n && (str_to_u64(size, &bytes) != 0 || bytes > INT64_MAX))
                return fail_line(s, "the size is not a number of bytes");
        json_open(&j, '{');
        json_kstr(&j, "name", name);
        if (size.n)
                json_kint(&j, "size", (int64_t)bytes);
        text = field(titles, row, "checksum");
        if (text.n)
                json_kstr(&j, "checksum", text);
        json_key(&j, "metadata");
        json_open(&j, '{');
        for (size_t i = 0; i < titles->count && i < row->count; i++) {
                struct str title = str_trim(buf_view(&titles->fields[i]));
                struct str value = str_trim(buf_view(&row->fields[i]));

                if (is_own_column(title) || title.n == 0 || value.n == 0)
                        continue;
                json_keys(&j, str_ends(title, STR(":text")) ? str_head(title, title.n - 5) : title);
                catalog_write_value(&j, title, value);
        }
        json_close(&j, '}');
        text = field(titles, row, "url");
        if (text.n) {
                json_key(&j, "replicas");
                json_open(&j, '[');
                json_open(&j, '{');
                json_kstr(&j, "url", text);
                if (field(titles, row, "host").n)
                        json_kstr(&j, "host", field(titles, row, "host"));
                if (field(titles, row, "store").n)
                        json_kstr(&j, "store", field(titles, row, "store"));
                json_close(&j, '}');
                json_close(&j, ']');
        }
        json_close(&j, '}');
        return 0;
}

static int import_csv(struct source *s, struct catalog_batch *b)
{
        struct csv titles = {.count = 0}, row = {.count = 0};
        struct buf file BUF_CLEANUP = {0};
        int r = next_record(s, &titles), code = 0;

        if (r == 1 && field(&titles, &titles, "name").n == 0)
                code = fail_line(s,
                                 "the first line has the titles of the columns, and one of them is \"name\"");
        else if (r == 0)
                code = cli_error(CLI_FAILED, "%s is empty", s->name);
        while (r == 1 && code == 0 && (r = next_record(s, &row)) == 1) {
                if (row.count == 1 && str_trim(buf_view(&row.fields[0])).n == 0)
                        continue;
                buf_reset(&file);
                code = write_row(s, &titles, &row, &file);
                if (code == 0)
                        code = catalog_batch_add(b, buf_view(&file));
        }
        csv_deinit(&titles);
        csv_deinit(&row);
        return r > 1 ? CLI_FAILED : code;
}

/* Chooses the format by --format, by the file's name, or by the first character. */
static int choose(const struct source *s, const char *format, int first)
{
        if (!format) {
                struct str name = str_of(s->name);

                format = str_ends(name, STR(".csv"))                                       ? "csv"
                         : str_ends(name, STR(".jsonl")) || str_ends(name, STR(".ndjson")) ? "jsonl"
                         : str_ends(name, STR(".json"))                                    ? "json"
                         : first == '['                                                    ? "json"
                         : first == '{'                                                    ? "jsonl"
                                                                                           : "csv";
        }
        return strcmp(format, "csv") == 0     ? 'c'
               : strcmp(format, "json") == 0  ? 'j'
               : strcmp(format, "jsonl") == 0 ? 'l'
                                              : 0;
}

int catalog_import(struct cli *cli, const struct options *o)
{
        struct catalog_batch batch CATALOG_BATCH_CLEANUP = {.cli = cli,
                                                            .replace = options_flag(o, "replace")};
        struct source s = {.name = o->word_count > 1 ? o->words[1] : "-"};
        int format, first, code;

        if (o->word_count != 2)
                return cli_error(CLI_USAGE,
                                 "what is imported? drover catalog import FILE, or - for standard input");
        s.file = strcmp(s.name, "-") == 0 ? stdin : fopen(s.name, "re");
        if (!s.file)
                return cli_error(CLI_FAILED, "cannot read %s: %s", s.name, strerror(errno));
        first = getc(s.file);
        if (first != EOF)
                ungetc(first, s.file);
        format = choose(&s, options_text(o, "format"), first);
        code = format == 0     ? cli_error(CLI_USAGE, "--format is csv, json or jsonl")
               : format == 'c' ? import_csv(&s, &batch)
                               : import_json(&s, &batch, format == 'l');
        if (code == 0)
                code = catalog_batch_end(&batch);
        if (s.file != stdin)
                fclose(s.file);
        buf_deinit(&s.line);
        return code;
}
