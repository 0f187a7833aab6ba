/* log_options: the format of lines in users' logs: the words of UserLogFormat and of the setting
 * user_log_format. */
#pragma once
#include "base/str.h"

/* The words of HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS, and two more. */
enum userlog_option {
        USERLOG_XML = 1,
        USERLOG_JSON = 2,        /* takes precedence over XML */
        USERLOG_ISO_DATE = 0x10, /* otherwise MM/DD without the year; only for text */
        USERLOG_UTC = 0x20,      /* otherwise local time; UTC is marked by a Z */
        USERLOG_SUB_SECOND = 0x40,
};
#define USERLOG_OPTIONS USERLOG_ISO_DATE /* default */
/* Reads words separated by blanks or commas, in any case. "!" before a word removes it; LEGACY removes
 * ISO_DATE, UTC and SUB_SECOND; the formats (XML, JSON and our own TEXT) replace each other. Returns
 * `options` with the words added. Unknown words are ignored, and *unknown (may be NULL) gets the first of
 * them. */
unsigned userlog_options(struct str words, unsigned options, struct str *unknown);
