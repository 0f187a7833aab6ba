/* Builds the engines' arguments. podman and docker share nearly all of them; differences are explained where
 * they occur. */
#include "run/container/container.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/job/image.h"
#include "base/mem.h"

#define PLAIN_MAX      4000          /* longest variable that is written to the file */
#define CONTAINER_INIT "/proc/1/exe" /* in the container; engines put it under names of their own */

static void container_add_word(struct args *a, const char *word)
{
        args_add(a, str_of(word));
}

static void add_all(struct args *a, const struct args *words)
{
        for (size_t i = 0; i < words->n; i++)
                container_add_word(a, words->v[i]);
}

__attribute__((format(printf, 2, 3))) static void addf(struct args *a, const char *fmt, ...)
{
        BUF_CLEANUP struct buf b = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        args_add(a, buf_view(&b));
}

/* Appends the engine, its own options, and the verb: words up to a NULL. */
static void verb_words(const struct container_settings *s, enum container_engine e, struct args *out,
                       const char *const *words)
{
        container_add_word(out, container_program(s, e));
        add_all(out, &s->options);
        for (; *words; words++)
                container_add_word(out, *words);
}
#define verb(s, e, out, ...) verb_words(s, e, out, (const char *const[]){__VA_ARGS__, NULL})

/* ---- images */

static bool has_parent(struct str path)
{
        struct str part;

        while (path.n && str_cut(&path, '/', &part))
                if (str_eqz(part, ".."))
                        return true;
        return false;
}

int container_image(enum container_engine e, struct str image, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf name = {0};
        enum image_kind kind = image_name(image, &name);

        for (size_t i = 0; i < image.n; i++)
                if ((unsigned char)image.p[i] <= ' ' || image.p[i] == 127)
                        return err_set(err, -EINVAL, "the image's name has a blank in it");
        if (image.n == 0 || image.p[0] == '-')
                return err_set(err, -EINVAL, "'" STR_FMT "' is no name of an image", STR_ARG(image));
        if (kind == IMAGE_FILE && has_parent(image)) /* ".." would evade the patterns of allowed paths */
                return err_set(err, -EINVAL, "an image's path cannot have .. in it");
        if (e != CONTAINER_APPTAINER && kind != IMAGE_NAME)
                return err_set(err, -EINVAL, "%s runs images of registries, not " STR_FMT,
                               container_engine_name(e), STR_ARG(str_head(image, 200)));
        if (kind == IMAGE_FILE && !str_starts(buf_view(&name), STR("/")) &&
            !str_starts(buf_view(&name), STR("./")))
                buf_addz(out, "./");
        buf_str(out, buf_view(&name));
        return 0;
}

/* ---- a container's name */

void container_name(const char *instance, struct run_id id, char room[96])
{
        snprintf(room, 96, "drover-%.8s-%llu.%u.%u.%u", instance, (unsigned long long)id.request, id.member,
                 id.fence, id.step);
}

bool container_name_read(struct str name, struct run_id *ret)
{
        MEM_CLEANUP char *z = str_dupz(str_skip(name, (size_t)(str_rfind(name, '-') + 1)));
        unsigned long long request;
        unsigned member, fence, step;

        if (!str_starts(name, STR("drover-")) ||
            sscanf(z, "%llu.%u.%u.%u", &request, &member, &fence, &step) != 4)
                return false;
        *ret = (struct run_id){request, member, fence, step, 0};
        return true;
}

/* ---- the environment */

static bool plain(const char *word)
{
        size_t n = strlen(word), name = strcspn(word, "=");

        if (n > PLAIN_MAX || name == 0 || name == n || strpbrk(word, "\"'\\#$\n\r") || word[name + 1] == 0 ||
            strchr(" \t", word[name + 1]) || strchr(" \t", word[n - 1]))
                return false;
        for (size_t i = 0; i < name; i++)
                if (word[i] == ' ' || word[i] == '*')
                        return false;
        return true;
}

/* Returns whether a shell accepts the variable's name: apptainer writes a script of them, and a single bad
 * name makes it drop all of them. */
static bool is_shell_name(const char *word)
{
        size_t n = strcspn(word, "=");

        for (size_t i = 0; i < n; i++)
                if (!(word[i] == '_' || (word[i] >= 'a' && word[i] <= 'z') ||
                      (word[i] >= 'A' && word[i] <= 'Z') || (i && word[i] >= '0' && word[i] <= '9')))
                        return false;
        return n > 0;
}

/* Sets variables for apptainer. HOME is set by an option instead: apptainer rejects it here with a message
 * on the job's standard error. */
static void apptainer_environment(const char *prefix, char *const *envp, struct args *out)
{
        addf(out, "%s_NO_EVAL=1", prefix); /* do not evaluate values as shell code */
        for (; envp && *envp; envp++)
                if (is_shell_name(*envp) && !str_starts(str_of(*envp), STR("HOME=")) &&
                    !str_starts(str_of(*envp), STR(MOUNT_VARIABLE)))
                        addf(out, "%sENV_%s", prefix, *envp);
}

void container_environment(const struct container_settings *s, enum container_engine e, char *const *envp,
                           struct buf *file, struct args *words, struct args *engine_env)
{
        bool old = strstr(container_program(s, e), "singularity") != NULL;

        if (e == CONTAINER_APPTAINER) {
                apptainer_environment(old ? "SINGULARITY" : "APPTAINER", envp, engine_env);
                return;
        }
        for (; envp && *envp; envp++) {
                if (str_starts(str_of(*envp), STR(MOUNT_VARIABLE)))
                        continue;
                if (plain(*envp)) {
                        buf_addz(file, *envp);
                        buf_char(file, '\n');
                } else {
                        container_add_word(words, "--env");
                        container_add_word(words, *envp);
                }
        }
}

/* ---- starting */

static int mountable(const char *path, struct err *err)
{
        return strchr(path, ':') || strchr(path, ',')
                       ? err_set(err, -EINVAL, "cannot mount %s in a container: there is a ':' or ',' in it",
                                 path)
                       : 0;
}

static bool is_below(const char *path, const char *folder)
{
        size_t n = strlen(folder);

        return !strncmp(path, folder, n) && (path[n] == 0 || path[n] == '/');
}

/* Mounts empty folders over the covered ones. */
static int covers(const struct container_job *j, enum container_engine e, struct args *out, struct err *err)
{
        int r = 0;

        for (char *const *f = j->covered; r == 0 && f && *f; f++) {
                r = e == CONTAINER_APPTAINER
                            ? err_set(err, -EINVAL, "cannot mount %s in a container: %s is in it", j->cwd, *f)
                            : mountable(*f, err);
                addf(out, "--mount=type=tmpfs,destination=%s,tmpfs-size=65536%s", *f,
                     e == CONTAINER_PODMAN ? ",notmpcopyup"
                                           : ""); /* docker never copies the folder's content */
        }
        return r;
}

bool container_shows_cwd(const struct container_job *j)
{
        return j->cwd && !is_below(j->cwd, j->target ? j->target : j->sandbox);
}

static int mounts(const struct container_settings *s, const struct container_job *j, const char *option,
                  struct args *out, struct err *err)
{
        const char *target = j->target ? j->target : j->sandbox;
        int r = mountable(j->sandbox, err);

        if (r == 0)
                r = mountable(target, err);
        if (r == 0 && j->cwd)
                r = mountable(j->cwd, err);
        if (r == 0 && j->mount_program)
                r = mountable(j->mount_program, err);
        if (r < 0)
                return r;
        container_add_word(out, option);
        addf(out, "%s:%s", j->sandbox, target);
        if (container_shows_cwd(j)) {
                container_add_word(out, option);
                addf(out, "%s:%s", j->cwd, j->cwd);
        }
        if (j->mount_program) {
                container_add_word(out, option);
                addf(out, "%s:%s:ro", j->mount_program, j->mount_program);
        }
        for (size_t i = 0; i < j->mount_count; i++) {
                r = mountable(j->mounts[i].from, err);
                if (r == 0)
                        r = mountable(j->mounts[i].to, err);
                if (r < 0)
                        return r;
                container_add_word(out, option);
                addf(out, "%s:%s", j->mounts[i].from, j->mounts[i].to);
        }
        for (size_t i = 0; i < s->mounts.n; i++) {
                const char *m = s->mounts.v[i], *colon = strchr(m, ':');

                container_add_word(out, option);
                if (!colon || !strcmp(colon, ":ro"))
                        addf(out, "%.*s:%s", colon ? (int)(colon - m) : (int)strlen(m), m, m);
                else
                        container_add_word(out, m);
        }
        return 0;
}

/* Appends limits for an engine that makes its own control group. Processors are shared by weight, as for
 * processes. */
static void limits(const struct container_job *j, struct args *out)
{
        if (j->memory_bytes) {
                addf(out, "--memory=%llu", (unsigned long long)j->memory_bytes);
                addf(out, "--memory-swap=%llu", (unsigned long long)j->memory_bytes);
        }
        if (j->cpus_milli)
                addf(out, "--cpu-shares=%llu", (unsigned long long)(j->cpus_milli * 1024 / 1000));
        if (j->pids)
                addf(out, "--pids-limit=%llu", (unsigned long long)j->pids);
}

static void user(const struct container_host *h, const struct container_job *j, struct args *out)
{
        /* rootless podman maps user ids; keep the user's own, so that files belong to the user */
        bool rootless = h->engine == CONTAINER_PODMAN && h->rootless;

        if (rootless && !j->one_id)
                container_add_word(out, "--userns=keep-id");
        if (rootless && j->one_id)
                container_add_word(out, "--user=0:0");
        else
                addf(out, "--user=%u:%u", j->uid, j->gid);
        container_add_word(out, "--cap-drop=all");
        container_add_word(out, "--security-opt=no-new-privileges");
        container_add_word(out, "--security-opt=label=disable"); /* SELinux would deny access to the mounts */
}

/* docker puts an init of its own under this name, unless the job mounts another file there. */
#define DOCKER_INIT "/sbin/docker-init"

static int docker_only(const struct container_job *j, struct args *out, struct err *err)
{
        int r = j->init ? mountable(j->init, err) : 0;

        if (r == 0 && j->init) {
                container_add_word(out, "--volume");
                addf(out, "%s:" DOCKER_INIT ":ro", j->init);
        }
        if (j->init && j->seen)
                add_all(out, j->seen);
        if (j->gpus)
                addf(out, "--gpus=\"device=%s\"", j->gpus);
        return r;
}

static void podman_only(const struct container_host *h, const struct container_job *j, struct args *out)
{
        container_add_word(out, "--log-driver=none");
        if (j->init)
                addf(out, "--init-path=%s", j->init);
        if (j->init && j->seen)
                add_all(out, j->seen);
        if (j->files)
                addf(out, "--ulimit=nofile=%1$llu:%1$llu", (unsigned long long)j->files);
        if (j->processes)
                addf(out, "--ulimit=nproc=%1$llu:%1$llu", (unsigned long long)j->processes);
        if (h->in_place)
                container_add_word(out, "--cgroups=disabled");
        if (j->gpus) {
                struct str rest = str_of(j->gpus), id;

                while (rest.n && str_cut(&rest, ',', &id))
                        addf(out, "--device=nvidia.com/gpu=" STR_FMT, STR_ARG(id));
        }
}

/* Returns the working folder; NULL: the image's. */
static const char *workdir(const struct container_job *j)
{
        return j->own_workdir ? j->workdir : j->cwd ? j->cwd : j->target ? j->target : j->sandbox;
}

static int start_oci(const struct container_settings *s, const struct container_host *h,
                     const struct container_job *j, struct args *out, struct err *err)
{
        const char *network = j->network && *j->network ? j->network : s->network;

        verb(s, h->engine, out, "run", "--init", "--interactive", "--pull");
        container_add_word(out, j->self_removing && s->pull == CONTAINER_MISSING ? "missing"
                                : j->self_removing && s->pull == CONTAINER_ALWAYS
                                        ? "always"
                                        : "never"); /* otherwise the image has been pulled already */
        if (j->self_removing)
                container_add_word(out, "--rm");
        addf(out, "--name=%s", j->name);
        addf(out, "--label=" CONTAINER_LABEL "=%s", j->instance);
        user(h, j, out);
        if (network)
                addf(out, "--network=%s", network);
        int r = mounts(s, j, "--volume", out, err);
        if (r == 0)
                r = covers(j, h->engine, out, err);
        if (r < 0)
                return r;
        if (workdir(j))
                addf(out, "--workdir=%s", workdir(j));
        if (h->engine == CONTAINER_PODMAN)
                podman_only(h, j, out);
        else
                r = docker_only(j, out, err);
        if (r < 0)
                return r;
        if (!h->in_place)
                limits(j, out);
        if (j->env_file)
                addf(out, "--env-file=%s", j->env_file);
        if (j->env)
                add_all(out, j->env);
        add_all(out, &s->run_options);
        if (j->override_entrypoint && *j->program)
                addf(out, "--entrypoint=%s", j->program);
        container_add_word(out, j->image);
        if (!j->override_entrypoint && *j->program)
                container_add_word(out, j->program);
        return 0;
}

static int start_apptainer(const struct container_settings *s, const struct container_job *j,
                           struct args *out, struct err *err)
{
        const char *network = j->network && *j->network ? j->network : s->network;
        BUF_CLEANUP struct buf image = {0};

        /* --no-home mounts no home, and --home then sets HOME. --silent leaves only errors, since all output
         * goes to the job's standard error. */
        verb(s, CONTAINER_APPTAINER, out, "--silent", *j->program ? "exec" : "run", "--containall",
             "--cleanenv", "--no-privs", "--no-home", "--home");
        addf(out, "%s:%s", j->sandbox,
             j->home && *j->home == '/' && !strpbrk(j->home, ":,") ? j->home
             : j->target                                           ? j->target
                                                                   : j->sandbox);
        int r = mounts(s, j, "--bind", out, err);
        if (r == 0)
                r = covers(j, CONTAINER_APPTAINER, out, err);
        if (r < 0)
                return r;
        if (workdir(j)) {
                container_add_word(out, "--pwd");
                container_add_word(out, workdir(j));
        }
        if (network && strcmp(network, "host") != 0) {
                container_add_word(out, "--net");
                container_add_word(out, "--network");
                container_add_word(out, network);
        }
        if (j->gpus)
                container_add_word(out, "--nv");
        add_all(out, &s->run_options);
        if (str_starts(str_of(j->image), STR("./"))) /* a file in the job's folder */
                buf_printf(&image, "%s/%s", j->sandbox, j->image + 2);
        else if (!container_keeps(s, CONTAINER_APPTAINER, j->image, &image))
                image_url(str_of(j->image), &image);
        args_add(out, buf_view(&image));
        if (*j->program)
                container_add_word(out, j->program);
        return 0;
}

int container_start(const struct container_settings *s, const struct container_host *h,
                    const struct container_job *j, struct args *out, struct err *err)
{
        int r = h->engine == CONTAINER_APPTAINER ? start_apptainer(s, j, out, err)
                                                 : start_oci(s, h, j, out, err);

        for (char *const *a = j->argv + 1; r == 0 && j->argv[0] && *a; a++)
                container_add_word(out, *a);
        return r;
}

void container_exec(const struct container_settings *s, enum container_engine e, const char *name,
                    const struct container_command *x, struct args *out)
{
        verb(s, e, out, "exec");
        if (x->input)
                container_add_word(out, "--interactive");
        if (x->terminal)
                container_add_word(out, "--tty");
        for (size_t i = 0; x->env && i < x->env->n; i++) {
                container_add_word(out, "--env");
                container_add_word(out, x->env->v[i]);
        }
        container_add_word(out, name);
        if (x->init) {
                container_add_word(out, CONTAINER_INIT);
                container_add_word(out, "--");
        }
        for (size_t i = 0; i < x->argc; i++)
                container_add_word(out, x->argv[i]);
}

/* ---- other verbs */

void container_probe(const struct container_settings *s, enum container_engine e, struct args *out)
{
        if (e == CONTAINER_PODMAN)
                verb(s, e, out, "info", "--format",
                     "{{.Version.Version}} {{.Host.OCIRuntime.Name}} {{.Host.Security.Rootless}}");
        else if (e == CONTAINER_DOCKER)
                verb(s, e, out, "version", "--format", "{{.Server.Version}}");
        else
                verb(s, e, out, "--version");
}

void container_pull(const struct container_settings *s, enum container_engine e, const char *image,
                    struct args *out)
{
        BUF_CLEANUP struct buf file = {0}, url = {0};

        if (e != CONTAINER_APPTAINER) {
                verb(s, e, out, "pull", "--quiet", image);
        } else if (container_keeps(s, e, image, &file)) {
                image_url(str_of(image), &url);
                container_add_word(out, "sh");
                container_add_word(out, "-c");
                container_add_word(
                        out, "url=$1; shift; part=$(printf '%s.%08x.tmp' \"$0\" $$); " /* see fs_is_left */
                             "trap 'rm -f \"$part\"' EXIT; trap 'exit 1' INT TERM; "
                             "\"$@\" \"$part\" \"$url\" && mv -f \"$part\" \"$0\"");
                args_add(out, buf_view(&file));
                args_add(out, buf_view(&url));
                verb(s, e, out, "--silent", "pull", "--disable-cache", "--force");
        }
}

void container_exists(const struct container_settings *s, enum container_engine e, const char *image,
                      struct args *out)
{
        BUF_CLEANUP struct buf file = {0};

        if (e != CONTAINER_APPTAINER)
                verb(s, e, out, "image", "inspect", "--format", "{{.Id}}", image);
        else if (container_keeps(s, e, image, &file)) {
                container_add_word(out, "test");
                container_add_word(out, "-s");
                args_add(out, buf_view(&file));
        }
}

void container_images(const struct container_settings *s, enum container_engine e, struct args *out)
{
        static const char *const find[] = {"-maxdepth", "1", "-name", "*.sif", "-printf", "%f %sB\n"};

        if (e != CONTAINER_APPTAINER) {
                verb(s, e, out, "images", "--format", "{{.Repository}}:{{.Tag}} {{.Size}}");
        } else if (s->folder) {
                container_add_word(out, "find");
                container_add_word(out, s->folder);
                for (size_t i = 0; i < sizeof(find) / sizeof(*find); i++)
                        container_add_word(out, find[i]);
        }
}

void container_list(const struct container_settings *s, enum container_engine e, const char *instance,
                    struct args *out)
{
        BUF_CLEANUP struct buf filter = {0};

        buf_printf(&filter, "label=" CONTAINER_LABEL "=%s", instance);
        if (e != CONTAINER_APPTAINER)
                verb(s, e, out, "ps", "--all", "--filter", buf_z(&filter), "--format", "{{.Names}}");
}

void container_remove(const struct container_settings *s, enum container_engine e, const char *name,
                      struct args *out)
{
        if (e == CONTAINER_PODMAN)
                verb(s, e, out, "rm", "--force", "--ignore", "--volumes", "--time", "0", name);
        else if (e == CONTAINER_DOCKER)
                verb(s, e, out, "rm", "--force", "--volumes", name);
}

void container_inspect(const struct container_settings *s, enum container_engine e, const char *name,
                       struct args *out)
{
        if (e != CONTAINER_APPTAINER)
                verb(s, e, out, "inspect", "--type", "container", "--format", "{{.State.OOMKilled}} {{.Id}}",
                     name);
}
