#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "auth/test_kept.h"
#include "auth/token.h"

#define CA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define CA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

struct fixture {
        struct kept kept;
        struct tokens *ts;
};

/* Commits what the table changed and reads the table anew: what follows sees what was kept. */
static void reload(struct fixture *f)
{
        kept_commit(&f->kept);
        tokens_free(f->ts);
        assert_int_equal(tokens_load(f->kept.store, &f->ts, NULL), 0);
}

static int setup(void **state)
{
        struct fixture *f = mem_new(struct fixture);

        kept_init(&f->kept);
        assert_int_equal(tokens_load(f->kept.store, &f->ts, NULL), 0);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        tokens_free(f->ts);
        kept_deinit(&f->kept);
        free(f);
        return 0;
}

static struct token agent_token(uint32_t uses)
{
        return (struct token){.kind = TOKEN_AGENT,
                              .limited = true,
                              .uses_left = uses,
                              .created_ms = 1000,
                              .expires_ms = 5000,
                              .name = STR("n1"),
                              .created_by = STR("root@local"),
                              .tags = STR("gpu,site=x"),
                              .owners = STR("ann@local")};
}

static void add(struct fixture *f, struct token t, struct buf *text)
{
        struct err err = {0};

        token_make(&t, STR(CA_A), text);
        if (tokens_add(f->ts, &t, f->kept.batch, &err))
                fail_msg("%s", err.text);
        reload(f);
}

static int use(struct fixture *f, struct str text, enum token_kind kind, int64_t now_ms,
               const struct token **ret)
{
        return tokens_use(f->ts, text, kind, STR(CA_A), now_ms, f->kept.batch, ret);
}

static void text_has_a_form(void **state)
{
        BUF_CLEANUP struct buf text = {0};
        struct token t = {.kind = TOKEN_AGENT};
        struct token_text parts;

        (void)state;
        token_make(&t, STR(CA_A), &text);
        assert_int_equal(token_text_parse(buf_view(&text), &parts), 0);
        assert_int_equal(parts.kind, TOKEN_AGENT);
        assert_true(str_eqz(parts.fingerprint, CA_A));
        assert_true(str_eqz(parts.id, t.id));
        assert_true(str_starts(buf_view(&text), STR("drover-agent-token.v1." CA_A ".")));
        assert_int_equal(token_check(&t, &parts, TOKEN_AGENT, 1), 0);
        for (size_t cut = 0; cut < text.n; cut++)
                assert_int_equal(token_text_parse(str_head(buf_view(&text), cut), &parts), -EINVAL);
        for (size_t i = 0; i < text.n; i++) {
                BUF_CLEANUP struct buf other = {0};

                buf_str(&other, buf_view(&text));
                other.p[i] ^= 1;
                if (token_text_parse(buf_view(&other), &parts) == 0 && str_eqz(parts.fingerprint, CA_A) &&
                    str_eqz(parts.id, t.id))
                        assert_int_equal(token_check(&t, &parts, TOKEN_AGENT, 1), TOKEN_UNKNOWN);
        }
        buf_char(&text, 'a');
        assert_int_equal(token_text_parse(buf_view(&text), &parts), -EINVAL);
}

static void record_keeps_all_but_the_secret(void **state)
{
        BUF_CLEANUP struct buf text = {0};
        BUF_CLEANUP struct buf record = {0};
        struct token t = agent_token(3), got;
        struct token_text parts;

        (void)state;
        token_make(&t, STR(CA_A), &text);
        token_pack(&record, &t);
        assert_int_equal(token_text_parse(buf_view(&text), &parts), 0);
        assert_int_equal(str_search(buf_view(&record), parts.secret), -1);
        assert_int_equal(token_unpack(&got, str_of(t.id), buf_view(&record)), 0);
        assert_string_equal(got.id, t.id);
        assert_int_equal(got.kind, TOKEN_AGENT);
        assert_int_equal(got.uses_left, 3);
        assert_int_equal(got.expires_ms, 5000);
        assert_true(str_eqz(got.name, "n1"));
        assert_true(str_eqz(got.created_by, "root@local"));
        assert_true(str_eqz(got.tags, "gpu,site=x"));
        assert_true(str_eqz(got.owners, "ann@local"));
        assert_int_equal(token_check(&got, &parts, TOKEN_AGENT, 4999), 0);
        for (size_t cut = 0; cut < record.n; cut++)
                assert_int_equal(token_unpack(&got, str_of(t.id), str_head(buf_view(&record), cut)),
                                 -EBADMSG);
}

static void uses_are_counted_and_kept(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf text = {0};
        const struct token *t = NULL;

        add(f, agent_token(2), &text);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 2000, &t), 0);
        assert_int_equal(t->uses_left, 1);
        assert_true(str_eqz(t->name, "n1"));
        reload(f);
        assert_int_equal(tokens_look(f->ts, buf_view(&text), TOKEN_AGENT, STR(CA_A), 2000, NULL), 0);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 2000, NULL), 0);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 2000, NULL), TOKEN_USED_UP);
        reload(f);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 2000, NULL), TOKEN_USED_UP);
        tokens_prune(f->ts, 2000, f->kept.batch);
        reload(f);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 2000, NULL), TOKEN_UNKNOWN);
}

static void wrong_ones_are_told_apart(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf text = {0};
        struct token_text parts;
        const struct token *t = NULL;

        add(f, agent_token(9), &text);
        assert_int_equal(token_text_parse(buf_view(&text), &parts), 0);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 4999, NULL), 0);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 5000, NULL), TOKEN_EXPIRED);
        assert_int_equal(use(f, buf_view(&text), TOKEN_USER, 2000, NULL), TOKEN_OTHER_KIND);
        assert_int_equal(use(f, STR("nonsense"), TOKEN_AGENT, 2000, NULL), TOKEN_UNKNOWN);
        assert_int_equal(use(f, STR_NONE, TOKEN_AGENT, 2000, NULL), TOKEN_UNKNOWN);
        assert_int_equal(
                tokens_use(f->ts, buf_view(&text), TOKEN_AGENT, STR(CA_B), 2000, f->kept.batch, NULL),
                TOKEN_OTHER_CA);
        text.p[text.n - 1] = text.p[text.n - 1] == '0' ? '1' : '0';
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 2000, &t), TOKEN_UNKNOWN);
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 9000, &t),
                         TOKEN_UNKNOWN); /* tells nothing more */
        assert_null(t);
        for (int code = 0; code <= TOKEN_OTHER_CA; code++)
                assert_true(strlen(token_error_text(code)) > 10);
        assert_int_equal(tokens_find(f->ts, parts.id)->uses_left, 8);
}

static void users_tokens_are_not_counted(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf text = {0};
        const struct token *t = NULL;

        add(f, (struct token){.kind = TOKEN_USER, .role = ROLE_OPERATOR, .name = STR("ann@local")}, &text);
        for (int i = 0; i < 5; i++)
                assert_int_equal(use(f, buf_view(&text), TOKEN_USER, INT64_MAX - 1, &t), 0);
        assert_true(store_batch_empty(f->kept.batch));
        assert_int_equal(t->role, ROLE_OPERATOR);
        assert_true(str_eqz(t->name, "ann@local"));
        tokens_prune(f->ts, INT64_MAX - 1, f->kept.batch);
        assert_non_null(tokens_find(f->ts, str_of(t->id)));
}

static void are_removed(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf text = {0};
        BUF_CLEANUP struct buf second = {0};
        const struct token *t;
        struct token_text parts;
        size_t at = 0, count = 0;

        add(f, agent_token(1), &text);
        add(f, agent_token(1), &second);
        while (tokens_next(f->ts, &at, &t))
                count++;
        assert_int_equal(count, 2);
        assert_int_equal(token_text_parse(buf_view(&text), &parts), 0);
        assert_true(tokens_remove(f->ts, parts.id, f->kept.batch));
        assert_false(tokens_remove(f->ts, parts.id, f->kept.batch));
        reload(f);
        assert_null(tokens_find(f->ts, parts.id));
        assert_int_equal(use(f, buf_view(&text), TOKEN_AGENT, 2000, NULL), TOKEN_UNKNOWN);
        assert_int_equal(use(f, buf_view(&second), TOKEN_AGENT, 2000, NULL), 0);
}

static void odd_ones_are_not_made(void **state)
{
        struct fixture *f = *state;
        struct token t = agent_token(1);
        BUF_CLEANUP struct buf text = {0};
        struct err err = {0};

        token_make(&t, STR(CA_A), &text);
        t.name = STR("not a name");
        assert_int_equal(tokens_add(f->ts, &t, f->kept.batch, &err), -EINVAL);
        t.name = STR_NONE; /* any name */
        t.uses_left = 0;
        assert_int_equal(tokens_add(f->ts, &t, f->kept.batch, &err), -EINVAL);
        t.uses_left = 1;
        t.kind = TOKEN_USER;
        assert_int_equal(tokens_add(f->ts, &t, f->kept.batch, &err), -EINVAL);
        assert_true(store_batch_empty(f->kept.batch));
        t.kind = TOKEN_AGENT;
        assert_int_equal(tokens_add(f->ts, &t, f->kept.batch, &err), 0);
}

static void a_damaged_record_is_named(void **state)
{
        struct fixture *f = *state;
        struct tokens *ts = NULL;
        struct err err = {0};

        store_batch_blob_put(f->kept.batch, STR("token/0123456789abcdef"), STR("rubbish"));
        kept_commit(&f->kept);
        assert_int_equal(tokens_load(f->kept.store, &ts, &err), -EBADMSG);
        assert_null(ts);
        assert_non_null(strstr(err.text, "token/0123456789abcdef"));
}

static void a_user_has_so_many(void **state)
{
        struct fixture *f = *state;
        struct token t = {.kind = TOKEN_USER, .name = STR("ann@local"), .created_by = STR("ann@local")};
        struct err err = {0};

        for (unsigned i = 0; i < TOKENS_OF_ONE_MAX; i++) {
                BUF_CLEANUP struct buf text = {0};

                token_make(&t, STR(CA_A), &text);
                assert_int_equal(tokens_add(f->ts, &t, f->kept.batch, &err), 0);
        }
        BUF_CLEANUP struct buf text = {0};
        token_make(&t, STR(CA_A), &text);
        assert_int_equal(tokens_add(f->ts, &t, f->kept.batch, &err), -E2BIG);
        assert_non_null(strstr(err.text, "ann@local has 1000 tokens"));
        t.name = STR("bob@local");
        assert_int_equal(tokens_add(f->ts, &t, f->kept.batch, &err), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_user_has_so_many),
                cmocka_unit_test(text_has_a_form),
                cmocka_unit_test(record_keeps_all_but_the_secret),
                T(uses_are_counted_and_kept),
                T(wrong_ones_are_told_apart),
                T(users_tokens_are_not_counted),
                T(are_removed),
                T(odd_ones_are_not_made),
                T(a_damaged_record_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
