/* The table of token records. Each entry keeps its packed record, into which the token's texts point. */
#include "auth/token.h"

#include <assert.h>
#include <errno.h>

#include "auth/csr.h"
#include "base/format/name.h"
#include "base/job/offer_limit.h"
#include "base/job/owners.h"
#include "base/map.h"

#define PREFIX "token/"

struct entry {
        struct token token;
        char *record;
        size_t n;
};

struct tokens {
        struct map *by_id;
};

static void tokens_entry_free(struct entry *e)
{
        if (!e)
                return;
        free(e->record);
        free(e);
}

static struct entry *tokens_entry_new(struct str id, struct str record)
{
        struct entry *e = mem_new(struct entry);

        e->record = mem_dup(record.p, record.n);
        e->n = record.n;
        if (token_unpack(&e->token, id, str_make(e->record, e->n)) == 0)
                return e;
        tokens_entry_free(e);
        return NULL;
}

static int tokens_add_name(void *arg, struct str name)
{
        struct buf *names = arg;

        buf_str(names, name);
        buf_char(names, '\n');
        return 0;
}

static int tokens_load_one(struct tokens *ts, struct store *s, struct str name, struct err *err)
{
        BUF_CLEANUP struct buf record = {0};
        struct str id = str_skip(name, sizeof(PREFIX) - 1);
        struct entry *e;
        int r = store_blob_get(s, name, &record, err);

        if (r)
                return r;
        e = tokens_entry_new(id, buf_view(&record));
        if (!e)
                return err_set(err, -EBADMSG, "the record \"" STR_FMT "\" of the store cannot be read",
                               STR_ARG(name));
        tokens_entry_free(map_put(ts->by_id, id, e));
        return 0;
}

int tokens_load(struct store *s, struct tokens **ret, struct err *err)
{
        BUF_CLEANUP struct buf names = {0};
        struct tokens *ts;
        struct str rest, name;
        int r = store_blob_list(s, STR(PREFIX), tokens_add_name, &names, err);

        if (r)
                return r;
        ts = mem_new(struct tokens);
        ts->by_id = map_new();
        rest = buf_view(&names);
        while (r == 0 && str_cut(&rest, '\n', &name))
                if (name.n)
                        r = tokens_load_one(ts, s, name, err);
        if (r) {
                tokens_free(ts);
                return r;
        }
        *ret = ts;
        return 0;
}

void tokens_free(struct tokens *ts)
{
        size_t at = 0;
        void *e;

        if (!ts)
                return;
        while (map_next(ts->by_id, &at, NULL, &e))
                tokens_entry_free(e);
        map_free(ts->by_id);
        free(ts);
}

static struct entry *find_token(const struct tokens *ts, struct str id)
{
        return map_get(ts->by_id, id);
}

static void tokens_blob_name(struct buf *to, struct str id)
{
        buf_addz(to, PREFIX);
        buf_str(to, id);
}

/* Replaces the entry by one with t's current values, in the table and in the batch. */
static struct entry *put_token(struct tokens *ts, const struct token *t, struct store_batch *b)
{
        BUF_CLEANUP struct buf record = {0};
        BUF_CLEANUP struct buf name = {0};
        struct entry *e;

        token_pack(&record, t);
        tokens_blob_name(&name, str_of(t->id));
        store_batch_blob_put(b, buf_view(&name), buf_view(&record));
        e = tokens_entry_new(str_of(t->id), buf_view(&record));
        assert(e);
        tokens_entry_free(map_put(ts->by_id, str_of(t->id), e));
        return e;
}

static bool owners_good(struct str text)
{
        struct owners l;
        bool good = owners_parse(text, &l);

        owners_deinit(&l);
        return good;
}

static bool words_good(struct str text)
{
        struct str one;

        while (text.n && str_cut(&text, ',', &one))
                if (!name_is_line(one, CSR_NAME_MAX) || str_find(one, '"') >= 0 || str_find(one, '\\') >= 0)
                        return false; /* the text becomes a string in a ClassAd */
        return true;
}

static size_t tokens_count_of(const struct tokens *ts, struct str user)
{
        const struct token *t;
        size_t n = 0;

        for (size_t at = 0; tokens_next(ts, &at, &t);)
                n += t->kind == TOKEN_USER && str_eq(t->name, user);
        return n;
}

int tokens_add(struct tokens *ts, const struct token *t, struct store_batch *b, struct err *err)
{
        struct str name, domain;

        assert(t->id[0]); /* token_make must be called first */
        if (t->kind == TOKEN_AGENT && t->name.n && !csr_name_valid(t->name))
                return err_set(err, -EINVAL, "\"" STR_FMT "\" cannot be an agent's name", STR_ARG(t->name));
        if (t->kind == TOKEN_USER && principal_split(t->name, &name, &domain))
                return err_set(err, -EINVAL, "\"" STR_FMT "\" is not a user, who is written name@domain",
                               STR_ARG(t->name));
        if (t->tags.n > TOKEN_LIMITS_MAX || t->owners.n > TOKEN_LIMITS_MAX ||
            t->labels.n > TOKEN_LIMITS_MAX || t->most.n > TOKEN_LIMITS_MAX)
                return err_set(err, -EINVAL, "more than %d bytes of tags, owners, labels or most for a token",
                               TOKEN_LIMITS_MAX);
        if (t->kind == TOKEN_USER && (t->tags.n || t->owners.n || t->labels.n || t->most.n))
                return err_set(err, -EINVAL, "tags, owners, labels and most are for agents' tokens");
        if (!owners_good(t->owners))
                return err_set(err, -EINVAL,
                               "the owners \"" STR_FMT "\" are not name@domain, *@domain or any",
                               STR_ARG(t->owners));
        if (!words_good(t->tags) || !words_good(t->labels))
                return err_set(err, -EINVAL,
                               "tags and labels are words of at most %d bytes, without quotes and "
                               "backslashes, separated by commas",
                               CSR_NAME_MAX);
        if (!offer_limits_good(t->most))
                return err_set(
                        err, -EINVAL,
                        "most is NAME=NUMBER for attributes of the queues, such as Cpus=8,Memory=16384, "
                        "not \"" STR_FMT "\"",
                        STR_ARG(t->most));
        if (t->limited && t->uses_left == 0)
                return err_set(err, -EINVAL, "a token of no uses");
        if (t->kind == TOKEN_USER && tokens_count_of(ts, t->name) >= TOKENS_OF_ONE_MAX)
                return err_set(err, -E2BIG,
                               STR_FMT " has %u tokens, and no more are made: remove some (drover token)",
                               STR_ARG(t->name), TOKENS_OF_ONE_MAX);
        put_token(ts, t, b);
        return 0;
}

const struct token *tokens_find(const struct tokens *ts, struct str id)
{
        struct entry *e = find_token(ts, id);

        return e ? &e->token : NULL;
}

int tokens_look(const struct tokens *ts, struct str text, enum token_kind wanted, struct str fingerprint,
                int64_t now_ms, const struct token **ret_token)
{
        struct token_text parts;
        struct entry *e;
        int r;

        if (token_text_parse(text, &parts))
                return TOKEN_UNKNOWN;
        if (!str_eq(parts.fingerprint, fingerprint))
                return TOKEN_OTHER_CA;
        e = find_token(ts, parts.id);
        if (!e)
                return TOKEN_UNKNOWN;
        r = token_check(&e->token, &parts, wanted, now_ms);
        if (r == 0 && ret_token)
                *ret_token = &e->token;
        return r;
}

int tokens_use(struct tokens *ts, struct str text, enum token_kind wanted, struct str fingerprint,
               int64_t now_ms, struct store_batch *b, const struct token **ret_token)
{
        const struct token *found;
        int r = tokens_look(ts, text, wanted, fingerprint, now_ms, &found);

        if (r)
                return r;
        if (found->limited) {
                struct token used = *found;

                used.uses_left--;
                found = &put_token(ts, &used, b)->token;
        }
        if (ret_token)
                *ret_token = found;
        return 0;
}

bool tokens_remove(struct tokens *ts, struct str id, struct store_batch *b)
{
        BUF_CLEANUP struct buf name = {0};
        struct entry *e = map_take(ts->by_id, id);

        if (!e)
                return false;
        tokens_blob_name(&name, str_of(e->token.id));
        store_batch_blob_delete(b, buf_view(&name));
        tokens_entry_free(e);
        return true;
}

void tokens_prune(struct tokens *ts, int64_t now_ms, struct store_batch *b)
{
        BUF_CLEANUP struct buf ended = {0};
        const struct token *t;
        struct str rest, id;
        size_t at = 0;

        while (tokens_next(ts, &at, &t))
                if ((t->expires_ms && now_ms >= t->expires_ms) || (t->limited && t->uses_left == 0))
                        buf_printf(&ended, "%s\n", t->id);
        rest = buf_view(&ended);
        while (str_cut(&rest, '\n', &id))
                if (id.n)
                        tokens_remove(ts, id, b);
}

bool tokens_next(const struct tokens *ts, size_t *at, const struct token **ret)
{
        void *e;

        if (!map_next(ts->by_id, at, NULL, &e))
                return false;
        *ret = &((struct entry *)e)->token;
        return true;
}
