#include "cli/terminal/options.h"

#include <assert.h>
#include <errno.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/terminal/human.h"

const struct option_row options_common[] = {
        {"dir", 0, OPTION_TEXT, "DIR",
         "The instance's folder. Default: $DROVER_DIR, or ~/.local/state/drover."},
        {"server", 0, OPTION_TEXT, "SERVER",
         "A server elsewhere: https://host:port, or a domain, whose DNS records name it. Default: "
         "$DROVER_SERVER."},
        {"help", 'h', OPTION_FLAG, NULL, "Show this help and exit."},
        {0},
};

static const struct option_row *options_row_at(const struct command *command, size_t i)
{
        size_t own = 0;

        while (command->options && command->options[own].name)
                own++;
        if (i < own)
                return &command->options[i];
        i -= own;
        for (size_t c = 0; c <= i; c++)
                if (!options_common[c].name)
                        return NULL;
        return &options_common[i];
}

const struct option_row *options_row(const struct command *command, struct str name)
{
        const struct option_row *row;

        for (size_t i = 0; (row = options_row_at(command, i)); i++)
                if (str_eqz(name, row->name))
                        return row;
        return NULL;
}

const char *options_nearest(struct str word, const char *(*name_of)(const void *arg, size_t i),
                            const void *arg)
{
        const char *name, *best = NULL;
        unsigned best_distance = 3, distance;

        for (size_t i = 0; (name = name_of(arg, i)); i++) {
                distance = str_distance(word, str_of(name), 2);
                /* "qeue" is near to "queue", but "a" is not to "rm". */
                if (distance * 2 > word.n || distance >= best_distance)
                        continue;
                best = name;
                best_distance = distance;
        }
        return best;
}

static const char *row_name(const void *arg, size_t i)
{
        const struct option_row *row = options_row_at(arg, i);

        return row ? row->name : NULL;
}

/* Returns the command's own option for a name that other systems use; NULL: there is none. */
static const char *option_meant(const struct command *command, struct str name)
{
        static const struct {
                const char *word, *option;
        } words_for[] = {
                {"J", "name"},
                {"job-name", "name"},
                {"N", "name"},
                {"p", "queue"},
                {"partition", "queue"},
                {"D", "chdir"},
                {"workdir", "chdir"},
                {"cwd", "chdir"},
                {"wd", "chdir"},
                {"dependency", "after"},
                {"afterok", "after"},
                {"depends", "after"},
                {"ntasks", "cpus"},
                {"cores", "cpus"},
                {"threads", "cpus"},
                {"ncpus", "cpus"},
                {"walltime", "time"},
                {"timelimit", "time"},
                {"gres", "gpus"},
                {"container", "image"},
                {"docker", "image"},
                {"stdout", "output"},
                {"stdin", "input"},
                {"export", "env"},
                {"files", "send"},
                {"inputs", "send"},
                {"verbose", "long"},
                {"user", "owner"},
                {"state", "constraint 'JobStatus == 1'"},
                {"w", "watch"},
                {"priority", "append 'priority = 10'"},
                {"failed", "state failed"},
                {"failed", "constraint 'ExitCode != 0'"},
                {"running", "state running"},
                {"held", "state held"},
                {"idle", "state idle"},
                {"pending", "state idle"},
                {"stderr", "error"},
                {"all", "owner USER"},
                {"count", "limit"},
                {"n", "limit"},
                {"lines", "limit"},
        };

        for (size_t i = 0; i < sizeof(words_for) / sizeof(words_for[0]); i++) {
                struct str option = str_of(words_for[i].option), first;

                str_cut(&option, ' ', &first);
                if (str_eqz(name, words_for[i].word) && options_row(command, first))
                        return words_for[i].option;
        }
        return NULL;
}

/* Behind a word an unknown option is more likely one of the command that the words are meant to be. */
static int unknown_option(const struct options *o, struct str word, struct str name, struct err *err)
{
        const struct command *command = o->command;
        const char *near = option_meant(command, name);

        if (o->word_count > 0 && strstr(command->usage, "-- COMMAND"))
                return err_set(err, -EINVAL,
                               "drover %s has no option \"" STR_FMT "\": a command and its options stand "
                               "behind --, as in drover %s %s-- ls -l",
                               command->name, STR_ARG(word), command->name,
                               strstr(command->usage, "ID") ? "7.0 " : "");
        if (!near)
                near = options_nearest(name, row_name, command);
        if (near)
                return err_set(err, -EINVAL, "there is no option \"" STR_FMT "\": did you mean --%s?",
                               STR_ARG(word), near);
        return err_set(err, -EINVAL, "there is no option \"" STR_FMT "\": see drover %s --help",
                       STR_ARG(word), command->name);
}

/* Finds an option by its whole name, or by the beginning of exactly one. */
static int find_long(const struct options *o, struct str word, struct str name, const struct option_row **ret,
                     struct err *err)
{
        const struct command *command = o->command;
        const struct option_row *row, *found = options_row(command, name);

        for (size_t i = 0; !found && (row = options_row_at(command, i)); i++) {
                if (name.n == 0 || !str_starts(str_of(row->name), name))
                        continue;
                if (*ret)
                        return err_set(err, -EINVAL, "\"" STR_FMT "\" may be --%s or --%s", STR_ARG(word),
                                       (*ret)->name, row->name);
                *ret = row;
        }
        if (found)
                *ret = found;
        return *ret ? 0 : unknown_option(o, word, name, err);
}

static const struct option_row *find_letter(const struct command *command, char letter)
{
        const struct option_row *row;

        for (size_t i = 0; (row = options_row_at(command, i)); i++)
                if (row->letter == letter)
                        return row;
        return NULL;
}

static int give_option(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
        int64_t number;

        if (row->form == OPTION_NUMBER && str_to_i64(str_of(text), &number) != 0)
                return err_set(err, -EINVAL, "--%s takes a whole number, not \"%s\"", row->name, text);
        if (row->form == OPTION_DURATION && human_to_seconds(str_of(text), &number, err) != 0)
                return err_prefix(err, -EINVAL, "--%s", row->name);
        MEM_GROW(o->given, o->given_cap, o->given_count + 1);
        o->given[o->given_count++] = (struct option_given){row, text};
        return 0;
}

static int read_long(struct options *o, char **argv, int argc, int *i, struct err *err)
{
        struct str word = str_of(argv[*i]), name, rest = str_skip(word, 2);
        const struct option_row *row = NULL;
        bool has_value = str_find(rest, '=') >= 0;
        int rc;

        str_cut(&rest, '=', &name);
        rc = find_long(o, word, name, &row, err);
        if (rc != 0)
                return rc;
        if (row->form == OPTION_FLAG && has_value)
                return err_set(err, -EINVAL, "--%s takes no value", row->name);
        if (row->form == OPTION_FLAG)
                return give_option(o, row, NULL, err);
        if (has_value)
                return give_option(o, row, rest.p, err);
        if (*i + 1 >= argc)
                return err_set(err, -EINVAL, "--%s needs a value: --%s %s", row->name, row->name, row->value);
        return give_option(o, row, argv[++*i], err);
}

static int read_letters(struct options *o, char **argv, int argc, int *i, struct err *err)
{
        for (const char *p = argv[*i] + 1; *p; p++) {
                const struct option_row *row = find_letter(o->command, *p);
                int rc;

                if (!row)
                        return unknown_option(o, str_of(argv[*i]), str_of(argv[*i] + 1), err);
                if (row->form == OPTION_FLAG) {
                        rc = give_option(o, row, NULL, err);
                        if (rc != 0)
                                return rc;
                        continue;
                }
                if (p[1])
                        return give_option(o, row, p + 1, err);
                if (*i + 1 >= argc)
                        return err_set(err, -EINVAL, "-%c needs a value: -%c %s", *p, *p, row->value);
                return give_option(o, row, argv[++*i], err);
        }
        return 0;
}

/* The word of the usage that stands at this place: "ID..." of "[OPTIONS] ID... SIGNAL" for 0. */
static struct str usage_word(const struct command *c, size_t place)
{
        struct str rest = str_of(c->usage), word = STR("argument"), next;

        while (str_word(&rest, &next))
                if (next.p[0] != '[' && next.p[next.n - 1] != ']') {
                        word = next;
                        if (place-- == 0)
                                break;
                }
        return word;
}

/* Returns whether the first word is a verb, as in "add|list|rm NAME". */
static bool has_verbs(struct str first)
{
        return str_find(first, '|') > 0 && first.p[0] >= 'a' && first.p[0] <= 'z';
}

static void list_verbs(struct str verbs, struct buf *out)
{
        struct str verb;

        for (bool first = true; str_cut(&verbs, '|', &verb); first = false)
                buf_printf(out, "%s" STR_FMT, first ? "" : verbs.n ? ", " : " and ", STR_ARG(verb));
}

static int check_verb(const struct options *o, struct err *err)
{
        struct str verbs = usage_word(o->command, 0), verb;
        struct buf list BUF_CLEANUP = {0};

        if (!has_verbs(verbs))
                return 0;
        list_verbs(verbs, &list);
        while (str_cut(&verbs, '|', &verb))
                if (str_eqz(verb, o->words[0]))
                        return 0;
        return err_set(err, -EINVAL, "drover %s has no \"%s\": it has %s", o->command->name, o->words[0],
                       buf_z(&list));
}

static int missing_word(const struct command *c, size_t given, struct err *err)
{
        struct str word = usage_word(c, given);
        struct buf list BUF_CLEANUP = {0};
        ptrdiff_t dots = str_find(word, '.');

        if (given == 0 && has_verbs(word)) {
                list_verbs(word, &list);
                return err_set(err, -EINVAL, "drover %s what? It has %s; see drover %s --help", c->name,
                               buf_z(&list), c->name);
        }
        return err_set(err, -EINVAL, "missing " STR_FMT ": drover %s %s",
                       STR_ARG(dots > 0 ? str_head(word, (size_t)dots) : word), c->name, c->usage);
}

static int check_words(const struct options *o, struct err *err)
{
        const struct command *c = o->command;

        if (options_flag(o, "help"))
                return 0;
        if (o->word_count > c->words_max && c->words_max == 0)
                return err_set(err, -EINVAL, "unexpected argument \"%s\": drover %s takes none", o->words[0],
                               c->name);
        if (o->word_count > c->words_max)
                return err_set(err, -EINVAL, "unexpected argument \"%s\": drover %s %s",
                               o->words[c->words_max], c->name, c->usage);
        if (o->word_count < c->words_min && !(options_row(c, STR("session")) && options_text(o, "session")))
                return missing_word(c, o->word_count, err);
        return c->words_min > 0 && o->word_count > 0 && !o->ended ? check_verb(o, err) : 0;
}

/* A negative number is a word, as in `drover prio 7 -5`: no option is a digit. */
static bool is_number(const char *word)
{
        return word[1] >= '0' && word[1] <= '9';
}

int options_read(struct options *o, const struct command *command, int argc, char **argv, struct err *err)
{
        bool ended = false;

        *o = (struct options){.command = command};
        for (int i = 0; i < argc; i++) {
                const char *word = argv[i];
                int rc = 0;

                if (!ended && strcmp(word, "--") == 0 && !command->passes_on)
                        ended = true, o->ended = o->word_count == 0;
                else if (!ended && !command->passes_on && word[0] == '-' && word[1] == '-')
                        rc = read_long(o, argv, argc, &i, err);
                else if (!ended && !command->passes_on && word[0] == '-' && word[1] && !is_number(word))
                        rc = read_letters(o, argv, argc, &i, err);
                else {
                        MEM_GROW(o->words, o->word_cap, o->word_count + 2);
                        o->words[o->word_count++] = word;
                        o->words[o->word_count] = NULL;
                        ended |= command->runs_words;
                }
                if (rc != 0) {
                        options_deinit(o);
                        return rc;
                }
        }
        if (command->passes_on)
                return 0;
        if (check_words(o, err) != 0) {
                options_deinit(o);
                return -EINVAL;
        }
        return 0;
}

void options_deinit(struct options *o)
{
        free(o->given);
        free(o->words);
        *o = (struct options){.command = o->command};
}

static const struct option_given *last_given(const struct options *o, const char *name)
{
        const struct option_row *row = options_row(o->command, str_of(name));

        assert(row);
        for (size_t i = o->given_count; i-- > 0;)
                if (o->given[i].row == row)
                        return &o->given[i];
        return NULL;
}

bool options_flag(const struct options *o, const char *name)
{
        return last_given(o, name) != NULL;
}

const char *options_text(const struct options *o, const char *name)
{
        const struct option_given *g = last_given(o, name);

        return g ? g->text : NULL;
}

int64_t options_number(const struct options *o, const char *name, int64_t otherwise)
{
        const struct option_given *g = last_given(o, name);
        int64_t v = otherwise;

        if (g && g->row->form == OPTION_DURATION)
                human_to_seconds(str_of(g->text), &v, NULL);
        else if (g)
                str_to_i64(str_of(g->text), &v);
        return v;
}

const char *options_list(const struct options *o, const char *name, size_t *at)
{
        const struct option_row *row = options_row(o->command, str_of(name));

        assert(row);
        while (*at < o->given_count) {
                const struct option_given *g = &o->given[(*at)++];

                if (g->row == row)
                        return g->text;
        }
        return NULL;
}
