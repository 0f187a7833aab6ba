/* Ads of jobs of one kind differ only in attributes that core_job_differs names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "classad/print.h"
#include "core/query.h"
#include "core/test_help.h"

static struct str text_of(const struct core *c, const struct ad *ad, symbol name, struct buf *room)
{
        const struct expr *e = ad_find(ad, name);

        buf_reset(room);
        if (e)
                expr_print(room, e, c->symbols);
        return buf_view(room);
}

/* Checks attributes of `one`, the ad of this member, that are different or missing in `other`, and those that
 * the template's ad does not have. */
static void compare(struct core *c, uint64_t request, uint32_t member, const struct ad *one,
                    const struct ad *other)
{
        BUF_CLEANUP struct buf a = {0}, b = {0};
        const struct expr *e;
        uint32_t at = 0;
        symbol name;

        while (ad_next(one, &at, &name, &e)) {
                struct str text = text_of(c, one, name, &a);

                if (ad_find_own(one, name) && core_job_scope(c, request, member, name) == CORE_SCOPE_TEMPLATE)
                        fail_msg("a job's own " STR_FMT " is not told of",
                                 STR_ARG(symbols_name(c->symbols, name)));
                if (str_eq(text, text_of(c, other, name, &b)))
                        continue;
                if (!core_job_differs(c, one, name) || !core_job_differs(c, other, name))
                        fail_msg(STR_FMT " is " STR_FMT " and " STR_FMT,
                                 STR_ARG(symbols_name(c->symbols, name)), STR_ARG(text),
                                 STR_ARG(buf_view(&b)));
        }
}

/* Returns the number of compared pairs. */
static size_t compare_all(struct core *c, const struct request *r)
{
        size_t pairs = 0;

        for (uint32_t i = 0; i < r->count; i++)
                for (uint32_t k = 0; k < r->count; k++) {
                        struct core_job_kind kinds[2];

                        if (i == k || !core_job_kind(c, r->id, i, &kinds[0]) ||
                            !core_job_kind(c, r->id, k, &kinds[1]) || kinds[0].part != kinds[1].part ||
                            kinds[0].state != kinds[1].state)
                                continue;
                        struct ad *one = core_job_ad(c, r->id, i), *other = core_job_ad(c, r->id, k);
                        assert_non_null(kinds[0].template_ad);
                        compare(c, r->id, i, one, other);
                        ad_free(one);
                        ad_free(other);
                        pairs++;
                }
        return pairs;
}

static void act(struct core *c, const struct request *r, enum core_action action, uint32_t first,
                uint32_t end, const char *reason, int64_t value)
{
        struct set members = {0};
        uint64_t n;

        set_add_range(&members, first, end);
        const struct core_command cmd = {.action = action,
                                         .request = r->id,
                                         .members = &members,
                                         .reason = str_of(reason),
                                         .value = value};
        assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
        set_deinit(&members);
}

static void test_jobs_of_one_kind(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, "a\nb\nc\nd\ne\nf\ng\nh\n", 8,
                                   (const char *const[]){"Cmd", "\"x\"", "~Args", "\"$(f)\"", "~Note",
                                                         "\"$(f) $(Process)\"", "GangSize", "2", NULL});
        struct core_job_kind kind;

        assert_int_equal(compare_all(c, r), 8 * 7);
        act(c, r, CORE_ACT_PRIORITY, 2, 3, "", 7);
        act(c, r, CORE_ACT_HOLD, 4, 6, "one reason", 0);
        core_clock(c, 1700000050000, 51000);
        act(c, r, CORE_ACT_HOLD, 6, 7, "another", 0);
        assert_true(compare_all(c, r) > 8);
        assert_false(core_job_kind(c, r->id, 8, &kind));
        assert_false(core_job_kind(c, r->id + 1, 0, &kind));
}

static void test_what_they_share(void **state)
{
        struct core *c = *state;
        struct request *r =
                submit(c, "a\nb\n", 2,
                       (const char *const[]){"Cmd", "\"x\"", "~Args", "\"$(f)\"", "Mine", "Args", NULL});
        struct ad *ad = core_job_ad(c, r->id, 1);
        struct core_job_kind kind;
        static const char *const shared[] = {"Cmd", "Mine", "Owner", "JobStatus", "NoSuchAttribute"};
        static const char *const own[] = {"ProcId", "Args", "GlobalJobId", "ServerTime", "JobPrio"};

        for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
                assert_false(core_job_differs(c, ad, symbols_intern(c->symbols, str_of(shared[i]))));
        for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
                assert_true(core_job_differs(c, ad, symbols_intern(c->symbols, str_of(own[i]))));
                assert_int_equal(core_job_scope(c, r->id, 1, symbols_intern(c->symbols, str_of(own[i]))),
                                 CORE_SCOPE_JOB);
        }
        assert_int_equal(core_job_scope(c, r->id, 1, c->attr.Owner), CORE_SCOPE_JOB);
        assert_int_equal(core_job_scope(c, r->id, 1, c->attr.JobStatus), CORE_SCOPE_STATE);
        assert_int_equal(core_job_scope(c, r->id, 1, symbols_intern(c->symbols, STR("Cmd"))),
                         CORE_SCOPE_TEMPLATE);
        assert_true(core_job_kind(c, r->id, 1, &kind) && kind.template_ad == core_request_ad(c, r->id, 0));
        ad_free(ad);
}

static void test_some_of_them(void **state)
{
        struct core *c = *state;
        struct request *r = submit(
                c, "a\nb\n", 2,
                (const char *const[]){"Cmd", "\"x\"", "~Args", "\"$(f)\"", "~Note", "\"$(f)$(f)\"", NULL});
        symbol args = symbols_intern(c->symbols, STR("Args")), note = symbols_intern(c->symbols, STR("Note"));
        struct ad *ad = core_job_ad_some(c, r->id, 1, &note, 1);
        struct str value = STR_NONE;

        assert_true(eval_string(&c->eval, ad, NULL, note, &value));
        assert_true(str_eqz(value, "bb"));
        assert_null(ad_find(ad, args));
        assert_non_null(ad_find(ad, c->attr.ProcId));
        ad_free(ad);
        ad = core_job_ad_some(c, r->id, 1, NULL, 0);
        assert_non_null(ad_find(ad, args));
        ad_free(ad);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_jobs_of_one_kind),
                TEST(test_what_they_share),
                TEST(test_some_of_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
