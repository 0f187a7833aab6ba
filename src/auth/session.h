/* session: a browser session, begun with a user token and continued with a cookie.
 *
 * The table is only in memory. A session ends with the server, with its token, when it is closed, or
 * SESSION_VALID_MS after it began. Only the SHA-256 of a cookie is kept. A second secret, `csrf`, is known
 * only to pages of this server's origin. A call that changes anything must send it beside the cookie,
 * which a browser sends by itself. Not thread-safe: one thread owns a table. `now_ms` is Unix time. */
#pragma once
#include "auth/token.h"

#define SESSION_VALID_MS    (12 * 3600000LL)
#define SESSIONS_OF_ONE     16u   /* of one user; one more ends the user's oldest session */
#define SESSIONS_MAX        4096u /* of all users; one more ends the oldest session of all */
#define SESSION_SECRET_TEXT 65    /* 64 hexadecimal digits and a NUL */

struct session {
        char token_id[TOKEN_ID_TEXT];
        char csrf[SESSION_SECRET_TEXT];
        char who[PRINCIPAL_MAX + 1];
        int64_t begun_ms, expires_ms;
        uint64_t order; /* increases with each session */
};

struct sessions;
struct sessions *sessions_new(void);
void sessions_free(struct sessions *ss); /* accepts NULL */
size_t sessions_count(const struct sessions *ss);

/* Begins a session for the token's user and writes the value of its cookie. It ends no later than the
 * token. Borrowed until the table changes. */
const struct session *sessions_open(struct sessions *ss, const struct token *t, int64_t now_ms,
                                    char ret_cookie[SESSION_SECRET_TEXT]);
/* Returns the session of a cookie's value, which may be any text; NULL when there is none or it has
 * expired. Borrowed until the table changes. */
const struct session *sessions_find(const struct sessions *ss, struct str cookie, int64_t now_ms);
void sessions_close(struct sessions *ss, struct str cookie); /* does nothing when there is none */
/* Returns whether the text is the session's second secret, in constant time. */
bool session_csrf_is(const struct session *s, struct str text);
