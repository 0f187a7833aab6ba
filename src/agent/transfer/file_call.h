/* file_call: one operation on a file beneath a folder, requested by a job that runs elsewhere.
 *
 * The folder is the folder of the submit. The name comes from a job and is not trusted: nothing above the
 * folder can be reached, whatever links exist and whoever moves files meanwhile, nor a folder that is hidden
 * from jobs, nor a name that begins with a dot (the folder may be its owner's home, where such files hold
 * keys and are read by shells and sshd). Only regular files are read and written. Operations have the rights
 * of the process.
 *
 * Call and answer also have a packed form, for a child process of the job's user.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/system/hidden.h"

#define FILE_CALL_DATA_MAX (256u << 10) /* largest read or write, in bytes */

enum file_op { /* the numbers are the wire's */
               FILE_READ = 10,
               FILE_WRITE,
               FILE_STAT,
               FILE_LIST,
               FILE_REMOVE,
               FILE_REMOVE_FOLDER,
               FILE_MAKE_FOLDER,
               FILE_RENAME,
               FILE_TRUNCATE,
               FILE_MODE,
               FILE_TIME,
               FILE_OPS
};
enum { FILE_CREATE = 1, FILE_EMPTY = 2, FILE_NEW = 4, FILE_APPEND = 8 };

struct file_call {
        enum file_op op;
        struct str name, data; /* name: relative, or beneath the folder */
        uint64_t offset;       /* byte offset; TRUNCATE: the new size; TIME: Unix seconds */
        uint32_t length, flags, mode;
};
struct file_answer {
        struct buf data;
        uint64_t size;
        uint32_t mode;
        int64_t changed; /* time of the last change, Unix seconds */
};
/* Does the operation. Returns 0, or -errno with err, whose text names the file by the name that the job
 * used. */
int file_call_run(const struct hidden *hidden, const char *folder, const struct file_call *call,
                  struct file_answer *ret, struct err *err);
bool file_call_is_sane(
        const struct file_call *call); /* returns whether the operation is known and within the limits */

void file_call_pack(struct buf *out, const struct file_call *call);
bool file_call_unpack(struct str packed,
                      struct file_call *ret); /* *ret borrows from `packed`; false: damaged or not sane */
void file_answer_pack(struct buf *out, const struct file_answer *a);
bool file_answer_unpack(struct str packed,
                        struct file_answer *ret); /* *ret owns a copy of the data; false: damaged */
