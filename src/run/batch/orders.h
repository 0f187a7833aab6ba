/* orders: files in a task's folder that tell its script what to do. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct batch;
struct task;

/* Marks the task as begun once its script has written so. */
void batch_see_begin(struct batch *b, struct task *t);
/* Stops or continues a task that has begun, by the system or else by a signal. */
void batch_stop(struct batch *b, struct task *t, bool on);
/* Writes an order to send the signal to the task's program; ignored before it begins. */
void batch_order(struct batch *b, struct task *t, int signal);
