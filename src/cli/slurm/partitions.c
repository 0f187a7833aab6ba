#include "cli/slurm/partitions.h"

#include <errno.h>

#include "cli/client/api.h"

static bool is_there(struct view agents, struct str name)
{
        struct view agent, queue;

        for (size_t at = 0; view_next(agents, &at, &agent);)
                for (size_t k = 0; view_next(view_get(agent, "queues"), &k, &queue);) {
                        BUF_CLEANUP struct buf text = {0};

                        view_text(view_get(queue, "name"), &text);
                        if (str_eq(buf_view(&text), name))
                                return true;
                }
        return false;
}

int partitions_check(struct cli *cli, const char *names, struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct str rest = str_of(names), one;

        if (rest.n == 0)
                return 0;
        if (api_call(cli, &(struct api_request){.path = "/v1/agents"}, &answer, err) != 0)
                return -EIO;
        while (str_cut(&rest, ',', &one))
                if (!is_there(view_get(answer.root, "agents"), one))
                        return err_set(err, -EINVAL,
                                       "invalid partition specified: " STR_FMT
                                       ": no agent has a queue of that name; "
                                       "sinfo lists them",
                                       STR_ARG(str_head(one, 100)));
        return 0;
}
