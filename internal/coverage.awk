# coverage.awk prints the statement coverage of each package from Go cover profiles.
#
#   awk -v minimum=90 -v packages="one two" -f coverage.awk coverage.out
#
# A block that the tests of several packages ran is in the profile once for each of them; it
# counts once, as covered if any of them ran it. The exit status is 1 if a package is below the minimum, or
# has no block at all.
FNR == 1 { next } # mode: …
{
	block = $1 # holdfast/lua/keys.go:12.34,15.2
	statements[block] = $2
	if ($3 > 0) covered[block] = 1
}
END {
	for (block in statements) {
		package = block
		sub(/\/[^\/]*$/, "", package)
		total[package] += statements[block]
		if (block in covered) hit[package] += statements[block]
	}
	n = split(packages, names, /[ \n]+/)
	for (i = 1; i <= n; i++) {
		if (!(names[i] in total)) {
			printf "coverage: nothing known about %s\n", names[i] > "/dev/stderr"
			failed = 1
			continue
		}
		share = 100 * hit[names[i]] / total[names[i]]
		printf "%-24s %5.1f %% of %d statements\n", names[i], share, total[names[i]]
		if (share < minimum) {
			printf "coverage: %s is below %d %%\n", names[i], minimum > "/dev/stderr"
			failed = 1
		}
	}
	exit failed
}
