/* Sends files to the other server.
 *
 * Files are sent in pieces. Of small files the checksum is computed first, and a file that the other server
 * already has from this user is only named.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/format/json_read.h"
#include "base/format/url.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "run/drover/answers.h"
#include "run/drover/link.h"
#include "run/drover/send.h"
#include "run/drover/state.h"
#include "run/drover/tasks.h"
#include "run/drover/user_files.h"

#define PIECE      (1u << 20)
#define SMALL      (4u << 20) /* largest file that is hashed first */
#define KNOWN_MAX  100000
#define UPLOAD_MAX 63 /* longest id of an upload */

static void send_next(struct remote_task *t);

/* Handles a call without an answer or with a refusal: the task is retried later, or fails with `what`. */
static void remote_call_failed(struct remote_task *t, int status, struct str body, const struct err *err,
                               const char *what)
{
        BUF_CLEANUP struct buf b = {0};

        free(t->upload);
        t->upload = NULL;
        if (t->fd >= 0)
                close(t->fd);
        t->fd = -1;
        t->not_before_ms = clock_boot_ms() + 1000; /* unless it is over */
        if (status <= 0) {
                remote_unreachable(t->remote, err->text);
                return;
        }
        remote_error(&b, status, body);
        if (remote_later(status)) {
                free(t->said);
                t->said = mem_dupz(buf_z(&b));
                return;
        }
        remote_fail(t, what, EREMOTEIO, buf_z(&b));
}

/* Makes a call for the task, one at a time. */
static void remote_call(struct remote_task *t, const char *method, struct buf *path, struct str body,
                        const char *type, http_call_fn *fn)
{
        const struct http_call_spec spec = {
                .method = method, .path = buf_z(path), .body = body, .type = type, .timeout_ms = 60000};

        t->call = http_client_call(t->remote->client, &spec, fn, t);
}

static void know(struct remote *f, const char *sha256)
{
        if (map_count(f->table.known) >= KNOWN_MAX) {
                map_free(f->table.known);
                f->table.known = map_new();
        }
        map_put(f->table.known, str_of(sha256), f);
}

static void on_finished(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;
        struct remote_file *file = &t->files.v[t->files.at];

        t->call = NULL;
        json_t *doc = status / 100 == 2 ? remote_json(body) : NULL;
        const char *sha = json_string_value(json_object_get(doc, "sha256"));
        if (!sha || strlen(sha) != 64) {
                json_decref(doc);
                remote_call_failed(t, doc ? 0 : status, body, err, "input");
                return;
        }
        memcpy(file->sha256, sha, 65);
        file->size = file->offset;
        json_decref(doc);
        know(t->remote, file->sha256);
        free(t->upload);
        t->upload = NULL;
        close(t->fd);
        t->fd = -1;
        t->files.at++;
        free(t->said);
        t->said = NULL;
        send_next(t);
}

static void send_piece(struct remote_task *t);

static void on_piece(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;

        t->call = NULL;
        if (status / 100 == 2)
                send_piece(t);
        else
                remote_call_failed(t, status, body, err, "input");
}

static void send_piece(struct remote_task *t)
{
        struct remote_file *file = &t->files.v[t->files.at];
        BUF_CLEANUP struct buf path = {0}, piece = {0};
        ssize_t n = pread(t->fd, buf_room(&piece, PIECE), PIECE, (off_t)file->offset);

        if (n < 0) {
                remote_fail(t, "input", errno, NULL);
                return;
        }
        piece.n = (size_t)n;
        if (n == 0) {
                buf_printf(&path, "/v1/uploads/%s/finish", t->upload);
                remote_call(t, "POST", &path, STR("{}"), NULL, on_finished);
                return;
        }
        buf_printf(&path, "/v1/uploads/%s?offset=%llu", t->upload, (unsigned long long)file->offset);
        file->offset += (uint64_t)n;
        remote_call(t, "PUT", &path, buf_view(&piece), "application/octet-stream", on_piece);
}

/* Checks an upload's id, which becomes part of paths. */
static bool is_upload(const char *id)
{
        size_t n = 0;

        while (id && n < UPLOAD_MAX && url_unreserved((unsigned char)id[n]))
                n++;
        return n > 0 && !id[n];
}

static void on_begun(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;

        t->call = NULL;
        json_t *doc = status / 100 == 2 ? remote_json(body) : NULL;
        const char *id = json_string_value(json_object_get(doc, "id"));
        if (is_upload(id)) {
                t->upload = mem_dupz(id);
                t->files.v[t->files.at].offset = 0;
                send_piece(t);
        } else {
                remote_call_failed(t, doc ? 0 : status, body, err, "input");
        }
        json_decref(doc);
}

/* Returns whether the other server has this content from this user. */
static bool is_known(struct remote_task *t, struct remote_file *file)
{
        BUF_CLEANUP struct buf bytes = {0};
        unsigned char h[32];
        ssize_t n = file->size > SMALL ? -1 : pread(t->fd, buf_room(&bytes, SMALL + 1), SMALL + 1, 0);

        if (n < 0 || n > SMALL)
                return false;
        EVP_Digest(bytes.p, (size_t)n, h, NULL, EVP_sha256(), NULL);
        hex_print(file->sha256, h, 32);
        file->size = (uint64_t)n;
        return map_get(t->remote->table.known, str_of(file->sha256)) != NULL;
}

static void send_next(struct remote_task *t)
{
        for (; t->files.at < t->files.n; t->files.at++) {
                struct remote_file *file = &t->files.v[t->files.at];

                t->fd = remote_input(t, file);
                if (t->fd < 0) {
                        BUF_CLEANUP struct buf b = {0};
                        int error = -t->fd;

                        t->fd = -1;
                        buf_printf(&b, "cannot read its input %s: %s", file->path, strerror(error));
                        remote_fail(t, "input", error, buf_z(&b));
                        return;
                }
                if (is_known(t, file)) {
                        close(t->fd);
                        t->fd = -1;
                        continue;
                }
                BUF_CLEANUP struct buf path = {0};
                buf_addz(&path, "/v1/uploads");
                remote_call(t, "POST", &path, STR("{}"), NULL, on_begun);
                return;
        }
        t->state = REMOTE_READY;
        t->ready_ms = clock_boot_ms();
        timer_start(t->remote->later, 0);
}

void remote_send_files(struct remote_task *t)
{
        if (t->remote->user && !t->exposed)
                remote_expose(t);
        else
                send_next(t);
}
