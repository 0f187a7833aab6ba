/* output: output formats for ads of condor_q, condor_history and condor_status: -autoformat and -format,
 * -json, -jsonl, -long, -xml, -long:FORM, and -attributes with the last five. */
#pragma once
#include "cli/condor/columns.h"
#include "cli/condor/flags.h"
#include "cli/terminal/cli.h"

enum output_form {
        OUTPUT_TABLE,
        OUTPUT_COLUMNS,
        OUTPUT_JSON,
        OUTPUT_JSONL,
        OUTPUT_LONG,
        OUTPUT_NEW, /* one ad per line, in the new syntax, as a list */
        OUTPUT_XML
};
struct output {
        enum output_form form;
        struct symbols *symbols;
        struct columns columns;
        struct str only; /* value of -attributes */
        size_t count;    /* number of ads printed */
        struct buf text;
};
void output_deinit(struct output *o);
#define OUTPUT_CLEANUP __attribute__((cleanup(output_deinit)))

/* Rows of the flags that output_init reads, for a command's table. */
#define OUTPUT_ROWS                                                                                          \
        {"autoformat",   5,                                                                                  \
         FLAG_WORDS,     FLAG_ACTS,                                                                          \
         "ATTRIBUTE...", "Print these attributes or expressions. Qualifiers: -autoformat:jlhVrTY,tng."},     \
                {"af", 0, FLAG_WORDS, FLAG_ACTS, "ATTRIBUTE...", "The same: -af:jh ClusterId JobStatus."},   \
                {"format",           1,                                                                      \
                 FLAG_TWO,           FLAG_ACTS,                                                              \
                 "FORMAT ATTRIBUTE", "Print an attribute by a printf format."},                              \
                {"json", 2, FLAG_PLAIN, FLAG_ACTS, NULL, "Print whole ads as a list in JSON."},              \
                {"jsonl", 5, FLAG_PLAIN, FLAG_ACTS, NULL, "Print whole ads in JSON, one a line."},           \
                {"long",                                                                                     \
                 1,                                                                                          \
                 FLAG_PLAIN,                                                                                 \
                 FLAG_ACTS,                                                                                  \
                 NULL,                                                                                       \
                 "Print whole ads, an attribute a line; -long:json, jsonl, xml or new in that form."},       \
                {"attributes", 3,     FLAG_VALUE,                                                            \
                 FLAG_ACTS,    "A,B", "Only these with -json, -jsonl, -long and -xml."},                     \
                {"xml", 3, FLAG_PLAIN, FLAG_ACTS, NULL, "Print whole ads in XML."},                          \
        {                                                                                                    \
                "print-format", 2, FLAG_VALUE, FLAG_REFUSED, "FILE", "use -autoformat or -format."           \
        }

/* Chooses the format by the flags. Returns 0, or -EINVAL with err. */
int output_init(struct output *o, const struct flags *f, int64_t now_s, struct err *err);
/* Appends the attributes that must be requested from the server; "*": all. Not for OUTPUT_TABLE. */
void output_names(const struct output *o, struct buf *out);
/* Prints an ad. `json`: the ad as the server wrote it; `ad`: the same ad parsed, or NULL: parsed if needed.
 */
void output_ad(struct output *o, struct view json, const struct ad *ad);
void output_end(struct output *o);
