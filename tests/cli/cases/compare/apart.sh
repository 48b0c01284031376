# Two sides without a configuration in common: nothing was compared, which is no success.
printf 'env,arch,batch,dtype,ips\nlab,vgg16,1,fp32,3\n' >a.csv
printf 'env,arch,batch,dtype,ips\nlab,vgg19,1,fp32,3\n' >b.csv
roofline -q compare a.csv b.csv --fail-if slower
