# The script that bash gets, asked as bash would ask it.
command -v bash >/dev/null || { echo "no bash" >&2; exit 77; }
roofline completion bash >completion
cat >ask <<'EOF'
. ./completion
ask() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_roofline
	echo "$*: ${COMPREPLY[*]}"
}
ask roofline vers
ask roofline list --for
ask roofline list --format j
ask roofline -q version --format ''
ask roofline doctor --format m
EOF
bash ask
