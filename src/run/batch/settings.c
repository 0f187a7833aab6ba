/* Checks a queue's settings and a job's attributes, and makes the environment of the system's commands. */
#include "run/batch/settings.h"

#include <errno.h>
#include <stdlib.h>

#include "run/batch/state.h"

const char *batch_setting(const struct batch_settings *s, const char *name)
{
        for (size_t i = 0; i < s->n; i++)
                if (!strcmp(s->v[i].name, name))
                        return s->v[i].value;
        return NULL;
}

const char *batch_word(const struct run_spec *spec, const char *const *names, const struct batch_settings *s,
                       const char *setting)
{
        for (; *names; names++)
                for (size_t i = 0; i < spec->word_count; i++)
                        if (str_ieqz(str_of(spec->words[i].name), *names) && *spec->words[i].value)
                                return spec->words[i].value;
        return setting ? batch_setting(s, setting) : NULL;
}

static void add_variable(struct args *env, const char *name, const char *value)
{
        BUF_CLEANUP struct buf one = {0};

        buf_printf(&one, "%s=%s", name, value ? value : "");
        if (value)
                args_add(env, buf_view(&one));
}

void batch_environment(const struct batch_system *system, const struct batch_settings *settings,
                       struct args *env)
{
        static const char *const kept[] = {"HOME", "USER", "LOGNAME", "TZ"};
        const char *path = getenv("PATH");

        add_variable(env, "PATH", path ? path : "/usr/local/bin:/usr/bin:/bin");
        add_variable(env, "LC_ALL", "C");
        for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
                add_variable(env, kept[i], getenv(kept[i]));
        for (const struct batch_variable *v = system->variables; v && v->name; v++) {
                const char *value = v->setting ? batch_setting(settings, v->setting) : NULL;

                add_variable(env, v->name, value ? value : getenv(v->name));
        }
}

static bool is_in(const char *const *list, const char *name)
{
        while (*list && strcmp(*list, name) != 0)
                list++;
        return *list;
}

static int unknown(const struct batch_system *s, const char *const *ours, const char *name, struct err *err)
{
        BUF_CLEANUP struct buf all = {0};

        for (size_t i = 0; s->settings[i]; i++)
                buf_printf(&all, "%s, ", s->settings[i]);
        return err_set(err, -EINVAL, "%s has no setting '%s': it has %s%s, %s, %s, %s and %s", s->name, name,
                       buf_z(&all), ours[0], ours[1], ours[2], ours[3], ours[4]);
}

int batch_settings_check(const struct batch_system *s, const struct runner_config *c, struct err *err)
{
        static const char *const ours[] = {"poll", "watch", "ssh", "ssh_folder", "ssh_config", NULL};
        struct batch_settings settings = {c->settings, c->setting_count};

        for (size_t i = 0; i < c->setting_count; i++) {
                const char *name = c->settings[i].name;

                if (!is_in(ours, name) && !is_in(s->settings, name) &&
                    !(s->set_free && str_starts(str_of(name), str_of(s->set_free))))
                        return unknown(s, ours, name, err);
                uint64_t seconds;
                if (is_in(ours, name) && !str_starts(str_of(name), STR("ssh")) &&
                    (str_to_u64(str_of(c->settings[i].value), &seconds) != 0 || seconds < 1 ||
                     seconds > 3600))
                        return err_set(err, -EINVAL, "%s is a number of seconds, 1 to 3600", name);
        }
        return s->check ? s->check(&settings, err) : 0;
}

unsigned batch_setting_number(const struct batch *b, const char *name, unsigned otherwise)
{
        const char *value = batch_setting(&b->settings, name);
        uint64_t n = otherwise;

        if (value)
                str_to_u64(str_of(value), &n);
        return (unsigned)n;
}
