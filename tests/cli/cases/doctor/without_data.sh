# A program without its fonts and engines says so, and the exit code is 1.
mkdir -p lone/bin
cp "$ROOFLINE" lone/bin/
lone/bin/roofline doctor --format csv >rows
echo "exit $?"
grep -E '^(engine|fonts|png),' rows | cut -d , -f 1-3
