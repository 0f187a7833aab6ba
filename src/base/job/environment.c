#include "base/job/environment.h"

#include "base/format/hex.h"

const char *environment_kind_name(enum environment_kind kind)
{
        return kind == ENVIRONMENT_CONDA ? "conda" : "python";
}

bool environment_is_file(struct str conda_env)
{
        return str_ends(conda_env, STR(".yml")) || str_ends(conda_env, STR(".yaml"));
}

void environment_url(enum environment_kind kind, const unsigned char sha256[32], struct buf *out)
{
        char hex[65];

        hex_print(hex, sha256, 32);
        buf_printf(out, "environment://%s/%s", environment_kind_name(kind), hex);
}
