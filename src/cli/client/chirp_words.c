#include "cli/client/chirp_words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "cli/client/chirp.h"

struct chirping {
        const struct chirp_words *w;
        struct chirp_client *client;
        struct chirp_reply reply;
        struct err err;
};

static const char *word(const struct chirping *x, size_t n)
{
        return x->w->words[n];
}

static int chirp_send(struct chirping *x, const char *op, struct chirp_call c)
{
        c.op = op;
        return chirp_call(x->client, &c, &x->reply, &x->err);
}

static int number(struct chirping *x, const char *text, int base, uint64_t *ret)
{
        char *end;

        errno = 0;
        *ret = strtoull(text, &end, base);
        if (*text < '0' || *text > '9' || *end || errno || *ret > INT64_MAX)
                return err_set(&x->err, -EINVAL, "'%s' is not a number%s", text,
                               base == 8 ? " in octal" : "");
        return 0;
}

/* ---- files */

static int fetch(struct chirping *x)
{
        const char *to = word(x, 2);
        int fd = strcmp(to, "-") == 0 ? STDOUT_FILENO
                                      : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        int r = fd < 0 ? err_set(&x->err, -errno, "cannot write %s: %s", to, strerror(errno))
                       : chirp_fetch(x->client, str_of(word(x, 1)), fd, &x->err);

        if (fd > STDOUT_FILENO && close(fd) < 0 && r == 0)
                r = err_set(&x->err, -errno, "cannot write %s: %s", to, strerror(errno));
        return r;
}

/* HTCondor's letters: w r a(ppend) c(reate) t(runcate) x(clusive). */
static int flags_of(struct chirping *x, const char *letters, uint32_t *ret)
{
        static const struct {
                char letter;
                uint32_t flag;
        } all[] = {{'w', 0},           {'r', 0},        {'a', CHIRP_APPEND}, {'c', CHIRP_CREATE},
                   {'t', CHIRP_EMPTY}, {'x', CHIRP_NEW}};

        for (const char *p = letters; *p; p++) {
                size_t i = 0;

                while (i < sizeof(all) / sizeof(*all) && all[i].letter != *p)
                        i++;
                if (i == sizeof(all) / sizeof(*all))
                        return err_set(&x->err, -EINVAL,
                                       "'%c' is not a mode: write some of the letters w, a, c, t and x", *p);
                *ret |= all[i].flag;
        }
        return 0;
}

static int file_put(struct chirping *x)
{
        const struct chirp_words *w = x->w;
        const char *from = word(x, 1);
        uint64_t mode = 0;
        uint32_t flags = 0;
        int fd = strcmp(from, "-") == 0 ? STDIN_FILENO : open(from, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? err_set(&x->err, -errno, "cannot read %s: %s", from, strerror(errno)) : 0;

        if (r == 0 && w->permissions)
                r = number(x, w->permissions, 8, &mode);
        if (r == 0 && w->mode)
                r = flags_of(x, w->mode, &flags);
        if (r == 0 && mode > 0777)
                r = err_set(&x->err, -EINVAL, "permissions are at most 777");
        if (r == 0)
                r = w->mode ? chirp_put_by(x->client, fd, str_of(word(x, 2)), flags, (uint32_t)mode, &x->err)
                            : chirp_put(x->client, fd, str_of(word(x, 2)), (uint32_t)mode, &x->err);
        if (fd > STDIN_FILENO)
                close(fd);
        return r;
}

/* Pieces of `step` bytes, each so far behind the one before; without a stride one after the other. */
struct pieces {
        uint64_t at, left, step, skip;
};

static int pieces_begin(struct chirping *x, const char *length, struct pieces *p)
{
        const struct chirp_words *w = x->w;
        int r = number(x, length, 10, &p->left);

        p->at = w->offset > 0 ? (uint64_t)w->offset : 0;
        p->step = p->skip = UINT64_MAX;
        if (r == 0 && w->stride_length)
                r = number(x, w->stride_length, 10, &p->step);
        if (r == 0 && w->stride_length)
                r = number(x, w->stride_skip, 10, &p->skip);
        if (r == 0 && (p->step == 0 || p->skip < p->step))
                r = err_set(&x->err, -EINVAL, "a stride is a length, and a distance that is not shorter");
        return r;
}

/* Moves from one part of a piece to the next: it was `done` bytes of what was left of it. */
static void pieces_next(struct pieces *p, uint64_t *in_piece, uint64_t done)
{
        p->left -= done;
        p->at += done;
        *in_piece += done;
        if (*in_piece == p->step) {
                p->at += p->skip - p->step;
                *in_piece = 0;
        }
}

static uint32_t part_of(const struct pieces *p, uint64_t in_piece)
{
        uint64_t n = p->left < CHIRP_DATA_MAX ? p->left : CHIRP_DATA_MAX;

        return (uint32_t)(n < p->step - in_piece ? n : p->step - in_piece);
}

static int read_pieces(struct chirping *x)
{
        struct pieces p = {0};
        uint64_t in_piece = 0;
        int r = pieces_begin(x, word(x, 2), &p);

        while (r == 0 && p.left) {
                r = chirp_send(x, "read",
                               (struct chirp_call){.name = str_of(word(x, 1)),
                                                   .offset = p.at,
                                                   .length = part_of(&p, in_piece)});
                if (r == 0 && x->reply.data.n == 0)
                        break; /* the end of the file */
                if (r == 0 && (r = fs_write_all(STDOUT_FILENO, x->reply.data.p, x->reply.data.n)) < 0)
                        err_set(&x->err, r, "cannot write: %s", strerror(-r));
                pieces_next(&p, &in_piece, x->reply.data.n);
        }
        return r;
}

static int chirp_words_write_pieces(struct chirping *x)
{
        MEM_CLEANUP char *room = mem_alloc(CHIRP_DATA_MAX);
        struct pieces p = {0};
        uint64_t in_piece = 0;
        bool input = strcmp(word(x, 2), "-") == 0;
        int fd = input ? STDIN_FILENO : open(word(x, 2), O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? err_set(&x->err, -errno, "cannot read %s: %s", word(x, 2), strerror(errno))
                       : pieces_begin(x, word(x, 3), &p);

        while (r == 0 && p.left) {
                ssize_t n = read(fd, room, part_of(&p, in_piece));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        r = err_set(&x->err, -errno, "cannot read %s: %s", word(x, 2), strerror(errno));
                if (n <= 0)
                        break;
                r = chirp_send(x, "write",
                               (struct chirp_call){.name = str_of(word(x, 1)),
                                                   .data = str_make(room, (size_t)n),
                                                   .offset = p.at,
                                                   .flags = CHIRP_CREATE});
                pieces_next(&p, &in_piece, (uint64_t)n);
        }
        if (fd > STDIN_FILENO)
                close(fd);
        return r;
}

static int on_file(struct chirping *x)
{
        static const char *const ops[][2] = {
                {"remove", "remove"}, {"rmdir", "remove_folder"}, {"mkdir", "make_folder"}, {NULL, NULL}};
        size_t i = 0;

        while (strcmp(ops[i][0], word(x, 0)) != 0)
                i++;
        return chirp_send(x, ops[i][1], (struct chirp_call){.name = str_of(word(x, 1))});
}

static int rename_file(struct chirping *x)
{
        return chirp_send(x, "rename",
                          (struct chirp_call){.name = str_of(word(x, 1)), .data = str_of(word(x, 2))});
}

static int change_mode(struct chirping *x)
{
        uint64_t mode;
        int r = number(x, word(x, 2), 8, &mode);

        if (r == 0 && mode > 0777)
                r = err_set(&x->err, -EINVAL, "permissions are at most 777");
        return r ? r
                 : chirp_send(x, "mode",
                              (struct chirp_call){.name = str_of(word(x, 1)), .mode = (uint32_t)mode});
}

static int truncate_file(struct chirping *x)
{
        uint64_t size;
        int r = number(x, word(x, 2), 10, &size);

        return r ? r
                 : chirp_send(x, "truncate", (struct chirp_call){.name = str_of(word(x, 1)), .offset = size});
}

/* utime NAME ACCESSED CHANGED: the first of the two is not kept by what counts here. */
static int change_time(struct chirping *x)
{
        uint64_t seconds;
        int r = number(x, word(x, 3), 10, &seconds);

        return r ? r
                 : chirp_send(x, "time", (struct chirp_call){.name = str_of(word(x, 1)), .offset = seconds});
}

static void print_facts(const struct chirping *x)
{
        printf("size: %" PRIu64 "\nmode: %04o\ntype: %s\nmtime: %lld\n", x->reply.size, x->reply.mode & 07777,
               S_ISDIR(x->reply.mode)   ? "folder"
               : S_ISREG(x->reply.mode) ? "file"
                                        : "other",
               (long long)x->reply.changed);
}

static int show_facts(struct chirping *x)
{
        int r = chirp_send(x, "stat", (struct chirp_call){.name = str_of(word(x, 1))});

        if (r == 0)
                print_facts(x);
        return r;
}

static int show_folder(struct chirping *x)
{
        BUF_CLEANUP struct buf names = {0};
        struct str rest, name;
        int r = chirp_send(x, "list", (struct chirp_call){.name = str_of(word(x, 1))});

        buf_str(&names, buf_view(&x->reply.data));
        rest = buf_view(&names);
        while (r == 0 && str_cut(&rest, '\n', &name)) {
                BUF_CLEANUP struct buf path = {0};

                if (name.n == 0)
                        continue;
                printf(STR_FMT "\n", STR_ARG(name));
                if (!x->w->details)
                        continue;
                buf_printf(&path, "%s/" STR_FMT, word(x, 1), STR_ARG(name));
                r = chirp_send(x, "stat", (struct chirp_call){.name = buf_view(&path)});
                if (r == 0)
                        print_facts(x);
        }
        return r;
}

/* access NAME MODE: whether it is there. What the owner may do with it is found out by doing it. */
static int check_access(struct chirping *x)
{
        return chirp_send(x, "stat", (struct chirp_call){.name = str_of(word(x, 1))});
}

/* ---- the job */

static int get_attribute(struct chirping *x)
{
        int r = chirp_send(x, "get_attribute", (struct chirp_call){.name = str_of(word(x, 1))});

        if (r == 0)
                printf(STR_FMT "\n", STR_ARG(buf_view(&x->reply.data)));
        return r;
}

static int set_attribute(struct chirping *x)
{
        const struct chirp_call c = {.name = str_of(word(x, 1)), .data = str_of(word(x, 2))};

        return chirp_send(
                x, str_ends(str_of(word(x, 0)), STR("_delayed")) ? "set_attribute_later" : "set_attribute",
                c);
}

static int write_log(struct chirping *x)
{
        return chirp_send(x, "log", (struct chirp_call){.data = str_of(word(x, 1))});
}

static int show_owner(struct chirping *x)
{
        int r = chirp_send(x, "owner", (struct chirp_call){0});

        if (r == 0)
                printf(STR_FMT "\n", STR_ARG(buf_view(&x->reply.data)));
        return r;
}

static const struct {
        const char *name;
        size_t words; /* behind it */
        int (*run)(struct chirping *x);
        const char *usage;
} verbs[] = {
        {"fetch", 2, fetch, "REMOTE LOCAL"},
        {"put", 2, file_put, "LOCAL REMOTE"},
        {"read", 2, read_pieces, "REMOTE LENGTH"},
        {"write", 3, chirp_words_write_pieces, "REMOTE LOCAL LENGTH"},
        {"remove", 1, on_file, "REMOTE"},
        {"rmdir", 1, on_file, "REMOTE"},
        {"mkdir", 1, on_file, "REMOTE"},
        {"rename", 2, rename_file, "REMOTE REMOTE2"},
        {"getdir", 1, show_folder, "REMOTE"},
        {"stat", 1, show_facts, "REMOTE"},
        {"lstat", 1, show_facts, "REMOTE"},
        {"access", 2, check_access, "REMOTE MODE"},
        {"chmod", 2, change_mode, "REMOTE MODE"},
        {"truncate", 2, truncate_file, "REMOTE LENGTH"},
        {"utime", 3, change_time, "REMOTE ACCESSED CHANGED"},
        {"get_job_attr", 1, get_attribute, "NAME"},
        {"get_job_attr_delayed", 1, get_attribute, "NAME"},
        {"set_job_attr", 2, set_attribute, "NAME VALUE"},
        {"set_job_attr_delayed", 2, set_attribute, "NAME VALUE"},
        {"ulog", 1, write_log, "TEXT"},
        {"phase", 1, write_log, "TEXT"},
        {"whoami", 0, show_owner, ""},
};

int chirp_words_run(const struct chirp_words *w)
{
        struct chirping x = {.w = w};
        size_t i = 0;
        int r;

        while (i < sizeof(verbs) / sizeof(verbs[0]) && strcmp(verbs[i].name, w->words[0]) != 0)
                i++;
        if (i == sizeof(verbs) / sizeof(verbs[0]))
                return cli_error(CLI_USAGE,
                                 "'%s' is not an operation: write fetch, put, read, write, remove, rmdir, "
                                 "mkdir, rename, "
                                 "getdir, stat, access, chmod, truncate, utime, get_job_attr, set_job_attr, "
                                 "set_job_attr_delayed, ulog or whoami",
                                 w->words[0]);
        if (w->count != verbs[i].words + 1)
                return cli_error(CLI_USAGE, "write: %s %s", verbs[i].name, verbs[i].usage);
        r = chirp_connect(&x.client, &x.err);
        if (r == 0)
                r = verbs[i].run(&x);
        chirp_disconnect(x.client);
        chirp_reply_deinit(&x.reply);
        return r < 0 ? cli_error(CLI_FAILED, "%s", x.err.text) : CLI_OK;
}
