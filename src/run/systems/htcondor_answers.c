#include "run/call/answer.h"
#include "run/systems/htcondor.h"

#include <jansson.h>

/* Most values of an answer, each of which takes some hundred bytes once parsed. */
#define VALUES_MAX 1000000

/* Parses a list of ads, or returns NULL. Bytes that are not UTF-8 become '?', since one bad text must not
 * hide all jobs. */
static json_t *read_list(struct str out)
{
        if (answer_json_values(out) > VALUES_MAX)
                return NULL;
        answer_make_utf8(out);
        json_t *list = out.n ? json_loadb(out.p, out.n, JSON_ALLOW_NUL, NULL) : NULL;
        if (list && !json_is_array(list)) {
                json_decref(list);
                return NULL;
        }
        return list;
}

static struct str htcondor_text_of(const json_t *ad, const char *name)
{
        const json_t *v = json_object_get(ad, name);

        return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static int64_t htcondor_number_of(const json_t *ad, const char *name)
{
        return json_integer_value(json_object_get(ad, name));
}

/* Reads the number of a resource that the site has named, ignoring case. */
static int64_t number_of_resource(const json_t *ad, const char *name)
{
        const char *key;
        json_t *v;

        json_object_foreach ((json_t *)(uintptr_t)ad, key, v)
                if (str_ieqz(str_of(key), name))
                        return json_integer_value(v);
        return 0;
}

bool htcondor_is_answer(struct str out)
{
        json_t *list = read_list(out);
        bool none = str_trim(out).n == 0; /* some versions print nothing at all if there are no jobs */

        json_decref(list);
        return list || none;
}

/* Returns whether a removed or held job still occupies its machine, for as long as ending it takes.
 * NumJobStarts may lag as well. */
static bool is_ending(const json_t *ad)
{
        return htcondor_text_of(ad, "RemoteHost").n > 0;
}

/* Interprets hold reason codes. A user's hold of a job that has not begun does not end it, nor do files that
 * are still being transferred to the schedd. Machines hold (21) by rules of their site, of which
 * POLICY:HOLD_IF_MEMORY_EXCEEDED has a subcode of its own. A job held by a rule has begun, and ends with
 * that result. */
static void take_held(const json_t *ad, struct batch_line *line)
{
        enum {
                BY_SOMEBODY = 1,
                BY_JOBS_RULE = 3,
                AT_SUBMIT = 15,
                SPOOLING = 16,
                BY_MACHINES_RULE = 21,
                BY_POOLS_RULE = 26,
                OUT_OF_RESOURCES = 34,
                DURATION = 46,
                EXECUTE
        };

        enum { OF_MEMORY = 102, OF_DISK = 104 };
        int64_t code = htcondor_number_of(ad, "HoldReasonCode"),
                sub = htcondor_number_of(ad, "HoldReasonSubCode");
        bool by_hand = code == BY_SOMEBODY || code == AT_SUBMIT || code == SPOOLING,
             by_rule = code == BY_JOBS_RULE || code == BY_MACHINES_RULE || code == BY_POOLS_RULE,
             has_begun = htcondor_number_of(ad, "NumJobStarts") > 0;
        line->reason = htcondor_text_of(ad, "HoldReason");
        line->stays = true;
        if ((code == OUT_OF_RESOURCES && sub != OF_DISK) || (code == BY_MACHINES_RULE && sub == OF_MEMORY))
                line->phase = BATCH_MEMORY;
        else if (code == DURATION || code == EXECUTE)
                line->phase = BATCH_TIMEOUT;
        else if (has_begun && (by_hand || by_rule)) /* a hold ends it */
                line->phase = BATCH_CANCELLED;
        else if (!by_hand)
                line->phase = BATCH_UNFIT;
        else
                line->phase = BATCH_WAITING, line->stays = false;
}

static void take_ended(const json_t *ad, struct batch_line *line, struct buf *why)
{
        /* started a second time, which has no effect; how the first run ended is not reported */
        line->phase = htcondor_number_of(ad, "NumJobStarts") > 1 ? BATCH_LOST : BATCH_OVER;
        if (json_is_true(json_object_get(ad, "ExitBySignal")))
                buf_printf(why, "signal %lld", (long long)htcondor_number_of(ad, "ExitSignal"));
        else if (htcondor_number_of(ad, "ExitCode") != 0)
                buf_printf(why, "status %lld", (long long)htcondor_number_of(ad, "ExitCode"));
        line->reason = buf_view(why);
}

static bool take_status(const json_t *ad, struct batch_line *line, struct buf *why)
{
        enum { IDLE = 1, RUNNING, REMOVED, COMPLETED, HELD, TRANSFERRING, SUSPENDED }; /* JobStatus */
        int64_t status = htcondor_number_of(ad, "JobStatus");
        if ((status == REMOVED || status == HELD) && is_ending(ad))
                status = RUNNING;
        switch (status) {
        case IDLE:
                line->stays = htcondor_number_of(ad, "NumJobStarts") > 0;
                line->phase = line->stays ? BATCH_LOST : BATCH_WAITING;
                return true;
        case RUNNING:
        case TRANSFERRING:
        case SUSPENDED:
                line->phase = BATCH_RUNNING;
                line->stopped = status == SUSPENDED;
                return true;
        case REMOVED:
                line->phase = BATCH_CANCELLED;
                line->reason = htcondor_text_of(ad, "RemoveReason");
                return true;
        case COMPLETED: take_ended(ad, line, why); return true;
        case HELD: take_held(ad, line); return true;
        default: /* a state of later versions: the job must not be taken for gone */
                line->phase = BATCH_RUNNING;
                return status > 0;
        }
}

void htcondor_jobs_read(struct str out, batch_take_fn *take, void *arg)
{
        json_t *list = read_list(out), *ad;
        size_t i;
        json_array_foreach (list, i, ad) {
                BUF_CLEANUP struct buf native = {0}, why = {0};
                struct batch_line line = {.name = htcondor_text_of(ad, HTCONDOR_NAME),
                                          .user = htcondor_text_of(ad, "Owner"),
                                          .reason = STR("")};
                int64_t cluster = htcondor_number_of(ad, "ClusterId");

                if (cluster <= 0 || !take_status(ad, &line, &why))
                        continue;
                buf_printf(&native, "%lld", (long long)cluster);
                if (htcondor_number_of(ad, HTCONDOR_COUNT) != 1)
                        buf_printf(&native, ".%lld", (long long)htcondor_number_of(ad, "ProcId"));
                line.native = buf_view(&native);
                take(arg, &line);
        }
        json_decref(list);
}

struct slot {
        int64_t cpus, cpus_left, memory, memory_left, gpus, gpus_left;
};

static bool is_sane(const struct slot *s)
{
        return s->cpus > 0 && s->cpus <= 1000000 && s->memory >= 0 && s->memory <= INT32_MAX &&
               s->cpus_left >= 0 && s->cpus_left <= s->cpus;
}

/* Limits a number to what the machine has. */
static int64_t within(int64_t left, int64_t all)
{
        return left < 0 ? 0 : left > all ? all : left;
}

static void add_slot(const struct slot *s, struct run_capacity *c)
{
        int64_t gpus = within(s->gpus, 1000000);
        const struct batch_node node = {.cpus = (uint64_t)s->cpus,
                                        .idle_cpus = (uint64_t)s->cpus_left,
                                        .memory_bytes = (uint64_t)s->memory << 20,
                                        .idle_memory_bytes = (uint64_t)within(s->memory_left, s->memory)
                                                             << 20,
                                        .gpus = (uint64_t)gpus,
                                        .idle_gpus = (uint64_t)within(s->gpus_left, gpus)};

        batch_node_add(c, &node, node.cpus);
}

/* Adds a slot. A partitionable slot reports what is left in Cpus, Memory and GPUs; dynamic slots are cut
 * from it. A machine that its owner uses, or that is drained, takes no jobs. */
static void take_slot(const json_t *ad, struct run_capacity *c)
{
        struct str state = htcondor_text_of(ad, "State"), type = htcondor_text_of(ad, "SlotType");
        struct slot s = {.cpus_left = htcondor_number_of(ad, "Cpus"),
                         .memory_left = htcondor_number_of(ad, "Memory"),
                         .gpus_left = number_of_resource(ad, "GPUs")};

        s.cpus = s.cpus_left;
        s.memory = s.memory_left;
        s.gpus = s.gpus_left;
        if (str_ieqz(type, "Dynamic") || str_ieqz(state, "Owner") || str_ieqz(state, "Drained"))
                return;
        if (str_ieqz(type, "Partitionable")) {
                s.cpus = htcondor_number_of(ad, "TotalSlotCpus");
                s.memory = htcondor_number_of(ad, "TotalSlotMemory");
                s.gpus = number_of_resource(ad, "TotalSlotGPUs");
        } else if (!str_ieqz(state, "Unclaimed")) {
                s.cpus_left = s.memory_left = s.gpus_left = 0;
        }
        if (s.memory > 0 && s.memory_left <= 0)
                s.cpus_left = 0;
        if (is_sane(&s))
                add_slot(&s, c);
}

void htcondor_slots_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        json_t *list = read_list(out), *ad;
        size_t i;

        (void)s;
        json_array_foreach (list, i, ad)
                take_slot(ad, c);
        json_decref(list);
}
