/* attributes: the attribute names that the core itself reads or writes, or that a job's program must not set
 * (lifecycle/chirp.c), interned once.
 *
 * Names are HTCondor's where it has one (manual, "Job ClassAd Attributes", "Machine ClassAd Attributes").
 */
#pragma once
#include "classad/symbols.h"

/* clang-format off */
#define CORE_ATTRIBUTES(X)                                                                                  \
        /* attributes of a job as submitted */                                                              \
        X(ClusterId) X(ProcId) X(GlobalJobId) X(Owner) X(User) X(QDate) X(Cmd) X(Args) X(Arguments)         \
        X(Env) X(Environment) X(In) X(Out) X(Err) X(Iwd) X(UserLog) X(JobUniverse) X(Requirements)          \
        X(Rank) X(JobPrio) X(RequestCpus) X(RequestMemory) X(RequestDisk) X(TransferInput)                  \
        X(TransferOutput) X(TransferExecutable) X(TransferOutputRemaps) X(ShouldTransferFiles)              \
        X(WhenToTransferOutput) X(FileSystemDomain) X(SubmitHost) X(OnExitRemove) X(OnExitHold)             \
        X(OnExitHoldReason) X(OnExitHoldSubCode) X(PeriodicHold) X(PeriodicHoldReason)                      \
        X(PeriodicHoldSubCode) X(PeriodicRelease) X(PeriodicRemove) X(PeriodicRemoveReason)                 \
        X(JobLeaseDuration) X(SuccessExitCode) X(JobSuccessExitCode) X(JobMaxRetries) X(MaxRetries)         \
        X(JobMaterializeLimit) X(AllowedJobDuration) X(PeriodicVacate) X(DeferralTime) X(DeferralWindow)                           \
        X(AllowedExecuteDuration) X(HoldOnSubmit) X(LeaveJobInQueue) X(TransferInputSizes) X(TransferInputSizeMB)              \
        X(TransferOutputSizeMB) X(OutputDestination) X(ContainerImage) X(DockerImage) X(DockerNetworkType)   \
        X(ContainerTargetDir) X(DockerPullPolicy) X(DockerOverrideEntrypoint) X(Modules) X(CondaEnv) X(PythonEnv) X(DataLabels)\
        X(DroverCredentials) X(DroverCommand) X(OAuthServicesNeeded) X(WantIOProxy) X(StreamOut) X(StreamErr) X(BankQuote) X(ReservationId) X(Meta) X(DroverReserved) X(DroverReservedWhy) X(DroverReservedStart) \
        X(MetaPrefer) X(CoAllocate) X(ReserveId) X(ReserveDuration) \
        X(ExpectedRunTime) X(PriceWeight) X(BetterPlaceWait) X(PlacementPolicy)                                                          \
        X(DependsOn) X(OnDependencyFailure) X(AbortGraphOn) X(OnGraphAbort) X(JobCategory) X(JobCategoryMax) X(DapType) \
        X(DAGFailedCount) X(DAGStatus) X(DAGJobId) X(DAGJobCount) X(DAGReturn) X(DAGSuccess) \
        X(GangSize) X(GangWithin) X(GangGroupBy) X(ParallelShutdownPolicy) X(WantParallelSchedulingGroups)     \
        X(ConcurrencyLimits) X(AccountingGroup) X(AcctGroup) X(QOS)                                        \
        /* by which a job names the queue of a batch system that it is to run in */ \
        X(BatchQueue) X(SlurmPartition) X(GridEngineQueue) X(PbsQueue) X(HtcondorQueue) X(KubernetesQueue) \
        X(RerunOnLost) X(CheckpointExitCode) X(SuccessCheckpointExitCode) X(SuccessCheckpointExitBySignal) \
        X(SuccessCheckpointExitSignal) X(CheckpointSig) X(KillSig) X(JobMaxVacateTime) X(TransferCheckpoint)                                                                                     \
        /* attributes that the core sets while the job is in the queue */                                   \
        X(JobStatus) X(EnteredCurrentStatus) X(NumJobStarts) X(NumJobCompletions) X(NumJobMatches)          \
        X(JobStartDate) X(JobCurrentStartDate) X(CompletionDate) X(ExitCode) X(ExitBySignal)                \
        X(ExitSignal) X(ExitReason) X(RemoteHost) X(LastRemoteHost) X(RemoteWallClockTime)                  \
        X(RemoteUserCpu) X(RemoteSysCpu) X(MemoryUsage) X(HoldReason) X(HoldReasonCode)                     \
        X(HoldReasonSubCode) X(RemoveReason) X(ReleaseReason) X(BytesRecvd) X(BytesSent) X(EnergyJoules) X(DroverState)     \
        X(DroverAgent) X(DroverQueue) X(DroverFence) X(DroverLog) X(DroverOutputs) X(DroverStartedMs) X(DroverCheckpoint) \
        X(DroverUuid) X(ServerTime) X(JobRunCount) X(NumShadowStarts) X(ResidentSetSize) X(DroverGang) X(DroverNode) X(CumulativeSuspensionTime)                                                           \
        /* attributes of a place */                                                                         \
        X(Name) X(Machine) X(Cpus) X(Memory) X(Disk) X(TotalCpus) X(TotalMemory) X(TotalDisk)               \
        X(GPUs) X(LoadAvg) X(TotalLoadAvg) X(KeyboardIdle) X(ConsoleIdle) X(MyCurrentTime) X(State)         \
        X(Activity) X(RequestGPUs) X(CpusProvisioned) X(MemoryProvisioned) X(DiskProvisioned)                                                                         \
        X(QueueName) X(AgentName) X(MyType) X(Price) X(Speed) X(Unreachable) X(WhyClosed) \
        X(QueueWait) X(QueueWaitUnknown) X(SearchOrder) X(Runner) X(NodeFailed) X(CloseWhen) X(DrainWhen) X(DrainWithin) X(NotifyWhen) X(Leaving) \
        X(NodeBootId) X(NodeProviderId) X(NodeImage) X(NodeSize) X(NodePrice)
/* clang-format on */

struct attributes {
#define X(name) symbol name;
        CORE_ATTRIBUTES(X)
#undef X
};

static inline void attributes_intern(struct attributes *a, struct symbols *symbols)
{
#define X(attribute) a->attribute = symbols_intern(symbols, STR(#attribute));
        CORE_ATTRIBUTES(X)
#undef X
}
