#include "server/config/log_options.h"

unsigned userlog_options(struct str words, unsigned options, struct str *unknown)
{
        static const struct {
                const char *word;
                unsigned set, clear;
        } rows[] = {
                {"ISO_DATE", USERLOG_ISO_DATE, 0},
                {"UTC", USERLOG_UTC, 0},
                {"SUB_SECOND", USERLOG_SUB_SECOND, 0},
                {"XML", USERLOG_XML, USERLOG_JSON},
                {"JSON", USERLOG_JSON, USERLOG_XML},
                {"TEXT", 0, USERLOG_XML | USERLOG_JSON},
                {"LEGACY", 0, USERLOG_ISO_DATE | USERLOG_UTC | USERLOG_SUB_SECOND},
                {"!LEGACY", USERLOG_ISO_DATE, 0},
        };

        while (words.n) {
                size_t n = 0, i;
                struct str word;
                bool off;

                while (n < words.n && !strchr(", \t\n", words.p[n]))
                        n++;
                word = str_head(words, n);
                words = str_skip(words, n + (n < words.n));
                off = word.n && word.p[0] == '!' && !str_ieqz(word, "!LEGACY");
                for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                        if (str_ieqz(off ? str_skip(word, 1) : word, rows[i].word))
                                break;
                if (word.n == 0)
                        continue;
                if (i == sizeof(rows) / sizeof(rows[0])) {
                        if (unknown && unknown->n == 0)
                                *unknown = word;
                        continue;
                }
                options &= ~(off ? rows[i].set : rows[i].clear);
                options |= off ? 0 : rows[i].set;
        }
        return options;
}
