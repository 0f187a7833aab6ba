#include "server/api/routes.h"

#include "server/calls/body.h"

#define TES "/ga4gh/tes/v1"

static const struct route routes[] = {
        {HTTP_GET, "/metrics", api_metrics},
        {HTTP_GET, "/healthz", api_health, true, true},
        {HTTP_GET, "/readyz", api_ready, true},
        {HTTP_GET, "/.well-known/drover", api_description, true},
        {HTTP_GET, "/v1/server", api_server, false, true},
        {HTTP_GET, "/v1/server/status", api_server_status},
        {HTTP_POST, "/v1/server/promote", api_server_promote},
        {HTTP_POST, "/v1/server/drain", api_server_drain},
        {HTTP_GET, "/v1/openapi.json", api_openapi, false, true},
        {HTTP_GET, "/v1/config", api_config, false, true},
        {HTTP_GET, "/v1/config/time_limit", api_time_limit, false, true},
        {HTTP_POST, "/v1/uploads", api_upload_new},
        {HTTP_PUT, "/v1/uploads/{id}", api_upload_put},
        {HTTP_POST, "/v1/uploads/{id}/finish", api_upload_finish},
        {HTTP_POST, "/v1/requests", api_submit},
        {HTTP_GET, "/v1/requests", api_requests, false, true},
        {HTTP_GET, "/v1/requests/{id}", api_request, false, true},
        {HTTP_GET, "/v1/requests/{id}/files", api_request_files},
        {HTTP_PUT, "/v1/requests/{id}/lease", api_request_lease},
        {HTTP_POST, "/v1/requests/{id}/resubmit", api_resubmit},
        {HTTP_POST, "/v1/requests/{id}/taken", api_request_taken},
        {HTTP_PUT, "/v1/requests/{id}/credentials/{name}", api_request_credential},
        {HTTP_GET, "/v1/jobs", api_jobs, false, true},
        {HTTP_GET, "/v1/jobs/{id}", api_job, false, true},
        {HTTP_GET, "/v1/jobs/{id}/log", api_job_log, false, true},
        {HTTP_GET, "/v1/jobs/{id}/why", api_job_why},
        {HTTP_GET, "/v1/jobs/{id}/path", api_job_path},
        {HTTP_GET, "/v1/jobs/{id}/script", api_job_script},
        {HTTP_GET, "/v1/jobs/{id}/output", api_job_output},
        {HTTP_POST, "/v1/jobs/{id}/exec", api_job_exec},
        {HTTP_POST, "/v1/jobs/{id}/exec/input", api_job_exec_input},
        {HTTP_GET, "/v1/paths", api_paths},
        {HTTP_GET, "/v1/jobs/{id}/priority", api_job_priority},
        {HTTP_GET, "/v1/jobs/{id}/files", api_job_files},
        {HTTP_GET, "/v1/jobs/{id}/files/{name+}", api_job_file},
        {HTTP_POST, "/v1/actions", api_action},
        {HTTP_GET, "/v1/wait", api_wait},
        {HTTP_GET, "/v1/history", api_history, false, true},
        {HTTP_POST, "/v1/quote", api_quote},
        {HTTP_GET, "/v1/agents", api_agents},
        {HTTP_POST, "/v1/agents/{name}/revoke", api_agent_revoke},
        {HTTP_POST, "/v1/agents/{name}/drain", api_agent_drain},
        {HTTP_POST, "/v1/agents/{name}/wish", api_agent_wish},
        {HTTP_POST, "/v1/agents/{name}/resume", api_agent_resume},
        {HTTP_GET, "/v1/usage", api_usage, false, true},
        {HTTP_GET, "/v1/usage/records", api_usage_records, false, true},
        {HTTP_GET, "/v1/usage/keywords", api_usage_keywords},
        {HTTP_GET, "/v1/reservations", api_reservations},
        {HTTP_POST, "/v1/reservations", api_reservation_new},
        {HTTP_GET, "/v1/reservations/{id}", api_reservation},
        {HTTP_DELETE, "/v1/reservations/{id}", api_reservation_end},
        {HTTP_GET, "/v1/bank", api_bank},
        {HTTP_GET, "/v1/bank/accounts/{name}", api_bank_account},
        {HTTP_GET, "/v1/bank/accounts/{name}/statement", api_bank_statement},
        {HTTP_GET, "/v1/bank/bill", api_bank_bill},
        {HTTP_GET, "/v1/bank/reserved", api_bank_reserved},
        {HTTP_GET, "/v1/bank/machines", api_bank_machines},
        {HTTP_GET, "/v1/bank/users", api_bank_users},
        {HTTP_POST, "/v1/bank/orders", api_bank_order},
        {HTTP_GET, "/v1/nodes", api_nodes},
        {HTTP_GET, "/v1/nodes/{name}", api_node},
        {HTTP_POST, "/v1/nodes/{name}", api_node_set},
        {HTTP_GET, "/v1/wishlist", api_wishlist},
        {HTTP_GET, "/v1/capacity", api_capacity},
        {HTTP_GET, "/v1/series", api_series},
        {HTTP_GET, "/v1/limits", api_limits},
        {HTTP_GET, "/v1/accounts", api_accounts},
        {HTTP_GET, "/v1/stores", api_stores},
        {HTTP_POST, "/v1/stores/{name}", api_store_set},
        {HTTP_GET, "/v1/catalog", api_catalog},
        {HTTP_GET, "/v1/catalog/files", api_catalog_files},
        {HTTP_POST, "/v1/catalog/files", api_catalog_put},
        {HTTP_GET, "/v1/catalog/files/{name+}", api_catalog_file},
        {HTTP_POST, "/v1/catalog/remove", api_catalog_remove},
        {HTTP_GET, "/v1/catalog/datasets", api_catalog_datasets},
        {HTTP_PUT, "/v1/catalog/datasets/{name+}", api_catalog_dataset_put},
        {HTTP_DELETE, "/v1/catalog/datasets/{name+}", api_catalog_dataset_delete},
        {HTTP_GET, "/v1/events", api_events},
        {HTTP_POST, "/v1/tokens", api_token_new},
        {HTTP_GET, "/v1/tokens", api_tokens},
        {HTTP_DELETE, "/v1/tokens/{id}", api_token_delete},
        {HTTP_GET, TES "/service-info", api_tes_service},
        {HTTP_GET, TES "/tasks", api_tes_list},
        {HTTP_POST, TES "/tasks", api_tes_create},
        {HTTP_GET, TES "/tasks/{id}", api_tes_task},
        {HTTP_POST, TES "/tasks/{id}:cancel", api_tes_cancel},
        {HTTP_POST, "/SSSRMAP3", api_sssrmap, true},
        {HTTP_GET, "/v1/credentials", api_credentials},
        {HTTP_PUT, "/v1/credentials/{name}", api_credential_put},
        {HTTP_DELETE, "/v1/credentials/{name}", api_credential_delete},
};

const struct route *routes_find(enum http_method method, struct str path, struct str param[2],
                                bool *ret_path_known)
{
        return route_find(routes, sizeof(routes) / sizeof(routes[0]), method, path, param, ret_path_known);
}

const struct route *routes_at(size_t n)
{
        return n < sizeof(routes) / sizeof(routes[0]) ? &routes[n] : NULL;
}

struct bodies *routes_bodies(void)
{
        return bodies_new(routes, sizeof(routes) / sizeof(routes[0]));
}
