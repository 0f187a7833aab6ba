/* tool: a Galaxy tool's XML with its macros, imports and tokens replaced, and the values of a job.
 *
 * Only for the files of this folder: read.c reads the tool. parameters.c makes variables of its inputs and
 * a job's parameters, dataset.c of files, collection.c of collections of files, and outputs.c of its
 * outputs. table.c reads data tables, and options.c selects the rows that a parameter offers. inputs.c
 * writes the inputs as JSON, command.c writes the script. */
#pragma once
#include <jansson.h>

#include "base/format/xml.h"
#include "jdl/form/form.h"
#include "jdl/galaxy/expression.h"

#define TOOL_FILES_MAX  17 /* maximum number of files, imports included */
#define TOOL_TEXT_MAX   (4u << 20)
#define TOOL_NODES_MAX  100000u     /* maximum elements made by macros */
#define TOOL_BYTES_MAX  (16u << 20) /* maximum bytes of text made by macros and tokens */
#define TOOL_DATA_MAX   10000u      /* maximum number of input files, and of outputs */
#define TOOL_TABLES     "tool_data_table_conf.xml"
#define TOOL_MEMORY_MAX (128u << 20) /* maximum bytes that data tables may take */
#define TOOL_ROWS_MAX   10000000u    /* maximum rows that filters of options process */
#define TOOL_BOX        "@box@"      /* stands for the job's folder in texts; replaced where the job runs */

struct tool_output {
        const struct xml *at;
        struct str name, file; /* file: relative to the job's folder */
        struct datum *data;    /* variable of the template */
        bool uses_files;       /* $NAME.files_path was used: the folder is transferred back as a tar file */
};

struct tool {
        const struct form_world *w;
        struct form *warnings;
        const char *file;
        struct xml *root;
        struct xml *kept[TOOL_FILES_MAX]; /* imported files, whose names are borrowed */
        size_t kept_count;
        uint64_t nodes, bytes; /* elements and bytes made by macros and tokens */
        struct arena arena;
        struct expressions x;
        struct str params_dir; /* absolute; base of the paths in the parameters */
        struct str folder;     /* folder of the tool, absolute; its name is the last component */
        struct str *files;     /* inputs, absolute or URLs */
        size_t file_count, file_cap;
        struct tool_output *outputs;
        size_t output_count, output_cap;
        bool uses_folder; /* $__tool_directory__ was used */
        /* file that lists data tables; NULL: TOOL_TABLES in the tool's folder, if it exists */
        const char *tables_file;
        struct xml *tables_root; /* its content; NULL: not read, or missing */
        bool tables_read;        /* it was searched for */
        /* MAP of the tables and files that were read; each is a struct tool_table as datums */
        struct datum *tables;
        uint64_t rows_seen; /* processed by filters of options */
};

/* A data table, or a file of options: rows of fields. */
struct tool_table {
        struct datum *columns; /* MAP: the index of each column, an INT */
        struct datum *rows;    /* LIST of LISTs of TEXTs; each has all named columns */
};
/* The values of other parameters that one parameter can use. */
struct tool_values {
        struct datum *(*get)(const void *arg, struct str name); /* returns NULL if there is none */
        const void *arg;
};

void tool_init(struct tool *t, const struct form_world *w, const char *file, struct form *warnings);
void tool_deinit(struct tool *t);
/* Puts "FILE:LINE: …" of an element into err. Returns -EINVAL. */
int tool_fail(const struct xml *at, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* tool_attribute: returns an attribute's text, or `otherwise`. tool_says: returns whether it is "true",
 * "yes" or "1". */
struct str tool_attribute(const struct xml *at, const char *name, const char *otherwise);
bool tool_says(const struct xml *at, const char *name);
void tool_warn(struct tool *t, const struct xml *at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Reads the tool. Returns 0, or -errno with err. */
int tool_read(struct tool *t, struct err *err);
/* Make the variables of the inputs from the job's parameters, the object `given`; and then those of the
 * outputs, whose filters may use them. */
int tool_parameters(struct tool *t, json_t *given, struct err *err);
int tool_outputs(struct tool *t, struct err *err);
/* Returns the name of a <param> as users know it. */
struct str tool_name(const struct xml *param);
struct str tool_variable(struct tool *t, const struct xml *param); /* the same as a name in the template */
/* Returns the <when> that a conditional's values choose; NULL: none. */
const struct xml *tool_when(struct tool *t, const struct xml *conditional, const struct datum *values);
/* Appends the values of the inputs as JSON, for <inputs> among the configfiles; paths: with the paths of
 * files. */
int tool_inputs_json(struct tool *t, bool paths, struct buf *out, struct err *err);
/* Appends a JSON scalar as a word. Returns false for an array, an object or null. */
bool tool_word(json_t *given, struct buf *out);
/* Adds a file or folder to the tool's files; *ret_name: its name in the job's folder. */
int tool_add_file(struct tool *t, const struct xml *param, struct str path, struct str *ret_name,
                  struct err *err);
bool tool_is_file(json_t *given); /* returns whether tool_dataset can read it */
/* Reads a file, "data.txt" or {"path": "data.txt", "ext": "txt", "name": "…", "metadata": {…}, "extra_files":
 * "FOLDER"}, adds it to the tool's files, and gives its variable in *ret. */
int tool_dataset(struct tool *t, const struct xml *param, json_t *given, struct datum **ret, struct err *err);
/* Reads a collection of datasets: a list of files, {"NAME": file, …}, or {"collection_type": "TYPE",
 * "elements": [{"identifier": "NAME", "path": "…"}, …]}, each also with collections in place of files. Its
 * type must be among those of the <param>. */
int tool_collection(struct tool *t, const struct xml *param, json_t *given, struct datum **ret,
                    struct err *err);
/* Sets the name of a collection, which is its identifier if it is an element of another. */
void tool_name_collection(struct tool *t, struct datum *collection, struct str name);
/* Makes the value of an optional <param> without a collection. */
struct datum *tool_no_collection(struct tool *t);
/* Adds the datasets of a collection, and of those within it, to a list. Returns false if they are too many.
 */
bool tool_flatten(struct tool *t, const struct datum *collection, struct datum *list);
/* Reads the table or file that <options> name. Returns 0, with ret->rows NULL if they name none, or one
 * that does not exist. */
int tool_table(struct tool *t, const struct xml *options, struct tool_table *ret, struct err *err);
/* Reads the rows that the <options> of a <param> offer: the rows of a table that pass its filters. Returns
 * 0, with ret->rows NULL if it has no table or the table does not exist: then any value may be chosen. */
int tool_options(struct tool *t, const struct xml *param, const struct tool_values *values,
                 struct tool_table *ret, struct err *err);
/* Returns a field of a row by its column's name; NULL: there is no such column. */
struct datum *tool_field(const struct tool_table *table, const struct datum *row, const char *column);
/* Appends the job's shell script; *ret_command (may be NULL) gets the tool's command alone, as it was
 * rendered. */
int tool_script(struct tool *t, struct buf *out, struct buf *ret_command, struct err *err);
