package doctor

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/timers"
)

func TestLateTimers(t *testing.T) {
	late := timers.Status{Group: "mails", Pending: 3, Overdue: 2, OldestSeconds: 60}
	paused := late
	paused.Paused = true
	for name, c := range map[string]struct {
		groups      []timers.Status
		dispatchers int
		status, do  string
	}{
		"nothing":               {nil, 0, OK, ""},
		"pending, on time":      {[]timers.Status{{Pending: 5}}, 1, OK, ""},
		"late by a second":      {[]timers.Status{{Pending: 5, Overdue: 1, OldestSeconds: 1}}, 1, OK, ""},
		"no dispatcher":         {[]timers.Status{{Pending: 5}}, 0, Fail, "timers run"},
		"late":                  {[]timers.Status{late}, 1, Warn, "max_concurrent"},
		"late, because paused":  {[]timers.Status{paused}, 1, Warn, "resume mails"},
		"late, and another too": {[]timers.Status{paused, late}, 1, Warn, "max_concurrent"},
	} {
		t.Run(name, func(t *testing.T) {
			status, do, found := lateTimers(c.groups, c.dispatchers)
			if status != c.status || !strings.Contains(do, c.do) {
				t.Errorf("%s, %q: %s", status, do, found)
			}
		})
	}
}
