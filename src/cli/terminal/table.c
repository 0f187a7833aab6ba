#include "cli/terminal/table.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cli/terminal/human.h"

#define GAP        2
#define LEAST      8  /* columns that a wide one keeps */
#define READABLE   13 /* columns that a name should keep, to stay recognisable */
#define WRAP_LEAST 28 /* minimum width of a wrapping column beside others; with less it is moved below */
#define INDENT     4  /* indent of text below a row */

static const char *const codes[] = {
        [TABLE_PLAIN] = "",  [TABLE_RED] = "31", [TABLE_GREEN] = "32", [TABLE_YELLOW] = "33",
        [TABLE_BLUE] = "34", [TABLE_DIM] = "2",  [TABLE_BOLD] = "1",
};

void table_init(struct table *t, const struct table_column *columns, unsigned count)
{
        assert(count <= TABLE_COLUMNS_MAX);
        *t = (struct table){.columns = columns, .column_count = count, .sort = count};
        for (unsigned c = 0; c < count; c++)
                if (!columns[c].extra)
                        t->shown[t->shown_count++] = c;
}

/* Appends a title as it is typed and as CSV has it: "UNDER WAY" is under_way. */
static void add_key(struct buf *out, const char *title)
{
        for (; *title; title++)
                buf_char(out, *title == ' ' ? '_' : (char)tolower((unsigned char)*title));
}

static int find_column(const struct table *t, struct str name, unsigned *ret, struct err *err)
{
        struct buf key BUF_CLEANUP = {0}, all BUF_CLEANUP = {0};

        for (unsigned c = 0; c < t->column_count; c++) {
                buf_reset(&key);
                add_key(&key, t->columns[c].title);
                if (str_ieq(name, buf_view(&key))) {
                        *ret = c;
                        return 0;
                }
                buf_addz(&all, c ? ", " : "");
                buf_str(&all, buf_view(&key));
        }
        return err_set(err, -EINVAL, "there is no column \"" STR_FMT "\"; the columns are %s", STR_ARG(name),
                       buf_z(&all));
}

int table_set_form(struct table *t, const struct table_form *form, struct err *err)
{
        struct str rest = str_of(form->columns), name;
        int r;

        t->csv = form->csv;
        t->bare = form->bare;
        t->ruled = form->ruled;
        t->raw = form->raw;
        t->chosen = form->columns != NULL;
        if (form->columns)
                t->shown_count = 0;
        while (str_cut(&rest, ',', &name)) {
                if (t->shown_count == TABLE_COLUMNS_MAX)
                        return err_set(err, -EINVAL, "too many columns: at most %d", TABLE_COLUMNS_MAX);
                r = find_column(t, str_trim(name), &t->shown[t->shown_count++], err);
                if (r != 0)
                        return r;
        }
        if (t->shown_count == 0)
                return find_column(t, STR(""), &t->sort, err);
        if (!form->sort)
                return 0;
        name = str_of(form->sort);
        t->descending = str_starts(name, STR("-"));
        return find_column(t, str_skip(name, t->descending ? 1 : 0), &t->sort, err);
}

void table_deinit(struct table *t)
{
        buf_deinit(&t->text);
        free(t->cells);
        t->cells = NULL;
        t->cell_count = t->cell_cap = 0;
}

/* The text of a new cell has been appended to t->text from `from` on. */
static void add_cell(struct table *t, size_t from)
{
        struct str text = str_skip(buf_view(&t->text), from);
        unsigned width = human_width(text);

        MEM_GROW(t->cells, t->cell_cap, t->cell_count + 1);
        t->cells[t->cell_count++] = (struct table_cell){
                .n = (uint32_t)text.n, .width = (uint16_t)(width < UINT16_MAX ? width : UINT16_MAX)};
}

static void set_value(struct table *t, enum table_kind kind, int64_t value)
{
        t->cells[t->cell_count - 1].kind = (uint8_t)kind;
        t->cells[t->cell_count - 1].value = value;
}

void table_text(struct table *t, struct str text)
{
        size_t from = t->text.n;

        human_safe(&t->text, text);
        add_cell(t, from);
}

void table_view(struct table *t, struct view v)
{
        size_t from = t->text.n;

        if (!view_there(v)) {
                buf_char(&t->text, '-');
        } else if (view_type(v) == VIEW_NUMBER) {
                buf_str(&t->text, v.text);
                add_cell(t, from);
                set_value(t, TABLE_NUMBER, view_integer(v, 0));
                return;
        } else {
                view_safe(v, &t->text);
        }
        add_cell(t, from);
}

void table_format(struct table *t, const char *fmt, ...)
{
        struct buf text BUF_CLEANUP = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        table_text(t, buf_view(&text));
}

void table_integer(struct table *t, int64_t n)
{
        char digits[20];
        size_t at = sizeof(digits), from = t->text.n;
        uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

        do
                digits[--at] = (char)('0' + left % 10);
        while (left /= 10);
        if (n < 0)
                buf_char(&t->text, '-');
        buf_add(&t->text, digits + at, sizeof(digits) - at);
        add_cell(t, from);
}

void table_time(struct table *t, int64_t at_ms, int64_t now_ms)
{
        size_t from = t->text.n;

        human_time(&t->text, at_ms, now_ms);
        add_cell(t, from);
        set_value(t, TABLE_TIME, at_ms);
}

void table_duration(struct table *t, int64_t ms)
{
        size_t from = t->text.n;

        human_duration(&t->text, ms);
        add_cell(t, from);
        set_value(t, TABLE_DURATION, ms);
}

void table_range(struct table *t, int64_t from_ms, int64_t to_ms)
{
        size_t from = t->text.n;

        human_range(&t->text, from_ms, to_ms);
        add_cell(t, from);
        set_value(t, TABLE_DURATION, from_ms);
}

void table_paint(struct table *t, enum table_colour colour)
{
        assert(t->cell_count > 0);
        t->cells[t->cell_count - 1].colour = (uint8_t)colour;
}

void table_end_row(struct table *t)
{
        while (t->cell_count % t->column_count)
                add_cell(t, t->text.n);
}

size_t table_rows(const struct table *t)
{
        return t->cell_count / t->column_count;
}

/* Layout of a table's columns. */
struct setting {
        unsigned shown[TABLE_COLUMNS_MAX], widths[TABLE_COLUMNS_MAX], count;
        unsigned below; /* the column whose text has lines of its own below each row; column_count: none */
};

/* For each column the width of its widest cell or its title, and whether nothing is told in it; one pass,
 * since a table may have millions of cells. */
static void measure_columns(const struct table *t, unsigned *widths, bool *empty)
{
        const char *at = t->text.p;

        for (unsigned c = 0; c < t->column_count; c++) {
                widths[c] = t->bare ? 0 : human_width(str_of(t->columns[c].title));
                empty[c] = true;
        }
        for (size_t i = 0; i < t->cell_count;)
                for (unsigned c = 0; c < t->column_count; at += t->cells[i++].n, c++) {
                        struct str text = str_make(at, t->cells[i].n);

                        if (t->cells[i].width > widths[c])
                                widths[c] = t->cells[i].width;
                        empty[c] &= text.n == 0 || (text.n == 1 && (*at == '-' || *at == '0'));
                }
}

static unsigned total_width(const struct setting *g)
{
        unsigned total = g->count ? (g->count - 1) * GAP : 0;

        for (unsigned c = 0; c < g->count; c++)
                total += g->widths[c];
        return total;
}

static void leave_out(struct setting *g, unsigned at)
{
        g->count--;
        for (unsigned c = at; c < g->count; c++) {
                g->shown[c] = g->shown[c + 1];
                g->widths[c] = g->widths[c + 1];
        }
}

/* How narrow the column may become, to be no longer than `least` but for its title. */
static unsigned least_width(const struct table *t, const struct setting *g, unsigned c, unsigned least)
{
        const struct table_column *column = &t->columns[g->shown[c]];
        unsigned title = t->bare ? 0 : human_width(str_of(column->title));

        least = column->wraps ? WRAP_LEAST : least;
        return least < title ? title : least;
}

/* The width when each wide column is cut to so much. */
static unsigned cut_width(const struct table *t, const struct setting *g, unsigned least)
{
        unsigned total = total_width(g);

        for (unsigned c = 0; c < g->count; c++)
                if (t->columns[g->shown[c]].wide && g->widths[c] > least_width(t, g, c, least))
                        total -= g->widths[c] - least_width(t, g, c, least);
        return total;
}

/* Cuts the wide columns, the widest first, until the line fits. */
static void cut_columns(const struct table *t, struct setting *g)
{
        unsigned total = total_width(g);

        while (total > t->width) {
                unsigned widest = g->count;

                for (unsigned c = 0; c < g->count; c++)
                        if (t->columns[g->shown[c]].wide && g->widths[c] > least_width(t, g, c, LEAST) &&
                            (widest == g->count || g->widths[c] > g->widths[widest]))
                                widest = c;
                if (widest == g->count)
                        return;
                g->widths[widest]--;
                total--;
        }
}

static void set_columns(const struct table *t, struct setting *g)
{
        unsigned widths[TABLE_COLUMNS_MAX];
        bool empty[TABLE_COLUMNS_MAX];

        *g = (struct setting){.count = t->shown_count, .below = t->column_count};
        measure_columns(t, widths, empty);
        for (unsigned c = 0; c < g->count; c++) {
                g->shown[c] = t->shown[c];
                g->widths[c] = widths[g->shown[c]];
        }
        if (!t->width)
                return;
        for (unsigned c = g->count; c-- > 0 && !t->chosen && total_width(g) > t->width;)
                if (t->columns[g->shown[c]].spare && empty[g->shown[c]])
                        leave_out(g, c);
        for (unsigned c = g->count; c-- > 0 && cut_width(t, g, READABLE) > t->width;)
                if (t->columns[g->shown[c]].wraps && g->widths[c] > WRAP_LEAST && g->count > 1) {
                        g->below = g->shown[c];
                        leave_out(g, c);
                }
        for (unsigned c = g->count; c-- > 0 && !t->chosen && cut_width(t, g, READABLE) > t->width;)
                if (t->columns[g->shown[c]].spare)
                        leave_out(g, c);
        cut_columns(t, g);
}

/* The first `width` characters of the text. */
static struct str head(struct str text, unsigned width)
{
        size_t i = 0;

        while (i < text.n && width > 0) {
                i++;
                while (i < text.n && ((unsigned char)text.p[i] & 0xc0) == 0x80)
                        i++;
                width--;
        }
        return str_head(text, i);
}

static void spaces_add(struct buf *out, unsigned n)
{
        char *to = buf_room(out, n);

        if (!to)
                return;
        memset(to, ' ', n);
        out->n += n;
}

/* `at`: the column's place among those that are shown. */
static void print_cell(const struct table *t, const struct setting *g, struct buf *out, struct str text,
                       unsigned at, uint8_t colour)
{
        bool last = at + 1 == g->count, right = t->columns[g->shown[at]].right;
        unsigned width = human_width(text), room = g->widths[at];
        unsigned pad = width < room ? room - width : 0;

        if (right)
                spaces_add(out, pad);
        if (t->colour && colour)
                buf_printf(out, "\033[%sm", codes[colour]);
        if (width > room) {
                buf_str(out, head(text, room - 1));
                buf_addz(out, "…");
        } else {
                buf_str(out, text);
        }
        if (t->colour && colour)
                buf_addz(out, "\033[0m");
        if (!right && !last)
                spaces_add(out, pad);
        if (!last)
                spaces_add(out, GAP);
}

/* Takes the blanks at the end of a line away: an empty last cell leaves the gap before it. */
static void end_line(struct buf *out)
{
        while (out->n > 0 && out->p[out->n - 1] == ' ')
                out->n--;
        buf_char(out, '\n');
}

/* Start of each cell's text, and the order in which the rows are shown. */
struct order {
        const struct table *t;
        size_t *text_at, *rows;
};

static struct str cell_text(const struct order *o, size_t row, unsigned column)
{
        size_t cell = row * o->t->column_count + column;

        return str_make(o->t->text.p + o->text_at[cell], o->t->cells[cell].n);
}

static bool is_digit(struct str s, size_t i)
{
        return i < s.n && s.p[i] >= '0' && s.p[i] <= '9';
}

/* Texts in which numbers count as such: 7.9 comes before 7.10, node2 before node10. */
static int compare_texts(struct str a, struct str b)
{
        size_t i = 0, k = 0;

        while (i < a.n && k < b.n) {
                size_t ai = i, bk = k;

                if (!is_digit(a, i) || !is_digit(b, k)) {
                        if (a.p[i] != b.p[k])
                                return (unsigned char)a.p[i] < (unsigned char)b.p[k] ? -1 : 1;
                        i++, k++;
                        continue;
                }
                while (is_digit(a, ai) && a.p[ai] == '0')
                        ai++;
                while (is_digit(b, bk) && b.p[bk] == '0')
                        bk++;
                for (i = ai; is_digit(a, i);)
                        i++;
                for (k = bk; is_digit(b, k);)
                        k++;
                if (i - ai != k - bk)
                        return i - ai < k - bk ? -1 : 1;
                if (memcmp(a.p + ai, b.p + bk, i - ai) != 0)
                        return memcmp(a.p + ai, b.p + bk, i - ai);
        }
        return i < a.n ? 1 : k < b.n ? -1 : 0;
}

static int compare_rows(const void *left, const void *right, void *arg)
{
        const struct order *o = arg;
        size_t l = *(const size_t *)left, r = *(const size_t *)right;
        const struct table_cell *a = &o->t->cells[l * o->t->column_count + o->t->sort],
                                *b = &o->t->cells[r * o->t->column_count + o->t->sort];
        int by = a->kind != TABLE_TEXT && b->kind != TABLE_TEXT
                         ? (a->value > b->value) - (a->value < b->value)
                         : compare_texts(cell_text(o, l, o->t->sort), cell_text(o, r, o->t->sort));

        if (by != 0)
                return o->t->descending ? -by : by;
        return (l > r) - (l < r);
}

static void order_init(struct order *o, const struct table *t)
{
        size_t at = 0;

        o->t = t;
        o->text_at = mem_alloc(t->cell_count * sizeof(*o->text_at) + 1);
        o->rows = mem_alloc(table_rows(t) * sizeof(*o->rows) + 1);
        for (size_t i = 0; i < t->cell_count; i++) {
                o->text_at[i] = at;
                at += t->cells[i].n;
        }
        for (size_t row = 0; row < table_rows(t); row++)
                o->rows[row] = row;
        if (t->sort < t->column_count)
                qsort_r(o->rows, table_rows(t), sizeof(*o->rows), compare_rows, o);
}

static void add_csv_text(struct buf *out, struct str text)
{
        bool quoted = false;

        for (size_t i = 0; i < text.n; i++)
                quoted |= text.p[i] == ',' || text.p[i] == '"';
        if (quoted)
                buf_char(out, '"');
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '"')
                        buf_char(out, '"');
                buf_char(out, text.p[i]);
        }
        if (quoted)
                buf_char(out, '"');
}

static void add_csv_cell(struct buf *out, const struct table_cell *cell, struct str text)
{
        time_t at = (time_t)(cell->value / 1000);
        char time_text[40];
        struct tm tm;

        if (cell->kind == TABLE_DURATION)
                buf_printf(out, "%lld.%03d", (long long)(cell->value / 1000),
                           (int)(llabs(cell->value) % 1000));
        else if (cell->kind == TABLE_TIME && cell->value > 0 && gmtime_r(&at, &tm))
                buf_add(out, time_text, strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%SZ", &tm));
        else if (!str_eqz(text, "-"))
                add_csv_text(out, text);
}

static void print_csv(const struct table *t, const struct order *o, struct buf *out)
{
        for (unsigned c = 0; c < t->shown_count && !t->bare; c++) {
                struct buf title BUF_CLEANUP = {0};

                buf_addz(out, c ? "," : "");
                add_key(&title, t->columns[t->shown[c]].title);
                add_csv_text(out, buf_view(&title)); /* it may be an expression */
        }
        buf_addz(out, t->bare ? "" : "\n");
        for (size_t i = 0; i < table_rows(t); i++) {
                for (unsigned c = 0; c < t->shown_count; c++) {
                        buf_addz(out, c ? "," : "");
                        add_csv_cell(out, &t->cells[o->rows[i] * t->column_count + t->shown[c]],
                                     cell_text(o, o->rows[i], t->shown[c]));
                }
                buf_char(out, '\n');
        }
}

static void print_raw(const struct table *t, const struct order *o, struct buf *out)
{
        for (unsigned c = 0; c < t->shown_count && !t->bare; c++)
                buf_printf(out, "%s%s", c ? "|" : "", t->columns[t->shown[c]].title);
        buf_addz(out, t->bare ? "" : "\n");
        for (size_t i = 0; i < table_rows(t); i++) {
                for (unsigned c = 0; c < t->shown_count; c++) {
                        buf_addz(out, c ? "|" : "");
                        buf_str(out, cell_text(o, o->rows[i], t->shown[c]));
                }
                buf_char(out, '\n');
        }
}

/* Takes as many words as there is room for; a longer word is divided. *rest then begins with a word. */
static struct str take_words(struct str *rest, unsigned room)
{
        struct str line = head(*rest, room);
        size_t end = line.n;

        if (line.n < rest->n && rest->p[line.n] != ' ')
                for (end = line.n; end > 0 && line.p[end - 1] != ' ';)
                        end--;
        line = str_trim(str_head(line, end ? end : line.n));
        *rest = str_trim(str_skip(*rest, end ? end : line.n));
        return line;
}

/* The text in lines of its own, as wide as the terminal. */
static void print_below(const struct table *t, struct buf *out, struct str text, uint8_t colour)
{
        unsigned room = t->width > INDENT + WRAP_LEAST ? t->width - INDENT : WRAP_LEAST;

        while (text.n > 0) {
                struct str line = human_width(text) > room ? take_words(&text, room) : text;

                spaces_add(out, INDENT);
                if (t->colour && colour)
                        buf_printf(out, "\033[%sm", codes[colour]);
                buf_str(out, line);
                if (t->colour && colour)
                        buf_addz(out, "\033[0m");
                buf_char(out, '\n');
                if (line.p == text.p)
                        return;
        }
}

static void print_row(const struct table *t, const struct order *o, size_t row, const struct setting *g,
                      struct buf *out)
{
        struct str rest[TABLE_COLUMNS_MAX] = {0}, text;
        bool more = true;

        for (unsigned line = 0; more; line++) {
                more = false;
                for (unsigned c = 0; c < g->count; c++) {
                        text = line == 0 ? cell_text(o, row, g->shown[c]) : rest[c];
                        if (t->columns[g->shown[c]].wraps && human_width(text) > g->widths[c]) {
                                rest[c] = text;
                                text = take_words(&rest[c], g->widths[c]);
                                more = true;
                        } else {
                                rest[c] = STR_NONE;
                        }
                        print_cell(t, g, out, text, c, t->cells[row * t->column_count + g->shown[c]].colour);
                }
                end_line(out);
        }
        if (g->below < t->column_count)
                print_below(t, out, cell_text(o, row, g->below),
                            t->cells[row * t->column_count + g->below].colour);
}

static void print_rule(const struct setting *g, struct buf *out)
{
        for (unsigned c = 0; c < g->count; c++) {
                for (unsigned i = 0; i < g->widths[c]; i++)
                        buf_char(out, '-');
                spaces_add(out, GAP);
        }
        end_line(out);
}

static void print_aligned(const struct table *t, const struct order *o, struct buf *out)
{
        struct setting g;

        set_columns(t, &g);
        for (unsigned c = 0; c < g.count && !t->bare; c++)
                print_cell(t, &g, out, str_of(t->columns[g.shown[c]].title), c, TABLE_BOLD);
        if (!t->bare)
                end_line(out);
        if (t->ruled && !t->bare)
                print_rule(&g, out);
        for (size_t i = 0; i < table_rows(t); i++)
                print_row(t, o, o->rows[i], &g, out);
}

void table_print(const struct table *t, struct buf *out)
{
        struct order o;

        assert(t->cell_count % t->column_count == 0);
        order_init(&o, t);
        if (t->csv)
                print_csv(t, &o, out);
        else if (t->raw)
                print_raw(t, &o, out);
        else
                print_aligned(t, &o, out);
        free(o.text_at);
        free(o.rows);
}

void table_coloured(struct buf *out, bool on, enum table_colour colour, const char *text)
{
        if (on && colour)
                buf_printf(out, "\033[%sm%s\033[0m", codes[colour], text);
        else
                buf_addz(out, text);
}
