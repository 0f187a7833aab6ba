/* Descriptions of SUMS: the entities and the XML of who submits. */
#include "fuzz_form.h"
#include "jdl/sums/sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct entity given[] = {{STR("out"), STR("<&>'\"")}};
        struct condor_options options = {.filesystem_domain = "d", .submit_host = "h"};
        struct sums_told told = {0};
        struct form form;
        struct err err = {""};

        form_init(&form);
        sums_parse(&some_world,
                   &(struct sums_job){.file = "f",
                                      .text = str_make((const char *)data, size),
                                      .entities = given,
                                      .entity_count = 1,
                                      .request_id = "0123456789abcdef0123456789abcdef"},
                   &options, &form, &told, &err);
        form_deinit(&form);
        sums_told_deinit(&told);
        return 0;
}
