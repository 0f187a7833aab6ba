/* A command beside a job's program: started by one call, and followed like the job itself. */
#include <stdio.h>

#include "base/json.h"
#include "cli/client/jobs.h"
#include "cli/client/output.h"
#include "cli/command/commands.h"

#define POLL_MS     20000
#define SIGNAL_CODE 128 /* as a shell has it: with the signal's number added */

static int start(struct cli *cli, const char *job, const struct options *o, struct output *ret)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        int code;

        buf_printf(&path, "/v1/jobs/%s/exec", job);
        json_open(&j, '{');
        json_key(&j, "argv");
        json_open(&j, '[');
        for (size_t i = 1; i < o->word_count; i++)
                json_strz(&j, o->words[i]);
        json_close(&j, ']');
        json_close(&j, '}');
        code = api_post(cli, buf_z(&path), buf_view(&body), &answer);
        if (code != 0)
                return code;
        ret->job = job;
        ret->exec = view_integer(view_get(answer.root, "exec"), 0);
        ret->attempt = view_integer(view_get(answer.root, "attempt"), 0);
        return 0;
}

static bool print_new(const struct output *o)
{
        FILE *const files[2] = {stdout, stderr};

        for (int k = 0; k < 2; k++)
                if (o->bytes[k].n && (fwrite(o->bytes[k].p, 1, o->bytes[k].n, files[k]) != o->bytes[k].n ||
                                      fflush(files[k]) != 0))
                        return false;
        return true;
}

int cmd_exec(struct cli *cli, const struct options *o)
{
        struct buf id BUF_CLEANUP = {0};
        struct output out OUTPUT_CLEANUP = {.exec = 0};
        struct err err = {""};
        int code = jobs_one(cli, o->words[0], &id);

        if (code == 0)
                code = start(cli, buf_z(&id), o, &out);
        if (code != 0)
                return code;
        do {
                if (output_next(cli, &out, POLL_MS, &err, NULL) != 0)
                        return cli_error(CLI_FAILED, "%s", err.text);
                if (!print_new(&out))
                        return cli_error(CLI_FAILED, "cannot write what the command prints");
        } while (!out.over);
        if (out.error.n)
                return cli_error(CLI_FAILED, "%s", buf_z(&out.error));
        return out.exit_signal > 0 ? SIGNAL_CODE + out.exit_signal : out.exit_code;
}
