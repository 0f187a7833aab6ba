/* catalog: functions shared by the files of `drover catalog`: batches of files for the server. */
#pragma once
#include "base/format/json.h"
#include "cli/client/api.h"

/* Batch of some thousand files, which the server takes as a whole or not at all. */
struct catalog_batch {
        struct cli *cli;
        bool replace;
        struct buf files; /* JSON objects separated by commas */
        unsigned count;
        uint64_t added, changed;
};
#define CATALOG_BATCH_CLEANUP __attribute__((cleanup(catalog_batch_deinit)))
void catalog_batch_deinit(struct catalog_batch *b);
/* Adds a file, a JSON object. Returns 0, or an exit code after an error was printed; batches sent before
 * remain. */
int catalog_batch_add(struct catalog_batch *b, struct str file);
int catalog_batch_end(struct catalog_batch *b); /* sends the last batch, and prints the number of files */

/* Appends "KEY": VALUE from a "KEY=VALUE": a number, true or false if the value reads like one, else a
 * string; "KEY:text=VALUE" is always a string. Returns 0, or CLI_USAGE after an error was printed. */
int catalog_write_pair(struct json *j, struct str pair);
void catalog_write_value(struct json *j, struct str key, struct str value); /* key may end in ":text" */
/* Appends a member "metadata" with all --meta options, if there are any. */
int catalog_write_meta(struct json *j, const struct options *o);
/* Appends file://HOST/PATH or file:/PATH, with characters that a path may not have as %XX. */
void catalog_write_url(struct buf *out, struct str host, struct str path);
/* Gives the path and the host of a file: URL; false: the URL is of another kind. */
bool catalog_read_url(struct str url, struct buf *ret_path, struct str *ret_host);
/* Gives this machine's name as the host of files on its own disk: the name that its agents give as Machine.
 */
void catalog_host(char *room, size_t size);
/* Checks --host, --shared and --store, and writes "url" (of the path), "host" and "store". */
void catalog_write_replica(struct json *j, const struct options *o, const char *host, struct str path);

int catalog_import(struct cli *cli, const struct options *o); /* catalog_import.c */
int catalog_scan(struct cli *cli, const struct options *o);   /* catalog_scan.c */
int catalog_verify(struct cli *cli, const struct options *o);
