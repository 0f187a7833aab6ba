/* row: a job in a listing, as plain data and as JSON.
 *
 * Rows are made on the core thread for jobs in the queue (row_maker), or on the reader thread from history
 * (past.h). Strings are in the call's arena. */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"

struct row {
        uint64_t request;
        uint32_t member;
        enum job_state state;
        int status;
        struct str owner, agent, queue, cmd, args, hold_reason;
        struct str waits_for;   /* a phrase that names other jobs; empty: none */
        struct str unreachable; /* why the job's current place is unknown; empty: it is known */
        uint32_t starts;
        bool removing; /* the job is vacating, and will be removed then */
        bool ended, signaled;
        int32_t exit_code;
        int32_t hold_code, hold_subcode;
        int64_t submitted_ms, entered_ms, started_ms, ended_ms; /* 0: has not happened */
        int64_t priority;
        struct str ad; /* JSON; p is NULL: not asked for */
        bool past;     /* the job is in history */
};

struct row_maker {
        struct server *server;
        struct arena *arena;
        struct attributes *attr;
        struct symbols_use *names; /* names that are parsed meanwhile, freed with the maker */
        uint64_t request;          /* the following members are of this part */
        uint32_t part;
        struct str owner;
        struct str cmd, args;
        bool cmd_late, args_late;
};
void row_maker_init(struct row_maker *m, struct server *s, struct arena *a);
void row_maker_deinit(struct row_maker *m);
bool row_make(struct row_maker *m, uint64_t request, uint32_t member, struct row *ret);

#define ROW_NAMES_MAX 10000u /* attribute names that a listing may introduce */

/* Writes the row as a JSON object. */
void row_write(struct json *j, const struct row *r);
/* Writes only the members exit_code and exit_signal; both are null unless the job has ended. */
void row_write_exit(struct json *j, const struct row *r);
/* Returns the named attributes of an ad and its parents as a JSON object in the arena; names are separated
 * by commas ("*": all). */
struct str row_print_ad(const struct ad *ad, struct str names, struct arena *a);
