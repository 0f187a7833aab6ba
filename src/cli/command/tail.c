/* The end of what a job has printed, and with --follow what it prints from then on. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/client/jobs.h"
#include "cli/client/output.h"
#include "cli/command/commands.h"

#define LINES      10
#define POLL_MS    30000
#define AWAY_FIRST 100 /* pause, when the server is away */
#define AWAY_MAX   2000

struct tail {
        struct cli *cli;
        struct output o;
        enum output_stream stream;
        int64_t lines; /* of the first answer; -1: all */
        bool follow, begun, told_held;
};

/* Bytes go out unchanged: the job's own are what was asked for. */
static int print_new(struct tail *t)
{
        struct str text = buf_view(&t->o.bytes[t->stream]);
        int64_t gap = t->o.gap[t->stream];

        if (t->o.again)
                cli_note("%s has started again", t->o.job);
        if (gap)
                cli_note("%lld bytes are not kept", (long long)gap);
        if (!t->begun && t->lines >= 0)
                text = output_last_lines(text, t->lines);
        t->begun |= t->o.attempt > 0;
        if (fwrite(text.p ? text.p : "", 1, text.n, stdout) != text.n || fflush(stdout) != 0)
                return cli_error(CLI_FAILED, "cannot write to standard output");
        return 0;
}

static void tell_held(struct tail *t)
{
        bool held = strcmp(t->o.state, "held") == 0;

        if (held && !t->told_held)
                cli_note("%s is held, and prints more once it is released: drover why %s", t->o.job,
                         t->o.job);
        t->told_held = held;
}

/* Until there is no more, or, with --follow, until it has ended. Returns an exit code. */
static int go_on(struct tail *t)
{
        int away_ms = 0, wait_ms = 0, code = CLI_FAILED, rc;
        struct err err = {""};

        for (;; wait_ms = t->follow ? POLL_MS : 0) {
                rc = output_next(t->cli, &t->o, wait_ms, &err, &code);
                if (rc != 0 && (rc == API_REFUSED || rc == API_BROKEN || !t->follow))
                        return cli_error(code, "%s", err.text);
                if (rc != 0) { /* it comes back, maybe somewhere else */
                        if (away_ms == 0)
                                cli_note("the server went away; waiting for it to come back");
                        away_ms = away_ms == 0 ? AWAY_FIRST : away_ms * 2 > AWAY_MAX ? AWAY_MAX : away_ms * 2;
                        api_close(t->cli);
                        poll(NULL, 0, away_ms);
                        continue;
                }
                away_ms = 0;
                code = print_new(t);
                if (code != 0)
                        return code;
                if (t->o.ended && t->o.over)
                        return CLI_OK;
                if (!t->follow && t->o.bytes[t->stream].n < OUTPUT_LAST_MAX)
                        return CLI_OK;
                if (t->follow)
                        tell_held(t);
        }
}

int cmd_tail(struct cli *cli, const struct options *o)
{
        struct buf id BUF_CLEANUP = {0};
        struct tail t = {.cli = cli,
                         .stream = options_flag(o, "stderr") ? OUTPUT_STDERR : OUTPUT_STDOUT,
                         .lines = options_flag(o, "all") ? -1 : options_number(o, "lines", LINES),
                         .follow = options_flag(o, "follow")};
        int code = jobs_one(cli, o->words[0], &id);

        if (code != 0)
                return code;
        t.o.job = buf_z(&id);
        t.o.only = t.stream == OUTPUT_STDERR ? "stderr" : "stdout";
        t.o.last = t.lines < 0 ? 0 : OUTPUT_LAST_MAX;
        code = go_on(&t);
        output_deinit(&t.o);
        return code;
}
