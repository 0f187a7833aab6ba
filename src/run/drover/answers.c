#include "run/drover/answers.h"

#include "run/call/answer.h"

#define VALUES_MAX  1000000 /* most values of an answer */
#define WORDS_BYTES 4096    /* most bytes of an answer's message */

/* The number of values is limited, since each takes some hundred bytes once parsed. */
json_t *remote_json(struct str body)
{
        if (answer_json_values(body) > VALUES_MAX)
                return NULL;
        return json_loadb(body.p ? body.p : "", body.n, 0, NULL);
}

void remote_words(struct buf *out, struct str words)
{
        size_t from = out->n;

        words = str_head(words, WORDS_BYTES);
        for (size_t i = 0; i < words.n; i++)
                buf_char(out, (unsigned char)words.p[i] < ' ' ? ' ' : words.p[i]);
        answer_make_utf8(str_skip(buf_view(out), from));
}

void remote_error(struct buf *out, int status, struct str body)
{
        json_t *doc = remote_json(body);
        const char *message = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));

        if (message)
                remote_words(out, str_of(message));
        else
                buf_printf(out, "the other server answered with status %d", status);
        json_decref(doc);
}
