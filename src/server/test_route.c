#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/api/route.h"
#include "server/openapi.h"

static void test_match(void **state)
{
        struct str p[2] = {0};

        (void)state;
        assert_true(route_match("/v1/jobs", STR("/v1/jobs"), p));
        assert_false(route_match("/v1/jobs", STR("/v1/jobs/"), p));
        assert_false(route_match("/v1/jobs", STR("/v1/job"), p));
        assert_true(route_match("/v1/jobs/{id}/why", STR("/v1/jobs/7.42/why"), p));
        assert_true(str_eqz(p[0], "7.42"));
        assert_false(route_match("/v1/jobs/{id}/why", STR("/v1/jobs//why"), p));
        assert_false(route_match("/v1/jobs/{id}", STR("/v1/jobs/7.42/why"), p));
        assert_true(route_match("/v1/jobs/{id}/files/{name+}", STR("/v1/jobs/7.4/files/a/b c"), p));
        assert_true(str_eqz(p[0], "7.4"));
        assert_true(str_eqz(p[1], "a/b c"));
        assert_false(route_match("/v1/jobs/{id}/files/{name+}", STR("/v1/jobs/7.4/files/"), p));
}

static void test_find(void **state)
{
        struct str p[2] = {0};
        bool known;

        (void)state;
        assert_non_null(route_find(HTTP_GET, STR("/v1/jobs"), p, &known));
        assert_ptr_equal(route_find(HTTP_HEAD, STR("/v1/jobs"), p, &known),
                         route_find(HTTP_GET, STR("/v1/jobs"), p, &known));
        assert_null(route_find(HTTP_DELETE, STR("/v1/jobs"), p, &known));
        assert_true(known);
        assert_null(route_find(HTTP_GET, STR("/v2/jobs"), p, &known));
        assert_false(known);
        assert_null(route_find(HTTP_GET, STR(""), p, &known));
        assert_ptr_equal(route_find(HTTP_GET, STR("/v1/openapi.json"), p, &known)->start, api_openapi);
}

static const char *method_key(enum http_method m)
{
        switch (m) {
        case HTTP_GET: return "get";
        case HTTP_POST: return "post";
        case HTTP_PUT: return "put";
        case HTTP_DELETE: return "delete";
        default: return "";
        }
}

/* The document describes the routes that there are, and no others. */
static void test_openapi(void **state)
{
        json_error_t e;
        json_t *doc = json_loadb(openapi_text, openapi_size, 0, &e), *paths = json_object_get(doc, "paths"),
               *path;
        size_t described = 0, routes = 0;
        const char *key;

        (void)state;
        assert_non_null(doc);
        json_object_foreach (paths, key, path) {
                const char *method;
                json_t *operation;

                json_object_foreach (path, method, operation)
                        described += strcmp(method, "parameters") != 0;
        }
        for (const struct route *r; (r = route_at(routes)); routes++) {
                BUF_CLEANUP struct buf name = {0};

                for (const char *c = r->path; *c; c++)
                        if (*c != '+')
                                buf_char(&name, *c);
                path = json_object_get(paths, buf_z(&name));
                if (!json_object_get(path, method_key(r->method)))
                        fail_msg("%s %s is not in the OpenAPI document", method_key(r->method), buf_z(&name));
        }
        assert_int_equal(described, routes);
        json_decref(doc);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_match),
                cmocka_unit_test(test_find),
                cmocka_unit_test(test_openapi),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
