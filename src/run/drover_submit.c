/* From a step of a job to a request of the far server: its files, its ad, and the call.
 *
 * Files that the step needs go up piece by piece; of small ones the checksum is found first, and what the far
 * server has of us already is only named. It may have forgotten it: then it refuses the submission, and all
 * files go up again, once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "run/drover_private.h"
#include "run/shepherd_protocol.h"

#define PIECE      (1u << 20)
#define SMALL      (4u << 20) /* hashed here */
#define FILES_MAX  20000
#define DEPTH_MAX  32
#define KNOWN_MAX  100000
#define QUOTES_MAX 32

void far_files_deinit(struct far_files *files)
{
        for (size_t i = 0; i < files->n; i++) {
                free(files->v[i].path);
                free(files->v[i].name);
        }
        free(files->v);
        *files = (struct far_files){0};
}

/* ---- which files */

static int add_file(struct far_files *files, const char *path, const char *name, const struct stat *st)
{
        if (files->n == FILES_MAX)
                return -E2BIG;
        MEM_GROW(files->v, files->cap, files->n + 1);
        files->v[files->n++] = (struct far_file){.path = mem_dupz(path),
                                                 .name = mem_dupz(name),
                                                 .size = (uint64_t)st->st_size,
                                                 .mode = st->st_mode & 0777};
        return 0;
}

/* Regular files of a folder, links not followed; what begins with ".drover_" at the top is the agent's. */
static int add_folder(struct far_files *files, const char *dir, const char *inner, unsigned depth)
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

/* What every machine has of its own. */
static bool of_the_system(struct str path)
{
        static const char *const dirs[] = {"/bin",   "/sbin", "/usr", "/lib",  "/lib64",
                                           "/lib32", "/opt",  "/nix", "/snap", "/etc"};
        for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
                if (beneath(path, dirs[i]))
                        return true;
        return false;
}

/* A file from outside of the sandbox, under a name that nothing there has. False: it is none. */
static bool add_outside(struct far_task *t, const char *path, const char *name)
{
        struct stat st;
        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, R_OK) < 0)
                return false;
        return add_file(&t->files, path, name, &st) == 0;
}

/* ---- the ad */

static void quoted(struct buf *out, struct str s)
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

static void text(struct json *j, const char *name, struct str value)
{
        BUF_CLEANUP struct buf b = {0};
        quoted(&b, value);
        json_kstr(j, name, buf_view(&b));
}

static void number(struct json *j, const char *name, uint64_t value)
{
        BUF_CLEANUP struct buf b = {0};
        buf_printf(&b, "%llu", (unsigned long long)value);
        json_kstr(j, name, buf_view(&b));
}

/* What the last agent sets itself is left to it. */
static bool is_place_s(const struct run_spec *s, struct str word)
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
        const char *ours = str_eqz(name, "HOME")      ? getenv("HOME")
                           : str_eqz(name, "USER")    ? getenv("USER")
                           : str_eqz(name, "LOGNAME") ? getenv("LOGNAME")
                                                      : NULL;
        return (str_eqz(name, "HOME") || str_eqz(name, "USER") || str_eqz(name, "LOGNAME")) &&
               (!ours || str_eqz(value, ours));
}

static void words(struct json *j, const struct run_spec *s)
{
        ARGS_CLEANUP struct args args = {0}, env = {0};
        BUF_CLEANUP struct buf b = {0};
        for (char *const *v = s->argv; v && *v; v++)
                if (v != s->argv)
                        args_add(&args, str_of(*v));
        for (char *const *v = s->envp; v && *v; v++)
                if (!is_place_s(s, str_of(*v)))
                        args_add(&env, str_of(*v));
        args_join_v2(&b, &args);
        if (b.n)
                text(j, "Arguments", buf_view(&b));
        buf_reset(&b);
        args_join_v2(&b, &env);
        text(j, "Environment", buf_view(&b));
}

static void wishes(struct json *j, const struct run_spec *s)
{
        number(j, "RequestCpus", s->cpus_milli ? (s->cpus_milli + 999) / 1000 : 1);
        if (s->memory_bytes)
                number(j, "RequestMemory", (s->memory_bytes + (1u << 20) - 1) >> 20);
        if (s->gpus)
                number(j, "RequestGPUs", s->gpus);
        if (s->walltime_ms)
                number(j, "AllowedExecuteDuration", (s->walltime_ms + 999) / 1000);
        for (size_t i = 0; i < s->word_count; i++) {
                struct str value = str_of(s->words[i].value);
                int64_t n;
                if (str_to_i64(value, &n) == 0)
                        json_kstr(j, s->words[i].name, value);
                else
                        text(j, s->words[i].name, value);
        }
}

/* Streams have files of their own, which go where they belong when all is here. */
static void streams(struct far_task *t, struct json *j, const struct run_spec *s, bool shared)
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
                text(j, i ? "Err" : "Out", buf_view(&b));
        }
        t->out_append = s->flags & RUN_STDOUT_APPEND;
        t->err_append = s->flags & RUN_STDERR_APPEND;
        if (s->flags & RUN_STDERR_IS_STDOUT) {
                free(t->err);
                t->err = NULL;
        }
}

static void program(struct far_task *t, struct json *j, const struct run_spec *s, bool shared)
{
        BUF_CLEANUP struct buf name = {0};
        struct str path = str_of(s->path);
        json_kstrz(j, "TransferExecutable", "false");
        if (!shared && beneath(path, s->sandbox)) {
                buf_printf(&name, "." STR_FMT, STR_ARG(str_skip(path, strlen(s->sandbox))));
        } else if (!shared && str_starts(path, STR("/")) && !of_the_system(path) &&
                   add_outside(t, s->path, "drover.program")) {
                t->files.v[t->files.n - 1].mode |= 0111;
                buf_addz(&name, "./drover.program");
        } else {
                buf_str(&name, path);
        }
        text(j, "Cmd", buf_view(&name));
}

static void input(struct far_task *t, struct json *j, const struct run_spec *s, bool shared)
{
        struct str path = str_of(s->stdin_path);
        if (!path.n || str_eqz(path, "/dev/null"))
                return;
        if (!shared && beneath(path, s->sandbox))
                path = str_skip(path, strlen(s->sandbox) + 1);
        else if (!shared && str_starts(path, STR("/")) && add_outside(t, s->stdin_path, "drover.stdin"))
                path = STR("drover.stdin");
        text(j, "In", path);
}

static void places(struct json *j, const struct run_spec *s, const struct far_task *t, bool shared)
{
        BUF_CLEANUP struct buf b = {0};
        json_kstrz(j, "JobUniverse", "5");
        if (shared) {
                buf_addz(&b, "TARGET.FileSystemDomain == ");
                quoted(&b, str_of(t->far->domain));
                text(j, "FileSystemDomain", str_of(t->far->domain));
                text(j, "Iwd", str_of(s->cwd ? s->cwd : s->sandbox));
                text(j, "ShouldTransferFiles", STR("NO"));
                json_kstr(j, "Requirements", buf_view(&b));
                return;
        }
        buf_printf(&b, "hop-%s", t->uuid);
        text(j, "FileSystemDomain", buf_view(&b));
        text(j, "Iwd", STR("/"));
        text(j, "ShouldTransferFiles", STR("YES"));
        text(j, "WhenToTransferOutput", s->hop.on_success_only ? STR("ON_SUCCESS") : STR("ON_EXIT"));
        if (s->hop.outputs)
                text(j, "TransferOutput", str_of(s->hop.outputs));
        if (t->files.n)
                text(j, "TransferInput", STR("./"));
        json_kstrz(j, "Requirements", "true");
}

static void origin(struct json *j, const struct run_spec *s)
{
        json_key(j, "origin");
        json_open(j, '{');
        json_kstrz(j, "servers", s->hop.servers);
        json_kstrz(j, "owner", s->hop.owner);
        json_kstrz(j, "label", s->hop.label);
        json_kstrz(j, "path", s->hop.path);
        json_kstrz(j, "job", s->hop.job);
        json_kint(j, "hops_left", (int64_t)s->hop.hops_left - 1);
        json_close(j, '}');
}

/* The same attempt has the same uuid wherever it is told of. RFC 4122, in the form of version 5 with SHA-256
 * (version 8 of RFC 9562). */
static void name_it(struct far_task *t, const struct run_spec *s)
{
        BUF_CLEANUP struct buf b = {0};
        unsigned char h[32];
        buf_printf(&b, "%s/%llu.%u/%u/%u", s->hop.servers, (unsigned long long)s->id.request, s->id.member,
                   s->id.fence, s->id.step);
        EVP_Digest(b.p, b.n, h, NULL, EVP_sha256(), NULL);
        h[6] = (unsigned char)((h[6] & 0x0f) | 0x80);
        h[8] = (unsigned char)((h[8] & 0x3f) | 0x80);
        for (size_t i = 0, at = 0; i < 16; i++)
                at += (size_t)snprintf(t->uuid + at, sizeof(t->uuid) - at,
                                       i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", h[i]);
}

/* Its document, open at the end, with the files that it needs. `shared`: as it is for a place that sees them.
 */
static void describe(struct far_task *t, const struct run_spec *s, bool shared)
{
        struct buf b = {0};
        struct json j = {.out = &b};
        name_it(t, s);
        t->sandbox = mem_dupz(s->sandbox);
        json_open(&j, '{');
        json_kstrz(&j, "uuid", t->uuid);
        origin(&j, s);
        json_key(&j, "parts");
        json_open(&j, '[');
        json_open(&j, '{');
        json_key(&j, "attributes");
        json_open(&j, '{');
        program(t, &j, s, shared);
        input(t, &j, s, shared);
        words(&j, s);
        streams(t, &j, s, shared);
        wishes(&j, s);
        places(&j, s, t, shared);
        json_close(&j, '}');
        json_close(&j, '}');
        json_close(&j, ']');
        t->submission = buf_take(&b);
}

void far_describe(struct far_task *t, const struct run_spec *s)
{
        bool shared = t->far->shared || s->cwd;
        if (s->hop.hops_left == 0) {
                far_fail(t, "path", ELOOP,
                         "the job may not be handed on to another server: its path is as long as is allowed");
                return;
        }
        int r = shared ? 0 : add_folder(&t->files, s->sandbox, "", 0);
        if (r < 0)
                far_fail(t, "sandbox", -r,
                         r == -E2BIG ? "the job's folder has more files than are handed on" : NULL);
        else
                describe(t, s, shared);
}

/* ---- files up */

static void send_next(struct far_task *t);

static void failed(struct far_task *t, int status, struct str body, const struct err *err, const char *what)
{
        BUF_CLEANUP struct buf b = {0};
        free(t->upload);
        t->upload = NULL;
        if (t->fd >= 0)
                close(t->fd);
        t->fd = -1;
        if (status <= 0 || status == 503 || status == 401) { /* later */
                t->not_before_ms = clock_boot_ms() + 1000;
                if (status <= 0)
                        far_away(t->far, err->text);
                return;
        }
        far_error(&b, status, body);
        far_fail(t, what, EREMOTEIO, buf_z(&b));
}

static json_t *document(struct str body)
{
        return json_loadb(body.p ? body.p : "", body.n, 0, NULL);
}

static void call(struct far_task *t, const char *method, struct buf *path, struct str body, const char *type,
                 http_call_fn *fn)
{
        const struct http_call_spec spec = {
                .method = method, .path = buf_z(path), .body = body, .type = type, .timeout_ms = 60000};
        t->call = http_client_call(t->far->client, &spec, fn, t);
}

static void know(struct far *f, const char *sha256)
{
        if (map_count(f->known) >= KNOWN_MAX) {
                map_free(f->known);
                f->known = map_new();
        }
        map_put(f->known, str_of(sha256), f);
}

static void on_finished(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        struct far_file *file = &t->files.v[t->files.at];
        t->call = NULL;
        json_t *doc = status / 100 == 2 ? document(body) : NULL;
        const char *sha = json_string_value(json_object_get(doc, "sha256"));
        if (!sha || strlen(sha) != 64) {
                json_decref(doc);
                failed(t, doc ? 0 : status, body, err, "input");
                return;
        }
        memcpy(file->sha256, sha, 65);
        file->size = file->offset;
        json_decref(doc);
        know(t->far, file->sha256);
        free(t->upload);
        t->upload = NULL;
        close(t->fd);
        t->fd = -1;
        t->files.at++;
        send_next(t);
}

static void send_piece(struct far_task *t);

static void on_piece(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        t->call = NULL;
        if (status / 100 == 2)
                send_piece(t);
        else
                failed(t, status, body, err, "input");
}

static void send_piece(struct far_task *t)
{
        struct far_file *file = &t->files.v[t->files.at];
        BUF_CLEANUP struct buf path = {0}, piece = {0};
        ssize_t n = pread(t->fd, buf_room(&piece, PIECE), PIECE, (off_t)file->offset);
        if (n < 0) {
                far_fail(t, "input", errno, NULL);
                return;
        }
        piece.n = (size_t)n;
        if (n == 0) {
                buf_printf(&path, "/v1/uploads/%s/finish", t->upload);
                call(t, "POST", &path, STR("{}"), NULL, on_finished);
                return;
        }
        buf_printf(&path, "/v1/uploads/%s?offset=%llu", t->upload, (unsigned long long)file->offset);
        file->offset += (uint64_t)n;
        call(t, "PUT", &path, buf_view(&piece), "application/octet-stream", on_piece);
}

static void on_begun(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        t->call = NULL;
        json_t *doc = status / 100 == 2 ? document(body) : NULL;
        const char *id = json_string_value(json_object_get(doc, "id"));
        if (id && strlen(id) < 64 && !strchr(id, '/')) {
                t->upload = mem_dupz(id);
                t->files.v[t->files.at].offset = 0;
                send_piece(t);
        } else {
                failed(t, doc ? 0 : status, body, err, "input");
        }
        json_decref(doc);
}

/* True: the far server has these bytes of us. */
static bool is_known(struct far_task *t, struct far_file *file)
{
        BUF_CLEANUP struct buf bytes = {0};
        unsigned char h[32];
        ssize_t n = file->size > SMALL ? -1 : pread(t->fd, buf_room(&bytes, SMALL + 1), SMALL + 1, 0);
        if (n < 0 || n > SMALL)
                return false;
        EVP_Digest(bytes.p, (size_t)n, h, NULL, EVP_sha256(), NULL);
        for (size_t i = 0; i < 32; i++)
                snprintf(file->sha256 + 2 * i, 3, "%02x", h[i]);
        file->size = (uint64_t)n;
        return map_get(t->far->known, str_of(file->sha256)) != NULL;
}

static void keep(struct far_task *t);

static void send_next(struct far_task *t)
{
        for (; t->files.at < t->files.n; t->files.at++) {
                struct far_file *file = &t->files.v[t->files.at];
                t->fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (t->fd < 0) {
                        BUF_CLEANUP struct buf b = {0};
                        buf_printf(&b, "cannot read its input %s: %s", file->path, strerror(errno));
                        far_fail(t, "input", errno, buf_z(&b));
                        return;
                }
                if (is_known(t, file)) {
                        close(t->fd);
                        t->fd = -1;
                        continue;
                }
                BUF_CLEANUP struct buf path = {0};
                buf_addz(&path, "/v1/uploads");
                call(t, "POST", &path, STR("{}"), NULL, on_begun);
                return;
        }
        keep(t);
}

void far_send_files(struct far_task *t)
{
        send_next(t);
}

/* ---- the file, and the call */

/* Its members; the brackets are the caller's. */
static void write_task(const struct far_task *t, struct json *j)
{
        BUF_CLEANUP struct buf id = {0};
        buf_printf(&id, "%llu.%u.%u.%u", (unsigned long long)t->id.request, t->id.member, t->id.fence,
                   t->id.step);
        json_kstr(j, "task", buf_view(&id));
        json_kstrz(j, "sandbox", t->sandbox);
        if (t->out)
                json_kstrz(j, "out", t->out);
        if (t->err)
                json_kstrz(j, "err", t->err);
        json_kbool(j, "out_append", t->out_append);
        json_kbool(j, "err_append", t->err_append);
}

static void keep(struct far_task *t)
{
        BUF_CLEANUP struct buf spooled = {0}, all = {0};
        struct json j = {.out = &spooled}, k = {.out = &all};
        struct err err = {""};
        json_open(&j, '[');
        for (size_t i = 0; i < t->files.n; i++) {
                json_open(&j, '{');
                json_kstrz(&j, "name", t->files.v[i].name);
                json_kstrz(&j, "sha256", t->files.v[i].sha256);
                json_kint(&j, "size", (int64_t)t->files.v[i].size);
                json_kbool(&j, "executable", t->files.v[i].mode & 0111);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        struct buf whole = {0};
        buf_printf(&whole, "%s,\"hold_results\":true,\"lease_ms\":%lld,\"spooled\":" STR_FMT "}",
                   t->submission, (long long)far_lease_ms(t->far), STR_ARG(buf_view(&spooled)));
        json_open(&k, '{');
        write_task(t, &k);
        json_key(&k, "submit");
        json_raw(&k, buf_view(&whole));
        json_close(&k, '}');
        if (fs_write(t->far->fd, t->uuid, buf_view(&all), 0600, true, &err) < 0) {
                buf_deinit(&whole);
                far_over(t, &(struct run_event){.state = RUN_LOST}, err.text);
                return;
        }
        if (!t->again) { /* as it was described, for another time */
                t->head = t->submission;
        }
        t->submission = buf_take(&whole);
        t->state = FAR_KEPT;
        far_submit(t);
}

/* The far server has forgotten a file, or never had it. */
static void send_again(struct far_task *t)
{
        map_free(t->far->known);
        t->far->known = map_new();
        if (t->again || !t->head) {
                far_over(t, &(struct run_event){.state = RUN_LOST},
                         "the other server no longer has the job's inputs");
                return;
        }
        t->again = true;
        free(t->submission);
        t->submission = t->head;
        t->head = NULL;
        t->files.at = 0;
        t->state = FAR_FRESH;
}

static void submitted(struct far_task *t, const json_t *doc)
{
        struct far *f = t->far;
        t->request = (uint64_t)json_integer_value(json_object_get(doc, "id"));
        idmap_put(f->requests, t->request, t);
        t->state = FAR_IN;
        t->renewed_ms = clock_boot_ms();
        t->lease_serial = t->unsettled ? 0 : f->lease_serial;
        free(t->submission);
        free(t->head);
        t->submission = t->head = NULL;
        far_files_deinit(&t->files);
        if (t->killing)
                far_act(t, FAR_REMOVE);
        else if (t->suspended || t->waits)
                far_act(t, FAR_HOLD);
        t->dirty |= t->unsettled || json_is_true(json_object_get(doc, "existing")) || t->cursor != f->cursor;
        if (t->dirty)
                far_look(t);
}

static void on_submitted(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        t->call = NULL;
        json_t *doc = status ? document(body) : NULL;
        const char *code = json_string_value(json_object_get(json_object_get(doc, "error"), "code"));
        if (status / 100 == 2 && json_integer_value(json_object_get(doc, "id")) > 0)
                submitted(t, doc);
        else if (code && !strcmp(code, "bad_upload"))
                send_again(t);
        else
                failed(t, status / 100 == 2 ? 0 : status, body, err, "request");
        json_decref(doc);
        timer_start(t->far->later, 0);
}

void far_submit(struct far_task *t)
{
        BUF_CLEANUP struct buf path = {0};
        t->cursor = t->far->cursor;
        buf_addz(&path, "/v1/requests");
        call(t, "POST", &path, str_of(t->submission), NULL, on_submitted);
}

/* ---- quotes: the same document, without files */

struct far_quote {
        struct far *far;
        struct far_quote *next;
        struct run_id id;
};

static void quoted_at(struct far *f, struct run_id id, uint64_t begins_ms, int error, const char *why)
{
        far_gather(f, (struct run_event){.id = id,
                                         .state = RUN_QUOTED,
                                         .slot = UINT32_MAX,
                                         .begins_ms = begins_ms,
                                         .error = error,
                                         .text = why});
}

static void quote_free(struct far_quote *q)
{
        struct far_quote **at = &q->far->quoting;
        while (*at != q)
                at = &(*at)->next;
        *at = q->next;
        q->far->quotes--;
        free(q);
}

void far_quotes_drop(struct far *f)
{
        while (f->quoting)
                quote_free(f->quoting);
}

static void on_quote(void *arg, int status, struct str body, const struct err *err)
{
        struct far_quote *q = arg;
        BUF_CLEANUP struct buf why = {0};
        json_t *doc = status == 200 ? document(body) : NULL;
        json_int_t at = json_integer_value(json_object_get(doc, "start_ms"));
        (void)err;
        if (status / 100 == 4)
                far_error(&why, status, body);
        quoted_at(q->far, q->id, at > 0 ? (uint64_t)at : 0, why.n ? EINVAL : 0, why.n ? buf_z(&why) : NULL);
        json_decref(doc);
        quote_free(q);
}

void far_quote(struct far *f, const struct run_spec *spec)
{
        struct far_task t = {.far = f, .fd = -1};
        BUF_CLEANUP struct buf path = {0}, body = {0};
        if (!f->up || f->quotes >= QUOTES_MAX || spec->hop.hops_left == 0) {
                quoted_at(f, spec->id, 0, spec->hop.hops_left ? 0 : EINVAL,
                          spec->hop.hops_left ? NULL : "the job's path is as long as is allowed");
                return;
        }
        describe(&t, spec, true);
        struct far_quote *q = mem_new(struct far_quote);
        *q = (struct far_quote){f, f->quoting, spec->id};
        f->quoting = q;
        f->quotes++;
        buf_addz(&path, "/v1/quote");
        buf_printf(&body, "%s}", t.submission);
        const struct http_call_spec call = {.method = "POST", .path = buf_z(&path), .body = buf_view(&body)};
        http_client_call(f->client, &call, on_quote, q);
        far_files_deinit(&t.files);
        free(t.sandbox);
        free(t.out);
        free(t.err);
        free(t.submission);
}

/* ---- after a restart */

static char *text_of(const json_t *doc, const char *name)
{
        const char *z = json_string_value(json_object_get(doc, name));
        return z ? mem_dupz(z) : NULL;
}

static bool read_id(struct str s, struct run_id *ret)
{
        uint64_t n[4];
        struct str one;
        for (size_t i = 0; i < 4; i++)
                if (!str_cut(&s, '.', &one) || str_to_u64(one, &n[i]) != 0)
                        return false;
        *ret = (struct run_id){n[0], (uint32_t)n[1], (uint32_t)n[2], (uint32_t)n[3], 0};
        return true;
}

bool far_restore(struct far *f, struct str text, const char *uuid)
{
        json_t *doc = document(text), *submit = json_object_get(doc, "submit");
        const char *id = json_string_value(json_object_get(doc, "task"));
        struct run_id name;
        bool good = submit && id && read_id(str_of(id), &name) && json_object_get(doc, "sandbox");
        if (good) {
                struct far_task *t = far_task_new(f, name);
                char *dump = json_dumps(submit, JSON_COMPACT);
                t->state = FAR_KEPT;
                snprintf(t->uuid, sizeof(t->uuid), "%s", uuid);
                t->sandbox = text_of(doc, "sandbox");
                t->out = text_of(doc, "out");
                t->err = text_of(doc, "err");
                t->out_append = json_is_true(json_object_get(doc, "out_append"));
                t->err_append = json_is_true(json_object_get(doc, "err_append"));
                t->submission = mem_dupz(dump);
                free(dump);
        }
        json_decref(doc);
        return good;
}
