package schemas

import "testing"

// A sequence that EVENTS gave again after a cut is another message: it lies above a
// fence from before the cut. Entries and frames that say no time are told by sequence.
func TestSourceUpToAFence(t *testing.T) {
	t.Parallel()
	fence := Source{Seq: 100, Stored: 5000}
	for _, c := range []struct {
		name  string
		s     Source
		fence Source
		want  bool
	}{
		{"before", Source{40, 4000}, fence, true},
		{"the last", Source{100, 5000}, fence, true},
		{"accepted later", Source{101, 5001}, fence, false},
		{"given again after a cut", Source{40, 5001}, fence, false},
		{"the clock was set back", Source{101, 4000}, fence, false},
		{"a frame without a time", Source{40, 0}, fence, true},
		{"a later frame without a time", Source{101, 0}, fence, false},
		{"an entry without a time", Source{40, 9000}, Source{Seq: 100}, true},
		{"later than an entry without a time", Source{101, 9000}, Source{Seq: 100}, false},
		{"a source that nothing tells", Source{}, fence, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.s.UpTo(c.fence); got != c.want {
				t.Errorf("%+v up to %+v: %v", c.s, c.fence, got)
			}
		})
	}
}

func TestSourceIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		a, b Source
		want bool
	}{
		{"the same", Source{7, 70}, Source{7, 70}, true},
		{"given again", Source{7, 70}, Source{7, 71}, false},
		{"one says no time", Source{7, 70}, Source{7, 0}, true},
		{"another sequence", Source{7, 0}, Source{8, 0}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.a.Is(c.b); got != c.want || c.b.Is(c.a) != got {
				t.Errorf("%+v is %+v: %v", c.a, c.b, got)
			}
		})
	}
}

// A name says the sequence and the time to the nanosecond, and reads back as it was.
func TestSourceName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Source{
		"4711@2026-11-20T12:00:00.123456789Z": {4711, 1795176000123456789},
		"1@2026-11-20T12:00:00Z":              {1, 1795176000000000000},
		"7":                                   {7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseName(name); err != nil || got != want || got.Name() != name {
				t.Errorf("%q: %+v, %q, %v", name, got, got.Name(), err)
			}
		})
	}
	if got, err := ParseName("7@2026-11-20T13:00:00+01:00"); err != nil || got.Stored != 1795176000000000000 {
		t.Errorf("another zone: %+v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "x", "-1", "7@", "7@now", "@2026-11-20T12:00:00Z", "7@1600-01-01T00:00:00Z", "7@2026-11-20T12:00:00Z@", "18446744073709551615"} {
		if got, err := ParseName(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
