#include "core/model/pick.h"

#include <errno.h>

#include "core/model/changes.h"
#include "core/model/dependency.h"

#define ITEMS_MAX (256u << 20) /* total of all parts */

/* Macros of a member's number, and the item variables that hold their values in a picked submission. */
static const struct {
        const char *macro, *variable;
} numbers[] = {{"Process", "OldProcess"},
               {"ProcId", "OldProcess"},
               {"Step", "OldStep"},
               {"Row", "OldRow"},
               {"ItemIndex", "OldRow"}};

struct pick {
        const struct submission *from;
        const struct set *members;
        struct str changes;
        struct arena *arena;
        struct submission *to;
        struct err *err;
        size_t bytes;
};

static const char *variable_of(struct str word)
{
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if (str_ieqz(word, numbers[i].macro))
                        return numbers[i].variable;
        return NULL;
}

static bool is_letter(char c)
{
        return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

/* Replaces the macros $(Process), $(Process:0), $INT(Process,%03d) of a text by the item variables. Returns
 * whether there was one. */
static bool rename_numbers(struct str text, struct buf *out)
{
        bool found = false;

        for (size_t i = 0; i < text.n;) {
                size_t open = i + 1, end;
                const char *variable = NULL;

                if (text.p[i] == '$' && i + 1 < text.n && text.p[i + 1] == '$') { /* $$() is for the place */
                        buf_addz(out, "$$");
                        i += 2;
                        continue;
                }
                if (text.p[i] == '$') {
                        while (open < text.n && is_letter(text.p[open]))
                                open++;
                        for (end = open + 1; end < text.n && is_letter(text.p[end]);)
                                end++;
                        if (open < text.n && text.p[open] == '(' && end < text.n &&
                            strchr("):,", text.p[end]))
                                variable = variable_of(str_make(text.p + open + 1, end - open - 1));
                }
                if (!variable) {
                        buf_char(out, text.p[i++]);
                        continue;
                }
                buf_str(out, str_make(text.p + i, open + 1 - i));
                buf_addz(out, variable);
                i = end;
                found = true;
        }
        return found;
}

static struct str keep_text(struct pick *x, const struct buf *b)
{
        return arena_str(x->arena, buf_view(b));
}

/* Returns whether a late text names a number of the member. */
static bool set_attribute(struct pick *x, struct submission_part *to, const struct submission_attribute *a)
{
        BUF_CLEANUP struct buf text = {0};
        bool named;

        if (x->members && str_ieqz(a->name, "DependsOn"))
                return false;
        named = a->late && x->members && rename_numbers(a->text, &text);
        submission_add_attribute(to, a->name, named ? keep_text(x, &text) : a->text, a->late);
        return named;
}

static bool changed(struct str changes, struct str name)
{
        struct submission_attribute a;

        while (changes_next(&changes, &a))
                if (str_ieq(a.name, name))
                        return true;
        return false;
}

static bool set_attributes(struct pick *x, const struct submission_part *from, struct submission_part *to)
{
        struct str rest = x->changes;
        struct submission_attribute a;
        bool named = false;

        for (size_t i = 0; i < from->attribute_count; i++)
                if (!changed(x->changes, from->attributes[i].name))
                        named |= set_attribute(x, to, &from->attributes[i]);
        while (changes_next(&rest, &a))
                if (a.text.n)
                        named |= set_attribute(x, to, &a);
        return named;
}

/* Writes a row for each picked member: the values of its former row, then its former numbers. */
static int write_rows(struct pick *x, const struct submission_part *from, uint64_t first, struct str *ret,
                      uint64_t *ret_rows)
{
        uint64_t end = first + from->rows * from->steps, row = 0;
        struct buf out = {.max = ITEMS_MAX};
        struct str items = from->items, values = STR_NONE;

        *ret_rows = 0;
        if (from->variable_count)
                str_cut(&items, '\n', &values);
        for (uint64_t m = set_next(x->members, first); m < end; m = set_next(x->members, m + 1)) {
                uint64_t at = m - first;

                for (; from->variable_count && row < at / from->steps; row++)
                        str_cut(&items, '\n', &values);
                buf_str(&out, values);
                buf_printf(&out, "%s%llu\x1f%llu\x1f%llu\n", from->variable_count ? "\x1f" : "",
                           (unsigned long long)m, (unsigned long long)(at % from->steps),
                           (unsigned long long)(at / from->steps));
                ++*ret_rows;
        }
        x->bytes += out.n;
        if (out.overflow || x->bytes > ITEMS_MAX) {
                buf_deinit(&out);
                return err_set(x->err, -E2BIG, "the items of the jobs are more than %u MiB", ITEMS_MAX >> 20);
        }
        *ret = arena_str(x->arena, buf_view(&out));
        buf_deinit(&out);
        return 0;
}

static int pick_part(struct pick *x, const struct submission_part *from, uint64_t first)
{
        uint64_t count = from->rows * from->steps,
                 picked = x->members ? set_count_range(x->members, first, first + count) : count;
        struct submission_part *to;
        bool named;

        if (picked == 0)
                return 0;
        to = submission_add_part(x->to);
        named = set_attributes(x, from, to);
        for (size_t i = 0; i < from->variable_count; i++)
                submission_add_variable(to, from->variables[i]);
        to->steps = from->steps;
        to->rows = from->rows;
        to->items = from->items;
        if (!x->members)
                return 0;
        to->steps = picked;
        if (!named && from->variable_count == 0)
                return 0;
        to->steps = 1;
        submission_add_variable(to, STR("OldProcess"));
        submission_add_variable(to, STR("OldStep"));
        submission_add_variable(to, STR("OldRow"));
        return write_rows(x, from, first, &to->items, &to->rows);
}

/* Sets *ret to the new numbers of the picked members of the ranges. Returns false if there are none. */
static bool renumber(const struct pick *x, struct str ranges, struct set *ret)
{
        uint32_t first, end;
        uint64_t from, to;

        set_deinit(ret);
        while (dependency_range_next(&ranges, &first, &end) > 0)
                for (uint64_t at = first; set_run(x->members, at, &from, &to) && from < end; at = to) {
                        uint64_t rank = set_count_range(x->members, 0, from);

                        to = to < end ? to : end;
                        set_add_range(ret, rank, rank + to - from);
                }
        return set_count(ret) > 0;
}

static void pick_edges(struct pick *x)
{
        struct str rest = x->from->edges;
        struct set parents = {0}, children = {0};
        struct dependency_edge e;
        struct buf out = {0};

        while (dependency_edge_next(&rest, &e, NULL) > 0) {
                if (!renumber(x, e.parents, &parents) || !renumber(x, e.children, &children))
                        continue;
                if (out.n)
                        buf_char(&out, ';');
                set_print(&out, &parents);
                buf_char(&out, '>');
                set_print(&out, &children);
                if (e.when != DEPENDENCY_OK || e.has_code)
                        buf_printf(&out, ":%s", dependency_when_name(e.when));
                if (e.has_code)
                        buf_printf(&out, "=%d", (int)e.code);
        }
        x->to->edges = arena_str(x->arena, buf_view(&out));
        set_deinit(&parents);
        set_deinit(&children);
        buf_deinit(&out);
}

int submission_pick(const struct submission *from, const struct set *members, bool graph, struct str changes,
                    struct arena *arena, struct submission *ret, struct err *err)
{
        struct pick x = {from, members, changes, arena, ret, err, 0};
        uint64_t first = 0, all = submission_members(from);
        int r = 0;

        *ret = (struct submission){.hold = from->hold};
        if (members && (set_count(members) == 0 || set_next(members, all) != SET_END))
                r = err_set(err, -EINVAL,
                            set_count(members) ? "there are only %llu jobs in the request"
                                               : "none of its jobs is meant",
                            (unsigned long long)all);
        for (size_t i = 0; i < from->part_count && r == 0; i++) {
                r = pick_part(&x, &from->parts[i], first);
                first += from->parts[i].rows * from->parts[i].steps;
        }
        for (size_t i = 0; i < from->spooled_count && r == 0; i++)
                *submission_add_file(ret) = from->spooled[i];
        if (!members)
                ret->edges = from->edges;
        else if (graph && r == 0)
                pick_edges(&x);
        if (r != 0) {
                submission_deinit(ret);
                *ret = (struct submission){0};
        }
        return r;
}
