/* pending: who is to be looked at in the next pass of matching, as something about him has changed. */
#pragma once

struct class;
struct queue;
struct core;

/* At the next pass the class meets every offer, the queue every class. Both for who was told "not
 * now" and might be told otherwise. */
void class_look_again(struct core *c, struct class *k); /* NULL, and one without idle members, are fine */
void queue_look_again(struct core *c, struct queue *q);
void class_look_no_more(struct core *c, struct class *k);
