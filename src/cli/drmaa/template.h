/* template: DRMAA's job template, and the submit file that it is. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/drmaa/list.h"

struct job_template;
struct job_template *job_template_new(void);
void job_template_free(struct job_template *t);

/* The names of attributes: those with one value, or those with several. */
void job_template_names(bool several, struct list *ret);
/* The following return a DRMAA_ERRNO_..., with err: a name that is not known, one of the other kind, a value
 * that cannot be meant. */
int job_template_set(struct job_template *t, const char *name, const char *value, struct err *err);
int job_template_set_all(struct job_template *t, const char *name, const char *const *values,
                         struct err *err);
/* *ret is borrowed; NULL: the attribute is not set. */
int job_template_get(const struct job_template *t, const char *name, const char **ret, struct err *err);
int job_template_get_all(const struct job_template *t, const char *name, const struct list **ret,
                         struct err *err);

/* Jobs of one call: numbers first, first + step, ... */
struct bulk {
        bool one; /* no numbers: drmaa_run_job */
        int first, step;
        uint32_t count;
};
/* Appends the submit file. now_s: for start times and deadlines that name no day. A DRMAA_ERRNO_..., with
 * err. */
int job_template_write(const struct job_template *t, const struct bulk *bulk, int64_t now_s, struct buf *out,
                       struct err *err);

/* Reads DRMAA's times, [[[[CC]YY/]MM/]DD] hh:mm[:ss] [{-|+}UU:uu], into seconds since 1970. What is left out
 * is the first such time that is not before now_s, in this machine's zone. False: it is no such time. */
bool job_template_time(const char *text, int64_t now_s, int64_t *ret);
/* [[h:]m:]s into seconds; false: it is none. */
bool job_template_duration(const char *text, int64_t *ret);
