/* form: the form that every job description is translated to.
 *
 * A front end (condor/, dag/, cwl/, galaxy/, rdl/, sums/, stork/, tes/) reads a file and gives a form; the
 * command line sends the form to the server as JSON. A form is one request: parts in order, each a template
 * (attributes as ClassAd expression text) with a table of items. Member numbers run through the parts: a
 * part has rows * steps members, row by row. Nothing is expanded: `queue 1000000` is one part with steps =
 * 1000000.
 *
 * Text of an attribute may hold late macros, which take their value when a job is made of the member:
 * $(Process) $(ProcId) $(Cluster) $(ClusterId) $(Step) $(Row) $(ItemIndex) and the part's item variables,
 * with the forms that base/job/macro.h expands. Everything else has been expanded by the front end.
 *
 * Pure: files, globs, environment and commands come through struct form_world.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/set.h"

struct form_replica {
        struct str url, host, store; /* host: the host with the disk; empty: reachable from anywhere */
};
struct form_found {             /* file found in a catalog */
        uint64_t bytes, events; /* events: from its metadata, if requested; 0: not known */
        struct str order;       /* value of the requested key, as text; empty: it has none */
        bool has_size;
        const struct form_replica *replicas;
        size_t replica_count;
};

/* Kinds of presets of the server's settings that a request names, in the order in which the server applies
 * them. */
enum form_preset {
        FORM_PRESET_INITIALIZER,
        FORM_PRESET_APPLICATION,
        FORM_PRESET_DISPATCHER,
        FORM_PRESET_QUEUE,
        FORM_PRESET_POLICY,
        FORM_PRESET_KINDS
};
struct form_time_limit {
        uint64_t seconds; /* 0: nothing limits the time of jobs */
        char of[160];     /* whose limit it is, for people: "the virtual queue short" */
};

/* Access of a front end to the outside. The command line's is real; the server's refuses all calls. */
struct form_world {
        void *arg;
        /* Reads a whole file, relative to the current directory. Returns 0 or -errno. */
        int (*read_file)(void *arg, const char *path, struct buf *ret);
        /* Gives the matching paths, sorted; a folder's ends with a slash. want: 'a' files and directories,
         * 'f' files only, 'd' directories only. */
        int (*glob)(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                    void *to);
        const char *(*getenv)(void *arg, const char *name); /* NULL when unset */
        /* Gives the standard output of a shell command. Returns 0; -ECANCELED: the command failed; or
         * another -errno. */
        int (*run)(void *arg, const char *command, struct buf *ret_stdout);
        /* Passes each file that a query of a catalog finds to fn, with its usable replicas, its events, and
         * its value of the key `order` (NULL: none is requested). An empty name is the server's own catalog.
         * Returns 0, or -errno with err. NULL: there is no catalog. */
        int (*catalog)(void *arg, struct str name, struct str query, bool events, const char *order,
                       void (*fn)(void *to, const struct form_found *f), void *to, struct err *err);
        /* Gives the time that a job may take at most by the server's settings, if its request names these
         * presets (empty: none of the kind) and sets no allowed_execute_duration. Of the virtual queues of a
         * policy the one with the shortest time counts, because its jobs may go to any of them. Returns 0, or
         * -errno with err: it is not known. May be NULL. */
        int (*time_limit)(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                          struct err *err);
        /* Gives the bytes of a file. Returns 0, or -errno. May be NULL. */
        int (*size)(void *arg, const char *path, uint64_t *ret);
        const char *const
                *environment; /* all variables, NAME=value, NULL at the end; NULL: cannot be listed */
        const char *cwd;      /* absolute: initialdir's default */
        bool no_folder;       /* there is no submit folder: cwd is "/", and the server keeps the outputs */
        int64_t now_s;
        uint64_t random; /* seed for $RANDOM_CHOICE */
};

struct form_attribute {
        char *name, *text; /* text: one ClassAd expression, strings with their quotes */
        unsigned line;     /* where it was written; 0: a default */
        bool late;         /* holds late macros */
};

struct form_part {
        struct form_attribute *attributes;
        size_t attribute_count, attribute_cap;
        char **variables; /* item variable names; none: no items */
        size_t variable_count;
        struct buf items; /* rows: values separated by \x1f, each row ended by \n; a value holds neither */
        uint64_t rows;    /* 1 when there are no items */
        uint64_t steps;   /* jobs per row */
        unsigned line;    /* of the queue statement */
};

/* Names of files, one a line, that are sent to the server beside the request, under the name
 * FORM_LIST_PREFIX and the number of the list. */
struct form_list {
        struct buf text;
};
#define FORM_LIST_PREFIX ".drover_files."

struct form_warning {
        unsigned line;
        char *text;
};

struct form {
        bool hold; /* every job starts held; HoldOnSubmit does the same for one part */
        struct form_part *parts;
        size_t part_count, part_cap;
        struct form_list *lists;
        size_t list_count, list_cap;
        struct buf notes; /* further output of a dry run */
        struct form_warning *warnings;
        size_t warning_count, warning_cap;
        struct buf edges; /* dependencies of jobs: "0-9>10;10>11:any"; see drover-dag(5) */
};

#define FORM_MEMBERS_MAX 10000000u /* maximum number of jobs in a request */
#define FORM_TEXT_MAX    (64u << 20)

void form_init(struct form *f);
void form_deinit(struct form *f);
uint64_t form_members(const struct form *f); /* total number of jobs */
struct form_part *form_add_part(struct form *f, unsigned line);
void form_drop_part(struct form *f); /* drops the last part */
/* Sets an attribute of a part; the last one of a name wins. Both copied. */
void form_set(struct form_part *p, struct str name, struct str text, unsigned line);
const struct form_attribute *form_get(const struct form_part *p, struct str name); /* NULL: not set */
/* Records whether a set attribute has late macros; form_set records that it has none. */
void form_set_late(struct form_part *p, struct str name, bool late);
/* returns its number among the part's variables */
size_t form_add_variable(struct form_part *p, struct str name);
/* Adds an edge: the children wait for the parents; nothing if one of them is empty. when: "" or a condition,
 * as
 * ":any" (core/model/dependency.h). What grows beyond edges.max is dropped (buf_check). */
void form_add_edge(struct form *f, const struct set *parents, const struct set *children, const char *when);
void form_request_id(const char *uuid, struct buf *to); /* appends a request's uuid as its jobs see it */
/* Gives the parts with a dataset the attribute that tells their jobs of which request they are, by its uuid,
 * and on which host it was submitted. */
void form_name_datasets(struct form *f, const char *uuid, const char *host);
struct form_list *form_add_list(struct form *f); /* borrowed until another is added */
/* Adds a warning; one that was given before with this line and text is not repeated. */
void form_warn(struct form *f, unsigned line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
