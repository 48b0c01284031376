# Compares a file with a pattern file, line by line: in the pattern "*" stands for any text within a
# line, a line "..." for any number of lines, everything else for itself.
#
#   awk -v pattern=FILE -f glob.awk GOT        exit 1 and one line that says where they part

# Does text fit the pattern? Between the stars stand literal parts, found from left to right.
function fits(text, pat,    parts, n, i, at, last) {
	n = split(pat, parts, "*")
	if (n <= 1)
		return text == pat
	if (substr(text, 1, length(parts[1])) != parts[1])
		return 0
	text = substr(text, length(parts[1]) + 1)
	for (i = 2; i < n; i++) {
		at = index(text, parts[i])
		if (at == 0)
			return 0
		text = substr(text, at + length(parts[i]))
	}
	last = parts[n]
	return length(text) >= length(last) && substr(text, length(text) - length(last) + 1) == last
}

# Do the lines from g on fit the patterns from p on? Remembers how far it came.
function match_from(p, g,    i) {
	if (g > farthest_got) {
		farthest_got = g
		farthest_want = p
	}
	if (p > npatterns)
		return g > ngot
	if (patterns[p] == "...") {
		for (i = g; i <= ngot + 1; i++)
			if (match_from(p + 1, i))
				return 1
		return 0
	}
	return g <= ngot && fits(got[g], patterns[p]) && match_from(p + 1, g + 1)
}

BEGIN {
	while ((status = (getline line < pattern)) > 0)
		patterns[++npatterns] = line
	if (status < 0) {
		print pattern " cannot be read"
		exit 2
	}
}

{ got[++ngot] = $0 }

END {
	if (status < 0)
		exit 2
	if (match_from(1, 1))
		exit 0
	printf "line %d is '%s', the pattern (line %d) wants '%s'\n", farthest_got,
		(farthest_got > ngot ? "(the end)" : got[farthest_got]), farthest_want,
		(farthest_want > npatterns ? "(the end)" : patterns[farthest_want])
	exit 1
}
