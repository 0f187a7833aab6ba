#include "server/agents/templates.h"
#include "server/loop/expressions.h"

#include "base/format/hex.h"
#include "base/job/args.h"
#include "base/job/batch_word.h"
#include "base/job/macro.h"
#include "base/system/signals.h"
#include "classad/eval.h"
#include "core/lifecycle/lots.h"
#include "core/model/attributes.h"
#include "core/query.h"
#include "server/access/origin.h"
#include "server/agents/delegated_attributes.h"
#include "server/agents/grants.h"

#define STEPS_MAX     64     /* of a job: an agent refuses more, with a message */
#define RESOURCES_MAX 100000 /* units of one resource for one job */

struct maker {
        struct server *server;
        struct message *m;
        uint64_t request;
        uint32_t part;
        const struct ad *ad;
        struct attributes attr;
        struct eval eval;
        struct ad *late;           /* holds one late attribute at a time */
        struct symbols_use *names; /* names used by `late` */
        bool any_late;
        bool hands_on; /* the agent has a queue that hands jobs on */
};

/* The value of a text attribute, ready for the agent; borrowed until the maker ends. False: it has none. */
static bool text_of(struct maker *k, symbol name, struct str *ret)
{
        struct str late = core_part_late(k->server->core, k->request, k->part, name);
        BUF_CLEANUP struct buf escaped = {0};

        if (late.p) {
                k->any_late = true;
                struct symbols *y = core_symbols(k->server->core);
                struct symbols_use *before = symbols_use_set(y, k->names);
                int r = ad_set_text(k->late, name, late, NULL);

                symbols_use_set(y, before);
                if (r != 0)
                        return false;
                return eval_string(&k->eval, k->late, NULL, name, ret);
        }
        if (!eval_string(&k->eval, k->ad, NULL, name, ret))
                return false;
        if (!macro_present(*ret))
                return true;
        for (size_t i = 0; i < ret->n; i++)
                if (ret->p[i] == '$')
                        buf_addz(&escaped, "$(DOLLAR)");
                else
                        buf_char(&escaped, ret->p[i]);
        *ret = arena_str(&k->m->arena, buf_view(&escaped));
        return true;
}

static char *text(struct maker *k, symbol name)
{
        struct str v;

        return text_of(k, name, &v) ? message_text(k->m, v) : (char *)protobuf_c_empty_string;
}

static int64_t number(struct maker *k, symbol name, int64_t otherwise)
{
        eval_integer(&k->eval, k->ad, NULL, name, &otherwise);
        return otherwise < 0 ? 0 : otherwise;
}

static bool flag(struct maker *k, symbol name, bool otherwise)
{
        eval_boolean(&k->eval, k->ad, NULL, name, &otherwise);
        return otherwise;
}

static char **read_list(struct maker *k, struct str value, size_t *ret_count)
{
        struct str rest = value, one;
        size_t n = 0;
        char **v;

        while (macro_cut(&rest, ',', &one))
                n += one.n > 0;
        v = message_alloc(k->m, (n ? n : 1) * sizeof(*v));
        *ret_count = n;
        for (rest = value, n = 0; macro_cut(&rest, ',', &one);)
                if (one.n)
                        v[n++] = message_text(k->m, one);
        return v;
}

/* Sets *ret to the value of a text attribute, escaped for the agent, and borrowed until the maker is
 * freed. Returns false if the job does not have it. */
static void set_file_list(struct maker *k, Drover__Template *t)
{
        struct symbols *y = core_symbols(k->server->core);
        BUF_CLEANUP struct buf all = {0};
        struct str list, id;

        if (!text_of(k, symbols_intern(y, STR("DatasetList")), &list))
                return;
        buf_str(&all, list);
        if (text_of(k, symbols_intern(y, STR("DatasetId")), &id))
                buf_printf(&all, " " STR_FMT, STR_ARG(id));
        t->file_list = message_text(k->m, buf_view(&all));
}

/* Reads a list NAME=VALUE;NAME=VALUE. Returns the number of pairs. */
static size_t pairs(struct maker *k, struct str list, Drover__Remap ***ret)
{
        struct str rest, one;
        size_t n = 0;

        for (rest = list; macro_cut(&rest, ';', &one);)
                n++;
        *ret = message_alloc(k->m, (n ? n : 1) * sizeof(**ret));
        n = 0;
        for (rest = list; macro_cut(&rest, ';', &one);) {
                ptrdiff_t eq = str_find(one, '=');
                Drover__Remap *r;

                if (eq <= 0)
                        continue;
                r = message_alloc(k->m, sizeof(*r));
                drover__remap__init(r);
                r->name = message_text(k->m, str_trim(str_head(one, (size_t)eq)));
                r->path = message_text(k->m, str_trim(str_skip(one, (size_t)eq + 1)));
                (*ret)[n++] = r;
        }
        return n;
}

static void set_files(struct maker *k, Drover__Template *t)
{
        struct str v;

        if (text_of(k, k->attr.TransferInput, &v))
                t->input_files = read_list(k, v, &t->n_input_files);
        if (text_of(k, k->attr.TransferOutput, &v))
                t->output_files = read_list(k, v, &t->n_output_files);
        else
                t->all_outputs = true;
        t->output_destination = text(k, k->attr.OutputDestination);
        if (text_of(k, k->attr.TransferOutputRemaps, &v))
                t->n_output_remaps = pairs(k, v, &t->output_remaps);
}

static void set_transfer(struct maker *k, Drover__Template *t)
{
        struct str v;

        if (text_of(k, k->attr.ShouldTransferFiles, &v)) {
                if (str_ieqz(v, "YES"))
                        t->transfer = DROVER__TRANSFER__TRANSFER_YES;
                else if (str_ieqz(v, "NO"))
                        t->transfer = DROVER__TRANSFER__TRANSFER_NO;
                else if (str_ieqz(v, "IN_PLACE"))
                        t->transfer = DROVER__TRANSFER__TRANSFER_IN_PLACE;
        }
        t->outputs_on_failure = !(text_of(k, k->attr.WhenToTransferOutput, &v) && str_ieqz(v, "ON_SUCCESS"));
}

static void set_spooled(struct maker *k, Drover__Template *t)
{
        const struct submission_file *files;
        size_t count;

        if (core_request_spooled(k->server->core, k->request, &files, &count) != 0)
                return;
        t->spooled = message_alloc(k->m, (count ? count : 1) * sizeof(*t->spooled));
        for (size_t i = 0; i < count; i++) {
                Drover__SpoolRef *r = message_alloc(k->m, sizeof(*r));

                drover__spool_ref__init(r);
                r->name = message_text(k->m, files[i].name);
                r->sha256.data = (uint8_t *)arena_dup(&k->m->arena, files[i].sha256, 32);
                r->sha256.len = 32;
                r->size = files[i].size;
                r->executable = files[i].executable;
                t->spooled[t->n_spooled++] = r;
        }
}

/* ---- steps: attributes of the first step have plain names, those of further steps begin with Step1,
 * Step2, … */

struct step_maker {
        struct maker *k;
        unsigned number;
};

/* Returns the symbol of the step's attribute with this base name. */
static symbol of_step(struct step_maker *m, symbol name)
{
        struct symbols *y = core_symbols(m->k->server->core);
        BUF_CLEANUP struct buf own = {0};

        if (m->number == 0)
                return name;
        buf_printf(&own, "Step%u" STR_FMT, m->number, STR_ARG(symbols_name(y, name)));
        return symbols_intern(y, buf_view(&own));
}

static bool step_text_of(struct step_maker *m, symbol name, struct str *ret)
{
        return text_of(m->k, of_step(m, name), ret);
}

static char *step_text(struct step_maker *m, symbol name)
{
        return text(m->k, of_step(m, name));
}

/* Converts HTCondor's old environment syntax to the new one. */
static char *old_environment(struct step_maker *m)
{
        struct args words = {0};
        BUF_CLEANUP struct buf out = {0};
        struct str v;

        if (step_text_of(m, m->k->attr.Env, &v) && args_env_v1(&words, v, NULL) == 0)
                args_join_v2(&out, &words);
        args_deinit(&words);
        return message_text(m->k->m, buf_view(&out));
}

/* Returns the container image of the step as it is sent to the agent; "": none. */
static char *container(struct step_maker *m)
{
        struct maker *k = m->k;
        BUF_CLEANUP struct buf image = {0};
        struct str v;

        if (step_text_of(m, k->attr.ContainerImage, &v))
                return message_text(k->m, v);
        if (!step_text_of(m, k->attr.DockerImage, &v))
                return (char *)protobuf_c_empty_string;
        buf_printf(&image, "docker://" STR_FMT, STR_ARG(v));
        return message_text(k->m, buf_view(&image));
}

static Drover__Step *template_step(struct maker *k, unsigned number)
{
        struct symbols *y = core_symbols(k->server->core);
        struct step_maker m = {k, number};
        Drover__Step *step = message_alloc(k->m, sizeof(*step));
        struct str v;

        drover__step__init(step);
        step->executable = step_text(&m, k->attr.Cmd);
        if (step_text_of(&m, k->attr.Arguments, &v))
                step->arguments_v2 = message_text(k->m, v);
        else
                step->arguments_v1 = step_text(&m, k->attr.Args);
        if (step_text_of(&m, k->attr.Environment, &v))
                step->environment_v2 = message_text(k->m, v);
        else
                step->environment_v2 = old_environment(&m);
        step->stdin_file = step_text(&m, k->attr.In);
        step->stdout_file = step_text(&m, k->attr.Out);
        step->stderr_file = step_text(&m, k->attr.Err);
        step->container = container(&m);
        step->ignore_failure = flag(k, of_step(&m, symbols_intern(y, STR("IgnoreFailure"))), false);
        if (step_text_of(&m, symbols_intern(y, STR("ContainerWorkDir")), &v)) {
                step->container_own_workdir = true;
                step->container_workdir = message_text(k->m, v);
        }
        /* all steps share these */
        step->container_network = text(k, k->attr.DockerNetworkType);
        step->container_target_dir = text(k, k->attr.ContainerTargetDir);
        step->container_pull_always = text_of(k, k->attr.DockerPullPolicy, &v) && str_ieqz(v, "always");
        step->container_override_entrypoint = flag(k, k->attr.DockerOverrideEntrypoint, false);
        step->transfer_executable = flag(k, k->attr.TransferExecutable, true);
        return step;
}

static bool set_placement(struct maker *k, Drover__Step *step);

/* Returns true if the job is a placement job. */
static bool templates_set_steps(struct maker *k, Drover__Template *t)
{
        struct symbols *y = core_symbols(k->server->core);
        int64_t count = number(k, symbols_intern(y, STR("StepCount")), 1);
        struct str v;

        count = count < 1 ? 1 : count > STEPS_MAX ? STEPS_MAX + 1 : count;
        t->steps = message_alloc(k->m, (size_t)count * sizeof(*t->steps));
        while (t->n_steps < (size_t)count) {
                t->steps[t->n_steps] = template_step(k, (unsigned)t->n_steps);
                t->n_steps++;
        }
        if (text_of(k, symbols_intern(y, STR("ContainerMounts")), &v))
                t->n_mounts = pairs(k, v, &t->mounts);
        t->streams_in_sandbox = flag(k, symbols_intern(y, STR("StreamsInSandbox")), false);
        return set_placement(k, t->steps[0]);
}

/* ---- placement jobs: only the operation for the mover, which itself fetches and delivers */

static bool word_of(struct maker *k, const char *name, struct str *ret)
{
        return text_of(k, symbols_intern(core_symbols(k->server->core), str_of(name)), ret);
}

static void add_word(struct maker *k, Drover__Step *step, const char *name, struct str value)
{
        BUF_CLEANUP struct buf b = {0};

        if (name)
                buf_printf(&b, "%s=", name);
        buf_str(&b, value);
        step->argv[step->n_argv++] = message_text(k->m, buf_view(&b));
}

/* Adds the bytes that the job may write, or reserves; an rm is to tell what it frees. */
static void set_space(struct maker *k, Drover__Step *step, struct str type)
{
        uint64_t bytes = core_part_space(k->server->core, k->request, k->part);
        BUF_CLEANUP struct buf b = {0};

        if (str_ieqz(type, "rm"))
                bytes = 1;
        buf_printf(&b, "%llu", (unsigned long long)bytes);
        if (bytes)
                add_word(k, step, "space", buf_view(&b));
}

/* Returns true if the job is a placement job. */
static bool set_placement(struct maker *k, Drover__Step *step)
{
        static const struct {
                const char *attribute, *word;
        } texts[] = {{"AltProtocols", "alternatives"},
                     {"DapChecksum", "checksum"},
                     {"DapThirdParty", "third_party"},
                     {"DapVerify", "verify"}},
          numbers[] = {{"DapTries", "tries"}, {"DapRestartIn", "try_s"}, {"DapGiveUpAfter", "limit_s"}};
        struct symbols *y = core_symbols(k->server->core);
        struct str type, v;

        if (!word_of(k, "DapType", &type))
                return false;
        step->argv = message_alloc(k->m, 16 * sizeof(*step->argv));
        add_word(k, step, NULL, type);
        add_word(k, step, NULL, word_of(k, "SrcUrl", &v) ? v : STR(""));
        if (str_ieqz(type, "transfer"))
                add_word(k, step, NULL, word_of(k, "DestUrl", &v) ? v : STR(""));
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
                if (word_of(k, texts[i].attribute, &v))
                        add_word(k, step, texts[i].word, v);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
                BUF_CLEANUP struct buf b = {0};

                buf_printf(&b, "%lld",
                           (long long)number(k, symbols_intern(y, str_of(numbers[i].attribute)), 0));
                if (!str_eqz(buf_view(&b), "0"))
                        add_word(k, step, numbers[i].word, buf_view(&b));
        }
        set_space(k, step, type);
        return true;
}

static int32_t signal_of(struct maker *k, symbol name)
{
        struct str text;
        int64_t n = 0;

        if (eval_integer(&k->eval, k->ad, NULL, name, &n))
                return n > 0 && n < 65 ? (int32_t)n : 0;
        return text_of(k, name, &text) ? signal_number(text) : 0;
}

/* Sets checkpointing as HTCondor describes it: by checkpoint_exit_code, or by the older attributes. */
static void set_checkpointing(struct maker *k, Drover__Template *t)
{
        const struct attributes *a = &k->attr;
        int64_t code = -1;
        struct str when, files;

        t->kill_signal = signal_of(k, a->KillSig);
        t->vacate_ms = (uint64_t)number(k, a->JobMaxVacateTime, 0) * 1000;
        t->keeps_when_evicted =
                text_of(k, a->WhenToTransferOutput, &when) && str_ieqz(when, "ON_EXIT_OR_EVICT");
        if (!eval_integer(&k->eval, k->ad, NULL, a->CheckpointExitCode, &code))
                eval_integer(&k->eval, k->ad, NULL, a->SuccessCheckpointExitCode, &code);
        bool by_signal = flag(k, a->SuccessCheckpointExitBySignal, false);
        int32_t ended_by = signal_of(k, a->SuccessCheckpointExitSignal);
        if (by_signal ? ended_by == 0 : code < 0 || code > 255)
                return;
        Drover__Checkpointing *c = t->checkpointing = message_alloc(k->m, sizeof(*c));
        drover__checkpointing__init(c);
        c->by_signal = by_signal;
        c->code = by_signal ? ended_by : (int32_t)code;
        c->signal = signal_of(k, a->CheckpointSig);
        if (text_of(k, a->TransferCheckpoint, &files))
                c->files = read_list(k, files, &c->n_files);
}

static void set_limits(struct maker *k, Drover__Template *t)
{
        double cpus = 1;

        eval_real(&k->eval, k->ad, NULL, k->attr.RequestCpus, &cpus);
        t->cpus_milli = cpus > 0 && cpus < 1e9 ? (uint64_t)(cpus * 1000 + 0.5) : 1000;
        t->memory_bytes = (uint64_t)number(k, k->attr.RequestMemory, 0) << 20;
        t->disk_bytes = (uint64_t)number(k, k->attr.RequestDisk, 0) << 10;
        t->walltime_ms = (uint64_t)number(k, k->attr.AllowedExecuteDuration, 0) * 1000;
}

/* Sets what logs call the job by. That of a job from another server is a text of that server's. */
static void set_trace(struct maker *k, Drover__Origin *o, bool from_elsewhere, const struct core_request *r)
{
        symbol name = symbols_intern(core_symbols(k->server->core), STR(ORIGIN_TRACE));
        char uuid[HEX_UUID];
        struct str trace;

        hex_print_uuid(uuid, r->uuid);
        if (!from_elsewhere || !text_of(k, name, &trace) || trace.n > ORIGIN_TRACE_MAX)
                trace = str_of(uuid);
        o->trace = message_text(k->m, trace);
}

/* Sets the job's origin, for an agent that hands it on. */
static void set_origin(struct maker *k, Drover__Template *t, const struct core_request *r)
{
        struct symbols *y = core_symbols(k->server->core);
        Drover__Origin *o = message_alloc(k->m, sizeof(*o));
        BUF_CLEANUP struct buf servers = {0}, label = {0};
        struct core_delegation hop = {0};
        struct str path = STR_NONE, first;
        int64_t hops = ORIGIN_HOPS_DEFAULT;

        drover__origin__init(o);
        core_request_delegation(k->server->core, k->request, &hop);
        core_part_labels(k->server->core, k->request, k->part, &label);
        if (hop.origin) {
                buf_printf(&servers, STR_FMT " ", STR_ARG(hop.origin->servers));
                o->owner = message_text(k->m, hop.origin->owner);
                o->job = message_text(k->m, hop.origin->job);
                path = hop.origin->path;
                o->hops_left = hop.origin->hops_left;
        } else {
                o->owner = message_text(k->m, r->owner);
                eval_string(&k->eval, k->ad, NULL, symbols_intern(y, STR("DroverPath")), &path);
                eval_integer(&k->eval, k->ad, NULL, symbols_intern(y, STR("DroverMaxHops")), &hops);
                o->hops_left = hops < 0                     ? 0
                               : hops > SUBMISSION_HOPS_MAX ? SUBMISSION_HOPS_MAX
                                                            : (uint32_t)hops;
        }
        buf_addz(&servers, k->server->uuid);
        origin_path_cut(&path, &first);
        o->servers = message_text(k->m, buf_view(&servers));
        o->path = message_text(k->m, path);
        o->label = message_text(k->m, buf_view(&label));
        set_trace(k, o, hop.origin, r);
        if (k->hands_on) {
                if (!delegated_attributes_add(k->server, k->m, k->request, k->part, k->ad, o))
                        o->hops_left = 0;
                k->any_late |= core_part_late_name(k->server->core, k->request, k->part, 0) != 0;
        }
        t->origin = o;
}

/* ---- countable resources, and attributes for a batch system */

static bool starts(struct str s, const char *with)
{
        struct str head = str_head(s, strlen(with));

        return s.n > head.n && str_ieqz(head, with);
}

/* Returns the number of units requested, or 0 when the attribute is not a request of a resource or not a
 * number. */
static uint32_t resource(struct eval *e, const struct ad *ad, symbol name, struct str text)
{
        int64_t n = 0;
        struct str what = str_skip(text, 7);

        if (!starts(text, "Request") || str_ieqz(what, "Cpus") || str_ieqz(what, "Memory") ||
            str_ieqz(what, "Disk") || !eval_integer(e, ad, NULL, name, &n))
                return 0;
        return n > 0 && n <= RESOURCES_MAX ? (uint32_t)n : 0;
}

static bool is_word(struct str text)
{
        return batch_word_is(text) || str_ieqz(text, "JobBatchName") || str_ieqz(text, "NodeCount") ||
               str_ieqz(text, "TasksPerNode") || str_ieqz(text, "ReservationId");
}

static char *word(struct message *m, struct eval *e, const struct ad *ad, symbol name)
{
        BUF_CLEANUP struct buf b = {0};
        struct str s;
        int64_t n;

        if (eval_string(e, ad, NULL, name, &s))
                return message_text(m, s);
        if (!eval_integer(e, ad, NULL, name, &n))
                return NULL;
        buf_printf(&b, "%lld", (long long)n);
        return message_text(m, buf_view(&b));
}

static void add_resource(struct message *m, Drover__Template *t, struct str name, uint32_t count)
{
        Drover__Resource *r = message_alloc(m, sizeof(*r));

        drover__resource__init(r);
        r->name = message_text(m, name);
        r->count = count;
        t->resources[t->n_resources++] = r;
}

static void add_attribute(struct message *m, Drover__Template *t, struct str name, char *value)
{
        Drover__Attribute *a = message_alloc(m, sizeof(*a));

        drover__attribute__init(a);
        a->name = message_text(m, name);
        a->value = value;
        t->attributes[t->n_attributes++] = a;
}

/* Sets t->resources from RequestNAME, for every NAME but Cpus, Memory and Disk; and t->attributes from
 * JobBatchName, NodeCount, TasksPerNode and ReservationId, which are for a batch system. */
static void set_place(struct message *m, struct eval *e, const struct ad *ad, Drover__Template *t)
{
        size_t most = 0;

        for (const struct ad *p = ad; p; p = ad_parent(p))
                most += ad_count(p);
        t->resources = message_alloc(m, (most + 1) * sizeof(*t->resources));
        t->attributes = message_alloc(m, (most + 1) * sizeof(*t->attributes));
        for (const struct ad *p = ad; p; p = ad_parent(p)) {
                uint32_t at = 0;
                symbol name;
                const struct expr *x;

                while (ad_next(p, &at, &name, &x)) {
                        struct str text = symbols_name(ad_symbols(ad), name);

                        if (ad_find(ad, name) != x)
                                continue; /* the attribute of the nearer ad counts */
                        uint32_t count = resource(e, ad, name, text);
                        char *value = is_word(text) ? word(m, e, ad, name) : NULL;
                        if (count)
                                add_resource(m, t, str_skip(text, 7), count);
                        if (value)
                                add_attribute(m, t, text, value);
                }
        }
}

static void template_fill(struct maker *k, Drover__Template *t, const struct core_request *r)
{
        BUF_CLEANUP struct buf credentials = {0};
        bool streams[2];
        struct str registers;
        char **names;

        t->request = k->request;
        t->part = k->part;
        t->owner = message_text(k->m, r->owner);
        t->iwd = text(k, k->attr.Iwd);
        t->filesystem_domain = text(k, k->attr.FileSystemDomain);
        t->user_log = text(k, k->attr.UserLog);
        t->modules = text(k, k->attr.Modules);
        t->conda_env = text(k, k->attr.CondaEnv);
        t->python_env = text(k, k->attr.PythonEnv);
        core_credential_names(k->server->core, k->ad, &credentials);
        t->credentials = read_list(k, buf_view(&credentials), &t->n_credentials);
        t->n_variables = core_part_variables(k->server->core, k->request, k->part, &names);
        t->variables = message_alloc(k->m, (t->n_variables + 1) * sizeof(*t->variables));
        for (size_t i = 0; i < t->n_variables; i++)
                t->variables[i] = message_text(k->m, str_of(names[i]));
        t->output_bytes_max = core_part_space(k->server->core, k->request, k->part);
        t->register_outputs =
                text_of(k, symbols_intern(core_symbols(k->server->core), STR("RegisterOutputs")),
                        &registers) &&
                registers.n && !str_ieqz(registers, "false");
        if (!templates_set_steps(k, t))
                set_files(k, t);
        set_file_list(k, t);
        set_transfer(k, t);
        set_spooled(k, t);
        set_limits(k, t);
        set_checkpointing(k, t);
        t->chirps = core_chirp_allowed(k->server->core, k->request, k->part, streams);
        t->launches = core_launch_allowed(k->server->core, k->request, k->part);
        t->stream_stdout = streams[0];
        t->stream_stderr = streams[1];
        set_place(k->m, &k->eval, k->ad, t);
        set_origin(k, t, r);
}

Drover__Template *templates_make(struct server *s, struct message *m, uint64_t request, uint32_t part,
                                 bool hands_on, bool *ret_late)
{
        struct maker k = {.server = s, .m = m, .request = request, .part = part, .hands_on = hands_on};
        struct core_request r;
        Drover__Template *t;

        k.ad = core_request_ad(s->core, request, part);
        if (!k.ad || core_request_get(s->core, request, &r) != 0)
                return NULL;
        attributes_intern(&k.attr, core_symbols(s->core));
        expressions_eval_init(&k.eval, r.submitted_ms / 1000);
        eval_share(&k.eval); /* what comes behind the limit of one expression has no value */
        k.eval.random = request;
        k.names = symbols_use_new(core_symbols(s->core), STR_NONE);
        k.late = ad_new(core_symbols(s->core));
        ad_set_parent(k.late, k.ad);
        t = message_alloc(m, sizeof(*t));
        drover__template__init(t);
        template_fill(&k, t, &r);
        ad_free(k.late);
        symbols_use_free(k.names);
        eval_deinit(&k.eval);
        *ret_late = k.any_late;
        return t;
}
