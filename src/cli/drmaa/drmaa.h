/* drmaa.h: Drover's C binding of DRMAA 1.0 (Open Grid Forum, GFD.133); see drover-drmaa(3).
 *
 * Calls return DRMAA_ERRNO_SUCCESS, or another DRMAA_ERRNO_... after writing a sentence into
 * error_diagnosis, which may be NULL. Several threads may make calls at the same time. Lists and templates
 * that a call returns belong to the caller, and are released by the call named for it; each may be used by
 * one thread at a time.
 */
#ifndef DRMAA_H
#define DRMAA_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Sizes in bytes that suffice for every text of the kind, with its NUL. */
#define DRMAA_ATTR_BUFFER                 1024
#define DRMAA_CONTACT_BUFFER              1024
#define DRMAA_DRM_SYSTEM_BUFFER           1024
#define DRMAA_DRMAA_IMPLEMENTATION_BUFFER 1024
#define DRMAA_ERROR_STRING_BUFFER         1024
#define DRMAA_JOBNAME_BUFFER              1024
#define DRMAA_SIGNAL_BUFFER               32

/* Special values of timeouts, which are otherwise seconds. */
#define DRMAA_TIMEOUT_WAIT_FOREVER (-1)
#define DRMAA_TIMEOUT_NO_WAIT      0

/* Values in place of a job's id. */
#define DRMAA_JOB_IDS_SESSION_ANY "DRMAA_JOB_IDS_SESSION_ANY"
#define DRMAA_JOB_IDS_SESSION_ALL "DRMAA_JOB_IDS_SESSION_ALL"

/* Values of drmaa_js_state. */
#define DRMAA_SUBMISSION_STATE_ACTIVE "drmaa_active"
#define DRMAA_SUBMISSION_STATE_HOLD   "drmaa_hold"

/* Placeholders in paths and working directories: the number of a bulk job, the home directory, the working
 * directory. */
#define DRMAA_PLACEHOLDER_INCR "$drmaa_incr_ph$"
#define DRMAA_PLACEHOLDER_HD   "$drmaa_hd_ph$"
#define DRMAA_PLACEHOLDER_WD   "$drmaa_wd_ph$"

/* Attributes of a job template. Drover does not have drmaa_transfer_files (its places get files where they do
 * not see them) and the soft limits; setting these gives DRMAA_ERRNO_INVALID_ARGUMENT. */
#define DRMAA_REMOTE_COMMAND       "drmaa_remote_command"
#define DRMAA_JS_STATE             "drmaa_js_state"
#define DRMAA_WD                   "drmaa_wd"
#define DRMAA_JOB_CATEGORY         "drmaa_job_category"
#define DRMAA_NATIVE_SPECIFICATION "drmaa_native_specification"
#define DRMAA_BLOCK_EMAIL          "drmaa_block_email"
#define DRMAA_START_TIME           "drmaa_start_time"
#define DRMAA_JOB_NAME             "drmaa_job_name"
#define DRMAA_INPUT_PATH           "drmaa_input_path"
#define DRMAA_OUTPUT_PATH          "drmaa_output_path"
#define DRMAA_ERROR_PATH           "drmaa_error_path"
#define DRMAA_JOIN_FILES           "drmaa_join_files"
#define DRMAA_TRANSFER_FILES       "drmaa_transfer_files"
#define DRMAA_DEADLINE_TIME        "drmaa_deadline_time"
#define DRMAA_WCT_HLIMIT           "drmaa_wct_hlimit"
#define DRMAA_WCT_SLIMIT           "drmaa_wct_slimit"
#define DRMAA_DURATION_HLIMIT      "drmaa_duration_hlimit"
#define DRMAA_DURATION_SLIMIT      "drmaa_duration_slimit"
#define DRMAA_V_ARGV               "drmaa_v_argv"
#define DRMAA_V_ENV                "drmaa_v_env"
#define DRMAA_V_EMAIL              "drmaa_v_email"

/* Return values; the numbers are those of GFD.133. */
enum {
        DRMAA_ERRNO_SUCCESS = 0,
        DRMAA_ERRNO_INTERNAL_ERROR = 1,
        DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE = 2, /* no server answers */
        DRMAA_ERRNO_AUTH_FAILURE = 3,              /* the server does not permit this to the user */
        DRMAA_ERRNO_INVALID_ARGUMENT = 4,
        DRMAA_ERRNO_NO_ACTIVE_SESSION = 5, /* drmaa_init was not called, or drmaa_exit was */
        DRMAA_ERRNO_NO_MEMORY = 6,
        DRMAA_ERRNO_INVALID_CONTACT_STRING = 7,
        DRMAA_ERRNO_DEFAULT_CONTACT_STRING_ERROR = 8,
        DRMAA_ERRNO_NO_DEFAULT_CONTACT_STRING_SELECTED = 9,
        DRMAA_ERRNO_DRMS_INIT_FAILED = 10,
        DRMAA_ERRNO_ALREADY_ACTIVE_SESSION = 11,
        DRMAA_ERRNO_DRMS_EXIT_ERROR = 12,
        DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT = 13,
        DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE = 14,
        DRMAA_ERRNO_CONFLICTING_ATTRIBUTE_VALUES = 15,
        DRMAA_ERRNO_TRY_LATER = 16,
        DRMAA_ERRNO_DENIED_BY_DRM =
                17, /* the server or the reader of submit files refuses the template as it is */
        DRMAA_ERRNO_INVALID_JOB = 18, /* there is no such job, or it was waited for already */
        DRMAA_ERRNO_RESUME_INCONSISTENT_STATE = 19,
        DRMAA_ERRNO_SUSPEND_INCONSISTENT_STATE = 20,
        DRMAA_ERRNO_HOLD_INCONSISTENT_STATE = 21,
        DRMAA_ERRNO_RELEASE_INCONSISTENT_STATE = 22,
        DRMAA_ERRNO_EXIT_TIMEOUT = 23, /* drmaa_wait and drmaa_synchronize: the time is over */
        DRMAA_ERRNO_NO_RUSAGE = 24,
        DRMAA_ERRNO_NO_MORE_ELEMENTS = 25,
        DRMAA_NO_ERRNO
};

/* States of drmaa_job_ps. A job that waits at its place (staging) is queued; a job that the system holds for
 * a reason that cannot be resolved through this interface has failed. */
enum {
        DRMAA_PS_UNDETERMINED = 0x00,
        DRMAA_PS_QUEUED_ACTIVE = 0x10,
        DRMAA_PS_SYSTEM_ON_HOLD = 0x11,
        DRMAA_PS_USER_ON_HOLD = 0x12,
        DRMAA_PS_USER_SYSTEM_ON_HOLD = 0x13,
        DRMAA_PS_RUNNING = 0x20,
        DRMAA_PS_SYSTEM_SUSPENDED = 0x21,
        DRMAA_PS_USER_SUSPENDED = 0x22,
        DRMAA_PS_USER_SYSTEM_SUSPENDED = 0x23,
        DRMAA_PS_DONE = 0x30,  /* ended with exit code 0 */
        DRMAA_PS_FAILED = 0x40 /* ended otherwise, or was removed */
};

enum {
        DRMAA_CONTROL_SUSPEND = 0,
        DRMAA_CONTROL_RESUME = 1,
        DRMAA_CONTROL_HOLD = 2,
        DRMAA_CONTROL_RELEASE = 3,
        DRMAA_CONTROL_TERMINATE = 4
};

typedef struct drmaa_job_template_s drmaa_job_template_t;
typedef struct drmaa_attr_names_s drmaa_attr_names_t;
typedef struct drmaa_attr_values_s drmaa_attr_values_t;
typedef struct drmaa_job_ids_s drmaa_job_ids_t;

/* ---- lists: the next element is copied, truncated to fit; DRMAA_ERRNO_NO_MORE_ELEMENTS after the last.
 * Sizes are int, as in Grid Engine's library; GFD.133 has size_t. */

int drmaa_get_next_attr_name(drmaa_attr_names_t *values, char *value, size_t value_len);
int drmaa_get_next_attr_value(drmaa_attr_values_t *values, char *value, size_t value_len);
int drmaa_get_next_job_id(drmaa_job_ids_t *values, char *value, size_t value_len);
int drmaa_get_num_attr_names(drmaa_attr_names_t *values, int *size);
int drmaa_get_num_attr_values(drmaa_attr_values_t *values, int *size);
int drmaa_get_num_job_ids(drmaa_job_ids_t *values, int *size);
void drmaa_release_attr_names(drmaa_attr_names_t *values); /* NULL is fine, here and below */
void drmaa_release_attr_values(drmaa_attr_values_t *values);
void drmaa_release_job_ids(drmaa_job_ids_t *values);

/* ---- the session */

/* Opens the session. contact: the folder of an instance, https://HOST:PORT of a remote server, or NULL or ""
 * for the server that drover(1) would use. The server must answer. */
int drmaa_init(const char *contact, char *error_diagnosis, size_t error_diag_len);
/* Ends the session. Its jobs continue. Calls that are waiting return DRMAA_ERRNO_NO_ACTIVE_SESSION within a
 * second. */
int drmaa_exit(char *error_diagnosis, size_t error_diag_len);

/* ---- job templates */

int drmaa_allocate_job_template(drmaa_job_template_t **jt, char *error_diagnosis, size_t error_diag_len);
int drmaa_delete_job_template(drmaa_job_template_t *jt, char *error_diagnosis, size_t error_diag_len);
/* Sets an attribute. The value is copied, and checked as far as possible without other attributes. An empty
 * value removes the attribute. */
int drmaa_set_attribute(drmaa_job_template_t *jt, const char *name, const char *value, char *error_diagnosis,
                        size_t error_diag_len);
int drmaa_get_attribute(drmaa_job_template_t *jt, const char *name, char *value, size_t value_len,
                        char *error_diagnosis, size_t error_diag_len);
int drmaa_set_vector_attribute(drmaa_job_template_t *jt, const char *name, const char *value[],
                               char *error_diagnosis, size_t error_diag_len);
int drmaa_get_vector_attribute(drmaa_job_template_t *jt, const char *name, drmaa_attr_values_t **values,
                               char *error_diagnosis, size_t error_diag_len);
int drmaa_get_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis, size_t error_diag_len);
int drmaa_get_vector_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis,
                                     size_t error_diag_len);

/* ---- submitting; when these return, the jobs are on disk at the server */

int drmaa_run_job(char *job_id, size_t job_id_len, const drmaa_job_template_t *jt, char *error_diagnosis,
                  size_t error_diag_len);
/* Submits jobs numbered start, start + incr, ... up to end, as one request. start is at least 1; incr may be
 * negative, with end below start. */
int drmaa_run_bulk_jobs(drmaa_job_ids_t **jobids, const drmaa_job_template_t *jt, int start, int end,
                        int incr, char *error_diagnosis, size_t error_diag_len);

/* ---- control and waiting */

/* Acts on one job, or on all jobs of the session to which the action applies. Returns when the server has
 * recorded the action. */
int drmaa_control(const char *jobid, int action, char *error_diagnosis, size_t error_diag_len);
/* Waits until all of job_ids (NULL after the last) have ended; jobs that do not exist count as ended.
 * dispose: drmaa_wait will not return these jobs any more. */
int drmaa_synchronize(const char *job_ids[], signed long timeout, int dispose, char *error_diagnosis,
                      size_t error_diag_len);
/* Waits until the job, or any job of the session, has ended. *stat is for the drmaa_w... calls; *rusage (may
 * be NULL) is a list of NAME=VALUE. Each job is returned once. */
int drmaa_wait(const char *job_id, char *job_id_out, size_t job_id_out_len, int *stat, signed long timeout,
               drmaa_attr_values_t **rusage, char *error_diagnosis, size_t error_diag_len);
int drmaa_wifexited(int *exited, int stat, char *error_diagnosis, size_t error_diag_len);
int drmaa_wexitstatus(int *exit_status, int stat, char *error_diagnosis, size_t error_diag_len);
int drmaa_wifsignaled(int *signaled, int stat, char *error_diagnosis, size_t error_diag_len);
int drmaa_wtermsig(char *signal, size_t signal_len, int stat, char *error_diagnosis, size_t error_diag_len);
int drmaa_wcoredump(int *core_dumped, int stat, char *error_diagnosis,
                    size_t error_diag_len); /* *core_dumped is always 0: not known */
int drmaa_wifaborted(int *aborted, int stat, char *error_diagnosis,
                     size_t error_diag_len); /* *aborted: the job was removed, or the system holds it */
int drmaa_job_ps(const char *job_id, int *remote_ps, char *error_diagnosis, size_t error_diag_len);

/* ---- about the library; all but drmaa_strerror return and report errors like the other calls */

const char *drmaa_strerror(int drmaa_errno);
int drmaa_get_contact(char *contact, size_t contact_len, char *error_diagnosis, size_t error_diag_len);
int drmaa_version(unsigned int *major, unsigned int *minor, char *error_diagnosis, size_t error_diag_len);
int drmaa_get_DRM_system(char *drm_system, size_t drm_system_len, char *error_diagnosis,
                         size_t error_diag_len);
int drmaa_get_DRMAA_implementation(char *drmaa_impl, size_t drmaa_impl_len, char *error_diagnosis,
                                   size_t error_diag_len);

#ifdef __cplusplus
}
#endif
#endif
