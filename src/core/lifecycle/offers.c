/* Handles connections of agents, and the offers of their queues. */
#include <errno.h>

#include "base/job/offer_limit.h"
#include "base/mem.h"
#include "core/classes/job_class.h"
#include "core/data/cost_class.h"
#include "core/data/data_state.h"
#include "core/data/label.h"
#include "core/data/space.h"
#include "core/estimate/estimate.h"
#include "core/gang/gang.h"
#include "core/index/index.h"
#include "core/lifecycle/leases.h"
#include "core/lifecycle/nodes.h"
#include "core/model/core_parts.h"
#include "core/model/cost_class.h"
#include "core/model/need.h"
#include "core/model/pending_match.h"

#define QUEUE_WAIT_MAX_S 31536000 /* longer waits are not believed */

static void queue_unpark(struct core *c, struct queue *q)
{
        q->offers = false;
        index_queue_changed(c, q);
}

static void ad_is(struct core *c, struct queue *q, struct ad *ad, size_t bytes)
{
        ad_set_string(ad, c->attr.AgentName, str_of(q->agent->name)); /* whatever the ad says */
        ad_free(q->ad);
        q->ad = ad;
        q->agent->ad_bytes += bytes - q->ad_bytes;
        q->ad_bytes = bytes;
}

/* Withdraws the queue's offer and forgets its contents. */
static void queue_empty(struct core *c, struct queue *q)
{
        struct ad *ad = ad_new(c->symbols);

        ad_set_string(ad, c->attr.QueueName, str_of(q->name));
        ad_set_boolean(ad, c->attr.Requirements, false);
        ad_is(c, q, ad, 0);
        owners_deinit(&q->owners);
        owners_add(&q->owners, OWNERS_NOBODY);
        free(q->closed);
        free(q->unreachable);
        q->closed = q->unreachable = NULL;
        q->cpus = q->memory_mib = q->disk_kib = q->total_cpus = q->total_memory_mib = 0;
        q->offers = false;
        cost_class_update(c, q);
        index_queue_shown(c, q);
        index_queue_changed(c, q);
}

void core_agent_connected(struct core *c, const char *agent)
{
        struct core_agent *a = agent_get(c, str_of(agent));

        a->connected = true;
        for (struct queue *q = a->queues; q; q = q->next) {
                if (q->idle_session && q->ad && !q->attempts)
                        queue_empty(c, q);
                q->idle_session = true;
        }
        links_forget_down(c, a);
        core_renew(c, agent);
        nodes_connected(c, a);
}

void core_agent_labels(struct core *c, const char *agent, struct str labels)
{
        struct core_agent *a = agent_get(c, str_of(agent));

        free(a->labels);
        a->labels = labels.n ? str_dupz(labels) : NULL;
        a->cleared = label_cleared(c, a->name);
}

bool core_agent_known(struct core *c, const char *agent)
{
        return agent_find(c, agent) != NULL;
}

void core_agent_away(struct core *c, const char *agent)
{
        struct core_agent *a = agent_find(c, agent);

        if (!a)
                return;
        a->connected = false;
        space_agent_away(c, a);
        c->nodes.look_ms = 0;
        c->leases->due_ms = 0; /* leases of eager jobs there end earlier while the agent is away */
        for (struct queue *q = a->queues; q; q = q->next)
                queue_unpark(c, q);
        gang_agent_away(c, a);
}

static void on_target(void *arg, symbol name, bool target)
{
        struct core *c = arg;

        if (!target)
                return;
        for (size_t i = 0; i < c->classes->significant_count; i++)
                if (c->classes->significant[i] == name)
                        return;
        MEM_GROW(c->classes->significant, c->classes->significant_cap, c->classes->significant_count + 1);
        c->classes->significant[c->classes->significant_count++] = name;
}

struct job_specific {
        const struct attributes *attr;
        bool found;
};

static void on_job_specific(void *arg, symbol name, bool target)
{
        struct job_specific *s = arg;
        const struct attributes *a = s->attr;

        if (target && (name == a->ProcId || name == a->ClusterId || name == a->QDate ||
                       name == a->GlobalJobId || name == a->NumJobStarts || name == a->JobRunCount ||
                       name == a->NumShadowStarts || name == a->JobPrio || name == a->JobStatus))
                s->found = true;
}

/* Makes attributes significant that the queue's conditions refer to in jobs' ads. If a condition refers to an
 * attribute that differs from job to job, the queue is job-specific instead: the condition is evaluated for a
 * single job before dispatch. */
static void learn_references(struct core *c, struct queue *q)
{
        const symbol conditions[] = {c->attr.Requirements, c->attr.Rank};
        size_t before = c->classes->significant_count;
        struct job_specific specific = {.attr = &c->attr};
        struct expr_uses uses;

        q->has_rank = ad_find(q->ad, c->attr.Rank) != NULL;
        for (size_t i = 0; i < 2; i++) {
                const struct expr *e = ad_find(q->ad, conditions[i]);

                if (!e)
                        continue;
                expr_references(e, q->ad, on_job_specific, &specific, &uses);
                if (!specific.found)
                        expr_references(e, q->ad, on_target, c, &uses);
        }
        q->job_specific = specific.found;
        if (c->classes->significant_count != before)
                core_rekey(c);
}

static void default_string(struct core *c, struct ad *ad, symbol name, struct str value)
{
        (void)c;
        if (value.n && !ad_find(ad, name))
                ad_set_string(ad, name, value);
}

static int64_t number_of(struct core *c, const struct ad *ad, symbol name)
{
        int64_t v = 0;

        eval_integer(&c->eval, ad, NULL, name, &v);
        return v < 0 ? 0 : v > OFFERED_MAX ? OFFERED_MAX : v;
}

/* 0 if the attribute is missing, or negative, infinite or NaN. */
static double real_of(struct core *c, const struct ad *ad, symbol name)
{
        double v = 0;

        eval_real(&c->eval, ad, NULL, name, &v);
        return v > 0 && v <= (double)OFFERED_MAX ? v : 0;
}

static unsigned order_of(struct core *c, const struct ad *ad)
{
        int64_t v = SEARCH_ORDER_NONE;

        eval_integer(&c->eval, ad, NULL, c->attr.SearchOrder, &v);
        return v >= 0 && v < SEARCH_ORDER_NONE ? (unsigned)v : SEARCH_ORDER_NONE;
}

static void set_owners(struct queue *q, const struct core_offer *o)
{
        owners_deinit(&q->owners);
        for (size_t i = 0; i < o->owner_count; i++)
                owners_add(&q->owners, o->owners[i]);
}

/* Reduces the ad's Tags to those that are in the list. */
static void cut_tags(struct core *c, struct ad *ad, struct str tags)
{
        symbol name = symbols_intern(c->symbols, STR("Tags")),
               one = symbols_intern(c->symbols, STR("DroverTag"));
        BUF_CLEANUP struct buf text = {0}, ask = {0};
        struct str tag;
        bool is;

        buf_addz(&text, "{");
        while (tags.n && str_cut(&tags, ',', &tag)) {
                tag = str_trim(tag);
                buf_reset(&ask);
                buf_printf(&ask, "member(\"" STR_FMT "\", Tags)", STR_ARG(tag));
                is = false;
                if (ad_set_text(ad, one, buf_view(&ask), NULL) == 0 &&
                    eval_boolean(&c->eval, ad, NULL, one, &is) && is)
                        buf_printf(&text, "%s\"" STR_FMT "\"", text.n > 1 ? ", " : "", STR_ARG(tag));
        }
        buf_addz(&text, "}");
        ad_remove(ad, one);
        ad_set_text(ad, name, buf_view(&text), NULL);
        eval_reset(&c->eval);
}

/* A value that is no number becomes the limit: it may be another one for each job. */
static void cut_number(struct core *c, struct ad *ad, symbol name, int64_t most)
{
        BUF_CLEANUP struct buf text = {0};
        int64_t value = most;
        double real;

        if (!ad_find(ad, name))
                return;
        if (!eval_integer(&c->eval, ad, NULL, name, &value) && eval_real(&c->eval, ad, NULL, name, &real))
                value = real < 0 ? 0 : real < (double)most ? (int64_t)real : most;
        buf_printf(&text, "%lld", (long long)(value < most ? value : most));
        ad_set_text(ad, name, buf_view(&text), NULL);
        eval_reset(&c->eval);
}

/* Reduces numbers of the ad, and the totals of the same name, to the limits. */
static void cut_numbers(struct core *c, struct ad *ad, struct str most)
{
        struct offer_limit one;

        while (offer_limit_next(&most, &one) == 0) {
                BUF_CLEANUP struct buf total = {0};

                buf_printf(&total, "Total" STR_FMT, STR_ARG(one.name));
                cut_number(c, ad, symbols_intern(c->symbols, one.name), one.most);
                cut_number(c, ad, symbols_intern(c->symbols, buf_view(&total)), one.most);
        }
}

/* Counts the attribute names of this ad that no one has used before. */
static uint32_t names_new(const struct core *c, struct str text)
{
        struct symbols *own = symbols_new();
        uint32_t n = 0;
        struct ad *ad;

        if (ad_parse(own, text, CLASSAD_NEW, &ad, NULL) == 0)
                ad_free(ad);
        for (symbol s = 1; s <= symbols_count(own); s++)
                n += !symbols_known(c->symbols, symbols_name(own, s));
        symbols_free(own);
        return n;
}

/* Checks the offer against the agent's limits. Returns 0, or CORE_INVALID with err. */
static int offer_room(const struct core *c, const struct core_agent *a, const struct core_offer *o,
                      struct err *err)
{
        const struct queue *q = a->queues;

        while (q && !str_eqz(str_of(o->queue), q->name))
                q = q->next;
        if (!q && a->queue_count >= CORE_QUEUES_MAX)
                return err_set(err, CORE_INVALID, "more than %u queues of one agent", CORE_QUEUES_MAX);
        if (o->ad.n > CORE_AD_BYTES_MAX)
                return err_set(err, CORE_INVALID, "the ad of the queue %s has more than %u bytes", o->queue,
                               CORE_AD_BYTES_MAX);
        if (a->ad_bytes - (q ? q->ad_bytes : 0) + o->ad.n > CORE_ADS_MAX)
                return err_set(err, CORE_INVALID, "the ads of one agent's queues have more than %u bytes",
                               CORE_ADS_MAX);
        if (a->names >= CORE_NAMES_MAX && names_new(c, o->ad) > 0)
                return err_set(err, CORE_INVALID,
                               "one agent's offers have brought more than %u names of attributes",
                               CORE_NAMES_MAX);
        return 0;
}

/* Closes the queue, since its ad takes too long to evaluate. */
static void close_unread(struct queue *q)
{
        BUF_CLEANUP struct buf why = {0};

        buf_printf(&why, "what its ad says takes more than %u steps to find out", CORE_EVAL_STEPS_MAX);
        free(q->closed);
        q->closed = mem_dupz(buf_z(&why));
}

int core_offer(struct core *c, const struct core_offer *o, struct err *err)
{
        struct core_agent *a = agent_get(c, str_of(o->agent));
        const struct attributes *at = &c->attr;
        const struct expr *requirements;
        struct symbols_use *before = symbols_use_set(c->symbols, symbols_use_keep(c->symbols));
        NODE_WORD_CLEANUP struct node_word word = {0};
        uint64_t overruns = c->eval.overruns;
        struct str away;
        uint32_t names = symbols_used(c->symbols);
        struct queue *q;
        struct ad *ad;
        bool unread;
        int r = offer_room(c, a, o, err);

        if (r == 0 && ad_parse(c->symbols, o->ad, CLASSAD_NEW, &ad, err))
                r = CORE_INVALID;
        symbols_use_set(c->symbols, before);
        a->names += symbols_used(c->symbols) - names;
        if (r)
                return r;
        q = queue_get(c, a, str_of(o->queue));
        q->idle_session = false;
        eval_share(&c->eval);
        if (o->tags.n)
                cut_tags(c, ad, o->tags);
        cut_numbers(c, ad, o->most);
        default_string(c, ad, at->FileSystemDomain, o->filesystem_domain);
        default_string(c, ad, at->Machine, o->hostname);
        default_string(c, ad, at->Name, str_of(a->name));
        default_string(c, ad, at->QueueName, str_of(q->name));
        default_string(c, ad, at->MyType, STR("Machine"));
        requirements = ad_find(ad, at->Requirements);
        if (!requirements)
                ad_set_boolean(ad, at->Requirements, true);
        ad_is(c, q, ad, o->ad.n);
        q->serial = o->serial;
        set_owners(q, o);
        memcpy(q->wishes, o->wishes, sizeof(q->wishes));
        q->refused_count = 0;
        /* The agent did not know of attempts that it has not accepted when it made the offer. */
        q->cpus = number_of(c, ad, at->Cpus) - q->taken_cpus;
        q->memory_mib = number_of(c, ad, at->Memory) - q->taken_memory_mib;
        q->disk_kib = number_of(c, ad, at->Disk) - q->taken_disk_kib;
        q->total_cpus = ad_find(ad, at->TotalCpus) ? number_of(c, ad, at->TotalCpus) : INT64_MAX;
        q->total_memory_mib = ad_find(ad, at->TotalMemory) ? number_of(c, ad, at->TotalMemory) : INT64_MAX;
        q->wait_s = real_of(c, ad, at->QueueWait);
        if (q->wait_s >= QUEUE_WAIT_MAX_S)
                q->wait_s = 0;
        q->begins_ms = q->wait_s > 0 ? c->now_ms + (int64_t)(q->wait_s * 1000) : 0;
        q->wait_unknown = false;
        eval_boolean(&c->eval, ad, NULL, at->QueueWaitUnknown, &q->wait_unknown);
        if (q->wait_unknown && !q->begins_ms) /* estimate for choosing a place: the mean run time of a job */
                q->wait_s = (double)c->estimates->everybody.run_ms / 1000;
        q->price = real_of(c, ad, at->Price);
        q->speed = real_of(c, ad, at->Speed);
        q->search_order = order_of(c, ad);
        free(q->unreachable);
        q->unreachable = eval_string(&c->eval, ad, NULL, at->Unreachable, &away) ? str_dupz(away) : NULL;
        node_word_read(c, ad, &word);
        free(q->closed);
        q->closed = o->closed                                               ? mem_dupz(o->closed)
                    : eval_string(&c->eval, ad, NULL, at->WhyClosed, &away) ? str_dupz(away)
                                                                            : mem_dupz(word.closes);
        need_read_resources(c, q);
        eval_share_end(&c->eval);
        unread = c->eval.overruns != overruns;
        if (unread)
                close_unread(q);
        learn_references(c, q);
        queue_mark_alone(c, q);
        nodes_offered(c, a, &word);
        cost_class_update(c, q);
        if (q->taken_jobs || q->cpus > q->total_cpus || q->memory_mib > q->total_memory_mib)
                queue_show_free(c, q);
        eval_reset(&c->eval);
        q->jobs_left = o->jobs_max > q->taken_jobs ? o->jobs_max - q->taken_jobs : 0;
        q->offers = a->connected && o->jobs_max > 0 && !o->closed && !word.closes && !unread;
        index_queue_shown(c, q);
        index_queue_changed(c, q);
        if (q->offers && q->jobs_left > 0)
                queue_look_again(c, q);
        return 0;
}

void core_withdraw(struct core *c, const char *agent, const char *queue)
{
        struct core_agent *a = agent_find(c, agent);

        for (struct queue *q = a ? a->queues : NULL; q; q = q->next)
                if (str_eqz(str_of(queue), q->name))
                        queue_unpark(c, q);
}
