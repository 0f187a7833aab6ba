/* The order of queues follows the core's choice: the job's Rank, the cost under its policy, and then whose
 * turn it is. */
#include "cli/client/queue_choice.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/terminal/human.h"
#include "cli/terminal/table.h"

#define SHOWN_MAX 200u
#define ROWS_MAX  1000u /* of a part, that the server is asked about */

struct choice {
        struct view place;
        int64_t part, turn;
        bool fits;
        double rank, cost;
};

static int is_before(const void *x, const void *y)
{
        const struct choice *a = x, *b = y;

        if (a->part != b->part)
                return a->part < b->part ? -1 : 1;
        if (a->fits != b->fits)
                return a->fits ? -1 : 1;
        if (a->rank != b->rank)
                return a->rank > b->rank ? -1 : 1;
        if (a->cost != b->cost)
                return a->cost < b->cost ? -1 : 1;
        return (a->turn > b->turn) - (a->turn < b->turn);
}

static size_t read_choices(struct view quote, struct choice **ret)
{
        struct view all = view_get(quote, "places"), one;
        size_t n = 0, cap = 0;

        *ret = NULL;
        for (size_t at = 0; view_next(all, &at, &one);) {
                struct buf policy BUF_CLEANUP = {0};

                view_text(view_get(one, "policy"), &policy);
                MEM_GROW(*ret, cap, n + 1);
                (*ret)[n++] = (struct choice){
                        .place = one,
                        .part = view_integer(view_get(one, "part"), 0),
                        .fits = view_is(view_get(one, "verdict"), "fits"),
                        .rank = view_real(view_get(one, "rank")),
                        .cost = view_real(view_get(view_get(one, "policies"), buf_z(&policy))),
                        .turn = view_integer(view_get(one, "turn"), 0)};
        }
        if (n > 1)
                qsort(*ret, n, sizeof(**ret), is_before);
        return n;
}

static void choice_write_queue(const struct choice *c, struct buf *out)
{
        view_safe(view_get(c->place, "name"), out);
        buf_char(out, '/');
        view_safe(view_get(c->place, "queue"), out);
}

static void write_first(const struct choice *v, size_t n, struct buf *out)
{
        buf_addz(out, "queue      ");
        if (n == 0 || !v[0].fits) {
                buf_addz(out, "none has room for the first job now; the jobs wait for one\n");
                return;
        }
        choice_write_queue(&v[0], out);
        buf_addz(out, ": the first choice by the placement policy ");
        view_safe(view_get(v[0].place, "policy"), out);
        buf_printf(out, ", for the first job, when this was written\n");
}

static void write_all(const struct choice *v, size_t n, struct buf *out)
{
        static const struct table_column columns[] = {{"PART", true, false},    {"QUEUE", false, false},
                                                      {"ANSWER", false, false}, {"RANK", true, false},
                                                      {"COST", true, false},    {"WHY", false, true}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
                struct buf queue BUF_CLEANUP = {0};

                choice_write_queue(&v[i], &queue);
                table_integer(&t, v[i].part);
                table_text(&t, buf_view(&queue));
                table_view(&t, view_get(v[i].place, "verdict"));
                if (v[i].fits) {
                        table_format(&t, "%.6g", v[i].rank);
                        table_format(&t, "%.6g", v[i].cost);
                } else {
                        table_text(&t, STR("-"));
                        table_text(&t, STR("-"));
                }
                table_view(&t, view_get(v[i].place, "text"));
        }
        if (n == 0)
                return;
        buf_addz(out, "\nqueues, the best first (higher RANK, then lower COST):\n");
        table_print(&t, out);
        if (n > SHOWN_MAX)
                buf_printf(out, "and %zu more\n", n - SHOWN_MAX);
}

/* Writes the body of a request for the first rows of each part only: the answer is about the first job. Edges
 * between jobs name them by their numbers, so that a graph is asked for as a whole. */
static void write_first_rows(struct submit *s)
{
        struct form *f = &s->form;
        struct cut {
                size_t bytes;
                uint64_t rows;
        } *cuts = mem_array(NULL, f->part_count + 1, sizeof(*cuts));

        for (size_t i = 0; i < f->part_count; i++) {
                struct form_part *p = &f->parts[i];
                struct str rest = buf_view(&p->items), row;
                uint64_t n = 0;

                cuts[i] = (struct cut){p->items.n, p->rows};
                if (f->edges.n || p->variable_count == 0 || p->rows <= ROWS_MAX)
                        continue;
                while (n < ROWS_MAX && str_cut(&rest, '\n', &row))
                        n++;
                p->rows = n;
                p->items.n -= rest.n;
        }
        submit_write_body(s);
        for (size_t i = 0; i < f->part_count; i++) {
                f->parts[i].rows = cuts[i].rows;
                f->parts[i].items.n = cuts[i].bytes;
        }
        free(cuts);
}

void queue_choice_ask(struct submit *s, struct buf *out)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct choice *v = NULL;
        struct err err = {""};
        size_t n;

        write_first_rows(s);
        if (s->body.n > SUBMIT_BODY_MAX) {
                buf_addz(out, "queue      not asked for, because the request is large; drover why tells of "
                              "each job\n");
                return;
        }
        if (api_call(s->cli,
                     &(struct api_request){.method = "POST", .path = "/v1/quote", .body = buf_view(&s->body)},
                     &answer, &err) != 0) {
                buf_addz(out, "queue      not known: ");
                human_safe(out, str_of(err.text));
                buf_char(out, '\n');
                return;
        }
        n = read_choices(answer.root, &v);
        write_first(v, n, out);
        write_all(v, n, out);
        free(v);
}

void queue_choice_presets(struct cli *cli, int64_t request, struct buf *out)
{
        static const struct {
                const char *attribute, *title;
        } named[] = {{"JobInitializer", "initializer"},
                     {"JobApplication", "application"},
                     {"JobDispatcher", "dispatcher"},
                     {"JobVirtualQueue", "virtual queue"},
                     {"JobPolicy", "policy"}};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct view jobs, job, ad;
        size_t at = 0, n = 0;

        buf_printf(&path,
                   "/v1/jobs?id=%lld&all=1&limit=1&attributes=JobInitializer,JobApplication,JobDispatcher,"
                   "JobVirtualQueue,JobPolicy",
                   (long long)request);
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return;
        jobs = view_get(answer.root, "jobs");
        if (!view_next(jobs, &at, &job))
                return;
        ad = view_get(job, "ad");
        for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
                struct view value = view_get(ad, named[i].attribute);

                if (view_type(value) != VIEW_STRING || view_is(value, "none"))
                        continue;
                buf_printf(out, "%s%s ", n++ ? ", " : "presets    ", named[i].title);
                view_safe(value, out);
        }
        if (n)
                buf_addz(out, " (drover config show)\n");
}
