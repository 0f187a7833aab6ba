/* template: DRMAA's job template, and its translation to a submit file. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/drmaa/list.h"

struct job_template;
struct job_template *job_template_new(void);
void job_template_free(struct job_template *t);

/* Gives the names of the attributes with one value, or with several. */
void job_template_names(bool several, struct list *ret);
/* The following return a DRMAA_ERRNO_..., with err: an unknown name, a name of the other kind, or an
 * impossible value. */
int job_template_set(struct job_template *t, const char *name, const char *value, struct err *err);
int job_template_set_all(struct job_template *t, const char *name, const char *const *values,
                         struct err *err);
/* Give the value of an attribute. *ret is borrowed; NULL: the attribute is not set. */
int job_template_get(const struct job_template *t, const char *name, const char **ret, struct err *err);
int job_template_get_all(const struct job_template *t, const char *name, const struct list **ret,
                         struct err *err);

/* Numbers of the jobs of one call: first, first + step, ... */
struct bulk {
        bool one; /* no numbers: drmaa_run_job */
        int first, step;
        uint32_t count;
};
/* Appends the submit file. now_s: completes start times and deadlines without a day. Returns a
 * DRMAA_ERRNO_..., with err. */
int job_template_write(const struct job_template *t, const struct bulk *bulk, int64_t now_s, struct buf *out,
                       struct err *err);

/* Reads DRMAA's times, [[[[CC]YY/]MM/]DD] hh:mm[:ss] [{-|+}UU:uu], into seconds since 1970. Omitted parts
 * are chosen so that the time is the first one not before now_s, in this machine's time zone. Returns false
 * if the text has another form. */
bool job_template_time(const char *text, int64_t now_s, int64_t *ret);
/* Reads [[h:]m:]s into seconds. Returns false if the text has another form. */
bool job_template_duration(const char *text, int64_t *ret);
