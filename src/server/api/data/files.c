/* Output files in the spool: the list for a job or a request, and the content of one. The job's history
 * row lists them. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/pack.h"
#include "core/query.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/files/objects.h"
#include "server/loop/ids.h"
#include "spool/spool.h"

#define PAGE_JOBS   1000
#define PAGE_BYTES  (16u << 20)
#define CHUNK_BYTES (256u << 10)

struct files {
        uint64_t request, before;
        uint32_t member;
        struct str name;
        call_fn *next;
        /* for a list */
        struct json j;
        struct call *call;
        struct past *past;
        size_t jobs;
        uint64_t last_row;
        bool more, found, forbidden;
        /* for the content */
        char hash[SPOOL_HASH_TEXT];
        int fd;
        uint64_t offset;
        ssize_t got;
        bool started;
};

static void files_state_free(void *arg)
{
        struct files *f = arg;

        if (f->fd >= 0)
                close(f->fd);
        free(f);
}

static struct files *files_new(struct call *c)
{
        struct files *f = call_state(c, sizeof(*f), files_state_free);

        f->fd = -1;
        f->call = c;
        return f;
}

static struct str text(const json_t *o, const char *key)
{
        return call_json_text(o, key);
}

static void files_write_file(struct json *j, const struct row *r, const json_t *file)
{
        char id[48];

        snprintf(id, sizeof(id), "%llu.%u", (unsigned long long)r->request, r->member);
        json_open(j, '{');
        json_kstrz(j, "job", id);
        json_kstr(j, "name", text(file, "Name"));
        json_kint(j, "size", (int64_t)json_integer_value(json_object_get(file, "Size")));
        json_kstr(j, "sha256", text(file, "Sha256"));
        json_kint(j, "mode", (int64_t)json_integer_value(json_object_get(file, "Mode")));
        json_close(j, '}');
}

static int on_row(void *arg, uint64_t row, const struct past_job *h)
{
        struct files *f = arg;
        struct row r;
        json_t *ad, *file;
        size_t i;

        if (f->jobs == PAGE_JOBS || f->call->arena.used > PAGE_BYTES) {
                f->more = true;
                return 1;
        }
        f->jobs++;
        f->last_row = row;
        f->found = true;
        if (!call_may(f->call, h->owner)) {
                f->forbidden = true;
                return 1;
        }
        if (!past_row(f->past, h, NULL, &f->call->arena, false, STR("DroverOutputs"), &r))
                return 0;
        ad = json_loadb(r.ad.p, r.ad.n, 0, NULL);
        json_array_foreach (json_object_get(ad, "DroverOutputs"), i, file) {
                if (f->j.out)
                        files_write_file(&f->j, &r, file);
                if (f->name.n && str_eq(text(file, "Name"), f->name))
                        snprintf(f->hash, sizeof(f->hash), STR_FMT, STR_ARG(text(file, "Sha256")));
        }
        json_decref(ad);
        return 0;
}

static bool query(struct server *s, struct call *c, bool one)
{
        struct files *f = c->state;
        struct store_query q = {
                .request = f->request, .has_member = one, .member = f->member, .before = f->before};
        struct err err = {0};

        f->past = s->past;
        if (store_history_query(s->store, &q, on_row, f, &err) < 0) {
                call_fail_err(c, 500, "store", &err);
                return false;
        }
        if (f->forbidden) {
                call_fail(c, 404, "not_found", "there is no request %llu", (unsigned long long)f->request);
                return false;
        }
        return true;
}

static void reply_files(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void list_files(struct server *s, struct call *c, bool one)
{
        struct files *f = c->state;

        f->j.out = &c->out;
        json_open(&f->j, '{');
        json_key(&f->j, "files");
        json_open(&f->j, '[');
        if (!query(s, c, one))
                return;
        json_close(&f->j, ']');
        if (!one) {
                char next[32];

                snprintf(next, sizeof(next), "%llu", (unsigned long long)f->last_row);
                json_kstrz(&f->j, "next", f->more ? next : NULL);
        }
        json_close(&f->j, '}');
        call_io(c, reply_files);
}

static void list_job(struct server *s, struct call *c)
{
        list_files(s, c, true);
}

static void list_request(struct server *s, struct call *c)
{
        list_files(s, c, false);
}

/* Looks for a file of the checkpoint that is kept here, for a job that has not ended. */
static void look_in_checkpoint(struct server *s, struct files *f)
{
        struct core_job j = {0};
        struct unpack u;

        if (!f->name.n || core_job_get(s->core, f->request, f->member, &j) != 0 || j.state == JOB_COMPLETED ||
            j.state == JOB_REMOVED)
                return;
        u = unpack_from(j.checkpoint);
        for (uint64_t n = unpack_u64(&u); n > 0 && !u.bad; n--) {
                struct str name = unpack_str(&u);

                if (u.bad || u.end - u.p < 32)
                        break;
                if (str_eq(name, f->name))
                        hex_print(f->hash, u.p, 32);
                u.p += 32;
                unpack_u64(&u);
                unpack_u64(&u);
        }
}

/* Core thread, for jobs without a history row: checks that the job exists and that the caller may see it. */
static void check_file(struct server *s, struct call *c)
{
        struct files *f = c->state;
        struct core_request r;
        bool there = core_request_get(s->core, f->request, &r) == 0;

        if (there ? !call_may(c, r.owner) : f->request > core_request_last(s->core))
                call_fail(c, 404, "not_found", "there is no request %llu", (unsigned long long)f->request);
        else {
                look_in_checkpoint(s, f);
                call_reader(c, f->next);
        }
}

static void start_listing(struct call *c, call_fn *next)
{
        struct files *f = c->state;

        f->next = next;
        call_core(c, check_file);
}

void api_request_files(struct server *s, struct call *c)
{
        struct files *f = files_new(c);

        (void)s;
        if (!call_number(c, "after", UINT64_MAX, &f->before))
                return;
        if (str_to_u64(c->param[0], &f->request) != 0 || f->request == 0)
                call_fail(c, 404, "not_found", "there is no request " STR_FMT, STR_ARG(c->param[0]));
        else
                start_listing(c, list_request);
}

void api_job_files(struct server *s, struct call *c)
{
        struct files *f = files_new(c);

        (void)s;
        if (ids_parse_job(c->param[0], &f->request, &f->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else
                start_listing(c, list_job);
}

/* ---- content */

static void write_chunk(struct server *s, struct call *c);

static void read_chunk(struct server *s, struct call *c)
{
        struct files *f = c->state;
        char *room = buf_room(&c->out, CHUNK_BYTES);

        (void)s;
        f->got = pread(f->fd, room, CHUNK_BYTES, (off_t)f->offset);
        if (f->got > 0) {
                c->out.n += (size_t)f->got;
                f->offset += (uint64_t)f->got;
        }
        call_io(c, write_chunk);
}

static void drained(void *arg, struct http_request *r)
{
        struct call *c = arg;

        (void)r;
        if (!c->waits)
                return;
        c->waits = false;
        call_reader(c, read_chunk);
}

/* A read that fails in the middle closes the connection, so that the client sees that the end is missing. */
static void write_chunk(struct server *s, struct call *c)
{
        struct files *f = c->state;

        (void)s;
        if (!f->started)
                http_reply_start(c->http, 200, "application/octet-stream", drained, c);
        f->started = true;
        if (f->got <= 0) {
                call_end(c);
                return;
        }
        c->waits = true; /* until the connection has sent its buffer */
        http_reply_chunk(c->http, &c->out);
}

static void open_file(struct server *s, struct call *c)
{
        struct files *f = c->state;

        if (!*f->hash && !query(s, c, true))
                return;
        if (!*f->hash)
                call_fail(c, 404, "not_found", "job " STR_FMT " left no file " STR_FMT " here",
                          STR_ARG(c->param[0]), STR_ARG(f->name));
        else if (spool_object_open(objects_spool(s), str_of(f->hash), &f->fd, NULL) != 0)
                call_fail(c, 410, "gone", "the file " STR_FMT " is not in the spool any more",
                          STR_ARG(f->name));
        else
                read_chunk(s, c);
}

void api_job_file(struct server *s, struct call *c)
{
        struct files *f = files_new(c);

        (void)s;
        f->name = c->param[1];
        if (ids_parse_job(c->param[0], &f->request, &f->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else
                start_listing(c, open_file);
}
