#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "notify/notify.h"

#define ID "00000000-0000-4000-8000-000000000001"

static char folder[64], script[96], mailed[96];
static struct notify_config config;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned calls;
static enum notify_result last_result;
static char last_why[512];

static void write_script(const char *text)
{
        FILE *f = fopen(script, "we");

        fprintf(f, "#!/bin/sh\n%s\n", text);
        fclose(f);
        assert_int_equal(chmod(script, 0700), 0);
}

static int make_folder(void **state)
{
        (void)state;
        snprintf(folder, sizeof(folder), "/tmp/drover-notify-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        snprintf(script, sizeof(script), "%s/mailer", folder);
        snprintf(mailed, sizeof(mailed), "%s/mailed", folder);
        config = (struct notify_config){
                .mailer = {script, mailed}, .from = (char *)"drover@example.org", .timeout_ms = 20000};
        calls = 0;
        return 0;
}

static int remove_folder(void **state)
{
        (void)state;
        unlink(script);
        unlink(mailed);
        return rmdir(folder);
}

static struct notify_message *message(enum notify_kind kind, const char *to)
{
        struct notify_message *m = notify_message_new();

        snprintf(m->id, sizeof(m->id), "%s", ID);
        m->kind = kind;
        m->to = mem_dupz(to);
        m->subject = mem_dupz("Job 7.0 completed");
        buf_addz(&m->body, kind == NOTIFY_MAIL ? "It did.\n" : "{}");
        m->at_ms = 1767323045678;
        return m;
}

static void on_done(void *arg, const char *id, enum notify_result result, const char *why)
{
        assert_ptr_equal(arg, &calls);
        assert_string_equal(id, ID);
        pthread_mutex_lock(&mutex);
        calls++;
        last_result = result;
        snprintf(last_why, sizeof(last_why), "%s", why);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
}

/* Sends one, waits for its end. */
static enum notify_result send_one(struct notify_message *m)
{
        struct notify *n;
        enum notify_result r;

        assert_int_equal(notify_new(&config, on_done, &calls, &n, NULL), 0);
        notify_send(n, m);
        pthread_mutex_lock(&mutex);
        while (calls == 0)
                pthread_cond_wait(&changed, &mutex);
        r = last_result;
        calls = 0;
        pthread_mutex_unlock(&mutex);
        notify_free(n);
        return r;
}

static void test_what_is_written(void **state)
{
        BUF_CLEANUP struct buf out = {0};
        struct notify_message *m = message(NOTIFY_MAIL, "ann@example.org");

        (void)state;
        free(m->subject);
        m->subject = mem_dupz("one\r\nBcc: bob@example.org \xc3\xa9");
        buf_reset(&m->body);
        buf_add(&m->body, "a\r\n.\r\nb\0c", 9);
        mail_write(&out, &config, m);
        assert_string_equal(buf_z(&out), "From: Drover <drover@example.org>\n"
                                         "To: ann@example.org\n"
                                         "Subject: one??Bcc: bob@example.org ??\n"
                                         "Date: Fri, 2 Jan 2026 03:04:05 +0000\n"
                                         "Message-ID: <" ID "@example.org>\n"
                                         "Auto-Submitted: auto-generated\n"
                                         "Precedence: bulk\n"
                                         "MIME-Version: 1.0\n"
                                         "Content-Type: text/plain; charset=utf-8\n"
                                         "Content-Transfer-Encoding: 8bit\n"
                                         "\n"
                                         "a\n.\nbc\n");
        notify_message_free(m);
}

static void test_mailer_gets_words_not_a_shell(void **state)
{
        char text[2048] = "";
        FILE *f;

        (void)state;
        write_script("{ for w; do echo \"<$w>\"; done; cat; } > \"$1\"");
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann@example.org")), NOTIFY_SENT);
        f = fopen(mailed, "re");
        assert_non_null(f);
        assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
        fclose(f);
        assert_non_null(strstr(text, "<ann@example.org>\nFrom: "));
        assert_non_null(strstr(text, "\n\nIt did.\n"));
}

static void test_place_of_the_address(void **state)
{
        (void)state;
        config.mailer[2] = (char *)"{to}";
        config.mailer[3] = (char *)"end";
        write_script("[ $# = 3 ] && [ \"$2\" = ann ] && [ \"$3\" = end ]");
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann")), NOTIFY_SENT);
}

static void test_mailers_that_fail(void **state)
{
        (void)state;
        write_script("echo no such user >&2; exit 67"); /* EX_NOUSER */
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann")), NOTIFY_REFUSED);
        assert_non_null(strstr(last_why, "ended with 67: no such user"));
        write_script("exit 75");
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann")), NOTIFY_AGAIN);
        write_script("kill -9 $$");
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann")), NOTIFY_AGAIN);
        assert_non_null(strstr(last_why, "signal 9"));
        config.timeout_ms = 1;
        write_script("while :; do sleep 1; done");
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann")), NOTIFY_AGAIN);
        assert_non_null(strstr(last_why, "did not end in time"));
        unlink(script);
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann")), NOTIFY_AGAIN);
        config.mailer[0] = NULL;
        assert_int_equal(send_one(message(NOTIFY_MAIL, "ann")), NOTIFY_REFUSED);
        write_script("");
}

/* A name that is allowed but leads to this machine is refused where it would be connected to. */
static void test_hooks_to_this_machine(void **state)
{
        (void)state;
        write_script("");
        assert_int_equal(address_entry_parse(STR("localhost:9"), &config.hooks[0], NULL), 0);
        config.hook_count = 1;
        assert_int_equal(send_one(message(NOTIFY_HOOK, "http://localhost:9/")), NOTIFY_REFUSED);
        assert_non_null(strstr(last_why, "not public"));
        assert_int_equal(send_one(message(NOTIFY_HOOK, "http://127.0.0.1:9/")), NOTIFY_REFUSED);
        assert_non_null(strstr(last_why, "may not call"));
        assert_int_equal(address_entry_parse(STR("127.0.0.1:9"), &config.hooks[1], NULL), 0);
        config.hook_count = 2;
        assert_int_equal(send_one(message(NOTIFY_HOOK, "http://127.0.0.1:9/")),
                         NOTIFY_AGAIN); /* nobody listens */
}

static void test_stops_what_is_under_way(void **state)
{
        struct notify *n;

        (void)state;
        write_script("echo > \"$1\"; while :; do sleep 1; done");
        assert_int_equal(notify_new(&config, on_done, &calls, &n, NULL), 0);
        for (int i = 0; i < 10; i++)
                notify_send(n, message(NOTIFY_MAIL, "ann"));
        notify_free(n);
        assert_int_equal(calls, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
        const struct CMUnitTest tests[] = {
                TEST(test_what_is_written),       TEST(test_mailer_gets_words_not_a_shell),
                TEST(test_place_of_the_address),  TEST(test_mailers_that_fail),
                TEST(test_hooks_to_this_machine), TEST(test_stops_what_is_under_way),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
