#include "server/config/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/pack.h"
#include "base/system/fs.h"

/* A child that a killed server had just made has its lock until it executes its program. */
#define LOCK_TRIES    150
#define LOCK_PAUSE_US 20000

static char *join(const char *a, const char *b)
{
        struct buf out = {0};

        buf_printf(&out, "%s/%s", a, b);
        return buf_take(&out);
}

/* Chooses the folder for the sockets when the instance's own path is too long. */
static int socket_dir(const char *dir, char **ret, struct err *err)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        uint32_t hash = pack_crc32c(0, dir, strlen(dir));
        BUF_CLEANUP struct buf b = {0};
        struct stat st;

        if (runtime && *runtime == '/' && strlen(runtime) < 60)
                buf_printf(&b, "%s/drover-%08x", runtime, hash);
        else
                buf_printf(&b, "/tmp/drover-%u-%08x", (unsigned)geteuid(), hash);
        if (mkdir(buf_z(&b), 0700) < 0 && errno != EEXIST)
                return err_set(err, -errno, "cannot make %s: %s", buf_z(&b), strerror(errno));
        if (lstat(buf_z(&b), &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
                return err_set(err, -EPERM, "%s is not a private folder of this user: remove it", buf_z(&b));
        *ret = buf_take(&b);
        return 0;
}

int paths_init(struct paths *p, const char *dir, struct err *err)
{
        MEM_CLEANUP char *sockets = NULL;
        struct buf b = {0};
        int r;

        *p = (struct paths){0};
        r = fs_mkdirs(dir, 0700);
        if (r != 0)
                return err_set(err, r, "cannot make the folder %s: %s", dir, strerror(-r));
        p->dir = mem_dupz(dir);
        p->store = join(dir, "drover.db");
        p->postgres = join(dir, "postgresql");
        p->postgres_id = join(dir, "postgresql.id");
        p->catalog = join(dir, "catalog.db");
        p->spool = join(dir, "spool");
        p->ca = join(dir, "ca");
        p->credential_key = join(dir, "credential.key");
        p->ticket_key = join(dir, "ticket.key");
        p->mirror = join(dir, "mirror");
        p->standby = join(dir, "standby.json");
        p->lock = join(dir, "server.lock");
        p->ready = join(dir, "server.json");
        if (strlen(dir) + sizeof("/agents.sock") > sizeof(((struct sockaddr_un *)0)->sun_path)) {
                r = socket_dir(dir, &sockets, err);
                if (r != 0)
                        return r;
        } else {
                sockets = mem_dupz(dir);
        }
        buf_printf(&b, "unix:%s/api.sock", sockets);
        p->api = buf_take(&b);
        buf_printf(&b, "unix:%s/agents.sock", sockets);
        p->agents = buf_take(&b);
        buf_printf(&b, "unix:%s/reads.sock", sockets);
        p->reads = buf_take(&b);
        return 0;
}

void paths_deinit(struct paths *p)
{
        free(p->dir);
        free(p->store);
        free(p->postgres);
        free(p->postgres_id);
        free(p->catalog);
        free(p->spool);
        free(p->ca);
        free(p->credential_key);
        free(p->ticket_key);
        free(p->mirror);
        free(p->standby);
        free(p->lock);
        free(p->ready);
        free(p->api);
        free(p->agents);
        free(p->reads);
        *p = (struct paths){0};
}

/* Reads whose lock it is. Returns false if that process has ended. */
static bool holder_lives(int fd, char *text, size_t size)
{
        ssize_t got = pread(fd, text, size - 1, 0);
        uint64_t pid = 0;

        text[got > 0 ? got : 0] = '\0';
        text[strcspn(text, "\n")] = '\0';
        return str_to_u64(str_of(text), &pid) != 0 || pid == 0 || pid > INT32_MAX ||
               kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

int paths_lock(const struct paths *p, int *ret_fd, struct err *err)
{
        int fd = open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600), n;
        char text[32] = "";

        if (fd < 0)
                return err_set(err, -errno, "cannot open %s: %s", p->lock, strerror(errno));
        for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
                if (holder_lives(fd, text, sizeof(text)) || i == LOCK_TRIES) {
                        close(fd);
                        return err_set(err, -EBUSY,
                                       "another server (pid %s) has %s: stop it, or choose another --dir",
                                       *text ? text : "unknown", p->dir);
                }
                usleep(LOCK_PAUSE_US);
        }
        n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
        if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n) {
                /* A full disk must not prevent the start: only the process id in a message is lost. */
        }
        *ret_fd = fd;
        return 0;
}

int paths_write_ready(const struct paths *p, const struct paths_ready *r, struct err *err)
{
        BUF_CLEANUP struct buf out = {0};
        struct json j = {.out = &out};

        json_open(&j, '{');
        json_kint(&j, "pid", getpid());
        json_kstrz(&j, "uuid", r->uuid);
        json_kstrz(&j, "api", p->api);
        json_kstrz(&j, "api_tls", r->api_tls);
        json_key(&j, "agents");
        json_open(&j, '[');
        for (size_t i = 0; i < r->agent_count; i++)
                json_strz(&j, r->agents[i]);
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&out, '\n');
        return fs_write(AT_FDCWD, p->ready, buf_view(&out), 0644, false, err);
}

int paths_write_standby(const struct paths *p, bool reads, struct err *err)
{
        BUF_CLEANUP struct buf out = {0};
        struct json j = {.out = &out};

        json_open(&j, '{');
        json_kint(&j, "pid", getpid());
        json_kstrz(&j, "api", p->api);
        if (reads)
                json_kstrz(&j, "reads", p->reads);
        json_close(&j, '}');
        buf_char(&out, '\n');
        return fs_write(AT_FDCWD, p->standby, buf_view(&out), 0644, false, err);
}

static void sweep(const char *folder)
{
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return;
        fs_sweep(fd, fs_is_left);
        close(fd);
}

void paths_sweep(const struct paths *p)
{
        paths_remove_ready(p);
        paths_remove_standby(p);
        sweep(p->dir);
        sweep(p->ca);
}

void paths_remove_ready(const struct paths *p)
{
        unlink(p->ready);
}

void paths_remove_standby(const struct paths *p)
{
        unlink(p->standby);
}
