#include "core/data/inputs.h"

#include "base/job/environment.h"
#include "base/job/image.h"
#include "base/job/macro.h"
#include "base/mem.h"
#include "core/data/data_state.h"
#include "core/data/file_identity.h"
#include "core/data/inputs_private.h"
#include "core/data/label.h"
#include "core/data/locality.h"
#include "core/data/space.h"
#include "core/estimate/estimate.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/item.h"

#define FILL_SLICE   1000u /* rows filled in one call */
#define FILL_STEPS   64u   /* evaluation steps that count as one row */
#define ELEMENT_STEP 8u    /* characters of a list element that take as long to look up as a step */

static const struct job_template_late *late_of(const struct part *p, symbol name)
{
        for (size_t i = 0; i < p->job_template->late_count; i++)
                if (p->job_template->late[i].name == name)
                        return &p->job_template->late[i];
        return NULL;
}

static bool spooled_of(const struct inputs *in, struct str element, struct input *ret)
{
        const struct submission_file *f = in->spooled ? map_get(in->spooled, element) : NULL;

        if (!f && in->spooled && str_rfind(element, '/') >= 0)
                f = map_get(in->spooled, str_skip(element, (size_t)str_rfind(element, '/') + 1));
        if (!f)
                return false;
        ret->id = file_id_of_content(f->sha256);
        ret->bytes = f->size;
        return true;
}

/* Returns whether a file is counted: a path outside of all stores is read in place, and not copied. */
static bool is_counted(struct str key, size_t store)
{
        struct str name = key, line;

        if (store == FILE_STORE_NONE)
                str_cut(&name, '\n', &line);
        return store != FILE_STORE_NONE || !str_starts(name, STR("file:"));
}

/* Finds the file of a list element: a URL or path that a store knows, or a spooled file. */
static bool file_of(struct core *c, const struct inputs *in, struct str element, struct input *ret)
{
        BUF_CLEANUP struct buf key = {0};
        size_t store;

        *ret = (struct input){.store = (uint8_t)c->data->sites.store_count};
        if (element.n == 0)
                return false;
        if (!file_key(element, &in->file_identity->as, c->data->sites.urls, c->data->sites.store_count, &key,
                      &store) ||
            !is_counted(buf_view(&key), store))
                return spooled_of(in, element, ret);
        ret->id = file_id(buf_view(&key));
        if (store != FILE_STORE_NONE)
                ret->store = (uint8_t)store;
        return true;
}

/* Finds an image, which agents report by its plain URL for all owners, since engines share images. */
static bool image_of(struct core *c, const struct inputs *in, struct str image, struct input *ret)
{
        BUF_CLEANUP struct buf url = {0}, name = {0}, plain = {0};
        size_t store;

        image_url(image, &url);
        *ret = (struct input){.store = (uint8_t)c->data->sites.store_count, .image = true};
        if (!file_url(buf_view(&url), c->data->sites.urls, c->data->sites.store_count, &name, &store) ||
            (store == FILE_STORE_NONE && str_starts(buf_view(&name), STR("file:"))))
                return spooled_of(in, buf_view(&url), ret);
        file_url(buf_view(&url), NULL, 0, &plain, NULL);
        ret->id = file_id(buf_view(&plain));
        if (store != FILE_STORE_NONE)
                ret->store = (uint8_t)store;
        return true;
}

/* Frees what is needed only while rows are filled. */
static void all_read(struct inputs *in)
{
        if (in->spooled)
                request_spooled_give(in->request);
        idmap_free(in->shared_ids);
        file_identity_free(in->file_identity);
        in->spooled = NULL;
        in->shared_ids = NULL;
        in->file_identity = NULL;
}

static void add_shared(struct inputs *in, const struct input *f)
{
        if (in->shared_count == INPUTS_MAX)
                return;
        MEM_GROW(in->shared, in->shared_cap, in->shared_count + 1);
        in->shared[in->shared_count++] = *f;
}

static void add_image(struct core *c, struct inputs *in)
{
        const symbol names[] = {c->attr.ContainerImage, c->attr.DockerImage};
        BUF_CLEANUP struct buf text = {0};
        struct input f;

        for (size_t i = 0; i < 2; i++) {
                buf_reset(&text);
                if (late_of(in->part, names[i]) ||
                    request_member_text(c, in->request, in->part->first, names[i], &text) != 0 || text.n == 0)
                        continue;
                if (image_of(c, in, buf_view(&text), &f))
                        add_shared(in, &f);
        }
}

/* Adds an environment, which is identified by the content of the file that it is made from; that was sent
 * with the request. */
static void add_environment(struct core *c, struct inputs *in, enum environment_kind kind, symbol name)
{
        BUF_CLEANUP struct buf text = {0}, url = {0};
        const struct submission_file *f;
        struct str file;

        if (!in->spooled || late_of(in->part, name) ||
            request_member_text(c, in->request, in->part->first, name, &text) != 0)
                return;
        file = buf_view(&text);
        file = str_skip(file, (size_t)(str_rfind(file, '/') + 1));
        f = kind == ENVIRONMENT_PYTHON || environment_is_file(file) ? map_get(in->spooled, file) : NULL;
        if (!f)
                return;
        environment_url(kind, f->sha256, &url);
        add_shared(in,
                   &(struct input){.id = file_id(buf_view(&url)), .store = INPUT_MADE, .environment = true});
}

/* State of reading a member's list of inputs, and of their sizes, element by element. */
struct reading {
        struct buf list, sizes;
        struct str rest, sizes_rest;
        uint64_t unknown_bytes; /* size of each file without a given size */
};

static void reading_open(struct core *c, const struct inputs *in, uint32_t member, struct reading *x)
{
        const struct ad *ad = in->part->job_template->ad;
        uint64_t unknown = 0, known = 0, size;
        int64_t mb = 0;
        struct str element, one;

        buf_reset(&x->list);
        buf_reset(&x->sizes);
        request_member_text(c, in->request, member, c->attr.TransferInput, &x->list);
        request_member_text(c, in->request, member, c->attr.TransferInputSizes, &x->sizes);
        x->rest = buf_view(&x->list);
        x->sizes_rest = buf_view(&x->sizes);
        x->unknown_bytes = 0;
        if (!eval_integer(&c->eval, ad, NULL, c->attr.TransferInputSizeMB, &mb) || mb <= 0 || mb > 1 << 30)
                return;
        for (struct str list = x->rest, sizes = x->sizes_rest; macro_cut(&list, ',', &element);) {
                one = STR_NONE;
                macro_cut(&sizes, ',', &one);
                c->late_steps++;
                if (str_to_u64(one, &size) == 0)
                        known += size;
                else
                        unknown += element.n > 0;
        }
        size = (uint64_t)mb << 20;
        x->unknown_bytes = unknown && size > known ? (size - known) / unknown : 0;
}

static bool reading_next(struct core *c, const struct inputs *in, struct reading *x, struct input *ret,
                         bool *ret_file)
{
        struct str element, size = STR_NONE;
        uint64_t bytes;

        if (!macro_cut(&x->rest, ',', &element))
                return false;
        macro_cut(&x->sizes_rest, ',', &size);
        c->late_steps += 1 + element.n / ELEMENT_STEP;
        *ret_file = file_of(c, in, element, ret);
        if (*ret_file && str_to_u64(size, &bytes) == 0)
                ret->bytes = bytes;
        else if (*ret_file && ret->bytes == 0)
                ret->bytes = x->unknown_bytes;
        return true;
}

static void reading_close(struct reading *x)
{
        buf_deinit(&x->list);
        buf_deinit(&x->sizes);
}

/* Separates list elements common to all members from those that differ: `raw` is the late text, or empty
 * when no member differs. Returns how many differ. */
static uint32_t read_shared(struct core *c, struct inputs *in, struct str raw)
{
        struct reading x = {0};
        struct input f;
        uint32_t own = 0;
        struct str one;
        bool file;

        reading_open(c, in, in->part->first, &x);
        while (reading_next(c, in, &x, &f, &file)) {
                one = STR_NONE;
                if (raw.p)
                        macro_cut(&raw, ',', &one);
                if (one.n && str_find(one, '$') >= 0)
                        own++;
                else if (file)
                        add_shared(in, &f);
        }
        reading_close(&x);
        return own;
}

static void note_from(struct inputs *in, uint8_t store, uint32_t member)
{
        size_t i = 0;

        while (i < in->from_count && in->from[i].store != store)
                i++;
        if (i == in->from_count) {
                in->from = mem_array(in->from, ++in->from_count, sizeof(*in->from));
                in->from[i] = (struct inputs_from){.store = store};
        }
        set_add(&in->from[i].members, member);
}

/* Fills a row. Returns its cost, in rows of ordinary files. */
static uint32_t fill_row(struct core *c, struct inputs *in, struct reading *x)
{
        size_t at = (size_t)in->filled * in->width, end = at + in->width;
        uint32_t holders = 0;
        struct input f;
        bool file;

        reading_open(c, in, in->part->first + in->filled, x);
        while (at < end && reading_next(c, in, x, &f, &file)) {
                uint32_t *head;

                if (!file || idmap_get(in->shared_ids, f.id))
                        continue;
                holders += locality_wanted(c, in, in->part->first + in->filled, f.id);
                head = &in->heads[inputs_head(in, f.id)];
                in->ids[at] = f.id;
                in->sizes[at] = (float)f.bytes;
                in->stores[at] = f.store;
                in->after[at] = *head;
                *head = (uint32_t)++at;
                note_from(in, f.store, in->part->first + in->filled);
        }
        in->filled++;
        return 1 + holders / 32;
}

/* Fills rows up to the budget. Returns true if there are more. */
static bool fill_rows(struct core *c, struct inputs *in, uint32_t budget)
{
        struct reading x = {0};

        for (uint64_t spent = 0; spent < budget && in->filled < in->part->count;) {
                uint64_t steps = core_steps(c);

                spent += fill_row(c, in, &x);
                spent += (core_steps(c) - steps) / FILL_STEPS;
        }
        reading_close(&x);
        eval_reset(&c->eval);
        if (in->filled < in->part->count)
                return true;
        all_read(in);
        return false;
}

bool inputs_fill_slice(struct core *c)
{
        if (c->data->filling && !fill_rows(c, c->data->filling, FILL_SLICE)) {
                struct inputs *done = c->data->filling;

                c->data->filling = done->next;
                done->next = NULL;
        }
        return locality_leave_slice(c) || c->data->filling;
}

static void make_rows(struct core *c, struct inputs *in, uint32_t width)
{
        size_t n;

        in->width = width < INPUTS_OWN_MAX ? width : INPUTS_OWN_MAX;
        in->shared_ids = idmap_new();
        for (size_t i = 0; i < in->shared_count; i++)
                idmap_put(in->shared_ids, in->shared[i].id, in);
        n = (size_t)in->part->count * in->width;
        in->ids = mem_zalloc(n * sizeof(*in->ids));
        in->sizes = mem_zalloc(n * sizeof(*in->sizes));
        in->stores = mem_zalloc(n);
        in->after = mem_alloc(n * sizeof(*in->after));
        for (in->mask = 1; in->mask < n; in->mask = in->mask * 2 + 1)
                ;
        /* zeroed pages take no memory until they are written */
        in->heads = mem_zalloc(((size_t)in->mask + 1) * sizeof(*in->heads));
        if (fill_rows(c, in, FILL_SLICE)) {
                in->next = c->data->filling;
                c->data->filling = in;
        }
}

static bool says_any(const struct ad *ad, const symbol *names, size_t n)
{
        while (n > 0)
                if (ad_find(ad, names[--n]))
                        return true;
        return false;
}

struct inputs *inputs_new(struct core *c, const struct request *r, const struct part *p)
{
        const symbol names[] = {c->attr.TransferInput, c->attr.ContainerImage, c->attr.DockerImage,
                                c->attr.CondaEnv, c->attr.PythonEnv};
        const struct job_template_late *late = late_of(p, c->attr.TransferInput);
        struct inputs *in;
        struct str raw = STR_NONE;
        uint32_t own;

        if (p->count == 0 || (!late && !says_any(p->job_template->ad, names, sizeof(names) / sizeof(*names))))
                return NULL;
        in = mem_new(struct inputs);
        in->request = r;
        in->part = p;
        in->number = ++c->data->inputs_last;
        in->spooled = request_spooled_take(r);
        in->file_identity = file_identity_new(c, r, p);
        if (late && p->count > 1)
                raw = late->text;
        own = read_shared(c, in, raw);
        add_image(c, in);
        add_environment(c, in, ENVIRONMENT_CONDA, c->attr.CondaEnv);
        add_environment(c, in, ENVIRONMENT_PYTHON, c->attr.PythonEnv);
        eval_reset(&c->eval);
        if (own)
                make_rows(c, in, own);
        else
                all_read(in);
        if (own || in->shared_count)
                return in;
        inputs_free(c, in);
        return NULL;
}

size_t inputs_output_store(struct core *c, const struct request *r, const struct part *p)
{
        const struct sites *s = &c->data->sites;
        BUF_CLEANUP struct buf text = {0}, remaps = {0}, url = {0};
        const symbol names[] = {c->attr.OutputDestination, c->attr.TransferOutputRemaps};
        size_t store = FILE_STORE_NONE;
        struct str rest, name, one;

        if (!says_any(p->job_template->ad, names, 2) && !late_of(p, names[0]) && !late_of(p, names[1]))
                return s->store_count;
        if (p->count && request_member_text(c, r, p->first, c->attr.OutputDestination, &text) == 0)
                file_url(buf_view(&text), s->urls, s->store_count, &url, &store);
        if (p->count && !text.n &&
            request_member_text(c, r, p->first, c->attr.TransferOutputRemaps, &remaps) == 0)
                for (rest = buf_view(&remaps); store == FILE_STORE_NONE && str_cut(&rest, ';', &one);) {
                        buf_reset(&url);
                        if (str_cut(&one, '=', &name))
                                file_url(str_trim(one), s->urls, s->store_count, &url, &store);
                }
        eval_reset(&c->eval);
        return store == FILE_STORE_NONE ? s->store_count : store;
}

void inputs_free(struct core *c, struct inputs *in)
{
        if (!in)
                return;
        for (struct inputs **at = &c->data->filling; *at; at = &(*at)->next)
                if (*at == in) {
                        *at = in->next;
                        break;
                }
        all_read(in);
        locality_leave(c, in);
}

void inputs_destroy(struct inputs *in)
{
        for (size_t i = 0; i < in->from_count; i++)
                set_deinit(&in->from[i].members);
        free(in->from);
        idmap_free(in->localities);
        free(in->shared);
        free(in->ids);
        free(in->sizes);
        free(in->stores);
        free(in->heads);
        free(in->after);
        free(in);
}

/* ---- looking */

static struct input entry(const struct inputs *in, size_t at)
{
        return (struct input){in->ids[at], (uint64_t)in->sizes[at], in->stores[at], false, false};
}

/* Takes a file's unknown size from an agent that holds it. */
static void learn_size(struct core *c, struct input *f)
{
        const struct file *known = f->bytes == 0 && c->data->files ? idmap_get(c->data->files, f->id) : NULL;

        if (known)
                f->bytes = known->bytes;
        else if (f->bytes == 0 && f->environment)
                f->bytes = INPUT_ENVIRONMENT_BYTES;
}

size_t inputs_count(const struct inputs *in)
{
        return in ? in->shared_count + in->width : 0;
}

#define FILES_STEP 16u /* files that take as long to look at as a step of an evaluation */

/* Calls fn as inputs_each does. Returns how many files were looked at. */
static size_t each_input(struct core *c, const struct inputs *in, uint32_t member,
                         bool (*fn)(void *arg, const struct input *file), void *arg)
{
        size_t looked = 0, at;

        for (; in && looked < in->shared_count; looked++) {
                struct input f = in->shared[looked];

                learn_size(c, &f);
                if (!fn(arg, &f))
                        return looked;
        }
        if (!in || member == MEMBER_ANY || member - in->part->first >= in->filled)
                return looked;
        at = (size_t)(member - in->part->first) * in->width;
        for (size_t i = 0; i < in->width; i++, at++) {
                struct input f = entry(in, at);

                learn_size(c, &f);
                if (f.id && !fn(arg, &f))
                        return looked + i;
        }
        return looked + in->width;
}

void inputs_each(struct core *c, const struct inputs *in, uint32_t member,
                 bool (*fn)(void *arg, const struct input *file), void *arg)
{
        c->late_steps += each_input(c, in, member, fn, arg) / FILES_STEP;
}

struct held {
        const struct core_agent *agent;
        uint64_t bytes;
};

static bool add_held(void *arg, const struct input *f)
{
        struct held *h = arg;

        if (agent_holds(h->agent, f->id))
                h->bytes += f->bytes;
        return true;
}

uint64_t inputs_held(struct core *c, const struct inputs *in, uint32_t member, const struct core_agent *a)
{
        struct held h = {a, 0};

        if (a->data)
                inputs_each(c, in, member, add_held, &h);
        return h.bytes;
}

void inputs_leave_out_down(const struct inputs *in, const struct core_agent *a, struct set *members)
{
        for (size_t i = 0; in && i < in->from_count; i++)
                if (agent_link_down(a, in->from[i].store))
                        set_remove_all(members, &in->from[i].members);
}

static bool limited_from(const struct core_store *s, struct str from)
{
        for (size_t i = 0; i < s->from_count; i++)
                if (str_eq(s->from[i].name, from))
                        return true;
        return false;
}

struct store_draws inputs_store_draws(const struct core *c, const struct part *p)
{
        const struct sites *s = &c->data->sites;
        const struct inputs *in = p->inputs;
        struct store_draws d = {0};
        uint64_t all = 0;

        for (size_t i = 0; in && i < in->shared_count && in->shared[i].store < 64; i++)
                all |= 1ull << in->shared[i].store;
        for (size_t i = 0; in && in->filled && i < in->width; i++) /* the first member stands for all */
                if (in->ids[i] && in->stores[i] < 64)
                        all |= 1ull << in->stores[i];
        if (p->output_store < s->store_count)
                d.into = p->output_store + 1u;
        if (d.into && s->stores[d.into - 1].concurrency_in)
                d.written = d.into;
        for (size_t i = 0; i < s->store_count && i < 64; i++) {
                if (s->stores[i].concurrency)
                        d.read |= all & 1ull << i;
                if (d.into && limited_from(&s->stores[d.into - 1], s->stores[i].urls.name))
                        d.read_into |= all & 1ull << i;
        }
        return d;
}

size_t inputs_bytes(const struct inputs *in)
{
        size_t n = 0;
        void *near;

        if (!in)
                return 0;
        if (in->width)
                n = (size_t)in->part->count * in->width * (8 + 4 + 1 + 4) + ((size_t)in->mask + 1) * 4;
        for (size_t at = 0; in->localities && idmap_next(in->localities, &at, NULL, &near);)
                n += locality_bytes(near);
        for (size_t i = 0; i < in->from_count; i++)
                n += sizeof(*in->from) + set_bytes(&in->from[i].members);
        return n + sizeof(*in) + in->shared_cap * sizeof(*in->shared);
}

void request_inputs_free(struct core *c, struct request *r)
{
        for (size_t i = 0; i < r->part_count; i++) {
                inputs_free(c, r->parts[i].inputs);
                r->parts[i].inputs = NULL;
        }
        edits_follow(r);
}

void request_data_free(struct core *c, struct request *r)
{
        request_inputs_free(c, r);
        for (size_t i = 0; i < r->part_count; i++)
                estimate_detach(c, &r->parts[i]);
}

void part_data_load(struct core *c, struct request *r, struct part *p)
{
        estimate_attach(c, r, p);
        p->output_store = (uint16_t)inputs_output_store(c, r, p);
        p->inputs = inputs_new(c, r, p);
        p->claim_units = space_claim(c, p);
        label_part(c, r, p);
}

#define PART_STEPS 10u    /* steps that loading a part without a list takes */
#define LOAD_STEPS 20000u /* of one call of request_data_load_some; the last part may go beyond it */

bool request_data_load_some(struct core *c, struct request *r, uint32_t *part)
{
        uint64_t until = core_steps(c) + LOAD_STEPS;

        request_spooled_keep(r);
        for (; *part < r->part_count && core_steps(c) < until; (*part)++) {
                struct part *p = &r->parts[*part];

                inputs_free(c, p->inputs);
                p->inputs = NULL;
                part_data_load(c, r, p);
                c->late_steps += PART_STEPS;
        }
        request_spooled_give(r);
        edits_follow(r);
        return *part < r->part_count;
}

void request_data_load(struct core *c, struct request *r)
{
        uint32_t part = 0;

        while (request_data_load_some(c, r, &part))
                ;
}
