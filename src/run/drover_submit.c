/* The submission: its file, the call, and the file once more after a restart.
 *
 * The far server may have forgotten an input that is only named: then it refuses the submission, and all
 * files go up again, once. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "run/drover_private.h"

/* Its members; the brackets are the caller's. */
static void write_task(const struct far_task *t, struct json *j)
{
        BUF_CLEANUP struct buf id = {0};
        buf_printf(&id, "%llu.%u.%u.%u", (unsigned long long)t->id.request, t->id.member, t->id.fence,
                   t->id.step);
        json_kstr(j, "task", buf_view(&id));
        json_kstrz(j, "sandbox", t->sandbox);
        if (t->out)
                json_kstrz(j, "out", t->out);
        if (t->err)
                json_kstrz(j, "err", t->err);
        json_kbool(j, "out_append", t->out_append);
        json_kbool(j, "err_append", t->err_append);
}

void far_keep(struct far_task *t)
{
        BUF_CLEANUP struct buf spooled = {0}, all = {0};
        struct json j = {.out = &spooled}, k = {.out = &all};
        struct err err = {""};
        json_open(&j, '[');
        for (size_t i = 0; i < t->files.n; i++) {
                json_open(&j, '{');
                json_kstrz(&j, "name", t->files.v[i].name);
                json_kstrz(&j, "sha256", t->files.v[i].sha256);
                json_kint(&j, "size", (int64_t)t->files.v[i].size);
                json_kbool(&j, "executable", t->files.v[i].mode & 0111);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        struct buf whole = {0};
        buf_printf(&whole, "%s,\"hold_results\":true,\"lease_ms\":%lld,\"spooled\":" STR_FMT "}",
                   t->submission, (long long)far_lease_ms(t->far), STR_ARG(buf_view(&spooled)));
        json_open(&k, '{');
        write_task(t, &k);
        json_key(&k, "submit");
        json_raw(&k, buf_view(&whole));
        json_close(&k, '}');
        if (fs_write(t->far->fd, t->uuid, buf_view(&all), 0600, true, &err) < 0) {
                buf_deinit(&whole);
                far_over(t, &(struct run_event){.state = RUN_LOST}, err.text);
                return;
        }
        if (!t->again) { /* as it was described, for another time */
                t->head = t->submission;
        }
        t->submission = buf_take(&whole);
        t->state = FAR_KEPT;
        far_submit(t);
}

/* The far server has forgotten a file, or never had it. */
static void send_again(struct far_task *t)
{
        map_free(t->far->known);
        t->far->known = map_new();
        if (t->again || !t->head) {
                far_over(t, &(struct run_event){.state = RUN_LOST},
                         "the other server no longer has the job's inputs");
                return;
        }
        t->again = true;
        free(t->submission);
        t->submission = t->head;
        t->head = NULL;
        t->files.at = 0;
        t->state = FAR_FRESH;
}

static void submitted(struct far_task *t, const json_t *doc)
{
        struct far *f = t->far;
        t->request = (uint64_t)json_integer_value(json_object_get(doc, "id"));
        idmap_put(f->requests, t->request, t);
        t->state = FAR_IN;
        t->renewed_ms = clock_boot_ms();
        t->lease_serial = t->unsettled ? 0 : f->lease_serial;
        free(t->submission);
        free(t->head);
        t->submission = t->head = NULL;
        far_files_deinit(&t->files);
        if (t->killing)
                far_act(t, FAR_REMOVE);
        else if (t->suspended || t->waits)
                far_act(t, FAR_HOLD);
        t->dirty |= t->unsettled || json_is_true(json_object_get(doc, "existing")) || t->cursor != f->cursor;
        if (t->dirty)
                far_look(t);
}

static void on_submitted(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        t->call = NULL;
        json_t *doc = status ? far_document(body) : NULL;
        const char *code = json_string_value(json_object_get(json_object_get(doc, "error"), "code"));
        if (status / 100 == 2 && json_integer_value(json_object_get(doc, "id")) > 0)
                submitted(t, doc);
        else if (code && !strcmp(code, "bad_upload"))
                send_again(t);
        else
                far_call_failed(t, status / 100 == 2 ? 0 : status, body, err, "request");
        json_decref(doc);
        timer_start(t->far->later, 0);
}

void far_submit(struct far_task *t)
{
        BUF_CLEANUP struct buf path = {0};
        t->cursor = t->far->cursor;
        buf_addz(&path, "/v1/requests");
        far_call(t, "POST", &path, str_of(t->submission), NULL, on_submitted);
}

/* ---- after a restart */

static char *text_of(const json_t *doc, const char *name)
{
        const char *z = json_string_value(json_object_get(doc, name));
        return z ? mem_dupz(z) : NULL;
}

bool far_restore(struct far *f, struct str text, const char *uuid)
{
        json_t *doc = far_document(text), *submit = json_object_get(doc, "submit");
        const char *id = json_string_value(json_object_get(doc, "task"));
        struct run_id name;
        bool good = submit && id && run_id_parse(str_of(id), &name) && json_object_get(doc, "sandbox");
        if (good) {
                struct far_task *t = far_task_new(f, name);
                char *dump = json_dumps(submit, JSON_COMPACT);
                t->state = FAR_KEPT;
                snprintf(t->uuid, sizeof(t->uuid), "%s", uuid);
                t->sandbox = text_of(doc, "sandbox");
                t->out = text_of(doc, "out");
                t->err = text_of(doc, "err");
                t->out_append = json_is_true(json_object_get(doc, "out_append"));
                t->err_append = json_is_true(json_object_get(doc, "err_append"));
                t->submission = mem_dupz(dump);
                free(dump);
        }
        json_decref(doc);
        return good;
}
