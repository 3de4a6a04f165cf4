package pool

import (
	"bytes"
	"sync"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// What inputs of metrics know of a producer.
type (
	// Series is a checked series.
	Series = producer.Series
	// Point is one of a series.
	Point = producer.Point
)

// SeriesBytes bounds the series that a pool remembers, with the bytes they are found by: some 100,000 of six labels.
const SeriesBytes = 64 << 20

// seriesKey is how a series is found: by what a request says of it, which is the same bytes each time. They are
// compared, and not their hash alone.
type seriesKey struct {
	form  string // how said is read
	said  string
	value string // the kind of points that stands for what is not a number; "" for numbers
}

// seriesTable remembers the series that requests had, each checked by its topic's producer. Half of what it may hold is of
// late: when that half is full it becomes the earlier one, and what was in there and was not asked for since is
// forgotten. So series that are sent again and again stay, however many others come once.
type seriesTable struct {
	limit int // bytes

	mu            sync.Mutex
	late, earlier map[*slot]map[seriesKey]*producer.Series
	bytes         int // of late
}

func newSeriesTable(limit int) *seriesTable {
	return &seriesTable{limit: limit, late: map[*slot]map[seriesKey]*producer.Series{}}
}

// get returns a series of a slot, nil for one that is not known.
func (t *seriesTable) get(s *slot, form string, said []byte, value string) *producer.Series {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.late[s][seriesKey{form, string(said), value}]; found != nil {
		return found
	}
	found := t.earlier[s][seriesKey{form, string(said), value}]
	if found != nil {
		t.add(s, seriesKey{form, string(said), value}, found)
	}
	return found
}

// put remembers a series, unless its slot was replaced meanwhile.
func (t *seriesTable) put(s *slot, form string, said []byte, value string, made *producer.Series) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(s, seriesKey{form, string(said), value}, made)
}

// entryBytes is what an entry of a map takes beside its texts.
const entryBytes = 100

// add puts a series into the late half. Caller holds mu.
func (t *seriesTable) add(s *slot, key seriesKey, made *producer.Series) {
	n := made.Bytes() + len(key.said) + entryBytes
	if s.forgotten || n > t.limit/2 {
		return
	}
	if t.bytes+n > t.limit/2 {
		t.late, t.earlier, t.bytes = map[*slot]map[seriesKey]*producer.Series{}, t.late, 0
	}
	if t.late[s] == nil {
		t.late[s] = map[seriesKey]*producer.Series{}
	}
	if _, had := t.late[s][key]; !had {
		t.bytes += n
	}
	t.late[s][key] = made
}

// forget drops the series of a slot whose topic changed, or that is closed, for good.
func (t *seriesTable) forget(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.forgotten = true
	for key, made := range t.late[s] {
		t.bytes -= made.Bytes() + len(key.said) + entryBytes
	}
	delete(t.late, s)
	delete(t.earlier, s)
}

// Series returns the checked series that a request names by said, in its form. value is the kind of points of those that
// are not numbers, and "" for numbers. read makes the event of its labels where the series is not known; it has value
// among its attributes already. Of equal form, said and value it makes equal events. nil without an error means that
// the topic wants an event of each point.
func (t *Target) Series(form string, said []byte, value string, read func() (schemas.Event, error)) (*producer.Series, error) {
	if l := &t.none; l.form == form && l.value == value && bytes.Equal(l.said, said) {
		return nil, l.err
	}
	if found := t.of.p.series.get(t.slot, form, said, value); found != nil {
		return found, nil
	}
	made, err := t.read(read)
	if made == nil {
		t.none = noSeries{form, append(t.none.said[:0], said...), value, err}
		return nil, err
	}
	t.of.p.series.put(t.slot, form, said, value, made)
	return made, nil
}

// noSeries is what a request named last of which no series was made: its points come one after the other, and are not to be read again each. form is
// never empty where there is one.
type noSeries struct {
	form  string
	said  []byte
	value string
	err   error // nil: the topic wants an event of each point
}

func (t *Target) read(read func() (schemas.Event, error)) (*producer.Series, error) {
	ev, err := read()
	if err != nil {
		return nil, err
	}
	return t.slot.p.Series(ev)
}

// ExpectPoints makes room for n more points at once. It is a hint.
func (t *Target) ExpectPoints(n int) { t.batch.ExpectPoints(n) }

// AddPoint is Add of a point of a series of this target.
func (t *Target) AddPoint(s *producer.Series, pt producer.Point) error {
	err := t.batch.AddPoint(s, pt)
	if err != nil {
		t.Refuse(err)
		return err
	}
	t.count(pt.Time, s.PointBytes(pt))
	return nil
}
