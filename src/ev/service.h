/* service: notifications of a daemon to the service manager that started it, as sd_notify(3) sends them,
 * without libsystemd. Without NOTIFY_SOCKET nothing is sent. For the loop's thread only. */
#pragma once
#include "ev/loop.h"

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the environment, so that no
 * program that we start has them. Call this before the other calls, and before there are threads. */
void service_open(void);
/* Reports that the daemon serves. From then on the loop sends keep-alives, twice as often as the manager's
 * watchdog requires. */
void service_ready(struct loop *l);
/* Reports that the daemon has started and will serve later, with no time limit; why is one short sentence. */
void service_waiting(const char *why);
void service_reloading(void); /* settings are being reloaded, until service_reloaded() */
void service_reloaded(void);
void service_stopping(void); /* the loop still turns */
void service_close(void);    /* before the loop is freed */
