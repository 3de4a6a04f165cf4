package backup

import (
	"fmt"
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
