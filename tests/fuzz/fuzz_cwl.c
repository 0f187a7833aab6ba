/* A CWL description, and a job order: the bytes as either, the other as it should be. */
#include <errno.h>
#include <stdint.h>

#include "jdl/cwl/cwl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct files {
        struct str tool, order;
};

static int read_file(void *arg, const char *path, struct buf *ret)
{
        const struct files *f = arg;

        if (str_ends(str_of(path), STR("tool.cwl")))
                buf_str(ret, f->tool);
        else if (str_ends(str_of(path), STR("order.yml")))
                buf_str(ret, f->order);
        else if (str_ends(str_of(path), STR(".cwl")))
                buf_addz(ret, "class: CommandLineTool\nrun: tool.cwl\n");
        else
                return -ENOENT;
        return 0;
}

static int find(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path), void *to)
{
        (void)arg;
        (void)want;
        each(to, str_of(pattern));
        return 0;
}

static void run(struct str tool, struct str order)
{
        struct files files = {tool, order};
        const struct form_world world = {.arg = &files, .read_file = read_file, .glob = find, .cwd = "/work"};
        const struct condor_options o = {.arch = "X86_64", .opsys = "LINUX"};
        BUF_CLEANUP struct buf command = {0};
        struct form form;

        form_init(&form);
        cwl_parse(&world, &(struct cwl_job){.tool = "d/tool.cwl", .params = "order.yml"}, &o, &form, &command,
                  NULL);
        form_deinit(&form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct str text = {(const char *)data, size};

        if (size > 65536)
                return 0;
        run(text,
            STR("f: {class: File, path: a.b.txt}\nn: 3\ns: '3'\nl: [{class: Directory, location: d/}]\n"));
        run(STR("class: CommandLineTool\ninputs: {f: {type: File, secondaryFiles: [.x, ^.y, {pattern: "
                "z?}]}}\n"),
            text);
        return 0;
}
