#include "cli/condor/condor.h"

const struct condor_tool *const condor_tools[] = {
        &condor_submit,   &condor_q,       &condor_rm,       &condor_hold,
        &condor_release,  &condor_suspend, &condor_continue, &condor_vacate_job,
        &condor_qedit,    &condor_prio,    &condor_wait,     &condor_transfer_data,
        &condor_tail,     &condor_run,     &condor_history,  &condor_status,
        &condor_userprio, &condor_drain,   &condor_version,  NULL,
};
