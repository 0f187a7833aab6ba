/* Keeps the stores that the server has named: the keys of their files, their latency and bandwidth. Changes
 * of the cache and of measurements go to the server here, at the end of a turn.
 *
 * A probe of a store is one small request every `probe`; bandwidth comes from the transfers of jobs. Only if
 * there were none, and the store's configuration names a file to read, that file is read once.
 */
#include "agent/transfer/stores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/credential/credentials.h"
#include "agent/outbox/outbox.h"
#include "agent/transfer/fetch.h"
#include "agent/transfer/link_file.h"
#include "agent/transfer/movers.h"
#include "agent/transfer/output_transfers.h"
#include "base/arena.h"
#include "base/format/quantity.h"
#include "base/job/file_key.h"
#include "base/job/image.h"
#include "base/system/clock.h"
#include "base/system/log.h"

#define STORES_MAX  255u
#define SPREAD_MS   500     /* between the first looks at two stores */
#define AGAIN_MS    30000   /* pause after a failed probe */
#define READ_MS     3600000 /* bandwidth from a file: at most so often */
#define CHANGES_MAX 4000u   /* limit in one message */
#define WRITE_TICKS 5
#define DAY_MS      86400000 /* bandwidth that no job has measured for so long is read again, where it can be */

struct store {
        char *name, *probe;
        struct str *prefixes;
        size_t prefix_count;
        struct probe_estimate estimate, told;
        int64_t down_ms; /* Unix time since which no way to it answers; 0: it answers, as far as known */
        int64_t told_down_ms;
        bool space;                     /* it is asked for its free space */
        uint64_t free_bytes, told_free; /* MOVE_SIZE_ANY: not known */
        char *down_why;
        bool doubted;             /* a transfer has failed, and the store is being probed */
        bool silence, spoken;     /* results of the ways probed since the store last answered */
        size_t tried;             /* number of ways tried */
        int64_t look_ms, read_ms; /* next, at the earliest; boot clock */
        struct move *move;
        struct agent *a;
        size_t way; /* the prefix that is looked at */
};
struct held { /* something that other parts keep here */
        uint64_t id;
        char *name;
        enum cached_kind kind;
        bool here;
};
struct stores {
        struct held *held;
        size_t held_count, held_cap;
        struct store **v; /* the last is the server's spool */
        struct store_urls *urls;
        size_t count; /* number of stores without the spool */
        bool tell_all, changed, write;
        unsigned ticks;
        struct link_file kept; /* measurements of an earlier agent */
};

static void store_free(struct store *s)
{
        if (s->move && s->a->movers)
                movers_cancel(s->move);
        for (size_t i = 0; i < s->prefix_count; i++)
                free((char *)(uintptr_t)s->prefixes[i].p);
        free(s->prefixes);
        free(s->name);
        free(s->probe);
        free(s->down_why);
        free(s);
}

static struct str first_prefix(const struct store *s)
{
        return s->prefix_count ? s->prefixes[0] : STR_NONE;
}

/* Restores the measurements of a new store. */
static void remember(struct stores *all, struct store *s)
{
        const struct probe_estimate *e = link_file_find(&all->kept, s->name, first_prefix(s));

        if (e)
                s->estimate = *e;
}

/* Writes the measurements. A store that was removed from the configuration is forgotten in the file, too. */
static void write_links(struct agent *a)
{
        struct stores *all = a->stores;
        struct link_file l = {0};

        if (!all->write)
                return;
        for (size_t i = 0; i <= all->count; i++)
                link_file_add(&l, all->v[i]->name, first_prefix(all->v[i]), &all->v[i]->estimate);
        all->write = link_file_write(&l, a->dir, clock_boot_ms(), clock_wall_ms()) < 0;
        link_file_deinit(&l);
}

static struct store *store_new(struct agent *a, const char *name)
{
        struct store *s = mem_new(struct store);

        s->a = a;
        s->name = mem_dupz(name);
        s->free_bytes = s->told_free = MOVE_SIZE_ANY;
        return s;
}

/* 0: it has no number. */
static uint64_t held_id(struct str name)
{
        BUF_CLEANUP struct buf url = {0}, canonical = {0};

        image_url(name, &url);
        return file_url(buf_view(&url), NULL, 0, &canonical, NULL) ? file_id(buf_view(&canonical)) : 0;
}

static struct held *find_held(struct stores *all, uint64_t id)
{
        for (size_t i = 0; i < all->held_count; i++)
                if (all->held[i].id == id)
                        return &all->held[i];
        return NULL;
}

void stores_hold(struct agent *a, struct str name, uint64_t size, enum cached_kind kind)
{
        struct stores *all = a->stores;
        uint64_t id = held_id(name);
        struct held *h = find_held(all, id);

        if (!id || (h && h->here))
                return;
        if (!h) {
                MEM_GROW(all->held, all->held_cap, all->held_count + 1);
                h = &all->held[all->held_count++];
                *h = (struct held){.id = id, .name = str_dupz(name), .kind = kind};
        }
        h->here = true;
        cache_other(a->cache, id, size);
}

void stores_release(struct agent *a, struct str name)
{
        struct held *h = find_held(a->stores, held_id(name));

        if (!h || !h->here)
                return;
        h->here = false;
        cache_other(a->cache, h->id, UINT64_MAX);
}

static void add_images(struct agent *a)
{
        for (size_t i = 0; i < a->config.images.n; i++) {
                struct str size = str_of(a->config.images.v[i]), name;
                uint64_t bytes = 0;

                str_cut(&size, ' ', &name);
                quantity_size(size, &bytes); /* config_finish has looked at it */
                stores_hold(a, name, bytes, CACHED_IMAGE);
        }
}

void stores_open(struct agent *a)
{
        struct stores *all = a->stores = mem_new(struct stores);

        all->v = mem_array(NULL, 1, sizeof(*all->v));
        all->v[0] = store_new(a, "");
        link_file_read(&all->kept, a->dir, clock_boot_ms(), clock_wall_ms());
        remember(all, all->v[0]);
        add_images(a);
}

void stores_close(struct agent *a)
{
        struct stores *all = a->stores;

        if (!all)
                return;
        write_links(a);
        link_file_deinit(&all->kept);
        for (size_t i = 0; i <= all->count; i++)
                store_free(all->v[i]);
        for (size_t i = 0; i < all->held_count; i++)
                free(all->held[i].name);
        free(all->held);
        free(all->v);
        free(all->urls);
        free(all);
        a->stores = NULL;
}

/* ---- names */

bool stores_key(const struct attempt *at, struct str url, struct buf *ret_key, size_t *ret_store)
{
        const struct job_origin *o = at->t->m->origin;
        bool handed_on = o && *o->job; /* otherwise this is the job's first server */
        struct str rest = str_of(handed_on ? o->servers : ""), first = STR_NONE;
        BUF_CLEANUP struct buf who = {0};
        MEM_CLEANUP struct file_credential *credentials = credentials_list(at);

        str_cut(&rest, ' ', &first);
        file_asker_who(str_of(at->t->m->owner), first, str_of(handed_on ? o->owner : ""), &who);
        const struct file_asker asker = {buf_view(&who), credentials, at->credential_count};
        return file_key(url, &asker, at->a->stores->urls, at->a->stores->count, ret_key, ret_store);
}

size_t stores_of(const struct agent *a, struct str url)
{
        BUF_CLEANUP struct buf canonical = {0};
        size_t store;

        return file_url(url, a->stores->urls, a->stores->count, &canonical, &store) ? store : FILE_STORE_NONE;
}

bool stores_other_way(const struct agent *a, struct str url, size_t store, size_t n, struct buf *ret)
{
        return store < a->stores->count && file_other_way(url, &a->stores->urls[store], n, ret);
}

bool stores_own_way(const struct agent *a, struct str url, size_t store, struct buf *ret)
{
        return store < a->stores->count && file_own_way(url, &a->stores->urls[store], ret);
}

static struct store *take_old(struct stores *old, const char *name)
{
        for (size_t i = 0; i < old->count; i++)
                if (old->v[i] && !strcmp(old->v[i]->name, name)) {
                        struct store *s = old->v[i];

                        old->v[i] = NULL;
                        return s;
                }
        return NULL;
}

static struct store *store_from(struct agent *a, const struct store_told *m, struct store *old)
{
        struct store *s = store_new(a, m->name);

        s->probe = mem_dupz(m->probe);
        s->space = m->space;
        s->prefixes = mem_array(NULL, m->prefix_count + 1, sizeof(*s->prefixes));
        for (size_t i = 0; i < m->prefix_count; i++)
                s->prefixes[s->prefix_count++] = str_of(mem_dupz(m->prefixes[i]));
        if (!old) {
                remember(a->stores, s);
                return s;
        }
        s->estimate = old->estimate;
        s->free_bytes = old->free_bytes;
        s->look_ms = old->move ? 0 : old->look_ms;
        s->read_ms = old->read_ms;
        s->down_ms = old->down_ms;
        s->down_why = old->down_why;
        old->down_why = NULL;
        store_free(old);
        return s;
}

void stores_told(struct agent *a, const struct store_told *told, size_t count)
{
        struct stores old = *a->stores, *all = a->stores;
        size_t n = count < STORES_MAX ? count : STORES_MAX;
        int64_t now = clock_boot_ms();

        all->v = mem_array(NULL, n + 1, sizeof(*all->v));
        all->urls = mem_array(NULL, n + 1, sizeof(*all->urls));
        all->count = 0;
        for (size_t i = 0; i < n; i++) {
                if (told[i].prefix_count == 0)
                        continue;
                struct store *s = store_from(a, &told[i], take_old(&old, told[i].name));
                if (!s->look_ms)
                        s->look_ms = now + (int64_t)i * SPREAD_MS;
                all->urls[all->count] = (struct store_urls){str_of(s->name), s->prefixes, s->prefix_count};
                all->v[all->count++] = s;
        }
        all->v[all->count] = old.v[old.count];
        for (size_t i = 0; i < old.count; i++)
                if (old.v[i])
                        store_free(old.v[i]);
        free(old.v);
        free(old.urls);
        all->tell_all = true;
        fetch_stores_changed(a);
        output_transfers_stores_changed(a);
}

/* ---- probes */

void stores_measured(struct agent *a, size_t store, enum probe_way way, uint64_t bytes, uint64_t took_us)
{
        struct stores *all = a->stores;
        size_t i = store == STORE_SPOOL ? all->count : store;

        if (i > all->count || (i == all->count && store != STORE_SPOOL))
                return;
        probe_estimate_rate(&all->v[i]->estimate, way, bytes, took_us, clock_boot_ms());
        all->changed = all->write = true;
}

const char *stores_name(const struct agent *a, size_t store)
{
        return store < a->stores->count ? a->stores->v[store]->name : NULL;
}

bool stores_is_down(const struct agent *a, size_t store)
{
        return store < a->stores->count && a->stores->v[store]->down_ms;
}

const char *stores_down_why(const struct agent *a, size_t store)
{
        return store < a->stores->count ? a->stores->v[store]->down_why : NULL;
}

bool stores_is_silence(int error)
{
        return error == EAGAIN || error == ETIMEDOUT;
}

/* Called when it is known whether the store answers: tells those who asked. */
static void known(struct store *s, bool answers, const char *why)
{
        struct agent *a = s->a;
        bool doubted = s->doubted;
        size_t i = 0;

        if (!answers && !s->down_ms)
                log_warn("msg=\"a store does not answer\" store=%s error=\"%s\"", s->name,
                         LOG_TEXT(str_of(why)));
        else if (answers && s->down_ms)
                log_info("msg=\"a store answers again\" store=%s", s->name);
        if (answers == (s->down_ms > 0))
                s->down_ms = answers ? 0 : clock_wall_ms();
        free(s->down_why);
        s->down_why = answers ? NULL : mem_dupz(why);
        s->doubted = s->silence = s->spoken = false;
        s->tried = 0;
        a->stores->changed = true;
        agent_turn_later(a);
        while (a->stores->v[i] != s)
                i++;
        if (doubted)
                fetch_store_known(a, i, answers);
        output_transfers_store_known(a, i, answers);
}

void stores_answered(struct agent *a, size_t store)
{
        if (store < a->stores->count && a->stores->v[store]->down_ms)
                known(a->stores->v[store], true, NULL);
}

enum store_word stores_doubt(struct agent *a, size_t store)
{
        if (store >= a->stores->count)
                return STORE_ANSWERS;
        struct store *s = a->stores->v[store];
        if (s->down_ms)
                return STORE_SILENT;
        s->doubted = true;
        s->look_ms = clock_boot_ms(); /* probes at the next tick */
        return STORE_ASKED;
}

static void on_read(void *arg, const struct move_answer *answer)
{
        struct store *s = arg;

        s->move = NULL;
        if (answer->status == MOVE_FAILED) {
                log_info("msg=\"cannot read a store's probe\" store=%s error=\"%s\"", s->name,
                         LOG_TEXT(str_of(answer->text)));
                return;
        }
        probe_estimate_rate(&s->estimate, PROBE_IN, answer->moved, answer->took_us, clock_boot_ms());
        s->a->stores->changed = s->a->stores->write = true;
        agent_turn_later(s->a);
}

/* Reads the store's probe file and discards it, to measure bandwidth where no job has fetched anything. */
static void read_probe(struct store *s)
{
        struct move_task t;
        int fd = openat(s->a->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        s->read_ms = clock_boot_ms() + READ_MS;
        if (fd < 0)
                return;
        move_task_init(&t, MOVE_GET);
        t.url = s->probe;
        t.tries = 1;
        t.limit_ms = AGAIN_MS;
        s->move = movers_start(s->a, &t, fd, NULL, NULL, on_read, s);
        close(fd);
}

/* Called when one way did not answer. A connection followed by silence is no proof, since the answer may
 * just take long; unless a transfer has failed, too. */
static void look_failed(struct store *s, const struct move_answer *answer)
{
        uint64_t probe_ms = s->a->config.probe_ms;
        int64_t now = clock_boot_ms();

        log_info("msg=\"cannot look at a store\" store=%s error=\"%s\"", s->name,
                 LOG_TEXT(str_of(answer->text)));
        s->silence |= stores_is_silence(answer->error) && (!answer->latency_us || s->doubted);
        s->spoken |= answer->error == ENOENT || answer->error == EACCES;
        s->way = (s->way + 1) % s->prefix_count;
        s->look_ms = now;
        if (++s->tried < s->prefix_count) /* another way to it, at once */
                return;
        s->look_ms = now + (int64_t)(probe_ms && probe_ms < AGAIN_MS ? probe_ms : AGAIN_MS);
        bool silent = s->silence && !s->spoken;
        if (silent || s->doubted || (s->down_ms && s->spoken))
                known(s, !silent, answer->text);
        s->tried = 0;
        s->silence = s->spoken = false;
}

static void on_looked(void *arg, const struct move_answer *answer)
{
        struct store *s = arg;
        struct agent *a = s->a;
        int64_t now = clock_boot_ms();

        s->move = NULL;
        if (answer->status == MOVE_FAILED) {
                look_failed(s, answer);
                return;
        }
        probe_estimate_latency(&s->estimate, answer->latency_us, now);
        s->free_bytes = answer->free_bytes;
        a->stores->changed = a->stores->write = true;
        int64_t read_ms = s->estimate.rate_ms[PROBE_IN];
        if ((!read_ms || now - read_ms > DAY_MS) && *s->probe && now >= s->read_ms)
                read_probe(s);
        known(s, true, NULL);
}

static void look_at_store(struct store *s, int64_t now)
{
        BUF_CLEANUP struct buf url = {0};
        struct move_task t;

        s->look_ms = now + (int64_t)(s->a->config.probe_ms ? s->a->config.probe_ms : AGAIN_MS);
        buf_str(&url, s->prefixes[s->way]);
        move_task_init(&t, MOVE_PROBE);
        t.space = s->space;
        t.url = (char *)(uintptr_t)buf_z(&url);
        t.tries = 1;
        t.limit_ms = AGAIN_MS;
        s->move = movers_start(s->a, &t, -1, NULL, NULL, on_looked, s);
}

void stores_tick(struct agent *a)
{
        struct stores *all = a->stores;
        int64_t now = clock_boot_ms();

        for (size_t i = 0; i < all->count; i++) {
                struct store *s = all->v[i];
                bool wanted = s->doubted || s->tried || (a->greeted && (a->config.probe_ms || s->down_ms));

                if (wanted && !s->move && now >= s->look_ms)
                        look_at_store(s, now);
        }
        if (++all->ticks % WRITE_TICKS != 0)
                return;
        cache_write(a->cache);
        write_links(a);
}

/* ---- reports to the server */

struct delta {
        struct agent *a;
        struct cached_file *added;
        uint64_t *removed;
        size_t added_count, added_cap, removed_count, removed_cap;
};

static void on_change(void *arg, uint64_t id, uint64_t size)
{
        struct delta *d = arg;

        if (size == UINT64_MAX) {
                MEM_GROW(d->removed, d->removed_cap, d->removed_count + 1);
                d->removed[d->removed_count++] = id;
                return;
        }
        MEM_GROW(d->added, d->added_cap, d->added_count + 1);
        struct cached_file *c = &d->added[d->added_count++];
        *c = (struct cached_file){.id = id, .size = size};
        for (size_t i = 0; i < d->a->stores->held_count; i++) {
                const struct held *h = &d->a->stores->held[i];

                if (h->id != id)
                        continue;
                c->kind = h->kind;
                c->name = h->name;
        }
}

static void tell_cache(struct agent *a, bool all)
{
        struct delta d = {.a = a};
        bool first = true;

        if (!all && !cache_changed(a->cache))
                return;
        cache_changes(a->cache, all, on_change, &d);
        for (size_t added = 0, removed = 0; first || added < d.added_count || removed < d.removed_count;) {
                size_t more = d.added_count - added, fewer = d.removed_count - removed;

                more = more < CHANGES_MAX ? more : CHANGES_MAX;
                fewer = fewer < CHANGES_MAX ? fewer : CHANGES_MAX;
                outbox_cache_delta(a, all && first, d.added + added, more, d.removed + removed, fewer);
                added += more;
                removed += fewer;
                first = false;
        }
        free(d.added);
        free(d.removed);
}

/* The newest of its numbers, by the wall clock; 0: there is none. */
static int64_t measured_ms(const struct probe_estimate *e)
{
        const int64_t v[] = {e->latency_ms, e->rate_ms[PROBE_IN], e->rate_ms[PROBE_OUT]};
        int64_t newest = 0;

        for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
                if (v[i] && (!newest || v[i] > newest))
                        newest = v[i];
        return newest ? clock_wall_ms() - (clock_boot_ms() - newest) : 0;
}

static void tell_links(struct agent *a, bool all)
{
        struct stores *s = a->stores;
        MEM_CLEANUP struct store_link *links = mem_array(NULL, s->count + 1, sizeof(*links));
        size_t count = 0;

        for (size_t i = 0; i <= s->count; i++) {
                struct store *one = s->v[i];
                const struct probe_estimate *e = &one->estimate;
                bool turned = one->down_ms != one->told_down_ms || one->free_bytes != one->told_free;
                bool measured = e->latency_us || e->bytes_per_s[PROBE_IN] || e->bytes_per_s[PROBE_OUT];

                if ((!measured && !one->down_ms && !turned) ||
                    (!all && !turned && !probe_estimate_differs(e, &one->told)))
                        continue;
                bool free_known = one->free_bytes != MOVE_SIZE_ANY;
                links[count++] = (struct store_link){.store = one->name,
                                                     .latency_us = e->latency_us,
                                                     .bytes_per_s = e->bytes_per_s[PROBE_IN],
                                                     .bytes_per_s_out = e->bytes_per_s[PROBE_OUT],
                                                     .down_ms = one->down_ms,
                                                     .down_why = one->down_why,
                                                     .measured_ms = measured_ms(e),
                                                     .free_known = free_known,
                                                     .free_bytes = free_known ? one->free_bytes : 0};
                one->told = *e;
                one->told_down_ms = one->down_ms;
                one->told_free = one->free_bytes;
        }
        outbox_links(a, links, count);
}

void stores_greeted(struct agent *a)
{
        tell_cache(a, true);
        a->stores->tell_all = true;
}

void stores_turn(struct agent *a)
{
        struct stores *s = a->stores;

        if (!a->greeted)
                return;
        tell_cache(a, false);
        if (s->tell_all || s->changed)
                tell_links(a, s->tell_all);
        s->tell_all = s->changed = false;
}
