#include "agent/credential/credential_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "run/sandbox_names.h"

int credential_write(int sandbox, const char *name, struct str text)
{
        if (mkdirat(sandbox, SANDBOX_CREDENTIALS, 0700) < 0 && errno != EEXIST)
                return -errno;
        int dir = openat(sandbox, SANDBOX_CREDENTIALS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
                return -errno;
        int r = fs_write(dir, name, text, 0600, false, NULL);
        close(dir);
        return r;
}
