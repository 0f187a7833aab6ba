/* batch: what the runners of batch systems have in common.
 *
 * A batch system is one struct batch_system: command lines to make, outputs to read, and nothing that happens
 * by itself. The base does the rest: a table of tasks, a journal, one status query for all of them, files.
 *
 * A task's life here:
 *
 *   submit -> FRESH -flush-> NAMED -> SENT -> native number known -> IN (waiting, running) -> OVER ->
 * forgotten
 *
 * FRESH: its script is in its folder. NAMED: with tasks alike it has a submission, whose name and members are
 * in the journal, on disk. SENT: the system's submit command runs. A submission of several tasks is an array.
 * If the command's answer is not known (we were killed, the system did not answer) the name is looked for
 * with the next status query: found, it is adopted; not found, it is submitted again. Should both come to
 * run, the folder that the first one makes (BOX/.drover_step.N.began) makes the other end at once.
 *
 * A signal for the program is an order, a file BOX/.drover_step.N.order.SERIAL with the signal's name: the
 * script takes it, when it is nudged or within the guard's few seconds, by renaming it, so that it is obeyed
 * once, whether the batch system can send signals or not. Without verbs of the system's own suspending is an
 * order too.
 *
 * The script (batch_script.c) writes how its program ended to BOX/.drover_step.N.done, which is what counts;
 * the system is asked about tasks that are gone without it. It ends its program when the lease file, which
 * the agent renews, grows old, and at the walltime; one whose turn comes when the file is old does not begin.
 * So nothing of an attempt is left when its lease has ended, whether anybody lives who could cancel it or
 * not.
 *
 * Files: DIR/batch.QUEUE/ has the journal, the lease, and NAME.sh, NAME.list and NAME.*.log of submissions.
 */
#pragma once
#include "base/args.h"
#include "base/map.h"
#include "run/command.h"
#include "run/runner.h"

#define BATCH_STEP ".drover_step"

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
struct batch_line { /* of a status query; borrowed */
        struct str native, name, reason;
        enum batch_phase phase;
};
/* NUDGE: SIGURG to the script, which then looks for orders. */
enum batch_verb {
        BATCH_END,
        BATCH_STOP,
        BATCH_CONTINUE,
        BATCH_HOLD,
        BATCH_RELEASE,
        BATCH_NUDGE,
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

struct batch_system {
        const char *name;
        const char *const *settings; /* names that a queue may set; NULL behind the last */
        const char *config_variable; /* environment, from the setting `conf`; NULL: none */
        const char *index_variable;  /* which member of an array a task is */
        unsigned index_first, array_max;
        /* Lines at the head of a script: what the task asks for. -EINVAL with err: a word that cannot be. */
        int (*resources)(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                         struct err *err);
        void (*naming)(const char *name, const char *log, unsigned count,
                       struct buf *out); /* count 1: no array */
        void (*submit)(const char *script, struct args *argv);
        bool (*submitted)(struct str out, struct buf *ret_native);
        /* The system has refused it for good. Otherwise nobody knows whether it has it. */
        bool (*refused)(struct str errors);
        bool (*refused_array)(struct str errors);                               /* the array, not the task */
        void (*native_of)(const char *native, unsigned index, struct buf *out); /* of an array's member */
        void (*status)(const char *user, struct args *argv);
        /* False: pass over it. The line may be written to. */
        bool (*status_line)(struct str line, struct batch_line *ret);
        void (*past)(const char *natives, struct args *argv); /* "1,2_3"; answers status_lines. NULL: none */
        void (*act)(enum batch_verb verb, struct args *argv); /* the natives are put behind it */
        unsigned verbs;                                       /* bits 1 << verb of those that it has */
        /* A command that says when the script would begin. NULL: it cannot say. True: *ret_ms is Unix time.
         */
        void (*when)(const char *script, struct args *argv);
        bool (*when_said)(struct str out, struct str errors, uint64_t *ret_ms);
        void (*capacity)(const struct batch_settings *s, struct args *argv);
        /* Adds what a line says of a node. */
        void (*capacity_line)(const struct batch_settings *s, struct str line, struct run_capacity *c);
};

extern const struct batch_system batch_slurm;

/* ---- batch_script.c */

/* The script of one step: `head` are its resources. It does not begin when the lease file is older than the
 * lease. */
void batch_script(const struct run_spec *spec, const char *head, const char *lease, struct buf *out);
/* What is submitted: finds the script of the member in the list, and becomes it. */
void batch_script_array(const struct batch_system *s, const char *head, const char *list, struct buf *out);
void batch_quote(struct buf *out, const char *text); /* a word of the shell */
/* The lease file: what is left of the lease, less what a script needs to see that it is over, and to end.
 * Serial: differs in each; the time makes it differ from those of an earlier life. */
void batch_script_lease(int64_t wall_ms, uint64_t serial, int64_t left_ms, struct buf *out);
/* Reads BOX/.drover_step.N.done into e; its text is static. False: it is not what a script writes. */
bool batch_script_done(struct str text, struct run_event *e);
