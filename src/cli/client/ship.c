/* An attribute is expression text; only string literals name files here (a reader of descriptions writes
 * nothing else). Late macros stand inside the string, so the literal is read first and expanded then, once
 * for each member for as long as it gives new names: an attribute without late macros is looked at once a
 * part.
 */
#include "cli/client/ship.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/sha256.h"
#include "base/job/environment.h"
#include "base/job/macro.h"
#include "base/job/match_macro.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "classad/ad.h"
#include "classad/eval.h"
#include "cli/client/local.h"
#include "cli/client/upload.h"

/* Maximum bytes of a file that an environment is made of, the limit of agents. */
#define MADE_MAX (1u << 20)

/* Values of late macros for one member. */
struct member {
        const struct form_part *part;
        uint64_t number, row, step;
        struct str values; /* values of its row, separated by \x1f */
        bool unknown;      /* a macro was used whose value only the server knows */
};

void ship_deinit(struct ship *s)
{
        for (size_t i = 0; i < s->count; i++) {
                free(s->files[i].path);
                free(s->files[i].name);
        }
        free(s->files);
        free(s->refs);
        map_free(s->by_name);
        *s = (struct ship){0};
}

/* ---- attributes */

/* The text of an attribute that is a string literal. false: there is none, or it is something else. */
static bool literal(const struct form_part *p, const char *name, struct buf *out, bool *ret_late)
{
        const struct form_attribute *a = form_get(p, str_of(name));
        struct symbols *symbols;
        struct ad *ad;
        struct value v;
        bool ok = false;

        buf_reset(out);
        if (!a)
                return false;
        symbols = symbols_new();
        ad = ad_new(symbols);
        if (ad_set_text(ad, symbols_intern(symbols, STR("x")), str_of(a->text), NULL) == 0 &&
            ad_literal(ad, symbols_intern(symbols, STR("x")), &v) && v.type == VALUE_STRING) {
                buf_str(out, v.string);
                ok = true;
        }
        ad_free(ad);
        symbols_free(symbols);
        if (ret_late)
                *ret_late = a->late;
        return ok;
}

bool ship_text(const struct form_part *p, const char *name, struct buf *out)
{
        return literal(p, name, out, NULL);
}

static bool is_false(const struct form_part *p, const char *name)
{
        const struct form_attribute *a = form_get(p, str_of(name));

        return a && str_ieqz(str_trim(str_of(a->text)), "false");
}

enum should { SHOULD_NO, SHOULD_IF_NEEDED, SHOULD_YES };
static enum should should_transfer(const struct form_part *p)
{
        struct buf text BUF_CLEANUP = {0};

        if (!literal(p, "ShouldTransferFiles", &text, NULL))
                return SHOULD_IF_NEEDED;
        if (str_ieqz(buf_view(&text), "YES"))
                return SHOULD_YES;
        return str_ieqz(buf_view(&text), "NO") ? SHOULD_NO : SHOULD_IF_NEEDED;
}

bool ship_asks_server(const struct form *f)
{
        for (size_t i = 0; i < f->part_count; i++)
                if (should_transfer(&f->parts[i]) == SHOULD_IF_NEEDED)
                        return true;
        return false;
}

static enum macro_found look_up(void *arg, struct str name, struct buf *out)
{
        struct member *m = arg;
        struct str rest = m->values, value;

        for (size_t i = 0; i < m->part->variable_count; i++) {
                if (!str_cut(&rest, '\x1f', &value))
                        value = STR_NONE;
                if (str_ieqz(name, m->part->variables[i]))
                        return macro_item(value, out);
        }
        if (str_ieqz(name, "Process") || str_ieqz(name, "ProcId")) {
                buf_printf(out, "%llu", (unsigned long long)m->number);
        } else if (str_ieqz(name, "Row") || str_ieqz(name, "ItemIndex")) {
                buf_printf(out, "%llu", (unsigned long long)m->row);
        } else if (str_ieqz(name, "Step")) {
                buf_printf(out, "%llu", (unsigned long long)m->step);
        } else if (str_ieqz(name, "Cluster") || str_ieqz(name, "ClusterId")) {
                m->unknown = true;
                return MACRO_LATE;
        } else {
                return MACRO_UNKNOWN;
        }
        return MACRO_FINAL;
}

/* ---- collecting */

static int add_file(struct ship *s, const char *path, const char *name, const struct stat *st,
                    bool executable, struct err *err)
{
        uintptr_t index = (uintptr_t)map_get(s->by_name, str_of(name));
        struct ship_file *file;

        if (index > 0) {
                file = &s->files[index - 1];
                file->executable |= executable;
                if (strcmp(file->path, path) == 0)
                        return 0;
                return err_set(err, -EEXIST,
                               "%s and %s would both be \"%s\" in the job's folder: sent files need names of "
                               "their own "
                               "across the jobs of a request",
                               file->path, path, name);
        }
        if (s->count == SHIP_FILES_MAX)
                return err_set(err, -E2BIG,
                               "over %d input files to send: pack them, or let agents share your files",
                               SHIP_FILES_MAX);
        MEM_GROW(s->files, s->cap, s->count + 1);
        file = &s->files[s->count++];
        *file = (struct ship_file){.path = mem_dupz(path),
                                   .name = mem_dupz(name),
                                   .executable = executable || (st->st_mode & 0111)};
        map_put(s->by_name, str_of(name), (void *)(uintptr_t)s->count);
        return 0;
}

static int add_tree(struct ship *s, const char *path, const char *name, unsigned depth, struct err *err);

static int add_entry(struct ship *s, const char *folder, const char *name, const char *entry, unsigned depth,
                     struct err *err)
{
        struct buf path BUF_CLEANUP = {0}, inner BUF_CLEANUP = {0};
        struct stat st;

        buf_printf(&path, "%s/%s", folder, entry);
        buf_printf(&inner, "%s%s%s", name, *name ? "/" : "", entry);
        /* Links to files are followed; links to folders may lead in circles, and are left out. */
        if (stat(buf_z(&path), &st) != 0)
                return err_set(err, -errno, "%s: %s", buf_z(&path), strerror(errno));
        if (S_ISDIR(st.st_mode)) {
                if (lstat(buf_z(&path), &st) != 0 || !S_ISDIR(st.st_mode))
                        return 0;
                return add_tree(s, buf_z(&path), buf_z(&inner), depth + 1, err);
        }
        return S_ISREG(st.st_mode) ? add_file(s, buf_z(&path), buf_z(&inner), &st, false, err) : 0;
}

static int add_tree(struct ship *s, const char *path, const char *name, unsigned depth, struct err *err)
{
        struct dirent *e;
        DIR *d;
        int rc = 0;

        if (depth > SHIP_DEPTH_MAX)
                return err_set(err, -ELOOP, "%s: folders are nested over %d deep", path, SHIP_DEPTH_MAX);
        d = opendir(path);
        if (!d)
                return err_set(err, -errno, "%s: %s", path, strerror(errno));
        while (rc == 0 && (e = readdir(d)))
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        rc = add_entry(s, path, name, e->d_name, depth, err);
        closedir(d);
        return rc;
}

/* Adds a path as written, relative to iwd. Its name in the job's folder is its last component. */
static int add_path(struct ship *s, struct str iwd, struct str written, bool executable, struct err *err)
{
        bool contents = written.n > 1 && str_ends(written, STR("/"));
        struct buf path BUF_CLEANUP = {0};
        struct stat st;
        const char *name;

        while (written.n > 1 && str_ends(written, STR("/")))
                written.n--;
        if (written.p[0] != '/') {
                buf_str(&path, iwd);
                buf_char(&path, '/');
        }
        buf_str(&path, written);
        if (stat(buf_z(&path), &st) != 0)
                return err_set(err, -errno, "the input file %s can't be sent: %s", buf_z(&path),
                               strerror(errno));
        name = buf_z(&path) + str_rfind(buf_view(&path), '/') + 1;
        if (S_ISDIR(st.st_mode))
                return add_tree(s, buf_z(&path), contents ? "" : name, 0, err);
        if (!S_ISREG(st.st_mode) || contents)
                return err_set(err, -EINVAL, "the input file %s can't be sent: it is no %s", buf_z(&path),
                               contents ? "folder" : "regular file");
        return add_file(s, buf_z(&path), name, &st, executable, err);
}

/* Makes a glob pattern that matches the name for any values that the place fills in. Returns false if
 * nothing else is in the last component. */
static bool place_pattern(struct str iwd, struct str written, struct buf *out)
{
        struct match_macro m;
        struct str before;
        size_t known = 0;

        if (written.p[0] != '/')
                buf_printf(out, STR_FMT "/", STR_ARG(iwd));
        for (;;) {
                enum match_macro_found found = match_macro_next(&written, &before, &m);

                for (size_t i = 0; i < before.n; i++) {
                        if (strchr("*?[\\", before.p[i]))
                                buf_char(out, '\\');
                        buf_char(out, before.p[i]);
                        known = before.p[i] == '/' ? 0 : known + 1;
                }
                if (found != MATCH_MACRO_ONE)
                        return known > 0;
                buf_addz(out, str_ieqz(m.name, "DOLLARDOLLAR") ? "$$" : "*");
        }
}

/* Adds a path with $$() in it: all files that it can expand to are sent, and the place takes the one it
 * needs. */
static int add_place_path(struct ship *s, struct str iwd, struct str written, bool executable,
                          struct err *err)
{
        struct buf pattern BUF_CLEANUP = {0};
        glob_t found = {0};
        int rc = 0;

        if (!place_pattern(iwd, written, &pattern))
                return err_set(err, -EINVAL,
                               "the input file " STR_FMT
                               " can't be sent: nothing of its name is known here; write "
                               "something before or behind $$()",
                               STR_ARG(written));
        if (glob(buf_z(&pattern), 0, NULL, &found) != 0)
                rc = err_set(err, -ENOENT,
                             "the input file " STR_FMT " can't be sent: no file has the name %s",
                             STR_ARG(written), buf_z(&pattern));
        for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
                rc = add_path(s, iwd, str_of(found.gl_pathv[i]), executable, err);
        globfree(&found);
        return rc;
}

static int add_one(struct ship *s, struct str iwd, struct str written, bool executable, struct err *err)
{
        return (match_macro_present(written) ? add_place_path : add_path)(s, iwd, written, executable, err);
}

/* The attributes of a part that name files. */
struct names {
        struct buf iwd, cmd, in, list;
        struct buf made[ENVIRONMENT_KINDS]; /* what environments are made of */
        bool late;                          /* any of them */
};

/* Also when nothing else is sent: what is in it says which environment is meant. */
static void read_made(const struct form_part *p, struct names *n)
{
        static const char *const attributes[] = {
                [ENVIRONMENT_CONDA] = "CondaEnv", [ENVIRONMENT_PYTHON] = "PythonEnv"};
        bool late;

        for (int kind = 0; kind < ENVIRONMENT_KINDS; kind++) {
                struct buf *text = &n->made[kind];

                if (literal(p, attributes[kind], text, &late) &&
                    (kind == ENVIRONMENT_PYTHON || environment_is_file(buf_view(text))))
                        n->late |= late;
                else
                        buf_reset(text);
        }
}

static void read_names(const struct form_part *p, bool all, struct names *n)
{
        bool late;

        *n = (struct names){0};
        if (literal(p, "Iwd", &n->iwd, &late))
                n->late |= late;
        read_made(p, n);
        if (!all)
                return;
        if (!is_false(p, "TransferExecutable") && literal(p, "Cmd", &n->cmd, &late))
                n->late |= late;
        if (literal(p, "In", &n->in, &late))
                n->late |= late;
        if (literal(p, "TransferInput", &n->list, &late))
                n->late |= late;
}

static void names_deinit(struct names *n)
{
        buf_deinit(&n->iwd);
        buf_deinit(&n->cmd);
        buf_deinit(&n->in);
        buf_deinit(&n->list);
        for (int kind = 0; kind < ENVIRONMENT_KINDS; kind++)
                buf_deinit(&n->made[kind]);
}

static int expand(struct member *m, const struct buf *text, struct buf *out, struct err *err)
{
        uint64_t random = 0;
        struct macro_world w = {.arg = m, .lookup = look_up, .random = &random};
        int rc;

        buf_reset(out);
        rc = macro_expand(&w, buf_view(text), out, NULL, err);
        if (rc == 0 && m->unknown)
                rc = err_set(err, -EINVAL,
                             "\"" STR_FMT "\" names an input file by the request's number, which is not "
                             "known before it is sent",
                             STR_ARG(buf_view(text)));
        return rc;
}

static int add_made(struct ship *s, struct str iwd, struct str written, struct err *err)
{
        uintptr_t index;
        int rc = add_one(s, iwd, written, false, err);

        if (rc != 0)
                return rc;
        written = str_skip(written, (size_t)(str_rfind(written, '/') + 1));
        index = (uintptr_t)map_get(s->by_name, written);
        if (index > 0)
                s->files[index - 1].made = true;
        return 0;
}

static int add_member(struct ship *s, struct member *m, const struct names *n, struct err *err)
{
        struct buf iwd BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        struct str rest, one;
        int rc = expand(m, &n->iwd, &iwd, err);

        if (rc == 0)
                rc = expand(m, &n->cmd, &text, err);
        if (rc == 0 && text.n)
                rc = add_one(s, buf_view(&iwd), buf_view(&text), true, err);
        if (rc == 0)
                rc = expand(m, &n->in, &text, err);
        if (rc == 0 && text.n && !str_eqz(buf_view(&text), "/dev/null"))
                rc = add_one(s, buf_view(&iwd), buf_view(&text), false, err);
        for (int kind = 0; rc == 0 && kind < ENVIRONMENT_KINDS; kind++) {
                rc = expand(m, &n->made[kind], &text, err);
                if (rc == 0 && text.n)
                        rc = add_made(s, buf_view(&iwd), buf_view(&text), err);
        }
        if (rc == 0)
                rc = expand(m, &n->list, &text, err);
        rest = buf_view(&text);
        while (rc == 0 && str_cut(&rest, ',', &one))
                if (str_trim(one).n && str_search(one, STR("://")) < 0 &&
                    !str_starts(str_trim(one), STR(FORM_LIST_PREFIX)))
                        rc = add_one(s, buf_view(&iwd), str_trim(one), false, err);
        return rc;
}

static int add_part(struct ship *s, const struct form_part *p, bool all, uint64_t first, struct err *err)
{
        struct str items = buf_view(&p->items), row = STR_NONE;
        struct names n;
        int rc = 0;

        read_names(p, all, &n);
        for (uint64_t r = 0; rc == 0 && r < p->rows; r++) {
                if (p->variable_count)
                        str_cut(&items, '\n', &row);
                for (uint64_t step = 0; rc == 0 && step < p->steps; step++) {
                        struct member m = {p, first + r * p->steps + step, r, step, row, false};

                        rc = add_member(s, &m, &n, err);
                        if (!n.late)
                                break;
                }
                if (!n.late)
                        break;
        }
        names_deinit(&n);
        return rc;
}

/* A name that only the server can expand is not looked for. */
static int ship_find_program(struct member *m, const struct names *n, struct err *err)
{
        BUF_CLEANUP struct buf iwd = {0}, cmd = {0}, path = {0};
        struct stat st;

        if (expand(m, &n->iwd, &iwd, NULL) != 0 || expand(m, &n->cmd, &cmd, NULL) != 0)
                return 0;
        if (iwd.n && (stat(buf_z(&iwd), &st) != 0 || !S_ISDIR(st.st_mode)))
                return err_set(err, -ENOENT, "No such directory: %s", buf_z(&iwd));
        if (!match_macro_present(buf_view(&cmd)) && local_path(buf_view(&iwd), buf_view(&cmd), &path) &&
            stat(buf_z(&path), &st) != 0)
                return err_set(err, -ENOENT, "Can't access executable file %s: %s", buf_z(&path),
                               strerror(errno));
        return 0;
}

/* Members without late macros are alike. */
static int find_part(const struct form_part *p, uint64_t first, struct err *err)
{
        struct str items = buf_view(&p->items), row = STR_NONE;
        struct names n = {0};
        bool late = false, cmd_late = false;
        int rc = 0;

        literal(p, "Iwd", &n.iwd, &late);
        if (local_program(p))
                literal(p, "Cmd", &n.cmd, &cmd_late);
        late |= cmd_late;
        for (uint64_t i = 0; rc == 0 && i < (late ? p->rows * p->steps : 1); i++) {
                struct member m = {p, first + i, i / p->steps, i % p->steps, row, false};

                if (p->variable_count && m.step == 0)
                        str_cut(&items, '\n', &row);
                m.values = row;
                rc = ship_find_program(&m, &n, err);
        }
        names_deinit(&n);
        return rc;
}

int ship_find_programs(const struct form *f, struct err *err)
{
        uint64_t first = 0;
        int rc = 0;

        for (size_t i = 0; rc == 0 && i < f->part_count; i++) {
                rc = find_part(&f->parts[i], first, err);
                first += f->parts[i].rows * f->parts[i].steps;
        }
        return rc;
}

/* The lists of files of datasets. */
static int add_lists(struct ship *s, const struct form *f, struct err *err)
{
        for (size_t i = 0; i < f->list_count; i++) {
                struct buf name BUF_CLEANUP = {0};

                if (s->count >= SHIP_FILES_MAX)
                        return err_set(err, -E2BIG, "the lists of its files are over %u files",
                                       SHIP_FILES_MAX);
                buf_printf(&name, FORM_LIST_PREFIX "%zu", i);
                MEM_GROW(s->files, s->cap, s->count + 1);
                s->files[s->count++] = (struct ship_file){.path = mem_dupz(""),
                                                          .name = mem_dupz(buf_z(&name)),
                                                          .size = f->lists[i].text.n,
                                                          .text = buf_view(&f->lists[i].text)};
        }
        return 0;
}

int ship_collect(struct ship *s, const struct form *f, bool remote_agents, struct err *err)
{
        uint64_t first = 0;

        if (!s->by_name)
                s->by_name = map_new();
        if (add_lists(s, f, err) != 0)
                return -E2BIG;
        for (size_t i = 0; i < f->part_count; i++) {
                const struct form_part *p = &f->parts[i];
                enum should should = should_transfer(p);
                bool all = should == SHOULD_YES || (should == SHOULD_IF_NEEDED && remote_agents);
                int rc = add_part(s, p, all, first, err);

                if (rc != 0)
                        return rc;
                first += p->rows * p->steps;
        }
        return 0;
}

int ship_send(struct cli *cli, struct ship *s)
{
        s->refs = mem_array(NULL, s->count ? s->count : 1, sizeof(*s->refs));
        for (size_t i = 0; i < s->count; i++) {
                struct ship_file *file = &s->files[i];
                struct upload upload;
                int code = file->text.p ? upload_bytes(cli, file->text, file->name, &upload)
                                        : upload_file(cli, file->path, file->name, &upload);

                if (code != 0)
                        return code;
                memcpy(file->sha256, upload.sha256, sizeof(file->sha256));
                file->size = upload.size;
                s->refs[s->ref_count++] =
                        (struct form_file){file->name, file->sha256, file->size, file->executable};
        }
        return 0;
}

int ship_tell(struct ship *s, struct err *err)
{
        s->refs = mem_array(NULL, s->count ? s->count : 1, sizeof(*s->refs));
        for (size_t i = 0; i < s->count; i++) {
                struct ship_file *file = &s->files[i];
                struct buf text BUF_CLEANUP = {0};
                int rc;

                if (!file->made)
                        continue;
                rc = fs_read(AT_FDCWD, file->path, MADE_MAX, &text, err);
                if (rc == 0)
                        rc = sha256_hex(buf_view(&text), file->sha256, err);
                if (rc != 0)
                        return rc;
                s->refs[s->ref_count++] = (struct form_file){file->name, file->sha256, text.n, false};
        }
        return 0;
}
