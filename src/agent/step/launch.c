#include "agent/step/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/model/sandbox.h"
#include "agent/step/launch_hosts.h"
#include "base/system/fs.h"
#include "base/system/program.h"
#include "run/sandbox_names.h"

#define HOSTS_MAX (32u << 20)

bool launch_wanted(const struct attempt *at)
{
        size_t machines = at->gang_machines && *at->gang_machines ? 1 : 0;

        for (const char *p = at->gang_machines; p && *p; p++)
                machines += *p == ',';
        return at->t->m->launches && queue_is_local(at->q) && !*at->t->m->steps[at->step].container &&
               machines == at->gang_size;
}

static unsigned processors(const struct attempt *at)
{
        return at->cpus_milli > 1000 ? (unsigned)((at->cpus_milli + 999) / 1000) : 1;
}

int launch_write(const struct attempt *at, struct err *err)
{
        BUF_CLEANUP struct buf hosts = {.max = HOSTS_MAX};
        char name[64];
        bool shared;
        int box, r;

        launch_hosts(str_of(at->gang_machines), processors(at), &hosts, &shared);
        if (buf_check(&hosts))
                return err_set(err, -E2BIG, "the list of the job's nodes is longer than %u MiB",
                               HOSTS_MAX >> 20);
        sandbox_name(at, name);
        /* made elsewhere and moved, like the socket for calls: with `users` the folder is another user's,
         * where we may put files and no more */
        r = fs_write(at->a->dir, "hosts.tmp", buf_view(&hosts), at->a->users_path ? 0644 : 0600, false, err);
        if (r < 0)
                return r;
        box = openat(at->a->jobs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (box < 0 || renameat(at->a->dir, "hosts.tmp", box, SANDBOX_HOSTS) < 0)
                r = err_set(err, -errno, "the list of nodes cannot be put into the job's folder: %s",
                            strerror(errno));
        if (box >= 0)
                close(box);
        return r;
}

void launch_variables(const struct attempt *at, const char *sandbox,
                      void (*set)(void *arg, const char *name, const char *value), void *arg)
{
        BUF_CLEANUP struct buf program = {0}, file = {0}, hosts = {.max = HOSTS_MAX};
        bool shared;

        buf_printf(&file, "%s/" SANDBOX_HOSTS, sandbox);
        set(arg, "DROVER_HOSTS", buf_z(&file));
        if (program_find("drover-launch", &program, NULL) != 0)
                return;
        set(arg, "DROVER_LAUNCH", buf_z(&program));
        set(arg, "OMPI_MCA_plm_rsh_agent", buf_z(&program));
        set(arg, "OMPI_MCA_orte_default_hostfile", buf_z(&file));
        set(arg, "HYDRA_LAUNCHER", "ssh");
        set(arg, "HYDRA_LAUNCHER_EXEC", buf_z(&program));
        set(arg, "HYDRA_HOST_FILE", buf_z(&file));
        launch_hosts(str_of(at->gang_machines), 1, &hosts, &shared);
        if (shared) /* Open MPI's nodes on one machine would take each other's shared memory for their own */
                set(arg, "OMPI_MCA_btl", "^vader,sm");
}
