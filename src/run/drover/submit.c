/* Submits requests: writes the file, makes the call, and reads the file again after a restart.
 *
 * If the other server no longer has an input that is only named, it refuses the submission, and all files
 * are sent again, once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/format/json_read.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/drover/acts.h"
#include "run/drover/answers.h"
#include "run/drover/credential_sync.h"
#include "run/drover/credentials.h"
#include "run/drover/feed.h"
#include "run/drover/lease.h"
#include "run/drover/link.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define GONE_MAX (1u << 20)

struct remote_request *remote_request_new(struct remote *f, const char *uuid, size_t count)
{
        struct remote_request *r = mem_new(struct remote_request);

        r->remote = f;
        r->count = count;
        r->tasks = mem_zalloc((count + 1) * sizeof(*r->tasks));
        snprintf(r->uuid, sizeof(r->uuid), "%s", uuid);
        r->link = f->table.sent_last;
        *f->table.sent_last = r;
        f->table.sent_last = &r->next;
        return r;
}

void remote_request_free(struct remote_request *r)
{
        struct remote *f = r->remote;

        http_call_cancel(r->call);
        if (r->number && idmap_get(f->table.requests, r->number) == r)
                idmap_take(f->table.requests, r->number);
        *r->link = r->next;
        if (r->next)
                r->next->link = r->link;
        if (f->table.sent_last == &r->next)
                f->table.sent_last = r->link;
        remote_credentials_free(&r->credentials);
        free(r->said);
        free(r->tasks);
        free(r->submission);
        free(r);
}

static void gone_name(const struct remote_request *r, char name[UUID_TEXT + 8])
{
        snprintf(name, UUID_TEXT + 8, "%s.gone", r->uuid);
}

static void remove_files(struct remote_request *r)
{
        char name[UUID_TEXT + 8];

        gone_name(r, name);
        unlinkat(r->remote->fd, r->uuid, 0);
        unlinkat(r->remote->fd, name, 0);
}

/* Notes that a member is forgotten; the request's file stays for the others. A line may be lost in a power
 * failure without harm: the task is reported to the agent again, and forgotten again. */
static void note_gone(struct remote_request *r, uint32_t member)
{
        char name[UUID_TEXT + 8], line[16];

        gone_name(r, name);
        int n = snprintf(line, sizeof(line), "%u\n", member);
        int fd = openat(r->remote->fd, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || fs_write_all(fd, line, (size_t)n) < 0)
                log_warn("msg=\"cannot note that a handed-on job is forgotten\" file=\"%s/%s\" error=\"%s\"",
                         r->remote->dir, name, strerror(errno));
        if (fd >= 0)
                close(fd);
}

void remote_request_left(struct remote_request *r, uint32_t member)
{
        r->tasks[member] = NULL;
        if (--r->left > 0) {
                note_gone(r, member);
                return;
        }
        remove_files(r);
        remote_request_free(r);
}

/* ---- the file */

static void write_task(const struct remote_task *t, struct json *j)
{
        BUF_CLEANUP struct buf id = {0};

        run_id_print(&id, t->id);
        json_open(j, '{');
        json_kstr(j, "task", buf_view(&id));
        json_kstrz(j, "sandbox", t->sandbox);
        if (t->out)
                json_kstrz(j, "out", t->out);
        if (t->err)
                json_kstrz(j, "err", t->err);
        json_kbool(j, "out_append", t->out_append);
        json_kbool(j, "err_append", t->err_append);
        json_close(j, '}');
}

static void write_spooled(const struct remote_files *files, struct json *j)
{
        json_open(j, '[');
        for (size_t i = 0; i < files->n; i++) {
                json_open(j, '{');
                json_kstrz(j, "name", files->v[i].name);
                json_kstrz(j, "sha256", files->v[i].sha256);
                json_kint(j, "size", (int64_t)files->v[i].size);
                json_kbool(j, "executable", files->v[i].mode & 0111);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void finish_document(struct remote_request *r)
{
        BUF_CLEANUP struct buf spooled = {0};
        struct json j = {.out = &spooled};
        struct buf whole = {0};

        write_spooled(&r->tasks[0]->files, &j);
        buf_printf(&whole, "%s,\"hold_results\":true,\"lease_ms\":%lld,\"spooled\":" STR_FMT "}",
                   r->submission, (long long)remote_lease_ms(r->remote), STR_ARG(buf_view(&spooled)));
        free(r->submission);
        r->submission = buf_take(&whole);
}

/* Takes the tasks out of the request. */
static void dissolve(struct remote_request *r)
{
        for (struct remote_credential *c = r->credentials; c; c = c->next)
                for (size_t i = 0; i < r->count; i++)
                        if (r->tasks[i])
                                remote_credential_set(
                                        &r->tasks[i]->credentials,
                                        &(struct run_credential){c->name, c->type, buf_view(&c->data)});
        for (size_t i = 0; i < r->count; i++)
                if (r->tasks[i])
                        r->tasks[i]->in = NULL;
        remove_files(r);
        remote_request_free(r);
}

void remote_request_save(struct remote_request *r)
{
        BUF_CLEANUP struct buf all = {0};
        struct json j = {.out = &all};
        struct err err = {""};

        finish_document(r);
        json_open(&j, '{');
        json_key(&j, "tasks");
        json_open(&j, '[');
        for (size_t i = 0; i < r->count; i++)
                write_task(r->tasks[i], &j);
        json_close(&j, ']');
        json_key(&j, "submit");
        json_raw(&j, str_of(r->submission));
        json_close(&j, '}');
        int e = fs_write(r->remote->fd, r->uuid, buf_view(&all), 0600, true, &err);
        for (size_t i = 0; i < r->count; i++)
                if (e == 0)
                        r->tasks[i]->state = REMOTE_SAVED;
                else
                        remote_over(r->tasks[i], &(struct run_event){.state = RUN_LOST}, err.text);
        if (e < 0)
                dissolve(r);
        else
                remote_submit(r);
}

/* ---- the call */

/* Sends the files again after the other server reported one as missing. */
static void send_again(struct remote_request *r)
{
        map_free(r->remote->table.known);
        r->remote->table.known = map_new();
        for (size_t i = 0; i < r->count; i++) {
                struct remote_task *t = r->tasks[i];

                if (!t || t->state != REMOTE_SAVED)
                        continue;
                if (t->again || !t->words) {
                        remote_over(t, &(struct run_event){.state = RUN_LOST},
                                    "the other server no longer has the job's inputs");
                        continue;
                }
                t->again = true;
                t->files.at = 0;
                t->state = REMOTE_FRESH;
        }
        dissolve(r);
}

static void task_in(struct remote_task *t, bool look)
{
        t->state = REMOTE_IN;
        remote_words_deinit(t);
        if (t->killing)
                remote_act(t, REMOTE_REMOVE);
        else if (t->suspended || t->waits)
                remote_act(t, REMOTE_HOLD);
        t->dirty |= look || t->unsettled;
}

static void submitted(struct remote_request *r, const json_t *doc)
{
        struct remote *f = r->remote;
        bool look = json_is_true(json_object_get(doc, "existing")) || r->cursor != remote_feed_cursor(f);

        r->number = (uint64_t)json_integer_value(json_object_get(doc, "id"));
        r->renewed_ms = clock_boot_ms();
        r->lease_serial = remote_lease_serial(f);
        idmap_put(f->table.requests, r->number, r);
        free(r->submission);
        free(r->said);
        r->submission = r->said = NULL;
        for (size_t i = 0; i < r->count; i++) {
                struct remote_task *t = r->tasks[i];

                if (t && t->unsettled)
                        r->lease_serial = 0;
                if (t && t->state == REMOTE_SAVED) {
                        task_in(t, look);
                } else { /* not wanted any more */
                        remote_act_on(f, r->number, (uint32_t)i, REMOTE_REMOVE);
                        if (!t)
                                remote_taken(f, r->number, (uint32_t)i);
                }
        }
        remote_credential_sync(r);
}

static void fail_all(struct remote_request *r, const char *why)
{
        for (size_t i = 0; i < r->count; i++)
                if (r->tasks[i])
                        remote_fail(r->tasks[i], "request", EREMOTEIO, why);
}

static void submit_refused(struct remote_request *r, int status, struct str body, const struct err *err)
{
        BUF_CLEANUP struct buf b = {0};

        if (status <= 0) {
                r->not_before_ms = clock_boot_ms() + 1000;
                remote_unreachable(r->remote, err->text);
                return;
        }
        remote_error(&b, status, body);
        if (remote_later(status)) {
                r->not_before_ms = clock_boot_ms() + 1000;
                free(r->said);
                r->said = mem_dupz(buf_z(&b));
                return;
        }
        fail_all(r, buf_z(&b));
}

static void on_submitted(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_request *r = arg;
        struct remote *f = r->remote;

        r->call = NULL;
        json_t *doc = status ? remote_json(body) : NULL;
        const char *code = json_string_value(json_object_get(json_object_get(doc, "error"), "code"));
        json_int_t id = json_integer_value(json_object_get(doc, "id"));
        if (status / 100 == 2 && id > 0 && idmap_get(f->table.requests, (uint64_t)id))
                fail_all(r, "the other server gave it the number of another request");
        else if (status / 100 == 2 && id > 0)
                submitted(r, doc);
        else if (code && !strcmp(code, "bad_upload"))
                send_again(r);
        else
                submit_refused(r, status / 100 == 2 ? 0 : status, body, err);
        json_decref(doc);
        timer_start(f->later, 0);
}

static bool is_wanted(const struct remote_request *r)
{
        for (size_t i = 0; i < r->count; i++)
                if (r->tasks[i] && r->tasks[i]->state == REMOTE_SAVED)
                        return true;
        return false;
}

void remote_submit(struct remote_request *r)
{
        if (!is_wanted(r))
                return;
        r->cursor = remote_feed_cursor(r->remote);
        const struct http_call_spec spec = {
                .method = "POST", .path = "/v1/requests", .body = str_of(r->submission), .timeout_ms = 60000};
        r->call = http_client_call(r->remote->client, &spec, on_submitted, r);
}

/* ---- after a restart */

static char *submit_text_of(const json_t *doc, const char *name)
{
        const char *z = json_string_value(json_object_get(doc, name));

        return z ? mem_dupz(z) : NULL;
}

static void read_gone(const struct remote_request *r, struct set *gone)
{
        char name[UUID_TEXT + 8];
        BUF_CLEANUP struct buf text = {0};
        struct str rest, one;
        uint64_t member;

        gone_name(r, name);
        if (fs_read(r->remote->fd, name, GONE_MAX, &text, NULL) < 0)
                return;
        for (rest = buf_view(&text); rest.n && str_cut(&rest, '\n', &one);)
                if (str_to_u64(one, &member) == 0 && member < r->count)
                        set_add(gone, (uint32_t)member);
}

static bool restore_task(struct remote_request *r, uint32_t member, const json_t *doc)
{
        const char *id = json_string_value(json_object_get(doc, "task"));
        struct run_id name;

        if (!id || !run_id_parse(str_of(id), &name) || !json_object_get(doc, "sandbox"))
                return false;
        struct remote_task *t = remote_task_new(r->remote, name);
        t->state = REMOTE_SAVED;
        t->restored = true;
        t->in = r;
        t->member = member;
        t->sandbox = submit_text_of(doc, "sandbox");
        t->out = submit_text_of(doc, "out");
        t->err = submit_text_of(doc, "err");
        t->out_append = json_is_true(json_object_get(doc, "out_append"));
        t->err_append = json_is_true(json_object_get(doc, "err_append"));
        r->tasks[member] = t;
        r->left++;
        return true;
}

bool remote_restore(struct remote *f, struct str text, const char *uuid)
{
        json_t *doc = remote_json(text), *submit = json_object_get(doc, "submit");
        json_t *tasks = json_object_get(doc, "tasks"), *one;
        struct set gone = {0};
        bool good = submit != NULL;
        size_t i;

        if (good) {
                struct remote_request *r = remote_request_new(f, uuid, tasks ? json_array_size(tasks) : 1);
                char *dump = json_dumps(submit, JSON_COMPACT);

                r->submission = mem_dupz(dump);
                r->renewed_ms = clock_boot_ms(); /* renewed now, not later */
                free(dump);
                read_gone(r, &gone);
                if (!tasks) /* written by version 0.1.0 */
                        good = restore_task(r, 0, doc);
                json_array_foreach (tasks, i, one)
                        if (!set_has(&gone, (uint32_t)i))
                                good &= restore_task(r, (uint32_t)i, one);
                if (r->left == 0)
                        dissolve(r);
        }
        set_deinit(&gone);
        json_decref(doc);
        return good;
}
