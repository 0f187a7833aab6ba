#include "wire/session.h"

#include "ev/test_help.h"
#include "wire/unpack.h"

struct end {
        struct loop *loop;
        struct session *s;
        int ready, closed, messages, want, pause_at;
        struct err why;
        uint64_t serials[8], renewed;
        bool free_in_message, finish_in_message;
        char text[128];
};
struct world {
        struct loop *loop;
        char *folder;
        struct listener *listener;
        struct end server, client;
        struct stream *raw; /* a peer that does not keep to the protocol */
        int64_t silence_ms;
};

static void end_ready(void *arg, struct session *s)
{
        struct end *e = arg;

        (void)s;
        e->ready++;
        loop_stop(e->loop);
}

static void end_message(void *arg, struct session *s, const ProtobufCMessage *m)
{
        struct end *e = arg;

        if (m->descriptor == &drover__to_server__descriptor) {
                const Drover__ToServer *t = (const Drover__ToServer *)m;

                if (t->kind_case == DROVER__TO_SERVER__KIND_RENEW) {
                        if (e->messages < 8)
                                e->serials[e->messages] = t->renew->serial;
                        e->renewed += t->renew->serial;
                } else if (t->kind_case == DROVER__TO_SERVER__KIND_GOODBYE) {
                        snprintf(e->text, sizeof(e->text), "%s", t->goodbye->reason);
                }
        } else {
                const Drover__ToAgent *t = (const Drover__ToAgent *)m;

                assert_ptr_equal(m->descriptor, &drover__to_agent__descriptor);
                if (t->kind_case == DROVER__TO_AGENT__KIND_ERROR)
                        snprintf(e->text, sizeof(e->text), "%s", t->error->text);
        }
        e->messages++;
        if (e->free_in_message) {
                session_free(s);
                e->s = NULL;
        }
        if (e->finish_in_message) {
                Drover__Error error = DROVER__ERROR__INIT;
                Drover__ToAgent t = DROVER__TO_AGENT__INIT;

                error.code = 1;
                error.text = (char *)"go away";
                t.kind_case = DROVER__TO_AGENT__KIND_ERROR;
                t.error = &error;
                session_send(s, &t.base);
                session_finish(s);
        }
        if (e->messages == e->pause_at)
                session_pause(s);
        if (e->messages == e->want)
                loop_stop(e->loop);
}

static void end_closed(void *arg, struct session *s, const struct err *why)
{
        struct end *e = arg;

        e->closed++;
        e->why = *why;
        session_free(s);
        e->s = NULL;
        loop_stop(e->loop);
}

static const struct session_ops ops = {end_ready, end_message, end_closed};

static void raw_data(void *arg, struct stream *s, struct buf *in)
{
        (void)arg;
        (void)s;
        buf_consume(in, in->n);
}

static void raw_closed(void *arg, struct stream *s, const struct err *why)
{
        struct world *w = arg;

        (void)why;
        stream_free(s);
        w->raw = NULL;
}

static const struct stream_ops raw_ops = {NULL, raw_data, NULL, raw_closed};

static void accepted(void *arg, int fd)
{
        struct world *w = arg;

        assert_null(w->server.s);
        w->server.s = session_accept(w->loop, fd, NULL, w->silence_ms, &ops, &w->server);
}

static int setup(void **state)
{
        struct world *w = mem_new(struct world);
        BUF_CLEANUP struct buf address = {0};
        struct err err;

        w->loop = w->server.loop = w->client.loop = loop_new();
        w->folder = help_folder();
        buf_printf(&address, "unix:%s/s", w->folder);
        assert_int_equal(listener_new(w->loop, buf_z(&address), 0600, accepted, w, &w->listener, &err), 0);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        session_free(w->server.s);
        session_free(w->client.s);
        stream_free(w->raw);
        listener_free(w->listener);
        loop_free(w->loop);
        help_folder_remove(w->folder);
        free(w);
        return 0;
}

static void dial(struct world *w)
{
        w->client.s = session_connect(w->loop, listener_address(w->listener), NULL, 0, &ops, &w->client);
        while (!w->client.ready || !w->server.ready)
                help_run(w->loop);
}

static void dial_raw(struct world *w)
{
        w->raw = stream_connect(w->loop, listener_address(w->listener), NULL, NULL, &raw_ops, w);
        while (!w->server.ready)
                help_run(w->loop);
}

static void send_renew(struct session *s, uint64_t serial)
{
        Drover__Renew renew = DROVER__RENEW__INIT;
        Drover__ToServer t = DROVER__TO_SERVER__INIT;

        renew.serial = serial;
        t.kind_case = DROVER__TO_SERVER__KIND_RENEW;
        t.renew = &renew;
        session_send(s, &t.base);
}

static void send_goodbye(struct session *s, size_t size)
{
        MEM_CLEANUP char *text = mem_alloc(size + 1);
        Drover__Goodbye goodbye = DROVER__GOODBYE__INIT;
        Drover__ToServer t = DROVER__TO_SERVER__INIT;

        memset(text, 'a', size);
        text[size] = '\0';
        goodbye.reason = text;
        t.kind_case = DROVER__TO_SERVER__KIND_GOODBYE;
        t.goodbye = &goodbye;
        session_send(s, &t.base);
}

static void messages_in_order(void **state)
{
        struct world *w = *state;

        dial(w);
        w->server.want = 10000;
        for (uint64_t i = 1; i <= 10000; i++)
                send_renew(w->client.s, i);
        help_run(w->loop);
        assert_int_equal(w->server.messages, 10000);
        for (uint64_t i = 0; i < 8; i++)
                assert_int_equal(w->server.serials[i], i + 1);
        assert_int_equal(w->server.renewed, 10000u * 10001 / 2);
}

static void both_directions(void **state)
{
        struct world *w = *state;

        dial(w);
        w->server.finish_in_message = true;
        send_renew(w->client.s, 1);
        send_renew(w->client.s, 2);
        while (!w->client.closed)
                help_run(w->loop);
        assert_string_equal(w->client.text, "go away"); /* the last word arrives although the server closed */
        assert_int_equal(w->server.messages, 1);        /* no message is delivered afterwards */
}

static void byte_by_byte(void **state)
{
        struct world *w = *state;
        static const unsigned char frames[] = {4, 0, 0, 0, 0x42, 2, 8,    5, 0, 0,
                                               0, 0, 4, 0, 0,    0, 0x42, 2, 8, 7};

        dial_raw(w);
        for (size_t i = 0; i < sizeof(frames); i++) {
                stream_write(w->raw, frames + i, 1);
                help_run_ms(w->loop, 2);
        }
        assert_int_equal(w->server.messages, 2); /* the empty one between is of no kind we know */
        assert_int_equal(w->server.serials[0], 5);
        assert_int_equal(w->server.serials[1], 7);
}

static void strangers_may_send_little(void **state)
{
        struct world *w = *state;

        dial(w);
        send_goodbye(w->client.s, SESSION_FRAME_HELLO);
        while (!w->server.closed)
                help_run(w->loop);
        assert_non_null(strstr(w->server.why.text, "over the limit of 4096"));
        assert_int_equal(w->server.messages, 0);
}

static void friends_may_send_much(void **state)
{
        struct world *w = *state;

        dial(w);
        session_frame_max(w->server.s, SESSION_FRAME_MAX);
        w->server.want = 2;
        send_goodbye(w->client.s, SESSION_FRAME_MAX - 100);
        send_renew(w->client.s, 3);
        while (w->server.messages < 2)
                help_run(w->loop);
        assert_int_equal(w->server.serials[1], 3);
        send_goodbye(w->client.s, SESSION_FRAME_MAX); /* too large: the sender's own error */
        while (!w->client.closed)
                help_run(w->loop);
        assert_non_null(strstr(w->client.why.text, "over the limit"));
}

static void garbage(void **state)
{
        struct world *w = *state;
        static const struct {
                const char *bytes;
                size_t n;
                const char *why;
        } cases[] = {
                {"GET / HTTP/1.1\r\n\r\n", 18, "over the limit"},
                {"\xff\xff\xff\xff", 4, "over the limit"},
                {"\x01\x10\x00\x00", 4, "over the limit"},
                {"\x04\x00\x00\x00zzzz", 8, "is not a message"},
                {"\x02\x00\x00\x00\x42\x7f", 6, "is not a message"}, /* a length that runs out of the frame */
                {"\x03\x00\x00\x00\x42\x02\x08", 7, "is not a message"},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                w->server = (struct end){.loop = w->loop};
                dial_raw(w);
                stream_write(w->raw, cases[i].bytes, cases[i].n);
                while (!w->server.closed)
                        help_run(w->loop);
                if (!strstr(w->server.why.text, cases[i].why))
                        fail_msg("case %zu: %s", i, w->server.why.text);
                assert_int_equal(w->server.messages, 0);
                stream_free(w->raw);
                w->raw = NULL;
        }
}

static void silent_peer(void **state)
{
        struct world *w = *state;

        w->silence_ms = 60;
        dial_raw(w);
        while (!w->server.closed)
                help_run(w->loop);
        assert_non_null(strstr(w->server.why.text, "silent"));
}

static void freed_in_message(void **state)
{
        struct world *w = *state;

        dial(w);
        w->server.free_in_message = true;
        for (int i = 0; i < 10; i++)
                send_renew(w->client.s, i);
        while (!w->client.closed)
                help_run(w->loop);
        assert_int_equal(w->server.messages, 1);
        assert_int_equal(w->server.closed, 0);
}

/* Messages after the one at which the session was paused are delivered later, in order, until it is paused
 * again. */
static void paused(void **state)
{
        struct world *w = *state;

        dial(w);
        w->server.pause_at = w->server.want = 2;
        for (int i = 0; i < 7; i++)
                send_renew(w->client.s, i);
        while (w->server.messages < 2)
                help_run(w->loop);
        assert_int_equal(w->server.messages, 2);
        w->server.pause_at = 5;
        session_read_on(w->server.s);
        assert_int_equal(w->server.messages, 5);
        session_read_on(w->server.s);
        w->server.want = 8;
        send_renew(w->client.s, 7);
        while (w->server.messages < 8)
                help_run(w->loop);
        for (int i = 0; i < 8; i++)
                assert_int_equal(w->server.serials[i], i);
        assert_int_equal(w->server.closed, 0);
}

static void dense_honest_messages_fit(void **state)
{
        Drover__Group group = DROVER__GROUP__INIT, *groups[] = {&group};
        Drover__Assign assign = DROVER__ASSIGN__INIT;
        Drover__ToAgent t = DROVER__TO_AGENT__INIT;
        size_t count = 100000, n;
        Drover__Range *ranges = mem_array(NULL, count, sizeof(*ranges));
        Drover__Range **range_list = mem_array(NULL, count, sizeof(*range_list));
        Drover__Item *items = mem_array(NULL, count, sizeof(*items));
        Drover__Item **item_list = mem_array(NULL, count, sizeof(*item_list));
        char *values[] = {(char *)"", (char *)"", (char *)"a"};
        struct arena arena = {0};
        uint8_t *bytes;

        (void)state;
        for (size_t i = 0; i < count;
             i++) { /* the smallest that make sense: every second member, tiny items */
                drover__range__init(&ranges[i]);
                ranges[i].first = 2 * i % 128;
                ranges[i].count = 1;
                range_list[i] = &ranges[i];
                drover__item__init(&items[i]);
                items[i].member = i % 128;
                items[i].values = values;
                items[i].n_values = 3;
                item_list[i] = &items[i];
        }
        group.members = range_list;
        group.n_members = count;
        group.items = item_list;
        group.n_items = count;
        assign.groups = groups;
        assign.n_groups = 1;
        assign.queue = (char *)"q";
        t.kind_case = DROVER__TO_AGENT__KIND_ASSIGN;
        t.assign = &assign;
        n = drover__to_agent__get_packed_size(&t);
        bytes = mem_alloc(n);
        drover__to_agent__pack(&t, bytes);
        assert_non_null(unpack_message(&arena, &drover__to_agent__descriptor, str_make((char *)bytes, n)));
        assert_true(arena.used < n * 24 + UNPACK_BASE);
        arena_deinit(&arena);
        free(bytes);
        free(ranges);
        free(range_list);
        free(items);
        free(item_list);
}

/* Two bytes unpack to an empty template of over a hundred bytes. */
static void a_small_frame_cannot_make_a_large_message(void **state)
{
        struct arena arena = {0};
        BUF_CLEANUP struct buf inner = {0};
        BUF_CLEANUP struct buf bytes = {0};
        size_t n;

        (void)state;
        for (int i = 0; i < 100000; i++)
                buf_add(&inner, "\x1a\x00", 2);
        buf_char(&bytes, 0x12);
        for (n = inner.n; n > 127; n >>= 7)
                buf_char(&bytes, (char)(n | 0x80));
        buf_char(&bytes, (char)n);
        buf_str(&bytes, buf_view(&inner));
        assert_null(unpack_message(&arena, &drover__to_agent__descriptor, buf_view(&bytes)));
        assert_true(arena.used <= bytes.n * UNPACK_FACTOR + UNPACK_BASE);
        arena_deinit(&arena);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(messages_in_order, setup, teardown),
                cmocka_unit_test_setup_teardown(both_directions, setup, teardown),
                cmocka_unit_test_setup_teardown(byte_by_byte, setup, teardown),
                cmocka_unit_test_setup_teardown(strangers_may_send_little, setup, teardown),
                cmocka_unit_test_setup_teardown(friends_may_send_much, setup, teardown),
                cmocka_unit_test_setup_teardown(garbage, setup, teardown),
                cmocka_unit_test_setup_teardown(silent_peer, setup, teardown),
                cmocka_unit_test_setup_teardown(freed_in_message, setup, teardown),
                cmocka_unit_test_setup_teardown(paused, setup, teardown),
                cmocka_unit_test(dense_honest_messages_fit),
                cmocka_unit_test(a_small_frame_cannot_make_a_large_message),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
