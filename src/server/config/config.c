#include "server/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/doc.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "server/config/log_options.h"

#define CONFIG_FILE_MAX (1u << 20)
#define STANDBY_MIN_MS  2000

enum kind { KIND_TEXT, KIND_LIST, KIND_FLAG, KIND_LEVEL, KIND_DURATION, KIND_WAIT, KIND_NESTED };

static int read_user_log(void *at, const struct doc *d, struct err *err);
static int read_placement(void *at, const struct doc *d, struct err *err);
static int read_role(void *at, const struct doc *d, struct err *err);
static int read_reserve_idle(void *at, const struct doc *d, struct err *err);
static int config_read_store(void *at, const struct doc *d, struct err *err);
static int read_standby(void *at, const struct doc *d, struct err *err);

/* Each row is a setting: its key in the file, and its kind. */
static const struct setting {
        const char *key;
        enum kind kind;
        size_t offset;
        int (*read)(void *at, const struct doc *d, struct err *err); /* for KIND_NESTED */
        bool reloads; /* a change takes effect on SIGHUP, without a restart */
} settings[] = {
        {"domain", KIND_TEXT, offsetof(struct config, domain)},
        {"user", KIND_TEXT, offsetof(struct config, user)},
        {"store", KIND_NESTED, offsetof(struct config, store), config_read_store},
        {"standby", KIND_NESTED, offsetof(struct config, standby_ms), read_standby},
        {"standby_reads", KIND_FLAG, offsetof(struct config, standby_reads)},
        {"mirror", KIND_NESTED, offsetof(struct config, mirror), config_mirror_read},
        {"listen", KIND_LIST, offsetof(struct config, listen)},
        {"api_listen", KIND_TEXT, offsetof(struct config, api_listen)},
        {"page", KIND_FLAG, offsetof(struct config, page)},
        {"names", KIND_LIST, offsetof(struct config, names)},
        {"admins", KIND_LIST, offsetof(struct config, admins), NULL, true},
        {"operators", KIND_LIST, offsetof(struct config, operators), NULL, true},
        {"catalog_write", KIND_NESTED, offsetof(struct config, catalog_write), read_role, true},
        {"log_level", KIND_LEVEL, offsetof(struct config, log_level), NULL, true},
        {"lease", KIND_DURATION, offsetof(struct config, lease_ms)},
        {"agent_certificate", KIND_DURATION, offsetof(struct config, agent_certificate_ms), NULL, true},
        {"keep_finished", KIND_DURATION, offsetof(struct config, keep_finished_ms)},
        {"limits", KIND_NESTED, offsetof(struct config, limits), config_limits_read},
        {"users", KIND_NESTED, offsetof(struct config, limits), config_limits_read_users},
        {"fair_share", KIND_NESTED, offsetof(struct config, order), config_order_read_share},
        {"accounts", KIND_NESTED, offsetof(struct config, order), config_order_read_accounts},
        {"qos", KIND_NESTED, offsetof(struct config, order), config_order_read_qos},
        {"priority", KIND_NESTED, offsetof(struct config, order), config_order_read_weights},
        {"credentials", KIND_NESTED, offsetof(struct config, order), config_order_read_credentials},
        {"set_wait", KIND_DURATION, offsetof(struct config, gang_wait_ms)},
        {"reserve_after", KIND_WAIT, offsetof(struct config, reserve_after_ms)},
        {"reserve_idle", KIND_NESTED, offsetof(struct config, reserve_idle), read_reserve_idle},
        {"better_place_wait", KIND_WAIT, offsetof(struct config, better_wait_ms)},
        {"placement", KIND_NESTED, offsetof(struct config, placement), read_placement},
        {"stores", KIND_NESTED, offsetof(struct config, stores), config_stores_read},
        {"clearance", KIND_NESTED, offsetof(struct config, stores), config_clearance_read},
        {"user_log_format", KIND_NESTED, offsetof(struct config, user_log), read_user_log},
        {"nodes", KIND_NESTED, offsetof(struct config, nodes), config_nodes_read},
        {"bank", KIND_NESTED, offsetof(struct config, bank), config_bank_read},
        {"reservations", KIND_NESTED, offsetof(struct config, reservations), config_reservations_read, true},
        {"sssrmap", KIND_NESTED, offsetof(struct config, sssrmap), config_sssrmap_read},
        {"provision", KIND_NESTED, offsetof(struct config, provision), config_provision_read},
        {"provisioners", KIND_NESTED, offsetof(struct config, provision), config_provisioners_read},
        {"backends", KIND_NESTED, offsetof(struct config, backends), config_backends_read, true},
        {"sources", KIND_NESTED, offsetof(struct config, sources), config_sources_read},
        {"keep", KIND_NESTED, offsetof(struct config, keep), config_keep_read, true},
        {"openid", KIND_NESTED, offsetof(struct config, openid), config_openid_read},
        {"notify", KIND_NESTED, offsetof(struct config, notify), config_notify_read},
        {"initializers", KIND_NESTED, offsetof(struct config, presets), config_presets_read_initializers,
         true},
        {"applications", KIND_NESTED, offsetof(struct config, presets), config_presets_read_applications,
         true},
        {"dispatchers", KIND_NESTED, offsetof(struct config, presets), config_presets_read_dispatchers, true},
        {"virtual_queues", KIND_NESTED, offsetof(struct config, presets), config_presets_read_queues, true},
        {"policies", KIND_NESTED, offsetof(struct config, presets), config_presets_read_policies, true},
        {"catalogs", KIND_NESTED, offsetof(struct config, presets), config_presets_read_catalogs, true},
        {"recorders", KIND_NESTED, offsetof(struct config, presets), config_presets_read_recorders, true},
        {"defaults", KIND_NESTED, offsetof(struct config, presets), config_presets_read_defaults, true},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))
_Static_assert(SETTINGS <= CONFIG_SETTINGS_MAX, "a digest for each setting");

static void config_list_deinit(struct config_list *l)
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
        free(c->user);
        free(c->store);
        free(c->api_listen);
        free(c->user_log);
        free(c->backup);
        free(c->restore);
        config_list_deinit(&c->listen);
        config_list_deinit(&c->names);
        config_list_deinit(&c->admins);
        config_list_deinit(&c->operators);
        config_limits_deinit(&c->limits);
        config_order_deinit(&c->order);
        config_stores_deinit(&c->stores);
        config_mirror_deinit(&c->mirror);
        config_notify_deinit(&c->notify);
        config_openid_deinit(&c->openid);
        config_bank_deinit(&c->bank);
        config_reservations_deinit(&c->reservations);
        config_provision_deinit(&c->provision);
        config_backends_deinit(&c->backends);
        config_sources_deinit(&c->sources);
        config_presets_deinit(&c->presets);
        config_sssrmap_deinit(&c->sssrmap);
        *c = (struct config){0};
}

const char *config_postgres(const struct config *c)
{
        return c->store && strcmp(c->store, "sqlite") != 0 ? c->store : NULL;
}

static int list_add(struct config_list *l, struct str value, struct err *err)
{
        if (l->count == CONFIG_LISTS_MAX)
                return err_set(err, -E2BIG, "more than %d values", CONFIG_LISTS_MAX);
        l->items[l->count++] = str_dupz(value);
        return 0;
}

static int config_add_word(void *arg, struct str word, struct err *err)
{
        return list_add(arg, word, err);
}

static int set_duration(int64_t *at, const struct doc *d, struct err *err)
{
        uint64_t ms;
        int r = doc_duration(d, &ms, err);

        if (r != 0)
                return r;
        if (ms == 0) {
                err_set(err, -EINVAL, "%s must be longer than that", d->key.p);
                return doc_where(err, -EINVAL, d);
        }
        *at = (int64_t)ms;
        return 0;
}

/* Converts to the core's form: 0 is its default, -1 never. */
static int set_wait(int64_t *at, const struct doc *d, struct err *err)
{
        uint64_t ms;
        int r = doc_duration(d, &ms, err);

        if (r == 0)
                *at = ms ? (int64_t)ms : -1;
        return r;
}

static int set_level(enum log_level *at, const struct doc *d, struct err *err)
{
        if (d->kind == DOC_WORD && log_level_parse(d->text.p, at) == 0)
                return 0;
        err_set(err, -EINVAL, "%s must be error, warn, info or debug", d->key.p);
        return doc_where(err, -EINVAL, d);
}

static int add_user_log(void *arg, struct str word, struct err *err)
{
        struct str unknown = STR_NONE;
        struct buf *words = arg;

        userlog_options(word, 0, &unknown);
        if (unknown.n)
                return err_set(err, -EINVAL, "there is no log format '" STR_FMT "'",
                               STR_ARG(str_head(unknown, 40)));
        buf_str(words, word);
        buf_char(words, ' ');
        return 0;
}

static int read_reserve_idle(void *at, const struct doc *d, struct err *err)
{
        char *end = NULL;
        double percent = d->kind == DOC_WORD ? strtod(d->text.p, &end) : 0;

        if (end && percent >= 0.1 && percent <= 100 && !strcmp(end, "%")) {
                *(double *)at = percent / 100;
                return 0;
        }
        err_set(err, -EINVAL, "%s must be a percentage from 0.1%% to 100%%, which is without a bound",
                d->key.p);
        return doc_where(err, -EINVAL, d);
}

/* An address may contain a password, so no message repeats it. */
static int set_store(char **at, struct str value, struct err *err)
{
        if (!str_eqz(value, "sqlite") && !str_starts(value, STR("postgresql://")) &&
            !str_starts(value, STR("postgres://")))
                return err_set(err, -EINVAL, "the store is sqlite, or postgresql://USER@HOST:PORT/DATABASE");
        if (!*at)
                *at = str_dupz(value);
        return 0;
}

static int config_read_store(void *at, const struct doc *d, struct err *err)
{
        struct str text;
        int r = doc_text(d, &text, err);

        if (r == 0)
                r = set_store(at, text, err);
        return r == 0 ? 0 : doc_where(err, r, d);
}

/* The leading server commits at least once a second. */
static int read_standby(void *at, const struct doc *d, struct err *err)
{
        int64_t *ms = at;
        int r = set_duration(ms, d, err);

        if (r != 0 || *ms >= STANDBY_MIN_MS)
                return r;
        err_set(err, -EINVAL, "standby must be 2s or longer");
        return doc_where(err, -EINVAL, d);
}

static int read_user_log(void *at, const struct doc *d, struct err *err)
{
        BUF_CLEANUP struct buf words = {0};
        char **text = at;
        int r;

        buf_char(&words, '"');
        r = doc_words(d, add_user_log, &words, err);
        buf_char(&words, '"');
        free(*text);
        *text = r == 0 ? buf_take(&words) : NULL;
        return r;
}

static int read_role(void *at, const struct doc *d, struct err *err)
{
        if (d->kind == DOC_WORD && role_parse(d->text, at) == 0)
                return 0;
        err_set(err, -EINVAL, "%s must be user, operator or admin", d->key.p);
        return doc_where(err, -EINVAL, d);
}

static int read_placement(void *at, const struct doc *d, struct err *err)
{
        if (d->kind == DOC_WORD && core_placement_parse(d->text, at) == 0)
                return 0;
        err_set(err, -EINVAL, "%s must be fifo, " CORE_PLACEMENTS_OF_JOBS, d->key.p);
        return doc_where(err, -EINVAL, d);
}

static int set_value(struct config *c, const struct setting *s, const struct doc *d, struct err *err)
{
        void *at = (char *)c + s->offset;
        struct str text;
        int r;

        switch (s->kind) {
        case KIND_TEXT:
                r = doc_text(d, &text, err);
                if (r == 0 && !*(char **)at)
                        *(char **)at = str_dupz(text);
                return r;
        case KIND_LIST: return doc_words(d, config_add_word, at, err);
        case KIND_DURATION: return set_duration(at, d, err);
        case KIND_WAIT: return set_wait(at, d, err);
        case KIND_FLAG: return doc_bool(d, at, err);
        case KIND_LEVEL: return set_level(at, d, err);
        case KIND_NESTED: return s->read(at, d, err);
        }
        return 0;
}

/* FNV-1a hash of everything in a setting, in its order. */
static uint64_t digest_text(uint64_t h, struct str text)
{
        for (size_t i = 0; i < text.n; i++)
                h = (h ^ (unsigned char)text.p[i]) * 1099511628211u;
        return (h ^ text.n) * 1099511628211u;
}

static uint64_t digest_setting(uint64_t h, const struct doc *d)
{
        h = digest_text(digest_text(h, d->key), d->text);
        h = (h ^ (uint64_t)d->kind) * 1099511628211u;
        for (const struct doc *x = d->first; x; x = x->next)
                h = digest_setting(h, x);
        return (h ^ d->count) * 1099511628211u;
}

void config_changes(const struct config *before, const struct config *now, bool reloads, struct buf *out)
{
        for (size_t i = 0; i < SETTINGS; i++)
                if (settings[i].reloads == reloads && before->digests[i] != now->digests[i])
                        buf_printf(out, "%s%s", out->n ? " " : "", settings[i].key);
}

static const struct setting *find_setting(struct str key)
{
        for (size_t i = 0; i < SETTINGS; i++)
                if (str_eqz(key, settings[i].key))
                        return &settings[i];
        return NULL;
}

int config_parse(struct config *c, const char *name, struct str text, struct err *err)
{
        const char *keys[SETTINGS + 1] = {0};
        struct doc *root;
        int r = doc_parse(name, text, &root, err);

        if (r != 0 || !root)
                return r;
        for (size_t i = 0; i < SETTINGS; i++)
                keys[i] = settings[i].key;
        r = doc_only(root, keys, err);
        for (const struct doc *d = root->first; d && r == 0; d = d->next) {
                const struct setting *x = find_setting(d->key);

                c->digests[x - settings] = digest_setting(14695981039346656037u, d);
                r = set_value(c, x, d, err);
        }
        doc_free(root);
        return r ? r : config_presets_link(&c->presets, err);
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
        "       droverd import-sums FILE\n"
        "\n"
        "  --dir DIR              the instance's folder, made when it is not there (also $DROVER_DIR)\n"
        "  --listen HOST:PORT     take agents on this address too; may be given several times\n"
        "  --api-listen HOST:PORT serve the API over TLS on this address\n"
        "  --name NAME            a further name or address of this server, for its certificate; several "
        "times\n"
        "  --domain D             local users are USER@D (default: local)\n"
        "  --user NAME            become this user, if root starts the server (default: the owner of the "
        "database;\n"
        "                         of a new one: drover, if there is such a user)\n"
        "  --store ADDRESS        where the queue is kept: sqlite (DIR/drover.db, the default), or\n"
        "                         postgresql://USER@HOST:PORT/DATABASE\n"
        "  --config FILE          settings (default: DIR/droverd.yaml, if it is there)\n"
        "  --log-level LEVEL      error, warn, info or debug\n"
        "  --foreground           accepted for clarity: the server never leaves the foreground\n"
        "  --check-config         read the settings only, print what is wrong with them, and stop\n"
        "  --check                read the whole state, check it, print a summary, and stop\n"
        "  --backup FOLDER        copy the whole instance into this new folder, while its server runs, and "
        "stop\n"
        "  --restore FOLDER       put such a copy into --dir, where no instance may be, and stop\n"
        "  --json                 say what --backup or --restore did as JSON\n"
        "  --help, --version\n";

enum {
        OPT_DIR = 256,
        OPT_LISTEN,
        OPT_API,
        OPT_NAME,
        OPT_DOMAIN,
        OPT_USER,
        OPT_STORE,
        OPT_CONFIG,
        OPT_LEVEL,
        OPT_FORE,
        OPT_FOLLOW,
        OPT_CHECK,
        OPT_CHECK_CONFIG,
        OPT_BACKUP,
        OPT_RESTORE,
        OPT_JSON,
        OPT_HELP,
        OPT_VERSION
};
static const struct option options[] = {
        {"dir", required_argument, NULL, OPT_DIR},
        {"listen", required_argument, NULL, OPT_LISTEN},
        {"api-listen", required_argument, NULL, OPT_API},
        {"name", required_argument, NULL, OPT_NAME},
        {"domain", required_argument, NULL, OPT_DOMAIN},
        {"user", required_argument, NULL, OPT_USER},
        {"store", required_argument, NULL, OPT_STORE},
        {"config", required_argument, NULL, OPT_CONFIG},
        {"log-level", required_argument, NULL, OPT_LEVEL},
        {"foreground", no_argument, NULL, OPT_FORE},
        {"follow", no_argument, NULL, OPT_FOLLOW}, /* of a server that stands by, for its own use */
        {"check", no_argument, NULL, OPT_CHECK},
        {"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
        {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},
        {"backup", required_argument, NULL, OPT_BACKUP},
        {"restore", required_argument, NULL, OPT_RESTORE},
        {"json", no_argument, NULL, OPT_JSON},
        {0},
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
        case OPT_USER: set_text(&c->user, optarg); return 0;
        case OPT_STORE:
                free(c->store);
                c->store = NULL;
                return set_store(&c->store, str_of(optarg), err);
        case OPT_CONFIG: set_text(&c->file, optarg); return 0;
        case OPT_FORE: return 0;
        case OPT_FOLLOW: c->follow = true; return 0;
        case OPT_CHECK: c->check = true; return 0;
        case OPT_CHECK_CONFIG: c->check_config = true; return 0;
        case OPT_BACKUP: set_text(&c->backup, optarg); return 0;
        case OPT_RESTORE: set_text(&c->restore, optarg); return 0;
        case OPT_JSON: c->json = true; return 0;
        case OPT_LEVEL:
                if (log_level_parse(optarg, &l) != 0)
                        return err_set(err, -EINVAL, "'%s' is not a log level: error, warn, info, debug",
                                       optarg);
                *level = (int)l;
                return 0;
        case OPT_HELP: fputs(help, stdout); return 1;
        case OPT_VERSION: puts("droverd " DROVER_VERSION); return 1;
        default: return -EINVAL; /* getopt_long has reported the option */
        }
}

static int wrong_option(int option, const char *word, struct err *err)
{
        if (option == ':')
                return err_set(err, -EINVAL, "%s needs a value: see droverd --help", word);
        return err_set(err, -EINVAL, "there is no option %s: see droverd --help", word);
}

int config_read(struct config *c, int argc, char **argv, struct err *err)
{
        int level = -1, option, r;
        char cwd[PATH_MAX];

        *c = (struct config){.standby_reads = true,
                             .log_level = LOG_INFO,
                             .catalog_write = ROLE_OPERATOR,
                             .argc = argc,
                             .argv = argv};
        config_notify_default(&c->notify);
        config_provision_default(&c->provision);
        opterr = 0;
        optind = 0; /* starts over: see getopt(3) */
        while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
                if (option == ':' || option == '?')
                        return wrong_option(option, argv[optind - 1], err);
                r = read_option(c, option, &level, err);
                if (r != 0)
                        return r;
        }
        if (optind < argc)
                return err_set(err, -EINVAL, "'%s' is not an option: see droverd --help", argv[optind]);
        if (!!c->backup + !!c->restore + c->check + c->check_config > 1)
                return err_set(err, -EINVAL,
                               "--backup, --restore, --check and --check-config are each done alone");
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
        if (c->openid.issuer && !(c->page && c->api_listen))
                return err_set(err, -EINVAL,
                               "openid is for users of the page: it needs page: yes, and api_listen");
        if (c->standby_ms && !config_postgres(c) && !c->backup && !c->restore)
                return err_set(err, -EINVAL,
                               "standby is for servers that have one PostgreSQL database: store names none");
        if (c->mirror.peer && config_postgres(c))
                return err_set(err, -EINVAL,
                               "mirror is for servers that keep their queue in SQLite each: of a "
                               "PostgreSQL database, several servers use standby");
        return 0;
}

void config_core(const struct config *c, struct core_config *ret)
{
        *ret = (struct core_config){
                .lease_ms = c->lease_ms,
                .keep_finished_ms = c->keep_finished_ms,
                .reserve_after_ms = c->reserve_after_ms,
                .reserve_idle = c->reserve_idle,
                .gang_wait_ms = c->gang_wait_ms,
                .better_wait_ms = c->better_wait_ms,
                .placement = c->placement,
                .seed = (uint64_t)clock_wall_ms(),
        };
        config_order_config(&c->order, ret);
        config_nodes_config(&c->nodes, ret);
}
