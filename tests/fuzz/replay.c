/* replay: a main() for a fuzz target where there is no fuzzer.
 *
 * Every seed below the given folder is run as it is, cut off at every length (at most 512 of them), and with
 * a few hundred changes that depend on nothing but the seed's bytes. A crash ends the program; so does a
 * folder without seeds, for a test that tries nothing is a bug.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEED_MAX (1u << 20)
#define CHANGES  300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own exact size, so that the sanitizer sees a read past the end. */
static void run(const uint8_t *data, size_t size)
{
        uint8_t *copy = malloc(size ? size : 1);

        if (!copy)
                abort();
        if (size)
                memcpy(copy, data, size);
        LLVMFuzzerTestOneInput(copy, size);
        free(copy);
}

static uint32_t next(uint32_t *state)
{
        *state = *state * 1664525u + 1013904223u;
        return *state >> 8;
}

static void run_around(uint8_t *data, size_t size)
{
        size_t step = size / 512 + 1;
        uint32_t random = 2166136261u;

        run(data, size);
        for (size_t n = 0; n < size; n += step)
                run(data, n);
        for (size_t i = 0; i < size; i++)
                random = (random ^ data[i]) * 16777619u;
        for (int i = 0; size && i < CHANGES; i++) {
                size_t at = next(&random) % size;
                uint8_t was = data[at];

                data[at] = i % 3 == 0 ? (uint8_t)(was ^ 1u << (i % 8)) : (uint8_t)next(&random);
                run(data, size);
                if (i % 4) /* let some changes pile up */
                        data[at] = was;
        }
}

static int run_file(int folder, const char *name)
{
        uint8_t *data = malloc(SEED_MAX);
        int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
        struct stat st;
        ssize_t n = -1;

        if (data && fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                n = read(fd, data, SEED_MAX);
        if (fd >= 0)
                close(fd);
        if (n >= 0)
                run_around(data, (size_t)n);
        free(data);
        return n >= 0;
}

int main(int argc, char **argv)
{
        DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
        int count = 0;

        if (!d) {
                fprintf(stderr, "usage: %s FOLDER-OF-SEEDS\n", argv[0]);
                return 2;
        }
        for (struct dirent *e; (e = readdir(d)) != NULL;)
                if (e->d_name[0] != '.')
                        count += run_file(dirfd(d), e->d_name);
        closedir(d);
        printf("%d seeds\n", count);
        return count ? 0 : 1;
}
