/* store_files: what stands beside a database file: the lock that keeps a second server out, and the reserve
 * of preallocated space. Private to store/. */
#pragma once
#include "base/err.h"
#include "base/str.h"

/* Takes <path>.lock (made when absent, mode 0600) and writes our pid into it. 0 and a descriptor to close
 * when done; STORE_LOCKED with an err that names the holder; -errno. The file stays: removing it would let
 * two in. */
int store_lock_take(const char *path, int *ret_fd, struct err *err);

/* The reserve, <path>.reserve. It is made only after the database was, and its space is given back without
 * removing it, so where there is a reserve there was a database. */
#define STORE_RESERVE_BYTES (8 << 20)
int store_reserve_file_take(const char *path,
                            struct err *err); /* 0 (also when it is there), STORE_FULL, -errno */
int store_reserve_file_release(const char *path, struct err *err); /* 0 or -errno */
bool store_reserve_file_exists(const char *path);

/* Makes the file (mode 0600) and its name durable when it is absent. Must not be called while SQLite has it
 * open: closing a descriptor drops the process's POSIX locks on the file. */
int store_file_create(const char *path, struct err *err);

/* Whether the folder of `path` is on a filesystem shared between machines. */
bool store_path_is_network(const char *path);
