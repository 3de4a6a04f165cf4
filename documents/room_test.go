package documents

import (
	"testing"
	"time"
)

// Creates that were not stored leave the count that has them, and no later one.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	in, err := c.admit(ctx, 3)
	if err != nil || c.room.keys != 3 {
		t.Fatalf("%d ids, %v", c.room.keys, err)
	}
	c.giveBack(1, in)
	if c.room.keys != 2 {
		t.Errorf("given back: %d ids, expected 2", c.room.keys)
	}
	c.room = roomSeen{at: in.Add(2 * time.Second), keys: 7} // counted again
	c.giveBack(2, in)
	if c.room.keys != 7 {
		t.Errorf("given back to a later count: %d ids, expected 7", c.room.keys)
	}
}
