/* Folders and files: initialdir and the transfers. The checks are those of condor_submit. */
#include <errno.h>

#include "jdl/condor/reader.h"

static int initialdir(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf path = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get(r, "initialdir", &e);

        if (rc == 0)
                attribute_default_string(r, "Iwd", r->world->cwd ? r->world->cwd : "/");
        if (rc > 0) {
                rc = path_from_cwd(r, &e, entry_unquoted(&e), "DroverInitialFolder", &path);
                if (rc == 0)
                        rc = attribute_string(r, "Iwd", &e, buf_view(&path));
        }
        return rc;
}

/* Appends a comma-separated list without blanks around the commas. Commas inside macros stay. */
static void tidy_list(struct str text, struct buf *out)
{
        unsigned depth = 0;
        size_t start = 0;

        for (size_t i = 0; text.n && i <= text.n; i++) {
                struct str one;

                if (i < text.n && text.p[i] == '(')
                        depth++;
                else if (i < text.n && text.p[i] == ')' && depth)
                        depth--;
                if (i < text.n && (depth || text.p[i] != ','))
                        continue;
                one = str_trim(str_make(text.p + start, i - start));
                start = i + 1;
                if (one.n && out->n)
                        buf_char(out, ',');
                buf_str(out, one);
        }
}

int files_image(struct reader *r, const struct entry *e, struct str *ret_path, struct str *ret_name)
{
        static const char *const engines[] = {"docker://", "oras://", "library://", "shub://"};
        ENTRY_CLEANUP struct entry own = {0}, should = {0};
        struct str path = str_trim(entry_unquoted(e));
        bool sent = !str_starts(path, STR("/")) && (str_ends(path, STR(".sif")) || str_ends(path, STR("/")));
        int rc = sent ? entry_get(r, "transfer_container", &own) : 0;

        if (rc > 0)
                rc = entry_boolean(r, &own, &sent);
        if (rc >= 0 && sent)
                rc = entry_get(r, "should_transfer_files", &should);
        for (size_t i = 0; i < 3; i++) {
                static const char *const never[] = {"NO", "FALSE", "NEVER"};

                sent = sent && !str_ieqz(entry_unquoted(&should), never[i]);
        }
        if (rc < 0 || !sent)
                return rc < 0 ? rc : 0;
        for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
                if (str_starts(path, str_of(engines[i])))
                        return 0; /* the place's engine fetches it */
        if (e->late) {
                reader_warn(
                        r, e->at,
                        "container_image: a file whose name differs from job to job is not sent by itself; "
                        "name it in transfer_input_files");
                return 0;
        }
        while (path.n > 1 && path.p[path.n - 1] == '/')
                path.n--;
        *ret_path = path;
        *ret_name = str_skip(path, (size_t)(str_rfind(path, '/') + 1));
        return 1;
}

/* The image of a container behind the inputs, unless it is among them. */
static int add_image(struct reader *r, struct buf *list)
{
        ENTRY_CLEANUP struct entry e = {0};
        struct str path, name, rest = buf_view(list), one;
        int rc = entry_get(r, "container_image", &e);

        if (rc > 0)
                rc = files_image(r, &e, &path, &name);
        if (rc <= 0)
                return rc;
        while (str_cut(&rest, ',', &one))
                if (str_eq(str_skip(one, (size_t)(str_rfind(one, '/') + 1)), name))
                        return 0;
        if (list->n)
                buf_char(list, ',');
        buf_str(list, path);
        return 0;
}

static int file_list(struct reader *r, const char *keyword, const char *attribute, bool *ret_given)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf list = {.max = CONDOR_VALUE_MAX};
        bool inputs = strcmp(attribute, "TransferInput") == 0;
        int rc = entry_get(r, keyword, &e), added;

        if (rc < 0)
                return rc;
        tidy_list(entry_unquoted(&e), &list);
        added = inputs ? add_image(r, &list) : 0;
        if (added < 0)
                return added;
        if (rc == 0) {
                if (list.n)
                        attribute_default_string(r, attribute, buf_z(&list));
                return 0;
        }
        *ret_given = list.n > 0;
        return attribute_string(r, attribute, &e, buf_view(&list));
}

/* Inputs are named by the last part of their path, so relative paths are kept where they have no folder in
 * them. */
static int relative_paths(struct reader *r)
{
        ENTRY_CLEANUP struct entry keep = {0}, list = {0};
        bool wanted = false;
        struct str rest, one;
        int rc = entry_get(r, "preserve_relative_paths", &keep);

        if (rc > 0)
                rc = entry_boolean(r, &keep, &wanted);
        if (rc == 0 && wanted)
                rc = entry_get(r, "transfer_input_files", &list);
        rest = entry_unquoted(&list);
        while (rc > 0 && str_cut(&rest, ',', &one)) {
                one = str_trim(one);
                if (one.n && (list.late || (one.p[0] != '/' && str_find(one, '/') >= 0 &&
                                            str_search(one, STR("://")) < 0)))
                        return entry_fail(
                                r, &keep,
                                "inputs are named by the last part of their path, and '" STR_FMT
                                "' would be elsewhere; send the folder itself, without a '/' behind it",
                                STR_ARG(one));
        }
        return rc < 0 ? rc : 0;
}

/* Pairs of name=path, parted by ';'. */
static int remaps(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        struct str rest, one;
        int rc = entry_get(r, "transfer_output_remaps", &e);

        if (rc <= 0)
                return rc;
        rest = entry_unquoted(&e);
        while (!e.late && str_cut(&rest, ';', &one))
                if (str_trim(one).n && str_find(one, '=') < 1)
                        return entry_fail(r, &e, "'" STR_FMT "' is not name=path", STR_ARG(str_trim(one)));
        return attribute_string(r, "TransferOutputRemaps", &e, entry_unquoted(&e));
}

/* The value of a keyword that is one of a few words; NULL when it isn't given. */
static int choice(struct reader *r, const char *keyword, const char *const *words, const char *list,
                  const char **ret)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, keyword, &e);

        *ret = NULL;
        if (rc <= 0)
                return rc;
        for (; *words; words++) {
                if (str_ieqz(entry_unquoted(&e), *words)) {
                        *ret = *words;
                        return 0;
                }
        }
        return entry_fail(r, &e, "'" STR_FMT "' is not known; it is one of %s", STR_ARG(entry_unquoted(&e)),
                          list);
}

static int fail_at_queue(struct reader *r, const char *text)
{
        return reader_fail(r, (struct place){r->files[0], r->part->line}, "%s", text);
}

/* Returns whether the description names files to transfer, or needs a folder of the job's own. */
static int says_of_files(struct reader *r)
{
        static const char *const said[] = {"transfer_input_files",
                                           "transfer_output_files",
                                           "when_to_transfer_output",
                                           "output_destination",
                                           "transfer_output_remaps",
                                           "transfer_checkpoint_files",
                                           "checkpoint_exit_code",
                                           "container_image",
                                           "docker_image",
                                           "dataset"};

        for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
                ENTRY_CLEANUP struct entry e = {0};
                int rc = entry_get(r, said[i], &e);

                if (rc != 0)
                        return rc;
        }
        return 0;
}

static int transfers(struct reader *r)
{
        /* Values that HTCondor's condor_utils/enum_utils.cpp accepts, and the word that it stores for each.
         */
        static const char *const shoulds[] = {"YES",   "TRUE",      "ALWAYS", "NO",       "FALSE",
                                              "NEVER", "IF_NEEDED", "AUTO",   "IN_PLACE", NULL};
        static const char *const kept[] = {"YES", "YES",       "YES",       "NO",      "NO",
                                           "NO",  "IF_NEEDED", "IF_NEEDED", "IN_PLACE"};
        static const char *const whens[] = {"ON_EXIT", "ON_SUCCESS", "NEVER", "ON_EXIT_OR_EVICT", NULL};
        const char *should, *when;
        bool inputs = false, outputs = false;
        int rc = choice(r, "should_transfer_files", shoulds, "YES, NO, IF_NEEDED and IN_PLACE", &should);

        for (size_t i = 0; should && shoulds[i]; i++)
                if (should == shoulds[i]) {
                        should = kept[i];
                        break;
                }
        if (rc >= 0)
                rc = choice(r, "when_to_transfer_output", whens, "ON_EXIT, ON_SUCCESS and ON_EXIT_OR_EVICT",
                            &when);
        if (rc >= 0)
                rc = file_list(r, "transfer_input_files", "TransferInput", &inputs);
        if (rc >= 0)
                rc = file_list(r, "transfer_output_files", "TransferOutput", &outputs);
        if (rc < 0)
                return rc;
        if (!should && r->universe == UNIVERSE_LOCAL && !inputs && !outputs && !when)
                should = "NO"; /* it runs where its files are */
        if (!should && r->options->filesystem_domain) {
                rc = says_of_files(r);
                if (rc < 0)
                        return rc;
                should = rc == 0 ? "IN_PLACE" : NULL;
        }
        if (should && strcmp(should, "NO") == 0) {
                if (inputs || outputs)
                        return fail_at_queue(r, "should_transfer_files = NO contradicts transfer_input_files "
                                                "and transfer_output_files; leave one out");
                if (when && strcmp(when, "NEVER") != 0)
                        return fail_at_queue(r, "should_transfer_files = NO contradicts "
                                                "when_to_transfer_output; leave one out");
        } else {
                if (when && strcmp(when, "NEVER") == 0)
                        return fail_at_queue(
                                r, "when_to_transfer_output = NEVER needs should_transfer_files = NO");
                attribute_default_string(r, "WhenToTransferOutput", when ? when : "ON_EXIT");
        }
        attribute_default_string(r, "ShouldTransferFiles", should ? should : "IF_NEEDED");
        if ((!should || strcmp(should, "YES") != 0) && r->options->filesystem_domain)
                attribute_default_string(r, "FileSystemDomain", r->options->filesystem_domain);
        rc = relative_paths(r);
        return rc < 0 ? rc : remaps(r);
}

int files_make(struct reader *r)
{
        int rc = initialdir(r);

        return rc < 0 ? rc : transfers(r);
}
