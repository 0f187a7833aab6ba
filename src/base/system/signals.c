#include "base/system/signals.h"

#include <signal.h>
#include <string.h>

int signal_number(struct str name)
{
        struct str s = str_trim(name);
        uint64_t n;

        if (str_to_u64(s, &n) == 0)
                return n > 0 && n < 65 ? (int)n : 0;
        if (str_istarts(s, STR("SIG")))
                s = str_skip(s, 3);
        for (int i = 1; i < 32; i++) {
                const char *known = sigabbrev_np(i);

                if (known && str_ieqz(s, known))
                        return i;
        }
        return 0;
}
