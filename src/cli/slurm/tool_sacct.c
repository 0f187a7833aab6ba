/* sacct: jobs that are there (GET /v1/jobs) and those that have ended (GET /v1/history), in the order of
 * their numbers. A job that has begun has a line of its batch step as well, with what the script took, as
 * Slurm has it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/slurm/account_json.h"
#include "cli/slurm/document.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/moment.h"
#include "cli/slurm/select.h"
#include "cli/slurm/slurm.h"

#define USUAL "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
#define BRIEF "JobID,State,ExitCode"
#define LONG                                                                                                 \
        "JobID,JobIDRaw,JobName,Partition,MaxVMSize,AveVMSize,MaxRSS,AveRSS,AveCPU,NTasks,AllocCPUS,"        \
        "Elapsed,State,"                                                                                     \
        "ExitCode,ReqMem,ConsumedEnergy,MaxDiskRead,AveDiskRead,MaxDiskWrite,AveDiskWrite,ReqTRES,AllocTRES"

enum form { FORM_TABLE, FORM_PARSABLE, FORM_PARSABLE2, FORM_JSON };
struct line {
        int64_t request, member;
        char *text;
};
struct accounts {
        struct cli *cli;
        struct select select;
        struct columns columns;
        enum form form;
        const char *mark;
        bool steps;
        int64_t start_s, end_s;
        struct line *lines;
        size_t line_count, line_cap;
};

static void accounts_deinit(struct accounts *a)
{
        for (size_t i = 0; i < a->line_count; i++)
                free(a->lines[i].text);
        free(a->lines);
        select_deinit(&a->select);
        columns_deinit(&a->columns);
}

static void sacct_write_line(const struct accounts *a, const struct record *r, struct buf *out)
{
        if (a->form == FORM_TABLE)
                columns_line(&a->columns, r, STR_NONE, out);
        else
                columns_parsable(&a->columns, r, a->mark, a->form == FORM_PARSABLE, out);
}

static bool sacct_has_step(const struct record *r)
{
        return r->elapsed_s >= 0 && view_integer(view_get(r->job, "starts"), 0) > 0 &&
               r->state != RECORD_PENDING;
}

static void sacct_take_record(void *arg, const struct record *r)
{
        struct accounts *a = arg;
        BUF_CLEANUP struct buf text = {0};

        if (!select_takes(&a->select, r) || r->submitted_s > a->end_s ||
            (record_is_over(r) && r->ended_s < a->start_s))
                return;
        if (a->form == FORM_JSON) {
                account_json(r, a->steps && sacct_has_step(r), &text);
        } else {
                sacct_write_line(a, r, &text);
                if (a->steps && sacct_has_step(r)) {
                        struct record step = *r;

                        step.step = "batch";
                        sacct_write_line(a, &step, &text);
                }
        }
        MEM_GROW(a->lines, a->line_cap, a->line_count + 1);
        a->lines[a->line_count++] = (struct line){r->request, r->member, buf_take(&text)};
}

static int sacct_compare_rows(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        if (x->request != y->request)
                return x->request < y->request ? -1 : 1;
        return x->member < y->member ? -1 : x->member > y->member;
}

/* Prints the jobs; one that has ended in the meantime is in both listings. */
static void accounts_print(struct accounts *a, bool heads)
{
        struct document document = {.list = "jobs"};
        BUF_CLEANUP struct buf out = {0};

        if (a->form == FORM_TABLE && heads)
                columns_heads(&a->columns, &out);
        else if (a->form != FORM_JSON && heads)
                columns_parsable(&a->columns, NULL, a->mark, a->form == FORM_PARSABLE, &out);
        qsort(a->lines, a->line_count, sizeof(*a->lines), sacct_compare_rows);
        for (size_t i = 0; i < a->line_count; i++) {
                if (i && sacct_compare_rows(&a->lines[i - 1], &a->lines[i]) == 0)
                        continue;
                if (a->form == FORM_JSON)
                        document_item(&document, &out);
                buf_addz(&out, a->lines[i].text);
                if (out.n > 65536)
                        cli_print(&out);
        }
        if (a->form == FORM_JSON)
                document_end(&document, &out);
        cli_print(&out);
}

static int sacct_read_time(const struct words *w, const char *name, int64_t now_s, int64_t *ret)
{
        const char *text = words_text(w, name);

        if (text && moment_read(str_of(text), now_s, ret) != 0)
                return slurm_error(1, "Invalid time specification: %s", text);
        return 0;
}

static int choose(struct accounts *a, const struct words *w)
{
        struct select *s = &a->select;
        int64_t now_s = a->cli->now_ms / 1000;
        struct err err = {""};
        const char *ids;
        int code = 0;

        s->any_state = true;
        for (size_t at = 0; (ids = words_next(w, "jobs", &at));)
                if (select_ids(s, str_of(ids), &err) != 0)
                        return slurm_error(1, "%s", err.text);
        if (words_has(w, "state") && select_states(s, str_of(words_text(w, "state")), &err) != 0)
                return slurm_error(1, "%s", err.text);
        s->names = words_text(w, "name");
        s->partitions = words_text(w, "partition");
        s->accounts = words_text(w, "accounts");
        s->nodes = words_text(w, "nodelist");
        s->qos = words_text(w, "qos");
        a->end_s = INT64_MAX;
        if (s->id_count == 0)
                moment_read(STR("today"), now_s, &a->start_s);
        code = sacct_read_time(w, "starttime", now_s, &a->start_s);
        if (code == 0)
                code = sacct_read_time(w, "endtime", now_s, &a->end_s);
        if (code == 0 && words_has(w, "user"))
                code = select_users(s, str_of(words_text(w, "user")));
        else if (code == 0 && s->id_count == 0 && !words_has(w, "allusers"))
                code = select_me(a->cli, s);
        return code;
}

static int sacct_choose_columns(struct accounts *a, const struct words *w)
{
        struct err err = {""};
        const char *format = words_text(w, "format");

        a->mark = words_has(w, "delimiter") ? words_text(w, "delimiter") : "|";
        a->form = words_has(w, "json")        ? FORM_JSON
                  : words_has(w, "parsable2") ? FORM_PARSABLE2
                  : words_has(w, "parsable")  ? FORM_PARSABLE
                                              : FORM_TABLE;
        a->steps = !words_has(w, "allocations");
        if (!format)
                format = words_has(w, "brief") ? BRIEF : words_has(w, "long") ? LONG : USUAL;
        return columns_read_account(&a->columns, str_of(format), &err) == 0 ? 0
                                                                            : slurm_error(1, "%s", err.text);
}

/* With ids the server also tells of jobs that have ended a while ago; those of long ago are in the history
 * only. */
static int sacct_fetch(struct accounts *a)
{
        struct select past = {.ids = a->select.ids, .id_count = a->select.id_count, .any_state = true};
        BUF_CLEANUP struct buf constraint = {0};
        int code = select_fetch(a->cli, &a->select, "/v1/jobs", "after", "", sacct_take_record, a);

        if (code > 0 || (code == 0 && a->select.id_count))
                return code;
        buf_str(&constraint, buf_view(&a->select.constraint));
        past.constraint = constraint;
        if (a->start_s > 0)
                select_and(&past, "EnteredCurrentStatus >= %lld", (long long)a->start_s);
        code = select_fetch(a->cli, &past, "/v1/history", "before", "", sacct_take_record, a);
        constraint = past.constraint;
        return code == SELECT_NO_SUCH_ID ? 0 : code;
}

static int sacct(struct cli *cli, const struct words *w)
{
        struct accounts a = {.cli = cli};
        int code;

        if (words_has(w, "helpformat")) {
                BUF_CLEANUP struct buf out = {0};

                fields_help(&out);
                cli_print(&out);
                return 0;
        }
        code = sacct_choose_columns(&a, w);
        if (code == 0)
                code = choose(&a, w);
        if (code == 0)
                code = sacct_fetch(&a);
        if (code == 0)
                accounts_print(&a, !words_has(w, "noheader"));
        accounts_deinit(&a);
        return code;
}

static const struct words_row rows[] = {
        {"accounts", 'A', WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Only jobs of these accounting groups."},
        {"allocations", 'X', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "No lines of batch steps."},
        {"allusers", 'a', WORDS_PLAIN, WORDS_ACTS, NULL, NULL,
         "Jobs of all users; else one's own, if no job is named."},
        {"brief", 'b', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Id, state and exit code."},
        {"delimiter", 0, WORDS_VALUE, WORDS_ACTS, "TEXT", NULL,
         "What parts columns with -p and -P; a bar if not given."},
        {"endtime", 'E', WORDS_VALUE, WORDS_ACTS, "TIME", NULL, "Only jobs that were submitted before."},
        {"format", 'o', WORDS_VALUE, WORDS_ACTS, "NAMES", "SACCT_FORMAT",
         "Columns: `JobID,JobName%30,State`."},
        {"helpformat", 'e', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "List the columns."},
        {"jobs", 'j', WORDS_VALUE, WORDS_ACTS, "IDS", NULL, "Only these jobs, of any time: `7,8_3`."},
        {"json", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print JSON."},
        {"long", 'l', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "More columns."},
        {"name", 0, WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Only jobs of these names."},
        {"nodelist", 'N', WORDS_VALUE, WORDS_ACTS, "NODES", NULL, "Only jobs at these agents."},
        {"noheader", 'n', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "No headings."},
        {"parsable", 'p', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "A bar behind each column."},
        {"parsable2", 'P', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "A bar between the columns."},
        {"partition", 'r', WORDS_VALUE, WORDS_ACTS, "QUEUES", NULL, "Only jobs of these queues."},
        {"qos", 'q', WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Only jobs of these qualities of service."},
        {"starttime", 'S', WORDS_VALUE, WORDS_ACTS, "TIME", NULL,
         "Jobs that have ended before are left out; midnight if neither this nor ids are given."},
        {"state", 's', WORDS_VALUE, WORDS_ACTS, "STATES", NULL, "Only jobs of these states: `CD,F,TIMEOUT`."},
        {"user", 'u', WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Only jobs of these users."},
        {"uid", 0, WORDS_VALUE, WORDS_REFUSED, "NUMBERS", NULL, "use --user."},
        {"allclusters", 'L', WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"completion", 'c', WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one history."},
        {"duplicates", 'D', WORDS_PLAIN, WORDS_SO, NULL, NULL, "A job that ran again is one job."},
        {"truncate", 'T', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Times are not cut."},
        {"noconvert", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "Units of sizes are as they are."},
        {"units", 0, WORDS_VALUE, WORDS_NAMED, "UNIT", NULL, "sizes are in the units that they have."},
        {"verbose", 'v', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Nothing more is told."},
        {"local", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"federation", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "There is one cluster."},
        {"batch-script", 'B', WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "use `drover show`."},
        {"clusters", 'M', WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL,
         "$DROVER_DIR or $DROVER_SERVER name the server."},
        {"constraints", 'C', WORDS_VALUE, WORDS_REFUSED, "FEATURES", NULL,
         "use `drover history --constraint`."},
        {"file", 'f', WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "the server has the history."},
        {"gid", 'g', WORDS_VALUE, WORDS_REFUSED, "GROUPS", NULL, "use --user."},
        {"group", 0, WORDS_VALUE, WORDS_REFUSED, "GROUPS", NULL, "use --user."},
        {"ncpus", 'I', WORDS_VALUE, WORDS_REFUSED, "N", NULL, "use `drover history --constraint`."},
        {"nnodes", 'i', WORDS_VALUE, WORDS_REFUSED, "N", NULL, "a job has one node."},
        {"timelimit-min", 'k', WORDS_VALUE, WORDS_REFUSED, "TIME", NULL,
         "use `drover history --constraint`."},
        {"timelimit-max", 'K', WORDS_VALUE, WORDS_REFUSED, "TIME", NULL,
         "use `drover history --constraint`."},
        {"wckeys", 'W', WORDS_VALUE, WORDS_REFUSED, "TEXT", NULL, "there are no such keys."},
        {0},
};
const struct words_tool slurm_sacct = {
        .name = "sacct",
        .usage = "[OPTIONS]",
        .line = "Lists jobs, those that have ended as well.",
        .rows = rows,
        .run = sacct,
};
