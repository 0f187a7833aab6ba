#include "move/task.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pack.h"
#include "base/system/fs.h"
#include "base/system/secret.h"

enum packet { PACKET_TASK = 1, PACKET_ANSWER, PACKET_SIGN };

void move_task_init(struct move_task *t, enum move_op op)
{
        *t = (struct move_task){.op = op, .size = MOVE_SIZE_ANY, .from = -1};
        t->facts.size = MOVE_SIZE_ANY;
}

static void credential_deinit(struct move_credential *c)
{
        free(c->type);
        free(c->name);
        secret_deinit(&c->data);
        *c = (struct move_credential){0};
}

void move_task_deinit(struct move_task *t)
{
        free(t->url);
        t->url = NULL;
        credential_deinit(&t->credential);
}

void move_task_credential(struct move_task *t, const char *type, const char *name, struct str data)
{
        struct move_credential *c = &t->credential;

        credential_deinit(c);
        c->type = mem_dupz(type);
        c->name = mem_dupz(name);
        buf_add(&c->data, data.p, data.n);
        buf_z(&c->data); /* NUL-terminated, so that it can be read as text */
}

void move_task_copy(struct move_task *to, const struct move_task *from)
{
        *to = *from;
        to->url = mem_dupz(from->url);
        to->credential = (struct move_credential){0};
        if (from->credential.type)
                move_task_credential(to, from->credential.type, from->credential.name,
                                     buf_view(&from->credential.data));
}

int move_credential_file(const struct move_credential *c)
{
        int fd = memfd_create("credential", MFD_CLOEXEC);

        if (fd < 0)
                return -errno;
        int r = fchmod(fd, 0600) < 0 ? -errno : fs_write_all(fd, c->data.p, c->data.n);
        if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        if (r < 0)
                close(fd);
        return r < 0 ? r : fd;
}

char *move_url_shown(const char *url)
{
        struct str u = str_of(url), authority, rest;
        ptrdiff_t start = str_search(u, STR("://")), at;
        BUF_CLEANUP struct buf b = {0};

        if (start < 0)
                return mem_dupz(url ? url : "");
        rest = str_skip(u, (size_t)start + 3);
        str_cut(&rest, '/', &authority);
        at = str_rfind(authority, '@');
        buf_str(&b, str_head(u, (size_t)start + 3));
        buf_str(&b, str_skip(u, (size_t)(start + 3 + at + 1)));
        return buf_take(&b);
}

/* ---- as bytes */

static void pack_facts(const struct move_facts *f, struct buf *out)
{
        pack_u64(out, f->size);
        pack_i64(out, f->modified_s);
        pack_str(out, str_of(f->etag));
}

static void text_into(struct unpack *u, char *room, size_t size)
{
        struct str s = unpack_str(u);

        if (s.n >= size || (s.n && memchr(s.p, 0, s.n)))
                u->bad = true;
        else
                snprintf(room, size, STR_FMT, STR_ARG(s));
}

static void bytes_into(struct unpack *u, unsigned char room[32])
{
        struct str s = unpack_str(u);

        if (s.n != 32)
                u->bad = true;
        else
                memcpy(room, s.p, 32);
}

static void unpack_facts(struct unpack *u, struct move_facts *f)
{
        f->size = unpack_u64(u);
        f->modified_s = unpack_i64(u);
        text_into(u, f->etag, sizeof(f->etag));
}

void move_pack_task(const struct move_task *t, struct buf *out)
{
        pack_u64(out, PACKET_TASK);
        pack_u64(out, t->op);
        pack_str(out, str_of(t->url));
        pack_u64(out, t->at);
        pack_u64(out, t->size);
        pack_u64(out, (t->known ? 1u : 0u) | (t->summed ? 2u : 0u) | (t->scratch ? 4u : 0u) |
                              (t->space ? 8u : 0u));
        pack_facts(&t->facts, out);
        pack_str(out, str_make((const char *)t->sha256, 32));
        pack_u64(out, t->tries);
        pack_u64(out, t->limit_ms);
        pack_str(out, str_of(t->tag));
        const struct move_credential *c = &t->credential;
        pack_str(out, str_of(c->type ? c->type : ""));
        pack_str(out, str_of(c->name ? c->name : ""));
        pack_str(out, buf_view(&c->data));
}

static bool has_zero(struct str s)
{
        return s.n && memchr(s.p, 0, s.n);
}

bool move_unpack_task(struct str bytes, struct move_task *ret)
{
        struct unpack u = unpack_from(bytes);
        bool right = unpack_u64(&u) == PACKET_TASK;

        move_task_init(ret, (enum move_op)unpack_max(&u, MOVE_COPY));
        struct str url = unpack_str(&u);
        ret->at = unpack_u64(&u);
        ret->size = unpack_u64(&u);
        uint64_t flags = unpack_max(&u, 15);
        ret->known = flags & 1;
        ret->summed = flags & 2;
        ret->scratch = flags & 4;
        ret->space = flags & 8;
        unpack_facts(&u, &ret->facts);
        bytes_into(&u, ret->sha256);
        ret->tries = (uint32_t)unpack_max(&u, 1000);
        ret->limit_ms = unpack_max(&u, INT64_MAX / 4);
        text_into(&u, ret->tag, sizeof(ret->tag));
        struct str type = unpack_str(&u), name = unpack_str(&u), data = unpack_str(&u);
        if (!right || !unpack_done(&u) || url.n > MOVE_URL_MAX || has_zero(url) || has_zero(type) ||
            has_zero(name))
                return false;
        ret->url = str_dupz(url);
        if (type.n) {
                MEM_CLEANUP char *type_z = str_dupz(type), *name_z = str_dupz(name);

                move_task_credential(ret, type_z, name_z, data);
        }
        return true;
}

void move_pack_answer(const struct move_answer *a, struct buf *out)
{
        pack_u64(out, PACKET_ANSWER);
        pack_u64(out, a->status);
        pack_u64(out, (uint64_t)a->error);
        pack_u64(out, a->tries);
        pack_facts(&a->facts, out);
        pack_str(out, str_make((const char *)a->sha256, 32));
        pack_u64(out, a->size);
        pack_u64(out, a->moved);
        pack_u64(out, a->took_us);
        pack_u64(out, a->latency_us);
        pack_u64(out, a->free_bytes);
        pack_str(out, str_of(a->text));
}

bool move_unpack_answer(struct str bytes, struct move_answer *ret)
{
        struct unpack u = unpack_from(bytes);
        bool right = unpack_u64(&u) == PACKET_ANSWER;

        *ret = (struct move_answer){.status = (enum move_status)unpack_max(&u, MOVE_FAILED)};
        ret->error = (int)unpack_max(&u, 4095);
        ret->tries = (uint32_t)unpack_max(&u, UINT32_MAX);
        unpack_facts(&u, &ret->facts);
        bytes_into(&u, ret->sha256);
        ret->size = unpack_u64(&u);
        ret->moved = unpack_u64(&u);
        ret->took_us = unpack_u64(&u);
        ret->latency_us = unpack_u64(&u);
        ret->free_bytes = unpack_u64(&u);
        text_into(&u, ret->text, sizeof(ret->text));
        for (char *p = ret->text; *p; p++) /* a job's owner reads the text in a line of a log */
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        return right && unpack_done(&u);
}

/* ---- as packets */

#define FDS_MAX 2 /* most descriptors in a packet */

union control {
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
};

static int send_packet(int socket, struct str bytes, const int *fds, size_t count, int flags)
{
        struct iovec io = {(void *)(uintptr_t)bytes.p, bytes.n};
        union control control = {{0}};
        struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};

        if (count) {
                m.msg_control = control.room;
                m.msg_controllen = CMSG_SPACE(count * sizeof(int));
                struct cmsghdr *c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(count * sizeof(int));
                memcpy(CMSG_DATA(c), fds, count * sizeof(int));
        }
        ssize_t n;
        do
                n = sendmsg(socket, &m, flags | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

/* The packet in room; the descriptors that came with it in fds, -1 in place of those that did not. fds NULL:
 * the kernel drops them. Its length, or -errno, and then no descriptor. */
static ssize_t receive_packet(int socket, char *room, size_t size, int flags, int fds[FDS_MAX])
{
        struct iovec io = {room, size};
        union control control = {{0}};
        struct msghdr m = {.msg_iov = &io,
                           .msg_iovlen = 1,
                           .msg_control = fds ? control.room : NULL,
                           .msg_controllen = fds ? sizeof(control.room) : 0};
        ssize_t n;

        for (size_t i = 0; fds && i < FDS_MAX; i++)
                fds[i] = -1;
        do
                n = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        struct cmsghdr *c = fds ? CMSG_FIRSTHDR(&m) : NULL; /* the kernel makes one of all that come */
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len <= CMSG_LEN(FDS_MAX * sizeof(int)))
                memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
        if (n > 0 && !(m.msg_flags & MSG_TRUNC))
                return n;
        for (size_t i = 0; fds && i < FDS_MAX; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
        return n == 0 ? -ENOTCONN : -EPROTO;
}

int move_send_task(int socket, const struct move_task *t, int fd)
{
        SECRET_CLEANUP struct buf b = {0};
        const int fds[FDS_MAX] = {fd, t->from};

        /* reserved, so that no part of a credential stays in freed memory after the buffer grew */
        buf_room(&b, MOVE_PACKET_MAX);
        move_pack_task(t, &b);
        return send_packet(socket, buf_view(&b), fds, fd < 0 ? 0 : t->from < 0 ? 1 : 2, MSG_DONTWAIT);
}

int move_send_answer(int socket, const struct move_answer *a)
{
        BUF_CLEANUP struct buf b = {0};

        move_pack_answer(a, &b);
        return send_packet(socket, buf_view(&b), NULL, 0, 0);
}

int move_send_sign(int socket)
{
        BUF_CLEANUP struct buf b = {0};

        pack_u64(&b, PACKET_SIGN);
        int r = send_packet(socket, buf_view(&b), NULL, 0, MSG_DONTWAIT);
        return r == -EAGAIN ? 0 : r; /* earlier signs have not been read yet */
}

int move_receive_task(int socket, struct move_task *ret, int *ret_fd)
{
        MEM_CLEANUP char *room = mem_alloc(MOVE_PACKET_MAX);
        int fds[FDS_MAX];
        ssize_t n = receive_packet(socket, room, MOVE_PACKET_MAX, 0, fds);

        if (n < 0)
                return (int)n;
        bool good = move_unpack_task(str_make(room, (size_t)n), ret);
        explicit_bzero(room, (size_t)n);
        if (good) {
                *ret_fd = fds[0];
                ret->from = fds[1];
                return 0;
        }
        for (size_t i = 0; i < FDS_MAX; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
        return -EPROTO;
}

int move_receive_answer(int socket, int flags, struct move_answer *ret)
{
        char room[MOVE_ANSWER_MAX];
        ssize_t n = receive_packet(socket, room, sizeof(room), flags, NULL);

        if (n < 0)
                return (int)n;
        if (n == 1 && room[0] == PACKET_SIGN)
                return 0;
        return move_unpack_answer(str_make(room, (size_t)n), ret) ? 1 : -EPROTO;
}
