# The first word of a nested command is not enough; its help lists the rest.
roofline peaks
echo "exit $?"
roofline peaks mesure
echo "exit $?"
roofline peaks --formt x
echo "exit $?"
roofline peaks --help | head -n 1
roofline help peaks | grep -c '^  peaks '
roofline help peaks measure | head -n 1
