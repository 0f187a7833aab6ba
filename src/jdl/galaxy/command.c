/* Writes the shell script of a job: the files that templates make, the command, the check of its result,
 * and moving the outputs. The tool runs in the folder work; files to transfer back are at the top of the
 * job's folder. TOOL_BOX in rendered texts stands for that folder, and is replaced where the job runs.
 * Names that begin with .drover_ are never transferred back. */
#include <ctype.h>
#include <errno.h>

#include "base/mem.h"
#include "jdl/galaxy/template.h"
#include "jdl/galaxy/tool.h"
#include "jdl/script/script.h"

static int command_render(struct tool *t, const struct xml *x, struct buf *out, struct err *err)
{
        struct str text = str_of(x->text);
        BUF_CLEANUP struct buf folder = {0};
        ptrdiff_t at = str_rfind(t->folder, '/');
        int rc = template_render(&t->x, x->file, x->line, text, out, err);

        buf_printf(&folder, TOOL_BOX "/" STR_FMT, STR_ARG(str_skip(t->folder, (size_t)(at + 1))));
        if (rc == 0 && str_search(buf_view(out), buf_view(&folder)) >= 0)
                t->uses_folder = true;
        for (size_t i = 0; i < t->output_count; i++) {
                buf_reset(&folder);
                buf_printf(&folder, TOOL_BOX "/" STR_FMT "_files", STR_ARG(t->outputs[i].name));
                if (rc == 0 && str_search(buf_view(out), buf_view(&folder)) >= 0)
                        t->outputs[i].uses_files = true;
        }
        return rc;
}

/* Older tools name an interpreter for a script beside the tool's file: interpreter="python". */
static int interpreter(struct tool *t, const struct xml *command, struct buf *out)
{
        BUF_CLEANUP struct buf line = {0};

        if (str_of(xml_get(command, "interpreter")).n == 0)
                return 0;
        buf_printf(&line, "%s " TOOL_BOX "/" STR_FMT "/" STR_FMT, xml_get(command, "interpreter"),
                   STR_ARG(str_skip(t->folder, (size_t)(str_rfind(t->folder, '/') + 1))),
                   STR_ARG(str_trim(buf_view(out))));
        buf_reset(out);
        buf_str(out, buf_view(&line));
        t->uses_folder = true;
        return 0;
}

static int render_command(struct tool *t, struct buf *out, struct err *err)
{
        const struct xml *command = xml_child(t->root, "command");
        int rc;

        if (!command)
                return tool_fail(t->root, err, "the tool has no <command>");
        rc = command_render(t, command, out, err);
        for (size_t i = 0; i < out->n; i++) /* a command is one line, so line ends become blanks */
                if (out->p[i] == '\n' || out->p[i] == '\r')
                        out->p[i] = ' ';
        if (rc == 0 && str_trim(buf_view(out)).n == 0)
                rc = tool_fail(command, err, "the command is empty");
        return rc == 0 ? interpreter(t, command, out) : rc;
}

static bool is_plain_path(struct str path, const char *more)
{
        for (size_t i = 0; i < path.n; i++)
                if (!isalnum((unsigned char)path.p[i]) && !strchr("_./+=,@%-", path.p[i]) &&
                    !strchr(more, path.p[i]))
                        return false;
        return path.n && path.p[0] != '/' && path.p[0] != '-' && str_search(path, STR("..")) < 0;
}

/* ---- files that templates make; they come first, because the command names them */

/* Writes one file for the tool; its text is completed where the job runs. With a filename it is also in
 * the tool's working folder under that name. */
static int config_file(struct tool *t, const struct xml *x, struct str text, unsigned n, struct buf *out,
                       struct err *err)
{
        BUF_CLEANUP struct buf variable = {0};
        struct str name = str_of(xml_get(x, "name")), filename = str_of(xml_get(x, "filename"));

        if (filename.n && (!is_plain_path(filename, "") || str_search(filename, STR("..")) >= 0 ||
                           filename.p[0] == '/' || filename.p[0] == '.'))
                return tool_fail(x, err, "a configfile with the filename '" STR_FMT "' is not supported",
                                 STR_ARG(filename));
        buf_addz(out, "printf '%s' ");
        script_quote(out, text);
        buf_printf(out, " | fill >\"$box/.drover_config.%u\"\n", n);
        if (filename.n)
                buf_printf(out, "ln -s \"$box/.drover_config.%u\" " STR_FMT "\n", n, STR_ARG(filename));
        buf_printf(&variable, TOOL_BOX "/.drover_config.%u", n);
        if (name.n)
                datum_put(&t->arena, t->x.names, name, datum_text(&t->arena, buf_view(&variable)));
        return 0;
}

/* Writes the file for <inputs>: all values as JSON. */
static int inputs_file(struct tool *t, const struct xml *x, struct buf *text, struct err *err)
{
        const char *style = xml_get(x, "data_style") ? xml_get(x, "data_style") : "skip";

        if (strcmp(style, "skip") != 0 && strcmp(style, "paths") != 0)
                return tool_fail(x, err, "<inputs> with data_style=\"%s\" is not supported", style);
        return tool_inputs_json(t, strcmp(style, "paths") == 0, text, err);
}

/* Files that are not templates come first, because the others may name them. */
static int config_files(struct tool *t, struct buf *out, struct err *err)
{
        const struct xml *all = xml_child(t->root, "configfiles");
        unsigned n = 0;
        int rc = 0;

        for (int templates = 0; templates < 2; templates++)
                for (const struct xml *x = all ? all->first : NULL; x && rc == 0; x = x->next) {
                        BUF_CLEANUP struct buf text = {.max = TEMPLATE_OUT_MAX};

                        if (!xml_is(x, "configfile") && !xml_is(x, "inputs"))
                                return tool_fail(x, err, "<%s> among the configfiles is not supported",
                                                 x->name);
                        if (xml_is(x, "configfile") != (templates == 1))
                                continue;
                        rc = templates ? command_render(t, x, &text, err) : inputs_file(t, x, &text, err);
                        if (rc == 0)
                                rc = config_file(t, x, buf_view(&text), n++, out, err);
                }
        return rc;
}

static int variables(struct tool *t, struct buf *out, struct err *err)
{
        const struct xml *all = xml_child(t->root, "environment_variables");
        int rc = 0;

        for (const struct xml *x = all ? all->first : NULL; x && rc == 0; x = x->next) {
                BUF_CLEANUP struct buf text = {.max = TEMPLATE_OUT_MAX};
                struct str name = str_of(xml_get(x, "name"));
                bool plain = name.n && !isdigit((unsigned char)name.p[0]);

                for (size_t i = 0; i < name.n; i++)
                        plain = plain && (isalnum((unsigned char)name.p[i]) || name.p[i] == '_');
                if (!plain || xml_get(x, "inject"))
                        return tool_fail(x, err, "this <environment_variable> is not supported");
                rc = command_render(t, x, &text, err);
                buf_printf(out, STR_FMT "=$(printf '%%s' ", STR_ARG(name));
                script_quote(out, str_trim(buf_view(&text)));
                buf_printf(out, " | fill)\nexport " STR_FMT "\n", STR_ARG(name));
        }
        return rc;
}

/* ---- checks of the result */

struct rules {
        bool captures; /* stdout and stderr are checked */
        struct buf text;
};

/* Adds a range: "1:", ":-1", "2:4" or "5". */
static int add_range(const struct xml *x, const char *level, struct buf *out, struct err *err)
{
        struct str first, last = str_of(xml_get(x, "range") ? xml_get(x, "range") : xml_get(x, "value")),
                          whole = last;
        bool range = str_find(last, ':') >= 0;
        int64_t n;

        str_cut(&last, ':', &first);
        if (!range)
                last = first;
        if ((first.n && str_to_i64(str_trim(first), &n) != 0) ||
            (last.n && str_to_i64(str_trim(last), &n) != 0) || (!range && !first.n))
                return tool_fail(x, err, "the exit codes '" STR_FMT "' are not understood", STR_ARG(whole));
        buf_addz(out, "if true");
        if (first.n)
                buf_printf(out, " && [ $status -ge " STR_FMT " ]", STR_ARG(str_trim(first)));
        if (last.n)
                buf_printf(out, " && [ $status -le " STR_FMT " ]", STR_ARG(str_trim(last)));
        buf_printf(out, "; then %s; fi\n", level);
        return 0;
}

static void add_regex(struct rules *r, struct str regex, const char *source, bool fold, const char *level)
{
        bool out = !source || strcmp(source, "stderr") != 0, error = !source || strcmp(source, "stdout") != 0;
        bool plain = true;

        for (size_t i = 0; i < regex.n; i++) /* only syntax that POSIX and Python read alike */
                plain = plain && !strchr("\\{}", regex.p[i]) &&
                        !(regex.p[i] == '?' && i > 0 && strchr("(*+?", regex.p[i - 1]));
        r->captures = true;
        buf_printf(&r->text, "grep -q%s -%c -e ", fold ? "i" : "", plain ? 'E' : 'P');
        script_quote(&r->text, regex);
        if (out)
                buf_addz(&r->text, " \"$box/.drover_stdout\"");
        if (error)
                buf_addz(&r->text, " \"$box/.drover_stderr\"");
        buf_printf(&r->text,
                   "\ncase $? in 0) %s ;; 1) ;; *) echo 'an error pattern of the tool cannot be looked for "
                   "here' >&2; fatal=1 ;; esac\n",
                   level);
}

/* Reads the level of a rule: fatal makes the job fail; other levels only print a message. */
static int level_of(const struct xml *x, struct buf *out, struct err *err)
{
        const char *level = xml_get(x, "level") ? xml_get(x, "level") : "fatal",
                   *text = xml_get(x, "description");

        if (strncmp(level, "fatal", 5) == 0) {
                buf_addz(out, "fatal=1");
                if (!text)
                        return 0;
                buf_addz(out, "; ");
        } else if (strcmp(level, "warning") != 0 && strcmp(level, "log") != 0 && strcmp(level, "qc") != 0) {
                return tool_fail(x, err, "the level %s is not supported", level);
        }
        BUF_CLEANUP struct buf line = {0};
        buf_printf(&line, "%s: %s", level, text ? text : "an output of the tool says so");
        buf_addz(out, "echo ");
        script_quote(out, buf_view(&line));
        buf_addz(out, " >&2");
        return 0;
}

static int stdio_rules(const struct xml *stdio, struct rules *r, struct err *err)
{
        int rc = 0;

        for (const struct xml *x = stdio->first; x && rc == 0; x = x->next) {
                BUF_CLEANUP struct buf level = {0};

                rc = level_of(x, &level, err);
                if (rc != 0)
                        return rc;
                if (xml_is(x, "exit_code"))
                        rc = add_range(x, buf_z(&level), &r->text, err);
                else if (xml_is(x, "regex") && xml_get(x, "match"))
                        add_regex(r, str_of(xml_get(x, "match")),
                                  xml_get(x, "source") && strchr(xml_get(x, "source"), ',') ? NULL
                                  : xml_get(x, "source") && strcmp(xml_get(x, "source"), "both") == 0
                                          ? NULL
                                          : xml_get(x, "source"),
                                  false, buf_z(&level));
                else
                        rc = tool_fail(x, err, "<%s> in <stdio> is not supported", x->name);
        }
        return rc;
}

/* Returns whether the profile is before 16.01. From 16.01 on a tool without rules fails by its exit code;
 * before, by any output on standard error. */
static bool is_old(const struct tool *t)
{
        double profile;

        return !xml_get(t->root, "profile") ||
               str_to_double(str_of(xml_get(t->root, "profile")), &profile) != 0 || profile < 16.01;
}

static int find_rules(struct tool *t, struct rules *r, struct err *err)
{
        const struct xml *stdio = xml_child(t->root, "stdio"), *command = xml_child(t->root, "command");
        const char *detect = xml_get(command, "detect_errors");
        static const char by_code[] = "if [ $status -ne 0 ]; then fatal=1; fi\n";

        if (detect && strcmp(detect, "exit_code") != 0 && strcmp(detect, "aggressive") != 0 &&
            strcmp(detect, "default") != 0)
                return tool_fail(command, err, "detect_errors=\"%s\" is not supported", detect);
        if (stdio && stdio->first)
                return stdio_rules(stdio, r, err);
        if (detect && strcmp(detect, "default") != 0) {
                buf_addz(&r->text, by_code);
                if (strcmp(detect, "aggressive") == 0) {
                        add_regex(r, STR("exception:"), NULL, true, "fatal=1");
                        add_regex(r, STR("error:"), NULL, true, "fatal=1");
                }
        } else if (is_old(t)) {
                r->captures = true;
                buf_addz(&r->text, "if [ -s \"$box/.drover_stderr\" ]; then fatal=1; fi\n");
        } else {
                buf_addz(&r->text, by_code);
        }
        return 0;
}

/* ---- outputs */

/* Converts a pattern for output files to a shell pattern: __name__ and similar names, or a regular
 * expression with a group (?P<designation>…) or (?P<name>…) of .+ or .*, and (?P<ext>…), between literal
 * characters. Returns false for any other regular expression. */
static bool glob_of(const char *pattern, struct buf *out)
{
        struct str rest = str_of(pattern);

        if (strcmp(pattern, "__name__") == 0 || strcmp(pattern, "__designation__") == 0) {
                buf_char(out, '*');
                return true;
        }
        if (strcmp(pattern, "__name_and_ext__") == 0 || strcmp(pattern, "__designation_and_ext__") == 0) {
                buf_addz(out, "*.*");
                return true;
        }
        while (rest.n) {
                if (str_starts(rest, STR("(?P<"))) {
                        ptrdiff_t end = str_find(rest, ')'), name = str_find(rest, '>');
                        struct str body = end > name && name > 0
                                                  ? str_make(rest.p + name + 1, (size_t)(end - name - 1))
                                                  : STR_NONE;

                        if (!str_eqz(body, ".+") && !str_eqz(body, ".*") && !str_eqz(body, "[^_]+") &&
                            !str_eqz(body, "\\w+") && !str_eqz(body, ".+?"))
                                break;
                        buf_char(out, '*');
                        rest = str_skip(rest, (size_t)end + 1);
                } else if (rest.p[0] == '\\' && rest.n > 1 && strchr(".-_", rest.p[1])) {
                        buf_char(out, rest.p[1]);
                        rest = str_skip(rest, 2);
                } else if (isalnum((unsigned char)rest.p[0]) || strchr("_-", rest.p[0])) {
                        buf_char(out, rest.p[0]);
                        rest = str_skip(rest, 1);
                } else if (rest.p[0] == '.' && !strchr("*+?", rest.n > 1 ? rest.p[1] : ' ')) {
                        buf_char(out, '?');
                        rest = str_skip(rest, 1);
                } else if (rest.p[0] == '$' && rest.n == 1) {
                        rest = str_skip(rest, 1);
                } else if (rest.p[0] == '^' && out->n == 0) {
                        rest = str_skip(rest, 1);
                } else {
                        break;
                }
        }
        return rest.n == 0;
}

static int discover(const struct tool_output *o, const struct xml *x, struct buf *out, struct err *err)
{
        const char *pattern = xml_get(x, "pattern") ? xml_get(x, "pattern") : "__designation__";
        BUF_CLEANUP struct buf glob = {0};
        struct str folder = str_of(xml_get(x, "directory") ? xml_get(x, "directory") : ".");
        bool plain = glob_of(pattern, &glob);

        if (tool_says(x, "from_provided_metadata") || tool_says(x, "recurse") ||
            tool_says(x, "match_relative_path"))
                return tool_fail(x, err,
                                 "only a pattern and a directory are supported in <discover_datasets>");
        if (!is_plain_path(folder, ""))
                return tool_fail(x, err, "the directory '" STR_FMT "' is not supported", STR_ARG(folder));
        buf_printf(out, "for found in " STR_FMT "/%s; do\n", STR_ARG(folder), plain ? buf_z(&glob) : "*");
        if (!plain) {
                BUF_CLEANUP struct buf whole = {0};

                buf_printf(&whole, "^(?:%s)", pattern);
                buf_addz(out, "        printf '%s\\n' \"${found##*/}\" | grep -qP -e ");
                script_quote(out, buf_view(&whole));
                buf_addz(out, "\n        case $? in 0) ;; 1) continue ;; *) echo 'an output pattern of the "
                              "tool cannot be "
                              "looked for here' >&2; fatal=1 ;; esac\n");
        }
        buf_printf(out,
                   "        [ -f \"$found\" ] && mv -f \"$found\" \"$box/" STR_FMT "__${found##*/}\"\ndone\n",
                   STR_ARG(o->name));
        return 0;
}

static int collect(struct tool *t, struct buf *out, struct err *err)
{
        int rc = 0;

        for (size_t i = 0; i < t->output_count && rc == 0; i++) {
                const struct tool_output *o = &t->outputs[i];
                const char *from = xml_get(o->at, "from_work_dir");

                if (from && !is_plain_path(str_of(from), "*?"))
                        return tool_fail(o->at, err, "from_work_dir='%s' is not supported", from);
                if (from)
                        buf_printf(out,
                                   "for found in %s; do\n        [ -f \"$found\" ] && mv -f \"$found\" "
                                   "\"$box/" STR_FMT "\"\ndone\n",
                                   from, STR_ARG(o->file));
                if (o->uses_files)
                        buf_printf(out,
                                   "[ -d \"$box/" STR_FMT "_files\" ] && tar -cf \"$box/" STR_FMT
                                   "_files.tar\" -C \"$box\" -- " STR_FMT "_files\n",
                                   STR_ARG(o->name), STR_ARG(o->name), STR_ARG(o->name));
                for (const struct xml *x = o->at->first; x && rc == 0; x = x->next) {
                        if (xml_is(x, "discover_datasets"))
                                rc = discover(o, x, out, err);
                        else if (!xml_is(x, "filter") && !xml_is(x, "change_format") && !xml_is(x, "actions"))
                                rc = tool_fail(x, err, "<%s> of an output is not supported", x->name);
                        else if (xml_is(x, "actions"))
                                tool_warn(t, x,
                                          "<actions> of an output set metadata, which Drover doesn't keep");
                }
        }
        buf_addz(out, "[ -f galaxy.json ] && mv -f galaxy.json \"$box/galaxy.json\"\n");
        return rc;
}

int tool_script(struct tool *t, struct buf *out, struct buf *ret_command, struct err *err)
{
        BUF_CLEANUP struct buf command = {.max = TEMPLATE_OUT_MAX};
        struct rules r = {0};
        const struct xml *x = xml_child(t->root, "command");
        bool strict = xml_get(x, "strict") && str_ieqz(str_of(xml_get(x, "strict")), "true");
        int rc;

        buf_addz(out, "box=$PWD\n"
                      "fill() { sed \"s|" TOOL_BOX "|$box|g\"; }\n"
                      "mkdir -p work && cd work || exit\n"
                      "export GALAXY_SLOTS=\"${DROVER_CPUS:-1}\"\n");
        for (size_t i = 0; i < t->output_count; i++)
                if (t->outputs[i].file.n)
                        buf_printf(out, ": >\"$box/" STR_FMT "\"\n", STR_ARG(t->outputs[i].file));
        rc = config_files(t, out, err);
        if (rc == 0)
                rc = variables(t, out, err);
        if (rc == 0)
                rc = render_command(t, &command, err);
        if (rc == 0 && ret_command)
                buf_str(ret_command, buf_view(&command));
        if (rc == 0)
                rc = find_rules(t, &r, err);
        buf_addz(out, "printf '%s\\n' ");
        script_quote(out, buf_view(&command));
        buf_printf(out,
                   " | fill >\"$box/.drover_command\"\n"
                   "shell=sh\n"
                   "command -v bash >/dev/null && shell=bash\n"
                   "$shell %s\"$box/.drover_command\"%s\n"
                   "status=$? fatal=\n",
                   strict ? "-e " : "",
                   r.captures ? " >\"$box/.drover_stdout\" 2>\"$box/.drover_stderr\"" : "");
        if (r.captures)
                buf_addz(out, "cat \"$box/.drover_stdout\"\ncat \"$box/.drover_stderr\" >&2\n");
        buf_str(out, buf_view(&r.text));
        buf_deinit(&r.text);
        if (rc == 0)
                rc = collect(t, out, err);
        buf_addz(out, "[ -z \"$fatal\" ] && exit 0\n[ $status -ne 0 ] && exit $status\nexit 1\n");
        return rc;
}
