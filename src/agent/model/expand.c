#include "agent/model/expand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/sandbox.h"
#include "base/job/macro.h"
#include "base/job/match_macro.h"
#include "base/system/log.h"

#define TEXT_MAX (4u << 20)

static enum macro_found macro_lookup(void *arg, struct str name, struct buf *out)
{
        const struct attempt *at = arg;
        const struct job_template *m = at->t->m;

        if (str_ieqz(name, "Process") || str_ieqz(name, "ProcId"))
                buf_printf(out, "%u", at->member);
        else if (str_ieqz(name, "Cluster") || str_ieqz(name, "ClusterId"))
                buf_printf(out, "%llu", (unsigned long long)at->request);
        else if (str_ieqz(name, "Step"))
                buf_printf(out, "%u", at->step_value);
        else if (at->gang_size && str_ieqz(name, "Node"))
                buf_printf(out, "%llu", (unsigned long long)(at->member - at->gang));
        else if (str_ieqz(name, "ItemIndex") || str_ieqz(name, "Row"))
                buf_printf(out, "%u", at->row);
        else {
                for (size_t i = 0; i < m->variable_count && i < at->value_count; i++)
                        if (str_ieqz(name, m->variables[i]))
                                return macro_item(str_of(at->values[i]), out);
                return MACRO_UNKNOWN;
        }
        return MACRO_FINAL;
}

static bool filled_value(void *arg, struct str inside, struct buf *out)
{
        const struct attempt *at = arg;

        for (size_t i = 0; i < at->filled_count; i++)
                if (str_eqz(inside, at->filled[2 * i])) {
                        buf_addz(out, at->filled[2 * i + 1]);
                        return true;
                }
        return false;
}

/* HTCondor's other name of $(Node). */
static const char node_word[] = "#pArAlLeLnOdE#";

static void fill_node(const struct attempt *at, struct str s, struct buf *out)
{
        ptrdiff_t i;

        while ((i = str_search(s, str_of(node_word))) >= 0) {
                buf_str(out, str_head(s, (size_t)i));
                buf_printf(out, "%llu", (unsigned long long)(at->member - at->gang));
                s = str_skip(s, (size_t)i + sizeof(node_word) - 1);
        }
        buf_str(out, s);
}

int expand_text(const struct attempt *at, const char *text, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf noded = {.max = TEXT_MAX};
        struct str s = str_of(text);

        if (!s.n)
                return 0;
        if (at->gang_size && str_search(s, str_of(node_word)) >= 0) {
                fill_node(at, s, &noded);
                s = buf_view(&noded);
        }
        if (!memchr(s.p, '$', s.n)) {
                buf_str(out, s);
                return 0;
        }
        uint64_t random = macro_job_seed(at->request, at->member);
        struct macro_world w = {
                .arg = (void *)at, .lookup = macro_lookup, .random = &random, .cwd = at->t->m->iwd};
        BUF_CLEANUP struct buf expanded = {.max = TEXT_MAX};
        int r = macro_expand(&w, s, &expanded, NULL, err);
        if (r == 0)
                match_macro_fill(buf_view(&expanded), filled_value, (void *)at, out);
        return r;
}

const char *expand_log(const struct attempt *at, char *room)
{
        const struct job_origin *o = at->t->m->origin;
        BUF_CLEANUP struct buf trace = {.max = TEXT_MAX};
        char text[128];

        if (!o || expand_text(at, o->trace, &trace, NULL) != 0 || trace.n == 0)
                buf_reset(&trace);
        snprintf(room, LOG_NAME, "job=%llu.%u fence=%u trace=\"%s\"", (unsigned long long)at->request,
                 at->member, at->fence, log_text(text, sizeof(text), buf_view(&trace)));
        return room;
}

void expand_iwd(struct attempt *at)
{
        BUF_CLEANUP struct buf path = {.max = 65536};

        free(at->iwd);
        at->iwd = expand_text(at, at->t->m->iwd, &path, NULL) == 0 ? mem_dupz(buf_z(&path))
                                                                   : mem_dupz(at->t->m->iwd);
}

static struct str expand_base_name(struct str path)
{
        return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

static bool is_spooled(const struct attempt *at, struct str name)
{
        if (at->t->m->transfer == TRANSFER_NO)
                return false;
        for (size_t i = 0; i < at->t->m->spooled_count; i++)
                if (str_eqz(name, at->t->m->spooled[i].name))
                        return true;
        return false;
}

static void in_iwd(const struct attempt *at, struct str path, struct buf *out)
{
        if (!str_starts(path, STR("/")) && at->t->same_domain) {
                buf_addz(out, at->iwd);
                buf_char(out, '/');
        }
        buf_str(out, path);
}

static void in_sandbox(const struct attempt *at, struct str name, struct buf *out)
{
        char sandbox[64];

        sandbox_name(at, sandbox);
        buf_printf(out, "%s/%s/" STR_FMT, at->a->jobs_path, sandbox, STR_ARG(name));
}

int expand_path(const struct attempt *at, const struct job_step *step, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
        int r = expand_text(at, step->executable, &text, err);

        if (r < 0)
                return r;
        struct str path = str_trim(buf_view(&text)), name = expand_base_name(path);
        if (step->transfer_executable && is_spooled(at, name))
                in_sandbox(at, name, out);
        else if (step->transfer_executable)
                in_iwd(at, path, out);
        else
                buf_str(out, path);                                      /* relative to the job's folder */
        if (!path.n && (!*step->container || step->transfer_executable)) /* else the image has one */
                return err_set(err, -EINVAL, "the job names no program");
        return 0;
}

void expand_program(const struct attempt *at, const struct job_step *step, struct buf *out)
{
        expand_path(at, step, out, NULL);
}

/* Streams of one name are one file: "a" for the first name that occurs, and so on. */
int expand_stream(const struct attempt *at, const char *text, struct buf *ret_path, struct err *err)
{
        BUF_CLEANUP struct buf want = {.max = 65536};
        int r = expand_text(at, text, &want, err);

        if (r < 0 || want.n == 0 || str_eqz(buf_view(&want), "/dev/null"))
                return r < 0 ? r : -ENOENT;
        const struct job_template *m = at->t->m;
        int index = 0;
        for (size_t i = 0; i < m->step_count; i++) {
                const char *const names[2] = {m->steps[i].stdout_file, m->steps[i].stderr_file};

                for (int k = 0; k < 2; k++, index++) {
                        if (names[k] != text && strcmp(names[k], text) != 0) {
                                BUF_CLEANUP struct buf other = {.max = 65536};

                                if (expand_text(at, names[k], &other, NULL) < 0 ||
                                    !str_eq(buf_view(&other), buf_view(&want)))
                                        continue;
                        }
                        if (ret_path)
                                buf_str(ret_path, buf_view(&want));
                        return index;
                }
        }
        return -ENOENT;
}

/* The streams of an attempt that a runner handed on to another server are kept there. */
bool expand_stream_is_kept(const struct attempt *at, unsigned step, bool is_stderr)
{
        const struct job_step *s = &at->t->m->steps[step];

        return !*(is_stderr ? s->stderr_file : s->stdout_file) && !at->q->backend->runner->kind->credential;
}

int expand_stream_file(const struct attempt *at, unsigned step, bool is_stderr, bool *ret_kept,
                       struct err *err)
{
        const struct job_step *s = &at->t->m->steps[step];
        const char *text = is_stderr ? s->stderr_file : s->stdout_file;

        *ret_kept = expand_stream_is_kept(at, step, is_stderr);
        if (*ret_kept)
                return (int)(step * 2 + is_stderr);
        return expand_stream(at, text, NULL, err);
}

void expand_stream_name(const struct attempt *at, int index, struct buf *out)
{
        const struct job_template *m = at->t->m;
        const struct job_step *s = &m->steps[index / 2];
        const char *text = index % 2 ? s->stderr_file : s->stdout_file;

        if (!m->streams_in_sandbox || !*text || expand_text(at, text, out, NULL) < 0)
                buf_printf(out, ".drover_out.%d", index);
}

int expand_stream_open(const struct attempt *at, int index)
{
        BUF_CLEANUP struct buf name = {0};

        expand_stream_name(at, index, &name);
        return sandbox_open_file(at, buf_z(&name));
}

/* The input of a step: 0, or -EINVAL. An empty path is none. */
int expand_input(const struct attempt *at, const struct job_step *step, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = 65536};
        int r = expand_text(at, step->stdin_file, &text, err);

        if (r < 0 || text.n == 0 || str_eqz(buf_view(&text), "/dev/null"))
                return r;
        if (at->t->m->streams_in_sandbox)
                buf_str(out, buf_view(&text));
        else if (is_spooled(at, expand_base_name(buf_view(&text))))
                buf_str(out, expand_base_name(buf_view(&text)));
        else
                in_iwd(at, buf_view(&text), out);
        return 0;
}

uint64_t expand_gpus(const struct job_template *m)
{
        for (size_t i = 0; i < m->resource_count; i++)
                if (str_ieqz(STR("GPUs"), m->resources[i].name))
                        return m->resources[i].count;
        return 0;
}
