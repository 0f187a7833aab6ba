/* condor_chirp: files of the submit's folder, attributes of the job and lines in its log, for the program of
 * a running job. */
#include "cli/client/chirp_words.h"
#include "cli/condor/condor.h"

static int chirp(struct cli *cli, const struct flags *f)
{
        struct chirp_words w = {.words = f->words,
                                .count = f->word_count,
                                .mode = flags_text(f, "mode"),
                                .permissions = flags_text(f, "perm"),
                                .details = flags_has(f, "l")};
        const struct flag_given *stride;
        struct err err = {""};
        size_t at = 0;

        (void)cli;
        if (flags_number(f, "offset", 0, &w.offset, &err) < 0)
                return cli_error(1, "%s", err.text);
        while ((stride = flags_next(f, "stride", &at))) {
                w.stride_length = stride->words[0];
                w.stride_skip = stride->words[1];
        }
        return chirp_words_run(&w);
}

static const struct flag_row rows[] = {
        {"offset", 0, FLAG_VALUE, FLAG_ACTS, "BYTES", "Of read and write: where to begin in the far file."},
        {"stride", 0, FLAG_TWO, FLAG_ACTS, "LENGTH SKIP",
         "Of read and write: pieces of LENGTH bytes, each SKIP bytes behind the beginning of the one "
         "before."},
        {"mode", 0, FLAG_VALUE, FLAG_ACTS, "LETTERS",
         "Of put: w, and a append, c create, t empty first, x must not be there. Without it the file is "
         "written beside, and renamed."},
        {"perm", 0, FLAG_VALUE, FLAG_ACTS, "OCTAL", "Of put: the permissions of a file that is made."},
        {"l", 0, FLAG_PLAIN, FLAG_ACTS, NULL, "Of getdir: with size, mode and time of each."},
        {"r", 0, FLAG_PLAIN, FLAG_REFUSED, NULL, "A folder with what is in it is not removed at a distance."},
        {0},
};
const struct condor_tool condor_chirp = {
        .name = "condor_chirp",
        .usage = "OPERATION [WORD...]",
        .line = "For the program of a running job: files of the submit's folder, attributes of the job, "
                "lines in its log.",
        .rows = rows,
        .words_min = 1,
        .words_max = 4,
        .run = chirp,
};
