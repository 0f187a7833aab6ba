#include "cli/client/session_batch.h"

#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/job/args.h"

extern char **environ;

#define NOTED_MAX 1000u /* calls of the server for one command of the user */

/* How a batch system's commands list and end jobs. join: ids are one word, with commas between. */
static const struct batch_words {
        const char *runner, *list, *end;
        bool join;
        bool arrays; /* only whole arrays can be listed */
} systems[] = {
        {"slurm", "squeue --noheader --states=all --format=%i|%T|%R --jobs=", "scancel ", true, false},
        {"gridengine", "qstat -j ", "qdel ", true, true},
        {"pbs", "qstat ", "qdel ", false, false},
        {"htcondor", "condor_q ", "condor_rm ", false, false},
};
#define SYSTEMS (sizeof(systems) / sizeof(systems[0]))

static bool is_batch(struct str runner)
{
        for (size_t i = 0; i < SYSTEMS; i++)
                if (str_eqz(runner, systems[i].runner))
                        return true;
        return false;
}

/* ---- noting */

static bool has_job(const struct session_file *s, struct str id)
{
        for (size_t i = 0; i < s->job_count; i++)
                if (str_eqz(id, s->jobs[i].id))
                        return true;
        return false;
}

/* The agent is asked for the script, once for each array. */
static void note_script(struct cli *cli, struct str id, struct str runner, struct str native,
                        struct session_file *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};

        if (session_file_has_script(s, runner, native))
                return;
        buf_printf(&path, "/v1/jobs/" STR_FMT "/script", STR_ARG(id));
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return;
        view_text(view_get(answer.root, "script"), &text);
        session_file_add_script(s, runner, native, buf_view(&text));
}

static bool note_job(struct cli *cli, struct str id, struct session_file *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, runner BUF_CLEANUP = {0}, native BUF_CLEANUP = {0};
        struct view hops, hop;
        size_t at = 0;

        buf_printf(&path, "/v1/jobs/" STR_FMT "/path", STR_ARG(id));
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return false;
        hops = view_get(answer.root, "hops");
        while (view_next(hops, &at, &hop)) { /* the last one that has a name for it */
                if (!view_there(view_get(hop, "native")))
                        continue;
                buf_reset(&runner);
                buf_reset(&native);
                view_text(view_get(hop, "runner"), &runner);
                view_text(view_get(hop, "native"), &native);
        }
        if (!is_batch(buf_view(&runner)))
                return true;
        session_file_add_job(s, id, buf_view(&runner), buf_view(&native));
        note_script(cli, id, buf_view(&runner), buf_view(&native), s);
        return true;
}

void session_batch_note(struct cli *cli, const char *path, struct session_file *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf call BUF_CLEANUP = {0};
        struct view jobs, job;
        size_t at = 0, before = s->job_count;
        unsigned asked = 0;

        buf_addz(&call, "/v1/jobs?state=staging,running,suspended&id=");
        for (size_t i = 0; i < s->count; i++)
                buf_printf(&call, "%s%llu", i ? "," : "", (unsigned long long)s->requests[i].id);
        if (!s->own || api_call(cli, &(struct api_request){.path = buf_z(&call)}, &answer, NULL) != 0)
                return;
        jobs = view_get(answer.root, "jobs");
        while (view_next(jobs, &at, &job) && asked < NOTED_MAX) {
                struct buf id BUF_CLEANUP = {0};

                view_text(view_get(job, "id"), &id);
                if (has_job(s, buf_view(&id)))
                        continue;
                asked++;
                if (!note_job(cli, buf_view(&id), s))
                        break;
        }
        if (s->job_count > before)
                session_file_write(path, s);
}

/* ---- without the server */

static int run(struct args *words)
{
        pid_t child;
        int status = 0, r;

        fflush(stdout);
        r = posix_spawnp(&child, words->v[0], NULL, NULL, words->v, environ);
        if (r != 0)
                return cli_error(CLI_FAILED, "%s: %s", words->v[0], strerror(r));
        while (waitpid(child, &status, 0) < 0)
                continue;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CLI_OK : CLI_FAILED;
}

/* Arrays come together: it suffices to look at the last id. */
static bool has_id(struct str ids, struct str id)
{
        return str_eq(str_skip(ids, (size_t)(str_rfind(ids, ',') + 1)), id);
}

/* Runs a system's command for the session's jobs there. */
static int ask_system(const struct session_file *s, const struct batch_words *system, const char *command,
                      size_t *ret_count)
{
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf ids = {0};
        struct str rest = str_of(command), word;
        size_t jobs = 0;

        for (size_t i = 0; i < s->job_count; i++) {
                BUF_CLEANUP struct buf id = {0};

                if (strcmp(s->jobs[i].runner, system->runner) != 0)
                        continue;
                jobs++;
                if (system->arrays && command == system->list)
                        session_file_native_base(str_of(s->jobs[i].native), &id);
                else
                        buf_addz(&id, s->jobs[i].native);
                if (!has_id(buf_view(&ids), buf_view(&id)))
                        buf_printf(&ids, "%s%s", ids.n ? "," : "", buf_z(&id));
        }
        *ret_count += jobs;
        if (jobs == 0)
                return CLI_OK;
        while (str_word(&rest, &word))
                args_add(&words, word);
        if (system->join && command[strlen(command) - 1] == '=') {
                BUF_CLEANUP struct buf last = {0};

                buf_printf(&last, "%s%s", words.v[words.n - 1], buf_z(&ids));
                free(words.v[words.n - 1]);
                words.v[words.n - 1] = buf_take(&last);
                return run(&words);
        }
        rest = buf_view(&ids);
        while (!system->join && str_cut(&rest, ',', &word))
                args_add(&words, word);
        if (system->join)
                args_add(&words, buf_view(&ids));
        return run(&words);
}

static int ask_all(const struct session_file *s, bool end)
{
        size_t count = 0;
        int code = CLI_OK;

        for (size_t i = 0; i < SYSTEMS; i++) {
                int r = ask_system(s, &systems[i], end ? systems[i].end : systems[i].list, &count);

                code = code ? code : r;
        }
        return count ? code : CLI_FAILED;
}

int session_batch_list(const struct session_file *s)
{
        return ask_all(s, false);
}

int session_batch_end(const struct session_file *s)
{
        return ask_all(s, true);
}
