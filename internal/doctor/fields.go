package doctor

import (
	"context"
	"fmt"
	"strings"
)

// fields looks for privacy rules that met nothing, which are likely misspelt, and
// for values that did not fit the type of their promoted field.
func (c *check) fields(ctx context.Context) {
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		return // the check of the registry says so
	}
	rules, fields, bad := 0, 0, false
	for i := range topics {
		t := &topics[i]
		if len(t.PII)+len(t.Fields) == 0 {
			continue
		}
		use, err := c.db.Uses(ctx, t)
		if err != nil {
			c.result("fields of "+t.Name, err, "", "")
			return
		}
		if use.Rows == 0 {
			continue
		}
		rules, fields = rules+len(t.PII), fields+len(t.Fields)
		for n, p := range t.PII {
			if use.Matched[n] != 0 {
				continue
			}
			bad = true
			near := "no name ends alike"
			if len(use.Near[n]) > 0 {
				near = "these names end alike and are not under it: " + strings.Join(use.Near[n], ", ")
			}
			c.note("privacy of "+t.Name, Warn, fmt.Sprintf("almanac topics show %s; name the field as the events do, with its path, such as user.email", t.Name),
				"the rule %s has matched none of %d events; %s", p, use.Rows, near)
		}
		for n, f := range t.Fields {
			if use.Misfits[n] == 0 {
				continue
			}
			bad = true
			why := "is not of the type " + string(f.Type)
			c.note("fields of "+t.Name, Warn, fmt.Sprintf("almanac sql \"SELECT attributes['%s'], count() FROM %s WHERE attributes['%s'] != '' GROUP BY 1 ORDER BY 2 DESC LIMIT 10\"", f.Name, t.Name, f.Name),
				"%d of %d events keep in attributes.%s a value that %s: their column is at its default", use.Misfits[n], use.Rows, f.Name, why)
		}
	}
	if !bad && rules+fields > 0 {
		c.note("fields", OK, "", "%d privacy rules have all matched, %d promoted fields have what fits them", rules, fields)
	}
}
