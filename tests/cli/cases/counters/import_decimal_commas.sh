# perf -x, in a locale with decimal commas.
echo "1281,90,msec,task-clock,1281900000,100,00,0,996,CPUs utilized" >perf.csv
roofline counters import perf.csv
