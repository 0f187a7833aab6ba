/* Gets one file by HTTP over several connections, where an administrator says so (move/tuning.h): blocks of
 * it are requested by ranges, each of them only if the file is still the same, and written where they belong.
 * A stream takes the next block when it has finished one, and none is far ahead of the bytes that are here
 * without a gap: those are summed, and passed on, in order. */
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "move/curl_exchange.h"

#define BLOCK   (4u << 20)
#define WAIT_MS 200

struct streams;
struct stream {
        struct streams *all;
        struct exchange x;
        CURL *h;
        uint64_t at, end;  /* of its block: the next byte, and the one behind it */
        bool busy, whole;  /* whole: the server has ignored the range */
        bool begun, other; /* other: the answer is not of the same version, or of another range */
        char range[64];
};
struct streams {
        struct transfer *t;
        CURLM *multi;
        struct stream v[TUNING_STREAMS_MAX];
        unsigned count;
        uint64_t next, size; /* next: first byte that was not requested */
        struct move_facts facts;
};

static size_t on_piece(char *p, size_t size, size_t n, void *arg)
{
        struct stream *s = arg;
        long code = 0;

        curl_easy_getinfo(s->h, CURLINFO_RESPONSE_CODE, &code);
        n *= size;
        s->whole = code == 200;
        if (code == 206 && !s->begun)
                s->other = !exchange_is_same(s->h, &s->all->facts, s->at);
        s->begun = true;
        if (code != 206 || s->other || s->at + n > s->end)
                return 0;
        for (size_t done = 0; done < n;) {
                ssize_t k = pwrite(s->all->t->fd, p + done, n - done, (off_t)(s->at + done));

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0) {
                        s->x.error = k < 0 ? -errno : -EIO;
                        return 0;
                }
                done += (size_t)k;
        }
        s->at += n;
        s->all->t->moved += n;
        return n;
}

static void start(struct streams *a, struct stream *s)
{
        curl_easy_reset(s->h);
        exchange_setup(&s->x, a->t, a->t->task->url, s->h);
        s->at = a->next;
        s->end = a->size - a->next < BLOCK ? a->size : a->next + BLOCK;
        a->next = s->end;
        s->begun = s->other = s->whole = false;
        snprintf(s->range, sizeof(s->range), "%llu-%llu", (unsigned long long)s->at,
                 (unsigned long long)s->end - 1);
        curl_easy_setopt(s->h, CURLOPT_RANGE, s->range);
        s->x.lines = exchange_if_same(s->x.lines, &a->facts);
        curl_easy_setopt(s->h, CURLOPT_HTTPHEADER, s->x.lines);
        curl_easy_setopt(s->h, CURLOPT_WRITEFUNCTION, on_piece);
        curl_easy_setopt(s->h, CURLOPT_WRITEDATA, s);
        curl_multi_add_handle(a->multi, s->h);
        s->busy = true;
}

static void stop(struct streams *a, struct stream *s)
{
        if (s->busy)
                curl_multi_remove_handle(a->multi, s->h);
        curl_easy_setopt(s->h, CURLOPT_HTTPHEADER, NULL);
        curl_slist_free_all(s->x.lines);
        s->x.lines = NULL;
        s->busy = false;
}

/* Returns 0, CURL_ONE_STREAM, or the outcome of a block that has not come. */
static int finished(struct streams *a, struct stream *s, CURLcode code, struct err *err)
{
        int r = 0;

        s->x.result = code;
        curl_easy_getinfo(s->h, CURLINFO_RESPONSE_CODE, &s->x.code);
        if (s->x.error < 0)
                r = s->x.error;
        else if (s->whole)
                r = a->t->done == 0 ? CURL_ONE_STREAM
                                    : err_set(err, MOVER_AGAIN, "it has changed while it was fetched");
        else if (s->other) {
                a->t->resumable = false; /* other pieces may be of the other version, too */
                r = err_set(err, MOVER_AGAIN, "it has changed while it was fetched");
        } else if (s->x.code >= 400 || (code == CURLE_OK && s->x.code != 206))
                r = exchange_refused(&s->x, err);
        else if (code != CURLE_OK)
                r = exchange_failed(&s->x, err);
        else if (s->at != s->end)
                r = err_set(err, MOVER_AGAIN, "a piece of it came incomplete");
        stop(a, s);
        return r;
}

static int take_finished(struct streams *a, struct err *err)
{
        int left, r = 0;

        for (CURLMsg *m; r == 0 && (m = curl_multi_info_read(a->multi, &left));)
                for (unsigned i = 0; r == 0 && i < a->count; i++)
                        if (m->msg == CURLMSG_DONE && a->v[i].busy && a->v[i].h == m->easy_handle) {
                                r = finished(a, &a->v[i], m->data.result, err);
                                break;
                        }
        return r;
}

/* Blocks are requested in their order, so there is no gap before the first byte that somebody still waits
 * for. */
static uint64_t without_gap(const struct streams *a)
{
        uint64_t upto = a->next;

        for (unsigned i = 0; i < a->count; i++)
                if (a->v[i].busy && a->v[i].at < upto)
                        upto = a->v[i].at;
        return upto;
}

/* Starts the next block, unless it and those that are under way would not leave room to others. */
static int start_next(struct streams *a, struct stream *s)
{
        uint64_t bytes = a->size - a->next < BLOCK ? a->size - a->next : BLOCK;

        for (unsigned i = 0; i < a->count; i++)
                bytes += a->v[i].busy ? a->v[i].end - a->v[i].at : 0;
        if (!fs_has_room(a->t->fd, bytes))
                return -ENOSPC;
        start(a, s);
        return 0;
}

static int get_blocks(struct streams *a, struct err *err)
{
        int running, r = 0;

        while (r == 0 && a->t->done < a->size) {
                for (unsigned i = 0; r == 0 && i < a->count; i++)
                        if (!a->v[i].busy && a->next < a->size &&
                            a->next - a->t->done < (uint64_t)(a->count + 1) * BLOCK)
                                r = start_next(a, &a->v[i]);
                if (r < 0)
                        return r;
                if (curl_multi_perform(a->multi, &running) != CURLM_OK)
                        return err_set(err, MOVER_AGAIN, "its connections cannot be used");
                r = take_finished(a, err);
                if (r == 0)
                        r = transfer_take(a->t, without_gap(a));
                if (r == 0)
                        r = transfer_alive(a->t);
                if (r == 0 && a->t->done < a->size)
                        curl_multi_poll(a->multi, NULL, 0, WAIT_MS, NULL);
        }
        return r;
}

unsigned curl_streams_wanted(const struct transfer *t)
{
        const struct tuning *tune =
                tuning_of(t->config->tunings, t->config->tuning_count, str_of(t->task->url));

        return tune && !t->task->known && !t->done ? tune->streams : 0;
}

int curl_get_streams(struct transfer *t, unsigned count, struct err *err)
{
        struct streams *a;
        int r = curl_look(t, err);

        if (r != 0)
                return r;
        if (t->found.size == MOVE_SIZE_ANY || t->found.size < 2 * BLOCK ||
            !(t->found.etag[0] || t->found.modified_s) || t->found.etag[0] == 'W')
                return CURL_ONE_STREAM;
        r = transfer_restart(t);
        if (r < 0)
                return r;
        a = mem_new(struct streams);
        *a = (struct streams){.t = t, .count = count, .size = t->found.size, .facts = t->found};
        a->multi = curl_multi_init();
        for (unsigned i = 0; i < count; i++) {
                a->v[i].all = a;
                a->v[i].h = curl_easy_init();
        }
        t->piece = t->found;
        t->resumable = true;
        r = get_blocks(a, err);
        for (unsigned i = 0; i < count; i++) {
                stop(a, &a->v[i]);
                curl_easy_cleanup(a->v[i].h);
        }
        curl_multi_cleanup(a->multi);
        t->found = a->facts;
        free(a);
        if (r != CURL_ONE_STREAM)
                return r;
        r = transfer_restart(t); /* pieces of an earlier, longer version may be there */
        return r < 0 ? r : CURL_ONE_STREAM;
}
