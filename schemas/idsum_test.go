package schemas

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
)

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
