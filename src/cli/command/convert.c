/* Only one ad, and the text of one file, is in memory: each ad is written before the next one is read. The
 * output has one frame, so that the ads of many files are one document. After an error the frame is not
 * closed, so that the document is visibly incomplete. */
#include "cli/command/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "classad/print.h"

#define FILE_MAX (1u << 30)

static const char *const encodings[] = {
        [ENCODING_AUTO] = "auto", [ENCODING_NEW] = "new", [ENCODING_OLD] = "old",
        [ENCODING_JSON] = "json", [ENCODING_XML] = "xml",
};

/* Text before the first ad, between two, and after the last. */
static const struct {
        const char *head, *between, *foot;
} frames[] = {
        [ENCODING_NEW] = {"", "", ""},
        [ENCODING_OLD] = {"", "\n", ""},
        [ENCODING_JSON] = {"[\n", ",\n", "]\n"},
        [ENCODING_XML] = {PRINT_XML_HEAD, "", PRINT_XML_FOOT},
};

struct conversion {
        struct symbols *symbols;
        enum encoding from, to;
        bool go_on; /* continue with the next file after an error */
        bool stdin_taken;
        size_t written;
        struct buf out;
};

static int read_stdin(struct buf *out)
{
        ssize_t n;

        do {
                char *room = buf_room(out, 65536);

                if (!room)
                        return -EFBIG;
                n = read(STDIN_FILENO, room, 65536);
                if (n > 0)
                        out->n += (size_t)n;
        } while (n > 0 || (n < 0 && errno == EINTR));
        return n < 0 ? -errno : 0;
}

int convert_read(const char *file, bool *taken, struct buf *out)
{
        struct err err;
        int r;

        if (strcmp(file, "-") != 0) {
                if (fs_read(AT_FDCWD, file, FILE_MAX, out, &err) != 0)
                        return cli_error(CLI_FAILED, "%s", err.text);
                return CLI_OK;
        }
        if (*taken)
                return cli_error(CLI_USAGE, "standard input can only be read once");
        *taken = true;
        out->max = FILE_MAX;
        r = read_stdin(out);
        if (r < 0)
                return cli_error(CLI_FAILED, "cannot read standard input: %s", strerror(-r));
        return CLI_OK;
}

/* Returns whether the ad is the same after writing and reading it. The old syntax cannot express some
 * strings, such as those with a line break. */
static bool survives(struct symbols *symbols, const struct ad *ad, struct str text)
{
        struct buf was BUF_CLEANUP = {0}, is BUF_CLEANUP = {0};
        struct ad *back = NULL;
        const struct expr *e;
        uint32_t at = 0;
        symbol name;
        bool same = ad_parse(symbols, text, CLASSAD_OLD, &back, NULL) == 0 && ad_count(back) == ad_count(ad);

        while (same && ad_next(ad, &at, &name, &e)) {
                const struct expr *other = ad_find_own(back, name);

                buf_reset(&was);
                buf_reset(&is);
                expr_print(&was, e, symbols);
                if (other)
                        expr_print(&is, other, symbols);
                same = str_eq(buf_view(&was), buf_view(&is));
        }
        ad_free(back);
        return same;
}

static void write_ad(struct conversion *c, const struct ad *ad)
{
        size_t from;

        buf_addz(&c->out, c->written ? frames[c->to].between : frames[c->to].head);
        c->written++;
        from = c->out.n;
        switch (c->to) {
        case ENCODING_JSON: ad_print_json(&c->out, ad, false); break;
        case ENCODING_XML: ad_print_xml(&c->out, ad, false); break;
        default: ad_print(&c->out, ad, c->to == ENCODING_OLD ? CLASSAD_OLD : CLASSAD_NEW, false); break;
        }
        if (c->to == ENCODING_OLD && !survives(c->symbols, ad, str_skip(buf_view(&c->out), from)))
                cli_note("ad %zu holds what the old syntax cannot: as written, it does not read back to the "
                         "same",
                         c->written);
        if (c->to == ENCODING_NEW || c->to == ENCODING_JSON)
                buf_char(&c->out, '\n');
        cli_print(&c->out);
}

static int convert_file(struct conversion *c, const char *file)
{
        struct buf text BUF_CLEANUP = {0};
        int code = convert_read(file, &c->stdin_taken, &text), r;
        struct ad_reader *reader;
        struct ad *ad = NULL;
        struct err err;

        if (code != CLI_OK)
                return code;
        reader = ad_reader_new(c->symbols, buf_view(&text), c->from);
        while ((r = ad_reader_next(reader, &ad, &err)) == 0 && ad) {
                write_ad(c, ad);
                ad_free(ad);
        }
        ad_reader_free(reader);
        if (r)
                return cli_error(CLI_FAILED, "%s: %s", strcmp(file, "-") ? file : "standard input", err.text);
        return CLI_OK;
}

static int convert_files(struct conversion *c, const char *const *files, size_t n)
{
        int code = CLI_OK;

        for (size_t i = 0; i < n; i++) {
                int one = convert_file(c, files[i]);

                code = one != CLI_OK ? one : code;
                if (one != CLI_OK && !c->go_on)
                        return code;
        }
        if (code != CLI_OK)
                return code;
        if (c->written == 0)
                buf_addz(&c->out, frames[c->to].head);
        buf_addz(&c->out, frames[c->to].foot);
        if (c->out.n)
                cli_print(&c->out);
        return CLI_OK;
}

/* Returns false, and leaves *ret unchanged, when there is no such encoding. */
static bool encoding_named(const char *name, enum encoding *ret)
{
        for (enum encoding e = ENCODING_AUTO; e <= ENCODING_XML; e++)
                if (strcmp(name, encodings[e]) == 0) {
                        *ret = e;
                        return true;
                }
        return false;
}

int convert(const char *verb, const char *from, const char *to, const char *const *files, size_t n)
{
        static const char *const standard_input[] = {"-"};
        bool parse = strcmp(verb, "parse") == 0;
        struct conversion c = {
                .from = ENCODING_AUTO, .to = parse ? ENCODING_NEW : ENCODING_OLD, .go_on = parse};
        int code;

        if (parse && to)
                return cli_error(CLI_USAGE, "parse prints the new syntax: drover classad convert --to %s",
                                 to);
        if (!to && strcmp(verb, "convert") == 0)
                return cli_error(CLI_USAGE, "convert to what? Give --to new, old, json or xml");
        if (from && !encoding_named(from, &c.from))
                return cli_error(CLI_USAGE, "there is no encoding \"%s\": auto, new, old, json and xml are",
                                 from);
        if (to && (!encoding_named(to, &c.to) || c.to == ENCODING_AUTO))
                return cli_error(CLI_USAGE,
                                 "there is no encoding \"%s\" to write: new, old, json and xml are", to);
        c.symbols = symbols_new();
        code = n ? convert_files(&c, files, n) : convert_files(&c, standard_input, 1);
        symbols_free(c.symbols);
        buf_deinit(&c.out);
        return code;
}
