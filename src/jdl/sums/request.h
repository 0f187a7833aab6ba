/* request: creates the jobs of one request from the XML elements that describe them.
 *
 * In a SUMS description a single element, <job>, contains everything. A request of RDL (jdl/rdl) refers to
 * separate elements for task, files and limits. Both become the same lines of the submit language and the
 * same script.
 *
 * Pure: files, commands and the catalog come through struct form_world.
 */
#pragma once
#include "base/format/xml.h"
#include "base/job/args.h"
#include "jdl/condor/condor.h"

struct sums_input {
        const struct xml *element; /* <input>; NULL: the files are those of `lines` */
        struct str lines;          /* files that other requests will have written, one a line */
        const char *name;          /* what messages call them */
        uint64_t tag;              /* of the first line, as in struct condor_source */
        unsigned line;
};
struct sums_request {
        const char *file, *id;     /* id: $REQUESTID, 32 hexadecimal digits */
        const struct xml *task;    /* <stdin>, <stdout>, <stderr>, <SandBox>, <output> */
        const struct xml *limits;  /* attributes about memory, time, and the files of a job */
        const struct xml *dataset; /* fileListSyntax, inputOrder */
        const struct sums_input *inputs;
        size_t input_count;
        struct str name;
        struct str lines;             /* further lines of the submit language */
        const struct args *variables; /* further variables of the jobs, NAME=VALUE; NULL: none */
        struct str script;            /* what a job runs, for sh */
        uint64_t processes;           /* number of jobs, if there are no inputs; 0: one */
        /* One of several requests that are submitted as one: $JOBINDEX in URLs counts from 0 in each, and
         * <stdout> may be missing. */
        bool composite;
        void *arg;
        /* Called for each <output>: a name or pattern, and its path or URL as text with macros of the submit
         * language. May be NULL. */
        void (*on_output)(void *arg, const struct xml *x, struct str name, struct str to);
        void (*on_file)(void *arg, uint64_t row, uint64_t tag); /* as in struct condor_dataset */
};

/* Adds a part to the form. Returns 0; -EINVAL or -E2BIG with err; or the error of a call of form_world. */
int sums_make(const struct form_world *w, const struct sums_request *from, const struct condor_options *o,
              struct form *form, struct err *err);
enum sums_inputs {
        SUMS_INPUTS_NONE,
        SUMS_INPUTS_THERE, /* files are read where they are */
        SUMS_INPUTS_COPIED /* copyInputLocally: the job copies them to INPUTFILES in its folder first */
};
/* Appends the script that runs a command. shell: what runs it, or a command that is put before csh; empty:
 * csh. */
void sums_script(struct str command, struct str shell, enum sums_inputs inputs, struct buf *out);
/* Replaces $NAME and ${NAME} by variables of the submit's environment. Returns 0, or -EINVAL with err. */
int sums_variables(const struct form_world *w, const struct condor_options *o, const struct xml *x,
                   struct str text, struct buf *out, struct err *err);
/* Return an attribute's value, which the schema has checked; false and 0 if it is not given. */
bool sums_true(const struct xml *x, const char *name);
uint64_t sums_count(const struct xml *x, const char *name);
bool sums_is_one_line(struct str s); /* false: it has a control character */
