#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "move/task.h"

static void fill_task(struct move_task *t)
{
        move_task_init(t, MOVE_GET);
        t->url = mem_dupz("https://store.example/a/b");
        t->at = 7;
        t->size = 1ull << 40;
        t->known = t->summed = true;
        t->facts = (struct move_facts){12, 1700000000, "\"abc\""};
        memset(t->sha256, 0x5a, sizeof(t->sha256));
        t->tries = 3;
        t->limit_ms = 90000;
        strcpy(t->tag, "12.3.4");
        move_task_credential(t, "token", "grid", STR("s3cr3t"));
}

static void fill_answer(struct move_answer *a)
{
        *a = (struct move_answer){.status = MOVE_FAILED,
                                  .error = ENOENT,
                                  .tries = 2,
                                  .facts = {MOVE_SIZE_ANY, 0, ""},
                                  .size = 5,
                                  .moved = 6,
                                  .took_us = 7,
                                  .latency_us = 8,
                                  .text = "cannot fetch it"};
}

static void packets_keep_everything(void **state)
{
        struct move_task t, got;
        struct move_answer a, back;
        BUF_CLEANUP struct buf b = {0}, again = {0};

        (void)state;
        fill_task(&t);
        move_pack_task(&t, &b);
        assert_true(move_unpack_task(buf_view(&b), &got));
        assert_string_equal(got.url, t.url);
        assert_true(got.known && got.summed && got.tries == 3 && got.size == 1ull << 40);
        assert_string_equal(got.facts.etag, "\"abc\"");
        assert_string_equal(got.credential.type, "token");
        assert_string_equal(got.credential.name, "grid");
        assert_true(str_eqz(buf_view(&got.credential.data), "s3cr3t"));
        move_pack_task(&got, &again);
        assert_true(str_eq(buf_view(&b), buf_view(&again)));
        move_task_deinit(&got);
        move_task_deinit(&t);
        buf_reset(&b);
        fill_answer(&a);
        move_pack_answer(&a, &b);
        assert_true(move_unpack_answer(buf_view(&b), &back));
        assert_int_equal(back.status, MOVE_FAILED);
        assert_int_equal(back.error, ENOENT);
        assert_true(back.facts.size == MOVE_SIZE_ANY && back.latency_us == 8);
        assert_string_equal(back.text, "cannot fetch it");
}

/* Any bytes from a faulty mover are parsed without harm. */
static void torn_packets_are_refused(void **state)
{
        struct move_task t, got;
        struct move_answer a, back;
        BUF_CLEANUP struct buf b = {0}, c = {0};

        (void)state;
        fill_task(&t);
        fill_answer(&a);
        move_pack_task(&t, &b);
        move_pack_answer(&a, &c);
        move_task_deinit(&t);
        for (size_t n = 0; n < b.n; n++)
                assert_false(move_unpack_task(str_head(buf_view(&b), n), &got));
        for (size_t n = 0; n < c.n; n++)
                assert_false(move_unpack_answer(str_head(buf_view(&c), n), &back));
        assert_false(move_unpack_answer(buf_view(&b), &back));
        for (size_t i = 0; i < c.n; i++)
                for (unsigned flip = 1; flip < 256; flip <<= 1) {
                        c.p[i] ^= (char)flip;
                        if (move_unpack_answer(buf_view(&c), &back))
                                assert_true(strnlen(back.text, sizeof(back.text)) < sizeof(back.text) &&
                                            back.status <= MOVE_FAILED && back.error >= 0);
                        c.p[i] ^= (char)flip;
                }
}

static void a_descriptor_goes_along(void **state)
{
        int pair[2], fd = open("/dev/null", O_RDONLY), got_fd;
        struct move_task t, got;
        struct move_answer a, back;

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        fill_task(&t);
        assert_int_equal(move_send_task(pair[0], &t, fd), 0);
        assert_int_equal(move_receive_task(pair[1], &got, &got_fd), 0);
        assert_true(got_fd >= 0 && got_fd != fd && fcntl(got_fd, F_GETFD) == FD_CLOEXEC);
        assert_int_equal(got.from, -1);
        close(got_fd);
        move_task_deinit(&got);
        t.from = fd;
        assert_int_equal(move_send_task(pair[0], &t, fd), 0);
        assert_int_equal(move_receive_task(pair[1], &got, &got_fd), 0);
        assert_true(got_fd >= 0 && got.from >= 0 && got_fd != got.from &&
                    fcntl(got.from, F_GETFD) == FD_CLOEXEC);
        close(got_fd);
        close(got.from);
        move_task_deinit(&got);
        move_task_deinit(&t);
        assert_int_equal(move_receive_answer(pair[0], MSG_DONTWAIT, &back), -EAGAIN);
        fill_answer(&a);
        assert_int_equal(move_send_sign(pair[1]), 0);
        assert_int_equal(move_send_answer(pair[1], &a), 0);
        assert_int_equal(move_receive_answer(pair[0], MSG_DONTWAIT, &back), 0);
        assert_int_equal(move_receive_answer(pair[0], MSG_DONTWAIT, &back), 1);
        assert_int_equal(send(pair[1], "nonsense", 8, 0), 8);
        assert_int_equal(move_receive_answer(pair[0], 0, &back), -EPROTO);
        close(pair[1]);
        assert_int_equal(move_receive_answer(pair[0], 0, &back), -ENOTCONN);
        close(pair[0]);
        close(fd);
}

/* A packet from a less trusted process cannot pass descriptors that stay open. */
static void descriptors_of_a_mover_are_dropped(void **state)
{
        int pair[2], before = dup(0), after;
        struct move_task t;
        struct move_answer back;

        (void)state;
        close(before);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        fill_task(&t);
        t.from = 0;
        assert_int_equal(move_send_task(pair[1], &t, 0), 0); /* any packet with two of them */
        assert_int_equal(move_receive_answer(pair[0], 0, &back), -EPROTO);
        close(pair[0]);
        close(pair[1]);
        after = dup(0);
        assert_int_equal(after, before);
        close(after);
        move_task_deinit(&t);
}

static void words_are_one_line(void **state)
{
        struct move_answer a, back;
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        fill_answer(&a);
        strcpy(a.text, "gone\n000 (1.0.0)\x1b[2J\x7f.");
        move_pack_answer(&a, &b);
        assert_true(move_unpack_answer(buf_view(&b), &back));
        assert_string_equal(back.text, "gone 000 (1.0.0) [2J .");
}

static void passwords_are_not_shown(void **state)
{
        static const char *const cases[][2] = {
                {"https://ann:secret@h/a@b", "https://h/a@b"},
                {"ftp://h/x", "ftp://h/x"},
                {"sftp://ann@h", "sftp://h"},
                {"/a/b", "/a/b"},
                {"http://h?u=a@b", "http://b"},
                {"", ""},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                MEM_CLEANUP char *shown = move_url_shown(cases[i][0]);

                assert_string_equal(shown, cases[i][1]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(packets_keep_everything),
                                           cmocka_unit_test(torn_packets_are_refused),
                                           cmocka_unit_test(a_descriptor_goes_along),
                                           cmocka_unit_test(descriptors_of_a_mover_are_dropped),
                                           cmocka_unit_test(words_are_one_line),
                                           cmocka_unit_test(passwords_are_not_shown)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
