#include "agent/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/config/users.h"
#include "base/format/quantity.h"
#include "base/system/fs.h"
#include "base/system/program.h"
#include "move/tuning.h"

#define S(member, kind, argument, help)                                                                      \
        {                                                                                                    \
#member, kind, offsetof(struct config, member), argument, help                               \
        }
/* The settings of the agent itself; those of a queue are in agent/config/queue.c. */
static const struct setting settings[] = {
        {"server", SETTING_LIST, offsetof(struct config, servers), "ADDRESS",
         "unix:/path or host:port; again for another address of the same server"},
        S(dir, SETTING_TEXT, "FOLDER",
          "where the agent keeps its key, its sandboxes and what it has to tell"),
        S(name, SETTING_TEXT, "NAME", "what it is called; the host's name"),
        S(token, SETTING_TEXT, "TOKEN", "of the first contact, from `drover token agent`"),
        S(token_file, SETTING_TEXT, "FILE",
          "the same, in a file that nobody else can read; -: standard input"),
        {"owner", SETTING_LIST, offsetof(struct config, owners), "NAME@DOMAIN",
         "whose jobs it runs; its own user's; `any` for all"},
        S(users, SETTING_OWNERS, NULL, NULL), /* in the file only */
        S(min_uid, SETTING_COUNT, "N", "with `users` in the file: the smallest uid of a job; 1000"),
        S(user, SETTING_TEXT, "NAME", "with `users`: the agent's own user; drover, or nobody"),
        S(domain, SETTING_TEXT, "DOMAIN", "of its own user's name; local"),
        S(filesystem_domain, SETTING_TEXT, "NAME",
          "agents and submitters of one name see the same paths; this machine"),
        {"queue", SETTING_TEXT, offsetof(struct config, queue.name), "NAME", "of its queue; default"},
        S(hide, SETTING_LIST, "FOLDER", "that jobs do not see, beside its own; again for another"),
        S(paths, SETTING_SWITCH, "on|off", "open files of this machine by the paths that jobs name; on"),
        S(cgroups, SETTING_SWITCH, "auto|off", "limits by control groups, where they can be written; auto"),
        S(pids_max, SETTING_COUNT, "N", "processes of a job, with control groups; 0: no limit; 16384"),
        S(powercap, SETTING_TEXT, "FOLDER", "the kernel's counters of energy, or none; /sys/class/powercap"),
        {"kill_grace", SETTING_TIME, offsetof(struct config, kill_grace_ms), "TIME",
         "between SIGTERM and SIGKILL; 10s"},
        {"cache", SETTING_SIZE, offsetof(struct config, cache_bytes), "SIZE",
         "of inputs kept for later jobs; 10GiB"},
        {"environments", SETTING_SIZE, offsetof(struct config, environments_bytes), "SIZE",
         "of environments that are made for jobs and kept for later ones; 0: none are made; 20GiB"},
        {"environment_limit", SETTING_TIME, offsetof(struct config, environment_limit_ms), "TIME",
         "to make one; 1h"},
        S(python, SETTING_TEXT, "PROGRAM", "that makes Python environments, or none; python3"),
        S(conda, SETTING_TEXT, "PROGRAM", "that makes conda environments, or none; what is found"),
        S(pip_options, SETTING_LIST, "WORD", "of every `pip install`; again for another"),
        {"cache_fresh", SETTING_TIME, offsetof(struct config, cache_fresh_ms), "TIME",
         "a copy of a URL is used for so long before its store is asked again; 1m"},
        S(transfers, SETTING_COUNT, "N", "of URLs at the same time; 4"),
        S(placements, SETTING_COUNT, "N",
          "placement jobs at the same time, in a queue `transfers` of their own; none"),
        {"transfer_limit", SETTING_TIME, offsetof(struct config, transfer_limit_ms), "TIME",
         "for one of them, with all its attempts; 12h"},
        S(transfer_tries, SETTING_COUNT, "N", "attempts at one; 5"),
        {"transfer_retry", SETTING_TIME, offsetof(struct config, transfer_retry_ms), "TIME",
         "before the second attempt; twice as long before each further one; 1s"},
        {"transfer_stall", SETTING_TIME, offsetof(struct config, transfer_stall_ms), "TIME",
         "an attempt in which nothing moves for so long is given up; 1m"},
        {"probe", SETTING_TIME, offsetof(struct config, probe_ms), "TIME",
         "how often to measure the way to each store; 0: never; 5m"},
        S(movers, SETTING_WORDS, NULL, NULL), /* in the file only */
        S(tuning, SETTING_WORDS, NULL, NULL), /* in the file only */
        S(images, SETTING_WORDS, NULL, NULL), /* in the file only */
        S(node, SETTING_WORDS, NULL, NULL),   /* in the file only */
        S(mover, SETTING_TEXT, "PROGRAM", "drover-mover beside this program"),
        S(ca_file, SETTING_TEXT, "FILE", "authorities of https stores, in PEM; the system's"),
        S(known_hosts, SETTING_TEXT, "FILE", "keys of sftp stores; ~/.ssh/known_hosts of the mover's user"),
        S(metrics, SETTING_TEXT, "HOST:PORT", "GET /metrics for Prometheus, to whoever can connect; none"),
        S(kill_on_stop, SETTING_SWITCH, NULL,
          "SIGTERM ends the jobs; without it they go on and the next agent takes them over"),
        {"leave_after", SETTING_TIME, offsetof(struct config, leave_after_ms), "TIME",
         "then the agent ends; jobs that take longer than what is left are not taken; never"},
        {"leave_idle", SETTING_TIME, offsetof(struct config, leave_idle_ms), "TIME",
         "the agent ends when it had nothing to run for so long; never"},
        {"leave_unknown", SETTING_TIME, offsetof(struct config, leave_unknown_ms), "TIME",
         "that must be left for a job that does not say how long it runs; half of --leave-after"},
        S(shepherd, SETTING_TEXT, "PROGRAM", "drover-shepherd beside this program"),
        {"staging_silence", SETTING_TIME, offsetof(struct config, staging_silence_ms), "TIME",
         "without progress of a copy, until it fails and the queues take no more jobs; 0: never; 10m"},
        {"shepherd_silence", SETTING_TIME, offsetof(struct config, shepherd_silence_ms), "TIME",
         "without an answer of the shepherd, until its queues take no more jobs; 0: never; 30s"},
        S(log_level, SETTING_TEXT, "LEVEL", "error, warn, info or debug; info"),
};
static const struct settings table = {settings, sizeof(settings) / sizeof(*settings)};

void config_init(struct config *c)
{
        *c = (struct config){.min_uid = 1000,
                             .paths = true,
                             .cgroups = true,
                             .pids_max = 16384,
                             .kill_grace_ms = 10000,
                             .staging_silence_ms = 600000,
                             .shepherd_silence_ms = 30000,
                             .cache_bytes = 10ull << 30,
                             .environments_bytes = 20ull << 30,
                             .environment_limit_ms = 3600000,
                             .cache_fresh_ms = 60000,
                             .transfers = 4,
                             .transfer_limit_ms = 12ull * 3600000,
                             .transfer_tries = 5,
                             .transfer_retry_ms = 1000,
                             .transfer_stall_ms = 60000,
                             .probe_ms = 300000};
        config_queue_init(&c->queue);
}

void config_deinit(struct config *c)
{
        settings_deinit(table, c);
        c->queue.name = NULL; /* set in the table as `queue` */
        config_queue_deinit(&c->queue);
        for (size_t i = 0; i < c->queue_count; i++) {
                config_queue_deinit(c->queues[i]);
                free(c->queues[i]);
        }
        free(c->queues);
        config_sensors_deinit(c);
        doc_free(c->doc);
        memset(c, 0, sizeof(*c));
}

/* Finds a setting of the agent, or of all its queues; *ret_object is the struct that has it. */
static const struct setting *find_setting(struct config *c, struct str name, void **ret_object)
{
        const struct setting *s = settings_find(table, name);

        *ret_object = s ? (void *)c : &c->queue;
        return s ? s : settings_find(config_queue_settings, name);
}

/* ---- the file */

static int read_settings(struct config *c, const struct doc *root, struct err *err)
{
        size_t n = 0;
        MEM_CLEANUP const char **keys = mem_array(NULL, table.n + config_queue_settings.n + 4, sizeof(*keys));

        for (size_t i = 0; i < table.n; i++)
                keys[n++] = table.v[i].name;
        for (size_t i = 0; i < config_queue_settings.n; i++)
                keys[n++] = config_queue_settings.v[i].name;
        keys[n++] = "queues";
        keys[n++] = "health";
        keys[n++] = "sensors";
        keys[n] = NULL;
        int r = doc_only(root, keys, err);
        for (const struct doc *d = root->first; d && r == 0; d = d->next) {
                void *object;

                if (str_eqz(d->key, "queues") || str_eqz(d->key, "health") ||
                    str_eqz(d->key, "sensors")) /* read in config_finish, after the options */
                        continue;
                const struct setting *s = find_setting(c, d->key, &object);
                r = settings_read(object, s, d, err);
                if (r < 0)
                        doc_where(err, r, d);
        }
        return r;
}

int config_file(struct config *c, const char *path, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        struct stat st;
        int r = fs_read(AT_FDCWD, path, 1 << 20, &text, err);

        doc_free(c->doc);
        c->doc = NULL;
        if (r == 0)
                r = doc_parse(path, buf_view(&text), &c->doc, err);
        if (r == 0 && c->doc)
                r = read_settings(c, c->doc, err);
        if (r == 0 && c->users.n && geteuid() == 0 &&
            (stat(path, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022)))
                r = err_set(err, -EPERM, "%s has `users`: it must be root's, and writable by nobody else",
                            path);
        return r;
}

/* ---- options */

static void help_of(struct settings t)
{
        for (size_t i = 0; i < t.n; i++) {
                char option[64];

                if (!t.v[i].help)
                        continue;
                size_t n = (size_t)snprintf(option, sizeof(option), "--%s", t.v[i].name);
                for (size_t k = 2; k < n; k++)
                        if (option[k] == '_')
                                option[k] = '-';
                snprintf(option + n, sizeof(option) - n, " %s", t.v[i].argument ? t.v[i].argument : "");
                printf("  %-23s %s\n", option, t.v[i].help);
        }
}

static void help(void)
{
        printf("usage: drover-agent --server ADDRESS --dir FOLDER [--token-file FILE] [--config FILE] "
               "[options]\n"
               "       drover-agent import-galaxy FILE\n\n"
               "Offers this machine to a Drover server and runs the jobs it is given. See "
               "drover-agent(8).\n\n"
               "  --config FILE           settings in YAML, by the same names (with _ for -)\n");
        help_of(table);
        help_of(config_queue_settings);
        printf("  --version               prints the version\n");
}

#define CONFIG_LISTS 16 /* settings of the kind SETTING_LIST, at most */

static bool among(const struct setting *const *v, size_t n, const struct setting *s)
{
        while (n > 0)
                if (v[--n] == s)
                        return true;
        return false;
}

int config_options(struct config *c, int argc, char **argv, bool *ret_done, struct err *err)
{
        *ret_done = false;
        /* the file first, so that options win */
        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--help")) {
                        help();
                        *ret_done = true;
                        return 0;
                }
                if (!strcmp(argv[i], "--version")) {
                        puts("drover-agent " DROVER_VERSION);
                        *ret_done = true;
                        return 0;
                }
                if (!strcmp(argv[i], "--config") && i + 1 < argc) {
                        int r = config_file(c, argv[i + 1], err);

                        if (r < 0)
                                return r;
                }
        }
        const struct setting *replaced[CONFIG_LISTS];
        size_t replaced_count = 0;
        for (int i = 1; i < argc; i++) {
                struct str option = str_of(argv[i]);

                if (!str_starts(option, STR("--")))
                        return err_set(err, -EINVAL, "what is '%s'? see drover-agent --help", argv[i]);
                if (str_eqz(option, "--config")) {
                        if (++i == argc)
                                return err_set(err, -EINVAL, "--config needs a file");
                        continue;
                }
                struct str name = str_skip(option, 2), value = name;
                bool inlined = str_cut(&value, '=', &name) && value.p;
                void *object;
                const struct setting *s = find_setting(c, name, &object);
                if (!s)
                        return err_set(err, -EINVAL, "there is no option %s; see drover-agent --help",
                                       argv[i]);
                if (!inlined && s->kind == SETTING_SWITCH && !s->argument)
                        value = STR("true");
                else if (!inlined && ++i == argc)
                        return err_set(err, -EINVAL, "--" STR_FMT " needs a value", STR_ARG(name));
                else if (!inlined)
                        value = str_of(argv[i]);
                if (s->kind == SETTING_LIST && !among(replaced, replaced_count, s)) {
                        settings_clear(object, s); /* the file's */
                        replaced[replaced_count++] = s;
                }
                int r = settings_set(object, s, value, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int config_where(const struct config *c, const char *key, int code, struct err *err)
{
        const struct doc *d = doc_get(c->doc, key);

        return d ? doc_where(err, code, d) : code;
}

/* Returns whether the agent has joined: it needs no token then, whose file may be gone. */
static bool has_joined(const struct config *c)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s%s/" AGENT_CERTIFICATE, c->dir, c->users.n ? "/agent" : "");
        return access(buf_z(&path), F_OK) == 0;
}

static int read_token(struct config *c, struct err *err)
{
        if (c->token || !c->token_file)
                return 0;
        BUF_CLEANUP struct buf b = {0};
        const char *path = strcmp(c->token_file, "-") == 0 ? "/dev/stdin" : c->token_file;
        int r = fs_read_secret(AT_FDCWD, path, 4096, &b, err);
        if (r == -ENOENT && has_joined(c))
                return 0;
        if (r < 0)
                return config_where(c, "token_file", err_prefix(err, r, "token_file"), err);
        if (r == 0)
                c->token = str_dupz(str_trim(buf_view(&b)));
        return r;
}

/* Checks the owners: jobs run as the agent's user, so an agent of root runs jobs of root only. */
static int check_owners(struct config *c, struct err *err)
{
        const struct passwd *pw = getpwuid(getuid());
        BUF_CLEANUP struct buf own = {0};

        if (pw)
                buf_printf(&own, "%s@%s", pw->pw_name, c->domain);
        else
                buf_printf(&own, "%u@%s", (unsigned)getuid(), c->domain);
        for (size_t i = 0; i < c->owners.n && geteuid() == 0; i++)
                if (!str_eqz(buf_view(&own), c->owners.v[i]))
                        return err_set(err, -EINVAL,
                                       "root's agent runs the jobs of %s only, not of %s: start the agent as "
                                       "another user",
                                       buf_z(&own), c->owners.v[i]);
        if (c->owners.n == 0)
                c->owners.v[c->owners.n++] = buf_take(&own);
        return 0;
}

#define HIDE_MAX 7

static int check_words(const struct config *c, struct err *err)
{
        for (size_t i = 0; i < c->images.n; i++) {
                struct str size = str_of(c->images.v[i]), name;
                uint64_t bytes;

                str_cut(&size, ' ', &name);
                if (quantity_size(size, &bytes) < 0)
                        return config_where(c, "images",
                                            err_set(err, -EINVAL,
                                                    "images: " STR_FMT " has no size; write NAME: 120M",
                                                    STR_ARG(name)),
                                            err);
        }
        for (size_t i = 0; i < c->hide.n; i++)
                if (c->hide.v[i][0] != '/' || c->hide.n > HIDE_MAX)
                        return config_where(c, "hide",
                                            err_set(err, -EINVAL,
                                                    "hide: up to %d folders by their absolute paths, which "
                                                    "'%s' is not",
                                                    HIDE_MAX, c->hide.v[i]),
                                            err);
        for (size_t i = 0; i < c->movers.n; i++) {
                BUF_CLEANUP struct buf path = {0};
                struct str program = str_of(c->movers.v[i]), scheme;

                str_cut(&program, ' ', &scheme);
                int r = program_shipped("movers", program.p, &path, err);
                if (r == 0 && *buf_z(&path) != '/')
                        r = err_set(err, -EINVAL, "its program is an absolute path");
                if (r < 0)
                        r = err_prefix(err, -EINVAL, "movers: " STR_FMT, STR_ARG(scheme));
                if (r < 0)
                        return config_where(c, "movers", r, err);
        }
        for (size_t i = 0; i < c->tuning.n; i++) {
                struct tuning t;

                if (!tuning_parse(str_of(c->tuning.v[i]), &t))
                        return config_where(
                                c, "tuning",
                                err_set(err, -EINVAL,
                                        "tuning: '%s' is not a URL's beginning with streams=N (up to "
                                        "%u), buffer=SIZE, block=SIZE (1K to 2M)",
                                        c->tuning.v[i], TUNING_STREAMS_MAX),
                                err);
                free(t.prefix);
        }
        return 0;
}

static int check_servers(const struct config *c, struct err *err)
{
        for (size_t i = 0; i < c->servers.n; i++) {
                struct str address = str_of(c->servers.v[i]);
                ptrdiff_t colon = str_rfind(address, ':');
                uint64_t port;

                if (str_starts(address, STR("unix:/")) ||
                    (colon > 0 && str_to_u64(str_skip(address, (size_t)colon + 1), &port) == 0))
                        continue;
                err_set(err, -EINVAL, "the server '%s' is no address: write unix:/path or host:port",
                        c->servers.v[i]);
                return config_where(c, "server", -EINVAL, err);
        }
        return 0;
}

/* /home/NAME, of a path beneath it, is not there: nobody's home is made, since the name is most likely that
 * of an example. */
static bool is_in_no_home(const char *path)
{
        BUF_CLEANUP struct buf home = {0};
        struct str rest = str_of(path), name;

        if (!str_starts(rest, STR("/home/")))
                return false;
        rest = str_skip(rest, 6);
        if (!str_cut(&rest, '/', &name) || rest.n == 0)
                return false;
        buf_printf(&home, "/home/" STR_FMT, STR_ARG(name));
        return access(buf_z(&home), F_OK) != 0 && errno == ENOENT;
}

static int make_folder(struct config *c, struct err *err)
{
        int r = is_in_no_home(c->dir) ? -ENOENT : fs_mkdirs(c->dir, 0700);
        char *absolute = r < 0 ? NULL : realpath(c->dir, NULL);

        if (r == 0 && !absolute)
                r = -errno;
        if (r < 0)
                return config_where(
                        c, "dir",
                        err_set(err, r, "cannot use the folder %s: %s; `dir` is where the agent may write",
                                c->dir, strerror(-r)),
                        err);
        free(c->dir);
        c->dir = absolute;
        return 0;
}

int config_finish(struct config *c, struct err *err)
{
        if (c->servers.n == 0)
                return err_set(err, -EINVAL, "which server? give --server unix:/path or host:port");
        if (!c->dir)
                return err_set(err, -EINVAL, "where may the agent keep its state? give --dir FOLDER");
        int r = check_servers(c, err);
        if (r == 0)
                r = check_words(c, err);
        if (r == 0)
                r = make_folder(c, err);
        if (r < 0)
                return r;
        char host[256] = "localhost";
        gethostname(host, sizeof(host) - 1);
        if (!c->name)
                c->name = mem_dupz(host);
        if (!c->queue.name)
                c->queue.name = mem_dupz("default");
        if (!c->domain)
                c->domain = mem_dupz("local");
        if (!c->python)
                c->python = mem_dupz("python3");
        if (!c->filesystem_domain) {
                char domain[128];

                fs_domain(domain, sizeof(domain));
                c->filesystem_domain = mem_dupz(domain);
        }
        c->agent_uid = geteuid();
        r = c->users.n ? users_check(c, err) : check_owners(c, err);
        if (r < 0)
                config_where(c, c->users.n ? "users" : "owner", r, err);
        if (r == 0)
                r = config_queues(c, err);
        if (r == 0)
                r = config_containment(c, err);
        if (r == 0)
                r = config_sensors(c, err);
        return r < 0 ? -EINVAL : read_token(c, err);
}
