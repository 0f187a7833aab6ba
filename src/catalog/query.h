/* query: a query of the catalog, in the syntax of the catalog queries of SUMS and of STAR's file catalog.
 *
 *   production=P04ik,filetype=daq_reco_MuDst,storage!=hpss,runnumber=>5000,limit=100
 *
 * Conditions are separated by commas; all must hold. A condition is a key, an operator and a value, or
 * several values separated by ||. A condition holds only for files that have the key.
 *
 *   = == !=        equal or not. A value with * or ? in it is a pattern; A..B is a range, with both ends
 *   < > <= >=      and => =< for the last two
 *   ~ !~           the text contains the value, or does not
 *   [] ][          within a range A-B, with both ends, or outside it
 *
 * Numbers are compared as numbers; text is compared case-insensitively. A value in quotes ('…' or "…") is
 * literal text, and may have commas. Some keys have a special meaning:
 *
 *   name (lfn, filename)    the file's name, case-sensitive
 *   size                    in bytes
 *   storage (store), host (node), url
 *                           of replicas: those that do not match are left out, and a file without a matching
 *                           replica does not match. With != a replica without a store or host matches.
 *   dataset=NAME            the files of the dataset NAME; once
 *   limit=N                 the first N files; 0 is no limit
 *   where=EXPRESSION        a ClassAd expression over the metadata, Name and Size; takes the rest of the
 *                           text */
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
        int64_t integer;     /* the exact number, when `whole` */
        bool whole;
};
struct catalog_condition {
        enum catalog_key key;
        struct str name; /* for CATALOG_META */
        enum catalog_operator op;
        struct catalog_operand *operands; /* at least one */
        size_t operand_count;
};
struct catalog_query {
        char *text; /* the other members point into it */
        struct catalog_condition *conditions;
        size_t condition_count, condition_cap;
        struct str dataset; /* empty: none */
        struct str where;   /* empty: none */
        uint64_t limit;     /* 0: none */
};

#define CATALOG_QUERY_MAX      65536u /* bytes of text */
#define CATALOG_CONDITIONS_MAX 100u
#define CATALOG_OPERANDS_MAX   1000u /* of one condition */

/* Returns 0; or CATALOG_INVALID with err, which names the condition and says what is valid. */
int catalog_query_parse(struct str text, struct catalog_query **ret, struct err *err);
void catalog_query_free(struct catalog_query *q); /* accepts NULL */
bool catalog_condition_holds(const struct catalog_condition *c, const struct catalog_value *v);
/* Returns whether the text is a ClassAd name of at most CATALOG_KEY_MAX bytes without a special meaning. */
bool catalog_key_is_valid(struct str key);
