/* Fetches files from URLs by movers, with the credential of a waiting job, trying one way to the store after
 * the other.
 *
 * With `users`, files that only some may have are fetched by a mover of the job's user, files that are the
 * same for all by one of the agent's own. A user's mover has the file open for writing and may keep it open;
 * a mover of the agent's copies it, and the checksum of the copy counts.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/credential/credentials.h"
#include "agent/transfer/fetch.h"
#include "agent/transfer/movers.h"
#include "agent/transfer/stores.h"
#include "base/system/clock.h"
#include "base/system/log.h"

/* with more free space than this, a user's claim of a full disk is not believed */
#define LITTLE_ROOM (1ull << 30)

/* Returns the URL to request now, without the parts that are meant for the agent only. */
static char *url_now(const struct fetch *f)
{
        BUF_CLEANUP struct buf other = {0};
        struct str url = str_of(f->url), whole;

        if (f->way > 0 ? stores_other_way(f->a, url, f->store, f->way - 1, &other)
                       : stores_own_way(f->a, url, f->store, &other))
                url = buf_view(&other);
        whole = url;
        str_cut(&whole, '#', &url);
        return str_dupz(url);
}

static void url_failed(struct fetch *f, const struct move_answer *answer)
{
        struct agent *a = f->a;
        BUF_CLEANUP struct buf other = {0}, words = {0};

        if (answer->error == ENOSPC && !f->made_room &&
            (!f->user || cache_disk_free(a->cache) < LITTLE_ROOM)) { /* evicts unused files for this one */
                f->made_room = true;
                cache_trim(a->cache, 0);
                fetch_get(f);
                return;
        }
        buf_addz(&words, answer->text);
        if (answer->error == EACCES) {
                MEM_CLEANUP char *url = url_now(f);

                if (credentials_denied(fetch_for(f), url, f->shown, &words)) {
                        fetch_get(f); /* the owner has replaced the credential meanwhile */
                        return;
                }
        }
        if (!f->first_error)
                f->first_error = mem_dupz(buf_z(&words));
        f->silence |= stores_is_silence(answer->error);
        f->spoken |= answer->error == ENOENT || answer->error == EACCES;
        if (stores_other_way(a, str_of(f->url), f->store, f->way, &other)) {
                f->way++;
                fetch_get(f);
                return;
        }
        log_warn("msg=\"an input cannot be fetched\" error=\"%s\"", LOG_TEXT(str_of(answer->text)));
        enum store_word word = f->silence && !f->spoken ? stores_doubt(a, f->store) : STORE_ANSWERS;
        f->error = answer->error;
        f->doubts = word == STORE_ASKED;
        if (word == STORE_SILENT)
                fetch_end_silent(f);
        else if (word == STORE_ANSWERS)
                fetch_end(f, NULL, f->error, f->first_error);
}

void fetch_store_known(struct agent *a, size_t store, bool answers)
{
        for (struct fetch *f = fetch_first(a); f; f = f->next)
                if (f->doubts && f->store == store) {
                        if (answers)
                                fetch_end(f, NULL, f->error, f->first_error);
                        else
                                fetch_end_silent(f);
                        fetch_store_known(a, store, answers); /* the list may be another one now */
                        return;
                }
}

/* Finds the stores of all fetches again, and asks again for those that wait to know whether their store
 * answers: the earlier question is lost with the old list. */
void fetch_stores_changed(struct agent *a)
{
        for (struct fetch *f = fetch_first(a); f; f = f->next)
                if (f->url) {
                        f->store = stores_of(a, str_of(f->url));
                        f->way = 0;
                }
        for (struct fetch *f = fetch_first(a); f; f = f->next) {
                enum store_word word = f->doubts ? stores_doubt(a, f->store) : STORE_ASKED;

                if (word == STORE_ASKED)
                        continue;
                if (word == STORE_SILENT)
                        fetch_end_silent(f);
                else
                        fetch_end(f, NULL, f->error, f->first_error);
                fetch_stores_changed(a); /* the list may be another one now */
                return;
        }
}

/* The answer as contents of the cache, with their name; NULL: there are none, and r says why. */
static struct cached *take_answer(struct fetch *f, const struct move_answer *answer, struct cached *before,
                                  int *ret_error)
{
        struct cache *c = f->a->cache;
        struct cached *e = before;
        struct cached_name *n = cache_find_name(c, str_of(f->key));
        struct move_facts facts = answer->facts;
        int64_t now = clock_wall_ms();

        *ret_error = 0;
        if (answer->status == MOVE_UNCHANGED && n && n->contents == before)
                facts = n->facts;
        else if (answer->status == MOVE_DONE)
                *ret_error = cache_keep(c, f->part, answer->sha256, answer->size, now, &e);
        else
                e = NULL;
        if (*f->part && (answer->status != MOVE_DONE || *ret_error < 0))
                cache_abandon(c, f->part);
        f->part[0] = 0;
        if (*ret_error < 0 || !e)
                return NULL;
        cache_name(c, e, str_of(f->key), &facts, now);
        return e;
}

static void got(struct fetch *f, const struct move_answer *answer)
{
        struct agent *a = f->a;
        struct cached *before = f->held;
        int r;

        f->held = NULL;
        close(f->fd);
        f->fd = -1;
        struct cached *e = take_answer(f, answer, before, &r);
        if (e) {
                if (!f->user) {
                        stores_answered(a, f->store);
                        if (answer->tries == 1)
                                stores_measured(a, f->store, PROBE_IN, answer->moved, answer->took_us);
                }
                MEM_CLEANUP char *url = move_url_shown(f->url);
                log_info("msg=fetched url=\"%s\" bytes=%llu moved=%llu ms=%llu", LOG_TEXT(str_of(url)),
                         (unsigned long long)e->use.bytes, (unsigned long long)answer->moved,
                         (unsigned long long)answer->took_us / 1000);
                fetch_end(f, e, 0, NULL);
        } else if (r < 0) {
                fetch_end(f, NULL, -r, "the agent cannot keep an input in its cache");
        } else {
                url_failed(f, answer);
        }
        if (before)
                cache_unpin(a->cache, before);
}

static void fail_answer(struct fetch *f, struct move_answer *answer, int error, const char *why)
{
        MEM_CLEANUP char *url = move_url_shown(f->url);

        answer->status = MOVE_FAILED;
        answer->error = error;
        snprintf(answer->text, sizeof(answer->text), "cannot fetch %s: %s", url, why);
}

static void on_copied(void *arg, const struct move_answer *copied)
{
        struct fetch *f = arg;
        struct move_answer answer = *f->claims;

        f->move = NULL;
        free(f->claims);
        f->claims = NULL;
        memcpy(answer.sha256, copied->sha256, 32);
        answer.size = copied->size;
        if (copied->status == MOVE_FAILED)
                fail_answer(f, &answer, copied->error, copied->text);
        else if (f->summed && memcmp(f->sha256, copied->sha256, 32) != 0)
                fail_answer(f, &answer, EIO, "it does not have the checksum that it should have");
        got(f, &answer);
}

/* Copies a file that a user's mover claims to have fetched. */
static void copy_claims(struct fetch *f, const struct move_answer *claims)
{
        struct move_answer failed = *claims;
        struct stat st;
        char why[128];
        int r = fstat(f->fd, &st) < 0 ? -errno : 0, to = -1;

        if (r == 0 && (uint64_t)st.st_size != claims->size) {
                r = -EIO;
                snprintf(why, sizeof(why), "what fetched it speaks of %llu bytes and has brought %llu",
                         (unsigned long long)claims->size, (unsigned long long)st.st_size);
        } else {
                if (r == 0 && claims->size > cache_disk_free(f->a->cache))
                        r = -ENOSPC;
                if (r == 0)
                        r = to = cache_begin(f->a->cache, f->part);
                if (to < 0)
                        f->part[0] = 0;
                snprintf(why, sizeof(why), "%s", r < 0 ? strerror(-r) : "");
        }
        if (r < 0) {
                fail_answer(f, &failed, -r, why);
                got(f, &failed);
                return;
        }
        f->claims = mem_new(struct move_answer);
        *f->claims = *claims;
        f->move = movers_copy(f->a, f->fd, to, claims->size, f->owner, on_copied, f);
        close(to);
}

static void on_got(void *arg, const struct move_answer *answer)
{
        struct fetch *f = arg;

        f->move = NULL;
        if (f->user && answer->status == MOVE_DONE)
                copy_claims(f, answer);
        else
                got(f, answer);
}

void fetch_url(struct fetch *f)
{
        const struct config *c = &f->a->config;
        struct cached_name *n = f->summed ? NULL : cache_find_name(f->a->cache, str_of(f->key));
        struct move_task t;
        struct err err = {""};

        f->fd = f->user ? cache_scratch(f->a->cache) : cache_begin(f->a->cache, f->part);
        if (f->fd < 0) {
                f->part[0] = 0;
                fetch_end(f, NULL, -f->fd, "the agent cannot write into its cache");
                return;
        }
        move_task_init(&t, MOVE_GET);
        t.url = url_now(f);
        int r = credentials_show(fetch_for(f), &t, &f->shown, &err);
        if (r != 0) { /* never 1: staging begins after the credentials have arrived */
                move_task_deinit(&t);
                f->shown = 1;
                fetch_end(f, NULL, EACCES, err.text);
                return;
        }
        t.tries = (uint32_t)c->transfer_tries;
        t.limit_ms = c->transfer_limit_ms;
        t.scratch = f->user != NULL;
        t.summed = f->summed;
        memcpy(t.sha256, f->sha256, 32);
        if (n) {
                f->held = n->contents;
                cache_pin(f->held);
                t.known = true;
                t.facts = n->facts;
        }
        f->move = movers_start(f->a, &t, f->fd, f->owner, f->user, on_got, f);
        move_task_deinit(&t);
}
