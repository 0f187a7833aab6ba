/* A collection is a list with named items, which are files or collections of one type. "paired" has a
 * forward and a reverse file, "list" any number of files; "list:paired" is a list of pairs. */
#include "base/mem.h"
#include "jdl/galaxy/tool.h"

static int read_collection(struct tool *t, const struct xml *x, json_t *given, unsigned depth,
                           struct datum **ret, struct err *err);

static const char *text_member(json_t *object, const char *first, const char *second)
{
        const char *text = json_string_value(json_object_get(object, first));

        return text ? text : json_string_value(json_object_get(object, second));
}

static struct str type_of(const struct datum *collection)
{
        return datum_get(collection->attributes, STR("collection_type"))->text;
}

void tool_name_collection(struct tool *t, struct datum *c, struct str name)
{
        struct datum *text = datum_text(&t->arena, name);

        datum_set_attribute(&t->arena, c, "name", text);
        datum_set_attribute(&t->arena, c, "element_identifier", text);
        datum_set_attribute(&t->arena, c, "is_collection", datum_bool(&t->arena, true));
}

/* identifier: NULL if the element is not named from outside. */
static int add_element(struct tool *t, const struct xml *x, const char *identifier, json_t *given,
                       unsigned depth, struct datum *to, struct err *err)
{
        struct datum *d = NULL, *first = to->n ? to->items[0] : NULL, *id;
        int rc = tool_is_file(given) ? tool_dataset(t, x, given, &d, err)
                                     : read_collection(t, x, given, depth + 1, &d, err);

        if (rc != 0)
                return rc;
        if (!identifier)
                identifier = text_member(given, "identifier", "element_identifier");
        if (!identifier && d->collection)
                return tool_fail(x, err, "a collection within one of " STR_FMT " needs an \"identifier\"",
                                 STR_ARG(tool_name(x)));
        id = identifier ? datum_text(&t->arena, str_of(identifier)) : datum_get(d, STR("element_identifier"));
        if (datum_get(to, id->text))
                return tool_fail(x, err, "two elements of " STR_FMT " are called '" STR_FMT "'",
                                 STR_ARG(tool_name(x)), STR_ARG(id->text));
        if (first &&
            (d->collection != first->collection || (d->collection && !str_eq(type_of(d), type_of(first)))))
                return tool_fail(x, err, "the elements of " STR_FMT " are not of one kind",
                                 STR_ARG(tool_name(x)));
        if (d->collection)
                tool_name_collection(t, d, id->text);
        else
                datum_put(&t->arena, d, STR("element_identifier"), id);
        if (!datum_put(&t->arena, to, id->text, d))
                return tool_fail(x, err, "there are too many files");
        return 0;
}

/* Appends the type: "paired" for forward and reverse, otherwise "list"; for a collection of collections,
 * followed by their type. */
static void find_type(const struct datum *c, struct buf *out)
{
        bool paired = c->n == 2 && datum_get(c, STR("forward")) && datum_get(c, STR("reverse"));

        buf_addz(out, paired ? "paired" : "list");
        if (c->n && c->items[0]->collection)
                buf_printf(out, ":" STR_FMT, STR_ARG(type_of(c->items[0])));
}

bool tool_flatten(struct tool *t, const struct datum *collection, struct datum *list)
{
        bool fits = true;

        for (size_t i = 0; i < collection->n && fits; i++)
                fits = collection->items[i]->collection ? tool_flatten(t, collection->items[i], list)
                                                        : datum_add(&t->arena, list, collection->items[i]);
        return fits;
}

static void collection_describe(struct tool *t, struct datum *c, bool supplied, struct str type)
{
        struct datum *paths = datum_new(&t->arena, DATUM_LIST), *files = datum_new(&t->arena, DATUM_LIST);

        tool_flatten(t, c, files);
        for (size_t i = 0; i < files->n; i++)
                datum_add(&t->arena, paths, datum_get(files->items[i], STR("file_name")));
        datum_set_attribute(&t->arena, c, "is_input_supplied", datum_bool(&t->arena, supplied));
        datum_set_attribute(&t->arena, c, "all_paths", paths);
        datum_set_attribute(&t->arena, c, "collection_type", datum_text(&t->arena, type));
        tool_name_collection(t, c, STR("None"));
}

static int read_collection(struct tool *t, const struct xml *x, json_t *given, unsigned depth,
                           struct datum **ret, struct err *err)
{
        const char *type = text_member(given, "collection_type", "type"), *key;
        json_t *elements = json_is_array(given) ? given : json_object_get(given, "elements"), *one;
        struct datum *c = datum_collection(&t->arena);
        BUF_CLEANUP struct buf found = {0};
        size_t i;
        int rc = 0;

        if ((!json_is_array(given) && !json_is_object(given)) || (elements && !json_is_array(elements)))
                return tool_fail(x, err,
                                 "the value of " STR_FMT
                                 " is a collection: [\"PATH\", ...], {\"NAME\": \"PATH\", "
                                 "...} or {\"elements\": [...]}",
                                 STR_ARG(tool_name(x)));
        if (depth == DATUM_DEPTH_MAX)
                return tool_fail(x, err, "collections are nested too deep");
        json_array_foreach (elements, i, one) {
                if (rc == 0)
                        rc = add_element(t, x, NULL, one, depth, c, err);
        }
        json_object_foreach (elements ? NULL : given, key, one) {
                if (rc == 0)
                        rc = add_element(t, x, key, one, depth, c, err);
        }
        if (rc != 0)
                return rc;
        find_type(c, &found);
        if (type && elements && !str_eqz(buf_view(&found), type) && strcmp(type, "list") != 0)
                return tool_fail(x, err, "the elements of " STR_FMT " make a %s, not a %s",
                                 STR_ARG(tool_name(x)), buf_z(&found), type);
        collection_describe(t, c, true, type && elements ? str_of(type) : buf_view(&found));
        if (elements && !json_is_array(given) && text_member(given, "name", "name"))
                tool_name_collection(t, c, str_of(text_member(given, "name", "name")));
        *ret = c;
        return 0;
}

struct datum *tool_no_collection(struct tool *t)
{
        struct datum *c = datum_collection(&t->arena);

        collection_describe(t, c, false, STR("list"));
        return c;
}

/* Returns whether the <param> takes collections of this type. If it names no type it takes any. */
static bool is_taken(const struct xml *x, struct str type)
{
        struct str types = tool_attribute(x, "collection_type", ""), one;
        bool fits = types.n == 0;

        while (!fits && str_cut(&types, ',', &one))
                fits = str_eq(str_trim(one), type);
        return fits;
}

int tool_collection(struct tool *t, const struct xml *x, json_t *given, struct datum **ret, struct err *err)
{
        struct str type;
        int rc = read_collection(t, x, given, 0, ret, err);

        if (rc != 0)
                return rc;
        type = type_of(*ret);
        if (str_eqz(type, "paired") && !is_taken(x, type)) /* it is a list whose files have these names */
                type = STR("list");
        datum_set_attribute(&t->arena, *ret, "collection_type", datum_text(&t->arena, type));
        return is_taken(x, type)
                       ? 0
                       : tool_fail(x, err, "the value of " STR_FMT " is a " STR_FMT "; the tool takes: %s",
                                   STR_ARG(tool_name(x)), STR_ARG(type), xml_get(x, "collection_type"));
}
