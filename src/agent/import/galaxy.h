/* galaxy: translates a Galaxy job configuration (job_conf.xml, job_conf.yml) into an agent's configuration.
 *
 * Both forms are read into one struct galaxy_conf: runners, places to run (Galaxy's destinations, later
 * called environments), tools, limits. From it the agent's YAML is written, with a queue for each place that
 * an agent can have; whatever has no equivalent becomes a note with its line, and is never dropped silently.
 * The forms are those of Galaxy's own samples (lib/galaxy/config/sample/job_conf.*) up to release 26.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define GALAXY_TEXT_MAX (4u << 20)

struct galaxy_word {
        char *name, *value;
        unsigned line;
};
struct galaxy_words {
        struct galaxy_word *v;
        size_t n, cap;
};

struct galaxy_runner {
        char *id, *load; /* load: "galaxy.jobs.runners.slurm:SlurmJobRunner" */
        unsigned line;
        struct galaxy_words params;
};

struct galaxy_place {
        char *id, *runner;
        unsigned line;
        struct galaxy_words tags; /* their names */
        struct galaxy_words params;
        struct galaxy_words environment; /* variables of the environment */
        struct galaxy_words scripts;     /* shell lines before the tool */
};

struct galaxy_limit {
        char *type, *id, *tag, *value;
        unsigned line;
};

struct galaxy_tool {
        char *id, *place; /* id of the tool, or "class NAME" */
        unsigned line;
};

struct galaxy_conf {
        const char *file; /* file name; borrowed */
        struct galaxy_runner *runners;
        size_t runner_count, runner_cap;
        struct galaxy_place *places;
        size_t place_count, place_cap;
        struct galaxy_limit *limits;
        size_t limit_count, limit_cap;
        struct galaxy_tool *tools;
        size_t tool_count, tool_cap;
        char *default_place;       /* NULL: none is named */
        unsigned default_line;     /* of default_place, for notes */
        struct galaxy_words notes; /* notes about lines of the file */
};

void galaxy_init(struct galaxy_conf *c, const char *file);
void galaxy_deinit(struct galaxy_conf *c);

/* Adders copy their arguments; the result is valid until the next one of its kind is added. */
struct galaxy_runner *galaxy_add_runner(struct galaxy_conf *c, struct str id, unsigned line);
struct galaxy_place *galaxy_add_place(struct galaxy_conf *c, struct str id, unsigned line);
struct galaxy_limit *galaxy_add_limit(struct galaxy_conf *c, unsigned line);
struct galaxy_tool *galaxy_add_tool(struct galaxy_conf *c, unsigned line);
void galaxy_add_word(struct galaxy_words *w, struct str name, struct str value, unsigned line);
const struct galaxy_word *galaxy_word(const struct galaxy_words *w, const char *name); /* NULL: none */
const struct galaxy_runner *galaxy_runner(const struct galaxy_conf *c, const char *id);
/* Adds a note for people: a setting has no equivalent, or belongs elsewhere. */
void galaxy_note(struct galaxy_conf *c, unsigned line, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Reads either form into c, which galaxy_init has initialized. Returns 0; -EINVAL with err "FILE:LINE: ...";
 * -ENOSYS. */
int galaxy_read(struct galaxy_conf *c, struct str text, struct err *err);
int galaxy_read_xml(struct galaxy_conf *c, struct str text, struct err *err);
int galaxy_read_yaml(struct galaxy_conf *c, struct str text, struct err *err);

/* The queue for a place. */
struct galaxy_queue {
        const struct galaxy_place *place;
        char *name;                    /* name as written; owned. NULL: not known yet */
        const char *runner;            /* runner as in the agent's file; NULL: no agent has such a queue */
        const char *why_not;           /* with runner NULL: the reason */
        struct galaxy_words native;    /* settings of the batch system */
        const char *engine, *network;  /* for containers; NULL: not set */
        struct galaxy_words mounts;    /* their names */
        uint64_t walltime_s, jobs_max; /* 0: not set */
};
/* Reads the place's params; those without an equivalent become notes. */
void galaxy_queue_init(struct galaxy_queue *q, struct galaxy_conf *c, const struct galaxy_place *p);
void galaxy_queue_deinit(struct galaxy_queue *q);
/* Reads options in the form of the submit command of `q->runner`. */
void galaxy_native(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *options);
/* Reads a resource list of PBS or Grid Engine: "walltime=72:00:00,mem=4gb". */
void galaxy_resource_list(struct galaxy_conf *c, struct galaxy_queue *q, struct str list, unsigned line);
/* Parses "72:00:00", "3-00:00" or "90" (in seconds, with in_minutes, for Slurm, in minutes). Returns false
 * if malformed. */
bool galaxy_time(struct str text, bool in_minutes, uint64_t *ret_s);

/* Writes the agent's file; afterwards the notes are complete and sorted by line. Returns 0, or -EINVAL with
 * err if no queue could be made. */
int galaxy_write(struct galaxy_conf *c, struct buf *out, struct err *err);

/* `drover-agent import-galaxy FILE`: returns the exit status. */
int galaxy_import(int argc, char **argv);
