#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "notify/address.h"

static void test_mail(void **state)
{
        static const char *const good[] = {"ann@example.org", "ann", "a.b+c_d-e=f@x-1.org", "9@h"};
        static const char *const bad[] = {
                "",
                "@example.org",
                "ann@",
                "-oQ/tmp@x",
                "--help",
                "ann@-x",
                "ann@.x",
                "ann@x,bob@y",
                "ann@x bob@y",
                "ann@x\nBcc: bob@y",
                "ann@x\r\n",
                "ann@x@y",
                "\"|sh\"@x",
                "|sh",
                "<ann@x>",
                "an\xc3\xb1@x",
                "a;b@x",
                "a`id`@x",
                "0123456789012345678901234567890123456789012345678901234567890123x@x"};
        struct err err;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_int_equal(address_mail_check(str_of(good[i]), &err), 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(address_mail_check(str_of(bad[i]), &err), -EINVAL);
        assert_int_equal(address_mail_check(str_make("ann@x\0y", 7), &err), -EINVAL);
}

static void test_url(void **state)
{
        static const struct {
                const char *url, *host;
                unsigned port;
                bool tls;
        } good[] = {
                {"https://Hooks.example.org/x?y=1", "hooks.example.org", 443, true},
                {"http://10.0.0.1:8080/", "10.0.0.1", 8080, false},
                {"http://[::1]/", "[::1]", 80, false},
                {"http://0x7f000001/", "127.0.0.1", 80, false}, /* as it will be connected to */
        };
        static const char *const bad[] = {"",
                                          "ftp://x/",
                                          "file:///etc/passwd",
                                          "gopher://x",
                                          "x",
                                          "http://ann:pw@x/",
                                          "http://ann@x/",
                                          "http://x/#y",
                                          "http://x/ y",
                                          "http://x\\y/",
                                          "http://x/\xc3\xa9",
                                          "http://x:99999/"};
        struct address_url u;
        struct err err;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                assert_int_equal(address_url_parse(str_of(good[i].url), &u, &err), 0);
                assert_string_equal(u.host, good[i].host);
                assert_int_equal(u.port, good[i].port);
                assert_int_equal(u.tls, good[i].tls);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(address_url_parse(str_of(bad[i]), &u, &err), -EINVAL);
}

static bool permits(const char *entry, const char *url)
{
        struct address_entry e;
        struct address_url u;

        assert_int_equal(address_entry_parse(str_of(entry), &e, NULL), 0);
        assert_int_equal(address_url_parse(str_of(url), &u, NULL), 0);
        return address_entry_permits(&e, &u);
}

static void test_entries(void **state)
{
        static const char *const bad[] = {"", "x:", "x:0", "x:70000", "http://x", "x/y", "[::1", "*", ":80"};
        struct address_entry e;

        (void)state;
        assert_true(permits("hooks.example.org", "https://HOOKS.example.org/x"));
        assert_false(permits("hooks.example.org", "http://hooks.example.org/x"));
        assert_false(permits("hooks.example.org", "https://hooks.example.org:8443/x"));
        assert_false(permits("example.org", "https://hooks.example.org/x"));
        assert_false(permits("hooks.example.org", "https://hooks.example.org.evil.net/x"));
        assert_true(permits("hooks.example.org:80", "http://hooks.example.org/x"));
        assert_true(permits("[::1]:81", "http://[::1]:81/"));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(address_entry_parse(str_of(bad[i]), &e, NULL), -EINVAL);
}

static struct sockaddr_storage socket_address(const char *text, unsigned port)
{
        struct sockaddr_storage s = {0};
        struct sockaddr_in *v4 = (struct sockaddr_in *)&s;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&s;

        if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
                v4->sin_family = AF_INET;
                v4->sin_port = htons((uint16_t)port);
        } else {
                assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons((uint16_t)port);
        }
        return s;
}

static void test_public(void **state)
{
        static const char *const good[] = {"8.8.8.8", "172.32.0.1",     "100.128.0.1",
                                           "2600::1", "::ffff:8.8.8.8", "64:ff9b::808:808"};
        static const char *const bad[] = {"0.0.0.0",
                                          "10.1.2.3",
                                          "127.0.0.1",
                                          "127.9.9.9",
                                          "100.100.100.200",
                                          "169.254.1.1",
                                          "169.254.169.254",
                                          "172.16.0.1",
                                          "172.31.255.255",
                                          "192.168.0.1",
                                          "198.19.0.1",
                                          "224.0.0.1",
                                          "255.255.255.255",
                                          "::",
                                          "::1",
                                          "fe80::1",
                                          "fd00:ec2::254",
                                          "fec0::1",
                                          "ff02::1",
                                          "::ffff:127.0.0.1",
                                          "::ffff:169.254.169.254",
                                          "64:ff9b::7f00:1",
                                          "2002:7f00:1::1",
                                          "2001:db8::1",
                                          "2001::1",
                                          "::127.0.0.1"};
        struct sockaddr other = {.sa_family = AF_UNIX};

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                struct sockaddr_storage s = socket_address(good[i], 443);

                assert_true(address_is_public((struct sockaddr *)&s));
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct sockaddr_storage s = socket_address(bad[i], 443);

                if (address_is_public((struct sockaddr *)&s))
                        fail_msg("%s is taken for public", bad[i]);
        }
        assert_false(address_is_public(&other));
}

static void test_exact_address(void **state)
{
        struct address_entry e;
        struct sockaddr_storage s = socket_address("127.0.0.1", 8080);

        (void)state;
        assert_int_equal(address_entry_parse(STR("127.0.0.1:8080"), &e, NULL), 0);
        assert_true(address_entry_is(&e, (struct sockaddr *)&s));
        s = socket_address("127.0.0.1", 8081);
        assert_false(address_entry_is(&e, (struct sockaddr *)&s));
        s = socket_address("127.0.0.2", 8080);
        assert_false(address_entry_is(&e, (struct sockaddr *)&s));
        s = socket_address("::ffff:127.0.0.1", 8080);
        assert_false(address_entry_is(&e, (struct sockaddr *)&s));
        assert_int_equal(address_entry_parse(STR("[::1]:8080"), &e, NULL), 0);
        s = socket_address("::1", 8080);
        assert_true(address_entry_is(&e, (struct sockaddr *)&s));
        assert_int_equal(address_entry_parse(STR("localhost:8080"), &e, NULL), 0);
        assert_false(address_entry_is(&e, (struct sockaddr *)&s));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_mail),          cmocka_unit_test(test_url),
                cmocka_unit_test(test_entries),       cmocka_unit_test(test_public),
                cmocka_unit_test(test_exact_address),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
