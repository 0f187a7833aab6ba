/* What a match and a parse cost. A six-clause job against a three-clause machine, in small ads and in ads of
 * the size that HTCondor's jobs (184 attributes) and machines (71) have. Each number is the best of several
 * runs, because what disturbs a run only ever makes it slower. Lines: name value unit which-way-is-better. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "classad/match.h"
#include "classad/print.h"

#define ROUNDS 7

static const char job_text[] =
        "[ ClusterId = 7; ProcId = 42; Owner = \"alice\"; Cmd = \"/bin/sort\"; RequestCpus = 1; "
        "RequestMemory = 128;"
        " RequestDisk = 10000; FileSystemDomain = \"site\"; JobPrio = 0;"
        " Rank = TARGET.Memory;"
        " Requirements = (TARGET.Arch == \"X86_64\") && (TARGET.OpSys == \"LINUX\") &&"
        " (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) &&"
        " (TARGET.FileSystemDomain == MY.FileSystemDomain) ]";
static const char machine_text[] =
        "[ Name = \"slot1@node1\"; Arch = \"X86_64\"; OpSys = \"LINUX\"; Cpus = 8; Memory = 16000; Disk = "
        "2000000;"
        " FileSystemDomain = \"site\"; LoadAvg = 0.25; State = \"Unclaimed\"; KeyboardIdle = 1000;"
        " Requirements = TARGET.RequestCpus <= Cpus && TARGET.RequestMemory <= Memory &&"
        " TARGET.RequestDisk <= Disk ]";

static double now_ns(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static struct ad *parse(struct symbols *s, const char *text)
{
        struct ad *ad;
        struct err err;

        if (ad_parse(s, str_of(text), CLASSAD_NEW, &ad, &err) != 0) {
                fprintf(stderr, "%s\n", err.text);
                exit(1);
        }
        return ad;
}

/* The ad with attributes added until there are n. */
static struct ad *padded(struct symbols *s, const char *text, const char *prefix, size_t n)
{
        struct ad *ad = parse(s, text), *packed;
        struct buf out BUF_CLEANUP = {0};
        char name[64];

        while (ad_count(ad) < n) {
                size_t i = ad_count(ad);

                snprintf(name, sizeof(name), "%sAttribute%zu", prefix, i);
                if (i % 3)
                        ad_set_integer(ad, symbols_intern(s, str_of(name)), (int64_t)i);
                else
                        ad_set_string(ad, symbols_intern(s, str_of(name)), STR("some text of usual length"));
        }
        ad_print(&out, ad, CLASSAD_NEW, false);
        ad_free(ad);
        packed = parse(s, buf_z(&out));
        return packed;
}

static void report(const char *name, double value, const char *unit)
{
        printf("%s %.1f %s lower\n", name, value, unit);
}

static double match_ns(const struct ad *job, const struct ad *machine, enum match expect)
{
        const int n = 200000;
        struct eval ev;
        double best = 1e18;

        eval_init(&ev, 1700000000, 1);
        for (int round = 0; round < ROUNDS; round++) {
                double from = now_ns(), ns;

                for (int i = 0; i < n; i++)
                        if (match_ads(&ev, job, machine) != expect)
                                abort();
                ns = (now_ns() - from) / n;
                best = ns < best ? ns : best;
        }
        eval_deinit(&ev);
        return best;
}

static double parse_ns(struct symbols *s, const char *text, enum classad_syntax syntax)
{
        const int n = 50000;
        struct str t = str_of(text);
        double best = 1e18;

        for (int round = 0; round < ROUNDS; round++) {
                double from = now_ns(), ns;

                for (int i = 0; i < n; i++) {
                        struct ad *ad;

                        if (ad_parse(s, t, syntax, &ad, NULL) != 0)
                                abort();
                        ad_free(ad);
                }
                ns = (now_ns() - from) / n;
                best = ns < best ? ns : best;
        }
        return best;
}

int main(void)
{
        struct symbols *s = symbols_new();
        struct ad *job = parse(s, job_text), *machine = parse(s, machine_text);
        struct ad *big_job = padded(s, job_text, "Job", 184),
                  *big_machine = padded(s, machine_text, "Machine", 71);
        struct ad *other = ad_dup(machine);
        struct buf old BUF_CLEANUP = {0};

        ad_set_string(other, symbols_intern(s, STR("Arch")), STR("AARCH64"));
        ad_print(&old, job, CLASSAD_OLD, false);
        report("classad_match_two_sided", match_ns(job, machine, MATCH_YES), "ns");
        report("classad_match_two_sided_71_184_attributes", match_ns(big_job, big_machine, MATCH_YES), "ns");
        report("classad_match_refused_by_first_clause", match_ns(job, other, MATCH_LEFT_REFUSES), "ns");
        report("classad_parse_11_attributes", parse_ns(s, job_text, CLASSAD_NEW), "ns");
        report("classad_parse_11_attributes_old_syntax", parse_ns(s, buf_z(&old), CLASSAD_OLD), "ns");
        report("classad_bytes_11_attributes", (double)ad_bytes(job), "bytes");
        report("classad_bytes_184_attributes", (double)ad_bytes(big_job), "bytes");
        ad_free(job);
        ad_free(machine);
        ad_free(big_job);
        ad_free(big_machine);
        ad_free(other);
        symbols_free(s);
        return 0;
}
