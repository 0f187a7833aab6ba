#include "core/data/label.h"

#include "core/data/data_state.h"
#include "core/model/core_parts.h"
#include "core/model/item.h"

static bool any_labels(const struct core *c)
{
        return c->data->sites.label_count > 0;
}

static bool is_among(struct str list, struct str word)
{
        struct str one;

        while (list.n && str_cut(&list, ',', &one))
                if (str_eq(str_trim(one), word))
                        return true;
        return false;
}

uint64_t label_cleared(const struct core *c, const char *agent)
{
        const struct core_agent *a = agent_find(c, agent);
        uint64_t all = 0;

        for (size_t i = 0; i < c->data->sites.label_count; i++)
                for (size_t k = 0; k < c->data->sites.labels[i].agent_count; k++) {
                        struct str who = c->data->sites.labels[i].agents[k];

                        if (a && a->labels && !is_among(str_of(a->labels), c->data->sites.labels[i].name))
                                continue;
                        if (str_eqz(who, agent) ||
                            (str_ends(who, STR("*")) && str_starts(str_of(agent), str_head(who, who.n - 1))))
                                all |= 1ull << i;
                }
        return all;
}

void label_print(const struct core *c, uint64_t labels, struct buf *out)
{
        bool comma = false;

        for (size_t i = 0; i < c->data->sites.label_count; i++) {
                if (!(labels >> i & 1))
                        continue;
                if (comma)
                        buf_char(out, ',');
                comma = true;
                buf_str(out, c->data->sites.labels[i].name);
        }
}

/* Finds the labels of a URL or path. False: it is neither. */
static bool labels_at(const struct core *c, struct str place, uint64_t *ret)
{
        BUF_CLEANUP struct buf name = {0};
        size_t store;

        *ret = 0;
        if (!file_url(place, c->data->sites.urls, c->data->sites.store_count, &name, &store))
                return false;
        if (store != FILE_STORE_NONE)
                *ret |= c->data->sites.store_labels[store];
        for (size_t i = 0; i < c->data->sites.label_count; i++)
                for (size_t k = 0; k < c->data->sites.labels[i].dataset_count; k++)
                        if (file_is_below(buf_view(&name), c->data->sites.labels[i].datasets[k]))
                                *ret |= 1ull << i;
        return true;
}

/* Returns an attribute's text. A late text is not expanded when a class is first examined; see
 * label_differs. */
static bool text_of(struct core *c, const struct request *r, uint32_t member, symbol name, struct buf *out)
{
        buf_reset(out);
        return request_member_text(c, r, member, name, out) == 0 && out->n > 0;
}

static uint64_t labels_read(struct core *c, const struct request *r, uint32_t member, struct buf *text)
{
        const struct attributes *a = &c->attr;
        const symbol names[] = {a->TransferInput, a->In, a->Cmd, a->ContainerImage, a->DockerImage};
        uint64_t all = 0, some;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                struct str rest, one;

                if (!text_of(c, r, member, names[i], text))
                        continue;
                for (rest = buf_view(text); str_cut(&rest, ',', &one); c->late_steps++)
                        if (labels_at(c, str_trim(one), &some))
                                all |= some;
        }
        return all;
}

static bool says_labels(const struct core *c, const struct part *p)
{
        for (size_t i = 0; i < p->job_template->late_count; i++)
                if (p->job_template->late[i].name == c->attr.DataLabels)
                        return true;
        return ad_find(p->job_template->ad, c->attr.DataLabels);
}

static int labels_said(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                       struct buf *text, uint64_t *all, struct err *err)
{
        struct str rest, one;

        if (!says_labels(c, p))
                return 0;
        buf_reset(text);
        /* An unquoted name would be an undefined attribute, and so no label at all. */
        if (request_member_text(c, r, member, c->attr.DataLabels, text) != 0)
                return err_set(err, CORE_INVALID,
                               "DataLabels is no text: labels stand in quotes, parted by commas");
        if (text->n == 0)
                return 0;
        for (rest = buf_view(text); str_cut(&rest, ',', &one);) {
                int at = sites_label(&c->data->sites, str_trim(one));

                if (at < 0)
                        return err_set(err, CORE_INVALID,
                                       "DataLabels: no label '" STR_FMT "' is configured at this server",
                                       STR_ARG(str_trim(one)));
                *all |= 1ull << at;
        }
        return 0;
}

static int may_go(const struct core *c, struct str place, uint64_t labels, struct err *err)
{
        BUF_CLEANUP struct buf missing = {0};
        uint64_t there;

        if (place.n == 0 || str_search(place, STR("://")) < 0 || !labels_at(c, place, &there) ||
            !(labels & ~there))
                return 0;
        label_print(c, labels & ~there, &missing);
        return err_set(err, CORE_INVALID,
                       "its inputs carry the label '%s', and " STR_FMT
                       ", where an output goes, does not: choose a store that carries it",
                       buf_z(&missing), STR_ARG(place));
}

static uint64_t not_spooled(const struct core *c)
{
        uint64_t all = 0;

        for (size_t i = 0; i < c->data->sites.label_count; i++)
                if (c->data->sites.labels[i].not_spooled)
                        all |= 1ull << i;
        return all;
}

static int check_written(struct core *c, const struct request *r, uint32_t member, uint64_t labels,
                         struct buf *text, struct err *err)
{
        const struct attributes *a = &c->attr;
        const symbol names[] = {a->OutputDestination, a->Out, a->Err};
        bool away = text_of(c, r, member, a->OutputDestination, text);
        struct str rest, one;
        int e = 0;

        if (!away && labels & not_spooled(c)) {
                BUF_CLEANUP struct buf b = {0};

                label_print(c, labels & not_spooled(c), &b);
                return err_set(err, CORE_INVALID,
                               "data with the label '%s' may not come back to the server: give it an "
                               "OutputDestination that carries the label",
                               buf_z(&b));
        }
        for (size_t i = 0; i < 3 && !e; i++)
                if (text_of(c, r, member, names[i], text))
                        e = may_go(c, buf_view(text), labels, err);
        if (e || !text_of(c, r, member, a->TransferOutputRemaps, text))
                return e;
        for (rest = buf_view(text); !e && str_cut(&rest, ';', &one); c->late_steps++)
                e = may_go(c, str_trim(str_skip(one, (size_t)(str_find(one, '=') + 1))), labels, err);
        return e;
}

int label_of(struct core *c, const struct request *r, const struct part *p, uint32_t member, uint64_t *ret,
             struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        int e;

        *ret = 0;
        if (!any_labels(c) && !ad_find(p->job_template->ad, c->attr.DataLabels))
                return 0;
        if (p->labelled == p->job_template && !(p->leaks && err)) {
                *ret = p->labels;
                return p->leaks ? CORE_INVALID : 0;
        }
        *ret = any_labels(c) ? labels_read(c, r, member, &text) : 0;
        e = labels_said(c, r, p, member, &text, ret, err);
        if (!e && *ret)
                e = check_written(c, r, member, *ret, &text, err);
        eval_reset(&c->eval);
        return e;
}

/* ---- differences between members */

/* Returns whether the text before the first macro does not decide the labels: something configured lies
 * below it, or an item may climb out of it or hide a part of a path. */
static bool further_down(struct str prefix, struct str head)
{
        return prefix.n > head.n && str_starts(prefix, head);
}

static bool same_for_all(const struct core *c, struct str element)
{
        BUF_CLEANUP struct buf name = {0}, plain = {0};
        ptrdiff_t macro = str_find(element, '$'), host;
        struct str head = str_head(element, macro < 0 ? element.n : (size_t)macro);

        if (macro < 0)
                return true;
        host = str_search(head, STR("://"));
        if (host < 0 || str_find(str_skip(head, (size_t)host + 3), '/') < 0 ||
            !file_url(head, NULL, 0, &plain, NULL) ||
            !file_url(head, c->data->sites.urls, c->data->sites.store_count, &name, NULL))
                return false;
        for (size_t i = 0; i < c->data->sites.store_count; i++)
                for (size_t k = 0; k < c->data->sites.urls[i].prefix_count; k++)
                        if (further_down(c->data->sites.urls[i].prefixes[k], buf_view(&plain)))
                                return false;
        for (size_t i = 0; i < c->data->sites.label_count; i++)
                for (size_t k = 0; k < c->data->sites.labels[i].dataset_count; k++)
                        if (further_down(c->data->sites.labels[i].datasets[k], buf_view(&name)))
                                return false;
        return true;
}

static bool items_climb(const struct part *p)
{
        struct str items = str_make(p->items, p->items_n);

        return p->items && (memchr(items.p, '%', items.n) || str_search(items, STR("..")) >= 0 ||
                            str_search(items, STR("//")) >= 0 || memchr(items.p, ',', items.n));
}

/* Returns whether labels depend on the attribute. */
static bool is_looked_at(const struct attributes *a, symbol name)
{
        const symbol names[] = {
                a->TransferInput, a->In,  a->Cmd, a->ContainerImage,    a->DockerImage,
                a->DataLabels,    a->Out, a->Err, a->OutputDestination, a->TransferOutputRemaps};
        bool yes = false;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                yes |= names[i] == name;
        return yes;
}

void label_part(struct core *c, const struct request *r, struct part *p)
{
        const struct job_template *t = p->job_template;
        bool own = p->count == 0;

        for (size_t i = 0; i < t->late_count; i++)
                own |= is_looked_at(&c->attr, t->late[i].name);
        p->labelled = NULL;
        if (own)
                return;
        p->leaks = label_of(c, r, p, p->first, &p->labels, NULL) != 0;
        p->labelled = t;
}

bool label_differs(struct core *c, const struct part *p)
{
        const struct attributes *a = &c->attr;

        for (size_t i = 0; any_labels(c) && i < p->job_template->late_count; i++) {
                const struct job_template_late *l = &p->job_template->late[i];
                struct str rest = str_trim(l->text), one;

                if (!is_looked_at(a, l->name))
                        continue;
                if (l->name != a->TransferInput || rest.n < 2 || rest.p[0] != '"' ||
                    str_find(str_head(str_skip(rest, 1), rest.n - 2), '"') >= 0 || items_climb(p))
                        return true;
                for (rest = str_head(str_skip(rest, 1), rest.n - 2); str_cut(&rest, ',', &one);)
                        if (!same_for_all(c, str_trim(one)))
                                return true;
        }
        return false;
}

/* ---- checks of new requests */

int label_refuse(struct core *c, const struct request *r, struct err *err)
{
        for (size_t i = 0; i < r->bucket_count; i++) {
                const struct bucket *b = r->buckets[i];
                const struct part *p = request_part_at(r, b->part);
                uint32_t member = b->members ? (uint32_t)set_first(b->members) : p->first;
                uint64_t labels;

                if (b->job_class && b->job_class->leaks)
                        return label_of(c, r, p, member, &labels, err);
        }
        return 0;
}
