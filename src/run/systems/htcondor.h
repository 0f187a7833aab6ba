/* htcondor: what HTCondor's commands answer with -json: ads of jobs from condor_q and condor_history, of
 * slots from condor_status (its manual: "Job ClassAd Attributes", "Machine ClassAd Attributes", "Hold reason
 * codes"). Bytes that are no UTF-8 are passed over, in place: somebody's reason shall not hide all jobs. */
#pragma once
#include "run/batch/batch.h"

#define HTCONDOR_NAME  "DroverName"  /* of a submission; in each of its jobs */
#define HTCONDOR_COUNT "DroverCount" /* of its jobs; 1: its native number is the cluster's */
/* What is asked for. */
#define HTCONDOR_JOB                                                                                         \
        "ClusterId,ProcId,JobStatus,NumJobStarts,RemoteHost,HoldReason,HoldReasonCode,HoldReasonSubCode,"    \
        "RemoveReason,Owner,ExitBySignal,ExitSignal,ExitCode," HTCONDOR_NAME "," HTCONDOR_COUNT
#define HTCONDOR_SLOT "Machine,State,SlotType,Cpus,Memory,GPUs,TotalSlotCpus,TotalSlotMemory,TotalSlotGPUs"

bool htcondor_is_answer(struct str out);
void htcondor_jobs_read(struct str out, batch_take_fn *take, void *arg);
void htcondor_slots_read(const struct batch_settings *s, struct str out, struct run_capacity *c);
