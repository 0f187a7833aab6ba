#include "core/model/dependency.h"

#include <errno.h>

#include "core/model/submission.h"

static const char *const names[] = {"ok", "fail", "any", "each", "post", "retry", "held", "start", "stop"};

const char *dependency_when_name(enum dependency_when w)
{
        return names[w];
}

static bool read_when(struct str text, enum dependency_when last, enum dependency_when *ret)
{
        for (size_t i = 0; i <= (size_t)last; i++)
                if (str_ieqz(text, names[i])) {
                        *ret = (enum dependency_when)i;
                        return true;
                }
        return false;
}

/* Reads the condition of an edge: "any", "retry=4". */
static bool read_condition(struct str text, struct dependency_edge *e)
{
        ptrdiff_t at = str_find(text, '=');
        int64_t code;

        if (!read_when(at < 0 ? text : str_head(text, (size_t)at), DEPENDENCY_STOP, &e->when) ||
            e->when == DEPENDENCY_EACH)
                return false;
        if (at < 0)
                return true;
        if ((e->when != DEPENDENCY_OK && e->when != DEPENDENCY_RETRY) ||
            str_to_i64(str_skip(text, (size_t)at + 1), &code) != 0 || code < -DEPENDENCY_CODE_MAX ||
            code > DEPENDENCY_CODE_MAX || code == 0)
                return false;
        e->has_code = true;
        e->code = (int32_t)code;
        return true;
}

/* Reads a job's number, "7", or a first and a last number, "0-9". */
static bool read_range(struct str text, uint32_t *ret_first, uint32_t *ret_end)
{
        ptrdiff_t dash = str_find(text, '-');
        uint64_t first, last;

        if (str_to_u64(dash < 0 ? text : str_head(text, (size_t)dash), &first) != 0 ||
            str_to_u64(dash < 0 ? text : str_skip(text, (size_t)dash + 1), &last) != 0 || first > last ||
            last >= SUBMISSION_MEMBERS_MAX)
                return false;
        *ret_first = (uint32_t)first;
        *ret_end = (uint32_t)last + 1;
        return true;
}

int dependency_next(struct str *rest, struct dependency *ret, struct err *err)
{
        struct dependency d = {0};
        struct str one, jobs, id;
        ptrdiff_t at;

        if (str_trim(*rest).n == 0)
                return 0;
        if (!str_cut(rest, ',', &one))
                return 0;
        one = str_trim(one);
        at = str_find(one, ':');
        jobs = str_trim(at < 0 ? one : str_head(one, (size_t)at));
        if (at >= 0 && !read_when(str_trim(str_skip(one, (size_t)at + 1)), DEPENDENCY_EACH, &d.when))
                return err_set(err, -EINVAL, "\"" STR_FMT "\": after the colon comes ok, fail, any or each",
                               STR_ARG(one));
        at = str_find(jobs, '.');
        id = at < 0 ? jobs : str_head(jobs, (size_t)at);
        d.all = at < 0;
        if (str_to_u64(id, &d.request) != 0 || d.request == 0 ||
            (!d.all && !read_range(str_skip(jobs, (size_t)at + 1), &d.first, &d.end)))
                return err_set(err, -EINVAL,
                               "\"" STR_FMT
                               "\" names no jobs to wait for: give a request as 7, or jobs of it "
                               "as 7.3 or 7.0-9, and after a colon how they must end",
                               STR_ARG(one));
        *ret = d;
        return 1;
}

int dependency_range_next(struct str *rest, uint32_t *ret_first, uint32_t *ret_end)
{
        struct str one;

        if (rest->n == 0 || !str_cut(rest, ',', &one))
                return 0;
        return read_range(one, ret_first, ret_end) ? 1 : -EINVAL;
}

int dependency_edge_next(struct str *rest, struct dependency_edge *ret, struct err *err)
{
        struct dependency_edge e = {.when = DEPENDENCY_OK};
        struct str one;
        ptrdiff_t at;

        if (rest->n == 0 || !str_cut(rest, ';', &one))
                return 0;
        at = str_find(one, '>');
        e.parents = at < 0 ? STR_NONE : str_head(one, (size_t)at);
        e.children = at < 0 ? STR_NONE : str_skip(one, (size_t)at + 1);
        at = str_find(e.children, ':');
        if (e.parents.n == 0 || e.children.n == 0 ||
            (at >= 0 && (!read_condition(str_skip(e.children, (size_t)at + 1), &e) || at == 0)))
                return err_set(
                        err, -EINVAL,
                        "the edge \"" STR_FMT
                        "\" is not like 0-9>10 or 0>1:any (ok, fail, any, post, retry, held, start or stop)",
                        STR_ARG(str_head(one, 100)));
        if (at >= 0)
                e.children = str_head(e.children, (size_t)at);
        *ret = e;
        return 1;
}
