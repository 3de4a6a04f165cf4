package access

import (
	"slices"
	"strings"
)

// RolesTable is what each role may do, and a client without a token on loopback, as the table of SECURITY.md, which make reference writes.
func RolesTable() string {
	var b strings.Builder
	b.WriteString("| action |")
	for i := range Rights {
		b.WriteString(" " + string(Rights[i].Role) + " |")
	}
	b.WriteString(" no token, on loopback |\n|" + strings.Repeat("---|", len(Rights)+2) + "\n")
	for _, a := range Actions {
		b.WriteString("| " + a.Short + " |")
		for i := range Rights {
			b.WriteString(answer(slices.Contains(Rights[i].Actions, a.Action)))
		}
		b.WriteString(answer(slices.Contains(OnLoopback, a.Action)) + "\n")
	}
	return b.String()
}

func answer(may bool) string {
	if may {
		return " yes |"
	}
	return " |"
}
