/* Slurm, by its daemon slurmrestd: the OpenAPI plugins v0.0.38 and dbv0.0.38, which Slurm 22.05 to 23.11
 * have (slurmrestd(8); the daemon's own /openapi/v3).
 *
 * The daemon does not look at #SBATCH lines; the script has them all the same, for those who read it or
 * submit it by hand, and what is asked for is made of them. Other things that the API's description does not
 * say, seen with 22.05.8: `requeue: false` is passed over, `no_requeue` is what says no; one request may be
 * about several members of an array, as JOB_[1,3] with all signs escaped; a hold is answered with success and
 * an error besides; a job that has to wait is answered with an error besides its number; the list of waiting
 * members of an array is cut at 64 letters, with "..."; and what the controller has against a token comes as
 * "Unspecified error" or "Zero Bytes". */
#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "base/url.h"
#include "run/slurm.h"

#define API         "/slurm/v0.0.38"
#define DATABASE    "/slurmdb/v0.0.38"
#define MEMBERS_MAX 200    /* of an array, in one path */
#define EXPAND_MAX  100000 /* members of ours in one line: no array of ours is so large */

/* ---- what is kept of answers */

enum {
        JOB_ID,
        JOB_ARRAY,
        JOB_INDEX,
        JOB_WAITING,
        JOB_NAME,
        JOB_STATE,
        JOB_REASON,
        JOB_USER,
        PAST_STATE,
        PAST_REASON,
        PAST_ARRAY,
        PAST_INDEX,
        PAST_USER
};
static const char *const of_jobs[] = {"job_id",        "array_job_id",
                                      "array_task_id", "array_task_string",
                                      "name",          "job_state",
                                      "state_reason",  "user_name",
                                      "state.current", "state.reason",
                                      "array.job_id",  "array.task_id",
                                      "user",          NULL};
enum {
        NODE_PARTITIONS,
        NODE_STATE,
        NODE_FLAGS,
        NODE_CPUS,
        NODE_CPUS_TAKEN,
        NODE_MEMORY,
        NODE_MEMORY_TAKEN,
        NODE_GRES,
        NODE_GRES_TAKEN
};
static const char *const of_nodes[] = {"partitions", "state",       "state_flags",  "cpus",
                                       "alloc_cpus", "real_memory", "alloc_memory", "gres",
                                       "gres_used",  NULL};
static const char *const of_partitions[] = {"name", "state", "flags", "max_time_limit", NULL};
static const char *const of_errors[] = {"error", "description", "error_code", "error_number", "errno", NULL};
static const char *const of_answer[] = {"job_id", NULL};
static const struct json_skim_rows rows[] = {
        {"jobs", of_jobs},     {"nodes", of_nodes}, {"partitions", of_partitions},
        {"errors", of_errors}, {NULL, of_answer},   {NULL, NULL}};

/* A field of a line: nothing in it parts fields or lines. */
static void add_field(struct buf *out, struct str text)
{
        for (size_t i = 0; i < text.n; i++)
                buf_char(out, text.p[i] == '|' || (unsigned char)text.p[i] < ' ' ? '?' : text.p[i]);
}

static void job_line(struct buf *out, struct str native, struct str index, const struct str *job,
                     struct str reason)
{
        struct str state = job[JOB_STATE].n ? job[JOB_STATE] : job[PAST_STATE];
        add_field(out, native);
        buf_char(out, '|');
        add_field(out, index);
        buf_char(out, '|');
        add_field(out, state);
        buf_char(out, '|');
        add_field(out, job[JOB_NAME]);
        buf_char(out, '|');
        add_field(out, reason);
        buf_char(out, '|');
        add_field(out, job[JOB_USER].n ? job[JOB_USER] : job[PAST_USER]);
        buf_char(out, '\n');
}

/* "3", "0-7", "0-8:2": of the members that wait. */
static void waiting_lines(struct buf *out, struct str range, const struct str *job, struct str reason)
{
        struct str first = STR(""), last = STR("");
        uint64_t from, to, step = 1;
        str_cut(&range, '-', &first);
        str_cut(&range, ':', &last);
        if (str_to_u64(first, &from) != 0)
                return;
        if (!last.n || str_to_u64(last, &to) != 0)
                to = from;
        if (range.n && (str_to_u64(range, &step) != 0 || !step))
                step = 1;
        for (uint64_t i = from, n = 0; i <= to && n < EXPAND_MAX; i += step, n++) {
                char index[24];
                int length = snprintf(index, sizeof(index), "%llu", (unsigned long long)i);
                job_line(out, job[JOB_ARRAY], str_make(index, (size_t)length), job, reason);
        }
}

/* Somebody else's jobs are all in the list, too. */
static void take_job(const char *whose, const struct str *job, struct buf *out)
{
        BUF_CLEANUP struct buf reason = {0};
        struct str user = job[JOB_USER].n ? job[JOB_USER] : job[PAST_USER], waiting = job[JOB_WAITING], one;
        struct str array = job[JOB_ARRAY].n ? job[JOB_ARRAY] : job[PAST_ARRAY];
        struct str index = job[JOB_INDEX].n ? job[JOB_INDEX] : job[PAST_INDEX];
        if (!str_starts(job[JOB_NAME], STR(BATCH_NAMES)))
                return;
        buf_str(&reason, job[JOB_REASON].n ? job[JOB_REASON] : job[PAST_REASON]);
        if (whose && user.n && !str_eqz(user, whose)) {
                buf_reset(&reason);
                buf_printf(&reason, "slurmrestd runs jobs as " STR_FMT ", not as %s", STR_ARG(user), whose);
        }
        if (!array.n || str_eqz(array, "0") || (!index.n && !waiting.n)) {
                job_line(out, job[JOB_ID], STR("N/A"), job, buf_view(&reason));
                return;
        }
        if (index.n) {
                job_line(out, array, index, job, buf_view(&reason));
                return;
        }
        if (str_ends(waiting, STR("...")))
                job_line(out, array, STR(SLURM_OTHERS), job, buf_view(&reason));
        str_cut(&waiting, '%', &one); /* "0-9%2": how many at a time */
        for (waiting = one; waiting.n && str_cut(&waiting, ',', &one);)
                waiting_lines(out, one, job, buf_view(&reason));
}

/* "=main* up 5:00": a partition, for the nodes that follow. Its limit is in minutes; -1: none. */
static void take_partition(const struct str *p, struct buf *out)
{
        bool is_default = str_search(p[2], STR("default")) >= 0;
        uint64_t minutes;
        buf_printf(out, "\n=" STR_FMT "%s %s ", STR_ARG(p[0]), is_default ? "*" : "",
                   str_ieqz(p[1], "UP") ? "up" : "down");
        if (str_to_u64(p[3], &minutes) == 0)
                buf_printf(out, "%llu:00\n", (unsigned long long)minutes);
        else
                buf_addz(out, "infinite\n");
}

/* What `out` says of the partition: "main*", and "up 5:00". */
static bool find_partition(const struct buf *out, struct str name, struct str *ret_name,
                           struct str *ret_state)
{
        struct str rest = buf_view(out), line;
        while (rest.n && str_cut(&rest, '\n', &line)) {
                struct str word;
                if (!str_starts(line, STR("=")))
                        continue;
                line = str_skip(line, 1);
                if (!str_cut(&line, ' ', &word) || !str_starts(word, name) ||
                    (word.n != name.n && !str_eqz(str_skip(word, name.n), "*")))
                        continue;
                *ret_name = word;
                *ret_state = line;
                return true;
        }
        return false;
}

/* As sinfo has it: what a node that is down, or gives no more jobs, has free is neither taken nor idle. */
static void take_node(const struct str *n, struct buf *out)
{
        static const char *const lost[] = {"down", "error", "unknown", "future", NULL};
        struct str partitions = n[NODE_PARTITIONS], one;
        uint64_t cpus, taken;
        bool other = batch_contains(n[NODE_STATE], lost) || str_search(n[NODE_FLAGS], STR("DRAIN")) >= 0;
        if (str_to_u64(n[NODE_CPUS], &cpus) != 0 || str_to_u64(n[NODE_CPUS_TAKEN], &taken) != 0 ||
            taken > cpus)
                return;
        uint64_t idle = cpus - taken;
        while (partitions.n && str_cut(&partitions, ',', &one)) {
                struct str name, state;
                BUF_CLEANUP struct buf line = {0};
                if (!find_partition(out, one, &name, &state))
                        continue;
                buf_printf(&line, STR_FMT " %llu/%llu/%llu/%llu ", STR_ARG(name), (unsigned long long)taken,
                           (unsigned long long)(other ? 0 : idle), (unsigned long long)(other ? idle : 0),
                           (unsigned long long)cpus);
                buf_printf(&line, STR_FMT " " STR_FMT " " STR_FMT " ", STR_ARG(n[NODE_MEMORY]),
                           STR_ARG(n[NODE_MEMORY_TAKEN]), STR_ARG(state));
                buf_printf(&line, STR_FMT " " STR_FMT "\n",
                           STR_ARG(n[NODE_GRES].n ? n[NODE_GRES] : STR("(null)")),
                           STR_ARG(n[NODE_GRES_TAKEN].n ? n[NODE_GRES_TAKEN] : STR("(null)")));
                buf_str(out, buf_view(&line));
        }
}

static void take_error(const struct str *e, struct buf *errors)
{
        struct str code = e[2].n ? e[2] : e[3].n ? e[3] : e[4];
        buf_printf(errors, "%s" STR_FMT, errors->n ? "; " : "", STR_ARG(e[0].n ? e[0] : e[1]));
        if (code.n)
                buf_printf(errors, " (" STR_FMT ")", STR_ARG(code));
}

static void take(const void *arg, const struct json_skim_rows *of, const struct str *values, struct buf *out,
                 struct buf *errors)
{
        if (of->fields == of_jobs)
                take_job(arg, values, out);
        else if (of->fields == of_nodes)
                take_node(values, out);
        else if (of->fields == of_partitions)
                take_partition(values, out);
        else if (of->fields == of_errors)
                take_error(values, errors);
        else if (values[0].n)
                buf_printf(out, "submitted " STR_FMT "\n", STR_ARG(values[0]));
}

/* Whether one of the numbers in it is of a range. */
static bool has_code(struct str errors, uint64_t from, uint64_t to)
{
        struct str inside;
        uint64_t code;
        while (errors.n && str_cut(&errors, '(', &inside)) {
                str_cut(&errors, ')', &inside);
                if (str_to_u64(inside, &code) == 0 && code >= from && code <= to)
                        return true;
        }
        return false;
}

/* Where Slurm's numbers begin (slurm_errno.h) that the controller itself gives, and the database; and the
 * daemon's own that says that a request cannot be. Others are of the way between them. */
enum { CONTROLLER = 2000, DATABASE_AWAY = 7000, CANNOT_PARSE = 9001 };

/* The database is away, which it says with a good status. */
static bool fault(struct str errors)
{
        return has_code(errors, DATABASE_AWAY, DATABASE_AWAY + 999);
}

/* What the controller has against a token is not passed on. */
static bool doubt(struct str errors)
{
        static const char *const words[] = {"Unspecified error", "Zero Bytes",
                                            "Unable to connect to database", NULL};
        return batch_contains(errors, words);
}

static const struct request_service service = {
        .name = "slurmrestd",
        .user_field = "X-SLURM-USER-NAME",
        .token_field = "X-SLURM-USER-TOKEN",
        .rows = rows,
        .take = take,
        .fault = fault,
        .doubt = doubt,
};

/* ---- what is asked for */

static int rest_check(const struct batch_settings *s, struct err *err)
{
        int r = request_check(batch_setting(s, "rest"), err);
        if (r < 0)
                return err_prefix(err, r, "rest");
        if (str_starts(str_of(batch_setting(s, "rest")), STR("http:")) && !batch_setting(s, "token_file"))
                return err_set(err, -EINVAL,
                               "rest over http needs a token_file, with what `scontrol token` prints");
        return slurm_check(s, err);
}

/* Options of sbatch, as slurm_resources and slurm_naming write them, and what the API calls them. */
static const struct {
        const char *option, *key;
        enum { TEXT, NUMBER, RANGE, YES } form;
} options[] = {
        {"job-name", "name", TEXT},
        {"array", "array", TEXT},
        {"output", "standard_output", TEXT},
        {"nodes", "nodes", RANGE},
        {"ntasks", "tasks", NUMBER},
        {"chdir", "current_working_directory", TEXT},
        {"input", "standard_input", TEXT},
        {"open-mode", "open_mode", TEXT},
        {"requeue", "requeue", YES},
        {"no-requeue", "no_requeue", YES},
        {"cpus-per-task", "cpus_per_task", NUMBER},
        {"mem", "memory_per_node", TEXT},
        {"time", "time_limit", NUMBER},
        {"gres", "gres", TEXT},
        {"partition", "partition", TEXT},
        {"account", "account", TEXT},
        {"qos", "qos", TEXT},
        {"constraint", "constraints", TEXT},
        {"licenses", "licenses", TEXT},
        {"reservation", "reservation", TEXT},
        {"comment", "comment", TEXT},
};

static void add_option(struct json *j, struct str option, struct str value)
{
        uint64_t n = 0;
        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
                if (!str_eqz(option, options[i].option))
                        continue;
                json_key(j, options[i].key);
                str_to_u64(value, &n);
                if (options[i].form == TEXT) {
                        json_str(j, value);
                } else if (options[i].form == NUMBER) {
                        json_uint(j, n);
                } else if (options[i].form == YES) {
                        json_bool(j, true);
                } else {
                        json_open(j, '[');
                        json_uint(j, n);
                        json_uint(j, n);
                        json_close(j, ']');
                }
        }
}

static void rest_submit(struct batch_call *c, const struct batch_sending *s)
{
        struct json j = {.out = &c->input};
        struct str rest = s->text, line, option, first;
        c->method = "POST";
        c->once = true;
        batch_path_add(c, API "/job/submit");
        json_open(&j, '{');
        json_kstr(&j, "script", s->text);
        json_key(&j, "job");
        json_open(&j, '{');
        str_cut(&rest, '\n', &first);
        while (rest.n && str_cut(&rest, '\n', &line) && str_starts(line, STR("#"))) {
                if (!str_starts(line, STR("#SBATCH --")))
                        continue;
                line = str_skip(line, strlen("#SBATCH --"));
                str_cut(&line, '=', &option);
                add_option(&j, option, line);
        }
        json_key(&j, "environment");
        json_open(&j, '{');
        for (size_t i = 0; s->env && i < s->env->n; i++) {
                struct str value = str_of(s->env->v[i]), name;
                str_cut(&value, '=', &name);
                json_keys(&j, name);
                json_str(&j, value);
        }
        json_close(&j, '}');
        json_close(&j, '}');
        json_close(&j, '}');
}

static bool rest_submitted(struct str out, struct buf *ret_native)
{
        static const struct str before = {"submitted ", 10};
        struct str last = batch_last_line(out), number = str_skip(last, before.n);
        uint64_t n;
        if (!str_starts(last, before) || str_to_u64(number, &n) != 0 || n == 0)
                return false;
        buf_str(ret_native, number);
        return true;
}

static bool rest_refused(int exit_code, struct str errors)
{
        (void)exit_code;
        return !slurm_unsure(errors) && (has_code(errors, CONTROLLER, CONTROLLER + 999) ||
                                         has_code(errors, CANNOT_PARSE, CANNOT_PARSE));
}

static void rest_status(struct batch_call *c, const char *user)
{
        (void)user;
        c->method = "GET";
        batch_path_add(c, API "/jobs");
}

/* The database knows an array as a whole. */
static void rest_past(struct batch_call *c, const char *natives)
{
        struct str rest = str_of(natives), one, last = STR("");
        c->method = "GET";
        while (rest.n && str_cut(&rest, ',', &one)) {
                one = batch_whole(&batch_slurm_rest, one);
                if (!str_eq(one, last))
                        batch_path_add(c, DATABASE "/job/" STR_FMT, STR_ARG(one));
                last = one;
        }
}

/* Without the plugin of the database there is nothing to wait for. */
static bool rest_past_away(struct str errors)
{
        static const char *const never[] = {"HTTP status 404", NULL};
        return !batch_contains(errors, never);
}

/* One request for the members of an array that stand together. */
static void act_paths(struct batch_call *c, struct str natives, const char *query)
{
        struct str one, array = STR("");
        BUF_CLEANUP struct buf path = {0};
        unsigned n = 0;
        bool more = true;
        while (more) {
                more = str_word(&natives, &one);
                struct str whole = more ? batch_whole(&batch_slurm_rest, one) : STR("");
                bool member = whole.n < one.n;
                if (path.n && (!more || !member || !str_eq(whole, array) || n == MEMBERS_MAX)) {
                        buf_addz(&path, "%5D");
                        batch_path_add(c, "%s%s", buf_z(&path), query);
                        buf_reset(&path);
                }
                if (!more)
                        break;
                if (!member) {
                        batch_path_add(c, API "/job/" STR_FMT "%s", STR_ARG(one), query);
                        continue;
                }
                if (!path.n) {
                        buf_printf(&path, API "/job/" STR_FMT "_%%5B", STR_ARG(whole));
                        array = whole;
                        n = 0;
                }
                buf_printf(&path, "%s" STR_FMT, n++ ? "%2C" : "", STR_ARG(str_skip(one, whole.n + 1)));
        }
}

static void rest_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        static const char *const queries[] = {
                [BATCH_END] = "",  [BATCH_STOP] = "?signal=TSTP", [BATCH_CONTINUE] = "?signal=CONT",
                [BATCH_HOLD] = "", [BATCH_RELEASE] = "",          [BATCH_NUDGE] = "?signal=URG"};
        bool hold = verb == BATCH_HOLD;
        c->method = hold || verb == BATCH_RELEASE ? "POST" : "DELETE";
        if (hold || verb == BATCH_RELEASE)
                buf_printf(&c->input, "{\"hold\":%s}", hold ? "true" : "false");
        act_paths(c, natives, queries[verb]);
}

static void rest_capacity(struct batch_call *c)
{
        c->method = "GET";
        batch_path_add(c, API "/partitions");
        batch_path_add(c, API "/nodes");
}

const struct batch_system batch_slurm_rest = {
        .name = "slurm",
        .settings = slurm_settings,
        .service = &service,
        .index_variable = "SLURM_ARRAY_TASK_ID",
        .array_max = 1000,
        .check = rest_check,
        .resources = slurm_resources,
        .naming = slurm_naming,
        .submit = rest_submit,
        .submitted = rest_submitted,
        .refused = rest_refused,
        .full = slurm_full,
        .limited_by = slurm_limited_by,
        .refused_array = slurm_refused_array,
        .native_of = slurm_native_of,
        .status = rest_status,
        .status_read = slurm_status_read,
        .past = rest_past,
        .past_read = slurm_status_read,
        .past_away = rest_past_away,
        .memory_words = SLURM_MEMORY_WORDS,
        .act = rest_act,
        .capacity = rest_capacity,
        .capacity_read = slurm_capacity_read,
        .verbs = (1u << BATCH_VERBS_COUNT) - 1,
};
