/* First finds all objects of the file, with the kind that follows from their class. Then writes the
 * objects whose kind has an equivalent: each call becomes a key or a note. At last the result is parsed as
 * settings, so that the output is always accepted by a server. */
#include "server/import/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "base/format/xml.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "server/config/config.h"

enum bean_kind {
        BEAN_OTHER,
        BEAN_CONTAINER, /* a list or a map of Java */
        BEAN_DISPATCHER,
        BEAN_QUEUE,
        BEAN_POLICY,
        BEAN_APPLICATION,
        BEAN_INITIALIZER,
        BEAN_RECORDER,
        BEAN_KINDS
};
static const char *const sections[BEAN_KINDS] = {NULL,       NULL,           "dispatchers",  "virtual_queues",
                                                 "policies", "applications", "initializers", "recorders"};

struct bean {
        const struct xml *xml;
        const char *class; /* without its package */
        enum bean_kind kind;
        char *name; /* key of the setting; NULL: none is written */
};
struct import {
        const char *file;
        struct bean *beans;
        size_t count, cap;
        struct buf *out, *notes;
};

/* ---- texts */

static void note(struct import *x, const struct xml *at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void note(struct import *x, const struct xml *at, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {.max = 1024};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        for (size_t i = 0; i < text.n; i++)
                if ((unsigned char)text.p[i] < ' ')
                        text.p[i] = ' ';
        buf_printf(x->notes, "%s:%u: " STR_FMT "\n", x->file, at->line, STR_ARG(buf_view(&text)));
}

/* A JSON string is also a YAML string. */
static void write_word(struct buf *out, struct str text)
{
        struct json j = {.out = out};

        json_str(&j, text);
}

static void write_condition(struct buf *out, const char *attribute, struct str value)
{
        BUF_CLEANUP struct buf literal = {0};

        write_word(&literal, value);
        buf_printf(out, "%sTARGET.%s =?= " STR_FMT, out->n ? " && " : "", attribute,
                   STR_ARG(buf_view(&literal)));
}

/* ---- the objects */

static bool ends(const char *class, const char *what)
{
        return str_ends(str_of(class), str_of(what));
}

static enum bean_kind kind_of(const char *class, const char *package)
{
        if (strncmp(package, "java.", 5) == 0)
                return BEAN_CONTAINER;
        if (ends(class, "Policy"))
                return BEAN_POLICY;
        if (ends(class, "Dispatcher") || strstr(package, ".dispatcher"))
                return BEAN_DISPATCHER;
        if (ends(class, "Queue"))
                return BEAN_QUEUE;
        if (ends(class, "Application"))
                return BEAN_APPLICATION;
        if (strstr(class, "Statistic"))
                return BEAN_RECORDER;
        return ends(class, "Initializer") ? BEAN_INITIALIZER : BEAN_OTHER;
}

static void find_beans(struct import *x, const struct xml *at)
{
        for (; at; at = at->next) {
                const char *package = xml_get(at, "class"), *dot = package ? strrchr(package, '.') : NULL;

                if (xml_is(at, "object") && package) {
                        const char *class = dot ? dot + 1 : package;

                        MEM_GROW(x->beans, x->cap, x->count + 1);
                        x->beans[x->count++] =
                                (struct bean){.xml = at, .class = class, .kind = kind_of(class, package)};
                }
                find_beans(x, at->first);
        }
}

/* Returns the object that is defined or referred to here. */
static const struct bean *bean_of(const struct import *x, const struct xml *at)
{
        const char *idref = xml_get(at, "idref"), *id;

        for (size_t i = 0; at && i < x->count; i++) {
                id = xml_get(x->beans[i].xml, "id");
                if (x->beans[i].xml == at || (idref && id && strcmp(id, idref) == 0))
                        return &x->beans[i];
        }
        return NULL;
}

/* Returns the property that a call sets: "MaxMemory" for method="setMaxMemory" and property="maxMemory";
 * "" if it sets none. */
static void call_name(const struct xml *call, struct buf *ret)
{
        const char *method = xml_get(call, "method"), *property = xml_get(call, "property");

        buf_reset(ret);
        if (!xml_is(call, "void"))
                return;
        if (property && *property) {
                buf_char(ret, (char)(*property >= 'a' && *property <= 'z' ? *property - 32 : *property));
                buf_addz(ret, property + 1);
        } else if (method) {
                struct str name = str_trim(str_of(method));

                buf_str(ret, str_starts(name, STR("set")) && name.n > 3 ? str_skip(name, 3) : name);
        }
}

static const struct xml *find_call(const struct xml *object, const char *name)
{
        BUF_CLEANUP struct buf have = {0};

        for (const struct xml *c = object->first; c; c = c->next) {
                call_name(c, &have);
                if (strcmp(buf_z(&have), name) == 0)
                        return c;
        }
        return NULL;
}

static struct str value_of(const struct xml *call)
{
        return call && call->first && !xml_is(call->first, "object") ? xml_text(call->first) : STR_NONE;
}

static bool name_is_taken(const struct import *x, const struct bean *b, const char *name)
{
        for (const struct bean *o = x->beans; o < b; o++)
                if (o->kind == b->kind && o->name && str_ieqz(str_of(o->name), name))
                        return true;
        return str_ieqz(str_of(name), PRESET_NONE);
}

/* Chooses the name: the object's own ID, its key in a map, its id in this file, or its class. */
static void name_bean(struct import *x, struct bean *b, const char *key)
{
        struct str own = value_of(find_call(b->xml, "ID"));
        const char *id = xml_get(b->xml, "id");
        struct buf name = {0};
        size_t plain;

        own = own.n ? own : key ? str_of(key) : id ? str_of(id) : str_of(b->class);
        for (size_t i = 0; i < own.n && i < 60; i++) {
                char c = own.p[i];
                bool good = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
                            c == '-' || c == '.';

                buf_char(&name, good ? c : '_');
        }
        plain = name.n;
        for (int n = 2; name.n == 0 || name_is_taken(x, b, buf_z(&name)); n++) {
                buf_truncate(&name, plain);
                buf_printf(&name, "-%d", n);
        }
        b->name = buf_take(&name);
        if (!str_eqz(own, b->name))
                note(x, b->xml, "%s '" STR_FMT "' is called %s", b->class, STR_ARG(own), b->name);
}

/* Returns the object's key in a map of the file, or NULL. */
static char *key_of(const struct import *x, const struct bean *b)
{
        for (size_t i = 0; i < x->count; i++) {
                if (x->beans[i].kind != BEAN_CONTAINER)
                        continue;
                for (const struct xml *c = x->beans[i].xml->first; c; c = c->next)
                        if (xml_is(c, "void") && c->first && xml_is(c->first, "string") && c->first->next &&
                            bean_of(x, c->first->next) == b)
                                return str_dupz(xml_text(c->first));
        }
        return NULL;
}

static void name_beans(struct import *x)
{
        for (size_t i = 0; i < x->count; i++) {
                struct bean *b = &x->beans[i];
                char *key = sections[b->kind] ? key_of(x, b) : NULL;

                if (sections[b->kind])
                        name_bean(x, b, key);
                else if (b->kind == BEAN_OTHER)
                        note(x, b->xml, "%s has no equivalent", b->class);
                free(key);
        }
}

/* ---- their settings */

static void note_call(struct import *x, const struct bean *b, const struct xml *call, const char *what)
{
        BUF_CLEANUP struct buf name = {0};

        call_name(call, &name);
        note(x, call, "%s %s: %s %s", b->class, b->name, name.n ? buf_z(&name) : call->name, what);
}

static void note_calls_but(struct import *x, const struct bean *b, const char *const *known)
{
        BUF_CLEANUP struct buf name = {0};

        for (const struct xml *c = b->xml->first; c; c = c->next) {
                size_t i = 0;

                call_name(c, &name);
                while (known[i] && strcmp(known[i], buf_z(&name)) != 0)
                        i++;
                if (!known[i])
                        note_call(x, b, c, "has no equivalent");
        }
}

static void write_dispatcher(struct import *x, const struct bean *b)
{
        static const struct {
                const char *word, *runner;
        } runners[] = {{"SGE", "gridengine"},  {"GridEngine", "gridengine"}, {"PBS", "pbs"},
                       {"Slurm", "slurm"},     {"SLURM", "slurm"},           {"CondorG", NULL},
                       {"Condor", "htcondor"}, {"Local", "process"}};
        static const char *const known[] = {"ID", NULL};
        const char *runner = NULL;
        BUF_CLEANUP struct buf places = {0};

        for (size_t i = 0; i < sizeof(runners) / sizeof(runners[0]); i++)
                if (strstr(b->class, runners[i].word)) {
                        runner = runners[i].runner;
                        break;
                }
        if (!runner)
                note(x, b->xml,
                     "%s %s: no runner of an agent gives jobs to such a system itself; its places are those "
                     "with the attribute Dispatcher = \"%s\", which the agent's file can give to a queue "
                     "(runner exec)",
                     b->class, b->name, b->name);
        write_condition(&places, runner ? "Runner" : "Dispatcher", str_of(runner ? runner : b->name));
        buf_printf(x->out, "  %s: {places: '" STR_FMT "'}\n", b->name, STR_ARG(buf_view(&places)));
        note_calls_but(x, b, known);
}

/* Reads a whole number from a call. */
static bool number(struct import *x, const struct bean *b, const char *name, uint64_t *ret)
{
        const struct xml *call = find_call(b->xml, name);

        if (!call)
                return false;
        if (str_to_u64(value_of(call), ret) == 0 && *ret > 0 && *ret < 1000000000)
                return true;
        note_call(x, b, call, "is no number from 1, and is left out");
        return false;
}

static void write_queue(struct import *x, const struct bean *b)
{
        static const char *const known[] = {"ID",        "Name",      "AssociatedDispatcher", "Cluster",
                                            "TimeLimit", "MaxMemory", "SearchOrderPriority",  NULL};
        const struct xml *dispatcher = find_call(b->xml, "AssociatedDispatcher"),
                         *cluster = find_call(b->xml, "Cluster");
        const struct bean *d = dispatcher ? bean_of(x, dispatcher->first) : NULL;
        struct str name = value_of(find_call(b->xml, "Name"));
        BUF_CLEANUP struct buf places = {0}, quoted = {0};
        uint64_t n;

        if (name.n)
                write_condition(&places, "QueueName", name);
        if (value_of(cluster).n) {
                write_condition(&places, "Cluster", value_of(cluster));
                note_call(x, b, cluster,
                          "is looked for in the attribute Cluster, which the file of the agent gives to its "
                          "queues "
                          "(attributes)");
        }
        if (dispatcher && (!d || d->kind != BEAN_DISPATCHER))
                note_call(x, b, dispatcher, "refers to no dispatcher of this file");
        if (!places.n && (!d || d->kind != BEAN_DISPATCHER)) {
                buf_addz(&places, "true");
                note(x, b->xml, "%s %s: nothing says which places it has: all are taken", b->class, b->name);
        }
        buf_printf(x->out, "  %s:\n", b->name);
        if (places.n) {
                write_word(&quoted, buf_view(&places));
                buf_printf(x->out, "    places: " STR_FMT "\n", STR_ARG(buf_view(&quoted)));
        }
        if (d && d->kind == BEAN_DISPATCHER)
                buf_printf(x->out, "    dispatcher: %s\n", d->name);
        if (number(x, b, "TimeLimit", &n))
                buf_printf(x->out, "    time_limit: %llum\n", (unsigned long long)n);
        if (number(x, b, "MaxMemory", &n))
                buf_printf(x->out, "    max_memory: %lluM\n", (unsigned long long)n);
        if (number(x, b, "SearchOrderPriority", &n))
                buf_printf(x->out, "    search_order: %llu\n", (unsigned long long)n);
        note_calls_but(x, b, known);
}

static void write_policy(struct import *x, const struct bean *b)
{
        static const char *const known[] = {"ID", "addQueue", NULL};
        const char *placement = strstr(b->class, "QueueMonitor") ? "queue_monitor"
                                : strstr(b->class, "Cluster") && strstr(b->class, "Monitor")
                                        ? "cluster_monitor"
                                        : "passive";
        BUF_CLEANUP struct buf name = {0};
        size_t n = 0;

        if (strcmp(placement, "passive") == 0 && strcmp(b->class, "PassivePolicy") != 0)
                note(x, b->xml, "the class %s of policy %s has no equivalent: it is written as a passive one",
                     b->class, b->name);
        buf_printf(x->out, "  %s:\n    placement: %s\n", b->name, placement);
        for (const struct xml *c = b->xml->first; c; c = c->next) {
                const struct bean *q = c->first ? bean_of(x, c->first) : NULL;

                call_name(c, &name);
                if (strcmp(buf_z(&name), "addQueue") != 0)
                        continue;
                if (q && q->kind == BEAN_QUEUE)
                        buf_printf(x->out, "%s%s", n++ ? ", " : "    queues: [", q->name);
                else
                        note_call(x, b, c, "refers to no queue of this file");
        }
        buf_addz(x->out, n ? "]\n" : "");
        note_calls_but(x, b, known);
}

static void write_application(struct import *x, const struct bean *b)
{
        static const char *const known[] = {"ID", "Path", "Command", "Name", NULL};
        struct str path = value_of(find_call(b->xml, "Path"));

        path = path.n ? path : value_of(find_call(b->xml, "Command"));
        if (!str_starts(path, STR("/"))) {
                note(x, b->xml,
                     "%s %s: its program is no absolute path: put the right one in place of /bin/false",
                     b->class, b->name);
                path = STR("/bin/false");
        }
        buf_printf(x->out, "  %s: {command: ", b->name);
        write_word(x->out, path);
        buf_addz(x->out, "}\n");
        note_calls_but(x, b, known);
}

static void write_initializer(struct import *x, const struct bean *b)
{
        static const char *const known[] = {"ID", NULL};

        note(x, b->xml,
             "%s %s: jobs are submitted by drover submit, star-submit, the web page and the API, whatever "
             "initializer they name; this one is for their defaults",
             b->class, b->name);
        buf_printf(x->out, "  %s: {}\n", b->name);
        note_calls_but(x, b, known);
}

/* It records everything, for drover stats; where SUMS would write that is not acted on. */
static void write_recorder(struct import *x, const struct bean *b)
{
        static const char *const known[] = {"ID", NULL};

        buf_printf(x->out, "  %s: {}\n", b->name);
        note_calls_but(x, b, known);
}

static void write_section(struct import *x, enum bean_kind kind)
{
        static void (*const write[BEAN_KINDS])(struct import * x, const struct bean *b) = {NULL,
                                                                                           NULL,
                                                                                           write_dispatcher,
                                                                                           write_queue,
                                                                                           write_policy,
                                                                                           write_application,
                                                                                           write_initializer,
                                                                                           write_recorder};
        bool any = false;

        for (size_t i = 0; i < x->count; i++)
                if (x->beans[i].kind == kind) {
                        if (!any)
                                buf_printf(x->out, "%s:\n", sections[kind]);
                        any = true;
                        write[kind](x, &x->beans[i]);
                }
}

/* ---- the whole file */

static int check_settings(const struct import *x, struct err *err)
{
        struct config c = {0};
        struct err why = {""};
        int r = config_parse(&c, "settings", buf_view(x->out), &why);

        config_deinit(&c);
        return r == 0 ? 0
                      : err_set(err, -EINVAL, "%s: what it says cannot be settings: %s", x->file, why.text);
}

int sums_import(const char *file, struct str text, struct buf *out, struct buf *notes, struct err *err)
{
        struct import x = {.file = file, .out = out, .notes = notes};
        struct xml *root = NULL;
        size_t written = 0;
        int r = xml_parse(file, text, &root, err);

        if (r != 0)
                return r;
        find_beans(&x, root);
        name_beans(&x);
        buf_addz(out,
                 "# Written by droverd import-sums. What has no equivalent was said on standard error.\n");
        for (int k = BEAN_DISPATCHER; k < BEAN_KINDS; k++)
                write_section(&x, (enum bean_kind)k);
        for (size_t i = 0; i < x.count; i++)
                written += x.beans[i].name != NULL;
        if (written == 0)
                r = err_set(err, -EINVAL,
                            "%s:%u: this is no configuration of SUMS: it has no objects of its classes", file,
                            root->line);
        if (r == 0)
                r = check_settings(&x, err);
        for (size_t i = 0; i < x.count; i++)
                free(x.beans[i].name);
        free(x.beans);
        xml_free(root);
        return r;
}

int sums_import_main(int argc, char **argv)
{
        BUF_CLEANUP struct buf text = {0}, out = {0}, notes = {0};
        struct err err = {""};
        int r;

        if (argc != 1 || argv[0][0] == '-') {
                bool help = argc == 1 && strcmp(argv[0], "--help") == 0;

                fprintf(help ? stdout : stderr,
                        "usage: droverd import-sums FILE\n\n"
                        "Writes settings for droverd.yaml to standard output, made of SUMS's "
                        "schedulerConfig.xml, and says "
                        "on\nstandard error what has no equivalent. See drover-sums(7).\n");
                return help ? 0 : 2;
        }
        r = fs_read(AT_FDCWD, argv[0], SUMS_IMPORT_MAX, &text, &err);
        if (r == 0)
                r = sums_import(argv[0], buf_view(&text), &out, &notes, &err);
        fputs(buf_z(&notes), stderr);
        if (r != 0)
                fprintf(stderr, "droverd: %s\n", err.text);
        else if (fwrite(out.p, 1, out.n, stdout) != out.n || fflush(stdout) != 0)
                r = -errno;
        return r == 0 ? 0 : 1;
}
