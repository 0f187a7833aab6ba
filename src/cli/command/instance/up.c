/* drover up: runs a server and an agent in the foreground.
 *
 *   folder ready -> droverd started -> server.json names it (inotify)
 *     -> a token is made and stored in the folder -> drover-agent started
 *     -> the server lists it as connected -> "ready" -> watching, until a signal
 *
 * All waiting is one poll() on signals (signalfd) and on the folder (inotify). An error before "ready"
 * ends everything; afterwards a child that ends is started again (child.h). When stopping, the agent is
 * stopped first, so that it can still close its session with the server. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/program.h"
#include "cli/client/api.h"
#include "cli/client/instance.h"
#include "cli/command/commands.h"
#include "cli/command/instance/child.h"
#include "cli/command/instance/doctor.h"

#define START_MS 60000 /* recovering a large queue takes seconds */
#define JOIN_MS  30000
#define ASK_MS   25 /* between two checks whether the agent is connected */
#define STOP_MS  20000
#define TOKEN_S  600

struct up {
        struct cli *cli;
        const struct options *o;
        struct buf dir;
        struct child server, agent;
        bool with_agent;
        char host[256];      /* name of the agent */
        int signals, folder; /* signalfd; inotify */
        int stop_signals;    /* number of signals that asked to stop */
};

/* ---- the folder */

static const char *network_filesystem(const char *path)
{
        static const struct {
                uint32_t magic;
                const char *name;
        } kinds[] = {{NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"}, {0xff534d42, "CIFS"},
                     {0xfe534d42, "SMB"},        {AFS_SUPER_MAGIC, "AFS"}, {AFS_FS_MAGIC, "AFS"},
                     {CODA_SUPER_MAGIC, "Coda"}, {V9FS_MAGIC, "9P"},       {0x00c36400, "Ceph"},
                     {0x0bd00bd0, "Lustre"},     {0x47504653, "GPFS"},     {0x19830326, "BeeGFS"}};
        struct statfs s;

        if (statfs(path, &s) != 0)
                return NULL;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if ((uint32_t)s.f_type == kinds[i].magic)
                        return kinds[i].name;
        return NULL;
}

static int prepare_folder(struct up *u)
{
        const char *dir, *network;
        struct err err;
        struct stat st;
        int rc = instance_dir(u->cli->dir, &u->dir, &err);

        if (rc != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        dir = buf_z(&u->dir);
        rc = fs_mkdirs(dir, 0700);
        if (rc != 0)
                return cli_error(CLI_FAILED, "the folder %s can't be made: %s", dir, strerror(-rc));
        if (stat(dir, &st) != 0)
                return cli_error(CLI_FAILED, "%s: %s", dir, strerror(errno));
        if (st.st_uid != geteuid())
                return cli_error(CLI_FAILED, "the folder %s belongs to another user", dir);
        if (st.st_mode & 077)
                cli_note("others may enter the folder %s (mode %03o): chmod 700 keeps them out", dir,
                         (unsigned)st.st_mode & 0777);
        network = network_filesystem(dir);
        if (network)
                cli_note("the folder %s is on a network filesystem (%s): slower, and safe only while no "
                         "other machine "
                         "uses it; choose a local one with --dir",
                         dir, network);
        u->cli->dir = dir;
        doctor_say_wrong(u->cli, dir);
        return 0;
}

/* ---- waiting */

static bool is_running(const struct child *c)
{
        return c->pid > 0;
}

static void reap(struct up *u)
{
        struct child *const all[] = {&u->server, &u->agent};
        int status;

        for (unsigned i = 0; i < 2; i++)
                if (is_running(all[i]) && waitpid(all[i]->pid, &status, WNOHANG) == all[i]->pid)
                        child_ended(all[i], status);
}

/* Waits for an event, or for `ms` milliseconds (-1: without a timeout). Records children that ended. */
static void rest(struct up *u, int64_t ms)
{
        struct pollfd p[] = {{.fd = u->signals, .events = POLLIN}, {.fd = u->folder, .events = POLLIN}};
        struct signalfd_siginfo info;
        char drain[4096];

        if (poll(p, 2, ms > INT32_MAX ? INT32_MAX : (int)ms) <= 0)
                return;
        while (read(u->signals, &info, sizeof(info)) == sizeof(info))
                if (info.ssi_signo != SIGCHLD)
                        u->stop_signals++;
        while (read(u->folder, drain, sizeof(drain)) > 0)
                ;
        reap(u);
}

/* ---- starting */

static bool server_is_ready(struct up *u)
{
        struct buf text BUF_CLEANUP = {0};
        struct view server;

        return instance_read(buf_view(&u->dir), &text, &server) == 0 &&
               view_integer(view_get(server, "pid"), 0) == u->server.pid;
}

/* A child ended before everything was ready. It has printed the reason itself; its status shows whether
 * the arguments or the settings were wrong. */
static int died(const struct child *c)
{
        struct buf text BUF_CLEANUP = {0};
        bool usage = WIFEXITED(c->status) && WEXITSTATUS(c->status) == CLI_USAGE;

        child_describe(c, &text);
        return cli_error(usage ? CLI_USAGE : CLI_FAILED, "%s", buf_z(&text));
}

static int start_server(struct up *u)
{
        int64_t until_ms = clock_boot_ms() + START_MS;
        struct err err;

        if (child_start(&u->server, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        while (!server_is_ready(u)) {
                if (u->stop_signals)
                        return CLI_FAILED;
                if (!is_running(&u->server))
                        return died(&u->server);
                if (clock_boot_ms() >= until_ms)
                        return cli_error(CLI_FAILED, "droverd is not ready after %d s", START_MS / 1000);
                rest(u, until_ms - clock_boot_ms());
        }
        return 0;
}

/* Stores a one-use token for the agent in the folder. It is never passed as an argument, which other users
 * could read. */
static int leave_token(struct up *u, const char *path)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, token BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        struct err err;
        int code;

        json_open(&j, '{');
        json_kstrz(&j, "kind", "agent");
        json_kstrz(&j, "name", u->host);
        json_kint(&j, "uses", 1);
        json_kint(&j, "expires_s", TOKEN_S);
        json_close(&j, '}');
        code = api_post(u->cli, "/v1/tokens", buf_view(&body), &answer);
        if (code != 0)
                return code;
        view_text(view_get(answer.root, "token"), &token);
        buf_char(&token, '\n');
        if (fs_write(AT_FDCWD, path, buf_view(&token), 0600, false, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        return 0;
}

static bool agent_is_connected(struct up *u)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view agents, agent;
        size_t at = 0;

        if (api_call(u->cli, &(struct api_request){.path = "/v1/agents"}, &answer, NULL) != 0)
                return false;
        agents = view_get(answer.root, "agents");
        while (view_next(agents, &at, &agent))
                if (view_is(view_get(agent, "name"), u->host) &&
                    view_is(view_get(agent, "state"), "connected"))
                        return true;
        return false;
}

static int start_agent(struct up *u)
{
        int64_t until_ms = clock_boot_ms() + JOIN_MS;
        struct err err;

        if (child_start(&u->agent, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        while (!agent_is_connected(u)) {
                if (u->stop_signals)
                        return CLI_FAILED;
                if (!is_running(&u->agent))
                        return died(&u->agent);
                if (!is_running(&u->server))
                        return died(&u->server);
                if (clock_boot_ms() >= until_ms)
                        return cli_error(CLI_FAILED, "drover-agent has not joined after %d s",
                                         JOIN_MS / 1000);
                rest(u, ASK_MS);
        }
        return 0;
}

static void add_option(struct child *c, const char *name, struct str value)
{
        struct buf word BUF_CLEANUP = {0};

        buf_printf(&word, "--%s", name);
        args_add(&c->argv, buf_view(&word));
        args_add(&c->argv, value);
}

static void pass_on(struct child *c, const struct options *o, const char *name, const char *otherwise)
{
        const char *value = options_text(o, name);

        if (value || otherwise)
                add_option(c, name, str_of(value ? value : otherwise));
}

static int prepare_children(struct up *u)
{
        struct err err;

        snprintf(u->host, sizeof(u->host), "localhost");
        gethostname(u->host, sizeof(u->host) - 1);
        u->server.name = "droverd";
        u->agent.name = "drover-agent";
        if (program_find("droverd", &u->server.path, &err) != 0 ||
            (u->with_agent && program_find("drover-agent", &u->agent.path, &err) != 0))
                return cli_error(CLI_FAILED, "%s", err.text);
        args_add(&u->server.argv, STR("droverd"));
        add_option(&u->server, "dir", buf_view(&u->dir));
        if (geteuid() == 0) /* server and agent run as the same user */
                add_option(&u->server, "user", STR("root"));
        pass_on(&u->server, u->o, "listen", NULL);
        pass_on(&u->server, u->o, "api-listen", NULL);
        pass_on(&u->server, u->o, "log-level", "warn");
        args_add(&u->agent.argv, STR("drover-agent"));
        pass_on(&u->agent, u->o, "cpus", NULL);
        pass_on(&u->agent, u->o, "memory", NULL);
        add_option(&u->agent, "placements", STR("4"));
        pass_on(&u->agent, u->o, "log-level", "warn");
        return 0;
}

/* Hides the instance's folder from jobs, and that of its sockets, which is a different one when the name
 * is long. */
static void hide_folders(struct up *u, struct str socket)
{
        struct str folder = str_head(socket, (size_t)str_rfind(socket, '/'));

        add_option(&u->agent, "hide", buf_view(&u->dir));
        if (folder.n && !str_eq(folder, buf_view(&u->dir)))
                add_option(&u->agent, "hide", folder);
}

/* Sets the agent's options that depend on the running server. */
static int tell_agent(struct up *u)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {0}, room BUF_CLEANUP = {0};
        struct view server, addresses, address;
        struct str path;
        size_t at = 0;
        int code = api_get(u->cli, "/v1/server", &answer);

        if (code != 0)
                return code;
        view_text(view_get(answer.root, "domain"), &room);
        add_option(&u->agent, "domain", buf_view(&room));
        if (instance_read(buf_view(&u->dir), &text, &server) != 0)
                return cli_error(CLI_FAILED, "%s/server.json can't be read", buf_z(&u->dir));
        addresses = view_get(server, "agents");
        while (view_next(addresses, &at, &address)) {
                path = instance_socket(address, &room);
                if (path.n == 0)
                        continue;
                hide_folders(u, path);
                add_option(&u->agent, "server", buf_view(&room));
                buf_reset(&room);
                buf_printf(&room, "%s/agent", buf_z(&u->dir));
                add_option(&u->agent, "dir", buf_view(&room));
                return 0;
        }
        return cli_error(CLI_FAILED, "the server takes no agents on a unix socket");
}

/* The token is only for the first start; it is removed before the agent is started again. */
static void forget_token(struct up *u, const char *path)
{
        struct args *a = &u->agent.argv;

        unlink(path);
        for (int i = 0; i < 2; i++) {
                free(a->v[--a->n]);
                a->v[a->n] = NULL;
        }
}

static int start_all(struct up *u)
{
        struct buf token BUF_CLEANUP = {0};
        int code = start_server(u);

        if (code != 0 || !u->with_agent)
                return code;
        code = tell_agent(u);
        if (code != 0)
                return code;
        buf_printf(&token, "%s/agent.token", buf_z(&u->dir));
        code = leave_token(u, buf_z(&token));
        if (code != 0)
                return code;
        add_option(&u->agent, "token-file", buf_view(&token));
        code = start_agent(u);
        forget_token(u, buf_z(&token));
        return code;
}

static void say_ready(struct up *u)
{
        struct buf text BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct view server = {STR_NONE}, agents, address;
        size_t at = 0;

        instance_read(buf_view(&u->dir), &text, &server);
        buf_printf(&out, "ready\n  folder  %s\n  api     ", buf_z(&u->dir));
        view_text(view_get(server, "api"), &out);
        if (view_there(view_get(server, "api_tls"))) {
                buf_addz(&out, "\n  api     https://");
                view_text(view_get(server, "api_tls"), &out);
        }
        agents = view_get(server, "agents");
        while (view_next(agents, &at, &address)) {
                buf_addz(&out, "\n  agents  ");
                view_text(address, &out);
        }
        buf_char(&out, '\n');
        cli_print(&out);
        fflush(stdout);
}

/* ---- running and stopping */

static void restart_if_due(struct up *u, struct child *c)
{
        struct buf text BUF_CLEANUP = {0};
        struct err err;

        if (is_running(c) || c->start_at_ms == 0 || clock_boot_ms() < c->start_at_ms || u->stop_signals)
                return;
        child_describe(c, &text);
        cli_note("%s; starting it again", buf_z(&text));
        if (child_start(c, &err) != 0) {
                cli_note("%s", err.text);
                child_ended(c, 0);
        }
}

static void watch(struct up *u)
{
        while (!u->stop_signals) {
                int64_t next_ms = -1, now_ms;
                const struct child *const all[] = {&u->server, &u->agent};

                restart_if_due(u, &u->server);
                if (u->with_agent)
                        restart_if_due(u, &u->agent);
                now_ms = clock_boot_ms();
                for (unsigned i = 0; i < 2; i++)
                        if (!is_running(all[i]) && all[i]->start_at_ms > 0) {
                                int64_t in_ms =
                                        all[i]->start_at_ms > now_ms ? all[i]->start_at_ms - now_ms : 1;

                                next_ms = next_ms < 0 || in_ms < next_ms ? in_ms : next_ms;
                        }
                rest(u, next_ms);
        }
}

/* Kills the child after a second signal or after STOP_MS. */
static void stop_child(struct up *u, struct child *c, int how)
{
        int64_t until_ms = clock_boot_ms() + STOP_MS;
        int asked = u->stop_signals;

        if (!is_running(c))
                return;
        kill(c->pid, how);
        while (is_running(c) && clock_boot_ms() < until_ms && u->stop_signals == asked)
                rest(u, until_ms - clock_boot_ms());
        if (!is_running(c))
                return;
        cli_note("%s doesn't stop; killing it", c->name);
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        c->pid = 0;
}

static int open_signals(struct up *u)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        u->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        u->folder = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (u->signals < 0 || u->folder < 0 ||
            inotify_add_watch(u->folder, buf_z(&u->dir), IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
                return cli_error(CLI_FAILED, "%s", strerror(errno));
        return 0;
}

int cmd_up(struct cli *cli, const struct options *o)
{
        struct up u = {
                .cli = cli, .o = o, .with_agent = !options_flag(o, "no-agent"), .signals = -1, .folder = -1};
        int code = prepare_folder(&u);

        if (code == 0)
                code = prepare_children(&u);
        if (code == 0)
                code = open_signals(&u);
        if (code == 0) {
                code = start_all(&u);
                if (code == 0) {
                        say_ready(&u);
                        watch(&u);
                        cli_note("stopping");
                }
                stop_child(&u, &u.agent, SIGINT); /* on SIGTERM the agent's jobs would continue */
                stop_child(&u, &u.server, SIGTERM);
        }
        api_close(cli);
        if (u.signals >= 0)
                close(u.signals);
        if (u.folder >= 0)
                close(u.folder);
        child_deinit(&u.server);
        child_deinit(&u.agent);
        cli->dir = NULL;
        buf_deinit(&u.dir);
        return code;
}
