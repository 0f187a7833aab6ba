#include "agent/queue/sensors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/model/agent.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "ev/children.h"
#include "place/offer.h"
#include "place/sensor.h"
#include "run/call/command.h"

#define TEXT_MAX     65536u /* bytes of one output */
#define AGAIN_MS     10000  /* pause before a sensor that is kept running is restarted */
#define FRESH_TIMES  3
#define FIRST_SPREAD 200 /* ms between the first runs of sensors */
#define READ_MS      200

struct sensor {
        struct agent *a;
        const struct config_sensor *config;
        struct timer *timer;
        struct command *command; /* running command of a scheduled sensor */
        struct child *child;     /* process of a sensor that is kept running */
        struct watch *watch;
        int fd;                             /* its output; -1: none */
        struct buf block;                   /* output since the last "-" */
        struct buf said;                    /* attributes */
        int64_t said_wall_ms, said_boot_ms; /* time of the last output; 0: none yet */
        bool failing;
};
struct sensors {
        struct sensor *v;
        size_t n;     /* number of sensors, with the health check, which is the last if there is one */
        char *unwell; /* why the machine is unhealthy; NULL: it is healthy or unknown */
};

static bool is_health(const struct sensor *s)
{
        return s->config == &s->a->config.health;
}

/* ---- output of sensors */

static void take_line(struct sensor *s, struct str text)
{
        size_t bad;

        buf_reset(&s->said);
        sensor_attributes(s->config->name, str_head(text, TEXT_MAX), &s->said, &bad);
        if (bad && !s->failing)
                log_warn("msg=\"a sensor printed lines that are no attributes, or too many\" name=%s "
                         "lines=%zu",
                         s->config->name, bad);
        s->failing = bad > 0;
        s->said_wall_ms = clock_wall_ms();
        s->said_boot_ms = clock_boot_ms();
        agent_turn_later(s->a);
}

static void sensor_failed(struct sensor *s, const char *why)
{
        if (!s->failing)
                log_warn("msg=\"a sensor failed\" name=%s why=\"%s\"", s->config->name,
                         LOG_TEXT(str_of(why)));
        s->failing = true;
        agent_turn_later(s->a);
}

static void say_status(struct buf *out, int status, struct str errors)
{
        struct str first = errors, rest = errors;

        if (status != -1 && WIFSIGNALED(status))
                buf_printf(out, "signal %d", WTERMSIG(status));
        else if (status != -1)
                buf_printf(out, "exit code %d", WEXITSTATUS(status));
        if (rest.n && str_cut(&rest, '\n', &first))
                buf_printf(out, "%s" STR_FMT, out->n ? ": " : "", STR_ARG(str_head(str_trim(first), 200)));
}

/* The word of the health check: well, or the first line that it printed, else how it ended. */
static void judge(struct sensor *s, int status, struct str out, struct str errors)
{
        struct sensors *all = s->a->sensors;
        BUF_CLEANUP struct buf why = {0};
        struct str line = STR_NONE;
        bool was = all->unwell != NULL;

        free(all->unwell);
        all->unwell = NULL;
        if (status != 0) {
                if (out.n)
                        str_cut(&out, '\n', &line);
                line = str_head(str_trim(line), 200);
                if (line.n && status != -1)
                        buf_str(&why, line);
                else
                        say_status(&why, status, errors);
                all->unwell = mem_dupz(buf_z(&why));
        }
        if (was != (all->unwell != NULL))
                log_warn("msg=\"the machine is %s\" why=\"%s\"",
                         all->unwell ? "not well, says its health check" : "well again",
                         LOG_TEXT(str_of(all->unwell ? all->unwell : "")));
        s->said_boot_ms = clock_boot_ms();
        agent_turn_later(s->a);
}

/* ---- on a schedule */

static void start_sensor(void *arg);

static void sensor_done(void *arg, int status, struct str out, struct str errors)
{
        struct sensor *s = arg;
        BUF_CLEANUP struct buf why = {0};

        s->command = NULL;
        if (is_health(s)) {
                judge(s, status, out, errors);
        } else if (status == 0) {
                take_line(s, out);
        } else {
                say_status(&why, status, errors);
                sensor_failed(s, buf_z(&why));
        }
        timer_start(s->timer, (int64_t)s->config->interval_ms);
}

/* ---- kept running */

static void stop_reading(struct sensor *s)
{
        if (s->watch)
                watch_free(s->watch);
        s->watch = NULL;
        if (s->fd >= 0)
                close(s->fd);
        s->fd = -1;
        buf_reset(&s->block);
}

static void ended(void *arg, struct child *child, int status)
{
        struct sensor *s = arg;
        BUF_CLEANUP struct buf why = {0};

        (void)child;
        s->child = NULL;
        stop_reading(s);
        s->said_boot_ms = 0;
        say_status(&why, status, STR("it has ended, and is started again"));
        sensor_failed(s, buf_z(&why));
        timer_start(s->timer, AGAIN_MS);
}

/* Handles the complete sets of lines: those before the last line "-". Later output waits. */
static void take_blocks(struct sensor *s)
{
        struct str text = buf_view(&s->block), last = STR_NONE;
        size_t used = 0, from = 0;

        for (size_t at = 0; at < text.n; at++) {
                struct str line;

                if (text.p[at] != '\n')
                        continue;
                line = str_trim(str_make(text.p + from, at - from));
                if (str_eqz(line, "-")) {
                        last = str_make(text.p + used, from - used);
                        used = at + 1;
                }
                from = at + 1;
        }
        if (used) {
                take_line(s, last);
                memmove(s->block.p, s->block.p + used, s->block.n - used);
                s->block.n -= used;
        }
}

static void readable(void *arg, int what)
{
        struct sensor *s = arg;
        ssize_t n;

        (void)what;
        if (s->block.n >= TEXT_MAX) { /* the sensor never ends a set of lines */
                sensor_failed(s, "it printed 64 KiB without a line of '-'");
                buf_reset(&s->block);
        }
        n = read(s->fd, buf_room(&s->block, 4096), 4096);
        if (n > 0) {
                s->block.n += (size_t)n;
                take_blocks(s);
                watch_set(s->watch, 0); /* limits how often the server is told */
                timer_start(s->timer, READ_MS);
        } else if (n == 0 || errno != EAGAIN) {
                watch_set(s->watch, 0); /* `ended` reports the end */
        }
}

static int spawn(struct sensor *s, struct err *err)
{
        int pipe_fds[2], r;
        struct child_spec spec = {.argv = s->config->command.v,
                                  .stdin_fd = -1,
                                  .stderr_fd = -1,
                                  .die_with_parent = true,
                                  .new_session = true};

        if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return err_set(err, -errno, "pipe: %s", strerror(errno));
        fcntl(pipe_fds[1], F_SETFL, 0); /* the program's end waits as pipes do */
        spec.stdout_fd = pipe_fds[1];
        r = child_spawn(s->a->loop, &spec, ended, s, &s->child, err);
        close(pipe_fds[1]);
        if (r < 0) {
                close(pipe_fds[0]);
                return r;
        }
        s->fd = pipe_fds[0];
        s->watch = watch_new(s->a->loop, s->fd, WATCH_READ, readable, s);
        return 0;
}

static void start_sensor(void *arg)
{
        struct sensor *s = arg;
        struct err err = {""};

        if (s->child) {
                watch_set(s->watch, WATCH_READ);
                return;
        }
        if (s->config->interval_ms) {
                s->command = command_run(s->a->loop, &s->config->command, NULL, STR_NONE,
                                         (int64_t)s->config->timeout_ms, sensor_done, s);
        } else if (spawn(s, &err) < 0) {
                sensor_failed(s, err.text);
                timer_start(s->timer, AGAIN_MS);
        }
}

/* ---- */

void sensors_open(struct agent *a)
{
        struct sensors *all = a->sensors = mem_new(struct sensors);

        all->n = a->config.sensor_count + (a->config.health.name != NULL);
        all->v = mem_array(NULL, all->n + 1, sizeof(*all->v));
        for (size_t i = 0; i < all->n; i++) {
                struct sensor *s = &all->v[i];

                *s = (struct sensor){.a = a, .fd = -1};
                s->config = i < a->config.sensor_count ? &a->config.sensors[i] : &a->config.health;
                s->timer = timer_new(a->loop, start_sensor, s);
                timer_start(s->timer, (int64_t)i * FIRST_SPREAD);
        }
}

void sensors_close(struct agent *a)
{
        struct sensors *all = a->sensors;

        if (!all)
                return;
        for (size_t i = 0; i < all->n; i++) {
                struct sensor *s = &all->v[i];

                timer_free(s->timer);
                command_cancel(s->command);
                if (s->child) {
                        kill(-child_pid(s->child), SIGKILL);
                        child_kill(s->child, SIGKILL);
                        child_forget(s->child);
                }
                stop_reading(s);
                buf_deinit(&s->block);
                buf_deinit(&s->said);
        }
        free(all->v);
        free(all->unwell);
        free(all);
        a->sensors = NULL;
}

static bool is_fresh(const struct sensor *s)
{
        int64_t most = FRESH_TIMES * (int64_t)s->config->interval_ms + (int64_t)s->config->timeout_ms;

        return s->said_boot_ms && !is_health(s) &&
               (s->config->interval_ms == 0 || clock_boot_ms() - s->said_boot_ms <= most);
}

static void add_fact(struct buf *out, const char *name, struct str value)
{
        buf_printf(out, "%s = ", name);
        offer_text(out, value);
        buf_addz(out, "; ");
}

static void add_machine(const struct agent *a, struct buf *out)
{
        static const char *const names[][2] = {{"provider_id ", "NodeProviderId"},
                                               {"image ", "NodeImage"},
                                               {"size ", "NodeSize"},
                                               {"price ", "NodePrice"}};

        add_fact(out, "NodeBootId", str_of(a->boot_id));
        for (size_t i = 0; i < a->config.node.n; i++)
                for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
                        if (str_starts(str_of(a->config.node.v[i]), str_of(names[k][0])))
                                add_fact(out, names[k][1], str_of(a->config.node.v[i] + strlen(names[k][0])));
}

void sensors_advertise(struct agent *a, struct buf *out)
{
        const struct sensors *all = a->sensors;

        add_machine(a, out);
        for (size_t i = 0; all && i < all->n; i++)
                if (is_fresh(&all->v[i])) {
                        buf_str(out, buf_view(&all->v[i].said));
                        buf_printf(out, "%sTime = %lld; ", all->v[i].config->name,
                                   (long long)(all->v[i].said_wall_ms / 1000));
                }
        if (all && all->unwell)
                add_fact(out, "NodeFailed", str_of(all->unwell));
}

void sensors_numbers(const struct agent *a,
                     void (*fn)(void *arg, const char *sensor, struct str attribute, double value), void *arg)
{
        const struct sensors *all = a->sensors;

        for (size_t i = 0; all && i < all->n; i++) {
                const struct sensor *s = &all->v[i];
                struct str rest = is_fresh(s) ? buf_view(&s->said) : STR_NONE, name;
                double value;

                while (sensor_next_number(&rest, &name, &value))
                        fn(arg, s->config->name, name, value);
        }
}

int sensors_health(const struct agent *a)
{
        const struct sensors *all = a->sensors;

        return !all || !all->n || !is_health(&all->v[all->n - 1]) ? -1 : !all->unwell;
}
