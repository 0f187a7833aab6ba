/* Kubernetes (its API by HTTP, https://kubernetes.io/docs/reference/): a task is a Job with one pod.
 *
 * A Job has its submission's name, and is made by server-side apply, so a request that is made twice makes
 * one Job. It makes no second pod after a failed one (backoffLimit), and where the cluster replaces a pod
 * that it deletes itself, the second script finds that the first one began. The pod sees two folders of the
 * volume on which the agent's folder lies: that of the queue, which it cannot write, and the task's sandbox.
 *
 * Every answer is read in kubernetes_answers.c. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/u64.h"
#include "run/batch/runner.h"
#include "run/systems/kubernetes.h"

#define HEAD       "#KUBERNETES "
#define LABEL      "app.kubernetes.io/managed-by"
#define SELECTOR   "labelSelector=app.kubernetes.io%%2Fmanaged-by%%3Ddrover" /* of a printf format */
#define KUEUE      "kueue.x-k8s.io/queue-name"
#define PROJECT    "app.kubernetes.io/part-of"
#define KEEP_S     86400 /* a Job that has ended is removed by the cluster, if nobody does it before */
#define WATCH_S    45    /* length of a watch; shorter than the time for an answer (batch/calls.c) */
#define DEADLINE_S 120   /* by which the cluster's limit of time is longer than that of the script */

static const char *const settings[] = {
        "rest",         "ca_file",         "token_file",     "namespace",     "image",       "volume",
        "mount",        "service_account", "pull_secrets",   "node_labels",   "tolerations", "local_queue",
        "gpu_resource", "quota",           "priority_class", "runtime_class", NULL};

/* ---- settings */

static bool is_name(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!islower((unsigned char)s.p[i]) && !isdigit((unsigned char)s.p[i]) &&
                    !(strchr("-.", s.p[i]) && i > 0 && i + 1 < s.n))
                        return false;
        return s.n > 0 && s.n <= 253;
}

static int check_name(const struct batch_settings *s, const char *name, struct err *err)
{
        const char *value = batch_setting(s, name);

        if (!value || is_name(str_of(value)))
                return 0;
        return err_set(err, -EINVAL, "%s: '%.100s' is no name of an object: small letters, digits, - and .",
                       name, value);
}

static int check_volume(const struct batch_settings *s, struct err *err)
{
        const char *volume = batch_setting(s, "volume"), *mount = batch_setting(s, "mount");
        struct str v = str_of(volume ? volume : "");
        bool claim = str_starts(v, STR("claim:")) && is_name(str_skip(v, strlen("claim:")));

        if (!claim && !str_starts(v, STR("host:/")))
                return err_set(
                        err, -EINVAL,
                        "volume is claim:NAME, a PersistentVolumeClaim, or host:/PATH, a folder that all "
                        "nodes share: where the agent's folder lies");
        if (!mount || *mount != '/')
                return err_set(err, -EINVAL, "mount is the path that the volume has at the agent");
        return 0;
}

/* A toleration is KEY:EFFECT or KEY=VALUE:EFFECT. */
static bool read_toleration(struct str one, struct str *ret_key, struct str *ret_value,
                            struct str *ret_effect)
{
        ptrdiff_t colon = str_rfind(one, ':');

        if (colon <= 0)
                return false;
        *ret_effect = str_skip(one, (size_t)colon + 1);
        one = str_head(one, (size_t)colon);
        *ret_value = STR_NONE;
        ptrdiff_t equals = str_find(one, '=');
        *ret_key = str_head(one, equals < 0 ? one.n : (size_t)equals);
        if (equals >= 0)
                *ret_value = str_skip(one, (size_t)equals + 1);
        return ret_key->n && (str_eqz(*ret_effect, "NoSchedule") || str_eqz(*ret_effect, "NoExecute") ||
                              str_eqz(*ret_effect, "PreferNoSchedule"));
}

static int kubernetes_check(const struct batch_settings *s, struct err *err)
{
        static const char *const names[] = {"namespace",   "service_account", "priority_class",
                                            "local_queue", "runtime_class",   "quota"};
        static const char *const needed[] = {"rest", "namespace", "image"};
        struct str list, one, key, value, effect;

        for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
                if (!batch_setting(s, needed[i]))
                        return err_set(err, -EINVAL, "kubernetes needs the setting %s", needed[i]);
        int r = request_check(batch_setting(s, "rest"), true, err);
        if (r < 0)
                return err_prefix(err, r, "rest");
        if (str_starts(str_of(batch_setting(s, "rest")), STR("https:")) && !batch_setting(s, "ca_file"))
                return err_set(err, -EINVAL, "rest over https needs ca_file, the cluster's authorities");
        for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(*names); i++)
                r = check_name(s, names[i], err);
        list = str_of(batch_setting(s, "tolerations"));
        while (r == 0 && str_word(&list, &one))
                if (!read_toleration(one, &key, &value, &effect))
                        r = err_set(err, -EINVAL,
                                    "tolerations: '" STR_FMT
                                    "' is not KEY:EFFECT or KEY=VALUE:EFFECT, with the "
                                    "effect NoSchedule, NoExecute or PreferNoSchedule",
                                    STR_ARG(str_head(one, u64_min(one.n, 100))));
        list = str_of(batch_setting(s, "node_labels"));
        while (r == 0 && str_word(&list, &one))
                if (str_find(one, '=') <= 0)
                        r = err_set(err, -EINVAL, "node_labels: '" STR_FMT "' is not LABEL=VALUE",
                                    STR_ARG(str_head(one, u64_min(one.n, 100))));
        return r < 0 ? r : check_volume(s, err);
}

/* ---- a task as lines of its script's head, "#KUBERNETES key value" */

/* The job's words that reach the cluster: a line of the head, a setting that is meant without the word, and
 * whether the value is the name of an object. */
static const struct {
        const char *key, *setting;
        const char *const names[3];
        bool object;
} words[] = {{"image", "image", {"KubernetesImage", "BatchImage"}, false},
             {"queue", "local_queue", {"KubernetesQueue", "BatchQueue"}, true},
             {"priority", "priority_class", {"KubernetesPriorityClass"}, true},
             {"project", NULL, {"KubernetesProject", "BatchProject"}, false}};

static int kubernetes_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                                struct err *err)
{
        const char *sandbox = spec->sandbox ? spec->sandbox : ""; /* a question may have none */

        if (strchr(sandbox, '\n'))
                return err_set(err, -EINVAL, "the sandbox has a line's end in its name");
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
                const char *value = batch_word(spec, words[i].names, s, words[i].setting);

                if (!value)
                        continue;
                if (words[i].object ? !is_name(str_of(value)) : !batch_plain(value))
                        return err_set(err, -EINVAL, "'%.100s' cannot be a word (%s) for Kubernetes", value,
                                       words[i].names[0]);
                buf_printf(out, HEAD "%s %s\n", words[i].key, value);
        }
        buf_printf(out, HEAD "cpu %llu\n", (unsigned long long)(spec->cpus_milli ? spec->cpus_milli : 1000));
        if (spec->memory_bytes)
                buf_printf(out, HEAD "memory %llu\n", (unsigned long long)spec->memory_bytes);
        if (spec->gpus)
                buf_printf(out, HEAD "gpus %llu\n", (unsigned long long)spec->gpus);
        if (spec->walltime_ms)
                buf_printf(out, HEAD "deadline %llu\n",
                           (unsigned long long)((spec->walltime_ms + 999) / 1000 + DEADLINE_S));
        buf_printf(out, HEAD "sandbox %s\n", sandbox);
        return 0;
}

/* Returns what the head says of a key; empty: nothing. */
static struct str said(const char *head, const char *key)
{
        struct str rest = str_of(head), line, word;

        while (rest.n && str_cut(&rest, '\n', &line)) {
                if (!str_starts(line, STR(HEAD)))
                        continue;
                line = str_skip(line, strlen(HEAD));
                if (str_cut(&line, ' ', &word) && str_eqz(word, key))
                        return line;
        }
        return STR_NONE;
}

static void kubernetes_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        (void)log, (void)count;
        buf_printf(out, "# Job %s\n", name);
}

/* ---- the Job */

static void object_open(struct json *j, const char *key)
{
        json_key(j, key);
        json_open(j, '{');
}

static void list_open(struct json *j, const char *key)
{
        json_key(j, key);
        json_open(j, '[');
}

static void add_labels(struct json *j, struct str queue, struct str project)
{
        object_open(j, "labels");
        json_kstrz(j, LABEL, "drover");
        if (queue.n)
                json_kstr(j, KUEUE, queue);
        if (project.n)
                json_kstr(j, PROJECT, project);
        json_close(j, '}');
}

static void add_amounts(struct json *j, const char *key, const struct batch_call *c, const char *head)
{
        const char *resource = batch_setting(c->settings, "gpu_resource");
        BUF_CLEANUP struct buf cpu = {0};

        object_open(j, key);
        buf_printf(&cpu, STR_FMT "m", STR_ARG(said(head, "cpu")));
        json_kstr(j, "cpu", buf_view(&cpu));
        if (said(head, "memory").n)
                json_kstr(j, "memory", said(head, "memory"));
        if (said(head, "gpus").n)
                json_kstr(j, resource ? resource : KUBERNETES_GPU, said(head, "gpus"));
        json_close(j, '}');
}

/* Adds a folder of the volume, at the path that it has at the agent. */
static void add_mount(struct json *j, const struct batch_call *c, struct str path, bool read_only)
{
        struct str mount = str_of(batch_setting(c->settings, "mount")), sub = path;

        while (mount.n && mount.p[mount.n - 1] == '/')
                mount.n--;
        if (str_starts(path, mount) && (path.n == mount.n || path.p[mount.n] == '/'))
                sub = str_skip(path, mount.n);
        while (sub.n && sub.p[0] == '/')
                sub = str_skip(sub, 1);
        json_open(j, '{');
        json_kstrz(j, "name", "drover");
        json_kstr(j, "mountPath", path);
        if (sub.n)
                json_kstr(j, "subPath", sub);
        if (read_only)
                json_kbool(j, "readOnly", true);
        json_close(j, '}');
}

static void add_volume(struct json *j, const struct batch_call *c)
{
        struct str volume = str_of(batch_setting(c->settings, "volume")), kind;

        str_cut(&volume, ':', &kind);
        list_open(j, "volumes");
        json_open(j, '{');
        json_kstrz(j, "name", "drover");
        bool host = str_eqz(kind, "host");
        object_open(j, host ? "hostPath" : "persistentVolumeClaim");
        json_kstr(j, host ? "path" : "claimName", volume);
        json_close(j, '}');
        json_close(j, '}');
        json_close(j, ']');
}

static void add_container(struct json *j, const struct batch_call *c, const struct batch_sending *s)
{
        struct str script = str_of(s->script);

        list_open(j, "containers");
        json_open(j, '{');
        json_kstrz(j, "name", "job");
        json_kstr(j, "image", said(s->head, "image"));
        list_open(j, "command");
        json_strz(j, "/bin/sh");
        json_str(j, script);
        json_close(j, ']');
        object_open(j, "resources");
        add_amounts(j, "requests", c, s->head);
        add_amounts(j, "limits", c, s->head);
        json_close(j, '}');
        object_open(j, "securityContext");
        json_kbool(j, "allowPrivilegeEscalation", false);
        object_open(j, "capabilities");
        list_open(j, "drop");
        json_strz(j, "ALL");
        json_close(j, ']');
        json_close(j, '}');
        json_close(j, '}');
        list_open(j, "volumeMounts");
        add_mount(j, c, str_head(script, (size_t)str_rfind(script, '/')), true);
        add_mount(j, c, said(s->head, "sandbox"), false);
        json_close(j, ']');
        json_close(j, '}');
        json_close(j, ']');
}

/* Adds the admin's settings that say on which nodes pods run, and as whom. */
static void add_placement(struct json *j, const struct batch_call *c)
{
        struct str list = str_of(batch_setting(c->settings, "node_labels")), one, key, value, effect;

        object_open(j, "nodeSelector");
        while (str_word(&list, &one) && str_cut(&one, '=', &key)) {
                json_keys(j, key);
                json_str(j, one);
        }
        json_close(j, '}');
        list = str_of(batch_setting(c->settings, "tolerations"));
        list_open(j, "tolerations");
        while (str_word(&list, &one) && read_toleration(one, &key, &value, &effect)) {
                json_open(j, '{');
                json_kstr(j, "key", key);
                json_kstrz(j, "operator", value.n ? "Equal" : "Exists");
                if (value.n)
                        json_kstr(j, "value", value);
                json_kstr(j, "effect", effect);
                json_close(j, '}');
        }
        json_close(j, ']');
        list = str_of(batch_setting(c->settings, "pull_secrets"));
        list_open(j, "imagePullSecrets");
        while (str_word(&list, &one)) {
                json_open(j, '{');
                json_kstr(j, "name", one);
                json_close(j, '}');
        }
        json_close(j, ']');
}

/* A job gets a token for the API only with an account that the admin has named for that. */
static void add_pod(struct json *j, const struct batch_call *c, const struct batch_sending *s)
{
        const char *account = batch_setting(c->settings, "service_account"),
                   *runtime = batch_setting(c->settings, "runtime_class");
        struct str priority = said(s->head, "priority");

        object_open(j, "spec");
        json_kstrz(j, "restartPolicy", "Never");
        json_kbool(j, "enableServiceLinks", false);
        json_kbool(j, "automountServiceAccountToken", account != NULL);
        if (account)
                json_kstrz(j, "serviceAccountName", account);
        if (runtime)
                json_kstrz(j, "runtimeClassName", runtime);
        if (priority.n)
                json_kstr(j, "priorityClassName", priority);
        object_open(j, "securityContext");
        json_kint(j, "runAsUser", geteuid());
        json_kint(j, "runAsGroup", getegid());
        object_open(j, "seccompProfile");
        json_kstrz(j, "type", "RuntimeDefault");
        json_close(j, '}');
        json_close(j, '}');
        add_placement(j, c);
        add_volume(j, c);
        add_container(j, c, s);
        json_close(j, '}');
}

static const char *namespace_of(const struct batch_call *c)
{
        return batch_setting(c->settings, "namespace");
}

static void kubernetes_submit(struct batch_call *c, const struct batch_sending *s)
{
        struct json j = {.out = &c->input};
        struct str deadline = said(s->head, "deadline");
        uint64_t seconds = 0;

        c->method = "PATCH";
        c->type = "application/apply-patch+yaml"; /* JSON is YAML */
        batch_path_add(c, "/apis/batch/v1/namespaces/%s/jobs/%s?fieldManager=drover&force=true",
                       namespace_of(c), s->name);
        json_open(&j, '{');
        json_kstrz(&j, "apiVersion", "batch/v1");
        json_kstrz(&j, "kind", "Job");
        object_open(&j, "metadata");
        json_kstrz(&j, "name", s->name);
        add_labels(&j, said(s->head, "queue"), said(s->head, "project"));
        json_close(&j, '}');
        object_open(&j, "spec");
        json_kint(&j, "backoffLimit", 0);
        json_kint(&j, "ttlSecondsAfterFinished", KEEP_S);
        if (str_to_u64(deadline, &seconds) == 0 && seconds)
                json_kint(&j, "activeDeadlineSeconds", (int64_t)u64_min(seconds, INT32_MAX));
        if (said(s->head, "queue").n)
                json_kbool(&j, "suspend", true); /* until Kueue admits it */
        object_open(&j, "template");
        object_open(&j, "metadata");
        add_labels(&j, STR_NONE, said(s->head, "project"));
        json_close(&j, '}');
        add_pod(&j, c, s);
        json_close(&j, '}');
        json_close(&j, '}');
        json_close(&j, '}');
}

static bool kubernetes_submitted(struct str out, struct buf *ret_native)
{
        struct str last = batch_last_line(out), word;

        if (!str_cut(&last, '|', &word) || !str_eqz(word, "applied"))
                return false;
        buf_str(ret_native, last);
        return true;
}

/* Forbidden is also what an admin has to mend who gave the agent too few rights: then nothing is refused. */
static bool kubernetes_refused(int exit_code, struct str errors)
{
        static const char *const final[] = {"Invalid:", "BadRequest:", "NotFound:", "denied the request",
                                            NULL},
                                 *const rights[] = {" cannot patch resource", " cannot create resource",
                                                    NULL};

        return exit_code == 1 &&
               (batch_contains(errors, final) ||
                (str_search(errors, STR("Forbidden:")) >= 0 && !batch_contains(errors, rights)));
}

static bool kubernetes_full(struct str errors)
{
        return str_search(errors, STR("exceeded quota")) >= 0;
}

/* ---- questions */

static void kubernetes_status(struct batch_call *c, const char *user)
{
        const char *space = namespace_of(c);

        (void)user;
        c->method = "GET";
        batch_path_add(c, "/apis/batch/v1/namespaces/%s/jobs?" SELECTOR, space);
        batch_path_add(c, "/api/v1/namespaces/%s/pods?" SELECTOR, space);
        batch_path_add(c,
                       "/api/v1/namespaces/%s/"
                       "events?fieldSelector=reason%%3DFailedCreate%%2CinvolvedObject.kind%%3DJob",
                       space);
}

/* A Job changes when its pod is made, is ready, ends or goes. Why a pod waits is not in the Job: it is seen
 * with the next list. */
static void kubernetes_watch(struct batch_call *c, struct str out)
{
        struct str version = kubernetes_version(out);

        c->method = "GET";
        if (version.n)
                batch_path_add(c,
                               "/apis/batch/v1/namespaces/%s/jobs?watch=true&timeoutSeconds=%d&"
                               "resourceVersion=" STR_FMT "&" SELECTOR,
                               namespace_of(c), WATCH_S, STR_ARG(version));
}

/* Asks for Jobs one by one. Nobody deletes a Job that has not ended but us, and people. */
static void kubernetes_past(struct batch_call *c, const char *user, const char *natives)
{
        struct str rest = str_of(natives), one;

        (void)user;
        c->method = "GET";
        while (rest.n && str_cut(&rest, ',', &one))
                if (is_name(one))
                        batch_path_add(c, "/apis/batch/v1/namespaces/%s/jobs/" STR_FMT, namespace_of(c),
                                       STR_ARG(one));
}

/* Ends Jobs: their pods get SIGTERM, and the script ends its program. */
static void kubernetes_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        struct str one;

        (void)verb; /* BATCH_END is the only verb */
        c->method = "DELETE";
        buf_addz(&c->input, "{\"propagationPolicy\":\"Background\"}");
        while (str_word(&natives, &one))
                if (is_name(one))
                        batch_path_add(c, "/apis/batch/v1/namespaces/%s/jobs/" STR_FMT, namespace_of(c),
                                       STR_ARG(one));
}

static void kubernetes_capacity(struct batch_call *c)
{
        const char *quota = batch_setting(c->settings, "quota");

        c->method = "GET";
        if (quota) {
                batch_path_add(c, "/api/v1/namespaces/%s/resourcequotas/%s", namespace_of(c), quota);
                return;
        }
        batch_path_add(c, "/api/v1/nodes?resourceVersion=0"); /* from the server's memory */
        batch_path_add(c, "/api/v1/"
                          "pods?resourceVersion=0&fieldSelector=status.phase%%21%%3DSucceeded%%2Cstatus."
                          "phase%%21%%3DFailed");
}

const struct batch_system batch_kubernetes = {
        .name = "kubernetes",
        .settings = settings,
        .service = &kubernetes_service,
        .array_max = 1,
        .verbs = 1u << BATCH_END,
        .check = kubernetes_check,
        .resources = kubernetes_resources,
        .naming = kubernetes_naming,
        .submit = kubernetes_submit,
        .submitted = kubernetes_submitted,
        .refused = kubernetes_refused,
        .full = kubernetes_full,
        .status = kubernetes_status,
        .status_read = kubernetes_status_read,
        .watch = kubernetes_watch,
        .past = kubernetes_past,
        .past_read = kubernetes_past_read,
        .past_max = 50,
        .act = kubernetes_act,
        .capacity = kubernetes_capacity,
        .capacity_read = kubernetes_capacity_read,
};

static int kubernetes_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        return batch_open(&runner_kubernetes, &batch_kubernetes, c, ret, err);
}

const struct runner_kind runner_kubernetes = {.name = "kubernetes", .open = kubernetes_open, BATCH_VERBS};
