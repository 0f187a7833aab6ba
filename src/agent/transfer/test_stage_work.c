#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/transfer/move_files.h"
#include "agent/transfer/stage_work.h"
#include "base/system/fs.h"

static char top[64], path[160];

static const char *in_top(const char *name)
{
        snprintf(path, sizeof(path), "%s/%s", top, name);
        return path;
}

static void put(const char *name, const char *text)
{
        assert_int_equal(fs_write(AT_FDCWD, in_top(name), str_of(text), 0644, false, NULL), 0);
}

static void content(const char *name, const char *want)
{
        BUF_CLEANUP struct buf b = {0};

        assert_int_equal(fs_read(AT_FDCWD, in_top(name), 1 << 20, &b, NULL), 0);
        assert_string_equal(buf_z(&b), want);
}

static void begin(struct stage_work *w, enum stage_kind kind)
{
        stage_work_init(w, kind, 3);
        w->data = open(in_top("task"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(w->data >= 0);
}

/* Runs the child as the shepherd does, but with our own user. */
static int run_child(const struct stage_work *w)
{
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                if (dup2(w->data, 0) < 0 || chdir(in_top("box")) < 0)
                        _exit(100);
                _exit(stage_work_child());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_child_brings_inputs(void **state)
{
        (void)state;
        struct stage_work w;
        uint64_t steps;
        const char *where;
        put("cached", "from the cache\n");
        put("plain", "from its folder\n");
        begin(&w, STAGE_IN);
        struct stage_file *f = stage_work_file(&w, mem_dupz(in_top("cached")), mem_dupz("sub/one"));
        f->carried = f->executable = true;
        stage_work_file(&w, mem_dupz(in_top("plain")), mem_dupz("two"));
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_equal(w.result, 0);
        assert_int_equal(stage_work_look(&w, &steps, &where), 0);
        assert_true(steps == STAGE_STEPS_DONE);
        assert_string_equal(where, in_top("plain"));
        content("box/sub/one", "from the cache\n");
        content("box/two", "from its folder\n");
        assert_int_equal(access(in_top("box/sub/one"), X_OK), 0);
        assert_true(w.files[0].mtime_ns == INT64_MIN && w.files[1].mtime_ns > 0 && w.files[1].size == 16);
        stage_work_deinit(&w);

        begin(&w, STAGE_IN);
        stage_work_file(&w, mem_dupz(in_top("no such file")), mem_dupz("three"));
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_equal(w.result, -ENOENT);
        assert_non_null(strstr(w.err.text, "no such file"));
        stage_work_deinit(&w);
}

static void a_child_takes_outputs_away(void **state)
{
        (void)state;
        struct stage_work w;
        put("box/new", "an output\n");
        begin(&w, STAGE_HASH);
        w.find_new = true;
        w.new_since_ms = INT64_MIN;
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_equal(w.result, 0);
        size_t i = 0;
        while (i < w.count && strcmp(w.files[i].from, "new") != 0)
                i++;
        assert_true(i < w.count && w.files[i].size == 10);
        char room[16] = "";
        assert_int_equal(pread(w.data, room, 10, (off_t)w.files[i].at), 10);
        assert_string_equal(room, "an output\n");
        stage_work_deinit(&w);

        /* outputs are moved to their destinations under their new names, and the folder is empty */
        put("box/.drover_out.0", "stream\n");
        assert_int_equal(mkdir(in_top("home"), 0755), 0);
        begin(&w, STAGE_OUT);
        w.iwd = mem_dupz(in_top("home"));
        MEM_GROW(w.remaps, w.remap_cap, 1);
        w.remaps[w.remap_count++] = (struct stage_remap){mem_dupz("new"), mem_dupz("renamed")};
        stage_work_file(&w, mem_dupz(".drover_out.0"), mem_dupz(in_top("home/out")))->optional = true;
        stage_work_file(&w, mem_dupz(".drover_out.1"), mem_dupz(in_top("home/err")))->optional = true;
        assert_int_equal(stage_work_output(&w, STR("new"), false), 0);
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_equal(w.result, 0);
        assert_true(w.files[1].missing && !w.files[0].missing);
        content("home/out", "stream\n");
        content("home/renamed", "an output\n");
        assert_int_equal(rmdir(in_top("box")), 0);
        assert_int_equal(mkdir(in_top("box"), 0700), 0);
        stage_work_deinit(&w);

        /* files for a URL are kept, because they are needed again if the agent dies before they are sent */
        put("box/sent", "far away\n");
        begin(&w, STAGE_OUT);
        w.iwd = mem_dupz(in_top("home"));
        MEM_GROW(w.remaps, w.remap_cap, 1);
        w.remaps[w.remap_count++] = (struct stage_remap){mem_dupz("sent"), mem_dupz("https://far/sent")};
        w.find_new = true;
        w.new_since_ms = INT64_MIN;
        assert_false(stage_work_empties(&w));
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_equal(w.result, 0);
        assert_string_equal(w.files[0].to, "https://far/sent");
        content("box/sent", "far away\n");
        assert_int_equal(unlink(in_top("box/sent")), 0);
        stage_work_deinit(&w);
}

static void to_of(const struct stage_work *w, const char *from, const char *want)
{
        for (size_t i = 0; i < w->count; i++)
                if (!strcmp(w->files[i].from, from)) {
                        assert_string_equal(w->files[i].to, want);
                        return;
                }
        fail_msg("%s is not there", from);
}

static bool is_there(const struct stage_work *w, const char *from)
{
        for (size_t i = 0; i < w->count; i++)
                if (!strcmp(w->files[i].from, from))
                        return true;
        return false;
}

/* Folders are made in a child, too; unchanged inputs, the agent's own and hidden files are no outputs. */
static void folders_are_made(void **state)
{
        (void)state;
        struct stage_work w;
        struct stat st;
        begin(&w, STAGE_IN);
        stage_work_file(&w, mem_dupz(""), mem_dupz("vol/a/b"))->folder = true;
        stage_work_file(&w, mem_dupz(""), mem_dupz("vol/a"))->folder = true; /* is there */
        stage_work_file(&w, mem_dupz(""), mem_dupz("../outside"))->folder = true;
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_not_equal(w.result, 0);
        assert_non_null(strstr(w.err.text, "../outside"));
        assert_true(stat(in_top("box/vol/a/b"), &st) == 0 && S_ISDIR(st.st_mode));
        assert_int_not_equal(stat(in_top("outside"), &st), 0);
        stage_work_deinit(&w);
}

static void patterns_become_their_files(void **state)
{
        (void)state;
        struct stage_work w;
        struct stat st;
        assert_int_equal(mkdir(in_top("box/sub"), 0755), 0);
        assert_int_equal(mkdir(in_top("box/sub/deep.root"), 0755), 0);
        put("box/a.root", "1");
        put("box/b.root", "22");
        put("box/in.root", "input");
        put("box/.hidden.root", "");
        put("box/.drover_x.root", "");
        put("box/[c].root", "");
        put("box/sub/d.root", "333");
        assert_int_equal(symlink("/etc", in_top("box/link")), 0);
        assert_int_equal(stat(in_top("box/in.root"), &st), 0);
        begin(&w, STAGE_OUT);
        assert_true(mkdir(in_top("gone"), 0755) == 0 || errno == EEXIST);
        w.iwd = mem_dupz(in_top("gone"));
        MEM_GROW(w.inputs, w.input_cap, 1);
        w.inputs[w.input_count++] = (struct staged_input){
                mem_dupz("in.root"), (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, 5};
        MEM_GROW(w.remaps, w.remap_cap, 2);
        w.remaps[w.remap_count++] = (struct stage_remap){mem_dupz("a.root"), mem_dupz("first")};
        w.remaps[w.remap_count++] = (struct stage_remap){mem_dupz("sub/*"), mem_dupz("below/")};
        assert_int_equal(mkdir(in_top("gone/below"), 0755), 0);
        assert_int_equal(stage_work_pattern(&w, STR("[ab].root"), false), 0);
        assert_int_equal(stage_work_pattern(&w, STR("*.root"), false), 0);
        assert_int_equal(stage_work_pattern(&w, STR("[c].root"), false), 0); /* a name */
        assert_int_equal(stage_work_pattern(&w, STR("s?b/d.*"), false), 0);
        assert_int_equal(stage_work_pattern(&w, STR("link/pass*"), true), 0);
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        if (w.result != 0)
                fail_msg("%s", w.err.text);
        assert_int_equal(w.count, 4);
        assert_true(is_there(&w, "a.root") && is_there(&w, "b.root") && is_there(&w, "[c].root"));
        content("gone/first", "1");
        content("gone/b.root", "22");
        content("gone/below/d.root", "333");
        stage_work_deinit(&w);

        /* folders after "/./" in a pattern are kept */
        begin(&w, STAGE_OUT);
        w.iwd = mem_dupz(in_top("gone"));
        MEM_GROW(w.remaps, w.remap_cap, 1);
        w.remaps[w.remap_count++] = (struct stage_remap){mem_dupz("s/./*/?.x"), mem_dupz("https://h/d/")};
        assert_int_equal(stage_work_output(&w, STR("s/t/u.x"), true), 0);
        assert_string_equal(w.files[0].to, "https://h/d/t/u.x");
        assert_int_equal(stage_work_output(&w, STR("s/u.x"), true), 0);
        assert_string_equal(w.files[1].to, in_top("gone/u.x"));
        stage_work_deinit(&w);

        /* none at all is an error, which has the pattern */
        assert_true(mkdir(in_top("box"), 0700) == 0 || errno == EEXIST);
        begin(&w, STAGE_HASH);
        assert_int_equal(stage_work_pattern(&w, STR("*.nothing"), false), 0);
        assert_int_equal(stage_work_find(&w), -ENOENT);
        assert_non_null(strstr(w.err.text, "called like *.nothing"));
        stage_work_deinit(&w);
}

static int found_with(const char *pattern, const char *place, const char *name, struct stage_work *w)
{
        assert_true(mkdir(in_top("box"), 0700) == 0 || errno == EEXIST);
        assert_true(mkdir(in_top("box/two"), 0700) == 0 || errno == EEXIST);
        put("box/one.txt", "1");
        put("box/two.txt", "2");
        put("box/two/one.txt", "3");
        begin(w, STAGE_OUT);
        w->iwd = mem_dupz(in_top("gone"));
        MEM_GROW(w->remaps, w->remap_cap, 1);
        w->remaps[w->remap_count++] = (struct stage_remap){mem_dupz(pattern), mem_dupz(place)};
        assert_int_equal(stage_work_pattern(w, str_of(pattern), false), 0);
        if (name)
                assert_int_equal(stage_work_output(w, str_of(name), false), 0);
        assert_int_equal(stage_work_write(w), 0);
        assert_int_equal(run_child(w), 0);
        assert_int_equal(stage_work_answer(w), 0);
        return w->result;
}

/* Where two files go to one place one of them would be lost. */
static void two_files_do_not_go_to_one_place(void **state)
{
        struct stage_work w;

        (void)state;
        assert_true(mkdir(in_top("gone"), 0700) == 0 || errno == EEXIST);
        assert_true(mkdir(in_top("gone/all"), 0700) == 0 || errno == EEXIST);
        assert_int_equal(found_with("*.txt", "all.txt", NULL, &w), -EEXIST);
        assert_non_null(strstr(w.err.text, "one.txt and two.txt both go to "));
        assert_non_null(strstr(w.err.text, "/gone/all.txt"));
        stage_work_deinit(&w);
        assert_int_equal(found_with("t*.txt", "all.txt", NULL, &w), 0);
        stage_work_deinit(&w);
        assert_int_equal(found_with("*.txt", "all/", NULL, &w), 0);
        stage_work_deinit(&w);
        assert_int_equal(found_with("o*.txt", "./", "two/one.txt", &w), 0);
        stage_work_deinit(&w);
        assert_int_equal(found_with("[o]*.txt", "one.txt", "two/one.txt", &w), -EEXIST);
        stage_work_deinit(&w);

        /* what replaces a file of the sandbox is none of its outputs yet, and an input may replace another */
        begin(&w, STAGE_HASH);
        stage_work_file(&w, mem_dupz(in_top("box/one.txt")), mem_dupz("all.txt"))->stands_in = true;
        stage_work_file(&w, mem_dupz(in_top("box/two.txt")), mem_dupz("all.txt"))->stands_in = true;
        assert_int_equal(stage_work_find(&w), 0);
        stage_work_deinit(&w);
        begin(&w, STAGE_IN);
        stage_work_file(&w, mem_dupz(in_top("box/one.txt")), mem_dupz("in.txt"));
        stage_work_file(&w, mem_dupz(in_top("box/two.txt")), mem_dupz("in.txt"));
        assert_int_equal(stage_work_find(&w), 0);
        stage_work_deinit(&w);
}

static void folders_become_their_files(void **state)
{
        (void)state;
        struct stage_work w;
        const char *const folders[] = {"box/dir", "box/dir/deep", "box/dir/empty", "box/web"};
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(mkdir(in_top(folders[i]), 0755), 0);
        put("box/dir/one", "1");
        put("box/dir/deep/two", "22");
        put("box/web/page", "333");
        put("box/alone", "");
        assert_int_equal(symlink("one", in_top("box/dir/link")), 0);
        for (int all = 0; all < 2; all++) {
                begin(&w, STAGE_HASH);
                MEM_GROW(w.remaps, w.remap_cap, 1);
                w.remaps[w.remap_count++] = (struct stage_remap){mem_dupz("web"), mem_dupz("https://far/w")};
                assert_int_equal(stage_work_output(&w, all ? STR("dir/") : STR("dir"), false), 0);
                assert_int_equal(stage_work_output(&w, STR("alone"), false), 0);
                assert_int_equal(stage_work_output(&w, STR("web"), false), 0);
                assert_int_equal(stage_work_output(&w, STR("dir/deep"), false), 0);
                assert_int_equal(stage_work_write(&w), 0);
                assert_int_equal(run_child(&w), 0);
                assert_int_equal(stage_work_answer(&w), 0);
                assert_int_equal(w.result, 0);
                assert_int_equal(w.count, 5);
                assert_string_equal(w.files[0].from, "alone");
                to_of(&w, "dir/one", all ? "one" : "dir/one");
                to_of(&w, "web/page", "https://far/w/page");
                assert_int_equal(w.bytes, 1 + 2 + 2);
                stage_work_deinit(&w);
        }
        begin(&w, STAGE_HASH);
        assert_int_equal(stage_work_output(&w, STR("dir/empty"), false), 0);
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_true(w.result == 0 && w.count == 0);
        stage_work_deinit(&w);
}

/* A hole takes no room in the source, but its copy could fill the agent's disk. */
static void a_hole_does_not_fill_the_disk(void **state)
{
        (void)state;
        struct stage_work w;
        struct stat st;
        put("box/hole", "");
        if (truncate(in_top("box/hole"), (off_t)1 << 43) < 0)
                skip();
        begin(&w, STAGE_HASH);
        assert_int_equal(stage_work_output(&w, STR("hole"), false), 0);
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_equal(w.result, -ENOSPC);
        assert_true(fstat(w.data, &st) == 0 && st.st_blocks < 1024);
        stage_work_deinit(&w);
        assert_int_equal(unlink(in_top("box/hole")), 0);
}

/* The checksum of a hole is that of zeros; holes of more than is allowed are no work for anybody. */
static void holes_are_hashed_and_bounded(void **state)
{
        (void)state;
        unsigned char sum[2][32];
        for (int sparse = 0; sparse < 2; sparse++) {
                struct stage_work w;

                put("box/holes", sparse ? "" : "begin");
                int fd = open(in_top("box/holes"), O_RDWR);
                char zeros[4096] = {0};
                for (int i = 0; i < 512 && !sparse; i++)
                        assert_int_equal(pwrite(fd, zeros, sizeof(zeros), i * 4096), 4096);
                assert_true(ftruncate(fd, 512 * 4096) == 0);
                assert_true(pwrite(fd, "begin", 5, 0) == 5 && pwrite(fd, "here", 4, 1 << 20) == 4);
                close(fd);
                begin(&w, STAGE_HASH);
                assert_int_equal(stage_work_output(&w, STR("holes"), false), 0);
                assert_int_equal(stage_work_write(&w), 0);
                assert_int_equal(run_child(&w), 0);
                assert_int_equal(stage_work_answer(&w), 0);
                assert_int_equal(w.result, 0);
                assert_true(w.files[0].size == 512 * 4096);
                memcpy(sum[sparse], w.files[0].sha256, 32);
                stage_work_deinit(&w);
                if (sparse)
                        continue;
                assert_int_equal(unlink(in_top("box/holes")), 0);
        }
        assert_memory_equal(sum[0], sum[1], 32);
        struct stage_work w;
        begin(&w, STAGE_HASH);
        w.holes_max = 4096;
        assert_int_equal(stage_work_output(&w, STR("holes"), false), 0);
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(run_child(&w), 0);
        assert_int_equal(stage_work_answer(&w), 0);
        assert_int_equal(w.result, -EFBIG);
        stage_work_deinit(&w);
        assert_int_equal(unlink(in_top("box/holes")), 0);
}

/* Answers of another user's child are checked. */
static void answers_are_checked(void **state)
{
        (void)state;
        struct stage_work w;
        begin(&w, STAGE_OUT);
        assert_int_equal(stage_work_answer(&w), -EPROTO); /* empty */
        assert_int_equal(stage_work_write(&w), 0);
        assert_int_equal(stage_work_answer(&w), -EPROTO); /* no answer yet */
        assert_int_equal(run_child(&w), 0);
        uint64_t head[5];
        assert_int_equal(pread(w.data, head, sizeof(head), 0), sizeof(head));
        unsigned char good[4096];
        ssize_t n = pread(w.data, good, sizeof(good), (off_t)head[3]);
        assert_true(n > 8);
        for (ssize_t i = 0; i < n; i++)
                for (unsigned flip = 1; flip < 256; flip <<= 1) {
                        unsigned char bad = good[i] ^ (unsigned char)flip;

                        assert_int_equal(pwrite(w.data, &bad, 1, (off_t)head[3] + i), 1);
                        stage_work_answer(&w); /* must not crash, whatever the answer */
                        assert_true(w.result <= 0);
                        assert_int_equal(pwrite(w.data, &good[i], 1, (off_t)head[3] + i), 1);
                }
        assert_int_equal(stage_work_answer(&w), 0);
        uint64_t far[5] = {head[0], head[1], head[2], 1ull << 62, 16},
                 large[5] = {head[0], 0, 0, 64, 1ull << 40};
        assert_int_equal(pwrite(w.data, far, sizeof(far), 0), sizeof(far));
        assert_int_equal(stage_work_answer(&w), -EPROTO);
        assert_int_equal(pwrite(w.data, large, sizeof(large), 0), sizeof(large));
        assert_int_equal(stage_work_answer(&w), -EPROTO);
        stage_work_deinit(&w);
}

/* An agent that sees no steps gives the stage up. */
static void each_empty_file_is_progress(void **state)
{
        struct fs_pace pace = {0};
        uint64_t bytes = 0;
        char name[32];
        int box = open(in_top("box"), O_RDONLY | O_DIRECTORY);

        (void)state;
        assert_int_equal(mkdir(in_top("empty"), 0700), 0);
        for (int i = 0; i < 100; i++) {
                snprintf(name, sizeof(name), "empty/%d", i);
                put(name, "");
        }
        assert_int_equal(move_in(NULL, in_top("empty"), box, "empty", false, 0, &pace, &bytes, NULL), 0);
        assert_true(pace.steps >= 100);
        pace.cancelled = true;
        assert_int_equal(move_in(NULL, in_top("empty/7"), box, "seven", false, 0, &pace, &bytes, NULL),
                         -ECANCELED);
        close(box);
}

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-stage-XXXXXX", sizeof(top) - 1);
        return !mkdtemp(top) || mkdir(in_top("box"), 0700) < 0;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_brings_inputs),
                                           cmocka_unit_test(a_child_takes_outputs_away),
                                           cmocka_unit_test(folders_become_their_files),
                                           cmocka_unit_test(folders_are_made),
                                           cmocka_unit_test(patterns_become_their_files),
                                           cmocka_unit_test(two_files_do_not_go_to_one_place),
                                           cmocka_unit_test(a_hole_does_not_fill_the_disk),
                                           cmocka_unit_test(holes_are_hashed_and_bounded),
                                           cmocka_unit_test(each_empty_file_is_progress),
                                           cmocka_unit_test(answers_are_checked)};

        return cmocka_run_group_tests(tests, setup, teardown);
}
