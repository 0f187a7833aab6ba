#include "run/task/run_id.h"

void run_id_print(struct buf *out, struct run_id id)
{
        buf_printf(out, "%llu.%u.%u.%u", (unsigned long long)id.request, id.member, id.fence, id.step);
}

bool run_id_parse(struct str text, struct run_id *ret)
{
        uint64_t n[4];
        struct str one;

        for (size_t i = 0; i < 4; i++)
                if (!str_cut(&text, '.', &one) || str_to_u64(one, &n[i]) != 0 || (i && n[i] > UINT32_MAX))
                        return false;
        *ret = (struct run_id){n[0], (uint32_t)n[1], (uint32_t)n[2], (uint32_t)n[3], 0};
        return text.n == 0;
}
