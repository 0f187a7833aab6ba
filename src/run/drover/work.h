/* work: performs what is due: tasks that wait for a turn, leases and acts to send, kills. */
#pragma once
#include "run/runner.h"

struct remote;
struct remote_task;

void remote_work_open(struct remote *f);
void remote_work_start(struct remote *f);
void remote_work_close(struct remote *f);
void remote_work(struct remote *f);  /* continues tasks that wait for a turn */
void remote_flush(struct remote *f); /* sends what is pending, if the other server answers */
void remote_kill(struct remote_task *t, enum run_why why);
