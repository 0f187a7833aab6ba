/* Renews the leases of requests, each once for each renewal of the agent's lease. */
#include "run/drover/lease.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "run/drover/link.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define LEASE_MS 600000 /* when the agent has no lease */

struct remote_lease {
        int64_t until_ms;   /* boot clock; end of the agent's lease; 0: none */
        int64_t given_ms;   /* lease that requests were given last */
        int64_t counted_ms; /* boot clock; without a lease: last increment of serial */
        uint64_t serial;    /* serial of the agent's lease */
        struct http_call *call;
        uint64_t renewing; /* the request being renewed */
        int64_t renewing_ms;
};

int64_t remote_lease_ms(const struct remote *f)
{
        int64_t left = f->lease->until_ms - clock_boot_ms();

        if (f->lease->until_ms == 0)
                return LEASE_MS;
        left -= left / 10 < 10000 ? left / 10 : 10000; /* the lease ends earlier there than here */
        return left < 1000 ? 1000 : left;
}

static void on_renewed(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        struct remote_request *r = idmap_get(f->table.requests, f->lease->renewing);

        (void)body;
        f->lease->call = NULL;
        if (!status) {
                remote_unreachable(f, err->text);
                return;
        }
        if (r && status / 100 == 2)
                r->renewed_ms = f->lease->renewing_ms;
        if (r && (status == 409 || status == 404)) { /* the request has ended */
                r->lease_over = true;
                r->lease_serial = UINT64_MAX;
                for (size_t i = 0; i < r->count; i++)
                        if (r->tasks[i])
                                r->tasks[i]->dirty = true;
                timer_start(f->later, 0);
        }
        remote_lease_send(f);
}

void remote_lease_send(struct remote *f)
{
        int64_t now = clock_boot_ms();

        if (f->lease->until_ms == 0 && now - f->lease->counted_ms >= LEASE_MS / 3) {
                f->lease->counted_ms = now;
                f->lease->serial++;
        }
        for (struct remote_request *r = f->table.sent; r && !f->lease->call; r = r->next) {
                BUF_CLEANUP struct buf path = {0}, body = {0};

                if (!r->number || r->lease_serial >= f->lease->serial || r->lease_over)
                        continue;
                r->lease_serial = f->lease->serial;
                f->lease->renewing = r->number;
                f->lease->renewing_ms = now;
                buf_printf(&path, "/v1/requests/%llu/lease", (unsigned long long)r->number);
                buf_printf(&body, "{\"lease_ms\":%lld}", (long long)remote_lease_ms(f));
                f->lease->call = remote_ask(f, "PUT", &path, buf_view(&body), on_renewed);
        }
}

void remote_lease_set(struct remote *f, int64_t until_boot_ms)
{
        f->lease->serial++;
        f->lease->until_ms = until_boot_ms;
        f->lease->given_ms = remote_lease_ms(f);
}

uint64_t remote_lease_serial(const struct remote *f)
{
        return f->lease->serial;
}

bool remote_lease_is_over(const struct remote *f, int64_t now)
{
        return f->lease->until_ms && now >= f->lease->until_ms;
}

int64_t remote_lease_given_ms(const struct remote *f)
{
        return f->lease->given_ms;
}

struct remote_lease *remote_lease_new(void)
{
        struct remote_lease *l = mem_new(struct remote_lease);

        l->given_ms = LEASE_MS;
        return l;
}
