#include "place/offer.h"

#include <errno.h>

#include "classad/ad.h"
#include "classad/expr.h"

/* Work for so long is kept at hand: several times what a commit and the way there and back take. */
#define AHEAD_US  100000u
#define AHEAD_MAX 256u

uint64_t offer_ahead(uint64_t mean_job_ms_x1000, uint64_t cpus_milli)
{
        if (mean_job_ms_x1000 == 0)
                return 0;
        uint64_t jobs = AHEAD_US * (cpus_milli ? cpus_milli : 1000) / 1000 / mean_job_ms_x1000;
        return jobs > AHEAD_MAX ? AHEAD_MAX : jobs;
}

void offer_text(struct buf *out, struct str s)
{
        buf_char(out, '"');
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '"' || s.p[i] == '\\')
                        buf_char(out, '\\');
                if ((unsigned char)s.p[i] >= ' ')
                        buf_char(out, s.p[i]);
        }
        buf_char(out, '"');
}

static void text(struct buf *out, const char *name, const char *value)
{
        buf_printf(out, "%s = ", name);
        offer_text(out, str_of(value ? value : ""));
        buf_addz(out, "; ");
}

static void cpus(struct buf *out, const char *name, uint64_t milli)
{
        buf_printf(out, "%s = %llu; ", name, (unsigned long long)(milli / 1000));
}

/* Appends attributes, each ended by a semicolon, whether the site wrote one or not. */
static void attributes(struct buf *out, const char *z)
{
        struct str s = str_trim(str_of(z));

        if (s.n == 0)
                return;
        buf_str(out, s);
        buf_addz(out, s.p[s.n - 1] == ';' ? " " : "; ");
}

/* Parses one expression alone, so that the position of an error is that in the site's text. */
static int check_expression(struct symbols *symbols, const char *what, const char *text, struct err *err)
{
        struct expr *e = NULL;
        struct err why = {""};

        if (!text)
                return 0;
        int r = expr_parse(symbols, str_of(text), &e, &why);
        if (r)
                return err_set(err, -EINVAL, "%s cannot be read: %s", what, why.text);
        expr_free(e);
        return 0;
}

static int check_attributes(struct symbols *symbols, const char *text, struct err *err)
{
        BUF_CLEANUP struct buf b = {0};
        struct ad *ad = NULL;
        struct err why = {""};

        if (!text)
                return 0;
        buf_addz(&b, "[ ");
        attributes(&b, text);
        buf_addz(&b, " ]");
        int r = ad_parse(symbols, buf_view(&b), CLASSAD_NEW, &ad, &why);
        ad_free(ad);
        return r ? err_set(err, -EINVAL, "attributes cannot be read: %s", why.text) : 0;
}

int offer_check(const struct offer_place *p, struct err *err)
{
        struct symbols *symbols = symbols_new();
        int r = check_expression(symbols, "requirements", p->requirements, err);

        if (r == 0)
                r = check_expression(symbols, "rank", p->rank, err);
        if (r == 0)
                r = check_attributes(symbols, p->extra, err);
        symbols_free(symbols);
        return r;
}

void offer_ad(const struct offer_place *p, const struct offer_now *n, struct buf *out)
{
        uint64_t ahead_cpus = n->ahead * n->job_cpus_milli, ahead_memory = n->ahead * n->job_memory_bytes;

        buf_addz(out, "[ MyType = \"Machine\"; ");
        if (p->shows)
                attributes(out, p->shows);
        text(out, "Name", p->name);
        text(out, "Machine", p->machine);
        text(out, "QueueName", p->queue);
        if (p->arch)
                text(out, "Arch", p->arch);
        if (p->opsys)
                text(out, "OpSys", p->opsys);
        text(out, "FileSystemDomain", p->filesystem_domain);
        text(out, "EnforcedLimits", p->limits);
        text(out, "PullPolicy", p->pull_policy);
        cpus(out, "Cpus", n->cpus_milli + ahead_cpus);
        cpus(out, "FreeCpus", n->cpus_milli);
        cpus(out, "TotalCpus", p->cpus_milli);
        buf_printf(out, "Memory = %llu; FreeMemory = %llu; TotalMemory = %llu; ",
                   (unsigned long long)((n->memory_bytes + ahead_memory) >> 20),
                   (unsigned long long)(n->memory_bytes >> 20), (unsigned long long)(p->memory_bytes >> 20));
        buf_printf(out, "Disk = %llu; TotalDisk = %llu; LoadAvg = %llu.%03llu; Running = %llu; ",
                   (unsigned long long)(n->disk_bytes >> 10), (unsigned long long)(p->disk_bytes >> 10),
                   (unsigned long long)(n->load_milli / 1000), (unsigned long long)(n->load_milli % 1000),
                   (unsigned long long)n->running);
        buf_addz(out, "HasFileTransfer = true; State = \"Unclaimed\"; Activity = \"Idle\"; "
                      "CpuIsBusy = LoadAvg - (TotalCpus - FreeCpus) >= 0.5; ");
        if (n->devices)
                buf_addz(out, n->devices);
        if (p->walltime_max_ms)
                buf_printf(out, "WalltimeMax = %llu; ", (unsigned long long)(p->walltime_max_ms / 1000));
        if (p->rank)
                buf_printf(out, "Rank = %s; ", p->rank);
        attributes(out, p->extra);
        buf_addz(
                out,
                " Requirements = (TARGET.RequestCpus =?= undefined || TARGET.RequestCpus <= MY.TotalCpus) && "
                "(TARGET.RequestMemory =?= undefined || TARGET.RequestMemory <= MY.TotalMemory)");
        if (p->walltime_max_ms)
                buf_addz(out, " && (TARGET.AllowedExecuteDuration =?= undefined || "
                              "TARGET.AllowedExecuteDuration <= MY.WalltimeMax)");
        if (p->requirements)
                buf_printf(out, " && (%s)", p->requirements);
        buf_addz(out, " ]");
}

unsigned offer_wish(struct str word)
{
        static const char *const words[] = {"small-input", "short-run", "large-memory"};

        for (unsigned i = 0; i < 3; i++)
                if (str_eqz(word, words[i]))
                        return i + 1;
        return 0;
}
