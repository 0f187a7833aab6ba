/* classad: expressions and matches tried by hand. It asks no server. The words are read here, not by the
 * table: an expression may begin with a minus. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "classad/match.h"
#include "classad/print.h"
#include "cli/cli.h"
#include "cli/help.h"

struct bench {
        struct symbols *symbols;
        struct eval ev;
        struct ad *my, *target;
        bool old;
        bool stdin_taken;
};

struct words {
        const char *ad, *target; /* files */
        bool old, help;
        const char **rest;
        size_t n;
};

static int read_stdin(struct buf *out)
{
        ssize_t n;

        do {
                char *room = buf_room(out, 65536);

                if (!room)
                        return -EMSGSIZE;
                n = read(STDIN_FILENO, room, 65536);
                if (n > 0)
                        out->n += (size_t)n;
        } while (n > 0 || (n < 0 && errno == EINTR));
        return n < 0 ? -errno : 0;
}

/* An ad from a file, or from standard input for "-". Returns an exit code. */
static int read_ad(struct bench *b, const char *file, struct ad **ret)
{
        struct buf text BUF_CLEANUP = {.max = CLASSAD_TEXT_MAX + 65536};
        struct err err;
        int r;

        if (strcmp(file, "-") == 0) {
                if (b->stdin_taken)
                        return cli_error(CLI_USAGE, "standard input can only be read once");
                b->stdin_taken = true;
                r = read_stdin(&text);
                if (r < 0)
                        return cli_error(CLI_FAILED, "cannot read standard input: %s", strerror(-r));
        } else if (fs_read(AT_FDCWD, file, CLASSAD_TEXT_MAX, &text, &err) != 0) {
                return cli_error(CLI_FAILED, "%s", err.text);
        }
        if (ad_parse(b->symbols, buf_view(&text), b->old ? CLASSAD_OLD : CLASSAD_ANY, ret, &err) != 0)
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

/* In the old syntax an expression is read as what stands behind the '=' of a line. */
static int eval_old(struct bench *b, const char *text)
{
        struct buf line BUF_CLEANUP = {0};
        struct ad *ad;
        struct value v;
        struct err err;

        if (strchr(text, '\n'))
                return cli_error(CLI_FAILED, "an expression in the old syntax is one line");
        buf_printf(&line, "x=%s", text);
        if (ad_parse(b->symbols, buf_view(&line), CLASSAD_OLD, &ad, &err) != 0)
                return cli_error(CLI_FAILED, "%s: %s", text, err.text);
        eval_expr(&b->ev, ad_find(ad, symbols_intern(b->symbols, STR("x"))), b->my, b->target, &v);
        print_value(&v);
        ad_free(ad);
        return CLI_OK;
}

static int eval_one(struct bench *b, const char *text)
{
        struct expr *e;
        struct value v;
        struct err err;

        if (b->old)
                return eval_old(b, text);
        if (expr_parse(b->symbols, str_of(text), &e, &err) != 0)
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
                return cli_error(CLI_USAGE, "something is missing: drover classad eval EXPR...");
        if (w->ad)
                code = read_ad(b, w->ad, &b->my);
        if (code == CLI_OK && w->target)
                code = read_ad(b, w->target, &b->target);
        for (size_t i = 0; i < w->n && code == CLI_OK; i++)
                code = eval_one(b, w->rest[i]);
        return code;
}

/* Says why `my` refuses `target`, if it does. */
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

/* The value of --name FILE or --name=FILE at word *i, or NULL when that is another word. */
static const char *file_option(const struct options *o, size_t *i, const char *name, bool *ret_missing)
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

/* Options may stand anywhere; "--" ends them. What begins with two dashes and is none is taken as one
 * misspelt. */
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
                } else if ((file = file_option(o, &i, "--ad", &missing)) != NULL) {
                        w->ad = file;
                } else if ((file = file_option(o, &i, "--target", &missing)) != NULL) {
                        w->target = file;
                } else if (word[1] == '-' && ((word[2] | 0x20) >= 'a' && (word[2] | 0x20) <= 'z')) {
                        return cli_error(CLI_USAGE, "there is no option \"%s\": see drover classad --help",
                                         word);
                } else {
                        w->rest[w->n++] = word;
                }
                if (missing)
                        return cli_error(CLI_USAGE, "%s needs a file", word);
        }
        return CLI_OK;
}

static int run(struct cli *cli, const struct words *w)
{
        struct bench b = {.old = w->old};
        struct words rest = *w;
        int code;

        if (w->n == 0)
                return cli_error(CLI_USAGE, "something is missing: drover classad eval|match ...");
        rest.rest++;
        rest.n--;
        b.symbols = symbols_new();
        eval_init(&b.ev, cli->now_ms / 1000, (uint64_t)cli->now_ms);
        if (strcmp(w->rest[0], "eval") == 0)
                code = run_eval(&b, &rest);
        else if (strcmp(w->rest[0], "match") == 0)
                code = run_match(&b, &rest);
        else
                code = cli_error(CLI_USAGE, "\"%s\" is neither eval nor match: see drover classad --help",
                                 w->rest[0]);
        ad_free(b.my);
        ad_free(b.target);
        eval_deinit(&b.ev);
        symbols_free(b.symbols);
        return code;
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
                code = run(cli, &w);
        }
        free(w.rest);
        return code;
}
