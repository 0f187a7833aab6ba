/* A job that makes processes which nobody waits for, without end: so many that live, and then four at a time
 * that end at once, faster than whoever inherits them can count. It has no more than 3000 at a time, and ends
 * by itself after five minutes. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 16

static void leave_one(void)
{
        pid_t pid = fork();

        if (pid == 0) {
                if (fork() == 0) {
                        alarm(300);
                        pause();
                }
                _exit(0);
        }
        waitpid(pid, NULL, 0);
}

static __attribute__((noreturn)) void leave_dead(void)
{
        for (;;) {
                if (vfork() == 0) {
                        for (int left = 4; left > 0 && vfork() != 0;)
                                left--;
                        _exit(0); /* each of them */
                }
                wait(NULL);
        }
}

/* orphans COUNT FILE: the file is made when COUNT live. */
int main(int argc, char **argv)
{
        const struct rlimit most = {3000, 3000};

        if (argc != 3 || setrlimit(RLIMIT_NPROC, &most) < 0)
                return 2;
        for (int i = atoi(argv[1]); i > 0; i--)
                leave_one();
        for (int i = 0; i < WORKERS; i++)
                if (fork() == 0) {
                        alarm(300);
                        leave_dead();
                }
        close(open(argv[2], O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        alarm(300);
        pause();
        return 0;
}
