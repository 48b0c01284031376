# Prints "file:line:text" of the comments and strings of C files, a span per line, without the code
# between them. Strings without a blank are names, not prose. With -v together=1 only the text.
function put(text) {
	gsub(/\\[nt]/, " ", text)
	sub(/[ \t]+$/, "", text)
	sub(/^[ \t]+/, "", text)
	if (text ~ /[^ \t*]/) print (together ? "" : FILENAME ":" FNR ":") text
}

FNR == 1 { in_comment = 0 }

{
	line = $0
	while (line != "") {
		if (in_comment) {
			at = index(line, "*/")
			text = at ? substr(line, 1, at - 1) : line
			sub(/^[ \t]*\*?/, "", text)
			put(text)
			line = at ? substr(line, at + 2) : ""
			in_comment = !at
		} else if (match(line, /\/\*|\/\/|"|'/)) {
			mark = substr(line, RSTART, RLENGTH)
			line = substr(line, RSTART + RLENGTH)
			if (mark == "/*") {
				in_comment = 1
			} else if (mark == "//") {
				put(line)
				line = ""
			} else {
				text = ""
				while (line != "" && substr(line, 1, 1) != mark) {
					n = substr(line, 1, 1) == "\\" ? 2 : 1
					text = text substr(line, 1, n)
					line = substr(line, n + 1)
				}
				line = substr(line, 2)
				if (mark == "\"" && text ~ / /) put(text)
			}
		} else {
			line = ""
		}
	}
}
