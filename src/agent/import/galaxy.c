#include "agent/import/galaxy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/system/fs.h"

void galaxy_init(struct galaxy_conf *c, const char *file)
{
        *c = (struct galaxy_conf){.file = file};
}

static void free_words(struct galaxy_words *w)
{
        for (size_t i = 0; i < w->n; i++) {
                free(w->v[i].name);
                free(w->v[i].value);
        }
        free(w->v);
}

void galaxy_queue_deinit(struct galaxy_queue *q)
{
        free(q->name);
        free_words(&q->native);
        free_words(&q->mounts);
}

void galaxy_deinit(struct galaxy_conf *c)
{
        for (size_t i = 0; i < c->runner_count; i++) {
                free(c->runners[i].id);
                free(c->runners[i].load);
                free_words(&c->runners[i].params);
        }
        for (size_t i = 0; i < c->place_count; i++) {
                struct galaxy_place *p = &c->places[i];

                free(p->id);
                free(p->runner);
                free_words(&p->tags);
                free_words(&p->params);
                free_words(&p->environment);
                free_words(&p->scripts);
        }
        for (size_t i = 0; i < c->limit_count; i++) {
                free(c->limits[i].type);
                free(c->limits[i].id);
                free(c->limits[i].tag);
                free(c->limits[i].value);
        }
        for (size_t i = 0; i < c->tool_count; i++) {
                free(c->tools[i].id);
                free(c->tools[i].place);
        }
        free(c->runners);
        free(c->places);
        free(c->limits);
        free(c->tools);
        free(c->default_place);
        free_words(&c->notes);
}

struct galaxy_runner *galaxy_add_runner(struct galaxy_conf *c, struct str id, unsigned line)
{
        MEM_GROW(c->runners, c->runner_cap, c->runner_count + 1);
        c->runners[c->runner_count] = (struct galaxy_runner){.id = str_dupz(id), .line = line};
        return &c->runners[c->runner_count++];
}

struct galaxy_place *galaxy_add_place(struct galaxy_conf *c, struct str id, unsigned line)
{
        MEM_GROW(c->places, c->place_cap, c->place_count + 1);
        c->places[c->place_count] = (struct galaxy_place){.id = str_dupz(id), .line = line};
        return &c->places[c->place_count++];
}

struct galaxy_limit *galaxy_add_limit(struct galaxy_conf *c, unsigned line)
{
        MEM_GROW(c->limits, c->limit_cap, c->limit_count + 1);
        c->limits[c->limit_count] = (struct galaxy_limit){.line = line};
        return &c->limits[c->limit_count++];
}

struct galaxy_tool *galaxy_add_tool(struct galaxy_conf *c, unsigned line)
{
        MEM_GROW(c->tools, c->tool_cap, c->tool_count + 1);
        c->tools[c->tool_count] = (struct galaxy_tool){.line = line};
        return &c->tools[c->tool_count++];
}

void galaxy_add_word(struct galaxy_words *w, struct str name, struct str value, unsigned line)
{
        MEM_GROW(w->v, w->cap, w->n + 1);
        w->v[w->n++] = (struct galaxy_word){str_dupz(name), str_dupz(value), line};
}

const struct galaxy_word *galaxy_word(const struct galaxy_words *w, const char *name)
{
        for (size_t i = 0; i < w->n; i++)
                if (strcmp(w->v[i].name, name) == 0)
                        return &w->v[i];
        return NULL;
}

const struct galaxy_runner *galaxy_runner(const struct galaxy_conf *c, const char *id)
{
        for (size_t i = 0; id && i < c->runner_count; i++)
                if (strcmp(c->runners[i].id, id) == 0)
                        return &c->runners[i];
        return NULL;
}

/* Kept in the order of the lines; of one line, in the order of the calls. */
void galaxy_note(struct galaxy_conf *c, unsigned line, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {.max = 2048};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        for (size_t i = 0; i < text.n; i++)
                if ((unsigned char)text.p[i] < ' ')
                        text.p[i] = ' ';
        galaxy_add_word(&c->notes, STR_NONE, buf_view(&text), line);
        for (size_t i = c->notes.n - 1; i > 0 && c->notes.v[i - 1].line > line; i--) {
                struct galaxy_word later = c->notes.v[i - 1];

                c->notes.v[i - 1] = c->notes.v[i];
                c->notes.v[i] = later;
        }
}

int galaxy_read(struct galaxy_conf *c, struct str text, struct err *err)
{
        return str_starts(str_trim_left(text), STR("<")) ? galaxy_read_xml(c, text, err)
                                                         : galaxy_read_yaml(c, text, err);
}

int galaxy_import(int argc, char **argv)
{
        BUF_CLEANUP struct buf text = {0}, out = {0};
        struct galaxy_conf c;
        struct err err = {""};
        int r;

        if (argc != 1 || argv[0][0] == '-') {
                bool help = argc == 1 && strcmp(argv[0], "--help") == 0;

                fprintf(help ? stdout : stderr,
                        "usage: drover-agent import-galaxy FILE\n\n"
                        "Writes the queues of an agent's configuration to standard output, made of Galaxy's "
                        "job_conf.xml or\njob_conf.yml, and says on standard error what has no equivalent. "
                        "See drover-agent(8).\n");
                return help ? 0 : 2;
        }
        galaxy_init(&c, argv[0]);
        r = fs_read(AT_FDCWD, argv[0], GALAXY_TEXT_MAX, &text, &err);
        if (r == 0)
                r = galaxy_read(&c, buf_view(&text), &err);
        if (r == 0)
                r = galaxy_write(&c, &out, &err);
        for (size_t i = 0; i < c.notes.n; i++)
                fprintf(stderr, "%s:%u: %s\n", c.file, c.notes.v[i].line, c.notes.v[i].value);
        if (r != 0)
                fprintf(stderr, "drover-agent: %s\n", err.text);
        else if (fwrite(out.p, 1, out.n, stdout) != out.n || fflush(stdout) != 0)
                r = -errno;
        galaxy_deinit(&c);
        return r == 0 ? 0 : 1;
}
