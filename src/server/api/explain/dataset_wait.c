#include "server/api/explain/dataset_wait.h"

#include "base/format/hex.h"
#include "core/core.h"
#include "core/query.h"
#include "server/files/objects.h"

#define LIST_MAX  (4u << 20) /* bytes of a list that is read to name files */
#define NAMED_MAX 100u
#define SAID_MAX  5u

void dataset_wait_deinit(struct dataset_wait *w)
{
        buf_deinit(&w->hosts);
        buf_deinit(&w->files);
}

bool dataset_wait_hosts(struct str clause, struct buf *out)
{
        const struct str machine = STR("TARGET.Machine == \"");
        struct str rest = clause, name;
        unsigned hosts = 0;
        ptrdiff_t at;

        while (rest.n && strchr("( ", rest.p[0]))
                rest = str_skip(rest, 1);
        if (!str_starts(rest, machine) || str_search(rest, STR("TARGET.AgentName == \"")) < 0)
                return false;
        for (; (at = str_search(rest, machine)) >= 0; hosts++) {
                rest = str_skip(rest, (size_t)at + machine.n);
                str_cut(&rest, '"', &name);
                buf_printf(out, "%s" STR_FMT, hosts ? " or " : "", STR_ARG(name));
        }
        return true;
}

/* Finds the value of an item variable of the job. */
static bool find_variable(struct core *c, uint64_t request, uint32_t member, const char *name,
                          struct str *ret)
{
        struct str values[16];
        uint32_t part, row, step;
        size_t count, n;
        char **names;

        if (core_member_item(c, request, member, &part, &row, &step, values,
                             sizeof(values) / sizeof(values[0]), &count) != 0)
                return false;
        n = core_part_variables(c, request, part, &names);
        for (size_t i = 0; i < n && i < count; i++)
                if (str_ieqz(str_of(names[i]), name)) {
                        *ret = values[i];
                        return true;
                }
        return false;
}

bool dataset_wait_find(struct server *s, uint64_t request, uint32_t member, struct dataset_wait *ret)
{
        BUF_CLEANUP struct buf list = {.max = 1000};
        const struct submission_file *files;
        struct str where, rest, name, first;
        size_t count;

        if (!find_variable(s->core, request, member, "DatasetWhere", &where) ||
            !dataset_wait_hosts(where, &ret->hosts))
                return false;
        if (core_member_text(s->core, request, member,
                             symbols_intern(core_symbols(s->core), STR("DatasetList")), &list) != 0)
                return false;
        rest = buf_view(&list);
        if (!str_word(&rest, &name) || !str_word(&rest, &first) || str_to_u64(first, &ret->first) != 0 ||
            str_to_u64(str_trim(rest), &ret->count) != 0 || ret->first == 0)
                return false;
        if (core_request_spooled(s->core, request, &files, &count) != 0)
                return true;
        for (size_t i = 0; i < count; i++)
                if (str_eq(files[i].name, name) && files[i].size <= LIST_MAX)
                        hex_print(ret->hash, files[i].sha256, sizeof(files[i].sha256));
        return true;
}

void dataset_wait_read(struct server *s, struct dataset_wait *w)
{
        BUF_CLEANUP struct buf text = {0};
        struct str rest, line;

        if (!w->hash[0] || objects_read_whole(s, w->hash, &text, NULL) != 0)
                return;
        rest = buf_view(&text);
        for (uint64_t n = 1; str_cut(&rest, '\n', &line) && w->listed < NAMED_MAX; n++)
                if (line.n && n >= w->first && n < w->first + w->count) {
                        buf_printf(&w->files, STR_FMT "\n", STR_ARG(line));
                        w->listed++;
                }
}

void dataset_wait_say(struct json *j, const struct dataset_wait *w, bool connected)
{
        BUF_CLEANUP struct buf text = {0};
        struct str rest = buf_view(&w->files), line;
        uint64_t said = 0;

        buf_printf(&text, "Its %llu file%s on the disk of host " STR_FMT "%s", (unsigned long long)w->count,
                   w->count == 1 ? " is" : "s are", STR_ARG(buf_view(&w->hosts)),
                   connected ? "" : ", of which no agent is connected");
        for (; said < SAID_MAX && str_cut(&rest, '\n', &line) && line.n; said++)
                buf_printf(&text, "%s " STR_FMT, said ? "," : ":", STR_ARG(line));
        if (said && said < w->count)
                buf_printf(&text, " and %llu more", (unsigned long long)(w->count - said));
        buf_char(&text, '.');
        json_str(j, buf_view(&text));
}

void dataset_wait_write(struct json *j, const struct dataset_wait *w, bool connected)
{
        struct str rest = buf_view(&w->hosts), line;
        ptrdiff_t at;

        json_open(j, '{');
        json_key(j, "hosts");
        json_open(j, '[');
        while ((at = str_search(rest, STR(" or "))) >= 0) {
                json_str(j, str_head(rest, (size_t)at));
                rest = str_skip(rest, (size_t)at + 4);
        }
        json_str(j, rest);
        json_close(j, ']');
        json_kbool(j, "connected", connected);
        json_kint(j, "count", (int64_t)w->count);
        json_key(j, "files");
        json_open(j, '[');
        for (rest = buf_view(&w->files); str_cut(&rest, '\n', &line) && line.n;)
                json_str(j, line);
        json_close(j, ']');
        json_close(j, '}');
}
