package spool

import (
	"errors"
	"fmt"
)

var (
	// ErrFull: the spool has reached its bound in bytes.
	ErrFull = errors.New("the spool is full")
	// ErrLocked: another process, or another producer of this one, has the
	// spool open.
	ErrLocked = errors.New("the spool is in use")
	// ErrDamaged: bytes of the spool are not what was written.
	ErrDamaged = errors.New("the spool is damaged")
)

// Damage is bytes of a segment that are not a record.
type Damage struct {
	File     string
	From, To int64 // bytes of the file
	Torn     bool  // an end that was never written whole
}

func (d *Damage) Error() string {
	if d.Torn {
		return fmt.Sprintf("%s: %s ends in the middle of a frame: %d bytes from %d on", ErrDamaged, d.File, d.To-d.From, d.From)
	}
	return fmt.Sprintf("%s: %s: bytes %d to %d are no longer a frame and are passed over", ErrDamaged, d.File, d.From, d.To)
}

// Unwrap makes it ErrDamaged.
func (d *Damage) Unwrap() error { return ErrDamaged }
