/* drover-slurm: Slurm's commands over Drover's API. One program under the names of them all (links in
 * libexec/drover/slurm). */
#include "cli/client/lookalike.h"
#include "cli/slurm/slurm.h"

int main(int argc, char **argv)
{
        static const struct words_tool *const tools[] = {&slurm_sbatch, &slurm_squeue, &slurm_scancel,
                                                         &slurm_sacct,  &slurm_sinfo,  &slurm_scontrol,
                                                         &slurm_srun,   &slurm_salloc, NULL};
        static const struct lookalike slurm = {.program = "drover-slurm",
                                               .system = "Slurm's",
                                               .page = "drover-slurm(7)",
                                               .tools = tools,
                                               .version = slurm_version_print};

        return lookalike_main(argc, argv, &slurm);
}
