/* test_schema: what xmllint says of a text, by a schema file that ships. Behind cmocka.h. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"

static const char *schema; /* the file */

/* The schema file's verdict on the text. */
static bool validates(const char *text)
{
        char path[] = "/tmp/schema.XXXXXX";
        BUF_CLEANUP struct buf command = {0};
        int fd = mkstemp(path), rc;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
        buf_printf(&command, "xmllint --nonet --noout --schema %s %s >/dev/null 2>&1", schema, path);
        rc = system(buf_z(&command));
        unlink(path);
        assert_true(WIFEXITED(rc) && (WEXITSTATUS(rc) == 0 || WEXITSTATUS(rc) == 3));
        return WEXITSTATUS(rc) == 0;
}
