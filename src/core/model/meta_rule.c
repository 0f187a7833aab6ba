#include "core/model/meta_rule.h"

#include <errno.h>
#include <math.h>

#include "core/model/core_parts.h"

/* Returns false if the attribute is neither a word nor a weight. */
static bool read_prefer(struct core *c, const struct job_template *t, double *ret)
{
        struct str word;

        *ret = 1;
        if (!ad_find(t->ad, c->attr.MetaPrefer))
                return true;
        if (eval_string(&c->eval, t->ad, NULL, c->attr.MetaPrefer, &word)) {
                *ret = str_ieqz(word, "time") ? 1 : 0;
                return str_ieqz(word, "time") || str_ieqz(word, "cost");
        }
        if (eval_real(&c->eval, t->ad, NULL, c->attr.MetaPrefer, ret) && *ret >= 0 && *ret <= 1)
                return true;
        *ret = 1;
        return false;
}

void meta_rule_read(struct core *c, struct job_template *t)
{
        struct meta_rule *m = &t->meta;

        if (!ad_find(t->ad, c->attr.Meta) && !ad_find(t->ad, c->attr.CoAllocate))
                return;
        eval_boolean(&c->eval, t->ad, NULL, c->attr.Meta, &m->wanted);
        eval_boolean(&c->eval, t->ad, NULL, c->attr.CoAllocate, &m->together);
        m->wanted |= m->together;
        read_prefer(c, t, &m->time);
        eval_reset(&c->eval);
}

int meta_check(struct core *c, const struct job_template *t, uint64_t members, struct err *err)
{
        const struct attributes *a = &c->attr;
        double weight;
        bool ok;

        for (size_t i = 0; i < t->late_count; i++)
                if (t->late[i].name == a->Meta || t->late[i].name == a->MetaPrefer ||
                    t->late[i].name == a->CoAllocate)
                        return err_set(err, -EINVAL, STR_FMT " must be the same for all jobs",
                                       STR_ARG(symbols_name(c->symbols, t->late[i].name)));
        if (!t->meta.wanted)
                return 0;
        ok = read_prefer(c, t, &weight);
        eval_reset(&c->eval);
        if (!ok)
                return err_set(err, -EINVAL,
                               "MetaPrefer (prefer) is none of time, cost, and a number from 0 to 1");
        if (t->gang.size)
                return err_set(err, -EINVAL,
                               "a meta job cannot be in a gang: use parts = together, or no gang_size");
        if (t->reservation)
                return err_set(err, -EINVAL,
                               "a meta job makes its own reservation, and cannot name one (reservation)");
        if (ad_find(t->ad, a->DapType))
                return err_set(err, -EINVAL, "a placement job cannot be a meta job");
        if (t->meta.together && (members > META_PARTS_MAX || t->jobs_max < (int64_t)members))
                return err_set(err, -EINVAL, "at most %u jobs can start together as parts of one job",
                               META_PARTS_MAX);
        return 0;
}

int meta_refuse(const struct request *r, struct err *err)
{
        if (!r->together)
                return 0;
        for (size_t i = 0; i < r->part_count; i++)
                if (!r->parts[i].job_template->meta.together)
                        return err_set(
                                err, CORE_INVALID,
                                "some of its parts start together (CoAllocate) and others do not: write "
                                "parts = together before the first queue");
        if (r->count > META_PARTS_MAX)
                return err_set(err, CORE_INVALID, "at most %u jobs can start together as parts of one job",
                               META_PARTS_MAX);
        return 0;
}
