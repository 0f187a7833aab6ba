#include "core/data/file_identity.h"

#include "base/mem.h"
#include "core/data/inflight_transfers.h"
#include "core/data/inputs.h"
#include "core/model/core_parts.h"
#include "core/model/item.h"
#include "core/query.h"

static void add_names(struct core *c, const struct ad *ad, symbol attribute, struct buf *out)
{
        struct str text;

        if (!ad_find(ad, attribute) || !item_text(c, ad, attribute, &text))
                return;
        for (size_t i = 0; i < text.n;) {
                size_t from = i;

                while (i < text.n && text.p[i] != ',' && text.p[i] != ' ' && text.p[i] != '\t')
                        i++;
                if (i > from && out->n)
                        buf_char(out, ',');
                for (size_t k = from; k < i; k++) /* "service*handle" is the file service_handle there */
                        buf_char(out, text.p[k] == '*' ? '_' : text.p[k]);
                i++;
        }
}

void core_credential_names(struct core *c, const struct ad *ad, struct buf *out)
{
        add_names(c, ad, c->attr.DroverCredentials, out);
        add_names(c, ad, c->attr.OAuthServicesNeeded, out);
        eval_reset(&c->eval);
}

static const struct submission_origin *origin_of(const struct request *r)
{
        const struct submission_origin *o = request_cold(r)->delegation.origin;

        return o && o->job.n ? o : NULL;
}

static void ask_credentials(struct core *c, const struct request *r, struct file_identity *x)
{
        const struct core_world *w = &c->world;
        struct file_credential *all;
        struct str rest, name;
        size_t n = 1;

        for (size_t i = 0; i < x->names.n; i++)
                n += x->names.p[i] == ',';
        all = mem_array(NULL, n, sizeof(*all));
        x->as.credentials = all;
        for (rest = buf_view(&x->names); rest.n && str_cut(&rest, ',', &name);) {
                struct file_credential *to = &all[x->as.credential_count++];

                *to = (struct file_credential){.name = name};
                w->credential(w->arg, r->id, str_of(request_owner(r)),
                              request_cold(r)->delegation.origin != NULL, to);
        }
}

struct file_identity *file_identity_new(struct core *c, const struct request *r, const struct part *p)
{
        const struct submission_origin *o = origin_of(r);
        struct str servers = o ? o->servers : STR_NONE, first = STR_NONE;
        struct file_identity *x = mem_new(struct file_identity);

        str_cut(&servers, ' ', &first);
        file_asker_who(str_of(request_owner(r)), first, o ? o->owner : STR_NONE, &x->who);
        x->as.who = buf_view(&x->who);
        core_credential_names(c, p->job_template->ad, &x->names);
        if (x->names.n && c->world.credential)
                ask_credentials(c, r, x);
        return x;
}

void file_identity_free(struct file_identity *x)
{
        if (!x)
                return;
        buf_deinit(&x->who);
        buf_deinit(&x->names);
        free((struct file_credential *)x->as.credentials);
        free(x);
}

static bool names_any(struct core *c, const struct request *r)
{
        for (size_t i = 0; i < r->part_count; i++) {
                const struct ad *ad = r->parts[i].job_template->ad;

                if (ad_find(ad, c->attr.DroverCredentials) || ad_find(ad, c->attr.OAuthServicesNeeded))
                        return true;
        }
        return false;
}

bool core_request_credentials(struct core *c, uint64_t request, uint32_t *part)
{
        struct request *r = request_find(c, request);
        size_t at = 0;
        void *job;

        if (!r || c->config.shadow || request_ended(r) || !names_any(c, r))
                return false;
        /* transfers for its jobs get other ids, and are not counted any more */
        while (*part == 0 && r->jobs && idmap_next(r->jobs, &at, NULL, &job))
                if (((struct job *)job)->queue)
                        inflight_end(c, job);
        return request_data_load_some(c, r, part);
}
