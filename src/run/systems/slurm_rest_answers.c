/* Converts slurmrestd's answers to lines like those of squeue and sinfo (slurm.h). Each field is looked for
 * under its names in both generations of the API (slurm_rest.c). */
#include <stdio.h>

#include "base/u64.h"
#include "run/systems/slurm.h"

#define EXPAND_MAX     1000  /* most members in one row; none of our arrays is larger */
#define PARTITIONS_MAX 32768 /* most bytes of lines about partitions, which come before those about nodes */
#define OF_NODE_MAX    32    /* most partitions of a node; each is looked for in these lines */

static const char *const versions[] = {"v0.0.45", "v0.0.44",      "v0.0.43", "v0.0.42",
                                       "v0.0.41", SLURM_REST_OLD, NULL};

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
        PAST_USER,
        JOB_ARRAY_NUMBER,
        JOB_INDEX_NUMBER,
        JOB_INDEX_SET,
        PAST_INDEX_NUMBER,
        PAST_INDEX_SET
};
static const char *const of_jobs[] = {"job_id",
                                      "array_job_id",
                                      "array_task_id",
                                      "array_task_string",
                                      "name",
                                      "job_state",
                                      "state_reason",
                                      "user_name",
                                      "state.current",
                                      "state.reason",
                                      "array.job_id",
                                      "array.task_id",
                                      "user",
                                      "array_job_id.number",
                                      "array_task_id.number",
                                      "array_task_id.set",
                                      "array.task_id.number",
                                      "array.task_id.set",
                                      NULL};
enum {
        NODE_PARTITIONS,
        NODE_STATE,
        NODE_FLAGS,
        NODE_CPUS,
        NODE_CPUS_TAKEN,
        NODE_MEMORY,
        NODE_MEMORY_TAKEN,
        NODE_GRES,
        NODE_GRES_TAKEN,
        NODE_NAME
};
static const char *const of_nodes[] = {
        "partitions",   "state", "state_flags", "cpus", "alloc_cpus", "real_memory",
        "alloc_memory", "gres",  "gres_used",   "name", NULL};
enum {
        PARTITION_NAME,
        PARTITION_STATE,
        PARTITION_FLAGS,
        PARTITION_TIME,
        PARTITION_STATE_NEW,
        PARTITION_TIME_NUMBER,
        PARTITION_TIME_SET
};
static const char *const of_partitions[] = {"name",
                                            "state",
                                            "flags",
                                            "max_time_limit",
                                            "partition.state",
                                            "maximums.time.number",
                                            "maximums.time.set",
                                            NULL};
static const char *const of_errors[] = {"error", "description", "error_code", "error_number", "errno", NULL};
static const char *const of_answer[] = {"job_id", NULL};
static const struct json_skim_rows rows[] = {
        {"jobs", of_jobs},     {"nodes", of_nodes}, {"partitions", of_partitions},
        {"errors", of_errors}, {NULL, of_answer},   {NULL, NULL}};

/* Reads a number: plain, or an object in the later API; empty: not set. */
static struct str slurm_rest_number_of(struct str plain, struct str number, struct str set)
{
        return plain.n ? plain : str_eqz(set, "true") ? number : STR("");
}

/* Returns whether the word is in a comma-separated list, ignoring case. */
static bool has_word(struct str list, const char *word)
{
        struct str one;

        while (list.n && str_cut(&list, ',', &one))
                if (str_ieqz(one, word))
                        return true;
        return false;
}

static struct str array_of(const struct str *job)
{
        return job[JOB_ARRAY].n          ? job[JOB_ARRAY]
               : job[JOB_ARRAY_NUMBER].n ? job[JOB_ARRAY_NUMBER]
                                         : job[PAST_ARRAY];
}

/* Adds a field of a line, without characters that separate fields or lines. */
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

/* Adds lines for the waiting members "3", "0-7" or "0-8:2". */
static void waiting_lines(struct buf *out, struct str range, const struct str *job, struct str reason,
                          unsigned *left)
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
        for (uint64_t i = from; i <= to && *left; i += step, --*left) {
                char index[24];
                int length = snprintf(index, sizeof(index), "%llu", (unsigned long long)i);

                job_line(out, array_of(job), str_make(index, (size_t)length), job, reason);
        }
}

/* Handles a row about a job; the list also has the jobs of all other users. */
static void slurm_rest_take_job(const char *whose, const struct str *job, struct buf *out)
{
        BUF_CLEANUP struct buf reason = {0};
        struct str user = job[JOB_USER].n ? job[JOB_USER] : job[PAST_USER], waiting = job[JOB_WAITING], one;
        struct str array = array_of(job);
        unsigned left = EXPAND_MAX;
        struct str index = slurm_rest_number_of(job[JOB_INDEX], job[JOB_INDEX_NUMBER], job[JOB_INDEX_SET]);

        if (!index.n)
                index = slurm_rest_number_of(job[PAST_INDEX], job[PAST_INDEX_NUMBER], job[PAST_INDEX_SET]);
        if (!str_starts(job[JOB_NAME], STR(BATCH_NAMES)))
                return;
        buf_str(&reason, job[JOB_REASON].n ? job[JOB_REASON] : job[PAST_REASON]);
        if (whose && user.n && !str_eqz(user, whose)) {
                left = 1; /* a name does not prove whose job it is */
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
        str_cut(&waiting, '%', &one); /* "0-9%2": limit on members at a time */
        for (waiting = one; left && waiting.n && str_cut(&waiting, ',', &one);)
                waiting_lines(out, one, job, buf_view(&reason), &left);
}

/* Adds "=main* up 5:00", a partition, for the nodes that follow. The limit is in minutes; -1 or not set:
 * none. */
static void take_partition(const struct str *p, struct buf *out)
{
        struct str state = p[PARTITION_STATE].n ? p[PARTITION_STATE] : p[PARTITION_STATE_NEW];
        struct str limit =
                slurm_rest_number_of(p[PARTITION_TIME], p[PARTITION_TIME_NUMBER], p[PARTITION_TIME_SET]);
        uint64_t minutes;

        buf_printf(out, "\n=" STR_FMT "%s %s ", STR_ARG(p[PARTITION_NAME]),
                   has_word(p[PARTITION_FLAGS], "default") ? "*" : "", has_word(state, "UP") ? "up" : "down");
        if (str_to_u64(limit, &minutes) == 0)
                buf_printf(out, "%llu:00\n", (unsigned long long)minutes);
        else
                buf_addz(out, "infinite\n");
}

/* Finds the partition's line in `out`: "main*", and "up 5:00". */
static bool find_partition(const struct buf *out, struct str name, struct str *ret_name,
                           struct str *ret_state)
{
        struct str rest = str_head(buf_view(out), u64_min(out->n, PARTITIONS_MAX)), line;

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

/* Returns sinfo's word for why no job begins there, or none for now. */
static const char *node_word(struct str flags)
{
        return has_word(flags, "not_responding") || has_word(flags, "reboot_issued") ? "idle*"
               : has_word(flags, "reserved") || has_word(flags, "maintenance")       ? "reserved"
               : has_word(flags, "planned")                                          ? "planned"
                                                                                     : "idle";
}

/* Adds a node as sinfo prints it: free processors of a node that is down or drained count neither as
 * allocated nor as idle. The later API has the flags among the states. */
static void slurm_rest_take_node(const struct str *n, struct buf *out)
{
        static const char *const lost[] = {"down", "error", "unknown", "future", "drain", NULL};
        struct str partitions = n[NODE_PARTITIONS], one;
        uint64_t cpus, taken;
        bool other = has_word(n[NODE_FLAGS], "drain");
        BUF_CLEANUP struct buf flags = {0};

        for (size_t i = 0; lost[i]; i++)
                other = other || has_word(n[NODE_STATE], lost[i]);
        if (str_to_u64(n[NODE_CPUS], &cpus) != 0 || str_to_u64(n[NODE_CPUS_TAKEN], &taken) != 0 ||
            taken > cpus)
                return;
        buf_printf(&flags, STR_FMT "," STR_FMT, STR_ARG(n[NODE_STATE]), STR_ARG(n[NODE_FLAGS]));
        uint64_t idle = cpus - taken;
        for (unsigned i = 0; i < OF_NODE_MAX && partitions.n && str_cut(&partitions, ',', &one); i++) {
                struct str name, state;
                BUF_CLEANUP struct buf line = {0};

                if (!find_partition(out, one, &name, &state))
                        continue;
                buf_printf(&line, STR_FMT " %llu/%llu/%llu/%llu ", STR_ARG(name), (unsigned long long)taken,
                           (unsigned long long)(other ? 0 : idle), (unsigned long long)(other ? idle : 0),
                           (unsigned long long)cpus);
                buf_printf(&line, STR_FMT " " STR_FMT " " STR_FMT " ", STR_ARG(n[NODE_MEMORY]),
                           STR_ARG(n[NODE_MEMORY_TAKEN]), STR_ARG(state));
                buf_printf(&line, STR_FMT " %s " STR_FMT " " STR_FMT "\n",
                           STR_ARG(n[NODE_NAME].n ? n[NODE_NAME] : STR("?")), node_word(buf_view(&flags)),
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

static void take_rows(const void *arg, const struct json_skim_rows *of, const struct str *values,
                      struct buf *out, struct buf *errors)
{
        if (of->fields == of_jobs)
                slurm_rest_take_job(arg, values, out);
        else if (of->fields == of_nodes)
                slurm_rest_take_node(values, out);
        else if (of->fields == of_partitions)
                take_partition(values, out);
        else if (of->fields == of_errors)
                take_error(values, errors);
        else if (values[0].n)
                buf_printf(out, "submitted " STR_FMT "\n", STR_ARG(values[0]));
}

/* Returns whether the errors have a code in the range. */
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

/* Starts of ranges of Slurm's error codes (slurm_errno.h): those of the controller and of the database; and
 * the daemon's own code for an invalid request. Other codes are failures of communication. */
enum { CONTROLLER = 2000, DATABASE_AWAY = 7000, CANNOT_PARSE = 9001 };

/* Detects an unreachable database, which is reported with a good status. */
static bool fault(struct str errors)
{
        return has_code(errors, DATABASE_AWAY, DATABASE_AWAY + 999);
}

/* Returns whether the token may be at fault: the controller's reason is not passed on. */
static bool doubt(struct str errors)
{
        static const char *const words[] = {"Unspecified error", "Zero Bytes",
                                            "Unable to connect to database", "Protocol authentication", NULL};

        return batch_contains(errors, words);
}

const struct request_service slurm_rest_service = {
        .name = "slurmrestd",
        .user_field = "X-SLURM-USER-NAME",
        .token_field = "X-SLURM-USER-TOKEN: ",
        .versions = versions,
        .rows = rows,
        .take = take_rows,
        .fault = fault,
        .doubt = doubt,
};

bool slurm_rest_refused(int exit_code, struct str errors)
{
        (void)exit_code;
        return !slurm_unsure(errors) && (has_code(errors, CONTROLLER, CONTROLLER + 999) ||
                                         has_code(errors, CANNOT_PARSE, CANNOT_PARSE));
}
