#include "auth/session.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

#define DROPPED_AT_ONCE 32u /* each removal searches the table again */

struct sessions {
        struct map *by_hash; /* SHA-256 of the cookie's value → struct session */
        uint64_t next;
};

struct sessions *sessions_new(void)
{
        struct sessions *ss = mem_new(struct sessions);

        ss->by_hash = map_new();
        return ss;
}

void sessions_free(struct sessions *ss)
{
        if (!ss)
                return;
        map_free_values(ss->by_hash);
        free(ss);
}

size_t sessions_count(const struct sessions *ss)
{
        return map_count(ss->by_hash);
}

static struct str hash_of(struct str cookie, unsigned char to[32])
{
        SHA256((const unsigned char *)(cookie.p ? cookie.p : ""), cookie.n, to);
        return str_make((const char *)to, 32);
}

static void drop_session(struct sessions *ss, struct str key)
{
        unsigned char copy[32];

        memcpy(copy, key.p, sizeof(copy)); /* the key may belong to the map */
        free(map_take(ss->by_hash, str_make((const char *)copy, sizeof(copy))));
}

/* Makes room for one more session of this user: removes expired sessions, then the oldest. */
static void make_room(struct sessions *ss, const char *who, int64_t now_ms)
{
        unsigned dropped = 0;

        for (bool again = true; again;) {
                const struct session *his = NULL, *oldest = NULL;
                struct str his_key = STR_NONE, oldest_key = STR_NONE, key;
                size_t at = 0, count = 0;
                void *v;

                again = false;
                while (!again && map_next(ss->by_hash, &at, &key, &v)) {
                        const struct session *s = v;
                        bool same = strcmp(s->who, who) == 0;

                        if (s->expires_ms <= now_ms && dropped++ < DROPPED_AT_ONCE) {
                                drop_session(ss, key);
                                again = true; /* the map has changed */
                        }
                        count += !again && same;
                        if (!again && same && (!his || s->order < his->order)) {
                                his = s;
                                his_key = key;
                        }
                        if (!again && (!oldest || s->order < oldest->order)) {
                                oldest = s;
                                oldest_key = key;
                        }
                }
                if (!again && count >= SESSIONS_OF_ONE)
                        drop_session(ss, his_key);
                else if (!again && map_count(ss->by_hash) >= SESSIONS_MAX)
                        drop_session(ss, oldest_key);
        }
}

const struct session *sessions_open(struct sessions *ss, const struct token *t, int64_t now_ms,
                                    char ret_cookie[SESSION_SECRET_TEXT])
{
        struct session *s = mem_new(struct session);
        unsigned char hash[32];

        snprintf(s->who, sizeof(s->who), STR_FMT, STR_ARG(t->name));
        memcpy(s->token_id, t->id, sizeof(s->token_id));
        s->begun_ms = now_ms;
        s->expires_ms = now_ms + SESSION_VALID_MS;
        if (t->expires_ms && t->expires_ms < s->expires_ms)
                s->expires_ms = t->expires_ms;
        s->order = ss->next++;
        make_room(ss, s->who, now_ms);
        token_random(s->csrf);
        token_random(ret_cookie);
        map_put(ss->by_hash, hash_of(str_of(ret_cookie), hash), s);
        return s;
}

const struct session *sessions_find(const struct sessions *ss, struct str cookie, int64_t now_ms)
{
        unsigned char hash[32];
        const struct session *s = map_get(ss->by_hash, hash_of(cookie, hash));

        return s && s->expires_ms > now_ms ? s : NULL;
}

void sessions_close(struct sessions *ss, struct str cookie)
{
        unsigned char hash[32];

        free(map_take(ss->by_hash, hash_of(cookie, hash)));
}

bool session_csrf_is(const struct session *s, struct str text)
{
        return text.n == SESSION_SECRET_TEXT - 1 && CRYPTO_memcmp(text.p, s->csrf, text.n) == 0;
}
