/* Work at the login node is done by six commands, of each of which one runs at a time: push files, look for
 * files, fetch files back, remove files, write the lease, and sweep up the leftovers of an earlier agent.
 * Files travel as tar archives through the shared connection. */
#include "run/batch/login_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/u64.h"
#include "run/batch/state.h"
#include "run/batch/submit.h"
#include "run/call/answer.h"
#include "run/call/ssh.h"

#define COPY_MS   3600000 /* time limit for copying files of any size */
#define LOOK_MS   60000
#define NAMES_MAX 4000 /* most tasks in one command */
#define FETCH_MAX 64   /* tasks whose files are fetched at once */
#define TRIES     5    /* tries to fetch a task's files */
#define SAID_MAX  300
#define GONE_MAX  (16u << 20) /* bytes of names to be removed; the next agent sweeps up what is left out */
#define REWRITE   "rewrite"

enum slot { PUSH, LOOK, FETCH, REMOVE, LEASE, SWEEP, SLOTS_COUNT };

struct login_node {
        struct remote_files base;
        struct batch *b;
        char *host, *config, *socket; /* config NULL: none */
        struct ssh ssh;
        char *here, *there; /* folders: the agent's here, and the queue's copy there */
        char *queue;        /* path of the queue's folder beneath both */
        struct command *commands[SLOTS_COUNT];
        struct buf push, rewrite; /* names beneath `here`, each ended by NUL (push) or a newline (rewrite) */
        struct buf orders;        /* paths of pushed order files, removed here once they are there */
        struct buf remove;        /* names, each ended by a newline */
        struct buf lease;         /* lease that has not been sent */
        int64_t lease_timeout_ms;
        int64_t looked_ms, looking_ms; /* boot clock: start of the last successful look; of the present one */
        bool swept, pushing_submissions;
        bool fetched_new; /* the last fetch was of tasks that had not failed before */
};

static struct login_node *node_of(const struct batch *b)
{
        return (struct login_node *)(void *)b->remote;
}

/* ---- commands */

/* Runs a script at the login node; with a local script, runs that one with the arguments of ssh as its "$@".
 */
static void remote_run(struct login_node *r, enum slot slot, const char *local, const char *script,
                       const struct args *words, struct str input, int64_t timeout_ms, command_done_fn *done)
{
        ARGS_CLEANUP struct args argv = {0};

        if (local) {
                args_add(&argv, STR("/bin/sh"));
                args_add(&argv, STR("-c"));
                args_add(&argv, str_of(local));
                args_add(&argv, str_of(r->here));
        }
        ssh_words(&r->ssh, script, words, &argv);
        r->commands[slot] = command_run(r->b->loop, &argv, NULL, input, timeout_ms, done, r);
}

static void remote_failed(const struct login_node *r, const char *what, struct str errors)
{
        log_warn("msg=\"files of a login node\" queue=%s what=%s error=\"%s\"", r->b->queue, what,
                 LOG_TEXT(str_head(str_trim(errors), SAID_MAX)));
}

/* Returns the path relative to the agent's folder; empty: it is elsewhere. */
static struct str name_of(const struct login_node *r, const char *path)
{
        return batch_remote_name(r->here, path);
}

static void map_word(const struct login_node *r, const char *word, struct buf *out)
{
        size_t n = strlen(r->here);
        const char *at;

        for (; (at = strstr(word, r->here)); word = at + n) {
                buf_str(out, str_make(word, (size_t)(at - word)));
                buf_addz(out, at[n] == '/' || at[n] == '\0' ? r->there : r->here);
        }
        buf_addz(out, word);
}

static void node_wrap(const struct remote_files *files, const struct args *env, struct batch_call *call)
{
        const struct login_node *r = (const struct login_node *)(const void *)files;
        ARGS_CLEANUP struct args words = {0};
        struct args argv = {0};

        args_add(&words, STR("drover"));
        args_add(&words, STR("env"));
        for (size_t i = 0; i < env->n; i++) /* leave out variables about the local user and machine */
                if (!str_starts(str_of(env->v[i]), STR("PATH=")) &&
                    !str_starts(str_of(env->v[i]), STR("HOME=")) &&
                    !str_starts(str_of(env->v[i]), STR("USER=")) &&
                    !str_starts(str_of(env->v[i]), STR("LOGNAME=")))
                        args_add(&words, str_of(env->v[i]));
        for (size_t i = 0; i < call->argv.n; i++) {
                BUF_CLEANUP struct buf word = {0};

                map_word(r, call->argv.v[i], &word);
                args_add(&words, buf_view(&word));
        }
        ssh_words(&r->ssh, "exec \"$@\"", &words, &argv);
        args_deinit(&call->argv);
        call->argv = argv;
}

/* ---- files that go there */

static void add_name(struct buf *list, struct str name, char end)
{
        if (!name.n)
                return;
        buf_str(list, name);
        buf_char(list, end);
}

static void remove_orders(struct login_node *r)
{
        struct str rest = buf_view(&r->orders), path;

        while (rest.n && str_cut(&rest, '\n', &path)) {
                MEM_CLEANUP char *z = str_dupz(path);

                unlink(z);
        }
        buf_reset(&r->orders);
}

static void pushed(void *arg, int status, struct str out, struct str errors)
{
        struct login_node *r = arg;
        struct str key;
        void *value;

        (void)out;
        r->commands[PUSH] = NULL;
        if (status != 0)
                remote_failed(r, "push", errors);
        else
                remove_orders(r);
        for (size_t at = 0; map_next(r->b->table.submissions, &at, &key, &value);) {
                struct submission *s = value;

                s->there = s->there || (s->pushing && status == 0);
                s->pushing = false;
        }
        batch_submit_later(r->b);
}

/* Copies files to the login node. A missing file must make the archive fail. Names of files whose text is to
 * be rewritten travel as a file. */
static void remote_push(struct login_node *r)
{
        static const char local[] =
                "here=$0; { tar -C \"$here\" --null -T - -cf - || kill -TERM $$; } | \"$@\"";
        static const char script[] =
                "umask 077; mkdir -p \"$1/jobs\" \"$1/$4\" && cd \"$1\" && tar -xmopf - && "
                "{ [ ! -s \"$4/" REWRITE
                "\" ] || while read -r f; do sed \"s#$2#$3#g\" \"$f\" >\"$f.new\" && "
                "cat \"$f.new\" >\"$f\" && rm -f \"$f.new\" || exit 1; done <\"$4/" REWRITE "\"; }";
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf names = {0};
        struct err err = {""};

        if (r->commands[PUSH] || !r->push.n)
                return;
        if (fs_write(r->b->fd, REWRITE, buf_view(&r->rewrite), 0600, false, &err) < 0) {
                remote_failed(r, "push", str_of(err.text));
                return;
        }
        buf_printf(&names, "%s/" REWRITE, r->queue);
        buf_char(&names, '\0');
        buf_str(&names, buf_view(&r->push));
        args_add(&words, STR("drover"));
        args_add(&words, str_of(r->there));
        args_add(&words, str_of(r->here));
        args_add(&words, str_of(r->there));
        args_add(&words, str_of(r->queue));
        remote_run(r, PUSH, local, script, &words, buf_view(&names), COPY_MS, pushed);
        buf_reset(&r->push);
        buf_reset(&r->rewrite);
}

static void add_submission(struct login_node *r, struct submission *s)
{
        BUF_CLEANUP struct buf name = {0};

        buf_printf(&name, "%s/%s.sh", r->queue, s->name);
        add_name(&r->push, buf_view(&name), '\0');
        add_name(&r->rewrite, buf_view(&name), '\n');
        for (unsigned i = 0; i * BATCH_LIST_PART < s->count; i++) {
                buf_reset(&name);
                buf_printf(&name, "%s/%s.list.%u", r->queue, s->name, i);
                add_name(&r->push, buf_view(&name), '\0');
                add_name(&r->rewrite, buf_view(&name), '\n');
        }
        for (const struct task *t = r->b->table.all; t; t = t->next) {
                if (t->s != s)
                        continue;
                add_name(&r->push, name_of(r, t->box), '\0');
                buf_reset(&name);
                buf_printf(&name, STR_FMT "/" BATCH_STEP ".%u.sh", STR_ARG(name_of(r, t->box)), t->id.step);
                add_name(&r->rewrite, buf_view(&name), '\n');
        }
        s->pushing = true;
}

static bool node_has(struct batch *b, struct submission *s)
{
        struct login_node *r = node_of(b);

        if (s->there)
                return true;
        if (!s->pushing && !r->commands[PUSH])
                add_submission(r, s);
        return false;
}

static void node_order(struct batch *b, const char *path)
{
        struct login_node *r = node_of(b);

        if (batch_remote_add_order(&r->orders, path))
                add_name(&r->push, name_of(r, path), '\0');
}

/* ---- the lease */

static void leased(void *arg, int status, struct str out, struct str errors)
{
        struct login_node *r = arg;

        (void)out;
        r->commands[LEASE] = NULL;
        if (status != 0)
                remote_failed(r, "lease", errors);
}

static void tell_lease(struct login_node *r)
{
        static const char script[] =
                "umask 077; mkdir -p \"$1\" && cd \"$1\" && cat >lease.new && mv -f lease.new lease";
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf folder = {0};

        if (r->commands[LEASE] || !r->lease.n)
                return;
        buf_printf(&folder, "%s/%s", r->there, r->queue);
        args_add(&words, STR("drover"));
        args_add(&words, buf_view(&folder));
        remote_run(r, LEASE, NULL, script, &words, buf_view(&r->lease), r->lease_timeout_ms, leased);
        buf_reset(&r->lease);
}

/* Sends the lease. A lease that would have to wait is dropped: it would be outdated, and the next one
 * follows soon. */
static void node_lease(struct batch *b, struct str text, int64_t timeout_ms)
{
        struct login_node *r = node_of(b);

        if (r->commands[LEASE])
                return;
        buf_reset(&r->lease);
        buf_str(&r->lease, text);
        r->lease_timeout_ms = timeout_ms;
        tell_lease(r);
}

/* ---- looking for files there */

static bool is_looked_for(const struct task *t)
{
        return !t->ended_there && (t->state == TASK_IN || (t->state == TASK_NAMED && t->s->unsure));
}

static void step_name(const struct login_node *r, const struct task *t, const char *end, struct buf *out)
{
        buf_printf(out, STR_FMT "/" BATCH_STEP ".%u.%s", STR_ARG(name_of(r, t->box)), t->id.step, end);
}

/* Handles a line "1700000000 NAME". */
static void take_seen(struct login_node *r, struct map *asked, struct str line)
{
        static const char *const ends[] = {"began", "again", "done"};
        struct str time;
        uint64_t at;
        struct task *t;

        if (!str_cut(&line, ' ', &time) || str_to_u64(time, &at) != 0 || at > INT32_MAX * 2ull)
                return;
        t = map_get(asked, line);
        for (size_t i = 0; t && i < 3; i++) {
                BUF_CLEANUP struct buf name = {0};

                step_name(r, t, ends[i], &name);
                if (!str_eq(buf_view(&name), line))
                        continue;
                if (i < 2)
                        batch_remote_mark(t, ends[i], (int64_t)at);
                else
                        t->ended_there = true;
        }
}

static void looked(void *arg, int status, struct str out, struct str errors)
{
        struct login_node *r = arg;
        struct map *asked;
        struct str line;

        r->commands[LOOK] = NULL;
        if (status != 0) {
                remote_failed(r, "look", errors);
                return;
        }
        asked = map_new();
        for (struct task *t = r->b->table.all; t; t = t->next) {
                static const char *const ends[] = {"began", "again", "done"};

                for (size_t i = 0; i < 3 && is_looked_for(t); i++) {
                        BUF_CLEANUP struct buf name = {0};

                        step_name(r, t, ends[i], &name);
                        map_put(asked, buf_view(&name), t);
                }
        }
        while (out.n && str_cut(&out, '\n', &line))
                take_seen(r, asked, line);
        map_free(asked);
        r->looked_ms = r->looking_ms;
}

static void look(struct login_node *r)
{
        static const char script[] =
                "cd \"$1\" 2>/dev/null || exit 0; xargs stat -c '%Y %n' 2>/dev/null; exit 0";
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf names = {0};
        unsigned count = 0;
        int64_t now = clock_boot_ms();

        if (r->commands[LOOK] || now - r->looking_ms < (int64_t)r->b->poll_ms)
                return;
        for (const struct task *t = r->b->table.all; t && count < NAMES_MAX; t = t->next) {
                if (!is_looked_for(t))
                        continue;
                count++;
                if (!t->begun) {
                        step_name(r, t, "began", &names);
                        buf_char(&names, '\n');
                }
                step_name(r, t, "again", &names);
                buf_char(&names, '\n');
                step_name(r, t, "done", &names);
                buf_char(&names, '\n');
        }
        r->looking_ms = now;
        if (!count)
                return;
        args_add(&words, STR("drover"));
        args_add(&words, str_of(r->there));
        remote_run(r, LOOK, NULL, script, &words, buf_view(&names), LOOK_MS, looked);
}

/* A task that ended without a report has outputs and a log as well, which are fetched once. */
static bool node_may_tell(const struct batch *b, struct task *t)
{
        if (t->fetched)
                return false;
        t->fetch_wanted = t->fetch_wanted || node_of(b)->looked_ms > t->gone_ms + b->poll_ms;
        return true;
}

/* ---- files that come back */

static void fetched(void *arg, int status, struct str out, struct str errors)
{
        struct login_node *r = arg;
        BUF_CLEANUP struct buf text = {0};

        (void)out;
        r->commands[FETCH] = NULL;
        if (status != 0) {
                remote_failed(r, "fetch", errors);
                buf_addz(&text, "its files could not be brought from the login node: ");
                answer_clean(&text, str_head(str_trim(errors), SAID_MAX));
        }
        for (struct task *t = r->b->table.all, *next; t; t = next) {
                next = t->next;
                if (!t->fetching)
                        continue;
                t->fetching = false;
                if (status == 0)
                        batch_remote_arrived(t);
                else if (++t->fetches >= TRIES)
                        batch_over(r->b, t, &(struct run_event){.state = RUN_LOST}, buf_z(&text));
        }
}

/* Returns whether the task's files are to be fetched, for the first time or again. */
static bool is_due(const struct task *t, bool again)
{
        return (t->ended_there || t->fetch_wanted) && !t->fetched && t->state != TASK_OVER &&
               (t->fetches > 0) == again;
}

static bool any_is_due(const struct login_node *r, bool again)
{
        const struct task *t = r->b->table.all;

        while (t && !is_due(t, again))
                t = t->next;
        return t;
}

/* Fetches files. Only paths beneath the requested sandboxes, and the requested logs, are unpacked; owners
 * and permissions beyond the umask are dropped. A fetch fails for all its tasks, even if only one of them has
 * what tar cannot read: those that have failed are fetched one by one, in turn with the others. */
static void fetch(struct login_node *r)
{
        static const char script[] = "cd \"$1\" && shift || exit; for f; do shift; [ ! -e \"$f\" ] || set -- "
                                     "\"$@\" \"$f\"; done; [ $# -eq 0 ] || exec tar -cf - -- \"$@\"";
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf local = {0}, names = {0};
        unsigned count = 0;

        if (r->commands[FETCH])
                return;
        bool again = any_is_due(r, true) && (r->fetched_new || !any_is_due(r, false));
        r->fetched_new = !again;
        args_add(&words, STR("drover"));
        args_add(&words, str_of(r->there));
        for (struct task *t = r->b->table.all; t && count < (again ? 1 : FETCH_MAX); t = t->next) {
                BUF_CLEANUP struct buf log = {0};

                if (!is_due(t, again))
                        continue;
                t->fetching = true;
                count++;
                args_add(&words, name_of(r, t->box));
                buf_char(&names, ' ');
                command_quote(&names, name_of(r, t->box));
                batch_log_path(r->b, t, &log);
                args_add(&words, name_of(r, buf_z(&log)));
                buf_char(&names, ' ');
                command_quote(&names, name_of(r, buf_z(&log)));
        }
        if (!count)
                return;
        batch_remote_unpack(r->b, "{ \"$@\" || kill -TERM $$; }", "in", buf_view(&names), &local);
        remote_run(r, FETCH, buf_z(&local), script, &words, STR(""), COPY_MS, fetched);
}

/* ---- removing what is not needed any more */

static void removed(void *arg, int status, struct str out, struct str errors)
{
        struct login_node *r = arg;

        (void)out;
        r->commands[REMOVE] = NULL;
        if (status != 0)
                remote_failed(r, "remove", errors); /* the next agent sweeps it up */
}

static void remove_files(struct login_node *r)
{
        static const char script[] = "cd \"$1\" 2>/dev/null || exit 0; xargs rm -rf --";
        ARGS_CLEANUP struct args words = {0};

        if (r->commands[REMOVE] || !r->remove.n)
                return;
        args_add(&words, STR("drover"));
        args_add(&words, str_of(r->there));
        remote_run(r, REMOVE, NULL, script, &words, buf_view(&r->remove), COPY_MS, removed);
        buf_reset(&r->remove);
}

static void node_forget_task(struct batch *b, const struct task *t)
{
        struct login_node *r = node_of(b);
        BUF_CLEANUP struct buf log = {0};

        if (!t->s || !name_of(r, t->box).n || r->remove.n > GONE_MAX)
                return;
        add_name(&r->remove, name_of(r, t->box), '\n');
        batch_log_path(b, t, &log);
        add_name(&r->remove, name_of(r, buf_z(&log)), '\n');
}

static void node_forget_submission(struct batch *b, const struct submission *s)
{
        struct login_node *r = node_of(b);

        buf_printf(&r->remove, "%s/%s.sh\n", r->queue, s->name);
        for (unsigned i = 0; i * BATCH_LIST_PART < s->count; i++)
                buf_printf(&r->remove, "%s/%s.list.%u\n", r->queue, s->name, i);
}

static void swept(void *arg, int status, struct str out, struct str errors)
{
        struct login_node *r = arg;

        (void)out;
        r->commands[SWEEP] = NULL;
        if (status != 0)
                remote_failed(r, "sweep", errors);
}

/* Removes, once and before the first push, sandboxes of an earlier agent's tasks that this agent does not
 * know. */
static void sweep(struct login_node *r)
{
        static const char script[] =
                "cd \"$1/jobs\" 2>/dev/null || exit 0; known=$(cat); for f in *; do case \"\n$known\n\" in "
                "*\"\n$f\n\"*) ;; *) rm -rf -- \"$f\" ;; esac; done";
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf names = {0};

        r->swept = true;
        for (const struct task *t = r->b->table.all; t; t = t->next)
                add_name(&names, str_skip(name_of(r, t->box), sizeof("jobs/") - 1), '\n');
        buf_char(&names, '\n');
        args_add(&words, STR("drover"));
        args_add(&words, str_of(r->there));
        remote_run(r, SWEEP, NULL, script, &words, buf_view(&names), COPY_MS, swept);
}

/* ---- */

static void node_look(struct batch *b)
{
        struct login_node *r = node_of(b);

        if (!r->swept && b->listed)
                sweep(r);
        if (r->commands[SWEEP])
                return;
        remote_push(r);
        look(r);
        fetch(r);
        remove_files(r);
}

static void node_free(struct remote_files *files)
{
        struct login_node *r = (struct login_node *)(void *)files;
        ARGS_CLEANUP struct args words = {0};

        for (size_t i = 0; i < SLOTS_COUNT; i++)
                command_cancel(r->commands[i]);
        ssh_end_words(&r->ssh, &words);
        command_now(&words, NULL, STR(""), 5000);
        buf_deinit(&r->push);
        buf_deinit(&r->rewrite);
        buf_deinit(&r->orders);
        buf_deinit(&r->remove);
        buf_deinit(&r->lease);
        free(r->host);
        free(r->config);
        free(r->socket);
        free(r->here);
        free(r->there);
        free(r->queue);
        free(r);
}

static const struct remote_kind node_kind = {
        .free = node_free,
        .wrap = node_wrap,
        .look = node_look,
        .has = node_has,
        .order = node_order,
        .lease = node_lease,
        .forget_task = node_forget_task,
        .forget_submission = node_forget_submission,
        .may_tell = node_may_tell,
};

int batch_login_node_open(struct batch *b, const struct runner_config *c, struct remote_files **ret,
                          struct err *err)
{
        const char *host = batch_setting(&b->settings, "ssh"),
                   *folder = batch_setting(&b->settings, "ssh_folder"),
                   *config = batch_setting(&b->settings, "ssh_config");
        struct buf text = {0};
        struct login_node *r;
        int result = 0;

        *ret = NULL;
        if (!host)
                return folder || config ? err_set(err, -EINVAL, "ssh_folder and ssh_config go with ssh") : 0;
        if (b->user_commands)
                return err_set(err, -EINVAL,
                               "ssh is for an agent that runs the jobs of one user: `users` is set");
        if (b->system->service)
                return err_set(err, -EINVAL, "ssh is for the system's commands, and rest is set");
        if (!folder || !batch_remote_is_folder(folder))
                return err_set(
                        err, -EINVAL,
                        "ssh_folder is a folder of the login node that the batch system's nodes see: a whole "
                        "path of letters, digits and -_.+/@:");
        if (!batch_remote_is_folder(c->dir))
                return err_set(err, -EINVAL,
                               "with ssh the agent's folder %s must have letters, digits and -_.+/@: only",
                               c->dir);
        r = mem_new(struct login_node);
        r->base.kind = &node_kind;
        r->b = b;
        r->host = mem_dupz(host);
        r->config = config ? mem_dupz(config) : NULL;
        r->here = mem_dupz(c->dir);
        buf_printf(&text, "%s/%s", folder, b->prefix);
        while (text.n && text.p[text.n - 1] == '-')
                text.n--;
        r->there = buf_take(&text);
        buf_printf(&text, "batch.%s", c->queue);
        r->queue = buf_take(&text);
        buf_printf(&text, "%s/ssh", b->dir);
        r->socket = buf_take(&text);
        r->ssh = (struct ssh){r->host, r->config, r->socket};
        result = ssh_check(&r->ssh, err);
        *ret = &r->base; /* freed by the function that opens the queue */
        return result;
}
