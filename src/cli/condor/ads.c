#include "cli/condor/ads.h"

#include "classad/read.h"

struct ad *ads_read(struct symbols *symbols, struct view object)
{
        struct json_reader reader = {.symbols = symbols, .text = object.text};
        struct ad *ad = NULL;

        return json_reader_next(&reader, &ad, NULL) == 0 && ad ? ad : ad_new(symbols);
}
