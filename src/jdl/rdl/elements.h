/* elements: the table of RDL's elements (jdl/sums/schema.h), of which rdl.xsd is made. */
#pragma once
#include "jdl/sums/schema.h"

extern const struct schema rdl_schema;
