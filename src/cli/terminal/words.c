#include "cli/terminal/words.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "base/mem.h"

#define FIRST_CODE 1000 /* first code for getopt_long; the row's number is added */

const struct words_row words_common[] = {
        {"help", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Show this help and exit."},
        {"usage", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "The same."},
        {"version", 'V', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Show the version and exit."},
        {0},
};

static bool row_ends(const struct words_row *row)
{
        return !row->name && !row->letter;
}

/* The n-th row that the tool takes; NULL behind the last. */
static const struct words_row *words_row_at(const struct words_tool *tool, size_t n)
{
        size_t own = 0;

        while (!row_ends(&tool->rows[own]))
                own++;
        if (n < own)
                return &tool->rows[n];
        for (size_t i = 0; i <= n - own; i++)
                if (row_ends(&words_common[i]))
                        return NULL;
        return &words_common[n - own];
}

void words_init(struct words *w, const struct words_tool *tool)
{
        *w = (struct words){.tool = tool};
}

void words_deinit(struct words *w)
{
        for (size_t i = 0; i < w->given_count; i++)
                free(w->given[i].value);
        for (size_t i = 0; i < w->word_count; i++)
                free(w->words[i]);
        free(w->given);
        free(w->words);
}

static void row_show(const struct words_row *row, struct buf *out)
{
        if (row->name)
                buf_printf(out, "--%s", row->name);
        else
                buf_printf(out, "-%c", row->letter);
}

static int give_word(struct words *w, const struct words_row *row, enum words_origin origin,
                     const char *value, struct err *err)
{
        BUF_CLEANUP struct buf name = {0};

        row_show(row, &name);
        if (row->effect == WORDS_REFUSED)
                return err_set(err, -EINVAL, "%s is not supported: %s", buf_z(&name), row->text);
        MEM_GROW(w->given, w->given_cap, w->given_count + 1);
        w->given[w->given_count++] =
                (struct words_given){.row = row, .value = value ? mem_dupz(value) : NULL, .origin = origin};
        return 0;
}

static void add_word(struct words *w, const char *word)
{
        MEM_GROW(w->words, w->word_cap, w->word_count + 1);
        w->words[w->word_count++] = mem_dupz(word);
}

/* The rows as getopt_long has them. */
static void make_tables(const struct words_tool *tool, bool stops, struct option **ret_long,
                        struct buf *letters)
{
        const struct words_row *row;
        size_t n = 0, count = 0;

        while (words_row_at(tool, n))
                n++;
        *ret_long = mem_zalloc((n + 1) * sizeof(**ret_long));
        buf_addz(letters, stops ? "+:" : ":");
        for (size_t i = 0; (row = words_row_at(tool, i)); i++) {
                const char *tail = row->form == WORDS_PLAIN ? "" : row->form == WORDS_VALUE ? ":" : "::";

                if (row->letter)
                        buf_printf(letters, "%c%s", row->letter, tail);
                if (row->name)
                        (*ret_long)[count++] = (struct option){
                                .name = row->name, .has_arg = (int)strlen(tail), .val = FIRST_CODE + (int)i};
        }
}

static const struct words_row *row_of(const struct words_tool *tool, int code)
{
        const struct words_row *row;

        if (code >= FIRST_CODE)
                return words_row_at(tool, (size_t)(code - FIRST_CODE));
        for (size_t i = 0; (row = words_row_at(tool, i)); i++)
                if (row->letter == code)
                        return row;
        return NULL;
}

/* The word that getopt_long has stopped at. */
static int refuse_word(const struct words_tool *tool, int code, const char *word, struct err *err)
{
        const struct words_row *row = optopt ? row_of(tool, optopt) : NULL;
        BUF_CLEANUP struct buf name = {0};

        if (row)
                row_show(row, &name);
        if (code == ':' && row)
                return err_set(err, -EINVAL, "option '%s' requires an argument", buf_z(&name));
        if (row)
                return err_set(err, -EINVAL, "option '%s' doesn't allow an argument", buf_z(&name));
        if (optopt && optopt < 256)
                return err_set(err, -EINVAL, "invalid option -- '%c'", optopt);
        return err_set(err, -EINVAL, "unrecognized option '%s'", word);
}

int words_read(struct words *w, enum words_origin origin, size_t argc, const char *const *argv,
               struct err *err)
{
        MEM_CLEANUP char **all = mem_zalloc((argc + 2) * sizeof(*all));
        MEM_CLEANUP struct option *rows = NULL;
        BUF_CLEANUP struct buf letters = {0};
        int code, rc = 0;

        all[0] = (char *)(uintptr_t)w->tool->name;
        for (size_t i = 0; i < argc; i++)
                all[i + 1] = (char *)(uintptr_t)argv[i];
        make_tables(w->tool, w->tool->stops, &rows, &letters);
        optind = 0;
        opterr = 0;
        while (rc == 0 && (code = getopt_long((int)argc + 1, all, buf_z(&letters), rows, NULL)) != -1) {
                const struct words_row *row = code == '?' || code == ':' ? NULL : row_of(w->tool, code);

                rc = row ? give_word(w, row, origin, optarg, err)
                         : refuse_word(w->tool, code, all[optind > 1 ? optind - 1 : 1], err);
        }
        for (size_t i = (size_t)optind; rc == 0 && i <= argc; i++) {
                if (origin != WORDS_CALL)
                        return err_set(err, -EINVAL, "\"%s\" is no option", all[i]);
                add_word(w, all[i]);
        }
        return rc;
}

int words_environment(struct words *w, struct err *err)
{
        const struct words_row *row;
        int rc = 0;

        for (size_t i = 0; rc == 0 && !w->tool->no_variables && (row = words_row_at(w->tool, i)); i++) {
                const char *value = row->variable ? getenv(row->variable) : NULL;

                if (value && (row->form != WORDS_VALUE || *value))
                        rc = give_word(w, row, WORDS_ENVIRONMENT,
                                       row->form == WORDS_PLAIN || !*value ? NULL : value, err);
        }
        return rc;
}

void words_warnings(const struct words *w, struct buf *out)
{
        for (size_t i = 0; i < w->given_count; i++) {
                const struct words_row *row = w->given[i].row;
                bool told = row->effect != WORDS_NAMED;

                for (size_t k = 0; k < i && !told; k++)
                        told = w->given[k].row == row;
                if (told)
                        continue;
                row_show(row, out);
                buf_printf(out, " has no equivalent, and is left out: %s\n", row->text);
        }
}

/* ---- asking */

static const struct words_row *row_named(const struct words *w, const char *name)
{
        const struct words_row *row;

        for (size_t i = 0; (row = words_row_at(w->tool, i)); i++)
                if (row->name ? strcmp(row->name, name) == 0 : name[0] == row->letter && !name[1])
                        return row;
        assert(!"an option that no row has");
        return NULL;
}

size_t words_place(const struct words *w, const char *name)
{
        const struct words_row *row = row_named(w, name);

        for (size_t i = w->given_count; i > 0; i--)
                if (w->given[i - 1].row == row)
                        return i;
        return 0;
}

bool words_has(const struct words *w, const char *name)
{
        return words_place(w, name) > 0;
}

const char *words_text(const struct words *w, const char *name)
{
        size_t at = words_place(w, name);

        return at == 0 ? NULL : w->given[at - 1].value ? w->given[at - 1].value : "";
}

const char *words_next(const struct words *w, const char *name, size_t *at)
{
        const struct words_row *row = row_named(w, name);

        for (; *at < w->given_count; (*at)++)
                if (w->given[*at].row == row)
                        return w->given[(*at)++].value;
        return NULL;
}

int words_number(const struct words *w, const char *name, int64_t least, int64_t otherwise, int64_t *ret,
                 struct err *err)
{
        const char *text = words_text(w, name);

        *ret = otherwise;
        if (text && (str_to_i64(str_of(text), ret) != 0 || *ret < least))
                return err_set(err, -EINVAL, "Invalid numeric value \"%s\" for --%s.", text, name);
        return 0;
}

/* ---- telling */

static const char *effect_text(const struct words_row *row)
{
        return row->effect == WORDS_NAMED     ? "Named, and left out. "
               : row->effect == WORDS_REFUSED ? "Refused. "
                                              : "";
}

static void show_all(const struct words_row *row, struct buf *out)
{
        if (row->letter)
                buf_printf(out, "-%c%s", row->letter, row->name ? ", " : "");
        if (row->name)
                buf_printf(out, "--%s", row->name);
        if (row->value)
                buf_printf(out, row->form == WORDS_MAYBE ? "[=%s]" : row->name ? "=%s" : " %s", row->value);
}

void words_help(const struct words_tool *tool, const char *closing, struct buf *out)
{
        const struct words_row *row;

        buf_printf(out, "Usage: %s %s\n%s\n\n", tool->name, tool->usage, tool->line);
        for (size_t i = 0; (row = words_row_at(tool, i)); i++) {
                BUF_CLEANUP struct buf left = {0};

                show_all(row, &left);
                buf_printf(out, "  %-30s %s%s\n", buf_z(&left), effect_text(row), row->text);
        }
        buf_printf(out, "\n%s\n", closing);
}

void words_page(const struct words_tool *tool, struct buf *out)
{
        static const char *const heads[] = {[WORDS_ACTS] = "Carried out:",
                                            [WORDS_SO] = "Taken, and so anyway:",
                                            [WORDS_NAMED] = "Named in a warning, and left out:",
                                            [WORDS_REFUSED] = "Refused:"};

        buf_printf(out, "## %s\n\n**%s** %s\n\n%s\n\n", tool->name, tool->name, tool->usage, tool->line);
        for (enum words_effect effect = WORDS_ACTS; effect <= WORDS_REFUSED; effect++) {
                bool any = false;

                for (size_t i = 0; !row_ends(&tool->rows[i]); i++) {
                        const struct words_row *row = &tool->rows[i];

                        if (row->effect != effect)
                                continue;
                        if (!any)
                                buf_printf(out, "%s\n\n", heads[effect]);
                        any = true;
                        buf_char(out, '`');
                        show_all(row, out);
                        buf_printf(out, "`\n:   %s%s%s%s\n\n", row->text, row->variable ? " (**" : "",
                                   row->variable ? row->variable : "", row->variable ? "**)" : "");
                }
        }
}
