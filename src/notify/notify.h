/* notify: sends notices by mail and to web hooks.
 *
 * A few threads do what blocks: they run the mailer and send HTTP requests. Nothing is stored here: the
 * caller keeps a notice until it is reported as sent, and gives it again otherwise. Each notice has an id,
 * in the mail's Message-ID and in the hook's Idempotency-Key and body, by which a receiver recognises a
 * duplicate.
 *
 * A mail is passed to the program that the admin names, by an argument list and never through a shell. The
 * address was checked (address.h), and no header has other text from a user.
 *
 * A web hook is one POST of JSON, without redirects or proxies, to a host on the admin's list. Each
 * address that a name resolves to is checked when the connection is made: an address that is not public is
 * refused, unless the list has exactly this address and port. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/system/uuid.h"
#include "notify/address.h"

#define NOTIFY_LIST_MAX 64
#define NOTIFY_BODY_MAX (512u << 10)

struct notify_config {
        /* arguments, terminated by NULL; none: no mail. An argument {to} becomes the address; without one
         * the address is appended */
        char *mailer[NOTIFY_LIST_MAX + 1];
        char *from; /* a checked mail address */
        struct address_entry hooks[NOTIFY_LIST_MAX];
        size_t hook_count;
        int64_t timeout_ms; /* for one try */
};

enum notify_kind { NOTIFY_MAIL, NOTIFY_HOOK };
enum notify_result {
        NOTIFY_SENT,
        NOTIFY_AGAIN,   /* a later try may succeed */
        NOTIFY_REFUSED, /* no try will succeed */
};

struct notify_message {
        char id[UUID_TEXT];
        enum notify_kind kind;
        char *to;                    /* owned */
        char *subject;               /* owned; one line of ASCII; mail only */
        struct buf body;             /* UTF-8 with LF; or JSON */
        int64_t at_ms;               /* Unix milliseconds: the date in the mail */
        struct notify_message *next; /* internal */
};
struct notify_message *notify_message_new(void);
void notify_message_free(struct notify_message *m); /* accepts NULL */

/* Called on a thread of notify. `why` is a sentence for the log; empty when the notice was sent. */
typedef void notify_done_fn(void *arg, const char *id, enum notify_result result, const char *why);

struct notify;
/* config is borrowed. Returns 0, or -errno with err. */
int notify_new(const struct notify_config *config, notify_done_fn *done, void *arg, struct notify **ret,
               struct err *err);
/* Takes the message. May be called from any thread. */
void notify_send(struct notify *n, struct notify_message *m);
/* Stops what is being sent, without a report, and waits for the threads. Accepts NULL. */
void notify_free(struct notify *n);

/* Returns whether a hook may be sent there: 0; or -EACCES with err. */
int notify_hook_allowed(const struct notify_config *config, const struct address_url *url, struct err *err);

/* The two ways of sending. Each blocks until it is done or *stop is true (then it returns NOTIFY_AGAIN). */
struct notify_stop;
bool notify_stopping(const struct notify_stop *s);
enum notify_result mail_send(const struct notify_config *config, const struct notify_message *m,
                             const struct notify_stop *s, struct err *why);
enum notify_result hook_send(const struct notify_config *config, const struct notify_message *m,
                             const struct notify_stop *s, struct err *why);
/* Writes the mail with its headers, as the mailer gets it. */
void mail_write(struct buf *out, const struct notify_config *config, const struct notify_message *m);
