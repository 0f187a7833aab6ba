/* How environments are made, and of what. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/environment/environments_private.h"
#include "agent/queue/offers.h"
#include "agent/transfer/cache.h"
#include "base/clock.h"
#include "base/log.h"
#include "run/process/errand.h"

#define PROBE_MS 60000
/* Packages of a file of requirements run code while they are installed, which sees no more than the job will.
 * The network is where its packages are. */
#define CONTAINED (RUN_HIDE | RUN_NO_PRIVILEGES | RUN_FILTER | RUN_CONTAIN_ALL)
#define END_MS    3000 /* after SIGTERM, for what nobody wants any more */
#define SIZE_KIB_MAX                                                                                         \
        (1ull << 40)   /* its maker is the job's user, who may say anything: sums do not overflow */
#define WORDS_MAX 180u /* bytes of what went wrong: a hold's reason is not much longer */

const char *const environment_words[] = {
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

/* ---- making */

/* What is wrong is said last: as many whole lines from the end as there is room for, in one line. */
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

/* Those that waited for it, the caller's now; it may go. */
static struct name_list take_waiting(struct environment *e)
{
        struct name_list waiting = e->waiting;
        e->waiting = (struct name_list){0};
        for (size_t i = 0; i < waiting.n; i++) {
                const struct attempt_name *n = &waiting.v[i];
                struct attempt *at = agent_find(e->a, n->request, n->member, n->fence);
                if (at && at->making == e)
                        at->making = NULL;
        }
        e->wanted = 0;
        return waiting;
}

/* `lost`, if why is not NULL: it is nobody's fault, and the job begins anew. */
static void tell_waiting(struct agent *a, struct name_list *waiting, const char *why, bool lost)
{
        for (size_t i = 0; i < waiting->n; i++) {
                const struct attempt_name *n = &waiting->v[i];
                struct attempt *at = agent_find(a, n->request, n->member, n->fence);
                if (!at || at->state != ATTEMPT_STAGING || !at->environment_waits)
                        continue;
                at->environment_waits = false;
                if (why)
                        inputs_forget(at);
                if (why && lost) {
                        attempt_lost(at, why);
                } else if (why) {
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
        struct name_list waiting = take_waiting(e);
        e->ready = true;
        e->unwanted = false;
        e->use.bytes = bytes;
        e->use.pins++; /* until all have it */
        lru_put(&all->by_use, &e->use);
        if (environments_write(a, true) < 0)
                all->dirty = true; /* it is made anew after a restart */
        environment_told(a, e, true);
        log_info("msg=\"an environment is made\" kind=%s folder=" ENVIRONMENT_FOLDER "%llu bytes=%llu",
                 environment_kind_name(e->kind), (unsigned long long)e->number, (unsigned long long)bytes);
        tell_waiting(a, &waiting, NULL, false);
        e->use.pins--;
        environments_trim(a);
}

void environment_unwanted(struct environment *e)
{
        e->unwanted = true;
        log_info("msg=\"no job wants an environment any more\" folder=" ENVIRONMENT_FOLDER "%llu",
                 (unsigned long long)e->number);
        command_end(e->command, END_MS);
}

/* A file that cannot be made is its job's fault. A shepherd that went away is nobody's: it is made anew. When
 * our lease has ended, all that ran was ended with it, and the server has given the jobs up: so do we. */
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
        tell_waiting(a, &waiting, status == ERRAND_LOST ? NULL : buf_z(&why), status == ERRAND_LEASE_ENDED);
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

int environment_make(struct attempt *at, enum environment_kind kind, const Drover__SpoolRef *file,
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
                                         .contain = at->q->config->contain & CONTAINED,
                                         .timeout_ms = (int64_t)a->config.environment_limit_ms};
        log_info("msg=\"making an environment\" kind=%s file=%s folder=%s", environment_kind_name(kind),
                 LOG_TEXT(str_of(file->name)), name);
        e->command = errand_run(a->errands, &spec, on_made, e);
        close(fd);
        *ret = e;
        return 0;
}

/* ---- what can be made here */

const char *environments_maker(const struct environments *all, enum environment_kind kind)
{
        if (kind == ENVIRONMENT_CONDA)
                return all->conda ? "" : NULL;
        return all->python;
}

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
                offers_described(a->queues[i]);
        go_on(a);
        agent_turn_later(a);
}

void environments_probe(struct agent *a)
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
