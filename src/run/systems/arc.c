/* ARC (the REST interface of A-REX, https://www.nordugrid.org/arc/arc6/tech/rest/rest.html): a task is a job
 * of a computing element.
 *
 * Jobs are described in EMI-ES ADL, not xRSL: its units are fixed (seconds, bytes), while those of xRSL
 * depend on its dialect, and XML has one rule of quoting.
 *
 * The list of jobs by their states is the only answer that is up to date: the documents that
 * "action=status" and "action=info" read are rewritten every few minutes. The documents have the names, which
 * do not change, so only the list is asked for, and the names of the jobs that are not known.
 *
 * Ids are random and never given twice. The element ends with an error for a job whose exit code is not 0;
 * the script that sessions.h sends ends with 0. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "base/format/xml.h"
#include "base/u64.h"
#include "run/batch/batch.h"
#include "run/batch/runner.h"

#define HEAD           "#ARC "
#define NAMES_MAX      1000 /* most names that are asked for in one request */
#define DEADLINE_S     120  /* by which the system's limit of time is longer than that of the script */
#define MIB            1048576u
#define ID_MAX         64
#define NODES_MAX      100000     /* of one size */
#define MEMORY_MAX_MIB (1u << 30) /* 1 PiB, also where the element does not say */
#define ADL            "http://www.eu-emi.eu/es/2010/12/adl"
#define STATES                                                                                               \
        "ACCEPTING,ACCEPTED,PREPARING,PREPARED,SUBMITTING,QUEUING,RUNNING,HELD,EXITINGLRMS,OTHER,EXECUTED,"  \
        "FINISHING,KILLING,FINISHED,FAILED,KILLED,WIPED"

static const char *const settings[] = {"rest",     "path",       "ca_file", "certificate_file",
                                       "key_file", "token_file", "queue",   "environments",
                                       NULL};

/* ---- answers, as lines ID|STATE|NAME|CODE, and one of the element itself */

#define ELEMENT "=" /* instead of an id: slots, nodes, MiB of a node */

enum { ID, STATE, NAME, CODE, REASON, SLOTS, NODES, MEMORY };
static const char *const of_jobs[] = {"id",          "state",  "info_document.ComputingActivity.Name",
                                      "status-code", "reason", NULL};
/* An answer about one job has no list. The others are of the element itself (GLUE 2.0, GFD-R-P.147). */
#define MANAGER "Domains.AdminDomain.Services.ComputingService.ComputingManager."
static const char *const of_answer[] = {"job.id",
                                        "job.state",
                                        "job.info_document.ComputingActivity.Name",
                                        "job.status-code",
                                        "job.reason",
                                        MANAGER "TotalSlots",
                                        MANAGER "LogicalCPUDistribution",
                                        MANAGER "ExecutionEnvironments.ExecutionEnvironment.MainMemorySize",
                                        NULL};
static const struct json_skim_rows rows[] = {{"job", of_jobs}, {NULL, of_answer}, {NULL, NULL}};

static bool arc_is_id(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'z') ||
                      (s.p[i] >= 'A' && s.p[i] <= 'Z') || s.p[i] == '-' || s.p[i] == '_'))
                        return false;
        return s.n > 0 && s.n <= ID_MAX;
}

static void arc_add_field(struct buf *out, struct str s)
{
        for (size_t i = 0; i < s.n && i < 128; i++)
                buf_char(out, s.p[i] == '|' || (unsigned char)s.p[i] < ' ' ? '?' : s.p[i]);
}

/* Keeps jobs with ids. One without is a description that was refused. */
static void arc_take(const void *arg, const struct json_skim_rows *which, const struct str *v,
                     struct buf *out, struct buf *errors)
{
        (void)arg;
        if (!which->list && v[SLOTS].n) {
                buf_addz(out, ELEMENT "|");
                arc_add_field(out, v[SLOTS]);
                buf_char(out, '|');
                arc_add_field(out, v[NODES]);
                buf_char(out, '|');
                arc_add_field(out, v[MEMORY]);
                buf_char(out, '\n');
        } else if (!arc_is_id(v[ID])) {
                if (v[REASON].n)
                        buf_printf(errors, "%s" STR_FMT ": " STR_FMT, errors->n ? "; " : "", STR_ARG(v[CODE]),
                                   STR_ARG(v[REASON]));
        } else {
                for (int i = ID; i <= CODE; i++) {
                        arc_add_field(out, v[i]);
                        buf_char(out, i == CODE ? '\n' : '|');
                }
        }
}

static bool arc_fault(struct str errors)
{
        return errors.n;
}

static const struct request_service arc_service = {
        .name = "A-REX",
        .token_field = "Authorization: Bearer ",
        .any_token = true,
        .rows = rows,
        .take = arc_take,
        .fault = arc_fault,
        .fields = "Accept: application/json\r\n",
        .empty_is_none = true, /* of no job at all */
};

static bool arc_next_line(struct str *rest, struct str *fields)
{
        struct str line;

        while (rest->n && str_cut(rest, '\n', &line)) {
                for (int i = ID; i <= CODE; i++) {
                        fields[i] = STR("");
                        str_cut(&line, '|', &fields[i]);
                }
                if (fields[ID].n)
                        return true;
        }
        return false;
}

/* ---- settings */

static int arc_check(const struct batch_settings *s, struct err *err)
{
        const char *rest = batch_setting(s, "rest"), *path = batch_setting(s, "path"),
                   *queue = batch_setting(s, "queue");

        if (!rest)
                return err_set(err, -EINVAL,
                               "arc needs the setting rest, the address of the computing element");
        int r = request_check(rest, true, err);
        if (r < 0)
                return err_prefix(err, r, "rest");
        bool tls = str_starts(str_of(rest), STR("https:"));
        if (tls && !batch_setting(s, "ca_file"))
                return err_set(err, -EINVAL, "rest over https needs ca_file, the authorities of the element");
        if (tls && !batch_setting(s, "certificate_file") && !batch_setting(s, "token_file"))
                return err_set(err, -EINVAL,
                               "arc needs certificate_file, with key_file or as a proxy, or token_file");
        if (batch_setting(s, "key_file") && !batch_setting(s, "certificate_file"))
                return err_set(err, -EINVAL, "key_file goes with certificate_file");
        if (path && (*path != '/' || !batch_plain(path)))
                return err_set(err, -EINVAL, "path is that of A-REX at the element, such as /arex");
        if (queue && !batch_plain(queue))
                return err_set(err, -EINVAL, "queue '%.100s' cannot be a name", queue);
        return 0;
}

static void arc_add_path(struct batch_call *c, const char *end)
{
        const char *path = batch_setting(c->settings, "path");

        batch_path_add(c, "%s/rest/1.0/%s", path ? path : "/arex", end);
}

/* ---- a task as lines of its script's head, "#ARC key value" */

static int arc_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                         struct err *err)
{
        static const char *const queues[] = {"ArcQueue", "BatchQueue", NULL}, *const environments[] = {
                                                                                      "ArcEnvironments",
                                                                                      NULL};
        const char *queue = batch_word(spec, queues, s, "queue");
        struct str rest = str_of(batch_word(spec, environments, s, "environments")), one;
        uint64_t slots = u64_max((spec->cpus_milli + 999) / 1000, 1);

        if (queue && !batch_plain(queue))
                return err_set(err, -EINVAL, "'%.100s' cannot be a queue of ARC", queue);
        if (spec->gpus)
                return err_set(err, -EINVAL, "arc passes no request for GPUs on");
        if (queue)
                buf_printf(out, HEAD "queue %s\n", queue);
        while (str_word(&rest, &one)) {
                MEM_CLEANUP char *z = str_dupz(one);

                if (!batch_plain(z))
                        return err_set(err, -EINVAL, "'%.100s' cannot be a runtime environment", z);
                buf_printf(out, HEAD "environment %s\n", z);
        }
        buf_printf(out, HEAD "slots %llu\n", (unsigned long long)slots);
        if (spec->memory_bytes) /* of each slot, in whole MiB, which the element counts */
                buf_printf(out, HEAD "memory %llu\n",
                           (unsigned long long)((spec->memory_bytes / slots + MIB - 1) / MIB * MIB));
        if (spec->walltime_ms)
                buf_printf(out, HEAD "walltime %llu\n",
                           (unsigned long long)((spec->walltime_ms + 999) / 1000 + DEADLINE_S));
        return 0;
}

static void arc_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        (void)log, (void)count;
        buf_printf(out, "# Job %s\n", name);
}

/* ---- the job's description */

static void arc_add_element(struct buf *out, const char *name, struct str text)
{
        buf_printf(out, "<%s>", name);
        xml_escape(out, text);
        buf_printf(out, "</%s>", name);
}

static void arc_add_resources(struct buf *out, const char *head)
{
        struct str rest = str_of(head), line, key;

        while (rest.n && str_cut(&rest, '\n', &line)) {
                if (!str_starts(line, STR(HEAD)))
                        continue;
                line = str_skip(line, strlen(HEAD));
                if (!str_cut(&line, ' ', &key))
                        continue;
                if (str_eqz(key, "queue"))
                        arc_add_element(out, "QueueName", line);
                else if (str_eqz(key, "memory"))
                        arc_add_element(out, "IndividualPhysicalMemory", line);
                else if (str_eqz(key, "walltime"))
                        arc_add_element(out, "WallTime", line);
                else if (str_eqz(key, "environment")) {
                        buf_addz(out, "<RuntimeEnvironment>");
                        arc_add_element(out, "Name", line);
                        buf_addz(out, "</RuntimeEnvironment>");
                } else if (str_eqz(key, "slots")) { /* all on one node */
                        buf_addz(out, "<SlotRequirement>");
                        arc_add_element(out, "NumberOfSlots", line);
                        arc_add_element(out, "SlotsPerHost", line);
                        buf_addz(out, "</SlotRequirement>");
                }
        }
}

static void arc_submit(struct batch_call *c, const struct batch_sending *s)
{
        struct buf *out = &c->input;

        c->method = "POST";
        c->type = "application/xml";
        c->once = true;
        arc_add_path(c, "jobs?action=new");
        buf_addz(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ActivityDescription xmlns=\"" ADL
                      "\"><ActivityIdentification>");
        arc_add_element(out, "Name", str_of(s->name));
        buf_addz(out, "</ActivityIdentification><Application><Executable><Path>/bin/sh</"
                      "Path><Argument>" BATCH_ARRIVES_AS
                      "</Argument></Executable><Output>drover.log</Output><Error>drover.log</Error>"
                      "</Application><Resources>");
        arc_add_resources(out, s->head);
        buf_addz(out, "</Resources><DataStaging><InputFile><Name>" BATCH_ARRIVES_AS
                      "</Name></InputFile><OutputFile><Name>/</Name></OutputFile></DataStaging>"
                      "</ActivityDescription>");
}

static bool arc_submitted(struct str out, struct buf *ret_native)
{
        struct str fields[CODE + 1];

        if (!arc_next_line(&out, fields))
                return false;
        buf_str(ret_native, fields[ID]);
        return true;
}

/* A refusal that a person at the element can mend (too many jobs, no right) is none. */
static bool arc_refused(int exit_code, struct str errors)
{
        static const char *const final[] = {
                "parsing error", "ailed to parse", "ot supported", "nsupported", "Queue",
                "queue",         "nvalid",         "adl",          NULL};

        return exit_code == 1 && batch_contains(errors, final);
}

static bool arc_full(struct str errors)
{
        return str_search(errors, STR("No more jobs allowed")) >= 0 ||
               str_search(errors, STR("exceeds allowed limit")) >= 0;
}

/* ---- questions */

static void arc_status(struct batch_call *c, const char *user)
{
        (void)user;
        c->method = "GET";
        arc_add_path(c, "jobs?state=" STATES);
        arc_add_path(c, "jobs?action=info");
}

static void arc_add_ids(struct buf *body, struct str ids)
{
        struct json j = {.out = body};
        struct str one;

        json_open(&j, '{');
        json_key(&j, "job");
        json_open(&j, '[');
        while (str_word(&ids, &one)) {
                if (!arc_is_id(one))
                        continue;
                json_open(&j, '{');
                json_kstr(&j, "id", one);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
}

static bool arc_unnamed(const void *arg, struct str lines, struct buf *body)
{
        const struct map *known = arg;
        struct str fields[CODE + 1];
        BUF_CLEANUP struct buf ids = {0};

        for (unsigned n = 0; n < NAMES_MAX && arc_next_line(&lines, fields);) {
                if (map_get(known, fields[ID]))
                        continue;
                n++;
                buf_str(&ids, fields[ID]);
                buf_char(&ids, ' ');
        }
        if (ids.n)
                arc_add_ids(body, buf_view(&ids));
        return ids.n;
}

/* The element's batch system may still have a job that it calls RUNNING in its queue. */
static enum batch_phase arc_phase(struct str state)
{
        static const struct {
                const char *name;
                enum batch_phase phase;
        } states[] = {
                {"RUNNING", BATCH_RUNNING},   {"EXITINGLRMS", BATCH_RUNNING}, {"EXECUTED", BATCH_RUNNING},
                {"FINISHING", BATCH_RUNNING}, {"KILLING", BATCH_RUNNING},     {"FINISHED", BATCH_OVER},
                {"FAILED", BATCH_UNFIT},      {"KILLED", BATCH_CANCELLED},    {"WIPED", BATCH_LOST}};

        for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
                if (str_eqz(state, states[i].name))
                        return states[i].phase;
        return BATCH_WAITING;
}

static bool arc_waits_for_files(struct str state)
{
        return str_eqz(state, "ACCEPTING") || str_eqz(state, "ACCEPTED") || str_eqz(state, "PREPARING");
}

static void arc_status_read(struct str out, batch_take_fn *take_line, void *arg)
{
        struct map *names = map_new();
        struct str rest = out, fields[CODE + 1];
        const char *end = out.p + out.n;

        while (arc_next_line(&rest, fields))
                if (fields[NAME].n && map_count(names) < NAMES_MAX) /* what was asked for */
                        map_put(names, fields[ID], (void *)(uintptr_t)fields[NAME].p);
        while (arc_next_line(&out, fields)) {
                const char *name = map_get(names, fields[ID]);
                struct str after = {0};

                if (!fields[STATE].n || !arc_is_id(fields[ID]))
                        continue;
                if (name) {
                        after = str_make(name, (size_t)(end - name));
                        str_cut(&after, '|', &fields[NAME]);
                }
                take_line(arg, &(struct batch_line){.native = fields[ID],
                                                    .name = fields[NAME],
                                                    .reason = arc_phase(fields[STATE]) == BATCH_WAITING
                                                                      ? fields[STATE]
                                                                      : STR(""),
                                                    .phase = arc_phase(fields[STATE]),
                                                    .wants_files = arc_waits_for_files(fields[STATE])});
        }
        map_free(names);
}

/* Why a job has failed is text of the element. */
static void arc_explain(struct batch_call *c, struct str native)
{
        BUF_CLEANUP struct buf end = {0};

        c->method = "GET";
        c->text = true;
        buf_printf(&end, "jobs/" STR_FMT "/diagnose/failed", STR_ARG(native));
        if (arc_is_id(native))
                arc_add_path(c, buf_z(&end));
}

static struct str arc_explained(struct str out, enum batch_phase *phase)
{
        static const char *const cancelled[] = {"cancel", "Cancel", "killed by user", NULL},
                                 *const timeout[] = {"walltime",   "Walltime", "wall time",
                                                     "time limit", "imeout",   NULL},
                                 *const memory[] = {"memory", "Memory", NULL};

        if (batch_contains(out, cancelled))
                *phase = BATCH_CANCELLED;
        else if (batch_contains(out, timeout))
                *phase = BATCH_TIMEOUT;
        else if (batch_contains(out, memory))
                *phase = BATCH_MEMORY;
        return str_trim(out);
}

static void arc_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        (void)verb; /* BATCH_END is the only verb */
        c->method = "POST";
        arc_add_path(c, "jobs?action=kill");
        arc_add_ids(&c->input, natives);
}

static void arc_clean(struct batch_call *c, struct str natives)
{
        c->method = "POST";
        arc_add_path(c, "jobs?action=clean");
        arc_add_ids(&c->input, natives);
}

static void arc_capacity(struct batch_call *c)
{
        c->method = "GET";
        arc_add_path(c, "info");
}

/* Adds machines "CPUS:COUNT CPUS:COUNT ..."; how full they are was so some minutes ago, and is not told. */
static void arc_add_nodes(struct run_capacity *c, struct str nodes, uint64_t memory_bytes)
{
        struct str one, cpus;
        uint64_t size, count;

        while (str_word(&nodes, &one))
                if (str_cut(&one, ':', &cpus) && str_to_u64(cpus, &size) == 0 && str_to_u64(one, &count) == 0)
                        for (uint64_t i = 0; i < u64_min(count, NODES_MAX); i++)
                                batch_node_add(c,
                                               &(struct batch_node){.cpus = size,
                                                                    .idle_cpus = size,
                                                                    .memory_bytes = memory_bytes,
                                                                    .idle_memory_bytes = memory_bytes},
                                               size);
}

/* All slots count as idle since the beginning of time, so the agent subtracts its own tasks, and sends as
 * many as the queue's file allows. */
static void arc_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        struct str line, word;
        uint64_t slots, mib;

        (void)s;
        if (!str_cut(&out, '\n', &line) || !str_cut(&line, '|', &word) || !str_eqz(word, ELEMENT) ||
            !str_cut(&line, '|', &word) || str_to_u64(word, &slots) != 0 || !slots)
                return;
        str_cut(&line, '|', &word); /* line is what is behind it */
        uint64_t memory = str_to_u64(line, &mib) == 0 && mib ? u64_min(mib, MEMORY_MAX_MIB) : MEMORY_MAX_MIB;
        arc_add_nodes(c, word, memory * MIB);
        if (!c->nodes)
                batch_node_add(c,
                               &(struct batch_node){.cpus = slots,
                                                    .idle_cpus = slots,
                                                    .memory_bytes = memory * MIB,
                                                    .idle_memory_bytes = memory * MIB},
                               slots);
        c->at_ms = 1;
}

static void arc_file_path(const struct batch_settings *s, struct str native, struct str name, struct buf *out)
{
        const char *path = batch_setting(s, "path");

        buf_printf(out, "%s/rest/1.0/jobs/" STR_FMT "/session/", path ? path : "/arex", STR_ARG(native));
        for (size_t i = 0; i < name.n; i++)
                if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/", name.p[i]))
                        buf_char(out, name.p[i]);
                else
                        buf_printf(out, "%%%02X", (unsigned char)name.p[i]);
}

const struct batch_system batch_arc = {
        .name = "arc",
        .settings = settings,
        .service = &arc_service,
        .array_max = 1,
        .verbs = 1u << BATCH_END,
        .wordless_s = 60,
        .check = arc_check,
        .resources = arc_resources,
        .naming = arc_naming,
        .submit = arc_submit,
        .submitted = arc_submitted,
        .refused = arc_refused,
        .full = arc_full,
        .status = arc_status,
        .unnamed = arc_unnamed,
        .status_read = arc_status_read,
        .explain = arc_explain,
        .explained = arc_explained,
        .act = arc_act,
        .file_path = arc_file_path,
        .clean = arc_clean,
        .capacity = arc_capacity,
        .capacity_read = arc_capacity_read,
};

static int arc_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        return batch_open(&runner_arc, &batch_arc, c, ret, err);
}

const struct runner_kind runner_arc = {.name = "arc", .open = arc_open, BATCH_VERBS};
