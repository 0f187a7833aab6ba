#include "jdl/script/script.h"

#include <ctype.h>
#include <errno.h>

#include "base/job/args.h"
#include "classad/print.h"

void script_quote(struct buf *out, struct str s)
{
        buf_char(out, '\'');
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == '\'')
                        buf_addz(out, "'\\''");
                else
                        buf_char(out, s.p[i]);
        buf_char(out, '\'');
}

void script_value(struct buf *out, struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (str_starts(str_skip(s, i), STR("$$("))) {
                        buf_addz(out, "$$(DOLLARDOLLAR)");
                        i++;
                } else if (s.p[i] == '$') {
                        buf_addz(out, "$(DOLLAR)");
                } else {
                        buf_char(out, s.p[i]);
                }
}

void script_inputs(struct buf *out, const char *const *paths, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                buf_addz(out, i ? ", " : "transfer_input_files = ");
                script_value(out, str_of(paths[i]));
        }
        if (count)
                buf_char(out, '\n');
}

void script_absolute(const struct form_world *w, struct str file, struct str path, struct buf *out)
{
        ptrdiff_t slash = str_rfind(file, '/');
        size_t start = out->n;

        if (str_search(path, STR("://")) < 0 && !str_starts(path, STR("/"))) {
                if (slash < 0 || file.p[0] != '/')
                        buf_printf(out, "%s/", w->cwd);
                if (slash >= 0)
                        buf_str(out, str_head(file, (size_t)slash + 1));
        }
        while (str_starts(path, STR("./")))
                path = str_skip(path, 2);
        buf_str(out, path);
        while (out->n > start + 2 && out->p[out->n - 1] == '.' && out->p[out->n - 2] == '/')
                out->n -= 2;
        while (out->n > start + 1 && out->p[out->n - 1] == '/')
                out->n--;
}

bool script_is_json_number(struct str s)
{
        size_t i = s.n && s.p[0] == '-', digits = i;

        while (i < s.n && isdigit((unsigned char)s.p[i]))
                i++;
        if (i == digits || (s.p[digits] == '0' && i > digits + 1))
                return false;
        if (i < s.n && s.p[i] == '.') {
                digits = ++i;
                while (i < s.n && isdigit((unsigned char)s.p[i]))
                        i++;
                if (i == digits)
                        return false;
        }
        if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
                i++;
                i += i < s.n && (s.p[i] == '+' || s.p[i] == '-');
                digits = i;
                while (i < s.n && isdigit((unsigned char)s.p[i]))
                        i++;
                if (i == digits)
                        return false;
        }
        return i == s.n;
}

static void finish(struct form_part *p, struct str arguments, const char *requirements)
{
        const struct form_attribute *before = form_get(p, STR("Requirements"));
        BUF_CLEANUP struct buf all = {0};

        form_set(p, STR("Arguments"), arguments, p->line);
        if (!requirements)
                return;
        if (before)
                buf_printf(&all, "(%s) && %s", before->text, requirements);
        else
                buf_addz(&all, requirements);
        bool late = before && before->late;
        form_set(p, STR("Requirements"), buf_view(&all), p->line);
        form_set_late(p, STR("Requirements"), late);
}

int script_job(const struct form_world *w, const char *file, struct str submit, struct str script,
               const char *requirements, const struct condor_options *o, struct form *ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {0}, raw = {0}, arguments = {0};
        ARGS_CLEANUP struct args words = {0};
        size_t before = ret->part_count;
        int rc;

        if (script.n > SCRIPT_MAX)
                return err_set(err, -E2BIG, "%s: the job's script has %zu bytes, and %u fit", file, script.n,
                               SCRIPT_MAX);
        args_add(&words, STR("-c"));
        args_add(&words, script);
        args_add(&words, STR("drover-tool"));
        args_join_v2(&raw, &words);
        print_string(&arguments, buf_view(&raw));
        buf_addz(&text, "executable = /bin/sh\ntransfer_executable = false\n"
                        "should_transfer_files = IF_NEEDED\n");
        buf_str(&text, submit);
        if (str_search(submit, STR("\nqueue ")) < 0)
                buf_addz(&text, "queue\n");
        rc = condor_parse(w, file, buf_view(&text), o, ret, err);
        for (size_t i = before; i < ret->part_count && rc == 0; i++)
                finish(&ret->parts[i], buf_view(&arguments), requirements);
        return rc;
}
