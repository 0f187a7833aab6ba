/* condor: the HTCondor-compatible commands, one file each: tool_NAME.c. main.c finds one by the name by
 * which it was called. */
#pragma once
#include "cli/condor/flags.h"
#include "cli/terminal/cli.h"

extern const struct condor_tool *const condor_tools[]; /* up to NULL */

extern const struct condor_tool condor_chirp, condor_continue, condor_drain, condor_history, condor_hold,
        condor_q, condor_release, condor_rm, condor_status, condor_submit, condor_submit_dag, condor_suspend,
        condor_vacate_job, condor_version, condor_prio, condor_qedit, condor_run, condor_tail,
        condor_ssh_to_job, condor_transfer_data, condor_userprio, condor_wait, star_kill_job, star_submit,
        star_submit_template;

void condor_version_print(void); /* prints the text of -version */
