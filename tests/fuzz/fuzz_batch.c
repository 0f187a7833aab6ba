/* What batch systems' commands print, which anybody's job may have a part in: the first byte chooses the
 * system, the second what is read of it. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "run/batch/batch.h"
#include "run/call/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *arg, const struct batch_line *line)
{
        size_t *sum = arg;

        for (size_t i = 0; i < line->native.n; i++)
                *sum += (unsigned char)line->native.p[i];
        for (size_t i = 0; i < line->name.n; i++)
                *sum += (unsigned char)line->name.p[i];
        for (size_t i = 0; i < line->reason.n; i++)
                *sum += (unsigned char)line->reason.p[i];
}

struct skimmed {
        const struct request_service *service;
        struct buf out, errors;
};

static void on_row(void *arg, const struct json_skim_rows *rows, const struct str *values)
{
        struct skimmed *s = arg;

        s->service->take("u", rows, values, &s->out, &s->errors);
}

/* What a service answers, in two pieces; then the lines that are made of it. */
static size_t answer(const struct batch_system *s, struct str text)
{
        const struct batch_settings none = {NULL, 0};
        struct skimmed a = {.service = s->service};
        struct run_capacity capacity = {0};
        struct json_skim skim;
        size_t sum = 0;

        json_skim_init(&skim, s->service->rows, on_row, &a);
        json_skim_take(&skim, str_head(text, text.n / 2));
        json_skim_take(&skim, str_skip(text, text.n / 2));
        json_skim_deinit(&skim);
        if (s->capacity_read)
                s->capacity_read(&none, buf_view(&a.out), &capacity);
        s->status_read(buf_view(&a.out), take, &sum);
        sum += s->refused(1, buf_view(&a.errors));
        buf_deinit(&a.out);
        buf_deinit(&a.errors);
        return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct batch_system *const systems[] = {
                &batch_slurm,    &batch_gridengine, &batch_exec,       &batch_pbs,
                &batch_htcondor, &batch_slurm_rest, &batch_kubernetes, &batch_arc};
        const struct batch_settings none = {NULL, 0};
        struct run_capacity capacity = {0};
        enum batch_phase phase = BATCH_UNFIT;
        BUF_CLEANUP struct buf native = {0};
        uint64_t when;
        size_t sum = 0;

        if (size < 2)
                return 0;
        const struct batch_system *s = systems[(data[0] - 'a') % (sizeof(systems) / sizeof(*systems))];
        MEM_CLEANUP char *text = mem_alloc(size);
        memcpy(text, data + 2, size - 2);
        text[size - 2] = 0;
        struct str out = str_make(text, size - 2);
        switch (data[1]) {
        case 's':
                sum += s->is_answer && s->is_answer(out);
                s->status_read(out, take, &sum);
                break;
        case 'p':
                if (s->past_read)
                        s->past_read(out, take, &sum);
                break;
        case 'c':
                if (s->capacity_read)
                        s->capacity_read(&none, out, &capacity);
                break;
        case 'a':
                if (s->service)
                        sum += answer(s, out);
                break;
        case 'e':
                if (s->explained)
                        sum += s->explained(out, &phase).n;
                break;
        case 'w':
                if (s->when_said)
                        s->when_said(out, out, &when);
                break;
        default:
                sum += s->submitted(out, &native) && batch_is_native(buf_view(&native));
                sum += s->refused(1, out);
                sum += s->full && s->full(out);
                sum += s->refused_array && s->refused_array(out);
                sum += s->past_away && s->past_away(out);
                sum += batch_whole(s, out).n;
                answer_make_utf8(out);
        }
        return sum == SIZE_MAX ? 1 : 0;
}
