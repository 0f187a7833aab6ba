/* Placement jobs: universe = data, in the words of Stork (Condor 6.8 manual, "Stork Applications").
 *
 * For the core a placement job is a job like any other: what it reads is its TransferInput, where it writes
 * is its OutputDestination, so stores, labels and what a place costs are known from these. What it does is in
 * attributes of its own (DapType, SrcUrl, ...), of which the server makes the words for the mover. */
#include <errno.h>

#include "base/format/quantity.h"
#include "jdl/condor/reader.h"
#include "jdl/form/placement_words.h"

#define RETRIES_MAX    1000
#define CRASHES        "3" /* maximum restarts of a mover that died */
#define DURATION_MAX   31536000u * 10
#define OUTPUT_MIB_MAX 900000000u /* the core takes no larger numbers */

static int word_of(struct reader *r, const char *keyword, const char *attribute, bool (*good)(struct str),
                   const char *is)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, keyword, &e);

        if (rc <= 0)
                return rc;
        if (!e.late && !good(entry_unquoted(&e)))
                return entry_fail(r, &e, "'" STR_FMT "' is not %s", STR_ARG(str_head(entry_unquoted(&e), 80)),
                                  is);
        return attribute_string(r, attribute, &e, entry_unquoted(&e));
}

static bool is_third(struct str s)
{
        return str_ieqz(s, "auto") || str_ieqz(s, "never") || str_ieqz(s, "always");
}

static bool is_verify(struct str s)
{
        return str_ieqz(s, "store") || str_ieqz(s, "read");
}

/* "7200", "2 hours". */
static int seconds_of(struct reader *r, const char *keyword, const char *attribute)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf number = {0};
        uint64_t seconds;
        int rc = entry_get(r, keyword, &e);

        if (rc <= 0)
                return rc;
        if (e.late || !placement_seconds(entry_unquoted(&e), &seconds) || seconds == 0 ||
            seconds > DURATION_MAX)
                return entry_fail(r, &e,
                                  "'" STR_FMT "' is not a time: write seconds, or 90 minutes, 2 hours, 1 day",
                                  STR_ARG(str_head(entry_unquoted(&e), 60)));
        buf_printf(&number, "%llu", (unsigned long long)seconds);
        return attribute_expression(r, attribute, &e, buf_view(&number));
}

static int retries(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf number = {0};
        uint64_t n;
        int rc = entry_get(r, "max_retry", &e);

        if (rc <= 0)
                return rc;
        if (e.late || str_to_u64(entry_unquoted(&e), &n) != 0 || n > RETRIES_MAX)
                return entry_fail(r, &e, "'" STR_FMT "' is no number from 0 to %d",
                                  STR_ARG(str_head(entry_unquoted(&e), 60)), RETRIES_MAX);
        buf_printf(&number, "%llu", (unsigned long long)n + 1);
        return attribute_expression(r, "DapTries", &e, buf_view(&number));
}

/* "2G", "100 MB": what a job writes at most, in MiB. */
int placement_size(struct reader *r, const char *keyword)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf mib = {0};
        uint64_t bytes;
        int rc = entry_get(r, keyword, &e);

        if (rc <= 0)
                return rc;
        if (e.late || quantity_size(entry_unquoted(&e), &bytes) != 0 || bytes == 0 ||
            bytes >> 20 > OUTPUT_MIB_MAX)
                return entry_fail(r, &e,
                                  "'" STR_FMT
                                  "' is not a size: write 2G or 100 MB, the same for all jobs of a queue "
                                  "statement",
                                  STR_ARG(str_head(entry_unquoted(&e), 60)));
        buf_printf(&mib, "%llu", (unsigned long long)((bytes - 1) >> 20) + 1);
        return attribute_expression(r, "TransferOutputSizeMB", &e, buf_view(&mib));
}

/* Appends a URL unchanged, and a path of this machine as a URL. */
static int url_of(struct reader *r, const struct entry *e, struct buf *out)
{
        BUF_CLEANUP struct buf path = {.max = CONDOR_VALUE_MAX};
        struct str text = entry_unquoted(e);
        int rc;

        if (str_search(text, STR("://")) >= 0 ||
            (e->late && !str_starts(text, STR("/")) && text.p[0] == '$')) {
                r->local_files |= str_istarts(text, STR("file://"));
                buf_str(out, text);
                return 0;
        }
        rc = path_from_cwd(r, e, text, "DroverDataFolder", &path);
        r->local_files = true;
        buf_addz(out, "file://");
        buf_str(out, buf_view(&path));
        if (str_ends(text, STR("/")) && !str_ends(buf_view(out), STR("/")))
                buf_char(out, '/');
        return rc;
}

/* Finds out whether some rows have a path, or a URL of a file. */
static void look_at_rows(struct reader *r, const struct entry *e)
{
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
        struct sample s;

        if (!e->late)
                return;
        sample_start(&s, r, false);
        for (unsigned n = 0; n < 100 && sample_next(&s); n++, buf_reset(&value))
                if (sample_expand(&s, entry_unquoted(e), &value, NULL, NULL) == 0 &&
                    (str_starts(buf_view(&value), STR("/")) || str_istarts(buf_view(&value), STR("file://"))))
                        r->local_files = true;
}

/* `words` is what listings show as the job's arguments; *late: it differs from job to job. */
static int url(struct reader *r, const char *keyword, const char *attribute, const char *known_as,
               struct buf *words, bool *late, bool *ret_given)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get(r, keyword, &e);

        *ret_given = rc > 0;
        if (rc <= 0)
                return rc;
        rc = url_of(r, &e, &text);
        look_at_rows(r, &e);
        buf_printf(words, " " STR_FMT, STR_ARG(buf_view(&text)));
        *late |= e.late;
        if (rc == 0)
                rc = attribute_string(r, attribute, &e, buf_view(&text));
        if (rc == 0 && known_as)
                rc = attribute_string(r, known_as, &e, buf_view(&text));
        return rc;
}

static int placement_missing(struct reader *r, const char *keyword, const char *type)
{
        return reader_fail(r, (struct place){r->files[0], r->part->line},
                           "a placement job of dap_type %s needs %s", type, keyword);
}

static int needs(struct reader *r, const char *keyword, const char *type)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, keyword, &e);

        return rc == 0 ? placement_missing(r, keyword, type) : rc;
}

int placement_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry type = {0};
        BUF_CLEANUP struct buf words = {.max = 2 * CONDOR_VALUE_MAX};
        bool src = false, dest = false, late = false;
        int rc = entry_get(r, "dap_type", &type);
        struct str name = rc > 0 ? entry_unquoted(&type) : STR("transfer");
        const char *op = rc < 0 || type.late ? NULL : placement_type(name);

        if (rc < 0)
                return rc;
        if (!op)
                return entry_fail(r, &type,
                                  "'" STR_FMT "' is not known; it is one of transfer, rm, mkdir, stage, "
                                  "verify, reserve and release",
                                  STR_ARG(str_head(name, 40)));
        bool lots = !strcmp(op, "reserve") || !strcmp(op, "release");
        bool writes = !strcmp(op, "rm") || !strcmp(op, "mkdir") || lots, copies = !strcmp(op, "transfer");
        r->local_files = false;
        attribute_default_string(r, "DapType", op);
        buf_addz(&words, op);
        rc = url(r, "src_url", "SrcUrl", writes ? "OutputDestination" : "TransferInput", &words, &late, &src);
        if (rc >= 0 && lots && !src)
                rc = url(r, "dest_url", "SrcUrl", "OutputDestination", &words, &late, &src);
        else if (rc >= 0)
                rc = url(r, "dest_url", "DestUrl", copies ? "OutputDestination" : NULL, &words, &late, &dest);
        if (rc >= 0 && lots)
                rc = needs(r, "reserve_id", op);
        if (rc >= 0 && !strcmp(op, "reserve"))
                rc = needs(r, "reserve_size", op);
        if (rc >= 0)
                rc = placement_size(r, "reserve_size");
        if (rc >= 0)
                rc = seconds_of(r, "duration", "ReserveDuration");
        if (rc >= 0 && !src)
                rc = placement_missing(r, "src_url", op);
        if (rc >= 0 && copies && !dest)
                rc = placement_missing(r, "dest_url", op);
        if (rc >= 0)
                rc = word_of(r, "alt_protocols", "AltProtocols", placement_alternatives,
                             "a list of pairs, as in https-https, ftp-sftp");
        if (rc >= 0)
                rc = word_of(r, "checksum", "DapChecksum", placement_checksum,
                             "a checksum, as in sha256:HEX, adler32:HEX or md5:HEX");
        if (rc >= 0)
                rc = word_of(r, "third_party", "DapThirdParty", is_third, "auto, never or always");
        if (rc >= 0 && copies && settings_get(r, STR("register_outputs"))) /* the bytes are summed here */
                attribute_default_string(r, "DapThirdParty", "never");
        if (rc >= 0)
                rc = word_of(r, "verify_copy", "DapVerify", is_verify, "store or read");
        if (rc >= 0)
                rc = retries(r);
        if (rc >= 0)
                rc = seconds_of(r, "restart_in", "DapRestartIn");
        if (rc >= 0)
                rc = seconds_of(r, "give_up_after", "DapGiveUpAfter");
        if (rc >= 0 && !strcmp(op, "verify") && !form_get(r->part, STR("DapChecksum")))
                rc = placement_missing(r, "checksum", op);
        if (rc < 0)
                return rc;
        attribute_default_string(r, "Cmd", "drover-mover");
        type.late = late;
        rc = attribute_string(r, "Args", &type, buf_view(&words));
        if (rc < 0)
                return rc;
        attribute_default(r, "TransferExecutable", "false");
        attribute_default_string(r, "Iwd", r->world->cwd ? r->world->cwd : "/");
        attribute_default_string(r, "ShouldTransferFiles", "YES");
        attribute_default_string(r, "WhenToTransferOutput", "ON_EXIT");
        if (r->options->filesystem_domain)
                attribute_default_string(r, "FileSystemDomain", r->options->filesystem_domain);
        return 0;
}

/* A mover that crashes is no word about its job; one that says that it failed is. */
void placement_policy(struct reader *r)
{
        if (form_get(r->part, STR("OnExitRemove")))
                return;
        attribute_default(r, "JobMaxRetries", CRASHES);
        attribute_default(r, "OnExitRemove", "NumJobCompletions > JobMaxRetries || ExitBySignal =!= true");
}

void placement_clause(struct reader *r, struct buf *out)
{
        clause_add(out, "TARGET.Runner == \"mover\"");
        if (r->local_files)
                clause_add(out, "(TARGET.FileSystemDomain == MY.FileSystemDomain)");
}

bool placement_keyword(const char *name)
{
        static const char *const names[] = {"dap_type",    "src_url",     "dest_url",      "alt_protocols",
                                            "max_retry",   "restart_in",  "give_up_after", "checksum",
                                            "third_party", "verify_copy", "reserve_size",  "duration"};

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (str_ieqz(str_of(name), names[i]))
                        return true;
        return false;
}
