/* drover chirp: calls of a running job's program to the server. */
#include "cli/client/chirp_words.h"
#include "cli/command/commands.h"

int cmd_chirp(struct cli *cli, const struct options *o)
{
        struct chirp_words w = {.words = o->words,
                                .count = o->word_count,
                                .offset = options_number(o, "offset", 0),
                                .mode = options_text(o, "mode"),
                                .permissions = options_text(o, "perm"),
                                .details = options_flag(o, "long")};

        (void)cli;
        return chirp_words_run(&w);
}
