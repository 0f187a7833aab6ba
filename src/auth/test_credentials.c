/* What is told of credentials, and that the store has them encrypted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/ca.h"
#include "auth/credentials.h"
#include "auth/csr.h"
#include "base/system/fs.h"

static void expiry_is_known(void **state)
{
        (void)state;
        int64_t ms;
        struct err err;
        /* {"exp":1800000000} */
        struct str jwt = STR("eyJhbGciOiJub25lIn0.eyJleHAiOjE4MDAwMDAwMDB9.c2ln\n");
        assert_int_equal(credential_look(CREDENTIAL_TOKEN, jwt, &ms, &err), 0);
        assert_int_equal(ms, 1800000000000);
        assert_int_equal(credential_look(CREDENTIAL_TOKEN, STR("opaque"), &ms, &err), 0);
        assert_int_equal(ms, 0);
        assert_int_equal(credential_look(CREDENTIAL_TOKEN, STR("a.b.c"), &ms, &err), 0);
        assert_int_equal(credential_look(CREDENTIAL_TOKEN, STR("two words"), &ms, &err), -EINVAL);
        assert_null(strstr(err.text, "words"));
        assert_int_equal(credential_look(CREDENTIAL_TOKEN, STR(""), &ms, &err), -EINVAL);
        assert_int_equal(credential_look(CREDENTIAL_S3, STR("aws_access_key_id=x"), &ms, &err), -EINVAL);
        assert_int_equal(credential_look(CREDENTIAL_PROXY, STR("no PEM"), &ms, &err), -EINVAL);
}

static void proxies_end_with_their_certificate(void **state)
{
        (void)state;
        char dir[] = "/tmp/drover-proxy-XXXXXX";
        BUF_CLEANUP struct buf path = {0}, key = {0}, cert = {0};
        struct ca *ca;
        struct err err;
        int64_t ms;
        assert_non_null(mkdtemp(dir));
        buf_printf(&path, "%s/ca", dir);
        assert_int_equal(ca_open(buf_z(&path), STR("x"), 1700000000000, &ca, &err), 0);
        struct str names[] = {STR("ann")};
        assert_int_equal(ca_issue_server(ca, names, 1, 1700000000000, 3600, &cert, &key, &err), 0);
        assert_int_equal(credential_look(CREDENTIAL_PROXY, buf_view(&cert), &ms, &err), -EINVAL);
        buf_str(&cert, buf_view(&key));
        assert_int_equal(credential_look(CREDENTIAL_PROXY, buf_view(&cert), &ms, &err), 0);
        assert_int_equal(ms, 1700003600000);
        ca_free(ca);
        fs_remove_tree(AT_FDCWD, dir);
}

static void names(void **state)
{
        (void)state;
        assert_true(credential_name_ok(STR("grid_1.x@y")));
        assert_false(credential_name_ok(STR("")));
        assert_false(credential_name_ok(STR("../x")));
        assert_false(credential_name_ok(STR("a/b")));
        assert_false(credential_name_ok(STR(".hidden")));
}

static void done(void *arg, int result, uint64_t seq, struct store_batch *batch, const struct err *err)
{
        (void)seq;
        (void)batch;
        (void)err;
        assert_int_equal(result, STORE_DURABLE);
        sem_post(arg);
}

static void commit(struct store *s, uint64_t term, struct store_batch **b)
{
        sem_t is;

        sem_init(&is, 0, 0);
        store_append(s, term, *b, done, &is);
        sem_wait(&is);
        sem_destroy(&is);
        *b = store_batch_new();
}

static int put(struct credentials *cs, const char *owner, const char *name, const char *token,
               struct store_batch *b)
{
        struct credential_new what = {CREDENTIAL_TOKEN, str_of(token), NULL, 0, true};
        struct err err;

        return credentials_put(cs, str_of(owner), str_of(name), &what, 5, b, &err);
}

static void the_store_has_them_encrypted(void **state)
{
        (void)state;
        char dir[] = "/tmp/drover-credentials-XXXXXX";
        BUF_CLEANUP struct buf key = {0}, blob = {0}, data = {0};
        struct credentials *cs;
        const struct credential *c;
        struct store *s;
        struct err err;
        struct stat st;
        assert_non_null(mkdtemp(dir));
        buf_printf(&key, "%s/key", dir);
        uint64_t term;
        assert_int_equal(store_open("memory:", &s, NULL, &err), 0);
        assert_int_equal(store_term_take(s, &term, &err), 0);
        struct store_batch *b = store_batch_new();
        assert_int_equal(credentials_open(s, buf_z(&key), &cs, &err), 0);
        assert_int_equal(stat(buf_z(&key), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(put(cs, "ann@x", "t", "hush-hush", b), 0);
        assert_int_equal(put(cs, "bob@x", "t", "other", b), 0);
        assert_int_equal(put(cs, "ann@x", "a b", "x", b), -EINVAL);
        commit(s, term, &b);
        assert_int_equal(store_blob_get(s, STR("credential/ann@x/t"), &blob, &err), 0);
        assert_int_equal(str_search(buf_view(&blob), STR("hush")), -1);
        credentials_free(cs);
        /* somebody who can write the store moves bob's to ann's name */
        buf_reset(&blob);
        assert_int_equal(store_blob_get(s, STR("credential/bob@x/t"), &blob, &err), 0);
        store_batch_blob_put(b, STR("credential/ann@x/stolen"), buf_view(&blob));
        commit(s, term, &b);
        assert_int_equal(credentials_open(s, buf_z(&key), &cs, &err), 0);
        c = credentials_find(cs, STR("ann@x"), STR("t"));
        assert_int_equal(credentials_read(cs, c, &data), 0);
        assert_string_equal(buf_z(&data), "hush-hush");
        buf_reset(&data);
        assert_int_equal(credentials_read(cs, credentials_find(cs, STR("ann@x"), STR("stolen")), &data),
                         -EBADMSG);
        assert_int_equal(data.n, 0);
        assert_true(credentials_remove(cs, STR("ann@x"), STR("t"), b));
        assert_false(credentials_remove(cs, STR("ann@x"), STR("t"), b));
        assert_null(credentials_find(cs, STR("ann@x"), STR("t")));
        credentials_free(cs);
        store_batch_free(b);
        store_close(s);
        fs_remove_tree(AT_FDCWD, dir);
}

static const struct str lab[] = {STR("HTTPS://SE.lab:443/a/../data")};

static void what_it_is_for(void **state)
{
        (void)state;
        char dir[] = "/tmp/drover-credentials-XXXXXX";
        BUF_CLEANUP struct buf blob = {0}, key = {0}, data = {0};
        struct credentials *cs;
        const struct credential *c;
        struct store *s;
        uint64_t term;
        struct err err;
        assert_non_null(mkdtemp(dir));
        buf_printf(&key, "%s/key", dir);
        assert_int_equal(store_open("memory:", &s, NULL, &err), 0);
        assert_int_equal(store_term_take(s, &term, &err), 0);
        struct store_batch *b = store_batch_new();
        assert_int_equal(credentials_open(s, buf_z(&key), &cs, &err), 0);
        struct credential_new what = {CREDENTIAL_TOKEN, STR("hush"), lab, 1, false};
        assert_int_equal(credentials_put(cs, STR("ann@x"), STR("t"), &what, 5, b, &err), 0);
        assert_string_equal(credentials_find(cs, STR("ann@x"), STR("t"))->urls, "https://se.lab/data/");
        /* one that takes its place is for the same, if it does not say else */
        what = (struct credential_new){CREDENTIAL_TOKEN, STR("new"), NULL, 0, true};
        assert_int_equal(credentials_put(cs, STR("ann@x"), STR("t"), &what, 6, b, &err), 0);
        assert_string_equal(credentials_find(cs, STR("ann@x"), STR("t"))->urls, "https://se.lab/data/");
        static const char *const bad[] = {"se.lab", "https://a b/", "/data/", "http://se.lab/"};
        for (size_t i = 0; i < 4; i++) {
                struct str url = str_of(bad[i]);

                what = (struct credential_new){CREDENTIAL_TOKEN, STR("x"), &url, 1, false};
                assert_int_equal(credentials_put(cs, STR("ann@x"), STR("u"), &what, 6, b, &err), -EINVAL);
        }
        assert_int_equal(put(cs, "ann@x", "plain", "word", b), 0);
        commit(s, term, &b);
        /* as a server that knew nothing of URLs wrote it */
        assert_int_equal(store_blob_get(s, STR("credential/ann@x/plain"), &blob, &err), 0);
        blob.p[0] = 1;
        store_batch_blob_put(b, STR("credential/ann@x/plain"), str_head(buf_view(&blob), blob.n - 1));
        /* somebody who can write the store turns one to another store */
        buf_reset(&blob);
        assert_int_equal(store_blob_get(s, STR("credential/ann@x/t"), &blob, &err), 0);
        ptrdiff_t at = str_search(buf_view(&blob), STR("se.lab"));
        assert_true(at > 0);
        memcpy(blob.p + at, "my.lab", 6);
        store_batch_blob_put(b, STR("credential/ann@x/t"), buf_view(&blob));
        commit(s, term, &b);
        credentials_free(cs);
        assert_int_equal(credentials_open(s, buf_z(&key), &cs, &err), 0);
        c = credentials_find(cs, STR("ann@x"), STR("plain"));
        assert_int_equal(credentials_read(cs, c, &data), 0);
        assert_string_equal(buf_z(&data), "word");
        assert_string_equal(c->urls, "");
        assert_int_equal(credentials_read(cs, credentials_find(cs, STR("ann@x"), STR("t")), &data), -EBADMSG);
        credentials_free(cs);
        store_batch_free(b);
        store_close(s);
        fs_remove_tree(AT_FDCWD, dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(expiry_is_known), cmocka_unit_test(proxies_end_with_their_certificate),
                cmocka_unit_test(names),           cmocka_unit_test(the_store_has_them_encrypted),
                cmocka_unit_test(what_it_is_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
