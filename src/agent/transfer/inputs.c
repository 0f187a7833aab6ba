/* Inputs from other places are files that were shipped with the submit, and URLs. Verified contents of the
 * cache are pinned at once; for other inputs the attempt waits for a fetch, which attempts may share.
 *
 * A copy of a URL is used without asking for `cache_fresh`. After that its store is asked whether the file
 * is unchanged (by ETag, date and size); if the store does not answer, the job waits and then fails: an old
 * copy is never used silently. Contents from before the agent's start are summed before their first use.
 *
 * Contents of a URL are found by the URL only, and only for jobs that may request it (stores_key), even if
 * the URL names a checksum: a checksum gives no access to files that others have fetched. The server vouches
 * for shipped files.
 *
 * A fetch has open descriptors from start to end, and their number is limited. An owner has at most AT_ONCE
 * fetches at a time, besides `transfers`; further ones wait, and do not delay those of other owners.
 */
#include "agent/transfer/inputs.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/model/environment_asked.h"
#include "agent/model/input_names.h"
#include "agent/transfer/fetch.h"
#include "agent/transfer/movers.h"
#include "agent/transfer/spool.h"
#include "agent/transfer/stores.h"
#include "base/format/hex.h"
#include "base/job/file_key.h"
#include "base/map.h"
#include "base/system/clock.h"
#include "base/system/log.h"

#define AT_ONCE  16
#define URLS_MAX 10000u /* limit of URLs of one job */

struct waiter {
        struct waiter *next;
        struct attempt *at;
        char *key; /* the attempt's name for the file */
};
struct share { /* fetches of one owner */
        unsigned fetches, going;
        struct fetch *first, **last; /* fetches that wait for their turn */
};
struct inputs {
        struct fetch *first;
        struct map *by_id;  /* fetches that have not ended, by id */
        struct map *shares; /* by owner */
        bool deferred;
};

/* ---- names */

static void shipped_key(const unsigned char sha256[32], char room[72])
{
        memcpy(room, "sha256:", 7);
        hex_print(room + 7, sha256, 32);
}

/* The checksum that a URL asks for: #sha256=HEX */
static bool asked_sum(struct str url, unsigned char ret[32])
{
        ptrdiff_t at = str_search(url, STR("#sha256="));

        return at >= 0 && hex_read(str_skip(url, (size_t)at + 8), ret, 32) == 0;
}

/* ---- pins and waiters */

static void pin(struct attempt *at, const char *key, struct cached *contents)
{
        if (!at->fetches.pins)
                at->fetches.pins = map_new();
        cache_pin(contents);
        struct cached *before = map_put(at->fetches.pins, str_of(key), contents);
        if (before)
                cache_unpin(at->a->cache, before);
        cache_touch(at->a->cache, contents, clock_wall_ms());
}

struct cached *inputs_find(const struct attempt *at, const char *key)
{
        return at->fetches.pins ? map_get(at->fetches.pins, str_of(key)) : NULL;
}

struct cached *inputs_find_shipped(const struct attempt *at, const struct spool_ref *ref)
{
        char key[72];

        if (!ref->sha256)
                return NULL;
        shipped_key(ref->sha256, key);
        return inputs_find(at, key);
}

static void add_waiter(struct fetch *f, struct attempt *at, const char *key)
{
        struct waiter *w = mem_new(struct waiter);

        w->at = at;
        w->key = mem_dupz(key);
        w->next = f->waiters;
        f->waiters = w;
        at->fetches.waits++;
}

static void waiter_free(struct waiter *w)
{
        free(w->key);
        free(w);
}

static void fetch_free(struct fetch *f);

/* Removes the attempt's waiters of a fetch. Returns whether no waiter is left. */
static bool drop_waiters(struct fetch *f, struct attempt *at)
{
        bool dropped = false;

        for (struct waiter **link = &f->waiters; *link;) {
                struct waiter *w = *link;

                if (w->at != at) {
                        link = &w->next;
                        continue;
                }
                *link = w->next;
                at->fetches.waits--;
                dropped = true;
                waiter_free(w);
        }
        return dropped && !f->waiters;
}

void inputs_forget(struct attempt *at)
{
        struct agent *a = at->a;
        void *contents;

        for (struct fetch *f = a->inputs ? a->inputs->first : NULL, *after; f && at->fetches.waits;
             f = after) {
                after = f->next;
                if (drop_waiters(f, at) && !f->ended)
                        fetch_free(f);
        }
        for (size_t i = 0; at->fetches.pins && a->cache && map_next(at->fetches.pins, &i, NULL, &contents);)
                cache_unpin(a->cache, contents);
        map_free(at->fetches.pins);
        at->fetches.pins = NULL;
        at->fetches.url_count = 0;
        at->fetches.wanted = false;
}

/* ---- fetches */

struct fetch *fetch_first(const struct agent *a)
{
        return a->inputs->first;
}

struct attempt *fetch_for(const struct fetch *f)
{
        return f->waiters->at;
}

/* Moves the waiters of the refused request to the end. */
bool fetch_for_another(struct fetch *f)
{
        unsigned count = 0;

        for (const struct waiter *w = f->waiters; w; w = w->next)
                count++;
        if (++f->refused > count)
                return false;
        for (unsigned i = 0; i < count; i++) {
                struct waiter *first = f->waiters, **last = &f->waiters;

                if (first->at->request != f->request) {
                        f->request = first->at->request;
                        return true;
                }
                f->waiters = first->next;
                while (*last)
                        last = &(*last)->next;
                first->next = NULL;
                *last = first;
        }
        return false;
}

/* Returns the id of a fetch of these contents. */
static char *shipped_id(const unsigned char sha256[32])
{
        char key[72];

        shipped_key(sha256, key);
        return mem_dupz(key);
}

static char *url_id(const struct fetch *f)
{
        char sum[65] = "";
        struct buf id = {0};

        if (f->summed)
                hex_print(sum, f->sha256, 32);
        buf_printf(&id, "url:%s:%s", sum, f->key);
        return buf_take(&id);
}

static struct fetch *find_fetch(const struct agent *a, const char *id)
{
        return map_get(a->inputs->by_id, str_of(id));
}

struct fetch *fetch_find_shipped(const struct agent *a, const unsigned char sha256[32])
{
        MEM_CLEANUP char *id = shipped_id(sha256);

        return find_fetch(a, id);
}

/* ---- turns */

static struct share *share_of(const struct agent *a, const char *owner)
{
        return map_get(a->inputs->shares, str_of(owner));
}

static bool inputs_has_room(const struct agent *a, const struct share *s)
{
        return !s || s->going < AT_ONCE + a->config.transfers;
}

static void share_enter(struct fetch *f, const char *owner)
{
        struct share *s = share_of(f->a, owner);

        if (!s) {
                s = mem_new(struct share);
                s->last = &s->first;
                map_put(f->a->inputs->shares, str_of(owner), s);
        }
        f->owner = mem_dupz(owner);
        s->fetches++;
        f->waiting_link = s->last;
        *s->last = f;
        s->last = &f->waiting;
}

/* Removes the fetch from those that wait for their turn. */
static void share_stop_waiting(struct share *s, struct fetch *f)
{
        if ((*f->waiting_link = f->waiting))
                f->waiting->waiting_link = f->waiting_link;
        else
                s->last = f->waiting_link;
        f->waiting = NULL;
        f->waiting_link = NULL;
}

static void on_turns(void *arg);

static void share_leave(struct fetch *f)
{
        struct agent *a = f->a;
        struct share *s = share_of(a, f->owner);

        if (f->waiting_link)
                share_stop_waiting(s, f);
        else
                s->going--;
        if (s->first && !a->inputs->deferred) { /* deferred, because a fetch may end at once */
                loop_defer(a->loop, on_turns, a);
                a->inputs->deferred = true;
        }
        if (--s->fetches == 0)
                free(map_take(a->inputs->shares, str_of(f->owner)));
        free(f->owner);
        f->owner = NULL;
}

static void fetch_start(struct fetch *f);

/* Starts the fetch if its owner has room for it, or queues it. */
static void fetch_go(struct fetch *f)
{
        struct share *s = share_of(f->a, f->owner);

        if (!inputs_has_room(f->a, s))
                return;
        share_stop_waiting(s, f);
        s->going++;
        fetch_start(f);
}

static struct fetch *next_to_go(const struct agent *a)
{
        void *value;

        for (size_t at = 0; map_next(a->inputs->shares, &at, NULL, &value);) {
                const struct share *s = value;

                if (s->first && inputs_has_room(a, s))
                        return s->first;
        }
        return NULL;
}

static void on_turns(void *arg)
{
        struct agent *a = arg;

        a->inputs->deferred = false;
        for (struct fetch *f; (f = next_to_go(a));)
                fetch_go(f);
}

/* Called when another owner wants a queued fetch: starts it if that owner has room. */
static void fetch_join(struct fetch *f, const char *owner)
{
        if (!f->waiting_link || !strcmp(f->owner, owner) || !inputs_has_room(f->a, share_of(f->a, owner)))
                return;
        share_leave(f);
        share_enter(f, owner);
        fetch_go(f);
}

static void fetch_unlink(struct fetch *f)
{
        if (!f->link)
                return;
        if ((*f->link = f->next))
                f->next->link = f->link;
        f->link = NULL;
}

static void fetch_free(struct fetch *f)
{
        fetch_unlink(f);
        if (!f->ended)
                map_take(f->a->inputs->by_id, str_of(f->id));
        share_leave(f);
        if (f->move && f->a->movers)
                movers_cancel(f->move);
        if (f->held)
                cache_unpin(f->a->cache, f->held);
        if (f->fd >= 0)
                close(f->fd);
        if (f->part[0])
                cache_abandon(f->a->cache, f->part);
        EVP_MD_CTX_free(f->sum);
        free(f->name);
        free(f->id);
        free(f->url);
        free(f->key);
        free(f->user);
        free(f->claims);
        free(f->first_error);
        while (f->waiters) {
                struct waiter *w = f->waiters;

                f->waiters = w->next;
                waiter_free(w);
        }
        free(f);
}

static void fail_fetch(const struct fetch *f, struct attempt *at, int error, const char *why)
{
        inputs_forget(at);
        if (f->silent_store) {
                BUF_CLEANUP struct buf words = {0};

                buf_printf(&words, "store %s does not answer: %s", f->silent_store, why);
                at->a->news->give_back(at, buf_z(&words));
                return;
        }
        at->result.hold_subcode = error;
        at->a->news->staged(at, error == EACCES && f->shown ? HOLD_CREDENTIAL : HOLD_INPUT, why);
}

void fetch_end_silent(struct fetch *f)
{
        f->silent_store = stores_name(f->a, f->store);
        fetch_end(f, NULL, f->error, f->first_error);
}

void fetch_end(struct fetch *f, struct cached *contents, int error, const char *why)
{
        struct agent *a = f->a;

        f->ended = true;
        f->doubts = false;
        map_take(a->inputs->by_id, str_of(f->id));
        if (contents)
                cache_pin(contents); /* pinned until all waiters have it */
        while (f->waiters) {
                struct waiter *w = f->waiters;
                struct attempt *at = w->at;

                f->waiters = w->next;
                at->fetches.waits--;
                if (contents) {
                        pin(at, w->key, contents);
                        if (at->fetches.waits == 0)
                                at->a->news->stage(at);
                } else {
                        fail_fetch(f, at, error, why ? why : "an input did not come");
                }
                waiter_free(w);
        }
        fetch_free(f);
        if (contents)
                cache_unpin(a->cache, contents);
        agent_turn_later(a);
}

/* Returns the cache's contents for the fetch, verified or not. */
static struct cached *present(const struct fetch *f)
{
        struct cache *c = f->a->cache;

        if (f->shipped)
                return cache_find(c, f->sha256);
        struct cached_name *n = cache_find_name(c, str_of(f->key));
        return n && (!f->summed || !memcmp(n->contents->sha256, f->sha256, 32)) ? n->contents : NULL;
}

/* Returns whether the copy may be used without asking the store. */
static bool fresh(const struct fetch *f)
{
        struct cached_name *n = f->summed ? NULL : cache_find_name(f->a->cache, str_of(f->key));
        int64_t age = n ? clock_wall_ms() - n->confirmed_ms : 0;

        return f->summed || (n && age >= 0 && age < (int64_t)f->a->config.cache_fresh_ms);
}

static void on_checked(void *arg, const struct move_answer *answer)
{
        struct fetch *f = arg;
        struct agent *a = f->a;
        struct cached *e = f->held;

        f->move = NULL;
        f->held = NULL;
        cache_unpin(a->cache, e);
        if (answer->status == MOVE_DONE && memcmp(answer->sha256, e->sha256, 32) == 0) {
                e->checked = true;
        } else if (e->use.pins == 0) {
                log_warn("msg=\"contents of the cache are not what they were\" why=\"%s\"",
                         answer->status == MOVE_DONE ? "another checksum" : answer->text);
                cache_drop(a->cache, e);
        }
        fetch_start(f);
}

static void check_fetched(struct fetch *f, struct cached *e)
{
        struct move_task t;
        int fd = cache_open_contents(f->a->cache, e);

        if (fd < 0) {
                if (e->use.pins == 0)
                        cache_drop(f->a->cache, e);
                fetch_get(f);
                return;
        }
        move_task_init(&t, MOVE_CHECK);
        t.tries = 1;
        f->held = e;
        cache_pin(e);
        f->move = movers_start(f->a, &t, fd, NULL, NULL, on_checked, f);
        close(fd);
}

/* Takes the next step. */
static void fetch_start(struct fetch *f)
{
        struct cached *e = present(f);

        if (e && !e->checked)
                check_fetched(f, e);
        else if (e && fresh(f))
                fetch_end(f, e, 0, NULL);
        else
                fetch_get(f);
}

void fetch_get(struct fetch *f)
{
        if (f->shipped)
                spool_fetch(f->a, f);
        else
                fetch_url(f);
}

/* ---- inputs of an attempt */

/* The id is taken. */
static struct fetch *fetch_add(struct attempt *at, const struct fetch *like, char *id)
{
        struct fetch *f = mem_new(struct fetch);

        *f = *like;
        f->a = at->a;
        f->fd = -1;
        f->began_ms = clock_wall_ms();
        f->id = id;
        map_put(f->a->inputs->by_id, str_of(id), f);
        f->link = &f->a->inputs->first;
        if ((f->next = *f->link))
                f->next->link = &f->next;
        *f->link = f;
        share_enter(f, at->t->m->owner);
        return f;
}

static void want_shipped(struct attempt *at, const struct spool_ref *ref)
{
        char key[72];

        shipped_key(ref->sha256, key);
        if (inputs_find(at, key))
                return;
        struct cached *e = cache_find(at->a->cache, ref->sha256);
        if (e && e->checked) {
                pin(at, key, e);
                return;
        }
        struct fetch *f = fetch_find_shipped(at->a, ref->sha256), like = {.shipped = true, .summed = true};
        bool is_new = !f;
        if (is_new) {
                memcpy(like.sha256, ref->sha256, 32);
                like.request = at->request;
                like.size = ref->size;
                f = fetch_add(at, &like, mem_dupz(key));
                f->name = mem_dupz(ref->name);
        }
        add_waiter(f, at, key);
        if (is_new)
                fetch_go(f);
        else
                fetch_join(f, at->t->m->owner);
}

static int want_url(void *arg, struct str element, struct err *err)
{
        struct attempt *at = arg;
        BUF_CLEANUP struct buf key = {0};
        MEM_CLEANUP char *url = str_dupz(element);
        struct fetch like = {.store = FILE_STORE_NONE};

        if (!inputs_is_url(element, NULL) || inputs_find(at, url))
                return 0;
        if (element.n > MOVE_URL_MAX || !inputs_name(element).n ||
            !stores_key(at, element, &key, &like.store))
                return err_set(err, -EINVAL, "the input " STR_FMT " is no URL of a file", STR_ARG(element));
        like.summed = asked_sum(element, like.sha256);
        if (at->fetches.url_count++ == URLS_MAX)
                return err_set(err, -E2BIG, "a job may name up to %u URLs as its inputs", URLS_MAX);
        like.key = (char *)(uintptr_t)buf_z(&key);
        like.a = at->a;
        struct cached *e = present(&like);
        if (e && e->checked && fresh(&like)) {
                pin(at, url, e);
                return 0;
        }
        MEM_CLEANUP char *id = url_id(&like);
        struct fetch *f = find_fetch(at->a, id);
        bool is_new = !f;
        if (is_new) {
                f = fetch_add(at, &like, mem_dupz(id));
                f->key = mem_dupz(like.key);
                f->url = mem_dupz(url);
                /* with a mover of one user, that user could pass any contents to the other waiters, or let
                 * them fail */
                if (at->a->users_path && !file_key_is_common(buf_view(&key)))
                        f->user = mem_dupz(at->t->user.name);
        }
        add_waiter(f, at, url);
        if (is_new)
                fetch_go(f);
        else
                fetch_join(f, at->t->m->owner);
        return 0;
}

static int want_files(struct attempt *at, struct err *err)
{
        const struct job_template *m = at->t->m;
        struct shipped shipped;

        shipped_read(at, &shipped);
        for (size_t i = 0; i < m->spooled_count; i++) {
                const struct spool_ref *ref = &m->spooled[i];

                if (ref->sha256 && shipped_name_valid(ref->name) && shipped_wants(&shipped, ref->name))
                        want_shipped(at, ref); /* for invalid names move_in reports the error */
        }
        shipped_deinit(&shipped);
        for (size_t i = 0; i < at->checkpoint.restore_count; i++)
                want_shipped(at, &at->checkpoint.restore[i]);
        return inputs_each(at, want_url, at, err);
}

int inputs_want(struct attempt *at, struct err *err)
{
        int r = 0;

        if (at->fetches.wanted)
                return at->fetches.waits > 0;
        at->fetches.wanted = true;
        at->fetches.waits++; /* keeps fetches that end meanwhile from continuing the attempt */
        enum environment_kind kind;
        const struct spool_ref *of = environment_asked(at) ? environment_file(at, &kind) : NULL;
        if (of)
                want_shipped(at, of);
        if (at->t->m->transfer != TRANSFER_NO)
                r = want_files(at, err);
        at->fetches.waits--;
        return r < 0 ? r : at->fetches.waits > 0;
}

void inputs_look(struct agent *a)
{
        for (const struct fetch *f = a->inputs->first; f; f = f->next)
                for (const struct waiter *w = f->waiters; w; w = w->next) {
                        memset(&w->at->fetches.seen, 0, sizeof(w->at->fetches.seen));
                        w->at->fetches.seen.all_known = true;
                }
        for (const struct fetch *f = a->inputs->first; f; f = f->next) {
                struct stat st;
                uint64_t bytes = f->fd >= 0 && fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;

                for (const struct waiter *w = f->waiters; w; w = w->next) {
                        w->at->fetches.seen.one = f;
                        w->at->fetches.seen.bytes += bytes;
                        w->at->fetches.seen.bytes_all += f->size;
                        w->at->fetches.seen.all_known &= f->size > 0;
                }
        }
}

void inputs_open(struct agent *a)
{
        a->inputs = mem_new(struct inputs);
        a->inputs->by_id = map_new();
        a->inputs->shares = map_new();
}

void inputs_close(struct agent *a)
{
        struct inputs *in = a->inputs;

        if (!in)
                return;
        while (in->first)
                fetch_free(in->first);
        if (in->deferred)
                loop_defer_cancel(a->loop, on_turns, a);
        map_free(in->by_id);
        map_free(in->shares);
        free(in);
        a->inputs = NULL;
}
