#include "cli/slurm/tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

static int tasks_fail_list(struct str text, struct err *err)
{
        return err_set(err, -EINVAL,
                       "Invalid job array specification \"" STR_FMT
                       "\": write 1-100, 1-9:2, 1,3,5 or 1-100%%5, with numbers up to %u",
                       STR_ARG(str_head(text, 100)), TASKS_NUMBER_MAX);
}

/* Reads a number, a range, or a range with a step. */
static int read_piece(struct str piece, uint64_t *ret_first, uint64_t *ret_last, uint64_t *ret_step)
{
        struct str first, last;

        *ret_step = 1;
        if (!str_cut(&piece, '-', &first) || str_to_u64(first, ret_first) != 0)
                return -EINVAL;
        *ret_last = *ret_first;
        if (piece.p && piece.n == 0 && first.p[first.n] == '-')
                return -EINVAL;
        if (piece.n) {
                if (!str_cut(&piece, ':', &last) || str_to_u64(last, ret_last) != 0)
                        return -EINVAL;
                if (piece.p && str_to_u64(piece, ret_step) != 0)
                        return -EINVAL;
        }
        return *ret_step == 0 || *ret_last < *ret_first || *ret_last > TASKS_NUMBER_MAX ? -EINVAL : 0;
}

static uint32_t common_step(const uint32_t *numbers, size_t count)
{
        uint32_t step = count > 1 ? numbers[1] - numbers[0] : 1;

        for (size_t i = 2; i < count; i++)
                if (numbers[i] - numbers[i - 1] != step)
                        return 0;
        return step;
}

int tasks_read(struct str text, struct tasks *ret, struct err *err)
{
        MEM_CLEANUP unsigned char *there = NULL;
        struct str rest = text, list, piece;
        struct tasks t = {0};
        uint64_t at_once;

        str_cut(&rest, '%', &list);
        if (rest.n) {
                if (str_to_u64(rest, &at_once) != 0 || at_once > TASKS_NUMBER_MAX)
                        return tasks_fail_list(text, err);
                t.at_once = (uint32_t)at_once;
        }
        there = mem_zalloc(TASKS_NUMBER_MAX / 8 + 1);
        if (list.n == 0)
                return tasks_fail_list(text, err);
        while (str_cut(&list, ',', &piece)) {
                uint64_t first, last, step;

                if (read_piece(piece, &first, &last, &step) != 0)
                        return tasks_fail_list(text, err);
                for (uint64_t i = first; i <= last; i += step) {
                        t.count += !(there[i / 8] >> (i % 8) & 1);
                        there[i / 8] |= (unsigned char)(1u << (i % 8));
                }
        }
        t.numbers = mem_array(NULL, t.count, sizeof(*t.numbers));
        for (size_t i = 0, n = 0; n < t.count; i++)
                if (there[i / 8] >> (i % 8) & 1)
                        t.numbers[n++] = (uint32_t)i;
        t.step = common_step(t.numbers, t.count);
        *ret = t;
        return 0;
}

void tasks_deinit(struct tasks *t)
{
        free(t->numbers);
        *t = (struct tasks){0};
}

void tasks_write(const uint32_t *numbers, size_t count, size_t max, struct buf *out)
{
        uint32_t step = count > 2 ? common_step(numbers, count) : 0;
        size_t start = out->n;

        if (step > 1) {
                buf_printf(out, "%u-%u:%u", numbers[0], numbers[count - 1], step);
                return;
        }
        for (size_t i = 0, end; i < count; i = end) {
                size_t before = out->n;

                for (end = i + 1; end < count && numbers[end] == numbers[end - 1] + 1;)
                        end++;
                buf_printf(out, "%s%u", i ? "," : "", numbers[i]);
                if (end - i > 1)
                        buf_printf(out, "-%u", numbers[end - 1]);
                if (max && out->n - start > max) {
                        buf_truncate(out, before);
                        buf_addz(out, ",...");
                        return;
                }
        }
}
