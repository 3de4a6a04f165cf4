package backup

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// said is a message of a batch, the last one of it or alone.
func said(seq uint64, at int64, batch string, last bool) *message {
	m := &message{subject: "shards.app.2026-11.1", seq: seq, stored: at, data: fmt.Appendf(nil, "message %d", seq)}
	if batch != "" {
		m.header = []byte("NATS/1.0\r\n" + headerBatch + ": " + batch + "\r\n")
		if last {
			m.header = append(m.header, (headerCommit + ": 1\r\n")...)
		}
		m.header = append(m.header, "\r\n"...)
	}
	return m
}

// A stream is cut at a time, never within a batch, and says which sequence is the first that is not there.
func TestCut(t *testing.T) {
	t.Parallel()
	all := []*message{
		said(3, 10, "", false), said(4, 11, "a", false), said(5, 12, "a", true), said(7, 13, "", false),
		said(8, 20, "b", false), said(9, 21, "b", false), said(10, 22, "b", true), said(11, 30, "c", false),
	}
	for name, c := range map[string]struct {
		until int64
		want  []uint64
		end   uint64
	}{
		"all, but for a batch without its end": {0, []uint64{3, 4, 5, 7, 8, 9, 10}, 11},
		"between two":                          {15, []uint64{3, 4, 5, 7}, 8},
		"within a batch":                       {21, []uint64{3, 4, 5, 7}, 8},
		"at the end of a batch":                {22, []uint64{3, 4, 5, 7, 8, 9, 10}, 11},
		"within the first batch":               {11, []uint64{3}, 4},
		"before all":                           {5, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []uint64
			cut := cutter{keep: func(m *message) error { got = append(got, m.seq); return nil }}
			if c.until != 0 {
				cut.until = time.Unix(0, c.until)
			}
			for _, m := range all {
				if err := cut.add(m); err != nil {
					t.Fatal(err)
				}
			}
			cut.drop()
			if !slices.Equal(got, c.want) || cut.end != c.end || cut.messages != uint64(len(c.want)) {
				t.Errorf("kept %v and ended before %d, want %v and %d", got, cut.end, c.want, c.end)
			}
		})
	}
}

// What leaves the beginning of a stream changes the first chunk alone, and chunks give back what they were made of.
func TestChunksStayTheSame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var all []*message
	for seq := range uint64(3000) {
		data := make([]byte, 1+r.IntN(20_000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		all = append(all, &message{subject: "events.app.2026-11.0", seq: seq + 1, stored: int64(seq), header: []byte("NATS/1.0\r\nA: b\r\n\r\n"), data: data})
	}
	chunks := func(from int) (out [][]byte) {
		c := chunker{keep: func(b []byte) error { out = append(out, bytes.Clone(b)); return nil }}
		for _, m := range all[from:] {
			if err := c.add(m); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := chunks(0)
	var back []*message
	for _, c := range first {
		if err := chunkMessages(c, func(m *message) error { back = append(back, m); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(back) != len(all) {
		t.Fatalf("%d messages came back of %d", len(back), len(all))
	}
	for i, m := range all {
		if b := back[i]; b.subject != m.subject || b.seq != m.seq || b.stored != m.stored || !bytes.Equal(b.header, m.header) || !bytes.Equal(b.data, m.data) {
			t.Fatalf("message %d came back as another", m.seq)
		}
	}
	later := chunks(700)
	digests := map[string]bool{}
	for _, c := range first {
		digests[digest(c)] = true
	}
	other := 0
	for _, c := range later {
		if !digests[digest(c)] {
			other++
		}
	}
	if len(first) < 4 || other > 1 {
		t.Errorf("%d chunks, and %d of %d are others without the first messages; want 1 at most", len(first), other, len(later))
	}
}
