/* Describes a step as a job of the other server: its attributes, and the files that it needs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/job/args.h"
#include "base/job/environment.h"
#include "base/mem.h"
#include "base/set.h"
#include "run/drover/describe.h"
#include "run/drover/state.h"
#include "run/drover/tasks.h"
#include "run/drover/user.h"
#include "run/process/shepherd_protocol.h"

#define DEPTH_MAX 32
#define PROGRAM   "drover.program"
#define INPUT     "drover.stdin"
/* File system domain of no place, so that no place uses the sandbox's files directly. */
#define NO_DOMAIN "drover-hop"

void remote_quoted(struct buf *out, struct str s)
{
        buf_char(out, '"');
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '"' || s.p[i] == '\\')
                        buf_char(out, '\\');
                if (s.p[i] == '\n')
                        buf_addz(out, "\\n");
                else
                        buf_char(out, s.p[i]);
        }
        buf_char(out, '"');
}

/* ---- files */

static int add_file(struct remote_files *files, const char *path, const char *name, const struct stat *st)
{
        if (files->n == REMOTE_FILES_MAX)
                return -E2BIG;
        MEM_GROW(files->v, files->cap, files->n + 1);
        files->v[files->n++] = (struct remote_file){.path = mem_dupz(path),
                                                    .name = mem_dupz(name),
                                                    .size = (uint64_t)st->st_size,
                                                    .mode = st->st_mode & 0777};
        return 0;
}

/* Adds the regular files of a folder; symbolic links are not followed. Names that begin with ".drover_" at
 * the top are the agent's. */
static int add_folder(struct remote_files *files, const char *dir, const char *inner, unsigned depth)
{
        DIR *d = depth > DEPTH_MAX ? NULL : opendir(dir);
        struct dirent *e;
        int r = 0;

        if (!d)
                return depth > DEPTH_MAX ? -ELOOP : errno == ENOENT ? 0 : -errno;
        while (r == 0 && (e = readdir(d))) {
                BUF_CLEANUP struct buf path = {0}, name = {0};
                struct stat st;

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
                    (depth == 0 && str_starts(str_of(e->d_name), STR(".drover_"))))
                        continue;
                buf_printf(&path, "%s/%s", dir, e->d_name);
                buf_printf(&name, "%s%s%s", inner, *inner ? "/" : "", e->d_name);
                if (lstat(buf_z(&path), &st) < 0)
                        r = errno == ENOENT ? 0 : -errno;
                else if (S_ISDIR(st.st_mode))
                        r = add_folder(files, buf_z(&path), buf_z(&name), depth + 1);
                else if (S_ISREG(st.st_mode))
                        r = add_file(files, buf_z(&path), buf_z(&name), &st);
        }
        closedir(d);
        return r;
}

static bool beneath(struct str path, const char *dir)
{
        struct str d = str_of(dir);

        return str_starts(path, d) && path.n > d.n + 1 && path.p[d.n] == '/';
}

/* Returns whether the path belongs to the operating system, which every machine has. */
static bool of_the_system(struct str path)
{
        static const char *const dirs[] = {"/bin",   "/sbin", "/usr", "/lib",  "/lib64",
                                           "/lib32", "/opt",  "/nix", "/snap", "/etc"};

        for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
                if (beneath(path, dirs[i]))
                        return true;
        return false;
}

/* Adds a file from outside of the sandbox, under a name that is unused there. False: there is no such file.
 */
static bool add_outside(struct remote_task *t, const char *path, const char *name)
{
        struct stat st;

        if (t->remote->user) { /* the user's script looks for it */
                *(strcmp(name, PROGRAM) != 0 ? &t->stdin : &t->program) = mem_dupz(path);
                return false;
        }
        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, R_OK) < 0)
                return false;
        if (add_file(&t->files, path, name, &st) != 0)
                return false;
        t->files.v[t->files.n - 1].outside = true;
        return true;
}

/* ---- the ad */

static void add_attribute(struct remote_task *t, const char *name, const struct buf *value, bool is_text)
{
        MEM_GROW(t->words, t->word_cap, t->word_count + 1);
        t->words[t->word_count++] = (struct remote_word){mem_dupz(name), str_dupz(buf_view(value)), is_text};
}

static void describe_text(struct remote_task *t, const char *name, struct str value)
{
        BUF_CLEANUP struct buf b = {0};

        buf_str(&b, value);
        add_attribute(t, name, &b, true);
}

static void expression(struct remote_task *t, const char *name, struct str value)
{
        BUF_CLEANUP struct buf b = {0};

        buf_str(&b, value);
        add_attribute(t, name, &b, false);
}

static void number(struct remote_task *t, const char *name, uint64_t value)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "%llu", (unsigned long long)value);
        add_attribute(t, name, &b, false);
}

/* Returns whether the last agent sets the variable itself, which is then left out. */
static bool is_place_s(const struct remote_user *u, const struct run_spec *s, struct str word)
{
        static const char *const names[] = {
                SHEPHERD_MARKER, "DROVER_QUEUE=", "DROVER_CPUS=", "PATH=/usr/local/bin:/usr/bin:/bin"};
        struct str name = STR_NONE, value = word;

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (str_starts(word, str_of(names[i])))
                        return true;
        str_cut(&value, '=', &name);
        if (str_eqz(value, s->sandbox))
                return true;
        bool home = str_eqz(name, "HOME"), user = str_eqz(name, "USER") || str_eqz(name, "LOGNAME");
        if (!home && !user)
                return false;
        const char *ours = u ? (home ? u->home : u->name)
                             : getenv(home                    ? "HOME"
                                      : str_eqz(name, "USER") ? "USER"
                                                              : "LOGNAME");
        return !ours || str_eqz(value, ours);
}

static void words(struct remote_task *t, const struct run_spec *s)
{
        ARGS_CLEANUP struct args args = {0}, env = {0};
        BUF_CLEANUP struct buf b = {0};

        for (char *const *v = s->argv; v && *v; v++)
                if (v != s->argv)
                        args_add(&args, str_of(*v));
        for (char *const *v = s->envp; v && *v; v++)
                if (!is_place_s(t->remote->user, s, str_of(*v)))
                        args_add(&env, str_of(*v));
        args_join_v2(&b, &args);
        if (b.n)
                describe_text(t, "Arguments", buf_view(&b));
        buf_reset(&b);
        args_join_v2(&b, &env);
        describe_text(t, "Environment", buf_view(&b));
}

static void wishes(struct remote_task *t, const struct run_spec *s)
{
        number(t, "RequestCpus", s->cpus_milli ? (s->cpus_milli + 999) / 1000 : 1);
        if (s->memory_bytes)
                number(t, "RequestMemory", (s->memory_bytes + (1u << 20) - 1) >> 20);
        if (s->gpus)
                number(t, "RequestGPUs", s->gpus);
        if (s->delegation.credentials)
                describe_text(t, REMOTE_CREDENTIALS, str_of(s->delegation.credentials));
        if (s->walltime_ms)
                number(t, "AllowedExecuteDuration", (s->walltime_ms + 999) / 1000);
        for (size_t i = 0; i < s->word_count; i++) {
                struct str value = str_of(s->words[i].value);
                int64_t n;

                if (!strcasecmp(s->words[i].name, "ReservationId"))
                        continue; /* the number of one at this server, for its batch systems */
                if (str_to_i64(value, &n) == 0)
                        expression(t, s->words[i].name, value);
                else
                        describe_text(t, s->words[i].name, value);
        }
}

/* Asks for checkpoints when the job is vacated there, and for a restart from them. */
static void checkpoints(struct remote_task *t, const struct run_checkpoints *c)
{
        if (c->made) {
                number(t, c->by_signal ? "SuccessCheckpointExitSignal" : "CheckpointExitCode",
                       (uint64_t)c->code);
                if (c->by_signal)
                        expression(t, "SuccessCheckpointExitBySignal", STR("true"));
        }
        if (c->made && c->signal)
                number(t, "CheckpointSig", (uint64_t)c->signal);
        if (c->made && *c->files)
                describe_text(t, "TransferCheckpoint", str_of(c->files));
        if (c->kill_signal)
                number(t, "KillSig", (uint64_t)c->kill_signal);
        if (c->vacate_ms)
                number(t, "JobMaxVacateTime", (c->vacate_ms + 999) / 1000);
}

/* Gives each stream a file of its own, whose content is moved to its path when the outputs are here. */
static void streams(struct remote_task *t, const struct run_spec *s, bool shared)
{
        const char *const names[2] = {"out", "err"};

        for (int i = 0; i < 2; i++) {
                BUF_CLEANUP struct buf b = {0};
                const char *path = i ? s->stderr_path : s->stdout_path;

                if (!path || !strcmp(path, "/dev/null"))
                        continue;
                int which = i && s->flags & RUN_STDERR_IS_STDOUT ? 0 : i;
                *(i ? &t->err : &t->out) = mem_dupz(path);
                if (shared)
                        buf_printf(&b, "%s/", s->sandbox);
                buf_printf(&b, ".drover_hop.%u.%s", s->id.step, names[which]);
                describe_text(t, i ? "Err" : "Out", buf_view(&b));
        }
        t->out_append = s->flags & RUN_STDOUT_APPEND;
        t->err_append = s->flags & RUN_STDERR_APPEND;
        if (s->flags & RUN_STDERR_IS_STDOUT) {
                free(t->err);
                t->err = NULL;
        }
}

static void program(struct remote_task *t, const struct run_spec *s, bool shared)
{
        BUF_CLEANUP struct buf name = {0};
        struct str path = str_of(s->path);

        expression(t, "TransferExecutable", STR("false"));
        if (!shared && beneath(path, s->sandbox)) {
                buf_printf(&name, "." STR_FMT, STR_ARG(str_skip(path, strlen(s->sandbox))));
        } else if (!shared && !s->delegation.image_program && str_starts(path, STR("/")) &&
                   !of_the_system(path) && add_outside(t, s->path, PROGRAM)) {
                t->files.v[t->files.n - 1].mode |= 0111;
                buf_addz(&name, "./" PROGRAM);
        } else {
                buf_str(&name, path);
        }
        describe_text(t, "Cmd", buf_view(&name));
}

static void input(struct remote_task *t, const struct run_spec *s, bool shared)
{
        struct str path = str_of(s->stdin_path);

        if (!path.n || str_eqz(path, "/dev/null"))
                return;
        if (!shared && beneath(path, s->sandbox))
                path = str_skip(path, strlen(s->sandbox) + 1);
        else if (!shared && str_starts(path, STR("/")) && add_outside(t, s->stdin_path, INPUT))
                path = STR(INPUT);
        describe_text(t, "In", path);
}

static bool has_word(const struct remote_task *t, const char *name)
{
        for (size_t i = 0; i < t->word_count; i++)
                if (!strcasecmp(t->words[i].name, name))
                        return true;
        return false;
}

/* Adds attributes that are passed on as the author wrote them. */
static void carried(struct remote_task *t, const struct run_delegation *d)
{
        for (size_t i = 0; i < d->attribute_count; i++)
                if (strcasecmp(d->attributes[i].name, "Requirements") != 0 &&
                    !has_word(t, d->attributes[i].name))
                        expression(t, d->attributes[i].name, str_of(d->attributes[i].value));
}

/* Adds the file that the environment is made from, also where places there share this file system: the
 * environment is made from the file as sent, by its checksum. */
static void environment(struct remote_task *t, const struct run_spec *s)
{
        const struct run_delegation *d = &s->delegation;

        for (size_t i = 0; i < d->attribute_count; i++) {
                struct str v = str_of(d->attributes[i].value);
                bool conda = !strcasecmp(d->attributes[i].name, "CondaEnv");

                if ((!conda && strcasecmp(d->attributes[i].name, "PythonEnv") != 0) || v.n < 3 ||
                    v.p[0] != '"' || v.p[v.n - 1] != '"' || memchr(v.p, '\\', v.n))
                        continue;
                v = str_head(str_skip(v, 1), v.n - 2);
                if (conda && !environment_is_file(v))
                        continue;
                BUF_CLEANUP struct buf path = {0};
                MEM_CLEANUP char *name = str_dupz(str_skip(v, (size_t)(str_rfind(v, '/') + 1)));
                if (v.p[0] != '/')
                        buf_printf(&path, "%s/", s->cwd ? s->cwd : s->sandbox);
                buf_str(&path, v);
                if (!t->remote->user)
                        add_outside(t, buf_z(&path), name);
        }
}

static const char *requirements(const struct run_delegation *d)
{
        for (size_t i = 0; i < d->attribute_count; i++)
                if (!strcasecmp(d->attributes[i].name, "Requirements"))
                        return d->attributes[i].value;
        return "true";
}

static void places(struct remote_task *t, const struct run_spec *s, bool shared)
{
        BUF_CLEANUP struct buf b = {0};

        number(t, "JobUniverse", 5);
        if (shared) {
                buf_addz(&b, "TARGET.FileSystemDomain == ");
                remote_quoted(&b, str_of(t->remote->domain));
                buf_printf(&b, " && (%s)", requirements(&s->delegation));
                describe_text(t, "FileSystemDomain", str_of(t->remote->domain));
                describe_text(t, "Iwd", str_of(s->cwd ? s->cwd : s->sandbox));
                describe_text(t, "ShouldTransferFiles", STR("NO"));
                expression(t, "Requirements", buf_view(&b));
                return;
        }
        describe_text(t, "FileSystemDomain", STR(NO_DOMAIN));
        describe_text(t, "Iwd", STR("/"));
        describe_text(t, "ShouldTransferFiles", STR("YES"));
        describe_text(t, "WhenToTransferOutput",
                      s->delegation.on_success_only            ? STR("ON_SUCCESS")
                      : s->delegation.checkpoints.when_evicted ? STR("ON_EXIT_OR_EVICT")
                                                               : STR("ON_EXIT"));
        if (s->delegation.outputs)
                describe_text(t, "TransferOutput", str_of(s->delegation.outputs));
        if (t->files.n)
                describe_text(t, "TransferInput", STR("./"));
        expression(t, "Requirements", str_of(requirements(&s->delegation)));
}

/* Writes the origin, except the job's name, which differs from task to task. */
static void origin(struct remote_task *t, const struct run_spec *s)
{
        struct buf b = {0};
        struct json j = {.out = &b};

        json_kstrz(&j, "servers", s->delegation.servers);
        json_kstrz(&j, "owner", s->delegation.owner);
        json_kstrz(&j, "label", s->delegation.label);
        json_kstrz(&j, "path", s->delegation.path);
        json_kint(&j, "hops_left", (int64_t)s->delegation.hops_left - 1);
        t->origin = buf_take(&b);
        t->servers = mem_dupz(s->delegation.servers ? s->delegation.servers : "");
        t->job = mem_dupz(s->delegation.job ? s->delegation.job : "");
}

/* Sets the step's attributes and files; shared: for a place that shares this file system. */
static void words_of(struct remote_task *t, const struct run_spec *s, bool shared)
{
        t->sandbox = mem_dupz(s->sandbox);
        origin(t, s);
        program(t, s, shared);
        input(t, s, shared);
        words(t, s);
        streams(t, s, shared);
        wishes(t, s);
        checkpoints(t, &s->delegation.checkpoints);
        if (shared)
                environment(t, s);
        places(t, s, shared);
        carried(t, &s->delegation);
}

void remote_words_like(struct remote_task *t, const struct run_spec *s)
{
        describe_text(t, "Cmd", STR("/bin/true"));
        describe_text(t, "Iwd", STR("/"));
        wishes(t, s);
        expression(t, "Requirements", str_of(requirements(&s->delegation)));
        carried(t, &s->delegation);
}

void remote_describe(struct remote_task *t, const struct run_spec *s)
{
        bool shared = t->remote->shared || s->cwd;

        if (s->delegation.hops_left == 0) {
                remote_fail(
                        t, "path", ELOOP,
                        "the job may not be handed on to another server: its path is as long as is allowed, "
                        "or its expressions take more than is handed on");
                return;
        }
        t->exposed = shared;
        int r = shared || t->remote->user ? 0 : add_folder(&t->files, s->sandbox, "", 0);
        if (r == -E2BIG)
                remote_fail_files(t);
        else if (r < 0)
                remote_fail(t, "sandbox", -r, NULL);
        else
                words_of(t, s, shared);
}

static void set_text(struct remote_task *t, const char *name, const char *value)
{
        for (size_t i = 0; i < t->word_count; i++)
                if (!strcmp(t->words[i].name, name)) {
                        free(t->words[i].value);
                        t->words[i].value = mem_dupz(value);
                }
}

void remote_exposed(struct remote_task *t, bool program, bool input)
{
        t->exposed = true;
        if (program)
                set_text(t, "Cmd", "./" PROGRAM);
        if (input)
                set_text(t, "In", INPUT);
        if (t->files.n)
                describe_text(t, "TransferInput", STR("./"));
}
