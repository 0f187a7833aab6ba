/* store_files: what stands beside a database file: the lock that keeps a second server out, and the reserve
 * of preallocated space. Private to store/. */
#pragma once
#include "base/err.h"
#include "base/str.h"

/* Takes <path>.lock (made when absent, mode 0600) and writes our pid into it. 0 and a descriptor to close
 * when done; STORE_LOCKED with an err that names the holder; -errno. The file stays: removing it would let
 * two in. */
int store_lock_take(const char *path, int *ret_fd, struct err *err);

/* The mark, <path>.mark: the number of the newest record that is durable, written behind each commit and
 * never flushed. So it is never ahead of the database, whatever dies; and a database that ends before it has
 * lost records that were acknowledged: its write-ahead log is gone or damaged, or it is an older copy. Of
 * these SQLite itself tells nothing, as a log that ends early looks like a power cut. */
enum store_mark {
        STORE_MARK_NONE,   /* there is none: the database is new, or was put here without its mark */
        STORE_MARK_OPEN,   /* written behind a commit */
        STORE_MARK_CLOSED, /* written at a clean closing: all is in one file, and a copy may take its place */
};
/* 0 or -errno. */
int store_mark_open(const char *path, int *ret_fd, enum store_mark *ret_kind, uint64_t *ret_seq,
                    struct err *err);
/* A failure leaves the old mark, which is still true. */
void store_mark_write(int fd, enum store_mark kind, uint64_t seq);

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

/* The write-ahead log, <path>-wal, keeps its space from lap to lap and over a clean closing, so that a commit
 * need not make the file longer: a flush is then one write to the disk, not two or more. The first call
 * writes zeros behind what is there, up to `size` bytes (SQLite takes them for the end of the log); for a log
 * that nobody is writing to. The second makes a log empty, keeping `size` bytes of its space: for one whose
 * pages are all in the database, after closing, so that a backup put in the database's place never meets the
 * pages of another. Both do what they can. */
void store_wal_extend(const char *path, size_t size);
void store_wal_void(const char *path, size_t size);

/* Whether the folder of `path` is on a filesystem shared between machines. */
bool store_path_is_network(const char *path);
