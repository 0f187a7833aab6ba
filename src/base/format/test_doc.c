#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/format/doc.h"

static struct doc *read_doc(const char *text)
{
        struct doc *d = NULL;
        struct err err = {""};

        if (doc_parse("f", str_of(text), &d, &err) != 0)
                fail_msg("%s", err.text);
        return d;
}

static void is_a_tree(void **state)
{
        struct doc *d =
                read_doc("limits:\n  sw: 2\n  db: {units: 5, who: [ann, 'bob x']}\nempty:\nquoted: ''\n");
        const struct doc *db = doc_get(doc_get(d, "limits"), "db"), *who = doc_get(db, "who");
        uint64_t n;

        (void)state;
        assert_int_equal(d->kind, DOC_MAP);
        assert_int_equal(d->count, 3);
        assert_int_equal(db->line, 3);
        assert_string_equal(db->file, "f");
        assert_true(str_eqz(db->key, "db"));
        assert_int_equal(doc_count(doc_get(db, "units"), &n, NULL), 0);
        assert_int_equal(n, 5);
        assert_int_equal(who->kind, DOC_LIST);
        assert_int_equal(who->count, 2);
        assert_true(str_eqz(who->first->next->text, "bob x"));
        assert_null(who->first->next->next);
        assert_true(doc_get(d, "empty")->empty);
        assert_false(doc_get(d, "quoted")->empty);
        assert_null(doc_get(d, "other"));
        assert_null(doc_get(NULL, "other"));
        assert_null(doc_get(who, "other"));
        doc_free(d);
}

static void may_be_empty(void **state)
{
        (void)state;
        assert_null(read_doc(""));
        assert_null(read_doc("# nothing\n"));
        assert_null(read_doc("---\n"));
        doc_free(NULL);
}

static void names_the_place(void **state)
{
        static const struct {
                const char *text, *says;
        } bad[] = {
                {"a: 1\na: 2\n", "f:2: 'a' is set in line 1 already"},
                {"a: 'x\n", "f:"},
                {"\n[a]: 1\n", "f:2: a setting's name must be a word"},
                {"a: 1\n---\nb: 2\n", "f:3: a second document begins here"},
                {"a: \"x\\0y\"\n", "f:1: a value holds a NUL byte"},
                {"a: &x [*x]\n", "f:1: this is nested too deep"},
                {"a:\n  - b: 1\n\t  c: 2\n", "f:3: the line begins with a tab; YAML is indented with blanks"},
                {"a:\n  b: 1\n   c: 2\n", "f:3: mapping values are not allowed in this context: the line is "
                                          "indented too far, or a text with ': '"},
                {"a:\n    b: 1\n  c: 2\n", "f:3: did not find expected key: the line is indented otherwise"},
                {"a: 1\nb\nc: 2\n", "f:3: could not find expected ':': a setting is written `name: value`"},
                {"a: - b\n", "f:1: block sequence entries are not allowed in this context: a list begins in"},
                {"a: %b\n", "f:1: found character that cannot start any token: a text that begins with such"},
                {"a: 1\nb: M\xfcller\n", "f:2: invalid leading UTF-8 octet: the file is not in UTF-8"},
                {"a: 1\nb: x\x01\n",
                 "f:2: control characters are not allowed: the file is not in UTF-8, or has"},
                {"a: 'b\nc: 2\n", "f:3: found unexpected end of stream: a quote is not closed"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct doc *d = NULL;
                struct err err = {""};

                assert_int_equal(doc_parse("f", str_of(bad[i].text), &d, &err), -EINVAL);
                assert_null(d);
                if (strncmp(err.text, bad[i].says, strlen(bad[i].says)) != 0)
                        fail_msg("\"%s\" does not begin with \"%s\"", err.text, bad[i].says);
        }
}

/* Ten levels of ten aliases each would be 10^10 nodes. */
static void does_not_grow(void **state)
{
        struct buf BUF_CLEANUP text = {0};
        struct doc *d;
        struct err err = {""};

        (void)state;
        buf_addz(&text, "a0: &a0 x\n");
        for (int i = 1; i <= 10; i++) {
                buf_printf(&text, "a%d: &a%d [", i, i);
                for (int k = 0; k < 10; k++)
                        buf_printf(&text, "%s*a%d", k ? ", " : "", i - 1);
                buf_addz(&text, "]\n");
        }
        assert_int_equal(doc_parse("f", buf_view(&text), &d, &err), -EINVAL);
        assert_non_null(strstr(err.text, "the file holds too many values"));
        buf_reset(&text);
        buf_addz(&text, "a: &a '");
        for (unsigned i = 0; i < (1u << 20); i++)
                buf_char(&text, 'x');
        buf_addz(&text, "'\nb: [");
        for (unsigned i = 0; i < 70; i++)
                buf_printf(&text, "%s*a", i ? ", " : "");
        buf_addz(&text, "]\n");
        assert_int_equal(doc_parse("f", buf_view(&text), &d, &err), -EINVAL);
        assert_string_equal(err.text, "f:1: the file's values are too long");
}

static int count_words(void *arg, struct str word, struct err *err)
{
        if (str_eqz(word, "bad"))
                return err_set(err, -EINVAL, "no such word");
        ++*(int *)arg;
        return 0;
}

static void reads_values(void **state)
{
        struct doc *d = read_doc("yes: On\nsize: 2KiB\ntime: 5m\nreal: 0.5\nwords: [a, b]\nword: a\n"
                                 "bad: [a, bad]\nmap: {x: 1}\nnan: .nan\n");
        struct err err = {""};
        uint64_t n;
        double real;
        bool yes;
        int words = 0;

        (void)state;
        assert_true(doc_bool(doc_get(d, "yes"), &yes, NULL) == 0 && yes);
        assert_true(doc_size(doc_get(d, "size"), &n, NULL) == 0 && n == 2048);
        assert_true(doc_duration(doc_get(d, "time"), &n, NULL) == 0 && n == 300000);
        assert_true(doc_number(doc_get(d, "real"), &real, NULL) == 0 && real == 0.5);
        assert_int_equal(doc_number(doc_get(d, "nan"), &real, NULL), -EINVAL);
        assert_int_equal(doc_words(doc_get(d, "words"), count_words, &words, NULL), 0);
        assert_int_equal(doc_words(doc_get(d, "word"), count_words, &words, NULL), 0);
        assert_int_equal(words, 3);
        assert_int_equal(doc_words(doc_get(d, "bad"), count_words, &words, &err), -EINVAL);
        assert_string_equal(err.text, "f:7: no such word");
        assert_int_equal(doc_words(doc_get(d, "map"), count_words, &words, &err), -EINVAL);
        assert_string_equal(err.text, "f:8: map must be a list of words, not a map");
        assert_int_equal(doc_count(doc_get(d, "time"), &n, &err), -EINVAL);
        assert_string_equal(err.text, "f:3: time: '5m' is not a whole number");
        doc_free(d);
}

static void knows_its_keys(void **state)
{
        static const char *const keys[] = {"units", "name", NULL};
        struct doc *d = read_doc("name: x\nunit: 3\n");
        struct err err = {""};

        (void)state;
        assert_int_equal(doc_only(d, keys, &err), -EINVAL);
        assert_string_equal(err.text, "f:2: there is no setting 'unit'; did you mean units?");
        assert_int_equal(doc_only(d->first, keys, &err), -EINVAL);
        doc_free(d);
        d = read_doc("foo: 3\n"); /* as far from "name" as a word can be */
        assert_int_equal(doc_only(d, keys, &err), -EINVAL);
        assert_string_equal(err.text, "f:1: there is no setting 'foo'");
        doc_free(d);
}

/* An alias repeats the names of a map, which are compared with each other again. */
static void many_settings_side_by_side(void **state)
{
        BUF_CLEANUP struct buf text = {0};
        struct doc *d = NULL;
        struct err err = {""};

        (void)state;
        buf_addz(&text, "a: &a {");
        for (int i = 0; i < 5000; i++)
                buf_printf(&text, "%x,", i);
        buf_addz(&text, "}\nb: [*a, *a, *a]\n");
        doc_free(read_doc(buf_z(&text)));
        buf_addz(&text, "c: [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n");
        assert_int_not_equal(doc_parse("f", buf_view(&text), &d, &err), 0);
        assert_string_equal(err.text, "f:1: there are too many settings side by side");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_a_tree),
                cmocka_unit_test(may_be_empty),
                cmocka_unit_test(names_the_place),
                cmocka_unit_test(does_not_grow),
                cmocka_unit_test(many_settings_side_by_side),
                cmocka_unit_test(reads_values),
                cmocka_unit_test(knows_its_keys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
