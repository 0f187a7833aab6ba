/* args: argument and environment strings in HTCondor's formats.
 *
 * V1 ("old"): words separated by white space, no quoting. V2 ("new"), raw form as in the job attribute: words
 * separated by white space; inside '…' white space is kept and '' is one single quote. In a submit file a V2
 * string is enclosed in double quotes, in which "" is one double quote; the reader of the file removes this
 * layer (args_unquote_v2). Environment V2: the same words, each NAME=value. V1 environment: NAME=value
 * separated by ';'. Source: HTCondor manual, condor_submit, "arguments" and "environment".
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define ARGS_MAX 65536 /* words */

struct args {
        char **v; /* n strings and a NULL behind them, as execve wants */
        size_t n, cap;
};
void args_deinit(struct args *a);
#define ARGS_CLEANUP __attribute__((cleanup(args_deinit)))
void args_add(struct args *a, struct str word);
/* Adds a word of a setting; made for doc_words, args is a struct args. 0; -EINVAL with err: there are
 * ARGS_WORDS_MAX already. */
#define ARGS_WORDS_MAX 100u
int args_add_word(void *args, struct str word, struct err *err);

/* Parse a text and add its words to *a; of an environment's variable that is set again only the last
 * assignment stays. 0; -EINVAL with err: an unbalanced quote, or an environment word
 * without '='; -E2BIG: more than ARGS_MAX words. */
int args_split_v1(struct args *a, struct str text, struct err *err);
int args_split_v2(struct args *a, struct str raw, struct err *err);
int args_env_v1(struct args *a, struct str text, struct err *err);
int args_env_v2(struct args *a, struct str raw, struct err *err);
void args_join_v2(struct buf *out, const struct args *a); /* raw form; splits back to the same words */
/* Removes the double quotes of a submit file's V2 string: "a ""b""" -> a "b". -EINVAL: the text is no such
 * string. */
int args_unquote_v2(struct str text, struct buf *out, struct err *err);
