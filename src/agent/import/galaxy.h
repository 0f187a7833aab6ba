/* galaxy: a Galaxy job configuration (job_conf.xml, job_conf.yml) as an agent's configuration.
 *
 * What both forms say becomes one struct galaxy_conf: runners, places to run (Galaxy's destinations, later
 * called environments), tools, limits. From it the agent's YAML is written, a queue for each place that an
 * agent can have; whatever it cannot say is a note with the line it stands in, never left out without a word.
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
        struct galaxy_words environment; /* variables */
        struct galaxy_words scripts;     /* shell lines before the tool */
};

struct galaxy_limit {
        char *type, *id, *tag, *value;
        unsigned line;
};

struct galaxy_tool {
        char *id, *place; /* id: of the tool, or "class NAME" */
        unsigned line;
};

struct galaxy_conf {
        const char *file; /* its name; borrowed */
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
        struct galaxy_words notes; /* of lines */
};

void galaxy_init(struct galaxy_conf *c, const char *file);
void galaxy_deinit(struct galaxy_conf *c);

/* Adders copy; what they give stays where it is until the next of its kind is added. */
struct galaxy_runner *galaxy_add_runner(struct galaxy_conf *c, struct str id, unsigned line);
struct galaxy_place *galaxy_add_place(struct galaxy_conf *c, struct str id, unsigned line);
struct galaxy_limit *galaxy_add_limit(struct galaxy_conf *c, unsigned line);
struct galaxy_tool *galaxy_add_tool(struct galaxy_conf *c, unsigned line);
void galaxy_add_word(struct galaxy_words *w, struct str name, struct str value, unsigned line);
const struct galaxy_word *galaxy_word(const struct galaxy_words *w, const char *name); /* NULL: none */
const struct galaxy_runner *galaxy_runner(const struct galaxy_conf *c, const char *id);
/* For people: what has no equivalent, or is said elsewhere. */
void galaxy_note(struct galaxy_conf *c, unsigned line, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Reads either form into c, which galaxy_init has made. 0; -EINVAL with err "FILE:LINE: ..."; -ENOSYS. */
int galaxy_read(struct galaxy_conf *c, struct str text, struct err *err);
int galaxy_read_xml(struct galaxy_conf *c, struct str text, struct err *err);
int galaxy_read_yaml(struct galaxy_conf *c, struct str text, struct err *err);

/* How a place's jobs run, and what its queue says. */
struct galaxy_queue {
        const struct galaxy_place *place;
        char *name;                    /* as it is written; owned. NULL: not known yet */
        const char *runner;            /* as in the agent's file; NULL: no agent has such a queue */
        const char *why_not;           /* then */
        struct galaxy_words native;    /* settings of the batch system */
        const char *engine, *network;  /* of containers; NULL: not said */
        struct galaxy_words mounts;    /* their names */
        uint64_t walltime_s, jobs_max; /* 0: not said */
};
/* Reads the place's params; what it can't say becomes notes. */
void galaxy_queue_init(struct galaxy_queue *q, struct galaxy_conf *c, const struct galaxy_place *p);
void galaxy_queue_deinit(struct galaxy_queue *q);
/* Options as they are given to the submit command of `q->runner`. */
void galaxy_native(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *options);
/* "walltime=72:00:00,mem=4gb", as PBS and Grid Engine ask for resources. */
void galaxy_resource_list(struct galaxy_conf *c, struct galaxy_queue *q, struct str list, unsigned line);
/* "72:00:00", "3-00:00", "90": seconds, or for Slurm minutes, where there is no colon. False: it is none. */
bool galaxy_time(struct str text, bool in_minutes, uint64_t *ret_s);

/* The agent's file; notes are complete afterwards, in the order of their lines. 0, or -EINVAL with err: there
 * is no queue in it. */
int galaxy_write(struct galaxy_conf *c, struct buf *out, struct err *err);

/* `drover-agent import-galaxy FILE`: returns the exit status. */
int galaxy_import(int argc, char **argv);
