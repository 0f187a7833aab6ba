/* Follows server/config/presets_apply.c: kinds are applied in their order, a preset adds only what the
 * request and the earlier ones do not set, and a default that the user may not use is left out. */
#include "cli/client/preset_limits.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli/client/api.h"

static const struct {
        const char *name, *attribute, *words;
} kinds[FORM_PRESET_KINDS] = {
        [FORM_PRESET_INITIALIZER] = {"initializer", "JobInitializer", "initializer"},
        [FORM_PRESET_APPLICATION] = {"application", "JobApplication", "application"},
        [FORM_PRESET_DISPATCHER] = {"dispatcher", "JobDispatcher", "dispatcher"},
        [FORM_PRESET_QUEUE] = {"virtual_queue", "JobVirtualQueue", "virtual queue"},
        [FORM_PRESET_POLICY] = {"policy", "JobPolicy", "policy"},
};

struct looking {
        struct view presets;
        struct buf names[FORM_PRESET_KINDS];
        struct form_time_limit *ret;
};

static bool is_named(struct view v, struct str name)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(v, &text);
        return str_ieq(buf_view(&text), name);
}

/* Finds a preset by its name, or if this is empty the default one, if the user may use it. */
static bool find_preset(const struct looking *l, int kind, struct str name, struct view *ret)
{
        for (size_t at = 0; view_next(l->presets, &at, ret);)
                if (view_is(view_get(*ret, "kind"), kinds[kind].name) &&
                    (name.n ? is_named(view_get(*ret, "name"), name)
                            : view_true(view_get(*ret, "default")) && view_true(view_get(*ret, "may_use"))))
                        return true;
        return false;
}

/* Returns 0 with the value of AllowedExecuteDuration; -ENOENT: the preset has none; -EDOM with err: it is an
 * expression. */
static int preset_time(struct view preset, uint64_t *ret, struct err *err)
{
        struct view attributes = view_get(preset, "attributes"), value;
        struct str key;

        for (size_t at = 0; view_member(attributes, &at, &key, &value);) {
                struct buf text BUF_CLEANUP = {0};

                if (!str_ieqz(key, "AllowedExecuteDuration"))
                        continue;
                view_text(value, &text);
                return str_to_u64(str_trim(buf_view(&text)), ret) == 0
                               ? 0
                               : err_set(err, -EDOM,
                                         "AllowedExecuteDuration is an expression in the server's settings");
        }
        return -ENOENT;
}

static void set_limit(struct looking *l, uint64_t seconds, int kind, struct view name)
{
        struct buf text BUF_CLEANUP = {0};

        view_safe(name, &text);
        l->ret->seconds = seconds;
        snprintf(l->ret->of, sizeof(l->ret->of), "the %s %.100s", kinds[kind].words, buf_z(&text));
}

/* The queues of a policy do not set a job's time; each is a place that has no more. */
static void add_queues(struct looking *l, struct view policy)
{
        struct view queues = view_get(policy, "queues"), one, queue;

        for (size_t at = 0; view_next(queues, &at, &one);) {
                struct buf name BUF_CLEANUP = {0};
                uint64_t seconds;

                view_text(one, &name);
                if (find_preset(l, FORM_PRESET_QUEUE, buf_view(&name), &queue) &&
                    view_true(view_get(queue, "may_use")) && preset_time(queue, &seconds, NULL) == 0 &&
                    (l->ret->seconds == 0 || seconds < l->ret->seconds))
                        set_limit(l, seconds, FORM_PRESET_QUEUE, one);
        }
}

/* Names of presets that a preset has as attributes, for a request that names none itself. */
static void add_names(struct looking *l, struct view preset)
{
        struct view attributes = view_get(preset, "attributes"), value;
        struct str key;

        for (size_t at = 0; view_member(attributes, &at, &key, &value);)
                for (int k = 0; k < FORM_PRESET_KINDS; k++)
                        if (str_ieqz(key, kinds[k].attribute) && l->names[k].n == 0) {
                                struct buf text BUF_CLEANUP = {0};
                                struct str name;

                                view_text(value, &text);
                                name = str_trim(buf_view(&text));
                                if (name.n > 2 && name.p[0] == '"')
                                        buf_str(&l->names[k], str_make(name.p + 1, name.n - 2));
                        }
}

static int look(struct looking *l, struct err *err)
{
        int rc = -ENOENT;

        for (int k = 0; k < FORM_PRESET_KINDS && rc == -ENOENT; k++) {
                struct view preset;
                uint64_t seconds;

                if (!find_preset(l, k, buf_view(&l->names[k]), &preset))
                        continue; /* the server refuses a name that is unknown */
                add_names(l, preset);
                rc = preset_time(preset, &seconds, err);
                if (rc == 0)
                        set_limit(l, seconds, k, view_get(preset, "name"));
                else if (rc == -ENOENT && k == FORM_PRESET_POLICY)
                        add_queues(l, preset);
        }
        return rc == -ENOENT ? 0 : rc;
}

int preset_time_limit(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                      struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct looking l = {.ret = ret};
        int rc = api_call(arg, &(struct api_request){.path = "/v1/config"}, &answer, err);

        *ret = (struct form_time_limit){.seconds = 0};
        if (rc != 0)
                return -EIO;
        l.presets = view_get(answer.root, "presets");
        for (int k = 0; k < FORM_PRESET_KINDS; k++)
                buf_str(&l.names[k], named[k]);
        rc = look(&l, err);
        for (int k = 0; k < FORM_PRESET_KINDS; k++)
                buf_deinit(&l.names[k]);
        return rc;
}
