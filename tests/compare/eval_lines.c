/* Evaluates expressions, a line of standard input each: a letter for the syntax (n or o), a tab, the
 * expression. Prints the value of each on a line, or "!" where it does not parse. eval_lines MY TARGET: files
 * with the two ads. */
#include <fcntl.h>
#include <stdio.h>

#include "base/system/fs.h"
#include "classad/eval.h"
#include "classad/print.h"

static struct ad *read_file(struct symbols *symbols, const char *path)
{
        BUF_CLEANUP struct buf text = {0};
        struct ad *ad = NULL;
        struct err err = {""};

        if (fs_read(AT_FDCWD, path, 1 << 20, &text, &err) != 0 ||
            ad_parse(symbols, buf_view(&text), CLASSAD_ANY, &ad, &err) != 0)
                fprintf(stderr, "%s: %s\n", path, err.text);
        return ad;
}

static struct expr *parse(struct symbols *symbols, char syntax, struct str text)
{
        BUF_CLEANUP struct buf line = {0};
        struct ad *ad = NULL;
        struct expr *e = NULL;

        if (syntax == 'n')
                return expr_parse(symbols, text, &e, NULL) == 0 ? e : NULL;
        buf_printf(&line, "x = " STR_FMT "\n", STR_ARG(text));
        if (ad_parse(symbols, buf_view(&line), CLASSAD_OLD, &ad, NULL) != 0)
                return NULL;
        buf_reset(&line);
        expr_print(&line, ad_find(ad, symbols_intern(symbols, STR("x"))), symbols);
        ad_free(ad);
        return expr_parse(symbols, buf_view(&line), &e, NULL) == 0 ? e : NULL;
}

int main(int argc, char **argv)
{
        struct symbols *symbols = symbols_new();
        struct ad *my = argc == 3 ? read_file(symbols, argv[1]) : NULL;
        struct ad *target = my ? read_file(symbols, argv[2]) : NULL;
        struct eval ev;
        char *line = NULL;
        size_t size = 0;

        if (!target)
                return 2;
        eval_init(&ev, 1700000000, 1);
        while (getline(&line, &size, stdin) > 0) {
                BUF_CLEANUP struct buf out = {0};
                struct str text = str_of(line);
                struct expr *e;
                struct value v;

                if (str_ends(text, STR("\n")))
                        text.n--;
                if (text.n < 3)
                        continue;
                e = parse(symbols, text.p[0], str_skip(text, 2));
                if (e) {
                        eval_expr(&ev, e, my, target, &v);
                        value_print(&out, &v);
                } else {
                        buf_char(&out, '!');
                }
                buf_char(&out, '\n');
                fputs(buf_z(&out), stdout);
                expr_free(e);
                eval_reset(&ev);
        }
        free(line);
        ad_free(my);
        ad_free(target);
        eval_deinit(&ev);
        symbols_free(symbols);
        return 0;
}
