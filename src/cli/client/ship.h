/* ship: send the input files of a submit along with it.
 *
 * Which files: the program (unless TransferExecutable is false), standard input, and what TransferInput
 * lists, for every member, with late macros filled in. A folder goes with all that is in it; "folder/" means
 * what is in it, without the folder. Each file is sent once. When: ShouldTransferFiles is YES; or it is
 * IF_NEEDED and the server takes agents of other machines. A file that an environment is made of (PythonEnv;
 * CondaEnv, *.yml) is always sent.
 */
#pragma once
#include "cli/terminal/cli.h"
#include "jdl/form_json.h"

#define SHIP_FILES_MAX 100000
#define SHIP_DEPTH_MAX 64 /* folders in folders */

struct ship_file {
        char *path; /* here */
        char *name; /* in the job's folder */
        char sha256[65];
        uint64_t size;
        bool executable;
        bool made;       /* an environment is made of it */
        struct str text; /* what is in it, where it is no file; borrowed from the form */
};
struct ship {
        struct ship_file *files;
        size_t count, cap;
        struct map *by_name;    /* name -> index + 1 */
        struct form_file *refs; /* for form_write_json, after ship_send or ship_tell */
        size_t ref_count;
};
void ship_deinit(struct ship *s);

/* The text of an attribute that is a string literal; false, and empty: there is none, or it is something
 * else. */
bool ship_text(const struct form_part *p, const char *name, struct buf *out);
/* Does any part leave it to the server (IF_NEEDED, the default)? */
bool ship_asks_server(const struct form *f);
/* Adds the files of all parts that are to be sent. 0, or -errno with err: a file that isn't there, two files
 * with one name in the job's folder, a name that can't be known yet ($(Cluster)). */
int ship_collect(struct ship *s, const struct form *f, bool remote_agents, struct err *err);
/* Looks for the folder and the program of every member, as condor_submit does. 0; or -errno with err: one is
 * not here, or none that can be run or entered. */
int ship_find_programs(const struct form *f, struct err *err);
/* Uploads them. Returns an exit code; prints what goes wrong. */
int ship_send(struct cli *cli, struct ship *s);
/* Sends nothing: for a quote, which is to know the environments. 0, or -errno with err. */
int ship_tell(struct ship *s, struct err *err);
