#include "sim/trace_swf.h"

#include <errno.h>
#include <math.h>

#include "base/map.h"

enum field { /* numbered from 1 in the format's definition */
             FIELD_SUBMIT = 1,
             FIELD_RUN = 3,
             FIELD_PROCS = 4,
             FIELD_MEMORY_USED = 6,
             FIELD_PROCS_ASKED = 7,
             FIELD_TIME_ASKED = 8,
             FIELD_MEMORY_ASKED = 9,
             FIELD_USER = 11,
             FIELD_PROGRAM = 13,
             FIELDS = 18
};
#define NUMBER_MAX 1e15 /* largest number (seconds, bytes, ids) that a log may have */

static const char *const field_names[FIELDS] = {
        "job number", "submit time",      "wait time",  "run time",     "processors",    "cpu time",
        "memory",     "processors asked", "time asked", "memory asked", "status",        "user",
        "group",      "program",          "queue",      "partition",    "preceding job", "think time"};

struct reader {
        struct sim_workload *w;
        const char *name;
        unsigned line;
        const struct sim_swf_options *o;
        struct sim_swf_header *head;
        struct idmap *users, *programs; /* the trace's number -> ours + 1 */
        bool begun;
        double from; /* submit time of the first job */
        struct err *err;
};

static uint32_t dense(struct idmap *m, double number, uint32_t *next)
{
        uint64_t key = (uint64_t)(int64_t)number + 1;
        void *known = idmap_get(m, key);

        if (!known) {
                known = (void *)(uintptr_t)(++*next);
                idmap_put(m, key, known);
        }
        return (uint32_t)(uintptr_t)known - 1;
}

static void read_header(struct reader *r, struct str line)
{
        static const struct {
                const char *name;
                size_t at;
        } known[] = {{"MaxProcs:", offsetof(struct sim_swf_header, procs)},
                     {"MaxNodes:", offsetof(struct sim_swf_header, nodes)}};
        uint64_t n;
        struct str word;

        line = str_trim(str_skip(line, 1));
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                struct str rest = line;

                if (str_word(&rest, &word) && str_ieqz(word, known[i].name) && str_word(&rest, &word) &&
                    str_to_u64(word, &n) == 0 && n <= UINT32_MAX)
                        *(uint32_t *)((char *)r->head + known[i].at) = (uint32_t)n;
        }
}

static int bad_field(struct reader *r, enum field f, struct str word, const char *what)
{
        return err_set(r->err, -EINVAL, "%s:%u: field %d (%s) is \"" STR_FMT "\": %s", r->name, r->line,
                       f + 1, field_names[f], STR_ARG(str_head(word, 40)), what);
}

static int check_fields(struct reader *r, const double *v, const struct str *words)
{
        if (v[FIELD_SUBMIT] < 0)
                return bad_field(r, FIELD_SUBMIT, words[FIELD_SUBMIT], "a time of 0 or more is needed");
        if (v[FIELD_RUN] > 1e9)
                return bad_field(r, FIELD_RUN, words[FIELD_RUN], "a run of more than 30 years");
        if (v[FIELD_PROCS] > 1e7 || v[FIELD_PROCS_ASKED] > 1e7)
                return bad_field(r, v[FIELD_PROCS] > 1e7 ? FIELD_PROCS : FIELD_PROCS_ASKED,
                                 words[v[FIELD_PROCS] > 1e7 ? FIELD_PROCS : FIELD_PROCS_ASKED],
                                 "more than ten million processors");
        return 0;
}

static void add_job(struct reader *r, const double *v)
{
        double procs = v[FIELD_PROCS] > 0 ? v[FIELD_PROCS] : v[FIELD_PROCS_ASKED];
        double memory_kib = v[FIELD_MEMORY_ASKED] > 0 ? v[FIELD_MEMORY_ASKED] : v[FIELD_MEMORY_USED];
        struct sim_job *j;

        if (v[FIELD_RUN] < 0 || procs < 1) {
                r->head->skipped++;
                return;
        }
        if (!r->begun) {
                r->begun = true;
                r->from = v[FIELD_SUBMIT];
        }
        j = sim_workload_add_job(r->w);
        j->submit_ms = (int64_t)((v[FIELD_SUBMIT] - r->from) * 1000 / (r->o->hurry > 0 ? r->o->hurry : 1));
        j->submit_ms = j->submit_ms < 0 ? 0 : j->submit_ms;
        j->run_ms = v[FIELD_RUN] > 0 ? (int64_t)(v[FIELD_RUN] * 1000) : 1;
        j->asked_s = v[FIELD_TIME_ASKED] > 0 && v[FIELD_TIME_ASKED] < 4e9 ? (uint32_t)v[FIELD_TIME_ASKED] : 0;
        j->cpus = (uint32_t)procs;
        /* The format counts kilobytes a processor; logs that count bytes would ask for more than there is. */
        if (memory_kib > 0 && memory_kib * procs / 1024 < 1e6)
                j->memory_mib = (uint32_t)(memory_kib * procs / 1024);
        j->user = dense(r->users, v[FIELD_USER], &r->w->user_count);
        j->program = dense(r->programs, v[FIELD_PROGRAM] + 1e6 * (v[FIELD_USER] + 1), &r->w->program_count);
        j->home = r->o->cluster;
        r->head->widest = j->cpus > r->head->widest ? j->cpus : r->head->widest;
        r->head->jobs++;
}

static int read_line(struct reader *r, struct str line)
{
        struct str words[FIELDS], rest = line;
        double v[FIELDS];
        size_t n = 0;
        int e;

        line = str_trim(line);
        if (line.n == 0)
                return 0;
        if (line.p[0] == ';') {
                read_header(r, line);
                return 0;
        }
        while (n < FIELDS && str_word(&rest, &words[n])) {
                if (str_to_double(words[n], &v[n]) || !(fabs(v[n]) <= NUMBER_MAX))
                        return bad_field(r, (enum field)n, words[n], "a number is needed");
                n++;
        }
        if (n < FIELDS)
                return err_set(r->err, -EINVAL, "%s:%u: a job has 18 fields, this line has %zu", r->name,
                               r->line, n);
        e = check_fields(r, v, words);
        if (e == 0)
                add_job(r, v);
        return e;
}

int sim_swf_read(struct sim_workload *w, const char *name, struct str text, const struct sim_swf_options *o,
                 struct sim_swf_header *ret, struct err *err)
{
        struct sim_swf_header head = {.procs = 0};
        struct reader r = {w, name, 0, o, &head, idmap_new(), idmap_new(), false, 0, err};
        struct str line;
        int e = 0;

        while (e == 0 && text.n > 0 && str_cut(&text, '\n', &line)) {
                r.line++;
                if (o->first_max && head.jobs >= o->first_max)
                        break;
                if (w->job_count >= SIM_JOBS_MAX)
                        e = err_set(err, -EINVAL, "%s:%u: more than %u jobs", name, r.line, SIM_JOBS_MAX);
                else
                        e = read_line(&r, line);
        }
        idmap_free(r.users);
        idmap_free(r.programs);
        if (e == 0 && head.jobs == 0)
                e = err_set(err, -EINVAL, "%s: no job in it that ran", name);
        if (e == 0)
                *ret = head;
        return e;
}
