/* Applies presets to a request. Each preset adds only what the request does not set itself; but conditions
 * are added to Requirements, and variables are put before the job's own. Initializers come first, because
 * they may name presets of the other kinds. */
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "classad/expr.h"
#include "classad/print.h"
#include "core/core.h"
#include "server/config/presets.h"

#define APPLIED_MAX (64u << 20) /* bytes */

struct applying {
        const struct config_presets *presets;
        const char *who;
        struct arena *arena;
        struct submission_part *part;
        struct buf conditions; /* conditions of all its presets, joined by && */
};

static struct submission_attribute *find_attribute(const struct submission_part *p, struct str name)
{
        for (size_t i = 0; i < p->attribute_count; i++)
                if (str_ieq(p->attributes[i].name, name))
                        return &p->attributes[i];
        return NULL;
}

static void add_default(struct applying *x, struct str name, struct str text)
{
        if (!find_attribute(x->part, name))
                submission_add_attribute(x->part, name, text, false);
}

static void presets_apply_add_string(struct applying *x, const char *name, struct str value)
{
        BUF_CLEANUP struct buf literal = {0};

        print_string(&literal, value);
        add_default(x, str_of(name), arena_str(x->arena, buf_view(&literal)));
}

static bool is_string(struct str text)
{
        return text.n >= 2 && text.p[0] == '"' && text.p[text.n - 1] == '"';
}

/* The job's own variables come later, and so take precedence. */
static int add_environment(struct applying *x, struct str variables, struct err *err)
{
        struct submission_attribute *own = find_attribute(x->part, STR("Environment"));
        BUF_CLEANUP struct buf all = {0};

        if (!variables.n)
                return 0;
        if (own && !is_string(own->text))
                return err_set(err, -EINVAL,
                               "Environment must be a string, for a job whose application or initializer has "
                               "variables");
        buf_printf(&all, "\"" STR_FMT, STR_ARG(variables));
        if (own && own->text.n > 2)
                buf_printf(&all, " " STR_FMT, (int)(own->text.n - 2), own->text.p + 1);
        buf_char(&all, '"');
        if (own)
                own->text = arena_str(x->arena, buf_view(&all));
        else
                submission_add_attribute(x->part, STR("Environment"), arena_str(x->arena, buf_view(&all)),
                                         false);
        return 0;
}

static void presets_apply_add_condition(struct applying *x, struct str condition)
{
        if (condition.n)
                buf_printf(&x->conditions, "%s" STR_FMT, x->conditions.n ? " && " : "", STR_ARG(condition));
}

/* Adds a policy's queues: the job must run in one of them, and prefers them in their order. */
static int add_members(struct applying *x, const struct preset *policy, struct err *err)
{
        BUF_CLEANUP struct buf any = {0}, rank = {0};
        size_t n = 0;

        for (size_t i = 0; i < policy->member_count; i++) {
                const struct preset_member *m = &policy->members[i];

                if (!preset_allows(m->queue, x->who))
                        continue;
                buf_printf(&any, "%s(" STR_FMT ")", n ? " || " : "", STR_ARG(m->queue->condition));
                buf_printf(&rank, "ifThenElse(" STR_FMT ", -%llu, ", STR_ARG(m->queue->condition),
                           (unsigned long long)m->order);
                n++;
        }
        if (policy->member_count == 0)
                return 0;
        if (n == 0)
                return err_set(err, -EACCES, "you may use no virtual queue of the policy '" STR_FMT "'",
                               STR_ARG(policy->name));
        buf_printf(&rank, "-%llu", (unsigned long long)INT64_MAX);
        for (size_t i = 0; i < n; i++)
                buf_char(&rank, ')');
        buf_char(&any, ')');
        buf_printf(&x->conditions, "%s(" STR_FMT, x->conditions.n ? " && " : "", STR_ARG(buf_view(&any)));
        if (n > 1)
                add_default(x, STR("Rank"), arena_str(x->arena, buf_view(&rank)));
        return 0;
}

static int add_preset(struct applying *x, const struct preset *p, struct err *err)
{
        int r = add_environment(x, p->environment, err);

        if (r == 0)
                r = add_members(x, p, err);
        for (size_t i = 0; r == 0 && i < p->attribute_count; i++)
                add_default(x, p->attributes[i].name, p->attributes[i].text);
        presets_apply_add_condition(x, p->condition);
        return r;
}

/* Returns the name that the part gives; empty if none. */
static int presets_apply_read_name(const struct submission_part *p, enum preset_kind kind, struct str *ret,
                                   struct err *err)
{
        const char *attribute = preset_kind_attribute(kind);
        const struct submission_attribute *a = find_attribute(p, str_of(attribute));

        *ret = STR_NONE;
        if (!a)
                return 0;
        if (a->late || !is_string(a->text))
                return err_set(err, -EINVAL, "%s must be a name in quotes, the same for all jobs", attribute);
        *ret = str_make(a->text.p + 1, a->text.n - 2);
        return 0;
}

static int find_preset(const struct config_presets *p, const char *who, enum preset_kind kind,
                       struct str name, const struct preset **ret, struct err *err)
{
        enum core_placement placement;

        *ret = NULL;
        if (name.n == 0 || str_ieqz(name, PRESET_NONE))
                return 0;
        *ret = preset_find(p, kind, name);
        if (!*ret && kind == PRESET_POLICY && core_placement_of_job(name, &placement) == 0)
                return 0;
        if (!*ret)
                return err_set(err, -EINVAL,
                               "there is no %s '" STR_FMT "' here; drover config show lists them",
                               preset_kind_name(kind), STR_ARG(str_head(name, 100)));
        if (!preset_allows(*ret, who))
                return err_set(err, -EACCES,
                               "you may not use the %s '" STR_FMT "'; drover config show says who may",
                               preset_kind_name(kind), STR_ARG((*ret)->name));
        return 0;
}

/* Returns the default of a kind; none if the user may not use it. */
static const struct preset *find_default(struct applying *x, enum preset_kind kind, struct str *ret_name)
{
        const struct preset *found = preset_find(x->presets, kind, x->presets->defaults[kind]);

        *ret_name = found && !preset_allows(found, x->who) ? STR_NONE : x->presets->defaults[kind];
        return ret_name->n ? found : NULL;
}

static int apply_kind(struct applying *x, enum preset_kind kind, struct err *err)
{
        const struct preset *found = NULL;
        struct str name;
        int r = presets_apply_read_name(x->part, kind, &name, err);

        if (r == 0 && name.n)
                r = find_preset(x->presets, x->who, kind, name, &found, err);
        else if (r == 0)
                found = find_default(x, kind, &name);
        if (r != 0 || name.n == 0)
                return r;
        presets_apply_add_string(x, preset_kind_attribute(kind), name);
        if (kind == PRESET_POLICY && !found && !str_ieqz(name, PRESET_NONE))
                presets_apply_add_string(x, "PlacementPolicy", name);
        return found ? add_preset(x, found, err) : 0;
}

/* Checks that the job's own condition is one complete expression; "true) || (true" is not. A condition
 * with macros is read after they are expanded. */
static int check_own(const struct submission_attribute *own, struct err *err)
{
        struct symbols *symbols = symbols_new();
        struct expr *e = NULL;
        struct err why = {0};
        int r = own->late ? 0 : expr_parse(symbols, own->text, &e, &why);

        expr_free(e);
        symbols_free(symbols);
        return r == 0 ? 0 : err_set(err, -EINVAL, "Requirements: %s", why.text);
}

/* Combines the conditions of the job and of its presets. */
static int add_requirements(struct applying *x, struct err *err)
{
        struct submission_attribute *own = find_attribute(x->part, STR("Requirements"));
        BUF_CLEANUP struct buf all = {0};

        if (!x->conditions.n)
                return 0;
        if (own && check_own(own, err) != 0)
                return -EINVAL;
        if (own)
                buf_printf(&all, "(" STR_FMT ") && ", STR_ARG(own->text));
        buf_str(&all, buf_view(&x->conditions));
        if (own)
                own->text = arena_str(x->arena, buf_view(&all));
        else
                submission_add_attribute(x->part, STR("Requirements"), arena_str(x->arena, buf_view(&all)),
                                         false);
        return 0;
}

/* Refuses a word that is not a policy, which would otherwise be ignored. */
static int check_placement(const struct submission_part *p, struct err *err)
{
        const struct submission_attribute *a = find_attribute(p, STR("PlacementPolicy"));
        enum core_placement placement;

        if (!a || a->late || !is_string(a->text) ||
            core_placement_of_job(str_make(a->text.p + 1, a->text.n - 2), &placement) == 0)
                return 0;
        return err_set(err, -EINVAL, "PlacementPolicy must be " CORE_PLACEMENTS_OF_JOBS);
}

int presets_apply(const struct config_presets *p, const char *who, struct submission *s, struct arena *arena,
                  struct err *err)
{
        size_t before = arena->used;
        int r = 0;

        for (size_t i = 0; i < s->part_count && r == 0; i++) {
                struct applying x = {.presets = p, .who = who, .arena = arena, .part = &s->parts[i]};

                for (int k = 0; k < PRESET_KINDS && r == 0; k++)
                        r = apply_kind(&x, (enum preset_kind)k, err);
                if (r == 0)
                        r = add_requirements(&x, err);
                if (r == 0)
                        r = check_placement(x.part, err);
                buf_deinit(&x.conditions);
                if (r == 0 && arena->used - before > APPLIED_MAX)
                        r = err_set(err, -E2BIG,
                                    "what presets add to all parts of the request is more than %u MiB",
                                    APPLIED_MAX >> 20);
        }
        return r;
}

/* ---- the time of jobs */

#define TIME_ATTRIBUTE "AllowedExecuteDuration"

static void set_limit(struct preset_time *ret, uint64_t seconds, enum preset_kind kind, struct str name)
{
        ret->seconds = seconds;
        snprintf(ret->of, sizeof(ret->of), "the %s " STR_FMT,
                 kind == PRESET_QUEUE ? "virtual queue" : preset_kind_name(kind),
                 STR_ARG(str_head(name, 100)));
}

/* Returns whether a virtual queue limits the time; a limit there is always a number. */
static bool queue_limit(const struct preset *queue, uint64_t *ret)
{
        for (size_t i = 0; i < queue->attribute_count; i++)
                if (str_ieq(queue->attributes[i].name, STR(TIME_ATTRIBUTE)))
                        return str_to_u64(queue->attributes[i].text, ret) == 0;
        return false;
}

/* The queues of a policy do not set a job's time; each is a place that has no more. */
static void shortest_of_queues(const struct applying *x, struct preset_time *ret)
{
        struct str name;
        const struct preset *policy;

        if (presets_apply_read_name(x->part, PRESET_POLICY, &name, NULL) != 0)
                return;
        policy = preset_find(x->presets, PRESET_POLICY, name);
        for (size_t i = 0; policy && i < policy->member_count; i++) {
                const struct preset *queue = policy->members[i].queue;
                uint64_t seconds;

                if (preset_allows(queue, x->who) && queue_limit(queue, &seconds) &&
                    (ret->seconds == 0 || seconds < ret->seconds))
                        set_limit(ret, seconds, PRESET_QUEUE, queue->name);
        }
}

int presets_time_limit(const struct config_presets *p, const char *who, const struct str named[PRESET_KINDS],
                       struct preset_time *ret, struct err *err)
{
        struct arena arena = {0};
        struct submission s = {0};
        struct applying x = {.presets = p, .who = who, .arena = &arena, .part = submission_add_part(&s)};
        const struct submission_attribute *time = NULL;
        int r = 0;

        *ret = (struct preset_time){.seconds = 0};
        for (int k = 0; k < PRESET_KINDS; k++)
                if (named[k].n)
                        presets_apply_add_string(&x, preset_kind_attribute((enum preset_kind)k), named[k]);
        for (int k = 0; k < PRESET_KINDS && r == 0 && !time; k++) {
                struct str name = STR_NONE;
                uint64_t seconds;

                r = apply_kind(&x, (enum preset_kind)k, err);
                time = find_attribute(x.part, STR(TIME_ATTRIBUTE));
                if (r != 0 || !time)
                        continue;
                if (str_to_u64(str_trim(time->text), &seconds) != 0)
                        r = err_set(err, -EDOM, TIME_ATTRIBUTE " is an expression in the server's settings");
                else if (presets_apply_read_name(x.part, (enum preset_kind)k, &name, NULL) == 0)
                        set_limit(ret, seconds, (enum preset_kind)k, name);
        }
        if (r == 0 && !time)
                shortest_of_queues(&x, ret);
        buf_deinit(&x.conditions);
        submission_deinit(&s);
        arena_deinit(&arena);
        return r;
}

int presets_check(const struct config_presets *p, const char *who, const struct submission *s,
                  struct err *err)
{
        int r = 0;

        for (size_t i = 0; i < s->part_count && r == 0; i++)
                for (int k = 0; k < PRESET_KINDS && r == 0; k++) {
                        const struct preset *found;
                        struct str name;

                        r = presets_apply_read_name(&s->parts[i], (enum preset_kind)k, &name, err);
                        if (r == 0)
                                r = find_preset(p, who, (enum preset_kind)k, name, &found, err);
                }
        return r;
}
