/* recorded: recorded output of batch systems' commands, for unit tests: files of tests/data (environment
 * variable RECORDED), in the form described in tests/data/openpbs/README.md. */
#pragma once
#include <fcntl.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "run/batch/batch.h"

/* Reads the output of the first recording of the command and returns its exit status. The test fails if
 * there is none. */
static inline int recorded(const char *file, const char *command, struct buf *ret_out, struct buf *ret_errors)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};
        struct str rest, line;
        bool here = false;
        uint64_t status = 0;

        buf_printf(&path, "%s/%s", getenv("RECORDED"), file);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 1 << 20, &text, NULL), 0);
        buf_reset(ret_out);
        buf_reset(ret_errors);
        for (rest = buf_view(&text); rest.n && str_cut(&rest, '\n', &line);) {
                if (str_starts(line, STR("$ "))) {
                        here = str_eqz(str_skip(line, 2), command);
                } else if (here && str_starts(line, STR("= "))) {
                        assert_int_equal(str_to_u64(str_skip(line, 2), &status), 0);
                        return (int)status;
                } else if (here) {
                        bool error = str_starts(line, STR("! "));

                        buf_str(error ? ret_errors : ret_out, error ? str_skip(line, 2) : line);
                        buf_char(error ? ret_errors : ret_out, '\n');
                }
        }
        fail_msg("%s: nothing of '%s'", file, command);
        return -1;
}

/* Appends a line read from an answer as "native name phase (reason) user". */
static inline void write_line(void *arg, const struct batch_line *l)
{
        buf_printf(arg, STR_FMT " " STR_FMT " %d (" STR_FMT ")%s" STR_FMT "%s%s\n", STR_ARG(l->native),
                   STR_ARG(l->name), (int)l->phase, STR_ARG(l->reason), l->user.n ? " " : "",
                   STR_ARG(l->user), l->stopped ? " stopped" : "", l->bare ? " bare" : "");
}

static inline void assert_read(void (*read)(struct str out, batch_take_fn *take, void *arg), const char *text,
                               const char *want)
{
        MEM_CLEANUP char *copy = mem_dupz(text);
        BUF_CLEANUP struct buf got = {0};

        read(str_of(copy), write_line, &got);
        assert_string_equal(buf_z(&got), want);
}
