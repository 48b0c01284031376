# Prints "file:line:code" with comments, strings and character constants taken out, so that a
# check looks at code only. Include lines keep the file that they name.
function emit(text) { print FILENAME ":" FNR ":" text }

FNR == 1 { in_comment = 0; in_string = "" }

{
	line = $0
	out = ""
	if (!in_comment && line ~ /^[ \t]*#[ \t]*include/) {
		sub(/[ \t]*(\/\/|\/\*).*$/, "", line)
		emit(line)
		next
	}
	while (length(line) > 0) {
		if (in_comment) {
			at = index(line, "*/")
			if (at == 0) { line = ""; break }
			line = substr(line, at + 2)
			in_comment = 0
			out = out " "
			continue
		}
		c = substr(line, 1, 1)
		two = substr(line, 1, 2)
		if (in_string != "") {
			if (c == "\\") line = substr(line, 3)
			else {
				if (c == in_string) in_string = ""
				line = substr(line, 2)
			}
			continue
		}
		if (two == "/*") { in_comment = 1; line = substr(line, 3); continue }
		if (two == "//") break
		# An apostrophe after a digit separates digits in C++; anywhere else it quotes.
		if (c == "\"" || (c == "'" && out !~ /[0-9a-fA-F]$/)) {
			in_string = c
			out = out c c
			line = substr(line, 2)
			continue
		}
		if (match(line, /^[^\/"']+/)) {
			out = out substr(line, 1, RLENGTH)
			line = substr(line, RLENGTH + 1)
			continue
		}
		out = out c
		line = substr(line, 2)
	}
	# A string ends with its line unless a backslash carries it over.
	if ($0 !~ /\\$/) in_string = ""
	emit(out)
}
