#include "jdl/form/form_json.h"

static void write_part(struct json *j, const struct form_part *p, const char *upload)
{
        json_open(j, '{');
        json_key(j, "attributes");
        json_open(j, '{');
        for (size_t i = 0; i < p->attribute_count; i++)
                json_kstrz(j, p->attributes[i].name, p->attributes[i].text);
        json_close(j, '}');
        json_key(j, "late");
        json_open(j, '[');
        for (size_t i = 0; i < p->attribute_count; i++)
                if (p->attributes[i].late)
                        json_strz(j, p->attributes[i].name);
        json_close(j, ']');
        json_key(j, "variables");
        json_open(j, '[');
        for (size_t i = 0; i < p->variable_count; i++)
                json_strz(j, p->variables[i]);
        json_close(j, ']');
        if (p->variable_count && upload)
                json_kstrz(j, "items_upload", upload);
        else if (p->variable_count)
                json_kstr(j, "items", buf_view(&p->items));
        json_key(j, "rows");
        json_uint(j, p->rows);
        json_key(j, "steps");
        json_uint(j, p->steps);
        json_close(j, '}');
}

void form_write_json(struct buf *out, const struct form *f, const struct form_body *body)
{
        struct json j = {.out = out};

        json_open(&j, '{');
        if (body->uuid)
                json_kstrz(&j, "uuid", body->uuid);
        json_key(&j, "parts");
        json_open(&j, '[');
        for (size_t i = 0; i < f->part_count; i++)
                write_part(&j, &f->parts[i], body->items_uploads ? body->items_uploads[i] : NULL);
        json_close(&j, ']');
        json_key(&j, "spooled");
        json_open(&j, '[');
        for (size_t i = 0; i < body->spooled_count; i++) {
                const struct form_file *file = &body->spooled[i];

                json_open(&j, '{');
                json_kstrz(&j, "name", file->name);
                json_kstrz(&j, "sha256", file->sha256);
                json_key(&j, "size");
                json_uint(&j, file->size);
                json_kbool(&j, "executable", file->executable);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_kbool(&j, "hold", f->hold);
        if (f->edges.n)
                json_kstr(&j, "edges", buf_view(&f->edges));
        json_close(&j, '}');
}
