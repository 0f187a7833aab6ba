#include "cli/condor/flags.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"

const struct flag_row flags_common[] = {
        {"help", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Show this help and exit."},
        {"version", 4, FLAG_PLAIN, FLAG_ACTS, NULL, "Show the version and exit."},
        {"debug", 1, FLAG_PLAIN, FLAG_WARNED, NULL, "There is nothing to be shown."},
        {"name", 1, FLAG_VALUE, FLAG_HERE, "HOST",
         "Only this machine: $DROVER_DIR or $DROVER_SERVER name the server."},
        {"pool", 1, FLAG_VALUE, FLAG_HERE, "HOST",
         "Only this machine: $DROVER_DIR or $DROVER_SERVER name the server."},
        {"addr", 4, FLAG_VALUE, FLAG_REFUSED, "ADDRESS", "$DROVER_DIR or $DROVER_SERVER name the server."},
        {0},
};

const struct flag_row *flags_row_at(const struct condor_tool *tool, size_t n)
{
        size_t own = 0;

        while (tool->rows[own].name)
                own++;
        if (n < own)
                return &tool->rows[n];
        for (size_t i = 0; i <= n - own; i++)
                if (!flags_common[i].name)
                        return NULL;
        return &flags_common[n - own];
}

/* The whole name, else the first row that it is a long enough beginning of. */
static const struct flag_row *find_flag(const struct condor_tool *tool, struct str name)
{
        const struct flag_row *row;

        for (size_t i = 0; (row = flags_row_at(tool, i)); i++)
                if (str_eqz(name, row->name))
                        return row;
        for (size_t i = 0; (row = flags_row_at(tool, i)); i++)
                if (row->min && name.n >= row->min && str_starts(str_of(row->name), name))
                        return row;
        return NULL;
}

static bool is_here(const char *value)
{
        char host[256] = "";
        struct str word = str_of(value), first;
        ptrdiff_t port = str_rfind(word, ':');

        if (port > 0)
                word = str_head(word, (size_t)port);
        gethostname(host, sizeof(host) - 1);
        first = word;
        str_cut(&(struct str){word.p, word.n}, '.', &first);
        return str_ieqz(word, "localhost") || str_ieqz(word, "127.0.0.1") || str_ieqz(word, host) ||
               str_ieqz(first, host);
}

static int judge(const struct flag_given *g, struct err *err)
{
        const struct flag_row *row = g->row;

        if (row->effect == FLAG_REFUSED)
                return err_set(err, -EINVAL, "-%s is not supported: %s", row->name, row->text);
        if (row->effect == FLAG_HERE && !is_here(g->words[0]))
                return err_set(
                        err, -EINVAL,
                        "-%s %s names another machine, which is not supported: $DROVER_DIR or $DROVER_SERVER "
                        "name the server",
                        row->name, g->words[0]);
        return 0;
}

static bool is_flag(const char *word)
{
        return word[0] == '-' && word[1];
}

static int read_flag(struct flags *f, int argc, const char *const *argv, int *i, struct err *err)
{
        struct str word = str_of(argv[*i]), rest = str_skip(word, word.p[1] == '-' ? 2 : 1), name = rest;
        struct flag_given g = {.words = argv + *i + 1};
        size_t wanted;

        if (str_find(rest, ':') >= 0) {
                str_cut(&rest, ':', &name);
                g.colon = rest.p;
        }
        g.row = find_flag(f->tool, name);
        if (!g.row)
                return err_set(err, -EINVAL, "%s is not a flag that is known here: see %s -help", argv[*i],
                               f->tool->name);
        wanted = g.row->form == FLAG_PLAIN ? 0 : g.row->form == FLAG_TWO ? 2 : 1;
        while (*i + 1 + (int)g.count < argc && g.count < wanted)
                g.count++;
        if (g.row->form == FLAG_WORDS) {
                for (g.count = 0; *i + 1 + (int)g.count < argc && !is_flag(g.words[g.count]); g.count++)
                        ;
        }
        if (g.count < wanted)
                return err_set(err, -EINVAL, "-%s needs %s", g.row->name, g.row->value);
        *i += (int)g.count;
        MEM_GROW(f->given, f->given_cap, f->given_count + 1);
        f->given[f->given_count++] = g;
        return judge(&g, err);
}

int flags_read(struct flags *f, const struct condor_tool *tool, int argc, const char *const *argv,
               struct err *err)
{
        int rc = 0;

        *f = (struct flags){.tool = tool};
        for (int i = 0; i < argc && rc == 0; i++) {
                if (is_flag(argv[i])) {
                        rc = read_flag(f, argc, argv, &i, err);
                        continue;
                }
                MEM_GROW(f->words, f->word_cap, f->word_count + 1);
                f->words[f->word_count++] = argv[i];
        }
        if (rc == 0 && !flags_has(f, "help") && !flags_has(f, "version")) {
                if (f->word_count > tool->words_max)
                        rc = err_set(err, -EINVAL, "unexpected argument \"%s\": %s %s",
                                     f->words[tool->words_max], tool->name, tool->usage);
                else if (f->word_count < tool->words_min)
                        rc = err_set(err, -EINVAL, "an argument is missing: %s %s", tool->name, tool->usage);
        }
        if (rc != 0)
                flags_deinit(f);
        return rc;
}

void flags_deinit(struct flags *f)
{
        free(f->given);
        free(f->words);
        *f = (struct flags){.tool = f->tool};
}

void flags_warnings(const struct flags *f, struct buf *out)
{
        for (size_t i = 0; i < f->given_count; i++)
                if (f->given[i].row->effect == FLAG_WARNED)
                        buf_printf(out, "-%s is not acted on. %s\n", f->given[i].row->name,
                                   f->given[i].row->text);
}

const struct flag_given *flags_next(const struct flags *f, const char *name, size_t *at)
{
        const struct flag_row *row = find_flag(f->tool, str_of(name));

        assert(row && strcmp(row->name, name) == 0);
        while (*at < f->given_count)
                if (f->given[(*at)++].row == row)
                        return &f->given[*at - 1];
        return NULL;
}

bool flags_has(const struct flags *f, const char *name)
{
        return flags_next(f, name, &(size_t){0}) != NULL;
}

const char *flags_text(const struct flags *f, const char *name)
{
        const struct flag_given *g, *last = NULL;
        size_t at = 0;

        while ((g = flags_next(f, name, &at)))
                last = g;
        return last && last->count ? last->words[0] : NULL;
}

int flags_number(const struct flags *f, const char *name, int64_t otherwise, int64_t *ret, struct err *err)
{
        const char *text = flags_text(f, name);

        *ret = otherwise;
        if (text && str_to_i64(str_of(text), ret) != 0)
                return err_set(err, -EINVAL, "-%s takes a whole number, not \"%s\"", name, text);
        return 0;
}

static const char *note(const struct flag_row *row)
{
        return row->effect == FLAG_WARNED ? "Not acted on. " : row->effect == FLAG_REFUSED ? "Refused. " : "";
}

void flags_help(const struct condor_tool *tool, struct buf *out)
{
        const struct flag_row *row;

        buf_printf(out, "Usage: %s %s\n%s\n\n", tool->name, tool->usage, tool->line);
        for (size_t i = 0; (row = flags_row_at(tool, i)); i++) {
                BUF_CLEANUP struct buf left = {0};

                buf_printf(&left, "  -%s%s%s", row->name, row->value ? " " : "",
                           row->value ? row->value : "");
                buf_printf(out, "%-28s %s%s\n", buf_z(&left), note(row), row->text);
        }
        buf_addz(out, "\nA command of Drover's that looks like HTCondor's: see drover-condor(1).\n");
}

void flags_page(const struct condor_tool *tool, struct buf *out)
{
        const struct flag_row *row;

        buf_printf(out, "## %s\n\n**%s** %s\n\n%s\n\n", tool->name, tool->name, tool->usage, tool->line);
        for (size_t i = 0; tool->rows[i].name; i++) {
                row = &tool->rows[i];
                buf_printf(out, "`-%s%s%s`\n:   %s%s\n\n", row->name, row->value ? " " : "",
                           row->value ? row->value : "", note(row), row->text);
        }
}
