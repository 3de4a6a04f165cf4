package query

// SplitNames returns the names between commas, but for those within brackets.
func SplitNames(list string) (names []string) {
	if list == "" {
		return nil
	}
	depth, begin := 0, 0
	for i, r := range list {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			names, begin = append(names, list[begin:i]), i+1
		}
	}
	return append(names, list[begin:])
}
