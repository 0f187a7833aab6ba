#include "base/job/batch_word.h"

bool batch_word_is(struct str attribute)
{
        static const char *const firsts[] = {"Batch", "Slurm", "GridEngine", "Pbs", "Htcondor",
                                             "Lsf",   "Exec",  "Kubernetes", "Arc"};

        for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++)
                if (attribute.n > strlen(firsts[i]) && str_istarts(attribute, str_of(firsts[i])))
                        return true;
        return false;
}
