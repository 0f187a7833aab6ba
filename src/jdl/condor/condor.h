/* condor: translates HTCondor's submit description language to a form.
 *
 * The reader knows the everyday core of the language: assignments, macros, if/elif/else/endif, include, and
 * the queue statement in all its forms. Each queue statement is one part of the form; settings carry over
 * from one to the next. Parts of the language that Drover does not support are named: a keyword that is not
 * acted on in a warning, one that cannot be honoured in an error (the table is in keywords.h, the user's
 * documentation in drover-submit-file(5)).
 *
 * Pure: files, globs, environment and commands come through struct form_world.
 * Source: HTCondor manual 25.x, "Submitting a Job", "htcondor-jdl", and the behaviour of condor_submit.
 */
#pragma once
#include "base/job/condor_like.h"
#include "jdl/form/form.h"

#define CONDOR_TEXT_MAX    (16u << 20) /* maximum bytes of one file */
#define CONDOR_VALUE_MAX   (1u << 20)  /* maximum bytes of one expanded value */
#define CONDOR_INCLUDE_MAX 10          /* maximum depth of includes */

/* Items given to every queue statement, which must have none of its own. */
struct condor_items {
        const char *const *variables;
        size_t variable_count;
        struct str rows; /* values separated by \x1f, each row ended by \n */
        uint64_t row_count;
};

/* Files of a dataset, in place of the keyword `dataset`: the content of SUMS's <input> elements. */
struct condor_source {
        const char *url; /* URL as the keyword takes it; also command:COMMAND, file:PATH, file://HOST/PATH */
        uint64_t files_max, events_max; /* limits on the files found that are used; 0: all */
        bool every_copy;                /* every replica counts as a file */
        const char *store;              /* store whose replicas are preferred; NULL: none */
        /* The files themselves, one a line, as in a list; url is what messages call them. p NULL: url says
         * which they are. */
        struct str lines;
        uint64_t tag; /* of the first line; each line has the next one; 0: the lines have none */
        unsigned line;
};
enum condor_list_syntax {
        CONDOR_LIST_PATHS,
        CONDOR_LIST_ROOTD, /* a file on a host's own disk as root://HOST/PATH; processed on that host */
        CONDOR_LIST_XROOTD /* like ROOTD, but processed anywhere */
};
struct condor_dataset {
        const struct condor_source *sources;
        size_t source_count; /* 0: a request without a dataset */
        enum condor_list_syntax syntax;
        /* key of the catalog by which files are ordered within their groups; NULL: as found */
        const char *order;
        uint64_t time_s;        /* time of a job, for files_per_hour; 0: allowed_execute_duration is used */
        double events_per_hour; /* like files_per_hour, which is a keyword; 0: not known */
        bool base_name;         /* $(DatasetBase): the first file's name up to its first dot */
        /* Called for each file that has a tag: which row it is in. May be NULL. */
        void (*on_file)(void *arg, uint64_t row, uint64_t tag);
        void *arg;
};

struct condor_options {
        /* Lines read as if written just before each queue statement: 'keyword = value'; one may be 'queue …'
         * if the file has none. */
        const char *const *extra;
        size_t extra_count;
        /* Lines 'keyword = value' read as if written at the top of the file, which may override them. */
        const char *const *first;
        size_t first_count;
        /* filesystem domain of this machine; NULL: not known, FileSystemDomain is not set */
        const char *filesystem_domain;
        const char *submit_host; /* NULL: SubmitHost is not set */
        /* Remaining bytes that may be scanned for macros, over all values; with it $EVAL and $STRING are
         * errors. NULL: each value has the limit of base/job/macro.h. */
        size_t *work;
        const struct condor_items *items;     /* NULL: none */
        const struct condor_dataset *dataset; /* NULL: only the keyword's */
        /* the description is that of a DAG's nodes, named $(JOB): $(Process) counts from 0 in each, and
         * $(Cluster) has the name in it */
        bool node_names;
        /* for the default requirements; NULL: those of the machine that this was built for */
        const char *arch, *opsys;
};

/* Parses text, which was read from `file` ("-" for standard input; used in messages and $(SUBMIT_FILE)
 * only), and fills *ret, which the caller has initialised (form_init) and deinitialises in any case. Returns
 * 0; or with err, which names file and line and the remedy: -EINVAL: the text is wrong; -E2BIG: a limit was
 * exceeded; or the error of form_world.read_file, glob or run. */
int condor_parse(const struct form_world *w, const char *file, struct str text,
                 const struct condor_options *o, struct form *ret, struct err *err);
