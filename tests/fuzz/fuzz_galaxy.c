/* A Galaxy tool: the bytes as its XML, with parameters that many tools have; and as a template by itself. */
#include <errno.h>
#include <stdint.h>

#include "jdl/galaxy/galaxy.h"
#include "jdl/galaxy/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_file(void *arg, const char *path, struct buf *ret)
{
        const struct str *tool = arg;

        if (str_ends(str_of(path), STR(".json")))
                buf_addz(ret,
                         "{\"input\": \"a.txt\", \"n\": 3, \"mode\": {\"x\": \"y\"}, "
                         "\"series_0|input\": \"b.bed\", \"pairs\": {\"elements\": [{\"identifier\": \"s\", "
                         "\"elements\": [\"a.txt\", \"c.txt\"]}]}}");
        else if (str_ends(str_of(path), STR("conf.xml")))
                buf_addz(ret, "<tables><table name=\"t\"><columns>value, name, path</columns><file "
                              "path=\"t.loc\"/></table></tables>");
        else if (str_ends(str_of(path), STR(".loc")))
                buf_str(ret, *tool);
        else if (str_ends(str_of(path), STR("tool.xml")))
                buf_str(ret, *tool);
        else
                return -ENOENT;
        return 0;
}

static const char *get(void *arg, const char *name)
{
        (void)arg;
        (void)name;
        return NULL;
}

static void as_tool(struct str text)
{
        const struct form_world world = {.arg = &text, .read_file = read_file, .getenv = get, .cwd = "/work"};

        for (int with = 0; with < 2; with++) {
                struct galaxy_rendered made = {{0}};

                galaxy_render(&world,
                              &(struct galaxy_job){.tool = "tool.xml", .params = with ? "job.json" : NULL},
                              &made, NULL);
                galaxy_rendered_deinit(&made);
        }
}

static void as_template(struct str text)
{
        struct arena arena = {0};
        struct expressions x = {.arena = &arena};
        BUF_CLEANUP struct buf out = {.max = 65536};
        struct datum *list;

        x.names = datum_new(&arena, DATUM_MAP);
        x.steps = EXPRESSION_STEPS_MAX - 20000;
        list = datum_new(&arena, DATUM_LIST);
        datum_add(&arena, list, datum_int(&arena, 1));
        datum_add(&arena, list, datum_text(&arena, STR("two")));
        datum_put(&arena, x.names, STR("list"), list);
        datum_put(&arena, x.names, STR("n"), datum_int(&arena, 7));
        datum_put(&arena, x.names, STR("s"), datum_text(&arena, STR("a b")));
        template_render(&x, "t", 1, text, &out, NULL);
        arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct str text = {(const char *)data, size};

        if (size > 65536)
                return 0;
        if (size && data[0] == '<')
                as_tool(text);
        else
                as_template(text);
        return 0;
}
