#include "store_help.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>
#include <dirent.h>
#include <unistd.h>

void waiter_init(struct waiter *w)
{
        *w = (struct waiter){0};
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->moved, NULL);
}

void waiter_deinit(struct waiter *w)
{
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->moved);
}

static void finished(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                     const struct err *err)
{
        struct waiter *w = arg;

        pthread_mutex_lock(&w->lock);
        w->finished++;
        w->result = result;
        if (last_seq < w->last_seq)
                w->disorder = true;
        w->last_seq = last_seq;
        if (err)
                w->err = *err;
        if (batch)
                w->returned[w->returned_count++ % 64] = batch;
        pthread_cond_signal(&w->moved);
        pthread_mutex_unlock(&w->lock);
}

void waiter_append(struct waiter *w, struct store *s, uint64_t term, struct store_batch *b)
{
        pthread_mutex_lock(&w->lock);
        w->appended++;
        pthread_mutex_unlock(&w->lock);
        store_append(s, term, b, finished, w);
}

void waiter_wait(struct waiter *w)
{
        struct timespec end;
        int r = 0;

        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 60;
        pthread_mutex_lock(&w->lock);
        while (w->finished < w->appended && r == 0)
                r = pthread_cond_timedwait(&w->moved, &w->lock, &end);
        pthread_mutex_unlock(&w->lock);
        assert_int_equal(r, 0);
}

int append_now(struct store *s, uint64_t term, struct store_batch *b, uint64_t *ret_last_seq, struct err *err)
{
        struct waiter w;

        waiter_init(&w);
        waiter_append(&w, s, term, b);
        waiter_wait(&w);
        waiter_deinit(&w);
        if (w.returned_count)
                store_batch_free(w.returned[0]);
        if (ret_last_seq)
                *ret_last_seq = w.last_seq;
        if (err)
                *err = w.err;
        return w.result;
}

struct store_batch *batch_of(const char *word, uint64_t first, unsigned count)
{
        struct store_batch *b = store_batch_new();

        for (unsigned i = 0; i < count; i++) {
                BUF_CLEANUP struct buf text = {0};

                buf_printf(&text, "%s %llu", word, (unsigned long long)(first + i));
                store_batch_event(b, buf_view(&text));
        }
        return b;
}

char *temp_folder(void)
{
        char *folder = mem_dupz("/tmp/drover-store-XXXXXX");

        assert_non_null(mkdtemp(folder));
        return folder;
}

void temp_folder_remove(char *folder)
{
        DIR *d = opendir(folder);
        struct dirent *e;

        assert_non_null(d);
        while ((e = readdir(d)))
                if (e->d_name[0] != '.')
                        unlinkat(dirfd(d), e->d_name, 0);
        closedir(d);
        assert_int_equal(rmdir(folder), 0);
        free(folder);
}
