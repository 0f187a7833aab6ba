#include "place/pull_policy.h"

#include <errno.h>
#include <math.h>

#define LOAD_BARE_MIN 10 /* a smaller load needs its %, since "2" may mean twice */
#define LOAD_MAX      1000000

void pull_policy_default(struct pull_policy *p)
{
        *p = (struct pull_policy){100, false, PULL_NO_LIMIT, PULL_NO_LIMIT, PULL_NO_LIMIT, PULL_NO_LIMIT};
}

struct unit {
        const char *name;
        double factor;
};
static const struct unit time_units[] = {{"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}, {NULL, 0}};
static const struct unit memory_units[] = {
        {"MiBs", 1}, {"GiBs", 1024}, {"MiBh", 3600}, {"GiBh", 3600.0 * 1024}, {"TiBh", 3600.0 * 1024 * 1024},
        {NULL, 0}};

static int amount(struct str text, const struct unit *units, uint64_t *ret)
{
        if (str_ieqz(text, "inf")) {
                *ret = PULL_NO_LIMIT;
                return 0;
        }
        size_t n = 0;
        while (n < text.n && ((text.p[n] >= '0' && text.p[n] <= '9') || text.p[n] == '.'))
                n++;
        double v;
        struct str unit = str_trim(str_skip(text, n));
        if (n == 0 || str_to_double(str_head(text, n), &v) < 0)
                return -EINVAL;
        double factor = units ? 0 : 1;
        for (const struct unit *u = units; u && u->name; u++)
                if (str_ieqz(unit, u->name))
                        factor = u->factor;
        if (factor == 0 || (!units && unit.n) || v * factor > 1e18)
                return -EINVAL;
        *ret = (uint64_t)llround(v * factor);
        return 0;
}

static int policy_load(struct str value, struct pull_policy *p)
{
        bool measured = str_istarts(value, STR("measured:"));

        if (measured)
                value = str_skip(value, 9);
        bool has_unit = str_ends(value, STR("%"));
        if (has_unit)
                value = str_head(value, value.n - 1);
        uint64_t percent;
        if (amount(value, NULL, &percent) < 0 || percent == 0 ||
            (percent > LOAD_MAX && percent != PULL_NO_LIMIT) || (!has_unit && percent < LOAD_BARE_MIN))
                return -EINVAL;
        p->load_percent = percent;
        p->measured = measured;
        return 0;
}

int pull_policy_parse(struct str text, struct pull_policy *p, struct err *err)
{
        struct pull_policy new = *p;
        struct str rest = text, part;

        while (rest.n && str_cut(&rest, ',', &part)) {
                part = str_trim(part);
                struct str key, value = part;
                if (!str_cut(&value, '=', &key) || !value.p)
                        return err_set(err, -EINVAL, "the pull policy '" STR_FMT "' has no '='",
                                       STR_ARG(part));
                key = str_trim(key);
                value = str_trim(value);
                int r;
                if (str_ieqz(key, "load"))
                        r = policy_load(value, &new);
                else if (str_ieqz(key, "jobs/day"))
                        r = amount(value, NULL, &new.jobs_per_day);
                else if (str_ieqz(key, "cpu/day"))
                        r = amount(value, time_units, &new.cpu_ms_per_day);
                else if (str_ieqz(key, "walltime/day"))
                        r = amount(value, time_units, &new.walltime_ms_per_day);
                else if (str_ieqz(key, "memory/day"))
                        r = amount(value, memory_units, &new.memory_mib_s_per_day);
                else
                        return err_set(err, -EINVAL,
                                       "the pull policy has no '" STR_FMT
                                       "': it knows load, jobs/day, cpu/day, walltime/day and memory/day",
                                       STR_ARG(key));
                if (r < 0)
                        return err_set(err, r,
                                       "the pull policy's " STR_FMT " cannot be '" STR_FMT
                                       "'; like load=150%%, jobs/day=1000, cpu/day=20h, memory/day=500GiBh",
                                       STR_ARG(key), STR_ARG(value));
        }
        *p = new;
        return 0;
}

void pull_policy_print(const struct pull_policy *p, struct buf *out)
{
        buf_printf(out, "load=%s", p->measured ? "measured:" : "");
        if (p->load_percent == PULL_NO_LIMIT)
                buf_addz(out, "inf");
        else
                buf_printf(out, "%llu%%", (unsigned long long)p->load_percent);
        if (p->jobs_per_day != PULL_NO_LIMIT)
                buf_printf(out, ",jobs/day=%llu", (unsigned long long)p->jobs_per_day);
        if (p->cpu_ms_per_day != PULL_NO_LIMIT)
                buf_printf(out, ",cpu/day=%gs", (double)p->cpu_ms_per_day / 1e3);
        if (p->walltime_ms_per_day != PULL_NO_LIMIT)
                buf_printf(out, ",walltime/day=%gs", (double)p->walltime_ms_per_day / 1e3);
        if (p->memory_mib_s_per_day != PULL_NO_LIMIT)
                buf_printf(out, ",memory/day=%lluMiBs", (unsigned long long)p->memory_mib_s_per_day);
}

void pull_use_day(struct pull_use *u, int64_t now_s)
{
        int64_t day = now_s / 86400;

        if (u->day != day)
                *u = (struct pull_use){.day = day};
}

void pull_use_started(struct pull_use *u)
{
        u->jobs++;
}

void pull_use_ended(struct pull_use *u, uint64_t cpu_ms, uint64_t walltime_ms, uint64_t memory_bytes)
{
        u->cpu_ms += cpu_ms;
        u->walltime_ms += walltime_ms;
        u->memory_mib_s += (memory_bytes >> 20) * (walltime_ms / 1000);
}

void pull_policy_allows(const struct pull_policy *p, const struct pull_use *u, const struct pull_now *now,
                        struct pull_allowance *ret)
{
        struct pull_allowance a = {PULL_NO_LIMIT, PULL_NO_LIMIT, NULL};

        if (p->load_percent != PULL_NO_LIMIT) {
                uint64_t target = now->cpus_milli * p->load_percent / 100, used = now->committed_milli;

                if (p->measured && now->load_milli > used)
                        used = now->load_milli;
                a.cpus_milli = target > used ? target - used : 0;
        }
        if (p->jobs_per_day != PULL_NO_LIMIT) {
                a.jobs = p->jobs_per_day > u->jobs ? p->jobs_per_day - u->jobs : 0;
                if (!a.jobs)
                        a.closed = "jobs per day";
        }
        if (u->cpu_ms + now->running_cpu_ms >= p->cpu_ms_per_day)
                a.closed = "cpu per day";
        if (u->walltime_ms + now->running_walltime_ms >= p->walltime_ms_per_day)
                a.closed = "walltime per day";
        if (u->memory_mib_s + now->running_memory_mib_s >= p->memory_mib_s_per_day)
                a.closed = "memory per day";
        if (a.closed)
                a.cpus_milli = a.jobs = 0;
        *ret = a;
}
