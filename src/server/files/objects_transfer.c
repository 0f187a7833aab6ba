/* What agents read from the spool and write into it: each call goes from the core thread, which knows who
 * may, to the reader thread, which may wait for the disk, and what was written comes back to be written down.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "core/query.h"
#include "server/agents/message.h"
#include "server/files/objects_private.h"

#define READ_MAX  (1u << 20)
#define WRITE_MAX (4u << 20)

struct transfer { /* one read or write, on its way through the reader thread */
        struct task task;
        struct command *command; /* taken */
        struct message *reply;
        char hash[SPOOL_HASH_TEXT];
        char upload[UUID_TEXT];
        char *owner;
        Drover__SpoolStored *stored;
        Drover__SpoolData *data;
};

static void transfer_drop(struct task *task)
{
        struct transfer *t = (struct transfer *)task;

        command_free(t->command);
        if (t->reply)
                message_free(t->reply);
        free(t->owner);
        free(t);
}

static struct transfer *transfer_new(struct command *c, const unsigned char sha256[32],
                                     Drover__ToAgent__KindCase kind)
{
        struct transfer *t = mem_new(struct transfer);

        t->task.drop = transfer_drop;
        t->command = command_take(c);
        hex_print(t->hash, sha256, 32);
        t->reply = message_new(c->session, kind);
        return t;
}

static ProtobufCBinaryData hash_for(struct message *m, const unsigned char sha256[32])
{
        return (ProtobufCBinaryData){.len = 32, .data = (uint8_t *)arena_dup(&m->arena, sha256, 32)};
}

/* From the reader or the core: what is said changes nothing, so it leaves at once. */
static void answer(struct server *s, struct transfer *t)
{
        struct message *m = t->reply;

        t->reply = NULL;
        transfer_drop(&t->task);
        server_to_io(s, &m->task);
}

static void data_error(struct transfer *t, const char *text)
{
        t->data->error = message_text(t->reply, str_of(text));
}

static void read_run(struct server *s, struct task *task)
{
        struct transfer *t = (struct transfer *)task;
        const struct command_spool_read *x = &t->command->spool_read;
        uint64_t size = 0, offset = x->offset, length = x->length;
        ssize_t got = 0;
        int fd;

        if (spool_object_open(s->objects->spool, str_of(t->hash), &fd, &size) != 0) {
                data_error(t, "the file is not in the spool");
                answer(s, t);
                return;
        }
        length = length > READ_MAX ? READ_MAX : length;
        t->data->size = size;
        t->data->data.data = message_alloc(t->reply, length);
        if (offset < size)
                got = pread(fd, t->data->data.data, length, (off_t)offset);
        close(fd);
        if (got < 0)
                data_error(t, "the file cannot be read");
        else
                t->data->data.len = (size_t)got;
        answer(s, t);
}

static bool is_input(struct server *s, uint64_t request, const unsigned char hash[32])
{
        const struct submission_file *files;
        size_t count;

        if (core_request_spooled(s->core, request, &files, &count) != 0)
                return false;
        for (size_t i = 0; i < count; i++)
                if (memcmp(files[i].sha256, hash, 32) == 0)
                        return true;
        return false;
}

void objects_read(struct server *s, struct command *c, struct agent *a)
{
        const struct command_spool_read *x = &c->spool_read;
        struct transfer *t = transfer_new(c, x->sha256, DROVER__TO_AGENT__KIND_SPOOL_DATA);
        struct core_request r;

        t->data = message_alloc(t->reply, sizeof(*t->data));
        drover__spool_data__init(t->data);
        t->reply->to_agent.spool_data = t->data;
        t->data->sha256 = hash_for(t->reply, x->sha256);
        t->data->offset = x->offset;
        if (core_request_get(s->core, x->request, &r) != 0 || !owners_allow(&a->owners, r.owner) ||
            ((!is_input(s, x->request, x->sha256) ||
              !core_has_part(s->core, a->name, x->request, CORE_PART_ANY)) &&
             !core_checkpoint_has(s->core, a->name, x->request, x->sha256))) {
                data_error(t, "this agent runs no job that has this file");
                answer(s, t);
                return;
        }
        t->task.run = read_run;
        server_to_reader(s, &t->task);
}

/* Core: the object is in the spool; written down before the agent hears of it. */
static void write_done(struct server *s, struct task *task)
{
        struct transfer *t = (struct transfer *)task;
        const struct command_spool_write *x = &t->command->spool_write;
        BUF_CLEANUP struct buf key = {0}, name = {0};
        struct message *m = t->reply;

        objects_stored_key(&key, x->request, x->member, x->fence, t->hash);
        map_put(s->objects->stored, buf_view(&key), s->objects);
        buf_printf(&name, "stored/" STR_FMT, STR_ARG(buf_view(&key)));
        store_batch_blob_put(turn_batch(s->turn), buf_view(&name), STR("1"));
        t->reply = NULL;
        transfer_drop(task);
        message_send(s, m, TURN_DURABLE);
}

static const char *spool_text(int r)
{
        switch (r) {
        case SPOOL_WRONG_HASH: return "the bytes are not those that were announced";
        case SPOOL_FULL: return "the server's disk is full";
        case SPOOL_TOO_BIG: return "the file is too big for the spool";
        case SPOOL_NOT_FOUND: return "the upload is not there any more";
        default: return "the spool cannot be written";
        }
}

static void write_run(struct server *s, struct task *task)
{
        struct transfer *t = (struct transfer *)task;
        const struct command_spool_write *x = &t->command->spool_write;
        struct spool *sp = s->objects->spool;
        char hash[SPOOL_HASH_TEXT];
        uint64_t size = 0;
        struct err err = {0};
        int r = spool_upload_begin(sp, t->upload, str_of(t->owner), &size, &err);

        if (r == 0)
                r = spool_upload_write(sp, t->upload, x->offset, x->data, &size, &err);
        t->stored->stored = size;
        if (r == 0 && x->last) {
                r = spool_finish_one(sp, t->upload, t->hash, hash, &size, &err);
                t->stored->complete = r == 0;
        }
        t->stored->full = r == SPOOL_FULL;
        if (r != 0 && r != SPOOL_WRONG_OFFSET)
                t->stored->error =
                        message_text(t->reply, str_of(err.text[0] && r < 0 ? err.text : spool_text(r)));
        if (t->stored->complete) {
                t->task.run = write_done;
                server_to_core(s, &t->task);
        } else {
                answer(s, t);
        }
}

/* An upload's id from what it is, so that an agent that starts again goes on where it was. */
static void upload_id(char room[UUID_TEXT], const struct command_spool_write *x)
{
        unsigned char b[16];
        uint64_t mix[2] = {x->request * 0x9e3779b97f4a7c15u,
                           ((uint64_t)x->member << 32 | x->fence) * 0xc2b2ae3d27d4eb4fu};

        for (size_t i = 0; i < 16; i++)
                b[i] = x->sha256[i] ^ (unsigned char)(mix[i / 8] >> (i % 8 * 8));
        hex_print_uuid(room, b);
}

void objects_write(struct server *s, struct command *c, struct agent *a)
{
        const struct command_spool_write *x = &c->spool_write;
        struct transfer *t = transfer_new(c, x->sha256, DROVER__TO_AGENT__KIND_SPOOL_STORED);
        struct core_request r;

        t->stored = message_alloc(t->reply, sizeof(*t->stored));
        drover__spool_stored__init(t->stored);
        t->reply->to_agent.spool_stored = t->stored;
        t->stored->sha256 = hash_for(t->reply, x->sha256);
        if (core_request_get(s->core, x->request, &r) != 0 ||
            !core_has_attempt(s->core, a->name, x->request, x->member, x->fence)) {
                t->stored->error = message_text(t->reply, STR("this attempt is not the job's any more"));
        } else if (turn_full(s->turn)) {
                t->stored->full = true;
                t->stored->error = message_text(t->reply, STR("the server's disk is full"));
        } else if (x->data.n > WRITE_MAX) {
                t->stored->error = message_text(t->reply, STR("a piece of more than 4 MiB"));
        } else {
                upload_id(t->upload, x);
                t->owner = str_dupz(r.owner);
                t->task.run = write_run;
                server_to_reader(s, &t->task);
                return;
        }
        answer(s, t);
}
