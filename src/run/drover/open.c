/* Opens and closes the drover runner: its settings, the connection to the other server, and the folder with
 * the requests of earlier runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/address_list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/uuid.h"
#include "run/drover/acts.h"
#include "run/drover/feed.h"
#include "run/drover/hello.h"
#include "run/drover/lease.h"
#include "run/drover/open.h"
#include "run/drover/output.h"
#include "run/drover/quote.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"
#include "run/drover/user.h"
#include "run/drover/work.h"

/* ---- settings */

const char *remote_setting(const struct runner_config *c, const char *name)
{
        for (size_t i = 0; i < c->setting_count; i++)
                if (!strcmp(c->settings[i].name, name))
                        return c->settings[i].value;
        return NULL;
}

static int check_settings(const struct runner_config *c, struct err *err)
{
        static const char *const known[] = {"server", "token_file", "users_token_file", "files", NULL};

        for (size_t i = 0; i < c->setting_count; i++) {
                size_t k = 0;

                while (known[k] && strcmp(known[k], c->settings[i].name) != 0)
                        k++;
                if (!known[k])
                        return err_set(
                                err, -EINVAL,
                                "drover has no setting '%s': it has server, token_file, users_token_file and "
                                "files",
                                c->settings[i].name);
        }
        const char *files = remote_setting(c, "files");
        if (files && strcmp(files, "copied") != 0 && strcmp(files, "shared") != 0)
                return err_set(err, -EINVAL, "files is copied or shared");
        return 0;
}

/* ---- the connection */

/* drover-user-token.v1.<fingerprint of the server's CA>.<id>.<secret>. The file is read again whenever the
 * server is unreachable, so that the token can be replaced. */
static int open_read_token(struct remote *f, struct buf *token, struct str *ret_fingerprint, struct err *err)
{
        struct str rest, part = STR_NONE;
        int r = fs_read_secret(AT_FDCWD, f->token_file, 4096, token, err);

        if (r < 0)
                return r;
        rest = str_trim(buf_view(token));
        for (int i = 0; i < 3; i++)
                str_cut(&rest, '.', &part);
        if (!str_starts(buf_view(token), STR("drover-user-token.v1.")) || part.n != 64)
                return err_set(err, -EINVAL, "%s holds no token of `drover token user`", f->token_file);
        *ret_fingerprint = part;
        return 0;
}

static int read_addresses(struct remote *f, bool *ret_https, struct err *err)
{
        struct str rest = str_of(f->address), one;
        struct err why = {""};

        if (address_list_check(rest, ret_https, &why) < 0)
                return err_set(err, -EINVAL, "server, the other server's API, %s", why.text);
        while (address_list_next(&rest, &one))
                args_add(&f->addresses, *ret_https ? str_skip(one, strlen("https://")) : one);
        return 0;
}

static int make_client(struct remote *f, struct err *err)
{
        BUF_CLEANUP struct buf token = {0};
        struct str fingerprint;
        struct http_client_config c = {.handshake_ms = 10000, .budget = f->user ? f->user->answers : NULL};
        bool https = false;
        int r = read_addresses(f, &https, err);

        if (r == 0 && https) {
                if (!f->token_file)
                        return err_set(err, -EINVAL,
                                       "%s needs a token_file, with what `drover token user` prints there",
                                       f->address);
                r = open_read_token(f, &token, &fingerprint, err);
                if (r == 0)
                        r = tls_client_new(&(struct tls_config){.ca_fingerprint = fingerprint}, &f->tls, err);
        }
        if (r < 0)
                return r;
        MEM_CLEANUP char *bearer = str_dupz(str_trim(buf_view(&token)));
        c.address = f->addresses.v[0];
        c.tls = f->tls;
        c.bearer = *bearer && !f->user ? bearer : NULL; /* a user's own token is read later */
        f->client = http_client_new(f->loop, &c);
        return 0;
}

/* ---- the folder */

static int open_folder(struct remote *f, const struct runner_config *c, struct err *err)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/hop.%s", c->dir, c->queue);
        if (f->user)
                buf_printf(&path, "/%s", f->user->name);
        int r = fs_mkdirs(buf_z(&path), 0700);
        f->dir = buf_take(&path);
        f->fd = r < 0 ? -1 : open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f->fd < 0)
                return err_set(err, -errno, "cannot use %s: %s", f->dir, strerror(errno));
        return f->user ? fs_write(f->fd, REMOTE_OWNER, str_of(f->user->owner), 0600, true, err) : 0;
}

/* Removes what an interrupted run has left: incomplete files, and files of requests that are gone. */
static void sweep(const struct remote *f, const char *name)
{
        struct str s = str_of(name), request = str_head(s, s.n < UUID_TEXT - 1 ? s.n : UUID_TEXT - 1);
        MEM_CLEANUP char *of = str_dupz(request);

        if (uuid_valid(request) &&
            (str_ends(s, STR(".tmp")) ||
             (str_ends(s, STR(".gone")) && faccessat(f->fd, of, F_OK, AT_SYMLINK_NOFOLLOW) < 0)))
                unlinkat(f->fd, name, 0);
}

static int read_folder(struct remote *f, struct err *err)
{
        DIR *d = opendir(f->dir);
        struct dirent *e;

        if (!d)
                return err_set(err, -errno, "cannot read %s: %s", f->dir, strerror(errno));
        while ((e = readdir(d))) {
                BUF_CLEANUP struct buf text = {0};

                if (!uuid_valid(str_of(e->d_name))) {
                        sweep(f, e->d_name);
                        continue;
                }
                if (fs_read(f->fd, e->d_name, 64 << 20, &text, NULL) < 0 ||
                    !remote_restore(f, buf_view(&text), e->d_name))
                        log_warn("msg=\"a file of a handed-on job cannot be read\" file=\"%s/%s\"", f->dir,
                                 e->d_name);
        }
        closedir(d);
        return 0;
}

/* ---- open and close */

void remote_close(struct remote *f)
{
        remote_tasks_close(f);
        remote_work_close(f);
        while (f->table.sent)
                remote_request_free(f->table.sent);
        remote_quotes_drop(f);
        remote_outputs_drop(f);
        event_queue_free(f->events);
        http_client_free(f->client);
        tls_unref(f->tls);
        timer_free(f->link.hello);
        map_free(f->table.known);
        idmap_free(f->table.requests);
        remote_acts_free(f->acts);
        remote_feed_free(f->feed);
        free(f->lease);
        remote_login_free(f->login);
        remote_user_free(f->user);
        if (f->fd >= 0)
                close(f->fd);
        free(f->queue);
        free(f->dir);
        free(f->address);
        args_deinit(&f->addresses);
        free(f->token_file);
        free(f->domain);
        free(f->link.why);
        free(f);
}

int remote_open(const struct runner_config *c, struct remote_user *user, struct remote **ret, struct err *err)
{
        const char *files = remote_setting(c, "files");
        BUF_CLEANUP struct buf server = {0};
        int r = check_settings(c, err);

        for (size_t i = 0; i < c->setting_count; i++) /* one for each item of a list */
                if (!strcmp(c->settings[i].name, "server"))
                        buf_printf(&server, "%s%s", server.n ? " " : "", c->settings[i].value);
        if (r == 0 && !server.n)
                r = err_set(err, -EINVAL, "a queue of the runner drover needs `drover: {server: …}`");
        if (r < 0) {
                remote_user_free(user);
                return r;
        }
        struct remote *f = mem_new(struct remote);
        f->user = user;
        f->loop = c->loop;
        f->events = event_queue_new(c->loop, c->observer, c->arg);
        f->queue = mem_dupz(c->queue);
        f->address = mem_dupz(buf_z(&server));
        f->token_file = remote_setting(c, "token_file") ? mem_dupz(remote_setting(c, "token_file")) : NULL;
        f->domain = mem_dupz(c->filesystem_domain ? c->filesystem_domain : "");
        f->closed = c->closed;
        f->shared = files && !strcmp(files, "shared");
        f->fd = -1;
        f->table.sent_last = &f->table.sent;
        f->table.known = map_new();
        f->table.requests = idmap_new();
        f->acts = remote_acts_new();
        f->feed = remote_feed_new();
        f->lease = remote_lease_new();
        remote_tasks_open(f);
        remote_work_open(f);
        r = open_folder(f, c, err);
        if (r == 0)
                r = make_client(f, err);
        if (r == 0)
                r = read_folder(f, err);
        if (r < 0) {
                remote_close(f);
                return r;
        }
        remote_work_start(f);
        remote_link_open(f);
        *ret = f;
        return 0;
}
