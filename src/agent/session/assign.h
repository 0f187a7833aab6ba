/* assign: handles the server's messages about attempts. */
#pragma once
#include "agent/model/attempt.h"
#include "wire/drover.pb-c.h"

void assign_message(struct agent *a, const Drover__Assign *m);
void assign_go(struct agent *a, const Drover__Go *m);
void assign_control(struct agent *a, const Drover__Control *m);
void assign_acked(struct agent *a, const Drover__ResultAck *m);
void assign_checkpoint_acked(struct agent *a, const Drover__ResultAck *m);
void assign_inventory(struct agent *a, const Drover__InventoryReply *m);
