# An empty name is refused before anything is written.
roofline complexity --models resnet18 --output-dir ""
echo "exit $?"
roofline peaks show ""
echo "exit $?"
ls
