package checkpoint

import (
	"github.com/almanac-events/almanac/schemas"
	"testing"
)

// A checkpoint names each loss once, and a bounded number of them.
func TestAddLost(t *testing.T) {
	var c Checkpoint
	one := LostFrames{Shard: 1, From: 5, To: 9, Rows: 50}
	c.AddLost(one)
	c.AddLost(one) // a repair that was killed does it again
	if len(c.Lost) != 1 || c.Lost[0] != one {
		t.Fatalf("%+v, want the loss once", c.Lost)
	}
	for i := range uint64(3 * MaxLostFrames) {
		c.AddLost(LostFrames{Shard: 1, From: 10 * (i + 1), To: 10*(i+1) + 1, Rows: 2})
	}
	rows := uint64(0)
	for _, l := range c.Lost {
		rows += l.Rows
	}
	if len(c.Lost) > MaxLostFrames || rows != 50+2*3*MaxLostFrames {
		t.Errorf("%d losses with %d rows; want at most %d, and no row forgotten", len(c.Lost), rows, MaxLostFrames)
	}
}

// A remembered end fits the stream that has its message, or had it and purged it, and no
// stream that ends below or gave its sequence again.
func TestStreamEndMisfit(t *testing.T) {
	end := StreamEnd{Stream: schemas.StreamEvents, Seq: 10, Stored: 100}
	gone := end
	gone.Gone = true
	for name, c := range map[string]struct {
		end  StreamEnd
		at   SourceAt
		fits bool
	}{
		"never noted":                {StreamEnd{Stream: schemas.StreamEvents}, SourceAt{}, true},
		"the message is there":       {end, SourceAt{LastSeq: 10, Found: true, Stored: 100}, true},
		"more came":                  {end, SourceAt{LastSeq: 12, Found: true, Stored: 100}, true},
		"it was purged":              {end, SourceAt{LastSeq: 12}, true},
		"the stream ends below":      {end, SourceAt{LastSeq: 9}, false},
		"another is there":           {end, SourceAt{LastSeq: 12, Found: true, Stored: 101}, false},
		"it was gone and is no more": {gone, SourceAt{LastSeq: 12, Found: true, Stored: 101}, false},
		"it was gone and still is":   {gone, SourceAt{LastSeq: 12}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if why := c.end.Misfit(c.at); (why == "") != c.fits {
				t.Errorf("%s: %q", name, why)
			}
		})
	}
}

// What the registry keeps of a checkpoint shares nothing with it, and knows when SHARDS
// forgot something.
func TestCheckpointCopy(t *testing.T) {
	cp := Checkpoint{Source: 9, Era: 1, Windows: []ProducerWindow{{Producer: "p"}}, Tails: map[schemas.Shard]Tail{1: {Pos: 3}}}
	kept := cp.Copy()
	cp.Remember(1, Tail{Pos: 4})
	if kept.Windows != nil || kept.Tails[1].Pos != 3 {
		t.Errorf("%+v", kept)
	}
	for _, c := range []struct {
		source uint64
		era    uint32
		want   bool
	}{{9, 1, false}, {8, 1, true}, {10, 1, false}, {1, 2, false}, {20, 0, true}} {
		if now := (Checkpoint{Source: c.source, Era: c.era}); now.Forgets(&kept) != c.want {
			t.Errorf("message %d of era %d forgets: %v, want %v", c.source, c.era, !c.want, c.want)
		}
	}
}
