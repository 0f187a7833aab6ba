/* condor_qedit and condor_prio: one POST /v1/actions for all jobs and changes of the command line. */
#include <stdio.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "classad/expr.h"
#include "cli/condor/condor.h"
#include "cli/condor/select.h"

/* The words of the call up to the first attribute: which jobs are meant. */
struct meant {
        struct select select;
        struct buf constraint;
};

static int read_meant(struct meant *m, const struct flags *f, size_t words, struct err *err)
{
        struct flags head = *f;

        head.word_count = words;
        if (select_words(&m->select, &head, "constraint", err) != 0)
                return -1;
        buf_str(&m->constraint, buf_view(&m->select.constraint));
        if (!m->select.named && m->constraint.n == 0)
                return err_set(err, -1, "which jobs? Give cluster, cluster.proc, a user or -constraint");
        return 0;
}

static void meant_deinit(struct meant *m)
{
        select_deinit(&m->select);
        buf_deinit(&m->constraint);
}

/* The answer is the caller's to deinit. 0, or an exit code after an error. */
static int edit_post(struct cli *cli, const struct meant *m, const char *action, struct str more,
                     struct api_answer *ret)
{
        struct buf body BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        struct err err = {""};
        int rc;

        json_open(&j, '{');
        json_kstrz(&j, "action", action);
        json_key(&j, "ids");
        json_open(&j, '[');
        for (size_t i = 0; i < m->select.id_count; i++)
                json_strz(&j, m->select.ids[i]);
        json_close(&j, ']');
        if (m->constraint.n)
                json_kstr(&j, "constraint", buf_view(&m->constraint));
        buf_char(&body, ',');
        buf_str(&body, more);
        json_close(&j, '}');
        rc = api_call(cli,
                      &(struct api_request){.method = "POST", .path = "/v1/actions", .body = buf_view(&body)},
                      ret, &err);
        return rc == 0 ? 0 : cli_error(1, "%s", err.text);
}

/* ---- condor_qedit */

struct change {
        const char *word; /* the attribute; up to '=' where there is one */
        size_t n;
        const char *value;
};

/* Attributes begin behind the words that say which jobs: in pairs, or with '='. */
static size_t read_changes(const struct flags *f, size_t from, struct change *ret, struct err *err)
{
        size_t n = 0;

        for (size_t i = from; i < f->word_count; n++) {
                const char *word = f->words[i++], *eq = strchr(word, '=');

                if (eq && eq > word) {
                        ret[n] = (struct change){word, (size_t)(eq - word), eq + 1};
                        continue;
                }
                if (i == f->word_count) {
                        err_set(err, -1, "%s has no value", word);
                        return 0;
                }
                ret[n] = (struct change){word, strlen(word), f->words[i++]};
        }
        if (n == 0)
                err_set(err, -1, "which attribute? condor_qedit 7 Attribute value");
        return n;
}

static void write_changes(struct buf *out, const struct change *all, size_t count)
{
        struct json j = {.out = out};

        json_key(&j, "attributes");
        json_open(&j, '{');
        for (size_t i = 0; i < count; i++) {
                struct buf name BUF_CLEANUP = {0}, value BUF_CLEANUP = {0};

                buf_str(&name, str_make(all[i].word, all[i].n));
                expr_text_from_old(str_of(all[i].value), &value);
                json_kstr(&j, buf_z(&name), buf_view(&value));
        }
        json_close(&j, '}');
}

/* The words that say which jobs: ids, or one owner's name when no id and no constraint is there. */
static size_t jobs_before(const struct flags *f)
{
        size_t n = 0;

        while (n < f->word_count && select_is_id(f->words[n]))
                n++;
        return n || flags_has(f, "constraint") || f->word_count == 0 ? n : 1;
}

static int change_jobs(struct cli *cli, const struct flags *f)
{
        struct change *all = mem_array(NULL, f->word_count + 1, sizeof(*all));
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf more BUF_CLEANUP = {0};
        size_t from = jobs_before(f), count;
        struct meant m = {0};
        struct err err = {""};
        int64_t done;
        int code = 0;

        count = read_changes(f, from, all, &err);
        if (count == 0 || read_meant(&m, f, from, &err) != 0)
                code = cli_error(1, "%s", err.text);
        write_changes(&more, all, count);
        if (code == 0)
                code = edit_post(cli, &m, "edit", buf_view(&more), &answer);
        done = code == 0 ? view_integer(view_get(answer.root, "affected"), 0) : 0;
        for (size_t i = 0; i < count && done > 0; i++)
                printf("Set attribute \"%.*s\" for %lld matching jobs.\n", (int)all[i].n, all[i].word,
                       (long long)done);
        if (code == 0 && done == 0)
                code = cli_error(1, "no job was changed: none of them is idle or held");
        meant_deinit(&m);
        free(all);
        return code;
}

static const struct flag_row edit_rows[] = {
        {"constraint", 1, FLAG_VALUE, FLAG_ACTS, "EXPR", "Only jobs for which this expression is true."},
        {"edits", 2, FLAG_VALUE, FLAG_REFUSED, "FILE", "name the attributes on the command line."},
        {"forward", 1, FLAG_PLAIN, FLAG_SO, NULL, "Jobs that were handed on are changed where they wait."},
        {"unsafe", 1, FLAG_PLAIN, FLAG_REFUSED, NULL, "what Drover keeps cannot be changed."},
        {0},
};
const struct condor_tool condor_qedit = {
        .name = "condor_qedit",
        .usage = "[FLAGS] [CLUSTER | CLUSTER.PROC | USER]... ATTRIBUTE VALUE...",
        .line = "Changes attributes of jobs that are idle or held; also ATTRIBUTE=VALUE.",
        .rows = edit_rows,
        .words_max = 100000,
        .run = change_jobs,
};

/* ---- condor_prio */

static int set_priority(struct cli *cli, const struct flags *f)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf more BUF_CLEANUP = {0};
        struct meant m = {0};
        struct err err = {""};
        int64_t value;
        int code = 0;

        if (!flags_has(f, "p"))
                return cli_error(1, "which priority? condor_prio -p 10 7");
        if (flags_number(f, "p", 0, &value, &err) != 0 || read_meant(&m, f, f->word_count, &err) != 0)
                code = cli_error(1, "%s", err.text);
        buf_printf(&more, "\"value\":%lld", (long long)value);
        if (code == 0)
                code = edit_post(cli, &m, "priority", buf_view(&more), &answer);
        if (code == 0 && view_integer(view_get(answer.root, "affected"), 0) == 0)
                code = cli_error(1, "no job was changed");
        meant_deinit(&m);
        return code;
}

static const struct flag_row priority_rows[] = {
        {"p", 1, FLAG_VALUE, FLAG_ACTS, "N", "The priority: higher runs first among its owner's jobs."},
        {"constraint", 1, FLAG_VALUE, FLAG_ACTS, "EXPR", "Only jobs for which this expression is true."},
        {0},
};
const struct condor_tool condor_prio = {
        .name = "condor_prio",
        .usage = "-p N [FLAGS] [CLUSTER | CLUSTER.PROC | USER]...",
        .line = "Sets the priority of jobs.",
        .rows = priority_rows,
        .words_max = 100000,
        .run = set_priority,
};
