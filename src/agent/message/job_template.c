/* Texts and lists of texts stay in the memory of the unpacked message; other lists are copied. */
#include "agent/message/job_template.h"

#include "base/arena.h"
#include "base/mem.h"
#include "wire/drover.pb-c.h"

_Static_assert((int)TRANSFER_NO == DROVER__TRANSFER__TRANSFER_NO &&
                       (int)TRANSFER_IN_PLACE == DROVER__TRANSFER__TRANSFER_IN_PLACE,
               "the numbers are the wire's");

struct unpacked {
        struct job_template t; /* first */
        Drover__Template *m;
        struct arena room;
};

static void take_steps(struct unpacked *u)
{
        u->t.step_count = u->m->n_steps;
        u->t.steps = arena_alloc(&u->room, (u->m->n_steps + 1) * sizeof(*u->t.steps));
        for (size_t i = 0; i < u->m->n_steps; i++) {
                const Drover__Step *s = u->m->steps[i];

                u->t.steps[i] =
                        (struct job_step){.executable = s->executable,
                                          .arguments_v1 = s->arguments_v1,
                                          .arguments_v2 = s->arguments_v2,
                                          .argv = s->argv,
                                          .argv_count = s->n_argv,
                                          .environment_v2 = s->environment_v2,
                                          .stdin_file = s->stdin_file,
                                          .stdout_file = s->stdout_file,
                                          .stderr_file = s->stderr_file,
                                          .transfer_executable = s->transfer_executable,
                                          .ignore_failure = s->ignore_failure,
                                          .container = s->container,
                                          .container_network = s->container_network,
                                          .container_target_dir = s->container_target_dir,
                                          .container_pull_always = s->container_pull_always,
                                          .container_workdir = s->container_workdir,
                                          .container_own_workdir = s->container_own_workdir,
                                          .container_override_entrypoint = s->container_override_entrypoint};
        }
}

static void take_lists(struct unpacked *u)
{
        const Drover__Template *m = u->m;

        u->t.spooled_count = m->n_spooled;
        u->t.spooled = arena_alloc(&u->room, (m->n_spooled + 1) * sizeof(*u->t.spooled));
        for (size_t i = 0; i < m->n_spooled; i++)
                u->t.spooled[i] = (struct spool_ref){
                        .name = m->spooled[i]->name,
                        .sha256 = m->spooled[i]->sha256.len == 32 ? m->spooled[i]->sha256.data : NULL,
                        .size = m->spooled[i]->size,
                        .executable = m->spooled[i]->executable};
        u->t.output_remap_count = m->n_output_remaps;
        u->t.output_remaps = arena_alloc(&u->room, (m->n_output_remaps + 1) * sizeof(*u->t.output_remaps));
        for (size_t i = 0; i < m->n_output_remaps; i++)
                u->t.output_remaps[i] =
                        (struct job_remap){m->output_remaps[i]->name, m->output_remaps[i]->path};
        u->t.mount_count = m->n_mounts;
        u->t.mounts = arena_alloc(&u->room, (m->n_mounts + 1) * sizeof(*u->t.mounts));
        for (size_t i = 0; i < m->n_mounts; i++)
                u->t.mounts[i] = (struct job_mount){m->mounts[i]->name, m->mounts[i]->path};
        u->t.resource_count = m->n_resources;
        u->t.resources = arena_alloc(&u->room, (m->n_resources + 1) * sizeof(*u->t.resources));
        for (size_t i = 0; i < m->n_resources; i++)
                u->t.resources[i] = (struct job_resource){m->resources[i]->name, m->resources[i]->count};
        u->t.attribute_count = m->n_attributes;
        u->t.attributes = arena_alloc(&u->room, (m->n_attributes + 1) * sizeof(*u->t.attributes));
        for (size_t i = 0; i < m->n_attributes; i++)
                u->t.attributes[i] = (struct job_attribute){m->attributes[i]->name, m->attributes[i]->value};
}

static void take_origin(struct unpacked *u, const Drover__Origin *o)
{
        if (!o)
                return;
        u->t.origin = arena_alloc(&u->room, sizeof(*u->t.origin));
        *u->t.origin = (struct job_origin){.servers = o->servers,
                                           .owner = o->owner,
                                           .label = o->label,
                                           .path = o->path,
                                           .job = o->job,
                                           .hops_left = o->hops_left,
                                           .trace = o->trace,
                                           .attribute_count = o->n_attributes};
        u->t.origin->attributes =
                arena_alloc(&u->room, (o->n_attributes + 1) * sizeof(*u->t.origin->attributes));
        for (size_t i = 0; i < o->n_attributes; i++)
                u->t.origin->attributes[i] =
                        (struct job_attribute){o->attributes[i]->name, o->attributes[i]->value};
}

static void take_checkpointing(struct unpacked *u, const Drover__Checkpointing *c)
{
        if (!c)
                return;
        u->t.checkpointing = arena_alloc(&u->room, sizeof(*u->t.checkpointing));
        *u->t.checkpointing = (struct job_checkpointing){.by_signal = c->by_signal,
                                                         .code = c->code,
                                                         .signal = c->signal,
                                                         .files = c->files,
                                                         .file_count = c->n_files};
}

struct job_template *job_template_unpack(const void *p, size_t n)
{
        Drover__Template *m = drover__template__unpack(NULL, n, p);

        if (!m)
                return NULL;
        struct unpacked *u = mem_new(struct unpacked);
        u->m = m;
        u->t = (struct job_template){.request = m->request,
                                     .part = m->part,
                                     .owner = m->owner,
                                     .iwd = m->iwd,
                                     .filesystem_domain = m->filesystem_domain,
                                     .variables = m->variables,
                                     .variable_count = m->n_variables,
                                     .input_files = m->input_files,
                                     .input_file_count = m->n_input_files,
                                     .output_files = m->output_files,
                                     .output_file_count = m->n_output_files,
                                     .all_outputs = m->all_outputs,
                                     .outputs_on_failure = m->outputs_on_failure,
                                     .transfer = (enum job_transfer)m->transfer,
                                     .cpus_milli = m->cpus_milli,
                                     .memory_bytes = m->memory_bytes,
                                     .disk_bytes = m->disk_bytes,
                                     .walltime_ms = m->walltime_ms,
                                     .output_destination = m->output_destination,
                                     .kill_signal = m->kill_signal,
                                     .vacate_ms = m->vacate_ms,
                                     .keeps_when_evicted = m->keeps_when_evicted,
                                     .credentials = m->credentials,
                                     .credential_count = m->n_credentials,
                                     .streams_in_sandbox = m->streams_in_sandbox,
                                     .modules = m->modules,
                                     .conda_env = m->conda_env,
                                     .python_env = m->python_env,
                                     .file_list = m->file_list,
                                     .chirps = m->chirps,
                                     .launches = m->launches,
                                     .streams_back = {m->stream_stdout, m->stream_stderr},
                                     .output_bytes_max = m->output_bytes_max,
                                     .register_outputs = m->register_outputs};
        take_steps(u);
        take_lists(u);
        take_origin(u, m->origin);
        take_checkpointing(u, m->checkpointing);
        return &u->t;
}

void job_template_pack(const struct job_template *t, struct buf *out)
{
        const struct unpacked *u = (const struct unpacked *)t;
        size_t n = drover__template__get_packed_size(u->m);

        drover__template__pack(u->m, buf_room(out, n));
        out->n += n;
}

uint64_t job_template_nodes(const struct job_template *t)
{
        uint64_t n;

        for (size_t i = 0; i < t->attribute_count; i++)
                if (str_ieqz(str_of(t->attributes[i].name), "NodeCount") &&
                    str_to_u64(str_of(t->attributes[i].value), &n) == 0 && n > 1)
                        return n;
        return 1;
}

void job_template_set_transfer(struct job_template *t, enum job_transfer how)
{
        struct unpacked *u = (struct unpacked *)t;

        t->transfer = how;
        u->m->transfer = (Drover__Transfer)how;
}

void job_template_free(struct job_template *t)
{
        struct unpacked *u = (struct unpacked *)t;

        if (!u)
                return;
        drover__template__free_unpacked(u->m, NULL);
        arena_deinit(&u->room);
        free(u);
}
