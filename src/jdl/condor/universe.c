/* The universe: what kind of place runs the job.
 *
 * Containers, named places (grid) and the machine of the submit (local, scheduler) are conditions on the
 * place, like everything else: Drover knows one kind of place, a queue of an agent. What would need a kind of
 * its own is refused, with what to do instead. */
#include <errno.h>

#include "jdl/condor/reader.h"

static const struct {
        const char *name;
        enum universe universe;
        const char *number; /* HTCondor's JobUniverse */
        const char *refused;
} universes[] = {
        {"vanilla", UNIVERSE_VANILLA, "5", NULL},
        {"container", UNIVERSE_CONTAINER, "5", NULL},
        {"docker", UNIVERSE_DOCKER, "5", NULL},
        {"scheduler", UNIVERSE_LOCAL, "7", NULL},
        {"grid", UNIVERSE_GRID, "9", NULL},
        {"globus", UNIVERSE_GRID, "9", NULL},
        {"parallel", UNIVERSE_PARALLEL, "11", NULL},
        {"local", UNIVERSE_LOCAL, "12", NULL},
        {"data", UNIVERSE_DATA, "data", NULL},
        {"standard", UNIVERSE_VANILLA, "1",
         "programs are not relinked for checkpoints; leave this line out, and the job runs as it is"},
        {"pvm", UNIVERSE_VANILLA, "4", "it is no more; run the program's own launcher"},
        {"mpi", UNIVERSE_VANILLA, "8",
         "a job runs at one place; run mpirun there, with request_cpus for its processes"},
        {"java", UNIVERSE_VANILLA, "10",
         "run java itself: executable = /usr/bin/java, transfer_executable = False, arguments = -cp a.jar "
         "Main, "
         "transfer_input_files = a.jar"},
        {"vm", UNIVERSE_VANILLA, "13",
         "virtual machines are not started; run the emulator as the executable, or use universe = container"},
};
#define UNIVERSE_COUNT (sizeof(universes) / sizeof(universes[0]))

static int choose(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, "universe", &e);
        struct str name = entry_unquoted(&e);

        r->universe = UNIVERSE_VANILLA;
        if (rc < 0)
                return rc;
        for (size_t i = 0; rc && i < UNIVERSE_COUNT; i++) {
                bool by_number = str_eqz(name, universes[i].number) &&
                                 strcmp(universes[i].name, "container") != 0 &&
                                 strcmp(universes[i].name, "docker") != 0;

                if (!by_number && !str_ieqz(name, universes[i].name))
                        continue;
                if (universes[i].refused)
                        return entry_fail(r, &e, "'" STR_FMT "' is not supported: %s", STR_ARG(name),
                                          universes[i].refused);
                r->universe = universes[i].universe;
                attribute_default(r, "JobUniverse", r->universe == UNIVERSE_DATA ? "5" : universes[i].number);
                return 0;
        }
        if (rc)
                return entry_fail(r, &e,
                                  "'" STR_FMT
                                  "' is not known; it is one of vanilla, container, docker, grid, "
                                  "local, scheduler, parallel and data",
                                  STR_ARG(str_head(name, 40)));
        attribute_default(r, "JobUniverse", "5");
        return 0;
}

/* An image makes a container of a vanilla job too. */
static int images(struct reader *r)
{
        ENTRY_CLEANUP struct entry image = {0}, docker = {0};
        int a = entry_get(r, "container_image", &image), b = entry_get(r, "docker_image", &docker);
        bool may = r->universe == UNIVERSE_VANILLA || r->universe == UNIVERSE_CONTAINER ||
                   r->universe == UNIVERSE_DOCKER;
        int rc = 0;

        if (a < 0 || b < 0)
                return a < 0 ? a : b;
        if ((a || b) && !may)
                return entry_fail(r, a ? &image : &docker,
                                  "an image needs universe = container, docker or vanilla");
        if (a && b)
                return entry_fail(r, &docker, "give container_image or docker_image, not both");
        if (r->universe == UNIVERSE_DOCKER && a)
                return entry_fail(r, &image, "universe = docker takes docker_image");
        if (!a && !b && (r->universe == UNIVERSE_DOCKER || r->universe == UNIVERSE_CONTAINER))
                return reader_fail(
                        r, (struct place){r->files[0], r->part->line}, "this universe needs an image: %s",
                        r->universe == UNIVERSE_DOCKER ? "docker_image = NAME"
                                                       : "container_image = docker://NAME or FILE.sif");
        if (a) {
                struct str name = entry_unquoted(&image), path;

                rc = files_image(r, &image, &path, &name);
                if (rc >= 0)
                        rc = attribute_string(r, "ContainerImage", &image, name);
        }
        if (b)
                rc = attribute_string(r, "DockerImage", &docker, entry_unquoted(&docker));
        if (rc || (!a && !b))
                return rc;
        if (r->universe == UNIVERSE_DOCKER) {
                attribute_default(r, "WantDocker", "true");
                return 0;
        }
        r->universe = UNIVERSE_CONTAINER;
        attribute_default(r, "WantContainer", "true");
        if (b)
                attribute_default(r, "WantDockerImage", "true");
        return 0;
}

/* ---- grid: a place by its name */

/* grid_resource, or what grid_type and globusscheduler make together. */
static int resource_text(struct reader *r, struct entry *e)
{
        ENTRY_CLEANUP struct entry type = {0}, rest = {0};
        BUF_CLEANUP struct buf both = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get(r, "grid_resource", e), a, b;

        if (rc)
                return rc;
        a = entry_get(r, "grid_type", &type);
        b = entry_get(r, "globusscheduler", &rest);
        if (a < 0 || b < 0)
                return a < 0 ? a : b;
        if (!a && !b)
                return reader_fail(r, (struct place){r->files[0], r->part->line},
                                   "universe = grid needs the name of a place: grid_resource = batch NAME");
        buf_printf(&both, STR_FMT " " STR_FMT, STR_ARG(a ? entry_unquoted(&type) : STR("gt2")),
                   STR_ARG(entry_unquoted(&rest)));
        buf_reset(&e->text);
        buf_str(&e->text, str_trim(buf_view(&both)));
        e->keyword = a ? "grid_type" : "globusscheduler";
        e->at = a ? type.at : rest.at;
        e->late = type.late || rest.late;
        return 1;
}

static int grid(struct reader *r)
{
        static const char *const clouds[] = {"ec2", "gce", "azure"};
        ENTRY_CLEANUP struct entry e = {0};
        struct str text, rest, type = STR_NONE;
        int rc = resource_text(r, &e);

        if (rc < 0)
                return rc;
        rest = text = entry_unquoted(&e);
        str_word(&rest, &type);
        for (size_t i = 0; i < 3; i++)
                if (str_ieqz(type, clouds[i]))
                        return entry_fail(r, &e,
                                          "a submit starts no machines; have an agent started there, and "
                                          "name its queue: grid_resource = batch NAME");
        attribute_default_string(r, "Type", "Job"); /* what ads of grid sites ask for */
        return attribute_string(r, "GridResource", &e, text);
}

/* The word that names the place: the second, or the only one. It is what stands in the quoted attribute. */
static struct str place_word(const struct form_attribute *a)
{
        struct str rest = str_make(a->text + 1, strlen(a->text) - 2), first = STR_NONE, second;

        str_word(&rest, &first);
        return str_word(&rest, &second) ? second : first;
}

static bool grid_clause(struct reader *r, struct buf *out)
{
        const struct form_attribute *a = form_get(r->part, STR("GridResource"));
        struct str word;

        if (!a || a->text[0] != '"' || str_search(str_of(a->text), STR("$$(")) >= 0)
                return false; /* the place that is found gives it */
        word = place_word(a);
        clause_add(out,
                   "(TARGET.GridResource == MY.GridResource || TARGET.QueueName == \"" STR_FMT
                   "\" || TARGET.Name == \"" STR_FMT "\" || TARGET.Runner == \"" STR_FMT "\")",
                   STR_ARG(word), STR_ARG(word), STR_ARG(word));
        return a->late;
}

/* ---- */

int universe_make(struct reader *r)
{
        int rc = choose(r);

        if (!rc)
                rc = images(r);
        if (!rc && r->universe == UNIVERSE_GRID)
                rc = grid(r);
        return rc;
}

bool universe_wants_arch(const struct reader *r)
{
        return r->universe != UNIVERSE_GRID && r->universe != UNIVERSE_LOCAL && r->universe != UNIVERSE_DATA;
}

bool universe_wants_opsys(const struct reader *r)
{
        return universe_wants_arch(r) && r->universe != UNIVERSE_CONTAINER && r->universe != UNIVERSE_DOCKER;
}

bool universe_clauses(struct reader *r, bool (*mentioned)(void *arg, struct str name), void *arg,
                      struct buf *out)
{
        switch (r->universe) {
        case UNIVERSE_DOCKER:
                if (!mentioned(arg, STR("HasDocker")))
                        clause_add(out, "TARGET.HasDocker");
                return false;
        case UNIVERSE_CONTAINER:
                if (!mentioned(arg, STR("HasContainer")))
                        clause_add(out, "TARGET.HasContainer");
                return false;
        case UNIVERSE_LOCAL:
                if (!mentioned(arg, STR("Machine")))
                        clause_add(out, "(TARGET.Machine == MY.SubmitHost)");
                return false;
        case UNIVERSE_GRID: return grid_clause(r, out);
        case UNIVERSE_DATA: placement_clause(r, out); return false;
        case UNIVERSE_VANILLA:
        case UNIVERSE_PARALLEL: break;
        }
        return false;
}
