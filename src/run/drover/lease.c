/* The leases of requests: each is renewed once for each time that the agent's was. */
#include "base/clock.h"
#include "run/drover/private.h"

#define LEASE_MS 600000 /* when the agent has none */

int64_t far_lease_ms(const struct far *f)
{
        int64_t left = f->lease_until_ms - clock_boot_ms();
        if (f->lease_until_ms == 0)
                return LEASE_MS;
        left -= left / 10 < 10000 ? left / 10 : 10000; /* the far end is the earlier one */
        return left < 1000 ? 1000 : left;
}

static void on_renewed(void *arg, int status, struct str body, const struct err *err)
{
        struct far *f = arg;
        struct far_request *r = idmap_get(f->requests, f->renewing);
        (void)body;
        f->renew = NULL;
        if (!status) {
                far_away(f, err->text);
                return;
        }
        if (r && status / 100 == 2)
                r->renewed_ms = f->renewing_ms;
        if (r && (status == 409 || status == 404)) { /* it is over */
                r->lease_over = true;
                r->lease_serial = UINT64_MAX;
                for (size_t i = 0; i < r->count; i++)
                        if (r->tasks[i])
                                r->tasks[i]->dirty = true;
                timer_start(f->later, 0);
        }
        far_lease_send(f);
}

/* Each request once for each time that the agent's lease was renewed. */
void far_lease_send(struct far *f)
{
        int64_t now = clock_boot_ms();
        if (f->lease_until_ms == 0 && now - f->lease_ms >= LEASE_MS / 3) {
                f->lease_ms = now;
                f->lease_serial++;
        }
        for (struct far_request *r = f->sent; r && !f->renew; r = r->next) {
                BUF_CLEANUP struct buf path = {0}, body = {0};
                if (!r->number || r->lease_serial >= f->lease_serial || r->lease_over)
                        continue;
                r->lease_serial = f->lease_serial;
                f->renewing = r->number;
                f->renewing_ms = now;
                buf_printf(&path, "/v1/requests/%llu/lease", (unsigned long long)r->number);
                buf_printf(&body, "{\"lease_ms\":%lld}", (long long)far_lease_ms(f));
                f->renew = far_ask(f, "PUT", &path, buf_view(&body), on_renewed);
        }
}
