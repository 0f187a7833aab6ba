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
         "Show these columns, in this order: id,state,agent. An unknown name lists them."},                  \
                {"sort", 0, OPTION_TEXT, "COLUMN",                                                           \
                 "Sort by a column; with a minus before it, the largest first."},                            \
                {"csv", 0, OPTION_FLAG, NULL, "Print CSV: times in ISO 8601, lengths of time in seconds."},  \
        {                                                                                                    \
                "no-header", 0, OPTION_FLAG, NULL, "Leave out the line of titles."                           \
        }
#define TABLE_ROWS TABLE_ROWS_WITH('o')

/* The options before "--" (client/one_line.h), which drover run and drover submit share. */
#define COMMAND_ROWS                                                                                         \
        {"cpus", 0, OPTION_NUMBER, "N", "Processors of each job. Default: 1."},                              \
                {"memory", 0, OPTION_TEXT, "SIZE", "Memory of each job, as in 2G."},                         \
                {"disk", 0, OPTION_TEXT, "SIZE", "Room for the files of each job, as in 10G."},              \
                {"gpus", 0, OPTION_NUMBER, "N", "GPUs of each job."},                                        \
                {"nodes", 0, OPTION_NUMBER, "N",                                                             \
                 "Nodes of one batch system, all for each job: --cpus is then for a task, --memory and "     \
                 "--gpus are for a node."},                                                                  \
                {"tasks-per-node", 0, OPTION_NUMBER, "N",                                                    \
                 "With --nodes: processes on each node, as for MPI."},                                       \
                {"time", 0, OPTION_DURATION, "TIME", "How long a job may run at most: 90s, 15m, 1h."},       \
                {"name", 0, OPTION_TEXT, "NAME", "The name of the request and of its output files."},        \
                {"array", 0, OPTION_TEXT, "N|A-B",                                                           \
                 "N jobs, from 0, or those from A to B; {} in the command is the job's number, {#} "         \
                 "is 1 for the first one."},                                                                 \
                {"each", 0, OPTION_TEXT, "FILE|PATTERN",                                                     \
                 "A job for each line of FILE, or for each file that PATTERN matches, as in 'data/*.csv': "  \
                 "{} in the command is the line or the file, {.} the same without its extension, {/} "       \
                 "without its folder, {//} its folder, {/.} without both, and {#} is 1 for the first one. "  \
                 "Without any of these it is the last argument."},                                           \
                {"env", 0, OPTION_LIST, "NAME[=VALUE]",                                                      \
                 "A variable of the job's environment; without a value, that of this one. May be given "     \
                 "several times."},                                                                          \
                {"chdir", 0, OPTION_TEXT, "DIR", "Run in this folder. Default: the current one."},           \
                {"queue", 0, OPTION_TEXT, "NAME",                                                            \
                 "Run on a queue of this name; `drover agents` lists them."},                                \
                {"image", 0, OPTION_TEXT, "IMAGE",                                                           \
                 "Run in a container of this image: a name, as python:3.12, or a file, as ./tool.sif."},     \
                {"input", 0, OPTION_TEXT, "FILE", "The standard input of each job."},                        \
                {"output", 0, OPTION_TEXT, "FILE",                                                           \
                 "Where standard output goes; {} may stand in it. Default: NAME-REQUEST.JOB.out."},          \
                {"error", 0, OPTION_TEXT, "FILE",                                                            \
                 "Where standard error goes. Default: NAME-REQUEST.JOB.err."},                               \
        {                                                                                                    \
                "send", 0, OPTION_LIST, "FILE",                                                              \
                        "Send this file or folder along, and run in a folder of the job's own, anywhere. "   \
                        "May be given several times."                                                        \
        }

#define AFTER_ROW                                                                                            \
        {                                                                                                    \
                "after", 0, OPTION_LIST, "ID[:HOW]",                                                         \
                        "Start when these jobs have ended: ok (all succeeded, the default), any (however), " \
                        "fail (not all "                                                                     \
                        "succeeded), each (the one at the same place succeeded). ID is a request, as 7, or " \
                        "jobs of one, as "                                                                   \
                        "7.0-9. May be given several times. See DEPENDENCIES in drover-submit-file(5)."      \
        }

static const struct option_row json_only[] = {JSON_ROW, {0}};
static const struct option_row table_only[] = {TABLE_ROWS, JSON_ROW, {0}};
static const struct option_row none[] = {{0}};

#define SESSION_ROW                                                                                          \
        {                                                                                                    \
                "session", 0, OPTION_TEXT, "FILE",                                                           \
                        "The requests of a session file, which a submit has left, in place of ids."          \
        }
static const struct option_row up_options[] = {
        {"cpus", 0, OPTION_TEXT, "N", "Offer so many processors of this machine, more than 0. Default: all."},
        {"memory", 0, OPTION_TEXT, "SIZE", "Offer so much memory, as in 4G. Default: all but a reserve."},
        {"listen", 0, OPTION_TEXT, "HOST:PORT", "Take agents of other machines on this address, with TLS."},
        {"api-listen", 0, OPTION_TEXT, "HOST:PORT",
         "Serve the API on this address too, with TLS and tokens."},
        {"no-agent", 0, OPTION_FLAG, NULL, "Run the server only."},
        {"log-level", 0, OPTION_TEXT, "LEVEL",
         "The least severe messages that both write to standard error: error, warn, info or debug. Default: "
         "warn."},
        {0},
};
static const struct option_row submit_options[] = {
        {"session", 0, OPTION_TEXT, "FILE",
         "Leave a file by which other commands find the request (--session FILE). A description of SUMS "
         "or RDL leaves one anyway."},
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "Add a line to the description, in front of its first queue statement. May be given several times."},
        {"wait", 'w', OPTION_FLAG, NULL, "Wait until all jobs are done and exit as `drover wait` does."},
        {"timeout", 0, OPTION_DURATION, "TIME", "With --wait: exit 124 after so long."},
        {"dry-run", 'n', OPTION_FLAG, NULL,
         "Show what would be submitted, and to which places with room each placement policy would give the "
         "jobs; submit "
         "nothing."},
        {"hold", 0, OPTION_FLAG, NULL, "Submit the jobs held; `drover release` lets them go."},
        {"policy", 'p', OPTION_TEXT, "NAME",
         "Choose places by this policy: one of `drover config show`, or cost, blind, cached, passive, "
         "cluster_monitor or queue_monitor. The same as -a 'job_policy = NAME'."},
        AFTER_ROW,
        COMMAND_ROWS,
        {"print", 0, OPTION_FLAG, NULL, "Print the submit file that a COMMAND is, and submit nothing."},
        {"galaxy", 0, OPTION_FLAG, NULL, "FILE is the XML of a Galaxy tool; see drover-tools(7)."},
        {"cwl", 0, OPTION_FLAG, NULL,
         "FILE is a description in the Common Workflow Language; cwltool runs it. See drover-tools(7)."},
        {"params", 0, OPTION_TEXT, "FILE",
         "With --galaxy the job's parameters, in JSON; with --cwl the job order."},
        {"tables", 0, OPTION_TEXT, "FILE",
         "With --galaxy: Galaxy's tool_data_table_conf.xml, which names the files of data tables. Default: "
         "the one beside the tool, if there is one."},
        {"resolve", 0, OPTION_TEXT, "HOW",
         "With --galaxy: what the tool's requirements become: container, conda or none. Default: the "
         "container "
         "that the tool names, else conda."},
        JSON_ROW,
        {0},
};
static const struct option_row transfer_options[] = {
        {"wait", 'w', OPTION_FLAG, NULL,
         "Wait until all are done, and show how far they are; exit as `drover wait` does, 1 when one "
         "failed."},
        {"timeout", 0, OPTION_DURATION, "TIME", "With --wait: exit 124 after so long."},
        {"list", 0, OPTION_TEXT, "FILE",
         "Read the transfers from FILE, `-` for standard input: SRC DEST on each line, or SRC when DEST "
         "is given. All of "
         "it is one request."},
        {"type", 0, OPTION_TEXT, "TYPE",
         "The operation: transfer, or at each URL: rm, mkdir, stage (it is read, so that a store which keeps "
         "it "
         "elsewhere has it at hand), verify, reserve (--size of the store for a --lot), release. Default: "
         "transfer."},
        {"checksum", 0, OPTION_TEXT, "SUM",
         "The checksum that each file must have: sha256:HEX, adler32:HEX or md5:HEX."},
        {"verify", 0, OPTION_FLAG, NULL, "Read back what was written, and compare."},
        {"lot", 0, OPTION_TEXT, "NAME",
         "Write in this lot of the store; with --type reserve and release, the lot that is made or ended."},
        {"size", 0, OPTION_TEXT, "SIZE",
         "What each job writes at most; with --type reserve, the size of the lot. As in 10G."},
        {"duration", 0, OPTION_TEXT, "TIME", "With --type reserve: for how long. Default: a day."},
        {"alt", 0, OPTION_TEXT, "PAIRS",
         "Protocols to try when the first ones fail: 'https-https, ftp-sftp'."},
        {"max-retry", 0, OPTION_NUMBER, "N", "Try again so often, with pauses that double. Default: 4."},
        {"restart-in", 0, OPTION_TEXT, "TIME", "End a try that takes longer, and try again."},
        {"give-up-after", 0, OPTION_TEXT, "TIME", "Try no more after so long."},
        {"third-party", 0, OPTION_TEXT, "HOW",
         "Whether one server copies from the other: auto, never, or always, which shows it a token for SRC. "
         "Default: auto."},
        {"credential", 0, OPTION_TEXT, "NAMES",
         "Credentials to show to the stores they are for; see drover-credential(1)."},
        {"name", 0, OPTION_TEXT, "NAME", "Of the request."},
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "Add a line to the submit file that this is. May be given several times."},
        {"hold", 0, OPTION_FLAG, NULL, "Submit the jobs held; `drover release` lets them go."},
        AFTER_ROW,
        {"print", 0, OPTION_FLAG, NULL, "Print that submit file, and submit nothing."},
        JSON_ROW,
        {0},
};
static const struct option_row run_options[] = {
        {"terminal", 't', OPTION_FLAG, NULL,
         "Give the command a terminal, which is shown on this one: for shells, editors, debuggers."},
        AFTER_ROW,
        COMMAND_ROWS,
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "Add a line to the submit file that the command is. May be given several times."},
        {"print", 0, OPTION_FLAG, NULL, "Print that submit file, and run nothing."},
        {0},
};
static const struct option_row quote_options[] = {COMMAND_ROWS, JSON_ROW, {0}};
static const struct option_row queue_options[] = {
        SESSION_ROW,
        {"all", 'a', OPTION_FLAG, NULL, "Finished requests and jobs too."},
        {"jobs", 'j', OPTION_FLAG, NULL, "List jobs, not requests."},
        {"owner", 'u', OPTION_TEXT, "NAME", "Of this owner only."},
        {"state", 's', OPTION_TEXT, "STATES",
         "Jobs in these states only: idle,running,held,...; or failed: those that ended so."},
        {"constraint", 'c', OPTION_TEXT, "EXPR",
         "Jobs for which this ClassAd expression is true; `drover history -c` has those that have ended."},
        {"limit", 'l', OPTION_NUMBER, "N",
         "At most so many rows; of requests the latest, the last one first."},
        {"watch", 0, OPTION_FLAG, NULL, "Show it again every two seconds."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};
static const struct option_row doctor_options[] = {
        {"agent-config", 0, OPTION_TEXT, "FILE",
         "The agent's file: whether it can be read, and its map of users."},
        {"json", 0, OPTION_FLAG, NULL, "Print the checks as one JSON document."},
        {0},
};
static const struct option_row path_options[] = {
        {"ad", 0, OPTION_FLAG, NULL, "As nested ClassAds: each hop's Next is the one behind it."},
        JSON_ROW,
        {0},
};
static const struct option_row show_options[] = {
        {"ad", 0, OPTION_FLAG, NULL, "Only the ClassAd, a line for each attribute."},
        {"script", 0, OPTION_FLAG, NULL,
         "The script that was submitted for the job to the batch system that has it, or had it last, as its "
         "agent keeps "
         "it."},
        JSON_ROW,
        {0},
};
static const struct option_row tail_options[] = {
        {"follow", 'f', OPTION_FLAG, NULL, "Go on with what the job prints, until it has ended."},
        {"stderr", 0, OPTION_FLAG, NULL, "Its standard error, in place of its standard output."},
        {"lines", 'n', OPTION_NUMBER, "N", "Begin with the last N lines. Default: 10."},
        {"all", 0, OPTION_FLAG, NULL, "Begin with the first byte that is kept."},
        {0},
};
static const struct option_row chirp_options[] = {
        {"offset", 0, OPTION_NUMBER, "BYTES", "Of read and write: where to begin in the far file."},
        {"mode", 0, OPTION_TEXT, "LETTERS",
         "Of put: w, and a append, c create, t empty first, x must not be there. Without it the file is "
         "written "
         "beside, and renamed when it is whole."},
        {"perm", 0, OPTION_TEXT, "OCTAL", "Of put: the permissions of a file that is made."},
        {"long", 'l', OPTION_FLAG, NULL, "Of getdir: with size, mode and time of each."},
        {0},
};
static const struct option_row exec_options[] = {
        {"stdin", 'i', OPTION_FLAG, NULL, "The command reads the standard input of drover exec."},
        {"terminal", 't', OPTION_FLAG, NULL,
         "Give the command a terminal, which is shown on this one; -it is the same."},
        {0},
};
static const struct option_row wait_options[] = {
        SESSION_ROW,
        {"timeout", 't', OPTION_DURATION, "TIME",
         "Exit 124 after so long: 90s, 15m, 1h; a bare number is seconds."},
        {"quiet", 'q', OPTION_FLAG, NULL, "Print nothing; the exit code tells."},
        {"fail-fast", 0, OPTION_FLAG, NULL, "Exit 1 as soon as one job has failed or was removed."},
        {"ignore-held", 0, OPTION_FLAG, NULL, "Go on waiting when all that is left is held."},
        JSON_ROW,
        {0},
};
static const struct option_row act_options[] = {
        SESSION_ROW,
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Jobs for which this ClassAd expression is true."},
        {"owner", 'u', OPTION_TEXT, "USER", "Jobs of this user."},
        {"name", 'n', OPTION_TEXT, "PATTERN", "Jobs of requests with this name: build-7, or 'build-*'."},
        {"yes", 'y', OPTION_FLAG, NULL,
         "On a terminal: do not ask before more than 1000 jobs are concerned."},
        {"reason", 'r', OPTION_TEXT, "TEXT", "A reason, kept with the jobs."},
        JSON_ROW,
        {0},
};
static const struct option_row edit_options[] = {
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Jobs for which this ClassAd expression is true."},
        {"owner", 'u', OPTION_TEXT, "USER", "Jobs of this user."},
        {"name", 'n', OPTION_TEXT, "PATTERN", "Jobs of requests with this name: build-7, or 'build-*'."},
        {"yes", 'y', OPTION_FLAG, NULL,
         "On a terminal: do not ask before more than 1000 jobs are concerned."},
        JSON_ROW,
        {0},
};
static const struct option_row resubmit_options[] = {
        SESSION_ROW,
        {"failed", 0, OPTION_FLAG, NULL, "Only those of the jobs that failed."},
        {"append", 'a', OPTION_LIST, "NAME=VALUE",
         "A line of a submit file, or an attribute, in place of what it was. May be given several times."},
        {"hold", 0, OPTION_FLAG, NULL, "Submit the jobs held; `drover release` lets them go."},
        JSON_ROW,
        {0},
};
static const struct option_row prio_options[] = {
        {"constraint", 'c', OPTION_TEXT, "EXPR",
         "Only those of the jobs for which this ClassAd expression is true."},
        JSON_ROW,
        {0},
};
static const struct option_row history_options[] = {
        {"owner", 'u', OPTION_TEXT, "NAME", "Of this owner only."},
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Jobs for which this ClassAd expression is true."},
        {"since", 0, OPTION_TEXT, "TIME",
         "Jobs that ended from then on: 2026-11-01, 2026-11-01T09:30, or -7d."},
        {"limit", 'l', OPTION_NUMBER, "N", "At most so many jobs, the latest. Default: 100; 0: all."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};
static const struct option_row get_options[] = {
        SESSION_ROW,
        {"output", 'o', OPTION_TEXT, "DIR",
         "The folder to write to; made when it isn't there. Default: the current one."},
        {"list", 'l', OPTION_FLAG, NULL, "Only list the files."},
        JSON_ROW,
        {0},
};
static const struct option_row catalog_options[] = {
        {"url", 'u', OPTION_LIST, "URL",
         "add: where a copy is; may be given several times. rm: only the replica with this URL."},
        {"host", 0, OPTION_TEXT, "NAME",
         "On whose own disk the copies are. Default for scan and verify: this machine."},
        {"shared", 0, OPTION_FLAG, NULL, "scan: the folder is the same on all machines."},
        {"store", 's', OPTION_TEXT, "NAME", "A word for the kind of storage: local, nfs, hpss."},
        {"size", 0, OPTION_NUMBER, "BYTES", "add: the file's size."},
        {"sum", 0, OPTION_TEXT, "SUM", "add: its checksum, as in sha256:HEX."},
        {"meta", 'm', OPTION_LIST, "KEY=VALUE",
         "add, scan: metadata of the files; may be given several times. A value that reads like a number, "
         "true or false is one; KEY:text=VALUE is a text."},
        {"prefix", 'p', OPTION_TEXT, "TEXT", "scan: stands before each name, which is the path below DIR."},
        {"pattern", 0, OPTION_TEXT, "GLOB", "scan: only files with names like this."},
        {"checksum", 'c', OPTION_FLAG, NULL, "scan, verify: read the files for their SHA-256."},
        {"replace", 0, OPTION_FLAG, NULL,
         "add, scan, import: what the catalog has of these files is replaced. Without it what is given is "
         "added, and another size or checksum is an error."},
        {"format", 0, OPTION_TEXT, "WORD",
         "import: csv, json or jsonl. Default: by the name, or by the first character."},
        {"query", 'q', OPTION_TEXT, "QUERY", "rm: what this query finds."},
        {"count", 0, OPTION_FLAG, NULL, "query: how many files there are, and their bytes."},
        {"urls", 0, OPTION_FLAG, NULL, "query: only the URLs of the replicas, one a line."},
        {"limit", 'l', OPTION_NUMBER, "N", "query: at most so many files."},
        {"files", 'f', OPTION_TEXT, "LIST", "save: names of files, one a line, in place of a query."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};
static const struct option_row token_options[] = {
        {"name", 'n', OPTION_TEXT, "NAME", "The agent's name; for a user token the user it speaks for."},
        {"uses", 0, OPTION_NUMBER, "N", "How often the token may be used. Default for agents: 1."},
        {"expires", 'e', OPTION_DURATION, "TIME",
         "How long it is good for: 1h, 30d. Default: 1h; for users 90d."},
        {"role", 0, OPTION_TEXT, "ROLE",
         "The highest role of the user: user, operator or admin. Default: user. It is never more than he may "
         "today."},
        {"owners", 0, OPTION_TEXT, "LIST",
         "The owners whose jobs the agent may run: name@domain, *@domain, with commas; or any. Default: as "
         "the "
         "agent's file says, but an agent that runs jobs of several owners as one user gets none."},
        {"tags", 0, OPTION_TEXT, "LIST", "Of its queues' Tags only these count. Default: all."},
        {"labels", 0, OPTION_TEXT, "LIST",
         "Of the labels that clearance in droverd.yaml gives to its name only these count; none: no label. "
         "Default: all."},
        JSON_ROW,
        {0},
};

static const struct option_row dag_options[] = {
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "With submit: add a line to the description of each node. May be given several times."},
        {"after", 0, OPTION_LIST, "ID[:HOW]",
         "With submit: as for drover submit; the nodes without parents wait."},
        {"max-jobs", 0, OPTION_NUMBER, "N", "With submit: at most so many jobs of the graph at once."},
        {"hold", 0, OPTION_FLAG, NULL, "With submit: submit the nodes held."},
        {"no-rescue", 0, OPTION_FLAG, NULL, "With submit: pass over rescue files beside FILE."},
        {"rescue", 0, OPTION_TEXT, "FILE2",
         "With submit: take FILE2, a rescue file or save point, in their place."},
        {"wait", 'w', OPTION_FLAG, NULL,
         "With submit: wait until all jobs are done and exit as drover wait does."},
        {"dry-run", 'n', OPTION_FLAG, NULL, "With submit: read and check FILE; submit nothing."},
        {"plan", 0, OPTION_TEXT, "URL",
         "With submit: data of the nodes go through this folder of a store; the jobs that this adds are "
         "printed."},
        {"space", 0, OPTION_TEXT, "SIZE",
         "With --plan: its files never take more than this, with --file-size for each."},
        {"file-size", 0, OPTION_TEXT, "SIZE", "With --space: what a file takes at most."},
        {"reserve", 0, OPTION_DURATION, "TIME",
         "With --space: reserve it for so long, by a first job of the graph; a last one ends that."},
        {"register", 0, OPTION_TEXT, "VALUE",
         "With --plan: register the files that are taken to their places in the catalog; VALUE is that of "
         "register_outputs: true, or metadata as in run=7, pass=2."},
        {"dot", 0, OPTION_FLAG, NULL,
         "With show: print the graph in the language of Graphviz, coloured by state."},
        {"svg", 0, OPTION_FLAG, NULL, "With show: print a picture of the graph as SVG, coloured by state."},
        {"wfcommons", 0, OPTION_FLAG, NULL,
         "With import: FILE is a workflow instance of WfCommons. The other options of submit count, too."},
        {"hurry", 0, OPTION_TEXT, "N", "With import: run times are divided by N."},
        {"print", 0, OPTION_FLAG, NULL, "With import: print the DAG file; submit nothing."},
        {"before", 0, OPTION_TEXT, "NODE", "With rescue: what was done when that node first started."},
        JSON_ROW,
        {0},
};
static const struct option_row credential_options[] = {
        {"type", 't', OPTION_TEXT, "TYPE", "The type of the credential: proxy, token, s3 or file."},
        {"for", 'f', OPTION_LIST, "URL",
         "It is shown to this URL, and those beneath it, when files of jobs that ask for it are fetched or "
         "sent "
         "there; may be given several times. `none`: to no URL. Default: as the one that it replaces."},
        JSON_ROW,
        {0},
};

static const struct option_row agents_options[] = {
        {"all", 'a', OPTION_FLAG, NULL, "Revoked ones too."},
        {"reason", 'r', OPTION_TEXT, "TEXT", "With drain: why, which listings and `drover why` show."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row source_options[] = {
        {"name", 0, OPTION_TEXT, "NAME",
         "The name of the source: with the id of a request it says which request of the server that is. "
         "Default: the name of the program."},
        {"most", 0, OPTION_NUMBER, "N", "Have at most so many requests open, up to 500. Default: 100."},
        {"files", 0, OPTION_FLAG, NULL,
         "The program may name submit files, which are read here with your rights, and so are the files that "
         "they name. Without it requests are texts, and reach no file of this machine."},
        {"owner", 0, OPTION_TEXT, "NAME@DOMAIN",
         "For root and the server's user: submit as this user. A server of this machine only."},
        {0},
};

static const struct option_row glidein_options[] = {
        {"queue", 'q', OPTION_TEXT, "NAME", "The queue of the batch system that runs them."},
        {"agent", 0, OPTION_TEXT, "NAME",
         "The agent whose queue it is, where several have one of that name."},
        {"count", 'n', OPTION_NUMBER, "N", "How many, up to 1000. Default: 1."},
        {"walltime", 't', OPTION_DURATION, "TIME",
         "How long the batch system lets each run: 2h. The agent leaves a tenth before, 45 seconds at least "
         "and five minutes at most."},
        {"cpus", 0, OPTION_NUMBER, "N", "Processors of each. Default: 1."},
        {"memory", 0, OPTION_TEXT, "SIZE", "Memory of each. Default: 2G."},
        {"idle", 0, OPTION_DURATION, "TIME", "One that had nothing to run for so long ends. Default: 10m."},
        {"address", 0, OPTION_LIST, "HOST:PORT",
         "Where the nodes reach this server; may be given several times. Default: where the server of this "
         "machine listens."},
        {"owners", 0, OPTION_TEXT, "LIST",
         "The owners whose jobs they run: name@domain, *@domain, with commas. Default: you."},
        {"attributes", 0, OPTION_TEXT, "TEXT", "More attributes of their ads, as of drover-agent."},
        {"name", 0, OPTION_TEXT, "NAME", "The prefix of their nodes' names. Default: the name of the queue."},
        {"package", 0, OPTION_TEXT, "FILE",
         "A tar.gz with drover-agent, drover-shepherd, drover-mover and drover-init, which is sent in place "
         "of "
         "the programs of this machine."},
        {"programs", 0, OPTION_TEXT, "DIR", "The folder of the nodes that has the programs; none are sent."},
        {"logs", 0, OPTION_TEXT, "DIR", "Write the output of each agent to DIR/NODE.log."},
        {"expires", 'e', OPTION_DURATION, "TIME",
         "One that the batch system starts later than this cannot join. Default: 3d."},
        {"token-file", 0, OPTION_TEXT, "FILE",
         "For one glide-in: a token that was made for its --name, in place of one that is made now."},
        {"batch-name", 0, OPTION_TEXT, "NAME", "The name of the request. Default: glidein-QUEUE."},
        AFTER_ROW,
        {"append", 'a', OPTION_LIST, "'ATTR = VALUE'",
         "Add a line to the submit file that they are. May be given several times."},
        JSON_ROW,
        {0},
};

static const struct option_row nodes_options[] = {
        {"reason", 'r', OPTION_TEXT, "TEXT", "Of an order: why, which listings and `drover why` show."},
        {"deadline", 'd', OPTION_DURATION, "TIME",
         "With drain: what still runs after so long goes back to the queue (90s, 15m, 2h). Default: it may "
         "finish."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row info_options[] = {
        {"constraint", 'c', OPTION_TEXT, "EXPR", "Only those for which this ClassAd expression is true."},
        {"output", 'o', OPTION_TEXT, "EXPRS",
         "A table of these attributes or expressions, separated by commas; else whole ads are printed."},
        TABLE_ROWS_WITH(0),
        JSON_ROW,
        {0},
};

static const struct option_row log_options[] = {
        {"trace", 0, OPTION_FLAG, NULL,
         "The steps of its last attempt through the components, with their times."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row report_options[] = {
        {"by", 0, OPTION_TEXT, "THINGS",
         "Sum by these: some of user, account, place, site and month, separated by commas; of keywords some "
         "of "
         "keyword, user and month."},
        {"from", 0, OPTION_TEXT, "TIME",
         "Of attempts that ended from then on: 2026-11-01, 2026-11-01T09:30, or -7d. Default: -30d."},
        {"to", 0, OPTION_TEXT, "TIME", "And before that. Default: now."},
        {"owner", 0, OPTION_TEXT, "USER", "Of this user's jobs. Default: all that you may see."},
        {"format", 0, OPTION_TEXT, "FORM",
         "text, csv, json, svg (a chart of the first number) or html; of records jsonl, csv or ur. Default: "
         "text, of records jsonl."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row stores_options[] = {
        {"release", 0, OPTION_TEXT, "STORE/LOT",
         "Ends a lot, as a job of dap_type release does: what is in it counts as files outside of lots "
         "then."},
        {"used", 0, OPTION_TEXT, "STORE=SIZE",
         "Sets what an owner's files outside of lots take in the store, where files came or went that no job "
         "of "
         "Drover has written or removed. For operators."},
        {"owner", 0, OPTION_TEXT, "WHO", "Whose lot or files. Default: one's own lot."},
        TABLE_ROWS,
        JSON_ROW,
        {0}};
static const struct option_row reserve_options[] = {
        {"queue", 'q', OPTION_LIST, "PLACE",
         "At this place: AGENT or AGENT/QUEUE. May be given several times."},
        {"where", 'w', OPTION_TEXT, "EXPR", "At places for which this ClassAd expression is true."},
        {"group", 'g', OPTION_TEXT, "NAME",
         "At places of this parallel scheduling group (*ParallelSchedulingGroup*)."},
        {"nodes", 'n', OPTION_NUMBER, "N",
         "At so many places. Default: 1; with --maintenance all that match."},
        {"cpus", 0, OPTION_NUMBER, "N", "So many processors at each. Default: all that it has."},
        {"memory", 0, OPTION_TEXT, "SIZE",
         "So much memory at each, as in 16G. Default: the same part of it as of the processors."},
        {"from", 0, OPTION_TEXT, "TIME",
         "When it begins: 2026-11-24T09:30, or +2h for a time from now. Default: now."},
        {"for", 0, OPTION_DURATION, "TIME", "For how long (90s, 2h, 1d)."},
        {"every", 0, OPTION_TEXT, "TIME", "It comes again: *day*, *week*, or a time like 12h."},
        {"until", 0, OPTION_TEXT, "TIME", "With --every: it begins for the last time before this."},
        {"users", 'u', OPTION_TEXT, "USERS",
         "Other users who may use it: ann@lab, \\*@lab or \\*, separated by commas."},
        {"groups", 0, OPTION_TEXT, "GROUPS",
         "Accounting groups whose jobs may use it, with those below them; commas between. They count for "
         "their members, by the accounts of the settings or of the bank."},
        {"account", 0, OPTION_TEXT, "NAME", "The account of the bank that pays for it."},
        {"maintenance", 0, OPTION_FLAG, NULL,
         "Whole places, which nobody uses meanwhile. For admins and operators."},
        {"evict", 0, OPTION_FLAG, NULL,
         "When it begins, jobs that still run in its room go back to the queue. For admins and operators."},
        {"reason", 'r', OPTION_TEXT, "TEXT", "The reason, a text for people."},
        {"dry-run", 0, OPTION_FLAG, NULL, "Only say whether it could be made."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row bank_options[] = {
        {"new", 0, OPTION_FLAG, NULL, "With account: open it, if it is not there."},
        {"description", 0, OPTION_TEXT, "TEXT", "With account: what it is for; opens it as well."},
        {"member", 'm', OPTION_LIST, "USER=ROLE",
         "With account: ann@lab, \\*@lab or \\* is a user, manager or owner of it."},
        {"remove", 0, OPTION_LIST, "USER", "With account: no member any more."},
        {"start", 0, OPTION_TEXT, "TIME",
         "When the allocation of a deposit can be spent from; of a statement, the first movement. "
         "2026-11-24, "
         "2026-11-24T09:30, or +30d for a time from now."},
        {"end", 0, OPTION_TEXT, "TIME",
         "When the allocation, quote or lien ends; of a statement, movements before this time."},
        {"credit", 0, OPTION_TEXT, "AMOUNT",
         "How far below nothing the allocation may be spent. Default: 0."},
        {"places", 0, OPTION_TEXT, "PLACES",
         "Where alone it can be spent: AGENT or AGENT/QUEUE, with commas."},
        {"users", 0, OPTION_TEXT, "USERS", "By whom alone it can be spent: ann@lab or \\*@lab, with commas."},
        {"allocation", 0, OPTION_TEXT, "NUMBER",
         "Deposit into, take out of, refund to, or set this allocation."},
        {"for", 0, OPTION_DURATION, "TIME", "Of a quote, lien or charge: how long something runs (90s, 2h)."},
        {"cpus", 0, OPTION_NUMBER, "N", "On so many processors. Default: 1."},
        {"memory", 0, OPTION_TEXT, "SIZE", "With so much memory, as in 2G."},
        {"gpus", 0, OPTION_NUMBER, "N", "With so many GPUs."},
        {"place", 0, OPTION_TEXT, "PLACE", "There: AGENT or AGENT/QUEUE."},
        {"user", 0, OPTION_TEXT, "USER", "For this user, not for yourself. For managers."},
        {"quote", 0, OPTION_TEXT, "NUMBER", "With lien: at the price of this quote."},
        {"lien", 0, OPTION_TEXT, "NUMBER", "With charge: what was reserved by this lien, which ends."},
        {"reason", 'r', OPTION_TEXT, "TEXT", "Why, for the statement."},
        TABLE_ROWS,
        JSON_ROW,
        {0},
};

static const struct option_row classad_options[] = {
        {"ad", 0, OPTION_TEXT, "FILE", "The ad in which the expressions stand (MY)."},
        {"target", 0, OPTION_TEXT, "FILE", "The other ad (TARGET)."},
        {"old", 0, OPTION_FLAG, NULL, "Read files and expressions by the rules of the old syntax."},
        {"from", 0, OPTION_TEXT, "ENCODING",
         "The encoding of the files: new, old, json, xml or auto. Default: auto, by how a file begins."},
        {"to", 0, OPTION_TEXT, "ENCODING",
         "The encoding that unparse and convert write: new, old, json or xml."},
        {0},
};

static const struct option_row sim_options[] = {
        {"compare", 'c', OPTION_TEXT, "POLICIES",
         "Policies to run, one after the other: cost, blind, fifo, cached-bytes, passive, cluster-monitor, "
         "queue-monitor; and reference schedulers: fcfs, easy, conservative, easy-fairshare. Default: cost."},
        {"site", 's', OPTION_TEXT, "FILE", "The places, in YAML; see PLACES."},
        {"agents", 0, OPTION_NUMBER, "N", "Without --site: so many agents in all. Default: 16."},
        {"clusters", 0, OPTION_NUMBER, "N", "In so many clusters, each with a store of its own. Default: 2."},
        {"cpus", 0, OPTION_NUMBER, "N", "With so many processors each. Default: 16."},
        {"near", 0, OPTION_TEXT, "SIZE",
         "Bytes a second between a cluster and its own store, unless the site says. Default: 1G."},
        {"far", 0, OPTION_TEXT, "SIZE", "The same to the stores of other clusters. Default: 50M."},
        {"cache", 0, OPTION_TEXT, "SIZE", "Cache of each agent. Default: what the site says, or 1T."},
        {"start-delay", 0, OPTION_DURATION, "TIME", "Mean time that a batch system takes to start a job."},
        {"mtbf", 0, OPTION_DURATION, "TIME", "Agents fail, each after this time in the mean."},
        {"repair", 0, OPTION_DURATION, "TIME", "And come back after this time in the mean. Default: 1h."},
        {"jobs", 'j', OPTION_NUMBER, "N", "Without a trace: generate so many jobs. Default: 1000."},
        {"classes", 0, OPTION_NUMBER, "N", "In so many requests, each of one kind of job. Default: 10."},
        {"users", 0, OPTION_NUMBER, "N", "Of so many users. Default: one for ten classes."},
        {"run", 0, OPTION_DURATION, "TIME", "Median run time of generated jobs. Default: 10m."},
        {"sets", 0, OPTION_NUMBER, "PERCENT",
         "Of the generated requests, so many are of jobs that start together, all or none. Default: 0."},
        {"set-size", 0, OPTION_NUMBER, "N", "So many together. Default: 8."},
        {"reserve-after", 0, OPTION_DURATION, "TIME",
         "How long jobs are passed over until places are kept for them; 0: never. Default: 1m."},
        {"reserve-idle", 0, OPTION_NUMBER, "PERCENT",
         "Part of a place's processors that such places may keep idle in the long run; 100: no bound. "
         "Default: 3."},
        {"every", 0, OPTION_DURATION, "TIME",
         "Time between generated requests (in the mean), or between copies of a workflow. Default: 0, all at "
         "the start."},
        {"input", 0, OPTION_TEXT, "SIZE",
         "Median size of an input file, where the workload has none: 1G for generated jobs, 10G for traces. "
         "0: "
         "no files."},
        {"first", 0, OPTION_NUMBER, "N", "Only the first N jobs of each trace."},
        {"hurry", 0, OPTION_TEXT, "X", "Jobs of traces are submitted X times as fast."},
        {"load", 0, OPTION_TEXT, "X",
         "Jobs of traces are submitted as fast as makes their work X times what all processors can do until "
         "the last of them comes, 1 for all of it."},
        {"no-estimates", 0, OPTION_FLAG, NULL, "As if no user had said how long a job of a trace may run."},
        {"copies", 0, OPTION_NUMBER, "N", "Run each workflow so many times."},
        {"lease", 0, OPTION_DURATION, "TIME", "Length of leases. Default: 40m."},
        {"better-wait", 0, OPTION_DURATION, "TIME",
         "How long a job may wait for a better place; 0: not at all. Default: 5m."},
        {"eta", 0, OPTION_FLAG, NULL,
         "Measure how far expected starts and ends are off, and how often the bounds of an end hold."},
        {"seed", 0, OPTION_NUMBER, "N", "Of all that is random. Default: 1."},
        {"repeats", 0, OPTION_NUMBER, "N",
         "Run all N times, with seeds from --seed on, and show the means over the seeds with their 95 % "
         "intervals."},
        {"faults", 0, OPTION_FLAG, NULL, "Play games with faults instead, and check the invariants."},
        {"seeds", 0, OPTION_NUMBER, "N", "With --faults: so many games, with seeds from --seed on."},
        {"steps", 0, OPTION_NUMBER, "N", "With --faults: steps of each game. Default: 700."},
        {"verbose", 'v', OPTION_FLAG, NULL, "With --faults: tell every move."},
        {"write-jobs", 0, OPTION_TEXT, "FILE",
         "Write when and where each job ran under each policy to FILE, as CSV."},
        {"plot", 'p', OPTION_TEXT, "FILE", "Write curves of waiting jobs and bytes moved to FILE, as SVG."},
        {"gantt", 0, OPTION_TEXT, "FILE",
         "Draw which processors of each cluster each job had when to FILE, as SVG."},
        {"json", 0, OPTION_FLAG, NULL, "Print the results as one JSON document."},
        {0},
};

#define BANK_TEXT                                                                                            \
        "Accounts have whole units of money, whatever the site takes for one, and jobs are paid from them. " \
        "An "                                                                                                \
        "account is an organisation, a project below one (physics.cms) or a person (ann@lab). What was "     \
        "deposited is in allocations, each with a start, an end and a credit limit, for all places and "     \
        "users or "                                                                                          \
        "some. The books are double-entry: every movement is from one account to another one.\n\n"           \
        "Without a word the accounts are listed of which you are a member. `account NAME` shows one; with "  \
        "--new, --description, --member and --remove it is opened and changed. `balance NAME` shows what "   \
        "it "                                                                                                \
        "has; `statement NAME` each movement, with who, why and for which job. `deposit NAME AMOUNT` makes " \
        "an "                                                                                                \
        "allocation, or adds to one; `withdraw NAME AMOUNT` takes out what is neither reserved nor credit; " \
        "`transfer FROM TO AMOUNT` moves it, and it ends when it would have; `allocation NAME --allocation " \
        "N` "                                                                                                \
        "sets the start, the end and the credit limit of one anew.\n\n"                                      \
        "`quote NAME --for TIME` asks what something would cost by the rates, and promises the price until " \
        "the quote ends: a job gets it with *+BankQuote = NUMBER*, unless the rates make it cost more "      \
        "than what was asked about (--cpus, --memory, --gpus, --place). `quotes` and `liens` list what is "  \
        "open. "                                                                                             \
        "`lien NAME AMOUNT` reserves money for something that is no job of Drover's, until --end; "          \
        "`extend`, "                                                                                         \
        "`release` and `charge --lien NUMBER [AMOUNT]` go on with it. `charge NAME AMOUNT` charges without " \
        "one. `refund NAME AMOUNT` gives back what was charged.\n\n"                                         \
        "A user of an account sees its balance and what he has spent, asks for quotes and reserves for "     \
        "himself. A manager sees its statement, charges it and moves money between accounts that he "        \
        "manages. "                                                                                          \
        "An owner says who is a member, and opens accounts below it. A role holds for the accounts below, "  \
        "too. Deposits, withdrawals, dates, and accounts at the top are for admins; operators see "          \
        "everything, "                                                                                       \
        "charge and refund.\n\n"                                                                             \
        "How jobs are paid for is a section of the server's settings, *bank*, in droverd(8). A job is paid " \
        "from the account that its *accounting_group* names, or from the nearest one above. When it is "     \
        "given "                                                                                             \
        "to a place its lien is made, for as long as it says that it runs; when it has ended it is charged " \
        "for what it used. One whose account cannot pay is held with code 1003, which `drover why` "         \
        "explains; "                                                                                         \
        "after a deposit `drover release` lets it go on."

#define RESERVE_TEXT                                                                                         \
        "Without a word, sets room aside at places for a time, and prints the number of the reservation. "   \
        "Jobs that name it (`reservation = NUMBER` in a submit file) run in it only, as soon as its time "   \
        "has come; all others run around it: beside it where there is room for both, and before it where "   \
        "they will have ended. How long they run is what their author allows (*allowed_execute_duration*), " \
        "else what nine in ten jobs like them take.\n\n"                                                     \
        "Places are looked for among those that are connected and say how many processors they have; "       \
        "those at which least runs now come first. Room that another reservation has at the same time is "   \
        "not given twice, and a place has at most 32 reservations. What runs when a reservation begins "     \
        "holds its room until it ends, or goes back "                                                        \
        "to the queue with --evict.\n\n"                                                                     \
        "When its time is over the reservation is gone, unless it comes again (--every). Jobs that still "   \
        "run go on as others do; those that still wait for it are held with code 1004. "                     \
        "`drover edit JOB ReservationId=` and `drover release` free them.\n\n"                               \
        "`list` shows all reservations, `show NUMBER` one with its places, and `end NUMBER` ends one. "      \
        "With --maintenance whole places are kept empty for that time.\n\n"                                  \
        "Admins and operators make reservations; the section *reservations* of the server's settings says "  \
        "which users may, and how much (droverd(8)). With a bank, *reserved: all* in its section has the "   \
        "account of the reservation pay for all of its room, used or not, and its jobs cost nothing more; "  \
        "what was reserved of money is charged for the time that has passed when it is ended early."

#define REPORT_TEXT                                                                                          \
        "Sums what attempts have used that ended in a time. An attempt is one run of a job at a place; "     \
        "each "                                                                                              \
        "leaves a record when it ends, however that was.\n\n"                                                \
        "`usage` tells processor, GPU and wall clock hours, attempts and bytes; `wait` how long jobs "       \
        "waited "                                                                                            \
        "from submit to their first start; `efficiency` how much of the processors and the memory that "     \
        "were "                                                                                              \
        "held was used, with a hint where it is less than half; `sites` how attempts ended at each agent; "  \
        "`bank` what was charged for jobs, by account and month: with --format html or csv that is a bill. " \
        "What other systems charged, and refunds, are in `drover bank statement`.\n\n"                       \
        "`keywords` tells which keywords of submit files, and which presets by name (job_policy=night), "    \
        "requests have had that were submitted in these months; by keyword, user and month.\n\n"             \
        "`records` writes the records themselves: a line of JSON each, CSV, or the Open Grid Forum's Usage " \
        "Record 2.0 (GFD.204) in XML. Users see what is theirs, admins and operators everything; records "   \
        "are kept for ever. Processor "                                                                      \
        "time, memory and bytes are what agents say; times are bounded by what the server saw."

#define RUNNING "Run it"
#define WORKING "Submit and collect"
#define LOOKING "Look"
#define ACTING  "Act"
#define TOOLS   "Tools"

const struct command commands[] = {
        {"up", RUNNING, "run a server and an agent for this machine", "[OPTIONS]",
         "Runs `droverd` and `drover-agent` in the foreground, with all their state in one folder, and "
         "prints `ready` "
         "when both are. The folder is made when it isn't there, readable by you only. Ctrl-C stops both, "
         "and the jobs "
         "that run: these wait in the queue for the next `drover up`. When `drover up` is killed instead, "
         "they go on, "
         "and the next one takes them over.\n\n"
         "A part that crashes is started again, at once the first time and then after growing pauses. Only "
         "one server "
         "can use a folder.",
         "drover up\n  a server and an agent in ~/.local/state/drover\n"
         "drover up --dir /tmp/try --cpus 4\n  in a folder of its own, offering four processors\n"
         "drover up --listen 0.0.0.0:7331\n  agents of other machines may join: see drover-token(1)",
         up_options, 0, 0, "", false, cmd_up},
        {"server", RUNNING, "run a server only", "[OPTIONS]",
         "Becomes `droverd` with the same options: see droverd(8).", NULL, none, 0, WORDS_ANY, "", true,
         cmd_program},
        {"agent", RUNNING, "run an agent only", "[OPTIONS]",
         "Becomes `drover-agent` with the same options: see drover-agent(8).", NULL, none, 0, WORDS_ANY, "",
         true, cmd_program},
        {"backup", RUNNING, "copy an instance while its server runs", "[OPTIONS] FOLDER",
         "Copies the database, the files that it names, keys and settings into a folder, which is made or "
         "must be "
         "empty. It is `droverd --backup`: run it on the server's machine, as the server's user or root. "
         "The server "
         "may go on meanwhile; the copy is of one moment. Who can read it can pose as the server.",
         "drover backup /backup/monday\ndrover --dir /srv/queue backup /backup/monday", json_only, 1, 1,
         "files", false, cmd_backup},
        {"restore", RUNNING, "put a copy of an instance back", "[OPTIONS] FOLDER",
         "Puts what `drover backup` has made into the folder of the server (--dir), where no database may "
         "be, while no "
         "server runs there. It is `droverd --restore`; BACKUP in droverd(8) says what follows.",
         "drover --dir /srv/queue restore /backup/monday", json_only, 1, 1, "files", false, cmd_restore},
        {"config", RUNNING, "check the server's settings, and show what they have for users",
         "[OPTIONS] check [FILE] | show",
         "`drover config check` reads a file of settings (by default the instance's own, droverd.yaml) as a "
         "server "
         "would, and names file and line of the first mistake; it needs no server. `drover config show` "
         "lists what "
         "the running server's settings have for requests under a name: initializers, applications, "
         "dispatchers, "
         "virtual queues and policies, who may use each, which of them are defaults, and what they stand "
         "for. A "
         "request names one by `job_initializer`, `job_application`, `job_dispatcher`, `job_virtual_queue` "
         "or "
         "`job_policy`, and declines a default by the name `none`. See PRESETS in droverd(8).",
         "drover config check /etc/drover/droverd.yaml\ndrover config show\ndrover submit --policy night "
         "job.sub\n"
         "drover submit -a 'job_virtual_queue = short' job.sub",
         table_only, 1, 2, "check show", false, cmd_config},
        {"agents", RUNNING, "list the agents and what they have",
         "[OPTIONS] [drain NAME | resume NAME | revoke NAME | wish NAME WISH...]",
         "Shows every agent and its queues: what is free of what there is, what runs, when it was last heard "
         "of, and "
         "which limits it really enforces on jobs. Revoked agents that are away and have no jobs are left "
         "out, "
         "but with `--all` and `--json`.\n\n"
         "`drover agents drain NAME` is `drover node drain NAME`: it gives an agent no more jobs; what it "
         "has "
         "goes on to "
         "its end. The agent stays drained, also after a restart of the server, until `drover agents resume "
         "NAME`.\n\n"
         "`drover agents wish NAME WISH...` says which jobs an agent would have first, of those between "
         "which "
         "the order of the queue leaves the choice: *small-input*, *short-run*, *large-memory*, the "
         "weightier "
         "first, or *none*; QUEUE@NAME is one queue of it. It holds until the agent ends, in place of *wish* "
         "in "
         "drover-agent(8).\n\n"
         "`drover agents revoke NAME`, for admins, ends an agent's membership: its certificates are believed "
         "no "
         "more, its connection is closed, and join tokens made for its name are removed. What it runs is "
         "given "
         "to others when its leases have ended, as the agent may go on with it until then. With a new token "
         "made for its name it can join again.",
         "drover agents\ndrover agents drain node7 --reason 'new kernel'\n  before it is worked on\n"
         "drover agents resume node7\ndrover agents revoke node7\n  a node that was lost, or is not to be "
         "trusted",
         agents_options, 0, 5, "", false, cmd_agents},
        {"glidein", RUNNING, "start agents on somebody else's cluster", "start [OPTIONS]",
         "Submits agents of this server as jobs of a queue that hands its jobs on to a batch system. When "
         "the "
         "batch system starts one it joins, and is a node like every other, until its walltime is nearly "
         "over "
         "or it had nothing to run for a while. Which jobs it runs is decided when it is there, so nothing "
         "of "
         "yours waits in the batch system, and jobs that need longer than what is left of its walltime go "
         "elsewhere.\n\n"
         "The programs of the agent are sent along, and a token for each that is good for one use under the "
         "node's name, in a file that only its user may read. Glide-ins are jobs: `drover queue` lists them, "
         "`drover rm` ends them, and their jobs go back to the queue. One that was lost does not join "
         "again.\n\n"
         "It is for admins, who alone may make tokens for agents. The guide \"Agents on somebody else's "
         "cluster\" goes through it step by step; drover-provisioner(7) tells how the queue itself starts as "
         "many as its jobs need.",
         "drover glidein start --queue mycluster --count 20 --walltime 4h --cpus 8 --memory 16G\n"
         "drover queue -j -c 'DroverGlidein isnt undefined'\n  those that are there\n"
         "drover rm 7\n  ends those of request 7",
         glidein_options, 1, 1, "start", false, cmd_glidein},
        {"source", RUNNING, "submit the requests that a program offers", "[OPTIONS] -- PROGRAM [ARG...]",
         "Runs PROGRAM, which knows a system that has work, and submits the requests that it offers. It "
         "tells "
         "the program which were accepted and refused, what becomes of them and how they end, by one JSON "
         "object a line; drover-source(7) has the contract. A request that is offered again after any of "
         "them was killed is the same request: it runs once.\n\n"
         "Two programs come with Drover and need no path: `folder` takes submit files that are put into a "
         "folder, and `http-queue` asks a server by HTTP for work. With `sources` in droverd.yaml the server "
         "itself keeps sources running; see droverd(8).",
         "drover source --files -- folder ~/inbox\n  submits each *.sub that appears there\n"
         "drover source --name lims --most 20 -- ./from-lims --project 7",
         source_options, 1, WORDS_ANY, "", false, cmd_source, true},
        {"nodes", RUNNING, "list the machines of agents, and say what becomes of them",
         "[OPTIONS] [plan | show NAME | drain NAME | resume NAME | fail NAME | down NAME | retire NAME]",
         "Shows the machine of every agent: whether it is booting, idle, busy, draining, drained, failed, "
         "down or "
         "retired, who or what has said so, since when and why. The record is in the server's log: a restart "
         "of the "
         "server or of the node forgets nothing. What the queues of agents have is in `drover agents`.\n\n"
         "Orders, which are the same as `drover node`, are for operators and admins. `drain` gives a node no "
         "more "
         "jobs; with nothing left it is drained, and may be switched off; with --deadline what still runs "
         "then goes "
         "back to the queue. `fail` says that something is wrong with it: what runs goes back to the queue. "
         "`down` "
         "says that it is out of service; of a node that is not connected, that nothing runs there any more: "
         "jobs "
         "are given to others at once, without waiting for leases, so be sure that it is off. `retire`, for "
         "admins, "
         "is for a node that does not come again: it is down, and its agent's certificate is believed no "
         "more. "
         "`resume` takes all of these back, but for the certificate. `show` tells all that is known of it, "
         "and what "
         "it should be running.\n\n"
         "`plan` is for servers that start machines for the queue (drover-provisioner(7)): which are wished "
         "and "
         "who "
         "asked for them, which will be stopped, and of each shape why there are not more.\n\n"
         "A node fails by itself when its health check says so (drover-agent(8)), and when nothing was heard "
         "of it "
         "for ten minutes (droverd(8)); it is up again when the check passes, or when it is heard of.",
         "drover nodes\ndrover nodes plan\ndrover nodes drain node7 --reason 'new kernel' --deadline "
         "1h\ndrover nodes show "
         "node7\n"
         "drover nodes resume node7",
         nodes_options, 0, 2, "", false, cmd_nodes},
        {"node", RUNNING, "look at one machine of an agent, or say what becomes of it",
         "[OPTIONS] show|drain|resume|fail|down|retire NAME", "The same as `drover nodes` with these words.",
         "drover node drain node7 --reason 'new kernel'\ndrover node show node7", nodes_options, 2, 2, "",
         false, cmd_nodes},
        {"bank", RUNNING, "accounts with money that jobs are paid from",
         "[OPTIONS] "
         "[account|balance|statement|deposit|withdraw|transfer|allocation|quote|quotes|lien|liens|extend|"
         "release|charge|refund [ARG...]]",
         BANK_TEXT,
         "drover bank account physics --new --member ann@lab=owner --member '*@lab=user'\n"
         "drover bank deposit physics 1000000 --end 2027-01-01 --credit 5000\n"
         "drover bank transfer physics physics.cms 200000\n"
         "drover bank quote physics.cms --for 2h --cpus 8\n"
         "drover bank statement physics.cms --start 2026-11-01 --csv",
         bank_options, 0, 4, "", false, cmd_bank},
        {"report", RUNNING, "sum what jobs have used",
         "[OPTIONS] usage|wait|efficiency|sites|bank|keywords|records", REPORT_TEXT,
         "drover report usage --by user,month --from 2026-01-01\n"
         "drover report bank --by account --from 2026-11-01 --to 2026-12-01 --format html > bill.html\n"
         "drover report efficiency --owner ann\n"
         "drover report keywords --by keyword,month --from 2026-01-01 --format svg > keywords.svg\n"
         "drover report records --from -1d --format ur",
         report_options, 1, 1, "usage wait efficiency sites bank keywords records", false, cmd_report},
        {"stats", RUNNING, "say which keywords requests have had, and whose", "[OPTIONS]",
         "The same as `drover report keywords`: which keywords of submit files, and which presets by name, "
         "requests "
         "have had that were submitted in these months, the most first. What their jobs have used is told by "
         "`drover "
         "report usage`.",
         "drover stats --by user,keyword\ndrover stats --by keyword,month --from 2026-01-01 --format svg > "
         "stats.svg",
         report_options, 0, 0, "", false, cmd_stats},
        {"reserve", RUNNING, "set room at places aside for a time", "[OPTIONS] [list|show|end [NUMBER]]",
         RESERVE_TEXT,
         "drover reserve --queue node7 --cpus 16 --from 2026-12-01T09:00 --for 4h --users '*@lab'\n"
         "drover reserve --where 'Memory >= 64000' --nodes 4 --for 2h --every week --reason course\n"
         "drover reserve --maintenance --queue node7 --from +1d --for 3h --evict\n"
         "drover reserve list\n"
         "drover reserve end 3",
         reserve_options, 0, 2, "", false, cmd_reserve},
        {"doctor", RUNNING, "check an installation, and say how to mend what is wrong", "[OPTIONS]",
         "Looks at the folder of a server and an agent, at this machine, and at a running server, and prints "
         "a line "
         "for each check: ok, warning or wrong, with what to do about it. Looked at are: modes and owners of "
         "the "
         "folder, its keys and its state; settings; with --agent-config the agent's map of users; "
         "certificates; "
         "free space and inodes; open files; user namespaces, filters of system calls and control groups; "
         "and, if a "
         "server answers, whether it takes work, its clock, its ports, tokens that expire, agents that are "
         "away "
         "and limits on jobs that are not the kernel's. Without a server that is left out. Exits 0 when "
         "nothing is "
         "wrong (there may be warnings), and 1 when something is. `drover up` does the checks of the folder "
         "and the "
         "machine when it starts, and prints what is wrong.",
         "drover doctor\ndrover doctor --json --agent-config /etc/drover/agent.yaml", doctor_options, 0, 0,
         "", false, cmd_doctor},
        {"stores", RUNNING, "list data stores with latency and bandwidth", "[OPTIONS]",
         "Shows every store that the server's configuration names, the labels it carries, and the latency "
         "and "
         "bandwidth that each agent has measured to it: what the choice of a place for a job rests on. "
         "A question mark: the agent has fetched nothing from there yet, and 100 Mbit/s are taken for it. "
         "ANSWERS: whether the store answers that agent; one that does not gets no job from there that needs "
         "it, and what it saw stands below. "
         "Stores "
         "are described in droverd(8).\n\n"
         "Below that, for stores with a capacity, is what files, lots and running jobs have of it, what is "
         "left, "
         "and each lot and owner of files.",
         "drover stores\ndrover stores --release dav/run7\ndrover stores --used dav=120G --owner ann@lab",
         stores_options, 0, 0, "", false, cmd_stores},
        {"catalog", RUNNING, "the catalog of files: add, import, query, verify",
         "add|scan|import|query|show|rm|verify|save|datasets|forget [OPTIONS] [ARG...]",
         "The catalog knows logical files: their names, sizes, checksums, metadata (values under keys), and "
         "where copies of them (replicas) are: URLs, either on one host's own disk or reachable from "
         "anywhere. "
         "It is in the server's folder, and is read by everybody; who may write is said by *catalog_write* "
         "in "
         "droverd(8). Nothing here touches the files themselves.\n\n"
         "`add NAME` adds one file, or what the options say of one that is known. `scan DIR` adds all "
         "regular "
         "files below a folder of this machine; their names are the paths below it, so that copies of one "
         "folder "
         "on several hosts are replicas of the same files. `import FILE` reads CSV, whose first line has "
         "titles: "
         "*name*, *size*, *checksum*, *url*, *host*, *store*, and any others as keys of metadata; a name may "
         "come again, with another replica. Or it reads JSON: a list of objects, {\"files\": [...]}, or an "
         "object a line, as `query --json` writes them. Files go to the server in batches, each of which is "
         "in "
         "as a whole or not at all; importing the same again changes nothing.\n\n"
         "`query [QUERY]` lists what a query finds, in the order in which the files were added; `show NAME` "
         "tells all of one file, `show` about the catalog. `rm` takes files out of the catalog. `verify "
         "[QUERY]` looks for the replicas that this machine sees, and for their sizes; it exits with 1 when "
         "one is not as the catalog says. `save DATASET QUERY` keeps a query under a name, or with `--files` "
         "a "
         "list; `datasets` lists them, `forget` removes one.\n\n"
         "A query is a list of conditions separated by commas; all must hold:\n\n"
         "    production=P04ik,filetype=daq_reco_MuDst,storage!=hpss,runnumber=>5000,limit=100\n\n"
         "The operators are = (or ==), !=, <, >, <= (or =<), >= (or =>), ~ (contains), !~, [] (within a "
         "range: "
         "runnumber[]5000-6000) and ][ (outside). Several values with || between them are alternatives; with "
         "= "
         "and != a value with \\* or ? in it is a pattern, and A..B a range. Numbers are compared as "
         "numbers, "
         "texts without regard to case; in quotes a value is a text, and may hold commas. A condition holds "
         "only for files that have the key. Keys with a meaning of their own are *name* (*lfn*, *filename*), "
         "*size*, and of replicas *storage* (*store*), *host* (*node*) and *url*: replicas for which a "
         "condition does not "
         "hold are left out, and a file of which none is left is not found. *dataset=NAME* is what a dataset "
         "has, *limit=N* the first N files, and *where=EXPRESSION*, which takes all the rest, a ClassAd "
         "expression over the metadata, Name and Size.",
         "drover catalog scan /data/run7 --meta production=P04ik --store local\n  files on this machine's "
         "own "
         "disk\n"
         "drover catalog query 'production=P04ik,where=events > 1000 && tpc == 1'\n"
         "drover catalog save muons 'filetype=daq_reco_MuDst,trgsetupname=proHigh||minbias'\n"
         "drover catalog verify dataset=muons --checksum",
         catalog_options, 1, WORDS_ANY, "add scan import query show rm verify save datasets forget", false,
         cmd_catalog},
        {"token", RUNNING, "make, list and revoke tokens", "agent|user|list|revoke [OPTIONS] [ID]",
         "`drover token agent --name N` makes a token with which an agent joins this server. `drover token "
         "user` makes "
         "one for calls over TLS, in $DROVER_TOKEN. The token is the only line on standard output; it is "
         "shown once. "
         "`drover token list` lists what there is, and `drover token revoke ID` ends one.",
         "(umask 077; drover token agent --name node1 --uses 1 --expires 1h > token)\n  on node1: "
         "drover-agent "
         "--token-file token\n"
         "(umask 077; drover token user --expires 30d > ~/.config/drover/token)\n  for this user, from other "
         "machines",
         token_options, 1, 2, "agent user list revoke", false, cmd_token},

        {"submit", WORKING, "submit a command, or the jobs that a file describes",
         "[OPTIONS] FILE|-|-- COMMAND [ARG...]",
         "Reads a job description in HTCondor's submit language from FILE, or from standard input for `-`, "
         "submits its "
         "jobs as one request, and prints the request's number and how many jobs it has.\n\n"
         "When the connection breaks on the way the submit is repeated under the same uuid, and so never "
         "doubled. "
         "Input files are sent along when the description says should_transfer_files = YES, or when it "
         "leaves the choice "
         "and the server takes agents of other machines. A description that says nothing of files that "
         "travel runs its jobs in the current folder, at places that see it.\n\n"
         "A COMMAND behind `--` is submitted without a file. At a place that sees the current folder it runs "
         "in it, and its standard output and standard error go into files there. Elsewhere it runs in a "
         "folder of its own, to which the program (if it is of this folder) and the files of this folder "
         "that its arguments name are sent, and `drover get` brings its outputs. With `--send` it does so "
         "everywhere. A program that is found in the PATH is expected at the same path there. What has no "
         "option here is said by `-a`, as in a submit file; `--print` shows the submit file. `drover run` "
         "does the same and waits.",
         "drover submit hello.sub\n  request 7: 1000 jobs\n"
         "drover submit --wait -a 'request_memory = 2G' hello.sub\n  with a progress bar, until all are "
         "done\n"
         "printf 'executable=/bin/date\\nqueue 3\\n' | drover submit -\n  from a pipe\n"
         "drover submit --cpus 4 --memory 2G -- ./simulate --steps 1000\n  a command, without a file\n"
         "drover submit --array 1-100 -- ./analyse data/{}.csv\n  a hundred jobs: data/1.csv to "
         "data/100.csv\n"
         "drover submit --galaxy tool.xml --params job.json\n  a job of a Galaxy tool",
         submit_options, 1, WORDS_ANY, "files", false, cmd_submit},
        {"run", WORKING, "run a command somewhere, and wait for it", "[OPTIONS] [--] COMMAND [ARG...]",
         "Submits a command as one job and stays until it has ended: prints what it prints, as it does so, "
         "and exits with its exit code (128 and the signal's number, if a signal has ended it). With --array "
         "or --each there are several jobs; each one's output is printed when those before it have ended, "
         "and the exit code is the first that is not 0.\n\n"
         "It runs where `drover submit -- COMMAND` runs: in the current folder at places that see it, "
         "elsewhere in a folder of its own.\n\n"
         "SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the job. A job "
         "that does not run yet is removed by the first four, and so is any by a second one. When `drover "
         "run` is killed the job goes on, and what it prints is found in .drover-run-* files of the "
         "folder.\n\n"
         "Standard input is passed on when it is a file (`<data.txt`), or with `--input -`, which reads all "
         "of it before the job is submitted.\n\n"
         "With -t the command has a terminal, as with drover-exec(1): the job keeps the place for it, and "
         "ends with it. It works at places where drover-exec(1) works, whose machine or image has *sh*, "
         "*mkfifo*, *timeout* and *cat*.\n\n"
         "Exits 125 when there is no exit code to pass on: the job was not accepted, is held (and stays "
         "so: see drover-release(1)), or was removed.",
         "drover run ./simulate --steps 1000\n  as if it ran here\n"
         "drover run --cpus 4 --memory 8G -- make -j4 && echo good\n  with a place's four processors\n"
         "drover run --each 'data/*.csv' -- wc -l\n  a job for each file\n"
         "drover run --image python:3.12 -- python3 -c 'print(1)'\n  in a container\n"
         "drover run -t --memory 16G -- bash\n  a shell at a place with so much memory",
         run_options, 1, WORDS_ANY, "files", false, cmd_run, true},
        {"quote", WORKING, "tell what a request would take, and submit nothing",
         "[OPTIONS] FILE|-|-- COMMAND [ARG...]",
         "Reads a job description, or a COMMAND behind `--`, as `drover submit` does and tells, place by "
         "place, when its jobs would "
         "start "
         "and end if all ran there, how many bytes would be moved (MOVED), what it would cost (ALL: of all "
         "jobs), and what excludes the other places. WAIT, LINK, FETCH, MAKE, RUN, SEND and TOTAL are times "
         "of one "
         "job, "
         "and PRICE is its price; HELD is how much of its inputs and image the place has already, of how "
         "much. "
         "A question mark is a run time that is not known yet: the attribute ExpectedRunTime (seconds) says "
         "what the author expects. Of each queue statement the first job stands for all; where there are "
         "several, PART is "
         "the statement's number.",
         "drover quote hello.sub\n  before it is submitted\ndrover quote --cpus 8 -- ./simulate\n  a "
         "command, without a file\ndrover quote --json hello.sub\n  for a program",
         quote_options, 1, WORDS_ANY, "files", false, cmd_quote},
        {"wait", WORKING, "wait until jobs are done", "[OPTIONS] [ID...]",
         "Waits until all jobs named are finished; without an ID, all of your requests that are in the queue "
         "now. When all that is left is held it says so and exits 3, "
         "unless --ignore-held is given. "
         "It goes on waiting when the server is restarted in between. Ctrl-C ends the waiting, not the "
         "jobs.\n\n"
         "Exits 0 when all succeeded, 1 when some failed or were removed, 2 for an id that does not exist, 3 "
         "when all that is left is held, "
         "and 124 when --timeout ran out.",
         "drover wait 7 8.0-99\n  all of request 7 and the first hundred jobs of 8", wait_options, 0,
         WORDS_ANY, "requests", false, cmd_wait},
        {"get", WORKING, "fetch output files that the server keeps", "[OPTIONS] ID...",
         "Fetches the output files of jobs that ran where your files can't be reached. Each is written under "
         "its name in "
         "the description, below DIR; when several jobs made a file of the same name each goes into a folder "
         "named by "
         "its job, as 7.42. A file is complete when it appears under its name. Hidden files are not written "
         "into the home folder.",
         "drover get 7 -o results", get_options, 1, WORDS_ANY, "requests", false, cmd_get},
        {"transfer", WORKING, "copy files between stores", "[OPTIONS] SRC... DEST",
         "Submits placement jobs: jobs that copy from one URL or path to another, as their owner, with his "
         "credentials, labels and limits. An agent's mover does each; it takes no processor from other jobs. "
         "Any two of the "
         "protocols that the agent's mover knows can be joined (drover-mover(8)); where two servers of HTTP "
         "can copy "
         "from one to the other, they do.\n\n"
         "SRC that ends with a slash is a folder, whose files are all copied; its last part may be a pattern "
         "with `*` and "
         "`[...]`. DEST that ends with a slash is a folder. A path of this machine is done by agents that "
         "see it. "
         "`any://` stands for every protocol, tried in turn.\n\n"
         "What was written is compared with what was read by its size, and by the store's checksum where it "
         "names one; no "
         "store that shows files when they are whole shows a wrong one. What may work later is tried "
         "again.\n\n"
         "The same is said by `universe = data` in a submit file, or as Stork's ads in a file for `drover "
         "submit`: see PLACEMENT "
         "JOBS in drover-submit-file(5).",
         "drover transfer --wait results.tar https://se.example.org/data/\n  with progress, rate and time "
         "left\n"
         "drover transfer 'ftp://ftp.example.org/pub/run7/*.root' davs://se.example.org/run7/\n  all that "
         "fit, in one job\n"
         "drover transfer --list files.txt --verify\n  a job for each line, and what was written is read "
         "back\n"
         "drover transfer --type rm https://se.example.org/data/old\n  a file less",
         transfer_options, 0, WORDS_ANY, "files", false, cmd_transfer},
        {"dag", WORKING, "submit and watch a graph of jobs",
         "submit|import|watch|show|rescue|hold|release|rm|resubmit [OPTIONS] FILE|ID [NODE...]",
         "`drover dag submit FILE` submits a graph of jobs that FILE describes in the language of HTCondor's "
         "DAGMan, as one "
         "request: all of it, or nothing. The server starts each node when its parents have succeeded; no "
         "process waits for "
         "it. Nodes whose parents have failed are removed. `drover hold`, `release`, `rm`, `wait` and `why` "
         "are for the "
         "graph as for any request.\n\n"
         "`drover dag show ID` lists the nodes with their states, level by level; of more than a hundred "
         "each level is a line. `drover dag hold`, `release` and `rm` are for the nodes that are named "
         "behind "
         "ID, or for all that are not done. `drover dag resubmit ID` submits what is not done again, as a "
         "new request with the same arrows. `drover dag watch ID FILE` waits for a graph "
         "and writes the files that FILE asks for (DOT, NODE_STATUS_FILE, JOBSTATE_LOG, SAVE_POINT_FILE), as "
         "submit "
         "--wait does. `drover dag import --wfcommons FILE` submits a workflow instance "
         "of "
         "WfCommons, whose tasks sleep as long as they ran, so that `drover sim FILE` can be compared with "
         "it. `drover dag rescue ID` prints a rescue file: written to "
         "FILE.rescue001, it lets the next `drover dag submit FILE` begin where this one ended. What the "
         "language has and "
         "Drover does not is refused by its name; see drover-dag(5).",
         "drover dag submit diamond.dag\n  request 7: 4 nodes, 4 jobs, 4 arrows\n"
         "drover dag show 7\n  its nodes, and what each waits for\n"
         "drover dag show --dot 7 | dot -Tsvg > graph.svg\n  a picture of it\n"
         "drover dag rescue 7 > diamond.dag.rescue001\n  what is done need not be done again",
         dag_options, 2, WORDS_ANY, "submit import watch show rescue hold release rm resubmit", false,
         cmd_dag},
        {"credential", WORKING, "keep proxies, tokens and keys for your jobs",
         "add|list|rm [OPTIONS] [NAME [FILE]]",
         "`drover credential add NAME --type TYPE FILE` stores what is in FILE (`-`: standard input) under "
         "that name, "
         "encrypted; a job whose description says `credentials = NAME` has it in a private file. Adding it "
         "again "
         "replaces it, also in the files of jobs that run, and releases jobs that are held because it had "
         "expired. "
         "Without FILE it is looked for where its tools keep it: $X509_USER_PROXY or /tmp/x509up_uUID for a "
         "proxy, "
         "$BEARER_TOKEN_FILE or bt_uUID in $XDG_RUNTIME_DIR or /tmp for a token, "
         "$AWS_SHARED_CREDENTIALS_FILE or "
         "~/.aws/credentials for s3. `drover credential list` tells until when each is good, and never what "
         "is in it. "
         "With `--for` the inputs and outputs of such jobs at these URLs are fetched and sent with it, too. "
         "See CREDENTIALS in drover-submit-file(5).",
         "drover credential add grid --type proxy\n  the proxy that voms-proxy-init has just made\n"
         "drover credential add wlcg --type token token.txt\n  a bearer token\n"
         "drover credential add lab --type s3 --for https://s3.lab.org/data/\n  also for inputs and outputs "
         "there\n"
         "drover credential rm wlcg\n  jobs that start from now on do not get it",
         credential_options, 1, 3, "add list rm", false, cmd_credential},

        {"queue", LOOKING, "list requests, or jobs", "[OPTIONS] [ID...]",
         "Lists the requests that aren't finished; with ids, or with --jobs, --state or --constraint, their "
         "jobs. END is how long it is expected to take until the last job of the request has ended.",
         "drover queue\n  all requests\ndrover queue 7 --state held\n  held jobs of request 7\n"
         "drover queue -c 'RequestMemory > 4096' --json\n  for a program",
         queue_options, 0, WORDS_ANY, "requests", false, cmd_queue},
        {"top", LOOKING, "watch requests, places and problems on the whole screen", "",
         "Shows requests, the agents' queues and what is wrong with either, and looks again every two "
         "seconds. The "
         "arrows choose a request; h holds its jobs, r releases them, d removes them after a question, w "
         "shows why one "
         "waits, q leaves. It needs a terminal.",
         NULL, none, 0, 0, "", false, cmd_top},
        {"show", LOOKING, "show all about a request or a job", "[OPTIONS] ID...",
         "Shows a job (7.42): how it is, where it runs or ran, when, what it asked for and used, its files, "
         "why it "
         "waits, and the last lines that it printed. Of a request (7) it shows what was submitted and how "
         "many of "
         "its jobs are in which state; a request of one job is shown as that job. With --ad it prints the "
         "ClassAd, "
         "all of it; with --script the script that its place has submitted for it to a batch system.",
         NULL, show_options, 1, WORDS_ANY, "jobs", false, cmd_show},
        {"info", LOOKING, "ask for anything that is known, by one language", "[OPTIONS] KIND",
         "Prints what is known of each thing of a KIND as ClassAds: *jobs* in any state that the server has "
         "in memory, and *history*, those "
         "that have ended, with all their attributes and *Id*; *places*, the ads that jobs are matched with, "
         "with *AgentName* and *QueueName*; *requests*, *nodes*, *stores*, *accounts* (shares), *bank* and "
         "*reservations*, with the names that docs/openapi.json has. A --constraint is any expression over "
         "these; "
         "an attribute that is not there is undefined, and then the thing is not shown. Each user sees what "
         "he may see.",
         "drover info places -c 'TotalCpus >= 16' -o AgentName,QueueName,Cpus,TotalCpus\n"
         "drover info nodes -c 'state != \"up\"' -o name,reason\n"
         "drover info history -c 'RemoteWallClockTime > 3600' -o Id,Owner,RemoteWallClockTime\n"
         "drover info bank -c 'available < 1000' -o name,available",
         info_options, 1, 1, "jobs history requests nodes places stores accounts bank reservations", false,
         cmd_info},
        {"log", LOOKING, "show what happened to a job", "[OPTIONS] ID",
         "Shows the events of a job in order. A request of one job may be named by its number alone.\n\n"
         "--trace shows instead, for its last attempt, the eleven steps of a job through the components of "
         "a resource management system: queue manager, allocation manager (the bank), scheduler, node "
         "manager and process manager (the agent), with the time of each. A step without a time has not "
         "come, or, of the bank's, was not needed.",
         "drover log 7.42\ndrover log --trace 7", log_options, 1, 1, "jobs", false, cmd_log},
        {"tail", LOOKING, "print the end of what a job has printed", "[OPTIONS] ID",
         "Prints the last lines of what a job has written to its standard output, as the job wrote them; "
         "with "
         "--follow also those that it writes from then on, until it has ended. The place that runs the job "
         "is asked for them; of a job that has ended the server keeps the last 64 KiB. A request of one job "
         "may be named by its number alone. Of several jobs (7, 7.0-99) the last lines of those that run are "
         "shown, ten jobs at most, each beneath its id; if none runs, of those that ended last. --follow "
         "takes one job.",
         "drover tail -f 7\n  what the job of request 7 prints\n"
         "drover tail --stderr -n 3 7.42\n  its last three lines of errors",
         tail_options, 1, 1, "jobs", false, cmd_tail},
        {"exec", LOOKING, "run a command beside a job's program", "[OPTIONS] ID -- COMMAND [ARG...]",
         "Runs a command where a job runs: as its user, in its folder, with its environment, within its "
         "limits, and in its container if it has one. What the command prints is printed, and its exit code "
         "is that of drover exec; 128 and the signal's number, if a signal has ended it. Without -i and -t "
         "it reads nothing (/dev/null). It ends with the job, and half a minute after drover exec has gone "
         "away. This works for jobs that run on their agent's machine, as processes or in containers of "
         "podman and docker, not for those in batch systems or at other servers.",
         "drover exec 7 -- ps -ef\n  what runs where job 7.0 runs\n"
         "drover exec -i 7.42 -- tee settings <new-settings\n  write a file into its folder\n"
         "drover exec -t 7 -- top\n  a program that wants a terminal",
         exec_options, 2, WORDS_ANY, "jobs", false, cmd_exec},
        {"chirp", LOOKING, "files and attributes of a job, for its own program",
         "[OPTIONS] OPERATION [WORD...]",
         "For the program of a job that was submitted with *want_io_proxy = true*, while it runs. REMOTE is "
         "a file "
         "beneath the folder that the job was submitted from, and nothing else, without a dot at the "
         "beginning of any part of its name; an agent that sees that "
         "folder "
         "touches it, as the job's owner. The operations are those of condor_chirp:\n"
         "\n"
         "fetch REMOTE LOCAL, put LOCAL REMOTE: a whole file; - is standard output or "
         "input. "
         "read REMOTE LENGTH, write REMOTE LOCAL LENGTH: a part of one. getdir, "
         "stat, "
         "access, remove, rmdir, mkdir, rename, truncate, chmod, utime: as "
         "the "
         "system's commands.\n"
         "\n"
         "get_job_attr NAME prints an attribute of the job's ad. set_job_attr NAME VALUE sets "
         "one, to a "
         "number, true, false or a text in double quotes: it is in the ad for policies, queries and history, "
         "and no "
         "attribute that the server decides by. set_job_attr_delayed does so within 15 seconds, or when "
         "the "
         "program ends; the newest value counts. ulog TEXT writes a line to the job's log. whoami "
         "prints the "
         "job's owner.\n"
         "\n"
         "The socket in *DROVER_CHIRP* takes a line of JSON for each call, and answers with one: `{\"op\": "
         "\"read\", "
         "\"name\": \"a\", \"offset\": 0, \"length\": 100}` with `{\"data\": BASE64, \"size\": 5}` or "
         "`{\"error\": "
         "ERRNO, \"text\": WORDS}`. The other operations there are *get_attribute*, *set_attribute*, "
         "*set_attribute_later*, *log*, *write*, *stat*, *list*, *remove*, *remove_folder*, *make_folder*, "
         "*rename*, "
         "*truncate*, *mode*, *time* and *owner*, and in a parallel job *launch* and *launched*, "
         "which drover-launch(8) uses; *data* is at most 256 KiB. A job has at most 8 "
         "connections, and one more for each of its nodes, sets "
         "attributes and writes lines 10,000 times, ten a second in the long run, and its attributes take 16 "
         "KiB. "
         "There is no socket in jobs of batch systems and at other servers.",
         "drover chirp put result.png result.png\n  the submitter has it while the job goes on\n"
         "drover chirp set_job_attr_delayed Progress 40\n  shown by drover queue -o Progress",
         chirp_options, 1, 4, "", false, cmd_chirp},
        {"shell", LOOKING, "open a shell beside a job's program", "ID",
         "Opens a shell on this terminal where a job runs, as `drover exec -t` runs a command there: bash, "
         "or "
         "sh where that is missing. The job goes on, and the shell ends with it.",
         "drover shell 7\n  look around in the folder of job 7.0", none, 1, 1, "jobs", false, cmd_shell},
        {"why", LOOKING, "tell why a job doesn't run", "[OPTIONS] ID",
         "Tells in words why a job is where it is, or the first job of a request that waits: for an idle one "
         "which condition keeps it from each agent, "
         "or which store that it needs does not answer there and since when, "
         "for a held "
         "one why it is held. Then when it is expected to start and to end, and what it would take at each "
         "place that would have it: WAIT for room, LINK for files that come to places like it over the same "
         "links, FETCH inputs and images that are not there, MAKE its environment, RUN, SEND "
         "outputs, their TOTAL, how much the place has HELD of what it needs, and the PRICE. A job goes "
         "where "
         "the total is least, unless its Rank says otherwise.",
         NULL, json_only, 1, 1, "jobs", false, cmd_why},
        {"path", LOOKING, "show where a job is, hop by hop", "[OPTIONS] ID",
         "Shows the way of a job: each server that has it, with the state there and for how long, the place "
         "that it "
         "was given to, and what that place calls it: the number of a process, a batch job, or the job at "
         "the "
         "next server. The first line is the state in one word: that of the furthest hop, or "
         "\"unreachable\". "
         "Below, hop by hop: what the agent does for a job that does not run (it fetches its image or its "
         "inputs, makes its environment, delivers its outputs), for how long and how far that is; why a "
         "batch "
         "system has it wait; and what went wrong. See drover-runner-drover(7).",
         "drover path 7.42\ndrover path --ad 7.42\n  as nested ClassAds", path_options, 1, 1, "jobs", false,
         cmd_path},
        {"limits", LOOKING, "list limits, what is in use, and who waits", "[OPTIONS]",
         "Lists the pools of units that running jobs draw on: those of the server's settings and those that "
         "jobs "
         "name in concurrency_limits, with what is in use, by whom, and how many idle jobs wait for a unit. "
         "A limit "
         "without a number of units is only counted. Names that begin with user/ and queued/ are how many "
         "jobs one "
         "user may have running, and in the queue. Below that is what you have uploaded to the server, and "
         "may have there, "
         "and to an operator what others have. See drover-priority(7).",
         NULL, table_only, 0, 0, "", false, cmd_limits},
        {"priority", LOOKING, "show what an idle job's place in the order is made of", "[OPTIONS] ID",
         "Shows the points that decide whose turn it is: of the fair share of the job's account, of its "
         "quality of "
         "service, its size, its age, its wait and its owner's own priority, each as its weight counts it, "
         "and how "
         "many idle "
         "jobs go before it. See drover-priority(7); `drover prio` changes the owner's own.",
         "drover priority 7.42", json_only, 1, 1, "jobs", false, cmd_priority},
        {"shares", LOOKING, "list accounts, their shares and what they have had", "[OPTIONS]",
         "Lists the accounts of the settings and the users that have used something or want to: their "
         "shares, what "
         "part of the pool these are worth among those that want something now, the processor-hours that "
         "count "
         "against them (halved with each half-life), the processors that they have had on average of late, "
         "those "
         "that they take now, and their running and waiting jobs. See drover-priority(7).",
         NULL, table_only, 0, 0, "", false, cmd_shares},
        {"history", LOOKING, "list finished jobs", "[OPTIONS] [ID...]",
         "Lists finished jobs, the latest first.",
         "drover history -c 'ExitCode != 0'\n  those that failed\ndrover history 7 -l 3\n  the last three of "
         "request 7\n",
         history_options, 0, WORDS_ANY, "requests", false, cmd_history},

        {"hold", ACTING, "hold jobs", "[OPTIONS] ID...",
         "Holds jobs: they don't run until released. Those that run are stopped.", NULL, act_options, 0,
         WORDS_ANY, "jobs", false, cmd_hold},
        {"release", ACTING, "release held jobs", "[OPTIONS] ID...", "Lets held jobs run again.", NULL,
         act_options, 0, WORDS_ANY, "jobs", false, cmd_release},
        {"rm", ACTING, "remove jobs", "[OPTIONS] ID...", "Removes jobs for good. Those that run are stopped.",
         "drover rm 7\n  the whole request\ndrover rm 7 -c 'NumJobStarts > 2'\n  those of it that started "
         "often",
         act_options, 0, WORDS_ANY, "jobs", false, cmd_rm},
        {"suspend", ACTING, "stop jobs where they run", "[OPTIONS] ID...",
         "Stops the processes of running jobs, which keep their places, until they are resumed.", NULL,
         act_options, 0, WORDS_ANY, "jobs", false, cmd_suspend},
        {"resume", ACTING, "let suspended jobs go on", "[OPTIONS] ID...", "Lets suspended jobs go on.", NULL,
         act_options, 0, WORDS_ANY, "jobs", false, cmd_resume},
        {"vacate", ACTING, "take running jobs from their places", "[OPTIONS] ID...",
         "Takes running jobs from where they run; they run again, there or elsewhere. Jobs that make "
         "checkpoints "
         "(see CHECKPOINTS in drover-submit-file(5)) are asked for one first, and go on from it.",
         "drover vacate 7\ndrover vacate 7 -c 'RemoteHost == \"node3\"'", act_options, 0, WORDS_ANY, "jobs",
         false, cmd_vacate},
        {"requeue", ACTING, "put running and held jobs back into the queue", "[OPTIONS] ID...",
         "Takes running jobs from where they run and releases held ones: all of them wait again. Jobs that "
         "have "
         "ended are left alone; `drover resubmit` submits them again.",
         "drover requeue 7\ndrover requeue 7.3 7.5", edit_options, 0, WORDS_ANY, "jobs", false, cmd_requeue},
        {"resubmit", ACTING, "submit jobs of an earlier request again", "[OPTIONS] ID",
         "Makes a new request of the jobs of an earlier one, as they were submitted: of all of them, of "
         "those that "
         "are named, or of those that failed. What $(Process) and the values of items came to stays, though "
         "the "
         "jobs have numbers of their own in the new request: output files are written again under the same "
         "names. "
         "Input files that were sent with the submit are used again as long as the server knows the request. "
         "What "
         "`drover edit` has changed since is left out, and so is what the jobs waited for when some of them "
         "are "
         "picked: -a says it again.",
         "drover resubmit 7\ndrover resubmit 7 --failed -a request_memory=8G\n  the failed ones, with more "
         "memory\n"
         "drover resubmit 7.3-5",
         resubmit_options, 1, 1, "requests", false, cmd_resubmit},
        {"checkpoint", ACTING, "have running jobs make checkpoints", "[OPTIONS] ID...",
         "Asks running jobs that make checkpoints for one now. Each is kept at the server, and the job goes "
         "on where it "
         "is; `drover log` shows when it was there. Other jobs are left alone.",
         NULL, act_options, 0, WORDS_ANY, "jobs", false, cmd_checkpoint},
        {"signal", ACTING, "send running jobs a signal", "[OPTIONS] ID... SIGNAL",
         "Sends a signal to the programs of running jobs, wherever they run: a name, such as USR1, or a "
         "number. "
         "What follows is up to the program. STOP and CONT are `drover suspend` and `drover resume`.",
         "drover signal 7 USR1\ndrover signal 7.0-9 15", prio_options, 2, WORDS_ANY, "jobs", false,
         cmd_signal},
        {"prio", ACTING, "set the priority of jobs", "[OPTIONS] ID... VALUE",
         "Sets the priority of jobs among their owner's: a whole number, higher runs first, 0 by default. "
         "Put -- before "
         "a negative one.",
         "drover prio 7 10\ndrover prio 7 -- -5", prio_options, 2, WORDS_ANY, "jobs", false, cmd_prio},
        {"edit", ACTING, "change what jobs that wait ask for", "[OPTIONS] ID... NAME=VALUE...",
         "Changes attributes of jobs that are idle or held. A keyword of submit files means what it means "
         "there: "
         "request_memory=4G, request_cpus=8, requirements='Arch == \"X86_64\"', arguments='-v 3', "
         "environment='A=1', max_retries=3. Any other NAME is an attribute and VALUE a ClassAd expression. "
         "Without "
         "a VALUE the attribute is taken away. $(Process) and its like are filled in for each job.\n\n"
         "What was sent along with the submit (the program, input files, images) and what holds for the "
         "whole "
         "request (its name, its log, sets of jobs that start together) cannot be changed, nor can jobs that "
         "run: hold or vacate them first. If one of the changes is refused nothing is changed. What was "
         "changed "
         "stands in `drover log`.",
         "drover edit 7 request_memory=8G\ndrover edit 7.3 arguments='--slow 7' request_cpus=2\n"
         "drover edit -c 'HoldReasonCode == 34' request_memory=16G\n  those that took too much memory",
         edit_options, 1, WORDS_ANY, "jobs", false, cmd_edit},

        {"sim", TOOLS, "run workloads and failures in virtual time", "[OPTIONS] [[NAME=]TRACE...]",
         "Runs a workload through the scheduler in virtual time: the core that decides is the server's own, "
         "the "
         "agents, "
         "links, caches and failures are simulated. Weeks of a cluster's log take seconds.\n\n"
         "TRACE is a log in the Standard Workload Format (SWF), whose jobs come from the cluster NAME (the "
         "file's name, "
         "if it is not given), or a workflow instance in the JSON of WfCommons (WfFormat 1.4 and 1.5), whose "
         "tasks are "
         "submitted as their parents end. Several traces run at once; without --site each log brings a "
         "cluster of "
         "its own, "
         "one agent with all its processors. Jobs of logs have no files, so they get some: each user has "
         "eight data "
         "sets at "
         "the store of his cluster, and each job reads one and writes a tenth of it. Without a trace jobs "
         "are "
         "generated.\n\n"
         "With --compare the same workload is run under several policies: `cost` is Drover's (the least "
         "estimated "
         "time to "
         "the result, waiting a while for a better place), `blind` knows nothing of data, `fifo` takes jobs "
         "in "
         "the order "
         "they came, each to the free place of least cost, `cached-bytes` goes to the place that holds most "
         "of "
         "the job's "
         "bytes. Those of SUMS choose without looking at data: `passive` has the places take turns, "
         "`cluster-monitor` goes to the one with the smallest load, `queue-monitor` to the one where jobs "
         "have "
         "started soonest so far; see placement in droverd(8).\n\n"
         "The reference schedulers are no part of Drover: they are here so that it can be measured by them "
         "on any log. `fcfs` starts jobs strictly in "
         "their order, `easy` backfills behind a reservation for the first one that waits, `conservative` "
         "gives each job a "
         "reservation, `easy-fairshare` is easy in the order of what the users had. They know nothing of "
         "files: use --input 0. "
         "Where a log has no estimates of run times they are told the run times themselves, which nobody "
         "knows: a bound.\n\n"
         "The table shows: the makespan; bytes moved between stores and agents, and how many of these over "
         "far "
         "links; bytes "
         "that were needed and cached; mean and 95th percentile of waits until the program starts; the mean "
         "time from a job's submission to its end (TURNAROUND); the mean of "
         "the bounded "
         "slowdown, (end - submission) / max(run time, 10 s); Jain's index of fairness over the users' mean "
         "slowdowns; the "
         "share of processor time used by programs; attempts lost to failures; assignments for each second "
         "spent in "
         "matching; and memory.\n\n"
         "With --faults it plays the games of Drover's own tests instead: crashes of the server, lost "
         "messages, "
         "silent "
         "agents, with all invariants checked after every step. The same seed and steps play the same "
         "game.\n\n"
         "# PLACES\n\n"
         "A site file lists clusters of agents that are alike. Each has a store beside it:\n\n"
         "    clusters:\n"
         "      - name: north\n"
         "        agents: 10          # default 1\n"
         "        cpus: 16            # of each agent\n"
         "        memory: 64GiB       # default 4 GiB a processor\n"
         "        speed: 1.2          # default 1\n"
         "        cache: 500GiB       # default 1 TiB\n"
         "        start-delay: 30s    # mean; default 0\n"
         "        mtbf: 30d           # mean; default: they do not fail\n"
         "        repair: 1h          # mean\n"
         "        cut: 10h            # mean: an agent's network fails; default: it does not\n"
         "        cut-for: 5m         # mean: jobs run on until their leases (--lease) end\n"
         "        outages: [{from: 2d, for: 6h}]  # maintenance, or failures of a log\n"
         "        watts: {idle: 3, busy: 12}      # of a processor\n"
         "        price: 0.40         # of an agent's hour\n"
         "        cloud: {boot: 2m, idle: 5m, period: 1m, interrupted: 2d}  # agents come and go\n"
         "        links: {south: {bandwidth: 50M, latency: 20ms}}\n"
         "    near: {bandwidth: 1G, latency: 1ms}   # links that are not given: to its own store,\n"
         "    far: {bandwidth: 50M, latency: 20ms}  # and to the others\n\n"
         "The agents of a cluster share its links: of n transfers at once each gets an n-th. A cluster with "
         "a "
         "batch system "
         "is one agent with all its processors. In an outage all agents of the cluster are away, and what "
         "they ran is lost. With watts the energy is shown that all processors take until the last job has "
         "ended. Agents of a cluster with cloud exist only while the wishlist wants them "
         "(drover-provisioner(7)): "
         "they boot for that long, are drained after an idle time, and are paid by whole periods; an "
         "interrupted one is lost, after that time in the mean. With cloud or a price the hours of all "
         "agents are shown, and what they cost.",
         "drover sim north.swf south.swf --compare cost,blind\n  two logs at once, each from its own "
         "cluster\n"
         "drover sim --jobs 100000 --classes 100 --agents 1000 --far 10M --plot waits.svg\n  generated jobs, "
         "and a "
         "picture\n"
         "drover sim genome.json --copies 20 --every 5m --mtbf 1d\n  a workflow, again and again, on agents "
         "that "
         "fail\n"
         "drover sim --faults --seed 17 --steps 700 -v\n  one game with faults, move by move",
         sim_options, 0, WORDS_ANY, "files", false, cmd_sim},
        {"classad", TOOLS, "try ClassAd expressions and matches, and convert ads",
         "eval|match|parse|unparse|convert [OPTIONS] EXPR...|A B|FILE...",
         "`drover classad eval EXPR...` prints the value of each expression on a line of its own, as the "
         "language "
         "writes it. `drover classad match A B` reads two ads and prints `match` when both accept each "
         "other; else it "
         "says which of them refuses, and which clause of its Requirements with its value, and exits 1.\n\n"
         "`drover classad parse FILE...` checks ads and prints each in the new syntax on a line of its own; "
         "what is "
         "wrong is told with file, line and column, and the exit code is 1. `drover classad unparse FILE...` "
         "prints "
         "ads with a line for each attribute (the old syntax), or in the encoding that --to names. `drover "
         "classad "
         "convert --to ENCODING FILE...` writes all ads of all files in one encoding.\n\n"
         "A file may hold many ads: in the old syntax with empty lines between them, in the new one after "
         "the other or "
         "as a list, in XML within <classads>, in JSON as an array or one after the other. FILE may be - for "
         "standard "
         "input; parse, unparse and convert read it when no file is given. An ad for eval and match may be "
         "in any "
         "encoding. The language is described in drover-classad(7).",
         "drover classad eval '1 + 2'\n  3\ndrover classad eval --ad job.ad --target node.ad Requirements\n  "
         "what the "
         "job's condition gives for the node\ndrover classad match job.ad node.ad\n  do they accept each "
         "other?\ncondor_q -long:json | drover classad convert --to xml\n  the same ads in XML",
         classad_options, 0, WORDS_ANY, "eval match parse unparse convert", true, cmd_classad},
        {"completion", TOOLS, "print shell completion and manual pages", "bash|zsh|fish|ids|man [COMMAND]",
         "Prints the completion script for a shell; or the ids of your requests, which that script asks for; "
         "or the source "
         "of a manual page.",
         "source <(drover completion bash)\n  also of zsh\n"
         "drover completion fish > ~/.config/fish/completions/drover.fish",
         none, 1, 2, "bash zsh fish ids man", false, cmd_completion},
        {"help", TOOLS, "show help", "[COMMAND]", "Shows the commands, or the help of one.", NULL, none, 0, 1,
         "commands", false, cmd_help},
        {"version", TOOLS, "show the version", "[OPTIONS]",
         "Shows the version of this program; with a server at hand, its version too.", NULL, json_only, 0, 0,
         "", false, cmd_version},
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
        {"logs", "log", true},
        {"remove", "rm", false},
        {"delete", "rm", false},
        {"abort", "rm", false},
        {"scancel", "rm", false},
        {"qdel", "rm", false},
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
        {"workers", "agents", false},
        {"machines", "agents", false},
        {"output", "get", false},
        {"outputs", "get", false},
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
        {"stop", "suspend", false},
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
