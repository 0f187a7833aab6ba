/* ads: ads in the server's answers, read back. */
#pragma once
#include "classad/ad.h"
#include "cli/terminal/view.h"

/* An ad of a JSON object as the server writes it (classad/print.h, ad_print_json); an empty one of what is
 * none. The caller frees it. */
struct ad *ads_read(struct symbols *symbols, struct view object);
