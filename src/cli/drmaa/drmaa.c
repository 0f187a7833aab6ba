/* The C binding: arguments are checked here, and errors become DRMAA's. */
#include "cli/drmaa/drmaa.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/drmaa/list.h"
#include "cli/drmaa/session.h"
#include "cli/drmaa/template.h"

#define EXPORT        __attribute__((visibility("default")))
#define BULK_JOBS_MAX 10000000 /* maximum number of jobs of a request */

static const char *const messages[DRMAA_NO_ERRNO] = {
        [DRMAA_ERRNO_SUCCESS] = "success",
        [DRMAA_ERRNO_INTERNAL_ERROR] = "internal error",
        [DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE] = "the server does not answer",
        [DRMAA_ERRNO_AUTH_FAILURE] = "the server does not allow this",
        [DRMAA_ERRNO_INVALID_ARGUMENT] = "invalid argument",
        [DRMAA_ERRNO_NO_ACTIVE_SESSION] = "no active session",
        [DRMAA_ERRNO_NO_MEMORY] = "no memory",
        [DRMAA_ERRNO_INVALID_CONTACT_STRING] = "invalid contact string",
        [DRMAA_ERRNO_DEFAULT_CONTACT_STRING_ERROR] = "the default contact string does not work",
        [DRMAA_ERRNO_NO_DEFAULT_CONTACT_STRING_SELECTED] = "no default contact string selected",
        [DRMAA_ERRNO_DRMS_INIT_FAILED] = "the session could not be opened",
        [DRMAA_ERRNO_ALREADY_ACTIVE_SESSION] = "there is a session already",
        [DRMAA_ERRNO_DRMS_EXIT_ERROR] = "the session could not be closed",
        [DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT] = "the attribute's value has the wrong form",
        [DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE] = "the attribute cannot have this value",
        [DRMAA_ERRNO_CONFLICTING_ATTRIBUTE_VALUES] = "attributes contradict each other",
        [DRMAA_ERRNO_TRY_LATER] = "the server cannot take this now; try again later",
        [DRMAA_ERRNO_DENIED_BY_DRM] = "the job is refused",
        [DRMAA_ERRNO_INVALID_JOB] = "there is no such job",
        [DRMAA_ERRNO_RESUME_INCONSISTENT_STATE] = "the job is not suspended",
        [DRMAA_ERRNO_SUSPEND_INCONSISTENT_STATE] = "the job does not run",
        [DRMAA_ERRNO_HOLD_INCONSISTENT_STATE] = "the job cannot be held in its state",
        [DRMAA_ERRNO_RELEASE_INCONSISTENT_STATE] = "the job is not held",
        [DRMAA_ERRNO_EXIT_TIMEOUT] = "the time is over",
        [DRMAA_ERRNO_NO_RUSAGE] = "it is not known what the job used",
        [DRMAA_ERRNO_NO_MORE_ELEMENTS] = "no more elements",
};

EXPORT const char *drmaa_strerror(int drmaa_errno)
{
        if (drmaa_errno < 0 || drmaa_errno >= DRMAA_NO_ERRNO)
                return "no error number of DRMAA";
        return messages[drmaa_errno];
}

/* Ends a call: tells what err says, or what the number means. */
static int end_call(int rc, const struct err *err, char *diagnosis, size_t n)
{
        if (diagnosis && n)
                snprintf(diagnosis, n, "%s",
                         rc == DRMAA_ERRNO_SUCCESS ? ""
                         : err->text[0]            ? err->text
                                                   : drmaa_strerror(rc));
        return rc;
}

static int null_argument(char *diagnosis, size_t n)
{
        return end_call(DRMAA_ERRNO_INVALID_ARGUMENT, &(struct err){"an argument is NULL"}, diagnosis, n);
}

static int copy_text(char *ret, size_t ret_n, const char *text, char *diagnosis, size_t n)
{
        if (!ret || ret_n == 0)
                return null_argument(diagnosis, n);
        snprintf(ret, ret_n, "%s", text);
        return end_call(DRMAA_ERRNO_SUCCESS, NULL, diagnosis, n);
}

/* ---- lists */

EXPORT int drmaa_get_next_attr_name(drmaa_attr_names_t *values, char *value, size_t value_len)
{
        return list_next((struct list *)values, value, value_len);
}

EXPORT int drmaa_get_next_attr_value(drmaa_attr_values_t *values, char *value, size_t value_len)
{
        return list_next((struct list *)values, value, value_len);
}

EXPORT int drmaa_get_next_job_id(drmaa_job_ids_t *values, char *value, size_t value_len)
{
        return list_next((struct list *)values, value, value_len);
}

static int count_values(const void *list, int *size)
{
        if (!list || !size)
                return DRMAA_ERRNO_INVALID_ARGUMENT;
        *size = (int)((const struct list *)list)->n;
        return DRMAA_ERRNO_SUCCESS;
}

EXPORT int drmaa_get_num_attr_names(drmaa_attr_names_t *values, int *size)
{
        return count_values(values, size);
}

EXPORT int drmaa_get_num_attr_values(drmaa_attr_values_t *values, int *size)
{
        return count_values(values, size);
}

EXPORT int drmaa_get_num_job_ids(drmaa_job_ids_t *values, int *size)
{
        return count_values(values, size);
}

EXPORT void drmaa_release_attr_names(drmaa_attr_names_t *values)
{
        list_free((struct list *)values);
}

EXPORT void drmaa_release_attr_values(drmaa_attr_values_t *values)
{
        list_free((struct list *)values);
}

EXPORT void drmaa_release_job_ids(drmaa_job_ids_t *values)
{
        list_free((struct list *)values);
}

/* ---- the session */

EXPORT int drmaa_init(const char *contact, char *error_diagnosis, size_t error_diag_len)
{
        struct err err = {""};

        return end_call(session_open(contact ? contact : "", &err), &err, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_exit(char *error_diagnosis, size_t error_diag_len)
{
        struct err err = {""};

        return end_call(session_close(&err), &err, error_diagnosis, error_diag_len);
}

/* ---- job templates */

EXPORT int drmaa_allocate_job_template(drmaa_job_template_t **jt, char *error_diagnosis,
                                       size_t error_diag_len)
{
        if (!jt)
                return null_argument(error_diagnosis, error_diag_len);
        *jt = (drmaa_job_template_t *)job_template_new();
        return end_call(DRMAA_ERRNO_SUCCESS, NULL, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_delete_job_template(drmaa_job_template_t *jt, char *error_diagnosis, size_t error_diag_len)
{
        if (!jt)
                return null_argument(error_diagnosis, error_diag_len);
        job_template_free((struct job_template *)jt);
        return end_call(DRMAA_ERRNO_SUCCESS, NULL, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_set_attribute(drmaa_job_template_t *jt, const char *name, const char *value,
                               char *error_diagnosis, size_t error_diag_len)
{
        struct err err = {""};

        if (!jt || !name || !value)
                return null_argument(error_diagnosis, error_diag_len);
        return end_call(job_template_set((struct job_template *)jt, name, value, &err), &err, error_diagnosis,
                        error_diag_len);
}

EXPORT int drmaa_get_attribute(drmaa_job_template_t *jt, const char *name, char *value, size_t value_len,
                               char *error_diagnosis, size_t error_diag_len)
{
        struct err err = {""};
        const char *text;
        int rc;

        if (!jt || !name)
                return null_argument(error_diagnosis, error_diag_len);
        rc = job_template_get((struct job_template *)jt, name, &text, &err);
        if (rc != 0)
                return end_call(rc, &err, error_diagnosis, error_diag_len);
        return copy_text(value, value_len, text ? text : "", error_diagnosis, error_diag_len);
}

EXPORT int drmaa_set_vector_attribute(drmaa_job_template_t *jt, const char *name, const char *value[],
                                      char *error_diagnosis, size_t error_diag_len)
{
        struct err err = {""};

        if (!jt || !name || !value)
                return null_argument(error_diagnosis, error_diag_len);
        return end_call(job_template_set_all((struct job_template *)jt, name, value, &err), &err,
                        error_diagnosis, error_diag_len);
}

EXPORT int drmaa_get_vector_attribute(drmaa_job_template_t *jt, const char *name,
                                      drmaa_attr_values_t **values, char *error_diagnosis,
                                      size_t error_diag_len)
{
        const struct list *kept = NULL;
        struct err err = {""};
        struct list *given;
        int rc;

        if (!jt || !name || !values)
                return null_argument(error_diagnosis, error_diag_len);
        rc = job_template_get_all((struct job_template *)jt, name, &kept, &err);
        if (rc == 0) {
                given = list_new();
                for (size_t i = 0; kept && i < kept->n; i++)
                        list_add(given, kept->texts[i]);
                *values = (drmaa_attr_values_t *)given;
        }
        return end_call(rc, &err, error_diagnosis, error_diag_len);
}

static int names(bool several, drmaa_attr_names_t **values, char *diagnosis, size_t n)
{
        struct list *all;

        if (!values)
                return null_argument(diagnosis, n);
        all = list_new();
        job_template_names(several, all);
        *values = (drmaa_attr_names_t *)all;
        return end_call(DRMAA_ERRNO_SUCCESS, NULL, diagnosis, n);
}

EXPORT int drmaa_get_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis,
                                     size_t error_diag_len)
{
        return names(false, values, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_get_vector_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis,
                                            size_t error_diag_len)
{
        return names(true, values, error_diagnosis, error_diag_len);
}

/* ---- submitting */

EXPORT int drmaa_run_job(char *job_id, size_t job_id_len, const drmaa_job_template_t *jt,
                         char *error_diagnosis, size_t error_diag_len)
{
        struct bulk bulk = {.one = true, .count = 1};
        char text[JOB_ID_TEXT];
        struct err err = {""};
        uint64_t request;
        int rc;

        if (!job_id || job_id_len == 0 || !jt)
                return null_argument(error_diagnosis, error_diag_len);
        rc = session_submit((const struct job_template *)jt, &bulk, &request, &err);
        if (rc != 0)
                return end_call(rc, &err, error_diagnosis, error_diag_len);
        job_id_text((struct job_id){request, 0}, text);
        return copy_text(job_id, job_id_len, text, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_run_bulk_jobs(drmaa_job_ids_t **jobids, const drmaa_job_template_t *jt, int start,
                               int end_number, int incr, char *error_diagnosis, size_t error_diag_len)
{
        struct bulk bulk = {.first = start, .step = incr};
        char text[JOB_ID_TEXT];
        struct err err = {""};
        struct list *ids;
        uint64_t request;
        int64_t jobs = 0;
        int rc;

        if (!jobids || !jt)
                return null_argument(error_diagnosis, error_diag_len);
        if (incr != 0)
                jobs = ((int64_t)end_number - start) / incr + 1;
        if (start < 1 || end_number < 1 || jobs < 1 || jobs > BULK_JOBS_MAX ||
            ((int64_t)end_number - start) * incr < 0)
                return end_call(
                        err_set(&err, DRMAA_ERRNO_INVALID_ARGUMENT,
                                "bulk jobs from %d to %d by %d: write at least 1, and at most %d jobs", start,
                                end_number, incr, BULK_JOBS_MAX),
                        &err, error_diagnosis, error_diag_len);
        bulk.count = (uint32_t)jobs;
        rc = session_submit((const struct job_template *)jt, &bulk, &request, &err);
        if (rc != 0)
                return end_call(rc, &err, error_diagnosis, error_diag_len);
        ids = list_new();
        for (uint32_t i = 0; i < bulk.count; i++) {
                job_id_text((struct job_id){request, i}, text);
                list_add(ids, text);
        }
        *jobids = (drmaa_job_ids_t *)ids;
        return end_call(DRMAA_ERRNO_SUCCESS, &err, error_diagnosis, error_diag_len);
}

/* ---- control and waiting */

static int read_id(const char *text, struct job_id *ret, struct err *err)
{
        if (job_id_read(text, ret))
                return 0;
        return err_set(err, DRMAA_ERRNO_INVALID_JOB, "\"%.100s\" is no job's id", text);
}

EXPORT int drmaa_control(const char *jobid, int action, char *error_diagnosis, size_t error_diag_len)
{
        struct err err = {""};
        struct job_id id;
        int rc;

        if (!jobid)
                return null_argument(error_diagnosis, error_diag_len);
        if (strcmp(jobid, DRMAA_JOB_IDS_SESSION_ALL) == 0)
                return end_call(session_control(NULL, action, &err), &err, error_diagnosis, error_diag_len);
        rc = read_id(jobid, &id, &err);
        return end_call(rc ? rc : session_control(&id, action, &err), &err, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_synchronize(const char *job_ids[], signed long timeout, int dispose, char *error_diagnosis,
                             size_t error_diag_len)
{
        struct job_id *ids = NULL;
        struct err err = {""};
        bool all = false;
        size_t n = 0, known = 0;
        int rc;

        if (!job_ids)
                return null_argument(error_diagnosis, error_diag_len);
        for (; job_ids[n]; n++)
                all |= strcmp(job_ids[n], DRMAA_JOB_IDS_SESSION_ALL) == 0;
        if (!all)
                ids = mem_array(NULL, n + 1, sizeof(*ids));
        for (size_t i = 0; !all && i < n; i++)
                if (job_id_read(job_ids[i], &ids[known]))
                        known++; /* what is no job's id has ended, as Grid Engine has it */
        rc = session_synchronize(ids, known, timeout, dispose != 0, &err);
        free(ids);
        return end_call(rc, &err, error_diagnosis, error_diag_len);
}

static void add_usage(struct list *l, const char *name, int64_t value)
{
        char text[64];

        if (value < 0)
                return;
        snprintf(text, sizeof(text), "%s=%" PRId64, name, value);
        list_add(l, text);
}

static struct list *usage_of(struct job_id id, int stat)
{
        struct list *l = list_new();
        struct job_usage u;
        char text[64];

        if (!(stat & STAT_ABORTED))
                add_usage(l, "exit_status", stat >> STAT_CODE_SHIFT & 0xff);
        if (session_usage(id, &u, NULL) != 0)
                return l;
        add_usage(l, "submission_time", u.submitted_ms / 1000);
        if (u.started_ms)
                add_usage(l, "start_time", u.started_ms / 1000);
        if (u.ended_ms)
                add_usage(l, "end_time", u.ended_ms / 1000);
        if (u.started_ms && u.ended_ms)
                add_usage(l, "ru_wallclock", (u.ended_ms - u.started_ms) / 1000);
        if (u.cpu_s >= 0) {
                snprintf(text, sizeof(text), "cpu=%.3f", u.cpu_s);
                list_add(l, text);
        }
        return l;
}

EXPORT int drmaa_wait(const char *job_id, char *job_id_out, size_t job_id_out_len, int *stat,
                      signed long timeout, drmaa_attr_values_t **rusage, char *error_diagnosis,
                      size_t error_diag_len)
{
        char text[JOB_ID_TEXT];
        struct err err = {""};
        struct job_id id, got;
        int how, rc = 0;
        bool any;

        if (!job_id)
                return null_argument(error_diagnosis, error_diag_len);
        any = strcmp(job_id, DRMAA_JOB_IDS_SESSION_ANY) == 0;
        if (!any)
                rc = read_id(job_id, &id, &err);
        if (rc == 0)
                rc = session_wait(any ? NULL : &id, timeout, &got, &how, &err);
        if (rc != 0)
                return end_call(rc, &err, error_diagnosis, error_diag_len);
        if (stat)
                *stat = how;
        if (rusage)
                *rusage = (drmaa_attr_values_t *)usage_of(got, how);
        job_id_text(got, text);
        if (job_id_out && job_id_out_len)
                snprintf(job_id_out, job_id_out_len, "%s", text);
        return end_call(DRMAA_ERRNO_SUCCESS, &err, error_diagnosis, error_diag_len);
}

static int tell_number(int *ret, int value, char *diagnosis, size_t n)
{
        if (!ret)
                return null_argument(diagnosis, n);
        *ret = value;
        return end_call(DRMAA_ERRNO_SUCCESS, NULL, diagnosis, n);
}

EXPORT int drmaa_wifexited(int *exited, int stat, char *error_diagnosis, size_t error_diag_len)
{
        return tell_number(exited, !(stat & (STAT_ABORTED | STAT_SIGNAL_MASK)), error_diagnosis,
                           error_diag_len);
}

EXPORT int drmaa_wexitstatus(int *exit_status, int stat, char *error_diagnosis, size_t error_diag_len)
{
        return tell_number(exit_status, stat >> STAT_CODE_SHIFT & 0xff, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_wifsignaled(int *signaled, int stat, char *error_diagnosis, size_t error_diag_len)
{
        return tell_number(signaled, (stat & STAT_SIGNAL_MASK) != 0, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_wtermsig(char *signal, size_t signal_len, int stat, char *error_diagnosis,
                          size_t error_diag_len)
{
        const char *name = sigabbrev_np(stat & STAT_SIGNAL_MASK);
        char text[DRMAA_SIGNAL_BUFFER];

        if (name)
                snprintf(text, sizeof(text), "SIG%s", name);
        else
                snprintf(text, sizeof(text), "%d", stat & STAT_SIGNAL_MASK);
        return copy_text(signal, signal_len, text, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_wcoredump(int *core_dumped, int stat, char *error_diagnosis, size_t error_diag_len)
{
        (void)stat;
        return tell_number(core_dumped, 0, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_wifaborted(int *aborted, int stat, char *error_diagnosis, size_t error_diag_len)
{
        return tell_number(aborted, (stat & STAT_ABORTED) != 0, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_job_ps(const char *job_id, int *remote_ps, char *error_diagnosis, size_t error_diag_len)
{
        struct err err = {""};
        struct job_id id;
        int rc;

        if (!job_id || !remote_ps)
                return null_argument(error_diagnosis, error_diag_len);
        rc = read_id(job_id, &id, &err);
        return end_call(rc ? rc : session_state(id, remote_ps, &err), &err, error_diagnosis, error_diag_len);
}

/* ---- about the library */

EXPORT int drmaa_get_contact(char *contact, size_t contact_len, char *error_diagnosis, size_t error_diag_len)
{
        if (!contact || contact_len == 0)
                return null_argument(error_diagnosis, error_diag_len);
        session_contact(contact, contact_len);
        return end_call(DRMAA_ERRNO_SUCCESS, NULL, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_version(unsigned int *major, unsigned int *minor, char *error_diagnosis,
                         size_t error_diag_len)
{
        if (!major || !minor)
                return null_argument(error_diagnosis, error_diag_len);
        *major = 1;
        *minor = 0;
        return end_call(DRMAA_ERRNO_SUCCESS, NULL, error_diagnosis, error_diag_len);
}

EXPORT int drmaa_get_DRM_system(char *drm_system, size_t drm_system_len, char *error_diagnosis,
                                size_t error_diag_len)
{
        return copy_text(drm_system, drm_system_len, "Drover " DROVER_VERSION, error_diagnosis,
                         error_diag_len);
}

EXPORT int drmaa_get_DRMAA_implementation(char *drmaa_impl, size_t drmaa_impl_len, char *error_diagnosis,
                                          size_t error_diag_len)
{
        return copy_text(drmaa_impl, drmaa_impl_len, "Drover " DROVER_VERSION, error_diagnosis,
                         error_diag_len);
}
