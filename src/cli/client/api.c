/* A list is read page by page and each page is read where it lies (view.h), so memory is one page's. */
#include "cli/client/api.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/url.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "cli/client/http.h"
#include "cli/client/instance.h"
#include "cli/client/remote.h"
#include "cli/client/srv.h"
#include "cli/terminal/human.h"

#define PAGE_ROWS          50000
#define READY_MS           5000
#define LISTING_MS         600000
#define LEADER_MS          30000 /* for which a call waits until one of several servers leads, */
#define ANSWER_MS          10000 /* or answers at all */
#define LEADER_PAUSE_MS    300
#define PATH_MAX_BYTES     8000                 /* the server takes a head of 16 kB */
#define SYSTEM_SERVER_FILE "/etc/drover/server" /* the address of a server, for all users of this machine */

struct api {
        struct http *http; /* one of the two */
        struct remote *remote;
        struct http *reads; /* beside http, of a server that stands by: answers reads; NULL: none */
        bool told;          /* how old its answers are */
        struct buf where;   /* name used in errors: the socket's path, or the address */
        int status;         /* of the last answer; 0: none */
        char *addresses;    /* of remote servers, of which one leads; `next` are those that were not tried */
        struct str next;
};

void api_answer_deinit(struct api_answer *a)
{
        buf_deinit(&a->body);
}

void api_close(struct cli *cli)
{
        if (!cli->api)
                return;
        http_free(cli->api->http);
        http_free(cli->api->reads);
        remote_free(cli->api->remote);
        buf_deinit(&cli->api->where);
        free(cli->api->addresses);
        free(cli->api);
        cli->api = NULL;
}

/* The first line of the user's file of that name, ~/.config/drover/NAME. */
static bool config_line(const char *name, struct buf *ret)
{
        struct buf path BUF_CLEANUP = {0};
        const char *e = getenv("XDG_CONFIG_HOME");

        if (e && *e == '/')
                buf_printf(&path, "%s/drover/%s", e, name);
        else if ((e = getenv("HOME")) && *e == '/')
                buf_printf(&path, "%s/.config/drover/%s", e, name);
        else
                return false;
        return instance_line(buf_z(&path), ret) == 0;
}

static int open_address(struct api *api, const char *address, struct err *err)
{
        struct buf token BUF_CLEANUP = {0};
        const char *e = getenv("DROVER_TOKEN");

        if (!str_starts(str_of(address), STR("https://")))
                return err_set(err, API_BROKEN,
                               "the server's address is \"%s\": it must be https://host:port, or a domain; a "
                               "server of this "
                               "machine is found by its folder, --dir or DROVER_DIR",
                               address);
        if (e && *e)
                buf_addz(&token, e);
        else if (!config_line("token", &token))
                return err_set(err, API_NO_SERVER,
                               "%s wants a token: set $DROVER_TOKEN, or put it into ~/.config/drover/token",
                               address);
        buf_reset(&api->where);
        buf_addz(&api->where, address);
        remote_free(api->remote);
        api->remote = NULL;
        return remote_new(address, buf_z(&token), &api->remote, err) == 0 ? 0 : API_NO_SERVER;
}

/* Gives the next address of several, separated by white space or commas. Returns false if there is none. */
static bool next_address(struct api *api, struct buf *ret)
{
        size_t n = 0;

        while (api->next.n && strchr(", \t", *api->next.p))
                api->next = str_skip(api->next, 1);
        while (n < api->next.n && !strchr(", \t", api->next.p[n]))
                n++;
        buf_reset(ret);
        buf_str(ret, str_head(api->next, n));
        api->next = str_skip(api->next, n);
        return n > 0;
}

static bool is_standby(struct api_answer *a)
{
        struct view error = view_get(view_open(buf_view(&a->body)), "error");

        return a->status == 503 && view_is(view_get(error, "code"), "standby");
}

/* Chooses the leading server among several addresses, or a standby if none leads. If no server answers, the
 * first address stays, and the call to it then says why. */
static int choose_leader(struct api *api, struct err *err)
{
        struct buf address BUF_CLEANUP = {0}, standby BUF_CLEANUP = {0};
        int rc = 0;

        do {
                struct api_answer a API_ANSWER_CLEANUP = {0};
                const struct api_request ready = {.path = "/readyz", .timeout_ms = READY_MS};

                if (address.n && (rc = open_address(api, buf_z(&address), err)) != 0)
                        return rc;
                rc = remote_call(api->remote, &ready, &a, NULL);
                if (rc == 0 && !is_standby(&a))
                        return 0;
                if (rc == 0 && !standby.n)
                        buf_str(&standby, buf_view(&api->where));
        } while (next_address(api, &address));
        api->next = str_of(api->addresses);
        if (!standby.n)
                next_address(api, &address);
        return open_address(api, standby.n ? buf_z(&standby) : buf_z(&address), err);
}

static int open_remote(struct api *api, const char *addresses, struct err *err)
{
        struct buf address BUF_CLEANUP = {0}, found BUF_CLEANUP = {0};
        int rc;

        if (srv_is_domain(str_of(addresses))) {
                if (srv_find(addresses, &found, err) != 0)
                        return API_NO_SERVER;
                addresses = buf_z(&found);
        }
        api->addresses = mem_dupz(addresses);
        api->next = str_of(api->addresses);
        rc = open_address(api, next_address(api, &address) ? buf_z(&address) : addresses, err);
        return rc == 0 && api->next.n ? choose_leader(api, err) : rc;
}

/* Only the leading one answers of servers that stand in for each other; a call that was not sent may be sent
 * to the next. The first error is told when none does. */
static int call_remote(struct api *api, const struct api_request *r, struct api_answer *ret, struct err *err)
{
        struct buf address BUF_CLEANUP = {0};
        struct err other = {""};
        int rc = remote_call(api->remote, r, ret, err);

        while (rc == API_NO_SERVER && next_address(api, &address)) {
                rc = open_address(api, buf_z(&address), &other);
                if (rc == 0)
                        rc = remote_call(api->remote, r, ret, &other);
                else if (rc == API_NO_SERVER)
                        rc = API_BROKEN; /* not a matter of who answers */
                if (rc != 0 && rc != API_NO_SERVER && err)
                        *err = other;
        }
        return rc;
}

static int no_server(const char *path, struct err *err)
{
        return err_set(err, API_NO_SERVER, "no Drover server answers at %s: start one with `drover up`",
                       path);
}

static void set_caller(const struct cli *cli, struct http *h)
{
        const char *e = getenv("DROVER_TOKEN"); /* for what runs inside a job */

        if (h && e && *e && !strpbrk(e, "\r\n"))
                http_set_token(h, e);
        if (h && cli->owner)
                http_set_owner(h, cli->owner);
}

/* Finds the server; one of this machine is not spoken to yet. */
static int open_api(struct cli *cli, struct api *api, struct err *err)
{
        struct buf dir BUF_CLEANUP = {0}, text BUF_CLEANUP = {0}, room BUF_CLEANUP = {0};
        const char *e = cli->server ? cli->server : getenv("DROVER_SERVER");
        struct view server;
        struct str socket;
        int rc;

        if (cli->owner && !cli->dir && e && *e)
                return err_set(err, API_NO_SERVER, "an owner can be named to a server of this machine only");
        if (!cli->dir && e && *e)
                return open_remote(api, e, err);
        rc = instance_dir(cli->dir, &dir, err);
        if (rc != 0)
                return rc;
        rc = instance_read(buf_view(&dir), &text, &server);
        e = getenv("DROVER_DIR");
        if (rc == -ENOENT && !cli->dir && !(e && *e)) {
                if (config_line("server", &room) || instance_line(SYSTEM_SERVER_FILE, &room) == 0)
                        return open_remote(api, buf_z(&room), err);
                rc = instance_read(STR(INSTANCE_SYSTEM_DIR), &text, &server);
                if (rc != -ENOENT) {
                        buf_reset(&dir);
                        buf_addz(&dir, INSTANCE_SYSTEM_DIR);
                }
        }
        buf_reset(&api->where);
        buf_printf(&api->where, "%s/api.sock", buf_z(&dir));
        if (rc == -EACCES)
                return err_set(err, API_NO_SERVER,
                               "you may not read %s/server.json: it is another user's instance", buf_z(&dir));
        if (rc != 0)
                return no_server(buf_z(&api->where), err);
        socket = instance_socket(view_get(server, "api"), &room);
        if (socket.n == 0)
                return err_set(err, API_NO_SERVER, "%s/server.json doesn't tell where the server is",
                               buf_z(&dir));
        buf_reset(&api->where);
        buf_str(&api->where, socket);
        api->http = http_new(buf_z(&api->where));
        socket = instance_socket(view_get(server, "reads"), &room);
        if (socket.n)
                api->reads = http_new(buf_z(&room) + (socket.p - room.p));
        set_caller(cli, api->http);
        set_caller(cli, api->reads);
        return 0;
}

/* The server's own words for a refusal: {"error":{"code":…,"message":…}}. */
static int refusal(struct api_answer *a, struct err *err)
{
        struct buf text BUF_CLEANUP = {0};
        struct view e = view_get(a->root, "error");

        view_text(view_get(e, "code"), &text);
        snprintf(a->code, sizeof(a->code), "%s", buf_z(&text));
        buf_reset(&text);
        view_text(view_get(e, "message"), &text);
        if (text.n)
                return err_set(err, API_REFUSED, "%s", buf_z(&text));
        return err_set(err, API_REFUSED, "the server answered with status %d", a->status);
}

/* Calls that the standing server itself answers. */
static bool is_of_standby(const char *path)
{
        return str_starts(str_of(path), STR("/v1/server/"));
}

/* Says once how old the answers are. */
static void tell_age(struct api *api, const struct api_answer *a)
{
        struct buf age BUF_CLEANUP = {0};

        if (api->told || a->standby_ms < 0)
                return;
        api->told = true;
        human_duration(&age, a->standby_ms);
        cli_note("a server that stands by has answered: this is at most %s old", buf_z(&age));
}

static int call_http(struct cli *cli, const struct api_request *r, struct api_answer *ret, struct err *err)
{
        struct http_request request = {.method = r->method ? r->method : "GET",
                                       .path = r->path,
                                       .type = r->type,
                                       .body = r->body,
                                       .timeout_ms = r->timeout_ms,
                                       .fd = r->to_file ? r->fd : -1};
        struct http_answer answer;
        struct http *reads = is_of_standby(r->path) ? NULL : cli->api->reads;
        int rc = http_call(reads ? reads : cli->api->http, &request, &answer, err);

        if (reads && (rc == HTTP_NO_SERVER || rc == HTTP_DENIED)) { /* it says what it is */
                http_answer_deinit(&answer);
                rc = http_call(cli->api->http, &request, &answer, err);
        }
        ret->status = answer.status;
        ret->standby_ms = answer.standby_ms;
        ret->body = answer.body;
        ret->written = answer.written;
        if (rc == HTTP_NO_SERVER)
                return no_server(buf_z(&cli->api->where), err);
        if (rc == HTTP_DENIED)
                return API_NO_SERVER;
        if (rc == HTTP_LOST || rc == HTTP_TIMEOUT)
                return API_LOST;
        return rc ? API_BROKEN : 0;
}

static int call_server(struct cli *cli, const struct api_request *r, struct api_answer *ret, struct err *err)
{
        int rc;

        *ret = (struct api_answer){.standby_ms = -1};
        if (!cli->api) {
                cli->api = mem_new(struct api);
                rc = open_api(cli, cli->api, err);
                if (rc != 0) {
                        api_close(cli);
                        return rc > 0 ? rc : API_NO_SERVER;
                }
        }
        cli->api->status = 0;
        rc = cli->api->http ? call_http(cli, r, ret, err) : call_remote(cli->api, r, ret, err);
        if (rc != 0)
                return rc;
        cli->api->status = ret->status;
        if (ret->status / 100 == 2)
                tell_age(cli->api, ret);
        ret->root = view_open(buf_view(&ret->body));
        return ret->status / 100 == 2 ? 0 : refusal(ret, err);
}

/* Returns whether a call to one of several servers has met none that leads: one may be taking over. */
static bool is_in_gap(const struct cli *cli, int rc, const struct api_answer *a)
{
        const char *addresses = cli->api ? cli->api->addresses : NULL;

        return addresses && strpbrk(addresses, ", \t") &&
               (rc == API_NO_SERVER ||
                (rc == API_REFUSED && a->status == 503 && !strcmp(a->code, "standby")));
}

int api_call(struct cli *cli, const struct api_request *r, struct api_answer *ret, struct err *err)
{
        int64_t began_ms = 0;
        int rc;

        while (is_in_gap(cli, rc = call_server(cli, r, ret, err), ret)) {
                if (!began_ms) {
                        began_ms = clock_boot_ms();
                        cli_note("no server leads now; waiting for one to take over");
                }
                if (clock_boot_ms() - began_ms >= (rc == API_NO_SERVER ? ANSWER_MS : LEADER_MS))
                        break;
                api_answer_deinit(ret);
                api_close(cli); /* the next call looks for the leader again */
                poll(NULL, 0, LEADER_PAUSE_MS);
        }
        return rc;
}

int api_status(const struct cli *cli)
{
        return cli->api ? cli->api->status : 0;
}

int api_exit(int rc, const struct api_answer *a)
{
        if (rc == 0)
                return CLI_OK;
        return rc == API_REFUSED && (a->status == 404 || a->status == 400) ? CLI_USAGE : CLI_FAILED;
}

static int call_and_tell(struct cli *cli, const struct api_request *r, struct api_answer *ret)
{
        struct err err = {""};
        int rc = api_call(cli, r, ret, &err);

        return rc == 0 ? CLI_OK : cli_error(api_exit(rc, ret), "%s", err.text);
}

int api_get(struct cli *cli, const char *path, struct api_answer *ret)
{
        return call_and_tell(cli, &(struct api_request){.path = path}, ret);
}

bool api_print_json(struct cli *cli, struct api_answer *a)
{
        if (!cli->json)
                return false;
        buf_char(&a->body, '\n');
        cli_print(&a->body);
        return true;
}

int api_post(struct cli *cli, const char *path, struct str body, struct api_answer *ret)
{
        return call_and_tell(cli, &(struct api_request){.method = "POST", .path = path, .body = body}, ret);
}

void api_query(struct buf *path, const char *name, struct str value)
{
        if (value.n == 0)
                return;
        buf_char(path, str_find(buf_view(path), '?') < 0 ? '?' : '&');
        buf_addz(path, name);
        buf_char(path, '=');
        url_escape(path, value);
}

int api_path_check(struct buf *path)
{
        if (path->n <= PATH_MAX_BYTES)
                return 0;
        return cli_error(CLI_USAGE, "the call is too large: give fewer ids, ranges (7.0-99), or a shorter "
                                    "constraint");
}

/* Rest of a listing, and the document that it becomes with --json. */
struct listing {
        const struct api_list *l;
        struct buf json;
        bool as_json, begun; /* begun: an element has been written */
        int64_t left;
};

static const char *page_error(struct view error)
{
        static char text[512];
        struct buf message BUF_CLEANUP = {0};
        struct view item;
        struct str key;
        size_t at = 0;

        while (view_member(error, &at, &key, &item))
                if (str_eqz(key, "message"))
                        view_text(item, &message);
        snprintf(text, sizeof(text), "%s", buf_z(&message));
        return text;
}

/* Takes the elements of a page as they come, then the cursor behind them. */
static int list_page(struct listing *t, struct view root, struct buf *next)
{
        struct view item, array = view_enter(root, t->l->array);
        struct str key;
        size_t at = 0;
        int code = 0;

        while (code == 0 && t->left > 0 && view_next(array, &at, &item)) {
                t->left--;
                if (!t->as_json) {
                        code = t->l->each(t->l->arg, item);
                        continue;
                }
                if (t->begun)
                        buf_addz(&t->json, ",\n");
                t->begun = true;
                buf_str(&t->json, item.text);
                if (t->json.n > 65536)
                        cli_print(&t->json);
        }
        if (code != 0)
                return code;
        at = view_leave(root, array, at);
        while (view_member(root, &at, &key, &item))
                if (str_eqz(key, "next"))
                        view_text(item, next);
                else if (str_eqz(key, "error")) /* the listing ends before its time */
                        code = cli_error(CLI_FAILED, "%s", page_error(item));
        return code;
}

/* Prints a whole listing as the server writes it, without parsing it. */
static int pass_through(struct cli *cli, struct buf *path)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct err err = {""};
        int rc;

        fflush(stdout);
        rc = api_call(cli,
                      &(struct api_request){
                              .path = buf_z(path), .timeout_ms = LISTING_MS, .to_file = true, .fd = 1},
                      &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        putchar('\n');
        return CLI_OK;
}

static void end_json(struct listing *t, struct buf *next)
{
        buf_addz(&t->json, "],\"next\":");
        if (next->n)
                buf_printf(&t->json, "\"%s\"", buf_z(next));
        else
                buf_addz(&t->json, "null");
        buf_addz(&t->json, "}\n");
        cli_print(&t->json);
}

int api_list(struct cli *cli, const struct api_list *l)
{
        struct listing t = {.l = l, .as_json = cli->json, .left = l->limit > 0 ? l->limit : INT64_MAX};
        struct buf path BUF_CLEANUP = {0}, next BUF_CLEANUP = {0};
        int code = api_path_check(l->path);

        if (code == 0 && cli->json && t.left == INT64_MAX && l->whole)
                return pass_through(cli, l->path);
        buf_printf(&t.json, "{\"%s\":[", l->array);
        while (code == 0) {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                char number[24];

                snprintf(number, sizeof(number), "%lld",
                         (long long)(t.left < PAGE_ROWS ? t.left : PAGE_ROWS));
                buf_reset(&path);
                buf_str(&path, buf_view(l->path));
                if (l->cursor) {
                        api_query(&path, "limit", str_of(number));
                        api_query(&path, l->cursor, buf_view(&next));
                }
                code = api_get(cli, buf_z(&path), &answer);
                buf_reset(&next);
                if (code == 0)
                        code = list_page(&t, answer.root, &next);
                if (next.n == 0 || t.left <= 0)
                        break;
        }
        if (code == 0 && t.as_json)
                end_json(&t, &next);
        buf_deinit(&t.json);
        return code;
}

int api_table(struct cli *cli, const struct api_table *a)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view list, item;
        size_t at = 0;
        int code;

        code = cli_table(cli, &t, a->columns, a->column_count);
        if (code == 0)
                code = api_get(cli, a->path, &answer);
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        list = view_get(answer.root, a->array);
        while (view_next(list, &at, &item))
                a->row(cli, &t, item);
        if (table_rows(&t) > 0 || !cli_plain(cli))
                cli_print_table(cli, &t);
        else
                buf_addz(&out, a->none);
        if (a->below && cli_plain(cli))
                a->below(cli, &out, list);
        cli_print(&out);
        return CLI_OK;
}
