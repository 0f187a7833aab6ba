/* token: a secret by which its holder is authenticated: an agent that joins, or a user who uses the API
 * from another machine.
 *
 * Text: drover-agent-token.v1.<CA fingerprint>.<id>.<secret>, or drover-user-token…. The fingerprint
 * identifies the server before anything is sent to it. The server keeps only the SHA-256 of the secret,
 * which is 256 random bits, so that no slow hash is needed. Everything about a token except its text is in
 * its record, a blob "token/<id>" of the store.
 *
 * A tokens table holds all records in memory. Each change is also written to a batch, which the caller
 * appends. Not thread-safe: one thread owns it. `now_ms` is Unix time. */
#pragma once
#include "auth/principal.h"
#include "base/buf.h"
#include "store/store.h"

#define TOKEN_ID_TEXT     17 /* 16 hexadecimal digits and a NUL */
#define TOKEN_SECRET_TEXT 65
#define TOKEN_TEXT_MAX    256   /* bytes of a token's text */
#define TOKEN_LIMITS_MAX  4096  /* bytes of each text of a ceiling */
#define TOKENS_OF_ONE_MAX 1000u /* of one user, not counting pruned ones */

enum token_error {
        TOKEN_UNKNOWN = 1, /* unknown id or wrong secret; callers are not told which */
        TOKEN_EXPIRED,
        TOKEN_USED_UP,
        TOKEN_OTHER_KIND, /* an agent's token where a user's is needed, or the reverse */
        TOKEN_OTHER_CA,   /* made by another server, or before this server's authority was made anew */
};
const char *token_error_text(int code); /* returns a sentence for the caller */

enum token_kind { TOKEN_AGENT, TOKEN_USER };
const char *token_kind_name(enum token_kind k);              /* "agent", "user" */
int token_kind_parse(struct str text, enum token_kind *ret); /* 0 or -EINVAL */

/* The record. Texts are borrowed: from the caller when it is made, from the table when it was found there. */
struct token {
        char id[TOKEN_ID_TEXT];
        unsigned char hash[32];
        enum token_kind kind;
        enum role role;     /* users: the highest role that it gives */
        uint32_t uses_left; /* remaining uses; 0 with `limited`: none */
        bool limited;       /* uses are counted */
        int64_t created_ms;
        int64_t expires_ms; /* when it expires; 0: never */
        struct str name;    /* agents: the name that the agent must use, empty: any; users: the principal */
        struct str created_by; /* principal of its maker */
        struct str tags;       /* agents: their ceiling, in the form of struct cert_ceiling */
        struct str owners;
        struct str labels;
        struct str most;
};

/* ---- text */
struct token_text {
        enum token_kind kind;
        struct str fingerprint, id, secret; /* borrowed */
};
/* Returns 0, or -EINVAL. Only the form is checked. */
int token_text_parse(struct str text, struct token_text *ret);

/* Writes 256 random bits as hexadecimal digits; aborts if there are none. */
void token_random(char ret[TOKEN_SECRET_TEXT]);
/* Gives t an id and a hash, and appends the token's text, which is shown once and not stored. */
void token_make(struct token *t, struct str fingerprint, struct buf *ret_text);
/* Converts the record to bytes and back. Returns 0 or -EBADMSG; the result borrows from the bytes. */
void token_pack(struct buf *to, const struct token *t);
int token_unpack(struct token *t, struct str id, struct str record);

/* Checks whether this text authenticates that token, at this time, for this purpose, in constant time.
 * Returns 0 or enum token_error. */
int token_check(const struct token *t, const struct token_text *text, enum token_kind wanted, int64_t now_ms);

/* ---- table */
struct tokens;
/* Reads all records. Returns 0; -EBADMSG when one cannot be read (err names it); or the store's error. */
int tokens_load(struct store *s, struct tokens **ret, struct err *err);
void tokens_free(struct tokens *ts); /* accepts NULL */
/* Adds a copy of the record to the table and to the batch. Returns 0; -EINVAL when its name, role or
 * ceilings are invalid; -E2BIG when its user has TOKENS_OF_ONE_MAX; err says which. */
int tokens_add(struct tokens *ts, const struct token *t, struct store_batch *b, struct err *err);
/* Returns the token, borrowed until it is changed, or NULL. */
const struct token *tokens_find(const struct tokens *ts, struct str id);
/* Checks a text and, when uses are counted, uses one. Returns 0, with *ret_token (may be NULL; borrowed
 * until the table changes); or enum token_error, also for a text that is not a token. fingerprint is that
 * of our CA. */
int tokens_use(struct tokens *ts, struct str text, enum token_kind wanted, struct str fingerprint,
               int64_t now_ms, struct store_batch *b, const struct token **ret_token);
/* Checks whether tokens_use would succeed, without using the token. */
int tokens_look(const struct tokens *ts, struct str text, enum token_kind wanted, struct str fingerprint,
                int64_t now_ms, const struct token **ret_token);
/* returns false if there was none */
bool tokens_remove(struct tokens *ts, struct str id, struct store_batch *b);
void tokens_prune(struct tokens *ts, int64_t now_ms,
                  struct store_batch *b); /* removes expired and used-up ones */
/* Iterates in no particular order, as map_next does. */
bool tokens_next(const struct tokens *ts, size_t *at, const struct token **ret);
