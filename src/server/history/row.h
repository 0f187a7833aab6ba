/* row: a job in a listing, as plain data, and as JSON.
 *
 * Made on the core thread for jobs that are there (row_maker), or on the reader thread from history (past.h).
 * Strings live in the call's arena.
 */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"

struct row {
        uint64_t request;
        uint32_t member;
        enum job_state state;
        int status;
        struct str owner, agent, queue, cmd, args, hold_reason;
        struct str waits_for;   /* other jobs, in words; empty: none */
        struct str unreachable; /* why nothing is heard of where it is; empty: it is reached */
        uint32_t starts;
        bool removing; /* vacating, and removed behind that */
        bool ended, signaled;
        int32_t exit_code;
        int32_t hold_code, hold_subcode;
        int64_t submitted_ms, entered_ms, started_ms, ended_ms; /* 0: not yet */
        int64_t priority;
        struct str ad; /* JSON; p NULL: none */
        bool past;     /* the rest is in history */
};

struct row_maker {
        struct server *server;
        struct arena *arena;
        struct attributes *attr;
        struct symbols_use *names; /* for what is parsed meanwhile; gone with the maker */
        uint64_t request;          /* what follows is of this part */
        uint32_t part;
        struct str owner;
        struct str cmd, args;
        bool cmd_late, args_late;
};
void row_maker_init(struct row_maker *m, struct server *s, struct arena *a);
void row_maker_deinit(struct row_maker *m);
bool row_make(struct row_maker *m, uint64_t request, uint32_t member, struct row *ret);

#define ROW_NAMES_MAX 10000u /* attribute names that a listing may bring along */

/* Writes the object. */
void row_write(struct json *j, const struct row *r);
/* Its exit_code and exit_signal alone; both are null unless it has ended. */
void row_write_exit(struct json *j, const struct row *r);
/* Returns the attributes of an ad (or its parents) that are named, separated by commas ("*": all), as a JSON
 * object in the arena. */
struct str row_print_ad(const struct ad *ad, struct str names, struct arena *a);
