#include "agent/queue/queues.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/container/containers.h"
#include "agent/environment/environments.h"
#include "agent/queue/mapping.h"
#include "agent/queue/offers.h"
#include "agent/queue/use.h"
#include "base/system/log.h"
#include "run/process/user_command.h"

/* ---- runners */

static int backend_open(struct agent *a, const struct runner_kind *kind, const struct config_queue *c,
                        const struct run_observer *observer, struct backend **ret, struct err *err)
{
        struct backend *b = mem_new(struct backend);
        struct runner_config rc = mapping_runner(a);

        b->a = a;
        b->generation = 1;
        rc.observer = observer;
        rc.arg = b;
        const struct config_list *words = c ? config_queue_words(c) : NULL;
        b->queue = rc.queue = c ? c->name : NULL;
        rc.closed = a->hidden;
        rc.user_commands = a->users_path ? a->user_commands : NULL;
        rc.filesystem_domain = a->config.filesystem_domain;
        if (words) {
                b->settings = queue_words(words);
                rc.settings = b->settings;
                rc.setting_count = words->n;
        }
        int r = kind->open(&rc, &b->runner, err);
        if (r < 0) {
                free(b->settings);
                free(b);
                return r;
        }
        MEM_GROW(a->backends, a->backend_cap, a->backend_count + 1);
        a->backends[a->backend_count++] = b;
        *ret = b;
        return 0;
}

/* ---- queues */

static int add_devices(struct queue *q, struct err *err)
{
        const struct config_queue *c = q->config;
        struct agent *a = q->a;
        int r = 0;

        for (size_t i = 0; i < c->resources.n && r == 0; i++) {
                BUF_CLEANUP struct buf found = {0};
                const char *line = c->resources.v[i];

                if (!strcmp(line, "GPUs found")) {
                        buf_addz(&found, "GPUs:");
                        machine_gpus("", &found);
                        line = buf_z(&found);
                }
                r = devices_add(a->devices, &q->devices, str_of(line), err);
        }
        return r;
}

static struct queue *queue_add(struct agent *a, const struct config_queue *c, struct backend *b)
{
        struct queue *q = mem_new(struct queue);

        q->a = a;
        q->config = c;
        q->backend = b;
        q->waiting_last = &q->lists[ATTEMPT_WAITING];
        MEM_GROW(a->queues, a->queue_cap, a->queue_count + 1);
        a->queues[a->queue_count++] = q;
        return q;
}

static int queue_open(struct agent *a, const struct config_queue *c, const struct run_observer *observer,
                      struct err *err)
{
        const struct runner_kind *kind = config_queue_places(c) ? &runner_process : runner_find(c->runner);
        struct backend *b = a->backends[0];
        int r = 0;

        if (!kind)
                return err_set(err, -EINVAL, "there is no runner '%s': there are process, mover"
#define RUNNER(name) ", " #name
#include "run/runners.def"
                               ,
                               c->runner);
        if (!kind->for_users && a->users_path)
                return err_set(err, -EINVAL,
                               "jobs of several users (`users`) cannot go through %s; run an agent "
                               "for each user",
                               c->runner);
        if (kind != &runner_process)
                r = backend_open(a, kind, c, observer, &b, err);
        if (r == 0) {
                struct queue *q = queue_add(a, c, b);

                r = add_devices(q, err);
                if (r == 0)
                        r = containers_queue(q, err);
                offers_open(a, q);
        }
        return r;
}

/* Sets the resources of all process queues together: those at the file's top; else the machine's, or the
 * largest queue's if that is more. */
static void machine_budget(struct agent *a)
{
        const struct config_queue *top = &a->config.queue;

        a->machine_cpus_milli = top->cpus_milli ? top->cpus_milli : a->machine.cpus_milli;
        a->machine_memory_bytes = top->memory_bytes ? top->memory_bytes : a->machine.memory_bytes;
        for (size_t i = 0; i < a->config.queue_count; i++) {
                const struct config_queue *c = a->config.queues[i];

                if (strcmp(c->runner, runner_process.name) != 0)
                        continue;
                if (!top->cpus_milli && c->cpus_milli > a->machine_cpus_milli)
                        a->machine_cpus_milli = c->cpus_milli;
                if (!top->memory_bytes && c->memory_bytes > a->machine_memory_bytes)
                        a->machine_memory_bytes = c->memory_bytes;
        }
}

/* Returns the position of a word in the text; NULL: not found. */
static const char *word_in(const char *text, struct str word)
{
        for (const char *at = text; word.n && (at = strstr(at, word.p)); at++)
                if ((at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) &&
                    !(isalnum((unsigned char)at[word.n]) || at[word.n] == '_'))
                        return at;
        return NULL;
}

/* Returns the setting of a map that a text names first; `otherwise` if it names none. */
static const struct doc *spoken_of(const struct doc *map, const char *text, const struct doc *otherwise)
{
        const char *first = NULL;

        for (const struct doc *d = map ? map->first : NULL; d; d = d->next) {
                const char *at = word_in(text, d->key);

                if (at && (!first || at < first)) {
                        first = at;
                        otherwise = d;
                }
        }
        return otherwise;
}

/* The setting that is wrong: in the block of the queue's runner or in `container`, of the queue or of the
 * file; else beside them; else the queue. */
static const struct doc *culprit(const struct agent *a, const struct config_queue *c, const char *text)
{
        const struct doc *maps[] = {c->doc, a->config.doc}, *found = NULL;

        for (size_t i = 0; i < 2 && !found; i++)
                found = spoken_of(doc_get(maps[i], c->runner), text, NULL);
        for (size_t i = 0; i < 2 && !found; i++)
                found = spoken_of(doc_get(maps[i], "container"), text, NULL);
        return found ? found : spoken_of(c->doc ? c->doc : a->config.doc, text, c->doc);
}

int queues_open(struct agent *a, const struct run_observer *observer, struct err *err)
{
        struct backend *local;

        a->devices = devices_new();
        int r = backend_open(a, &runner_process, NULL, observer, &local, err);
        if (r < 0)
                return r;
        a->runner = local->runner;
        a->user_commands = user_commands_new(a->runner, a->jobs, a->jobs_path);
        machine_budget(a);
        for (size_t i = 0; i < a->config.queue_count && r == 0; i++) {
                const struct config_queue *c = a->config.queues[i];

                r = queue_open(a, c, observer, err);
                if (r == 0)
                        continue;
                const struct doc *where = culprit(a, c, err->text);
                err_prefix(err, r, "queue %s", c->name);
                if (where)
                        doc_where(err, r, where);
        }
        queue_use_read(a);
        return r;
}

struct queue *queue_of_journal(struct agent *a, const char *name, const char *runner, struct err *err)
{
        struct queue *q = queue_find(a, name);

        if (q && !strcmp(q->config->runner, runner))
                return q;
        if (q || (strcmp(runner, runner_process.name) != 0 && strcmp(runner, CONFIG_MOVER) != 0)) {
                err_set(err, -EINVAL,
                        "the queue %s had jobs in %s when the agent stopped: leave it in the configuration, "
                        "with `closed: on` if it shall take no more, until they are done",
                        name, runner);
                return NULL;
        }
        log_warn("msg=\"a queue has gone from the configuration; its jobs are seen to their end\" queue=%s",
                 LOG_TEXT(str_of(name)));
        struct config_queue *c = config_add_queue(&a->config, name);
        free(c->runner);
        c->runner = mem_dupz(runner);
        q = queue_add(a, c, a->backends[0]);
        q->retired = true;
        containers_queue(q, NULL);
        offers_open(a, q);
        return q;
}

static void backend_free(struct backend *b)
{
        free(b->unreachable);
        free(b->settings);
        free(b);
}

void queues_stop(struct agent *a)
{
        queue_use_write(a);
        for (size_t i = a->backend_count; i-- > 0;) { /* the others may need the first one */
                if (i == 0)
                        user_commands_stop(a->user_commands);
                if (a->backends[i]->runner)
                        a->backends[i]->runner->kind->close(a->backends[i]->runner, a->config.kill_on_stop);
        }
}

void queues_close(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++) {
                struct queue *q = a->queues[i];

                offers_close(q);
                device_set_deinit(&q->devices);
                free(q->accepted.v);
                free(q);
        }
        for (size_t i = 0; i < a->backend_count; i++)
                backend_free(a->backends[i]);
        free(a->queues);
        free(a->backends);
        containers_close(a);
        environments_close(a);
        queue_use_close(a);
        offers_denied_free(a);
        devices_free(a->devices);
        user_commands_free(a->user_commands);
        a->queue_count = a->backend_count = 0;
}
