#include "cli/client/one_line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/quantity.h"
#include "base/job/args.h"
#include "base/job/macro.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "cli/client/world.h"
#include "cli/terminal/cli.h"
#include "jdl/script/script.h"

#define JOBS_MAX 10000000 /* maximum number of jobs of a request */
/* maximum bytes of files that are sent only because arguments name them */
#define NAMED_BYTES_MAX (64ull << 20)

static const struct {
        const char *option, *keyword;
} plain[] = {{"cpus", "request_cpus"}, {"memory", "request_memory"}, {"disk", "request_disk"},
             {"gpus", "request_gpus"}, {"nodes", "request_nodes"},   {"tasks-per-node", "tasks_per_node"}};
#define PLAIN (sizeof(plain) / sizeof(plain[0]))

/* Number of jobs, and the values of GNU parallel's placeholders in each. */
struct jobs {
        bool numbered;         /* --array */
        const char *each;      /* --each: a pattern, or a file of lines */
        uint64_t first, count; /* range of --array */
        bool number, nth;      /* these are used: {} of --array, {#} */
};

enum { NTH = 1, FOLDER = 4 };
static const struct {
        const char *name, *number, *item; /* NULL: it stays as it is */
} placeholders[] = {
        {"{}", "$INT(number)", "$(each)"}, {"{#}", "$INT(nth)", "$INT(nth)"}, {"{.}", NULL, "$Fpn(each)"},
        {"{/}", NULL, "$Fnx(each)"},       {"{//}", NULL, "$Fpb(each)"},      {"{/.}", NULL, "$Fn(each)"},
};
#define PLACEHOLDERS (sizeof(placeholders) / sizeof(placeholders[0]))

const char *one_line_option(const struct options *o)
{
        static const char *const more[] = {"input",  "time",  "name", "array", "each",  "env",
                                           "output", "error", "send", "chdir", "queue", "image"};
        size_t at = 0;

        for (size_t i = 0; i < PLAIN; i++)
                if (options_text(o, plain[i].option))
                        return plain[i].option;
        for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++, at = 0)
                if (options_list(o, more[i], &at))
                        return more[i];
        return NULL;
}

/* Checks that a value has one line, and no blanks at its ends. */
static int check_value(const char *what, struct str s, struct err *err)
{
        if (s.n == 0 || str_trim(s).n != s.n || str_find(s, '\n') >= 0 || str_ends(s, STR("\\")))
                return err_set(err, -EINVAL, "%s cannot be '" STR_FMT "'", what, STR_ARG(str_head(s, 60)));
        return 0;
}

/* The placeholder that s begins with, of those that mean something; PLACEHOLDERS: none. */
static size_t placeholder_at(const struct jobs *jobs, struct str s)
{
        for (size_t i = 0; i < PLACEHOLDERS; i++)
                if (str_starts(s, str_of(placeholders[i].name)) &&
                    ((jobs->each && placeholders[i].item) || (jobs->numbered && placeholders[i].number)))
                        return i;
        return PLACEHOLDERS;
}

static bool has_placeholder(const struct jobs *jobs, struct str s)
{
        for (; s.n; s = str_skip(s, 1))
                if (placeholder_at(jobs, s) < PLACEHOLDERS)
                        return true;
        return false;
}

/* Appends a value in the syntax of submit files, with the placeholders in it. `quoted`: within double
 * quotes. */
static void write_value(struct buf *out, struct jobs *jobs, struct str s, bool quoted)
{
        while (s.n) {
                size_t p = placeholder_at(jobs, s), n = 1;

                if (p < PLACEHOLDERS) {
                        buf_addz(out, jobs->each ? placeholders[p].item : placeholders[p].number);
                        jobs->nth |= p == NTH;
                        jobs->number |= p != NTH;
                        n = strlen(placeholders[p].name);
                } else if (quoted && s.p[0] == '"') {
                        buf_addz(out, "\"\"");
                } else if (s.p[0] == '\n') {
                        buf_addz(out, "$(NEWLINE)");
                } else {
                        while (n < s.n && !strchr("{\"\n", s.p[n]))
                                n++;
                        script_value(out, str_head(s, n));
                }
                s = str_skip(s, n);
        }
}

static int one_line_add_line(struct buf *out, struct jobs *jobs, const char *keyword, const char *option,
                             struct str value, struct err *err)
{
        int r = check_value(option, value, err);

        if (r == 0) {
                buf_printf(out, "%s = ", keyword);
                write_value(out, jobs, value, false);
                buf_char(out, '\n');
        }
        return r;
}

/* An expression that a submit file could have there is more likely a slip here. */
static int check_size(const struct options *o, const char *option, struct err *err)
{
        const char *text = options_text(o, option);
        uint64_t bytes;

        if (!text || (quantity_size(str_of(text), &bytes) == 0 && bytes > 0))
                return 0;
        return err_set(err, -EINVAL, "--%s cannot be '%s': write a size, as in 512M or 2G", option, text);
}

static int check_count(const struct options *o, const char *option, int64_t least, struct err *err)
{
        if (!options_text(o, option) || options_number(o, option, least) >= least)
                return 0;
        return err_set(err, -EINVAL, "--%s cannot be %s: it is %" PRId64 " at least", option,
                       options_text(o, option), least);
}

static int read_array(const char *text, struct jobs *jobs, struct err *err)
{
        struct str rest = str_of(text), from;
        uint64_t first = 0, last = 0;
        bool range = str_find(rest, '-') >= 0, good;

        if (range) {
                str_cut(&rest, '-', &from);
                good = str_to_u64(from, &first) == 0 && str_to_u64(rest, &last) == 0 && first <= last;
        } else {
                good = str_to_u64(rest, &last) == 0 && last-- > 0;
        }
        if (!good || last >= INT64_MAX || last - first >= JOBS_MAX)
                return err_set(err, -EINVAL,
                               "--array cannot be '%s': write a number of jobs, as in 100, or the first and "
                               "the last one, as in 1-100; at most %d jobs",
                               text, JOBS_MAX);
        jobs->numbered = true;
        jobs->first = first;
        jobs->count = last - first + 1;
        return 0;
}

static bool is_pattern(const char *s)
{
        return strpbrk(s, "*?[") != NULL;
}

struct looking {
        bool need_folder;
        uint64_t count;
        struct err *err;
        int result;
};

/* Refuses an item that cannot stand in a quoted word of the arguments, or lacks what a placeholder wants. */
static void look_at_item(void *arg, struct str item)
{
        struct looking *l = arg;

        item = str_trim(item);
        if (item.n == 0 || l->result < 0)
                return;
        l->count++;
        if (str_find(item, '\'') >= 0 || str_search(item, STR("$$")) >= 0 || macro_present(item))
                l->result = err_set(l->err, -EINVAL,
                                    "--each: '" STR_FMT "': a single quote and $(...) cannot stand in it",
                                    STR_ARG(str_head(item, 200)));
        else if (l->need_folder && str_find(item, '/') < 0)
                l->result = err_set(l->err, -EINVAL,
                                    "--each: '" STR_FMT
                                    "' names no folder, which {//} would be; write ./" STR_FMT,
                                    STR_ARG(str_head(item, 200)), STR_ARG(str_head(item, 200)));
}

static bool uses(const struct options *o, const char *placeholder)
{
        for (size_t i = 0; i < o->word_count; i++)
                if (strstr(o->words[i], placeholder))
                        return true;
        for (size_t i = 0; i < o->given_count; i++)
                if (o->given[i].text && strstr(o->given[i].text, placeholder))
                        return true;
        return false;
}

static int read_each(const struct options *o, struct jobs *jobs, struct err *err)
{
        const char *each = options_text(o, "each");
        struct looking l = {.need_folder = uses(o, placeholders[FOLDER].name), .err = err};
        struct buf text BUF_CLEANUP = {.max = FORM_TEXT_MAX};
        struct str rest, line;
        struct world w;
        int r;

        jobs->each = each;
        if (is_pattern(each)) {
                if (strpbrk(each, " \t,()$"))
                        return err_set(err, -EINVAL,
                                       "--each '%s': a pattern has no blanks, commas or parentheses; write "
                                       "the names into a file, one a line",
                                       each);
                r = world_init(&w, err);
                if (r == 0)
                        r = w.form.glob(w.form.arg, each, 'a', look_at_item, &l);
        } else {
                r = strcmp(each, "-") == 0 ? err_set(err, -EINVAL, "--each takes a file, not standard input")
                                           : fs_read(AT_FDCWD, each, FORM_TEXT_MAX, &text, err);
                for (rest = buf_view(&text); r == 0 && str_cut(&rest, '\n', &line);)
                        look_at_item(&l, line);
        }
        if (r == 0)
                r = l.result;
        if (r == 0 && l.count == 0)
                r = err_set(err, -EINVAL,
                            is_pattern(each) ? "--each: nothing here matches '%s'"
                                             : "--each: there is no line in %s",
                            each);
        return r < 0 ? r : 0;
}

static int read_jobs(const struct options *o, struct jobs *ret, struct err *err)
{
        *ret = (struct jobs){.count = 1};
        if (options_text(o, "array") && options_text(o, "each"))
                return err_set(err, -EINVAL, "give --array or --each, not both");
        if (options_text(o, "each"))
                return read_each(o, ret, err);
        return options_text(o, "array") ? read_array(options_text(o, "array"), ret, err) : 0;
}

/* ---- the program */

static bool is_program(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Fails with a hint at the program that may have been meant. */
static int no_program(const char *name, struct err *err)
{
        const char *blank = strchr(name, ' '), *equals = strchr(name, '=');

        if (access(name, F_OK) == 0)
                return err_set(err, -EINVAL,
                               "there is no program %s in the PATH; that of this folder is ./%s", name, name);
        if (blank)
                return err_set(
                        err, -EINVAL,
                        "there is no program \"%s\": leave out the quotes, so that its arguments are words "
                        "of their own, or write sh -c '%s'",
                        name, name);
        if (equals)
                return err_set(err, -EINVAL, "there is no program %s in the PATH; a variable is --env %s",
                               name, name);
        return err_set(err, -EINVAL,
                       "there is no program %s in the PATH; what a shell has itself is sh -c '%s ...'", name,
                       name);
}

/* A name without a slash is looked for as a shell does, and is then at the same path elsewhere. */
static int one_line_find_program(const char *name, struct buf *ret, struct err *err)
{
        struct str path = str_of(getenv("PATH")), folder;

        if (strchr(name, '/')) {
                buf_addz(ret, name);
                if (access(name, F_OK) != 0 && strchr(name, ' '))
                        return no_program(name, err);
                return is_program(name)
                               ? 0
                               : err_set(err, -EINVAL, "%s is not a program that can be run here: %s", name,
                                         access(name, F_OK) != 0 ? "there is no such file"
                                                                 : "it is no executable file (chmod +x)");
        }
        while (str_cut(&path, ':', &folder)) {
                buf_reset(ret);
                buf_printf(ret, STR_FMT "/%s", STR_ARG(folder), name);
                if (folder.n && folder.p[0] == '/' && is_program(buf_z(ret)))
                        return 0;
        }
        return no_program(name, err);
}

bool one_line_is_command(const char *word)
{
        struct buf name BUF_CLEANUP = {0}, path BUF_CLEANUP = {0};

        buf_str(&name, str_make(word, strcspn(word, " ")));
        return name.n && !strchr(buf_z(&name), '/') && one_line_find_program(buf_z(&name), &path, NULL) == 0;
}

/* NAME is a registry's; a path or a URL is what it is. */
static int write_image(const struct options *o, struct jobs *jobs, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf image = {0};
        const char *given = options_text(o, "image");
        bool bare = given && !strstr(given, "://") && given[0] != '/' && given[0] != '.' &&
                    !str_ends(str_of(given), STR(".sif"));

        if (!given)
                return 0;
        buf_printf(&image, "%s%s", bare ? "docker://" : "", given);
        return one_line_add_line(out, jobs, "container_image", "--image", buf_view(&image), err);
}

static int one_line_write_program(const struct options *o, struct jobs *jobs, struct buf *out,
                                  struct err *err)
{
        BUF_CLEANUP struct buf program = {0};
        bool ours = strchr(o->words[0], '/') && o->words[0][0] != '/';
        int r = 0;

        if (options_text(o, "image") && !ours)
                buf_addz(&program, o->words[0]); /* the image's */
        else
                r = one_line_find_program(o->words[0], &program, err);
        if (r == 0)
                r = one_line_add_line(out, jobs, "executable", "the program", buf_view(&program), err);
        if (r == 0 && !ours)
                buf_addz(out, "transfer_executable = false\n");
        return r == 0 ? write_image(o, jobs, out, err) : r;
}

/* ---- arguments and environment */

/* A quoted operator of a shell among the words was hardly meant for the program. */
static void look_for_operators(const struct options *o)
{
        static const char *const operators[] = {">", ">>", "<", "|", "||", "&&", ";", "&", "2>", "2>&1"};

        for (size_t i = 1; i < o->word_count; i++)
                for (size_t k = 0; k < sizeof(operators) / sizeof(operators[0]); k++)
                        if (strcmp(o->words[i], operators[k]) == 0) {
                                cli_note("'%s' goes to %s as it is; for a shell, write -- sh -c '%s ... %s "
                                         "...'",
                                         operators[k], o->words[0], o->words[0], operators[k]);
                                return;
                        }
}

/* A word as in the raw form of base/job/args.h: in single quotes where a placeholder may bring blanks. */
static void write_word(struct buf *out, struct jobs *jobs, struct str word)
{
        ARGS_CLEANUP struct args one = {0};
        BUF_CLEANUP struct buf raw = {0};

        args_add(&one, word);
        args_join_v2(&raw, &one);
        if (raw.p[0] != '\'' && has_placeholder(jobs, word)) {
                buf_char(out, '\'');
                write_value(out, jobs, word, true);
                buf_char(out, '\'');
        } else {
                write_value(out, jobs, buf_view(&raw), true);
        }
}

static void write_words(struct buf *out, struct jobs *jobs, const char *keyword, const struct args *words)
{
        buf_printf(out, "%s = \"", keyword);
        for (size_t i = 0; i < words->n; i++) {
                if (i)
                        buf_char(out, ' ');
                write_word(out, jobs, str_of(words->v[i]));
        }
        buf_addz(out, "\"\n");
}

/* GNU parallel puts what each job is given last where the command has no place for it. */
static void write_arguments(const struct options *o, struct jobs *jobs, struct buf *out)
{
        ARGS_CLEANUP struct args words = {0};
        bool placed = !jobs->each || options_text(o, "input");

        for (size_t i = 1; i < o->word_count; i++) {
                args_add(&words, str_of(o->words[i]));
                placed |= has_placeholder(jobs, str_of(o->words[i]));
        }
        if (!placed)
                args_add(&words, STR("{}"));
        if (words.n)
                write_words(out, jobs, "arguments", &words);
        look_for_operators(o);
}

static int write_environment(const struct options *o, struct jobs *jobs, struct buf *out, struct err *err)
{
        ARGS_CLEANUP struct args words = {0};
        const char *given;
        size_t at = 0;

        while ((given = options_list(o, "env", &at))) {
                BUF_CLEANUP struct buf word = {0};
                const char *here = strchr(given, '=') ? "" : getenv(given);

                if (!*given || *given == '=')
                        return err_set(err, -EINVAL, "--env is NAME or NAME=VALUE, not '%s'", given);
                if (!here)
                        return err_set(err, -EINVAL, "--env: there is no variable %s here", given);
                buf_addz(&word, given);
                if (!strchr(given, '='))
                        buf_printf(&word, "=%s", here);
                args_add(&words, buf_view(&word));
        }
        if (words.n)
                write_words(out, jobs, "environment", &words);
        return 0;
}

/* ---- files */

static void add_name(const struct options *o, struct buf *out)
{
        const char *given = options_text(o, "name"), *slash = strrchr(o->words[0], '/');

        for (const char *p = given ? given : slash ? slash + 1 : o->words[0]; *p; p++)
                buf_char(out, strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *p)
                                      ? *p
                                      : '_');
}

static int write_stream(const struct options *o, struct jobs *jobs, const char *keyword, const char *end,
                        const char *before, struct buf *out, struct err *err)
{
        if (options_text(o, keyword))
                return one_line_add_line(out, jobs, keyword, keyword, str_of(options_text(o, keyword)), err);
        buf_printf(out, "%s = ", keyword);
        if (before) {
                script_value(out, str_of(before));
        } else {
                add_name(o, out);
                buf_addz(out, "-$(Cluster).");
        }
        buf_printf(out, "$(Process).%s\n", end);
        return 0;
}

static int write_streams(const struct options *o, struct jobs *jobs, const struct one_line_streams *streams,
                         struct buf *out, struct err *err)
{
        const char *input = streams && streams->input ? streams->input : options_text(o, "input"),
                   *before = streams ? streams->output : NULL;
        int r = 0;

        if (input && strcmp(input, "-") == 0)
                return err_set(err, -EINVAL, "--input - goes with drover run: here, name a file");
        if (input)
                r = one_line_add_line(out, jobs, "input", "--input", str_of(input), err);
        if (r == 0)
                r = write_stream(o, jobs, "output", "out", before, out, err);
        return r == 0 ? write_stream(o, jobs, "error", "err", before, out, err) : r;
}

/* With --send the jobs run in folders of their own everywhere. */
static int write_sent(const struct options *o, struct jobs *jobs, struct buf *out, struct err *err)
{
        const char *file;
        size_t at = 0;
        bool any = false;

        while ((file = options_list(o, "send", &at))) {
                int r = check_value("--send", str_of(file), err);

                if (r < 0)
                        return r;
                if (!has_placeholder(jobs, str_of(file)) && (strchr(file, ',') || access(file, R_OK) != 0))
                        return err_set(err, -EINVAL, "--send %s: %s", file,
                                       strchr(file, ',') ? "one file at a time, without a comma in its name"
                                                         : strerror(errno));
                buf_addz(out, any ? ", " : "transfer_input_files = ");
                write_value(out, jobs, str_of(file), false);
                any = true;
        }
        if (any)
                buf_addz(out, "\nshould_transfer_files = YES\n");
        return any;
}

/* Without it, where this folder is seen; elsewhere with the files that the arguments name, if they would be
 * found there by those names. */
static void write_named(const struct options *o, struct jobs *jobs, struct buf *out)
{
        uint64_t bytes = 0;
        bool any = false;

        for (size_t i = 1; i < o->word_count; i++) {
                const char *name = o->words[i], *bare = strncmp(name, "./", 2) == 0 ? name + 2 : name;
                struct stat st;

                if (!*bare || strchr(bare, '/') || strchr(bare, ',') ||
                    check_value("", str_of(bare), NULL) != 0 || has_placeholder(jobs, str_of(bare)) ||
                    stat(bare, &st) != 0 || !S_ISREG(st.st_mode) || access(bare, R_OK) != 0 ||
                    (bytes += (uint64_t)st.st_size) > NAMED_BYTES_MAX)
                        continue;
                buf_addz(out, any ? ", " : "transfer_input_files = ");
                script_value(out, str_of(bare));
                any = true;
        }
        buf_addz(out, any ? "\nshould_transfer_files = IN_PLACE\n" : "should_transfer_files = IN_PLACE\n");
}

static int write_files(const struct options *o, struct jobs *jobs, const struct one_line_streams *streams,
                       struct buf *out, struct err *err)
{
        int r = 0;

        if (options_text(o, "chdir"))
                r = one_line_add_line(out, jobs, "initialdir", "--chdir", str_of(options_text(o, "chdir")),
                                      err);
        if (r == 0)
                r = write_streams(o, jobs, streams, out, err);
        if (r == 0)
                r = write_sent(o, jobs, out, err);
        if (r == 0)
                write_named(o, jobs, out);
        return r < 0 ? r : 0;
}

/* ---- the whole */

static int write_resources(const struct options *o, struct jobs *jobs, struct buf *out, struct err *err)
{
        const char *queue = options_text(o, "queue");
        int r = check_size(o, "memory", err);

        if (r == 0)
                r = check_size(o, "disk", err);
        if (r == 0)
                r = check_count(o, "cpus", 1, err);
        if (r == 0)
                r = check_count(o, "gpus", 0, err);
        if (r == 0)
                r = check_count(o, "nodes", 1, err);
        if (r == 0)
                r = check_count(o, "tasks-per-node", 1, err);
        for (size_t i = 0; i < PLAIN && r == 0; i++)
                if (options_text(o, plain[i].option))
                        r = one_line_add_line(out, jobs, plain[i].keyword, plain[i].option,
                                              str_of(options_text(o, plain[i].option)), err);
        if (r == 0 && queue && (!*queue || strpbrk(queue, "\"\\$\n")))
                r = err_set(err, -EINVAL, "--queue cannot be '%s': `drover agents` lists the queues", queue);
        if (r == 0 && queue)
                buf_printf(out, "requirements = TARGET.QueueName == \"%s\"\n", queue);
        if (r == 0 && options_text(o, "time"))
                buf_printf(out, "allowed_execute_duration = %" PRId64 "\n", options_number(o, "time", 0));
        if (r == 0 && options_text(o, "name"))
                r = one_line_add_line(out, jobs, "batch_name", "--name", str_of(options_text(o, "name")),
                                      err);
        return r;
}

static void write_queue(const struct jobs *jobs, struct buf *out)
{
        if (jobs->nth)
                buf_addz(out, "nth = $(Process) + 1\n");
        if (jobs->numbered && jobs->number)
                buf_printf(out, "number = $(Process) + %" PRIu64 "\n", jobs->first);
        if (!jobs->each) {
                buf_printf(out, "queue %" PRIu64 "\n", jobs->count);
                return;
        }
        buf_addz(out, is_pattern(jobs->each) ? "queue each matching " : "queue each from ");
        script_value(out, str_of(jobs->each));
        buf_char(out, '\n');
}

int one_line_write(const struct options *o, const struct one_line_streams *streams, struct buf *out,
                   struct err *err)
{
        struct jobs jobs;
        int r = read_jobs(o, &jobs, err);

        if (r == 0)
                r = one_line_write_program(o, &jobs, out, err);
        if (r == 0)
                write_arguments(o, &jobs, out);
        if (r == 0)
                r = write_environment(o, &jobs, out, err);
        if (r == 0)
                r = write_resources(o, &jobs, out, err);
        if (r == 0)
                r = write_files(o, &jobs, streams, out, err);
        if (r == 0)
                write_queue(&jobs, out);
        return r;
}
