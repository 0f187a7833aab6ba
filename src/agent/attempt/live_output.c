#include "agent/attempt/live_output.h"

#include <string.h>
#include <unistd.h>

#include "agent/attempt/chirp.h"
#include "agent/model/expand.h"
#include "base/system/clock.h"

#define PIECE_MAX  (256u << 10)
#define PIECES_MAX 4     /* pieces of a stream in a second */
#define ANSWER_MS  60000 /* time for a piece's answer, after which it is sent again */

/* Pieces are brought one after the other, for the first of them empties the file. */
struct live_stream {
        uint64_t sent, piece, serial; /* bytes that are there, and under way by this call; 0: none is */
        int64_t until_ms;
        int pieces; /* pieces sent in this second */
};
struct live_output {
        struct attempt *at;
        unsigned step;
        bool waits;                    /* delivery of its streams waits */
        struct live_stream streams[2]; /* stdout and stderr of the step */
        struct live_output *next, **link;
};

static void bring_piece(struct live_output *l, bool is_stderr)
{
        const struct attempt *at = l->at;
        const struct job_step *s = &at->t->m->steps[l->step];
        struct live_stream *stream = &l->streams[is_stderr];
        BUF_CLEANUP struct buf name = {.max = 65536}, data = {0};
        bool kept;
        int index = expand_stream_file(at, l->step, is_stderr, &kept, NULL);

        if (stream->serial || stream->pieces == PIECES_MAX || index < 0 || kept ||
            (unsigned)index != l->step * 2 + is_stderr ||
            expand_text(at, is_stderr ? s->stderr_file : s->stdout_file, &name, NULL) < 0)
                return; /* or the stream has no file of its own */
        int fd = expand_stream_open(at, index);
        ssize_t n = fd < 0 ? -1 : pread(fd, buf_room(&data, PIECE_MAX), PIECE_MAX, (off_t)stream->sent);
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return;
        stream->pieces++;
        stream->piece = (uint64_t)n;
        stream->until_ms = clock_boot_ms() + ANSWER_MS;
        stream->serial = chirp_write(at, buf_z(&name), str_make(data.p, (size_t)n), stream->sent);
}

/* The first piece of a stream is under way. */
static bool empties_file(const struct live_output *l)
{
        for (int i = 0; i < 2; i++)
                if (l->streams[i].serial && l->streams[i].sent == 0)
                        return true;
        return false;
}

bool live_output_wait(struct attempt *at)
{
        struct live_output *l = at->live_output;

        if (!l || !empties_file(l))
                return false;
        l->waits = true;
        return true;
}

/* Ends the wait; may free l. */
static void end_wait(struct live_output *l)
{
        if (!l->waits || empties_file(l))
                return;
        l->waits = false;
        l->at->a->news->printed(l->at);
}

void live_output_answer(struct agent *a, uint64_t serial, bool ok)
{
        for (struct live_output *l = a->live_outputs; l; l = l->next)
                for (int i = 0; i < 2; i++) {
                        struct live_stream *s = &l->streams[i];

                        if (s->serial != serial)
                                continue;
                        s->serial = 0;
                        s->sent += ok ? s->piece : 0;
                        if (!l->waits && ok)
                                bring_piece(l, i);
                        end_wait(l);
                        return;
                }
}

void live_output_begin(struct attempt *at)
{
        const struct job_template *m = at->t->m;
        struct live_output *l = at->live_output;

        if ((!m->streams_back[0] && !m->streams_back[1]) || m->streams_in_sandbox || !queue_is_local(at->q))
                return;
        if (!l) {
                l = at->live_output = mem_new(struct live_output);
                l->at = at;
                l->next = at->a->live_outputs;
                l->link = &at->a->live_outputs;
                if (l->next)
                        l->next->link = &l->next;
                at->a->live_outputs = l;
        }
        if (l->step != at->step)
                memset(l->streams, 0, sizeof(l->streams));
        l->step = at->step;
}

void live_output_end(struct attempt *at)
{
        struct live_output *l = at->live_output;

        if (!l)
                return;
        *l->link = l->next;
        if (l->next)
                l->next->link = l->link;
        free(l);
        at->live_output = NULL;
}

static void tick_stream(struct live_output *l, int i, int64_t now)
{
        struct live_stream *s = &l->streams[i];

        s->pieces = 0;
        if (s->serial && now >= s->until_ms)
                s->serial = 0;
        if (l->at->t->m->streams_back[i] && !l->waits)
                bring_piece(l, i);
}

void live_output_tick(struct agent *a)
{
        int64_t now = clock_boot_ms();

        for (struct live_output *l = a->live_outputs, *next; l; l = next) {
                next = l->next;
                for (int i = 0; i < 2 && (a->greeted || l->waits); i++)
                        tick_stream(l, i, now);
                end_wait(l);
        }
}
