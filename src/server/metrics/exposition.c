#include "server/metrics/exposition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABELS_MAX 4

void exposition_family(struct buf *out, const char *name, const char *type, const char *help)
{
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label(struct buf *out, const struct exposition_label *l)
{
        buf_printf(out, "%s=\"", l->name);
        for (const char *p = l->value; *p; p++) {
                if (*p == '\n')
                        buf_addz(out, "\\n");
                else if (*p == '"' || *p == '\\')
                        buf_printf(out, "\\%c", *p);
                else
                        buf_char(out, *p);
        }
        buf_char(out, '"');
}

void exposition_value(struct buf *out, const char *name, const struct exposition_label *labels, double value)
{
        buf_addz(out, name);
        for (size_t i = 0; labels && labels[i].name; i++) {
                buf_char(out, i ? ',' : '{');
                label(out, &labels[i]);
        }
        if (labels && labels[0].name)
                buf_char(out, '}');
        if (value == floor(value) && fabs(value) < 9e15)
                buf_printf(out, " %lld\n", (long long)value);
        else
                buf_printf(out, " %.15g\n", value);
}

void exposition_observe(struct exposition_histogram *h, const struct exposition_bounds *b, double seconds,
                        uint64_t times)
{
        size_t i = 0;

        if (!(seconds > 0))
                seconds = 0;
        while (i < b->count && seconds > b->upper[i])
                i++;
        h->count[i] += times;
        h->sum += seconds * (double)times;
}

static void part(struct buf *out, const char *name, const char *suffix, const struct exposition_label *labels,
                 double value)
{
        char full[128];

        snprintf(full, sizeof(full), "%s%s", name, suffix);
        exposition_value(out, full, labels, value);
}

void exposition_histogram(struct buf *out, const char *name, const struct exposition_label *labels,
                          const struct exposition_bounds *b, const struct exposition_histogram *h)
{
        struct exposition_label with[LABELS_MAX + 1] = {{NULL, NULL}};
        char bound[32] = "+Inf";
        uint64_t sum = 0;
        size_t n = 0;

        for (; labels && labels[n].name && n + 1 < LABELS_MAX; n++)
                with[n] = labels[n];
        with[n] = (struct exposition_label){"le", bound};
        for (size_t i = 0; i <= b->count; i++) {
                sum += h->count[i];
                if (i < b->count)
                        snprintf(bound, sizeof(bound), "%g", b->upper[i]);
                else
                        snprintf(bound, sizeof(bound), "+Inf");
                part(out, name, "_bucket", with, (double)sum);
        }
        with[n] = (struct exposition_label){NULL, NULL};
        part(out, name, "_sum", with, h->sum);
        part(out, name, "_count", with, (double)sum);
}
