# Words that cannot be are wrong usage, and no file is made.
roofline peaks set peaks.json Lab fp32.vector 100 --source x
echo "exit $?"
roofline peaks set peaks.json lab fp32.vector 100 --source "$(printf 'caf\351')" 2>err
echo "exit $?"
tr '\351' '?' <err
ls
