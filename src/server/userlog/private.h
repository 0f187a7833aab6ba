/* private: the state of user logs. Requests with a log (request.c) refer to channels (send.c), whose entries
 * (userlog.c) refer back to the requests, so one header has the structs of all three. The unit test of send.c
 * uses it too. */
#pragma once
#include "base/map.h"
#include "server/loop/turn.h"
#include "server/userlog/format.h"
#include "server/userlog/userlog.h"

struct place { /* kept until the server ends; there are as many as queues */
        char *agent, *queue;
};
struct seen { /* data of an attempt until it ends */
        struct place *place;
        uint32_t fence, cpus;
        bool started;
        uint64_t memory_mib, disk_kib;
        int64_t user_ms, system_ms; /* of the job's earlier attempts */
};
struct logged_part {
        uint64_t first, end;
        bool has, late;   /* late: the path differs between members */
        bool notes;       /* the submit event has notes */
        unsigned options; /* userlog_option */
        char *path;       /* absolute; NULL if late */
        char *host;
};
struct logged { /* a request with a user log */
        uint64_t request;
        unsigned refs;
        struct channel *channel;
        struct logged_part *parts;
        size_t part_count;
        struct idmap *attempts; /* member → struct seen */
};

struct position { /* a position in a channel's stream: record, entry of that record, member */
        uint64_t seq, sub, member;
};
struct entry { /* a record of the core that will become lines */
        struct entry *next;
        struct logged *log;
        struct position at; /* of the next member to write */
        struct set members;
        struct userlog_record record;
        /* the values of each member's line except its number; texts point into `place` and `reason` */
        struct userlog_line line;
        struct place *place;
        char *reason;
        size_t bytes;
        bool again;
};
struct out { /* text for one file, sent or about to be */
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
        struct channel *next; /* list of active channels */
        char *domain, *owner;
        unsigned users;
        /* fresh: new lines cannot be in a file already, since they came after the restart */
        bool active, fresh;
        struct position done; /* recovery: lines before this position are in the files */
        struct entry *first, **last;
        struct out *outs, **outs_last, *outs_tail;
        size_t out_bytes, entry_bytes;
        struct missing *missing;
        size_t missing_count, missing_cap;
        char *agent;
        uint64_t session; /* 0: none */
        int64_t looked_ms, not_before_ms, warned_ms;
        int64_t no_agent_since_ms; /* boot clock: since when no agent can write the files; 0: one can */
        bool no_agent_told;        /* a warning about that was logged */
};
struct userlog {
        struct idmap *requests; /* request → struct logged */
        struct map *channels, *places;
        struct channel *active;
        struct idmap *sent; /* serial → struct out */
        uint64_t next_seq, sub, last_serial;
        size_t bytes; /* of all entries */
        bool recovering, changed;
        struct position done; /* recovery: the position of channels that the blob does not name */
        uint64_t saved_seq;
        size_t unsaved_bytes; /* bytes acknowledged since the position was saved */
        int64_t saved_ms;
        symbol user_log, format, use_xml, iwd, log_domain, domain, submit_host, notes, user_notes;
        /* attribute names, spelled as the server does and not as a user first did */
        struct symbols *event_names;
};

/* userlog.c: adds the lines of the entry's next member; returns false if there was none left. */
bool entry_step(struct server *s, struct channel *c, struct entry *e, size_t *budget);
void entry_free(struct userlog *u, struct entry *e);

/* request.c */
/* in u->requests; NULL: the request has no log */
struct logged *logged_new(struct server *s, uint64_t request);
void logged_unref(struct userlog *u, struct logged *l);
void logged_attempts_clear(struct logged *l);
const struct logged_part *logged_part_of(const struct logged *l, uint64_t member);
/* Writes the absolute path of a member's log. Returns false if it has none. */
bool logged_path(struct server *s, uint64_t request, uint32_t member, struct buf *ret);

/* send.c */
struct channel *channel_get(struct userlog *u, struct str domain, struct str owner); /* made if absent */
void channel_unuse(struct userlog *u, struct channel *c);
void channel_add(struct server *s, struct channel *c, struct entry *e);
/* Returns the text to which lines for this file are appended. again: the lines may have been sent before a
 * restart. */
struct buf *channel_text(struct userlog *u, struct channel *c, const char *path, struct position at,
                         bool again);
void channel_added(struct channel *c, size_t bytes); /* bytes appended to the text */
/* Loads the position of each channel. *ret_from: the first record that must be read again. */
int done_load(struct server *s, uint64_t snapshot_seq, uint64_t *ret_from, struct err *err);
void channel_free(struct userlog *u, struct channel *c); /* drops the channel's pending entries */
void channel_clear(struct userlog *u, struct channel *c);
