/* read: reads the ads of a text, one after the other, in any encoding of the language.
 *
 * The text is borrowed for as long as the reader lives; the ads are the caller's, made with his table of
 * symbols. One ad is held at a time, so that a file of any length is read with the memory of its biggest ad
 * (besides the text). The readers of XML and JSON are here too, each in a library of its own
 * (classad_xml_dep, classad_json_dep); `ad_reader` is in classad_read_dep, which has both. libxml2 is opened
 * when XML is first read.
 *
 * Forms (as HTCondor's library 25.x writes and reads them; HTCondor manual, "ClassAd mechanism"):
 *   new    [ a = 1 ] [ b = 2 ], or a list { [ a = 1 ], [ b = 2 ] }
 *   old    a line an attribute; empty lines, and lines that begin with ***, stand between ads
 *   JSON   an array of objects, or objects one after the other, or both
 *   XML    <classads> with <c> in it, with or without the <?xml and <!DOCTYPE lines; or only <c> ... </c> <c>
 *          ... </c>. A document type that declares entities is refused, and none is fetched.
 */
#pragma once
#include "classad/ad.h"

enum encoding { ENCODING_AUTO, ENCODING_NEW, ENCODING_OLD, ENCODING_JSON, ENCODING_XML };

/* Detects a text's encoding by its beginning. Never ENCODING_AUTO; an empty text is ENCODING_OLD. */
enum encoding encoding_of(struct str text);

struct ad_reader;
struct ad_reader *ad_reader_new(struct symbols *symbols, struct str text, enum encoding encoding);
void ad_reader_free(struct ad_reader *r); /* NULL is fine */
/* 0 with the next ad, or with NULL when there is none left; or a classad_error (err has line and column;
 * nothing can be read after it); or -ENOSYS when libxml2 is not there. */
int ad_reader_next(struct ad_reader *r, struct ad **ret_ad, struct err *err);

/* Readers of one encoding, with the results of ad_reader_next. A json_reader is initialised as
 * {.symbols = s, .text = t} and owns nothing; its other members are private. */
struct json_reader {
        struct symbols *symbols;
        struct str text;
        size_t at;
        bool in_array, behind_ad;
};
int json_reader_next(struct json_reader *j, struct ad **ret_ad, struct err *err);

struct xml_reader;
struct xml_reader *xml_reader_new(struct symbols *symbols, struct str text);
void xml_reader_free(struct xml_reader *x);
int xml_reader_next(struct xml_reader *x, struct ad **ret_ad, struct err *err);
