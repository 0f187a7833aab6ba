/* The row of an ended job is one ad: its own attributes, its log and its outputs. */
#include "core/events/history.h"

#include <stdio.h>

#include "base/format/hex.h"
#include "base/pack.h"
#include "classad/print.h"
#include "core/classes/member_ad.h"
#include "core/events/apply.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/submission.h"

/* Bytes of a row that count as one step of an evaluation, and steps that count as one more row. */
#define ROW_STEP  64u
#define ROW_STEPS 200u
/* Size of a row's late and edited attributes. */
#define ROW_TEXT_MAX (64u << 10)
/* The number of rows made in one go grows from one go to the next by at most this factor. */
#define ROWS_MORE 16u

/* Appends the log. *ret_removed: the reason of the removal as given by the user; NULL: none. */
static void print_log(struct buf *out, const struct request *r, uint32_t member, const char **ret_removed)
{
        const struct request_cold *cold = request_cold(r);
        const struct job *j = request_job(r, member);
        struct buf BUF_CLEANUP line = {0};
        bool comma = false;

        buf_addz(out, "{ ");
        for (size_t i = 0; i < cold->log_count + (j ? j->log.count : 0); i++) {
                const struct joblog_entry *e;

                if (i < cold->log_count) {
                        if (!set_has(&cold->log[i].members, member))
                                continue;
                        e = &cold->log[i].entry;
                } else {
                        e = &j->log.entries[i - cold->log_count];
                }
                if (e->type == EVENT_REMOVED || e->type == EVENT_VACATING)
                        *ret_removed = e->text;
                buf_reset(&line);
                buf_printf(&line, "%lld %s %u %s %s %d %s", (long long)e->at_ms, event_name(e->type),
                           e->fence, e->queue ? e->queue->agent->name : "-", e->queue ? e->queue->name : "-",
                           e->code, e->text ? e->text : "");
                if (comma)
                        buf_addz(out, ", ");
                comma = true;
                print_string(out, buf_view(&line));
        }
        buf_addz(out, " }");
}

void history_print_files(struct buf *out, struct str packed)
{
        struct unpack u = unpack_from(packed);
        bool comma = false;

        buf_addz(out, "{ ");
        for (uint64_t n = unpack_u64(&u); n > 0 && !u.bad; n--) {
                struct str name = unpack_str(&u), hash;
                uint64_t size, mode;
                char text[65];

                if (u.bad || u.end - u.p < 32)
                        break;
                hash = str_make((const char *)u.p, 32);
                u.p += 32;
                size = unpack_u64(&u);
                mode = unpack_u64(&u);
                if (u.bad)
                        break;
                buf_addz(out, comma ? ", [ Name = " : "[ Name = ");
                comma = true;
                print_string(out, name);
                hex_print(text, hash.p, 32);
                buf_printf(out, "; Size = %llu; Mode = %llu; Sha256 = \"%s\" ]", (unsigned long long)size,
                           (unsigned long long)mode, text);
        }
        buf_addz(out, " }");
}

/* Adds the edited attributes that are not late, in at most `left` bytes: a reader of the row has the request
 * as submitted, and late attributes are in the row anyway. */
static void show_edits(struct core *c, const struct request *r, uint32_t member, size_t left, struct ad *ad)
{
        struct str changes = edits_of(r, member);
        struct submission_attribute a;

        while (changes_next(&changes, &a)) {
                symbol name = symbols_find(c->symbols, a.name);

                if (name && (a.text.n == 0 || (!a.late && a.text.n > left))) {
                        ad_set_undefined(ad, name);
                } else if (name && !a.late && ad_set_text(ad, name, a.text, NULL) == 0) {
                        ad_set_spelling(ad, name, symbols_spelling(c->symbols, name, a.name));
                        left -= a.text.n;
                }
        }
}

/* Leaves out late attributes that together take more than a row has room for: a request of one text has a
 * million such rows, and nothing but the disk would bound what they take. Returns the room that is left. */
static size_t leave_out_long(struct core *c, const struct part *p, struct ad *ad)
{
        size_t left = ROW_TEXT_MAX;

        for (size_t i = 0; p->job_template && i < p->job_template->late_count; i++) {
                symbol name = p->job_template->late[i].name;
                const struct expr *x = ad_find_own(ad, name);
                BUF_CLEANUP struct buf text = {.max = left};

                if (!x)
                        continue;
                if (left > 0)
                        expr_print(&text, x, c->symbols);
                if (left == 0 || buf_check(&text))
                        ad_set_undefined(ad, name);
                else
                        left -= text.n;
        }
        return left;
}

void history_file(struct core *c, struct request *r, uint32_t member, enum job_state state, int64_t ended_ms,
                  const struct job *j, int32_t exit_code)
{
        struct buf BUF_CLEANUP data = {0}, extra = {0};
        const char *removed = NULL;
        struct ad *ad;
        struct past_job f = {
                .request = r->id,
                .member = member,
                .state = state,
                .submitted_ms = r->submitted_ms,
                .ended_ms = ended_ms,
                .exit_code = j && j->ended ? (j->signaled ? -j->exit_code : j->exit_code) : exit_code,
        };

        if (c->replaying || c->config.shadow)
                return;
        ad = member_ad(c, r, member, j);
        show_edits(c, r, member, leave_out_long(c, request_part(r, member, NULL), ad), ad);
        ad_remove(ad, c->attr.JobRunCount); /* same as NumJobStarts, which readers of the row know */
        ad_remove(ad, c->attr.NumShadowStarts);
        ad_set_integer(ad, c->attr.JobStatus, job_state_status(state));
        ad_set_string(ad, c->attr.DroverState, str_of(job_state_name(state)));
        ad_set_integer(ad, c->attr.CompletionDate, state == JOB_COMPLETED ? ended_ms / 1000 : 0);
        ad_set_integer(ad, c->attr.EnteredCurrentStatus, ended_ms / 1000);
        if (j && j->started_ms) /* HTCondor's times are whole seconds */
                ad_set_integer(ad, c->attr.DroverStartedMs, j->started_ms);
        print_log(&extra, r, member, &removed);
        if (state == JOB_REMOVED && removed)
                ad_set_string(ad, c->attr.RemoveReason, str_of(removed));
        ad_set_text(ad, c->attr.DroverLog, buf_view(&extra), NULL);
        ad_remove(ad, c->attr.DroverOutputs);
        if (j && j->outputs_n) {
                buf_reset(&extra);
                history_print_files(&extra, str_make(j->outputs, j->outputs_n));
                ad_set_text(ad, c->attr.DroverOutputs, buf_view(&extra), NULL);
        }
        ad_print(&data, ad, CLASSAD_NEW, false);
        ad_free(ad);
        f.owner = str_of(request_owner(r));
        f.data = buf_view(&data);
        c->late_steps += data.n / ROW_STEP;
        c->world.history(c->world.arg, &f);
}

/* Files the first `rows` jobs of the request that are unfiled. */
static void file_some(struct core *c, const struct request *r, uint64_t rows)
{
        struct event e = {.type = EVENT_FILED, .request = r->id};
        uint64_t first, end;

        for (uint64_t at = 0; rows && set_run(&request_cold(r)->unfiled, at, &first, &end); at = end) {
                if (end - first > rows)
                        end = first + rows;
                set_add_range(&e.members, first, end);
                rows -= end - first;
        }
        core_emit(c, &e, NULL);
        event_deinit(&e);
}

/* Returns whether jobs of the request may have rows that take long. */
static bool may_be_long(const struct request *r)
{
        bool late = request_cold(r)->edits || request_cold(r)->graph;

        for (uint32_t i = 0; i < r->part_count && !late; i++)
                late = r->parts[i].job_template && r->parts[i].job_template->late_count;
        return late;
}

bool history_file_slice(struct core *c, uint64_t budget)
{
        for (struct request *r = c->requests->unfiled ? c->requests->first : NULL; r; r = r->next) {
                uint64_t rows = budget, left;

                /* The cost of a row is unknown until the first is made, and later rows may be longer. */
                if (set_count(&request_cold(r)->unfiled) && may_be_long(r))
                        rows = 1;
                while (budget && (left = set_count(&request_cold(r)->unfiled)) > 0) {
                        uint64_t steps = core_steps(c), cost;

                        rows = rows < left ? rows : left;
                        file_some(c, r, rows);
                        cost = rows + (core_steps(c) - steps) / ROW_STEPS;
                        budget -= cost < budget ? cost : budget;
                        rows = budget * rows / cost < rows * ROWS_MORE ? budget * rows / cost
                                                                       : rows * ROWS_MORE;
                        rows = rows ? rows : 1;
                }
                if (budget == 0)
                        return true;
        }
        return false;
}
