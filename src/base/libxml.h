/* libxml: libxml2, opened when it is first needed: it brings big libraries of its own with it, and most runs
 * of our programs read no XML. Only its headers are used to build. Safe to call from any thread after the
 * first call has returned. */
#pragma once
#include <libxml/xmlreader.h>

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
        X(xmlGetLineNo)

struct libxml {
#define LIBXML_POINTER(name) __typeof__(name) *p_##name;
        LIBXML_CALLS(LIBXML_POINTER)
};

extern struct libxml libxml; /* the calls, once libxml_open has given 0 */
/* 0; -ENOSYS with err: it is not on this machine. */
int libxml_open(struct err *err);
