/* stage_work: what is done to stage the files of one attempt, and how it is told to another process.
 *
 * Knows paths and descriptors only. An agent that runs its own user's jobs works by itself (stage.c); one
 * that runs the jobs of several users has a child of the job's user do it (stage_child.c), so that no path
 * named by a user is opened with other rights than his. Both call the same functions.
 *
 * A task for a child travels in one unnamed file, the child's standard input: a head; the contents of inputs
 * that only the agent may read (its cache); the task. The child appends the contents of outputs that only it
 * may read, and the task again with what came of it. All numbers in it are checked by who reads it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/hidden.h"

#define STAGE_FILES_MAX 100000
#define STAGE_HOLES_MAX (64ull << 30) /* the least that holes_max may be: a minute's work */

struct staged_input {
        char *name; /* in the sandbox, at its top */
        int64_t mtime_ns;
        uint64_t size;
};

enum stage_kind {
        STAGE_IN,     /* into the sandbox */
        STAGE_OUT,    /* to where the job's owner wants it */
        STAGE_HASH,   /* what is to be sent: checksums, and the contents in a child's file */
        STAGE_LOG,    /* lines to be added to a user's log: the carried text, to the file `to`. No sandbox */
        STAGE_REMOVE, /* nothing but emptying the sandbox */
        STAGE_CREDENTIALS, /* carried texts, to private files in a folder of the sandbox, each in one step */
};
struct stage_file {
        /* OUT, HASH: `to` may be a URL. Then the file is not moved: what it holds is looked at, and with a
         * file of the task goes there. */
        char *from, *to;
        bool contents; /* IN: of a folder, what is in it */
        bool executable;
        bool cached;   /* IN: it is the agent's own, of its cache; a child has it carried */
        bool carried;  /* IN: the contents are in the file of the task, `size` bytes at `at` */
        bool optional; /* OUT, HASH: it may have been delivered before a restart, or was never written */
        bool maybe_there, again, added; /* LOG: see userlog_file.h; the last two are results */
        bool pattern; /* OUT, HASH: stands for all that is called like `from`, unless that is a name itself */
        bool stands_in;  /* HASH: for what the sandbox has as `to` */
        bool missing;    /* result: it was optional, and wasn't there */
        uint32_t number; /* in a child: of the task's files, from 1; 0: it was found there */
        unsigned char sha256[32];
        uint64_t size, at;
        uint32_t mode;
        int64_t mtime_ns; /* IN, result: of what stands at the sandbox's top; INT64_MIN: nothing of the kind
                           */
};
struct stage_remap {
        char *from, *to;
};
struct stage_work {
        enum stage_kind kind;
        int sandbox; /* descriptor, owned; -1: none */
        int data;    /* the file of the task, owned; -1: none */
        const struct hidden
                *hidden; /* where no path of the job's may lead; NULL: a child, whose rights say */
        uint64_t data_end;
        uint32_t fence;
        _Atomic(const char *) where; /* what the worker is at, as the job names it; NULL: not yet at a file */
        struct stage_progress *progress; /* of a child, in the file of its task; else NULL */
        struct fs_pace pace; /* the loop's thread looks at it, and cancels, while a worker does it */
        struct stage_file *files;
        size_t count, cap;
        /* also every new file at the sandbox's top: neither one of these inputs nor older than new_since_ms
         */
        bool find_new, new_optional;
        uint64_t holes_max, holes; /* HASH: bytes of holes in the files: at most, and so far */
        bool over;                 /* no step follows: its credentials go first */
        struct staged_input *inputs;
        size_t input_count, input_cap;
        int64_t new_since_ms;
        char *iwd;
        char *destination; /* a URL, in place of iwd; NULL: none */
        struct stage_remap *remaps;
        size_t remap_count, remap_cap;
        /* what came of it */
        int result; /* 0 or -errno, with err */
        uint64_t bytes;
        struct err err;
};

void stage_work_init(struct stage_work *w, enum stage_kind kind, uint32_t fence);
void stage_work_deinit(struct stage_work *w);
struct stage_file *stage_work_file(struct stage_work *w, char *from, char *to); /* both taken */
/* An output by its name in the sandbox, with the place where it belongs. 0, or -E2BIG with w->err. */
int stage_work_output(struct stage_work *w, struct str name, bool optional);
/* The same of a name with * ? or [ in it, which stands for the files and folders that are called so when the
 * outputs are looked for, but for inputs as they were; none is -ENOENT unless it is optional. */
int stage_work_pattern(struct stage_work *w, struct str name, bool optional);
bool stage_work_is_pattern(struct str name);
/* Where a file belongs for which the job's owner gave this name, absolute (OUT) or relative to iwd (HASH); a
 * URL stays one. The caller's. */
char *stage_work_place(const struct stage_work *w, struct str name);
bool stage_work_is_url(const char *place);
char *stage_work_join(const char *dir,
                      struct str name); /* dir/name; an absolute name as it is; the caller's */
/* Is the name among the first `count` files? */
bool stage_work_lists(const struct stage_work *w, struct str name, size_t count);
/* Adds what find_new and patterns ask for, and is not listed yet. 0, or -errno with w->err. */
int stage_work_find(struct stage_work *w);
/* HASH, and what goes to URLs: folders among the files become the files in them. 0, or -errno with w->err.
 * Done by stage_work_run; stage_folders.c. */
int stage_work_folders(struct stage_work *w);
/* Does the files, in turn, until one fails. What came of it is in *w. */
void stage_work_run(struct stage_work *w);

/* LOG, CREDENTIALS: a file's text, before the task is written. 0, or -errno with w->err. */
int stage_work_text(struct stage_work *w, struct stage_file *f, struct str text);
/* Copies the carried inputs, and writes the task, into w->data. 0, or -errno with w->err. */
int stage_work_write(struct stage_work *w);
/* Reads what the child wrote into w->data: files, result, bytes, err. 0, or -EPROTO: nothing fit to be read.
 */
int stage_work_answer(struct stage_work *w);
/* How far its child says that it is; it may lie. *ret_steps changes while there is progress, and is
 * STAGE_STEPS_DONE when no file is left to do; *ret_where is the file, borrowed from w, or NULL. 0 or -errno.
 */
#define STAGE_STEPS_DONE UINT64_MAX
int stage_work_look(const struct stage_work *w, uint64_t *ret_steps, const char **ret_where);
/* Does its child leave the folder empty? REMOVE; and OUT, where nothing goes on to a URL: what has been sent
 * is not yet in its place, and an agent that is killed meanwhile needs the files once more. */
bool stage_work_empties(const struct stage_work *w);
/* The child: reads the task from its standard input, does it in its current folder, answers, empties the
 * folder if the task says so. Its exit status. */
int stage_work_child(void);
