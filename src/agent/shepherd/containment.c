/* The view is a mount namespace, made by a process of its own that ends at once: the shepherd keeps the
 * namespace by a descriptor, and a job enters it with setns, which takes some 10 us, where making a
 * namespace for each job takes 120 us (both on the machine of docs/benchmarks.md). Mounts made later on the
 * machine appear in it where the machine's mounts are shared; otherwise the view is made anew when poll of
 * /proc/self/mounts reports a change (proc(5)). Folders are hidden as a whole, never single files: a mount
 * on a file is lost when the file is replaced. Own folders for /tmp need a namespace for each job, so only
 * jobs of other users get them by default.
 *
 * In a user namespace a process may not trace processes outside of it, nor access them through
 * /proc/PID/root, whatever its uid (ptrace(2)). Without one the capabilities that would allow it are dropped
 * from root's jobs.
 *
 * The filter is generated when Drover is built (make_filter.c). A job that installs it starts some 50 us
 * later.
 */
#include "agent/shepherd/containment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/sandbox_names.h"

#define VIEW_LIMIT_S 5 /* time to make a view, for folders on a server that does not answer */
#define PATH_SIZE    4096
#define LOGINS       "/run/user" /* sockets of the programs of logged-in users */

static const struct sock_filter filter_code[] = {
#include "agent/shepherd_filter.inc"
};

struct containment {
        bool root;
        char *hidden[CONTAINMENT_HIDDEN_MAX + 1], *jobs; /* without symbolic links */
        size_t count;
        int mounts;           /* /proc/self/mounts; -1: not there */
        int user_space, view; /* namespaces; -1: none */
        uint32_t parts;
};

/* ---- the view */

static bool beneath(const char *path, const char *folder)
{
        size_t n = strlen(folder);

        return !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

static int put_text(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        int r = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : errno;

        if (fd >= 0)
                close(fd);
        return r;
}

/* Enters a user namespace in which only our own ids exist, unchanged. */
static int own_user_space(uid_t uid, gid_t gid)
{
        char map[64];
        int r;

        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return errno;
        r = put_text("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "%u %u 1", uid, uid);
        if (r == 0)
                r = put_text("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "%u %u 1", gid, gid);
        return r ? r : put_text("/proc/self/gid_map", map);
}

static int make_folders(const char *above, const char *path)
{
        char part[PATH_SIZE];

        snprintf(part, sizeof(part), "%s", path);
        for (char *p = part + strlen(above) + 1; (p = strchr(p, '/')); *p++ = '/') {
                *p = 0;
                if (mkdir(part, 0755) < 0 && errno != EEXIST)
                        return errno;
        }
        return mkdir(part, 0755) < 0 && errno != EEXIST ? errno : 0;
}

/* Covers a folder with an empty one that cannot be written; `jobs` is a copy of the mount of the sandboxes,
 * put back where it was. */
static int cover(const struct containment *c, const char *folder, int jobs)
{
        struct mount_attr readonly = {.attr_set = MOUNT_ATTR_RDONLY};
        int r = 0;

        if (mount("drover", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k") < 0)
                return errno;
        if (beneath(c->jobs, folder)) {
                r = make_folders(folder, c->jobs);
                if (r == 0 && move_mount(jobs, "", AT_FDCWD, c->jobs, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                        r = errno;
        }
        if (r == 0 && mount_setattr(AT_FDCWD, folder, 0, &readonly, sizeof(readonly)) < 0)
                r = errno;
        return r;
}

/* Returns whether our user may give this folder another name. */
static bool may_rename(const char *folder)
{
        char above[PATH_SIZE];
        struct stat st, own;

        snprintf(above, sizeof(above), "%s", folder);
        *strrchr(above, '/') = 0;
        const char *parent = *above ? above : "/";
        return access(parent, W_OK) == 0 && stat(parent, &st) == 0 && stat(folder, &own) == 0 &&
               (!(st.st_mode & S_ISVTX) || own.st_uid == getuid() || st.st_uid == getuid());
}

/* Keeps the folders above a hidden one where they are, by mounting each onto itself: a job that renamed one
 * would bring the hidden folder to where the next view, or a container that has been started already, does
 * not cover it. What cannot be mounted stays as it is. */
static void pin_above(const struct containment *c, size_t i)
{
        char part[PATH_SIZE];

        snprintf(part, sizeof(part), "%s", c->hidden[i]);
        for (char *p = part + 1; (p = strchr(p, '/')); *p++ = '/') {
                bool pinned = false;

                *p = 0;
                for (size_t k = 0; k < i; k++)
                        pinned |= beneath(c->hidden[k], part) && strcmp(c->hidden[k], part) != 0;
                if (!pinned && may_rename(part))
                        mount(part, part, NULL, MS_BIND | MS_REC, NULL);
        }
}

static int view_mounts(const struct containment *c)
{
        struct mount_attr readonly = {.attr_set = MOUNT_ATTR_RDONLY};

        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return errno;
        for (size_t i = 0; i < c->count && !c->root; i++)
                pin_above(c, i);
        int jobs = open_tree(AT_FDCWD, c->jobs, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (jobs < 0)
                return errno;
        for (size_t i = 0; i < c->count; i++) {
                bool inner = false;

                for (size_t k = 0; k < c->count; k++)
                        inner |= k != i && beneath(c->hidden[i], c->hidden[k]) &&
                                 (k < i || strcmp(c->hidden[i], c->hidden[k]) != 0);
                int r = inner ? 0 : cover(c, c->hidden[i], jobs);
                if (r)
                        return r;
        }
        /* the user's part of the control groups */
        if (!c->root)
                mount_setattr(AT_FDCWD, "/sys/fs/cgroup", AT_RECURSIVE, &readonly, sizeof(readonly));
        return 0;
}

/* The helper process: sends an errno, with the descriptors if it is 0. */
static void __attribute__((noreturn)) view_make(const struct containment *c, int to)
{
        uid_t uid = getuid();
        gid_t gid = getgid();
        int r, fds[2];

        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* makes our /proc entries our own again */
        r = !c->root ? own_user_space(uid, gid) : unshare(CLONE_NEWNS) < 0 ? errno : 0;
        if (r == 0)
                r = view_mounts(c);
        fds[0] = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        fds[1] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        if (r == 0 && (fds[0] < 0 || fds[1] < 0))
                r = errno;
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(fds))];
        } control = {0};
        struct iovec io = {&r, sizeof(r)};
        struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
        if (r == 0) {
                m.msg_control = &control;
                m.msg_controllen = sizeof(control);
                control.header = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fds))};
                memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
        }
        sendmsg(to, &m, MSG_NOSIGNAL);
        _exit(0);
}

/* The helper's answer: 0 and the two descriptors, or an errno. */
static int view_take(int from, int ret_fds[2])
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(2 * sizeof(int))];
        } control;
        int r = 0;
        struct iovec io = {&r, sizeof(r)};
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);

        if (n != (ssize_t)sizeof(r))
                return n < 0 && errno == EAGAIN ? ETIMEDOUT : EIO;
        const struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        if (r == 0 && (!h || h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(2 * sizeof(int))))
                return EIO;
        if (r == 0)
                memcpy(ret_fds, CMSG_DATA(h), 2 * sizeof(int));
        return r;
}

static void view_close(struct containment *c)
{
        if (c->view >= 0)
                close(c->view);
        if (c->user_space >= 0)
                close(c->user_space);
        c->view = c->user_space = -1;
}

/* The view that is there stays when there is no new one. 0 or an errno. */
static int view_renew(struct containment *c)
{
        struct timeval limit = {.tv_sec = VIEW_LIMIT_S};
        int ends[2], fds[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return errno;
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        pid_t pid = fork();
        if (pid == 0)
                view_make(c, ends[1]);
        r = pid < 0 ? errno : 0;
        close(ends[1]);
        if (r == 0)
                r = view_take(ends[0], fds);
        close(ends[0]);
        if (pid > 0) {
                kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        continue;
        }
        if (r)
                return r;
        view_close(c);
        c->view = fds[0];
        if (c->root)
                close(fds[1]);
        else
                c->user_space = fds[1];
        c->parts |= SHEPHERD_HIDE;
        return 0;
}

static bool mounts_changed(const struct containment *c)
{
        struct pollfd p = {.fd = c->mounts, .events = POLLPRI};

        return c->mounts >= 0 && poll(&p, 1, 0) > 0;
}

struct containment *containment_new(const char *const *hidden, size_t count, const char *jobs, int *ret_why)
{
        struct containment *c = calloc(1, sizeof(*c));

        if (!c)
                abort();
        c->root = geteuid() == 0;
        c->view = c->user_space = -1;
        c->parts = SHEPHERD_NO_PRIVILEGES | SHEPHERD_FILTER;
        c->jobs = realpath(jobs, NULL);
        c->mounts = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
        mounts_changed(c);
        for (size_t i = 0; i < count && c->count < CONTAINMENT_HIDDEN_MAX; i++)
                if ((c->hidden[c->count] = realpath(hidden[i], NULL)))
                        c->count++;
        if ((c->hidden[c->count] = realpath(LOGINS, NULL)))
                c->count++;
        *ret_why = c->jobs ? view_renew(c) : ENOENT;
        if (c->root || c->view >= 0)
                c->parts |= SHEPHERD_OWN_TMP | SHEPHERD_NO_NETWORK;
        return c;
}

void containment_free(struct containment *c)
{
        if (!c)
                return;
        view_close(c);
        if (c->mounts >= 0)
                close(c->mounts);
        for (size_t i = 0; i < c->count; i++)
                free(c->hidden[i]);
        free(c->jobs);
        free(c);
}

uint32_t containment_parts(const struct containment *c)
{
        return c->parts;
}

int containment_plan(struct containment *c, uint32_t asked, const char *const *paths,
                     struct containment_job *job)
{
        uint32_t wanted = asked & SHEPHERD_CONTAINMENT;

        /* an unprivileged process gets namespaces only inside the view's */
        if (!c->root && (wanted & (SHEPHERD_OWN_TMP | SHEPHERD_NO_NETWORK)))
                wanted |= SHEPHERD_HIDE;
        uint32_t had = c->parts;
        if (!c->root && !(wanted & c->parts & (SHEPHERD_HIDE | SHEPHERD_NO_PRIVILEGES)))
                had &= ~(uint32_t)SHEPHERD_FILTER; /* the present filter does not allow another one */
        if ((asked & SHEPHERD_CONTAIN_ALL) && (wanted & ~had))
                return ENOSYS;
        job->flags = wanted & had;
        job->tmp = job->var_tmp = (job->flags & SHEPHERD_OWN_TMP) && *job->sandbox;
        for (; *paths; paths++) {
                job->tmp = job->tmp && !beneath(*paths, "/tmp");
                job->var_tmp = job->var_tmp && !beneath(*paths, "/var/tmp");
        }
        if ((job->flags & SHEPHERD_HIDE) && mounts_changed(c))
                view_renew(c);
        job->root = c->root;
        job->view = c->view;
        job->user_space = c->user_space;
        return 0;
}

/* ---- in the child */

/* Makes and opens a folder for /tmp with the user's rights: the sandbox belongs to the user, who may have
 * put anything there in an earlier step. Returns a copy of its mount, or -1. */
static int tmp_folder(const struct containment_job *job)
{
        int tree = -1;

        syscall(SYS_setfsgid, job->gid);
        syscall(SYS_setfsuid, job->uid);
        int sandbox = open(job->sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sandbox >= 0 && (mkdirat(sandbox, SANDBOX_TMP, 0700) == 0 || errno == EEXIST))
                tree = open_tree(sandbox, SANDBOX_TMP,
                                 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
        int error = errno;
        syscall(SYS_setfsuid, geteuid());
        syscall(SYS_setfsgid, getegid());
        if (sandbox >= 0)
                close(sandbox);
        errno = error;
        return tree;
}

static int own_tmp(const struct containment_job *job)
{
        static const char *const places[] = {"/tmp", "/var/tmp"};
        const bool wanted[] = {job->tmp, job->var_tmp};

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return errno;
        for (unsigned i = 0; i < 2; i++) {
                int tree = wanted[i] ? tmp_folder(job) : -1;

                if (!wanted[i])
                        continue;
                if (tree < 0 || move_mount(tree, "", AT_FDCWD, places[i], MOVE_MOUNT_F_EMPTY_PATH) < 0)
                        return errno;
                close(tree);
        }
        return 0;
}

static int own_network(void)
{
        struct ifreq lo = {.ifr_name = "lo"};

        if (unshare(CLONE_NEWNET) < 0)
                return errno;
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        lo.ifr_flags = IFF_UP;
        int r = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ? errno : 0;
        if (fd >= 0)
                close(fd);
        return r;
}

/* Installs the filter. Without NO_PRIVILEGES this needs the rights that the child has at the beginning. */
static int filter(const struct containment_job *job)
{
        if (!(job->flags & SHEPHERD_FILTER))
                return 0;
        const struct sock_fprog code = {sizeof(filter_code) / sizeof(*filter_code),
                                        (struct sock_filter *)filter_code};
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &code) < 0
                       ? errno
                       : 0;
}

int containment_enter(const struct containment_job *job)
{
        int r = 0;

        if (job->flags & SHEPHERD_HIDE) {
                if ((job->user_space >= 0 && setns(job->user_space, CLONE_NEWUSER) < 0) ||
                    setns(job->view, CLONE_NEWNS) < 0)
                        return errno;
                /* fs.suid_dumpable may have opened our memory, which is the shepherd's or a copy of it */
                prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        }
        if (job->tmp || job->var_tmp)
                r = own_tmp(job);
        if (r == 0 && (job->flags & SHEPHERD_NO_NETWORK))
                r = own_network();
        return r == 0 && !(job->flags & SHEPHERD_NO_PRIVILEGES) ? filter(job) : r;
}

/* Capabilities by which a process of root could leave a mount namespace, or reach into processes outside. */
static const unsigned ways_out[] = {
        CAP_SYS_ADMIN,          CAP_SYS_PTRACE, CAP_SYS_CHROOT, CAP_DAC_READ_SEARCH, CAP_PERFMON, CAP_BPF,
        CAP_CHECKPOINT_RESTORE, CAP_SYS_MODULE, CAP_SYS_RAWIO,  CAP_MKNOD,           CAP_SYS_BOOT};

int containment_seal(const struct containment_job *job)
{
        if ((job->flags & SHEPHERD_NO_PRIVILEGES) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return errno;
        if ((job->flags & SHEPHERD_HIDE) && job->root && job->uid == 0)
                for (unsigned i = 0; i < sizeof(ways_out) / sizeof(*ways_out); i++)
                        if (prctl(PR_CAPBSET_DROP, ways_out[i], 0, 0, 0) < 0)
                                return errno;
        return job->flags & SHEPHERD_NO_PRIVILEGES ? filter(job) : 0;
}
