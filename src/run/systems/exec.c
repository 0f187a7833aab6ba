/* A batch system behind a program of the site's, which is started for each question as `PROGRAM OP` with one
 * line of JSON on its standard input, answers in lines of JSON, and ends. docs/man/drover-runner-exec.7.md
 * is the contract. JSON is read with the YAML reader of the settings, a line at a time: every line that a
 * JSON library writes is YAML. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/doc.h"
#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/program.h"
#include "base/u64.h"
#include "run/batch/runner.h"
#include "run/call/answer.h"

#define HEAD      "# drover: " /* followed by a JSON object, to the end of the line */
#define LINE_MAX  65536
#define LINES_MAX 100000 /* most lines of an answer */
#define BYTES_MAX (16u << 20)

static const char *const settings[] = {"program", "verbs", "words", "index_variable", "array_max", NULL};

static const struct {
        const char *name, *op;
} verbs[] = {
        [BATCH_STOP] = {"suspend", "suspend"}, [BATCH_CONTINUE] = {"resume", "resume"},
        [BATCH_HOLD] = {"hold", "hold"},       [BATCH_RELEASE] = {"release", "release"},
        [BATCH_NUDGE] = {"nudge", "nudge"},    [BATCH_END] = {"kill", "kill"},
};

static int exec_check(const struct batch_settings *s, struct err *err)
{
        const char *program = batch_setting(s, "program"), *array_max = batch_setting(s, "array_max");
        const char *index = batch_setting(s, "index_variable");
        struct str list = str_of(batch_setting(s, "verbs")), one;
        uint64_t n;
        BUF_CLEANUP struct buf path = {0};
        int r = program ? program_shipped("runners", program, &path, err)
                        : err_set(err, -EINVAL, "exec needs the setting `program`: its absolute path");

        if (r == 0 && *buf_z(&path) != '/')
                r = err_set(err, -EINVAL, "the setting `program` of exec is an absolute path");
        if (r < 0)
                return -EINVAL;
        if (array_max && (str_to_u64(str_of(array_max), &n) != 0 || n < 1 || n > 100000 || (n > 1 && !index)))
                return err_set(
                        err, -EINVAL,
                        "array_max is a number, 1 to 100000, and needs index_variable: the name of the "
                        "variable that tells a member of an array its number, from 1");
        if (index && (!batch_plain(index) || strcspn(index, ".,:@+=&|()*[]/-") != strlen(index)))
                return err_set(err, -EINVAL, "index_variable is the name of a variable");
        while (str_word(&list, &one)) {
                size_t i = 0;

                while (i < sizeof(verbs) / sizeof(*verbs) && !str_eqz(one, verbs[i].name))
                        i++;
                if (i == sizeof(verbs) / sizeof(*verbs))
                        return err_set(err, -EINVAL,
                                       "verbs are of hold, release, suspend, resume and nudge; '" STR_FMT
                                       "' is not",
                                       STR_ARG(one));
        }
        return 0;
}

static unsigned exec_verbs(const struct batch_settings *s)
{
        struct str list = str_of(batch_setting(s, "verbs")), one;
        unsigned bits = 1u << BATCH_END;

        while (str_word(&list, &one))
                for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
                        if (str_eqz(one, verbs[i].name))
                                bits |= 1u << i;
        return bits;
}

/* ---- questions */

/* Begins the line of a question; the caller completes it. */
static struct json open_question(struct batch_call *c, const char *op)
{
        struct json j = {.out = &c->input};
        const char *program = batch_setting(c->settings, "program");
        BUF_CLEANUP struct buf path = {0};

        program_shipped("runners", program ? program : "", &path, NULL);
        batch_word_add(c, buf_z(&path));
        batch_word_add(c, op);
        json_open(&j, '{');
        json_kint(&j, "version", 1);
        json_kstrz(&j, "op", op);
        json_key(&j, "settings");
        json_open(&j, '{');
        for (size_t i = 0; i < c->settings->n; i++)
                json_kstrz(&j, c->settings->v[i].name, c->settings->v[i].value);
        json_close(&j, '}');
        return j;
}

static void asked(struct batch_call *c, struct json *j)
{
        json_close(j, '}');
        buf_char(&c->input, '\n');
}

static bool is_wanted(const struct batch_settings *s, const char *name)
{
        struct str list = str_of(batch_setting(s, "words")), one;

        if (str_istarts(str_of(name), STR("Batch")))
                return true;
        while (str_word(&list, &one))
                if (str_ieqz(one, name))
                        return true;
        return false;
}

static int exec_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                          struct err *err)
{
        struct json j = {.out = out};
        uint64_t cpus = (spec->cpus_milli + 999) / 1000;

        buf_addz(out, HEAD);
        json_open(&j, '{');
        json_kint(&j, "cpus", (int64_t)(cpus ? cpus : 1));
        json_kint(&j, "memory", (int64_t)spec->memory_bytes);
        json_kint(&j, "gpus", (int64_t)spec->gpus);
        json_kint(&j, "walltime", (int64_t)((spec->walltime_ms + 999) / 1000));
        json_key(&j, "words");
        json_open(&j, '{');
        for (size_t i = 0; i < spec->word_count; i++) {
                const struct run_word *w = &spec->words[i];

                if (!is_wanted(s, w->name))
                        continue;
                if (!batch_plain(w->value))
                        return err_set(err, -EINVAL, "'%.100s' cannot be a word (%.60s) for a batch system",
                                       w->value, w->name);
                MEM_CLEANUP char *name = mem_dupz(w->name);
                for (char *p = name; *p; p++)
                        *p = (char)tolower((unsigned char)*p);
                json_kstrz(&j, name, w->value);
        }
        json_close(&j, '}');
        json_close(&j, '}');
        buf_char(out, '\n');
        return 0;
}

static void exec_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        buf_printf(out, "# %s, %u; output: %s\n", name, count, log);
}

static void ask_about(struct batch_call *c, const char *op, const struct batch_sending *s)
{
        struct json j = open_question(c, op);
        struct str head = str_of(s->head), line;

        json_kstrz(&j, "name", s->name);
        json_kstrz(&j, "script", s->script);
        json_kint(&j, "count", s->count);
        json_key(&j, "resources");
        if (str_starts(head, STR(HEAD)) && str_cut(&head, '\n', &line))
                json_raw(&j, str_skip(line, strlen(HEAD)));
        else
                json_null(&j);
        asked(c, &j);
}

static void exec_submit(struct batch_call *c, const struct batch_sending *s)
{
        ask_about(c, "submit", s);
}

static void exec_when(struct batch_call *c, const struct batch_sending *s)
{
        ask_about(c, "quote", s);
}

static void exec_status(struct batch_call *c, const char *user)
{
        struct json j = open_question(c, "status");

        json_kstrz(&j, "user", user);
        asked(c, &j);
}

static void ask_natives(struct batch_call *c, const char *op, struct str natives, char sep)
{
        struct json j = open_question(c, op);
        struct str one;

        json_key(&j, "natives");
        json_open(&j, '[');
        while (natives.n && str_cut(&natives, sep, &one))
                if (one.n)
                        json_str(&j, one);
        json_close(&j, ']');
        asked(c, &j);
}

static void exec_past(struct batch_call *c, const char *user, const char *natives)
{
        (void)user;
        ask_natives(c, "past", str_of(natives), ',');
}

static void exec_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        ask_natives(c, verbs[verb].op, natives, ' ');
}

static void exec_capacity(struct batch_call *c)
{
        struct json j = open_question(c, "capacity");

        asked(c, &j);
}

/* ---- answers */

typedef void answer_fn(void *arg, const struct doc *answer);

/* Calls fn for each line that is an object. The number of lines is limited so that reading them takes at
 * most seconds. */
static void each_answer(struct str out, answer_fn *fn, void *arg)
{
        struct str line;

        out = str_head(out, u64_min(out.n, BYTES_MAX));
        for (unsigned n = 0; n < LINES_MAX && out.n && str_cut(&out, '\n', &line); n++) {
                struct doc *d = NULL;

                answer_make_utf8(line); /* texts may have arbitrary bytes */
                if (line.n <= LINE_MAX && str_starts(str_trim(line), STR("{")) &&
                    doc_parse("answer", line, &d, NULL) == 0 && d && d->kind == DOC_MAP)
                        fn(arg, d);
                doc_free(d);
        }
}

static struct str exec_text_of(const struct doc *answer, const char *key)
{
        const struct doc *d = doc_get(answer, key);

        return d && d->kind == DOC_WORD ? d->text : STR("");
}

static uint64_t exec_number_of(const struct doc *answer, const char *key)
{
        uint64_t n = 0;

        if (str_to_u64(exec_text_of(answer, key), &n) != 0 || n > 1ull << 50)
                return 0;
        return n;
}

static void take_native(void *arg, const struct doc *answer)
{
        struct str native = exec_text_of(answer, "native");

        if (batch_is_native(native) && str_find(native, '[') < 0) {
                buf_reset(arg);
                buf_str(arg, native);
        }
}

static bool exec_submitted(struct str out, struct buf *ret_native)
{
        each_answer(out, take_native, ret_native);
        return ret_native->n > 0;
}

static bool exec_refused(int exit_code, struct str errors)
{
        (void)errors;
        return exit_code == 1;
}

static void exec_native_of(const char *native, unsigned index, struct buf *out)
{
        buf_printf(out, "%s[%u]", native, index + 1);
}

struct taker {
        batch_take_fn *take;
        void *arg;
};

static void take_state(void *arg, const struct doc *answer)
{
        static const char *const phases[] = {
                [BATCH_WAITING] = "waiting",     [BATCH_RUNNING] = "running", [BATCH_OVER] = "ended",
                [BATCH_CANCELLED] = "cancelled", [BATCH_TIMEOUT] = "timeout", [BATCH_MEMORY] = "memory",
                [BATCH_LOST] = "lost",           [BATCH_UNFIT] = "unfit",
        };
        const struct taker *t = arg;
        struct batch_line line = {.native = exec_text_of(answer, "native"),
                                  .name = exec_text_of(answer, "name"),
                                  .user = exec_text_of(answer, "user"),
                                  .reason = exec_text_of(answer, "reason")};
        struct str state = exec_text_of(answer, "state");

        line.phase = BATCH_RUNNING; /* for an unknown state, so that the job is not taken to be gone */
        for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++)
                if (str_eqz(state, phases[i]))
                        line.phase = (enum batch_phase)i;
        if (state.n && batch_is_native(line.native))
                t->take(t->arg, &line);
}

/* Returns whether all lines can be read and the last one is complete, or there is no output because there
 * are no jobs. */
static bool exec_is_answer(struct str out)
{
        struct str last = batch_last_line(out);
        size_t lines = 0;

        for (size_t i = 0; i < out.n; i++)
                lines += out.p[i] == '\n';
        return !last.n || (out.n <= BYTES_MAX && lines < LINES_MAX && str_starts(last, STR("{")) &&
                           str_ends(last, STR("}")));
}

static void exec_status_read(struct str out, batch_take_fn *take, void *arg)
{
        each_answer(out, take_state, &(struct taker){take, arg});
}

static void take_capacity(void *arg, const struct doc *answer)
{
        struct run_capacity *c = arg;

        c->cpus_milli = exec_number_of(answer, "cpus") * 1000;
        c->idle_cpus_milli = u64_min(exec_number_of(answer, "idle_cpus") * 1000, c->cpus_milli);
        c->memory_bytes = exec_number_of(answer, "memory");
        c->idle_memory_bytes = exec_number_of(answer, "idle_memory");
        c->nodes = exec_number_of(answer, "nodes");
        c->node_cpus_milli = exec_number_of(answer, "node_cpus") * 1000;
        c->node_memory_bytes = exec_number_of(answer, "node_memory");
        c->gpus = exec_number_of(answer, "gpus");
        c->idle_gpus = exec_number_of(answer, "idle_gpus");
        c->node_gpus = exec_number_of(answer, "node_gpus");
}

static void exec_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        (void)s;
        each_answer(out, take_capacity, c);
}

static void take_begin(void *arg, const struct doc *answer)
{
        uint64_t seconds = exec_number_of(answer, "begins");

        if (seconds > 0 && seconds < 1ull << 40)
                *(uint64_t *)arg = seconds * 1000;
}

static bool exec_when_said(struct str out, struct str errors, uint64_t *ret_ms)
{
        uint64_t ms = 0;

        (void)errors;
        each_answer(out, take_begin, &ms);
        if (ms)
                *ret_ms = ms;
        return ms > 0;
}

const struct batch_system batch_exec = {
        .name = "exec",
        .settings = settings,
        .set_free = "",
        .check = exec_check,
        .verbs_of = exec_verbs,
        .index_first = 1,
        .array_max = 1,
        .resources = exec_resources,
        .naming = exec_naming,
        .submit = exec_submit,
        .submitted = exec_submitted,
        .refused = exec_refused,
        .native_of = exec_native_of,
        .status = exec_status,
        .is_answer = exec_is_answer,
        .status_read = exec_status_read,
        .past = exec_past,
        .past_read = exec_status_read,
        .act = exec_act,
        .capacity = exec_capacity,
        .capacity_read = exec_capacity_read,
        .when = exec_when,
        .when_said = exec_when_said,
};

static int exec_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        return batch_open(&runner_exec, &batch_exec, c, ret, err);
}

const struct runner_kind runner_exec = {.name = "exec", .for_users = true, .open = exec_open, BATCH_VERBS};
