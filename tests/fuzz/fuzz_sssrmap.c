/* A message of SSSRMAP: read, checked by its schema and its signature; and what is written is read again. */
#include <stdint.h>
#include <stdlib.h>

#include "server/sssrmap/message.h"
#include "server/sssrmap/schema.h"
#include "server/sssrmap/selection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct xml_schema *schema;

static void select_all(struct sssrmap_message *m, const char *const *names)
{
        static const struct sssrmap_fields fields = {{"JobId", "UserId", "Amount", NULL},
                                                     {SSSRMAP_JOB_ID, SSSRMAP_USER, SSSRMAP_NUMBER}};
        static const char *const rows[][3] = {
                {"7", "amy@lab", "12"}, {"12.0", "bob@lab", NULL}, {"7.1", "amy", "-1.5"}};
        BUF_CLEANUP struct buf out = {0};
        struct sssrmap_selection *s = NULL;
        struct err err = {""};
        size_t count;

        if (sssrmap_selection_new(m, names, &fields, &s, &err) != 0)
                return;
        for (size_t i = 0; i < 9; i++)
                sssrmap_selection_add(s,
                                      (const struct str[3]){str_of(rows[i % 3][0]), str_of(rows[i % 3][1]),
                                                            str_of(rows[i % 3][2])},
                                      "Job", &out);
        sssrmap_selection_end(s, "Job", &out, &count, &err);
        sssrmap_selection_free(s);
}

static void read_all(struct sssrmap_message *m)
{
        static const char *const names[] = {"JobId", "ProjectId", NULL};
        struct err err = {""};
        struct str value;

        sssrmap_parameter(m, "JobId", &value, &err);
        sssrmap_parameter(m, "ProjectId", &value, &err);
        if (sssrmap_only(m, names, &err) == 0)
                select_all(m, names);
}

/* What is written around a text that XML can hold must be a message that is signed. */
static void write_one(struct str text)
{
        BUF_CLEANUP struct buf content = {0}, out = {0};
        struct sssrmap_message m;
        struct err err = {""};

        buf_addz(&content, "<Response><Status><Value>Failure</Value><Code>999</Code><Message>");
        xml_escape(&content, text);
        buf_addz(&content, "</Message></Status></Response>");
        sssrmap_write(&out, buf_view(&content), STR("0123456789abcdef"), "k", 32);
        if (sssrmap_read(buf_view(&out), schema, &m, &err) != 0 ||
            !sssrmap_is_signed(&m, STR("0123456789abcdef")))
                abort();
        sssrmap_deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct str text = str_make((const char *)data, size);
        struct sssrmap_message m;
        struct err err = {""};

        if (!schema && xml_schema_new("sssrmap.xsd", str_make(sssrmap_schema_text, sssrmap_schema_size),
                                      &schema, &err) != 0)
                abort();
        if (sssrmap_read(text, schema, &m, &err) == 0) {
                sssrmap_is_signed(&m, STR("0123456789abcdef"));
                if (m.request)
                        do
                                if (sssrmap_request(&m, &err) == 0)
                                        read_all(&m);
                        while (sssrmap_next(&m));
        }
        sssrmap_deinit(&m);
        if (size < 60000)
                write_one(text);
        return 0;
}
