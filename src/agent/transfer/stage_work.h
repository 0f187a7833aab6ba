/* stage_work: the work of staging the files of one attempt, and its form for another process.
 *
 * Uses paths and descriptors only. An agent that runs its own user's jobs does the work itself (stage.c);
 * one that runs jobs of several users has a child of the job's user do it (stage_child.c), so that a path
 * named by a user is opened with that user's rights only. Both call the same functions.
 *
 * A task for a child is one unnamed file, the child's standard input: a head, the contents of inputs that
 * only the agent may read (its cache), the task. The child appends the contents of outputs that only it may
 * read, and the task again with the results. Every number in the file is checked by its reader.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/system/fs.h"
#include "base/system/hidden.h"

#define STAGE_FILES_MAX 100000
#define STAGE_HOLES_MAX (64ull << 30) /* lower bound of holes_max, about a minute's work */

struct staged_input {
        char *name; /* name at the top of the sandbox */
        int64_t mtime_ns;
        uint64_t size;
};

enum stage_kind {
        STAGE_IN,   /* copies files into the sandbox */
        STAGE_OUT,  /* moves outputs to the places that the job's owner named */
        STAGE_HASH, /* computes checksums of outputs that are to be sent; a child also copies the contents to
                       its file */
        STAGE_LOG,  /* appends the carried text to the user log `to`. No sandbox */
        STAGE_REMOVE, /* only empties the sandbox */
        STAGE_FILE,   /* one operation on a file beneath the folder `from` (file_call.h): the carried text is
                         the call and then the answer. No sandbox */
        STAGE_CREDENTIALS, /* writes carried texts to private files in a folder of the sandbox, each in one
                              step */
};
struct stage_file {
        /* OUT, HASH: `to` may be a URL. The file is not moved then: its checksum is computed, and with a
         * task file its contents are copied there. */
        char *from, *to;
        bool contents; /* IN: copy what is in the folder, not the folder itself */
        bool folder;   /* IN: make an empty folder `to` if it does not exist; `from` is not used */
        bool executable;
        bool cached;   /* IN: the file is in the agent's cache; a child gets it carried */
        bool carried;  /* IN: the contents are in the task file, `size` bytes at `at` */
        bool optional; /* OUT, HASH: the file may be missing: delivered before a restart, or never written */
        bool maybe_there, again, added; /* LOG: see userlog_file.h; the last two are results */
        bool pattern;    /* OUT, HASH: `from` is a pattern for names, unless a file has just that name */
        bool stands_in;  /* HASH: the file stands in for what the sandbox has as `to` */
        bool missing;    /* result: the optional file was not there */
        uint32_t number; /* in a child: number among the task's files, from 1; 0: found by the child */
        unsigned char sha256[32];
        uint64_t size, at;
        uint32_t mode;
        int64_t mtime_ns; /* IN, result: time of the file at the sandbox's top; INT64_MIN: not at the top */
};
struct stage_remap {
        char *from, *to;
};
struct stage_work {
        enum stage_kind kind;
        int sandbox;                 /* descriptor, owned; -1: none */
        int data;                    /* the task file, owned; -1: none */
        const struct hidden *hidden; /* folders that no path of the job may lead into; NULL in a child, which
                                        has the user's rights only */
        uint64_t data_end;
        uint32_t fence;
        _Atomic(const char *) where; /* file that the worker handles now, by the job's name; NULL: none yet */
        struct stage_progress *progress; /* progress of a child, mapped from its task file; else NULL */
        struct fs_pace pace;             /* read, and cancelled, by the loop's thread while a worker works */
        struct stage_file *files;
        size_t count, cap;
        /* find_new: also handle every new file at the sandbox's top, that is, neither one of these inputs
         * nor older than new_since_ms */
        bool find_new, new_optional;
        uint64_t holes_max, holes; /* HASH: bytes of holes in the files: limit and sum so far */
        bool over;                 /* no step follows: the credentials are removed first */
        struct staged_input *inputs;
        size_t input_count, input_cap;
        int64_t new_since_ms;
        char *iwd;
        char *destination; /* URL for outputs, in place of iwd; NULL: none */
        struct stage_remap *remaps;
        size_t remap_count, remap_cap;
        /* results */
        int result; /* 0, or -errno with err */
        uint64_t bytes;
        struct err err;
};

void stage_work_init(struct stage_work *w, enum stage_kind kind, uint32_t fence);
void stage_work_deinit(struct stage_work *w);
struct stage_file *stage_work_file(struct stage_work *w, char *from, char *to); /* takes both strings */
/* Adds an output by its name in the sandbox, with its destination. Returns 0, or -E2BIG with w->err. */
int stage_work_output(struct stage_work *w, struct str name, bool optional);
/* Adds outputs by a pattern with * ? or [, which is matched when outputs are searched, and does not match
 * unchanged inputs. No match is -ENOENT unless `optional`. Returns 0, or -E2BIG with w->err. */
int stage_work_pattern(struct stage_work *w, struct str name, bool optional);
bool stage_work_is_pattern(struct str name);
/* Returns the destination for the name that the job's owner gave: absolute (OUT) or relative to iwd (HASH);
 * a URL is returned unchanged. The caller frees it. */
char *stage_work_place(const struct stage_work *w, struct str name);
bool stage_work_is_url(const char *place);
char *stage_work_join(
        const char *dir,
        struct str name); /* returns dir/name, or an absolute name unchanged; the caller frees it */
/* Returns whether the name is among the first `count` files. */
bool stage_work_lists(const struct stage_work *w, struct str name, size_t count);
/* Adds the files that find_new and patterns select and that are not listed yet. Returns 0, or -errno with
 * w->err. */
int stage_work_find(struct stage_work *w);
/* HASH, and outputs for URLs: replaces folders among the files by the files in them. Called by
 * stage_work_run. Returns 0, or -errno with w->err. In stage_folders.c. */
int stage_work_folders(struct stage_work *w);
/* Handles the files in turn until one fails. Results are in *w. */
void stage_work_run(struct stage_work *w);

/* LOG, CREDENTIALS: adds a file's text, before the task is written. Returns 0, or -errno with w->err. */
int stage_work_text(struct stage_work *w, struct stage_file *f, struct str text);
/* FILE: appends the packed answer, after the work is done. Returns 0, or -EPROTO. */
int stage_work_said(const struct stage_work *w, struct buf *out);
/* Returns whether the work needs no sandbox. */
bool stage_work_is_apart(const struct stage_work *w);
/* Copies the carried inputs and writes the task into w->data. Returns 0, or -errno with w->err. */
int stage_work_write(struct stage_work *w);
/* Reads the child's results from w->data: files, result, bytes, err. Returns 0, or -EPROTO if they are
 * malformed. */
int stage_work_answer(struct stage_work *w);
/* Reads the progress that the child reports, which is not trusted. *ret_steps changes while there is
 * progress, and is STAGE_STEPS_DONE when no file is left; *ret_where is the current file, borrowed from w,
 * or NULL. Returns 0 or -errno. */
#define STAGE_STEPS_DONE UINT64_MAX
int stage_work_look(const struct stage_work *w, uint64_t *ret_steps, const char **ret_where);
/* Returns whether the child empties the folder: REMOVE, and OUT without outputs for URLs. Files that are
 * still being sent may be needed again if the agent is killed. */
bool stage_work_empties(const struct stage_work *w);
/* The child's main function: reads the task from standard input, does it in the current folder, writes the
 * results, and empties the folder if the task says so. Returns the exit status. */
int stage_work_child(void);
