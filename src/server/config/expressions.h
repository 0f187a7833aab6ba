/* expressions: values of settings in the ClassAd language. */
#pragma once
#include "base/format/doc.h"

/* Checks that a word is attributes, 'Name = expression; ...', or one expression. Returns 0, or -EINVAL with
 * err. */
int config_attributes_check(const struct doc *d, struct err *err);
int config_expression_check(const struct doc *d, struct err *err);
