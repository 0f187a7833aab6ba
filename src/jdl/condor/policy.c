/* Retries: max_retries, success_exit_code and retry_until become OnExitRemove, as in HTCondor's
 * SetJobRetries. */
#include <errno.h>

#include "jdl/condor/reader.h"

#define DEFAULT_RETRIES "2" /* HTCondor's DEFAULT_JOB_MAX_RETRIES */

static int whole_number(struct reader *r, const struct entry *e, bool negative)
{
        int64_t v;

        if (e->late || str_to_i64(buf_view(&e->text), &v) || v > INT32_MAX || v < (negative ? INT32_MIN : 0))
                return entry_fail(r, e, "'" STR_FMT "' is no whole number%s",
                                  STR_ARG(str_head(buf_view(&e->text), 60)),
                                  negative ? "" : " of at least 0");
        return 0;
}

/* Adds `|| (text)`. */
static void alternative(struct buf *out, const struct entry *e)
{
        buf_printf(out, " || (" STR_FMT ")", STR_ARG(buf_view(&e->text)));
}

int policy_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry retries = {0}, success = {0}, until = {0}, remove_if = {0};
        BUF_CLEANUP struct buf all = {.max = CONDOR_VALUE_MAX};
        struct entry all_entry;
        int64_t code;
        int a = entry_get(r, "max_retries", &retries), b = entry_get(r, "success_exit_code", &success);
        int c = entry_get_expression(r, "retry_until", &until),
            d = entry_get_expression(r, "on_exit_remove", &remove_if);
        int rc = a < 0 ? a : b < 0 ? b : c < 0 ? c : d < 0 ? d : 0;

        if (!rc && a > 0)
                rc = whole_number(r, &retries, false);
        if (!rc && b > 0)
                rc = whole_number(r, &success, true);
        if (rc)
                return rc;
        if (d > 0) /* checked by itself first, for a better message */
                rc = attribute_expression(r, "OnExitRemove", &remove_if, buf_view(&remove_if.text));
        if (rc || (a <= 0 && b <= 0 && c <= 0))
                return rc;
        if (a > 0)
                rc = attribute_expression(r, "JobMaxRetries", &retries, buf_view(&retries.text));
        else
                attribute_default(r, "JobMaxRetries", DEFAULT_RETRIES);
        if (!rc && b > 0)
                rc = attribute_expression(r, "JobSuccessExitCode", &success, buf_view(&success.text));
        buf_printf(&all, "NumJobCompletions > JobMaxRetries || ExitCode =?= %s",
                   b > 0 ? "JobSuccessExitCode" : "0");
        if (!rc && c > 0) {
                rc = attribute_expression(r, "OnExitRemove", &until, buf_view(&until.text));
                if (str_to_i64(buf_view(&until.text), &code) == 0)
                        buf_printf(&all, " || ExitCode =?= %lld", (long long)code);
                else
                        alternative(&all, &until);
        }
        if (d > 0)
                alternative(&all, &remove_if);
        if (rc)
                return rc;
        all_entry = a > 0 ? retries : b > 0 ? success : until;
        all_entry.late = until.late || remove_if.late;
        return attribute_expression(r, "OnExitRemove", &all_entry, buf_view(&all));
}
