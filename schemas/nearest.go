package schemas

// Nearest returns the known name nearest to s, the first by name of those that are as near, for "did you mean"; empty when none is near.
func Nearest(s string, known []string) string {
	if len(s) > maxNearest {
		return ""
	}
	best, at := "", min(max(1, len(s)/3), len(s)-1)+1 // farther than that is another word, not a slip
	for _, k := range known {
		if len(k) > maxNearest {
			continue
		}
		if d := distance(s, k); d < at || d == at && best != "" && k < best {
			best, at = k, d
		}
	}
	return best
}

// maxNearest bounds the names that are compared: their table has the square of it.
const maxNearest = 128

// distance is how many letters must be added, dropped, replaced or swapped with
// their neighbour to make a from b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
