/* tool: a Galaxy tool's XML with its macros, imports and tokens filled in, and what a job of it needs.
 *
 * For galaxy.c only: read.c reads the file, parameters.c makes variables of its inputs and a job's
 * parameters, dataset.c those of files, outputs.c those of its outputs, command.c writes the script.
 */
#pragma once
#include <jansson.h>

#include "base/xml.h"
#include "jdl/form.h"
#include "jdl/galaxy/expression.h"

#define TOOL_FILES_MAX 17 /* with what is imported */
#define TOOL_TEXT_MAX  (4u << 20)
#define TOOL_NODES_MAX 100000u     /* elements that macros make */
#define TOOL_BYTES_MAX (16u << 20) /* of text that macros and tokens make */
#define TOOL_DATA_MAX  10000u      /* input files, outputs */
#define TOOL_BOX       "@box@"     /* in texts: the job's folder, filled in where it runs */

struct tool_output {
        const struct xml *at;
        struct str name, file; /* file: beneath the job's folder */
        struct datum *data;    /* the template's variable */
};

struct tool {
        const struct form_world *w;
        struct form *warnings;
        const char *file;
        struct xml *root;
        struct xml *kept[TOOL_FILES_MAX]; /* what was imported: its names are borrowed */
        size_t kept_count;
        uint64_t nodes, bytes; /* that macros and tokens have made */
        struct arena arena;
        struct expressions x;
        struct str params_dir; /* absolute: paths of the parameters begin here */
        struct str folder;     /* the tool's own, absolute; its name is the last part */
        struct str *files;     /* inputs, absolute or URLs */
        size_t file_count, file_cap;
        struct tool_output *outputs;
        size_t output_count, output_cap;
        bool uses_folder; /* $__tool_directory__ is in what was rendered */
};

void tool_init(struct tool *t, const struct form_world *w, const char *file, struct form *warnings);
void tool_deinit(struct tool *t);
/* -EINVAL with err "FILE:LINE: …" at an element. */
int tool_fail(const struct xml *at, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* An attribute of an element: its text, or `otherwise`; is it "true", "yes" or "1"? */
struct str tool_attribute(const struct xml *at, const char *name, const char *otherwise);
bool tool_says(const struct xml *at, const char *name);
void tool_warn(struct tool *t, const struct xml *at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* 0, or -errno with err. */
int tool_read(struct tool *t, struct err *err);
/* Variables of the inputs; `given` is the job's parameters, an object. Then those of the outputs, whose
 * filters may ask for them. */
int tool_parameters(struct tool *t, json_t *given, struct err *err);
int tool_outputs(struct tool *t, struct err *err);
/* What a job gives for a <param>. Its name, as a user knows it. */
struct str tool_name(const struct xml *param);
/* Appends a word, whatever JSON calls it. False: it is an array, an object or null. */
bool tool_word(json_t *given, struct buf *out);
/* A file: "data.txt", or {"path": "data.txt", "ext": "txt", "name": "…", "metadata": {…}}. It becomes one of
 * the tool's files; its variable is in *ret. */
int tool_dataset(struct tool *t, const struct xml *param, json_t *given, struct datum **ret, struct err *err);
/* What the shell of the job is given; *ret_command (may be NULL) is the tool's command alone, as it was
 * rendered. */
int tool_script(struct tool *t, struct buf *out, struct buf *ret_command, struct err *err);
