package bench

import (
	"fmt"
	"os"
	"time"
)

// fsyncMicros is the median time of appending a frame's bytes to a file and
// syncing it: what an acknowledgement cannot be faster than.
func fsyncMicros(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, fmt.Errorf("timing fsync: %w", err)
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	var took samples
	frame := make([]byte, 64<<10)
	for range 50 {
		began := time.Now()
		if _, err := f.Write(frame); err != nil {
			return 0, fmt.Errorf("timing fsync: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("timing fsync: %w", err)
		}
		took = append(took, time.Since(began))
	}
	return micros(took.quantile(0.5)), nil
}
