/* Accounting groups and concurrency limits of jobs, as in condor_submit's SetAccountingGroup and
 * SetConcurrencyLimits. */
#include <errno.h>

#include "base/job/args.h"
#include "jdl/condor/reader.h"

#define NICE_GROUP "nice-user"

/* The names of HTCondor's submitters: letters, digits, and some marks. */
static int check_name(struct reader *r, const struct entry *e, struct str name)
{
        for (size_t i = 0; i < name.n && !e->late; i++) {
                char c = name.p[i];

                if (!(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z') && !strchr("._-@+", c))
                        return entry_fail(r, e,
                                          "'" STR_FMT "' can't be a name: letters, digits and . _ - @ + can",
                                          STR_ARG(str_head(name, 60)));
        }
        return 0;
}

/* AccountingGroup is "group.user"; the owner's name is known to the server only. */
static int set_group(struct reader *r, const struct entry *group, struct str name, const struct entry *user)
{
        BUF_CLEANUP struct buf both = {.max = CONDOR_VALUE_MAX};
        struct entry all = *group;
        int rc = attribute_string(r, "AcctGroup", group, name);

        if (rc)
                return rc;
        if (user) {
                buf_printf(&both, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(entry_unquoted(user)));
                all.late |= user->late;
                return attribute_string(r, "AccountingGroup", &all, buf_view(&both));
        }
        buf_printf(&both, "strcat(\"" STR_FMT ".\", Owner)", STR_ARG(name));
        rc = attribute_expression(r, "AccountingGroup", &all, buf_view(&both));
        attribute_default(r, "AcctGroupUser", "Owner");
        return rc;
}

static int groups(struct reader *r)
{
        ENTRY_CLEANUP struct entry group = {0}, user = {0}, nice = {0};
        int g = entry_get(r, "accounting_group", &group), u = entry_get(r, "accounting_group_user", &user);
        int n = entry_get(r, "nice_user", &nice), rc = g < 0 ? g : u < 0 ? u : n < 0 ? n : 0;
        bool is_nice = false;

        if (!rc && n)
                rc = entry_boolean(r, &nice, &is_nice);
        if (!rc && is_nice)
                attribute_default(r, "NiceUser", "true");
        if (!rc && is_nice && g && !str_eqz(entry_unquoted(&group), NICE_GROUP))
                reader_warn(r, nice.at, "nice_user is ignored beside accounting_group");
        if (!rc)
                rc = check_name(r, &group, entry_unquoted(&group));
        if (!rc)
                rc = check_name(r, &user, entry_unquoted(&user));
        if (!rc && u)
                rc = attribute_string(r, "AcctGroupUser", &user, entry_unquoted(&user));
        if (rc)
                return rc;
        if (g)
                return set_group(r, &group, entry_unquoted(&group), u ? &user : NULL);
        if (is_nice)
                return set_group(r, &nice, STR(NICE_GROUP), u ? &user : NULL);
        return u ? attribute_string(r, "AccountingGroup", &user, entry_unquoted(&user)) : 0;
}

/* name or name.part, and :units */
static int check_limit(struct reader *r, const struct entry *e, struct str limit)
{
        struct str name = limit, units = STR_NONE;
        ptrdiff_t colon = str_find(limit, ':');
        double v = 1;

        if (colon >= 0) {
                name = str_head(limit, (size_t)colon);
                units = str_skip(limit, (size_t)colon + 1);
        }
        if (!macro_is_name(name) || str_starts(name, STR(".")) ||
            (units.p && (str_to_double(units, &v) || v <= 0)))
                return entry_fail(r, e, "'" STR_FMT "' is no limit; write NAME, or NAME:UNITS",
                                  STR_ARG(limit));
        return 0;
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int limits(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0}, x = {0};
        ARGS_CLEANUP struct args names = {0};
        BUF_CLEANUP struct buf list = {.max = CONDOR_VALUE_MAX};
        int a = entry_get(r, "concurrency_limits", &e),
            b = entry_get_expression(r, "concurrency_limits_expr", &x), rc = 0;
        struct str rest, one;

        if (a < 0 || b < 0)
                return a < 0 ? a : b;
        if (a && b)
                return entry_fail(r, &x, "give it or concurrency_limits, not both");
        if (b)
                return attribute_expression(r, "ConcurrencyLimits", &x, buf_view(&x.text));
        if (!a)
                return 0;
        if (e.late)
                return attribute_string(r, "ConcurrencyLimits", &e, entry_unquoted(&e));
        rest = entry_unquoted(&e);
        while (!rc && queue_word(&rest, &one)) {
                rc = check_limit(r, &e, one);
                args_add(&names, one);
        }
        for (size_t i = 0; i < names.n; i++)
                for (char *c = names.v[i]; *c; c++)
                        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 32 : *c);
        if (names.n > 1)
                qsort(names.v, names.n, sizeof(*names.v), by_text);
        for (size_t i = 0; i < names.n; i++)
                buf_printf(&list, "%s%s", i ? "," : "", names.v[i]);
        return rc || !list.n ? rc : attribute_string(r, "ConcurrencyLimits", &e, buf_view(&list));
}

int accounts_make(struct reader *r)
{
        int rc = groups(r);

        return rc ? rc : limits(r);
}
