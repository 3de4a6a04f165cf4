package schemas

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"
)

func TestIDSum(t *testing.T) {
	topic := NewTopic("app")
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()
	sumOf := func(ts []int64, ids []ID) uint64 {
		b := NewFrameBuilder(&topic)
		for i := range ts {
			b.Append(&Event{Message: "m"}, ts[i], ids[i])
		}
		built := b.IDSum()
		f, payload := b.Encode()
		var r FrameReader
		if err := r.Open(payload, &topic, f.Schema); err != nil {
			t.Fatal(err)
		}
		if read := r.IDSum(); read != built {
			t.Fatalf("the builder has %x, the reader %x", built, read)
		}
		return built
	}
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(r, "events")
		ts, ids := make([]int64, n), make([]ID, n)
		for i := range n {
			ts[i] = noon + rapid.Int64Range(0, 1e9).Draw(r, "time")
			ids[i] = NewID(ts[i])
		}
		whole := sumOf(ts, ids)
		backTs, backIDs := make([]int64, n), make([]ID, n)
		for i := range n {
			backTs[i], backIDs[i] = ts[n-1-i], ids[n-1-i]
		}
		if got := sumOf(backTs, backIDs); got != whole {
			r.Fatalf("in another order the sum is %x, not %x", got, whole)
		}
		cut := rapid.IntRange(0, n).Draw(r, "cut")
		var two IDSums
		pos := uint64(1)
		for _, part := range [][2]int{{0, cut}, {cut, n}} {
			if part[0] < part[1] {
				two = two.Next(pos, sumOf(ts[part[0]:part[1]], ids[part[0]:part[1]]))
				pos++
			}
		}
		if two.Sum != whole || !two.Whole() {
			r.Fatalf("in two frames the sum is %s, not %x", two, whole)
		}
		at := rapid.IntRange(0, n-1).Draw(r, "changed")
		was := ids[at]
		ids[at][15] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		if sumOf(ts, ids) == whole {
			r.Fatal("an id that changed did not change the sum")
		}
		ids[at] = was
		ts[at]++
		if sumOf(ts, ids) == whole {
			r.Fatal("a time that changed did not change the sum")
		}
	})
}

func TestIDSumsInHeaders(t *testing.T) {
	placed := Placed{Frame: Frame{Rows: 1, RawBytes: 1, Schema: 1, MinTs: 1, MaxTs: 1}, Pos: 7, Lane: 1, ShardRows: 9}
	for name, c := range map[string]struct {
		sums IDSums
		text string
	}{
		"none":           {IDSums{}, ""},
		"whole":          {IDSums{1, 0xab}, "00000000000000ab"},
		"from the third": {IDSums{3, 0xab}, "00000000000000ab/3"},
	} {
		t.Run(name, func(t *testing.T) {
			placed.ShardIDs = c.sums
			h := nats.Header{}
			placed.SetHeaders(h)
			if got := h.Get(HeaderShardIDs); got != c.text {
				t.Errorf("the header is %q, want %q", got, c.text)
			}
			back, err := ParsePlaced(h)
			if err != nil || back.ShardIDs != c.sums {
				t.Errorf("read back: %+v, %v", back.ShardIDs, err)
			}
			data, err := json.Marshal(Tail{Pos: 7, IDs: c.sums})
			if err != nil {
				t.Fatal(err)
			}
			var tail Tail
			if err := json.Unmarshal(data, &tail); err != nil || tail.IDs != c.sums {
				t.Errorf("a checkpoint's tail reads back as %+v, %v", tail.IDs, err)
			}
		})
	}
	for _, bad := range []string{"ab", "00000000000000ab/", "00000000000000ab/0", "00000000000000ab/8", "00000000000000ag", "00000000000000ab/-1"} {
		h := nats.Header{}
		placed.ShardIDs = IDSums{}
		placed.SetHeaders(h)
		h.Set(HeaderShardIDs, bad)
		if _, err := ParsePlaced(h); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestIDSumsSince(t *testing.T) {
	var s IDSums
	s = s.Next(5, 10)
	before := s
	s = s.Next(6, 7)
	if sum, ok := s.Since(before); sum != 7 || !ok {
		t.Errorf("since %s: %d, %v", before, sum, ok)
	}
	if _, ok := s.Since(IDSums{1, 3}); ok {
		t.Error("sums that count from different positions were compared")
	}
	if _, ok := (IDSums{}).Since(IDSums{}); ok {
		t.Error("frames without sums were compared")
	}
}

func BenchmarkIDSum(b *testing.B) {
	topic := NewTopic("app")
	fb := NewFrameBuilder(&topic)
	for range FrameRows {
		fb.Append(&Event{Message: "m"}, 1e18, NewID(1e18))
	}
	f, payload := fb.Encode()
	var r FrameReader
	if err := r.Open(payload, &topic, f.Schema); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		r.IDSum()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/FrameRows, "ns/event")
}
