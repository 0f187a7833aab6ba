#include "cli/client/preset_limits.h"

#include <errno.h>
#include <stdio.h>

#include "cli/client/api.h"

int preset_time_limit(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                      struct err *err)
{
        static const char *const kinds[FORM_PRESET_KINDS] = {
                [FORM_PRESET_INITIALIZER] = "initializer", [FORM_PRESET_APPLICATION] = "application",
                [FORM_PRESET_DISPATCHER] = "dispatcher",   [FORM_PRESET_QUEUE] = "virtual_queue",
                [FORM_PRESET_POLICY] = "policy",
        };
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, of BUF_CLEANUP = {0};

        *ret = (struct form_time_limit){.seconds = 0};
        buf_addz(&path, "/v1/config/time_limit");
        for (int k = 0; k < FORM_PRESET_KINDS; k++)
                api_query(&path, kinds[k], named[k]);
        if (api_call(arg, &(struct api_request){.path = buf_z(&path)}, &answer, err) != 0)
                return -EIO;
        ret->seconds = (uint64_t)view_integer(view_get(answer.root, "seconds"), 0);
        view_safe(view_get(answer.root, "of"), &of);
        snprintf(ret->of, sizeof(ret->of), "%s", buf_z(&of));
        return 0;
}
