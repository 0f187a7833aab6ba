/* The table of commands: the parser, --help, the manual pages and the completion are made from it. */
#include "cli/command/commands.h"
#include "cli/terminal/cli.h"

#define JSON_ROW                                                                                             \
        {                                                                                                    \
                "json", 0, OPTION_FLAG, NULL, "Print the server's answer as one JSON document."              \
        }

/* For commands whose answer is a table (cli_table). */
#define TABLE_ROWS_WITH(columns_letter)                                                                      \
        {"columns", columns_letter, OPTION_TEXT, "COLUMNS",                                                  \
         "Show these columns, in this order, as in id,state,agent. An unknown name lists all columns."},     \
                {"sort", 0, OPTION_TEXT, "COLUMN",                                                           \
                 "Sort by a column; with a leading minus, in descending order."},                            \
                {"csv", 0, OPTION_FLAG, NULL,                                                                \
                 "Print CSV, with times in ISO 8601 and durations in seconds."},                             \
        {                                                                                                    \
                "no-header", 0, OPTION_FLAG, NULL, "Omit the header line."                                   \
        }
#define TABLE_ROWS TABLE_ROWS_WITH('o')

/* The options before "--" (client/one_line.h), which drover run and drover submit share. */
#define COMMAND_ROWS                                                                                         \
        {"cpus", 0, OPTION_NUMBER, "N", "Processors per job. Default: 1."},                                  \
                {"memory", 0, OPTION_TEXT, "SIZE", "Memory per job, as in 2G."},                             \
                {"disk", 0, OPTION_TEXT, "SIZE", "Disk space per job, as in 10G."},                          \
                {"gpus", 0, OPTION_NUMBER, "N", "GPUs per job."},                                            \
                {"nodes", 0, OPTION_NUMBER, "N",                                                             \
                 "Nodes of one batch system per job. --cpus is then per task, --memory and --gpus are per "  \
                 "node."},                                                                                   \
                {"tasks-per-node", 0, OPTION_NUMBER, "N", "With --nodes: processes per node, as for MPI."},  \
                {"time", 0, OPTION_DURATION, "TIME", "Longest run time of a job: 90s, 15m, 1h."},            \
                {"name", 0, OPTION_TEXT, "NAME", "The name of the request and of its output files."},        \
                {"array", 0, OPTION_TEXT, "N|A-B",                                                           \
                 "Submit N jobs, numbered from 0, or from A to B. {} in the command is the job's number; "   \
                 "{#} counts from 1."},                                                                      \
                {"each", 0, OPTION_TEXT, "FILE|PATTERN",                                                     \
                 "Submit a job for each line of FILE, or for each file that PATTERN matches, as in "         \
                 "'data/*.csv'. {} in the command is the line or file, {.} without its extension, {/} "      \
                 "without its folder, {//} its folder, {/.} without both; {#} counts from 1. If the "        \
                 "command has none of these, the line or file becomes its last argument."},                  \
                {"env", 0, OPTION_LIST, "NAME[=VALUE]",                                                      \
                 "Set an environment variable of the job; without a value, copy it from this environment. "  \
                 "May be repeated."},                                                                        \
                {"chdir", 0, OPTION_TEXT, "DIR", "Run in this folder. Default: the current one."},           \
                {"queue", 0, OPTION_TEXT, "NAME",                                                            \
                 "Run only on queues of this name; `drover agents` lists them."},                            \
                {"image", 0, OPTION_TEXT, "IMAGE",                                                           \
                 "Run in a container from this image: a name such as python:3.12, or a file such as "        \
                 "./tool.sif."},                                                                             \
                {"input", 0, OPTION_TEXT, "FILE", "Standard input of each job."},                            \
                {"output", 0, OPTION_TEXT, "FILE",                                                           \
                 "File for standard output; may contain {}. Default: NAME-REQUEST.JOB.out."},                \
                {"error", 0, OPTION_TEXT, "FILE",                                                            \
                 "File for standard error. Default: NAME-REQUEST.JOB.err."},                                 \
        {                                                                                                    \
                "send", 0, OPTION_LIST, "FILE",                                                              \
                        "Send this file or folder along, and run in a folder of the job's own, anywhere. "   \
                        "May be repeated."                                                                   \
        }

#define AFTER_ROW                                                                                            \
        {                                                                                                    \
                "after", 0, OPTION_LIST, "ID[:HOW]",                                                         \
                        "Start after these jobs: ok (when all have succeeded, the default), any (when all "  \
                        "have ended), fail (when not all have succeeded), each (each job after its "         \
                        "counterpart). ID is a request such as 7, or jobs of one such as 7.0-9. May be "     \
                        "repeated. See DEPENDENCIES in drover-submit-file(5)."                               \
        }

static const struct option_row json_only[] = {JSON_ROW, {0}};
static const struct option_row table_only[] = {TABLE_ROWS, JSON_ROW, {0}};
static const struct option_row none[] = {{0}};

#define SESSION_ROW                                                                                          \
        {                                                                                                    \
                "session", 0, OPTION_TEXT, "FILE",                                                           \
                        "Act on the requests of a session file written by submit, instead of IDs."           \
        }
static const struct option_row up_options[] = {
        {"cpus", 0, OPTION_TEXT, "N", "Number of processors of this machine to offer. Default: all."},
        {"memory", 0, OPTION_TEXT, "SIZE", "Memory to offer, as in 4G. Default: all but a reserve."},
        {"listen", 0, OPTION_TEXT, "HOST:PORT",
         "Accept agents from other machines at this address, over TLS."},
        {"api-listen", 0, OPTION_TEXT, "HOST:PORT",
         "Serve the API at this address too, over TLS with tokens."},
        {"no-agent", 0, OPTION_FLAG, NULL, "Run the server only."},
        {"log-level", 0, OPTION_TEXT, "LEVEL",
         "Lowest severity of the messages that both write to standard error: error, warn, info or debug. "
         "Default: warn."},
        {0},
};
static const struct option_row submit_options[] = {
        {"session", 0, OPTION_TEXT, "FILE",
         "Write a session file, by which other commands find the request (--session FILE), and a report. "
         "Descriptions of "
         "SUMS and RDL "
         "always write both."},
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "Add a line to the description, before its first queue statement. May be repeated."},
        {"wait", 'w', OPTION_FLAG, NULL, "Wait until all jobs are done, and exit as `drover wait` does."},
        {"timeout", 0, OPTION_DURATION, "TIME", "With --wait: exit 124 after this time."},
        {"dry-run", 'n', OPTION_FLAG, NULL,
         "Show what would be submitted, and which free places each placement policy would choose; submit "
         "nothing."},
        {"hold", 0, OPTION_FLAG, NULL, "Submit the jobs as held; `drover release` starts them."},
        {"policy", 'p', OPTION_TEXT, "NAME",
         "Choose places by this policy: one that `drover config show` lists, or cost, blind, cached, "
         "passive, cluster_monitor or queue_monitor. The same as -a 'job_policy = NAME'."},
        AFTER_ROW,
        COMMAND_ROWS,
        {"print", 0, OPTION_FLAG, NULL, "Print the submit file equivalent to COMMAND; submit nothing."},
        {"galaxy", 0, OPTION_FLAG, NULL, "FILE is the XML of a Galaxy tool; see drover-tools(7)."},
        {"cwl", 0, OPTION_FLAG, NULL,
         "FILE is a description in the Common Workflow Language; cwltool runs it. See drover-tools(7)."},
        {"params", 0, OPTION_TEXT, "FILE",
         "With --galaxy the job's parameters, in JSON; with --cwl the job order."},
        {"tables", 0, OPTION_TEXT, "FILE",
         "With --galaxy: Galaxy's tool_data_table_conf.xml, which names the files of data tables. Default: "
         "the one beside the tool, if there is one."},
        {"resolve", 0, OPTION_TEXT, "HOW",
         "With --galaxy: how to meet the tool's requirements: container, conda or none. Default: the "
         "container that the tool names, else conda."},
        JSON_ROW,
        {0},
};
static const struct option_row transfer_options[] = {
        {"wait", 'w', OPTION_FLAG, NULL,
         "Wait until all are done, showing progress; exit as `drover wait` does, 1 if one failed."},
        {"timeout", 0, OPTION_DURATION, "TIME", "With --wait: exit 124 after this time."},
        {"list", 0, OPTION_TEXT, "FILE",
         "Read the transfers from FILE (`-`: standard input): SRC DEST on each line, or only SRC if DEST is "
         "given. They become one request."},
        {"type", 0, OPTION_TEXT, "TYPE",
         "The operation: transfer, or on each URL: rm, mkdir, stage (read it, so that a hierarchical store "
         "brings it online), verify, reserve (--size of the store for a --lot), release. Default: transfer."},
        {"checksum", 0, OPTION_TEXT, "SUM",
         "The checksum that each file must have: sha256:HEX, adler32:HEX or md5:HEX."},
        {"verify", 0, OPTION_FLAG, NULL, "Read back what was written and compare it."},
        {"lot", 0, OPTION_TEXT, "NAME",
         "Write into this lot of the store; with --type reserve and release, the lot to make or end."},
        {"size", 0, OPTION_TEXT, "SIZE",
         "The most that each job writes; with --type reserve, the size of the lot. As in 10G."},
        {"duration", 0, OPTION_TEXT, "TIME", "With --type reserve: for how long. Default: a day."},
        {"alt", 0, OPTION_TEXT, "PAIRS",
         "Protocols to try when the first ones fail: 'https-https, ftp-sftp'."},
        {"max-retry", 0, OPTION_NUMBER, "N", "Retry up to N times, with delays that double. Default: 4."},
        {"restart-in", 0, OPTION_TEXT, "TIME", "Abort an attempt that takes longer, and retry."},
        {"give-up-after", 0, OPTION_TEXT, "TIME", "Stop retrying after this time."},
        {"third-party", 0, OPTION_TEXT, "HOW",
         "Whether one server copies directly from the other: auto, never, or always, which gives it a token "
         "for SRC. Default: auto."},
        {"credential", 0, OPTION_TEXT, "NAMES",
         "Credentials to use at the stores that they are for; see drover-credential(1)."},
        {"name", 0, OPTION_TEXT, "NAME", "Name of the request."},
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "Add a line to the equivalent submit file. May be repeated."},
        {"hold", 0, OPTION_FLAG, NULL, "Submit the jobs as held; `drover release` starts them."},
        AFTER_ROW,
        {"print", 0, OPTION_FLAG, NULL, "Print the equivalent submit file; submit nothing."},
        JSON_ROW,
        {0},
};
static const struct option_row run_options[] = {
        {"terminal", 't', OPTION_FLAG, NULL,
         "Give the command a terminal, connected to this one: for shells, editors, debuggers."},
        AFTER_ROW,
        COMMAND_ROWS,
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "Add a line to the equivalent submit file. May be repeated."},
        {"print", 0, OPTION_FLAG, NULL, "Print the equivalent submit file; run nothing."},
        {0},
};
static const struct option_row quote_options[] = {COMMAND_ROWS, JSON_ROW, {0}};
static const struct option_row queue_options[] = {
        SESSION_ROW,
        {"all", 'a', OPTION_FLAG, NULL, "Include finished requests and jobs."},
        {"jobs", 'j', OPTION_FLAG, NULL, "List jobs, not requests."},
        {"owner", 'u', OPTION_TEXT, "NAME", "Only those of this owner."},
        {"mine", 0, OPTION_FLAG, NULL, "Only your own."},
        {"state", 's', OPTION_TEXT, "STATES", "Only jobs in these states: idle,running,held,...; or failed."},
        {"constraint", 'c', OPTION_TEXT, "EXPR",
         "Only jobs for which this ClassAd expression is true; use `drover history -c` for those that have "
         "ended."},
        {"limit", 'l', OPTION_NUMBER, "N", "Print at most N rows; of requests the latest, newest first."},
        {"watch", 0, OPTION_FLAG, NULL, "Refresh every two seconds."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};
static const struct option_row doctor_options[] = {
        {"agent-config", 0, OPTION_TEXT, "FILE",
         "Also check the agent's settings file and its map of users."},
        {"json", 0, OPTION_FLAG, NULL, "Print the checks as one JSON document."},
        {0},
};
static const struct option_row path_options[] = {
        {"ad", 0, OPTION_FLAG, NULL, "Print nested ClassAds: each hop's Next is the following hop."},
        JSON_ROW,
        {0},
};
static const struct option_row show_options[] = {
        {"ad", 0, OPTION_FLAG, NULL, "Print only the ClassAd, one attribute per line."},
        {"script", 0, OPTION_FLAG, NULL,
         "Print the script that was submitted to the batch system for the job, as its agent keeps it."},
        JSON_ROW,
        {0},
};
static const struct option_row tail_options[] = {
        {"follow", 'f', OPTION_FLAG, NULL, "Keep printing new output until the job ends."},
        {"stderr", 0, OPTION_FLAG, NULL, "Print standard error instead of standard output."},
        {"lines", 'n', OPTION_NUMBER, "N", "Start with the last N lines. Default: 10."},
        {"all", 0, OPTION_FLAG, NULL, "Start with the first byte that is kept."},
        {0},
};
static const struct option_row chirp_options[] = {
        {"offset", 0, OPTION_NUMBER, "BYTES", "For read and write: offset in the remote file."},
        {"mode", 0, OPTION_TEXT, "LETTERS",
         "For put: w, with a to append, c to create, t to truncate, x to fail if it exists. By default the "
         "file is written under another name and renamed when complete."},
        {"perm", 0, OPTION_TEXT, "OCTAL", "For put: permissions of a new file."},
        {"long", 'l', OPTION_FLAG, NULL, "For getdir: print size, mode and time of each entry."},
        {0},
};
static const struct option_row exec_options[] = {
        {"stdin", 'i', OPTION_FLAG, NULL, "Connect the command's standard input to this one."},
        {"terminal", 't', OPTION_FLAG, NULL,
         "Give the command a terminal, connected to this one; -it is the same."},
        {0},
};
static const struct option_row wait_options[] = {
        SESSION_ROW,
        {"timeout", 't', OPTION_DURATION, "TIME",
         "Exit 124 after this time: 90s, 15m, 1h; a bare number is seconds."},
        {"quiet", 'q', OPTION_FLAG, NULL, "Print nothing; only set the exit code."},
        {"fail-fast", 0, OPTION_FLAG, NULL, "Exit 1 as soon as a job fails or is removed."},
        {"ignore-held", 0, OPTION_FLAG, NULL, "Keep waiting when all remaining jobs are held."},
        JSON_ROW,
        {0},
};
static const struct option_row act_options[] = {
        SESSION_ROW,
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Only jobs for which this ClassAd expression is true."},
        {"owner", 'u', OPTION_TEXT, "USER", "Only jobs of this user."},
        {"name", 'n', OPTION_TEXT, "PATTERN", "Only jobs of requests with this name: build-7 or 'build-*'."},
        {"yes", 'y', OPTION_FLAG, NULL, "On a terminal: do not ask for confirmation above 1000 jobs."},
        {"reason", 'r', OPTION_TEXT, "TEXT", "A reason, recorded with the jobs."},
        JSON_ROW,
        {0},
};
static const struct option_row edit_options[] = {
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Only jobs for which this ClassAd expression is true."},
        {"owner", 'u', OPTION_TEXT, "USER", "Only jobs of this user."},
        {"name", 'n', OPTION_TEXT, "PATTERN", "Only jobs of requests with this name: build-7 or 'build-*'."},
        {"yes", 'y', OPTION_FLAG, NULL, "On a terminal: do not ask for confirmation above 1000 jobs."},
        JSON_ROW,
        {0},
};
static const struct option_row resubmit_options[] = {
        SESSION_ROW,
        {"failed", 0, OPTION_FLAG, NULL, "Only the jobs that failed."},
        {"append", 'a', OPTION_LIST, "NAME=VALUE",
         "Replace a keyword of the submit file, or an attribute. May be repeated."},
        {"hold", 0, OPTION_FLAG, NULL, "Submit the jobs as held; `drover release` starts them."},
        JSON_ROW,
        {0},
};
static const struct option_row prio_options[] = {
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Only jobs for which this ClassAd expression is true."},
        JSON_ROW,
        {0},
};
static const struct option_row history_options[] = {
        {"owner", 'u', OPTION_TEXT, "NAME", "Only those of this owner."},
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Only jobs for which this ClassAd expression is true."},
        {"since", 0, OPTION_TEXT, "TIME",
         "Only jobs that ended since then: 2026-11-01, 2026-11-01T09:30, or -7d."},
        {"limit", 'l', OPTION_NUMBER, "N", "Print at most N jobs, the latest. Default: 100; 0: all."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};
static const struct option_row get_options[] = {
        SESSION_ROW,
        {"output", 'o', OPTION_TEXT, "DIR",
         "The folder to write to; created if missing. Default: the current one."},
        {"list", 'l', OPTION_FLAG, NULL, "Only list the files."},
        JSON_ROW,
        {0},
};
static const struct option_row catalog_options[] = {
        {"url", 'u', OPTION_LIST, "URL",
         "add: where a replica is; may be repeated. rm: only the replica with this URL."},
        {"host", 0, OPTION_TEXT, "NAME",
         "The host on whose local disk the replicas are. Default for scan and verify: this machine."},
        {"shared", 0, OPTION_FLAG, NULL, "scan: the folder is shared by all machines."},
        {"store", 's', OPTION_TEXT, "NAME", "The kind of storage: local, nfs, hpss."},
        {"size", 0, OPTION_NUMBER, "BYTES", "add: the file's size."},
        {"sum", 0, OPTION_TEXT, "SUM", "add: its checksum, as in sha256:HEX."},
        {"meta", 'm', OPTION_LIST, "KEY=VALUE",
         "add, scan: metadata of the files; may be repeated. A value that looks like a number, true or false "
         "becomes one; KEY:text=VALUE is always a text."},
        {"prefix", 'p', OPTION_TEXT, "TEXT", "scan: prefix of each name, before the path below DIR."},
        {"pattern", 0, OPTION_TEXT, "GLOB", "scan: only files whose names match."},
        {"checksum", 'c', OPTION_FLAG, NULL, "scan, verify: compute the files' SHA-256."},
        {"replace", 0, OPTION_FLAG, NULL,
         "add, scan, import: replace what the catalog has for these files. By default the new data is added, "
         "and a different size or checksum is an error."},
        {"format", 0, OPTION_TEXT, "WORD",
         "import: csv, json or jsonl. Default: by the file's name or first character."},
        {"query", 'q', OPTION_TEXT, "QUERY", "rm: the files that this query finds."},
        {"count", 0, OPTION_FLAG, NULL, "query: print only the number of files and their total size."},
        {"urls", 0, OPTION_FLAG, NULL, "query: print only the URLs of the replicas, one per line."},
        {"limit", 'l', OPTION_NUMBER, "N", "query: at most N files."},
        {"files", 'f', OPTION_TEXT, "LIST",
         "save: a file with names of files, one per line, instead of a query."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};
static const struct option_row token_options[] = {
        {"name", 'n', OPTION_TEXT, "NAME", "The agent's name; for a user token, the user."},
        {"uses", 0, OPTION_NUMBER, "N", "How many times the token can be used. Default for agents: 1."},
        {"expires", 'e', OPTION_DURATION, "TIME",
         "How long it is valid: 1h, 30d. Default: 1h; for users 90d."},
        {"role", 0, OPTION_TEXT, "ROLE",
         "The highest role that it grants: user, operator or admin, but never more than the user has. "
         "Default: user."},
        {"owners", 0, OPTION_TEXT, "LIST",
         "The owners whose jobs the agent may run, separated by commas: name@domain, *@domain, or any. "
         "Default: what the agent's settings say; but an agent that runs jobs of several owners as one user "
         "gets no jobs."},
        {"tags", 0, OPTION_TEXT, "LIST", "Only these of its queues' Tags are believed. Default: all."},
        {"most", 0, OPTION_TEXT, "LIST",
         "The most that each of its queues may offer, by attribute: Cpus=8,Memory=16384 (MiB),GPUs=0. What "
         "it says beyond "
         "that is not believed. Default: no limit."},
        {"labels", 0, OPTION_TEXT, "LIST",
         "Only these of the labels that clearance in droverd.yaml gives it; none: no label. Default: all."},
        JSON_ROW,
        {0},
};

static const struct option_row dag_options[] = {
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "With submit: add a line to the description of each node. May be repeated."},
        {"after", 0, OPTION_LIST, "ID[:HOW]",
         "With submit: as for drover submit, for the nodes without parents."},
        {"max-jobs", 0, OPTION_NUMBER, "N", "With submit: run at most N jobs of the graph at once."},
        {"hold", 0, OPTION_FLAG, NULL, "With submit: submit the nodes held."},
        {"no-rescue", 0, OPTION_FLAG, NULL, "With submit: ignore rescue files beside FILE."},
        {"rescue", 0, OPTION_TEXT, "FILE2",
         "With submit: use FILE2, a rescue file or save point, instead of these."},
        {"wait", 'w', OPTION_FLAG, NULL,
         "With submit: wait until all jobs are done, and exit as drover wait does."},
        {"dry-run", 'n', OPTION_FLAG, NULL, "With submit: read and check FILE; submit nothing."},
        {"plan", 0, OPTION_TEXT, "URL",
         "With submit: pass data between nodes through this folder of a store; the jobs that this adds are "
         "printed."},
        {"space", 0, OPTION_TEXT, "SIZE",
         "With --plan: bound the space that its files use there, counting --file-size for each."},
        {"file-size", 0, OPTION_TEXT, "SIZE", "With --space: the largest size of a file."},
        {"reserve", 0, OPTION_DURATION, "TIME",
         "With --space: reserve it for this time; the first job of the graph reserves and the last one "
         "releases it."},
        {"register", 0, OPTION_TEXT, "VALUE",
         "With --plan: register the final files in the catalog; VALUE is as for register_outputs: true, or "
         "metadata such as run=7, pass=2."},
        {"dot", 0, OPTION_FLAG, NULL,
         "With show: print the graph in the language of Graphviz, coloured by state."},
        {"svg", 0, OPTION_FLAG, NULL, "With show: print a drawing of the graph as SVG, coloured by state."},
        {"wfcommons", 0, OPTION_FLAG, NULL,
         "With import: FILE is a workflow instance of WfCommons. The options of submit apply too."},
        {"hurry", 0, OPTION_TEXT, "N", "With import: divide run times by N."},
        {"print", 0, OPTION_FLAG, NULL, "With import: print the DAG file; submit nothing."},
        {"before", 0, OPTION_TEXT, "NODE", "With rescue: the state when that node first started."},
        JSON_ROW,
        {0},
};
static const struct option_row credential_options[] = {
        {"type", 't', OPTION_TEXT, "TYPE", "The type of the credential: proxy, token, s3 or file."},
        {"for", 'f', OPTION_LIST, "URL",
         "Use it at this URL, and those below, to fetch and send files of jobs that ask for it; may be "
         "repeated. `none`: at no URL. Default: that of the credential it replaces."},
        JSON_ROW,
        {0},
};

static const struct option_row agents_options[] = {
        {"all", 'a', OPTION_FLAG, NULL, "Include revoked agents."},
        {"reason", 'r', OPTION_TEXT, "TEXT",
         "With drain: the reason, shown in listings and by `drover why`."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row source_options[] = {
        {"name", 0, OPTION_TEXT, "NAME",
         "The name of the source, which together with the ID of a request identifies it at the server. "
         "Default: the program's name."},
        {"most", 0, OPTION_NUMBER, "N", "Have at most N requests open, up to 500. Default: 100."},
        {"files", 0, OPTION_FLAG, NULL,
         "Let the program name submit files; they, and the files that they name, are read here with your "
         "rights. Without this option requests are texts that cannot reach files of this machine."},
        {"owner", 0, OPTION_TEXT, "NAME@DOMAIN",
         "For root and the server's user, with a server on this machine: submit as this user."},
        {0},
};

static const struct option_row glidein_options[] = {
        {"queue", 'q', OPTION_TEXT, "NAME", "The queue of the batch system that runs the agents."},
        {"agent", 0, OPTION_TEXT, "NAME", "The agent that has the queue, if several have one of that name."},
        {"count", 'n', OPTION_NUMBER, "N", "How many agents to start, up to 1000. Default: 1."},
        {"walltime", 't', OPTION_DURATION, "TIME",
         "How long the batch system lets each run: 2h. The agent leaves a tenth of it earlier, but at least "
         "45 seconds and at most five minutes."},
        {"cpus", 0, OPTION_NUMBER, "N", "Processors per agent. Default: 1."},
        {"memory", 0, OPTION_TEXT, "SIZE", "Memory per agent. Default: 2G."},
        {"idle", 0, OPTION_DURATION, "TIME", "An agent exits after being idle for this time. Default: 10m."},
        {"address", 0, OPTION_LIST, "HOST:PORT",
         "Address at which the nodes reach this server; may be repeated. Default: where the server on this "
         "machine listens."},
        {"owners", 0, OPTION_TEXT, "LIST",
         "The owners whose jobs they run, separated by commas: name@domain, *@domain. Default: you."},
        {"attributes", 0, OPTION_TEXT, "TEXT", "Additional attributes of their ads, as for drover-agent."},
        {"name", 0, OPTION_TEXT, "NAME", "Prefix of their nodes' names. Default: the queue's name."},
        {"package", 0, OPTION_TEXT, "FILE",
         "A tar.gz with drover-agent, drover-shepherd, drover-mover and drover-init to send instead of this "
         "machine's programs."},
        {"programs", 0, OPTION_TEXT, "DIR", "The folder on the nodes that has the programs; none are sent."},
        {"logs", 0, OPTION_TEXT, "DIR", "Write the output of each agent to DIR/NODE.log."},
        {"expires", 'e', OPTION_DURATION, "TIME",
         "An agent that the batch system starts later than this cannot join. Default: 3d."},
        {"token-file", 0, OPTION_TEXT, "FILE",
         "For one glide-in: use this token, made for its --name, instead of making one."},
        {"batch-name", 0, OPTION_TEXT, "NAME", "The name of the request. Default: glidein-QUEUE."},
        AFTER_ROW,
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'", "Add a line to their submit file. May be repeated."},
        JSON_ROW,
        {0},
};

static const struct option_row nodes_options[] = {
        {"reason", 'r', OPTION_TEXT, "TEXT",
         "The reason for the change, shown in listings and by `drover why`."},
        {"deadline", 'd', OPTION_DURATION, "TIME",
         "With drain: jobs that still run after this time go back to the queue (90s, 15m, 2h). Default: they "
         "may finish."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row info_options[] = {
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Only things for which this ClassAd expression is true."},
        {"output", 'o', OPTION_TEXT, "EXPRS",
         "Print a table of these attributes or expressions, separated by commas; with --json objects of "
         "them. "
         "Default: whole ads."},
        TABLE_ROWS_WITH(0),
        JSON_ROW,
        {0},
};

static const struct option_row log_options[] = {
        {"trace", 0, OPTION_FLAG, NULL,
         "Show the steps of its last attempt through the components, with their times."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

#define REPORT_ROWS                                                                                          \
        {"by", 0, OPTION_TEXT, "THINGS",                                                                     \
         "Group by some of user, account, place, site and month, separated by commas; keywords by keyword, " \
         "user and month."},                                                                                 \
                {"from", 0, OPTION_TEXT, "TIME",                                                             \
                 "Attempts that ended since then: 2026-11-01, 2026-11-01T09:30, or -7d. Default: -30d; "     \
                 "for bank and by month, the first of that day's month."},                                   \
                {"to", 0, OPTION_TEXT, "TIME", "Attempts that ended before then. Default: now."},            \
                {"owner", 0, OPTION_TEXT, "USER", "Only jobs of this user. Default: all that you may see."}, \
                {"format", 0, OPTION_TEXT, "FORM",                                                           \
                 "text, csv, json, svg (a chart of the first number) or html; for records jsonl, csv or "    \
                 "ur. Default: "                                                                             \
                 "text; for records jsonl."},                                                                \
                TABLE_ROWS, JSON_ROW
static const struct option_row report_options[] = {
        {"session", 0, OPTION_TEXT, "FILE",
         "What a submit reported, and what has become of its jobs: of the session file that it wrote."},
        REPORT_ROWS,
        {0},
};
static const struct option_row stats_options[] = {REPORT_ROWS, {0}};

static const struct option_row stores_options[] = {
        {"release", 0, OPTION_TEXT, "STORE/LOT",
         "End a lot, as a placement job of dap_type release does; its contents then count as files outside "
         "of lots."},
        {"used", 0, OPTION_TEXT, "STORE=SIZE",
         "Set the space that an owner's files outside of lots use, after files were added or removed without "
         "Drover. For operators."},
        {"owner", 0, OPTION_TEXT, "WHO", "Owner of the lot or files. Default: you."},
        TABLE_ROWS,
        JSON_ROW,
        {0}};
static const struct option_row reserve_options[] = {
        {"queue", 'q', OPTION_LIST, "PLACE", "Reserve at this place: AGENT or AGENT/QUEUE. May be repeated."},
        {"where", 'w', OPTION_TEXT, "EXPR", "Reserve at places for which this ClassAd expression is true."},
        {"group", 'g', OPTION_TEXT, "NAME",
         "Reserve at places of this parallel scheduling group (*ParallelSchedulingGroup*)."},
        {"nodes", 'n', OPTION_NUMBER, "N",
         "Number of places. Default: 1; with --maintenance all that match."},
        {"cpus", 0, OPTION_NUMBER, "N", "Processors at each place. Default: all."},
        {"memory", 0, OPTION_TEXT, "SIZE",
         "Memory at each place, as in 16G. Default: in proportion to the processors."},
        {"from", 0, OPTION_TEXT, "TIME",
         "Begin at this time: 2026-11-24T09:30, or +2h from now. Default: now."},
        {"for", 0, OPTION_DURATION, "TIME", "Duration (90s, 2h, 1d)."},
        {"every", 0, OPTION_TEXT, "TIME", "Repeat every *day*, *week*, or time such as 12h."},
        {"until", 0, OPTION_TEXT, "TIME", "With --every: do not begin again after this time."},
        {"users", 'u', OPTION_TEXT, "USERS",
         "Other users who may use it, separated by commas: ann@lab, \\*@lab or \\*."},
        {"groups", 0, OPTION_TEXT, "GROUPS",
         "Accounting groups whose jobs may use it, and those below them, separated by commas. Only jobs of "
         "their members count, by the accounts of the settings or the bank."},
        {"account", 0, OPTION_TEXT, "NAME", "The bank account that pays for it."},
        {"maintenance", 0, OPTION_FLAG, NULL,
         "Reserve whole places and keep them empty. For admins and operators."},
        {"evict", 0, OPTION_FLAG, NULL,
         "When it begins, put jobs that still run in its room back into the queue. For admins and "
         "operators."},
        {"reason", 'r', OPTION_TEXT, "TEXT", "The reason, for people."},
        {"dry-run", 0, OPTION_FLAG, NULL, "Only report whether it could be made."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row bank_options[] = {
        {"new", 0, OPTION_FLAG, NULL,
         "With account: create it if it does not exist. With machine or user: register it."},
        {"description", 0, OPTION_TEXT, "TEXT",
         "With account: what it is for; creates it too. With machine or user: what it is. With quote: what "
         "it is "
         "for."},
        {"member", 'm', OPTION_LIST, "USER=ROLE",
         "With account: make ann@lab, \\*@lab or \\* a user, manager or owner of it."},
        {"remove", 0, OPTION_LIST, "USER", "With account: remove this member."},
        {"start", 0, OPTION_TEXT, "TIME",
         "Start of the allocation or of the statement: 2026-11-24, 2026-11-24T09:30, or +30d from now."},
        {"end", 0, OPTION_TEXT, "TIME", "End of the allocation, quote, lien or statement."},
        {"credit", 0, OPTION_TEXT, "AMOUNT", "How far below zero the allocation may be spent. Default: 0."},
        {"places", 0, OPTION_TEXT, "PLACES",
         "The only places where it can be spent, separated by commas: AGENT or AGENT/QUEUE."},
        {"users", 0, OPTION_TEXT, "USERS",
         "The only users who can spend it, separated by commas: ann@lab or \\*@lab."},
        {"allocation", 0, OPTION_TEXT, "NUMBER",
         "The allocation to deposit into, withdraw from, refund to, or change."},
        {"for", 0, OPTION_DURATION, "TIME", "For a quote, lien or charge: the run time (90s, 2h)."},
        {"cpus", 0, OPTION_NUMBER, "N", "For a quote, lien or charge: processors. Default: 1."},
        {"memory", 0, OPTION_TEXT, "SIZE", "For a quote, lien or charge: memory, as in 2G."},
        {"gpus", 0, OPTION_NUMBER, "N", "For a quote, lien or charge: GPUs."},
        {"place", 0, OPTION_TEXT, "PLACE", "For a quote, lien or charge: the place, AGENT or AGENT/QUEUE."},
        {"user", 0, OPTION_TEXT, "USER", "For this user instead of yourself. For managers."},
        {"qos", 0, OPTION_TEXT, "NAME",
         "For a quote, lien or charge: the quality of service, as rates see it."},
        {"quote", 0, OPTION_TEXT, "NUMBER", "With lien: use the price of this quote."},
        {"lien", 0, OPTION_TEXT, "NUMBER", "With charge: charge against this lien and end it."},
        {"close", 0, OPTION_FLAG, NULL, "With account: close it. With allocation: end it now."},
        {"job", 'J', OPTION_TEXT, "JOB",
         "With refund: of what this job was charged, 7.0, or one of another system. With lien or charge: the "
         "name "
         "of the job in another system."},
        {"reason", 'r', OPTION_TEXT, "TEXT", "The reason, shown in the statement."},
        {"arch", 0, OPTION_TEXT, "NAME", "With machine: its architecture."},
        {"opsys", 0, OPTION_TEXT, "NAME", "With machine: its operating system."},
        {"active", 0, OPTION_FLAG, NULL, "With machine or user: it gets quotes and liens again."},
        {"inactive", 0, OPTION_FLAG, NULL, "With machine or user: it gets no quotes and liens."},
        {"delete", 0, OPTION_FLAG, NULL, "With machine or user: remove it from the register."},
        {"change", 0, OPTION_TEXT, "NUMBER", "With quote: give this quote another --end or --description."},
        {"cancel", 0, OPTION_TEXT, "NUMBER", "With quote: withdraw this quote."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row classad_options[] = {
        {"ad", 0, OPTION_TEXT, "FILE", "The ad in which expressions are evaluated (MY)."},
        {"target", 0, OPTION_TEXT, "FILE", "The other ad (TARGET)."},
        {"old", 0, OPTION_FLAG, NULL, "Read files and expressions in the old syntax."},
        {"from", 0, OPTION_TEXT, "ENCODING",
         "The encoding of the files: new, old, json, xml or auto. Default: auto, by a file's beginning."},
        {"to", 0, OPTION_TEXT, "ENCODING",
         "The encoding that unparse and convert write: new, old, json or xml."},
        {0},
};

static const struct option_row sim_options[] = {
        {"compare", 'c', OPTION_TEXT, "POLICIES",
         "Policies to run, one after the other: cost, blind, fifo, cached-bytes, passive, cluster-monitor, "
         "queue-monitor; and reference schedulers: fcfs, easy, conservative, easy-fairshare. Default: cost."},
        {"site", 's', OPTION_TEXT, "FILE", "The places, in YAML; see PLACES."},
        {"agents", 0, OPTION_NUMBER, "N", "Without --site: total number of agents. Default: 16."},
        {"clusters", 0, OPTION_NUMBER, "N",
         "Without --site: number of clusters, each with its own store. Default: 2."},
        {"cpus", 0, OPTION_NUMBER, "N", "Without --site: processors per agent. Default: 16."},
        {"near", 0, OPTION_TEXT, "SIZE",
         "Bytes per second between a cluster and its own store, unless the site file says. Default: 1G."},
        {"far", 0, OPTION_TEXT, "SIZE", "Bytes per second to the stores of other clusters. Default: 50M."},
        {"cache", 0, OPTION_TEXT, "SIZE", "Cache size per agent. Default: what the site file says, or 1T."},
        {"start-delay", 0, OPTION_DURATION, "TIME", "Mean time that a batch system takes to start a job."},
        {"mtbf", 0, OPTION_DURATION, "TIME", "Mean time between failures of an agent."},
        {"repair", 0, OPTION_DURATION, "TIME", "Mean time until a failed agent comes back. Default: 1h."},
        {"outages", 0, OPTION_TEXT, "FILE", "Recorded failures and maintenance; see PLACES."},
        {"jobs", 'j', OPTION_NUMBER, "N", "Without a trace: number of jobs to generate. Default: 1000."},
        {"classes", 0, OPTION_NUMBER, "N",
         "Number of generated requests, each with one kind of job. Default: 10."},
        {"users", 0, OPTION_NUMBER, "N", "Number of users. Default: one per ten classes."},
        {"run", 0, OPTION_DURATION, "TIME", "Median run time of generated jobs. Default: 10m."},
        {"gangs", 0, OPTION_NUMBER, "PERCENT",
         "Percentage of generated requests whose jobs are gangs: they start together or not at all. Default: "
         "0."},
        {"gang-size", 0, OPTION_NUMBER, "N", "Jobs per gang. Default: 8."},
        {"reserve-after", 0, OPTION_DURATION, "TIME",
         "How long jobs are passed over until resources are reserved for them; 0: never. Default: 1m."},
        {"reserve-idle", 0, OPTION_NUMBER, "PERCENT",
         "Long-run share of a place's processors that such reservations may keep idle; 100: no limit. "
         "Default: 3."},
        {"every", 0, OPTION_DURATION, "TIME",
         "Mean time between generated requests, or time between copies of a workflow. Default: 0, all at the "
         "start."},
        {"input", 0, OPTION_TEXT, "SIZE",
         "Median size of an input file, if the workload has none. Default: 1G for generated jobs, 10G for "
         "traces; 0: no files."},
        {"first", 0, OPTION_NUMBER, "N", "Play only the first N jobs of each trace."},
        {"hurry", 0, OPTION_TEXT, "X", "Submit the jobs of traces X times as fast."},
        {"load", 0, OPTION_TEXT, "X",
         "Scale the submission times of traces so that the load, work over capacity until the last "
         "submission, is X."},
        {"no-estimates", 0, OPTION_FLAG, NULL, "Ignore the run time estimates of traces."},
        {"copies", 0, OPTION_NUMBER, "N", "Run each workflow N times."},
        {"lease", 0, OPTION_DURATION, "TIME", "Duration of leases. Default: 40m."},
        {"better-wait", 0, OPTION_DURATION, "TIME",
         "How long a job may wait for a better place; 0: not at all. Default: 5m."},
        {"eta", 0, OPTION_FLAG, NULL,
         "Measure the error of expected starts and ends, and how often the bounds of an end hold."},
        {"seed", 0, OPTION_NUMBER, "N", "Seed of the random numbers. Default: 1."},
        {"repeats", 0, OPTION_NUMBER, "N",
         "Run everything N times with consecutive seeds, and show the means with their 95 % confidence "
         "intervals."},
        {"faults", 0, OPTION_FLAG, NULL, "Play fault simulations instead, and check the invariants."},
        {"seeds", 0, OPTION_NUMBER, "N", "With --faults: number of games, with consecutive seeds."},
        {"steps", 0, OPTION_NUMBER, "N", "With --faults: steps of each game. Default: 700."},
        {"verbose", 'v', OPTION_FLAG, NULL, "With --faults: print every move."},
        {"write-jobs", 0, OPTION_TEXT, "FILE",
         "Write when and where each job ran under each policy to FILE, as CSV."},
        {"plot", 'p', OPTION_TEXT, "FILE", "Write curves of waiting jobs and bytes moved to FILE, as SVG."},
        {"gantt", 0, OPTION_TEXT, "FILE",
         "Draw a Gantt chart of the processors of each cluster to FILE, as SVG."},
        {"json", 0, OPTION_FLAG, NULL, "Print the results as one JSON document."},
        {0},
};

#define RUNNING "Set up and manage"
#define WORKING "Submit and collect"
#define LOOKING "Inspect"
#define ACTING  "Control"
#define TOOLS   "Tools"

const struct command commands[] = {
        {"up", RUNNING, "run a server and an agent for this machine", "[OPTIONS]", up_options, 0, 0, "",
         false, cmd_up},
        {"server", RUNNING, "run a server only; say which of two leads",
         "[OPTIONS] | status | promote [--force] | drain", none, 0, WORDS_ANY, "status promote drain", true,
         cmd_server},
        {"agent", RUNNING, "run an agent only", "[OPTIONS]", none, 0, WORDS_ANY, "", true, cmd_program},
        {"backup", RUNNING, "back up an instance while its server runs", "[OPTIONS] FOLDER", json_only, 1, 1,
         "files", false, cmd_backup},
        {"restore", RUNNING, "restore a backup", "[OPTIONS] FOLDER", json_only, 1, 1, "files", false,
         cmd_restore},
        {"config", RUNNING, "check the server's settings; list presets", "[OPTIONS] check [FILE] | show",
         table_only, 1, 2, "check show", false, cmd_config},
        {"agents", RUNNING, "list agents and their resources",
         "[OPTIONS] [drain NAME | resume NAME | revoke NAME | wish NAME WISH...]", agents_options, 0, 5, "",
         false, cmd_agents},
        {"glidein", RUNNING, "start agents on somebody else's cluster", "start [OPTIONS]", glidein_options, 1,
         1, "start", false, cmd_glidein},
        {"source", RUNNING, "submit requests that a program offers", "[OPTIONS] -- PROGRAM [ARG...]",
         source_options, 1, WORDS_ANY, "", false, cmd_source, true},
        {"nodes", RUNNING, "list and manage the agents' machines",
         "[OPTIONS] [plan | show NAME | drain NAME | resume NAME | fail NAME | down NAME | retire NAME]",
         nodes_options, 0, 2, "", false, cmd_nodes},
        {"node", RUNNING, "show or manage one machine", "[OPTIONS] show|drain|resume|fail|down|retire NAME",
         nodes_options, 2, 2, "", false, cmd_nodes},
        {"bank", RUNNING, "manage the accounts that jobs are paid from",
         "[OPTIONS] "
         "[account|balance|statement|deposit|withdraw|transfer|allocation|quote|quotes|lien|liens|extend|"
         "release|charge|refund|machine|machines|user|users [ARG...]]",
         bank_options, 0, 4, "", false, cmd_bank},
        {"report", RUNNING, "report resource usage",
         "[OPTIONS] usage|wait|efficiency|sites|bank|keywords|records", report_options, 0, 1,
         "usage wait efficiency sites bank keywords records", false, cmd_report},
        {"stats", RUNNING, "report which keywords requests used", "[OPTIONS]", stats_options, 0, 0, "", false,
         cmd_stats},
        {"reserve", RUNNING, "reserve resources for a period", "[OPTIONS] [list|show|end [NUMBER]]",
         reserve_options, 0, 2, "", false, cmd_reserve},
        {"doctor", RUNNING, "check an installation and suggest repairs", "[OPTIONS]", doctor_options, 0, 0,
         "", false, cmd_doctor},
        {"stores", RUNNING, "list data stores with latency and bandwidth", "[OPTIONS]", stores_options, 0, 0,
         "", false, cmd_stores},
        {"catalog", RUNNING, "manage the catalog of files: add, import, query, verify",
         "add|scan|import|query|show|rm|verify|save|datasets|forget [OPTIONS] [ARG...]", catalog_options, 1,
         WORDS_ANY, "add scan import query show rm verify save datasets forget", false, cmd_catalog},
        {"token", RUNNING, "make, list and revoke tokens", "agent|user|list|revoke [OPTIONS] [ID]",
         token_options, 1, 2, "agent user list revoke", false, cmd_token},
        {"submit", WORKING, "submit a command or a job description", "[OPTIONS] FILE|-|-- COMMAND [ARG...]",
         submit_options, 1, WORDS_ANY, "files", false, cmd_submit},
        {"run", WORKING, "run a command and wait for it", "[OPTIONS] [--] COMMAND [ARG...]", run_options, 1,
         WORDS_ANY, "files", false, cmd_run, true},
        {"quote", WORKING, "estimate start, end and cost without submitting",
         "[OPTIONS] FILE|-|-- COMMAND [ARG...]", quote_options, 1, WORDS_ANY, "files", false, cmd_quote},
        {"wait", WORKING, "wait until jobs are done", "[OPTIONS] [ID...]", wait_options, 0, WORDS_ANY,
         "requests", false, cmd_wait},
        {"get", WORKING, "fetch output files kept by the server", "[OPTIONS] ID...", get_options, 1,
         WORDS_ANY, "requests", false, cmd_get},
        {"transfer", WORKING, "copy files between stores", "[OPTIONS] SRC... DEST", transfer_options, 0,
         WORDS_ANY, "files", false, cmd_transfer},
        {"dag", WORKING, "submit and manage graphs of jobs (DAGs)",
         "submit|import|watch|show|rescue|hold|release|rm|resubmit [OPTIONS] FILE|ID [NODE...]", dag_options,
         2, WORDS_ANY, "submit import watch show rescue hold release rm resubmit", false, cmd_dag},
        {"credential", WORKING, "store proxies, tokens and keys for your jobs",
         "add|list|rm [OPTIONS] [NAME [FILE]]", credential_options, 1, 3, "add list rm", false,
         cmd_credential},
        {"queue", LOOKING, "list requests or jobs", "[OPTIONS] [ID...]", queue_options, 0, WORDS_ANY,
         "requests", false, cmd_queue},
        {"top", LOOKING, "watch requests, places and problems, full screen", "", none, 0, 0, "", false,
         cmd_top},
        {"show", LOOKING, "show everything about a request or job", "[OPTIONS] ID...", show_options, 1,
         WORDS_ANY, "jobs", false, cmd_show},
        {"info", LOOKING, "query jobs, places, nodes and more by one language", "[OPTIONS] KIND",
         info_options, 1, 1, "jobs history requests nodes places stores accounts bank reservations", false,
         cmd_info},
        {"log", LOOKING, "show what happened to a job", "[OPTIONS] ID", log_options, 1, 1, "jobs", false,
         cmd_log},
        {"tail", LOOKING, "print the last lines of a job's output", "[OPTIONS] ID", tail_options, 1, 1,
         "jobs", false, cmd_tail},
        {"exec", LOOKING, "run a command inside a running job", "[OPTIONS] ID -- COMMAND [ARG...]",
         exec_options, 2, WORDS_ANY, "jobs", false, cmd_exec},
        {"chirp", LOOKING, "access files and attributes from inside a job", "[OPTIONS] OPERATION [WORD...]",
         chirp_options, 1, 4, "", false, cmd_chirp},
        {"shell", LOOKING, "open a shell inside a running job", "ID", none, 1, 1, "jobs", false, cmd_shell},
        {"why", LOOKING, "explain why a job is not running", "[OPTIONS] ID", json_only, 1, 1, "jobs", false,
         cmd_why},
        {"path", LOOKING, "show where a job is, hop by hop", "[OPTIONS] ID", path_options, 1, 1, "jobs",
         false, cmd_path},
        {"limits", LOOKING, "list limits, their use, and who waits", "[OPTIONS]", table_only, 0, 0, "", false,
         cmd_limits},
        {"priority", LOOKING, "show how a job's place in the order is computed", "[OPTIONS] ID", json_only, 1,
         1, "jobs", false, cmd_priority},
        {"shares", LOOKING, "list accounts, their shares and usage", "[OPTIONS]", table_only, 0, 0, "", false,
         cmd_shares},
        {"history", LOOKING, "list finished jobs", "[OPTIONS] [ID...]", history_options, 0, WORDS_ANY,
         "requests", false, cmd_history},
        {"hold", ACTING, "hold jobs", "[OPTIONS] ID...", act_options, 0, WORDS_ANY, "jobs", false, cmd_hold},
        {"release", ACTING, "release held jobs", "[OPTIONS] ID...", act_options, 0, WORDS_ANY, "jobs", false,
         cmd_release},
        {"rm", ACTING, "remove jobs", "[OPTIONS] ID...", act_options, 0, WORDS_ANY, "jobs", false, cmd_rm},
        {"suspend", ACTING, "suspend running jobs", "[OPTIONS] ID...", act_options, 0, WORDS_ANY, "jobs",
         false, cmd_suspend},
        {"resume", ACTING, "resume suspended jobs", "[OPTIONS] ID...", act_options, 0, WORDS_ANY, "jobs",
         false, cmd_resume},
        {"vacate", ACTING, "move running jobs back to the queue", "[OPTIONS] ID...", act_options, 0,
         WORDS_ANY, "jobs", false, cmd_vacate},
        {"requeue", ACTING, "put running and held jobs back into the queue", "[OPTIONS] ID...", edit_options,
         0, WORDS_ANY, "jobs", false, cmd_requeue},
        {"resubmit", ACTING, "submit jobs of an earlier request again", "[OPTIONS] ID", resubmit_options, 1,
         1, "requests", false, cmd_resubmit},
        {"checkpoint", ACTING, "ask running jobs for a checkpoint", "[OPTIONS] ID...", act_options, 0,
         WORDS_ANY, "jobs", false, cmd_checkpoint},
        {"signal", ACTING, "send a signal to running jobs", "[OPTIONS] ID... SIGNAL", prio_options, 2,
         WORDS_ANY, "jobs", false, cmd_signal},
        {"prio", ACTING, "set the priority of jobs", "[OPTIONS] ID... VALUE", prio_options, 2, WORDS_ANY,
         "jobs", false, cmd_prio},
        {"edit", ACTING, "change attributes of waiting jobs", "[OPTIONS] ID... NAME=VALUE...", edit_options,
         1, WORDS_ANY, "jobs", false, cmd_edit},
        {"sim", TOOLS, "run workloads and failures in virtual time", "[OPTIONS] [[NAME=]TRACE...]",
         sim_options, 0, WORDS_ANY, "files", false, cmd_sim},
        {"classad", TOOLS, "try ClassAd expressions and matches, and convert ads",
         "eval|match|parse|unparse|convert [OPTIONS] EXPR...|A B|FILE...", classad_options, 0, WORDS_ANY,
         "eval match parse unparse convert", true, cmd_classad},
        {"completion", TOOLS, "print shell completion and manual pages", "bash|zsh|fish|ids|man [COMMAND]",
         none, 1, 2, "bash zsh fish ids man", false, cmd_completion},
        {"help", TOOLS, "show help", "[COMMAND]", none, 0, 1, "commands", false, cmd_help},
        {"version", TOOLS, "show the version", "[OPTIONS]", json_only, 0, 0, "", false, cmd_version},
        {0},
};

/* Names that other systems and tools use for a command. */
static const struct {
        const char *word, *command;
        bool runs; /* false: only suggested in the error message */
} words_for[] = {
        {"cancel", "rm", true},
        {"kill", "rm", true},
        {"status", "queue", true},
        {"ps", "queue", true},
        {"logs", "tail", true},
        {"remove", "rm", false},
        {"delete", "rm", false},
        {"abort", "rm", false},
        {"scancel", "rm", false},
        {"qdel", "rm", false},
        {"q", "queue", false},
        {"list", "queue", false},
        {"ls", "queue", false},
        {"jobs", "queue", false},
        {"squeue", "queue", false},
        {"qstat", "queue", false},
        {"htop", "top", false},
        {"srun", "run", false},
        {"sbatch", "submit", false},
        {"qsub", "submit", false},
        {"start", "up", false},
        {"nodes", "agents", false},
        {"places", "agents", false},
        {"queues", "agents", false},
        {"workers", "agents", false},
        {"machines", "agents", false},
        {"output", "tail", false},
        {"outputs", "tail", false},
        {"download", "get", false},
        {"fetch", "get", false},
        {"results", "get", false},
        {"explain", "why", false},
        {"where", "path", false},
        {"describe", "show", false},
        {"stat", "show", false},
        {"pause", "hold", false},
        {"unhold", "release", false},
        {"retry", "resubmit", false},
        {"continue", "resume", false},
        {"stop", "rm", false},
        {"nice", "prio", false},
        {"evict", "vacate", false},
        {"modify", "edit", false},
        {"rerun", "resubmit", false},
        {"again", "resubmit", false},
        {"alter", "edit", false},
        {"qalter", "edit", false},
        {"set", "edit", false},
        {"update", "edit", false},
        {"users", "shares", false},
        {"estimate", "quote", false},
        {"price", "quote", false},
        {"check", "doctor", false},
        {"events", "log", false},
        {"proxy", "credential", false},
        {"key", "credential", false},
        {"simulate", "sim", false},
        {"man", "help", false},
        {"clear", "rm", false},
        {"errors", "tail --stderr", false},
        {"stderr", "tail --stderr", false},
        {"stdout", "tail", false},
        {"cat", "tail", false},
        {"failed", "queue --state failed", false},
        {"failures", "queue --state failed", false},
        {"running", "queue --state running", false},
        {"finished", "history", false},
        {"done", "history", false},
        {"watch", "top", false},
        {"ssh", "shell", false},
        {"login", "shell", false},
        {"attach", "shell", false},
        {"alloc", "run -t", false},
        {"salloc", "run -t", false},
        {"interactive", "run -t", false},
        {"init", "up", false},
        {"drain", "agents drain", false},
        {"undrain", "agents resume", false},
};

const char *command_meant(struct str word)
{
        for (size_t i = 0; i < sizeof(words_for) / sizeof(words_for[0]); i++)
                if (str_eqz(word, words_for[i].word))
                        return words_for[i].command;
        return NULL;
}

static struct str command_name(struct str word)
{
        for (size_t i = 0; i < sizeof(words_for) / sizeof(words_for[0]); i++)
                if (words_for[i].runs && str_eqz(word, words_for[i].word))
                        return str_of(words_for[i].command);
        return word;
}

const struct command *command_find(struct str name)
{
        name = command_name(name);
        for (const struct command *c = commands; c->name; c++)
                if (str_eqz(name, c->name))
                        return c;
        return NULL;
}

static const char *listed_name(const void *arg, size_t i)
{
        (void)arg;
        return commands[i].name;
}

int command_unknown(const char *word)
{
        static const struct {
                const char *word, *instead;
        } no_command[] = {
                {"down", "`drover up` and `drover server` end with Ctrl-C or SIGTERM"},
                {"shutdown", "`drover up` and `drover server` end with Ctrl-C or SIGTERM"},
                {"reload", "the server reads its settings again on SIGHUP, see droverd(8)"},
                {"config",
                 "settings stand in droverd.yaml and the agent's file, see droverd(8) and drover-agent(8)"}};
        const char *near = command_meant(str_of(word));

        for (size_t i = 0; i < sizeof(no_command) / sizeof(no_command[0]); i++)
                if (str_eqz(str_of(word), no_command[i].word))
                        return cli_error(CLI_USAGE, "there is no command \"%s\": %s", word,
                                         no_command[i].instead);
        if (!near)
                near = options_nearest(str_of(word), listed_name, NULL);
        if (near)
                return cli_error(CLI_USAGE, "there is no command \"%s\": did you mean %s?", word, near);
        return cli_error(CLI_USAGE, "there is no command \"%s\": see drover --help", word);
}
