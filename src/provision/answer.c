#include "provision/answer.h"

#include <stdlib.h>

#include "base/mem.h"

#define MICRO 1e6

static struct str text_of(const json_t *o, const char *key)
{
        const json_t *v = json_object_get(o, key);

        return json_is_string(v)
                       ? str_head(str_make(json_string_value(v), json_string_length(v)), PROVISIONER_TEXT_MAX)
                       : STR_NONE;
}

static void fail_reading(struct reading *r, enum provisioner_result result, struct str why)
{
        if (r->a.result != PROVISIONER_DONE)
                return;
        r->a.result = result;
        r->a.why = why;
}

static void read_error(struct reading *r, const json_t *line)
{
        struct str reason = text_of(line, "reason");

        fail_reading(r,
                     str_eqz(reason, "capacity")    ? PROVISIONER_NO_CAPACITY
                     : str_eqz(reason, "throttled") ? PROVISIONER_THROTTLED
                                                    : PROVISIONER_FAILED,
                     text_of(line, "error"));
}

static void read_offer(struct reading *r, const json_t *line)
{
        const json_t *price = json_object_get(line, "price"), *most = json_object_get(line, "most");
        double p = json_is_number(price) ? json_number_value(price) : -1;

        MEM_GROW(r->offers, r->offer_cap, r->a.offer_count + 1);
        r->offers[r->a.offer_count++] = (struct provisioner_offer){
                .shape = text_of(line, "shape"),
                .price_micro = p >= 0 && p < 1e6 ? (int64_t)(p * MICRO + 0.5) : -1,
                .most = json_is_integer(most) && json_integer_value(most) >= 0 ? json_integer_value(most)
                                                                               : -1,
                .closed = text_of(line, "closed")};
}

static void read_line(struct reading *r, enum verb verb, const json_t *line)
{
        if (json_object_get(line, "error")) {
                read_error(r, line);
                return;
        }
        if (json_is_true(json_object_get(line, "end")))
                r->ended = true;
        if (verb == START && text_of(line, "instance").n)
                r->a.id = text_of(line, "instance");
        if (verb == LIST && text_of(line, "instance").n && r->a.instance_count < PROVISIONER_INSTANCES_MAX) {
                MEM_GROW(r->instances, r->instance_cap, r->a.instance_count + 1);
                r->instances[r->a.instance_count++] =
                        (struct provisioner_instance){text_of(line, "instance"), text_of(line, "tag")};
        }
        if (verb == DESCRIBE && text_of(line, "shape").n && r->a.offer_count < PROVISIONER_INSTANCES_MAX)
                read_offer(r, line);
}

void answer_read(struct reading *r, enum verb verb, int status, struct str out, struct str errors)
{
        struct str line, first = errors, rest = errors;

        while (out.n && r->a.result == PROVISIONER_DONE && str_cut(&out, '\n', &line)) {
                json_t *o = str_trim(line).n ? json_loadb(line.p, line.n, 0, NULL) : NULL;

                if (o) {
                        MEM_GROW(r->lines, r->line_cap, r->line_count + 1);
                        r->lines[r->line_count++] = o;
                }
                if (json_is_object(o))
                        read_line(r, verb, o);
                else if (str_trim(line).n)
                        fail_reading(r, PROVISIONER_FAILED, STR("it printed a line that is no JSON object"));
        }
        if (rest.n)
                str_cut(&rest, '\n', &first);
        if (status != 0)
                fail_reading(r, PROVISIONER_FAILED,
                             first.n ? str_head(first, PROVISIONER_TEXT_MAX)
                                     : STR("its exit code was not 0, and it printed no reason"));
        if (verb == LIST && !r->ended)
                fail_reading(r, PROVISIONER_FAILED, STR("its list did not end with {\"end\": true}"));
        if (verb == START && r->a.id.n == 0)
                fail_reading(r, PROVISIONER_FAILED, STR("it did not say which instance it has started"));
        r->a.instances = r->instances;
        r->a.offers = r->offers;
}

void reading_deinit(struct reading *r)
{
        for (size_t i = 0; i < r->line_count; i++)
                json_decref(r->lines[i]);
        free(r->lines);
        free(r->instances);
        free(r->offers);
}
