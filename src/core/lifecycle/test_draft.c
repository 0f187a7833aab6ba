/* Requests that are made in slices: they are invisible until accepted, other calls in between do not matter,
 * and the log gives the same state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#define JOBS    20000u
#define RECORDS 64u

static struct {
        struct buf log[64], records[RECORDS];
        size_t count;
} kept;

static void on_event(void *arg, const struct event *e)
{
        (void)arg;
        assert_true(kept.count < 64);
        event_pack(&kept.log[kept.count++], e);
}
static void on_keep(void *arg, uint64_t request, struct str record)
{
        (void)arg;
        assert_true(request < RECORDS);
        buf_reset(&kept.records[request]);
        buf_str(&kept.records[request], record);
}
static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        (void)arg, (void)err;
        assert_true(request < RECORDS && kept.records[request].n);
        buf_str(ret, buf_view(&kept.records[request]));
        return 0;
}

static struct core *new_core(bool shadow)
{
        const struct core_world world = {NULL,        on_event,     bare_history, on_keep, bare_forget,
                                         bare_assign, bare_control, on_load,      NULL,    bare_go};
        const struct core_config config = {.lease_ms = 86400000, .rekey_slice = 5, .shadow = shadow};
        struct core *c = core_new(&config, &world);

        core_clock(c, 1700000000000, 1000);
        return c;
}

static int setup(void **state)
{
        *state = new_core(false);
        return 0;
}

static int teardown(void **state)
{
        const char *bad = core_check(*state);

        if (bad)
                fail_msg("%s", bad);
        core_free(*state);
        for (size_t i = 0; i < 64; i++)
                buf_deinit(&kept.log[i]);
        for (size_t i = 0; i < RECORDS; i++)
                buf_deinit(&kept.records[i]);
        memset(&kept, 0, sizeof(kept));
        buf_deinit(&bare_assigned);
        return 0;
}

/* Describes `jobs` jobs, which ask for `kinds` different sizes in turn. */
static void describe(struct submission *s, struct buf *items, unsigned jobs, unsigned kinds)
{
        static unsigned char serial;
        struct submission_part *p;

        *s = (struct submission){.owner = STR("ann@lab"), .at_ms = 1700000000000};
        s->uuid[0] = 200;
        s->uuid[1] = ++serial;
        p = submission_add_part(s);
        submission_add_attribute(p, STR("RequestMemory"), STR("$(size)"), true);
        submission_add_attribute(p, STR("Kind"), STR("\"$(Process)\""), true);
        submission_add_variable(p, STR("size"));
        for (unsigned i = 0; i < jobs; i++)
                buf_printf(items, "%u\n", 100 + i % kinds);
        p->items = buf_view(items);
        p->rows = jobs;
        p->steps = 1;
}

static const char *const plain[] = {"Cmd", "\"x\"", NULL};

static void assert_same_after_replay(struct core *c)
{
        struct buf live = {0};

        core_snapshot(c, &live);
        for (int shadow = 0; shadow < 2; shadow++) {
                struct core *again = new_core(shadow);
                struct buf b = {0};

                for (size_t i = 0; i < kept.count; i++)
                        assert_int_equal(core_replay(again, buf_view(&kept.log[i]), NULL), 0);
                core_snapshot(again, &b);
                assert_int_equal(b.n, live.n);
                assert_memory_equal(b.p, live.p, b.n);
                assert_null(core_check(again));
                core_free(again);
                buf_deinit(&b);
        }
        buf_deinit(&live);
}

static void test_others_go_on_meanwhile(void **state)
{
        struct core *c = *state;
        struct buf items = {0};
        struct submission s;
        struct core_draft *d;
        struct core_request r;
        unsigned slices = 0;
        uint64_t id;
        bool more = true, existing;

        describe(&s, &items, JOBS, 100);
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &d, NULL), 0);
        for (; more; slices++) {
                struct core_command remove = {.action = CORE_ACT_REMOVE, .request = 1};

                assert_int_equal(core_draft_some(d, &more, NULL), 0);
                assert_int_equal(core_act(c, &remove, &id, NULL), CORE_UNKNOWN);
                assert_int_equal(core_request_get(c, 1, &r), CORE_UNKNOWN);
                assert_int_equal(core_request_by_uuid(c, s.uuid, s.owner), 0);
                if (slices < 5) {
                        submit(c, NULL, 2, plain);
                        assert_int_equal(core_request_last(c), 2 + slices);
                }
                core_clock(c, c->now_ms + 1000, c->steady_ms + 1000);
                core_tick(c);
                core_match(c);
                assert_null(core_check(c));
        }
        assert_true(slices > 50);
        assert_int_equal(core_draft_submit(d, &id, &existing, NULL), 0);
        core_draft_free(d);
        assert_int_equal(id, 1);
        assert_false(existing);
        assert_int_equal(core_request_get(c, 1, &r), 0);
        assert_int_equal(r.counts.idle, JOBS);
        assert_int_equal(r.submitted_ms, 1700000000000); /* the time of the submit, not of the acceptance */
        assert_int_equal(request_find(c, 1)->bucket_count, 100);
        for (uint64_t at = 0, next; (next = core_request_next(c, at)); at = next)
                assert_int_equal(next, at + 1);
        assert_int_equal(core_request_last(c), 6);
        assert_int_equal(submit(c, NULL, 1, plain)->id, 7);
        assert_same_after_replay(c);
        submission_deinit(&s);
        buf_deinit(&items);
}

/* An agent whose conditions refer to another attribute connects during the split: the result is as if it had
 * been there before. */
static void test_a_name_becomes_significant(void **state)
{
        struct core *c = *state;
        struct buf items = {0};
        struct submission s;
        struct core_draft *d;
        uint64_t id;
        bool more = true, existing;

        describe(&s, &items, 900, 10);
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &d, NULL), 0);
        assert_int_equal(core_draft_some(d, &more, NULL), 0);
        assert_true(more);
        offer(c, "n1", "[Cpus=0; Memory=1; Requirements=TARGET.Kind != \"7\"]");
        while (more)
                assert_int_equal(core_draft_some(d, &more, NULL), 0);
        offer(c, "n2", "[Cpus=0; Memory=1; Requirements=TARGET.Kind != \"7\" && TARGET.Other =!= 8]");
        assert_int_equal(core_draft_submit(d, &id, &existing, NULL), 0);
        core_draft_free(d);
        assert_int_equal(request_find(c, id)->bucket_count, 900);
        submission_deinit(&s);
        buf_deinit(&items);
}

static void test_twice_under_way_is_one_request(void **state)
{
        struct core *c = *state;
        struct buf items = {0};
        struct submission s, other;
        struct core_draft *one, *two, *three;
        uint64_t id, again;
        bool more = true, existing;

        describe(&s, &items, 1000, 10);
        other = s;
        other.owner = STR("bob@lab");
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &one, NULL), 0);
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &two, NULL), 0);
        assert_int_equal(core_draft_new(c, &other, CORE_DRAFT_SUBMIT, &three, NULL), 0);
        while (more)
                assert_int_equal(core_draft_some(two, &more, NULL), 0);
        assert_int_equal(core_draft_submit(two, &id, &existing, NULL), 0);
        assert_false(existing);
        assert_int_equal(core_draft_submit(one, &again, &existing, NULL), 0);
        assert_true(existing);
        assert_int_equal(again, id);
        more = true;
        while (more)
                assert_int_equal(core_draft_some(three, &more, NULL), 0);
        assert_int_equal(core_draft_submit(three, &again, &existing, NULL), 0);
        assert_false(existing);
        assert_int_not_equal(again, id);
        core_draft_free(one);
        core_draft_free(two);
        core_draft_free(three);
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &one, NULL), 0);
        assert_int_equal(core_draft_some(one, &more, NULL), 0);
        assert_false(more);
        assert_int_equal(core_draft_number(one, &existing), id);
        assert_true(existing);
        core_draft_free(one);
        assert_same_after_replay(c);
        submission_deinit(&s);
        buf_deinit(&items);
}

/* Two requests, of which only one fits into a limit: the second is refused when it is accepted. */
static void test_limits_count_when_it_is_accepted(void **state)
{
        struct core *c = *state;
        struct buf items[2] = {{0}, {0}};
        struct submission s[2];
        struct core_draft *d[2];
        struct err err;
        uint64_t id;
        bool more, existing;

        core_limit_set(c, STR("queued/*"), 1500);
        for (int i = 0; i < 2; i++) {
                describe(&s[i], &items[i], 1000, 10);
                assert_int_equal(core_draft_new(c, &s[i], CORE_DRAFT_SUBMIT, &d[i], &err), 0);
                for (more = true; more;)
                        assert_int_equal(core_draft_some(d[i], &more, NULL), 0);
        }
        assert_int_equal(core_draft_submit(d[0], &id, &existing, &err), 0);
        assert_int_equal(core_draft_submit(d[1], &id, &existing, &err), CORE_TOO_MANY);
        assert_non_null(strstr(err.text, "may have 1500"));
        for (int i = 0; i < 2; i++) {
                core_draft_free(d[i]);
                submission_deinit(&s[i]);
                buf_deinit(&items[i]);
        }
        assert_int_equal(submit(c, NULL, 1, plain)->id, 2); /* the number was not used */
        assert_same_after_replay(c);
}

static int64_t kib_used(struct core *c)
{
        return limits_find(c->limits, STR("queued_kib/ann@lab"))->used;
}

/* The memory of an owner's requests counts until they are forgotten; ended ones make room when it is
 * short. */
static void test_memory_of_one_owner(void **state)
{
        static const char *const large[] = {"Cmd", "\"/bin/true\"", NULL};
        struct core *c = *state, *again;
        struct core_command remove = {.action = CORE_ACT_REMOVE, .request = 1};
        struct err err;
        uint64_t n;

        core_limit_set(c, STR("queued_kib/*"), 10);
        for (int i = 0; i < 5; i++)
                submit(c, NULL, 1, large);
        assert_int_equal(kib_used(c), 10);
        assert_int_equal(try_submit(c, NULL, 1, large, &err), CORE_TOO_MANY);
        assert_non_null(strstr(err.text, "10 KiB in the queue and may have 10 (max_queued_bytes)"));
        again = new_core(false);
        for (size_t i = 0; i < kept.count; i++)
                assert_int_equal(core_replay(again, buf_view(&kept.log[i]), NULL), 0);
        assert_int_equal(kib_used(again), 10);
        core_free(again);
        assert_int_equal(core_act(c, &remove, &n, NULL), 0);
        assert_int_equal(kib_used(c), 10);
        core_tick(c);
        assert_null(request_find(c, 1));
        assert_int_equal(kib_used(c), 8);
        remove.request = 2; /* only a submit makes room */
        assert_int_equal(core_act(c, &remove, &n, NULL), 0);
        core_tick(c);
        assert_int_equal(kib_used(c), 6);
        submit(c, NULL, 1, large);
        assert_null(core_check(c));
        assert_same_after_replay(c);
}

/* A repeated submit is the same request, even after that was forgotten; with other contents it is refused.
 * Another user's request with that uuid is a request of its own, whoever came first. */
static void test_uuids_of_forgotten_requests(void **state)
{
        struct core *c = *state;
        struct core_command remove = {.action = CORE_ACT_REMOVE, .request = 1};
        struct buf items[2] = {{0}, {0}};
        struct submission s[2];
        bool existing = false;
        struct err err;
        uint64_t id, n;

        describe(&s[0], &items[0], 20, 2);
        describe(&s[1], &items[1], 20, 3);
        memcpy(s[1].uuid, s[0].uuid, sizeof(s[1].uuid));
        for (int i = 0; i < 2; i++)
                s[i].digest = submission_digest(&s[i]);
        assert_int_not_equal(s[0].digest, s[1].digest);
        assert_int_equal(core_submit(c, &s[0], false, &id, &existing, &err), 0);
        assert_int_equal(id, 1);
        assert_false(existing);
        for (int forgotten = 0; forgotten < 2; forgotten++) {
                assert_int_equal(request_find(c, 1) == NULL, forgotten);
                assert_int_equal(core_submit(c, &s[0], false, &id, &existing, &err), 0);
                assert_int_equal(id, 1);
                assert_true(existing);
                assert_int_equal(core_submit(c, &s[1], false, &id, &existing, &err), CORE_CONFLICT);
                s[0].owner = STR("bob@lab");
                assert_int_equal(core_submit(c, &s[0], false, &id, &existing, &err), 0);
                assert_int_equal(id, 2);
                assert_int_equal(existing, forgotten);
                s[0].owner = STR("ann@lab");
                assert_same_after_replay(c);
                assert_int_equal(core_act(c, &remove, &n, NULL), forgotten ? CORE_UNKNOWN : 0);
                core_clock(c, c->now_ms + 2 * 86400000, c->steady_ms);
                core_tick(c);
        }
        for (int i = 0; i < 2; i++) {
                submission_deinit(&s[i]);
                buf_deinit(&items[i]);
        }
}

/* Errors are reported before acceptance, and a draft may be freed at any time. */
static void test_forgotten(void **state)
{
        struct core *c = *state;
        struct buf items = {0};
        struct submission s;
        struct core_draft *d, *left;
        struct err err = {""};
        bool more = true;
        int r = 0;

        describe(&s, &items, 2000, 1500);
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &d, NULL), 0);
        while (!r && more)
                r = core_draft_some(d, &more, &err);
        assert_int_equal(r, CORE_INVALID);
        assert_non_null(strstr(err.text, "more than 1000 ways"));
        core_draft_free(d);
        for (int slices = 0; slices < 8; slices++) {
                assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &d, NULL), 0);
                for (int i = 0; i < slices; i++)
                        assert_int_equal(core_draft_some(d, &more, NULL), 0);
                core_draft_free(d);
                assert_null(core_check(c));
        }
        assert_int_equal(kept.count, 0);
        assert_int_equal(submit(c, NULL, 1, plain)->id, 1);
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_SUBMIT, &left, NULL), 0);
        assert_int_equal(core_draft_some(left, &more, NULL), 0); /* core_free frees it */
        submission_deinit(&s);
        buf_deinit(&items);
}

/* Classes are made anew while jobs of the request are held, removed, and given another priority. */
static void test_rekey_in_slices(void **state)
{
        struct core *c = *state;
        struct buf items = {0};
        struct submission s;
        struct core_command all = {.action = CORE_ACT_REMOVE, .request = 1};
        struct core_counts n;
        uint64_t id, count;
        bool existing;

        describe(&s, &items, JOBS, 100);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
        for (unsigned round = 0; round < 3; round++) {
                char ad[100];
                unsigned slices = 0;

                snprintf(ad, sizeof(ad), "[Cpus=0; Memory=1; Requirements=TARGET.Other%u =!= 8]", round);
                offer(c, "n1", ad);
                for (; core_rekey_slice(c); slices++) {
                        static const enum core_action actions[] = {CORE_ACT_HOLD, CORE_ACT_RELEASE,
                                                                   CORE_ACT_REMOVE, CORE_ACT_PRIORITY};
                        struct set some = {0};
                        struct core_command cmd = {.action = actions[(slices + round) % 4],
                                                   .request = id,
                                                   .members = &some,
                                                   .value = slices % 3};

                        if (slices > 20)
                                continue;
                        set_add_range(&some, slices * 900, slices * 900 + 1100);
                        assert_int_equal(core_act(c, &cmd, &count, NULL), 0);
                        set_deinit(&some);
                        assert_null(core_check(c));
                        kept.count = 0;
                }
                assert_true(slices > 50);
        }
        core_totals(c, &n);
        assert_int_equal(n.idle + n.held + n.removed, JOBS);
        offer(c, "n1", "[Cpus=0; Memory=1; Requirements=TARGET.Last =!= 8]");
        assert_int_equal(core_act(c, &all, &count, NULL), 0);
        core_clock(c, c->now_ms + 90000000, c->steady_ms);
        for (unsigned ticks = 0; core_request_next(c, 0) && ticks < 100; ticks++) {
                assert_non_null(c->classes->rekeying); /* the request is forgotten during the rekeying */
                core_tick(c);
                core_clock(c, c->now_ms + 90000000, c->steady_ms);
                kept.count = 0;
        }
        assert_int_equal(core_request_next(c, 0), 0);
        assert_false(core_rekey_slice(c));
        submission_deinit(&s);
        buf_deinit(&items);
}

/* Describes a part with `count` attribute names that nobody else uses, as attributes and in an expression. */
static void describe_names(struct submission *s, struct str owner, struct buf *room, unsigned from,
                           unsigned count)
{
        static unsigned char serial;
        struct submission_part *p;
        size_t at[2] = {0};

        *s = (struct submission){.owner = owner, .at_ms = 1700000000000};
        s->uuid[0] = 201;
        s->uuid[1] = ++serial;
        p = submission_add_part(s);
        buf_reset(room);
        buf_addz(room, "true");
        for (unsigned i = 0; i < count; i++)
                buf_printf(room, " || n%u", from + i);
        at[0] = room->n;
        buf_printf(room, "Own%u", from);
        at[1] = room->n;
        submission_add_attribute(p, STR("Requirements"), str_make(room->p, at[0]), false);
        submission_add_attribute(p, str_make(room->p + at[0], at[1] - at[0]), STR("1"), false);
        p->rows = p->steps = 1;
}

/* The attribute names of a draft are freed with it, and those of a request when it is forgotten. */
static void test_names_go_with_who_has_them(void **state)
{
        struct core *c = *state;
        uint32_t before = symbols_used(c->symbols);
        struct buf room = {0};
        struct submission s;
        uint64_t id;
        bool existing;

        for (unsigned i = 0; i < 2000; i++) { /* a million names in all */
                describe_names(&s, STR("ann@lab"), &room, i * 500, 500);
                assert_int_equal(core_submit(c, &s, true, &id, &existing, NULL), 0);
                submission_deinit(&s);
                assert_int_equal(symbols_used(c->symbols), before);
        }
        describe_names(&s, STR("ann@lab"), &room, 0, 500);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
        submission_deinit(&s);
        assert_int_equal(symbols_used(c->symbols), before + 501);
        request_free(c, request_find(c, id));
        assert_int_equal(symbols_used(c->symbols), before);
        buf_deinit(&room);
}

/* One owner's names do not use up those of others. */
static void test_names_of_an_owner_are_limited(void **state)
{
        struct core *c = *state;
        struct err err = {""};
        struct buf room = {0};
        struct submission s;
        uint64_t id;
        bool existing;
        int r = 0;

        for (unsigned i = 0; i < 60 && !r; i++) {
                describe_names(&s, STR("ann@lab"), &room, i * 1000, 999);
                r = core_submit(c, &s, false, &id, &existing, &err);
                submission_deinit(&s);
                assert_int_equal(r, i < 50 ? 0 : CORE_INVALID);
                while (kept.count > 1)
                        buf_deinit(&kept.log[--kept.count]);
        }
        assert_non_null(strstr(err.text, "50000"));
        describe_names(&s, STR("bob@lab"), &room, 900000, 999);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), 0);
        submission_deinit(&s);
        buf_deinit(&room);
}

/* Appends a list of `elements` names to a text in quotes. */
static void add_list(struct buf *out, unsigned elements)
{
        buf_char(out, '"');
        for (unsigned i = 0; i < elements; i++)
                buf_addz(out, "a,");
        buf_addz(out, "b\"");
}

/* Makes the draft of `s` to its end; returns the number of slices. */
static unsigned draft_slices(struct core *c, struct submission *s, void (*look)(const struct request *r))
{
        struct core_draft *d = NULL;
        unsigned slices = 0;
        bool more = true;

        s->owner = STR("ann@lab");
        s->uuid[0] = 202;
        s->uuid[1]++;
        assert_int_equal(core_draft_new(c, s, CORE_DRAFT_QUOTE, &d, NULL), 0);
        for (; more; slices++) {
                assert_int_equal(core_draft_some(d, &more, NULL), 0);
                if (look)
                        look(draft_request(d));
        }
        assert_null(request_cold(draft_request(d))->spooled_index);
        core_draft_free(d);
        return slices;
}

static const struct map *index_seen;
static unsigned index_made;

static void look_at_index(const struct request *r)
{
        const struct map *now = request_cold(r)->spooled_index;

        index_made += now && now != index_seen;
        index_seen = now;
}

/* The names of the files that a request brings are indexed once, and not for each of its parts: ten thousand
 * parts and sixty thousand files held the core for minutes. */
static void test_many_parts_and_files(void **state)
{
        struct core *c = *state;
        struct submission s = {0};
        BUF_CLEANUP struct buf names = {0};

        for (unsigned i = 0; i < 2000; i++)
                buf_printf(&names, "%05u", i);
        for (unsigned i = 0; i < 2000; i++)
                submission_add_file(&s)->name = str_make(names.p + (size_t)i * 5, 5);
        for (unsigned i = 0; i < 900; i++) {
                struct submission_part *p = submission_add_part(&s);

                submission_add_attribute(p, STR("TransferInput"), STR("\"00007\""), false);
                p->rows = p->steps = 1;
        }
        index_made = 0;
        assert_in_range(draft_slices(c, &s, look_at_index), 3, 1000);
        assert_int_equal(index_made, 1);
        submission_deinit(&s);
}

/* Parts with long lists of inputs are loaded in slices. */
static void test_parts_with_long_lists(void **state)
{
        struct core *c = *state;
        struct submission s = {0};
        BUF_CLEANUP struct buf list = {0};

        add_list(&list, 200000);
        for (unsigned i = 0; i < 10; i++) {
                struct submission_part *p = submission_add_part(&s);

                submission_add_attribute(p, STR("TransferInput"), buf_view(&list), false);
                p->rows = p->steps = 1;
        }
        assert_in_range(draft_slices(c, &s, NULL), 10, 100);
        submission_deinit(&s);
}

/* The labels of a list of inputs are found once for all classes of the part. */
static void test_classes_with_long_lists(void **state)
{
        static const struct str vault[] = {{"https://vault/", 14}};
        static const struct str secret[] = {{"secret", 6}};
        const struct core_store store = {
                .urls = {STR("vault"), vault, 1}, .labels = secret, .label_count = 1};
        const struct core_label label = {.name = STR("secret")};
        const struct core_data data = {&store, 1, &label, 1};
        struct core *c = *state;
        struct submission s;
        struct buf items = {0};
        BUF_CLEANUP struct buf list = {0};
        uint64_t steps;

        assert_int_equal(core_data_set(c, &data, NULL), 0);
        describe(&s, &items, 900, 900);
        add_list(&list, 20000);
        submission_add_attribute(&s.parts[0], STR("TransferInput"), buf_view(&list), false);
        steps = core_steps(c);
        draft_slices(c, &s, NULL);
        assert_in_range(core_steps(c) - steps, 2 * 20000, 10 * 20000);
        submission_deinit(&s);
        buf_deinit(&items);
}

/* Rows of inputs are filled in slices also where each member's list has thousands of common files. */
static void test_rows_with_long_lists(void **state)
{
        struct core *c = *state;
        struct submission s = {0};
        struct submission_part *p = submission_add_part(&s);
        BUF_CLEANUP struct buf list = {0};
        uint64_t id, slices = 0;
        bool existing;

        add_list(&list, 1000);
        buf_truncate(&list, list.n - 1);
        buf_addz(&list, ",http://a/$(Process)\"");
        submission_add_attribute(p, STR("TransferInput"), buf_view(&list), true);
        p->rows = 1;
        p->steps = 2000;
        s.owner = STR("ann@lab");
        assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
        while (inputs_fill_slice(c))
                slices++;
        assert_in_range(slices, 30, 1000);
        submission_deinit(&s);
}

/* Gives each of the parts a program of its own. room: for their texts. */
static void describe_programs(struct submission *s, struct buf *room, unsigned from, unsigned parts)
{
        *s = (struct submission){.at_ms = 1700000000000};
        buf_reset(room);
        for (unsigned i = 0; i < parts; i++)
                buf_printf(room, "\"/p%08u\"", from + i);
        for (unsigned i = 0; i < parts; i++) {
                struct submission_part *p = submission_add_part(s);

                submission_add_attribute(p, STR("Cmd"), str_make(room->p + (size_t)i * 12, 12), false);
                p->rows = p->steps = 1;
        }
}

/* Estimates are kept for programs that somebody runs: a draft leaves none, a long name takes no room, and one
 * user's programs leave room to others'. */
static void test_programs_that_nobody_runs(void **state)
{
        struct core *c = *state;
        size_t before = map_count(c->estimates->programs);
        struct submission s;
        BUF_CLEANUP struct buf room = {0}, name = {0};
        const struct request *r;
        bool existing;
        uint64_t id;

        describe_programs(&s, &room, 0, 900);
        draft_slices(c, &s, NULL);
        submission_deinit(&s);
        assert_int_equal(map_count(c->estimates->programs), before);
        for (unsigned i = 0; i < 10; i++) {
                describe_programs(&s, &room, i * 900, 900);
                s.owner = STR("ann@lab");
                s.uuid[0] = (unsigned char)(i + 1);
                assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
                submission_deinit(&s);
        }
        assert_in_range(map_count(c->estimates->programs), 15000, 20100);
        buf_addz(&name, "\"/");
        for (unsigned i = 0; i < 100000; i++)
                buf_char(&name, 'x');
        buf_char(&name, '"');
        id = test_submit(c, "bob@lab", 1, (const char *const[]){"Cmd", buf_z(&name), NULL});
        r = request_find(c, id);
        assert_non_null(r->parts[0].likes->above->above->above);
        assert_in_range(r->parts[0].likes->key_n, 500, 700);
        id = test_submit(c, "bob@lab", 1, (const char *const[]){"Cmd", "\"/y\"", NULL});
        assert_ptr_not_equal(request_find(c, id)->parts[0].likes, r->parts[0].likes);
        assert_ptr_equal(request_find(c, id)->parts[0].likes->above->above->above,
                         r->parts[0].likes->above->above->above);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_others_go_on_meanwhile, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_name_becomes_significant, setup, teardown),
                cmocka_unit_test_setup_teardown(test_twice_under_way_is_one_request, setup, teardown),
                cmocka_unit_test_setup_teardown(test_limits_count_when_it_is_accepted, setup, teardown),
                cmocka_unit_test_setup_teardown(test_memory_of_one_owner, setup, teardown),
                cmocka_unit_test_setup_teardown(test_uuids_of_forgotten_requests, setup, teardown),
                cmocka_unit_test_setup_teardown(test_forgotten, setup, teardown),
                cmocka_unit_test_setup_teardown(test_names_go_with_who_has_them, setup, teardown),
                cmocka_unit_test_setup_teardown(test_names_of_an_owner_are_limited, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rekey_in_slices, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_parts_and_files, setup, teardown),
                cmocka_unit_test_setup_teardown(test_parts_with_long_lists, setup, teardown),
                cmocka_unit_test_setup_teardown(test_classes_with_long_lists, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rows_with_long_lists, setup, teardown),
                cmocka_unit_test_setup_teardown(test_programs_that_nobody_runs, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
