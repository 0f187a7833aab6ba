/* Slurm, by its commands: sbatch, squeue, sacct, scancel, scontrol, sinfo, with their options and columns as
 * in Slurm 20.11 to 26 (sbatch(1), squeue(1), ...). Ended jobs stay in squeue's list of all states for
 * MinJobAge, with or without accounting; sacct is asked only about jobs that are missing there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "base/system/clock.h"
#include "base/u64.h"
#include "run/batch/runner.h"
#include "run/batch/shape.h"
#include "run/systems/slurm.h"

const char *const slurm_settings[] = {"conf",         "partition", "account",     "qos",     "constraint",
                                      "license",      "gres_name", "reservation", "requeue", "energy",
                                      "reservations", "rest",      "token_file",  NULL};

static const struct batch_variable variables[] = {{"SLURM_CONF", "conf"}, {NULL, NULL}};

static const struct {
        const char *option, *setting;
        const char *const words[3]; /* attributes of the job */
} options[] = {
        {"partition", "partition", {"SlurmPartition", "BatchQueue", NULL}},
        {"account", "account", {"SlurmAccount", "BatchProject", NULL}},
        {"qos", "qos", {"SlurmQOS", NULL}},
        {"constraint", "constraint", {"SlurmConstraint", NULL}},
        {"licenses", "license", {"SlurmLicenses", NULL}},
        {"reservation", "reservation", {"SlurmReservation", NULL}},
        {"comment", NULL, {"SlurmComment", NULL}},
};

static const char *gres_name(const struct batch_settings *s)
{
        const char *name = batch_setting(s, "gres_name");

        return name && batch_plain(name) ? name : "gpu";
}

/* Reads whether Slurm may requeue a job when its node fails. */
static int requeue(const struct batch_settings *s, bool *ret, struct err *err)
{
        const char *word = batch_setting(s, "requeue");
        bool yes = word && !strcmp(word, "yes");

        if (word && !yes && strcmp(word, "no") != 0)
                return err_set(err, -EINVAL, "requeue is yes or no, not '%.40s'", word);
        *ret = yes;
        return 0;
}

int slurm_check(const struct batch_settings *s, struct err *err)
{
        const char *energy = batch_setting(s, "energy"), *users = batch_setting(s, "reservations");
        bool again;

        if (batch_setting(s, "token_file") && !batch_setting(s, "rest"))
                return err_set(err, -EINVAL, "token_file is for slurmrestd, whose address `rest` would be");
        if (energy && strcmp(energy, "yes") != 0 && strcmp(energy, "no") != 0)
                return err_set(err, -EINVAL, "energy is yes or no, not '%.40s'", energy);
        if (users && !batch_plain(users))
                return err_set(err, -EINVAL, "reservations is yes, or local users, not '%.40s'", users);
        if (users && batch_setting(s, "rest"))
                return err_set(err, -EINVAL, "reservations are made by Slurm's commands, not by slurmrestd");
        return requeue(s, &again, err);
}

int slurm_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                    struct err *err)
{
        struct batch_shape shape = batch_shape_of(spec);
        bool again = false;

        requeue(s, &again, NULL);
        buf_printf(out, "#SBATCH --nodes=%llu\n#SBATCH --ntasks=%llu\n", (unsigned long long)shape.nodes,
                   (unsigned long long)(shape.nodes * shape.tasks));
        if (shape.nodes > 1)
                buf_printf(out, "#SBATCH --ntasks-per-node=%llu\n", (unsigned long long)shape.tasks);
        buf_addz(out, "#SBATCH --export=ALL\n#SBATCH --chdir=/\n#SBATCH --input=/dev/null\n#SBATCH "
                      "--open-mode=append\n");
        buf_printf(out, "#SBATCH --%srequeue\n", again ? "" : "no-");
        buf_printf(out, "#SBATCH --cpus-per-task=%llu\n", (unsigned long long)shape.task_cpus);
        if (shape.node_mib)
                buf_printf(out, "#SBATCH --mem=%lluM\n", (unsigned long long)shape.node_mib);
        if (spec->walltime_ms)
                buf_printf(out, "#SBATCH --time=%llu\n",
                           (unsigned long long)((spec->walltime_ms + 59999) / 60000));
        if (shape.node_gpus)
                buf_printf(out, "#SBATCH --gres=%s:%llu\n", gres_name(s),
                           (unsigned long long)shape.node_gpus);
        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
                const char *value = batch_word(spec, options[i].words, s, options[i].setting);
                bool reservation = !strcmp(options[i].option, "reservation");

                if (reservation && value && strstr(value, BATCH_NAMES)) /* the server says who may use it */
                        return err_set(err, -EINVAL,
                                       "%.100s is a reservation of Drover's: set `reservation` to its number",
                                       value);
                if (spec->reservation && reservation)
                        value = spec->reservation;
                if (!value || !*value)
                        continue;
                if (!batch_plain(value))
                        return err_set(err, -EINVAL, "'%.100s' cannot be the %s of a job in Slurm", value,
                                       options[i].option);
                buf_printf(out, "#SBATCH --%s=%s\n", options[i].option, value);
        }
        return 0;
}

void slurm_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        buf_printf(out, "#SBATCH --job-name=%s\n", name);
        if (count > 1)
                buf_printf(out, "#SBATCH --array=0-%u\n#SBATCH --output=%s.%%a.log\n", count - 1, log);
        else
                buf_printf(out, "#SBATCH --output=%s.0.log\n", log);
}

static void slurm_submit(struct batch_call *c, const struct batch_sending *s)
{
        batch_word_add(c, "sbatch");
        batch_word_add(c, "--parsable");
        batch_word_add(c, s->script);
}

/* Reads "17" or "17;cluster" from the last line. */
static bool slurm_submitted(struct str out, struct buf *ret_native)
{
        struct str last = batch_last_line(out), number;
        uint64_t n;

        if (!str_cut(&last, ';', &number) || str_to_u64(number, &n) != 0)
                return false;
        buf_str(ret_native, number);
        return true;
}

bool slurm_unsure(struct str errors)
{
        static const char *const words[] = {"Unable to contact",    "timed out",
                                            "Zero Bytes",           "not responding",
                                            "Connection refused",   "communication",
                                            "Resource temporarily", "Protocol authentication",
                                            "in standby mode",      NULL};

        return batch_contains(errors, words);
}

static bool slurm_refused(int exit_code, struct str errors)
{
        static const char *const said[] = {"error:", "allocation failure:", NULL};

        (void)exit_code;
        return !slurm_unsure(errors) && batch_contains(errors, said);
}

/* See slurm.h. sbatch names the limit in the line before, except in old versions. Only limits on submitted
 * jobs are temporary: AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, ... */
bool slurm_full(struct str errors)
{
        static const char *const which[] = {"error: QOS", "error: Assoc", NULL};

        return str_search(errors, STR("Job violates accounting/QOS policy")) >= 0 &&
               (str_search(errors, STR("SubmitJob")) >= 0 || !batch_contains(errors, which));
}

const char *const slurm_limited_by[] = {"--account=", "--qos=", "--partition=", NULL};

bool slurm_refused_array(struct str errors)
{
        return str_search(errors, STR("Invalid job array specification")) >= 0;
}

void slurm_native_of(const char *native, unsigned index, struct buf *out)
{
        buf_printf(out, "%s_%u", native, index);
}

/* Names may come from other users, with newlines in them. Only as many characters are printed as the longest
 * of our names has, which is too few to imitate a line about one of our jobs, since that has its name in it.
 */
#define NAME_MAX_PRINTED "30"

static void slurm_status(struct batch_call *c, const char *user)
{
        BUF_CLEANUP struct buf u = {0};

        buf_printf(&u, "--user=%s", user);
        batch_words_add(c, STR("squeue --noheader --array --states=all --format=%F|%K|%T|%" NAME_MAX_PRINTED
                               "j|%r|%u"));
        batch_word_add(c, buf_z(&u));
}

static const struct {
        const char *name;
        enum batch_phase phase;
} states[] = {
        {"PENDING", BATCH_WAITING},       {"CONFIGURING", BATCH_WAITING}, {"REQUEUED", BATCH_WAITING},
        {"REQUEUE_HOLD", BATCH_WAITING},  {"REQUEUE_FED", BATCH_WAITING}, {"SPECIAL_EXIT", BATCH_WAITING},
        {"RESV_DEL_HOLD", BATCH_WAITING}, {"RUNNING", BATCH_RUNNING},     {"COMPLETING", BATCH_RUNNING},
        {"SUSPENDED", BATCH_RUNNING},     {"STOPPED", BATCH_RUNNING},     {"SIGNALING", BATCH_RUNNING},
        {"STAGE_OUT", BATCH_RUNNING},     {"RESIZING", BATCH_RUNNING},    {"COMPLETED", BATCH_OVER},
        {"FAILED", BATCH_OVER},           {"CANCELLED", BATCH_CANCELLED}, {"REVOKED", BATCH_CANCELLED},
        {"TIMEOUT", BATCH_TIMEOUT},       {"DEADLINE", BATCH_TIMEOUT},    {"OUT_OF_MEMORY", BATCH_MEMORY},
        {"NODE_FAIL", BATCH_LOST},        {"BOOT_FAIL", BATCH_LOST},      {"PREEMPTED", BATCH_LOST},
};

/* Reads a state, "PENDING", or slurmrestd's "PENDING,LAUNCH_FAILED,REQUEUE_HOLD", where a known flag takes
 * precedence. A state of later versions belongs to a job that exists: it must not be taken for gone. */
static enum batch_phase slurm_phase_of(struct str state, bool *ret_stopped)
{
        struct str one;
        enum batch_phase phase = BATCH_RUNNING;

        *ret_stopped = false;
        while (state.n && str_cut(&state, ',', &one))
                for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
                        if (str_eqz(one, states[i].name)) {
                                phase = states[i].phase;
                                *ret_stopped = str_eqz(one, "SUSPENDED") || str_eqz(one, "STOPPED");
                        }
        return phase;
}

/* Returns whether the reason is that of a job that failed without having begun. */
static bool unfit(struct str reason)
{
        return str_eqz(reason, "BadConstraints") || str_eqz(reason, "LaunchFailed") ||
               str_eqz(reason, "JobLaunchFailure");
}

static size_t fields(struct str line, struct str *field, size_t max)
{
        size_t n = 0;

        while (n < max && line.p && str_cut(&line, '|', &field[n]))
                n++;
        return n;
}

/* Reads "17|3|RUNNING|name|None|user", "18|N/A|…". The native id of an array's member is made in the line
 * itself: its '|' becomes '_'. */
static bool status_line(struct str line, struct batch_line *ret)
{
        struct str field[6];

        if (fields(line, field, 6) != 6)
                return false;
        *ret = (struct batch_line){
                .native = field[0], .name = str_trim(field[3]), .reason = field[4], .user = field[5]};
        ret->phase = slurm_phase_of(field[2], &ret->stopped);
        if (!ret->name.n) /* our jobs have a name, which distinguishes them from others with the same id */
                return false;
        if (str_eqz(field[1], SLURM_OTHERS)) {
                ret->others = true;
        } else if (!str_eqz(field[1], "N/A") && field[1].n) {
                ((char *)(uintptr_t)field[0].p)[field[0].n] = '_';
                ret->native = str_make(field[0].p, field[0].n + 1 + field[1].n);
        }
        if (ret->phase == BATCH_OVER && unfit(ret->reason))
                ret->phase = BATCH_UNFIT;
        return true;
}

void slurm_status_read(struct str out, batch_take_fn *take, void *arg)
{
        struct str text;
        struct batch_line line;

        while (out.n && str_cut(&out, '\n', &text))
                if (status_line(text, &line))
                        take(arg, &line);
}

/* Returns whether the output has complete lines of squeue, or is empty because there are no jobs. Some
 * wrappers print an error here and exit with 0. */
static bool slurm_is_answer(struct str out)
{
        struct str line, field[6];

        if (!out.n)
                return true;
        if (out.p[out.n - 1] != '\n')
                return false;
        while (out.n && str_cut(&out, '\n', &line))
                if (fields(line, field, 6) == 6)
                        return true;
        return false;
}

/* The width of sacct's columns. They are wider than what is printed of a name, so that the rest of a name
 * with a newline in it has nothing where a line has its state. */
#define UNAVAILABLE_MAX 8 /* different states of nodes that take no jobs */
#define PAST_ID         "40"
#define PAST_STATE      "30"

/* Reads "17_3       COMPLETED         name", "18        CANCELLED by 1000     name", each field in its
 * column. */
static void past_read(struct str out, batch_take_fn *take, void *arg)
{
        const size_t state_at = 40 + 1, name_at = state_at + 30 + 1;
        struct str line, native, name, reason, state;
        bool stopped;

        while (out.n && str_cut(&out, '\n', &line)) {
                native = str_trim(str_head(line, state_at));
                reason = str_trim(str_head(str_skip(line, state_at), name_at - state_at));
                name = str_trim(str_skip(line, name_at));
                if (!native.n || !reason.n || !name.n)
                        continue;
                str_cut(&reason, ' ', &state);
                take(arg, &(struct batch_line){.native = native,
                                               .name = name,
                                               .reason = reason,
                                               .phase = slurm_phase_of(state, &stopped)});
        }
}

static void slurm_past(struct batch_call *c, const char *user, const char *natives)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "--jobs=%s", natives);
        batch_words_add(c, STR("sacct --noheader --allocations --format=JobID%-" PAST_ID ",State%-" PAST_STATE
                               ",JobName%-" NAME_MAX_PRINTED));
        batch_word_add(c, buf_z(&b));
        buf_reset(&b);
        buf_printf(&b, "--user=%s", user);
        batch_word_add(c, buf_z(&b));
}

/* Returns whether sacct failed only temporarily: without accounting, or without the command, there is
 * nothing to wait for. */
static bool slurm_past_away(struct str errors)
{
        static const char *const never[] = {"disabled", "No such file", "only support", "nrecognized", NULL};

        return !batch_contains(errors, never);
}

static void slurm_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        static const char *const words[] = {[BATCH_END] = "scancel",
                                            [BATCH_STOP] = "scancel --signal=TSTP --full",
                                            [BATCH_CONTINUE] = "scancel --signal=CONT --full",
                                            [BATCH_HOLD] = "scontrol hold",
                                            [BATCH_RELEASE] = "scontrol release",
                                            [BATCH_NUDGE] = "scancel --signal=URG --batch"};

        batch_words_add(c, str_of(words[verb]));
        batch_words_add(c, natives);
}

static void slurm_capacity(struct batch_call *c)
{
        const char *partition = batch_setting(c->settings, "partition");
        BUF_CLEANUP struct buf b = {0};

        batch_words_add(c,
                        STR("sinfo --noheader --Node "
                            "--Format=Partition:64,CPUsState:32,Memory:20,AllocMem:20,Available:10,Time:20,"
                            "NodeList:200,StateLong:20,Gres:200,GresUsed:200"));
        if (partition) {
                buf_printf(&b, "--partition=%s", partition);
                batch_word_add(c, buf_z(&b));
        }
}

/* Counts in "gpu:a100:4(S:0-1),shard:8" or, used, "gpu:a100:1(IDX:0,2),shard:0" the resources with this
 * name, "gpu" for any type or "gpu:a100" for one. */
static uint64_t gres_count(struct str list, struct str name)
{
        uint64_t sum = 0, n;
        struct str kind, inside;

        while (list.n) {
                size_t end = 0;

                while (end < list.n && list.p[end] != '(' && list.p[end] != ',')
                        end++;
                struct str one = str_head(list, end);
                list = str_skip(list, end);
                if (list.n && list.p[0] == '(') /* list of indexes, whose commas do not separate entries */
                        str_cut(&list, ')', &inside);
                if (list.n)
                        list = str_skip(list, 1);
                ptrdiff_t at = str_rfind(one, ':');
                kind = at < 0 || str_to_u64(str_skip(one, (size_t)at + 1), &n) != 0
                               ? (n = 1, one)
                               : str_head(one, (size_t)at);
                if (str_starts(kind, name) && (kind.n == name.n || kind.p[name.n] == ':'))
                        sum += n;
        }
        return sum;
}

/* Returns whether the partition is one of those in the setting, separated by commas, or the default one
 * without the setting. */
static bool is_ours(const char *setting, struct str partition)
{
        struct str rest = str_of(setting), one;
        bool is_default = str_ends(partition, STR("*"));

        while (rest.n && str_cut(&rest, ',', &one))
                if (str_eq(one, str_head(partition, partition.n - is_default)))
                        return true;
        return !setting && is_default;
}

/* Reads a partition's limit: "5:00", "1-12:00:00", "infinite" and the like. */
static uint64_t time_limit(struct str text)
{
        struct str days = STR("0"), part;
        uint64_t n = 0, s = 0;

        if (str_find(text, '-') >= 0)
                str_cut(&text, '-', &days);
        if (str_to_u64(days, &n) != 0 || n > 100000)
                return UINT64_MAX;
        n *= 24;
        for (int parts = 0; text.n && str_cut(&text, ':', &part); parts++) {
                uint64_t value;

                if (parts == 3 || str_to_u64(part, &value) != 0 || value > 10000000)
                        return UINT64_MAX;
                s = s * 60 + value;
        }
        return (n * 3600 + s) * 1000;
}

struct unavailable {
        struct {
                char state[24];
                unsigned count;
        } of[UNAVAILABLE_MAX];
        size_t n;
};

struct nodes {
        const struct batch_settings *settings;
        struct map *seen; /* names seen; NULL: each node is listed once */
        struct run_capacity *capacity;
        struct unavailable unavailable;
};

struct node {
        uint64_t usable, idle, memory, memory_taken, gpus, gpus_taken;
};

/* Excludes nodes that sinfo counts as idle though none of our jobs can begin there: nodes that do not answer
 * or are restarting ("*", "^"), are reserved, or are kept for the next large job. The last is only
 * temporary. */
static void consider_state(const struct batch_settings *s, struct str state, struct node *n)
{
        char last = state.n ? state.p[state.n - 1] : 0;
        bool maintained = str_starts(state, STR("maint")) || last == '$',
             reserved = maintained || str_starts(state, STR("reserved"));

        if (last == '*' || last == '^' ||
            (reserved && !batch_setting(s, "reservation") &&
             (maintained || !batch_setting(s, "reservations"))))
                n->usable -= n->idle, n->idle = 0;
        else if (str_starts(state, STR("planned")) || last == '-')
                n->idle = 0;
}

/* ---- nodes that take no jobs, which are Slurm's own matter, and are shown */

static bool takes_jobs(struct str state)
{
        static const char *const fine[] = {"idle",    "mixed",        "allocated",     "completing",
                                           "planned", "powered_down", "powering_down", "powering_up"};

        while (state.n && memchr("-~#!%+@", state.p[state.n - 1], 7)) /* saving power, planned, restarting */
                state.n--;
        for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
                if (str_eqz(state, fine[i]))
                        return true;
        return false;
}

static void add_state(struct unavailable *u, struct str state)
{
        size_t i = 0;

        if (takes_jobs(state))
                return;
        state = str_head(state, sizeof(u->of[0].state) - 1);
        while (i < u->n && !str_eqz(state, u->of[i].state))
                i++;
        if (i == UNAVAILABLE_MAX)
                return;
        if (i == u->n)
                snprintf(u->of[u->n++].state, sizeof(u->of[0].state), STR_FMT, STR_ARG(state));
        u->of[i].count++;
}

static void print_states(const struct unavailable *u, struct run_capacity *c)
{
        BUF_CLEANUP struct buf text = {0};

        for (size_t i = 0; i < u->n; i++)
                buf_printf(&text, "%s%u %s", i ? ", " : "", u->of[i].count, u->of[i].state);
        snprintf(c->unavailable, sizeof(c->unavailable), "%s", buf_z(&text));
}

static void add_node(const struct node *n, struct run_capacity *c)
{
        const struct batch_node node = {.cpus = n->usable,
                                        .idle_cpus = n->idle,
                                        .memory_bytes = n->memory << 20,
                                        .idle_memory_bytes = u64_left(n->memory, n->memory_taken) << 20,
                                        .gpus = n->gpus,
                                        .idle_gpus = u64_left(n->gpus, n->gpus_taken)};

        if (n->usable)
                batch_node_add(c, &node, n->usable);
        else
                c->nodes++;
}

/* Returns whether a node is seen for the first time; nodes in several of the queue's partitions are listed
 * for each. */
static bool is_new(struct nodes *all, struct str name)
{
        return !all->seen || !map_put(all->seen, name, all);
}

enum { PARTITION, CPUS, MEMORY, MEMORY_TAKEN, AVAILABLE, TIME, NAME, STATE, GRES, GRES_USED, WORDS };

/* Reads "main*   0/4/0/4   4000   0   up   5:00   a1   idle   gpu:2   gpu:1(IDX:0)": allocated, idle, other
 * and all processors; memory in MiB. A job without a partition goes to the default one, marked by the star;
 * with several it may have the time limit of any of them. */
static void slurm_node_line(struct nodes *all, struct str line)
{
        struct str word[WORDS], part[4], rest = line, name = str_of(gres_name(all->settings));
        struct run_capacity *c = all->capacity;
        struct node node = {0};
        uint64_t n[4];
        size_t count = 0;

        while (count < WORDS && str_word(&rest, &word[count]))
                count++;
        for (size_t i = count; i < WORDS; i++)
                word[i] = STR("");
        if (count <= STATE || !is_ours(batch_setting(all->settings, "partition"), word[PARTITION]))
                return;
        for (size_t i = 0; i < 4; i++)
                if (!str_cut(&word[CPUS], '/', &part[i]) || str_to_u64(part[i], &n[i]) != 0)
                        return;
        if (str_to_u64(word[MEMORY], &node.memory) != 0 ||
            str_to_u64(word[MEMORY_TAKEN], &node.memory_taken) != 0)
                return;
        if (!str_eqz(word[AVAILABLE], "up")) {
                c->nothing = "it takes no jobs";
                return;
        }
        c->walltime_max_ms = u64_max(c->walltime_max_ms, time_limit(word[TIME]));
        if (!is_new(all, word[NAME]))
                return;
        add_state(&all->unavailable, word[STATE]);
        node.usable = n[0] + n[1];
        node.idle = n[1];
        consider_state(all->settings, word[STATE], &node);
        if (node.memory && node.memory_taken >= node.memory)
                node.idle = 0;
        node.gpus = count > GRES_USED ? gres_count(word[GRES], name) : 0;
        node.gpus_taken = gres_count(word[GRES_USED], name);
        add_node(&node, c);
}

void slurm_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        const char *partition = batch_setting(s, "partition");
        struct nodes all = {
                .settings = s, .seen = partition && strchr(partition, ',') ? map_new() : NULL, .capacity = c};
        struct str line;

        while (out.n && str_cut(&out, '\n', &line))
                slurm_node_line(&all, line);
        map_free(all.seen);
        print_states(&all.unavailable, c);
        if (c->nodes && !c->cpus_milli)
                c->nothing = "all its nodes are down, drained or reserved";
        else if (!c->nothing)
                c->nothing = partition ? "there is none of that name" : "there is no default partition";
        if (c->cpus_milli)
                c->nothing = NULL;
}

static void slurm_when(struct batch_call *c, const struct batch_sending *s)
{
        batch_word_add(c, "sbatch");
        batch_word_add(c, "--test-only");
        batch_word_add(c, s->script);
}

/* Reads "sbatch: Job 17 to start at 2026-11-21T19:40:11 using 1 processors on ..." from standard error, in
 * the command's time zone, which is the agent's. */
static bool slurm_when_said(struct str out, struct str errors, uint64_t *ret_ms)
{
        const struct str mark = STR(" to start at ");
        ptrdiff_t at = str_search(errors, mark);
        BUF_CLEANUP struct buf text = {0};
        struct tm tm = {.tm_isdst = -1};

        (void)out;
        if (at < 0)
                return false;
        buf_str(&text, str_head(str_skip(errors, (size_t)at + mark.n), strlen("2026-01-01T00:00:00")));
        if (!strptime(buf_z(&text), "%Y-%m-%dT%H:%M:%S", &tm))
                return false;
        time_t when = mktime(&tm);
        if (when > 0)
                *ret_ms = (uint64_t)when * 1000;
        return when > 0;
}

/* Times are those of the agent's time zone, in which the controller reads them. */
static void add_time(struct batch_call *c, const char *key, int64_t at_ms)
{
        BUF_CLEANUP struct buf b = {0};
        time_t at = (time_t)(at_ms / 1000);
        struct tm tm = {.tm_year = 70};
        char text[32];

        localtime_r(&at, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
        buf_printf(&b, "%s=%s", key, text);
        batch_word_add(c, buf_z(&b));
}

/* Jobs that run at its start keep their room, as at every place. */
static bool slurm_reserve(struct batch_call *c, const struct batch_reserving *r)
{
        const char *partition = batch_setting(c->settings, "partition");
        BUF_CLEANUP struct buf b = {0};

        if (partition && strchr(partition, ','))
                partition = NULL;
        if (r->maintenance && !partition) /* the nodes of several, or of which one is the default */
                return false;
        batch_words_add(c, r->maintenance
                                   ? STR("scontrol create reservation Flags=MAINT,IGNORE_JOBS,PART_NODES "
                                         "Nodes=ALL")
                                   : STR("scontrol create reservation Flags=IGNORE_JOBS"));
        buf_printf(&b, "ReservationName=%s", r->name);
        batch_word_add(c, buf_z(&b));
        if (r->start_ms <= clock_wall_ms())
                batch_word_add(c, "StartTime=now");
        else
                add_time(c, "StartTime", r->start_ms);
        add_time(c, "EndTime", r->end_ms);
        buf_reset(&b);
        buf_printf(&b, "Users=%s", r->maintenance ? "root" : r->users); /* Slurm requires somebody */
        batch_word_add(c, buf_z(&b));
        if (!r->maintenance) {
                buf_reset(&b);
                buf_printf(&b, "CoreCnt=%llu", (unsigned long long)r->cpus);
                batch_word_add(c, buf_z(&b));
        }
        if (partition) {
                buf_reset(&b);
                buf_printf(&b, "PartitionName=%s", partition);
                batch_word_add(c, buf_z(&b));
        }
        return true;
}

static void slurm_unreserve(struct batch_call *c, const char *name)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "ReservationName=%s", name);
        batch_words_add(c, STR("scontrol delete"));
        batch_word_add(c, buf_z(&b));
}

static void slurm_reserved(struct batch_call *c)
{
        batch_words_add(c, STR("scontrol show reservation --oneliner"));
}

static struct str slurm_reserved_read(struct str line)
{
        const struct str key = STR("ReservationName=");
        struct str name;

        return str_starts(line, key) && (line = str_skip(line, key.n), str_word(&line, &name)) ? name
                                                                                               : STR_NONE;
}

const struct batch_system batch_slurm = {
        .name = "slurm",
        .owners = true,
        .settings = slurm_settings,
        .variables = variables,
        .index_variable = "SLURM_ARRAY_TASK_ID",
        .energy = SLURM_ENERGY,
        .array_max = 1000,
        .nodes_setting = "",
        .check = slurm_check,
        .resources = slurm_resources,
        .naming = slurm_naming,
        .submit = slurm_submit,
        .submitted = slurm_submitted,
        .refused = slurm_refused,
        .full = slurm_full,
        .limited_by = slurm_limited_by,
        .refused_array = slurm_refused_array,
        .native_of = slurm_native_of,
        .status = slurm_status,
        .is_answer = slurm_is_answer,
        .status_read = slurm_status_read,
        .past = slurm_past,
        .past_read = past_read,
        .past_away = slurm_past_away,
        .memory_words = SLURM_MEMORY_WORDS,
        .act = slurm_act,
        .capacity = slurm_capacity,
        .capacity_read = slurm_capacity_read,
        .when = slurm_when,
        .when_said = slurm_when_said,
        .reserve = slurm_reserve,
        .unreserve = slurm_unreserve,
        .reserved = slurm_reserved,
        .reserved_read = slurm_reserved_read,
        .verbs = (1u << BATCH_VERBS_COUNT) - 1,
};

/* Opens a queue that uses slurmrestd if its address is set, and the commands otherwise. */
static int slurm_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        const struct batch_settings s = {c->settings, c->setting_count};
        const struct batch_system *system = batch_setting(&s, "rest") ? &batch_slurm_rest : &batch_slurm;

        return batch_open(&runner_slurm, system, c, ret, err);
}

const struct runner_kind runner_slurm = {.name = "slurm", .for_users = true, .open = slurm_open, BATCH_VERBS};
