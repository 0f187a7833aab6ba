/* Reads `health`, `sensors` and `node` (facts about the machine) of the file. */
#include "agent/config/config.h"

#include <errno.h>

#include "place/sensor.h"

#define INTERVAL_MIN_MS 1000

static int read_time(const struct doc *map, const char *key, uint64_t least, uint64_t *ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        int r = d ? doc_duration(d, ret, err) : 0;

        if (d && r == 0 && *ret < least) {
                err_set(err, -EINVAL, "%s cannot be shorter than %llu s", key,
                        (unsigned long long)(least / 1000));
                return doc_where(err, -EINVAL, d);
        }
        return r;
}

static int read_sensor(const struct doc *map, const char *name, uint64_t interval_ms, struct config_sensor *s,
                       struct err *err)
{
        static const char *const keys[] = {"command", "interval", "timeout", NULL};
        const struct doc *command;
        int r = map->kind == DOC_MAP ? doc_only(map, keys, err) : -EINVAL;

        if (map->kind != DOC_MAP) {
                err_set(err, -EINVAL, "%s is a map: command, interval, timeout", name);
                return doc_where(err, r, map);
        }
        *s = (struct config_sensor){.name = mem_dupz(name), .interval_ms = interval_ms, .timeout_ms = 30000};
        command = doc_get(map, "command");
        if (r == 0 && !command) {
                err_set(err, -EINVAL, "%s has no command", name);
                return doc_where(err, -EINVAL, map);
        }
        if (r == 0)
                r = doc_words(command, args_add_word, &s->command, err);
        if (r == 0 && (s->command.n == 0 || s->command.v[0][0] != '/')) {
                err_set(err, -EINVAL, "the command of %s must begin with the whole path of a program", name);
                return doc_where(err, -EINVAL, command);
        }
        if (r == 0)
                r = read_time(map, "interval", INTERVAL_MIN_MS, &s->interval_ms, err);
        if (r == 0)
                r = read_time(map, "timeout", INTERVAL_MIN_MS, &s->timeout_ms, err);
        return r;
}

static int read_sensors(struct config *c, const struct doc *map, struct err *err)
{
        int r = 0;

        if (map->kind != DOC_MAP) {
                err_set(err, -EINVAL, "sensors is a map of names to command, interval and timeout");
                return doc_where(err, -EINVAL, map);
        }
        for (const struct doc *d = map->first; d && r == 0; d = d->next) {
                MEM_CLEANUP char *name = str_dupz(d->key);

                if (c->sensor_count == CONFIG_SENSORS_MAX || !sensor_name(d->key)) {
                        err_set(err, -EINVAL,
                                c->sensor_count == CONFIG_SENSORS_MAX
                                        ? "'%s': there are more than %u sensors"
                                        : "'%s': a sensor's name is a letter, then letters, digits and "
                                          "underscores, up to %u",
                                name,
                                c->sensor_count == CONFIG_SENSORS_MAX ? CONFIG_SENSORS_MAX : SENSOR_NAME_MAX);
                        return doc_where(err, -EINVAL, d);
                }
                r = read_sensor(d, name, 0, &c->sensors[c->sensor_count++], err);
        }
        return r;
}

static int check_node(const struct config *c, struct err *err)
{
        static const char *const keys[] = {"provider_id ", "image ", "size ", "price "};

        for (size_t i = 0; i < c->node.n; i++) {
                bool known = false;

                for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
                        known |= str_starts(str_of(c->node.v[i]), str_of(keys[k]));
                if (!known)
                        return config_where(
                                c, "node",
                                err_set(err, -EINVAL,
                                        "node says provider_id, image, size and price, and not '%s'",
                                        c->node.v[i]),
                                err);
        }
        return 0;
}

int config_sensors(struct config *c, struct err *err)
{
        const struct doc *health = c->doc ? doc_get(c->doc, "health") : NULL;
        const struct doc *sensors = c->doc ? doc_get(c->doc, "sensors") : NULL;
        int r = check_node(c, err);

        if (r == 0 && health)
                r = read_sensor(health, "health", 60000, &c->health, err);
        if (r == 0 && sensors)
                r = read_sensors(c, sensors, err);
        return r;
}

void config_sensors_deinit(struct config *c)
{
        for (size_t i = 0; i <= c->sensor_count; i++) {
                struct config_sensor *s = i < c->sensor_count ? &c->sensors[i] : &c->health;

                free(s->name);
                args_deinit(&s->command);
        }
}
