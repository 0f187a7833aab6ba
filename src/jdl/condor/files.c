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

/* A comma-separated list, without blanks around the commas. Commas inside macros stay. */
static void tidy_list(struct str text, struct buf *out)
{
        unsigned depth = 0;
        size_t start = 0;

        for (size_t i = 0; i <= text.n; i++) {
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

static int file_list(struct reader *r, const char *keyword, const char *attribute, bool *ret_given)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf list = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get(r, keyword, &e);

        if (rc <= 0)
                return rc;
        tidy_list(entry_unquoted(&e), &list);
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

/* Does the description say what is to travel, or need a folder of the job's own? */
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
        /* What HTCondor's condor_utils/enum_utils.cpp takes, and the word that it keeps for it. */
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
