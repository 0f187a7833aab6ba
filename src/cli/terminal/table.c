#include "cli/terminal/table.h"

#include <assert.h>

#include "cli/terminal/human.h"

#define GAP 2

static const char *const codes[] = {
        [TABLE_PLAIN] = "",  [TABLE_RED] = "31", [TABLE_GREEN] = "32", [TABLE_YELLOW] = "33",
        [TABLE_BLUE] = "34", [TABLE_DIM] = "2",  [TABLE_BOLD] = "1",
};

void table_init(struct table *t, const struct table_column *columns, unsigned count)
{
        assert(count <= TABLE_COLUMNS_MAX);
        *t = (struct table){.columns = columns, .column_count = count};
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

void table_text(struct table *t, struct str text)
{
        size_t from = t->text.n;

        human_safe(&t->text, text);
        add_cell(t, from);
}

void table_view(struct table *t, struct view v)
{
        struct buf text BUF_CLEANUP = {0};
        size_t from = t->text.n;

        if (!view_there(v)) {
                buf_char(&t->text, '-');
        } else if (view_type(v) == VIEW_NUMBER) {
                buf_str(&t->text, v.text);
        } else {
                view_text(v, &text);
                human_safe(&t->text, buf_view(&text));
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

/* Cuts the wide columns, the widest first, until the line fits. */
static void fit(const struct table *t, unsigned widths[])
{
        unsigned total = (t->column_count - 1) * GAP;

        for (unsigned c = 0; c < t->column_count; c++)
                total += widths[c];
        while (t->width && total > t->width) {
                unsigned widest = t->column_count, second = 0, cut, least;

                for (unsigned c = 0; c < t->column_count; c++) {
                        least = human_width(str_of(t->columns[c].title));
                        if (!t->columns[c].wide || widths[c] <= (least < 8 ? 8 : least))
                                continue;
                        if (widest == t->column_count || widths[c] > widths[widest]) {
                                second = widest == t->column_count ? 0 : widths[widest];
                                widest = c;
                        } else if (widths[c] > second) {
                                second = widths[c];
                        }
                }
                if (widest == t->column_count)
                        return;
                least = human_width(str_of(t->columns[widest].title));
                if (least < 8)
                        least = 8;
                cut = total - t->width;
                if (second >= least && widths[widest] > second && cut > widths[widest] - second)
                        cut = widths[widest] - second;
                else if (second == widths[widest])
                        cut = 1;
                if (cut > widths[widest] - least)
                        cut = widths[widest] - least;
                widths[widest] -= cut;
                total -= cut;
        }
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

static void fill(struct buf *out, unsigned n)
{
        while (n-- > 0)
                buf_char(out, ' ');
}

static void print_cell(const struct table *t, struct buf *out, struct str text, unsigned width,
                       unsigned column, unsigned room, uint8_t colour)
{
        bool last = column + 1 == t->column_count;
        unsigned pad = width < room ? room - width : 0;

        if (t->columns[column].right)
                fill(out, pad);
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
        if (!t->columns[column].right && !last)
                fill(out, pad);
        if (!last)
                fill(out, GAP);
}

/* Takes the blanks at the end of a line away: an empty last cell leaves the gap before it. */
static void end_line(struct buf *out)
{
        while (out->n > 0 && out->p[out->n - 1] == ' ')
                out->n--;
        buf_char(out, '\n');
}

void table_print(const struct table *t, struct buf *out)
{
        unsigned widths[TABLE_COLUMNS_MAX];
        const char *text = t->text.p;

        assert(t->cell_count % t->column_count == 0);
        for (unsigned c = 0; c < t->column_count; c++)
                widths[c] = t->bare ? 0 : human_width(str_of(t->columns[c].title));
        for (size_t i = 0; i < t->cell_count; i++)
                if (t->cells[i].width > widths[i % t->column_count])
                        widths[i % t->column_count] = t->cells[i].width;
        fit(t, widths);
        for (unsigned c = 0; c < t->column_count && !t->bare; c++) {
                struct str title = str_of(t->columns[c].title);

                print_cell(t, out, title, human_width(title), c, widths[c], TABLE_BOLD);
        }
        if (!t->bare)
                end_line(out);
        for (size_t i = 0; i < t->cell_count; i++) {
                const struct table_cell *cell = &t->cells[i];
                unsigned c = (unsigned)(i % t->column_count);

                print_cell(t, out, str_make(text, cell->n), cell->width, c, widths[c], cell->colour);
                text += cell->n;
                if (c + 1 == t->column_count)
                        end_line(out);
        }
}

void table_coloured(struct buf *out, bool on, enum table_colour colour, const char *text)
{
        if (on && colour)
                buf_printf(out, "\033[%sm%s\033[0m", codes[colour], text);
        else
                buf_addz(out, text);
}
