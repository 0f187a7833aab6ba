/* query: which files are wanted, in the syntax of the catalog queries of SUMS and of STAR's file catalog.
 *
 *   production=P04ik,filetype=daq_reco_MuDst,storage!=hpss,runnumber=>5000,limit=100
 *
 * Conditions are parted by commas; all must hold. One is a key, an operator and a value, or several values
 * parted by ||. A condition holds only for files that have the key.
 *
 *   = == !=        equal or not. A value with * or ? in it is a pattern; A..B is a range, with both ends
 *   < > <= >=      and => =< for the last two
 *   ~ !~           the text contains the value, or does not
 *   [] ][          within a range A-B, with both ends, or outside it
 *
 * Numbers are compared as numbers; text without regard to case. A value in quotes ('…' or "…") is text as it
 * stands, and may hold commas. Some keys have a meaning of their own:
 *
 *   name (lfn, filename)    the file's name, with regard to case
 *   size                    in bytes
 *   storage (store), host (node), url    of replicas: those for which the condition does not hold are left
 *                           out, and a file of which none is left is not found. With != a replica without a
 *                           store or host holds.
 *   dataset=NAME            what the dataset NAME has; once
 *   limit=N                 the first N files; 0 is no limit
 *   where=EXPRESSION        a ClassAd expression over the metadata, Name and Size; takes all the rest of
 *                           the text
 */
#pragma once
#include "catalog/catalog.h"

enum catalog_key { CATALOG_META, CATALOG_NAME, CATALOG_SIZE, CATALOG_STORE, CATALOG_HOST, CATALOG_URL };
enum catalog_operator {
        CATALOG_EQUAL,
        CATALOG_UNEQUAL,
        CATALOG_LESS,
        CATALOG_GREATER,
        CATALOG_AT_MOST,
        CATALOG_AT_LEAST,
        CATALOG_CONTAINS,
        CATALOG_LACKS,
        CATALOG_WITHIN,
        CATALOG_OUTSIDE,
};

struct catalog_operand {
        struct str text; /* as written, without quotes */
        bool quoted, pattern, number, range;
        double value, upper; /* of a number; of a range both ends */
        int64_t integer;     /* the number without loss, when `whole` */
        bool whole;
};
struct catalog_condition {
        enum catalog_key key;
        struct str name; /* of CATALOG_META */
        enum catalog_operator op;
        struct catalog_operand *operands; /* one at least */
        size_t operand_count;
};
struct catalog_query {
        char *text; /* what the rest looks at */
        struct catalog_condition *conditions;
        size_t condition_count, condition_cap;
        struct str dataset; /* empty: none */
        struct str where;   /* empty: none */
        uint64_t limit;     /* 0: none */
};

#define CATALOG_QUERY_MAX      65536u /* bytes of text */
#define CATALOG_CONDITIONS_MAX 100u
#define CATALOG_OPERANDS_MAX   1000u /* of one condition */

/* 0; CATALOG_INVALID with err, which names the condition and what would be right. */
int catalog_query_parse(struct str text, struct catalog_query **ret, struct err *err);
void catalog_query_free(struct catalog_query *q); /* NULL is fine */
bool catalog_condition_holds(const struct catalog_condition *c, const struct catalog_value *v);
/* A key is a ClassAd name of at most CATALOG_KEY_MAX bytes that has no meaning of its own here. */
bool catalog_key_is_valid(struct str key);
