#include "cli/slurm/depend.h"

#include <errno.h>
#include <strings.h>

#include "classad/print.h"
#include "cli/client/api.h"
#include "cli/slurm/ids.h"

static int refuse_entry(struct str entry, const char *why, struct err *err)
{
        return err_set(err, -EINVAL, "Job dependency problem: " STR_FMT ": %s", STR_ARG(str_head(entry, 100)),
                       why);
}

/* Appends `id` for depends_on: a request as it is; of an array's tasks the id of each, as the server prints
 * it (a request that has only one job is printed by the request's number). */
static int add_members(struct cli *cli, const struct job_id *id, struct str entry, const char *how,
                       struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf path = {0}, which = {0}, constraint = {0}, name = {0};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view job;
        size_t at = 0, found = 0;

        job_id_select(id, &which, &constraint);
        if (constraint.n == 0) {
                buf_printf(out, "%s%s:%s", out->n ? ", " : "", buf_z(&which), how);
                return 0;
        }
        buf_addz(&path, "/v1/jobs");
        api_query(&path, "id", buf_view(&which));
        api_query(&path, "constraint", buf_view(&constraint));
        if (api_path_check(&path) != 0)
                return refuse_entry(entry, "too many tasks", err);
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, err) != 0)
                return -EINVAL;
        while (view_next(view_get(answer.root, "jobs"), &at, &job)) {
                buf_reset(&name);
                view_text(view_get(job, "id"), &name);
                buf_printf(out, "%s%s:%s", out->n ? ", " : "", buf_z(&name), how);
                found++;
        }
        return found == id->tasks.count ? 0 : refuse_entry(entry, "there is no such task", err);
}

/* "after": jobs that have begun fulfil it; for others there is no way to wait. */
static int check_begun(struct cli *cli, const struct job_id *id, struct str entry, struct err *err)
{
        BUF_CLEANUP struct buf path = {0}, which = {0}, constraint = {0};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view job;
        size_t at = 0;

        job_id_select(id, &which, &constraint);
        buf_addz(&path, "/v1/jobs");
        api_query(&path, "id", buf_view(&which));
        api_query(&path, "constraint", buf_view(&constraint));
        if (api_path_check(&path) != 0)
                return refuse_entry(entry, "too many tasks", err);
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, err) != 0)
                return -EINVAL;
        while (view_next(view_get(answer.root, "jobs"), &at, &job))
                if (!view_is(view_get(job, "state"), "removed") &&
                    view_integer(view_get(job, "started_ms"), 0) == 0)
                        return refuse_entry(
                                entry,
                                "a job cannot wait for the beginning of another; use afterok, afterany or "
                                "afternotok",
                                err);
        return 0;
}

/* Jobs of the same name and owner that have not ended. */
static int add_singleton(struct cli *cli, struct str name, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf path = {0}, constraint = {0};
        struct api_answer server API_ANSWER_CLEANUP = {0}, answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf owner = {0};
        struct view job;
        int64_t last = 0;
        size_t at = 0;

        if (api_call(cli, &(struct api_request){.path = "/v1/server"}, &server, err) != 0)
                return -EINVAL;
        view_text(view_get(server.root, "you"), &owner);
        buf_addz(&constraint, "SlurmName =?= ");
        print_string(&constraint, name);
        buf_addz(&path, "/v1/jobs");
        api_query(&path, "owner", buf_view(&owner));
        api_query(&path, "constraint", buf_view(&constraint));
        if (api_path_check(&path) != 0)
                return err_set(err, -EINVAL, "Job dependency problem: the job's name is too long");
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, err) != 0)
                return -EINVAL;
        while (view_next(view_get(answer.root, "jobs"), &at, &job)) {
                int64_t request = view_integer(view_get(job, "request"), 0);

                if (request != last)
                        buf_printf(out, "%s%lld:any", out->n ? ", " : "", (long long)request);
                last = request;
        }
        return 0;
}

static const struct {
        const char *name, *how;
} kinds[] = {{"afterok", "ok"}, {"afterany", "any"}, {"afternotok", "fail"}, {"aftercorr", "each"}};

static int add_entry(struct cli *cli, struct str entry, struct str name, struct buf *out, struct err *err)
{
        struct str rest = entry, kind, one;
        const char *how = NULL;
        bool any = false;

        if (str_ieqz(entry, "singleton"))
                return add_singleton(cli, name, out, err);
        str_cut(&rest, ':', &kind);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (str_ieqz(kind, kinds[i].name))
                        how = kinds[i].how;
        if (!how && !str_ieqz(kind, "after")) {
                uint64_t number;

                if (str_to_u64(kind, &number) != 0)
                        return refuse_entry(entry, "unknown kind of dependency", err);
                rest = entry; /* the old way: numbers alone */
                how = "any";
        }
        while (str_cut(&rest, ':', &one)) {
                struct job_id id;
                struct str number = one, minutes;
                int rc;

                if (!how) {
                        str_cut(&number, '+', &minutes);
                        if (number.n)
                                return refuse_entry(entry,
                                                    "a job cannot wait for some time after a beginning", err);
                        number = minutes;
                }
                if (job_id_parse(number, &id, NULL) != 0)
                        return refuse_entry(entry, "write afterok:123 or afterok:123_4", err);
                rc = how ? add_members(cli, &id, entry, how, out, err) : check_begun(cli, &id, entry, err);
                job_id_deinit(&id);
                if (rc != 0)
                        return rc;
                any = true;
        }
        return any ? 0 : refuse_entry(entry, "no job is named", err);
}

int depend_write(struct cli *cli, struct str text, struct str name, struct buf *out, struct err *err)
{
        struct str entry;
        int rc = 0;

        if (str_find(text, '?') >= 0)
                return refuse_entry(text, "alternatives with ? are not supported", err);
        while (rc == 0 && str_cut(&text, ',', &entry))
                if (str_trim(entry).n)
                        rc = add_entry(cli, str_trim(entry), name, out, err);
        return rc;
}
