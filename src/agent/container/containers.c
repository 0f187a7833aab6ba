#include "agent/container/containers.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/container/container_step.h"
#include "agent/container/engine.h"
#include "agent/container/left.h"
#include "agent/model/sandbox.h"
#include "agent/transfer/stores.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/call/command.h"
#include "run/process/user_command.h"

#define ASK_MS       60000
#define AGAIN_MS     60000    /* pause after which a configured engine that does not answer is asked again */
#define FIRST_MS     1000     /* delay after the start until a search for an engine that is not configured */
#define IMAGES       "images" /* folder of Apptainer's images in the agent's folder */
#define IMAGES_MAX   4096u
#define REMOVE_TRIES 3

struct removal {
        struct removal *next;
        struct engine *e;
        struct command *command;
        char *name;
        unsigned tries;
        void (*done)(void *arg);
        void *arg;
};

static const enum container_engine order[] = {CONTAINER_PODMAN, CONTAINER_APPTAINER, CONTAINER_DOCKER};

struct command *containers_ask(struct engine *e, const struct attempt *at, const struct args *words,
                               command_done_fn *done, void *arg)
{
        if (!e->a->users_path || !at)
                return command_run(e->a->loop, words, NULL, STR_NONE, ASK_MS, done, arg);
        ARGS_CLEANUP struct args env = {0};
        BUF_CLEANUP struct buf folder = {0};
        const struct users_entry *user = &at->t->user;
        buf_printf(&folder, SANDBOX_OF_ENGINE "%s", user->name);
        containers_environment(at, &env);
        const struct user_command_spec spec = {.owner = at->t->m->owner,
                                               .user = user->name,
                                               .folder = buf_z(&folder),
                                               .argv = words,
                                               .envp = env.v,
                                               .timeout_ms = ASK_MS};
        return user_command_run(e->a->user_commands, &spec, done, arg);
}

/* Returns whether a variable of the agent's environment configures engines or their access to registries,
 * and is passed to a user's engine; other variables may be secrets. */
static bool is_engines(const char *variable)
{
        static const char *const heads[] = {
                "PATH=",        "LANG=",        "LC_",        "TZ=",         "CONTAINER",
                "STORAGE_",     "DOCKER_",      "APPTAINER",  "SINGULARITY", "REGISTRY_",
                "http_proxy=",  "https_proxy=", "no_proxy=",  "all_proxy=",  "HTTP_PROXY=",
                "HTTPS_PROXY=", "NO_PROXY=",    "ALL_PROXY=", "SSL_CERT_"};

        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
                if (!strncmp(variable, heads[i], strlen(heads[i])))
                        return true;
        return false;
}

/* The engine's settings are the admin's; its storage, and its sockets, are each user's. */
void containers_environment(const struct attempt *at, struct args *out)
{
        const struct passwd *pw = at->a->users_path ? getpwnam(at->t->user.name) : NULL;
        BUF_CLEANUP struct buf text = {0};

        for (char *const *e = environ; *e; e++)
                if (!pw || is_engines(*e))
                        args_add(out, str_of(*e));
        if (!pw)
                return;
        buf_printf(&text, "HOME=%s", at->t->user.home);
        args_add(out, buf_view(&text));
        buf_reset(&text);
        buf_printf(&text, "USER=%s", pw->pw_name);
        args_add(out, buf_view(&text));
        buf_reset(&text);
        buf_printf(&text, "XDG_RUNTIME_DIR=/run/user/%u", (unsigned)pw->pw_uid);
        struct str dir = str_skip(buf_view(&text), strlen("XDG_RUNTIME_DIR="));
        if (access(dir.p, X_OK) == 0 || errno == EACCES) /* exists for a user who is logged in or lingers */
                args_add(out, buf_view(&text));
}

const struct container_host *engine_host(const struct engine *e)
{
        return e && e->works ? &e->host : NULL;
}

bool engine_is_asked(const struct engine *e)
{
        return e && !e->works && !e->answered;
}

static void answered(struct engine *e)
{
        e->answered = true;
        container_steps_go_on(e->a);
}

bool engine_lists(const struct engine *e)
{
        return !e->unasked;
}

const struct container_settings *engine_settings(const struct engine *e)
{
        return &e->settings;
}

/* ---- facts about an engine */

void engine_attributes(const struct engine *e, struct buf *out)
{
        bool apptainer = e && e->host.engine == CONTAINER_APPTAINER;

        if (!e || !e->works)
                return;
        buf_printf(out,
                   "HasContainer = true; HasDocker = true; HasDockerURL = true; HasSingularity = %s; "
                   "HasSIF = %s; HasSandboxImage = %s; ContainerEngine = \"%s\"; ",
                   apptainer ? "true" : "false", apptainer ? "true" : "false", apptainer ? "true" : "false",
                   container_engine_name(e->host.engine));
        if (*e->host.version)
                buf_printf(out, "ContainerEngineVersion = \"%s\"; ", e->host.version);
}

void engine_requirement(const struct engine *e, struct buf *out)
{
        if (!e || !e->works)
                return;
        container_requirement(&e->settings, e->host.engine, e->unasked ? NULL : &e->images, out);
        away_requirement(e, out);
}

void engine_changed(struct engine *e)
{
        for (size_t i = 0; i < e->a->queue_count; i++)
                if (e->a->queues[i]->engine == e)
                        queue_ad_changed(e->a->queues[i]);
        agent_turn_later(e->a);
}

/* ---- images */

static bool args_has(const struct args *list, const char *word)
{
        for (size_t i = 0; i < list->n; i++)
                if (!strcmp(list->v[i], word))
                        return true;
        return false;
}

bool engine_has_image(const struct engine *e, const char *image)
{
        return args_has(&e->images, image);
}

static void on_image(void *arg, struct str name, uint64_t bytes)
{
        struct engine *e = arg;
        MEM_CLEANUP char *z = str_dupz(name);

        if (e->images.n >= IMAGES_MAX || args_has(&e->images, z))
                return;
        args_add(&e->images, name);
        stores_hold(e->a, name, bytes, CACHED_IMAGE);
}

static void list_images(struct engine *e);

static void on_images(void *arg, int status, struct str out, struct str errors)
{
        struct engine *e = arg;
        struct args before = e->images;

        e->command = NULL;
        if (status != 0) {
                log_warn("msg=\"cannot list the images\" engine=%s error=\"%s\"",
                         container_engine_name(e->host.engine), LOG_TEXT(container_words(errors)));
        } else {
                e->images = (struct args){0};
                container_each_image(e->host.engine, out, on_image, e);
                for (size_t i = 0; i < before.n; i++)
                        if (!args_has(&e->images, before.v[i]))
                                stores_release(e->a, str_of(before.v[i]));
                args_deinit(&before);
        }
        if (!e->works)
                log_info("msg=\"containers run here\" engine=%s version=\"%s\" images=%zu",
                         container_engine_name(e->host.engine), e->host.version, e->images.n);
        e->works = true;
        answered(e);
        engine_changed(e);
        containers_sweep(e->a);
        if (e->relist && !e->command)
                list_images(e);
}

static void list_images(struct engine *e)
{
        ARGS_CLEANUP struct args words = {0};

        e->relist = e->command != NULL; /* one command at a time */
        container_images(&e->settings, e->host.engine, &words);
        if (words.n && !e->relist)
                e->command = containers_ask(e, NULL, &words, on_images, e);
}

void containers_image_gone(struct engine *e)
{
        list_images(e);
}

/* ---- does it work? */

static void try_next(struct engine *e);

/* Engines of several queues share the folder. What a fetch that was killed has left goes, before there is
 * another. */
static void keep_images(struct engine *e)
{
        BUF_CLEANUP struct buf path = {0};
        bool first = true;

        for (struct engine *other = e->a->engines; other; other = other->next)
                first &= !other->settings.folder;
        buf_printf(&path, "%s/" IMAGES, e->a->config.dir);
        int r = fs_mkdirs_beneath(e->a->dir, IMAGES, 0755);
        int fd = r < 0 ? r : openat(e->a->dir, IMAGES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
                log_warn("msg=\"cannot keep images\" folder=\"%s\"", LOG_TEXT(buf_view(&path)));
                return;
        }
        if (first)
                fs_sweep(fd, fs_is_left);
        close(fd);
        free(e->settings.folder);
        e->settings.folder = buf_take(&path);
}

static void on_probe(void *arg, int status, struct str out, struct str errors)
{
        struct engine *e = arg;

        e->command = NULL;
        if (status != 0 || !container_probed(e->trying, out, &e->host)) {
                log_info("msg=\"a container engine does not work\" engine=%s error=\"%s\"",
                         container_engine_name(e->trying), LOG_TEXT(container_words(errors)));
                try_next(e);
                return;
        }
        ARGS_CLEANUP struct args words = {0};
        if (e->host.engine == CONTAINER_APPTAINER)
                keep_images(e);
        container_images(&e->settings, e->host.engine, &words);
        if (words.n) {
                list_images(e);
                return;
        }
        e->works = true; /* this engine has no list of images */
        answered(e);
        engine_changed(e);
}

static void probe(struct engine *e)
{
        ARGS_CLEANUP struct args words = {0};

        container_probe(&e->settings, e->trying, &words);
        e->command = containers_ask(e, NULL, &words, on_probe, e);
}

/* Checks the next engine. If one is configured, it is checked again later: a daemon may come up. */
static void try_next(struct engine *e)
{
        size_t i = 0;

        if (!e->settings.automatic) {
                timer_start(e->timer, AGAIN_MS);
                answered(e);
                return;
        }
        while (i < 3 && e->trying != CONTAINER_NONE && order[i] != e->trying)
                i++;
        BUF_CLEANUP struct buf path = {0};
        for (i = e->trying == CONTAINER_NONE ? 0 : i + 1; i < 3; i++)
                if (machine_find_program(container_engine_name(order[i]), &path)) {
                        e->trying = order[i];
                        probe(e);
                        return;
                }
        answered(e);
}

static void containers_on_timer(void *arg)
{
        struct engine *e = arg;

        if (e->settings.automatic)
                try_next(e);
        else
                probe(e);
}

/* ---- queues */

static bool same_lines(const struct config_list *a, const struct config_list *b)
{
        bool same = a->n == b->n;

        for (size_t i = 0; same && i < a->n; i++)
                same = !strcmp(a->v[i], b->v[i]);
        return same;
}

static void engine_free(struct engine *e)
{
        container_settings_deinit(&e->settings);
        timer_free(e->timer);
        args_deinit(&e->images);
        free(e);
}

int containers_queue(struct queue *q, struct err *err)
{
        struct agent *a = q->a;
        const struct config_list *lines = &q->config->container;
        bool remote = !queue_is_local(q);

        for (struct engine *e = a->engines; e; e = e->next)
                if (e->remote == remote && same_lines(e->lines, lines)) {
                        q->engine = e;
                        return 0;
                }
        struct engine *e = mem_new(struct engine);
        MEM_CLEANUP struct run_word *words = queue_words(lines);
        int r = container_settings_read(&e->settings, words, lines->n, err);
        bool none = (e->settings.automatic && (remote || a->users_path)) ||
                    (!e->settings.automatic && e->settings.engine == CONTAINER_NONE);
        if (r < 0 || none) {
                engine_free(e);
                return r;
        }
        e->a = a;
        e->lines = lines;
        e->unasked = remote || a->users_path;
        e->remote = remote;
        e->trying = e->settings.engine;
        e->host = (struct container_host){.engine = e->settings.engine, .rootless = geteuid() != 0};
        e->works = e->unasked;
        if (a->users_path)
                e->host.in_place = e->settings.engine == CONTAINER_APPTAINER;
        e->timer = timer_new(a->loop, containers_on_timer, e);
        if (!e->unasked)
                timer_start(e->timer, e->settings.automatic && lines->n == 0 ? FIRST_MS : 0);
        e->next = a->engines;
        a->engines = q->engine = e;
        return 0;
}

void containers_close(struct agent *a)
{
        struct engine *e, *next;

        for (e = a->engines; e; e = next) {
                next = e->next;
                command_cancel(e->command);
                pulls_close(e);
                aways_close(e);
                for (struct removal *r = e->removals, *after; r; r = after) {
                        after = r->next;
                        command_cancel(r->command);
                        free(r->name);
                        free(r);
                }
                engine_free(e);
        }
        a->engines = NULL;
}

/* ---- containers that are over */

static void containers_on_removed(void *arg, int status, struct str out, struct str errors);

/* Tries again to remove a container: its processes may have kept files busy, or another command the engine.
 * With `users` it is the user's engine, and the user may be gone. */
static bool removed_again(struct removal *r)
{
        ARGS_CLEANUP struct args words = {0};

        if (r->e->a->users_path || ++r->tries >= REMOVE_TRIES)
                return false;
        container_remove(&r->e->settings, r->e->host.engine, r->name, &words);
        r->command = containers_ask(r->e, NULL, &words, containers_on_removed, r);
        return true;
}

static void containers_on_removed(void *arg, int status, struct str out, struct str errors)
{
        struct removal *r = arg;
        bool failed = status != 0 && str_search(errors, STR("No such container")) < 0;

        (void)out;
        if (r->e->host.engine == CONTAINER_PODMAN)
                container_left_kill(r->name);
        if (failed && removed_again(r))
                return;
        if (failed)
                log_warn("msg=\"cannot remove a container\" container=%s error=\"%s\"", r->name,
                         LOG_TEXT(container_words(errors)));
        for (struct removal **at = &r->e->removals; *at; at = &(*at)->next)
                if (*at == r) {
                        *at = r->next;
                        break;
                }
        if (r->done)
                r->done(r->arg);
        free(r->name);
        free(r);
}

void containers_remove(struct engine *e, const struct attempt *at, const char *name, void (*done)(void *arg),
                       void *arg)
{
        ARGS_CLEANUP struct args words = {0};
        struct removal *r = mem_new(struct removal);

        container_remove(&e->settings, e->host.engine, name, &words);
        r->e = e;
        r->name = mem_dupz(name);
        r->done = done;
        r->arg = arg;
        r->next = e->removals;
        e->removals = r;
        r->command = containers_ask(e, at, &words, containers_on_removed, r);
}

void containers_remove_forget(struct engine *e, const void *arg)
{
        for (struct removal *r = e->removals; r; r = r->next)
                if (r->arg == arg)
                        r->done = NULL;
}

static void on_left(void *arg, int status, struct str out, struct str errors)
{
        struct engine *e = arg;
        struct str line;

        e->command = NULL;
        if (e->relist)
                list_images(e);
        if (status != 0)
                log_warn("msg=\"cannot list the containers\" error=\"%s\"",
                         LOG_TEXT(container_words(errors)));
        while (status == 0 && out.n && str_cut(&out, '\n', &line)) {
                struct run_id id;
                const struct attempt *at;
                MEM_CLEANUP char *name = str_dupz(line);

                if (!container_name_read(line, &id))
                        continue;
                at = agent_find(e->a, id.request, id.member, id.fence);
                if (at && at->state != ATTEMPT_DONE)
                        continue; /* its attempt removes it */
                log_info("msg=\"a container of an earlier life is removed\" container=%s", name);
                containers_remove(e, NULL, name, NULL, NULL);
        }
}

void containers_sweep(struct agent *a)
{
        for (struct engine *e = a->engines; e; e = e->next) {
                ARGS_CLEANUP struct args words = {0};

                if (e->swept || !a->swept || !e->works || e->unasked || e->command)
                        continue;
                e->swept = true;
                container_list(&e->settings, e->host.engine, a->instance, &words);
                if (words.n)
                        e->command = containers_ask(e, NULL, &words, on_left, e);
        }
}
