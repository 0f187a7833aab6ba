/* submit: description -> form -> (files uploaded) -> one POST.
 *
 * submit_init, submit_read, then submit_send; submit_deinit in any case. All print what goes wrong and return
 * an exit code.
 */
#pragma once
#include "base/uuid.h"
#include "cli/client/api.h"
#include "cli/client/ship.h"
#include "jdl/dag/dag.h"
#include "jdl/sums/sums.h"

#define SUBMIT_BODY_MAX  (8u << 20) /* bytes of a request that the server takes; long lists go ahead of it */

#define SUBMIT_LINES_MAX 256 /* of --append */

enum submit_language { SUBMIT_CONDOR, SUBMIT_GALAXY, SUBMIT_CWL, SUBMIT_DAG, SUBMIT_SUMS };

struct submit {
        struct cli *cli;
        const char *file; /* "-": standard input */
        struct str text;  /* what is in it, where it is no file; borrowed */
        const char *const
                *lines; /* as if written just before each queue statement; may be set before reading */
        size_t line_count;
        struct buf after;                        /* the line of --after */
        const char *own_lines[SUBMIT_LINES_MAX]; /* what submit_append has put there */
        const char *const *first;                /* as if written at the top */
        size_t first_count;
        bool quiet; /* no warnings */
        enum submit_language language;
        const char *params;            /* of a tool's job: a file, or NULL */
        const char *resolve;           /* of a Galaxy tool; galaxy.h has the words */
        struct buf command;            /* of a tool, as it was rendered */
        bool no_rescue;                /* of a DAG: rescue files beside it are not read */
        const char *rescue;            /* of a DAG: the rescue file to be read; NULL: as no_rescue says */
        struct dag_summary dag;        /* of a DAG, when it was read */
        const struct entity *entities; /* of a template of SUMS; borrowed */
        size_t entity_count;
        struct sums_told sums;      /* of a description of SUMS, when it was read */
        uint64_t max_pre, max_post; /* scripts of a DAG that run at once; 0: any number */
        struct form form;
        size_t warned; /* of its warnings, those that are printed */
        struct ship ship;
        char **uploads; /* of the items, by part; NULL entries */
        char uuid[UUID_TEXT];
        struct buf body;
};

void submit_init(struct submit *s, struct cli *cli, const char *file);
void submit_deinit(struct submit *s);
/* Takes the lines of --after and --append; the latter are the options' own. 0, or an exit code. */
int submit_append(struct submit *s, const struct options *o);
/* Prints the text, with those lines before its queue statement. */
void submit_print(const struct submit *s);
/* Reads and parses the description into s->form; prints its warnings. */
int submit_read(struct submit *s);
/* Sends what has to go ahead, then the request. *ret is the server's answer (docs/openapi.json,
 * submitRequest), the caller's to deinit. Repeated under the same uuid when no answer comes. */
int submit_send(struct submit *s, struct api_answer *ret);
/* Prints what the server will not do, though it has taken the request. */
void submit_print_warnings(const struct api_answer *answer);
/* Makes s->body of what is there now: for those who send it themselves. */
void submit_write_body(struct submit *s);
