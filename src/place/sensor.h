/* sensor: what a line that a small program of the admin's prints becomes in a queue's ad.
 *
 * A line is `NAME = VALUE`. The attribute is called as the sensor and NAME together, so that two sensors, and
 * the agent's own words, never meet. The value is a number, true, false, or a text, with or without quotes;
 * there are no expressions.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define SENSOR_NAME_MAX       32u   /* of a sensor, and of what it prints */
#define SENSOR_TEXT_MAX       1024u /* bytes of a value */
#define SENSOR_ATTRIBUTES_MAX 64u   /* of one sensor */

/* A letter, then letters, digits and underscores. */
bool sensor_name(struct str name);
/* Adds "SensorNAME = value; ". False, and nothing is added: the line is none of these. */
bool sensor_attribute(const char *sensor, struct str line, struct buf *out);
/* All lines of a text, up to SENSOR_ATTRIBUTES_MAX. *ret_bad: lines that were left out; empty ones and
 * comments (#) are not counted. */
void sensor_attributes(const char *sensor, struct str text, struct buf *out, size_t *ret_bad);
