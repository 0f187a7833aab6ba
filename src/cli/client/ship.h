/* ship: sends the input files of a submit along with it.
 *
 * For every member these are the program (unless TransferExecutable is false), standard input, and the
 * entries of TransferInput, with late macros filled in. A folder is sent with its whole content; "folder/"
 * means the content without the folder. Each file is sent once. Files are sent if ShouldTransferFiles is
 * YES, or if it is IF_NEEDED and the server takes agents of other machines. A file that an environment is
 * made of (PythonEnv; CondaEnv, *.yml) is always sent.
 */
#pragma once
#include "cli/terminal/cli.h"
#include "jdl/form/form_json.h"

#define SHIP_FILES_MAX 100000
#define SHIP_DEPTH_MAX 64 /* maximum depth of nested folders */

struct ship_file {
        char *path; /* path on this machine */
        char *name; /* name in the job's folder */
        char sha256[65];
        uint64_t size;
        bool executable;
        bool made;       /* an environment is made of it */
        struct str text; /* content, if it is not a file; borrowed from the form */
};
struct ship {
        struct ship_file *files;
        size_t count, cap;
        struct map *by_name;    /* name -> index + 1 */
        struct form_file *refs; /* for form_write_json, after ship_send or ship_tell */
        size_t ref_count;
};
void ship_deinit(struct ship *s);

/* Gives the text of an attribute that is a string literal. Returns false, with an empty text, if it is
 * missing or is something else. */
bool ship_text(const struct form_part *p, const char *name, struct buf *out);
/* Returns whether any part leaves the decision to the server (IF_NEEDED, the default). */
bool ship_asks_server(const struct form *f);
/* Adds the files of all parts that are to be sent. Returns 0; or -errno with err: a file does not exist, two
 * files have one name in the job's folder, or a name cannot be known yet ($(Cluster)). */
int ship_collect(struct ship *s, const struct form *f, bool remote_agents, struct err *err);
/* Checks the folder and the program of every member, as condor_submit does. Returns 0; or -errno with err:
 * one does not exist here, or cannot be run or entered. */
int ship_find_programs(const struct form *f, struct err *err);
/* Uploads the collected files, and prints errors. Returns an exit code. */
int ship_send(struct cli *cli, struct ship *s);
/* Fills in the references to files without sending anything, for a quote, which must know the environments.
 * Returns 0, or -errno with err. */
int ship_tell(struct ship *s, struct err *err);
