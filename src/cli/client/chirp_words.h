/* chirp_words: the operations of `drover chirp` and condor_chirp, which has the same names for them. */
#pragma once
#include "cli/terminal/cli.h"

struct chirp_words {
        const char *const *words; /* the operation and its operands */
        size_t count;
        int64_t offset;                          /* offset of read and write */
        const char *stride_length, *stride_skip; /* numbers; NULL: no stride */
        /* put: mode letters of condor_chirp; NULL: the whole file is replaced in one step */
        const char *mode;
        const char *permissions; /* put: octal; NULL: the default */
        bool details;            /* getdir: with details */
};
int chirp_words_run(const struct chirp_words *w); /* returns the exit code */
