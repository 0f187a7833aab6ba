/* Reads rows of a part's items, and expands a template's texts for a member. */
#include "core/model/item.h"

#include <errno.h>

#include "base/job/macro.h"
#include "base/mem.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/query.h"

size_t part_row(const struct part *p, uint64_t row, struct str *values, size_t max)
{
        struct str rest, line;
        size_t n = 0;

        if (!p->items || row >= p->rows)
                return 0;
        rest = str_make(p->items, p->items_n);
        if (p->row_at)
                rest = str_skip(rest, p->row_at[row / ROW_STRIDE]);
        for (uint64_t i = row - row % ROW_STRIDE; i < row; i++)
                str_cut(&rest, '\n', &line);
        str_cut(&rest, '\n', &line);
        while (n < max && str_cut(&line, '\x1f', &values[n]))
                n++;
        return n;
}

struct expansion {
        const struct request *request;
        const struct part *part;
        uint32_t member;
        bool loaded;
        struct str values[SUBMISSION_VARIABLES_MAX];
        size_t count;
};

static enum macro_found number(struct buf *out, uint64_t v)
{
        buf_printf(out, "%llu", (unsigned long long)v);
        return MACRO_FINAL;
}

static enum macro_found macro_lookup(void *arg, struct str name, struct buf *out)
{
        struct expansion *x = arg;
        uint32_t at = x->member - x->part->first;
        const struct job_template *t = x->part->job_template;

        if (str_ieqz(name, "Process") || str_ieqz(name, "ProcId"))
                return number(out, x->member);
        if (str_ieqz(name, "Cluster") || str_ieqz(name, "ClusterId"))
                return number(out, x->request->id);
        if (str_ieqz(name, "Step"))
                return number(out, at % x->part->steps);
        if (str_ieqz(name, "Node") && gang_size(x->part) > 0)
                return number(out, at % gang_size(x->part));
        if (str_ieqz(name, "Row") || str_ieqz(name, "ItemIndex"))
                return number(out, at / x->part->steps);
        for (size_t i = 0; i < t->variable_count; i++) {
                if (!str_ieqz(name, t->variables[i]))
                        continue;
                if (!x->loaded) {
                        x->count =
                                part_row(x->part, at / x->part->steps, x->values, SUBMISSION_VARIABLES_MAX);
                        x->loaded = true;
                }
                return macro_item(i < x->count ? x->values[i] : STR_NONE, out);
        }
        return MACRO_UNKNOWN;
}

#define LATE_STEP 32u /* bytes whose expansion and parsing take as long as a step of an evaluation */

int part_expand(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                struct str text, size_t *left, struct buf *out, struct err *err)
{
        struct expansion x = {.request = r, .part = p, .member = member};
        uint64_t random = macro_job_seed(r->id, member);
        size_t had = *left, start = out->n, written;
        struct macro_world w = {.arg = &x, .lookup = macro_lookup, .random = &random, .work = left};
        int rc = macro_expand_expression(&w, text, out, NULL, err);

        written = out->n - start;
        if (written > *left || (rc && *left == 0)) {
                buf_truncate(out, start);
                rc = err_set(err, -EMSGSIZE,
                             "the attributes of one job that have macros come to more than %u KiB in all",
                             LATE_TEXT_MAX >> 10);
        }
        *left -= written < *left ? written : *left;
        c->late_steps += (had - *left) / LATE_STEP;
        return rc;
}

int core_member_expand(struct core *c, uint64_t request, uint32_t member, struct str text, struct buf *to)
{
        const struct request *r = request_find(c, request);
        struct expansion x = {.request = r, .member = member};
        uint64_t random = macro_job_seed(request, member);
        struct macro_world w = {.arg = &x, .lookup = macro_lookup, .random = &random};

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        x.part = request_part(r, member, NULL);
        if (!x.part->job_template)
                return CORE_INVALID;
        return macro_expand(&w, text, to, NULL, NULL) ? CORE_INVALID : 0;
}

/* Steps for a text, which is made of some words, or a number. */
#define TEXT_STEPS 100u

/* Sets the limit of steps of an evaluation, and returns the former limit. */
static uint32_t steps_limit(struct core *c, uint32_t max)
{
        uint32_t before = c->eval.steps_max;

        c->eval.steps_max = max;
        return before;
}

bool item_text(struct core *c, const struct ad *ad, symbol name, struct str *ret)
{
        uint32_t before = steps_limit(c, TEXT_STEPS);
        bool found = eval_string(&c->eval, ad, NULL, name, ret);

        steps_limit(c, before);
        return found;
}

bool item_integer(struct core *c, const struct ad *ad, symbol name, int64_t *ret)
{
        uint32_t before = steps_limit(c, TEXT_STEPS);
        bool found = eval_integer(&c->eval, ad, NULL, name, ret);

        steps_limit(c, before);
        return found;
}

int request_member_text(struct core *c, const struct request *r, uint32_t member, symbol name, struct buf *to)
{
        struct buf BUF_CLEANUP text = {.max = SUBMISSION_TEXT_MAX};
        size_t left = to->max && to->max < LATE_TEXT_MAX / 2 ? 2 * to->max : LATE_TEXT_MAX;
        const struct part *p;
        struct str late, value;
        struct symbols_use *before;
        struct ad *own;
        int result = 0;

        if (member >= r->count)
                return CORE_UNKNOWN;
        p = request_part(r, member, NULL);
        if (!p->job_template)
                return CORE_INVALID;
        late = job_template_late_text(p->job_template, name);
        before = job_template_names(c, p->job_template);
        own = ad_new(c->symbols);
        ad_set_parent(own, p->job_template->ad);
        if (late.p && (part_expand(c, r, p, member, late, &left, &text, NULL) != 0 ||
                       ad_set_text(own, name, buf_view(&text), NULL) != 0))
                result = CORE_INVALID;
        if (!result && item_text(c, own, name, &value))
                buf_str(to, value);
        else
                result = CORE_INVALID;
        eval_reset(&c->eval);
        ad_free(own);
        symbols_use_set(c->symbols, before);
        return result;
}
