#!/bin/sh
# Makes a C table of the migrations given as NUMBER_name.sql, in the order given.
echo '/* Made from the files in schema. */'
echo 'static const struct { int number; const char *sql; } migrations[] = {'
for file; do
        name=${file##*/}
        number=$(echo "${name%%_*}" | sed 's/^0*//')
        echo "{$number,"
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' "$file"
        echo '},'
done
echo '};'
