/* sensor: turns lines printed by a site's sensor program into attributes of a queue's ad.
 *
 * A line is `NAME = VALUE`. The attribute's name is the sensor's name followed by NAME, so that attributes
 * of two sensors, or of the agent, never collide. The value is a number, true, false, or a text, with or
 * without quotes; expressions are not allowed.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define SENSOR_NAME_MAX       32u   /* length of a sensor's name, and of a printed NAME */
#define SENSOR_TEXT_MAX       1024u /* bytes of a value */
#define SENSOR_ATTRIBUTES_MAX 64u   /* attributes of one sensor */

/* Returns whether the name is a letter followed by letters, digits and underscores. */
bool sensor_name(struct str name);
/* Appends "SensorNAME = value; ". Returns false, and appends nothing, if the line is malformed. */
bool sensor_attribute(const char *sensor, struct str line, struct buf *out);
/* Appends the attributes of all lines, up to SENSOR_ATTRIBUTES_MAX. *ret_bad: number of malformed lines;
 * empty lines and comments (#) are not counted. */
void sensor_attributes(const char *sensor, struct str text, struct buf *out, size_t *ret_bad);
/* Takes the next number, true (1) or false (0) from the front of such attributes, and passes over texts.
 * Returns false at their end. */
bool sensor_next_number(struct str *attributes, struct str *ret_name, double *ret_value);
