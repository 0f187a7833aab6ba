/* sums: translates a description of STAR's Unified Meta Scheduler (SUMS) to a request.
 *
 * The description is XML: a command for csh, its input files (by catalog, list, command or path), how they
 * are split into processes, which files are sent, and where outputs go. The input files become a dataset
 * (jdl/condor), and the rest becomes lines of the submit language, so that every default is the same.
 * Anything without an equivalent is an error or a warning that names its line. The manual is
 * drover-sums(7).
 *
 * Source: the manual of the STAR scheduler and SUMS_UJDL.xsd (star.bnl.gov, public/comp/Grid/scheduler).
 * Pure: files, commands and the catalog come through struct form_world. */
#pragma once
#include "jdl/condor/condor.h"
#include "jdl/sums/entities.h"

#define SUMS_TEXT_MAX (1u << 20) /* bytes of a description */

struct sums_job {
        const char *file; /* for messages */
        struct str text;
        const struct entity *entities; /* for a template */
        size_t entity_count;
        const char *request_id; /* 32 hexadecimal digits */
};
/* Tasks of the submit beside sending the request. {0} at first. */
struct sums_told {
        bool simulate;                                     /* write everything, submit nothing */
        struct buf name;                                   /* empty: none */
        struct buf script;                                 /* script of one job, for sh */
        struct buf command;                                /* command as it was written, for csh */
        char *report_folder, *script_folder, *list_folder; /* NULL: the folder of the submit */
};

bool sums_is(struct str text); /* true for XML, which a submit file never is */

#define SUMS_KEYWORD_PREFIX "sums:" /* in statistics */
/* Returns whether it is what statistics call a part of a SUMS description: an attribute of <job>, as
 * filesPerHour, or another element or its attribute, as SandBox and input.nFiles. */
bool sums_is_keyword(struct str name);
/* Translates the description. Returns 0; -EINVAL, -E2BIG or -ENOSYS with err, or the error of a call of
 * form_world. */
int sums_parse(const struct form_world *w, const struct sums_job *job, const struct condor_options *o,
               struct form *ret, struct sums_told *told, struct err *err);
void sums_told_deinit(struct sums_told *t);
