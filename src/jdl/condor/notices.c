/* How users are told of their jobs: the form of their log. */
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

int notices_make(struct reader *r)
{
        int rc = log_xml(r);

        return rc ? rc : log_format(r);
}
