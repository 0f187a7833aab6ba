/* record: a job of the server's listings (docs/openapi.json, Job) as Slurm's commands see it.
 */
#pragma once
#include "cli/terminal/cli.h"

/* Attributes that a listing must include, for ?attributes=. */
#define RECORD_ATTRIBUTES                                                                                    \
        "SlurmName,SlurmCommand,SlurmTask,SlurmTasks,SlurmPartition,SlurmTasksPerJob,SlurmMemoryPerCpu,"     \
        "SlurmComment,"                                                                                      \
        "SlurmDeadline,"                                                                                     \
        "SlurmRequeue,SlurmDependency,JobBatchName,AcctGroup,QOS,JobPrio,NodeCount,RequestCpus,"             \
        "RequestMemory,"                                                                                     \
        "RequestGPUs,"                                                                                       \
        "RequestDisk,Iwd,Out,Err,In,SlurmOut,SlurmErr,AllowedExecuteDuration,DeferralTime,"                  \
        "RemoteWallClockTime,MemoryUsage,"                                                                   \
        "ResidentSetSize,RemoteUserCpu,RemoteSysCpu,RemoveReason,HoldReasonCode,NumJobStarts,"               \
        "TotalSubmitProcs,"                                                                                  \
        "CumulativeSuspensionTime,DAGNodeName,JobMaterializeLimit"

enum record_state {
        RECORD_PENDING,
        RECORD_RUNNING,
        RECORD_SUSPENDED,
        RECORD_COMPLETED,
        RECORD_CANCELLED,
        RECORD_FAILED,
        RECORD_TIMEOUT,
        RECORD_NODE_FAIL,
        RECORD_DEADLINE,
        RECORD_OUT_OF_MEMORY,
        RECORD_CONFIGURING,
        RECORD_COMPLETING,
        RECORD_STATES
};
struct record {
        struct view job, ad; /* borrowed */
        int64_t request, member, now_s;
        const char *step; /* "batch": only the usage of the script itself; NULL: the job */
        int64_t task;     /* number of an array's task; -1: not in an array */
        enum record_state state;
        const char *reason;                      /* "Resources", "None" */
        int64_t submitted_s, started_s, ended_s; /* 0: not yet */
        int64_t elapsed_s, limit_s;              /* limit 0: none */
        int64_t exit_code, exit_signal;          /* 0 if the job has not ended */
        int64_t cpus, tasks, nodes;              /* totals over all nodes */
};
void record_read(struct view job, int64_t now_s, struct record *ret);
bool record_is_over(const struct record *r);

const char *record_state_name(enum record_state state);  /* "PENDING" */
const char *record_state_short(enum record_state state); /* "PD" */
/* Returns the state of that name, long or short, in any case; RECORD_STATES: there is none. */
enum record_state record_state_of(struct str name);

void record_id(const struct record *r, struct buf *out); /* 123, 123_4 */
int64_t record_number(const struct record *r); /* number of this job alone, not shared by other tasks */
void record_owner(const struct record *r, struct buf *out); /* without the domain */
void record_name(const struct record *r, struct buf *out);
void record_partition(const struct record *r, struct buf *out);
/* node where the job runs or ran; appends nothing if there is none */
void record_node(const struct record *r, struct buf *out);
void record_output(const struct record *r, struct buf *out); /* the file of standard output */
void record_error(const struct record *r, struct buf *out);
/* Appends a text attribute, or `otherwise` if the job has none. */
void record_text(const struct record *r, const char *attribute, const char *otherwise, struct buf *out);
int64_t record_uid(const struct record *r); /* uid of the owner on this machine; 4294967294: no such user */
