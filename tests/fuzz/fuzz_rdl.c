/* Composite requests in RDL: the XML or YAML of who submits. */
#include "fuzz_form.h"
#include "jdl/rdl/rdl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct entity given[] = {{STR("out"), STR("<&>'\"")}};
        struct condor_options options = {.filesystem_domain = "d", .submit_host = "h"};
        struct str text = str_make((const char *)data, size);
        BUF_CLEANUP struct buf name = {0};
        struct form form;
        struct err err = {""};

        form_init(&form);
        rdl_is(text);
        rdl_parse(&some_world,
                  &(struct sums_job){.file = "f",
                                     .text = text,
                                     .entities = given,
                                     .entity_count = str_starts(text, STR("<")),
                                     .request_id = "0123456789abcdef0123456789abcdef"},
                  &options, &form, &name, &err);
        form_deinit(&form);
        return 0;
}
