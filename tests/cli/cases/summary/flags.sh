# What makes a mean doubtful, in words: its own spread, and how many of the runs were flagged.
{
	echo label,env,arch,batch,dtype,ips,status,flags
	echo r1,lab,vgg16,8,fp32,10,ok,unstable
	echo r2,lab,vgg16,8,fp32,15,ok,unstable loader_bound
	echo r3,lab,vgg16,8,fp32,12,ok,unstable
	echo r4,lab,vgg16,8,fp32,,oom,
	echo s1,lab,vgg19,8,fp32,10,ok,drift
} >m.csv
roofline -q summary --metrics m.csv
