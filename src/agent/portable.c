/* The launcher of the portable agent, a folder with the agent's programs, the libraries that they were built
 * with, and those libraries' loader, for machines that have other libraries (tools/agent-tarball):
 *
 *     FOLDER/drover-agent             this program, which needs no library
 *     FOLDER/lib/drover-agent.elf     the program that it starts
 *     FOLDER/lib/drover-loader        the C library's loader, ld.so(8)
 *     FOLDER/lib/libcrypto.so.3, ...  the libraries
 *
 * A program that the loader has started finds the others by its argv[0] (base/system/program.h), because
 * /proc/self/exe names the loader.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_ARGS 8

int main(int argc, char **argv)
{
        static char self[PATH_MAX], loader[PATH_MAX], library[PATH_MAX], program[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash = n > 0 ? strrchr(self, '/') : NULL;
        char **args;
        int folder;

        if (!slash) {
                fprintf(stderr, "%s: cannot find its own folder: /proc is not mounted\n", argv[0]);
                return 127;
        }
        folder = (int)(slash - self);
        if (snprintf(loader, sizeof(loader), "%.*s/lib/drover-loader", folder, self) >= (int)sizeof(loader) ||
            snprintf(library, sizeof(library), "%.*s/lib", folder, self) >= (int)sizeof(library) ||
            snprintf(program, sizeof(program), "%s/%s.elf", library, slash + 1) >= (int)sizeof(program)) {
                fprintf(stderr, "%s: the path of its folder is too long\n", argv[0]);
                return 127;
        }
        args = calloc((size_t)argc + OWN_ARGS, sizeof(*args));
        if (!args) {
                perror(argv[0]);
                return 127;
        }
        args[0] = self;
        args[1] = (char *)"--inhibit-cache";
        args[2] = (char *)"--library-path";
        args[3] = library;
        args[4] = (char *)"--argv0";
        args[5] = self;
        args[6] = program;
        for (int i = 1; i < argc; i++)
                args[6 + i] = argv[i];
        execv(loader, args);
        perror(loader);
        free(args);
        return 127;
}
