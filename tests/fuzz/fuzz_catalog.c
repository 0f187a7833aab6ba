/* Queries of the catalog: parsed, held against values, and asked of a catalog of a few files. Also the stored
 * form of a column of metadata. */
#include <stdlib.h>

#include "catalog/catalog.h"
#include "catalog/column.h"
#include "catalog/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct catalog *filled(void)
{
        const struct catalog_meta meta[] = {{STR("production"), {.text = STR("P04ik")}},
                                            {STR("runnumber"), {CATALOG_INTEGER, {.integer = 5000}}},
                                            {STR("good"), {CATALOG_BOOLEAN, {.boolean = true}}},
                                            {STR("x"), {CATALOG_REAL, {.real = 0.5}}}};
        const struct catalog_replica replicas[] = {{STR("file://n1/a"), STR("n1"), STR("local")},
                                                   {STR("hpss:/a"), {0}, STR("hpss")}};
        const struct catalog_file files[] = {{STR("a"), true, 5, STR("sha256:00"), meta, 4, replicas, 2},
                                             {.name = STR("b")}};
        struct catalog_counts counts;
        struct catalog *c;

        if (catalog_open("sqlite:", &c, NULL) != 0 ||
            catalog_put(c, files, 2, &(struct catalog_put){0}, &counts, NULL) != 0)
                abort();
        return c;
}

static int told(void *arg, const struct catalog_file *f)
{
        (void)arg;
        if (f->name.n != 1 || f->replica_count > 2 || f->meta_count > 4)
                abort();
        return 0;
}

static void try_values(const struct catalog_query *q, struct str text)
{
        const struct catalog_value values[] = {{.text = text},
                                               {.text = STR("P04ik")},
                                               {CATALOG_INTEGER, {.integer = INT64_MIN}},
                                               {CATALOG_REAL, {.real = 1e300}},
                                               {CATALOG_BOOLEAN, {.boolean = true}}};

        for (size_t i = 0; i < q->condition_count; i++)
                for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
                        catalog_condition_holds(&q->conditions[i], &values[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct catalog *c;
        struct str text = str_make((const char *)data, size);
        struct catalog_query *q;
        struct catalog_found found;
        struct catalog_value v;
        struct column column = {0};
        struct err err = {0};

        if (!c)
                c = filled();
        if (catalog_query_parse(text, &q, &err) == 0) {
                try_values(q, text);
                catalog_query_free(q);
                /* random() and time() of an expression may tell the second from the first. */
                catalog_find(c, &(struct catalog_find){.query = text, .meta = true}, told, NULL, &found,
                             &err);
                catalog_find(c, &(struct catalog_find){.query = text, .count = true}, NULL, NULL, &found,
                             &err);
        } else if (err.text[0] == '\0') {
                abort();
        }
        column_value_unpack(text, &v);
        column_read(&column, text);
        column_deinit(&column);
        return 0;
}
