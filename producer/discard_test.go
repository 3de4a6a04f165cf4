package producer

import (
	"errors"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A producer that discards does everything else: it counts, flushes and closes.
func TestDiscard(t *testing.T) {
	t.Parallel()
	p, err := NewDiscard(schemas.NewTopic("app"), Config{Policy: Block})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		p.Log(fiveFields(i))
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := p.Stats()
	if s.Stored != 5000 || s.DroppedTotal() != 0 || s.Frames == 0 {
		t.Errorf("stored %d, dropped %d, %d frames", s.Stored, s.DroppedTotal(), s.Frames)
	}
	checkSum(t, s)
}

func TestDiscardRefuses(t *testing.T) {
	t.Parallel()
	if _, err := NewDiscard(schemas.Topic{Name: "No"}, Config{}); !errors.Is(err, schemas.ErrTopicName) {
		t.Errorf("a bad name: %v", err)
	}
	bad := schemas.NewTopic("app")
	bad.Lanes = -1
	if _, err := NewDiscard(bad, Config{}); !errors.Is(err, schemas.ErrTopic) {
		t.Errorf("bad lanes: %v", err)
	}
	if _, err := NewDiscard(schemas.NewTopic("app"), Config{Policy: Spool, SpoolDir: t.TempDir()}); !errors.Is(err, ErrConfig) {
		t.Errorf("the policy spool: %v", err)
	}
}
