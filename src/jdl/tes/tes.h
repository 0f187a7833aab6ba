/* tes: translates a task of the GA4GH Task Execution Service to a request of one job, and shows a job as a
 * task.
 *
 * A task's executors are the steps of the job, each in its own container, one after the other in one
 * sandbox. A path in the containers, "/data/x", is the file TES_FOLDER "/data/x" of the sandbox; the
 * folders of inputs, outputs, streams and volumes are mounted at their paths in each container. An input
 * is a URL that is staged under this name, or content, which is uploaded to the spool; an output is sent
 * to its URL when the last executor has succeeded. Defaults are those of a submit file (jdl/condor).
 *
 * The document is stored with the job, as the text of TES_ATTRIBUTE: {"task": the document, "warnings":
 * the parts that are not acted on}. The state that the server reports for a task (id, state, logs) is
 * never taken from it.
 *
 * Source: GA4GH Task Execution Service 1.1.0. Pure. */
#pragma once
#include "base/format/json.h"
#include "base/format/json_read.h"
#include "jdl/form/form.h"

#define TES_FOLDER        "tes"
#define TES_ATTRIBUTE     "TesTask"
#define TES_TEXT_MAX      (1000u << 10) /* maximum bytes of a stored task, with its contents */
#define TES_EXECUTORS_MAX 64u
#define TES_FILES_MAX     1000u /* maximum number of inputs, and of outputs */
/* beginning of the reason with which a task that cannot run is removed */
#define TES_HELD "the task was held: "

/* ---- reading */

struct tes_content {
        char *name; /* name in the sandbox */
        struct str text;
};
struct tes_task {
        struct form form; /* form of one job */
        json_t *task;     /* the stored form; the contents point into it */
        struct tes_content *contents;
        size_t content_count;
};
/* Reads a task. *ret must be deinitialised in any case. Returns 0; or -EINVAL or -E2BIG with err, which
 * names the member by its JSON pointer: "/executors/0/image: …". */
int tes_read(const json_t *task, int64_t now_s, struct tes_task *ret, struct err *err);
void tes_task_deinit(struct tes_task *t);

/* Returns the n-th key of backend_parameters that is acted on, a keyword of submit files; NULL at the end. */
const char *tes_backend_key(size_t n);

/* ---- writing */

enum tes_state {
        TES_UNKNOWN,
        TES_QUEUED,
        TES_INITIALIZING,
        TES_RUNNING,
        TES_PAUSED,
        TES_COMPLETE,
        TES_EXECUTOR_ERROR,
        TES_SYSTEM_ERROR,
        TES_CANCELED,
        TES_PREEMPTED,
        TES_CANCELING,
        TES_STATES
};
const char *tes_state_name(enum tes_state s);
/* Reads the name of a state. Returns 0 or -EINVAL. */
int tes_state_read(struct str name, enum tes_state *ret);

enum tes_view { TES_MINIMAL, TES_BASIC, TES_FULL };
int tes_view_read(struct str name, enum tes_view *ret); /* 0 or -EINVAL */

struct tes_executor_log {
        int64_t started_ms, ended_ms; /* Unix milliseconds; 0: unknown */
        int32_t exit_code;
        struct str out[2]; /* last bytes of stdout and stderr; invalid UTF-8 is replaced */
};
struct tes_status {
        uint64_t id;
        enum tes_state state;
        int64_t created_ms, started_ms, ended_ms; /* 0: has not happened */
        struct str host;                          /* host where it runs or ran; empty: none */
        struct str reason;                        /* reason why it does not run; empty: none */
        const struct tes_executor_log *logs;
        size_t log_count;
};
/* Writes a task. `kept` is the parsed value of TES_ATTRIBUTE; if it is NULL or malformed, only id and state
 * are written. */
void tes_write(struct json *j, const json_t *kept, enum tes_view view, const struct tes_status *s);
/* Returns whether a failure of the last executor is ignored. */
bool tes_ignores_last(const json_t *kept);
/* Returns whether the task's name has this prefix, and the task has these tags. keys and values: lists of
 * the same length; an empty value matches any. */
bool tes_matches(const json_t *kept, struct str name_prefix, const struct str *keys, const struct str *values,
                 size_t count);
