package registry

import (
	"fmt"
	"testing"
	"time"
)

// TestLateIsCountedOnce holds that a message of a removed topic counts once, however often it is read, and that producers are bounded.
func TestLateIsCountedOnce(t *testing.T) {
	t.Parallel()
	var l Late
	at := time.Unix(1_000_000, 0)
	for range 3 { // a router that is killed before it took them out reads them again
		for seq := uint64(1); seq <= 100; seq++ {
			l.Count(fmt.Sprint(seq%2), seq, seq%3, fmt.Sprint("p-", seq), at.Add(time.Duration(seq)))
		}
	}
	want := uint64(0)
	for seq := uint64(1); seq <= 100; seq++ {
		want += max(seq%3, 1)
	}
	if l.Messages != 100 || l.Events != want || len(l.Producers) != MaxLateProducers || !l.Last.Equal(at.Add(100)) {
		t.Errorf("%+v, expected 100 messages with %d events", l, want)
	}
}
