package faults

import (
	"context"
	"crypto/sha256"

	"github.com/nats-io/nats.go/jetstream"
)

// deadLetters checks that every damaged message is kept once and whole, and that nothing else is dead.
func (c *Checker) deadLetters(ctx context.Context, v *Finding) error {
	c.Corrupter.mu.Lock()
	sent := c.Corrupter.sent
	c.Corrupter.mu.Unlock()
	for _, d := range sent {
		if d.acked {
			v.Damaged++
		}
	}
	seen := map[[32]byte]bool{}
	err := c.each(ctx, "SHARDS", "dead.*", false, func(m jetstream.Msg) error {
		v.Dead++
		digest := sha256.Sum256(m.Data())
		d := sent[digest]
		switch {
		case m.Headers().Get("Fault-Echo") != "":
			v.Echoed++
		case d == nil:
			v.problem("a dead letter that was not damaged by the run: %s, %s", m.Headers().Get("Almanac-Source-Subject"), m.Headers().Get("Almanac-Detail"))
		case seen[digest]:
			v.problem("a damaged message (%s) is dead twice", d.what)
		}
		seen[digest] = true
		return nil
	})
	for digest, d := range sent {
		if err == nil && d.acked && !seen[digest] {
			v.problem("a damaged message (%s) is not a dead letter", d.what)
		}
	}
	return err
}
