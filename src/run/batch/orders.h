/* orders: files in a task's folder that tell its script what to do. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct batch;
struct task;

void batch_see_begin(struct batch *b, struct task *t);         /* looks whether it has begun */
void batch_stop(struct batch *b, struct task *t, bool on);     /* it has begun */
void batch_order(struct batch *b, struct task *t, int signal); /* to its program, if it runs */
