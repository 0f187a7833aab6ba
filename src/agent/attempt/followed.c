#include "agent/attempt/followed.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/model/agent.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "agent/step/submit.h"

#define FOLLOWED_MAX 500  /* attempts, and commands beside them; shared by their owners */
#define FILES_MAX    2000 /* open, of all */

void followed_set_init(struct followed_set *all)
{
        all->share = share_new(FOLLOWED_MAX);
}

void followed_set_deinit(struct followed_set *all)
{
        while (all->first) {
                all->first->over = true;
                followed_free(all, all->first);
        }
        share_free(all->share);
}

uint32_t followed_stays_step(uint64_t number)
{
        return STEP_NO_JOBS | STEP_STAYS | (uint32_t)(number >> 1 & (STEP_STAYS - 1));
}

static bool is_exec(const struct followed *f, uint64_t number)
{
        return f->exec.number == number ||
               (f->exec.number == EXEC_ADOPTED && number && f->exec.task.step == followed_stays_step(number));
}

struct followed *followed_find(const struct followed_set *all, uint64_t request, uint32_t member,
                               uint32_t fence, uint64_t exec)
{
        struct followed *f = all->first;

        while (f && (f->request != request || f->member != member || f->fence != fence || !is_exec(f, exec)))
                f = f->next;
        return f;
}

struct followed *followed_new(struct followed_set *all, struct attempt *at)
{
        if (!share_take(all->share, str_of(at->t->m->owner)))
                return NULL;
        struct followed *f = mem_new(struct followed);
        *f = (struct followed){.next = all->first,
                               .a = at->a,
                               .owner = mem_dupz(at->t->m->owner),
                               .request = at->request,
                               .member = at->member,
                               .fence = at->fence,
                               .at = at};
        all->first = f;
        return f;
}

struct followed *followed_new_exec(struct followed_set *all, struct attempt *at, uint64_t number,
                                   struct run_id task)
{
        struct followed *f = followed_new(all, at);

        for (int k = 0; k < 2 && f; k++) {
                struct followed_stream *s = &f->streams[k];

                MEM_GROW(s->files, s->cap, 1);
                s->files[s->count++] = (struct followed_file){.index = k, .fd = -1};
        }
        if (f)
                f->exec = (struct followed_exec){.number = number, .task = task};
        return f;
}

void followed_free(struct followed_set *all, struct followed *f)
{
        struct followed **link = &all->first;

        while (*link != f)
                link = &(*link)->next;
        *link = f->next;
        for (int k = 0; k < 2; k++) {
                for (size_t i = 0; i < f->streams[k].count; i++)
                        if (f->streams[k].files[i].fd >= 0) {
                                close(f->streams[k].files[i].fd);
                                all->file_count--;
                        }
                free(f->streams[k].files);
        }
        share_give(all->share, str_of(f->owner));
        free(f->owner);
        if (f->exec.number && !f->over) {
                runner_kill(f->a->runner, f->exec.task, 0);
                agent_turn_later(f->a);
        }
        console_free(f->exec.console);
        free(f->exec.error);
        free(f);
}

/* ---- the files */

static bool has_file(const struct followed_stream *s, int index)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->files[i].index == index)
                        return true;
        return false;
}

static void add_file(struct followed *f, unsigned step, bool is_stderr)
{
        bool unnamed;
        int index = expand_stream_file(f->at, step, is_stderr, &unnamed, NULL);
        struct followed_stream *s = &f->streams[is_stderr];

        if (index < 0 || has_file(&f->streams[0], index) || has_file(s, index))
                return;
        MEM_GROW(s->files, s->cap, s->count + 1);
        s->files[s->count++] = (struct followed_file){index, -1, unnamed};
}

/* Lists the files of the steps that have begun. */
static void list_files(struct followed *f)
{
        for (; f->steps <= f->at->step && f->steps < f->at->t->m->step_count; f->steps++) {
                add_file(f, f->steps, false);
                add_file(f, f->steps, true);
        }
}

void followed_file_name(const struct followed *f, int index, struct buf *out)
{
        if (f->exec.number)
                buf_printf(out, index ? STEP_EXEC_ERR : STEP_EXEC_OUT, f->exec.task.step);
        else
                expand_stream_name(f->at, index, out);
}

void followed_open_files(struct followed_set *all, struct followed *f)
{
        bool is_exec = f->exec.number != 0;

        if (!f->at || f->over || f->exec.terminal || (!is_exec && f->at->state < ATTEMPT_RUNNING))
                return; /* a command runs beside a program, though that may not be adopted yet */
        if (!is_exec)
                list_files(f);
        for (int k = 0; k < 2; k++)
                for (size_t i = 0; i < f->streams[k].count; i++) {
                        struct followed_file *file = &f->streams[k].files[i];

                        if (file->fd >= 0 || all->file_count >= FILES_MAX)
                                continue;
                        BUF_CLEANUP struct buf name = {0};
                        followed_file_name(f, file->index, &name);
                        file->fd = sandbox_open_file(f->at, buf_z(&name));
                        all->file_count += file->fd >= 0;
                }
}

static uint64_t file_size(const struct followed_file *f)
{
        struct stat st;

        return f->fd >= 0 && fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

uint64_t followed_size(const struct followed *f, int stream)
{
        const struct followed_stream *s = &f->streams[stream];
        uint64_t size = 0;

        for (size_t i = 0; i < s->count; i++)
                size += file_size(&s->files[i]);
        return size;
}

/* The first byte from `at` on that was not trimmed. */
static uint64_t skip_hole(const struct followed_file *f, uint64_t at, uint64_t size)
{
        off_t data = f->trimmed ? lseek(f->fd, (off_t)at, SEEK_DATA) : (off_t)at;

        return data < 0 ? size : (uint64_t)data;
}

void followed_read(const struct followed *followed, int stream, uint64_t *offset, size_t most,
                   struct buf *out)
{
        const struct followed_stream *s = &followed->streams[stream];
        uint64_t base = 0, at = *offset;

        for (size_t i = 0; i < s->count && out->n < most; i++) {
                const struct followed_file *f = &s->files[i];
                uint64_t size = file_size(f);

                while (at - base < size && out->n < most) {
                        uint64_t from = skip_hole(f, at - base, size);

                        if (from > at - base && out->n)
                                return; /* bytes behind the hole go into another answer */
                        at = base + from;
                        if (!out->n)
                                *offset = at;
                        if (from >= size)
                                break;
                        size_t n = most - out->n < size - from ? most - out->n : (size_t)(size - from);
                        char *room = buf_room(out, n);
                        ssize_t got = pread(f->fd, room, n, (off_t)from);
                        if (got <= 0)
                                return;
                        out->n += (size_t)got;
                        at += (uint64_t)got;
                }
                base += size;
        }
}
