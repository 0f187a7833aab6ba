/* What a job's program asks of files, as it reaches the process that touches them, and what a job's user's
 * child answers. The calls are carried out in a folder of their own; a file beside it stays as it is. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/transfer/file_call.h"
#include "base/system/fs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char base[64], folder[96];

static void put(int dir, const char *name)
{
        if (fs_write(dir, name, STR("contents"), 0600, false, NULL) != 0)
                abort();
}

/* A folder with a file, a hidden one, a folder, and links to what is beneath it and beside it. */
static int make_folder(void)
{
        int dir, above = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        fs_remove_tree(above, "f");
        if (mkdirat(above, "f", 0700) < 0)
                abort();
        put(above, "beside");
        dir = openat(above, "f", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        put(dir, "a");
        put(dir, ".hidden");
        if (dir < 0 || mkdirat(dir, "d", 0700) < 0 || symlinkat("../beside", dir, "out") < 0 ||
            symlinkat(".hidden", dir, "way") < 0 || symlinkat("d", dir, "in") < 0)
                abort();
        put(dir, "d/b");
        close(dir);
        return above;
}

static void clean(void)
{
        int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        fs_remove_tree(tmp, base + strlen("/tmp/"));
        close(tmp);
}

static void stays(int above, const char *name)
{
        BUF_CLEANUP struct buf text = {0};

        if (fs_read(above, name, 100, &text, NULL) != 0 || !str_eqz(buf_view(&text), "contents"))
                abort();
}

static void carry_out(const struct file_call *c)
{
        struct file_answer said = {0};
        int above;

        if (!*base) {
                snprintf(base, sizeof(base), "/tmp/fuzz-calls-XXXXXX");
                if (!mkdtemp(base))
                        abort();
                snprintf(folder, sizeof(folder), "%s/f", base);
                atexit(clean);
        }
        above = make_folder();
        if (c->op != FILE_TRUNCATE ||
            c->offset < 1u << 20) /* a file of many GB costs nothing but time to remove */
                file_call_run(NULL, folder, c, &said, NULL);
        stays(above, "beside");
        stays(above, "f/.hidden");
        if (said.data.n > FILE_CALL_DATA_MAX)
                abort();
        buf_deinit(&said.data);
        close(above);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        BUF_CLEANUP struct buf again = {0};
        struct str packed = str_make((const char *)data + 1, size ? size - 1 : 0);
        struct file_answer said = {0};
        struct file_call call;

        if (size < 1)
                return 0;
        if (data[0] % 2 == 0 && file_call_unpack(packed, &call)) {
                file_call_pack(&again, &call);
                if (!file_call_unpack(buf_view(&again), &call))
                        abort();
                carry_out(&call);
        } else if (data[0] % 2 && file_answer_unpack(packed, &said)) {
                file_answer_pack(&again, &said);
        }
        buf_deinit(&said.data);
        return 0;
}
