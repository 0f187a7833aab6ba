#include "cli/slurm/run.h"

#include <errno.h>

#include "cli/slurm/batch.h"
#include "cli/slurm/children.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/slurm.h"

void run_warn(const struct words *w)
{
        BUF_CLEANUP struct buf out = {0};
        struct str rest, line;

        words_warnings(w, &out);
        rest = buf_view(&out);
        while (!words_has(w, "quiet") && str_cut(&rest, '\n', &line))
                if (line.n)
                        cli_note("warning: " STR_FMT, STR_ARG(line));
}

int run_become(struct cli *cli, const struct words *w, const char *name, bool terminal,
               const struct args *command)
{
        struct batch b = {.cli = cli,
                          .words = w,
                          .command = w->word_count ? w->words[0] : name,
                          .name = name,
                          .environment = true};
        BUF_CLEANUP struct buf lines = {0};
        ARGS_CLEANUP struct args words = {0};
        struct str rest, line;
        struct err err = {""};
        int rc = partitions_check(cli, words_text(w, "partition"), &err);

        if (rc == 0 && words_has(w, "array"))
                rc = err_set(&err, -EINVAL, "--array is sbatch's");
        if (rc == 0)
                rc = batch_write(&b, &lines, &err);
        if (rc != 0)
                return slurm_error(1, "%s", err.text);
        args_add(&words, STR("run"));
        if (terminal)
                args_add(&words, STR("--terminal"));
        rest = buf_view(&lines);
        while (str_cut(&rest, '\n', &line))
                if (line.n) {
                        args_add(&words, STR("--append"));
                        args_add(&words, line);
                }
        args_add(&words, STR("--"));
        for (size_t i = 0; i < command->n; i++)
                args_add(&words, str_of(command->v[i]));
        return children_become((const char *const *)words.v);
}
