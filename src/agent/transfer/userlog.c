/* Writes lines of users' logs with the rights by which jobs run here and their outputs are delivered: at
 * once, or by a worker if a file system may not answer. With `users` a child of the owner's user writes
 * them. */
#include "agent/transfer/userlog.h"

#include <errno.h>

#include "agent/outbox/outbox.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/userlog_file.h"
#include "base/system/log.h"

void userlog_written(struct agent *a, uint64_t serial, int r, const struct userlog_file_result *result,
                     struct err *err)
{
        if (r < 0)
                log_warn("msg=\"lines of a user log were not written\" error=\"%s\"",
                         LOG_TEXT(str_of(err->text)));
        outbox_userlog_written(a, serial, r < 0 ? err->text : "", result->again, result->added);
}

void userlog_write(struct agent *a, const struct userlog_lines *m)
{
        struct err err = {""};
        struct userlog_file_result result = {0};
        int r = 0;
        struct users_entry user;

        if (a->users_path)
                r = users_find(&a->config, m->owner, &user, &err);
        else if (!users_own(&a->config, m->owner))
                r = err_set(&err, -EPERM, "this agent does not run the owner's jobs");
        if (r == 0 && *m->path != '/')
                r = err_set(&err, -EINVAL, "the path of the log is not absolute");
        if (r == 0 && (a->users_path || !stage_log_is_quick(a, m->owner, m->path))) {
                stage_log(a, m, a->users_path ? &user : NULL);
                return;
        }
        if (r == 0)
                r = userlog_file_append(a->hidden, m->path, m->text, m->maybe_there, &result, &err);
        userlog_written(a, m->serial, r, &result, &err);
}
