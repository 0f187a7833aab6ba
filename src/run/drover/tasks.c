/* The drover runner's tasks: the table, and what is told of them to the agent: in the next turn of the loop,
 * all at once, and never from within one of the runner's verbs. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/drover/private.h"

/* ---- telling */

void far_gather(struct far *f, const struct run_event *e)
{
        event_queue_task(f->events, e);
        timer_start(f->later, 0);
}

void far_tell(struct far *f, const struct far_task *t, bool known)
{
        struct run_event e = {.state = t->begun ? RUN_RUNNING : RUN_WAITING, .started_ms = t->started_ms};
        if (t->state == FAR_OVER) {
                e = t->result;
                e.text = t->text;
        }
        e.id = t->id;
        e.known = known;
        e.slot = UINT32_MAX;
        e.native = (int64_t)far_number(t);
        far_gather(f, &e);
}

void far_over(struct far_task *t, const struct run_event *result, const char *text)
{
        if (t->state == FAR_OVER)
                return;
        far_settled(t);
        http_call_cancel(t->call);
        t->call = NULL;
        command_cancel(t->errand);
        t->errand = NULL;
        if (t->fd >= 0)
                close(t->fd);
        t->fd = -1;
        t->state = FAR_OVER;
        t->result = *result;
        if (text) {
                struct buf words = {0};
                far_words(&words, str_of(text));
                t->text = buf_take(&words);
        }
        if (t->far->link.listed || t->far->link.refused)
                far_tell(t->far, t, false);
        timer_start(t->far->later, 0);
}

void far_fail(struct far_task *t, const char *what, int error, const char *text)
{
        far_over(t, &(struct run_event){.state = RUN_FAILED, .what = what, .error = error}, text);
}

void far_fail_files(struct far_task *t)
{
        BUF_CLEANUP struct buf b = {0};
        buf_printf(&b, "the job's folder has more than %d files, and more are not handed on", FAR_FILES_MAX);
        far_fail(t, "sandbox", E2BIG, buf_z(&b));
}

void far_list(struct far *f)
{
        if (!f->link.up || f->link.listed || f->table.unsettled)
                return;
        f->link.listed = true;
        for (struct far_task *t = f->table.all; t; t = t->next)
                far_tell(f, t, true);
        free(f->link.why);
        f->link.why = NULL;
        event_queue_ready(f->events, 0, 0);
}

void far_settled(struct far_task *t)
{
        if (!t->unsettled)
                return;
        t->unsettled = false;
        t->far->table.unsettled--;
        far_list(t->far);
}

#define HOPS_BYTES 65536 /* of a job's path */

void far_set_hops(struct far_task *t, const json_t *hops)
{
        char *text = json_dumps(hops, JSON_COMPACT);
        if (text && strlen(text) > HOPS_BYTES) {
                free(text);
                text = NULL;
        }
        free(t->hops);
        t->hops = text;
}

/* ---- the table */

void far_files_deinit(struct far_files *files)
{
        for (size_t i = 0; i < files->n; i++) {
                free(files->v[i].path);
                free(files->v[i].name);
        }
        free(files->v);
        *files = (struct far_files){0};
}

void far_words_deinit(struct far_task *t)
{
        for (size_t i = 0; i < t->word_count; i++) {
                free(t->words[i].name);
                free(t->words[i].value);
        }
        free(t->words);
        free(t->origin);
        free(t->servers);
        free(t->job);
        t->words = NULL;
        t->word_count = t->word_cap = 0;
        t->origin = t->servers = t->job = NULL;
        far_files_deinit(&t->files);
}

void far_kept_drop(struct far_task *t)
{
        if (!t->kept)
                return;
        t->far->table.keeping--;
        json_decref(t->kept->list);
        free(t->kept->id);
        free(t->kept);
        t->kept = NULL;
}

struct far_task *far_task_new(struct far *f, struct run_id id)
{
        struct far_task *t = mem_new(struct far_task);
        t->far = f;
        t->id = id;
        t->fd = -1;
        t->link = f->table.last;
        *f->table.last = t;
        f->table.last = &t->next;
        map_put(f->table.tasks, run_key(&id), t);
        return t;
}

void far_task_free(struct far_task *t)
{
        struct far *f = t->far;
        far_settled(t);
        http_call_cancel(t->call);
        command_cancel(t->errand);
        map_take(f->table.tasks, run_key(&t->id));
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        if (f->table.last == &t->next)
                f->table.last = t->link;
        if (t->fd >= 0)
                close(t->fd);
        far_words_deinit(t);
        far_credentials_free(&t->credentials);
        free(t->sandbox);
        free(t->out);
        free(t->err);
        free(t->upload);
        free(t->text);
        free(t->said);
        free(t->hops);
        free(t->global);
        json_decref(t->failed);
        far_kept_drop(t);
        free(t->kept_id);
        free(t->program);
        free(t->stdin);
        free(t);
}

void far_tasks_open(struct far *f)
{
        f->table.last = &f->table.all;
        f->table.tasks = map_new();
}

void far_tasks_close(struct far *f)
{
        while (f->table.all)
                far_task_free(f->table.all);
        map_free(f->table.tasks);
}
