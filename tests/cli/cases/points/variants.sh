# Configurations that differ in what no other column says: the table and the figure tell them apart.
# In a file of an older version, without variants, points that look the same have their numbers.
cp "$RFL_TEST_DATA"/roofline/peaks.json .
{
	echo env,label,status,backend,model,batch,micro_batch,accum,precision,layout,mode,img_size,classes,iters,optimizer,data_mode,workers,threads,step_ms_median
	while read -r run way; do
		echo "lab_cpu,lab_cpu_resnet50_fp32_bs4_run$run,ok,cpu,resnet50,4,4,1,fp32,nchw,train,224,1000,10,$way"
	done <<-END
		1 sgd,synthetic,,2,500
		2 adamw,synthetic,,2,700
		3 adamw,imagefolder,8,2,1000
		4 adamw,imagefolder,8,1,1800
	END
} >metrics.csv
names() { # of the points in the figure
	roofline -q plot --points "$1" --peaks peaks.json --format svg >paths || exit
	sed -n 's/.*id="\(name-[0-9]*\)".*>\(.*\)<.*/\1 \2/p' figures/roofline_lab_cpu.svg | sort
}
roofline -q points --metrics metrics.csv --peaks peaks.json --output points.csv
names points.csv
sed '1s/,variant,/,mine,/' points.csv >older.csv
names older.csv
