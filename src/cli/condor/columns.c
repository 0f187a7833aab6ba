#include "cli/condor/columns.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "classad/expr.h"
#include "classad/print.h"
#include "cli/condor/clock_text.h"

#define WIDTH_MAX 4096 /* maximum width of a conversion in a format */

/* Attributes whose values stand in the ad as they are, so that an ad of them alone will do. */
static const char *const literals[] = {
        "ClusterId",
        "ProcId",
        "JobStatus",
        "Owner",
        "User",
        "QDate",
        "ExitCode",
        "ExitBySignal",
        "ExitSignal",
        "HoldReason",
        "HoldReasonCode",
        "HoldReasonSubCode",
        "NumJobStarts",
        "RemoteHost",
        "LastRemoteHost",
        "JobStartDate",
        "JobCurrentStartDate",
        "CompletionDate",
        "EnteredCurrentStatus",
        "MemoryUsage",
        "RemoteWallClockTime",
        "RemoteUserCpu",
        "RemoteSysCpu",
        "DroverState",
};

void columns_init(struct columns *c, struct symbols *symbols, int64_t now_s)
{
        *c = (struct columns){.symbols = symbols};
        eval_init(&c->eval, now_s, 1);
}

void columns_deinit(struct columns *c)
{
        for (size_t i = 0; i < c->count; i++)
                expr_free(c->items[i].expr);
        for (size_t i = 0; i < c->cell_count; i++)
                free(c->cells[i]);
        free(c->items);
        free(c->cells);
        eval_deinit(&c->eval);
        *c = (struct columns){0};
}

static bool is_name(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char ch = s.p[i];
                bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';

                if (!letter && (i == 0 || ch < '0' || ch > '9'))
                        return false;
        }
        return s.n > 0;
}

static int add_column(struct columns *c, struct column column, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};

        if (c->count == COLUMNS_MAX)
                return err_set(err, -E2BIG, "more than %u columns", COLUMNS_MAX);
        expr_text_from_old(str_of(column.text), &text);
        if (column.text && expr_parse(c->symbols, buf_view(&text), &column.expr, err) != 0)
                return err_prefix(err, -EINVAL, "\"%s\" is no attribute or expression", column.text);
        MEM_GROW(c->items, c->cap, c->count + 1);
        c->items[c->count++] = column;
        return 0;
}

static int read_qualifiers(const char *qualifiers, struct column *like, bool *ret_id, struct err *err)
{
        bool lines = false;

        like->between = ' ';
        for (const char *q = qualifiers ? qualifiers : ""; *q; q++) {
                switch (*q) {
                case 'j': *ret_id = true; break;
                case 'l': like->label = true; break;
                case 'h': like->heading = true; break;
                case 'V': like->quoted = true; break;
                case 'r': like->raw = true; break;
                case 'T': like->seconds = true; break;
                case 'Y': like->date = true; break;
                case ',': like->comma = true; break;
                case 't': like->between = '\t'; break;
                case 'n': lines = true; break;
                case 'g': like->gap = true; break;
                default:
                        return err_set(err, -EINVAL,
                                       "-autoformat:%s: \"%c\" is not supported, only j l h V r T Y , t n g",
                                       qualifiers, *q);
                }
        }
        if (lines)
                like->between = '\n';
        else if (like->gap && like->between == ' ')
                like->between = 0;
        if (lines && like->comma)
                return err_set(err, -EINVAL, "-autoformat: n and , can't be used together");
        if (like->label && like->heading)
                return err_set(err, -EINVAL, "-autoformat: l and h can't be used together");
        return 0;
}

int columns_auto(struct columns *c, const char *qualifiers, const char *const *words, size_t count,
                 struct err *err)
{
        struct column like = {0};
        size_t begin = c->count;
        bool id = false;
        int rc = read_qualifiers(qualifiers, &like, &id, err);

        if (rc == 0 && id)
                rc = add_column(c, like, err);
        for (size_t i = 0; i < count && rc == 0; i++) {
                like.text = words[i];
                rc = add_column(c, like, err);
        }
        if (rc == 0) {
                c->items[begin].first = true;
                c->items[c->count - 1].last = true;
        }
        return rc;
}

int columns_format(struct columns *c, const char *format, const char *text, struct err *err)
{
        return add_column(c, (struct column){.text = text, .format = format}, err);
}

void columns_names(const struct columns *c, struct buf *out)
{
        size_t from = out->n;

        buf_addz(out, "ClusterId,ProcId");
        for (size_t i = 0; i < c->count; i++) {
                bool known = !c->items[i].text;

                for (size_t k = 0; k < sizeof(literals) / sizeof(literals[0]) && !known; k++)
                        known = str_ieqz(str_of(c->items[i].text), literals[k]);
                if (!known) {
                        buf_truncate(out, from);
                        buf_char(out, '*');
                        return;
                }
                if (c->items[i].text)
                        buf_printf(out, ",%s", c->items[i].text);
        }
}

/* ---- values */

static void print_real(struct buf *out, double d)
{
        char text[64];
        double back;

        snprintf(text, sizeof(text), "%.15g", d);
        if (str_to_double(str_of(text), &back) != 0 || back != d)
                snprintf(text, sizeof(text), "%.17g", d);
        buf_addz(out, text);
        if (strspn(text, "-0123456789") == strlen(text))
                buf_addz(out, ".0");
}

/* Appends a value as %v prints it: strings without quotes, numbers short. HTCondor's tools print in the old
 * syntax. */
static void columns_value(struct buf *out, const struct value *v, bool quoted)
{
        BUF_CLEANUP struct buf text = {0};

        if (v->type == VALUE_STRING && !quoted) {
                buf_str(out, v->string);
        } else if (v->type == VALUE_REAL && v->real - v->real == 0) {
                print_real(out, v->real);
        } else {
                value_print(&text, v);
                expr_text_to_old(buf_view(&text), out);
        }
}

static void evaluate(struct columns *c, const struct column *k, const struct ad *ad, struct value *ret)
{
        symbol name = is_name(str_of(k->text)) ? symbols_find(c->symbols, str_of(k->text)) : 0;

        if (name && ad_find(ad, name))
                eval_attr(&c->eval, ad, NULL, name, ret);
        else
                eval_expr(&c->eval, k->expr, ad, NULL, ret);
}

static void print_raw(struct columns *c, const struct column *k, const struct ad *ad, struct buf *out)
{
        symbol name = is_name(str_of(k->text)) ? symbols_find(c->symbols, str_of(k->text)) : 0;
        const struct expr *e = name ? ad_find(ad, name) : NULL;
        BUF_CLEANUP struct buf text = {0};

        if (name && !e) {
                buf_addz(out, "undefined");
        } else {
                expr_print(&text, e ? e : k->expr, c->symbols);
                expr_text_to_old(buf_view(&text), out);
        }
}

static void print_cell(struct columns *c, const struct column *k, const struct ad *ad, const char *id,
                       struct buf *out)
{
        struct value v;
        int64_t number;

        if (!k->text) {
                buf_addz(out, id);
                return;
        }
        if (k->label)
                buf_printf(out, "%s = ", k->text);
        if (k->raw) {
                print_raw(c, k, ad, out);
                return;
        }
        evaluate(c, k, ad, &v);
        if (k->seconds && value_to_integer(&v, &number))
                clock_text_run(out, number);
        else if (k->date && value_to_integer(&v, &number))
                clock_text_date(out, number);
        else
                columns_value(out, &v, k->quoted);
}

/* ---- -format */

struct conversion {
        char text[48]; /* "%-10.3" */
        size_t n;
        char letter;
};

/* Reads from behind the '%'. Returns the place behind the conversion. */
static const char *read_conversion(const char *p, struct conversion *ret)
{
        int64_t number = 0;

        *ret = (struct conversion){.text = "%", .n = 1};
        for (; *p && strchr("-+ #0123456789.", *p) && ret->n < 24; p++) {
                ret->text[ret->n++] = *p;
                number = *p >= '0' && *p <= '9' ? number * 10 + (*p - '0') : 0;
                if (number > WIDTH_MAX)
                        number = WIDTH_MAX, ret->n--;
        }
        while (*p && strchr("hlLqjzt", *p))
                p++;
        ret->letter = *p;
        return *p ? p + 1 : p;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* Returns false if the conversion cannot show a value of this kind. The format was made by read_conversion.
 */
static bool convert(struct conversion *x, const struct value *v, struct buf *raw, struct buf *out)
{
        BUF_CLEANUP struct buf text = {0};
        int64_t i;
        double d;

        if (strchr("diouxXc", x->letter) && value_to_integer(v, &i)) {
                snprintf(x->text + x->n, sizeof(x->text) - x->n, x->letter == 'c' ? "c" : "ll%c", x->letter);
                if (x->letter == 'c')
                        buf_printf(out, x->text, (int)i);
                else
                        buf_printf(out, x->text, (long long)i);
                return true;
        }
        if (strchr("fFeEgG", x->letter) && value_to_double(v, &d)) {
                x->text[x->n] = x->letter;
                buf_printf(out, x->text, d);
                return true;
        }
        if (x->letter == 'r')
                buf_str(&text, buf_view(raw));
        else if (x->letter == 's' || x->letter == 'v' || x->letter == 'V')
                columns_value(&text, v, x->letter == 'V');
        else
                return false;
        x->text[x->n] = 's';
        buf_printf(out, x->text, buf_z(&text));
        return true;
}
#pragma GCC diagnostic pop

static const char *escape(const char *p, struct buf *out)
{
        static const char from[] = "ntr\\\"'", to[] = "\n\t\r\\\"'";
        const char *at = p[1] ? strchr(from, p[1]) : NULL;

        buf_char(out, at ? to[at - from] : '\\');
        return at ? p + 2 : p + 1;
}

static void print_format(struct columns *c, const struct column *k, const struct ad *ad, struct buf *out)
{
        BUF_CLEANUP struct buf raw = {0}, text = {0};
        struct conversion x;
        struct value v;
        bool used = false;

        evaluate(c, k, ad, &v);
        if (v.type == VALUE_UNDEFINED || v.type == VALUE_ERROR)
                return;
        print_raw(c, k, ad, &raw);
        for (const char *p = k->format; *p;) {
                if (*p == '\\') {
                        p = escape(p, &text);
                } else if (p[0] == '%' && p[1] == '%') {
                        buf_char(&text, '%');
                        p += 2;
                } else if (*p == '%' && !used) {
                        p = read_conversion(p + 1, &x);
                        used = true;
                        if (!convert(&x, &v, &raw, &text))
                                return;
                } else {
                        buf_char(&text, *p++);
                }
        }
        buf_str(out, buf_view(&text));
}

/* ---- rows */

static void keep_row(struct columns *c, const struct ad *ad, const char *id)
{
        for (size_t i = 0; i < c->count; i++) {
                BUF_CLEANUP struct buf cell = {0};

                if (c->items[i].format)
                        print_format(c, &c->items[i], ad, &cell);
                else
                        print_cell(c, &c->items[i], ad, id, &cell);
                if (cell.n > c->items[i].width)
                        c->items[i].width = (unsigned)cell.n;
                MEM_GROW(c->cells, c->cell_cap, c->cell_count + 1);
                c->cells[c->cell_count++] = buf_take(&cell);
        }
        eval_reset(&c->eval);
}

static bool has_headings(const struct columns *c)
{
        for (size_t i = 0; i < c->count; i++)
                if (c->items[i].heading)
                        return true;
        return false;
}

void columns_row(struct columns *c, const struct ad *ad, const char *id, struct buf *out)
{
        if (has_headings(c)) {
                keep_row(c, ad, id);
                return;
        }
        for (size_t i = 0; i < c->count; i++) {
                const struct column *k = &c->items[i];

                if (k->format) {
                        print_format(c, k, ad, out);
                        continue;
                }
                if (!k->first && k->between)
                        buf_char(out, k->between);
                print_cell(c, k, ad, id, out);
                if (k->comma && !k->last)
                        buf_char(out, ',');
                if (k->last)
                        buf_addz(out, k->gap ? "\n\n" : "\n");
        }
        eval_reset(&c->eval);
}

static void print_line(const struct columns *c, char *const *cells, struct buf *out)
{
        for (size_t i = 0; i < c->count; i++) {
                const struct column *k = &c->items[i];
                const char *text = cells ? cells[i] : k->text ? k->text : "ID";

                if (!k->first && k->between)
                        buf_char(out, k->between);
                if (k->last || k->between == '\n')
                        buf_addz(out, text);
                else
                        buf_printf(out, "%-*s", (int)k->width, text);
        }
        buf_char(out, '\n');
}

void columns_end(struct columns *c, struct buf *out)
{
        if (!has_headings(c) || c->cell_count == 0)
                return;
        for (size_t i = 0; i < c->count; i++) {
                size_t n = strlen(c->items[i].text ? c->items[i].text : "ID");

                if (n > c->items[i].width)
                        c->items[i].width = (unsigned)n;
        }
        print_line(c, NULL, out);
        for (size_t at = 0; at < c->cell_count; at += c->count)
                print_line(c, c->cells + at, out);
}
