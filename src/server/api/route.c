#include "server/api/route.h"

static const struct route routes[] = {
        {HTTP_GET, "/v1/server", api_server},
        {HTTP_GET, "/v1/openapi.json", api_openapi},
        {HTTP_POST, "/v1/uploads", api_upload_new},
        {HTTP_PUT, "/v1/uploads/{id}", api_upload_put},
        {HTTP_POST, "/v1/uploads/{id}/finish", api_upload_finish},
        {HTTP_POST, "/v1/requests", api_submit},
        {HTTP_GET, "/v1/requests", api_requests},
        {HTTP_GET, "/v1/requests/{id}", api_request},
        {HTTP_GET, "/v1/requests/{id}/files", api_request_files},
        {HTTP_PUT, "/v1/requests/{id}/lease", api_request_lease},
        {HTTP_POST, "/v1/requests/{id}/taken", api_request_taken},
        {HTTP_PUT, "/v1/requests/{id}/credentials/{name}", api_request_credential},
        {HTTP_GET, "/v1/jobs", api_jobs},
        {HTTP_GET, "/v1/jobs/{id}", api_job},
        {HTTP_GET, "/v1/jobs/{id}/log", api_job_log},
        {HTTP_GET, "/v1/jobs/{id}/why", api_job_why},
        {HTTP_GET, "/v1/jobs/{id}/path", api_job_path},
        {HTTP_GET, "/v1/jobs/{id}/script", api_job_script},
        {HTTP_GET, "/v1/paths", api_paths},
        {HTTP_GET, "/v1/jobs/{id}/priority", api_job_priority},
        {HTTP_GET, "/v1/jobs/{id}/files", api_job_files},
        {HTTP_GET, "/v1/jobs/{id}/files/{name+}", api_job_file},
        {HTTP_POST, "/v1/actions", api_action},
        {HTTP_GET, "/v1/wait", api_wait},
        {HTTP_GET, "/v1/history", api_history},
        {HTTP_POST, "/v1/quote", api_quote},
        {HTTP_GET, "/v1/agents", api_agents},
        {HTTP_POST, "/v1/agents/{name}/revoke", api_agent_revoke},
        {HTTP_GET, "/v1/capacity", api_capacity},
        {HTTP_GET, "/v1/limits", api_limits},
        {HTTP_GET, "/v1/accounts", api_accounts},
        {HTTP_GET, "/v1/stores", api_stores},
        {HTTP_GET, "/v1/events", api_events},
        {HTTP_POST, "/v1/tokens", api_token_new},
        {HTTP_GET, "/v1/tokens", api_tokens},
        {HTTP_DELETE, "/v1/tokens/{id}", api_token_delete},
        {HTTP_GET, "/v1/credentials", api_credentials},
        {HTTP_PUT, "/v1/credentials/{name}", api_credential_put},
        {HTTP_DELETE, "/v1/credentials/{name}", api_credential_delete},
};

bool route_match(const char *pattern, struct str path, struct str param[2])
{
        struct str p = str_of(pattern), want, have;
        unsigned n = 0;

        while (str_cut(&p, '/', &want)) {
                if (str_ends(want, STR("+}"))) {
                        if (!path.p || path.n == 0)
                                return false;
                        param[n] = path;
                        return true;
                }
                if (!str_cut(&path, '/', &have))
                        return false;
                if (want.n && want.p[0] == '{') {
                        if (have.n == 0)
                                return false;
                        param[n++] = have;
                } else if (!str_eq(want, have)) {
                        return false;
                }
        }
        return path.p == NULL;
}

const struct route *route_find(enum http_method method, struct str path, struct str param[2],
                               bool *ret_path_known)
{
        *ret_path_known = false;
        for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
                struct str found[2] = {0};

                if (!route_match(routes[i].path, path, found))
                        continue;
                *ret_path_known = true;
                if (routes[i].method == method || (routes[i].method == HTTP_GET && method == HTTP_HEAD)) {
                        param[0] = found[0];
                        param[1] = found[1];
                        return &routes[i];
                }
        }
        return NULL;
}

const struct route *route_at(size_t n)
{
        return n < sizeof(routes) / sizeof(routes[0]) ? &routes[n] : NULL;
}
