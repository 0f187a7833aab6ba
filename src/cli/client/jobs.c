#include "cli/client/jobs.h"

#include <stddef.h>

#include "cli/client/api.h"
#include "cli/client/ids.h"

/* In the order in which the server writes them (server/history/row.c, server/api/jobs/requests.c). */
#define FIELD(row, name)                                                                                     \
        {                                                                                                    \
                {#name, sizeof(#name) - 1}, offsetof(struct row, name)                                       \
        }
static const struct view_field job_fields[] = {
        FIELD(job_row, id),         FIELD(job_row, owner),        FIELD(job_row, state),
        FIELD(job_row, agent),      FIELD(job_row, queue),        FIELD(job_row, starts),
        FIELD(job_row, exit_code),  FIELD(job_row, exit_signal),  FIELD(job_row, hold_reason),
        FIELD(job_row, waits_for),  FIELD(job_row, submitted_ms), FIELD(job_row, entered_ms),
        FIELD(job_row, started_ms), FIELD(job_row, ended_ms),     FIELD(job_row, cmd),
        FIELD(job_row, args),
};
static const struct view_field request_fields[] = {
        FIELD(request_row, id),
        FIELD(request_row, owner),
        FIELD(request_row, submitted_ms),
        FIELD(request_row, eta_end_ms),
        FIELD(request_row, eta_end_most_ms),
        FIELD(request_row, jobs),
        FIELD(request_row, idle),
        FIELD(request_row, running),
        FIELD(request_row, held),
        FIELD(request_row, completed),
        FIELD(request_row, failed),
        FIELD(request_row, removed),
        FIELD(request_row, left),
        FIELD(request_row, cmd),
        FIELD(request_row, args),
        FIELD(request_row, batch),
};
#undef FIELD

void job_read(struct view job, struct job_row *ret)
{
        *ret = (struct job_row){0};
        view_fields(job, job_fields, sizeof(job_fields) / sizeof(job_fields[0]), ret);
}

void request_read(struct view request, struct request_row *ret)
{
        *ret = (struct request_row){0};
        view_fields(request, request_fields, sizeof(request_fields) / sizeof(request_fields[0]), ret);
}

void request_name(const struct request_row *r, struct buf *out)
{
        size_t before = out->n;

        view_text(r->batch, out);
        if (out->n == before)
                job_command(&(struct job_row){.cmd = r->cmd, .args = r->args}, out);
}

void job_command(const struct job_row *j, struct buf *out)
{
        struct str path;
        size_t from = out->n, cut;

        view_text(j->cmd, out);
        path = str_skip(buf_view(out), from);
        cut = (size_t)(str_rfind(path, '/') + 1);
        if (cut > 0 && cut < path.n) {
                memmove(out->p + from, out->p + from + cut, path.n - cut);
                buf_truncate(out, out->n - cut);
        }
        if (view_there(j->args)) {
                buf_char(out, ' ');
                view_text(j->args, out);
        }
}

void job_outcome(const struct job_row *j, struct buf *out)
{
        if (view_integer(j->exit_signal, 0) > 0)
                buf_printf(out, "signal %lld", (long long)view_integer(j->exit_signal, 0));
        else if (view_there(j->exit_code))
                buf_printf(out, "exit %lld", (long long)view_integer(j->exit_code, 0));
}

bool job_has_failed(const struct job_row *j)
{
        return view_is(j->state, "completed") &&
               (view_integer(j->exit_signal, 0) != 0 || view_integer(j->exit_code, 0) != 0);
}

void job_add_state(struct table *t, const struct job_row *j)
{
        bool failed = job_has_failed(j);

        if (failed)
                table_text(t, STR("failed"));
        else
                table_view(t, j->state);
        table_paint(t, failed ? TABLE_RED : job_colour(j->state));
}

bool job_has_begun(struct view state)
{
        return view_is(state, "running") || view_is(state, "suspended") || view_is(state, "vacating");
}

bool job_is_idle(struct view state)
{
        return view_is(state, "idle") || view_is(state, "reserved") || view_is(state, "authorised");
}

enum table_colour job_colour(struct view state)
{
        if (view_is(state, "running"))
                return TABLE_GREEN;
        if (view_is(state, "held"))
                return TABLE_RED;
        if (job_is_idle(state))
                return TABLE_YELLOW;
        if (view_is(state, "completed") || view_is(state, "removed"))
                return TABLE_DIM;
        return TABLE_BLUE;
}

int jobs_ids(const char *const *words, size_t count, struct buf *out)
{
        struct str rest, word;
        struct err err;
        struct id id;

        for (size_t i = 0; i < count; i++) {
                rest = str_of(words[i]);
                while (str_cut(&rest, ',', &word)) {
                        if (id_parse(word, &id, &err) != 0)
                                return cli_error(CLI_USAGE, "%s", err.text);
                        if (out->n)
                                buf_char(out, ',');
                        buf_str(out, word);
                }
        }
        return 0;
}

int jobs_one(struct cli *cli, const char *word, struct buf *out)
{
        return jobs_one_or_several(cli, word, NULL, out);
}

int jobs_one_or_several(struct cli *cli, const char *word, bool *ret_several, struct buf *out)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct err err;
        struct id id;
        int64_t jobs;
        int code;

        if (id_parse(str_of(word), &id, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        if (ret_several)
                *ret_several = !id.whole && id.first != id.last;
        else if (!id.whole && id.first != id.last)
                return cli_error(CLI_USAGE, "%s is several jobs: name one, as in %llu.%u", word,
                                 (unsigned long long)id.request, id.first);
        if (id.whole) {
                buf_printf(&path, "/v1/requests/%llu", (unsigned long long)id.request);
                code = api_get(cli, buf_z(&path), &answer);
                if (code != 0)
                        return code;
                jobs = view_integer(view_get(answer.root, "jobs"), 0);
                if (ret_several)
                        *ret_several = jobs != 1;
                else if (jobs != 1)
                        return cli_error(CLI_USAGE, "request %s has %lld jobs: name one, as in %s.0", word,
                                         (long long)jobs, word);
        }
        if (ret_several && *ret_several)
                buf_addz(out, word);
        else
                buf_printf(out, "%llu.%u", (unsigned long long)id.request, id.first);
        return 0;
}

int jobs_get(struct cli *cli, const char *word, const char *what, struct api_answer *ret)
{
        struct buf path BUF_CLEANUP = {0}, id BUF_CLEANUP = {0};
        int code = jobs_one(cli, word, &id);

        if (code != 0)
                return code;
        buf_printf(&path, "/v1/jobs/%s/%s", buf_z(&id), what);
        return api_get(cli, buf_z(&path), ret);
}
