#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/log.h"

/* Runs one line with stderr turned to a pipe. Returns what was written. */
#define CAPTURE(room, ...)                                                                                   \
        do {                                                                                                 \
                int pipe_[2], old_ = dup(STDERR_FILENO);                                                     \
                ssize_t n_;                                                                                  \
                assert_int_equal(pipe2(pipe_, O_NONBLOCK), 0);                                               \
                dup2(pipe_[1], STDERR_FILENO);                                                               \
                __VA_ARGS__;                                                                                 \
                dup2(old_, STDERR_FILENO);                                                                   \
                n_ = read(pipe_[0], room, sizeof(room) - 1);                                                 \
                room[n_ < 0 ? 0 : n_] = '\0';                                                                \
                close(pipe_[0]);                                                                             \
                close(pipe_[1]);                                                                             \
                close(old_);                                                                                 \
        } while (0)

/* Whether text begins as the pattern does, in which # is a digit. Returns what comes behind it, or NULL. */
static const char *behind(const char *text, const char *pattern)
{
        for (; *pattern; pattern++, text++)
                if (*pattern == '#' ? *text < '0' || *text > '9' : *text != *pattern)
                        return NULL;
        return text;
}

static void one_line(void **state)
{
        const char *rest;
        char room[16384];

        (void)state;
        log_init("tester", LOG_INFO);
        CAPTURE(room, log_info("msg=%s n=%d", LOG_TEXT(STR("a \"b\"\n")), 7));
        rest = behind(room, "####-##-##T##:##:##.###Z info tester msg=");
        assert_non_null(rest);
        assert_string_equal(rest, "a \\\"b\\\"\\x0a n=7\n");
        CAPTURE(room, log_debug("hidden=1"));
        assert_string_equal(room, "");
        log_init("tester", LOG_DEBUG);
        CAPTURE(room, log_debug("shown=1"));
        assert_non_null(strstr(room, " debug tester shown=1\n"));
}

static void too_long(void **state)
{
        char room[16384];

        (void)state;
        CAPTURE(room, log_error("x=%*d", 10000, 1));
        assert_true(strlen(room) < 8300);
        assert_int_equal(room[strlen(room) - 1], '\n');
}

static void levels(void **state)
{
        enum log_level level = LOG_INFO;

        (void)state;
        assert_int_equal(log_level_parse("debug", &level), 0);
        assert_int_equal(level, LOG_DEBUG);
        assert_int_equal(log_level_parse("loud", &level), -EINVAL);
        assert_int_equal(level, LOG_DEBUG);
        log_init("tester", LOG_WARN);
        assert_true(log_on(LOG_ERROR));
        assert_false(log_on(LOG_INFO));
}

static void text_is_cut(void **state)
{
        char room[8];

        (void)state;
        for (size_t size = 1; size <= sizeof(room); size++) {
                memset(room, '#', sizeof(room));
                assert_ptr_equal(log_text(room, size, STR("\x01\"\x02yyyyyyyyyy")), room);
                assert_true(strlen(room) < size);
        }
        assert_string_equal(log_text(room, 8, STR("abcdefghijk")), "abc");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_line),
                cmocka_unit_test(too_long),
                cmocka_unit_test(levels),
                cmocka_unit_test(text_is_cut),
        };

        return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
