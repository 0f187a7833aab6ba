#include "provision/answer.h"

#include <stdlib.h>

#include "base/mem.h"

#define MICRO      1e6
#define ANSWER_MAX (8u << 20) /* bytes of an answer */
#define LINE_MAX   65536u     /* bytes of a line: a few bytes of JSON take hundreds once they are read */
#define LINES_MAX  (PROVISIONER_INSTANCES_MAX + 1)

static struct str text_of(struct reading *r, const json_t *o, const char *key)
{
        const json_t *v = json_object_get(o, key);
        struct str s;

        if (!json_is_string(v))
                return STR_NONE;
        s = str_make(json_string_value(v), json_string_length(v));
        return arena_str(&r->texts, str_head(s, PROVISIONER_TEXT_MAX));
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
        struct str reason = text_of(r, line, "reason");

        fail_reading(r,
                     str_eqz(reason, "capacity")    ? PROVISIONER_NO_CAPACITY
                     : str_eqz(reason, "throttled") ? PROVISIONER_THROTTLED
                                                    : PROVISIONER_FAILED,
                     text_of(r, line, "error"));
}

static void read_offer(struct reading *r, const json_t *line)
{
        const json_t *price = json_object_get(line, "price"), *most = json_object_get(line, "most");
        double p = json_is_number(price) ? json_number_value(price) : -1;

        MEM_GROW(r->offers, r->offer_cap, r->a.offer_count + 1);
        r->offers[r->a.offer_count++] = (struct provisioner_offer){
                .shape = text_of(r, line, "shape"),
                .price_micro = p >= 0 && p < 1e6 ? (int64_t)(p * MICRO + 0.5) : -1,
                .most = json_is_integer(most) && json_integer_value(most) >= 0 ? json_integer_value(most)
                                                                               : -1,
                .closed = text_of(r, line, "closed")};
}

static void read_line(struct reading *r, enum verb verb, const json_t *line)
{
        struct str id = STR_NONE;

        if (json_object_get(line, "error")) {
                read_error(r, line);
                return;
        }
        if (json_is_true(json_object_get(line, "end")))
                r->ended = true;
        if (verb == START || verb == LIST)
                id = text_of(r, line, "instance");
        if (verb == START && id.n)
                r->a.id = id;
        if (verb == LIST && id.n) {
                MEM_GROW(r->instances, r->instance_cap, r->a.instance_count + 1);
                r->instances[r->a.instance_count++] =
                        (struct provisioner_instance){id, text_of(r, line, "tag")};
        }
        if (verb == DESCRIBE && json_is_string(json_object_get(line, "shape")))
                read_offer(r, line);
}

void answer_read(struct reading *r, enum verb verb, int status, struct str out, struct str errors)
{
        struct str line, first = errors, rest = errors;
        size_t lines = 0;

        if (out.n > ANSWER_MAX)
                fail_reading(r, PROVISIONER_FAILED, STR("its answer is larger than 8 MiB"));
        while (out.n && r->a.result == PROVISIONER_DONE && str_cut(&out, '\n', &line)) {
                json_t *o;

                if (!str_trim(line).n)
                        continue;
                if (++lines > LINES_MAX || line.n > LINE_MAX) {
                        fail_reading(r, PROVISIONER_FAILED,
                                     STR("its answer has more than 10001 lines, or one of more than 64 KiB"));
                        break;
                }
                o = json_loadb(line.p, line.n, 0, NULL);
                if (json_is_object(o))
                        read_line(r, verb, o);
                else
                        fail_reading(r, PROVISIONER_FAILED, STR("it printed a line that is no JSON object"));
                json_decref(o);
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
        arena_deinit(&r->texts);
        free(r->instances);
        free(r->offers);
}
