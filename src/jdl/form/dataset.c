#include "jdl/form/dataset.h"

#include "base/mem.h"
#include "base/u64.h"

struct pieces {
        const struct dataset_file *files;
        const struct dataset_limits *limits;
        struct dataset_piece *items;
        size_t count, cap;
};

static struct dataset_piece *add_piece(struct pieces *p, size_t first)
{
        MEM_GROW(p->items, p->cap, p->count + 1);
        p->items[p->count] = (struct dataset_piece){.first = first, .group = p->files[first].group};
        return &p->items[p->count++];
}

static void add_file(struct dataset_piece *d, const struct dataset_file *f)
{
        d->count++;
        d->bytes += f->bytes;
        d->events += f->events;
}

static void piece_fill(struct pieces *p, struct dataset_piece *d, size_t first, size_t count)
{
        *d = (struct dataset_piece){.first = first, .group = p->files[first].group};
        for (size_t i = first; i < first + count; i++)
                add_file(d, &p->files[i]);
}

/* Pieces that differ by one file at most, the larger ones first. */
static void cut_evenly(struct pieces *p, size_t first, size_t count)
{
        size_t max = (size_t)u64_min(p->limits->files_max, count), n = (count + max - 1) / max;

        for (size_t i = 0; i < n; i++) {
                size_t take = count / n + (i < count % n);

                piece_fill(p, add_piece(p, first), first, take);
                first += take;
        }
}

static bool piece_fits(const struct dataset_limits *l, const struct dataset_piece *d,
                       const struct dataset_file *f)
{
        return (!l->files_max || d->count < l->files_max) &&
               (!l->bytes_max || d->bytes + f->bytes <= l->bytes_max) &&
               (!l->events_max || d->events + f->events <= l->events_max);
}

/* Share of the limit that comes first, of which there is one at least. */
static double weight(const struct dataset_limits *l, const struct dataset_piece *d)
{
        double w = l->files_max ? (double)d->count / (double)l->files_max : 0;
        double b = l->bytes_max ? (double)d->bytes / (double)l->bytes_max : 0;
        double e = l->events_max ? (double)d->events / (double)l->events_max : 0;

        w = b > w ? b : w;
        return e > w ? e : w;
}

static double larger(const struct dataset_limits *l, const struct dataset_piece *a,
                     const struct dataset_piece *b)
{
        double x = weight(l, a), y = weight(l, b);

        return x > y ? x : y;
}

/* Moves files from the last but one piece to the last while that makes the larger of both smaller. */
static void even_out(struct pieces *p, size_t begin)
{
        struct dataset_piece *a, *b;

        if (p->count - begin < 2)
                return;
        a = &p->items[p->count - 2];
        b = &p->items[p->count - 1];
        while (a->count > 1) {
                struct dataset_piece less = *a, more = *b;
                const struct dataset_file *f = &p->files[a->first + a->count - 1];

                less.count--;
                less.bytes -= f->bytes;
                less.events -= f->events;
                more.first--;
                add_file(&more, f);
                if (larger(p->limits, &less, &more) >= larger(p->limits, a, b))
                        break;
                *a = less;
                *b = more;
        }
}

static void cut_by_limits(struct pieces *p, size_t first, size_t count)
{
        size_t begin = p->count;
        struct dataset_piece *d = NULL;

        for (size_t i = first; i < first + count; i++) {
                if (!d || !piece_fits(p->limits, d, &p->files[i]))
                        d = add_piece(p, i);
                add_file(d, &p->files[i]);
        }
        even_out(p, begin);
}

/* A piece under the minimum becomes part of the one before it, the first one of the one behind. */
static void merge_small(struct pieces *p, size_t begin)
{
        for (size_t i = begin; p->count - begin > 1 && i < p->count;) {
                size_t into = i > begin ? i - 1 : i;

                if (p->items[i].count >= p->limits->files_min) {
                        i++;
                        continue;
                }
                piece_fill(p, &p->items[into], p->items[into].first,
                           p->items[into].count + p->items[into + 1].count);
                for (size_t k = into + 1; k + 1 < p->count; k++)
                        p->items[k] = p->items[k + 1];
                p->count--;
                i = into;
        }
}

size_t dataset_split(const struct dataset_file *files, size_t count, const struct dataset_limits *limits,
                     struct dataset_piece **ret)
{
        struct pieces p = {.files = files, .limits = limits};

        for (size_t first = 0, end; first < count; first = end) {
                size_t begin = p.count;

                for (end = first + 1; end < count && files[end].group == files[first].group;)
                        end++;
                if (limits->files_max && !limits->bytes_max && !limits->events_max)
                        cut_evenly(&p, first, end - first);
                else
                        cut_by_limits(&p, first, end - first);
                if (limits->files_min > 1)
                        merge_small(&p, begin);
        }
        *ret = p.items;
        return p.count;
}
