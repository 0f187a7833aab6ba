/* private: what notices.c (what is told of whom) and notices_send.c (keeping and sending) share. */
#pragma once
#include "base/map.h"
#include "base/uuid.h"
#include "notify/notify.h"
#include "server/notices/notices.h"
#include "server/notices/text.h"

struct notice {
        struct notice *next, *next_changed;
        char id[UUID_TEXT];
        enum notify_kind kind;
        char *owner, *to;
        char *subject; /* of its first job */
        uint64_t counts[NOTICE_WHATS];
        uint32_t rows;
        struct buf text;    /* rows: paragraphs, or objects with commas between */
        int64_t created_ms; /* Unix milliseconds */
        int64_t due_ms;     /* boot clock */
        unsigned tries;
        bool changed; /* since it was written */
        bool open;    /* it gathers still */
        bool under_way;
};
struct notice_owner {   /* kept until the end: there are as many as users that are told of jobs */
        double allowed; /* notices, now */
        int64_t at_ms;  /* when that was so, on the boot clock; 0: never */
        unsigned waiting;
        bool under_way;
};
struct notices {
        struct notify *notify;
        struct idmap *requests; /* struct told by request */
        struct map *open;       /* by kind, owner and address */
        struct map *by_id, *owners;
        struct notice *first, **last, *changed;
        int64_t warned_ms;
        symbol notification, notify_user, webhook, success;
        bool interned;
};

/* The open notice to this address, made if there is none; NULL when too many wait. */
struct notice *notice_get(struct server *s, enum notify_kind kind, struct str owner, const char *to);
void notice_free(struct notice *x);
/* Looks at what a request asks for; for one that is new, or was there before the start. */
void notices_add_request(struct server *s, uint64_t request);
/* The caller has added to it, or will before the turn ends. */
void notice_changed(struct notices *n, struct notice *x);
