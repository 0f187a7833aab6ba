/* Reads a template's rule for jobs that start together, and computes the gang of a member. */
#include "core/model/gang_rule.h"

#include "core/model/core_parts.h"
#include <errno.h>

#define UNIVERSE_PARALLEL 11

static enum gang_within read_within(struct core *c, const struct job_template *t, bool *ret_ok)
{
        struct str text;

        *ret_ok = true;
        if (!ad_find(t->ad, c->attr.GangWithin))
                return ad_find(t->ad, c->attr.GangGroupBy) ? GANG_GROUP : GANG_ANYWHERE;
        if (!eval_string(&c->eval, t->ad, NULL, c->attr.GangWithin, &text))
                text = STR_NONE;
        if (str_ieqz(text, "node"))
                return GANG_NODE;
        if (str_ieqz(text, "group"))
                return GANG_GROUP;
        *ret_ok = str_ieqz(text, "anywhere");
        return GANG_ANYWHERE;
}

void gang_rule_read(struct core *c, struct job_template *t)
{
        const struct attributes *a = &c->attr;
        struct gang_rule *g = &t->gang;
        struct str by = STR("Group"), policy = STR_NONE;
        bool groups = false, ok;
        int64_t universe = 0, size;

        if (!ad_find(t->ad, a->GangSize) || !eval_integer(&c->eval, t->ad, NULL, a->GangSize, &size) ||
            size < 0 || size > GANG_SIZE_MAX) {
                eval_reset(&c->eval);
                return;
        }
        *g = (struct gang_rule){.size = size ? size : -1, .within = read_within(c, t, &ok)};
        eval_integer(&c->eval, t->ad, NULL, a->JobUniverse, &universe);
        eval_boolean(&c->eval, t->ad, NULL, a->WantParallelSchedulingGroups, &groups);
        if (groups && !ad_find(t->ad, a->GangWithin)) {
                g->within = GANG_GROUP;
                by = STR("ParallelSchedulingGroup");
        }
        eval_string(&c->eval, t->ad, NULL, a->GangGroupBy, &by);
        g->by = symbols_intern(c->symbols, by);
        g->first_ends = g->launches = universe == UNIVERSE_PARALLEL;
        if (eval_string(&c->eval, t->ad, NULL, a->ParallelShutdownPolicy, &policy) && policy.n)
                g->first_ends = str_ieqz(policy, "WAIT_FOR_NODE0");
        eval_reset(&c->eval);
}

int gang_check(struct core *c, const struct job_template *t, uint64_t members, struct err *err)
{
        const struct attributes *a = &c->attr;
        int64_t size = t->gang.size < 0 ? (int64_t)members : t->gang.size;
        bool ok;

        for (size_t i = 0; i < t->late_count; i++)
                if (t->late[i].name == a->GangSize || t->late[i].name == a->GangWithin ||
                    t->late[i].name == a->GangGroupBy || t->late[i].name == a->ParallelShutdownPolicy)
                        return err_set(err, -EINVAL, STR_FMT " must be the same for all jobs",
                                       STR_ARG(symbols_name(c->symbols, t->late[i].name)));
        if (!ad_find(t->ad, a->GangSize))
                return 0;
        if (t->gang.size == 0 || size > GANG_SIZE_MAX)
                return err_set(
                        err, -EINVAL,
                        "GangSize (gang_size, machine_count) is not a number from 1 to %u, or 0 for all",
                        GANG_SIZE_MAX);
        if (members % (uint64_t)size)
                return err_set(err, -EINVAL,
                               "%llu jobs are not gangs of %lld: let `queue` make a multiple of gang_size",
                               (unsigned long long)members, (long long)size);
        read_within(c, t, &ok);
        eval_reset(&c->eval);
        if (!ok)
                return err_set(err, -EINVAL, "GangWithin (gang_within) is none of node, group and anywhere");
        if (t->jobs_max < size)
                return err_set(err, -EINVAL,
                               "of a gang of %lld jobs never more than %lld may be under way "
                               "(max_materialize)",
                               (long long)size, (long long)t->jobs_max);
        return 0;
}

uint32_t gang_size(const struct part *p)
{
        int64_t size = p->job_template ? p->job_template->gang.size : 0;

        return size < 0 ? p->count : (uint32_t)size;
}

bool gang_of(const struct request *r, uint32_t member, uint32_t *ret_first, uint32_t *ret_size)
{
        const struct part *p;

        if (!r->has_gangs)
                return false;
        if (r->together) {
                *ret_first = 0;
                *ret_size = r->count;
                return true;
        }
        p = request_part(r, member, NULL);
        *ret_size = gang_size(p);
        if (*ret_size == 0)
                return false;
        *ret_first = member - (member - p->first) % *ret_size;
        if (p->first + p->count - *ret_first < *ret_size) /* in requests from before submits were checked */
                *ret_size = p->first + p->count - *ret_first;
        return true;
}

void gang_widen(const struct request *r, const struct set *members, struct set *to)
{
        uint32_t first, size;

        set_copy(to, members);
        for (uint64_t m = set_first(members); m != SET_END;) {
                if (!gang_of(r, (uint32_t)m, &first, &size)) {
                        const struct part *p = request_part(r, (uint32_t)m, NULL);

                        first = p->first;
                        size = p->count;
                } else {
                        set_add_range(to, first, (uint64_t)first + size);
                }
                m = set_next(members, (uint64_t)first + size);
        }
}

/* Returns whether all of [first, end) are in the bucket of the first; otherwise *ret_other is one that is
 * not. */
static bool alike(struct core *c, const struct request *r, uint32_t first, uint64_t end, uint32_t *ret_other)
{
        const struct bucket *b = request_bucket(c, r, first);

        if (!b || !b->members || set_count_range(b->members, first, end) == end - first)
                return true;
        for (uint32_t m = first; m < end; m++)
                if (!set_has(b->members, m)) {
                        *ret_other = m;
                        return false;
                }
        return true;
}

int gang_refuse(struct core *c, const struct request *r, struct err *err)
{
        for (size_t i = 0; r->has_gangs && i < r->part_count; i++) {
                const struct part *p = &r->parts[i];
                uint32_t size = gang_size(p), other;

                for (uint32_t at = p->first; size > 0 && at < p->first + p->count; at += size)
                        if (!alike(c, r, at, (uint64_t)at + size, &other))
                                return err_set(
                                        err, CORE_INVALID,
                                        "jobs %u and %u start together, and differ in what they "
                                        "require or in their priority: the jobs of a gang must be alike",
                                        at, other);
        }
        return 0;
}
