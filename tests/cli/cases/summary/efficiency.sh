# Weak scaling: n processes over n times one with the same batch per process. Another batch per
# process is compared with nothing, which is said.
cat >runs.csv <<'T'
label,env,model,precision,batch,world_size,threads,samples_per_s,status
a_run1,lab,vgg16,fp32,8,1,2,100,ok
b_run1,lab,vgg16,fp32,16,2,2,180,ok
b_run2,lab,vgg16,fp32,16,2,2,190,ok
c_run1,lab,vgg16,fp32,8,2,2,150,ok
d_run1,lab,vgg16,fp32,32,4,1,300,ok
T
roofline summary --metrics runs.csv --format csv 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	{ print $at["batch"], $at["world_size"], $at["threads"], $at["mean"], $at["efficiency"] }'
roofline summary --metrics runs.csv 2>/dev/null | grep -i -e efficiency | sed 's/.*Efficiency %/... Efficiency %/'
