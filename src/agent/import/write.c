/* Writes the agent's YAML from the model. A setting is written only if the agent's own table has it;
 * everything else becomes a note. */
#include <ctype.h>
#include <errno.h>

#include "agent/config/config.h"
#include "agent/import/galaxy.h"
#include "base/map.h"
#include "base/mem.h"

#define NAME_MAX_BYTES 64

/* Appends a text as a word that YAML parses back to the same text. */
static void word(struct buf *out, struct str s)
{
        static const char *const taken[] = {"true", "false", "yes", "no", "on", "off", "null"};
        bool plain = s.n > 0 && (isalnum((unsigned char)s.p[0]) || s.p[0] == '/');

        for (size_t i = 0; i < s.n && plain; i++)
                plain = isalnum((unsigned char)s.p[i]) || (s.p[i] && strchr("_-./+@%=", s.p[i]));
        for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
                plain = plain && !str_ieqz(s, taken[i]);
        if (plain) {
                buf_str(out, s);
                return;
        }
        buf_char(out, '\'');
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '\'')
                        buf_char(out, '\'');
                buf_char(out, (unsigned char)s.p[i] < ' ' ? ' ' : s.p[i]);
        }
        buf_char(out, '\'');
}

static void duration(struct buf *out, uint64_t s)
{
        if (s % 3600 == 0)
                buf_printf(out, "%lluh", (unsigned long long)(s / 3600));
        else if (s % 60 == 0)
                buf_printf(out, "%llum", (unsigned long long)(s / 60));
        else
                buf_printf(out, "%llus", (unsigned long long)s);
}

static bool can_say(const char *setting)
{
        return settings_find(config_queue_settings, str_of(setting)) != NULL;
}

/* ---- limits */

static bool has_tag(const struct galaxy_place *p, const char *tag)
{
        return galaxy_word(&p->tags, tag) != NULL;
}

static bool is_type(const struct galaxy_limit *l, const char *now, const char *before)
{
        return l->type && (strcmp(l->type, now) == 0 || strcmp(l->type, before) == 0);
}

/* Applies a limit on the jobs of all users at a place. */
static void jobs_limit(struct galaxy_conf *c, const struct galaxy_limit *l, struct galaxy_queue *queues,
                       size_t n)
{
        uint64_t value, places = 0;
        struct galaxy_queue *found = NULL;

        if (!l->value || str_to_u64(str_of(l->value), &value) != 0 || value == 0) {
                galaxy_note(c, l->line, "limit %s: '%s' is no number of jobs", l->type,
                            l->value ? l->value : "");
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (queues[i].runner && (l->id    ? strcmp(queues[i].place->id, l->id) == 0
                                         : l->tag ? has_tag(queues[i].place, l->tag)
                                                  : false)) {
                        found = &queues[i];
                        places++;
                }
        if (places == 1) {
                if (found->jobs_max == 0 || value < found->jobs_max)
                        found->jobs_max = value;
        } else if (places == 0) {
                galaxy_note(c, l->line, "limit %s: no queue is called or tagged %s", l->type,
                            l->id    ? l->id
                            : l->tag ? l->tag
                                     : "nothing");
        } else {
                galaxy_note(
                        c, l->line,
                        "limit %s: the queues with the tag %s have %s together only by a limit of the "
                        "server, which "
                        "their jobs name: limits in droverd(8), concurrency_limits in drover-submit-file(5)",
                        l->type, l->tag, l->value);
        }
}

static void write_read_limits(struct galaxy_conf *c, struct galaxy_queue *queues, size_t n,
                              uint64_t *ret_walltime_s)
{
        for (size_t i = 0; i < c->limit_count; i++) {
                const struct galaxy_limit *l = &c->limits[i];

                if (is_type(l, "environment_total_concurrent_jobs", "destination_total_concurrent_jobs"))
                        jobs_limit(c, l, queues, n);
                else if (is_type(l, "walltime", "job_walltime")) {
                        if (!galaxy_time(str_of(l->value), false, ret_walltime_s))
                                galaxy_note(c, l->line, "limit walltime: '%s' is read as no time",
                                            l->value ? l->value : "");
                } else if (is_type(l, "total_walltime", "total_walltime"))
                        galaxy_note(c, l->line,
                                    "limit total_walltime: there is no sum for each user; shares make "
                                    "way for those who used less (drover-priority(7))");
                else if (is_type(l, "output_size", "output_size"))
                        galaxy_note(c, l->line,
                                    "limit output_size: a job's folder is limited by its request_disk");
                else
                        galaxy_note(c, l->line,
                                    "limit %s: there is no number of jobs for each user; shares divide what "
                                    "there "
                                    "is (drover-priority(7)), and a limit of the server holds for all "
                                    "(droverd(8))",
                                    l->type ? l->type : "without a type");
        }
}

/* ---- runners and tools */

static void note_runners(struct galaxy_conf *c)
{
        for (size_t i = 0; i < c->runner_count; i++) {
                const struct galaxy_runner *r = &c->runners[i];
                size_t places = 0;

                for (size_t k = 0; k < c->place_count; k++)
                        places += c->places[k].runner && strcmp(c->places[k].runner, r->id) == 0;
                for (size_t k = 0; k < r->params.n; k++) {
                        const struct galaxy_word *w = &r->params.v[k];

                        if (strcmp(w->name, "workers") != 0 && strcmp(w->name, "drmaa_library_path") != 0)
                                galaxy_note(c, w->line, "runner %s: %s has no equivalent", r->id, w->name);
                        else if (strcmp(w->name, "workers") == 0 && places > 1 && r->load &&
                                 str_ends(str_of(r->load), STR(":LocalJobRunner")))
                                galaxy_note(c, w->line,
                                            "runner %s: its %s workers are for %zu destinations together; "
                                            "each of "
                                            "their queues has so many",
                                            r->id, w->value, places);
                }
        }
}

static const char *queue_name(const struct galaxy_queue *queues, size_t n, const char *place)
{
        for (size_t i = 0; i < n; i++)
                if (queues[i].name && strcmp(queues[i].place->id, place) == 0)
                        return queues[i].name;
        return place;
}

static void note_tools(struct galaxy_conf *c, const struct galaxy_queue *queues)
{
        for (size_t i = 0; i < c->tool_count; i++)
                if (c->tools[i].place)
                        galaxy_note(c, c->tools[i].line,
                                    "tool %s: its jobs name the queue themselves: requirements = "
                                    "TARGET.QueueName == "
                                    "\"%s\"",
                                    c->tools[i].id, queue_name(queues, c->place_count, c->tools[i].place));
}

/* ---- queues */

/* Converts a place's id to the characters allowed in a queue's name. */
static void name_of(const char *id, struct buf *out)
{
        for (const char *z = *id ? id : "destination"; *z && out->n < NAME_MAX_BYTES; z++)
                buf_char(out, isalnum((unsigned char)*z) || strchr("-_.+", *z) ? *z : '_');
}

/* Returns a unique name: if two ids map to the same name, the later one gets a number, and a long name is
 * cut. */
static char *name_of_its_own(const struct map *names, const char *id)
{
        BUF_CLEANUP struct buf name = {0}, number = {0};

        name_of(id, &name);
        size_t n = name.n;
        for (unsigned i = 2; map_get(names, buf_view(&name)); i++) {
                buf_reset(&number);
                buf_printf(&number, "_%u", i);
                buf_truncate(&name, n + number.n > NAME_MAX_BYTES ? NAME_MAX_BYTES - number.n : n);
                buf_str(&name, buf_view(&number));
        }
        return buf_take(&name);
}

/* Names the queues: first those whose id is a valid name, then the others, which may find it taken. */
static void name_queues(struct galaxy_conf *c, struct galaxy_queue *queues)
{
        struct map *names = map_new();

        for (unsigned pass = 0; pass < 2; pass++)
                for (size_t i = 0; i < c->place_count; i++) {
                        struct galaxy_queue *q = &queues[i];
                        const char *id = q->place->id;
                        BUF_CLEANUP struct buf name = {0};

                        name_of(id, &name);
                        if (!q->runner || q->name ||
                            (pass == 0 && (!str_eqz(buf_view(&name), id) || map_get(names, str_of(id)))))
                                continue;
                        q->name = name_of_its_own(names, id);
                        map_put(names, str_of(q->name), q);
                        if (pass == 1)
                                galaxy_note(c, q->place->line, "%s: the queue is called %s",
                                            *id ? id : "a destination without a name", q->name);
                }
        map_free(names);
}

/* Adds a note if the default place has no queue, which would be written first. */
static void note_default(struct galaxy_conf *c, const struct galaxy_queue *queues)
{
        size_t i = 0;

        while (c->default_place && i < c->place_count && strcmp(c->places[i].id, c->default_place) != 0)
                i++;
        if (c->default_place && i == c->place_count)
                galaxy_note(c, c->default_line,
                            "the default destination %s is not in the file: no queue goes before the others",
                            c->default_place);
        else if (c->default_place && !queues[i].runner)
                galaxy_note(c, c->default_line,
                            "the default destination %s is no queue: none goes before the others",
                            c->default_place);
}

static void write_map(struct galaxy_conf *c, const struct galaxy_queue *q, const char *setting,
                      const struct galaxy_words *words, struct buf *out)
{
        if (words->n && can_say(setting))
                buf_printf(out, "    %s:\n", setting);
        for (size_t i = 0; i < words->n; i++) {
                const struct galaxy_word *w = &words->v[i];

                if (!can_say(setting)) {
                        galaxy_note(c, w->line, "%s: %s = %s has no equivalent", q->place->id, w->name,
                                    w->value);
                } else if (galaxy_word(words, w->name) != w) {
                        galaxy_note(c, w->line, "%s: %s is said twice, and the first is written",
                                    q->place->id, w->name);
                } else {
                        buf_addz(out, "      ");
                        word(out, str_of(w->name));
                        buf_addz(out, ": ");
                        word(out, str_of(w->value));
                        buf_char(out, '\n');
                }
        }
}

static void write_list(const char *setting, const struct galaxy_words *names, struct buf *out)
{
        for (size_t i = 0; i < names->n; i++) {
                buf_printf(out, i ? ", " : "    %s: [", setting);
                word(out, str_of(names->v[i].name));
        }
        if (names->n)
                buf_addz(out, "]\n");
}

/* "module load a b" */
static bool is_load(struct str line, struct galaxy_words *modules, unsigned line_number)
{
        struct str first, second, name;

        if (!str_word(&line, &first) || !str_eqz(first, "module") || !str_word(&line, &second) ||
            !(str_eqz(second, "load") || str_eqz(second, "add")) || str_search(line, STR(" -")) >= 0)
                return false;
        while (str_word(&line, &name))
                galaxy_add_word(modules, name, STR_NONE, line_number);
        return true;
}

/* Lines that load modules are a setting of the queue; others are for the job's own script, and so is a load
 * among lines that may say when it is done. */
static void write_scripts(struct galaxy_conf *c, const struct galaxy_queue *q, struct buf *out)
{
        struct galaxy_words modules = {0};

        for (size_t i = 0; i < q->place->scripts.n; i++) {
                const struct galaxy_word *w = &q->place->scripts.v[i];
                struct str rest = str_of(w->value), line;
                bool plain = can_say("modules") && strpbrk(w->value, ";&|<>$`\"'\\()#") == NULL;

                for (struct str all = rest; plain && str_cut(&all, '\n', &line);)
                        plain = !str_trim(line).n || str_starts(str_trim(line), STR("module "));
                while (str_cut(&rest, '\n', &line)) {
                        line = str_trim(line);
                        if (line.n && !(plain && is_load(line, &modules, w->line)))
                                galaxy_note(
                                        c, w->line,
                                        "%s: the line \"" STR_FMT
                                        "\" before each job has no equivalent: put it into the job's script",
                                        q->place->id, STR_ARG(line));
                }
        }
        write_list("modules", &modules, out);
        for (size_t i = 0; i < modules.n; i++) {
                free(modules.v[i].name);
                free(modules.v[i].value);
        }
        free(modules.v);
}

static void write_container(const struct galaxy_queue *q, struct buf *out)
{
        if (!q->engine || !can_say("container"))
                return;
        buf_printf(out, "    container:\n      engine: %s\n", q->engine);
        if (q->network && *q->network) {
                buf_addz(out, "      network: ");
                word(out, str_of(q->network));
                buf_char(out, '\n');
        }
        if (q->mounts.n) {
                buf_addz(out, "  ");
                write_list("mounts", &q->mounts, out);
        }
}

static void write_queue(struct galaxy_conf *c, const struct galaxy_queue *q, struct buf *out)
{
        const struct galaxy_place *p = q->place;

        buf_addz(out, "  - name: ");
        word(out, str_of(q->name));
        buf_char(out, '\n');
        buf_printf(out, "    runner: %s\n", q->runner);
        if (c->default_place && strcmp(c->default_place, p->id) == 0)
                buf_addz(out, "    search_order: 1\n");
        write_list("tags", &p->tags, out);
        if (q->jobs_max)
                buf_printf(out, "    jobs_max: %llu\n", (unsigned long long)q->jobs_max);
        if (q->walltime_s) {
                buf_addz(out, "    walltime_max: ");
                duration(out, q->walltime_s);
                buf_char(out, '\n');
        }
        write_scripts(c, q, out);
        write_map(c, q, "environment", &p->environment, out);
        write_container(q, out);
        write_map(c, q, q->runner, &q->native, out);
}

static uint64_t workers_of(const struct galaxy_conf *c, const struct galaxy_place *p)
{
        const struct galaxy_runner *r = galaxy_runner(c, p->runner);
        const struct galaxy_word *w = r ? galaxy_word(&r->params, "workers") : NULL;
        uint64_t n;

        return w && str_to_u64(str_of(w->value), &n) == 0 ? n : 0;
}

int galaxy_write(struct galaxy_conf *c, struct buf *out, struct err *err)
{
        struct galaxy_queue *queues = mem_zalloc((c->place_count + 1) * sizeof(*queues));
        uint64_t walltime_s = 0;
        size_t written = 0;

        buf_printf(out,
                   "# Written by drover-agent import-galaxy from %s. What has no equivalent was said on "
                   "standard error.\n"
                   "# Still to be said, here or as options: server, dir, token_file; see drover-agent(8).\n",
                   c->file);
        for (size_t i = 0; i < c->place_count; i++) {
                galaxy_queue_init(&queues[i], c, &c->places[i]);
                if (queues[i].runner && strcmp(queues[i].runner, "process") == 0)
                        queues[i].jobs_max = workers_of(c, &c->places[i]);
                if (!queues[i].runner)
                        galaxy_note(c, c->places[i].line, "%s: no queue: %s", c->places[i].id,
                                    queues[i].why_not);
        }
        name_queues(c, queues);
        note_default(c, queues);
        note_runners(c);
        note_tools(c, queues);
        write_read_limits(c, queues, c->place_count, &walltime_s);
        if (walltime_s) {
                buf_addz(out, "walltime_max: ");
                duration(out, walltime_s);
                buf_char(out, '\n');
        }
        buf_addz(out, "queues:\n");
        for (size_t i = 0; i < c->place_count; i++)
                if (queues[i].runner && ++written <= CONFIG_QUEUES_MAX)
                        write_queue(c, &queues[i], out);
        for (size_t i = 0; i < c->place_count; i++)
                galaxy_queue_deinit(&queues[i]);
        free(queues);
        if (written == 0)
                return err_set(err, -EINVAL, "%s: no destination in it can be a queue of an agent", c->file);
        if (written > CONFIG_QUEUES_MAX)
                return err_set(err, -EINVAL, "%s: an agent has at most %d queues, and here are %zu", c->file,
                               CONFIG_QUEUES_MAX, written);
        return 0;
}
