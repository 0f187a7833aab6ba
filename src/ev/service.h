/* service: what a daemon tells the service manager that started it: the datagrams of sd_notify(3), without
 * libsystemd. Nothing is told where nobody asked for it. One thread, the loop's. */
#pragma once
#include "ev/loop.h"

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no program that we
 * start has them. Before the other calls, and before there are threads. */
void service_open(void);
/* It serves. From then on the loop says that it turns, twice as often as the manager wants to hear it. */
void service_ready(struct loop *l);
/* It will serve later, however long that takes; why is one short sentence. It counts as started. */
void service_waiting(const char *why);
void service_reloading(void); /* the settings are read again, until service_reloaded() */
void service_reloaded(void);
void service_stopping(void); /* the loop still turns */
void service_close(void);    /* before the loop is freed */
