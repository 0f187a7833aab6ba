/* submit: description -> form -> (files uploaded) -> one POST.
 *
 * Call submit_init, submit_read, then submit_send; and submit_deinit in any case. Each prints its errors and
 * returns an exit code.
 */
#pragma once
#include "base/system/uuid.h"
#include "cli/client/api.h"
#include "cli/client/ship.h"
#include "jdl/dag/dag.h"
#include "jdl/sums/sums.h"

#define SUBMIT_BODY_MAX  (8u << 20) /* maximum bytes of a request's body; long lists are uploaded first */

#define SUBMIT_LINES_MAX 256 /* maximum number of --append options */

enum submit_language { SUBMIT_CONDOR, SUBMIT_GALAXY, SUBMIT_CWL, SUBMIT_DAG, SUBMIT_SUMS, SUBMIT_RDL };

struct submit {
        struct cli *cli;
        const char *file;         /* "-": standard input */
        struct str text;          /* content, if it is not a file; borrowed */
        const char *const *lines; /* lines read as if written just before each queue statement; may be set
                                     before reading */
        size_t line_count;
        struct buf after, policy;                /* the line of --after, and that of submit_choose_policy */
        const char *own_lines[SUBMIT_LINES_MAX]; /* lines added by submit_append */
        const char *const *first;                /* lines read as if written at the top */
        size_t first_count;
        bool quiet; /* no warnings */
        enum submit_language language;
        const char *params;            /* parameters of a tool's job: a file, or NULL */
        const char *tables, *resolve;  /* of a Galaxy tool: a file or NULL, and a word of galaxy.h */
        struct buf command;            /* a tool's command, as it was rendered */
        bool no_rescue;                /* DAG: rescue files beside it are not read */
        const char *rescue;            /* DAG: rescue file to read; NULL: no_rescue decides */
        struct dag_summary dag;        /* set after a DAG was read */
        bool names;                    /* DAG: its summary has the nodes' names */
        const struct entity *entities; /* values for a template of SUMS or RDL; borrowed */
        size_t entity_count;
        struct sums_told sums; /* set after a SUMS description was read; of RDL the name only */
        /* DAG: URL of the store that its data are planned through (jdl/dag/plan.h), or NULL */
        const char *stage;
        uint64_t stage_space, stage_file_size, stage_reserve_s;
        const char *stage_registers; /* NULL: none */
        struct buf plan;             /* report of the plan, for people */
        struct buf queues;           /* queues for the jobs, for the report (queue_choice.h) */
        uint64_t max_pre, max_post;  /* scripts of a DAG that may run at once; 0: any number */
        struct form form;
        size_t warned; /* number of the form's warnings that were printed */
        struct ship ship;
        char **uploads; /* uploads of the items, by part; entries may be NULL */
        char uuid[UUID_TEXT];
        struct buf body;
};

void submit_init(struct submit *s, struct cli *cli, const char *file);
void submit_deinit(struct submit *s);
/* Adds the lines of --after and --append; the latter are borrowed from the options. Returns 0, or
 * an exit code. */
int submit_append(struct submit *s, const struct options *o);
/* Adds the line that names a policy for choosing places; NULL: none. Behind submit_append. */
void submit_choose_policy(struct submit *s, const char *name);
/* Prints the description, with the added lines before its queue statement. */
void submit_print(const struct submit *s);
/* Reads and parses the description into s->form; prints its warnings. */
int submit_read(struct submit *s);
/* Uploads what must precede the request, then sends the request. *ret is the server's answer
 * (docs/openapi.json, submitRequest), the caller's to deinit. If no answer comes, the request is repeated
 * under the same uuid. */
int submit_send(struct submit *s, struct api_answer *ret);
/* Prints the server's warnings about parts of the request that it accepted but will not act on. */
void submit_print_warnings(const struct api_answer *answer);
/* Writes the request into s->body, for callers that send it themselves. */
void submit_write_body(struct submit *s);
