/* What an attempt needs from elsewhere: files that were shipped with its submit, and URLs. What is in the
 * cache and good is pinned at once; for the rest the attempt waits for a fetch, which it may share with
 * others.
 *
 * A copy of a URL is used without a question for `cache_fresh`. After that its store is asked whether it is
 * still the same (by ETag, date and size); a store that does not answer makes the job wait, and then fail: an
 * old copy is not used in silence. Contents that were here before the agent started are summed before their
 * first use.
 *
 * Contents of URLs are reached by the URL only, and by who may ask for it (stores_key), also when the URL
 * says what checksum they have: a checksum is no key to what others have fetched, whatever their rights or
 * its labels were. The server answers for what was shipped. */
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
#include "base/clock.h"
#include "base/file_key.h"
#include "base/hex.h"
#include "base/log.h"

struct waiter {
        struct waiter *next;
        struct attempt *at;
        char *key; /* what the attempt calls it */
};
struct inputs {
        struct fetch *first;
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
        MEM_GROW(at->fetches.pins, at->fetches.pin_cap, at->fetches.pin_count + 1);
        at->fetches.pins[at->fetches.pin_count++] = (struct input_pin){mem_dupz(key), contents};
        cache_pin(contents);
        cache_use(at->a->cache, contents, clock_wall_ms());
}

struct cached *inputs_find(const struct attempt *at, const char *key)
{
        for (size_t i = 0; i < at->fetches.pin_count; i++)
                if (!strcmp(at->fetches.pins[i].key, key))
                        return at->fetches.pins[i].contents;
        return NULL;
}

struct cached *inputs_find_shipped(const struct attempt *at, const Drover__SpoolRef *ref)
{
        char key[72];
        if (ref->sha256.len != 32)
                return NULL;
        shipped_key(ref->sha256.data, key);
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

/* The attempt's waiters of a fetch; true: now nobody waits for it. */
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
        for (struct fetch **link = a->inputs ? &a->inputs->first : NULL;
             link && *link && at->fetches.waits;) {
                struct fetch *f = *link;
                if (drop_waiters(f, at) && !f->ended) {
                        *link = f->next;
                        fetch_free(f);
                } else {
                        link = &f->next;
                }
        }
        for (size_t i = 0; i < at->fetches.pin_count; i++) {
                if (a->cache)
                        cache_unpin(a->cache, at->fetches.pins[i].contents);
                free(at->fetches.pins[i].key);
        }
        free(at->fetches.pins);
        at->fetches.pins = NULL;
        at->fetches.pin_count = at->fetches.pin_cap = 0;
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

/* Those of the request that was refused go to the end. */
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

struct fetch *fetch_find_shipped(const struct agent *a, const unsigned char sha256[32])
{
        struct fetch *f = a->inputs->first;
        while (f && !(f->shipped && !f->ended && memcmp(f->sha256, sha256, 32) == 0))
                f = f->next;
        return f;
}

static struct fetch *find_url(const struct agent *a, const char *key, const struct fetch *like)
{
        struct fetch *f = a->inputs->first;
        while (f && (f->shipped || f->ended || strcmp(f->key, key) != 0 || f->summed != like->summed ||
                     (f->summed && memcmp(f->sha256, like->sha256, 32) != 0)))
                f = f->next;
        return f;
}

static void fetch_free(struct fetch *f)
{
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
        free(f->url);
        free(f->key);
        free(f->owner);
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

static void fail(const struct fetch *f, struct attempt *at, int error, const char *why)
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
        if (contents)
                cache_pin(contents); /* until all have it */
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
                        fail(f, at, error, why ? why : "an input did not come");
                }
                waiter_free(w);
        }
        struct fetch **link = &a->inputs->first;
        while (*link != f)
                link = &(*link)->next;
        *link = f->next;
        fetch_free(f);
        if (contents)
                cache_unpin(a->cache, contents);
        agent_turn_later(a);
}

/* What the cache has for it, good or not yet looked at. */
static struct cached *present(const struct fetch *f)
{
        struct cache *c = f->a->cache;
        if (f->shipped)
                return cache_find(c, f->sha256);
        struct cached_name *n = cache_find_name(c, str_of(f->key));
        return n && (!f->summed || !memcmp(n->contents->sha256, f->sha256, 32)) ? n->contents : NULL;
}

/* May it be used without asking the store? */
static bool fresh(const struct fetch *f)
{
        struct cached_name *n = f->summed ? NULL : cache_find_name(f->a->cache, str_of(f->key));
        int64_t age = n ? clock_wall_ms() - n->confirmed_ms : 0;
        return f->summed || (n && age >= 0 && age < (int64_t)f->a->config.cache_fresh_ms);
}

static void fetch_start(struct fetch *f);

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

static void check(struct fetch *f, struct cached *e)
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
                check(f, e);
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

/* ---- what an attempt wants */

static struct fetch *fetch_add(struct attempt *at, struct fetch *like)
{
        struct fetch *f = mem_new(struct fetch);
        *f = *like;
        f->a = at->a;
        f->fd = -1;
        f->began_ms = clock_wall_ms();
        f->next = at->a->inputs->first;
        at->a->inputs->first = f;
        return f;
}

static void want_shipped(struct attempt *at, const Drover__SpoolRef *ref)
{
        char key[72];
        shipped_key(ref->sha256.data, key);
        if (inputs_find(at, key))
                return;
        struct cached *e = cache_find(at->a->cache, ref->sha256.data);
        if (e && e->checked) {
                pin(at, key, e);
                return;
        }
        struct fetch *f = fetch_find_shipped(at->a, ref->sha256.data),
                     like = {.shipped = true, .summed = true};
        bool is_new = !f;
        if (is_new) {
                memcpy(like.sha256, ref->sha256.data, 32);
                like.request = at->request;
                like.size = ref->size;
                f = fetch_add(at, &like);
                f->name = mem_dupz(ref->name);
        }
        add_waiter(f, at, key);
        if (is_new)
                fetch_start(f);
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
        like.key = (char *)(uintptr_t)buf_z(&key);
        like.a = at->a;
        struct cached *e = present(&like);
        if (e && e->checked && fresh(&like)) {
                pin(at, url, e);
                return 0;
        }
        struct fetch *f = find_url(at->a, like.key, &like);
        bool is_new = !f;
        if (is_new) {
                f = fetch_add(at, &like);
                f->key = mem_dupz(like.key);
                f->url = mem_dupz(url);
                f->owner = mem_dupz(at->t->m->owner);
                /* a mover of one of those who share it could give the others what it likes, or fail them */
                if (at->a->users_path && !file_key_is_common(buf_view(&key)))
                        f->user = mem_dupz(at->t->user.name);
        }
        add_waiter(f, at, url);
        if (is_new)
                fetch_start(f);
        return 0;
}

static int want_files(struct attempt *at, struct err *err)
{
        const Drover__Template *m = at->t->m;
        struct shipped shipped;
        shipped_read(at, &shipped);
        for (size_t i = 0; i < m->n_spooled; i++) {
                const Drover__SpoolRef *ref = m->spooled[i];
                if (ref->sha256.len == 32 && shipped_name_valid(ref->name) &&
                    shipped_wants(&shipped, ref->name))
                        want_shipped(at, ref); /* of the others move_in will say what is wrong */
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
        at->fetches.waits++; /* nothing that ends meanwhile goes on without us */
        enum environment_kind kind;
        const Drover__SpoolRef *of = environment_asked(at) ? environment_file(at, &kind) : NULL;
        if (of)
                want_shipped(at, of);
        if (at->t->m->transfer != DROVER__TRANSFER__TRANSFER_NO)
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
}

void inputs_close(struct agent *a)
{
        struct inputs *in = a->inputs;
        if (!in)
                return;
        while (in->first) {
                struct fetch *f = in->first;
                in->first = f->next;
                fetch_free(f);
        }
        free(in);
        a->inputs = NULL;
}
