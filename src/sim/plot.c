#include "sim/plot.h"

#include <math.h>

#define WIDTH        860
#define PANEL_HEIGHT 300
#define TOP          40 /* of the plot: its title */
#define LEFT         80
#define RIGHT        170 /* the legend's room */
#define PANEL_TOP    34
#define PANEL_BOTTOM 52
#define VALUE_TICKS  5

/* Okabe and Ito's colours, which colour-blind readers tell apart; grey last. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#555555"};
static const char *const dashes[] = {"none", "7 4", "2 3", "9 3 2 3", "4 4", "12 4", "1 2"};
#define STYLES (sizeof(colours) / sizeof(colours[0]))

struct axis {
        double from, to; /* values; logarithms of them when log */
        bool log;
        double at, length; /* pixels; length is negative upwards */
};

static bool usable(double v, bool log)
{
        return isfinite(v) && (!log || v > 0);
}

static double value_on(const struct axis *a, double v)
{
        return ((a->log ? log10(v) : v) - a->from) / (a->to - a->from) * a->length + a->at;
}

/* The distance between ticks: 1, 2 or 5 times a power of ten, about `wanted` of them. */
static double tick_step(double range, double wanted)
{
        double raw = range / wanted, power = pow(10, floor(log10(raw))), n = raw / power;

        return power * (n <= 1 ? 1 : n <= 2 ? 2 : n <= 5 ? 5 : 10);
}

static void axis_fit(struct axis *a, const struct sim_plot_panel *p, bool x)
{
        bool any = false;

        a->log = x ? p->log_x : p->log_y;
        a->from = a->log || x ? INFINITY : 0;
        a->to = -INFINITY;
        for (size_t s = 0; s < p->count; s++)
                for (size_t i = 0; i < p->series[s].count; i++) {
                        double v = x ? p->series[s].x[i] : p->series[s].y[i];

                        if (!usable(v, a->log))
                                continue;
                        v = a->log ? log10(v) : v;
                        a->from = fmin(a->from, v);
                        a->to = fmax(a->to, v);
                        any = true;
                }
        for (size_t i = 0; i < p->box_count; i++) {
                a->from = fmin(a->from, x ? p->boxes[i].x_from : p->boxes[i].y_from);
                a->to = fmax(a->to, x ? p->boxes[i].x_to : p->boxes[i].y_to);
                any = true;
        }
        if (!any)
                a->from = 0, a->to = 1;
        if (a->log) {
                a->from = floor(a->from);
                a->to = ceil(a->to);
        }
        if (a->to - a->from < 1e-12)
                a->to = a->from + 1;
        if (!x && !a->log) { /* up to a line of the grid, so that nothing is drawn along the edge */
                double step = tick_step(a->to - a->from, VALUE_TICKS);

                a->to = ceil(a->to / step + 0.05) * step;
        }
}

static void add_text(struct buf *out, const char *text)
{
        for (const char *c = text; *c; c++)
                if (*c == '&')
                        buf_addz(out, "&amp;");
                else if (*c == '<')
                        buf_addz(out, "&lt;");
                else
                        buf_char(out, *c);
}

static void add_label(struct buf *out, double x, double y, const char *anchor, const char *more,
                      const char *text)
{
        buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, more);
        add_text(out, text);
        buf_addz(out, "</text>\n");
}

/* 1200000 is 1.2M: the label must be read at a glance. */
static void plot_add_number(char room[32], double v)
{
        static const struct {
                double unit;
                const char *name;
        } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
        struct buf b = {0};

        for (size_t i = 0; i < 4 && b.n == 0; i++)
                if (fabs(v) >= units[i].unit)
                        buf_printf(&b, "%.4g%s", v / units[i].unit, units[i].name);
        if (b.n == 0)
                buf_printf(&b, "%.4g", v);
        memcpy(room, buf_z(&b), b.n < 31 ? b.n + 1 : 32);
        room[31] = 0;
        buf_deinit(&b);
}

static void add_tick(struct buf *out, const struct axis *x, const struct axis *y, bool vertical, double v)
{
        const struct axis *a = vertical ? y : x;
        double at = value_on(a, a->log ? pow(10, v) : v);
        char text[32];

        plot_add_number(text, a->log ? pow(10, v) : v);
        if (vertical) {
                buf_printf(out, "<path d=\"M%.1f %.1fH%.1f\" class=\"grid\"/>\n", x->at, at,
                           x->at + x->length);
                add_label(out, x->at - 7, at + 4, "end", "", text);
        } else {
                buf_printf(out, "<path d=\"M%.1f %.1fV%.1f\" class=\"grid\"/>\n", at, y->at,
                           y->at + y->length);
                add_label(out, at, y->at + 17, "middle", "", text);
        }
}

static void add_ticks(struct buf *out, const struct axis *x, const struct axis *y, bool vertical)
{
        const struct axis *a = vertical ? y : x;
        double step = a->log ? 1 : tick_step(a->to - a->from, vertical ? VALUE_TICKS : 8);

        for (double v = ceil(a->from / step - 1e-9) * step; v <= a->to + step * 1e-9; v += step)
                add_tick(out, x, y, vertical, fabs(v) < step * 1e-9 ? 0 : v);
}

static void add_series(struct buf *out, const struct sim_plot_panel *p, size_t s, const struct axis *x,
                       const struct axis *y)
{
        const struct sim_plot_series *series = &p->series[s];
        bool begun = false;

        buf_printf(out, "<path fill=\"none\" stroke-width=\"1.8\" stroke=\"%s\" stroke-dasharray=\"%s\" d=\"",
                   colours[s % STYLES], dashes[s % STYLES]);
        for (size_t i = 0; i < series->count; i++) {
                if (!usable(series->x[i], x->log) || !usable(series->y[i], y->log))
                        continue;
                buf_printf(out, "%s%.1f %.1f", begun ? "L" : "M", value_on(x, series->x[i]),
                           value_on(y, series->y[i]));
                begun = true;
        }
        buf_addz(out, "\"/>\n");
        for (size_t i = 0; p->marks && i < series->count; i++)
                if (usable(series->x[i], x->log) && usable(series->y[i], y->log))
                        buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                                   value_on(x, series->x[i]), value_on(y, series->y[i]), colours[s % STYLES]);
}

static void add_boxes(struct buf *out, const struct sim_plot_panel *p, const struct axis *x,
                      const struct axis *y)
{
        for (size_t i = 0; i < p->box_count; i++) {
                const struct sim_plot_box *b = &p->boxes[i];
                double left = value_on(x, b->x_from), top = value_on(y, b->y_to);

                buf_printf(out,
                           "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\">"
                           "<title>job %u</title></rect>\n",
                           left, top, value_on(x, b->x_to) - left, value_on(y, b->y_from) - top,
                           colours[b->colour % STYLES], b->number);
        }
}

static void add_legend(struct buf *out, const struct sim_plot_panel *p, double top)
{
        for (size_t s = 0; s < p->count; s++) {
                double y = top + 8 + 20 * (double)s, x = WIDTH - RIGHT + 16;

                buf_printf(out,
                           "<path d=\"M%.1f %.1fh30\" stroke=\"%s\" stroke-width=\"2.2\" "
                           "stroke-dasharray=\"%s\"/>\n",
                           x, y, colours[s % STYLES], dashes[s % STYLES]);
                add_label(out, x + 36, y + 4, "start", "", p->series[s].name);
        }
}

static void add_panel(struct buf *out, const struct sim_plot_panel *p, double top)
{
        struct axis x = {.at = LEFT, .length = WIDTH - LEFT - RIGHT},
                    y = {.at = top + PANEL_HEIGHT - PANEL_BOTTOM,
                         .length = -(PANEL_HEIGHT - PANEL_BOTTOM - PANEL_TOP)};
        double middle = y.at + y.length / 2;
        struct buf turned BUF_CLEANUP = {0};

        axis_fit(&x, p, true);
        axis_fit(&y, p, false);
        add_label(out, x.at, top + 18, "start", " font-weight=\"bold\"", p->title);
        add_ticks(out, &x, &y, false);
        add_ticks(out, &x, &y, true);
        buf_printf(out, "<path d=\"M%.1f %.1fV%.1fH%.1f\" class=\"axis\"/>\n", x.at, y.at + y.length, y.at,
                   x.at + x.length);
        add_label(out, x.at + x.length / 2, y.at + 38, "middle", "", p->x_label);
        buf_printf(&turned, " transform=\"rotate(-90 22 %.1f)\"", middle);
        add_label(out, 22, middle, "middle", buf_z(&turned), p->y_label);
        add_boxes(out, p, &x, &y);
        for (size_t s = 0; s < p->count; s++)
                add_series(out, p, s, &x, &y);
        add_legend(out, p, top + PANEL_TOP);
}

void sim_plot_svg(struct buf *out, const char *title, const struct sim_plot_panel *panels, size_t count)
{
        unsigned height = TOP + PANEL_HEIGHT * (unsigned)count;

        buf_printf(
                out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\" "
                "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n",
                WIDTH, height, WIDTH, height);
        buf_addz(out, "<style>.grid{stroke:#ddd;stroke-width:1}.axis{stroke:#222;fill:none}</style>\n");
        buf_printf(out, "<rect width=\"%d\" height=\"%u\" fill=\"#fff\"/>\n", WIDTH, height);
        add_label(out, LEFT, 26, "start", " font-size=\"16\"", title);
        for (size_t i = 0; i < count; i++)
                add_panel(out, &panels[i], TOP + PANEL_HEIGHT * (double)i);
        buf_addz(out, "</svg>\n");
}
