package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// weighing is how often the parts' memory is looked at: a part that dies between two looks took its peak with it, so
// every kill looks as well.
const weighing = 500 * time.Millisecond

// weighAll notes the memory of every part until ctx ends.
func (h *Cluster) weighAll(ctx context.Context) {
	for backoff.Sleep(ctx, weighing) == nil {
		for _, p := range h.Parts() {
			p.weigh()
		}
	}
}

// Peaks is the highest resident memory of any one process of each role, in bytes.
func (h *Cluster) Peaks() map[Role]uint64 {
	peaks := map[Role]uint64{}
	for _, p := range slices.Concat(h.Parts(), h.retired()) {
		peaks[p.Spec.Role] = max(peaks[p.Spec.Role], p.Peak())
	}
	return peaks
}

// memory is a line for each role.
func (h *Cluster) memory() string {
	var b strings.Builder
	peaks := h.Peaks()
	for _, role := range Roles {
		fmt.Fprintf(&b, "%-12s %5d MiB\n", role, peaks[role]>>20)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
