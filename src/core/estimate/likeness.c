#include "core/estimate/likeness.h"

#include <math.h>

#define WORDS_MAX 64u /* words behind these are ignored */
#define PLAIN_MAX 24u /* longest plain word; a longer one is a name */
#define END_MAX   8u  /* most characters of a name's extension */

static uint64_t add_byte(uint64_t hash, unsigned char byte)
{
        return (hash ^ byte) * UINT64_C(0x100000001b3);
}

uint64_t likeness_add(uint64_t hash, struct str bytes)
{
        for (size_t i = 0; i < bytes.n; i++)
                hash = add_byte(hash, (unsigned char)bytes.p[i]);
        return add_byte(hash, 0);
}

uint64_t likeness_add_amount(uint64_t hash, double amount)
{
        int size = amount >= 1 ? (int)log2(amount < 1e30 ? amount : 1e30) + 1 : 0;

        return add_byte(add_byte(hash, '#'), (unsigned char)size);
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_plain(struct str word)
{
        for (size_t i = 0; i < word.n; i++)
                if (!((word.p[i] >= 'a' && word.p[i] <= 'z') || word.p[i] == '-' || word.p[i] == '_'))
                        return false;
        return word.n <= PLAIN_MAX;
}

/* Adds an option, with numbers in it by their magnitude. */
static uint64_t add_option(uint64_t hash, struct str word)
{
        for (size_t i = 0; i < word.n;) {
                double number = 0;

                if (!is_digit(word.p[i])) {
                        hash = add_byte(hash, (unsigned char)word.p[i++]);
                        continue;
                }
                for (; i < word.n && is_digit(word.p[i]); i++)
                        number = number * 10 + (word.p[i] - '0');
                hash = likeness_add_amount(hash, number);
        }
        return hash;
}

/* Adds a name's extension, the type of a file. */
static uint64_t add_name(uint64_t hash, struct str word)
{
        size_t at = word.n;

        while (at > 0 && word.n - at <= END_MAX && word.p[at - 1] != '.' && word.p[at - 1] != '/')
                at--;
        hash = add_byte(hash, '*');
        return at > 0 && word.p[at - 1] == '.' ? likeness_add(hash, str_skip(word, at)) : hash;
}

uint64_t likeness_add_arguments(uint64_t hash, struct str arguments)
{
        struct str word;
        double number;

        for (unsigned n = 0; n < WORDS_MAX && str_word(&arguments, &word); n++) {
                if (str_to_double(word, &number) == 0 && isfinite(number))
                        hash = likeness_add_amount(hash, fabs(number));
                else if (word.p[0] == '-')
                        hash = add_option(hash, word);
                else if (is_plain(word))
                        hash = likeness_add(hash, word);
                else
                        hash = add_name(hash, word);
                hash = add_byte(hash, ' ');
        }
        return hash;
}
