/* store_files: the files beside a database file: the lock that keeps a second server out, the mark, and
 * the reserve of preallocated space. Private to store/. */
#pragma once
#include "base/err.h"
#include "base/str.h"

/* Locks <path>.lock (created when absent, mode 0600) and writes the process id into it. Returns 0 and a
 * descriptor, which holds the lock until it is closed; STORE_LOCKED with an err that names the holder; or
 * -errno. The file is never removed, because that would let two servers lock it. */
int store_lock_take(const char *path, int *ret_fd, struct err *err);

/* The mark, <path>.mark, is the number of the newest durable record. It is written after each commit and
 * never flushed, so it is never ahead of the database, whatever fails. A database that ends before it has
 * lost acknowledged records: its write-ahead log is missing or damaged, or it is an older copy. SQLite
 * itself does not detect that, because a log that ends early looks like a power cut. */
enum store_mark {
        STORE_MARK_NONE, /* no mark: the database is new, or was put here without it */
        STORE_MARK_OPEN, /* written after a commit */
        /* written at a clean close: everything is in one file, and a copy may replace it */
        STORE_MARK_CLOSED,
};
/* Returns 0 or -errno. */
int store_mark_open(const char *path, int *ret_fd, enum store_mark *ret_kind, uint64_t *ret_seq,
                    struct err *err);
/* After a failure the old mark stays, which is still true. */
void store_mark_write(int fd, enum store_mark kind, uint64_t seq);

/* The reserve, <path>.reserve, is created only after the database, and its space is released without
 * removing the file. Therefore, where there is a reserve there was a database. */
#define STORE_RESERVE_BYTES (8 << 20)
int store_reserve_file_take(const char *path,
                            struct err *err); /* returns 0 (also when it exists), STORE_FULL or -errno */
int store_reserve_file_release(const char *path, struct err *err); /* returns 0 or -errno */
bool store_reserve_file_exists(const char *path);

/* Creates the file (mode 0600) if it is absent, and makes it and its name durable. Must not be called
 * while SQLite has it open, because closing a descriptor releases the process's POSIX locks on the file. */
int store_file_create(const char *path, struct err *err);

/* The write-ahead log, <path>-wal, keeps its allocated space when it starts over and over a clean close,
 * so that a commit need not extend the file: a flush is then one write to the disk instead of two or more.
 * store_wal_extend appends zeros up to `size` bytes, which SQLite takes for the end of the log; nobody may
 * be writing to it. store_wal_empty makes a log empty, keeping `size` bytes of its space; for a log whose
 * pages are all in the database, after closing, so that a backup put in the database's place never meets
 * pages of another. Both ignore errors. */
void store_wal_extend(const char *path, size_t size);
/* Returns whether the disk has room for all of the log in the database, and some to begin again with. */
bool store_wal_fits(const char *path);
void store_wal_empty(const char *path, size_t size);

/* Returns whether the folder of `path` is on a filesystem shared between machines. */
bool store_path_is_network(const char *path);
