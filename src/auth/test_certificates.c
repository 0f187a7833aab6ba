#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "auth/certificates.h"
#include "auth/test_kept.h"
#include "base/pack.h"

struct fixture {
        struct kept kept;
        struct certificates *cs;
};

/* Commits what the table changed and reads the table anew: what follows sees what was kept. */
static void reload(struct fixture *f)
{
        kept_commit(&f->kept);
        certificates_free(f->cs);
        assert_int_equal(certificates_load(f->kept.store, &f->cs, NULL), 0);
}

static int setup(void **state)
{
        struct fixture *f = mem_new(struct fixture);

        kept_init(&f->kept);
        assert_int_equal(certificates_load(f->kept.store, &f->cs, NULL), 0);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        certificates_free(f->cs);
        kept_deinit(&f->kept);
        free(f);
        return 0;
}

static void add(struct fixture *f, const char *name, const char *serial, int64_t until_ms)
{
        struct cert_facts facts = {.from_ms = 1, .until_ms = until_ms};

        strncpy(facts.name, name, sizeof(facts.name) - 1);
        strncpy(facts.serial, serial, sizeof(facts.serial) - 1);
        certificates_add(f->cs, &facts, NULL, f->kept.batch);
}

static void one_is_believed_until_revoked(void **state)
{
        struct fixture *f = *state;
        struct certificate c;
        size_t at = 0;

        add(f, "n1", "4a01", 5000);
        reload(f);
        assert_true(certificates_believed(f->cs, STR("4a01")));
        assert_true(certificates_believed(f->cs, STR("4A01"))); /* as TLS libraries print it */
        assert_false(certificates_believed(f->cs, STR("4a02")));
        assert_false(certificates_believed(f->cs, STR_NONE));
        assert_int_equal(certificates_revoke(f->cs, STR("n2"), 60, f->kept.batch), 0);
        assert_int_equal(certificates_revoke(f->cs, STR("n1"), 70, f->kept.batch), 1);
        assert_int_equal(certificates_revoke(f->cs, STR("n1"), 80, f->kept.batch), 0);
        assert_false(certificates_believed(f->cs, STR("4a01")));
        reload(f);
        assert_false(certificates_believed(f->cs, STR("4a01")));
        assert_true(certificates_next(f->cs, &at, &c));
        assert_string_equal(c.name, "n1");
        assert_int_equal(c.revoked_ms, 70);
        assert_int_equal(c.until_ms, 5000);
        assert_false(certificates_next(f->cs, &at, &c));
}

static void an_agent_is_revoked_whole(void **state)
{
        struct fixture *f = *state;

        add(f, "n1", "4a01", 5000);
        assert_int_equal(certificates_revoke(f->cs, STR("n1"), 5, f->kept.batch), 1);
        add(f, "n1", "4a02", 5000);
        add(f, "n1", "4a04", 5000);
        add(f, "n2", "4a03", 5000);
        assert_int_equal(certificates_revoke(f->cs, STR("n1"), 10, f->kept.batch), 2);
        assert_int_equal(certificates_revoke(f->cs, STR("n1"), 10, f->kept.batch), 0);
        reload(f);
        assert_false(certificates_believed(f->cs, STR("4a01")));
        assert_false(certificates_believed(f->cs, STR("4a02")));
        assert_true(certificates_believed(f->cs, STR("4a03")));
}

static void ended_ones_are_forgotten(void **state)
{
        struct fixture *f = *state;
        struct certificate c;
        size_t at = 0;

        add(f, "n1", "4a01", 5000);
        add(f, "n1", "4a02", 6000);
        certificates_revoke(f->cs, STR("n1"), 5, f->kept.batch);
        kept_commit(&f->kept);
        certificates_prune(f->cs, 5001, f->kept.batch);
        reload(f);
        assert_true(certificates_next(f->cs, &at, &c));
        assert_string_equal(c.serial, "4a02");
        assert_false(certificates_next(f->cs, &at, &c));
}

static void an_agent_has_enough_of_them(void **state)
{
        struct fixture *f = *state;

        for (unsigned i = 0; i < CERTIFICATES_OF_ONE; i++) {
                char serial[16];

                assert_false(certificates_enough(f->cs, STR("n1"), 4999));
                snprintf(serial, sizeof(serial), "4c%02x", i);
                add(f, "n1", serial, 5000);
        }
        assert_true(certificates_enough(f->cs, STR("n1"), 4999));
        assert_false(certificates_enough(f->cs, STR("n1"), 5000));
        assert_false(certificates_enough(f->cs, STR("n2"), 4999));
}

/* What is kept says what the agent may at most; a record from before ceilings has none. */
static void a_ceiling_is_kept(void **state)
{
        struct fixture *f = *state;
        struct cert_facts facts = {.name = "n1", .serial = "4b01", .from_ms = 1, .until_ms = 9000};
        BUF_CLEANUP struct buf old = {0};
        struct certificate c;

        certificates_add(f->cs, &facts,
                         &(struct cert_ceiling){STR("ann@x,*@y"), STR("fast"), STR("none"), STR("Cpus=2")},
                         f->kept.batch);
        pack_u64(&old, 1);
        pack_str(&old, STR("n2"));
        pack_i64(&old, 1);
        pack_i64(&old, 9000);
        store_batch_blob_put(f->kept.batch, STR("issued/4b02"), buf_view(&old));
        kept_commit(&f->kept);
        reload(f);
        assert_true(certificates_find(f->cs, STR("4B01"), &c));
        assert_true(str_eq(c.ceiling.owners, STR("ann@x,*@y")));
        assert_true(str_eq(c.ceiling.tags, STR("fast")));
        assert_true(str_eq(c.ceiling.labels, STR("none")));
        assert_true(str_eq(c.ceiling.most, STR("Cpus=2")));
        assert_true(certificates_find(f->cs, STR("4b02"), &c));
        assert_int_equal(c.ceiling.owners.n + c.ceiling.tags.n + c.ceiling.labels.n, 0);
        certificates_revoke(f->cs, STR("n1"), 5, f->kept.batch);
        assert_false(certificates_find(f->cs, STR("4b01"), &c));
}

static void a_damaged_record_is_named(void **state)
{
        struct fixture *f = *state;
        struct certificates *cs = NULL;
        struct err err = {0};

        store_batch_blob_put(f->kept.batch, STR("revoked/77"), STR("rubbish"));
        kept_commit(&f->kept);
        assert_int_equal(certificates_load(f->kept.store, &cs, &err), -EBADMSG);
        assert_null(cs);
        assert_non_null(strstr(err.text, "revoked/77"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
        const struct CMUnitTest tests[] = {
                T(one_is_believed_until_revoked), T(a_ceiling_is_kept),
                T(an_agent_is_revoked_whole),     T(ended_ones_are_forgotten),
                T(an_agent_has_enough_of_them),   T(a_damaged_record_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
