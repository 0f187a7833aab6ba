/* squeue. What programs read: "-h -o '%i %t' -t all -u USER" (Nextflow), "-j ID -h -o %T" (Cromwell, status
 * scripts of Snakemake profiles). Tasks of an array that wait for the same reason are one line, as Slurm
 * shows them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"
#include "cli/slurm/document.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/record_json.h"
#include "cli/slurm/select.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/tasks.h"
#include "cli/terminal/human.h"

/* time after their ends during which jobs are shown with -t, like Slurm's MinJobAge */
#define KEPT_S      300
#define TASKS_BYTES 64 /* maximum bytes of the task numbers in one line */

/* Tasks that one line stands for. */
struct group {
        char *first; /* the first one, as the server wrote it */
        const char *reason;
        int64_t request, limit;
        uint32_t *tasks;
        size_t count, cap;
};
struct line {
        enum record_state state;
        int64_t request, member;
        char *text;
};
struct listing {
        struct cli *cli;
        struct select select;
        struct columns columns;
        bool each_task, json, any;
        struct document document; /* with `json` */
        struct group *groups;     /* groups of one request */
        size_t group_count, group_cap;
        struct line *lines;
        size_t line_count, line_cap;
        struct buf out; /* output as JSON */
};

static void listing_deinit(struct listing *l)
{
        for (size_t i = 0; i < l->line_count; i++)
                free(l->lines[i].text);
        free(l->lines);
        free(l->groups);
        select_deinit(&l->select);
        columns_deinit(&l->columns);
        buf_deinit(&l->out);
}

static void add_line(struct listing *l, const struct record *r, struct str group)
{
        BUF_CLEANUP struct buf text = {0};

        columns_line(&l->columns, r, group, &text);
        MEM_GROW(l->lines, l->line_cap, l->line_count + 1);
        l->lines[l->line_count++] = (struct line){
                .state = r->state, .request = r->request, .member = r->member, .text = buf_take(&text)};
}

static void end_groups(struct listing *l)
{
        for (size_t i = 0; i < l->group_count; i++) {
                struct group *g = &l->groups[i];
                BUF_CLEANUP struct buf tasks = {0};
                struct record r;

                record_read(view_open(str_of(g->first)), l->cli->now_ms / 1000, &r);
                r.reason = g->reason;
                tasks_write(g->tasks, g->count, TASKS_BYTES, &tasks);
                if (g->limit)
                        buf_printf(&tasks, "%%%lld", (long long)g->limit);
                add_line(l, &r, buf_view(&tasks));
                free(g->first);
                free(g->tasks);
        }
        l->group_count = 0;
}

static void add_task(struct listing *l, const struct record *r)
{
        struct group *g = NULL;

        for (size_t i = 0; i < l->group_count; i++)
                if (l->groups[i].reason == r->reason)
                        g = &l->groups[i];
        if (!g) {
                MEM_GROW(l->groups, l->group_cap, l->group_count + 1);
                g = &l->groups[l->group_count++];
                *g = (struct group){.first = str_dupz(r->job.text),
                                    .reason = r->reason,
                                    .request = r->request,
                                    .limit = view_integer(view_get(r->ad, "JobMaterializeLimit"), 0)};
        }
        MEM_GROW(g->tasks, g->cap, g->count + 1);
        g->tasks[g->count++] = (uint32_t)r->task;
}

static void squeue_take_record(void *arg, const struct record *r)
{
        struct listing *l = arg;

        l->any = true;
        if (!select_takes(&l->select, r))
                return;
        if (l->json) {
                document_item(&l->document, &l->out);
                record_json(r, &l->out);
                return;
        }
        if (l->group_count && l->groups[0].request != r->request)
                end_groups(l);
        if (r->state == RECORD_PENDING && r->task >= 0 && !l->each_task)
                add_task(l, r);
        else
                add_line(l, r, STR_NONE);
}

static int squeue_compare_rows(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        if (x->state != y->state)
                return x->state < y->state ? -1 : 1;
        if (x->request != y->request)
                return x->request < y->request ? -1 : 1;
        return x->member < y->member ? -1 : x->member > y->member;
}

static void print_lines(struct listing *l, bool heads)
{
        BUF_CLEANUP struct buf out = {0};

        if (heads)
                columns_heads(&l->columns, &out);
        qsort(l->lines, l->line_count, sizeof(*l->lines), squeue_compare_rows);
        for (size_t i = 0; i < l->line_count; i++) {
                buf_addz(&out, l->lines[i].text);
                if (out.n > 65536)
                        cli_print(&out);
        }
        cli_print(&out);
}

static int squeue_choose_columns(struct listing *l, const struct words *w, struct err *err)
{
        size_t brief = words_place(w, "format"), full = words_place(w, "Format");

        if (full > brief)
                return columns_read_long(&l->columns, str_of(words_text(w, "Format")), err);
        if (brief)
                return columns_read(&l->columns, str_of(words_text(w, "format")), err);
        if (words_has(w, "start"))
                return columns_read(&l->columns, STR("%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"), err);
        return columns_read(&l->columns,
                            words_has(w, "long") ? STR("%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R")
                                                 : STR("%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"),
                            err);
}

static int choose_jobs(struct listing *l, const struct words *w, struct err *err)
{
        static const enum record_state usual[] = {RECORD_PENDING, RECORD_RUNNING, RECORD_SUSPENDED,
                                                  RECORD_CONFIGURING, RECORD_COMPLETING};
        struct select *s = &l->select;
        const char *ids;
        int rc = 0;

        for (size_t at = 0; rc == 0 && (ids = words_next(w, "jobs", &at));)
                rc = select_ids(s, str_of(ids), err);
        if (rc == 0 && words_has(w, "user"))
                rc = select_users(s, str_of(words_text(w, "user")));
        if (rc == 0 && words_has(w, "states"))
                rc = select_states(s, str_of(words_text(w, "states")), err);
        else if (words_has(w, "start"))
                s->states[RECORD_PENDING] = true;
        else
                for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
                        s->states[usual[i]] = true;
        s->names = words_text(w, "name");
        s->partitions = words_text(w, "partition");
        s->accounts = words_text(w, "account");
        s->nodes = words_text(w, "nodelist");
        s->qos = words_text(w, "qos");
        return rc;
}

static int print_all(struct listing *l, const struct words *w)
{
        bool finished = false;
        int code;

        for (enum record_state state = RECORD_COMPLETED; state <= RECORD_OUT_OF_MEMORY; state++)
                finished |= l->select.any_state || l->select.states[state];
        if (finished && l->select.id_count == 0)
                select_and(&l->select, "(JobStatus =!= 3 && JobStatus =!= 4) || EnteredCurrentStatus >= %lld",
                           (long long)(l->cli->now_ms / 1000 - KEPT_S));
        code = select_fetch(l->cli, &l->select, "/v1/jobs", "after", finished ? "&all=1" : "",
                            squeue_take_record, l);
        end_groups(l);
        if (code == SELECT_NO_SUCH_ID) {
                fflush(stdout);
                fputs("slurm_load_jobs error: Invalid job id specified\n", stderr);
                return 1;
        }
        if (code != 0)
                return 1;
        if (l->json) {
                document_end(&l->document, &l->out);
                cli_print(&l->out);
        } else {
                if (words_has(w, "long") && !words_has(w, "noheader"))
                        record_print_now(l->cli);
                print_lines(l, !words_has(w, "noheader"));
        }
        return 0;
}

static int squeue(struct cli *cli, const struct words *w)
{
        struct listing l = {.cli = cli,
                            .each_task = words_has(w, "array") || words_has(w, "array-unique"),
                            .json = words_has(w, "json"),
                            .document = {.list = "jobs"}};
        struct err err = {""};
        int code = squeue_choose_columns(&l, w, &err);

        if (code == 0)
                code = choose_jobs(&l, w, &err);
        if (code != 0)
                code = slurm_error(1, "%s", err.text);
        else if (words_has(w, "me"))
                code = select_me(cli, &l.select);
        if (code == 0)
                code = print_all(&l, w);
        listing_deinit(&l);
        return code;
}

static const struct words_row rows[] = {
        {"account", 'A', WORDS_VALUE, WORDS_ACTS, "NAMES", "SQUEUE_ACCOUNT",
         "Only jobs of these accounting groups."},
        {"array", 'r', WORDS_PLAIN, WORDS_ACTS, NULL, "SQUEUE_ARRAY", "A line for each task of an array."},
        {"array-unique", 0, WORDS_PLAIN, WORDS_ACTS, NULL, "SQUEUE_ARRAY_UNIQUE", "The same."},
        {"format", 'o', WORDS_VALUE, WORDS_ACTS, "FORMAT", "SQUEUE_FORMAT", "Columns: `%.18i %.9P %.8j %T`."},
        {"Format", 'O', WORDS_VALUE, WORDS_ACTS, "NAMES", "SQUEUE_FORMAT2",
         "Columns by their names: `JobArrayID,Name:30,State`."},
        {"jobs", 'j', WORDS_VALUE, WORDS_ACTS, "IDS", NULL, "Only these jobs: `7,8_3`."},
        {"json", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print JSON."},
        {"long", 'l', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Show time limits as well."},
        {"me", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Only one's own jobs."},
        {"name", 'n', WORDS_VALUE, WORDS_ACTS, "NAMES", "SQUEUE_NAMES", "Only jobs of these names."},
        {"nodelist", 'w', WORDS_VALUE, WORDS_ACTS, "NODES", NULL, "Only jobs at these agents."},
        {"noheader", 'h', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "No headings."},
        {"partition", 'p', WORDS_VALUE, WORDS_ACTS, "QUEUES", "SQUEUE_PARTITION",
         "Only jobs of these queues."},
        {"qos", 'q', WORDS_VALUE, WORDS_ACTS, "NAMES", "SQUEUE_QOS",
         "Only jobs of these qualities of service."},
        {"start", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL,
         "Only jobs that wait, with the time before which they do not start; `drover why` tells when one "
         "may."},
        {"states", 't', WORDS_VALUE, WORDS_ACTS, "STATES", "SQUEUE_STATES",
         "Only jobs of these states, or `all`: also those that ended in the last five minutes."},
        {"user", 'u', WORDS_VALUE, WORDS_ACTS, "NAMES", "SQUEUE_USERS", "Only jobs of these users."},
        {"all", 'a', WORDS_PLAIN, WORDS_SO, NULL, "SQUEUE_ALL", "No queue is hidden."},
        {"hide", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "The default."},
        {"local", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"noconvert", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "Units of sizes are as they are."},
        {"verbose", 'v', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Nothing more is told."},
        {"federation", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"sort", 'S', WORDS_VALUE, WORDS_SO, "FIELDS", "SQUEUE_SORT",
         "Jobs that wait come first, then those that run; of each the older first."},
        {"iterate", 'i', WORDS_VALUE, WORDS_REFUSED, "SECONDS", NULL, "use watch(1)."},
        {"clusters", 'M', WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL,
         "$DROVER_DIR or $DROVER_SERVER name the server."},
        {"licenses", 'L', WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL, "use `drover limits`."},
        {"reservation", 'R', WORDS_VALUE, WORDS_REFUSED, "NAME", NULL,
         "drover reserve list shows reservations."},
        {"steps", 's', WORDS_MAYBE, WORDS_REFUSED, "IDS", NULL, "steps are not listed."},
        {"yaml", 0, WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "use --json."},
        {0},
};
const struct words_tool slurm_squeue = {
        .name = "squeue",
        .usage = "[OPTIONS]",
        .line = "Lists jobs that have not ended.",
        .rows = rows,
        .run = squeue,
};
