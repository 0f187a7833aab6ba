#include "server/config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>
#include <yaml.h>

#include "base/fs.h"

#define CONFIG_FILE_MAX (1u << 20)

enum kind { KIND_TEXT, KIND_LIST, KIND_LEVEL, KIND_DURATION };

/* One row a setting: its key in the file, and what it is. */
static const struct setting {
        const char *key;
        enum kind kind;
        size_t offset;
} settings[] = {
        {"domain", KIND_TEXT, offsetof(struct config, domain)},
        {"listen", KIND_LIST, offsetof(struct config, listen)},
        {"api_listen", KIND_TEXT, offsetof(struct config, api_listen)},
        {"names", KIND_LIST, offsetof(struct config, names)},
        {"admins", KIND_LIST, offsetof(struct config, admins)},
        {"operators", KIND_LIST, offsetof(struct config, operators)},
        {"log_level", KIND_LEVEL, offsetof(struct config, log_level)},
        {"lease", KIND_DURATION, offsetof(struct config, lease_ms)},
        {"keep_finished", KIND_DURATION, offsetof(struct config, keep_finished_ms)},
};

static void list_deinit(struct config_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->items[i]);
        *l = (struct config_list){0};
}

void config_deinit(struct config *c)
{
        free(c->dir);
        free(c->file);
        free(c->domain);
        free(c->api_listen);
        list_deinit(&c->listen);
        list_deinit(&c->names);
        list_deinit(&c->admins);
        list_deinit(&c->operators);
        *c = (struct config){0};
}

static int list_add(struct config_list *l, struct str value, struct err *err)
{
        if (l->count == CONFIG_LISTS_MAX)
                return err_set(err, -E2BIG, "more than %d values", CONFIG_LISTS_MAX);
        l->items[l->count++] = str_dupz(value);
        return 0;
}

/* "90s", "5m", "2h", "1d"; a bare number is seconds. */
static int parse_duration(struct str text, int64_t *ret_ms, struct err *err)
{
        static const struct {
                char unit;
                int64_t ms;
        } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
        int64_t scale = 1000, n;
        struct str digits = text;

        for (size_t i = 0; text.n && i < sizeof(units) / sizeof(units[0]); i++)
                if (text.p[text.n - 1] == units[i].unit) {
                        scale = units[i].ms;
                        digits = str_head(text, text.n - 1);
                }
        if (str_to_i64(digits, &n) != 0 || n <= 0 || n > 1000000000)
                return err_set(err, -EINVAL, "'" STR_FMT "' is not a duration: write 90s, 5m, 2h or 1d",
                               STR_ARG(text));
        *ret_ms = n * scale;
        return 0;
}

static int set_value(struct config *c, const struct setting *s, struct str value, struct err *err)
{
        void *at = (char *)c + s->offset;
        char level[16];

        switch (s->kind) {
        case KIND_TEXT:
                if (!*(char **)at)
                        *(char **)at = str_dupz(value);
                return 0;
        case KIND_LIST: return list_add(at, value, err);
        case KIND_DURATION: return parse_duration(value, at, err);
        case KIND_LEVEL:
                snprintf(level, sizeof(level), STR_FMT, STR_ARG(value));
                if (log_level_parse(level, at) != 0)
                        return err_set(err, -EINVAL, "'%s' is not a log level: error, warn, info, debug",
                                       level);
                return 0;
        }
        return 0;
}

static const struct setting *find_setting(struct str key)
{
        for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
                if (str_eqz(key, settings[i].key))
                        return &settings[i];
        return NULL;
}

static struct str scalar(const yaml_node_t *n)
{
        return str_make((const char *)n->data.scalar.value, n->data.scalar.length);
}

static int read_pair(struct config *c, yaml_document_t *doc, const yaml_node_pair_t *pair, int *ret_line,
                     struct err *err)
{
        const yaml_node_t *key = yaml_document_get_node(doc, pair->key);
        const yaml_node_t *value = yaml_document_get_node(doc, pair->value);
        const struct setting *s;
        int r = 0;

        *ret_line = (int)key->start_mark.line + 1;
        if (key->type != YAML_SCALAR_NODE)
                return err_set(err, -EINVAL, "a setting's name must be a word");
        s = find_setting(scalar(key));
        if (!s)
                return err_set(err, -EINVAL, "there is no setting '" STR_FMT "'", STR_ARG(scalar(key)));
        if (value->type == YAML_SCALAR_NODE)
                return set_value(c, s, scalar(value), err);
        if (value->type != YAML_SEQUENCE_NODE || s->kind != KIND_LIST)
                return err_set(err, -EINVAL, "'%s' must be a %s", s->key,
                               s->kind == KIND_LIST ? "list of words" : "word");
        for (yaml_node_item_t *i = value->data.sequence.items.start;
             i < value->data.sequence.items.top && r == 0; i++) {
                const yaml_node_t *item = yaml_document_get_node(doc, *i);

                if (item->type != YAML_SCALAR_NODE)
                        return err_set(err, -EINVAL, "'%s' must be a list of words", s->key);
                r = set_value(c, s, scalar(item), err);
        }
        return r;
}

int config_parse(struct config *c, const char *name, struct str text, struct err *err)
{
        yaml_parser_t parser;
        yaml_document_t doc;
        yaml_node_t *root;
        int r = 0, line = 0;

        if (!yaml_parser_initialize(&parser))
                return -ENOMEM;
        yaml_parser_set_input_string(&parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
        if (!yaml_parser_load(&parser, &doc)) {
                r = err_set(err, -EINVAL, "%s:%d: %s", name, (int)parser.problem_mark.line + 1,
                            parser.problem ? parser.problem : "not YAML");
                yaml_parser_delete(&parser);
                return r;
        }
        root = yaml_document_get_root_node(&doc);
        if (root && root->type != YAML_MAPPING_NODE)
                r = err_set(err, -EINVAL, "%s: it must be a list of 'setting: value' lines", name);
        else if (root)
                for (yaml_node_pair_t *p = root->data.mapping.pairs.start;
                     p < root->data.mapping.pairs.top && r == 0; p++) {
                        r = read_pair(c, &doc, p, &line, err);
                        if (r != 0)
                                err_prefix(err, r, "%s:%d", name, line);
                }
        yaml_document_delete(&doc);
        yaml_parser_delete(&parser);
        return r;
}

static int read_file(struct config *c, struct err *err)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};
        bool given = c->file;
        int r;

        if (given)
                buf_addz(&path, c->file);
        else
                buf_printf(&path, "%s/droverd.yaml", c->dir);
        r = fs_read(AT_FDCWD, buf_z(&path), CONFIG_FILE_MAX, &text, err);
        if (r == -ENOENT && !given)
                return 0;
        if (r != 0)
                return r;
        return config_parse(c, buf_z(&path), buf_view(&text), err);
}

static const char help[] =
        "usage: droverd --dir DIR [options]\n"
        "\n"
        "  --dir DIR              the instance's folder, made when it is not there (also $DROVER_DIR)\n"
        "  --listen HOST:PORT     take agents on this address too; may be given several times\n"
        "  --api-listen HOST:PORT serve the API over TLS on this address\n"
        "  --name NAME            a further name or address of this server, for its certificate; several "
        "times\n"
        "  --domain D             local users are USER@D (default: local)\n"
        "  --config FILE          settings (default: DIR/droverd.yaml, if it is there)\n"
        "  --log-level LEVEL      error, warn, info or debug\n"
        "  --foreground           accepted for clarity: the server never leaves the foreground\n"
        "  --check                read the whole state, check it, print a summary, and stop\n"
        "  --help, --version\n";

enum {
        OPT_DIR = 256,
        OPT_LISTEN,
        OPT_API,
        OPT_NAME,
        OPT_DOMAIN,
        OPT_CONFIG,
        OPT_LEVEL,
        OPT_FORE,
        OPT_CHECK,
        OPT_HELP,
        OPT_VERSION
};
static const struct option options[] = {
        {"dir", required_argument, NULL, OPT_DIR},         {"listen", required_argument, NULL, OPT_LISTEN},
        {"api-listen", required_argument, NULL, OPT_API},  {"name", required_argument, NULL, OPT_NAME},
        {"domain", required_argument, NULL, OPT_DOMAIN},   {"config", required_argument, NULL, OPT_CONFIG},
        {"log-level", required_argument, NULL, OPT_LEVEL}, {"foreground", no_argument, NULL, OPT_FORE},
        {"check", no_argument, NULL, OPT_CHECK},           {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},       {0},
};

static void set_text(char **at, const char *value)
{
        free(*at);
        *at = mem_dupz(value);
}

static int read_option(struct config *c, int option, int *level, struct err *err)
{
        enum log_level l;

        switch (option) {
        case OPT_DIR: set_text(&c->dir, optarg); return 0;
        case OPT_LISTEN: return list_add(&c->listen, str_of(optarg), err);
        case OPT_API: set_text(&c->api_listen, optarg); return 0;
        case OPT_NAME: return list_add(&c->names, str_of(optarg), err);
        case OPT_DOMAIN: set_text(&c->domain, optarg); return 0;
        case OPT_CONFIG: set_text(&c->file, optarg); return 0;
        case OPT_FORE: return 0;
        case OPT_CHECK: c->check = true; return 0;
        case OPT_LEVEL:
                if (log_level_parse(optarg, &l) != 0)
                        return err_set(err, -EINVAL, "'%s' is not a log level: error, warn, info, debug",
                                       optarg);
                *level = (int)l;
                return 0;
        case OPT_HELP: fputs(help, stdout); return 1;
        case OPT_VERSION: puts("droverd " DROVER_VERSION); return 1;
        default: return err_set(err, -EINVAL, "unknown option or missing value: see droverd --help");
        }
}

int config_read(struct config *c, int argc, char **argv, struct err *err)
{
        int level = -1, option, r;
        char cwd[PATH_MAX];

        *c = (struct config){.log_level = LOG_INFO};
        opterr = 0;
        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                r = read_option(c, option, &level, err);
                if (r != 0)
                        return r;
        }
        if (optind < argc)
                return err_set(err, -EINVAL, "'%s' is not an option: see droverd --help", argv[optind]);
        if (!c->dir && getenv("DROVER_DIR"))
                c->dir = mem_dupz(getenv("DROVER_DIR"));
        if (!c->dir || !*c->dir)
                return err_set(err, -EINVAL, "say which folder holds the instance: --dir DIR");
        if (c->dir[0] != '/') {
                struct buf b = {0};

                if (!getcwd(cwd, sizeof(cwd)))
                        return err_set(err, -errno, "cannot tell the current directory");
                buf_printf(&b, "%s/%s", cwd, c->dir);
                free(c->dir);
                c->dir = buf_take(&b);
        }
        while (strlen(c->dir) > 1 && c->dir[strlen(c->dir) - 1] == '/')
                c->dir[strlen(c->dir) - 1] = '\0';
        r = read_file(c, err);
        if (r != 0)
                return r;
        if (level >= 0)
                c->log_level = (enum log_level)level;
        if (!c->domain)
                c->domain = mem_dupz("local");
        return 0;
}
