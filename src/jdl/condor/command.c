/* Program of the jobs: executable or shell, arguments, environment. Arguments and environment have an old
 * and a new syntax; the new one is in double quotes. The syntax of a late value may differ from row to row;
 * a column is then made that holds the arguments in the new raw form. */
#include <errno.h>

#include "base/job/args.h"
#include "jdl/condor/reader.h"

static int folder_before(const struct reader *r, struct str path, struct buf *out, struct err *err)
{
        const char *cwd = r->world->cwd ? r->world->cwd : "";

        (void)err;
        if (!str_starts(path, STR("/")))
                buf_printf(out, "%s%s", cwd, str_ends(str_of(cwd), STR("/")) ? "" : "/");
        return 0;
}

/* Finds out whether the path of some rows, or of all, is relative. */
static int find_relative(struct reader *r, const struct entry *e, struct str path, bool *ret_some,
                         bool *ret_all)
{
        struct sample s;

        *ret_some = *ret_all = !str_starts(path, STR("/"));
        if (!str_starts(path, STR("$")))
                return 0;
        *ret_some = false;
        sample_start(&s, r, false);
        while (sample_next(&s)) {
                BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
                struct err err = {{0}};
                bool relative;

                if (sample_expand(&s, path, &value, NULL, &err))
                        return entry_fail(r, e, "%s", err.text);
                relative = !str_starts(buf_view(&value), STR("/"));
                *ret_some |= relative;
                *ret_all &= relative;
        }
        return 0;
}

int path_from_cwd(struct reader *r, const struct entry *e, struct str path, const char *column,
                  struct buf *out)
{
        bool some, all, done = true;
        int rc = find_relative(r, e, path, &some, &all);

        if (rc == 0 && some && !all) {
                rc = derive_column(r, e, column, true, folder_before, &done);
                buf_printf(out, "$(%s)", column);
        }
        if (rc == 0 && !done)
                rc = entry_fail(r, e, "the path must be absolute for all jobs, or relative for all");
        if (all) {
                folder_before(r, path, out, NULL);
                while (str_starts(path, STR("./")))
                        path = str_skip(path, 2);
        }
        buf_str(out, path);
        return rc;
}

static int executable(struct reader *r, bool *ret_shell)
{
        ENTRY_CLEANUP struct entry e = {0}, shell = {0}, transfer = {0}, application = {0};
        BUF_CLEANUP struct buf path = {.max = CONDOR_VALUE_MAX};
        bool transferred = true;
        int rc = entry_get(r, "executable", &e), rs = entry_get(r, "shell", &shell);
        int rt = entry_get(r, "transfer_executable", &transfer);

        *ret_shell = rs > 0;
        if (rt > 0)
                rt = entry_boolean(r, &transfer, &transferred);
        if (rc < 0 || rs < 0 || rt < 0)
                return rc < 0 ? rc : rs < 0 ? rs : rt;
        if (rs > 0) {
                if (rc > 0)
                        return entry_fail(r, &shell, "give executable or shell, not both");
                attribute_default_string(r, "Cmd", "/bin/sh");
                attribute_default(r, "TransferExecutable", "false");
                return 0;
        }
        if (rc == 0 && entry_get(r, "job_application", &application) > 0)
                return 0; /* the server's settings know the program */
        if (rc == 0 && (r->universe == UNIVERSE_CONTAINER || r->universe == UNIVERSE_DOCKER)) {
                attribute_default(r, "Cmd", "\"\""); /* what the image starts by itself */
                attribute_default(r, "TransferExecutable", "false");
                return 0;
        }
        if (rc == 0)
                return reader_fail(r, (struct place){r->files[0], r->part->line},
                                   "there is no 'executable = …' before this queue statement, so there is "
                                   "nothing to run");
        if (rt == 0 && (r->universe == UNIVERSE_CONTAINER || r->universe == UNIVERSE_DOCKER) &&
            str_starts(entry_unquoted(&e), STR("/")))
                transferred = false; /* the image's own */
        if (transferred)
                rc = path_from_cwd(r, &e, entry_unquoted(&e), "DroverProgramFolder", &path);
        else
                buf_str(&path, entry_unquoted(&e));
        if (rc < 0)
                return rc;
        if (!transferred)
                attribute_default(r, "TransferExecutable", "false");
        return attribute_string(r, "Cmd", &e, buf_view(&path));
}

/* The old syntax of a submit file: \" is a quote, a bare quote is a mistake. */
static int unescape_v1(struct str text, struct buf *out, struct err *err)
{
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '\\' && i + 1 < text.n && text.p[i + 1] == '"')
                        i++;
                else if (text.p[i] == '"')
                        return err_set(err, -EINVAL,
                                       "there is a double quote in the middle; write \\\" for one, or put "
                                       "all of it in double quotes: \"…\"");
                buf_char(out, text.p[i]);
        }
        return 0;
}

static bool quoted(struct str text)
{
        return str_starts(text, STR("\""));
}

/* Either syntax to the new raw form. */
static int convert_arguments(const struct reader *r, struct str text, struct buf *out, struct err *err)
{
        ARGS_CLEANUP struct args args = {0};
        BUF_CLEANUP struct buf raw = {.max = CONDOR_VALUE_MAX};
        int rc = quoted(text) ? args_unquote_v2(text, &raw, err) : unescape_v1(text, &raw, err);

        (void)r;
        if (!rc)
                rc = quoted(text) ? args_split_v2(&args, buf_view(&raw), err)
                                  : args_split_v1(&args, buf_view(&raw), err);
        if (!rc)
                args_join_v2(out, &args);
        return rc;
}

static int convert_environment(const struct reader *r, struct str text, struct buf *out, struct err *err)
{
        ARGS_CLEANUP struct args args = {0};
        BUF_CLEANUP struct buf raw = {.max = CONDOR_VALUE_MAX};
        int rc;

        (void)r;
        if (quoted(text)) {
                rc = args_unquote_v2(text, &raw, err);
                if (!rc)
                        rc = args_env_v2(&args, buf_view(&raw), err);
        } else {
                rc = args_env_v1(&args, text, err);
        }
        if (!rc)
                args_join_v2(out, &args);
        return rc;
}

static bool items_hold(struct reader *r, char c)
{
        return r->part->items.n && memchr(r->part->items.p, c, r->part->items.n);
}

/* $Fq(…) and its like, which give a text in double quotes. */
static bool begins_with_quoting(struct str text)
{
        struct str rest = text, name;

        return str_starts(text, STR("$F")) && str_cut(&rest, '(', &name) && str_find(name, 'q') > 0;
}

/* Returns whether the syntax of a late value is known only row by row. */
static bool syntax_is_late(struct reader *r, const struct entry *e)
{
        struct str text = buf_view(&e->text);

        return e->late && str_starts(text, STR("$")) && (items_hold(r, '"') || begins_with_quoting(text));
}

/* Tries the raw text out with the first job. */
static int try_split(struct reader *r, const struct entry *e, struct str raw,
                     int (*split)(struct args *a, struct str text, struct err *err))
{
        ARGS_CLEANUP struct args args = {0};
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
        struct err err = {{0}};
        struct sample s;
        int rc = 0;

        sample_start(&s, r, false);
        if (e->late) {
                if (!sample_next(&s))
                        return 0;
                rc = sample_expand(&s, raw, &value, NULL, &err);
                raw = buf_view(&value);
        }
        if (!rc)
                rc = split(&args, raw, &err);
        return rc ? entry_fail(r, e, "%s", err.text) : 0;
}

static int arguments(struct reader *r, const struct entry *e)
{
        BUF_CLEANUP struct buf raw = {.max = CONDOR_VALUE_MAX};
        struct str text = buf_view(&e->text);
        struct err err = {{0}};
        bool done = false, v2 = quoted(text);
        int rc;

        if (syntax_is_late(r, e)) {
                rc = derive_column(r, e, "DroverArguments", true, convert_arguments, &done);
                if (rc)
                        return rc;
                if (done)
                        return attribute_string(r, "Arguments", e, STR("$(DroverArguments)"));
        }
        rc = v2 ? args_unquote_v2(text, &raw, &err) : unescape_v1(text, &raw, &err);
        if (rc)
                return entry_fail(r, e, "%s", err.text);
        rc = try_split(r, e, buf_view(&raw), v2 ? args_split_v2 : args_split_v1);
        return rc ? rc : attribute_string(r, v2 ? "Arguments" : "Args", e, buf_view(&raw));
}

static int shell_arguments(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        ARGS_CLEANUP struct args args = {0};
        BUF_CLEANUP struct buf raw = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get(r, "shell", &e);

        if (rc < 0)
                return rc;
        if (e.late && items_hold(r, '\''))
                return entry_fail(r, &e,
                                  "a single quote in the list of items would end the command; pass the items "
                                  "by `environment`");
        args_add(&args, STR("-c"));
        args_add(&args, buf_view(&e.text));
        args_join_v2(&raw, &args);
        return attribute_string(r, "Arguments", &e, buf_view(&raw));
}

/* getenv's patterns: names with at most two '*', without regard to case. */
static bool name_matches(struct str pattern, struct str name)
{
        ptrdiff_t star = str_find(pattern, '*');
        struct str head = str_head(pattern, (size_t)star), tail;

        if (star < 0)
                return str_ieq(pattern, name);
        if (!str_istarts(name, head))
                return false;
        tail = str_skip(pattern, (size_t)star + 1);
        if (tail.n == 0)
                return true;
        for (size_t i = head.n; i <= name.n; i++)
                if (name_matches(tail, str_skip(name, i)))
                        return true;
        return false;
}

static bool wanted(struct str list, struct str name)
{
        struct str word;
        bool any = false;

        for (;;) {
                size_t n = 0;

                while (list.n && strchr(" \t,;", list.p[0]))
                        list = str_skip(list, 1);
                while (n < list.n && !strchr(" \t,;", list.p[n]))
                        n++;
                if (n == 0)
                        return any;
                word = str_head(list, n);
                list = str_skip(list, n);
                if (str_starts(word, STR("!")) && name_matches(str_skip(word, 1), name))
                        return false;
                any |= !str_starts(word, STR("!")) && name_matches(word, name);
        }
}

/* Adds what getenv asks for. */
static int copy_environment(struct reader *r, struct args *ret)
{
        ENTRY_CLEANUP struct entry e = {0};
        struct str list;
        int rc = entry_get(r, "getenv", &e);

        if (rc <= 0)
                return rc;
        list = entry_unquoted(&e);
        if (e.late)
                return entry_fail(r, &e, "it can't differ from job to job");
        if (str_ieqz(list, "false") || str_ieqz(list, "no") || str_ieqz(list, "0"))
                return 0;
        if (str_ieqz(list, "true") || str_ieqz(list, "yes") || str_ieqz(list, "1"))
                list = STR("*");
        if (!r->world->environment)
                return entry_fail(r, &e,
                                  "the environment can't be copied here; name the variables: environment = "
                                  "\"A=$ENV(A)\"");
        for (const char *const *v = r->world->environment; *v; v++) {
                struct str all = str_of(*v), name = str_head(all, (size_t)str_find(all, '='));

                if (str_find(all, '=') > 0 && wanted(list, name) && str_find(all, '\n') < 0)
                        args_add(ret, all);
        }
        return 0;
}

/* The text of an old-syntax environment with late macros, in the new raw form: each assignment in quotes. */
static void quote_assignments(struct str text, struct buf *out)
{
        struct str rest = text, one;

        while (str_cut(&rest, ';', &one)) {
                one = str_trim_left(one);
                if (one.n == 0)
                        continue;
                buf_addz(out, out->n ? " '" : "'");
                for (size_t i = 0; i < one.n; i++) {
                        if (one.p[i] == '\'')
                                buf_char(out, '\'');
                        buf_char(out, one.p[i]);
                }
                buf_char(out, '\'');
        }
}

/* The user's environment as new raw form, which may hold late macros. */
static int own_environment(struct reader *r, struct entry *e, struct buf *out)
{
        struct str text = buf_view(&e->text);
        struct err err = {{0}};
        bool done = false;
        int rc = 0;

        if (syntax_is_late(r, e)) {
                rc = derive_column(r, e, "DroverEnvironment", true, convert_environment, &done);
                if (done)
                        buf_addz(out, "$(DroverEnvironment)");
                if (rc || done)
                        return rc;
        }
        if (!e->late) {
                rc = convert_environment(r, text, out, &err);
        } else if (quoted(text)) {
                rc = args_unquote_v2(text, out, &err);
        } else if (items_hold(r, '\'')) {
                rc = err_set(&err, -EINVAL,
                             "there is a single quote in the list of items; write the environment in the new "
                             "syntax: \"A=… B=…\"");
        } else {
                quote_assignments(text, out);
        }
        if (rc)
                return entry_fail(r, e, "%s", err.text);
        return try_split(r, e, buf_view(out), args_env_v2);
}

/* Leaves out of `copied` what `own` sets, as it is for the first job. */
static void drop_overridden(struct reader *r, struct args *copied, struct str own)
{
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
        ARGS_CLEANUP struct args set = {0}, kept = {0};
        struct sample s;

        sample_start(&s, r, false);
        if (!sample_next(&s) || sample_expand(&s, own, &value, NULL, NULL) ||
            args_env_v2(&set, buf_view(&value), NULL))
                return;
        for (size_t i = 0; i < copied->n; i++) {
                struct str c = str_of(copied->v[i]), name = str_head(c, (size_t)str_find(c, '=') + 1);
                bool there = false;

                for (size_t k = 0; k < set.n; k++)
                        there |= str_starts(str_of(set.v[k]), name);
                if (!there)
                        args_add(&kept, c);
        }
        args_deinit(copied);
        *copied = kept;
        kept = (struct args){0};
}

/* What was copied is not for expanding, but will be: by the place, and with what is late. */
static void keep_dollars(struct buf *text, bool late)
{
        struct buf kept = {.max = text->max};

        for (size_t i = 0; i < text->n; i++) {
                if (str_starts(str_skip(buf_view(text), i), STR("$$("))) {
                        buf_addz(&kept, "$$(DOLLARDOLLAR)");
                        i++;
                } else if (late && text->p[i] == '$')
                        buf_addz(&kept, "$(DOLLAR)");
                else
                        buf_char(&kept, text->p[i]);
        }
        buf_deinit(text);
        *text = kept;
}

static int command_environment(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        ARGS_CLEANUP struct args copied = {0};
        BUF_CLEANUP struct buf own = {.max = CONDOR_VALUE_MAX}, all = {.max = 4 * CONDOR_VALUE_MAX};
        int rc = copy_environment(r, &copied), re;

        if (rc < 0)
                return rc;
        re = entry_get(r, "environment", &e);
        if (re > 0)
                re = own_environment(r, &e, &own);
        if (re < 0)
                return re;
        if (own.n)
                drop_overridden(r, &copied, buf_view(&own));
        if (copied.n == 0 && own.n == 0)
                return 0;
        args_join_v2(&all, &copied);
        keep_dollars(&all, e.late);
        if (copied.n && own.n)
                buf_char(&all, ' ');
        buf_str(&all, buf_view(&own));
        return attribute_string(r, "Environment", &e, buf_view(&all));
}

int command_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        bool shell = false;
        int rc = executable(r, &shell);

        if (rc)
                return rc;
        rc = entry_get(r, "arguments", &e);
        if (rc > 0 && shell)
                rc = entry_fail(r, &e, "shell takes no arguments; write them into the command");
        else if (rc > 0)
                rc = arguments(r, &e);
        if (rc >= 0 && shell)
                rc = shell_arguments(r);
        return rc < 0 ? rc : command_environment(r);
}
