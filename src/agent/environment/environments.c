/* A folder jobs/env.NUMBER is the sandbox of the errand that makes it: `env` is the environment, `log` what
 * its makers said. The errand prints its size once all of it is flushed to the disk; then the index is
 * written, and from then on it is used. An errand of an earlier life is ended by the shepherd's first list
 * (attempt_event), and its folder is one that nobody knows. */
#include "agent/environment/environments_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/pack.h"
#include "ev/children.h"

#define INDEX       "environments"
#define INDEX_MAGIC "drover-environments-1"
#define INDEX_MAX   (16u << 20)
#define FILE_MAX    (1u << 20) /* what one is made of */
#define FIRST_MS    1000 /* after the start, if no job asks before: agents that are gone soon need not know */

/* ---- what an attempt asks for */

static const char *asked(const struct attempt *at, enum environment_kind *ret)
{
        const Drover__Template *m = at->t->m;
        *ret = *m->python_env ? ENVIRONMENT_PYTHON : ENVIRONMENT_CONDA;
        if (*m->python_env)
                return m->python_env;
        return environment_is_file(str_of(m->conda_env)) ? m->conda_env : NULL;
}

bool environments_asked(const struct attempt *at)
{
        enum environment_kind kind;
        if (!asked(at, &kind))
                return false;
        for (size_t i = 0; i < at->t->m->n_steps; i++)
                if (!*at->t->m->steps[i]->container)
                        return true;
        return false;
}

static const Drover__SpoolRef *find_file(const struct attempt *at, enum environment_kind *ret_kind)
{
        const Drover__Template *m = at->t->m;
        BUF_CLEANUP struct buf text = {.max = 65536};
        const char *path = asked(at, ret_kind);
        if (!path || expand_text(at, path, &text, NULL) < 0)
                return NULL;
        struct str name = buf_view(&text);
        name = str_skip(name, (size_t)(str_rfind(name, '/') + 1));
        for (size_t i = 0; i < m->n_spooled; i++)
                if (m->spooled[i]->sha256.len == 32 && str_eqz(name, m->spooled[i]->name))
                        return m->spooled[i];
        return NULL;
}

const char *environment_user(const struct attempt *at)
{
        return at->a->users_path ? at->t->user.name : "";
}

static struct environment *find(const struct attempt *at, enum environment_kind kind,
                                const unsigned char *sha256, bool any_maker)
{
        const struct environments *all = at->a->environments;
        const char *maker = environments_maker(all, kind);
        struct environment *e = all->first;
        while (e && (e->unwanted || e->kind != kind || memcmp(e->sha256, sha256, 32) != 0 ||
                     strcmp(e->user, environment_user(at)) != 0 ||
                     (!any_maker && (!maker || strcmp(e->maker, maker) != 0))))
                e = e->next;
        return e;
}

/* ---- the index */

void environment_folder(uint64_t number, char room[32])
{
        snprintf(room, 32, ENVIRONMENT_FOLDER "%llu", (unsigned long long)number);
}

int environments_write(struct agent *a, bool durable)
{
        struct environments *all = a->environments;
        BUF_CLEANUP struct buf body = {0}, text = {0};
        for (const struct lru_node *n = all->by_use.oldest; n; n = n->newer) {
                const struct environment *e = container_of(n, struct environment, use);
                pack_u64(&body, e->kind);
                pack_str(&body, str_make((const char *)e->sha256, 32));
                pack_str(&body, str_of(e->maker));
                pack_str(&body, str_of(e->user));
                pack_u64(&body, e->number);
                pack_u64(&body, e->use.bytes);
        }
        pack_str(&text, STR(INDEX_MAGIC));
        pack_u64(&text, pack_crc32c(0, body.p, body.n));
        buf_str(&text, buf_view(&body));
        int r = fs_write(a->dir, INDEX, buf_view(&text), 0600, durable, NULL);
        if (r == 0)
                all->dirty = false;
        return r;
}

/* Several users may have the same. */
static bool has_another(const struct environment *e)
{
        const struct environment *o = e->a->environments->first;
        while (o && (o == e || !o->ready || o->kind != e->kind || memcmp(o->sha256, e->sha256, 32) != 0))
                o = o->next;
        return o != NULL;
}

void environment_told(struct agent *a, const struct environment *e, bool here)
{
        BUF_CLEANUP struct buf url = {0};
        if (has_another(e))
                return;
        environment_url(e->kind, e->sha256, &url);
        if (here)
                stores_hold(a, buf_view(&url), e->use.bytes, DROVER__CACHED_KIND__CACHED_ENVIRONMENT);
        else
                stores_release(a, buf_view(&url));
}

static void read_index(struct agent *a)
{
        struct environments *all = a->environments;
        BUF_CLEANUP struct buf text = {0};
        if (fs_read(a->dir, INDEX, INDEX_MAX, &text, NULL) < 0)
                return;
        struct unpack u = unpack_from(buf_view(&text));
        struct str magic = unpack_str(&u);
        uint64_t crc = unpack_u64(&u);
        if (u.bad || !str_eqz(magic, INDEX_MAGIC) || crc != pack_crc32c(0, u.p, (size_t)(u.end - u.p)))
                return;
        while (!unpack_done(&u) && !u.bad) {
                char name[32];
                enum environment_kind kind = (enum environment_kind)unpack_max(&u, ENVIRONMENT_KINDS - 1);
                struct str sum = unpack_str(&u), maker = unpack_str(&u), user = unpack_str(&u);
                uint64_t number = unpack_u64(&u), bytes = unpack_u64(&u);
                environment_folder(number, name);
                if (u.bad || sum.n != 32 || faccessat(a->jobs, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                struct environment *e = mem_new(struct environment);
                *e = (struct environment){.a = a,
                                          .use = {.bytes = bytes},
                                          .next = all->first,
                                          .kind = kind,
                                          .maker = str_dupz(maker),
                                          .user = str_dupz(user),
                                          .number = number,
                                          .ready = true};
                memcpy(e->sha256, sum.p, 32);
                all->first = e;
                lru_put(&all->by_use, &e->use);
                environment_told(a, e, true);
        }
}

/* ---- leaving */

static void no_matter(void *arg, struct child *child, int status)
{
        (void)arg, (void)child, (void)status;
}

/* As who made it: there may be a great many files in it, and none is ours to touch with `users`. */
static void remove_folder(struct agent *a, const char *name)
{
        BUF_CLEANUP struct buf path = {0};
        ARGS_CLEANUP struct args argv = {0};
        struct child *child;
        if (a->users_path) {
                stage_remove(a, name, 0, 0, 0);
                return;
        }
        buf_printf(&path, "%s/%s", a->jobs_path, name);
        args_add(&argv, STR("rm"));
        args_add(&argv, STR("-rf"));
        args_add(&argv, buf_view(&path));
        const struct child_spec spec = {.argv = argv.v, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
        struct err err = {""};
        if (child_spawn(a->loop, &spec, no_matter, NULL, &child, &err) < 0)
                log_warn("msg=\"cannot remove an environment\" folder=%s error=\"%s\"", name,
                         LOG_TEXT(str_of(err.text)));
        else
                child_forget(child);
}

static void environment_free(struct environments *all, struct environment *e)
{
        struct environment **link = &all->first;
        while (*link != e)
                link = &(*link)->next;
        *link = e->next;
        command_cancel(e->command);
        free(e->file);
        free(e->waiting.v);
        free(e->maker);
        free(e->user);
        free(e);
}

void environment_drop(struct agent *a, struct environment *e)
{
        char name[32];
        environment_folder(e->number, name);
        if (e->ready) {
                lru_take(&a->environments->by_use, &e->use);
                environment_told(a, e, false);
                a->environments->dirty = true;
        }
        log_info("msg=\"an environment is removed\" folder=%s", name);
        environment_free(a->environments, e);
        remove_folder(a, name);
}

static void go(void *arg, struct lru_node *n)
{
        environment_drop(arg, container_of(n, struct environment, use));
}

/* The index first says that it is gone. */
void environments_trim(struct agent *a)
{
        struct environments *all = a->environments;
        lru_trim(&all->by_use, a->config.environments_bytes, go, a);
        if (all->dirty)
                environments_write(a, false);
}

bool environments_folder(struct agent *a, const char *name)
{
        if (!str_starts(str_of(name), STR(ENVIRONMENT_FOLDER)))
                return false;
        for (const struct environment *e = a->environments->first; e; e = e->next) {
                char known[32];
                environment_folder(e->number, known);
                if (!strcmp(known, name))
                        return true;
        }
        remove_folder(a, name);
        return true;
}

/* ---- for attempts */

static void wait_in(struct attempt *at, struct name_list *list)
{
        report_name(list, at);
        at->environment_waits = true;
}

/* Somebody may have removed it behind our back. */
static bool is_there(const struct environment *e)
{
        char path[64];
        snprintf(path, sizeof(path), ENVIRONMENT_FOLDER "%llu/env", (unsigned long long)e->number);
        return faccessat(e->a->jobs, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void take(struct attempt *at, struct environment *e)
{
        struct environments *all = at->a->environments;
        at->environment = e;
        e->use.pins++;
        lru_use(&all->by_use, &e->use);
        all->dirty = true;
}

int environments_want(struct attempt *at, struct err *err)
{
        struct environments *all = at->a->environments;
        enum environment_kind kind;
        const Drover__SpoolRef *file = find_file(at, &kind);
        if (at->environment)
                return 0;
        if (!file)
                return err_set(err, -EINVAL, "the file %s that its %s is made of did not come along",
                               asked(at, &kind), environment_words[kind]);
        if (!all->probed && all->timer) {
                wait_in(at, &all->waiting);
                if (!all->probe)
                        environments_probe(at->a);
                return 1;
        }
        if (!environments_maker(all, kind))
                return err_set(err, -EINVAL, "no %s is made at this place", environment_words[kind]);
        struct environment *e = find(at, kind, file->sha256.data, false);
        if (e && e->ready && e->use.pins == 0 && !is_there(e)) {
                environment_drop(at->a, e);
                e = NULL;
        }
        if (e && e->ready) {
                take(at, e);
                return 0;
        }
        if (!e && !at->a->backends[0]->ready) {
                wait_in(at, &all->waiting);
                return 1;
        }
        if (file->size > FILE_MAX)
                return err_set(err, -E2BIG, "%s is over %u KiB, which is no description of a %s", file->name,
                               FILE_MAX >> 10, environment_words[kind]);
        int r = e ? 0 : environment_make(at, kind, file, &e, err);
        if (r < 0)
                return r;
        wait_in(at, &e->waiting);
        at->making = e;
        e->wanted++;
        return 1;
}

void environments_forget(struct attempt *at)
{
        struct environment *e = at->making;
        at->making = NULL;
        at->environment_waits = false;
        if (e && --e->wanted == 0 && !at->a->stopping)
                environment_unwanted(e);
}

bool environments_making(const struct attempt *at, struct buf *out, int64_t *ret_since_ms)
{
        const struct environment *e = at->making;
        if (!e)
                return false;
        buf_printf(out, "making the %s of %s", environment_words[e->kind], e->file);
        *ret_since_ms = e->began_ms;
        return true;
}

const Drover__SpoolRef *environments_file(const struct attempt *at)
{
        enum environment_kind kind;
        return find_file(at, &kind);
}

void environments_adopt(struct attempt *at)
{
        enum environment_kind kind;
        const Drover__SpoolRef *file = environments_asked(at) ? find_file(at, &kind) : NULL;
        struct environment *e = file ? find(at, kind, file->sha256.data, true) : NULL;
        if (e)
                take(at, e);
}

void environments_release(struct attempt *at)
{
        struct environment *e = at->environment;
        at->environment = NULL;
        if (e && --e->use.pins == 0 && !at->a->stopping)
                environments_trim(at->a);
}

bool environments_path(const struct attempt *at, enum environment_kind *ret_kind, struct buf *out)
{
        const struct environment *e = at->environment;
        if (!e)
                return false;
        *ret_kind = e->kind;
        buf_printf(out, "%s/" ENVIRONMENT_FOLDER "%llu/env", at->a->jobs_path, (unsigned long long)e->number);
        return true;
}

/* ---- */

static void on_timer(void *arg)
{
        struct agent *a = arg;
        if (!a->environments->probed && !a->environments->probe)
                environments_probe(a);
}

void environments_open(struct agent *a)
{
        struct environments *all = a->environments = mem_new(struct environments);
        read_index(a);
        if (a->config.environments_bytes == 0)
                return;
        all->timer = timer_new(a->loop, on_timer, a);
        timer_start(all->timer, FIRST_MS);
}

void environments_close(struct agent *a)
{
        struct environments *all = a->environments;
        if (!all)
                return;
        if (all->dirty)
                environments_write(a, false);
        command_cancel(all->probe);
        while (all->first)
                environment_free(all, all->first);
        timer_free(all->timer);
        free(all->waiting.v);
        free(all->python);
        free(all->python_version);
        free(all->conda);
        free(all);
        a->environments = NULL;
}
