/* Kinds of formats: names alone, kinds of kinds, several names of one class, compressed files, what is not
 * known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jdl/galaxy/formats.h"

static void test_kinds(void **state)
{
        static const struct {
                const char *format, *of;
                bool is;
        } rows[] = {{"fasta", "fasta", true},
                    {"fastqsanger", "fastq", true},
                    {"fastq", "fastqsanger", false},
                    {"bed", "interval", true},
                    {"bed", "tabular", true},
                    {"bed", "txt", true},
                    {"bed", "data", true},
                    {"tabular", "allegro_ihaplo", true},
                    {"allegro_ihaplo", "tabular", true},
                    {"vcf", "allegro_ihaplo", true},
                    {"fasta.gz", "fasta", false},
                    {"fastqsanger.gz", "fastq.gz", true},
                    {"fastqsanger.gz", "fastq", false},
                    {"bam", "binary", true},
                    {"csv", "tabular", false},
                    {"no-format", "no-format", true},
                    {"no-format", "data", false},
                    {"txt", "no-format", false},
                    {"", "data", false}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
                if (format_is(str_of(rows[i].format), str_of(rows[i].of)) != rows[i].is)
                        fail_msg("%s, %s", rows[i].format, rows[i].of);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
