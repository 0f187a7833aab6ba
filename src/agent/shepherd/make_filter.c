/* Prints the filter of system calls for jobs (containment.h), as the rows of an array of struct sock_filter:
 * libseccomp compiles it when Drover is built, so that the shepherd, whose pages are copied for each job,
 * has neither the library nor the memory that compiling takes.
 *
 * The filter returns errors and kills no process. Other architectures of the same machine are included, so
 * that 32-bit calls cannot bypass it. The kernel uses 32 bits of an ioctl's number, so the comparison does,
 * too.
 */
#include <errno.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct {
        const char *name;
        int error;
} refused[] = {
        /* keyrings: a container engine continues without them */
        {"add_key", ENOSYS},
        {"request_key", ENOSYS},
        {"keyctl", ENOSYS},
        {"io_uring_setup", ENOSYS}, /* requests through it pass no filter */
        {"acct", EPERM},
        {"bpf", EPERM},
        {"clock_settime", EPERM},
        {"clock_settime64", EPERM},
        {"delete_module", EPERM},
        {"fanotify_init", EPERM},
        {"finit_module", EPERM},
        {"init_module", EPERM},
        {"ioperm", EPERM},
        {"iopl", EPERM},
        {"kexec_file_load", EPERM},
        {"kexec_load", EPERM},
        {"lookup_dcookie", EPERM},
        {"nfsservctl", EPERM},
        {"open_by_handle_at", EPERM},
        {"perf_event_open", EPERM},
        {"quotactl", EPERM},
        {"quotactl_fd", EPERM},
        {"reboot", EPERM},
        {"settimeofday", EPERM},
        {"swapoff", EPERM},
        {"swapon", EPERM},
        {"syslog", EPERM},
        {"userfaultfd", EPERM},
        {"vhangup", EPERM},
};
static const unsigned refused_ioctls[] = {TIOCSTI, TIOCLINUX};

/* Adds the rules. A call unknown to libseccomp does not exist on this architecture. */
static int filter_rules(scmp_filter_ctx f)
{
#if defined(__x86_64__)
        if (seccomp_arch_add(f, SCMP_ARCH_X86) < 0 || seccomp_arch_add(f, SCMP_ARCH_X32) < 0)
                return -1;
#elif defined(__aarch64__)
        if (seccomp_arch_add(f, SCMP_ARCH_ARM) < 0)
                return -1;
#endif
        for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
                int nr = seccomp_syscall_resolve_name(refused[i].name);

                if (nr != __NR_SCMP_ERROR &&
                    seccomp_rule_add(f, SCMP_ACT_ERRNO((unsigned)refused[i].error), nr, 0) < 0)
                        return -1;
        }
        for (size_t i = 0; i < sizeof(refused_ioctls) / sizeof(*refused_ioctls); i++)
                if (seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                                     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, refused_ioctls[i])) < 0)
                        return -1;
        return 0;
}

int main(void)
{
        scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
        int fd = memfd_create("filter", MFD_CLOEXEC);
        struct sock_filter row;

        /* a binary tree, because the kernel runs the filter once for each system call whenever a job
         * installs it */
        if (!f || fd < 0 || seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0 || filter_rules(f) < 0 ||
            seccomp_export_bpf(f, fd) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
                fprintf(stderr, "make_filter: libseccomp cannot make the filter\n");
                return 1;
        }
        while (read(fd, &row, sizeof(row)) == (ssize_t)sizeof(row))
                printf("{%#x, %u, %u, %#x},\n", row.code, row.jt, row.jf, row.k);
        seccomp_release(f);
        return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
