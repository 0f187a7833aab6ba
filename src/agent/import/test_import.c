/* The agent's own reader reads the written file, for each sample of tests/golden/galaxy_conf. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/config/config.h"
#include "agent/import/galaxy.h"
#include "base/system/fs.h"

static char dir[] = "/tmp/drover-import-XXXXXX";

static int make_dir(void **state)
{
        (void)state;
        return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, dir) == 0 ? 0 : -1;
}

static void accept(const char *name, struct str yaml)
{
        BUF_CLEANUP struct buf file = {0}, folder = {0};
        struct config c;
        struct err err = {""};
        bool done;

        buf_printf(&file, "%s/agent.yaml", dir);
        buf_printf(&folder, "%s/state", dir);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&file), yaml, 0600, false, NULL), 0);
        char *options[] = {(char *)"drover-agent", (char *)"--config", (char *)buf_z(&file),
                           (char *)"--server",     (char *)"unix:/x",  (char *)"--dir",
                           (char *)buf_z(&folder)};
        config_init(&c);
        if (config_options(&c, 7, options, &done, &err) != 0 || config_finish(&c, &err) != 0)
                fail_msg("%s: %s", name, err.text);
        assert_true(c.queue_count > 0);
        config_deinit(&c);
}

static void what_is_written_is_read(void **state)
{
        DIR *samples = opendir(getenv("SAMPLES"));
        const struct dirent *e;
        int written = 0;

        (void)state;
        assert_non_null(samples);
        while ((e = readdir(samples))) {
                BUF_CLEANUP struct buf path = {0}, text = {0}, out = {0};
                struct galaxy_conf c;

                buf_printf(&path, "%s/%s", getenv("SAMPLES"), e->d_name);
                if (!(str_ends(buf_view(&path), STR(".xml")) || str_ends(buf_view(&path), STR(".yml"))))
                        continue;
                assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 1 << 20, &text, NULL), 0);
                galaxy_init(&c, e->d_name);
                if (galaxy_read(&c, buf_view(&text), NULL) == 0 && galaxy_write(&c, &out, NULL) == 0) {
                        accept(e->d_name, buf_view(&out));
                        written++;
                }
                galaxy_deinit(&c);
        }
        closedir(samples);
        assert_true(written >= 3);
}

/* Any id, tag or option is quoted correctly. */
static void words_are_quoted(void **state)
{
        const char text[] =
                "<job_conf><plugins><plugin id='l' load='x:LocalJobRunner'/>"
                "<plugin id='s' load='x:SlurmJobRunner'/></plugins><destinations>"
                "<destination id=\"a: {b}\t'&#10;# c\" runner='l' tags=\"on,it's: [x],- y,*z,12\"/>"
                "<destination id='s' runner='s'><param id='nativeSpecification'>-p 'q:{ -p # -A</param>"
                "</destination></destinations></job_conf>";
        BUF_CLEANUP struct buf out = {0};
        struct galaxy_conf c;

        (void)state;
        galaxy_init(&c, "odd.xml");
        assert_int_equal(galaxy_read(&c, str_of(text), NULL), 0);
        assert_int_equal(galaxy_write(&c, &out, NULL), 0);
        accept("odd.xml", buf_view(&out));
        galaxy_deinit(&c);
}

static void times_are_seconds(void **state)
{
        static const struct {
                const char *text;
                bool minutes;
                uint64_t s;
        } times[] = {{"90", false, 90},      {"90", true, 5400},
                     {"05:30", false, 330},  {"72:00:00", false, 259200},
                     {"1-12", true, 129600}, {"1-12:30", true, 131400},
                     {"0", false, 0},        {"", false, 0},
                     {"1:2:3:4", false, 0},  {"x", true, 0},
                     {"-1", false, 0},       {"99999999999999999999", false, 0}};

        (void)state;
        for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
                uint64_t s = 0;

                assert_int_equal(galaxy_time(str_of(times[i].text), times[i].minutes, &s), times[i].s != 0);
                assert_int_equal(s, times[i].s);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(words_are_quoted),
                cmocka_unit_test(times_are_seconds),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
