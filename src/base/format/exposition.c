#include "base/format/exposition.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

void exposition_gauge(struct buf *out, const char *name, const char *help, double value)
{
        exposition_family(out, name, "gauge", help);
        exposition_value(out, name, NULL, value);
}

void exposition_counter(struct buf *out, const char *name, const char *help, double value)
{
        exposition_family(out, name, "counter", help);
        exposition_value(out, name, NULL, value);
}

/* ---- of the process: names and units as Prometheus's own client libraries have them */

static double cpu_seconds(void)
{
        struct rusage u;

        if (getrusage(RUSAGE_SELF, &u) < 0)
                return 0;
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void write_memory(struct buf *out)
{
        long long pages = 0, resident = 0, size = sysconf(_SC_PAGESIZE);
        FILE *f = fopen("/proc/self/statm", "re");

        if (f && fscanf(f, "%lld %lld", &pages, &resident) == 2) {
                exposition_gauge(out, "process_virtual_memory_bytes", "Virtual memory.",
                                 (double)(pages * size));
                exposition_gauge(out, "process_resident_memory_bytes", "Resident memory.",
                                 (double)(resident * size));
        }
        if (f)
                fclose(f);
}

static void write_descriptors(struct buf *out)
{
        DIR *dir = opendir("/proc/self/fd");
        struct rlimit l;
        unsigned n = 0;

        while (dir && readdir(dir))
                n++;
        if (dir) {
                closedir(dir);
                exposition_gauge(out, "process_open_fds", "Open file descriptors.",
                                 n > 3 ? n - 3 : 0); /* . .. and ours */
        }
        if (getrlimit(RLIMIT_NOFILE, &l) == 0)
                exposition_gauge(out, "process_max_fds", "File descriptors that may be open.",
                                 (double)l.rlim_cur);
}

void exposition_process(struct buf *out)
{
        exposition_counter(out, "process_cpu_seconds_total", "Processor time.", cpu_seconds());
        write_memory(out);
        write_descriptors(out);
}
