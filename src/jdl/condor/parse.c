/* Statements. Lines of an `if` that doesn't hold are read over; a queue statement makes a part at once, with
 * what is set then. */
#include <errno.h>

#include "jdl/condor/reader.h"

static bool is_active(const struct reader *r)
{
        return r->branch_count == 0 || r->branches[r->branch_count - 1].active;
}

/* Returns whether the first word of line is `word`; *ret_rest is the text after it. */
static bool first_word(struct str line, const char *word, struct str *ret_rest)
{
        struct str w = str_of(word);

        if (!str_istarts(line, w))
                return false;
        *ret_rest = str_skip(line, w.n);
        if (ret_rest->n && (macro_is_name(str_head(*ret_rest, 1)) || ret_rest->p[0] == '='))
                return false;
        *ret_rest = str_trim(*ret_rest);
        return !str_starts(*ret_rest, STR("=")); /* `if = 3` is an assignment */
}

static int truth(struct reader *r, struct str text, struct place at, bool *ret)
{
        static const char *const yes[] = {"true", "yes", "1"}, *const no[] = {"false", "no", "0", ""};
        double number;

        for (size_t i = 0; i < 3; i++)
                if (str_ieqz(text, yes[i]))
                        return *ret = true, 0;
        for (size_t i = 0; i < 4; i++)
                if (str_ieqz(text, no[i]))
                        return *ret = false, 0;
        if (str_to_double(text, &number) == 0)
                return *ret = number != 0, 0;
        return reader_fail(r, at,
                           "'" STR_FMT "' is no simple condition: use true, false, a number, or `defined "
                           "NAME`, with ! before it for not",
                           STR_ARG(text));
}

/* version OPERATOR MAJOR[.MINOR[.PATCH]]: HTCondor's version, here that whose language is read. */
static int version_condition(struct reader *r, struct str text, struct place at, bool *ret)
{
        static const int64_t own[] = {CONDOR_LIKE_MAJOR, CONDOR_LIKE_MINOR, CONDOR_LIKE_PATCH};
        static const struct {
                const char *text;
                bool less, same, more;
        } operators[] = {{">=", false, true, true}, {"<=", true, true, false}, {"==", false, true, false},
                         {"!=", true, false, true}, {">", false, false, true}, {"<", true, false, false}};
        struct str rest, part;
        int64_t asked;
        int order = 0, parts = 0;
        size_t i = 0;

        while (i < 6 && !str_starts(text, str_of(operators[i].text)))
                i++;
        rest = i < 6 ? str_trim(str_skip(text, strlen(operators[i].text))) : STR_NONE;
        while (rest.n && parts < 3 && str_cut(&rest, '.', &part) && str_to_i64(part, &asked) == 0) {
                if (order == 0)
                        order = (own[parts] > asked) - (own[parts] < asked);
                parts++;
        }
        if (parts == 0 || rest.n)
                return reader_fail(r, at, "'version " STR_FMT "' is no condition; write version >= 8.9.7",
                                   STR_ARG(text));
        *ret = order < 0 ? operators[i].less : order > 0 ? operators[i].more : operators[i].same;
        return 0;
}

/* defined NAME: it has a value that isn't empty. Numbers and truth values, which $(X) may have become, are.
 */
static int is_defined(struct reader *r, struct str text, struct place at, bool *ret)
{
        struct setting *s = settings_get(r, text);
        double number;

        if (s)
                s->used = true;
        *ret = (s && s->value[0]) || str_to_double(text, &number) == 0 || str_ieqz(text, "true") ||
               str_ieqz(text, "false");
        if (!*ret && text.n && !macro_is_name(text))
                return reader_fail(r, at, "`defined` takes the name of one macro, not '" STR_FMT "'",
                                   STR_ARG(str_head(text, 60)));
        return 0;
}

/* Evaluates a simple condition of HTCondor's manual: [!] defined NAME, [!] version …, or a truth value. */
static int condition(struct reader *r, struct str text, struct place at, bool *ret)
{
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
        bool negate = false;
        struct str rest;
        int rc;

        rc = settings_expand(r, text, at, &value, NULL);
        if (rc)
                return rc;
        rest = str_trim(buf_view(&value));
        while (str_starts(rest, STR("!"))) {
                negate = !negate;
                rest = str_trim(str_skip(rest, 1));
        }
        if (str_istarts(rest, STR("version")) && rest.n > 7 && strchr(" \t<>=!", rest.p[7])) {
                rc = version_condition(r, str_trim(str_skip(rest, 7)), at, ret);
        } else if (first_word(rest, "defined", &rest)) {
                rc = is_defined(r, rest, at, ret);
        } else {
                rc = truth(r, rest, at, ret);
        }
        *ret = *ret != negate;
        return rc;
}

static int do_if(struct reader *r, struct str rest, struct place at)
{
        struct branch *b;
        bool hold = false;
        int rc = 0;

        if (r->branch_count == READER_IF_MAX)
                return reader_fail(r, at, "`if` is nested more than %d deep", READER_IF_MAX);
        if (is_active(r))
                rc = condition(r, rest, at, &hold);
        b = &r->branches[r->branch_count];
        *b = (struct branch){.outer = is_active(r), .active = hold, .taken = hold, .at = at};
        r->branch_count++;
        return rc;
}

static int do_else(struct reader *r, struct str rest, struct place at, bool with_condition)
{
        struct branch *b;
        bool hold = true;
        int rc = 0;

        if (r->branch_count == r->sources[r->depth - 1].if_depth)
                return reader_fail(r, at, "there is no `if` for this");
        b = &r->branches[r->branch_count - 1];
        if (b->seen_else)
                return reader_fail(r, at, "the `else` of the `if` of line %u stands before this", b->at.line);
        b->seen_else = !with_condition;
        if (with_condition && b->outer && !b->taken) {
                rc = condition(r, rest, at, &hold);
        }
        b->active = b->outer && !b->taken && hold;
        b->taken |= b->active;
        return rc;
}

static int plain_else(struct reader *r, struct str rest, struct place at)
{
        if (rest.n && rest.p[0] != '#')
                reader_warn(r, at, "what stands behind `else` is not read; `elif` takes a condition");
        return do_else(r, rest, at, false);
}

static int do_endif(struct reader *r, struct place at)
{
        if (r->branch_count == r->sources[r->depth - 1].if_depth)
                return reader_fail(r, at, "there is no `if` for this `endif`");
        r->branch_count--;
        return 0;
}

/* 1: it was a statement about branches; 0: it was not; or a failure. */
static int branch_statement(struct reader *r, struct str line, struct place at)
{
        struct str rest;
        int rc;

        if (first_word(line, "if", &rest))
                rc = do_if(r, rest, at);
        else if (first_word(line, "elif", &rest))
                rc = do_else(r, rest, at, true);
        else if (first_word(line, "else", &rest))
                rc = plain_else(r, rest, at);
        else if (first_word(line, "endif", &rest))
                rc = do_endif(r, at);
        else
                return 0;
        return rc ? rc : 1;
}

/* include [ifexist] : file    include [output of] : command |    include command [into file] : command */
static int do_include(struct reader *r, struct str rest, struct place at)
{
        BUF_CLEANUP struct buf name = {.max = 4096}, text = {.max = CONDOR_TEXT_MAX};
        ptrdiff_t colon = str_find(rest, ':');
        struct str what, how, into = STR_NONE;
        bool command;
        int rc;

        if (colon < 0)
                return reader_fail(r, at, "write `include : FILE`, or `include command : COMMAND`");
        how = str_trim(str_head(rest, (size_t)colon));
        rc = settings_expand(r, str_trim(str_skip(rest, (size_t)colon + 1)), at, &name, NULL);
        if (rc)
                return rc;
        what = str_trim(buf_view(&name));
        command = first_word(how, "command", &into) || str_ends(what, STR("|"));
        if (command && str_istarts(into, STR("into "))) {
                reader_warn(r, at, "nothing is kept in " STR_FMT ": the command is run each time",
                            STR_ARG(str_trim(str_skip(into, 5))));
                how = STR("command");
        }
        if (str_ends(what, STR("|")))
                what = str_trim(str_head(what, what.n - 1));
        if (how.n && !str_ieqz(how, "ifexist") && !str_ieqz(how, "command") && !str_ieqz(how, "output of"))
                return reader_fail(r, at, "`include " STR_FMT "` is not known", STR_ARG(how));
        if (what.n == 0)
                return reader_fail(r, at, "`include :` needs the name of a file");
        buf_truncate(&name, (size_t)(what.p + what.n - name.p));
        what.p = buf_z(&name) + (what.p - name.p);
        rc = command ? r->world->run(r->world->arg, what.p, &text)
                     : r->world->read_file(r->world->arg, what.p, &text);
        if (rc == -ENOENT && str_ieqz(how, "ifexist"))
                return 0;
        if (rc) {
                reader_fail(r, at, command ? "the command '%s' failed: %s" : "'%s' can't be read: %s", what.p,
                            reader_reason(rc));
                return rc;
        }
        return lines_open(r, what, &text, at);
}

/* Reads the lines up to "@TAG" of a `name @=TAG` assignment: comments and empty lines are left out, and a
 * backslash joins lines. */
static int do_multi_line(struct reader *r, struct str name, struct str tag, struct place at)
{
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
        struct place here;
        struct str line;

        while (lines_item(r, &line, &here)) {
                if (str_starts(line, STR("@")) && str_eq(str_skip(line, 1), tag))
                        return settings_set(r, name, buf_view(&value), at);
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                if (value.n)
                        buf_char(&value, ' ');
                buf_str(&value, line);
        }
        return reader_fail(r, at, "the value that begins here has no line '@" STR_FMT "' to end it",
                           STR_ARG(tag));
}

/* The name of an assignment as it is kept: +X and My.X are MY.X. */
static bool assigned_name(struct str text, struct buf *ret)
{
        bool own = str_starts(text, STR("+"));

        if (own)
                text = str_trim(str_skip(text, 1));
        else if (str_istarts(text, STR("MY."))) {
                own = true;
                text = str_skip(text, 3);
        }
        if (own)
                buf_addz(ret, "MY.");
        buf_str(ret, text);
        return macro_is_name(text);
}

static int do_assignment(struct reader *r, struct str line, struct place at)
{
        BUF_CLEANUP struct buf name = {.max = 256};
        ptrdiff_t equals = str_find(line, '=');
        struct str left;

        if (equals <= 0)
                return reader_fail(r, at, "'" STR_FMT "' is neither 'keyword = value' nor a queue statement",
                                   STR_ARG(str_head(line, 60)));
        left = str_trim(str_head(line, (size_t)equals));
        if (str_ends(left, STR("@"))) {
                left = str_trim(str_head(left, left.n - 1));
                if (!assigned_name(left, &name))
                        return reader_fail(r, at, "'" STR_FMT "' can't be the name of a setting",
                                           STR_ARG(left));
                return do_multi_line(r, buf_view(&name), str_trim(str_skip(line, (size_t)equals + 1)), at);
        }
        if (!assigned_name(left, &name) || buf_check(&name))
                return reader_fail(r, at,
                                   "'" STR_FMT
                                   "' can't be the name of a setting: letters, digits, '_' and '.' can",
                                   STR_ARG(str_head(left, 60)));
        if (line.n > CONDOR_VALUE_MAX)
                return reader_fail(r, at, "the value is longer than %u bytes", CONDOR_VALUE_MAX);
        return settings_set(r, buf_view(&name), str_trim(str_skip(line, (size_t)equals + 1)), at);
}

/* The place of an option -a, for messages. */
static struct place extra_place(struct reader *r, size_t i)
{
        BUF_CLEANUP struct buf name = {0};

        buf_printf(&name, "-a '%s'", r->options->extra[i]);
        return (struct place){lines_keep_name(r, buf_view(&name)), 0};
}

static int apply_first(struct reader *r)
{
        int rc = 0;

        for (size_t i = 0; !rc && i < r->options->first_count; i++) {
                BUF_CLEANUP struct buf name = {0};

                buf_printf(&name, "'%s'", r->options->first[i]);
                rc = do_assignment(r, str_trim(str_of(r->options->first[i])),
                                   (struct place){lines_keep_name(r, buf_view(&name)), 0});
        }
        return rc;
}

static int apply_extra(struct reader *r)
{
        struct str rest;
        int rc = 0;

        for (size_t i = 0; !rc && i < r->options->extra_count; i++) {
                struct str line = str_trim(str_of(r->options->extra[i]));

                if (!queue_is_statement(line, &rest))
                        rc = do_assignment(r, line, extra_place(r, i));
        }
        return rc;
}

static int do_queue(struct reader *r, struct str rest, struct place at)
{
        int rc = apply_extra(r);

        if (!rc)
                rc = queue_read(r, rest, at);
        if (!rc)
                rc = dataset_read(r);
        if (!rc)
                rc = attributes_make(r);
        if (!rc && r->part->rows * r->part->steps == 0)
                form_drop_part(r->form);
        r->queued = true;
        r->part = NULL;
        r->slice = false;
        r->dataset = r->dataset_inputs = false;
        return rc;
}

static int statement(struct reader *r, struct str line, struct place at)
{
        struct str rest;
        int rc = branch_statement(r, line, at);

        if (rc)
                return rc < 0 ? rc : 0;
        if (!is_active(r))
                return 0;
        if (queue_is_statement(line, &rest))
                return do_queue(r, rest, at);
        if (first_word(line, "include", &rest))
                return do_include(r, rest, at);
        if (first_word(line, "use", &rest))
                return reader_fail(
                        r, at, "`use` takes templates from HTCondor's configuration, which Drover has not");
        return do_assignment(r, line, at);
}

static int read_all(struct reader *r)
{
        struct str line;
        struct place at;
        int rc;

        while ((rc = lines_next(r, &line, &at)) > 0) {
                rc = statement(r, line, at);
                if (rc)
                        return rc;
        }
        return rc;
}

/* A queue statement of the command line stands in for one in the file. */
static int extra_queue(struct reader *r)
{
        struct str rest;

        for (size_t i = 0; i < r->options->extra_count; i++) {
                struct place at;

                if (!queue_is_statement(str_trim(str_of(r->options->extra[i])), &rest))
                        continue;
                at = extra_place(r, i);
                if (r->queued)
                        return reader_fail(r, at,
                                           "the file has a queue statement already; leave one of them out");
                return do_queue(r, rest, at);
        }
        if (!r->queued && r->options->node_names) /* as DAGMan has it */
                return do_queue(r, STR(""), (struct place){r->files[0], 0});
        if (!r->queued)
                return reader_fail(r, (struct place){r->files[0], 0},
                                   "there is no queue statement, so there is nothing to submit; end the file "
                                   "with the line 'queue'");
        return 0;
}

/* The date of a Unix time, in UTC (from days since 1970-01-01; years begin in March here, so that a leap day
 * ends one). */
static void date_of(int64_t seconds, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
        int64_t days = seconds / 86400 + 719468, era = days / 146097, day = days % 146097;
        int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
        int64_t month;

        day -= 365 * year + year / 4 - year / 100;
        month = (5 * day + 2) / 153;
        *ret_day = day - (153 * month + 2) / 5 + 1;
        *ret_month = month < 10 ? month + 3 : month - 9;
        *ret_year = year + era * 400 + (*ret_month <= 2 ? 1 : 0);
}

static void set_builtins(struct reader *r, const char *file)
{
        BUF_CLEANUP struct buf b = {0};
        const char *const fixed[][2] = {
                {"ARCH", r->options->arch},
                {"OPSYS", r->options->opsys},
                {"SUBMIT_FILE", file},
                {"NEWLINE", "\n"},
                {"IsLinux", "1"},
                {"IsWindows", "0"},
                {"MINUTE", "60"},
                {"HOUR", "3600"},
                {"JobId", "$(ClusterId).$(ProcId)"},
        };
        struct {
                const char *name;
                int64_t value;
        } numbers[] = {
                {"SUBMIT_TIME", r->world->now_s},
                {"Year", 0},
                {"Month", 0},
                {"Day", 0},
        };

        date_of(r->world->now_s > 0 ? r->world->now_s : 0, &numbers[1].value, &numbers[2].value,
                &numbers[3].value);
        for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
                settings_builtin(r, fixed[i][0], str_of(fixed[i][1]));
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                buf_reset(&b);
                buf_printf(&b, i < 2 ? "%lld" : "%02lld", (long long)numbers[i].value);
                settings_builtin(r, numbers[i].name, buf_view(&b));
        }
}

#if defined(__x86_64__)
#define HERE "X86_64"
#elif defined(__aarch64__)
#define HERE "AARCH64"
#else
#define HERE "UNKNOWN"
#endif

int condor_parse(const struct form_world *w, const char *file, struct str text,
                 const struct condor_options *o, struct form *ret, struct err *err)
{
        struct condor_options options = *o;
        struct reader r = {.world = w, .options = &options, .form = ret, .err = err, .random = w->random};
        struct buf copy = {.max = CONDOR_TEXT_MAX};
        int rc;

        if (!options.arch)
                options.arch = HERE;
        if (!options.opsys)
                options.opsys = "LINUX";
        buf_str(&copy, text);
        if (buf_check(&copy)) {
                buf_deinit(&copy);
                return err_set(err, -E2BIG, "%s: a submit file can't be larger than %u MiB", file,
                               CONDOR_TEXT_MAX >> 20);
        }
        r.symbols = symbols_new();
        r.by_name = map_new_nocase();
        r.line.max = CONDOR_TEXT_MAX;
        rc = lines_open(&r, str_of(file), &copy, (struct place){file, 0});
        set_builtins(&r, r.files[0]);
        if (!rc)
                rc = apply_first(&r);
        if (!rc)
                rc = read_all(&r);
        if (!rc)
                rc = extra_queue(&r);
        if (!rc && form_members(ret) == 0)
                rc = reader_fail(&r, (struct place){r.files[0], 0},
                                 "its queue statements make no jobs, so there is nothing to submit");
        if (!rc)
                attributes_unused(&r);
        settings_deinit(&r);
        lines_close(&r);
        symbols_free(r.symbols);
        return rc;
}
