/* Reads the settings of a queue, and the list of queues. */
#include <errno.h>
#include <stdlib.h>

#include "agent/config/config.h"
#include "base/format/name.h"
#include "base/mem.h"
#include "place/offer.h"

#define PLACEMENTS 4 /* default number of jobs of a queue for placement jobs */

#define Q(member)  offsetof(struct config_queue, member)
static const struct setting table[] = {
        {"name", SETTING_TEXT, Q(name), NULL, NULL},
        {"runner", SETTING_TEXT, Q(runner), "NAME", "how its queues run jobs: process, mover"
#define RUNNER(name) ", " #name
#include "run/runners.def"
        },
        {"type", SETTING_TEXT, Q(type), "WORD", "of the queue, in its ad as QueueType"},
        {"tag", SETTING_LIST, Q(tags), "WORD", "in its ad's list Tags; again for another"},
        {"tags", SETTING_LIST, Q(tags), NULL, NULL},
        {"search_order", SETTING_COUNT, Q(search_order), "N",
         "in its ad as SearchOrder: of places that cost a job the same, the smallest is tried first"},
        {"price", SETTING_CPUS, Q(price_milli), "N", "in its ad as Price"},
        {"cpus", SETTING_CPUS, Q(cpus_milli), "N", "to offer; all", true},
        {"memory", SETTING_SIZE, Q(memory_bytes), "SIZE", "to offer; all", true},
        {"disk", SETTING_SIZE, Q(disk_bytes), "SIZE", "to offer; what is free where the folder is", true},
        {"jobs_max", SETTING_COUNT, Q(jobs_max), "N", "at the same time; no limit but the resources", true},
        {"queued_max", SETTING_COUNT, Q(queued_max), "N", "that wait in a batch system", true},
        {"walltime_max", SETTING_TIME, Q(walltime_max_ms), "TIME", "that a job may run; no limit"},
        {"closed", SETTING_SWITCH, Q(closed), "on|off", "takes no more jobs; off"},
        {"gpus", SETTING_GPUS, Q(resources), "N|found|ID", "to give out, each to one job at a time; none"},
        {"resources", SETTING_RESOURCES, Q(resources), NULL, NULL},
        {"requirements", SETTING_TEXT, Q(requirements), "EXPRESSION", "on jobs, as TARGET"},
        {"close_when", SETTING_TEXT, Q(close_when), "EXPRESSION",
         "over the queue's own ad: true, it takes no jobs"},
        {"drain_when", SETTING_TEXT, Q(drain_when), "EXPRESSION", "likewise: true, the machine is drained"},
        {"drain_within", SETTING_TIME, Q(drain_within_ms), "TIME", "that jobs may go on then; to their end"},
        {"notify_when", SETTING_TEXT, Q(notify_when), "EXPRESSION", "likewise: true, an admin is told"},
        {"rank", SETTING_TEXT, Q(rank), "EXPRESSION", "of jobs, as TARGET: larger is taken first"},
        {"wish", SETTING_LIST, Q(wishes), "WORD",
         "for jobs with small-input, short-run or large-memory first; again for another"},
        {"attributes", SETTING_ATTRIBUTES, Q(attributes), "TEXT",
         "more attributes of its ad: 'HasFoo = true; Rack = 7'"},
        {"pull_policy", SETTING_POLICY, Q(pull_policy), "POLICY",
         "load=150%,jobs/day=1000,cpu/day=20h,walltime/day=9h,memory/day=500GiBh"},
        {"environment", SETTING_WORDS, Q(environment), NULL, NULL},
        {"modules", SETTING_LIST, Q(modules), NULL, NULL},
        {"modules_init", SETTING_TEXT, Q(modules_init), "FILE",
         "that a shell reads to have the command module; where it is usually"},
        {"conda_root", SETTING_TEXT, Q(conda_root), "FOLDER",
         "of conda, with envs in it; that of conda in PATH"},
#define RUNNER(name) {#name, SETTING_WORDS, Q(name), NULL, NULL},
#include "run/runners.def"
        {"container", SETTING_WORDS, Q(container), NULL, NULL},
        {"containment", SETTING_WORDS, Q(containment), NULL, NULL},
};
const struct settings config_queue_settings = {table, sizeof(table) / sizeof(*table)};

static const char *runner_with_settings(struct str name)
{
        static const char *const names[] = {
#define RUNNER(name) #name,
#include "run/runners.def"
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (str_eqz(name, names[i]))
                        return names[i];
        return NULL;
}

const struct config_list *config_queue_words(const struct config_queue *q)
{
        const char *name = runner_with_settings(str_of(q->runner));
        const struct setting *s = name ? settings_find(config_queue_settings, str_of(name)) : NULL;

        return s ? (const void *)((const char *)q + s->at) : NULL;
}

void config_queue_init(struct config_queue *q)
{
        *q = (struct config_queue){.search_order = UINT64_MAX};
        pull_policy_default(&q->pull_policy);
}

void config_queue_deinit(struct config_queue *q)
{
        settings_deinit(config_queue_settings, q);
}

struct config_queue *config_add_queue(struct config *c, const char *name)
{
        struct config_queue *q = mem_new(struct config_queue);

        config_queue_init(q);
        settings_copy(config_queue_settings, q, &c->queue);
        free(q->name);
        q->name = mem_dupz(name);
        if (!q->runner)
                q->runner = mem_dupz("process");
        MEM_GROW(c->queues, c->queue_cap, c->queue_count + 1);
        c->queues[c->queue_count++] = q;
        return q;
}

/* Settings of a runner that is not there are read by nobody, and its jobs would run elsewhere: on this very
 * machine, when `runner` was forgotten. `only` is the queue whose map this is; NULL: it is the file's top. */
static int check_runner(const struct config *c, const struct doc *map, const struct config_queue *only,
                        struct err *err)
{
        for (const struct doc *d = map ? map->first : NULL; d; d = d->next) {
                const char *name = runner_with_settings(d->key);
                bool used = !name || (only && !strcmp(only->runner, name));

                for (size_t i = 0; i < c->queue_count && !used && !only; i++)
                        used = !strcmp(c->queues[i]->runner, name);
                if (used)
                        continue;
                if (only)
                        err_set(err, -EINVAL,
                                "queue %s has settings of %s, and its runner is %s: write `runner: %s`, or "
                                "take them out",
                                only->name, name, only->runner, name);
                else
                        err_set(err, -EINVAL,
                                "here are settings of %s, and no queue has this runner: write `runner: %s`, "
                                "or take them out",
                                name, name);
                return doc_where(err, -EINVAL, d);
        }
        return 0;
}

static int check_name(const struct config *c, struct str name, struct err *err)
{
        if (!name_is_queue(name))
                return err_set(err, -EINVAL,
                               "a queue's name is " NAME_QUEUE_IS ", which '" STR_FMT "' is not",
                               STR_ARG(name));
        for (size_t i = 0; i < c->queue_count; i++)
                if (str_eqz(name, c->queues[i]->name))
                        return err_set(err, -EINVAL, "there are two queues of the name " STR_FMT,
                                       STR_ARG(name));
        return 0;
}

static int check_trigger(const char *name, const char *text, struct err *err)
{
        struct offer_place p = {.name = "n", .requirements = text};

        return !text || offer_check(&p, NULL) == 0
                       ? 0
                       : err_set(err, -EINVAL, "%s cannot be read: %s", name, text);
}

/* Checks that the server will be able to parse the ad, so that errors are reported here. */
static int check_ad(const struct config_queue *q, struct err *err)
{
        struct offer_place p = {.name = "n",
                                .queue = q->name,
                                .requirements = q->requirements,
                                .rank = q->rank,
                                .extra = q->attributes};

        for (size_t i = 0; i < q->wishes.n; i++)
                if (!offer_wish(str_of(q->wishes.v[i])) || i >= OFFER_WISHES_MAX)
                        return err_set(
                                err, -EINVAL,
                                "wish is up to %u of small-input, short-run and large-memory, the weightier "
                                "first; \"%s\" is not",
                                OFFER_WISHES_MAX, q->wishes.v[i]);
        int r = check_trigger("close_when", q->close_when, err);
        if (r == 0)
                r = check_trigger("drain_when", q->drain_when, err);
        if (r == 0)
                r = check_trigger("notify_when", q->notify_when, err);
        return r == 0 ? offer_check(&p, err) : r;
}

static int read_queue(struct config *c, const struct doc *d, struct err *err)
{
        const char *keys[sizeof(table) / sizeof(*table) + 1] = {0};
        const struct doc *name = doc_get(d, "name");

        for (size_t i = 0; i < config_queue_settings.n; i++)
                keys[i] = table[i].name;
        int r = doc_only(d, keys, err);
        if (r < 0)
                return r;
        if (!name || name->kind != DOC_WORD)
                return doc_where(err, err_set(err, -EINVAL, "a queue needs a name"), d);
        r = check_name(c, name->text, err);
        if (r < 0)
                return doc_where(err, r, name);
        MEM_CLEANUP char *z = str_dupz(name->text);
        struct config_queue *q = config_add_queue(c, z);
        q->doc = d;
        for (const struct doc *at = d->first; at && r == 0; at = at->next) {
                r = settings_read(q, settings_find(config_queue_settings, at->key), at, err);
                if (r < 0)
                        doc_where(err, r, at);
        }
        if (r == 0 && (r = check_ad(q, err)) < 0)
                doc_where(err, r, d);
        return r == 0 ? check_runner(c, d, q, err) : r;
}

bool config_queue_places(const struct config_queue *q)
{
        return !strcmp(q->runner, CONFIG_MOVER);
}

/* Adds the queue for placement jobs, unless the file has one or another queue of its name. Settings of
 * programs and devices at the file's top do not apply to it. */
static void add_data_queue(struct config *c)
{
        struct config_queue plain;
        bool there = false;

        for (size_t i = 0; i < c->queue_count; i++) {
                there |= config_queue_places(c->queues[i]) || !strcmp(c->queues[i]->name, CONFIG_DATA);
                if (config_queue_places(c->queues[i]) && !c->queues[i]->jobs_max)
                        c->queues[i]->jobs_max = c->placements ? c->placements : PLACEMENTS;
        }
        if (there)
                return;
        if (!c->placements || c->queue_count >= CONFIG_QUEUES_MAX)
                return;
        config_queue_init(&plain);
        plain.runner = mem_dupz(CONFIG_MOVER);
        plain.jobs_max = c->placements;
        plain.closed = c->queue.closed;
        plain.requirements = mem_dupz(c->queue.requirements);
        struct config_queue *q = config_add_queue(c, CONFIG_DATA);
        plain.name = q->name;
        q->name = NULL;
        config_queue_deinit(q);
        *q = plain;
}

static int read_queues(struct config *c, struct err *err)
{
        const struct doc *list = doc_get(c->doc, "queues");
        int r = 0;

        if (!list) {
                if (c->queue_count > 0)
                        return 0;
                r = check_ad(config_add_queue(c, c->queue.name), err);
                for (size_t i = 0; i < config_queue_settings.n && r < 0; i++)
                        if (str_starts(str_of(err->text), str_of(table[i].name)))
                                return config_where(c, table[i].name, r, err);
                return r == 0 ? check_runner(c, c->doc, NULL, err) : r;
        }
        if (list->kind != DOC_LIST || list->count == 0 || list->count > CONFIG_QUEUES_MAX)
                return doc_where(err,
                                 err_set(err, -EINVAL,
                                         "queues is a list of 1 to %d queues, each `- name: NAME` "
                                         "and what is particular to it",
                                         CONFIG_QUEUES_MAX),
                                 list);
        for (const struct doc *d = list->first; d && r == 0; d = d->next)
                r = read_queue(c, d, err);
        return r == 0 ? check_runner(c, c->doc, NULL, err) : r;
}

int config_queues(struct config *c, struct err *err)
{
        int r = read_queues(c, err);

        if (r == 0)
                add_data_queue(c);
        return r;
}
