#include "agent/credential/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "agent/credential/credential_file.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "agent/outbox/outbox.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/secret.h"
#include "move/task.h"
#include "run/sandbox_names.h"

struct credential {
        uint64_t request;
        uint32_t part;
        char *name, *type, *error;
        struct buf data;
        char *urls;         /* URLs that it is for: canonical prefixes, separated by blanks */
        int64_t expires_ms; /* Unix time; 0: unknown */
        uint64_t version;   /* number of this version, unique in the agent's life */
        bool here;
        unsigned refs; /* attempts */
};

static void key_of(struct buf *out, uint64_t request, uint32_t part, const char *name)
{
        buf_printf(out, "%llu.%u/%s", (unsigned long long)request, part, name);
}

static struct credential *find_credential(const struct agent *a, uint64_t request, uint32_t part,
                                          const char *name)
{
        BUF_CLEANUP struct buf key = {0};

        key_of(&key, request, part, name);
        return map_get(a->credentials, buf_view(&key));
}

static struct credential *of(const struct attempt *at, size_t i)
{
        return find_credential(at->a, at->request, at->part, at->t->m->credentials[i]);
}

/* ---- asking */

static void ask_for_credential(struct agent *a, const struct credential *c)
{
        if (a->greeted)
                outbox_credential_get(a, c->request, c->part, c->name);
}

static bool name_ok(const char *name)
{
        return *name && *name != '.' && strlen(name) < 100 && !strchr(name, '/');
}

static void hold(struct attempt *at)
{
        const struct job_template *m = at->t->m;
        struct agent *a = at->a;

        for (size_t i = 0; at->credential_count < m->credential_count; i++, at->credential_count++) {
                struct credential *c = of(at, i);

                if (!c) {
                        BUF_CLEANUP struct buf key = {0};

                        c = mem_new(struct credential);
                        c->request = at->request;
                        c->part = at->part;
                        c->name = mem_dupz(m->credentials[i]);
                        key_of(&key, c->request, c->part, c->name);
                        map_put(a->credentials, buf_view(&key), c);
                        ask_for_credential(a, c);
                }
                c->refs++;
        }
}

static void credential_free(struct credential *c)
{
        secret_deinit(&c->data);
        free(c->urls);
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
        const struct job_template *m = at->t->m;

        for (size_t i = 0; i < m->credential_count; i++)
                if (!name_ok(m->credentials[i]))
                        return err_set(err, -EINVAL, "'%s' cannot be the name of a credential",
                                       m->credentials[i]);
        hold(at);
        for (size_t i = 0; i < m->credential_count; i++) {
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
                w->result = credential_write(w->sandbox, file, data);
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

void credentials_drop(struct attempt *at)
{
        char name[64];

        sandbox_name(at, name);
        int sandbox = at->a->users_path
                              ? -1
                              : openat(at->a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sandbox < 0)
                return;
        fs_remove_tree(sandbox, SANDBOX_CREDENTIALS);
        close(sandbox);
}

/* ---- for the next server */

static bool is_handed_on(const struct attempt *at)
{
        return at->q->backend->runner->kind->credential != NULL;
}

void credentials_names(const struct attempt *at, struct buf *out)
{
        for (size_t i = 0; i < at->t->m->credential_count; i++)
                buf_printf(out, "%s%s", i ? "," : "", at->t->m->credentials[i]);
}

void credentials_hand_on(struct attempt *at)
{
        struct runner *r = at->q->backend->runner;

        for (size_t i = 0; i < at->credential_count && is_handed_on(at); i++) {
                const struct credential *c = of(at, i);
                const struct run_credential one = {c ? c->name : NULL, c ? c->type : NULL,
                                                   c ? buf_view(&c->data) : STR_NONE};

                if (c && c->here && !c->error)
                        r->kind->credential(r, attempt_task(at), &one);
        }
}

/* ---- here */

int credentials_place(struct attempt *at)
{
        if (at->credential_count == 0 || at->credentials_placed)
                return 0;
        if (is_handed_on(at)) {
                at->credentials_placed = true;
                return 0;
        }
        if (at->a->users_path)
                return 1;
        int r = write_all(at);
        at->credentials_placed = r == 0;
        return r;
}

int credentials_renew(struct attempt *at)
{
        if (!at->credentials_placed)
                return 0;
        if (is_handed_on(at)) {
                credentials_hand_on(at);
                return 0;
        }
        if (at->a->users_path)
                return 1;
        int r = write_all(at);
        if (r < 0)
                log_warn("msg=\"cannot renew a job's credentials\" %s error=\"%s\"",
                         expand_log(at, (char[LOG_NAME]){0}), strerror(-r));
        return 0;
}

void credentials_env(const struct attempt *at, const char *sandbox, struct args *env)
{
        static const struct {
                const char *type, *variable;
        } first[] = {{"proxy", "X509_USER_PROXY"},
                     {"token", "BEARER_TOKEN_FILE"},
                     {"s3", "AWS_SHARED_CREDENTIALS_FILE"}};

        if (at->credential_count == 0 || is_handed_on(at))
                return;
        for (size_t k = 0; k < sizeof(first) / sizeof(*first); k++)
                for (size_t i = 0; i < at->credential_count; i++) {
                        const struct credential *c = of(at, i);
                        BUF_CLEANUP struct buf line = {0};

                        if (!c || !c->here || strcmp(c->type, first[k].type) != 0)
                                continue;
                        buf_printf(&line, "%s=%s/" SANDBOX_CREDENTIALS "/", first[k].variable, sandbox);
                        file_of(c, &line);
                        args_add(env, buf_view(&line));
                        break;
                }
        BUF_CLEANUP struct buf folder = {0};
        buf_printf(&folder, "_CONDOR_CREDS=%s/" SANDBOX_CREDENTIALS, sandbox);
        args_add(env, buf_view(&folder));
}

void credentials_words(const struct attempt *at, struct args *argv)
{
        for (size_t i = 0; i < at->credential_count; i++) {
                const struct credential *c = of(at, i);
                BUF_CLEANUP struct buf word = {0};

                if (!c || !c->here || c->error)
                        continue;
                buf_printf(&word, "credential=%s\t" SANDBOX_CREDENTIALS "/", c->type);
                file_of(c, &word);
                buf_printf(&word, "\t%s", c->urls ? c->urls : "");
                args_add(argv, buf_view(&word));
        }
}

/* ---- transfers */

struct file_credential *credentials_list(const struct attempt *at)
{
        struct file_credential *list = mem_zalloc((at->credential_count + 1) * sizeof(*list));

        for (size_t i = 0; i < at->credential_count; i++) {
                const struct credential *c = of(at, i);

                if (c && c->here)
                        list[i] = (struct file_credential){str_of(c->name), str_of(c->urls),
                                                           !strcmp(c->type, "s3")};
        }
        return list;
}

static struct credential *find_for(const struct attempt *at, struct str url)
{
        MEM_CLEANUP struct file_credential *list = credentials_list(at);
        const struct file_asker asker = {.credentials = list, .credential_count = at->credential_count};
        size_t i = file_asker_shows(&asker, url);

        return i < at->credential_count ? of(at, i) : NULL;
}

static void say_expired(const struct credential *c, struct buf *out)
{
        time_t when = (time_t)(c->expires_ms / 1000);
        struct tm tm;
        char text[40];

        gmtime_r(&when, &tm);
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
        buf_printf(out, "the credential %s has expired, at %s", c->name, text);
}

static bool has_expired(const struct credential *c)
{
        return c->expires_ms && c->expires_ms <= clock_wall_ms();
}

int credentials_show(struct attempt *at, struct move_task *t, uint64_t *ret_version, struct err *err)
{
        *ret_version = 0;
        if (at->t->m->credential_count == 0)
                return 0;
        if (at->adopted && !at->credential_count) { /* an earlier agent requested them */
                at->credentials_placed = true;
                hold(at);
        }
        for (size_t i = 0; i < at->credential_count; i++)
                if (of(at, i) && !of(at, i)->here)
                        return 1;
        const struct credential *c = find_for(at, str_of(t->url));
        if (!c)
                return 0;
        if (c->error)
                return err_set(err, -EACCES, "%s", c->error);
        if (has_expired(c)) {
                BUF_CLEANUP struct buf words = {0};
                MEM_CLEANUP char *url = move_url_shown(t->url);

                say_expired(c, &words);
                return err_set(err, -EACCES, "%s, and %s is not to be had without: drover credential add %s",
                               buf_z(&words), url, c->name);
        }
        move_task_credential(t, c->type, c->name, buf_view(&c->data));
        *ret_version = c->version;
        return 0;
}

bool credentials_denied(struct attempt *at, const char *url, uint64_t version, struct buf *words)
{
        const struct credential *c = find_for(at, str_of(url));

        if (str_starts(str_of(url), STR("file://")))
                return false;
        if (!version) {
                buf_addz(words, c ? "" : "; no credential of the job is for it (see drover-credential(1))");
        } else if (c && c->version != version) {
                return true;
        } else if (c && has_expired(c)) {
                buf_addz(words, "; ");
                say_expired(c, words);
                buf_printf(words, ": drover credential add %s", c->name);
        } else if (c) {
                buf_printf(words, "; is it for this store, and still good? drover credential add %s",
                           c->name);
        }
        return false;
}

/* ---- messages of the server */

static void add_urls(const struct credential_given *m, struct buf *out)
{
        for (size_t i = 0; i < m->url_count; i++)
                buf_printf(out, "%s%s", i ? " " : "", m->urls[i]);
}

static void keep_credential(struct credential *c, const struct credential_given *m)
{
        static uint64_t versions;
        struct buf urls = {0};

        free(c->type);
        free(c->error);
        secret_deinit(&c->data);
        c->here = true;
        c->type = mem_dupz(m->type);
        c->error = *m->error ? mem_dupz(m->error) : NULL;
        c->data = (struct buf){0};
        buf_str(&c->data, m->data);
        c->expires_ms = m->expires_ms;
        c->version = ++versions;
        free(c->urls);
        add_urls(m, &urls);
        c->urls = buf_take(&urls);
}

static bool is_same(const struct credential *c, const struct credential_given *m)
{
        BUF_CLEANUP struct buf urls = {0};

        add_urls(m, &urls);
        return c->here && !c->error && c->data.n == m->data.n && str_eqz(buf_view(&urls), c->urls) &&
               !memcmp(c->data.p, m->data.p, c->data.n);
}

static bool holds(const struct attempt *at, const struct credential_given *m)
{
        if (at->request != m->request || at->part != m->part)
                return false;
        for (size_t i = 0; i < at->credential_count; i++)
                if (!strcmp(at->t->m->credentials[i], m->name))
                        return true;
        return false;
}

void credentials_given(struct agent *a, const struct credential_given *m)
{
        struct credential *c = find_credential(a, m->request, m->part, m->name);

        if (!c || (c->here && !c->error && *m->error))
                return; /* a job keeps the credential that it has */
        bool same = is_same(c, m);
        if (!same)
                keep_credential(c, m);
        for (size_t i = 0; i < a->queue_count && !same; i++)
                for (int s = ATTEMPT_WAITING; s <= ATTEMPT_DELIVERING; s++)
                        for (struct attempt *at = a->queues[i]->lists[s], *next; at; at = next) {
                                next = at->next;
                                if (holds(at, m))
                                        a->news->credential(at);
                        }
        agent_turn_later(a);
}

void credentials_greeted(struct agent *a)
{
        struct str key;
        void *v;

        /* attempts of an earlier agent have their files */
        for (size_t at = 0; map_next(a->attempts, &at, &key, &v);) {
                struct attempt *one = v;

                if (one->adopted && one->t->m->credential_count && !one->credential_count &&
                    one->state <= ATTEMPT_RUNNING) {
                        one->credentials_placed = true;
                        hold(one);
                }
        }
        for (size_t at = 0; map_next(a->credentials, &at, &key, &v);)
                ask_for_credential(a, v);
}
