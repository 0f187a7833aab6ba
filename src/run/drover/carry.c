/* Credentials of jobs, on their way to the far server.
 *
 * They are not part of the submission, which is written to a file: they follow it, request by request, and
 * the jobs there wait for them. After a restart the agent gives them again. */
#include <errno.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/url.h"
#include "run/drover/private.h"

static void refused(struct far_request *r, int status, struct str body)
{
        BUF_CLEANUP struct buf why = {0};
        if (status == 404) /* the request is over */
                return;
        far_error(&why, status, body);
        for (size_t i = 0; i < r->count; i++) {
                struct far_task *t = r->tasks[i];
                if (!t || t->state != FAR_IN)
                        continue;
                if (t->begun) {
                        log_warn("msg=\"a job's new credential is refused by the other server\" queue=%s "
                                 "job=%llu.%u name=%s why=\"%s\"",
                                 r->far->queue, (unsigned long long)t->id.request, t->id.member,
                                 r->carrying->name, LOG_TEXT(buf_view(&why)));
                        continue;
                }
                far_act(t, FAR_REMOVE);
                far_fail(t, "credential", EREMOTEIO, buf_z(&why));
        }
}

static void on_carried(void *arg, int status, struct str body, const struct err *err)
{
        struct far_request *r = arg;
        struct far *f = r->far;
        r->call = NULL;
        if (status <= 0 || far_later(status)) {
                r->carrying->fresh = true;
                r->not_before_ms = clock_boot_ms() + 1000;
                if (status <= 0)
                        far_away(f, err->text);
        } else if (status / 100 != 2) {
                refused(r, status, body);
        }
        timer_start(f->later, 0);
}

void far_carry(struct far_request *r)
{
        struct far_credential *c = r->credentials;
        while (c && !c->fresh)
                c = c->next;
        if (!c || r->call || r->lease_over)
                return;
        BUF_CLEANUP struct buf path = {0};
        SECRET_CLEANUP struct buf body = {0};
        struct json j = {.out = &body};
        buf_printf(&path, "/v1/requests/%llu/credentials/", (unsigned long long)r->number);
        url_escape(&path, str_of(c->name));
        json_open(&j, '{');
        json_kstrz(&j, "type", c->type);
        json_kstr(&j, "data", buf_view(&c->data));
        json_close(&j, '}');
        const struct http_call_spec spec = {
                .method = "PUT", .path = buf_z(&path), .body = buf_view(&body), .timeout_ms = 60000};
        c->fresh = false;
        r->carrying = c;
        r->call = http_client_call(r->far->client, &spec, on_carried, r);
}
