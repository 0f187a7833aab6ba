#include "place/sensor.h"

#include "place/offer.h"

#define DIGITS_MAX 18u /* digits of an integer, which has 64 bits in the ad */
#define NUMBER_MAX 40u

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

bool sensor_name(struct str name)
{
        if (name.n == 0 || name.n > SENSOR_NAME_MAX || !is_letter(name.p[0]))
                return false;
        for (size_t i = 1; i < name.n; i++)
                if (!is_letter(name.p[i]) && !is_digit(name.p[i]) && name.p[i] != '_')
                        return false;
        return true;
}

static size_t digits(struct str s, size_t from)
{
        size_t n = 0;

        while (from + n < s.n && is_digit(s.p[from + n]))
                n++;
        return n;
}

/* "-12", "0.5", "1e9", and nothing that the ad would read otherwise or not at all. */
static bool is_number(struct str s)
{
        size_t at = s.n && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0, whole = digits(s, at), n;
        bool real = false;

        at += whole;
        if (s.n > NUMBER_MAX || whole == 0)
                return false;
        if (at < s.n && s.p[at] == '.') {
                n = digits(s, at + 1);
                if (n == 0)
                        return false;
                at += 1 + n;
                real = true;
        }
        if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
                at += 1 + (at + 1 < s.n && (s.p[at + 1] == '-' || s.p[at + 1] == '+'));
                n = digits(s, at);
                if (n == 0 || n > 2)
                        return false;
                at += n;
                real = true;
        }
        return at == s.n && (real || (whole <= DIGITS_MAX && (whole == 1 || s.p[s.n - whole] != '0')));
}

/* Appends those characters of a text that are valid in every ad, terminal and log. */
static void add_text(struct buf *out, struct str s)
{
        char room[SENSOR_TEXT_MAX];

        for (size_t i = 0; i < s.n; i++)
                room[i] = (unsigned char)s.p[i] >= 0x7f ? '?' : s.p[i];
        offer_text(out, str_make(room, s.n));
}

bool sensor_attribute(const char *sensor, struct str line, struct buf *out)
{
        ptrdiff_t equals = str_find(line, '=');
        struct str name, value;

        if (equals < 0)
                return false;
        name = str_trim(str_head(line, (size_t)equals));
        value = str_trim(str_skip(line, (size_t)equals + 1));
        if (!sensor_name(name) || value.n == 0 || value.n > SENSOR_TEXT_MAX)
                return false;
        buf_printf(out, "%s" STR_FMT " = ", sensor, STR_ARG(name));
        if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
                add_text(out, str_head(str_skip(value, 1), value.n - 2));
        else if (is_number(value))
                buf_str(out, value.p[0] == '+' ? str_skip(value, 1) : value);
        else if (str_ieqz(value, "true") || str_ieqz(value, "false"))
                buf_addz(out, str_ieqz(value, "true") ? "true" : "false");
        else
                add_text(out, value);
        buf_addz(out, "; ");
        return true;
}

void sensor_attributes(const char *sensor, struct str text, struct buf *out, size_t *ret_bad)
{
        size_t taken = 0, bad = 0;
        struct str line;

        while (text.n && str_cut(&text, '\n', &line)) {
                line = str_trim(line);
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                if (taken < SENSOR_ATTRIBUTES_MAX && sensor_attribute(sensor, line, out))
                        taken++;
                else
                        bad++;
        }
        *ret_bad = bad;
}

/* Returns the length of the value at the front, which a semicolon follows; in a text there may be others. */
static size_t value_length(struct str s)
{
        bool quoted = s.n && s.p[0] == '"';
        size_t n = quoted;

        while (n < s.n && s.p[n] != (quoted ? '"' : ';'))
                n += quoted && s.p[n] == '\\' ? 2 : 1;
        return n + quoted < s.n ? n + quoted : s.n;
}

bool sensor_next_number(struct str *attributes, struct str *ret_name, double *ret_value)
{
        while (str_trim(*attributes).n) {
                ptrdiff_t equals = str_find(*attributes, '=');
                struct str name = str_trim(str_head(*attributes, equals < 0 ? 0 : (size_t)equals)), value;
                struct str rest = str_trim(str_skip(*attributes, (size_t)equals + 1));
                double number;

                value = str_head(rest, value_length(rest));
                *attributes = str_skip(rest, value.n + 1);
                if (str_eqz(value, "true") || str_eqz(value, "false"))
                        number = str_eqz(value, "true");
                else if (str_to_double(value, &number) != 0)
                        continue;
                *ret_name = name;
                *ret_value = number;
                return true;
        }
        return false;
}
