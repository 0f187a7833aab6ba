/* Notifications of users about their jobs: the format of the log, mail, web hooks. */
#include "jdl/condor/reader.h"

static int log_xml(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        bool xml = false;
        int rc = entry_get(r, "log_xml", &e);

        if (rc > 0)
                rc = entry_boolean(r, &e, &xml);
        if (rc == 0 && xml)
                attribute_default(r, "UserLogUseXML", "true");
        return rc < 0 ? rc : 0;
}

/* The server reads the words again, and leaves out what it does not know. */
static bool is_log_word(struct str word)
{
        static const char *const words[] = {"XML", "JSON",       "TEXT",   "ISO_DATE",
                                            "UTC", "SUB_SECOND", "LEGACY", NULL};

        if (word.n && word.p[0] == '!')
                word = str_skip(word, 1);
        for (const char *const *w = words; *w; w++)
                if (str_ieqz(word, *w))
                        return true;
        return false;
}

static int log_format(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        struct str rest, part, word;
        int rc = entry_get(r, "log_format", &e);

        if (rc <= 0)
                return rc;
        if (e.late)
                return entry_fail(r, &e, "it must be the same for all jobs of a queue statement");
        rest = entry_unquoted(&e);
        while (str_cut(&rest, ',', &part))
                while (str_word(&part, &word))
                        if (!is_log_word(word))
                                return entry_fail(
                                        r, &e,
                                        "'" STR_FMT
                                        "' is no form of a log; there are XML, JSON, TEXT, ISO_DATE, "
                                        "UTC, SUB_SECOND and LEGACY",
                                        STR_ARG(str_head(word, 40)));
        return attribute_string(r, "UserLogFormat", &e, entry_unquoted(&e));
}

/* JobNotification has HTCondor's numbers. */
static int notification(struct reader *r, bool webhook)
{
        static const char *const words[] = {"never", "always", "complete", "error", "start"};
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, "notification", &e);
        char number[2] = "0";

        if (rc == 0 && webhook)
                attribute_default(r, "JobNotification", "2");
        if (rc <= 0)
                return rc;
        for (size_t i = 0; !e.late && i < sizeof(words) / sizeof(words[0]); i++) {
                number[0] = (char)('0' + i);
                if (str_ieqz(entry_unquoted(&e), words[i]) || str_eqz(entry_unquoted(&e), number))
                        return attribute_expression(r, "JobNotification", &e, str_of(number));
        }
        return entry_fail(r, &e, "'" STR_FMT "' is none of Always, Complete, Error, Start and Never",
                          STR_ARG(str_head(buf_view(&e.text), 60)));
}

/* What is an address is for the server to say, who will use it. */
static int address(struct reader *r, const char *keyword, const char *attribute)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, keyword, &e);

        if (rc > 0 && e.late)
                return entry_fail(r, &e, "it must be the same for all jobs of a queue statement");
        if (rc > 0)
                rc = attribute_string(r, attribute, &e, entry_unquoted(&e));
        return rc;
}

int notices_make(struct reader *r)
{
        int rc = log_xml(r);

        if (!rc)
                rc = log_format(r);
        if (!rc)
                rc = address(r, "notify_user", "NotifyUser");
        if (!rc)
                rc = address(r, "webhook", "DroverWebhook");
        return rc ? rc : notification(r, form_get(r->part, STR("DroverWebhook")));
}
