/* Items of a part, and the ad of one member: the template as parent, and the few attributes of its own. */
#include <errno.h>

#include "base/macro.h"
#include "base/mem.h"
#include "core/gang/gang.h"
#include "core/match/fill.h"
#include "core/model/state.h"

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

static enum macro_found lookup(void *arg, struct str name, struct buf *out)
{
        struct expansion *x = arg;
        uint32_t at = x->member - x->part->first;
        const struct template *t = x->part->template;

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

#define LATE_STEP 32u /* bytes that take as long as a step of an evaluation, with the parse that follows */

int part_expand(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                struct str text, size_t *left, struct buf *out, struct err *err)
{
        struct expansion x = {.request = r, .part = p, .member = member};
        uint64_t random = macro_job_seed(r->id, member);
        size_t had = *left, start = out->n, written;
        struct macro_world w = {.arg = &x, .lookup = lookup, .random = &random, .work = left};
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
        struct macro_world w = {.arg = &x, .lookup = lookup, .random = &random};

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        x.part = request_part(r, member, NULL);
        if (!x.part->template)
                return CORE_INVALID;
        return macro_expand(&w, text, to, NULL, NULL) ? CORE_INVALID : 0;
}

static void set_seconds(struct ad *ad, symbol name, int64_t ms)
{
        if (ms)
                ad_set_integer(ad, name, ms / 1000);
}

static void set_queue(struct ad *ad, symbol name, const struct queue *q)
{
        struct buf BUF_CLEANUP b = {0};

        if (!q)
                return;
        buf_printf(&b, "%s@%s", q->name, q->agent->name);
        ad_set_string(ad, name, buf_view(&b));
}

/* CpusProvisioned, …, GPUsProvisioned: what the attempt takes. */
static void set_provisioned(struct core *c, struct ad *ad, const struct job *j)
{
        ad_set_integer(ad, c->attr.CpusProvisioned, j->cpus);
        ad_set_integer(ad, c->attr.MemoryProvisioned, (int64_t)j->memory_mib);
        ad_set_integer(ad, c->attr.DiskProvisioned, (int64_t)j->disk_kib);
        for (unsigned i = 0; j->more && i < j->more->count; i++) {
                struct buf BUF_CLEANUP name = {0};

                buf_str(&name, symbols_name(c->symbols, j->more->v[i].name));
                buf_addz(&name, "Provisioned");
                ad_set_integer(ad, symbols_intern(c->symbols, buf_view(&name)), j->more->v[i].n);
        }
}

/* HTCondor counts shadows, runs and starts, which are one thing here. */
void member_ad_starts(const struct core *c, struct ad *ad, int64_t starts)
{
        ad_set_integer(ad, c->attr.NumJobStarts, starts);
        ad_set_integer(ad, c->attr.JobRunCount, starts);
        ad_set_integer(ad, c->attr.NumShadowStarts, starts);
}

static void set_record(struct core *c, struct ad *ad, const struct job *j)
{
        const struct attributes *a = &c->attr;

        member_ad_starts(c, ad, j->starts);
        ad_set_integer(ad, a->NumJobCompletions, j->completions);
        ad_set_integer(ad, a->DroverFence, j->fence);
        set_seconds(ad, a->JobStartDate, j->first_started_ms);
        set_seconds(ad, a->JobCurrentStartDate, j->started_ms);
        if (j->queue) {
                set_queue(ad, a->RemoteHost, j->queue);
                set_provisioned(c, ad, j);
        }
        set_queue(ad, a->LastRemoteHost, j->last_queue);
        ad_set_real(ad, a->RemoteWallClockTime,
                    (double)(j->wall_ms + (job_state_runs(j->state) ? c->now_ms - j->started_ms : 0)) / 1000);
        ad_set_integer(ad, a->CumulativeSuspensionTime,
                       (j->suspended_ms + (j->suspended_at_ms ? c->now_ms - j->suspended_at_ms : 0)) / 1000);
        ad_set_real(ad, a->BytesRecvd, (double)j->bytes_in); /* HTCondor's are reals */
        ad_set_real(ad, a->BytesSent, (double)j->bytes_out);
        ad_set_real(ad, a->RemoteUserCpu, (double)j->cpu_user_ms / 1000);
        ad_set_real(ad, a->RemoteSysCpu, (double)j->cpu_system_ms / 1000);
        if (j->memory_peak_bytes) {
                ad_set_integer(ad, a->MemoryUsage, (int64_t)((j->memory_peak_bytes + (1 << 20) - 1) >> 20));
                ad_set_integer(ad, a->ResidentSetSize, (int64_t)((j->memory_peak_bytes + 1023) >> 10));
        }
        if (j->ended) {
                ad_set_boolean(ad, a->ExitBySignal, j->signaled);
                ad_set_integer(ad, j->signaled ? a->ExitSignal : a->ExitCode, j->exit_code);
        }
}

/* Those that the server found, not only those that the author wrote: a hop is told by them. */
static void set_labels(struct core *c, struct ad *ad, const struct request *r, uint32_t member)
{
        const struct bucket *b = request_bucket(c, r, member);
        BUF_CLEANUP struct buf names = {0};

        if (!b || !b->class || !b->class->labels)
                return;
        label_print(c, b->class->labels, &names);
        ad_set_string(ad, c->attr.DataLabels, buf_view(&names));
}

/* Both were tried at submit with the first member; what fails for another one is undefined. */
static void set_late(struct core *c, struct ad *ad, const struct request *r, const struct part *p,
                     uint32_t member)
{
        struct buf BUF_CLEANUP text = {.max = SUBMISSION_TEXT_MAX};
        size_t left = LATE_TEXT_MAX;

        for (size_t i = 0; p->template && i < p->template->late_count; i++) {
                const struct template_late *l = &p->template->late[i];

                buf_reset(&text);
                if (part_expand(c, r, p, member, l->text, &left, &text, NULL) != 0 ||
                    ad_set_text(ad, l->name, buf_view(&text), NULL) != 0)
                        ad_set_undefined(ad, l->name);
                ad_set_spelling(ad, l->name, l->spelling);
        }
}

/* Its own reason, or the one that it was given with others. */
static void set_hold(struct core *c, struct ad *ad, const struct request *r, uint32_t member,
                     const struct job *j)
{
        const struct attributes *a = &c->attr;
        const struct hold_group *h = j && j->hold_reason ? NULL : request_hold(r, member);

        ad_set_string(ad, a->HoldReason, str_of(h ? h->reason : j ? j->hold_reason : ""));
        ad_set_integer(ad, a->HoldReasonCode, h ? h->code : j ? j->hold_code : 0);
        ad_set_integer(ad, a->HoldReasonSubCode, h ? h->subcode : j ? j->hold_subcode : 0);
        if (h)
                set_seconds(ad, a->EnteredCurrentStatus, h->at_ms);
}

/* The set of jobs that start together in which it is. */
static void set_gang(struct core *c, struct ad *ad, const struct request *r, uint32_t member)
{
        BUF_CLEANUP struct buf text = {0};
        uint32_t first, size;

        if (!gang_of(r, member, &first, &size))
                return;
        buf_printf(&text, "%llu.%u-%u", (unsigned long long)r->id, first, first + size - 1);
        ad_set_string(ad, c->attr.DroverSet, buf_view(&text));
        ad_set_integer(ad, c->attr.DroverNode, member - first);
}

struct ad *member_ad(struct core *c, const struct request *r, uint32_t member, const struct job *j)
{
        const struct request_rare *rare = request_rare(r);
        const struct attributes *a = &c->attr;
        const struct part *p = request_part(r, member, NULL);
        enum job_state state = j ? j->state : request_state(r, member);
        struct symbols_use *before = template_names(c, p->template);
        struct ad *ad = ad_new(c->symbols);
        struct str user = str_of(request_owner(r)), name = user;

        if (str_find(user, '@') >= 0)
                name = str_head(user, (size_t)str_find(user, '@'));
        if (p->template)
                ad_set_parent(ad, p->template->ad);
        ad_set_integer(ad, a->ClusterId, (int64_t)r->id);
        ad_set_integer(ad, a->ProcId, member);
        ad_set_string(ad, a->Owner, name);
        ad_set_string(ad, a->User, user);
        ad_set_integer(ad, a->QDate, r->submitted_ms / 1000);
        set_late(c, ad, r, p, member);
        ad_set_integer(ad, a->JobStatus, job_state_status(state));
        ad_set_string(ad, a->DroverState, str_of(job_state_name(state)));
        set_seconds(ad, a->EnteredCurrentStatus, j ? j->entered_ms : r->submitted_ms);
        if (j) {
                set_record(c, ad, j);
        } else {
                member_ad_starts(c, ad, 0);
                ad_set_integer(ad, a->NumJobCompletions, 0);
                ad_set_integer(ad, a->RemoteWallClockTime, 0);
                ad_set_integer(ad, a->CumulativeSuspensionTime, 0);
        }
        if (j && state == JOB_COMPLETED)
                set_seconds(ad, a->CompletionDate, j->entered_ms);
        if (j && j->filled_n)
                fill_show(c, p, str_make(j->filled, j->filled_n), ad);
        if (state == JOB_HELD)
                set_hold(c, ad, r, member, j);
        set_labels(c, ad, r, member);
        set_gang(c, ad, r, member);
        for (size_t i = 0; i < rare->priority_count; i++)
                if (set_has(&rare->priorities[i].members, member))
                        ad_set_integer(ad, a->JobPrio, rare->priorities[i].priority);
        symbols_use_set(c->symbols, before);
        return ad;
}
