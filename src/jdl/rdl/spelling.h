/* spelling: RDL written in YAML, as the elements that the same request has in XML.
 *
 * A map is an element: its keys are the element's attributes and the elements within it, and a list stands
 * for several elements of one name. A word is the text of an element, or the value of an attribute; where an
 * element has a text and attributes, the text has the key "text". Each element keeps its line.
 *
 *     AbstractRequest:
 *       Request:
 *         - {ID: reco, taskRef: make, datasetRef: raw}
 *         - {ID: sum, taskRef: add}
 */
#pragma once
#include "base/format/xml.h"
#include "jdl/sums/schema.h"

/* Reads a text in YAML. *ret is the root element, for xml_free. Returns 0; or -EINVAL with err, which names
 * file and line. Sizes are limited by base/format/doc.h and base/format/xml.h. */
int spelling_read(const struct schema *s, const char *name, struct str text, struct xml **ret,
                  struct err *err);
