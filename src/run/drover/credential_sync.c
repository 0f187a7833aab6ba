/* Sends credentials of jobs to the other server.
 *
 * Credentials are not part of the submission, which is written to a file: they are sent after it, request by
 * request, and the jobs there wait for them. After a restart the agent supplies them again.
 */
#include <errno.h>

#include "base/format/json.h"
#include "base/format/url.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/system/secret.h"
#include "run/drover/acts.h"
#include "run/drover/answers.h"
#include "run/drover/credential_sync.h"
#include "run/drover/credentials.h"
#include "run/drover/link.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

static void credential_sync_refused(struct remote_request *r, int status, struct str body)
{
        BUF_CLEANUP struct buf why = {0};

        if (status == 404) /* the request has ended */
                return;
        remote_error(&why, status, body);
        for (size_t i = 0; i < r->count; i++) {
                struct remote_task *t = r->tasks[i];

                if (!t || t->state != REMOTE_IN)
                        continue;
                if (t->begun) {
                        log_warn("msg=\"a job's new credential is refused by the other server\" queue=%s "
                                 "job=%llu.%u name=%s why=\"%s\"",
                                 r->remote->queue, (unsigned long long)t->id.request, t->id.member,
                                 r->syncing->name, LOG_TEXT(buf_view(&why)));
                        continue;
                }
                remote_act(t, REMOTE_REMOVE);
                remote_fail(t, "credential", EREMOTEIO, buf_z(&why));
        }
}

static void on_synced(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_request *r = arg;
        struct remote *f = r->remote;

        r->call = NULL;
        if (status <= 0 || remote_later(status)) {
                r->syncing->fresh = true;
                r->not_before_ms = clock_boot_ms() + 1000;
                if (status <= 0)
                        remote_unreachable(f, err->text);
        } else if (status / 100 != 2) {
                credential_sync_refused(r, status, body);
        }
        timer_start(f->later, 0);
}

void remote_credential_sync(struct remote_request *r)
{
        struct remote_credential *c = r->credentials;

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
        r->syncing = c;
        r->call = http_client_call(r->remote->client, &spec, on_synced, r);
}
