/* GET /.well-known/drover: what this server is and where it is reached, for whoever has found its domain. The
 * description is signed with the key of the server's authority, whose fingerprint every token has, so that a
 * copy at another web server is as good. It does not change while the server runs. */
#include <stdio.h>
#include <unistd.h>

#include "auth/ca.h"
#include "base/format/base64.h"
#include "server/access/access.h"
#include "server/api/routes.h"

static void add_address(struct json *j, const char *host, struct str port)
{
        BUF_CLEANUP struct buf address = {0};

        buf_printf(&address, "https://%s:" STR_FMT, host, STR_ARG(port));
        json_str(j, buf_view(&address));
}

/* Where the API listens on all addresses, the names of the settings say by which it is reached. */
static void write_addresses(struct json *j, const struct config *config)
{
        struct str listen = str_of(config->api_listen), port;
        ptrdiff_t colon = str_rfind(listen, ':');
        char name[256] = "localhost";

        if (colon < 0)
                return;
        port = str_skip(listen, (size_t)colon + 1);
        MEM_CLEANUP char *host = str_dupz(str_head(listen, (size_t)colon));
        if (strcmp(host, "0.0.0.0") != 0 && strcmp(host, "[::]") != 0 && *host) {
                add_address(j, host, port);
                return;
        }
        for (size_t i = 0; i < config->names.count; i++)
                add_address(j, config->names.items[i], port);
        if (config->names.count == 0 && gethostname(name, sizeof(name) - 1) == 0)
                add_address(j, name, port);
}

static void write_description(const struct server *s, struct buf *out)
{
        struct json j = {.out = out};

        json_open(&j, '{');
        json_kstrz(&j, "service", "drover");
        json_kstrz(&j, "version", DROVER_VERSION);
        json_kstrz(&j, "uuid", s->uuid);
        json_kstrz(&j, "domain", s->config.domain);
        json_kstrz(&j, "fingerprint", ca_fingerprint(s->access->ca));
        json_key(&j, "api");
        json_open(&j, '[');
        write_addresses(&j, &s->config);
        json_close(&j, ']');
        json_key(&j, "interfaces");
        json_open(&j, '[');
        json_strz(&j, "/v1/openapi.json");
        json_strz(&j, "/ga4gh/tes/v1/service-info");
        if (s->config.sssrmap.on)
                json_strz(&j, "/SSSRMAP3");
        json_close(&j, ']');
        json_close(&j, '}');
}

static int sign_description(const struct server *s, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf text = {0}, signature = {0}, encoded = {0};
        struct json j = {.out = out};
        int r;

        write_description(s, &text);
        r = ca_sign(s->access->ca, buf_view(&text), &signature, err);
        if (r != 0)
                return r;
        base64_encode(&encoded, buf_view(&signature));
        json_open(&j, '{');
        json_kstr(&j, "description", buf_view(&text));
        json_kstr(&j, "signature", buf_view(&encoded));
        json_kstr(&j, "authority", ca_cert_pem(s->access->ca));
        json_close(&j, '}');
        return 0;
}

static void describe(struct server *s, struct call *c)
{
        struct access *a = s->access;
        struct err err = {""};

        if (!a->description.n && sign_description(s, &a->description, &err) != 0) {
                call_fail_err(c, 500, "signature", &err);
                return;
        }
        buf_str(&c->out, buf_view(&a->description));
        call_reply(c);
}

void api_description(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, describe);
}
