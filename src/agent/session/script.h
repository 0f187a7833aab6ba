/* script: sends the server the script that was submitted to the batch system for an attempt. */
#pragma once
#include "agent/model/attempt.h"
#include "wire/drover.pb-c.h"

void session_script(struct agent *a, const Drover__ScriptGet *m);
