/* exposition: metrics in the text format of Prometheus.
 *
 * Source: Prometheus's text exposition format, version 0.0.4. A family is a name, a type, a line of help and
 * its samples, which stand together; names end in the unit, and counters in _total. Times are in seconds,
 * sizes in bytes.
 */
#pragma once
#include "base/buf.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Begins a family. type: "counter", "gauge" or "histogram". */
void exposition_family(struct buf *out, const char *name, const char *type, const char *help);

/* Labels are pairs of a name and a value; the first NULL name ends them. Values are escaped. */
struct exposition_label {
        const char *name, *value;
};
/* A sample: name{labels} value. labels may be NULL. */
void exposition_value(struct buf *out, const char *name, const struct exposition_label *labels, double value);

/* A family of one sample without labels. */
void exposition_gauge(struct buf *out, const char *name, const char *help, double value);
void exposition_counter(struct buf *out, const char *name, const char *help, double value);
/* The families of this process, by the names that Prometheus's own client libraries give them: processor
 * time, memory, open files. */
void exposition_process(struct buf *out);

/* Upper bounds of a histogram's buckets, in seconds, ascending; constant for the life of the program. */
#define EXPOSITION_BOUNDS_MAX 16
struct exposition_bounds {
        size_t count; /* up to EXPOSITION_BOUNDS_MAX */
        double upper[EXPOSITION_BOUNDS_MAX];
};
struct exposition_histogram {
        uint64_t count[EXPOSITION_BOUNDS_MAX + 1]; /* in each interval; the last is above all bounds */
        double sum;
};
/* Adds `times` observations of `seconds`; a negative value counts as 0. */
void exposition_observe(struct exposition_histogram *h, const struct exposition_bounds *b, double seconds,
                        uint64_t times);
/* Appends the samples of a histogram: name_bucket with the label le, cumulative, to le="+Inf"; name_sum;
 * name_count. At most three labels. */
void exposition_histogram(struct buf *out, const char *name, const struct exposition_label *labels,
                          const struct exposition_bounds *b, const struct exposition_histogram *h);
