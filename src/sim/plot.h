/* plot: curves as SVG, with axes, ticks and a legend; no library, no font but the viewer's own.
 *
 * A plot is panels one above the other. Series are told apart by colour and by dashes, so that print and
 * colour-blind readers can follow. Values that are not finite, or not above 0 on a logarithmic axis, are left
 * out.
 */
#pragma once
#include "base/buf.h"

struct sim_plot_series {
        const char *name;
        const double *x, *y;
        size_t count;
};
/* A rectangle between two values on each axis. `colour` is any number; equal numbers give equal colours. The
 * tooltip is "job NUMBER". */
struct sim_plot_box {
        double x_from, x_to, y_from, y_to;
        uint32_t colour, number;
};
struct sim_plot_panel {
        const char *title, *x_label, *y_label;
        const struct sim_plot_series *series;
        size_t count;
        bool log_x, log_y, marks; /* marks: a dot at each value */
        const struct sim_plot_box *boxes;
        size_t box_count;
};
void sim_plot_svg(struct buf *out, const char *title, const struct sim_plot_panel *panels, size_t count);
