#include "cli/client/output.h"

#include <stdio.h>

#include "base/format/base64.h"
#include "cli/terminal/human.h"

#define LATE_MS        20000 /* time that the answer may take beyond its wait */
#define SHOWN_BYTES    8192  /* bytes from which the last lines are taken */
#define LINE_MAX_BYTES 400

static const char *const names[2] = {"stdout", "stderr"};

void output_deinit(struct output *o)
{
        buf_deinit(&o->bytes[0]);
        buf_deinit(&o->bytes[1]);
        buf_deinit(&o->error);
}

static int read_stream(struct output *o, int k, struct view part)
{
        struct buf text BUF_CLEANUP = {0};
        int64_t offset = view_integer(view_get(part, "offset"), 0);

        if (!view_there(part))
                return 0;
        view_text(view_get(part, "data"), &text);
        o->gap[k] = offset > o->next[k] ? offset - o->next[k] : 0;
        o->next[k] = view_integer(view_get(part, "next"), 0);
        return base64_decode(&o->bytes[k], buf_view(&text));
}

static int output_read_answer(struct output *o, struct view root, struct err *err)
{
        struct buf state BUF_CLEANUP = {0};
        int64_t attempt = view_integer(view_get(root, "attempt"), 0);
        bool first = !o->asked;

        o->again = attempt != o->attempt && o->attempt > 0;
        if (attempt != o->attempt)
                o->next[0] = o->next[1] = 0;
        o->attempt = attempt;
        for (int k = 0; k < 2; k++)
                if (read_stream(o, k, view_get(root, names[k])) != 0)
                        return err_set(err, API_BROKEN, "the server's answer has bytes that are not base64");
        if (first && o->last)
                o->gap[0] = o->gap[1] = 0; /* that was asked for */
        if (attempt)
                o->asked = true;
        o->over = view_true(view_get(root, "over"));
        o->ended = view_true(view_get(root, "ended"));
        o->exit_code = (int)view_integer(view_get(root, "exit_code"), -1);
        o->exit_signal = (int)view_integer(view_get(root, "exit_signal"), -1);
        view_text(view_get(root, "error"), &o->error);
        view_text(view_get(root, "state"), &state);
        snprintf(o->state, sizeof(o->state), "%s", buf_z(&state));
        return 0;
}

int output_next(struct cli *cli, struct output *o, int timeout_ms, struct err *err, int *ret_exit)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        int rc;

        buf_reset(&o->bytes[0]);
        buf_reset(&o->bytes[1]);
        o->gap[0] = o->gap[1] = 0;
        buf_printf(&path, "/v1/jobs/%s/output?timeout_ms=%d&attempt=%lld&stdout=%lld&stderr=%lld", o->job,
                   timeout_ms, (long long)o->attempt, (long long)o->next[0], (long long)o->next[1]);
        if (o->only)
                api_query(&path, "stream", str_of(o->only));
        if (o->exec)
                buf_printf(&path, "&exec=%lld", (long long)o->exec);
        if (!o->asked && o->last)
                buf_printf(&path, "&last=%lld", (long long)o->last);
        rc = api_call(cli, &(struct api_request){.path = buf_z(&path), .timeout_ms = timeout_ms + LATE_MS},
                      &answer, err);
        if (rc == 0)
                rc = output_read_answer(o, answer.root, err);
        if (rc != 0 && ret_exit)
                *ret_exit = api_exit(rc, &answer);
        return rc;
}

struct str output_last_lines(struct str text, int64_t lines)
{
        size_t at = text.n;

        if (lines == 0)
                return STR_NONE;
        while (at > 0) {
                if (text.p[at - 1] == '\n' && at < text.n && --lines <= 0)
                        break;
                at--;
        }
        return str_skip(text, at);
}

static void add_lines(struct buf *out, struct str text, const char *indent)
{
        struct str line;

        while (text.n && str_cut(&text, '\n', &line)) {
                buf_addz(out, indent);
                human_safe(out, str_head(line, LINE_MAX_BYTES));
                buf_addz(out, line.n > LINE_MAX_BYTES ? "…\n" : "\n");
        }
}

bool output_show_last(struct cli *cli, const char *job, const char *only, int64_t lines, const char *indent,
                      struct buf *out)
{
        struct output o OUTPUT_CLEANUP = {.job = job, .only = only, .last = SHOWN_BYTES};
        size_t before = out->n;
        struct err err;

        if (output_next(cli, &o, 0, &err, NULL) != 0)
                return false;
        for (int k = 0; k < 2; k++) {
                struct str text = output_last_lines(buf_view(&o.bytes[k]), lines);

                if (text.n && !only)
                        buf_printf(out, "%s:\n", names[k]);
                add_lines(out, text, indent);
        }
        return out->n > before;
}
