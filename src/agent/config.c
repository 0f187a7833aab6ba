#include "agent/config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/users.h"
#include "base/doc.h"
#include "base/fs.h"
#include "base/quantity.h"

enum kind { TEXT, LIST, CPUS, SIZE, TIME, COUNT, SWITCH, POLICY, PAIRS };
struct setting {
        const char *name; /* in the file; the option has '-' for '_' */
        enum kind kind;
        size_t at;
        const char *argument, *help;
};
#define S(member, kind, argument, help)                                                                      \
        {                                                                                                    \
#member, kind, offsetof(struct config, member), argument, help                               \
        }
static const struct setting settings[] = {
        {"server", LIST, offsetof(struct config, servers), "ADDRESS",
         "unix:/path or host:port; again for another address of the same server"},
        S(dir, TEXT, "FOLDER", "where the agent keeps its key, its sandboxes and what it has to tell"),
        S(name, TEXT, "NAME", "what it is called; the host's name"),
        S(token, TEXT, "TOKEN", "of the first contact, from `drover token agent`"),
        S(token_file, TEXT, "FILE", "the same, in a file"),
        {"owner", LIST, offsetof(struct config, owners), "NAME@DOMAIN",
         "whose jobs it runs; its own user's; `any` for all"},
        S(users, PAIRS, NULL, NULL), /* in the file only */
        S(min_uid, COUNT, "N", "with `users` in the file: the smallest uid of a job; 1000"),
        S(user, TEXT, "NAME", "with `users`: the agent's own user; drover, or nobody"),
        S(domain, TEXT, "DOMAIN", "of its own user's name; local"),
        S(filesystem_domain, TEXT, "NAME",
          "agents and submitters of one name see the same paths; this machine"),
        S(queue, TEXT, "NAME", "of its queue; default"),
        {"cpus", CPUS, offsetof(struct config, cpus_milli), "N", "to offer; all"},
        {"memory", SIZE, offsetof(struct config, memory_bytes), "SIZE", "to offer; all"},
        {"disk", SIZE, offsetof(struct config, disk_bytes), "SIZE",
         "to offer; what is free where the folder is"},
        S(jobs_max, COUNT, "N", "at the same time; no limit but the resources"),
        S(requirements, TEXT, "EXPRESSION", "on jobs, as TARGET"),
        S(attributes, TEXT, "TEXT", "more attributes of its ad: 'HasFoo = true; Rack = 7'"),
        S(pull_policy, POLICY, "POLICY",
          "load=150%,jobs/day=1000,cpu/day=20h,walltime/day=9h,memory/day=500GiBh"),
        S(cgroups, SWITCH, "auto|off", "limits by control groups, where they can be written; auto"),
        S(pids_max, COUNT, "N", "processes of a job, with control groups; 0: no limit; 16384"),
        {"kill_grace", TIME, offsetof(struct config, kill_grace_ms), "TIME",
         "between SIGTERM and SIGKILL; 10s"},
        {"cache", SIZE, offsetof(struct config, cache_bytes), "SIZE", "of inputs kept for later jobs; 10GiB"},
        S(kill_on_stop, SWITCH, NULL,
          "SIGTERM ends the jobs; without it they go on and the next agent takes them over"),
        S(shepherd, TEXT, "PROGRAM", "drover-shepherd beside this program"),
        S(log_level, TEXT, "LEVEL", "error, warn, info or debug; info"),
};
#define SETTINGS (sizeof(settings) / sizeof(*settings))

void config_init(struct config *c)
{
        *c = (struct config){.min_uid = 1000,
                             .cgroups = true,
                             .pids_max = 16384,
                             .kill_grace_ms = 10000,
                             .cache_bytes = 10ull << 30};
        pull_policy_default(&c->pull_policy);
}

static void list_deinit(struct config_list *l)
{
        for (size_t i = 0; i < l->n; i++)
                free(l->v[i]);
        l->n = 0;
}

void config_deinit(struct config *c)
{
        for (size_t i = 0; i < SETTINGS; i++) {
                void *at = (char *)c + settings[i].at;
                if (settings[i].kind == TEXT)
                        free(*(char **)at);
                else if (settings[i].kind == LIST || settings[i].kind == PAIRS)
                        list_deinit(at);
        }
        memset(c, 0, sizeof(*c));
}

static int set(struct config *c, const struct setting *s, struct str value, struct err *err)
{
        void *at = (char *)c + s->at;
        struct config_list *list = at;
        int r = 0;
        switch (s->kind) {
        case TEXT:
                free(*(char **)at);
                *(char **)at = str_dupz(value);
                break;
        case LIST:
                if (list->n == CONFIG_LIST_MAX)
                        return err_set(err, -EINVAL, "%s is given more than %d times", s->name,
                                       CONFIG_LIST_MAX);
                list->v[list->n++] = str_dupz(value);
                break;
        case CPUS: r = quantity_thousandths(value, at); break;
        case SIZE: r = quantity_size(value, at); break;
        case TIME: r = quantity_duration(value, at); break;
        case COUNT: r = quantity_count(value, at); break;
        case SWITCH:
                if (str_ieqz(value, "auto") || str_ieqz(value, "true") || str_ieqz(value, "yes") ||
                    str_ieqz(value, "on"))
                        *(bool *)at = true;
                else if (str_ieqz(value, "off") || str_ieqz(value, "false") || str_ieqz(value, "no"))
                        *(bool *)at = false;
                else
                        r = -EINVAL;
                break;
        case PAIRS: return err_set(err, -EINVAL, "%s is written in the file, as a map", s->name);
        case POLICY: r = pull_policy_parse(value, at, err); return r;
        }
        return r < 0 ? err_set(err, r, "%s cannot be '" STR_FMT "'", s->name, STR_ARG(value)) : 0;
}

static const struct setting *find(struct str name)
{
        for (size_t i = 0; i < SETTINGS; i++) {
                const char *z = settings[i].name;
                size_t n = strlen(z);
                bool same = n == name.n;
                for (size_t k = 0; same && k < n; k++)
                        same = z[k] == (name.p[k] == '-' ? '_' : name.p[k]);
                if (same)
                        return &settings[i];
        }
        return NULL;
}

/* ---- the file */

/* `NAME@DOMAIN: user` lines. */
static int pairs(struct config *c, const struct setting *s, const struct doc *map, struct err *err)
{
        struct config_list *l = (void *)((char *)c + s->at);

        for (const struct doc *d = map->first; d; d = d->next) {
                struct str owner = d->key, user = d->text;
                struct buf b = {0};

                if (d->kind != DOC_WORD)
                        return err_set(err, -EINVAL, "%s maps owners to users", s->name);
                if (l->n == CONFIG_LIST_MAX)
                        return err_set(err, -EINVAL, "%s has more than %d lines", s->name, CONFIG_LIST_MAX);
                if (str_find(owner, ' ') >= 0 || str_find(owner, '\n') >= 0 || str_starts(owner, STR("#")) ||
                    str_find(user, '\n') >= 0 || owner.n + user.n > 500)
                        return err_set(err, -EINVAL, "%s cannot map '" STR_FMT "'", s->name, STR_ARG(owner));
                buf_printf(&b, STR_FMT " " STR_FMT, STR_ARG(owner),
                           STR_ARG(str_eqz(user, "same name") ? STR("*") : user));
                l->v[l->n++] = buf_take(&b);
        }
        return 0;
}

static int node(struct config *c, const struct setting *s, const struct doc *d, struct err *err)
{
        int r = 0;

        if (d->kind == DOC_MAP && s->kind == PAIRS)
                return pairs(c, s, d, err);
        if (d->kind == DOC_WORD)
                return set(c, s, d->text, err);
        if (d->kind != DOC_LIST || s->kind != LIST)
                return err_set(err, -EINVAL, "%s has a value of the wrong kind", s->name);
        for (const struct doc *i = d->first; i && r == 0; i = i->next)
                r = i->kind == DOC_WORD ? set(c, s, i->text, err)
                                        : err_set(err, -EINVAL, "%s is a list of words", s->name);
        return r;
}

static int read_settings(struct config *c, const struct doc *root, struct err *err)
{
        const char *keys[SETTINGS + 1] = {0};
        int r;

        for (size_t i = 0; i < SETTINGS; i++)
                keys[i] = settings[i].name;
        r = doc_only(root, keys, err);
        for (const struct doc *d = root->first; d && r == 0; d = d->next) {
                r = node(c, find(d->key), d, err);
                if (r < 0)
                        doc_where(err, r, d);
        }
        return r;
}

int config_file(struct config *c, const char *path, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        struct doc *root = NULL;
        struct stat st;
        int r = fs_read(AT_FDCWD, path, 1 << 20, &text, err);

        if (r == 0)
                r = doc_parse(path, buf_view(&text), &root, err);
        if (r == 0 && root)
                r = read_settings(c, root, err);
        doc_free(root);
        if (r == 0 && c->users.n && geteuid() == 0 &&
            (stat(path, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022)))
                r = err_set(err, -EPERM, "%s has `users`: it must be root's, and writable by nobody else",
                            path);
        return r;
}

/* ---- options */

static void help(void)
{
        printf("usage: drover-agent --server ADDRESS --dir FOLDER [--token TOKEN] [--config FILE] "
               "[options]\n\n"
               "Offers this machine to a Drover server and runs the jobs it is given. See "
               "drover-agent(8).\n\n"
               "  --config FILE           settings in YAML, by the same names (with _ for -)\n");
        for (size_t i = 0; i < SETTINGS; i++) {
                char option[64];
                if (!settings[i].help)
                        continue;
                size_t n = (size_t)snprintf(option, sizeof(option), "--%s", settings[i].name);
                for (size_t k = 2; k < n; k++)
                        if (option[k] == '_')
                                option[k] = '-';
                snprintf(option + n, sizeof(option) - n, " %s",
                         settings[i].argument ? settings[i].argument : "");
                printf("  %-23s %s\n", option, settings[i].help);
        }
        printf("  --version               prints the version\n");
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
        bool replaced[SETTINGS] = {false};
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
                const struct setting *s = find(name);
                if (!s)
                        return err_set(err, -EINVAL, "there is no option %s; see drover-agent --help",
                                       argv[i]);
                if (!inlined && s->kind == SWITCH && !s->argument)
                        value = STR("true");
                else if (!inlined && ++i == argc)
                        return err_set(err, -EINVAL, "--" STR_FMT " needs a value", STR_ARG(name));
                else if (!inlined)
                        value = str_of(argv[i]);
                if (s->kind == LIST && !replaced[s - settings])
                        list_deinit((struct config_list *)(void *)((char *)c + s->at));
                replaced[s - settings] = true;
                int r = set(c, s, value, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_token(struct config *c, struct err *err)
{
        if (c->token || !c->token_file)
                return 0;
        BUF_CLEANUP struct buf b = {0};
        int r = fs_read(AT_FDCWD, c->token_file, 4096, &b, err);
        if (r == 0)
                c->token = str_dupz(str_trim(buf_view(&b)));
        return r;
}

/* Jobs run as the agent does. What others could make root do by a job of theirs nobody may: root's agent runs
 * root's. */
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

int config_finish(struct config *c, struct err *err)
{
        if (c->servers.n == 0)
                return err_set(err, -EINVAL, "which server? give --server unix:/path or host:port");
        if (!c->dir)
                return err_set(err, -EINVAL, "where may the agent keep its state? give --dir FOLDER");
        int r = fs_mkdirs(c->dir, 0700);
        char *absolute = r < 0 ? NULL : realpath(c->dir, NULL);
        if (!absolute) {
                r = r < 0 ? r : -errno;
                return err_set(err, r, "cannot use the folder %s: %s", c->dir, strerror(-r));
        }
        free(c->dir);
        c->dir = absolute;
        char host[256] = "localhost";
        gethostname(host, sizeof(host) - 1);
        if (!c->name)
                c->name = mem_dupz(host);
        if (!c->queue)
                c->queue = mem_dupz("default");
        if (!c->domain)
                c->domain = mem_dupz("local");
        if (!c->filesystem_domain) {
                char domain[128];
                fs_domain(domain, sizeof(domain));
                c->filesystem_domain = mem_dupz(domain);
        }
        c->agent_uid = geteuid();
        r = c->users.n ? users_check(c, err) : check_owners(c, err);
        return r < 0 ? -EINVAL : read_token(c, err);
}
