/* log_options: how lines of users' logs look: the words of UserLogFormat, and of the setting user_log_format.
 */
#pragma once
#include "base/str.h"

/* The words of HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS, and two that it has no word for. */
enum userlog_option {
        USERLOG_XML = 1,
        USERLOG_JSON = 2,        /* wins over XML */
        USERLOG_ISO_DATE = 0x10, /* else MM/DD, without the year; only text knows both */
        USERLOG_UTC = 0x20,      /* else local time; marked by a Z */
        USERLOG_SUB_SECOND = 0x40,
};
#define USERLOG_OPTIONS USERLOG_ISO_DATE /* when nobody says anything */
/* Words parted by blanks or commas, in any case, "!" before one takes it back, LEGACY takes back ISO_DATE,
 * UTC and SUB_SECOND; the form's words (XML, JSON, and TEXT of our own) each replace the one before. Adds
 * them to `options`; other words are left out, and the first of them is put into *unknown (NULL is fine). */
unsigned userlog_options(struct str words, unsigned options, struct str *unknown);
