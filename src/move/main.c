/* drover-mover: a worker that copies, one task at a time, for the agent at the other end of its standard
 * input; or, with arguments, a command for people. See move/task.h and drover-mover(8). */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/secret.h"
#include "move/mover.h"
#include "move/placement.h"

#define SIGN_MS 1000

static const char usage[] =
        "usage: drover-mover [options] get URL FILE | put FILE URL | probe URL\n"
        "       drover-mover [options] place transfer SRC DEST [NAME=VALUE]...\n"
        "       drover-mover [options] place rm|mkdir|stage|verify|reserve|release URL [NAME=VALUE]...\n\n"
        "Copies between a URL (http, https, s3, ftp, ftps, sftp, file) and a file, as the agent has it "
        "done,\n"
        "and prints what came of it as JSON. See drover-mover(8).\n\n"
        "  --exec SCHEME=PROGRAM   a program for a further scheme; again for more\n"
        "  --ca FILE               authorities that https servers may have, in PEM; the system's\n"
        "  --known-hosts FILE      keys that sftp servers may have; ~/.ssh/known_hosts\n"
        "  --hide FOLDER           nothing is put into it by a file URL; again for more\n"
        "  --stall SECONDS         nothing moves for so long: try again; 60\n"
        "  --tries N               attempts; 5\n"
        "  --retry MILLISECONDS    before the second; twice as long before each further one; 1000\n"
        "  --limit SECONDS         for all of them; none\n"
        "  --tune 'PREFIX WORDS'   how URLs that begin so are used: streams=N buffer=SIZE block=SIZE; again "
        "for\n"
        "                          more\n"
        "  --size BYTES            get: what it must have\n"
        "  --sha256 HEX            get: the checksum that it must have\n"
        "  --credential TYPE=FILE  what the store is shown: a token, proxy, s3 key, or file (a key of sftp)\n"
        "  --help, --version\n";

#define HIDE_MAX 16

struct options {
        struct mover_config config;
        const char *hide[HIDE_MAX];
        size_t hide_count;
        uint64_t tries, limit_s, size;
        char *sha256, *credential;
};

static bool number(const char *text, uint64_t *ret)
{
        return str_to_u64(str_of(text), ret) == 0 && *ret < 1ull << 50;
}

static bool option(struct options *o, const char *name, const char *value)
{
        uint64_t n;

        if (!strcmp(name, "--exec"))
                return mover_config_exec(&o->config, value);
        if (!strcmp(name, "--tune"))
                return mover_config_tune(&o->config, value);
        if (!strcmp(name, "--ca")) {
                free(o->config.ca_file);
                o->config.ca_file = mem_dupz(value);
                return true;
        }
        if (!strcmp(name, "--known-hosts")) {
                free(o->config.known_hosts);
                o->config.known_hosts = mem_dupz(value);
                return true;
        }
        if (!strcmp(name, "--hide") && o->hide_count < HIDE_MAX) {
                o->hide[o->hide_count++] = value;
                return true;
        }
        if (!strcmp(name, "--sha256")) {
                free(o->sha256);
                o->sha256 = mem_dupz(value);
                return strlen(value) == 64;
        }
        if (!strcmp(name, "--credential")) {
                free(o->credential);
                o->credential = mem_dupz(value);
                return strchr(value, '=') != NULL;
        }
        if (!strcmp(name, "--size"))
                return number(value, &o->size);
        if (!number(value, &n))
                return false;
        if (!strcmp(name, "--stall"))
                o->config.stall_ms = n * 1000;
        else if (!strcmp(name, "--retry"))
                o->config.retry_ms = n;
        else if (!strcmp(name, "--tries"))
                o->tries = n;
        else if (!strcmp(name, "--limit"))
                o->limit_s = n;
        else
                return false;
        return true;
}

/* ---- for an agent */

struct owner {
        int64_t told_ms;
};

/* Sends a sign of life each second, and ends the transfer when the agent is gone. */
static int main_alive(void *arg)
{
        struct owner *o = arg;
        struct pollfd p = {.fd = 0, .events = POLLRDHUP};
        int64_t now = clock_mono_ns() / 1000000;

        if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)))
                _exit(0);
        if (now - o->told_ms >= SIGN_MS) {
                o->told_ms = now;
                if (move_send_sign(0) < 0)
                        _exit(0);
        }
        return 0;
}

static int serve(struct options *o)
{
        struct owner owner = {0};

        o->config.alive = main_alive;
        o->config.arg = &owner;
        for (;;) {
                struct move_task task;
                struct move_answer answer;
                int fd, r = move_receive_task(0, &task, &fd);

                if (r < 0)
                        return r == -ENOTCONN || r == -ECONNRESET ? 0 : 1;
                transfer_run(&o->config, &task, fd, &answer);
                if (fd >= 0)
                        close(fd);
                if (task.from >= 0)
                        close(task.from);
                move_task_deinit(&task);
                if (move_send_answer(0, &answer) < 0)
                        return 0;
        }
}

/* ---- for people */

static void print_answer(const struct move_task *t, const struct move_answer *a)
{
        BUF_CLEANUP struct buf b = {0};
        struct json j = {.out = &b};

        json_open(&j, '{');
        json_kstrz(&j, "op", move_op_names[t->op]);
        json_kstrz(&j, "url", t->url);
        json_kbool(&j, "ok", a->status != MOVE_FAILED);
        json_kint(&j, "tries", a->tries);
        json_kint(&j, "bytes_moved", (int64_t)a->moved);
        json_kint(&j, "took_us", (int64_t)a->took_us);
        json_kint(&j, "latency_us", (int64_t)a->latency_us);
        if (a->status == MOVE_DONE && t->op != MOVE_PROBE)
                json_kint(&j, "size", (int64_t)a->size);
        if (a->status == MOVE_DONE && t->op == MOVE_GET) {
                char hex[65];

                hex_print(hex, a->sha256, 32);
                json_kstrz(&j, "sha256", hex);
                json_kstrz(&j, "etag", a->facts.etag);
                json_kint(&j, "modified", a->facts.modified_s);
        }
        json_close(&j, '}');
        puts(buf_z(&b));
        if (a->status == MOVE_FAILED)
                fprintf(stderr, "drover-mover: %s\n", a->text);
}

static int open_local(struct move_task *t, const char *file, struct buf *temp)
{
        struct stat st;

        if (t->op == MOVE_PROBE)
                return -1;
        if (t->op == MOVE_GET) {
                buf_printf(temp, "%s.drover-%s.tmp", file, t->tag);
                return open(buf_z(temp), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        }
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0)
                t->size = (uint64_t)st.st_size;
        return fd;
}

static bool main_read_sum(struct move_task *t, const char *hex)
{
        size_t n;

        t->summed = hex != NULL;
        return !hex || OPENSSL_hexstr2buf_ex(t->sha256, sizeof(t->sha256), &n, hex, 0) == 1;
}

static bool read_credential(struct move_task *t, const char *text)
{
        SECRET_CLEANUP struct buf data = {.max = MOVE_CREDENTIAL_MAX};
        struct str path = str_of(text ? text : ""), type;
        struct err err = {""};

        if (!text)
                return true;
        str_cut(&path, '=', &type);
        MEM_CLEANUP char *type_z = str_dupz(type), *path_z = str_dupz(path);
        if (fs_read(AT_FDCWD, path_z, MOVE_CREDENTIAL_MAX, &data, &err) < 0) {
                fprintf(stderr, "drover-mover: %s\n", err.text);
                return false;
        }
        move_task_credential(t, type_z, path_z, buf_view(&data));
        return true;
}

static int by_hand(struct options *o, const char *op, const char *url, const char *file)
{
        BUF_CLEANUP struct buf temp = {0};
        struct move_task t;
        struct move_answer a;

        move_task_init(&t, !strcmp(op, "get") ? MOVE_GET : !strcmp(op, "put") ? MOVE_PUT : MOVE_PROBE);
        t.url = mem_dupz(url);
        t.tries = (uint32_t)o->tries;
        t.limit_ms = o->limit_s * 1000;
        t.size = o->size;
        snprintf(t.tag, sizeof(t.tag), "%d", (int)getpid());
        int r = 2, fd = open_local(&t, file, &temp);
        if (!main_read_sum(&t, o->sha256)) {
                fprintf(stderr, "drover-mover: --sha256 takes 64 hexadecimal digits\n");
        } else if (!read_credential(&t, o->credential)) {
                r = 2;
        } else if (fd < 0 && t.op != MOVE_PROBE) {
                fprintf(stderr, "drover-mover: cannot open %s: %s\n", temp.n ? buf_z(&temp) : file,
                        strerror(errno));
                r = 1;
        } else {
                transfer_run(&o->config, &t, fd, &a);
                if (a.status != MOVE_FAILED && t.op == MOVE_GET && rename(buf_z(&temp), file) < 0) {
                        a.status = MOVE_FAILED;
                        snprintf(a.text, sizeof(a.text), "cannot write %s: %s", file, strerror(errno));
                }
                print_answer(&t, &a);
                r = a.status == MOVE_FAILED;
        }
        if (r && temp.n)
                unlink(buf_z(&temp));
        if (fd >= 0)
                close(fd);
        move_task_deinit(&t);
        return r;
}

/* ---- a placement */

static void print_line(struct buf *b)
{
        buf_char(b, '\n');
        fwrite(b->p, 1, b->n, stdout);
        fflush(stdout);
}

static void print_progress(void *arg, uint64_t bytes, uint64_t size, uint64_t files, uint64_t files_all)
{
        BUF_CLEANUP struct buf b = {0};
        struct json j = {.out = &b};

        (void)arg;
        json_open(&j, '{');
        json_kint(&j, "bytes", (int64_t)bytes);
        if (size != MOVE_SIZE_ANY)
                json_kint(&j, "size", (int64_t)size);
        json_kint(&j, "files", (int64_t)files);
        json_kint(&j, "files_all", (int64_t)files_all);
        json_close(&j, '}');
        print_line(&b);
}

/* How many files were moved at the same time at the end, and what was measured with how many. */
static void print_streams(const struct placement_report *r, struct json *j)
{
        json_kint(j, "streams", r->streams);
        json_key(j, "tried");
        json_open(j, '[');
        for (unsigned i = 0; i < r->tried_count; i++) {
                json_open(j, '{');
                json_kint(j, "streams", r->tried[i].workers);
                json_kint(j, "bytes_per_s", (int64_t)r->tried[i].bytes_per_s);
                json_kint(j, "files_per_s", (int64_t)r->tried[i].items_per_s);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void print_report(const struct placement *p, const struct placement_report *r)
{
        BUF_CLEANUP struct buf b = {0};
        struct json j = {.out = &b};

        json_open(&j, '{');
        json_kstrz(&j, "op", placement_op_names[p->op]);
        json_kbool(&j, "ok", r->result == PLACEMENT_DONE);
        json_kint(&j, "bytes", (int64_t)r->bytes);
        json_kint(&j, "files", (int64_t)r->files);
        json_kint(&j, "tries", r->tries);
        json_kint(&j, "took_ms", r->took_ms);
        if (p->op == PLACEMENT_TRANSFER)
                json_kbool(&j, "third_party", r->third_party);
        if (r->streams)
                print_streams(r, &j);
        if (*r->way)
                json_kstrz(&j, "from", r->way);
        if (r->files == 1 && *r->to)
                json_kstrz(&j, "to", r->to);
        if (r->files == 1 && *r->adler32)
                json_kstrz(&j, "adler32", r->adler32);
        if (r->files == 1 && *r->sha256)
                json_kstrz(&j, "sha256", r->sha256);
        json_close(&j, '}');
        print_line(&b);
        if (r->result != PLACEMENT_DONE)
                fprintf(stderr, "drover-mover: %s\n", r->text);
}

/* TYPE, FILE and the prefixes it is for, parted by tabs. */
static bool add_credential(struct placement *p, const char *value)
{
        struct str rest = str_of(value), type, file;

        if (p->credential_count == PLACEMENT_CREDENTIALS_MAX || !str_cut(&rest, '\t', &type) ||
            !str_cut(&rest, '\t', &file) || !type.n || !file.n)
                return false;
        p->credentials[p->credential_count++] =
                (struct placement_credential){str_dupz(type), str_dupz(file), str_dupz(rest)};
        return true;
}

static bool placement_word(struct placement *p, const char *name, size_t n, const char *value)
{
        static const char *const thirds[] = {"auto", "never", "always"};
        uint64_t v = 0;
        struct str key = str_make(name, n);

        if (str_eqz(key, "alternatives"))
                return p->alternatives = value, true;
        if (str_eqz(key, "tag"))
                return p->tag = value, *value && !strpbrk(value, "/ ");
        if (str_eqz(key, "checksum"))
                return !*value || sum_parse(str_of(value), &p->wanted);
        if (str_eqz(key, "credential"))
                return add_credential(p, value);
        if (str_eqz(key, "verify"))
                return p->read_back = !strcmp(value, "read"), p->read_back || !strcmp(value, "store");
        for (size_t i = 0; i < 3 && str_eqz(key, "third_party"); i++)
                if (!strcmp(value, thirds[i]))
                        return p->third = (enum placement_third)i, true;
        if (!number(value, &v))
                return false;
        if (str_eqz(key, "tries") && v < UINT32_MAX)
                p->tries = (uint32_t)v;
        else if (str_eqz(key, "try_s"))
                p->try_ms = v * 1000;
        else if (str_eqz(key, "limit_s"))
                p->limit_ms = v * 1000;
        else if (str_eqz(key, "space"))
                p->space = v;
        else
                return false;
        return true;
}

static int place(struct options *o, int argc, char **argv)
{
        struct placement p = {.progress = print_progress};
        struct placement_report report;
        char tag[32];
        unsigned op = 0;
        int i = 0, r = 2;
        /* Variables of a job's credentials, which a program for a scheme does not get: it gets only the
         * credential for its URL. */
        static const char *const shown[] = {"X509_USER_PROXY",   "X509_USER_CERT",
                                            "X509_USER_KEY",     "BEARER_TOKEN",
                                            "BEARER_TOKEN_FILE", "AWS_SHARED_CREDENTIALS_FILE",
                                            "_CONDOR_CREDS"};

        for (size_t k = 0; k < sizeof(shown) / sizeof(*shown); k++)
                unsetenv(shown[k]);
        snprintf(tag, sizeof(tag), "%d", (int)getpid());
        p.tag = tag;
        while (argc > 1 && op < PLACEMENT_OPS && strcmp(argv[0], placement_op_names[op]) != 0)
                op++;
        if (argc < 2 || op == PLACEMENT_OPS || (op == PLACEMENT_TRANSFER && argc < 3)) {
                fputs(usage, stderr);
                return 2;
        }
        p.op = (enum placement_op)op;
        p.src = argv[1];
        if (op == PLACEMENT_TRANSFER)
                p.dest = argv[2];
        for (i = op == PLACEMENT_TRANSFER ? 3 : 2; i < argc; i++) {
                const char *eq = strchr(argv[i], '=');

                if (!eq || !placement_word(&p, argv[i], (size_t)(eq - argv[i]), eq + 1)) {
                        fprintf(stderr, "drover-mover: what is %s? see drover-mover(8)\n", argv[i]);
                        break;
                }
        }
        if (i == argc) {
                placement_run(&o->config, &p, &report);
                print_report(&p, &report);
                r = report.result == PLACEMENT_DONE        ? 0
                    : report.result == PLACEMENT_TEMPORARY ? PLACEMENT_EXIT_AGAIN
                    : report.denied                        ? PLACEMENT_EXIT_DENIED
                                                           : 1;
        }
        placement_deinit(&p);
        return r;
}

int main(int argc, char **argv)
{
        struct options o = {.size = MOVE_SIZE_ANY};
        int i = 1, r = 2;

        secret_no_dumps();
        signal(SIGPIPE, SIG_IGN);
        setlinebuf(stdout);
        for (; i < argc && !strncmp(argv[i], "--", 2); i += 2) {
                if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "--version")) {
                        fputs(!strcmp(argv[i], "--help") ? usage : "drover-mover " DROVER_VERSION "\n",
                              stdout);
                        mover_config_deinit(&o.config);
                        return 0;
                }
                if (i + 1 >= argc || !option(&o, argv[i], argv[i + 1])) {
                        fprintf(stderr, "drover-mover: what is %s %s? see drover-mover --help\n", argv[i],
                                i + 1 < argc ? argv[i + 1] : "");
                        return 2;
                }
        }
        int left = argc - i;
        o.config.hidden = hidden_new(o.hide, o.hide_count);
        if (left == 1 && !strcmp(argv[i], "serve"))
                r = serve(&o);
        else if (left > 0 && !strcmp(argv[i], "place"))
                r = place(&o, left - 1, argv + i + 1);
        else if (left == 3 && !strcmp(argv[i], "get"))
                r = by_hand(&o, "get", argv[i + 1], argv[i + 2]);
        else if (left == 3 && !strcmp(argv[i], "put"))
                r = by_hand(&o, "put", argv[i + 2], argv[i + 1]);
        else if (left == 2 && !strcmp(argv[i], "probe"))
                r = by_hand(&o, "probe", argv[i + 1], NULL);
        else
                fputs(usage, stderr);
        mover_config_deinit(&o.config);
        free(o.sha256);
        free(o.credential);
        return r;
}
