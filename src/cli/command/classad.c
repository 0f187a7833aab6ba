/* classad: evaluates expressions and matches, and reads and writes ads in all encodings (convert.c). It
 * needs no server. The words are read here, not by the table of options, because an expression may begin
 * with a minus. */
#include "classad/match.h"
#include "classad/print.h"
#include "cli/command/commands.h"
#include "cli/command/convert.h"
#include "cli/command/help_text.h"
#include "cli/terminal/cli.h"

struct bench {
        struct symbols *symbols;
        struct eval ev;
        struct ad *my, *target;
        bool old;
        bool stdin_taken;
};

struct words {
        const char *ad, *target; /* file names */
        const char *from, *to;   /* names of encodings */
        bool old, help;
        const char **rest;
        size_t n;
};

/* Reads the only ad of a text in JSON or XML. */
static int only_ad(struct ad_reader *r, struct ad **ret, struct err *err)
{
        struct ad *more = NULL;
        int result = ad_reader_next(r, ret, err);

        if (result == 0 && !*ret)
                return err_set(err, CLASSAD_SYNTAX, "there is no ad in it");
        if (result == 0)
                result = ad_reader_next(r, &more, err);
        if (result == 0 && more)
                result = err_set(err, CLASSAD_SYNTAX, "there is more than one ad in it");
        ad_free(more);
        return result;
}

/* Reads an ad from a file in any encoding, or from standard input for "-". Returns an exit code. */
static int read_ad(struct bench *b, const char *file, struct ad **ret)
{
        struct buf text BUF_CLEANUP = {0};
        enum encoding encoding;
        struct err err;
        int code = convert_read(file, &b->stdin_taken, &text), r;

        if (code != CLI_OK)
                return code;
        encoding = b->old ? ENCODING_OLD : encoding_of(buf_view(&text));
        if (encoding == ENCODING_JSON || encoding == ENCODING_XML) {
                struct ad_reader *reader = ad_reader_new(b->symbols, buf_view(&text), encoding);

                r = only_ad(reader, ret, &err);
                ad_reader_free(reader);
        } else {
                r = ad_parse(b->symbols, buf_view(&text), b->old ? CLASSAD_OLD : CLASSAD_ANY, ret, &err);
        }
        if (r)
                return cli_error(CLI_FAILED, "%s: %s", strcmp(file, "-") ? file : "standard input", err.text);
        return CLI_OK;
}

static void print_value(const struct value *v)
{
        struct buf out BUF_CLEANUP = {0};

        value_print(&out, v);
        buf_char(&out, '\n');
        cli_print(&out);
}

/* Converts an expression to the new syntax. In the old syntax it is written as the right side of a line. */
static int put_new(struct bench *b, const char *text, struct buf *out)
{
        struct buf line BUF_CLEANUP = {0};
        struct ad *ad;
        struct err err;

        if (strchr(text, '\n'))
                return cli_error(CLI_FAILED, "an expression in the old syntax is one line");
        buf_printf(&line, "x=%s", text);
        if (ad_parse(b->symbols, buf_view(&line), CLASSAD_OLD, &ad, &err) != 0)
                return cli_error(CLI_FAILED, "%s: %s", text, err.text);
        expr_print(out, ad_find(ad, symbols_intern(b->symbols, STR("x"))), b->symbols);
        ad_free(ad);
        return CLI_OK;
}

static int eval_one(struct bench *b, const char *text)
{
        struct buf put BUF_CLEANUP = {0};
        struct expr *e;
        struct value v;
        struct err err;
        int code = CLI_OK;

        if (b->old)
                code = put_new(b, text, &put);
        else
                buf_addz(&put, text);
        if (code != CLI_OK)
                return code;
        if (expr_parse(b->symbols, buf_view(&put), &e, &err) != 0)
                return cli_error(CLI_FAILED, "%s: %s", text, err.text);
        eval_expr(&b->ev, e, b->my, b->target, &v);
        print_value(&v);
        expr_free(e);
        eval_reset(&b->ev);
        return CLI_OK;
}

static int run_eval(struct bench *b, const struct words *w)
{
        int code = CLI_OK;

        if (w->n == 0)
                return cli_error(CLI_USAGE, "missing EXPR: drover classad eval EXPR...");
        if (w->ad)
                code = read_ad(b, w->ad, &b->my);
        if (code == CLI_OK && w->target)
                code = read_ad(b, w->target, &b->target);
        for (size_t i = 0; i < w->n && code == CLI_OK; i++)
                code = eval_one(b, w->rest[i]);
        return code;
}

/* Prints why `my` refuses `target`. Returns whether it does. */
static bool explain(struct bench *b, const char *file, const struct ad *my, const struct ad *target)
{
        const struct expr *e = ad_find(my, symbols_intern(b->symbols, STR("Requirements")));
        struct buf out BUF_CLEANUP = {0};
        struct value v;
        unsigned clauses;
        int n = match_first_refusal(&b->ev, my, target, &clauses, &v);

        if (n < 0)
                return false;
        if (clauses == 0) {
                buf_printf(&out, "%s refuses: it has no Requirements\n", file);
        } else {
                buf_printf(&out, "%s refuses: clause %d of %u, ", file, n + 1, clauses);
                expr_print_clause(&out, e, (unsigned)n, b->symbols);
                buf_addz(&out, ", is ");
                value_print(&out, &v);
                buf_char(&out, '\n');
        }
        cli_print(&out);
        return true;
}

static int run_match(struct bench *b, const struct words *w)
{
        struct buf out BUF_CLEANUP = {0};
        bool left, right;
        int code;

        if (w->n != 2)
                return cli_error(CLI_USAGE, "match takes two files: drover classad match A B");
        code = read_ad(b, w->rest[0], &b->my);
        if (code == CLI_OK)
                code = read_ad(b, w->rest[1], &b->target);
        if (code != CLI_OK)
                return code;
        left = explain(b, w->rest[0], b->my, b->target);
        right = explain(b, w->rest[1], b->target, b->my);
        if (left || right)
                return CLI_FAILED;
        buf_addz(&out, "match\n");
        cli_print(&out);
        return CLI_OK;
}

/* Returns the value of --name VALUE or --name=VALUE at word *i, or NULL if it is another word. */
static const char *text_option(const struct options *o, size_t *i, const char *name, bool *ret_missing)
{
        const char *word = o->words[*i];
        size_t n = strlen(name);

        if (strncmp(word, name, n) != 0 || (word[n] && word[n] != '='))
                return NULL;
        if (word[n] == '=')
                return word + n + 1;
        *ret_missing = *i + 1 >= o->word_count;
        return *ret_missing ? "" : o->words[++*i];
}

/* Options may be anywhere; "--" ends them. An unknown word that begins with two dashes is an error. */
static int read_words(const struct options *o, struct words *w)
{
        bool ended = false, missing = false;

        for (size_t i = 0; i < o->word_count; i++) {
                const char *word = o->words[i], *file;

                if (ended || word[0] != '-') {
                        w->rest[w->n++] = word;
                } else if (strcmp(word, "--") == 0) {
                        ended = true;
                } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
                        w->help = true;
                } else if (strcmp(word, "--old") == 0) {
                        w->old = true;
                } else if ((file = text_option(o, &i, "--ad", &missing)) != NULL) {
                        w->ad = file;
                } else if ((file = text_option(o, &i, "--target", &missing)) != NULL) {
                        w->target = file;
                } else if ((file = text_option(o, &i, "--from", &missing)) != NULL) {
                        w->from = file;
                } else if ((file = text_option(o, &i, "--to", &missing)) != NULL) {
                        w->to = file;
                } else if (word[1] == '-' && ((word[2] | 0x20) >= 'a' && (word[2] | 0x20) <= 'z')) {
                        return cli_error(CLI_USAGE, "there is no option \"%s\": see drover classad --help",
                                         word);
                } else {
                        w->rest[w->n++] = word;
                }
                if (missing)
                        return cli_error(CLI_USAGE, "%s needs a value", word);
        }
        return CLI_OK;
}

static int run_bench(struct cli *cli, const struct words *w, bool match)
{
        struct bench b = {.old = w->old};
        int code;

        if (w->from || w->to)
                return cli_error(CLI_USAGE, "--from and --to are for parse, unparse and convert");
        b.symbols = symbols_new();
        eval_init(&b.ev, cli->now_ms / 1000, (uint64_t)cli->now_ms);
        code = match ? run_match(&b, w) : run_eval(&b, w);
        ad_free(b.my);
        ad_free(b.target);
        eval_deinit(&b.ev);
        symbols_free(b.symbols);
        return code;
}

static int run_verb(struct cli *cli, const struct words *w)
{
        struct words rest = *w;
        const char *verb = w->n ? w->rest[0] : "";

        if (w->n == 0)
                return cli_error(
                        CLI_USAGE,
                        "missing eval, match, parse, unparse or convert: drover classad eval EXPR...");
        rest.rest++;
        rest.n--;
        if (strcmp(verb, "eval") == 0 || strcmp(verb, "match") == 0)
                return run_bench(cli, &rest, verb[0] == 'm');
        if (strcmp(verb, "parse") != 0 && strcmp(verb, "unparse") != 0 && strcmp(verb, "convert") != 0)
                return cli_error(CLI_USAGE,
                                 "\"%s\" is none of eval, match, parse, unparse and convert: see drover "
                                 "classad --help",
                                 verb);
        if (w->ad || w->target)
                return cli_error(CLI_USAGE, "--ad and --target are for eval: give the files as they are");
        if (w->old && w->from)
                return cli_error(CLI_USAGE, "--old is the same as --from old: give one of them");
        return convert(verb, w->old ? "old" : w->from, w->to, rest.rest, rest.n);
}

int cmd_classad(struct cli *cli, const struct options *o)
{
        struct words w = {.rest = mem_array(NULL, o->word_count + 1, sizeof(*w.rest))};
        struct buf out BUF_CLEANUP = {0};
        int code = read_words(o, &w);

        if (code == CLI_OK && w.help) {
                help_command(&out, cli, o->command);
                cli_print(&out);
        } else if (code == CLI_OK) {
                code = run_verb(cli, &w);
        }
        free(w.rest);
        return code;
}
