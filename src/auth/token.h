/* token: a secret that somebody was given to prove with: an agent to join, a user to use the API from
 * elsewhere.
 *
 * Text: drover-agent-token.v1.<CA fingerprint>.<id>.<secret>, or drover-user-token… : the fingerprint pins
 * the server before anything is sent to it. The server keeps only the SHA-256 of the secret, which is 256
 * random bits, so that no slow hash is needed. Of a token all but the text is the record, a blob "token/<id>"
 * of the store.
 *
 * A tokens table holds all records in memory and is the truth while the server runs: what changes one goes
 * into a batch as well, which the caller appends. Not thread-safe: one thread owns it. `now_ms` is Unix time,
 * told by the caller.
 */
#pragma once
#include "auth/principal.h"
#include "base/buf.h"
#include "store/store.h"

#define TOKEN_ID_TEXT     17 /* 16 hexadecimal digits and a NUL */
#define TOKEN_SECRET_TEXT 65
#define TOKEN_TEXT_MAX    256   /* bytes of a token's text */
#define TOKEN_LIMITS_MAX  4096  /* bytes of each text of a ceiling */
#define TOKENS_OF_ONE_MAX 1000u /* a user's that have not been pruned */

enum token_error {
        TOKEN_UNKNOWN = 1, /* no such id, or the secret is wrong: which of them is nobody's business */
        TOKEN_EXPIRED,
        TOKEN_USED_UP,
        TOKEN_OTHER_KIND, /* an agent's where a user's is asked for, or the other way */
        TOKEN_OTHER_CA,   /* made by another server (or before this one's authority was made anew) */
};
const char *token_error_text(int code); /* a sentence for the one who showed it */

enum token_kind { TOKEN_AGENT, TOKEN_USER };
const char *token_kind_name(enum token_kind k);              /* "agent", "user" */
int token_kind_parse(struct str text, enum token_kind *ret); /* 0 or -EINVAL */

/* The record. Texts are borrowed: from the caller when it is made, from the table when it is found there. */
struct token {
        char id[TOKEN_ID_TEXT];
        unsigned char hash[32];
        enum token_kind kind;
        enum role role;     /* users: what it may at most */
        uint32_t uses_left; /* times it may still be used; 0 with `limited`: none */
        bool limited;       /* whether uses are counted at all */
        int64_t created_ms;
        int64_t expires_ms;    /* from then on it is void; 0: never */
        struct str name;       /* agents: the name it must take, empty: any; users: the principal it is */
        struct str created_by; /* principal */
        struct str tags;       /* agents: their ceiling, as struct cert_ceiling has it */
        struct str owners;
        struct str labels;
};

/* ---- text */
struct token_text {
        enum token_kind kind;
        struct str fingerprint, id, secret; /* borrowed */
};
/* 0, or -EINVAL. Only the form is looked at. */
int token_text_parse(struct str text, struct token_text *ret);

/* Writes 256 random bits as hexadecimal digits; aborts when there are none. */
void token_random(char ret[TOKEN_SECRET_TEXT]);
/* Gives t an id and a hash, and appends the token's text, which is shown once and kept nowhere. */
void token_make(struct token *t, struct str fingerprint, struct buf *ret_text);
/* The record as bytes, and back: 0 or -EBADMSG; what is read is borrowed from the bytes. */
void token_pack(struct buf *to, const struct token *t);
int token_unpack(struct token *t, struct str id, struct str record);

/* Whether this text proves that token, at this time, for this purpose. Takes the same time wherever the
 * secret differs. 0 or enum token_error. */
int token_check(const struct token *t, const struct token_text *text, enum token_kind wanted, int64_t now_ms);

/* ---- table */
struct tokens;
/* Reads all records. 0; -EBADMSG when one cannot be read (err names it); or what the store returned. */
int tokens_load(struct store *s, struct tokens **ret, struct err *err);
void tokens_free(struct tokens *ts); /* NULL is fine */
/* Takes a copy of the record in, and puts it into the batch. 0; -EINVAL when its name, role or ceilings are
 * not valid; -E2BIG when its user has TOKENS_OF_ONE_MAX; err says which. */
int tokens_add(struct tokens *ts, const struct token *t, struct store_batch *b, struct err *err);
/* Borrowed until it is changed; NULL. */
const struct token *tokens_find(const struct tokens *ts, struct str id);
/* Checks a text and, when uses are counted, takes one. 0, with *ret_token (may be NULL; borrowed until the
 * table changes); or enum token_error, also for a text that is not one. fingerprint is our CA's. */
int tokens_use(struct tokens *ts, struct str text, enum token_kind wanted, struct str fingerprint,
               int64_t now_ms, struct store_batch *b, const struct token **ret_token);
/* Looks only: whether tokens_use would succeed. */
int tokens_look(const struct tokens *ts, struct str text, enum token_kind wanted, struct str fingerprint,
                int64_t now_ms, const struct token **ret_token);
bool tokens_remove(struct tokens *ts, struct str id, struct store_batch *b); /* false: there was none */
void tokens_prune(struct tokens *ts, int64_t now_ms,
                  struct store_batch *b); /* removes expired and used-up ones */
/* In no particular order; as map_next. */
bool tokens_next(const struct tokens *ts, size_t *at, const struct token **ret);
