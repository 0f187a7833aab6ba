/* Classes of jobs that are alike in everything that matters for matching.
 *
 * The key of a class is the text of the significant attributes: Requirements, Rank and the request_*; those
 * that these refer to in the job's own ad; and those that agents' expressions refer to in jobs' ads, unless
 * they differ for every job. A newly significant attribute makes all classes anew (core_rekey). This is rare,
 * since agents of one site have the same expressions; it is done in slices, with no matching until it is
 * complete. Members of one part are in one class unless a late attribute is significant.
 */
#include "core/classes/job_class.h"

#include <assert.h>

#include "base/map.h"
#include "base/mem.h"
#include "classad/print.h"
#include "core/classes/split.h"
#include "core/data/inputs.h"
#include "core/data/label.h"
#include "core/fairness/charge.h"
#include "core/fairness/order.h"
#include "core/fairness/qos.h"
#include "core/index/index.h"
#include "core/model/gang_rule.h"
#include "core/model/item.h"
#include "core/model/pending_match.h"
#include "core/model/precedence.h"

struct names { /* names may repeat: a user's condition may name an attribute any number of times */
        struct core *core;
        symbol *v;
        size_t n, cap;
        bool proc, cluster; /* the job's own expressions refer to ProcId; to ClusterId or QDate */
};

static void names_add(struct names *s, symbol name)
{
        const struct attributes *a = &s->core->attr;

        if (name == a->ProcId)
                s->proc = true;
        if (name == a->ClusterId || name == a->QDate)
                s->cluster = true;
        MEM_GROW(s->v, s->cap, s->n + 1);
        s->v[s->n++] = name;
}

static void on_reference(void *arg, symbol name, bool target)
{
        if (!target)
                names_add(arg, name);
}

static const struct job_template_late *find_late(const struct job_template *t, symbol name)
{
        for (size_t i = 0; i < t->late_count; i++)
                if (t->late[i].name == name)
                        return &t->late[i];
        return NULL;
}

/* Adds the requests for countable resources, and the attributes that these depend on. */
static void add_requests(struct names *s, const struct ad *ad)
{
        struct expr_uses uses;
        struct amounts more;

        amounts_names(s->core->symbols, ad, &more);
        for (unsigned i = 0; i < more.count; i++) {
                names_add(s, more.v[i].request);
                expr_references(ad_find(ad, more.v[i].request), ad, on_reference, s, &uses);
        }
}

/* Adds the names that matter for a member of a template; `ad` is the template's, or a member's own. */
static void collect(struct names *s, const struct ad *ad)
{
        const struct attributes *a = &s->core->attr;
        const symbol fixed[] = {a->Requirements,
                                a->Rank,
                                a->RequestCpus,
                                a->RequestMemory,
                                a->RequestDisk,
                                a->JobUniverse,
                                a->ShouldTransferFiles,
                                a->FileSystemDomain,
                                a->JobLeaseDuration,
                                a->ConcurrencyLimits,
                                a->JobCategory,
                                a->JobCategoryMax,
                                a->DapType,
                                a->AccountingGroup,
                                a->AcctGroup,
                                a->QOS,
                                a->ReservationId,
                                a->Meta,
                                a->CoAllocate,
                                a->PlacementPolicy,
                                a->AllowedExecuteDuration,
                                a->DeferralTime,
                                a->DeferralWindow,
                                a->GangSize,
                                a->GangWithin,
                                a->GangGroupBy,
                                a->WantParallelSchedulingGroups};
        const symbol conditions[] = {a->Requirements,  a->Rank,        a->RequestCpus,      a->DeferralTime,
                                     a->RequestMemory, a->RequestDisk, a->ConcurrencyLimits};
        struct expr_uses uses;
        size_t class_count;
        const symbol *class_names = credential_names(s->core, &class_count);

        for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
                names_add(s, fixed[i]);
        for (size_t i = 0; i < class_count; i++)
                names_add(s, class_names[i]);
        for (size_t i = 0; i < s->core->classes->significant_count; i++)
                names_add(s, s->core->classes->significant[i]);
        add_requests(s, ad);
        for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
                const struct expr *e = ad_find(ad, conditions[i]);

                if (e)
                        expr_references(e, ad, on_reference, s, &uses);
        }
}

bool job_class_is_per_member(struct core *c, struct job_template *t)
{
        struct names s = {.core = c};
        bool per_member;

        if (t->per_member_keyed == c->classes->keyed + 1)
                return t->per_member;
        collect(&s, t->ad);
        per_member = s.proc;
        for (size_t i = 0; i < s.n && !per_member; i++)
                per_member = find_late(t, s.v[i]) != NULL;
        for (size_t i = 0; i < t->late_count && !per_member; i++)
                per_member = amounts_requested(symbols_name(c->symbols, t->late[i].name)).n > 0;
        free(s.v);
        t->per_member_keyed = c->classes->keyed + 1;
        t->per_member = per_member;
        return per_member;
}

static struct ad *class_ad(struct core *c, const struct request *r, const struct part *p, uint32_t member)
{
        struct str user = str_of(request_owner(r)), name = user;
        struct ad *ad = ad_new(c->symbols);
        struct buf BUF_CLEANUP text = {.max = SUBMISSION_TEXT_MAX};
        size_t left = LATE_TEXT_MAX;

        if (str_find(user, '@') >= 0)
                name = str_head(user, (size_t)str_find(user, '@'));
        ad_set_parent(ad, p->job_template->ad);
        ad_set_string(ad, c->attr.Owner, name);
        ad_set_string(ad, c->attr.User, user);
        if (!p->job_template->late_class)
                return ad;
        for (size_t i = 0; i < p->job_template->late_count; i++) {
                const struct job_template_late *l = &p->job_template->late[i];

                buf_reset(&text);
                if (part_expand(c, r, p, member, l->text, &left, &text, NULL) != 0 ||
                    ad_set_text(ad, l->name, buf_view(&text), NULL) != 0)
                        ad_set_undefined(ad, l->name);
        }
        return ad;
}

static void add_key(struct core *c, struct buf *key, struct ad *ad, symbol name)
{
        const struct expr *e = ad_find(ad, name);

        if (!e)
                return;
        buf_str(key, symbols_name(c->symbols, name));
        buf_char(key, '=');
        expr_print(key, e, c->symbols);
        buf_char(key, '\n');
}

static int by_symbol(const void *a, const void *b)
{
        symbol x = *(const symbol *)a, y = *(const symbol *)b;

        return (x > y) - (x < y);
}

/* Makes the key, and removes late attributes that are not in it from the ad. Returns whether all jobs of the
 * template and the owner have it. */
static bool make_key(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                     struct ad *ad, struct buf *key)
{
        struct names s = {.core = c};

        collect(&s, ad);
        if (s.proc)
                ad_set_integer(ad, c->attr.ProcId, member);
        if (s.cluster) {
                ad_set_integer(ad, c->attr.ClusterId, (int64_t)r->id);
                ad_set_integer(ad, c->attr.QDate, r->submitted_ms / 1000);
        }
        names_add(&s, c->attr.User);
        if (s.n)
                qsort(s.v, s.n, sizeof(*s.v), by_symbol);
        for (size_t i = 0; i < s.n; i++)
                if (i == 0 || s.v[i] != s.v[i - 1])
                        add_key(c, key, ad, s.v[i]);
        if (p->job_template->late_class)
                for (size_t i = 0; i < p->job_template->late_count; i++) {
                        symbol name = p->job_template->late[i].name;

                        if (!bsearch(&name, s.v, s.n, sizeof(*s.v), by_symbol))
                                ad_remove(ad, name);
                }
        free(s.v);
        return !s.proc && !s.cluster;
}

/* A long key is replaced by its beginning and two keyed hashes, which users cannot choose. Otherwise each of
 * the thousand classes that a request may have could hold requirements of a MiB. */
#define CLASS_FREE 4096u /* bytes of a class that do not count in its kib: most classes are smaller */
#define KEY_MAX    2048u
#define KEY_STEP   16u /* bytes of a key that take as long as a step of an evaluation */

static void shorten_key(struct core *c, struct str owner, struct buf *key)
{
        uint64_t whole, rest;

        c->late_steps += key->n / KEY_STEP;
        if (key->n <= KEY_MAX)
                return;
        whole = map_hash(key->p, key->n);
        rest = map_hash(key->p + 1, key->n - 1);
        buf_truncate(key, KEY_MAX - 64);
        buf_printf(key, "...%llx %llx " STR_FMT, (unsigned long long)whole, (unsigned long long)rest,
                   STR_ARG(owner));
}

static bool literal_integer(const struct ad *ad, symbol name, int64_t missing, int64_t *ret)
{
        struct value v;

        *ret = missing;
        if (!ad_find(ad, name))
                return true;
        return ad_literal(ad, name, &v) && value_to_integer(&v, ret);
}

static bool before(const struct heap_node *x, const struct heap_node *y)
{
        return order_bucket_before(container_of(x, const struct bucket, node),
                                   container_of(y, const struct bucket, node));
}

#define SECONDS_MAX 9000000000000 /* far beyond any time; a thousand times as much does not overflow */

static void deferral_class_init(struct core *c, struct job_class *k)
{
        int64_t at = 0, window = 0;

        if (!item_integer(c, k->ad, c->attr.DeferralTime, &at) || at <= 0 || at > SECONDS_MAX)
                return;
        item_integer(c, k->ad, c->attr.DeferralWindow, &window);
        k->not_before_ms = at * 1000;
        k->missed_ms = INT64_MAX;
        if (window < SECONDS_MAX)
                k->missed_ms = (at + (window > 0 ? window : 0)) * 1000 + DEFERRAL_GRACE_MS;
        k->asleep = true;
        c->classes->deferred++;
}

static void deferral_class_deinit(struct core *c, struct job_class *k)
{
        if (k->not_before_ms)
                c->classes->deferred--;
}

static bool is_placed_apart(const struct job_class *k)
{
        return gang_class(k) || k->job_template->meta.wanted;
}

static void apart_class_init(struct core *c, struct job_class *k)
{
        if (!is_placed_apart(k))
                return;
        k->apart_next = c->classes->apart;
        if (k->apart_next)
                k->apart_next->apart_prev = k;
        c->classes->apart = k;
}

static void apart_class_deinit(struct core *c, struct job_class *k)
{
        if (!is_placed_apart(k))
                return;
        if (k->apart_next)
                k->apart_next->apart_prev = k->apart_prev;
        if (k->apart_prev)
                k->apart_prev->apart_next = k->apart_next;
        else
                c->classes->apart = k->apart_next;
}

/* Conditions besides attributes that separate a job from the class that its attributes give. */
struct class_extra {
        uint64_t labels;
        struct store_draws stores;
        bool leaks, lost;
};

static struct class_extra class_extra_of(struct core *c, const struct request *r, const struct part *p,
                                         uint32_t member)
{
        struct class_extra x = {.lost = r->id <= c->classes->lost_last, .stores = inputs_store_draws(c, p)};

        x.leaks = label_of(c, r, p, member, &x.labels, NULL) != 0;
        return x;
}

static bool class_extra_none(const struct class_extra *x, const struct part *p)
{
        return !x->labels && !x->leaks && !x->lost && !x->stores.read && !x->stores.read_into &&
               !x->stores.written && !x->stores.into && !p->claim_units;
}

static void class_extra_key(const struct class_extra *x, const struct part *p, struct buf *key)
{
        if (x->lost) /* core_lost: these wait, and new jobs like them do not */
                buf_addz(key, "lost\n");
        if (x->labels || x->leaks)
                buf_printf(key, "labels %llx%s\n", (unsigned long long)x->labels, x->leaks ? " leaks" : "");
        if (x->stores.read || x->stores.read_into || x->stores.written)
                buf_printf(key, "stores %llx %llx %u %u\n", (unsigned long long)x->stores.read,
                           (unsigned long long)x->stores.read_into, x->stores.into, x->stores.written);
        if (p->claim_units)
                buf_printf(key, "space %u %u %d %s\n", p->output_store, p->claim_units,
                           p->job_template->lot_act == LOT_RESERVE,
                           p->job_template->lot_name ? p->job_template->lot_name : "");
}

/* Returns the class that jobs of this template and owner had before; NULL: it is not known. */
static struct job_class *class_known(struct core *c, const struct request *r, const struct job_template *t)
{
        const struct class_known *at = classes_known_at(c->classes, t);

        return at->job_class && at->job_template == t && at->keyed == c->classes->keyed &&
                               strcmp(at->job_class->owner, request_owner(r)) == 0
                       ? at->job_class
                       : NULL;
}

static void class_forget(struct core *c, const struct job_class *k)
{
        for (size_t i = 0; i < 1 << CLASSES_KNOWN_BITS; i++)
                if (c->classes->known[i].job_class == k)
                        c->classes->known[i].job_class = NULL;
}

static struct job_class *class_make(struct core *c, const struct request *r, const struct part *p,
                                    struct ad *ad, const struct class_extra *x)
{
        const struct buf *key = &c->classes->key;
        const struct attributes *a = &c->attr;
        struct job_class *k;
        bool cpus, memory, disk;

        k = mem_new(struct job_class);
        k->users = 1;
        k->ad = ad = ad_trim(ad);
        k->job_template = p->job_template;
        k->job_template->refs++;
        k->buckets.before = before;
        k->owner = mem_dupz(request_owner(r));
        k->labels = x->labels;
        k->stores = x->stores.read;
        k->stores_into = x->stores.read_into;
        k->into = x->stores.into;
        k->written = x->stores.written;
        k->claim_store = p->output_store;
        k->claim_units = p->claim_units;
        k->places = ad_find(ad, a->DapType) != NULL;
        k->leaks = x->leaks;
        c->classes->leaks |= x->leaks;
        c->classes->reserving += k->job_template->reservation > 0;
        k->has_rank = ad_find(ad, a->Rank) != NULL;
        cpus = literal_integer(ad, a->RequestCpus, 1, &k->cpus);
        if (cpus && k->cpus == 0)
                k->cpus = 1; /* a late RequestCpus; see job_template.c */
        memory = literal_integer(ad, a->RequestMemory, 0, &k->memory_mib);
        disk = literal_integer(ad, a->RequestDisk, 0, &k->disk_kib);
        k->fixed = cpus && memory && disk;
        amounts_names(c->symbols, ad, &k->more);
        for (unsigned i = 0; i < k->more.count; i++)
                k->fixed &= literal_integer(ad, k->more.v[i].request, 0, &k->more.v[i].n);
        if (!literal_integer(ad, a->JobLeaseDuration, 0, &k->lease_ms) || k->lease_ms <= 0)
                k->lease_ms = c->config.lease_ms;
        else
                k->lease_ms *= 1000;
        k->kib = (uint32_t)((ad_bytes(ad) + key->n) / CLASS_FREE * (CLASS_FREE / 1024));
        charge_class_init(c, k);
        deferral_class_init(c, k);
        apart_class_init(c, k);
        map_put(c->classes->by_key, buf_view(key), k);
        k->key = map_key(c->classes->by_key, buf_view(key));
        index_class_add(c, k);
        return k;
}

static struct job_class *class_find_or_make(struct core *c, const struct request *r, const struct part *p,
                                            uint32_t member)
{
        struct class_extra x = class_extra_of(c, r, p, member);
        bool plain = !p->job_template->late_class && class_extra_none(&x, p);
        struct job_class *k = plain ? class_known(c, r, p->job_template) : NULL;
        struct buf *key = &c->classes->key;
        struct ad *ad;

        if (k) {
                k->users++;
                return k;
        }
        ad = class_ad(c, r, p, member);
        buf_reset(key);
        plain &= make_key(c, r, p, member, ad, key);
        class_extra_key(&x, p, key);
        shorten_key(c, str_of(request_owner(r)), key);
        k = map_get(c->classes->by_key, buf_view(key));
        if (k) {
                ad_free(ad);
                k->users++;
        } else {
                k = class_make(c, r, p, ad, &x);
        }
        if (plain)
                *classes_known_at(c->classes, p->job_template) =
                        (struct class_known){p->job_template, k, c->classes->keyed};
        return k;
}

struct job_class *job_class_get(struct core *c, const struct request *r, const struct part *p,
                                uint32_t member)
{
        struct symbols_use *before = job_template_names(c, p->job_template);
        struct job_class *k = class_find_or_make(c, r, p, member);

        symbols_use_set(c->symbols, before);
        return k;
}

void job_class_unref(struct core *c, struct job_class *k)
{
        if (!k || --k->users)
                return;
        assert(k->idle == 0 && k->dirty_at == 0);
        class_forget(c, k);
        index_class_drop(c, k);
        map_take(c->classes->by_key, k->key);
        c->classes->reserving -= k->job_template->reservation > 0;
        charge_class_deinit(c, k);
        deferral_class_deinit(c, k);
        apart_class_deinit(c, k);
        ad_free(k->ad);
        job_template_unref(c, k->job_template);
        heap_deinit(&k->buckets);
        free(k->owner);
        buf_deinit(&k->overrun_why);
        free(k);
}

void job_class_bucket_moved(struct core *c, struct bucket *b)
{
        if (!b->job_class || b->node.place == 0)
                return;
        heap_moved(&b->job_class->buckets, &b->node);
        order_class_changed(c, b->job_class);
}

void job_class_bucket_filled(struct core *c, struct bucket *b, uint64_t more)
{
        struct job_class *k = b->job_class;

        if (!k || more == 0)
                return;
        if (b->node.place == 0) {
                heap_put(&k->buckets, &b->node);
                c->classes->buckets_filled++;
        }
        k->idle += more;
        c->classes->leaks |= k->leaks;
        if (k->idle == more) {
                job_class_look_again(c, k);
                order_class_ready(c, k);
                c->listeners.class_ready(c, k);
        }
        /* A gang may be complete now; and a member behind those that wait for a better place need not wait
         * too. */
        if (gang_class(k) || k->passed_over)
                job_class_look_again(c, k);
        order_class_changed(c, k);
}

void job_class_bucket_drained(struct core *c, struct bucket *b, uint64_t fewer)
{
        struct job_class *k = b->job_class;

        if (!k || fewer == 0)
                return;
        assert(k->idle >= fewer);
        k->idle -= fewer;
        if (k->passed_over)
                job_class_look_again(c, k);
        if (set_count(&b->idle) > 0)
                return;
        heap_take(&k->buckets, &b->node);
        if (k->idle == 0) {
                job_class_look_no_more(c, k);
                order_class_gone(c, k);
                c->listeners.class_gone(c, k);
        }
        order_class_changed(c, k);
}

bool core_rekey_slice(struct core *c)
{
        uint32_t budget = c->config.rekey_slice * SPLIT_CLASS;

        while (budget > 0 && (c->classes->rekeying || c->classes->rekey_next)) {
                struct request *r = c->classes->rekey_next;

                if (!c->classes->rekeying) {
                        c->classes->rekey_next = r->next;
                        if (!request_ended(r))
                                c->classes->rekeying = split_new(c, r, 0);
                } else if (!split_some(c->classes->rekeying, &budget)) {
                        split_end(c->classes->rekeying);
                        c->classes->rekeying = NULL;
                }
        }
        return c->classes->rekeying || c->classes->rekey_next;
}

void core_rekey(struct core *c)
{
        split_free(c->classes->rekeying);
        c->classes->rekeying = NULL;
        c->classes->keyed++;
        c->classes->rekey_next = c->requests->first;
        c->listeners.rekeyed(c);
        core_rekey_slice(c);
}

bool job_class_is_lost(const struct core *c, const struct job_class *k)
{
        if (c->classes->lost_until_ms <= c->steady_ms)
                return false;
        for (size_t i = 0; i < k->buckets.count; i++)
                if (container_of(k->buckets.nodes[i], struct bucket, node)->request->id <=
                    c->classes->lost_last)
                        return true;
        return false;
}

struct classes *classes_new(void)
{
        struct classes *all = mem_new(struct classes);

        all->by_key = map_new();
        return all;
}

void classes_free(struct classes *all)
{
        if (!all)
                return;
        map_free(all->by_key);
        free(all->significant);
        buf_deinit(&all->key);
        free(all);
}
