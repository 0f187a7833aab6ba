/* session: a browser that has shown a user token, and shows a cookie from then on.
 *
 * The table is in memory alone: a session ends with the server, with its token, when it is closed, or
 * SESSION_VALID_MS after it began. Of a cookie only the SHA-256 is kept. The second secret, `csrf`, is known
 * to pages of this server's origin and to no others: what changes anything must show it beside the cookie,
 * which a browser sends by itself. Not thread-safe: one thread owns a table. `now_ms` is Unix time, told by
 * the caller.
 */
#pragma once
#include "auth/token.h"

#define SESSION_VALID_MS    (12 * 3600000LL)
#define SESSIONS_OF_ONE     16u   /* a user's; one more ends his oldest */
#define SESSIONS_MAX        4096u /* of all users; one more ends the oldest of all */
#define SESSION_SECRET_TEXT 65    /* 64 hexadecimal digits and a NUL */

struct session {
        char token_id[TOKEN_ID_TEXT];
        char csrf[SESSION_SECRET_TEXT];
        char who[PRINCIPAL_MAX + 1];
        int64_t begun_ms, expires_ms;
        uint64_t order; /* grows from session to session */
};

struct sessions;
struct sessions *sessions_new(void);
void sessions_free(struct sessions *ss); /* NULL is fine */
size_t sessions_count(const struct sessions *ss);

/* Begins a session of the token's user and writes its cookie's value. It ends with the token at the latest.
 * Borrowed until the table changes. */
const struct session *sessions_open(struct sessions *ss, const struct token *t, int64_t now_ms,
                                    char ret_cookie[SESSION_SECRET_TEXT]);
/* The session of a cookie's value, which may be any text; NULL when there is none, or it is past its end.
 * Borrowed until the table changes. */
const struct session *sessions_find(const struct sessions *ss, struct str cookie, int64_t now_ms);
void sessions_close(struct sessions *ss, struct str cookie); /* nothing happens when there is none */
/* Whether the text is the session's second secret. Takes the same time wherever it differs. */
bool session_csrf_is(const struct session *s, struct str text);
