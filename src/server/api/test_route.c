#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/api/routes.h"
#include "server/calls/body.h"
#include "server/calls/openapi.h"

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
        assert_non_null(routes_find(HTTP_GET, STR("/v1/jobs"), p, &known));
        assert_ptr_equal(routes_find(HTTP_HEAD, STR("/v1/jobs"), p, &known),
                         routes_find(HTTP_GET, STR("/v1/jobs"), p, &known));
        assert_null(routes_find(HTTP_DELETE, STR("/v1/jobs"), p, &known));
        assert_true(known);
        assert_null(routes_find(HTTP_GET, STR("/v2/jobs"), p, &known));
        assert_false(known);
        assert_null(routes_find(HTTP_GET, STR(""), p, &known));
        assert_ptr_equal(routes_find(HTTP_GET, STR("/v1/openapi.json"), p, &known)->start, api_openapi);
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
        for (const struct route *r; (r = routes_at(routes)); routes++) {
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

static const struct route *route_of(enum http_method method, const char *path)
{
        struct str p[2] = {0};
        bool known;

        return routes_find(method, str_of(path), p, &known);
}

/* A wrong type is refused with the member's name and what is expected, whichever route it is. */
static void test_bodies(void **state)
{
        static const struct {
                enum http_method method;
                const char *path, *body, *says; /* NULL: nothing is wrong */
        } rows[] = {
                {HTTP_POST, "/v1/requests", "{'hold':true,'parts':[],'other':{'hold':7}}", NULL},
                {HTTP_POST, "/v1/requests", "{'hold':'yes'}",
                 "\"hold\" must be true or false, and is a string"},
                {HTTP_POST, "/v1/quote", "{'hold':1}", "\"hold\" must be true or false, and is an integer"},
                {HTTP_POST, "/v1/requests", "{'hold':null}", "\"hold\" must be true or false, and is null"},
                {HTTP_POST, "/v1/requests", "{'parts':{}}", "\"parts\" must be a list, and is an object"},
                {HTTP_POST, "/v1/requests", "{'parts':[{},{'attributes':{'Cmd':7}}]}",
                 "\"parts[1].attributes.Cmd\" must be a string, and is an integer"},
                {HTTP_POST, "/v1/requests", "{'parts':[{'late':['a',['b']]}]}",
                 "\"parts[0].late[1]\" must be a string, and is a list"},
                {HTTP_POST, "/v1/requests", "{'parts':[{'items_upload':7}]}",
                 "\"parts[0].items_upload\" must be a string, and is an integer"},
                {HTTP_POST, "/v1/requests", "{'parts':[{'steps':1.5}]}",
                 "\"parts[0].steps\" must be an integer, and is a number"},
                {HTTP_POST, "/v1/requests", "{'parts':[{'rows':-1}]}",
                 "\"parts[0].rows\" must be at least 0"},
                {HTTP_POST, "/v1/requests", "{'spooled':[{'executable':'no'}]}",
                 "\"spooled[0].executable\" must be true or false, and is a string"},
                {HTTP_POST, "/v1/requests", "{'spooled':[{'size':'9'}]}",
                 "\"spooled[0].size\" must be an integer, and is a string"},
                {HTTP_POST, "/v1/requests", "{'hold_results':'true'}",
                 "\"hold_results\" must be true or false, and is a string"},
                {HTTP_POST, "/v1/requests", "{'origin':{'hops_left':65}}",
                 "\"origin.hops_left\" must be at most 64"},
                {HTTP_PUT, "/v1/requests/7/lease", "{'lease_ms':'10'}",
                 "\"lease_ms\" must be an integer, and is a string"},
                {HTTP_POST, "/v1/requests/7/taken", "{'members':7}",
                 "\"members\" must be a string, and is an integer"},
                {HTTP_POST, "/v1/actions", "{'ids':'7'}", "\"ids\" must be a list, and is a string"},
                {HTTP_POST, "/v1/actions", "{'ids':[7]}", "\"ids[0]\" must be a string, and is an integer"},
                {HTTP_POST, "/v1/actions", "{'value':'9'}", "\"value\" must be an integer, and is a string"},
                {HTTP_POST, "/v1/actions", "{'reason':[]}", "\"reason\" must be a string, and is a list"},
                {HTTP_POST, "/v1/tokens", "{'uses':'once'}", "\"uses\" must be an integer, and is a string"},
                {HTTP_POST, "/v1/tokens", "{'expires_s':-5}", "\"expires_s\" must be at least 1"},
                {HTTP_POST, "/v1/tokens", "{'owners':['a']}", "\"owners\" must be a string, and is a list"},
                {HTTP_PUT, "/v1/credentials/x", "{'urls':'http://a/'}",
                 "\"urls\" must be a list, and is a string"},
                {HTTP_PUT, "/v1/requests/7/credentials/x", "{'urls':[7]}",
                 "\"urls[0]\" must be a string, and is an integer"},
                {HTTP_GET, "/v1/jobs", "{'ids':7}", NULL},
        };
        struct bodies *b = routes_bodies();

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char text[200];
                json_t *doc;
                struct err err = {""};
                int r;

                for (size_t k = 0; k <= strlen(rows[i].body); k++)
                        text[k] = rows[i].body[k] == '\'' ? '"' : rows[i].body[k];
                doc = json_loads(text, 0, NULL);
                assert_non_null(doc);
                r = body_check(b, route_of(rows[i].method, rows[i].path), doc, &err);
                assert_int_equal(r, rows[i].says ? -EINVAL : 0);
                assert_string_equal(err.text, rows[i].says ? rows[i].says : "");
                json_decref(doc);
        }
        bodies_free(b);
}

/* Each member that is described for a body has a type, so that none escapes the check. */
static void check_described(const json_t *doc, const json_t *schema, const char *where)
{
        const char *ref = json_string_value(json_object_get(schema, "$ref"));
        json_t *properties, *one;
        const char *key;

        if (ref)
                schema = json_object_get(json_object_get(json_object_get(doc, "components"), "schemas"),
                                         strrchr(ref, '/') + 1);
        if (!json_is_string(json_object_get(schema, "type")))
                fail_msg("%s has no type", where);
        properties = json_object_get(schema, "properties");
        json_object_foreach (properties, key, one)
                check_described(doc, one, key);
        if (json_object_get(schema, "items"))
                check_described(doc, json_object_get(schema, "items"), where);
}

static void test_described(void **state)
{
        json_t *doc = json_loadb(openapi_text, openapi_size, 0, NULL), *paths = json_object_get(doc, "paths"),
               *path;
        unsigned bodies = 0;
        const char *key;

        (void)state;
        json_object_foreach (paths, key, path) {
                const char *method;
                json_t *operation;

                json_object_foreach (path, method, operation) {
                        const json_t *content =
                                json_object_get(json_object_get(operation, "requestBody"), "content");
                        const json_t *json = json_object_get(content, "application/json");

                        if (!json)
                                continue;
                        check_described(doc, json_object_get(json, "schema"), key);
                        bodies++;
                }
        }
        assert_true(bodies > 5);
        json_decref(doc);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_match),     cmocka_unit_test(test_find),
                cmocka_unit_test(test_openapi),   cmocka_unit_test(test_bodies),
                cmocka_unit_test(test_described),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
