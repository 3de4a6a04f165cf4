package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// onceTopics are topics that have events once.
func onceTopics(t testing.TB) []schemas.Topic {
	t.Helper()
	list := []schemas.Topic{schemas.NewTopicOf(kinds.Meter, "usage"), schemas.NewTopicOf(kinds.Metric, "cpu"), schemas.NewTopicOf(kinds.Audit, "trail"),
		{Name: "orders", OnceBy: []string{schemas.ColMessage}}}
	for i := range list {
		declared, err := list[i].Declared()
		if err != nil {
			t.Fatal(err)
		}
		list[i] = declared
	}
	return list
}

// numberedID is the n-th id after that of zeros.
func numberedID(n uint64) (id schemas.ID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// A frame that has an id several times becomes as many frames, in which it is once, with the same events, and those of one id in their
// order; and one that does not stays.
func TestApart(t *testing.T) {
	topics := onceTopics(t)
	log, err := schemas.Topic{Name: "app"}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	var thrice []uint64
	for i := range uint64(60) {
		thrice = append(thrice, 1+i%20)
	}
	rapid.Check(t, func(rt *rapid.T) {
		topic := rapid.SampledFrom(topics).Draw(rt, "topic")
		ids := rapid.OneOf(rapid.SliceOfN(rapid.Uint64Range(1, 20), 1, 90), rapid.Just(thrice)).Draw(rt, "ids")
		text := rapid.SampledFrom([]string{"", "x", "a\xffb", strings.Repeat("long ", 2000)})
		b := NewBuilder(&topic)
		most, had := 0, map[uint64]int{}
		growing := rapid.Bool().Draw(rt, "later ones are long") // so that a later frame is full before an earlier one
		for i, id := range ids {
			if growing {
				text = rapid.Just(strings.Repeat("long ", 2000*min(had[id], 1)))
			}
			e := schemas.Event{Service: fmt.Sprint(i), Type: text.Draw(rt, "type"), UserID: text.Draw(rt, "user"), Message: fmt.Sprint(i % 3), Attrs: []schemas.Attr{
				schemas.Int64("delta", int64(i%2)), schemas.Float64("value", float64(i%3)), schemas.String("space", text.Draw(rt, "space")), schemas.String("zone", "z"),
			}}
			b.Append(&e, int64(1+i%4), numberedID(id))
			had[id]++
			most = max(most, had[id])
		}
		f, payload := b.Encode()
		if len(payload) > schemas.MaxFrameBytes {
			rt.Skip("larger than a frame")
		}
		f.Producer, f.Seq = "p", 7
		var r, part Reader
		if err := r.Open(payload, &topic, f.Schema); err != nil {
			rt.Fatal(err)
		}
		made, err := r.Apart(f)
		if err != nil || (most == 1) != (len(made) == 0) || most > 1 && (len(made) < most || made[0].Producer != "p" || made[0].Seq != 7) {
			rt.Fatalf("%d frames of one where an id comes %d times: %v", len(made), most, err)
		}
		again, err := r.Apart(f)
		if err != nil || len(again) != len(made) {
			rt.Fatal("the second time it is ", len(again), err)
		}
		var want, got []string
		var order, came [21][]string
		for i := range r.Rows() {
			want = append(want, fmt.Sprintf("%+v", r.Event(i)))
			id := r.ID(i)[15]
			order[id] = append(order[id], r.Event(i).Service)
		}
		var sum uint64
		for i, m := range made {
			if !bytes.Equal(m.Payload, again[i].Payload) || i > 0 && m.Producer != "" {
				rt.Fatalf("frame %d is another the second time, or says that %q sent it", i, m.Producer)
			}
			if err := part.Open(m.Payload, &topic, m.Schema); err != nil {
				rt.Fatal(err)
			}
			seen := map[schemas.ID]bool{}
			for k := range part.Rows() {
				if seen[part.ID(k)] {
					rt.Fatalf("frame %d has the id %s twice", i, part.ID(k))
				}
				seen[part.ID(k)] = true
				got = append(got, fmt.Sprintf("%+v", part.Event(k)))
				id := part.ID(k)[15]
				came[id] = append(came[id], part.Event(k).Service)
			}
			sum += m.IDSum
			if m.IDSum != part.IDSum() || m.Rows != part.Rows() || m.RawBytes != len(part.Raw()) {
				rt.Fatalf("frame %d is not as it says: %+v", i, m.Frame)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if most > 1 && !reflect.DeepEqual(came, order) {
			rt.Fatalf("the events of each id came as %v, want %v", came, order)
		}
		if most > 1 && (!slices.Equal(got, want) || sum != r.IDSum()) {
			rt.Fatalf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		plain := NewBuilder(&log)
		for range 2 {
			plain.Append(&schemas.Event{}, 1, numberedID(1))
		}
		lf, lp := plain.Encode()
		if err := r.Open(lp, &log, 1); err != nil {
			rt.Fatal(err)
		}
		if made, err := r.Apart(lf); made != nil || err != nil {
			rt.Fatalf("a topic without an identity: %d frames, %v", len(made), err)
		}
	})
}

// A frame that was not routed may have an id schemas.MaxSameIDs times, and not that of zeros.
func TestCheckIDs(t *testing.T) {
	t.Parallel()
	const most = schemas.MaxSameIDs
	once := onceTopics(t)[3]
	log, err := schemas.Topic{Name: "app"}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	times := func(n int, id uint64) (ids []uint64) {
		for range n {
			ids = append(ids, id)
		}
		return ids
	}
	for name, c := range map[string]struct {
		topic *schemas.Topic
		lane  int
		ids   []uint64
		want  error
	}{
		"rising":                           {&once, 0, []uint64{1, 2, 3}, nil},
		"falling":                          {&once, 0, []uint64{3, 2, 1}, nil},
		"as often as may be":               {&once, 0, times(most, 5), nil},
		"too often":                        {&once, 0, times(most+1, 5), schemas.ErrSameID},
		"too often among others":           {&once, 0, append(times(most+1, 5), 1, 2, 9), schemas.ErrSameID},
		"several as often as may be":       {&once, 0, slices.Concat(times(most, 5), times(most, 4), times(most, 9)), nil},
		"zeros":                            {&once, 0, []uint64{0}, schemas.ErrID},
		"zeros first":                      {&once, 0, []uint64{0, 1, 2}, schemas.ErrID},
		"zeros last":                       {&once, 0, []uint64{1, 2, 0}, schemas.ErrID},
		"zeros, and another too often":     {&once, 0, append(times(most+1, 5), 0), schemas.ErrID},
		"routed":                           {&once, schemas.NoLane, times(most+1, 5), nil},
		"too often, without an identity":   {&log, 0, times(most+1, 5), nil},
		"zeros of one without an identity": {&log, 0, []uint64{0, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBuilder(c.topic)
			for _, id := range c.ids {
				b.Append(&schemas.Event{Message: "m"}, 1, numberedID(id))
			}
			f, payload := b.Encode()
			var r Reader
			if err := r.Open(payload, c.topic, 1); err != nil {
				t.Fatal(err)
			}
			err := r.Check(f, 197001, c.lane, 1)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err != nil && (schemas.Reason(err) == "" || !strings.Contains(err.Error(), "almanac dead retry orders")) {
				t.Errorf("%q, reason %q", err, schemas.Reason(err))
			}
		})
	}
}

// A maker of frames that goes by IDCounts makes none that a router refuses, and closes none early for ids that differ.
func TestIDCounts(t *testing.T) {
	t.Run("no id is there too often", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			var c IDCounts
			frame := map[schemas.ID]int{}
			for _, n := range rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 500).Draw(rt, "ids") {
				id := numberedID(n * 0x1234567)
				if c.Often(id) {
					c.Reset()
					clear(frame)
				}
				c.Add(id)
				if frame[id]++; frame[id] > schemas.MaxSameIDs {
					rt.Fatalf("a frame has %s %d times", id, frame[id])
				}
			}
		})
	})
	var made schemas.IDSource
	for name, id := range map[string]func(n int) schemas.ID{
		"numbered":           func(n int) schemas.ID { return numberedID(uint64(n)) },
		"numbered in front":  func(n int) (id schemas.ID) { binary.BigEndian.PutUint64(id[:], uint64(n)); return id },
		"numbered thousands": func(n int) schemas.ID { return numberedID(uint64(n) * 1000) },
		"numbered 2^32":      func(n int) schemas.ID { return numberedID(uint64(n) << 32) },
		"made":               func(n int) schemas.ID { return made.Next(int64(n)) },
		"of sequences":       func(n int) schemas.ID { return schemas.SequenceID(1, uint64(n), 0) },
		"of lines":           func(n int) schemas.ID { return schemas.SequenceID(1, 1, uint64(n)) },
		"of a time each":     func(n int) schemas.ID { return schemas.SequenceID(int64(n)*1e6, 1, 1) },
		"derived":            func(n int) schemas.ID { return schemas.DerivedID(1, uint64(n), 7) },
	} {
		t.Run(name, func(t *testing.T) {
			var c IDCounts
			for n := range schemas.FrameRows {
				if c.Often(id(n)) {
					t.Fatalf("it closes a frame after %d different ids", n)
				}
				c.Add(id(n))
			}
		})
	}
}

// BenchmarkCheckIDs is what a router pays for a frame of ids that a producer made, and of ids that were given.
func BenchmarkCheckIDs(b *testing.B) {
	topic := onceTopics(b)[3]
	for name, id := range map[string]func(n int) schemas.ID{
		"made":  func(n int) schemas.ID { return numberedID(uint64(n + 1)) },
		"given": func(n int) schemas.ID { return schemas.DerivedID(1, uint64(n), 7) },
	} {
		b.Run(name, func(b *testing.B) {
			w := NewBuilder(&topic)
			for n := range schemas.FrameRows {
				w.Append(&schemas.Event{Message: "m"}, 1, id(n))
			}
			_, payload := w.Encode()
			var r Reader
			if err := r.Open(payload, &topic, 1); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				r.same = sameIDs{}
				if err := r.checkIDs(0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
