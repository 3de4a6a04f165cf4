package integration

import (
	"strings"
	"testing"
)

// relativePagesOverHTTP reads each kind of list by times that move with the clock, page by page. Every page is of
// the range of the first, whether the times come again or not; with other times a cursor is refused where its list
// is of a range.
func relativePagesOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	for path, ranges := range map[string][2]string{
		"/v1/topics/app/events":        {"from=-3650d&to=now", "from=-3651d"},
		"/v1/documents/customers":      {"created_from=-1h&created_to=now", "created_from=-2h"},
		"/v1/documents/customers?":     {"changed_from=-1h&changed_to=now", "changed_from=-2h"},
		"/v1/topics/trail/trail":       {"scope=s&resource=x&from=-3650d&to=now", "scope=s&resource=x&from=-3651d"},
		"/v1/topics/usage/usage/diffs": {"from=-3650d&to=now", ""},
		"/v1/timers/mails":             {"topic=timers&due_before=2099-01-01", ""},
	} {
		path = strings.TrimSuffix(path, "?") + "?limit=1&"
		pages, last := 1, c.get(path+ranges[0])
		for strings.Contains(string(last), `"cursor"`) && pages < 3 {
			if pages == 1 && ranges[1] != "" {
				c.send(400, "GET", path+ranges[1]+"&cursor="+cursorOf(t, last), "")
			}
			next := c.get(path + ranges[0] + "&cursor=" + cursorOf(t, last))
			if string(next) == string(last) {
				t.Errorf("%s: page %d is the one before: %s", path, pages+1, next)
			}
			last, pages = next, pages+1
		}
		if pages < 2 {
			t.Errorf("%s%s: one page alone: %s", path, ranges[0], last)
		}
	}
}
