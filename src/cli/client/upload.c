#include "cli/client/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/mem.h"

#define TRIES_MAX 8

/* Pieces come from a file or from memory. */
struct source {
        int fd;
        struct str bytes;
        char *room; /* UPLOAD_PIECE bytes, for a file */
};

static void copy_text(struct view v, char *to, size_t size)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(v, &text);
        snprintf(to, size, "%s", buf_z(&text));
}

/* The piece at an offset; empty at the end. 0 or -errno. */
static int take_piece(struct source *s, uint64_t offset, struct str *ret)
{
        size_t n = 0;

        if (s->fd < 0) {
                *ret = str_head(str_skip(s->bytes, offset), UPLOAD_PIECE);
                return 0;
        }
        while (n < UPLOAD_PIECE) {
                ssize_t got = pread(s->fd, s->room + n, UPLOAD_PIECE - n, (off_t)(offset + n));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                n += (size_t)got;
        }
        *ret = str_make(s->room, n);
        return 0;
}

static int put_piece(struct cli *cli, const char *id, uint64_t offset, struct str piece)
{
        struct buf path BUF_CLEANUP = {0};

        buf_printf(&path, "/v1/uploads/%s?offset=%llu", id, (unsigned long long)offset);
        for (int tries = 1;; tries++) {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct err err = {""};
                int rc = api_call(cli,
                                  &(struct api_request){.method = "PUT",
                                                        .path = buf_z(&path),
                                                        .body = piece,
                                                        .type = "application/octet-stream"},
                                  &answer, &err);

                if (rc == 0)
                        return 0;
                if ((rc != API_LOST && (rc != API_NO_SERVER || tries == 1)) || tries == TRIES_MAX)
                        return cli_error(CLI_FAILED, "%s", err.text);
                api_close(cli);
                poll(NULL, 0, 100 * tries);
        }
}

static int send_source(struct cli *cli, struct source *s, const char *name, struct upload *ret)
{
        struct api_answer begun API_ANSWER_CLEANUP = {0}, done API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        struct str piece = STR_NONE;
        int code = api_post(cli, "/v1/uploads", STR_NONE, &begun), rc;

        if (code != 0)
                return code;
        *ret = (struct upload){0};
        copy_text(view_get(begun.root, "id"), ret->id, sizeof(ret->id));
        for (;;) {
                rc = take_piece(s, ret->size, &piece);
                if (rc != 0)
                        return cli_error(CLI_FAILED, "%s: %s", name, strerror(-rc));
                if (piece.n == 0)
                        break;
                code = put_piece(cli, ret->id, ret->size, piece);
                if (code != 0)
                        return code;
                ret->size += piece.n;
        }
        json_open(&j, '{');
        json_kstrz(&j, "name", name);
        json_close(&j, '}');
        buf_printf(&path, "/v1/uploads/%s/finish", ret->id);
        code = api_post(cli, buf_z(&path), buf_view(&body), &done);
        if (code != 0)
                return code;
        copy_text(view_get(done.root, "sha256"), ret->sha256, sizeof(ret->sha256));
        if (view_integer(view_get(done.root, "size"), -1) != (int64_t)ret->size)
                return cli_error(CLI_FAILED, "%s: the server has not got all of it", name);
        return 0;
}

int upload_file(struct cli *cli, const char *path, const char *name, struct upload *ret)
{
        struct source s = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
        int code;

        if (s.fd < 0)
                return cli_error(CLI_FAILED, "%s: %s", path, strerror(errno));
        s.room = mem_alloc(UPLOAD_PIECE);
        code = send_source(cli, &s, name, ret);
        free(s.room);
        close(s.fd);
        return code;
}

int upload_bytes(struct cli *cli, struct str bytes, const char *name, struct upload *ret)
{
        return send_source(cli, &(struct source){.fd = -1, .bytes = bytes}, name, ret);
}
