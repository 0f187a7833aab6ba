/* The table of the drover runner's tasks, and the events about them, which are delivered to the agent
 * together in the loop's next turn, never from within a call of the runner. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/json_read.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "run/drover/answers.h"
#include "run/drover/credentials.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"
#include "run/process/user_command.h"

/* ---- events */

void remote_gather(struct remote *f, const struct run_event *e)
{
        event_queue_task(f->events, e);
        timer_start(f->later, 0);
}

void remote_tell(struct remote *f, const struct remote_task *t, bool known)
{
        struct run_event e = {.state = t->begun ? RUN_RUNNING : RUN_WAITING, .started_ms = t->started_ms};

        if (t->state == REMOTE_OVER) {
                e = t->result;
                e.text = t->text;
        }
        e.id = t->id;
        e.known = known;
        e.slot = UINT32_MAX;
        e.native = (int64_t)remote_number(t);
        remote_gather(f, &e);
}

void remote_over(struct remote_task *t, const struct run_event *result, const char *text)
{
        if (t->state == REMOTE_OVER)
                return;
        remote_settled(t);
        http_call_cancel(t->call);
        t->call = NULL;
        command_cancel(t->user_command);
        t->user_command = NULL;
        if (t->fd >= 0)
                close(t->fd);
        t->fd = -1;
        t->state = REMOTE_OVER;
        t->result = *result;
        if (text) {
                struct buf words = {0};

                remote_words(&words, str_of(text));
                t->text = buf_take(&words);
        }
        if (t->remote->link.listed || !t->remote->link.up)
                remote_tell(t->remote, t, false);
        timer_start(t->remote->later, 0);
}

void remote_fail(struct remote_task *t, const char *what, int error, const char *text)
{
        remote_over(t, &(struct run_event){.state = RUN_FAILED, .what = what, .error = error}, text);
}

void remote_fail_files(struct remote_task *t)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "the job's folder has more than %d files, and more are not handed on",
                   REMOTE_FILES_MAX);
        remote_fail(t, "sandbox", E2BIG, buf_z(&b));
}

void remote_list(struct remote *f)
{
        if (!f->link.up || f->link.listed || f->table.unsettled)
                return;
        f->link.listed = true;
        for (struct remote_task *t = f->table.all; t; t = t->next)
                remote_tell(f, t, true);
        free(f->link.why);
        f->link.why = NULL;
        event_queue_ready(f->events, 0, 0);
}

void remote_settled(struct remote_task *t)
{
        if (!t->unsettled)
                return;
        t->unsettled = false;
        t->remote->table.unsettled--;
        remote_list(t->remote);
}

#define HOPS_BYTES 65536 /* most bytes of a job's hops */

void remote_set_hops(struct remote_task *t, const json_t *hops)
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

void remote_files_deinit(struct remote_files *files)
{
        for (size_t i = 0; i < files->n; i++) {
                free(files->v[i].path);
                free(files->v[i].name);
        }
        free(files->v);
        *files = (struct remote_files){0};
}

void remote_words_deinit(struct remote_task *t)
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
        remote_files_deinit(&t->files);
}

void remote_checkpoint_drop(struct remote_task *t)
{
        if (!t->checkpoint)
                return;
        t->remote->table.keeping--;
        json_decref(t->checkpoint->list);
        free(t->checkpoint->id);
        free(t->checkpoint);
        t->checkpoint = NULL;
}

struct remote_task *remote_task_new(struct remote *f, struct run_id id)
{
        struct remote_task *t = mem_new(struct remote_task);

        t->remote = f;
        t->id = id;
        t->fd = -1;
        t->link = f->table.last;
        *f->table.last = t;
        f->table.last = &t->next;
        map_put(f->table.tasks, run_key(&id), t);
        return t;
}

void remote_task_free(struct remote_task *t)
{
        struct remote *f = t->remote;

        remote_settled(t);
        http_call_cancel(t->call);
        command_cancel(t->user_command);
        map_take(f->table.tasks, run_key(&t->id));
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        if (f->table.last == &t->next)
                f->table.last = t->link;
        if (t->fd >= 0)
                close(t->fd);
        remote_words_deinit(t);
        remote_credentials_free(&t->credentials);
        free(t->sandbox);
        free(t->out);
        free(t->err);
        free(t->upload);
        free(t->text);
        free(t->said);
        free(t->hops);
        free(t->global);
        json_decref(t->failed);
        remote_checkpoint_drop(t);
        free(t->checkpoint_id);
        free(t->program);
        free(t->stdin);
        free(t);
}

void remote_tasks_open(struct remote *f)
{
        f->table.last = &f->table.all;
        f->table.tasks = map_new();
}

void remote_tasks_close(struct remote *f)
{
        while (f->table.all)
                remote_task_free(f->table.all);
        map_free(f->table.tasks);
}
