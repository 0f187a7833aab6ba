/* condor_like: the version of HTCondor whose language, commands and slot ads these resemble: what conditions
 * on `version` are asked of, what condor_version says, and CondorVersion of a queue's ad. */
#pragma once

#define CONDOR_LIKE_MAJOR    25
#define CONDOR_LIKE_MINOR    0
#define CONDOR_LIKE_PATCH    0

#define CONDOR_LIKE_TEXT_(x) #x
#define CONDOR_LIKE_TEXT(x)  CONDOR_LIKE_TEXT_(x)
#define CONDOR_LIKE                                                                                          \
        CONDOR_LIKE_TEXT(CONDOR_LIKE_MAJOR)                                                                  \
        "." CONDOR_LIKE_TEXT(CONDOR_LIKE_MINOR) "." CONDOR_LIKE_TEXT(CONDOR_LIKE_PATCH)
#define CONDOR_LIKE_VERSION "$CondorVersion: " CONDOR_LIKE " 2025-06-05 BuildID: Drover-" DROVER_VERSION " $"
