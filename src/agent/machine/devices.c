#include "agent/machine/devices.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

struct device {
        char *name, *id;
        bool taken;
};
struct devices {
        struct device *v;
        size_t n, cap;
};

struct devices *devices_new(void)
{
        return mem_new(struct devices);
}

void devices_free(struct devices *d)
{
        for (size_t i = 0; d && i < d->n; i++) {
                free(d->v[i].name);
                free(d->v[i].id);
        }
        if (d)
                free(d->v);
        free(d);
}

void device_set_deinit(struct device_set *s)
{
        free(s->v);
        *s = (struct device_set){0};
}

static bool valid_name(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '_')
                        return false;
        return s.n > 0 && s.n <= 64 && !isdigit((unsigned char)s.p[0]);
}

static bool valid_id(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && !strchr("_-.:/", s.p[i]))
                        return false;
        return s.n > 0 && s.n <= 128;
}

static struct device *find_device(const struct devices *d, struct str name, struct str id)
{
        for (size_t i = 0; i < d->n; i++)
                if (str_ieqz(name, d->v[i].name) && str_eqz(id, d->v[i].id))
                        return &d->v[i];
        return NULL;
}

static int add_one(struct devices *d, struct device_set *s, struct str name, struct str id, struct err *err)
{
        if (!valid_id(id))
                return err_set(err, -EINVAL, "'" STR_FMT "' is no name of a device", STR_ARG(id));
        struct device *known = find_device(d, name, id);
        if (!known) {
                if (d->n == DEVICES_MAX)
                        return err_set(err, -EINVAL, "more than %d devices", DEVICES_MAX);
                MEM_GROW(d->v, d->cap, d->n + 1);
                d->v[d->n] = (struct device){str_dupz(name), str_dupz(id), false};
                known = &d->v[d->n++];
        }
        size_t index = (size_t)(known - d->v);
        for (size_t i = 0; i < s->n; i++)
                if (s->v[i] == index)
                        return err_set(err, -EINVAL, "the device " STR_FMT " is named twice", STR_ARG(id));
        MEM_GROW(s->v, s->cap, s->n + 1);
        s->v[s->n++] = index;
        return 0;
}

static int add_count(struct devices *d, struct device_set *s, struct str name, struct str number,
                     struct err *err)
{
        uint64_t count;

        if (str_to_u64(number, &count) != 0 || count > DEVICES_MAX)
                return err_set(err, -EINVAL,
                               STR_FMT ": a number up to %d, or a list of ids, not '" STR_FMT "'",
                               STR_ARG(name), DEVICES_MAX, STR_ARG(number));
        for (uint64_t i = 0; i < count; i++) {
                BUF_CLEANUP struct buf id = {0};

                buf_printf(&id, "%llu", (unsigned long long)i);
                int r = add_one(d, s, name, buf_view(&id), err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int devices_add(struct devices *d, struct device_set *s, struct str line, struct err *err)
{
        struct str rest = line, name = {0}, word;
        int r = 0;

        str_cut(&rest, ' ', &name);
        bool ids = name.n && name.p[name.n - 1] == ':';
        if (ids)
                name.n--;
        if (!valid_name(name))
                return err_set(err, -EINVAL, "'" STR_FMT "' cannot be the name of a resource", STR_ARG(name));
        if (!ids)
                return add_count(d, s, name, str_trim(rest), err);
        while (r == 0 && rest.n && str_cut(&rest, ' ', &word))
                r = word.n ? add_one(d, s, name, word, err) : 0;
        return r;
}

static size_t count_devices(const struct devices *d, const struct device_set *s, const char *name, bool all)
{
        size_t n = 0;

        for (size_t i = 0; i < s->n; i++) {
                const struct device *one = &d->v[s->v[i]];

                n += str_ieqz(str_of(name), one->name) && (all || !one->taken);
        }
        return n;
}

size_t devices_total(const struct devices *d, const struct device_set *s, const char *name)
{
        return count_devices(d, s, name, true);
}

size_t devices_available(const struct devices *d, const struct device_set *s, const char *name)
{
        return count_devices(d, s, name, false);
}

/* Calls fn with the name of each resource of the set. */
static void devices_names(const struct devices *d, const struct device_set *s,
                          void (*fn)(void *arg, const char *name), void *arg)
{
        for (size_t i = 0; i < s->n; i++) {
                const char *name = d->v[s->v[i]].name;
                size_t first = 0;

                while (!str_ieqz(str_of(name), d->v[s->v[first]].name))
                        first++;
                if (first == i)
                        fn(arg, name);
        }
}

struct advertising {
        const struct devices *d;
        const struct device_set *s;
        size_t (*wanted)(const void *arg, const char *name);
        const void *arg;
        struct buf *out;
};

static void advertise(void *arg, const char *name)
{
        struct advertising *a = arg;
        size_t left = devices_available(a->d, a->s, name), wanted = a->wanted(a->arg, name);

        buf_printf(a->out, "%s = %zu; Total%s = %zu; ", name, left > wanted ? left - wanted : 0, name,
                   devices_total(a->d, a->s, name));
}

void devices_advertise(const struct devices *d, const struct device_set *s,
                       size_t (*wanted)(const void *arg, const char *name), const void *arg, struct buf *out)
{
        struct advertising a = {d, s, wanted, arg, out};

        devices_names(d, s, advertise, &a);
}

bool devices_take(struct devices *d, const struct device_set *s, const char *name, size_t wanted,
                  struct buf *out)
{
        size_t taken = 0;

        if (devices_available(d, s, name) < wanted)
                return false;
        for (size_t i = 0; i < s->n && taken < wanted; i++) {
                struct device *one = &d->v[s->v[i]];

                if (one->taken || !str_ieqz(str_of(name), one->name))
                        continue;
                one->taken = true;
                if (taken++ == 0)
                        buf_printf(out, "%s=", one->name);
                else
                        buf_char(out, ',');
                buf_addz(out, one->id);
        }
        if (taken)
                buf_char(out, ';');
        return true;
}

void devices_each(struct str text, void (*fn)(void *arg, struct str name, struct str ids), void *arg)
{
        struct str one, name;

        while (text.n && str_cut(&text, ';', &one))
                if (one.n && str_cut(&one, '=', &name))
                        fn(arg, name, one);
}

struct marking {
        struct devices *d;
        bool taken;
};

static void mark(void *arg, struct str name, struct str ids)
{
        struct marking *m = arg;
        struct str id;

        while (ids.n && str_cut(&ids, ',', &id)) {
                struct device *one = find_device(m->d, name, id);

                if (one)
                        one->taken = m->taken;
        }
}

void devices_mark(struct devices *d, struct str text, bool taken)
{
        struct marking m = {d, taken};

        devices_each(text, mark, &m);
}
