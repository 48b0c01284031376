# Text of files reaches standard output, standard error and Markdown without control characters;
# CSV is exact in a file and masked on a terminal. ESC, U+009B, U+202E and a byte that is not UTF-8.
bad=$(printf 'x\033[31my\302\2331mz\342\200\256w\377')
{
	echo label,env,arch,batch,dtype,engine,version,ips,status
	echo "a$bad,lab,resnet$bad,1,fp32,torch$bad,2$bad,3,ok"
	echo "b$bad,lab,resnet$bad,1,fp32,torch$bad,2$bad,4,ok"
	echo "c$bad,lab,vgg$bad,1,fp32,torch,2,4,oom$bad"
} >a.csv
sed 's/torch/jax/; 4d' a.csv >b.csv
controls() {
	LC_ALL=C tr -d '\n\40-\176' | od -An -tx1
}
for format in table md json; do
	roofline summary --metrics a.csv --format $format >out 2>err
	cat out err | controls
done
roofline compare a.csv b.csv >out 2>err
cat out err | controls
roofline run --arch "a$bad" 2>&1 | tee err | controls
cat err
sed "s/\"resnet18\"/\"resnet18\", \"x$(printf '\302\233')\"/" "$(dirname "$0")"/../matrix/small.json >m.json
roofline matrix run m.json --only lab --dry-run 2>&1 | controls
mkdir "logs$(printf '\033')"
roofline matrix run "$(dirname "$0")"/../matrix/small.json --only lab --dry-run --log-dir "logs$(printf '\033')" | controls
echo csv
roofline -q summary --metrics a.csv --format csv | grep -cF "$bad"
command -v script >/dev/null &&
	script -qec 'roofline -q summary --metrics a.csv --format csv' /dev/null | tr -d '\r' | controls
roofline -q summary --metrics a.csv --output-dir s >/dev/null
cat s/*.md | controls
roofline env --no-engines --env lab --note zone=b >out
sed -i 's/"zone": "b"/"zone": "b\\u009b"/' logs/env.json
roofline env --no-engines --env lab --note x=1 >out
cat out logs/env_info.md | controls
grep -c 'b? (noted)' out
