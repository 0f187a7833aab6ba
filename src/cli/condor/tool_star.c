/* star-submit, star-submit-template and star-kill-job: SUMS's commands, for those who have them in their
 * scripts. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "cli/client/ids.h"
#include "cli/client/queue_choice.h"
#include "cli/client/session_file.h"
#include "cli/client/submit.h"
#include "cli/client/sums_files.h"
#include "cli/condor/condor.h"

static int star_submit_file(struct cli *cli, const struct flags *f, const char *file,
                            const struct entity *entities, size_t count)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, session BUF_CLEANUP = {0};
        struct submit s;
        int64_t id = 0;
        int code;

        submit_init(&s, cli, file);
        submit_choose_policy(&s, flags_text(f, "p"));
        s.entities = entities;
        s.entity_count = count;
        code = submit_read(&s);
        if (code == 0 && s.language != SUBMIT_SUMS && s.language != SUBMIT_RDL)
                code = cli_error(
                        1, "%s is not a description of SUMS, which is XML; drover submit takes others", file);
        if (code == 0)
                queue_choice_ask(&s, &s.queues);
        if (code == 0 && !s.sums.simulate) {
                code = submit_send(&s, &answer);
                id = view_integer(view_get(answer.root, "id"), 0);
        }
        if (code == 0)
                code = sums_files_write(&s, id); /* of a request that is there then, too */
        if (id && code == 0) {
                sums_files_report(&s, &path);
                sums_files_session(&s, &session);
                session_file_leave(cli, buf_z(&session), &answer, file, buf_z(&path));
                buf_reset(&path);
        }
        if (code == 0) {
                sums_files_report(&s, &path);
                printf("%llu job(s) %s", (unsigned long long)form_members(&s.form),
                       id ? "submitted to request " : "simulated, none submitted");
                if (id)
                        printf("%lld", (long long)id);
                printf("\nReport: %s\n", buf_z(&path));
                if (id)
                        printf("Session: %s\n", buf_z(&session));
        }
        submit_deinit(&s);
        return code;
}

static int star_submit_all(struct cli *cli, const struct flags *f)
{
        return star_submit_file(cli, f, f->words[0], NULL, 0);
}

/* NAME=VALUE,NAME=VALUE: a comma begins another one only where a name and = follow. */
static int read_entities(char *text, struct entity **ret, size_t *count, size_t *cap)
{
        struct str rest = str_of(text);

        while (rest.n) {
                ptrdiff_t equals = str_find(rest, '=');
                struct str name = str_trim(str_head(rest, equals < 0 ? 0 : (size_t)equals)), value;
                size_t end;

                if (!entities_is_name(name))
                        return cli_error(1, "-entities takes NAME=VALUE,NAME=VALUE, and \"%.*s\" is none",
                                         (int)(rest.n < 60 ? rest.n : 60), rest.p);
                rest = str_skip(rest, (size_t)equals + 1);
                for (end = 0; end < rest.n; end++) {
                        struct str next = str_skip(rest, end + 1);
                        ptrdiff_t sign = str_find(next, '=');

                        if (rest.p[end] == ',' && sign > 0 &&
                            entities_is_name(str_trim(str_head(next, (size_t)sign))))
                                break;
                }
                value = str_head(rest, end);
                rest = str_skip(rest, end + 1);
                MEM_GROW(*ret, *cap, *count + 1);
                (*ret)[(*count)++] = (struct entity){name, value};
        }
        return 0;
}

static int submit_template(struct cli *cli, const struct flags *f)
{
        const char *file = flags_text(f, "template");
        struct entity *entities = NULL;
        const struct flag_given *g;
        size_t count = 0, cap = 0, at = 0;
        int code = 0;

        if (!file && f->word_count == 1)
                file = f->words[0];
        else if (!file || f->word_count)
                return cli_error(
                        1, "which template? star-submit-template -template FILE -entities NAME=VALUE,...");
        while (code == 0 && (g = flags_next(f, "entities", &at)))
                code = read_entities((char *)g->words[0], &entities, &count, &cap);
        if (code == 0)
                code = star_submit_file(cli, f, file, entities, count);
        free(entities);
        return code;
}

/* ---- star-kill-job */

/* The call that removes the jobs which the word names: a job or a request of SUMS, or of Drover. */
static int write_removal(const char *word, struct buf *body)
{
        struct json j = {.out = body};
        struct buf constraint BUF_CLEANUP = {0};
        struct id id;
        size_t hex = 0;

        while (isxdigit((unsigned char)word[hex]))
                hex++;
        if (hex == 32 && (word[32] == 0 || word[32] == '_')) {
                uint64_t member;

                buf_printf(&constraint, "SumsRequestId == \"%.32s\"", word);
                if (word[32] && str_to_u64(str_of(word + 33), &member) != 0)
                        return cli_error(
                                1, "%.100s is no id of a job: 32 digits, _ and a number are expected", word);
                if (word[32])
                        buf_printf(&constraint, " && ProcId == %s", word + 33);
        } else if (id_parse(str_of(word), &id, NULL) != 0) {
                return cli_error(
                        1,
                        "%.100s is no id: a request is 32 hexadecimal digits, a job these with _ and "
                        "its number, as a report and $JOBID have them; Drover's 7 and 7.42 will do",
                        word);
        }
        json_open(&j, '{');
        json_kstrz(&j, "action", "remove");
        json_key(&j, "ids");
        json_open(&j, '[');
        if (!constraint.n)
                json_strz(&j, word);
        json_close(&j, ']');
        if (constraint.n)
                json_kstr(&j, "constraint", buf_view(&constraint));
        json_close(&j, '}');
        return 0;
}

static int kill_jobs(struct cli *cli, const struct flags *f)
{
        int failed = 0;

        for (size_t i = 0; i < f->word_count; i++) {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct buf body BUF_CLEANUP = {0};
                struct err err = {""};
                long long count;

                if (write_removal(f->words[i], &body) != 0) {
                        failed = 1;
                        continue;
                }
                if (api_call(cli,
                             &(struct api_request){
                                     .method = "POST", .path = "/v1/actions", .body = buf_view(&body)},
                             &answer, &err) != 0) {
                        failed = cli_error(1, "%s: %s", f->words[i], err.text);
                        continue;
                }
                count = view_integer(view_get(answer.root, "affected"), 0);
                if (count == 0)
                        failed = cli_error(1, "%s: there is no such job, or it has ended", f->words[i]);
                else
                        printf("%s: %lld job(s) killed\n", f->words[i], count);
        }
        return failed;
}

#define COMMON                                                                                               \
        {"u", 0, FLAG_VALUE, FLAG_SO, "INTERFACE", "Submits have one interface."},                           \
        {                                                                                                    \
                "p", 0, FLAG_VALUE, FLAG_ACTS, "POLICY",                                                     \
                        "How places are chosen: a policy of the server's settings (drover config show)."     \
        }
static const struct flag_row submit_rows[] = {COMMON, {0}};
static const struct flag_row template_rows[] = {
        {"template", 1, FLAG_VALUE, FLAG_ACTS, "FILE", "The description, with references to entities in it."},
        {"entities", 1, FLAG_VALUE, FLAG_ACTS, "NAME=VALUE,...", "What stands for &NAME; in it."},
        COMMON,
        {0},
};
static const struct flag_row kill_rows[] = {{0}};

const struct condor_tool star_submit = {"star-submit",
                                        "[FLAGS] FILE",
                                        "Submits the jobs that a description of SUMS asks for.",
                                        submit_rows,
                                        1,
                                        1,
                                        star_submit_all};
const struct condor_tool star_submit_template = {
        "star-submit-template",
        "-template FILE [-entities NAME=VALUE,...]",
        "Submits a description of SUMS after putting in its entities.",
        template_rows,
        0,
        1,
        submit_template};
const struct condor_tool star_kill_job = {"star-kill-job",
                                          "REQUESTID | JOBID | CLUSTER[.PROC]...",
                                          "Removes jobs, which are named by SUMS's ids or Drover's.",
                                          kill_rows,
                                          1,
                                          100000,
                                          kill_jobs};
