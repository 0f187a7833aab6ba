#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/attempt/console.h"
#include "base/mem.h"

struct side {
        struct loop *loop;
        struct console *console;
        int fd; /* the command's */
        unsigned changes, wanted;
};

static void changed(void *arg)
{
        struct side *s = arg;

        if (++s->changes >= s->wanted)
                loop_stop(s->loop);
}

static void open_side(struct side *s, bool terminal)
{
        *s = (struct side){.loop = loop_new()};
        const struct console_config config = {.loop = s->loop,
                                              .terminal = terminal,
                                              .rows = 24,
                                              .columns = 80,
                                              .changed = changed,
                                              .arg = s};
        assert_int_equal(console_new(&config, &s->console, &s->fd), 0);
}

static void run(struct side *s, unsigned changes)
{
        s->changes = 0;
        s->wanted = changes;
        loop_run(s->loop);
}

static void close_side(struct side *s)
{
        console_free(s->console);
        if (s->fd >= 0)
                close(s->fd);
        loop_free(s->loop);
}

static void input_comes_once(void **state)
{
        struct side s;
        char room[64] = "";

        (void)state;
        open_side(&s, false);
        assert_int_equal(console_take(s.console, 0, STR("abc"), false), 3);
        assert_int_equal(console_take(s.console, 0, STR("abcd"), false), 4); /* sent again, and more */
        assert_int_equal(console_take(s.console, 9, STR("x"), false), 4);    /* a gap */
        assert_int_equal(console_take(s.console, UINT64_MAX, STR("x"), false), 4);
        assert_false(console_is_deaf(s.console));
        assert_int_equal(console_take(s.console, 4, STR("e"), true), 5);
        assert_true(console_is_deaf(s.console));
        assert_int_equal(console_take(s.console, 5, STR("x"), false), 5); /* behind the end */
        assert_int_equal(read(s.fd, room, sizeof(room)), 5);
        assert_string_equal(room, "abcde");
        assert_int_equal(read(s.fd, room, sizeof(room)), 0);
        close_side(&s);
}

static void room_is_bounded(void **state)
{
        struct side s;
        MEM_CLEANUP char *many = mem_alloc(CONSOLE_MOST);
        uint64_t taken = 0, had = 0;

        (void)state;
        memset(many, 'x', CONSOLE_MOST);
        open_side(&s, false);
        for (int i = 0; i < 100; i++)
                taken = console_take(s.console, taken, str_make(many, CONSOLE_MOST), i == 99);
        assert_false(console_has_room(s.console));
        assert_true(taken < 4 * CONSOLE_MOST);
        fcntl(s.fd, F_SETFL, O_NONBLOCK);
        while (had < taken) {
                ssize_t n = read(s.fd, many, CONSOLE_MOST);

                if (n > 0)
                        had += (uint64_t)n;
                else
                        run(&s, 1);
        }
        assert_int_equal(read(s.fd, many, 1), -1); /* the end did not come with what was not taken */
        assert_int_equal(errno, EAGAIN);
        assert_true(console_has_room(s.console));
        close_side(&s);
}

static void nobody_reads(void **state)
{
        struct side s;

        (void)state;
        open_side(&s, false);
        close(s.fd);
        s.fd = -1;
        assert_int_equal(console_take(s.console, 0, STR("abc"), false), 3);
        assert_true(console_is_deaf(s.console));
        assert_false(console_is_over(s.console));
        console_end(s.console);
        assert_true(console_is_over(s.console));
        close_side(&s);
}

static void terminal(void **state)
{
        struct side s;
        struct winsize size;
        uint64_t offset = 0;
        char room[64] = "";

        (void)state;
        open_side(&s, true);
        assert_int_equal(isatty(s.fd), 1);
        console_resize(s.console, 30, 100);
        console_resize(s.console, 0, 7);
        console_resize(s.console, UINT32_MAX, UINT32_MAX);
        assert_int_equal(ioctl(s.fd, TIOCGWINSZ, &size), 0);
        assert_int_equal(size.ws_row, 30);
        assert_int_equal(size.ws_col, 100);
        assert_int_equal(console_take(s.console, 0, STR("typed\n"), true), 6); /* a terminal's does not end */
        assert_int_equal(read(s.fd, room, sizeof(room)), 6);
        assert_string_equal(room, "typed\n");
        assert_false(console_is_deaf(s.console));
        assert_int_equal(write(s.fd, "said", 4), 4);
        while (console_written(s.console) < 11)
                run(&s, 1);
        struct str out = console_output(s.console, &offset);
        assert_memory_equal(out.p, "typed\r\nsaid", 11);
        offset = 7;
        out = console_output(s.console, &offset);
        assert_int_equal(offset, 7);
        assert_memory_equal(out.p, "said", 4);
        offset = 3; /* that is forgotten */
        console_output(s.console, &offset);
        assert_int_equal(offset, 7);
        offset = 1000; /* more than there was */
        assert_int_equal(console_output(s.console, &offset).n, 0);
        assert_int_equal(offset, 11);
        close_side(&s);
}

/* Output in the terminal is not lost when the command ends, and a process that still has the terminal is not
 * waited for. */
static void terminal_ends(void **state)
{
        struct side s;
        uint64_t offset = 0, had = 0, sent = 0;
        MEM_CLEANUP char *line = mem_alloc(1000);

        (void)state;
        memset(line, 'y', 1000);
        open_side(&s, true);
        fcntl(s.fd, F_SETFL, O_NONBLOCK);
        for (ssize_t n; (n = write(s.fd, line, 1000)) > 0 || console_written(s.console) < CONSOLE_MOST;)
                if (n > 0)
                        sent += (uint64_t)n;
                else
                        run(&s, 1);
        assert_int_equal(console_written(s.console), CONSOLE_MOST);
        console_end(s.console);
        assert_false(console_is_over(s.console));
        while (!console_is_over(s.console) || offset + console_output(s.console, &offset).n > had) {
                had = offset + console_output(s.console, &offset).n;
                offset = had;
        }
        assert_int_equal(had, sent);
        close_side(&s);
}

/* Between two programs, or between the last words of one and its end, nobody may have it open. */
static void terminal_is_opened_again(void **state)
{
        struct side s;
        uint64_t offset = 0;
        char name[64];

        (void)state;
        open_side(&s, true);
        assert_int_equal(ttyname_r(s.fd, name, sizeof(name)), 0);
        assert_int_equal(write(s.fd, "one", 3), 3);
        close(s.fd);
        while (console_written(s.console) < 3)
                run(&s, 1);
        assert_int_equal(console_output(s.console, &offset).n, 3);
        assert_false(console_is_deaf(s.console));
        s.fd = open(name, O_RDWR | O_NOCTTY);
        assert_true(s.fd >= 0);
        assert_int_equal(write(s.fd, "two", 3), 3);
        while (console_output(s.console, &offset).n < 6)
                run(&s, 1);
        close_side(&s);
}

static void terminal_hangs_up(void **state)
{
        struct side s;
        char c;

        (void)state;
        open_side(&s, true);
        console_free(s.console);
        s.console = NULL;
        assert_int_equal(read(s.fd, &c, 1), 0);
        close_side(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(input_comes_once),
                cmocka_unit_test(room_is_bounded),
                cmocka_unit_test(nobody_reads),
                cmocka_unit_test(terminal),
                cmocka_unit_test(terminal_ends),
                cmocka_unit_test(terminal_hangs_up),
                cmocka_unit_test(terminal_is_opened_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
