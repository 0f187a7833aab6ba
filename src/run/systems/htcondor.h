/* htcondor: reads what HTCondor's commands print with -json: ads of jobs from condor_q and condor_history,
 * of slots from condor_status (its manual: "Job ClassAd Attributes", "Machine ClassAd Attributes", "Hold
 * reason codes"). Bytes that are not UTF-8 are replaced in place, so that a bad text in one job cannot hide
 * the others. */
#pragma once
#include "run/batch/batch.h"

#define HTCONDOR_NAME "DroverName" /* attribute of each job with the submission's name */
/* Attribute with the number of the submission's jobs; 1: the native id is the cluster's. */
#define HTCONDOR_COUNT "DroverCount"
/* Attributes to ask for. */
#define HTCONDOR_JOB                                                                                         \
        "ClusterId,ProcId,JobStatus,NumJobStarts,RemoteHost,HoldReason,HoldReasonCode,HoldReasonSubCode,"    \
        "RemoveReason,Owner,ExitBySignal,ExitSignal,ExitCode," HTCONDOR_NAME "," HTCONDOR_COUNT
#define HTCONDOR_SLOT "Machine,State,SlotType,Cpus,Memory,GPUs,TotalSlotCpus,TotalSlotMemory,TotalSlotGPUs"

bool htcondor_is_answer(struct str out);
void htcondor_jobs_read(struct str out, batch_take_fn *take, void *arg);
void htcondor_slots_read(const struct batch_settings *s, struct str out, struct run_capacity *c);
