/* store_log_file: the file of SQLite's write-ahead log, written in one piece. Private to store/.
 *
 * SQLite appends the pages of a transaction one by one, each with its own header: two writes per page. This
 * layer of files (a VFS) collects appended data and writes them when they are flushed, so that a commit is
 * one write and one flush. SQLite shows frames to other connections only after the flush (synchronous is
 * FULL), and data that the same connection reads are written first, so no reader sees an incomplete file. An
 * error of the write is returned by the flush. All other files use the default VFS.
 */
#pragma once

/* Returns the name for sqlite3_open_v2(). Any thread; the default VFS may be replaced between two calls while
 * no store is open. */
const char *store_log_file_vfs(void);
