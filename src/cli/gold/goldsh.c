/* goldsh: lines of the form OBJECT ACTION FIELD=VALUE …, each of which runs the command of Gold's that does
 * it. A field becomes the command's option of that name, or of the name that `fields` and the row have for
 * it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/job/args.h"
#include "cli/gold/gold.h"

static const struct row {
        const char *object, *action;
        const struct words_tool *tool;
        const char *own; /* the option for Name and Id; NULL: none */
} rows[] = {
        {"Project", "Create", &gold_gmkproject, "project"},
        {"Project", "Modify", &gold_gchproject, "project"},
        {"Project", "Delete", &gold_grmproject, "project"},
        {"Project", "Query", &gold_glsproject, "project"},
        {"Project", "Usage", &gold_gusage, "project"},
        {"Account", "Create", &gold_gmkaccount, "name"},
        {"Account", "Modify", &gold_gchaccount, "account"},
        {"Account", "Delete", &gold_grmaccount, "account"},
        {"Account", "Query", &gold_glsaccount, "account"},
        {"Account", "Balance", &gold_gbalance, "account"},
        {"Account", "Statement", &gold_gstatement, "account"},
        {"Account", "Deposit", &gold_gdeposit, "account"},
        {"Account", "Withdraw", &gold_gwithdraw, "account"},
        {"Account", "Transfer", &gold_gtransfer, NULL},
        {"Allocation", "Query", &gold_glsalloc, "allocation"},
        {"Allocation", "Modify", &gold_gchalloc, "allocation"},
        {"Allocation", "Delete", &gold_grmalloc, "allocation"},
        {"Quotation", "Query", &gold_glsquote, "quote"},
        {"Quotation", "Modify", &gold_gchquote, "quote"},
        {"Quotation", "Delete", &gold_grmquote, "quote"},
        {"Reservation", "Query", &gold_glsres, "reservation"},
        {"Reservation", "Modify", &gold_gchres, "reservation"},
        {"Reservation", "Delete", &gold_grmres, "reservation"},
        {"User", "Create", &gold_gmkuser, "user"},
        {"User", "Modify", &gold_gchuser, "user"},
        {"User", "Delete", &gold_grmuser, "user"},
        {"User", "Query", &gold_glsuser, "user"},
        {"Machine", "Create", &gold_gmkmachine, "machine"},
        {"Machine", "Modify", &gold_gchmachine, "machine"},
        {"Machine", "Delete", &gold_grmmachine, "machine"},
        {"Machine", "Query", &gold_glsmachine, "machine"},
        {"Job", "Quote", &gold_gquote, NULL},
        {"Job", "Reserve", &gold_greserve, "jobId"},
        {"Job", "Charge", &gold_gcharge, "jobId"},
        {"Job", "Refund", &gold_grefund, "jobId"},
        {"Job", "Query", &gold_glsjob, "jobId"},
        {"Transaction", "Query", &gold_glstxn, NULL},
};
static const char *const fields[][2] = {{"StartTime", "start"},         {"EndTime", "end"},
                                        {"WallDuration", "duration"},   {"QuoteId", "quote"},
                                        {"AllocationId", "allocation"}, {"ReservationId", "reservation"},
                                        {"QualityOfService", "qos"},    {"QOS", "qos"}};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Splits a line at blanks; what stands in quotes is one word, without these. */
static int split_line(struct str line, struct args *ret)
{
        BUF_CLEANUP struct buf word = {0};
        bool begun = false;
        char quote = 0;

        for (size_t i = 0; i < line.n; i++) {
                char c = line.p[i];

                if (quote ? c == quote : c == '"' || c == '\'') {
                        quote = quote ? 0 : c;
                        begun = true;
                } else if (quote || !isspace((unsigned char)c)) {
                        buf_char(&word, c);
                        begun = true;
                } else if (begun) {
                        args_add(ret, buf_view(&word));
                        buf_reset(&word);
                        begun = false;
                }
        }
        if (begun)
                args_add(ret, buf_view(&word));
        return quote ? cli_error(1, "a quote %c is not closed", quote) : 0;
}

/* Gives the option that a field is. */
static void option_name(const struct row *row, struct str field, struct buf *ret)
{
        if (row->own && (str_eqz(field, "Name") || str_eqz(field, "Id"))) {
                buf_addz(ret, row->own);
                return;
        }
        for (size_t i = 0; i < COUNT(fields); i++)
                if (str_eqz(field, fields[i][0])) {
                        buf_addz(ret, fields[i][1]);
                        return;
                }
        for (const struct words_row *r = row->tool->rows; r->name || r->letter; r++)
                if (r->name && str_ieqz(field, r->name)) {
                        buf_addz(ret, r->name);
                        return;
                }
        buf_str(ret, field); /* the command says that it has none */
}

static bool is_plain(const struct words_tool *tool, const char *option)
{
        for (const struct words_row *r = tool->rows; r->name || r->letter; r++)
                if (r->name && strcmp(r->name, option) == 0)
                        return r->form == WORDS_PLAIN;
        return false;
}

/* Adds FIELD=VALUE, FIELD==VALUE or FIELD:=VALUE as an option. */
static int add_option(const struct row *row, const char *word, struct args *to)
{
        size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        const char *value = word + n + strspn(word + n, ":=");
        BUF_CLEANUP struct buf name = {0}, option = {0};
        bool yes = strcmp(value, "True") == 0;

        if (n == 0 || value == word + n || value - (word + n) > 2 || strncmp(word + n, "::", 2) == 0 ||
            strncmp(word + n, "=:", 2) == 0)
                return cli_error(1, "\"%s\" is not FIELD=VALUE, FIELD==VALUE or FIELD:=VALUE", word);
        option_name(row, str_make(word, n), &name);
        if (is_plain(row->tool, buf_z(&name)) && !yes && strcmp(value, "False") != 0)
                return cli_error(1, "\"%s\": it is True or False", word);
        if (is_plain(row->tool, buf_z(&name)) && !yes && strcmp(buf_z(&name), "active") != 0)
                return 0;
        if (is_plain(row->tool, buf_z(&name)))
                buf_printf(&option, "--%s", yes ? buf_z(&name) : "inactive");
        else
                buf_printf(&option, "--%s=%s", buf_z(&name), value);
        args_add(to, buf_view(&option));
        return 0;
}

static int run_row(struct cli *cli, const struct row *row, const char *const *words, size_t count)
{
        ARGS_CLEANUP struct args args = {0};
        WORDS_CLEANUP struct words w;
        struct err err = {""};
        int code = 0;

        for (size_t i = 0; i < count && code == 0; i++)
                code = add_option(row, words[i], &args);
        words_init(&w, row->tool);
        if (code == 0 && words_read(&w, WORDS_CALL, args.n, (const char *const *)args.v, &err) != 0)
                code = cli_error(1, "%s %s: %s", row->object, row->action, err.text);
        return code ? code : row->tool->run(cli, &w);
}

static int run_words(struct cli *cli, const char *const *words, size_t count)
{
        for (size_t i = 0; count > 1 && i < COUNT(rows); i++)
                if (strcasecmp(rows[i].object, words[0]) == 0 && strcasecmp(rows[i].action, words[1]) == 0)
                        return run_row(cli, &rows[i], words + 2, count - 2);
        return cli_error(1, "\"%s%s%s\" is not OBJECT ACTION, such as Project Query: see drover-gold(7)",
                         words[0], count > 1 ? " " : "", count > 1 ? words[1] : "");
}

/* Reads a line of the input. Returns false at its end. */
static bool next_line(bool asks, char **line, size_t *room, struct str *ret)
{
        ssize_t n;

        if (asks) {
                fputs("gold> ", stdout);
                fflush(stdout);
        }
        n = getline(line, room, stdin);
        if (n >= 0)
                *ret = str_make(*line, (size_t)n);
        return n >= 0;
}

static int goldsh(struct cli *cli, const struct words *w)
{
        bool asks = isatty(STDIN_FILENO) && !words_has(w, "quiet");
        MEM_CLEANUP char *line = NULL;
        struct str text;
        size_t room = 0;
        int code = 0;

        if (w->word_count)
                return run_words(cli, (const char *const *)w->words, w->word_count);
        while (next_line(asks, &line, &room, &text)) {
                ARGS_CLEANUP struct args words = {0};

                if (split_line(text, &words) != 0)
                        code = 1;
                else if (words.n && (strcmp(words.v[0], "quit") == 0 || strcmp(words.v[0], "exit") == 0))
                        break;
                else if (words.n && words.v[0][0] != '#' &&
                         run_words(cli, (const char *const *)words.v, words.n) != 0)
                        code = 1;
        }
        return code;
}

static const struct words_row shell_rows[] = {GOLD_COMMON, {0}};

const struct words_tool gold_goldsh = {
        .name = "goldsh",
        .usage = "[OBJECT ACTION [FIELD=VALUE]...]",
        .line = "Runs a command of the form OBJECT ACTION FIELD=VALUE, or each line of the input.",
        .rows = shell_rows,
        .run = goldsh};
