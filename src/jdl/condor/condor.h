/* condor: HTCondor's submit description language becomes a form.
 *
 * Reads the everyday core of the language: assignments, macros, if/elif/else/endif, include, and the queue
 * statement in all its forms. Each queue statement is one part of the form; settings carry on from one to the
 * next. What the language knows and Drover doesn't is named: a keyword that is not acted on in a warning, one
 * that cannot be honoured in an error (see keywords.h for the table, drover-submit-file(5) for the user's
 * side).
 *
 * Pure: files, globs, environment and commands come through struct form_world.
 * Source: HTCondor manual 25.x, "Submitting a Job", "htcondor-jdl", and what condor_submit does.
 */
#pragma once
#include "base/condor_like.h"
#include "jdl/form.h"

#define CONDOR_TEXT_MAX    (16u << 20) /* bytes of one file */
#define CONDOR_VALUE_MAX   (1u << 20)  /* bytes of one expanded value */
#define CONDOR_INCLUDE_MAX 10          /* files that include each other */

/* Items that each queue statement is given, which must have none of its own. */
struct condor_items {
        const char *const *variables;
        size_t variable_count;
        struct str rows; /* values separated by \x1f, each row ended by \n */
        uint64_t row_count;
};

/* Files of a dataset, in place of the keyword `dataset`: what SUMS's <input> elements say. */
struct condor_source {
        const char *url; /* as the keyword takes it; also command:COMMAND, file:PATH, file://HOST/PATH */
        uint64_t files_max, events_max; /* taken of what is found; 0: all */
        bool every_copy;                /* each replica counts as a file of its own */
        const char *store;              /* whose replicas are preferred; NULL: none */
        unsigned line;
};
enum condor_list_syntax {
        CONDOR_LIST_PATHS,
        CONDOR_LIST_ROOTD, /* what is on a host's own disk as root://HOST/PATH; it is processed there */
        CONDOR_LIST_XROOTD /* so, and it is processed anywhere */
};
struct condor_dataset {
        const struct condor_source *sources;
        size_t source_count; /* 0: a request without a dataset */
        enum condor_list_syntax syntax;
        const char *order; /* a key of the catalog that files are ordered by within their groups; NULL: as
                              found */
        uint64_t time_s;   /* of a job, for files_per_hour; 0: allowed_execute_duration says it */
        bool base_name;    /* $(DatasetBase): the first file's name up to its first dot */
};

struct condor_options {
        /* 'keyword = value' as if written just before each queue statement; one 'queue …' if the file has
         * none. */
        const char *const *extra;
        size_t extra_count;
        /* 'keyword = value' as if written at the top of the file, which may say otherwise. */
        const char *const *first;
        size_t first_count;
        const char *filesystem_domain; /* of this machine; NULL: not known, FileSystemDomain is not set */
        const char *submit_host;       /* NULL: SubmitHost is not set */
        /* Bytes that may still be looked at for macros, in all; with it $EVAL and $STRING are errors. NULL:
         * each value has the limit of base/macro.h for itself. */
        size_t *work;
        const struct condor_items *items;     /* NULL: none */
        const struct condor_dataset *dataset; /* NULL: none but the keyword's */
        bool node_names; /* it is a node's of a DAG, by the name $(JOB): $(Process) counts from 0 in each, and
                            $(Cluster) has the name in it */
        const char *arch, *opsys; /* for the default requirements; NULL: of the machine this was built for */
};

/* Parses text, which was read from `file` ("-" for standard input, only used in messages and $(SUBMIT_FILE)),
 * and fills *ret, which the caller has initialised (form_init) and deinitialises in any case. 0; or with err,
 * which names file and line and what to do: -EINVAL wrong text, -E2BIG a limit was passed, or what
 * form_world.read_file, glob or run returned. */
int condor_parse(const struct form_world *w, const char *file, struct str text,
                 const struct condor_options *o, struct form *ret, struct err *err);
