/* batch: translates the options, script and environment of sbatch and srun to a submit file.
 *
 * A job runs in its working folder at places that see it. The script is passed in the arguments of a shell,
 * which writes it into the job's scratch folder and becomes its interpreter, so that later changes of the
 * script's file have no effect. One job runs on one node: with --ntasks it has the processors of all its
 * tasks there.
 *
 * Attributes that the other commands show: SlurmName, SlurmCommand, SlurmTask (of an array: the number of
 * the task), SlurmTasks (its text), SlurmPartition, SlurmTasksPerJob, SlurmComment, SlurmDeadline,
 * SlurmRequeue, SlurmDependency.
 */
#pragma once
#include "cli/slurm/tasks.h"
#include "cli/terminal/cli.h"
#include "cli/terminal/words.h"

/* Step between the numbers of a request's jobs: where a job must have a single number, it is the request's
 * number plus M steps for member M. */
#define BATCH_MEMBER_STEP 100000000ll

#define BATCH_SCRIPT_MAX  (900u << 10) /* maximum bytes of a script; arguments have 1 MiB */

struct batch {
        struct cli *cli;
        const struct words *words;
        struct str script;   /* content of the script; empty: there is none, and no arguments are written */
        const char *command; /* path of the script; "(null)" if there is none */
        const char *name;    /* name of the job, if no option names it */
        char **arguments;    /* arguments of the script */
        size_t argument_count;
        bool environment; /* the environment is written, with the variables of Slurm */
        bool streams;     /* --output, --error and --input are written */
};
/* Appends the submit file without its queue statement, or with it. Prints notes on options that are left out
 * or handled in another way. Returns 0, or -errno with err: an option has an invalid value. */
int batch_write(const struct batch *b, struct buf *out, struct err *err);

/* Gives the number of tasks that were requested, all of them on one node; 0: no option says it. Returns 0,
 * or -EINVAL with err. */
int batch_tasks(const struct words *w, int64_t *ret, struct err *err);

/* options of pyxis, the plugin by which many sites run containers, and Slurm's own */
#define BATCH_CONTAINER(option, kind, value)                                                                 \
        {                                                                                                    \
                option, 0, kind, WORDS_REFUSED, value, NULL, "use container_image of drover-submit-file(5)." \
        }
/* The options that batch_write reads. */
#define BATCH_ROWS                                                                                             \
        {"account",                                                                                            \
         'A',                                                                                                  \
         WORDS_VALUE,                                                                                          \
         WORDS_ACTS,                                                                                           \
         "ACCOUNT",                                                                                            \
         "SBATCH_ACCOUNT",                                                                                     \
         "The accounting group that the job counts for."},                                                     \
                {"array",                                                                                      \
                 'a',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "TASKS",                                                                                      \
                 "SBATCH_ARRAY_INX",                                                                           \
                 "A job array: `1-100`, `0-15:4`, `1,3,5`; with `%N` behind it at most N at a time."},         \
                {"begin",                                                                                      \
                 'b',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "TIME",                                                                                       \
                 NULL,                                                                                         \
                 "Not before: `16:00`, `now+1hour`, `tomorrow`, `2026-01-31T12:00`."},                         \
                {"chdir",                                                                                      \
                 'D',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "FOLDER",                                                                                     \
                 NULL,                                                                                         \
                 "The working folder; that of the call if not given."},                                        \
                {"workdir", 0, WORDS_VALUE, WORDS_ACTS, "FOLDER", NULL, "The old name of --chdir."},           \
                {"comment", 0, WORDS_VALUE, WORDS_ACTS, "TEXT", NULL, "Kept, and shown by squeue's `%k`."},    \
                {"constraint",                                                                                 \
                 'C',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "FEATURES",                                                                                   \
                 "SBATCH_CONSTRAINT",                                                                          \
                 "Features that the agent's attribute *Features* lists: `a&b`, `a|b`, parentheses."},          \
                {"cpus-per-gpu",                                                                               \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "N",                                                                                          \
                 "SBATCH_CPUS_PER_GPU",                                                                        \
                 "Processors for each GPU."},                                                                  \
                {"cpus-per-task", 'c', WORDS_VALUE, WORDS_ACTS, "N", NULL, "Processors of each task."},        \
                {"deadline",                                                                                   \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "TIME",                                                                                       \
                 NULL,                                                                                         \
                 "The job is removed when it has not ended by then."},                                         \
                {"dependency",                                                                                 \
                 'd',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "LIST",                                                                                       \
                 NULL,                                                                                         \
                 "`afterok:1:2,afterany:3_4`, `afternotok`, `aftercorr`, `singleton`; `after` of jobs that "   \
                 "have "                                                                                       \
                 "begun. Alternatives with `?` are refused."},                                                 \
                {"exclude", 'x', WORDS_VALUE, WORDS_ACTS, "NODES", NULL, "Agents that are not taken."},        \
                {"export",                                                                                     \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "NAMES",                                                                                      \
                 "SBATCH_EXPORT",                                                                              \
                 "`ALL` (the default), `NONE`, `NAME,NAME=VALUE`, also behind `ALL,`."},                       \
                {"gpus", 'G', WORDS_VALUE, WORDS_ACTS, "[TYPE:]N", "SBATCH_GPUS", "GPUs."},                    \
                {"gpus-per-node",        0,          WORDS_VALUE, WORDS_ACTS, "[TYPE:]N",                      \
                 "SBATCH_GPUS_PER_NODE", "The same."},                                                         \
                {"gpus-per-task",      0, WORDS_VALUE, WORDS_ACTS, "[TYPE:]N", "SBATCH_GPUS_PER_TASK",         \
                 "GPUs for each task."},                                                                       \
                {"gres",                                                                                       \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "LIST",                                                                                       \
                 "SBATCH_GRES",                                                                                \
                 "`gpu:2`, `gpu:TYPE:2`; of others the resource of that name: `licence:3` is "                 \
                 "request_licence."},                                                                          \
                {"hold", 'H', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "The job waits for scontrol release."},     \
                {"input", 'i', WORDS_VALUE, WORDS_ACTS, "FILE", NULL, "Standard input; none if not given."},   \
                {"job-name", 'J', WORDS_VALUE, WORDS_ACTS, "NAME", "SBATCH_JOB_NAME", "The job's name."},      \
                {"kill-on-invalid-dep",                                                                        \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "yes|no",                                                                                     \
                 NULL,                                                                                         \
                 "`yes`: a job that can never start, since what it waits for has ended otherwise, is "         \
                 "removed."},                                                                                  \
                {"licenses",                                                                                   \
                 'L',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "LIST",                                                                                       \
                 NULL,                                                                                         \
                 "The server's limits: `NAME:2,OTHER`."},                                                      \
                {"mail-type",                                                                                  \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "TYPES",                                                                                      \
                 NULL,                                                                                         \
                 "`END` and `ALL` mail when the job ends, is held or removed, `FAIL` when it fails, "          \
                 "`BEGIN` alone "                                                                              \
                 "when it starts."},                                                                           \
                {"mail-user", 0, WORDS_VALUE, WORDS_ACTS, "ADDRESS", NULL, "To whom."},                        \
                {"mem",                                                                                        \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "SIZE",                                                                                       \
                 "SBATCH_MEM_PER_NODE",                                                                        \
                 "Memory: MiB, or with K, M, G, T. 0: none is asked for."},                                    \
                {"mem-per-cpu",                                                                                \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "SIZE",                                                                                       \
                 "SBATCH_MEM_PER_CPU",                                                                         \
                 "The same, for each processor."},                                                             \
                {"mem-per-gpu",                                                                                \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "SIZE",                                                                                       \
                 "SBATCH_MEM_PER_GPU",                                                                         \
                 "The same, for each GPU."},                                                                   \
                {"mincpus", 0, WORDS_VALUE, WORDS_ACTS, "N", NULL, "Processors at least."},                    \
                {"nice",                                                                                       \
                 0,                                                                                            \
                 WORDS_MAYBE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "N",                                                                                          \
                 NULL,                                                                                         \
                 "The job's priority among one's own is lower by N (100)."},                                   \
                {"nodelist", 'w', WORDS_VALUE, WORDS_ACTS, "NODE", NULL, "The agent to run at."},              \
                {"nodes",                                                                                      \
                 'N',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "1",                                                                                          \
                 NULL,                                                                                         \
                 "One node; of a range its beginning. More are refused."},                                     \
                {"ntasks",                                                                                     \
                 'n',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "N",                                                                                          \
                 NULL,                                                                                         \
                 "Tasks that srun may start beside each other, on one node."},                                 \
                {"tasks", 0, WORDS_VALUE, WORDS_ACTS, "N", NULL, "The old name of --ntasks."},                 \
                {"tasks-per-node",                                                                             \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "N",                                                                                          \
                 NULL,                                                                                         \
                 "The old name of --ntasks-per-node."},                                                        \
                {"distribution",      'm', WORDS_VALUE, WORDS_NAMED, "TEXT", "SBATCH_DISTRIBUTION",            \
                 "there is one node."},                                                                        \
                {"extra", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", NULL, "it is kept nowhere; use --comment."},    \
                {"oom-kill-step",                                                                              \
                 0,                                                                                            \
                 WORDS_MAYBE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "0|1",                                                                                        \
                 NULL,                                                                                         \
                 "a limit on memory is the job's."},                                                           \
                {"segment", 0, WORDS_VALUE, WORDS_NAMED, "N", NULL, "there is one node."},                     \
                {"tres-bind", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", NULL, "a job sees its GPUs only."},         \
                {"tres-per-task",                                                                              \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_REFUSED,                                                                                \
                 "LIST",                                                                                       \
                 NULL,                                                                                         \
                 "use --cpus-per-task and --gpus-per-task."},                                                  \
                BATCH_CONTAINER("container-id", WORDS_VALUE, "ID"),                                            \
                {"share", 0, WORDS_PLAIN, WORDS_NAMED, NULL, NULL, "a job has processors of its own."},        \
                {"ntasks-per-node",                                                                            \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "N",                                                                                          \
                 NULL,                                                                                         \
                 "The same, since there is one node."},                                                        \
                {"open-mode",                                                                                  \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "append|truncate",                                                                            \
                 "SBATCH_OPEN_MODE",                                                                           \
                 "Whether what is in the files of the streams stays."},                                        \
                {"output",                                                                                     \
                 'o',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "FILE",                                                                                       \
                 "SBATCH_OUTPUT",                                                                              \
                 "Standard output, `slurm-%j.out` if not given, of an array `slurm-%A_%a.out`. See FILES."},   \
                {"error",                                                                                      \
                 'e',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "FILE",                                                                                       \
                 "SBATCH_ERROR",                                                                               \
                 "Standard error; with standard output if not given."},                                        \
                {"partition",                                                                                  \
                 'p',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "QUEUES",                                                                                     \
                 "SBATCH_PARTITION",                                                                           \
                 "Queues of agents, by their names."},                                                         \
                {"priority", 0, WORDS_VALUE, WORDS_ACTS, "N", NULL, "The job's priority among one's own."},    \
                {"qos",                                                                                        \
                 'q',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "NAME",                                                                                       \
                 "SBATCH_QOS",                                                                                 \
                 "The quality of service, of the server's settings."},                                         \
                {"requeue",                                                                                    \
                 0,                                                                                            \
                 WORDS_PLAIN,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 NULL,                                                                                         \
                 "SBATCH_REQUEUE",                                                                             \
                 "A job whose node is lost runs again: the default."},                                         \
                {"no-requeue",                                                                                 \
                 0,                                                                                            \
                 WORDS_PLAIN,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 NULL,                                                                                         \
                 "SBATCH_NO_REQUEUE",                                                                          \
                 "A job that has begun is not started again; where its node is lost it is removed."},          \
                {"signal",                                                                                     \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "[B:]SIG[@S]",                                                                                \
                 "SBATCH_SIGNAL",                                                                              \
                 "That signal S seconds (60) before --time ends; with `B:` to the script alone, else to "      \
                 "what it "                                                                                    \
                 "has started."},                                                                              \
                {"time",                                                                                       \
                 't',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "TIME",                                                                                       \
                 "SBATCH_TIMELIMIT",                                                                           \
                 "The longest time: minutes, `MM:SS`, `HH:MM:SS`, `D-HH:MM:SS`."},                             \
                {"tmp", 0, WORDS_VALUE, WORDS_ACTS, "SIZE", NULL, "Scratch space: MiB, or with K, M, G, T."},  \
                {"gpus-per-socket", 0, WORDS_VALUE, WORDS_REFUSED, "N", NULL, "use --gpus."},                  \
                {"burst-buffer", 0, WORDS_VALUE, WORDS_REFUSED, "TEXT", NULL, "there are no burst buffers."},  \
                {"bb", 0, WORDS_VALUE, WORDS_REFUSED, "TEXT", NULL, "there are no burst buffers."},            \
                {"bbf", 0, WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "there are no burst buffers."},           \
                {"clusters",                                                                                   \
                 'M',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_REFUSED,                                                                                \
                 "NAMES",                                                                                      \
                 "SBATCH_CLUSTERS",                                                                            \
                 "$DROVER_DIR or $DROVER_SERVER name the server."},                                            \
                {"cluster", 0, WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL, "see --clusters."},                  \
                {"cluster-constraint", 0, WORDS_VALUE, WORDS_REFUSED, "LIST", NULL, "there is one cluster."},  \
                BATCH_CONTAINER("container", WORDS_VALUE, "FOLDER"),                                           \
                BATCH_CONTAINER("container-image", WORDS_VALUE, "TEXT"),                                       \
                BATCH_CONTAINER("container-mounts", WORDS_VALUE, "TEXT"),                                      \
                BATCH_CONTAINER("container-workdir", WORDS_VALUE, "TEXT"),                                     \
                BATCH_CONTAINER("container-name", WORDS_VALUE, "TEXT"),                                        \
                BATCH_CONTAINER("container-env", WORDS_VALUE, "TEXT"),                                         \
                BATCH_CONTAINER("container-mount-home", WORDS_PLAIN, NULL),                                    \
                BATCH_CONTAINER("no-container-mount-home", WORDS_PLAIN, NULL),                                 \
                BATCH_CONTAINER("container-writable", WORDS_PLAIN, NULL),                                      \
                {"gid", 0, WORDS_VALUE, WORDS_REFUSED, "GROUP", NULL, "a job has its owner's group."},         \
                {"uid", 0, WORDS_VALUE, WORDS_REFUSED, "USER", NULL, "a job runs as its owner."},              \
                {"nodefile", 'F', WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "use --nodelist."},                \
                {"overcommit",                                                                                 \
                 'O',                                                                                          \
                 WORDS_PLAIN,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 NULL,                                                                                         \
                 NULL,                                                                                         \
                 "each task has processors of its own."},                                                      \
                {"prefer",                                                                                     \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "FEATURES",                                                                                   \
                 NULL,                                                                                         \
                 "places are compared by their cost."},                                                        \
                {"reboot", 0, WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "nodes are not rebooted."},              \
                {"reservation",                                                                                \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_ACTS,                                                                                   \
                 "NUMBER",                                                                                     \
                 "SBATCH_RESERVATION",                                                                         \
                 "A reservation, by its number."},                                                             \
                {"get-user-env",                                                                               \
                 0,                                                                                            \
                 WORDS_MAYBE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "MODE",                                                                                       \
                 NULL,                                                                                         \
                 "the environment is that of the call, or with --export=NONE the place's."},                   \
                {"acctg-freq",                                                                                 \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 "SBATCH_ACCTG_FREQ",                                                                          \
                 "agents measure as they do."},                                                                \
                {"batch", 0, WORDS_VALUE, WORDS_NAMED, "FEATURES", "SBATCH_BATCH", "there is one node."},      \
                {"contiguous", 0, WORDS_PLAIN, WORDS_NAMED, NULL, NULL, "there is one node."},                 \
                {"core-spec",                                                                                  \
                 'S',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "N",                                                                                          \
                 "SBATCH_CORE_SPEC",                                                                           \
                 "agents know their cores."},                                                                  \
                {"cores-per-socket",                                                                           \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "N",                                                                                          \
                 NULL,                                                                                         \
                 "processors are not told apart."},                                                            \
                {"cpu-freq", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", NULL, "frequencies are the node's."},        \
                {"delay-boot",                                                                                 \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "MINUTES",                                                                                    \
                 NULL,                                                                                         \
                 "nodes are not booted for a job."},                                                           \
                {"exclusive",                                                                                  \
                 0,                                                                                            \
                 WORDS_MAYBE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "user|mcs",                                                                                   \
                 "SBATCH_EXCLUSIVE",                                                                           \
                 "a job shares its node; ask for all its processors with --cpus-per-task."},                   \
                {"extra-node-info",                                                                            \
                 'B',                                                                                          \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 NULL,                                                                                         \
                 "processors are not told apart."},                                                            \
                {"gpu-bind",                                                                                   \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 "SBATCH_GPU_BIND",                                                                            \
                 "a job sees its GPUs only."},                                                                 \
                {"gpu-freq",                                                                                   \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 "SBATCH_GPU_FREQ",                                                                            \
                 "frequencies are the node's."},                                                               \
                {"gres-flags",                                                                                 \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 "SBATCH_GRES_FLAGS",                                                                          \
                 "GPUs are not bound to processors."},                                                         \
                {"hint",                                                                                       \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 "SBATCH_HINT",                                                                                \
                 "processors are not told apart."},                                                            \
                {"ignore-pbs",                                                                                 \
                 0,                                                                                            \
                 WORDS_PLAIN,                                                                                  \
                 WORDS_SO,                                                                                     \
                 NULL,                                                                                         \
                 "SBATCH_IGNORE_PBS",                                                                          \
                 "#PBS lines are not read."},                                                                  \
                {"mcs-label", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", NULL, "there are no such labels."},         \
                {"mem-bind", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", "SBATCH_MEM_BIND", "memory is not bound."},  \
                {"network",                                                                                    \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 "SBATCH_NETWORK",                                                                             \
                 "the network is the node's."},                                                                \
                {"no-kill", 'k', WORDS_MAYBE, WORDS_NAMED, "off", "SBATCH_NO_KILL", "there is one node."},     \
                {"ntasks-per-core", 0, WORDS_VALUE, WORDS_NAMED, "N", NULL, "processors are not told apart."}, \
                {"ntasks-per-gpu", 0, WORDS_VALUE, WORDS_REFUSED, "N", NULL, "use --ntasks and --gpus."},      \
                {"ntasks-per-socket",                                                                          \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "N",                                                                                          \
                 NULL,                                                                                         \
                 "processors are not told apart."},                                                            \
                {"oversubscribe",                                                                              \
                 's',                                                                                          \
                 WORDS_PLAIN,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 NULL,                                                                                         \
                 "SBATCH_OVERSUBSCRIBE",                                                                       \
                 "a job has processors of its own."},                                                          \
                {"power", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", "SBATCH_POWER", "power is the node's."},        \
                {"profile",                                                                                    \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "TEXT",                                                                                       \
                 "SBATCH_PROFILE",                                                                             \
                 "agents measure as they do."},                                                                \
                {"propagate",                                                                                  \
                 0,                                                                                            \
                 WORDS_MAYBE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "LIMITS",                                                                                     \
                 NULL,                                                                                         \
                 "resource limits are the agent's."},                                                          \
                {"sockets-per-node",                                                                           \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "N",                                                                                          \
                 NULL,                                                                                         \
                 "processors are not told apart."},                                                            \
                {"spread-job", 0, WORDS_PLAIN, WORDS_NAMED, NULL, "SBATCH_SPREAD_JOB", "there is one node."},  \
                {"switches", 0, WORDS_VALUE, WORDS_NAMED, "N", NULL, "there is one node."},                    \
                {"thread-spec",                                                                                \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "N",                                                                                          \
                 "SBATCH_THREAD_SPEC",                                                                         \
                 "agents know their cores."},                                                                  \
                {"threads-per-core",                                                                           \
                 0,                                                                                            \
                 WORDS_VALUE,                                                                                  \
                 WORDS_NAMED,                                                                                  \
                 "N",                                                                                          \
                 "SBATCH_THREADS_PER_CORE",                                                                    \
                 "processors are not told apart."},                                                            \
                {"time-min", 0, WORDS_VALUE, WORDS_NAMED, "TIME", NULL, "the limit stays that of --time."},    \
                {"use-min-nodes",     0, WORDS_PLAIN, WORDS_NAMED, NULL, "SBATCH_USE_MIN_NODES",               \
                 "there is one node."},                                                                        \
                {"verbose", 'v', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Nothing more is told."},                  \
                {"wait-all-nodes",    0, WORDS_VALUE, WORDS_NAMED, "0|1", "SBATCH_WAIT_ALL_NODES",             \
                 "there is one node."},                                                                        \
        {                                                                                                      \
                "wckey", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", "SBATCH_WCKEY", "there are no such keys."        \
        }
