#include "cli/client/one_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/args.h"
#include "base/quantity.h"
#include "jdl/script.h"

#define JOBS_MAX 10000000 /* of a request */

static const struct {
        const char *option, *keyword;
} plain[] = {{"cpus", "request_cpus"},
             {"memory", "request_memory"},
             {"disk", "request_disk"},
             {"gpus", "request_gpus"},
             {"input", "input"}};
#define PLAIN (sizeof(plain) / sizeof(plain[0]))

struct array {
        bool given;
        uint64_t first, count;
};

const char *one_line_option(const struct options *o)
{
        static const char *const more[] = {"time", "name", "array", "env", "output", "error", "send"};
        size_t at = 0;

        for (size_t i = 0; i < PLAIN; i++)
                if (options_text(o, plain[i].option))
                        return plain[i].option;
        for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++, at = 0)
                if (options_list(o, more[i], &at))
                        return more[i];
        return NULL;
}

/* A value has one line, and no blanks at its ends. */
static int check_value(const char *what, struct str s, struct err *err)
{
        if (s.n == 0 || str_trim(s).n != s.n || str_find(s, '\n') >= 0 || str_ends(s, STR("\\")))
                return err_set(err, -EINVAL, "%s cannot be '" STR_FMT "'", what, STR_ARG(str_head(s, 60)));
        return 0;
}

static int add_line(struct buf *out, const char *keyword, const char *option, struct str value,
                    struct err *err)
{
        int r = check_value(option, value, err);

        if (r == 0) {
                buf_printf(out, "%s = ", keyword);
                script_value(out, value);
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

static int read_array(const struct options *o, struct array *ret, struct err *err)
{
        struct str rest = str_of(options_text(o, "array")), from;
        uint64_t first = 0, last = 0;
        bool range = str_find(rest, '-') >= 0, good;

        *ret = (struct array){.count = 1};
        if (!options_text(o, "array"))
                return 0;
        if (range) {
                str_cut(&rest, '-', &from);
                good = str_to_u64(from, &first) == 0 && str_to_u64(rest, &last) == 0 && first <= last;
        } else {
                good = str_to_u64(rest, &last) == 0 && last-- > 0;
        }
        if (!good || last >= INT64_MAX || last - first >= JOBS_MAX)
                return err_set(err, -EINVAL,
                               "--array cannot be '%s': write a number of jobs, as in 100, or the first and "
                               "the last "
                               "one, as in 1-100; at most %d jobs",
                               options_text(o, "array"), JOBS_MAX);
        *ret = (struct array){.given = true, .first = first, .count = last - first + 1};
        return 0;
}

/* ---- the program */

static bool is_program(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* A name without a slash is looked for as a shell does, and is then at the same path elsewhere. */
static int find_program(const char *name, struct buf *ret, struct err *err)
{
        struct str path = str_of(getenv("PATH")), folder;

        if (strchr(name, '/')) {
                buf_addz(ret, name);
                return is_program(name)
                               ? 0
                               : err_set(err, -EINVAL, "%s is no program that can be run here", name);
        }
        while (str_cut(&path, ':', &folder)) {
                buf_reset(ret);
                buf_printf(ret, STR_FMT "/%s", STR_ARG(folder), name);
                if (folder.n && folder.p[0] == '/' && is_program(buf_z(ret)))
                        return 0;
        }
        return err_set(err, -EINVAL, "there is no program %s in the PATH; one of this folder is ./%s", name,
                       name);
}

static int write_program(const struct options *o, bool sent, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf program = {0};
        int r = find_program(o->words[0], &program, err);

        if (r == 0)
                r = add_line(out, "executable", "the program", buf_view(&program), err);
        if (r == 0 && sent && !strchr(o->words[0], '/'))
                buf_addz(out, "transfer_executable = false\n");
        return r;
}

/* ---- arguments and environment */

/* In double quotes, doubled within. `numbered`: {} becomes the job's number. */
static int write_words(struct buf *out, const char *keyword, const struct args *words, bool numbered,
                       struct err *err)
{
        BUF_CLEANUP struct buf raw = {0};
        struct str text;

        args_join_v2(&raw, words);
        text = buf_view(&raw);
        if (str_find(text, '\n') >= 0)
                return err_set(
                        err, -EINVAL,
                        "a line break within a word cannot be said here: put the command into a script");
        buf_printf(out, "%s = \"", keyword);
        while (text.n) {
                bool number = numbered && str_starts(text, STR("{}")), quote = text.p[0] == '"';
                size_t n = number ? 2 : 1;

                while (!number && !quote && n < text.n && text.p[n] != '"' &&
                       !(numbered && str_starts(str_skip(text, n), STR("{}"))))
                        n++;
                if (number || quote)
                        buf_addz(out, number ? "$INT(number)" : "\"\"");
                else
                        script_value(out, str_head(text, n));
                text = str_skip(text, n);
        }
        buf_addz(out, "\"\n");
        return 0;
}

static int write_arguments(const struct options *o, bool numbered, struct buf *out, struct err *err)
{
        ARGS_CLEANUP struct args words = {0};

        for (size_t i = 1; i < o->word_count; i++)
                args_add(&words, str_of(o->words[i]));
        return words.n ? write_words(out, "arguments", &words, numbered, err) : 0;
}

static int write_environment(const struct options *o, struct buf *out, struct err *err)
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
        return words.n ? write_words(out, "environment", &words, false, err) : 0;
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

static int write_stream(const struct options *o, const char *keyword, const char *end, struct buf *out,
                        struct err *err)
{
        if (options_text(o, keyword))
                return add_line(out, keyword, keyword, str_of(options_text(o, keyword)), err);
        buf_printf(out, "%s = ", keyword);
        add_name(o, out);
        buf_printf(out, "-$(Cluster).$(Process).%s\n", end);
        return 0;
}

static int write_sent(const struct options *o, struct buf *out, struct err *err)
{
        const char *file;
        size_t at = 0;
        bool any = false;

        while ((file = options_list(o, "send", &at))) {
                int r = check_value("--send", str_of(file), err);

                if (r < 0)
                        return r;
                if (strchr(file, ',') || access(file, R_OK) != 0)
                        return err_set(err, -EINVAL, "--send %s: %s", file,
                                       strchr(file, ',') ? "one file at a time, without a comma in its name"
                                                         : strerror(errno));
                buf_addz(out, any ? ", " : "transfer_input_files = ");
                script_value(out, str_of(file));
                any = true;
        }
        if (any)
                buf_char(out, '\n');
        buf_printf(out, "should_transfer_files = %s\n", any ? "YES" : "NO");
        return 0;
}

int one_line_write(const struct options *o, struct buf *out, struct err *err)
{
        struct array array;
        size_t at = 0;
        bool sent = options_list(o, "send", &at);
        int r = read_array(o, &array, err);

        if (r == 0)
                r = write_program(o, sent, out, err);
        if (r == 0)
                r = write_arguments(o, array.given, out, err);
        if (r == 0)
                r = write_environment(o, out, err);
        if (r == 0)
                r = check_size(o, "memory", err);
        if (r == 0)
                r = check_size(o, "disk", err);
        for (size_t i = 0; i < PLAIN && r == 0; i++)
                if (options_text(o, plain[i].option))
                        r = add_line(out, plain[i].keyword, plain[i].option,
                                     str_of(options_text(o, plain[i].option)), err);
        if (r == 0 && options_text(o, "time"))
                buf_printf(out, "allowed_execute_duration = %" PRId64 "\n", options_number(o, "time", 0));
        if (r == 0 && options_text(o, "name"))
                r = add_line(out, "batch_name", "--name", str_of(options_text(o, "name")), err);
        if (r == 0)
                r = write_stream(o, "output", "out", out, err);
        if (r == 0)
                r = write_stream(o, "error", "err", out, err);
        if (r == 0)
                r = write_sent(o, out, err);
        if (r == 0 && array.given)
                buf_printf(out, "number = $(Process) + %" PRIu64 "\n", array.first);
        if (r == 0)
                buf_printf(out, "queue %" PRIu64 "\n", array.count);
        return r;
}
