/* message: a ToAgent message on its way from the core thread to a session.
 *
 * The message and everything it points to live in the task's arena. The I/O thread packs and sends it if
 * the session still exists. */
#pragma once
#include "server/loop/turn.h"
#include "wire/drover.pb-c.h"

struct message {
        struct task task;
        uint64_t session;
        bool finish; /* close the session after sending */
        struct arena arena;
        Drover__ToAgent to_agent;
};
struct message *message_new(uint64_t session, Drover__ToAgent__KindCase kind);
void message_free(struct message *m);
void *message_alloc(struct message *m, size_t n); /* zeroed */
char *message_text(struct message *m, struct str s);
/* Returns an Attempts message with the members as ranges, allocated in the arena of the message. */
Drover__Attempts *message_attempts(struct message *m, uint64_t request, uint32_t fence,
                                   const struct set *members);
Drover__Range **message_ranges(struct message *m, const struct set *members, size_t *ret_count);
void message_send(struct server *s, struct message *m, enum turn_when when); /* core thread */
