/* Many light agents over TCP in one process: the protocol and TLS of a real one, without a machine behind it.
 * Each joins by the token, greets with its certificate, renews, and comes back when its session ends as
 * drover-agent does (tools/bench calls it).
 *
 *   swarm ADDRESS TOKEN COUNT [SLOTS]
 *
 * Prints a line `MS DIALS` each time that all of them are greeted: the time since the first of them dialled
 * or lost its session, and how often they dialled in that time. With SLOTS each then offers to take so many
 * jobs, says at once of those that it is given that they have run, and offers again when that is
 * acknowledged. Ends when its standard input does.
 */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "auth/csr.h"
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "bench.h"
#include "wire/session.h"

#define COUNT_MAX 50000

struct swarm {
        struct loop *loop;
        const char *address, *token;
        struct tls_context *joining;
        struct str fingerprint;
        struct buf ca;
        size_t count, greeted, dials;
        uint32_t slots;
        int64_t since_ms; /* 0: all are greeted */
};
struct light_agent {
        struct swarm *all;
        char name[24];
        struct buf key, cert;
        struct tls_context *tls; /* with its certificate; NULL: it has none yet */
        struct session *session;
        struct timer *again, *renew;
        struct backoff wait;
        int64_t renew_ms;
        uint64_t renewals, offers;
        size_t unacknowledged; /* results */
        bool greeted;
};

static void say(struct light_agent *a, Drover__ToServer *m, Drover__ToServer__KindCase kind)
{
        m->kind_case = kind;
        session_send(a->session, &m->base);
}

static void on_ready(void *arg, struct session *session)
{
        struct light_agent *a = arg;
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        Drover__Join join = DROVER__JOIN__INIT;
        Drover__Hello hello = DROVER__HELLO__INIT;
        BUF_CLEANUP struct buf csr = {0};

        (void)session;
        if (a->tls) {
                hello.version = 1;
                hello.hostname = hello.instance = a->name;
                hello.filesystem_domain = (char *)"swarm";
                hello.program = (char *)"swarm";
                m.hello = &hello;
                say(a, &m, DROVER__TO_SERVER__KIND_HELLO);
                return;
        }
        buf_reset(&a->key);
        must(csr_make(str_of(a->name), &a->key, &csr, NULL) == 0, "no key can be made");
        join.version = 1;
        join.token = (char *)a->all->token;
        join.name = a->name;
        join.csr_pem = (char *)buf_z(&csr);
        m.join = &join;
        say(a, &m, DROVER__TO_SERVER__KIND_JOIN);
}

static void drop(struct light_agent *a)
{
        struct swarm *all = a->all;

        session_free(a->session);
        a->session = NULL;
        timer_stop(a->renew);
        if (!a->greeted)
                return;
        a->greeted = false;
        all->greeted--;
        if (!all->since_ms) {
                all->since_ms = clock_boot_ms();
                all->dials = 0;
        }
}

static void on_closed(void *arg, struct session *session, const struct err *why)
{
        struct light_agent *a = arg;

        (void)session, (void)why;
        drop(a);
        timer_start(a->again, backoff_wait(&a->wait));
}

static void on_joined(struct light_agent *a, const Drover__Joined *j)
{
        struct swarm *all = a->all;
        struct err err;

        buf_addz(&a->cert, j->cert_pem);
        if (!all->ca.n)
                buf_addz(&all->ca, j->ca_pem);
        const struct tls_config c = {
                .ca_pem = buf_view(&all->ca), .cert_pem = buf_view(&a->cert), .key_pem = buf_view(&a->key)};
        must(tls_client_new(&c, &a->tls, &err) == 0, "the certificate cannot be used");
        drop(a);
        timer_start(a->again, 0);
}

static void offer(struct light_agent *a)
{
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        Drover__Offer offer = DROVER__OFFER__INIT;
        char ad[200];

        snprintf(ad, sizeof(ad),
                 "[Cpus = %u; Memory = 65536; Disk = 100000000; FileSystemDomain = \"swarm\"; OpSys = "
                 "\"LINUX\"]",
                 (unsigned)a->all->slots);
        offer.queue = (char *)"main";
        offer.serial = ++a->offers;
        offer.ad = ad;
        offer.jobs_max = a->all->slots;
        offer.own_users = true;
        m.offer = &offer;
        say(a, &m, DROVER__TO_SERVER__KIND_OFFER);
}

static void end_job(struct light_agent *a, const Drover__Group *g, uint32_t member)
{
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        Drover__StepResult step = DROVER__STEP_RESULT__INIT, *steps[] = {&step};
        Drover__JobResult job = DROVER__JOB_RESULT__INIT, *jobs[] = {&job};
        Drover__Result result = DROVER__RESULT__INIT;

        job.request = g->request;
        job.member = member;
        job.fence = g->fence;
        job.started_ms = job.ended_ms = step.started_ms = step.ended_ms = (uint64_t)clock_wall_ms();
        job.n_steps = result.n_jobs = 1;
        job.steps = steps;
        result.jobs = jobs;
        m.result = &result;
        say(a, &m, DROVER__TO_SERVER__KIND_RESULT);
        a->unacknowledged++;
}

static void on_assign(struct light_agent *a, const Drover__Assign *assign)
{
        for (size_t i = 0; i < assign->n_groups; i++) {
                const Drover__Group *g = assign->groups[i];
                Drover__ToServer m = DROVER__TO_SERVER__INIT;
                Drover__Attempts attempts = DROVER__ATTEMPTS__INIT, *all[] = {&attempts};
                Drover__Accept accept = DROVER__ACCEPT__INIT;
                Drover__Started started = DROVER__STARTED__INIT;

                attempts.request = g->request;
                attempts.fence = g->fence;
                attempts.n_members = g->n_members;
                attempts.members = g->members;
                accept.queue = assign->queue;
                accept.n_attempts = started.n_attempts = 1;
                accept.attempts = started.attempts = all;
                m.accept = &accept;
                say(a, &m, DROVER__TO_SERVER__KIND_ACCEPT);
                started.at_ms = (uint64_t)clock_wall_ms();
                m.started = &started;
                say(a, &m, DROVER__TO_SERVER__KIND_STARTED);
                for (size_t r = 0; r < g->n_members; r++)
                        for (uint32_t k = 0; k < g->members[r]->count; k++)
                                end_job(a, g, g->members[r]->first + k);
        }
}

static void on_acknowledged(struct light_agent *a, const Drover__ResultAck *ack)
{
        for (size_t i = 0; i < ack->n_attempts; i++)
                for (size_t r = 0; r < ack->attempts[i]->n_members; r++)
                        a->unacknowledged -= ack->attempts[i]->members[r]->count;
        if (a->unacknowledged == 0)
                offer(a);
}

static void on_greeted(struct light_agent *a)
{
        struct swarm *all = a->all;

        a->greeted = true;
        backoff_reset(&a->wait);
        timer_start(a->renew, a->renew_ms);
        a->unacknowledged = 0;
        if (all->slots)
                offer(a);
        if (++all->greeted < all->count)
                return;
        printf("%lld %zu\n", (long long)(clock_boot_ms() - all->since_ms), all->dials);
        fflush(stdout);
        all->since_ms = 0;
}

static void on_message(void *arg, struct session *session, const ProtobufCMessage *base)
{
        struct light_agent *a = arg;
        const Drover__ToAgent *said = (const void *)base;
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        Drover__Inventory nothing = DROVER__INVENTORY__INIT;

        (void)session;
        switch (said->kind_case) {
        case DROVER__TO_AGENT__KIND_JOINED: on_joined(a, said->joined); return;
        case DROVER__TO_AGENT__KIND_WELCOME:
                a->renew_ms = (int64_t)said->welcome->renew_ms;
                m.inventory = &nothing;
                say(a, &m, DROVER__TO_SERVER__KIND_INVENTORY);
                return;
        case DROVER__TO_AGENT__KIND_INVENTORY_REPLY: on_greeted(a); return;
        case DROVER__TO_AGENT__KIND_ASSIGN: on_assign(a, said->assign); return;
        case DROVER__TO_AGENT__KIND_RESULT_ACK: on_acknowledged(a, said->result_ack); return;
        case DROVER__TO_AGENT__KIND_ERROR:
                fprintf(stderr, "swarm: %s: %s\n", a->name, said->error->text);
                return;
        default: return;
        }
}

static void on_renew(void *arg)
{
        struct light_agent *a = arg;
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        Drover__Renew renew = DROVER__RENEW__INIT;

        renew.serial = ++a->renewals;
        m.renew = &renew;
        say(a, &m, DROVER__TO_SERVER__KIND_RENEW);
        timer_start(a->renew, a->renew_ms);
}

static void dial(void *arg)
{
        static const struct session_ops ops = {on_ready, on_message, on_closed};
        struct light_agent *a = arg;
        struct swarm *all = a->all;

        all->dials++;
        a->session = session_connect(all->loop, all->address, a->tls ? a->tls : all->joining, 0, &ops, a);
}

static void on_stdin(void *arg, int what)
{
        char room[64];

        (void)what;
        if (read(STDIN_FILENO, room, sizeof(room)) <= 0)
                loop_stop(arg);
}

static struct str fingerprint_of(const char *token)
{
        struct str rest = str_of(token), kind = {0}, version = {0}, fingerprint = {0};

        must(str_cut(&rest, '.', &kind) && str_cut(&rest, '.', &version) && str_cut(&rest, '.', &fingerprint),
             "no token of an agent");
        return fingerprint;
}

int main(int argc, char **argv)
{
        struct rlimit files;
        struct err err;

        must(argc == 4 || argc == 5, "usage: swarm ADDRESS TOKEN COUNT [SLOTS]");
        struct swarm all = {.address = argv[1], .token = argv[2], .count = strtoul(argv[3], NULL, 10)};
        if (argc == 5)
                all.slots = (uint32_t)strtoul(argv[4], NULL, 10);
        must(all.count > 0 && all.count <= COUNT_MAX, "from 1 to 50000 agents");
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        must(files.rlim_cur > all.count + 100, "more agents than files may be open");
        signal(SIGPIPE, SIG_IGN);

        all.loop = loop_new();
        const struct tls_config c = {.ca_fingerprint = fingerprint_of(all.token)};
        must(tls_client_new(&c, &all.joining, &err) == 0, "no TLS");
        struct light_agent *agents = mem_zalloc(all.count * sizeof(*agents));
        all.since_ms = clock_boot_ms();
        for (size_t i = 0; i < all.count; i++) {
                struct light_agent *a = &agents[i];

                a->all = &all;
                a->wait = BACKOFF(50, 30000);
                snprintf(a->name, sizeof(a->name), "light-%zu", i);
                a->again = timer_new(all.loop, dial, a);
                a->renew = timer_new(all.loop, on_renew, a);
                timer_start(a->again, 0);
        }
        struct watch *input = watch_new(all.loop, STDIN_FILENO, WATCH_READ, on_stdin, all.loop);
        loop_run(all.loop);
        watch_free(input);
        for (size_t i = 0; i < all.count; i++) {
                session_free(agents[i].session);
                timer_free(agents[i].again);
                timer_free(agents[i].renew);
                tls_unref(agents[i].tls);
                buf_deinit(&agents[i].key);
                buf_deinit(&agents[i].cert);
        }
        free(agents);
        buf_deinit(&all.ca);
        tls_unref(all.joining);
        loop_free(all.loop);
        return 0;
}
