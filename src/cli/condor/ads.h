/* ads: reads ads from the server's answers. */
#pragma once
#include "classad/ad.h"
#include "cli/terminal/view.h"

/* Makes an ad of a JSON object as the server writes it (classad/print.h, ad_print_json); an empty ad if the
 * value is not an object. The caller frees it. */
struct ad *ads_read(struct symbols *symbols, struct view object);
