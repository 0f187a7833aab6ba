#include "core/model/job_template.h"

#include <errno.h>
#include <math.h>

#include "base/job/match_macro.h"
#include "base/mem.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/gang_rule.h"
#include "core/model/meta_rule.h"
#include "core/model/submission.h"
#include "core/model/template_key.h"

/* Run time assumed for the order of an owner's jobs, if the job does not state one: an hour. */
#define UNSAID_MS          3600000

#define TEMPLATE_BYTES_MAX (32u << 20) /* a one-letter operator takes up to 48 bytes */

static bool name_ok(struct str s)
{
        if (s.n == 0 || s.n > 256 || (s.p[0] >= '0' && s.p[0] <= '9'))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!(s.p[i] == '_' || s.p[i] == '.' || (s.p[i] >= '0' && s.p[i] <= '9') ||
                      ((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'z')))
                        return false;
        return true;
}

static size_t lent_bytes(const struct job_template *t)
{
        return t->lender ? ad_bytes(t->lender->ad) : 0;
}

size_t job_template_bytes(const struct job_template *t)
{
        return sizeof(*t) + t->key.n + ad_bytes(t->ad);
}

size_t job_template_full_bytes(const struct job_template *t)
{
        return job_template_bytes(t) + (t->lender ? t->lender->key.n + lent_bytes(t) : 0);
}

static bool literal_is(const struct ad *ad, symbol name, bool want)
{
        struct value v;

        if (!ad_find(ad, name))
                return true;
        return ad_literal(ad, name, &v) && v.type == VALUE_BOOLEAN && v.boolean == want;
}

static bool job_template_is_late(const struct job_template *t, symbol name)
{
        for (size_t i = 0; i < t->late_count; i++)
                if (t->late[i].name == name)
                        return true;
        return false;
}

static void look_at_policies(struct core *c, struct job_template *t)
{
        const struct attributes *a = &c->attr;

        t->exit_policy = !literal_is(t->ad, a->OnExitHold, false) ||
                         !literal_is(t->ad, a->OnExitRemove, true) ||
                         job_template_is_late(t, a->OnExitHold) || job_template_is_late(t, a->OnExitRemove);
        t->periodic_policy =
                !literal_is(t->ad, a->PeriodicHold, false) || !literal_is(t->ad, a->PeriodicRelease, false) ||
                !literal_is(t->ad, a->PeriodicRemove, false) || job_template_is_late(t, a->PeriodicHold) ||
                job_template_is_late(t, a->PeriodicRelease) || job_template_is_late(t, a->PeriodicRemove) ||
                !literal_is(t->ad, a->PeriodicVacate, false) || job_template_is_late(t, a->PeriodicVacate) ||
                ad_find(t->ad, a->AllowedJobDuration) || job_template_is_late(t, a->AllowedJobDuration) ||
                job_template_is_late(t, a->AllowedExecuteDuration);
        t->leaves =
                !literal_is(t->ad, a->LeaveJobInQueue, false) || job_template_is_late(t, a->LeaveJobInQueue);
}

/* Records whether an attribute's text has references to the place; see fill.h. */
static void fill_learn(struct job_template *t, symbol name, struct str text)
{
        struct match_macro m;
        struct str before;
        enum match_macro_found found;

        if (!match_macro_present(text))
                return;
        t->fills = mem_array(t->fills, t->fill_count + 1, sizeof(*t->fills));
        t->fills[t->fill_count++] = name;
        while ((found = match_macro_next(&text, &before, &m)) == MATCH_MACRO_ONE)
                t->fills_vary |= m.expression.n > 0 || str_find(m.inside, '$') >= 0;
        t->fills_vary |= found == MATCH_MACRO_BAD;
}

/* `own`: its expression is not borrowed. */
static int read_attribute(struct core *c, struct job_template *t, const struct submission_attribute *a,
                          bool own, struct err *err)
{
        struct err why;
        uint32_t spelling;
        symbol name;

        if (!own) {
                fill_learn(t, symbols_find(c->symbols, a->name), a->text);
                return 0;
        }
        if (!name_ok(a->name))
                return err_set(err, -EINVAL, "\"" STR_FMT "\" is not an attribute name", STR_ARG(a->name));
        if (symbols_use_full(t->names) && !symbols_known(c->symbols, a->name))
                return err_set(err, -EINVAL,
                               STR_FMT ": you have more than %u attribute names of your own in use",
                               STR_ARG(a->name), c->config.names_max);
        name = symbols_intern(c->symbols, a->name);
        spelling = symbols_spelling(c->symbols, name, a->name);
        fill_learn(t, name, a->text);
        if (a->late) {
                t->late = mem_array(t->late, t->late_count + 1, sizeof(*t->late));
                t->late[t->late_count++] = (struct job_template_late){
                        name, spelling, str_make(mem_dup(a->text.p, a->text.n), a->text.n)};
        } else if (ad_set_text(t->ad, name, a->text, &why)) {
                return err_set(err, -EINVAL, STR_FMT ": %s", STR_ARG(a->name), why.text);
        } else {
                ad_set_spelling(t->ad, name, spelling);
        }
        if (!c->replaying && ad_bytes(t->ad) + lent_bytes(t) > TEMPLATE_BYTES_MAX)
                return err_set(err, -EINVAL,
                               STR_FMT ": the expressions of one job take more than %u MiB: make them "
                                       "shorter, or write long lists as texts",
                               STR_ARG(a->name), TEMPLATE_BYTES_MAX >> 20);
        return 0;
}

static bool has_late(const struct submission_part *p, const struct template_own *own)
{
        for (size_t i = 0; i < own->count; i++)
                if (p->attributes[own->at[i]].late)
                        return true;
        return false;
}

/* `own` has what is not borrowed; NULL: all. */
static int job_template_read_attributes(struct core *c, struct job_template *t,
                                        const struct submission_part *p, const struct template_own *own,
                                        struct err *err)
{
        struct amounts more;
        struct value cpus;
        size_t next = 0;
        double n;
        int rc = 0;

        t->ad = ad_new(c->symbols);
        if (t->lender) {
                ad_set_parent(t->ad, t->lender->ad);
                t->late_borrowed = !has_late(p, own);
        }
        if (t->late_borrowed) {
                t->late = t->lender->late;
                t->late_count = t->lender->late_count;
        }
        for (size_t i = 0; rc == 0 && i < p->attribute_count; i++) {
                const struct submission_attribute *a = &p->attributes[i];
                bool is_own = !own || (next < own->count && own->at[next] == i);

                next += is_own;
                rc = read_attribute(c, t, a, is_own || (a->late && !t->late_borrowed), err);
        }
        if (rc != 0)
                return rc;
        t->lends = !own && ad_count(t->ad) + t->late_count == p->attribute_count;
        if (!amounts_names(c->symbols, t->ad, &more))
                return err_set(
                        err, -EINVAL,
                        "a job can ask for at most %u kinds of resources besides Cpus, Memory and Disk",
                        AMOUNTS_MAX);
        /* HTCondor's slots do the same: quantize(RequestCpus, {1}). */
        if (ad_literal(t->ad, c->attr.RequestCpus, &cpus) && value_to_double(&cpus, &n) && n >= 0 && n < 1)
                ad_set_integer(t->ad, c->attr.RequestCpus, 1);
        /* A job without requirements goes wherever there is room for it. */
        if (!ad_find(t->ad, c->attr.Requirements) && !job_template_is_late(t, c->attr.Requirements))
                ad_set_boolean(t->ad, c->attr.Requirements, true);
        if (t->lender) {
                t->variables = t->lender->variables;
                t->variable_count = t->lender->variable_count;
                return 0;
        }
        if (p->variable_count)
                t->variables = mem_array(NULL, p->variable_count, sizeof(*t->variables));
        for (; t->variable_count < p->variable_count; t->variable_count++)
                t->variables[t->variable_count] = str_dupz(p->variables[t->variable_count]);
        return 0;
}

#define STEPS_MAX  10000      /* of the evaluations of all attributes together */
#define NUMBER_MAX 1000000000 /* largest number of seconds, megabytes or processors */

static int64_t read_number(struct core *c, const struct job_template *t, symbol name, int64_t otherwise)
{
        int64_t v = 0;

        if (!eval_integer(&c->eval, t->ad, NULL, name, &v) || v < 0 || v > NUMBER_MAX)
                return otherwise;
        return v;
}

/* Reads the author's statements about run time, outputs, waits and the choice of a place. */
static void read_estimates(struct core *c, struct job_template *t)
{
        enum core_placement placement;
        struct str policy;

        t->expected_ms = read_number(c, t, c->attr.ExpectedRunTime, 0) * 1000;
        t->allowed_ms = read_number(c, t, c->attr.AllowedExecuteDuration, 0) * 1000;
        t->long_ms = t->allowed_ms ? t->allowed_ms : t->expected_ms ? t->expected_ms : UNSAID_MS;
        if (c->config.placement == CORE_PLACE_FIFO)
                t->long_ms = 0;
        t->bytes_out_said = read_number(c, t, c->attr.TransferOutputSizeMB, -1);
        if (t->bytes_out_said > 0)
                t->bytes_out_said <<= 20;
        t->better_wait_ms = read_number(c, t, c->attr.BetterPlaceWait, -1);
        if (t->better_wait_ms > 0)
                t->better_wait_ms *= 1000;
        t->cpus = read_number(c, t, c->attr.RequestCpus, 1);
        t->placement = eval_string(&c->eval, t->ad, NULL, c->attr.PlacementPolicy, &policy) &&
                                       core_placement_of_job(policy, &placement) == 0
                               ? (int)placement
                               : -1;
        eval_real(&c->eval, t->ad, NULL, c->attr.PriceWeight, &t->price_weight);
        if (!isfinite(t->price_weight) || t->price_weight < 0)
                t->price_weight = 0; /* an expression may yield anything */
        eval_reset(&c->eval);
}

/* Reads what the job does with space of a store. */
static void read_lot(struct core *c, struct job_template *t)
{
        static const struct {
                const char *type;
                enum lot_act act;
        } acts[] = {{"transfer", LOT_COPY},   {"rm", LOT_REMOVE},     {"reserve", LOT_RESERVE},
                    {"release", LOT_RELEASE}, {"mkdir", LOT_NOTHING}, {"stage", LOT_NOTHING},
                    {"verify", LOT_NOTHING}};
        struct str text;

        if (eval_string(&c->eval, t->ad, NULL, c->attr.DapType, &text))
                for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++)
                        if (str_ieqz(text, acts[i].type))
                                t->lot_act = acts[i].act;
        if (eval_string(&c->eval, t->ad, NULL, c->attr.ReserveId, &text) && text.n)
                t->lot_name = str_dupz(text);
        t->lot_ms = read_number(c, t, c->attr.ReserveDuration, 0) * 1000;
        eval_reset(&c->eval);
}

/* Has expressions mean the same at each start of the server: a template says how many jobs start together,
 * and in which lot they write, of jobs that run meanwhile. So the time is none, random() begins anew, and
 * only steps are counted. Returns what was, for always_the_same_end. */
static struct eval always_the_same(struct core *c)
{
        const struct eval was = c->eval;

        c->eval.now_s = 0;
        c->eval.random = 0;
        c->eval.steps_max = STEPS_MAX;
        c->eval.clock_ns = NULL;
        eval_share(&c->eval);
        return was;
}

static void always_the_same_end(struct core *c, const struct eval *was)
{
        c->eval.now_s = was->now_s;
        c->eval.random = was->random;
        eval_share_end(&c->eval);
        c->eval.steps_max = was->steps_max;
        c->eval.clock_ns = was->clock_ns;
}

/* Computes once what is needed often. */
static void look_at_attributes(struct core *c, struct job_template *t)
{
        const struct attributes *a = &c->attr;
        const struct eval was = always_the_same(c);
        struct str text;

        look_at_policies(c, t);
        read_estimates(c, t);
        read_lot(c, t);
        t->checkpoints = ad_find(t->ad, a->CheckpointExitCode) ||
                         ad_find(t->ad, a->SuccessCheckpointExitCode) ||
                         ad_find(t->ad, a->SuccessCheckpointExitSignal);
        t->restarts = t->checkpoints || (eval_string(&c->eval, t->ad, NULL, a->WhenToTransferOutput, &text) &&
                                         str_ieqz(text, "ON_EXIT_OR_EVICT"));
        t->rerun_eager = eval_string(&c->eval, t->ad, NULL, a->RerunOnLost, &text) && str_ieqz(text, "eager");
        gang_rule_read(c, t);
        meta_rule_read(c, t);
        t->dependency_remove =
                eval_string(&c->eval, t->ad, NULL, a->OnDependencyFailure, &text) && str_ieqz(text, "remove");
        t->abort_stays = eval_string(&c->eval, t->ad, NULL, a->OnGraphAbort, &text) && str_ieqz(text, "stay");
        t->abort_code = (int32_t)read_number(c, t, a->AbortGraphOn, 0);
        t->reservation = (uint64_t)read_number(c, t, c->attr.ReservationId, 0);
        t->jobs_max = INT64_MAX;
        if (eval_integer(&c->eval, t->ad, NULL, a->JobMaterializeLimit, &t->jobs_max) && t->jobs_max < 1)
                t->jobs_max = 1;
        always_the_same_end(c, &was);
}

struct symbols_use *job_template_names(struct core *c, const struct job_template *t)
{
        return symbols_use_set(c->symbols, t ? t->names : NULL);
}

/* Returns the template that one of this shape can borrow from, and adds its key to `key`; NULL: none. What
 * borrows more than it has is worth the trouble. */
static struct job_template *find_lender(struct core *c, uint64_t shape, const struct submission_part *p,
                                        struct template_own *ret_own, struct buf *key)
{
        struct job_template *lender = idmap_get(c->lenders, shape);

        if (!lender || !template_key_compare(lender->key, p, ret_own) || 2 * ret_own->bytes > lender->key.n)
                return NULL;
        buf_reset(key);
        template_key_own(key, lender, p, ret_own);
        return lender;
}

static int job_template_make(struct core *c, struct job_template *t, const struct submission_part *p,
                             const struct template_own *own, struct err *err)
{
        struct symbols_use *before;
        int rc;

        if (!c->replaying) /* a replay must not refuse what a submit accepted */
                symbols_use_limit(t->names, c->config.names_max);
        before = job_template_names(c, t);
        rc = job_template_read_attributes(c, t, p, own, err);
        if (rc == 0) {
                t->ad = ad_trim(t->ad);
                look_at_attributes(c, t);
        }
        symbols_use_set(c->symbols, before);
        symbols_use_limit(t->names, c->config.names_max);
        return rc;
}

int job_template_get(struct core *c, const struct submission_part *p, struct str owner,
                     struct job_template **ret, struct err *err)
{
        struct buf BUF_CLEANUP key = {0};
        struct job_template *t = p->made, *lender = NULL;
        struct template_own own;
        uint64_t shape = 0;
        int rc;

        if (!t) {
                template_key_whole(&key, p);
                t = map_get(c->templates, buf_view(&key));
        }
        if (!t) {
                shape = template_key_shape(owner, p);
                lender = find_lender(c, shape, p, &own, &key);
                t = lender ? map_get(c->templates, buf_view(&key)) : NULL;
        }
        if (t) {
                t->refs++;
                *ret = t;
                return 0;
        }
        t = mem_new(struct job_template);
        *t = (struct job_template){.refs = 1, .lender = lender, .shape = shape};
        if (lender)
                lender->refs++;
        t->names = symbols_use_new(c->symbols, owner);
        rc = job_template_make(c, t, p, lender ? &own : NULL, err);
        if (rc != 0) {
                job_template_unref(c, t);
                return rc;
        }
        map_put(c->templates, buf_view(&key), t);
        t->key = map_key(c->templates, buf_view(&key));
        if (t->lends)
                idmap_put(c->lenders, shape, t); /* the next ones are more like this one */
        *ret = t;
        return 0;
}

static struct submission_attribute *find_attribute(struct submission_part *p, struct str name)
{
        for (size_t i = 0; i < p->attribute_count; i++)
                if (str_ieq(p->attributes[i].name, name))
                        return &p->attributes[i];
        return NULL;
}

int job_template_edit(struct core *c, const struct job_template *from, struct str changes, struct str owner,
                      struct job_template **ret, struct err *err)
{
        struct submission s = {0};
        struct submission_part *p = submission_add_part(&s);
        struct submission_attribute a, *had;
        int rc;

        template_key_read(from->lender ? from->lender->key : from->key, from->lender ? from->key : STR_NONE,
                          p);
        while (changes_next(&changes, &a)) {
                had = find_attribute(p, a.name);
                if (a.text.n && had)
                        *had = a;
                else if (a.text.n)
                        submission_add_attribute(p, a.name, a.text, a.late);
                else if (had)
                        memmove(had, had + 1,
                                (size_t)(p->attributes + p->attribute_count-- - had - 1) * sizeof(*had));
        }
        rc = p->attribute_count > SUBMISSION_ATTRIBUTES_MAX
                     ? err_set(err, -EINVAL, "a job has at most %u attributes", SUBMISSION_ATTRIBUTES_MAX)
                     : job_template_get(c, p, owner, ret, err);
        submission_deinit(&s);
        return rc;
}

void job_template_unref(struct core *c, struct job_template *t)
{
        struct class_known *known;

        if (!t || --t->refs)
                return;
        known = classes_known_at(c->classes, t);
        if (known->job_template == t)
                known->job_class = NULL;
        if (t->key.p)
                map_take(c->templates, t->key);
        if (idmap_get(c->lenders, t->shape) == t)
                idmap_take(c->lenders, t->shape);
        for (size_t i = 0; !t->late_borrowed && i < t->late_count; i++)
                free((char *)t->late[i].text.p);
        if (!t->late_borrowed)
                free(t->late);
        free(t->lot_name);
        free(t->fills);
        for (size_t i = 0; !t->lender && i < t->variable_count; i++)
                free(t->variables[i]);
        if (!t->lender)
                free(t->variables);
        ad_free(t->ad);
        symbols_use_free(t->names);
        job_template_unref(c, t->lender);
        free(t);
}

struct str job_template_late_text(const struct job_template *t, symbol name)
{
        for (size_t i = 0; i < t->late_count; i++)
                if (t->late[i].name == name)
                        return t->late[i].text;
        return STR_NONE;
}
