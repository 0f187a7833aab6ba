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

/* Run time assumed for the order of an owner's jobs, if the job does not state one: an hour. */
#define UNSAID_MS          3600000

#define TEMPLATE_BYTES_MAX (32u << 20) /* a one-letter operator takes up to 48 bytes */

static void make_key(struct buf *out, const struct submission_part *p)
{
        for (size_t i = 0; i < p->attribute_count; i++) {
                buf_str(out, p->attributes[i].name);
                buf_char(out, p->attributes[i].late ? '~' : '=');
                buf_str(out, p->attributes[i].text);
                buf_char(out, '\0');
        }
        for (size_t i = 0; i < p->variable_count; i++) {
                buf_char(out, '\1');
                buf_str(out, p->variables[i]);
        }
}

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

static int read_attribute(struct core *c, struct job_template *t, const struct submission_attribute *a,
                          struct err *err)
{
        struct err why;
        uint32_t spelling;
        symbol name;

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
        if (!c->replaying && ad_bytes(t->ad) > TEMPLATE_BYTES_MAX)
                return err_set(err, -EINVAL,
                               STR_FMT ": the expressions of one job take more than %u MiB: make them "
                                       "shorter, or write long lists as texts",
                               STR_ARG(a->name), TEMPLATE_BYTES_MAX >> 20);
        return 0;
}

static int job_template_read_attributes(struct core *c, struct job_template *t,
                                        const struct submission_part *p, struct err *err)
{
        struct amounts more;
        struct value cpus;
        double n;
        int rc = 0;

        t->ad = ad_new(c->symbols);
        for (size_t i = 0; rc == 0 && i < p->attribute_count; i++)
                rc = read_attribute(c, t, &p->attributes[i], err);
        if (rc != 0)
                return rc;
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

int job_template_get(struct core *c, const struct submission_part *p, struct str owner,
                     struct job_template **ret, struct err *err)
{
        struct buf BUF_CLEANUP key = {0};
        struct symbols_use *before;
        struct job_template *t;
        int rc;

        make_key(&key, p);
        t = map_get(c->templates, buf_view(&key));
        if (t) {
                t->refs++;
                *ret = t;
                return 0;
        }
        t = mem_new(struct job_template);
        t->refs = 1;
        t->names = symbols_use_new(c->symbols, owner);
        if (!c->replaying) /* a replay must not refuse what a submit accepted */
                symbols_use_limit(t->names, c->config.names_max);
        before = job_template_names(c, t);
        rc = job_template_read_attributes(c, t, p, err);
        if (rc == 0)
                look_at_attributes(c, t);
        symbols_use_set(c->symbols, before);
        symbols_use_limit(t->names, c->config.names_max);
        if (rc != 0) {
                job_template_unref(c, t);
                return rc;
        }
        t->key = str_make(mem_dup(key.p, key.n), key.n);
        map_put(c->templates, t->key, t);
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

/* Reads a key back into a part: a key holds all that a template is made from (make_key). */
static void read_key(struct str key, struct submission_part *p)
{
        struct str entry;

        while (key.n && key.p[0] != '\1' && str_cut(&key, '\0', &entry)) {
                size_t n = 0;

                while (n < entry.n && entry.p[n] != '=' && entry.p[n] != '~')
                        n++;
                submission_add_attribute(p, str_head(entry, n), str_skip(entry, n + 1),
                                         n < entry.n && entry.p[n] == '~');
        }
        for (key = str_skip(key, 1); key.n && str_cut(&key, '\1', &entry);)
                submission_add_variable(p, entry);
}

int job_template_edit(struct core *c, const struct job_template *from, struct str changes, struct str owner,
                      struct job_template **ret, struct err *err)
{
        struct submission s = {0};
        struct submission_part *p = submission_add_part(&s);
        struct submission_attribute a, *had;
        int rc;

        read_key(from->key, p);
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
        if (!t || --t->refs)
                return;
        if (t->key.p)
                map_take(c->templates, t->key);
        for (size_t i = 0; i < t->late_count; i++)
                free((char *)t->late[i].text.p);
        free(t->late);
        free(t->lot_name);
        free(t->fills);
        for (size_t i = 0; i < t->variable_count; i++)
                free(t->variables[i]);
        free(t->variables);
        ad_free(t->ad);
        symbols_use_free(t->names);
        free((char *)t->key.p);
        free(t);
}

struct str job_template_late_text(const struct job_template *t, symbol name)
{
        for (size_t i = 0; i < t->late_count; i++)
                if (t->late[i].name == name)
                        return t->late[i].text;
        return STR_NONE;
}
