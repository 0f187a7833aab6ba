/* libxml: libxml2, opened at run time when first needed: it loads other big libraries, and most runs
 * of our programs read no XML. The build uses its headers only. Any thread may use it after the
 * first libxml_open has returned. */
#pragma once
#include <libxml/xmlreader.h>
#include <libxml/xmlschemas.h>

#include "base/err.h"

#define LIBXML_CALLS(X)                                                                                      \
        X(xmlReaderForIO)                                                                                    \
        X(xmlFreeTextReader)                                                                                 \
        X(xmlTextReaderRead)                                                                                 \
        X(xmlTextReaderNodeType)                                                                             \
        X(xmlTextReaderConstName)                                                                            \
        X(xmlTextReaderConstValue)                                                                           \
        X(xmlTextReaderIsEmptyElement)                                                                       \
        X(xmlTextReaderMoveToAttribute)                                                                      \
        X(xmlTextReaderMoveToNextAttribute)                                                                  \
        X(xmlTextReaderMoveToElement)                                                                        \
        X(xmlTextReaderCurrentNode)                                                                          \
        X(xmlTextReaderSetStructuredErrorHandler)                                                            \
        X(xmlReadMemory)                                                                                     \
        X(xmlFreeDoc)                                                                                        \
        X(xmlSchemaNewValidCtxt)                                                                             \
        X(xmlSchemaFreeValidCtxt)                                                                            \
        X(xmlSchemaSetValidStructuredErrors)                                                                 \
        X(xmlSchemaValidateDoc)                                                                              \
        X(xmlSchemaNewMemParserCtxt)                                                                         \
        X(xmlSchemaFreeParserCtxt)                                                                           \
        X(xmlSchemaSetParserStructuredErrors)                                                                \
        X(xmlSchemaParse)                                                                                    \
        X(xmlSchemaFree)                                                                                     \
        X(xmlGetLineNo)

struct libxml {
#define LIBXML_POINTER(name) __typeof__(name) *p_##name;
        LIBXML_CALLS(LIBXML_POINTER)
};

extern struct libxml libxml; /* the calls, once libxml_open has given 0 */
/* Opens libxml2. 0; -ENOSYS with err: this machine has none. */
int libxml_open(struct err *err);
