# What another program has measured counts: its rows belong to the runs that their labels name.
cp "$(dirname "$0")/small.json" .
mkdir logs other
row() { echo "lab_$1_fp32_bs$2_r$3_20260101_100000,$4"; }
{
	echo label,imgs_per_sec
	row resnet18 2 1 10
	row resnet18 2 2 11
	row resnet18 4 1 12
	row vgg16 4 1 12
} >logs/metrics.csv
roofline -q matrix status small.json --only lab --format csv | cut -d, -f 4,6-
printf 'label,secs\nlab_resnet18_fp32_bs2_r1,3\n' >other/metrics.csv
roofline matrix status small.json --only lab --log-dir other 2>&1
echo "exit $?"

# When all is done nothing is to be run, and nothing is said of a file that stays as it is.
printf 'label,imgs_per_sec\nlab_alexnet_fp32_bs8_run1,3\n' >other/metrics.csv
roofline matrix run small.json --only lab_alexnet_fp32_bs8_run1 --log-dir other 2>err
echo "exit $?"
grep -v 'not a ledger of this program; taken are' err
ls other
# No row is added to it, so what is missing goes elsewhere: with --done-in its rows are not run again.
roofline -q summary --metrics logs/metrics.csv --matrix small.json 2>&1 >summary | grep -o "'roofline matrix run .*"
roofline matrix run small.json --done-in logs --log-dir new-logs --only lab --dry-run 2>/dev/null | grep -o 'label=[^ ]*'
