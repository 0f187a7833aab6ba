#include "agent/message/job_result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/message/wire.h"
#include "base/mem.h"

_Static_assert((int)OUTCOME_EXITED == DROVER__OUTCOME__EXITED && (int)OUTCOME_LOST == DROVER__OUTCOME__LOST,
               "the numbers are the wire's");

static Drover__StepResult *make_step(const struct step_result *from, struct arena *room)
{
        Drover__StepResult *to = arena_alloc(room, sizeof(*to));

        drover__step_result__init(to);
        to->signaled = from->signaled;
        to->exit_code = from->exit_code;
        to->started_ms = from->started_ms;
        to->ended_ms = from->ended_ms;
        to->stdout_end = from->printed[0];
        to->stderr_end = from->printed[1];
        return to;
}

static ProtobufCBinaryData make_tail(const struct stream_tail *t)
{
        return (ProtobufCBinaryData){t->count, (uint8_t *)t->bytes};
}

static Drover__OutputRef **make_outputs(const struct output_ref *list, size_t count, struct arena *room)
{
        Drover__OutputRef **to = arena_alloc(room, (count + 1) * sizeof(Drover__OutputRef *));

        for (size_t i = 0; i < count; i++) {
                Drover__OutputRef *o = to[i] = arena_alloc(room, sizeof(*o));

                drover__output_ref__init(o);
                o->name = list[i].name;
                o->sha256.data = (uint8_t *)(uintptr_t)list[i].sha256;
                o->sha256.len = 32;
                o->size = list[i].size;
                o->mode = list[i].mode;
        }
        return to;
}

Drover__JobResult *wire_job_result(const struct attempt_name *name, const struct job_result *r,
                                   struct arena *room)
{
        Drover__JobResult *m = arena_alloc(room, sizeof(*m));

        drover__job_result__init(m);
        m->request = name->request;
        m->member = name->member;
        m->fence = name->fence;
        m->outcome = (Drover__Outcome)r->outcome;
        m->started_ms = r->started_ms;
        m->ended_ms = r->ended_ms;
        m->cpu_user_ms = r->cpu_user_ms;
        m->cpu_system_ms = r->cpu_system_ms;
        m->memory_peak_bytes = r->memory_peak_bytes;
        m->hold_code = r->hold_code;
        m->hold_subcode = r->hold_subcode;
        m->reason = r->reason ? r->reason : (char *)"";
        m->bytes_in = r->bytes_in;
        m->bytes_out = r->bytes_out;
        m->bytes_freed = r->bytes_freed;
        m->energy_uj = r->energy_uj;
        m->n_steps = r->step_count;
        m->steps = arena_alloc(room, (r->step_count + 1) * sizeof(*m->steps));
        for (unsigned i = 0; i < r->step_count; i++)
                m->steps[i] = make_step(&r->steps[i], room);
        m->checkpoint = r->is_checkpoint;
        m->stdout_tail = make_tail(&r->tails[0]);
        m->stderr_tail = make_tail(&r->tails[1]);
        m->stdout_size = r->tails[0].size;
        m->stderr_size = r->tails[1].size;
        m->n_outputs = r->output_count;
        m->outputs = make_outputs(r->outputs, r->output_count, room);
        m->n_sent = r->sent_count;
        m->sent = make_outputs(r->sent, r->sent_count, room);
        return m;
}

void job_result_pack(const struct attempt_name *name, const struct job_result *r, struct buf *out)
{
        struct arena room = {0};
        const Drover__JobResult *m = wire_job_result(name, r, &room);
        size_t n = drover__job_result__get_packed_size(m);

        drover__job_result__pack(m, buf_room(out, n));
        out->n += n;
        arena_deinit(&room);
}

static struct output_ref *take_outputs(Drover__OutputRef *const *list, size_t count)
{
        struct output_ref *to = mem_array(NULL, count + 1, sizeof(*to));

        for (size_t i = 0; i < count; i++) {
                to[i] = (struct output_ref){
                        .name = mem_dupz(list[i]->name), .size = list[i]->size, .mode = list[i]->mode};
                if (list[i]->sha256.len == 32)
                        memcpy(to[i].sha256, list[i]->sha256.data, 32);
        }
        return to;
}

static struct stream_tail take_tail(ProtobufCBinaryData bytes, uint64_t size)
{
        return (struct stream_tail){bytes.len ? mem_dup(bytes.data, bytes.len) : NULL, bytes.len, size};
}

static void outputs_free(struct output_ref *list, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(list[i].name);
        free(list);
}

void job_result_deinit(struct job_result *r)
{
        outputs_free(r->outputs, r->output_count);
        outputs_free(r->sent, r->sent_count);
        free(r->reason);
        for (int k = 0; k < 2; k++)
                free(r->tails[k].bytes);
        *r = (struct job_result){0};
}

int job_result_unpack(const void *p, size_t n, struct attempt_name *ret_name, struct job_result *ret)
{
        Drover__JobResult *m = drover__job_result__unpack(NULL, n, p);

        if (!m)
                return -EINVAL;
        *ret_name = (struct attempt_name){m->request, m->fence, m->member};
        *ret = (struct job_result){.outcome = (enum outcome)m->outcome,
                                   .set = true,
                                   .is_checkpoint = m->checkpoint,
                                   .started_ms = m->started_ms,
                                   .ended_ms = m->ended_ms,
                                   .cpu_user_ms = m->cpu_user_ms,
                                   .cpu_system_ms = m->cpu_system_ms,
                                   .memory_peak_bytes = m->memory_peak_bytes,
                                   .bytes_in = m->bytes_in,
                                   .bytes_out = m->bytes_out,
                                   .bytes_freed = m->bytes_freed,
                                   .energy_uj = m->energy_uj,
                                   .hold_code = m->hold_code,
                                   .hold_subcode = m->hold_subcode,
                                   .reason = mem_dupz(m->reason),
                                   .outputs = take_outputs(m->outputs, m->n_outputs),
                                   .output_count = m->n_outputs,
                                   .output_cap = m->n_outputs + 1,
                                   .sent = take_outputs(m->sent, m->n_sent),
                                   .sent_count = m->n_sent,
                                   .sent_cap = m->n_sent + 1,
                                   .tails = {take_tail(m->stdout_tail, m->stdout_size),
                                             take_tail(m->stderr_tail, m->stderr_size)}};
        for (size_t i = 0; i < m->n_steps && i < STEPS_MAX; i++) {
                const Drover__StepResult *s = m->steps[i];

                ret->steps[ret->step_count++] = (struct step_result){s->signaled,
                                                                     s->exit_code,
                                                                     s->started_ms,
                                                                     s->ended_ms,
                                                                     {s->stdout_end, s->stderr_end}};
        }
        drover__job_result__free_unpacked(m, NULL);
        return 0;
}
