/* A folder jobs/env.NUMBER is the sandbox of the errand that makes it: `env` is the environment, `log` what
 * its makers said. The errand prints its size once all of it is flushed to the disk; then the index is
 * written, and from then on it is used. An errand of an earlier life is ended by the shepherd's first list
 * (attempt_event), and its folder is one that nobody knows. */
#include "agent/environments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/activate.h"
#include "agent/offers.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/fs.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/pack.h"
#include "ev/children.h"
#include "place/lru.h"
#include "run/errand.h"

#define FOLDER      "env."
#define INDEX       "environments"
#define INDEX_MAGIC "drover-environments-1"
#define INDEX_MAX   (16u << 20)
#define FILE_MAX    (1u << 20) /* what one is made of */
#define COUNT_MAX   10000u
#define PROBE_MS    60000
#define FIRST_MS    1000 /* after the start, if no job asks before: agents that are gone soon need not know */
#define WORDS_MAX   600u /* bytes of what went wrong */

struct environment {
        struct lru_node use; /* in the list once it is ready */
        struct agent *a;
        struct environment *next;
        enum environment_kind kind;
        unsigned char sha256[32];
        char *maker; /* what it depends on here: the Python */
        char *user;  /* whose it is; "" without `users` */
        uint64_t number;
        bool ready;
        char *file; /* as the first attempt calls it */
        struct command *command;
        struct name_list waiting;
};
struct environments {
        struct environment *first;
        struct lru by_use;
        bool dirty;
        uint64_t last_number;
        struct timer *timer; /* of the probe; NULL: none are made */
        struct command *probe;
        bool probed;
        struct name_list waiting;      /* for it, or for the shepherd */
        char *python, *python_version; /* "cpython-311", "3.11.2"; NULL: none are made */
        char *conda;                   /* the program; NULL: none are made */
        bool micro;                    /* it is micromamba */
};

static const char *const words[] = {
        [ENVIRONMENT_CONDA] = "conda environment", [ENVIRONMENT_PYTHON] = "Python environment"};

/* Arguments: the kind, the program, options of pip. The file is the standard input. */
static const char script[] =
        "kind=$1 program=$2\n"
        "shift 2\n"
        "fail() { cat errors >>log; tail -n 5 errors >&2; exit 1; }\n"
        "case $kind in\n"
        "python)\n"
        "        cat >requirements.txt || exit 1\n"
        "        \"$program\" -m venv \"$PWD/env\" >errors 2>&1 || fail\n"
        "        env/bin/python -m pip install --no-input --disable-pip-version-check \"$@\" "
        "-r requirements.txt >>log 2>errors </dev/null || fail ;;\n"
        "micromamba)\n"
        "        cat >environment.yml || exit 1\n"
        "        \"$program\" create -y -p \"$PWD/env\" -f environment.yml >>log 2>errors </dev/null || fail "
        ";;\n"
        "*)\n"
        "        cat >environment.yml || exit 1\n"
        "        \"$program\" env create -q -p \"$PWD/env\" -f environment.yml >>log 2>errors </dev/null || "
        "fail ;;\n"
        "esac\n"
        "if [ \"$kind\" != python ] && [ ! -d env/conda-meta ]; then\n"
        "        echo \"$program made no environment\" >errors\n"
        "        fail\n"
        "fi\n"
        "size=$(du -sk env 2>errors) || fail\n"
        "sync -f env 2>errors || fail\n"
        "echo \"$size\"\n";

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

static const char *user_of(const struct attempt *at)
{
        return at->a->users_path ? at->t->user.name : "";
}

static const char *maker_of(const struct environments *all, enum environment_kind kind)
{
        if (kind == ENVIRONMENT_CONDA)
                return all->conda ? "" : NULL;
        return all->python;
}

static struct environment *find(const struct attempt *at, enum environment_kind kind,
                                const unsigned char *sha256, bool any_maker)
{
        const struct environments *all = at->a->environments;
        const char *maker = maker_of(all, kind);
        struct environment *e = all->first;
        while (e &&
               (e->kind != kind || memcmp(e->sha256, sha256, 32) != 0 || strcmp(e->user, user_of(at)) != 0 ||
                (!any_maker && (!maker || strcmp(e->maker, maker) != 0))))
                e = e->next;
        return e;
}

static void folder_name(uint64_t number, char room[32])
{
        snprintf(room, 32, FOLDER "%llu", (unsigned long long)number);
}

/* ---- the index */

static int write_index(struct agent *a, bool durable)
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

static void told(struct agent *a, const struct environment *e, bool here)
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
                folder_name(number, name);
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
                told(a, e, true);
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
                log_warn("msg=\"cannot remove an environment\" folder=%s error=%s", name,
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

static void drop(struct agent *a, struct environment *e)
{
        char name[32];
        folder_name(e->number, name);
        if (e->ready) {
                lru_take(&a->environments->by_use, &e->use);
                told(a, e, false);
                a->environments->dirty = true;
        }
        log_info("msg=\"an environment is removed\" folder=%s", name);
        environment_free(a->environments, e);
        remove_folder(a, name);
}

static void go(void *arg, struct lru_node *n)
{
        drop(arg, container_of(n, struct environment, use));
}

/* The index first says that it is gone. */
static void trim(struct agent *a)
{
        struct environments *all = a->environments;
        lru_trim(&all->by_use, a->config.environments_bytes, go, a);
        if (all->dirty)
                write_index(a, false);
}

bool environments_folder(struct agent *a, const char *name)
{
        if (!str_starts(str_of(name), STR(FOLDER)))
                return false;
        for (const struct environment *e = a->environments->first; e; e = e->next) {
                char known[32];
                folder_name(e->number, known);
                if (!strcmp(known, name))
                        return true;
        }
        remove_folder(a, name);
        return true;
}

/* ---- making */

/* The file's words may be long: the last ones, in one line. */
static void add_words(struct str errors, struct buf *out)
{
        struct str line;
        errors = str_trim(errors);
        if (errors.n > WORDS_MAX)
                errors = str_skip(errors, errors.n - WORDS_MAX);
        for (const char *between = ""; errors.n && str_cut(&errors, '\n', &line);)
                if ((line = str_trim(line)).n) {
                        buf_printf(out, "%s" STR_FMT, between, STR_ARG(line));
                        between = "; ";
                }
}

static bool read_size(struct str out, uint64_t *ret_bytes)
{
        struct str kib;
        out = str_trim(out);
        if (!str_word(&out, &kib) || str_to_u64(kib, ret_bytes) != 0 || *ret_bytes > UINT64_MAX >> 10)
                return false;
        *ret_bytes <<= 10;
        return true;
}

static void tell_waiting(struct agent *a, struct name_list *waiting, const char *why)
{
        for (size_t i = 0; i < waiting->n; i++) {
                const struct attempt_name *n = &waiting->v[i];
                struct attempt *at = agent_find(a, n->request, n->member, n->fence);
                if (!at || at->state != ATTEMPT_STAGING || !at->environment_waits)
                        continue;
                at->environment_waits = false;
                if (why) {
                        inputs_forget(at);
                        attempt_staged(at, HOLD_INPUT, why);
                } else {
                        stage_in(at);
                }
        }
        free(waiting->v);
}

static void made(struct environment *e, uint64_t bytes)
{
        struct agent *a = e->a;
        struct environments *all = a->environments;
        struct name_list waiting = e->waiting;
        e->waiting = (struct name_list){0};
        e->ready = true;
        e->use.bytes = bytes;
        e->use.pins++; /* until all have it */
        lru_put(&all->by_use, &e->use);
        if (write_index(a, true) < 0)
                all->dirty = true; /* it is made anew after a restart */
        told(a, e, true);
        log_info("msg=\"an environment is made\" kind=%s folder=" FOLDER "%llu bytes=%llu",
                 environment_kind_name(e->kind), (unsigned long long)e->number, (unsigned long long)bytes);
        tell_waiting(a, &waiting, NULL);
        e->use.pins--;
        trim(a);
}

static void on_made(void *arg, int status, struct str out, struct str errors)
{
        struct environment *e = arg;
        struct agent *a = e->a;
        BUF_CLEANUP struct buf why = {.max = 1024};
        uint64_t bytes = 0;
        e->command = NULL;
        if (status == 0 && read_size(out, &bytes)) {
                made(e, bytes);
        } else {
                struct name_list waiting = e->waiting;
                bool lost = status == ERRAND_LOST; /* not the file's fault: it is made anew */
                e->waiting = (struct name_list){0};
                buf_printf(&why, "cannot make the %s of %s: ", words[e->kind], e->file);
                add_words(errors, &why);
                log_info("msg=\"cannot make an environment\" error=%s", LOG_TEXT(buf_view(&why)));
                drop(a, e);
                tell_waiting(a, &waiting, lost ? NULL : buf_z(&why));
        }
        agent_turn_later(a);
}

/* Of what the agent has: the words of its makers, and the way out of the site. */
static bool passes(const char *variable)
{
        static const char *const heads[] = {
                "PATH=",          "LANG=",      "LC_",         "PIP_",
                "CONDA_",         "MAMBA_",     "http_proxy=", "https_proxy=",
                "no_proxy=",      "all_proxy=", "HTTP_PROXY=", "HTTPS_PROXY=",
                "NO_PROXY=",      "ALL_PROXY=", "SSL_CERT_",   "REQUESTS_CA_BUNDLE=",
                "CURL_CA_BUNDLE="};
        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
                if (!strncmp(variable, heads[i], strlen(heads[i])))
                        return true;
        return false;
}

static void maker_environment(const struct attempt *at, struct args *env)
{
        for (char *const *v = environ; *v; v++)
                if (passes(*v))
                        args_add(env, str_of(*v));
        args_add(env, STR("CONDA_ALWAYS_YES=true"));
        args_add(env, STR("MAMBA_ALWAYS_YES=true"));
        errand_environment(env, at->a->users_path ? at->t->user.name : at->a->user);
}

static void maker_words(const struct agent *a, enum environment_kind kind, struct args *argv)
{
        const struct environments *all = a->environments;
        bool python = kind == ENVIRONMENT_PYTHON;
        args_add(argv, STR("/bin/sh"));
        args_add(argv, STR("-c"));
        args_add(argv, str_of(script));
        args_add(argv, STR("drover-environment"));
        args_add(argv, python ? STR("python") : all->micro ? STR("micromamba") : STR("conda"));
        args_add(argv, str_of(python ? a->config.python : all->conda));
        for (size_t i = 0; python && i < a->config.pip_options.n; i++)
                args_add(argv, str_of(a->config.pip_options.v[i]));
}

/* A number that no folder has had: later than all that were made before. */
static uint64_t next_number(struct environments *all)
{
        uint64_t now = (uint64_t)clock_wall_ms();
        all->last_number = now > all->last_number ? now : all->last_number + 1;
        return all->last_number;
}

static int make(struct attempt *at, enum environment_kind kind, const Drover__SpoolRef *file,
                struct environment **ret, struct err *err)
{
        struct agent *a = at->a;
        struct environments *all = a->environments;
        const struct cached *contents = inputs_find_shipped(at, file);
        ARGS_CLEANUP struct args argv = {0}, env = {0};
        char name[32];
        int fd = contents ? cache_open_contents(a->cache, contents) : -ENOENT;
        if (fd < 0)
                return err_set(err, -EINVAL, "%s did not come: %s", file->name, strerror(-fd));
        uint64_t number = next_number(all);
        folder_name(number, name);
        if (!a->users_path && mkdirat(a->jobs, name, 0700) < 0) {
                int r = -errno;
                close(fd);
                return err_set(err, -EINVAL, "cannot make a folder for the %s of %s: %s", words[kind],
                               file->name, strerror(-r));
        }
        struct environment *e = mem_new(struct environment);
        *e = (struct environment){.a = a,
                                  .next = all->first,
                                  .kind = kind,
                                  .file = mem_dupz(file->name),
                                  .maker = mem_dupz(maker_of(all, kind)),
                                  .user = mem_dupz(user_of(at)),
                                  .number = number};
        memcpy(e->sha256, file->sha256.data, 32);
        all->first = e;
        maker_words(a, kind, &argv);
        maker_environment(at, &env);
        const struct errand_spec spec = {.owner = at->t->m->owner,
                                         .user = a->users_path ? at->t->user.name : NULL,
                                         .folder = name,
                                         .argv = &argv,
                                         .envp = env.v,
                                         .input_fd = fd,
                                         .timeout_ms = (int64_t)a->config.environment_limit_ms};
        log_info("msg=\"making an environment\" kind=%s file=%s folder=%s", environment_kind_name(kind),
                 LOG_TEXT(str_of(file->name)), name);
        e->command = errand_run(a->errands, &spec, on_made, e);
        close(fd);
        *ret = e;
        return 0;
}

/* ---- for attempts */

static void probe(struct agent *a);

static void wait_in(struct attempt *at, struct name_list *list)
{
        report_name(list, at);
        at->environment_waits = true;
}

/* Somebody may have removed it behind our back. */
static bool is_there(const struct environment *e)
{
        char path[64];
        snprintf(path, sizeof(path), FOLDER "%llu/env", (unsigned long long)e->number);
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
                               asked(at, &kind), words[kind]);
        if (!all->probed && all->timer) {
                wait_in(at, &all->waiting);
                if (!all->probe)
                        probe(at->a);
                return 1;
        }
        if (!maker_of(all, kind))
                return err_set(err, -EINVAL, "no %s is made at this place", words[kind]);
        struct environment *e = find(at, kind, file->sha256.data, false);
        if (e && e->ready && e->use.pins == 0 && !is_there(e)) {
                drop(at->a, e);
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
                               FILE_MAX >> 10, words[kind]);
        int r = e ? 0 : make(at, kind, file, &e, err);
        if (r < 0)
                return r;
        wait_in(at, &e->waiting);
        return 1;
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
                trim(at->a);
}

bool environments_path(const struct attempt *at, enum environment_kind *ret_kind, struct buf *out)
{
        const struct environment *e = at->environment;
        if (!e)
                return false;
        *ret_kind = e->kind;
        buf_printf(out, "%s/" FOLDER "%llu/env", at->a->jobs_path, (unsigned long long)e->number);
        return true;
}

/* ---- what can be made here */

void environments_attributes(const struct queue *q, struct buf *out)
{
        const struct environments *all = q->a->environments;
        if (!all || !all->probed || !strcmp(q->config->runner, "drover"))
                return;
        if (all->python)
                buf_printf(out, "HasPythonEnv = true; PythonVersion = \"%s\"; ", all->python_version);
        if (all->conda)
                buf_addz(out, "HasCondaEnv = true; ");
}

static void find_conda(struct agent *a)
{
        static const char *const names[] = {"conda", "mamba", "micromamba"}, *const folders[] = {"bin",
                                                                                                 "condabin"};
        struct environments *all = a->environments;
        BUF_CLEANUP struct buf path = {0};
        if (a->config.conda)
                buf_addz(&path, strcmp(a->config.conda, "none") != 0 ? a->config.conda : "");
        for (size_t i = 0; i < 3 && !a->config.conda && !path.n; i++)
                machine_find_program(names[i], &path);
        for (size_t i = 0; i < a->queue_count * 6 && !a->config.conda && !path.n; i++) {
                const char *root = a->queues[i / 6]->config->conda_root;
                if (root)
                        buf_printf(&path, "%s/%s/%s", root, folders[i / 3 % 2], names[i % 3]);
                if (root && access(buf_z(&path), X_OK) < 0)
                        buf_reset(&path);
        }
        if (!path.n)
                return;
        all->micro = str_ends(buf_view(&path), STR("micromamba"));
        all->conda = buf_take(&path);
}

static void go_on(struct agent *a)
{
        struct name_list waiting = a->environments->waiting;
        a->environments->waiting = (struct name_list){0};
        tell_waiting(a, &waiting, NULL);
}

void environments_back(struct agent *a)
{
        if (a->environments && a->environments->probed)
                go_on(a);
}

static void on_probed(void *arg, int status, struct str out, struct str errors)
{
        struct agent *a = arg;
        struct environments *all = a->environments;
        struct str tag, version;
        all->probe = NULL;
        all->probed = true;
        if (status == 0 && str_word(&out, &tag) && str_word(&out, &version)) {
                all->python = str_dupz(tag);
                all->python_version = str_dupz(version);
        } else if (strcmp(a->config.python, "none") != 0) {
                log_info("msg=\"no Python environments can be made\" error=%s",
                         LOG_TEXT(str_head(str_trim(errors), WORDS_MAX)));
        }
        for (size_t i = 0; i < a->queue_count; i++)
                offers_described(a->queues[i]);
        go_on(a);
        agent_turn_later(a);
}

static void probe(struct agent *a)
{
        struct environments *all = a->environments;
        ARGS_CLEANUP struct args words_of = {0};
        timer_stop(all->timer);
        find_conda(a);
        if (!strcmp(a->config.python, "none")) {
                on_probed(a, -1, STR(""), STR(""));
                return;
        }
        args_add(&words_of, str_of(a->config.python));
        args_add(&words_of, STR("-c"));
        args_add(&words_of, STR("import sys, venv, ensurepip; print(sys.implementation.cache_tag, "
                                "'.'.join(map(str, sys.version_info[:3])))"));
        all->probe = command_run(a->loop, &words_of, NULL, STR_NONE, PROBE_MS, on_probed, a);
}

static void on_timer(void *arg)
{
        struct agent *a = arg;
        if (!a->environments->probed && !a->environments->probe)
                probe(a);
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
                write_index(a, false);
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
