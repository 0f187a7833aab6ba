#!/bin/sh
# One job of the demo: it reads the files that are in its list. result.tsv gets a line for each (checksum, lines, bytes, name),
# words.tsv an index of them: how often each word of five letters or more occurs.
set -eu
export LC_ALL=C
while read -r file; do
        sum=$(sha256sum <"$file")
        counts=$(wc -lc <"$file" | awk '{ print $1 "\t" $2 }')
        printf '%s\t%s\t%s\n' "${sum%% *}" "$counts" "$file"
done <"$FILELIST" >result.tsv
tr '\n' '\0' <"$FILELIST" | xargs -0 cat | tr -cs '[:alpha:]' '\n' | tr '[:upper:]' '[:lower:]' | awk 'length > 4 { n[$0]++ } END { for (w in n) print w "\t" n[w] }' >words.tsv
