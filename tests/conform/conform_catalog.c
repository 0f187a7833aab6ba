/* One suite for all back ends of the catalog that write. The argument is the kind: "memory" or "file". */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/fs.h"
#include "catalog/catalog.h"
#include "store/store.h"
#include "store_help.h"

static bool on_disk;

struct place {
        char *folder;
        struct buf address;
        struct catalog *catalog;
        struct err err;
};

static void place_open(struct place *p)
{
        if (catalog_open(buf_z(&p->address), &p->catalog, &p->err) != 0)
                fail_msg("%s", p->err.text);
}

static int set_up(void **state)
{
        struct place *p = mem_new(struct place);

        p->folder = temp_folder();
        buf_addz(&p->address, "sqlite:");
        if (on_disk)
                buf_printf(&p->address, "%s/catalog.db", p->folder);
        place_open(p);
        *state = p;
        return 0;
}

static int tear_down(void **state)
{
        struct place *p = *state;

        catalog_close(p->catalog);
        temp_folder_remove(p->folder);
        buf_deinit(&p->address);
        free(p);
        return 0;
}

static void put(struct place *p, const struct catalog_file *files, size_t n)
{
        struct catalog_counts counts;

        if (catalog_put(p->catalog, files, n, &(struct catalog_put){0}, &counts, &p->err) != 0)
                fail_msg("%s", p->err.text);
}

static int on_name(void *arg, const struct catalog_file *f)
{
        struct buf *b = arg;

        buf_printf(b, "%s" STR_FMT, b->n ? " " : "", STR_ARG(f->name));
        return 0;
}

/* Names that a query finds, with blanks between. */
static void assert_finds(struct place *p, const char *query, const char *names)
{
        BUF_CLEANUP struct buf b = {0};
        struct catalog_found found, counted;

        if (catalog_find(p->catalog, &(struct catalog_find){.query = str_of(query)}, on_name, &b, &found,
                         &p->err) != 0)
                fail_msg("%s: %s", query, p->err.text);
        assert_string_equal(buf_z(&b), names);
        assert_int_equal(catalog_find(p->catalog,
                                      &(struct catalog_find){.query = str_of(query), .count = true}, NULL,
                                      NULL, &counted, &p->err),
                         0);
        assert_int_equal(counted.files, found.files);
        assert_int_equal(counted.bytes, found.bytes);
        assert_int_equal(found.next, 0);
}

static void assert_refuses(struct place *p, const char *query, int code, const char *says)
{
        BUF_CLEANUP struct buf b = {0};
        struct catalog_found found;

        assert_int_equal(catalog_find(p->catalog, &(struct catalog_find){.query = str_of(query)}, on_name, &b,
                                      &found, &p->err),
                         code);
        if (!strstr(p->err.text, says))
                fail_msg("%s", p->err.text);
}

/* a, b and c: productions, runs, and replicas on hosts' own disks and in stores. */
static void put_some(struct place *p)
{
        const struct catalog_meta a[] = {{STR("production"), {.text = STR("P04ik")}},
                                         {STR("run"), {CATALOG_INTEGER, {.integer = 5000}}}},
                                  b[] = {{STR("production"), {.text = STR("P04ik")}},
                                         {STR("run"), {CATALOG_INTEGER, {.integer = 6000}}},
                                         {STR("good"), {CATALOG_BOOLEAN, {.boolean = true}}}},
                                  c[] = {{STR("production"), {.text = STR("P05ic")}},
                                         {STR("weight"), {CATALOG_REAL, {.real = 0.5}}}};
        const struct catalog_replica ra[] = {{STR("file://n1/d/a"), STR("n1"), STR("local")},
                                             {STR("hpss:/x/a"), {0}, STR("hpss")}},
                                     rb[] = {{STR("file:/nfs/b"), {0}, STR("nfs")}},
                                     rc[] = {{STR("hpss:/x/c"), {0}, STR("hpss")}};
        const struct catalog_file files[] = {{STR("a"), true, 100, STR("sha256:aa"), a, 2, ra, 2},
                                             {STR("b"), true, 50, {0}, b, 3, rb, 1},
                                             {STR("c"), false, 0, {0}, c, 2, rc, 1}};

        put(p, files, 3);
}

static void queries(void **state)
{
        struct place *p = *state;

        put_some(p);
        assert_finds(p, "", "a b c");
        assert_finds(p, "production=P04ik", "a b");
        assert_finds(p, "production=P04ik,run=>5500", "b");
        assert_finds(p, "production!=P04ik", "c");
        assert_finds(p, "run!=1", "a b"); /* c has none */
        assert_finds(p, "nokey=1", "");
        assert_finds(p, "size<60", "b");
        assert_finds(p, "storage!=hpss", "a b");
        assert_finds(p, "storage=hpss", "a c");
        assert_finds(p, "host=n1", "a");
        assert_finds(p, "node!=n1", "a b c");
        assert_finds(p, "url=hpss:/x/*", "a c");
        assert_finds(p, "url=hpss:/x/*,host=n1", ""); /* of one replica both */
        assert_finds(p, "name=[ab]", "");
        assert_finds(p, "name=a||c", "a c");
        assert_finds(p, "limit=2", "a b");
        assert_finds(p, "where=run > 5500 || weight < 1", "b c");
        assert_finds(p, "production=P04ik,where=good", "b");
        assert_finds(p, "where=Name == \"c\" && Size =?= undefined", "c");
        assert_finds(p, "where=member(production, {\"P05ic\"})", "c");
        assert_refuses(p, "where=run >", CATALOG_INVALID, "where");
        assert_refuses(p, "where=eval(\"run\") > 1", CATALOG_INVALID, "eval");
        assert_refuses(p, "dataset=none", CATALOG_NOT_FOUND, "no dataset none");
        assert_refuses(p, "x", CATALOG_INVALID, "not a condition");
}

static int on_replicas(void *arg, const struct catalog_file *f)
{
        struct buf *b = arg;

        for (size_t i = 0; i < f->replica_count; i++)
                buf_printf(b, STR_FMT " ", STR_ARG(f->replicas[i].url));
        return 0;
}

static void replicas_that_are_left(void **state)
{
        struct place *p = *state;
        BUF_CLEANUP struct buf b = {0};
        struct catalog_found found;

        put_some(p);
        assert_int_equal(catalog_find(p->catalog,
                                      &(struct catalog_find){.query = STR("storage!=hpss,production=P04ik")},
                                      on_replicas, &b, &found, NULL),
                         0);
        assert_string_equal(buf_z(&b), "file://n1/d/a file:/nfs/b ");
}

static int on_whole(void *arg, const struct catalog_file *f)
{
        struct buf *b = arg;

        buf_printf(b, STR_FMT " %d %llu " STR_FMT " %zu %zu", STR_ARG(f->name), f->has_size,
                   (unsigned long long)f->size, STR_ARG(f->checksum), f->meta_count, f->replica_count);
        for (size_t i = 0; i < f->meta_count; i++)
                buf_printf(b, " " STR_FMT, STR_ARG(f->meta[i].key));
        return 0;
}

static void assert_whole(struct place *p, const char *name, const char *expected)
{
        BUF_CLEANUP struct buf b = {0};

        if (catalog_get(p->catalog, str_of(name), on_whole, &b, &p->err) != 0)
                fail_msg("%s", p->err.text);
        assert_string_equal(buf_z(&b), expected);
}

static void what_is_given_is_added(void **state)
{
        struct place *p = *state;
        const struct catalog_meta run = {STR("RUN"), {CATALOG_INTEGER, {.integer = 7}}};
        const struct catalog_replica more = {STR("file:/nfs/a"), {0}, STR("nfs")};
        const struct catalog_file given = {STR("a"), false, 0, {0}, &run, 1, &more, 1};
        struct catalog_counts counts;

        put_some(p);
        put(p, &given, 1);
        assert_whole(p, "a", "a 1 100 sha256:aa 2 3 production run");
        assert_finds(p, "run=7", "a");
        assert_finds(p, "run=5000", "");
        assert_finds(p, "storage=nfs", "a b");
        put(p, &given, 1); /* again: the same */
        assert_whole(p, "a", "a 1 100 sha256:aa 2 3 production run");
        assert_int_equal(
                catalog_put(p->catalog, &given, 1, &(struct catalog_put){.replace = true}, &counts, NULL), 0);
        assert_int_equal(counts.changed, 1);
        assert_whole(p, "a", "a 0 0  1 1 run");
        assert_finds(p, "production=P04ik", "b");
        assert_finds(p, "storage=hpss", "c");
        assert_finds(p, "size=100", "");
}

static void contradictions_change_nothing(void **state)
{
        struct place *p = *state;
        struct catalog_file files[] = {{.name = STR("new")},
                                       {.name = STR("a"), .has_size = true, .size = 99}};
        struct catalog_counts counts;

        put_some(p);
        assert_int_equal(catalog_put(p->catalog, files, 2, &(struct catalog_put){0}, &counts, &p->err),
                         CATALOG_CONFLICT);
        assert_non_null(strstr(p->err.text, "a: the catalog has 100 bytes, and 99 are given"));
        assert_finds(p, "", "a b c");
        files[1] = (struct catalog_file){.name = STR("a"), .checksum = STR("sha256:bb")};
        assert_int_equal(catalog_put(p->catalog, files, 2, &(struct catalog_put){0}, &counts, &p->err),
                         CATALOG_CONFLICT);
        assert_finds(p, "", "a b c");
        put(p, &(struct catalog_file){.name = STR("new")}, 1);
        assert_finds(p, "", "a b c new");
}

static void refused(struct place *p, struct catalog_file f, const char *says)
{
        struct catalog_counts counts;

        assert_int_equal(catalog_put(p->catalog, &f, 1, &(struct catalog_put){0}, &counts, &p->err),
                         CATALOG_INVALID);
        if (!strstr(p->err.text, says))
                fail_msg("%s", p->err.text);
}

static void bad_files(void **state)
{
        struct place *p = *state;
        static char long_name[CATALOG_NAME_MAX + 1];
        struct catalog_meta m = {STR("run"), {.text = STR("x")}};
        struct catalog_replica two[] = {{.url = STR("file:/a")}, {.url = STR("file:/a")}};

        memset(long_name, 'x', sizeof(long_name));
        refused(p, (struct catalog_file){0}, "no name");
        refused(p, (struct catalog_file){.name = str_make(long_name, sizeof(long_name))}, "1024 bytes");
        refused(p, (struct catalog_file){.name = STR("a\nb")}, "not allowed");
        refused(p, (struct catalog_file){.name = STR("a\xff")}, "not allowed");
        refused(p, (struct catalog_file){.name = STR("a"), .replicas = two, .replica_count = 2}, "twice");
        two[0].url = STR("/no/url");
        refused(p, (struct catalog_file){.name = STR("a"), .replicas = two, .replica_count = 1}, "no URL");
        m.key = STR("storage");
        refused(p, (struct catalog_file){.name = STR("a"), .meta = &m, .meta_count = 1},
                "not a metadata key");
        m.key = STR("run number");
        refused(p, (struct catalog_file){.name = STR("a"), .meta = &m, .meta_count = 1},
                "not a metadata key");
        m = (struct catalog_meta){STR("x"), {CATALOG_REAL, {.real = 1e308 * 10}}};
        refused(p, (struct catalog_file){.name = STR("a"), .meta = &m, .meta_count = 1}, "not a number");
        assert_finds(p, "", "");
}

static void removing(void **state)
{
        struct place *p = *state;
        struct str names[] = {STR("a"), STR("absent")};
        uint64_t removed;

        put_some(p);
        assert_int_equal(catalog_remove(p->catalog, names, 2, STR("hpss:/x/a"), &removed, NULL), 0);
        assert_int_equal(removed, 1);
        assert_finds(p, "storage=hpss", "c");
        assert_finds(p, "production=P04ik", "a b");
        assert_int_equal(catalog_remove(p->catalog, names, 2, STR_NONE, &removed, NULL), 0);
        assert_int_equal(removed, 1);
        assert_finds(p, "", "b c");
        assert_finds(p, "production=P04ik", "b");
        /* One with its name again is another file, behind the others. */
        put(p, &(struct catalog_file){.name = STR("a")}, 1);
        assert_finds(p, "", "b c a");
        assert_finds(p, "production=P04ik", "b");
}

static int on_dataset(void *arg, const struct catalog_dataset *d)
{
        buf_printf(arg, STR_FMT "(" STR_FMT " " STR_FMT " %zu)", STR_ARG(d->name), STR_ARG(d->owner),
                   STR_ARG(d->query), d->file_count);
        return 0;
}

static void datasets(void **state)
{
        struct place *p = *state;
        struct str list[] = {STR("c"), STR("a")}, unknown = STR("nobody");
        struct catalog_dataset d = {
                .name = STR("good"), .owner = STR("ann@x"), .query = STR("run=>1,limit=9")};
        BUF_CLEANUP struct buf b = {0};

        put_some(p);
        assert_int_equal(catalog_dataset_put(p->catalog, &d, NULL), 0);
        d = (struct catalog_dataset){
                .name = STR("some"), .owner = STR("bob@x"), .files = list, .file_count = 2};
        assert_int_equal(catalog_dataset_put(p->catalog, &d, NULL), 0);
        d = (struct catalog_dataset){.name = STR("both"), .query = STR("dataset=good,production=P04ik")};
        assert_int_equal(catalog_dataset_put(p->catalog, &d, NULL), 0);
        assert_finds(p, "dataset=good", "a b");
        assert_finds(p, "dataset=some", "a c");
        assert_finds(p, "dataset=some,production=P05ic", "c");
        assert_finds(p, "dataset=both,run>5000", "b");
        assert_int_equal(catalog_datasets(p->catalog, STR("good"), on_dataset, &b, NULL), 0);
        assert_string_equal(buf_z(&b), "some(bob@x  2)");
        d = (struct catalog_dataset){.name = STR("bad"), .files = &unknown, .file_count = 1};
        assert_int_equal(catalog_dataset_put(p->catalog, &d, &p->err), CATALOG_NOT_FOUND);
        d = (struct catalog_dataset){.name = STR("bad"), .query = STR("dataset=bad")};
        assert_int_equal(catalog_dataset_put(p->catalog, &d, &p->err), CATALOG_INVALID);
        /* A circle of two is found when it is used. */
        d = (struct catalog_dataset){.name = STR("good"), .query = STR("dataset=both")};
        assert_int_equal(catalog_dataset_put(p->catalog, &d, &p->err), 0);
        assert_refuses(p, "dataset=both", CATALOG_INVALID, "circle");
        assert_int_equal(catalog_dataset_remove(p->catalog, STR("some"), NULL), 0);
        assert_int_equal(catalog_dataset_remove(p->catalog, STR("some"), NULL), CATALOG_NOT_FOUND);
}

static void put_many(struct place *p, unsigned from, unsigned count)
{
        struct catalog_file *files = mem_array(NULL, count, sizeof(*files));
        struct catalog_meta *meta = mem_array(NULL, count, sizeof(*meta));
        char(*names)[16] = mem_array(NULL, count, sizeof(*names));

        for (unsigned i = 0; i < count; i++) {
                snprintf(names[i], sizeof(names[i]), "f%06u", from + i);
                meta[i] = (struct catalog_meta){STR("run"), {CATALOG_INTEGER, {.integer = from + i}}};
                files[i] = (struct catalog_file){.name = str_of(names[i]),
                                                 .has_size = true,
                                                 .size = 1,
                                                 .meta = &meta[i],
                                                 .meta_count = 1};
        }
        put(p, files, count);
        free(files);
        free(meta);
        free(names);
}

static int stop_at_third(void *arg, const struct catalog_file *f)
{
        unsigned *n = arg;

        (void)f;
        return ++*n == 3 ? 77 : 0;
}

/* Pages, whatever ends them, tell each file once. */
static void pages(void **state)
{
        struct place *p = *state;
        struct catalog_find how = {.query = STR("run[]1000-8999,limit=7000"), .page = 999};
        BUF_CLEANUP struct buf b = {0};
        struct catalog_found found;
        unsigned n = 0, count = 0;

        put_many(p, 0, 10000);
        do {
                assert_int_equal(catalog_find(p->catalog, &how, on_name, &b, &found, NULL), 0);
                assert_true(found.files <= 999);
                how.after = found.next;
                how.given += found.files;
                count++;
        } while (found.next);
        assert_int_equal(how.given, 7000);
        assert_int_equal(count, 8);
        assert_true(str_starts(buf_view(&b), STR("f001000 f001001 ")));
        assert_true(str_ends(buf_view(&b), STR(" f007998 f007999")));
        assert_int_equal(b.n, 7000 * 8 - 1);
        /* A deadline that has passed long ago: each page looks at something all the same. */
        how = (struct catalog_find){.query = STR("run[]1000-8999"), .count = true, .deadline_ms = 1};
        for (count = 0, n = 0; n == 0 || how.after; n++) {
                assert_int_equal(catalog_find(p->catalog, &how, NULL, NULL, &found, NULL), 0);
                count += (unsigned)found.files;
                how.after = found.next;
                assert_true(n < 100000);
        }
        assert_int_equal(count, 8000);
        assert_true(n > 2);
        n = 0;
        assert_int_equal(catalog_find(p->catalog, &(struct catalog_find){.query = STR("run>8000")},
                                      stop_at_third, &n, &found, NULL),
                         77);
        assert_int_equal(catalog_find(p->catalog,
                                      &(struct catalog_find){
                                              .query = STR("run>8000"), .after = found.next, .count = true},
                                      NULL, NULL, &found, NULL),
                         0);
        assert_int_equal(found.files, 1999 - 3);
}

static void too_much_at_once(void **state)
{
        struct place *p = *state;
        struct catalog_counts counts;
        struct catalog_file *files = mem_array(NULL, CATALOG_BATCH_MAX + 1, sizeof(*files));

        for (size_t i = 0; i <= CATALOG_BATCH_MAX; i++)
                files[i] = (struct catalog_file){.name = STR("one")};
        assert_int_equal(catalog_put(p->catalog, files, CATALOG_BATCH_MAX + 1, &(struct catalog_put){0},
                                     &counts, &p->err),
                         CATALOG_INVALID);
        assert_int_equal(
                catalog_put(p->catalog, files, CATALOG_BATCH_MAX, &(struct catalog_put){0}, &counts, &p->err),
                0);
        assert_int_equal(counts.added, 1);
        assert_int_equal(counts.changed, CATALOG_BATCH_MAX - 1);
        free(files);
}

/* More different keys than a catalog takes: the batch that has one too many is not in. */
static void too_many_keys(void **state)
{
        struct place *p = *state;
        struct catalog_counts counts;
        char key[16];
        int r = 0;
        unsigned i;

        for (i = 0; r == 0 && i <= CATALOG_KEYS_MAX; i++) {
                struct catalog_meta m = {.value = {CATALOG_INTEGER, {.integer = i}}};
                struct catalog_file f = {.name = STR("f"), .meta = &m, .meta_count = 1};

                snprintf(key, sizeof(key), "k%u", i);
                m.key = str_of(key);
                r = catalog_put(p->catalog, &f, 1, &(struct catalog_put){.replace = true}, &counts, &p->err);
        }
        assert_int_equal(r, CATALOG_INVALID);
        assert_int_equal(i, CATALOG_KEYS_MAX + 1);
        assert_finds(p, "k999=999", "f");
        assert_finds(p, "k1000=1000", "");
}

/* ---- on disk */

static void stays_when_killed(void **state)
{
        struct place *p = *state;
        int pipes[2], status;
        char byte;
        pid_t pid;

        if (!on_disk)
                return;
        catalog_close(p->catalog);
        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        if (pid == 0) {
                place_open(p);
                put_some(p);
                put_many(p, 0, 5000);
                if (write(pipes[1], "x", 1) == 1)
                        pause();
                _exit(1);
        }
        assert_int_equal(read(pipes[0], &byte, 1), 1);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        close(pipes[0]);
        close(pipes[1]);
        place_open(p);
        assert_finds(p, "production=P04ik", "a b");
        assert_finds(p, "run[]4998-5001", "a f004998 f004999");
        put_many(p, 5000, 10); /* goes on with new numbers */
        assert_finds(p, "run[]5008-5009", "f005008 f005009");
}

static void only_for_its_user(void **state)
{
        struct place *p = *state;
        struct stat st;

        if (!on_disk)
                return;
        assert_int_equal(stat(buf_z(&p->address) + strlen("sqlite:"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void write_over(const char *path, long at, const char *bytes, size_t n)
{
        FILE *f = fopen(path, "r+b");

        assert_non_null(f);
        assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        fclose(f);
}

/* What is not a catalog is refused, and so are pages that have changed. */
static void damage(void **state)
{
        struct place *p = *state;
        const char *path = buf_z(&p->address) + strlen("sqlite:");
        BUF_CLEANUP struct buf b = {0};
        struct catalog_found found;
        struct stat st;
        int r;

        if (!on_disk)
                return;
        put_many(p, 0, 10000);
        assert_int_equal(catalog_check(p->catalog, &p->err), 0);
        catalog_close(p->catalog);
        p->catalog = NULL;
        assert_int_equal(stat(path, &st), 0);
        for (long at = 8192 + 2000; at < st.st_size; at += 40960)
                write_over(path, at, "\x5a\xa5\x5a\xa5", 4);
        r = catalog_open(buf_z(&p->address), &p->catalog, &p->err);
        if (r == 0) {
                assert_int_equal(catalog_check(p->catalog, &p->err), CATALOG_CORRUPT);
                r = catalog_find(p->catalog, &(struct catalog_find){.query = STR("run>=0")}, on_name, &b,
                                 &found, &p->err);
                catalog_close(p->catalog);
                p->catalog = NULL;
        }
        assert_int_equal(r, CATALOG_CORRUPT);
        assert_non_null(strstr(p->err.text, "is damaged"));
        write_over(path, 0, "this is no database, but a text", 31);
        assert_int_equal(catalog_open(buf_z(&p->address), &p->catalog, &p->err), CATALOG_CORRUPT);
        p->catalog = NULL;
        assert_int_equal(catalog_open("nothing:x", &p->catalog, &p->err), CATALOG_INVALID);
        p->catalog = NULL;
}

/* ---- the log of changes */

struct changes {
        struct buf v[64];
        size_t n;
        int fails; /* the result of the next change; 0: it is taken */
};

static int on_change(void *arg, struct catalog_position at, struct str change, struct err *err)
{
        struct changes *l = arg;
        struct catalog_position said;

        assert_int_equal(catalog_change_at(change, &said, NULL), 0);
        assert_true(said.number == at.number && said.id == at.id);
        if (l->fails)
                return err_set(err, l->fails, "the log failed");
        buf_str(&l->v[l->n++], change);
        return 0;
}

static int on_every(void *arg, const struct catalog_file *f)
{
        struct buf *b = arg;

        buf_printf(b, STR_FMT " %d %llu " STR_FMT, STR_ARG(f->name), f->has_size, (unsigned long long)f->size,
                   STR_ARG(f->checksum));
        for (size_t i = 0; i < f->meta_count; i++)
                buf_printf(b, " " STR_FMT ":%d:%lld", STR_ARG(f->meta[i].key), f->meta[i].value.type,
                           f->meta[i].value.type == CATALOG_INTEGER ? (long long)f->meta[i].value.integer
                                                                    : 0);
        for (size_t i = 0; i < f->replica_count; i++)
                buf_printf(b, " " STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(f->replicas[i].url),
                           STR_ARG(f->replicas[i].host), STR_ARG(f->replicas[i].store));
        buf_addz(b, "\n");
        return 0;
}

static int on_saved(void *arg, const struct catalog_dataset *d)
{
        buf_printf(arg, STR_FMT " " STR_FMT " " STR_FMT " %zu\n", STR_ARG(d->name), STR_ARG(d->owner),
                   STR_ARG(d->query), d->file_count);
        return 0;
}

/* Writes all that a catalog has, and the cursors of its pages of one file. */
static void write_all(struct catalog *c, struct buf *to)
{
        struct catalog_find how = {.page = 1, .meta = true};
        struct catalog_found found;

        do {
                assert_int_equal(catalog_find(c, &how, on_every, to, &found, NULL), 0);
                buf_printf(to, "%llu\n", (unsigned long long)found.next);
                how.after = found.next;
        } while (found.next);
        assert_int_equal(catalog_datasets(c, STR_NONE, on_saved, to, NULL), 0);
}

static void assert_same(struct catalog *a, struct catalog *b)
{
        BUF_CLEANUP struct buf of_a = {0}, of_b = {0};

        write_all(a, &of_a);
        write_all(b, &of_b);
        assert_string_equal(buf_z(&of_a), buf_z(&of_b));
        assert_true(catalog_position(a).number == catalog_position(b).number &&
                    catalog_position(a).id == catalog_position(b).id);
}

/* Opens a copy of the catalog's file. */
static struct catalog *copy_open(struct place *p)
{
        BUF_CLEANUP struct buf path = {0};
        struct catalog *copy = NULL;

        buf_printf(&path, "sqlite:%s/copy.db", p->folder);
        unlink(buf_z(&path) + strlen("sqlite:"));
        if (store_copy(buf_z(&p->address) + strlen("sqlite:"), buf_z(&path) + strlen("sqlite:"), &p->err) !=
                    0 ||
            catalog_open(buf_z(&path), &copy, &p->err) != 0)
                fail_msg("%s", p->err.text);
        return copy;
}

static void apply_all(struct changes *log, struct catalog *to)
{
        for (size_t i = 0; i < log->n; i++) {
                assert_int_equal(catalog_apply(to, buf_view(&log->v[i]), NULL), 0);
                buf_deinit(&log->v[i]);
        }
        log->n = 0;
}

/* The changes of a catalog make the same of a copy, with the same numbers of files. */
static void changes_are_applied(void **state)
{
        struct place *p = *state;
        struct changes log = {0};
        struct catalog *copy;
        struct catalog_counts counts;
        uint64_t removed;
        const struct str names[] = {STR("b"), STR("nothing")}, listed[] = {STR("c"), STR("a")};
        const struct catalog_file again = {.name = STR("a"), .has_size = true, .size = 7};

        if (!on_disk)
                return;
        assert_int_equal(catalog_position(p->catalog).number, 0);
        assert_int_equal(catalog_log(p->catalog, on_change, &log, &p->err), 0);
        assert_int_equal(catalog_position(p->catalog).number, 1);
        copy = copy_open(p);
        assert_same(p->catalog, copy);
        put_some(p);
        assert_int_equal(catalog_put(p->catalog, &again, 1, &(struct catalog_put){0}, &counts, &p->err),
                         CATALOG_CONFLICT); /* and is not logged */
        assert_int_equal(
                catalog_put(p->catalog, &again, 1, &(struct catalog_put){.replace = true}, &counts, &p->err),
                0);
        assert_int_equal(catalog_remove(p->catalog, names, 2, STR_NONE, &removed, &p->err), 0);
        put_many(p, 0, 3);
        assert_int_equal(catalog_remove(p->catalog, listed, 1, STR("hpss:/x/c"), &removed, &p->err), 0);
        assert_int_equal(catalog_dataset_put(p->catalog,
                                             &(struct catalog_dataset){.name = STR("list"),
                                                                       .owner = STR("u"),
                                                                       .files = listed,
                                                                       .file_count = 2},
                                             &p->err),
                         0);
        assert_int_equal(catalog_dataset_put(p->catalog,
                                             &(struct catalog_dataset){.name = STR("gone"),
                                                                       .owner = STR("u"),
                                                                       .query = STR("dataset=list")},
                                             &p->err),
                         0);
        assert_int_equal(catalog_dataset_remove(p->catalog, STR("gone"), &p->err), 0);
        assert_int_equal(log.n, 8);
        apply_all(&log, copy);
        assert_same(p->catalog, copy);
        catalog_close(copy);
}

/* A copy that was made later goes on from there, also after it was closed; other changes are refused. */
static void a_copy_goes_on(void **state)
{
        struct place *p = *state;
        struct changes log = {0};
        struct catalog *copy;

        if (!on_disk)
                return;
        assert_int_equal(catalog_log(p->catalog, on_change, &log, &p->err), 0);
        put_some(p);
        copy = copy_open(p);
        assert_int_equal(catalog_apply(copy, buf_view(&log.v[0]), &p->err), CATALOG_CORRUPT); /* it has it */
        buf_deinit(&log.v[0]);
        log.n = 0;
        put_many(p, 0, 9000);
        put_many(p, 9000, 100);
        assert_int_equal(catalog_apply(copy, buf_view(&log.v[1]), &p->err), CATALOG_CORRUPT); /* a gap */
        log.v[0].n--;
        assert_int_equal(catalog_apply(copy, buf_view(&log.v[0]), &p->err), CATALOG_CORRUPT);
        log.v[0].n++;
        apply_all(&log, copy);
        assert_same(p->catalog, copy);
        catalog_close(copy);
}

/* What the log does not take is not in the catalog; what it may have taken has to be read from it. */
static void a_log_that_fails(void **state)
{
        struct place *p = *state;
        struct changes log = {.fails = CATALOG_FULL};
        struct catalog_counts counts;
        const struct catalog_file d = {.name = STR("d")};

        put_some(p);
        assert_int_equal(catalog_log(p->catalog, on_change, &log, &p->err), 0);
        assert_int_equal(catalog_put(p->catalog, &d, 1, &(struct catalog_put){0}, &counts, &p->err),
                         CATALOG_FULL);
        assert_false(catalog_is_behind(p->catalog));
        assert_finds(p, "", "a b c");
        log.fails = 0;
        assert_int_equal(catalog_put(p->catalog, &d, 1, &(struct catalog_put){0}, &counts, &p->err), 0);
        log.fails = -ECANCELED;
        assert_int_equal(catalog_put(p->catalog, &(struct catalog_file){.name = STR("e")}, 1,
                                     &(struct catalog_put){0}, &counts, &p->err),
                         -ECANCELED);
        assert_true(catalog_is_behind(p->catalog));
        log.fails = 0;
        assert_int_equal(catalog_put(p->catalog, &d, 1, &(struct catalog_put){0}, &counts, &p->err), -EAGAIN);
        assert_finds(p, "", "a b c d");
        assert_int_equal(log.n, 1);
        assert_int_equal(catalog_log(p->catalog, NULL, NULL, &p->err), 0);
        assert_int_equal(catalog_position(p->catalog).number, 0);
        buf_deinit(&log.v[0]);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(queries, set_up, tear_down),
                cmocka_unit_test_setup_teardown(replicas_that_are_left, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_given_is_added, set_up, tear_down),
                cmocka_unit_test_setup_teardown(contradictions_change_nothing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(bad_files, set_up, tear_down),
                cmocka_unit_test_setup_teardown(removing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(datasets, set_up, tear_down),
                cmocka_unit_test_setup_teardown(pages, set_up, tear_down),
                cmocka_unit_test_setup_teardown(too_much_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(too_many_keys, set_up, tear_down),
                cmocka_unit_test_setup_teardown(stays_when_killed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(only_for_its_user, set_up, tear_down),
                cmocka_unit_test_setup_teardown(damage, set_up, tear_down),
                cmocka_unit_test_setup_teardown(changes_are_applied, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_copy_goes_on, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_log_that_fails, set_up, tear_down),
        };

        if (argc != 2)
                return 2;
        on_disk = strcmp(argv[1], "file") == 0;
        return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
}
