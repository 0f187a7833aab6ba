/* GET /v1/series: samples of the queue over the last day. */
#include "server/metrics/series.h"
#include "server/api/routes.h"
#include "server/metrics/metrics.h"

static void write_sample(struct json *j, const struct series_sample *x)
{
        json_open(j, '{');
        json_kint(j, "at_ms", x->at_ms);
        json_kint(j, "idle", (int64_t)x->idle);
        json_kint(j, "running", (int64_t)x->running);
        json_kint(j, "held", (int64_t)x->held);
        json_kint(j, "submitted", (int64_t)x->submitted);
        json_kint(j, "matched", (int64_t)x->matched);
        json_kint(j, "ended", (int64_t)x->ended);
        json_key(j, "eta_error_ms");
        if (x->eta_error_ms >= 0)
                json_int(j, x->eta_error_ms);
        else
                json_null(j);
        json_close(j, '}');
}

static void read_series(struct server *s, struct call *c)
{
        const struct series *series = metrics_series(s->metrics);
        const uint64_t *since_ms = c->state;
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_kint(&j, "every_ms", SERIES_EVERY_MS);
        json_key(&j, "samples");
        json_open(&j, '[');
        for (size_t i = 0; i < series_count(series); i++)
                if (series_at(series, i)->at_ms > (int64_t)*since_ms)
                        write_sample(&j, series_at(series, i));
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

void api_series(struct server *s, struct call *c)
{
        uint64_t *since_ms = call_state(c, sizeof(*since_ms), NULL);

        (void)s;
        if (call_number(c, "since_ms", INT64_MAX, since_ms))
                call_core(c, read_series);
}
