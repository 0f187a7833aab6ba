#include "jdl/stork/stork.h"

#include <errno.h>

#include "classad/ad.h"
#include "classad/expr.h"
#include "classad/print.h"
#include "classad/symbols.h"
#include "classad/value.h"
#include "jdl/condor/keywords.h"
#include "jdl/script/script.h"

struct writer {
        struct buf *out;
        struct buf common; /* the lines of the ads that share a queue statement */
        struct buf rows;
        size_t row_count;
        struct buf first_src, first_dest;
        bool has_dest;
};

/* What stands behind blanks, semicolons and lines of comment. */
static struct str behind_comments(struct str text)
{
        for (;;) {
                struct str line;

                text = str_trim_left(text);
                if (str_starts(text, STR("#")) || str_starts(text, STR("//")))
                        str_cut(&text, '\n', &line);
                else if (str_starts(text, STR(";")))
                        text = str_skip(text, 1);
                else
                        return text;
        }
}

bool stork_is(struct str text)
{
        return str_starts(behind_comments(text), STR("["));
}

/* Keywords of placement jobs keep what an earlier queue statement had, unless they are taken back. */
static void take_back(struct buf *out)
{
        static const char *const names[] = {
                "dap_type",      "src_url",       "dest_url",     "alt_protocols", "max_retry",
                "restart_in",    "give_up_after", "checksum",     "third_party",   "verify_copy",
                "x509userproxy", "reserve_id",    "reserve_size", "duration",      "transfer_output_size"};

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                buf_printf(out, "%s =\n", names[i]);
}

/* A value of a list of rows, which blanks and commas part. */
static void row_value(struct buf *out, struct str url)
{
        for (size_t i = 0; i < url.n; i++)
                if ((unsigned char)url.p[i] <= ' ' || strchr(",$()#", url.p[i]))
                        buf_printf(out, "%%%02X", (unsigned char)url.p[i]);
                else
                        buf_char(out, url.p[i]);
}

static void writer_flush(struct writer *w)
{
        if (w->row_count == 0)
                return;
        take_back(w->out);
        buf_str(w->out, buf_view(&w->common));
        if (w->row_count == 1) {
                buf_addz(w->out, "src_url = ");
                script_value(w->out, buf_view(&w->first_src));
                if (w->has_dest) {
                        buf_addz(w->out, "\ndest_url = ");
                        script_value(w->out, buf_view(&w->first_dest));
                }
                buf_addz(w->out, "\nqueue\n");
        } else {
                buf_printf(w->out, "src_url = $(dap_src)\n%squeue dap_src%s from (\n" STR_FMT ")\n",
                           w->has_dest ? "dest_url = $(dap_dest)\n" : "", w->has_dest ? ", dap_dest" : "",
                           STR_ARG(buf_view(&w->rows)));
        }
        buf_reset(&w->common);
        buf_reset(&w->rows);
        buf_reset(&w->first_src);
        buf_reset(&w->first_dest);
        w->row_count = 0;
}

/* A text as it is, a number or an expression as it is written. */
static int value_text(const struct expr *x, const struct symbols *y, struct buf *out)
{
        struct value v;

        if (expr_literal(x, &v) && v.type == VALUE_STRING) {
                for (size_t i = 0; i < v.string.n; i++)
                        if ((unsigned char)v.string.p[i] < ' ')
                                return -EINVAL;
                buf_str(out, v.string);
        } else {
                expr_print(out, x, y);
        }
        return 0;
}

static int attribute(struct buf *common, struct str name, const struct expr *x, const struct symbols *y,
                     struct str text)
{
        const struct keyword *k = keyword_find(name);
        BUF_CLEANUP struct buf lower = {0};

        for (size_t i = 0; i < name.n; i++)
                buf_char(&lower, (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] + 32 : name.p[i]));
        if (str_eqz(buf_view(&lower), "universe") || str_eqz(buf_view(&lower), "executable"))
                return -EINVAL;
        if (k) {
                buf_printf(common, "%s = ", buf_z(&lower));
                script_value(common, text);
        } else {
                BUF_CLEANUP struct buf expression = {0};

                buf_printf(common, "+" STR_FMT " = ", STR_ARG(name));
                expr_print(&expression, x, y);
                script_value(common, buf_view(&expression));
        }
        buf_char(common, '\n');
        return 0;
}

static bool is_src(struct str name)
{
        return str_ieqz(name, "src_url") || str_ieqz(name, "url");
}

static int one_ad(struct writer *w, const struct ad *ad, size_t number, struct err *err)
{
        const struct symbols *y = ad_symbols(ad);
        BUF_CLEANUP struct buf common = {0}, src = {0}, dest = {0};
        bool has_dest = false;
        uint32_t at = 0;
        symbol name;
        const struct expr *x;

        while (ad_next(ad, &at, &name, &x)) {
                BUF_CLEANUP struct buf text = {0};
                struct str n = symbols_name(y, name);
                int r = value_text(x, y, &text);
                bool to = str_ieqz(n, "dest_url") || str_ieqz(n, "dest_host");

                if (r == 0 && (to || is_src(n)))
                        buf_str(to ? &dest : &src, buf_view(&text));
                else if (r == 0)
                        r = attribute(&common, n, x, y, buf_view(&text));
                if (r < 0)
                        return err_set(err, r,
                                       "ad %zu: " STR_FMT " cannot be '" STR_FMT "' in a placement job",
                                       number, STR_ARG(n), STR_ARG(str_head(buf_view(&text), 60)));
                has_dest |= to;
        }
        if (src.n == 0 && dest.n) { /* of rm and mkdir it is the only URL */
                buf_str(&src, buf_view(&dest));
                has_dest = false;
        }
        if (w->row_count && (!str_eq(buf_view(&common), buf_view(&w->common)) || has_dest != w->has_dest))
                writer_flush(w);
        if (w->row_count == 0) {
                buf_str(&w->common, buf_view(&common));
                buf_str(&w->first_src, buf_view(&src));
                buf_str(&w->first_dest, buf_view(&dest));
        }
        w->has_dest = has_dest;
        w->row_count++;
        row_value(&w->rows, buf_view(&src));
        if (has_dest) {
                buf_char(&w->rows, ' ');
                row_value(&w->rows, buf_view(&dest));
        }
        buf_char(&w->rows, '\n');
        return 0;
}

int stork_submit(struct str text, struct buf *out, struct err *err)
{
        struct symbols *y = symbols_new();
        struct writer w = {.out = out};
        size_t at = 0, n = 0;
        int r = 0;

        buf_addz(out, "universe = data\n");
        struct str rest = behind_comments(text);
        while (r == 0 && str_starts(rest, STR("["))) {
                struct ad *ad = NULL;

                at = (size_t)(rest.p - text.p);
                if (++n > STORK_ADS_MAX)
                        r = err_set(err, -EINVAL, "there are more than %u ads", STORK_ADS_MAX);
                else if (ad_parse_part(y, text, &at, CLASSAD_NEW, &ad, err) != 0)
                        r = -EINVAL;
                else
                        r = one_ad(&w, ad, n, err);
                ad_free(ad);
                rest = behind_comments(str_skip(text, at));
        }
        if (r == 0 && rest.n)
                r = err_set(err, -EINVAL, "behind ad %zu stands no other ad: '" STR_FMT "'", n,
                            STR_ARG(str_trim(str_head(rest, 40))));
        if (r == 0)
                writer_flush(&w);
        buf_deinit(&w.common);
        buf_deinit(&w.rows);
        buf_deinit(&w.first_src);
        buf_deinit(&w.first_dest);
        symbols_free(y);
        return r;
}
