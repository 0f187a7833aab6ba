/* drover doctor: finds errors in an installation, and says how to correct them.
 *
 * A check is a function that adds rows: what was checked, a verdict, a sentence, and what to do. Checks of
 * the folder read only the folder and this machine; the others ask a running server. */
#include "cli/command/instance/doctor.h"
#include "cli/command/commands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/format/doc.h"
#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "cli/client/api.h"
#include "cli/client/certificate.h"
#include "cli/client/instance.h"
#include "cli/terminal/human.h"

#define TEXT_MAX     (1u << 20)
#define DAY_MS       86400000
#define EXPIRES_MS   (7 * (int64_t)DAY_MS)
#define CLOCK_MS     5000  /* a difference of clocks without effect */
#define CLOCK_BAD_MS 60000 /* a difference that affects certificates and leases */
#define FILES_WANTED 4096
#define DISK_BYTES   (UINT64_C(1) << 30)
#define DISK_BAD     (UINT64_C(100) << 20)
#define UID_MIN      1000 /* the agent's min_uid if its file does not set it */
#define CONNECT_MS   3000

enum verdict { FINE, WARNING, WRONG };
static const char *const verdicts[] = {"ok", "warning", "wrong"};
static const enum table_colour colours[] = {TABLE_GREEN, TABLE_YELLOW, TABLE_RED};

struct row {
        const char *check;
        enum verdict verdict;
        char *text, *mend; /* mend: what to do; NULL: nothing */
};
struct doctor {
        struct cli *cli;
        const char *dir, *agent_config;
        uid_t owner; /* owner of the folder */
        struct row *rows;
        size_t n, cap;
};

static void add_finding(struct doctor *d, const char *check, enum verdict v, const char *mend,
                        const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void add_finding(struct doctor *d, const char *check, enum verdict v, const char *mend,
                        const char *fmt, ...)
{
        struct buf text = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        MEM_GROW(d->rows, d->cap, d->n + 1);
        d->rows[d->n++] = (struct row){check, v, buf_take(&text), mend && v != FINE ? mem_dupz(mend) : NULL};
}

static void rows_free(struct doctor *d)
{
        for (size_t i = 0; i < d->n; i++) {
                free(d->rows[i].text);
                free(d->rows[i].mend);
        }
        free(d->rows);
}

static bool is_wrong(const struct doctor *d)
{
        for (size_t i = 0; i < d->n; i++)
                if (d->rows[i].verdict == WRONG)
                        return true;
        return false;
}

static void path_of(const struct doctor *d, const char *name, struct buf *out)
{
        buf_reset(out);
        buf_printf(out, "%s/%s", d->dir, name);
}

/* ---- the folder */

static bool check_folder(struct doctor *d)
{
        struct buf mend BUF_CLEANUP = {0};
        struct stat st;

        if (lstat(d->dir, &st) != 0) {
                add_finding(d, "folder", WRONG, "`drover up` makes it; another one is named with --dir",
                            "there is no folder %s: %s", d->dir, strerror(errno));
                return false;
        }
        if (!S_ISDIR(st.st_mode)) {
                add_finding(d, "folder", WRONG, "name the folder itself with --dir", "%s is no folder",
                            d->dir);
                return false;
        }
        d->owner = st.st_uid;
        if (st.st_uid != geteuid() && geteuid() != 0) {
                add_finding(d, "folder", WRONG, "run the command as that user, or as root",
                            "%s belongs to user %u, and not to you", d->dir, (unsigned)st.st_uid);
                return false;
        }
        buf_printf(&mend, "chmod go-w %s", d->dir);
        if (st.st_mode & 022)
                add_finding(d, "folder", WRONG, buf_z(&mend), "others may write into %s (mode %03o)", d->dir,
                            (unsigned)st.st_mode & 0777);
        else
                add_finding(d, "folder", FINE, NULL, "%s belongs to user %u", d->dir, (unsigned)st.st_uid);
        return true;
}

struct kept {
        const char *name;
        mode_t forbidden;
};

/* Checks files that others must not read or write. */
static void check_modes(struct doctor *d)
{
        static const struct kept files[] = {{"ca", 022},
                                            {"ca/ca.key", 077},
                                            {"ca/ca.crt", 022},
                                            {"credential.key", 077},
                                            {"ticket.key", 077},
                                            {"drover.db", 077},
                                            {"drover.db-wal", 077},
                                            {"spool", 077},
                                            {"server.json", 022},
                                            {"droverd.yaml", 022},
                                            {"agent", 077},
                                            {"agent/agent.key", 077},
                                            {"agent/agent.crt", 022},
                                            {"agent/ca.crt", 022},
                                            {"agent/journal", 077},
                                            {"agent/shepherd.sock", 077},
                                            {"agent.token", 077}};
        unsigned seen = 0, bad = 0;
        uid_t agent = d->owner; /* the agent may have a user of its own */

        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
                struct buf path BUF_CLEANUP = {0}, mend BUF_CLEANUP = {0};
                struct stat st;

                path_of(d, files[i].name, &path);
                if (lstat(buf_z(&path), &st) != 0)
                        continue;
                seen++;
                if (strcmp(files[i].name, "agent") == 0)
                        agent = st.st_uid;
                uid_t owner = str_starts(str_of(files[i].name), STR("agent/")) ? agent : d->owner;
                if (S_ISLNK(st.st_mode)) {
                        add_finding(d, "modes", WRONG, "put the file itself there", "%s is a symbolic link",
                                    buf_z(&path));
                        bad++;
                } else if (st.st_uid != owner && st.st_uid != 0 && strcmp(files[i].name, "agent") != 0) {
                        buf_printf(&mend, "chown %u %s", (unsigned)owner, buf_z(&path));
                        add_finding(d, "modes", WRONG, buf_z(&mend),
                                    "%s belongs to user %u, and not to user %u", buf_z(&path),
                                    (unsigned)st.st_uid, (unsigned)owner);
                        bad++;
                } else if (st.st_mode & files[i].forbidden) {
                        buf_printf(&mend, "chmod %s %s", files[i].forbidden == 077 ? "go-rwx" : "go-w",
                                   buf_z(&path));
                        if (strstr(files[i].name, ".key"))
                                buf_addz(&mend, "; who could read the key has it: make a new one");
                        add_finding(d, "modes", WRONG, buf_z(&mend), "others may %s %s (mode %03o)",
                                    files[i].forbidden == 077 ? "use" : "write", buf_z(&path),
                                    (unsigned)st.st_mode & 0777);
                        bad++;
                }
        }
        if (!bad)
                add_finding(d, "modes", FINE, NULL,
                            "%u files and folders with state or keys are kept from others", seen);
}

static void check_settings(struct doctor *d)
{
        struct buf path BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        struct doc *doc = NULL;
        struct err err = {""};
        int rc;

        path_of(d, "droverd.yaml", &path);
        rc = fs_read(AT_FDCWD, buf_z(&path), TEXT_MAX, &text, &err);
        if (rc == -ENOENT) {
                add_finding(d, "settings", FINE, NULL, "there is no %s: all settings have their defaults",
                            buf_z(&path));
                return;
        }
        if (rc == 0)
                rc = doc_parse(buf_z(&path), buf_view(&text), &doc, &err);
        if (rc == 0 && doc && doc->kind != DOC_MAP)
                rc = err_set(&err, -EINVAL, "%s: settings are lines NAME: VALUE", buf_z(&path));
        if (rc == 0) /* names and values: the server knows them */
                rc = program_checks_settings(d->dir, &err);
        if (rc != 0)
                add_finding(d, "settings", WRONG, "correct that line; droverd(8) has the settings", "%s",
                            err.text);
        else
                add_finding(d, "settings", FINE, NULL, "%s is right", buf_z(&path));
        doc_free(doc);
}

/* ---- the agent's file: mapping of users */

static void check_user(struct doctor *d, const char *owner, const char *name, uint64_t min_uid)
{
        const struct passwd *pw = getpwnam(name);

        if (!pw)
                add_finding(d, "users", WRONG,
                            "add the user to this machine, or take the line out of the file",
                            "%s is mapped to %s, and there is no such user here", owner, name);
        else if (pw->pw_uid == 0 || pw->pw_uid < min_uid)
                add_finding(d, "users", WRONG, "map the owner to another user, or lower min_uid",
                            "%s is mapped to %s, whose number %u is below min_uid, %llu: no job runs as that "
                            "user",
                            owner, name, (unsigned)pw->pw_uid, (unsigned long long)min_uid);
        else
                add_finding(d, "users", FINE, NULL, "%s is mapped to %s (%u)", owner, name,
                            (unsigned)pw->pw_uid);
}

static void check_users(struct doctor *d)
{
        struct buf text BUF_CLEANUP = {0};
        struct doc *doc = NULL;
        struct err err = {""};
        const struct doc *users, *one;
        uint64_t min_uid = UID_MIN;
        int rc;

        if (!d->agent_config)
                return;
        rc = fs_read(AT_FDCWD, d->agent_config, TEXT_MAX, &text, &err);
        if (rc == 0)
                rc = doc_parse(d->agent_config, buf_view(&text), &doc, &err);
        if (rc != 0) {
                add_finding(d, "agent", WRONG, "correct the file; drover-agent(8) has the settings", "%s",
                            err.text);
                return;
        }
        add_finding(d, "agent", FINE, NULL, "%s can be read", d->agent_config);
        if (doc_get(doc, "min_uid"))
                doc_count(doc_get(doc, "min_uid"), &min_uid, NULL);
        users = doc_get(doc, "users");
        for (one = users && users->kind == DOC_MAP ? users->first : NULL; one; one = one->next) {
                MEM_CLEANUP char *owner = str_dupz(one->key), *name = str_dupz(one->text);

                if (one->kind == DOC_WORD && *name && strcmp(name, "*") != 0)
                        check_user(d, owner, name, min_uid);
        }
        if (users && geteuid() != 0)
                add_finding(d, "users", WARNING, "start the agent as root",
                            "%s maps users, and only an agent of root's can become another user",
                            d->agent_config);
        doc_free(doc);
}

/* ---- certificates */

static void check_certificate(struct doctor *d, const char *name, bool renewed)
{
        struct buf path BUF_CLEANUP = {0}, when BUF_CLEANUP = {0};
        struct certificate_times t;
        int64_t now = d->cli->now_ms;
        const char *mend =
                renewed ? "start the agent: it renews its certificate while it is connected; else let it "
                          "join again with a new token"
                        : "restore the folder ca from a backup, or make a new server";

        path_of(d, name, &path);
        int rc = certificate_read(buf_z(&path), &t);
        if (rc == -ENOENT)
                return;
        if (rc != 0) {
                add_finding(d, "certificates", WRONG, mend, "%s is not a readable certificate", buf_z(&path));
                return;
        }
        human_time(&when, t.not_after_ms, now);
        if (now < t.not_before_ms)
                add_finding(d, "certificates", WRONG, "set this machine's clock",
                            "%s is not valid yet: this machine's clock is behind", buf_z(&path));
        else if (now > t.not_after_ms)
                add_finding(d, "certificates", WRONG, mend, "%s has expired (%s)", buf_z(&path),
                            buf_z(&when));
        else if (!renewed && t.not_after_ms - now < 30 * (int64_t)DAY_MS)
                add_finding(d, "certificates", WARNING, mend, "%s expires soon (%s)", buf_z(&path),
                            buf_z(&when));
        else
                add_finding(d, "certificates", FINE, NULL, "%s is valid until %s", buf_z(&path),
                            buf_z(&when));
}

static void check_authority(struct doctor *d)
{
        struct buf path BUF_CLEANUP = {0}, ours BUF_CLEANUP = {0}, agents BUF_CLEANUP = {0};

        check_certificate(d, "ca/ca.crt", false);
        check_certificate(d, "agent/agent.crt", true);
        path_of(d, "ca/ca.crt", &path);
        if (fs_read(AT_FDCWD, buf_z(&path), TEXT_MAX, &ours, NULL) != 0)
                return;
        path_of(d, "agent/ca.crt", &path);
        if (fs_read(AT_FDCWD, buf_z(&path), TEXT_MAX, &agents, NULL) == 0 &&
            !str_eq(str_trim(buf_view(&ours)), str_trim(buf_view(&agents))))
                add_finding(
                        d, "certificates", WRONG,
                        "let the agent join again: remove agent.key, agent.crt and ca.crt in its folder, and "
                        "give it a "
                        "new token",
                        "%s is another server's authority: the agent will not speak to this server",
                        buf_z(&path));
}

/* ---- this machine */

static void check_disk(struct doctor *d)
{
        const char *mend = "free some, or move the folder; a server whose disk is full takes no work";
        struct buf text BUF_CLEANUP = {0};
        struct statvfs fs;

        if (statvfs(d->dir, &fs) != 0)
                return;
        uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize, all = (uint64_t)fs.f_blocks * fs.f_frsize;

        human_bytes(&text, (int64_t)left);
        add_finding(d, "disk",
                    left < DISK_BAD                        ? WRONG
                    : left < DISK_BYTES || left < all / 20 ? WARNING
                                                           : FINE,
                    mend, "%s are free for %s", buf_z(&text), d->dir);
        if (fs.f_files)
                add_finding(d, "disk",
                            fs.f_favail < 1000              ? WRONG
                            : fs.f_favail < fs.f_files / 20 ? WARNING
                                                            : FINE,
                            "remove files: each is one inode", "%llu inodes are free for %s",
                            (unsigned long long)fs.f_favail, d->dir);
}

static void check_limits(struct doctor *d)
{
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) == 0)
                add_finding(d, "limits", files.rlim_max < FILES_WANTED ? WARNING : FINE,
                            "ulimit -Hn 65536, LimitNOFILE= in a unit of systemd",
                            "a process may have %llu files open", (unsigned long long)files.rlim_max);
}

static bool number_in(const char *path, uint64_t *ret)
{
        struct buf text BUF_CLEANUP = {0};

        return fs_read(AT_FDCWD, path, 4096, &text, NULL) == 0 &&
               str_to_u64(str_trim(buf_view(&text)), ret) == 0;
}

static void check_kernel(struct doctor *d)
{
        struct buf text BUF_CLEANUP = {0};
        uint64_t n = 0;
        bool spaces = number_in("/proc/sys/user/max_user_namespaces", &n) && n > 0;

        if (number_in("/proc/sys/kernel/unprivileged_userns_clone", &n) && n == 0 && geteuid() != 0)
                spaces = false;
        add_finding(
                d, "kernel", spaces ? FINE : WARNING, "sysctl user.max_user_namespaces=10000",
                spaces ? "there are user namespaces"
                       : "there are no user namespaces: containers need root, and jobs are contained less");
        bool filters = fs_read(AT_FDCWD, "/proc/sys/kernel/seccomp/actions_avail", 4096, &text, NULL) == 0 &&
                       str_search(buf_view(&text), STR("errno")) >= 0;
        add_finding(d, "kernel", filters ? FINE : WARNING, "boot a kernel with CONFIG_SECCOMP_FILTER",
                    filters ? "there are filters of system calls"
                            : "there are no filters of system calls (seccomp)");
        bool groups = access("/sys/fs/cgroup", W_OK) == 0;
        add_finding(d, "kernel", groups ? FINE : WARNING,
                    "run the agent as root, or by systemd with Delegate=yes; drover-agent(8) has more",
                    groups ? "control groups can be made"
                           : "control groups cannot be made here: limits on jobs are "
                             "watched, and not enforced by the kernel");
        if (d->cli->now_ms < INT64_C(1704067200000))
                add_finding(d, "clock", WRONG, "set this machine's clock",
                            "this machine's clock is years behind");
}

/* ---- state of a running server */

static bool can_connect(struct str address)
{
        ptrdiff_t colon = str_rfind(address, ':');
        MEM_CLEANUP char *host = colon > 0 ? str_dupz(str_head(address, (size_t)colon)) : NULL,
                         *port = colon > 0 ? str_dupz(str_skip(address, (size_t)colon + 1)) : NULL;
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct timeval limit = {.tv_sec = CONNECT_MS / 1000};
        struct addrinfo *found = NULL;
        bool good = false;

        if (!host || !port)
                return false;
        if (*host == '[' && host[strlen(host) - 1] == ']') {
                host[strlen(host) - 1] = 0;
                memmove(host, host + 1, strlen(host));
        }
        if (getaddrinfo(host, port, &hints, &found) != 0)
                return false;
        for (struct addrinfo *a = found; a && !good; a = a->ai_next) {
                int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);

                if (fd >= 0)
                        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
                good = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0;
                if (fd >= 0)
                        close(fd);
        }
        freeaddrinfo(found);
        return good;
}

static void check_port(struct doctor *d, struct view address)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(address, &text);
        if (!text.n || str_starts(buf_view(&text), STR("unix:")))
                return;
        bool open = can_connect(buf_view(&text));
        add_finding(d, "ports", open ? FINE : WRONG, "look for a firewall, and at --listen and --api-listen",
                    open ? "%s takes connections" : "%s takes no connections from here", buf_z(&text));
}

static void check_ports(struct doctor *d)
{
        struct buf text BUF_CLEANUP = {0};
        struct view server, agents, one;
        size_t at = 0;

        if (instance_read(str_of(d->dir), &text, &server) != 0)
                return;
        check_port(d, view_get(server, "api_tls"));
        agents = view_get(server, "agents");
        while (view_next(agents, &at, &one))
                check_port(d, one);
}

static void check_tokens(struct doctor *d)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view tokens, one;
        size_t at = 0, good = 0;

        if (api_call(d->cli, &(struct api_request){.path = "/v1/tokens"}, &answer, NULL) != 0)
                return;
        tokens = view_get(answer.root, "tokens");
        while (view_next(tokens, &at, &one)) {
                struct buf id BUF_CLEANUP = {0}, when BUF_CLEANUP = {0};
                int64_t end = view_integer(view_get(one, "expires_ms"), INT64_MAX);

                view_text(view_get(one, "id"), &id);
                human_time(&when, end, d->cli->now_ms);
                if (!view_is(view_get(one, "kind"), "user") || end - d->cli->now_ms > EXPIRES_MS)
                        good++;
                else
                        add_finding(d, "tokens", WARNING, "make another one with `drover token user`",
                                    "the token %s %s (%s)", buf_z(&id),
                                    end > d->cli->now_ms ? "expires soon" : "has expired", buf_z(&when));
        }
        add_finding(d, "tokens", FINE, NULL,
                    good == 1 ? "%zu token is good for a week or more, or is to be used once"
                              : "%zu tokens are good for a week or more, or are to be used once",
                    good);
}

static void check_queue(struct doctor *d, const char *agent, struct view queue)
{
        static const char *const wanted[] = {"memory", "cpu", "pids", "kill"};
        struct view limits = view_get(queue, "limits");
        struct buf name BUF_CLEANUP = {0}, missing BUF_CLEANUP = {0};

        view_text(view_get(queue, "name"), &name);
        if (view_there(view_get(queue, "unreachable"))) {
                struct buf why BUF_CLEANUP = {0};

                view_text(view_get(queue, "unreachable"), &why);
                add_finding(d, "agents", WARNING, "check the batch system or server behind the queue",
                            "queue %s@%s cannot be reached: %s", buf_z(&name), agent, buf_z(&why));
        }
        if (view_type(limits) != VIEW_OBJECT ||
            !view_is(view_get(view_get(queue, "ad"), "Runner"), "process"))
                return;
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
                if (!view_there(view_get(limits, wanted[i])))
                        buf_printf(&missing, "%s%s", missing.n ? ", " : "", wanted[i]);
        add_finding(d, "agents", missing.n ? WARNING : FINE,
                    "run that agent as root, or by systemd with Delegate=yes: it needs control groups",
                    missing.n ? "limits that the kernel does not enforce at %s@%s: %s"
                              : "the kernel enforces limits on jobs at %s@%s%s",
                    buf_z(&name), agent, buf_z(&missing));
}

static void check_agents(struct doctor *d)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view agents, one, queues, queue;
        size_t at = 0, count = 0;

        if (api_call(d->cli, &(struct api_request){.path = "/v1/agents"}, &answer, NULL) != 0)
                return;
        agents = view_get(answer.root, "agents");
        while (view_next(agents, &at, &one)) {
                struct buf name BUF_CLEANUP = {0};
                size_t in = 0;

                count++;
                view_text(view_get(one, "name"), &name);
                if (view_true(view_get(one, "revoked")))
                        add_finding(d, "agents", WARNING,
                                    "let it join again with a new token, if it is to come back",
                                    "agent %s was revoked", buf_z(&name));
                else if (!view_is(view_get(one, "state"), "connected"))
                        add_finding(d, "agents", WARNING, "look at that machine: its agent's log says why",
                                    "agent %s is not connected", buf_z(&name));
                queues = view_get(one, "queues");
                while (view_next(queues, &in, &queue))
                        check_queue(d, buf_z(&name), queue);
        }
        if (!count)
                add_finding(d, "agents", WARNING, "drover token agent",
                            "no agent has joined: no job can run");
}

static void check_server(struct doctor *d)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct err err = {""};
        int64_t before = clock_wall_ms();
        int rc = api_call(d->cli, &(struct api_request){.path = "/v1/server", .timeout_ms = 10000}, &answer,
                          &err);

        if (rc == API_NO_SERVER) {
                add_finding(d, "server", WARNING, "drover up, or start droverd",
                            "no server answers: checks that need one were skipped");
                return;
        }
        if (rc != 0) {
                add_finding(d, "server", WRONG, "look at the server's log",
                            "the server does not answer as it should: %s", err.text);
                return;
        }
        int64_t theirs = view_integer(view_get(answer.root, "now_ms"), before);
        int64_t off = theirs < before ? before - theirs : theirs - clock_wall_ms();
        struct buf why BUF_CLEANUP = {0};

        view_text(view_get(answer.root, "reason"), &why);
        if (view_true(view_get(answer.root, "accepting")))
                add_finding(d, "server", FINE, NULL, "it answers, and takes work");
        else
                add_finding(d, "server", WRONG, "free some space where its folder is", "it takes no work: %s",
                            buf_z(&why));
        off = off > 0 ? off : 0;
        add_finding(d, "clock",
                    off > CLOCK_BAD_MS ? WRONG
                    : off > CLOCK_MS   ? WARNING
                                       : FINE,
                    "let a time service set both clocks", "the server's clock and this one differ by %lld s",
                    (long long)off / 1000);
        check_ports(d);
        check_tokens(d);
        check_agents(d);
}

/* ---- the command */

static void check_here(struct doctor *d)
{
        if (!check_folder(d))
                return;
        check_modes(d);
        check_settings(d);
        check_users(d);
        check_authority(d);
        check_disk(d);
        check_limits(d);
        check_kernel(d);
}

void doctor_say_wrong(struct cli *cli, const char *dir)
{
        struct doctor d = {.cli = cli, .dir = dir};

        check_here(&d);
        for (size_t i = 0; i < d.n; i++)
                if (d.rows[i].verdict == WRONG)
                        cli_note("%s: %s (%s)", d.rows[i].check, d.rows[i].text,
                                 d.rows[i].mend ? d.rows[i].mend : "see drover doctor");
        rows_free(&d);
}

static void print_json(const struct doctor *d)
{
        struct buf out BUF_CLEANUP = {0};
        struct json j = {.out = &out};

        json_open(&j, '{');
        json_kbool(&j, "wrong", is_wrong(d));
        json_key(&j, "checks");
        json_open(&j, '[');
        for (size_t i = 0; i < d->n; i++) {
                json_open(&j, '{');
                json_kstrz(&j, "check", d->rows[i].check);
                json_kstrz(&j, "verdict", verdicts[d->rows[i].verdict]);
                json_kstrz(&j, "text", d->rows[i].text);
                json_kstrz(&j, "mend", d->rows[i].mend);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&out, '\n');
        cli_print(&out);
}

static void add_safe(struct table *t, const char *before, const char *text)
{
        struct buf safe BUF_CLEANUP = {0};

        buf_addz(&safe, before);
        human_safe(&safe, str_of(text));
        table_text(t, buf_view(&safe));
}

static void print_rows(const struct doctor *d)
{
        static const struct table_column columns[] = {
                {"", false, false}, {"", false, false}, {"", false, true, .wraps = true}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, 3);
        t.bare = true;
        for (size_t i = 0; i < d->n; i++) {
                const struct row *r = &d->rows[i];

                table_text(&t, str_of(verdicts[r->verdict]));
                table_paint(&t, colours[r->verdict]);
                table_text(&t, str_of(r->check));
                add_safe(&t, "", r->text);
                if (r->mend) {
                        table_text(&t, STR(""));
                        table_text(&t, STR(""));
                        add_safe(&t, "-> ", r->mend);
                }
        }
        cli_print_table(d->cli, &t);
}

int cmd_doctor(struct cli *cli, const struct options *o)
{
        struct buf dir BUF_CLEANUP = {0};
        struct err err = {""};
        struct doctor d = {.cli = cli, .agent_config = options_text(o, "agent-config")};

        if (instance_dir(cli->dir, &dir, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        d.dir = cli->dir = buf_z(&dir);
        check_here(&d);
        check_server(&d);
        if (cli->json)
                print_json(&d);
        else
                print_rows(&d);
        int code = is_wrong(&d) ? CLI_FAILED : CLI_OK;
        rows_free(&d);
        api_close(cli);
        cli->dir = NULL;
        return code;
}
