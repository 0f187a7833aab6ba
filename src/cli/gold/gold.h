/* gold: commands that look like those of the Gold Allocation Manager, and what they share. main.c finds one
 * by the name by which it was called. Source of their options and output: Gold User's Guide 2.2.
 *
 * A project of Gold's and the account that it makes for it are one account of the bank here, and its number
 * is its name. A machine is an agent, or a queue of one,
 * whether it is registered or not. A reservation is a lien, which has the job's name in the other system, as
 * its charge has. */
#pragma once
#include "base/format/json.h"
#include "cli/client/api.h"
#include "cli/terminal/cli.h"
#include "cli/terminal/words.h"

extern const struct words_tool gold_gmkproject, gold_gchproject, gold_glsproject, gold_gmkaccount,
        gold_gchaccount, gold_glsaccount, gold_glsuser, gold_gmkmachine, gold_gchmachine, gold_grmmachine,
        gold_glsmachine, gold_gdeposit, gold_gwithdraw, gold_gtransfer, gold_gbalance, gold_mybalance,
        gold_glsalloc, gold_gchalloc, gold_gquote, gold_glsquote, gold_greserve, gold_glsres, gold_gchres,
        gold_grmres, gold_gcharge, gold_gchargejob, gold_grefund, gold_gstatement, gold_gusage, gold_glstxn,
        gold_grmproject, gold_grmaccount, gold_grmalloc, gold_gchquote, gold_grmquote, gold_glsjob,
        gold_gmkjob, gold_gchjob, gold_grmjob, gold_gmkuser, gold_gchuser, gold_grmuser, gold_gchpasswd,
        gold_goldsh;

/* Rows of options that many commands have. The last ones of a table: GOLD_COMMON, {0}. */
#define GOLD_COMMON                                                                                          \
        {"quiet", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print less: of lists no titles, else nothing."},  \
                {"verbose", 'v', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Print what was done."},                 \
                {"debug", 0, WORDS_PLAIN, WORDS_NAMED, NULL, NULL, "Nothing more is known here."},           \
        {                                                                                                    \
                "man", 0, WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "read drover-gold(7)."                     \
        }
#define GOLD_HOURS                                                                                           \
        {                                                                                                    \
                "hours", 'h', WORDS_PLAIN, WORDS_ACTS, NULL, NULL,                                           \
                        "Amounts are in processor-hours, not -seconds."                                      \
        }
#define GOLD_LIST                                                                                            \
        {"show", 0, WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Show these columns, separated by commas."},     \
                {"raw", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Separate columns by |."},                   \
                {"long", 'l', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Show lists of names whole."},              \
                {"wide", 'w', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Show lists of names in one line."},        \
        {                                                                                                    \
                "showHidden", 0, WORDS_PLAIN, WORDS_NAMED, NULL, NULL, "Nothing is hidden."                  \
        }
#define GOLD_PROJECT                                                                                         \
        {                                                                                                    \
                "project", 'p', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "The project, which is an account."   \
        }
#define GOLD_ACCOUNT                                                                                         \
        {                                                                                                    \
                "account", 'a', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "The account."                        \
        }
#define GOLD_USER                                                                                            \
        {                                                                                                    \
                "user", 'u', WORDS_VALUE, WORDS_ACTS, "USER", NULL, "The user: NAME, or NAME@DOMAIN."        \
        }
#define GOLD_MACHINE                                                                                         \
        {                                                                                                    \
                "machine", 'm', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "The machine: AGENT, or AGENT/QUEUE." \
        }
#define GOLD_DESCRIPTION                                                                                     \
        {                                                                                                    \
                "description", 'd', WORDS_VALUE, WORDS_ACTS, "TEXT", NULL, "What it is for."                 \
        }
#define GOLD_TIMES                                                                                           \
        {"start",                                                                                            \
         's',                                                                                                \
         WORDS_VALUE,                                                                                        \
         WORDS_ACTS,                                                                                         \
         "TIME",                                                                                             \
         NULL,                                                                                               \
         "From this time on: 2026-01-31 [12:34:56], now, -infinity."},                                       \
        {                                                                                                    \
                "end", 'e', WORDS_VALUE, WORDS_ACTS, "TIME", NULL, "Until this time; infinity: for ever."    \
        }

void gold_version_print(void);
/* Prints the words for people, unless --quiet was given. */
void gold_say(const struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The following return 0, or 1 after an error was printed. */

/* Gives the time of an option; *ret is unchanged if it was not given, 0 for -infinity and INT64_MAX for
 * infinity. */
int gold_time(const struct words *w, const char *option, int64_t *ret_ms);
/* Reads an amount in the units of the bank; with --hours (if the command has it) it is given in hours. */
int gold_amount(const struct words *w, const char *text, int64_t *ret);
/* Appends the principal of a user: a name without a domain is one of the server's domain. */
int gold_user(struct cli *cli, const char *name, struct buf *ret);
/* Gives the account that is named by --account, --project or the first word; NULL: by none. */
const char *gold_account(const struct words *w);

/* An order to the bank: gold_order, more members of its document, gold_order_send. It is kept where it is
 * begun, because `j` points into it. */
struct gold_order {
        struct buf body;
        struct json j;
};
void gold_order(struct gold_order *o, const char *op);
void gold_order_text(struct gold_order *o, const char *key, const char *text); /* NULL: nothing */
/* Sends the order and frees it. *ret is the server's answer, for api_answer_deinit in any case. */
int gold_order_send(struct cli *cli, struct gold_order *o, struct api_answer *ret);

/* Begins a table in the form that --show, --raw and --quiet ask for. */
int gold_table(const struct words *w, struct table *t, const struct table_column *columns, unsigned count);
void gold_table_print(struct cli *cli, struct table *t);            /* prints and frees it */
void gold_date(struct table *t, int64_t ms, const char *otherwise); /* adds a cell; `otherwise` for 0 */
/* Adds a cell with an amount: whole, or hours with --hours. */
void gold_units(const struct words *w, struct table *t, int64_t amount);
/* Compares with a pattern: * and ? as in file names; NULL matches all. */
bool gold_matches(const char *pattern, struct view text);
bool gold_matches_text(const char *pattern, const char *text);

/* Calls fn for each movement of an account between two times. */
int gold_movements(struct cli *cli, struct str account, int64_t from_ms, int64_t to_ms,
                   int (*fn)(void *arg, struct view movement), void *arg);
/* Gives the lien that is for this job of another system, of an account or of any (NULL); 0: there is none. Of
 * several, since anybody can give a lien the name of another one's job, it is that of the user (NULL: of
 * nobody), or it is an error. */
int gold_lien(struct cli *cli, const char *job, const char *account, const char *user, int64_t *ret);
