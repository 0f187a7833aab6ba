#!/bin/sh
# One job of the demo: its arguments are files. result.tsv gets a line for each (checksum, lines, bytes, name),
# words.tsv an index of them: how often each word of five letters or more occurs.
set -eu
export LC_ALL=C
for file; do
        sum=$(sha256sum <"$file")
        counts=$(wc -lc <"$file" | awk '{ print $1 "\t" $2 }')
        printf '%s\t%s\t%s\n' "${sum%% *}" "$counts" "$file"
done >result.tsv
cat "$@" | tr -cs '[:alpha:]' '\n' | tr '[:upper:]' '[:lower:]' | awk 'length > 4 { n[$0]++ } END { for (w in n) print w "\t" n[w] }' >words.tsv
