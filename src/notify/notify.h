/* notify: carries notices away, by mail and to web hooks.
 *
 * A few threads of its own do what blocks: they start the mailer, and speak HTTP. Nothing is remembered here:
 * whoever gives a notice keeps it until he hears that it has left, and gives it again if it has not. Each
 * notice carries an id, in the mail's Message-ID and in the hook's Idempotency-Key and body, by which a
 * receiver can tell that one came twice.
 *
 * Mail is given to a program that the admin names, by its argument list, never through a shell; the address
 * was checked (address.h), and no header holds other text of a user.
 *
 * A web hook is one POST of JSON, without redirects or proxies, to a host on the admin's list. Each address
 * that a name leads to is looked at when the connection is made: one that is not public is refused, unless
 * the list has exactly this address and port.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/system/uuid.h"
#include "notify/address.h"

#define NOTIFY_LIST_MAX 64
#define NOTIFY_BODY_MAX (512u << 10)

struct notify_config {
        char *mailer[NOTIFY_LIST_MAX + 1]; /* words, NULL behind them; none: no mail. A word {to} becomes the
                                              address; without one it is added as the last */
        char *from;                        /* a checked mail address */
        struct address_entry hooks[NOTIFY_LIST_MAX];
        size_t hook_count;
        int64_t timeout_ms; /* of one try */
};

enum notify_kind { NOTIFY_MAIL, NOTIFY_HOOK };
enum notify_result {
        NOTIFY_SENT,
        NOTIFY_AGAIN,   /* it may work later */
        NOTIFY_REFUSED, /* it never will */
};

struct notify_message {
        char id[UUID_TEXT];
        enum notify_kind kind;
        char *to;                    /* owned */
        char *subject;               /* owned; one line of ASCII; mail only */
        struct buf body;             /* UTF-8 with LF; or JSON */
        int64_t at_ms;               /* Unix milliseconds: the mail's date */
        struct notify_message *next; /* private */
};
struct notify_message *notify_message_new(void);
void notify_message_free(struct notify_message *m); /* NULL is fine */

/* Called on a thread of notify. `why` is a sentence for the log, empty when it was sent. */
typedef void notify_done_fn(void *arg, const char *id, enum notify_result result, const char *why);

struct notify;
/* config is borrowed. 0 or -errno with err. */
int notify_new(const struct notify_config *config, notify_done_fn *done, void *arg, struct notify **ret,
               struct err *err);
/* Takes the message. From any thread. */
void notify_send(struct notify *n, struct notify_message *m);
/* Stops what is under way (it is not reported) and waits for the threads. NULL is fine. */
void notify_free(struct notify *n);

/* May a hook be called there at all? 0; -EACCES with err. */
int notify_hook_allowed(const struct notify_config *config, const struct address_url *url, struct err *err);

/* The two ways, each blocks until it is over or *stop is true (then NOTIFY_AGAIN). */
struct notify_stop;
bool notify_stopping(const struct notify_stop *s);
enum notify_result mail_send(const struct notify_config *config, const struct notify_message *m,
                             const struct notify_stop *s, struct err *why);
enum notify_result hook_send(const struct notify_config *config, const struct notify_message *m,
                             const struct notify_stop *s, struct err *why);
/* The mail with its headers, as the mailer gets it. */
void mail_write(struct buf *out, const struct notify_config *config, const struct notify_message *m);
