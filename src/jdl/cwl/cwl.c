#include "jdl/cwl/cwl.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/format/doc.h"
#include "base/format/hex.h"
#include "base/format/json.h"
#include "base/map.h"
#include "jdl/script/script.h"

#define TEXT_MAX  (4u << 20)
#define DOCS_MAX  200
#define FILES_MAX 10000
#define TYPES_MAX 64 /* in each other */

struct cwl {
        const struct form_world *w;
        struct form *form;
        struct map *names; /* of what travels: its name in the job's folder -> its path (owned) */
        char **paths;      /* in the order they were found; borrowed from the map */
        size_t count, cap;
        char **described; /* of these, what the description names by a relative path, and itself; borrowed */
        size_t described_count, described_cap;
        struct doc *docs[DOCS_MAX]; /* descriptions; the first is the tool's */
        const struct doc *tool;     /* in it: what is run */
        size_t doc_count;
        uint64_t cores, ram_mib;
        bool needs_container;
};

static int fail_document(const struct doc *at, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static int fail_document(const struct doc *at, struct err *err, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        err_vset(err, -EINVAL, fmt, ap);
        va_end(ap);
        return doc_where(err, -EINVAL, at);
}

static struct str word(const struct doc *d)
{
        return d && d->kind == DOC_WORD ? d->text : STR_NONE;
}

static struct str base_name(struct str path)
{
        while (path.n > 1 && path.p[path.n - 1] == '/')
                path.n--;
        return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

static bool is_url(struct str s)
{
        return str_search(s, STR("://")) >= 0;
}

/* A location is a URI: %20 in it is a blank. A path is none. */
static bool is_location(const struct doc *d)
{
        return str_eqz(d->key, "location");
}

static void decode(struct str s, struct buf *out)
{
        for (size_t i = 0; i < s.n; i++) {
                int high = i + 2 < s.n && s.p[i] == '%' ? hex_digit(s.p[i + 1]) : -1;
                int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;

                if (low >= 0 && high + low > 0) {
                        buf_char(out, (char)(high * 16 + low));
                        i += 2;
                } else {
                        buf_char(out, s.p[i]);
                }
        }
}

static void encode(struct str s, struct buf *out)
{
        for (size_t i = 0; i < s.n; i++)
                if (isalnum((unsigned char)s.p[i]) || strchr("-._~+,=@", s.p[i]))
                        buf_char(out, s.p[i]);
                else
                        buf_printf(out, "%%%02X", (unsigned char)s.p[i]);
}

/* Takes "NAME/.." out of an absolute path. */
static void shorten(struct buf *path)
{
        struct buf out = {0};
        struct str rest = buf_view(path), part;

        while (str_cut(&rest, '/', &part)) {
                if (str_eqz(part, ".."))
                        buf_truncate(&out, (size_t)(str_rfind(buf_view(&out), '/') < 0
                                                            ? 0
                                                            : str_rfind(buf_view(&out), '/')));
                else if (part.n && !str_eqz(part, "."))
                        buf_printf(&out, "/" STR_FMT, STR_ARG(part));
        }
        buf_deinit(path);
        *path = out;
}

/* ---- what travels */

/* A file or folder named in `at`, which begins at the folder of at->file. *ret_name is borrowed. */
static int add_path(struct cwl *c, const struct doc *at, struct str written, struct str *ret_name,
                    struct err *err)
{
        BUF_CLEANUP struct buf full = {0}, decoded = {0};
        struct str path, name;
        const char *before;

        if (is_location(at))
                decode(written, &decoded);
        else
                buf_str(&decoded, written);
        path = buf_view(&decoded);
        if (str_starts(path, STR("file://")))
                path = str_skip(path, 7);
        name = base_name(path);
        if (!name.n || str_eqz(name, ".") || str_eqz(name, "..") || str_find(path, ',') >= 0 ||
            str_find(path, '\n') >= 0)
                return fail_document(at, err, "'" STR_FMT "' cannot be the path of an input", STR_ARG(path));
        script_absolute(c->w, str_of(at->file), path, &full);
        shorten(&full);
        before = map_get(c->names, name);
        if (before && strcmp(before, buf_z(&full)) != 0)
                return fail_document(at, err,
                                     "two files have the name " STR_FMT " in the job's folder: rename one",
                                     STR_ARG(name));
        if (!before) {
                if (c->count == FILES_MAX)
                        return fail_document(at, err, "there are more than %d files", FILES_MAX);
                MEM_GROW(c->paths, c->cap, c->count + 1);
                c->paths[c->count] = mem_dupz(buf_z(&full));
                map_put(c->names, name, c->paths[c->count]);
                c->count++;
        }
        *ret_name = base_name(str_of(map_get(c->names, name)));
        return 0;
}

/* A File or Directory: NULL if it is neither; else what names it (path or location), or the map itself for a
 * literal. */
static const struct doc *file_of(const struct doc *d)
{
        struct str class = word(doc_get(d, "class"));
        const struct doc *named = doc_get(d, "path") ? doc_get(d, "path") : doc_get(d, "location");

        if (!str_eqz(class, "File") && !str_eqz(class, "Directory"))
                return NULL;
        return named ? named : d;
}

/* ---- the job order, as JSON */

/* A word as YAML means it: a number, true, false, null, or a text. */
static void write_word(const struct doc *d, struct json *j)
{
        double number;
        bool yes;

        if (d->empty)
                json_null(j);
        else if (d->quoted)
                json_str(j, d->text);
        else if ((str_ieqz(d->text, "true") || str_ieqz(d->text, "false")) && doc_bool(d, &yes, NULL) == 0)
                json_bool(j, yes);
        else if (str_to_double(d->text, &number) == 0 && strchr("-0123456789.", d->text.p[0]) &&
                 script_is_json_number(d->text))
                json_raw(j, d->text);
        else
                json_str(j, d->text);
}

static int write_value(struct cwl *c, const struct doc *d, struct json *j, struct err *err)
{
        const struct doc *named = d->kind == DOC_MAP ? file_of(d) : NULL;
        struct str name;
        int rc = 0;

        if (d->kind == DOC_WORD) {
                write_word(d, j);
                return 0;
        }
        json_open(j, d->kind == DOC_MAP ? '{' : '[');
        for (const struct doc *i = d->first; i && rc == 0; i = i->next) {
                if (d->kind == DOC_MAP)
                        json_keys(j, i->key);
                if (i != named || is_url(word(i))) {
                        rc = write_value(c, i, j, err);
                        continue;
                }
                rc = add_path(c, i, word(i), &name, err);
                if (rc == 0 && is_location(i)) {
                        BUF_CLEANUP struct buf uri = {0};

                        encode(name, &uri);
                        json_str(j, buf_view(&uri));
                } else if (rc == 0) {
                        json_str(j, name);
                }
        }
        json_close(j, d->kind == DOC_MAP ? '}' : ']');
        return rc;
}

/* ---- the description */

static int read_doc(struct cwl *c, const char *file, struct doc **ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
        int rc = c->w->read_file(c->w->arg, file, &text);

        if (rc != 0)
                return err_set(err, rc, "%s: %s", file, strerror(-rc));
        if (buf_check(&text) != 0)
                return err_set(err, -E2BIG, "%s: it is over %u MiB", file, TEXT_MAX >> 20);
        *ret = NULL;
        return doc_parse(file, buf_view(&text), ret, err);
}

static int look_at_class(struct cwl *c, const struct doc *d, struct err *err);

static int describe(struct cwl *c, const char *path)
{
        for (size_t i = 0; i < c->described_count; i++)
                if (strcmp(c->described[i], path) == 0)
                        return 1;
        MEM_GROW(c->described, c->described_cap, c->described_count + 1);
        c->described[c->described_count++] = mem_dupz(path);
        return 0;
}

/* Another file of the description, by a path that begins where the one that names it is. In the job's folder
 * it is found by the same path (write_tree). */
static int refer(struct cwl *c, const struct doc *at, bool is_description, struct err *err)
{
        struct str path = word(at), name;
        ptrdiff_t hash = str_find(path, '#');
        BUF_CLEANUP struct buf full = {0}, decoded = {0};
        int rc;

        if (hash >= 0)
                path = str_head(path, (size_t)hash);
        if (!path.n || is_url(path)) /* in the same file, or fetched by cwltool */
                return 0;
        if (path.p[0] == '/')
                return fail_document(at, err,
                                     STR_FMT
                                     ": what a description refers to must be named by a relative path; or "
                                     "pack it: cwltool --pack",
                                     STR_ARG(path));
        rc = add_path(c, at, path, &name, err);
        if (rc != 0)
                return rc;
        if (is_location(at))
                decode(path, &decoded);
        else
                buf_str(&decoded, path);
        script_absolute(c->w, str_of(at->file), buf_view(&decoded), &full);
        shorten(&full);
        if (describe(c, buf_z(&full)) != 0 || !is_description)
                return 0;
        if (c->doc_count == DOCS_MAX)
                return fail_document(at, err, "the description has more than %d files", DOCS_MAX);
        rc = read_doc(c, buf_z(&full), &c->docs[c->doc_count], err);
        if (rc != 0 || !c->docs[c->doc_count])
                return rc;
        return look_at_class(c, c->docs[c->doc_count++], err);
}

/* Files that stand in it, and other descriptions. */
static int look_at_class(struct cwl *c, const struct doc *d, struct err *err)
{
        const struct doc *named = d->kind == DOC_MAP ? file_of(d) : NULL;
        int rc = named && named != d ? refer(c, named, false, err) : 0;

        for (const struct doc *i = d->first; i && rc == 0; i = i->next) {
                if (i->kind == DOC_LIST && str_eqz(i->key, "$schemas"))
                        for (const struct doc *k = i->first; k && rc == 0; k = k->next)
                                rc = refer(c, k, false, err);
                else if (i->kind != DOC_WORD)
                        rc = look_at_class(c, i, err);
                else if (str_eqz(i->key, "run") || str_eqz(i->key, "$import"))
                        rc = refer(c, i, true, err);
                else if (str_eqz(i->key, "$include"))
                        rc = refer(c, i, false, err);
        }
        return rc;
}

static uint64_t plain_number(const struct doc *d)
{
        double n;

        return d && d->kind == DOC_WORD && str_to_double(d->text, &n) == 0 && n > 0 && n < 1e9
                       ? (uint64_t)(n + 0.999)
                       : 0;
}

/* One requirement or hint, by its class. */
static void use_requirement(struct cwl *c, struct str class, const struct doc *d, bool must)
{
        if (str_eqz(class, "ResourceRequirement")) {
                c->cores = plain_number(doc_get(d, doc_get(d, "coresMin") ? "coresMin" : "coresMax"));
                c->ram_mib = plain_number(doc_get(d, doc_get(d, "ramMin") ? "ramMin" : "ramMax"));
        } else if (str_eqz(class, "DockerRequirement")) {
                c->needs_container = c->needs_container || must;
        }
}

/* A map by class, or a list of maps with a class. */
static void read_requirements(struct cwl *c, const struct doc *list, bool must)
{
        for (const struct doc *d = list && list->kind != DOC_WORD ? list->first : NULL; d; d = d->next)
                use_requirement(c, list->kind == DOC_MAP ? d->key : word(doc_get(d, "class")), d, must);
}

/* Returns the process to run: of a packed description (one with $graph) the process whose id is `main`, of
 * any other the whole document. */
static const struct doc *main_of(const struct doc *root)
{
        const struct doc *graph = doc_get(root, "$graph");

        for (const struct doc *d = graph ? graph->first : NULL; d; d = d->next)
                if (str_eqz(word(doc_get(d, "id")), "#main") || str_eqz(word(doc_get(d, "id")), "main"))
                        return d;
        return root;
}

static int read_tool(struct cwl *c, const char *file, struct err *err)
{
        const struct doc *tool;
        struct str class, name;
        int rc = read_doc(c, file, &c->docs[0], err);

        if (rc == 0 && !c->docs[0])
                rc = err_set(err, -EINVAL, "%s:1: this is no CWL description", file);
        if (rc != 0)
                return rc;
        tool = c->tool = main_of(c->docs[c->doc_count++]);
        class = word(doc_get(tool, "class"));
        if (!class.n)
                return fail_document(
                        tool, err,
                        "this is no CWL description: it has neither a class nor a $graph with a main");
        if (str_eqz(class, "Workflow"))
                form_warn(c->form, tool->line,
                          "a workflow runs as one job, with all its steps on one machine");
        else if (!str_eqz(class, "CommandLineTool") && !str_eqz(class, "ExpressionTool"))
                return fail_document(doc_get(tool, "class"), err, "the class " STR_FMT " is not supported",
                                     STR_ARG(class));
        rc = add_path(c, tool, base_name(str_of(file)), &name, err);
        if (rc == 0)
                describe(c, map_get(c->names, name));
        read_requirements(c, doc_get(tool, "hints"), false);
        read_requirements(c, doc_get(tool, "requirements"), true);
        return rc == 0 ? look_at_class(c, c->docs[0], err) : rc;
}

/* ---- files that belong to an input without being named: secondaryFiles of the description */

static const struct doc *input_of(const struct cwl *c, struct str name)
{
        const struct doc *all = doc_get(c->tool, "inputs");

        for (const struct doc *d = all && all->kind != DOC_WORD ? all->first : NULL; d; d = d->next) {
                struct str id = all->kind == DOC_MAP ? d->key : word(doc_get(d, "id"));

                if (str_find(id, '#') >= 0)
                        id = str_skip(id, (size_t)str_find(id, '#') + 1);
                if (str_eq(id, name) ||
                    (id.n > name.n && str_ends(id, name) && id.p[id.n - name.n - 1] == '/'))
                        return d;
        }
        return NULL;
}

static void see(void *to, struct str path)
{
        (void)path;
        *(bool *)to = true;
}

/* ".bai" is put behind the name; each ^ before it first takes an extension off. What isn't there is cwltool's
 * to miss. */
static int add_second(struct cwl *c, const struct doc *at, struct str file, struct str pattern,
                      struct err *err)
{
        BUF_CLEANUP struct buf path = {0}, decoded = {0}, full = {0};
        struct str name;
        bool there = false;

        if (str_search(pattern, STR("$(")) >= 0 || str_search(pattern, STR("${")) >= 0) {
                form_warn(
                        c->form, at->line,
                        "secondaryFiles: what an expression names does not travel; name it in the job order");
                return 0;
        }
        if (str_ends(pattern, STR("?")))
                pattern.n--;
        for (; str_starts(pattern, STR("^")); pattern = str_skip(pattern, 1))
                if (str_rfind(file, '.') > str_rfind(file, '/') + 1)
                        file = str_head(file, (size_t)str_rfind(file, '.'));
        buf_printf(&path, STR_FMT STR_FMT, STR_ARG(file), STR_ARG(pattern));
        if (is_location(at))
                decode(buf_view(&path), &decoded);
        else
                buf_str(&decoded, buf_view(&path));
        script_absolute(c->w, str_of(at->file), buf_view(&decoded), &full);
        if (is_url(file) || strpbrk(buf_z(&full), "*?[\\") ||
            c->w->glob(c->w->arg, buf_z(&full), 'a', see, &there) != 0 || !there)
                return 0;
        return add_path(c, at, buf_view(&path), &name, err);
}

static int add_seconds(struct cwl *c, const struct doc *value, const struct doc *patterns, struct err *err)
{
        const struct doc *named = value->kind == DOC_MAP ? file_of(value) : NULL;
        int rc = 0;

        if (value->kind == DOC_LIST)
                for (const struct doc *i = value->first; i && rc == 0; i = i->next)
                        rc = add_seconds(c, i, patterns, err);
        if (!named || named == value || doc_get(value, "secondaryFiles"))
                return rc;
        if (patterns->kind == DOC_WORD)
                return add_second(c, named, word(named), word(patterns), err);
        if (patterns->kind == DOC_MAP)
                return add_second(c, named, word(named), word(doc_get(patterns, "pattern")), err);
        for (const struct doc *p = patterns->first; p && rc == 0; p = p->next)
                rc = add_second(c, named, word(named),
                                p->kind == DOC_MAP ? word(doc_get(p, "pattern")) : word(p), err);
        return rc;
}

/* A type that is named: of a SchemaDefRequirement. */
static const struct doc *named_type(const struct doc *d, struct str name)
{
        const struct doc *found = NULL;
        struct str own = word(doc_get(d, "name"));

        if (d->kind == DOC_MAP && own.n && (str_eq(own, name) || str_eq(str_skip(own, 1), name)))
                return d;
        for (const struct doc *i = d->kind == DOC_WORD ? NULL : d->first; i && !found; i = i->next)
                found = named_type(i, name);
        return found;
}

static int add_typed(struct cwl *c, const struct doc *value, const struct doc *definition, unsigned depth,
                     struct err *err);

/* The fields of a record, which may be in a list of records; of each type of a union. */
static int add_fields(struct cwl *c, const struct doc *value, const struct doc *type, unsigned depth,
                      struct err *err)
{
        const struct doc *fields, *found = NULL;
        bool list = false;
        int rc = 0;

        if (!type || depth > TYPES_MAX)
                return 0;
        if (type->kind == DOC_WORD) {
                struct str name = str_skip(type->text, (size_t)(str_find(type->text, '#') + 1));

                if (str_ends(name, STR("?")))
                        name.n--;
                if (str_ends(name, STR("[]"))) {
                        name.n -= 2;
                        list = true;
                }
                for (size_t i = 0; i < c->doc_count && !found; i++)
                        found = c->docs[i] ? named_type(c->docs[i], name) : NULL;
                if (found && !list)
                        return add_fields(c, value, found, depth + 1, err);
                for (const struct doc *i = found && value->kind == DOC_LIST ? value->first : NULL;
                     i && rc == 0; i = i->next)
                        rc = add_fields(c, i, found, depth + 1, err);
                return rc;
        }
        if (type->kind == DOC_LIST)
                for (const struct doc *i = type->first; i && rc == 0; i = i->next)
                        rc = add_fields(c, value, i, depth + 1, err);
        if (type->kind != DOC_MAP || rc != 0)
                return rc;
        if (value->kind == DOC_LIST && doc_get(type, "items"))
                for (const struct doc *i = value->first; i && rc == 0; i = i->next)
                        rc = add_fields(c, i, doc_get(type, "items"), depth + 1, err);
        fields = doc_get(type, "fields");
        for (const struct doc *d =
                     fields && fields->kind != DOC_WORD && value->kind == DOC_MAP ? fields->first : NULL;
             d && rc == 0; d = d->next) {
                struct str name = fields->kind == DOC_MAP ? d->key : word(doc_get(d, "name"));
                const struct doc *own;

                name = str_skip(name, (size_t)(str_find(name, '#') + 1));
                for (own = value->first; own && !str_eq(own->key, name);)
                        own = own->next;
                if (own)
                        rc = add_typed(c, own, d, depth + 1, err);
        }
        return rc;
}

static int add_typed(struct cwl *c, const struct doc *value, const struct doc *definition, unsigned depth,
                     struct err *err)
{
        const struct doc *patterns = doc_get(definition, "secondaryFiles");
        int rc = patterns ? add_seconds(c, value, patterns, err) : 0;

        return rc == 0 ? add_fields(c, value, doc_get(definition, "type"), depth, err) : rc;
}

static int read_order(struct cwl *c, const char *file, struct buf *out, struct err *err)
{
        struct json j = {.out = out};
        struct doc *order = NULL;
        int rc = file ? read_doc(c, file, &order, err) : 0;

        if (rc == 0 && order && order->kind != DOC_MAP)
                rc = fail_document(order, err, "a job order is a map of inputs to values");
        else if (rc == 0 && order)
                rc = write_value(c, order, &j, err);
        else if (rc == 0)
                buf_addz(out, "{}");
        for (const struct doc *d = order ? order->first : NULL; d && rc == 0; d = d->next) {
                const struct doc *input = input_of(c, d->key);

                if (input && input->kind == DOC_MAP)
                        rc = add_typed(c, d, input, 0, err);
                else
                        rc = add_fields(c, d, input, 0, err); /* "name: type" */
        }
        doc_free(order);
        return rc;
}

/* ---- the job */

static const char begin[] =
        "box=$PWD\n"
        "engine=--no-container\n"
        "if command -v docker >/dev/null && [ -w /var/run/docker.sock ]; then\n"
        "        engine=\n"
        "elif command -v podman >/dev/null; then\n"
        "        engine=--podman\n"
        "elif command -v apptainer >/dev/null || command -v singularity >/dev/null; then\n"
        "        engine=--singularity\n"
        "fi\n"
        "mkdir .drover_tmp .drover_out || exit\n";

/* A folder among the outputs would stay behind: only files at the top go back. One that is an input, too,
 * comes back for being newer. */
static const char end[] =
        "status=$?\n"
        "sed \"s|file://$box/.drover_out/||g; s|$box/.drover_out/||g\" <.drover_outputs >cwl_outputs.json\n"
        "for output in .drover_out/*; do\n"
        "        if [ -d \"$output\" ]; then\n"
        "                tar -C .drover_out -cf \"${output##*/}.tar\" \"${output##*/}\"\n"
        "        elif [ -e \"$output\" ]; then\n"
        "                mv -f \"$output\" . && touch \"./${output##*/}\"\n"
        "        fi\n"
        "done\n"
        "exit $status\n";

/* How much of the paths of the description is a folder that they have in common. */
static size_t common_folder(const struct cwl *c)
{
        struct str all = str_of(c->described[0]);

        all.n = (size_t)str_rfind(all, '/') + 1;
        for (size_t i = 1; i < c->described_count; i++)
                while (!str_starts(str_of(c->described[i]), all))
                        all.n = (size_t)str_rfind(str_head(all, all.n - 1), '/') + 1;
        return all.n;
}

/* Files of the description that are in more than one folder are linked to from paths that are as they were
 * among each other. */
static void write_tree(const struct cwl *c, struct buf *tool, struct buf *out)
{
        size_t common = common_folder(c);
        bool one = true;

        for (size_t i = 0; i < c->described_count; i++)
                one = one && str_find(str_of(c->described[i] + common), '/') < 0;
        if (one)
                return;
        buf_reset(tool);
        buf_printf(tool, ".drover_cwl/%s", c->described[0] + common);
        for (size_t i = 0; i < c->described_count; i++) {
                struct str path = str_of(c->described[i] + common);
                BUF_CLEANUP struct buf link = {0};

                buf_printf(&link, ".drover_cwl/" STR_FMT, STR_ARG(path));
                buf_addz(out, "mkdir -p ");
                script_quote(out, str_head(buf_view(&link), (size_t)str_rfind(buf_view(&link), '/')));
                buf_addz(out, " && ln -s \"$box/\"");
                script_quote(out, base_name(path));
                buf_char(out, ' ');
                script_quote(out, buf_view(&link));
                buf_addz(out, " || exit\n");
        }
}

static void write_script(const struct cwl *c, struct str name, struct str order, struct buf *out)
{
        BUF_CLEANUP struct buf tool = {0};

        buf_str(&tool, name);
        buf_addz(out, begin);
        write_tree(c, &tool, out);
        buf_addz(out, "printf '%s\\n' ");
        script_quote(out, order);
        buf_addz(out, " >.drover_order.json\n");
        buf_addz(out, "cwltool $engine --disable-color --tmpdir-prefix \"$box/.drover_tmp/\" --outdir "
                      "\"$box/.drover_out\" ./");
        script_quote(out, buf_view(&tool));
        buf_addz(out, " .drover_order.json >.drover_outputs\n");
        buf_addz(out, end);
}

static void write_submit(const struct cwl *c, struct str tool, struct buf *out)
{
        buf_printf(out, "output = tool_stdout\nerror = tool_stderr\n");
        buf_addz(out, "batch_name = ");
        script_value(out, tool);
        buf_char(out, '\n');
        if (c->cores)
                buf_printf(out, "request_cpus = %llu\n", (unsigned long long)c->cores);
        if (c->ram_mib)
                buf_printf(out, "request_memory = %llu\n", (unsigned long long)c->ram_mib);
        script_inputs(out, (const char *const *)c->paths, c->count);
}

static int make_command(struct cwl *c, const struct cwl_job *job, const struct condor_options *o,
                        struct buf *ret_command, struct err *err)
{
        BUF_CLEANUP struct buf order = {.max = TEXT_MAX}, script = {0}, submit = {0};
        struct str tool = base_name(str_of(job->tool));
        int rc = read_tool(c, job->tool, err);

        if (rc == 0)
                rc = read_order(c, job->params, &order, err);
        if (rc != 0)
                return rc;
        write_script(c, tool, buf_view(&order), &script);
        write_submit(c, tool, &submit);
        if (ret_command)
                buf_printf(ret_command, "cwltool " STR_FMT " with %s", STR_ARG(tool), buf_z(&order));
        return script_job(c->w, job->tool, buf_view(&submit), buf_view(&script),
                          c->needs_container ? "TARGET.HasCWL && size(TARGET.ContainerEngines) > 0"
                                             : "TARGET.HasCWL",
                          o, c->form, err);
}

int cwl_parse(const struct form_world *w, const struct cwl_job *job, const struct condor_options *o,
              struct form *ret, struct buf *ret_command, struct err *err)
{
        struct cwl c = {.w = w, .form = ret, .names = map_new()};
        int rc = make_command(&c, job, o, ret_command, err);

        for (size_t i = 0; i < c.count; i++)
                free(c.paths[i]);
        for (size_t i = 0; i < c.doc_count; i++)
                doc_free(c.docs[i]);
        for (size_t i = 0; i < c.described_count; i++)
                free(c.described[i]);
        free(c.described);
        free(c.paths);
        map_free(c.names);
        return rc;
}
