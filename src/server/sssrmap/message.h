/* message: messages of SSSRMAP, the protocol of the Scalable Systems Software project for resource management
 * and accounting, in its version 3: an Envelope with a Body and its Signature.
 *
 * A body is signed by the text that was sent, from <Body to </Body>: its digest (SHA-1, or SHA-256) and a
 * keyed one of that digest (HMAC of the same function). So that what was signed is what is read, a message
 * may have no comments, processing instructions, CDATA sections or document types, and its encoding is
 * UTF-8. Messages follow sssrmap.xsd. Any thread; a struct belongs to one at a time. Fuzzed. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/format/xml.h"

#define SSSRMAP_MESSAGE_MAX 262144u /* bytes of a message */

/* Status codes of responses, of those that the Gold Allocation Manager gives. */
enum sssrmap_code {
        SSSRMAP_SUCCESS = 0,
        SSSRMAP_MALFORMED = 302,   /* the message is no XML, or does not follow the schema */
        SSSRMAP_OBJECT = 311,      /* no object, or several */
        SSSRMAP_ACTION = 313,      /* no such action */
        SSSRMAP_MISSING = 314,     /* an object or parameter that the action needs is not there */
        SSSRMAP_UNSUPPORTED = 315, /* the object does not have this action */
        SSSRMAP_VALUE = 317,       /* a parameter has a wrong value, or is there twice */
        SSSRMAP_SIGNATURE = 424,   /* no signature, or a wrong one */
        SSSRMAP_FORBIDDEN = 444,   /* the signer may not do this, or not for this actor */
        SSSRMAP_FAILED = 720,      /* the server failed */
        SSSRMAP_CONFLICT = 740,    /* not in the state that things are in */
        SSSRMAP_UNKNOWN = 742,     /* the request names something that does not exist */
        SSSRMAP_FUNDS = 782,       /* the account cannot pay that */
};

struct sssrmap_signature {
        bool given;    /* a signature, or a token */
        bool keyed;    /* digest and value are there */
        unsigned size; /* bytes of both: 20 (SHA-1) or 32 (SHA-256) */
        unsigned char digest[32], value[32];
        const char *token_name; /* NULL: none */
        struct str cleartext;   /* a user token in place of a key; empty: none */
};
struct sssrmap_message {
        struct xml *root;
        const struct xml *request; /* in root: the present request; NULL: the body holds responses */
        const char *action, *object, *actor; /* in root; of the request. object: after sssrmap_request */
        const char *id;                      /* NULL: none */
        bool joined;     /* after sssrmap_request: conditions are joined by Or or Not, or in groups */
        struct str body; /* signed part; borrowed from the text */
        struct sssrmap_signature signature;
};

/* Reads a message, of which the first request is the present one. Returns 0; or an enum sssrmap_code with
 * err; or -errno with err (-ENOSYS: no libxml2). */
int sssrmap_read(struct str text, struct xml_schema *schema, struct sssrmap_message *ret, struct err *err);
void sssrmap_deinit(struct sssrmap_message *m); /* also after an error */
/* Makes the next request the present one. Returns false if there is none. */
bool sssrmap_next(struct sssrmap_message *m);
/* Reads the object of the present request, which has conditions only if it is a query. Returns 0; or an enum
 * sssrmap_code with err. */
int sssrmap_request(struct sssrmap_message *m, struct err *err);
/* Returns whether the message is signed with this key. */
bool sssrmap_is_signed(const struct sssrmap_message *m, struct str key);

/* Gives the value of a parameter, which may stand in the object of Data, or as Set, Where or Option; *ret is
 * empty if it is not there. A Where that is a condition is none. Returns 0; or SSSRMAP_VALUE with err: it is
 * there more than once. */
int sssrmap_parameter(const struct sssrmap_message *m, const char *name, struct str *ret, struct err *err);
/* Returns whether x is a Where that compares, or is joined to others, so that it cannot be a parameter. */
bool sssrmap_is_condition(const struct sssrmap_message *m, const struct xml *x);
bool sssrmap_is_query(const struct sssrmap_message *m);
/* Returns 0 if each parameter is one of these names, up to NULL; else SSSRMAP_VALUE with err. The names in
 * Where of queries are checked by sssrmap_selection_new. */
int sssrmap_only(const struct sssrmap_message *m, const char *const *names, struct err *err);

/* Appends a message with this text between <Body> and </Body>, signed with the key if there is one, with the
 * function of size 20 or 32. */
void sssrmap_write(struct buf *out, struct str content, struct str key, const char *key_name, unsigned size);
