#include "server/api/explain/place.h"

#include <math.h>

#include "core/query.h"
#include "server/api/explain/dataset_wait.h"
#include "server/loop/words.h"

static const struct {
        const char *verdict, *side, *text;
} verdicts[CORE_VERDICTS] = {
        [CORE_FITS] = {"fits", NULL, "it fits, and has room now"},
        [CORE_BUSY] = {"busy", NULL, "it would take the job, but has no room now"},
        [CORE_JOB_REFUSES] = {"refuses", "job", NULL},
        [CORE_QUEUE_REFUSES] = {"refuses", "agent", NULL},
        [CORE_OWNER_REFUSED] = {"refuses", "agent", "it does not run this owner's jobs"},
        [CORE_AWAY] = {"refuses", "agent", "it is away"},
        [CORE_NOT_OFFERING] = {"refuses", "agent", "its policy takes no jobs now"},
        [CORE_NOT_CLEARED] = {"refuses", "server", NULL},
        [CORE_UNREACHABLE] = {"unreachable", "agent", NULL},
        [CORE_STORE_DOWN] = {"store down", "agent", NULL},
};

/* Returns the resource of which a request asks for more than the queue has (TARGET.RESOURCE >=
 * RequestRESOURCE). */
static struct str scarce_resource(const struct core_why *w)
{
        const struct str target = STR("TARGET."), request = STR(">= Request");
        struct str rest = w->clause, name;

        if (w->verdict != CORE_JOB_REFUSES || !str_starts(rest, target))
                return STR_NONE;
        rest = str_skip(rest, target.n);
        if (!str_cut(&rest, ' ', &name) || !str_starts(rest, request) ||
            !str_eq(str_skip(rest, request.n), name))
                return STR_NONE;
        return name;
}

static void say_scarce(struct buf *out, struct str name, bool none)
{
        static const struct {
                const char *name, *few;
        } known[] = {{"Cpus", "fewer processors"},
                     {"GPUs", "fewer GPUs"},
                     {"Memory", "less memory"},
                     {"Disk", "less disk space"}};

        if (none) {
                buf_printf(out, "this queue has no " STR_FMT, STR_ARG(name));
                return;
        }
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (str_ieq(name, str_of(known[i].name))) {
                        buf_printf(out, "this queue has %s than the job asks for", known[i].few);
                        return;
                }
        buf_printf(out, "this queue has less " STR_FMT " than the job asks for", STR_ARG(name));
}

static void write_words(struct json *j, const struct core_why *w)
{
        BUF_CLEANUP struct buf b = {0}, hosts = {0};

        if ((w->verdict == CORE_OWNER_REFUSED || w->verdict == CORE_NOT_OFFERING) && w->value.n)
                buf_str(&b, w->value);
        else if (w->verdict == CORE_NOT_CLEARED)
                buf_printf(&b, "not cleared for label " STR_FMT, STR_ARG(w->value));
        else if (w->verdict == CORE_UNREACHABLE)
                buf_str(&b, w->value);
        else if (w->verdict == CORE_STORE_DOWN) {
                buf_printf(&b, "store " STR_FMT " has not answered it since ", STR_ARG(w->clause));
                words_time(&b, w->since_ms);
                buf_printf(&b, ": " STR_FMT, STR_ARG(w->value));
        } else if (verdicts[w->verdict].text)
                buf_addz(&b, verdicts[w->verdict].text);
        else if (w->verdict == CORE_JOB_REFUSES && dataset_wait_hosts(w->clause, &hosts))
                buf_printf(&b, "the job's files are on the disk of host " STR_FMT, STR_ARG(buf_view(&hosts)));
        else if (scarce_resource(w).n)
                say_scarce(&b, scarce_resource(w), str_eqz(w->value, "undefined"));
        else
                buf_printf(&b, "%s requires " STR_FMT ", which is " STR_FMT,
                           w->verdict == CORE_JOB_REFUSES ? "the job" : "the queue", STR_ARG(w->clause),
                           STR_ARG(w->value));
        json_kstr(j, "text", buf_view(&b));
}

static void write_cost(struct json *j, const struct core_cost *c)
{
        json_key(j, "cost");
        json_open(j, '{');
        json_kint(j, "wait_ms", c->wait_ms);
        json_kint(j, "link_ms", c->link_ms);
        json_kint(j, "fetch_ms", c->fetch_ms);
        json_kint(j, "image_ms", c->image_ms);
        json_kint(j, "environment_ms", c->environment_ms);
        json_kint(j, "run_ms", c->run_ms);
        json_kbool(j, "run_known", c->run_known);
        json_kint(j, "send_ms", c->send_ms);
        json_kint(j, "price_ms", c->price_ms);
        json_kint(j, "total_ms", c->total_ms);
        json_kint(j, "bytes_in", (int64_t)c->bytes_in);
        json_kint(j, "bytes_held", (int64_t)c->bytes_held);
        json_kint(j, "bytes_out", (int64_t)c->bytes_out);
        json_kint(j, "unsized", c->unsized);
        json_key(j, "price");
        json_double(j, c->price);
        json_close(j, '}');
}

/* A number that JSON has none for becomes null. */
static void write_number(struct json *j, const char *key, double v)
{
        json_key(j, key);
        if (isfinite(v))
                json_double(j, v);
        else
                json_null(j);
}

static void write_policies(struct json *j, const struct core_why *w)
{
        json_kstrz(j, "policy", core_placement_name(w->policy));
        write_number(j, "rank", w->rank);
        json_kint(j, "turn", (int64_t)w->turn);
        json_key(j, "policies");
        json_open(j, '{');
        for (int i = 0; i < CORE_PLACEMENTS; i++)
                write_number(j, core_placement_name((enum core_placement)i), w->costs[i]);
        json_close(j, '}');
}

void place_write(struct json *j, const struct core_why *w, const char *text)
{
        json_kstrz(j, "name", w->agent);
        json_kstrz(j, "queue", w->queue);
        json_kstrz(j, "verdict", verdicts[w->verdict].verdict);
        if (verdicts[w->verdict].side)
                json_kstrz(j, "side", verdicts[w->verdict].side);
        if (w->verdict == CORE_STORE_DOWN) {
                json_kstr(j, "store", w->clause);
                json_kint(j, "since_ms", w->since_ms);
        } else if (w->clause.n) {
                json_kstr(j, "clause", w->clause);
                json_kstr(j, "value", w->value);
        }
        if (text)
                json_kstrz(j, "text", text);
        else
                write_words(j, w);
        if (w->verdict == CORE_FITS || w->verdict == CORE_BUSY)
                write_cost(j, &w->cost);
        if (w->verdict == CORE_FITS)
                write_policies(j, w);
}

void place_write_error(struct json *j, struct core *c)
{
        struct core_eta_error e;

        core_eta_error(c, &e);
        json_key(j, "eta_error");
        json_open(j, '{');
        json_kint(j, "count", (int64_t)e.count);
        json_kint(j, "median_ms", e.median_ms);
        if (e.ends >= 1) {
                json_kint(j, "runs", (int64_t)e.ends);
                json_kint(j, "runs_by_half", (int64_t)(100 * e.by_half + 0.5));
                json_kint(j, "runs_by_most", (int64_t)(100 * e.by_most + 0.5));
        }
        json_close(j, '}');
}
