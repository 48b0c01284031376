# What is wrong with a folder, or with what was asked for it.
roofline bench loader --data none; echo "exit $?"
mkdir -p empty class/cat dir/train/cat mnist
roofline bench loader --data empty; echo "exit $?"
touch dir/train/cat/1.jpg mnist/train-images-idx3-ubyte
roofline bench loader --data dir/train; echo "exit $?"
roofline bench loader --data dir --cached --page-cache cold; echo "exit $?"
roofline bench loader --data mnist --cached; echo "exit $?"
roofline bench loader --data mnist; echo "exit $?"
roofline bench loader --data dir --workers 1,x; echo "exit $?"
roofline bench loader; echo "exit $?"
