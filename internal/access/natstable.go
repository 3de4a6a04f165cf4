package access

import (
	"fmt"
	"slices"
	"strings"
)

// bundle is a set of subjects under one name.
type bundle struct {
	name, short string
	subjects    []string
}

func bundles() []bundle {
	return []bundle{
		{"read", "reads every stream and the registry, and asks what it may do", reads()},
		{"let go", "deletes and purges messages of " + strings.Join(logs, ", "), takes(logs...)},
		{"make", "creates and changes Almanac's streams", creates()},
	}
}

// NATSTable is what the users of NATS may do, as the table of SECURITY.md, which make reference writes.
func NATSTable() string {
	var b strings.Builder
	b.WriteString("| user | who | publishes | but not | hears, apart from its own answers |\n|---|---|---|---|---|\n")
	users := NATSUsers()
	for i := range users {
		u := &users[i]
		publish := slices.Clone(u.Publish)
		var words []string
		for _, g := range bundles() {
			if slices.ContainsFunc(g.subjects, func(s string) bool { return !slices.Contains(publish, s) }) {
				continue // a bundle stands for its subjects where the user has them all
			}
			words = append(words, "*"+g.name+"*")
			publish = slices.DeleteFunc(publish, func(s string) bool { return slices.Contains(g.subjects, s) })
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", u.Name, u.Short, cell(words, publish), cell(nil, u.Deny), cell(nil, u.Hears))
	}
	b.WriteString("\n")
	for _, g := range bundles() {
		fmt.Fprintf(&b, "*%s* %s: %s.\n\n", g.name, g.short, cell(nil, g.subjects))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func cell(words, subjects []string) string {
	all := slices.Clone(words)
	for _, s := range subjects {
		all = append(all, "`"+s+"`")
	}
	return strings.Join(all, ", ")
}
