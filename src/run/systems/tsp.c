/* Task Spooler (tsp(1)): a queue of jobs on one machine, which is started for each user with the first job.
 * The smallest batch system here, and the example of docs/adding-a-runner.md. A question that needs two
 * commands is a shell script whose words are arguments: no text of a job is ever part of the script. */
#include <errno.h>

#include "run/batch/runner.h"

#define HEAD "# tsp: slots=" /* followed by their number */

static const char *const settings[] = {"socket", NULL};
static const struct batch_variable variables[] = {
        {"TS_SOCKET", "socket"}, {"TS_SLOTS", NULL}, {"TMPDIR", NULL}, {NULL, NULL}};

static int tsp_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                         struct err *err)
{
        uint64_t slots = (spec->cpus_milli + 999) / 1000;

        (void)s;
        if (spec->gpus)
                return err_set(err, -EINVAL, "tsp gives out no GPUs");
        buf_printf(out, HEAD "%llu\n", (unsigned long long)(slots ? slots : 1));
        return 0;
}

static void tsp_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        (void)name; /* passed as an argument of the submit */
        (void)log;
        (void)count;
        (void)out;
}

static void shell(struct batch_call *c, const char *script)
{
        batch_word_add(c, "sh");
        batch_word_add(c, "-c");
        batch_word_add(c, script);
        batch_word_add(c, "drover");
}

/* Submits a job, whose id is taken from the list only, since tsp does not keep the job's output. */
static void tsp_submit(struct batch_call *c, const struct batch_sending *s)
{
        static const char script[] =
                "tsp -n -N \"$4\" -L \"$1\" sh -c 'exec \"$0\" >\"$1\" 2>&1' \"$2\" \"$3\" && "
                "tsp -l | grep -F \"[$1]\"";
        struct str head = str_of(s->head);
        ptrdiff_t at = str_search(head, STR(HEAD));
        BUF_CLEANUP struct buf log = {0}, slots = {0};

        head = str_skip(head, at < 0 ? head.n : (size_t)at + strlen(HEAD));
        for (size_t i = 0; i < head.n && head.p[i] >= '0' && head.p[i] <= '9'; i++)
                buf_char(&slots, head.p[i]);
        buf_printf(&log, "%s.0.log", s->log);
        shell(c, script);
        batch_word_add(c, s->name);
        batch_word_add(c, s->script);
        batch_word_add(c, buf_z(&log));
        batch_word_add(c, slots.n ? buf_z(&slots) : "1");
}

static bool tsp_submitted(struct str out, struct buf *ret_native)
{
        struct str number, rest = batch_last_line(out);
        uint64_t n;

        if (!str_word(&rest, &number) || str_to_u64(number, &n) != 0)
                return false;
        buf_str(ret_native, number);
        return true;
}

/* A refused job never exists, but the list shows that as well. */
static bool tsp_refused(int exit_code, struct str errors)
{
        (void)exit_code;
        (void)errors;
        return false;
}

static void tsp_status(struct batch_call *c, const char *user)
{
        (void)user; /* each user has a queue */
        batch_word_add(c, "tsp");
        batch_word_add(c, "-l");
}

static bool tsp_is_answer(struct str out)
{
        return str_starts(out, STR("ID "));
}

/* Reads "7  finished  OUTPUT  0  2.01/0.00/0.00 [LABEL]COMMAND"; the fourth and fifth field are there only
 * when the job is over. */
static void tsp_status_read(struct str out, batch_take_fn *take, void *arg)
{
        struct str row;

        while (out.n && str_cut(&out, '\n', &row)) {
                struct batch_line line = {.phase = BATCH_RUNNING}; /* also for unknown states */
                struct str state;
                uint64_t n;

                if (!str_word(&row, &line.native) || str_to_u64(line.native, &n) != 0 ||
                    !str_word(&row, &state))
                        continue;
                ptrdiff_t from = str_find(row, '['), to = str_find(row, ']');
                if (from >= 0 && to > from)
                        line.name = str_head(str_skip(row, (size_t)from + 1), (size_t)(to - from - 1));
                if (str_eqz(state, "queued") || str_eqz(state, "allocating"))
                        line.phase = BATCH_WAITING;
                else if (str_eqz(state, "finished") || str_eqz(state, "skipped"))
                        line.phase = BATCH_OVER, line.stays = true;
                take(arg, &line);
        }
}

/* Kills running jobs only: the pid of an ended one may belong to another process. The others are removed
 * from the list. */
static void tsp_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        (void)verb; /* BATCH_END is the only verb */
        shell(c, "for id; do\n"
                 "        case $(tsp -s \"$id\") in running) tsp -k \"$id\" ;; *) tsp -r \"$id\" ;; esac\n"
                 "done");
        batch_words_add(c, natives);
}

static void tsp_capacity(struct batch_call *c)
{
        shell(c, "tsp -l && grep ^MemTotal: /proc/meminfo");
}

/* Returns the number behind `word`; 0: none. */
static uint64_t number_behind(struct str text, struct str word)
{
        ptrdiff_t at = str_search(text, word);
        uint64_t n = 0;

        text = str_trim_left(str_skip(text, at < 0 ? text.n : (size_t)at + word.n));
        while (text.n && text.p[0] >= '0' && text.p[0] <= '9' && n < 1ull << 40) {
                n = n * 10 + (uint64_t)(text.p[0] - '0');
                text = str_skip(text, 1);
        }
        return n;
}

/* Reads the first line, which ends in "[run=1/4]": of four slots one is used; and the last, "MemTotal:
 * 16000000 kB". */
static void tsp_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        struct str row, used = STR("[run=");

        (void)s;
        str_cut(&out, '\n', &row);
        uint64_t busy = number_behind(row, used), slots;
        row = str_skip(row, str_search(row, used) < 0 ? row.n : (size_t)str_search(row, used));
        slots = number_behind(row, STR("/"));
        const struct batch_node node = {.cpus = slots,
                                        .idle_cpus = slots > busy ? slots - busy : 0,
                                        .memory_bytes = number_behind(out, STR("MemTotal:")) << 10,
                                        .idle_memory_bytes = number_behind(out, STR("MemTotal:")) << 10};
        batch_node_add(c, &node, slots);
}

const struct batch_system batch_tsp = {
        .name = "tsp",
        .settings = settings,
        .variables = variables,
        .array_max = 1,
        .verbs = 1u << BATCH_END,
        .resources = tsp_resources,
        .naming = tsp_naming,
        .submit = tsp_submit,
        .submitted = tsp_submitted,
        .refused = tsp_refused,
        .status = tsp_status,
        .is_answer = tsp_is_answer,
        .status_read = tsp_status_read,
        .act = tsp_act,
        .capacity = tsp_capacity,
        .capacity_read = tsp_capacity_read,
};

static int tsp_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        return batch_open(&runner_tsp, &batch_tsp, c, ret, err);
}

const struct runner_kind runner_tsp = {
        .name = "tsp", .open = tsp_open, BATCH_VERBS}; /* each user has a queue */
