package query

import (
	"context"
	"time"
)

// DiskUse is how full a disk of a server is.
type DiskUse struct {
	Server string `json:"server"`
	// Disk is ClickHouse's name of it. The one of NATS is that of its store.
	Disk  string `json:"disk"`
	Free  uint64 `json:"free_bytes"`
	Total uint64 `json:"total_bytes"`
	// SilentSince is set where the disk does not answer: since when. How full it is is not known, and Free and Total are of its last
	// answer, 0 where it never gave one.
	SilentSince *time.Time `json:"silent_since,omitempty"`
}

// disksApart is how far apart reads of disks begin: many ask for a status every few seconds, and a disk fills slowly.
const disksApart = 5 * time.Second

// lookAtDisks reads how full ClickHouse's disks are, unless that was done just now. What cannot become full is left out. Where it
// cannot be read, what is known stays.
func (r *Reader) lookAtDisks(ctx context.Context) {
	r.known.mu.Lock()
	fresh := time.Since(r.known.disksAt) < disksApart
	if !fresh {
		r.known.disksAt = time.Now() // also where it fails
	}
	r.known.mu.Unlock()
	if fresh {
		return
	}
	all, err := r.db.Disks(ctx)
	if err != nil {
		return
	}
	var out []DiskUse
	for i := range all {
		if d := &all[i]; d.Bounded() {
			out = append(out, DiskUse{Server: ServerClickHouse, Disk: d.Name, Free: d.Free, Total: d.Total})
		}
	}
	r.known.mu.Lock()
	r.known.disks = out
	r.known.mu.Unlock()
}
