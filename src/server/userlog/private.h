/* private: what userlog.c (records of the core to entries, entries to lines), request.c (which requests have
 * a log) and send.c (channels, agents, the store) share; the test of send.c looks into it. */
#pragma once
#include "base/map.h"
#include "server/loop/turn.h"
#include "server/userlog/format.h"
#include "server/userlog/userlog.h"

struct place { /* kept until the end: there are as many as queues */
        char *agent, *queue;
};
struct seen { /* an attempt, while it lasts */
        struct place *place;
        uint32_t fence, cpus;
        bool started;
        uint64_t memory_mib, disk_kib;
        int64_t user_ms, system_ms; /* of the job's attempts before it */
};
struct logged_part {
        uint64_t first, end;
        bool has, late;   /* late: the path is another for each member */
        bool notes;       /* there are notes for the submit event */
        unsigned options; /* userlog_option */
        char *path;       /* absolute; NULL when late */
        char *host;
};
struct logged { /* a request with a user log */
        uint64_t request;
        unsigned refs;
        struct channel *channel;
        struct logged_part *parts;
        size_t part_count;
        struct idmap *attempts; /* struct seen by member */
};

struct position { /* in a channel's stream: record, entry of it, member */
        uint64_t seq, sub, member;
};
struct entry { /* a record of the core on its way to be lines */
        struct entry *next;
        struct logged *log;
        struct position at; /* where it goes on */
        struct set members;
        struct userlog_record record;
        struct userlog_line line; /* for each member, but its number; texts are in `place` and `reason` */
        struct place *place;
        char *reason;
        size_t bytes;
        bool again;
};
struct out { /* text for one file */
        struct out *next;
        struct channel *channel;
        struct position at;
        uint64_t serial;
        char *path;
        struct buf text;
        bool sent, again;
};
struct missing {
        char *path;
        uint64_t request, count;
        uint32_t member;
        unsigned options;
        int64_t at_ms;
};
struct channel {
        struct channel *next; /* active ones */
        char *domain, *owner;
        unsigned users;
        bool active, fresh;   /* fresh: what comes now was in no file before the restart */
        struct position done; /* recovery: what comes before it is in the files */
        struct entry *first, **last;
        struct out *outs, **outs_last, *outs_tail;
        size_t out_bytes, entry_bytes;
        struct missing *missing;
        size_t missing_count, missing_cap;
        char *agent;
        uint64_t session; /* 0: none */
        int64_t looked_ms, not_before_ms, warned_ms;
        int64_t lonely_ms; /* boot clock, since when no agent can write its files; 0: one can */
        bool lonely_told;  /* the server's log says so */
};
struct userlog {
        struct idmap *requests; /* struct logged */
        struct map *channels, *places;
        struct channel *active;
        struct idmap *sent; /* struct out by serial */
        uint64_t next_seq, sub, last_serial;
        size_t bytes; /* of entries */
        bool recovering, changed;
        struct position done; /* recovery: of channels that the blob does not name */
        uint64_t saved_seq;
        size_t unsaved_bytes; /* acknowledged since */
        int64_t saved_ms;
        symbol user_log, format, use_xml, iwd, log_domain, domain, submit_host, notes, user_notes;
        struct symbols *event_names; /* of attributes: spelled as we do, not as a user did first */
};

/* userlog.c: adds the lines of the entry's next member; false: it had none left. */
bool entry_step(struct server *s, struct channel *c, struct entry *e, size_t *budget);
void entry_free(struct userlog *u, struct entry *e);

/* request.c */
struct logged *logged_new(struct server *s, uint64_t request); /* in u->requests; NULL: it has no log */
void logged_unref(struct userlog *u, struct logged *l);
void logged_attempts_clear(struct logged *l);
const struct logged_part *logged_part_of(const struct logged *l, uint64_t member);
/* The absolute path of a member's log. False: it has none. */
bool logged_path(struct server *s, uint64_t request, uint32_t member, struct buf *ret);

/* send.c */
struct channel *channel_get(struct userlog *u, struct str domain, struct str owner); /* made if absent */
void channel_unuse(struct userlog *u, struct channel *c);
void channel_add(struct server *s, struct channel *c, struct entry *e);
/* The text that lines for this file are added to. again: they may have been sent before a restart. */
struct buf *channel_text(struct userlog *u, struct channel *c, const char *path, struct position at,
                         bool again);
void channel_added(struct channel *c, size_t bytes); /* to it */
/* How far each channel had come. *ret_from: the first record that may have to be looked at again. */
int done_load(struct server *s, uint64_t snapshot_seq, uint64_t *ret_from, struct err *err);
void channel_free(struct userlog *u, struct channel *c); /* what waits in it is dropped */
void channel_clear(struct userlog *u, struct channel *c);
