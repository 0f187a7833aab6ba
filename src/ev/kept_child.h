/* kept_child: a program that a daemon keeps running. A program that ends, or cannot be started, is due again
 * after a pause; pauses double up to a bound, and begin short again after a long run.
 *
 * The program is its owner's child and gets SIGTERM when the daemon dies. One thread, that of the loop. */
#pragma once
#include "base/err.h"
#include "ev/loop.h"

struct kept_child;
struct kept_child_ops {
        /* Called when the program should be started: the callee calls kept_child_run, at once or later. */
        void (*due)(void *arg);
        /* Called when the program has ended, with the status of waitpid; or when it could not be started,
         * with status 0 and the reason. `due` is called again after a pause, unless kept_child_stop was
         * called. The callee must not free the kept_child. */
        void (*ended)(void *arg, int status, const struct err *why);
};
/* argv: borrowed, read at each start. ops: borrowed. Nothing happens before kept_child_start. */
struct kept_child *kept_child_new(struct loop *l, char *const *argv, const struct kept_child_ops *ops,
                                  void *arg);
/* Ends the program by SIGTERM. NULL is fine. */
void kept_child_free(struct kept_child *k);
/* `due` is called from the loop soon, and pauses begin short again. Does nothing for a program that runs. */
void kept_child_start(struct kept_child *k);
/* `due` is called again after a pause, as after the program's end: for a callee of `due` that cannot start
 * it.
 */
void kept_child_start_later(struct kept_child *k);
/* Starts the program. Returns whether it was started; `ended` was called otherwise. */
bool kept_child_run(struct kept_child *k);
/* Sends SIGTERM to a running program. It is not due again before kept_child_start. */
void kept_child_stop(struct kept_child *k);
/* Kills a running program and waits until it has ended: what it has open is free then. `ended` is not called,
 * and it is not due again before kept_child_start. */
void kept_child_kill(struct kept_child *k);
bool kept_child_running(const struct kept_child *k);
