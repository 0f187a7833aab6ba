#include "jdl/condor/keywords.h"

#define ACTS    KEYWORD_ACTS
#define IGNORED KEYWORD_IGNORED
#define REFUSED KEYWORD_REFUSED
#define STRING  KEYWORD_STRING
#define EXPR    KEYWORD_EXPRESSION
#define OTHER   KEYWORD_OTHER

#define OFF     "false no 0 f n"
#define ON      "true yes 1 t y"

/* clang-format off */
const struct keyword keywords[] = {
        /* what to run */
        {"executable", "Cmd", ACTS, OTHER, "Cmd", NULL,
         "The program to run. A relative path starts at the folder of the submit, not at `initialdir`. Without it "
         "an image starts its own."},
        {"shell", NULL, ACTS, OTHER, "Cmd", NULL,
         "A command for `/bin/sh -c`, in place of `executable` and `arguments`."},
        {"arguments", "args arguments2", ACTS, OTHER, "Arguments", NULL,
         "Arguments, in the old or the new syntax (in double quotes)."},
        {"environment", "env environment2", ACTS, OTHER, "Environment", NULL,
         "Variables, in the old (`A=1;B=2`) or the new syntax (`\"A=1 B=2\"`)."},
        {"getenv", "get_env get_environment", ACTS, OTHER, "Environment", NULL,
         "`True`, or a list of names and patterns of variables to copy at submit; `!name` leaves one out."},
        {"universe", "JobUniverse", ACTS, OTHER, "JobUniverse", NULL,
         "`vanilla`, `container`, `docker`, `grid`, `local`, `scheduler`, `parallel` or `data`; see UNIVERSES."},
        {"transfer_executable", "TransferExecutable", ACTS, OTHER, "TransferExecutable", NULL,
         "`False`: the program is at the place already, under the name given."},
        /* placement jobs */
        {"dap_type", NULL, ACTS, OTHER, "DapType", NULL,
         "With `universe = data`: what is done, `transfer` (the default), `rm`, `mkdir`, `stage`, `verify`, `reserve` or `release`; see PLACEMENT JOBS."},
        {"src_url", NULL, ACTS, OTHER, "SrcUrl", NULL,
         "With `universe = data`: the URL or path that is copied from, or that something is done at. A folder ends with a slash; "
         "its last part may be a pattern."},
        {"dest_url", NULL, ACTS, OTHER, "DestUrl", NULL,
         "With `universe = data`: where it is copied to; one that ends with a slash is a folder."},
        {"alt_protocols", NULL, ACTS, OTHER, "AltProtocols", NULL,
         "With `universe = data`: pairs of protocols for the two URLs that are tried when the first way fails: `https-https, ftp-sftp`."},
        {"max_retry", NULL, ACTS, OTHER, "DapTries", NULL,
         "With `universe = data`: how often what may work later is tried again, with pauses that double up to a minute; 4 if not given."},
        {"restart_in", NULL, ACTS, OTHER, "DapRestartIn", NULL,
         "With `universe = data`: a try that takes longer is ended, and counts as one that failed: seconds, or `2 hours`."},
        {"give_up_after", NULL, ACTS, OTHER, "DapGiveUpAfter", NULL,
         "With `universe = data`: no more is tried after that time: seconds, or `1 day`."},
        {"checksum", NULL, ACTS, OTHER, "DapChecksum", NULL,
         "With `universe = data`: what the file must have: `sha256:HEX`, `adler32:HEX` or `md5:HEX`."},
        {"third_party", NULL, ACTS, OTHER, "DapThirdParty", NULL,
         "With `universe = data`: `never` has all bytes go through the agent, `always` shows a token for the source to the server that "
         "copies; `auto` (the default) lets two servers copy where none is needed."},
        {"verify_copy", NULL, ACTS, OTHER, "DapVerify", NULL,
         "With `universe = data`: `read` reads back what was written, and compares; `store` (the default) asks the store for size and checksum."},
        {"reserve_id", NULL, ACTS, STRING, "ReserveId", NULL,
         "The lot of a store in which the job writes, which a job of `dap_type` `reserve` makes and one of `release` ends; see PLACEMENT JOBS."},
        {"reserve_size", NULL, ACTS, OTHER, "TransferOutputSizeMB", NULL,
         "With `universe = data` and `dap_type = reserve`: how much space is reserved: `10G`, `100 MB`."},
        {"duration", NULL, ACTS, OTHER, "ReserveDuration", NULL,
         "With `universe = data` and `dap_type = reserve`: for how long: seconds, or `2 hours`; a day if not given."},
        {"transfer_output_size", NULL, ACTS, OTHER, "TransferOutputSizeMB", NULL,
         "What a job writes to a store at most: `2G`, `100 MB`. It starts when the store has so much left, and may not write more."},
        /* files */
        {"input", "stdin", ACTS, STRING, "In", NULL, "Standard input; none if not given."},
        {"output", "stdout", ACTS, STRING, "Out", NULL, "Where standard output goes. If not given, the server keeps its end only: drover tail."},
        {"error", "stderr", ACTS, STRING, "Err", NULL, "Where standard error goes, as output."},
        {"log", "UserLog", ACTS, STRING, "UserLog", NULL,
         "A file that the events of the jobs are appended to, in HTCondor's format of a job event log. An agent that sees "
         "the folder of the submit writes it."},
        {"log_xml", "UserLogUseXML", ACTS, OTHER, "UserLogUseXML", NULL,
         "`True`: events are written to the log as ClassAds in XML, without a head or foot for the file, not as text."},
        {"log_format", "UserLogFormat", ACTS, OTHER, "UserLogFormat", NULL,
         "How the log is written, in the words of HTCondor's `DEFAULT_USERLOG_FORMAT_OPTIONS`: `XML` or `JSON` (or `TEXT`), "
         "and for times `ISO_DATE` (`2026-01-31 12:00:00`, the default), `LEGACY` (`01/31 12:00:00`), `UTC`, `SUB_SECOND`; "
         "`!` before a word takes it back. Drover's own; the server may have another default. Jobs that share a log "
         "should agree about its form."},
        {"submit_event_notes", "SubmitEventNotes", ACTS, STRING, "SubmitEventNotes", NULL, "A line for the submit event in the log."},
        {"submit_event_user_notes", "SubmitEventUserNotes", ACTS, STRING, "SubmitEventUserNotes", NULL,
         "A second line for the submit event in the log."},
        {"initialdir", "initial_dir job_iwd Iwd", ACTS, OTHER, "Iwd", NULL,
         "The folder that relative paths start from; the folder of the submit if not given."},
        {"dataset", NULL, ACTS, OTHER, NULL, NULL,
         "The files of the request: `catalog:QUERY` (drover-catalog(1)), `filelist:FILE` with a path or URL a line, or patterns. See DATASETS."},
        {"files_per_job", NULL, ACTS, OTHER, NULL, NULL, "With **dataset**: at most so many files for a job; 1 if no limit is given."},
        {"min_files_per_job", NULL, ACTS, OTHER, NULL, NULL, "With **dataset**: a piece of fewer files becomes part of another one."},
        {"bytes_per_job", NULL, ACTS, OTHER, NULL, NULL, "With **dataset**: at most so many bytes for a job (500M, 2G), where a file is not larger."},
        {"events_per_job", NULL, ACTS, OTHER, NULL, NULL, "With **dataset**: at most so many events, of the catalog's key *events*."},
        {"files_per_hour", NULL, ACTS, OTHER, NULL, NULL,
         "With **dataset**: how fast a job is. It limits files to what fits into `allowed_execute_duration`, or into the time of the virtual queue, and is the *ExpectedRunTime*."},
        {"fetch_dataset", NULL, ACTS, OTHER, NULL, NULL,
         "With **dataset**: whether files that are URLs (http, https, ftp, ftps, sftp, s3) are fetched for the job, as its inputs; `true` if not given."},
        {"prefer_storage", NULL, ACTS, OTHER, NULL, NULL, "With **dataset**: stores, the best one first; of each file the replica in the best one is taken."},
        {"transfer_input_files", "TransferInputFiles TransferInput", ACTS, OTHER, "TransferInput", NULL,
         "Files, folders and URLs the job needs, parted by commas."},
        {"preserve_relative_paths", "PreserveRelativePaths", ACTS, OTHER, NULL, NULL,
         "`True`: refused where an input is named by a relative path with a folder in it, for inputs are named by the last part "
         "of their path; fine with all others."},
        {"transfer_output_files", "TransferOutputFiles TransferOutput", ACTS, OTHER, "TransferOutput", NULL,
         "Files and folders to bring back, also by patterns with `*`, `?` and `[...]`; all new files if not given."},
        {"transfer_output_remaps", "TransferOutputRemaps", ACTS, OTHER, "TransferOutputRemaps", NULL,
         "`\"name=path;name2=path2\"`: other places for output files, paths or URLs. A pattern goes to a folder, `*.root=results/`."},
        {"output_destination", "OutputDestination", ACTS, STRING, "OutputDestination", NULL,
         "A URL beneath which all outputs go, in place of `initialdir`."},
        {"register_outputs", "RegisterOutputs", ACTS, STRING, "RegisterOutputs", NULL,
         "`true`, or metadata, `KEY=VALUE,KEY=VALUE`: outputs that a job which succeeded has sent to URLs become files of the catalog."},
        {"should_transfer_files", "ShouldTransferFiles", ACTS, OTHER, "ShouldTransferFiles", NULL,
         "`YES`: files travel by the server, which keeps the outputs for **drover get**; `NO`: the place sees the same paths, and "
         "files are read and written there; `IN_PLACE`: as `NO` where the place does, else as `YES`; `IF_NEEDED`: the job has a "
         "folder of its own, into and out of which the agent copies where the place sees the same paths, else as `YES`. The default "
         "is `IN_PLACE` where nothing is said of files that travel, checkpoints or a container's image, else `IF_NEEDED`. Also "
         "`TRUE`, `ALWAYS`, `FALSE`, `NEVER` and `AUTO`."},
        {"when_to_transfer_output", "WhenToTransferOutput", ACTS, OTHER, "WhenToTransferOutput", NULL,
         "`ON_EXIT` (the default), `ON_SUCCESS`, or `ON_EXIT_OR_EVICT`: what a job that is vacated or held has written by then is "
         "kept at the server, and is there when it starts again."},
        /* where */
        {"request_cpus", "RequestCpus", ACTS, OTHER, "RequestCpus", NULL, "Cores; 1 if not given."},
        {"request_nodes", NULL, ACTS, OTHER, "NodeCount", NULL,
         "Nodes of one batch system that one job has at the same time; see JOBS OVER SEVERAL NODES. Drover's own."},
        {"tasks_per_node", NULL, ACTS, OTHER, "TasksPerNode", NULL,
         "With `request_nodes`: processes for each node, with `request_cpus` cores each; 1 if not given. Drover's own."},
        {"request_memory", "RequestMemory", ACTS, OTHER, "RequestMemory", NULL,
         "Memory: a number with K, M, G or T (MiB without), or an expression in MiB."},
        {"request_disk", "RequestDisk", ACTS, OTHER, "RequestDisk", NULL,
         "Scratch space: a number with K, M, G or T (KiB without), or an expression in KiB."},
        {"request_gpus", "RequestGPUs", ACTS, OTHER, "RequestGPUs", NULL, "GPUs; none if not given."},
        {"require_gpus", "RequireGPUs", ACTS, OTHER, "RequireGPUs", NULL,
         "An expression over the properties of one GPU (Capability, GlobalMemoryMb, …); as many as are requested must "
         "fulfil it."},
        {"gpus_minimum_capability", "GPUsMinCapability", ACTS, OTHER, "RequireGPUs", NULL, "The least Capability of each GPU."},
        {"gpus_maximum_capability", "GPUsMaxCapability", ACTS, OTHER, "RequireGPUs", NULL, "The greatest Capability of each GPU."},
        {"gpus_minimum_memory", "GPUsMinMemory", ACTS, OTHER, "RequireGPUs", NULL,
         "The least memory of each GPU: a number with K, M, G or T (MiB without)."},
        {"gpus_minimum_runtime", "GPUsMinRuntime", ACTS, OTHER, "RequireGPUs", NULL,
         "The least version of the GPU's runtime: `12.1`, or `12010`."},
        {"request_*", NULL, ACTS, OTHER, "Request…", NULL,
         "Units of a resource of that name, which places declare: `request_licences = 2` sets RequestLicences, and the "
         "place must have Licences."},
        {"requirements", NULL, ACTS, OTHER, "Requirements", NULL,
         "An expression that a place must fulfil; the defaults below are added."},
        {"rank", "preferences", ACTS, EXPR, "Rank", NULL, "An expression; places with a higher value come first."},
        {"priority", "JobPrio prio", ACTS, EXPR, "JobPrio", NULL,
         "A whole number; one's own jobs with a higher one start first."},
        {"accounting_group", "AccountingGroup acct_group", ACTS, OTHER, "AcctGroup, AccountingGroup", NULL,
         "The group that the jobs count for; AccountingGroup becomes `group.user`."},
        {"accounting_group_user", "AcctGroupUser acct_group_user", ACTS, OTHER, "AcctGroupUser", NULL,
         "The name that the jobs count for; their owner's if not given."},
        {"nice_user", "NiceUser", ACTS, OTHER, "NiceUser", NULL,
         "`True`: the jobs count for the accounting group `nice-user`, unless one is given."},
        {"qos", "QOS", ACTS, STRING, "QOS", NULL,
         "The quality of service that the jobs ask for, by its name in the server's settings; see drover-priority(7)."},
        {"reservation", "ReservationId", ACTS, EXPR, "ReservationId", NULL,
         "The number of a reservation (drover-reserve(1)): the jobs run in it only. Drover's own."},
        {"project_name", "ProjectName", ACTS, STRING, "ProjectName", NULL, "Kept as the attribute."},
        {"depends_on", "DependsOn", ACTS, STRING, "DependsOn", NULL,
         "Jobs of earlier requests that these jobs wait for: `7`, `7:any`, `7.0-9:ok, 8.3`; see DEPENDENCIES. Drover's own."},
        {"on_dependency_failure", "OnDependencyFailure", ACTS, STRING, "OnDependencyFailure", NULL,
         "`hold` (the default) or `remove`: what becomes of jobs that can never start as they were meant to, since what they "
         "wait for has ended otherwise. Drover's own."},
        {"concurrency_limits", "ConcurrencyLimits", ACTS, OTHER, "ConcurrencyLimits", NULL,
         "Limits that running jobs draw on, parted by commas: `db, licence:2` takes one unit of db and two of licence."},
        {"concurrency_limits_expr", NULL, ACTS, OTHER, "ConcurrencyLimits", NULL,
         "An expression that gives such a list."},
        /* containers and places */
        {"modules", NULL, ACTS, STRING, "Modules", NULL,
         "Environment modules to load before the program, parted by commas: `gcc/12, openmpi`. The place must have modules. "
         "Drover's own."},
        {"conda_env", NULL, ACTS, STRING, "CondaEnv", NULL,
         "The conda environment to run in: a folder, or a name in the place's conda; the place must have conda. Or a file "
         "(`*.yml`, `*.yaml`): the place makes the environment of it, and keeps it for later jobs; see drover-environment(7). "
         "Drover's own."},
        {"python_env", NULL, ACTS, STRING, "PythonEnv", NULL,
         "A file of requirements as pip has them: the place makes a Python environment with them, and keeps it for later jobs; "
         "see drover-environment(7). Drover's own."},
        {"container_image", "ContainerImage", ACTS, OTHER, "ContainerImage", NULL,
         "The image to run in: `docker://…`, `oras://…`, a file that ends in `.sif`, or a folder. The place must run "
         "containers; see drover-container(7)."},
        {"docker_image", "DockerImage", ACTS, OTHER, "DockerImage", NULL,
         "The image to run in, by its name in a registry. The place must run containers."},
        {"container_target_dir", "ContainerTargetDir", ACTS, STRING, "ContainerTargetDir", NULL,
         "Where the job's folder is in the container; at the same path as outside."},
        {"transfer_container", "TransferContainer", ACTS, EXPR, "TransferContainer", NULL,
         "`False` leaves the file of **container_image** where it is, when it is a relative path or a URL of one."},
        {"docker_network_type", "DockerNetworkType", ACTS, STRING, "DockerNetworkType", NULL,
         "`none`, `host`, or another network that the place allows; as the place has it."},
        {"docker_pull_policy", "DockerPullPolicy", ACTS, STRING, "DockerPullPolicy", NULL,
         "`always`: the image is fetched again before the job starts, unless the place fetches none."},
        {"docker_override_entrypoint", "DockerOverrideEntrypoint", ACTS, EXPR, "DockerOverrideEntrypoint", NULL,
         "`True` runs the executable in place of the image's entry point."},
        {"container_*", NULL, REFUSED, OTHER, NULL, NULL, "No ports of containers are opened."},
        {"docker_*", NULL, REFUSED, OTHER, NULL, NULL, "Credentials for registries are not passed on."},
        {"grid_resource", "GridResource", ACTS, OTHER, "GridResource", NULL,
         "Names the place for `universe = grid`; see UNIVERSES."},
        {"grid_type", NULL, ACTS, OTHER, "GridResource", NULL, "The old way, with `globusscheduler`: grid_resource's first word."},
        {"globusscheduler", "globus_scheduler GlobusScheduler", ACTS, OTHER, "GridResource", NULL,
         "The old way, with `grid_type`: the rest of grid_resource."},
        /* policy */
        {"max_retries", "JobMaxRetries", ACTS, OTHER, "JobMaxRetries", NULL,
         "How often a job that fails is started again; 2 if only one of the next two is given."},
        {"success_exit_code", "JobSuccessExitCode", ACTS, OTHER, "JobSuccessExitCode", NULL,
         "The exit code of success; 0 if not given."},
        {"retry_until", NULL, ACTS, OTHER, "OnExitRemove", NULL,
         "An exit code or an expression that ends the retries."},
        {"on_exit_remove", "OnExitRemove", ACTS, OTHER, "OnExitRemove", NULL,
         "An expression; false at exit starts the job again."},
        {"on_exit_hold", "OnExitHold", ACTS, EXPR, "OnExitHold", NULL, "An expression; true at exit holds the job."},
        {"on_exit_hold_reason", "OnExitHoldReason", ACTS, EXPR, "OnExitHoldReason", NULL,
         "An expression: the reason then shown."},
        {"on_exit_hold_subcode", "OnExitHoldSubCode", ACTS, EXPR, "OnExitHoldSubCode", NULL, "A number for it."},
        {"periodic_hold", "PeriodicHold", ACTS, EXPR, "PeriodicHold", NULL,
         "An expression, looked at every 20 seconds; true holds the job."},
        {"periodic_hold_reason", "PeriodicHoldReason", ACTS, EXPR, "PeriodicHoldReason", NULL,
         "An expression: the reason then shown."},
        {"periodic_hold_subcode", "PeriodicHoldSubCode", ACTS, EXPR, "PeriodicHoldSubCode", NULL,
         "A number for it."},
        {"periodic_release", "PeriodicRelease", ACTS, EXPR, "PeriodicRelease", NULL,
         "An expression; true releases a held job."},
        {"periodic_remove", "PeriodicRemove", ACTS, EXPR, "PeriodicRemove", NULL,
         "An expression; true removes the job."},
        {"periodic_vacate", "PeriodicVacate", ACTS, EXPR, "PeriodicVacate", NULL,
         "An expression; true takes a running job from its place, and it runs again."},
        {"leave_in_queue", "LeaveJobInQueue", ACTS, EXPR, "LeaveJobInQueue", NULL,
         "An expression; while it is true, a job that has ended stays in the queue, as well as in the history. Looked at when "
         "the job ends and every 20 seconds. See THE END OF A JOB."},
        {"hold", NULL, ACTS, OTHER, "HoldOnSubmit", NULL,
         "`True`: the jobs start held."},
        {"mirror", NULL, ACTS, OTHER, "Mirror", NULL,
         "`True`: the submit is accepted only when the server's mirror has it too; it is refused while there is none."},
        {"allowed_execute_duration", "AllowedExecuteDuration", ACTS, EXPR, "AllowedExecuteDuration", NULL,
         "The longest time, in seconds, that one attempt may run, by the clock: time suspended counts; past it the job is held "
         "with code 47."},
        {"allowed_job_duration", "AllowedJobDuration", ACTS, EXPR, "AllowedJobDuration", NULL,
         "The longest time, in seconds, that an attempt may take from the start of its program, with the way of its outputs and time "
         "suspended; past it the job is held with "
         "code 46. Looked at every 20 seconds."},
        {"deferral_time", "DeferralTime", ACTS, EXPR, "DeferralTime", NULL,
         "A Unix time before which the job is given to no place."},
        {"deferral_window", "DeferralWindow", ACTS, EXPR, "DeferralWindow", NULL,
         "For how many seconds behind deferral_time a place may still be looked for (0, and ten more, if not given); a job "
         "that found none is held with code 20."},
        {"job_lease_duration", "JobLeaseDuration", ACTS, EXPR, "JobLeaseDuration", NULL,
         "For how many seconds a job goes on running when its agent has lost the server; the server's default if not given."},
        {"checkpoint_exit_code", "CheckpointExitCode SuccessCheckpointExitCode", ACTS, EXPR, "CheckpointExitCode", NULL,
         "The exit code by which the program says that it has made a checkpoint: its files are kept, and it is started again. "
         "See CHECKPOINTS."},
        {"transfer_checkpoint_files", "TransferCheckpoint", ACTS, STRING, "TransferCheckpoint", NULL,
         "The files that are a checkpoint, parted by commas; what would be the outputs if not given."},
        {"kill_sig", "KillSig", ACTS, STRING, "KillSig", NULL,
         "The signal that asks the job to end when it is vacated or held, by name or number; SIGTERM if not given."},
        {"job_max_vacate_time", "JobMaxVacateTime", ACTS, EXPR, "JobMaxVacateTime", NULL,
         "How many seconds a job with checkpoints, or with `ON_EXIT_OR_EVICT`, may take to end when it is vacated or held; a "
         "minute if not given."},
        {"credentials", "DroverCredentials", ACTS, STRING, "DroverCredentials", NULL,
         "Names of the owner's credentials (drover-credential(1)) that the job is given, parted by commas. See CREDENTIALS. "
         "Drover's own."},
        {"x509userproxy", "x509proxy", ACTS, STRING, "x509userproxy", NULL,
         "A file with a proxy: it is stored as a credential that is called as the file, and given to the job."},
        {"use_x509userproxy", NULL, ACTS, EXPR, "UseX509UserProxy", NULL,
         "`True`: the same with the file in $X509_USER_PROXY, or */tmp/x509up_u*UID."},
        {"use_oauth_services", "UseOAuthServices", ACTS, STRING, "OAuthServicesNeeded", NULL,
         "Names of credentials, as in `credentials`; *service\\*handle* is the one called *service_handle*."},
        {"use_scitokens", "use_scitoken", ACTS, EXPR, "UseSciTokens", NULL,
         "`True`: the token in `scitokens_file`, $BEARER_TOKEN_FILE or */tmp/bt_u*UID is stored as the credential *scitokens*, "
         "and given to the job."},
        {"scitokens_file", "ScitokensFile", ACTS, STRING, "ScitokensFile", NULL, "The file with the token for `use_scitokens`."},
        {"rerun_on_lost", "RerunOnLost", ACTS, STRING, "RerunOnLost", NULL,
         "When a job runs again of whose agent nothing is heard: `safe` (the default), when its lease has ended and nothing of "
         "it can be left; `eager`, at the first missed renewal, although it may then run twice at a time. Drover's own."},
        {"notification", "JobNotification", ACTS, OTHER, "JobNotification", NULL,
         "When its owner is told of a job: `Complete` (it ends by itself), `Error` (it fails, or is held because of a "
         "failure), `Always` (it ends, is held or removed), `Start` (it starts for the first time), or `Never` (the default). "
         "See NOTICES."},
        {"notify_user", "NotifyUser", ACTS, OTHER, "NotifyUser", NULL,
         "The mail address for it; the owner's if not given. The same for all jobs of a queue statement."},
        {"email_attributes", "EmailAttributes", ACTS, STRING, "EmailAttributes", NULL,
         "Attributes of the job, parted by commas, whose values are told as well."},
        {"webhook", "notify_webhook DroverWebhook", ACTS, OTHER, "DroverWebhook", NULL,
         "A web address, on a host that the server's admin has allowed, to which notices are sent as JSON; with it "
         "`notification` is `Complete` if not given, and mail is sent only to `notify_user`. Drover's own."},
        {"machine_count", "node_count NodeCount", ACTS, OTHER, "GangSize", NULL,
         "With `universe = parallel`: so many jobs (nodes) are made of each that `queue` names, and start together; see "
         "JOBS THAT START TOGETHER."},
        {"gang_size", NULL, ACTS, OTHER, "GangSize", NULL,
         "Jobs start together, in consecutive groups of so many, all or none; `all` (or 0): all that the queue statement "
         "makes. Drover's own."},
        {"gang_within", NULL, ACTS, OTHER, "GangWithin", NULL,
         "Where the jobs of a gang get their places: at one queue of an agent (`node`), at queues of one `group`, or "
         "`anywhere` (the default). Drover's own."},
        {"gang_group_by", NULL, ACTS, STRING, "GangGroupBy", NULL,
         "The attribute of places whose value makes a group, `Group` if not given; it implies `gang_within = group`. "
         "Drover's own."},
        {"meta", "Meta", ACTS, OTHER, "Meta", NULL,
         "`True`: of all places that could run the job the best is reserved for it, and the reservation moves while another one is "
         "clearly better; see META JOBS. Drover's own."},
        {"prefer", "MetaPrefer", ACTS, OTHER, "MetaPrefer", NULL,
         "With `meta`: what is best: `time` (the default), `cost`, or the weight of the time against the cost, a number from 0 to 1. "
         "Drover's own."},
        {"parts", NULL, ACTS, OTHER, "CoAllocate", NULL,
         "`together`: all jobs of the submit file, whatever each requires, are parts of one meta job, and start at one time, each at a "
         "place that is reserved for it, or not at all. Drover's own."},
        {"max_materialize", "JobMaterializeLimit", ACTS, EXPR, "JobMaterializeLimit", NULL,
         "How many jobs of the request may be under way at once: given to a place, or held or idle again after that, and not ended."},
        {"max_idle", "materialize_max_idle JobMaterializeMaxIdle", ACTS, EXPR, "JobMaterializeMaxIdle", NULL,
         "Kept as the attribute: no job is made of a request before a place takes it."},
        {"stream_output", "StreamOut", ACTS, EXPR, "StreamOut", NULL,
         "`True`: what the program prints is in the file that **output** names while it runs, some seconds late, where an agent sees that folder."},
        {"stream_error", "StreamErr", ACTS, EXPR, "StreamErr", NULL, "The same of **error**."},
        {"want_io_proxy", "WantIOProxy", ACTS, EXPR, "WantIOProxy", NULL,
         "`True`: the program may use `drover chirp` (`condor_chirp`): files of the submit's folder, attributes of the job, lines in its log."},
        {"batch_id", "JobBatchId", ACTS, STRING, "JobBatchId", NULL, "Kept as the attribute."},
        {"dagman_job_id", "DAGManJobId", ACTS, EXPR, "DAGManJobId", NULL, "Kept as the attribute."},
        {"job_policy", NULL, ACTS, STRING, "JobPolicy", NULL,
         "How places are chosen: a policy of the server's settings (`drover config show`), or `cost`, `blind`, `cached`, `passive`, "
         "`cluster_monitor` or `queue_monitor`; `none`: no default of the settings."},
        {"job_virtual_queue", NULL, ACTS, STRING, "JobVirtualQueue", NULL, "Run at the places of a virtual queue of the server's settings."},
        {"job_dispatcher", NULL, ACTS, STRING, "JobDispatcher", NULL, "Run at the places of a dispatcher of the server's settings."},
        {"job_application", NULL, ACTS, STRING, "JobApplication", NULL,
         "Run an application of the server's settings, with its environment, in place of `executable`."},
        {"job_initializer", NULL, ACTS, STRING, "JobInitializer", NULL, "Take the defaults of an initializer of the server's settings."},
        {"batch_name", "JobBatchName", ACTS, STRING, "JobBatchName", NULL, "A name for the request."},
        {"description", "JobDescription", ACTS, STRING, "JobDescription", NULL, "Kept as the attribute."},

        /* not acted on */
        {"deferral_prep_time", "DeferralPrepTime", IGNORED, OTHER, NULL, NULL,
         "No place is kept idle ahead of deferral_time: the program starts then, or when its inputs have come."},
        {"stream_input", NULL, IGNORED, OTHER, NULL, OFF, "Input is read where the job runs."},
        {"dagman_log", NULL, IGNORED, OTHER, NULL, NULL, "There is no such log."},
        {"image_size", NULL, IGNORED, OTHER, NULL, NULL, "Use request_memory."},
        {"disk_usage", NULL, IGNORED, OTHER, NULL, NULL, "Use request_disk."},
        {"memory_usage", NULL, IGNORED, OTHER, NULL, NULL, "Use request_memory."},
        {"coresize", "core_size", IGNORED, OTHER, NULL, NULL, "The place decides about core files."},
        {"stack_size", NULL, IGNORED, OTHER, NULL, NULL, "The place decides about the stack."},
        {"max_job_retirement_time", NULL, IGNORED, OTHER, NULL, NULL, "Jobs are not preempted."},
        {"want_graceful_removal", NULL, IGNORED, OTHER, NULL, NULL, "Jobs are asked to end before they are killed."},
        {"keep_claim_idle", NULL, IGNORED, OTHER, NULL, NULL, "There are no claims."},
        {"match_list_length", NULL, IGNORED, OTHER, NULL, NULL, "Matches are kept in the job's log."},
        {"job_machine_attrs", NULL, IGNORED, OTHER, NULL, NULL, "Not recorded."},
        {"job_machine_attrs_history_length", NULL, IGNORED, OTHER, NULL, NULL, "Not recorded."},
        {"job_ad_information_attrs", NULL, IGNORED, OTHER, NULL, NULL, "Not recorded."},
        {"ulog_execute_attrs", NULL, IGNORED, OTHER, NULL, NULL, "Not recorded."},
        {"submit_event_notes_attrs", NULL, IGNORED, OTHER, NULL, NULL, "Not recorded."},
        {"skip_filechecks", NULL, IGNORED, OTHER, NULL, NULL, "Files are looked at when they are needed."},
        {"interactive_*", NULL, IGNORED, OTHER, NULL, NULL, "There are no interactive jobs."},
        {"container_is_common", NULL, IGNORED, OTHER, NULL, NULL, "A place fetches an image as it sees fit."},
        {"delegate_job_gsi_credentials_lifetime", NULL, IGNORED, OTHER, NULL, NULL, "Proxies are not passed on."},
        {"want_ads", NULL, IGNORED, OTHER, NULL, NULL, "There is no such service."},
        {"WantNameTag", NULL, IGNORED, OTHER, NULL, NULL, "Cloud machines are not started by a submit."},
        {"rendezvousdir", NULL, IGNORED, OTHER, NULL, NULL, "Jobs share no folder."},
        {"keystore_*", NULL, IGNORED, OTHER, NULL, NULL, "Credentials are not passed on."},
        {"allow_startup_script", NULL, IGNORED, OTHER, NULL, NULL, "Any program may be the executable."},
        {"want_remote_io", NULL, IGNORED, OTHER, NULL, OFF, "Files are read where the job runs."},
        {"manifest", NULL, IGNORED, OTHER, NULL, OFF, "No manifest is written."},
        {"manifest_dir", NULL, IGNORED, OTHER, NULL, NULL, "No manifest is written."},
        {"starter_debug", NULL, IGNORED, OTHER, NULL, NULL, "There is no starter."},
        {"starter_log", NULL, IGNORED, OTHER, NULL, NULL, "There is no starter."},
        {"run_as_owner", NULL, IGNORED, OTHER, NULL, ON, "The agent's configuration maps owners to users."},
        {"load_profile", NULL, IGNORED, OTHER, NULL, OFF, "For Windows only."},
        {"want_job_networking", NULL, IGNORED, OTHER, NULL, ON, "The network is as the place has it."},
        {"allow_arguments_v1", NULL, IGNORED, OTHER, NULL, "true false", "Both syntaxes are read."},
        {"allow_environment_v1", NULL, IGNORED, OTHER, NULL, "true false", "Both syntaxes are read."},
        {"copy_to_spool", NULL, IGNORED, OTHER, NULL, OFF, "See should_transfer_files."},
        {"buffer_*", NULL, IGNORED, OTHER, NULL, NULL, "For a universe that is no more."},
        {"retry_request_memory*", NULL, IGNORED, OTHER, NULL, NULL,
         "A job that needs more is held. Use an expression: request_memory = 1024 * (NumJobStarts + 1)."},
        {"retry_request_disk", NULL, IGNORED, OTHER, NULL, NULL,
         "A job that needs more is held. Use an expression: request_disk = 1048576 * (NumJobStarts + 1)."},
        {"transfer_input", NULL, IGNORED, OTHER, NULL, ON, "Standard input is always brought along."},
        {"transfer_output", NULL, IGNORED, OTHER, NULL, ON, "Standard output is always brought back."},
        {"transfer_error", NULL, IGNORED, OTHER, NULL, ON, "Standard error is always brought back."},
        {"skip_if_dataflow", NULL, IGNORED, OTHER, NULL, OFF, "Each job runs."},
        {"next_job_start_delay", NULL, IGNORED, OTHER, NULL, "0", "Jobs start when there is a place."},
        {"remove_kill_sig", NULL, IGNORED, OTHER, NULL, "SIGTERM 15", "Jobs are ended with SIGTERM."},
        {"hold_kill_sig", NULL, IGNORED, OTHER, NULL, "SIGTERM 15", "Jobs are ended with SIGTERM."},

        /* refused */
        {"cuda_version", NULL, REFUSED, OTHER, NULL, NULL, "Ask for GPUs by request_gpus and requirements."},
        {"require_*", NULL, REFUSED, OTHER, NULL, NULL, "Put a condition on the place into requirements."},
        {"transfer_plugins", NULL, REFUSED, OTHER, NULL, NULL, "An agent's `movers` name programs for schemes."},
        {"output_directory", NULL, REFUSED, OTHER, NULL, NULL, "Outputs go to initialdir; see transfer_output_remaps."},
        {"public_input_files", NULL, REFUSED, OTHER, NULL, NULL, "Use transfer_input_files."},
        {"max_transfer_input_mb", NULL, REFUSED, OTHER, NULL, NULL, "The server's configuration limits uploads."},
        {"max_transfer_output_mb", NULL, REFUSED, OTHER, NULL, NULL, "Use request_disk."},
        {"encrypt_input_files", NULL, IGNORED, OTHER, NULL, NULL, "All transfers between agents and server are encrypted."},
        {"encrypt_output_files", NULL, IGNORED, OTHER, NULL, NULL, "All transfers between agents and server are encrypted."},
        {"dont_encrypt_input_files", NULL, IGNORED, OTHER, NULL, NULL, "All transfers are encrypted."},
        {"dont_encrypt_output_files", NULL, IGNORED, OTHER, NULL, NULL, "All transfers are encrypted."},
        {"encrypt_execute_directory", NULL, REFUSED, OTHER, NULL, OFF, "Scratch folders are not encrypted."},
        {"checkpoint_*", NULL, REFUSED, OTHER, NULL, NULL, "Checkpoints are kept by the server."},
        {"erase_output_and_error_on_restart", NULL, REFUSED, OTHER, NULL, ON, "They begin anew with each attempt."},
        {"remote_initialdir", NULL, REFUSED, OTHER, NULL, NULL, "The job runs in a scratch folder of its own."},
        {"noop_job*", NULL, REFUSED, OTHER, NULL, OFF, "Each job runs."},
        {"kill_sig_timeout", NULL, IGNORED, OTHER, NULL, NULL, "The agent's configuration sets this time."},
        {"cron_*", NULL, REFUSED, OTHER, NULL, NULL, "Jobs don't come again by the clock, for which the server has no time zone; submit from cron(8), or give deferral_time."},
        {"mount_under_scratch", NULL, REFUSED, OTHER, NULL, NULL, "Nothing is mounted."},
        {"primary_unix_group", NULL, REFUSED, OTHER, NULL, NULL, "The agent's configuration maps owners to users."},
        {"vm_*", NULL, REFUSED, OTHER, NULL, NULL, "Virtual machines are not started."},
        {"xen_*", NULL, REFUSED, OTHER, NULL, NULL, "Virtual machines are not started."},
        {"jar_files", NULL, REFUSED, OTHER, NULL, NULL, "Run java as the executable; see UNIVERSES."},
        {"java_vm_*", NULL, REFUSED, OTHER, NULL, NULL, "Run java as the executable; see UNIVERSES."},
        {"arc_*", NULL, REFUSED, OTHER, NULL, NULL, "A cluster joins as an agent; see drover-agent(8)."},
        {"batch_extra_submit_args", NULL, REFUSED, OTHER, NULL, NULL, "A cluster joins as an agent."},
        {"batch_project", NULL, REFUSED, OTHER, NULL, NULL, "A cluster joins as an agent."},
        {"batch_queue", NULL, REFUSED, OTHER, NULL, NULL, "A cluster joins as an agent."},
        {"batch_runtime", NULL, REFUSED, OTHER, NULL, NULL, "A cluster joins as an agent."},
        {"ec2_*", NULL, REFUSED, OTHER, NULL, NULL, "Cloud machines are not started by a submit."},
        {"gce_*", NULL, REFUSED, OTHER, NULL, NULL, "Cloud machines are not started by a submit."},
        {"azure_*", NULL, REFUSED, OTHER, NULL, NULL, "Cloud machines are not started by a submit."},
        {"aws_*", NULL, REFUSED, OTHER, NULL, NULL, "Credentials for clouds are not passed on."},
        {"s3_*", NULL, REFUSED, OTHER, NULL, NULL, "Credentials for clouds are not passed on."},
        {"gs_*", NULL, REFUSED, OTHER, NULL, NULL, "Credentials for clouds are not passed on."},
        {"*_oauth_permissions", NULL, REFUSED, OTHER, NULL, NULL, "Tokens are given as they are: `drover credential add`."},
        {"*_oauth_resource", NULL, REFUSED, OTHER, NULL, NULL, "Tokens are given as they are: `drover credential add`."},
        {"send_credential", NULL, REFUSED, OTHER, NULL, OFF, "Credentials are not passed on."},
        {"*_container_port", NULL, REFUSED, OTHER, NULL, NULL, "No ports of containers are opened."},
        {"cloud_label_*", NULL, REFUSED, OTHER, NULL, NULL, "Cloud machines are not started by a submit."},
        {"globus_*", NULL, REFUSED, OTHER, NULL, NULL, "Say what the job needs with request_… and requirements."},
        {"globusrsl", NULL, REFUSED, OTHER, NULL, NULL, "Say what the job needs with request_… and requirements."},
        {"nordugrid_*", NULL, REFUSED, OTHER, NULL, NULL, "Say what the job needs with request_… and requirements."},
        {"cream_*", NULL, REFUSED, OTHER, NULL, NULL, "Say what the job needs with request_… and requirements."},
        {"boinc_*", NULL, REFUSED, OTHER, NULL, NULL, "A cluster joins as an agent; see drover-agent(8)."},
        {"amazon_*", NULL, REFUSED, OTHER, NULL, NULL, "Cloud machines are not started by a submit."},
        {"remote_*", NULL, REFUSED, OTHER, NULL, NULL, "A job is described once, whichever way it goes."},
        {"exit_requirements", NULL, REFUSED, OTHER, NULL, NULL, "Use on_exit_remove."},
        {"on_evict_checks", NULL, REFUSED, OTHER, NULL, NULL, "Use an expression that looks at NumJobStarts."},
        {"transform_body_*", NULL, REFUSED, OTHER, NULL, NULL, "Jobs are not rewritten."},
        {"parallel_script_*", NULL, REFUSED, OTHER, NULL, NULL, "A job runs at one place."},
        {"append_files", NULL, REFUSED, OTHER, NULL, NULL, "For a universe that is no more; see transfer_output_files."},
        {"compress_files", NULL, REFUSED, OTHER, NULL, NULL, "For a universe that is no more."},
        {"fetch_files", NULL, REFUSED, OTHER, NULL, NULL, "For a universe that is no more; see transfer_input_files."},
        {"local_files", NULL, REFUSED, OTHER, NULL, NULL, "For a universe that is no more; see transfer_input_files."},
        {"file_remaps", NULL, REFUSED, OTHER, NULL, NULL, "For a universe that is no more; see transfer_output_remaps."},
        {"suspend_job_at_exec", NULL, REFUSED, OTHER, NULL, OFF, "There are no tool daemons."},
        {"transfer_common_input", NULL, REFUSED, OTHER, NULL, NULL, "Use transfer_input_files."},
        {"tool_daemon_*", NULL, REFUSED, OTHER, NULL, NULL, "There are no tool daemons."},
        {"jobset", NULL, REFUSED, OTHER, NULL, NULL, "Use batch_name."},
};
/* clang-format on */
const size_t keyword_count = sizeof(keywords) / sizeof(keywords[0]);

static bool is_pattern(const char *name)
{
        return strchr(name, '*') != NULL;
}

/* Returns the number of characters that a matching pattern fixes; 0: it does not match. */
static size_t pattern_fits(const char *pattern, struct str name)
{
        struct str p = str_of(pattern);

        if (str_ends(p, STR("*")))
                return str_istarts(name, str_head(p, p.n - 1)) ? p.n - 1 : 0;
        p = str_skip(p, 1);
        return name.n > p.n && str_ieq(str_skip(name, name.n - p.n), p) ? p.n : 0;
}

static bool in_list(const char *list, struct str word)
{
        struct str rest = str_of(list), one;

        while (str_word(&rest, &one))
                if (str_ieq(one, word))
                        return true;
        return false;
}

const struct keyword *keyword_find(struct str name)
{
        const struct keyword *found = NULL;
        size_t best = 0;

        for (size_t i = 0; i < keyword_count; i++) {
                const struct keyword *k = &keywords[i];
                size_t fixed = is_pattern(k->name) ? pattern_fits(k->name, name) : 0;

                if (str_ieqz(name, k->name) || in_list(k->aliases, name))
                        return k;
                if (fixed > best) {
                        found = k;
                        best = fixed;
                }
        }
        return found;
}

const struct keyword *keyword_near(struct str name)
{
        const struct keyword *near = NULL;
        unsigned best = name.n < 5 ? 1 : name.n < 9 ? 2 : 3;

        for (size_t i = 0; i < keyword_count; i++) {
                const struct keyword *k = &keywords[i];
                unsigned d;

                if (is_pattern(k->name))
                        continue;
                d = str_distance(name, str_of(k->name), best);
                if (d < best || (d == best && !near)) {
                        best = d;
                        near = k;
                }
        }
        return near;
}

bool keyword_is_quiet(const struct keyword *k, struct str value)
{
        return in_list(k->quiet, value);
}

/* Writes the keywords with one effect under a heading; nothing if there are none. */
static void write_group(struct buf *out, const char *heading, enum keyword_effect effect)
{
        bool any = false;

        for (size_t i = 0; i < keyword_count; i++) {
                const struct keyword *k = &keywords[i];
                struct str rest = str_of(k->aliases), one;

                if (k->effect != effect)
                        continue;
                if (!any)
                        buf_printf(out, "## %s\n\n", heading);
                any = true;
                buf_addz(out, "**");
                for (const char *p = k->name; *p; p++)
                        if (*p == '*')
                                buf_addz(out, "…");
                        else if (*p == '_' && p > k->name && p[-1] == '*')
                                buf_addz(out, "\\_"); /* else it begins an emphasis of the Markdown */
                        else
                                buf_char(out, *p);
                buf_addz(out, "**");
                while (str_word(&rest, &one))
                        buf_printf(out, ", " STR_FMT, STR_ARG(one));
                if (k->attribute)
                        buf_printf(out, " (%s)", k->attribute);
                buf_printf(out, "\n:   %s", k->text);
                if (k->quiet) {
                        rest = str_of(k->quiet);
                        str_word(&rest, &one);
                        buf_printf(out, " `" STR_FMT "` is fine.", STR_ARG(one));
                }
                buf_addz(out, "\n\n");
        }
}

void keyword_write_manual(struct buf *out)
{
        write_group(out, "Keywords that act", KEYWORD_ACTS);
        write_group(out, "Keywords that are kept as an attribute, with a warning", KEYWORD_KEPT);
        write_group(out, "Keywords that are ignored, with a warning", KEYWORD_IGNORED);
        write_group(out, "Keywords that are refused", KEYWORD_REFUSED);
}
