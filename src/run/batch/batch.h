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
#include "base/args.h"
#include "base/map.h"
#include "run/call/command.h"
#include "run/call/request.h"
#include "run/runner.h"

#define BATCH_STEP  ".drover_step"
#define BATCH_NAMES "drover-" /* what the names of all submissions begin with, but short ones */

enum batch_phase {
        BATCH_WAITING,
        BATCH_RUNNING,
        BATCH_OVER,      /* the script came to its end */
        BATCH_CANCELLED, /* by us or by somebody */
        BATCH_TIMEOUT,   /* by the system's clock */
        BATCH_MEMORY,    /* it used more than it asked for */
        BATCH_LOST,      /* its node failed, or it had to make room */
        BATCH_UNFIT,     /* the system found out late that it cannot run it */
};
struct batch_line {                            /* of a status query; borrowed */
        struct str native, name, reason, user; /* user: whose it is there; empty: it does not say */
        enum batch_phase phase;
        bool stopped; /* it runs, but somebody has suspended it there */
        bool stays;   /* over, but the system keeps it until it is ended there */
        bool bare;    /* over, and nothing is said of its end: what never began may have been cancelled */
        bool others;  /* native is an array's: its members that the answer does not name are meant */
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
        const char *method; /* of requests; NULL: it is a command */
        struct args paths;  /* what is requested, one after the other */
        bool once;          /* a request that must not be made again by itself */
        const char
                *version; /* requests: the API's, that they are made for; NULL: they are as well with any */
};
void batch_call_deinit(struct batch_call *c);
void batch_path_add(struct batch_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void batch_word_add(struct batch_call *c, const char *word);
void batch_words_add(struct batch_call *c, struct str words); /* parted by blanks */

struct batch_sending {             /* what a submit command is about */
        const char *name, *script; /* the script's path */
        const char *head;          /* its lines that ask for resources */
        unsigned count;            /* more than 1: an array */
        const char *log;           /* LOG.INDEX.log is for what the system catches of it; NULL: no matter */
        struct str text;           /* the script; of a system with a service only */
        const struct args *env;    /* the same: what a command would have */
};

/* Answers are read whole; they may be written to. What is not understood is passed over. */
typedef void batch_take_fn(void *arg, const struct batch_line *line);

struct batch_variable {             /* from the setting, else from our own environment */
        const char *name, *setting; /* setting NULL: only from there */
};

struct batch_system {
        const char *name;
        const char *const
                *settings; /* names that a queue may set beside settings.c's; NULL behind the last */
        const struct batch_variable
                *variables;         /* of its commands' environment; a NULL name behind the last */
        const char *index_variable; /* which member of an array a task is */
        const char *traps; /* lines of the script: what the system announces by signals; NULL: nothing */
        unsigned index_first, array_max;
        unsigned past_max;    /* tasks that `past` can be asked about at once; 0: many */
        unsigned wordless_s;  /* how late the system's word of an end may be; 0: 10 */
        unsigned verbs;       /* bits 1 << verb of those that it has */
        const char *set_free; /* settings whose names begin so are the site's own; NULL: none */
        bool gpus_left;       /* of GPUs `capacity` tells how many are left, not how many there are */
        bool owners;          /* without a map of users, too, its lines name users as this machine does */
        bool short_names;     /* of submissions: 15 letters and digits, for 30 letters, digits and hyphens */
        /* It is asked by requests to the settings' `rest`, with `token_file`; lines of its rows are what the
         * calls below read. Its `arg` is the name of the user whose the jobs shall be, NULL with a map of
         * users. NULL: by commands. */
        const struct request_service *service;
        int none_there; /* a status of `status` that means: no job is there; 0: no such thing */
        unsigned (*verbs_of)(const struct batch_settings *s); /* in place of verbs; NULL: those */
        /* Whether the queue's settings make sense. 0, or -EINVAL with err. NULL: always. */
        int (*check)(const struct batch_settings *s, struct err *err);
        /* Lines at the head of a script: what the task asks for. -EINVAL with err: a word that cannot be. */
        int (*resources)(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                         struct err *err);
        void (*naming)(const char *name, const char *log, unsigned count,
                       struct buf *out); /* count 1: no array */
        void (*submit)(struct batch_call *c, const struct batch_sending *s);
        bool (*submitted)(struct str out, struct buf *ret_native);
        /* The system has refused it for good. Otherwise nobody knows whether it has it. */
        bool (*refused)(int exit_code, struct str errors);
        /* It has not taken it, for there are too many in it; later it may. Asked before `refused`. NULL:
         * never. */
        bool (*full)(struct str errors);
        /* In lines of a head that say whose limits it is under, beside the user's. NULL: none. */
        const char *const *limited_by;
        bool (*refused_array)(struct str errors); /* the array, not the task. NULL: never */
        void (*native_of)(const char *native, unsigned index,
                          struct buf *out); /* of an array's member; NULL: it has none */
        void (*status)(struct batch_call *c, const char *user);
        bool (*is_answer)(struct str out); /* to `status`; else it has failed. NULL: always */
        void (*status_read)(struct str out, batch_take_fn *take, void *arg);
        void (*past)(struct batch_call *c, const char *user,
                     const char *natives); /* user as of `status`; "1,2_3". NULL: none */
        void (*past_read)(struct str out, batch_take_fn *take, void *arg);
        /* `past` has failed: for now, so that what it says later is worth waiting for. NULL: never. */
        bool (*past_away)(struct str errors);
        const char
                *memory_words; /* in what it caught of a script that it killed for its memory; NULL: none */
        /* Asks why it found a task unfit, whose status line had no reason. NULL: it always says. */
        void (*explain)(struct batch_call *c, struct str native);
        struct str (*explained)(struct str out); /* borrowed from out */
        /* parted by blanks. Requests may have no path in the end: the service has no such verb for these */
        void (*act)(struct batch_call *c, enum batch_verb verb, struct str natives);
        void (*capacity)(struct batch_call *c); /* NULL: it cannot say */
        void (*capacity_read)(const struct batch_settings *s, struct str out, struct run_capacity *c);
        /* When would the script begin? NULL: it cannot say. True: *ret_ms is Unix time. */
        void (*when)(struct batch_call *c, const struct batch_sending *s);
        bool (*when_said)(struct str out, struct str errors, uint64_t *ret_ms);
        bool when_is_now; /* `when` asks whether it would begin now: a refusal of that is none for good */
};

extern const struct batch_system batch_slurm, batch_slurm_rest, batch_gridengine, batch_exec, batch_pbs,
        batch_htcondor;

/* ---- script.c */

/* The script of one step: `head` are its resources. It does not begin when the lease file is older than the
 * lease. */
struct batch_guard {       /* beside the program */
        const char *lease; /* file */
        const char *traps; /* batch_system's */
        unsigned every_s;  /* how often it looks */
};
void batch_script(const struct run_spec *spec, const char *head, const struct batch_guard *guard,
                  struct buf *out);
/* What is submitted: finds the script of the member in the list, and becomes it. The list is files LIST.K,
 * each of BATCH_LIST_PART members. */
#define BATCH_LIST_PART 64
void batch_script_array(const char *index_variable, unsigned index_first, const char *head, const char *list,
                        struct buf *out);
/* A member's line, the next from 0 on; behind a part's last one stands "esac". */
void batch_script_member(unsigned index, const char *script, struct buf *out);
void batch_quote(struct buf *out, const char *text); /* a word of the shell */
/* The lease file: what is left of the lease, less what a script needs to see that it is over, and to end.
 * Serial: differs in each; the time makes it differ from those of an earlier life. every_s: how often scripts
 * look at most. Returns after how many seconds scripts hold it to be over. */
int64_t batch_script_lease(int64_t wall_ms, uint64_t serial, int64_t left_ms, unsigned every_s,
                           struct buf *out);
/* Reads BOX/.drover_step.N.done into e, but for the times, which are those of the files; its text is static.
 * False: it is not what a script writes, or not all of it. */
bool batch_script_done(struct str text, struct run_event *e);

/* ---- answers.c: what answers are made of */

/* Whether it may stand in a line of a script: at most 256 letters, digits and ordinary signs, no blank, no
 * quote, no end of the line; not an option. */
bool batch_plain(const char *text);
bool batch_contains(struct str text, const char *const *words); /* one of them; NULL behind the last */
/* What may be a number of a job there: it goes into the journal, and onto command lines, parted by blanks and
 * commas. At most 128 letters without blanks, commas and quotes; not an option. */
bool batch_is_native(struct str s);
/* The number of the array that a member's number is of; of others it is their own. */
struct str batch_whole(const struct batch_system *s, struct str native);
/* A machine that a system has, added to *c; its idle GPUs only with an idle processor. A task may have up to
 * task_cpus of its processors. More than 100,000 processors or GPUs, or 1 PiB, count as so many; a millionth
 * machine is the last. */
struct batch_node {
        uint64_t cpus, idle_cpus, memory_bytes, idle_memory_bytes, gpus, idle_gpus;
};
void batch_node_add(struct run_capacity *c, const struct batch_node *n, uint64_t task_cpus);
/* The last line that is not empty. */
struct str batch_last_line(struct str out);
/* The next element of XML that programs print: its tag's name, and the text behind it up to the next tag,
 * with entities undone in place. Attributes are as they stand; a closing tag is "/NAME". False: none is left.
 */
bool batch_next_tag(struct str *rest, struct str *ret_tag, struct str *ret_attributes, struct str *ret_text);
/* "23.5G", "100mb", "2048kb": bytes; a number alone counts `unit`. False: it is none. */
bool batch_size(struct str text, uint64_t unit, uint64_t *ret_bytes);
