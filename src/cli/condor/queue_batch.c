#include "cli/condor/queue_batch.h"

#include "cli/client/jobs.h"
#include "cli/condor/clock_text.h"
#include "cli/terminal/human.h"

void totals_add(struct totals *t, int64_t status, int64_t n)
{
        t->by_status[status] += n;
}

void totals_print(const struct totals *t, const char *of, struct buf *out)
{
        const int64_t *n = t->by_status;
        long long all = 0;

        for (unsigned i = 0; i < 8; i++)
                all += n[i];
        buf_printf(
                out,
                "Total for %s: %lld jobs; %lld completed, %lld removed, %lld idle, %lld running, %lld held, "
                "%lld suspended \n",
                of, all, (long long)n[4], (long long)n[3], (long long)n[1], (long long)(n[2] + n[6]),
                (long long)n[5], (long long)n[7]);
}

void queue_batches_deinit(struct queue_batches *b)
{
        for (size_t i = 0; i < b->count; i++) {
                free(b->items[i].owner);
                free(b->items[i].name);
        }
        free(b->items);
        *b = (struct queue_batches){0};
}

static char *queue_batch_text_of(struct view v)
{
        BUF_CLEANUP struct buf text = {0}, safe = {0};

        view_text(v, &text);
        human_safe(&safe, buf_view(&text));
        return buf_take(&safe);
}

static char *owner_of(struct view v)
{
        char *owner = queue_batch_text_of(v);

        owner[strcspn(owner, "@")] = '\0';
        return owner;
}

static char *name_of(struct view batch, uint64_t request)
{
        BUF_CLEANUP struct buf text = {0};

        if (view_there(batch))
                return queue_batch_text_of(batch);
        buf_printf(&text, "ID: %llu", (unsigned long long)request);
        return buf_take(&text);
}

static struct queue_batch *add_batch(struct queue_batches *b, struct queue_batch one)
{
        MEM_GROW(b->items, b->cap, b->count + 1);
        b->items[b->count] = one;
        return &b->items[b->count++];
}

static bool queue_batch_is_named(const struct queue_batches *b, uint64_t request)
{
        for (size_t i = 0; i < b->id_count; i++) {
                uint64_t id;

                if (str_to_u64(str_of(b->ids[i]), &id) == 0 && id == request)
                        return true;
        }
        return b->id_count == 0;
}

void queue_batches_request(struct queue_batches *b, struct view v, struct totals *totals)
{
        struct queue_batch one;
        struct request_row r;
        int64_t left;

        request_read(v, &r);
        one = (struct queue_batch){.request = (uint64_t)view_integer(r.id, 0),
                                   .running = view_integer(r.running, 0),
                                   .idle = view_integer(r.idle, 0),
                                   .held = view_integer(r.held, 0),
                                   .total = view_integer(r.jobs, 0)};
        one.done = one.total - one.running - one.idle - one.held;
        left = view_integer(r.left, 0);
        if ((one.done >= one.total && left == 0) || !queue_batch_is_named(b, one.request))
                return;
        one.submitted_ms = view_integer(r.submitted_ms, 0);
        one.last = (uint32_t)(one.total - 1);
        one.owner = owner_of(r.owner);
        one.name = name_of(r.batch, one.request);
        add_batch(b, one);
        totals_add(totals, 2, one.running);
        totals_add(totals, 1, one.idle);
        totals_add(totals, 5, one.held);
        totals_add(totals, 4, left);
}

void queue_batches_job(struct queue_batches *b, struct view job, int64_t status)
{
        uint64_t request = (uint64_t)view_integer(view_get(job, "request"), 0);
        uint32_t member = (uint32_t)view_integer(view_get(job, "member"), 0);
        struct queue_batch *one = b->count ? &b->items[b->count - 1] : NULL;

        if (!one || one->request != request)
                one = add_batch(
                        b, (struct queue_batch){
                                   .request = request,
                                   .owner = owner_of(view_get(job, "owner")),
                                   .name = name_of(view_get(view_get(job, "ad"), "JobBatchName"), request),
                                   .submitted_ms = view_integer(view_get(job, "submitted_ms"), 0),
                                   .first = member});
        one->last = member;
        one->total++;
        *(status == 5                  ? &one->held
          : status == 1                ? &one->idle
          : status == 3 || status == 4 ? &one->done
                                       : &one->running) += 1;
}

static void add_number(struct buf *out, int64_t n)
{
        if (n)
                buf_printf(out, " %6lld", (long long)n);
        else
                buf_addz(out, "      _");
}

static void print_one(const struct queue_batch *one, int owner, int name, bool held, struct buf *out)
{
        buf_printf(out, "%-*s %-*s ", owner, one->owner, name, one->name);
        clock_text_date(out, one->submitted_ms / 1000);
        add_number(out, one->done);
        add_number(out, one->running);
        add_number(out, one->idle);
        if (held)
                add_number(out, one->held);
        add_number(out, one->total);
        buf_printf(out, " %llu.%u", (unsigned long long)one->request, one->first);
        if (one->last != one->first)
                buf_printf(out, "-%u", one->last);
        buf_char(out, '\n');
}

void queue_batches_print(const struct queue_batches *b, struct buf *out)
{
        int owner = 5, name = 10;
        bool held = b->count == 0;

        for (size_t i = 0; i < b->count; i++) {
                const struct queue_batch *one = &b->items[i];

                owner = (int)strlen(one->owner) > owner ? (int)strlen(one->owner) : owner;
                name = (int)strlen(one->name) > name ? (int)strlen(one->name) : name;
                held |= one->held > 0;
        }
        buf_printf(out, "%-*s %-*s %11s %6s %6s %6s%s %6s JOB_IDS\n", owner, "OWNER", name, "BATCH_NAME",
                   "SUBMITTED", "DONE", "RUN", "IDLE", held ? "   HOLD" : "", "TOTAL");
        for (size_t i = 0; i < b->count; i++)
                print_one(&b->items[i], owner, name, held, out);
}
