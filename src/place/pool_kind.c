#include "place/pool_kind.h"

#include "classad/expr.h"
#include "classad/print.h"

static const char *const left_out[] = {
        /* names, and what a queue says of itself */
        "MyType", "TargetType", "Name", "Machine", "AgentName", "QueueName", "Runner", "QueueType", "Tags",
        "SearchOrder", "Price", "FileSystemDomain", "UidDomain", "EnforcedLimits", "PullPolicy",
        "DroverServer", "DroverTag", "Rank", "Requirements", "CloseWhen", "DrainWhen", "DrainWithin",
        "NotifyWhen", "HasFileTransfer", "CondorVersion", "Leaving", "TakesUnknownTimes",
        /* load and hour */
        "State", "Activity", "LoadAvg", "TotalLoadAvg", "CpuIsBusy", "KeyboardIdle", "ConsoleIdle",
        "MyCurrentTime", "Running", "JobsMax", "Nodes", "QueueWait", "QueueWaitUnknown", "StagingFailures",
        "Unreachable", "WhyClosed", "NodeFailed", "NodeBootId", "NodeProviderId", "NodeImage", "NodeSize",
        "NodePrice", "KFlops", "Mips",
        /* sizes, which are summed up */
        "Cpus", "Memory", "Disk", "FreeCpus", "FreeMemory", "TotalCpus", "TotalMemory", "TotalDisk",
        "NodeCpus", "NodeMemory", "NodeDisk", "NodesUnavailable"};

bool pool_kind_leaves_out(struct str name)
{
        for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
                if (str_ieqz(name, left_out[i]))
                        return true;
        return false;
}

static bool is_name(struct str s)
{
        if (s.n == 0 || s.n > 256 || (s.p[0] >= '0' && s.p[0] <= '9'))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] != '_' && !(s.p[i] >= '0' && s.p[i] <= '9') &&
                    !((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'z'))
                        return false;
        return true;
}

static void on_any(void *arg, symbol name, bool target)
{
        (void)name;
        (void)target;
        *(bool *)arg = true;
}

/* Returns whether the expression is a literal or a list of literals, so that nothing is looked up or
 * computed when a job is matched. */
static bool stands_still(const struct expr *e, const struct ad *nothing)
{
        struct expr_uses uses;
        bool depends = false;

        expr_references(e, nothing, on_any, &depends, &uses);
        return !depends && !uses.uses_time && !uses.uses_random && !uses.uses_more;
}

void pool_kind_attributes(const struct pool_kind_attribute *v, size_t count, struct buf *out)
{
        struct symbols *symbols = symbols_new();
        struct ad *nothing = ad_new(symbols);

        for (size_t i = 0; i < count; i++) {
                struct expr *e = NULL;

                if (!is_name(str_of(v[i].name)) || pool_kind_leaves_out(str_of(v[i].name)) ||
                    expr_parse(symbols, str_of(v[i].value), &e, NULL) != 0)
                        continue;
                if (stands_still(e, nothing)) {
                        buf_printf(out, "%s = ", v[i].name);
                        expr_print(out, e, symbols);
                        buf_addz(out, "; ");
                }
                expr_free(e);
        }
        ad_free(nothing);
        symbols_free(symbols);
}

void pool_kind_requirements(const char *text, struct buf *out)
{
        struct symbols *symbols = symbols_new();
        struct expr *e = NULL;

        if (!str_trim(str_of(text)).n)
                ;
        else if (expr_parse(symbols, str_of(text), &e, NULL) == 0)
                expr_print(out, e, symbols);
        else
                buf_addz(out, "false");
        expr_free(e);
        symbols_free(symbols);
}
