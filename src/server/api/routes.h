/* routes: the table of the API's routes. docs/openapi.json describes the same routes; a test compares the
 * two. */
#pragma once
#include "server/calls/route.h"

/* Finds a route in the table, as route_find does. */
const struct route *routes_find(enum http_method method, struct str path, struct str param[2],
                                bool *ret_path_known);
const struct route *routes_at(size_t n); /* NULL at the end */
struct bodies *routes_bodies(void);      /* of this table: see body.h */

call_fn api_server, api_server_status, api_server_promote, api_server_drain, api_openapi, api_config,
        api_time_limit, api_health, api_ready;
call_fn api_upload_new, api_upload_put, api_upload_finish;
call_fn api_submit, api_resubmit, api_requests, api_request, api_request_files, api_request_lease,
        api_request_taken;
call_fn api_jobs, api_job, api_job_log, api_job_why, api_job_files, api_job_file;
call_fn api_nodes, api_node, api_node_set, api_wishlist;
call_fn api_bank, api_bank_account, api_bank_bill, api_bank_statement, api_bank_reserved, api_bank_machines,
        api_bank_users, api_bank_order;
call_fn api_usage, api_usage_records, api_usage_keywords;
call_fn api_sssrmap, api_description;
call_fn api_reservations, api_reservation, api_reservation_new, api_reservation_end;
call_fn api_action, api_wait, api_history, api_agents, api_agent_revoke, api_agent_drain, api_agent_resume,
        api_agent_wish, api_stores, api_store_set, api_quote, api_events, api_limits, api_metrics, api_series,
        api_capacity, api_job_path, api_job_script, api_job_output, api_job_exec, api_job_exec_input,
        api_paths;
call_fn api_catalog, api_catalog_files, api_catalog_put, api_catalog_file, api_catalog_remove;
call_fn api_catalog_datasets, api_catalog_dataset_put, api_catalog_dataset_delete;
call_fn api_accounts, api_job_priority;
call_fn api_tes_service, api_tes_list, api_tes_create, api_tes_task, api_tes_cancel;
call_fn api_token_new, api_tokens, api_token_delete;
call_fn api_credential_put, api_request_credential, api_credentials, api_credential_delete;
