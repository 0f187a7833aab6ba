/* The number of an edited part is that of its base part, plus part_count times one more than the serial of
 * its group. Serials are never used twice, so part numbers are not either.
 */
#include "core/model/edit.h"

#include <errno.h>

#include "base/mem.h"
#include "base/pack.h"
#include "core/model/core_parts.h"
#include "core/model/submission.h"

#define SERIAL_MAX (UINT32_MAX / SUBMISSION_PARTS_MAX - 2)

/* ---- groups */

static const struct edits *edits_get(const struct request *r)
{
        static const struct edits none;
        const struct edits *e = request_cold(r)->edits;

        return e ? e : &none;
}

static struct edits *edits_make(struct request *r)
{
        struct request_cold *cold = request_cold_make(r);

        if (!cold->edits)
                cold->edits = mem_new(struct edits);
        return cold->edits;
}

static struct edit_group *group_of(const struct request *r, uint32_t member)
{
        const struct edits *e = edits_get(r);

        if (!set_has(&e->members, member))
                return NULL;
        for (uint32_t i = 0; i < e->count; i++)
                if (set_has(&e->groups[i]->members, member))
                        return e->groups[i];
        return NULL;
}

const struct set *edits_members(const struct request *r)
{
        return &edits_get(r)->members;
}

struct str edits_of(const struct request *r, uint32_t member)
{
        const struct edit_group *g = group_of(r, member);

        return g ? g->changes : STR_NONE;
}

static struct edit_part *group_part(const struct edit_group *g, uint32_t base)
{
        for (uint32_t i = 0; i < g->part_count; i++)
                if (g->parts[i].base == base)
                        return &g->parts[i];
        return NULL;
}

static uint32_t part_number(const struct request *r, const struct edit_group *g, uint32_t base)
{
        return r->part_count * (g->serial + 1) + base;
}

struct part *request_part_edited(const struct request *r, uint32_t number)
{
        const struct edits *e = edits_get(r);
        uint32_t low = 0, high = e->count, serial;
        struct edit_part *p;

        if (r->part_count == 0 || number < r->part_count)
                return NULL;
        serial = number / r->part_count - 1;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (e->groups[middle]->serial < serial)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == e->count || e->groups[low]->serial != serial)
                return NULL;
        p = group_part(e->groups[low], number % r->part_count);
        return p ? &p->part : NULL;
}

struct part *request_part_of_edit(const struct request *r, uint32_t member, uint32_t base, uint32_t *ret)
{
        const struct edit_group *g = group_of(r, member);
        struct edit_part *p = g ? group_part(g, base) : NULL;

        if (!p)
                return NULL;
        *ret = part_number(r, g, base);
        return &p->part;
}

static struct edit_group *group_find(const struct edits *e, struct str changes)
{
        for (uint32_t i = 0; i < e->count; i++)
                if (str_eq(e->groups[i]->changes, changes))
                        return e->groups[i];
        return NULL;
}

static struct edit_group *group_add(struct edits *e, uint32_t serial, struct str changes)
{
        struct edit_group *g = mem_new(struct edit_group);

        g->serial = serial;
        g->changes = str_make(mem_dup(changes.p, changes.n), changes.n);
        MEM_GROW(e->groups, e->cap, e->count + 1);
        e->groups[e->count++] = g;
        return g;
}

static int64_t group_free(struct core *c, struct edit_group *g)
{
        int64_t kib = 0;

        for (uint32_t i = 0; i < g->part_count; i++) {
                job_template_unref(c, g->parts[i].part.job_template);
                kib += g->parts[i].kib;
        }
        free(g->parts);
        free((char *)g->changes.p);
        set_deinit(&g->members);
        free(g);
        return kib;
}

/* Frees groups without members. Returns the KiB that they counted. */
static int64_t groups_drop_empty(struct core *c, struct edits *e)
{
        uint32_t kept = 0;
        int64_t kib = 0;

        for (uint32_t i = 0; i < e->count; i++)
                if (set_count(&e->groups[i]->members))
                        e->groups[kept++] = e->groups[i];
                else
                        kib += group_free(c, e->groups[i]);
        e->count = kept;
        return kib;
}

static bool has_any(const struct request *r, uint32_t base, const struct set *members)
{
        const struct part *p = &r->parts[base];

        return p->count && set_count_range(members, p->first, (uint64_t)p->first + p->count);
}

uint32_t edit_kib(const struct job_template *t)
{
        return (uint32_t)(job_template_full_bytes(t) / 1024 + 1);
}

/* Makes the missing parts of the group: one with a template of its own for each base part of its members. */
static int group_complete(struct core *c, struct request *r, struct edit_group *g, int64_t *kib,
                          struct err *err)
{
        for (uint32_t base = 0; base < r->part_count; base++) {
                const struct part *from = &r->parts[base];
                struct job_template *t;
                struct edit_part *p;
                int e;

                if (!has_any(r, base, &g->members) || group_part(g, base))
                        continue;
                e = job_template_edit(c, from->job_template, g->changes, str_of(request_owner(r)), &t, err);
                if (e)
                        return e;
                g->parts = mem_array(g->parts, g->part_count + 1, sizeof(*g->parts));
                p = &g->parts[g->part_count++];
                *p = (struct edit_part){.base = base, .part = *from};
                p->part.job_template = t;
                p->kib = edit_kib(t);
                *kib += p->kib;
                r->periodic |= t->periodic_policy;
                r->leaves |= t->leaves;
        }
        return 0;
}

/* ---- edits */

/* Returns those of `members` that are in the group (NULL: that were not edited); the caller frees the set. */
static struct set members_among(const struct request *r, const struct edit_group *g,
                                const struct set *members)
{
        struct set mine;

        set_copy(&mine, members);
        if (g)
                set_keep_all(&mine, &g->members);
        else
                set_remove_all(&mine, &edits_get(r)->members);
        return mine;
}

int edits_each(const struct request *r, const struct set *members, struct str changes,
               int (*fn)(void *arg, const struct edit_step *step), void *arg)
{
        const struct edits *e = edits_get(r);
        int result = 0;

        for (uint32_t i = 0; i <= e->count && !result; i++) {
                const struct edit_group *g = i ? e->groups[i - 1] : NULL;
                struct set mine = members_among(r, g, members);
                struct buf BUF_CLEANUP all = {0};
                const struct edit_group *to = NULL;

                if (set_count(&mine)) {
                        changes_merge(&all, g ? g->changes : STR_NONE, changes);
                        to = group_find(e, buf_view(&all));
                }
                for (uint32_t base = 0; set_count(&mine) && base < r->part_count && !result; base++) {
                        struct edit_step step = {.from = &r->parts[base], .changes = buf_view(&all)};

                        if (!has_any(r, base, &mine))
                                continue;
                        step.first = (uint32_t)set_next(&mine, step.from->first);
                        step.is_new = !to || !group_part(to, base);
                        result = fn(arg, &step);
                }
                set_deinit(&mine);
        }
        return result;
}

/* Gives the changes to those of the members that are in `from`, in addition to that group's changes. */
static int edit_some(struct core *c, struct request *r, struct edit_group *from, const struct set *members,
                     struct str changes, int64_t *kib, struct err *err)
{
        struct edits *e = edits_make(r);
        struct set mine = members_among(r, from, members);
        struct buf BUF_CLEANUP all = {0};
        struct edit_group *to;
        int result = 0;

        if (set_count(&mine)) {
                changes_merge(&all, from ? from->changes : STR_NONE, changes);
                to = group_find(e, buf_view(&all));
                if (!to && (e->count >= 2 * EDIT_GROUPS_MAX || e->next_serial >= SERIAL_MAX)) {
                        result = err_set(err, -E2BIG, "the request was edited in too many ways");
                } else if (to != from || !from) {
                        if (!to)
                                to = group_add(e, e->next_serial++, buf_view(&all));
                        if (from)
                                set_remove_all(&from->members, &mine);
                        set_add_all(&to->members, &mine);
                        set_add_all(&e->members, &mine);
                        result = c->config.shadow ? 0 : group_complete(c, r, to, kib, err);
                }
        }
        set_deinit(&mine);
        return result;
}

int edits_apply(struct core *c, struct request *r, const struct set *members, struct str changes,
                int64_t *ret_kib, struct err *err)
{
        struct edits *e = edits_make(r);
        uint32_t count = e->count;
        int64_t kib = 0;
        int result;

        if (!changes_ok(changes))
                return err_set(err, -EINVAL, "its changes are damaged");
        result = edit_some(c, r, NULL, members, changes, &kib, err);
        for (uint32_t i = 0; i < count && !result; i++)
                result = edit_some(c, r, e->groups[i], members, changes, &kib, err);
        kib -= groups_drop_empty(c, e);
        r->kib += (uint32_t)kib;
        *ret_kib = kib;
        return result;
}

int edits_restore(struct core *c, struct request *r, uint32_t serial, const struct set *members,
                  struct str changes, int64_t *ret_kib, struct err *err)
{
        struct edits *e = edits_make(r);
        struct edit_group *g;
        int64_t kib = 0;
        int result;

        if (!changes_ok(changes) || serial > SERIAL_MAX || set_count(members) == 0 ||
            set_next(members, r->count) != SET_END || (e->count && e->groups[e->count - 1]->serial >= serial))
                return err_set(err, -EINVAL, "its changes are damaged");
        g = group_add(e, serial, changes);
        set_add_all(&g->members, members);
        set_add_all(&e->members, members);
        if (e->next_serial <= serial)
                e->next_serial = serial + 1;
        result = c->config.shadow ? 0 : group_complete(c, r, g, &kib, err);
        r->kib += (uint32_t)kib;
        *ret_kib = kib;
        return result;
}

void edits_continue(struct request *r, uint32_t next_serial)
{
        struct edits *e = edits_make(r);

        if (e->next_serial < next_serial)
                e->next_serial = next_serial;
}

void edits_free(struct core *c, struct request *r)
{
        struct edits *e = r->cold ? r->cold->edits : NULL;

        if (!e)
                return;
        for (uint32_t i = 0; i < e->count; i++)
                group_free(c, e->groups[i]);
        free(e->groups);
        set_deinit(&e->members);
        free(e);
        r->cold->edits = NULL;
}

size_t edits_bytes(const struct request *r)
{
        const struct edits *e = edits_get(r);
        size_t n = 0;

        for (uint32_t i = 0; i < e->count; i++)
                n += sizeof(*e->groups[i]) + e->groups[i]->changes.n + set_bytes(&e->groups[i]->members) +
                     e->groups[i]->part_count * sizeof(struct edit_part);
        return n + (e->count ? sizeof(*e) + set_bytes(&e->members) : 0);
}

void edits_follow(struct request *r)
{
        const struct edits *e = edits_get(r);

        for (uint32_t i = 0; i < e->count; i++)
                for (uint32_t k = 0; k < e->groups[i]->part_count; k++) {
                        struct edit_part *p = &e->groups[i]->parts[k];
                        struct job_template *t = p->part.job_template;

                        p->part = r->parts[p->base];
                        p->part.job_template = t;
                }
}

/* ---- pieces */

uint32_t request_piece_count(const struct request *r)
{
        const struct edits *e = edits_get(r);
        uint32_t n = r->part_count;

        for (uint32_t i = 0; i < e->count; i++)
                n += e->groups[i]->part_count;
        return n;
}

struct piece request_piece(const struct request *r, uint32_t i)
{
        const struct edits *e = edits_get(r);
        uint32_t at = 0;

        if (i < r->part_count)
                return (struct piece){&r->parts[i], i, NULL};
        for (i -= r->part_count; i >= e->groups[at]->part_count; at++)
                i -= e->groups[at]->part_count;
        return (struct piece){&e->groups[at]->parts[i].part,
                              part_number(r, e->groups[at], e->groups[at]->parts[i].base),
                              &e->groups[at]->members};
}

void piece_keep(const struct request *r, const struct piece *p, struct set *members)
{
        set_remove_range(members, 0, p->part->first);
        set_remove_range(members, (uint64_t)p->part->first + p->part->count, 1ull << 32);
        if (p->only)
                set_keep_all(members, p->only);
        else
                set_remove_all(members, &edits_get(r)->members);
}

uint64_t piece_next(const struct request *r, const struct piece *p, uint64_t from)
{
        const struct set *edited = &edits_get(r)->members;
        uint64_t end = (uint64_t)p->part->first + p->part->count, m = from;

        if (m < p->part->first)
                m = p->part->first;
        if (p->only)
                m = set_next(p->only, m);
        else
                for (uint64_t a, b; m < end && set_run(edited, m, &a, &b) && a == m;)
                        m = b;
        return m < end ? m : SET_END;
}
