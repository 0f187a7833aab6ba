/* Ads from anybody in any encoding. The first byte chooses how the rest is read: j JSON, x XML, n new and o
 * old syntax one ad after the other; any other is part of the text, whose encoding is found out. What was
 * read is written in JSON and XML, and reads back to what writes alike. */
#include <stdint.h>
#include <stdlib.h>

#include "classad/print.h"
#include "classad/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_as(struct buf *out, const struct ad *ad, bool xml)
{
        buf_reset(out);
        if (xml)
                ad_print_xml(out, ad, false);
        else
                ad_print_json(out, ad, false);
}

/* Names that are not UTF-8 lose something in JSON, so the second text is compared with the third. */
static void again(struct symbols *s, const struct ad *ad, bool xml)
{
        struct buf text[3] = {{0}};
        const struct ad *from = ad;
        struct ad *back = NULL, *last = NULL;

        for (int i = 0; i < 3; i++) {
                struct ad_reader *r;
                struct err err;
                int result;

                write_as(&text[i], from, xml);
                if (i == 2)
                        break;
                r = ad_reader_new(s, buf_view(&text[i]), xml ? ENCODING_XML : ENCODING_JSON);
                result = ad_reader_next(r, i ? &last : &back, &err);
                ad_reader_free(r);
                if (result == CLASSAD_TOO_BIG || result == CLASSAD_TOO_DEEP)
                        break;
                if (result || !(i ? last : back))
                        abort();
                from = i ? last : back;
        }
        if (last && !str_eq(buf_view(&text[1]), buf_view(&text[2])))
                abort();
        if (last && xml && !str_eq(buf_view(&text[0]), buf_view(&text[1])))
                abort();
        for (int i = 0; i < 3; i++)
                buf_deinit(&text[i]);
        ad_free(back);
        ad_free(last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char letters[] = "njox";
        static const enum encoding encodings[] = {ENCODING_NEW, ENCODING_JSON, ENCODING_OLD, ENCODING_XML};
        struct str text = str_make((const char *)data, size);
        enum encoding encoding = ENCODING_AUTO;
        struct symbols *s;
        struct ad_reader *r;
        struct ad *ad = NULL;
        struct err err;

        for (size_t i = 0; i < 4 && size; i++)
                if (data[0] == letters[i]) {
                        encoding = encodings[i];
                        text = str_skip(text, 1);
                        break;
                }
        s = symbols_new();
        r = ad_reader_new(s, text, encoding);
        for (int i = 0; i < 100 && ad_reader_next(r, &ad, &err) == 0 && ad; i++) {
                again(s, ad, false);
                again(s, ad, true);
                ad_free(ad);
        }
        ad_reader_free(r);
        symbols_free(s);
        return 0;
}
