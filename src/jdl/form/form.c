#include "jdl/form/form.h"

#include <stdio.h>

void form_init(struct form *f)
{
        *f = (struct form){0};
}

static void part_deinit(struct form_part *p)
{
        for (size_t i = 0; i < p->attribute_count; i++) {
                free(p->attributes[i].name);
                free(p->attributes[i].text);
        }
        free(p->attributes);
        for (size_t i = 0; i < p->variable_count; i++)
                free(p->variables[i]);
        free(p->variables);
        buf_deinit(&p->items);
}

void form_deinit(struct form *f)
{
        for (size_t i = 0; i < f->part_count; i++)
                part_deinit(&f->parts[i]);
        free(f->parts);
        for (size_t i = 0; i < f->warning_count; i++)
                free(f->warnings[i].text);
        free(f->warnings);
        for (size_t i = 0; i < f->list_count; i++)
                buf_deinit(&f->lists[i].text);
        free(f->lists);
        buf_deinit(&f->notes);
        buf_deinit(&f->edges);
        form_init(f);
}

uint64_t form_members(const struct form *f)
{
        uint64_t n = 0;

        for (size_t i = 0; i < f->part_count; i++)
                n += f->parts[i].rows * f->parts[i].steps;
        return n;
}

struct form_part *form_add_part(struct form *f, unsigned line)
{
        struct form_part *p;

        MEM_GROW(f->parts, f->part_cap, f->part_count + 1);
        p = &f->parts[f->part_count++];
        *p = (struct form_part){.rows = 1, .steps = 1, .line = line};
        p->items.max = FORM_TEXT_MAX;
        return p;
}

void form_request_id(const char *uuid, struct buf *to)
{
        for (const char *z = uuid; *z; z++)
                if (*z != '-')
                        buf_char(to, *z);
}

void form_name_datasets(struct form *f, const char *uuid, const char *host)
{
        BUF_CLEANUP struct buf text = {0};

        buf_char(&text, '"');
        form_request_id(uuid, &text);
        buf_printf(&text, " %s\"", *host ? host : "unknown");
        for (size_t i = 0; i < f->part_count; i++)
                if (form_get(&f->parts[i], STR("DatasetList")))
                        form_set(&f->parts[i], STR("DatasetId"), buf_view(&text), 0);
}

struct form_list *form_add_list(struct form *f)
{
        MEM_GROW(f->lists, f->list_cap, f->list_count + 1);
        f->lists[f->list_count] = (struct form_list){.text = {0}};
        return &f->lists[f->list_count++];
}

void form_drop_part(struct form *f)
{
        part_deinit(&f->parts[--f->part_count]);
}

static struct form_attribute *find_attribute(const struct form_part *p, struct str name)
{
        for (size_t i = 0; i < p->attribute_count; i++)
                if (str_ieqz(name, p->attributes[i].name))
                        return &p->attributes[i];
        return NULL;
}

void form_set(struct form_part *p, struct str name, struct str text, unsigned line)
{
        struct form_attribute *a = find_attribute(p, name);

        if (!a) {
                MEM_GROW(p->attributes, p->attribute_cap, p->attribute_count + 1);
                a = &p->attributes[p->attribute_count++];
                *a = (struct form_attribute){.name = str_dupz(name)};
        }
        free(a->text);
        a->text = str_dupz(text);
        a->line = line;
        a->late = false;
}

const struct form_attribute *form_get(const struct form_part *p, struct str name)
{
        return find_attribute(p, name);
}

void form_set_late(struct form_part *p, struct str name, bool late)
{
        struct form_attribute *a = find_attribute(p, name);

        if (a)
                a->late = late;
}

size_t form_add_variable(struct form_part *p, struct str name)
{
        p->variables = mem_array(p->variables, p->variable_count + 1, sizeof(*p->variables));
        p->variables[p->variable_count] = str_dupz(name);
        return p->variable_count++;
}

void form_warn(struct form *f, unsigned line, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {.max = 4096};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        for (size_t i = 0; i < f->warning_count; i++)
                if (f->warnings[i].line == line && str_eqz(buf_view(&text), f->warnings[i].text))
                        return; /* one part after another says the same */
        MEM_GROW(f->warnings, f->warning_cap, f->warning_count + 1);
        f->warnings[f->warning_count++] = (struct form_warning){.line = line, .text = buf_take(&text)};
}

void form_add_edge(struct form *f, const struct set *parents, const struct set *children, const char *when)
{
        struct buf *out = &f->edges;

        if (set_count(parents) == 0 || set_count(children) == 0)
                return;
        if (out->n)
                buf_char(out, ';');
        set_print(out, parents);
        buf_char(out, '>');
        set_print(out, children);
        buf_addz(out, when);
}
