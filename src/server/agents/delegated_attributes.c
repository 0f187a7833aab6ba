#include "server/agents/delegated_attributes.h"

#include "base/job/batch_word.h"
#include "classad/print.h"
#include "core/model/attributes.h"
#include "core/query.h"
#include "server/access/origin.h"
#include "server/loop/server.h"

#define CARRIED_MAX   900u       /* attributes; the other server accepts SUBMISSION_ATTRIBUTES_MAX */
#define CARRIED_BYTES (1u << 20) /* total length of the expressions */

/* The agent that hands the job on sets these itself, from the template's step. */
static const char *const set_by_next_agent[] = {"Cmd",
                                                "Args",
                                                "Arguments",
                                                "Env",
                                                "Environment",
                                                "In",
                                                "Out",
                                                "Err",
                                                "Iwd",
                                                "JobUniverse",
                                                "TransferExecutable",
                                                "TransferInput",
                                                "TransferOutput",
                                                "TransferOutputRemaps",
                                                "OutputDestination",
                                                "ShouldTransferFiles",
                                                "WhenToTransferOutput",
                                                "FileSystemDomain",
                                                "SubmitHost",
                                                "RequestCpus",
                                                "RequestMemory",
                                                "RequestGPUs",
                                                "AllowedExecuteDuration",
                                                "CheckpointExitCode",
                                                "SuccessCheckpointExitCode",
                                                "SuccessCheckpointExitBySignal",
                                                "SuccessCheckpointExitSignal",
                                                "CheckpointSig",
                                                "TransferCheckpoint",
                                                "KillSig",
                                                "JobMaxVacateTime",
                                                "DataLabels",
                                                "DroverCredentials",
                                                "OAuthServicesNeeded",
                                                "UseOAuthServices",
                                                "UseSciTokens",
                                                "ScitokensFile",
                                                "DroverPath",
                                                "DroverMaxHops",
                                                "DroverOriginOwner",
                                                "DroverOriginJob",
                                                ORIGIN_TRACE,
                                                "Requirements",
                                                ORIGIN_OWN_REQUIREMENTS,
                                                "JobBatchName"};
/* Attributes that this server decides: what the other server says of them is not taken. */
static const char *const local_only[] = {"ClusterId",
                                         "ProcId",
                                         "GlobalJobId",
                                         "Owner",
                                         "User",
                                         "QDate",
                                         "OnExitRemove",
                                         "OnExitHold",
                                         "OnExitHoldReason",
                                         "OnExitHoldSubCode",
                                         "PeriodicRelease",
                                         "MaxRetries",
                                         "JobMaxRetries",
                                         "SuccessExitCode",
                                         "JobSuccessExitCode",
                                         "JobLeaseDuration",
                                         "RegisterOutputs",
                                         "RerunOnLost",
                                         "JobMaterializeLimit",
                                         "JobMaterializeMaxIdle",
                                         "HoldOnSubmit",
                                         "Mirror",
                                         "LeaveJobInQueue",
                                         "DeferralTime",
                                         "DeferralWindow",
                                         "DeferralPrepTime",
                                         "DependsOn",
                                         "OnDependencyFailure",
                                         "AbortGraphOn",
                                         "OnGraphAbort",
                                         "JobCategory",
                                         "JobCategoryMax",
                                         "GangSize",
                                         "GangWithin",
                                         "GangGroupBy",
                                         "ParallelShutdownPolicy",
                                         "WantParallelSchedulingGroups",
                                         "AccountingGroup",
                                         "AcctGroup",
                                         "AcctGroupUser",
                                         "QOS",
                                         "BankQuote",
                                         "ReservationId",
                                         "Meta",
                                         "MetaPrefer",
                                         "CoAllocate",
                                         "NiceUser",
                                         "ConcurrencyLimits",
                                         "UserLog",
                                         "UserLogUseXML",
                                         "UserLogFormat",
                                         "SubmitEventNotes",
                                         "SubmitEventUserNotes",
                                         "JobNotification",
                                         "NotifyUser",
                                         "EmailAttributes",
                                         "DroverWebhook",
                                         "TransferInputSizes",
                                         "TransferInputSizeMB",
                                         "TransferOutputSizeMB",
                                         "DAGManJobId"};

static bool is_among(const char *const *names, size_t count, struct str name)
{
        for (size_t i = 0; i < count; i++)
                if (str_ieqz(name, names[i]))
                        return true;
        return false;
}

static bool stays(struct str name)
{
        return is_among(set_by_next_agent, sizeof(set_by_next_agent) / sizeof(*set_by_next_agent), name) ||
               is_among(local_only, sizeof(local_only) / sizeof(*local_only), name) || batch_word_is(name);
}

struct carrier {
        struct message *m;
        Drover__Origin *to;
        size_t cap, bytes;
        bool full;
};

static void carry(struct carrier *k, struct str name, struct str text, bool may_hold_macros)
{
        BUF_CLEANUP struct buf escaped = {0};
        Drover__Attribute *a;

        if (k->full || k->to->n_attributes == k->cap || k->bytes + text.n > CARRIED_BYTES) {
                k->full = true;
                return;
        }
        for (size_t i = 0; !may_hold_macros && i < text.n; i++)
                if (text.p[i] == '$')
                        buf_addz(&escaped, "$(DOLLAR)");
                else
                        buf_char(&escaped, text.p[i]);
        k->bytes += name.n + text.n;
        a = message_alloc(k->m, sizeof(*a));
        drover__attribute__init(a);
        a->name = message_text(k->m, name);
        a->value = message_text(k->m, may_hold_macros ? text : buf_view(&escaped));
        k->to->attributes[k->to->n_attributes++] = a;
}

static void carry_expression(struct carrier *k, struct str name, const struct expr *e,
                             const struct symbols *symbols)
{
        BUF_CLEANUP struct buf text = {.max = CARRIED_BYTES};

        expr_print(&text, e, symbols);
        k->full |= text.overflow;
        carry(k, name, buf_view(&text), false);
}

/* Adds the author's Requirements, without the clauses that this server has added. */
static void carry_requirements(struct carrier *k, struct core *c, uint64_t request, uint32_t part,
                               const struct ad *ad)
{
        const char *const names[] = {ORIGIN_OWN_REQUIREMENTS, "Requirements"};
        struct symbols *y = core_symbols(c);

        for (size_t i = 0; i < 2; i++) {
                symbol name = symbols_find(y, str_of(names[i]));
                struct str late = name ? core_part_late(c, request, part, name) : STR_NONE;
                const struct expr *e = name ? ad_find(ad, name) : NULL;

                if (late.p)
                        carry(k, STR("Requirements"), late, true);
                else if (e)
                        carry_expression(k, STR("Requirements"), e, y);
                if (late.p || e)
                        return;
        }
}

bool delegated_attributes_add(struct server *s, struct message *m, uint64_t request, uint32_t part,
                              const struct ad *ad, Drover__Origin *ret)
{
        struct symbols *y = core_symbols(s->core);
        struct carrier k = {.m = m, .to = ret, .cap = CARRIED_MAX};
        BUF_CLEANUP struct buf trace = {0};
        symbol name;

        ret->attributes = message_alloc(m, CARRIED_MAX * sizeof(*ret->attributes));
        carry_requirements(&k, s->core, request, part, ad);
        print_string(&trace, str_of(ret->trace));
        carry(&k, STR(ORIGIN_TRACE), buf_view(&trace), true);
        for (const struct ad *p = ad; p; p = ad_parent(p)) {
                const struct expr *e;
                uint32_t at = 0;

                while (ad_next(p, &at, &name, &e))
                        if (ad_find(ad, name) == e && !stays(symbols_name(y, name)))
                                carry_expression(&k, symbols_name(y, name), e, y);
        }
        for (size_t i = 0; (name = core_part_late_name(s->core, request, part, i)); i++)
                if (!stays(symbols_name(y, name)))
                        carry(&k, symbols_name(y, name), core_part_late(s->core, request, part, name), true);
        if (k.full)
                ret->n_attributes = 0;
        return !k.full;
}
