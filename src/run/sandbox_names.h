/* sandbox_names: what a job's folder has of ours, by name: for who makes it, who writes scripts that use it,
 * and the shepherd, which has nothing but the C library. */
#pragma once

#define SANDBOX_CREDENTIALS ".drover_credentials" /* a folder of private files, one for each credential */
#define SANDBOX_TMP         ".drover_tmp"         /* a folder, /tmp of the job */
