/* Jobs that start together. HTCondor's parallel universe makes one job of several nodes; here each node is a
 * job, and machine_count of them are a gang (the core's GangSize). What a part's gangs are must be known
 * before its attributes are made, because $(Node) is a job's place in its gang there. */
#include <errno.h>

#include "jdl/condor/reader.h"

static int gangs_read_count(struct reader *r, const struct entry *e, uint64_t least, uint64_t *ret)
{
        if (e->late || str_to_u64(buf_view(&e->text), ret) || *ret < least || *ret > FORM_MEMBERS_MAX)
                return entry_fail(r, e, "'" STR_FMT "' is no whole number of at least %llu",
                                  STR_ARG(str_head(buf_view(&e->text), 60)), (unsigned long long)least);
        return 0;
}

/* Each job that the queue statement names becomes as many. */
static int machines(struct reader *r, const struct entry *e)
{
        struct form_part *p = r->part;
        uint64_t count, jobs = p->rows * p->steps;
        int rc = gangs_read_count(r, e, 1, &count);

        if (rc)
                return rc;
        if (r->universe != UNIVERSE_PARALLEL && count > 1)
                return entry_fail(
                        r, e,
                        "several machines for a job need universe = parallel; for more of one machine "
                        "use request_cpus, for jobs that start together gang_size");
        if (r->universe != UNIVERSE_PARALLEL)
                return 0;
        if (jobs > 0 && count > (FORM_MEMBERS_MAX - r->first_member) / jobs)
                return entry_fail(r, e, "a request can't have more than %u jobs", FORM_MEMBERS_MAX);
        p->steps *= count;
        rc = attribute_expression(r, "GangSize", e, buf_view(&e->text));
        r->gangs = rc == 0;
        return rc;
}

static int own_size(struct reader *r, const struct entry *e)
{
        uint64_t count = 0;
        int rc;

        if (str_ieqz(entry_unquoted(e), "all")) {
                attribute_default(r, "GangSize", "0");
                r->gangs = true;
                return 0;
        }
        rc = gangs_read_count(r, e, 0, &count);
        if (rc)
                return rc;
        if (count && (r->part->rows * r->part->steps) % count)
                return entry_fail(r, e, "%llu jobs are no gangs of %llu: let `queue` make a multiple of it",
                                  (unsigned long long)(r->part->rows * r->part->steps),
                                  (unsigned long long)count);
        r->gangs = true;
        return attribute_expression(r, "GangSize", e, buf_view(&e->text));
}

static int within(struct reader *r, const struct entry *e)
{
        static const char *const words[] = {"node", "group", "anywhere"};

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (str_ieqz(entry_unquoted(e), words[i])) {
                        attribute_default_string(r, "GangWithin", words[i]);
                        return 0;
                }
        return entry_fail(r, e, "'" STR_FMT "' is none of node, group and anywhere",
                          STR_ARG(str_head(buf_view(&e->text), 40)));
}

int gangs_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry count = {0}, size = {0}, where = {0}, by = {0};
        int a = entry_get(r, "machine_count", &count), b = entry_get(r, "gang_size", &size);
        int c = entry_get(r, "gang_within", &where), d = entry_get(r, "gang_group_by", &by);
        int rc = a < 0 ? a : b < 0 ? b : c < 0 ? c : d < 0 ? d : 0;

        r->gangs = false;
        if (rc)
                return rc;
        if (b && r->universe == UNIVERSE_PARALLEL)
                return entry_fail(r, &size, "in universe = parallel a gang is machine_count jobs");
        if (a)
                rc = machines(r, &count);
        if (!rc && !a && r->universe == UNIVERSE_PARALLEL) {
                attribute_default(r, "GangSize", "1");
                r->gangs = true;
        }
        if (!rc && r->universe == UNIVERSE_PARALLEL)
                attribute_default(r, "WantIOProxy",
                                  "true"); /* launchers tell each other by it where they are */
        if (!rc && b)
                rc = own_size(r, &size);
        if (!rc && (c || d) && !r->gangs)
                return entry_fail(r, c ? &where : &by,
                                  "there are no gangs without gang_size, or machine_count in "
                                  "universe = parallel");
        if (!rc && c)
                rc = within(r, &where);
        if (!rc && d)
                rc = attribute_string(r, "GangGroupBy", &by, entry_unquoted(&by));
        return rc;
}
