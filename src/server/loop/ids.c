#include "server/loop/ids.h"

#include <errno.h>

void ids_deinit(struct ids *ids)
{
        for (size_t i = 0; i < ids->count; i++)
                set_deinit(&ids->items[i].members);
        free(ids->items);
        *ids = (struct ids){0};
}

static bool parse_number(struct str text, uint64_t *ret)
{
        return text.n > 0 && text.p[0] >= '0' && text.p[0] <= '9' && str_to_u64(text, ret) == 0;
}

static int parse_one(struct ids *ids, struct str text, struct err *err)
{
        ptrdiff_t dot = str_find(text, '.');
        struct str request = dot < 0 ? text : str_head(text, (size_t)dot);
        struct id id = {0};

        if (!parse_number(request, &id.request) || id.request == 0)
                return err_set(err, -EINVAL, "'" STR_FMT "' is not an id: write 7, 7.42 or 7.0-99",
                               STR_ARG(text));
        if (dot >= 0) {
                id.some = true;
                if (set_parse(&id.members, str_skip(text, (size_t)dot + 1), IDS_MEMBERS) != 0 ||
                    set_count(&id.members) == 0) {
                        set_deinit(&id.members);
                        return err_set(err, -EINVAL, "'" STR_FMT "' is not an id: write 7, 7.42 or 7.0-99",
                                       STR_ARG(text));
                }
        }
        MEM_GROW(ids->items, ids->cap, ids->count + 1);
        ids->items[ids->count++] = id;
        return 0;
}

int ids_parse(struct ids *ids, struct str text, struct err *err)
{
        struct str rest = text, head;
        int r = 0;

        if (str_trim(text).n == 0)
                return err_set(err, -EINVAL, "an id is missing: write 7, 7.42 or 7.0-99");
        while (r == 0 && str_cut(&rest, ',', &head)) {
                if (ids->count == IDS_MAX)
                        return err_set(err, -E2BIG, "more than %d ids at once", IDS_MAX);
                r = parse_one(ids, str_trim(head), err);
        }
        return r;
}

void ids_merge(struct ids *ids)
{
        size_t n = 0;

        for (size_t i = 0; i < ids->count; i++) {
                struct id *from = &ids->items[i], *to = NULL;

                for (size_t k = 0; k < n && !to; k++)
                        if (ids->items[k].request == from->request)
                                to = &ids->items[k];
                if (!to) {
                        ids->items[n++] = *from;
                        continue;
                }
                set_add_all(&to->members, &from->members);
                to->some &= from->some;
                set_deinit(&from->members);
        }
        ids->count = n;
}

int ids_parse_job(struct str text, uint64_t *ret_request, uint32_t *ret_member)
{
        ptrdiff_t dot = str_find(text, '.');
        uint64_t request, member;

        if (dot < 0 || !parse_number(str_head(text, (size_t)dot), &request) ||
            !parse_number(str_skip(text, (size_t)dot + 1), &member) || request == 0 || member >= IDS_MEMBERS)
                return -EINVAL;
        *ret_request = request;
        *ret_member = (uint32_t)member;
        return 0;
}
