#include "cli/client/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/format/url.h"
#include "base/system/fs.h"
#include "base/system/secret.h"
#include "cli/client/ship.h"

#define FILE_MAX (64u << 10)

static void first_of(struct buf *out, const char *variable, const char *folder, const char *name)
{
        const char *value = getenv(variable);

        if (value && *value)
                buf_addz(out, value);
        else
                buf_printf(out, "%s/%s%u", folder, name, (unsigned)getuid());
}

void credential_usual_file(const char *type, struct buf *out)
{
        const char *home = getenv("HOME"), *s3 = getenv("AWS_SHARED_CREDENTIALS_FILE"),
                   *runtime = getenv("XDG_RUNTIME_DIR");

        if (!strcmp(type, "proxy")) {
                first_of(out, "X509_USER_PROXY", "/tmp", "x509up_u");
        } else if (!strcmp(type, "token")) {
                first_of(out, "BEARER_TOKEN_FILE", runtime && *runtime ? runtime : "/tmp", "bt_u");
        } else if (!strcmp(type, "s3")) {
                if (s3 && *s3)
                        buf_addz(out, s3);
                else
                        buf_printf(out, "%s/.aws/credentials", home ? home : "");
        }
}

static int credential_read_file(const char *path, struct buf *ret, struct err *err)
{
        int r = 0;

        if (strcmp(path, "-") != 0)
                return fs_read(AT_FDCWD, path, FILE_MAX, ret, err);
        for (ssize_t n = 1; n > 0 && r == 0;) {
                n = read(STDIN_FILENO, buf_room(ret, 4096), 4096);
                if (n < 0)
                        r = err_set(err, -errno, "standard input: %s", strerror(errno));
                else if (ret->n + (size_t)n > FILE_MAX)
                        r = err_set(err, -EFBIG, "standard input is over %u KiB", FILE_MAX >> 10);
                else
                        ret->n += (size_t)n;
        }
        return r;
}

/* JSON carries text. */
static bool credential_is_text(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == 0 || (unsigned char)s.p[i] > 0x7e ||
                    ((unsigned char)s.p[i] < ' ' && !strchr("\t\r\n", s.p[i])))
                        return false;
        return true;
}

/* "none" alone is an empty list. */
static void write_urls(struct json *j, const struct options *o)
{
        size_t at = 0;
        const char *url = o ? options_list(o, "for", &at) : NULL;

        if (!url)
                return;
        json_key(j, "urls");
        json_open(j, '[');
        for (; url; url = options_list(o, "for", &at))
                if (strcmp(url, "none") != 0)
                        json_strz(j, url);
        json_close(j, ']');
}

bool credential_name_fits(const char *name)
{
        if (*name && !strchr(name, '/'))
                return true;
        cli_error(CLI_USAGE, "'%s' cannot be the name of a credential: letters, digits and . _ - only", name);
        return false;
}

int credential_send(struct cli *cli, const char *name, const char *type, const char *path,
                    const struct options *options, struct api_answer *ret)
{
        SECRET_CLEANUP struct buf data = {0}, body = {0};
        BUF_CLEANUP struct buf where = {0};
        struct json j = {.out = &body};
        struct err err = {""};
        int rc;

        if (!credential_name_fits(name))
                return CLI_USAGE;
        if (credential_read_file(path, &data, &err) < 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        if (!credential_is_text(buf_view(&data)))
                return cli_error(CLI_FAILED, "%s is not text: encode it, for instance with base64", path);
        json_open(&j, '{');
        json_kstrz(&j, "type", type);
        json_kstr(&j, "data", buf_view(&data));
        write_urls(&j, options);
        json_close(&j, '}');
        buf_addz(&where, "/v1/credentials/");
        url_escape(&where, str_of(name));
        rc = api_call(cli,
                      &(struct api_request){.method = "PUT", .path = buf_z(&where), .body = buf_view(&body)},
                      ret, &err);
        return rc == 0 ? 0 : cli_error(api_exit(rc, ret), "%s: %s", path, err.text);
}

/* ---- descriptions */

static bool is_true(const struct form_part *p, const char *name)
{
        const struct form_attribute *a = form_get(p, str_of(name));

        return a && str_ieqz(str_trim(str_of(a->text)), "true");
}

/* The file's name, without what a name may not have. */
static void name_of(struct str path, struct buf *out)
{
        struct str base = str_skip(path, (size_t)(str_rfind(path, '/') + 1));

        for (size_t i = 0; i < base.n && i < 60; i++) {
                char c = base.p[i];
                bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                             c == '_' || (i > 0 && (c == '.' || c == '-'));

                buf_char(out, plain ? c : '_');
        }
}

static int give_credential(struct cli *cli, struct form_part *p, const char *name, const char *type,
                           const char *path)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf all = {0}, quoted = {0};
        int code = credential_send(cli, name, type, path, NULL, &answer);

        if (code != 0)
                return code;
        ship_text(p, "DroverCredentials", &all);
        buf_printf(&quoted, "\"%s%s%s\"", buf_z(&all), all.n ? "," : "", name);
        form_set(p, STR("DroverCredentials"), buf_view(&quoted), p->line);
        return 0;
}

static int of_part(struct cli *cli, struct form_part *p)
{
        BUF_CLEANUP struct buf path = {0}, name = {0};
        int code = 0;

        ship_text(p, "x509userproxy", &path);
        if (!path.n && is_true(p, "UseX509UserProxy"))
                credential_usual_file("proxy", &path);
        name_of(buf_view(&path), &name);
        if (name.n)
                code = give_credential(cli, p, buf_z(&name), "proxy", buf_z(&path));
        if (code != 0 || !is_true(p, "UseSciTokens"))
                return code;
        buf_reset(&path);
        ship_text(p, "ScitokensFile", &path);
        if (!path.n)
                credential_usual_file("token", &path);
        return give_credential(cli, p, "scitokens", "token", buf_z(&path));
}

int credential_of_form(struct cli *cli, struct form *f)
{
        int code = 0;

        for (size_t i = 0; i < f->part_count && code == 0; i++)
                code = of_part(cli, &f->parts[i]);
        return code;
}
