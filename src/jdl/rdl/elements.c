/* The names of elements that are published of RDL0.52.xsd are as they are there: AbstractRequest, Request,
 * the three tasks, Application, Dataset, ResourceSpecifications, WorkFlow and what is in it. What stands
 * within a task, a dataset and the limits has the names that SUMS's descriptions give it. */
#include "jdl/rdl/elements.h"

#define ANY 0

static const struct sums_attribute none[] = {{0}};
static const struct sums_attribute whole[] = {{"version", SUMS_TEXT, false}, {"name", SUMS_TEXT, false}, {0}};
static const struct sums_attribute request[] = {{"ID", SUMS_ID, false},
                                                {"taskRef", SUMS_IDREF, true},
                                                {"appRef", SUMS_IDREF, false},
                                                {"datasetRef", SUMS_IDREF, false},
                                                {"resourceRef", SUMS_IDREF, false},
                                                {"nProcesses", SUMS_COUNT, false},
                                                {"register", SUMS_TEXT, false},
                                                {0}};
static const struct sums_attribute application[] = {{"ID", SUMS_ID, true},
                                                    {"name", SUMS_TEXT, true},
                                                    {"type", SUMS_PROGRAM, false},
                                                    {"ver", SUMS_TEXT, false},
                                                    {0}};
static const struct sums_attribute variable[] = {{"name", SUMS_TEXT, true}, {0}};
static const struct sums_attribute script_task[] = {{"ID", SUMS_ID, true}, {0}};
static const struct sums_attribute root_task[] = {
        {"ID", SUMS_ID, true}, {"macro", SUMS_TEXT, true}, {"arguments", SUMS_TEXT, false}, {0}};
static const struct sums_attribute java_task[] = {{"ID", SUMS_ID, true},
                                                  {"jar", SUMS_TEXT, false},
                                                  {"class", SUMS_TEXT, false},
                                                  {"arguments", SUMS_TEXT, false},
                                                  {0}};
static const struct sums_attribute dataset[] = {
        {"ID", SUMS_ID, true}, {"fileListSyntax", SUMS_SYNTAX, false}, {"inputOrder", SUMS_TEXT, false}, {0}};
static const struct sums_attribute idref[] = {{"idref", SUMS_IDREF, true}, {0}};
static const struct sums_attribute resources[] = {{"ID", SUMS_ID, true},
                                                  {"minFilesPerProcess", SUMS_COUNT, false},
                                                  {"maxFilesPerProcess", SUMS_COUNT, false},
                                                  {"filesPerHour", SUMS_AMOUNT, false},
                                                  {"maxEvents", SUMS_COUNT, false},
                                                  {"eventsPerHour", SUMS_AMOUNT, false},
                                                  {"limitByEvents", SUMS_BOOLEAN, false},
                                                  {"minMemory", SUMS_COUNT, false},
                                                  {"maxMemory", SUMS_COUNT, false},
                                                  {"minStorageSpace", SUMS_COUNT, false},
                                                  {"maxStorageSpace", SUMS_COUNT, false},
                                                  {"minWallTime", SUMS_COUNT, false},
                                                  {"maxWallTime", SUMS_COUNT, false},
                                                  {"softLimits", SUMS_BOOLEAN, false},
                                                  {"priority", SUMS_INTEGER, false},
                                                  {0}};
static const struct sums_attribute group[] = {{"id", SUMS_ID, true}, {0}};
static const struct sums_attribute dependency[] = {{"id", SUMS_ID, false}, {"when", SUMS_WHEN, false}, {0}};

#define TASK(name, attributes)                                                                               \
        {name, "AbstractRequest", attributes, SUMS_TEXT, false, 0, ANY},                                     \
                {"stdin", name, sums_standard_input_attributes, SUMS_TEXT, false, 0, 1},                     \
                {"stdout", name, sums_stream_attributes, SUMS_TEXT, false, 0, 1},                            \
                {"stderr", name, sums_stream_attributes, SUMS_TEXT, false, 0, 1},                            \
                {"output", name, sums_output_attributes, SUMS_TEXT, false, 0, ANY},                          \
                {"SandBox", name, sums_sandbox_attributes, SUMS_TEXT, false, 0, 1},                          \
        {                                                                                                    \
                "Environment", name, variable, SUMS_TEXT, true, 0, ANY                                       \
        }

static const struct sums_element elements[] = {
        {"AbstractRequest", NULL, whole, SUMS_TEXT, false, 1, 1},
        {"Request", "AbstractRequest", request, SUMS_TEXT, false, 1, ANY},
        {"RequestName", "Request", none, SUMS_TEXT, true, 0, 1},
        TASK("ScriptTask", script_task),
        {"Text", "ScriptTask", none, SUMS_TEXT, true, 1, 1},
        TASK("RootTask", root_task),
        TASK("JavaTask", java_task),
        {"Package", "SandBox", sums_package_attributes, SUMS_TEXT, false, 1, ANY},
        {"File", "Package", none, SUMS_TEXT, true, 1, ANY},
        {"Application", "AbstractRequest", application, SUMS_TEXT, false, 0, ANY},
        {"Environment", "Application", variable, SUMS_TEXT, true, 0, ANY},
        {"Dataset", "AbstractRequest", dataset, SUMS_TEXT, false, 0, ANY},
        {"input", "Dataset", sums_input_attributes, SUMS_TEXT, false, 0, ANY},
        {"DatasetRef", "Dataset", idref, SUMS_TEXT, false, 0, ANY},
        {"ResourceSpecifications", "AbstractRequest", resources, SUMS_TEXT, false, 0, ANY},
        {"WorkFlow", "AbstractRequest", none, SUMS_TEXT, false, 0, 1},
        {"MergeRequests", "WorkFlow", group, SUMS_TEXT, false, 0, ANY},
        {"RequestID", "MergeRequests", idref, SUMS_TEXT, false, 1, ANY},
        {"ChooseBetweenRequests", "WorkFlow", group, SUMS_TEXT, false, 0, ANY},
        {"RequestID", "ChooseBetweenRequests", idref, SUMS_TEXT, false, 1, ANY},
        {"SetupRequestDependancy", "WorkFlow", dependency, SUMS_TEXT, false, 0, ANY},
        {"RequestToBeDoneFirstID", "SetupRequestDependancy", idref, SUMS_TEXT, false, 1, ANY},
        {"RequestWaitingForInputID", "SetupRequestDependancy", idref, SUMS_TEXT, false, 1, ANY},
        {0},
};
const struct schema rdl_schema = {"a composite request in RDL", "drover-rdl(7)", elements};
