/* condor_like: the version of HTCondor that our language, commands and slot ads resemble. Conditions on
 * `version`, condor_version and CondorVersion in a queue's ad use it. */
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
