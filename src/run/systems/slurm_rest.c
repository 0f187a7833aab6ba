/* Slurm, by its daemon slurmrestd (slurmrestd(8); the daemon's own /openapi/v3).
 *
 * Two generations of its API are supported: v0.0.38 of Slurm 22.05 to 23.11, and what the data parsers
 * v0.0.41 to v0.0.45 make of 24.05 and later. Answers are not described twice: the fields of both are looked
 * for in jobs, nodes and partitions. Requests differ, and are made in the form of the version that the
 * daemon was found to have. v0.0.39 and v0.0.40 lie between the two; daemons that have them have v0.0.38 or
 * v0.0.41, too.
 *
 * The daemon ignores #SBATCH lines; the script has them all the same, for people who read it or submit it by
 * hand, and the request is made from them. The API's description omits the following.
 *
 * Seen with 22.05.8: `requeue: false` is ignored, `no_requeue` has the effect; one request may be about
 * several members of an array, as JOB_[1,3] with all signs escaped; a hold is answered with success and an
 * error besides; a job that has to wait is answered with an error besides its number; the list of waiting
 * members of an array is cut at 64 characters, with "..."; and the controller's rejection of a token is
 * reported as "Unspecified error" or "Zero Bytes".
 *
 * Seen with 24.11.5 and 26.05.5: an unknown key is ignored, with a warning; an option with an invalid value
 * is answered with an error besides the number, and the job is accepted; members of arrays are ended in one
 * request with a list, but cannot be held, only the array as a whole; up to v0.0.44 no partition is marked
 * as the default one; and the controller's rejection of a token is reported as "Protocol authentication
 * error".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/format/json.h"
#include "base/format/url.h"
#include "run/systems/slurm.h"

#define API         "/slurm/" REQUEST_VERSION
#define DATABASE    "/slurmdb/" REQUEST_VERSION
#define MEMBERS_MAX 200 /* most members of an array in one path */

static bool is_old(const struct batch_call *c)
{
        return c->version && !strcmp(c->version, SLURM_REST_OLD);
}

static int rest_check(const struct batch_settings *s, struct err *err)
{
        int r = request_check(batch_setting(s, "rest"), false, err);

        if (r < 0)
                return err_prefix(err, r, "rest");
        if (str_starts(str_of(batch_setting(s, "rest")), STR("http:")) && !batch_setting(s, "token_file"))
                return err_set(err, -EINVAL,
                               "rest over http needs a token_file, with what `scontrol token` prints");
        return slurm_check(s, err);
}

/* Options of sbatch, as slurm_resources and slurm_naming write them, and their keys in the API. */
static const struct {
        const char *option, *key;
        enum { TEXT, NUMBER, RANGE, YES, NO, WORDS, SET, GRES } form;
        enum { BOTH, OLD, NEW } in;
} options[] = {
        {"job-name", "name", TEXT, BOTH},
        {"array", "array", TEXT, BOTH},
        {"output", "standard_output", TEXT, BOTH},
        {"nodes", "nodes", RANGE, OLD},
        {"nodes", "nodes", TEXT, NEW},
        {"ntasks", "tasks", NUMBER, BOTH},
        {"chdir", "current_working_directory", TEXT, BOTH},
        {"input", "standard_input", TEXT, BOTH},
        {"open-mode", "open_mode", TEXT, OLD},
        {"open-mode", "open_mode", WORDS, NEW},
        {"requeue", "requeue", YES, BOTH},
        {"no-requeue", "no_requeue", YES, OLD},
        {"no-requeue", "requeue", NO, NEW},
        {"cpus-per-task", "cpus_per_task", NUMBER, BOTH},
        {"mem", "memory_per_node", TEXT, OLD},
        {"mem", "memory_per_node", SET, NEW},
        {"time", "time_limit", NUMBER, OLD},
        {"time", "time_limit", SET, NEW},
        {"gres", "gres", TEXT, OLD},
        {"gres", "tres_per_node", GRES, NEW},
        {"partition", "partition", TEXT, BOTH},
        {"account", "account", TEXT, BOTH},
        {"qos", "qos", TEXT, BOTH},
        {"constraint", "constraints", TEXT, BOTH},
        {"licenses", "licenses", TEXT, BOTH},
        {"reservation", "reservation", TEXT, BOTH},
        {"comment", "comment", TEXT, BOTH},
};

/* A number with an M is memory in MiB (slurm_resources). */
static void add_value(struct json *j, unsigned form, struct str value)
{
        BUF_CLEANUP struct buf gres = {0};
        uint64_t n = 0;

        str_to_u64(str_ends(value, STR("M")) ? str_head(value, value.n - 1) : value, &n);
        switch (form) {
        case NUMBER: json_uint(j, n); break;
        case YES:
        case NO: json_bool(j, form == YES); break;
        case RANGE:
                json_open(j, '[');
                json_uint(j, n);
                json_uint(j, n);
                json_close(j, ']');
                break;
        case WORDS:
                json_open(j, '[');
                json_str(j, value);
                json_close(j, ']');
                break;
        case SET:
                json_open(j, '{');
                json_kbool(j, "set", true);
                json_key(j, "number");
                json_uint(j, n);
                json_close(j, '}');
                break;
        case GRES:
                buf_printf(&gres, "gres/" STR_FMT, STR_ARG(value));
                json_str(j, buf_view(&gres));
                break;
        default: json_str(j, value);
        }
}

static void add_option(struct json *j, bool as_old, struct str option, struct str value)
{
        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
                if (!str_eqz(option, options[i].option) || options[i].in == (as_old ? NEW : OLD))
                        continue;
                json_key(j, options[i].key);
                add_value(j, options[i].form, value);
        }
}

/* Adds the environment: an object in the old form, else a list of "NAME=VALUE". */
static void add_environment(struct json *j, bool as_old, const struct args *env)
{
        json_key(j, "environment");
        json_open(j, as_old ? '{' : '[');
        for (size_t i = 0; env && i < env->n; i++) {
                struct str value = str_of(env->v[i]), name;

                if (as_old) {
                        str_cut(&value, '=', &name);
                        json_keys(j, name);
                }
                json_str(j, value);
        }
        json_close(j, as_old ? '}' : ']');
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
                add_option(&j, is_old(c), option, line);
        }
        add_environment(&j, is_old(c), s->env);
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

static void rest_status(struct batch_call *c, const char *user)
{
        (void)user;
        c->method = "GET";
        batch_path_add(c, API "/jobs");
}

/* Asks about ended jobs; the database has an array only as a whole. */
static void rest_past(struct batch_call *c, const char *user, const char *natives)
{
        (void)user;
        struct str rest = str_of(natives), one, last = STR("");
        c->method = "GET";
        while (rest.n && str_cut(&rest, ',', &one)) {
                one = batch_whole(&batch_slurm_rest, one);
                if (!str_eq(one, last))
                        batch_path_add(c, DATABASE "/job/" STR_FMT, STR_ARG(one));
                last = one;
        }
}

/* Returns whether the failure is temporary: without the database's plugin there is nothing to wait for. */
static bool rest_past_away(struct str errors)
{
        static const char *const never[] = {"HTTP status 404", NULL};

        return !batch_contains(errors, never);
}

/* Adds one request for members of an array that follow each other in the list. */
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

static void old_act(struct batch_call *c, enum batch_verb verb, struct str natives)
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

/* Holds or releases each job; members of an array cannot be held. */
static void hold_each(struct batch_call *c, bool on, struct str natives)
{
        struct str one;

        c->method = "POST";
        buf_printf(&c->input, "{\"hold\":%s}", on ? "true" : "false");
        while (str_word(&natives, &one))
                if (batch_whole(&batch_slurm_rest, one).n == one.n)
                        batch_path_add(c, API "/job/" STR_FMT, STR_ARG(one));
}

static void rest_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        static const struct {
                const char *signal, *flag;
        } of[] = {[BATCH_STOP] = {"TSTP", "FULL_JOB"},
                  [BATCH_CONTINUE] = {"CONT", "FULL_JOB"},
                  [BATCH_NUDGE] = {"URG", "BATCH_JOB"},
                  [BATCH_END] = {NULL, NULL}};
        struct json j = {.out = &c->input};
        struct str one;

        if (is_old(c)) {
                old_act(c, verb, natives);
                return;
        }
        if (verb == BATCH_HOLD || verb == BATCH_RELEASE) {
                hold_each(c, verb == BATCH_HOLD, natives);
                return;
        }
        c->method = "DELETE";
        batch_path_add(c, API "/jobs/");
        json_open(&j, '{');
        if (of[verb].signal) {
                json_kstrz(&j, "signal", of[verb].signal);
                json_key(&j, "flags");
                add_value(&j, WORDS, str_of(of[verb].flag));
        }
        json_key(&j, "jobs");
        json_open(&j, '[');
        while (str_word(&natives, &one))
                json_str(&j, one);
        json_close(&j, ']');
        json_close(&j, '}');
}

static void rest_capacity(struct batch_call *c)
{
        c->method = "GET";
        batch_path_add(c, API "/partitions");
        batch_path_add(c, API "/nodes");
}

static void rest_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        slurm_capacity_read(s, out, c);
        if (c->nothing && !batch_setting(s, "partition") && str_search(out, STR("*")) < 0)
                c->nothing = "slurmrestd does not tell which partition is the default one: set `partition`";
}

const struct batch_system batch_slurm_rest = {
        .name = "slurm",
        .owners = true,
        .settings = slurm_settings,
        .service = &slurm_rest_service,
        .index_variable = "SLURM_ARRAY_TASK_ID",
        .energy = SLURM_ENERGY,
        .array_max = 1000,
        .nodes_setting = "",
        .check = rest_check,
        .resources = slurm_resources,
        .naming = slurm_naming,
        .submit = rest_submit,
        .submitted = rest_submitted,
        .refused = slurm_rest_refused,
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
        .capacity_read = rest_capacity_read,
        .verbs = (1u << BATCH_VERBS_COUNT) - 1,
};
