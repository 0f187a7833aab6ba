/* Users of a simulation: they submit jobs, and jobs with parents when the parents have ended. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "sim/run_state.h"

void run_file_url(uint32_t cluster, uint32_t file, char *room, size_t size)
{
        snprintf(room, size, "https://store%u.sim/f%u", cluster, file);
}

static void add_inputs(const struct run *r, const struct sim_job *j, struct buf *urls, struct buf *sizes)
{
        for (uint32_t i = 0; i < j->inputs.count; i++) {
                uint32_t file = r->w->refs[j->inputs.first + i];
                char url[64];

                run_file_url(r->w->files[file].cluster, file, url, sizeof(url));
                buf_printf(urls, "%s%s", i ? "," : "", url);
                buf_printf(sizes, "%s%" PRIu64, i ? "," : "", r->w->files[file].bytes);
        }
}

static void run_jobs_add_number(struct submission_part *p, struct buf *room, const char *name, uint64_t value)
{
        size_t from = room->n;

        buf_printf(room, "%" PRIu64, value);
        submission_add_attribute(p, str_of(name), str_skip(buf_view(room), from), false);
}

/* Numbers are views of `room`, which has its memory from the start and so does not move. */
static void add_attributes(const struct sim_job *j, struct submission_part *p, struct buf *room)
{
        size_t from;

        buf_room(room, 256);
        buf_printf(room, "\"/sim/p%u\"", j->program);
        submission_add_attribute(p, STR("Cmd"), buf_view(room), false);
        run_jobs_add_number(p, room, "RequestCpus", j->cpus);
        if (j->memory_mib)
                run_jobs_add_number(p, room, "RequestMemory", j->memory_mib);
        if (j->gang)
                run_jobs_add_number(p, room, "GangSize", j->gang);
        if (j->asked_s)
                run_jobs_add_number(p, room, "AllowedExecuteDuration", j->asked_s);
        from = room->n;
        buf_printf(room, "\"https://store%u.sim/out\"", j->home);
        if (j->outputs.count)
                submission_add_attribute(p, STR("OutputDestination"), str_skip(buf_view(room), from), false);
}

/* One job: its files are the template's. Several: they are items. */
static void add_files(const struct run *r, uint32_t first, struct submission_part *p, struct buf *urls,
                      struct buf *sizes)
{
        const struct sim_job *j = &r->w->jobs[first];

        if (j->together == 1 || j->inputs.count == 0) {
                p->steps = j->together;
                if (j->inputs.count == 0)
                        return;
                buf_char(urls, '"');
                buf_char(sizes, '"');
                add_inputs(r, j, urls, sizes);
                buf_char(urls, '"');
                buf_char(sizes, '"');
                submission_add_attribute(p, STR("TransferInput"), buf_view(urls), false);
                submission_add_attribute(p, STR("TransferInputSizes"), buf_view(sizes), false);
                return;
        }
        for (uint32_t i = 0; i < j->together; i++) {
                buf_reset(sizes);
                add_inputs(r, j + i, urls, sizes);
                buf_char(urls, '\x1f');
                buf_str(urls, buf_view(sizes));
                buf_char(urls, '\n');
        }
        submission_add_variable(p, STR("in"));
        submission_add_variable(p, STR("bytes"));
        submission_add_attribute(p, STR("TransferInput"), STR("\"$(in)\""), true);
        submission_add_attribute(p, STR("TransferInputSizes"), STR("\"$(bytes)\""), true);
        p->items = buf_view(urls);
        p->rows = j->together;
}

void run_submit(struct run *r, uint32_t first)
{
        const struct sim_job *j = &r->w->jobs[first];
        struct buf room BUF_CLEANUP = {0}, urls BUF_CLEANUP = {0}, sizes BUF_CLEANUP = {0};
        struct submission s = {.at_ms = run_now(r)};
        struct submission_part *p = submission_add_part(&s);
        char owner[32];
        struct err err;
        uint64_t id;
        bool existing;

        snprintf(owner, sizeof(owner), "u%u@sim", j->user);
        s.owner = str_of(owner);
        memcpy(s.uuid, &first, sizeof(first));
        s.uuid[15] = 1;
        add_attributes(j, p, &room);
        add_files(r, first, p, &urls, &sizes);
        if (core_submit(sim_world_core(r->world), &s, false, &id, &existing, &err))
                sim_world_violation(r->world, "a submit was refused: %s", err.text);
        submission_deinit(&s);
        MEM_GROW(r->first_of, r->first_cap, id + 1);
        r->first_of[id] = first;
        if (r->guesses) {
                MEM_GROW(r->asked, r->asked_cap, r->asked_count + 1);
                r->asked[r->asked_count++] = id;
        }
        for (uint32_t i = 0; i < j->together; i++)
                r->times[first + i].submitted = run_now(r);
        r->waiting += j->together;
        run_gangs_submitted(r, id, first);
}

void run_job_ended(struct run *r, uint32_t job)
{
        const struct sim_span *children = &r->w->jobs[job].children;

        r->ended++;
        for (uint32_t i = 0; i < children->count; i++) {
                uint32_t child = r->w->refs[children->first + i];

                if (--r->waits[child] == 0)
                        run_submit(r, child);
        }
}
