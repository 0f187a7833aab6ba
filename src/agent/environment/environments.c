/* A folder jobs/env.NUMBER is the sandbox of the user command that makes the environment: `env` is the
 * environment, `log` the output of the makers. The user command prints the size when everything is flushed
 * to the disk; then the index is written, and from then on the environment is used. A user command of an
 * earlier agent is ended by the shepherd's first list (attempt/event.c), and its folder belongs to no known
 * environment. */
#include "agent/environment/environments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/transfer/inputs.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/stores.h"
#include "base/heap.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "ev/children.h"
#include "place/lru.h"
#include "run/call/command.h"
#include "run/process/user_command.h"

#define INDEX       "environments"
#define INDEX_MAGIC "drover-environments-1"
#define INDEX_MAX   (16u << 20)
#define FILE_MAX    (1u << 20) /* largest file that an environment is made of */
/* delay of the probe after the start, unless a job asks before: short-lived agents need not probe */
#define FIRST_MS           1000
#define ENVIRONMENT_FOLDER "env."
#define PROBE_MS           60000
/* Packages of a file of requirements run code while they are installed, which sees no more than the job will.
 * The network is where its packages are. */
#define CONTAINED    (RUN_HIDE | RUN_NO_PRIVILEGES | RUN_FILTER | RUN_CONTAIN_ALL)
#define END_MS       3000         /* time after SIGTERM for a cancelled making */
#define SIZE_KIB_MAX (1ull << 40) /* limit of a reported size, which the job's user controls */
#define WORDS_MAX    180u         /* bytes of an error message: a hold's reason is not much longer */

struct environment {
        struct lru_node use; /* in the list when it is ready */
        struct agent *a;
        struct environment *next;
        enum environment_kind kind;
        unsigned char sha256[32];
        char *maker; /* identity of the Python that it was made with */
        char *user;  /* user that it belongs to; "" without `users` */
        uint64_t number;
        bool ready;
        char *file; /* the first attempt's name for it */
        struct command *command;
        int64_t began_ms; /* Unix: the making */
        struct name_list waiting;
        size_t wanted; /* number of attempts that still wait */
        bool unwanted; /* no attempt waits: the making is being ended, and a new one does not wait for it */
};
struct environments {
        struct environment *first;
        struct lru by_use;
        bool dirty;
        uint64_t last_number;
        struct timer *timer; /* timer of the probe; NULL: no environments are made */
        struct command *probe;
        bool probed;
        struct name_list waiting;      /* attempts that wait for the probe or the shepherd */
        char *python, *python_version; /* "cpython-311", "3.11.2"; NULL: none are made */
        char *conda;                   /* the program; NULL: none are made */
        bool micro;                    /* conda is micromamba */
};

static const char *const environment_words[] = {
        [ENVIRONMENT_CONDA] = "conda environment", [ENVIRONMENT_PYTHON] = "Python environment"};

/* Returns the identity of the program that makes this kind here; NULL: there is none. */
static const char *environments_maker(const struct environments *all, enum environment_kind kind)
{
        if (kind == ENVIRONMENT_CONDA)
                return all->conda ? "" : NULL;
        return all->python;
}

static const char *environment_user(const struct attempt *at)
{
        return at->a->users_path ? at->t->user.name : "";
}

/* ---- the index */

static void environment_folder(uint64_t number, char room[32])
{
        snprintf(room, 32, ENVIRONMENT_FOLDER "%llu", (unsigned long long)number);
}

static int environments_write(struct agent *a, bool durable)
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

static void environment_told(struct agent *a, const struct environment *e, bool here)
{
        BUF_CLEANUP struct buf url = {0};

        if (has_another(e))
                return;
        environment_url(e->kind, e->sha256, &url);
        if (here)
                stores_hold(a, buf_view(&url), e->use.bytes, CACHED_ENVIRONMENT);
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

/* Removes the folder as the user that made it: it may have many files, and with `users` the agent may not
 * touch them. */
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

static void environment_drop(struct agent *a, struct environment *e)
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

static void environment_evict(void *arg, struct lru_node *n)
{
        environment_drop(arg, container_of(n, struct environment, use));
}

/* Removes environments beyond the limit; the index is written before a folder is removed. */
static void environments_trim(struct agent *a)
{
        struct environments *all = a->environments;

        lru_trim(&all->by_use, a->config.environments_bytes, environment_evict, a);
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

/* ---- making */

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

/* ---- making */

/* Appends the last lines of an error output, which name the cause: as many whole lines as there is room for,
 * in one line. */
static void add_words(struct str errors, struct buf *out)
{
        struct str all = str_trim(errors), kept = STR_NONE, line;

        for (size_t end = all.n; end > 0;) {
                size_t start = (size_t)(str_rfind(str_head(all, end), '\n') + 1);

                if (kept.n && all.n - start > WORDS_MAX)
                        break;
                kept = str_skip(all, start);
                end = start ? start - 1 : 0;
        }
        kept = str_head(kept, WORDS_MAX);
        for (const char *between = ""; kept.n && str_cut(&kept, '\n', &line);)
                if ((line = str_trim(line)).n) {
                        buf_printf(out, "%s" STR_FMT, between, STR_ARG(line));
                        between = "; ";
                }
}

static bool read_size(struct str out, uint64_t *ret_bytes)
{
        struct str kib;

        out = str_trim(out);
        if (!str_word(&out, &kib) || str_to_u64(kib, ret_bytes) != 0 || *ret_bytes > SIZE_KIB_MAX)
                return false;
        *ret_bytes <<= 10;
        return true;
}

/* Takes the list of waiting attempts, which the caller then owns. The environment may be freed. */
static struct name_list take_waiting(struct environment *e)
{
        struct name_list waiting = e->waiting;

        e->waiting = (struct name_list){0};
        for (size_t i = 0; i < waiting.n; i++) {
                const struct attempt_name *n = &waiting.v[i];
                struct attempt *at = agent_find(e->a, n->request, n->member, n->fence);

                if (at && at->environment.making == e)
                        at->environment.making = NULL;
        }
        e->wanted = 0;
        return waiting;
}

/* Tells the waiting attempts. why: the error, or NULL. lost: the job is not at fault, and starts again. */
static void tell_waiting(struct agent *a, struct name_list *waiting, const char *why, bool lost)
{
        for (size_t i = 0; i < waiting->n; i++) {
                const struct attempt_name *n = &waiting->v[i];
                struct attempt *at = agent_find(a, n->request, n->member, n->fence);

                if (!at || at->state != ATTEMPT_STAGING || !at->environment.waits)
                        continue;
                at->environment.waits = false;
                if (why)
                        inputs_forget(at);
                if (why && lost) {
                        at->a->news->lost(at, why);
                } else if (why) {
                        at->a->news->staged(at, HOLD_INPUT, why);
                } else {
                        at->a->news->stage(at);
                }
        }
        free(waiting->v);
}

static void made(struct environment *e, uint64_t bytes)
{
        struct agent *a = e->a;
        struct environments *all = a->environments;
        struct name_list waiting = take_waiting(e);

        e->ready = true;
        e->unwanted = false;
        e->use.bytes = bytes;
        e->use.pins++; /* pinned until all waiters have it */
        lru_put(&all->by_use, &e->use);
        if (environments_write(a, true) < 0)
                all->dirty = true; /* it is made again after a restart */
        environment_told(a, e, true);
        log_info("msg=\"an environment is made\" kind=%s folder=" ENVIRONMENT_FOLDER "%llu bytes=%llu",
                 environment_kind_name(e->kind), (unsigned long long)e->number, (unsigned long long)bytes);
        tell_waiting(a, &waiting, NULL, false);
        e->use.pins--;
        environments_trim(a);
}

static void environment_unwanted(struct environment *e)
{
        e->unwanted = true;
        log_info("msg=\"no job wants an environment any more\" folder=" ENVIRONMENT_FOLDER "%llu",
                 (unsigned long long)e->number);
        command_end(e->command, END_MS);
}

/* Called when making failed. If the file is at fault, the waiting jobs are held. If the shepherd was lost,
 * it is made again. If the agent's lease has ended, everything was ended with it and the server has given up
 * the jobs, so they are given up here too. */
static void not_made(struct environment *e, int status, struct str errors)
{
        struct agent *a = e->a;
        struct name_list waiting = take_waiting(e);
        BUF_CLEANUP struct buf why = {.max = 1024};

        buf_printf(&why, "cannot make the %s of %s: ", environment_words[e->kind], e->file);
        add_words(errors, &why);
        if (!e->unwanted)
                log_info("msg=\"cannot make an environment\" error=\"%s\"", LOG_TEXT(buf_view(&why)));
        environment_drop(a, e);
        tell_waiting(a, &waiting, status == USER_COMMAND_LOST ? NULL : buf_z(&why),
                     status == USER_COMMAND_LEASE_ENDED);
}

static void on_made(void *arg, int status, struct str out, struct str errors)
{
        struct environment *e = arg;
        struct agent *a = e->a;
        uint64_t bytes = 0;

        e->command = NULL;
        if (status == 0 && read_size(out, &bytes))
                made(e, bytes);
        else
                not_made(e, status, errors);
        agent_turn_later(a);
}

/* Returns whether a variable of the agent's environment is passed to the makers: their settings, and the
 * site's proxies. */
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
        user_command_environment(env, at->a->users_path ? at->t->user.name : at->a->user);
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

/* Returns a number that no folder has had: larger than all that were used before. */
static uint64_t next_number(struct environments *all)
{
        uint64_t now = (uint64_t)clock_wall_ms();

        all->last_number = now > all->last_number ? now : all->last_number + 1;
        return all->last_number;
}

static int environment_make(struct attempt *at, enum environment_kind kind, const struct spool_ref *file,
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
        environment_folder(number, name);
        if (!a->users_path && mkdirat(a->jobs, name, 0700) < 0) {
                int r = -errno;

                close(fd);
                return err_set(err, -EINVAL, "cannot make a folder for the %s of %s: %s",
                               environment_words[kind], file->name, strerror(-r));
        }
        struct environment *e = mem_new(struct environment);
        *e = (struct environment){.a = a,
                                  .next = all->first,
                                  .kind = kind,
                                  .file = mem_dupz(file->name),
                                  .maker = mem_dupz(environments_maker(all, kind)),
                                  .user = mem_dupz(environment_user(at)),
                                  .number = number,
                                  .began_ms = clock_wall_ms()};
        memcpy(e->sha256, file->sha256, 32);
        all->first = e;
        maker_words(a, kind, &argv);
        maker_environment(at, &env);
        const struct user_command_spec spec = {.owner = at->t->m->owner,
                                               .user = a->users_path ? at->t->user.name : NULL,
                                               .folder = name,
                                               .argv = &argv,
                                               .envp = env.v,
                                               .input_fd = fd,
                                               .contain = at->q->config->contain & CONTAINED,
                                               .timeout_ms = (int64_t)a->config.environment_limit_ms};
        log_info("msg=\"making an environment\" kind=%s file=%s folder=%s", environment_kind_name(kind),
                 LOG_TEXT(str_of(file->name)), name);
        e->command = user_command_run(a->user_commands, &spec, on_made, e);
        close(fd);
        *ret = e;
        return 0;
}

/* ---- which environments can be made here */

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
        tell_waiting(a, &waiting, NULL, false);
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
                log_info("msg=\"no Python environments can be made\" error=\"%s\"",
                         LOG_TEXT(str_head(str_trim(errors), WORDS_MAX)));
        }
        for (size_t i = 0; i < a->queue_count; i++)
                queue_ad_changed(a->queues[i]);
        go_on(a);
        agent_turn_later(a);
}

static void environments_probe(struct agent *a)
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

/* ---- for attempts */

static struct environment *find_environment(const struct attempt *at, enum environment_kind kind,
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

static void wait_in(struct attempt *at, struct name_list *list)
{
        name_list_add(list, at);
        at->environment.waits = true;
}

/* Returns whether the folder still exists: somebody may have removed it. */
static bool is_there(const struct environment *e)
{
        char path[64];

        snprintf(path, sizeof(path), ENVIRONMENT_FOLDER "%llu/env", (unsigned long long)e->number);
        return faccessat(e->a->jobs, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void take_environment(struct attempt *at, struct environment *e)
{
        struct environments *all = at->a->environments;

        at->environment.used = e;
        e->use.pins++;
        lru_use(&all->by_use, &e->use);
        all->dirty = true;
}

int environments_want(struct attempt *at, struct err *err)
{
        struct environments *all = at->a->environments;
        enum environment_kind kind;
        const struct spool_ref *file = environment_file(at, &kind);

        if (at->environment.used)
                return 0;
        if (!file)
                return err_set(err, -EINVAL, "the file %s that its %s is made of did not come along",
                               environment_path_asked(at, &kind), environment_words[kind]);
        if (!all->probed && all->timer) {
                wait_in(at, &all->waiting);
                if (!all->probe)
                        environments_probe(at->a);
                return 1;
        }
        if (!environments_maker(all, kind))
                return err_set(err, -EINVAL, "no %s is made at this place", environment_words[kind]);
        struct environment *e = find_environment(at, kind, file->sha256, false);
        if (e && e->ready && e->use.pins == 0 && !is_there(e)) {
                environment_drop(at->a, e);
                e = NULL;
        }
        if (e && e->ready) {
                take_environment(at, e);
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
        at->environment.making = e;
        e->wanted++;
        return 1;
}

void environments_forget(struct attempt *at)
{
        struct environment *e = at->environment.making;

        at->environment.making = NULL;
        at->environment.waits = false;
        if (e && --e->wanted == 0 && !at->a->stopping)
                environment_unwanted(e);
}

bool environments_making(const struct attempt *at, struct buf *out, int64_t *ret_since_ms)
{
        const struct environment *e = at->environment.making;

        if (!e)
                return false;
        buf_printf(out, "making the %s of %s", environment_words[e->kind], e->file);
        *ret_since_ms = e->began_ms;
        return true;
}

void environments_adopt(struct attempt *at)
{
        enum environment_kind kind;
        const struct spool_ref *file = environment_asked(at) ? environment_file(at, &kind) : NULL;
        struct environment *e = file ? find_environment(at, kind, file->sha256, true) : NULL;

        if (e)
                take_environment(at, e);
}

void environments_release(struct attempt *at)
{
        struct environment *e = at->environment.used;

        at->environment.used = NULL;
        if (e && --e->use.pins == 0 && !at->a->stopping)
                environments_trim(at->a);
}

bool environments_path(const struct attempt *at, enum environment_kind *ret_kind, struct buf *out)
{
        const struct environment *e = at->environment.used;

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
