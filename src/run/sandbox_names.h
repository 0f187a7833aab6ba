/* sandbox_names: names of Drover's own files in a job's folder, shared by the code that makes the folder,
 * the code that writes scripts, and the shepherd, which links only the C library. */
#pragma once

#define SANDBOX_CREDENTIALS ".drover_credentials" /* a folder of private files, one for each credential */
#define SANDBOX_CHIRP       ".drover_chirp"       /* a socket: agent/attempt/chirp.h */
#define SANDBOX_TMP         ".drover_tmp"         /* a folder, /tmp of the job */
#define SANDBOX_HOSTS       ".drover_hosts"       /* agent/step/launch.h */
