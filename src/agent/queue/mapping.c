#include "agent/queue/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/config/users.h"
#include "agent/model/queue.h"
#include "base/system/cgroup.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "base/system/uuid.h"

#define SHEPHERD_WAIT_MS 20000

/* Makes a folder in root's folder, with this user, group and mode. */
static int make_folder(int dir, const char *name, uid_t uid, gid_t gid, mode_t mode, struct err *err)
{
        if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
                return err_set(err, -errno, "cannot make the folder %s: %s", name, strerror(errno));
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0) {
                int r = -errno;

                if (fd >= 0)
                        close(fd);
                return err_set(err, r, "cannot use the folder %s: %s", name, strerror(-r));
        }
        return fd;
}

/* Reads the instance's id, with which the shepherd finds processes of an earlier agent: root keeps it. */
static int read_instance(struct agent *a, int dir, struct err *err)
{
        BUF_CLEANUP struct buf id = {0};

        if (fs_read(dir, "instance", 64, &id, NULL) == 0 && uuid_valid(str_trim(buf_view(&id)))) {
                snprintf(a->instance, sizeof(a->instance), STR_FMT, STR_ARG(str_trim(buf_view(&id))));
                return 0;
        }
        uuid_new(a->instance);
        return fs_write(dir, "instance", str_of(a->instance), 0644, true, err);
}

/* Makes the runners' folders beside the agent's; scripts on nodes look there for the lease. */
static int make_runners_folders(const struct config *c, int dir, struct err *err)
{
        for (size_t i = 0; i < c->queue_count; i++) {
                BUF_CLEANUP struct buf name = {0};

                if (!strcmp(c->queues[i]->runner, runner_process.name) || config_queue_places(c->queues[i]))
                        continue;
                bool hop = !strcmp(c->queues[i]->runner, runner_drover.name);
                buf_printf(&name, "%s.%s", hop ? "hop" : "batch", c->queues[i]->name);
                int fd = make_folder(dir, buf_z(&name), c->agent_uid, c->agent_gid, hop ? 0700 : 0755, err);
                if (fd < 0)
                        return fd;
                close(fd);
        }
        return 0;
}

/* Checks that the agent's key is readable: if the folder was another user's before, the agent would fail
 * later with a worse message. */
static int check_key(int folder, const struct config *c, struct err *err)
{
        struct stat st;

        if (fstatat(folder, "agent.key", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid == c->agent_uid)
                return 0;
        return err_set(
                err, -EPERM,
                "the agent shall run as user %u, and its key in %s/agent belongs to user %u: `chown -R %u:%u "
                "%s/agent` changes that, or `user` in its file",
                (unsigned)c->agent_uid, c->dir, (unsigned)st.st_uid, (unsigned)c->agent_uid,
                (unsigned)c->agent_gid, c->dir);
}

static int make_folders(struct agent *a, struct err *err)
{
        struct config *c = &a->config;
        struct stat st;
        int dir = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (dir < 0 || fstat(dir, &st) < 0)
                return err_set(err, -errno, "cannot use the folder %s: %s", c->dir, strerror(errno));
        int r = 0;
        if (st.st_uid != 0 || (st.st_mode & 022))
                r = err_set(err, -EPERM,
                            "with `users` the folder %s must be root's, and writable by nobody else", c->dir);
        if (r == 0 && fchmod(dir, 0755) < 0)
                r = err_set(err, -errno, "cannot open up the folder %s: %s", c->dir, strerror(errno));
        int agent = r < 0 ? r : make_folder(dir, "agent", c->agent_uid, c->agent_gid, 0700, err);
        if (agent >= 0 && (r = check_key(agent, c, err)) < 0) {
                close(agent);
                agent = r;
        }
        int jobs = agent < 0 ? agent : make_folder(dir, "jobs", 0, c->agent_gid, 0751, err);
        r = jobs < 0 ? jobs : make_runners_folders(c, dir, err);
        if (agent >= 0)
                close(agent);
        a->jobs = jobs;
        BUF_CLEANUP struct buf map = {0};
        users_print(c, &map);
        if (r == 0)
                r = fs_write(dir, "users", buf_view(&map), 0644, true, err);
        if (r == 0)
                r = read_instance(a, dir, err);
        close(dir);
        if (r < 0)
                return r;
        struct buf path = {0};
        buf_printf(&path, "%s/jobs", c->dir);
        a->jobs_path = buf_take(&path);
        buf_printf(&path, "%s/users", c->dir);
        a->users_path = buf_take(&path);
        buf_printf(&path, "%s/agent", c->dir);
        a->shepherd_dir = c->dir;
        c->dir = buf_take(&path);
        return 0;
}

struct waiting {
        struct loop *loop;
        bool ready;
        char why[512]; /* reason why it cannot be started */
};

static void on_ready(void *arg, uint32_t containment, int hide_error)
{
        struct waiting *w = arg;

        (void)containment;
        (void)hide_error;
        w->ready = true;
        loop_stop(w->loop);
}

static void on_unreachable(void *arg, const char *why)
{
        struct waiting *w = arg;

        if (why)
                snprintf(w->why, sizeof(w->why), "%s", why);
}

/* Ignores tasks of an earlier agent; they are handled later. */
static void on_tasks(void *arg, const struct run_event *events, size_t count)
{
        (void)arg;
        (void)events;
        (void)count;
}

static void on_silent(void *arg, const char *why)
{
        (void)arg;
        (void)why;
}

static void on_late(void *arg)
{
        loop_stop(((struct waiting *)arg)->loop);
}

/* Starts the shepherd as root. Without an agent it stays long enough for the agent to connect again as its
 * own user. */
static int start_shepherd(struct agent *a, struct err *err)
{
        static const struct run_observer observer = {
                .tasks = on_tasks, .ready = on_ready, .unreachable = on_unreachable, .silent = on_silent};
        struct waiting w = {.loop = loop_new()};
        struct runner_config rc = mapping_runner(a);
        MEM_CLEANUP char *v2 = a->config.cgroups ? cgroups_own(true) : NULL;
        MEM_CLEANUP char *v1 = a->config.cgroups ? cgroups_own(false) : NULL;
        struct runner *r;

        rc.cgroups[0] = v2 ? v2 : v1;
        rc.cgroups[1] = v2 ? v1 : NULL;
        rc.loop = w.loop;
        rc.observer = &observer;
        rc.arg = &w;
        int error = runner_process.open(&rc, &r, err);
        if (error == 0) {
                struct timer *late = timer_new(w.loop, on_late, &w);

                timer_start(late, SHEPHERD_WAIT_MS);
                loop_run(w.loop);
                r->kind->close(r, false);
                timer_free(late);
                if (!w.ready)
                        error = err_set(err, -ETIMEDOUT,
                                        "the shepherd does not start: %s; see %s/shepherd.log",
                                        *w.why ? w.why : "it does not answer", a->shepherd_dir);
        }
        loop_free(w.loop);
        return error;
}

static int become_user(const struct config *c, struct err *err)
{
        if (setgroups(0, NULL) < 0 || setresgid(c->agent_gid, c->agent_gid, c->agent_gid) < 0 ||
            setresuid(c->agent_uid, c->agent_uid, c->agent_uid) < 0)
                return err_set(err, -errno, "cannot become the agent's own user: %s", strerror(errno));
        if (setuid(0) == 0)
                return err_set(err, -EPERM, "cannot give up root's rights");
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        return 0;
}

struct runner_config mapping_runner(struct agent *a)
{
        return (struct runner_config){.loop = a->loop,
                                      .dir = a->shepherd_dir ? a->shepherd_dir : a->config.dir,
                                      .instance = a->instance,
                                      .program = a->config.shepherd,
                                      .users_path = a->users_path,
                                      .min_uid = (unsigned)a->config.min_uid,
                                      .agent_uid = a->config.agent_uid,
                                      .hidden = (const char *const *)a->config.hide.v,
                                      .silence_ms = (int64_t)a->config.shepherd_silence_ms,
                                      .arg = a};
}

int mapping_begin(struct agent *a, struct err *err)
{
        int r = make_folders(a, err);

        if (r == 0 && !*program_self())
                r = err_set(err, -ENOENT, "cannot tell where the program is");
        if (r == 0)
                r = start_shepherd(a, err);
        if (r == 0)
                r = become_user(&a->config, err);
        if (r == 0)
                log_info("msg=\"root's rights were given up\" uid=%u min_uid=%llu",
                         (unsigned)a->config.agent_uid, (unsigned long long)a->config.min_uid);
        return r;
}
