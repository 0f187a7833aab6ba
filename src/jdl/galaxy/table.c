/* Data tables in the form that Galaxy's administrators write: tool_data_table_conf.xml names the columns
 * of each table and its files (.loc), whose lines are rows of fields. A table or file is read once. A path
 * is searched in the folder of the file that names it and in the one above, because a Galaxy has its
 * configuration in config/ and its tables in tool-data/. Paths in rows belong to the place where the job
 * runs; these files are not sent. */
#include <errno.h>

#include "base/map.h"
#include "base/mem.h"
#include "jdl/galaxy/tool.h"
#include "jdl/script/script.h"

#define HERE STR("${__HERE__}") /* the folder of the file in which it is written */

/* How the lines of a file are parsed. */
struct layout {
        /* start: only lines that begin with it are rows; empty: all lines */
        struct str separator, comment, start;
        size_t width; /* minimum number of fields in a row */
        bool unique;  /* duplicate rows are skipped */
        struct map *seen;
};

static struct str folder_of(struct str file)
{
        ptrdiff_t slash = str_rfind(file, '/');

        return slash < 0 ? STR(".") : slash == 0 ? STR("/") : str_head(file, (size_t)slash);
}

static void expand_here(const struct tool *t, struct str text, struct str file, struct buf *out)
{
        for (ptrdiff_t at; (at = str_search(text, HERE)) >= 0; text = str_skip(text, (size_t)at + HERE.n)) {
                buf_str(out, str_head(text, (size_t)at));
                script_absolute(t->w, file, STR("."), out);
        }
        buf_str(out, text);
}

/* ---- rows */

static int add_row(struct tool *t, struct layout *l, struct str line, struct datum *rows)
{
        struct datum *row = datum_new(&t->arena, DATUM_LIST);
        struct str rest = line;
        bool fits = true;

        if (t->arena.used > TOOL_MEMORY_MAX)
                return -E2BIG;
        if (l->unique && map_put(l->seen, line, row))
                return 0;
        for (ptrdiff_t at; fits && (at = str_search(rest, l->separator)) >= 0;
             rest = str_skip(rest, (size_t)at + l->separator.n))
                fits = datum_add(&t->arena, row, datum_text(&t->arena, str_head(rest, (size_t)at)));
        fits = fits && datum_add(&t->arena, row, datum_text(&t->arena, rest));
        if (fits && row->n >= l->width)
                fits = datum_add(&t->arena, rows, row);
        return fits ? 0 : -E2BIG;
}

static int read_rows(struct tool *t, struct str file, struct str text, struct layout *l, struct datum *rows,
                     struct err *err)
{
        struct str line;
        int rc = 0;

        while (rc == 0 && text.n && str_cut(&text, '\n', &line)) {
                BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

                while (line.n && line.p[line.n - 1] == '\r')
                        line.n--;
                if (!line.n || (l->comment.n && str_starts(str_trim_left(line), l->comment)) ||
                    !str_starts(line, l->start))
                        continue;
                expand_here(t, line, file, &b);
                rc = buf_check(&b) != 0 ? -E2BIG : add_row(t, l, buf_view(&b), rows);
        }
        return rc == 0 ? 0
                       : err_set(err, rc, STR_FMT ": a data table has at most %u rows, and %u MiB of fields",
                                 STR_ARG(file), DATUM_ITEMS_MAX, TOOL_MEMORY_MAX >> 20);
}

/* Searches a file in folders; *ret_file: where it was found. Returns 0; -ENOENT without err; or -errno
 * with err. */
static int find_file(struct tool *t, const struct xml *at, const struct str *folders, size_t count,
                     struct str path, struct buf *ret_text, struct str *ret_file, struct err *err)
{
        for (size_t i = 0; i < (str_starts(path, STR("/")) ? 1 : count); i++) {
                BUF_CLEANUP struct buf b = {0};
                int rc;

                if (!str_starts(path, STR("/")))
                        buf_printf(&b, STR_FMT "/", STR_ARG(folders[i]));
                buf_str(&b, path);
                rc = t->w->read_file(t->w->arg, buf_z(&b), ret_text);
                *ret_file = arena_str(&t->arena, buf_view(&b));
                if (rc == 0 && ret_text->n <= TOOL_TEXT_MAX)
                        return 0;
                if (rc != -ENOENT && rc != -ENOTDIR)
                        return rc == 0 ? tool_fail(at, err, "%s is over %u MiB", buf_z(&b),
                                                   TOOL_TEXT_MAX >> 20)
                                       : tool_fail(at, err, "%s: %s", buf_z(&b), strerror(-rc));
        }
        return -ENOENT;
}

/* ---- columns */

static int add_column(struct tool *t, const struct xml *x, struct datum *columns, struct err *err)
{
        uint64_t index;

        if (!xml_get(x, "name") || !xml_get(x, "index") ||
            str_to_u64(str_of(xml_get(x, "index")), &index) != 0 || index >= 1000)
                return tool_fail(x, err, "a <column> needs a name and an index below 1000");
        datum_put(&t->arena, columns, str_of(xml_get(x, "name")), datum_int(&t->arena, (int64_t)index));
        return 0;
}

/* Reads <columns>value, name, path</columns>, or <column name="value" index="0"/>. */
static int read_columns(struct tool *t, const struct xml *x, struct datum *columns, struct err *err)
{
        struct str names = xml_text(xml_child(x, "columns")), name;
        int64_t index = 0;
        int rc = 0;

        while (names.n && str_cut(&names, ',', &name))
                datum_put(&t->arena, columns, str_trim(name), datum_int(&t->arena, index++));
        for (const struct xml *c = xml_child(x, "column"); c && rc == 0; c = xml_next(c, "column"))
                rc = add_column(t, c, columns, err);
        if (rc == 0 && !datum_get(columns, STR("value")))
                return tool_fail(x, err, "a column named value is missing");
        if (rc == 0 && !datum_get(columns, STR("name")))
                datum_put(&t->arena, columns, STR("name"), datum_get(columns, STR("value")));
        return rc;
}

static size_t width_of(const struct datum *columns)
{
        size_t width = 0;

        for (size_t i = 0; i < columns->n; i++)
                if ((size_t)columns->items[i]->integer >= width)
                        width = (size_t)columns->items[i]->integer + 1;
        return width;
}

/* ---- tables */

static int read_tables_file(struct tool *t, struct err *err)
{
        BUF_CLEANUP struct buf path = {0}, text = {.max = TOOL_TEXT_MAX};
        struct str folder = folder_of(str_of(t->file));
        int rc;

        t->tables_read = true;
        if (t->tables_file)
                buf_addz(&path, t->tables_file);
        else
                buf_printf(&path, STR_FMT "/" TOOL_TABLES, STR_ARG(folder));
        rc = t->w->read_file(t->w->arg, buf_z(&path), &text);
        if (rc == -ENOENT && !t->tables_file)
                return 0;
        if (rc == 0)
                rc = buf_check(&text);
        if (rc != 0)
                return err_set(err, rc, "%s: %s", buf_z(&path), strerror(-rc));
        return xml_parse(arena_str(&t->arena, buf_view(&path)).p, buf_view(&text), &t->tables_root, err);
}

static int add_file(struct tool *t, const struct xml *file, struct layout *l, struct datum *rows,
                    struct err *err)
{
        struct str conf = str_of(file->file), folders[2] = {folder_of(conf)}, found;
        BUF_CLEANUP struct buf path = {0}, above = {0}, text = {0};
        int rc;

        buf_printf(&above, STR_FMT "/..", STR_ARG(folders[0]));
        folders[1] = buf_view(&above);
        expand_here(t, str_of(xml_get(file, "path")), conf, &path);
        if (!path.n)
                return tool_fail(file, err, "a data table's <file> is supported with a path");
        rc = find_file(t, file, folders, 2, buf_view(&path), &text, &found, err);
        if (rc == -ENOENT) { /* an empty table, as in Galaxy */
                form_warn(t->warnings, 0, "%s:%u: the data table's file %s is not there", file->file,
                          file->line, buf_z(&path));
                return 0;
        }
        return rc == 0 ? read_rows(t, found, buf_view(&text), l, rows, err) : rc;
}

/* Reads all tables of this name; later ones add rows. */
static int read_table(struct tool *t, const char *name, struct tool_table *ret, struct err *err)
{
        int rc = t->tables_read ? 0 : read_tables_file(t, err);

        for (const struct xml *x = xml_child(t->tables_root, "table"); x && rc == 0;
             x = xml_next(x, "table")) {
                struct datum *columns = datum_new(&t->arena, DATUM_MAP);
                struct layout l = {.separator = tool_attribute(x, "separator", "\t"),
                                   .comment = tool_attribute(x, "comment_char", "#")};

                if (!xml_get(x, "name") || strcmp(xml_get(x, "name"), name) != 0)
                        continue;
                rc = read_columns(t, x, columns, err);
                if (rc == 0 && !l.separator.n)
                        rc = tool_fail(x, err, "the separator is empty");
                if (rc != 0)
                        return rc;
                if (ret->rows && !datum_equal(columns, ret->columns))
                        return tool_fail(x, err, "the columns are others than those of the table %s before",
                                         name);
                if (!ret->rows)
                        *ret = (struct tool_table){columns, datum_new(&t->arena, DATUM_LIST)};
                l.width = width_of(columns);
                l.unique = xml_get(x, "allow_duplicate_entries") && !tool_says(x, "allow_duplicate_entries");
                l.seen = map_new();
                for (const struct xml *f = xml_child(x, "file"); f && rc == 0; f = xml_next(f, "file"))
                        rc = add_file(t, f, &l, ret->rows, err);
                map_free(l.seen);
        }
        return rc;
}

static struct str table_below(struct tool *t, struct str folder, const char *name)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, STR_FMT "/%s", STR_ARG(folder), name);
        return arena_str(&t->arena, buf_view(&b));
}

/* Reads from_file: beside the tool, beside the data tables, or in a folder tool-data. */
static int read_file(struct tool *t, const struct xml *options, struct str path, struct tool_table *ret,
                     struct err *err)
{
        struct layout l = {.separator = tool_attribute(options, "separator", "\t"),
                           .comment = STR("#"),
                           .start = tool_attribute(options, "startswith", "")};
        struct tool_table made = {datum_new(&t->arena, DATUM_MAP), datum_new(&t->arena, DATUM_LIST)};
        struct str tool = folder_of(str_of(t->file)), folders[5] = {tool, table_below(t, tool, "tool-data")},
                   found;
        BUF_CLEANUP struct buf text = {0};
        size_t count = 2;
        int rc = t->tables_read ? 0 : read_tables_file(t, err);

        if (rc == 0 && t->tables_root) {
                struct str conf = folder_of(str_of(t->tables_root->file));

                folders[count++] = conf;
                folders[count++] = table_below(t, conf, "tool-data");
                folders[count++] = table_below(t, conf, "../tool-data");
        }
        if (rc == 0)
                rc = read_columns(t, options, made.columns, err);
        if (rc == 0 && !l.separator.n)
                rc = tool_fail(options, err, "the separator is empty");
        if (rc != 0)
                return rc;
        l.width = width_of(made.columns);
        rc = find_file(t, options, folders, count, path, &text, &found, err);
        if (rc == 0)
                rc = read_rows(t, found, buf_view(&text), &l, made.rows, err);
        if (rc == 0)
                *ret = made;
        return rc == -ENOENT ? 0 : rc;
}

/* Returns the table that was read earlier under this key. */
static bool recall(const struct tool *t, struct str key, struct tool_table *ret)
{
        const struct datum *kept = datum_get(t->tables, key);

        if (kept && kept->n)
                *ret = (struct tool_table){datum_get(kept, STR("columns")), datum_get(kept, STR("rows"))};
        return kept != NULL;
}

static void remember(struct tool *t, struct str key, const struct tool_table *table)
{
        struct datum *kept = datum_new(&t->arena, DATUM_MAP);

        if (!t->tables)
                t->tables = datum_new(&t->arena, DATUM_MAP);
        if (table->rows) {
                datum_put(&t->arena, kept, STR("columns"), table->columns);
                datum_put(&t->arena, kept, STR("rows"), table->rows);
        }
        datum_put(&t->arena, t->tables, key, kept);
}

int tool_table(struct tool *t, const struct xml *options, struct tool_table *ret, struct err *err)
{
        const char *name = xml_get(options, "from_data_table"), *file = xml_get(options, "from_file");
        BUF_CLEANUP struct buf key = {0};
        int rc = 0;

        *ret = (struct tool_table){NULL, NULL};
        if (!name && !file)
                return 0;
        buf_printf(&key, "%s %s", name ? "table" : "file", name ? name : file);
        if (!recall(t, buf_view(&key), ret)) {
                rc = name ? read_table(t, name, ret, err)
                          : read_file(t, options, str_trim(str_of(file)), ret, err);
                remember(t, buf_view(&key), ret);
        }
        /* the parameter names columns itself */
        if (rc == 0 && ret->rows && name && xml_child(options, "column")) {
                ret->columns = datum_new(&t->arena, DATUM_MAP);
                rc = read_columns(t, options, ret->columns, err);
        }
        return rc;
}

struct datum *tool_field(const struct tool_table *table, const struct datum *row, const char *column)
{
        const struct datum *index = datum_get(table->columns, str_of(column));
        int64_t i = index ? index->integer : -1;

        if (!index && str_to_i64(str_of(column), &i) != 0)
                return NULL;
        return i >= 0 && (size_t)i < row->n ? row->items[i] : NULL;
}
