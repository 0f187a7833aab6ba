/* All checks are made before the event is emitted, since an event cannot be refused. */
#include "core/lifecycle/edit.h"

#include "core/billing/billing.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/lifecycle/draft.h"
#include "core/lifecycle/reservations.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/meta_rule.h"
#include "core/model/submission.h"

#define PARTS_MAX 1000u    /* parts in one edit, each of which gets a template */
#define STEPS_MAX 1000000u /* of the evaluations of all of them: an edit is made at once */

static const char ours[] = "the server says what it is",
                  files[] = "files are settled with the submit; use drover resubmit",
                  after[] = "what jobs wait for is settled with the submit",
                  all[] = "it holds for the request as a whole";

static const struct {
        const char *name, *why;
} fixed[] = {
        {"ClusterId", ours},
        {"ProcId", ours},
        {"GlobalJobId", ours},
        {"Owner", ours},
        {"User", ours},
        {"QDate", ours},
        {"JobStatus", ours},
        {"EnteredCurrentStatus", ours},
        {"HoldReason", ours},
        {"HoldReasonCode", ours},
        {"HoldReasonSubCode", ours},
        {"NumJobStarts", ours},
        {"NumJobCompletions", ours},
        {"ExitCode", ours},
        {"RemoteHost", ours},
        {"LastRemoteHost", ours},
        {"JobPrio", "drover prio changes it"},
        {"Cmd", files},
        {"Iwd", files},
        {"In", files},
        {"TransferInput", files},
        {"TransferInputSizes", files},
        {"TransferInputSizeMB", files},
        {"TransferExecutable", files},
        {"ShouldTransferFiles", files},
        {"FileSystemDomain", files},
        {"OutputDestination", files},
        {"TransferOutputRemaps", files},
        {"RegisterOutputs", files},
        {"ContainerImage", files},
        {"DockerImage", files},
        {"CondaEnv", files},
        {"PythonEnv", files},
        {"DataLabels", files},
        {"OAuthServicesNeeded", files},
        {"JobUniverse", all},
        {"JobBatchName", all},
        {"JobMaterializeLimit", all},
        {"JobNotification", all},
        {"NotifyUser", all},
        {"EmailAttributes", all},
        {"HoldOnSubmit", all},
        {"Mirror", all},
        {"SubmitHost", all},
        {"SubmitEventNotes", all},
        {"SubmitEventUserNotes", all},
        {"UserLog", all},
        {"UserLogDomain", all},
        {"UserLogFormat", all},
        {"UserLogUseXML", all},
        {"DependsOn", after},
        {"GangSize", all},
        {"GangWithin", all},
        {"GangGroupBy", all},
        {"ParallelShutdownPolicy", all},
        {"WantParallelSchedulingGroups", all},
};

const char *edit_refused(struct str name, struct str *ret_name)
{
        *ret_name = name;
        for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
                if (str_ieqz(name, fixed[i].name)) {
                        *ret_name = str_of(fixed[i].name);
                        return fixed[i].why;
                }
        return str_ieq(str_head(name, 6), STR("Drover")) ? ours : NULL;
}

static int check_names(struct str changes, struct err *err)
{
        struct submission_attribute a;

        while (changes_next(&changes, &a)) {
                struct str name;
                const char *why = edit_refused(a.name, &name);

                if (why)
                        return err_set(err, CORE_INVALID, STR_FMT " cannot be changed: %s", STR_ARG(name),
                                       why);
        }
        return 0;
}

struct trial {
        struct core *core;
        struct request *request;
        struct err *err;
        unsigned parts;
        uint64_t steps;   /* core_steps at the begin */
        uint64_t kib;     /* memory of the new parts */
        bool names_quote; /* BankQuote is changed: another one may be used, or over, since the submit */
};

static bool changes_name(struct str changes, const char *name)
{
        struct submission_attribute a;

        while (changes_next(&changes, &a))
                if (str_ieqz(a.name, name))
                        return true;
        return false;
}

static int try_part(void *arg, const struct edit_step *step)
{
        struct trial *t = arg;
        struct core *c = t->core;
        struct str owner = str_of(request_owner(t->request));
        const struct bucket *b = request_bucket(c, t->request, step->first);
        struct part part = *step->from;
        int e;

        if (++t->parts > PARTS_MAX)
                return err_set(t->err, CORE_INVALID,
                               "the jobs are of more than %u queue statements: edit some of them at a time",
                               PARTS_MAX);
        if (core_steps(c) - t->steps > STEPS_MAX)
                return err_set(t->err, CORE_INVALID,
                               "the expressions of the jobs take too long, past the limit of %u steps: edit "
                               "some of them at a time",
                               STEPS_MAX);
        if (step->changes.n > CHANGES_BYTES_MAX)
                return err_set(t->err, CORE_INVALID, "what is changed of a job is longer than %u KiB",
                               CHANGES_BYTES_MAX >> 10);
        e = b && b->job_class ? charge_check_ways(c, b->job_class, t->err) : 0;
        if (e)
                return e;
        e = job_template_edit(c, step->from->job_template, step->changes, owner, &part.job_template, t->err);
        if (e)
                return CORE_INVALID;
        e = draft_check_part(c, t->request, &part, t->err);
        if (!e)
                e = meta_check(c, part.job_template, 1, t->err);
        if (!e)
                e = charge_check_part(c, owner, part.job_template->ad, t->err);
        if (!e)
                e = billing_check_part(c, owner, part.job_template->ad, t->err);
        if (!e && t->names_quote)
                e = billing_check_quote(c, owner, part.job_template->ad, t->err);
        if (!e)
                e = reservations_check_part(c, owner, part.job_template, t->err);
        if (step->is_new)
                t->kib += edit_kib(part.job_template);
        job_template_unref(c, part.job_template);
        return e ? CORE_INVALID : 0;
}

static int edit_try(struct core *c, struct request *r, const struct set *members, struct str changes,
                    struct err *err)
{
        struct trial t = {.core = c,
                          .request = r,
                          .err = err,
                          .steps = core_steps(c),
                          .names_quote = changes_name(changes, "BankQuote")};
        const struct edits *e = request_cold(r)->edits;
        int result;

        if (!changes_ok(changes))
                return err_set(err, CORE_INVALID, "nothing is to be changed");
        result = check_names(changes, err);
        if (!result && r->has_gangs)
                result = err_set(err, CORE_INVALID,
                                 "jobs of request %llu start together, and cannot be changed",

                                 (unsigned long long)r->id);
        if (!result && e && e->count >= EDIT_GROUPS_MAX)
                result = err_set(err, CORE_INVALID,
                                 "the jobs of request %llu were changed in %u ways, which is the most",
                                 (unsigned long long)r->id, EDIT_GROUPS_MAX);
        if (!result)
                result = edits_each(r, members, changes, try_part, &t);
        return result ? result : charge_check_memory(c, request_owner(r), t.kib, err);
}

int edit_members(struct core *c, struct request *r, const struct core_command *cmd, uint64_t *ret_affected,
                 struct err *err)
{
        struct event e = {
                .type = EVENT_EDITED, .request = r->id, .reason = cmd->reason, .values = cmd->changes};
        int result;

        request_idle_all(r, &e.members);
        set_add_all(&e.members, &request_cold(r)->held);
        if (cmd->members)
                set_keep_all(&e.members, cmd->members);
        result = edit_try(c, r, &e.members, cmd->changes, err);
        if (!result && set_count(&e.members)) {
                *ret_affected = set_count(&e.members);
                core_emit(c, &e, NULL);
        }
        event_deinit(&e);
        return result;
}
