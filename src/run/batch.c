/* The runner's verbs over the table of tasks. What is told goes out on the next turn of the loop. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "run/batch_private.h"
#include "run/batch_runner.h"

#define TICK_MS     250
#define COMMAND_MS  60000
#define WORDS_SHOWN 400

const char *batch_setting(const struct batch_settings *s, const char *name)
{
        for (size_t i = 0; i < s->n; i++)
                if (!strcmp(s->v[i].name, name))
                        return s->v[i].value;
        return NULL;
}

const char *batch_word(const struct run_spec *spec, const char *const *names, const struct batch_settings *s,
                       const char *setting)
{
        for (; *names; names++)
                for (size_t i = 0; i < spec->word_count; i++)
                        if (str_ieqz(str_of(spec->words[i].name), *names) && *spec->words[i].value)
                                return spec->words[i].value;
        return setting ? batch_setting(s, setting) : NULL;
}

void batch_clean(struct buf *out, struct str words)
{
        for (size_t i = 0; i < words.n && i < WORDS_SHOWN; i++)
                buf_char(out, (unsigned char)words.p[i] < ' ' ? ' ' : words.p[i]);
}

void batch_path(const struct batch *b, struct buf *out, const char *name, const char *end)
{
        buf_printf(out, "%s/%s%s", b->dir, name, end);
}

/* ---- telling */

static void tell(void *arg)
{
        struct batch *b = arg;
        struct run_event *events = b->told;
        size_t count = b->told_count;
        if (count == 0)
                return;
        b->told = NULL;
        b->told_count = b->told_cap = 0;
        b->events(b->arg, events, count);
        for (size_t i = 0; i < count; i++)
                free((char *)(uintptr_t)events[i].text);
        free(events);
}

void batch_gather(struct batch *b, struct run_event e)
{
        MEM_GROW(b->told, b->told_cap, b->told_count + 1);
        if (e.text)
                e.text = mem_dupz(e.text);
        b->told[b->told_count++] = e;
        timer_start(b->later, 0);
}

void batch_tell(struct batch *b, const struct task *t, bool known)
{
        struct run_event e = {.state = t->begun ? RUN_RUNNING : RUN_WAITING};
        if (t->state == TASK_OVER) {
                e = t->result;
                e.text = t->text;
        }
        e.id = t->id;
        e.known = known;
        e.slot = UINT32_MAX;
        if (t->state != TASK_OVER)
                e.started_ms = t->started_ms;
        if (t->s && t->s->native)
                e.native = (int64_t)strtoull(t->s->native, NULL, 10);
        batch_gather(b, e);
}

void batch_tell_runner(struct batch *b, enum run_state state, const char *text)
{
        batch_gather(b, (struct run_event){.state = state, .text = text});
}

void batch_over(struct batch *b, struct task *t, const struct run_event *result, const char *text)
{
        if (t->state == TASK_OVER)
                return;
        if (t->state == TASK_FRESH)
                b->fresh--;
        t->state = TASK_OVER;
        b->ended = true;
        t->result = *result;
        t->text = text ? mem_dupz(text) : NULL;
        if (b->listed)
                batch_tell(b, t, false);
}

/* ---- the table */

struct task *batch_task_new(struct batch *b, struct run_id id, const char *box)
{
        struct task *t = mem_new(struct task);
        t->id = id;
        t->box = mem_dupz(box);
        t->link = b->last;
        *b->last = t;
        b->last = &t->next;
        map_put(b->tasks, run_key(&id), t);
        return t;
}

struct submission *batch_submission_new(struct batch *b, const char *name)
{
        struct submission *s = mem_new(struct submission);
        s->name = mem_dupz(name);
        map_put(b->submissions, str_of(name), s);
        return s;
}

static void native_key(const struct batch *b, const struct task *t, struct buf *out)
{
        if (t->s->count > 1)
                b->system->native_of(t->s->native, t->index, out);
        else
                buf_addz(out, t->s->native);
}

void batch_native_known(struct batch *b, struct submission *s, struct str native)
{
        if (s->native || !native.n)
                return;
        s->native = str_dupz(native);
        s->unsure = false;
        for (struct task *t = b->all; t; t = t->next) {
                BUF_CLEANUP struct buf key = {0};
                if (t->s != s || t->state == TASK_OVER)
                        continue;
                native_key(b, t, &key);
                map_put(b->natives, buf_view(&key), t);
                t->state = TASK_IN;
                t->in_ms = clock_boot_ms();
                if (t->killing)
                        batch_act(b, t, BATCH_END);
                else if (t->held)
                        batch_act(b, t, BATCH_HOLD);
        }
}

void batch_submission_unref(struct batch *b, struct submission *s)
{
        static const char *const ends[] = {".sh", ".list"};
        if (!s || --s->left > 0 || s->sending)
                return;
        for (struct submission **at = &b->to_send; *at; at = &(*at)->next)
                if (*at == s)
                        return; /* goes when it would be sent */
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
                BUF_CLEANUP struct buf name = {0};
                buf_printf(&name, "%s%s", s->name, ends[i]);
                unlinkat(b->fd, buf_z(&name), 0);
        }
        map_take(b->submissions, str_of(s->name));
        free(s->name);
        free(s->native);
        free(s->head);
        free(s);
}

void batch_log_name(const struct batch *b, const struct task *t, struct buf *out)
{
        buf_printf(out, "%s.%u.log", t->s->name, t->index + (t->s->count > 1 ? b->system->index_first : 0));
}

void batch_task_free(struct batch *b, struct task *t)
{
        if (t->s && t->s->native) {
                BUF_CLEANUP struct buf key = {0};
                native_key(b, t, &key);
                if (map_get(b->natives, buf_view(&key)) == t) /* a system that forgot gives numbers twice */
                        map_take(b->natives, buf_view(&key));
        }
        if (t->s) {
                BUF_CLEANUP struct buf log = {0};
                batch_log_name(b, t, &log);
                unlinkat(b->fd, buf_z(&log), 0);
        }
        map_take(b->tasks, run_key(&t->id));
        if (b->cursor == t)
                b->cursor = t->next;
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        if (b->last == &t->next)
                b->last = t->link;
        if (t->state == TASK_FRESH)
                b->fresh--;
        batch_submission_unref(b, t->s);
        free(t->box);
        free(t->head);
        free(t->text);
        free(t);
}

/* ---- commands */

void batch_run(struct batch *b, int slot, struct batch_call *call, command_done_fn *done, void *arg)
{
        b->commands[slot] =
                command_run(b->loop, &call->argv, b->env.v, buf_view(&call->input), COMMAND_MS, done, arg);
        args_deinit(&call->argv);
        buf_deinit(&call->input);
}

void batch_act(struct batch *b, struct task *t, enum batch_verb verb)
{
        struct buf *out = &b->acts[verb];
        if (!batch_has(b, verb) || t->state != TASK_IN || (verb == BATCH_END && t->acted_ms))
                return;
        if (verb == BATCH_END)
                t->acted_ms = clock_boot_ms();
        if (out->n)
                buf_char(out, ' ');
        native_key(b, t, out);
}

/* ---- the verbs */

static struct batch *self(struct runner *r)
{
        return (struct batch *)(void *)r;
}

static struct task *find(struct batch *b, struct run_id id)
{
        return map_get(b->tasks, run_key(&id));
}

static void fail(struct batch *b, struct task *t, const char *what, int error, const char *text)
{
        batch_over(b, t, &(struct run_event){.state = RUN_FAILED, .what = what, .error = error}, text);
}

void batch_submit(struct runner *r, const struct run_spec *spec)
{
        struct batch *b = self(r);
        if (find(b, spec->id))
                return;
        struct task *t = batch_task_new(b, spec->id, spec->sandbox);
        BUF_CLEANUP struct buf head = {0}, script = {0}, path = {0}, lease = {0};
        struct batch_guard guard = {.traps = b->system->traps, .every_s = b->watch_s};
        struct err err = {""};
        t->state = TASK_FRESH;
        b->fresh++;
        if (b->system->resources(&b->settings, spec, &head, &err) < 0) {
                fail(b, t, "request", EINVAL, err.text);
                return;
        }
        batch_path(b, &lease, "lease", "");
        guard.lease = buf_z(&lease);
        batch_script(spec, buf_z(&head), &guard, &script);
        buf_printf(&path, "%s/" BATCH_STEP ".%u.sh", spec->sandbox, spec->id.step);
        int result = fs_write(AT_FDCWD, buf_z(&path), buf_view(&script), 0700, false, &err);
        if (result < 0) {
                fail(b, t, "sandbox", -result, err.text);
                return;
        }
        t->head = buf_take(&head);
        batch_submit_later(b);
}

/* The system is told, if it has a word for it; the program is, unless that is enough. */
static void stop(struct batch *b, struct task *t, bool on)
{
        enum batch_verb verb = on ? BATCH_STOP : BATCH_CONTINUE;
        t->stopped = on;
        if (batch_has(b, verb))
                batch_act(b, t, verb);
        else
                batch_order(b, t, on ? SIGSTOP : SIGCONT);
}

void batch_kill(struct runner *r, struct run_id id, uint64_t grace_ms)
{
        struct batch *b = self(r);
        struct task *t = find(b, id);
        (void)grace_ms; /* the script's and the system's own */
        if (!t || t->state == TASK_OVER)
                return;
        t->killing = true;
        if (t->state == TASK_FRESH) {
                batch_over(b, t,
                           &(struct run_event){
                                   .state = RUN_ENDED, .why = RUN_KILLED, .signaled = true, .exit_code = 15},
                           NULL);
                return;
        }
        batch_journal_kill(b, t);
        if (t->stopped) /* its script may be, too */
                stop(b, t, false);
        batch_act(b, t, BATCH_END);
}

static void hold(struct batch *b, struct task *t, bool on)
{
        if (t->begun || t->held == on)
                return;
        t->held = on;
        batch_act(b, t, on ? BATCH_HOLD : BATCH_RELEASE);
        if (!on)
                batch_submit_later(b);
}

void batch_suspend(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find(b, id);
        if (t && t->begun)
                stop(b, t, true);
        else if (t)
                hold(b, t, true);
}

void batch_resume(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find(b, id);
        if (t && t->begun)
                stop(b, t, false);
        if (t)
                hold(b, t, false);
}

void batch_hold(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find(b, id);
        if (t)
                hold(b, t, true);
}

void batch_release(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find(b, id);
        if (t)
                hold(b, t, false);
}

void batch_signal(struct runner *r, struct run_id id, int signal)
{
        struct batch *b = self(r);
        struct task *t = find(b, id);
        if (t && (signal == SIGSTOP || signal == SIGCONT))
                stop(b, t, signal == SIGSTOP);
        else if (t)
                batch_order(b, t, signal);
}

void batch_status(struct runner *r, const struct run_id *ids, size_t count)
{
        struct batch *b = self(r);
        for (size_t i = 0; i < count; i++) {
                struct task *t = find(b, ids[i]);
                if (t)
                        batch_tell(b, t, true);
        }
}

void batch_forget(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find(b, id);
        if (!t)
                return;
        batch_act(b, t, BATCH_END); /* of one that is not over: nobody wants it */
        batch_journal_gone(b, t);
        batch_task_free(b, t);
}

/* Scripts count from when the serial changes; so clocks of other machines do not matter. */
void batch_lease(struct runner *r, int64_t until_boot_ms)
{
        struct batch *b = self(r);
        int64_t left = until_boot_ms - clock_boot_ms();
        BUF_CLEANUP struct buf text = {0};
        struct err err = {""};
        if (until_boot_ms == 0 || left <= 0)
                return;
        batch_script_lease(clock_wall_ms(), ++b->lease_serial, left, b->watch_s, &text);
        if (fs_write(b->fd, "lease", buf_view(&text), 0644, false, &err) < 0)
                log_error("msg=\"cannot renew the lease of batch jobs\" error=%s",
                          LOG_TEXT(str_of(err.text)));
}

int batch_where(struct runner *r, struct run_id id, struct run_where *ret)
{
        struct batch *b = self(r);
        const struct task *t = find(b, id);
        BUF_CLEANUP struct buf native = {0};
        if (!t)
                return -ENOENT;
        *ret = (struct run_where){.word = t->state == TASK_OVER  ? "over"
                                          : t->stopped           ? "suspended"
                                          : t->held              ? "held"
                                          : t->begun             ? "running"
                                          : t->s && t->s->native ? "waiting"
                                                                 : "submitting"};
        if (t->s && t->s->native) {
                native_key(b, t, &native);
                snprintf(ret->native, sizeof(ret->native), "%s", buf_z(&native));
        }
        return 0;
}

void batch_capacity(struct runner *r, struct run_capacity *ret)
{
        *ret = self(r)->capacity;
}

static void acted(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;
        (void)out;
        b->commands[SLOT_ACT] = NULL;
        if (status != 0 && errors.n)
                log_warn("msg=\"a command of the batch system failed\" queue=%s error=%s", b->dir,
                         LOG_TEXT(str_head(errors, errors.n > 300 ? 300 : errors.n)));
}

/* At most 500 of a verb's natives, in one command. */
static void next_act(struct batch *b, enum batch_verb verb, struct batch_call *call)
{
        struct buf *all = &b->acts[verb];
        struct str rest = buf_view(all), one, natives;
        for (unsigned n = 0; n < 500 && rest.n && str_cut(&rest, ' ', &one);)
                n++;
        natives = str_head(buf_view(all), all->n - rest.n);
        b->system->act(call, verb, str_trim(natives));
        buf_consume(all, natives.n);
}

/* One command for all natives of a verb; the next verb with the next tick. */
static void run_acts(struct batch *b)
{
        for (int verb = 0; verb < BATCH_VERBS_COUNT && !b->commands[SLOT_ACT]; verb++) {
                struct batch_call call = {.settings = &b->settings};
                if (b->acts[verb].n == 0)
                        continue;
                next_act(b, (enum batch_verb)verb, &call);
                batch_run(b, SLOT_ACT, &call, acted, b);
        }
}

void batch_flush(struct runner *r)
{
        struct batch *b = self(r);
        batch_journal_flush(b, false);
        run_acts(b);
}

static void on_tick(void *arg)
{
        struct batch *b = arg;
        run_acts(b);
        batch_poll(b);
        batch_journal_flush(b, false);
        timer_start(b->tick, TICK_MS);
}

/* ---- open and close */

static void add_variable(struct batch *b, const char *name, const char *value)
{
        BUF_CLEANUP struct buf one = {0};
        buf_printf(&one, "%s=%s", name, value ? value : "");
        if (value)
                args_add(&b->env, buf_view(&one));
}

/* A small environment: what is submitted shall not depend on who started the agent. */
static void environment(struct batch *b)
{
        static const char *const kept[] = {"HOME", "USER", "LOGNAME", "TZ"};
        const char *path = getenv("PATH");
        add_variable(b, "PATH", path ? path : "/usr/local/bin:/usr/bin:/bin");
        add_variable(b, "LC_ALL", "C");
        for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
                add_variable(b, kept[i], getenv(kept[i]));
        for (const struct batch_variable *v = b->system->variables; v && v->name; v++) {
                const char *value = v->setting ? batch_setting(&b->settings, v->setting) : NULL;
                add_variable(b, v->name, value ? value : getenv(v->name));
        }
}

static bool is_in(const char *const *list, const char *name)
{
        while (*list && strcmp(*list, name) != 0)
                list++;
        return *list;
}

static int check_settings(const struct batch_system *s, const struct runner_config *c, struct err *err)
{
        static const char *const ours[] = {"poll", "watch", NULL};
        struct batch_settings settings = {c->settings, c->setting_count};
        for (size_t i = 0; i < c->setting_count; i++) {
                const char *name = c->settings[i].name;
                if (!is_in(ours, name) && !is_in(s->settings, name) &&
                    !(s->set_free && str_starts(str_of(name), str_of(s->set_free))))
                        return err_set(err, -EINVAL, "%s has no setting '%s'", s->name, name);
                uint64_t seconds;
                if (is_in(ours, name) && (str_to_u64(str_of(c->settings[i].value), &seconds) != 0 ||
                                          seconds < 1 || seconds > 3600))
                        return err_set(err, -EINVAL, "%s is a number of seconds, 1 to 3600", name);
        }
        return s->check ? s->check(&settings, err) : 0;
}

/* A setting that was checked. */
static unsigned number_of(const struct batch *b, const char *name, unsigned otherwise)
{
        const char *value = batch_setting(&b->settings, name);
        uint64_t n = otherwise;
        if (value)
                str_to_u64(str_of(value), &n);
        return (unsigned)n;
}

static int open_folder(struct batch *b, const struct runner_config *c, struct err *err)
{
        BUF_CLEANUP struct buf path = {0};
        buf_printf(&path, "%s/batch.%s", c->dir, c->queue);
        if (strchr(c->dir, '\n'))
                return err_set(err, -EINVAL, "the agent's folder has a line's end in its name");
        int r = fs_mkdirs(buf_z(&path), 0755);
        b->dir = buf_take(&path);
        b->fd = r < 0 ? -1 : open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return b->fd < 0 ? err_set(err, -errno, "cannot use %s: %s", b->dir, strerror(errno)) : 0;
}

int batch_open(const struct runner_kind *kind, const struct batch_system *system,
               const struct runner_config *c, struct runner **ret, struct err *err)
{
        int r = check_settings(system, c, err);
        if (r < 0)
                return r;
        struct batch *b = mem_new(struct batch);
        const struct passwd *pw = getpwuid(geteuid());
        struct buf text = {0};
        b->base.kind = kind;
        b->system = system;
        b->settings = (struct batch_settings){c->settings, c->setting_count};
        b->loop = c->loop;
        b->events = c->events;
        b->arg = c->arg;
        b->fd = b->journal = -1;
        b->array_max = number_of(b, "array_max", system->array_max);
        b->verbs = system->verbs_of ? system->verbs_of(&b->settings) : system->verbs;
        b->poll_ms = number_of(b, "poll", 2) * 1000;
        b->watch_s = number_of(b, "watch", 5);
        b->last = &b->all;
        b->to_send_last = &b->to_send;
        b->questions_last = &b->questions;
        b->tasks = map_new();
        b->natives = map_new();
        b->submissions = map_new();
        b->name_serial = (uint64_t)clock_wall_ms() << 8;
        if (system->short_names)
                buf_printf(&text, "d%.4s", c->instance);
        else
                buf_printf(&text, "drover-%.8s-", c->instance);
        b->prefix = buf_take(&text);
        b->user = mem_dupz(pw ? pw->pw_name : "root");
        environment(b);
        b->tick = timer_new(b->loop, on_tick, b);
        b->later = timer_new(b->loop, tell, b);
        b->gather = timer_new(b->loop, batch_submit_gathered, b);
        r = open_folder(b, c, err);
        if (r == 0)
                r = batch_journal_open(b, err);
        if (r < 0) {
                batch_close(&b->base, false);
                return r;
        }
        timer_start(b->tick, 0);
        *ret = &b->base;
        return 0;
}

static void free_tasks(struct batch *b)
{
        struct str key;
        void *value;
        for (struct task *t = b->all, *next; t; t = next) {
                next = t->next;
                free(t->box);
                free(t->head);
                free(t->text);
                free(t);
        }
        for (size_t at = 0; map_next(b->submissions, &at, &key, &value);) {
                struct submission *s = value;
                free(s->name);
                free(s->native);
                free(s->head);
                free(s);
        }
        for (size_t i = 0; i < b->told_count; i++)
                free((char *)(uintptr_t)b->told[i].text);
        free(b->told);
}

/* At once, for we end. What does not reach the system ends by its lease, which ends now. */
static void end_all(struct batch *b)
{
        fs_write(b->fd, "lease", STR("ended 0\n"), 0644, false, NULL);
        for (struct task *t = b->all; t; t = t->next)
                batch_act(b, t, BATCH_END);
        while (b->acts[BATCH_END].n) {
                struct batch_call call = {.settings = &b->settings};
                next_act(b, BATCH_END, &call);
                command_now(&call.argv, b->env.v, buf_view(&call.input));
                args_deinit(&call.argv);
                buf_deinit(&call.input);
        }
}

void batch_close(struct runner *r, bool kill_all)
{
        struct batch *b = self(r);
        for (size_t i = 0; i < sizeof(b->commands) / sizeof(*b->commands); i++)
                command_cancel(b->commands[i]);
        if (kill_all)
                end_all(b);
        batch_journal_close(b);
        batch_when_close(b);
        free_tasks(b);
        for (size_t i = 0; i < sizeof(b->acts) / sizeof(*b->acts); i++)
                buf_deinit(&b->acts[i]);
        map_free(b->tasks);
        map_free(b->natives);
        map_free(b->submissions);
        timer_free(b->tick);
        timer_free(b->later);
        timer_free(b->gather);
        args_deinit(&b->env);
        if (b->fd >= 0)
                close(b->fd);
        free(b->dir);
        free(b->prefix);
        free(b->explaining);
        free(b->user);
        free(b);
}
