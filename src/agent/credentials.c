#include "agent/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/log.h"
#include "base/secret.h"

struct credential {
        uint64_t request;
        uint32_t part;
        char *name, *type, *error;
        struct buf data;
        bool here;
        unsigned refs; /* attempts */
};

static void key_of(struct buf *out, uint64_t request, uint32_t part, const char *name)
{
        buf_printf(out, "%llu.%u/%s", (unsigned long long)request, part, name);
}

static struct credential *find(const struct agent *a, uint64_t request, uint32_t part, const char *name)
{
        BUF_CLEANUP struct buf key = {0};
        key_of(&key, request, part, name);
        return map_get(a->credentials, buf_view(&key));
}

static struct credential *of(const struct attempt *at, size_t i)
{
        return find(at->a, at->request, at->part, at->t->m->credentials[i]);
}

/* ---- asking */

static void ask(struct agent *a, const struct credential *c)
{
        Drover__CredentialGet get = DROVER__CREDENTIAL_GET__INIT;
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        get.request = c->request;
        get.part = c->part;
        get.name = c->name;
        m.kind_case = DROVER__TO_SERVER__KIND_CREDENTIAL_GET;
        m.credential_get = &get;
        if (a->greeted)
                connect_send(a, &m);
}

static bool name_ok(const char *name)
{
        return *name && *name != '.' && strlen(name) < 100 && !strchr(name, '/');
}

static void hold(struct attempt *at)
{
        const Drover__Template *m = at->t->m;
        struct agent *a = at->a;
        for (size_t i = 0; at->credential_count < m->n_credentials; i++, at->credential_count++) {
                struct credential *c = of(at, i);
                if (!c) {
                        BUF_CLEANUP struct buf key = {0};
                        c = mem_new(struct credential);
                        c->request = at->request;
                        c->part = at->part;
                        c->name = mem_dupz(m->credentials[i]);
                        key_of(&key, c->request, c->part, c->name);
                        map_put(a->credentials, buf_view(&key), c);
                        ask(a, c);
                }
                c->refs++;
        }
}

static void credential_free(struct credential *c)
{
        secret_deinit(&c->data);
        free(c->name);
        free(c->type);
        free(c->error);
        free(c);
}

void credentials_release(struct attempt *at)
{
        for (size_t i = 0; i < at->credential_count; i++) {
                struct credential *c = of(at, i);
                BUF_CLEANUP struct buf key = {0};
                if (!c || --c->refs > 0)
                        continue;
                key_of(&key, c->request, c->part, c->name);
                map_take(at->a->credentials, buf_view(&key));
                credential_free(c);
        }
        at->credential_count = 0;
}

int credentials_want(struct attempt *at, struct err *err)
{
        const Drover__Template *m = at->t->m;
        for (size_t i = 0; i < m->n_credentials; i++)
                if (!name_ok(m->credentials[i]))
                        return err_set(err, -EINVAL, "'%s' cannot be the name of a credential",
                                       m->credentials[i]);
        hold(at);
        for (size_t i = 0; i < m->n_credentials; i++) {
                const struct credential *c = of(at, i);
                if (!c->here)
                        return 1;
                if (c->error)
                        return err_set(err, -EINVAL, "%s", c->error);
        }
        return 0;
}

/* ---- files */

static void file_of(const struct credential *c, struct buf *out)
{
        buf_printf(out, "%s%s", c->name, !strcmp(c->type, "token") ? ".use" : "");
}

void credentials_each(const struct attempt *at, void (*fn)(void *arg, const char *file, struct str data),
                      void *arg)
{
        for (size_t i = 0; i < at->credential_count; i++) {
                const struct credential *c = of(at, i);
                BUF_CLEANUP struct buf file = {0};
                if (!c || !c->here || c->error)
                        continue;
                file_of(c, &file);
                fn(arg, buf_z(&file), buf_view(&c->data));
        }
}

struct writing {
        int sandbox, result;
};

static void write_one(void *arg, const char *file, struct str data)
{
        struct writing *w = arg;
        if (w->result == 0)
                w->result = stage_work_credential(w->sandbox, file, data);
}

static int write_all(struct attempt *at)
{
        struct writing w = {0};
        char name[64];
        sandbox_name(at, name);
        w.sandbox = openat(at->a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (w.sandbox < 0)
                return -errno;
        credentials_each(at, write_one, &w);
        close(w.sandbox);
        return w.result;
}

int credentials_place(struct attempt *at)
{
        if (at->credential_count == 0 || at->credentials_placed)
                return 0;
        if (at->a->users_path) {
                stage_credentials(at);
                return 1;
        }
        int r = write_all(at);
        at->credentials_placed = r == 0;
        return r;
}

void credentials_env(const struct attempt *at, const char *sandbox, struct args *env)
{
        static const struct {
                const char *type, *variable;
        } first[] = {{"proxy", "X509_USER_PROXY"},
                     {"token", "BEARER_TOKEN_FILE"},
                     {"s3", "AWS_SHARED_CREDENTIALS_FILE"}};
        if (at->credential_count == 0)
                return;
        for (size_t k = 0; k < sizeof(first) / sizeof(*first); k++)
                for (size_t i = 0; i < at->credential_count; i++) {
                        const struct credential *c = of(at, i);
                        BUF_CLEANUP struct buf line = {0};
                        if (!c || !c->here || strcmp(c->type, first[k].type) != 0)
                                continue;
                        buf_printf(&line, "%s=%s/" STAGE_CREDENTIALS_FOLDER "/", first[k].variable, sandbox);
                        file_of(c, &line);
                        args_add(env, buf_view(&line));
                        break;
                }
        BUF_CLEANUP struct buf folder = {0};
        buf_printf(&folder, "_CONDOR_CREDS=%s/" STAGE_CREDENTIALS_FOLDER, sandbox);
        args_add(env, buf_view(&folder));
}

/* ---- the server's words */

static void keep(struct credential *c, const Drover__Credential *m)
{
        free(c->type);
        free(c->error);
        secret_deinit(&c->data);
        c->here = true;
        c->type = mem_dupz(m->type);
        c->error = *m->error ? mem_dupz(m->error) : NULL;
        c->data = (struct buf){0};
        buf_add(&c->data, m->data.data, m->data.len);
}

/* One that waited goes on; one that runs has the new contents in its files. */
static void tell(struct attempt *at)
{
        if (at->state == ATTEMPT_STAGING && !at->stage && !at->wanted && !at->credentials_placed) {
                attempt_stage(at);
                return;
        }
        if (!at->credentials_placed || at->state >= ATTEMPT_DELIVERING)
                return;
        if (at->a->users_path) {
                stage_credentials(at);
                return;
        }
        int r = write_all(at);
        if (r < 0)
                log_warn("msg=\"cannot renew a job's credentials\" job=%llu.%u error=\"%s\"",
                         (unsigned long long)at->request, at->member, strerror(-r));
}

static bool holds(const struct attempt *at, const Drover__Credential *m)
{
        if (at->request != m->request || at->part != m->part)
                return false;
        for (size_t i = 0; i < at->credential_count; i++)
                if (!strcmp(at->t->m->credentials[i], m->name))
                        return true;
        return false;
}

void credentials_message(struct agent *a, const Drover__Credential *m)
{
        struct credential *c = find(a, m->request, m->part, m->name);
        if (!c || (c->here && !c->error && *m->error))
                return; /* what a job has it keeps */
        bool same = c->here && !c->error && c->data.n == m->data.len &&
                    !memcmp(c->data.p, m->data.data, c->data.n);
        if (!same)
                keep(c, m);
        for (size_t i = 0; i < a->queue_count && !same; i++)
                for (int s = ATTEMPT_WAITING; s <= ATTEMPT_RUNNING; s++)
                        for (struct attempt *at = a->queues[i]->lists[s], *next; at; at = next) {
                                next = at->next;
                                if (holds(at, m))
                                        tell(at);
                        }
        agent_turn_later(a);
}

void credentials_greeted(struct agent *a)
{
        struct str key;
        void *v;
        /* those of an earlier life of the agent have their files */
        for (size_t at = 0; map_next(a->attempts, &at, &key, &v);) {
                struct attempt *one = v;
                if (one->adopted && one->t->m->n_credentials && !one->credential_count &&
                    one->state <= ATTEMPT_RUNNING) {
                        one->credentials_placed = true;
                        hold(one);
                }
        }
        for (size_t at = 0; map_next(a->credentials, &at, &key, &v);)
                ask(a, v);
}
