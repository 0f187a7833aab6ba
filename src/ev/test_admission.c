#include "ev/admission.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ev/test_help.h"

/* One end of a TCP connection on loopback whose other end has this address. */
static int peer_at(const char *address)
{
        struct sockaddr_in at = {.sin_family = AF_INET};
        socklen_t n = sizeof(at);
        int listener = socket(AF_INET, SOCK_STREAM, 0), dialled = socket(AF_INET, SOCK_STREAM, 0), fd;

        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
        struct sockaddr_in from = {.sin_family = AF_INET};
        assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
        assert_int_equal(bind(dialled, (struct sockaddr *)&from, sizeof(from)), 0);
        assert_int_equal(connect(dialled, (struct sockaddr *)&at, sizeof(at)), 0);
        fd = accept(listener, NULL, NULL);
        assert_true(fd >= 0);
        close(listener);
        close(dialled);
        return fd;
}

static void test_one_address_leaves_room(void **state)
{
        struct admission *a = admission_new(100, 8);
        struct admission_place greedy[8], other;
        int flood = peer_at("127.0.0.2"), guest = peer_at("127.0.0.3");
        int taken = 0;

        (void)state;
        while (taken < 8 && admission_take(a, flood, true, &greedy[taken]))
                taken++;
        assert_int_equal(taken, 4);
        assert_true(admission_take(a, guest, true, &other));
        admission_known(&other);
        admission_known(&other);
        assert_true(admission_take(a, flood, false, &greedy[taken++])); /* who is known already needs none */
        admission_give(&other);
        admission_give(&other);
        while (taken)
                admission_give(&greedy[--taken]);
        assert_true(admission_take(a, flood, true, &other));
        admission_give(&other);
        admission_free(a); /* asserts that all are back */
        close(flood);
        close(guest);
}

static void test_users_of_this_machine(void **state)
{
        struct admission *a = admission_new(4, 2);
        struct admission_place place[3];
        int pair[2], address = peer_at("127.0.0.2");

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_true(admission_take(a, pair[0], false, &place[0]));
        assert_true(admission_take(a, pair[1], false, &place[1]));
        assert_false(admission_take(a, pair[1], false, &place[2])); /* the same user: two of four */
        assert_true(admission_take(a, address, false, &place[2]));
        for (int i = 0; i < 3; i++)
                admission_give(&place[i]);
        admission_free(a);
        close(pair[0]);
        close(pair[1]);
        close(address);
}

static void test_those_that_wait(void **state)
{
        struct admission *a = admission_new(8, 2);
        struct admission_place first, second;
        int address = peer_at("127.0.0.2");

        (void)state;
        assert_true(admission_take(a, address, false, &first));
        assert_true(admission_take(a, address, false, &second));
        assert_true(admission_meet(&first));
        assert_false(admission_meet(&second)); /* one of two is its share */
        admission_known(&first);
        assert_true(admission_meet(&second));
        admission_give(&second);
        admission_give(&first);
        admission_free(a);
        close(address);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_address_leaves_room),
                cmocka_unit_test(test_users_of_this_machine),
                cmocka_unit_test(test_those_that_wait),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
