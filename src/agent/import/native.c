/* Translates Galaxy's native options of a batch system: into settings of the queue where they exist, else
 * into a note that names the line of a submit file with the same effect. Options are those of sbatch(1),
 * qsub(1) of Grid Engine, and qsub of Torque and PBS Pro. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/import/galaxy.h"
#include "base/format/quantity.h"
#include "base/job/args.h"

#define SLURM      1u
#define GRIDENGINE 2u
#define PBS        4u

enum does {
        SETTING,  /* setting of the batch system named `word` */
        WALLTIME, /* walltime of the queue */
        ASK,      /* set in the submit file: `word` = VALUE */
        LIST,     /* resources, NAME=VALUE, with commas */
        SAME,     /* no setting needed: done anyway */
        PARALLEL, /* Grid Engine's -pe NAME SLOTS */
};

static const struct option {
        unsigned systems;
        const char *name, *long_name; /* names with their dashes */
        enum does does;
        bool flag; /* takes no value */
        const char *word;
} options[] = {
        {SLURM, "-p", "--partition", SETTING, false, "partition"},
        {SLURM, "-A", "--account", SETTING, false, "account"},
        {SLURM, "-q", "--qos", SETTING, false, "qos"},
        {SLURM, "-C", "--constraint", SETTING, false, "constraint"},
        {SLURM, "-L", "--licenses", SETTING, false, "license"},
        {SLURM, NULL, "--reservation", SETTING, false, "reservation"},
        {SLURM, "-t", "--time", WALLTIME, false, NULL},
        {SLURM, "-c", "--cpus-per-task", ASK, false, "request_cpus"},
        {SLURM, "-n", "--ntasks", ASK, false, "request_cpus"},
        {SLURM, NULL, "--mem", ASK, false, "request_memory"},
        {SLURM, NULL, "--mem-per-cpu", ASK, false, "request_memory"},
        {SLURM, "-G", "--gpus", ASK, false, "request_gpus"},
        {SLURM, NULL, "--gres", ASK, false, "request_gpus"},
        {SLURM, "-N", "--nodes", SAME, false, "1"},
        {SLURM, NULL, "--no-requeue", SAME, true, NULL},
        {GRIDENGINE, "-q", NULL, SETTING, false, "queue"},
        {GRIDENGINE, "-P", NULL, SETTING, false, "project"},
        {GRIDENGINE, "-pe", NULL, PARALLEL, false, "parallel_environment"},
        {GRIDENGINE, "-l", NULL, LIST, false, NULL},
        {GRIDENGINE, "-V", NULL, SAME, true, NULL},
        {GRIDENGINE, "-cwd", NULL, SAME, true, NULL},
        {PBS, "-q", NULL, SETTING, false, "queue"},
        {PBS, "-A", NULL, SETTING, false, "account"},
        {PBS, "-l", NULL, LIST, false, NULL},
        {PBS, "-V", NULL, SAME, true, NULL},
};

static const struct resource {
        unsigned systems;
        const char *name;
        enum does does;
        const char *word;
} resources[] = {
        {GRIDENGINE, "h_rt", WALLTIME, NULL},
        {GRIDENGINE, "s_rt", WALLTIME, NULL},
        {GRIDENGINE, "h_vmem", ASK, "request_memory"},
        {GRIDENGINE, "mem_free", ASK, "request_memory"},
        {GRIDENGINE, "virtual_free", ASK, "request_memory"},
        {GRIDENGINE, "mf", ASK, "request_memory"},
        {GRIDENGINE, "gpu", ASK, "request_gpus"},
        {PBS, "walltime", WALLTIME, NULL},
        {PBS, "mem", ASK, "request_memory"},
        {PBS, "pmem", ASK, "request_memory"},
        {PBS, "vmem", ASK, "request_memory"},
        {PBS, "ncpus", ASK, "request_cpus"},
        {PBS, "ngpus", ASK, "request_gpus"},
        {PBS, "file", ASK, "request_disk"},
};

static unsigned system_of(const struct galaxy_queue *q)
{
        return str_eqz(str_of(q->runner), "slurm")        ? SLURM
               : str_eqz(str_of(q->runner), "gridengine") ? GRIDENGINE
               : str_eqz(str_of(q->runner), "pbs")        ? PBS
                                                          : 0;
}

bool galaxy_time(struct str text, bool in_minutes, uint64_t *ret_s)
{
        struct str rest = str_trim(text), part;
        uint64_t v[3] = {0}, days = 0, number, s = 0;
        bool has_days = str_find(rest, '-') > 0;
        size_t n = 0;

        if (has_days && (!str_cut(&rest, '-', &part) || str_to_u64(part, &days) != 0))
                return false;
        for (; n < 3 && str_cut(&rest, ':', &part); n++)
                if (str_to_u64(part, &v[n]) != 0)
                        return false;
        if (n == 0 || rest.p || days > 100000)
                return false;
        for (size_t i = 0; i < n; i++)
                if (v[i] > 10000000)
                        return false;
        if (has_days) /* d-h, d-h:m, d-h:m:s */
                s = v[0] * 3600 + v[1] * 60 + v[2];
        else if (n == 3)
                s = v[0] * 3600 + v[1] * 60 + v[2];
        else if (n == 2)
                s = v[0] * 60 + v[1];
        else
                s = in_minutes ? v[0] * 60 : v[0];
        number = days * 86400 + s;
        if (number == 0)
                return false;
        *ret_s = number;
        return true;
}

static void note_request(struct galaxy_conf *c, const struct galaxy_queue *q, struct str option,
                         const char *keyword, struct str value, unsigned line)
{
        galaxy_note(c, line, "%s: " STR_FMT " is what a job asks for itself: %s, here " STR_FMT, q->place->id,
                    STR_ARG(option), keyword, STR_ARG(value));
}

static void set_walltime(struct galaxy_conf *c, struct galaxy_queue *q, struct str value, unsigned line)
{
        if (!galaxy_time(value, system_of(q) == SLURM, &q->walltime_s))
                galaxy_note(c, line, "%s: '" STR_FMT "' is read as no time", q->place->id, STR_ARG(value));
}

static void set_setting(struct galaxy_queue *q, const char *name, struct str value, unsigned line)
{
        galaxy_add_word(&q->native, str_of(name), value, line);
}

/* Further resources are one setting, parted by commas. */
static void add_resource(struct galaxy_queue *q, struct str item, unsigned line)
{
        struct galaxy_word *w = (struct galaxy_word *)galaxy_word(&q->native, "resources");
        BUF_CLEANUP struct buf all = {0};

        if (!w) {
                set_setting(q, "resources", item, line);
                return;
        }
        buf_printf(&all, "%s," STR_FMT, w->value, STR_ARG(item));
        free(w->value);
        w->value = buf_take(&all);
}

static void one_resource(struct galaxy_conf *c, struct galaxy_queue *q, struct str item, unsigned line)
{
        struct str value = item, name;

        if (!str_cut(&value, '=', &name))
                return;
        for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
                const struct resource *r = &resources[i];

                if (!(r->systems & system_of(q)) || !str_eqz(name, r->name))
                        continue;
                if (r->does == WALLTIME)
                        set_walltime(c, q, value, line);
                else
                        note_request(c, q, name, r->word, value, line);
                return;
        }
        if (system_of(q) == PBS && (str_eqz(name, "nodes") || str_eqz(name, "select")))
                note_request(c, q, name, "request_cpus", value, line);
        else if (system_of(q) & (GRIDENGINE | PBS))
                add_resource(q, item, line);
        else
                galaxy_note(c, line, "%s: the resource " STR_FMT " has no equivalent", q->place->id,
                            STR_ARG(item));
}

void galaxy_resource_list(struct galaxy_conf *c, struct galaxy_queue *q, struct str list, unsigned line)
{
        struct str item;

        while (str_cut(&list, ',', &item))
                if (str_trim(item).n)
                        one_resource(c, q, str_trim(item), line);
}

/* Returns whether the word is the option, and finds its value: in the same word ("--x=V", "-xV"), or in the
 * next one. */
static bool is_option(const struct option *o, struct str word, bool *ret_inlined, struct str *ret_value)
{
        struct str rest = word, head;

        *ret_inlined = false;
        if (str_eqz(word, o->name ? o->name : "") || str_eqz(word, o->long_name ? o->long_name : ""))
                return true;
        if (o->long_name && str_cut(&rest, '=', &head) && rest.p && str_eqz(head, o->long_name)) {
                *ret_inlined = true;
                *ret_value = rest;
                return true;
        }
        /* only Slurm's short options take their value in the same word */
        if ((o->systems & SLURM) && o->name && !o->flag && str_starts(word, str_of(o->name)) && word.n > 2 &&
            word.p[1] != '-') {
                *ret_inlined = true;
                *ret_value = str_skip(word, 2);
                return true;
        }
        return false;
}

static void use_option(struct galaxy_conf *c, struct galaxy_queue *q, const struct option *o, struct str word,
                       struct str value, unsigned line)
{
        switch (o->does) {
        case SETTING:
        case PARALLEL: set_setting(q, o->word, value, line); break;
        case WALLTIME: set_walltime(c, q, value, line); break;
        case LIST: galaxy_resource_list(c, q, value, line); break;
        case ASK: note_request(c, q, word, o->word, value, line); break;
        case SAME:
                if (o->word && !str_eqz(value, o->word))
                        galaxy_note(c, line,
                                    "%s: " STR_FMT " of " STR_FMT " has no equivalent: a job gets one node",
                                    q->place->id, STR_ARG(word), STR_ARG(value));
                break;
        }
}

/* Words as a shell parts them: in quotes of either kind blanks are kept. False: one is not closed. */
static bool split(struct str text, struct args *words)
{
        BUF_CLEANUP struct buf word = {0};
        bool begun = false;
        char quote = 0;

        for (size_t i = 0; i < text.n; i++) {
                char x = text.p[i];

                if (quote ? x == quote : x == '\'' || x == '"') {
                        quote = quote ? 0 : x;
                        begun = true;
                } else if (!quote && isspace((unsigned char)x)) {
                        if (begun)
                                args_add(words, buf_view(&word));
                        buf_reset(&word);
                        begun = false;
                } else {
                        buf_char(&word, x);
                        begun = true;
                }
        }
        if (begun)
                args_add(words, buf_view(&word));
        return !quote;
}

void galaxy_native(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *given)
{
        size_t count = sizeof(options) / sizeof(*options);
        ARGS_CLEANUP struct args words = {0};

        if (!system_of(q)) {
                galaxy_note(c, given->line, "%s: '%s' has no equivalent", q->place->id, given->value);
                return;
        }
        if (!split(str_of(given->value), &words)) {
                galaxy_note(c, given->line, "%s: '%s' has a quote that is not closed, and is passed over",
                            q->place->id, given->value);
                return;
        }
        for (size_t i = 0; i < words.n; i++) {
                struct str option = str_of(words.v[i]), value = STR_NONE;
                bool inlined = false;
                size_t k = 0;

                while (k < count && !((options[k].systems & system_of(q)) &&
                                      is_option(&options[k], option, &inlined, &value)))
                        k++;
                if (k == count) {
                        galaxy_note(c, given->line, "%s: the option %s has no equivalent", q->place->id,
                                    words.v[i]);
                        continue;
                }
                if (!inlined && !options[k].flag && i + 1 < words.n)
                        value = str_of(words.v[++i]);
                use_option(c, q, &options[k], option, value, given->line);
                if (options[k].does == PARALLEL && i + 1 < words.n)
                        note_request(c, q, option, "request_cpus", str_of(words.v[++i]), given->line);
        }
}
