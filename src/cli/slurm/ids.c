#include "cli/slurm/ids.h"

#include <errno.h>

#include "cli/slurm/batch.h"

int job_id_parse(struct str text, struct job_id *ret, struct err *err)
{
        struct str rest = text, number, tasks = STR_NONE;
        struct job_id id = {.whole = true};
        ptrdiff_t dot = str_find(text, '.'), bar;

        if (dot >= 0) {
                id.step = str_skip(text, (size_t)dot + 1);
                rest = str_head(text, (size_t)dot);
        }
        bar = str_find(rest, '_');
        number = bar < 0 ? rest : str_head(rest, (size_t)bar);
        if (str_to_u64(number, &id.request) != 0 || id.request == 0)
                return err_set(err, -EINVAL, "Invalid job id " STR_FMT, STR_ARG(str_head(text, 100)));
        if (id.request >= BATCH_MEMBER_STEP) {
                if (bar >= 0 || id.request / BATCH_MEMBER_STEP > TASKS_NUMBER_MAX)
                        return err_set(err, -EINVAL, "Invalid job id " STR_FMT, STR_ARG(str_head(text, 100)));
                id.member = (uint32_t)(id.request / BATCH_MEMBER_STEP);
                id.request %= BATCH_MEMBER_STEP;
                if (id.request == 0)
                        return err_set(err, -EINVAL, "Invalid job id " STR_FMT, STR_ARG(text));
                id.by_member = true;
                id.whole = false;
        }
        if (bar >= 0) {
                tasks = str_skip(rest, (size_t)bar + 1);
                if (tasks.n > 2 && tasks.p[0] == '[' && tasks.p[tasks.n - 1] == ']')
                        tasks = str_make(tasks.p + 1, tasks.n - 2);
                if (!str_eqz(tasks, "*")) {
                        if (tasks_read(tasks, &id.tasks, NULL) != 0)
                                return err_set(err, -EINVAL, "Invalid job id " STR_FMT,
                                               STR_ARG(str_head(text, 100)));
                        id.whole = false;
                }
        }
        *ret = id;
        return 0;
}

void job_id_deinit(struct job_id *id)
{
        tasks_deinit(&id->tasks);
}

void job_id_select(const struct job_id *id, struct buf *ret_id, struct buf *constraint)
{
        const struct tasks *t = &id->tasks;

        buf_printf(ret_id, "%llu", (unsigned long long)id->request);
        if (id->by_member)
                buf_printf(ret_id, ".%u", id->member);
        if (t->count == 0 || !constraint)
                return;
        buf_char(constraint, '(');
        for (size_t i = 0, end; i < t->count; i = end) {
                for (end = i + 1; end < t->count && t->numbers[end] == t->numbers[end - 1] + 1;)
                        end++;
                if (end - i == 1)
                        buf_printf(constraint, "%sSlurmTask == %u", i ? " || " : "", t->numbers[i]);
                else
                        buf_printf(constraint, "%s(SlurmTask >= %u && SlurmTask <= %u)", i ? " || " : "",
                                   t->numbers[i], t->numbers[end - 1]);
        }
        buf_char(constraint, ')');
}
