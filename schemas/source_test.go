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
