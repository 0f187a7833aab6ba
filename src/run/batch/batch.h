/* batch: what the runners of batch systems have in common.
 *
 * A batch system is one struct batch_system: command lines or requests to make, outputs to read, and nothing
 * that happens by itself. The base does the rest: a table of tasks, a journal, one status query for all of
 * them, files.
 *
 * A task's life here:
 *
 *   submit -> FRESH -flush-> NAMED -> SENT
 *          -> native number known -> IN (waiting, running) -> OVER -> forgotten
 *
 * FRESH: its script is in its folder. NAMED: with tasks alike it has a submission, whose name and members are
 * in the journal, on disk. SENT: the system's submit command runs. A submission of several tasks is an array.
 * If the command's answer is not known (we were killed, the system did not answer) the name is looked for
 * with the next status query: found, it is adopted; not found, it is submitted again. Should both come to
 * run, the file that the first one makes (BOX/.drover_step.N.began) makes the other end at once.
 *
 * A signal for the program is an order, a file BOX/.drover_step.N.order.SERIAL with the signal's name: the
 * script takes it, when it is nudged or within the guard's few seconds, by renaming it, so that it is obeyed
 * once, whether the batch system can send signals or not. Without verbs of the system's own suspending is an
 * order too.
 *
 * The script (script.c) writes how its program ended to BOX/.drover_step.N.done, which is what counts;
 * the system is asked about tasks that are gone without it. It ends its program when the lease file, which
 * the agent renews, grows old, and at the walltime; one whose turn comes when the file is old does not begin.
 * So nothing of an attempt is left when its lease has ended, whether anybody lives who could cancel it or
 * not.
 *
 * Files: DIR/batch.QUEUE/ has the journal, lease and lease.end, signals.HOST of nodes whose env(1) can give a
 * program its signals back, and NAME.sh, NAME.list.* and NAME.*.log of submissions.
 */
#pragma once
#include "base/job/args.h"
#include "base/map.h"
#include "run/call/command.h"
#include "run/call/request.h"
#include "run/runner.h"

#define BATCH_STEP       ".drover_step"
#define BATCH_ARRIVES_AS "drover.sh" /* the file with all of a task's files, in its job's own folder */
#define BATCH_NAMES      "drover-"   /* prefix of all submissions' names, except short ones */

enum batch_phase {
        BATCH_WAITING,
        BATCH_RUNNING,
        BATCH_OVER,      /* the script came to its end */
        BATCH_CANCELLED, /* cancelled by Drover or by a user */
        BATCH_TIMEOUT,   /* ended at the system's time limit */
        BATCH_MEMORY,    /* used more memory than it asked for */
        BATCH_LOST,      /* its node failed, or it was preempted */
        BATCH_UNFIT,     /* the system found out late that it cannot run it */
};
struct batch_line {                            /* one line of a status answer; borrowed */
        struct str native, name, reason, user; /* user: whose it is there; empty: it does not say */
        enum batch_phase phase;
        bool stopped;     /* running, but suspended in the system */
        bool stays;       /* over, but the system keeps it until it is ended there */
        bool bare;        /* over, and nothing is said of its end: what never began may have been cancelled */
        bool others;      /* native is an array's: its members that the answer does not name are meant */
        bool wants_files; /* it does not begin before its files are sent to it, which may have been done */
};
enum batch_verb { /* a pass over what is to be done is in this order */
                  BATCH_STOP,
                  BATCH_CONTINUE,
                  BATCH_HOLD,
                  BATCH_RELEASE,
                  BATCH_NUDGE, /* SIGURG to the script, which then looks for orders */
                  BATCH_END,
                  BATCH_VERBS_COUNT
};

struct batch_settings {
        const struct run_word *v;
        size_t n;
};
const char *batch_setting(const struct batch_settings *s, const char *name); /* NULL: not set */
/* The job's word of one of these names (NULL behind the last; HTCondor's way, letters of either case), else
 * the queue's setting (NULL: it has none); NULL: none. */
const char *batch_word(const struct run_spec *spec, const char *const *names, const struct batch_settings *s,
                       const char *setting);

struct batch_call { /* a command to be made, or requests */
        const struct batch_settings *settings;
        struct args argv;
        struct buf input;   /* a command's standard input, or the body of each request */
        const char *method; /* HTTP method; NULL: the call is a command */
        const char *type;   /* of a request's body, static; NULL: application/json */
        struct args paths;  /* paths requested one after the other */
        bool once;          /* a request that must not be made again by itself */
        bool text;          /* the answers are text, and kept as they are */
        /* Makes the body of the next path from the answers so far; NULL: all have `input`. */
        request_next_fn *next;
        const void *next_arg;
        bool first; /* the answer comes when something happens, and its first document is enough */
        /* API version that the requests are made for; NULL: any. */
        const char *version;
};
void batch_call_deinit(struct batch_call *c);
void batch_path_add(struct batch_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void batch_word_add(struct batch_call *c, const char *word);
void batch_words_add(struct batch_call *c, struct str words); /* parted by blanks */

struct batch_sending {             /* a submission */
        const char *name, *script; /* the script's path */
        const char *head;          /* the script's lines that ask for resources */
        unsigned count;            /* more than 1: an array */
        const char *log;           /* the system writes a member's output to LOG.INDEX.log; NULL: nowhere */
        struct str text;           /* the script's text; only for a system with a service */
        const struct args *env;    /* with a service: the environment that a command would have */
};

struct batch_reserving { /* an advance reservation */
        const char *name;
        const char *users; /* local users who may use it, comma-separated */
        int64_t start_ms, end_ms;
        uint64_t cpus;
        bool maintenance; /* instead of cpus: all of the queue, and nobody uses it */
};

/* Answers are read whole, may be modified, and lines that make no sense are skipped. */
typedef void batch_take_fn(void *arg, const struct batch_line *line);

struct batch_variable {             /* set from the setting, else from the agent's own environment */
        const char *name, *setting; /* setting NULL: only from the environment */
};

struct batch_system {
        const char *name;
        /* Settings of a queue beside those of settings.c; NULL behind the last. */
        const char *const *settings;
        const struct batch_variable *variables; /* environment of its commands; a NULL name behind the last */
        const char *index_variable;             /* variable with a task's index in its array */
        /* Shell lines that handle the signals by which the system announces things; or NULL. */
        const char *traps;
        /* Command line of the shell that prints the joules of the job so far, for the setting `energy`; or
         * NULL.
         */
        const char *energy;
        unsigned index_first, array_max;
        unsigned past_max;    /* most tasks in one call of `past`; 0: no limit */
        unsigned wordless_s;  /* seconds by which the system may report an end late; 0: 10 */
        unsigned verbs;       /* bits 1 << verb of the verbs that it has */
        const char *set_free; /* prefix of settings that are the site's own; NULL: none */
        bool gpus_left;       /* `capacity` tells the GPUs that are free, not how many there are */
        bool owners;          /* lines have this machine's user names, also without a map of users */
        /* The setting without which no task has more than one node; "": any task may; NULL: none ever. */
        const char *nodes_setting;
        bool short_names; /* names of submissions have 15 letters and digits, not 30 with hyphens */
        /* The system is asked by HTTP requests to the setting `rest`, with `token_file`; its answers become
         * the lines that the calls below read. `arg` is the user that jobs are submitted for, NULL with a map
         * of users. NULL: the system is asked by commands. */
        const struct request_service *service;
        int none_there; /* exit status of `status` that means "no jobs"; 0: there is none */
        unsigned (*verbs_of)(const struct batch_settings *s); /* replaces `verbs`; or NULL */
        /* Checks the queue's settings. 0, or -EINVAL with err. NULL: nothing to check. */
        int (*check)(const struct batch_settings *s, struct err *err);
        /* Appends the lines at the head of a script that ask for the task's resources. 0; -EINVAL with err: a
         * word of the job cannot be used. */
        int (*resources)(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                         struct err *err);
        void (*naming)(const char *name, const char *log, unsigned count,
                       struct buf *out); /* count 1: no array */
        void (*submit)(struct batch_call *c, const struct batch_sending *s);
        bool (*submitted)(struct str out, struct buf *ret_native);
        /* Returns whether the system has refused the submission for good. If not, it may or may not have it.
         */
        bool (*refused)(int exit_code, struct str errors);
        /* Returns whether the system is too full to take the submission now. Asked before `refused`. NULL:
         * never. */
        bool (*full)(struct str errors);
        /* Options in the head that name further limits beside the user's. NULL: none. */
        const char *const *limited_by;
        bool (*refused_array)(struct str errors); /* the array as such was refused. NULL: never */
        void (*native_of)(const char *native, unsigned index,
                          struct buf *out); /* id of an array's member; NULL: there are no arrays */
        void (*status)(struct batch_call *c, const char *user);
        /* The system never gives an id twice, and only some answers of `status` have names: makes the body of
         * its second path, which asks for the names of jobs whose ids are not in the map `known`. NULL: every
         * line has its name. */
        request_next_fn *unnamed;
        bool (*is_answer)(struct str out); /* out answers `status`; else the call has failed. NULL: always */
        void (*status_read)(struct str out, batch_take_fn *take, void *arg);
        /* Makes a call that is answered when something has changed since the status answer `out`, or after a
         * while; without a path, that cannot be asked. NULL: it never can. */
        void (*watch)(struct batch_call *c, struct str out);
        void (*past)(struct batch_call *c, const char *user,
                     const char *natives); /* asks about ended tasks, "1,2_3". NULL: there is no accounting */
        void (*past_read)(struct str out, batch_take_fn *take, void *arg);
        /* Returns whether `past` has failed only for now, so that a later answer is worth waiting for. NULL:
         * never. */
        bool (*past_away)(struct str errors);
        const char *memory_words; /* text in the log of a script that was killed for its memory; NULL: none */
        /* Asks why the system found a task unfit when its status line has no reason. NULL: it always says. */
        void (*explain)(struct batch_call *c, struct str native);
        /* The reason is borrowed from out. *phase is BATCH_UNFIT, and is changed if the reason is another. */
        struct str (*explained)(struct str out, enum batch_phase *phase);
        /* natives are separated by blanks. A call may end up without a path: the service lacks the verb */
        void (*act)(struct batch_call *c, enum batch_verb verb, struct str natives);
        /* Appends the path of a request for a file in a job's own folder, from where tasks get their files
         * and where they leave them (sessions.h). NULL: the files are on a shared file system. */
        void (*file_path)(const struct batch_settings *s, struct str native, struct str name,
                          struct buf *out);
        void (*clean)(struct batch_call *c,
                      struct str natives);      /* with file_path: removes jobs that are over */
        void (*capacity)(struct batch_call *c); /* NULL: the system cannot say */
        void (*capacity_read)(const struct batch_settings *s, struct str out, struct run_capacity *c);
        /* Asks when the script would begin. NULL: the system cannot say. when_said: true, and *ret_ms is Unix
         * time. */
        void (*when)(struct batch_call *c, const struct batch_sending *s);
        bool (*when_said)(struct str out, struct str errors, uint64_t *ret_ms);
        /* Makes a reservation; its time may have begun. false: the queue's settings do not say which nodes
         * are maintained, or how several processors are reserved. NULL: the system has none, or the agent
         * makes none. */
        bool (*reserve)(struct batch_call *c, const struct batch_reserving *r);
        void (*unreserve)(struct batch_call *c, const char *name);
        void (*reserved)(struct batch_call *c);       /* asks for all reservations */
        struct str (*reserved_read)(struct str line); /* returns the name in a line; empty: it has none */
        /* Returns the id in a line before that of the name, by which jobs call it; NULL: they call it by its
         * name. */
        struct str (*reserved_id)(struct str line);
        bool when_is_now; /* `when` asks only whether the script would begin now, so its refusal is not final
                           */
};

extern const struct batch_system batch_slurm, batch_slurm_rest, batch_gridengine, batch_exec, batch_pbs,
        batch_htcondor, batch_kubernetes, batch_arc;

/* ---- script.c */

/* Writes the script of one step; `head` has the lines that ask for resources. The script does not begin when
 * the lease file is older than the lease. */
struct batch_guard {        /* the process beside the program that watches the lease */
        const char *lease;  /* path of the lease file */
        const char *traps;  /* traps of the batch_system */
        const char *energy; /* energy of the batch_system; NULL: not asked for */
        unsigned every_s;   /* interval between looks at the lease */
};
void batch_script(const struct run_spec *spec, const char *head, const struct batch_guard *guard,
                  struct buf *out);
/* Writes the script of an array, which finds its member's script in the list and runs it. The list is files
 * LIST.K, each of BATCH_LIST_PART members. */
#define BATCH_LIST_PART 64
void batch_script_array(const char *index_variable, unsigned index_first, const char *head, const char *list,
                        struct buf *out);
/* Appends a member's line to the list, from index 0 on; "esac" follows a part's last one. */
void batch_script_member(unsigned index, const char *script, struct buf *out);
void batch_quote(struct buf *out, const char *text); /* appends text as one word of the shell */
/* Writes the lease file: the rest of the lease, less the time that a script needs to notice its end and to
 * stop. The serial differs in each file; the time makes it differ from those of an earlier agent. every_s:
 * the longest interval between a script's looks. Returns the seconds after which scripts take the lease to be
 * over. */
int64_t batch_script_lease(int64_t wall_ms, uint64_t serial, int64_t left_ms, unsigned every_s,
                           struct buf *out);
/* Reads BOX/.drover_step.N.done into e, except the times, which are those of the files; e->text is static.
 * False: the text is not what a script writes, or not complete. */
bool batch_script_done(struct str text, struct run_event *e);

/* ---- answers.c: pieces that readers of answers share */

/* Returns whether text may stand in a line of a script: at most 256 letters, digits and ordinary signs,
 * without blanks, quotes and line ends, and not an option. */
bool batch_plain(const char *text);
bool batch_contains(struct str text, const char *const *words); /* any of the words; NULL behind the last */
/* Returns whether s can be a system's id of a job, which goes into the journal and, separated by blanks and
 * commas, onto command lines: at most 128 characters without blanks, commas and quotes, and not an option. */
bool batch_is_native(struct str s);
/* Returns the id of the array that a member's id belongs to; any other id is returned as it is. */
struct str batch_whole(const struct batch_system *s, struct str native);
/* Adds a machine of the system to *c; its idle GPUs count only if a processor is idle. A task may have up to
 * task_cpus of its processors. At most 100,000 processors or GPUs and 1 PiB are counted for a machine, and at
 * most a million machines. */
struct batch_node {
        uint64_t cpus, idle_cpus, memory_bytes, idle_memory_bytes, gpus, idle_gpus;
};
void batch_node_add(struct run_capacity *c, const struct batch_node *n, uint64_t task_cpus);
/* Returns the last line that is not empty. */
struct str batch_last_line(struct str out);
/* Reads the next tag of XML that programs print: its name, its attributes as they stand, and the text up to
 * the next tag with entities replaced in place. A closing tag is "/NAME". False: there is none left. */
bool batch_next_tag(struct str *rest, struct str *ret_tag, struct str *ret_attributes, struct str *ret_text);
/* "23.5G", "100mb", "2048kb": bytes; a number alone counts `unit`. False: it is none. */
bool batch_size(struct str text, uint64_t unit, uint64_t *ret_bytes);
