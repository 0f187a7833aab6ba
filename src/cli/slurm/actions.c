#include "cli/slurm/actions.h"

#include <errno.h>
#include <signal.h>

#include "base/format/json.h"
#include "cli/client/api.h"
#include "cli/slurm/ids.h"

int action_do(struct cli *cli, const struct action *a, const char *word, struct str constraint,
              struct err *err)
{
        BUF_CLEANUP struct buf body = {0}, which = {0}, all = {0}, why = {0};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct json j = {.out = &body};
        struct view item;
        size_t at = 0;
        int rc;

        buf_str(&all, constraint);
        if (word) {
                BUF_CLEANUP struct buf tasks = {0};
                struct job_id id;

                if (job_id_parse(str_of(word), &id, err) != 0)
                        return -EINVAL;
                job_id_select(&id, &which, &tasks);
                job_id_deinit(&id);
                if (tasks.n)
                        buf_printf(&all, "%s%s", all.n ? " && " : "", buf_z(&tasks));
        }
        json_open(&j, '{');
        json_kstrz(&j, "action", a->name);
        json_key(&j, "ids");
        json_open(&j, '[');
        if (which.n)
                json_str(&j, buf_view(&which));
        json_close(&j, ']');
        if (all.n)
                json_kstr(&j, "constraint", buf_view(&all));
        if (a->has_value)
                json_kint(&j, "value", a->value);
        buf_str(&body, a->members);
        json_close(&j, '}');
        rc = api_call(cli,
                      &(struct api_request){.method = "POST", .path = "/v1/actions", .body = buf_view(&body)},
                      &answer, err);
        if (rc == API_REFUSED && answer.status == 404)
                return ACTION_NO_JOB;
        if (rc != 0)
                return -EIO;
        if (view_next(view_get(answer.root, "errors"), &at, &item))
                view_text(view_get(item, "message"), &why);
        err_set(err, 0, "%s", buf_z(&why));
        return view_integer(view_get(answer.root, "affected"), 0) > 0 ? 0 : ACTION_NOTHING;
}

int action_signal(struct str name)
{
        static const struct {
                const char *name;
                int number;
        } names[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"KILL", SIGKILL},
                     {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"CONT", SIGCONT},
                     {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"ALRM", SIGALRM}, {"ABRT", SIGABRT},
                     {"URG", SIGURG},   {"XCPU", SIGXCPU}};
        uint64_t number;

        if (str_to_u64(name, &number) == 0)
                return number > 0 && number < 65 ? (int)number : 0;
        if (str_istarts(name, STR("SIG")))
                name = str_skip(name, 3);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (str_ieqz(name, names[i].name))
                        return names[i].number;
        return 0;
}
