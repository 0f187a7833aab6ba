/* Uploads: POST begins one, PUT adds a piece, POST finish makes it an object that belongs to the caller. */
#include <errno.h>
#include <inttypes.h>

#include "server/api/routes.h"
#include "server/files/holdings.h"
#include "server/files/objects.h"
#include "spool/spool.h"

#define PIECE_MAX (4u << 20)

struct upload {
        char id[UUID_TEXT], hash[SPOOL_HASH_TEXT];
        uint64_t offset, size;
        struct str bytes; /* in the call's arena */
        bool has_offset;
};

#define HOLDINGS_ANSWER 100 /* an error of holdings, beside the spool's errors */

static void fail_call(struct call *c, int r, const struct err *err)
{
        switch (r) {
        case SPOOL_NOT_FOUND: call_fail(c, 404, "not_found", "there is no such upload of yours"); break;
        case SPOOL_WRONG_OFFSET:
                call_fail(c, 409, "wrong_offset", "the upload has %" PRIu64 " bytes: go on there",
                          ((struct upload *)c->state)->size);
                break;
        case SPOOL_FULL: call_fail(c, 503, "disk_full", "the server's disk is full: try again later"); break;
        case SPOOL_TOO_BIG: call_fail(c, 413, "too_large", "the file is larger than the spool takes"); break;
        case HOLDINGS_ANSWER: call_fail_err(c, 507, "over_limit", err); break;
        case -EBUSY: call_fail(c, 409, "busy", "another call is working on this upload"); break;
        default: call_fail_err(c, 500, "spool", err); break;
        }
}

static void reply_upload(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

/* Checks whether the caller may upload this many bytes more. Returns 0, or HOLDINGS_ANSWER with err. */
static int check_room(struct server *s, struct call *c, uint64_t more, struct err *err)
{
        return holdings_check(objects_holdings(s), str_of(c->who), more, err) == 0 ? 0 : HOLDINGS_ANSWER;
}

static bool is_mine(struct server *s, struct call *c, const char *id)
{
        BUF_CLEANUP struct buf owner = {0};

        return spool_upload_owner(objects_spool(s), id, &owner) == 0 && str_eqz(buf_view(&owner), c->who);
}

/* ---- beginning */
static void begin_upload(struct server *s, struct call *c)
{
        struct upload *u = c->state;
        struct json j = {.out = &c->out};
        struct err err = {0};
        int r = check_room(s, c, HOLDINGS_UPLOAD, &err);

        if (r == 0)
                r = spool_upload_begin(objects_spool(s), u->id, str_of(c->who), &u->size, &err);
        if (r != 0) {
                fail_call(c, r, &err);
                return;
        }
        json_open(&j, '{');
        json_kstrz(&j, "id", u->id);
        json_kint(&j, "size", (int64_t)u->size);
        json_close(&j, '}');
        c->status = 201;
        call_io(c, reply_upload);
}

void api_upload_new(struct server *s, struct call *c)
{
        struct upload *u = call_state(c, sizeof(*u), NULL);

        (void)s;
        uuid_new(u->id);
        call_reader(c, begin_upload);
}

/* ---- pieces */
static void put_piece(struct server *s, struct call *c)
{
        struct upload *u = c->state;
        struct json j = {.out = &c->out};
        struct err err = {0};
        int r = is_mine(s, c, u->id) ? 0 : SPOOL_NOT_FOUND;

        if (r == 0)
                r = check_room(s, c, u->bytes.n, &err);
        if (r == 0)
                r = spool_upload_write(objects_spool(s), u->id, u->offset, u->bytes, &u->size, &err);
        /* a piece that was received before may be sent again */
        if (r == SPOOL_WRONG_OFFSET && u->offset + u->bytes.n <= u->size)
                r = 0;
        if (r != 0) {
                fail_call(c, r, &err);
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "size", (int64_t)u->size);
        json_close(&j, '}');
        call_io(c, reply_upload);
}

static bool read_id(struct call *c, struct upload *u)
{
        if (c->param[0].n != UUID_TEXT - 1 || !uuid_valid(c->param[0])) {
                call_fail(c, 404, "not_found", "there is no such upload");
                return false;
        }
        memcpy(u->id, c->param[0].p, UUID_TEXT - 1);
        return true;
}

void api_upload_put(struct server *s, struct call *c)
{
        struct upload *u = call_state(c, sizeof(*u), NULL);
        struct str body = http_body(c->http);

        (void)s;
        if (!read_id(c, u) || !call_number(c, "offset", INT64_MAX, &u->offset))
                return;
        if (body.n > PIECE_MAX) {
                call_fail(c, 413, "too_large", "send pieces of at most 4 MiB");
                return;
        }
        u->bytes = arena_str(&c->arena, body);
        call_reader(c, put_piece);
}

/* ---- finishing */
static void own(struct server *s, struct call *c)
{
        struct upload *u = c->state;
        struct json j = {.out = &c->out};

        if (turn_full(s->turn)) {
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        objects_uploaded(s, str_of(c->who), str_of(u->id), u->hash, u->size);
        json_open(&j, '{');
        json_kstrz(&j, "sha256", u->hash);
        json_kint(&j, "size", (int64_t)u->size);
        json_close(&j, '}');
        c->when = TURN_DURABLE;
        call_io(c, reply_upload);
}

static void finish(struct server *s, struct call *c)
{
        struct upload *u = c->state;
        struct err err = {0};
        int r = is_mine(s, c, u->id) ? 0 : SPOOL_NOT_FOUND;

        if (r == 0)
                r = spool_finish_one(objects_spool(s), u->id, NULL, u->hash, &u->size, &err);
        if (r != 0)
                fail_call(c, r, &err);
        else
                call_core(c, own);
}

void api_upload_finish(struct server *s, struct call *c)
{
        struct upload *u = call_state(c, sizeof(*u), NULL);

        (void)s;
        if (read_id(c, u))
                call_reader(c, finish);
}
