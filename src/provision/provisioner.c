#include "provision/provisioner.h"

const struct provisioner_kind *provisioner_kind_find(struct str name)
{
        static const struct provisioner_kind *const kinds[] = {&provisioner_exec, &provisioner_process};

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (str_eqz(name, kinds[i]->name))
                        return kinds[i];
        return NULL;
}
