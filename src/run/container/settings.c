/* Reads a queue's settings for containers: the engine, the images, and what a job may ask for. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "base/job/image.h"
#include "base/mem.h"
#include "run/container/container.h"

static const char *const engine_names[] = {
        [CONTAINER_NONE] = "none",
        [CONTAINER_PODMAN] = "podman",
        [CONTAINER_DOCKER] = "docker",
        [CONTAINER_APPTAINER] = "apptainer",
};

const char *container_engine_name(enum container_engine e)
{
        return engine_names[e];
}

const char *container_program(const struct container_settings *s, enum container_engine e)
{
        return s->program ? s->program : engine_names[e];
}

static void take_setting(char **to, struct str value)
{
        free(*to);
        *to = str_dupz(value);
}

static int read_engine(struct container_settings *s, struct str value, struct err *err)
{
        s->automatic = str_eqz(value, "auto");
        if (s->automatic)
                return 0;
        if (str_eqz(value, "singularity")) {
                s->engine = CONTAINER_APPTAINER;
                if (!s->program)
                        take_setting(&s->program, value);
                return 0;
        }
        for (size_t i = 0; i < sizeof(engine_names) / sizeof(*engine_names); i++)
                if (str_eqz(value, engine_names[i])) {
                        s->engine = (enum container_engine)i;
                        return 0;
                }
        return err_set(err, -EINVAL,
                       "container: engine is auto, none, podman, docker, apptainer or singularity, not "
                       "'" STR_FMT "'",
                       STR_ARG(value));
}

static int read_pull(struct container_settings *s, struct str value, struct err *err)
{
        static const char *const names[] = {
                [CONTAINER_MISSING] = "missing", [CONTAINER_NEVER] = "never", [CONTAINER_ALWAYS] = "always"};

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (str_eqz(value, names[i])) {
                        s->pull = (enum container_pull)i;
                        return 0;
                }
        return err_set(err, -EINVAL, "container: pull is missing, never or always, not '" STR_FMT "'",
                       STR_ARG(value));
}

/* Reads a mount: PATH[:PATH][:ro]. */
static int read_mount(struct container_settings *s, struct str value, struct err *err)
{
        struct str rest = value, from, to;

        str_cut(&rest, ':', &from);
        bool ok = str_starts(from, STR("/"));
        if (rest.n && !str_eqz(rest, "ro")) {
                str_cut(&rest, ':', &to);
                ok = ok && str_starts(to, STR("/")) && (rest.n == 0 || str_eqz(rest, "ro"));
        }
        if (!ok)
                return err_set(err, -EINVAL,
                               "container: a mount is /PATH, /PATH:/PATH or either with :ro, not '" STR_FMT
                               "'",
                               STR_ARG(value));
        args_add(&s->mounts, value);
        return 0;
}

static int read_one(struct container_settings *s, const struct run_word *w, struct err *err)
{
        struct str name = str_of(w->name), value = str_of(w->value);

        if (str_eqz(name, "engine"))
                return read_engine(s, value, err);
        if (str_eqz(name, "pull"))
                return read_pull(s, value, err);
        if (str_eqz(name, "mounts"))
                return read_mount(s, value, err);
        if (str_eqz(name, "program"))
                take_setting(&s->program, value);
        else if (str_eqz(name, "network"))
                take_setting(&s->network, value);
        else if (str_eqz(name, "images"))
                args_add(&s->images, value);
        else if (str_eqz(name, "networks"))
                args_add(&s->networks, value);
        else if (str_eqz(name, "options"))
                args_add(&s->options, value);
        else if (str_eqz(name, "run_options"))
                args_add(&s->run_options, value);
        else
                return err_set(
                        err, -EINVAL,
                        "container: there is no setting '%s'; there are engine, program, pull, images, "
                        "network, networks, mounts, options and run_options",
                        w->name);
        return 0;
}

int container_settings_read(struct container_settings *s, const struct run_word *words, size_t count,
                            struct err *err)
{
        int r = 0;

        *s = (struct container_settings){.automatic = true};
        for (size_t i = 0; i < count && r == 0; i++)
                r = read_one(s, &words[i], err);
        if (r == 0 && s->automatic && s->program)
                r = err_set(err, -EINVAL, "container: program needs engine, which says what it understands");
        return r;
}

void container_settings_deinit(struct container_settings *s)
{
        free(s->program);
        free(s->network);
        free(s->folder);
        args_deinit(&s->images);
        args_deinit(&s->networks);
        args_deinit(&s->mounts);
        args_deinit(&s->options);
        args_deinit(&s->run_options);
        *s = (struct container_settings){0};
}

static bool is_file(struct str image)
{
        BUF_CLEANUP struct buf name = {0};

        return image_name(image, &name) == IMAGE_FILE;
}

bool container_image_allowed(const struct container_settings *s, enum container_engine e, struct str image)
{
        MEM_CLEANUP char *z = str_dupz(image);

        if (e == CONTAINER_APPTAINER && s->pull == CONTAINER_NEVER && !is_file(image) &&
            !container_keeps(s, e, z, NULL))
                return false;
        for (size_t i = 0; i < s->images.n; i++)
                if (fnmatch(s->images.v[i], z, 0) == 0)
                        return true;
        return s->images.n == 0;
}

static bool one_of(const struct args *list, const char *word)
{
        for (size_t i = 0; i < list->n; i++)
                if (!strcmp(list->v[i], word))
                        return true;
        return false;
}

const char *container_network_refused(const struct container_settings *s, const char *network)
{
        if (!network || !*network || (s->network && !strcmp(network, s->network)))
                return NULL;
        if (s->networks.n ? one_of(&s->networks, network)
                          : !strcmp(network, "none") || !strcmp(network, "host"))
                return NULL;
        return "this queue does not give its containers the network that the job asks for";
}

/* Appends a pattern as a regular expression in a ClassAd string that also matches shortened names: without a
 * slash, or without a registry; a file in the job's folder need not begin with "./". */
static void add_expression(struct buf *out, const char *pattern)
{
        static const struct {
                const char *whole, *any;
        } heads[] = {
                {"docker.io/library/", "((docker\\\\.io/)?library/|docker\\\\.io/(?!.*/)|(?!.*/))"},
                {"./", "(\\\\./|(?!/|.*://)(?=.*\\\\.sif$))"},
                {"docker.io/", "(docker\\\\.io/|(?!(localhost|[^/]*[.:][^/]*)/))"},
        };
        struct str s = str_of(pattern);
        bool latest = str_ends(s, STR(":latest"));

        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
                if (str_starts(s, str_of(heads[i].whole))) {
                        buf_addz(out, heads[i].any);
                        s = str_skip(s, strlen(heads[i].whole));
                        break;
                }
        if (latest)
                s = str_head(s, s.n - strlen(":latest"));
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '*' || s.p[i] == '?')
                        buf_addz(out, s.p[i] == '*' ? ".*" : ".");
                else if (strchr(".+()[]{}^$|", s.p[i]))
                        buf_printf(out, "\\\\%c", s.p[i]);
                else if (s.p[i] != '"' && s.p[i] != '\\' && (unsigned char)s.p[i] >= ' ')
                        buf_char(out, s.p[i]);
        }
        if (latest)
                buf_addz(out, "(:latest)?");
}

static void add_list(const struct container_settings *s, enum container_engine e, const struct args *list,
                     struct buf *out)
{
        buf_addz(out, "(docker://)?(");
        for (size_t i = 0, n = 0; i < list->n; i++) {
                if (list != &s->images && !container_image_allowed(s, e, str_of(list->v[i])))
                        continue;
                buf_addz(out, n++ ? "|" : "");
                add_expression(out, list->v[i]);
        }
        buf_char(out, ')');
}

/* Appends the condition on images. Files need no fetching: with apptainer they are available whatever `here`
 * is. */
static void require_image(const struct container_settings *s, enum container_engine e,
                          const struct args *here, struct buf *out)
{
        static const char head[] =
                "((TARGET.ContainerImage ?: TARGET.DockerImage) =?= undefined || regexp(\"^(",
                          tail[] = ")$\", TARGET.ContainerImage ?: TARGET.DockerImage)) && ";
        bool files = e == CONTAINER_APPTAINER, never = s->pull == CONTAINER_NEVER && (here || files);

        if (never) {
                buf_addz(out, head);
                buf_addz(out, files ? "\\\\./.*|/.*|(?!.*://).*\\\\.sif" : "");
                buf_addz(out, files && here ? "|" : "");
                if (here)
                        add_list(s, e, here, out);
                buf_addz(out, tail);
        }
        if (s->images.n && (files || !never)) {
                buf_addz(out, head);
                add_list(s, e, &s->images, out);
                buf_addz(out, tail);
        }
}

void container_is_image(const char *image, struct buf *out)
{
        buf_addz(out, "regexp(\"^(docker://)?");
        add_expression(out, image);
        buf_addz(out, "$\", TARGET.ContainerImage ?: TARGET.DockerImage)");
}

static void settings_add_word(struct buf *out, const char *word)
{
        buf_addz(out, out->p[out->n - 1] == '{' ? "\"" : ", \"");
        for (; *word; word++)
                if (*word != '"' && *word != '\\' && (unsigned char)*word >= ' ')
                        buf_char(out, *word);
        buf_char(out, '"');
}

void container_requirement(const struct container_settings *s, enum container_engine e,
                           const struct args *here, struct buf *out)
{
        require_image(s, e, here, out);
        buf_addz(out, "(TARGET.DockerNetworkType =?= undefined || member(TARGET.DockerNetworkType, {");
        for (size_t i = 0; i < s->networks.n; i++)
                settings_add_word(out, s->networks.v[i]);
        if (s->networks.n == 0) {
                settings_add_word(out, "none");
                settings_add_word(out, "host");
        }
        if (s->network)
                settings_add_word(out, s->network);
        buf_addz(out, "}))");
}
