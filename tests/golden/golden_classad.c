/* Each NAME.in in classad/ is a small session, and NAME.ref what it answers. Lines of NAME.in:
 *
 *   == my, == target    the lines that follow, up to the next "==", are that ad, in either syntax
 *   == eval             each line that follows is an expression, answered by its value
 *   == match            do the two ads accept each other, and if not, which clauses refuse?
 *   == print            the ad `my` in the new syntax, the old one and JSON
 *   == xml              and in XML
 *   == read             the lines that follow are ads in any encoding, each answered in the new syntax;
 *                       without any, `my` is read back from JSON and XML
 *
 * golden_classad DIR compares, golden_classad --write DIR writes the answers anew: look at the difference. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/fs.h"
#include "classad/match.h"
#include "classad/print.h"
#include "classad/read.h"

struct session {
        struct symbols *symbols;
        struct ad *my, *target;
        struct eval ev;
        struct buf *out;
};

static void set_ad(struct session *s, struct ad **ad, struct str text)
{
        struct err err;

        ad_free(*ad);
        *ad = NULL;
        if (ad_parse(s->symbols, text, CLASSAD_ANY, ad, &err) != 0)
                buf_printf(s->out, "! %s\n", err.text);
}

static void eval_line(struct session *s, struct str line)
{
        struct expr *e;
        struct value v;
        struct err err;

        line = str_trim(line);
        if (line.n == 0)
                return;
        buf_printf(s->out, STR_FMT "\n    ", STR_ARG(line));
        if (expr_parse(s->symbols, line, &e, &err) != 0) {
                buf_printf(s->out, "! %s\n", err.text);
                return;
        }
        eval_expr(&s->ev, e, s->my, s->target, &v);
        value_print(s->out, &v);
        buf_char(s->out, '\n');
        expr_free(e);
        eval_reset(&s->ev);
}

static void explain(struct session *s, const char *side, const struct ad *my, const struct ad *target)
{
        const struct expr *e = ad_find(my, symbols_find(s->symbols, STR("requirements")));
        unsigned clauses;
        struct value v;
        int n = match_first_refusal(&s->ev, my, target, &clauses, &v);

        buf_printf(s->out, "%s: ", side);
        if (n < 0) {
                buf_addz(s->out, "accepts\n");
        } else if (clauses == 0) {
                buf_addz(s->out, "has no requirements\n");
        } else {
                buf_printf(s->out, "clause %d of %u: ", n + 1, clauses);
                expr_print_clause(s->out, e, (unsigned)n, s->symbols);
                buf_addz(s->out, " is ");
                value_print(s->out, &v);
                buf_char(s->out, '\n');
        }
}

static void match(struct session *s)
{
        static const char *const names[] = {"match", "my refuses", "target refuses"};

        if (!s->my || !s->target)
                return;
        buf_printf(s->out, "%s\n", names[match_ads(&s->ev, s->my, s->target)]);
        explain(s, "  my", s->my, s->target);
        explain(s, "  target", s->target, s->my);
        buf_printf(s->out, "  rank %g, %g\n", match_rank(&s->ev, s->my, s->target),
                   match_rank(&s->ev, s->target, s->my));
}

static void read_ads(struct session *s, struct str text)
{
        struct ad_reader *r = ad_reader_new(s->symbols, text, ENCODING_AUTO);
        struct err err;
        struct ad *ad;
        int result;

        while ((result = ad_reader_next(r, &ad, &err)) == 0 && ad) {
                ad_print(s->out, ad, CLASSAD_NEW, false);
                buf_char(s->out, '\n');
                ad_free(ad);
        }
        if (result)
                buf_printf(s->out, "! %s\n", err.text);
        ad_reader_free(r);
}

static void read_back(struct session *s)
{
        struct buf text BUF_CLEANUP = {0};

        ad_print_json(&text, s->my, false);
        read_ads(s, buf_view(&text));
        buf_reset(&text);
        ad_print_xml(&text, s->my, false);
        read_ads(s, buf_view(&text));
}

static void section(struct session *s, struct str head, struct str body)
{
        struct str line;

        buf_printf(s->out, "== " STR_FMT "\n", STR_ARG(head));
        if (str_eqz(head, "my")) {
                set_ad(s, &s->my, body);
        } else if (str_eqz(head, "target")) {
                set_ad(s, &s->target, body);
        } else if (str_eqz(head, "eval")) {
                while (str_cut(&body, '\n', &line))
                        eval_line(s, line);
        } else if (str_eqz(head, "match")) {
                match(s);
        } else if (str_eqz(head, "print") && s->my) {
                ad_print(s->out, s->my, CLASSAD_NEW, false);
                buf_char(s->out, '\n');
                ad_print(s->out, s->my, CLASSAD_OLD, false);
                ad_print_json(s->out, s->my, false);
                buf_char(s->out, '\n');
        } else if (str_eqz(head, "xml") && s->my) {
                ad_print_xml(s->out, s->my, false);
        } else if (str_eqz(head, "read") && body.n) {
                read_ads(s, body);
        } else if (str_eqz(head, "read") && s->my) {
                read_back(s);
        } else {
                buf_addz(s->out, "! no such section\n");
        }
}

static void answer(struct str text, struct buf *out)
{
        struct session s = {.symbols = symbols_new(), .out = out};

        eval_init(&s.ev, 1700000000, 1);
        while (text.n) {
                ptrdiff_t next = str_search(text, STR("\n== "));
                struct str part = next < 0 ? text : str_head(text, (size_t)next + 1), head;

                text = str_skip(text, part.n);
                str_cut(&part, '\n', &head);
                section(&s, str_trim(str_skip(head, 3)), part.p ? part : STR(""));
        }
        ad_free(s.my);
        ad_free(s.target);
        eval_deinit(&s.ev);
        symbols_free(s.symbols);
}

static int one(int dir, const char *name, bool write_anew)
{
        struct buf in BUF_CLEANUP = {0}, ref BUF_CLEANUP = {0}, out BUF_CLEANUP = {0}, path BUF_CLEANUP = {0};
        struct err err = {{0}};

        buf_printf(&path, "%.*s.ref", (int)(strlen(name) - 3), name);
        if (fs_read(dir, name, 1 << 20, &in, &err) != 0) {
                printf("not ok %s: %s\n", name, err.text);
                return 1;
        }
        answer(buf_view(&in), &out);
        if (write_anew)
                return fs_write(dir, buf_z(&path), buf_view(&out), 0644, false, &err) != 0;
        if (fs_read(dir, buf_z(&path), 1 << 20, &ref, &err) == 0 && str_eq(buf_view(&ref), buf_view(&out))) {
                printf("ok %s\n", name);
                return 0;
        }
        printf("not ok %s: it answers\n%s", name, buf_z(&out));
        return 1;
}

int main(int argc, char **argv)
{
        bool write_anew = argc == 3 && strcmp(argv[1], "--write") == 0;
        DIR *d = argc == 2 || write_anew ? opendir(argv[argc - 1]) : NULL;
        int count = 0, failed = 0;

        if (!d) {
                fprintf(stderr, "usage: golden_classad [--write] DIR\n");
                return 2;
        }
        for (struct dirent *e; (e = readdir(d)) != NULL;)
                if (str_ends(str_of(e->d_name), STR(".in"))) {
                        count++;
                        failed += one(dirfd(d), e->d_name, write_anew);
                }
        closedir(d);
        return count == 0 || failed > 0;
}
