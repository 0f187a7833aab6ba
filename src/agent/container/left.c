#include "agent/container/left.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/system/fs.h"

#define DEPTH_MAX 8

/* Returns whether the process may be a monitor of the agent's own user. A command line is in the process's
 * memory, and a reader waits for as long as the process wants (shepherd/look.c): no other user's is read. */
static bool may_be_monitor(long pid)
{
        BUF_CLEANUP struct buf status = {0};
        char path[64], uid[32];

        snprintf(path, sizeof(path), "/proc/%ld/status", pid);
        snprintf(uid, sizeof(uid), "\nUid:\t%u\t", (unsigned)geteuid());
        return fs_read(AT_FDCWD, path, 1 << 16, &status, NULL) == 0 &&
               str_starts(buf_view(&status), STR("Name:\tconmon\n")) &&
               str_search(buf_view(&status), str_of(uid)) > 0;
}

/* Searches the arguments in /proc/PID/cmdline, which end with a NUL each. */
static bool is_monitor(long pid, const char *name)
{
        BUF_CLEANUP struct buf words = {0};
        struct str rest, word;
        char path[64];
        bool monitor = false, first = true;

        if (!may_be_monitor(pid))
                return false;
        snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
        if (fs_read(AT_FDCWD, path, 1 << 20, &words, NULL) < 0)
                return false;
        for (rest = buf_view(&words); rest.n && str_cut(&rest, 0, &word); first = false) {
                if (first)
                        monitor = str_ends(word, STR("conmon"));
                else if (monitor && str_eqz(word, name))
                        return true;
                if (!monitor)
                        return false;
        }
        return false;
}

static void kill_children(long pid, int depth)
{
        BUF_CLEANUP struct buf list = {0};
        struct str rest, word;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%1$ld/task/%1$ld/children", pid);
        if (depth == DEPTH_MAX || fs_read(AT_FDCWD, path, 1 << 20, &list, NULL) < 0)
                return;
        for (rest = buf_view(&list); str_word(&rest, &word);) {
                uint64_t child;

                if (str_to_u64(word, &child) != 0 || child <= 1)
                        continue;
                kill_children((long)child, depth + 1);
                kill((pid_t)child, SIGKILL);
        }
}

void container_left_kill(const char *name)
{
        DIR *dir = opendir("/proc");
        struct dirent *e;

        while (dir && (e = readdir(dir))) {
                long pid = strtol(e->d_name, NULL, 10);

                if (pid > 1 && is_monitor(pid, name))
                        kill_children(pid, 0);
        }
        if (dir)
                closedir(dir);
}
