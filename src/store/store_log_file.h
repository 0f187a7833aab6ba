/* store_log_file: the file of SQLite's write-ahead log, written in one piece. Private to store/.
 *
 * SQLite appends the pages of a transaction one by one, each with a header of its own: two writes a page.
 * This layer of files (a VFS) gathers what is appended and passes it on when it is flushed, so that a commit
 * is one write and one flush. SQLite shows frames to other connections only after the flush (synchronous is
 * FULL), and what the own connection reads is passed on first; so nobody sees a file that lacks something. An
 * error of the write is returned by the flush. Files other than the log are those of the default VFS. */
#pragma once

/* Returns the name for sqlite3_open_v2(). Any thread; the default VFS may be replaced between two calls while
 * no store is open. */
const char *store_log_file_vfs(void);
