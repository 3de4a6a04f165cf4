package sinks

import (
	"errors"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

func payload(b byte) []byte { p := make([]byte, 20); p[0] = b; return p }

func placed(pos uint64, prev string, schema int) schemas.Placed {
	return schemas.Placed{Frame: schemas.Frame{Rows: 10, Schema: schema}, Pos: pos, Prev: prev, ShardRows: pos * 10, ShardBytes: pos * 20}
}

func TestAdmit(t *testing.T) {
	first := payload(1)
	fill := func() *batch {
		b := &batch{}
		if more, err := b.admit(4, placed(5, "whatever", 1), first, 100); !more || err != nil {
			t.Fatalf("the first frame: %v, %v", more, err)
		}
		return b
	}
	b := fill()
	if more, err := b.admit(4, placed(6, schemas.Digest(first), 1), payload(2), 101); !more || err != nil {
		t.Fatalf("its successor: %v, %v", more, err)
	}
	if b.end != (position{6, 60, 120}) || b.rows != 20 || b.bytes != 40 || b.lastSeq != 101 {
		t.Errorf("batch: %+v", b)
	}
	for name, c := range map[string]struct {
		p    schemas.Placed
		text string
	}{
		"gap":               {placed(8, schemas.Digest(first), 1), "positions 6 to 7 are missing"},
		"twice":             {placed(5, schemas.Digest(first), 1), "position 5 stands twice"},
		"wrong predecessor": {placed(6, "ffff", 1), "names ffff as its predecessor"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := fill().admit(4, c.p, payload(3), 102); !errors.Is(err, ErrGap) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if more, err := fill().admit(4, placed(6, schemas.Digest(first), 2), payload(2), 101); more || err != nil {
		t.Errorf("another schema version: %v, %v; want the batch to end before it", more, err)
	}
}
