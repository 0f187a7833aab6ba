#include "server/backends/backends.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "auth/ca.h"
#include "base/mem.h"
#include "base/sm.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "core/query.h"
#include "ev/kept_child.h"
#include "server/access/access.h"
#include "server/agents/agents.h"
#include "server/loop/turn.h"

#define BY          STR("droverd.yaml")
#define FILE_MAX    65536u
#define TOKEN_MS    600000
#define LINGER_MS   3000 /* after the last result, for what the agent still tells the other server */
#define FOLDERS_MAX (4 * CONFIG_BACKENDS_MAX)

/*   OFF --due: on_tick--> JOINING --token durable: start--> ON --its settings changed, it has left:
 * on_tick--> ENDING ^                      |                               | |
 *    +---- cannot start ----+------------ ended: on_ended
 * --+--------------------------------------------------+
 *
 * OFF: no agent runs. JOINING: the token's record is on its way to the disk. ON: its agent runs. ENDING: its
 * agent has got SIGTERM. */
enum backend_state { BACKEND_OFF = 1, BACKEND_JOINING, BACKEND_ON, BACKEND_ENDING, BACKEND_STATES };

static const char *const names[BACKEND_STATES] = {[BACKEND_OFF] = "off",
                                                  [BACKEND_JOINING] = "joining",
                                                  [BACKEND_ON] = "on",
                                                  [BACKEND_ENDING] = "ending"};
static const uint32_t moves[BACKEND_STATES] = {
        [BACKEND_OFF] = SM_TO(BACKEND_JOINING),
        [BACKEND_JOINING] = SM_TO(BACKEND_ON) | SM_TO(BACKEND_OFF),
        [BACKEND_ON] = SM_TO(BACKEND_ENDING) | SM_TO(BACKEND_OFF),
        [BACKEND_ENDING] = SM_TO(BACKEND_OFF),
};
static const struct sm backend_states = {"backend", names, moves, BACKEND_STATES};

struct backend {
        struct backends *all;
        struct backend *next;
        char *name;
        const struct config_backend *config; /* NULL: it leaves */
        char *folder;
        char *settings; /* the text of agent.yaml; NULL: as it is in the folder */
        struct args argv;
        struct kept_child *agent;
        enum backend_state state;
        bool due;         /* OFF: may be started */
        bool changed;     /* ON: the agent has older settings */
        char *why;        /* OFF: why it is; NULL: it has not run yet */
        int64_t empty_ms; /* boot clock: since when it has no attempt; 0: it has */
};
struct backends {
        struct server *server;
        struct backend *first;
        char *program;
};

static void move(struct backend *x, enum backend_state to)
{
        sm_check(&backend_states, x->state, to);
        x->state = to;
}

static void set_why(struct backend *x, const char *why)
{
        free(x->why);
        x->why = why ? mem_dupz(why) : NULL;
}

/* ---- files */

static void path_of(const struct backend *x, const char *file, struct buf *out)
{
        buf_printf(out, "%s/%s", x->folder, file);
}

static void write_owners(struct json *j, const char *owners)
{
        struct str rest = str_of(owners), one;

        json_key(j, "owner");
        json_open(j, '[');
        while (rest.n && str_cut(&rest, ',', &one))
                json_str(j, one);
        json_close(j, ']');
}

/* The folders that hold the server's secrets: jobs may name paths, and the agent has the server's uid. */
static void write_hidden(struct json *j, const struct paths *p)
{
        struct str socket = str_skip(str_of(p->agents), sizeof("unix:") - 1),
                   folder = str_head(socket, (size_t)str_rfind(socket, '/'));

        json_key(j, "hide");
        json_open(j, '[');
        json_strz(j, p->dir);
        if (!str_eqz(folder, p->dir))
                json_str(j, folder);
        json_close(j, ']');
}

/* YAML includes JSON. With `owners` the agent, which has the server's rights, opens no path that a job names:
 * all files go through the spool, and its file system is nobody else's. */
static char *settings_text(const struct backend *x)
{
        const struct server *s = x->all->server;
        BUF_CLEANUP struct buf token = {0}, domain = {0};
        struct buf text = {0};
        struct json j = {.out = &text};

        path_of(x, "token", &token);
        json_open(&j, '{');
        json_kstrz(&j, "server", s->paths.agents);
        json_kstrz(&j, "dir", x->folder);
        json_kstrz(&j, "name", x->name);
        json_kstrz(&j, "token_file", buf_z(&token));
        json_kstrz(&j, "domain", s->config.domain);
        write_hidden(&j, &s->paths);
        if (x->config->owners) {
                buf_printf(&domain, "backend-%s-%s", x->name, s->uuid);
                write_owners(&j, x->config->owners);
                json_kstrz(&j, "paths", "off");
                json_kstrz(&j, "filesystem_domain", buf_z(&domain));
        }
        json_kstrz(&j, "cgroups", "off");
        json_kstrz(&j, "powercap", "none");
        json_kstrz(&j, "environments", "0");
        json_key(&j, "queues");
        json_open(&j, '[');
        json_raw(&j, str_of(x->config->queue));
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&text, '\n');
        return buf_take(&text);
}

/* With other settings the agent joins again: its certificate has the owners of the token that it joined with.
 */
static int write_files(const struct backend *x, struct str token, struct err *err)
{
        BUF_CLEANUP struct buf file = {0}, secret = {0}, certificate = {0}, before = {0};
        int r = fs_mkdirs(x->folder, 0700);

        if (r != 0)
                return err_set(err, r, "cannot make the folder %s: %s", x->folder, strerror(-r));
        path_of(x, "token", &secret);
        r = fs_write(AT_FDCWD, buf_z(&secret), token, 0600, false, err);
        path_of(x, "agent.yaml", &file);
        if (r != 0 || !x->settings ||
            (fs_read(AT_FDCWD, buf_z(&file), FILE_MAX, &before, NULL) == 0 &&
             str_eqz(buf_view(&before), x->settings)))
                return r;
        path_of(x, "agent.crt", &certificate);
        if (unlink(buf_z(&certificate)) < 0 && errno != ENOENT)
                return err_set(err, -errno, "cannot remove %s: %s", buf_z(&certificate), strerror(errno));
        return fs_write(AT_FDCWD, buf_z(&file), str_of(x->settings), 0600, true, err);
}

/* ---- the agent's start */

struct start_task {
        struct task task;
        struct backend *x;
        struct buf token;
};

static void start_free(struct start_task *t)
{
        if (t->token.n)
                explicit_bzero(t->token.p, t->token.n);
        buf_deinit(&t->token);
        free(t);
}

static void start_drop(struct task *t)
{
        start_free((struct start_task *)(void *)t);
}

static void failed(struct backend *x, const char *why)
{
        log_error("msg=\"the agent of a back end cannot be started\" backend=%s error=\"%s\"", x->name,
                  LOG_TEXT(str_of(why)));
        set_why(x, why);
        move(x, BACKEND_OFF);
        kept_child_start_later(x->agent);
}

/* Core thread: a back end that is JOINING stays in the list, so x is valid. */
static void start(struct server *s, struct task *task)
{
        struct start_task *t = (struct start_task *)(void *)task;
        struct backend *x = t->x;
        struct err err = {0};

        (void)s;
        if (write_files(x, buf_view(&t->token), &err) != 0) {
                x->due = false;
                failed(x, err.text);
        } else {
                move(x, BACKEND_ON);
                x->changed = false;
                if (kept_child_run(x->agent))
                        log_info("msg=\"the agent of a back end was started\" backend=%s", x->name);
        }
        start_free(t);
}

/* I/O thread: this task runs after the commit. */
static void token_is_durable(struct server *s, struct task *t)
{
        t->run = start;
        server_to_core(s, t);
}

/* Root's agents run jobs of root only. */
static bool may_start(const struct backend *x)
{
        return geteuid() != 0 || !x->config || !x->config->owners;
}

static void join(struct backend *x)
{
        struct server *s = x->all->server;
        struct access *a = s->access;
        int64_t now = clock_wall_ms();
        struct token token = {.kind = TOKEN_AGENT,
                              .limited = true,
                              .uses_left = 1,
                              .created_ms = now,
                              .expires_ms = now + TOKEN_MS,
                              .name = str_of(x->name),
                              .created_by = str_of(a->own[0]   ? a->own[0]
                                                   : a->own[1] ? a->own[1]
                                                               : ""),
                              .tags = STR(""),
                              .owners = str_of(x->config && x->config->owners ? x->config->owners : ""),
                              .labels = STR(""),
                              .most = STR("")};
        struct start_task *t;
        struct err err = {0};

        x->due = false;
        move(x, BACKEND_JOINING);
        if (!may_start(x)) {
                failed(x,
                       "root's server hands on root's jobs only: run it as another user (user: drover), or "
                       "leave owners out");
                return;
        }
        t = mem_new(struct start_task);
        *t = (struct start_task){.task = {.run = token_is_durable, .drop = start_drop}, .x = x};
        token_make(&token, str_of(ca_fingerprint(a->ca)), &t->token);
        if (tokens_add(a->tokens, &token, turn_batch(s->turn), &err) != 0) {
                failed(x, err.text);
                start_free(t);
                return;
        }
        turn_send(s->turn, &t->task, TURN_DURABLE);
}

static void on_due(void *arg)
{
        ((struct backend *)arg)->due = true; /* the next tick starts it */
}

static void on_ended(void *arg, int status, const struct err *why)
{
        struct backend *x = arg;
        BUF_CLEANUP struct buf text = {0};

        if (why)
                buf_printf(&text, "its agent cannot be started: %s", why->text);
        else if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
                buf_addz(&text, "its agent refuses its settings: the server's log has the reason");
        else if (WIFEXITED(status))
                buf_printf(&text, "its agent has ended with status %d: the server's log has the reason",
                           WEXITSTATUS(status));
        else
                buf_printf(&text, "its agent has ended by signal %d", WTERMSIG(status));
        if (x->state == BACKEND_ON)
                log_warn("msg=\"the agent of a back end has ended, and is started again\" backend=%s "
                         "why=\"%s\"",
                         x->name, LOG_TEXT(buf_view(&text)));
        bool ordered = x->state == BACKEND_ENDING;
        set_why(x, ordered ? NULL : buf_z(&text));
        move(x, BACKEND_OFF);
        if (x->config && ordered)
                kept_child_start(x->agent);
}

static const struct kept_child_ops agent_ops = {on_due, on_ended};

/* ---- the list */

static struct backend *backend_new(struct backends *all, struct str name)
{
        struct backend *x = mem_new(struct backend), **at = &all->first;
        struct buf folder = {0};
        BUF_CLEANUP struct buf file = {0};

        while (*at && strcmp((*at)->name, name.p) < 0)
                at = &(*at)->next;
        *x = (struct backend){.all = all, .next = *at, .name = str_dupz(name), .state = BACKEND_OFF};
        *at = x;
        buf_printf(&folder, "%s/backends/%s", all->server->paths.dir, x->name);
        x->folder = buf_take(&folder);
        path_of(x, "agent.yaml", &file);
        args_add(&x->argv, str_of(all->program));
        args_add(&x->argv, STR("--config"));
        args_add(&x->argv, buf_view(&file));
        x->agent = kept_child_new(all->server->loop, x->argv.v, &agent_ops, x);
        kept_child_start(x->agent);
        return x;
}

static void backend_free(struct backend *x)
{
        kept_child_free(x->agent);
        args_deinit(&x->argv);
        free(x->why);
        free(x->settings);
        free(x->folder);
        free(x->name);
        free(x);
}

static struct backend *backend_find(struct backends *all, struct str name)
{
        struct backend *x = all->first;

        while (x && !str_eqz(name, x->name))
                x = x->next;
        return x;
}

/* Applies a back end's settings. An agent whose file has other settings ends, and is started with these. */
static void backend_set(struct backend *x, const struct config_backend *c)
{
        char *text = NULL;

        x->config = c;
        if (!c)
                return;
        text = settings_text(x);
        if (!x->settings || strcmp(text, x->settings) != 0) {
                x->changed = x->state == BACKEND_ON || x->state == BACKEND_JOINING;
                if (x->state == BACKEND_OFF) /* whatever it waits for may be mended */
                        kept_child_start(x->agent);
        }
        free(x->settings);
        x->settings = text;
}

static void settle(struct backends *all, const struct config_backends *c)
{
        for (struct backend *x = all->first; x; x = x->next)
                if (!config_backends_find(c, str_of(x->name)))
                        backend_set(x, NULL);
        for (size_t i = 0; i < c->count; i++) {
                struct str name = str_of(c->items[i].name);
                struct backend *x = backend_find(all, name);

                backend_set(x ? x : backend_new(all, name), &c->items[i]);
        }
}

/* Finds the folders of earlier runs; those that the settings no longer name leave. */
static void find_folders(struct backends *all)
{
        BUF_CLEANUP struct buf path = {0};
        const struct dirent *e;
        size_t count = 0;
        DIR *dir;

        buf_printf(&path, "%s/backends", all->server->paths.dir);
        dir = opendir(buf_z(&path));
        while (dir && (e = readdir(dir)) && count < FOLDERS_MAX) {
                BUF_CLEANUP struct buf file = {0};

                if (!config_backend_name_valid(str_of(e->d_name)))
                        continue;
                buf_printf(&file, "%s/%s/agent.yaml", buf_z(&path), e->d_name);
                if (access(buf_z(&file), F_OK) != 0)
                        continue;
                backend_new(all, str_of(e->d_name));
                count++;
        }
        if (dir)
                closedir(dir);
}

static int ensure(struct server *s, struct err *err)
{
        BUF_CLEANUP struct buf program = {0};
        int r;

        if (s->backends)
                return 0;
        r = program_find("drover-agent", &program, err);
        if (r != 0)
                return r;
        s->backends = mem_new(struct backends);
        *s->backends = (struct backends){.server = s, .program = buf_take(&program)};
        find_folders(s->backends);
        return 0;
}

static bool any_folder(const struct server *s)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/backends", s->paths.dir);
        return access(buf_z(&path), F_OK) == 0;
}

int backends_open(struct server *s, struct err *err)
{
        const struct config_backends *c = &server_settings(s)->backends;
        int r = c->count || any_folder(s) ? ensure(s, err) : 0;

        if (r == 0 && s->backends)
                settle(s->backends, c);
        return r;
}

void backends_free(struct backends *b)
{
        if (!b)
                return;
        for (struct backend *x = b->first, *next; x; x = next) {
                next = x->next;
                backend_free(x);
        }
        free(b->program);
        free(b);
}

/* ---- nodes */

static void node_order(struct backend *x, enum node_state to, const char *reason)
{
        struct core_node_order o = {.agent = x->name, .to = to, .by = BY, .reason = str_of(reason)};
        struct err err = {0};

        if (core_node_set(x->all->server->core, &o, &err) != 0)
                log_warn("msg=\"a back end's node stays as it is\" backend=%s why=\"%s\"", x->name, err.text);
}

/* Only what was ordered here is undone here: a node that an admin has drained stays so. */
static void node_follow(struct backend *x, const struct core_node *n)
{
        bool ours = n->by && str_eq(BY, str_of(n->by)), drains = !x->config || x->config->drain;

        if (drains && n->state == NODE_UP)
                node_order(x, NODE_DRAINING,
                           x->config ? "drain: yes" : "it is no longer among the back ends");
        else if (!drains && ours &&
                 (n->state == NODE_DRAINING || n->state == NODE_DRAINED || n->state == NODE_RETIRED))
                node_order(x, NODE_UP, "");
}

/* Returns whether a back end that leaves has no job any more. */
static bool is_empty(struct backend *x, const struct core_node *n)
{
        int64_t now = clock_boot_ms();

        if (n && (n->attempts > 0 || n->state == NODE_UP))
                x->empty_ms = 0;
        else if (x->empty_ms == 0)
                x->empty_ms = now;
        return x->empty_ms && (!n || now - x->empty_ms >= LINGER_MS);
}

static void remove_folder(const struct backend *x)
{
        BUF_CLEANUP struct buf path = {0};
        int dir;

        buf_printf(&path, "%s/backends", x->all->server->paths.dir);
        dir = open(buf_z(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                return;
        fs_remove_tree(dir, x->name);
        close(dir);
        rmdir(buf_z(&path)); /* if it was the last one */
}

static void leave(struct backend **at, bool known)
{
        struct backend *x = *at;
        struct server *s = x->all->server;

        if (known)
                node_order(x, NODE_RETIRED, "it is no longer among the back ends");
        access_revoke(s, str_of(x->name));
        agents_expel(s, str_of(x->name), "it is no longer among the back ends");
        remove_folder(x);
        log_info("msg=\"a back end was removed\" backend=%s", x->name);
        *at = x->next;
        backend_free(x);
}

static void stop(struct backend *x)
{
        move(x, BACKEND_ENDING);
        kept_child_stop(x->agent);
}

void backends_tick(struct server *s)
{
        struct backend **at = s->backends ? &s->backends->first : NULL;

        if (!at || turn_full(s->turn)) /* nothing could be recorded */
                return;
        while (*at) {
                struct backend *x = *at;
                struct core_node n;
                bool known = core_agent_known(s->core, x->name) && core_node_get(s->core, x->name, &n) == 0,
                     gone;

                if (known)
                        node_follow(x, &n);
                known = known && core_node_get(s->core, x->name, &n) == 0;
                gone = !x->config && is_empty(x, known ? &n : NULL);
                if (gone && x->state == BACKEND_OFF) {
                        leave(at, known);
                        continue;
                }
                if (x->state == BACKEND_ON && (gone || x->changed))
                        stop(x);
                else if (x->state == BACKEND_OFF && x->due && !gone)
                        join(x);
                at = &x->next;
        }
}

/* At once: nothing is matched with a back end that was told to drain. */
void backends_reload(struct server *s)
{
        const struct config_backends *c = &server_settings(s)->backends;
        struct err err = {0};

        if (c->count && ensure(s, &err) != 0)
                log_error("msg=\"the back ends of the settings are not used\" error=\"%s\"",
                          LOG_TEXT(str_of(err.text)));
        if (!s->backends)
                return;
        turn_begin(s->turn);
        settle(s->backends, c);
        backends_tick(s);
        turn_end(s->turn);
}

/* ---- what people see */

struct look {
        const char *name;
        bool offers;
        char *unreachable;
};

static void look_at(void *arg, const struct core_queue_view *q)
{
        struct look *l = arg;

        if (strcmp(q->agent, l->name) != 0 || strcmp(q->queue, l->name) != 0)
                return;
        l->offers = q->offers;
        l->unreachable = q->unreachable ? mem_dupz(q->unreachable) : NULL;
}

static const char *state_word(const struct backend *x, const struct core_node *n, const struct look *l)
{
        if (!x->config)
                return "leaving";
        if (x->state != BACKEND_ON || !n->connected)
                return x->why ? "failed" : "starting";
        if (l->unreachable)
                return "unreachable";
        return n->state == NODE_DRAINING || n->state == NODE_DRAINED ? "draining" : "connected";
}

void backends_write(struct server *s, struct json *j)
{
        json_open(j, '[');
        for (struct backend *x = s->backends ? s->backends->first : NULL; x; x = x->next) {
                struct look l = {.name = x->name};
                struct core_node n = {0};
                bool known = core_node_get(s->core, x->name, &n) == 0;

                core_queues(s->core, look_at, &l);
                json_open(j, '{');
                json_kstrz(j, "name", x->name);
                json_kstrz(j, "server", x->config ? x->config->server : NULL);
                json_kstrz(j, "state", state_word(x, &n, &l));
                json_kstrz(j, "why", x->state == BACKEND_OFF ? x->why : l.unreachable);
                json_kint(j, "jobs", known ? (int64_t)n.attempts : 0);
                json_close(j, '}');
                free(l.unreachable);
        }
        json_close(j, ']');
}
